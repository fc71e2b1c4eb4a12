/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../clib/qp_new.h"
#include "bench_copies.h"
#include "bench_mem.h"
#include "bench_req_rig.h"
#include "qp_cc.h"
#include "sending.h"
#include "wire_service.h"

#define HEADER   32 /* bytes of the first of two SGEs */
#define CLIENT   1
#define CQ_DEPTH 1024
#define QKEY     0x11111111u

/** Where the time of the rig whose turn it is begins, in cycles. 0: a rig is being set up. */
static uint64_t turn_origin;
static double ns_per_cycle;

static ns_t
turn_clock(void)
{
	if (turn_origin == 0)
		return 1;
	return (ns_t)((double)(rte_rdtsc() - turn_origin) * ns_per_cycle);
}

static uint8_t payload[MAX_LEN];
static uint32_t order;

static uint32_t
next_random(void)
{
	order = order * 1664525u + 1013904223u;
	return order >> 8;
}

static uint64_t
next_place(uint32_t len)
{
	uint32_t step = (len + 63) / 64 * 64;

	return REGION_VA + next_random() % (REGION_LEN / step) * step;
}

/* ---- set up ---------------------------------------------------------------------------------- */

static struct qp_alloc_params
params_of(const struct req_rig *q, uint32_t i)
{
	return (struct qp_alloc_params){ .max_recv_wr = 1,
		.max_recv_sge = 1,
		.max_send_wr = i == 0 ? DEPTH : SHALLOW,
		.max_send_sge = 2,
		.max_dest_rd_atomic = 1,
		.has_rate = q->rated,
		.socket = q->conf.socket };
}

static void
make_qp(struct req_rig *q, uint32_t i)
{
	const struct qp_alloc_params params = params_of(q, i);
	struct qp *qp = qp_new(&params);
	struct cc_params rate;

	if (qp == NULL)
		die("no QP");
	qp->qpn = q->first_qpn + i;
	qp->pd = 1;
	qp->port = (uint8_t)q->r->port;
	qp->recv_cq = qp->send_cq = &q->cq;
	qp->sq.share = &q->client.share;
	if (q->rated) {
		cc_preset(CC_MLX5, &rate);
		qp->flags |= QPF_CC_RATE;
		qp_cc_start(qp, &rate);
	}
	if (qp_table_insert(q->conf.qps, qp) != 0)
		die("no slot");
	ring_attach(&q->sq[i], qp->sq.ring.sh, qp->sq.ring.mask + 1, qp->sq.ring.stride, false);
	q->qp[i] = qp;
}

static void
make_client(struct req_rig *q, uint32_t entries)
{
	size_t bytes = ring_bells_size(entries);
	struct mbox_msg msg = { .type = MBOX_CLIENT_ATTACH, .client.client = &q->client };
	uint8_t *mem = bench_huge_pages(bytes);

	q->client.id = CLIENT;
	ring_bells_attach(&q->client.bells, mem, entries);
	ring_bells_attach(&q->bells, mem, entries);
	if (mbox_send_down(&q->mbox, &msg) != 0)
		die("no client");
	worker_poll(q->worker, 1);
	if (mbox_recv_done(&q->mbox, &msg, 1) != 1 || msg.done.rc != 0)
		die("no client");
}

void
req_set_up(struct req_rig *q, struct bench_rig *r, unsigned int id, uint32_t qps, bool rated)
{
	const char *names[] = { "requests", "others", "single", "rated" };
	struct qp_alloc_params deep, shallow;
	size_t deep_bytes = 0, shallow_bytes = 0;
	const struct wire_path to_peer = bench_path(NET_IPV4, 1, 2);
	uint32_t entries = SENDERS;

	*q = (struct req_rig){ .r = r, .conf = r->conf, .qps_n = qps, .rated = rated };
	q->conf.clock = turn_clock;
	turn_origin = 0;
	ns_per_cycle = 1e9 / (double)rte_get_tsc_hz();
	while (entries < qps)
		entries *= 2;
	q->first_qpn = entries;
	deep = params_of(q, 0);
	shallow = params_of(q, 1);
	if (qp_footprint(&deep, &deep_bytes) != 0 || qp_footprint(&shallow, &shallow_bytes) != 0)
		die("capacities");
	q->conf.socket = bench_heap(
		names[id], (64u << 20) + 2 * deep_bytes + (qps + qps / 8) * shallow_bytes);
	/* Of its own, all in one cache: frames go round in the CPU's, as the peer's do. */
	q->conf.ports[0].pool = rte_pktmbuf_pool_create(names[id], 4 * MAX_PACKETS, 2 * MAX_PACKETS,
		0, MAX_LEN + 256 + RTE_PKTMBUF_HEADROOM, q->conf.socket);
	q->conf.qps = qp_table_create(entries, q->conf.socket);
	q->conf.mbox = &q->mbox;
	q->conf.ahs = q->ahs = qp_ah_table_create();
	q->qp = calloc(qps, sizeof(struct qp *));
	q->sq = calloc(qps, sizeof(q->sq[0]));
	q->posted = calloc(qps, sizeof(q->posted[0]));
	if (q->conf.ports[0].pool == NULL || q->conf.qps == NULL || q->ahs == NULL ||
		q->qp == NULL || q->sq == NULL || q->posted == NULL ||
		mbox_create(&q->mbox, 100 + id, 64, q->conf.socket) != 0 ||
		mem_area_create(&q->cq.area, ring_size(CQ_DEPTH, 64), -1, 0) != 0)
		die("no memory");
	ring_cq_attach(&q->cq.ring, q->cq.area.base, CQ_DEPTH, CQ_DEPTH, true);
	atomic_store(&q->cq.producer, 1); /* worker 0 */
	q->ah = qp_ah_add(q->ahs, 1, q->r->port, &to_peer, 0, true);
	for (uint32_t i = 0; i < qps; i++)
		make_qp(q, i);
	q->worker = worker_create(&q->conf);
	if (q->worker == NULL)
		die("no worker");
	make_client(q, 2 * entries);
	q->bare = (struct bare_requester){
		.crc = q->conf.crc, .pool = q->conf.ports[0].pool, .qps_n = entries, .port = r->port
	};
	q->bare.qps =
		(struct bare_sender *)(void *)bench_huge_pages(entries * sizeof(q->bare.qps[0]));
}

void
req_tear_down(struct req_rig *q)
{
	worker_destroy(q->worker);
	mbox_destroy(&q->mbox);
	qp_ah_table_destroy(q->ahs);
	free(q->qp);
	free(q->sq);
	free(q->posted);
}

/** As it is with QPs that make progress: each timer that is looked at is found to be due later. */
void
req_arm_timers(struct req_rig *q)
{
	const ns_t timeout = requester_timeout_ns(TIMEOUT);
	struct qp *qps = (struct qp *)(void *)bench_huge_pages(TIMERS * sizeof(struct qp));

	for (uint32_t i = 0; i < TIMERS; i++) {
		atomic_store_explicit(&qps[i].state, QPS_RTS, memory_order_relaxed);
		qps[i].req.timing = true;
		qps[i].req.deadline = UINT64_C(1000) * timeout + i;
		wheel_arm(&q->worker->wheel, &qps[i].sq.timer,
			tick_after(timeout / TIMERS * ((uint64_t)next_random() % TIMERS)));
	}
}

/* ---- a case ---------------------------------------------------------------------------------- */

static void
bring_up(struct qp *qp, const struct request_case *c)
{
	const uint8_t transport = wire_transport_on(c->service);
	struct qp_attr a = { .qp_state = QPS_RESET,
		.pkey = 0xffff,
		.path_mtu = c->pmtu,
		.dest_qp_num = qp->qpn,
		.max_rd_atomic = 128,
		.timeout = TIMEOUT,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.qkey = QKEY,
		.path = bench_path(c->net, 1, 2),
		.path_resolved = true };

	qp->type = c->service;
	qp->req.qp_type = c->service;
	qp->flags &= ~(uint32_t)QPF_RESOLVED;
	qp_service_set(qp, transport);
	qp_apply(qp, &a, QP_ATTR_STATE);
	a.qp_state = QPS_INIT;
	qp_apply(qp, &a, QP_ATTR_STATE | QP_ATTR_PKEY_INDEX | QP_ATTR_ACCESS_FLAGS);
	a.qp_state = QPS_RTR;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_AV | QP_ATTR_PATH_MTU | QP_ATTR_DEST_QPN | QP_ATTR_RQ_PSN |
			QP_ATTR_MAX_DEST_RD_ATOMIC | QP_ATTR_MIN_RNR_TIMER |
			(transport == WIRE_UD ? QP_ATTR_QKEY : 0));
	a.qp_state = QPS_RTS;
	qp_apply(qp, &a,
		QP_ATTR_STATE | QP_ATTR_SQ_PSN | QP_ATTR_TIMEOUT | QP_ATTR_RETRY_CNT |
			QP_ATTR_RNR_RETRY | QP_ATTR_MAX_QP_RD_ATOMIC);
}

uint32_t
req_begin(struct req_rig *q, const struct request_case *c)
{
	uint32_t n = 256u * 1024 / (case_bytes(c) + 1u),
		 qps = c->qps < q->qps_n ? c->qps : q->qps_n;

	for (uint32_t i = 0; i < qps; i++) {
		pipeline_sends_stop(q->worker, q->qp[i]);
		bring_up(q->qp[i], c);
		ring_attach(
			&q->sq[i], q->qp[i]->sq.ring.sh, q->sq[i].mask + 1, q->sq[i].stride, false);
		q->posted[i] = 0;
	}
	return n > MAX_PACKETS ? MAX_PACKETS : n / 32 * 32;
}

/** @return false: the send queue is full. */
static bool
post(struct req_rig *q, const struct request_case *c, uint32_t i)
{
	struct ring_send_wqe *w = ring_produce_slot(&q->sq[i], q->sq[i].mask + 1);
	bool signals = ++q->posted[i] % c->signal_every == 0;

	if (w == NULL)
		return false;
	*w = (struct ring_send_wqe){ .wr_id = i,
		.remote_addr = next_place(c->len),
		.rkey = REGION_KEY,
		.num_sge = c->sges,
		.opcode = c->opcode,
		.flags = signals ? SEND_SIGNALED : 0 };
	if (c->service == QPT_UD) {
		w->remote_addr = (uint64_t)QKEY << 32 | (q->first_qpn + i);
		w->rkey = q->ah;
	}
	w->sge[0] = (struct ring_sge){ next_place(c->len), c->len, REGION_KEY };
	if (c->sges == 2) { /* a header, and what it is about */
		w->sge[0].length = HEADER;
		w->sge[1] = (struct ring_sge){ next_place(c->len), c->len - HEADER, REGION_KEY };
	}
	ring_produce_commit(&q->sq[i]);
	if (ring_bell_is_due(&q->sq[i]) && ring_bells_put(&q->bells, q->first_qpn + i) != 0)
		die("the doorbells are full");
	return true;
}

void
req_post(struct req_rig *q, const struct request_case *c, uint32_t n)
{
	for (uint32_t i = 0; i < n / case_parts(c); i++)
		while (!post(q, c, (c->random ? next_random() : i) % c->qps))
			if (!c->random)
				die("a send queue is full");
}

void
req_bare_begin(struct req_rig *q, const struct request_case *c)
{
	const struct wire_path to_peer = bench_path(NET_IPV4, 1, 2);

	for (uint32_t i = 0; i < RTE_MIN(c->qps, q->qps_n); i++)
		bare_sender_init(&q->bare, q->first_qpn + i, &to_peer, case_bytes(c));
}

void
req_bare_post(struct req_rig *q, const struct request_case *c, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t at = (c->random ? next_random() : i) % c->qps;

		q->work[i] = (struct bare_work){ .from = q->r->bare.host +
							 next_place(case_bytes(c)) - REGION_VA,
			.remote_addr = next_place(case_bytes(c)),
			.rkey = REGION_KEY,
			.len = case_bytes(c),
			.qpn = q->first_qpn + at,
			.asks = ++q->posted[at] % c->signal_every == 0 };
	}
}

/* ---- the peer -------------------------------------------------------------------------------- */

static void
respond(struct req_rig *q, const struct request_case *c, uint32_t qpn, uint32_t p, uint8_t opcode,
	uint32_t len)
{
	const struct wire_path to_us = bench_path(c->net, 2, 1);
	struct wire_fields f = { .opcode = opcode,
		.flags = PKT_MIGREQ,
		.pkey = 0xffff,
		.dest_qpn = qpn,
		.psn = psn(p & PSN_MASK),
		.aeth = { AETH_ACK | AETH_CREDIT_NONE, (p + 1) & PSN_MASK },
		.payload = payload,
		.payload_len = (uint16_t)len };
	struct rte_mbuf *m = rte_pktmbuf_alloc(q->r->pool);
	uint8_t *frame;
	int bytes;

	if (m == NULL)
		die("pool is empty");
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	bytes = wire_build(&to_us, &f, 0, frame, rte_pktmbuf_tailroom(m));
	icrc_seal(q->conf.crc, frame, bench_ip(c->net), to_us.ipv6, (uint32_t)bytes);
	m->data_len = (uint16_t)bytes;
	m->pkt_len = (uint32_t)bytes;
	if (rte_ring_enqueue(q->r->to, m) != 0)
		die("link is full");
}

/** @return frames. */
static uint32_t
answer(struct req_rig *q, const struct request_case *c, uint32_t qpn, uint32_t p)
{
	const uint32_t parts = case_parts(c);

	if (c->opcode != WR_RDMA_READ) {
		respond(q, c, qpn, p, OP_RC_ACKNOWLEDGE, 0);
		return 1;
	}
	for (uint32_t i = 0; i < parts; i++)
		respond(q, c, qpn, p + i,
			parts == 1       ? OP_RC_READ_RESPONSE_ONLY
			: i == 0         ? OP_RC_READ_RESPONSE_FIRST
			: i == parts - 1 ? OP_RC_READ_RESPONSE_LAST
					 : OP_RC_READ_RESPONSE_MIDDLE,
			case_bytes(c));
	return parts;
}

/** An ACK for the last of `ack_every` frames of a QP that asks for one, as a burst would have. */
static uint32_t
answer_burst(struct req_rig *q, const struct request_case *c, struct rte_mbuf **m, uint32_t n)
{
	const uint32_t at = bench_bth(c->net);
	uint32_t made = 0;

	for (uint32_t i = 0; i < n && wire_is_acked(wire_transport_on(c->service)); i++) {
		const uint8_t *bth = rte_pktmbuf_mtod(m[i], uint8_t *) + at;
		uint32_t qpn = be24_load(bth + 5);
		bool last = (bth[8] & 0x80) != 0;

		for (uint32_t k = i + 1; c->ack_every != 1 && k < n && last; k++) {
			const uint8_t *later = rte_pktmbuf_mtod(m[k], uint8_t *) + at;

			last = be24_load(later + 5) != qpn || (later[8] & 0x80) == 0;
		}
		if (!last)
			continue;
		made += answer(q, c, qpn, be24_load(bth + 9));
	}
	rte_pktmbuf_free_bulk(m, n);
	return made;
}

uint32_t
req_answer(struct req_rig *q, const struct request_case *c, uint32_t *sent)
{
	struct rte_mbuf *m[PIPELINE_BURST];
	uint32_t n, made = 0;

	*sent = 0;
	while ((n = rte_ring_dequeue_burst(q->r->from, (void **)m, PIPELINE_BURST, NULL)) != 0) {
		*sent += n;
		made += answer_burst(q, c, m, n);
	}
	return made;
}

uint32_t
req_completions(struct req_rig *q)
{
	struct ring_cqe cqe[32];
	uint32_t n, sum = 0;

	while ((n = ring_cq_poll(&q->cq.ring, cqe, 32)) != 0)
		for (uint32_t i = 0; i < n; i++)
			sum += cqe[i].status == 0;
	return sum;
}

void
req_turn(struct req_rig *q, uint64_t since)
{
	turn_origin = since - q->cycles;
	worker_poll(q->worker, turn_clock());
}

/** Turns until the port has done what is under way. @return bytes that were copied meanwhile. */
static size_t
copied_in_turns(struct req_rig *q)
{
	const size_t before = copies_count();

	for (uint32_t i = 0; i < 16; i++)
		req_turn(q, rte_rdtsc());
	return copies_count() - before;
}

double
req_copied(struct req_rig *q, const struct request_case *c)
{
	size_t sum;
	uint32_t sent;

	copies_begin();
	if (c->opcode == WR_RDMA_READ) {
		memset(q->r->bare.host, 0, REGION_LEN);
		copies_fill(payload, case_bytes(c));
	} else {
		copies_fill(q->r->bare.host, REGION_LEN);
	}
	req_post(q, c, case_parts(c));
	sum = copied_in_turns(q);
	req_answer(q, c, &sent);
	sum += copied_in_turns(q);
	req_completions(q);
	return (double)sum / c->len;
}
