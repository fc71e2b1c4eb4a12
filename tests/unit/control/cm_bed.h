/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_BED_H
#define CM_BED_H
/**
 * @file cm_bed.h  A program that listens at the socket, and a peer that asks it.
 *
 * Owner:   the test.
 * Memory:  fake.h's.
 * Depends: with_socket.h.
 */
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
static UNUSED json_t *
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
static UNUSED int
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
static UNUSED void
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
static UNUSED void
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
static UNUSED void
give_up(uint32_t id)
{
	uint8_t mad[MAD_LEN];

	mad_init(mad, CM_REJ, id);
	mad_set(mad, REJ_local_comm_id, id);
	receive(mad);
}

/** The program's descriptor says that there is something to read, or not: the broker writes it. */
static UNUSED void
expect_told(const struct connect_channel *ch, bool is)
{
	struct pollfd p = { .fd = broker_signal_fd(ch->signal), .events = POLLIN };

	for (uint32_t ms = 0; ms < 10000 && poll(&p, 1, is) != is; ms++)
		usleep(1000);
	assert_int_equal(poll(&p, 1, 0), is);
}

/** @return the next event of the channel. */
static UNUSED json_int_t
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
static UNUSED void
too_long(void)
{
	for (uint32_t i = 0; i < 20; i++) {
		fake.now += 10 * TIME_NS_PER_S;
		turn();
	}
}

#endif
