/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVICE_H
#define SERVICE_H
/**
 * @file service.h  Inside lib/conf: keys of a queue pair that its transport service does not have.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: base, jansson (through conf_json.h).
 * Spec:    UC-21, UD-23, UD-24.
 */
#include "conf_json.h"

/** Have queue pairs of this type the key with this bit, QP_ATTR_*? */
bool conf_has_key(uint32_t qp_type, uint64_t bit);
/** A completion queue or XRC domain that queue pairs of this type need. */
void conf_check_objects(const struct conf_qp *qp, struct conf_errors *err);
/** A key, or a feed, that queue pairs of this type do not have. */
void conf_check_service(const struct conf_qp *qp, struct conf_errors *err);
/** Take such keys out of the encoding of a struct conf_qp: conf_table.hide. */
void conf_hide_service(const void *obj, json_t *out);

#endif
