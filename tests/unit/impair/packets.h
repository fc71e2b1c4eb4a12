/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PACKETS_H
#define PACKETS_H
/**
 * @file packets.h  Packets as the model sees them, and short ways to run it.
 *
 * Owner:   tests/unit/impair.
 * Memory:  models of the test's own, freed by run_rules() or by the test.
 * Depends: base, drivers/net/impair, cmocka.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"
#include "impair_model.h"

/* Opcodes, typed from the base specification's table. */
enum { SEND_ONLY = 0x04, WRITE_MIDDLE = 0x07, ACK = 0x11, CNP_OPCODE = 0x81 };

static inline struct impair_pkt
roce(uint32_t qpn, uint32_t psn, uint8_t opcode)
{
	bool response = opcode == ACK;
	bool request = opcode == SEND_ONLY || opcode == WRITE_MIDDLE;

	return (struct impair_pkt){ .len = 1082,
		.qpn = qpn,
		.psn = psn,
		.l3_off = 14,
		.opcode = opcode,
		.kind = (uint8_t)(IMPAIR_PKT_ROCE | IMPAIR_PKT_IPV4 |
				  (request ? IMPAIR_PKT_REQUEST : 0) |
				  (response ? IMPAIR_PKT_RESPONSE : 0)) };
}

static inline struct impair_pkt
other(void)
{
	return (struct impair_pkt){ .len = 60 };
}

static inline struct impair_model *
model_of(uint64_t seed, struct impair_rule *rules, uint32_t n)
{
	const struct impair_conf conf = {
		.seed = seed, .n_rules = n, .rules = rules, .log_size = 65536
	};
	struct impair_model *m = NULL;

	assert_int_equal(impair_model_create(&conf, &m), 0);
	return m;
}

/** Run rules over packets in bursts of `burst`. */
static inline void
run_rules(uint64_t seed, struct impair_rule *rules, uint32_t n_rules, const struct impair_pkt *pkts,
	uint32_t n, uint32_t burst, struct impair_verdict *out)
{
	struct impair_model *m = model_of(seed, rules, n_rules);

	for (uint32_t i = 0; i < n; i += burst)
		impair_model_decide(m, pkts + i, n - i < burst ? n - i : burst, out + i);
	impair_model_destroy(m);
}

static inline bool
is_dropped(const struct impair_verdict *v)
{
	return (v->actions & IMPAIR_BIT(IMPAIR_DROP)) != 0;
}

/** A stream of sends of one QP. */
static inline struct impair_pkt *
stream(uint32_t n)
{
	struct impair_pkt *p = calloc(n, sizeof(*p));

	assert_non_null(p);
	for (uint32_t i = 0; i < n; i++)
		p[i] = roce(17, i & 0xffffff, SEND_ONLY);
	return p;
}

static inline struct impair_verdict *
verdicts(uint32_t n)
{
	struct impair_verdict *v = calloc(n, sizeof(*v));

	assert_non_null(v);
	return v;
}

#endif
