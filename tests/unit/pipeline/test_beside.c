/* SPDX-License-Identifier: BSD-3-Clause */
/* A peer that reads beside several that write: each has as much of the worker's turns. */
#include "peers_rig.h"

#include <string.h>

enum { READER = 2, EACH = 14, TURNS = 100, READ = 65536 };

/** One of its QPs has a READ under way, always. @param left packets that are still to come. */
static void
reads(struct bed *b, struct peer *p, uint32_t k, uint32_t *left)
{
	struct wire_fields f = read_request(p->psn[k], MR_VA, READ);
	struct rte_mbuf *m;

	if (*left != 0)
		return;
	f.dest_qpn = p->qp[k]->qpn;
	m = bed_frame_on(&p->path, &f);
	bed_put(b, m);
	p->psn[k] += READ / PMTU;
	*left = READ / PMTU;
}

/** @return answers to READs that were sent. */
static uint32_t
count(struct bed *b, uint32_t *left)
{
	uint32_t n = 0;

	do {
		bed_forget_output(b);
		bed_collect(b);
		for (uint32_t i = 0; i < b->out_n; i++) {
			const uint32_t at = b->pkt[i].dest_qpn - FIRST_QPN;

			if (at / QPS != READER)
				continue;
			assert_true(left[at % QPS] != 0);
			left[at % QPS]--;
			n++;
		}
	} while (b->out_n == FRAMES);
	return n;
}

/** @param writers of whom each has EACH WRITEs in a turn. @return answers in TURNS turns. */
static uint32_t
answered(struct bed *b, uint32_t writers)
{
	static uint32_t left[QPS];
	uint32_t n = 0;

	memset(left, 0, sizeof(left));
	for (uint32_t i = 0; i <= READER; i++)
		peer_begin(b, i);
	for (uint32_t t = 0; t < TURNS; t++) {
		for (uint32_t k = 0; k < QPS; k++)
			reads(b, &peers[READER], k, &left[k]);
		for (uint32_t i = 0; i < writers; i++)
			for (uint32_t k = 0; k < EACH; k++)
				assert_true(peer_sends(&peers[i], PMTU, EACH));
		worker_poll(b->w, b->now);
		n += count(b, left);
	}
	for (uint32_t i = 0; i <= READER; i++)
		peer_end(b, i);
	return n;
}

/* An answer costs somewhat more than a WRITE of that length, for it comes with a request. */
static void
a_reader_has_as_much_as_one_who_writes(void **state)
{
	assert_in_range(answered(*state, 1), TURNS * EACH / 2, TURNS * EACH);
}

/* The turn is long for all of them together. */
static void
a_reader_has_as_much_as_each_who_writes(void **state)
{
	assert_in_range(answered(*state, 2), TURNS * EACH / 2, TURNS * EACH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_reader_has_as_much_as_one_who_writes),
		TEST(a_reader_has_as_much_as_each_who_writes),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
