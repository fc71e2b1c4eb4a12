/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RPC_PARAMS_H
#define RPC_PARAMS_H
/**
 * @file rpc_params.h  Parameters of methods: rows of conf_tables, and structs that several share.
 *
 * Owner:   compile time.
 * Memory:  none.
 * Depends: conf.
 */
#include "conf_json.h"

/* clang-format off */
#define P_NUMBER(S, m, t, lo, hi, ...) \
	{ .name = #m, .type = t, .offset = offsetof(struct S, m), .min = lo, .max = hi, \
		__VA_ARGS__ }
#define P_U32(S, m, lo, hi, ...) P_NUMBER(S, m, CONF_T_U32, lo, hi, __VA_ARGS__)
#define P_U64(S, m, ...) P_NUMBER(S, m, CONF_T_U64, 0, UINT64_MAX, __VA_ARGS__)
#define P_SIZE32(S, m, hi, ...) P_NUMBER(S, m, CONF_T_SIZE32, 0, hi, __VA_ARGS__)
#define P_SIZE64(S, m, ...) P_NUMBER(S, m, CONF_T_SIZE64, 0, UINT64_MAX, __VA_ARGS__)
#define P_QPN(S, m, ...) P_NUMBER(S, m, CONF_T_U32, 0, 0xffffff, __VA_ARGS__)
#define P_NAME(S, m, ...) \
	{ .name = #m, .type = CONF_T_NAME, .offset = offsetof(struct S, m), .min = 1, \
		.max = CONF_NAME_MAX - 1, __VA_ARGS__ }
#define P_BOOL(S, m, ...) \
	{ .name = #m, .type = CONF_T_BOOL, .offset = offsetof(struct S, m), __VA_ARGS__ }
#define P_ENUM(S, m, list, ...) \
	{ .name = #m, .type = CONF_T_ENUM, .offset = offsetof(struct S, m), .names = list, \
		__VA_ARGS__ }
#define P_ARRAY(S, m, n_m, table, most, ...) \
	{ .name = #m, .type = CONF_T_ARRAY, .offset = offsetof(struct S, m), \
		.n_offset = offsetof(struct S, n_m), .n_max = most, .sub = table, __VA_ARGS__ }
#define P_REQUIRED     .flags = CONF_F_REQUIRED
#define P_OPTIONAL     .flags = CONF_F_NULL
#define P_DEFAULT(v)   .flags = CONF_F_DEFAULT, .def = (v)
#define P_TABLE(S, rows, what) \
	{ .name = what, .fields = rows, .n_fields = ARRAY_LEN(rows), .size = sizeof(struct S), \
		.given_offset = CONF_NO_GIVEN }
#define P_TABLE_GIVEN(S, rows, what) \
	{ .name = what, .fields = rows, .n_fields = ARRAY_LEN(rows), .size = sizeof(struct S), \
		.given_offset = offsetof(struct S, given) }
/* clang-format on */

#endif
