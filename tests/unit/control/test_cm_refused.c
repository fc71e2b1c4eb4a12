/* SPDX-License-Identifier: BSD-3-Clause */
/* What a program that listens may not have, and what is told of a connection that it refuses. */
#include "cm_bed.h"

#include "owner.h"

enum { FRAME_MAD = 14 + 20 + 8 + 12 + 8 };

/** The message that went out last. */
static const uint8_t *
sent_last(void)
{
	fake.env.pump(NULL);
	assert_true(fake.frames_n != 0);
	return fake.frames[fake.frames_n - 1].data + FRAME_MAD;
}

/** @return what is told of connection `id`. */
static json_t *
story_of(uint32_t id)
{
	char params[32];

	snprintf(params, sizeof(params), "{\"id\":%u}", id);
	return rpc_ok("cm_explain", params);
}

/* CM-40: with as many peers that wait as a program may have, the next is refused, and costs it
 * nothing. */
static void
CM_40_more_than_may_wait(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	const struct connect_channel *ch = TAILQ_FIRST(&cl->channels);
	uint64_t ids;

	cl->owner->most[OWNER_CM_PENDING] = 2;
	for (uint32_t i = 1; i <= 2; i++) {
		request(i);
		assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	}
	ids = cl->owner->has[OWNER_CM_IDS];
	assert_int_equal(cl->owner->has[OWNER_CM_PENDING], 2);
	fake.frames_n = 0;
	request(3);
	assert_int_equal(mad_message(sent_last()), CM_REJ);
	assert_int_equal(mad_get(sent_last(), REJ_reason), CM_REJ_NO_RESOURCES);
	assert_int_equal(fake.c->connect.cm.n, 2);
	assert_int_equal(cl->owner->has[OWNER_CM_PENDING], 2);
	assert_int_equal(cl->owner->has[OWNER_CM_IDS], ids);
	assert_int_equal(ch->ids, 3); /* the listener, and who may wait */
	assert_true(TAILQ_EMPTY(&ch->notices));
	/* One that is over makes room. */
	give_up(1);
	assert_int_equal(hears(fd, channel), CONNECT_REJECTED);
	fake.now += 2 * TIME_NS_PER_S;
	turn();
	request(3);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-13: a connection that is refused here has the reason that the peer was told. */
static void
CM_13_reason_of_an_own_refusal(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	const struct connect_id *asks;
	char params[64];
	uint32_t id;
	json_t *v;

	request(1);
	asks = TAILQ_LAST(&cl->ids, connect_ids);
	id = asks->cc->id;
	v = story_of(id);
	assert_int_equal(number_of(v, "reason"), 0);
	json_decref(v);
	snprintf(params, sizeof(params), "{\"handle\":%u}", asks->handle);
	json_decref(ask(fd, "client_cm_reject", params));
	assert_int_equal(mad_get(sent_last(), REJ_reason), CM_REJ_CONSUMER_DEFINED);
	v = story_of(id);
	assert_int_equal(number_of(v, "reason"), CM_REJ_CONSUMER_DEFINED);
	assert_string_equal(json_string_value(json_array_get(json_object_get(v, "why"), 0)),
		"rejected by this side");
	json_decref(v);
	close(fd);
}

/** Can the id be disconnected? It has no connection: only if it is nothing else, either. */
static bool
disconnects(int fd, uint32_t handle)
{
	char line[160];
	json_t *v;
	bool yes;

	snprintf(line, sizeof(line),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"client_cm_disconnect\","
		"\"params\":{\"handle\":%u}}\n",
		handle);
	put_text(fd, line);
	v = get_json(fd);
	yes = json_object_get(v, "error") == NULL;
	json_decref(v);
	return yes;
}

/* CM-12: an id whose listener has ended does not listen, and nothing is charged for it. */
static void
CM_12_a_listener_ends(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	const struct connect_id *id = TAILQ_FIRST(&cl->ids);
	struct refusal r;

	assert_int_equal(id->listeners, 1);
	assert_int_equal(cl->owner->has[OWNER_CM_LISTENERS], 1);
	assert_false(disconnects(fd, id->handle));
	assert_int_equal(
		connect_unlisten(&fake.c->connect, fake.c->connect.listeners[0].conf.name, &r), 0);
	assert_int_equal(id->listeners, 0);
	assert_int_equal(cl->owner->has[OWNER_CM_LISTENERS], 0);
	assert_true(disconnects(fd, id->handle));
	close(fd);
}

/** The port of a new id. @param wanted 0: any. @param next where the search for one begins. */
static json_int_t
bound(int fd, json_int_t channel, uint32_t wanted, uint16_t next)
{
	char params[96];
	json_int_t port;
	json_t *v;

	fake.c->connect.next_port = next;
	snprintf(params, sizeof(params), "{\"channel\":%d,\"service_port\":%u}", (int)channel,
		wanted);
	v = ask(fd, "client_cm_bind", params);
	port = number_of(v, "service_port");
	json_decref(v);
	return port;
}

/* CM-12: who names no port gets one that nobody has: no application, and no listener of ours. */
static void
CM_12_a_free_port(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);

	assert_int_equal(bound(fd, channel, 0, 0xffff), 0xffff);
	assert_int_equal(bound(fd, channel, 0, 0xffff), 0xc000); /* once round */
	assert_int_equal(bound(fd, channel, 0, 0xc000), 0xc001);
	assert_int_equal(bound(fd, channel, 0x1d05, 0), 0x1d05);
	assert_int_equal(bound(fd, channel, 0, 0xdd05), 0xdd05); /* another one */
	fake.c->connect.listeners[0].conf.service_port = 0xc002;
	assert_int_equal(bound(fd, channel, 0, 0xc000), 0xc003);
	close(fd);
}

/* CM-11: an RTU comes, and the queue pair is gone: the connection is not told of as established. */
static void
CM_11_no_queue_pair_is_left(void **state UNUSED)
{
	uint8_t mad[MAD_LEN];
	char params[32];
	json_t *v;

	json_decref(rpc_ok("neighbor_add", "{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\","
					   "\"mac\":\"02:00:00:00:00:09\"}"));
	json_decref(rpc_ok("cm_listen",
		"{\"name\":\"l0\",\"port\":\"p0\",\"service_port\":7471,\"qp\":{\"qp_type\":\"RC\","
		"\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}}"));
	request(1);
	assert_int_equal(mad_message(sent_last()), CM_REP);
	mad_init(mad, CM_RTU, 1);
	mad_set(mad, RTU_local_comm_id, 1);
	mad_set(mad, RTU_remote_comm_id, mad_get(sent_last(), REP_local_comm_id));
	snprintf(params, sizeof(params), "{\"qp_num\":%u}",
		(uint32_t)mad_get(sent_last(), REP_local_qpn));
	json_decref(rpc_ok("qp_destroy", params));
	receive(mad);
	assert_int_equal(mad_message(sent_last()), CM_DREQ);
	v = rpc_ok("cm_events", NULL);
	assert_int_equal(json_array_size(v), 1);
	assert_string_equal(text_of(json_array_get(v, 0), "event"), "CONNECT_ERROR");
	assert_int_equal(number_of(json_array_get(v, 0), "status"), ENOENT);
	json_decref(v);
}

#define OF_P1 \
	"{\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"port\":\"p1\"}"

/* A queue pair of another port than its connection is nobody's wish. */
static void
a_queue_pair_of_another_port(void **state UNUSED)
{
	char params[256];
	json_t *v;

	assert_int_equal(rpc_code("cm_connect",
				 "{\"port\":\"p0\",\"dest_ip\":\"10.0.0.9\",\"service_port\":7471,"
				 "\"qp\":" OF_P1 "}"),
		-32602);
	assert_non_null(strstr(rpc_message(), "is the connection's, \"p0\""));
	assert_int_equal(
		rpc_code("cm_listen", "{\"name\":\"l0\",\"port\":\"p0\",\"service_port\":7471,"
				      "\"qp\":" OF_P1 "}"),
		-32602);
	json_decref(rpc_ok("cm_listen",
		"{\"name\":\"l0\",\"port\":\"p0\",\"service_port\":7471,\"accept\":\"ask\","
		"\"qp\":{\"qp_type\":\"RC\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\"}}"));
	request(1);
	v = rpc_ok("cm_events", NULL);
	snprintf(params, sizeof(params), "{\"id\":%d,\"qp\":" OF_P1 "}",
		(int)number_of(json_array_get(v, 0), "id"));
	json_decref(v);
	assert_int_equal(rpc_code("cm_accept", params), -32602);
	assert_non_null(strstr(rpc_message(), "is the connection's, \"p0\""));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(CM_40_more_than_may_wait),
		WITH_SOCKET(CM_13_reason_of_an_own_refusal),
		WITH_SOCKET(CM_11_no_queue_pair_is_left),
		WITH_SOCKET(CM_12_a_listener_ends),
		WITH_SOCKET(CM_12_a_free_port),
		WITH_SOCKET(a_queue_pair_of_another_port),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
