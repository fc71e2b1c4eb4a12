/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory that can be shared, regions of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_priv.h"
#include "meminfo.h"

#define HUGE_PAGE     ((size_t)2 << 20)
#define MEMFD_HUGE_2M (MFD_HUGETLB | 21u << 26) /* log2 of the page size from bit 26 on */
#define ACCESS_BITS   UINT16_MAX

/* ---- protection domains ---------------------------------------------------------------------- */

int
rl_alloc_pd(struct rl_context *pub, struct rl_pd **out)
{
	struct context *ctx = context_of(pub);
	struct pd *pd = calloc(1, sizeof(*pd));
	json_t *result;
	int rc;

	*out = NULL;
	if (pd == NULL)
		return client_fail(ENOMEM, "out of memory");
	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, "client_pd_create", NULL, -1, &result);
	if (rc == 0) {
		pd->pub.context = pub;
		pd->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		TAILQ_INSERT_TAIL(&ctx->pds, pd, all);
		json_decref(result);
		*out = &pd->pub;
	} else {
		free(pd);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

int
rl_dealloc_pd(struct rl_pd *pub)
{
	struct context *ctx = context_of(pub->context);
	struct pd *pd = (struct pd *)pub;
	const int rc = client_call_handle(ctx, "client_pd_destroy", pd->handle);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&ctx->lock);
	TAILQ_REMOVE(&ctx->pds, pd, all);
	pthread_mutex_unlock(&ctx->lock);
	free(pd);
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/*
 * Every page now, with an error: one that is missing later would be a SIGBUS, and the dataplane
 * takes no memory with holes.
 */
static int
populate(int fd, void *base, size_t len)
{
	if (fallocate(fd, 0, 0, (off_t)len) != 0 && errno != EOPNOTSUPP)
		return -ENOMEM;
#ifdef MADV_POPULATE_WRITE
	if (madvise(base, len, MADV_POPULATE_WRITE) == 0)
		return 0;
	if (errno != EINVAL)
		return -ENOMEM;
#endif
	memset(base, 0, len); /* a kernel before 5.14 */
	return 0;
}

static int
map_memory(struct memory *m, size_t length, size_t page, unsigned int flags)
{
	const size_t len = (length + page - 1) / page * page;
	void *base;

	if (len < length)
		return -ENOMEM;
	m->fd = memfd_create("librocelane", MFD_CLOEXEC | MFD_ALLOW_SEALING | flags);
	if (m->fd < 0)
		return -errno;
	if (ftruncate(m->fd, (off_t)len) != 0 ||
		/* The dataplane adds F_SEAL_FUTURE_WRITE. */
		fcntl(m->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0)
		goto failed;
	base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, m->fd, 0);
	if (base == MAP_FAILED)
		goto failed;
	if (populate(m->fd, base, len) != 0) {
		munmap(base, len);
		errno = ENOMEM;
		goto failed;
	}
	m->base = base;
	m->len = len;
	return 0;

failed:
	page = (size_t)errno;
	close(m->fd);
	return -(int)page;
}

static int
memory_new(struct context *ctx, size_t length, struct memory **out)
{
	struct memory *m = calloc(1, sizeof(*m));
	int rc = -ENOMEM;

	if (m == NULL || length == 0) {
		free(m);
		return client_fail(length == 0 ? EINVAL : ENOMEM,
			length == 0 ? "a length of 0" : "out of memory");
	}
	/* The dataplane would refuse it, but pages that are taken first may be missed elsewhere. */
	if (length > ctx->limits.max_memory) {
		free(m);
		return client_fail(ENOMEM,
			"%zu bytes of memory, and this client may have %llu "
			"(control.client_limits.memory of the dataplane)",
			length, (unsigned long long)ctx->limits.max_memory);
	}
	if (length >= HUGE_PAGE)
		rc = map_memory(m, length, HUGE_PAGE, MEMFD_HUGE_2M);
	if (rc != 0)
		rc = length <= meminfo_available()
			     ? map_memory(m, length, (size_t)sysconf(_SC_PAGESIZE), 0)
			     : -ENOMEM;
	if (rc != 0) {
		free(m);
		return client_fail(-rc, "%zu bytes of memory: %s", length, strerror(-rc));
	}
	TAILQ_INSERT_TAIL(&ctx->memories, m, all);
	*out = m;
	return 0;
}

/* Lock held. @param dead the connection is over: nobody has to be told. */
static void
memory_free(struct context *ctx, struct memory *m, bool dead)
{
	if (m->known != 0 && !dead)
		client_call(ctx, "client_memory_forget",
			json_pack("{s:I}", "handle", (json_int_t)m->known), -1, NULL);
	TAILQ_REMOVE(&ctx->memories, m, all);
	munmap(m->base, m->len);
	close(m->fd);
	free(m);
}

/* The memory that holds all of [addr, addr + length), or NULL. */
static struct memory *
memory_of(struct context *ctx, const void *addr, size_t length)
{
	const uintptr_t at = (uintptr_t)addr;
	struct memory *m;

	TAILQ_FOREACH (m, &ctx->memories, all) {
		const uintptr_t base = (uintptr_t)m->base;

		if (at >= base && at - base < m->len && length <= m->len - (at - base))
			return m;
	}
	return NULL;
}

int
rl_mem_alloc(struct rl_context *pub, size_t length, void **addr)
{
	struct context *ctx = context_of(pub);
	struct memory *m = NULL;
	int rc;

	*addr = NULL;
	pthread_mutex_lock(&ctx->lock);
	rc = memory_new(ctx, length, &m);
	if (rc == 0)
		*addr = m->base;
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

int
rl_mem_free(struct rl_context *pub, void *addr)
{
	struct context *ctx = context_of(pub);
	struct memory *m;
	int rc = 0;

	pthread_mutex_lock(&ctx->lock);
	m = memory_of(ctx, addr, 1);
	if (m == NULL || m->base != addr)
		rc = client_fail(EINVAL, "%p was not given out by rl_mem_alloc()", addr);
	else if (m->users != 0)
		rc = client_fail(EBUSY, "%u regions are registered there", m->users);
	else
		memory_free(ctx, m, false);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* ---- regions --------------------------------------------------------------------------------- */

/* What a registration needs, apart from where it is kept. */
struct request {
	int fd;
	uint64_t offset;
	void *addr;
	size_t length;
	int access;
	bool once;       /* no further region will be made there */
	uint32_t *known; /* out: what the dataplane calls the memory; or NULL */
};

/* Lock held. */
static int
mr_new(struct context *ctx, struct rl_pd *pub, const struct request *q, struct mr **out)
{
	struct mr *mr = calloc(1, sizeof(*mr));
	json_t *params, *result;
	int rc;

	if (mr == NULL)
		return client_fail(ENOMEM, "out of memory");
	params = json_pack("{s:I, s:I, s:I, s:I, s:i, s:b, s:b}", "pd",
		(json_int_t)((struct pd *)pub)->handle, "length", (json_int_t)q->length, "addr",
		(json_int_t)(uintptr_t)q->addr, "offset", (json_int_t)q->offset, "access",
		q->access & ACCESS_BITS, "remote_invalidate",
		(q->access & RL_ACCESS_REMOTE_INVALIDATE) != 0, "once", q->once);
	rc = client_call(ctx, "client_mr_register", params, q->fd, &result);
	if (rc != 0) {
		free(mr);
		return rc;
	}
	mr->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
	mr->pub = (struct rl_mr){ .context = pub->context,
		.pd = pub,
		.addr = q->addr,
		.length = q->length,
		.lkey = (uint32_t)json_integer_value(json_object_get(result, "key")) };
	mr->pub.rkey = mr->pub.lkey;
	mr->access = q->access;
	if (q->known != NULL)
		*q->known = (uint32_t)json_integer_value(json_object_get(result, "memory"));
	json_decref(result);
	TAILQ_INSERT_TAIL(&ctx->mrs, mr, all);
	*out = mr;
	return 0;
}

int
rl_reg_mr(struct rl_pd *pd, void *addr, size_t length, int access, struct rl_mr **out)
{
	struct context *ctx = context_of(pd->context);
	const bool own = addr == NULL;
	struct memory *m = NULL;
	struct mr *mr = NULL;
	int rc = 0;

	*out = NULL;
	pthread_mutex_lock(&ctx->lock);
	if (own) {
		rc = memory_new(ctx, length, &m);
		addr = rc == 0 ? m->base : NULL;
	} else if ((m = memory_of(ctx, addr, length)) == NULL) {
		rc = client_fail(EINVAL,
			"%p, %zu bytes, is not memory of rl_mem_alloc(); for a memfd of your own "
			"use rl_reg_mr_fd()",
			addr, length);
	}
	if (rc == 0) {
		const struct request q = { .fd = m->fd,
			.offset = (uint64_t)((uint8_t *)addr - m->base),
			.addr = addr,
			.length = length,
			.access = access,
			.once = own,
			.known = own ? NULL : &m->known };

		rc = mr_new(ctx, pd, &q, &mr);
	}
	if (rc == 0) {
		mr->memory = m;
		mr->own_memory = own;
		m->users++;
		*out = &mr->pub;
	} else if (own && m != NULL) {
		memory_free(ctx, m, false);
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

static int
reg_fd(struct rl_pd *pd, const struct request *q, struct rl_mr **out)
{
	struct context *ctx = context_of(pd->context);
	struct mr *mr = NULL;
	int rc;

	*out = NULL;
	if (q->fd < 0)
		return client_fail(EBADF, "descriptor %d", q->fd);
	pthread_mutex_lock(&ctx->lock);
	rc = mr_new(ctx, pd, q, &mr);
	pthread_mutex_unlock(&ctx->lock);
	if (rc == 0)
		*out = &mr->pub;
	return rc;
}

int
rl_reg_mr_fd(struct rl_pd *pd, int fd, uint64_t offset, void *addr, size_t length, int access,
	struct rl_mr **out)
{
	const struct request q = {
		.fd = fd, .offset = offset, .addr = addr, .length = length, .access = access
	};

	return reg_fd(pd, &q, out);
}

int
rl_reg_mr_once(struct rl_pd *pd, int fd, uint64_t offset, void *addr, size_t length, int access,
	struct rl_mr **out)
{
	const struct request q = { .fd = fd,
		.offset = offset,
		.addr = addr,
		.length = length,
		.access = access,
		.once = true };

	return reg_fd(pd, &q, out);
}

/* Lock held. Where the region moves: memory that rl_reg_mr() would take. */
static int
rereg_memory(struct context *ctx, struct mr *mr, struct request *q)
{
	struct memory *m = memory_of(ctx, q->addr, q->length);

	if (mr->own_memory)
		return client_fail(EINVAL, "the region's memory is its own, and goes with it");
	if (m == NULL)
		return client_fail(EINVAL, "%p, %zu bytes, is not memory of rl_mem_alloc()",
			q->addr, q->length);
	q->fd = m->fd;
	q->offset = (uint64_t)((uint8_t *)q->addr - m->base);
	q->known = &m->known;
	return 0;
}

/* Lock held. */
static int
rereg(struct context *ctx, struct mr *mr, struct rl_pd *pd, bool moves, const struct request *q)
{
	json_t *params = json_pack("{s:I, s:b, s:I, s:I, s:I, s:I, s:i, s:b, s:b}", "handle",
		(json_int_t)mr->handle, "memory", moves, "pd",
		(json_int_t)((const struct pd *)pd)->handle, "length", (json_int_t)q->length,
		"addr", (json_int_t)(uintptr_t)q->addr, "offset", (json_int_t)q->offset, "access",
		q->access & ACCESS_BITS, "remote_invalidate",
		(q->access & RL_ACCESS_REMOTE_INVALIDATE) != 0, "once", q->once);
	json_t *result;
	const int rc = client_call(ctx, "client_mr_rereg", params, q->fd, &result);

	if (rc != 0)
		return rc;
	mr->pub.pd = pd;
	mr->pub.addr = q->addr;
	mr->pub.length = q->length;
	mr->pub.lkey = (uint32_t)json_integer_value(json_object_get(result, "key"));
	mr->pub.rkey = mr->pub.lkey;
	mr->access = q->access;
	if (q->known != NULL)
		*q->known = (uint32_t)json_integer_value(json_object_get(result, "memory"));
	json_decref(result);
	return 0;
}

int
rl_rereg_mr(struct rl_mr *pub, int flags, struct rl_pd *pd, void *addr, size_t length, int access)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = (struct mr *)pub;
	const bool moves = (flags & RL_REREG_MR_CHANGE_TRANSLATION) != 0;
	struct request q = { .fd = -1,
		.addr = moves ? addr : pub->addr,
		.length = moves ? length : pub->length,
		.access = (flags & RL_REREG_MR_CHANGE_ACCESS) != 0 ? access : mr->access };
	int rc = 0;

	if (mr->fast)
		return client_fail(EINVAL, "a fast-register region: RL_WR_REG_MR changes it");
	if (flags == 0 || (flags & ~RL_REREG_MR_ALL) != 0)
		return client_fail(EINVAL, "flags 0x%x", (unsigned int)flags);
	if ((flags & RL_REREG_MR_CHANGE_PD) == 0)
		pd = pub->pd;
	pthread_mutex_lock(&ctx->lock);
	if (moves)
		rc = rereg_memory(ctx, mr, &q);
	if (rc == 0)
		rc = rereg(ctx, mr, pd, moves, &q);
	if (rc == 0 && moves) {
		if (mr->memory != NULL)
			mr->memory->users--;
		mr->memory = memory_of(ctx, addr, length);
		mr->memory->users++;
	}
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

int
rl_rereg_mr_fd(struct rl_mr *pub, int flags, struct rl_pd *pd, int fd, uint64_t offset, void *addr,
	size_t length, int access)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = (struct mr *)pub;
	const struct request q = { .fd = fd,
		.offset = offset,
		.addr = addr,
		.length = length,
		.access = (flags & RL_REREG_MR_CHANGE_ACCESS) != 0 ? access : mr->access,
		.once = true };
	int rc;

	if (mr->fast)
		return client_fail(EINVAL, "a fast-register region: RL_WR_REG_MR changes it");
	if ((flags & RL_REREG_MR_CHANGE_TRANSLATION) == 0 || (flags & ~RL_REREG_MR_ALL) != 0)
		return client_fail(EINVAL, "flags 0x%x", (unsigned int)flags);
	if (mr->memory != NULL || fd < 0)
		return client_fail(EINVAL, "the region is not of rl_reg_mr_fd()");
	if ((flags & RL_REREG_MR_CHANGE_PD) == 0)
		pd = pub->pd;
	pthread_mutex_lock(&ctx->lock);
	rc = rereg(ctx, mr, pd, true, &q);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

int
rl_dereg_mr(struct rl_mr *pub)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = (struct mr *)pub;
	const int rc = client_call_handle(
		ctx, mr->fast ? "client_mw_dealloc" : "client_mr_deregister", mr->handle);

	if (rc != 0)
		return rc;
	pthread_mutex_lock(&ctx->lock);
	TAILQ_REMOVE(&ctx->mrs, mr, all);
	if (mr->memory != NULL)
		mr->memory->users--;
	if (mr->own_memory)
		memory_free(ctx, mr->memory, false);
	pthread_mutex_unlock(&ctx->lock);
	free(mr);
	return 0;
}

void
client_free_memory(struct context *ctx)
{
	struct memory *m;
	struct mr *mr;
	struct pd *pd;

	while ((mr = TAILQ_FIRST(&ctx->mrs)) != NULL) {
		TAILQ_REMOVE(&ctx->mrs, mr, all);
		free(mr);
	}
	while ((m = TAILQ_FIRST(&ctx->memories)) != NULL)
		memory_free(ctx, m, true);
	while ((pd = TAILQ_FIRST(&ctx->pds)) != NULL) {
		TAILQ_REMOVE(&ctx->pds, pd, all);
		free(pd);
	}
}
