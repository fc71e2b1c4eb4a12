/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Properties over seeded random streams of packets and facts, and over every opcode in every
 * state. A failing stream prints its seed; the same seed plays it again.
 */
#include "../../clib/rng.h"
#include "pkt.h"
#include "responder_fast.h"

static bool
is_good(const struct bed *s)
{
	return (s->v.act & (ACT_NAK | ACT_DROP | ACT_ERR | ACT_DUPLICATE)) == 0;
}

/** PSNs that an accepted packet uses up, counted the slow way. */
static uint32_t
psns_of(const struct bed *s, const struct spec *p)
{
	uint32_t n = 0;

	if (p->op != OP_RC_READ_REQUEST)
		return 1;
	for (uint64_t left = p->dma_len; left > 0; left -= left < s->r.pmtu ? left : s->r.pmtu)
		n++;
	return n == 0 ? 1 : n;
}

#define CHECK_THAT(cond)                                                                       \
	do {                                                                                   \
		if (!(cond))                                                                   \
			fail_msg("%s: opcode 0x%02x PSN %06x ePSN %06x act %x rule %s", #cond, \
				p->op, p->psn & 0xffffff, s->before.epsn.v, s->v.act,          \
				responder_rule_id((enum responder_rule)s->v.rule));            \
	} while (0)

static uint64_t fast_writes, fast_parts, fast_middles, fast_reads, fast_duplicates;

/** The same of a READ that is answered at once (RESP-06, RESP-DUP-11). */
static void
fast_read_agrees(const struct bed *s, const struct spec *p)
{
	const struct wire_reth reth = { .va = p->va, .rkey = p->rkey, .dma_len = p->dma_len };
	struct responder_saved saved[16];
	struct responder r = s->before;

	memcpy(saved, s->saved, sizeof(saved));
	memset(&saved[r.saved_next], 0xa5, sizeof(saved[0]));
	r.saved = saved;
	responder_take_fast_read(&r, &reth);
	CHECK_THAT(s->v.act == ACT_READ && s->v.first.v == s->before.epsn.v);
	CHECK_THAT(s->v.va == p->va && s->v.len == p->dma_len && s->v.rkey == p->rkey);
	CHECK_THAT(s->v.reply_msn == r.msn && s->v.syndrome == 0x1f && s->v.counter == RC_READ);
	CHECK_THAT(memcmp(saved, s->saved, sizeof(saved)) == 0);
	CHECK_THAT(r.unfinished == 0 && s->r.unfinished == 1 && r.at_once == 1);
	r.unfinished = 1; /* its answer is still to come there */
	r.at_once = 0;    /* it counts for the rest of the burst */
	r.saved = s->r.saved;
	CHECK_THAT(memcmp(&r, &s->r, sizeof(r)) == 0);
	fast_reads++;
}

/** Is all of it the peer's to write? */
static bool
is_mine(const struct bed *s, uint32_t rkey, uint64_t va, uint64_t len)
{
	return rkey == MR_RKEY && !s->mr_gone && va >= MR_VA && va - MR_VA <= MR_LEN &&
	       len <= MR_LEN - (va - MR_VA);
}

/** The same of a packet of a longer WRITE (RESP-05, RESP-NAK-RAE-05, RESP-NAK-RAE-09). */
static void
fast_part_agrees(const struct bed *s, const struct spec *p)
{
	const struct wire_reth reth = { .va = p->va, .rkey = p->rkey, .dma_len = p->dma_len };
	const bool first = p->op == OP_RC_WRITE_FIRST, last = p->op == OP_RC_WRITE_LAST;
	const uint32_t ack = (p->flags & PKT_ACKREQ) != 0 ? ACT_ACK : 0;
	struct responder r = s->before;
	const uint64_t va = first ? p->va : r.va + r.received;

	if (!psn_eq(s->pkt.psn, r.epsn) || !responder_fits_fast_part(&r, &s->pkt, &reth, 2) ||
		!is_mine(s, first ? p->rkey : r.rkey, va, first ? p->dma_len : p->len))
		return;
	responder_take_fast_part(&r, &s->pkt, &reth);
	CHECK_THAT(s->v.act == (ACT_PLACE_WRITE | ack) && s->v.va == va);
	CHECK_THAT(memcmp(&r, &s->r, sizeof(r)) == 0);
	CHECK_THAT(s->v.reply_psn.v == s->before.epsn.v && s->v.reply_msn == r.msn);
	CHECK_THAT(s->v.syndrome == 0x1f && s->v.counter == (first ? RC_WRITE : RC_NONE));
	fast_parts += last;
}

/** The same of a MIDDLE of a SEND whose WQE has room (RESP-02, RESP-05). */
static void
fast_middle_agrees(const struct bed *s, const struct spec *p)
{
	const uint32_t ack = (p->flags & PKT_ACKREQ) != 0 ? ACT_ACK : 0;
	struct responder r = s->before;

	if (!psn_eq(s->pkt.psn, r.epsn) || !responder_fits_fast_middle(&r, &s->pkt) ||
		s->wqes == 0 || s->f.wqe_fault != WQE_FAULT_NONE ||
		(uint64_t)r.received + p->len > s->wqe_bytes)
		return;
	responder_take_fast_middle(&r, &s->pkt);
	CHECK_THAT(s->v.act == (ACT_PLACE_SEND | ack) && s->v.offset == s->before.received);
	CHECK_THAT(memcmp(&r, &s->r, sizeof(r)) == 0);
	CHECK_THAT(s->v.reply_psn.v == s->before.epsn.v && s->v.reply_msn == r.msn);
	CHECK_THAT(s->v.syndrome == 0x1f && s->v.counter == RC_NONE);
	fast_middles++;
}

/** What the short way says of a packet is what the long way did (RESP-01, RESP-02, RESP-DUP-01). */
static void
fast_agrees(const struct bed *s, const struct spec *p)
{
	uint32_t ack = (p->flags & PKT_ACKREQ) != 0 ? ACT_ACK : 0;

	/* The pipeline has no such facts where it takes the short way. */
	if (s->f.short_of_resources || s->f.exec_fault)
		return;
	if (p->op == OP_RC_WRITE_ONLY && p->len != 0 && p->dma_len == p->len &&
		is_mine(s, p->rkey, p->va, p->len) && responder_is_fast(&s->before, &s->pkt, 2)) {
		struct responder r = s->before;

		responder_take_fast(&r);
		CHECK_THAT(s->v.act == (ACT_PLACE_WRITE | ack) && s->v.va == p->va);
		CHECK_THAT(memcmp(&r, &s->r, sizeof(r)) == 0);
		CHECK_THAT(s->v.reply_psn.v == s->before.epsn.v && s->v.reply_msn == r.msn);
		CHECK_THAT(s->v.syndrome == 0x1f && s->v.counter == RC_WRITE);
		fast_writes++;
	}
	if (responder_is_part(p->op))
		fast_part_agrees(s, p);
	if (p->op == OP_RC_SEND_MIDDLE)
		fast_middle_agrees(s, p);
	if (p->op == OP_RC_READ_REQUEST && psn_eq(s->pkt.psn, s->before.epsn) &&
		is_mine(s, p->rkey, p->va, p->dma_len) &&
		responder_fits_fast_read(&s->before, &s->pkt, p->dma_len, REMOTE_READ))
		fast_read_agrees(s, p);
	if (responder_is_fast_duplicate(&s->before, &s->pkt)) {
		CHECK_THAT(s->v.act == (ACT_DUPLICATE | ACT_ACK));
		CHECK_THAT(s->v.reply_psn.v == ((s->before.epsn.v - 1) & 0xffffff));
		CHECK_THAT(s->v.reply_msn == s->before.msn && s->v.fault == 0xff);
		CHECK_THAT(s->v.syndrome == 0x1f && s->v.counter == RC_DUPLICATE);
		fast_duplicates++;
	}
}

/** What holds for every packet. */
static void
invariants(const struct bed *s, const struct spec *p)
{
	uint32_t ahead = (p->psn - s->before.epsn.v) & 0xffffff;
	uint32_t act = s->v.act;

	fast_agrees(s, p);
	CHECK_THAT(s->v.rule != RULE_NONE && s->v.rule < RULE_MAX);
	CHECK_THAT((act & ~UINT32_C(0x3fff)) == 0);
	CHECK_THAT(s->v.reply_psn.v <= 0xffffff && s->v.reply_msn <= 0xffffff);
	CHECK_THAT(s->r.unfinished <= s->r.max_dest_rd_atomic);
	CHECK_THAT(s->r.open == OPEN_SEND || s->r.open == OPEN_WRITE || s->r.received == 0);
	CHECK_THAT((act & ACT_ERR) != 0 || (s->r.open == OPEN_SEND) == s->r.wqe_active);

	/* ePSN moves only by what an accepted request uses, and only at ePSN. */
	if (is_good(s)) {
		CHECK_THAT(ahead == 0);
		CHECK_THAT(((s->r.epsn.v - s->before.epsn.v) & 0xffffff) == psns_of(s, p));
		CHECK_THAT(!s->r.latched);
		CHECK_THAT((s->v.reply_psn.v + 1 - s->r.epsn.v) % 0x1000000 == 0);
		CHECK_THAT(s->v.reply_msn == s->r.msn);
		CHECK_THAT(s->v.wc_status == 0 && s->v.fatal == 0 && s->v.fault == 0xff);
	} else {
		CHECK_THAT(s->r.epsn.v == s->before.epsn.v && s->r.msn == s->before.msn);
		CHECK_THAT((act & (ACT_PLACE_SEND | ACT_PLACE_WRITE | ACT_INVALIDATE |
					  ACT_ATOMIC)) == 0);
	}
	/* NAKs name ePSN; any but a sequence NAK answers the packet at ePSN (RESP-NAK-04). */
	if ((act & ACT_NAK) != 0) {
		CHECK_THAT(s->v.reply_psn.v == s->before.epsn.v);
		CHECK_THAT((act & (ACT_ACK | ACT_DROP | ACT_DUPLICATE)) == 0);
		CHECK_THAT(s->v.syndrome == NAK_SEQ ? ahead != 0 && ahead <= 0x800000 : ahead == 0);
		CHECK_THAT(s->v.syndrome == NAK_SEQ ? !s->before.latched : true);
		CHECK_THAT((s->v.syndrome & 0xe0) == 0x20 || s->v.syndrome <= NAK_ROE);
		CHECK_THAT((act & ACT_ERR) != 0 || s->r.latched);
		/* RESP-NAK-ROE-03: the peer cannot cause it. */
		CHECK_THAT(s->v.syndrome != NAK_ROE || s->f.exec_fault || s->f.wqe_fault != 0);
	}
	/*
	 * A duplicate leaves all 64 bytes alone, and so does a drop. But the answer to a duplicate
	 * offers a credit, and one of 0 is kept in mind (FLOW-07). More is for certain in an ACK.
	 */
	if ((act & (ACT_DUPLICATE | ACT_DROP)) != 0) {
		struct responder r = s->before;

		if ((act & ACT_DROP) == 0 && (r.knobs & RESP_KNOB_CREDITS) != 0)
			r.starved = s->v.syndrome == 0 || (r.starved && (act & ACT_ACK) == 0);
		CHECK_THAT(memcmp(&s->r, &r, sizeof(r)) == 0);
	}
	if ((act & ACT_DUPLICATE) != 0)
		CHECK_THAT(ahead > 0x800000);
	/* One local report for each QP that dies, and none otherwise (AE-10). */
	if ((act & ACT_ERR) != 0) {
		CHECK_THAT(((act & ACT_EVENT) != 0) != ((act & ACT_COMPLETE) != 0));
		CHECK_THAT((act & ACT_COMPLETE) == 0 || s->v.wc_status != 0);
	} else {
		CHECK_THAT((act & ACT_EVENT) == 0);
	}
	/* What is placed lies inside the WQE, or inside what the key was asked for. */
	if ((act & ACT_PLACE_SEND) != 0)
		CHECK_THAT((uint64_t)s->v.offset + p->len <= s->wqe_bytes);
	if ((act & ACT_PLACE_WRITE) != 0)
		CHECK_THAT(s->v.va >= MR_VA && s->v.va + p->len <= MR_VA + MR_LEN);
}

/** A packet that is good more often than not. */
static struct spec
random_pkt(struct rng *g, const struct bed *s)
{
	static const uint8_t starts[] = { OP_RC_SEND_FIRST, OP_RC_SEND_ONLY, OP_RC_SEND_ONLY_IMM,
		OP_RC_SEND_ONLY_INV, OP_RC_WRITE_FIRST, OP_RC_WRITE_ONLY, OP_RC_WRITE_ONLY_IMM,
		OP_RC_READ_REQUEST, OP_RC_COMPARE_SWAP, OP_RC_FETCH_ADD };
	static const uint8_t rest[2][4] = { { OP_RC_SEND_MIDDLE, OP_RC_SEND_LAST,
						    OP_RC_SEND_LAST_IMM, OP_RC_SEND_LAST_INV },
		{ OP_RC_WRITE_MIDDLE, OP_RC_WRITE_LAST, OP_RC_WRITE_LAST_IMM, OP_RC_WRITE_LAST } };
	struct spec p = {
		.psn = s->r.epsn.v, .va = MR_VA + below(g, 64) * 8, .rkey = MR_RKEY, .imm = INV_KEY
	};
	uint32_t flags, left = s->r.dma_len - s->r.received;

	p.op = s->r.open == OPEN_NONE ? starts[below(g, ARRAY_LEN(starts))]
				      : rest[s->r.open - OPEN_SEND][below(g, 4)];
	if (s->r.open == OPEN_WRITE)
		p.op = left > PMTU ? OP_RC_WRITE_MIDDLE : rest[1][1 + below(g, 2)];
	flags = wire_opcodes[p.op].flags.v;
	if ((flags & (OPF_FIRST | OPF_MIDDLE)) != 0)
		p.len = PMTU;
	else if ((flags & OPF_PAYLOAD) != 0)
		p.len = 1 + below(g, PMTU);
	if (s->r.open == OPEN_WRITE && (flags & OPF_LAST) != 0)
		p.len = left;
	p.dma_len = (flags & OPF_FIRST) != 0  ? 1025 + below(g, 4000)
		    : (flags & OPF_READ) != 0 ? below(g, 5000)
					      : p.len;
	p.flags = (uint8_t)below(g, 4);

	if (rarely(g, 3)) /* duplicates and gaps, near and at the edges of the window */
		p.psn += rarely(g, 8) ? 0x7fffff + below(g, 4) : below(g, 16) - 12;
	if (rarely(g, 200))
		p.op = (uint8_t)below(g, 256);
	if (rarely(g, 400))
		p.len = below(g, 1500);
	if (rarely(g, 400))
		p.pad = (uint8_t)below(g, 4);
	if (rarely(g, 400))
		p.rkey = BAD_KEY;
	if (rarely(g, 400))
		p.va = rng_next(g) << 16 | rng_next(g);
	if (rarely(g, 400))
		p.dma_len = (uint32_t)rng_next(g);
	if (rarely(g, 400))
		p.imm = BAD_KEY;
	return p;
}

static void
random_facts(struct rng *g, struct bed *s)
{
	s->wqes = rarely(g, 8) ? 0 : 1 + below(g, 5);
	s->mr_gone = rarely(g, 400);
	s->f.short_of_resources = rarely(g, 50);
	s->f.exec_fault = rarely(g, 800);
	s->f.wqe_fault = rarely(g, 400) ? (uint8_t)below(g, 3) : 0;
	s->now += below(g, 2000000);
	if (s->r.wqe_active == false)
		s->wqe_bytes = rarely(g, 100) ? below(g, 2000) : 8192;
	if (rarely(g, 2))
		responder_answered(&s->r);
}

static uint64_t
run_stream(uint64_t seed, uint16_t knobs)
{
	struct rng g = { seed };
	struct bed s;
	uint64_t good = 0;

	bed_init(&s);
	s.r.knobs = knobs;
	responder_reset(&s.r, psn(below(&g, 4) == 0 ? 0xfffff0 : (uint32_t)rng_next(&g)));
	for (uint32_t n = 0; n < 400; n++) {
		struct spec p = random_pkt(&g, &s);

		random_facts(&g, &s);
		feed_spec(&s, p);
		invariants(&s, &p);
		good += is_good(&s);
		if ((s.v.act & ACT_ERR) != 0)
			break;
		if (s.r.open == OPEN_SEND && s.r.received > 8192 - 2 * PMTU)
			s.wqe_bytes += 8192;
	}
	return good;
}

static void
random_streams(void **state)
{
	static const uint16_t knobs[] = { 0, RESP_KNOB_EARLY_DROP,
		RESP_KNOB_RNR_FIRST | RESP_KNOB_LEN_PAD_DROP, RESP_KNOB_IMM_LOC,
		RESP_KNOB_CREDITS };
	uint64_t good = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= 6000; seed++)
		good += run_stream(
			seed * UINT64_C(0x9e3779b97f4a7c15), knobs[seed % ARRAY_LEN(knobs)]);
	print_message("# %llu packets accepted\n", (unsigned long long)good);
	assert_true(good > 50000); /* the streams live long enough to mean something */
	assert_true(fast_writes > 5000 && fast_duplicates > 5000);
	assert_true(fast_reads > 1000 && fast_parts > 1000 && fast_middles > 1000);
}

/** Every opcode, in every state, at, before and ahead of ePSN, with good and bad surroundings. */
static void
every_opcode_in_every_state(void **state)
{
	(void)state;
	for (uint32_t n = 0; n < 256 * 4 * 2 * 2; n++) {
		const uint32_t psns[] = { 0, 1, 0xffffff, 0x800000 };
		uint32_t open = n >> 8 & 3, bad = n >> 11 & 1, latched = n >> 10 & 1;
		struct spec spec = { .op = (uint8_t)n,
			.len = PMTU,
			.va = MR_VA,
			.rkey = MR_RKEY,
			.dma_len = PMTU,
			.imm = INV_KEY };
		const struct spec *p = &spec;
		struct bed bed, *s = &bed;

		if (open > OPEN_WRITE)
			continue;
		for (size_t i = 0; i < ARRAY_LEN(psns); i++) {
			bed_init(s);
			if (open == OPEN_SEND)
				FEED(s, SEND_FIRST(E));
			else if (open == OPEN_WRITE)
				FEED(s, WRITE_FIRST(E, 2048));
			s->r.latched = latched != 0;
			s->wqes = bad != 0 ? 0 : 4;
			s->mr_gone = bad != 0;
			spec.psn = s->r.epsn.v + psns[i];
			feed_spec(s, spec);
			invariants(s, p);
			CHECK_THAT(s->v.act != 0 || s->r.epsn.v != s->before.epsn.v);
			if ((s->v.act & (ACT_NAK | ACT_DROP)) != 0)
				assert_true(responder_rule_id(s->v.rule)[0] == 'R');
		}
	}
}

/**
 * The fast path and the walk over the checks agree: with the latch set the same packet takes the
 * slow way and comes to the same verdict.
 */
static void
fast_and_slow_path_agree(void **state)
{
	struct rng g = { 42 };
	uint32_t good = 0;

	(void)state;
	for (uint32_t n = 0; n < 100000; n++) {
		struct bed a, b;
		struct spec p;

		bed_init(&a);
		if (rarely(&g, 3))
			FEED(&a, SEND_FIRST(E));
		else if (rarely(&g, 2))
			FEED(&a, WRITE_FIRST(E, 1025 + below(&g, 4000)));
		p = random_pkt(&g, &a);
		p.psn = a.r.epsn.v;
		random_facts(&g, &a);
		b = a;
		b.r.saved = b.saved;
		b.r.latched = true;
		feed_spec(&a, p);
		feed_spec(&b, p);
		if (!is_good(&a)) {
			assert_int_equal(a.v.rule, b.v.rule);
			continue;
		}
		good++;
		a.v.saved = NULL;
		b.v.saved = NULL;
		b.r.saved = a.r.saved;
		assert_int_equal(a.v.act, b.v.act);
		assert_true(a.v.va == b.v.va);
		assert_int_equal(a.v.byte_len, b.v.byte_len);
		assert_memory_equal(&a.r, &b.r, sizeof(a.r));
	}
	assert_true(good > 10000);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_streams),
		cmocka_unit_test(every_opcode_in_every_state),
		cmocka_unit_test(fast_and_slow_path_agree),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
