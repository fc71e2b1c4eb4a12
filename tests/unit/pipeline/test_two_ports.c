/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A burst can have packets of two ports: those that other workers have handed over. What the fast
 * path takes of it is counted at the port of its first packet, so it takes no packet of another.
 */
#include "bed.h"

#include "stage_06_fast.h"

uint32_t __real_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);
uint32_t __wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f);

static bool comes_to_another;
static uint32_t taken;

/** The second packet has come to another port, until the fast path has been asked. */
uint32_t
__wrap_pipeline_fast_run(struct worker *w, struct burst *b, uint32_t i, struct fast *f)
{
	uint32_t end;

	if (!comes_to_another)
		return __real_pipeline_fast_run(w, b, i, f);
	comes_to_another = false;
	assert_true(i == 0 && b->n == 2 && b->port[1] == b->port[0]);
	b->port[1]++;
	f->one_port = false;
	f->calm = false;
	end = __real_pipeline_fast_run(w, b, i, f);
	b->port[1]--;
	taken = end;
	return end;
}

static void
request(struct bed *b, uint8_t opcode, uint32_t p)
{
	struct wire_fields f = write_only(p, MR_VA, PMTU);

	f.opcode = opcode;
	if (opcode == OP_RC_WRITE_FIRST)
		f.reth.dma_len = 3 * PMTU;
	if (opcode == OP_RC_READ_REQUEST)
		f.payload_len = 0;
	bed_send(b, &f);
}

/* RESP-05, RESP-06: one of the first port is taken, and the second packet is left. */
static void
RESP_05_fast_path_keeps_to_a_port(void **state)
{
	static const uint8_t rows[][2] = { { OP_RC_WRITE_ONLY, OP_RC_WRITE_ONLY },
		{ OP_RC_SEND_ONLY, OP_RC_SEND_ONLY }, { OP_RC_READ_REQUEST, OP_RC_READ_REQUEST },
		{ OP_RC_WRITE_FIRST, OP_RC_WRITE_MIDDLE }, { OP_RC_WRITE_LAST, OP_RC_SEND_FIRST },
		{ OP_RC_SEND_MIDDLE, OP_RC_SEND_MIDDLE } };
	struct bed *b = *state;

	bed_post(b, 8);
	for (uint32_t i = 0; i < ARRAY_LEN(rows); i++) {
		comes_to_another = true;
		taken = UINT32_MAX;
		request(b, rows[i][0], E + 2 * i);
		request(b, rows[i][1], E + 2 * i + 1);
		bed_turns(b);
		assert_false(comes_to_another);
		assert_int_equal(taken, 1);
		assert_int_equal(b->qp->resp.epsn.v, E + 2 * i + 2);
		bed_forget_output(b);
	}
	while (ring_cq_poll(&b->cq.ring, &(struct ring_cqe){ 0 }, 1) == 1)
		;
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(RESP_05_fast_path_keeps_to_a_port) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
