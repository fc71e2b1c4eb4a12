/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ASK_H
#define ASK_H
/**
 * @file ask.h  Questions to workers: a message down, its DONE back, and a bound on the wait.
 *
 * Owner:   control lcore.
 * Memory:  a fixed array. What a message points to (attributes, settings, snapshot) lives in the
 *          slot, which is not used again before the DONE: a worker that answers late writes into
 *          nothing freed.
 * Time:    waits use env->clock; each ends after ASK_TIMEOUT_NS, or later on a busy machine.
 * Depends: mbox qp.
 */
#include "mbox.h"
#include "qp_attr.h"
#include "qp_client.h"
#include "qp_control.h"
#include "qp_snapshot.h"
#include "refusal.h"

#define ASK_SLOTS      256
#define ASK_KEPT       64 /* of them, not for ask_try() */
#define ASK_SILENT     96 /* ... for workers that are known not to answer, all together */
#define ASK_TIMEOUT_NS ((ns_t)5 * TIME_NS_PER_S)
#define ASK_SHORT_NS   (20 * TIME_NS_PER_MS)
#define ASK_GAP_NS     (10 * TIME_NS_PER_MS)
#define ASK_BRIEF_NS   (2 * TIME_NS_PER_MS) /* whoever waits for longer sleeps in between */

struct env;

enum ask_state { ASK_FREE, ASK_SENT, ASK_DONE, ASK_FORGOTTEN };

struct ask {
	uint8_t state; /* enum ask_state */
	uint16_t worker;
	uint32_t turn;         /* makes cookies of one slot different */
	struct mbox_done done; /* the answer; its rc is 0 or -errno */
	/* FORGOTTEN: called when the DONE comes after all, with a copy of the slot; may be NULL. */
	void (*late)(void *ctx, struct ask *a);
	void *late_ctx;
	void *arg;
	struct qp_attr attr;
	struct qp_settings settings;
	struct qp_snapshot snapshot;
};

struct asks {
	struct ask slot[ASK_SLOTS];
	uint32_t hint;   /* where to look for a free one */
	bool silent[64]; /* worker let a wait end: the next ones are short until it answers */
	uint32_t busy;
};

/**
 * For how long to wait for workers. A longer time between two turns counts as ASK_GAP_NS: nobody
 * got a CPU then, or the machine stood still, and the workers had no more of that time than we.
 */
struct ask_patience {
	ns_t most, waited;
	ns_t looked;
	uint32_t turns;
};

/** A message, and who gets it. The cookie is ask_send()'s, and the room for a snapshot too. */
struct ask_request {
	uint16_t worker;
	struct mbox_msg msg; /* attributes and settings are copied */
};

/**
 * Send. @return the slot, or NULL when the worker's queue or the slots stay full, or where it does
 * not answer and has questions enough.
 */
struct ask *ask_send(struct env *env, const struct ask_request *q);
/** The same without any wait. @return NULL: there is no room now. */
struct ask *ask_try(struct env *env, const struct ask_request *q);
/**
 * Wait for the DONE. @return its rc, or -ETIMEDOUT: the slot is forgotten then and `late` is
 * called when the DONE comes. Otherwise the caller reads what it wants and calls ask_release().
 */
int ask_wait(struct env *env, struct ask *a);
/** Wait once more for one that was forgotten and whose DONE has not come: as ask_wait(). */
int ask_wait_again(struct env *env, struct ask *a);
/** Give the slot back after ask_wait(), also if that has failed. */
void ask_release(struct env *env, struct ask *a);
/** Send, wait, release. @return rc, -ETIMEDOUT or -EBUSY (not sent). */
int ask_and_wait(struct env *env, const struct ask_request *q);
/** The same. @param done out: the answer; as it was if there was none. */
int ask_and_answer(struct env *env, const struct ask_request *q, struct mbox_done *done);
/**
 * Nobody waits: the slot frees itself.
 * @param late called then with `ctx` and what was in the slot, `arg` and `done`; NULL: nobody.
 */
void ask_forget(struct ask *a, void (*late)(void *ctx, struct ask *a), void *ctx, void *arg);
/** A wait begins. */
struct ask_patience ask_patience(const struct env *env);
/** Let the workers run a little, and take their answers. @return false: waited long enough. */
bool ask_patience_turn(struct env *env, struct ask_patience *p);
/** A SYNC round trip to every worker. @return 0 or -ETIMEDOUT. */
int ask_all(struct env *env);
/** Is no worker known not to answer? Else whoever asks all of them waits, and all wait for him. */
bool ask_all_answer(const struct env *env);
/** Take DONE messages. @return how many. */
uint32_t ask_drain(struct env *env);
/** "worker 1 (lcore 3) does not answer" and so on. @return rc. */
int ask_refuse(struct env *env, uint16_t worker, int rc, struct refusal *r);

#endif
