/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cancel.h"
#include "span.h"
#include "vl.h"

#define REASONS       20
#define REGION_ACCESS (31u | VL_ACCESS_FLUSH_GLOBAL)

/* ---- protection domains ---------------------------------------------------------------------- */

struct ibv_pd *
ibv_alloc_pd(struct ibv_context *ctx)
{
	struct vl_pd *pd = calloc(1, sizeof(*pd));
	int rc;

	if (pd == NULL)
		return vl_none(vl_no_memory());
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
	int rc;

	if (pd->base != NULL)
		return vl_result(vl_parent_domain_free(pd));
	if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED) != 0)
		return vl_result(vl_why(-EBUSY, "a parent domain has it"));
	rc = rl_dealloc_pd(pd->rl);
	if (rc == 0)
		free(pd);
	return vl_result(rc);
}

/* ---- regions --------------------------------------------------------------------------------- */

/* A program sees an errno only: the reason goes to stderr, the first few times. */
static void
say(const void *addr, size_t length, const char *why)
{
	static int said;
	CANCEL_HELD;

	if (__atomic_fetch_add(&said, 1, __ATOMIC_RELAXED) < REASONS)
		fprintf(stderr, "rocelane: no region of %zu bytes at %p: %s\n", length, addr, why);
}

static int
check_access(unsigned int access, const char **why)
{
	const unsigned int known = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC |
				   IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED |
				   VL_ACCESS_FLUSH_GLOBAL;
	/* ... to the kernel, and what a device may ignore. */
	const unsigned int named =
		((VL_ACCESS_FLUSH_PERSISTENT << 1) - 1) | IBV_ACCESS_OPTIONAL_RANGE;

	if ((access & ~named) != 0) {
		*why = "an access flag that has no meaning";
		return EINVAL;
	}
	if ((access & ~(known | IBV_ACCESS_OPTIONAL_RANGE | IBV_ACCESS_HUGETLB)) != 0) {
		*why = "an access flag that is not there: on demand paging, FLUSH_PERSISTENT";
		return EOPNOTSUPP;
	}
	if ((access & (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)) != 0 &&
		(access & IBV_ACCESS_LOCAL_WRITE) == 0) {
		*why = "REMOTE_WRITE and REMOTE_ATOMIC require LOCAL_WRITE";
		return EINVAL;
	}
	return 0;
}

/* The dataplane, too, has a span for as long as regions are in it. @return 0, or an errno. */
static int
reg(struct rl_pd *pd, const struct vl_memory *m, void *addr, size_t length, int access,
	struct rl_mr **out, char said[VL_WHY], const char **why)
{
	const struct rl_mr_piece *p = m->pieces;
	int err;

	*why = NULL;
	if (m->spans.n > 1)
		return -rl_reg_mr_pieces(pd, p, m->spans.n, m->offset, addr, length, access, out);
	if (m->spans.n == 1)
		return -rl_reg_mr_once(pd, p->fd, p->offset + m->offset, addr, length, access, out);
	err = vl_shared_reg(pd, m, addr, length, access, out, said);
	if (said[0] != '\0')
		*why = said;
	vl_shared_put(m);
	return err;
}

/* @param said for the reason; *why is NULL: librocelane has it. @return 0, or an errno. */
static int
make(struct vl_mr *mr, struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access,
	char said[VL_WHY], const char **why)
{
	struct rl_pd *rl = ((struct vl_pd *)pd)->rl;
	struct vl_memory m;
	int err;

	*why = said;
	vl_spans_lock();
	err = vl_span_get(addr, length, (access & IBV_ACCESS_LOCAL_WRITE) != 0, &m, said);
	if (err == 0) {
		err = reg(rl, &m, (void *)(uintptr_t)iova, length, access, &mr->rl, said, why);
		if (err == 0) {
			TAILQ_INSERT_TAIL(&vl_context_of(pd->context)->mrs, mr, all);
			mr->spans = m.spans;
			mr->written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
		} else
			vl_spans_put(&m.spans);
	}
	vl_spans_unlock();
	return err;
}

struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct vl_mr *mr = calloc(1, sizeof(*mr));
	const char *why = "out of memory";
	char said[VL_WHY];
	int err = mr != NULL ? check_access(access, &why) : ENOMEM;

	if ((access & IBV_ACCESS_ZERO_BASED) != 0)
		iova = 0;
	if (err == 0)
		err = make(mr, pd, addr, length, iova, (int)(access & REGION_ACCESS), said, &why);
	if (err != 0) {
		free(mr);
		say(addr, length, why != NULL ? why : rl_last_error());
		return vl_none(vl_why(err, why));
	}
	vl_pd_used(pd, 1);
	mr->pub = (struct ibv_mr){ .context = pd->context,
		.pd = pd,
		.addr = addr,
		.length = length,
		.lkey = mr->rl->lkey,
		.rkey = mr->rl->rkey };
	return &mr->pub;
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
	return vl_none(vl_why(EOPNOTSUPP, "no regions of a dmabuf"));
}

/* @param said for the reason; *why is NULL: librocelane has it. @return 0, or an errno. */
static int
move(struct vl_mr *mr, int flags, struct rl_pd *pd, void *addr, size_t length, int access,
	bool written, char said[VL_WHY], const char **why)
{
	struct vl_memory m;
	int err = vl_span_get(addr, length, written, &m, said);

	*why = said;
	if (err != 0)
		return err;
	if (m.spans.n == 0) {
		/* It would go with this region, and could not be registered again. */
		vl_shared_put(&m);
		*why = "a region cannot move to memory that the program shares itself";
		return EOPNOTSUPP;
	}
	*why = NULL;
	if (m.spans.n == 1)
		err = -rl_rereg_mr_fd(mr->rl, flags, pd, m.pieces[0].fd,
			m.pieces[0].offset + m.offset, addr, length, access);
	else
		err = -rl_rereg_mr_pieces(
			mr->rl, flags, pd, m.pieces, m.spans.n, m.offset, addr, length, access);
	if (err != 0) {
		vl_spans_put(&m.spans);
		return err;
	}
	vl_spans_put(&mr->spans);
	mr->spans = m.spans;
	mr->pub.addr = addr;
	mr->pub.length = length;
	return 0;
}

/* A region where it is, which the device shall write to from now on. @return 0, or an errno. */
static int
may_write(const struct vl_mr *mr, bool written, char said[VL_WHY], const char **why)
{
	int err;

	if (!written || mr->written)
		return 0;
	vl_spans_lock();
	err = vl_span_may_write(mr->pub.addr, mr->pub.length, said);
	vl_spans_unlock();
	if (err != 0)
		*why = said;
	return err;
}

int
ibv_rereg_mr(
	struct ibv_mr *pub, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct vl_mr *mr = (struct vl_mr *)pub;
	const bool moves = (flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0;
	struct rl_pd *to = (flags & IBV_REREG_MR_CHANGE_PD) != 0 ? ((struct vl_pd *)pd)->rl : NULL;
	bool written = mr->written;
	const char *why = NULL;
	char said[VL_WHY];
	int err = 0;

	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0) {
		err = check_access((unsigned int)access, &why);
		written = (access & IBV_ACCESS_LOCAL_WRITE) != 0;
	}
	access &= (int)REGION_ACCESS;
	if (err == 0 && moves) {
		vl_spans_lock();
		err = move(mr, flags, to, addr, length, access, written, said, &why);
		vl_spans_unlock();
	} else if (err == 0) {
		err = may_write(mr, written, said, &why);
		if (err == 0)
			err = -rl_rereg_mr(mr->rl, flags, to, NULL, 0, access);
	}
	if (err != 0) {
		say(moves ? addr : pub->addr, moves ? length : pub->length,
			why != NULL ? why : rl_last_error());
		vl_result(-vl_why(err, why));
		return IBV_REREG_MR_ERR_INPUT; /* the one that says: it is as before */
	}
	mr->written = written;
	if (to != NULL) {
		vl_pd_used(pub->pd, -1);
		vl_pd_used(pd, 1);
		pub->pd = pd;
	}
	pub->lkey = mr->rl->lkey;
	pub->rkey = mr->rl->rkey;
	return 0;
}

int
ibv_dereg_mr(struct ibv_mr *pub)
{
	struct vl_mr *mr = (struct vl_mr *)pub;
	int rc;

	vl_spans_lock();
	rc = rl_dereg_mr(mr->rl);
	/* Without a dataplane nobody has the memory any more. */
	if (rc == -EIO)
		rc = 0;
	if (rc == 0) {
		TAILQ_REMOVE(&vl_context_of(pub->context)->mrs, mr, all);
		vl_spans_put(&mr->spans);
	}
	vl_spans_unlock();
	if (rc == 0) {
		vl_pd_used(pub->pd, -1);
		free(mr);
	}
	return vl_result(rc);
}

/* Their structs stay, as libibverbs' do: a program may look at them. */
void
vl_close_regions(struct vl_context *c)
{
	struct vl_mr *mr;

	vl_spans_lock();
	rl_close(c->rl);
	TAILQ_FOREACH (mr, &c->mrs, all)
		vl_spans_put(&mr->spans);
	vl_spans_unlock();
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
	return IBV_FORK_UNNEEDED; /* span.h: a child gets copies */
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
