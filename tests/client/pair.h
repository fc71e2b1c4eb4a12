/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PAIR_H
#define PAIR_H
/**
 * @file pair.h  For tests: a client, and QPs that are connected over the dataplane's two ports.
 *
 * Owner:   one thread.
 * Memory:  pair_close() ends the connection with everything in it.
 * Depends: librocelane.
 */
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "rocelane.h"

/** Not so: say where and why, and end with 1. */
#define CHECK(what)                                                                            \
	do {                                                                                   \
		if (!(what)) {                                                                 \
			fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #what, \
				rl_last_error());                                              \
			exit(1);                                                               \
		}                                                                              \
	} while (0)
#define OK(call) CHECK((call) == 0)

struct pair {
	struct rl_context *ctx;
	struct rl_pd *pd;
	struct rl_comp_channel *channel;
	struct rl_cq *cq; /* of all four queues */
	struct rl_mr *mr; /* the library's memory, all access */
	struct rl_qp *a;  /* on port 1 */
	struct rl_qp *b;  /* on port 2 */
	uint8_t timeout;
};

/** A client with a PD, a CQ of `cqe` with a channel, and a region of `bytes`; no QPs. */
void pair_open(struct pair *p, const char *socket, int cqe, size_t bytes);
/** Two QPs of `depth` entries a queue, in RTS. */
void pair_connect(struct pair *p, uint32_t depth);
void pair_disconnect(struct pair *p);
void pair_close(struct pair *p);

struct rl_qp *pair_qp(struct pair *p, uint32_t depth);
/** From RESET to `state`, from `port` to QP `dest` on `dest_port` of the same dataplane. */
void pair_move(struct pair *p, struct rl_qp *qp, enum rl_qp_state state, uint8_t port,
	uint32_t dest, uint8_t dest_port);

/** CLOCK_MONOTONIC. */
uint64_t pair_now_ns(void);
/** One completion within some seconds. */
struct rl_wc pair_wait(struct rl_cq *cq);
/** None for a moment. */
bool pair_is_quiet(struct rl_cq *cq);
/** A signalled request of `opcode` with one SGE. */
int pair_post(struct rl_qp *qp, enum rl_wr_opcode opcode, struct rl_sge sge, uint64_t remote,
	uint32_t rkey, uint64_t wr_id);
int pair_recv(struct rl_qp *qp, struct rl_sge sge, uint64_t wr_id);
struct rl_sge pair_sge(const struct pair *p, size_t offset, uint32_t length);

#endif
