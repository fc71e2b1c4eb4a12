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

#include "qp_snapshot.h"
#include "trace.h"
#include "wire_build.h"

#define STORY_BEFORE 24
#define STORY_AFTER  12
#define STORIES_MAX  4096

struct diagnose;
struct admin_qp;

/** Copy of the flight recorder around an error, so that later traffic cannot overwrite it. */
struct story {
	ns_t time_ns;
	uint64_t trace_at; /* the error's place in the recorder */
	uint32_t before;   /* entries that came before it */
	uint32_t n;
	uint32_t flushed; /* WR_FLUSH_ERR completions seen behind it, not kept one by one */
	struct trace_entry e[STORY_BEFORE + STORY_AFTER];
};

/** What is told of a failure: all of it still holds when the QP and its owner are gone. */
struct failure {
	uint32_t qpn;
	uint32_t peer_qpn;
	struct wire_path path;
	bool connected;    /* it has one peer: peer_qpn, path */
	bool resolved;     /* path.dmac is known */
	uint16_t reported; /* the abnormal event behind it (enum aeq_code), 0: none */
	struct qp_error error;
	struct qp_failure about; /* the work request, and memory that was refused */
};

/** The failure that the QP's worker remembers. */
struct failure failure_of(const struct admin_qp *rec, const struct qp_error *e);
#define FAILURE_TEXT 640
/** One sentence: what happened, by what, and what was wrong with the memory. */
void failure_text(struct diagnose *dg, const struct failure *f, char *text, size_t room);
/** The same sentence as JSON; a new reference. */
json_t *failure_summary(struct diagnose *dg, const struct failure *f);
/** "completion" and "event": how it was reported, each null where it was not. */
void failure_set_reports(json_t *o, const struct qp_error *e);
/** Everything about it but what came before. */
json_t *failure_json(struct diagnose *dg, const struct failure *f);

/** A flight recorder entry of a worker; a new reference. */
json_t *explain_trace_entry(struct diagnose *dg, const struct trace_entry *e, uint32_t worker);
/** The QP failed at this place of its worker's recorder. */
void explain_keep(struct diagnose *dg, struct admin_qp *rec, uint64_t trace_at, ns_t time_ns);
/** The QP is reset, or destroyed: its story goes. */
void explain_forget(struct diagnose *dg, struct admin_qp *rec);
/** What followed the failure since the story was written down, too. */
void story_go_on(struct story *s, const struct trace *t, uint32_t qpn);
/** "before": how many entries came before the failure; "trace": all of them; s may be NULL. */
void story_set(struct diagnose *dg, json_t *o, const struct story *s, uint32_t worker);
/** Everything that is known, as JSON; "error" is null where there was none since RESET. */
json_t *explain_json(struct diagnose *dg, struct admin_qp *rec, const struct qp_snapshot *s);

#endif
