/* SPDX-License-Identifier: BSD-3-Clause */
/* How long a turn of the control lcore lasts, on a clock that each look at it moves on. */
#include "fake.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "control_state.h"

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

/** An application, with its lines behind what opens it. */
static int
storms(void)
{
	static const char opens[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"client_open\","
				    "\"params\":{\"abi\":1}}\n",
			  line[] = "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"client_ports\"}\n";
	const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(connect(fd, (struct sockaddr *)&where, sizeof(where)), 0);
	assert_int_equal(send(fd, opens, strlen(opens), 0), strlen(opens));
	for (uint32_t i = 0; i < LINES; i++)
		assert_int_equal(send(fd, line, strlen(line), 0), strlen(line));
	return fd;
}

/* @return how long the longest turn was until there are so many applications. */
static ns_t
turns_until(uint32_t apps)
{
	const time_t end = time(NULL) + PATIENCE_S;
	ns_t worst = 0;

	while (fake.c->apps.n != apps) {
		const ns_t began = fake.now;

		assert_true(time(NULL) < end);
		if (control_poll(fake.c, began) == 0)
			usleep(20);
		if (fake.now - began > worst)
			worst = fake.now - began;
		fake.c->env.w.pump(fake.c->env.w.pump_ctx); /* the workers */
	}
	return worst;
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
		fd[i] = storms();
	assert_in_range(turns_until(APPS), 1, LONGEST);
	for (uint32_t i = 0; i < APPS; i++)
		close(fd[i]);
	assert_in_range(turns_until(0), 1, LONGEST);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_storm_of_opens),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
