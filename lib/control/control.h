/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_H
#define CONTROL_H
/**
 * @file control.h  The control lcore: objects, state transitions, events, neighbours, JSON-RPC.
 *
 * Owner:   the control lcore; no function here is safe from another one.
 * Memory:  control_create() allocates; everything is given back by control_destroy().
 * Time:    control_poll() gets `now` once per turn.
 * Depends: env, conf; never lib/pipeline.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "env.h"

struct control;
struct objects;

/**
 * Open the socket and create every configured object; QPs are walked to their states.
 * @return 0 or -errno, with the reason logged.
 */
int control_create(const struct env_wiring *env, struct control **out);
/** All QPs to ERR, then everything is freed. The workers must still be polled by `pump`. */
void control_destroy(struct control *c);
/** One turn: messages from workers, socket, timers. @return pieces of work done; 0: idle. */
uint32_t control_poll(struct control *c, ns_t now);
/** How long it may sleep when a turn was idle; shorter while an application waits for an event, or
 * a peer may answer. */
uint32_t control_wait_us(const struct control *c);
/** A descriptor that becomes readable when the socket has work, for an idle wait; -1: none. */
int control_wait_fd(const struct control *c);
/**
 * One JSON-RPC request line, as from the socket.
 * @return the reply line without newline (free() it), or NULL for a notification.
 */
char *control_rpc(struct control *c, const char *line, size_t len);
/** Its objects, for tests that write what an application could. */
struct objects *control_objects(struct control *c);
/** Print the total counters that are not zero, one a line, through `out`. */
void control_print_counters(
	const struct control *c, void (*out)(void *ctx, const char *line), void *ctx);

#endif
