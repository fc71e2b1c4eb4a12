/* SPDX-License-Identifier: BSD-3-Clause */
/* What a run of any length must leave as it found it. */
#include <dirent.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>

#include <rte_malloc.h>
#include <rte_mempool.h>

#include "churn.h"

#define RSS_ROOM_KIB 16384u /* buffers and rings are touched for the first time, one by one */
#define HEAP_ROOM    65536u
#define BUFFERS_ROOM 64u                   /* what two workers hold ready to receive into */
#define QUIET_NS     (80 * TIME_NS_PER_MS) /* with threads: ten turns of each, at the least */

static const char *const lists[] = { "qp_list", "cq_list", "mr_list", "neighbor_list", "pd_list" };

static uint64_t
rss_kib(void)
{
	unsigned long long total = 0, resident = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f == NULL || fscanf(f, "%llu %llu", &total, &resident) != 2)
		resident = 0;
	if (f != NULL)
		fclose(f);
	return resident * 4;
}

static uint32_t
open_files(void)
{
	DIR *d = opendir("/proc/self/fd");
	uint32_t n = 0;

	while (d != NULL && readdir(d) != NULL)
		n++;
	if (d != NULL)
		closedir(d);
	return n;
}

void
gauge_read(struct churn *c, struct gauge *g)
{
	struct rte_malloc_socket_stats dpdk;

	churn_run(c, QUIET_NS);
	for (uint32_t i = 0; i < ARRAY_LEN(lists); i++) {
		json_t *list = churn_call(c, lists[i], "%s", "");

		g->objects[i] = (uint32_t)json_array_size(list);
		json_decref(list);
	}
	for (uint32_t i = 0; i < CHURN_PORTS; i++)
		g->buffers[i] = rte_mempool_in_use_count(c->dp.ports[i].pool);
	if (rte_malloc_get_socket_stats(0, &dpdk) != 0)
		churn_die(c, "rte_malloc() has no statistics");
	g->dpdk_bytes = dpdk.heap_allocsz_bytes;
	g->dpdk_blocks = dpdk.alloc_count;
	g->heap_bytes = mallinfo2().uordblks;
	g->files = open_files();
	g->rss_kib = rss_kib();
}

void
gauge_print(const struct churn *c, const struct gauge *g)
{
	printf("%8" PRIu64 " rounds: rss %" PRIu64 " KiB, malloc %" PRIu64 " B, rte_malloc %" PRIu64
	       " B in %" PRIu64 " blocks, buffers %u %u, files %u, objects %u %u %u %u %u\n",
		c->round, g->rss_kib, g->heap_bytes, g->dpdk_bytes, g->dpdk_blocks, g->buffers[0],
		g->buffers[1], g->files, g->objects[0], g->objects[1], g->objects[2], g->objects[3],
		g->objects[4]);
}

/* @return 1 if `now` is more than `room` above `was`. */
static uint32_t
grew(const char *what, uint64_t was, uint64_t now, uint64_t room)
{
	if (now <= was + room)
		return 0;
	printf("%s has grown: from %" PRIu64 " to %" PRIu64 "\n", what, was, now);
	return 1;
}

uint32_t
gauge_compare(const struct gauge *was, const struct gauge *now)
{
	uint32_t faults = 0;

#ifndef __SANITIZE_ADDRESS__ /* it keeps what was freed for a while, and looks for leaks itself */
	faults += grew("resident memory (KiB)", was->rss_kib, now->rss_kib, RSS_ROOM_KIB);
	faults += grew("malloc() memory", was->heap_bytes, now->heap_bytes, HEAP_ROOM);
#endif
	faults += grew("rte_malloc() memory", was->dpdk_bytes, now->dpdk_bytes, 0);
	faults += grew("rte_malloc() blocks", was->dpdk_blocks, now->dpdk_blocks, 0);
	faults += grew("open files", was->files, now->files, 0);
	for (uint32_t i = 0; i < CHURN_PORTS; i++)
		faults += grew("buffers in use", was->buffers[i], now->buffers[i], BUFFERS_ROOM);
	for (uint32_t i = 0; i < ARRAY_LEN(lists); i++)
		faults += grew(lists[i], was->objects[i], now->objects[i], 0);
	faults += grew("qp_list", 0, now->objects[0], 0);
	return faults;
}
