/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of an application: argv[1] is the socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "client_priv.h"
#include "pair.h"

#define QKEY 0x11111111u
#define GRH  40u
#define SLOT 2048u

struct peers {
	struct pair p;
	struct rl_qp *qp[2]; /* on port 1, on port 2 */
	struct rl_ah *to[2]; /* to port 2, to port 1 */
};

static struct rl_qp *
datagram_qp(struct rl_pd *pd, struct rl_cq *cq, uint8_t port, uint32_t qkey)
{
	struct rl_qp_init_attr init = { .send_cq = cq,
		.recv_cq = cq,
		.qp_type = RL_QPT_UD,
		.cap = { .max_send_wr = 16,
			.max_recv_wr = 16,
			.max_send_sge = 2,
			.max_recv_sge = 2,
			.max_inline_data = 64 } };
	struct rl_qp_attr a = {
		.qp_state = RL_QPS_INIT, .port_num = port, .qkey = qkey, .sq_psn = 7
	};
	struct rl_qp *qp;

	OK(rl_create_qp(pd, &init, &qp));
	OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT | RL_QP_QKEY));
	a.qp_state = RL_QPS_RTR;
	OK(rl_modify_qp(qp, &a, RL_QP_STATE));
	a.qp_state = RL_QPS_RTS;
	OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_SQ_PSN));
	return qp;
}

static struct rl_ah_attr
address(const struct pair *p, uint8_t port, uint8_t dest_port)
{
	struct rl_ah_attr a = { .is_global = 1, .port_num = port };

	OK(rl_query_gid(p->ctx, dest_port, 0, &a.grh.dgid));
	return a;
}

static void
peers_open(struct peers *s, const char *socket)
{
	pair_open(&s->p, socket, 256, 1 << 20);
	for (uint8_t i = 0; i < 2; i++) {
		struct rl_ah_attr a = address(&s->p, i + 1, 2 - i);

		s->qp[i] = datagram_qp(s->p.pd, s->p.cq, i + 1, QKEY);
		OK(rl_create_ah(s->p.pd, &a, &s->to[i]));
		CHECK(s->to[i]->pd == s->p.pd && s->to[i]->context == s->p.ctx);
	}
}

static void
peers_close(struct peers *s)
{
	for (int i = 0; i < 2; i++) {
		OK(rl_destroy_ah(s->to[i]));
		OK(rl_destroy_qp(s->qp[i]));
	}
	OK(rl_destroy_cq(s->p.cq));
	OK(rl_dereg_mr(s->p.mr));
	OK(rl_dealloc_pd(s->p.pd));
	pair_close(&s->p);
}

static struct rl_send_wr
request(const struct peers *s, int from, struct rl_sge *sge)
{
	return (struct rl_send_wr){ .wr_id = 1,
		.sg_list = sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND,
		.send_flags = RL_SEND_SIGNALED,
		.wr.ud = { .ah = s->to[from],
			.remote_qpn = s->qp[1 - from]->qp_num,
			.remote_qkey = QKEY } };
}

/* UD-03, UD-05, UD-10, UD-11: there and back, answered to where the completion says. */
static void
UD_05_UD_10_ping_pong(struct peers *s)
{
	uint8_t *mem = s->p.mr->addr;

	for (uint32_t n = 0; n < 200; n++) {
		const int from = n % 2;
		struct rl_sge out = pair_sge(&s->p, 0, n % 100), in = pair_sge(&s->p, SLOT, SLOT);
		struct rl_send_wr wr = request(s, from, &out);
		struct rl_wc wc[2];

		OK(pair_recv(s->qp[1 - from], in, 50));
		memset(mem, (int)n, 100);
		wr.opcode = RL_WR_SEND_WITH_IMM;
		wr.imm_data = htonl(n);
		OK(rl_post_send(s->qp[from], &wr, NULL));
		wc[0] = pair_wait(s->p.cq);
		wc[1] = pair_wait(s->p.cq);
		if (wc[0].opcode == RL_WC_RECV) {
			const struct rl_wc first = wc[0];

			wc[0] = wc[1];
			wc[1] = first;
		}
		CHECK(wc[0].status == RL_WC_SUCCESS && wc[0].opcode == RL_WC_SEND);
		CHECK(wc[1].status == RL_WC_SUCCESS && wc[1].opcode == RL_WC_RECV);
		CHECK(wc[1].byte_len == GRH + n % 100 && ntohl(wc[1].imm_data) == n);
		CHECK(wc[1].wc_flags == (RL_WC_GRH | RL_WC_WITH_IMM) && wc[1].grh_ip == 4);
		CHECK(wc[1].src_qp == s->qp[from]->qp_num);
		CHECK(memcmp(mem, mem + SLOT + GRH, n % 100) == 0);
		CHECK(mem[SLOT + 20] == 0x45); /* the IPv4 header is its second half */
	}
}

/* UD-12, UD-25: what can be known is refused at once; the queue goes on. */
static void
UD_12_UD_25_refused(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 4096);
	struct rl_send_wr wr = request(s, 0, &sge), *bad;
	struct rl_pd *other;
	struct rl_ah_attr a = address(&s->p, 1, 2);
	struct rl_ah *foreign;

	OK(rl_post_send(s->qp[0], &wr, NULL)); /* all that fits the port; nobody receives it */
	CHECK(pair_wait(s->p.cq).status == RL_WC_SUCCESS);
	sge.length++;
	CHECK(rl_post_send(s->qp[0], &wr, &bad) == -EINVAL && bad == &wr);
	sge.length = 8;
	wr.opcode = RL_WR_RDMA_WRITE;
	CHECK(rl_post_send(s->qp[0], &wr, &bad) == -EINVAL);
	wr.opcode = RL_WR_SEND;
	wr.wr.ud.ah = NULL;
	CHECK(rl_post_send(s->qp[0], &wr, &bad) == -EINVAL);
	CHECK(strstr(rl_last_error(), "wr.ud.ah") != NULL);
	OK(rl_alloc_pd(s->p.ctx, &other));
	OK(rl_create_ah(other, &a, &foreign));
	CHECK(rl_dealloc_pd(other) == -EBUSY);
	wr.wr.ud.ah = foreign;
	CHECK(rl_post_send(s->qp[0], &wr, &bad) == -EINVAL);
	OK(rl_destroy_ah(foreign));
	OK(rl_dealloc_pd(other));
	CHECK(pair_is_quiet(s->p.cq));
}

/* UD-16, UD-17: back to RTS from SQE. */
static void
resume(struct rl_qp *qp)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_RTS, .cur_qp_state = RL_QPS_SQE };
	struct rl_qp_attr now;

	OK(rl_query_qp(qp, &now, 0, NULL));
	CHECK(now.qp_state == RL_QPS_SQE);
	OK(rl_modify_qp(qp, &a, RL_QP_STATE | RL_QP_CUR_STATE));
}

/*
 * A handle is named by a number in memory that the application may write: one that is not the
 * QP's protection domain's, of another port, that has ended, or that never was, ends in a
 * completion, and nothing is sent.
 */
static void
UD_05_handles_that_are_none(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct rl_ah_attr a = address(&s->p, 1, 2);
	struct rl_ah *ended, *foreign;
	struct rl_pd *other;
	uint32_t keys[6];

	OK(rl_create_ah(s->p.pd, &a, &ended));
	keys[0] = ((struct ah *)ended)->key;
	OK(rl_destroy_ah(ended));
	OK(rl_alloc_pd(s->p.ctx, &other));
	OK(rl_create_ah(other, &a, &foreign));
	keys[1] = ((struct ah *)foreign)->key;
	keys[2] = ((struct ah *)s->to[1])->key;
	keys[3] = 0;
	keys[4] = UINT32_MAX;
	keys[5] = ((struct ah *)s->to[0])->key + 0x10000;
	for (uint32_t i = 0; i < 6; i++) {
		struct ah forged = { .pub = *s->to[0], .key = keys[i] };

		wr.wr.ud.ah = &forged.pub;
		OK(pair_recv(s->qp[1], pair_sge(&s->p, SLOT, SLOT), 60));
		OK(rl_post_send(s->qp[0], &wr, NULL));
		CHECK(pair_wait(s->p.cq).status == RL_WC_LOC_QP_OP_ERR);
		resume(s->qp[0]);
		wr.wr.ud.ah = s->to[0];
		OK(rl_post_send(s->qp[0], &wr, NULL));
		CHECK(pair_wait(s->p.cq).status == RL_WC_SUCCESS);
		CHECK(pair_wait(s->p.cq).status == RL_WC_SUCCESS);
	}
	OK(rl_destroy_ah(foreign));
	OK(rl_dealloc_pd(other));
}

static void
to_state(struct rl_qp *qp, enum rl_qp_state state)
{
	struct rl_qp_attr a = { .qp_state = state };

	OK(rl_modify_qp(qp, &a, RL_QP_STATE));
}

/* A request has the address of its handle from when it was posted; in SQD none is taken. */
static void
UD_05_handles_that_end_before_their_requests(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct rl_ah_attr a = address(&s->p, 1, 2);
	struct rl_ah *to, *next;

	to_state(s->qp[0], RL_QPS_SQD);
	OK(rl_create_ah(s->p.pd, &a, &to));
	wr.wr.ud.ah = to;
	for (int i = 0; i < 3; i++) {
		OK(pair_recv(s->qp[1], pair_sge(&s->p, SLOT, SLOT), 90));
		OK(rl_post_send(s->qp[0], &wr, NULL));
	}
	OK(rl_destroy_ah(to));
	OK(rl_create_ah(s->p.pd, &a, &next));
	OK(rl_destroy_ah(next));
	to_state(s->qp[0], RL_QPS_RTS);
	for (int i = 0; i < 6; i++)
		CHECK(pair_wait(s->p.cq).status == RL_WC_SUCCESS);
}

/* Such a handle counts against client_limits.ahs (40) until its queue pair goes, too, or RESET. */
static void
ended_handles_go_with_their_requests(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct rl_ah_attr a = address(&s->p, 1, 2);

	for (int i = 0; i < 45; i++) {
		struct rl_qp *qp = datagram_qp(s->p.pd, s->p.cq, 1, QKEY);
		struct rl_ah *to;

		to_state(qp, RL_QPS_SQD);
		OK(rl_create_ah(s->p.pd, &a, &to));
		wr.wr.ud.ah = to;
		OK(rl_post_send(qp, &wr, NULL));
		OK(rl_destroy_ah(to));
		if (i % 2 == 0)
			to_state(qp, RL_QPS_RESET);
		OK(rl_destroy_qp(qp));
	}
}

/* Tells the worker what the queue pair did not tell it. */
struct late_bell {
	struct ring_bells *bells;
	uint32_t qp_num;
};

static void *
ring_late(void *arg)
{
	const struct late_bell *late = arg;

	nanosleep(&(struct timespec){ .tv_nsec = 20000000 }, NULL);
	CHECK(ring_bells_put(late->bells, late->qp_num) == 0);
	return NULL;
}

/* What was posted is sent, although the QP goes at once, and the worker hears of it late. */
static void
sends_of_a_queue_pair_that_goes(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct rl_qp *pub = datagram_qp(s->p.pd, s->p.cq, 1, QKEY);
	struct qp *qp = qp_of(pub);
	struct context *ctx = context_of(s->p.ctx);
	struct late_bell late = { &ctx->bells[atomic_load(&qp->worker)], pub->qp_num };
	pthread_t other;

	CHECK(ring_bell_is_due(&qp->sq)); /* from here on its posts ring no bell */
	for (int i = 0; i < 8; i++) {
		OK(pair_recv(s->qp[1], pair_sge(&s->p, SLOT, SLOT), 95));
		OK(rl_post_send(pub, &wr, NULL));
	}
	CHECK(pthread_create(&other, NULL, ring_late, &late) == 0);
	OK(rl_destroy_qp(pub));
	for (int i = 0; i < 8; i++) {
		const struct rl_wc wc = pair_wait(s->p.cq);

		CHECK(wc.status == RL_WC_SUCCESS && wc.opcode == RL_WC_RECV);
	}
	CHECK(pthread_join(other, NULL) == 0);
}

/* What was posted counts among the completions, although the worker hears of it late. */
static void
completions_of_a_queue_that_shrinks(struct peers *s)
{
	struct rl_sge sge = pair_sge(&s->p, 0, 8);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct context *ctx = context_of(s->p.ctx);
	struct rl_qp *pub;
	struct rl_cq *cq;
	struct late_bell late;
	pthread_t other;

	OK(rl_create_cq(s->p.ctx, 8, NULL, NULL, &cq));
	pub = datagram_qp(s->p.pd, cq, 1, QKEY);
	late = (struct late_bell){ &ctx->bells[atomic_load(&qp_of(pub)->worker)], pub->qp_num };
	CHECK(ring_bell_is_due(&qp_of(pub)->sq));
	for (int i = 0; i < 4; i++) {
		OK(pair_recv(s->qp[1], pair_sge(&s->p, SLOT, SLOT), 97));
		OK(rl_post_send(pub, &wr, NULL));
	}
	CHECK(pthread_create(&other, NULL, ring_late, &late) == 0);
	CHECK(rl_resize_cq(cq, 3) == -EINVAL);
	CHECK(pthread_join(other, NULL) == 0);
	for (int i = 0; i < 4; i++) {
		CHECK(pair_wait(cq).status == RL_WC_SUCCESS);
		CHECK(pair_wait(s->p.cq).opcode == RL_WC_RECV);
	}
	OK(rl_resize_cq(cq, 3));
	OK(rl_destroy_qp(pub));
	OK(rl_destroy_cq(cq));
}

/* Takes what completes, until `receives` have: of which QPs, as bits of s->qp. */
static unsigned int
receivers(struct peers *s, unsigned int receives)
{
	unsigned int who = 0;

	while (receives != 0) {
		const struct rl_wc wc = pair_wait(s->p.cq);

		CHECK(wc.status == RL_WC_SUCCESS);
		if (wc.opcode != RL_WC_RECV)
			continue;
		CHECK(wc.src_qp == s->qp[0]->qp_num && (wc.wc_flags & RL_WC_GRH) != 0);
		who |= wc.qp_num == s->qp[1]->qp_num ? 2u : 1u;
		receives--;
	}
	return who;
}

/* UD-31: members at both ports, the sender among them; then one of them leaves. */
static void
UD_31_groups(struct peers *s)
{
	struct rl_ah_attr a = { .is_global = 1, .port_num = 1 };
	struct rl_sge sge = pair_sge(&s->p, 0, 100);
	struct rl_send_wr wr = request(s, 0, &sge);
	struct rl_ah *to;
	union rl_gid none;

	OK(rl_gid_from_ip("239.9.8.7", &a.grh.dgid));
	OK(rl_gid_from_ip("10.77.0.9", &none));
	CHECK(rl_attach_mcast(s->qp[0], &none, 0) == -EINVAL);
	CHECK(rl_detach_mcast(s->qp[0], &a.grh.dgid, 0) == -EINVAL);
	OK(rl_attach_mcast(s->qp[0], &a.grh.dgid, 0));
	OK(rl_attach_mcast(s->qp[1], &a.grh.dgid, 0));
	CHECK(rl_attach_mcast(s->qp[1], &a.grh.dgid, 0) == -EEXIST);
	OK(rl_create_ah(s->p.pd, &a, &to)); /* nobody is asked */
	wr.wr.ud.ah = to;
	wr.wr.ud.remote_qpn = RL_MCAST_QPN;
	memset(s->p.mr->addr, 0x5a, 100);
	for (unsigned int i = 0; i < 2; i++)
		OK(pair_recv(s->qp[i], pair_sge(&s->p, SLOT * (i + 1), SLOT), 70 + i));
	OK(rl_post_send(s->qp[0], &wr, NULL));
	CHECK(receivers(s, 2) == 3);
	for (unsigned int i = 0; i < 2; i++) {
		const uint8_t *got = (const uint8_t *)s->p.mr->addr + SLOT * (i + 1);

		CHECK(memcmp(got + GRH, s->p.mr->addr, 100) == 0);
		CHECK(got[GRH - 4] == 239 && got[GRH - 1] == 7);
	}
	OK(rl_detach_mcast(s->qp[0], &a.grh.dgid, 0));
	for (unsigned int i = 0; i < 2; i++)
		OK(pair_recv(s->qp[i], pair_sge(&s->p, SLOT * (i + 1), SLOT), 80 + i));
	OK(rl_post_send(s->qp[0], &wr, NULL));
	CHECK(receivers(s, 1) == 2);
	OK(rl_detach_mcast(s->qp[1], &a.grh.dgid, 0));
	OK(rl_destroy_ah(to));
}

/* A client may have so many memberships; another's queue pair does not exist for it. */
static void
memberships(struct peers *s)
{
	union rl_gid gid;
	char ip[32];
	int rc = 0, n = 0;

	for (; n < 30 && rc == 0; n++) {
		snprintf(ip, sizeof(ip), "239.1.1.%d", n);
		OK(rl_gid_from_ip(ip, &gid));
		rc = rl_attach_mcast(s->qp[1], &gid, 0);
	}
	CHECK(rc == -ENOSPC && n == 21);
	CHECK(strstr(rl_last_error(), "client_limits.mcasts") != NULL);
	OK(rl_gid_from_ip("239.1.1.3", &gid));
	OK(rl_detach_mcast(s->qp[1], &gid, 0));
	OK(rl_attach_mcast(s->qp[1], &gid, 0));
	s->qp[1]->qp_num ^= 1; /* whose? */
	CHECK(rl_attach_mcast(s->qp[1], &gid, 0) == -ENOENT);
	s->qp[1]->qp_num ^= 1;
	/* As with libibverbs: a member is not destroyed. */
	CHECK(rl_destroy_qp(s->qp[1]) == -EBUSY);
	while (--n > 0) {
		snprintf(ip, sizeof(ip), "239.1.1.%d", n - 1);
		OK(rl_gid_from_ip(ip, &gid));
		OK(rl_detach_mcast(s->qp[1], &gid, 0));
	}
}

/* RT-04, RT-05: an address that nobody has, and one that no route reaches. */
static void
RT_05_nobody_answers(struct peers *s)
{
	struct rl_ah_attr a = { .is_global = 1, .port_num = 1 };
	struct rl_ah *ah;

	OK(rl_gid_from_ip("10.77.0.99", &a.grh.dgid));
	CHECK(rl_create_ah(s->p.pd, &a, &ah) == -EHOSTUNREACH && ah == NULL);
	CHECK(strstr(rl_last_error(), "10.77.0.99") != NULL);
	OK(rl_gid_from_ip("198.51.100.1", &a.grh.dgid));
	CHECK(rl_create_ah(s->p.pd, &a, &ah) == -ENETUNREACH);
	a.port_num = 3;
	CHECK(rl_create_ah(s->p.pd, &a, &ah) == -EINVAL);
	a = address(&s->p, 1, 2);
	a.is_global = 0;
	CHECK(rl_create_ah(s->p.pd, &a, &ah) == -EINVAL);
}

/* As many as client_limits.ahs says, and not one more. */
static void
limit(struct peers *s)
{
	struct rl_ah_attr a = address(&s->p, 1, 2);
	struct rl_device_attr d;
	struct rl_ah *ah;
	int n = 2, rc;

	OK(rl_query_device(s->p.ctx, &d));
	CHECK(d.max_ah == 40);
	while ((rc = rl_create_ah(s->p.pd, &a, &ah)) == 0)
		n++;
	CHECK(rc == -ENOSPC && n == d.max_ah);
	CHECK(strstr(rl_last_error(), "client_limits.ahs") != NULL);
	/* They go with the connection. */
}

int
main(int argc, char **argv)
{
	struct peers s;

	CHECK(argc >= 2);
	for (int round = 0; round < 2; round++) {
		peers_open(&s, argv[1]);
		UD_05_UD_10_ping_pong(&s);
		UD_12_UD_25_refused(&s);
		UD_05_handles_that_are_none(&s);
		UD_05_handles_that_end_before_their_requests(&s);
		ended_handles_go_with_their_requests(&s);
		sends_of_a_queue_pair_that_goes(&s);
		completions_of_a_queue_that_shrinks(&s);
		UD_31_groups(&s);
		memberships(&s);
		peers_close(&s);
	}
	peers_open(&s, argv[1]);
	RT_05_nobody_answers(&s);
	limit(&s);
	pair_close(&s.p);
	return 0;
}
