/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Thread and parent domains. A program says by them that it needs no locks; there are none that it
 * could be spared. A parent domain is another name of its protection domain.
 */
#include <stdlib.h>

#include "vl.h"

/* Of rdma-core 65: buffers may be shared with a guest's host. A device here asks for no such. */
#define ALLOW_CC_UNPROTECTED (1u << 2)

struct vl_td {
	struct ibv_td pub;
	uint32_t users;
};

static void
count(uint32_t *users, int by)
{
	__atomic_fetch_add(users, (uint32_t)by, __ATOMIC_RELAXED);
}

static struct ibv_td *
alloc_td(struct ibv_context *ctx, struct ibv_td_init_attr *init)
{
	struct vl_td *td;

	if (init->comp_mask != 0)
		return vl_none(vl_why(EINVAL, "a comp_mask"));
	td = calloc(1, sizeof(*td));
	if (td == NULL)
		return vl_none(vl_no_memory());
	td->pub.context = ctx;
	return &td->pub;
}

static int
dealloc_td(struct ibv_td *pub)
{
	struct vl_td *td = (struct vl_td *)pub;

	if (__atomic_load_n(&td->users, __ATOMIC_RELAXED) != 0)
		return vl_result(vl_why(-EBUSY, "a parent domain has it"));
	free(td);
	return 0;
}

bool
vl_is_parent_domain(const struct ibv_pd *pd)
{
	return pd != NULL && ((const struct vl_pd *)pd)->base != NULL;
}

void
vl_pd_used(struct ibv_pd *pd, int by)
{
	if (vl_is_parent_domain(pd))
		count(&((struct vl_pd *)pd)->users, by);
}

/* The memory of all queues is the dataplane's, so a program's allocators are not asked. */
static struct ibv_pd *
alloc_parent_domain(struct ibv_context *ctx, struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT | ALLOW_CC_UNPROTECTED;
	struct vl_pd *pd;

	if ((attr->comp_mask & ~known) != 0)
		return vl_none(vl_why(EINVAL, "a comp_mask beyond the three that are known"));
	if ((attr->comp_mask & IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS) != 0 &&
		(attr->alloc == NULL || attr->free == NULL))
		return vl_none(vl_why(EINVAL, "ALLOCATORS without alloc or free"));
	if (attr->pd == NULL || vl_is_parent_domain(attr->pd))
		return vl_none(vl_why(EINVAL, "no pd, or a parent domain"));
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return vl_none(vl_no_memory());
	pd->pub = (struct ibv_pd){ .context = ctx, .handle = attr->pd->handle };
	pd->base = (struct vl_pd *)attr->pd;
	pd->rl = pd->base->rl;
	pd->td = (struct vl_td *)attr->td;
	count(&pd->base->users, 1);
	if (pd->td != NULL)
		count(&pd->td->users, 1);
	return &pd->pub;
}

int
vl_parent_domain_free(struct vl_pd *pd)
{
	if (__atomic_load_n(&pd->users, __ATOMIC_RELAXED) != 0)
		return vl_why(-EBUSY, "something was made with it");
	count(&pd->base->users, -1);
	if (pd->td != NULL)
		count(&pd->td->users, -1);
	free(pd);
	return 0;
}

void
vl_domain_ops(struct verbs_context *pub)
{
	pub->alloc_td = alloc_td;
	pub->dealloc_td = dealloc_td;
	pub->alloc_parent_domain = alloc_parent_domain;
}
