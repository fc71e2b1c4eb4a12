/* SPDX-License-Identifier: BSD-3-Clause */
#include "req.h"

void
bed_init(struct bed *s)
{
	memset(s, 0, sizeof(*s));
	s->r.wr = s->wr;
	s->r.wr_mask = SLOTS - 1;
	s->r.window = 128;
	s->r.pmtu = PMTU;
	s->r.timeout = 14;
	s->r.retry_cnt = 3;
	s->r.rnr_retry = 3;
	s->r.max_rd_atomic = 4;
	s->r.ackreq_interval = 16;
	requester_reset(&s->r, psn(S));
	s->now = T0;
}

void
post_wr(struct bed *s, struct requester_wr w)
{
	w.wr_id = s->posted;
	w.remote_addr = w.remote_addr == 0 ? VA : w.remote_addr;
	w.rkey = RKEY;
	w.resumed = 0xaa; /* the requester's own; garbage on purpose */
	s->wr[s->posted++ % SLOTS] = w;
	requester_posted(&s->r, s->posted);
}

void
post_sends(struct bed *s, uint32_t n)
{
	while (n-- > 0)
		POST(s, SEND(64));
}

/** REQ-01, REQ-07: the packet that the short way makes, and nothing is different. */
static void
start_agrees(const struct bed *s, const struct requester *r, const struct requester_wr *w,
	const struct requester_start *start, const struct requester_packet *p)
{
	static const uint8_t only[] = { [WR_RDMA_WRITE] = OP_RC_WRITE_ONLY,
		[WR_RDMA_WRITE_WITH_IMM] = OP_RC_WRITE_ONLY_IMM,
		[WR_SEND] = OP_RC_SEND_ONLY,
		[WR_SEND_WITH_IMM] = OP_RC_SEND_ONLY_IMM,
		[WR_RDMA_READ] = OP_RC_READ_REQUEST };

	assert_memory_equal(r, &s->r, sizeof(*r));
	assert_memory_equal(w, &s->wr[p->position % SLOTS], sizeof(*w));
	assert_int_equal(p->psn.v, start->psn.v);
	assert_int_equal(p->flags, start->flags | (start->ask ? PKT_ACKREQ : 0));
	assert_int_equal(p->opcode, only[w->opcode]);
	assert_int_equal(p->len, w->opcode == WR_RDMA_READ ? 0 : w->len);
	assert_int_equal(p->dma_len, w->len);
	assert_int_equal(p->offset, 0);
	assert_false(p->resend);
}

enum requester_stop
asked_next(struct bed *s, struct requester_packet *p)
{
	const struct requester r = s->r;
	const enum requester_stop waits = requester_waits(&s->r, s->now);
	enum requester_stop stop;

	assert_memory_equal(&r, &s->r, sizeof(r));
	stop = requester_next(&s->r, s->now, p);
	assert_int_equal(waits, stop);
	if (requester_is_shut(&r))
		assert_true(stop != REQ_SEND && stop != REQ_LOCAL && requester_outstanding(&r));
	return stop;
}

/** One packet by the short way, if it is for that. */
static bool
run_one(const struct requester *r, struct requester_run *run, struct requester_wr *w,
	struct requester_start *start)
{
	if (requester_run_next(run, w, true, start))
		return true;
	return run->reads < requester_reads_most(r) && requester_run_read(run, w, start);
}

/** One packet of a message that may have several, and what comes of it. */
struct one_part {
	struct requester r;
	struct requester_wr wr;
	struct requester_part p;
	bool taken; /* it is for the short way */
};

static void
run_part(const struct bed *s, struct one_part *o)
{
	struct requester_run run;

	o->r = s->r;
	o->wr = s->wr[s->r.sending % SLOTS];
	o->taken = requester_parts_begin(&o->r, &run, s->now) != 0 &&
		   requester_run_part(&run, &o->wr, &o->p);
	if (o->taken)
		requester_run_end(&o->r, &run, s->now);
	assert_true(o->taken || memcmp(&o->r, &s->r, sizeof(o->r)) == 0);
}

/** REQ-01, REQ-07, WIRE-12: nothing is different. */
static void
part_agrees(const struct bed *s, const struct one_part *o, const struct requester_packet *p)
{
	assert_memory_equal(&o->r, &s->r, sizeof(o->r));
	assert_memory_equal(&o->wr, &s->wr[p->position % SLOTS], sizeof(o->wr));
	assert_int_equal(p->psn.v, o->p.start.psn.v);
	assert_int_equal(p->flags, o->p.start.flags | (o->p.start.ask ? PKT_ACKREQ : 0));
	assert_int_equal(p->offset, o->p.offset);
	assert_int_equal(p->len, o->p.len);
	assert_int_equal(o->p.last, p->offset + p->len == o->wr.len);
	assert_false(p->resend);
}

enum requester_stop
next_packet(struct bed *s, struct requester_packet *p)
{
	struct requester r = s->r;
	struct requester_wr *at = &s->wr[r.sending % SLOTS], before = *at, after;
	struct requester_start start;
	struct requester_run run;
	bool starts = requester_run_begin(&r, &run, s->now) != 0 && run_one(&r, &run, at, &start);
	enum requester_stop stop;
	struct one_part part;

	if (starts)
		requester_run_end(&r, &run, s->now);

	after = *at;
	*at = before;
	if (!starts)
		assert_memory_equal(&r, &s->r, sizeof(r));
	run_part(s, &part);
	stop = asked_next(s, p);
	if (starts) {
		assert_int_equal(stop, REQ_SEND);
		start_agrees(s, &r, &after, &start, p);
	}
	if (part.taken)
		part_agrees(s, &part, p);
	return stop;
}

/** Where a short way is after as many packets as it can make at once. */
struct ahead {
	struct requester r;
	struct requester_wr wr[SLOTS];
	uint32_t n;
};

static void
ahead_begin(const struct bed *s, struct ahead *a)
{
	a->r = s->r;
	memcpy(a->wr, s->wr, sizeof(a->wr));
	a->n = 0;
}

static void
run_ahead(const struct bed *s, struct ahead *a)
{
	struct requester_start start;
	struct requester_run run;
	uint32_t most;

	ahead_begin(s, a);
	most = requester_run_begin(&a->r, &run, s->now);
	while (a->n < most && run_one(&a->r, &run, &a->wr[run.at % SLOTS], &start))
		a->n++;
	if (a->n != 0)
		requester_run_end(&a->r, &run, s->now);
}

/** The same of messages that may have several packets. */
static void
parts_ahead(const struct bed *s, struct ahead *a)
{
	struct requester_part part;
	struct requester_run run = { 0 };
	uint32_t most;

	ahead_begin(s, a);
	a->r.wr = a->wr;
	most = requester_parts_begin(&a->r, &run, s->now);
	while (a->n < most && run.at != a->r.tail &&
		requester_run_part(&run, &a->wr[run.at % SLOTS], &part))
		a->n++;
	if (a->n != 0)
		requester_run_end(&a->r, &run, s->now);
	a->r.wr = s->r.wr;
}

/** After as many packets nothing is different. */
static void
ahead_agrees(const struct bed *s, const struct ahead *a)
{
	if (s->n != a->n)
		return;
	assert_memory_equal(&a->r, &s->r, sizeof(a->r));
	assert_memory_equal(a->wr, s->wr, sizeof(a->wr));
}

enum requester_stop
pump(struct bed *s)
{
	enum requester_stop stop;
	struct ahead a, parts;

	run_ahead(s, &a);
	parts_ahead(s, &parts);
	s->n = 0;
	while ((stop = next_packet(s, &s->out[s->n])) == REQ_SEND) {
		s->n++;
		assert_true(s->n < OUT_MAX);
		ahead_agrees(s, &a);
		ahead_agrees(s, &parts);
	}
	assert_true(s->n >= a.n && s->n >= parts.n);
	return stop;
}

void
count_completions(struct bed *s)
{
	if ((s->v.act & REQACT_COMPLETE) != 0) {
		assert_int_equal(s->v.head_was, s->done);
		assert_true(s->v.completed > 0);
		s->done += s->v.completed;
	} else {
		assert_int_equal(s->v.completed, 0);
	}
	assert_true(s->done <= s->posted);
	if ((s->v.act & REQACT_ERROR) != 0)
		assert_int_equal(s->v.failed, s->done);
}

void
make_rsp(struct bed *s, const struct rsp *p)
{
	uint8_t *e = parsed_pkt(&s->pkt, s->frame, p->op, p->psn, p->len);

	s->pkt.pad = p->pad;
	e[0] = p->syn;
	be24_store(e + 1, p->msn);
	be64_store(e + 4, p->original);
}

/** REQ-05: the same of READ responses. @param offset of its data. */
static void
short_read_agrees(const struct bed *s, uint32_t offset)
{
	struct requester r = s->before;
	const uint32_t ends = requester_take_read(&r, s->now);

	assert_memory_equal(&r, &s->r, sizeof(r));
	assert_int_equal(s->v.act, REQACT_TIMER | REQACT_PLACE | (ends != 0 ? REQACT_COMPLETE : 0));
	assert_int_equal(s->v.completed, ends);
	assert_int_equal(s->v.position, s->v.head_was);
	assert_int_equal(s->v.head_was, s->before.head);
	assert_int_equal(s->v.offset, offset);
	assert_int_equal(s->v.cause, QC_NONE);
}

/** REQ-03, REQ-04: what is taken without a verdict comes to the same as with one. */
static void
short_way_agrees(struct bed *s)
{
	struct requester_wr *const head = &s->wr[s->before.head % SLOTS], after = *head;
	struct requester r = s->before;
	uint32_t n, ahead, offset;

	*head = s->head_before;
	if (requester_fits_read(&r, &s->pkt))
		short_read_agrees(s, 0);
	if (requester_fits_read_part(&r, &s->pkt, &offset))
		short_read_agrees(s, offset);
	*head = after;
	if (s->pkt.opcode != OP_RC_ACKNOWLEDGE)
		return;
	ahead = requester_ack_ahead(&r, &s->pkt);
	if (ahead >= requester_ack_limit(&r))
		return;
	n = requester_take_acks(&r, ahead, s->now);
	assert_memory_equal(&r, &s->r, sizeof(r));
	assert_int_equal(s->v.act, REQACT_TIMER | (n != 0 ? REQACT_COMPLETE : 0));
	assert_int_equal(s->v.completed, n);
	assert_int_equal(s->v.cause, QC_NONE);
}

void
feed_rsp(struct bed *s, struct rsp p)
{
	make_rsp(s, &p);
	memset(&s->v, 0xa5, sizeof(s->v));
	s->before = s->r;
	s->head_before = s->wr[s->r.head % SLOTS];
	requester_response(&s->r, &s->pkt, s->now, &s->v);
	short_way_agrees(s);
	count_completions(s);
}

void
ack(struct bed *s, uint32_t p, uint8_t syndrome)
{
	FEED(s, .op = OP_RC_ACKNOWLEDGE, .psn = p, .syn = syndrome);
}

void
read_rsp(struct bed *s, uint8_t op, uint32_t p, uint32_t len)
{
	FEED(s, .op = op, .psn = p, .syn = ACK, .len = len);
}

void
fire(struct bed *s)
{
	memset(&s->v, 0xa5, sizeof(s->v));
	s->before = s->r;
	requester_timer(&s->r, s->now, &s->v);
	count_completions(s);
}

void
expire(struct bed *s)
{
	assert_true(s->r.timing || s->r.waiting_rnr);
	s->now = s->r.deadline;
	fire(s);
}

void
long_write(struct bed *s, uint32_t packets)
{
	bed_init(s);
	POST(s, WRITE(packets * PMTU));
}

void
expect_run(const struct bed *s, uint32_t p, uint32_t n)
{
	assert_int_equal(s->n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(s->out[i].psn.v, (p + i) & 0xffffff);
}

void
round_trip(struct bed *s, uint64_t rtt)
{
	pump(s);
	s->now += rtt;
	ack(s, s->r.cur.v - 1, ACK);
}
