/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory is converted while a thread waits in a system call, and threads stand still for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/sem.h>
#include <sys/syscall.h>

#include "onto_memfd.h"

static int pipe_fds[2], semaphore, queue;
static volatile sig_atomic_t told;
static atomic_bool waited;

static void
on_signal(int sig)
{
	told = sig;
}

static int
poll_pipe(const struct timespec *limit)
{
	struct pollfd p = { .fd = pipe_fds[0], .events = POLLIN };
	char byte;

	if (ppoll(&p, 1, limit, NULL) != 1)
		return -errno;
	return read(pipe_fds[0], &byte, 1) == 1 ? 0 : -errno;
}

static int
wait_in_ppoll(void)
{
	return poll_pipe(NULL);
}

static int
wait_in_ppoll_for_long(void)
{
	const struct timespec limit = { .tv_sec = 1000 };

	return poll_pipe(&limit);
}

/* It gives EINTR in any case: whose signal was it? */
static int
wait_in_pause(void)
{
	pause();
	return told != 0 ? 0 : -EINTR;
}

static int
wait_in_sigsuspend(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigsuspend(&none);
	return told != 0 ? 0 : -EINTR;
}

static int
wait_in_semop(void)
{
	struct sembuf take = { .sem_op = -1 };

	return semop(semaphore, &take, 1) == 0 ? 0 : -errno;
}

static int
wait_in_msgrcv(void)
{
	struct {
		long type;
		char text[8];
	} m;

	return msgrcv(queue, &m, sizeof(m.text), 0, 0) >= 0 ? 0 : -errno;
}

static void
end_by_pipe(pthread_t t)
{
	(void)t;
	assert_int_equal(1, write(pipe_fds[1], "x", 1));
}

static void
end_by_signal(pthread_t t)
{
	assert_int_equal(0, pthread_kill(t, SIGUSR1));
}

static void
end_by_semop(pthread_t t)
{
	struct sembuf give = { .sem_op = 1 };

	(void)t;
	assert_int_equal(0, semop(semaphore, &give, 1));
}

static void
end_by_message(pthread_t t)
{
	const struct {
		long type;
		char text[8];
	} m = { .type = 1 };

	(void)t;
	assert_int_equal(0, msgsnd(queue, &m, sizeof(m.text), 0));
}

struct wait {
	long call;
	int (*wait)(void);
	void (*end)(pthread_t t);
};

static void *
wait_on(void *arg)
{
	const struct wait *w = arg;
	static int result;

	result = w->wait();
	atomic_store(&waited, true);
	return &result;
}

/* Does a thread that is not the first one sleep in this call now? */
static bool
one_sleeps(long call)
{
	DIR *d = opendir("/proc/self/task");
	char path[64], line[64] = "";
	const struct dirent *e;

	while ((e = readdir(d)) != NULL) {
		FILE *f;

		if (atoi(e->d_name) == 0 || atoi(e->d_name) == getpid())
			continue;
		snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", atoi(e->d_name));
		f = fopen(path, "r");
		if (f == NULL || fgets(line, sizeof(line), f) == NULL)
			line[0] = '\0';
		if (f != NULL)
			fclose(f);
	}
	closedir(d);
	return line[0] != '\0' && line[0] != 'r' && atol(line) == call;
}

/* @return what the other thread's wait gave, during which memory was converted. */
static int
convert_while_it_waits(struct wait *w)
{
	uint8_t *p = map(PAGE);
	void *result;
	pthread_t t;
	int fd;

	told = 0;
	atomic_store(&waited, false);
	assert_int_equal(0, pthread_create(&t, NULL, wait_on, w));
	while (!one_sleeps(w->call))
		sched_yield();
	fd = convert(p, PAGE);
	assert_true(fd >= 0);
	convert_back(p, PAGE);
	close(fd);
	while (!one_sleeps(w->call) && !atomic_load(&waited))
		sched_yield();
	if (!atomic_load(&waited))
		w->end(t);
	pthread_join(t, &result);
	munmap(p, PAGE);
	return *(int *)result;
}

/* One that waits without a limit does not notice; with one it hears of a signal. */
static void
waits_go_on(void **state)
{
	const struct sigaction sa = { .sa_handler = on_signal };
	struct wait waits[] = { { SYS_ppoll, wait_in_ppoll, end_by_pipe },
		{ SYS_pause, wait_in_pause, end_by_signal },
		{ SYS_rt_sigsuspend, wait_in_sigsuspend, end_by_signal },
		{ SYS_semtimedop, wait_in_semop, end_by_semop },
		{ SYS_msgrcv, wait_in_msgrcv, end_by_message } };
	struct wait limited = { SYS_ppoll, wait_in_ppoll_for_long, end_by_pipe };

	(void)state;
	sigaction(SIGUSR1, &sa, NULL);
	semaphore = semget(IPC_PRIVATE, 1, 0600);
	queue = msgget(IPC_PRIVATE, 0600);
	assert_true(semaphore >= 0 && queue >= 0 && pipe(pipe_fds) == 0);
	convert_use(CONVERT_WAY_STOP);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		assert_int_equal(0, convert_while_it_waits(&waits[i]));
	assert_int_equal(-EINTR, convert_while_it_waits(&limited));
	/* An ordinary user's: who sleeps for a limited time is left alone. */
	convert_use(CONVERT_WAY_USER_MODE);
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++)
		assert_int_equal(0, convert_while_it_waits(&waits[i]));
	assert_int_equal(0, convert_while_it_waits(&limited));
	convert_use(CONVERT_WAY_FULL);
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	semctl(semaphore, 0, IPC_RMID);
	msgctl(queue, IPC_RMID, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(waits_go_on),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
