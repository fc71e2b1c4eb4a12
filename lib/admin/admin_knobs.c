/* SPDX-License-Identifier: BSD-3-Clause */
/* What the knobs and the configuration mean for the data path of a QP: its worker is told so. */
#include <rte_ethdev.h>

#include "ask.h"
#include "admin.h"
#include "cc_delay.h"
#include "requester.h"
#include "responder.h"

static uint16_t
responder_knobs(const struct conf_knobs *k)
{
	uint16_t v = 0;

	if (k->rx_len_pad_impact == KNOB_rx_len_pad_impact_drop)
		v |= RESP_KNOB_LEN_PAD_DROP;
	if (k->profile == CONF_PROFILE_ERNIC)
		v |= RESP_KNOB_RNR_FIRST;
	if (k->resp_early_retry == KNOB_resp_early_retry_drop)
		v |= RESP_KNOB_EARLY_DROP;
	if (k->resp_half_window == KNOB_resp_half_window_duplicate)
		v |= RESP_KNOB_HALF_DUP;
	if (k->resp_class_j_ack == KNOB_resp_class_j_ack_ack)
		v |= RESP_KNOB_J_ACK;
	if (k->resp_imm_access_status == KNOB_resp_imm_access_status_loc_access)
		v |= RESP_KNOB_IMM_LOC;
	if (k->resp_psn_check == KNOB_resp_psn_check_resync)
		v |= RESP_KNOB_RESYNC;
	if (k->resp_gap == KNOB_resp_gap_keep)
		v |= RESP_KNOB_KEEP;
	if (k->resp_credits != 0)
		v |= RESP_KNOB_CREDITS;
	if (k->ae_with_cqe != 0)
		v |= RESP_KNOB_EVENT_WITH_CQE;
	if (k->ops_placement != 0)
		v |= RESP_KNOB_PLACEMENT;
	return v;
}

static uint16_t
requester_knobs(const struct conf_knobs *k)
{
	uint16_t v = 0;

	if (k->req_bad_aeth == KNOB_req_bad_aeth_drop)
		v |= REQ_KNOB_BAD_AETH_DROP;
	if (k->req_ack_for_read == KNOB_req_ack_for_read_fatal)
		v |= REQ_KNOB_ACK_FOR_READ_FATAL;
	if (k->req_read_gap != KNOB_req_read_gap_restart)
		v |= REQ_KNOB_READ_FILL;
	if (k->req_read_gap == KNOB_req_read_gap_keep)
		v |= REQ_KNOB_READ_KEEP;
	if (k->req_gap == KNOB_req_gap_patch)
		v |= REQ_KNOB_PATCH;
	if (k->req_probe == KNOB_req_probe_always)
		v |= REQ_KNOB_PROBE;
	v |= (uint16_t)(k->req_reorder << REQ_KNOB_REORDER_SHIFT);
	if (k->req_credits != 0)
		v |= REQ_KNOB_CREDITS;
	if (k->rx_len_pad_impact == KNOB_rx_len_pad_impact_drop)
		v |= REQ_KNOB_LEN_PAD_DROP;
	if (k->ops_placement != 0)
		v |= REQ_KNOB_PLACEMENT;
	return v;
}

static uint32_t
min_u32(uint32_t a, uint32_t b)
{
	return a < b ? a : b;
}

/* Window and pace of the requester; the window is that before any CNP. */
static void
set_requester(struct qp_settings *s, const struct conf_knobs *k)
{
	s->window = k->req_max_outstanding_psn;
	if (k->cc_algo == KNOB_cc_algo_ernic_window)
		s->window = min_u32(s->window, k->cc_window);
	s->min_timeout = (uint8_t)k->tmr_min_timeout;
	s->req_knobs = requester_knobs(k);
	s->ackreq_interval = (uint8_t)min_u32(k->req_ackreq_interval, UINT8_MAX);
}

/* What a send_feed posts, again and again. */
static void
set_send_feed(struct qp_settings *s, const struct admin_qp *rec)
{
	const struct conf_send_feed *conf = &rec->shared->conf.send_feed;

	s->send_feed.count = conf->count;
	s->send_feed.remote_addr = conf->remote_addr + rec->nth * conf->stride;
	s->send_feed.rkey = conf->rkey;
	s->send_feed.depth = min_u32(conf->depth, qp_limits(rec->qp).max_send_wr);
	s->send_feed.xrc_srqn = conf->xrc_remote_srqn;
	s->send_feed.opcode = (uint8_t)conf->opcode;
	s->send_feed.sge = (struct ring_sge){ .addr = rec->shared->send_region->va,
		.length = conf->size,
		.lkey = rec->shared->send_region->key };
}

static void
set_recv_feed(struct qp_settings *s, const struct admin_qp *rec)
{
	s->recv_feed.buffers = rec->shared->conf.recv_feed.buffers;
	s->recv_feed.size = rec->shared->conf.recv_feed.size;
	s->recv_feed.lkey = rec->feed->key;
	s->recv_feed.va = rec->feed->va;
}

static uint32_t
qp_flags(const struct admin_qp *rec)
{
	const struct conf_knobs *k = &rec->shared->knobs;
	uint32_t v = 0;

	if (k->rx_check_src_mac != 0)
		v |= QPF_CHECK_SRC_MAC;
	if (k->rx_ip_df == KNOB_rx_ip_df_require)
		v |= QPF_REQUIRE_DF;
	if (k->cc_cnp != 0)
		v |= QPF_CNP;
	if (k->cc_cnp_path == KNOB_cc_cnp_path_control)
		v |= QPF_CNP_CONTROL;
	if (k->ae_with_cqe != 0)
		v |= QPF_EVENT_WITH_CQE;
	if (k->cc_algo == KNOB_cc_algo_ernic_window)
		v |= QPF_CC_WINDOW;
	if (admin_knobs_rate(k))
		v |= QPF_CC_RATE;
	if (rec->shared->conf.sq_sig_all)
		v |= QPF_SIG_ALL;
	if (qp_limits(rec->qp).send_feed)
		v |= QPF_SEND_FEED;
	if (rec->trace)
		v |= QPF_TRACE;
	if (rec->feed != NULL)
		v |= QPF_RECV_FEED;
	if (rec->srq != NULL || rec->xrcd != NULL)
		v |= QPF_SRQ;
	return v;
}

bool
admin_knobs_rate(const struct conf_knobs *k)
{
	return k->cc_algo == KNOB_cc_algo_dcqcn || k->cc_algo == KNOB_cc_algo_rate ||
	       k->cc_algo == KNOB_cc_algo_delay;
}

bool
admin_knobs_ect(const struct conf_knobs *k)
{
	return k->cc_algo != KNOB_cc_algo_none && k->cc_algo != KNOB_cc_algo_delay;
}

static void
set_delay(struct cc_params *p, const struct conf_knobs *k)
{
	cc_delay_preset(p);
#define CC_DELAY_PARAM(name, value) p->delay.name = k->cc_delay_##name;
#include "tables/cc_delay_params.def"
#undef CC_DELAY_PARAM
}

/** CC-09: the preset, and over it what was given by itself. */
static void
set_dcqcn(struct cc_params *p, const struct conf_knobs *k)
{
	cc_preset((enum cc_preset)k->cc_preset, p);
#define CC_PARAM(name, mlx5, paper, hpcc)            \
	if ((k->given & KNOB_GIVEN(cc_##name)) != 0) \
		p->name = k->cc_##name;
#include "tables/cc_params.def"
#undef CC_PARAM
}

/** @param port DPDK port id. */
static void
set_rate(struct qp_settings *s, const struct conf_knobs *k, uint16_t port)
{
	struct rte_eth_link link = { 0 };

	if (k->cc_algo == KNOB_cc_algo_delay)
		set_delay(&s->cc, k);
	else
		set_dcqcn(&s->cc, k);
	if (rte_eth_link_get_nowait(port, &link) == 0 && link.link_speed != 0 &&
		link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		s->cc.line_rate = link.link_speed;
}

struct wire_cnp
admin_knobs_cnp(const struct admin_qp *rec)
{
	const struct conf_knobs *k = &rec->shared->knobs;

	return (struct wire_cnp){ .tos = (uint8_t)(k->cc_cnp_dscp << 2),
		.prio = (uint8_t)k->cc_cnp_802p_prio };
}

void
admin_knobs_settings(struct admin *adm, const struct admin_qp *rec, struct qp_settings *s)
{
	*s = (struct qp_settings){ .worker = rec->worker,
		.port = (uint8_t)adm->env->w.ports[rec->port].id,
		.flags = qp_flags(rec),
		.resp_knobs = responder_knobs(&rec->shared->knobs),
		.cnp_interval = rec->shared->knobs.cc_cnp_interval * TIME_NS_PER_US,
		.cnp = admin_knobs_cnp(rec) };
	set_requester(s, &rec->shared->knobs);
	if ((s->flags & QPF_CC_RATE) != 0)
		set_rate(s, &rec->shared->knobs, s->port);
	if (qp_limits(rec->qp).send_feed)
		set_send_feed(s, rec);
	if (rec->feed != NULL)
		set_recv_feed(s, rec);
}
