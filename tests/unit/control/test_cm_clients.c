/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that listen for connections, and look at what came late or not at all. */
#include "with_socket.h"

#include "connect.h"
#include "connect_client.h"
#include "control_state.h"
#include "wire_build.h"

#define OWN      10, 0, 0, 1
#define PEER     10, 0, 0, 9
#define PEER_MAC 2, 0, 0, 0, 0, 9
#define SERVICE  0x1061d2fu /* port 7471 of RDMA_PS_TCP */

/** A method of a client. @return its result. */
static json_t *
ask(int fd, const char *method, const char *params)
{
	char line[512];
	json_t *v, *result;

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\",\"params\":%s}\n", method, params);
	put_text(fd, line);
	v = get_json(fd);
	result = json_incref(json_object_get(v, "result"));
	assert_non_null(result);
	json_decref(v);
	return result;
}

/** @return a client that listens; *channel is what it hears by. */
static int
listener(json_int_t *channel)
{
	const int fd = client();
	char params[128];
	json_t *v;

	json_decref(rpc_ok("neighbor_add", "{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\","
					   "\"mac\":\"02:00:00:00:00:09\"}"));
	json_decref(ask(fd, "client_open", "{\"abi\":1}"));
	v = ask(fd, "client_cm_channel_create", "{}");
	*channel = number_of(v, "handle");
	json_decref(v);
	snprintf(params, sizeof(params), "{\"channel\":%d,\"service_port\":7471,\"backlog\":1}",
		(int)*channel);
	json_decref(ask(fd, "client_cm_listen", params));
	return fd;
}

/** A REQ that can be served. */
static void
request(uint32_t id)
{
	static const uint8_t own[16] = { [10] = 0xff, 0xff, OWN },
			     peer[16] = { [10] = 0xff, 0xff, PEER };
	const struct wire_path way = { .dmac = { 2, 0, 0, 0, 0, 1 },
		.smac = { PEER_MAC },
		.dst_ip = { OWN },
		.src_ip = { PEER },
		.ttl = 64,
		.sport = 0xc000 };
	uint8_t mad[MAD_LEN], frame[512];
	const struct wire_fields f = { .opcode = 0x64,
		.pkey = 0xffff,
		.dest_qpn = MAD_QPN,
		.deth = { .qkey = MAD_QKEY, .src_qpn = MAD_QPN },
		.payload = mad,
		.payload_len = MAD_LEN };
	int len;

	mad_init(mad, CM_REQ, id);
	mad_set(mad, REQ_local_comm_id, id);
	mad_set(mad, REQ_service_id, SERVICE);
	mad_set(mad, REQ_local_qpn, 0x100u + id);
	mad_set(mad, REQ_pkey, 0xffff);
	mad_set(mad, REQ_path_mtu, 3);
	mad_set(mad, REQ_remote_cm_response_timeout, 12);
	mad_set(mad, REQ_local_cm_response_timeout, 12);
	memcpy(mad_at(mad, REQ_primary_local_gid), peer, 16);
	memcpy(mad_at(mad, REQ_primary_remote_gid), own, 16);
	mad_set(mad_at(mad, REQ_private_data), IP_ip_version, 4);
	len = wire_build(&way, &f, 0, frame, sizeof(frame));
	assert_true(len > 0);
	connect_frame(&fake.c->connect, 0, frame, (uint32_t)len);
	turn();
}

/** @return the next event of the channel. */
static json_int_t
hears(int fd, json_int_t channel)
{
	char params[64];
	json_int_t event;
	json_t *v;

	snprintf(params, sizeof(params), "{\"channel\":%d}", (int)channel);
	v = ask(fd, "client_cm_events", params);
	assert_int_equal(json_array_size(v), 1);
	event = number_of(json_array_get(v, 0), "event");
	json_decref(v);
	return event;
}

/** The program's time to answer goes by. */
static void
too_long(void)
{
	for (uint32_t i = 0; i < 20; i++) {
		fake.now += 10 * TIME_NS_PER_S;
		turn();
	}
}

/*
 * CM-26, CM-31: requests that are over before their program reads of them are not told any more:
 * what waits for it is no more than its backlog, however long it looks away.
 */
static void
requests_that_nobody_reads(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);

	for (uint32_t i = 1; i <= 5; i++) {
		request(i);
		assert_int_equal(fake.c->connect.cm.n, 1);
		too_long();
		assert_int_equal(fake.c->connect.cm.n, 0);
		assert_int_equal(TAILQ_FIRST(&cl->channels)->ids, 1); /* the listener */
	}
	assert_true(TAILQ_EMPTY(&TAILQ_FIRST(&cl->channels)->notices));
	request(6); /* the place is free */
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-26: who has heard of a request and does not answer hears of its end. */
static void
a_request_that_is_not_answered(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);

	request(1);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	too_long();
	assert_int_equal(fake.c->connect.cm.n, 0);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_ERROR);
	close(fd);
}

/* CM-31: the backlog is of those of which the program has not heard. */
static void
who_is_heard_takes_no_place(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);

	request(1);
	request(2);
	assert_int_equal(fake.c->connect.cm.n, 1);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	request(2);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	assert_int_equal(fake.c->connect.cm.n, 2);
	close(fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(requests_that_nobody_reads),
		WITH_SOCKET(a_request_that_is_not_answered),
		WITH_SOCKET(who_is_heard_takes_no_place),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
