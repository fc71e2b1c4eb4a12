/* SPDX-License-Identifier: BSD-3-Clause */
/* A QP in RTR serves what its peer asks for, and tells of the first request, whatever it is. */
#include "bed.h"

static struct wire_fields
compare_swap(uint32_t p)
{
	struct wire_fields f = fetch_add(p, MR_VA, 7);

	f.opcode = OP_RC_COMPARE_SWAP;
	return f;
}

/* RESP-16, AE-05: the first request is no SEND. Its answer is that of RTS, and it is told of. */
static void
RESP_16_first_request(void **state)
{
	const struct {
		struct wire_fields f;
		uint8_t answer;
		uint32_t len;
	} rows[] = {
		{ read_request(E, MR_VA, 8), OP_RC_READ_RESPONSE_ONLY, 8 },
		{ read_request(E + 1, MR_VA, PMTU), OP_RC_READ_RESPONSE_ONLY, PMTU },
		{ read_request(E + 2, MR_VA, 0), OP_RC_READ_RESPONSE_ONLY, 0 },
		{ fetch_add(E + 3, MR_VA, 5), OP_RC_ATOMIC_ACKNOWLEDGE, 0 },
		{ compare_swap(E + 4), OP_RC_ATOMIC_ACKNOWLEDGE, 0 },
		{ write_only(E + 5, MR_VA, 8), OP_RC_ACKNOWLEDGE, 0 },
	};
	struct bed *b = *state;

	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct mbox_msg m;

		print_message("# opcode 0x%02x length %u\n", rows[i].f.opcode, rows[i].len);
		bed_in_rtr(b);
		bed_send(b, &rows[i].f);
		bed_turn(b);
		expect_packet(b, rows[i].answer, E + i, rows[i].len);
		expect_silence(b);
		m = bed_up(b, MBOX_EVENT);
		assert_int_equal(m.ev.event, 4); /* EVENT_COMM_EST */
		assert_int_equal(m.ev.qpn, QPN);
		assert_int_equal(atomic_load(&b->qp->state), QPS_RTR);
		bed_send(b, &rows[i].f); /* a duplicate: it is told once */
		bed_turns(b);
		bed_no_up(b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(RESP_16_first_request) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
