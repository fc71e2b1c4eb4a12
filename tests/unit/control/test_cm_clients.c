/* SPDX-License-Identifier: BSD-3-Clause */
/* Programs that listen for connections, and look at what came late or not at all. */
#include "with_socket.h"

#include <poll.h>

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

/** A message of the peer. */
static void
receive(const uint8_t *mad)
{
	const struct wire_path way = { .dmac = { 2, 0, 0, 0, 0, 1 },
		.smac = { PEER_MAC },
		.dst_ip = { OWN },
		.src_ip = { PEER },
		.ttl = 64,
		.sport = 0xc000 };
	uint8_t frame[512];
	const struct wire_fields f = { .opcode = 0x64,
		.pkey = 0xffff,
		.dest_qpn = MAD_QPN,
		.deth = { .qkey = MAD_QKEY, .src_qpn = MAD_QPN },
		.payload = mad,
		.payload_len = MAD_LEN };
	const int len = wire_build(&way, &f, 0, frame, sizeof(frame));

	assert_true(len > 0);
	connect_frame(&fake.c->connect, 0, frame, (uint32_t)len);
	turn();
}

/** A REQ that can be served. */
static void
request(uint32_t id)
{
	static const uint8_t own[16] = { [10] = 0xff, 0xff, OWN },
			     peer[16] = { [10] = 0xff, 0xff, PEER };
	uint8_t mad[MAD_LEN];

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
	receive(mad);
}

/** ... is taken back. */
static void
give_up(uint32_t id)
{
	uint8_t mad[MAD_LEN];

	mad_init(mad, CM_REJ, id);
	mad_set(mad, REJ_local_comm_id, id);
	receive(mad);
}

/** The program's descriptor says that there is something to read, or not: the broker writes it. */
static void
expect_told(const struct connect_channel *ch, bool is)
{
	struct pollfd p = { .fd = broker_signal_fd(ch->signal), .events = POLLIN };

	for (uint32_t ms = 0; ms < 10000 && poll(&p, 1, is) != is; ms++)
		usleep(1000);
	assert_int_equal(poll(&p, 1, 0), is);
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

/* CM-29: a request that is taken back before it is read leaves nothing to read. */
static void
a_request_that_is_taken_back(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	const struct connect_channel *ch = TAILQ_FIRST(&cl->channels);

	request(1);
	expect_told(ch, true);
	give_up(1);
	expect_told(ch, false);
	assert_true(TAILQ_EMPTY(&ch->notices));
	assert_int_equal(ch->ids, 1);
	/* Who has read of it hears that it was taken back. */
	fake.now += 2 * TIME_NS_PER_S;
	turn();
	assert_int_equal(fake.c->connect.cm.n, 0);
	request(2);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	give_up(2);
	assert_int_equal(hears(fd, channel), CONNECT_REJECTED);
	close(fd);
}

/* CM-13: who says no to what it has not read may read it later. */
static void
a_request_that_is_answered_unread(void **state UNUSED)
{
	json_int_t channel;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	char params[64];

	request(1);
	snprintf(params, sizeof(params), "{\"handle\":%u}",
		TAILQ_LAST(&cl->ids, connect_ids)->handle);
	json_decref(ask(fd, "client_cm_reject", params));
	assert_int_equal(fake.c->connect.cm.n, 0);
	assert_int_equal(hears(fd, channel), CONNECT_CONNECT_REQUEST);
	close(fd);
}

/* CM-12: who has asked a listener goes with it to another channel. */
static void
a_listener_moves(void **state UNUSED)
{
	json_int_t channel, other;
	const int fd = listener(&channel);
	const struct connect_client *cl = TAILQ_FIRST(&fake.c->connect.clients);
	json_t *v = ask(fd, "client_cm_channel_create", "{}");
	char params[64];

	other = number_of(v, "handle");
	json_decref(v);
	request(1);
	snprintf(params, sizeof(params), "{\"handle\":%u,\"channel\":%d}",
		TAILQ_FIRST(&cl->ids)->handle, (int)other);
	json_decref(ask(fd, "client_cm_migrate", params));
	assert_int_equal(TAILQ_FIRST(&cl->channels)->ids, 0);
	expect_told(TAILQ_FIRST(&cl->channels), false);
	expect_told(TAILQ_NEXT(TAILQ_FIRST(&cl->channels), all), true);
	assert_int_equal(hears(fd, other), CONNECT_CONNECT_REQUEST);
	request(2); /* the place of the first one is free */
	assert_int_equal(hears(fd, other), CONNECT_CONNECT_REQUEST);
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
		WITH_SOCKET(a_request_that_is_taken_back),
		WITH_SOCKET(a_request_that_is_answered_unread),
		WITH_SOCKET(a_listener_moves),
		WITH_SOCKET(who_is_heard_takes_no_place),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
