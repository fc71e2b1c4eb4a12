/* SPDX-License-Identifier: BSD-3-Clause */
/* The reference of keys: where those of windows lead, and that they lead nowhere else. */
#include "sim.h"

uint64_t
user_of(const struct end *e)
{
	return mem_user(SIM_PD, e->qpn);
}

uint32_t
window_other_qpn(const struct end *e)
{
	return e->qpn ^ 0x800000;
}

/** Of one that is bound. */
static const struct binding *
good_of(const struct window *win)
{
	return win->state == WINDOW_POSTED ? &win->was : &win->now;
}

/** Where a key leads; NULL: nowhere. The check that only knows good keys says the same. */
static uint8_t *
reach(struct sim *s, const struct end *e, const struct binding *b, uint64_t user, int64_t from,
	uint64_t len, access_t access)
{
	const struct mem_region *region;
	uint8_t *host = NULL, *fast;

	if (mem_check(e->table, b->key, user, b->va + (uint64_t)from, len, access, &host) != MEM_OK)
		host = NULL;
	if ((access & MEM_REMOTE) == 0)
		return host;
	fast = mem_reach_remote(
		e->table, b->key, user, b->va + (uint64_t)from, len, access, &region);
	CHECK(s, fast == host, "MW-05: key %08x: two checks do not agree", b->key);
	return host;
}

/** Its range with its rights for its users, and nothing else (MW-02, -05, -09). */
static void
check_good(struct sim *s, const struct end *e, const struct window *win, const struct binding *b)
{
	const bool fast = win->w->r.kind == MEM_FAST, one_qp = win->w->r.kind == MEM_WINDOW_2;
	const uint64_t own = win->foreign ? mem_user(SIM_PD, window_other_qpn(e)) : user_of(e);
	const uint64_t other = win->foreign ? user_of(e) : mem_user(SIM_PD, window_other_qpn(e));
	const access_t rights = b->access & MEM_REMOTE;
	uint8_t *host = e->target + b->target;

	CHECK(s, reach(s, e, b, own, 0, b->bytes, rights) == host,
		"MW-02: key %08x does not lead to its %u bytes", b->key, b->bytes);
	CHECK(s,
		reach(s, e, b, own, 1, b->bytes, rights) == NULL && //
			reach(s, e, b, own, -1, 1, rights) == NULL,
		"MW-02: key %08x leads out of its window", b->key);
	for (access_t a = 1; a <= ACCESS_FLUSH_PERSISTENT; a = (access_t)(a << 1))
		CHECK(s,
			(a & MEM_REMOTE) == 0 ||
				(reach(s, e, b, own, 0, 1, a) == host) == ((rights & a) != 0),
			"MW-05: key %08x: right %x, %x are bound", b->key, a, b->access);
	CHECK(s, (reach(s, e, b, other, 0, 1, rights) == host) == !one_qp,
		"MW-09: key %08x for another queue pair", b->key);
	CHECK(s, reach(s, e, b, mem_user(WINDOW_OTHER_PD, e->qpn ^ 1), 0, 1, rights) == NULL,
		"MW-01: key %08x for another protection domain", b->key);
	CHECK(s, (reach(s, e, b, own, 0, 1, 0) != NULL) == fast, "MW-01: key %08x as an L_Key",
		b->key);
	CHECK(s,
		(mem_check_invalidate(e->table, b->key, own) == MEM_OK) ==
			(win->w->r.kind != MEM_WINDOW_1),
		"MW-07: may the peer take back key %08x?", b->key);
	CHECK(s, !one_qp || mem_check_invalidate(e->table, b->key, other) != MEM_OK,
		"MW-09: another queue pair may take back key %08x", b->key);
}

static void
check_bad(struct sim *s, const struct end *e, const struct window *win, const struct binding *b)
{
	const uint64_t users[] = { user_of(e), mem_user(SIM_PD, window_other_qpn(e)) };

	if (b->key == 0 || (win->bound && b->key == good_of(win)->key))
		return;
	for (uint32_t i = 0; i < ARRAY_LEN(users); i++) {
		CHECK(s,
			reach(s, e, b, users[i], 0, 0, 0) == NULL &&
				reach(s, e, b, users[i], 0, 0, ACCESS_REMOTE_READ) == NULL,
			"MW-06: key %08x is good", b->key);
		CHECK(s, mem_check_invalidate(e->table, b->key, users[i]) != MEM_OK,
			"MW-07: key %08x can be taken back", b->key);
	}
}

void
window_check(struct sim *s, const struct end *e, const struct window *win)
{
	struct binding next = win->now;

	if (win->bound)
		check_good(s, e, win, good_of(win));
	check_bad(s, e, win, &win->was);
	check_bad(s, e, win, &win->now);
	next.key ^= 0x80;
	if (next.key != win->was.key)
		check_bad(s, e, win, &next);
}

void
window_check_regions(struct sim *s, struct end *e)
{
	struct mr *all[] = { &e->base, &e->base_ro };

	for (uint32_t i = 0; i < ARRAY_LEN(all); i++) {
		uint32_t n = 0, said;

		for (uint32_t k = 0; k < WINDOWS; k++) {
			const struct window *win = &e->windows[k];

			n += win->bound && good_of(win)->on == all[i];
		}
		said = mem_region_claim(all[i]->region);
		CHECK(s, said == n, "MW-10: %u windows on a region, %u are bound", said, n);
		if (said == 0)
			mem_region_release(all[i]->region);
		CHECK(s,
			(mem_check_invalidate(e->table, all[i]->key, SIM_PD) == MEM_OK) == (n == 0),
			"MW-10: a region is taken back under %u windows", n);
	}
}
