/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_H
#define ROCELANE_H
/**
 * @file rocelane.h  librocelane: RDMA verbs over a rocelane dataplane on the same machine.
 *
 * Names are libibverbs' with rl_ for ibv_ and RL_ for IBV_; values are the same. What differs:
 *   - a call returns 0 or -errno, and gives an object out through its last parameter;
 *     rl_last_error() has the reason in words, as the dataplane gave it;
 *   - when the dataplane has ended, every call that needs it returns -EIO, posting and rl_poll_cq()
 *     (of a queue that is empty: each eighth call looks) within a fraction of a second; there is no
 *     way back but rl_close() and rl_open();
 *   - memory of a region is the library's (rl_mem_alloc()) or a memfd of yours (rl_reg_mr_fd()):
 *     the dataplane maps it, so that a private mapping or the heap will not do;
 *   - the connection ends with the process that called rl_open(): a child left behind has none;
 *   - paths are made from IP addresses (rl_gid_from_ip()); the port finds the MAC.
 *
 * How it works: creating, changing and destroying go over the control socket, data goes over rings
 * in memory that the dataplane shares with this process: rl_post_send() and rl_post_recv() write a
 * work queue entry, rl_poll_cq() reads completions, none of them makes a system call. A send also
 * writes the QP's number into a doorbell ring, one for each worker of the dataplane, unless the
 * worker has not looked at the last one yet: idle QPs cost nothing. What a client makes is its own:
 * no other client can use or see it, and all of it goes when the connection ends, however the
 * process ends.
 *
 * Owner:   any thread may call anything at any time; calls on one queue of one QP, on one CQ,
 *          and all calls that create, change, destroy or fetch events take turns by a lock. A queue
 *          that only one thread uses costs an uncontended lock (about 20 cycles). An object must
 *          not be destroyed while another thread uses it. After fork() only the parent may go on.
 *          A thread can be cancelled (pthread_cancel()) where it waits for events, nowhere else.
 * Memory:  objects belong to the library from create to destroy; fields below are for reading.
 *          Buffers must stay in place until the completion that follows is polled.
 * Depends: libc.
 * Spec:    IBTA vol. 1, chapters 10 and 11 (verbs).
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rocelane_enums.h"
#include "rocelane_mw.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RL_DEFAULT_SOCKET "/run/rocelane.sock"

/* ---- objects --------------------------------------------------------------------------------- */

struct rl_context {
	int async_fd; /* readable: rl_get_async_event() has something */
	uint8_t num_ports;
	uint32_t client; /* number of this client, as the dataplane's log and lists show it */
};

struct rl_pd {
	struct rl_context *context;
};

struct rl_mr {
	struct rl_context *context;
	struct rl_pd *pd;
	void *addr;
	size_t length; /* bytes */
	uint32_t lkey;
	uint32_t rkey;
};

struct rl_comp_channel {
	struct rl_context *context;
	int fd; /* for poll() and epoll(7), but EPOLLEXCLUSIVE: rl_get_cq_event() has something */
};

struct rl_cq {
	struct rl_context *context;
	struct rl_comp_channel *channel;
	void *cq_context;
	int cqe; /* entries, at least as many as were asked for */
};

struct rl_ah {
	struct rl_context *context;
	struct rl_pd *pd;
};

struct rl_xrcd {
	struct rl_context *context;
};

struct rl_srq {
	struct rl_context *context;
	struct rl_pd *pd;
	void *srq_context;
	enum rl_srq_type srq_type;
	struct rl_xrcd *xrcd; /* of type XRC, as what follows */
	struct rl_cq *cq;
	uint32_t srq_num; /* what peers' requests name: rl_get_srq_num() */
};

struct rl_qp {
	struct rl_context *context;
	void *qp_context;
	struct rl_pd *pd;
	struct rl_cq *send_cq;
	struct rl_cq *recv_cq;
	struct rl_srq *srq;
	uint32_t qp_num;
	enum rl_qp_state state; /* by rl_modify_qp(); rl_query_qp() asks the dataplane */
	enum rl_qp_type qp_type;
};

/* ---- device and ports ------------------------------------------------------------------------ */

/** Limits of this client (`control.client_limits`) and of the dataplane. */
struct rl_device_attr {
	char fw_ver[64]; /* the dataplane's version */
	uint64_t max_mr_size;
	uint64_t max_memory; /* bytes in all regions and rings of this client */
	int max_qp;
	int max_qp_wr;          /* of one queue */
	int max_outstanding_wr; /* of all queues of this client */
	int max_sge;
	int max_inline_data;
	int max_cq;
	int max_cqe;
	int max_mr;
	int max_pd;
	int max_srq;
	int max_ah;
	int max_mcast; /* memberships in multicast groups */
	int max_qp_rd_atom;
	uint8_t phys_port_cnt;
	uint8_t placement; /* 1: ATOMIC WRITE and FLUSH can be posted (knob ops.placement) */
};

struct rl_port_attr {
	char name[64]; /* as in the configuration */
	enum rl_port_state state;
	enum rl_mtu max_mtu;
	enum rl_mtu active_mtu; /* the largest path MTU that fits the port */
	int gid_tbl_len;
	uint8_t mac[6];
};

/** An IPv6 address, or an IPv4 address as ::ffff:a.b.c.d. */
union rl_gid {
	uint8_t raw[16];
};

/**
 * Connect to a dataplane. @param socket path of its socket; NULL: $ROCELANE_SOCKET, or, where that
 * is empty or not set, RL_DEFAULT_SOCKET. @return 0; -ENOENT, -ECONNREFUSED: nobody is there;
 * -EACCES; -EPROTO: not a rocelane, or one whose rings this library does not know; -ETIMEDOUT: it
 * does not answer in half a minute, or one of its workers does not.
 */
int rl_open(const char *socket, struct rl_context **ctx);
/** Everything that is left of this client goes with it. @return 0. */
int rl_close(struct rl_context *ctx);
/** What the dataplane is, and how much of everything one client may have. @return 0, or -errno. */
int rl_query_device(struct rl_context *ctx, struct rl_device_attr *attr);
/** One moment on two clocks. */
struct rl_clock {
	uint64_t timestamp_ns; /* as in struct rl_wc */
	uint64_t wall_ns;      /* since 1970, UTC */
};
/** The present. @return 0, or -errno. */
int rl_query_clock(struct rl_context *ctx, struct rl_clock *now);
/** @param port_num from 1. @return -EINVAL: no such port. */
int rl_query_port(struct rl_context *ctx, uint8_t port_num, struct rl_port_attr *attr);
/** Addresses of a port, IPv4 first. @return -EINVAL: no such port or index. */
int rl_query_gid(struct rl_context *ctx, uint8_t port_num, int index, union rl_gid *gid);
/** "10.77.0.2" or "fd77::2". @return -EINVAL: it is no address. */
int rl_gid_from_ip(const char *ip, union rl_gid *gid);

/* ---- protection domains, memory -------------------------------------------------------------- */

/** Make a protection domain. @return 0, or -errno (rl_last_error() says why). */
int rl_alloc_pd(struct rl_context *ctx, struct rl_pd **pd);
/** @return -EBUSY: something is left in it. */
int rl_dealloc_pd(struct rl_pd *pd);

/** Zeroed memory for regions: on hugepages, if there are any, from 2 MiB on. @return -ENOMEM. */
int rl_mem_alloc(struct rl_context *ctx, size_t length, void **addr);
/** @return -EBUSY: a region is left in it; -EINVAL: no memory of rl_mem_alloc(). */
int rl_mem_free(struct rl_context *ctx, void *addr);

/**
 * Register memory of rl_mem_alloc(), all or a part of it. @param addr NULL: the library allocates
 * `length` bytes itself, at mr->addr, and frees them with the region.
 * @param access enum rl_access_flags. @return -EINVAL: not such memory; -ENOMEM: over the limit.
 */
int rl_reg_mr(struct rl_pd *pd, void *addr, size_t length, int access, struct rl_mr **mr);
/**
 * Register `length` bytes at `offset` of your own memfd. It must have F_SEAL_SHRINK set, not
 * F_SEAL_SEAL, and no holes: write to all of its pages first. The dataplane maps all of it once,
 * counts all of it against limits.max_memory, and adds F_SEAL_FUTURE_WRITE and F_SEAL_GROW: map it
 * before; your mappings go on writing. Another process cannot register it any more
 * (`control.client_memory` of the dataplane may allow what this does not).
 * @param addr where you have mapped them; the addresses of work requests count from here.
 * @return -EPERM: not sealed, or cannot be; -ENODATA: holes; -EBADF: fd is not open; -EINVAL: no
 * memfd, or too small, or `addr` and `offset` differ modulo 8 and REMOTE_ATOMIC is asked for: no
 * processor could do that.
 */
int rl_reg_mr_fd(struct rl_pd *pd, int fd, uint64_t offset, void *addr, size_t length, int access,
	struct rl_mr **mr);
/**
 * The same as rl_reg_mr_fd() for memory that regions come and go with: when the last region of the
 * memfd is deregistered the dataplane gives it back, and cannot have it again.
 */
int rl_reg_mr_once(struct rl_pd *pd, int fd, uint64_t offset, void *addr, size_t length, int access,
	struct rl_mr **mr);
/**
 * Never refused because of posted or running work: what comes later fails its key check.
 * @return -EBUSY: memory windows are bound to it.
 */
int rl_dereg_mr(struct rl_mr *mr);

/* ---- completion queues ----------------------------------------------------------------------- */

/**
 * Make a channel for events of CQs; channel->fd may be polled. It is readable when there is an
 * event, and when the dataplane is gone; of that the first 48 channels of a context tell, those of
 * connections included: the kernel lets one file be in no more sets of sets. @return 0, or -errno.
 */
int rl_create_comp_channel(struct rl_context *ctx, struct rl_comp_channel **channel);
/** @return -EBUSY: a CQ uses it. */
int rl_destroy_comp_channel(struct rl_comp_channel *channel);

/** @param channel for rl_req_notify_cq(); may be NULL. */
int rl_create_cq(struct rl_context *ctx, int cqe, void *cq_context, struct rl_comp_channel *channel,
	struct rl_cq **cq);
/** Waits until the CQ's events are acknowledged. @return -EBUSY: a QP uses it. */
int rl_destroy_cq(struct rl_cq *cq);

struct rl_wc {
	uint64_t wr_id;
	enum rl_wc_status status;
	enum rl_wc_opcode opcode; /* on success only, as all that follows */
	uint32_t vendor_err;      /* FATAL code of the dataplane; valid on errors */
	uint32_t byte_len;
	union {
		uint32_t imm_data;         /* network order, with RL_WC_WITH_IMM */
		uint32_t invalidated_rkey; /* with RL_WC_WITH_INV */
	};
	uint32_t qp_num; /* valid on errors, too */
	uint32_t src_qp;
	unsigned int wc_flags; /* Below: not of libibverbs. */
	uint32_t psn;          /* of the packet that caused an error */
	uint8_t grh_ip;        /* with RL_WC_GRH: version of the IP header there, 4 or 6 */
	uint64_t timestamp_ns; /* when it was added; rl_query_clock() */
};

/**
 * @return completions taken, at most `num_entries`; -EIO: there are no more, and the dataplane is
 * gone. Cost: a cache line each; no system call, but for one in 100 ms while there is nothing, and
 * to leave the CPU to a worker that is there, or to others where there are fewer than three CPUs.
 */
int rl_poll_cq(struct rl_cq *cq, int num_entries, struct rl_wc *wc);
/**
 * Ask for one event on the CQ's channel: for the next completion, or for one that is there and was
 * not polled. @param solicited_only leave completions out that are neither solicited nor errors.
 * No system call. @return -EINVAL: the CQ has no channel.
 */
int rl_req_notify_cq(struct rl_cq *cq, int solicited_only);
/** Wait for an event (set O_NONBLOCK on channel->fd for -EAGAIN). @return -EIO: dataplane gone. */
int rl_get_cq_event(struct rl_comp_channel *channel, struct rl_cq **cq, void **cq_context);
/** Say that `nevents` events of the CQ were dealt with: rl_destroy_cq() waits for all of them. */
void rl_ack_cq_events(struct rl_cq *cq, unsigned int nevents);

/* ---- queue pairs ----------------------------------------------------------------------------- */

struct rl_qp_cap {
	uint32_t max_send_wr;
	uint32_t max_recv_wr;
	uint32_t max_send_sge;
	uint32_t max_recv_sge;
	uint32_t max_inline_data; /* bytes */
};

struct rl_qp_init_attr {
	void *qp_context;
	struct rl_cq *send_cq;
	struct rl_cq *recv_cq;
	struct rl_srq *srq;   /* or NULL; with one, max_recv_wr and max_recv_sge count as 0 */
	struct rl_qp_cap cap; /* in: at least; out: what there is */
	enum rl_qp_type qp_type;
	int sq_sig_all;
	struct rl_xrcd *xrcd; /* of RL_QPT_XRC_RECV, which has no CQs and no SRQ */
};

struct rl_global_route {
	union rl_gid dgid;
	/*
	 * 20 bits, of IPv6 packets; the UDP source port is made of it as Linux does it
	 * (ibv_flow_label_to_udp_sport()), of IPv4 packets, too. 0: a port by the queue pair.
	 */
	uint32_t flow_label;
	uint8_t sgid_index; /* not used: the port's address of the same family */
	uint8_t hop_limit;  /* 0: 64 */
	uint8_t traffic_class;
};

struct rl_ah_attr {
	struct rl_global_route grh;
	uint8_t is_global; /* must not be 0 */
	uint8_t port_num;
	uint8_t dmac[6]; /* all zero: the port resolves it */
	uint16_t vlan;   /* 0: no tag */
	uint8_t vlan_priority;
};

struct rl_qp_attr {
	enum rl_qp_state qp_state;
	enum rl_qp_state cur_qp_state;
	enum rl_mtu path_mtu;
	enum rl_mig_state path_mig_state;
	uint32_t qkey;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint32_t dest_qp_num;
	unsigned int qp_access_flags;
	struct rl_qp_cap cap;
	struct rl_ah_attr ah_attr;
	struct rl_ah_attr alt_ah_attr;
	uint16_t pkey_index; /* 0: the default key 0xffff */
	uint16_t alt_pkey_index;
	uint8_t en_sqd_async_notify;
	uint8_t sq_draining;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
	uint8_t min_rnr_timer;
	uint8_t port_num;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t alt_port_num;
	uint8_t alt_timeout;
	uint32_t rq_limit; /* RL_EVENT_RQ_LIMIT_REACHED once when fewer are posted; 0: none */
};

/** The number is unpredictable. @return -ENOMEM, -ENOSPC: over a limit of this client. */
int rl_create_qp(struct rl_pd *pd, struct rl_qp_init_attr *init, struct rl_qp **qp);
/** @param mask enum rl_qp_attr_mask. RESET drops completions, too. @return -EINVAL: as before. */
int rl_modify_qp(struct rl_qp *qp, const struct rl_qp_attr *attr, int mask);
/** All attributes, whatever the mask; `init` may be NULL. */
int rl_query_qp(struct rl_qp *qp, struct rl_qp_attr *attr, int mask, struct rl_qp_init_attr *init);
/**
 * Its sends are let go, then work vanishes, as with RESET. Waits for acknowledged events.
 * @return -EBUSY: it is a member of multicast groups.
 */
int rl_destroy_qp(struct rl_qp *qp);

/* ---- shared receive queues ------------------------------------------------------------------- */

struct rl_srq_attr {
	uint32_t max_wr;
	uint32_t max_sge;
	uint32_t srq_limit;
};

struct rl_srq_init_attr {
	void *srq_context;
	struct rl_srq_attr attr;
	enum rl_srq_type srq_type; /* 0: RL_SRQT_BASIC */
	struct rl_xrcd *xrcd;      /* of type XRC, with the CQ of its completions: */
	struct rl_cq *cq;          /* their qp_num is the target's */
};

/**
 * A receive queue for many QPs, on any worker of the dataplane. Its memory keys are checked against
 * `pd`, whatever PD a QP is in. One of type XRC receives what names its number, at any target of
 * its domain; R_Keys are those of `pd`. @param init attr.srq_limit does not count: rl_modify_srq().
 * @return -ENOSPC, -ENOMEM: over a limit of this client; -EINVAL: no such type.
 */
int rl_create_srq(struct rl_pd *pd, struct rl_srq_init_attr *init, struct rl_srq **srq);
/**
 * @param mask enum rl_srq_attr_mask. RL_SRQ_MAX_WR: another depth, while QPs go on receiving;
 * threads that post meanwhile wait for its end. RL_SRQ_LIMIT: RL_EVENT_SRQ_LIMIT_REACHED comes once
 * when fewer than srq_limit are posted; 0 disarms. @return -EINVAL: fewer than are posted, or a
 * limit above max_wr: nothing changed.
 */
int rl_modify_srq(struct rl_srq *srq, const struct rl_srq_attr *attr, int mask);
/** srq_limit is 0 again when its event was raised. */
int rl_query_srq(struct rl_srq *srq, struct rl_srq_attr *attr);
/** Waits until the SRQ's events are acknowledged. @return -EBUSY: a QP uses it. */
int rl_destroy_srq(struct rl_srq *srq);

/* ---- address handles ------------------------------------------------------------------------- */

/**
 * Where datagrams go: for work requests of UD QPs of the PD on attr->port_num. Waits up to three
 * seconds for the neighbour to answer; when its MAC changes later, the handle follows.
 * @return -EHOSTUNREACH: it does not answer; -ENETUNREACH: no route; -EPERM: a VLAN, traffic class
 * or MAC that the port does not allow; -ENOSPC: over a limit of this client.
 */
int rl_create_ah(struct rl_pd *pd, struct rl_ah_attr *attr, struct rl_ah **ah);
/** What was posted with it is sent all the same. @return 0 or -ENOMEM: nothing is done. */
int rl_destroy_ah(struct rl_ah *ah);

/* ---- work ------------------------------------------------------------------------------------ */

struct rl_sge {
	uint64_t addr;
	uint32_t length; /* bytes */
	uint32_t lkey;
};

struct rl_send_wr {
	uint64_t wr_id;
	struct rl_send_wr *next;
	struct rl_sge *sg_list;
	int num_sge;
	enum rl_wr_opcode opcode;
	unsigned int send_flags; /* enum rl_send_flags */
	union {
		uint32_t imm_data; /* network order */
		uint32_t invalidate_rkey;
	};
	union {
		struct {
			uint64_t remote_addr;
			uint32_t rkey;
		} rdma;
		struct {
			uint64_t remote_addr;
			uint64_t compare_add;
			uint64_t swap;
			uint32_t rkey;
		} atomic;
		struct rl_wr_flush flush;
		struct {
			struct rl_ah *ah;
			uint32_t remote_qpn;
			uint32_t remote_qkey; /* highest bit set: the QP's own */
		} ud;
	} wr;
	struct { /* RL_QPT_XRC_SEND: rl_get_srq_num() of the peer's SRQ */
		struct {
			uint32_t remote_srqn;
		} xrc;
	} qp_type;
	union { /* RL_WR_BIND_MW, RL_WR_REG_MR: without an sg_list */
		struct rl_wr_bind_mw bind_mw;
		struct rl_wr_reg_mr reg_mr;
	};
};

struct rl_recv_wr {
	uint64_t wr_id;
	struct rl_recv_wr *next;
	struct rl_sge *sg_list;
	int num_sge;
};

/**
 * Post a list. RL_SEND_INLINE copies the bytes now; a completion tells what is wrong with memory.
 * @param bad out, may be NULL: the first that was refused; those before it are posted.
 * @return -EINVAL: state below RTS, opcode, SGEs or bytes (a datagram: path MTU), wr.ud.ah of UD;
 * -EIO: the dataplane is gone; -ENOMEM: the queue is full until completions were polled.
 */
int rl_post_send(struct rl_qp *qp, struct rl_send_wr *wr, struct rl_send_wr **bad);
/** The same: all of the list or nothing of it, as ibv_wr_complete() has it. */
int rl_post_send_all(struct rl_qp *qp, struct rl_send_wr *wr);
/**
 * Post a list of receives, in any state from INIT on. @param bad as of rl_post_send().
 * @return 0; -EINVAL: state RESET, too many SGEs, or the QP receives from an SRQ;
 * -ENOMEM: the queue is full; -EIO: the dataplane is gone.
 */
int rl_post_recv(struct rl_qp *qp, struct rl_recv_wr *wr, struct rl_recv_wr **bad);
/**
 * The same for all QPs of a shared receive queue, in any state of theirs. A place is free when a QP
 * has taken its entry: a CQ needs room for what is posted and for what was not polled yet.
 * An entry that cannot be (more SGEs than max_sge, written around the library) makes the queue
 * fail: RL_EVENT_SRQ_ERR, and it gives nothing more; posting to it is refused with -EINVAL.
 */
int rl_post_srq_recv(struct rl_srq *srq, struct rl_recv_wr *wr, struct rl_recv_wr **bad);

#include "rocelane_event.h"
#include "rocelane_mcast.h"
#include "rocelane_xrc.h"
/* ---- words ----------------------------------------------------------------------------------- */

/** Why the last call of this thread that failed did; "" if none has. */
const char *rl_last_error(void);
/** "WR_FLUSH_ERR": the name of a completion status. */
const char *rl_wc_status_str(enum rl_wc_status status);
/** "QP_FATAL": the name of an event. */
const char *rl_event_type_str(enum rl_event_type event);
/** "RTS": the name of a QP state. */
const char *rl_qp_state_str(enum rl_qp_state state);

#ifdef __cplusplus
}
#endif

#endif
