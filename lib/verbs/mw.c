/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#include <stdlib.h>
#include <string.h>

#include "vl.h"

static struct ibv_mw *
alloc_mw(struct ibv_pd *pd, enum ibv_mw_type type)
{
	struct vl_mw *mw = calloc(1, sizeof(*mw));
	int rc;

	if (mw == NULL)
		return vl_none(vl_no_memory());
	rc = rl_alloc_mw(((struct vl_pd *)pd)->rl, (enum rl_mw_type)type, &mw->rl);
	if (rc != 0) {
		free(mw);
		return vl_none(-rc);
	}
	/* From now on a request may name one: see vl_post_send(). */
	__atomic_store_n(&vl_context_of(pd->context)->windows, true, __ATOMIC_RELEASE);
	vl_pd_used(pd, 1);
	mw->pub = (struct ibv_mw){
		.context = pd->context, .pd = pd, .rkey = mw->rl->rkey, .type = type
	};
	return &mw->pub;
}

static int
dealloc_mw(struct ibv_mw *pub)
{
	struct vl_mw *mw = (struct vl_mw *)pub;
	const int rc = rl_dealloc_mw(mw->rl);

	if (rc == 0) {
		vl_pd_used(pub->pd, -1);
		free(mw);
	}
	return vl_result(rc);
}

/* Adapters read the remote rights alone: programs add LOCAL_WRITE, as regions need it. */
#define WINDOW_ACCESS                                                                  \
	(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC | \
		VL_ACCESS_FLUSH_GLOBAL | VL_ACCESS_FLUSH_PERSISTENT | IBV_ACCESS_ZERO_BASED)

static struct rl_mw_bind_info
info_to(const struct ibv_mw_bind_info *from)
{
	return (struct rl_mw_bind_info){ .mr = from->mr != NULL ? ((struct vl_mr *)from->mr)->rl
								: NULL,
		.addr = from->addr,
		.length = from->length,
		.mw_access_flags = from->mw_access_flags & WINDOW_ACCESS };
}

static int
bind_mw(struct ibv_qp *qp, struct ibv_mw *pub, struct ibv_mw_bind *bind)
{
	struct vl_mw *mw = (struct vl_mw *)pub;
	const struct rl_mw_bind b = { .wr_id = bind->wr_id,
		.send_flags = bind->send_flags,
		.bind_info = info_to(&bind->bind_info) };
	const int rc = rl_bind_mw(((struct vl_qp *)qp)->rl, mw->rl, &b);

	pub->rkey = mw->rl->rkey;
	return vl_result(rc);
}

/*
 * As mlx5, irdma and rxe do it: the low byte is the program's, and the rest stays the window's,
 * whatever the program says. MW-03 holds behind it.
 */
static uint32_t
key_of(const struct ibv_mw *mw, uint32_t rkey)
{
	const uint32_t key = UINT32_C(0xff);

	return (mw->rkey & ~key) | (rkey & key);
}

void
vl_bind_to(struct ibv_mw *mw, uint32_t rkey, const struct ibv_mw_bind_info *info,
	struct rl_send_wr *wr)
{
	wr->bind_mw.mw = mw != NULL ? ((struct vl_mw *)mw)->rl : NULL;
	wr->bind_mw.rkey = mw != NULL ? key_of(mw, rkey) : rkey;
	wr->bind_mw.bind_info = info_to(info);
}

void
vl_mw_ops(struct ibv_context_ops *ops)
{
	ops->alloc_mw = alloc_mw;
	ops->bind_mw = bind_mw;
	ops->dealloc_mw = dealloc_mw;
}
