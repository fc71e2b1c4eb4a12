/* SPDX-License-Identifier: BSD-3-Clause */
/* A pair of queue pairs: memory, keys, attributes, connecting and taking down. */
#include <string.h>

#include "sim.h"

void
mr_add(struct sim *s, struct end *e, struct mr *m, uint8_t *host, uint64_t bytes)
{
	struct mem_region *r = mem_region_alloc();

	CHECK(s, r != NULL, "out of memory");
	m->key = s->next_key;
	s->next_key += 0x1357;
	m->gone = false;
	m->region = r;
	r->va = ((uint64_t)m->key << 20) + 4096;
	r->length = bytes;
	r->host = host;
	r->key = m->key;
	r->pd = SIM_PD;
	r->remote_invalidate = true;
	r->access = ACCESS_LOCAL_WRITE | ACCESS_REMOTE_WRITE | ACCESS_REMOTE_READ |
		    ACCESS_REMOTE_ATOMIC | ACCESS_FLUSH_GLOBAL;
	CHECK(s, mem_table_add(e->table, r) == 0, "key table is full");
}

void
mr_add_local(struct sim *s, struct end *e, struct mr *m, uint8_t *host, uint64_t bytes)
{
	mr_add(s, e, m, host, bytes);
	m->region->access = ACCESS_LOCAL_WRITE;
	m->region->remote_invalidate = false;
}

void
mr_remove(struct end *e, struct mr *m)
{
	if (m->region != NULL) {
		mem_table_remove(e->table, m->key);
		mem_region_free(m->region);
	}
	m->region = NULL;
	m->gone = true;
}

static void
end_release(struct sim *s, struct end *e)
{
	wheel_cancel(&s->wheel, &e->timer);
	respond_forget(s, e);
	if (e->table == NULL)
		return;
	for (uint32_t i = 0; i < MRS; i++)
		mr_remove(e, &e->mr[i]);
	for (uint32_t i = 0; i < INVS; i++)
		mr_remove(e, &e->inv[i]);
	mr_remove(e, &e->pool);
	mr_remove(e, &e->doomed_pool);
	mr_remove(e, &e->to_sink);
	mr_remove(e, &e->doomed_sink);
	mr_remove(e, &e->to_inbox);
	window_destroy(s, e);
	mem_table_destroy(e->table);
	e->table = NULL;
}

void
pair_release(struct sim *s, uint32_t pair)
{
	end_release(s, &s->end[2 * pair]);
	end_release(s, &s->end[2 * pair + 1]);
}

void
pair_settle(struct sim *s, uint32_t pair)
{
	oracle_settle(s, &s->end[2 * pair]);
	oracle_settle(s, &s->end[2 * pair + 1]);
}

static void
register_all(struct sim *s, struct end *e)
{
	uint32_t bytes = pair_of(s, e)->mr_bytes;

	e->table = mem_table_create(32);
	CHECK(s, e->table != NULL, "out of memory");
	for (uint32_t i = 0; i < MRS; i++)
		mr_add(s, e, &e->mr[i], e->target + GUARD + (size_t)i * (bytes + GUARD), bytes);
	for (uint32_t i = 0; i < INVS; i++)
		mr_add(s, e, &e->inv[i], e->inv_bytes[i], GUARD);
	mr_add_local(s, e, &e->pool, s->pool, POOL_BYTES);
	mr_add_local(s, e, &e->doomed_pool, s->pool, POOL_BYTES);
	mr_add_local(s, e, &e->to_sink, e->sink, (uint64_t)SQ_SLOTS * MESSAGE_TOP);
	mr_add_local(s, e, &e->doomed_sink, e->sink, (uint64_t)SQ_SLOTS * MESSAGE_TOP);
	if ((s->seed / 5 + e->index) % 3 != 0)
		window_create(s, e);
	mr_add_local(s, e, &e->to_inbox, e->inbox, (uint64_t)RQ_SLOTS * MESSAGE_TOP);
}

/** Everything goes but the memory. */
static void
end_clear(struct sim *s, struct end *e)
{
	uint8_t *target = e->target, *shadow = e->shadow, *sink = e->sink, *inbox = e->inbox;

	end_release(s, e);
	memset(e, 0, sizeof(*e));
	e->target = target;
	e->shadow = shadow;
	e->sink = sink;
	e->inbox = inbox;
}

static void
set_path(struct sim *s, struct end *e, uint32_t family)
{
	struct end *peer = peer_of(s, e);
	struct wire_path *p = &e->path;

	p->ipv6 = family == 1;
	p->vlan = family == 2;
	p->vlan_tci = 0x6005;
	p->ttl = 64;
	p->tos = (uint8_t)(below(&s->g, 64) << 2 | 2);
	p->sport = (uint16_t)(0xc000 + e->index);
	p->smac[5] = (uint8_t)(0x10 + e->index);
	p->smac[0] = p->dmac[0] = 2;
	p->dmac[5] = (uint8_t)(0x10 + (e->index ^ 1));
	memcpy(p->src_ip, (uint8_t[]){ 10, 1, 0 }, 3);
	memcpy(p->dst_ip, (uint8_t[]){ 10, 1, 0 }, 3);
	p->src_ip[3] = p->smac[5];
	p->dst_ip[3] = p->dmac[5];
	memcpy(peer->port.mac, p->dmac, 6);
	peer->port.has_ipv4 = peer->port.has_ipv6 = true;
	memcpy(peer->port.ipv4, p->dst_ip, 4);
	memcpy(peer->port.ipv6, p->dst_ip, 16);
}

static uint8_t
any_timeout(struct sim *s)
{
	if (s->perfect)
		return (uint8_t)range(&s->g, 12, 18);
	if (s->timeless && !rarely(&s->g, 16))
		return 0;
	if (rarely(&s->g, s->hostile ? 60 : 6))
		return 0;
	return (uint8_t)(rarely(&s->g, 3) ? range(&s->g, 3, 14) : range(&s->g, 5, 8));
}

static psn_t
any_psn(struct sim *s)
{
	uint32_t v = (uint32_t)rng_next(&s->g);

	return psn(rarely(&s->g, 2) ? 0 - below(&s->g, 300) : v);
}

static void
set_attributes(struct sim *s, struct end *e, bool credits)
{
	struct rng *g = &s->g;
	struct requester *q = &e->req;
	struct responder *r = &e->resp;
	bool ernic = rarely(g, 2), placement = (s->seed / 3 + e->index / 2) % 2 != 0;

	e->depth = range(g, 1, SQ_SLOTS);
	q->wr = e->wr;
	q->wr_mask = SQ_SLOTS - 1;
	q->pmtu = r->pmtu = pair_of(s, e)->pmtu;
	q->window = rarely(g, 8) ? range(g, 1, 4) : range(g, 4, 64);
	q->ackreq_interval = (uint8_t)range(g, 1, 32);
	q->timeout = any_timeout(s);
	q->retry_cnt = (uint8_t)(rarely(g, 4) ? below(g, 8) : 7);
	e->paths = (s->seed + e->index) % 4 == 1;
	q->armed = e->armed = e->paths;
	q->unmigrated = e->paths;
	q->rnr_retry = (uint8_t)(rarely(g, 4) ? below(g, 8) : 7);
	q->knobs = ernic ? REQ_KNOB_BAD_AETH_DROP | REQ_KNOB_LEN_PAD_DROP : 0;
	q->knobs |= credits ? REQ_KNOB_CREDITS : 0;
	q->knobs |= placement ? REQ_KNOB_PLACEMENT : 0;
	q->knobs |= s->seed % 5 < 2 ? REQ_KNOB_READ_FILL : 0;
	q->knobs |= s->seed % 5 == 2 ? REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP : 0;
	q->knobs |= (uint16_t)(s->seed / 5 % 4 << REQ_KNOB_REORDER_SHIFT);
	q->knobs |= (s->seed / 2 + e->index) % 3 == 1 ? REQ_KNOB_PATCH : 0;
	q->knobs |= (s->seed / 6 + e->index) % 4 == 1 ? REQ_KNOB_PROBE : 0;

	/* XRC is RC with a number in each request (XRC-01): a third of the connections. */
	q->transport = r->transport =
		(s->seed + e->index / 2) % 3 == 2 ? (uint8_t)WIRE_XRC : (uint8_t)WIRE_RC;
	q->qp_type = q->transport == WIRE_XRC ? QPT_XRC_SEND : QPT_RC;

	r->access = 0xf | ACCESS_FLUSH_GLOBAL;
	r->min_rnr_timer = (uint8_t)(rarely(g, 8) ? below(g, 32) : range(g, 1, 11));
	r->max_dest_rd_atomic = (uint8_t)range(g, 1, RD_MAX);
	r->saved = e->saved;
	r->saved_n = (uint8_t)range(g, r->max_dest_rd_atomic, RD_MAX);
	r->knobs = ernic ? RESP_KNOB_LEN_PAD_DROP | RESP_KNOB_RNR_FIRST : 0;
	r->knobs |= credits ? RESP_KNOB_CREDITS : 0;
	r->knobs |= placement ? RESP_KNOB_PLACEMENT : 0;
	r->knobs |= (s->seed / 4 + e->index / 2) % 3 == 1 ? RESP_KNOB_KEEP : 0;
	r->knobs |= rarely(g, 4) ? RESP_KNOB_EARLY_DROP : 0;
	r->knobs |= rarely(g, 4) ? RESP_KNOB_HALF_DUP : 0;
	r->knobs |= rarely(g, 4) ? RESP_KNOB_IMM_LOC : 0;
	r->knobs |= rarely(g, 4) ? RESP_KNOB_EVENT_WITH_CQE : 0;
	e->answers = (struct resp_answers){ .slot = e->answer,
		.cap = (uint8_t)(r->saved_n + range(g, 2, 8)) };
}

static void
start(struct sim *s, struct end *e)
{
	struct end *peer = peer_of(s, e);
	psn_t first = any_psn(s);
	uint32_t most = peer->resp.max_dest_rd_atomic;

	e->req.max_rd_atomic = (uint8_t)(rarely(&s->g, 2) ? most : range(&s->g, 1, most));
	requester_reset(&e->req, first);
	responder_reset(&peer->resp, first);
	e->next_new = first;
	e->seen_una = first;
	e->next_out = first;
	e->progress_at = s->now;
}

void
pair_connect(struct sim *s, uint32_t pair)
{
	struct pair *p = &s->pair[pair];
	uint32_t family = below(&s->g, 3);
	bool credits = rarely(&s->g, 3);

	p->generation++;
	p->reset_at = 0;
	for (uint32_t i = 2 * pair; i < 2 * pair + 2; i++)
		end_clear(s, &s->end[i]);
	for (uint32_t i = 2 * pair; i < 2 * pair + 2; i++) {
		struct end *e = &s->end[i];

		e->index = (uint8_t)i;
		e->qpn = (p->generation << 8 | (i + 2)) & 0xffffff;
		register_all(s, e);
		set_path(s, e, family);
		set_attributes(s, e, credits);
		share_begin(s, e);
	}
	start(s, &s->end[2 * pair]);
	start(s, &s->end[2 * pair + 1]);
	for (uint32_t i = 2 * pair; i < 2 * pair + 2; i++)
		TRACE(s, &s->end[i],
			"QP %06x, first PSN %06x, path MTU %u, window %u, timeout %u, retry_cnt %u, "
			"rnr_retry %u, max_rd_atomic %u of %u, min_rnr_timer %u",
			s->end[i].qpn, s->end[i].req.next.v, p->pmtu, s->end[i].req.window,
			s->end[i].req.timeout, s->end[i].req.retry_cnt, s->end[i].req.rnr_retry,
			s->end[i].req.max_rd_atomic, s->end[i ^ 1].resp.max_dest_rd_atomic,
			s->end[i].resp.min_rnr_timer);
}
