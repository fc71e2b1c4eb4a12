/* SPDX-License-Identifier: BSD-3-Clause */
/* A client of the bed, and what it posts. */
#include "client_rig.h"

#include <string.h>

#include "../../clib/unstable.h"
#include "ring_send.h"

static struct {
	uint8_t *sq, *rq, *srq, *cq, *cq2, *bells;
	size_t sq_len, rq_len, srq_len, cq_len, bells_len;
} mem;
static void
map_all(void)
{
	mem.sq_len = ring_size(ENTRIES, ring_send_stride(4, 64));
	mem.rq_len = ring_size(ENTRIES, ring_recv_stride(4));
	mem.srq_len = ring_size(ENTRIES, ring_recv_stride(4));
	mem.cq_len = ring_size(CQES, sizeof(struct ring_cqe));
	mem.bells_len = ring_bells_size(BELLS);
	mem.sq = unstable_map(mem.sq_len);
	mem.rq = unstable_map(mem.rq_len);
	mem.srq = unstable_map(mem.srq_len);
	mem.cq = unstable_map(mem.cq_len);
	mem.cq2 = unstable_map(mem.cq_len);
	mem.bells = unstable_map(mem.bells_len);
	assert_true(mem.sq && mem.rq && mem.srq && mem.cq && mem.cq2 && mem.bells);
}

static void
clear(void)
{
	memset(mem.sq, 0, mem.sq_len);
	memset(mem.rq, 0, mem.rq_len);
	memset(mem.srq, 0, mem.srq_len);
	memset(mem.cq, 0, mem.cq_len);
	memset(mem.cq2, 0, mem.cq_len);
	memset(mem.bells, 0, mem.bells_len);
}

static struct mem_window *
window(struct bed *b, uint8_t kind, uint32_t key)
{
	struct mem_window *w = mem_window_alloc();

	assert_non_null(w);
	w->r.kind = kind;
	w->home_pd = PD;
	assert_int_equal(mem_window_add(b->mem, w, key), 0);
	return w;
}

static void
window_gone(struct bed *b, struct mem_window *w)
{
	mem_window_remove(b->mem, w);
	mem_window_free(w);
}

void
rig_make(struct rig *r, struct bed *b, bool shared, bool crowded)
{
	const struct qp_alloc_params params = { .max_recv_wr = ENTRIES,
		.max_recv_sge = 4,
		.max_send_wr = ENTRIES,
		.max_send_sge = 4,
		.max_inline = 64,
		.max_dest_rd_atomic = 4,
		.client = CLIENT,
		.rq_mem = mem.rq,
		.sq_mem = mem.sq };
	struct mbox_msg m = { .type = MBOX_CLIENT_ATTACH };

	if (mem.sq == NULL)
		map_all();
	clear();
	memset(r, 0, sizeof(*r));
	r->bed = b;
	r->client.id = CLIENT;
	ring_bells_attach(&r->client.bells, mem.bells, BELLS);
	ring_bells_attach(&r->bells, mem.bells, BELLS);
	m.client.client = &r->client;
	assert_int_equal(bed_tell(b, &m), 0);
	ring_cq_attach(&r->cq.ring, mem.cq, CQES, CQES, true);
	ring_cq_attach(&r->polled, mem.cq, CQES, CQES, false);
	atomic_store(&r->cq.producer, crowded ? CQ_PRODUCER_ANY : 1);
	atomic_store(&r->cq.notify, CQ_NOTIFY_NEXT);
	ring_srq_attach(&r->srq.ring, mem.srq, ENTRIES, ring_recv_stride(4));
	ring_srq_producer(&r->srq.ring, &r->srq_post);
	r->srq.pd = PD;
	r->srq.max_sge = 4;
	r->qp = bed_qp_with(b, OWN_QPN, PEER_QPN, &params);
	r->qp->send_cq = r->qp->recv_cq = &r->cq;
	b->mr->access |= ACCESS_MW_BIND;
	r->window = window(b, MEM_WINDOW_2, WINDOW_KEY);
	r->fast = window(b, MEM_FAST, FAST_KEY);
	ring_attach(&r->sq, mem.sq, ENTRIES, r->qp->sq.ring.stride, false);
	ring_attach(&r->rq, mem.rq, ENTRIES, r->qp->rq.stride, false);
	if (shared) {
		r->qp->srq = &r->srq;
		r->qp->flags |= QPF_SRQ;
	}
}

void
rig_resize(struct rig *r)
{
	ring_cq_attach(&r->resized, mem.cq2, CQES, CQES, true);
	ring_cq_follow(&r->resized, &r->cq.ring);
	atomic_store(&r->cq.moved, &r->resized);
	r->cq.ring.limit = 0;
}

void
rig_end(struct rig *r)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_DETACH };

	bed_qp_gone(r->bed, r->qp);
	m.client.client = &r->client;
	assert_int_equal(bed_tell(r->bed, &m), 0);
	window_gone(r->bed, r->window);
	window_gone(r->bed, r->fast);
	while (mbox_recv_up(&r->bed->mbox, &m, 1) == 1)
		assert_int_not_equal(m.type, MBOX_PACKET);
}

static struct ring_send_wqe *
send_entry(struct rig *r, uint8_t opcode, uint8_t flags)
{
	struct ring_send_wqe *w = ring_produce_slot(&r->sq, ENTRIES);

	assert_non_null(w);
	memset(w, 0, r->sq.stride);
	w->wr_id = 1;
	w->opcode = opcode;
	w->flags = SEND_SIGNALED | flags;
	w->remote_addr = 0x700000;
	w->rkey = 0x77;
	return w;
}

static void
commit(struct rig *r)
{
	ring_produce_commit(&r->sq);
	if (ring_bell_is_due(&r->sq))
		assert_int_equal(ring_bells_put(&r->bells, OWN_QPN), 0);
}

static void
post_send(struct rig *r, uint8_t opcode, uint8_t flags, uint32_t num_sge, uint32_t len)
{
	struct ring_send_wqe *w = send_entry(r, opcode, flags);

	w->num_sge = num_sge;
	w->inline_len = (flags & SEND_INLINE) != 0 ? len : 0;
	for (uint32_t i = 0; i < num_sge; i++)
		w->sge[i] = (struct ring_sge){ MR_VA + i * 4096, len, MR_KEY };
	commit(r);
}

static void
post_bind(struct rig *r, uint32_t window, uint32_t key, access_t access)
{
	struct ring_send_wqe *w = send_entry(r, WR_BIND_MW, 0);

	w->rkey = window;
	w->imm = key;
	w->remote_addr = MR_VA + 4096;
	w->compare_add = 4096;
	w->swap = RING_BIND(MR_KEY, access);
	commit(r);
}

static void
post_invalidate(struct rig *r, uint32_t key)
{
	send_entry(r, WR_LOCAL_INV, 0)->imm = key;
	commit(r);
}

void
rig_post_rare(struct rig *r)
{
	struct ring_send_wqe *w;

	post_bind(r, WINDOW_KEY, WINDOW_KEY + 1, ACCESS_REMOTE_WRITE);
	post_bind(r, FAST_KEY, FAST_KEY + 1, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE);
	post_invalidate(r, WINDOW_KEY + 1);
	post_bind(r, WINDOW_KEY + 1, WINDOW_KEY + 2, ACCESS_REMOTE_READ);
	post_send(r, WR_ATOMIC_WRITE, SEND_INLINE, 0, 8);
	post_send(r, WR_ATOMIC_WRITE, 0, 1, 8);
	w = send_entry(r, WR_FLUSH, 0);
	w->compare_add = 4096;
	w->swap = FLUSH_GLOBAL;
	commit(r);
	post_send(r, WR_SEND_WITH_INV, 0, 1, 8);
}

static void
post_recv(struct ring *ring, uint32_t num_sge, uint32_t len)
{
	struct ring_recv_wqe *w = ring_produce_slot(ring, ENTRIES);
	struct ring_sge sge[4];

	assert_non_null(w);
	for (uint32_t i = 0; i < num_sge; i++)
		sge[i] = (struct ring_sge){ RQ_VA + i * 4096, len, RQ_KEY };
	ring_recv_fill(w, 2, sge, num_sge);
	ring_produce_commit(ring);
}

void
rig_post_sends(struct rig *r)
{
	post_send(r, WR_RDMA_WRITE, 0, 1, 64);
	post_send(r, WR_SEND, 0, 1, 1500);
	post_send(r, WR_SEND, SEND_INLINE, 0, 20);
	post_send(r, WR_RDMA_WRITE_WITH_IMM, 0, 2, 30);
	post_send(r, WR_RDMA_READ, 0, 1, 64);
	post_send(r, WR_ATOMIC_FETCH_AND_ADD, 0, 1, 8);
}

void
rig_post_lists(struct rig *r)
{
	post_send(r, WR_RDMA_WRITE, 0, 1, PMTU);
	post_send(r, WR_SEND, 0, 3, 300);
	post_send(r, WR_RDMA_WRITE, 0, 2, 8);
	post_send(r, WR_SEND, SEND_INLINE, 0, 20);
	post_send(r, WR_RDMA_WRITE_WITH_IMM, 0, 4, PMTU / 4);
	post_send(r, WR_SEND, 0, 1, 8);
	post_send(r, WR_SEND, 0, 2, 0);
	post_send(r, WR_SEND, 0, 2, PMTU);
}

void
rig_post_bad_sends(struct rig *r)
{
	post_send(r, WR_SEND, SEND_INLINE, 0, 64);
	post_send(r, WR_SEND, 0, 4, 8);
	post_send(r, WR_SEND, SEND_FENCE, 1, UINT32_C(0x80000001));
	post_send(r, WR_SEND, 0, 1, 8);
}

void
rig_post_receives(struct rig *r)
{
	struct ring *to = (r->qp->flags & QPF_SRQ) != 0 ? &r->srq_post : &r->rq;

	post_recv(to, 1, 4096);
	post_recv(to, 1, 256);
	post_recv(to, 3, 500);
	post_recv(to, 4, 64);
	post_recv(to, 1, 0);
}

void
rig_post_both(struct rig *r)
{
	rig_post_sends(r);
	rig_post_receives(r);
	assert_int_equal(ring_bells_put(&r->bells, OWN_QPN | RING_BELL_RECV), 0);
	assert_int_equal(ring_bells_put(&r->bells, UINT32_MAX), 0);
}
