/* SPDX-License-Identifier: BSD-3-Clause */
/* A client that wakes a worker for nothing is not heard; the others are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cmocka.h>

#include "compiler.h"
#include "wakes.h"

#define CLIENTS (WAKES_MOST + 2)

/* An eventfd that nobody reads, in a set of its own, which is in the worker's. */
struct client {
	int fd;
	int own;
};

static struct wakes w;
static struct client clients[CLIENTS];

static void
join(struct client *c)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	c->fd = eventfd(0, EFD_CLOEXEC);
	c->own = epoll_create1(EPOLL_CLOEXEC);
	assert_true(c->fd >= 0 && c->own >= 0);
	assert_int_equal(epoll_ctl(c->own, EPOLL_CTL_ADD, c->fd, &e), 0);
	e.data.fd = c->own;
	assert_int_equal(epoll_ctl(w.set, EPOLL_CTL_ADD, c->own, &e), 0);
}

static void
leave(const struct client *c)
{
	assert_int_equal(epoll_ctl(w.set, EPOLL_CTL_DEL, c->own, NULL), 0);
	close(c->own);
	close(c->fd);
}

static int
setup(void **state UNUSED)
{
	env_wakes_init(&w, epoll_create1(EPOLL_CLOEXEC));
	for (uint32_t i = 0; i < CLIENTS; i++)
		join(&clients[i]);
	return w.set < 0;
}

static int
teardown(void **state UNUSED)
{
	for (uint32_t i = 0; i < CLIENTS; i++)
		leave(&clients[i]);
	return close(w.set);
}

/* It writes, as often. @return how often the worker woke. */
static uint32_t
writes(const struct client *c, uint32_t n)
{
	const uint64_t one = 1;
	uint32_t woke = 0;

	while (n-- != 0) {
		struct epoll_event e;
		const int outer = epoll_create1(EPOLL_CLOEXEC); /* as poll(): it takes nothing */

		assert_int_equal(write(c->fd, &one, sizeof(one)), sizeof(one));
		e = (struct epoll_event){ .events = EPOLLIN };
		assert_int_equal(epoll_ctl(outer, EPOLL_CTL_ADD, w.set, &e), 0);
		if (epoll_wait(outer, &e, 1, 0) == 1) {
			woke++;
			env_wakes_heard(&w);
		}
		close(outer);
	}
	return woke;
}

static void
one_in_vain_is_not_heard_and_others_are(void **state UNUSED)
{
	for (uint32_t round = 0; round < 3; round++) {
		assert_int_equal(writes(&clients[0], 3 * WAKES_VAIN), WAKES_VAIN);
		for (uint32_t i = 0; i < WAKES_VAIN; i++) {
			assert_int_equal(writes(&clients[1], 1), 1);
			assert_int_equal(writes(&clients[0], 1), 0);
		}
		assert_int_equal(writes(&clients[1], 1), 0); /* in vain, all of them */
		assert_int_equal(writes(&clients[2], 1), 1);
		env_wakes_worked(&w);
		env_wakes_heard(&w); /* what was written meanwhile is told, once */
		env_wakes_worked(&w);
	}
}

/* Work in between: each time it was right to wake the worker. */
static void
who_brings_work_is_heard(void **state UNUSED)
{
	for (uint32_t i = 0; i < 4 * WAKES_VAIN; i++) {
		assert_int_equal(writes(&clients[0], 1), 1);
		env_wakes_worked(&w);
	}
}

/* More than there is room for: they are heard, and nobody else is meant in their place. */
static void
many_at_a_time(void **state UNUSED)
{
	for (uint32_t k = 0; k < WAKES_VAIN; k++)
		for (uint32_t i = 0; i < CLIENTS; i++)
			assert_int_equal(writes(&clients[i], 1), 1);
	for (uint32_t i = 0; i < CLIENTS; i++)
		assert_int_equal(writes(&clients[i], 1), i >= WAKES_MOST);
	env_wakes_worked(&w);
	env_wakes_heard(&w);
	env_wakes_worked(&w);
	assert_int_equal(writes(&clients[0], 1), 1);
}

/* One that is out leaves, and a new one has its number. */
static void
a_new_one_is_heard(void **state UNUSED)
{
	writes(&clients[0], WAKES_VAIN + 1);
	leave(&clients[0]);
	env_wakes_worked(&w);
	join(&clients[0]);
	assert_int_equal(writes(&clients[0], 1), 1);
	writes(&clients[0], WAKES_VAIN);
	leave(&clients[0]);
	join(&clients[0]);
	assert_int_equal(writes(&clients[0], 1), 1);
	env_wakes_worked(&w);
	assert_int_equal(writes(&clients[0], 1), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			one_in_vain_is_not_heard_and_others_are, setup, teardown),
		cmocka_unit_test_setup_teardown(who_brings_work_is_heard, setup, teardown),
		cmocka_unit_test_setup_teardown(many_at_a_time, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_one_is_heard, setup, teardown),
	};

	return cmocka_run_group_tests_name("wakes", tests, NULL, NULL);
}
