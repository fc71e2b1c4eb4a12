/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a turn of the control lcore lasts, on a clock that each look at it moves on. */
#include "fake.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control_state.h"
#include "mem_guard.h"

enum {
	APPS = 40,
	LINES = 16,     /* of each */
	PATIENCE_S = 20 /* for threads of connections, which run in real time */
};

#define STEP    (100 * TIME_NS_PER_US)
#define LONGEST (4 * TIME_NS_PER_MS) /* 2 ms, one thing of each kind, and what looks at the clock */

static struct sockaddr_un where = { .sun_family = AF_UNIX };

static int
setup(void **state)
{
	char conf[512];
	int rc = fake_eal(state);

	snprintf(where.sun_path, sizeof(where.sun_path), "/tmp/rlturns%d", (int)getpid());
	snprintf(conf, sizeof(conf),
		"{\"version\":1,\"lcores\":{\"workers\":[1,2]},\"control\":{\"socket\":\"%s\"},"
		"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}]}",
		where.sun_path);
	fake_start_env(conf, 0, false);
	return rc;
}

static int
teardown(void **state)
{
	fake_stop();
	return fake_eal_end(state);
}

/** So many times this line, from an application. */
static void
say(int fd, const char *line, uint32_t times)
{
	for (uint32_t i = 0; i < times; i++)
		assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
}

static const char asks[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"client_ports\"}\n";

/** An application, with so many lines behind what opens it. */
static int
storms(uint32_t lines)
{
	static const char opens[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"client_open\","
				    "\"params\":{\"abi\":1}}\n";
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	say(fd, opens, 1);
	say(fd, asks, lines);
	return fd;
}

/** @return how long it was. */
static ns_t
turn(void)
{
	const ns_t began = fake.now;

	if (control_poll(fake.c, began) == 0)
		usleep(20);
	fake.c->env.w.pump(fake.c->env.w.pump_ctx); /* the workers */
	return fake.now - began;
}

/* @return how long the longest turn was until there are so many applications. */
static ns_t
turns_until(uint32_t apps)
{
	const time_t end = time(NULL) + PATIENCE_S;
	ns_t worst = 0;

	while (fake.c->apps.n != apps) {
		const ns_t took = turn();

		assert_true(time(NULL) < end);
		if (took > worst)
			worst = took;
	}
	return worst;
}

/** Turns until the application has its answer. */
static void
hears(int fd)
{
	const time_t end = time(NULL) + PATIENCE_S;
	char answer[4096];

	while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) <= 0) {
		assert_true(time(NULL) < end);
		turn();
	}
}

/*
 * Requests, ends of connections and ends of applications had 2 ms each: a storm of applications
 * that come and go made turns of all three.
 */
static void
a_storm_of_opens(void **state UNUSED)
{
	int fd[APPS];

	fake.step = STEP;
	for (uint32_t i = 0; i < APPS; i++)
		fd[i] = storms(LINES);
	assert_in_range(turns_until(APPS), 1, LONGEST);
	for (uint32_t i = 0; i < APPS; i++)
		close(fd[i]);
	assert_in_range(turns_until(0), 1, LONGEST);
}

/*
 * Frames for the control lcore come first, many of many workers: whoever floods a port with them
 * must not have each turn answer one request alone.
 */
static void
requests_of_a_long_turn(void **state UNUSED)
{
	enum { OPEN = 2 };
	static const char refused[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"none\"}\n";
	const time_t end = time(NULL) + PATIENCE_S;
	struct rpc_client *cl;
	int fd[OPEN];

	fake.step = TIME_NS_PER_US;
	for (uint32_t i = 0; i < OPEN; i++) {
		fd[i] = storms(0);
		hears(fd[i]);
		say(fd[i], refused, 1); /* the first one waits for the application's memory */
		hears(fd[i]);
	}
	for (uint32_t i = 0; i < OPEN; i++)
		say(fd[i], refused, 1); /* at once, by the control lcore alone */
	TAILQ_FOREACH (cl, &fake.c->server.clients, all)
		while (!broker_conn_has(cl->conn)) {
			assert_true(time(NULL) < end);
			usleep(20);
		}
	assert_int_equal(control_poll(fake.c, fake.now - LONGEST), OPEN);
	for (uint32_t i = 0; i < OPEN; i++)
		close(fd[i]);
	turns_until(0);
}

/** Turns until a whole line has come. @return it, parsed; NULL: the connection was closed. */
static json_t *
answer(int fd)
{
	const time_t end = time(NULL) + PATIENCE_S;
	char line[8192];
	size_t len = 0;

	while (len == 0 || line[len - 1] != '\n') {
		const ssize_t n = recv(fd, line + len, sizeof(line) - len, MSG_DONTWAIT);

		if (n == 0)
			return NULL;
		len += n > 0 ? (size_t)n : 0;
		assert_true(time(NULL) < end);
		turn();
	}
	return json_loadb(line, len, 0, NULL);
}

/* Its rings are sealed by a thread: that may be late, too. */
static void
is_late(int fd)
{
	const time_t end = time(NULL) + PATIENCE_S;
	json_t *v, *e;
	bool late;

	fake.step = TIME_NS_PER_US;
	hears(fd);
	fake.deaf = true;
	fake.step = STEP;
	do {
		assert_true(time(NULL) < end);
		say(fd, asks, 1);
		v = answer(fd);
		assert_non_null(v);
		e = json_object_get(v, "error");
		assert_int_equal(
			json_integer_value(json_object_get(e, "code")), REFUSED(ETIMEDOUT));
		late = strstr(json_string_value(json_object_get(e, "message")),
			       "worker 0 (lcore 1) does not answer") != NULL;
		json_decref(v);
	} while (!late);
}

/* Its worker answers again: the application has what it asks for, and goes. */
static void
is_served(int fd)
{
	json_t *v;

	fake.deaf = false;
	fake.step = TIME_NS_PER_US;
	say(fd, asks, 1);
	v = answer(fd);
	assert_true(json_is_array(json_object_get(v, "result")));
	json_decref(v);
	close(fd);
	turns_until(0);
}

/*
 * Workers hear of an application with its first request. One that is late, as on a machine that
 * was stopped for a while, is no fault of the application's: it is told so, and may ask again.
 */
static void
a_worker_that_answers_late(void **state UNUSED)
{
	const int fd = storms(0);
	json_t *v;

	is_late(fd);
	/* Whoever asks again waits for the same answer: there is a place for few questions. */
	assert_int_equal(fake.c->env.asks.busy, 1);
	for (uint32_t i = 0; i < 8; i++) {
		say(fd, asks, 1);
		v = answer(fd);
		assert_int_equal(
			json_integer_value(json_object_get(json_object_get(v, "error"), "code")),
			REFUSED(ETIMEDOUT));
		json_decref(v);
	}
	assert_int_equal(fake.c->env.asks.busy, 1);
	is_served(fd);
}

/* The same of one whose queue is full because it is late: it will come to it. */
static void
a_worker_whose_queue_is_full(void **state UNUSED)
{
	static struct qp_client other;
	const struct mbox_msg m = { .type = MBOX_CLIENT_SET, .client.client = &other };
	const int fd = storms(0);

	while (mbox_send_down(&fake.mbox[0], &m) == 0)
		;
	fake.deaf = true;
	is_late(fd);
	assert_int_equal(fake.c->env.asks.busy, 0);
	is_served(fd);
}

/** Somebody's page is gone: it is looked for whose. */
static void
a_page_goes(uint8_t *page, size_t bytes)
{
	struct mem_area a = { .base = page, .len = bytes, .page_size = bytes, .fd = -1 };

	assert_int_equal(mem_guard_add(&a), 0);
	assert_true(mem_guard_fault(page));
	mem_guard_remove(&a);
}

/* Memory goes away while an application ends: its regions are freed before its table of them is. */
static void
a_page_goes_at_an_end(void **state UNUSED)
{
	const size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
	const time_t end = time(NULL) + PATIENCE_S;
	uint8_t *freed = mmap(NULL, 2 * bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct app_table *mrs;
	int fd;

	fake.step = TIME_NS_PER_US;
	fd = storms(1);
	hears(fd);
	assert_int_equal(fake.c->apps.n, 1);
	mrs = &TAILQ_FIRST(&fake.c->apps.all)->mrs;
	close(fd);
	while (TAILQ_FIRST(&fake.c->apps.all)->ending.step != APP_OBJECTS) {
		turn();
		assert_true(time(NULL) < end && fake.c->apps.n == 1);
	}
	mrs->v = calloc(1, sizeof(mrs->v[0]));
	mrs->v[0] = freed;
	mrs->room = mrs->n = 1;
	a_page_goes(freed + bytes, bytes);
	turns_until(0);
	munmap(freed, 2 * bytes);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_of_opens),
		cmocka_unit_test(requests_of_a_long_turn),
		cmocka_unit_test(a_worker_that_answers_late),
		cmocka_unit_test(a_worker_whose_queue_is_full),
		cmocka_unit_test(a_page_goes_at_an_end),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
