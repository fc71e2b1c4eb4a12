/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that has no memory for an event of a connection: the call for it says so, and the event
 * waits. argv[1] is the socket, argv[2] the address of the server's port.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "cm_side.h"

#define SERVICE 7471

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t each);

static bool starved;
static unsigned int left; /* of the library's, that are granted yet */

/* Those of jansson and of libc do not count, wherever the library is linked. */
static bool
fails(const void *caller)
{
	Dl_info of;

	if (!starved || dladdr(caller, &of) == 0 || strstr(of.dli_fname, "libjansson") != NULL ||
		strstr(of.dli_fname, "libc.") != NULL)
		return false;
	return left == 0 || left-- == 0;
}

void *
malloc(size_t n)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_malloc(n);
}

void *
calloc(size_t n, size_t each)
{
	return fails(__builtin_return_address(0)) ? NULL : __libc_calloc(n, each);
}

/* With a little more each time, until it is enough. */
static struct rl_cm_event *
next_of_a_poor_one(struct side *side, enum rl_cm_event_type type)
{
	struct pollfd p = { .fd = side->channel->fd, .events = POLLIN };
	struct rl_cm_event *e = NULL;
	int rc = -ENOMEM;

	OK(fcntl(p.fd, F_SETFL, O_NONBLOCK));
	for (unsigned int n = 0; rc != 0; n++) {
		CHECK(poll(&p, 1, 60000) == 1);
		left = n;
		starved = true;
		rc = rl_cm_get_event(side->channel, &e);
		starved = false;
		CHECK(rc == 0 || rc == -ENOMEM);
		CHECK(n != 0 || rc != 0);
	}
	CHECK(e->event == type);
	return e;
}

int
main(int argc, char **argv)
{
	struct sockaddr_storage at = side_address(argv[2], SERVICE);
	struct side s, c;
	struct rl_cm_id *listener, *asker;
	struct rl_cm_event *e;
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_RC, .cap = { 4, 4, 1, 1, 0 } };

	CHECK(argc >= 3);
	side_open(&s, argv[1]);
	side_open(&c, argv[1]);
	OK(rl_cm_create_id(s.channel, &listener, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(listener, 8));
	OK(rl_cm_create_id(c.channel, &asker, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(asker, NULL, (struct sockaddr *)&at, 60000));
	OK(rl_cm_ack_event(next_of_a_poor_one(&c, RL_CM_EVENT_ADDR_RESOLVED)));
	init.send_cq = init.recv_cq = c.p.cq;
	OK(rl_cm_create_qp(asker, c.p.pd, &init));
	OK(rl_cm_connect(asker, NULL));
	e = next_of_a_poor_one(&s, RL_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->listen_id == listener);
	s.id = e->id;
	OK(rl_cm_ack_event(e));
	OK(rl_cm_reject(s.id, NULL, 0));
	OK(rl_cm_ack_event(next_of_a_poor_one(&c, RL_CM_EVENT_REJECTED)));
	OK(rl_cm_destroy_qp(asker));
	OK(rl_cm_destroy_id(asker));
	OK(rl_cm_destroy_id(s.id));
	OK(rl_cm_destroy_id(listener));
	pair_close(&s.p);
	pair_close(&c.p);
	return 0;
}
