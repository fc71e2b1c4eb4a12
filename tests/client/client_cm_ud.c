/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams by address and port (CM-41), both ends in this process: rl_cm_*. argv[1] is the socket,
 * argv[2] the address of the server's port. And a connection that names datagrams' queue pairs.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "cm_side.h"

#define SERVICE 7471
#define HELLO   "who is there?"
#define ANSWER  "it is us"
#define GRH     40
#define KEY     0x11223344u

struct world {
	struct side s, c;
	struct rl_cm_id *listener;
	struct sockaddr_storage to;
};

static void
make_qp(struct side *side, struct rl_cm_id *id)
{
	struct rl_qp_init_attr init = { .send_cq = side->p.cq,
		.recv_cq = side->p.cq,
		.qp_type = RL_QPT_UD,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };

	CHECK(id->qp_type == RL_QPT_UD);
	OK(rl_cm_create_qp(id, side->p.pd, &init));
	CHECK(id->qp->state == RL_QPS_RTS);
	OK(pair_recv(id->qp, pair_sge(&side->p, 0, 256), 7));
}

/* The client asks, the server hears. */
static void
ask(struct world *w)
{
	const struct rl_cm_conn_param param = { .private_data = HELLO,
		.private_data_len = sizeof(HELLO) };
	struct rl_cm_event *e;

	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_UDP));
	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&w->to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	OK(rl_cm_resolve_route(w->c.id, 2000));
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
	make_qp(&w->c, w->c.id);
	OK(rl_cm_connect(w->c.id, &param));
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->listen_id == w->listener && e->id->ps == RL_PS_UDP);
	CHECK(e->id->qp_type == RL_QPT_UD && e->ud.private_data_len == 180);
	CHECK(strcmp(e->ud.private_data, HELLO) == 0 && e->ud.qp_num == 0);
	CHECK(e->ud.ah_attr.is_global && e->ud.ah_attr.port_num == e->id->port_num);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
}

static void
send_to(struct side *from, const struct rl_cm_event *e)
{
	struct rl_sge sge = pair_sge(&from->p, 1024, sizeof(HELLO));
	struct rl_ah_attr attr = e->ud.ah_attr;
	struct rl_ah *ah;
	struct rl_send_wr *bad, wr = { .wr_id = 1,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED };

	memcpy((char *)from->p.mr->addr + 1024, HELLO, sizeof(HELLO));
	OK(rl_create_ah(from->p.pd, &attr, &ah));
	wr.wr.ud.ah = ah;
	wr.wr.ud.remote_qpn = e->ud.qp_num;
	wr.wr.ud.remote_qkey = e->ud.qkey;
	OK(rl_post_send(from->id->qp, &wr, &bad));
	CHECK(pair_wait(from->p.cq).status == RL_WC_SUCCESS);
	OK(rl_destroy_ah(ah));
}

static void
drop(struct side *side)
{
	OK(rl_cm_destroy_qp(side->id));
	OK(rl_cm_destroy_id(side->id));
	side->id = NULL;
}

static void
CM_41_yes(struct world *w)
{
	const struct rl_cm_conn_param param = { .private_data = ANSWER,
		.private_data_len = sizeof(ANSWER) };
	struct rl_cm_event *e;

	ask(w);
	make_qp(&w->s, w->s.id);
	OK(rl_cm_accept(w->s.id, &param));
	CHECK(rl_cm_accept(w->s.id, &param) < 0);
	e = side_next(&w->c, RL_CM_EVENT_ESTABLISHED);
	CHECK(e->status == 0 && e->ud.private_data_len == 136);
	CHECK(strcmp(e->ud.private_data, ANSWER) == 0);
	CHECK(e->ud.qp_num == w->s.id->qp->qp_num && e->ud.qkey == RL_UDP_QKEY);
	send_to(&w->c, e);
	OK(rl_cm_ack_event(e));
	CHECK(pair_wait(w->s.p.cq).wr_id == 7);
	CHECK(strcmp((char *)w->s.p.mr->addr + GRH, HELLO) == 0);
	OK(rl_cm_disconnect(w->c.id));
	CHECK(w->c.id->qp->state == RL_QPS_ERR);
	CHECK(pair_wait(w->c.p.cq).status == RL_WC_WR_FLUSH_ERR);
	drop(&w->c);
	drop(&w->s);
}

/* A number and a key of the program's own. */
static void
CM_41_own_queue_pair(struct world *w)
{
	struct rl_cm_conn_param param = { .qkey = KEY };
	struct rl_cm_event *e;
	struct rl_qp *qp;

	ask(w);
	qp = pair_qp(&w->s.p, 4);
	param.qp_num = qp->qp_num;
	CHECK(rl_cm_accept(w->s.id, &param) < 0); /* it is of type RC */
	OK(rl_destroy_qp(qp));
	make_qp(&w->s, w->s.id);
	param.qp_num = w->s.id->qp->qp_num;
	qp = w->s.id->qp;
	w->s.id->qp = NULL;
	OK(rl_cm_accept(w->s.id, &param));
	w->s.id->qp = qp;
	e = side_next(&w->c, RL_CM_EVENT_ESTABLISHED);
	CHECK(e->ud.qp_num == qp->qp_num && e->ud.qkey == KEY);
	OK(rl_cm_ack_event(e));
	drop(&w->c);
	drop(&w->s);
}

static void
CM_41_no(struct world *w)
{
	struct rl_cm_event *e;

	ask(w);
	OK(rl_cm_reject(w->s.id, ANSWER, sizeof(ANSWER)));
	e = side_next(&w->c, RL_CM_EVENT_UNREACHABLE);
	CHECK(e->status == 2);
	OK(rl_cm_ack_event(e));
	OK(rl_cm_destroy_id(w->s.id));
	drop(&w->c);
	/* Who destroys an id that waits for an answer says no. */
	ask(w);
	OK(rl_cm_destroy_id(w->s.id));
	side_expect(&w->c, RL_CM_EVENT_UNREACHABLE);
	drop(&w->c);
}

/* A queue pair that nobody moves: to a connection of TCP its type is nothing. */
static struct rl_qp *
named_qp(struct side *side, struct rl_cm_id *id)
{
	struct rl_qp_init_attr init = { .send_cq = side->p.cq,
		.recv_cq = side->p.cq,
		.qp_type = RL_QPT_UD,
		.cap = { .max_send_wr = 1, .max_send_sge = 1 } };
	struct rl_qp *qp;

	CHECK(rl_cm_create_qp(id, side->p.pd, &init) == -EINVAL);
	OK(rl_create_qp(side->p.pd, &init, &qp));
	return qp;
}

/* As UCX: it talks by private data, and its data goes over queue pairs of its own. */
static void
CM_13_number_alone(struct world *w)
{
	struct rl_cm_conn_param param = {
		.private_data = HELLO, .private_data_len = sizeof(HELLO), .retry_count = 7
	};
	struct rl_cm_event *e;
	struct rl_qp *qp[2];

	OK(rl_cm_create_id(w->s.channel, &w->listener, w, RL_PS_TCP));
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&w->to));
	OK(rl_cm_listen(w->listener, 8));
	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_TCP));
	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&w->to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	qp[0] = named_qp(&w->c, w->c.id);
	param.qp_num = qp[0]->qp_num;
	OK(rl_cm_connect(w->c.id, &param));
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	CHECK(e->conn.qp_num == qp[0]->qp_num && strcmp(e->conn.private_data, HELLO) == 0);
	w->s.id = e->id;
	OK(rl_cm_ack_event(e));
	qp[1] = named_qp(&w->s, w->s.id);
	param.qp_num = qp[1]->qp_num;
	OK(rl_cm_accept(w->s.id, &param));
	e = side_next(&w->c, RL_CM_EVENT_CONNECT_RESPONSE);
	CHECK(e->conn.qp_num == qp[1]->qp_num);
	OK(rl_cm_ack_event(e));
	OK(rl_cm_establish(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	OK(rl_cm_disconnect(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	side_expect(&w->c, RL_CM_EVENT_DISCONNECTED);
	CHECK(qp[0]->state == RL_QPS_RESET && qp[1]->state == RL_QPS_RESET);
	OK(rl_destroy_qp(qp[0]));
	OK(rl_destroy_qp(qp[1]));
	OK(rl_cm_destroy_id(w->c.id));
	OK(rl_cm_destroy_id(w->s.id));
	OK(rl_cm_destroy_id(w->listener));
}

int
main(int argc, char **argv)
{
	struct world w = { .listener = NULL };

	CHECK(argc >= 3);
	w.to = side_address(argv[2], SERVICE);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	OK(rl_cm_create_id(w.s.channel, &w.listener, &w, RL_PS_TCP));
	w.listener->qp_type = RL_QPT_UD;
	OK(rl_cm_bind_addr(w.listener, (struct sockaddr *)&w.to));
	CHECK(rl_cm_listen(w.listener, 8) == -EINVAL); /* connections of TCP are not UD */
	OK(rl_cm_destroy_id(w.listener));
	OK(rl_cm_create_id(w.s.channel, &w.listener, &w, RL_PS_UDP));
	OK(rl_cm_bind_addr(w.listener, (struct sockaddr *)&w.to));
	OK(rl_cm_listen(w.listener, 8));
	CM_41_yes(&w);
	CM_41_own_queue_pair(&w);
	CM_41_no(&w);
	CM_41_yes(&w);
	OK(rl_cm_destroy_id(w.listener));
	CM_13_number_alone(&w);
	OK(rl_cm_destroy_event_channel(w.s.channel));
	OK(rl_cm_destroy_event_channel(w.c.channel));
	pair_close(&w.s.p);
	pair_close(&w.c.p);
	return 0;
}
