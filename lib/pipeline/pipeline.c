/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker's loop: the table of contents of the stages. */
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "acks.h"
#include "drops.h"
#include "flush.h"
#include "handoff.h"
#include "intake.h"
#include "local.h"
#include "mcast.h"
#include "mem_reach.h"
#include "parts.h"
#include "spare.h"
#include "stage.h"
#include "tx.h"

void
pipeline_deliver(struct worker *w, struct burst *b, uint64_t *since)
{
	stage_icrc(w, b);
	lap(w, STAGE_ICRC, since);
	stage_steer(w, b);
	lap(w, STAGE_STEER, since);
	stage_respond(w, b);
	lap(w, STAGE_RESPOND, since);
}

/** Stages 2 to 6 of one burst, up to the ACKs that it makes the worker owe. */
static void
run(struct worker *w, struct burst *b, uint64_t *since)
{
	w->load.packets += w->measuring ? b->n : 0;
	stage_parse(w, b);
	lap(w, STAGE_PARSE, since);
	stage_lookup(w, b);
	lap(w, STAGE_STEER, since);
	if (UNLIKELY(b->n != 0 && b->pkt[0].frame_len > LARGE_FRAME))
		pipeline_deliver_parts(w, b, since);
	else
		pipeline_deliver(w, b, since);
	pipeline_acks_send(w);
	ASSERT(w->dirty_n == 0 && w->naks_n == 0);
	pipeline_mbufs_free_spare(w);
	ASSERT(w->spare_n == 0);
	lap(w, STAGE_RESPOND, since);
}

/** Datagrams to groups, if there are any. */
static inline void
serve_groups(struct worker *w)
{
	if (LIKELY((w->hurry & HURRY_MCAST) == 0))
		return;
	w->hurry &= ~(uint32_t)HURRY_MCAST;
	pipeline_mcast_serve(w);
}

void
pipeline_burst_run(struct worker *w, struct burst *b)
{
	uint64_t since = w->measuring ? rte_rdtsc() : 0; /* not hot: only while a QP moves */

	run(w, b, &since);
	serve_groups(w); /* there is room for one burst's */
}

/**
 * After a loss, packets are wasted until the other end knows of it. So NAKs, resends and requests
 * that an ACK lets out do not wait for the end of the turn. Datagrams to groups are served here,
 * behind their burst.
 * @param asked out: true when stage 10 has run. @return request packets made plus frames sent.
 */
static __attribute__((noinline)) uint32_t
hurry(struct worker *w, bool *asked, uint64_t *since)
{
	const bool requests = (w->hurry & HURRY_REQUESTS) != 0;
	uint32_t done = 0;

	if (UNLIKELY((w->hurry & HURRY_MCAST) != 0))
		pipeline_mcast_serve(w);
	w->hurry = 0;
	if (requests && w->senders_n != 0) {
		*asked = true;
		done = stage_request(w);
		lap(w, STAGE_REQUEST, since);
	}
	done += stage_tx(w);
	lap(w, STAGE_TX, since);
	return done;
}

/** Frames for addresses of this process. @return how many were taken from their queues. */
static __attribute__((noinline)) uint32_t
run_local(struct worker *w, struct burst *b, uint64_t *since)
{
	uint32_t done = 0;

	for (uint32_t out = w->wires_n; out < w->outs_n; out++) {
		for (uint32_t left = local_waiting(w, out), n; left != 0; left -= n) {
			n = pipeline_local_receive(w, b, out, left);
			lap(w, STAGE_RX, since);
			if (n == 0)
				break;
			done += n;
			if (LIKELY(b->n != 0))
				run(w, b, since);
			local_over(w);
			if (UNLIKELY((w->hurry & HURRY_MCAST) != 0))
				pipeline_mcast_serve(w); /* there is room for one burst's */
		}
	}
	return done;
}

/**
 * The same at the end of a turn: what the turn has made, and what answers it. No loan outlives it.
 * What hurries now leaves with the turn.
 */
static __attribute__((noinline)) uint32_t
run_made(struct worker *w, struct burst *b, uint64_t *since)
{
	uint32_t done = 0;

	for (uint32_t i = 0, n = 1; i < LOCAL_ROUNDS && n != 0; i++) {
		n = run_local(w, b, since);
		done += n;
	}
	pipeline_local_own_all(w);
	if (done != 0)
		w->hurry = 0;
	return done;
}

/** Is it time to look whose frames come, since there are full bursts all the time? */
static inline bool
intake_looks(const struct worker *w)
{
	return UNLIKELY(w->full_turns >= INTAKE_FULL) && w->turns % INTAKE_LOOKS == 0;
}

/**
 * A port's burst where there are several workers: frames for others leave it, and frames that
 * others have handed over take their places. So what is done once for a burst is done for a full
 * one. @return how many came from other workers.
 */
static __attribute__((noinline)) uint32_t
run_mixed(struct worker *w, struct burst *b, uint32_t port, uint64_t *since)
{
	struct rte_mbuf *aside[PIPELINE_BURST];
	uint32_t own, joined, n;

	pipeline_handoff_early(w, b);
	own = b->n;
	n = pipeline_handoff_join(w, b, port, aside);
	joined = b->n - own;
	lap(w, STAGE_RX, since);
	if (b->n != 0) {
		if (intake_looks(w))
			pipeline_intake_look(w, b, true);
		run(w, b, since);
	}
	if (UNLIKELY(n != 0)) {
		serve_groups(w); /* there is room for one burst's */
		pipeline_handoff_arrive(w, b, aside, n);
		if (intake_looks(w))
			pipeline_intake_look(w, b, own == 0);
		if (LIKELY(b->n != 0))
			run(w, b, since);
	}
	return joined + n;
}

/** A burst of each port. @param handed out: how many came from other workers. @return frames. */
static ALWAYS_INLINE uint32_t
run_ports(struct worker *w, struct burst *b, bool *more, bool *asked, uint32_t *handed,
	uint64_t *since)
{
	uint32_t done = 0;

	for (uint32_t i = 0; i < w->ports_n; i++) {
		if (!w->conf.ports[i].polls_rx)
			continue;
		stage_rx(w, b, i);
		lap(w, STAGE_RX, since);
		if (b->n == 0)
			continue;
		*more |= b->n == PIPELINE_BURST;
		done += b->n;
		if (UNLIKELY(w->conf.handoff_in != NULL)) {
			*handed += run_mixed(w, b, i, since);
		} else {
			if (intake_looks(w))
				pipeline_intake_look(w, b, true);
			run(w, b, since);
		}
		if (UNLIKELY(w->hurry != 0))
			done += hurry(w, asked, since);
	}
	return done;
}

/** There is more than the worker can do: each peer has its turn. @return frames served. */
static __attribute__((noinline)) uint32_t
run_fairly(struct worker *w, struct burst *b, bool *more, bool *asked, uint64_t *since)
{
	uint32_t done = 0, bursts = 0;

	for (uint32_t i = 0; i < w->ports_n; i++) {
		if (!w->conf.ports[i].polls_rx)
			continue;
		bursts++;
		*more |= pipeline_intake_fill(w, b, i) >= PIPELINE_BURST;
		lap(w, STAGE_RX, since);
	}
	if (w->conf.handoff_in != NULL) {
		bursts++;
		*more |= pipeline_intake_fill_handed(w, b) >= PIPELINE_BURST;
		lap(w, STAGE_RX, since);
	}
	for (; bursts != 0 && pipeline_intake_take(w, b); bursts--) {
		clock_read(w);
		done += b->n;
		run(w, b, since);
		if (UNLIKELY(w->hurry != 0))
			done += hurry(w, asked, since);
	}
	*more |= pipeline_intake_settle(w, *more) != 0;
	return done;
}

/**
 * A burst of what other workers have handed over, with those that have been served in this turn.
 * @return frames, those as well.
 */
static ALWAYS_INLINE uint32_t
run_handed(struct worker *w, struct burst *b, bool *more, bool *asked, uint32_t served,
	uint64_t *since)
{
	uint32_t done = served;

	if (LIKELY(served < PIPELINE_BURST)) {
		pipeline_handoff_receive(w, b, PIPELINE_BURST - served);
		lap(w, STAGE_RX, since);
		done += b->n;
	}
	if (done != served && intake_looks(w))
		pipeline_intake_look(w, b, !*more);
	*more |= done >= PIPELINE_BURST;
	if (done == served)
		return done;
	run(w, b, since);
	if (UNLIKELY(w->hurry != 0))
		done += hurry(w, asked, since);
	return done;
}

/**
 * To look at all counters of all local queues takes longer than an idle turn: once when the worker
 * comes to rest, and now and then. @param rests this turn did nothing, the one before it did.
 */
static inline void
settle(struct worker *w, bool rests)
{
	if (LIKELY(!rests) && LIKELY(++w->unsettled < SETTLE_TURNS))
		return;
	w->unsettled = 0;
	pipeline_local_settle(w);
}

static inline void
turn_begin(struct worker *w, ns_t now)
{
	mem_reader_turn(w->mem, w->index);
	if (UNLIKELY(w->lossy))
		pipeline_lossy_turn(w);
	w->began = now;
	w->now = now;
	w->coming_n = 0;
	w->flush_left = FLUSH_TURN;
	records_allow(w);
}

uint32_t
worker_poll(struct worker *w, ns_t now)
{
	struct burst *b = &w->burst;
	uint64_t since = 0;
	uint32_t done = 0;
	bool more = false;   /* a port has more frames than this turn took */
	bool asked = false;  /* stage 10 has run in this turn */
	uint32_t handed = 0; /* frames of other workers that a port's burst had room for */
	const bool fairly = w->intake_on;

	turn_begin(w, now);
	w->measuring = atomic_load_explicit(&w->load.measure, memory_order_relaxed);
	if (UNLIKELY(w->measuring))
		since = rte_rdtsc(); /* not hot: only while somebody measures */

	if (UNLIKELY(!atomic_load_explicit(&w->receiving, memory_order_relaxed))) {
		done = pipeline_flush_turn(w);
		done += stage_mailbox(w);
		return done + stage_tx(w);
	}

	if (LIKELY(!fairly))
		done = run_ports(w, b, &more, &asked, &handed, &since);
	else
		done = run_fairly(w, b, &more, &asked, &since);
	if (local_is_used(w)) {
		done += run_local(w, b, &since);
		if (UNLIKELY(w->hurry != 0))
			done += hurry(w, &asked, &since);
	}
	if (w->conf.handoff_in != NULL && LIKELY(!fairly))
		done += run_handed(w, b, &more, &asked, handed, &since);

	w->crowded = more;
	w->full_turns = more ? RTE_MIN(w->full_turns + 1, (uint32_t)INTAKE_FULL) : 0;
	if (w->answering != 0) {
		stage_answers(w);
		lap(w, STAGE_RESPOND, &since);
	}
	/* After a long pause, the ACK that a timer waits for may be among those frames (TMR-02). */
	if (LIKELY(!more) || ++w->late == TIMER_TURNS) {
		w->late = 0;
		done += stage_timers(w);
		lap(w, STAGE_TIMERS, &since);
	}
	if (w->clients_n != 0) {
		done += stage_doorbells(w);
		lap(w, STAGE_DOORBELLS, &since);
	}
	if (UNLIKELY(!TAILQ_EMPTY(&w->flushing))) {
		done += pipeline_flush_turn(w);
		lap(w, STAGE_FLUSH, &since);
	}
	if (w->senders_n != 0 && LIKELY(!asked)) {
		done += stage_request(w);
		lap(w, STAGE_REQUEST, &since);
	}
	if (local_is_used(w))
		done += run_made(w, b, &since);
	done += stage_tx(w);
	lap(w, STAGE_TX, &since);
	/* Read the clock once in a turn, and again if a frame that starts a wait has left. */
	if (done != 0 && (w->now == now || tx_has_starts(w))) {
		clock_read(w);
		pipeline_tx_departed(w);
	}

	if (!outs_are_settled(w))
		settle(w, done == 0 && w->turns != 0);
	w->turns = done != 0 ? w->turns + 1 : 0;
	if (w->turns % MAILBOX_TURNS == 0) {
		const uint32_t commands = stage_mailbox(w);

		if (commands != 0)
			w->unsettled = SETTLE_TURNS;
		done += commands; /* while they come, the worker stays awake */
		lap(w, STAGE_MAILBOX, &since);
	}
	return done;
}

/** What this thread has used of a CPU. */
static ns_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t); /* not hot: only while somebody measures */
	return (ns_t)t.tv_sec * TIME_NS_PER_S + (ns_t)t.tv_nsec;
}

/** The turn just over is the longest one: what of it was when it began is taken off. */
static void
longest_turn(struct worker *w, struct stats_turn t, const struct rusage *r,
	const uint64_t cycles[STAGE_MAX])
{
	struct rusage now;

	getrusage(RUSAGE_THREAD, &now);
	t.faults = (uint32_t)(now.ru_minflt - r->ru_minflt);
	t.disk_faults = (uint32_t)(now.ru_majflt - r->ru_majflt);
	t.waits = (uint32_t)(now.ru_nvcsw - r->ru_nvcsw);
	t.preempted = (uint32_t)(now.ru_nivcsw - r->ru_nivcsw);
	for (uint32_t s = 0; s < STAGE_MAX; s++) {
		if (w->load.cycles[s] - cycles[s] >= t.stage_cycles) {
			t.stage_cycles = w->load.cycles[s] - cycles[s];
			t.stage = s;
		}
	}
	w->load.longest = t;
}

/**
 * The same, and the longest turn, by what the thread ran. The calls that ask for that can be
 * interrupted as well, and a kernel may count an interrupt as the thread's: no turn has run for
 * longer than it took by the clock, which is read inside of them.
 */
static __attribute__((noinline)) bool
measured_poll(struct worker *w, ns_t now)
{
	uint64_t cycles[STAGE_MAX];
	struct stats_turn t = { 0 };
	struct rusage r;
	ns_t cpu, began;
	bool busy;

	memcpy(cycles, w->load.cycles, sizeof(cycles));
	getrusage(RUSAGE_THREAD, &r);
	cpu = cpu_now();
	began = w->conf.clock(); /* not hot: only while somebody measures */
	busy = worker_poll(w, now) != 0;
	t.took_ns = w->conf.clock() - began; /* not hot: only while somebody measures */
	t.cpu_ns = RTE_MIN(cpu_now() - cpu, t.took_ns);
	if (atomic_load_explicit(&w->load.turn_new, memory_order_relaxed)) {
		w->load.longest = (struct stats_turn){ 0 };
		atomic_store_explicit(&w->load.turn_new, false, memory_order_relaxed);
	}
	if (t.cpu_ns > w->load.longest.cpu_ns)
		longest_turn(w, t, &r, cycles);
	return busy;
}

void
worker_run(struct worker *w, const _Atomic bool *stop, void (*idle)(void *, uint32_t turns),
	void *idle_ctx)
{
	struct stats_load *load = &w->load;
	ns_t now = w->conf.clock(), began = now;
	uint32_t idle_turns = 0, busy_turns = 0;
	bool was_busy = false;

	while (!atomic_load_explicit(stop, memory_order_relaxed)) {
		ns_t rests;
		bool busy;

		stats_turn_begins(load, began, now);
		began = now;
		busy = UNLIKELY(w->measuring) ? measured_poll(w, began)
					      : worker_poll(w, began) != 0;
		load->turns++;
		load->busy_turns += busy;
		/* What a busy turn did after its last reading of the clock counts with the next. */
		if (busy || was_busy) {
			now = busy && w->now != began ? w->now : w->conf.clock();
			load->busy_ns += now - began;
			load->total_ns += now - began;
			was_busy = busy;
		}
		if (busy) {
			idle_turns = 0;
			if (++busy_turns % WORKER_TELLS == 0 && idle != NULL)
				idle(idle_ctx, 0);
			continue;
		}
		rests = now;
		idle_turns = worker_idle_more(idle_turns);
		if (idle != NULL)
			idle(idle_ctx, idle_turns);
		now = w->conf.clock();
		load->total_ns += now - rests;
	}
}
