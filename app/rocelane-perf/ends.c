/* SPDX-License-Identifier: BSD-3-Clause */
/* Verbs objects of a test: a region with room for every QP's messages, CQs, QPs. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "perf.h"

#define MIN_RNR_TIMER 12 /* 0.64 ms, as perftest */

static int
refused(const char *what, int rc)
{
	const char *why = rl_last_error();

	fprintf(stderr, "rocelane-perf: %s: %s%s%s\n", what, strerror(-rc),
		why[0] != '\0' ? ": " : "", why);
	return -1;
}

int
ends_port(struct perf *p)
{
	struct rl_port_attr attr;
	uint32_t first = p->o.ib_port != 0 ? p->o.ib_port : 1;
	int rc;

	for (uint32_t n = first; n <= p->ctx->num_ports; n++) {
		rc = rl_query_port(p->ctx, (uint8_t)n, &attr);
		if (rc != 0)
			return refused("port", rc);
		if (p->o.device != NULL && strcmp(attr.name, p->o.device) != 0) {
			if (p->o.ib_port != 0)
				break;
			continue;
		}
		p->port_num = (uint8_t)n;
		p->mtu = 128u << attr.active_mtu;
		if (p->o.mtu > p->mtu) {
			fprintf(stderr,
				"rocelane-perf: port %s carries a path MTU of %u at most: lower "
				"-m, or raise the port's mtu in the configuration\n",
				attr.name, p->mtu);
			return -1;
		}
		if (p->o.mtu != 0)
			p->mtu = p->o.mtu;
		rc = rl_query_gid(p->ctx, p->port_num, p->o.gid_index, &p->gid);
		return rc == 0 ? 0 : refused("gid index (-x)", rc);
	}
	fprintf(stderr, "rocelane-perf: the dataplane has no such port (-d, -i); it has");
	for (uint32_t n = 1; n <= p->ctx->num_ports; n++) {
		if (rl_query_port(p->ctx, (uint8_t)n, &attr) == 0)
			fprintf(stderr, "%s %u: %s", n > 1 ? "," : "", n, attr.name);
	}
	fprintf(stderr, "\n");
	return -1;
}

int
ends_open(struct perf *p)
{
	int rc = rl_open(p->o.socket, &p->ctx);

	if (rc != 0) {
		fprintf(stderr, "rocelane-perf: %s\n", rl_last_error());
		if (rc == -ENOENT || rc == -ECONNREFUSED)
			fprintf(stderr, "Is the dataplane running? Start it with: rocelane "
					"--config FILE (--socket chooses another one)\n");
		if (rc == -EACCES)
			fprintf(stderr,
				"Who may open it says control.mode, or client_mode for "
				"control.client_socket, in the dataplane's configuration\n");
		return -1;
	}
	return ends_port(p);
}

uint8_t *
ends_local(const struct perf *p, uint32_t i)
{
	return (uint8_t *)p->mr->addr + i * p->room;
}

uint8_t *
ends_remote(const struct perf *p, uint32_t i)
{
	return (uint8_t *)p->mr->addr + (p->o.qps + i) * p->room;
}

static int
queues_make(struct perf *p)
{
	const uint32_t sends = p->o.tx_depth * p->o.qps;
	const uint32_t receives = p->o.rx_depth * p->o.qps;
	int rc = 0;

	if (p->o.events)
		rc = rl_create_comp_channel(p->ctx, &p->channel);
	if (rc == 0)
		rc = rl_create_cq(p->ctx, (int)sends + 1, NULL, p->channel, &p->send_cq);
	if (rc == 0)
		rc = rl_create_cq(p->ctx, (int)receives + 1, NULL, p->channel, &p->recv_cq);
	return rc == 0 ? 0 : refused("completion queue (-t, -r, -q)", rc);
}

/* Of XRC: does QP i receive? The passive end's do, and half of them where both ends send. */
static bool
is_target(const struct perf *p, uint32_t i)
{
	return p->o.type == RL_QPT_XRC_SEND &&
	       (p->num_qps > p->o.qps ? i >= p->o.qps : !p->o.client);
}

/* An SRQ for each QP that receives, so that its messages come in the order of their buffers. */
static int
srqs_make(struct perf *p)
{
	struct rl_srq_init_attr init = { .attr = { .max_wr = p->o.rx_depth, .max_sge = 1 },
		.srq_type = RL_SRQT_XRC,
		.cq = p->recv_cq };
	int rc = rl_create_xrcd(p->ctx, &p->xrcd);

	init.xrcd = p->xrcd;
	for (uint32_t i = 0; rc == 0 && i < p->o.qps; i++)
		rc = rl_create_srq(p->pd, &init, &p->srq[i]);
	return rc == 0 ? 0 : refused("shared receive queue (-r, -q)", rc);
}

const struct perf_dest *
ends_peer(const struct perf *p, uint32_t i)
{
	return &p->theirs[p->num_qps > p->o.qps ? (i + p->o.qps) % p->num_qps : i];
}

static int
qp_make(struct perf *p, uint32_t i)
{
	const bool target = is_target(p, i);
	struct rl_qp_init_attr init = { .send_cq = target ? NULL : p->send_cq,
		.recv_cq = target ? NULL : p->recv_cq,
		.xrcd = target ? p->xrcd : NULL,
		.cap = { .max_send_wr = p->o.tx_depth,
			.max_recv_wr = p->o.rx_depth,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = p->o.inline_size },
		.qp_type = target ? RL_QPT_XRC_RECV : p->o.type };
	const bool datagram = p->o.type == RL_QPT_UD;
	struct rl_qp_attr attr = { .qp_state = RL_QPS_INIT,
		.port_num = p->port_num,
		.qkey = PERF_QKEY,
		.qp_access_flags = RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE |
				   RL_ACCESS_REMOTE_READ | RL_ACCESS_REMOTE_ATOMIC };
	int rc = rl_create_qp(p->pd, &init, &p->qp[i]);

	if (rc == 0)
		rc = rl_modify_qp(p->qp[i], &attr,
			RL_QP_STATE | RL_QP_PKEY_INDEX | RL_QP_PORT |
				(datagram ? RL_QP_QKEY : RL_QP_ACCESS_FLAGS));
	return rc == 0 ? 0 : refused("queue pair", rc);
}

static void
dest_fill(struct perf *p, uint32_t i)
{
	struct perf_dest *d = &p->mine[i];
	uint32_t random = 0;

	if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
		random = (uint32_t)now_ns();
	*d = (struct perf_dest){ .out_reads = p->o.out_reads,
		.qpn = p->qp[i]->qp_num,
		.psn = random & 0xffffff,
		.rkey = p->mr->rkey,
		.vaddr = (uint64_t)(uintptr_t)ends_remote(p, i % p->o.qps),
		.gid = p->gid,
		.srqn = p->srq[i % p->o.qps] != NULL ? p->srq[i % p->o.qps]->srq_num : 0 };
}

/* Messages that are validated stay in memory of their own: as many as are under way. */
static uint32_t
slots_of(const struct perf_options *o)
{
	uint32_t n = o->tx_depth;

	if (!o->validate)
		return 1;
	if (o->verb == PERF_SEND && o->rx_depth > n)
		n = o->rx_depth;
	return n < o->iters ? n : (uint32_t)o->iters;
}

int
ends_make(struct perf *p)
{
	const uint64_t most = p->o.type == RL_QPT_UD ? p->mtu : 1u << 23;
	const uint64_t largest = p->o.all_sizes ? most : p->o.size;
	int rc;

	p->head = p->o.type == RL_QPT_UD ? PERF_GRH : 0;
	p->slots = slots_of(&p->o);
	p->room = (largest + p->head) * p->slots;
	p->room = p->room < p->cycle_buffer ? p->cycle_buffer : (p->room + 63) & ~63ull;
	p->num_qps = p->o.type == RL_QPT_XRC_SEND && p->o.lat ? 2 * p->o.qps : p->o.qps;
	p->qp = calloc(p->num_qps, sizeof(struct rl_qp *));
	p->srq = calloc(p->o.qps, sizeof(struct rl_srq *));
	p->ah = calloc(p->o.qps, sizeof(struct rl_ah *));
	p->mine = calloc(p->num_qps, sizeof(*p->mine));
	p->theirs = calloc(p->num_qps, sizeof(*p->theirs));
	p->count = calloc(p->o.qps, sizeof(*p->count));
	if (p->qp == NULL || p->srq == NULL || p->ah == NULL || p->mine == NULL ||
		p->theirs == NULL || p->count == NULL)
		return refused("queue pairs", -ENOMEM);
	rc = rl_alloc_pd(p->ctx, &p->pd);
	if (rc == 0)
		rc = rl_reg_mr(p->pd, NULL, 2 * p->o.qps * p->room,
			RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ |
				RL_ACCESS_REMOTE_ATOMIC,
			&p->mr);
	if (rc != 0)
		return refused(p->o.validate ? "memory for what is under way (less: -s, -q, -t, -r)"
					     : "memory for the messages (less: -s, -q)",
			rc);
	if (queues_make(p) != 0 || (is_target(p, p->num_qps - 1) && srqs_make(p) != 0))
		return -1;
	for (uint32_t i = 0; i < p->num_qps; i++) {
		if (qp_make(p, i) != 0)
			return -1;
		dest_fill(p, i);
	}
	return 0;
}

/* No connection: where the peer is, each request says. */
static int
address_peer(struct perf *p, uint32_t i)
{
	struct rl_ah_attr to = {
		.grh = { .dgid = p->theirs[i].gid }, .is_global = 1, .port_num = p->port_num
	};
	struct rl_qp_attr attr = { .qp_state = RL_QPS_RTR, .sq_psn = p->mine[i].psn };
	int rc = rl_create_ah(p->pd, &to, &p->ah[i]);

	if (rc != 0)
		return refused("address of the peer", rc);
	rc = rl_modify_qp(p->qp[i], &attr, RL_QP_STATE);
	attr.qp_state = RL_QPS_RTS;
	if (rc == 0)
		rc = rl_modify_qp(p->qp[i], &attr, RL_QP_STATE | RL_QP_SQ_PSN);
	return rc == 0 ? 0 : refused("queue pair to RTS", rc);
}

int
ends_connect(struct perf *p)
{
	if (p->o.by_cm)
		return cm_connect(p);

	for (uint32_t i = 0; i < p->num_qps; i++) {
		const bool acked = !options_may_lose(&p->o); /* it waits, and reads */
		const bool target = is_target(p, i);
		const bool xrc = p->o.type == RL_QPT_XRC_SEND;
		const struct perf_dest *d = ends_peer(p, i);
		const uint32_t reads = d->out_reads < 16 ? d->out_reads : 16;
		struct rl_qp_attr attr = { .qp_state = RL_QPS_RTR,
			.path_mtu = (enum rl_mtu)(__builtin_ctz(p->mtu) - 7),
			.dest_qp_num = d->qpn,
			.rq_psn = d->psn,
			.max_dest_rd_atomic = (uint8_t)p->o.out_reads,
			.min_rnr_timer = MIN_RNR_TIMER,
			.ah_attr = { .grh = { .dgid = d->gid },
				.is_global = 1,
				.port_num = p->port_num } };
		int rc;

		if (p->o.type == RL_QPT_UD) {
			if (address_peer(p, i) != 0)
				return -1;
			continue;
		}
		rc = rl_modify_qp(p->qp[i], &attr,
			RL_QP_STATE | RL_QP_AV | RL_QP_PATH_MTU | RL_QP_DEST_QPN | RL_QP_RQ_PSN |
				(acked && target == xrc
						? RL_QP_MAX_DEST_RD_ATOMIC | RL_QP_MIN_RNR_TIMER
						: 0));

		if (rc != 0)
			return refused("queue pair to RTR", rc);
		attr = (struct rl_qp_attr){ .qp_state = RL_QPS_RTS,
			.sq_psn = p->mine[i].psn,
			.timeout = (uint8_t)p->o.qp_timeout,
			.retry_cnt = 7,
			.rnr_retry = 7,
			.max_rd_atomic = (uint8_t)(reads != 0 ? reads : 1) };
		rc = rl_modify_qp(p->qp[i], &attr,
			RL_QP_STATE | RL_QP_SQ_PSN | (acked ? RL_QP_TIMEOUT : 0) |
				(acked && !target ? RL_QP_RETRY_CNT | RL_QP_RNR_RETRY |
							    RL_QP_MAX_QP_RD_ATOMIC
						  : 0));
		if (rc != 0)
			return refused("queue pair to RTS", rc);
	}
	return 0;
}

void
ends_free(struct perf *p)
{
	cm_free(p);
	for (uint32_t i = 0; p->ah != NULL && i < p->o.qps; i++) {
		if (p->ah[i] != NULL)
			rl_destroy_ah(p->ah[i]);
	}
	for (uint32_t i = 0; p->qp != NULL && i < p->num_qps; i++) {
		if (p->qp[i] != NULL)
			rl_destroy_qp(p->qp[i]);
	}
	for (uint32_t i = 0; p->srq != NULL && i < p->o.qps; i++) {
		if (p->srq[i] != NULL)
			rl_destroy_srq(p->srq[i]);
	}
	if (p->xrcd != NULL)
		rl_close_xrcd(p->xrcd);
	if (p->recv_cq != NULL)
		rl_destroy_cq(p->recv_cq);
	if (p->send_cq != NULL)
		rl_destroy_cq(p->send_cq);
	if (p->channel != NULL)
		rl_destroy_comp_channel(p->channel);
	if (p->mr != NULL)
		rl_dereg_mr(p->mr);
	if (p->pd != NULL)
		rl_dealloc_pd(p->pd);
	if (p->ctx != NULL)
		rl_close(p->ctx);
	free(p->qp);
	free(p->srq);
	free(p->ah);
	free(p->mine);
	free(p->theirs);
	free(p->count);
}
