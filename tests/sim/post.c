/* SPDX-License-Identifier: BSD-3-Clause */
/* Random work requests, good and bad, and receive WQEs. */
#include <string.h>

#include "sim.h"

/** Two or three stretches that follow each other, one of them may be empty. */
static uint32_t
split(struct sim *s, struct ring_sge *sge, uint64_t addr, uint32_t len, uint32_t key)
{
	uint32_t n = rarely(&s->g, 2) ? 1 : range(&s->g, 2, SGES);

	for (uint32_t i = 0; i < n; i++) {
		uint32_t part = i + 1 == n ? len : below(&s->g, len + 1);

		sge[i] = (struct ring_sge){ .addr = addr, .length = part, .lkey = key };
		addr += part;
		len -= part;
	}
	return n;
}

static uint32_t
any_len(struct sim *s, const struct pair *p)
{
	struct rng *g = &s->g;
	uint32_t most = p->message_max, packets = most / p->pmtu, n;

	if (rarely(g, 20))
		return 0;
	if (rarely(g, 40))
		return below(g, most + 1);
	if (rarely(g, 1 + s->size))
		return below(g, p->pmtu < 256 ? p->pmtu + 1 : 257);
	n = range(g, 1, packets < 20 ? packets : 20);
	if (rarely(g, 2))
		n = range(g, 1, n);
	/* Whole packets as well as odd bytes. */
	return rarely(g, 3) ? n * p->pmtu : (n - 1) * p->pmtu + range(g, 1, p->pmtu);
}

static bool
overlap(uint32_t a, uint32_t a_len, uint32_t b, uint32_t b_len)
{
	return a < b + b_len && b < a + a_len;
}

/** What writes, and may overtake the answer of a READ before it, must be fenced. */
static bool
needs_fence(const struct end *e, const struct requester_wr *w, const struct work *k)
{
	if (!wr_is_write(w) && !wr_is_atomic(w) && !wr_is_store(w))
		return false;
	for (uint32_t i = e->done; i != e->req.tail; i++) {
		const struct requester_wr *o = &e->wr[i % SQ_SLOTS];

		if (wr_is_read(o) &&
			overlap(k->target, w->len, e->work[i % SQ_SLOTS].target, o->len))
			return true;
	}
	return false;
}

static void
aim(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *peer = peer_of(s, e);
	uint32_t bytes = pair_of(s, e)->mr_bytes, offset = below(&s->g, bytes - w->len + 1);

	if (rarely(&s->g, 2) && window_aim(s, e, w, k))
		return;
	k->mr = (uint8_t)below(&s->g, MRS);
	if (wr_is_atomic(w) || wr_is_store(w)) {
		offset &= ~7u;
		if (rarely(&s->g, 2))
			offset = 8 * below(&s->g, 4);
	}
	k->target = GUARD + k->mr * (bytes + GUARD) + offset;
	w->rkey = peer->mr[k->mr].key;
	if (peer->mr[k->mr].region != NULL)
		w->remote_addr = peer->mr[k->mr].region->va + offset;
}

/** Something is wrong with it from the beginning, and so is what it leads to. */
static void
spoil(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *peer = peer_of(s, e);
	bool flush = wr_is_flush(w), word = wr_is_atomic(w) || wr_is_store(w);
	bool remote = flush || (!wr_is_send(w) && w->len != 0);

	if (remote && rarely(&s->g, 3) && window_spoil(s, e, w, k)) {
		TRACE(s, e, "work request %u has a bad key", e->req.tail);
		return;
	}
	switch (below(&s->g, 8)) {
	case 0: /* a key that never was */
		if (!remote)
			return;
		w->rkey = 0x55;
		k->want = STATUS_REM_ACCESS;
		break;
	case 1: /* beyond the end of the region */
		if (!remote || k->window != 0 || peer->mr[k->mr].region == NULL ||
			wr_is_whole_flush(w))
			return;
		w->remote_addr = peer->mr[k->mr].region->va +
				 ((peer->mr[k->mr].region->length - w->len + 8) & ~7ull);
		k->want = STATUS_REM_ACCESS;
		break;
	case 2: /* a region that is not for peers */
		if (!remote || w->len > 4096)
			return;
		w->rkey = peer->pool.key;
		w->remote_addr = peer->pool.region->va;
		k->want = STATUS_REM_ACCESS;
		break;
	case 3:
		if (w->len == 0 || flush)
			return;
		for (uint32_t i = 0; i < k->num_sge; i++)
			k->sge[i].lkey = 0x77;
		k->want = STATUS_LOC_PROT;
		break;
	case 4:
		w->opcode = rarely(&s->g, 2) ? 13 : 200;
		k->want = STATUS_LOC_QP_OP;
		break;
	case 5:
		if (word || flush)
			return;
		w->len = 0x80000001;
		k->want = STATUS_LOC_LEN;
		break;
	case 6:
		if (!word && !flush)
			return;
		if (flush)
			w->swap = rarely(&s->g, 2) ? 0 : 4 | FLUSH_GLOBAL; /* no such type */
		else
			w->remote_addr += range(&s->g, 1, 7);
		k->want = STATUS_REM_INV_REQ;
		break;
	default: /* the peer gives up without a word: class J */
		if (w->opcode != WR_SEND_WITH_INV)
			return;
		if (k->window == 0)
			peer->inv[k->inv].used = false;
		window_spoil_inv(s, e, w, k);
		k->want = WANT_SILENCE;
		break;
	}
	TRACE(s, e, "work request %u is bad: status %u", e->req.tail, k->want);
}

static uint8_t
any_opcode(struct sim *s, const struct end *e)
{
	static const uint8_t ops[] = { WR_RDMA_WRITE, WR_RDMA_WRITE_WITH_IMM, WR_SEND,
		WR_SEND_WITH_IMM, WR_SEND_WITH_INV, WR_RDMA_READ, WR_RDMA_READ,
		WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD, WR_ATOMIC_FETCH_AND_ADD,
		WR_RDMA_WRITE, WR_SEND };

	if ((e->req.knobs & REQ_KNOB_PLACEMENT) != 0 && rarely(&s->g, 6))
		return rarely(&s->g, 2) ? WR_FLUSH : WR_ATOMIC_WRITE;
	return ops[below(&s->g, sizeof(ops))];
}

static bool
choose_inv(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *peer = peer_of(s, e);

	if (rarely(&s->g, 2) && window_choose_inv(s, e, w, k))
		return true;
	k->inv = (uint8_t)below(&s->g, INVS);
	if (peer->inv[k->inv].used || peer->inv[k->inv].region == NULL)
		return false;
	peer->inv[k->inv].used = true;
	w->imm = peer->inv[k->inv].key;
	return true;
}

static void
fill_local(struct sim *s, struct end *e, const struct requester_wr *w, struct work *k)
{
	uint32_t slot = e->req.tail % SQ_SLOTS, offset = slot * MESSAGE_TOP;
	struct mr *m = &e->to_sink;

	if (wr_is_flush(w))
		return;
	k->doomed = s->chaos != 0 && !e->doomed_gone && rarely(&s->g, 100);
	if (wr_is_read(w) || wr_is_atomic(w)) {
		m = k->doomed ? &e->doomed_sink : m;
	} else {
		m = k->doomed ? &e->doomed_pool : &e->pool;
		offset = below(&s->g, POOL_BYTES - w->len);
		k->source = offset;
	}
	k->num_sge = (uint8_t)split(s, k->sge, m->region->va + offset, w->len, m->key);
}

static void
post_one(struct sim *s, struct end *e)
{
	struct requester_wr *w = &e->wr[e->req.tail % SQ_SLOTS];
	struct work *k = &e->work[e->req.tail % SQ_SLOTS];
	struct rng *g = &s->g;

	*k = (struct work){ .want = WANT_SUCCESS };
	*w = (struct requester_wr){
		.opcode = any_opcode(s, e), .wr_id = s->next_wr_id++, .imm = (uint32_t)rng_next(g)
	};
	w->flags = (uint8_t)((rarely(g, 2) ? SEND_SIGNALED : 0) | (rarely(g, 30) ? SEND_FENCE : 0));
	w->len = wr_is_atomic(w) || wr_is_store(w) ? 8 : any_len(s, pair_of(s, e));
	if (w->opcode == WR_SEND_WITH_INV && !choose_inv(s, e, w, k))
		w->opcode = WR_SEND;
	if (rarely(g, 4) && (wr_is_send(w) || w->opcode == WR_RDMA_WRITE_WITH_IMM))
		w->flags |= SEND_SOLICITED;
	if (!wr_is_send(w))
		aim(s, e, w, k);
	w->compare_add = rarely(g, 2) ? 1 : rng_next(g);
	w->swap = rng_next(g);
	if (wr_is_flush(w))
		w->swap = FLUSH_GLOBAL | (w->swap & FLUSH_MR);
	if (w->opcode == WR_ATOMIC_CMP_AND_SWP && rarely(g, 2)) /* one that may succeed */
		memcpy(&w->compare_add, peer_of(s, e)->shadow + k->target, 8);
	fill_local(s, e, w, k);
	if (needs_fence(e, w, k))
		w->flags |= SEND_FENCE;
	if (rarely(g, s->faults))
		spoil(s, e, w, k);
	if (!wr_is_send(w) && w->opcode < 7 && k->window == 0 &&
		peer_of(s, e)->mr[k->mr].region == NULL) {
		if (w->len == 0)
			w->remote_addr = 0;
	}
	requester_posted(&e->req, e->req.tail + 1);
}

void
app_post(struct sim *s, struct end *e, uint32_t n)
{
	while (n-- != 0 && e->req.tail - e->done < e->depth)
		if (!rarely(&s->g, 6) || !window_post(s, e))
			post_one(s, e);
}

void
app_receives(struct sim *s, struct end *e, uint32_t n)
{
	while (n-- != 0 && e->rq_tail - e->rq_head < RQ_SLOTS - 1u) {
		uint32_t slot = e->rq_tail % RQ_SLOTS;
		struct receive *r = &e->rq[slot];

		*r = (struct receive){ .wr_id = e->rq_tail, .bytes = pair_of(s, e)->message_max };
		if (rarely(&s->g, s->faults)) {
			if (rarely(&s->g, 2))
				r->bytes = below(&s->g, r->bytes);
			else
				r->fault = (uint8_t)range(&s->g, 1, 2);
		}
		r->num_sge = split(s, r->sge, e->to_inbox.region->va + (uint64_t)slot * MESSAGE_TOP,
			r->bytes, e->to_inbox.key);
		e->rq_tail++;
	}
}
