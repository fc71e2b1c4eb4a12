/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"
#include "conf_mcast.h"

#include <errno.h>
#include <stdio.h>

/* The keys of the file itself: lcores, control, ports, error buffer, and the arrays of objects. */

#define MODE_WHAT "permission bits in octal as a string, \"0000\" to \"0777\""

/* clang-format off */
const struct conf_name conf_names_profile[] = {
	{ "iba", CONF_PROFILE_IBA }, { "ernic", CONF_PROFILE_ERNIC }, { NULL, 0 },
};
static const struct conf_name idles[] = {
	{ "poll", CONF_IDLE_POLL }, { "pause", CONF_IDLE_PAUSE }, { "yield", CONF_IDLE_YIELD },
	{ "sleep", CONF_IDLE_SLEEP }, { NULL, 0 },
};
static const struct conf_name client_memories[] = {
	{ "sealed", CONF_CLIENT_MEMORY_SEALED }, { "any", CONF_CLIENT_MEMORY_ANY }, { NULL, 0 },
};
static const struct conf_name versions[] = { { "1", 1 }, { NULL, 0 } };
/* clang-format on */

static int
parse_mode(const char *text, uint32_t *out)
{
	uint32_t mode = 0;
	int digits = 0;

	for (; *text >= '0' && *text <= '7' && digits < 5; text++, digits++)
		mode = mode << 3 | (uint32_t)(*text - '0');
	if (*text != '\0' || digits < 3 || mode > 0777)
		return -EINVAL;
	*out = mode;
	return 0;
}

static int
decode_mode(const char *text, void *obj)
{
	return parse_mode(text, &((struct conf_control *)obj)->mode);
}

static int
decode_client_mode(const char *text, void *obj)
{
	return parse_mode(text, &((struct conf_control *)obj)->client_mode);
}

static void
encode_mode(const void *obj, char *buf, size_t room)
{
	const struct conf_control *control = obj;

	snprintf(buf, room, "0%03o", control->mode);
}

static void
encode_client_mode(const void *obj, char *buf, size_t room)
{
	const struct conf_control *control = obj;

	snprintf(buf, room, "0%03o", control->client_mode);
}

/* `to` is a route's first member, wherever there is one. */
static int
decode_prefix(const char *text, void *obj)
{
	return route_prefix_parse(text, obj);
}

static void
encode_prefix(const void *obj, char *buf, size_t room)
{
	char text[ROUTE_TEXT];

	snprintf(buf, room, "%s", route_prefix_text(obj, text));
}

const struct conf_custom conf_custom_prefix = {
	"an IPv4 or IPv6 prefix: \"10.80.0.0/16\" (up to /32), \"fd80::/64\" (up to /128)",
	decode_prefix, encode_prefix
};
static const struct conf_custom mode = { MODE_WHAT, decode_mode, encode_mode };
static const struct conf_custom client_mode = { MODE_WHAT, decode_client_mode, encode_client_mode };

/* clang-format off */
static const struct conf_field lcores_rows[] = {
	ROW_U32(conf_lcores, control, "control", 0, CONF_MAX_LCORE, WITH(CONF_F_DEFAULT)),
	{ .name = "workers", .type = CONF_T_NUMBERS, .offset = TYPED(conf_lcores, workers, uint32_t *),
		.n_offset = offsetof(struct conf_lcores, n_workers), .n_min = 1, .n_max = CONF_MAX_WORKERS,
		.min = 0, .max = CONF_MAX_LCORE, WITH(CONF_F_DEFAULT), DEFAULT(1) },
	ROW_ENUM(conf_lcores, idle, "idle", idles, WITH(CONF_F_DEFAULT), DEFAULT(CONF_IDLE_POLL)),
};
static const struct conf_table lcores_table = { .name = "lcores", TABLE_ROWS(lcores_rows),
	.size = sizeof(struct conf_lcores), .given_offset = CONF_NO_GIVEN, .check = conf_check_lcores };

#define LIMIT32(S, m, lo, hi, value) ROW_U32(S, m, #m, lo, hi, WITH(CONF_F_DEFAULT), DEFAULT(value))
#define LIMIT64(S, m, hi, value) ROW_SIZE64(S, m, #m, 1, hi, WITH(CONF_F_DEFAULT), DEFAULT(value))
static const struct conf_field user_limits_rows[] = {
	LIMIT32(conf_user_limits, connections, 1, CONF_MAX_CLIENTS, 80),
	LIMIT32(conf_user_limits, clients, 1, CONF_MAX_CLIENTS, 64),
	LIMIT32(conf_user_limits, pds, 1, CONF_MAX_OBJECTS, 4096),
	LIMIT32(conf_user_limits, mrs, 1, CONF_MAX_OBJECTS, 16384),
	LIMIT32(conf_user_limits, cqs, 1, CONF_MAX_OBJECTS, 16384),
	LIMIT32(conf_user_limits, srqs, 1, CONF_MAX_OBJECTS, 4096),
	LIMIT32(conf_user_limits, ahs, 1, CONF_MAX_OBJECTS, 16384),
	LIMIT32(conf_user_limits, mcasts, 1, CONF_MAX_OBJECTS, 1024),
	LIMIT32(conf_user_limits, qps, 1, CONF_MAX_QPS, 16384),
	LIMIT32(conf_user_limits, channels, 1, CONF_MAX_OBJECTS, 512),
	LIMIT32(conf_user_limits, cm_ids, 1, CONF_MAX_OBJECTS, 8192),
	LIMIT32(conf_user_limits, cm_listeners, 1, CONF_MAX_OBJECTS, 64),
	LIMIT32(conf_user_limits, cm_pending, 1, CONF_MAX_OBJECTS, 256),
	LIMIT32(conf_user_limits, outstanding, 1, UINT32_MAX, 16777216),
	LIMIT64(conf_user_limits, memory, UINT64_C(1) << 44, UINT64_C(16) << 30),
	LIMIT64(conf_user_limits, private_memory, UINT64_C(1) << 40, UINT64_C(512) << 20),
};
static const struct conf_table user_limits_table = { .name = "user", TABLE_ROWS(user_limits_rows),
	.size = sizeof(struct conf_user_limits), .given_offset = CONF_NO_GIVEN };

static const struct conf_field client_limits_rows[] = {
	LIMIT32(conf_client_limits, clients, 0, CONF_MAX_CLIENTS, 96),
	LIMIT32(conf_client_limits, pds, 1, CONF_MAX_OBJECTS, 1024),
	LIMIT32(conf_client_limits, mrs, 1, CONF_MAX_OBJECTS, 1024),
	LIMIT32(conf_client_limits, cqs, 1, CONF_MAX_OBJECTS, 1024),
	LIMIT32(conf_client_limits, srqs, 1, CONF_MAX_OBJECTS, 256),
	LIMIT32(conf_client_limits, ahs, 1, CONF_MAX_OBJECTS, 1024),
	LIMIT32(conf_client_limits, mcasts, 1, CONF_MAX_OBJECTS, 256),
	LIMIT32(conf_client_limits, qps, 1, CONF_MAX_QPS, 1024),
	LIMIT32(conf_client_limits, outstanding, 1, UINT32_MAX, 1048576),
	LIMIT32(conf_client_limits, channels, 1, CONF_MAX_OBJECTS, 256),
	LIMIT32(conf_client_limits, cm_ids, 1, CONF_MAX_OBJECTS, 2048),
	LIMIT32(conf_client_limits, cm_listeners, 1, CONF_MAX_OBJECTS, 16),
	LIMIT32(conf_client_limits, cm_pending, 1, CONF_MAX_OBJECTS, 128),
	LIMIT64(conf_client_limits, memory, UINT64_C(1) << 40, UINT64_C(1) << 30),
	LIMIT64(conf_client_limits, private_memory, UINT64_C(1) << 40, UINT64_C(128) << 20),
	LIMIT32(conf_client_limits, weight, 1, 100, 1),
	ROW_SIZE64(conf_client_limits, rate, "rate", 0, UINT64_C(1) << 40, WITH(CONF_F_DEFAULT)),
	ROW_OBJECT(conf_client_limits, user, "user", &user_limits_table, WITH(CONF_F_DEFAULT)),
};
static const struct conf_table client_limits_table = { .name = "client_limits",
	TABLE_ROWS(client_limits_rows), .size = sizeof(struct conf_client_limits),
	.given_offset = CONF_NO_GIVEN };

static const struct conf_field control_rows[] = {
	ROW_STR(conf_control, socket, "socket", 1, CONF_SOCKET_MAX - 1, WITH(CONF_F_DEFAULT),
		.def_str = CONF_DEFAULT_SOCKET),
	ROW_CUSTOM(conf_control, mode, "mode", &mode, WITH(CONF_F_DEFAULT), .def_str = "0600"),
	ROW_STR(conf_control, client_socket, "client_socket", 1, CONF_SOCKET_MAX - 1, WITH(NULLABLE),
		GIVEN(CONF_CONTROL_CLIENT_SOCKET)),
	ROW_CUSTOM(conf_control, client_mode, "client_mode", &client_mode, WITH(CONF_F_DEFAULT),
		.def_str = "0600"),
	ROW_BOOL(conf_control, sandbox, "sandbox", WITH(CONF_F_DEFAULT), DEFAULT(1)),
	ROW_OBJECT(conf_control, client_limits, "client_limits", &client_limits_table, WITH(CONF_F_DEFAULT)),
	ROW_ENUM(conf_control, client_memory, "client_memory", client_memories, WITH(CONF_F_DEFAULT),
		DEFAULT(CONF_CLIENT_MEMORY_SEALED)),
};
static const struct conf_table control_table = { .name = "control", TABLE_ROWS(control_rows),
	.size = sizeof(struct conf_control), .given_offset = offsetof(struct conf_control, given),
	.check = conf_check_control };

static const struct conf_field error_buffer_rows[] = {
	ROW_U32(conf_error_buffer, entries, "entries", 1, 1 << 20, WITH(CONF_F_DEFAULT), DEFAULT(4096)),
	ROW_STR(conf_error_buffer, pcapng, "pcapng", 1, CONF_PATH_MAX - 1, WITH(NULLABLE),
		GIVEN(CONF_EB_PCAPNG)),
	ROW_SIZE64(conf_error_buffer, pcapng_size, "pcapng_size", 65536, UINT64_C(1) << 40, WITH(CONF_F_DEFAULT),
		DEFAULT(64 << 20)),
	ROW_U32(conf_error_buffer, pcapng_age, "pcapng_age", 1, 31536000, WITH(CONF_F_DEFAULT), DEFAULT(86400)),
};
static const struct conf_table error_buffer_table = { .name = "error_buffer",
	TABLE_ROWS(error_buffer_rows), .size = sizeof(struct conf_error_buffer),
	.given_offset = offsetof(struct conf_error_buffer, given) };

static const struct conf_field neighbor_rows[] = {
	ROW_IP(conf_neighbor, ip, "ipv4", 4, 4, WITH(0), GIVEN(CONF_NEIGHBOR_IPV4)),
	ROW_IP(conf_neighbor, ip, "ipv6", 6, 6, WITH(0), GIVEN(CONF_NEIGHBOR_IPV6)),
	ROW_MAC(conf_neighbor, mac, "mac", WITH(REQUIRED)),
};
const struct conf_table conf_table_neighbor = { .name = "neighbor", TABLE_ROWS(neighbor_rows),
	.size = sizeof(struct conf_neighbor), .given_offset = offsetof(struct conf_neighbor, given),
	.check = conf_check_neighbor };

static const struct conf_field route_rows[] = {
	ROW_CUSTOM(conf_route, to, "to", &conf_custom_prefix, WITH(REQUIRED)),
	ROW_IP(conf_route, via, "via", 4, 6, WITH(REQUIRED)),
};
static const struct conf_table route_table = { .name = "route", TABLE_ROWS(route_rows),
	.size = sizeof(struct conf_route), .given_offset = CONF_NO_GIVEN };

#define NUMBERS(S, m, lo, hi, most) { .name = #m, .type = CONF_T_NUMBERS, \
	.offset = TYPED(S, m, uint32_t *), .n_offset = offsetof(struct S, n_##m), .n_max = most, .min = lo, .max = hi }
static const struct conf_field allow_rows[] = {
	NUMBERS(conf_allow, vlans, 1, 4094, 4094),
	NUMBERS(conf_allow, priorities, 0, 7, 8),
	NUMBERS(conf_allow, traffic_classes, 0, 252, 64),
	ROW_BOOL(conf_allow, dest_mac, "dest_mac", WITH(CONF_F_DEFAULT), DEFAULT(0)),
};
static const struct conf_table allow_table = { .name = "allow", TABLE_ROWS(allow_rows),
	.size = sizeof(struct conf_allow), .given_offset = CONF_NO_GIVEN };

static const struct conf_field port_rows[] = {
	ROW_NAME(conf_port, name, "name", WITH(REQUIRED)),
	ROW_NAME(conf_port, device, "device", WITH(REQUIRED)),
	ROW_MAC(conf_port, mac, "mac", WITH(NULLABLE), GIVEN(CONF_PORT_MAC)),
	ROW_IPV4(conf_port, ipv4, "ipv4", WITH(NULLABLE), GIVEN(CONF_PORT_IPV4)),
	ROW_U8(conf_port, prefix, "prefix", 1, 32, WITH(CONF_F_DEFAULT), DEFAULT(24)),
	ROW_IPV6(conf_port, ipv6, "ipv6", WITH(NULLABLE), GIVEN(CONF_PORT_IPV6)),
	ROW_U8(conf_port, prefix6, "prefix6", 1, 128, WITH(CONF_F_DEFAULT), DEFAULT(64)),
	ROW_U16(conf_port, mtu, "mtu", CONF_MTU_MIN, CONF_MTU_MAX, WITH(CONF_F_DEFAULT), DEFAULT(1500)),
	ROW_U16(conf_port, rx_queues, "rx_queues", 1, CONF_MAX_WORKERS, WITH(CONF_F_DEFAULT), DEFAULT(1)),
	ROW_ARRAY(conf_port, neighbors, n_neighbors, "neighbors", &conf_table_neighbor, 0, CONF_MAX_NEIGHBORS),
	ROW_IPV4(conf_port, gateway, "gateway", WITH(NULLABLE), GIVEN(CONF_PORT_GATEWAY)),
	ROW_IPV6(conf_port, gateway6, "gateway6", WITH(NULLABLE), GIVEN(CONF_PORT_GATEWAY6)),
	ROW_ARRAY(conf_port, routes, n_routes, "routes", &route_table, 0, CONF_MAX_ROUTES),
	ROW_OBJECT(conf_port, allow, "allow", &allow_table, WITH(CONF_F_DEFAULT)),
	ROW_OBJECT(conf_port, impair, "impair", &conf_table_impair, WITH(NULLABLE), GIVEN(CONF_PORT_IMPAIR)),
	ROW_OBJECT(conf_port, bottleneck, "bottleneck", &conf_table_bottleneck, WITH(NULLABLE),
		GIVEN(CONF_PORT_BOTTLENECK)),
	ROW_OBJECT(conf_port, priorities, "priorities", &conf_table_prio, WITH(NULLABLE), GIVEN(CONF_PORT_PRIORITIES)),
};
const struct conf_table conf_table_port = { .name = "port", TABLE_ROWS(port_rows),
	.size = sizeof(struct conf_port), .given_offset = offsetof(struct conf_port, given),
	.check = conf_check_port };

static const struct conf_field root_rows[] = {
	ROW_PICK(conf, version, "version", versions, WITH(REQUIRED)),
	{ .name = "eal", .type = CONF_T_STRINGS, .offset = TYPED(conf, eal, char **),
		.n_offset = offsetof(struct conf, n_eal), .n_max = 256, .min = 1, .max = 4096 },
	ROW_OBJECT(conf, lcores, "lcores", &lcores_table, WITH(CONF_F_DEFAULT)),
	ROW_OBJECT(conf, control, "control", &control_table, WITH(CONF_F_DEFAULT)),
	ROW_ARRAY(conf, ports, n_ports, "ports", &conf_table_port, 1, CONF_MAX_PORTS, WITH(REQUIRED)),
	ROW_ENUM(conf, profile, "profile", conf_names_profile, WITH(CONF_F_DEFAULT), DEFAULT(CONF_PROFILE_IBA)),
	ROW_OBJECT(conf, knobs, "knobs", &conf_table_knobs),
	ROW_OBJECT(conf, error_buffer, "error_buffer", &error_buffer_table, WITH(NULLABLE),
		GIVEN(CONF_ROOT_ERROR_BUFFER)),
	ROW_ARRAY(conf, pds, n_pds, "pds", &conf_table_pd, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, mrs, n_mrs, "mrs", &conf_table_mr, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, cqs, n_cqs, "cqs", &conf_table_cq, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, xrcds, n_xrcds, "xrcds", &conf_table_xrcd, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, srqs, n_srqs, "srqs", &conf_table_srq, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, qps, n_qps, "qps", &conf_table_qp, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, mcasts, n_mcasts, "mcasts", &conf_table_mcast, 0, CONF_MAX_OBJECTS),
	ROW_ARRAY(conf, mws, n_mws, "mws", &conf_table_mw, 0, CONF_MAX_OBJECTS),
	ROW_OBJECT(conf, cm, "cm", &conf_table_cm, WITH(CONF_F_DEFAULT)),
};
const struct conf_table conf_table_root = { .name = "configuration", TABLE_ROWS(root_rows),
	.size = sizeof(struct conf), .given_offset = offsetof(struct conf, given) };
/* clang-format on */
