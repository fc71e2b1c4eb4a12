/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CHANNELS_H
#define CHANNELS_H
/**
 * @file channels.h  Channels of librdmacm without it: the commands that it writes to its device.
 *
 * Owner:   any thread.
 * Memory:  none.
 * Depends: ends.h; rdma_user_cm.h of the kernel's headers.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_user_cm.h>

#include "ends.h"

/* Of enum rdma_cm_event_type, which is librdmacm's. */
enum { ADDR_RESOLVED = 0, ROUTE_RESOLVED = 2, CONNECT_REQUEST = 4, REJECTED = 8 };

/* ---- commands of rdma_user_cm.h, as librdmacm writes them ------------------------------------ */

#define COMMAND(name)                        \
	struct name {                        \
		struct rdma_ucm_cmd_hdr hdr; \
		struct rdma_ucm_##name in;   \
	}
COMMAND(create_id);
COMMAND(destroy_id);
COMMAND(bind_ip);
COMMAND(resolve_ip);
COMMAND(listen);
COMMAND(resolve_route);
COMMAND(connect);
COMMAND(accept);
COMMAND(get_event);
COMMAND(migrate_id);

#define HEADER(number, command, out_size)                                             \
	{                                                                             \
		RDMA_USER_CM_CMD_##number, sizeof((command).in), (uint16_t)(out_size) \
	}

static inline int
channel_new(void)
{
	const int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	CHECK(fd >= 0);
	return fd;
}

static inline bool
create_id(int fd, uint32_t *id)
{
	struct rdma_ucm_create_id_resp resp = { 0 };
	struct create_id c = {
		HEADER(CREATE_ID, c, sizeof(resp)),
		{ .uid = 1, .response = (uintptr_t)&resp, .ps = RDMA_PS_TCP, .qp_type = IBV_QPT_RC }
	};
	const bool done = write(fd, &c, sizeof(c)) == sizeof(c);

	*id = resp.id;
	return done;
}

static inline uint32_t
id_new(int fd)
{
	uint32_t id;

	CHECK(create_id(fd, &id));
	return id;
}

static inline bool
destroy_id(int fd, uint32_t id)
{
	struct rdma_ucm_destroy_id_resp resp;
	struct destroy_id c = { HEADER(DESTROY_ID, c, sizeof(resp)),
		{ .response = (uintptr_t)&resp, .id = id } };

	return write(fd, &c, sizeof(c)) == sizeof(c);
}

static inline void
id_end(int fd, uint32_t id)
{
	CHECK(destroy_id(fd, id));
}

static inline struct sockaddr_in6
address(void)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(7471) };
	struct sockaddr_in6 a = { 0 };

	CHECK(inet_pton(AF_INET, "10.77.0.2", &to.sin_addr) == 1);
	memcpy(&a, &to, sizeof(to));
	return a;
}

static inline void
resolve(int fd, uint32_t id)
{
	struct resolve_ip c = { HEADER(RESOLVE_IP, c, 0),
		{ .dst_addr = address(), .id = id, .timeout_ms = 2000 } };

	CHECK(write(fd, &c, sizeof(c)) == sizeof(c));
}

static inline void
listen_at(int fd, uint32_t id)
{
	struct bind_ip b = { HEADER(BIND_IP, b, 0), { .addr = address(), .id = id } };
	struct listen l = { HEADER(LISTEN, l, 0), { .id = id, .backlog = 1 } };

	CHECK(write(fd, &b, sizeof(b)) == sizeof(b));
	CHECK(write(fd, &l, sizeof(l)) == sizeof(l));
}

/* Waits. */
static inline bool
get_event(int fd, struct rdma_ucm_event_resp *e)
{
	struct get_event c = { HEADER(GET_EVENT, c, sizeof(*e)), { .response = (uintptr_t)e } };

	return write(fd, &c, sizeof(c)) == sizeof(c);
}

static inline void
migrate(int from, int to, uint32_t id)
{
	struct rdma_ucm_migrate_resp resp;
	struct migrate_id c = { HEADER(MIGRATE_ID, c, sizeof(resp)),
		{ .response = (uintptr_t)&resp, .id = id, .fd = (uint32_t)from } };

	CHECK(write(to, &c, sizeof(c)) == sizeof(c));
}

/* The channel works: an id of it finds its address, and is told. */
static inline void
is_good(int fd)
{
	const uint32_t id = id_new(fd);
	struct rdma_ucm_event_resp e;

	resolve(fd, id);
	CHECK(get_event(fd, &e) && e.event == ADDR_RESOLVED && e.id == id);
	id_end(fd, id);
}

#endif
