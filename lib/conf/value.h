/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef VALUE_H
#define VALUE_H
/**
 * @file value.h  Inside lib/conf: one JSON value to one C value, without a word about the fault.
 *
 * Owner:   any thread (pure functions).
 * Memory:  the caller's.
 * Depends: base, jansson (through conf_json.h).
 */
#include "conf_json.h"

/** A JSON integer or a "0x..." string; with `size` also digits with K, M or G. 0 or -EINVAL. */
int conf_value_u64(const json_t *v, bool size, uint64_t *out);
/** "02:00:00:00:00:01", unicast and not all zero. 0 or -EINVAL. */
int conf_value_mac(const json_t *v, uint8_t mac[6]);
/** An IPv4 (with min 4) or IPv6 (with max 6) unicast address. 0 or -EINVAL. */
int conf_value_ip(const json_t *v, uint64_t min, uint64_t max, struct conf_ip *out);
/** An address of 224.0.0.0/4 or ff00::/8. @return 0, -EINVAL. */
int conf_value_group(const json_t *v, struct conf_ip *out);
/** A name of an object: 1..63 printing ASCII characters without blanks. */
bool conf_value_is_name(const json_t *v);
/** An even number of hex digits; *out is allocated. 0, -EINVAL, -ENOMEM. */
int conf_value_hex(const json_t *v, struct conf_bytes *out);
/** The value as a reader knows it from the text, cut to fit. @return buf. */
const char *conf_value_describe(const json_t *v, char *buf, size_t room);

#endif
