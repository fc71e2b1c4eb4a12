/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include <rte_malloc.h>

#include "bench_mem.h"

#define HUGE (2u << 20)

static size_t
whole_pages(size_t len)
{
	return (len + HUGE - 1) / HUGE * HUGE; /* a part of a page is not a huge one */
}

static void
no_memory(void)
{
	fprintf(stderr, "bench: no memory\n");
	exit(1);
}

uint8_t *
bench_huge_pages(size_t len)
{
	size_t whole = whole_pages(len);
	uint8_t *p = mmap(NULL, whole + HUGE, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		no_memory();
	p += HUGE - (uintptr_t)p % HUGE;
	madvise(p, whole, MADV_HUGEPAGE);
	return p;
}

int
bench_heap(const char *name, size_t len)
{
	size_t whole = whole_pages(len);

	if (rte_malloc_heap_create(name) != 0 ||
		rte_malloc_heap_memory_add(name, bench_huge_pages(whole), whole, NULL, 0, HUGE) !=
			0)
		no_memory();
	return rte_malloc_heap_get_socket(name);
}
