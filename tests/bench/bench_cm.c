/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections set up and torn down, by applications: both ends are this process, each a client of
 * the dataplane of its own. What one costs is what two programs of librocelane pay for it: an id, a
 * way to the peer, a queue pair at each end, REQ, REP, RTU, then DREQ, DREP and the end of all of
 * it. Prints one line of JSON: how many, and the times of a client in microseconds.
 *
 *   bench_cm SOCKET ADDRESS SECONDS WINDOW RATE
 *
 * WINDOW connections are under way at a time; RATE a second begin, 0: as many as can.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "bench_stat.h"
#include "cm_side.h"

#define SERVICE   7471
#define MAX_CONNS 4000000
#define WAIT_MS   10000
#define NS        1e9

enum { SETUP, CONNECT, TEARDOWN, TIMES };

/* Of the client's end. */
struct conn {
	uint64_t began, asked, up, down;
};

static struct {
	struct side s, c;
	struct rl_cm_id *listener;
	struct sockaddr_storage to;
	struct conn *conns; /* one after the other */
	uint32_t begun, over, failed;
	uint32_t ends; /* of servers' */
	double *times[TIMES];
} w;

static void
make_qp(struct side *side, struct rl_cm_id *id)
{
	struct rl_qp_init_attr init = { .send_cq = side->p.cq,
		.recv_cq = side->p.cq,
		.qp_type = RL_QPT_RC,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };

	OK(rl_cm_create_qp(id, side->p.pd, &init));
}

static void
begin(void)
{
	struct conn *c = &w.conns[w.begun++];
	struct rl_cm_id *id;

	c->began = pair_now_ns();
	OK(rl_cm_create_id(w.c.channel, &id, c, RL_PS_TCP));
	OK(rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&w.to, WAIT_MS));
}

static void
finish(struct rl_cm_id *id)
{
	if (id->qp != NULL)
		OK(rl_cm_destroy_qp(id));
	OK(rl_cm_destroy_id(id));
}

static void
over(struct rl_cm_id *id, bool good)
{
	const struct conn *c = id->id_context;

	finish(id);
	if (good) {
		const uint32_t n = w.over - w.failed;

		w.times[SETUP][n] = (double)(c->up - c->began) / 1e3;
		w.times[CONNECT][n] = (double)(c->up - c->asked) / 1e3;
		w.times[TEARDOWN][n] = (double)(pair_now_ns() - c->down) / 1e3;
	} else {
		w.failed++;
	}
	w.over++;
}

/* @return false: it is for nobody any more. */
static bool
client_event(struct rl_cm_id *id, enum rl_cm_event_type type)
{
	struct conn *c = id->id_context;

	switch (type) {
	case RL_CM_EVENT_ADDR_RESOLVED:
		OK(rl_cm_resolve_route(id, WAIT_MS));
		return true;
	case RL_CM_EVENT_ROUTE_RESOLVED:
		make_qp(&w.c, id);
		c->asked = pair_now_ns();
		OK(rl_cm_connect(id, NULL));
		return true;
	case RL_CM_EVENT_ESTABLISHED:
		c->up = c->down = pair_now_ns();
		OK(rl_cm_disconnect(id));
		return true;
	default:
		return type == RL_CM_EVENT_TIMEWAIT_EXIT;
	}
}

static void
server_event(struct rl_cm_id *id, enum rl_cm_event_type type, bool *ended)
{
	switch (type) {
	case RL_CM_EVENT_CONNECT_REQUEST:
		make_qp(&w.s, id);
		OK(rl_cm_accept(id, NULL));
		break;
	case RL_CM_EVENT_DISCONNECTED:
	case RL_CM_EVENT_REJECTED:
	case RL_CM_EVENT_CONNECT_ERROR:
	case RL_CM_EVENT_UNREACHABLE:
		rl_cm_disconnect(id);
		*ended = true;
		break;
	default:
		break;
	}
}

static void
take(struct side *side)
{
	struct rl_cm_event *e;
	enum rl_cm_event_type type;
	struct rl_cm_id *id;
	bool ended = false;
	OK(rl_cm_get_event(side->channel, &e));
	type = e->event;
	id = e->id;
	OK(rl_cm_ack_event(e));
	if (side == &w.c) {
		if (!client_event(id, type))
			over(id, type == RL_CM_EVENT_DISCONNECTED);
		return;
	}
	server_event(id, type, &ended);
	if (ended) {
		finish(id);
		w.ends++;
	}
}

/* @return false: there is none. */
static bool
take_both(void)
{
	struct pollfd p[2] = { { .fd = w.s.channel->fd, .events = POLLIN },
		{ .fd = w.c.channel->fd, .events = POLLIN } };

	if (poll(p, 2, 1) <= 0)
		return false;
	if (p[0].revents != 0)
		take(&w.s);
	if (p[1].revents != 0)
		take(&w.c);
	return true;
}

static void
run(double seconds, uint32_t window, double rate)
{
	const uint64_t start = pair_now_ns(), end = start + (uint64_t)(seconds * NS);
	uint64_t now = start, last = start;
	bool any;

	while (now < end || w.over < w.begun) {
		while (now < end && w.begun - w.over < window && w.begun < MAX_CONNS &&
			(rate == 0 || w.begun < (double)(now - start) / NS * rate))
			begin();
		any = take_both();
		now = pair_now_ns();
		if (any)
			last = now;
		if (now > end && now - last > (uint64_t)WAIT_MS * 1000000)
			break; /* what is left is not answered */
	}
}

static void
print_times(const char *name, double *v, uint32_t n, const char *end)
{
	qsort(v, n, sizeof(*v), stat_compare);
	printf("\"%s\": [%.0f, %.0f, %.0f]%s", name, n != 0 ? v[n / 2] : 0.,
		n != 0 ? v[(uint64_t)n * 99 / 100] : 0., n != 0 ? v[n - 1] : 0., end);
}

int
main(int argc, char **argv)
{
	uint64_t start;
	uint32_t good;
	double took;

	CHECK(argc == 6);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	w.to = side_address(argv[2], SERVICE);
	w.conns = calloc(MAX_CONNS, sizeof(*w.conns));
	for (int i = 0; i < TIMES; i++)
		CHECK((w.times[i] = calloc(MAX_CONNS, sizeof(double))) != NULL);
	CHECK(w.conns != NULL);
	OK(rl_cm_create_id(w.s.channel, &w.listener, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(w.listener, (struct sockaddr *)&w.to));
	OK(rl_cm_listen(w.listener, 0));
	start = pair_now_ns();
	run(strtod(argv[3], NULL), (uint32_t)strtoul(argv[4], NULL, 0), strtod(argv[5], NULL));
	took = (double)(pair_now_ns() - start) / NS;
	good = w.over - w.failed;
	printf("{\"seconds\": %.3f, \"begun\": %" PRIu32 ", \"good\": %" PRIu32
	       ", \"failed\": %" PRIu32 ", ",
		took, w.begun, good, w.failed);
	print_times("setup", w.times[SETUP], good, ", ");
	print_times("connect", w.times[CONNECT], good, ", ");
	print_times("teardown", w.times[TEARDOWN], good, "}\n");
	return 0;
}
