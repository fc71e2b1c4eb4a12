/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory is converted and converted back while threads write to it: no write is lost.
 *
 *     convert-writers [--stop] [BYTES ROUNDS]    64 MiB and 1,000 by hand; short in the suite
 *
 * --stop: as where there is no userfaultfd.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
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

static uint8_t *area;
static size_t bytes;
static atomic_bool stop;
static uint64_t done[WRITERS]; /* turns over all pages */
static uint64_t calls, efaults;
static uint64_t stall_ns; /* the longest that a writer waited for one page */

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
		rc = convert_to_private(&parts[i]);
	}
	close(fd);
	return n < 0 ? n : rc;
}

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

int
main(int argc, char **argv)
{
	const bool stopped = argc > 1 && strcmp(argv[1], "--stop") == 0;
	const enum convert_way way = stopped ? CONVERT_WAY_STOP : convert_ways();
	const int rounds = argc > 2 + stopped ? atoi(argv[2 + stopped]) : 20;
	pthread_t threads[WRITERS + 1];
	uint64_t ns = 0;
	int rc = 0;

	convert_use(way);
	bytes = argc > 1 + stopped ? strtoull(argv[1 + stopped], NULL, 0) : (size_t)4 << 20;
	area = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (area == MAP_FAILED)
		return 1;
	for (size_t w = 0; w < WRITERS; w++)
		pthread_create(&threads[w], NULL, writer, (void *)(uintptr_t)w);
	pthread_create(&threads[WRITERS], NULL, reader, NULL);
	for (int i = 0; i < rounds && rc == 0; i++)
		rc = one_round(&ns);
	atomic_store(&stop, true);
	for (size_t w = 0; w < WRITERS + 1; w++)
		pthread_join(threads[w], NULL);
	printf("way %d, rc %d: %d rounds of %zu bytes, %.3f ms a conversion, longest turn %.3f ms, "
	       "lost %llu, EFAULT %llu of %llu\n",
		(int)way, rc, rounds, bytes, (double)ns / 1e6 / rounds, (double)stall_ns / 1e6,
		(unsigned long long)lost(), (unsigned long long)efaults, (unsigned long long)calls);
	return rc != 0 || lost() != 0 || (way != CONVERT_WAY_USER_MODE && efaults != 0);
}
