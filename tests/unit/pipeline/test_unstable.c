/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client that writes to its rings between any two loads of the worker: send and receive queue,
 * shared receive queue, completion queue, doorbells. Each load of each scene is hit by values of a
 * list (by all of them with UNSTABLE_ALL=1: minutes of a CPU; by the 3rd eighth of them with
 * UNSTABLE_ALL=3/8), then come random changes. Whatever happens, the worker's work is bounded, it
 * touches nothing beyond the rings, and no byte of another's memory is written or sent.
 */
#include "client_rig.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "../../clib/rng.h"
#include "../../clib/unstable.h"
#include "complete.h"

enum {
	FOREIGN_KEY = 0x3003,
	FOREIGN_VA = 0x900000,
	CANARY = 0xc5,
	/* Instructions that one scene may spend on shared memory: each entry, often. */
	MOST = 6000,
	RANDOM_ROUNDS = 12,
	/* Of the ways to hit an access one in so many; the next access is hit by others. */
	STEP = 61,
};

struct scene {
	const char *name;
	void (*post)(struct rig *r);
	void (*run)(struct rig *r);
	bool shared;  /* receives come from the SRQ */
	bool crowded; /* the CQ has more than one producer */
	uint16_t knobs;
};

/** What is changed, and when. */
struct change {
	const char *scene;
	uint32_t at;    /* the access before which it happens */
	uint32_t word;  /* so many words behind what is touched */
	uint32_t value; /* number of the value */
	bool at_random; /* any time, any of them */
	struct rng rng;
};

static struct change change;
static uint32_t bound; /* windows that were found bound */

/** What the words of rings and entries could be made to say. */
static uint32_t
value_of(uint32_t i, uint32_t old)
{
	const uint32_t values[] = { 0, 1, old + 1, old - 1, old + ENTRIES, old - ENTRIES,
		old + ENTRIES + 1, UINT32_MAX, UINT32_C(0x80000000), UINT32_C(0x7fffffff),
		FOREIGN_KEY, FOREIGN_VA, MR_VA + MR_LEN - 1, OWN_QPN | RING_BELL_RECV, 17,
		0x0800 /* SEND_INLINE beside opcode 0 */ };

	return values[i % ARRAY_LEN(values)];
}

enum { VALUES = 16, WORDS = 3 };

static void
set(uint8_t *at, uint32_t value)
{
	uint32_t old;

	at -= (uintptr_t)at % sizeof(old);
	memcpy(&old, at, sizeof(old));
	old = value_of(value, old);
	memcpy(at, &old, sizeof(old));
}

static void
before_access(void *ctx, uint32_t n, uint8_t *at, size_t len)
{
	struct change *c = ctx;
	size_t off;

	if (!c->at_random) {
		if (n == c->at && c->word * 4 + 4 <= len)
			set(at + c->word * 4, c->value);
		return;
	}
	if (rng_next(&c->rng) % 3 != 0)
		return;
	off = rng_next(&c->rng) % 16 * 4;
	if (off + 4 <= len)
		set(at + off, (uint32_t)rng_next(&c->rng));
}

static void
tell(int sig)
{
	char line[160];
	int n = snprintf(line, sizeof(line),
		"signal %d: scene %s, %s, access %u, word %u, value %u\n", sig, change.scene,
		change.at_random ? "random" : "one change", change.at, change.word, change.value);

	if (write(STDERR_FILENO, line, (size_t)n) < 0)
		_exit(1);
	signal(sig, SIG_DFL);
	raise(sig);
}

static int
group_setup(void **state)
{
	signal(SIGABRT, tell);
	signal(SIGPROF, tell);
	return bed_group_setup(state);
}

/* ---- scenes ---------------------------------------------------------------------------------- */

static void
turns(struct rig *r, int n)
{
	for (int i = 0; i < n; i++)
		worker_poll(r->bed->w, r->bed->now);
}

static void
run_sends(struct rig *r)
{
	turns(r, 3);
}

static void
give(struct rig *r, struct wire_fields f)
{
	f.dest_qpn = OWN_QPN;
	bed_send(r->bed, &f);
}

static void
run_completions(struct rig *r)
{
	turns(r, 2);
	give(r, (struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			.psn = psn(S + 2),
			.aeth = { .syndrome = AETH_CREDIT_NONE } });
	turns(r, 2);
	give(r, (struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			.psn = psn(S + 4),
			.aeth = { .syndrome = AETH_CREDIT_NONE } });
	turns(r, 2);
}

/** The same, of a queue that is resized between the two. */
static void
run_resized(struct rig *r)
{
	turns(r, 1);
	rig_resize(r);
	run_completions(r);
}

static void
run_receives(struct rig *r)
{
	struct wire_fields f;

	give(r, send_only(E, 64));
	give(r, send_only(E + 1, 64));
	turns(r, 1);
	f = send_only(E + 2, 1024);
	f.opcode = OP_RC_SEND_FIRST;
	give(r, f);
	f = write_only(E + 3, MR_VA, 8);
	f.opcode = OP_RC_SEND_LAST;
	give(r, f);
	f = write_only(E + 4, MR_VA, 8);
	f.opcode = OP_RC_WRITE_ONLY_IMM;
	give(r, f);
	give(r, send_only(E + 5, 8));
	turns(r, 2);
}

static void
run_error(struct rig *r)
{
	bed_state(r->bed, r->qp, QPS_ERR);
	turns(r, 2);
}

static void
run_flush_of_failure(struct rig *r)
{
	turns(r, 2);
	give(r, read_request(E, UINT64_MAX - 8, 64)); /* NAK, ERR, and all is flushed */
	turns(r, 3);
}

static void
run_reset(struct rig *r)
{
	struct qp_snapshot shown;

	turns(r, 1);
	qp_snapshot(r->qp, r->bed->now, 0, &shown);
	assert_true(shown.rq_posted <= ENTRIES && shown.outstanding <= ENTRIES);
	bed_state(r->bed, r->qp, QPS_RESET);
	turns(r, 1);
}

/** What the control lcore does with shared rings: counts, fails, moves, posts, judges arm words. */
static void
run_control(struct rig *r)
{
	struct ring_recv_copy c;
	struct ring again;

	assert_true(ring_srq_count(&r->srq.ring) <= ENTRIES);
	if (ring_srq_peek(&r->srq.ring, 4, &c) == 1)
		ring_srq_take(&r->srq.ring, &c);
	ring_cq_is_due(&r->cq.ring, atomic_load(&r->cq.ring.sh->arm), 0);
	/* The completion ring's memory is as good as any for a deeper one. */
	ring_srq_move(&r->srq.ring, r->cq.ring.sh, 2 * ENTRIES);
	ring_srq_producer(&r->srq.ring, &again);
	assert_true(again.prod - again.cons <= 2 * ENTRIES);
	while (ring_srq_peek(&r->srq.ring, 4, &c) == 1 && ring_srq_take(&r->srq.ring, &c))
		;
	ring_srq_fail(&r->srq.ring);
	assert_true(ring_srq_count(&r->srq.ring) <= 2 * ENTRIES);
}

static void
run_rare(struct rig *r)
{
	turns(r, 4);
	give(r, (struct wire_fields){ .opcode = OP_RC_ACKNOWLEDGE,
			.psn = psn(S),
			.aeth = { .syndrome = AETH_CREDIT_NONE } });
	turns(r, 2);
}

static const struct scene scenes[] = {
	{ "sends", rig_post_sends, run_sends, false, false, 0 },
	{ "lists", rig_post_lists, run_sends, false, false, 0 },
	{ "completions of lists", rig_post_lists, run_completions, false, false, 0 },
	{ "bad sends", rig_post_bad_sends, run_sends, false, false, 0 },
	{ "binds, FLUSHes, ATOMIC WRITEs", rig_post_rare, run_rare, false, false, 0 },
	{ "completions", rig_post_sends, run_completions, false, false, 0 },
	{ "completions beside another worker", rig_post_sends, run_completions, false, true, 0 },
	{ "completions of a resized queue", rig_post_sends, run_resized, false, false, 0 },
	{ "receives", rig_post_receives, run_receives, false, false, 0 },
	{ "receives with credits", rig_post_receives, run_receives, false, true,
		RESP_KNOB_CREDITS },
	{ "shared receives", rig_post_receives, run_receives, true, false, 0 },
	{ "flush", rig_post_both, run_error, false, false, 0 },
	{ "flush of a failure", rig_post_both, run_flush_of_failure, false, true, 0 },
	{ "reset", rig_post_both, run_reset, false, false, 0 },
	{ "control", rig_post_receives, run_control, true, false, 0 },
};

/** What a bound window gives access to is of the region that it is bound to, and that of its PD. */
static void
check_window(const struct mem_window *w)
{
	const struct mem_region *on = w->on;

	if (!mem_is_valid(&w->r))
		return;
	assert_int_equal(on->pd, PD);
	assert_int_equal(
		mem_index(w->r.key), mem_index(w->r.kind == MEM_FAST ? FAST_KEY : WINDOW_KEY));
	assert_true(w->r.host >= on->host && w->r.length <= on->length);
	assert_true((size_t)(w->r.host - on->host) <= on->length - w->r.length);
	bound++;
}

/** Nothing that this code itself keeps may be impossible, and nobody else's memory was touched. */
static void
check(struct rig *r, const struct mem_region *foreign)
{
	const struct qp *qp = r->qp;
	struct bed *b = r->bed;
	uint8_t canary[8];

	memset(canary, CANARY, sizeof(canary));
	check_window(r->window);
	check_window(r->fast);
	assert_int_equal(atomic_load(&foreign->windows), 0);
	assert_true(qp->rq.prod - qp->rq.cons <= ENTRIES);
	assert_true(qp->sq.ring.prod - qp->sq.ring.cons <= ENTRIES);
	assert_true(qp->sq.taken <= qp->sq.ring.prod - qp->sq.ring.cons);
	assert_true(qp->req.tail - qp->req.head <= ENTRIES);
	for (uint32_t i = 0; i < MR_LEN; i += 8)
		assert_memory_equal((const uint8_t *)foreign->host + i, canary, 8);
	do {
		bed_forget_output(b);
		bed_collect(b);
		for (uint32_t i = 0; i < b->out_n; i++)
			assert_null(memmem(wire_payload(&b->pkt[i]), b->pkt[i].payload_len, canary,
				sizeof(canary)));
	} while (b->out_n != 0);
}

/** An endless loop ends with a signal: it is CPU time that counts, the machine may be busy. */
static void
allow_seconds(time_t n)
{
	const struct itimerval t = { .it_value.tv_sec = n };

	assert_int_equal(setitimer(ITIMER_PROF, &t, NULL), 0);
}

static uint32_t
play(struct bed *b, struct mem_region *foreign, const struct scene *s)
{
	struct rig r;
	uint32_t n;

	rig_make(&r, b, s->shared, s->crowded);
	r.qp->resp.knobs = s->knobs;
	r.qp->req.knobs |= REQ_KNOB_PLACEMENT;
	s->post(&r);
	allow_seconds(20);
	unstable_begin(before_access, &change, MOST);
	s->run(&r);
	n = unstable_end();
	allow_seconds(0);
	check(&r, foreign);
	rig_end(&r);
	return n;
}

static struct mem_region *
foreign_make(struct bed *b)
{
	struct mem_region *r = mem_region_alloc();

	assert_non_null(r);
	assert_int_equal(mem_area_create(&r->area, MR_LEN, -1, 0), 0);
	memset(r->area.base, CANARY, MR_LEN);
	r->va = FOREIGN_VA;
	r->length = MR_LEN;
	r->host = r->area.base;
	r->key = FOREIGN_KEY;
	r->pd = PD + 1;
	r->access = 15;
	assert_int_equal(mem_table_add(b->mem, r), 0);
	return r;
}

/** Which changes of a scene are tried: one in so many, from which one on. */
static void
choose(uint32_t *first, uint32_t *step, bool *all)
{
	const char *text = getenv("UNSTABLE_ALL");
	unsigned int part = 1, parts = 1;

	*all = text != NULL;
	*first = 0;
	*step = STEP;
	if (text == NULL)
		return;
	if (strchr(text, '/') != NULL && (sscanf(text, "%u/%u", &part, &parts) != 2 || part == 0 ||
						 parts == 0 || part > parts))
		fail_msg("UNSTABLE_ALL=%s: say 1, or PART/PARTS", text);
	*first = part - 1;
	*step = parts;
}

/* A scene without changes, then each access with each value, then random ones. */
static void
each_scene(void **state)
{
	struct bed *b = *state;
	struct mem_region *foreign = foreign_make(b);
	uint32_t first, step;
	bool all;

	choose(&first, &step, &all);

	for (size_t i = 0; i < ARRAY_LEN(scenes); i++) {
		const struct scene *s = &scenes[i];
		uint32_t accesses, most = 0, runs = 1;

		change = (struct change){ .scene = s->name, .at = UINT32_MAX };
		play(b, foreign, s); /* the first turns of a worker are not like the others */
		accesses = play(b, foreign, s);
		assert_true(accesses != 0);
		for (uint32_t k = first; k < accesses * VALUES * WORDS; k += step, runs++) {
			uint32_t n;

			change.at = k / (VALUES * WORDS);
			change.word = k / VALUES % WORDS;
			change.value = k % VALUES;
			n = play(b, foreign, s);
			most = n > most ? n : most;
		}
		change.at_random = true;
		for (uint32_t k = all ? first : 0; k < (all ? 20 : 1) * RANDOM_ROUNDS;
			k += all ? step : 1, runs++) {
			uint32_t n;

			change.at = k;
			change.rng.x = k * 2654435761u + 1;
			n = play(b, foreign, s);
			most = n > most ? n : most;
		}
		print_message(
			"# %s: %u accesses, at most %u, %u runs\n", s->name, accesses, most, runs);
	}
	assert_true(bound > 100); /* or nothing was tried */
	mem_table_remove(b->mem, FOREIGN_KEY);
	mem_region_free(foreign);
}

/** What pipeline_cq_moved() finds left again when it looks into it. */
static struct {
	struct qp_cq cq;
	struct ring_cq *second; /* in memory that is watched */
	struct ring_cq third;
	uint32_t left; /* at the first look: it was left, so many times */
} again;

static void
leave_second(void *ctx, uint32_t n, uint8_t *at, size_t len)
{
	struct ring_cq *second = unstable_alias(again.second);

	(void)ctx;
	(void)at;
	(void)len;
	if (n != 0)
		return;
	atomic_store(&again.cq.moved, &again.third);
	second->limit = 0;
	again.left++;
}

/* A worker that has read where a queue goes on, just before it is resized once more. */
static void
CQ_05_no_overflow_beside_a_second_resize(void **state)
{
	enum { SMALL = 8 };
	static _Alignas(64) uint8_t mem[3][64 + (SMALL + 1) * sizeof(struct ring_cqe)];
	struct bed *b = *state;
	struct cq_place at;

	assert_true(ring_size(SMALL, sizeof(struct ring_cqe)) <= sizeof(mem[0]));
	again.second = (void *)unstable_map((sizeof(struct ring_cq) + 63) / 64 * 64);
	assert_non_null(again.second);
	ring_cq_attach(&again.cq.ring, mem[0], SMALL, SMALL, true);
	ring_cq_attach(again.second, mem[1], SMALL, SMALL, true);
	ring_cq_attach(&again.third, mem[2], SMALL, SMALL, true);
	again.cq.ring.limit = 0;
	atomic_store(&again.cq.moved, again.second);
	unstable_begin(leave_second, NULL, MOST);
	at = pipeline_cq_moved(&again.cq);
	unstable_end();
	assert_int_equal(again.left, 1);
	assert_ptr_equal(at.slot, ring_cq_at(&again.third, 0));
	assert_ptr_equal(at.ring, &again.third);
	assert_int_equal(at.index, 0);
	assert_int_equal(atomic_load(&again.second->tail), 0);
	assert_int_equal(bed_stat(b, STAT_cq_overflow), 0);
	/* Full is full, behind any number of them. */
	for (int i = 1; i < SMALL; i++)
		assert_non_null(pipeline_cq_moved(&again.cq).slot);
	assert_null(pipeline_cq_moved(&again.cq).slot);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_scene),
		TEST(CQ_05_no_overflow_beside_a_second_resize),
	};

	return cmocka_run_group_tests_name("pipeline_unstable", tests, group_setup, NULL);
}
