/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROWS_H
#define ROWS_H
/**
 * @file rows.h  Inside lib/conf: what the decoder and the encoder ask of a table's rows.
 *
 * Owner:   any thread (the tables are constant).
 * Memory:  the caller's.
 * Depends: base, jansson (through conf_json.h).
 */
#include "conf_json.h"

/** Does the row stand in objects of this mode? */
bool conf_rows_in_mode(const struct conf_field *f, enum conf_mode mode);
/** The row of a key, or NULL. Cost: linear in the rows. */
const struct conf_field *conf_rows_find(
	const struct conf_table *t, const char *key, enum conf_mode mode);
/** Note that the key at the decoder's place is not allowed, with the nearest one that is. */
void conf_rows_unknown(
	const struct conf_table *t, const char *key, enum conf_mode mode, struct conf_errors *err);
/** "a number from 0 to 31": what a row allows. @return buf. */
const char *conf_rows_allowed(const struct conf_field *f, char *buf, size_t room);
/** Write a number in the width of the row's type. */
void conf_rows_store(const struct conf_field *f, void *at, uint64_t n);
/** Read it. */
uint64_t conf_rows_number(const struct conf_field *f, const void *at);
/** Fill in every default of a struct. @return 0 or -ENOMEM. */
int conf_rows_defaults(const struct conf_table *t, void *out);
/** conf_decode, but what was decoded stays in `out` when there are faults; -ENOMEM too. */
int conf_decode_keep(const struct conf_table *table, const json_t *obj, enum conf_mode mode,
	void *out, struct conf_errors *err);

#endif
