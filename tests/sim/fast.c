/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast-register regions: registered by work requests, used and invalidated by the peer. */
#include <errno.h>

#include "ring_send.h"
#include "sim.h"

enum { NO_KEY = 0x55, LOW_BYTE = 0xff };

/** This end is worker 0; there is another one, which is slow, so that revocations take turns. */
enum { READERS = 2, OWN = 0, OTHER = 1 };

#define PD 1
#define RIGHTS                                                                                  \
	(ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | \
		ACCESS_FLUSH_GLOBAL)

void
fast_create(struct sim *s, struct end *e)
{
	uint32_t bytes = MRS * (pair_of(s, e)->mr_bytes + GUARD) + GUARD;

	CHECK(s, mem_table_readers(e->table, READERS) == 0, "out of memory");
	mr_add_local(s, e, &e->base, e->target, bytes);
	for (uint32_t i = 0; i < FASTS; i++) {
		struct fast *f = &e->fast[i];
		int rc;

		f->w = mem_window_alloc();
		CHECK(s, f->w != NULL, "out of memory");
		f->w->r.kind = MEM_FAST;
		f->w->home_pd = PD;
		do {
			f->key = s->next_key & ~(uint32_t)LOW_BYTE;
			s->next_key += 0x1357;
			rc = mem_window_add(e->table, f->w, f->key);
		} while (rc == -EEXIST);
		CHECK(s, rc == 0, "no place for a fast-register region");
	}
}

void
fast_destroy(struct end *e)
{
	for (uint32_t i = 0; i < FASTS; i++) {
		if (e->fast[i].w == NULL)
			continue;
		mem_window_remove(e->table, e->fast[i].w);
		mem_window_free(e->fast[i].w);
		e->fast[i].w = NULL;
	}
	mr_remove(e, &e->base);
}

static struct fast *
any(struct sim *s, struct end *e, enum fast_state state)
{
	struct fast *f = &e->fast[below(&s->g, FASTS)];

	return f->w != NULL && f->state == state ? f : NULL;
}

static uint8_t
place_of(const struct end *e, const struct fast *f)
{
	return (uint8_t)(f - e->fast + 1);
}

/** Requests of the peer that name it and are not complete. */
static bool
is_used(struct sim *s, const struct end *e, const struct fast *f)
{
	const struct end *peer = peer_of(s, e);

	for (uint32_t i = peer->done; i != peer->req.tail; i++)
		if (peer->work[i % SQ_SLOTS].fast == place_of(e, f))
			return true;
	return false;
}

/* ---- the owner ------------------------------------------------------------------------------- */

/** Some bytes of one of the other regions, with some rights. */
static void
post_register(struct sim *s, struct end *e, struct fast *f, struct requester_wr *w, struct work *k)
{
	struct rng *g = &s->g;
	uint32_t bytes = pair_of(s, e)->mr_bytes, from = 8 * below(g, bytes / 16);
	access_t access = rarely(g, 4) ? ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ : RIGHTS;

	f->old = f->key;
	f->key = (f->key & ~(uint32_t)LOW_BYTE) | ((f->key + range(g, 1, 3)) & LOW_BYTE);
	f->access = access;
	f->target = GUARD + below(g, MRS) * (bytes + GUARD) + from;
	f->bytes = rarely(g, 2) ? bytes - from : range(g, 1, bytes - from);
	w->opcode = WR_BIND_MW;
	w->rkey = f->old;
	w->imm = f->key;
	w->remote_addr = e->base.region->va + f->target;
	w->compare_add = f->bytes;
	w->swap = RING_BIND(e->base.key, access);
	f->va = w->remote_addr;
	if (rarely(g, 3)) {
		w->swap = RING_BIND(e->base.key, access | ACCESS_ZERO_BASED);
		f->va = 0;
	}
	f->state = FAST_POSTED;
	if (!rarely(g, s->faults / 16))
		return;
	k->want = STATUS_MW_BIND;
	switch (below(g, 4)) {
	case 0:
		w->swap = RING_BIND(NO_KEY, access);
		break;
	case 1:
		w->compare_add = e->base.region->length - f->target + 1;
		break;
	case 2:
		w->swap = RING_BIND(e->base.key, access | ACCESS_MW_BIND);
		break;
	default:
		w->imm = f->key ^ 0x10000; /* another one's */
		break;
	}
}

static void
post_invalidate(
	struct sim *s, const struct end *e, struct fast *f, struct requester_wr *w, struct work *k)
{
	w->opcode = WR_LOCAL_INV;
	w->imm = f->key;
	f->state = FAST_LEAVING;
	if (!rarely(&s->g, s->faults / 16))
		return;
	if (rarely(&s->g, 2)) { /* it is registered already */
		w->opcode = WR_BIND_MW;
		w->rkey = f->key;
		w->imm = f->key ^ 1;
		w->remote_addr = e->base.region->va;
		w->compare_add = 8;
		w->swap = RING_BIND(e->base.key, RIGHTS);
		k->want = STATUS_MW_BIND;
	} else {
		w->imm = f->old;
		k->want = STATUS_LOC_PROT;
	}
}

bool
fast_post(struct sim *s, struct end *e)
{
	struct requester_wr *w = &e->wr[e->req.tail % SQ_SLOTS];
	struct work *k = &e->work[e->req.tail % SQ_SLOTS];
	struct fast *f = &e->fast[below(&s->g, FASTS)];
	bool rude = s->chaos != 0 && rarely(&s->g, 16);

	if (f->w == NULL || f->state == FAST_POSTED || f->state == FAST_LEAVING ||
		(f->state == FAST_VALID && !rude && is_used(s, e, f)))
		return false;
	*k = (struct work){ .want = WANT_SUCCESS, .own = place_of(e, f) };
	*w = (struct requester_wr){ .wr_id = s->next_wr_id++ };
	w->flags = (uint8_t)((rarely(&s->g, 2) ? SEND_SIGNALED : 0) |
			     (rarely(&s->g, 4) ? SEND_FENCE : 0));
	if (f->state == FAST_FREE)
		post_register(s, e, f, w, k);
	else
		post_invalidate(s, e, f, w, k);
	requester_posted(&e->req, e->req.tail + 1);
	return true;
}

/** Its key is taken back under requests of the peer: they may come too late. */
static void
revoke(struct sim *s, struct end *e, const struct fast *f)
{
	struct end *peer = peer_of(s, e);

	for (uint32_t i = peer->done; i != peer->req.tail; i++) {
		struct work *k = &peer->work[i % SQ_SLOTS];

		k->revoked |= k->fast == place_of(e, f);
	}
}

static bool
answers(const struct end *e, uint32_t key, const struct fast *f)
{
	uint8_t *host;

	return mem_check(e->table, key, PD, f->va, f->bytes, ACCESS_REMOTE_READ, &host) == MEM_OK;
}

/** MW-12: all that is older has completed, and nothing younger has begun. */
static void
check_turn(struct sim *s, const struct end *e, uint32_t position)
{
	CHECK(s, position == e->done && e->done == e->started && position != e->req.tail,
		"MW-12: request %u without a packet is done, %u is due and %u started", position,
		e->done, e->started);
	CHECK(s, peer_of(s, e)->executed == position && peer_of(s, e)->partial == 0,
		"MW-12: request %u without a packet: the peer has done %u", position,
		peer_of(s, e)->executed);
	CHECK(s, !e->draining, "QP-09: request %u begins while draining", position);
}

enum mem_turn
fast_work(struct sim *s, struct end *e, enum requester_fault *fault)
{
	const uint32_t position = e->req.head;
	struct requester_wr *w = &e->wr[position % SQ_SLOTS];
	struct fast *f = &e->fast[e->work[position % SQ_SLOTS].own - 1];
	bool begun = w->resumed != 0;
	enum mem_turn turn;
	enum mem_why why;

	check_turn(s, e, position);
	if (rarely(&s->g, 2))
		mem_reader_turn(e->table, OTHER);
	if (w->opcode == WR_BIND_MW) {
		const struct mem_bind b = { .window = w->rkey,
			.key = w->imm,
			.lkey = (uint32_t)w->swap,
			.pd = PD,
			.qpn = e->qpn,
			.access = RING_BIND_ACCESS(w->swap),
			.addr = w->remote_addr,
			.length = w->compare_add };

		*fault = WR_FAULT_BIND;
		turn = mem_window_bind(e->table, OWN, &b, &why);
	} else {
		*fault = WR_FAULT_KEY;
		turn = mem_window_invalidate(
			e->table, OWN, w->imm, mem_user(PD, e->qpn), &begun, &why);
		if (turn != MEM_TURN_REFUSED && w->resumed == 0)
			revoke(s, e, f);
		w->resumed = begun;
	}
	if (turn == MEM_TURN_LATER)
		return turn;
	CHECK(s, (turn == MEM_TURN_DONE) == (e->work[position % SQ_SLOTS].want == WANT_SUCCESS),
		"MW-04: request %u without a packet: %s, status %u is due", position,
		turn == MEM_TURN_DONE ? "done" : "refused", e->work[position % SQ_SLOTS].want);
	if (turn == MEM_TURN_REFUSED)
		return turn;
	f->state = w->opcode == WR_BIND_MW ? FAST_VALID : FAST_FREE;
	CHECK(s, answers(e, f->key, f) == (f->state == FAST_VALID),
		"MW-07: key %08x after request %u", f->key, position);
	CHECK(s, f->old == 0 || !answers(e, f->old, f), "MW-03: key %08x is good again", f->old);
	s->t.registered += f->state == FAST_VALID;
	s->t.invalidated += f->state == FAST_FREE;
	return turn;
}

/* ---- the peer -------------------------------------------------------------------------------- */

/** The right that a request needs. */
static access_t
need_of(const struct requester_wr *w)
{
	if (wr_is_read(w))
		return ACCESS_REMOTE_READ;
	if (wr_is_atomic(w))
		return ACCESS_REMOTE_ATOMIC;
	return wr_is_flush(w) ? ACCESS_FLUSH_GLOBAL : ACCESS_REMOTE_WRITE;
}

static void
take(const struct end *owner, const struct fast *f, struct requester_wr *w, struct work *k,
	uint32_t offset)
{
	k->fast = place_of(owner, f);
	k->target = f->target + offset;
	w->rkey = f->key;
	w->remote_addr = f->va + offset;
}

bool
fast_aim(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	const struct fast *f = any(s, owner, FAST_VALID);
	uint32_t offset;

	if (f == NULL || f->bytes < w->len || (need_of(w) & ~f->access) != 0)
		return false;
	offset = below(&s->g, f->bytes - w->len + 1);
	if (wr_is_atomic(w) || wr_is_store(w))
		offset &= ~7u;
	take(owner, f, w, k, offset);
	return true;
}

bool
fast_spoil(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	const struct fast *f = any(s, owner, FAST_VALID);

	if (f == NULL || f->bytes < w->len)
		return false;
	take(owner, f, w, k, 0);
	k->want = STATUS_REM_ACCESS;
	if ((need_of(w) & ~f->access) != 0)
		return true;
	if (rarely(&s->g, 2) || wr_is_whole_flush(w))
		w->rkey = f->old;
	else
		w->remote_addr = f->va + ((f->bytes - w->len + 8) & ~7u);
	return true;
}

bool
fast_choose_inv(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	struct fast *f = any(s, owner, FAST_VALID);

	if (f == NULL)
		return false;
	/* A READ is answered behind what comes after it. */
	for (uint32_t i = e->done; i != e->req.tail; i++)
		if (wr_is_read(wr_at(e, i)) && e->work[i % SQ_SLOTS].fast == place_of(owner, f))
			w->flags |= SEND_FENCE;
	k->fast = place_of(owner, f);
	w->imm = f->key;
	f->state = FAST_LEAVING;
	return true;
}

void
fast_keep(struct end *peer, const struct work *k)
{
	peer->fast[k->fast - 1].state = FAST_VALID;
}

void
fast_invalidated(struct sim *s, struct end *e, uint32_t key)
{
	for (uint32_t i = 0; i < FASTS; i++) {
		struct fast *f = &e->fast[i];

		if (f->w == NULL || f->key != key)
			continue;
		CHECK(s, f->state == FAST_LEAVING, "RESP-04: key %08x is taken back unasked", key);
		CHECK(s, !answers(e, key, f), "RESP-04: key %08x is good still", key);
		f->state = FAST_FREE;
		s->t.invalidated++;
	}
}
