/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What else the control lcore does for clients: the end of one in the middle of all that its QPs
 * do, the rings of compact QPs, knobs.
 */
#include "../clib/qp_new.h"
#include "cc_delay.h"
#include "fuzz_worker.h"
#include "qp_cc.h"
#include "qp_parts.h"

enum { ANSWER_TURNS = 400 };

/* ---- the end of a client --------------------------------------------------------------------- */

static bool
is_clients(const struct qp_bed *q)
{
	return q->qp != NULL && (q->plan->how & PLAN_OWN) == 0;
}

/** A message to a worker, of which the answer comes later. */
static void
post(uint32_t worker, struct mbox_msg *m, uint32_t *asked)
{
	m->cookie = ++fw.cookie;
	FUZZ_CHECK(mbox_send_down(&fw.w[worker].mbox, m) == 0);
	asked[worker]++;
}

static void
answers(uint32_t *asked)
{
	struct mbox_msg done;

	for (int n = 0; n < ANSWER_TURNS; n++) {
		uint32_t left = 0;

		bed_turn();
		for (uint32_t i = 0; i < WORKERS; i++) {
			while (asked[i] != 0 && mbox_recv_done(&fw.w[i].mbox, &done, 1) == 1) {
				FUZZ_CHECK(done.done.rc == 0);
				asked[i]--;
			}
			left += asked[i];
		}
		if (left == 0)
			return;
	}
	FUZZ_CHECK(!"workers answer");
}

/** To ERR and away, one behind the other, as app_reap() does it. */
static void
end_qps(const uint8_t *s)
{
	static struct qp_attr attr[QPS];
	uint32_t asked[WORKERS] = { 0 };

	for (uint32_t i = 0; i < QPS; i++) {
		struct qp_bed *q = &fw.q[i];
		struct mbox_msg m = { .type = MBOX_QP_MODIFY,
			.modify = { q->qp, &attr[i], QP_ATTR_STATE } };

		if (!is_clients(q))
			continue;
		attr[i] = bed_attributes(i, QPS_ERR);
		post(q->worker, &m, asked);
		if ((s[3] >> i % 8 & 1) != 0)
			bed_turn();
		m = (struct mbox_msg){ .type = MBOX_QP_DETACH, .qp = { q->qp, .drop = true } };
		post(q->worker, &m, asked);
	}
	answers(asked);
}

static void
free_qps(void)
{
	bed_round_trip();
	for (uint32_t i = 0; i < QPS; i++) {
		if (!is_clients(&fw.q[i]))
			continue;
		for (uint32_t k = 0; k < WINDOWS; k++)
			if (fw.mw[k] != NULL)
				mem_window_leave(fw.mw[k], bed_qpn(i));
		qp_free(fw.q[i].qp);
		fw.q[i].qp = NULL;
	}
}

static void
bells(enum mbox_type type)
{
	for (uint32_t w = 0; w < WORKERS; w++) {
		struct mbox_msg m = { .type = type, .client.client = &fw.w[w].client };

		FUZZ_CHECK(bed_tell(w, &m) == 0);
	}
}

static void
memory(bool on)
{
	for (uint32_t i = 0; i < WINDOWS && !on; i++)
		bed_window(i, false);
	for (uint32_t i = 0; i < REGIONS; i++) {
		bed_region(i, on);
		FUZZ_CHECK((fw.mr[i] != NULL) == on);
	}
	for (uint32_t i = 0; i < WINDOWS && on; i++)
		bed_window(i, true);
}

void
bed_death(const uint8_t *s)
{
	end_qps(s);
	free_qps();
	bells(MBOX_CLIENT_DETACH);
	for (uint32_t i = 1; i < SRQS; i++)
		bed_srq(i, false);
	memory(false);
	for (uint32_t n = s[4] % 8; n != 0; n--)
		bed_turn();
	for (uint32_t w = 0; w < WORKERS; w++)
		bed_bells(w);
	bells(MBOX_CLIENT_ATTACH);
	bed_srqs();
	memory(true);
	for (uint32_t i = 0; i < QPS; i++) {
		if (fw.q[i].qp != NULL)
			continue;
		bed_attach(i);
		for (uint8_t to = QPS_INIT; to <= QPS_RTS; to++)
			bed_state(i, to);
	}
}

/* ---- compact queue pairs --------------------------------------------------------------------- */

void
bed_work(uint32_t i)
{
	struct qp_bed *q = &fw.q[i];
	struct mbox_msg m = { .type = MBOX_QP_WORK };
	struct qp_work *work;

	if (q->qp == NULL || (q->plan->how & PLAN_COMPACT) == 0 || q->qp->work != NULL)
		return;
	if (fw.moving.q == q)
		bed_moved();
	work = qp_new_work(q->qp);
	FUZZ_CHECK(work != NULL);
	ring_attach(&q->rq.ring, work->rq.sh, work->rq.mask + 1, work->rq.stride, false);
	ring_attach(&q->sq.ring, work->sq.sh, work->sq.mask + 1, work->sq.stride, false);
	m.work.qp = q->qp;
	m.work.work = work;
	FUZZ_CHECK(bed_tell(q->worker, &m) == 0);
}

/* ---- knobs ----------------------------------------------------------------------------------- */

/** A preset, or delay, with parameters at the ends of what they may be. */
static void
rate(struct qp *qp, uint8_t how)
{
	const bool least = (how & 8) != 0, most = (how & 16) != 0;
	struct cc_params p;

	if (how % 4 == CC_PRESETS)
		cc_delay_preset(&p);
	else
		cc_preset((enum cc_preset)(how % 4), &p);
	if (how % 4 == CC_PRESETS && (least || most)) {
		p.delay.start = p.delay.max_window = most ? UINT16_MAX : 1;
		p.delay.min_window = p.delay.fs_min = p.delay.ai = most ? 1000 : 1;
		p.delay.max_mdf = most ? 99 : 1;
		p.delay.beta = most ? 100 : 1;
		p.delay.target = most ? 1000000 : 1;
		p.delay.timeouts = 1;
	} else if (least || most) {
		p.rpg_time_reset = p.dce_tcp_rtt = most ? 131071 : 1;
		p.rpg_byte_reset = most ? 0 : 1000;
		p.rpg_threshold = most ? 31 : 1;
		p.rpg_gd = most ? 11 : 10;
		p.rpg_min_dec_fac = most ? 100 : 0;
		p.dce_tcp_g = most ? 1023 : 0;
		p.rpg_max_rate = most ? 1 : 0;
	}
	p.line_rate = (how & 32) != 0 ? 1 : (how & 64) != 0 ? 400000 : 10000;
	qp_cc_start(qp, &p);
}

void
bed_knobs_set(struct qp *qp, uint32_t i)
{
	const struct knobs *k = &fw.q[i].knobs;

	qp->resp.knobs = (uint16_t)(k->resp | (qp->resp.knobs & RESP_KNOB_RQ_LIMIT));
	qp->req.knobs = k->req;
	qp->flags |= k->flags;
	qp->window = qp->req.window = k->window;
	qp->req.ackreq_interval = k->ackreq_interval;
	if ((qp->flags & QPF_CC_RATE) != 0)
		rate(qp, k->cc);
}

void
bed_knobs(uint32_t i, const uint8_t *s)
{
	static const uint32_t windows[] = { 1, 2, 16, 0x7fffff };
	static const uint8_t intervals[] = { 1, 2, 16, 255 };
	const uint32_t internal = RESP_KNOB_RQ_LIMIT;
	struct knobs k = { .on = true,
		.resp = (uint16_t)((s[3] | (s[4] & 15) << 8) & ~internal),
		.req = (uint16_t)(s[5] | (s[6] & 3) << 8 | (s[6] & 0x80) << 3),
		.window = windows[s[6] >> 2 & 3],
		.ackreq_interval = intervals[s[6] >> 4 & 3],
		.timeout = (s[6] & 0x40) != 0 ? 0 : 8,
		.cc = s[7] };

	if ((k.req & REQ_KNOB_READ_KEEP) != 0)
		k.req |= REQ_KNOB_READ_FILL;
	k.flags |= (s[4] & 0x10) != 0 ? QPF_EVENT_WITH_CQE | QPF_SIG_ALL : 0;
	k.flags |= (s[4] & 0x20) != 0 ? QPF_CC_WINDOW : 0;
	k.flags |= (s[4] & 0x40) != 0 ? QPF_CNP | QPF_CNP_CONTROL : 0;
	k.flags |= (s[4] & 0x80) != 0 ? QPF_CHECK_SRC_MAC : 0;
	bed_detach(i);
	fw.q[i].knobs = k;
	bed_attach(i);
	for (uint8_t to = QPS_INIT; to <= QPS_RTS; to++)
		bed_state(i, to);
}
