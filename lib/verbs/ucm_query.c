/* SPDX-License-Identifier: BSD-3-Clause */
/* What librdmacm asks about an id: its device, addresses, path, and its queue pair's attributes. */
#include <netinet/in.h>
#include <string.h>

#include "ucm.h"

#define NO_INDEX     0xffffffffu /* devices are told apart by their GUIDs */
#define DEFAULT_PKEY 0xffff
#define PATH_LIFE    18
#define HOP_LIMIT    64

/* ---- ports ----------------------------------------------------------------------------------- */

union rl_gid
ucm_gid_of(const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)addr;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)addr;
	union rl_gid gid = { 0 };

	if (addr->sa_family == AF_INET6) {
		memcpy(gid.raw, &in6->sin6_addr, sizeof(gid.raw));
	} else if (addr->sa_family == AF_INET) {
		gid.raw[10] = gid.raw[11] = 0xff;
		memcpy(&gid.raw[12], &in->sin_addr, sizeof(in->sin_addr));
	}
	return gid;
}

static bool
is_ipv4(const union rl_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

bool
ucm_is_any(const struct sockaddr *addr)
{
	static const uint8_t none[16];
	const union rl_gid gid = ucm_gid_of(addr);
	const size_t at = addr->sa_family == AF_INET ? 12 : 0;

	return memcmp(&gid.raw[at], none, sizeof(none) - at) == 0;
}

bool
ucm_is_loopback(const struct sockaddr *addr)
{
	static const union rl_gid one = { .raw = { [15] = 1 } };
	static const uint8_t mapped[13] = { [10] = 0xff, 0xff, 127 };
	const union rl_gid gid = ucm_gid_of(addr);

	return memcmp(gid.raw, mapped, sizeof(mapped)) == 0 ||
	       memcmp(gid.raw, one.raw, sizeof(one.raw)) == 0;
}

/* The port stays. */
static void
set_gid(struct sockaddr *addr, const union rl_gid *gid)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)addr;

	if (addr->sa_family == AF_INET)
		memcpy(&in->sin_addr, &gid->raw[12], sizeof(in->sin_addr));
	else
		memcpy(&in6->sin6_addr, gid->raw, sizeof(gid->raw));
}

void
ucm_make_any(struct sockaddr *addr)
{
	static const union rl_gid none;

	set_gid(addr, &none);
}

int
ucm_to_self(struct rl_context *ctx, const struct sockaddr *own, struct sockaddr *to)
{
	const bool bound = own->sa_family == to->sa_family && !ucm_is_any(own);
	union rl_gid gid = ucm_gid_of(own);
	struct rl_port_attr attr;

	if (to->sa_family != AF_INET && to->sa_family != AF_INET6)
		return 0; /* the library refuses it */
	for (uint8_t port = 1; !bound && port <= ctx->num_ports; port++) {
		if (rl_query_port(ctx, port, &attr) != 0 || attr.state != RL_PORT_ACTIVE)
			continue;
		for (int i = 0; rl_query_gid(ctx, port, i, &gid) == 0; i++) {
			if (is_ipv4(&gid) == (to->sa_family == AF_INET)) {
				set_gid(to, &gid);
				return 0;
			}
		}
	}
	if (!bound)
		return ucm_fail(ENODEV, "no port that is up has an address of the family");
	set_gid(to, &gid);
	return 0;
}

/* @return its index at the port, or -1. */
static int
index_of(struct rl_context *ctx, uint8_t port, const union rl_gid *gid)
{
	union rl_gid own;

	for (int i = 0; rl_query_gid(ctx, port, i, &own) == 0; i++) {
		if (memcmp(own.raw, gid->raw, sizeof(own.raw)) == 0)
			return i;
	}
	return -1;
}

/* ---- device, addresses, path ----------------------------------------------------------------- */

static void
fill_path(const struct ucm_id *id, const struct rl_port_attr *attr, struct ib_user_path_rec *path)
{
	const union rl_gid own = ucm_gid_of(rl_cm_get_local_addr(id->rl));
	const union rl_gid peer = ucm_gid_of(rl_cm_get_peer_addr(id->rl));

	memcpy(path->sgid, own.raw, sizeof(own.raw));
	memcpy(path->dgid, peer.raw, sizeof(peer.raw));
	path->pkey = htons(DEFAULT_PKEY);
	path->reversible = 1;
	path->numb_path = 1;
	path->hop_limit = HOP_LIMIT;
	path->mtu = attr->active_mtu;
	path->mtu_selector = path->packet_life_time_selector = 2; /* exactly */
	path->packet_life_time = PATH_LIFE;
}

/* What an id listens at that was bound to it: all ports hear it. */
static void
set_loopback(struct sockaddr *addr)
{
	union rl_gid gid = { 0 };

	gid.raw[12] = addr->sa_family == AF_INET ? 127 : 0;
	gid.raw[15] = 1;
	set_gid(addr, &gid);
}

int
ucm_query_route(const struct ucm_call *call)
{
	struct rdma_ucm_query_route_resp resp = { .ibdev_index = NO_INDEX };
	struct ucm_id *id = call->id;
	struct rl_port_attr attr;
	uint8_t port;
	int rc;

	memcpy(&resp.src_addr, rl_cm_get_local_addr(id->rl), sizeof(resp.src_addr));
	if (id->loopback && ucm_is_any((struct sockaddr *)&resp.src_addr))
		set_loopback((struct sockaddr *)&resp.src_addr);
	memcpy(&resp.dst_addr, rl_cm_get_peer_addr(id->rl), sizeof(resp.dst_addr));
	port = id->rl->port_num;
	if (port != 0) {
		rc = rl_query_port(call->file->channel->context, port, &attr);
		if (rc != 0)
			return rc;
		resp.node_guid = vl_guid(attr.mac);
		resp.port_num = 1; /* each port is a device of its own */
		resp.num_paths = id->routed ? 1 : 0;
		fill_path(id, &attr, &resp.ib_route[0]);
	}
	ucm_answer(call, call->in->query.response, &resp, sizeof(resp));
	return 0;
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

/* Datagrams' queue pairs have no peer. */
static int
datagram_attr(const struct rl_cm_id *id, struct rl_qp_attr *attr, int *mask)
{
	attr->qkey = UCM_QKEY;
	*mask = RL_QP_STATE;
	if (attr->qp_state == RL_QPS_INIT)
		*mask |= RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_QKEY;
	else if (attr->qp_state == RL_QPS_RTS)
		*mask |= RL_QP_SQ_PSN;
	return id->port_num != 0 ? 0 : ucm_fail(EINVAL, "the id has no port yet");
}

void
ucm_path_to(struct rl_cm_id *id, const struct rl_ah_attr *from, struct ib_uverbs_ah_attr *to)
{
	const union rl_gid own = ucm_gid_of(rl_cm_get_local_addr(id));
	const int at = index_of(id->context, id->port_num, &own);

	memcpy(to->grh.dgid, from->grh.dgid.raw, sizeof(to->grh.dgid));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.sgid_index = (uint8_t)(at > 0 ? at : 0);
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	to->is_global = 1;
	to->port_num = 1;
}

/*
 * As Linux has it: 655.36 ms. Programs that ask for few retries after an RNR NAK count on that:
 * with the 0.64 ms of librocelane they fail where the CPUs are busy.
 */
#define RNR_TIMER 0

int
ucm_init_qp_attr(const struct ucm_call *call)
{
	struct rl_qp_attr a = { .qp_state = (enum rl_qp_state)call->in->init_qp_attr.qp_state };
	struct ucm_id *id = call->id;
	struct ib_uverbs_qp_attr resp = { 0 };
	int rc, mask;

	rc = id->rl->qp_type == RL_QPT_UD ? datagram_attr(id->rl, &a, &mask)
					  : rl_cm_init_qp_attr(id->rl, &a, &mask);
	if (rc != 0)
		return rc;
	resp.qp_attr_mask = (uint32_t)mask;
	resp.qp_state = a.qp_state;
	resp.path_mtu = a.path_mtu;
	resp.qkey = a.qkey;
	resp.rq_psn = a.rq_psn;
	resp.sq_psn = a.sq_psn;
	resp.dest_qp_num = a.dest_qp_num;
	resp.qp_access_flags = a.qp_access_flags;
	resp.max_rd_atomic = a.max_rd_atomic;
	resp.max_dest_rd_atomic = a.max_dest_rd_atomic;
	resp.min_rnr_timer = RNR_TIMER;
	/* As Linux has it: what this side has set counts for its queue pair, whatever is agreed. */
	resp.timeout = id->has_timeout ? id->timeout : a.timeout;
	resp.retry_cnt = a.retry_cnt;
	resp.rnr_retry = a.rnr_retry;
	resp.port_num = 1;
	if ((mask & RL_QP_AV) != 0)
		ucm_path_to(id->rl, &a.ah_attr, &resp.ah_attr);
	ucm_answer(call, call->in->init_qp_attr.response, &resp, sizeof(resp));
	return 0;
}
