/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EXPLAIN_H
#define EXPLAIN_H
/**
 * @file explain.h  Why a QP is in ERR: the packet, the answer, the report, and what came before.
 *
 * Owner:   control lcore.
 * Memory:  a story for each QP that failed while its flight recorder was on, at most STORIES_MAX;
 *          freed at RESET and with the QP.
 * Depends: trace qp, jansson.
 */
#include <jansson.h>
#include <stdint.h>

#include "qp.h"
#include "trace.h"

#define STORY_BEFORE 24
#define STORY_AFTER  12
#define STORIES_MAX  4096

struct control;
struct qp_rec;

/** Copy of the flight recorder around an error, so that later traffic cannot overwrite it. */
struct story {
	ns_t time_ns;
	uint64_t trace_at; /* the error's place in the recorder */
	uint32_t before;   /* entries that came before it */
	uint32_t n;
	uint32_t flushed; /* WR_FLUSH_ERR completions seen behind it, not kept one by one */
	struct trace_entry e[STORY_BEFORE + STORY_AFTER];
};

/** The QP failed at this place of its worker's recorder. */
void explain_keep(struct control *c, struct qp_rec *rec, uint64_t trace_at, ns_t time_ns);
void explain_forget(struct control *c, struct qp_rec *rec);
/** Everything that is known, as JSON; "error" is null where there was none since RESET. */
json_t *explain_json(struct control *c, struct qp_rec *rec, const struct qp_snapshot *s);

#endif
