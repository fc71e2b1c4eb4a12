/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_JSON_VALUE_H
#define CONF_JSON_VALUE_H
/**
 * @file conf_json_value.h  Single values as JSON, the same in the file and in every reply.
 *
 * Owner:   control lcore (or main before the lcores start).
 * Memory:  each function returns a new reference, NULL: no memory.
 * Depends: jansson.
 */
#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

/** "0x1f" */
json_t *conf_json_hex(uint64_t v);
/** A number; as "0x..." above INT64_MAX, which JSON's integers here do not hold. */
json_t *conf_json_u64(uint64_t v);
/** "02:00:00:00:00:01" */
json_t *conf_json_mac(const uint8_t mac[6]);
/**
 * Append to an array. Takes both references over, and gives both back on a failure.
 * @return the list, or NULL: one of them was NULL, or there is no memory.
 */
json_t *conf_json_append(json_t *list, json_t *item);
/** Bytes of a value when it is written compactly. Cost: as much as writing it. */
size_t conf_json_size(const json_t *v);

#endif
