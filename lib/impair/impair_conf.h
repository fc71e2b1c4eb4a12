/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_CONF_H
#define IMPAIR_CONF_H
/**
 * @file impair_conf.h  What an impaired port does to which packets: plain structs, as from JSON.
 *
 * Owner:   the caller; the functions are pure.
 * Memory:  the caller's; impair_attach() and impair_set() copy.
 * Depends: base.
 *
 * A rule says what happens (action), to which packets (all keys given must match), when (one of
 * probability, burst, every; none of them: always), and how. Each rule looks at every packet, so
 * what it decides depends on the seed, its index and the packets that match it, and on no other
 * rule. What several rules decide about one packet adds up; a drop wins.
 *
 * In a rule 0 stands for the default, so that a designated initialiser does. `given` must have the
 * bits of those keys whose 0 would mean something (the first seven); the other bits only tell an
 * encoder which keys a person wrote.
 *
 *   key          member       from .. to        default   meaning
 *   seed         seed         0 .. 2^64-1       0         same seed, same packets: same decisions
 *   held_max     held_max     1 .. 65536        2048      packets held back at one time
 *   log_size     log_size     1 .. 65536        4096      decisions remembered (a power of two)
 *   rules        rules        0 .. 4096 objects none
 *   bottleneck   bottleneck   object            none      see bottleneck.h; rate 0: none
 *
 * A bottleneck's `seed` is that of the rules; as many packets may wait in it as held_max says.
 *
 *   action       action       drop duplicate reorder corrupt delay ce      (required)
 *   frames       frames       roce other all              roce      RoCE packets, the rest, both
 *   direction    direction    any request response        any       by the BTH's opcode
 *   qp_num       qp_num       0 .. 2^24-1       any       destination QP of the BTH
 *   psn          psn          0 .. 2^24-1       any
 *   psn_last     psn_last     0 .. 2^24-1       psn       last of a range that begins with psn
 *   opcode       opcode       0 .. 255          any
 *   packet       packet       1 .. 2^64-1       any       the n-th packet since the rules were set
 *   probability  probability  0.0 .. 1.0                  of each matching packet
 *   every        every        1 .. 2^32-1                 each n-th matching packet
 *   burst        burst        object                      Gilbert-Elliott: runs of bad luck
 *     .p         p            0.0 .. 1.0        required  good state to bad
 *     .r         r            0.0 .. 1.0        required  bad state to good: runs of 1/r packets
 *     .loss_good loss_good    0.0 .. 1.0        0.0       probability of the action while good
 *     .loss_bad  loss_bad     0.0 .. 1.0        (none)    while bad; the JSON default is 1.0
 *   skip         skip         0 .. 2^32-1       0         let the first matching packets be
 *   times        times        0 .. 2^32-1       0         stop after this many; 0: never
 *   delay_us     delay_us     0 .. 10000000     0         delay: how long (required); duplicate:
 *                                                         how much later the copies come
 *   jitter_us    jitter_us    0 .. 10000000     0         delay: up to this much more, at random
 *   copies       copies       1 .. 8            1         duplicate: how many more
 *   distance     distance     1 .. 255          1         reorder: this many packets of the same
 *                                                         QP overtake
 *   hold_us      hold_us      1 .. 10000000     10000     reorder: wait no longer for them
 *   offset       offset       0 .. 65535        anywhere  corrupt: byte, from the Ethernet header
 *   bits         bits         1 .. 8            1         corrupt: how many to flip, at random
 *   xor          xor_mask     1 .. 255          by bits   corrupt: exactly this (needs offset)
 */
#include <stddef.h>
#include <stdint.h>

#include "bottleneck.h"

#define IMPAIR_RULES_MAX    4096
#define IMPAIR_HELD_MAX     65536
#define IMPAIR_HELD_DEFAULT 2048
#define IMPAIR_LOG_MAX      65536
#define IMPAIR_LOG_DEFAULT  4096
#define IMPAIR_DELAY_MAX    10000000u /* us */
#define IMPAIR_HOLD_DEFAULT 10000u    /* us */
#define IMPAIR_COPIES_MAX   8
#define IMPAIR_DISTANCE_MAX 255
#define IMPAIR_BITS_MAX     8

enum impair_action {
	IMPAIR_DROP,
	IMPAIR_DUPLICATE,
	IMPAIR_REORDER,
	IMPAIR_CORRUPT,
	IMPAIR_DELAY,
	IMPAIR_CE,
	IMPAIR_ACTIONS
};
enum impair_frames { IMPAIR_FRAMES_ROCE, IMPAIR_FRAMES_OTHER, IMPAIR_FRAMES_ALL };
enum impair_direction { IMPAIR_ANY, IMPAIR_REQUEST, IMPAIR_RESPONSE };

enum { /* impair_rule.given */
	IMPAIR_GIVEN_QP_NUM = 1 << 0,
	IMPAIR_GIVEN_PSN = 1 << 1,
	IMPAIR_GIVEN_PSN_LAST = 1 << 2,
	IMPAIR_GIVEN_OPCODE = 1 << 3,
	IMPAIR_GIVEN_PROBABILITY = 1 << 4,
	IMPAIR_GIVEN_BURST = 1 << 5,
	IMPAIR_GIVEN_OFFSET = 1 << 6,
	IMPAIR_GIVEN_FRAMES = 1 << 7,
	IMPAIR_GIVEN_DIRECTION = 1 << 8,
	IMPAIR_GIVEN_PACKET = 1 << 9,
	IMPAIR_GIVEN_EVERY = 1 << 10,
	IMPAIR_GIVEN_SKIP = 1 << 11,
	IMPAIR_GIVEN_TIMES = 1 << 12,
	IMPAIR_GIVEN_DELAY_US = 1 << 13,
	IMPAIR_GIVEN_JITTER_US = 1 << 14,
	IMPAIR_GIVEN_COPIES = 1 << 15,
	IMPAIR_GIVEN_DISTANCE = 1 << 16,
	IMPAIR_GIVEN_HOLD_US = 1 << 17,
	IMPAIR_GIVEN_BITS = 1 << 18,
	IMPAIR_GIVEN_XOR = 1 << 19,
};

struct impair_burst {
	double p;
	double r;
	double loss_good;
	double loss_bad;
};

struct impair_rule {
	uint64_t given;
	uint32_t action;    /* enum impair_action */
	uint32_t frames;    /* enum impair_frames */
	uint32_t direction; /* enum impair_direction */
	uint32_t qp_num;
	uint32_t psn;
	uint32_t psn_last;
	uint64_t packet;
	double probability;
	struct impair_burst burst;
	uint32_t every;
	uint32_t skip;
	uint32_t times;
	uint32_t delay_us;
	uint32_t jitter_us;
	uint32_t copies;
	uint32_t distance;
	uint32_t hold_us;
	uint32_t offset;
	uint32_t bits;
	uint8_t xor_mask;
	uint8_t opcode;
};

enum { IMPAIR_HAS_BOTTLENECK = 1 }; /* impair_conf.given, for an encoder */

struct impair_conf {
	uint64_t given;
	uint64_t seed;
	uint32_t held_max;
	uint32_t log_size;
	uint32_t n_rules;
	struct impair_rule *rules;
	struct bottleneck_conf bottleneck; /* rate 0: none */
};

/** What is wrong with a rule, for people; NULL: nothing. */
const char *impair_rule_fault(const struct impair_rule *rule);

/**
 * Check ranges and relations.
 * @param why what is wrong with which key, for people; NULL: not wanted.
 * @return 0 or -EINVAL.
 */
int impair_conf_check(const struct impair_conf *conf, char *why, size_t room);

/** "drop" ...: as in JSON; NULL for a number that is no action. */
const char *impair_action_name(uint32_t action);

/**
 * One rule as a JSON object, keys that hold their default left out.
 * @return length as snprintf: `room` was enough if it is less.
 */
int impair_rule_print(const struct impair_rule *rule, char *buf, size_t room);

#endif
