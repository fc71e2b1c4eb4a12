/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libibverbs has since rdma-core 59, as a program finds it that was linked with it: by its
 * version. Debian 12's verbs.h does not declare it.
 */
#include <dlfcn.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "ends.h"

enum { IOVA = 1, ADDR = 2, FD = 4, FD_OFFSET = 8, DMAH = 16, BUF = 32 };

struct buf;

struct mr_init_attr {
	size_t length;
	int access;
	uint64_t comp_mask;
	uint64_t iova;
	void *addr;
	int fd;
	uint64_t fd_offset;
	void *dmah;
	struct buf *buf;
};

static struct end e[2];
static struct ibv_mr *(*reg_mr_ex)(struct ibv_pd *, struct mr_init_attr *);
static struct ibv_mr *(*reg_buf_mr)(struct ibv_pd *, struct buf *, void *, size_t, int);
static void *(*alloc_buf)(struct ibv_pd *, size_t, struct buf **);
static void (*free_buf)(struct buf *);
static int (*export_fd)(struct buf *);
static int (*dm_export_fd)(void *);
static int (*port_speed)(struct ibv_context *, uint32_t, uint64_t *);
static void *(*alloc_dmah)(struct ibv_context *, void *);
static int (*dealloc_dmah)(void *);
static void *(*create_cntr)(struct ibv_context *, void *);
static int (*cntr_caps)(struct ibv_context *, void *, size_t);

static void
find(void *to, const char *name, const char *version)
{
	void *at = dlvsym(RTLD_DEFAULT, name, version);

	CHECK(at != NULL);
	memcpy(to, &at, sizeof(at));
}

static void
find_all(void)
{
	find(&reg_mr_ex, "ibv_reg_mr_ex", "IBVERBS_1.15");
	find(&alloc_dmah, "ibv_alloc_dmah", "IBVERBS_1.15");
	find(&dealloc_dmah, "ibv_dealloc_dmah", "IBVERBS_1.15");
	find(&port_speed, "ibv_query_port_speed", "IBVERBS_1.16");
	find(&dm_export_fd, "ibv_dm_export_dmabuf_fd", "IBVERBS_1.16");
	find(&alloc_buf, "ibv_alloc_buf", "IBVERBS_1.17");
	find(&free_buf, "ibv_free_buf", "IBVERBS_1.17");
	find(&reg_buf_mr, "ibv_reg_buf_mr", "IBVERBS_1.17");
	find(&export_fd, "ibv_export_buf_dmabuf_fd", "IBVERBS_1.18");
	find(&create_cntr, "ibv_create_comp_cntr", "IBVERBS_1.18");
	find(&cntr_caps, "_ibv_query_comp_cntr_caps", "IBVERBS_1.18");
}

static void
refused(struct mr_init_attr attr, int err)
{
	errno = 0;
	CHECK(reg_mr_ex(e[0].pd, &attr) == NULL && errno == err);
}

static void
regions(void)
{
	const size_t len = 3 * 4096;
	char *at = aligned_alloc(4096, len);
	struct mr_init_attr attr = {
		.length = len, .access = ALL_ACCESS, .comp_mask = ADDR, .addr = at
	};
	char *peer = aligned_alloc(4096, len);
	struct ibv_mr *mr, *other;

	/* What is not in the mask is not looked at: it may not be there. */
	attr.iova = 17;
	attr.buf = (struct buf *)(uintptr_t)1;
	ends_move(e, reg_mr_ex(e[0].pd, &attr), at, at);
	attr.comp_mask = ADDR | IOVA;
	attr.iova = 1 << 20;
	mr = reg_mr_ex(e[0].pd, &attr);
	other = ibv_reg_mr(e[1].pd, peer, len, ALL_ACCESS);
	CHECK(mr != NULL && mr->addr == at && other != NULL);
	memset(peer, 'i', len);
	CHECK(end_run(&e[1], IBV_WR_RDMA_WRITE, other, peer, (uint32_t)len, mr,
		      (char *)(uintptr_t)attr.iova, 1)
			.status == IBV_WC_SUCCESS);
	CHECK(memcmp(at, peer, len) == 0 && ibv_dereg_mr(mr) == 0 && ibv_dereg_mr(other) == 0);
	refused((struct mr_init_attr){ .length = len, .comp_mask = 0 }, EINVAL);
	refused((struct mr_init_attr){ .length = len, .comp_mask = ADDR | FD_OFFSET, .addr = at },
		EINVAL);
	refused((struct mr_init_attr){ .length = len, .comp_mask = ADDR | FD | FD_OFFSET | IOVA },
		EINVAL);
	refused((struct mr_init_attr){ .length = len, .comp_mask = FD | IOVA }, EINVAL);
	refused((struct mr_init_attr){ .length = len, .comp_mask = FD | FD_OFFSET | IOVA },
		EOPNOTSUPP);
	refused((struct mr_init_attr){ .length = len, .comp_mask = ADDR | DMAH, .addr = at },
		EOPNOTSUPP);
	refused((struct mr_init_attr){ .length = len, .comp_mask = ADDR | 64, .addr = at },
		EOPNOTSUPP);
	free(peer);
	free(at);
}

static void
buffers(void)
{
	struct ibv_pd *other = ibv_alloc_pd(e[0].ctx);
	struct mr_init_attr attr = { .length = 4096, .comp_mask = ADDR | BUF };
	struct buf *buf;
	char *at = alloc_buf(e[0].pd, 5000, &buf);

	CHECK(at != NULL && other != NULL);
	memset(at, 0, 5000);
	ends_move(e, reg_buf_mr(e[0].pd, buf, at, 5000, ALL_ACCESS), at, at);
	ends_move(e, reg_buf_mr(e[0].pd, buf, at + 4000, 1000, ALL_ACCESS), at + 4000, at + 4000);
	errno = 0;
	CHECK(reg_buf_mr(e[0].pd, buf, at + 4096, 4097, ALL_ACCESS) == NULL && errno == EINVAL);
	errno = 0;
	CHECK(reg_buf_mr(e[0].pd, buf, at - 1, 1, ALL_ACCESS) == NULL && errno == EINVAL);
	errno = 0;
	CHECK(reg_buf_mr(other, buf, at, 5000, ALL_ACCESS) == NULL && errno == EINVAL);
	attr.buf = buf;
	attr.addr = at;
	attr.comp_mask = BUF; /* no address */
	refused(attr, EINVAL);
	attr.comp_mask = ADDR | BUF | FD;
	refused(attr, EINVAL);
	errno = 0;
	CHECK(export_fd(buf) == -1 && errno == ENODATA);
	free_buf(buf);
	CHECK(ibv_dealloc_pd(other) == 0);
	errno = 0;
	CHECK(alloc_buf(e[0].pd, 0, &buf) == NULL && errno == EINVAL);
	errno = 0;
	CHECK(alloc_buf(e[0].pd, SIZE_MAX, &buf) == NULL && errno == EINVAL);
	errno = 0;
	CHECK(alloc_buf(e[0].pd, SIZE_MAX / 2, &buf) == NULL && errno == ENOMEM);
}

static void
not_there(void)
{
	uint64_t speed = 0;

	CHECK(port_speed(e[0].ctx, 1, &speed) == 0 && speed == 400);
	CHECK(port_speed(e[0].ctx, 2, &speed) == EINVAL);
	CHECK(port_speed(e[0].ctx, 257, &speed) == EINVAL);
	errno = 0;
	CHECK(alloc_dmah(e[0].ctx, NULL) == NULL && errno == EOPNOTSUPP);
	CHECK(dealloc_dmah(NULL) == EOPNOTSUPP);
	errno = 0;
	CHECK(create_cntr(e[0].ctx, NULL) == NULL && errno == EOPNOTSUPP);
	CHECK(cntr_caps(e[0].ctx, NULL, 0) == EOPNOTSUPP);
	errno = 0;
	CHECK(dm_export_fd(NULL) == -1 && errno == EOPNOTSUPP);
}

int
main(void)
{
	find_all();
	ends_open(e, 7);
	regions();
	buffers();
	not_there();
	printf("newer\n");
	return 0;
}
