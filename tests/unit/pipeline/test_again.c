/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was asked for before a pause leaves no trace in whose turn it is: the same requests are
 * served in the same order as the first time, whatever came in between.
 */
#include "apps_rig.h"
#include "record.h"

enum { TURNS = 160 };

/** These post once, in this order, and send until all is sent and acknowledged. */
static void
send_all(struct bed *b, const uint32_t *who, uint32_t n)
{
	for (uint32_t turn = 0; turn < TURNS; turn++) {
		if (turn < n)
			post(&apps[who[turn]]);
		bed_turn(b);
		record_note(b);
		count_output(b);
		for (uint32_t i = 0; i < n; i++)
			acknowledge(b, &apps[who[i]]);
	}
}

/* Requests of three clients; what comes in between is of none, one, two or all of them. */
static void
requests_of_clients(void **state)
{
	static const uint32_t probe[] = { OTHER, VICTIM, THIRD };
	static const struct {
		uint32_t n, who[3];
	} between[] = { { 0, { 0 } }, { 1, { VICTIM } }, { 2, { THIRD, VICTIM } }, { 1, { THIRD } },
		{ 3, { VICTIM, THIRD, OTHER } }, { 2, { OTHER, THIRD } }, { 1, { OTHER } } };
	struct bed *b = *state;

	attach(b, VICTIM, 1, WR_RDMA_WRITE, 64);
	attach(b, OTHER, 2, WR_RDMA_WRITE, 900);
	attach(b, THIRD, 1, WR_RDMA_WRITE, 300);
	for (uint32_t round = 0; round < ARRAY_LEN(between); round++) {
		send_all(b, between[round].who, between[round].n);
		record_pause(b);
		record_now.n = 0;
		send_all(b, probe, ARRAY_LEN(probe));
		record_compare(round);
		record_pause(b);
	}
	detach(b, THIRD);
	detach(b, OTHER);
	detach(b, VICTIM);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(requests_of_clients),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
