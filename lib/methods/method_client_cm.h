/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef METHOD_CLIENT_CM_H
#define METHOD_CLIENT_CM_H
/**
 * @file method_client_cm.h  What the methods of applications' connections share.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: rpc, apps, connect.
 */
#include "methods.h"

struct connect_client;
struct connect_id;

/** Who calls. @return NULL: no memory, and the call was answered. */
struct connect_client *method_cm_client(struct rpc_call *call);
/** An id of whoever calls. @return NULL with the refusal in *r. */
struct connect_id *method_cm_id(struct rpc_call *call, uint32_t handle, struct refusal *r);

#endif
