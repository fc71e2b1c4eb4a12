/* SPDX-License-Identifier: BSD-3-Clause */
/* The side that asks. */
#include <errno.h>

#include "active.h"

static void
expect(const uint8_t *mad, enum mad_field f, uint64_t want)
{
	if (mad_get(mad, f) != want)
		fail_msg("%s is 0x%llx", mad_fields[f].name, (unsigned long long)mad_get(mad, f));
}

/* CM_03, CM_04, CM_05, CM_06, CM_08, CM_44 */
static void
request(void **state)
{
	static const uint8_t zeros[44];
	struct bed b;
	const uint8_t *m, *ip;
	uint64_t tid;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	m = bed_sent(&b, CM_REQ);
	assert_true(b.c->local_id != 0);
	expect(m, REQ_local_comm_id, b.c->local_id);
	expect(m, REQ_service_id, SERVICE);
	expect(m, REQ_local_ca_guid, OWN_GUID);
	expect(m, REQ_local_qpn, OWN_QPN);
	expect(m, REQ_starting_psn, OWN_PSN);
	expect(m, REQ_transport_service_type, 0);
	expect(m, REQ_retry_count, 5);
	expect(m, REQ_rnr_retry_count, 6);
	expect(m, REQ_responder_resources, 3);
	expect(m, REQ_initiator_depth, 2);
	expect(m, REQ_path_mtu, 4);
	expect(m, REQ_pkey, 0xffff);
	expect(m, REQ_srq, 1);
	expect(m, REQ_end_to_end_flow_control, 1); /* FLOW-01: credits in each ACK */
	expect(m, REQ_primary_local_lid, 0xffff);
	expect(m, REQ_primary_remote_lid, 0xffff);
	expect(m, REQ_primary_hop_limit, 64);
	expect(m, REQ_primary_traffic_class, 0x20);
	expect(m, REQ_primary_subnet_local, 0);
	assert_true(mad_get(m, REQ_primary_local_ack_timeout) != 0);
	assert_true(mad_get(m, REQ_local_cm_response_timeout) != 0);
	assert_true(mad_get(m, REQ_remote_cm_response_timeout) != 0);
	assert_true(mad_get(m, REQ_max_cm_retries) != 0);
	assert_memory_equal(mad_peek(m, REQ_primary_local_gid), own_gid, 16);
	assert_memory_equal(mad_peek(m, REQ_primary_remote_gid), peer_gid, 16);
	assert_memory_equal(mad_peek(m, REQ_alternate_local_lid), zeros, sizeof(zeros));
	ip = mad_peek(m, REQ_private_data);
	expect(ip, IP_version, 0);
	expect(ip, IP_ip_version, 4);
	expect(ip, IP_source_port, 0xbeef);
	assert_memory_equal(mad_peek(ip, IP_source_ip), zeros, 12);
	assert_memory_equal(mad_peek(ip, IP_source_ip) + 12, own_gid + 12, 4);
	assert_memory_equal(mad_peek(ip, IP_destination_ip) + 12, peer_gid + 12, 4);
	assert_memory_equal(ip + MAD_IP_LEN, "hi", 3);
	tid = b.c->tid;
	m = b.c->sent;
	connect_bed(&b);
	assert_true(b.c->tid != tid);
	assert_true(mad_get(b.c->sent, REQ_local_comm_id) != mad_get(m, REQ_local_comm_id));
	bed_fini(&b);
}

/* CM_08: 56 bytes are the user's. CM_42: IPv6 addresses are whole. */
static void
private_data(void **state)
{
	static const uint8_t bytes[93];
	struct bed b;
	struct cm_ask ask;

	(void)state;
	bed_init(&b);
	ask = ask_of(&b);
	ask.private = bytes;
	ask.private_len = 57;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), -EINVAL);
	assert_int_equal(b.cm.n, 0);
	ask.private_len = 56;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	ask.ip = false;
	ask.private_len = 93;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), -EINVAL);
	ask.private_len = 92;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	ask.ip = true;
	ask.private_len = 0;
	memset(ask.path.own_gid, 0x20, 16);
	memset(ask.path.peer_gid, 0x21, 16);
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	expect(mad_peek(b.v.out[0].mad, REQ_private_data), IP_ip_version, 6);
	assert_memory_equal(mad_peek(b.v.out[0].mad, REQ_private_data) + 4, ask.path.own_gid, 16);
	assert_memory_equal(mad_peek(b.v.out[0].mad, REQ_private_data) + 20, ask.path.peer_gid, 16);
	bed_fini(&b);
}

/* CM_24: the queue pair that the REP named has a connection, so its own REQ is a stale one. */
static void
stale_from_the_other_side(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	mad_set(b.mad, REP_local_ca_guid, PEER_GUID);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_local_comm_id, PEER_ID + 1);
	bed_receive(&b);
	assert_int_equal(b.v.drop, CM_DROP_refused);
	expect(b.v.out[0].mad, REJ_reason, 10);
	assert_int_equal(b.cm.n, 1);
	/* One of another adapter has nothing to do with it. */
	mad_set(b.mad, REQ_local_ca_guid, PEER_GUID + 1);
	bed_receive(&b);
	assert_int_equal(b.v.drop, CM_DROP_NONE);
	assert_int_equal(b.cm.n, 2);
	bed_fini(&b);
}

/* CM_12, CM_17, CM_18, CM_19, CM_22: the REP, what is taken of it, and the REP again. */
static void
established(void **state)
{
	struct bed b;
	const uint8_t *rtu;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	assert_int_equal(b.v.todo, CM_DO_CONNECT);
	rtu = bed_sent(&b, CM_RTU);
	expect(rtu, MAD_tid, b.c->tid);
	expect(rtu, RTU_local_comm_id, b.c->local_id);
	expect(rtu, RTU_remote_comm_id, PEER_ID);
	assert_memory_equal(b.c->private, "well", 5);
	assert_int_equal(b.c->taken.retry_cnt, 5);
	assert_int_equal(b.c->taken.rnr_retry, 1);
	assert_int_equal(b.c->taken.max_rd_atomic, 1);
	assert_int_equal(b.c->taken.max_dest_rd_atomic, 1);
	assert_int_equal(b.c->taken.rq_psn, OWN_PSN);
	assert_int_equal(b.c->taken.sq_psn, PEER_PSN);
	assert_int_equal(b.c->taken.dest_qpn, PEER_QPN);
	assert_int_equal(b.c->taken.timeout, cm_ack_timeout(15, LIFE));
	for (int i = 0; i < 2; i++) {
		bed_receive(&b);
		assert_true(b.v.duplicate);
		bed_event(&b, CM_EVENT_NONE, 0);
		bed_sent(&b, CM_RTU);
	}
	assert_false(bed_due(&b, 100 * TIME_NS_PER_S));
	bed_fini(&b);
}

/* CM_16: data.cm_taken */
static void
ack_timeouts(void **state)
{
	(void)state;
	assert_int_equal(cm_ack_timeout(0, 13), 14);
	assert_int_equal(cm_ack_timeout(13, 13), 15);
	assert_int_equal(cm_ack_timeout(15, 13), 16);
	assert_int_equal(cm_ack_timeout(14, 13), 15);
	assert_int_equal(cm_ack_timeout(15, 18), 19); /* Linux with Soft-RoCE */
	assert_int_equal(cm_ack_timeout(31, 13), 31);
	assert_int_equal(cm_ack_timeout(31, 31), 31);
	for (uint8_t life = 0; life < 32; life++)
		for (uint8_t d = 1; d < 32; d++)
			assert_true(cm_ack_timeout(d, life) >= cm_ack_timeout(d - 1, life));
}

static void
silent(ns_t time)
{
	struct cm_ask ask;
	uint8_t req[MAD_LEN];
	struct bed b;
	unsigned int n = 0;
	ns_t began;

	bed_init(&b);
	ask = ask_of(&b);
	ask.time = time;
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	began = b.now;
	memcpy(req, bed_sent(&b, CM_REQ), MAD_LEN);
	for (;;) {
		const ns_t before = b.now;

		while (!bed_due(&b, TIME_NS_PER_MS))
			assert_true(b.now < began + 2 * time);
		assert_true(b.v.over || b.now - before >= cm_time((uint8_t)mad_get(req,
								  REQ_remote_cm_response_timeout)));
		if (b.v.over)
			break;
		assert_memory_equal(bed_sent(&b, CM_REQ), req, MAD_LEN);
		n++;
	}
	assert_in_range(n, 1, mad_get(req, REQ_max_cm_retries));
	assert_in_range(b.now, began + time, began + time + TIME_NS_PER_MS);
	bed_event(&b, CM_EVENT_UNREACHABLE, ETIMEDOUT);
	assert_int_equal(b.v.todo, CM_DO_DOWN);
	expect(bed_sent(&b, CM_REJ), REJ_reason, 4);
	bed_over(&b);
	bed_fini(&b);
}

/* CM_27: the REQ is repeated unchanged, and the whole time has to be over. */
static void
silence(void **state)
{
	(void)state;
	silent(TIME_NS_PER_S);
	silent(7 * TIME_NS_PER_S); /* between two response timeouts */
	silent(30 * TIME_NS_PER_S);
}

/* CM_29: reasons arrive as they are; other ids and TIDs change nothing. */
static void
rejected(void **state)
{
	static const uint16_t reasons[] = { 8, 10, 28, 26, 65535 };
	struct bed b;

	(void)state;
	bed_init(&b);
	for (unsigned int i = 0; i < ARRAY_LEN(reasons); i++) {
		connect_bed(&b);
		bed_message(&b, CM_REJ);
		mad_set(b.mad, MAD_tid, b.c->tid + 1);
		bed_receive(&b);
		bed_dropped(&b, CM_DROP_transaction);
		bed_message(&b, CM_REJ);
		mad_set(b.mad, REJ_remote_comm_id, b.c->local_id ^ 0x10000);
		bed_receive(&b);
		bed_dropped(&b, CM_DROP_unknown);
		bed_message(&b, CM_REJ);
		mad_set(b.mad, REJ_local_comm_id, 0);
		mad_set(b.mad, REJ_reason, reasons[i]);
		memcpy(mad_at(b.mad, REJ_private_data), "why", 3);
		bed_receive(&b);
		bed_event(&b, CM_EVENT_REJECTED, reasons[i]);
		assert_memory_equal(b.c->private, "why", 4);
		assert_int_equal(b.v.todo, CM_DO_DOWN);
		bed_over(&b);
	}
	bed_fini(&b);
}

/* CM_23, CM_34: from another address, or of no connection. */
static void
strangers(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	b.path.peer_gid[15] = 9;
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	bed_state(&b, CM_REQ_SENT);
	b.path.peer_gid[15] = 2;
	bed_message(&b, CM_RTU);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	rep(&b);
	mad_set(b.mad, REP_remote_comm_id, 0x12345678);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_unknown);
	expect(bed_sent(&b, CM_REJ), REJ_reason, 6);
	expect(b.v.out[0].mad, REJ_message_rejected, 1);
	for (enum cm_message m = CM_MRA; m <= CM_APR; m++) {
		if (m == CM_REP || m == CM_SIDR_REQ)
			continue;
		bed_message(&b, m);
		mad_set(b.mad, RTU_remote_comm_id, 0x12345678);
		bed_receive(&b);
		bed_dropped(&b, CM_DROP_unknown);
		if (m != CM_DREQ) {
			bed_silent(&b);
			continue;
		}
		expect(bed_sent(&b, CM_DREP), DREP_local_comm_id, 0x12345678);
		expect(b.v.out[0].mad, DREP_remote_comm_id, PEER_ID);
	}
	rep(&b);
	bed_receive(&b);
	bed_message(&b, CM_DREQ);
	mad_set(b.mad, DREQ_remote_qpn, OWN_QPN + 1);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_qpn);
	bed_silent(&b);
	bed_state(&b, CM_ESTABLISHED);
	bed_fini(&b);
}

/* CM_35: after the end, a REP of the old connection is told so. */
static void
late_rep(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	bed_receive(&b);
	bed_message(&b, CM_DREQ);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_DISCONNECTED, 0);
	rep(&b);
	bed_receive(&b);
	expect(bed_sent(&b, CM_REJ), REJ_reason, 10);
	bed_state(&b, CM_TIMEWAIT);
	bed_fini(&b);
}

/* Both ends disconnect at once. */
static void
both_end(void **state)
{
	struct bed b;

	(void)state;
	bed_init(&b);
	connect_bed(&b);
	rep(&b);
	bed_receive(&b);
	assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), 0);
	bed_message(&b, CM_DREQ);
	mad_set(b.mad, MAD_tid, 0x77);
	bed_receive(&b);
	expect(bed_sent(&b, CM_DREP), MAD_tid, 0x77);
	bed_event(&b, CM_EVENT_DISCONNECTED, 0);
	bed_message(&b, CM_DREP);
	bed_receive(&b);
	assert_true(b.v.duplicate);
	bed_fini(&b);
}

/* CM_41: the first answer counts. */
static void
datagrams(void **state)
{
	struct bed b;
	struct cm_ask ask = { .service_id = 0x1111d2f, .time = TIME_NS_PER_S };

	(void)state;
	bed_init(&b);
	ask.path = b.path;
	ask.terms = (struct cm_terms){ .qpn = OWN_QPN, .mtu = 3, .service = CM_UD };
	assert_int_equal(cm_connect(&b.cm, &ask, b.now, &b.v), 0);
	b.c = b.v.conn;
	bed_sent(&b, CM_SIDR_REQ);
	bed_state(&b, CM_SIDR_REQ_SENT);
	mad_init(b.mad, CM_SIDR_REP, b.c->tid);
	mad_set(b.mad, SIDR_REP_request_id, b.c->local_id);
	mad_set(b.mad, SIDR_REP_qpn, PEER_QPN);
	mad_set(b.mad, SIDR_REP_qkey, 0x11223344);
	bed_receive(&b);
	bed_event(&b, CM_EVENT_ESTABLISHED, 0);
	bed_state(&b, CM_SIDR_REP_RCVD);
	mad_set(b.mad, SIDR_REP_status, 2);
	mad_set(b.mad, SIDR_REP_qpn, 0);
	bed_receive(&b);
	bed_dropped(&b, CM_DROP_state);
	assert_int_equal(b.c->reason, 0);
	assert_int_equal(b.c->peer.qpn, PEER_QPN);
	assert_int_equal(b.c->peer.qkey, 0x11223344);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(request),
		cmocka_unit_test(private_data),
		cmocka_unit_test(established),
		cmocka_unit_test(stale_from_the_other_side),
		cmocka_unit_test(ack_timeouts),
		cmocka_unit_test(silence),
		cmocka_unit_test(rejected),
		cmocka_unit_test(strangers),
		cmocka_unit_test(late_rep),
		cmocka_unit_test(both_end),
		cmocka_unit_test(datagrams),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
