/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"
#include "conf_mcast.h"
#include "errors.h"
#include "service.h"

#include <inttypes.h>
#include <string.h>

/* Relations inside one object, for the file and for RPC alike. */

void
conf_check_control(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_control *c = obj;

	if ((c->given & CONF_CONTROL_CLIENT_SOCKET) != 0 &&
		strcmp(c->client_socket, c->socket) == 0 && !conf_errors_within(err, "socket"))
		conf_fault(err, "client_socket", "must be another path than socket, \"%s\"",
			c->socket);
}

void
conf_check_lcores(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_lcores *l = obj;
	const bool control = !conf_errors_within(err, "control");

	for (uint32_t i = 0; i < l->n_workers; i++) {
		uint32_t mark = err->at_len;

		if (l->workers[i] == UINT32_MAX)
			continue; /* the element had a fault */
		conf_enter(err, "workers");
		conf_enter_index(err, i);
		if (control && l->workers[i] == l->control)
			conf_fault(err, NULL,
				"lcore %u is the control lcore: a worker needs one of "
				"its own",
				l->workers[i]);
		for (uint32_t k = 0; k < i; k++) {
			if (l->workers[k] == l->workers[i]) {
				conf_fault(err, NULL,
					"lcore %u is worker %u already: each lcore may "
					"be listed once",
					l->workers[i], k);
				break;
			}
		}
		conf_leave(err, mark);
	}
}

void
conf_check_neighbor(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_neighbor *n = obj;

	if (n->given != CONF_NEIGHBOR_IPV4 && n->given != CONF_NEIGHBOR_IPV6)
		conf_fault(err, NULL, "must have exactly one of ipv4 and ipv6, not %s",
			n->given == 0 ? "none" : "both");
}

void
conf_check_port(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_port *p = obj;

	if ((p->given & (CONF_PORT_IPV4 | CONF_PORT_IPV6)) == 0)
		conf_fault(err, NULL, "has no address: ipv4, ipv6 or both are required");
	if ((p->given & CONF_PORT_BOTTLENECK) != 0 && p->impair.bottleneck.rate != 0)
		conf_fault(err, "bottleneck", "stands in impair, too: it is one or the other");
}

void
conf_check_mr(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_mr *mr = obj;
	const char *fault = verbs_region_fault(mr->access);

	/* The byte behind it has an address, too. */
	if (mr->addr > UINT64_MAX - mr->length)
		conf_fault(err, "addr",
			"0x%" PRIx64 " plus length %" PRIu64 " wraps around: at most "
			"0x%" PRIx64 " for this length",
			mr->addr, mr->length, UINT64_MAX - mr->length);
	if (fault != NULL)
		conf_fault(err, "access", "%s", fault);
}

/* Keys of an SRQ of type XRC (XRC-09). */
static const struct {
	const char *key;
	uint64_t bit;
	const char *what; /* NULL: it need not be given */
} xrc_keys[] = {
	{ "xrcd", CONF_SRQ_XRCD, "the name of an XRC domain" },
	{ "cq", CONF_SRQ_CQ, "the name of a completion queue" },
	{ "srq_num", CONF_SRQ_NUM, NULL },
};

void
conf_check_srq(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct conf_srq *srq = obj;

	if (srq->srq_limit > srq->max_wr && !conf_errors_within(err, "max_wr"))
		conf_fault(err, "srq_limit", "must be a number from 0 to max_wr (%u), not %u",
			srq->max_wr, srq->srq_limit);
	if (conf_errors_within(err, "srq_type"))
		return;
	for (size_t i = 0; i < ARRAY_LEN(xrc_keys); i++) {
		const bool given = (srq->given & xrc_keys[i].bit) != 0;

		if (srq->srq_type != CONF_SRQ_XRC && given)
			conf_fault(err, xrc_keys[i].key, "goes with srq_type \"XRC\" alone");
		if (srq->srq_type == CONF_SRQ_XRC && !given && xrc_keys[i].what != NULL)
			conf_fault(err, xrc_keys[i].key,
				"is missing: an SRQ of type XRC requires %s", xrc_keys[i].what);
	}
}

void
conf_hide_srq(const void *obj, json_t *out)
{
	const struct conf_srq *srq = obj;

	if (srq->srq_type != CONF_SRQ_XRC)
		json_object_del(out, "srq_type");
}

void
conf_check_send_feed(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	struct conf_send_feed *f = obj;

	if (verbs_wr_is_word(f->opcode)) {
		if ((f->given & CONF_FEED_SIZE) == 0)
			f->size = VERBS_ATOMIC_LEN;
		if (f->size != VERBS_ATOMIC_LEN && !conf_errors_within(err, "size"))
			conf_fault(err, "size", "an ATOMIC has 8 bytes, not %u", f->size);
		if (f->remote_addr % 8 != 0 || f->stride % 8 != 0)
			conf_fault(err, f->remote_addr % 8 != 0 ? "remote_addr" : "stride",
				"must be a multiple of 8 for an ATOMIC");
	}
	if (verbs_wr_has(f->opcode, WR_HAS_REMOTE) && (f->given & CONF_FEED_RKEY) == 0)
		conf_fault(err, "rkey", "is missing: %s requires it",
			conf_name_of(conf_names_wr_opcode, f->opcode));
	if (verbs_wr_has(f->opcode, WR_HAS_REMOTE) && (f->given & CONF_FEED_REMOTE_ADDR) == 0)
		conf_fault(err, "remote_addr", "is missing: %s requires it",
			conf_name_of(conf_names_wr_opcode, f->opcode));
}

/* An attribute that a transition requires and that has no default. */
struct needed {
	const char *key;
	uint64_t bit;
	enum qp_state from; /* the first state that has needed it */
	const char *what;
};

static const struct needed needed_rows[] = {
	{ "port", QP_ATTR_PORT, QPS_INIT, "the name of a port" },
	{ "qkey", QP_ATTR_QKEY, QPS_INIT, "a number from 0 to 4294967295 (0xffffffff)" },
	{ "ah_attr", QP_ATTR_AV, QPS_RTR, "an object with dest_ip" },
	{ "dest_qp_num", QP_ATTR_DEST_QPN, QPS_RTR, "the peer's QP number" },
	{ "rq_psn", QP_ATTR_RQ_PSN, QPS_RTR, "a number from 0 to 16777215 (0xffffff)" },
	{ "sq_psn", QP_ATTR_SQ_PSN, QPS_RTS, "a number from 0 to 16777215 (0xffffff)" },
};

uint32_t
conf_qp_reaches(const struct conf_qp *qp)
{
	uint32_t to = QPS_RTS;

	for (size_t i = 0; i < ARRAY_LEN(needed_rows); i++) {
		const struct needed *n = &needed_rows[i];

		if (n->from <= to && (qp->given & n->bit) == 0 && conf_has_key(qp->qp_type, n->bit))
			to = n->from - 1;
	}
	return to;
}

static void
check_required(const struct conf_qp *qp, struct conf_errors *err)
{
	for (size_t i = 0; i < ARRAY_LEN(needed_rows); i++) {
		const struct needed *n = &needed_rows[i];

		if (qp->qp_state >= n->from && (qp->given & n->bit) == 0 &&
			conf_has_key(qp->qp_type, n->bit))
			conf_fault(err, n->key, "is missing: qp_state %s requires %s",
				conf_name_of(conf_names_qp_state, qp->qp_state), n->what);
	}
}

/* Numbers of the QPs that a template makes. */
static void
check_count(const struct conf_qp *qp, struct conf_errors *err)
{
	const uint32_t more = qp->count - 1;
	const struct conf_send_feed *f = &qp->send_feed;

	if ((qp->given & CONF_QP_QP_NUM) != 0 && qp->qp_num + more > CONF_QPN_MAX)
		conf_fault(err, "count", "%u QPs from qp_num %u go beyond %u (0x%x): at most %u",
			qp->count, qp->qp_num, CONF_QPN_MAX, CONF_QPN_MAX,
			CONF_QPN_MAX - qp->qp_num + 1);
	if ((qp->given & QP_ATTR_DEST_QPN) != 0 && qp->dest_qp_num + more > CONF_QPN_MAX)
		conf_fault(err, "count",
			"%u QPs from dest_qp_num %u go beyond %u (0x%x): at most %u", qp->count,
			qp->dest_qp_num, CONF_QPN_MAX, CONF_QPN_MAX,
			CONF_QPN_MAX - qp->dest_qp_num + 1);
	/* stride and count are limited: the product cannot overflow. */
	if ((f->given & CONF_FEED_REMOTE_ADDR) != 0 &&
		f->remote_addr > UINT64_MAX - (f->stride * more + f->size))
		conf_fault(err, "send_feed", "remote_addr plus %u strides and size wraps around",
			more);
}

static void
check_feeds(const struct conf_qp *qp, struct conf_errors *err)
{
	const bool recv = (qp->given & CONF_QP_RECV_FEED) != 0;
	const bool send = (qp->given & CONF_QP_SEND_FEED) != 0;

	if (recv && (qp->given & CONF_QP_SRQ) != 0)
		conf_fault(err, "recv_feed",
			"a QP with an srq has no receive queue of its own to "
			"fill: leave out one of the two");
	if (send && qp->send_feed.depth > qp->cap.max_send_wr && !conf_errors_within(err, "cap") &&
		!conf_errors_within(err, "send_feed"))
		conf_warn(err, "send_feed",
			"only %u of depth %u can be posted at a time: "
			"cap.max_send_wr",
			qp->cap.max_send_wr, qp->send_feed.depth);
}

/* What says something about the alternate path goes with its address. */
static void
check_alternate(const struct conf_qp *qp, struct conf_errors *err)
{
	static const struct {
		const char *key;
		uint64_t bit;
	} rows[] = { { "alt_port", CONF_QP_ALT_PORT }, { "alt_timeout", CONF_QP_ALT_TIMEOUT },
		{ "alt_pkey", CONF_QP_ALT_PKEY } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		if ((qp->given & rows[i].bit) != 0 && (qp->given & QP_ATTR_ALT_PATH) == 0)
			conf_fault(err, rows[i].key,
				"goes with alt_ah_attr, which is not there: give both");
	}
	if ((qp->given & CONF_QP_ALT_PKEY) != 0 && qp->alt_pkey == 0x8000)
		conf_fault(
			err, "alt_pkey", "0x8000 is no valid key: its low 15 bits must not be 0");
}

/* A knob under which the responder is not one. */
void
conf_check_psn_check(const struct conf_knobs *k, struct conf_errors *err)
{
	if (k->resp_psn_check == KNOB_resp_psn_check_resync)
		conf_warn(err, "knobs",
			"resp.psn_check \"resync\" is for benchmarks: requests are taken in any "
			"order, losses and duplicates go unnoticed");
}

/* What a QP begins with. */
static void
check_migration(const struct conf_qp *qp, struct conf_errors *err)
{
	if (qp->path_mig_state != MIG_REARM)
		return;
	if ((qp->given & QP_ATTR_ALT_PATH) == 0)
		conf_fault(err, "path_mig_state", "REARM requires alt_ah_attr");
	if (qp->qp_state != QPS_RTS && !conf_errors_within(err, "qp_state"))
		conf_fault(err, "path_mig_state", "REARM is for a QP in RTS, and qp_state is %s",
			conf_name_of(conf_names_qp_state, qp->qp_state));
}

/* Groups are for datagrams: a connection has one peer. */
static void
check_unicast(const struct conf_ah *ah, const char *key, struct conf_errors *err)
{
	const uint32_t mark = conf_enter(err, key);

	if (conf_ip_is_group(&ah->dest_ip))
		conf_fault(err, "dest_ip", "must be a unicast address");
	conf_leave(err, mark);
}

/* Of a shared queue srq_limit tells, and a feed is never low. */
static void
check_limit(const struct conf_qp *qp, struct conf_errors *err)
{
	if (qp->rq_limit == 0)
		return;
	if ((qp->given & (CONF_QP_SRQ | CONF_QP_XRCD | CONF_QP_RECV_FEED)) != 0 ||
		qp->qp_type == QPT_XRC_SEND)
		conf_fault(err, "rq_limit", "goes with a receive queue that the QP has of its own");
	else if (qp->rq_limit > qp->cap.max_recv_wr && !conf_errors_within(err, "cap"))
		conf_fault(err, "rq_limit", "must be a number from 0 to max_recv_wr (%u), not %u",
			qp->cap.max_recv_wr, qp->rq_limit);
}

void
conf_check_qp(void *obj, enum conf_mode mode, struct conf_errors *err)
{
	const struct conf_qp *qp = obj;

	check_alternate(qp, err);
	if ((qp->given & QP_ATTR_AV) != 0)
		check_unicast(&qp->ah_attr, "ah_attr", err);
	if ((qp->given & QP_ATTR_ALT_PATH) != 0)
		check_unicast(&qp->alt_ah_attr, "alt_ah_attr", err);
	if (qp->pkey == 0x8000) /* 0 is out of the row's range */
		conf_fault(err, "pkey", "0x8000 is no valid key: its low 15 bits must not be 0");
	if ((qp->given & QP_ATTR_TIMEOUT) != 0 && qp->timeout == 0)
		conf_warn(err, "timeout",
			"0 means no transport timer: a lost packet is never sent "
			"again (14 is 67 ms)");
	if ((qp->given & QP_ATTR_MIN_RNR_TIMER) != 0 && qp->min_rnr_timer == 0)
		conf_warn(err, "min_rnr_timer",
			"0 means 655.36 ms, the longest of all (12 is 0.64 ms)");
	if (mode == CONF_MODIFY)
		return;
	check_limit(qp, err);
	check_required(qp, err);
	if (qp->qp_type != 0) { /* it had a fault: nothing is known of its attributes */
		conf_check_objects(qp, err);
		conf_check_service(qp, err);
	}
	check_migration(qp, err);
	if ((qp->given & CONF_QP_KNOBS) != 0 && (qp->knobs.given & KNOB_GIVEN(resp_psn_check)) != 0)
		conf_check_psn_check(&qp->knobs, err);
	check_count(qp, err);
	check_feeds(qp, err);
}
