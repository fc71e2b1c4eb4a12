/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim-loss [--losses N] [--seed N] [--row ROW] [--always]
 *
 * Goodput and transport timeouts of one queue pair over a link that loses packets, in virtual time:
 * no noise, and the same seed gives the same figures. One core has both ends, as in
 * scripts/bench/loss, and each packet takes it some time; so the lossless rate is the core's, or
 * what eight messages in flight let through. All that sim checks is checked here, too.
 *
 * Each row plays without loss, then until N packets are lost (20,000), and prints the rate with
 * losses as a part of that without. Beside it stands the most that going back can reach: whatever
 * is on the link behind a lost packet is sent again, 1 / (1 + loss * packets of a round trip). Who
 * asks for the missing packets alone is not bound by it. A row with less than its least, or with
 * a timeout, is a failure.
 *
 * Before its first loss a queue pair does not probe. If its last packet, or the NAK, is lost then,
 * it has a timeout; so may one row in a hundred. With --always (req.probe) none has. The second
 * table is of first losses alone: three of each connection, by default and with req.probe=always.
 *
 * The last table has no random loss but a bottleneck: a switch's port with a rate of 20 Gb/s and
 * a buffer, which all queue pairs share, and which drops what does not fit. There the losses are
 * the sender's own doing. Each row plays 100 ms and prints what arrived as a part of the rate;
 * beside it the packets that buffer and link hold together. Timeouts are no failure there: 16 KiB
 * are three packets, and four queue pairs at 64 KiB have as many each.
 */
#include <getopt.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "sim.h"

#define USAGE "sim-loss [--losses N] [--seed N] [--row ROW] [--always]"

/* Nanoseconds of the core: with them a WRITE of 4 KiB takes it half a microsecond at both ends. */
enum {
	COST_TURN = 150,
	COST_DATA = 230, /* a packet with 4 KiB of payload, sent or received */
	COST_SMALL = 60, /* one without */
};

enum {
	REQUESTS_TURN = 16,
	ANSWERS_TURN = 64,
	WINDOW = 256, /* cc.window */
	ASK_EACH = 16,
	MESSAGE = 16,    /* packets */
	PMTU = 256,      /* their size does not matter here, the costs are those of 4 KiB */
	STRETCH = 10000, /* messages without loss */
	FEW = 8,         /* the same, of many connections */
};

static int always; /* REQ_KNOB_PROBE */

enum gap { RESTART, FILL, KEEP, ALONE };
static const char *const gaps[][2] = { { "", "restart" }, { "", "fill" }, { "patch", "keep" },
	{ "alone", "" } };

static const struct row {
	uint8_t op;
	uint8_t gap;     /* req.read_gap; of a WRITE: with KEEP req.gap=patch and resp.gap=keep,
			  * with ALONE the requester's, towards a peer that keeps nothing */
	uint8_t timeout; /* exponent */
	uint32_t delay;  /* ns, each way */
	uint32_t loss;   /* in a million, each way */
	double least;    /* fraction */
	uint32_t window; /* packets */
} rows[] = {
	{ WR_RDMA_WRITE, RESTART, 4, 5000, 1000, 0.96, WINDOW },
	{ WR_RDMA_WRITE, RESTART, 4, 5000, 10000, 0.70, WINDOW },
	{ WR_RDMA_READ, RESTART, 4, 5000, 1000, 0.92, WINDOW },
	{ WR_RDMA_READ, RESTART, 4, 5000, 10000, 0.61, WINDOW },
	{ WR_RDMA_READ, FILL, 4, 5000, 1000, 0.92, WINDOW },
	{ WR_RDMA_READ, FILL, 4, 5000, 10000, 0.65, WINDOW },
	{ WR_RDMA_READ, KEEP, 4, 5000, 1000, 0.98, WINDOW },
	{ WR_RDMA_READ, KEEP, 4, 5000, 10000, 0.91, WINDOW },
	{ WR_RDMA_WRITE, RESTART, 8, 50000, 1000, 0.91, WINDOW },
	{ WR_RDMA_WRITE, RESTART, 8, 50000, 10000, 0.40, WINDOW },
	{ WR_RDMA_READ, RESTART, 8, 50000, 1000, 0.89, WINDOW },
	{ WR_RDMA_READ, RESTART, 8, 50000, 10000, 0.28, WINDOW },
	{ WR_RDMA_READ, KEEP, 8, 50000, 1000, 0.90, WINDOW },
	{ WR_RDMA_READ, KEEP, 8, 50000, 10000, 0.43, WINDOW },
	{ WR_RDMA_WRITE, KEEP, 4, 5000, 1000, 0.99, WINDOW },
	{ WR_RDMA_WRITE, KEEP, 4, 5000, 10000, 0.95, WINDOW },
	{ WR_RDMA_WRITE, KEEP, 8, 50000, 1000, 0.91, WINDOW },
	{ WR_RDMA_WRITE, KEEP, 8, 50000, 10000, 0.48, WINDOW },
	/* More than the peer has places for: one loss is told as several. */
	{ WR_RDMA_WRITE, KEEP, 8, 50000, 1000, 0.82, 4 * WINDOW - 64 },
	{ WR_RDMA_WRITE, ALONE, 4, 5000, 1000, 0.96, WINDOW },
	{ WR_RDMA_WRITE, ALONE, 4, 5000, 10000, 0.70, WINDOW },
	{ WR_RDMA_WRITE, ALONE, 8, 50000, 1000, 0.89, WINDOW },
	{ WR_RDMA_WRITE, ALONE, 8, 50000, 10000, 0.39, WINDOW },
};

/* The first losses. Many in a row, so that also what tells of them is lost. */
enum { FIRST_LOSSES = 3, FIRST_CHANCE = 100000, FIRST_TIMEOUT = 8, FIRST_EACH = 20 };
static const struct first {
	uint8_t op;
	uint8_t gap;
	uint32_t window; /* packets */
} firsts[] = {
	{ WR_RDMA_WRITE, RESTART, 2 * MESSAGE }, /* one message at a time */
	{ WR_RDMA_WRITE, RESTART, WINDOW },
	{ WR_RDMA_WRITE, KEEP, WINDOW },
	{ WR_RDMA_READ, RESTART, 2 * MESSAGE },
	{ WR_RDMA_READ, KEEP, 2 * MESSAGE },
};

/* Lengths and the buffer are those of 4 KiB, scaled to frames of the bed. */
enum {
	NECK_GBPS = 20,
	NECK_REAL = 4154, /* bytes of a frame */
	NECK_FRAME = PMTU + NECK_REAL - 4096,
	NECK_WARM = 5,   /* ms */
	NECK_LONG = 100, /* ms */
};

static const struct neck {
	uint8_t op;
	uint8_t gap;
	uint8_t pairs;
	uint8_t timeout;
	uint32_t delay;  /* ns, each way */
	uint32_t buffer; /* KiB */
	double least;    /* of the rate */
} necks[] = {
	{ WR_RDMA_WRITE, RESTART, 1, 8, 5000, 16, 0.15 },
	{ WR_RDMA_WRITE, RESTART, 1, 8, 5000, 64, 0.72 },
	{ WR_RDMA_WRITE, RESTART, 1, 8, 5000, 256, 0.85 },
	{ WR_RDMA_WRITE, RESTART, 4, 8, 5000, 64, 0.50 },
	{ WR_RDMA_WRITE, RESTART, 4, 8, 5000, 256, 0.60 },
	{ WR_RDMA_WRITE, KEEP, 1, 8, 5000, 64, 0.70 },
	{ WR_RDMA_WRITE, KEEP, 1, 8, 5000, 256, 0.85 },
	{ WR_RDMA_WRITE, ALONE, 1, 8, 5000, 64, 0.68 },
	{ WR_RDMA_WRITE, RESTART, 1, 8, 50000, 64, 0.38 },
	{ WR_RDMA_WRITE, RESTART, 1, 8, 50000, 256, 0.80 },
	{ WR_RDMA_READ, RESTART, 1, 8, 5000, 16, 0.05 },
	{ WR_RDMA_READ, RESTART, 1, 8, 5000, 64, 0.25 },
	{ WR_RDMA_READ, RESTART, 1, 8, 5000, 256, 0.72 },
	{ WR_RDMA_READ, RESTART, 4, 8, 5000, 64, 0.38 },
	{ WR_RDMA_READ, FILL, 1, 8, 5000, 64, 0.30 },
	{ WR_RDMA_READ, KEEP, 1, 8, 5000, 64, 0.48 },
	{ WR_RDMA_READ, KEEP, 1, 8, 5000, 256, 0.88 },
	{ WR_RDMA_READ, RESTART, 1, 8, 50000, 64, 0.10 },
};

/* ---- what breaks ----------------------------------------------------------------------------- */

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	va_list ap;

	printf("sim-loss --seed %" PRIu64 " # %.6f ms: ", s->seed, (double)s->now / 1e6);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	exit(1);
}

void
sim_trace(struct sim *s, const struct end *e, const char *fmt, ...)
{
	va_list ap;

	printf("%14.3f end %u ", (double)s->now / 1e3, e->index);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

/* ---- both ends ------------------------------------------------------------------------------- */

static void
begin(struct sim *s, uint32_t pairs, uint64_t seed)
{
	s->pairs = pairs;
	s->g.x = (seed + 1) * UINT64_C(0x9e3779b97f4a7c15);
	s->seed = seed;
	s->now = TIME_NS_PER_S;
	s->next_key = 0x1000;
	s->next_wr_id = 1;
	s->hostile = s->fifo = true;
	s->needed = s->needless = s->timeouts = s->unheard = 0;
	s->share.on = false;
	wheel_init(&s->wheel, tick_of(s->now));
	memset(s->link, 0, sizeof(s->link));
}

static void
connect(struct sim *s, uint32_t pair, uint8_t op, uint8_t gap, uint8_t timeout)
{
	static const uint16_t knobs[] = { 0, REQ_KNOB_READ_FILL,
		REQ_KNOB_READ_FILL | REQ_KNOB_READ_KEEP };
	struct end *e = &s->end[2 * pair], *peer = e + 1;

	s->pair[pair] =
		(struct pair){ .pmtu = PMTU, .message_max = MESSAGE_TOP, .mr_bytes = MR_BYTES };
	pair_connect(s, pair);
	e->req.window = WINDOW;
	e->req.ackreq_interval = ASK_EACH;
	e->req.timeout = timeout;
	e->req.retry_cnt = e->req.retry_left = 7;
	e->req.max_rd_atomic = RD_MAX;
	e->req.knobs = op == WR_RDMA_READ ? knobs[gap] : gap >= KEEP ? REQ_KNOB_PATCH : 0;
	e->req.knobs |= (uint16_t)always;
	e->req.transport = peer->resp.transport = WIRE_RC;
	e->req.qp_type = QPT_RC;
	e->req.armed = e->armed = e->paths = false;
	peer->resp.knobs = op == WR_RDMA_WRITE && gap == KEEP ? RESP_KNOB_KEEP : 0;
	peer->resp.max_dest_rd_atomic = peer->resp.saved_n = RD_MAX;
	peer->answers.cap = ANSWERS;
}

static void
post(struct sim *s, struct end *e, uint8_t op)
{
	const uint32_t slot = e->req.tail % SQ_SLOTS, len = MESSAGE * PMTU;
	const bool read = op == WR_RDMA_READ;
	const struct mr *to = &peer_of(s, e)->mr[0], *own = read ? &e->to_sink : &e->pool;

	e->work[slot] = (struct work){ .want = WANT_SUCCESS, .num_sge = 1, .target = GUARD };
	e->work[slot].sge[0] =
		(struct ring_sge){ .addr = own->region->va + (read ? slot * MESSAGE_TOP : 0),
			.length = len,
			.lkey = own->key };
	e->wr[slot] = (struct requester_wr){ .opcode = op,
		.flags = SEND_SIGNALED,
		.wr_id = s->next_wr_id++,
		.len = len,
		.rkey = to->key,
		.remote_addr = to->region->va };
	requester_posted(&e->req, e->req.tail + 1);
}

/* ---- the core -------------------------------------------------------------------------------- */

/* Messages in flight: half a window. */
static uint32_t
depth_of(const struct end *e)
{
	return e->req.window / (2 * MESSAGE);
}

static void
spend(struct sim *s, bool data)
{
	s->now += data ? COST_DATA : COST_SMALL;
}

static void
turn(struct sim *s, uint8_t op)
{
	struct packet *p;

	s->now += COST_TURN;
	for (uint32_t n = 0; n < BURST && (p = link_receive(s)) != NULL; n++) {
		spend(s, p->len > PMTU);
		sim_arrive(s, p);
		packet_free(s, p);
	}
	for (struct end *peer = &s->end[1]; peer < &s->end[2 * s->pairs]; peer += 2) {
		if (peer->ack_pending) {
			ack_flush(s, peer);
			spend(s, false);
		}
		for (uint32_t n = 0; n < ANSWERS_TURN && peer->answers.count != 0; n++) {
			answers_run(s, peer, 1);
			spend(s, true);
		}
	}
	sim_timers(s);
	for (struct end *e = &s->end[0]; e < &s->end[2 * s->pairs]; e += 2) {
		while (e->req.tail - e->done < depth_of(e))
			post(s, e, op);
		for (uint32_t n = 0, before; n < REQUESTS_TURN; n++) {
			before = s->packets;
			send_some(s, e, 1);
			if (s->packets == before)
				break;
			spend(s, op != WR_RDMA_READ);
		}
	}
}

/** The core has nothing to do: until when? */
static ns_t
rests(const struct sim *s)
{
	const ns_t link = link_next(s);
	const tick_t tick = wheel_next(&s->wheel);
	const ns_t timer = tick == WHEEL_NEVER ? UINT64_MAX : (ns_t)tick << TICK_SHIFT;

	for (const struct end *e = &s->end[0]; e < &s->end[2 * s->pairs]; e += 2)
		if (e->busy || e[1].answers.count != 0 || e->req.tail - e->done != depth_of(e))
			return 0;
	return link < timer ? link : timer;
}

/** A turn of the core, or until there is something to do. */
static void
step(struct sim *s, uint8_t op)
{
	const ns_t next = rests(s);

	s->now = next > s->now ? next : s->now;
	turn(s, op);
}

/** Until `goal` packets are lost, or without loss so many messages complete. @return their rate. */
static double
play(struct sim *s, const struct row *row, uint32_t loss, uint64_t goal)
{
	const uint64_t lost = s->t.lost, done = s->t.completed;
	const ns_t start = s->now;

	for (uint32_t i = 0; i < 2; i++) {
		s->link[i].latency = row->delay;
		s->link[i].loss = loss;
	}
	while (loss != 0 ? s->t.lost - lost < goal : s->t.completed - done < goal)
		step(s, row->op);
	return (double)(s->t.completed - done) * TIME_NS_PER_S / (double)(s->now - start);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/** @return is it as good as it has to be? */
static bool
run(struct sim *s, const struct row *row, uint64_t losses, uint64_t seed)
{
	const double loss = row->loss / 1e6;
	struct totals t;
	double whole, part, bound;
	uint64_t timeouts;
	bool good;

	begin(s, 1, seed);
	connect(s, 0, row->op, row->gap, row->timeout);
	s->end[0].req.window = row->window;
	whole = play(s, row, 0, STRETCH);
	t = s->t;
	part = play(s, row, row->loss, losses) / whole;
	pair_release(s, 0);
	link_clear(s);
	bound = 1 / (1 + loss * whole * MESSAGE * 2 * row->delay / TIME_NS_PER_S);
	timeouts = s->t.timeouts - t.timeouts;
	good = part >= row->least && timeouts == 0;
	printf("%-5s %-7s  %3u us  %4.1f %%  %6.2f  %8.3f  %8.3f  %8" PRIu64 "  %8" PRIu64 "%s\n",
		row->op == WR_RDMA_READ ? "read" : "write", gaps[row->gap][row->op == WR_RDMA_READ],
		row->delay / 500, loss * 100, whole * MESSAGE / 1e6, part, bound,
		s->t.probes - t.probes, timeouts, good ? "" : "  <-- is not good enough");
	fflush(stdout);
	return good;
}

/** @return timeouts of so many connections. */
static uint64_t
run_firsts(struct sim *s, const struct first *first, uint16_t probe, uint64_t n, uint64_t seed)
{
	const struct row row = { .op = first->op, .delay = 5000 };
	const uint64_t timeouts = s->t.timeouts;

	for (uint64_t i = 0; i < n; i++) {
		begin(s, 1, seed * n + i);
		connect(s, 0, first->op, first->gap, FIRST_TIMEOUT);
		s->end[0].req.window = first->window;
		s->end[0].req.knobs |= probe;
		play(s, &row, 0, FEW);
		play(s, &row, FIRST_CHANCE, FIRST_LOSSES);
		play(s, &row, 0, 2 * FEW);
		pair_release(s, 0);
		link_clear(s);
	}
	return s->t.timeouts - timeouts;
}

/** @return is it as good as it has to be? By default there are some, or this shows nothing. */
static bool
run_first(struct sim *s, const struct first *first, uint64_t n, uint64_t seed)
{
	const uint64_t lossy = run_firsts(s, first, 0, n, seed),
		       none = run_firsts(s, first, REQ_KNOB_PROBE, n, seed);

	printf("%-5s %-7s  %6u  %11" PRIu64 "  %8" PRIu64 "  %8" PRIu64 "%s\n",
		first->op == WR_RDMA_READ ? "read" : "write",
		gaps[first->gap][first->op == WR_RDMA_READ], first->window, n, lossy, none,
		none == 0 ? "" : "  <-- is not good enough");
	return none == 0 && (lossy != 0 || n < 1000);
}

/* ---- a bottleneck ---------------------------------------------------------------------------- */

static void
share_one_queue(struct sim *s, const struct neck *row)
{
	const struct bottleneck_conf conf = {
		.rate = NECK_GBPS * UINT64_C(1000000000) * NECK_FRAME / NECK_REAL,
		.buffer = row->buffer * 1024 * NECK_FRAME / NECK_REAL,
		.seed = s->seed,
	};
	struct cc_params p;

	cc_preset(CC_PAPER, &p);
	p.line_rate = 400000; /* nothing is marked, so nobody is paced */
	for (uint32_t i = 0; i < 2; i++) {
		s->link[i].latency = row->delay;
		impair_bottleneck_init(&s->share.neck[i], &conf);
	}
	for (uint32_t i = 0; i < 2 * s->pairs; i++)
		cc_start(&s->end[i].share.cc, &p);
	s->share.on = true;
}

static void
play_until(struct sim *s, uint8_t op, ns_t until)
{
	while (s->now < until)
		step(s, op);
}

/** @return is it as good as it has to be? */
static bool
run_neck(struct sim *s, const struct neck *row, uint64_t seed)
{
	const double rate = (double)NECK_GBPS / 8 / NECK_REAL; /* packets a nanosecond */
	struct totals t;
	double part;
	ns_t start;
	bool good;

	begin(s, row->pairs, seed);
	for (uint32_t i = 0; i < row->pairs; i++)
		connect(s, i, row->op, row->gap, row->timeout);
	share_one_queue(s, row);
	play_until(s, row->op, s->now + NECK_WARM * TIME_NS_PER_MS);
	t = s->t;
	start = s->now;
	play_until(s, row->op, start + NECK_LONG * TIME_NS_PER_MS);
	part = (double)(s->t.completed - t.completed) * MESSAGE / ((double)(s->now - start) * rate);
	good = part >= row->least;
	printf("%-5s %-7s  %3u us  %4u K  %4u  %5.0f  %8.3f  %8" PRIu64 "  %8" PRIu64 "  %8" PRIu64
	       "%s\n",
		row->op == WR_RDMA_READ ? "read" : "write", gaps[row->gap][row->op == WR_RDMA_READ],
		row->delay / 500, row->buffer, row->pairs,
		row->buffer * 1024. / NECK_REAL + 2 * row->delay * rate, part,
		s->t.overflowed - t.overflowed, s->t.probes - t.probes, s->t.timeouts - t.timeouts,
		good ? "" : "  <-- is not good enough");
	fflush(stdout);
	for (uint32_t i = 0; i < row->pairs; i++)
		pair_release(s, i);
	link_clear(s);
	return good;
}

int
main(int argc, char **argv)
{
	static const struct option names[] = {
		{ "losses", required_argument, NULL, 'l' },
		{ "seed", required_argument, NULL, 's' },
		{ "row", required_argument, NULL, 'r' },
		{ "always", no_argument, &always, REQ_KNOB_PROBE },
		{ NULL, 0, NULL, 0 },
	};
	static struct sim *s; /* kept to the end, with the packets that it uses again */
	uint64_t losses = 20000, seed = 1, only = UINT64_MAX;
	bool good = true;
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		if (c == '?')
			args_bad(USAGE);
		if (c != 0)
			*(c == 'l'         ? &losses
				: c == 's' ? &seed
					   : &only) = args_number(optarg, USAGE);
	}
	if (optind != argc || (only != UINT64_MAX && only >= ARRAY_LEN(rows) + ARRAY_LEN(necks)))
		args_bad(USAGE);
	s = sim_create();
	printf("op    gap      round    loss    rate  fraction  going back    probes  timeouts\n");
	for (uint64_t i = 0; i < ARRAY_LEN(rows); i++)
		if (only == UINT64_MAX || only == i)
			good &= run(s, &rows[i], losses, seed);
	printf("op    gap      window  connections  timeouts  always\n");
	for (uint64_t i = 0; i < ARRAY_LEN(firsts) && only == UINT64_MAX && always == 0; i++)
		good &= run_first(s, &firsts[i], losses / FIRST_EACH, seed);
	printf("op    gap      round  buffer   QPs  holds      part   dropped    probes  "
	       "timeouts\n");
	for (uint64_t i = 0; i < ARRAY_LEN(necks); i++)
		if (only == UINT64_MAX || only == ARRAY_LEN(rows) + i)
			good &= run_neck(s, &necks[i], seed);
	return good ? 0 : 1;
}
