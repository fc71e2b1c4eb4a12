/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef FUZZ_WORKER_SEEDS_H
#define FUZZ_WORKER_SEEDS_H
/**
 * @file fuzz_worker_seeds.h  How built-in programs are written.
 *
 * Owner:   tests only.
 * Memory:  the caller's.
 * Depends: fuzz_worker.h.
 */
#include "fuzz_worker.h"

struct program {
	uint8_t *at, *end;
};

enum { MORE = 16 + QPS + 2 * C_N };
enum { FIRST = 5 /* byte 6 of a send: the first region, an SRQ of type XRC */ };

#define PUT(p, ...) put(p, (const uint8_t[STEP]){ __VA_ARGS__ })

static inline void
put(struct program *p, const uint8_t *s)
{
	if (p->at + STEP > p->end)
		return;
	memcpy(p->at, s, STEP);
	p->at += STEP;
}

/** fuzz_worker_more.c: the rest of them, from 0 on; of others nothing is written. */
void more_programs(struct program *p, unsigned int index);

#endif
