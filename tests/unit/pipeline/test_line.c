/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients owe for what they have sent, and when it is forgotten. */
#include "apps_rig.h"

/** Both post once, and send until all is sent. @return packets of OTHER in the first turn. */
static uint32_t
first_turn(struct bed *b)
{
	uint64_t before = apps[OTHER].packets, first = 0;

	post(&apps[VICTIM]);
	post(&apps[OTHER]);
	for (uint32_t turn = 0; turn < 160; turn++) {
		bed_turn(b);
		count_output(b);
		first = turn == 0 ? apps[OTHER].packets - before : first;
		acknowledge(b, &apps[VICTIM]);
		acknowledge(b, &apps[OTHER]);
	}
	return (uint32_t)first;
}

/*
 * What a client has moved beyond its turn is forgotten once nobody has anything to send: the same
 * requests of new QPs are sent in the same way again.
 */
static void
a_debt_ends_with_the_line(void **state)
{
	struct bed *b = *state;

	for (uint32_t n = 0; n < 16; n++) {
		uint32_t first = 0;

		attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
		attach(b, OTHER, 1 + n % 4, WR_RDMA_WRITE, (1 + n / 4) * 900);
		for (uint32_t i = 0; i < 4; i++) {
			const uint32_t now = first_turn(b);

			first = i == 0 ? now : first;
			assert_int_equal(now, first);
			make_qps(b, OTHER, end_qps(b, &apps[OTHER]));
			make_qps(b, VICTIM, end_qps(b, &apps[VICTIM]));
		}
		detach(b, OTHER);
		detach(b, VICTIM);
	}
}

/* A QP at the address of one that is gone pays for the switch like any other. */
static void
a_QP_that_is_gone_is_forgotten(void **state)
{
	struct bed *b = *state;
	const struct qp_share *share = &apps[VICTIM].client.share;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 1, WR_RDMA_WRITE, 64);
	first_turn(b);
	assert_ptr_equal(share->last, apps[VICTIM].qp[0].qp);
	end_qps(b, &apps[VICTIM]);
	assert_null(share->last);
	detach(b, OTHER);
	detach(b, VICTIM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_debt_ends_with_the_line),
		TEST(a_QP_that_is_gone_is_forgotten),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
