/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a client, or a peer, keeps of its share of a worker beside others that take all they can:
 * one of them, or seven. The yardstick is a neighbour that does as the victim does, or seven of
 * them: one QP, as many WRITEs of 64 bytes as it gets.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>

#include "bench_fair_rig.h"
#include "bench_stat.h"

enum { MAX_REPEATS = 1001 };

#define SAMPLE_NS (4 * TIME_NS_PER_MS)

/* What it does as the victim does: the yardstick. One, or several. */
#define NEIGHBOUR(name_, n, world_)                                                           \
	{                                                                                     \
		.name = name_, .act = ACT_POST, .opcode = WR_RDMA_WRITE, .sges = 1, .qps = 1, \
		.depth = VICTIM_DEPTH, .len = VICTIM_LEN, .others = n, .world = world_        \
	}

static const struct fair_case yardsticks[WORLDS][2] = {
	{ NEIGHBOUR("neighbour", 0, WORLD_CLIENTS),
		NEIGHBOUR("neighbours", CROWD_APPS, WORLD_CLIENTS) },
	{ NEIGHBOUR("neighbour", 0, WORLD_PEERS),
		NEIGHBOUR("neighbours", CROWD_APPS, WORLD_PEERS) },
	{ NEIGHBOUR("neighbour", 0, WORLD_USERS), NEIGHBOUR("neighbour", 0, WORLD_USERS) },
};

/* clang-format off */
#define ROW(name_, act_, opcode_, sges_, qps_, depth_, len_, others_, again_, world_) \
	{ .name = name_, .act = act_, .opcode = opcode_, .sges = sges_, .qps = qps_, .depth = depth_, \
		.len = len_, .others = others_, .again = again_, .world = world_ }
static const struct fair_case cases[] = {
	ROW("alone",       ACT_NOTHING,   0,                       0, 0, 0, 0, 0, 0, WORLD_CLIENTS),
	ROW("neighbour",   ACT_POST,      WR_RDMA_WRITE,           1, 1, VICTIM_DEPTH, VICTIM_LEN, 0, 0, WORLD_CLIENTS),
	ROW("write_64",    ACT_POST,      WR_RDMA_WRITE,           1, OTHER_QPS, 32, 64, 0, 0, WORLD_CLIENTS),
	ROW("write_lists", ACT_POST,      WR_RDMA_WRITE,           SGES, OTHER_QPS, 32, 64, 0, 0, WORLD_CLIENTS),
	ROW("write_1m",    ACT_POST,      WR_RDMA_WRITE,           1, 16, 4, 1 << 20, 0, 0, WORLD_CLIENTS),
	ROW("read_8",      ACT_POST,      WR_RDMA_READ,            1, OTHER_QPS, 32, 8, 0, 0, WORLD_CLIENTS),
	ROW("read_1m",     ACT_POST,      WR_RDMA_READ,            1, OTHER_QPS, 4, 1 << 20, 0, 0, WORLD_CLIENTS),
	ROW("atomic",      ACT_POST,      WR_ATOMIC_FETCH_AND_ADD, 1, OTHER_QPS, 32, 8, 0, 0, WORLD_CLIENTS),
	ROW("rnr_storm",   ACT_POST,      WR_SEND,                 1, OTHER_QPS, 32, 64, 0, 0, WORLD_CLIENTS),
	ROW("flush",       ACT_FLUSH,     WR_SEND,                 1, DEEP_QPS, DEEP, 64, 0, 0, WORLD_CLIENTS),
	ROW("malformed",   ACT_MALFORMED, WR_SEND,                 1, OTHER_QPS, 32, 64, 0, 0, WORLD_CLIENTS),
	ROW("bells",       ACT_BELLS,     0,                       0, OTHER_QPS, 0, 0, 0, 0, WORLD_CLIENTS),
	ROW("garbage",     ACT_GARBAGE,   0,                       0, 0, 0, 0, 0, 0, WORLD_CLIENTS),
	ROW("7_neighbours", ACT_POST,     WR_RDMA_WRITE,           1, 1, VICTIM_DEPTH, VICTIM_LEN, CROWD_APPS, 0, WORLD_CLIENTS),
	ROW("7_write_64",  ACT_POST,      WR_RDMA_WRITE,           1, CROWD_QPS, 32, 64, CROWD_APPS, 0, WORLD_CLIENTS),
	ROW("7_write_1m",  ACT_POST,      WR_RDMA_WRITE,           1, 4, 4, 1 << 20, CROWD_APPS, 0, WORLD_CLIENTS),
	ROW("7_read_1m",   ACT_POST,      WR_RDMA_READ,            1, CROWD_QPS, 4, 1 << 20, CROWD_APPS, 0, WORLD_CLIENTS),
	ROW("7_rnr_storm", ACT_POST,      WR_SEND,                 1, CROWD_QPS, 32, 64, CROWD_APPS, 0, WORLD_CLIENTS),
	ROW("user_7_write_64", ACT_POST,  WR_RDMA_WRITE,           1, CROWD_QPS, 32, 64, CROWD_APPS, 0, WORLD_USERS),
	ROW("user_7_write_1m", ACT_POST,  WR_RDMA_WRITE,           1, 4, 4, 1 << 20, CROWD_APPS, 0, WORLD_USERS),
	ROW("user_7_read_1m", ACT_POST,   WR_RDMA_READ,            1, CROWD_QPS, 4, 1 << 20, CROWD_APPS, 0, WORLD_USERS),
	ROW("peer_alone",     ACT_NOTHING, 0,                       0, 0, 0, 0, 0, 0, WORLD_PEERS),
	ROW("peer_neighbour", ACT_POST,    WR_RDMA_WRITE,           1, 1, VICTIM_DEPTH, VICTIM_LEN, 0, 0, WORLD_PEERS),
	ROW("peer_write_64",  ACT_POST,    WR_RDMA_WRITE,           1, OTHER_QPS, 32, 64, 0, 0, WORLD_PEERS),
	ROW("peer_write_1m",  ACT_POST,    WR_RDMA_WRITE,           1, 16, 4, 1 << 20, 0, 0, WORLD_PEERS),
	ROW("peer_read_8",    ACT_POST,    WR_RDMA_READ,            1, OTHER_QPS, 16, 8, 0, 0, WORLD_PEERS),
	ROW("peer_read_1m",   ACT_POST,    WR_RDMA_READ,            1, OTHER_QPS, 4, 1 << 20, 0, 0, WORLD_PEERS),
	ROW("peer_atomic",    ACT_POST,    WR_ATOMIC_FETCH_AND_ADD, 1, OTHER_QPS, 16, 8, 0, 0, WORLD_PEERS),
	ROW("peer_rnr_storm", ACT_POST,    WR_SEND,                 1, OTHER_QPS, 32, 64, 0, 0, WORLD_PEERS),
	ROW("peer_write_twice", ACT_POST,  WR_RDMA_WRITE,           1, OTHER_QPS, 32, 64, 0, 7, WORLD_PEERS),
	ROW("peer_read_twice", ACT_POST,   WR_RDMA_READ,            1, OTHER_QPS, 4, 65536, 0, 7, WORLD_PEERS),
	ROW("peer_7_neighbours", ACT_POST, WR_RDMA_WRITE,           1, 1, VICTIM_DEPTH, VICTIM_LEN, CROWD_APPS, 0, WORLD_PEERS),
	ROW("peer_7_write_64", ACT_POST,   WR_RDMA_WRITE,           1, CROWD_QPS, 32, 64, CROWD_APPS, 0, WORLD_PEERS),
	ROW("peer_7_read_1m", ACT_POST,    WR_RDMA_READ,            1, CROWD_QPS, 4, 1 << 20, CROWD_APPS, 0, WORLD_PEERS),
};
/* clang-format on */

/* Of a victim that waits for each of its WRITEs: the first row is the yardstick. */
#define PING(name_, ...)                                                         \
	{                                                                        \
		.name = name_, .world = WORLD_CLIENTS, .ping = true, __VA_ARGS__ \
	}
#define BULK(opcode_, n) \
	.act = ACT_POST, .opcode = opcode_, .sges = 1, .qps = n, .depth = 4, .len = 1 << 20
#define RARELY .pause = 200

static const struct fair_case pings[] = {
	PING("ping", 0),
	PING("ping_write_1m", BULK(WR_RDMA_WRITE, 1)),
	PING("ping_16_write_1m", BULK(WR_RDMA_WRITE, 16)),
	PING("ping_read_1m", BULK(WR_RDMA_READ, 1)),
	PING("rare_ping", RARELY),
	PING("rare_ping_write_1m", BULK(WR_RDMA_WRITE, 1), RARELY),
	PING("rare_ping_read_1m", BULK(WR_RDMA_READ, 1), RARELY),
};

struct figures {
	double rate; /* medians */
	double p99;
	double turn;
	double kept;  /* rate, to that beside the neighbour in the sample before */
	double later; /* p99, likewise */
};

static const struct fair_case *
yardstick_of(const struct fair_case *c)
{
	return c->ping ? &pings[0] : &yardsticks[c->world][c->others > 1];
}

static struct figures
measure(const struct fair_case *c, uint32_t repeats, ns_t ns)
{
	static double rate[MAX_REPEATS], p99[MAX_REPEATS], turn[MAX_REPEATS];
	static double kept[MAX_REPEATS], later[MAX_REPEATS];

	for (uint32_t i = 0; i < repeats; i++) {
		const struct fair_sample good = fair_run(yardstick_of(c), ns);
		const struct fair_sample s = fair_run(c, ns);

		rate[i] = s.rate;
		p99[i] = s.p99;
		turn[i] = s.turn;
		kept[i] = s.rate / good.rate;
		later[i] = s.p99 != 0 ? s.p99 / good.p99 : 0;
	}
	return (struct figures){ median(rate, repeats), median(p99, repeats), median(turn, repeats),
		median(kept, repeats), median(later, repeats) };
}

static void
print_row(const struct fair_case *c, const struct figures *f)
{
	printf("%-18s %5u %8u %10.0f %9.2f %9.1f %9.1f %7.2f\n", c->name, c->qps, c->len,
		f->rate / 1e3, f->kept, f->p99 / 1e3, f->turn / 1e3, f->later);
	fflush(stdout);
}

static void
print_json(FILE *out, const struct fair_case *c, const struct figures *f, bool first)
{
	fprintf(out,
		"%s\n    {\"case\": \"%s\", \"qps\": %u, \"bytes\": %u, \"rate\": %.6g, "
		"\"kept\": %.4g, \"p99_ns\": %.6g, \"turn_ns\": %.6g, \"later\": %.4g}",
		first ? "" : ",", c->name, c->qps, c->len, f->rate, f->kept, f->p99, f->turn,
		f->later);
}

static const struct fair_case *
case_of(size_t i)
{
	return i < ARRAY_LEN(cases) ? &cases[i] : &pings[i - ARRAY_LEN(cases)];
}

static const char *
name_of(size_t i)
{
	return i < ARRAY_LEN(cases) + ARRAY_LEN(pings) ? case_of(i)->name : NULL;
}

static void
run(uint32_t repeats, ns_t ns, FILE *json, int argc, char **argv, int at)
{
	int world = WORLDS;
	bool first = true;

	printf("One QP with %d WRITEs of %d bytes under way, of a client beside one other client\n"
	       "or seven (7_), seven of one other user (user_7_), or of a peer beside others (peer_).\n"
	       "ping: it has one WRITE of %d bytes under way, rare_: after a pause of 200 turns;\n"
	       "its yardstick is the row ping. Time is the worker's. kept, later: rate and 99th percentile, to those beside as many\n"
	       "users or peers that do the same; median of %u samples of each in turn, %.1f ms long.\n\n",
		VICTIM_DEPTH, VICTIM_LEN, PING_LEN, repeats, (double)ns / 1e6);
	printf("%-18s %5s %8s %10s %9s %9s %9s %7s\n", "other", "QPs", "bytes", "1000/s", "kept",
		"p99 us", "turn us", "later");
	for (size_t i = 0; i < ARRAY_LEN(cases) + ARRAY_LEN(pings); i++) {
		const struct fair_case *c = case_of(i);
		struct figures f;

		if (!is_chosen(c->name, argc, argv, at))
			continue;
		if (c->world != world && world != WORLDS)
			fair_tear_down();
		if (c->world != world)
			fair_set_up((enum fair_world_kind)c->world);
		world = c->world;
		f = measure(c, repeats, ns);
		print_row(c, &f);
		if (json != NULL)
			print_json(json, c, &f, first);
		first = false;
	}
	if (world != WORLDS)
		fair_tear_down();
}

int
main(int argc, char **argv)
{
	uint32_t repeats = 15;
	ns_t ns = SAMPLE_NS;
	FILE *json = NULL;
	int at = 1;

	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--json") == 0) {
			json = fopen(argv[at + 1], "w");
			if (json == NULL)
				die("cannot write the JSON file");
		} else if (strcmp(argv[at], "--repeats") == 0) {
			repeats = (uint32_t)strtoul(argv[at + 1], NULL, 10);
		} else if (strcmp(argv[at], "--ms") == 0) {
			ns = strtoul(argv[at + 1], NULL, 10) * TIME_NS_PER_MS;
		} else {
			die("unknown option");
		}
	}
	if (repeats == 0 || repeats > MAX_REPEATS || ns == 0 || ns > TIME_NS_PER_S)
		die("--repeats is 1 to 1001, --ms 1 to 1000");
	check_rows(argc, argv, at, name_of);
	fair_start();
	if (json != NULL)
		fprintf(json,
			"{\n  \"unit\": \"requests a second of the worker's time, median\",\n"
			"  \"repeats\": %u,\n  \"cases\": [",
			repeats);
	run(repeats, ns, json, argc, argv, at);
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	return 0;
}
