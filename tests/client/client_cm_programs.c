/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs of librdmacm count on beside a connection that works. argv[1] is the socket,
 * argv[2] the address of the server's port, argv[3] that of the client's.
 */
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "cm_side.h"

#define SERVICE 7471
#define NOBODY  "10.77.0.99" /* in the subnet of a port */
#define WHY     "not like this"
#define KEPT    77
#define SERVERS 1000
#define LISTEN  12 /* client_limits.cm_listeners is 16 */

struct world {
	const char *server_ip, *client_ip;
	struct side s, c;
	struct rl_cm_id *listener;
};

static void
listening(struct world *w)
{
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE);

	OK(rl_cm_create_id(w->s.channel, &w->listener, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(w->listener, 8));
}

static void
resolve(struct world *w, const char *ip, int timeout_ms)
{
	struct sockaddr_storage to = side_address(ip, SERVICE);

	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&to, timeout_ms));
}

static void
resolved(struct world *w, int timeout_ms)
{
	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	resolve(w, w->server_ip, timeout_ms);
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	OK(rl_cm_resolve_route(w->c.id, 0));
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
}

/* The client asks with a queue pair of its own; the server has not answered yet. */
static void
asked(struct world *w)
{
	struct rl_cm_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rl_cm_event *e;

	resolved(w, 2000);
	param.qp_num = pair_qp(&w->c.p, 4)->qp_num;
	OK(rl_cm_connect(w->c.id, &param));
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
}

/* Queue pairs of their own: the client hears of the answer before it counts. */
static void
answered(struct world *w)
{
	struct rl_cm_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };

	asked(w);
	param.qp_num = pair_qp(&w->s.p, 4)->qp_num;
	OK(rl_cm_accept(w->s.id, &param));
	side_expect(&w->c, RL_CM_EVENT_CONNECT_RESPONSE);
}

static void
gone(struct world *w)
{
	OK(rl_cm_destroy_id(w->s.id));
	OK(rl_cm_destroy_id(w->c.id));
}

/* Who waits for a server to come up resolves its address again and again. */
static void
an_address_once_more(struct world *w)
{
	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	for (int i = 0; i < 3; i++) {
		struct rl_cm_event *e;

		resolve(w, NOBODY, 20);
		e = side_next(&w->c, RL_CM_EVENT_ADDR_ERROR);
		CHECK(e->status == -EHOSTUNREACH);
		OK(rl_cm_ack_event(e));
		CHECK(rl_cm_connect(w->c.id, NULL) == -EINVAL);
		/* The next address may be one that another port leads to. */
		CHECK(rl_cm_get_local_addr(w->c.id)->sa_family == 0 && w->c.id->port_num == 0);
	}
	resolve(w, "10.77.0.2", 2000);
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	CHECK(rl_cm_get_local_addr(w->c.id)->sa_family != 0 && w->c.id->port_num != 0);
	OK(rl_cm_destroy_id(w->c.id));
	/* No limit, in either way to say it. */
	resolved(w, -1);
	OK(rl_cm_destroy_id(w->c.id));
	resolved(w, INT_MAX);
	OK(rl_cm_destroy_id(w->c.id));
}

/* As in Linux, the backlog is what the program has not read: it may hear all before it answers. */
static void
CM_31_all_ask_first(struct world *w)
{
	struct rl_cm_id *all = w->listener, *server[3], *client[3];
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE + 1);
	struct rl_cm_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rl_cm_event *e;

	OK(rl_cm_create_id(w->s.channel, &w->listener, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(w->listener, 1));
	for (int i = 0; i < 3; i++) {
		OK(rl_cm_create_id(w->c.channel, &client[i], NULL, RL_PS_TCP));
		OK(rl_cm_resolve_addr(client[i], NULL, (struct sockaddr *)&at, 20000));
		side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
		param.qp_num = pair_qp(&w->c.p, 4)->qp_num;
		OK(rl_cm_connect(client[i], &param));
		e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
		server[i] = e->id;
		OK(rl_cm_ack_event(e));
	}
	for (int i = 0; i < 3; i++) {
		OK(rl_cm_reject(server[i], NULL, 0));
		side_expect(&w->c, RL_CM_EVENT_REJECTED);
		OK(rl_cm_destroy_id(server[i]));
		OK(rl_cm_destroy_id(client[i]));
	}
	OK(rl_cm_destroy_id(w->listener));
	w->listener = all;
}

static void
bound_once(struct world *w)
{
	struct sockaddr_storage mine = side_address(w->client_ip, 4242),
				others = side_address(w->server_ip, 4243),
				nobodys = side_address(NOBODY, 1),
				to = side_address(w->server_ip, SERVICE);
	struct rl_cm_id *id;

	OK(rl_cm_create_id(w->c.channel, &id, NULL, RL_PS_TCP));
	CHECK(rl_cm_bind_addr(id, (struct sockaddr *)&nobodys) == -EADDRNOTAVAIL);
	OK(rl_cm_bind_addr(id, (struct sockaddr *)&mine));
	CHECK(rl_cm_bind_addr(id, (struct sockaddr *)&mine) == -EINVAL);
	/* Its address stays. */
	OK(rl_cm_resolve_addr(id, (struct sockaddr *)&others, (struct sockaddr *)&nobodys, 20));
	side_expect(&w->c, RL_CM_EVENT_ADDR_ERROR);
	CHECK(id->port_num != 0);
	OK(rl_cm_resolve_addr(id, (struct sockaddr *)&others, (struct sockaddr *)&to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	CHECK(((struct sockaddr_in *)(void *)rl_cm_get_local_addr(id))->sin_port == htons(4242));
	OK(rl_cm_destroy_id(id));
	/* What could not be resolved has bound nothing. */
	OK(rl_cm_create_id(w->c.channel, &id, NULL, RL_PS_TCP));
	CHECK(rl_cm_resolve_addr(id, (struct sockaddr *)&nobodys, (struct sockaddr *)&to, 2000) ==
		-EADDRNOTAVAIL);
	OK(rl_cm_resolve_addr(id, (struct sockaddr *)&mine, (struct sockaddr *)&to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	OK(rl_cm_destroy_id(id));
}

/* Each of many servers has a port when it is bound, of its own, at which it can listen later. */
static void
ports_of_their_own(struct world *w)
{
	struct rl_cm_id *ids[SERVERS];
	bool seen[1 << 16] = { false };

	for (uint32_t i = 0; i < SERVERS; i++) {
		struct sockaddr_storage at = side_address(w->server_ip, 0);
		uint16_t port;

		OK(rl_cm_create_id(w->s.channel, &ids[i], NULL, RL_PS_TCP));
		OK(rl_cm_bind_addr(ids[i], (struct sockaddr *)&at));
		port = ntohs(
			((struct sockaddr_in *)(void *)rl_cm_get_local_addr(ids[i]))->sin_port);
		CHECK(port != 0 && !seen[port]);
		seen[port] = true;
	}
	for (uint32_t i = 0; i < LISTEN; i++)
		OK(rl_cm_listen(ids[i], 0));
	for (uint32_t i = 0; i < SERVERS; i++)
		OK(rl_cm_destroy_id(ids[i]));
}

/* CM-29: a client may refuse what the server offers, and say why. */
static void
CM_29_an_answer_refused(struct world *w)
{
	struct rl_cm_event *e;

	answered(w);
	OK(rl_cm_reject(w->c.id, WHY, sizeof(WHY)));
	e = side_next(&w->s, RL_CM_EVENT_REJECTED);
	CHECK(e->status == 28 && e->conn.private_data_len == 148);
	CHECK(strcmp(e->conn.private_data, WHY) == 0);
	OK(rl_cm_ack_event(e));
	CHECK(rl_cm_establish(w->c.id) == -EINVAL && rl_cm_reject(w->c.id, NULL, 0) == -EINVAL);
	gone(w);
	/* Not when it is established. */
	answered(w);
	OK(rl_cm_establish(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	CHECK(rl_cm_reject(w->c.id, WHY, sizeof(WHY)) == -EINVAL);
	OK(rl_cm_disconnect(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	side_expect(&w->c, RL_CM_EVENT_DISCONNECTED);
	gone(w);
}

/* CM-33: an attempt that its own program ends has a last event. */
static void
CM_33_an_attempt_ended(struct world *w)
{
	struct rl_cm_event *e;

	asked(w);
	OK(rl_cm_disconnect(w->c.id));
	e = side_next(&w->c, RL_CM_EVENT_DISCONNECTED);
	CHECK(e->status == 0);
	OK(rl_cm_ack_event(e));
	e = side_next(&w->s, RL_CM_EVENT_REJECTED);
	CHECK(e->status == 4); /* as Linux says of a REQ that is taken back */
	OK(rl_cm_ack_event(e));
	gone(w);
}

/* CM-12: private data is what the event's own message brought. */
static void
CM_12_private_data(struct world *w)
{
	struct rl_cm_event *e;

	answered(w);
	OK(rl_cm_establish(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	OK(rl_cm_disconnect(w->c.id));
	e = side_next(&w->c, RL_CM_EVENT_DISCONNECTED);
	CHECK(e->status == 0 && e->conn.private_data == NULL && e->conn.private_data_len == 0);
	OK(rl_cm_ack_event(e));
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	e = side_next(&w->s, RL_CM_EVENT_TIMEWAIT_EXIT);
	CHECK(e->conn.private_data == NULL && e->conn.private_data_len == 0);
	OK(rl_cm_ack_event(e));
	gone(w);
}

/* CM-05, CM-09: as in Linux, more retries than a message can say are as many as it can. */
static void
CM_05_CM_09_retries_beyond_seven(struct world *w)
{
	struct rl_cm_conn_param param = { .retry_count = 10, .rnr_retry_count = 8 };
	struct rl_cm_event *e;

	resolved(w, 2000);
	param.qp_num = pair_qp(&w->c.p, 4)->qp_num;
	OK(rl_cm_connect(w->c.id, &param));
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->conn.retry_count == 7 && e->conn.rnr_retry_count == 7);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
	param.qp_num = pair_qp(&w->s.p, 4)->qp_num;
	OK(rl_cm_accept(w->s.id, &param));
	e = side_next(&w->c, RL_CM_EVENT_CONNECT_RESPONSE);
	CHECK(e->conn.rnr_retry_count == 7);
	OK(rl_cm_ack_event(e));
	gone(w);
}

/* A call that succeeds leaves errno alone: librdmacm makes some after one that has failed. */
static void
errno_stays(struct world *w)
{
	struct rl_qp_attr attr;
	struct rl_port_attr port;

	errno = KEPT;
	OK(rl_query_port(w->c.p.ctx, 1, &port));
	CHECK(errno == KEPT);
	OK(rl_query_qp(pair_qp(&w->c.p, 4), &attr, 0, NULL));
	CHECK(errno == KEPT);
	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	OK(rl_cm_destroy_id(w->c.id));
	CHECK(errno == KEPT);
}

/* As Linux has it: said after the bind it counts for those who bind later, and cannot be unsaid. */
static void
shared_behind_the_bind(struct world *w)
{
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE + 9);
	struct rl_cm_id *a, *b;

	OK(rl_cm_create_id(w->s.channel, &a, NULL, RL_PS_TCP));
	OK(rl_cm_create_id(w->s.channel, &b, NULL, RL_PS_TCP));
	OK(rl_cm_bind_addr(a, (struct sockaddr *)&at));
	OK(rl_cm_set_reuseaddr(b, true));
	OK(rl_cm_set_reuseaddr(b, false));
	OK(rl_cm_set_reuseaddr(b, true));
	CHECK(rl_cm_bind_addr(b, (struct sockaddr *)&at) == -EADDRINUSE);
	OK(rl_cm_set_reuseaddr(a, true));
	CHECK(rl_cm_set_reuseaddr(a, false) == -EINVAL);
	OK(rl_cm_bind_addr(b, (struct sockaddr *)&at));
	CHECK(rl_cm_listen(b, 0) == -EADDRINUSE);
	OK(rl_cm_destroy_id(a));
	OK(rl_cm_listen(b, 0));
	CHECK(rl_cm_set_reuseaddr(b, true) == -EINVAL);
	OK(rl_cm_destroy_id(b));
}

int
main(int argc, char **argv)
{
	struct world w = { .server_ip = argv[2], .client_ip = argv[3] };

	CHECK(argc >= 4);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	listening(&w);
	an_address_once_more(&w);
	CM_31_all_ask_first(&w);
	bound_once(&w);
	ports_of_their_own(&w);
	shared_behind_the_bind(&w);
	CM_29_an_answer_refused(&w);
	CM_33_an_attempt_ended(&w);
	CM_12_private_data(&w);
	CM_05_CM_09_retries_beyond_seven(&w);
	errno_stays(&w);
	pair_close(&w.s.p);
	pair_close(&w.c.p);
	return 0;
}
