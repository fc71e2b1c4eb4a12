/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_WALL_H
#define CONTROL_WALL_H
/**
 * @file wall.h  Moments of the dataplane's clock as people read them: ISO 8601, UTC.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Time:    the system's clock is looked at each time; when it was set, what happened before has
 *          another time from then on, as in a log that is written now.
 * Depends: base, jansson.
 */
#include <jansson.h>

#include "clock.h"

#define WALL_TEXT 32 /* bytes of "2026-01-31T23:59:59.123456Z", and some */

struct env;

/** Nanoseconds since 1970. Cost: two looks at clocks. */
uint64_t wall_ns(struct env *env, ns_t t);
/** Cost: two looks at clocks, and about as much as a printf. */
void wall_text(struct env *env, ns_t t, char text[WALL_TEXT]);
/** The same as JSON; null where t is 0. */
json_t *wall_json(struct env *env, ns_t t);
/** "time_ns", and "time" for people. */
void wall_set(struct env *env, json_t *o, ns_t t);

#endif
