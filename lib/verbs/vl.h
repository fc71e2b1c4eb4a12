/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VL_H
#define VL_H
/**
 * @file vl.h  Inside libibverbs.so.1: verbs' objects, and librocelane's behind them.
 *
 * Each struct begins with the public one of verbs.h, whose fields programs read, and points to
 * librocelane's object; that one's `…_context` points back. Functions with ibv_ in their names are
 * what the library exports (symbols.def) and are declared by verbs.h; vl_ is for what they share.
 *
 * Owner:   any thread, as libibverbs promises; librocelane has the locks.
 * Memory:  one allocation an object, from create to destroy. Devices stay for ever.
 * Depends: rocelane.h; verbs.h of libibverbs, at compile time only.
 */
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/queue.h>

#include <infiniband/verbs.h>

#include "include/rocelane.h"
#include "span.h"

/* Macros of verbs.h around functions that are defined here. */
#undef ibv_query_port
#undef ibv_reg_mr
#undef ibv_reg_mr_iova

/* Exported, and not declared by verbs.h. */
/** Where sysfs is. */
const char *ibv_get_sysfs_path(void);
/** A file's text without its last newline. @return its length; -1: not there, or empty. */
int ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size);
/** @return 0: nothing has to be done for a fork. */
int ibv_dontfork_range(void *base, size_t size);
/** As ibv_dontfork_range(). */
int ibv_dofork_range(void *base, size_t size);
/** Type 1 is RoCE v2. @return 0, or -1 with errno. */
int vl_query_gid_type(
	struct ibv_context *ctx, uint8_t port, unsigned int index, unsigned int *type);

struct vl_device {
	struct ibv_device pub;
	/*
	 * The rest of rdma-core's verbs_device: libmlx5 and libefa compare `ops` with their own
	 * when a program asks whether a device is theirs.
	 */
	const void *ops;
	int refcount;
	void *entry[2];
	void *sysfs;
	uint64_t core_support;
	/* Ours. */
	TAILQ_ENTRY(vl_device) all;
	uint8_t port; /* of the dataplane, from 1 */
	int index;
	uint8_t mac[6];
};

struct vl_context {
	struct rl_context *rl;
	uint8_t port;             /* of the dataplane */
	bool windows;             /* memory windows were made */
	TAILQ_HEAD(, vl_mr) mrs;  /* with the lock of vl_spans_lock() */
	struct verbs_context pub; /* last: verbs.h goes backwards from its end */
};

struct vl_pd {
	struct ibv_pd pub;
	struct rl_pd *rl;
	struct vl_pd *base; /* of a parent domain; NULL: it is none */
	struct vl_td *td;   /* of a parent domain, or NULL */
	uint32_t users;     /* of a parent domain: what was made with it; else parent domains */
};

struct vl_mr {
	struct ibv_mr pub;
	struct rl_mr *rl;
	TAILQ_ENTRY(vl_mr) all;
	struct vl_spans spans; /* memory that it holds */
	bool written;          /* LOCAL_WRITE */
};

struct vl_mw {
	struct ibv_mw pub;
	struct rl_mw *rl;
};

struct vl_xrcd {
	struct ibv_xrcd pub;
	struct rl_xrcd *rl;
	struct rl_pd *pd; /* for target QPs, which verbs give none; keys are checked by SRQs' */
};

struct vl_channel {
	struct ibv_comp_channel pub;
	struct rl_comp_channel *rl;
};

struct vl_cq {
	struct ibv_cq_ex pub;
	struct rl_cq *rl;
	struct rl_wc wc;         /* the one that start_poll() and next_poll() stand on */
	pthread_mutex_t polling; /* from start_poll() to end_poll(), if it is `locked` */
	bool locked;             /* several threads may poll */
	uint64_t to_wall;        /* to its time: the time of day, as set when it was made */
	struct ibv_pd *domain;   /* a parent domain that it was made with, or NULL */
};

struct vl_srq {
	struct ibv_srq pub;
	struct rl_srq *rl;
};

struct vl_ah {
	struct ibv_ah pub;
	struct rl_ah *rl;
};

/* Of rdma-core 45 and later; Debian 12 has 44. */
enum {
	VL_ACCESS_FLUSH_GLOBAL = 1 << 8,
	VL_ACCESS_FLUSH_PERSISTENT = 1 << 9,
	VL_WR_FLUSH = 14,
	VL_QP_EX_WITH_FLUSH = 1 << 11,
};

struct vl_qp {
	union {
		struct ibv_qp_ex pub;
		struct { /* pub as rdma-core 45 has it: one call more */
			uint8_t known[offsetof(struct ibv_qp_ex, wr_atomic_write) + sizeof(void *)];
			void (*wr_flush)(struct ibv_qp_ex *qp, uint32_t rkey, uint64_t addr,
				size_t len, uint8_t type, uint8_t level);
		} later;
	};
	struct rl_qp *rl;
	struct vl_builder *builder; /* of wr_start() and the calls after it; NULL: not asked for */
};

/**
 * A call is refused: errno is set. With $ROCELANE_WHY the reason goes to standard error, for
 * programs say "failed" alone. @param call a name of verbs'.
 */
void vl_refused(const char *call, int err);
/** As vl_refused(), for a reason that librocelane does not know. */
void vl_refused_because(const char *call, int err, const char *why);

/**
 * Why the next call of vl_refused() by this thread comes, where librocelane was not asked: what it
 * knows is of another call. @return err.
 */
int vl_why(int err, const char *why);

#define vl_result(rc) vl_result_of(__func__, rc)
#define vl_none(err)  vl_none_of(__func__, err)

/** The same where there is no memory. @return ENOMEM. */
static inline int
vl_no_memory(void)
{
	return vl_why(ENOMEM, "out of memory");
}

#define VL_ONE_PORT "a device has one port, number 1"

/** A call of verbs that returns an errno. @param rc of librocelane: 0 or -errno. */
static inline int
vl_result_of(const char *call, int rc)
{
	if (__builtin_expect(rc != 0, 0))
		vl_refused(call, -rc);
	return -rc;
}

/** The same for a call that returns an object. */
static inline void *
vl_none_of(const char *call, int err)
{
	vl_refused(call, err);
	return NULL;
}

/** Ours behind the context that the program has. */
static inline struct vl_context *
vl_context_of(struct ibv_context *ctx)
{
	return (struct vl_context *)(void *)((uint8_t *)ctx -
					     offsetof(struct vl_context, pub.context));
}

/** The GUID of a port's device: its MAC as EUI-64. */
static inline __be64
vl_guid(const uint8_t mac[6])
{
	const uint8_t eui[8] = { mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5] };
	__be64 guid;

	memcpy(&guid, eui, sizeof(guid));
	return guid;
}

/**
 * ibv_wc.sl: of a datagram the kind of its headers, as adapters for RoCE have it and UCX reads it:
 * 8 for RoCE v2, and 2 for IPv4 or 1 for IPv6.
 */
static inline uint8_t
vl_wc_sl(const struct rl_wc *wc)
{
	return (wc->wc_flags & RL_WC_GRH) == 0 ? 0 : wc->grh_ip == 4 ? 8 | 2 : 8 | 1;
}

/** Regions that are left end with the device, and so does its rl_context. */
void vl_close_regions(struct vl_context *c);
/** Fill the tables of calls that verbs.h makes without the linker. */
void vl_context_ops(struct vl_context *c);

/** verbs_context.query_port: at most `len` bytes are written. @return 0 or an errno. */
int vl_query_port(struct ibv_context *ctx, uint8_t port, struct ibv_port_attr *attr, size_t len);
/** verbs_context.query_device_ex: at most `len` bytes are written. @return 0 or an errno. */
int vl_query_device_ex(struct ibv_context *ctx, const struct ibv_query_device_ex_input *input,
	struct ibv_device_attr_ex *attr, size_t len);
/** verbs_context.query_rt_values: the clock of completion_ts. @return 0 or an errno. */
int vl_query_rt_values(struct ibv_context *ctx, struct ibv_values_ex *values);
/** Calls for thread and parent domains. */
void vl_domain_ops(struct verbs_context *pub);
/** Is it a parent domain? */
bool vl_is_parent_domain(const struct ibv_pd *pd);
/** Something was made with it, or is gone again. @param by 1 or -1. */
void vl_pd_used(struct ibv_pd *pd, int by);
/** Free a parent domain, but not what it stands for. @return 0, or -EBUSY. */
int vl_parent_domain_free(struct vl_pd *pd);
/** How many GIDs the port has. */
int vl_gids(struct ibv_context *ctx);

/** Tables of ibv_cq and ibv_qp: poll, arm, post. @return as verbs.h says of the inline calls. */
int vl_poll_cq(struct ibv_cq *cq, int n, struct ibv_wc *wc);
/** @return 0 or an errno. */
int vl_req_notify_cq(struct ibv_cq *cq, int solicited_only);
/** @return 0 or an errno, with *bad at the request that was refused. */
int vl_post_send(struct ibv_qp *qp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
/** As vl_post_send(). */
int vl_post_recv(struct ibv_qp *qp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** As vl_post_send(). */
int vl_post_srq_recv(struct ibv_srq *srq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
/** verbs_context.create_cq_ex. @return NULL with errno. */
struct ibv_cq_ex *vl_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *init);
/** verbs_context.create_qp_ex. @return NULL with errno. */
struct ibv_qp *vl_create_qp_ex(struct ibv_context *ctx, struct ibv_qp_init_attr_ex *init);
/** verbs_context.create_srq_ex. @return NULL with errno. */
struct ibv_srq *vl_create_srq_ex(struct ibv_context *ctx, struct ibv_srq_init_attr_ex *init);
/** Fill the calls of ibv_qp_ex. @param cap what the QP got. @return 0 or an errno. */
int vl_builder_init(
	struct vl_qp *qp, const struct ibv_qp_init_attr_ex *init, const struct rl_qp_cap *cap);
/** What it took. */
void vl_builder_free(struct vl_qp *qp);
/** Fill the calls of ibv_cq_ex. @param locked several threads may poll. */
void vl_cq_ex_init(struct vl_cq *cq, bool locked);

/** Calls for memory windows. */
void vl_mw_ops(struct ibv_context_ops *ops);
/** A target of an XRC domain that another process made. */
struct ibv_qp *vl_open_qp(struct ibv_context *ctx, struct ibv_qp_open_attr *attr);
/** Calls for XRC domains. */
void vl_xrc_ops(struct verbs_context *pub);
/** What a bind names, as librocelane has it. */
void vl_bind_to(struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info,
	struct rl_send_wr *wr);

/** A path as librocelane has it. @return 0 or an errno: it is none of this port. */
int vl_path_to(struct vl_context *c, const struct ibv_ah_attr *from, struct rl_ah_attr *to);
/** Is it ::ffff:a.b.c.d, and so of IPv4? */
bool vl_is_v4(const uint8_t gid[16]);

#endif
