/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EVENTS_H
#define EVENTS_H
/**
 * @file events.h  Asynchronous events: from the workers' event queues into a bounded one for users.
 *
 * Owner:   control lcore.
 * Memory:  a fixed ring; an event holds numbers and no pointer to any object.
 * Depends: mbox ring, jansson.
 * Spec:    AE-01..12, AEQ-05..12, AEQ-14, RX-ERR-04.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "mbox.h"
#include "objects.h"
#include "qp_failure.h"

#define EVENTS_MAX 4096

struct owner;
struct diagnose;
struct qp;

struct event {
	ns_t time_ns;
	uint64_t lost;   /* overflow entry: how many */
	uint32_t number; /* QPN, id of a CQ or SRQ, index of the port */
	uint32_t psn;
	uint16_t rule;
	uint8_t of;    /* enum object_kind */
	uint8_t event; /* ibv_event_type; EVENT_OVERFLOW */
	uint8_t fatal;
	uint8_t opcode;
	uint8_t syndrome;
	uint16_t code;           /* enum aeq_code, 0: none */
	const char *source;      /* "RQ": static */
	struct qp_failure about; /* of a failure: the request, and memory that was refused */
};
#define EVENT_OVERFLOW 0xff

struct events {
	struct event ring[EVENTS_MAX];
	uint32_t head;
	uint32_t n;
	uint64_t overflow;      /* events lost, all told */
	uint64_t seen_lost[64]; /* losses of workers' queues already reported, by worker */
};

/** A FATAL message: why a QP went to ERR. */
void events_fatal(struct diagnose *dg, const struct mbox_msg *m, uint16_t worker);
/**
 * Everything valid in a worker's event queue, in order; the entries are given back at the end, at
 * once. Objects that are gone are passed over (AE-09). @return how many.
 */
uint32_t events_drain(struct diagnose *dg, uint16_t worker);
/** The device itself failed: EVENT_DEVICE_FATAL. */
void events_device(struct diagnose *dg, uint32_t port);
/** An event of a port: EVENT_PORT_ACTIVE or EVENT_PORT_ERR. */
void events_port(struct diagnose *dg, uint32_t port, bool up);
/** Report what workers lost because their queue was full (AEQ-14). */
void events_check_lost(struct diagnose *dg);
/** Events of a QP, CQ or SRQ that is being destroyed are taken out of the queue. */
void events_forget(struct diagnose *dg, enum object_kind of, uint32_t number);
/** An event as it is told; a new reference, NULL: no memory. */
json_t *events_json(struct diagnose *dg, const struct event *e);
/** Oldest event as JSON, taken out; NULL: none, or no memory. */
json_t *events_take(struct diagnose *dg);
/** How many wait to be taken. */
uint32_t events_waiting(const struct diagnose *dg);
/** The i-th of those as JSON, 0 is the oldest; it stays. NULL: no memory. */
json_t *events_look(struct diagnose *dg, uint32_t i);

/**
 * The rule behind an event and what was wrong, or what else there is to say; a new reference.
 * @param viewer an application, or NULL: the operator.
 */
json_t *events_detail(struct diagnose *dg, const struct owner *viewer, const struct event *e);
/** "QP_FATAL" of 1; "UNKNOWN" of what has no name. */
const char *events_name(uint8_t event);

#endif
