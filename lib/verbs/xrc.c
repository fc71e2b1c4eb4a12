/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and shared receive queues that have a number in one. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "vl.h"

/* Processes share a domain by a file: by what the file is, whatever it is called. */
static int
open_shared(struct vl_context *c, int fd, int oflags, struct rl_xrcd **out)
{
	struct stat st;
	char name[41];

	if (fstat(fd, &st) != 0)
		return vl_why(-errno, "the file of the domain cannot be looked at");
	snprintf(name, sizeof(name), "file-%llx-%llx", (unsigned long long)st.st_dev,
		(unsigned long long)st.st_ino);
	return rl_open_xrcd(c->rl, name, oflags, out);
}

static struct ibv_xrcd *
open_xrcd(struct ibv_context *ctx, struct ibv_xrcd_init_attr *init)
{
	const uint32_t needed = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
	struct vl_context *c = vl_context_of(ctx);
	struct vl_xrcd *x;
	int rc;

	if (init->comp_mask != needed)
		return vl_none(vl_why(init->comp_mask > needed ? EOPNOTSUPP : EINVAL,
			"a comp_mask that is not FD and OFLAGS"));
	x = calloc(1, sizeof(*x));
	if (x == NULL)
		return vl_none(vl_no_memory());
	rc = rl_alloc_pd(c->rl, &x->pd);
	if (rc == 0)
		rc = init->fd < 0 ? rl_create_xrcd(c->rl, &x->rl)
				  : open_shared(c, init->fd, init->oflags, &x->rl);
	if (rc != 0) {
		if (x->pd != NULL)
			rl_dealloc_pd(x->pd);
		free(x);
		return vl_none(-rc);
	}
	x->pub.context = ctx;
	return &x->pub;
}

static int
close_xrcd(struct ibv_xrcd *pub)
{
	struct vl_xrcd *x = (struct vl_xrcd *)pub;
	const int rc = rl_close_xrcd(x->rl);

	if (rc != 0)
		return vl_result(rc);
	rl_dealloc_pd(x->pd);
	free(x);
	return 0;
}

static int
get_srq_num(struct ibv_srq *srq, uint32_t *number)
{
	return vl_result(rl_get_srq_num(((struct vl_srq *)srq)->rl, number));
}

void
vl_xrc_ops(struct verbs_context *pub)
{
	pub->open_xrcd = open_xrcd;
	pub->close_xrcd = close_xrcd;
	pub->open_qp = vl_open_qp;
	pub->get_srq_num = get_srq_num;
}
