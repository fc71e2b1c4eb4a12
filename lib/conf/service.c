/* SPDX-License-Identifier: BSD-3-Clause */
/* What a queue pair's transport service has no use for, and therefore neither takes nor shows. */
#include "service.h"
#include "errors.h"

#include "verbs_wr.h"

#define ON(type) (1u << QPT_##type)
#define XRC      (ON(XRC_SEND) | ON(XRC_RECV))

/* Keys that not every type of queue pairs has (UC-21, UD-24). */
static const struct {
	const char *key;
	uint64_t bit;
	uint32_t on;
} keys[] = {
	{ "timeout", QP_ATTR_TIMEOUT, ON(RC) | XRC },
	{ "retry_cnt", QP_ATTR_RETRY_CNT, ON(RC) | ON(XRC_SEND) },
	{ "rnr_retry", QP_ATTR_RNR_RETRY, ON(RC) | ON(XRC_SEND) },
	{ "min_rnr_timer", QP_ATTR_MIN_RNR_TIMER, ON(RC) | ON(XRC_RECV) },
	{ "max_rd_atomic", QP_ATTR_MAX_QP_RD_ATOMIC, ON(RC) | ON(XRC_SEND) },
	{ "max_dest_rd_atomic", QP_ATTR_MAX_DEST_RD_ATOMIC, ON(RC) | ON(XRC_RECV) },
	{ "ah_attr", QP_ATTR_AV, ON(RC) | ON(UC) | XRC },
	{ "dest_qp_num", QP_ATTR_DEST_QPN, ON(RC) | ON(UC) | XRC },
	{ "rq_psn", QP_ATTR_RQ_PSN, ON(RC) | ON(UC) | XRC },
	{ "qp_access_flags", QP_ATTR_ACCESS_FLAGS, ON(RC) | ON(UC) | XRC },
	{ "alt_ah_attr", QP_ATTR_ALT_PATH, ON(RC) | ON(UC) | XRC },
	{ "path_mig_state", QP_ATTR_PATH_MIG_STATE, ON(RC) | ON(UC) | XRC },
	{ "qkey", QP_ATTR_QKEY, ON(UD) },
	{ "send_cq", CONF_QP_SEND_CQ, ~ON(XRC_RECV) },
	{ "recv_cq", CONF_QP_RECV_CQ, ~ON(XRC_RECV) },
	{ "srq", CONF_QP_SRQ, ~XRC },
	{ "recv_feed", CONF_QP_RECV_FEED, ~XRC },
	{ "send_feed", CONF_QP_SEND_FEED, ~ON(XRC_RECV) },
	{ "xrcd", CONF_QP_XRCD, ON(XRC_RECV) },
};

bool
conf_has_key(uint32_t qp_type, uint64_t bit)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].bit == bit)
			return (keys[i].on >> qp_type & 1) != 0;
	return true;
}

void
conf_check_objects(const struct conf_qp *qp, struct conf_errors *err)
{
	static const struct {
		const char *key;
		uint64_t bit;
		uint32_t on;
		const char *what;
	} needed[] = {
		{ "send_cq", CONF_QP_SEND_CQ, ~ON(XRC_RECV), "the name of a completion queue" },
		{ "recv_cq", CONF_QP_RECV_CQ, ~XRC, "the name of a completion queue" },
		{ "xrcd", CONF_QP_XRCD, ON(XRC_RECV), "the name of an XRC domain" },
	};

	for (size_t i = 0; i < ARRAY_LEN(needed); i++)
		if ((qp->given & needed[i].bit) == 0 && (needed[i].on >> qp->qp_type & 1) != 0)
			conf_fault(err, needed[i].key, "is missing: a %s QP requires %s",
				verbs_qp_type_name(qp->qp_type), needed[i].what);
}

static void
check_send_feed(const struct conf_qp *qp, const char *type, struct conf_errors *err)
{
	const struct conf_send_feed *f = &qp->send_feed;
	const bool named = (f->given & CONF_FEED_SRQN) != 0;

	if (qp->qp_type == QPT_UD)
		conf_fault(err, "send_feed", "a UD QP has none: each request has its own ah_attr");
	else if (!verbs_wr_is_on(f->opcode, qp->qp_type))
		conf_fault(err, "send_feed", "a %s QP has no %s", type,
			verbs_wr_opcode_name(f->opcode));
	else if (qp->qp_type == QPT_XRC_SEND && !named)
		conf_fault(err, "send_feed",
			"xrc_remote_srqn is missing: an XRC_SEND QP requires the number of the "
			"peer's SRQ");
	else if (qp->qp_type != QPT_XRC_SEND && named)
		conf_fault(err, "send_feed", "xrc_remote_srqn is for an XRC_SEND QP alone");
}

void
conf_check_service(const struct conf_qp *qp, struct conf_errors *err)
{
	const char *type = verbs_qp_type_name(qp->qp_type);

	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if ((qp->given & keys[i].bit) != 0 && !conf_has_key(qp->qp_type, keys[i].bit))
			conf_fault(err, keys[i].key, "a %s QP has no such attribute", type);
	}
	if ((qp->given & CONF_QP_SEND_FEED) != 0 && !conf_errors_within(err, "send_feed"))
		check_send_feed(qp, type, err);
}

void
conf_hide_service(const void *obj, json_t *out)
{
	const struct conf_qp *qp = obj;

	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!conf_has_key(qp->qp_type, keys[i].bit))
			json_object_del(out, keys[i].key);
}
