/* SPDX-License-Identifier: BSD-3-Clause */
/* Windows as the peer uses them: what it aims at, and what it must not reach. */
#include "sim.h"

static struct window *
any(struct sim *s, struct end *e, enum window_state state)
{
	struct window *win = &e->windows[below(&s->g, WINDOWS)];

	return win->w != NULL && win->state == state ? win : NULL;
}

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
take(const struct end *owner, const struct window *win, struct requester_wr *w, struct work *k,
	uint32_t offset)
{
	k->window = window_place(owner, win);
	k->target = win->now.target + offset;
	w->rkey = win->now.key;
	w->remote_addr = win->now.va + offset;
}

bool
window_aim(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	const struct window *win = any(s, owner, WINDOW_VALID);
	uint32_t offset;

	if (win == NULL || win->foreign || win->now.bytes < w->len ||
		(need_of(w) & ~win->now.access) != 0)
		return false;
	offset = below(&s->g, win->now.bytes - w->len + 1);
	if (wr_is_atomic(w) || wr_is_store(w))
		offset &= ~7u;
	take(owner, win, w, k, offset);
	return true;
}

bool
window_spoil(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	const struct window *win = any(s, owner, WINDOW_VALID);

	if (win == NULL || win->now.bytes < w->len)
		return false;
	take(owner, win, w, k, 0);
	k->want = STATUS_REM_ACCESS;
	if (win->foreign || (need_of(w) & ~win->now.access) != 0)
		return true;
	if (rarely(&s->g, 2) || wr_is_whole_flush(w))
		w->rkey = win->was.key;
	else
		w->remote_addr = win->now.va + ((win->now.bytes - w->len + 8) & ~7u);
	return true;
}

bool
window_choose_inv(struct sim *s, struct end *e, struct requester_wr *w, struct work *k)
{
	struct end *owner = peer_of(s, e);
	struct window *win = any(s, owner, WINDOW_VALID);

	if (win == NULL || win->foreign || win->w->r.kind == MEM_WINDOW_1)
		return false;
	k->window = window_place(owner, win);
	/* A READ is answered behind what comes after it. */
	for (uint32_t i = e->done; i != e->req.tail; i++)
		if (wr_is_read(wr_at(e, i)) && e->work[i % SQ_SLOTS].window == k->window)
			w->flags |= SEND_FENCE;
	w->imm = win->now.key;
	win->state = WINDOW_LEAVING;
	return true;
}

void
window_spoil_inv(struct sim *s, struct end *e, struct requester_wr *w, const struct work *k)
{
	struct end *owner = peer_of(s, e);
	const struct window *win = any(s, owner, WINDOW_VALID);

	if (k->window != 0)
		owner->windows[k->window - 1].state = WINDOW_VALID;
	w->imm = 0x99;
	if (win == NULL || rarely(&s->g, 4))
		return;
	w->imm = win->foreign || win->w->r.kind == MEM_WINDOW_1 ? win->now.key : win->was.key;
}

void
window_invalidated(struct sim *s, struct end *e, uint32_t key)
{
	for (uint32_t i = 0; i < WINDOWS; i++) {
		struct window *win = &e->windows[i];

		if (win->w == NULL || win->now.key != key)
			continue;
		CHECK(s, win->state == WINDOW_LEAVING, "RESP-04: key %08x is taken back unasked",
			key);
		win->state = WINDOW_FREE;
		win->bound = false;
		window_check(s, e, win);
		s->t.invalidated++;
	}
}
