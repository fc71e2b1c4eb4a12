/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of XRC queue pairs: an initiator asks, a target answers, and tells the number of its
 * SRQ. argv[1] is the socket, argv[2] the address of the server's port.
 */
#include <errno.h>
#include <string.h>

#include "cm_side.h"
#include "rocelane_xrc.h"

#define SERVICE 7471
#define BYTES   64
#define TEXT    "to the queue whose number came with the answer"

struct world {
	const char *server_ip;
	struct side s, c;
	struct rl_cm_id *listener;
	struct rl_xrcd *xrcd;
	struct rl_srq *srq;
	uint32_t num;
};

static void
listening(struct world *w)
{
	struct rl_srq_init_attr init = {
		.attr = { .max_wr = 4, .max_sge = 1 }, .srq_type = RL_SRQT_XRC, .cq = w->s.p.cq
	};
	struct sockaddr_storage at = side_address(w->server_ip, SERVICE);

	OK(rl_create_xrcd(w->s.p.ctx, &w->xrcd));
	init.xrcd = w->xrcd;
	OK(rl_create_srq(w->s.p.pd, &init, &w->srq));
	OK(rl_get_srq_num(w->srq, &w->num));
	OK(rl_cm_create_id(w->s.channel, &w->listener, NULL, RL_PS_IB));
	OK(rl_cm_bind_addr(w->listener, (struct sockaddr *)&at));
	w->listener->qp_type = RL_QPT_XRC_SEND; /* one that asks */
	CHECK(rl_cm_listen(w->listener, 8) == -EINVAL);
	w->listener->qp_type = RL_QPT_XRC_RECV;
	OK(rl_cm_listen(w->listener, 8));
}

static void
resolved(struct world *w)
{
	struct sockaddr_storage to = side_address(w->server_ip, SERVICE);

	OK(rl_cm_create_id(w->c.channel, &w->c.id, NULL, RL_PS_IB));
	OK(rl_cm_resolve_addr(w->c.id, NULL, (struct sockaddr *)&to, 2000));
	side_expect(&w->c, RL_CM_EVENT_ADDR_RESOLVED);
	OK(rl_cm_resolve_route(w->c.id, 0));
	side_expect(&w->c, RL_CM_EVENT_ROUTE_RESOLVED);
}

static void
make_initiator(struct world *w)
{
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_SEND,
		.send_cq = w->c.p.cq,
		.cap = { .max_send_wr = 4, .max_send_sge = 1 } };

	OK(rl_cm_create_qp(w->c.id, w->c.p.pd, &init));
}

/* CM-11, XRC-11: each half has what it needs; the target is named in the REP in its own place. */
static void
connected(struct world *w)
{
	const struct rl_cm_conn_param yes = { .private_data = &w->num,
		.private_data_len = sizeof(w->num),
		.responder_resources = 4 };
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_RECV, .xrcd = w->xrcd };
	struct rl_cm_event *e;
	struct rl_qp_attr a;

	resolved(w);
	make_initiator(w);
	OK(rl_cm_connect(w->c.id, NULL));
	e = side_next(&w->s, RL_CM_EVENT_CONNECT_REQUEST);
	w->s.id = e->id;
	CHECK(e->id->qp_type == RL_QPT_XRC_RECV && e->conn.qp_num == w->c.id->qp->qp_num);
	OK(rl_cm_ack_event(e));
	OK(rl_cm_create_qp(w->s.id, w->s.p.pd, &init));
	OK(rl_cm_accept(w->s.id, &yes));
	e = side_next(&w->c, RL_CM_EVENT_ESTABLISHED);
	CHECK(memcmp(e->conn.private_data, &w->num, sizeof(w->num)) == 0);
	CHECK(e->conn.qp_num == w->s.id->qp->qp_num);
	OK(rl_cm_ack_event(e));
	side_expect(&w->s, RL_CM_EVENT_ESTABLISHED);
	OK(rl_query_qp(w->c.id->qp, &a, 0, NULL));
	CHECK(a.qp_state == RL_QPS_RTS && a.dest_qp_num == w->s.id->qp->qp_num);
	OK(rl_query_qp(w->s.id->qp, &a, 0, NULL));
	CHECK(a.qp_state == RL_QPS_RTS && a.dest_qp_num == w->c.id->qp->qp_num);
}

static void
sent(struct world *w)
{
	struct rl_sge from = pair_sge(&w->c.p, 0, BYTES), to = pair_sge(&w->s.p, BYTES, BYTES);
	struct rl_recv_wr recv = { .wr_id = 7, .sg_list = &to, .num_sge = 1 };
	struct rl_send_wr wr = { .sg_list = &from,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED,
		.qp_type.xrc.remote_srqn = w->num };
	struct rl_wc wc;

	strcpy((char *)(uintptr_t)from.addr, TEXT);
	OK(rl_post_srq_recv(w->srq, &recv, NULL));
	OK(rl_post_send(w->c.id->qp, &wr, NULL));
	CHECK(pair_wait(w->c.p.cq).status == RL_WC_SUCCESS);
	wc = pair_wait(w->s.p.cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 7 && wc.byte_len == BYTES);
	CHECK(strcmp((char *)(uintptr_t)to.addr, TEXT) == 0);
}

static void
disconnected(struct world *w)
{
	OK(rl_cm_disconnect(w->c.id));
	side_expect(&w->s, RL_CM_EVENT_DISCONNECTED);
	side_expect(&w->c, RL_CM_EVENT_DISCONNECTED);
	for (int i = 0; i < 2; i++) {
		struct side *side = i == 0 ? &w->s : &w->c;

		OK(rl_cm_destroy_qp(side->id));
		OK(rl_cm_destroy_id(side->id));
	}
}

/* CM-20: who asks with a queue pair of another type is not heard. */
static void
refused(struct world *w)
{
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_XRC_RECV };
	struct rl_cm_event *e;

	resolved(w);
	w->c.id->qp_type = RL_QPT_RC;
	OK(rl_cm_connect(
		w->c.id, &(struct rl_cm_conn_param){ .qp_num = pair_qp(&w->c.p, 4)->qp_num }));
	e = side_next(&w->c, RL_CM_EVENT_REJECTED);
	OK(rl_cm_ack_event(e));
	OK(rl_cm_destroy_id(w->c.id));
	/* A target does not ask. */
	resolved(w);
	OK(rl_create_xrcd(w->c.p.ctx, &init.xrcd));
	OK(rl_cm_create_qp(w->c.id, w->c.p.pd, &init));
	CHECK(rl_cm_connect(w->c.id, NULL) == -EINVAL);
	OK(rl_cm_destroy_qp(w->c.id));
	OK(rl_cm_destroy_id(w->c.id));
}

int
main(int argc, char **argv)
{
	struct world w = { .server_ip = argv[2] };

	CHECK(argc > 2);
	side_open(&w.s, argv[1]);
	side_open(&w.c, argv[1]);
	listening(&w);
	for (int i = 0; i < 3; i++) {
		connected(&w);
		sent(&w);
		disconnected(&w);
	}
	refused(&w);
	OK(rl_cm_destroy_id(w.listener));
	pair_close(&w.c.p);
	pair_close(&w.s.p);
	return 0;
}
