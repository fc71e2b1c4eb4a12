/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CTL_H
#define CTL_H
/**
 * @file ctl.h  What the files of rocelanectl share: the table of commands and the run's options.
 *
 * Owner:   one thread.
 * Memory:  json_t references are the caller's unless a function says that it takes one.
 * Depends: jansson; lib/stats for the counters' help texts. No DPDK, no lib/control.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "rpc.h"

#define CTL_SOCKET "/run/rocelane.sock"

enum ctl_exit { CTL_OK = 0, CTL_REFUSED = 1, CTL_USAGE = 2 };

struct ctl {
	const char *socket;
	int timeout_ms;
	bool json;
	bool quiet; /* completion: no messages */
	struct rpc rpc;
};

/**
 * One row is one command; help, usage and completion are made from it.
 *
 * `args` names the words before the pairs, in order: "name" is a string, "#qp_num" a number,
 * "@offset" a size (64K), and "?" before it makes it optional. `keys` lists the names of the pairs
 * that may follow, NULL: none. `columns` are the table's, as paths; NULL: all.
 */
struct command {
	const char *object;
	const char *verb; /* NULL: the object alone is the command */
	const char *method;
	const char *args;
	const char *keys;
	const char *columns;
	int (*run)(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
	const char *help;
};

extern const struct command commands[];
extern const size_t commands_n;

/** What the value of a key, or of a positional word, may be. */
struct key {
	const char *object; /* NULL: any */
	const char *name;
	const char *form;   /* type, range and unit; "A,B": names; NULL: one of `words` */
	const char *method; /* NULL: `words` are all; else they name the member of its rows */
	const char *words;  /* NULL: free */
	const char *help;
};

extern const struct key command_keys[];
extern const size_t command_keys_n;

/** The row of an object and verb, or NULL. A NULL verb finds the object's first row. */
const struct command *command_find(const char *object, const char *verb);

/** Message on standard error, with the program's name. @return CTL_USAGE */
int ctl_usage(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
/** The same for what was refused. @param code  for -j, as in JSON-RPC. @return CTL_REFUSED */
int ctl_refuse(int code, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/**
 * Connect where needed, call, print the daemon's message where it refuses.
 * @param params  taken; NULL: none.
 * @return CTL_OK with *result to be released, or CTL_REFUSED.
 */
int ctl_call(struct ctl *ctl, const char *method, json_t *params, json_t **result);
/** Call the command's method with its words. @return as ctl_call(), or CTL_USAGE. */
int ctl_ask(struct ctl *ctl, const struct command *cmd, int argc, char **argv, json_t **result);
/** `p`, or the end of the program when memory is out. */
void *ctl_must(void *p);

/* params.c: words to JSON */

/** Words to the params that cmd->args and cmd->keys describe. @return CTL_OK or CTL_USAGE */
int params_build(const struct command *cmd, int argc, char **argv, json_t **params);
/** KEY VALUE pairs into `obj`; "a.b" goes to member b of object a. @return CTL_OK or CTL_USAGE */
int params_pairs(json_t *obj, int argc, char **argv);
/** "4096", "0x1000", "4K", "1M", "1G"; below 2^63. @return 0 or -EINVAL */
int params_size(const char *text, uint64_t *size);
/** "16", "0x10", of 64 bits. @return 0 or -EINVAL */
int params_number(const char *text, uint64_t *n);
/**
 * The next word of a spec such as "name ?#max".
 * @return false at the end; *name (of `size` bytes) without its marks.
 */
bool params_next(const char **spec, char *name, size_t size, char *kind, bool *optional);

/* format.c: JSON to text */

void fmt_json(const json_t *v);
/** One compact line, flushed: for streams. */
void fmt_json_line(const json_t *v);
/** Rows (an array of objects) as aligned columns; columns nobody has are left out. */
void fmt_table(const json_t *rows, const char *columns, bool header);
/** One object as lines of key and value; nested keys are dotted. */
void fmt_pairs(const json_t *obj);
/** @return 0, or -EINVAL when `hex` is not hexadecimal. */
int fmt_hexdump(uint64_t offset, const char *hex);
/** Cells as an aligned table, row by row; numbers to the right. NULL prints as "-". */
void fmt_cells(char *const *cells, size_t rows, size_t cols, bool header);
/** Text of a value, without control characters. free() it. */
char *fmt_value(const json_t *v);
/** Member `key` as people call it: its "key_name" where the row has one. */
const json_t *fmt_named(const json_t *row, const char *key);

/* run.c, post.c, stats.c, impair.c, top.c: what a command does with the answer */

int run_quiet(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_json(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_pairs(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_table(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
/** As run_table, and what it shows stays where it is. */
int run_look(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
/** Take what waits, until nothing does. */
int run_clear(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_find(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_qp_list(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_vendor_err(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_post_mortem(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_cm_explain(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_explain(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_mr_read(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_post(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_follow(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_watch(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_stats(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_impair_show(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_impair_set(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_impair_log(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
int run_top(struct ctl *ctl, const struct command *cmd, int argc, char **argv);
/** Cycles per packet and stage, and busy share, of each worker over some seconds. */
int run_stages(struct ctl *ctl, double seconds);
int run_metrics(struct ctl *ctl, const struct command *cmd, int argc, char **argv);

/* stats.c, for metrics.c */

/**
 * The answer of "stats" as an array of blocks {label, counters}. It is one object of counters, an
 * array of such objects, or an object of them by name.
 */
json_t *stats_blocks(const json_t *result, const char *scope);
/** Names over all blocks in the daemon's order, as the keys of an object. */
json_t *stats_names(const json_t *blocks);
/** 0 where the block has none of that name. */
json_int_t stats_counter(const json_t *blocks, size_t block, const char *name);

/* explain.c: parts of an explanation, one line each; what is null or not there is left out */

/** "what  value" */
void explain_line(const char *what, const json_t *v);
/** "what  label value  label value": members of `o`, each behind its label. */
void explain_parts(
	const char *what, const json_t *o, const char *const *keys, const char *const *labels);
/** An "error" object. */
void explain_error(const json_t *e);
/** "trace": what came before the error, and with it. */
void explain_trace(const json_t *v);

/* help.c */

void help_all(void);
void help_object(const char *object);
void help_command(const struct command *cmd);
/** "one of: a, b" of objects (object NULL) or of an object's verbs. free() it. */
char *help_names(const char *object);
/** Print the words that may follow `argv`, one a line. */
void complete_words(struct ctl *ctl, int argc, char **argv);

#endif
