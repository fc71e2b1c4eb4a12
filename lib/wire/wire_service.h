/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_SERVICE_H
#define WIRE_SERVICE_H
/**
 * @file wire_service.h  Which transport service a type of queue pairs has.
 *
 * Owner:   pure functions: anybody.
 * Memory:  none.
 * Depends: base.
 * Spec:    WIRE-06; tables/services.def.
 */
#include "verbs.h"
#include "wire.h"

/** enum wire_transport of a queue pair's type; RC's where there is none of that type. */
static inline uint8_t
wire_transport_on(uint32_t qp_type)
{
	static const uint8_t transports[] = {
#define SERVICE(type, transport, acked, connected, clause) [QPT_##type] = WIRE_##transport,
#include "tables/services.def"
#undef SERVICE
	};

	return qp_type < ARRAY_LEN(transports) ? transports[qp_type] : WIRE_RC;
}

#endif
