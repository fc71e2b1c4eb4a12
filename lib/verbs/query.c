/* SPDX-License-Identifier: BSD-3-Clause */
/* What a device, its port, and its tables of GIDs and P_Keys are. */
#include <string.h>

#include <arpa/inet.h>

#include "vl.h"

#define DEFAULT_PKEY  0xffff
#define VENDOR_NONE   0xffffff /* as of the kernel's software devices; 0 would be an error */
#define ACK_DELAY     15       /* 4.096 us * 2^15 */
#define LINK_UP       5
#define LINK_DISABLED 3
/*
 * Software has no rate of its own. Models of programs want a valid one: 4X FDR10 is 40 Gbit/s.
 */
#define WIDTH_4X    2
#define SPEED_FDR10 8

#define MESSAGE_MAX (1u << 31)

/* ---- device ---------------------------------------------------------------------------------- */

static void
fill_device(struct ibv_context *ctx, const struct rl_device_attr *a, struct ibv_device_attr *out)
{
	*out = (struct ibv_device_attr){
		.node_guid = ibv_get_device_guid(ctx->device),
		.sys_image_guid = ibv_get_device_guid(ctx->device),
		.max_mr_size = a->max_mr_size,
		.vendor_id = VENDOR_NONE,
		.page_size_cap = ~(uint64_t)0xfff,
		.max_qp = a->max_qp,
		.max_qp_wr = a->max_qp_wr,
		.device_cap_flags = IBV_DEVICE_CURR_QP_STATE_MOD | IBV_DEVICE_PORT_ACTIVE_EVENT |
				    IBV_DEVICE_SYS_IMAGE_GUID | IBV_DEVICE_RC_RNR_NAK_GEN |
				    IBV_DEVICE_SRQ_RESIZE | IBV_DEVICE_XRC |
				    IBV_DEVICE_AUTO_PATH_MIG | IBV_DEVICE_MEM_WINDOW |
				    IBV_DEVICE_MEM_WINDOW_TYPE_2B | IBV_DEVICE_MEM_MGT_EXTENSIONS,
		.max_sge = a->max_sge,
		.max_sge_rd = a->max_sge,
		.max_cq = a->max_cq,
		.max_cqe = a->max_cqe,
		.max_mr = a->max_mr,
		.max_mw = a->max_mr, /* they count as regions */
		.max_pd = a->max_pd,
		.max_qp_rd_atom = a->max_qp_rd_atom,
		.max_res_rd_atom = a->max_qp_rd_atom * a->max_qp,
		.max_qp_init_rd_atom = a->max_qp_rd_atom,
		.atomic_cap = IBV_ATOMIC_HCA,
		.max_mcast_grp = a->max_mcast,
		.max_mcast_qp_attach = a->max_mcast,
		.max_total_mcast_qp_attach = a->max_mcast,
		.max_ah = a->max_ah,
		.max_srq = a->max_srq,
		.max_srq_wr = a->max_qp_wr,
		.max_srq_sge = a->max_sge,
		.max_pkeys = 1,
		.local_ca_ack_delay = ACK_DELAY,
		.phys_port_cnt = 1,
	};
	memcpy(out->fw_ver, a->fw_ver, sizeof(out->fw_ver));
}

int
ibv_query_device(struct ibv_context *ctx, struct ibv_device_attr *attr)
{
	struct rl_device_attr a;
	const int rc = rl_query_device(vl_context_of(ctx)->rl, &a);

	if (rc == 0)
		fill_device(ctx, &a, attr);
	return vl_result(rc);
}

int
vl_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t len)
{
	struct ibv_device_attr_ex a = { .comp_mask = 0 };
	int rc;

	if (input != NULL && input->comp_mask != 0)
		return vl_result(vl_why(-EINVAL, "a comp_mask of the input"));
	if (len < sizeof(a.orig_attr))
		return vl_result(vl_why(-EOPNOTSUPP, "no room for the attributes"));
	rc = ibv_query_device(ctx, &a.orig_attr);
	if (rc != 0)
		return rc;
	/* The dataplane's clock: nanoseconds. */
	a.completion_timestamp_mask = UINT64_MAX;
	a.hca_core_clock = 1000000; /* kHz */
	a.device_cap_flags_ex = a.orig_attr.device_cap_flags;
	a.phys_port_cnt_ex = 1;
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

int
vl_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values)
{
	struct rl_clock now;
	int rc;

	if ((values->comp_mask & IBV_VALUES_MASK_RAW_CLOCK) == 0) {
		values->comp_mask = 0;
		return 0;
	}
	rc = rl_query_clock(vl_context_of(ctx)->rl, &now);
	if (rc != 0)
		return vl_result(rc);
	values->comp_mask = IBV_VALUES_MASK_RAW_CLOCK;
	/* As adapters' providers do: what completions have, whole, in the one member. */
	values->raw_clock = (struct timespec){ .tv_nsec = (long)now.timestamp_ns };
	return 0;
}

/* ---- port ------------------------------------------------------------------------------------ */

static int
check_port(uint32_t port)
{
	return port == 1 ? 0 : -EINVAL;
}

int
vl_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len)
{
	const struct vl_context *c = vl_context_of(ctx);
	struct ibv_port_attr a = { .port_cap_flags = IBV_PORT_CM_SUP | IBV_PORT_IP_BASED_GIDS,
		.max_msg_sz = MESSAGE_MAX,
		.pkey_tbl_len = 1,
		.max_vl_num = 1,
		.active_width = WIDTH_4X,
		.active_speed = SPEED_FDR10,
		.link_layer = IBV_LINK_LAYER_ETHERNET,
		.flags = IBV_QPF_GRH_REQUIRED };
	struct rl_port_attr p;
	int rc = check_port(port);

	if (rc != 0)
		return vl_result(vl_why(rc, VL_ONE_PORT));
	rc = rl_query_port(c->rl, c->port, &p);
	if (rc != 0)
		return vl_result(rc);
	a.state = (enum ibv_port_state)p.state;
	a.max_mtu = (enum ibv_mtu)p.max_mtu;
	a.active_mtu = (enum ibv_mtu)p.active_mtu;
	a.gid_tbl_len = p.gid_tbl_len;
	a.phys_state = p.state == RL_PORT_ACTIVE ? LINK_UP : LINK_DISABLED;
	memset(attr, 0, len);
	memcpy(attr, &a, len < sizeof(a) ? len : sizeof(a));
	return 0;
}

/* The form before port_attr could grow: without the members behind link_layer's byte. */
int
ibv_query_port(struct ibv_context *ctx, uint8_t port, struct _compat_ibv_port_attr *attr)
{
	return vl_query_port(
		ctx, port, (struct ibv_port_attr *)attr, offsetof(struct ibv_port_attr, flags));
}

/* ---- tables ---------------------------------------------------------------------------------- */

int
vl_gids(struct ibv_context *ctx)
{
	const struct vl_context *c = vl_context_of(ctx);
	union rl_gid gid;
	int n = 0;

	while (rl_query_gid(c->rl, c->port, n, &gid) == 0)
		n++;
	return n;
}

int
ibv_query_gid(struct ibv_context *ctx, uint8_t port, int index, union ibv_gid *gid)
{
	const struct vl_context *c = vl_context_of(ctx);
	union rl_gid g;
	int rc = check_port(port);

	if (rc == 0)
		rc = rl_query_gid(c->rl, c->port, index, &g);
	if (rc != 0) {
		errno = -rc;
		return -1;
	}
	memcpy(gid->raw, g.raw, sizeof(gid->raw));
	return 0;
}

/* ibv_devinfo and pyverbs call it: of any of the nodes of symbols.def's PRIV. */
#define GID_TYPE(at) __asm__(".symver vl_query_gid_type, ibv_query_gid_type" at);
GID_TYPE("@@IBVERBS_PRIVATE_34")
GID_TYPE("@IBVERBS_PRIVATE_57")
GID_TYPE("@IBVERBS_PRIVATE_59")
GID_TYPE("@IBVERBS_PRIVATE_64")
GID_TYPE("@IBVERBS_PRIVATE_65")

int
vl_query_gid_type(struct ibv_context *ctx, uint8_t port, unsigned int index, unsigned int *type)
{
	if (port != 1 || index >= (unsigned int)vl_gids(ctx)) {
		errno = EINVAL;
		return -1;
	}
	*type = 1;
	return 0;
}

static void
put_entry(struct ibv_gid_entry *to, size_t size, const union ibv_gid *gid, uint32_t index)
{
	const struct ibv_gid_entry e = {
		.gid = *gid, .gid_index = index, .port_num = 1, .gid_type = IBV_GID_TYPE_ROCE_V2
	};

	memcpy(to, &e, size < sizeof(e) ? size : sizeof(e));
}

#define NO_FLAGS "flags, of which none is known"

int
_ibv_query_gid_ex(struct ibv_context *ctx, uint32_t port, uint32_t index,
	struct ibv_gid_entry *entry, uint32_t flags, size_t entry_size)
{
	union ibv_gid gid;

	if (flags != 0)
		return vl_result(vl_why(-EOPNOTSUPP, NO_FLAGS));
	if (port != 1)
		return vl_result(vl_why(-EINVAL, VL_ONE_PORT));
	/* ENODATA would be a hole in the table, and this one has none. */
	if (index > INT32_MAX || ibv_query_gid(ctx, 1, (int)index, &gid) != 0)
		return vl_result(vl_why(-EINVAL, "the port has no GID of this index"));
	memset(entry, 0, entry_size);
	put_entry(entry, entry_size, &gid, index);
	return 0;
}

ssize_t
_ibv_query_gid_table(struct ibv_context *ctx, struct ibv_gid_entry *entries, size_t max_entries,
	uint32_t flags, size_t entry_size)
{
	const int n = vl_gids(ctx);

	if (flags != 0)
		return -vl_result(vl_why(-EOPNOTSUPP, NO_FLAGS));
	if ((size_t)n > max_entries)
		return -vl_result(vl_why(-EINVAL, "no room for all GIDs"));
	for (int i = 0; i < n; i++) {
		void *to = (uint8_t *)entries + (size_t)i * entry_size;
		union ibv_gid gid;

		if (ibv_query_gid(ctx, 1, i, &gid) != 0)
			return -errno;
		memset(to, 0, entry_size);
		put_entry(to, entry_size, &gid, (uint32_t)i);
	}
	return n;
}

int
ibv_query_pkey(struct ibv_context *ctx, uint8_t port, int index, __be16 *pkey)
{
	(void)ctx;
	if (port != 1 || index != 0) {
		errno = EINVAL;
		return -1;
	}
	*pkey = htons(DEFAULT_PKEY);
	return 0;
}

int
ibv_get_pkey_index(struct ibv_context *ctx, uint8_t port, __be16 pkey)
{
	__be16 at;

	/* As libibverbs' does it: 0x7fff is another one. */
	if (ibv_query_pkey(ctx, port, 0, &at) == 0 && at == pkey)
		return 0;
	errno = EINVAL;
	return -1;
}
