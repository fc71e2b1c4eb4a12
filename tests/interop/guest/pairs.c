/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue pairs: every attribute of a transition comes from the request. */
#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "peer.h"

static const struct word type_words[] = {
	{ "RC", IBV_QPT_RC },
	{ "UC", IBV_QPT_UC },
	{ "UD", IBV_QPT_UD },
	{ NULL, 0 },
};

static const struct word state_words[] = {
	{ "RESET", IBV_QPS_RESET },
	{ "INIT", IBV_QPS_INIT },
	{ "RTR", IBV_QPS_RTR },
	{ "RTS", IBV_QPS_RTS },
	{ "SQD", IBV_QPS_SQD },
	{ "SQE", IBV_QPS_SQE },
	{ "ERR", IBV_QPS_ERR },
	{ NULL, 0 },
};

static const struct word access_words[] = {
	{ "REMOTE_WRITE", IBV_ACCESS_REMOTE_WRITE },
	{ "REMOTE_READ", IBV_ACCESS_REMOTE_READ },
	{ "REMOTE_ATOMIC", IBV_ACCESS_REMOTE_ATOMIC },
	{ NULL, 0 },
};

static const struct word mtu_words[] = {
	{ "256", IBV_MTU_256 },
	{ "512", IBV_MTU_512 },
	{ "1024", IBV_MTU_1024 },
	{ "2048", IBV_MTU_2048 },
	{ "4096", IBV_MTU_4096 },
	{ NULL, 0 },
};

struct ibv_qp *
pair_find(struct peer *p, json_t *params)
{
	uint32_t number = (uint32_t)value_number(params, "qp_num", 0);

	for (int i = 0; i < PEER_OBJECTS; i++) {
		if (p->pairs[i].qp != NULL && p->pairs[i].qp->qp_num == number)
			return p->pairs[i].qp;
	}
	return NULL;
}

json_t *
qp_create(struct peer *p, json_t *params)
{
	json_t *cap = json_object_get(params, "cap");
	struct ibv_qp_init_attr attr = {
		.send_cq = queue_find(p, value_text(params, "send_cq")),
		.recv_cq = queue_find(p, value_text(params, "recv_cq")),
		.qp_type = (enum ibv_qp_type)value_word(type_words, value_text(params, "qp_type")),
		.cap = {
			.max_send_wr = (uint32_t)value_number(cap, "max_send_wr", 128),
			.max_recv_wr = (uint32_t)value_number(cap, "max_recv_wr", 128),
			.max_send_sge = (uint32_t)value_number(cap, "max_send_sge", 4),
			.max_recv_sge = (uint32_t)value_number(cap, "max_recv_sge", 4),
			.max_inline_data = (uint32_t)value_number(cap, "max_inline_data", 0),
		},
	};

	for (int i = 0; i < PEER_OBJECTS; i++) {
		struct pair *pair = &p->pairs[i];

		if (pair->qp != NULL)
			continue;
		pair->qp = ibv_create_qp(p->pd, &attr);
		if (pair->qp == NULL)
			return peer_fail(errno, "ibv_create_qp");
		return json_pack("{s:I}", "qp_num", (json_int_t)pair->qp->qp_num);
	}
	return peer_fail(ENOSPC, "queue pairs");
}

json_t *
qp_destroy(struct peer *p, json_t *params)
{
	struct ibv_qp *qp = pair_find(p, params);
	int err;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	err = ibv_destroy_qp(qp);
	if (err != 0)
		return peer_fail(err, "ibv_destroy_qp");
	for (int i = 0; i < PEER_OBJECTS; i++) {
		if (p->pairs[i].qp == qp)
			p->pairs[i].qp = NULL;
	}
	return json_object();
}

/* An address as a GID: IPv4 as ::ffff:a.b.c.d. */
static int
gid_from_text(const char *text, union ibv_gid *gid)
{
	char mapped[64];

	snprintf(mapped, sizeof(mapped), strchr(text, ':') == NULL ? "::ffff:%s" : "%s", text);
	return inet_pton(AF_INET6, mapped, gid->raw) == 1 ? 0 : -EINVAL;
}

/* The own GID of the same family (and scope) as the peer's. */
static int
gid_index(struct peer *p, const union ibv_gid *peer_gid)
{
	union ibv_gid own;

	for (int i = 0; ibv_query_gid(p->ctx, 1, i, &own) == 0; i++) {
		if (memcmp(own.raw, peer_gid->raw, 8) == 0 && own.raw[10] == peer_gid->raw[10])
			return i;
	}
	return 0;
}

int
pair_address(struct peer *p, json_t *ah, struct ibv_ah_attr *attr)
{
	union ibv_gid gid;

	if (gid_from_text(value_text(ah, "dest_ip"), &gid) != 0)
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	*attr = (struct ibv_ah_attr){
		.is_global = 1,
		.port_num = 1,
		.grh = {
			.dgid = gid,
			.sgid_index = (uint8_t)gid_index(p, &gid),
			.hop_limit = (uint8_t)value_number(ah, "hop_limit", 64),
			.traffic_class = (uint8_t)value_number(ah, "traffic_class", 0),
		},
	};
	return 0;
}

/* Attributes that are plain numbers: key, mask bit, where to. */
static int
numbers(json_t *params, struct ibv_qp_attr *attr)
{
	const struct {
		const char *key;
		int bit;
		uint32_t *wide;
		uint8_t *narrow;
	} rows[] = {
		{ "rq_psn", IBV_QP_RQ_PSN, &attr->rq_psn, NULL },
		{ "sq_psn", IBV_QP_SQ_PSN, &attr->sq_psn, NULL },
		{ "dest_qp_num", IBV_QP_DEST_QPN, &attr->dest_qp_num, NULL },
		{ "qkey", IBV_QP_QKEY, &attr->qkey, NULL },
		{ "timeout", IBV_QP_TIMEOUT, NULL, &attr->timeout },
		{ "retry_cnt", IBV_QP_RETRY_CNT, NULL, &attr->retry_cnt },
		{ "rnr_retry", IBV_QP_RNR_RETRY, NULL, &attr->rnr_retry },
		{ "min_rnr_timer", IBV_QP_MIN_RNR_TIMER, NULL, &attr->min_rnr_timer },
		{ "max_rd_atomic", IBV_QP_MAX_QP_RD_ATOMIC, NULL, &attr->max_rd_atomic },
		{ "max_dest_rd_atomic", IBV_QP_MAX_DEST_RD_ATOMIC, NULL,
			&attr->max_dest_rd_atomic },
	};
	int mask = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t v = value_number(params, rows[i].key, UINT64_MAX);

		if (v == UINT64_MAX)
			continue;
		mask |= rows[i].bit;
		if (rows[i].wide != NULL)
			*rows[i].wide = (uint32_t)v;
		else
			*rows[i].narrow = (uint8_t)v;
	}
	return mask;
}

json_t *
qp_modify(struct peer *p, json_t *params)
{
	struct ibv_qp *qp = pair_find(p, params);
	struct ibv_qp_attr attr = { .port_num = 1 };
	int mask = numbers(params, &attr);
	char mtu[16];
	int err;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	if (json_object_get(params, "qp_state") != NULL) {
		mask |= IBV_QP_STATE;
		attr.qp_state =
			(enum ibv_qp_state)value_word(state_words, value_text(params, "qp_state"));
		if (attr.qp_state == IBV_QPS_INIT)
			mask |= IBV_QP_PKEY_INDEX | IBV_QP_PORT;
	}
	if (json_object_get(params, "qp_access_flags") != NULL) {
		mask |= IBV_QP_ACCESS_FLAGS;
		attr.qp_access_flags = (unsigned int)value_flags(
			access_words, json_object_get(params, "qp_access_flags"));
	}
	if (json_object_get(params, "en_sqd_async_notify") != NULL) {
		mask |= IBV_QP_EN_SQD_ASYNC_NOTIFY;
		attr.en_sqd_async_notify =
			json_is_true(json_object_get(params, "en_sqd_async_notify"));
	}
	if (json_object_get(params, "path_mtu") != NULL) {
		mask |= IBV_QP_PATH_MTU;
		snprintf(mtu, sizeof(mtu), "%u", (unsigned int)value_number(params, "path_mtu", 0));
		attr.path_mtu = (enum ibv_mtu)value_word(mtu_words, mtu);
	}
	if (json_object_get(params, "ah_attr") != NULL) {
		mask |= IBV_QP_AV;
		if (pair_address(p, json_object_get(params, "ah_attr"), &attr.ah_attr) != 0)
			return peer_fail(EINVAL, "dest_ip");
	}
	err = ibv_modify_qp(qp, &attr, mask);
	return err == 0 ? json_object() : peer_fail(err, "ibv_modify_qp");
}

json_t *
qp_query(struct peer *p, json_t *params)
{
	struct ibv_qp *qp = pair_find(p, params);
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr attr;
	int err;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	err = ibv_query_qp(qp, &attr,
		IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_RQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
			IBV_QP_RNR_RETRY | IBV_QP_MIN_RNR_TIMER | IBV_QP_MAX_QP_RD_ATOMIC |
			IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN,
		&init);
	if (err != 0)
		return peer_fail(err, "ibv_query_qp");
	return json_pack("{s:s, s:I, s:I, s:I, s:i, s:i, s:i, s:i, s:i, s:i, s:i}", "qp_state",
		value_name(state_words, attr.qp_state), "sq_psn", (json_int_t)attr.sq_psn, "rq_psn",
		(json_int_t)attr.rq_psn, "dest_qp_num", (json_int_t)attr.dest_qp_num, "path_mtu",
		128 << attr.path_mtu, "timeout", attr.timeout, "retry_cnt", attr.retry_cnt,
		"rnr_retry", attr.rnr_retry, "min_rnr_timer", attr.min_rnr_timer, "max_rd_atomic",
		attr.max_rd_atomic, "max_dest_rd_atomic", attr.max_dest_rd_atomic);
}

/* The kernel's IP drops what is for a group that no socket has joined, before rdma_rxe sees it. */
static int
socket_joins(const union ibv_gid *gid, int option)
{
	static int fd = -1;
	struct ipv6_mreq group = { .ipv6mr_interface = if_nametoindex("eth0") };

	if (fd < 0)
		fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	memcpy(&group.ipv6mr_multiaddr, gid->raw, sizeof(gid->raw));
	return setsockopt(fd, IPPROTO_IPV6, option, &group, sizeof(group)) == 0 ? 0 : errno;
}

static json_t *
group_change(struct peer *p, json_t *params, int option,
	int (*change)(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid), const char *what)
{
	struct ibv_qp *qp = pair_find(p, params);
	union ibv_gid gid;
	int err;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	if (gid_from_text(value_text(params, "group"), &gid) != 0)
		return peer_fail(EINVAL, "group");
	err = change(qp, &gid, 0);
	if (err == 0 && (err = socket_joins(&gid, option)) != 0)
		return peer_fail(err, "group of a socket");
	return err == 0 ? json_object() : peer_fail(err, what);
}

json_t *
mcast_attach(struct peer *p, json_t *params)
{
	return group_change(p, params, IPV6_JOIN_GROUP, ibv_attach_mcast, "ibv_attach_mcast");
}

json_t *
mcast_detach(struct peer *p, json_t *params)
{
	return group_change(p, params, IPV6_LEAVE_GROUP, ibv_detach_mcast, "ibv_detach_mcast");
}
