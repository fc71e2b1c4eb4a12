/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_JSON_H
#define CONF_JSON_H
/**
 * @file conf_json.h  One decoder and encoder for the file and for RPC, driven by tables of rows.
 *
 * Owner:   control lcore (or main before the lcores start).
 * Memory:  decoded structs are the caller's; arrays of pointer rows (CONF_T_ARRAY, CONF_T_STRINGS)
 *          are allocated and given back by conf_release. Encoders return a new reference.
 * Depends: base, jansson.
 */
#include <jansson.h>

#include "conf.h"

/* ---- tables ----------------------------------------------------------------------------- */

enum conf_mode { CONF_CREATE, CONF_MODIFY };

enum conf_type {
#define TYPE(name, bytes, decode, encode, allowed, text, fill, release) CONF_T_##name,
#include "tables/types.def"
#undef TYPE
};
#define CONF_TYPES (CONF_T_CUSTOM + 1)

enum {
	CONF_F_REQUIRED = 1 << 0,
	CONF_F_NULL = 1 << 1,    /* null is the same as leaving it out; encoded as null then */
	CONF_F_HEX = 1 << 2,     /* encoded as "0x..." */
	CONF_F_CREATE = 1 << 3,  /* not in a modify */
	CONF_F_MODIFY = 1 << 4,  /* only in a modify */
	CONF_F_DEFAULT = 1 << 5, /* left out: `def` (or `def_str`); an OBJECT: its own defaults */
};

struct conf_name {
	const char *name; /* NULL ends the list */
	uint32_t value;
};

struct conf_bytes {
	uint8_t *data;
	uint32_t len;
};

struct conf_table;

/** For strings with a form of their own; both get the struct that the row belongs to. */
struct conf_custom {
	const char *what; /* what is allowed, for messages */
	/** @return 0, or -EINVAL and the decoder says that it must be `what`. */
	int (*decode)(const char *text, void *obj);
	void (*encode)(const void *obj, char *buf, size_t room);
};

struct conf_field {
	const char *name;
	uint16_t type;  /* enum conf_type */
	uint16_t flags; /* CONF_F_* */
	uint32_t offset;
	uint32_t n_offset; /* CONF_T_ARRAY, _STRINGS, _NUMBERS: where the count is (uint32_t) */
	uint32_t n_min;    /* CONF_T_ARRAY, _STRINGS, _NUMBERS: elements */
	uint32_t n_max;
	uint64_t min; /* number: least value; string: least length */
	uint64_t max;
	uint64_t given; /* bit to set in the struct's `given` mask */
	uint64_t def;
	const char *def_str;
	const struct conf_name *names;
	const struct conf_table *sub;
	const struct conf_custom *custom;
};

#define CONF_NO_GIVEN UINT32_MAX

struct conf_table {
	const char *name; /* of the object, for messages: "qp" */
	const struct conf_field *fields;
	uint32_t n_fields;
	uint32_t size;         /* of the struct, bytes */
	uint32_t given_offset; /* of its uint64_t given mask, or CONF_NO_GIVEN */
	bool sparse;           /* no defaults are filled in, and only given values are encoded */
	const char *shorthand; /* a string in place of the object is the value of this key */
	/**
	 * After all rows: relations inside the object. Values that had a fault are as if left out,
	 * but their given bit is set.
	 */
	void (*check)(void *obj, enum conf_mode mode, struct conf_errors *err);
	/** Take what this object does not have out of its encoding; may be NULL. */
	void (*hide)(const void *obj, json_t *out);
};

extern const struct conf_table conf_table_root;
extern const struct conf_table conf_table_knobs;
extern const struct conf_table conf_table_port;
extern const struct conf_table conf_table_neighbor;
/** A struct that begins with a struct route_prefix. */
extern const struct conf_custom conf_custom_prefix;
extern const struct conf_table conf_table_impair;
extern const struct conf_table conf_table_bottleneck;
extern const struct conf_table conf_table_prio;
extern const struct conf_table conf_table_pd;
extern const struct conf_table conf_table_mr;
extern const struct conf_table conf_table_cq;
extern const struct conf_table conf_table_xrcd;
extern const struct conf_table conf_table_srq;
extern const struct conf_table conf_table_qp;
extern const struct conf_table conf_table_cm;
extern const struct conf_table conf_table_cm_listen;
extern const struct conf_table conf_table_mcast;
extern const struct conf_table conf_table_mw;
extern const struct conf_table conf_table_ah;
extern const struct conf_table conf_table_cap;
extern const struct conf_table conf_table_recv_feed;
extern const struct conf_table conf_table_send_feed;

extern const struct conf_name conf_names_qp_state[]; /* all seven */
extern const struct conf_name conf_names_qp_type[];
extern const struct conf_name conf_names_cm_ps[];
extern const struct conf_name conf_names_cm_accept[];
extern const struct conf_name conf_names_profile[];
extern const struct conf_name conf_names_access[];
extern const struct conf_name conf_names_wr_opcode[];
/** Name of a value, or NULL. */
const char *conf_name_of(const struct conf_name *names, uint32_t value);
/** Names of the bits that are set, as an array; a new reference, NULL: no memory. */
json_t *conf_json_flags(const struct conf_name *names, uint32_t bits);

/**
 * Decode an object into `out` (table->size bytes, cleared first): unknown keys, types, ranges,
 * required keys. A NULL `obj` counts as {}. Every fault goes to err.
 * @return 0, -EINVAL (out holds nothing to release then), -ENOMEM.
 */
int conf_decode(const struct conf_table *table, const json_t *obj, enum conf_mode mode, void *out,
	struct conf_errors *err);
/** Give back what conf_decode allocated inside `out` (nothing for tables without pointer rows). */
void conf_release(const struct conf_table *table, void *out);
/** The object as JSON, every row of a create; NULL: no memory. */
json_t *conf_encode(const struct conf_table *table, const void *obj);

/** Note a fault at the decoder's place, plus "/key" when key is not NULL. */
void conf_fault(struct conf_errors *err, const char *key, const char *fmt, ...) PRINTF(3, 4);
/** The same, as a warning: what has it is accepted all the same. */
void conf_warn(struct conf_errors *err, const char *key, const char *fmt, ...) PRINTF(3, 4);

/** Where the decoder is: go down one key or index; conf_leave with what conf_enter returned. */
uint32_t conf_enter(struct conf_errors *err, const char *key);
/** The same for an element of an array. @param index from 0. */
uint32_t conf_enter_index(struct conf_errors *err, uint32_t index);
/** Go back up. @param mark what conf_enter() or conf_enter_index() has returned. */
void conf_leave(struct conf_errors *err, uint32_t mark);

/* ---- objects of RPC --------------------------------------------------------------------- */

/*
 * Each decodes the parameters of a create. It checks the object alone (ranges, what its qp_state
 * requires), not its references: whether the port, PD or CQ exists is for the caller, who has the
 * live ones. @return 0, or -EINVAL with every fault in err.
 */
/** A protection domain: its name. */
int conf_decode_pd(const json_t *obj, struct conf_pd *out, struct conf_errors *err);
/** A memory region. */
int conf_decode_mr(const json_t *obj, struct conf_mr *out, struct conf_errors *err);
/** A completion queue. */
int conf_decode_cq(const json_t *obj, struct conf_cq *out, struct conf_errors *err);
/** A shared receive queue. */
int conf_decode_srq(const json_t *obj, struct conf_srq *out, struct conf_errors *err);
/** A queue pair, with defaults for what was left out. */
int conf_decode_qp(const json_t *obj, struct conf_qp *out, struct conf_errors *err);
/** The furthest state for which it has all that is required: QPS_RESET .. QPS_RTS. */
uint32_t conf_qp_reaches(const struct conf_qp *qp);
/** qp_num and the attributes to change; out->given has their bits, the rest is 0. */
int conf_decode_qp_modify(const json_t *obj, struct conf_qp *out, struct conf_errors *err);

/** {"name": ...}; NULL: no memory, as of all that follow. */
json_t *conf_encode_pd(const struct conf_pd *pd);
/** A region as its entry of `mrs`. */
json_t *conf_encode_mr(const struct conf_mr *mr);
/** An XRC domain: its name. */
json_t *conf_encode_xrcd(const struct conf_xrcd *xrcd);
/** A CQ as its entry of `cqs`. */
json_t *conf_encode_cq(const struct conf_cq *cq);
/** An SRQ as its entry of `srqs`. */
json_t *conf_encode_srq(const struct conf_srq *srq);
/** A QP as its entry of `qps`, with the attributes that were given. */
json_t *conf_encode_qp(const struct conf_qp *qp);
/** A port as its entry of `ports`. */
json_t *conf_encode_port(const struct conf_port *port);
/** The whole configuration, as a file that loads again to the same structs (save_config). */
json_t *conf_encode_all(const struct conf *c);

#endif
