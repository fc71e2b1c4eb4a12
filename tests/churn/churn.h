/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHURN_H
#define CHURN_H
/**
 * @file churn.h  QPs made, run and destroyed over and over: the parts of rocelane-churn.
 *
 * Owner:   the main thread; workers run in it (stepped clock) or on lcores of their own.
 * Memory:  one dataplane for the whole run; what a round makes it destroys.
 * Depends: app/rocelane's wiring, DPDK, jansson.
 *
 * churn.c         main, the dataplane on two crossed ports, time
 * churn_round.c   one round: two QPs, work, one of several ends
 * churn_gauge.c   what must be constant: memory, buffers, objects
 */
#include <jansson.h>

#include "dataplane.h"

enum { CHURN_PORTS = 2, CHURN_WORKERS = 2 };

struct churn {
	struct dataplane dp;
	uint64_t random;
	bool threads; /* workers run on lcores of their own */
	uint64_t round;
	uint64_t qps;      /* made so far */
	uint64_t done[22]; /* completions by status */
	uint64_t how[16];  /* rounds by the way they end */
};

/** Print the message and the round, then end the program. */
void churn_die(const struct churn *c, const char *format, ...)
	__attribute__((noreturn, format(printf, 2, 3)));

/** A number below n, from the seed. */
uint32_t churn_random(struct churn *c, uint32_t n);

/** Let `ns` pass and the dataplane come to rest, or with threads let it run for so long. */
void churn_run(struct churn *c, ns_t ns);
/** The workers turn n times, or with threads run a moment, without coming to rest. */
void churn_turn(struct churn *c, uint32_t n);

/** One control request, its parameters as JSON text; dies of errors. @return the result: yours. */
json_t *churn_call(struct churn *c, const char *method, const char *format, ...)
	__attribute__((format(printf, 3, 4)));
/** The same where the result is of no interest. */
void churn_do(struct churn *c, const char *method, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

/* ---- churn_round.c */

void churn_objects(struct churn *c); /* regions and completion queues for all rounds */
void churn_round(struct churn *c);
void churn_print_rounds(const struct churn *c);

/* ---- churn_gauge.c */

struct gauge {
	uint64_t rss_kib;
	uint64_t heap_bytes; /* malloc() */
	uint64_t dpdk_bytes; /* rte_malloc() */
	uint64_t dpdk_blocks;
	uint32_t buffers[CHURN_PORTS]; /* of each port's pool, in use */
	uint32_t files;
	uint32_t objects[5]; /* QPs, CQs, regions, neighbours, PDs */
};

void gauge_read(struct churn *c, struct gauge *g);
void gauge_print(const struct churn *c, const struct gauge *g);
/** Is `now` what `was` was? Prints what is not. @return faults. */
uint32_t gauge_compare(const struct gauge *was, const struct gauge *now);

#endif
