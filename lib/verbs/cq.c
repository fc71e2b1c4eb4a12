/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues, their channels, completions. */
#include <stdlib.h>
#include <string.h>

#include "vl.h"

#define POLL_BATCH 16

/* What is copied as one piece; behind it are members that RoCE does not have. */
#define SAME(field) \
	_Static_assert(offsetof(struct ibv_wc, field) == offsetof(struct rl_wc, field), #field)
SAME(wr_id);
SAME(status);
SAME(opcode);
SAME(vendor_err);
SAME(byte_len);
SAME(imm_data);
SAME(qp_num);
SAME(src_qp);
SAME(wc_flags);
_Static_assert(offsetof(struct ibv_wc, pkey_index) == offsetof(struct rl_wc, psn), "all of it");

/* ---- channels -------------------------------------------------------------------------------- */

struct ibv_comp_channel *
ibv_create_comp_channel(struct ibv_context *ctx)
{
	struct vl_channel *ch = calloc(1, sizeof(*ch));
	int rc;

	if (ch == NULL)
		return vl_none(vl_no_memory());
	rc = rl_create_comp_channel(vl_context_of(ctx)->rl, &ch->rl);
	if (rc != 0) {
		free(ch);
		return vl_none(-rc);
	}
	ch->pub.context = ctx;
	ch->pub.fd = ch->rl->fd;
	return &ch->pub;
}

int
ibv_destroy_comp_channel(struct ibv_comp_channel *pub)
{
	struct vl_channel *ch = (struct vl_channel *)pub;
	const int rc = rl_destroy_comp_channel(ch->rl);

	if (rc == 0)
		free(ch);
	return vl_result(rc);
}

int
ibv_get_cq_event(struct ibv_comp_channel *pub, struct ibv_cq **out, void **cq_context)
{
	struct vl_cq *cq;
	struct rl_cq *rl;
	void *ours = NULL;
	const int rc = rl_get_cq_event(((struct vl_channel *)pub)->rl, &rl, &ours);

	if (rc != 0) {
		errno = -rc;
		return -1;
	}
	cq = ours;
	*out = (struct ibv_cq *)&cq->pub;
	*cq_context = cq->pub.cq_context;
	return 0;
}

void
ibv_ack_cq_events(struct ibv_cq *pub, unsigned int nevents)
{
	struct vl_cq *cq = (struct vl_cq *)pub;

	pthread_mutex_lock(&pub->mutex);
	pub->comp_events_completed += nevents;
	pthread_mutex_unlock(&pub->mutex);
	rl_ack_cq_events(cq->rl, nevents);
}

/* ---- completion queues ----------------------------------------------------------------------- */

static struct vl_cq *
create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel,
	uint32_t comp_vector)
{
	struct vl_channel *ch = (struct vl_channel *)channel;
	struct vl_cq *cq;
	int rc;

	if (cqe < 1 || comp_vector >= (uint32_t)ctx->num_comp_vectors)
		return vl_none(vl_why(EINVAL, "no entries, or no such completion vector"));
	cq = calloc(1, sizeof(*cq));
	if (cq == NULL)
		return vl_none(vl_no_memory());
	rc = rl_create_cq(vl_context_of(ctx)->rl, cqe, cq, ch != NULL ? ch->rl : NULL, &cq->rl);
	if (rc != 0) {
		free(cq);
		return vl_none(-rc);
	}
	cq->pub.context = ctx;
	cq->pub.channel = channel;
	cq->pub.cq_context = cq_context;
	cq->pub.cqe = cq->rl->cqe;
	pthread_mutex_init(&cq->pub.mutex, NULL);
	pthread_cond_init(&cq->pub.cond, NULL);
	pthread_mutex_init(&cq->polling, NULL);
	if (ch != NULL)
		__atomic_fetch_add(&ch->pub.refcnt, 1, __ATOMIC_RELAXED);
	return cq;
}

struct ibv_cq *
ibv_create_cq(struct ibv_context *ctx, int cqe, void *cq_context, struct ibv_comp_channel *channel,
	int comp_vector)
{
	return (struct ibv_cq *)create_cq(ctx, cqe, cq_context, channel, (uint32_t)comp_vector);
}

struct ibv_cq_ex *
vl_create_cq_ex(struct ibv_context *ctx, struct ibv_cq_init_attr_ex *init)
{
	const uint64_t known = IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |
			       IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK;
	const uint32_t flags =
		(init->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS) != 0 ? init->flags : 0;
	const bool in_domain = (init->comp_mask & IBV_CQ_INIT_ATTR_MASK_PD) != 0;
	struct rl_clock now = { .wall_ns = 0 };
	struct vl_cq *cq;
	int rc;

	if ((init->wc_flags & ~known) != 0)
		return vl_none(vl_why(EOPNOTSUPP, "a wc_flag that no completion has here"));
	if ((init->comp_mask & ~(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD)) != 0)
		return vl_none(vl_why(EOPNOTSUPP, "a comp_mask beyond FLAGS and PD"));
	if (in_domain && !vl_is_parent_domain(init->parent_domain))
		return vl_none(vl_why(EINVAL, "no parent domain"));
	if ((flags & ~(uint32_t)IBV_CREATE_CQ_ATTR_SINGLE_THREADED) != 0)
		return vl_none(vl_why(EOPNOTSUPP, "flags beyond SINGLE_THREADED"));
	if (init->cqe > INT32_MAX)
		return vl_none(vl_why(EINVAL, "more entries than any queue has"));
	if ((init->wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0) {
		rc = rl_query_clock(vl_context_of(ctx)->rl, &now);
		if (rc != 0)
			return vl_none(-rc);
	}
	cq = create_cq(ctx, (int)init->cqe, init->cq_context, init->channel, init->comp_vector);
	if (cq == NULL)
		return NULL;
	cq->to_wall = now.wall_ns - now.timestamp_ns;
	if (in_domain) {
		cq->domain = init->parent_domain;
		vl_pd_used(cq->domain, 1);
	}
	vl_cq_ex_init(cq, (flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED) == 0);
	return &cq->pub;
}

int
ibv_resize_cq(struct ibv_cq *pub, int cqe)
{
	struct vl_cq *cq = (struct vl_cq *)pub;
	const int rc = rl_resize_cq(cq->rl, cqe);

	pub->cqe = cq->rl->cqe;
	return vl_result(rc);
}

int
ibv_destroy_cq(struct ibv_cq *pub)
{
	struct vl_cq *cq = (struct vl_cq *)pub;
	const int rc = rl_destroy_cq(cq->rl);

	if (rc != 0)
		return vl_result(rc);
	if (pub->channel != NULL)
		__atomic_fetch_sub(&pub->channel->refcnt, 1, __ATOMIC_RELAXED);
	vl_pd_used(cq->domain, -1);
	pthread_mutex_destroy(&pub->mutex);
	pthread_cond_destroy(&pub->cond);
	pthread_mutex_destroy(&cq->polling);
	free(cq);
	return 0;
}

/* ---- completions ----------------------------------------------------------------------------- */

int
vl_req_notify_cq(struct ibv_cq *pub, int solicited_only)
{
	/* Without a channel nobody can hear of it: the kernel does not refuse it either. */
	if (pub->channel == NULL)
		return 0;
	return vl_result(
		rl_req_notify_cq(((struct vl_cq *)pub)->rl, (solicited_only != 0) | RL_NOTIFY_NEW));
}

int
vl_poll_cq(struct ibv_cq *pub, int n, struct ibv_wc *wc)
{
	struct vl_cq *cq = (struct vl_cq *)pub;
	struct rl_wc from[POLL_BATCH];
	int got = 0;

	while (got < n) {
		const int want = n - got < POLL_BATCH ? n - got : POLL_BATCH;
		const int k = rl_poll_cq(cq->rl, want, from);

		if (k < 0 && got == 0) {
			errno = -k;
			return k;
		}
		for (int i = 0; i < k; i++) {
			struct ibv_wc *to = &wc[got++];

			memcpy(to, &from[i], offsetof(struct ibv_wc, pkey_index));
			memset(&to->pkey_index, 0,
				sizeof(*to) - offsetof(struct ibv_wc, pkey_index));
			to->sl = vl_wc_sl(&from[i]);
		}
		if (k < want)
			break;
	}
	return got;
}
