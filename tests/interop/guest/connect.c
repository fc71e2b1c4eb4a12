/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections by the kernel's connection manager: the commands of /dev/infiniband/rdma_cm. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_user_cm.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "peer.h"

#define DEVICE     "/dev/infiniband/rdma_cm"
#define RESOLVE_MS 10000

/* Of libibverbs; its header comes with librdmacm's, which are not needed otherwise. */
extern void ibv_copy_qp_attr_from_kern(struct ibv_qp_attr *dst, struct ib_uverbs_qp_attr *src);

/* enum rdma_cm_event_type of the kernel's rdma_cm.h */
static const char *const event_names[] = { "ADDR_RESOLVED", "ADDR_ERROR", "ROUTE_RESOLVED",
	"ROUTE_ERROR", "CONNECT_REQUEST", "CONNECT_RESPONSE", "CONNECT_ERROR", "UNREACHABLE",
	"REJECTED", "ESTABLISHED", "DISCONNECTED", "DEVICE_REMOVAL", "MULTICAST_JOIN",
	"MULTICAST_ERROR", "ADDR_CHANGE", "TIMEWAIT_EXIT" };

static const struct word spaces[] = {
	{ "TCP", RDMA_PS_TCP },
	{ "UDP", RDMA_PS_UDP },
	{ "IB", RDMA_PS_IB },
	{ NULL, 0 },
};

static int
device(void)
{
	static int fd = -1;

	if (fd < 0)
		fd = open(DEVICE, O_RDWR | O_CLOEXEC | O_NONBLOCK);
	return fd;
}

/* @return 0 or an errno value. `out` is as long as the kernel's answer. */
static int
command(uint32_t cmd, const void *in, size_t in_len, size_t out_len)
{
	struct rdma_ucm_cmd_hdr hdr = {
		.cmd = cmd, .in = (uint16_t)in_len, .out = (uint16_t)out_len
	};
	uint8_t buf[1024];

	memcpy(buf, &hdr, sizeof(hdr));
	memcpy(buf + sizeof(hdr), in, in_len);
	return write(device(), buf, sizeof(hdr) + in_len) < 0 ? errno : 0;
}

static uint32_t
id_of(json_t *params)
{
	return (uint32_t)value_number(params, "id", 0);
}

static json_t *
done(int err, const char *what)
{
	return err == 0 ? json_object() : peer_fail(err, what);
}

/* IPv4 and IPv6; no text is the address of all. */
static void
address_of(struct sockaddr_in6 *addr, const char *text, uint16_t port)
{
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)addr;

	memset(addr, 0, sizeof(*addr));
	if (strchr(text, '.') != NULL) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(port);
		inet_pton(AF_INET, text, &v4->sin_addr);
		return;
	}
	addr->sin6_family = AF_INET6;
	addr->sin6_port = htons(port);
	if (text[0] != '\0')
		inet_pton(AF_INET6, text, &addr->sin6_addr);
}

json_t *
cm_create(struct peer *p, json_t *params)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	const char *ps = value_text(params, "ps");
	struct rdma_ucm_create_id cmd = {
		.uid = value_number(params, "name", 0),
		.response = (uintptr_t)&resp,
		.ps = (uint16_t)value_word(spaces, ps),
		.qp_type = strcmp(ps, "UDP") == 0 ? IBV_QPT_UD : IBV_QPT_RC,
	};
	int err;

	(void)p;
	if (device() < 0)
		return peer_fail(errno, DEVICE);
	err = command(RDMA_USER_CM_CMD_CREATE_ID, &cmd, sizeof(cmd), sizeof(resp));
	return err == 0 ? json_pack("{s:I}", "id", (json_int_t)resp.id)
			: peer_fail(err, "CREATE_ID");
}

json_t *
cm_destroy(struct peer *p, json_t *params)
{
	struct rdma_ucm_destroy_id_resp resp = { 0 };
	struct rdma_ucm_destroy_id cmd = { .response = (uintptr_t)&resp, .id = id_of(params) };

	(void)p;
	return done(command(RDMA_USER_CM_CMD_DESTROY_ID, &cmd, sizeof(cmd), sizeof(resp)),
		"DESTROY_ID");
}

json_t *
cm_listen(struct peer *p, json_t *params)
{
	struct rdma_ucm_bind_ip bind = { .id = id_of(params) };
	struct rdma_ucm_listen cmd = { .id = bind.id, .backlog = 16 };
	int err;

	(void)p;
	address_of(&bind.addr, "", (uint16_t)value_number(params, "service_port", 0));
	err = command(RDMA_USER_CM_CMD_BIND_IP, &bind, sizeof(bind), 0);
	if (err != 0)
		return peer_fail(err, "BIND_IP");
	return done(command(RDMA_USER_CM_CMD_LISTEN, &cmd, sizeof(cmd), 0), "LISTEN");
}

json_t *
cm_resolve(struct peer *p, json_t *params)
{
	struct rdma_ucm_resolve_ip cmd = { .id = id_of(params), .timeout_ms = RESOLVE_MS };

	(void)p;
	address_of(&cmd.dst_addr, value_text(params, "dest_ip"),
		(uint16_t)value_number(params, "service_port", 0));
	return done(command(RDMA_USER_CM_CMD_RESOLVE_IP, &cmd, sizeof(cmd), 0), "RESOLVE_IP");
}

json_t *
cm_route(struct peer *p, json_t *params)
{
	struct rdma_ucm_resolve_route cmd = { .id = id_of(params), .timeout_ms = RESOLVE_MS };

	(void)p;
	return done(command(RDMA_USER_CM_CMD_RESOLVE_ROUTE, &cmd, sizeof(cmd), 0), "RESOLVE_ROUTE");
}

/* The queue pair's next state, with what the kernel says that it should have there. */
json_t *
cm_qp(struct peer *p, json_t *params)
{
	struct ib_uverbs_qp_attr kern = { 0 };
	struct rdma_ucm_init_qp_attr cmd = { .response = (uintptr_t)&kern,
		.id = id_of(params),
		.qp_state = (uint32_t)value_number(params, "state", 0) };
	struct ibv_qp *qp = pair_find(p, params);
	struct ibv_qp_attr attr;
	int err;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	err = command(RDMA_USER_CM_CMD_INIT_QP_ATTR, &cmd, sizeof(cmd), sizeof(kern));
	if (err != 0)
		return peer_fail(err, "INIT_QP_ATTR");
	memset(&attr, 0, sizeof(attr));
	ibv_copy_qp_attr_from_kern(&attr, &kern);
	attr.qp_state = (enum ibv_qp_state)cmd.qp_state;
	return done(
		ibv_modify_qp(qp, &attr, (int)kern.qp_attr_mask | IBV_QP_STATE), "ibv_modify_qp");
}

static struct rdma_ucm_conn_param
terms_of(json_t *params)
{
	struct rdma_ucm_conn_param t = {
		.qp_num = (uint32_t)value_number(params, "qp_num", 0),
		.responder_resources = (uint8_t)value_number(params, "responder_resources", 1),
		.initiator_depth = (uint8_t)value_number(params, "initiator_depth", 1),
		.retry_count = (uint8_t)value_number(params, "retry_count", 7),
		.rnr_retry_count = (uint8_t)value_number(params, "rnr_retry_count", 7),
		.valid = 1,
	};

	t.private_data_len = (uint8_t)value_hex(
		value_text(params, "private_data"), t.private_data, RDMA_MAX_PRIVATE_DATA - 1);
	return t;
}

json_t *
cm_connect(struct peer *p, json_t *params)
{
	struct rdma_ucm_connect cmd = { .conn_param = terms_of(params), .id = id_of(params) };

	(void)p;
	return done(command(RDMA_USER_CM_CMD_CONNECT, &cmd, sizeof(cmd), 0), "CONNECT");
}

/* Of a REQ or SIDR_REQ with a queue pair; of a REP without. */
json_t *
cm_accept(struct peer *p, json_t *params)
{
	struct rdma_ucm_accept cmd = { .uid = id_of(params), .id = id_of(params) };

	(void)p;
	if (json_object_get(params, "qp_num") != NULL)
		cmd.conn_param = terms_of(params);
	return done(command(RDMA_USER_CM_CMD_ACCEPT, &cmd, sizeof(cmd), 0), "ACCEPT");
}

json_t *
cm_reject(struct peer *p, json_t *params)
{
	struct rdma_ucm_reject cmd = { .id = id_of(params), .reason = 28 };

	(void)p;
	cmd.private_data_len = (uint8_t)value_hex(
		value_text(params, "private_data"), cmd.private_data, RDMA_MAX_PRIVATE_DATA - 1);
	return done(command(RDMA_USER_CM_CMD_REJECT, &cmd, sizeof(cmd), 0), "REJECT");
}

json_t *
cm_disconnect(struct peer *p, json_t *params)
{
	struct rdma_ucm_disconnect cmd = { .id = id_of(params) };

	(void)p;
	return done(command(RDMA_USER_CM_CMD_DISCONNECT, &cmd, sizeof(cmd), 0), "DISCONNECT");
}

json_t *
cm_events(struct peer *p, json_t *params)
{
	json_t *list = json_array();
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event cmd = { .response = (uintptr_t)&e };

	(void)p;
	(void)params;
	while (device() >= 0 &&
		command(RDMA_USER_CM_CMD_GET_EVENT, &cmd, sizeof(cmd), sizeof(e)) == 0) {
		const size_t names = sizeof(event_names) / sizeof(event_names[0]);
		char hex[2 * RDMA_MAX_PRIVATE_DATA + 1] = "";
		const int is_ud = e.event == 9 && e.param.ud.qp_num != 0;

		for (size_t i = 0; i < e.param.conn.private_data_len; i++)
			snprintf(hex + 2 * i, 3, "%02x", e.param.conn.private_data[i]);
		json_array_append_new(
			list, json_pack("{s:s, s:I, s:I, s:i, s:s, s:I, s:I, s:i, s:i}", "event",
				      e.event < names ? event_names[e.event] : "?", "id",
				      (json_int_t)e.id, "name", (json_int_t)e.uid, "status",
				      (int)e.status, "private_data", hex, "qp_num",
				      (json_int_t)(is_ud ? e.param.ud.qp_num : 0), "qkey",
				      (json_int_t)(is_ud ? e.param.ud.qkey : 0),
				      "responder_resources", e.param.conn.responder_resources,
				      "initiator_depth", e.param.conn.initiator_depth));
	}
	return list;
}
