/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows and fast-register regions: bound and invalidated by work requests. */
#include <errno.h>

#include "ring_send.h"
#include "sim.h"

enum { NO_KEY = 0x55, LOW_BYTE = 0xff };

/** This end is worker 0; there is another one, which is slow, so that revocations take turns. */
enum { READERS = 2, OWN = 0, OTHER = 1 };

#define REMOTE \
	(ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL)

uint8_t
window_place(const struct end *e, const struct window *win)
{
	return (uint8_t)(win - e->windows + 1);
}

/* ---- there and gone -------------------------------------------------------------------------- */

static void
add_window(struct sim *s, struct end *e, struct window *win, uint8_t kind)
{
	int rc;

	win->w = mem_window_alloc();
	CHECK(s, win->w != NULL, "out of memory");
	win->w->r.kind = kind;
	win->w->home_pd = SIM_PD;
	do {
		win->now.key = s->next_key & ~(uint32_t)LOW_BYTE;
		s->next_key += 0x1357;
		rc = mem_window_add(e->table, win->w, win->now.key);
	} while (rc == -EEXIST);
	CHECK(s, rc == 0, "no place for a window");
}

/** Another queue pair of this end has bound it. */
static void
bind_foreign(struct sim *s, struct end *e, struct window *win)
{
	struct binding *now = &win->now;
	enum mem_turn turn;
	enum mem_why why;
	struct mem_bind b;

	win->was = *now;
	*now = (struct binding){ .on = &e->base,
		.va = e->base.region->va + GUARD,
		.key = now->key + 1,
		.target = GUARD,
		.bytes = pair_of(s, e)->mr_bytes,
		.access = REMOTE };
	b = (struct mem_bind){ .window = now->key,
		.key = now->key,
		.lkey = e->base.key,
		.pd = SIM_PD,
		.qpn = window_other_qpn(e),
		.access = REMOTE,
		.addr = now->va,
		.length = now->bytes };
	do {
		mem_reader_turn(e->table, OTHER);
		turn = mem_window_bind(e->table, OWN, &b, &why);
	} while (turn == MEM_TURN_LATER);
	CHECK(s, turn == MEM_TURN_DONE, "MW-03: the other queue pair's bind");
	win->state = WINDOW_VALID;
	win->bound = win->foreign = true;
}

void
window_create(struct sim *s, struct end *e)
{
	static const uint8_t kinds[WINDOWS] = { MEM_FAST, MEM_FAST, MEM_WINDOW_1, MEM_WINDOW_1,
		MEM_WINDOW_2, MEM_WINDOW_2, MEM_WINDOW_2 };
	uint32_t bytes = MRS * (pair_of(s, e)->mr_bytes + GUARD) + GUARD;

	CHECK(s, mem_table_readers(e->table, READERS) == 0, "out of memory");
	mr_add_local(s, e, &e->base, e->target, bytes);
	mr_add_local(s, e, &e->base_ro, e->target, bytes);
	mr_add_local(s, e, &e->base_other, e->target, bytes);
	e->base.region->access |= ACCESS_MW_BIND;
	e->base_ro.region->access = ACCESS_MW_BIND;
	e->base_other.region->access |= ACCESS_MW_BIND;
	e->base_other.region->pd = WINDOW_OTHER_PD;
	e->base.region->remote_invalidate = e->base_ro.region->remote_invalidate = true;
	for (uint32_t i = 0; i < WINDOWS; i++)
		add_window(s, e, &e->windows[i], kinds[i]);
	bind_foreign(s, e, &e->windows[WINDOWS - 1]);
	for (uint32_t i = 0; i < WINDOWS; i++)
		window_check(s, e, &e->windows[i]);
	window_check_regions(s, e);
}

void
window_destroy(struct sim *s, struct end *e)
{
	if (e->windows[0].w == NULL)
		return;
	/* The queue pair goes first, and takes its own windows along. */
	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct window *win = &e->windows[i];

		mem_window_leave(win->w, e->qpn);
		win->bound &= win->foreign || win->w->r.kind != MEM_WINDOW_2;
		window_check(s, e, win);
	}
	window_check_regions(s, e);
	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct window *win = &e->windows[i];

		mem_window_remove(e->table, win->w);
		win->bound = false;
		window_check(s, e, win);
		mem_window_free(win->w);
		win->w = NULL;
	}
	window_check_regions(s, e);
	mr_remove(e, &e->base);
	mr_remove(e, &e->base_ro);
	mr_remove(e, &e->base_other);
}

/* ---- work requests --------------------------------------------------------------------------- */

/** Requests of the peer that name it and are not complete. */
static bool
is_used(struct sim *s, const struct end *e, const struct window *win)
{
	const struct end *peer = peer_of(s, e);

	for (uint32_t i = peer->done; i != peer->req.tail; i++)
		if (peer->work[i % SQ_SLOTS].window == window_place(e, win))
			return true;
	return false;
}

static access_t
any_access(struct sim *s, uint8_t kind)
{
	if (kind == MEM_FAST)
		return rarely(&s->g, 4) ? ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ
					: ACCESS_LOCAL_WRITE | REMOTE;
	return rarely(&s->g, 3) ? ACCESS_REMOTE_READ | ((access_t)rng_next(&s->g) & REMOTE)
				: REMOTE;
}

/** MW-03, -04, -11: nothing comes of this bind. @param fault which of them. */
static void
spoil_bind(struct end *e, const struct window *win, struct requester_wr *w, uint32_t fault)
{
	const bool fast = win->w->r.kind == MEM_FAST, two = win->w->r.kind != MEM_WINDOW_1;
	access_t access = RING_BIND_ACCESS(w->swap);
	uint32_t lkey = e->base.key;

	if (!two && w->compare_add == 0) { /* to nothing: only its rights and key can be wrong */
		w->imm = win->now.key ^ 0x10000;
		return;
	}
	switch (fault) {
	case 0:
		lkey = NO_KEY;
		break;
	case 1:
		w->compare_add = e->base.region->length - win->now.target + 1;
		break;
	case 2:
		access |= ACCESS_MW_BIND;
		break;
	case 3:
		w->imm = win->now.key ^ 0x10000; /* another one's */
		break;
	case 4:
		lkey = e->base_other.key;
		w->remote_addr = e->base_other.region->va;
		break;
	case 5:
		lkey = e->base_ro.key;
		w->remote_addr = e->base_ro.region->va;
		access |= ACCESS_REMOTE_ATOMIC | (fast ? ACCESS_LOCAL_WRITE : 0);
		break;
	case 6: /* no windows on it */
		lkey = fast ? NO_KEY : e->pool.key;
		w->remote_addr = e->pool.region->va;
		w->compare_add = 64;
		break;
	case 7: /* the key that it had */
		w->imm = win->was.key;
		lkey = fast ? NO_KEY : lkey;
		break;
	case 8:
		w->compare_add = 0;
		if (!two)
			access |= ACCESS_ZERO_BASED;
		break;
	case 9:
		access |= two ? ACCESS_FLUSH_PERSISTENT : ACCESS_ZERO_BASED;
		break;
	default:
		w->remote_addr = e->base.region->va - 8;
		break;
	}
	w->swap = RING_BIND(lkey, access);
}

/** Some bytes of one of the other regions, with some rights. */
static void
post_bind(struct sim *s, struct end *e, struct window *win, struct requester_wr *w, struct work *k)
{
	const uint8_t kind = win->w->r.kind;
	struct rng *g = &s->g;
	uint32_t bytes = pair_of(s, e)->mr_bytes, from = 8 * below(g, bytes / 16), step = 1;
	struct binding *now = &win->now;

	win->was = *now;
	now->access = any_access(s, kind);
	now->on = (now->access & ~(access_t)(ACCESS_REMOTE_READ | ACCESS_FLUSH_GLOBAL)) == 0
			  ? &e->base_ro
			  : &e->base;
	now->target = GUARD + below(g, MRS) * (bytes + GUARD) + from;
	now->bytes = rarely(g, 2) ? bytes - from : range(g, 1, bytes - from);
	now->va = now->on->region->va + now->target;
	if (kind == MEM_WINDOW_1 && win->bound && rarely(g, 3))
		now->bytes = 0; /* MW-06: to nothing */
	/* Who does not choose a key of type 1 gets the next one. */
	if (kind != MEM_WINDOW_1 || rarely(g, 2))
		w->imm = step = range(g, 1, 3);
	now->key = (now->key & ~(uint32_t)LOW_BYTE) | ((now->key + step) & LOW_BYTE);
	w->imm = w->imm != 0 ? now->key : 0;
	w->opcode = WR_BIND_MW;
	w->rkey = win->was.key;
	w->remote_addr = now->va;
	w->compare_add = now->bytes;
	w->swap = RING_BIND(now->bytes != 0 ? now->on->key : NO_KEY, now->access);
	if (kind != MEM_WINDOW_1 && rarely(g, 3)) {
		w->swap = RING_BIND(now->on->key, now->access | ACCESS_ZERO_BASED);
		now->va = 0;
	}
	win->state = WINDOW_POSTED;
	if (!rarely(g, s->faults / 16))
		return;
	k->want = STATUS_MW_BIND;
	spoil_bind(e, win, w, below(g, 11));
}

/** It is bound, and not by this queue pair for good: take it back, or fail. */
static void
post_invalidate(struct sim *s, const struct end *e, struct window *win, struct requester_wr *w,
	struct work *k)
{
	const bool never = win->foreign || win->w->r.kind == MEM_WINDOW_1;

	w->opcode = WR_LOCAL_INV;
	w->imm = win->now.key;
	k->want = never ? STATUS_LOC_PROT : WANT_SUCCESS;
	win->state = never ? WINDOW_VALID : WINDOW_LEAVING;
	if (!never && !rarely(&s->g, s->faults / 16))
		return;
	if (rarely(&s->g, 2) && win->w->r.kind != MEM_WINDOW_1) { /* it is bound already */
		w->opcode = WR_BIND_MW;
		w->rkey = win->now.key;
		w->imm = win->now.key ^ 1;
		w->remote_addr = e->base.region->va;
		w->compare_add = 8;
		w->swap = RING_BIND(e->base.key, REMOTE | ACCESS_LOCAL_WRITE);
		if (win->w->r.kind != MEM_FAST)
			w->swap = RING_BIND(e->base.key, REMOTE);
		k->want = STATUS_MW_BIND;
	} else {
		w->imm = never ? win->now.key : win->was.key;
		k->want = STATUS_LOC_PROT;
	}
}

bool
window_post(struct sim *s, struct end *e)
{
	struct requester_wr *w = &e->wr[e->req.tail % SQ_SLOTS];
	struct work *k = &e->work[e->req.tail % SQ_SLOTS];
	struct window *win = &e->windows[below(&s->g, WINDOWS)];
	bool rude = s->chaos != 0 && rarely(&s->g, 16), wrong = rarely(&s->g, s->faults / 16);
	bool rebind = win->state == WINDOW_FREE;

	if (win->w == NULL || win->state == WINDOW_POSTED || win->state == WINDOW_LEAVING ||
		(win->state == WINDOW_VALID && !rude && is_used(s, e, win)))
		return false;
	if (win->w->r.kind == MEM_WINDOW_1 && !wrong)
		rebind = true;
	if (win->foreign && !wrong)
		return false;
	*k = (struct work){ .want = WANT_SUCCESS, .own = window_place(e, win) };
	*w = (struct requester_wr){ .wr_id = s->next_wr_id++ };
	w->flags = (uint8_t)((rarely(&s->g, 2) ? SEND_SIGNALED : 0) |
			     (rarely(&s->g, 4) ? SEND_FENCE : 0));
	if (rebind)
		post_bind(s, e, win, w, k);
	else
		post_invalidate(s, e, win, w, k);
	requester_posted(&e->req, e->req.tail + 1);
	return true;
}

/* ---- and what comes of them ------------------------------------------------------------------ */

/** Its key is taken back under requests of the peer: they may come too late. */
static void
revoke(struct sim *s, struct end *e, struct window *win)
{
	struct end *peer = peer_of(s, e);

	if (!win->bound)
		return;
	win->bound = false;
	for (uint32_t i = peer->done; i != peer->req.tail; i++) {
		struct work *k = &peer->work[i % SQ_SLOTS];

		k->revoked |= k->window == window_place(e, win);
	}
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

static enum mem_turn
work(struct end *e, struct requester_wr *w, enum requester_fault *fault)
{
	bool begun = w->resumed != 0;
	enum mem_turn turn;
	enum mem_why why;

	if (w->opcode == WR_BIND_MW) {
		const struct mem_bind b = { .window = w->rkey,
			.key = w->imm,
			.lkey = (uint32_t)w->swap,
			.pd = SIM_PD,
			.qpn = e->qpn,
			.access = RING_BIND_ACCESS(w->swap),
			.addr = w->remote_addr,
			.length = w->compare_add };

		*fault = WR_FAULT_BIND;
		return mem_window_bind(e->table, OWN, &b, &why);
	}
	*fault = WR_FAULT_KEY;
	turn = mem_window_invalidate(e->table, OWN, w->imm, user_of(e), &begun, &why);
	w->resumed = begun;
	return turn;
}

enum mem_turn
window_work(struct sim *s, struct end *e, enum requester_fault *fault)
{
	const uint32_t position = e->req.head;
	const uint8_t want = e->work[position % SQ_SLOTS].want;
	struct requester_wr *w = &e->wr[position % SQ_SLOTS];
	struct window *win = &e->windows[e->work[position % SQ_SLOTS].own - 1];
	enum mem_turn turn;

	check_turn(s, e, position);
	if (rarely(&s->g, 2))
		mem_reader_turn(e->table, OTHER);
	turn = work(e, w, fault);
	if (turn != MEM_TURN_REFUSED)
		revoke(s, e, win);
	if (turn == MEM_TURN_DONE) {
		const bool bind = w->opcode == WR_BIND_MW;

		win->bound = bind && win->now.bytes != 0;
		win->state = win->bound ? WINDOW_VALID : WINDOW_FREE;
		s->t.registered += bind && win->w->r.kind == MEM_FAST;
		s->t.bound += bind && win->w->r.kind != MEM_FAST;
		s->t.invalidated += !bind;
	}
	/* A refused one leaves all as it was (MW-04). */
	window_check(s, e, win);
	window_check_regions(s, e);
	if (turn != MEM_TURN_LATER)
		CHECK(s, (turn == MEM_TURN_DONE) == (want == WANT_SUCCESS),
			"MW-04: request %u without a packet: %s, status %u is due", position,
			turn == MEM_TURN_DONE ? "done" : "refused", want);
	return turn;
}
