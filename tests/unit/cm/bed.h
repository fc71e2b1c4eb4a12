/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_BED_H
#define CM_BED_H
/**
 * @file bed.h  One connection manager, and the messages of a peer, field by field.
 *
 * Owner:   unit tests.
 * Memory:  one bed a test.
 * Depends: cm, cmocka.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cm.h"
#include "compiler.h"

enum { PEER_ID = 0x51, PEER_QPN = 0x234, OWN_QPN = 0x777, PEER_PSN = 0x123456, OWN_PSN = 0xfedcba };
enum { PEER_TID = 0xabc, RESPONSE = 20, REQ_RETRIES = 3, ACK_TIMEOUT = 14 };

#define SERVICE   UINT64_C(0x1061d2f) /* TCP, 7471 */
#define PEER_GUID UINT64_C(0x0200ccfffe000002)
#define OWN_GUID  UINT64_C(0x0200ccfffe000001)

struct bed {
	struct cm cm;
	struct cm_verdict v;
	struct cm_listener *l;
	struct cm_conn *c;
	struct cm_path path;
	ns_t now;
	uint8_t mad[MAD_LEN]; /* the peer's next message */
};

static const uint8_t own_gid[16] = { [10] = 0xff, 0xff, 10, 77, 0, 1 };
static const uint8_t peer_gid[16] = { [10] = 0xff, 0xff, 10, 77, 0, 2 };

static inline void
bed_init_with(struct bed *b, struct cm_limits limits)
{
	int rc;

	memset(b, 0, sizeof(*b));
	b->now = 5 * TIME_NS_PER_S;
	assert_int_equal(cm_init(&b->cm, &limits, 42, OWN_GUID, b->now), 0);
	b->path.has_mac = true;
	memcpy(b->path.own_gid, own_gid, 16);
	memcpy(b->path.peer_gid, peer_gid, 16);
	b->l = cm_listen(&b->cm, 0, SERVICE, NULL, &rc);
	assert_non_null(b->l);
}

static inline void
bed_init(struct bed *b)
{
	bed_init_with(b, (struct cm_limits){ 64, 16, 1000 });
}

static inline void
bed_fini(struct bed *b)
{
	cm_fini(&b->cm);
}

/** The peer's message: a REQ that can be served, or ids and TID of the connection. */
static UNUSED uint8_t *
bed_message(struct bed *b, enum cm_message m)
{
	uint8_t *mad = b->mad, *ip;

	mad_init(mad, m, b->c != NULL ? b->c->tid : PEER_TID);
	mad_set(mad, RTU_local_comm_id, PEER_ID);
	if (m != CM_REQ) {
		mad_set(mad, RTU_remote_comm_id, b->c != NULL ? b->c->local_id : 0);
		if (m == CM_DREQ)
			mad_set(mad, DREQ_remote_qpn, OWN_QPN);
		return mad;
	}
	mad_set(mad, MAD_tid, PEER_TID);
	mad_set(mad, REQ_service_id, SERVICE);
	mad_set(mad, REQ_local_ca_guid, PEER_GUID);
	mad_set(mad, REQ_local_qpn, PEER_QPN);
	mad_set(mad, REQ_starting_psn, PEER_PSN);
	mad_set(mad, REQ_responder_resources, 3);
	mad_set(mad, REQ_initiator_depth, 2);
	mad_set(mad, REQ_remote_cm_response_timeout, RESPONSE);
	mad_set(mad, REQ_local_cm_response_timeout, RESPONSE);
	mad_set(mad, REQ_retry_count, 5);
	mad_set(mad, REQ_rnr_retry_count, 6);
	mad_set(mad, REQ_pkey, 0xffff);
	mad_set(mad, REQ_path_mtu, 3);
	mad_set(mad, REQ_max_cm_retries, REQ_RETRIES);
	memcpy(mad_at(mad, REQ_primary_local_gid), peer_gid, 16);
	memcpy(mad_at(mad, REQ_primary_remote_gid), own_gid, 16);
	mad_set(mad, REQ_primary_local_ack_timeout, ACK_TIMEOUT);
	ip = mad_at(mad, REQ_private_data);
	mad_set(ip, IP_ip_version, 4);
	memcpy(ip + MAD_IP_LEN, "hello", 5);
	return mad;
}

static UNUSED void
bed_receive(struct bed *b)
{
	const struct cm_packet p = { .mad = b->mad, .len = MAD_LEN, .path = b->path };

	cm_receive(&b->cm, &p, b->now, &b->v);
}

/** A REQ with this id, of one of many addresses. */
static UNUSED void
bed_from(struct bed *b, uint32_t source, uint32_t id)
{
	bed_message(b, CM_REQ);
	mad_set(b->mad, REQ_local_comm_id, id);
	mad_set(b->mad, REQ_local_qpn, 0x1000 + id);
	b->path.peer_gid[12] = (uint8_t)(source >> 16);
	b->path.peer_gid[13] = (uint8_t)(source >> 8);
	b->path.peer_gid[14] = (uint8_t)source;
	memcpy(mad_at(b->mad, REQ_primary_local_gid), b->path.peer_gid, 16);
	bed_receive(b);
}

/** The message that the verdict sends; there is exactly one. */
static UNUSED const uint8_t *
bed_sent(struct bed *b, enum cm_message m)
{
	assert_int_equal(b->v.outs, 1);
	assert_int_equal(mad_check(b->v.out[0].mad, MAD_LEN), MAD_GOOD);
	assert_int_equal(mad_message(b->v.out[0].mad), m);
	assert_memory_equal(b->v.out[0].path.peer_gid, peer_gid, 16);
	return b->v.out[0].mad;
}

static UNUSED void
bed_silent(struct bed *b)
{
	assert_int_equal(b->v.outs, 0);
}

static UNUSED void
bed_state(struct bed *b, enum cm_state s)
{
	assert_non_null(b->c);
	assert_string_equal(cm_state_name(b->c->state), cm_state_name(s));
}

/** Dropped for this reason, and nothing has changed. */
static UNUSED void
bed_dropped(struct bed *b, enum cm_drop d)
{
	assert_string_equal(cm_drop_text(b->v.drop), cm_drop_text(d));
	assert_int_equal(b->v.event, CM_EVENT_NONE);
	assert_int_equal(b->v.todo, CM_DO_NONE);
}

/** Go on for so long; @return false: nothing fell due. */
static UNUSED bool
bed_due(struct bed *b, ns_t after)
{
	b->now += after;
	return cm_timer(&b->cm, b->now, &b->v);
}

static UNUSED void
bed_event(struct bed *b, enum cm_event e, uint16_t status)
{
	assert_int_equal(b->v.drop, CM_DROP_NONE);
	assert_int_equal(b->v.event, e);
	assert_int_equal(b->v.status, status);
}

/** Give the place back, as the caller of the module does. */
static UNUSED void
bed_over(struct bed *b)
{
	assert_true(b->v.over);
	cm_forget(&b->cm, b->v.conn);
	b->c = NULL;
	assert_int_equal(b->cm.n, 0);
	assert_int_equal(b->cm.half_open, 0);
	assert_int_equal(b->l->pending, 0);
}

/** CM-40: the peer gave up; its place is free a moment later, and nothing more is said. */
static UNUSED void
bed_forgotten(struct bed *b)
{
	bed_state(b, CM_REJ_RCVD);
	assert_false(b->v.over);
	assert_int_equal(b->cm.half_open, 1);
	assert_false(bed_due(b, TIME_NS_PER_S));
	assert_true(bed_due(b, 200 * TIME_NS_PER_MS));
	bed_silent(b);
	bed_event(b, CM_EVENT_NONE, 0);
	bed_over(b);
}

/** A REQ comes and stands in REQ_RCVD. */
static UNUSED void
bed_asked(struct bed *b)
{
	bed_message(b, CM_REQ);
	bed_receive(b);
	assert_int_equal(b->v.drop, CM_DROP_NONE);
	assert_int_equal(b->v.todo, CM_DO_ASK);
	bed_silent(b);
	b->c = b->v.conn;
}

/** ... and is accepted. */
static UNUSED void
bed_accept(struct bed *b)
{
	const struct cm_terms own = { .qpn = OWN_QPN,
		.psn = OWN_PSN,
		.responder_resources = 16,
		.initiator_depth = 16,
		.rnr_retry_count = 1 };

	bed_asked(b);
	assert_int_equal(
		cm_accept(&b->cm, b->c, &own, (const uint8_t *)"yes", 3, b->now, &b->v), 0);
	bed_state(b, CM_REP_SENT);
}

static UNUSED void
bed_passive_up(struct bed *b)
{
	bed_accept(b);
	bed_message(b, CM_RTU);
	bed_receive(b);
	bed_event(b, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(b->v.todo, CM_DO_READY);
	bed_state(b, CM_ESTABLISHED);
}

#endif
