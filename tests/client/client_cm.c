/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections by address and port, both ends in this process: rl_cm_*. argv[1] is the socket,
 * argv[2] the address of the server's port, argv[3] the one of the client's.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "cm_side.h"

#define SERVICE 7471
#define TOS     0x68
#define HELLO   "who is there?"
#define ANSWER  "it is us"

struct world {
	const char *socket, *server_ip, *client_ip;
	struct side s, c;
	struct rl_cm_id *listener;
	bool late; /* the traffic class is said of an id that is resolved */
};

static void
make_qp(struct side *side, struct rl_cm_id *id)
{
	struct rl_qp_init_attr init = { .send_cq = side->p.cq,
		.recv_cq = side->p.cq,
		.qp_type = id->qp_type,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };

	OK(rl_cm_create_qp(id, side->p.pd, &init));
	CHECK(id->qp->state == RL_QPS_INIT);
}

static void
listen_at(struct world *w, enum rl_qp_type type)
{
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE);

	OK(rl_cm_create_id(w->s.channel, &w->listener, w, RL_PS_TCP));
	w->listener->qp_type = type;
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(w->listener, 8));
}

static void
resolve(struct world *w, uint16_t service)
{
	struct sockaddr_storage to = side_address(w->server_ip, service);

	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	OK(rl_cm_set_tos(w->c.id, w->late ? 0 : TOS));
	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	if (w->late)
		OK(rl_cm_set_tos(w->c.id, TOS));
	OK(rl_cm_resolve_route(w->c.id, 2000));
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
}

static void
ask(struct world *w)
{
	const struct rl_cm_conn_param param = { .private_data = HELLO,
		.private_data_len = sizeof(HELLO),
		.responder_resources = 3,
		.initiator_depth = 5,
		.retry_count = 6,
		.rnr_retry_count = 4 };

	OK(rl_cm_connect(w->c.id, &param));
}

/* CM-08, CM-17: what the client has proposed, as the server is to see it. */
static void
asked(struct world *w)
{
	struct rl_cm_event *e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	const struct sockaddr_storage from = side_address(w->client_ip, 0);
	const struct sockaddr_in *peer;

	CHECK(e->listen_id == w->listener && e->id != w->listener && e->id->id_context == w);
	CHECK(e->conn.private_data_len == 56 && strcmp(e->conn.private_data, HELLO) == 0);
	CHECK(e->conn.responder_resources == 5 && e->conn.initiator_depth == 3);
	CHECK(e->conn.retry_count == 6 && e->conn.rnr_retry_count == 4);
	CHECK(e->conn.qp_num == w->c.id->qp->qp_num);
	peer = (struct sockaddr_in *)(void *)rl_cm_get_peer_addr(e->id);
	CHECK(peer->sin_family == from.ss_family && peer->sin_port != 0);
	if (peer->sin_family == AF_INET)
		CHECK(peer->sin_addr.s_addr ==
			((const struct sockaddr_in *)(const void *)&from)->sin_addr.s_addr);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
}

static void
say_yes(struct world *w)
{
	const struct rl_cm_conn_param param = { .private_data = ANSWER,
		.private_data_len = sizeof(ANSWER),
		.responder_resources = 4,
		.initiator_depth = 9,
		.rnr_retry_count = 2 };

	OK(rl_cm_accept(w->s.id, &param));
}

static void
connect_both(struct world *w)
{
	struct rl_cm_event *e;

	resolve(w, SERVICE);
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	make_qp(&w->s, w->s.id);
	OK(pair_recv(w->s.id->qp, pair_sge(&w->s.p, 0, 64), 7));
	say_yes(w);
	e = side_next(&w->c, RL_CM_EVENT_ESTABLISHED);
	CHECK(e->status == 0 && e->conn.private_data_len == 196);
	CHECK(strcmp(e->conn.private_data, ANSWER) == 0);
	OK(rl_cm_ack_event(e));
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
}

static void
drop(struct side *side)
{
	OK(rl_cm_destroy_qp(side->id));
	OK(rl_cm_destroy_id(side->id));
	side->id = NULL;
}

static void
part(struct world *w)
{
	OK(rl_cm_disconnect(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	side_expect(&w->c, RL_CM_EVENT_DISCONNECTED);
	OK(rl_cm_disconnect(w->s.id));
	CHECK(w->s.id->qp->state == RL_QPS_ERR && w->c.id->qp->state == RL_QPS_ERR);
	side_expect(&w->s, RL_CM_EVENT_TIMEWAIT_EXIT);
	side_expect(&w->c, RL_CM_EVENT_TIMEWAIT_EXIT);
	drop(&w->s);
	drop(&w->c);
}

/* Data goes, by the values that both ends have agreed on; then both hear of the end. */
static void
CM_12_CM_14_CM_16_CM_33_there_and_back(struct world *w)
{
	struct rl_qp_attr c, s;

	listen_at(w, RL_QPT_RC);
	connect_both(w);
	OK(rl_query_qp(w->c.id->qp, &c, 0, NULL));
	OK(rl_query_qp(w->s.id->qp, &s, 0, NULL));
	CHECK(c.qp_state == RL_QPS_RTS && s.qp_state == RL_QPS_RTS);
	CHECK(c.dest_qp_num == w->s.id->qp->qp_num && s.dest_qp_num == w->c.id->qp->qp_num);
	CHECK(c.rq_psn == s.sq_psn && s.rq_psn == c.sq_psn && c.path_mtu == s.path_mtu);
	CHECK(c.max_rd_atomic == 4 && s.max_dest_rd_atomic == 4); /* 5 asked for, 4 offered */
	CHECK(s.max_rd_atomic == 3 && c.max_dest_rd_atomic == 3); /* 3 offered, 9 asked for */
	CHECK(s.retry_cnt == 6 && s.rnr_retry == 4 && c.retry_cnt == 6 && c.rnr_retry == 2);
	CHECK(s.timeout != 0 && c.timeout != 0);
	/* The asking side's own. */
	CHECK(c.ah_attr.grh.traffic_class == TOS && s.ah_attr.grh.traffic_class == 0);
	memcpy(w->c.p.mr->addr, HELLO, sizeof(HELLO));
	OK(pair_post(w->c.id->qp, RL_WR_SEND, pair_sge(&w->c.p, 0, 64), 0, 0, 1));
	CHECK(pair_wait(w->c.p.cq).status == RL_WC_SUCCESS);
	CHECK(pair_wait(w->s.p.cq).wr_id == 7);
	CHECK(strcmp(w->s.p.mr->addr, HELLO) == 0);
	part(w);
	OK(rl_cm_destroy_id(w->listener));
}

/* As programs of librdmacm do: it counts until the peer is asked, and then changes nothing. */
static void
CM_06_class_of_a_resolved_id(struct world *w)
{
	struct rl_qp_attr c, s;

	w->late = true;
	listen_at(w, RL_QPT_RC);
	connect_both(w);
	OK(rl_cm_set_tos(w->c.id, 0));
	OK(rl_cm_set_tos(w->s.id, TOS));
	OK(rl_cm_set_tos(w->listener, TOS));
	OK(rl_query_qp(w->c.id->qp, &c, 0, NULL));
	OK(rl_query_qp(w->s.id->qp, &s, 0, NULL));
	CHECK(c.ah_attr.grh.traffic_class == TOS && s.ah_attr.grh.traffic_class == 0);
	part(w);
	OK(rl_cm_destroy_id(w->listener));
	w->late = false;
}

static void
CM_29_refused(struct world *w)
{
	struct rl_cm_event *e;

	listen_at(w, RL_QPT_RC);
	resolve(w, SERVICE);
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	OK(rl_cm_reject(w->s.id, ANSWER, sizeof(ANSWER)));
	e = side_next(&w->c, RL_CM_EVENT_REJECTED);
	CHECK(e->status == 28 && strcmp(e->conn.private_data, ANSWER) == 0);
	OK(rl_cm_ack_event(e));
	CHECK(rl_cm_accept(w->s.id, NULL) < 0);
	OK(rl_cm_destroy_id(w->s.id));
	drop(&w->c);
	/* Nobody listens there. */
	resolve(w, SERVICE + 1);
	make_qp(&w->c, w->c.id);
	ask(w);
	e = side_next(&w->c, RL_CM_EVENT_REJECTED);
	CHECK(e->status == 8);
	OK(rl_cm_ack_event(e));
	drop(&w->c);
	/* Who destroys an id that waits for an answer says no. */
	resolve(w, SERVICE);
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	OK(rl_cm_destroy_id(w->s.id));
	side_expect(&w->c, RL_CM_EVENT_REJECTED);
	drop(&w->c);
	OK(rl_cm_destroy_id(w->listener));
}

/* QPs of the application's own: it walks them, and its RTU waits for that. */
static void
CM_12_own_queue_pairs(struct world *w)
{
	struct rl_cm_conn_param param = { .retry_count = 7, .rnr_retry_count = 7 };
	struct rl_qp_attr attr = { .qp_state = RL_QPS_RTR };
	struct rl_qp *mine, *theirs;
	int mask;

	listen_at(w, RL_QPT_RC);
	resolve(w, SERVICE);
	mine = pair_qp(&w->c.p, 4);
	theirs = pair_qp(&w->s.p, 4);
	param.qp_num = mine->qp_num;
	CHECK(rl_cm_init_qp_attr(w->c.id, &attr, &mask) == -EINVAL);
	OK(rl_cm_connect(w->c.id, &param));
	{
		struct rl_cm_event *e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);

		w->s.id = e->id;
		OK(rl_cm_ack_event(e));
	}
	param.qp_num = theirs->qp_num;
	OK(rl_cm_accept(w->s.id, &param));
	CHECK(rl_cm_accept(w->s.id, &param) < 0);
	side_expect(&w->c, RL_CM_EVENT_CONNECT_RESPONSE);
	for (int s = RL_QPS_INIT; s <= RL_QPS_RTS; s++) {
		attr.qp_state = (enum rl_qp_state)s;
		OK(rl_cm_init_qp_attr(w->c.id, &attr, &mask));
		OK(rl_modify_qp(mine, &attr, mask));
		attr.qp_state = (enum rl_qp_state)s;
		OK(rl_cm_init_qp_attr(w->s.id, &attr, &mask));
		OK(rl_modify_qp(theirs, &attr, mask));
	}
	OK(pair_recv(theirs, pair_sge(&w->s.p, 0, 64), 3));
	OK(rl_cm_establish(w->c.id));
	CHECK(rl_cm_establish(w->c.id) < 0);
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	OK(pair_post(mine, RL_WR_SEND, pair_sge(&w->c.p, 0, 64), 0, 0, 1));
	CHECK(pair_wait(w->c.p.cq).status == RL_WC_SUCCESS);
	CHECK(pair_wait(w->s.p.cq).wr_id == 3);
	OK(rl_cm_disconnect(w->s.id));
	side_expect(&w->c, RL_CM_EVENT_DISCONNECTED);
	OK(rl_cm_destroy_id(w->c.id));
	OK(rl_cm_destroy_id(w->s.id));
	OK(rl_destroy_qp(mine));
	OK(rl_destroy_qp(theirs));
	OK(rl_cm_destroy_id(w->listener));
}

/* CM_45 */
static void
only_of_a_family(struct world *w)
{
	struct sockaddr_storage four = side_address("0.0.0.0", SERVICE + 1),
				six = { .ss_family = AF_INET6 },
				mine = side_address(w->server_ip, 0),
				nobodys = side_address("192.0.2.9", 1);
	struct rl_cm_id *a, *b;

	((struct sockaddr_in6 *)(void *)&six)->sin6_port = htons(SERVICE + 1);
	OK(rl_cm_create_id(w->s.channel, &a, NULL, RL_PS_TCP));
	OK(rl_cm_create_id(w->s.channel, &b, NULL, RL_PS_TCP));
	CHECK(rl_cm_bind_addr(a, (struct sockaddr *)&nobodys) == -EADDRNOTAVAIL);
	/* A port's address tells the port; QPs can be made for the id from then on. */
	CHECK(a->port_num == 0);
	OK(rl_cm_bind_addr(a, (struct sockaddr *)&mine));
	CHECK(a->port_num != 0);
	make_qp(&w->s, a);
	rl_cm_destroy_qp(a);
	OK(rl_cm_destroy_id(a));
	OK(rl_cm_create_id(w->s.channel, &a, NULL, RL_PS_TCP));
	OK(rl_cm_set_afonly(a, true));
	OK(rl_cm_bind_addr(a, (struct sockaddr *)&four));
	/* It would hear IPv4, too. */
	CHECK(rl_cm_bind_addr(b, (struct sockaddr *)&six) == -EADDRNOTAVAIL);
	OK(rl_cm_set_afonly(b, true));
	OK(rl_cm_bind_addr(b, (struct sockaddr *)&six));
	OK(rl_cm_listen(a, 0));
	OK(rl_cm_listen(b, 0));
	OK(rl_cm_destroy_id(a));
	OK(rl_cm_destroy_id(b));
}

static void
addresses(struct world *w)
{
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE);
	struct sockaddr_storage other = side_address("192.0.2.9", 1),
				mine = side_address(w->client_ip, 4242);
	struct rl_cm_id *id;

	listen_at(w, RL_QPT_RC);
	OK(rl_cm_create_id(w->s.channel, &id, NULL, RL_PS_TCP));
	CHECK(rl_cm_bind_addr(id, (struct sockaddr *)&at) == -EADDRINUSE);
	OK(rl_cm_set_reuseaddr(id, true)); /* the other one does not share it */
	CHECK(rl_cm_bind_addr(id, (struct sockaddr *)&at) == -EADDRINUSE);
	OK(rl_cm_destroy_id(id));
	OK(rl_cm_create_id(w->s.channel, &id, NULL, RL_PS_TCP));
	/* Any address, any port: at both ports of the dataplane. */
	at = side_address("0.0.0.0", 0);
	OK(rl_cm_bind_addr(id, (struct sockaddr *)&at));
	OK(rl_cm_listen(id, 0));
	CHECK(((struct sockaddr_in *)(void *)rl_cm_get_local_addr(id))->sin_port != 0);
	CHECK(rl_cm_listen(id, 0) == -EINVAL);
	CHECK(rl_cm_set_afonly(id, true) == -EINVAL); /* too late */
	OK(rl_cm_destroy_id(id));
	only_of_a_family(w);
	OK(rl_cm_create_id(w->c.channel, &id, NULL, RL_PS_TCP));
	CHECK(rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&other, 10) == -ENETUNREACH);
	CHECK(rl_cm_resolve_addr(id, (struct sockaddr *)&other, (struct sockaddr *)&mine, 10) ==
		-EADDRNOTAVAIL);
	CHECK(rl_cm_resolve_route(id, 10) == -EINVAL && rl_cm_connect(id, NULL) == -EINVAL);
	OK(rl_cm_destroy_id(id));
	/* In the subnet of a port, and nobody has it. */
	other = side_address("10.77.0.99", 1);
	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&other, 50));
	{
		struct rl_cm_event *e = side_next(&w->c, RL_CM_EVENT_ADDR_ERROR);

		CHECK(e->status == -EHOSTUNREACH);
		OK(rl_cm_ack_event(e));
	}
	OK(rl_cm_destroy_id(w->c.id));
	OK(rl_cm_destroy_id(w->listener));
}

static void
channels(struct world *w)
{
	struct rl_cm_event_channel *other, *first = w->c.channel;
	struct rl_cm_event *e;

	listen_at(w, RL_QPT_RC);
	OK(rl_cm_create_event_channel(w->c.p.ctx, &other));
	CHECK(fcntl(other->fd, F_SETFL, O_NONBLOCK) == 0);
	CHECK(rl_cm_get_event(other, &e) == -EAGAIN);
	resolve(w, SERVICE);
	CHECK(rl_cm_destroy_event_channel(first) == -EBUSY);
	OK(rl_cm_resolve_route(w->c.id, 0)); /* this event comes along */
	OK(rl_cm_migrate_id(w->c.id, other));
	w->c.channel = other;
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	OK(rl_cm_reject(w->s.id, NULL, 0));
	OK(rl_cm_destroy_id(w->s.id));
	side_expect(&w->c, RL_CM_EVENT_REJECTED);
	drop(&w->c);
	OK(rl_cm_destroy_event_channel(other));
	w->c.channel = first;
	OK(rl_cm_destroy_id(w->listener));
}

/* CM-33: who is gone has said goodbye to its peers, and its service port is free. */
static void
CM_33_gone(struct world *w)
{
	listen_at(w, RL_QPT_RC);
	connect_both(w);
	pair_close(&w->c.p);
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	side_open(&w->c, w->socket);
	drop(&w->s);
	/* One that leaves a peer without an answer. */
	resolve(w, SERVICE);
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	pair_close(&w->s.p);
	side_expect(&w->c, RL_CM_EVENT_REJECTED);
	drop(&w->c);
	side_open(&w->s, w->socket);
	for (int i = 0;; i++) { /* it may be on its way out still */
		struct sockaddr_storage at = side_address(w->server_ip, SERVICE);
		int rc;

		OK(rl_cm_create_id(w->s.channel, &w->listener, w, RL_PS_TCP));
		rc = rl_cm_bind_addr(w->listener, (struct sockaddr *)&at);
		if (rc == 0)
			rc = rl_cm_listen(w->listener, 8);
		CHECK(rc == 0 || (rc == -EADDRINUSE && i < 10000));
		if (rc == 0)
			break;
		OK(rl_cm_destroy_id(w->listener));
		usleep(1000);
	}
	connect_both(w);
	part(w);
	OK(rl_cm_destroy_id(w->listener));
}

/* UC, which has neither answers nor depths. */
static void
CM_20_unreliable(struct world *w)
{
	listen_at(w, RL_QPT_UC);
	resolve(w, SERVICE);
	w->c.id->qp_type = RL_QPT_UC;
	make_qp(&w->c, w->c.id);
	ask(w);
	asked(w);
	CHECK(w->s.id->qp_type == RL_QPT_UC);
	make_qp(&w->s, w->s.id);
	OK(pair_recv(w->s.id->qp, pair_sge(&w->s.p, 0, 64), 7));
	say_yes(w);
	side_expect(&w->c, RL_CM_EVENT_ESTABLISHED);
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	OK(pair_post(w->c.id->qp, RL_WR_SEND, pair_sge(&w->c.p, 0, 64), 0, 0, 1));
	CHECK(pair_wait(w->s.p.cq).wr_id == 7);
	CHECK(pair_wait(w->c.p.cq).status == RL_WC_SUCCESS);
	part(w);
	OK(rl_cm_destroy_id(w->listener));
}

int
main(int argc, char **argv)
{
	struct world w = { .socket = argv[1] };

	CHECK(argc >= 4);
	w.server_ip = argv[2];
	w.client_ip = argv[3];
	side_open(&w.s, w.socket);
	side_open(&w.c, w.socket);
	CM_12_CM_14_CM_16_CM_33_there_and_back(&w);
	CM_06_class_of_a_resolved_id(&w);
	CM_29_refused(&w);
	CM_12_own_queue_pairs(&w);
	channels(&w);
	CM_20_unreliable(&w);
	addresses(&w);
	CM_33_gone(&w);
	OK(rl_cm_destroy_event_channel(w.s.channel));
	OK(rl_cm_destroy_event_channel(w.c.channel));
	pair_close(&w.s.p);
	pair_close(&w.c.p);
	return 0;
}
