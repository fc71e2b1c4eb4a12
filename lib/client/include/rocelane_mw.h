/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_MW_H
#define ROCELANE_MW_H
/**
 * @file rocelane_mw.h  Memory windows of librocelane: keys for a part of a region, and for a time.
 *
 * Owner:   as rocelane.h, which includes this.
 * Memory:  the library's, from rl_alloc_mw() to rl_dealloc_mw().
 * Depends: nothing.
 */
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rl_context;
struct rl_cq;
struct rl_mr;
struct rl_pd;
struct rl_qp;

enum rl_mw_type { RL_MW_TYPE_1 = 1, RL_MW_TYPE_2 = 2 };

struct rl_mw {
	struct rl_context *context;
	struct rl_pd *pd;
	uint32_t rkey; /* of type 1: what the newest rl_bind_mw() makes it */
	enum rl_mw_type type;
};

/** A range of a region, and the rights to it. */
struct rl_mw_bind_info {
	struct rl_mr *mr; /* with RL_ACCESS_MW_BIND */
	uint64_t addr;
	uint64_t length;              /* bytes; 0 with type 1: unbind */
	unsigned int mw_access_flags; /* remote rights; RL_ACCESS_ZERO_BASED with type 2 */
};

/** Of a work request. */
struct rl_wr_bind_mw {
	struct rl_mw *mw;
	uint32_t rkey; /* the new one: mw->rkey with another low byte */
	struct rl_mw_bind_info bind_info;
};

struct rl_wr_reg_mr {
	struct rl_mr *mr; /* of rl_alloc_mr(), FREE; its keys are `key` from now on */
	uint32_t key;     /* mr->rkey, or rl_inc_rkey() of it */
	int access;       /* enum rl_access_flags; ZERO_BASED: its first byte is at address 0 */
	struct rl_mr *of; /* another region of its PD; with LOCAL_WRITE if `access` has it */
	uint64_t addr;    /* in it */
	uint64_t length;
};

/** RL_WR_FLUSH: what earlier requests of the queue pair wrote is placed when this completes. */
struct rl_wr_flush {
	uint64_t remote_addr;
	uint64_t length; /* bytes, 2^31 at most; with RL_FLUSH_MR of no meaning, as remote_addr */
	uint32_t rkey;
	uint8_t type;  /* enum rl_flush_type */
	uint8_t level; /* enum rl_flush_level */
};

struct rl_mw_bind {
	uint64_t wr_id;
	unsigned int send_flags; /* enum rl_send_flags */
	struct rl_mw_bind_info bind_info;
};

/* ---- regions that change --------------------------------------------------------------------- */

/**
 * Change what `flags` names (enum rl_rereg_mr_flags): the protection domain; the access; the
 * translation, to other memory of rl_mem_alloc(). The keys stay. Work that uses the region
 * meanwhile may fail its key check. A region that a peer had invalidated is valid again.
 * @return 0; or -errno, and the region is as before. -EBUSY: memory windows are bound to it.
 * Unlike ibv_rereg_mr() there is no third outcome.
 */
int rl_rereg_mr(
	struct rl_mr *mr, int flags, struct rl_pd *pd, void *addr, size_t length, int access);
/**
 * The same with RL_REREG_MR_CHANGE_TRANSLATION, of a region of rl_reg_mr_fd() or rl_reg_mr_once(),
 * to memory as rl_reg_mr_once() takes it.
 */
int rl_rereg_mr_fd(struct rl_mr *mr, int flags, struct rl_pd *pd, int fd, uint64_t offset,
	void *addr, size_t length, int access);

#define RL_MR_PIECES 8

/** A piece of a region: whole pages of a memfd, as rl_reg_mr_once() takes it. */
struct rl_mr_piece {
	int fd;
	uint64_t offset;
	uint64_t length; /* bytes */
};

/**
 * A region of several memfds, or of several places of one: the pieces, one behind the other. What
 * they are together counts against limits.max_memory once more.
 * @param n RL_MR_PIECES at most. @param offset of the region, from the first piece's first byte.
 * @return as rl_reg_mr_fd(); -EINVAL: a piece is not of whole pages, or they end before.
 */
int rl_reg_mr_pieces(struct rl_pd *pd, const struct rl_mr_piece *pieces, int n, uint64_t offset,
	void *addr, size_t length, int access, struct rl_mr **mr);
/** rl_rereg_mr_fd() to such memory. */
int rl_rereg_mr_pieces(struct rl_mr *mr, int flags, struct rl_pd *pd,
	const struct rl_mr_piece *pieces, int n, uint64_t offset, void *addr, size_t length,
	int access);

/** Files of which a region consists, one behind the other, each of whole pages of it. */
struct rl_mr_files {
	uint32_t n;
	uint64_t length; /* bytes of all of them */
	/**
	 * The next one. librocelane closes its descriptor; it has eight of them at a time.
	 * @param ctx of this struct. @return 0, or -errno: that is the result then.
	 */
	int (*open)(void *ctx, uint32_t i, struct rl_mr_piece *piece);
	void *ctx;
};

/**
 * A region of as many files as there are: each huge page of a program may be one. They are not
 * sealed. `files->open` is called with the lock of the context, in which it may use nothing.
 * @param offset of the region, from the first byte of the first piece.
 * @return as rl_reg_mr_pieces(); -EPERM: control.client_memory of the dataplane is not "any";
 * -ENOMEM: there are too many files, too.
 */
int rl_reg_mr_files(struct rl_pd *pd, const struct rl_mr_files *files, uint64_t offset, void *addr,
	size_t length, int access, struct rl_mr **mr);

/**
 * Completions stay, in order; when the queue shrinks, those of sends that wait for no peer are
 * waited for. @return 0; -EINVAL: more stand in it; -EIO: it has overflowed;
 * -ETIMEDOUT: a worker does not answer. It may have begun then: newer completions are polled once
 * another call has ended it.
 */
int rl_resize_cq(struct rl_cq *cq, int cqe);

/* ---- windows --------------------------------------------------------------------------------- */

/**
 * A window, unbound: mw->rkey is no key yet. One of type 1 is bound by rl_bind_mw(), again and
 * again, and serves every QP of its PD. One of type 2 is bound by RL_WR_BIND_MW, serves the QP that
 * bound it, and is invalidated by RL_WR_LOCAL_INV or by the peer's SEND with Invalidate. It counts
 * as a region (max_mr).
 */
int rl_alloc_mw(struct rl_pd *pd, enum rl_mw_type type, struct rl_mw **mw);
/** Bound or not: its key is no key from now on. */
int rl_dealloc_mw(struct rl_mw *mw);
/**
 * Post a bind of a window of type 1; mw->rkey is its key once that has completed. A bind or an
 * invalidate is carried out when all requests posted before it have completed, and those behind
 * it wait for it. @return as rl_post_send(); -EINVAL: a window of type 2.
 */
int rl_bind_mw(struct rl_qp *qp, struct rl_mw *mw, const struct rl_mw_bind *bind);

/* ---- fast-register regions ------------------------------------------------------------------- */

/**
 * A region without bytes, in the state FREE: its keys name nothing yet. RL_WR_REG_MR makes it name
 * a range of another region, with rights and a key of its own: any QP of its PD may use it then, by
 * its L_Key too. RL_WR_LOCAL_INV, or the peer's SEND with Invalidate, makes it FREE again. They are
 * carried out in the order of the send queue, without a call to the dataplane. It counts as a
 * region (max_mr); rl_dereg_mr() gives it back, in either state.
 */
int rl_alloc_mr(struct rl_pd *pd, struct rl_mr **mr);

/** The same key with the next low byte: for the next RL_WR_REG_MR, so that the old one is dead. */
static inline uint32_t
rl_inc_rkey(uint32_t rkey)
{
	return (rkey & ~UINT32_C(0xff)) | ((rkey + 1) & UINT32_C(0xff));
}

#ifdef __cplusplus
}
#endif

#endif
