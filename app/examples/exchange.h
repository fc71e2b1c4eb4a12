/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXCHANGE_H
#define EXCHANGE_H
/**
 * @file exchange.h  What the examples share: a QP that is connected to one in another process.
 *
 * Owner:   one thread.
 * Memory:  end_close() gives everything back.
 * Depends: librocelane.
 *
 * The two sides tell each other numbers, keys and addresses over TCP, as every RDMA program has to;
 * data goes over the dataplane from then on. Usage of each example:
 *
 *     EXAMPLE serve PORT [RDMA_PORT]             one side, RDMA_PORT 2 if not given
 *     EXAMPLE ask HOST PORT [RDMA_PORT]          the other, RDMA_PORT 1
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rocelane.h>

#define END_QKEY 0x11111111 /* datagrams: who does not know it is not heard */

/** What one side tells the other. */
struct address {
	union rl_gid gid;
	uint32_t qp_num;
	uint32_t psn;
	uint32_t rkey;
	uint64_t addr;
};

struct end {
	bool serves;
	int tcp;
	struct rl_context *ctx;
	struct rl_pd *pd;
	struct rl_comp_channel *channel; /* of the CQ, for end_sleep() */
	struct rl_cq *cq;
	struct rl_mr *mr;
	struct rl_qp *qp;
	struct rl_ah *to; /* of datagrams: where the peer is */
	struct address mine;
	struct address peer;
};

/** A region of `bytes`, and a connected QP; ends the program with a message when that fails. */
void end_open(struct end *e, int argc, char **argv, size_t bytes);
/** The same, and a QP for datagrams: nobody is connected, and the peer knows END_QKEY. */
void end_open_datagrams(struct end *e, int argc, char **argv, size_t bytes);
/** Wait until the other side is here, too. */
void end_meet(struct end *e);
void end_close(struct end *e);
/** @return false: there is no completion. As end_wait(). */
bool end_poll(struct end *e, struct rl_wc *wc);
/** One completion, whatever it says. */
struct rl_wc end_wait_any(struct end *e);
/** One successful completion; anything else ends the program. */
struct rl_wc end_wait(struct end *e);
/** The same without spinning: the process sleeps until there is one. */
struct rl_wc end_sleep(struct end *e);
/** rc is a call's: if it failed, say what and why, and end. */
void must(int rc, const char *what);

#endif
