/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of a transition: their keys in JSON, their values out of a decoded object. */
#include "admin.h"

const char *
admin_attr_key(uint32_t one_bit)
{
	switch (one_bit) {
	case QP_ATTR_STATE:
		return "qp_state";
	case QP_ATTR_CUR_STATE:
		return "cur_qp_state";
	case QP_ATTR_EN_SQD_ASYNC_NOTIFY:
		return "en_sqd_async_notify";
	case QP_ATTR_ACCESS_FLAGS:
		return "qp_access_flags";
	case QP_ATTR_PKEY_INDEX:
		return "pkey";
	case QP_ATTR_PORT:
		return "port";
	case QP_ATTR_QKEY:
		return "qkey";
	case QP_ATTR_AV:
		return "ah_attr";
	case QP_ATTR_PATH_MTU:
		return "path_mtu";
	case QP_ATTR_TIMEOUT:
		return "timeout";
	case QP_ATTR_RETRY_CNT:
		return "retry_cnt";
	case QP_ATTR_RNR_RETRY:
		return "rnr_retry";
	case QP_ATTR_RQ_PSN:
		return "rq_psn";
	case QP_ATTR_MAX_QP_RD_ATOMIC:
		return "max_rd_atomic";
	case QP_ATTR_MIN_RNR_TIMER:
		return "min_rnr_timer";
	case QP_ATTR_SQ_PSN:
		return "sq_psn";
	case QP_ATTR_MAX_DEST_RD_ATOMIC:
		return "max_dest_rd_atomic";
	case QP_ATTR_DEST_QPN:
		return "dest_qp_num";
	case QP_ATTR_ALT_PATH:
		return "alt_ah_attr";
	case QP_ATTR_PATH_MIG_STATE:
		return "path_mig_state";
	default:
		return qp_attr_name(one_bit);
	}
}

void
admin_attrs_take(struct qp_attr *to, const struct conf_qp *from, uint32_t mask)
{
	if ((mask & QP_ATTR_EN_SQD_ASYNC_NOTIFY) != 0)
		to->en_sqd_async_notify = from->en_sqd_async_notify;
	if ((mask & QP_ATTR_ACCESS_FLAGS) != 0)
		to->qp_access_flags = (access_t)from->qp_access_flags;
	if ((mask & QP_ATTR_PKEY_INDEX) != 0)
		to->pkey = from->pkey;
	if ((mask & QP_ATTR_PATH_MTU) != 0)
		to->path_mtu = (uint16_t)from->path_mtu;
	if ((mask & QP_ATTR_TIMEOUT) != 0)
		to->timeout = from->timeout;
	if ((mask & QP_ATTR_RETRY_CNT) != 0)
		to->retry_cnt = from->retry_cnt;
	if ((mask & QP_ATTR_RNR_RETRY) != 0)
		to->rnr_retry = from->rnr_retry;
	if ((mask & QP_ATTR_RQ_PSN) != 0)
		to->rq_psn = from->rq_psn;
	if ((mask & QP_ATTR_MAX_QP_RD_ATOMIC) != 0)
		to->max_rd_atomic = from->max_rd_atomic;
	if ((mask & QP_ATTR_MIN_RNR_TIMER) != 0)
		to->min_rnr_timer = from->min_rnr_timer;
	if ((mask & QP_ATTR_SQ_PSN) != 0)
		to->sq_psn = from->sq_psn;
	if ((mask & QP_ATTR_MAX_DEST_RD_ATOMIC) != 0)
		to->max_dest_rd_atomic = from->max_dest_rd_atomic;
	if ((mask & QP_ATTR_QKEY) != 0)
		to->qkey = from->qkey;
	if ((mask & QP_ATTR_DEST_QPN) != 0)
		to->dest_qp_num = from->dest_qp_num;
}
