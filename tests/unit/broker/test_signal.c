/* SPDX-License-Identifier: BSD-3-Clause */
/* Events that a connection's thread tells: none is lost, none too many. */
#include "rig.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "broker_out.h"
#include "broker_signal.h"

#define MANY 2000

struct done {
	struct broker_job job;
	_Atomic bool is;
};

static void
set_done(struct broker_job *job)
{
	((struct done *)(void *)job)->is = true;
}

/* What the thread was asked for before is done. */
static void
wait_done(void)
{
	struct done d = { .job.run = set_done };

	broker_conn_run(c, &d.job);
	for (int i = 0; !d.is && i < PATIENCE_MS; i++)
		usleep(1000);
	assert_true(d.is);
}

/* Events that an eventfd has counted. */
static uint32_t
counted(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	uint64_t one;
	uint32_t n = 0;

	while (poll(&p, 1, 0) == 1 && read(fd, &one, sizeof(one)) == sizeof(one))
		n += (uint32_t)one;
	return n;
}

static void
events_are_told(void **state UNUSED)
{
	struct broker_signal *s = broker_signal_new(c, EFD_SEMAPHORE);
	uint32_t n = 0;
	int fd;

	assert_non_null(s);
	fd = broker_signal_fd(s);
	for (int i = 0; i < MANY; i++) {
		broker_signal_add(s);
		n += counted(fd);
	}
	wait_done();
	assert_int_equal(n + counted(fd), MANY);
	for (int i = 0; i < 50; i++)
		broker_signal_add(s);
	broker_signal_drop(s, 20);
	wait_done();
	assert_int_equal(counted(fd), 30);
	broker_signal_add(s);
	wait_done();
	broker_signal_drop(s, 3); /* one is there */
	wait_done();
	assert_int_equal(counted(fd), 0);
	fd = dup(fd);
	broker_signal_add(s);
	broker_signal_free(s);
	wait_done();
	assert_int_equal(counted(fd), 1);
	close(fd);
}

/* The client filled it up: the thread goes on. */
static void
a_full_eventfd_holds_nobody(void **state UNUSED)
{
	const uint64_t full = UINT64_MAX - 1;
	struct broker_signal *s = broker_signal_new(c, EFD_SEMAPHORE);

	assert_non_null(s);
	assert_int_equal(write(broker_signal_fd(s), &full, sizeof(full)), sizeof(full));
	broker_signal_add(s);
	wait_done();
	broker_signal_free(s);
}

#define SETS 3

struct wakers {
	struct broker_job job;
	int sets[SETS];
	struct broker_signal *made, *again;
	_Atomic bool is;
};

/* The thread asks for it. */
static void
make_wakers(struct broker_job *job)
{
	struct wakers *w = (struct wakers *)(void *)job;

	w->made = broker_signal_waker(c, w->sets, SETS);
	w->again = broker_signal_waker(c, w->sets, SETS);
	w->is = true;
}

/* How many of them are woken; each once. */
static uint32_t
woken(const struct wakers *w)
{
	struct epoll_event e;
	uint32_t n = 0;

	for (int i = 0; i < SETS; i++) {
		if (epoll_wait(w->sets[i], &e, 1, 0) == 1) {
			n++;
			/* It names the member: who wakes in vain is taken out (wakes.h). */
			e.events = EPOLLIN | EPOLLET;
			assert_int_equal(epoll_ctl(w->sets[i], EPOLL_CTL_MOD, e.data.fd, &e), 0);
			(void)epoll_wait(w->sets[i], &e, 1, 0);
		}
		assert_int_equal(epoll_wait(w->sets[i], &e, 1, 0), 0);
	}
	return n;
}

/* By each write, although nobody reads; not any more by one whose connection gave it back. */
static void
a_waker_wakes_all_sets(void **state UNUSED)
{
	struct wakers w = { .job.run = make_wakers };
	const uint64_t one = 1;
	int copy;

	for (int i = 0; i < SETS; i++)
		w.sets[i] = epoll_create1(0);
	broker_conn_run(c, &w.job);
	wait_done();
	assert_true(w.is);
	assert_non_null(w.made);
	assert_ptr_equal(w.made, w.again);
	copy = dup(broker_signal_fd(w.made));
	assert_int_equal(woken(&w), 0);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(write(copy, &one, sizeof(one)), sizeof(one));
		assert_int_equal(woken(&w), SETS);
	}
	broker_signal_free(w.made);
	wait_done();
	assert_int_equal(write(copy, &one, sizeof(one)), sizeof(one));
	assert_int_equal(woken(&w), 0);
	close(copy);
	for (int i = 0; i < SETS; i++)
		close(w.sets[i]);
}

/* Nobody used it: the connection's thread gives it back. One that cannot be made is none. */
static void
a_waker_goes_with_its_connection(void **state UNUSED)
{
	struct wakers w = { .job.run = make_wakers };
	const uint64_t one = 1;
	struct epoll_event e;
	int copy;

	w.sets[0] = epoll_create1(0);
	w.sets[1] = w.sets[2] = -1;
	broker_conn_run(c, &w.job);
	wait_done();
	assert_null(w.made);
	w.sets[1] = epoll_create1(0);
	w.sets[2] = epoll_create1(0);
	broker_conn_run(c, &w.job);
	wait_done();
	assert_non_null(w.made);
	copy = dup(broker_signal_fd(w.made));
	teardown(NULL);
	assert_int_equal(write(copy, &one, sizeof(one)), sizeof(one));
	for (int i = 0; i < SETS; i++) {
		assert_int_equal(epoll_wait(w.sets[i], &e, 1, 0), 0);
		close(w.sets[i]);
	}
	close(copy);
	setup(NULL);
}

/* The limit is lowered while all is there already: the thread goes on. poll() is refused to us. */
static void
no_descriptor_is_allowed(void **state UNUSED)
{
	struct broker_signal *s = broker_signal_new(c, EFD_NONBLOCK);
	struct broker_request *q = NULL;
	struct rlimit was, none;
	char got[4];
	uint64_t n = 0;

	assert_non_null(s);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ 0, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	say("{}\n");
	for (int i = 0; i < PATIENCE_MS && (q = broker_conn_take(c)) == NULL; i++)
		usleep(1000);
	broker_signal_add(s);
	for (int i = 0; i < PATIENCE_MS && read(broker_signal_fd(s), &n, sizeof(n)) < 0; i++)
		usleep(1000);
	assert_true(broker_conn_say(c, "yes", 3, NULL, 0));
	for (int i = 0; i < PATIENCE_MS && recv(mine, got, sizeof(got), MSG_DONTWAIT) < 0; i++)
		usleep(1000);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_non_null(q);
	broker_conn_done(q);
	assert_int_equal(n, 1);
	assert_memory_equal(got, "yes", 3);
	broker_signal_free(s);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(events_are_told, setup, teardown),
		cmocka_unit_test_setup_teardown(a_full_eventfd_holds_nobody, setup, teardown),
		cmocka_unit_test_setup_teardown(a_waker_wakes_all_sets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_waker_goes_with_its_connection, setup, teardown),
		cmocka_unit_test_setup_teardown(no_descriptor_is_allowed, setup, teardown),
	};

	return cmocka_run_group_tests_name("signal", tests, NULL, NULL);
}
