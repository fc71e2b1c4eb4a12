/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_PRIV_H
#define IMPAIR_PRIV_H
/**
 * @file impair_priv.h  Inside this driver: what its control half and its polling half share.
 *
 * Owner:   by part, see below.
 * Memory:  impair_attach() allocates.
 * Depends: base, DPDK, the rest of this driver.
 */
#include <stdatomic.h>

#include "impair.h"
#include "impair_hold.h"
#include "impair_model.h"
#include "impair_queue.h"

struct rte_eth_rxtx_callback;
struct rte_mbuf;

#define CHUNK      IMPAIR_HOLD_SLACK /* packets decided at one time */
#define OTHER_FLOW UINT32_MAX        /* all that is not RoCE */

enum {
#define COUNTER(name, help) C_##name,
	IMPAIR_COUNTERS(COUNTER)
#undef COUNTER
		C_MAX
};
_Static_assert(sizeof(struct impair_counters) == C_MAX * sizeof(uint64_t), "one each");

/** A model and a bottleneck, and their place in the list of those that are not used any more. */
struct rules {
	struct impair_model *model;
	struct bottleneck_conf bottleneck;
	uint32_t held_max;
	struct rules *next;
};

struct impair {
	/* poller */
	struct impair_port port; /* constant */
	struct impair_hold hold;
	struct impair_queue queue; /* behind it */
	struct impair_pkt pkts[CHUNK];
	struct impair_verdict verdicts[CHUNK];
	struct rte_mbuf *mbufs[CHUNK];

	/* shared: control sets `pending`, the poller makes it `current` and retires the old one */
	struct rules *_Atomic current;
	struct rules *_Atomic pending;
	struct rules *_Atomic retired;
	_Atomic uint64_t counters[C_MAX];

	/* control */
	struct impair_conf conf;
	const struct rte_eth_rxtx_callback *callback;
};

/** The poller is about to go by these rules, or will: what of them is not in the model. */
static inline void
impair_rules_apply(struct impair *im, const struct rules *r)
{
	im->hold.max = r->held_max;
	im->queue.max = r->held_max;
	impair_queue_set(&im->queue, &r->bottleneck);
}

/** The RX callback (rte_rx_callback_fn). Cost: see impair_model_decide(). */
uint16_t impair_on_receive(uint16_t port, uint16_t queue, struct rte_mbuf *pkts[], uint16_t n,
	uint16_t max, void *arg);

#endif
