/* SPDX-License-Identifier: BSD-3-Clause */
/* Attributes of QPs and paths: verbs' structs to the dataplane's JSON, and back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>

#include "client_priv.h"
#include "verbs.h"

#define NOT_HERE RL_QP_CAP

static const uint8_t v4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static const struct {
	const char *name;
	unsigned int flag;
} accesses[] = {
#define ACCESS_FLAG(bit, name) { #name, RL_ACCESS_##name },
#include "tables/access_flags.def"
#undef ACCESS_FLAG
};

#define FLOW_LABEL_MASK 0xfffffu /* programs take whole words of headers */

/* Attributes that are plain numbers on both sides. */
#define NUMBERS(X)                                                            \
	X(RL_QP_TIMEOUT, timeout, "timeout")                                  \
	X(RL_QP_RETRY_CNT, retry_cnt, "retry_cnt")                            \
	X(RL_QP_RNR_RETRY, rnr_retry, "rnr_retry")                            \
	X(RL_QP_RQ_PSN, rq_psn, "rq_psn")                                     \
	X(RL_QP_SQ_PSN, sq_psn, "sq_psn")                                     \
	X(RL_QP_QKEY, qkey, "qkey")                                           \
	X(RL_QP_MAX_QP_RD_ATOMIC, max_rd_atomic, "max_rd_atomic")             \
	X(RL_QP_MAX_DEST_RD_ATOMIC, max_dest_rd_atomic, "max_dest_rd_atomic") \
	X(RL_QP_MIN_RNR_TIMER, min_rnr_timer, "min_rnr_timer")                \
	X(RL_QP_DEST_QPN, dest_qp_num, "dest_qp_num")                         \
	X(RL_QP_RQ_LIMIT, rq_limit, "rq_limit")

int
rl_gid_from_ip(const char *ip, union rl_gid *gid)
{
	union rl_gid out;

	memcpy(out.raw, v4_mapped, sizeof(v4_mapped));
	if (inet_pton(AF_INET, ip, out.raw + 12) != 1 && inet_pton(AF_INET6, ip, out.raw) != 1)
		return client_fail(EINVAL, "\"%s\" is no IP address", ip);
	*gid = out;
	return 0;
}

void
client_ip_of(const union rl_gid *gid, char *text)
{
	if (memcmp(gid->raw, v4_mapped, sizeof(v4_mapped)) == 0)
		inet_ntop(AF_INET, gid->raw + 12, text, INET6_ADDRSTRLEN);
	else
		inet_ntop(AF_INET6, gid->raw, text, INET6_ADDRSTRLEN);
}

json_t *
client_path_encode(const struct rl_ah_attr *ah)
{
	static const uint8_t none[6];
	char ip[INET6_ADDRSTRLEN], mac[18];
	json_t *o;

	client_ip_of(&ah->grh.dgid, ip);
	o = json_pack("{s:s, s:i, s:i}", "dest_ip", ip, "traffic_class", ah->grh.traffic_class,
		"hop_limit", ah->grh.hop_limit != 0 ? ah->grh.hop_limit : 64);
	if ((ah->grh.flow_label & FLOW_LABEL_MASK) != 0)
		json_object_set_new(
			o, "flow_label", json_integer(ah->grh.flow_label & FLOW_LABEL_MASK));
	if (memcmp(ah->dmac, none, sizeof(none)) != 0) {
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", ah->dmac[0],
			ah->dmac[1], ah->dmac[2], ah->dmac[3], ah->dmac[4], ah->dmac[5]);
		json_object_set_new(o, "dest_mac", json_string(mac));
	}
	if (ah->vlan != 0) {
		json_object_set_new(o, "vlan", json_integer(ah->vlan));
		json_object_set_new(o, "vlan_priority", json_integer(ah->vlan_priority));
	}
	return o;
}

static void
decode_path(const json_t *o, struct rl_ah_attr *ah)
{
	const char *ip = json_string_value(json_object_get(o, "dest_ip"));
	const char *mac = json_string_value(json_object_get(o, "dest_mac"));

	ah->is_global = 1;
	if (ip != NULL)
		rl_gid_from_ip(ip, &ah->grh.dgid);
	if (mac != NULL)
		sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &ah->dmac[0], &ah->dmac[1],
			&ah->dmac[2], &ah->dmac[3], &ah->dmac[4], &ah->dmac[5]);
	ah->grh.traffic_class = (uint8_t)json_integer_value(json_object_get(o, "traffic_class"));
	ah->grh.hop_limit = (uint8_t)json_integer_value(json_object_get(o, "hop_limit"));
	ah->grh.flow_label = (uint32_t)json_integer_value(json_object_get(o, "flow_label"));
	ah->vlan = (uint16_t)json_integer_value(json_object_get(o, "vlan"));
	ah->vlan_priority = (uint8_t)json_integer_value(json_object_get(o, "vlan_priority"));
}

/* Said of memory, not of a QP. Programs name them all the same, and the kernel does not mind. */
#define OF_MEMORY (RL_ACCESS_MW_BIND | RL_ACCESS_ZERO_BASED)

static json_t *
encode_access(unsigned int flags)
{
	json_t *list = json_array();

	for (unsigned int i = 0; i < ARRAY_LEN(accesses); i++) {
		if ((flags & accesses[i].flag) != 0)
			json_array_append_new(list, json_string(accesses[i].name));
	}
	return list;
}

/* What the dataplane has no words for. */
static int
check(const struct context *ctx, const struct rl_qp_attr *attr, int mask)
{
	if ((mask & NOT_HERE) != 0)
		return client_fail(ENOTSUP, "attributes 0x%x cannot be modified here",
			(unsigned int)(mask & NOT_HERE));
	if ((mask & RL_QP_PKEY_INDEX) != 0 && attr->pkey_index != 0)
		return client_fail(EINVAL, "pkey_index %u: there is 0 only", attr->pkey_index);
	if ((mask & RL_QP_AV) != 0 && attr->ah_attr.is_global == 0)
		return client_fail(EINVAL, "ah_attr.is_global is 0: RoCE paths are global");
	if ((mask & RL_QP_PORT) != 0 && (attr->port_num < 1 || attr->port_num > ctx->pub.num_ports))
		return client_fail(EINVAL, "port_num %u does not exist: there are %u, from 1",
			attr->port_num, ctx->pub.num_ports);
	if ((mask & RL_QP_ALT_PATH) != 0 &&
		(attr->alt_ah_attr.is_global == 0 || attr->alt_pkey_index != 0 ||
			attr->alt_port_num < 1 || attr->alt_port_num > ctx->pub.num_ports))
		return client_fail(EINVAL,
			"alternate path: needs alt_ah_attr.is_global, alt_pkey_index 0 and an "
			"alt_port_num from 1 to %u",
			ctx->pub.num_ports);
	if ((mask & RL_QP_PATH_MIG_STATE) != 0 &&
		(unsigned int)attr->path_mig_state > (unsigned int)RL_MIG_ARMED)
		return client_fail(EINVAL, "path_mig_state %d is no enum rl_mig_state",
			(int)attr->path_mig_state);
	if ((mask & RL_QP_PATH_MTU) != 0 &&
		(attr->path_mtu < RL_MTU_256 || attr->path_mtu > RL_MTU_4096))
		return client_fail(EINVAL, "path_mtu %d is no enum rl_mtu", (int)attr->path_mtu);
	return 0;
}

static void
encode_alternate(const struct context *ctx, const struct rl_qp_attr *attr, int mask, json_t *o)
{
	if ((mask & RL_QP_ALT_PATH) != 0) {
		json_object_set_new(o, "alt_ah_attr", client_path_encode(&attr->alt_ah_attr));
		json_object_set_new(
			o, "alt_port", json_string(ctx->ports[attr->alt_port_num - 1].name));
		json_object_set_new(o, "alt_timeout", json_integer(attr->alt_timeout));
		json_object_set_new(o, "alt_pkey", json_integer(0xffff));
	}
	if ((mask & RL_QP_PATH_MIG_STATE) != 0)
		json_object_set_new(o, "path_mig_state",
			json_string(verbs_mig_state_name((enum mig_state)attr->path_mig_state)));
}

json_t *
client_attr_encode(
	struct context *ctx, const struct qp *qp, const struct rl_qp_attr *attr, int mask)
{
	json_t *o;

	if (check(ctx, attr, mask) != 0)
		return NULL;
	o = json_pack("{s:I}", "qp_num", (json_int_t)qp->pub.qp_num);
	if ((mask & RL_QP_STATE) != 0)
		json_object_set_new(o, "qp_state", json_string(rl_qp_state_str(attr->qp_state)));
	if ((mask & RL_QP_CUR_STATE) != 0)
		json_object_set_new(
			o, "cur_qp_state", json_string(rl_qp_state_str(attr->cur_qp_state)));
	if ((mask & RL_QP_EN_SQD_ASYNC_NOTIFY) != 0)
		json_object_set_new(
			o, "en_sqd_async_notify", json_boolean(attr->en_sqd_async_notify != 0));
	if ((mask & RL_QP_ACCESS_FLAGS) != 0)
		json_object_set_new(
			o, "qp_access_flags", encode_access(attr->qp_access_flags & ~OF_MEMORY));
	if ((mask & RL_QP_PKEY_INDEX) != 0)
		json_object_set_new(o, "pkey", json_integer(0xffff));
	if ((mask & RL_QP_PORT) != 0)
		json_object_set_new(o, "port", json_string(ctx->ports[attr->port_num - 1].name));
	if ((mask & RL_QP_AV) != 0)
		json_object_set_new(o, "ah_attr", client_path_encode(&attr->ah_attr));
	if ((mask & RL_QP_PATH_MTU) != 0)
		json_object_set_new(o, "path_mtu", json_integer(128 << attr->path_mtu));
	encode_alternate(ctx, attr, mask, o);
#define NUMBER(bit, field, key)  \
	if ((mask & (bit)) != 0) \
		json_object_set_new(o, key, json_integer(attr->field));
	NUMBERS(NUMBER)
#undef NUMBER
	return o;
}

/* Some are strings: "0x80010000". */
static uint32_t
number_of(const json_t *value)
{
	return json_is_string(value) ? (uint32_t)strtoul(json_string_value(value), NULL, 0)
				     : (uint32_t)json_integer_value(value);
}

static enum rl_qp_state
state_of(const json_t *name)
{
	const char *text = json_string_value(name);

	for (int s = RL_QPS_RESET; text != NULL && s <= RL_QPS_ERR; s++) {
		if (strcmp(text, rl_qp_state_str((enum rl_qp_state)s)) == 0)
			return (enum rl_qp_state)s;
	}
	return RL_QPS_ERR;
}

static enum rl_mtu
mtu_of(const json_t *bytes)
{
	enum rl_mtu code = RL_MTU_256;

	while (code < RL_MTU_4096 && (128 << code) < json_integer_value(bytes))
		code++;
	return code;
}

/* Number of the port that `key` names; 0: of none. */
static uint8_t
port_of(const struct context *ctx, const json_t *o, const char *key)
{
	const char *name = json_string_value(json_object_get(o, key));

	for (uint8_t p = 0; name != NULL && p < ctx->pub.num_ports; p++) {
		if (strcmp(ctx->ports[p].name, name) == 0)
			return (uint8_t)(p + 1);
	}
	return 0;
}

static void
decode_alternate(const struct context *ctx, const json_t *o, struct rl_qp_attr *a)
{
	const char *state = json_string_value(json_object_get(o, "path_mig_state"));

	for (int s = RL_MIG_MIGRATED; state != NULL && s <= RL_MIG_ARMED; s++) {
		if (strcmp(state, verbs_mig_state_name((enum mig_state)s)) == 0)
			a->path_mig_state = (enum rl_mig_state)s;
	}
	if (!json_is_object(json_object_get(o, "alt_ah_attr")))
		return;
	decode_path(json_object_get(o, "alt_ah_attr"), &a->alt_ah_attr);
	a->alt_port_num = a->alt_ah_attr.port_num = port_of(ctx, o, "alt_port");
	a->alt_timeout = (uint8_t)json_integer_value(json_object_get(o, "alt_timeout"));
}

void
client_attr_decode(struct context *ctx, const json_t *o, struct rl_qp_attr *a)
{
	const json_t *flag;
	size_t i;

	*a = (struct rl_qp_attr){ 0 };
	a->qp_state = state_of(json_object_get(o, "qp_state"));
	a->cur_qp_state = a->qp_state;
	a->sq_draining = json_is_true(json_object_get(o, "sq_draining"));
	a->path_mtu = mtu_of(json_object_get(o, "path_mtu"));
	json_array_foreach (json_object_get(o, "qp_access_flags"), i, flag) {
		for (unsigned int k = 0; k < ARRAY_LEN(accesses); k++) {
			if (strcmp(json_string_value(flag), accesses[k].name) == 0)
				a->qp_access_flags |= accesses[k].flag;
		}
	}
	if (json_is_object(json_object_get(o, "ah_attr")))
		decode_path(json_object_get(o, "ah_attr"), &a->ah_attr);
	a->ah_attr.port_num = a->port_num = port_of(ctx, o, "port");
	decode_alternate(ctx, o, a);
	/* clang-format off */
#define NUMBER(bit, field, key) \
	a->field = (__typeof__(a->field))number_of(json_object_get(o, key));
	NUMBERS(NUMBER)
#undef NUMBER
	/* clang-format on */
}
