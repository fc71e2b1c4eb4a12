/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory is converted and converted back while threads write to it: no write is lost.
 *
 *     convert-writers [--stop | --user] [BYTES ROUNDS]
 *
 * 64 MiB and 1,000 by hand; short in the suite. --stop: as where there is no userfaultfd. --user:
 * as where it does not hold system calls. A long run tells from time to time how far it is. A
 * signal (SIGINT, SIGTERM) ends it after the round that it is in, with the result of the rounds
 * until then; its exit status is then 128 + the signal's number, for they are not all.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "convert.h"

#define PAGE    4096u
#define WRITERS 2
#define TELL_NS UINT64_C(30000000000)

static uint8_t *area;
static size_t bytes;
static atomic_bool stop;
static atomic_bool halt; /* writers: meet main() at `halted`, twice */
static pthread_barrier_t halted;
static volatile sig_atomic_t told; /* this signal came */
static uint64_t done[WRITERS];     /* turns over all pages */
static uint64_t calls, efaults;
static uint64_t stall_ns; /* the longest turn of one writer: what it waited is in it */

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

/* One counter in each page for each writer: plain increments, so that a lost write is seen. */
static void *
writer(void *arg)
{
	const size_t me = (size_t)(uintptr_t)arg;

	while (!atomic_load(&stop)) {
		const uint64_t before = now_ns();

		for (size_t at = 0; at < bytes; at += PAGE)
			++*(volatile uint64_t *)(void *)(area + at + me * 8);
		done[me]++;
		if (me == 0 && now_ns() - before > stall_ns)
			stall_ns = now_ns() - before;
		if (atomic_load(&halt)) {
			pthread_barrier_wait(&halted);
			pthread_barrier_wait(&halted);
		}
	}
	return NULL;
}

/* The kernel writes: pread() into each page. */
static void *
reader(void *arg)
{
	const int fd = open("/dev/zero", O_RDONLY);

	(void)arg;
	while (!atomic_load(&stop)) {
		for (size_t at = 0; at < bytes && !atomic_load(&stop); at += PAGE) {
			calls++;
			if (read(fd, area + at + 1024, 512) != 512) {
				if (errno != EFAULT)
					abort();
				efaults++;
			}
		}
	}
	close(fd);
	return NULL;
}

static int
one_round(uint64_t *ns)
{
	struct convert_part parts[CONVERT_PARTS];
	const int fd = memfd_create("rocelane", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	uint64_t from;
	int n, rc = 0;

	if (fd < 0 || ftruncate(fd, (off_t)bytes) != 0)
		return -errno;
	n = convert_look((uintptr_t)area, bytes, parts);
	if (n < 0)
		return n;
	from = now_ns();
	for (int i = 0; i < n && rc == 0; i++)
		rc = convert_to_shared(&parts[i], fd, parts[i].at - (uintptr_t)area);
	*ns += now_ns() - from;
	if (rc != 0)
		return rc;
	n = convert_look((uintptr_t)area, bytes, parts);
	for (int i = 0; i < n && rc == 0; i++) {
		if (parts[i].kind != CONVERT_SHARED)
			return -EBADF;
		rc = convert_to_private(&parts[i], parts[i].len);
	}
	close(fd);
	return n < 0 ? n : rc;
}

/* No writer is in a turn. */
static uint64_t
lost(void)
{
	uint64_t sum = 0;

	for (size_t at = 0; at < bytes; at += PAGE) {
		for (size_t w = 0; w < WRITERS; w++)
			sum += done[w] - *(uint64_t *)(void *)(area + at + w * 8);
	}
	return sum;
}

static void
on_signal(int sig)
{
	told = sig;
}

/* The threads that are started after this do not hear them. */
static void
hear_signals(sigset_t *heard)
{
	const struct sigaction sa = { .sa_handler = on_signal };

	sigemptyset(heard);
	sigaddset(heard, SIGINT);
	sigaddset(heard, SIGTERM);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	pthread_sigmask(SIG_BLOCK, heard, NULL);
}

/* ---- rounds ---------------------------------------------------------------------------------- */

struct run {
	int wanted, played; /* rounds */
	int rc;
	uint64_t ns; /* of all conversions */
};

static void
tell(const struct run *r, const char *word)
{
	const int n = r->played > 0 ? r->played : 1;

	printf("%s%d of %d rounds of %zu bytes, %.3f ms a conversion, longest turn %.3f ms, "
	       "lost %llu, EFAULT %llu of %llu\n",
		word, r->played, r->wanted, bytes, (double)r->ns / 1e6 / n, (double)stall_ns / 1e6,
		(unsigned long long)lost(), (unsigned long long)efaults, (unsigned long long)calls);
	fflush(stdout);
}

static void
tell_midway(const struct run *r)
{
	atomic_store(&halt, true);
	pthread_barrier_wait(&halted);
	atomic_store(&halt, false);
	tell(r, "so far: ");
	pthread_barrier_wait(&halted);
}

static void
play(struct run *r)
{
	uint64_t told_ns = now_ns();

	while (r->played < r->wanted && r->rc == 0 && told == 0) {
		r->rc = one_round(&r->ns);
		r->played += r->rc == 0;
		if (now_ns() - told_ns >= TELL_NS) {
			tell_midway(r);
			told_ns = now_ns();
		}
	}
}

int
main(int argc, char **argv)
{
	const bool stopped = argc > 1 && strcmp(argv[1], "--stop") == 0;
	const bool user = argc > 1 && strcmp(argv[1], "--user") == 0;
	const int given = stopped || user;
	const enum convert_way way = stopped ? CONVERT_WAY_STOP
				     : user  ? CONVERT_WAY_USER_MODE
					     : convert_ways();
	struct run r = { .wanted = argc > 2 + given ? atoi(argv[2 + given]) : 20 };
	pthread_t threads[WRITERS + 1];
	sigset_t heard;
	bool bad;

	convert_use(way);
	bytes = argc > 1 + given ? strtoull(argv[1 + given], NULL, 0) : (size_t)4 << 20;
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 1;
	hear_signals(&heard);
	pthread_barrier_init(&halted, NULL, WRITERS + 1);
	for (size_t w = 0; w < WRITERS; w++)
		pthread_create(&threads[w], NULL, writer, (void *)(uintptr_t)w);
	pthread_create(&threads[WRITERS], NULL, reader, NULL);
	pthread_sigmask(SIG_UNBLOCK, &heard, NULL);
	printf("way %d\n", (int)way);
	play(&r);
	atomic_store(&stop, true);
	for (size_t w = 0; w < WRITERS + 1; w++)
		pthread_join(threads[w], NULL);
	if (told != 0)
		printf("stopped by signal %d\n", (int)told);
	if (r.rc != 0)
		printf("a round failed: %s\n", strerror(-r.rc));
	tell(&r, told != 0 ? "partly: " : "all: ");
	bad = r.rc != 0 || lost() != 0 || efaults != 0;
	return bad ? 1 : told != 0 ? 128 + told : 0;
}
