/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef IMPAIR_LOG_H
#define IMPAIR_LOG_H
/**
 * @file impair_log.h  What was decided, and the same again as exact rules.
 *
 * Owner:   one worker writes; one control lcore may read at any time, and then leaves out entries
 *          that are overwritten meanwhile.
 * Memory:  impair_log_create() allocates, impair_log_destroy() frees.
 * Depends: base, and this driver's configuration and peek.
 *
 * A packet is known by QPN, PSN, opcode, and how often these three have been seen: a retransmission
 * is the second. The table behind that count forgets the packet not seen for longest of its bucket;
 * counts are right while no more than IMPAIR_SEEN / 4 different packets come between two of one.
 */
#include <stdatomic.h>
#include <stdint.h>

#include "impair_conf.h"
#include "impair_peek.h"

#define IMPAIR_SEEN       16384
#define IMPAIR_SEEN_WAYS  4
#define IMPAIR_RECORD_MAX 320 /* bytes that a line of the script needs at most */

/** One action on one packet. Five words, see IMPAIR_RECORD_WORDS. */
struct impair_record {
	uint64_t packet; /* since the rules were set; the first is 1 */
	uint32_t qpn;    /* this, psn and opcode: 0 without IMPAIR_PKT_ROCE in `kind` */
	uint32_t psn;
	uint32_t nth;  /* of this QPN, PSN and opcode; the first is 1 */
	uint32_t arg;  /* delay_us, copies, distance or offset */
	uint32_t arg2; /* delay_us of copies, hold_us */
	uint16_t rule; /* index */
	uint8_t opcode;
	uint8_t action; /* enum impair_action */
	uint8_t mask;   /* corrupt: bits flipped at `arg` */
	uint8_t kind;   /* IMPAIR_PKT_* */
	uint8_t reserved[6];
};
#define IMPAIR_RECORD_WORDS 5
_Static_assert(sizeof(struct impair_record) == 8 * IMPAIR_RECORD_WORDS, "copied as words");

struct impair_log;

/** @param size records kept, a power of two. @return NULL: no memory. */
struct impair_log *impair_log_create(uint32_t size);
void impair_log_destroy(struct impair_log *log);

/** Worker: how often this RoCE packet has been seen, with this time. Cost: one bucket. */
uint32_t impair_log_seen(struct impair_log *log, const struct impair_pkt *p);
/** Worker: remember; the oldest record goes. Cost: five stores. */
void impair_log_add(struct impair_log *log, const struct impair_record *r);

/** Records ever written. */
uint64_t impair_log_head(const struct impair_log *log);
/**
 * Copy records, oldest first, from number *from (0: the first ever) on; *from moves behind the last
 * one copied, so that the next call goes on there. What has been overwritten is left out.
 * @return how many, at most `max`.
 */
uint32_t impair_log_read(
	const struct impair_log *log, uint64_t *from, struct impair_record *out, uint32_t max);

/** The rule that does to the same packet of another run what the record says. */
struct impair_rule impair_record_rule(const struct impair_record *r);
/**
 * All that the log has, as a JSON object for a port's "impair": {"seed": 0, "rules": [...]}, one
 * rule a line.
 * @return length as snprintf (`room` was enough if it is less), or -ENOMEM.
 */
int impair_log_print(const struct impair_log *log, char *buf, size_t room);

#endif
