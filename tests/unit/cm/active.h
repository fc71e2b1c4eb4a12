/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_ACTIVE_H
#define CM_ACTIVE_H
/**
 * @file active.h  A bed whose manager asks the peer.
 *
 * Owner:   unit tests.
 * Memory:  none.
 * Depends: bed.
 */
#include "bed.h"

enum { LIFE = 13 };

static UNUSED struct cm_ask
ask_of(const struct bed *b)
{
	return (struct cm_ask){ .path = b->path,
		.terms = { .qpn = OWN_QPN,
			.psn = OWN_PSN,
			.responder_resources = 3,
			.initiator_depth = 2,
			.retry_count = 5,
			.rnr_retry_count = 6,
			.mtu = 4,
			.srq = true },
		.service_id = SERVICE,
		.source_port = 0xbeef,
		.packet_life = LIFE,
		.ip = true,
		.traffic_class = 0x20,
		.hop_limit = 64,
		.private = (const uint8_t *)"hi",
		.private_len = 2,
		.time = TIME_NS_PER_S };
}

static UNUSED void
connect_bed(struct bed *b)
{
	const struct cm_ask ask = ask_of(b);

	assert_int_equal(cm_connect(&b->cm, &ask, b->now, &b->v), 0);
	b->c = b->v.conn;
	bed_state(b, CM_REQ_SENT);
}

static UNUSED void
rep(struct bed *b)
{
	bed_message(b, CM_REP);
	mad_set(b->mad, REP_local_qpn, PEER_QPN);
	mad_set(b->mad, REP_starting_psn, PEER_PSN);
	mad_set(b->mad, REP_responder_resources, 1);
	mad_set(b->mad, REP_initiator_depth, 1);
	mad_set(b->mad, REP_target_ack_delay, 15);
	mad_set(b->mad, REP_rnr_retry_count, 1);
	mad_set(b->mad, REP_local_ca_guid, PEER_GUID);
	memcpy(mad_at(b->mad, REP_private_data), "well", 4);
}

#endif
