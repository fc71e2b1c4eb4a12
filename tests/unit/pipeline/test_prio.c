/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's priorities share what it takes, however little that is at a time: FLOW-09, FLOW-10. */
#include "bed.h"

#include "tx.h"
#include "tx_prio.h"

enum { WIRE = 1023, MOST = 700, LONG = 900, SHORT = 40, QUANTUM = 512 };

static struct prio_port prio;
static char plug;          /* stands in the wire for frames of others */
static uint32_t got[MOST]; /* in the order in which they left */
static uint32_t got_n;

static int
setup(void **state)
{
	struct bed *b;

	prio = (struct prio_port){ .first = 1 };
	memset(prio.map.dscp, PRIO_NONE, sizeof(prio.map.dscp));
	if (bed_setup(state) != 0)
		return -1;
	b = *state;
	b->conf.ports[0].prio = &prio;
	bed_worker_again(b);
	got_n = 0;
	return 0;
}

static uint32_t
queue_of(uint32_t p)
{
	return p == 0 ? 0 : p; /* one port: those of 1 to 7 follow */
}

/** A frame of the priority, and its length. */
static uint32_t
push(struct bed *b, uint32_t p, uint32_t id, uint16_t len)
{
	const struct wire_fields f = write_only(E, MR_VA, len);
	struct rte_mbuf *m = bed_frame(&f);

	m->hash.usr = id;
	pipeline_tx_push(b->w, (uint8_t)queue_of(p), m);
	return m->pkt_len;
}

static uint32_t
left(const struct bed *b, uint32_t p)
{
	return b->w->tx[queue_of(p)].tail - b->w->tx[queue_of(p)].head;
}

/** The port has room for so many. @return those that left. */
static uint32_t
give(struct bed *b, uint32_t room)
{
	struct rte_ring *wire = bed_far_end();
	uint32_t sent;
	void *m;

	while (rte_ring_free_count(wire) > room)
		assert_int_equal(rte_ring_enqueue(wire, &plug), 0);
	sent = pipeline_prio_tx(b->w, 0);
	while (rte_ring_dequeue(wire, &m) == 0) {
		if (m == &plug)
			continue;
		assert_true(got_n < MOST);
		got[got_n++] = ((struct rte_mbuf *)m)->hash.usr;
		rte_pktmbuf_free(m);
	}
	return sent;
}

/* ---- what should come out -------------------------------------------------------------------- */

/** Frames of each priority: they are numbered by priority, then by order. */
struct load {
	uint32_t n[PRIO_N];
	uint32_t len[PRIO_N]; /* whole frames */
};
#define ID(p, i) ((p) << 16 | (i))

static void
push_all(struct bed *b, struct load *l)
{
	for (uint32_t p = 0; p < PRIO_N; p++)
		for (uint32_t i = 0; i < l->n[p]; i++)
			l->len[p] = push(b, p, ID(p, i), p % 2 != 0 ? LONG : SHORT);
}

/** Strict ones, the highest first; then by turns, each with its weight in quanta. */
static uint32_t
order_of(const struct load *l, uint32_t *out)
{
	uint32_t at[PRIO_N] = { 0 }, n = 0, waiting = 0;
	uint64_t credit[PRIO_N] = { 0 };

	for (uint32_t p = PRIO_N; p-- != 0;) {
		if (prio.weight[p] != 0)
			waiting += l->n[p];
		else
			for (; at[p] < l->n[p]; at[p]++)
				out[n++] = ID(p, at[p]);
	}
	for (uint32_t p = 0; waiting != 0; p = (p + 1) % PRIO_N) {
		if (prio.weight[p] == 0 || at[p] == l->n[p])
			continue;
		credit[p] += (uint64_t)prio.weight[p] * QUANTUM;
		for (; at[p] < l->n[p] && l->len[p] <= credit[p]; waiting--) {
			credit[p] -= l->len[p];
			out[n++] = ID(p, at[p]++);
		}
	}
	return n;
}

static void
expect_order(const struct load *l)
{
	uint32_t want[MOST];
	const uint32_t n = order_of(l, want);

	assert_int_equal(got_n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(got[i], want[i]);
	got_n = 0;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/** FLOW-10: the order is the same whether the port takes one frame at a time or all. */
static void
FLOW_10_however_little_the_port_takes(void **state)
{
	static const uint32_t rooms[] = { 1, 2, 3, 5, 63, 64, 65, WIRE };
	struct bed *b = *state;

	for (uint32_t weights = 0; weights < 3; weights++) {
		for (size_t i = 0; i < ARRAY_LEN(rooms); i++) {
			struct load l = { .n = { 20, 30, 17, 0, 40, 9, 3, 11 } };

			memset(prio.weight, 0, sizeof(prio.weight));
			if (weights != 0) {
				prio.weight[0] = 1;
				prio.weight[1] = 3;
				prio.weight[2] = 2;
			}
			if (weights == 2)
				memset(prio.weight + 4, 5, 4);
			push_all(b, &l);
			for (uint32_t sent = 0; sent < 130; sent += give(b, rooms[i]))
				;
			expect_order(&l);
		}
	}
}

/** ... and so is the next one, when all have left, whatever number that was. */
static void
FLOW_10_when_all_have_left(void **state)
{
	struct bed *b = *state;

	prio.weight[0] = prio.weight[1] = 1;
	for (uint32_t n = 60; n <= 68; n++) {
		struct load l = { .n = { n - 20, 20 } };

		push_all(b, &l);
		assert_int_equal(give(b, WIRE), n); /* in one turn of the worker */
		expect_order(&l);
	}
}

/** Frames behind those that fit a priority are dropped, the newest first, and counted. */
static void
FLOW_10_bounded(void **state)
{
	struct bed *b = *state;

	for (uint32_t i = 0; i < PRIO_ROOM + 40; i++)
		push(b, 3, i, SHORT);
	push(b, 5, 9999, SHORT);
	assert_int_equal(give(b, 0), 0);
	assert_int_equal(left(b, 3), PRIO_ROOM);
	assert_int_equal(bed_stat(b, STAT_tx_backlog_drop), 40);
	assert_int_equal(give(b, WIRE), PRIO_ROOM + 1);
	assert_int_equal(got[0], 9999);
	for (uint32_t i = 0; i < PRIO_ROOM; i++)
		assert_int_equal(got[1 + i], i);
}

/** FLOW-09: a CNP's priority is that of its DSCP, else of its tag, if it has one. */
static void
FLOW_09_of_a_cnp(void **state)
{
	struct bed *b = *state;
	struct qp *qp = b->qp;

	prio.map.other = 2;
	prio.map.pcp[6] = 4;
	qp->cnp = (struct wire_cnp){ .tos = 48 << 2, .prio = 6 };
	assert_int_equal(pipeline_prio_cnp(b->w, qp, 0), queue_of(2));
	qp->flags |= QPF_VLAN;
	assert_int_equal(pipeline_prio_cnp(b->w, qp, 0), queue_of(4));
	prio.map.dscp[48] = 5;
	assert_int_equal(pipeline_prio_cnp(b->w, qp, 0), queue_of(5));
	qp->flags &= ~(uint32_t)QPF_VLAN;
	assert_int_equal(pipeline_prio_cnp(b->w, qp, 0), queue_of(5));
	prio.map.dscp[48] = 0;
	assert_int_equal(pipeline_prio_cnp(b->w, qp, 0), queue_of(0));
}

#define TEST_PRIO(f) cmocka_unit_test_setup_teardown(f, setup, bed_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST_PRIO(FLOW_10_however_little_the_port_takes),
		TEST_PRIO(FLOW_10_when_all_have_left), TEST_PRIO(FLOW_10_bounded),
		TEST_PRIO(FLOW_09_of_a_cnp) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
