/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TABLE_ROWS_H
#define TABLE_ROWS_H
/**
 * @file table_rows.h  Inside lib/conf: how a row of a table is written.
 *
 * Owner:   compile time.
 * Memory:  none.
 * Depends: base, jansson (through conf_json.h).
 *
 * ROW_x(struct, member, "key", ...) names the JSON key, the member, and what else the row says; the
 * member's C type is checked against the row's. S below is always a struct tag.
 */
#include "conf_json.h"

/* clang-format off */
#define TYPED(S, m, T) _Generic(((struct S *)NULL)->m, T : offsetof(struct S, m))

#define ROW_U8(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_U8, .offset = TYPED(S, m, uint8_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_U16(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_U16, .offset = TYPED(S, m, uint16_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_U32(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_U32, .offset = TYPED(S, m, uint32_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_U64(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_U64, .offset = TYPED(S, m, uint64_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_SIZE32(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_SIZE32, .offset = TYPED(S, m, uint32_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_SIZE64(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_SIZE64, .offset = TYPED(S, m, uint64_t), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_REAL(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_REAL, .offset = TYPED(S, m, double), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_BOOL(S, m, key, ...) \
	{ .name = key, .type = CONF_T_BOOL, .offset = TYPED(S, m, bool), __VA_ARGS__ }
#define ROW_NAME(S, m, key, ...) \
	{ .name = key, .type = CONF_T_NAME, .offset = TYPED(S, m, char *), .min = 1, .max = CONF_NAME_MAX - 1, __VA_ARGS__ }
#define ROW_STR(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_STR, .offset = TYPED(S, m, char *), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_ENUM(S, m, key, list, ...) \
	{ .name = key, .type = CONF_T_ENUM, .offset = TYPED(S, m, uint32_t), .names = list, __VA_ARGS__ }
#define ROW_PICK(S, m, key, list, ...) \
	{ .name = key, .type = CONF_T_PICK, .offset = TYPED(S, m, uint32_t), .names = list, __VA_ARGS__ }
#define ROW_FLAGS(S, m, key, list, ...) \
	{ .name = key, .type = CONF_T_FLAGS, .offset = TYPED(S, m, uint32_t), .names = list, __VA_ARGS__ }
#define ROW_MAC(S, m, key, ...) \
	{ .name = key, .type = CONF_T_MAC, .offset = TYPED(S, m, uint8_t *), __VA_ARGS__ }
#define ROW_IPV4(S, m, key, ...) \
	{ .name = key, .type = CONF_T_IPV4, .offset = TYPED(S, m, uint8_t *), __VA_ARGS__ }
#define ROW_IPV6(S, m, key, ...) \
	{ .name = key, .type = CONF_T_IPV6, .offset = TYPED(S, m, uint8_t *), __VA_ARGS__ }
#define ROW_IP(S, m, key, lo, hi, ...) \
	{ .name = key, .type = CONF_T_IP, .offset = TYPED(S, m, struct conf_ip), .min = lo, .max = hi, __VA_ARGS__ }
#define ROW_ANY_IP(S, m, key, ...) \
	{ .name = key, .type = CONF_T_ANY_IP, .offset = TYPED(S, m, struct conf_ip), __VA_ARGS__ }
#define ROW_GROUP(S, m, key, ...) \
	{ .name = key, .type = CONF_T_GROUP, .offset = TYPED(S, m, struct conf_ip), __VA_ARGS__ }
#define ROW_OBJECT(S, m, key, table, ...) \
	{ .name = key, .type = CONF_T_OBJECT, .offset = offsetof(struct S, m), .sub = table, __VA_ARGS__ }
#define ROW_ARRAY(S, m, n_m, key, table, lo, hi, ...) \
	{ .name = key, .type = CONF_T_ARRAY, .offset = offsetof(struct S, m), .n_offset = TYPED(S, n_m, uint32_t), \
		.n_min = lo, .n_max = hi, .sub = table, __VA_ARGS__ }
#define ROW_CUSTOM(S, m, key, how, ...) \
	{ .name = key, .type = CONF_T_CUSTOM, .offset = offsetof(struct S, m), .custom = how, __VA_ARGS__ }

#define REQUIRED     CONF_F_REQUIRED
#define NULLABLE     CONF_F_NULL
#define WITH(f)      .flags = (f)
#define GIVEN(bit)   .given = (bit)
#define DEFAULT(v)   .def = (v)
#define TABLE_ROWS(r) .fields = (r), .n_fields = ARRAY_LEN(r)
/* clang-format on */

/* Relations inside one object (check.c); the type is that of conf_table.check. */
/** A neighbour has exactly one address, IPv4 or IPv6. */
void conf_check_neighbor(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A port has an address. */
void conf_check_port(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A rule: keys that its action needs, or does not know. */
void conf_check_impair_rule(void *obj, enum conf_mode mode, struct conf_errors *err);
/** The rules of a port as a whole. */
void conf_check_impair(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A bottleneck: its thresholds are in order. */
void conf_check_bottleneck(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A region ends below 2^64, and its rights go together. */
void conf_check_mr(void *obj, enum conf_mode mode, struct conf_errors *err);
/** Take what an SRQ that is not of type XRC does not have out of its encoding. */
void conf_hide_srq(const void *obj, json_t *out);
/** An SRQ: its limit is within its depth, and what its type has. */
void conf_check_srq(void *obj, enum conf_mode mode, struct conf_errors *err);
/** An address vector: the destination. */
void check_ah(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A send_feed: sizes that its opcode allows. */
void conf_check_send_feed(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A QP: what its state requires, and what excludes each other. */
void conf_check_qp(void *obj, enum conf_mode mode, struct conf_errors *err);
/** A warning where requests are not checked; the knobs are those of a QP, or everybody's. */
void conf_check_psn_check(const struct conf_knobs *k, struct conf_errors *err);
/** A listener: a QP that the manager can make. */
void conf_check_cm_listen(void *obj, enum conf_mode mode, struct conf_errors *err);
/** Control: its two sockets are different ones. */
void conf_check_control(void *obj, enum conf_mode mode, struct conf_errors *err);
/** Lcores: control and workers are different ones. */
void conf_check_lcores(void *obj, enum conf_mode mode, struct conf_errors *err);

#endif
