/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_MODEL_H
#define IMPAIR_MODEL_H
/**
 * @file impair_model.h  What happens to which packet: rules, seeds and counts, no packet memory.
 *
 * Owner:   one worker decides with a model; it never changes hands meanwhile.
 * Memory:  impair_model_create() allocates (control lcore), impair_model_destroy() frees.
 * Time:    none: delays are amounts.
 * Depends: base, and this driver's configuration, log and peek.
 *
 * Decisions depend on the rules, the seed and the packets in their order, not on how they were cut
 * into bursts, and not on time.
 */
#include <stdbool.h>

#include "impair_conf.h"
#include "impair_log.h"
#include "impair_peek.h"

/** Actions on one packet at most; a drop always has room, other rules then do not fire. */
#define IMPAIR_FIRED_MAX 16

#define IMPAIR_BIT(action) (1u << (action))

struct impair_flip {
	uint16_t offset;
	uint8_t mask;
};

struct impair_verdict {
	uint32_t actions; /* IMPAIR_BIT(); 0: leave it alone */
	uint32_t delay_us;
	uint32_t copy_delay_us; /* how much later than the packet */
	uint32_t hold_us;
	uint8_t copies;
	uint8_t distance;
	uint8_t n_flips;
	struct impair_flip flips[IMPAIR_FIRED_MAX];
};

struct impair_model;

/** @return 0, -EINVAL (see impair_conf_check()) or -ENOMEM. */
int impair_model_create(const struct impair_conf *conf, struct impair_model **out);
void impair_model_destroy(struct impair_model *m);

/**
 * Decide for packets in the order they came; verdict[i] is for pkts[i]. A verdict with a drop has
 * nothing else. What a verdict says goes to the log.
 * Cost: a compare a packet and rule that has not had its `times`; a bucket of the log's table.
 */
void impair_model_decide(struct impair_model *m, const struct impair_pkt *pkts, uint32_t n,
	struct impair_verdict *verdict);

/** No rule can ever fire again (there may be none): deciding is a waste. */
bool impair_model_is_spent(const struct impair_model *m);

/** Any lcore while the model lives: see impair_log.h. */
const struct impair_log *impair_model_log(const struct impair_model *m);

#endif
