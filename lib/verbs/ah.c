/* SPDX-License-Identifier: BSD-3-Clause */
/* Paths, address handles, multicast. */
#include <stdlib.h>
#include <string.h>

#include "vl.h"

#include "include/rocelane_mcast.h"

static const uint8_t v4_mapped[12] = { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff };

bool
vl_is_v4(const uint8_t gid[16])
{
	return memcmp(gid, v4_mapped, sizeof(v4_mapped)) == 0;
}

int
vl_path_to(struct vl_context *c, const struct ibv_ah_attr *from, struct rl_ah_attr *to)
{
	union rl_gid own;

	/* As the kernel does it. Each port is a device of its own. */
	if (from->port_num != 1)
		return vl_why(EINVAL, VL_ONE_PORT);
	if (from->is_global == 0)
		return vl_why(EINVAL, "a path without a GID (is_global 0): RoCE has no LIDs");
	if (rl_query_gid(c->rl, c->port, from->grh.sgid_index, &own) != 0)
		return EINVAL;
	if (vl_is_v4(own.raw) != vl_is_v4(from->grh.dgid.raw))
		return vl_why(EINVAL, "one of sgid_index's GID and dgid is IPv4, the other IPv6");
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
	struct vl_context *c = vl_context_of(pd->context);
	struct vl_ah *ah = calloc(1, sizeof(*ah));
	struct rl_ah_attr a;
	int err;

	if (ah == NULL)
		return vl_none(vl_no_memory());
	err = vl_path_to(c, attr, &a);
	if (err == 0)
		err = -rl_create_ah(((struct vl_pd *)pd)->rl, &a, &ah->rl);
	if (err != 0) {
		free(ah);
		return vl_none(err);
	}
	vl_pd_used(pd, 1);
	ah->pub.context = pd->context;
	ah->pub.pd = pd;
	return &ah->pub;
}

int
ibv_destroy_ah(struct ibv_ah *pub)
{
	struct vl_ah *ah = (struct vl_ah *)pub;
	const int rc = rl_destroy_ah(ah->rl);

	if (rc == 0) {
		vl_pd_used(pub->pd, -1);
		free(ah);
	}
	return vl_result(rc);
}

/*
 * The 40 bytes in front of a datagram hold an IPv6 header, or an IPv4 header in their second half,
 * behind 20 bytes of zeros.
 */
static int
header_to_path(struct vl_context *c, const uint8_t *header, struct ibv_ah_attr *attr)
{
	const uint8_t *v4 = header + 20;
	union rl_gid own;

	if (v4[0] == 0x45 && (header[0] >> 4) != 6) {
		memcpy(attr->grh.dgid.raw, v4_mapped, sizeof(v4_mapped));
		memcpy(attr->grh.dgid.raw + sizeof(v4_mapped), v4 + 12, 4);
		attr->grh.traffic_class = v4[1];
	} else if ((header[0] >> 4) == 6) {
		memcpy(attr->grh.dgid.raw, header + 8, sizeof(attr->grh.dgid.raw));
		attr->grh.traffic_class = (uint8_t)(header[0] << 4 | header[1] >> 4);
		attr->grh.flow_label =
			(uint32_t)(header[1] & 15) << 16 | (uint32_t)header[2] << 8 | header[3];
	} else {
		return vl_why(EBADMSG, "no header of IPv4 or IPv6");
	}
	for (int i = 0; rl_query_gid(c->rl, c->port, i, &own) == 0; i++) {
		if (vl_is_v4(own.raw) == vl_is_v4(attr->grh.dgid.raw)) {
			attr->grh.sgid_index = (uint8_t)i;
			return 0;
		}
	}
	return vl_why(ENOENT, "the port has no address of the header's family");
}

int
ibv_init_ah_from_wc(struct ibv_context *ctx, uint8_t port_num, struct ibv_wc *wc,
	struct ibv_grh *grh, struct ibv_ah_attr *attr)
{
	int err;

	memset(attr, 0, sizeof(*attr));
	if (port_num != 1)
		return vl_result(vl_why(-EINVAL, VL_ONE_PORT));
	if ((wc->wc_flags & IBV_WC_GRH) == 0)
		return vl_result(vl_why(-EINVAL, "the completion has no IBV_WC_GRH"));
	attr->port_num = port_num;
	attr->is_global = 1;
	attr->grh.hop_limit = UINT8_MAX;
	err = header_to_path(vl_context_of(ctx), (const uint8_t *)grh, attr);
	return vl_result(-err);
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
	return vl_result(vl_why(-EOPNOTSUPP, "the dataplane finds MACs"));
}

/* ---- multicast ------------------------------------------------------------------------------- */

int
ibv_attach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	union rl_gid group;
	int rc;

	memcpy(group.raw, gid->raw, sizeof(group.raw));
	(void)lid;
	/* As the kernel: also before the queue pair is told its port. */
	rc = rl_attach_mcast_at(((struct vl_qp *)qp)->rl, &group, vl_context_of(qp->context)->port);
	/* The kernel says yes to a member. */
	return vl_result(rc != -EEXIST ? rc : 0);
}

int
ibv_detach_mcast(struct ibv_qp *qp, const union ibv_gid *gid, uint16_t lid)
{
	union rl_gid group;

	memcpy(group.raw, gid->raw, sizeof(group.raw));
	return vl_result(rl_detach_mcast(((struct vl_qp *)qp)->rl, &group, lid));
}
