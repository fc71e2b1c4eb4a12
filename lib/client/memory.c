/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, and memory that can be shared. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client_priv.h"
#include "fds.h"
#include "meminfo.h"

#define HUGE_PAGE     ((size_t)2 << 20)
#define MEMFD_HUGE_2M (MFD_HUGETLB | 21u << 26) /* log2 of the page size from bit 26 on */

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
	client_lock(ctx);
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
	client_unlock(ctx);
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
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->pds, pd, all);
	client_unlock(ctx);
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
	if (fds_set_length(m->fd, len) != 0 ||
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

int
client_memory_new(struct context *ctx, size_t length, struct memory **out)
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

void
client_memory_free(struct context *ctx, struct memory *m, bool dead)
{
	if (m->known != 0 && !dead)
		client_call(ctx, "client_memory_forget",
			json_pack("{s:I}", "handle", (json_int_t)m->known), -1, NULL);
	TAILQ_REMOVE(&ctx->memories, m, all);
	munmap(m->base, m->len);
	close(m->fd);
	free(m);
}

struct memory *
client_memory_of(struct context *ctx, const void *addr, size_t length)
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
	client_lock(ctx);
	rc = client_memory_new(ctx, length, &m);
	if (rc == 0)
		*addr = m->base;
	client_unlock(ctx);
	return rc;
}

int
rl_mem_free(struct rl_context *pub, void *addr)
{
	struct context *ctx = context_of(pub);
	struct memory *m;
	int rc = 0;

	client_lock(ctx);
	m = client_memory_of(ctx, addr, 1);
	if (m == NULL || m->base != addr)
		rc = client_fail(EINVAL, "%p was not given out by rl_mem_alloc()", addr);
	else if (m->users != 0)
		rc = client_fail(EBUSY, "%u regions are registered there", m->users);
	else
		client_memory_free(ctx, m, false);
	client_unlock(ctx);
	return rc;
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
		client_memory_free(ctx, m, true);
	while ((pd = TAILQ_FIRST(&ctx->pds)) != NULL) {
		TAILQ_REMOVE(&ctx->pds, pd, all);
		free(pd);
	}
}
