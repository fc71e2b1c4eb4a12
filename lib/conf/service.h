/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef SERVICE_H
#define SERVICE_H
/**
 * @file service.h  Inside lib/conf: keys of a queue pair that its transport service does not have.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: base, jansson (through conf_json.h).
 * Spec:    UC-21.
 */
#include "conf_json.h"

/** A key, or a feed, that queue pairs of this type do not have. */
void conf_check_service(const struct conf_qp *qp, struct conf_errors *err);
/** Take such keys out of the object made of `qp`. */
void conf_hide_service(const struct conf_qp *qp, json_t *o);

#endif
