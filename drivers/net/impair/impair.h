/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_H
#define IMPAIR_H
/**
 * @file impair.h  A bad wire: seeded, content-aware impairment of what a port's queue receives.
 *
 * Owner:   control lcore attaches, sets, reads and detaches; the lcore that polls the queue runs
 *          the callback, and alone holds packets.
 * Memory:  impair_attach() allocates, impair_detach() frees; packets that are held back are mbufs
 *          of the port, copies come from the pool given.
 * Time:    the clock given at attach, read once a burst.
 * Depends: base, wire, impair, DPDK (an RX callback of ethdev).
 *
 * in + duplicated = out + dropped + queue_dropped + held, always. A bottleneck comes last: what the
 * rules let pass goes into its queue. A packet is changed in place only where nobody
 * else has it; otherwise it is copied first.
 */
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "impair_conf.h"
#include "impair_log.h"
#include "impair_ops.h"

struct rte_mbuf;
struct rte_mempool;
struct impair;

struct impair_port {
	uint16_t port_id;
	uint16_t queue;
	struct rte_mempool *pool; /* for copies; frames should fit one mbuf */
	ns_t (*clock)(void *arg); /* must not go back */
	void *clock_arg;
	/**
	 * NULL, or told of every packet, in order, before anything is done to it. Poller.
	 * @param actions bits of enum impair_action: what will be done.
	 */
	void (*tap)(void *arg, const struct rte_mbuf *m, uint32_t actions, ns_t now);
	void *tap_arg;
};

/**
 * Put the impairment between the port's queue and whoever polls it. The port is configured; it may
 * be running.
 * @return 0, -EINVAL (conf, see impair_conf_check(); no pool, no clock, no such queue), -ENOMEM,
 * -ENOTSUP.
 */
int impair_attach(
	const struct impair_port *port, const struct impair_conf *conf, struct impair **out);

/**
 * Take it away; packets that are held back are freed. Nobody may be polling the queue: stop the
 * worker or the port first, and close the port after. NULL: nothing happens.
 */
void impair_detach(struct impair *im);

/**
 * New rules while packets flow. The poller takes them over at its next poll, empty ones included;
 * packet numbers, counts of `skip` and `times`, seeds and the log then begin anew, counters and
 * held packets stay, also where there are more than the new held_max. The old rules are freed by a
 * later impair_set() or impair_detach(): there is no grace period to wait for.
 * @return 0, -EINVAL, -ENOMEM; on failure the old rules stay.
 */
int impair_set(struct impair *im, const struct impair_conf *conf);

/** Rules that were set last; valid until the next impair_set() or impair_detach(). */
const struct impair_conf *impair_get(const struct impair *im);

/** Control lcore: read the counters; each is right, the sum holds while nobody polls. */
void impair_read(const struct impair *im, struct impair_counters *out);

/** Control lcore: decisions; see impair_log_read(). *from starts again at 0 after impair_set(). */
uint32_t impair_log(
	const struct impair *im, uint64_t *from, struct impair_record *out, uint32_t max);
/** Control lcore: all decisions that are still known as exact rules; see impair_log_print(). */
int impair_log_script(const struct impair *im, char *buf, size_t room);

/**
 * Poller: frames that come to the port in another way than over its wire are received, too. As the
 * RX callback: what goes on, at most `max`, replaces them; n is at most `max`.
 */
uint16_t impair_receive(struct impair *im, struct rte_mbuf **m, uint16_t n, uint16_t max);

/** Poller: when to poll next at the latest (clock's ns; 0: now; UINT64_MAX: nothing waits). */
ns_t impair_next(const struct impair *im);

#endif
