/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths, address handles, multicast. */
#include <string.h>

#include "vl.h"

static const uint8_t v4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

static int
is_v4(const uint8_t *gid)
{
	return memcmp(gid, v4_mapped, sizeof(v4_mapped)) == 0;
}

int
vl_path_to(struct vl_context *c, const struct ibv_ah_attr *from, struct rl_ah_attr *to)
{
	union rl_gid own;

	if (from->is_global == 0)
		return EINVAL; /* RoCE has no other paths */
	if (rl_query_gid(c->rl, c->port, from->grh.sgid_index, &own) != 0 ||
		is_v4(own.raw) != is_v4(from->grh.dgid.raw))
		return EINVAL;
	*to = (struct rl_ah_attr){ .is_global = 1, .port_num = c->port };
	memcpy(to->grh.dgid.raw, from->grh.dgid.raw, sizeof(to->grh.dgid.raw));
	to->grh.flow_label = from->grh.flow_label;
	to->grh.hop_limit = from->grh.hop_limit;
	to->grh.traffic_class = from->grh.traffic_class;
	return 0;
}

/* ---- address handles ------------------------------------------------------------------------- */

struct ibv_ah *
ibv_create_ah(struct ibv_pd *pd, struct ibv_ah_attr *attr)
{
	(void)pd;
	(void)attr;
	return vl_none(EOPNOTSUPP);
}

int
ibv_destroy_ah(struct ibv_ah *ah)
{
	(void)ah;
	return vl_result(-EOPNOTSUPP);
}

int
ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *ah_attr)
{
	(void)ctx;
	(void)port_num;
	(void)wc;
	(void)grh;
	(void)ah_attr;
	return vl_result(-EOPNOTSUPP);
}

struct ibv_ah *
ibv_create_ah_from_wc(struct ibv_pd *pd, struct ibv_wc *wc, struct ibv_grh *grh, uint8_t port_num)
{
	struct ibv_ah_attr attr;

	if (ibv_init_ah_from_wc(pd->context, port_num, wc, grh, &attr) != 0)
		return NULL;
	return ibv_create_ah(pd, &attr);
}

/* The dataplane finds MACs. */
int
ibv_resolve_eth_l2_from_gid(
	struct ibv_context *ctx, struct ibv_ah_attr *attr, uint8_t eth_mac[6], uint16_t *vid)
{
	(void)ctx;
	(void)attr;
	(void)eth_mac;
	(void)vid;
	return vl_result(-EOPNOTSUPP);
}

/* ---- multicast ------------------------------------------------------------------------------- */

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return vl_result(-EOPNOTSUPP);
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	(void)qp;
	(void)gid;
	(void)lid;
	return vl_result(-EOPNOTSUPP);
}
