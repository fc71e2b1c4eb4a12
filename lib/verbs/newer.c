/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libibverbs has since rdma-core 59, for programs that were built with it: Debian 12's verbs.h
 * does not have these structs. The C names differ from what is exported, where it does.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vl.h"

#define NAMED(name) __asm__(#name)
#define SPEED       400 /* 4X of FDR10: what vl_query_port() says */

enum {
	MASK_IOVA = 1 << 0,
	MASK_ADDR = 1 << 1,
	MASK_FD = 1 << 2,
	MASK_FD_OFFSET = 1 << 3,
	MASK_BUF = 1 << 5,
};

/* What is not in comp_mask may not be there at all. */
struct vl_mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct vl_buf *buf;
};

struct vl_buf {
	struct ibv_pd *pd;
	void *addr;
	size_t size; /* whole pages */
};

/* ---- prototypes: nobody else has them -------------------------------------------------------- */

struct ibv_mr *vl_reg_mr_ex(struct ibv_pd *pd, const struct vl_mr_init_attr *attr)
	NAMED(ibv_reg_mr_ex);
int vl_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
	NAMED(ibv_query_port_speed);
void *vl_alloc_buf(struct ibv_pd *pd, size_t size, struct vl_buf **out) NAMED(ibv_alloc_buf);
void vl_free_buf(struct vl_buf *buf) NAMED(ibv_free_buf);
struct ibv_mr *vl_reg_buf_mr(struct ibv_pd *pd, struct vl_buf *buf, void *addr, size_t length,
	int access) NAMED(ibv_reg_buf_mr);
int vl_export_buf_dmabuf_fd(const struct vl_buf *buf) NAMED(ibv_export_buf_dmabuf_fd);
int vl_dm_export_dmabuf_fd(const void *dm) NAMED(ibv_dm_export_dmabuf_fd);

/* ---- regions --------------------------------------------------------------------------------- */

/* Does [addr, addr + length) lie in the buffer? */
static bool
is_in(const struct vl_buf *buf, const struct ibv_pd *pd, const struct vl_mr_init_attr *attr)
{
	const uintptr_t off = (uintptr_t)attr->addr - (uintptr_t)buf->addr;

	return pd == buf->pd && (attr->comp_mask & MASK_ADDR) != 0 && off <= buf->size &&
	       attr->length <= buf->size - off;
}

struct ibv_mr *
vl_reg_mr_ex(struct ibv_pd *pd, const struct vl_mr_init_attr *attr)
{
	const uint64_t mask = attr->comp_mask;
	const uint64_t known = MASK_IOVA | MASK_ADDR | MASK_FD | MASK_FD_OFFSET | MASK_BUF;

	if ((mask & ~known) != 0)
		return vl_none(vl_why(EOPNOTSUPP, "comp_mask: no DMA handles"));
	if ((mask & MASK_BUF) != 0 &&
		((mask & (MASK_FD | MASK_FD_OFFSET)) != 0 || !is_in(attr->buf, pd, attr)))
		return vl_none(vl_why(EINVAL, "it is not of the buffer, or of another PD"));
	if ((mask & MASK_FD) != 0) {
		if ((mask & (MASK_ADDR | MASK_FD_OFFSET | MASK_IOVA)) !=
			(MASK_FD_OFFSET | MASK_IOVA))
			return vl_none(vl_why(
				EINVAL, "comp_mask: FD takes FD_OFFSET and IOVA, and no ADDR"));
		return ibv_reg_dmabuf_mr(
			pd, attr->fd_offset, attr->length, attr->iova, attr->fd, attr->access);
	}
	if ((mask & (MASK_ADDR | MASK_FD_OFFSET)) != MASK_ADDR)
		return vl_none(vl_why(EINVAL, "comp_mask: ADDR or FD, and FD_OFFSET with FD only"));
	return ibv_reg_mr_iova2(pd, attr->addr, attr->length,
		(mask & MASK_IOVA) != 0 ? attr->iova : (uintptr_t)attr->addr,
		(unsigned int)attr->access);
}

/* ---- buffers --------------------------------------------------------------------------------- */

void *
vl_alloc_buf(struct ibv_pd *pd, size_t size, struct vl_buf **out)
{
	const size_t page = (size_t)sysconf(_SC_PAGESIZE);
	const size_t bytes = (size + page - 1) & ~(page - 1);
	struct vl_buf *buf;

	if (size == 0 || bytes < size)
		return vl_none(vl_why(EINVAL, "no bytes, or more than there are addresses"));
	buf = malloc(sizeof(*buf));
	if (buf == NULL)
		return vl_none(vl_no_memory());
	*buf = (struct vl_buf){ .pd = pd, .size = bytes };
	buf->addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (buf->addr == MAP_FAILED) {
		free(buf);
		return vl_none(vl_no_memory());
	}
	*out = buf;
	return buf->addr;
}

void
vl_free_buf(struct vl_buf *buf)
{
	munmap(buf->addr, buf->size);
	free(buf);
}

struct ibv_mr *
vl_reg_buf_mr(struct ibv_pd *pd, struct vl_buf *buf, void *addr, size_t length, int access)
{
	const struct vl_mr_init_attr attr = { .length = length,
		.access = access,
		.comp_mask = MASK_BUF | MASK_ADDR,
		.addr = addr,
		.buf = buf };

	return vl_reg_mr_ex(pd, &attr);
}

/* @return -1 with errno: it is no dma-buf. */
int
vl_export_buf_dmabuf_fd(const struct vl_buf *buf)
{
	(void)buf;
	errno = ENODATA;
	return -1;
}

int
vl_dm_export_dmabuf_fd(const void *dm)
{
	(void)dm;
	errno = EOPNOTSUPP;
	return -1;
}

/* ---- port ------------------------------------------------------------------------------------ */

/* In units of 100 Mb/s. */
int
vl_query_port_speed(struct ibv_context *ctx, uint32_t port, uint64_t *speed)
{
	struct ibv_port_attr attr;
	const int err = port <= UINT8_MAX ? vl_query_port(ctx, (uint8_t)port, &attr, sizeof(attr))
					  : vl_result(vl_why(-EINVAL, VL_ONE_PORT));

	if (err == 0)
		*speed = SPEED;
	return err;
}
