/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_SIDE_H
#define CM_SIDE_H
/**
 * @file cm_side.h  For tests: a client that has connections.
 *
 * Owner:   one thread.
 * Memory:  pair_close() ends it.
 * Depends: pair.h, rocelane_cm.h.
 */
#include <arpa/inet.h>
#include <poll.h>

#include "pair.h"
#include "rocelane_cm.h"

struct side {
	struct pair p;
	struct rl_cm_event_channel *channel;
	struct rl_cm_id *id;
};

/** Of either family. */
static inline struct sockaddr_storage
side_address(const char *ip, uint16_t port)
{
	struct sockaddr_storage a = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&a;

	if (inet_pton(AF_INET, ip, &in->sin_addr) != 1) {
		a.ss_family = AF_INET6;
		CHECK(inet_pton(AF_INET6, ip, &in6->sin6_addr) == 1);
	}
	in->sin_port = htons(port);
	return a;
}

/** A client with a channel. */
static inline void
side_open(struct side *side, const char *socket)
{
	*side = (struct side){ .id = NULL };
	pair_open(&side->p, socket, 64, 4096);
	OK(rl_cm_create_event_channel(side->p.ctx, &side->channel));
}

/** The next event of its channel, which has to be this one. */
static inline struct rl_cm_event *
side_next(struct side *side, enum rl_cm_event_type type)
{
	struct pollfd p = { .fd = side->channel->fd, .events = POLLIN };
	struct rl_cm_event *e;

	CHECK(poll(&p, 1, 60000) == 1);
	OK(rl_cm_get_event(side->channel, &e));
	if (e->event != type)
		fprintf(stderr, "%s instead of %s, status %d\n", rl_cm_event_str(e->event),
			rl_cm_event_str(type), e->status);
	CHECK(e->event == type);
	return e;
}

/** The same, when its name is all that counts. */
static inline void
side_expect(struct side *side, enum rl_cm_event_type type)
{
	OK(rl_cm_ack_event(side_next(side, type)));
}

#endif
