/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <stdlib.h>

#include "vl.h"

/* ---- protection domains ---------------------------------------------------------------------- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
	struct vl_pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (pd == NULL)
		return vl_none(ENOMEM);
	rc = rl_alloc_pd(vl_context_of(ctx)->rl, &pd->rl);
	if (rc != 0) {
		free(pd);
		return vl_none(-rc);
	}
	pd->pub.context = ctx;
	return &pd->pub;
}

int
ibv_dealloc_pd(struct ibv_pd *pub)
{
	struct vl_pd *pd = (struct vl_pd *)pub;
	const int rc = rl_dealloc_pd(pd->rl);

	if (rc == 0)
		free(pd);
	return vl_result(rc);
}

/* ---- regions --------------------------------------------------------------------------------- */

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	(void)pd;
	(void)addr;
	(void)length;
	(void)iova;
	(void)access;
	return vl_none(EOPNOTSUPP);
}

struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, iova, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return ibv_reg_mr_iova2(pd, addr, length, (uintptr_t)addr, (unsigned int)access);
}

struct ibv_mr *
ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	(void)pd;
	(void)offset;
	(void)length;
	(void)iova;
	(void)fd;
	(void)access;
	return vl_none(EOPNOTSUPP);
}

int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	(void)mr;
	(void)flags;
	(void)pd;
	(void)addr;
	(void)length;
	(void)access;
	errno = EOPNOTSUPP;
	return IBV_REREG_MR_ERR_INPUT;
}

int
ibv_dereg_mr(struct ibv_mr *mr)
{
	(void)mr;
	return vl_result(-EOPNOTSUPP);
}

/* ---- fork ------------------------------------------------------------------------------------ */

int
ibv_fork_init(void)
{
	return 0;
}

enum ibv_fork_status
ibv_is_fork_initialized(void)
{
	return IBV_FORK_DISABLED;
}

int
ibv_dontfork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}

int
ibv_dofork_range(void *base, size_t size)
{
	(void)base;
	(void)size;
	return 0;
}
