/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions: of memory that librocelane gave out, and of the application's own memfds. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "client_priv.h"

#define ACCESS_BITS UINT16_MAX

/* What a registration needs, apart from where it is kept. */
struct request {
	int fd;          /* or, with pieces, -1 */
	uint64_t offset; /* in the memfd, or from the first piece's first byte */
	const struct rl_mr_piece *pieces;
	uint32_t pieces_n;
	bool laid; /* of files that the dataplane has already */
	void *addr;
	size_t length;
	int access;
	bool once;       /* no further region will be made there */
	uint32_t *known; /* out: what the dataplane calls the memory; or NULL */
};

/* JSON's numbers have a sign: beyond 2^63 it is text, which the dataplane takes, too. */
static json_t *
number(uint64_t n)
{
	return n <= INT64_MAX ? json_integer((json_int_t)n) : json_sprintf("0x%" PRIx64, n);
}

static json_t *
pieces_of(const struct rl_mr_piece *pieces, uint32_t n)
{
	json_t *all = json_array();

	for (uint32_t i = 0; i < n; i++)
		json_array_append_new(
			all, json_pack("{s:o, s:o}", "offset", number(pieces[i].offset), "length",
				     number(pieces[i].length)));
	return all;
}

/* Lock held. @param more of the method's own, or NULL; taken. */
static int
ask(struct context *ctx, const char *method, json_t *more, struct rl_pd *pd,
	const struct request *q, json_t **result)
{
	int fds[RL_MR_PIECES] = { q->fd };
	uint32_t n = q->fd >= 0 ? 1 : 0;
	json_t *params = json_pack("{s:I, s:o, s:o, s:o, s:i, s:b, s:b}", "pd",
		(json_int_t)((struct pd *)pd)->handle, "length", number(q->length), "addr",
		number((uintptr_t)q->addr), "offset", number(q->offset), "access",
		q->access & ACCESS_BITS, "remote_invalidate",
		(q->access & RL_ACCESS_REMOTE_INVALIDATE) != 0, "once", q->once);

	if (more != NULL)
		json_object_update(params, more);
	json_decref(more);
	if (q->pieces_n != 0)
		json_object_set_new(params, "pieces", pieces_of(q->pieces, q->pieces_n));
	if (q->laid)
		json_object_set_new(params, "laid", json_true());
	for (uint32_t i = 0; i < q->pieces_n; i++)
		fds[n++] = q->pieces[i].fd;
	return client_call_fds(ctx, method, params, fds, n, result);
}

/* Lock held. */
static int
mr_new(struct context *ctx, struct rl_pd *pub, const struct request *q, struct mr **out)
{
	struct mr *mr = calloc(1, sizeof(*mr));
	json_t *result;
	int rc;

	if (mr == NULL)
		return client_fail(ENOMEM, "out of memory");
	rc = ask(ctx, "client_mr_register", NULL, pub, q, &result);
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
	client_lock(ctx);
	if (own) {
		rc = client_memory_new(ctx, length, &m);
		addr = rc == 0 ? m->base : NULL;
	} else if ((m = client_memory_of(ctx, addr, length)) == NULL) {
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
		client_memory_free(ctx, m, false);
	}
	client_unlock(ctx);
	return rc;
}

static int
reg_fd(struct rl_pd *pd, const struct request *q, struct rl_mr **out)
{
	struct context *ctx = context_of(pd->context);
	struct mr *mr = NULL;
	int rc;

	*out = NULL;
	if (q->fd < 0 && q->pieces_n == 0)
		return client_fail(EBADF, "descriptor %d", q->fd);
	client_lock(ctx);
	rc = mr_new(ctx, pd, q, &mr);
	client_unlock(ctx);
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
	struct memory *m = client_memory_of(ctx, q->addr, q->length);

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
	json_t *result;
	const int rc = ask(ctx, "client_mr_rereg",
		json_pack("{s:I, s:b}", "handle", (json_int_t)mr->handle, "memory", moves), pd, q,
		&result);

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
	client_lock(ctx);
	if (moves)
		rc = rereg_memory(ctx, mr, &q);
	if (rc == 0)
		rc = rereg(ctx, mr, pd, moves, &q);
	if (rc == 0 && moves) {
		if (mr->memory != NULL)
			mr->memory->users--;
		mr->memory = client_memory_of(ctx, addr, length);
		mr->memory->users++;
	}
	client_unlock(ctx);
	return rc;
}

/* To other memory of the application's. */
static int
rereg_fd(struct rl_mr *pub, int flags, struct rl_pd *pd, struct request *q)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = (struct mr *)pub;
	int rc;

	if (mr->fast)
		return client_fail(EINVAL, "a fast-register region: RL_WR_REG_MR changes it");
	if ((flags & RL_REREG_MR_CHANGE_TRANSLATION) == 0 || (flags & ~RL_REREG_MR_ALL) != 0)
		return client_fail(EINVAL, "flags 0x%x", (unsigned int)flags);
	if (mr->memory != NULL || (q->fd < 0 && q->pieces_n == 0))
		return client_fail(EINVAL, "the region is not of rl_reg_mr_fd()");
	if ((flags & RL_REREG_MR_CHANGE_PD) == 0)
		pd = pub->pd;
	if ((flags & RL_REREG_MR_CHANGE_ACCESS) == 0)
		q->access = mr->access;
	client_lock(ctx);
	rc = rereg(ctx, mr, pd, true, q);
	client_unlock(ctx);
	return rc;
}

int
rl_rereg_mr_fd(struct rl_mr *mr, int flags, struct rl_pd *pd, int fd, uint64_t offset, void *addr,
	size_t length, int access)
{
	struct request q = { .fd = fd,
		.offset = offset,
		.addr = addr,
		.length = length,
		.access = access,
		.once = true };

	return rereg_fd(mr, flags, pd, &q);
}

/* ---- of several memfds ----------------------------------------------------------------------- */

/* @return 0, or -EINVAL: there cannot be so many pieces. */
static int
of_pieces(struct request *q, const struct rl_mr_piece *pieces, int n)
{
	if (n < 1 || n > RL_MR_PIECES)
		return client_fail(EINVAL, "%d pieces: 1 to %d", n, RL_MR_PIECES);
	q->fd = -1;
	q->pieces = pieces;
	q->pieces_n = (uint32_t)n;
	q->once = true;
	return 0;
}

int
rl_reg_mr_pieces(struct rl_pd *pd, const struct rl_mr_piece *pieces, int n, uint64_t offset,
	void *addr, size_t length, int access, struct rl_mr **out)
{
	struct request q = { .offset = offset, .addr = addr, .length = length, .access = access };
	const int rc = of_pieces(&q, pieces, n);

	*out = NULL;
	return rc != 0 ? rc : reg_fd(pd, &q, out);
}

int
rl_rereg_mr_pieces(struct rl_mr *mr, int flags, struct rl_pd *pd, const struct rl_mr_piece *pieces,
	int n, uint64_t offset, void *addr, size_t length, int access)
{
	struct request q = { .offset = offset, .addr = addr, .length = length, .access = access };
	const int rc = of_pieces(&q, pieces, n);

	return rc != 0 ? rc : rereg_fd(mr, flags, pd, &q);
}

/* ---- of many files --------------------------------------------------------------------------- */

/* Lock held. As many as go with one message, closed here. @param at out: where they end. */
static int
lay_some(struct context *ctx, const struct rl_mr_files *f, uint32_t from, uint64_t *at)
{
	struct rl_mr_piece pieces[RL_MR_PIECES];
	int fds[RL_MR_PIECES], rc = 0;
	const uint64_t begin = *at;
	uint32_t n = 0;

	while (n < RL_MR_PIECES && from + n < f->n && rc == 0) {
		rc = f->open(f->ctx, from + n, &pieces[n]);
		if (rc != 0)
			break;
		fds[n] = pieces[n].fd;
		*at += pieces[n++].length;
	}
	if (rc != 0)
		rc = client_fail(-rc, "file %u of the region cannot be opened", from + n);
	else
		rc = client_call_fds(ctx, "client_memory_lay",
			json_pack("{s:I, s:I, s:o}", "length", (json_int_t)f->length, "offset",
				(json_int_t)begin, "pieces", pieces_of(pieces, n)),
			fds, n, NULL);
	while (n != 0)
		close(fds[--n]);
	return rc;
}

/* Lock held. What was laid so far would stay, and be charged, until the next one is. */
static void
lay_none(struct context *ctx, const struct rl_mr_files *f)
{
	client_call(ctx, "client_memory_lay",
		json_pack("{s:I, s:I}", "length", (json_int_t)f->length, "offset", (json_int_t)0),
		-1, NULL);
}

int
rl_reg_mr_files(struct rl_pd *pd, const struct rl_mr_files *files, uint64_t offset, void *addr,
	size_t length, int access, struct rl_mr **out)
{
	const struct request q = { .fd = -1,
		.offset = offset,
		.laid = true,
		.addr = addr,
		.length = length,
		.access = access,
		.once = true };
	struct context *ctx = context_of(pd->context);
	struct mr *mr = NULL;
	uint64_t at = 0;
	int rc = 0;

	*out = NULL;
	if (files->n == 0)
		return client_fail(EINVAL, "no files");
	client_lock(ctx);
	for (uint32_t i = 0; i < files->n && rc == 0; i += RL_MR_PIECES)
		rc = lay_some(ctx, files, i, &at);
	if (rc == 0)
		rc = mr_new(ctx, pd, &q, &mr);
	if (rc != 0 && at != 0 && !ctx->broken)
		lay_none(ctx, files);
	client_unlock(ctx);
	if (rc == 0)
		*out = &mr->pub;
	return rc;
}

/* ---- their end ------------------------------------------------------------------------------- */

int
rl_dereg_mr(struct rl_mr *pub)
{
	struct context *ctx = context_of(pub->context);
	struct mr *mr = (struct mr *)pub;
	const int rc = client_call_handle(
		ctx, mr->fast ? "client_mw_dealloc" : "client_mr_deregister", mr->handle);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->mrs, mr, all);
	if (mr->memory != NULL)
		mr->memory->users--;
	if (mr->own_memory)
		client_memory_free(ctx, mr->memory, false);
	client_unlock(ctx);
	free(mr);
	return 0;
}
