/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PEER_H
#define PEER_H
/**
 * @file peer.h  The guest's end of the tests: verbs on a Soft-RoCE device, told what to do.
 *
 * One JSON object a line comes in ({"id", "method", "params"}), one goes out ({"id", "result"}
 * or {"id", "error"}). Methods, parameters and results have the names of rocelane's control
 * socket, so that one test drives either end. Nothing here decides anything: what verbs say is
 * reported.
 *
 * Owner:   one thread.
 * Memory:  objects live in tables until they are destroyed or the program ends.
 * Depends: libibverbs, jansson.
 */
#include <infiniband/verbs.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PEER_OBJECTS 64
#define PEER_NAME    32

/** A memory region over private memory; `mr` is NULL in a free slot. */
struct region {
	char name[PEER_NAME];
	uint8_t *mem;
	size_t length;
	struct ibv_mr *mr;
};

struct queue {
	char name[PEER_NAME];
	struct ibv_cq *cq;
};

struct pair {
	struct ibv_qp *qp;
};

struct peer {
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	const char *device;
	struct region regions[PEER_OBJECTS];
	struct queue queues[PEER_OBJECTS];
	struct pair pairs[PEER_OBJECTS];
};

/** A name and its value; a table ends with a NULL name. */
struct word {
	const char *name;
	int value;
};

/**
 * A method. @return a new result, or NULL after peer_fail().
 */
typedef json_t *(*method_fn)(struct peer *p, json_t *params);

/** Remember why the method fails: an errno value and what was tried. @return NULL. */
json_t *peer_fail(int err, const char *what);

/* values.c: parameters and words */
/** A number, or one in a string ("0x1001"). @return `fallback` where the key is not there. */
uint64_t value_number(json_t *params, const char *key, uint64_t fallback);
/** @return the string or "". */
const char *value_text(json_t *params, const char *key);
/** @return the value of a word of the table, or -1. */
int value_word(const struct word *table, const char *name);
/** @return the OR of an array of words; words that the table does not have count nothing. */
int value_flags(const struct word *table, json_t *array);
/** @return the word of a value, or "?". */
const char *value_name(const struct word *table, int value);
/** Bytes from hex digits. @return how many, at most `max`. */
size_t value_hex(const char *hex, uint8_t *out, size_t max);
/** "0x…" as a new string. */
json_t *value_json_hex(uint64_t v);
uint32_t value_crc32(const uint8_t *data, size_t length);

/* objects.c */
struct region *region_find(struct peer *p, const char *name);
struct ibv_cq *queue_find(struct peer *p, const char *name);
struct ibv_qp *pair_find(struct peer *p, json_t *params);
/* Of an "ah_attr". @return 0 or -EINVAL. */
int pair_address(struct peer *p, json_t *ah, struct ibv_ah_attr *attr);
json_t *mr_register(struct peer *p, json_t *params);
json_t *mr_deregister(struct peer *p, json_t *params);
json_t *mr_read(struct peer *p, json_t *params);
json_t *mr_write(struct peer *p, json_t *params);
json_t *mr_crc(struct peer *p, json_t *params);
json_t *cq_create(struct peer *p, json_t *params);
json_t *cq_destroy(struct peer *p, json_t *params);

/* pairs.c */
json_t *qp_create(struct peer *p, json_t *params);
json_t *qp_modify(struct peer *p, json_t *params);
json_t *qp_query(struct peer *p, json_t *params);
json_t *qp_destroy(struct peer *p, json_t *params);
json_t *mcast_attach(struct peer *p, json_t *params);
json_t *mcast_detach(struct peer *p, json_t *params);

/* connect.c: one command of the kernel's connection manager each; `id` is its own */
json_t *cm_create(struct peer *p, json_t *params);
json_t *cm_destroy(struct peer *p, json_t *params);
json_t *cm_listen(struct peer *p, json_t *params);
json_t *cm_resolve(struct peer *p, json_t *params);
json_t *cm_route(struct peer *p, json_t *params);
json_t *cm_qp(struct peer *p, json_t *params);
json_t *cm_connect(struct peer *p, json_t *params);
json_t *cm_accept(struct peer *p, json_t *params);
json_t *cm_reject(struct peer *p, json_t *params);
json_t *cm_disconnect(struct peer *p, json_t *params);
json_t *cm_events(struct peer *p, json_t *params);

/* work.c */
json_t *post_send(struct peer *p, json_t *params);
json_t *post_recv(struct peer *p, json_t *params);
json_t *poll_cq(struct peer *p, json_t *params);
json_t *async_events(struct peer *p, json_t *params);

/* host.c: what is no verb */
json_t *stats(struct peer *p, json_t *params);
json_t *version(struct peer *p, json_t *params);
/** Start a program: argv, and the name of a log. @return its pid. */
json_t *run_start(struct peer *p, json_t *params);
/** Wait for it at most wait_ms. @return its status (null: still running) and its output. */
json_t *run_wait(struct peer *p, json_t *params);
#endif
