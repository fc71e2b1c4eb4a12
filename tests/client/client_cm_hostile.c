/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an application cannot do by connections. argv[1] is the socket. client_limits: 20 cm_ids,
 * 4 cm_listeners, 5 cm_pending.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cm.h"
#include "cm_side.h"

#define SERVICE   7471
#define IDS       20
#define LISTENERS 4
#define PENDING   5

/* An id with the way to the other port. @return NULL with -errno in *rc. */
static struct rl_cm_id *
resolve(struct side *s, int *rc)
{
	struct sockaddr_storage to = side_address("10.77.0.2", SERVICE);
	struct rl_cm_id *id;

	OK(rl_cm_create_id(s->channel, &id, NULL, RL_PS_TCP));
	*rc = rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 2000);
	if (*rc == 0) {
		side_expect(s, RL_CM_EVENT_ADDR_RESOLVED);
		return id;
	}
	CHECK(rl_cm_destroy_id(id) == 0);
	return NULL;
}

/* Who had the port before may be on its way out still. */
static struct rl_cm_id *
listen_at(struct side *s, const char *ip, uint16_t port, int *rc)
{
	struct sockaddr_storage at = side_address(ip, port);

	for (int i = 0;; i++) {
		struct rl_cm_id *id;

		OK(rl_cm_create_id(s->channel, &id, NULL, RL_PS_TCP));
		*rc = rl_cm_bind_addr(id, (struct sockaddr *)&at);
		if (*rc == 0)
			*rc = rl_cm_listen(id, 0);
		if (*rc == 0)
			return id;
		OK(rl_cm_destroy_id(id));
		if (*rc != -EADDRINUSE || i == 10000)
			return NULL;
		usleep(1000);
	}
}

static void
as_many_as_it_may(const char *socket)
{
	struct rl_cm_id *ids[IDS], *id;
	struct side s;
	int rc;

	side_open(&s, socket);
	for (int i = 0; i < IDS; i++) {
		ids[i] = resolve(&s, &rc);
		CHECK(ids[i] != NULL);
	}
	CHECK(resolve(&s, &rc) == NULL && rc == -ENOSPC);
	CHECK(strstr(rl_last_error(), "client_limits.cm_ids") != NULL);
	for (int i = 0; i < IDS; i++)
		OK(rl_cm_destroy_id(ids[i]));
	for (int i = 0; i <= IDS; i++) { /* bound, each to a port of its own */
		struct sockaddr_storage any = side_address("10.77.0.2", 0);

		OK(rl_cm_create_id(s.channel, &id, NULL, RL_PS_TCP));
		rc = rl_cm_bind_addr(id, (struct sockaddr *)&any);
		CHECK(rc == (i < IDS ? 0 : -ENOSPC));
		if (i < IDS)
			ids[i] = id;
	}
	CHECK(strstr(rl_last_error(), "client_limits.cm_ids") != NULL);
	OK(rl_cm_destroy_id(id));
	for (int i = 0; i < IDS; i++)
		OK(rl_cm_destroy_id(ids[i]));
	for (int i = 0; i < LISTENERS; i++) {
		ids[i] = listen_at(&s, "10.77.0.2", (uint16_t)(SERVICE + i), &rc);
		CHECK(ids[i] != NULL);
	}
	CHECK(listen_at(&s, "10.77.0.1", SERVICE, &rc) == NULL && rc == -ENOSPC);
	CHECK(strstr(rl_last_error(), "client_limits.cm_listeners") != NULL);
	OK(rl_cm_destroy_id(ids[0]));
	OK(rl_cm_destroy_id(ids[1]));
	/* At both ports: two. What fails in its middle leaves nothing. */
	id = listen_at(&s, "0.0.0.0", SERVICE, &rc);
	CHECK(id != NULL);
	CHECK(listen_at(&s, "0.0.0.0", SERVICE + 9, &rc) == NULL && rc == -ENOSPC);
	OK(rl_cm_destroy_id(id));
	id = listen_at(&s, "10.77.0.1", SERVICE + 9, &rc);
	CHECK(id != NULL);
	pair_close(&s.p);
}

static struct rl_cm_conn_param
by_qp(const struct rl_qp *qp)
{
	return (struct rl_cm_conn_param){
		.retry_count = 7, .rnr_retry_count = 7, .qp_num = qp->qp_num
	};
}

/* CM-40: requests that it lets wait. */
static void
CM_40_waiting_peers(const char *socket)
{
	struct rl_cm_conn_param param;
	struct rl_cm_event *e[PENDING + 1];
	struct rl_cm_id *ids[PENDING + 1], *listener;
	struct side s, c;
	int rc;

	side_open(&s, socket);
	side_open(&c, socket);
	listener = listen_at(&s, "10.77.0.2", SERVICE, &rc);
	CHECK(listener != NULL);
	for (int i = 0; i <= PENDING; i++) {
		param = by_qp(pair_qp(&c.p, 4));
		ids[i] = resolve(&c, &rc);
		OK(rl_cm_connect(ids[i], &param));
		if (i < PENDING)
			e[i] = side_next(&s, RL_CM_EVENT_CONNECT_REQUEST);
	}
	e[PENDING] = side_next(&c, RL_CM_EVENT_REJECTED);
	CHECK(e[PENDING]->id == ids[PENDING] && e[PENDING]->status == 3); /* no resources */
	OK(rl_cm_ack_event(e[PENDING]));
	/* One answer makes room for one. */
	OK(rl_cm_reject(e[0]->id, NULL, 0));
	side_expect(&c, RL_CM_EVENT_REJECTED);
	OK(rl_cm_destroy_id(ids[0]));
	ids[0] = resolve(&c, &rc);
	param = by_qp(pair_qp(&c.p, 4));
	OK(rl_cm_connect(ids[0], &param));
	side_expect(&s, RL_CM_EVENT_CONNECT_REQUEST);
	for (int i = 0; i < PENDING; i++)
		OK(rl_cm_ack_event(e[i]));
	pair_close(&s.p);
	for (int i = 0; i < PENDING; i++)
		side_expect(&c, RL_CM_EVENT_REJECTED);
	pair_close(&c.p);
}

static int
raw(struct side *s, const char *method, json_t *params)
{
	struct context *ctx = context_of(s->p.ctx);
	int rc;

	pthread_mutex_lock(&ctx->lock);
	rc = client_call(ctx, method, params, -1, NULL);
	pthread_mutex_unlock(&ctx->lock);
	return rc;
}

/* Handles are a client's own, queue pairs a user's; and every step has its time. */
static void
what_is_not_its_own(const char *socket)
{
	static const char *const methods[] = { "client_cm_establish", "client_cm_reject",
		"client_cm_disconnect", "client_cm_destroy" };
	struct rl_cm_conn_param param = { .qp_num = 0x123456 };
	struct side a, b;
	struct rl_cm_id *id;
	int rc;

	side_open(&a, socket);
	side_open(&b, socket);
	id = resolve(&a, &rc);
	for (json_int_t handle = 1; handle < 6; handle++) {
		for (unsigned int i = 0; i < ARRAY_LEN(methods); i++)
			CHECK(raw(&b, methods[i], json_pack("{s:I}", "handle", handle)) == -ENOENT);
	}
	CHECK(rl_cm_connect(id, &param) == -ENOENT); /* nobody's queue pair */
	CHECK(rl_cm_accept(id, &param) < 0 && rl_cm_establish(id) < 0);
	CHECK(rl_cm_reject(id, NULL, 0) < 0 && rl_cm_disconnect(id) < 0);
	CHECK(raw(&a, "client_cm_migrate", json_pack("{s:i, s:i}", "handle", 2, "channel", 99)) ==
		-ENOENT);
	CHECK(raw(&a, "client_cm_resolve",
		      json_pack("{s:i, s:s}", "channel", 99, "dest_ip", "10.77.0.2")) == -ENOENT);
	param = by_qp(pair_qp(&a.p, 4));
	param.private_data = socket;
	param.private_data_len = 57; /* one more than a REQ has room for */
	CHECK(rl_cm_connect(id, &param) == -EINVAL);
	param.private_data_len = 0;
	OK(rl_cm_connect(id, &param)); /* the id is as it was */
	CHECK(rl_cm_connect(id, &param) == -EINVAL);
	side_expect(&a, RL_CM_EVENT_REJECTED);
	/* Datagrams go with port space UDP. */
	OK(rl_cm_create_id(a.channel, &id, NULL, RL_PS_TCP));
	id->qp_type = RL_QPT_UD;
	CHECK(rl_cm_listen(id, 0) == -EINVAL);
	OK(rl_cm_destroy_id(id));
	CHECK(raw(&a, "client_qp_list", NULL) == -EPROTO); /* no such method */
	CHECK(raw(&a, "cm_list", NULL) < 0);               /* an operator's */
	pair_close(&a.p);
	pair_close(&b.p);
}

/* A listener for datagrams, or for connections, and a peer that asks it. @return handle of that. */
static json_int_t
asked(struct side *s, struct side *c, enum rl_cm_port_space ps)
{
	struct sockaddr_storage at = side_address("10.77.0.2", SERVICE);
	struct rl_qp_init_attr ud = { .send_cq = c->p.cq,
		.recv_cq = c->p.cq,
		.qp_type = RL_QPT_UD,
		.cap = { 1, 1, 1, 1, 0 } };
	struct rl_cm_conn_param param = { .retry_count = 1 };
	struct rl_cm_id *listener;
	struct rl_cm_event *e;
	struct rl_qp *qp;
	json_int_t handle;

	OK(rl_cm_create_id(s->channel, &listener, NULL, ps));
	OK(rl_cm_bind_addr(listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(listener, 0));
	OK(rl_cm_create_id(c->channel, &c->id, NULL, ps));
	OK(rl_cm_resolve_addr(c->id, NULL, (struct sockaddr *)&at, 2000));
	side_expect(c, RL_CM_EVENT_ADDR_RESOLVED);
	if (ps == RL_PS_UDP)
		OK(rl_create_qp(c->p.pd, &ud, &qp));
	else
		qp = pair_qp(&c->p, 4);
	param.qp_num = qp->qp_num;
	OK(rl_cm_connect(c->id, &param));
	e = side_next(s, RL_CM_EVENT_CONNECT_REQUEST);
	handle = ((struct cm_id *)e->id)->handle;
	OK(rl_cm_ack_event(e));
	return handle;
}

/*
 * CM-13: an answer that is refused does nothing to its queue pair. One of type RC for datagrams was
 * in RTS with a path MTU of 128, and a long WRITE ended the dataplane.
 */
static void
CM_13_answers_that_are_refused(const char *socket)
{
	for (int datagrams = 0; datagrams <= 1; datagrams++) {
		struct rl_qp_attr attr;
		struct side s, c;
		struct rl_qp *qp;
		json_int_t handle;
		json_t *o;

		side_open(&s, socket);
		side_open(&c, socket);
		handle = asked(&s, &c, datagrams ? RL_PS_UDP : RL_PS_TCP);
		qp = pair_qp(&s.p, 4);
		pair_move(&s.p, qp, RL_QPS_INIT, 2, 0, 1);
		o = json_pack("{s:I, s:I, s:b}", "handle", handle, "qp_num", (json_int_t)qp->qp_num,
			"walk", 1);
		if (!datagrams) { /* a REP has room for 196 bytes */
			char text[2 * 197 + 1];

			memset(text, '0', sizeof(text) - 1);
			text[sizeof(text) - 1] = '\0';
			json_object_set_new(o, "private_data", json_string(text));
		}
		CHECK(raw(&s, "client_cm_accept", o) == -EINVAL);
		OK(rl_query_qp(qp, &attr, 0, NULL));
		CHECK(attr.qp_state == RL_QPS_INIT);
		pair_close(&s.p);
		pair_close(&c.p);
	}
}

/* In the middle of everything: processes that end, and leave their peers to themselves. */
static void
CM_33_killed(const char *socket)
{
	for (int round = 0; round < 12; round++) {
		const pid_t pid = fork();
		int status;

		CHECK(pid >= 0);
		if (pid == 0) {
			struct rl_cm_conn_param param;
			struct rl_cm_id *id, *l;
			struct rl_cm_event *e;
			struct side s;
			int rc;

			side_open(&s, socket);
			l = listen_at(&s, "10.77.0.2", (uint16_t)(9000 + round), &rc);
			CHECK(l != NULL);
			id = resolve(&s, &rc);
			((struct sockaddr_in *)(void *)rl_cm_get_peer_addr(id))->sin_port =
				htons((uint16_t)(9000 + round));
			param = by_qp(pair_qp(&s.p, 4));
			if (round % 4 > 0)
				OK(rl_cm_connect(id, &param));
			e = round % 4 > 1 ? side_next(&s, RL_CM_EVENT_CONNECT_REQUEST) : NULL;
			param = by_qp(pair_qp(&s.p, 4));
			if (round % 4 > 2)
				OK(rl_cm_accept(e->id, &param));
			_exit(0);
		}
		CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	}
}

int
main(int argc, char **argv)
{
	CHECK(argc >= 2);
	as_many_as_it_may(argv[1]);
	CM_40_waiting_peers(argv[1]);
	what_is_not_its_own(argv[1]);
	CM_13_answers_that_are_refused(argv[1]);
	CM_33_killed(argv[1]);
	CM_40_waiting_peers(argv[1]); /* as if nothing had been */
	return 0;
}
