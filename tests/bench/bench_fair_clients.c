/* SPDX-License-Identifier: BSD-3-Clause */
/* What the clients or peers of bench_fair_rig.h do between two turns, and what the victim got. */
#include <stdlib.h>

#include "bench_fair_world.h"
#include "bench_stat.h"

/** @return false: the send queue is full. */
static bool
put(const struct fair_case *c, uint32_t i, uint64_t wr_id)
{
	const uint32_t pieces = c->sges > 1 ? c->sges : 1, step = (c->len + 63) / 64 * 64;
	struct end *e = &fair.requester[i];
	struct ring_send_wqe *w = ring_produce_slot(&e->sq, e->sq.mask + 1);

	if (w == NULL)
		return false;
	*w = (struct ring_send_wqe){ .wr_id = wr_id,
		.remote_addr = REGION_VA + fair_random() % (REGION_LEN / step) * step,
		.rkey = REGION_KEY,
		.num_sge = pieces,
		.opcode = c->act == ACT_MALFORMED ? 99 : c->opcode,
		.flags = SEND_SIGNALED };
	for (uint32_t k = 0; k < pieces; k++)
		w->sge[k] =
			(struct ring_sge){ REGION_VA + fair_random() % (REGION_LEN / step) * step,
				c->len / pieces, REGION_KEY };
	ring_produce_commit(&e->sq);
	return true;
}

static void
ring_bell(uint32_t client, uint32_t i)
{
	if (ring_bell_is_due(&fair.requester[i].sq) &&
		ring_bells_put(&fair.app[client].bells, REQUESTER_QPN + i) != 0)
		die("the doorbells are full");
}

/** Each keeps as much under way as it may. */
void
fair_victim_acts(void)
{
	const struct fair_case *c = fair.sample;
	const struct fair_case small = { .opcode = WR_RDMA_WRITE,
		.len = c->ping ? PING_LEN : VICTIM_LEN };
	const uint32_t depth = c->ping ? 1 : VICTIM_DEPTH;
	struct ring_cqe cqe[32];
	struct end *e = &fair.requester[VICTIM];
	uint32_t n;

	while ((n = ring_cq_poll(&fair.app[VICTIM].cq.ring, cqe, 32)) != 0)
		for (uint32_t i = 0; i < n; i++) {
			if (cqe[i].status != WC_SUCCESS)
				die("a WRITE of the victim failed");
			if (fair.latencies_n < MAX_LATENCIES)
				fair.latencies[fair.latencies_n++] =
					(double)(fair_worked() - fair.posted[cqe[i].wr_id]);
			e->under_way--;
			fair.resting = c->pause;
		}
	if (fair.resting != 0) {
		fair.resting--;
		return;
	}
	for (; e->under_way < depth; e->under_way++) {
		const uint32_t slot = e->sq.prod % VICTIM_DEPTH;

		fair.posted[slot] = fair_worked();
		if (!put(&small, VICTIM, slot))
			die("the victim's send queue is full");
	}
	ring_bell(VICTIM, VICTIM);
}

static void
fill(const struct fair_case *c, uint32_t app, uint32_t i)
{
	struct end *e = &fair.requester[i];
	uint32_t before = e->under_way;

	if (c->act == ACT_MALFORMED && qp_state_now(e->qp) == QPS_ERR && e->under_way == 0)
		fair_begin_pair(i);
	while (e->under_way < c->depth && put(c, i, i))
		e->under_way++;
	if (e->under_way != before)
		ring_bell(app, i);
}

/** Many, but never so many that the ring is full: then the client would wait. */
static void
ring_bells(const struct fair_case *c)
{
	struct app *app = &fair.app[OTHER];

	while (atomic_load(&app->bells.next) - atomic_load(&app->client.bells.next) < BELLS / 2) {
		uint32_t number = REQUESTER_QPN + OTHER + fair_random() % OTHER_QPS;

		if (c->act == ACT_GARBAGE)
			number = fair_random() | BIT32(30);
		ring_bells_put(&app->bells, number);
	}
}

static void
other_acts(const struct fair_case *c, uint32_t app)
{
	const uint32_t first = fair_first_qp(app, NULL);
	struct ring_cqe cqe[32];
	uint32_t n;

	while ((n = ring_cq_poll(&fair.app[app].cq.ring, cqe, 32)) != 0)
		for (uint32_t i = 0; i < n; i++)
			fair.requester[cqe[i].wr_id].under_way--;
	switch (c->act) {
	case ACT_NOTHING:
		break;
	case ACT_BELLS:
	case ACT_GARBAGE:
		ring_bells(c);
		break;
	default:
		for (uint32_t i = first; i < first + c->qps; i++)
			fill(c, app, i);
		break;
	}
}

/** The others of a case are these apps and the ones behind. */
static uint32_t
others(const struct fair_case *c, uint32_t *n)
{
	*n = c->others > 1 ? c->others : 1;
	return c->others > 1 ? CROWD : OTHER;
}

/* ---- a sample -------------------------------------------------------------------------------- */

static void
begin(const struct fair_case *c)
{
	struct qp_attr a = { 0 };
	uint32_t n, app = others(c, &n);

	fair.again = c->again;
	fair_begin_pair(VICTIM);
	for (uint32_t end = app + n; app != end; app++) {
		const uint32_t first = fair_first_qp(app, NULL);

		for (uint32_t i = first; i < first + c->qps; i++) {
			fair_begin_pair(i);
			if (c->act == ACT_FLUSH)
				fair_modify(&fair.requester[i], &a, QPS_ERR, 0);
		}
	}
}

static void
end(const struct fair_case *c)
{
	uint32_t n, app = others(c, &n);
	struct ring_cqe cqe[32];

	fair.again = 0;
	fair_end_pair(VICTIM);
	for (uint32_t end = app + n; app != end; app++) {
		const uint32_t first = fair_first_qp(app, NULL);

		for (uint32_t i = first; i < first + c->qps; i++)
			fair_end_pair(i);
	}
	for (uint32_t i = 0; i < 10000; i++) /* what is on the wires, and in doorbells */
		fair_turn();
	for (uint32_t i = 0; i < APPS; i++)
		while (ring_cq_poll(&fair.app[i].cq.ring, cqe, 32) != 0)
			;
}

static void
work(const struct fair_case *c, ns_t ns)
{
	const ns_t until = fair_worked() + ns;
	uint32_t n, first = others(c, &n);

	fair.working = true;
	while (fair_worked() < until) {
		fair_victim_acts();
		for (uint32_t i = 0; i < n; i++)
			other_acts(c, first + i);
		fair_turn();
	}
	fair.working = false;
}

struct fair_sample
fair_run(const struct fair_case *c, ns_t ns)
{
	struct fair_sample s = { 0 };
	ns_t from;

	fair.sample = c;
	fair.resting = 0;
	begin(c);
	work(c, ns / 4);
	fair.latencies_n = 0;
	fair.longest = 0;
	fair_lost_cpu();
	from = fair_worked();
	work(c, ns);
	s.rate = (double)fair.latencies_n * 1e9 / (double)(fair_worked() - from);
	s.turn = (double)fair.longest;
	if (fair.latencies_n != 0) {
		qsort(fair.latencies, fair.latencies_n, sizeof(double), stat_compare);
		s.p99 = fair.latencies[fair.latencies_n - 1 - fair.latencies_n / 100];
	}
	end(c);
	return s;
}
