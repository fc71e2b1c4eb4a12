/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_BED_H
#define IMPAIR_BED_H
/**
 * @file impair_bed.h  Test bed: an in-memory port with the impairment on its queue.
 *
 * Owner:   tests/unit/impair.
 * Memory:  mbufs of bed.pool; bed_stop() checks that all of them came back.
 * Depends: DPDK, drivers/net/impair, drivers/net/pair, cmocka.
 *
 * The test puts frames into the wire, polls with bed_poll(), and owns the clock.
 */
#include <rte_mbuf.h>
#include <rte_mempool.h>

#include "impair.h"
#include "packets.h"

#define POLL_MAX  512
#define FRAME_LEN 82 /* IPv4, 24 bytes of payload */

struct bed {
	struct rte_mempool *pool;
	struct impair *im;
	ns_t now;
	uint64_t put; /* frames */
	uint64_t got;
	struct rte_mbuf *m[POLL_MAX]; /* what the last poll gave */
	uint32_t n;
};

extern struct bed bed;

/** EAL and port; for cmocka_run_group_tests(). */
int bed_group_setup(void **state);
/** Attach rules; the clock stands at 1 s. */
void bed_start(const struct impair_conf *conf);
void bed_start_rules(uint64_t seed, struct impair_rule *rules, uint32_t n);
/** Free what was polled, detach, and see that no mbuf is missing. */
void bed_stop(void);

/** A RoCE frame whose payload is its PSN, 24 bits, repeated. */
struct rte_mbuf *bed_frame(uint32_t qpn, uint32_t psn, uint8_t opcode, bool ipv6);
/** Into the wire. */
void bed_put(struct rte_mbuf *m);
void bed_send(uint32_t qpn, uint32_t psn);
/** Free what the last poll gave, and poll for at most `max`; checks the books. */
void bed_poll(uint16_t max);
/** PSN of a frame of the last poll. */
uint32_t bed_psn(uint32_t i);
/** The last poll gave these PSNs, in this order. */
#define bed_expect(...)                                    \
	bed_expect_psns((const uint32_t[]){ __VA_ARGS__ }, \
		sizeof((const uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t), __LINE__)
void bed_expect_psns(const uint32_t *psns, size_t n, int line);

struct impair_counters bed_counters(void);

#endif
