/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that wait in the library, as it fetches several at a time, and queue pairs that the
 * dataplane walks. argv[1] is the socket, argv[2] the server's address.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cm.h"
#include "cm_side.h"

#define SERVICE 7471
#define ASKERS  3

struct world {
	const char *server_ip;
	struct side s, c;
	struct rl_cm_id *listener, *askers[ASKERS];
};

static void
make_qp(struct side *side, struct rl_cm_id *id)
{
	struct rl_qp_init_attr init = { .send_cq = side->p.cq,
		.recv_cq = side->p.cq,
		.qp_type = RL_QPT_RC,
		.cap = { 4, 4, 1, 1, 0 } };

	OK(rl_cm_create_qp(id, side->p.pd, &init));
	CHECK(id->qp->state == RL_QPS_INIT);
}

static struct rl_cm_id *
ask(struct world *w)
{
	struct sockaddr_storage to = side_address(w->server_ip, SERVICE);
	struct rl_cm_id *id;

	OK(rl_cm_create_id(w->c.channel, &id, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 60000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	make_qp(&w->c, id);
	OK(rl_cm_connect(id, NULL));
	return id;
}

static FILE *
kernel_says(int fd)
{
	char path[64];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
	f = fopen(path, "re");
	CHECK(f != NULL);
	return f;
}

/* @return -1: it counts nothing. */
static int
counted(int fd)
{
	FILE *f = kernel_says(fd);
	char line[128];
	int n = -1;

	while (fgets(line, sizeof(line), f) != NULL)
		if (strncmp(line, "eventfd-count:", 14) == 0)
			n = (int)strtoul(line + 14, NULL, 16);
	fclose(f);
	return n;
}

/* Events that were told of on a channel: it watches the eventfd that counts them, and more. */
static int
told(int channel)
{
	FILE *f = kernel_says(channel);
	char line[128];
	int n = -1;

	while (fgets(line, sizeof(line), f) != NULL && n < 0)
		if (strncmp(line, "tfd:", 4) == 0)
			n = counted((int)strtoul(line + 4, NULL, 10));
	fclose(f);
	return n;
}

static void
wait_for(const struct side *side, int n)
{
	for (int i = 0; i < 60000 && told(side->channel->fd) != n; i++)
		usleep(1000);
	CHECK(told(side->channel->fd) == n);
}

/* Three have asked, and the application has heard of the first. */
static void
three_ask(struct world *w)
{
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE);
	struct rl_cm_event *e;

	OK(rl_cm_create_id(w->s.channel, &w->listener, w, RL_PS_TCP));
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&at));
	OK(rl_cm_listen(w->listener, 8));
	for (int i = 0; i < ASKERS; i++)
		w->askers[i] = ask(w);
	wait_for(&w->s, ASKERS);
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
}

static void
quiet(struct rl_cm_event_channel *ch)
{
	struct pollfd p = { .fd = ch->fd, .events = POLLIN };

	CHECK(poll(&p, 1, 0) == 0);
}

static void
all_refused(struct world *w)
{
	for (int i = 0; i < ASKERS; i++)
		side_expect(&w->c, RL_CM_EVENT_REJECTED);
	for (int i = 0; i < ASKERS; i++) {
		OK(rl_cm_destroy_qp(w->askers[i]));
		OK(rl_cm_destroy_id(w->askers[i]));
	}
}

/* Who asked a listener that ends, and was not heard, is refused; nothing of it stays. */
static void
the_listener_ends(struct world *w)
{
	three_ask(w);
	OK(rl_cm_destroy_id(w->listener));
	quiet(w->s.channel);
	OK(rl_cm_reject(w->s.id, NULL, 0));
	OK(rl_cm_destroy_id(w->s.id));
	OK(rl_cm_destroy_event_channel(w->s.channel)); /* no id is on it */
	OK(rl_cm_create_event_channel(w->s.p.ctx, &w->s.channel));
	all_refused(w);
}

/* They go along with a listener that is moved. */
static void
the_listener_moves(struct world *w)
{
	struct rl_cm_event_channel *first = w->s.channel;

	three_ask(w);
	OK(rl_cm_reject(w->s.id, NULL, 0));
	OK(rl_cm_destroy_id(w->s.id));
	OK(rl_cm_create_event_channel(w->s.p.ctx, &w->s.channel));
	OK(rl_cm_migrate_id(w->listener, w->s.channel));
	quiet(first);
	OK(rl_cm_destroy_event_channel(first));
	for (int i = 1; i < ASKERS; i++) {
		struct rl_cm_event *e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);

		CHECK(e->listen_id == w->listener && e->id->channel == w->s.channel);
		OK(rl_cm_reject(e->id, NULL, 0));
		w->s.id = e->id;
		OK(rl_cm_ack_event(e));
		OK(rl_cm_destroy_id(w->s.id));
	}
	quiet(w->s.channel);
	all_refused(w);
	OK(rl_cm_destroy_id(w->listener));
}

/* An id that is ended takes its events along, the others' stay in their order. */
static void
an_asker_ends(struct world *w)
{
	struct rl_cm_event *e;

	three_ask(w);
	OK(rl_cm_resolve_route(w->askers[0], 0));
	OK(rl_cm_reject(w->s.id, NULL, 0));
	wait_for(&w->c, 2);
	OK(rl_cm_destroy_qp(w->askers[0]));
	OK(rl_cm_destroy_id(w->askers[0]));
	quiet(w->c.channel);
	OK(rl_cm_destroy_id(w->s.id));
	for (int i = 1; i < ASKERS; i++) {
		e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
		OK(rl_cm_reject(e->id, NULL, 0));
		w->s.id = e->id;
		OK(rl_cm_ack_event(e));
		OK(rl_cm_destroy_id(w->s.id));
	}
	wait_for(&w->c, 2);
	e = side_next(&w->c, RL_CM_EVENT_REJECTED);
	CHECK(e->id == w->askers[1]);
	OK(rl_cm_ack_event(e));
	OK(rl_cm_destroy_qp(w->askers[1]));
	OK(rl_cm_destroy_id(w->askers[1]));
	/* This one's event has been fetched with the other's. */
	OK(rl_cm_destroy_qp(w->askers[2]));
	OK(rl_cm_destroy_id(w->askers[2]));
	quiet(w->c.channel);
	OK(rl_cm_destroy_id(w->listener));
}

static void
refuse_next(struct world *w)
{
	struct rl_cm_event *e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	struct rl_cm_id *id = e->id;

	OK(rl_cm_ack_event(e));
	OK(rl_cm_reject(id, NULL, 0));
	OK(rl_cm_destroy_id(id));
}

/* One who leaves before the answer: as with librdmacm, nothing is told, and accept fails. */
static void
an_asker_leaves(struct world *w)
{
	struct rl_cm_event_channel *first = w->s.channel;

	for (int told = 1; told >= 0; told--) {
		OK(rl_cm_create_event_channel(w->s.p.ctx, &w->s.channel));
		if (told == 0)
			OK(rl_cm_accepted_only(w->s.channel));
		three_ask(w);
		OK(rl_cm_destroy_qp(w->askers[0]));
		OK(rl_cm_destroy_id(w->askers[0])); /* a REJ */
		w->askers[0] = ask(w);              /* behind it */
		wait_for(&w->s, ASKERS + (unsigned int)told);
		for (int i = 1; i < ASKERS; i++)
			refuse_next(w);
		if (told != 0)
			side_expect(&w->s, RL_CM_EVENT_REJECTED);
		refuse_next(w);
		quiet(w->s.channel);
		make_qp(&w->s, w->s.id);
		CHECK(rl_cm_accept(w->s.id, NULL) < 0);
		OK(rl_cm_destroy_qp(w->s.id));
		OK(rl_cm_destroy_id(w->s.id));
		OK(rl_cm_destroy_id(w->listener));
		OK(rl_cm_destroy_event_channel(w->s.channel));
		all_refused(w);
	}
	w->s.channel = first;
}

static void
say_yes(struct world *w)
{
	make_qp(&w->s, w->s.id);
	OK(rl_cm_accept(w->s.id, NULL));
	CHECK(w->s.id->qp->state == RL_QPS_RTS);
}

/* CM-12: the QP is gone when the REP comes: no RTU, and the peer hears of an end. */
static void
CM_12_the_queue_pair_is_gone(struct world *w)
{
	struct rl_cm_event *e;

	three_ask(w);
	OK(rl_cm_destroy_qp(w->askers[0]));
	say_yes(w);
	e = side_next(&w->c, RL_CM_EVENT_CONNECT_ERROR);
	CHECK(e->id == w->askers[0] && e->status == -ENOENT);
	OK(rl_cm_ack_event(e));
	refuse_next(w);
	refuse_next(w);
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	OK(rl_cm_disconnect(w->s.id));
	OK(rl_cm_destroy_qp(w->s.id));
	OK(rl_cm_destroy_id(w->s.id));
	for (int i = 0; i < ASKERS; i++) {
		OK(rl_cm_get_event(w->c.channel, &e));
		CHECK(e->event ==
			(e->id == w->askers[0] ? RL_CM_EVENT_DISCONNECTED : RL_CM_EVENT_REJECTED));
		OK(rl_cm_ack_event(e));
	}
	for (int i = 0; i < ASKERS; i++) {
		OK(rl_cm_destroy_qp(w->askers[i]));
		OK(rl_cm_destroy_id(w->askers[i]));
	}
	OK(rl_cm_destroy_id(w->listener));
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

/* Another client's queue pair, though of the same user, is neither walked nor ended. */
static void
not_its_own(struct world *w)
{
	struct sockaddr_storage to = side_address(w->server_ip, SERVICE);
	struct rl_qp *qp = pair_qp(&w->s.p, 4);
	struct rl_cm_id *id;
	json_int_t handle;

	OK(rl_cm_create_id(w->c.channel, &id, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(id, NULL, (struct sockaddr *)&to, 60000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	handle = (json_int_t)cm_id_of(id)->handle;
	CHECK(raw(&w->c, "client_cm_connect",
		      json_pack("{s:I, s:i, s:i, s:b}", "handle", handle, "qp_num", qp->qp_num,
			      "service_port", SERVICE, "walk", 1)) == -ENOENT);
	/* To nobody: it is refused by the peer, and the queue pair is as it was. */
	OK(raw(&w->c, "client_cm_connect",
		json_pack("{s:I, s:i, s:i}", "handle", handle, "qp_num", qp->qp_num, "service_port",
			SERVICE)));
	OK(raw(&w->c, "client_cm_disconnect",
		json_pack("{s:I, s:i}", "handle", handle, "qp_num", qp->qp_num)));
	{
		struct rl_qp_attr attr;

		OK(rl_query_qp(qp, &attr, 0, NULL));
		CHECK(attr.qp_state == RL_QPS_INIT || attr.qp_state == RL_QPS_RESET);
	}
	OK(rl_cm_destroy_id(id));
	OK(rl_destroy_qp(qp));
}

int
main(int argc, char **argv)
{
	struct world w = { .server_ip = argv[2] };

	CHECK(argc >= 3);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	the_listener_ends(&w);
	the_listener_moves(&w);
	an_asker_ends(&w);
	an_asker_leaves(&w);
	CM_12_the_queue_pair_is_gone(&w);
	not_its_own(&w);
	OK(rl_cm_destroy_event_channel(w.s.channel));
	OK(rl_cm_destroy_event_channel(w.c.channel));
	pair_close(&w.s.p);
	pair_close(&w.c.p);
	return 0;
}
