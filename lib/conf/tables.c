/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"
#include "conf_mcast.h"
#include "service.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* The keys of PDs, MRs, CQs, SRQs and QPs: for the file, for RPC, and for what is written back. */

/* clang-format off */
const struct conf_name conf_names_access[] = {
#define ACCESS_FLAG(bit, name) { #name, ACCESS_##name },
#include "tables/access_flags.def"
#undef ACCESS_FLAG
	{ NULL, 0 },
};
/* A queue pair is not bound to, and has no first byte. */
static const struct conf_name qp_access[] = {
	{ "LOCAL_WRITE", ACCESS_LOCAL_WRITE }, { "REMOTE_WRITE", ACCESS_REMOTE_WRITE },
	{ "REMOTE_READ", ACCESS_REMOTE_READ }, { "REMOTE_ATOMIC", ACCESS_REMOTE_ATOMIC },
	{ "FLUSH_GLOBAL", ACCESS_FLUSH_GLOBAL }, { "FLUSH_PERSISTENT", ACCESS_FLUSH_PERSISTENT },
	{ NULL, 0 },
};
const struct conf_name conf_names_qp_type[] = { { "RC", QPT_RC }, { "UC", QPT_UC }, { "UD", QPT_UD },
	{ "XRC_SEND", QPT_XRC_SEND }, { "XRC_RECV", QPT_XRC_RECV }, { NULL, 0 } };
static const struct conf_name srq_types[] = { { "BASIC", CONF_SRQ_BASIC }, { "XRC", CONF_SRQ_XRC }, { NULL, 0 } };
const struct conf_name conf_names_qp_state[] = {
#define QP_STATE_NAME(value, name) { #name, value },
#include "tables/qp_state_names.def"
#undef QP_STATE_NAME
	{ NULL, 0 },
};
const struct conf_name conf_names_wr_opcode[] = {
#define WR_OPCODE(value, name, completion, has, on) { #name, value },
#include "tables/wr_opcodes.def"
#undef WR_OPCODE
	{ NULL, 0 },
};
/* What a configuration may ask for: the others are reached by a modify or by an error. */
static const struct conf_name start_states[] = {
	{ "RESET", QPS_RESET }, { "INIT", QPS_INIT }, { "RTR", QPS_RTR },
	{ "RTS", QPS_RTS }, { NULL, 0 },
};
/* A QP becomes ARMED by itself: a modify that asks for it is told so. */
static const struct conf_name start_mig_states[] = {
	{ "MIGRATED", MIG_MIGRATED }, { "REARM", MIG_REARM }, { NULL, 0 },
};
static const struct conf_name mig_states[] = {
#define MIG_STATE(value, name) { #name, value },
#include "tables/mig_states.def"
#undef MIG_STATE
	{ NULL, 0 },
};
/* A feed has no key to invalidate. */
static const struct conf_name feed_opcodes[] = {
	{ "SEND", WR_SEND },
	{ "SEND_WITH_IMM", WR_SEND_WITH_IMM },
	{ "RDMA_WRITE", WR_RDMA_WRITE },
	{ "RDMA_WRITE_WITH_IMM", WR_RDMA_WRITE_WITH_IMM },
	{ "RDMA_READ", WR_RDMA_READ },
	{ "ATOMIC_CMP_AND_SWP", WR_ATOMIC_CMP_AND_SWP },
	{ "ATOMIC_FETCH_AND_ADD", WR_ATOMIC_FETCH_AND_ADD },
	{ "ATOMIC_WRITE", WR_ATOMIC_WRITE },
	{ NULL, 0 },
};
static const struct conf_name path_mtus[] = {
	{ "256", 256 }, { "512", 512 }, { "1024", 1024 }, { "2048", 2048 }, { "4096", 4096 },
	{ NULL, 0 },
};
/* clang-format on */

static int
decode_fill(const char *text, void *obj)
{
	static const char pattern[] = "pattern:";
	struct conf_mr *mr = obj;
	uint64_t seed = 0;

	if (strcmp(text, "zero") == 0) {
		mr->fill = CONF_FILL_ZERO;
		return 0;
	}
	if (strncmp(text, pattern, sizeof(pattern) - 1) != 0)
		return -EINVAL;
	text += sizeof(pattern) - 1;
	if (*text == '\0' || strlen(text) > 19)
		return -EINVAL;
	for (; *text >= '0' && *text <= '9'; text++)
		seed = seed * 10 + (uint64_t)(*text - '0');
	if (*text != '\0')
		return -EINVAL;
	mr->fill = CONF_FILL_PATTERN;
	mr->fill_seed = seed;
	return 0;
}

static void
encode_fill(const void *obj, char *buf, size_t room)
{
	const struct conf_mr *mr = obj;

	if (mr->fill == CONF_FILL_PATTERN)
		snprintf(buf, room, "pattern:%" PRIu64, mr->fill_seed);
	else
		snprintf(buf, room, "zero");
}

static const struct conf_custom fill = { "\"zero\" or \"pattern:SEED\" (SEED of up to 19 digits)",
	decode_fill, encode_fill };

/* clang-format off */
#define PSN_MAX 0xffffff

static const struct conf_field pd_rows[] = {
	ROW_NAME(conf_pd, name, "name", WITH(REQUIRED)),
};
const struct conf_table conf_table_pd = { .name = "pd", TABLE_ROWS(pd_rows),
	.size = sizeof(struct conf_pd), .given_offset = CONF_NO_GIVEN, .shorthand = "name" };

static const struct conf_field mr_rows[] = {
	ROW_NAME(conf_mr, name, "name", WITH(REQUIRED)),
	ROW_NAME(conf_mr, pd, "pd", WITH(REQUIRED)),
	ROW_SIZE64(conf_mr, length, "length", 1, UINT64_C(1) << 40, WITH(REQUIRED)),
	ROW_U64(conf_mr, addr, "addr", 0, UINT64_MAX, WITH(NULLABLE | CONF_F_HEX), GIVEN(CONF_MR_ADDR)),
	ROW_U32(conf_mr, rkey, "rkey", 0, UINT32_MAX, WITH(NULLABLE | CONF_F_HEX), GIVEN(CONF_MR_RKEY)),
	ROW_FLAGS(conf_mr, access, "access", conf_names_access, WITH(CONF_F_DEFAULT)),
	ROW_CUSTOM(conf_mr, fill, "fill", &fill, WITH(CONF_F_DEFAULT), .def_str = "zero"),
	ROW_BOOL(conf_mr, remote_invalidate, "remote_invalidate", WITH(CONF_F_DEFAULT)),
};
const struct conf_table conf_table_mr = { .name = "mr", TABLE_ROWS(mr_rows),
	.size = sizeof(struct conf_mr), .given_offset = offsetof(struct conf_mr, given),
	.check = conf_check_mr };

static const struct conf_field cq_rows[] = {
	ROW_NAME(conf_cq, name, "name", WITH(REQUIRED)),
	ROW_U32(conf_cq, cqe, "cqe", 1, CONF_MAX_CQE, WITH(CONF_F_DEFAULT), DEFAULT(1024)),
};
const struct conf_table conf_table_cq = { .name = "cq", TABLE_ROWS(cq_rows),
	.size = sizeof(struct conf_cq), .given_offset = CONF_NO_GIVEN };

static const struct conf_field mw_rows[] = {
	ROW_NAME(conf_mw, name, "name", WITH(REQUIRED)),
	ROW_NAME(conf_mw, pd, "pd", WITH(REQUIRED)),
	ROW_U32(conf_mw, type, "type", 1, 2, WITH(CONF_F_DEFAULT), DEFAULT(1)),
};
const struct conf_table conf_table_mw = { .name = "mw", TABLE_ROWS(mw_rows),
	.size = sizeof(struct conf_mw), .given_offset = CONF_NO_GIVEN };

static const struct conf_field xrcd_rows[] = {
	ROW_NAME(conf_xrcd, name, "name", WITH(REQUIRED)),
};
const struct conf_table conf_table_xrcd = { .name = "xrcd", TABLE_ROWS(xrcd_rows),
	.size = sizeof(struct conf_xrcd), .given_offset = CONF_NO_GIVEN, .shorthand = "name" };

static const struct conf_field srq_rows[] = {
	ROW_NAME(conf_srq, name, "name", WITH(REQUIRED)),
	ROW_NAME(conf_srq, pd, "pd", WITH(REQUIRED)),
	ROW_U32(conf_srq, max_wr, "max_wr", 1, CONF_MAX_WR, WITH(CONF_F_DEFAULT), DEFAULT(1024)),
	ROW_U32(conf_srq, max_sge, "max_sge", 1, CONF_MAX_SGE, WITH(CONF_F_DEFAULT), DEFAULT(4)),
	ROW_U32(conf_srq, srq_limit, "srq_limit", 0, CONF_MAX_WR, WITH(CONF_F_DEFAULT)),
	ROW_ENUM(conf_srq, srq_type, "srq_type", srq_types, WITH(CONF_F_DEFAULT)),
	ROW_NAME(conf_srq, xrcd, "xrcd", WITH(0), GIVEN(CONF_SRQ_XRCD)),
	ROW_NAME(conf_srq, cq, "cq", WITH(0), GIVEN(CONF_SRQ_CQ)),
	ROW_U32(conf_srq, srq_num, "srq_num", 1, PSN_MAX, WITH(0), GIVEN(CONF_SRQ_NUM)),
};
const struct conf_table conf_table_srq = { .name = "srq", TABLE_ROWS(srq_rows),
	.size = sizeof(struct conf_srq), .given_offset = offsetof(struct conf_srq, given),
	.check = conf_check_srq, .hide = conf_hide_srq };

static const struct conf_field mcast_rows[] = {
	ROW_U32(conf_mcast, qp_num, "qp_num", CONF_QPN_MIN, CONF_QPN_MAX, WITH(REQUIRED)),
	ROW_GROUP(conf_mcast, group, "group", WITH(REQUIRED)),
};
const struct conf_table conf_table_mcast = { .name = "mcast", TABLE_ROWS(mcast_rows),
	.size = sizeof(struct conf_mcast), .given_offset = CONF_NO_GIVEN };

static const struct conf_field ah_rows[] = {
	ROW_ANY_IP(conf_ah, dest_ip, "dest_ip", WITH(REQUIRED)),
	ROW_MAC(conf_ah, dest_mac, "dest_mac", WITH(NULLABLE), GIVEN(CONF_AH_DEST_MAC)),
	ROW_U8(conf_ah, traffic_class, "traffic_class", 0, 255, WITH(CONF_F_DEFAULT)),
	ROW_U8(conf_ah, hop_limit, "hop_limit", 1, 255, WITH(CONF_F_DEFAULT), DEFAULT(64)),
	ROW_U32(conf_ah, flow_label, "flow_label", 0, 0xfffff, WITH(CONF_F_DEFAULT)),
	ROW_U16(conf_ah, vlan, "vlan", 1, 4094, WITH(NULLABLE), GIVEN(CONF_AH_VLAN)),
	ROW_U8(conf_ah, vlan_priority, "vlan_priority", 0, 7, WITH(CONF_F_DEFAULT)),
};
const struct conf_table conf_table_ah = { .name = "ah_attr", TABLE_ROWS(ah_rows),
	.size = sizeof(struct conf_ah), .given_offset = offsetof(struct conf_ah, given) };

static const struct conf_field cap_rows[] = {
	ROW_U32(conf_cap, max_send_wr, "max_send_wr", 0, CONF_MAX_WR, WITH(CONF_F_DEFAULT), DEFAULT(128)),
	ROW_U32(conf_cap, max_recv_wr, "max_recv_wr", 0, CONF_MAX_WR, WITH(CONF_F_DEFAULT), DEFAULT(128)),
	ROW_U32(conf_cap, max_send_sge, "max_send_sge", 0, CONF_MAX_SGE, WITH(CONF_F_DEFAULT), DEFAULT(4)),
	ROW_U32(conf_cap, max_recv_sge, "max_recv_sge", 0, CONF_MAX_SGE, WITH(CONF_F_DEFAULT), DEFAULT(4)),
	ROW_SIZE32(conf_cap, max_inline_data, "max_inline_data", 0, CONF_MAX_INLINE,
		WITH(CONF_F_DEFAULT), DEFAULT(CONF_MAX_INLINE)),
};
const struct conf_table conf_table_cap = { .name = "cap", TABLE_ROWS(cap_rows),
	.size = sizeof(struct conf_cap), .given_offset = CONF_NO_GIVEN };

static const struct conf_field recv_feed_rows[] = {
	ROW_U32(conf_recv_feed, buffers, "buffers", 1, CONF_MAX_WR, WITH(CONF_F_DEFAULT), DEFAULT(256)),
	ROW_SIZE32(conf_recv_feed, size, "size", 1, CONF_MAX_MESSAGE, WITH(CONF_F_DEFAULT), DEFAULT(4096)),
};
const struct conf_table conf_table_recv_feed = { .name = "recv_feed", TABLE_ROWS(recv_feed_rows),
	.size = sizeof(struct conf_recv_feed), .given_offset = CONF_NO_GIVEN };

static const struct conf_field send_feed_rows[] = {
	ROW_ENUM(conf_send_feed, opcode, "opcode", feed_opcodes, WITH(REQUIRED), DEFAULT(WR_SEND)),
	ROW_SIZE32(conf_send_feed, size, "size", 0, CONF_MAX_MESSAGE, WITH(CONF_F_DEFAULT),
		GIVEN(CONF_FEED_SIZE), DEFAULT(64)),
	ROW_U32(conf_send_feed, depth, "depth", 1, CONF_MAX_WR, WITH(CONF_F_DEFAULT), DEFAULT(64)),
	ROW_U32(conf_send_feed, rkey, "rkey", 0, UINT32_MAX, WITH(NULLABLE | CONF_F_HEX), GIVEN(CONF_FEED_RKEY)),
	ROW_U64(conf_send_feed, remote_addr, "remote_addr", 0, UINT64_MAX, WITH(NULLABLE | CONF_F_HEX),
		GIVEN(CONF_FEED_REMOTE_ADDR)),
	ROW_U32(conf_send_feed, xrc_remote_srqn, "xrc_remote_srqn", 1, PSN_MAX, WITH(NULLABLE), GIVEN(CONF_FEED_SRQN)),
	ROW_SIZE64(conf_send_feed, stride, "stride", 0, UINT64_C(1) << 40, WITH(CONF_F_DEFAULT)),
	ROW_U64(conf_send_feed, count, "count", 0, INT64_MAX, WITH(CONF_F_DEFAULT)),
};
const struct conf_table conf_table_send_feed = { .name = "send_feed", TABLE_ROWS(send_feed_rows),
	.size = sizeof(struct conf_send_feed), .given_offset = offsetof(struct conf_send_feed, given),
	.check = conf_check_send_feed };

static const struct conf_field qp_rows[] = {
	ROW_U32(conf_qp, qp_num, "qp_num", CONF_QPN_MIN, CONF_QPN_MAX, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_QP_NUM)),
	ROW_U32(conf_qp, qp_num, "qp_num", CONF_QPN_MIN, CONF_QPN_MAX, WITH(REQUIRED | CONF_F_MODIFY), GIVEN(CONF_QP_QP_NUM)),
	ROW_ENUM(conf_qp, qp_type, "qp_type", conf_names_qp_type, WITH(REQUIRED | CONF_F_CREATE)),
	ROW_NAME(conf_qp, port, "port", WITH(NULLABLE), GIVEN(QP_ATTR_PORT)),
	ROW_NAME(conf_qp, pd, "pd", WITH(REQUIRED | CONF_F_CREATE)),
	ROW_NAME(conf_qp, send_cq, "send_cq", WITH(CONF_F_CREATE), GIVEN(CONF_QP_SEND_CQ)),
	ROW_NAME(conf_qp, recv_cq, "recv_cq", WITH(CONF_F_CREATE), GIVEN(CONF_QP_RECV_CQ)),
	ROW_NAME(conf_qp, xrcd, "xrcd", WITH(CONF_F_CREATE), GIVEN(CONF_QP_XRCD)),
	ROW_NAME(conf_qp, srq, "srq", WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_SRQ)),
	ROW_BOOL(conf_qp, sq_sig_all, "sq_sig_all", WITH(CONF_F_DEFAULT | CONF_F_CREATE)),
	ROW_ENUM(conf_qp, qp_state, "qp_state", start_states, WITH(CONF_F_DEFAULT | CONF_F_CREATE), GIVEN(QP_ATTR_STATE)),
	ROW_ENUM(conf_qp, qp_state, "qp_state", conf_names_qp_state, WITH(CONF_F_MODIFY), GIVEN(QP_ATTR_STATE)),
	ROW_ENUM(conf_qp, cur_qp_state, "cur_qp_state", conf_names_qp_state, WITH(CONF_F_MODIFY), GIVEN(QP_ATTR_CUR_STATE)),
	ROW_BOOL(conf_qp, en_sqd_async_notify, "en_sqd_async_notify", WITH(CONF_F_MODIFY), GIVEN(QP_ATTR_EN_SQD_ASYNC_NOTIFY)),
	ROW_PICK(conf_qp, path_mtu, "path_mtu", path_mtus, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_PATH_MTU), DEFAULT(1024)),
	ROW_U32(conf_qp, qkey, "qkey", 0, UINT32_MAX, WITH(CONF_F_HEX), GIVEN(QP_ATTR_QKEY)),
	ROW_U32(conf_qp, dest_qp_num, "dest_qp_num", CONF_QPN_MIN, CONF_QPN_MAX, WITH(0), GIVEN(QP_ATTR_DEST_QPN)),
	ROW_U32(conf_qp, rq_psn, "rq_psn", 0, PSN_MAX, WITH(0), GIVEN(QP_ATTR_RQ_PSN)),
	ROW_U32(conf_qp, sq_psn, "sq_psn", 0, PSN_MAX, WITH(0), GIVEN(QP_ATTR_SQ_PSN)),
	ROW_OBJECT(conf_qp, ah_attr, "ah_attr", &conf_table_ah, WITH(0), GIVEN(QP_ATTR_AV)),
	ROW_OBJECT(conf_qp, alt_ah_attr, "alt_ah_attr", &conf_table_ah, WITH(0), GIVEN(QP_ATTR_ALT_PATH)),
	ROW_NAME(conf_qp, alt_port, "alt_port", WITH(0), GIVEN(CONF_QP_ALT_PORT)),
	ROW_U8(conf_qp, alt_timeout, "alt_timeout", 0, 31, WITH(0), GIVEN(CONF_QP_ALT_TIMEOUT)),
	ROW_U16(conf_qp, alt_pkey, "alt_pkey", 1, 0xffff, WITH(CONF_F_HEX), GIVEN(CONF_QP_ALT_PKEY)),
	ROW_ENUM(conf_qp, path_mig_state, "path_mig_state", start_mig_states, WITH(CONF_F_DEFAULT | CONF_F_CREATE),
		GIVEN(QP_ATTR_PATH_MIG_STATE)),
	ROW_ENUM(conf_qp, path_mig_state, "path_mig_state", mig_states, WITH(CONF_F_MODIFY), GIVEN(QP_ATTR_PATH_MIG_STATE)),
	ROW_U8(conf_qp, timeout, "timeout", 0, 31, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_TIMEOUT), DEFAULT(14)),
	ROW_U8(conf_qp, retry_cnt, "retry_cnt", 0, 7, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_RETRY_CNT), DEFAULT(7)),
	ROW_U8(conf_qp, rnr_retry, "rnr_retry", 0, 7, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_RNR_RETRY), DEFAULT(7)),
	ROW_U8(conf_qp, min_rnr_timer, "min_rnr_timer", 0, 31, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_MIN_RNR_TIMER), DEFAULT(12)),
	ROW_U8(conf_qp, max_rd_atomic, "max_rd_atomic", 0, CONF_MAX_RD_ATOMIC, WITH(CONF_F_DEFAULT),
		GIVEN(QP_ATTR_MAX_QP_RD_ATOMIC), DEFAULT(16)),
	ROW_U8(conf_qp, max_dest_rd_atomic, "max_dest_rd_atomic", 0, CONF_MAX_RD_ATOMIC, WITH(CONF_F_DEFAULT),
		GIVEN(QP_ATTR_MAX_DEST_RD_ATOMIC), DEFAULT(16)),
	ROW_U16(conf_qp, pkey, "pkey", 1, 0xffff, WITH(CONF_F_DEFAULT | CONF_F_HEX), GIVEN(QP_ATTR_PKEY_INDEX), DEFAULT(0xffff)),
	ROW_FLAGS(conf_qp, qp_access_flags, "qp_access_flags", qp_access, WITH(CONF_F_DEFAULT), GIVEN(QP_ATTR_ACCESS_FLAGS)),
	ROW_OBJECT(conf_qp, cap, "cap", &conf_table_cap, WITH(CONF_F_DEFAULT | CONF_F_CREATE), GIVEN(QP_ATTR_CAP)),
	ROW_U32(conf_qp, rq_limit, "rq_limit", 0, CONF_MAX_WR, WITH(CONF_F_DEFAULT), GIVEN(CONF_QP_RQ_LIMIT)),
	ROW_U32(conf_qp, worker, "worker", 0, CONF_MAX_WORKERS - 1, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_WORKER)),
	ROW_U32(conf_qp, worker, "worker", 0, CONF_MAX_WORKERS - 1, WITH(CONF_F_MODIFY), GIVEN(CONF_QP_WORKER)),
	ROW_U32(conf_qp, count, "count", 1, CONF_MAX_QPS, WITH(CONF_F_DEFAULT | CONF_F_CREATE), DEFAULT(1)),
	ROW_OBJECT(conf_qp, recv_feed, "recv_feed", &conf_table_recv_feed, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_RECV_FEED)),
	ROW_OBJECT(conf_qp, send_feed, "send_feed", &conf_table_send_feed, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_SEND_FEED)),
	ROW_ENUM(conf_qp, profile, "profile", conf_names_profile, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_PROFILE)),
	ROW_OBJECT(conf_qp, knobs, "knobs", &conf_table_knobs, WITH(NULLABLE | CONF_F_CREATE), GIVEN(CONF_QP_KNOBS)),
};
const struct conf_table conf_table_qp = { .name = "qp", TABLE_ROWS(qp_rows),
	.size = sizeof(struct conf_qp), .given_offset = offsetof(struct conf_qp, given),
	.check = conf_check_qp, .hide = conf_hide_service };
/* clang-format on */
