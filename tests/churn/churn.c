/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rocelane-churn [-t] [-s SEED] [ROUNDS]: make two QPs, move data between them, end them in one of
 * several ways, ROUNDS times (default 3000), and see that memory, packet buffers and objects are
 * at the end what they were after the first rounds.
 *
 * Everything goes through the control requests that a user has. The dataplane has two workers and
 * two crossed ports; each QP is on any worker, so packets pass the hand-off rings. Without -t one
 * thread turns all on a stepped clock and a seed names the run; with it the workers have threads of
 * their own, and QPs are destroyed while they receive. Time waits then for whoever is kept from a
 * CPU: see shared_clock().
 */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_eth_ring.h>
#include <rte_launch.h>
#include <rte_ring.h>

#include "churn.h"
#include "log.h"

#define RING_FRAMES 4096
#define IDLE_ROUNDS 3
#define MAX_TURNS   1000000
#define SAMPLES     10
#define THREADS     (1 + CHURN_WORKERS)
#define AHEAD_NS    (8 * TIME_NS_PER_MS)
#define GONE        UINT64_MAX

static struct churn churn = { .random = 1 };
static _Atomic ns_t stepped_now = TIME_NS_PER_MS;

void
churn_die(const struct churn *c, const char *format, ...)
{
	va_list args;

	fprintf(stderr, "churn: round %llu: ", (unsigned long long)c->round);
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

uint32_t
churn_random(struct churn *c, uint32_t n)
{
	c->random = c->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(c->random >> 33) % n;
}

/* ---- time ------------------------------------------------------------------------------------ */

static ns_t
stepped_clock(void)
{
	return stepped_now;
}

static ns_t
real_clock(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (ns_t)ts.tv_sec * TIME_NS_PER_S + (ns_t)ts.tv_nsec;
}

static struct {
	pthread_mutex_t lock;
	ns_t now;
	ns_t real;          /* when `now` was moved */
	ns_t seen[THREADS]; /* by lcore: `now` as it last saw it; GONE: it does not turn */
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER, .now = TIME_NS_PER_MS, .seen = { 0, GONE, GONE } };

/**
 * Real time, but never more than AHEAD_NS beyond the last look of any thread. So a timer that
 * expires means a number of turns of every thread: no peer is given up, and no worker is taken
 * for silent, because the machine was busy with something else.
 */
static ns_t
shared_clock(void)
{
	ns_t real = real_clock(), now, most = UINT64_MAX;

	pthread_mutex_lock(&shared.lock);
	for (uint32_t i = 0; i < THREADS; i++)
		most = shared.seen[i] < most ? shared.seen[i] : most;
	most += AHEAD_NS;
	now = shared.now + (shared.real != 0 && real > shared.real ? real - shared.real : 0);
	now = now < most ? now : most;
	shared.now = now > shared.now ? now : shared.now;
	shared.real = real > shared.real ? real : shared.real;
	now = shared.now;
	shared.seen[rte_lcore_id()] = now;
	pthread_mutex_unlock(&shared.lock);
	return now;
}

static void
shared_clock_for(uint32_t lcore, bool turns)
{
	pthread_mutex_lock(&shared.lock);
	shared.seen[lcore] = turns ? shared.now : GONE;
	pthread_mutex_unlock(&shared.lock);
}

static void
stepped_pump(void *ctx UNUSED)
{
	for (uint32_t i = 0; i < CHURN_WORKERS; i++)
		worker_poll(churn.dp.workers[i], stepped_now);
}

static void
real_pump(void *ctx UNUSED)
{
	sched_yield();
}

static void
settle(struct churn *c)
{
	uint32_t idle = 0;

	for (uint32_t turn = 0; idle < IDLE_ROUNDS; turn++) {
		uint32_t work = 0;

		for (uint32_t i = 0; i < CHURN_WORKERS; i++)
			work += worker_poll(c->dp.workers[i], stepped_now);
		work += control_poll(c->dp.control, stepped_now);
		idle = work == 0 ? idle + 1 : 0;
		if (turn == MAX_TURNS)
			churn_die(c, "never idle");
	}
}

void
churn_run(struct churn *c, ns_t ns)
{
	ns_t end;

	if (!c->threads) {
		stepped_now += ns;
		settle(c);
		return;
	}
	end = shared_clock() + ns;
	do {
		control_poll(c->dp.control, shared_clock());
		sched_yield();
	} while (shared_clock() < end);
}

void
churn_turn(struct churn *c, uint32_t n)
{
	if (c->threads) {
		churn_run(c, n * TIME_NS_PER_US);
		return;
	}
	for (uint32_t i = 0; i < n; i++)
		stepped_pump(NULL);
}

/* ---- control requests ------------------------------------------------------------------------ */

static json_t *
call(struct churn *c, const char *method, const char *format, va_list args)
{
	static char params[8192], text[8448];
	json_t *reply, *result;
	char *line;

	vsnprintf(params, sizeof(params), format, args);
	snprintf(text, sizeof(text),
		"{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"%s\", \"params\": {%s}}", method,
		params);
	line = control_rpc(c->dp.control, text, strlen(text));
	reply = line != NULL ? json_loads(line, 0, NULL) : NULL;
	result = json_object_get(reply, "result");
	if (result == NULL)
		churn_die(c, "%s\nis answered %s", text, line != NULL ? line : "with nothing");
	json_incref(result);
	json_decref(reply);
	free(line);
	return result;
}

json_t *
churn_call(struct churn *c, const char *method, const char *format, ...)
{
	va_list args;
	json_t *result;

	va_start(args, format);
	result = call(c, method, format, args);
	va_end(args);
	return result;
}

void
churn_do(struct churn *c, const char *method, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	json_decref(call(c, method, format, args));
	va_end(args);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

/* Two ports, what one sends the other receives; a transmit queue for each worker. */
static int
ports_create(void)
{
	struct rte_ring *rings[CHURN_PORTS];

	for (uint32_t i = 0; i < CHURN_PORTS; i++) {
		char name[32];

		snprintf(name, sizeof(name), "rings%u", i);
		rings[i] = rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, 0);
		if (rings[i] == NULL)
			return -ENOMEM;
	}
	for (uint32_t i = 0; i < CHURN_PORTS; i++) {
		struct rte_ring *tx[CHURN_WORKERS] = { rings[1 - i], rings[1 - i] };
		char name[32];

		snprintf(name, sizeof(name), "churn%u", i);
		if (rte_eth_from_rings(name, &rings[i], 1, tx, CHURN_WORKERS, 0) < 0)
			return -ENOMEM;
	}
	return 0;
}

static const char config_text[] =
	"{\"version\": 1, \"lcores\": {\"control\": 0, \"workers\": [1, 2]},"
	" \"knobs\": {\"cc.cnp\": \"off\"}, \"pds\": [\"pd0\"], \"ports\": ["
	"{\"name\": \"p0\", \"device\": \"net_ring_churn0\", \"mac\": \"02:00:00:00:00:11\","
	" \"ipv4\": \"192.0.2.1\", \"prefix\": 24, \"mtu\": 4200},"
	"{\"name\": \"p1\", \"device\": \"net_ring_churn1\", \"mac\": \"02:00:00:00:00:12\","
	" \"ipv4\": \"192.0.2.2\", \"prefix\": 24, \"mtu\": 4200}]}";

static int
eal_start(bool threads)
{
	char *stepped[] = { "churn", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m",
		"256", "--log-level=error", "--lcores=0@(0-1)", NULL };
	char *real[] = { "churn", "--no-huge", "--no-pci", "--no-shconf", "--no-telemetry", "-m",
		"256", "--log-level=error", "--lcores=(0-2)@(0-1)", NULL };

	return rte_eal_init(9, threads ? real : stepped) < 0 ? -EIO : 0;
}

static void
idle_yield(void *ctx UNUSED, uint32_t turns UNUSED)
{
	sched_yield(); /* there may be fewer CPUs than threads */
}

static int
worker_main(void *arg)
{
	worker_run(arg, &churn.dp.workers_stop, idle_yield, NULL);
	shared_clock_for(rte_lcore_id(), false);
	return 0;
}

static int
start(struct churn *c, const struct conf *conf)
{
	const struct dataplane_hooks hooks = { .clock = c->threads ? shared_clock : stepped_clock,
		.pump = c->threads ? real_pump : stepped_pump,
		.no_socket = true };
	int rc = ports_create();

	if (rc == 0)
		rc = dataplane_create(&c->dp, conf, &hooks);
	for (uint32_t i = 0; rc == 0 && c->threads && i < CHURN_WORKERS; i++) {
		shared_clock_for(i + 1, true);
		rc = rte_eal_remote_launch(worker_main, c->dp.workers[i], i + 1);
	}
	if (rc == 0)
		rc = dataplane_start(&c->dp);
	return rc;
}

static void
stop(struct churn *c)
{
	dataplane_stop_control(&c->dp);
	atomic_store(&c->dp.workers_stop, true);
	rte_eal_mp_wait_lcore();
	dataplane_destroy(&c->dp);
}

/* ---- the run --------------------------------------------------------------------------------- */

/* The first tenth fills caches and pools; from then on nothing may grow. @return faults. */
static uint32_t
rounds(struct churn *c, uint64_t n)
{
	struct gauge first = { 0 }, now;
	uint64_t each = n / SAMPLES > 0 ? n / SAMPLES : 1;
	uint32_t faults = 0;

	churn_objects(c);
	for (c->round = 1; c->round <= n; c->round++) {
		churn_round(c);
		if (c->round % each != 0)
			continue;
		gauge_read(c, &now);
		gauge_print(c, &now);
		if (c->round == each)
			first = now;
		else
			faults += gauge_compare(&first, &now);
	}
	return faults;
}

int
main(int argc, char **argv)
{
	struct conf_errors err;
	struct conf *conf = NULL;
	uint64_t n = 3000;
	uint32_t faults = 0;
	ns_t began;
	int opt, rc;

	while ((opt = getopt(argc, argv, "ts:")) != -1) {
		if (opt == 't') {
			churn.threads = true;
		} else if (opt == 's') {
			churn.random = strtoull(optarg, NULL, 0);
		} else {
			fputs("usage: rocelane-churn [-t] [-s SEED] [ROUNDS]\n", stderr);
			return 2;
		}
	}
	if (optind < argc)
		n = strtoull(argv[optind], NULL, 0);
	setvbuf(stdout, NULL, _IOLBF, 0);
	conf_errors_init(&err);
	rc = conf_load_text(config_text, sizeof(config_text) - 1, &conf, &err);
	conf_errors_free(&err);
	if (rc == 0)
		rc = eal_start(churn.threads);
	if (rc == 0)
		rc = start(&churn, conf);
	if (rc != 0) {
		fprintf(stderr, "churn: cannot start: %s\n", strerror(-rc));
		return 1;
	}
	began = real_clock();
	faults = rounds(&churn, n);
	churn_print_rounds(&churn);
	printf("%llu rounds, %llu QPs made and destroyed in %.1f s\n", (unsigned long long)n,
		(unsigned long long)churn.qps, (double)(real_clock() - began) / 1e9);
	stop(&churn);
	conf_free(conf);
	rte_eal_cleanup();
	return faults == 0 ? 0 : 1;
}
