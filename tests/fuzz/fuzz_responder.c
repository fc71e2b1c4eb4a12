/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs for the responder. Input: a byte of knobs, a byte of options, then steps of eight bytes:
 *
 *   byte 0  0x00..0x9f  a packet: see fuzz_responder_packet.c
 *           0xa0..0xaf  post receives: 1 QP, 2 how many, 3 what kind
 *           0xb0..0xbf  QP: 1 which, 2 what: another state, other attributes, another QP, another
 *                       path; limit of the shared receive queue
 *           0xc0..0xcf  region: 1 which, 2 what: deregister, register again, with which rights
 *           0xd0..0xdf  time: 1 unit, 2 how much
 *           0xe0..0xef  noise: see packet_noise()
 *           0xf0..0xff  what is drained after each turn: 1; and turns without packets: 2
 */
#include "fuzz_responder.h"

enum { STEPS_MAX = 384 };

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* ---- a turn ---------------------------------------------------------------------------------- */

/** With FUZZ_VERBOSE in the environment: what a program does, for whoever reads a crash. */
static void
tell(void)
{
	static int wanted = -1;
	char line[512];

	if (wanted < 0)
		wanted = getenv("FUZZ_VERBOSE") != NULL;
	if (wanted == 0)
		return;
	for (uint32_t i = 0; i < fb.sent_n; i++) {
		const struct sent *t = &fb.sent[i];
		const struct qp *qp = t->qp >= 0 ? fb.q[t->qp].qp : NULL;

		if (!t->good)
			continue;
		wire_print(&t->p, line, sizeof(line));
		fprintf(stderr, "QP %d %s\n", t->qp, line);
		if (qp != NULL)
			fprintf(stderr,
				"  %s ePSN %u MSN %u open %u error %s; model: state %u ePSN %u\n",
				verbs_qp_state_name(atomic_load(&qp->state)), qp->resp.epsn.v,
				qp->resp.msn, qp->resp.open,
				responder_rule_id((enum responder_rule)qp->last_error.rule),
				fb.model[t->qp].state, fb.model[t->qp].r.epsn.v);
	}
}

void
turn(void)
{
	if (fb.opening) {
		worker_poll(fb.w, fb.now);
		return;
	}
	model_begin();
	look_begin();
	worker_poll(fb.w, fb.now);
	model_run();
	tell();
	look_completions();
	model_compare();
	look_events();
	look_frames();
	look_accounts();
	fb.sent_n = 0;
}

/* ---- actions --------------------------------------------------------------------------------- */

static void
fill_wqe(const struct plan *plan, struct ring_recv_wqe *w, uint8_t kind)
{
	const struct region *rq = &fb.mr[plan->rq_mr];
	uint64_t at = rq->va + (w->wr_id % (rq->len / 1024u)) * 1024u;

	w->num_sge = 1;
	w->sge[0] = (struct ring_sge){ at, 1024, rq->key };
	switch (kind % 12) {
	case 4: /* in pieces */
		w->num_sge = 4;
		w->sge[0].length = 100;
		w->sge[1] = (struct ring_sge){ 0, 0, 0xdead };
		w->sge[2] = (struct ring_sge){ at + 200, 1, rq->key };
		w->sge[3] = (struct ring_sge){ at + 300, 700, rq->key };
		break;
	case 5:
		w->sge[0].length = 16;
		break;
	case 6:
		w->sge[0].lkey = rq->key + 1;
		break;
	case 7: /* another domain's */
		w->sge[0].lkey = fb.mr[plan->pd == 1 ? 5 : 4].key;
		break;
	case 8:
		w->sge[0].addr = rq->va + rq->len - 1023;
		break;
	case 9:
		w->num_sge = 0xffffffff;
		break;
	case 10:
		w->num_sge = 0;
		break;
	case 11: /* a peer can reach these bytes too; longer than any message */
		w->sge[0] = (struct ring_sge){ fb.mr[plan->good_mr].va, 4096,
			fb.mr[plan->good_mr].key };
		break;
	default:
		break;
	}
}

static void
post(uint32_t i, uint32_t n, uint8_t kind)
{
	struct qp_bed *q = &fb.q[i];
	struct mbox_msg flush = { .type = MBOX_QP_RECEIVES };

	if (!bed_attached(i) || state_of(i) == QPS_RESET)
		return;
	for (; n != 0; n--) {
		struct ring_recv_wqe *w = queue_slot(q);

		if (w == NULL)
			break;
		/* A malformed one ends the shared queue: rarely. */
		fill_wqe(q->plan, w, q->shared && kind % 12 == 9 && kind < 0xf0 ? 0 : kind);
		queue_commit(q, w);
	}
	if (state_of(i) != QPS_ERR || q->shared)
		return;
	flush.qp.qp = q->qp;
	FUZZ_CHECK(bed_tell(&flush) == 0);
	FUZZ_CHECK(queue_is_done(q));
}

/** A host that lies about its index is not followed, whoever looks. */
static void
lie(uint32_t i, uint32_t by)
{
	struct qp_bed *q = &fb.q[i];
	struct mbox_msg query = { .type = MBOX_QP_QUERY };
	static struct qp_snapshot snap;
	uint32_t prod = atomic_load(&q->rq.sh->prod);

	atomic_store(&q->rq.sh->prod, prod + RQ_WRS + 1 + by * 0x01000001u);
	query.query = (struct mbox_query){ q->qp, &snap };
	FUZZ_CHECK(bed_tell(&query) == 0);
	FUZZ_CHECK(snap.rq_posted <= RQ_WRS);
	atomic_store(&q->rq.sh->prod, prod);
}

static void
change(uint32_t i, uint8_t v)
{
	struct mbox_msg m = { .type = MBOX_QP_MODIFY };
	struct qp_attr a = { .qp_access_flags = v & 15,
		.min_rnr_timer = v & 31,
		.max_dest_rd_atomic = v & 7,
		.qp_state = state_of(i),
		.cur_qp_state = state_of(i) };

	if (a.qp_state == QPS_RTS)
		m.modify.mask = QP_ATTR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MIN_RNR_TIMER;
	else if (a.qp_state == QPS_SQD)
		m.modify.mask = QP_ATTR_STATE | QP_ATTR_ACCESS_FLAGS | QP_ATTR_MAX_DEST_RD_ATOMIC;
	else
		return;
	fb.q[i].access = a.qp_access_flags;
	m.modify.qp = fb.q[i].qp;
	m.modify.attr = &a;
	fb.modifying = (int)i;
	FUZZ_CHECK(bed_tell(&m) == 0);
	fb.modifying = -1;
}

static void
qp_step(const uint8_t *s)
{
	uint32_t i = s[1] & 7, psn = (uint32_t)s[3] << 16 | (uint32_t)s[4] << 8 | s[5];

	if (!bed_attached(i) && (s[2] & 15) != 9)
		return;
	switch (s[2] & 15) {
	case 0:
	case 1:
		bed_qp_state(i, QPS_ERR, psn);
		break;
	case 2:
		bed_qp_state(i, QPS_RESET, psn);
		break;
	case 3:
		bed_qp_state(i, QPS_INIT, psn);
		break;
	case 4:
		bed_qp_state(i, QPS_RTR, psn);
		break;
	case 5:
		if (state_of(i) == QPS_RTS)
			bed_qp_state(i, QPS_SQD, psn);
		break;
	case 6:
	case 7:
		change(i, s[3]);
		break;
	case 8:
		bed_qp_gone(i);
		break;
	case 9:
		bed_qp_gone(i);
		bed_qp_make(i);
		bed_qp_state(i, QPS_RTS, psn);
		break;
	case 10:
		lie(i, s[3]);
		break;
	case 12:
	case 13:
		if (fb.apm)
			paths_step(i, s[3], s[4]);
		else
			bed_qp_state(i, QPS_RTS, psn);
		break;
	case 15:
		queue_arm(s[3] & 15);
		break;
	default:
		bed_qp_state(i, QPS_RTS, psn);
		break;
	}
}

static void
mr_step(const uint8_t *s)
{
	static const uint8_t rights[4] = { 15, ACCESS_REMOTE_READ, ACCESS_REMOTE_WRITE,
		ACCESS_LOCAL_WRITE };
	uint32_t i = s[1] & 7;

	bed_mr_remove(i);
	if ((s[2] & 3) == 0)
		return;
	bed_mr_add(i, (s[2] & 3) == 1 ? fb.mr[i].access : rights[s[3] & 3],
		fb.mr[i].va + ((s[2] & 4) != 0 && i != 2 ? 8u : 0));
}

static void
step(const uint8_t *s)
{
	static const ns_t units[4] = { 1, TIME_NS_PER_US, TIME_NS_PER_MS, TIME_NS_PER_S };

	if (s[0] < 0xa0) {
		packet_step(s);
		return;
	}
	if (s[0] >= 0xe0 && s[0] < 0xf0) {
		packet_noise(s);
		return;
	}
	if (fb.sent_n != 0) /* what is queued comes first */
		turn();
	if (s[0] < 0xb0)
		post(s[1] & 7, 1 + s[2] % RQ_WRS, s[3]);
	else if (s[0] < 0xc0)
		qp_step(s);
	else if (s[0] < 0xd0)
		mr_step(s);
	else if (s[0] < 0xe0)
		fb.now += units[s[1] & 3] * s[2];
	else
		for (uint32_t n = (fb.drain = s[1] & 15, s[2] & 7); n != 0; n--)
			turn();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	bed_start();
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t steps;

	if (size < 2 + STEP)
		return 0;
	bed_start();
	bed_open(data[0], data[1]);
	steps = (uint32_t)((size - 2) / STEP);
	for (uint32_t i = 0; i < steps && i < STEPS_MAX; i++)
		step(data + 2 + (size_t)i * STEP);
	if (fb.sent_n != 0)
		turn();
	bed_close();
	return 0;
}
