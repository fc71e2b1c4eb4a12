/* SPDX-License-Identifier: BSD-3-Clause */
/* What librocelane's calls do, against a real dataplane: argv[1] is its socket. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pair.h"

#define ALL                                                                       \
	(RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ | \
		RL_ACCESS_REMOTE_ATOMIC)

static void
write_and_read(struct pair *p)
{
	uint8_t *m = p->mr->addr;
	struct rl_wc wc;

	for (int i = 0; i < 3000; i++)
		m[i] = (uint8_t)(i * 7 + 1);
	OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 3000), (uintptr_t)m + 4096, p->mr->rkey,
		42));
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 42 && wc.qp_num == p->a->qp_num);
	CHECK(wc.opcode == RL_WC_RDMA_WRITE);
	CHECK(memcmp(m, m + 4096, 3000) == 0);
	OK(pair_post(
		p->b, RL_WR_RDMA_READ, pair_sge(p, 0, 100), (uintptr_t)m + 5096, p->mr->rkey, 43));
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 43 && wc.byte_len == 100);
	CHECK(wc.opcode == RL_WC_RDMA_READ);
	CHECK(memcmp(m, m + 5096, 100) == 0);
}

/* Two completions, one a queue: in whatever order. */
static void
wait_both(struct pair *p, struct rl_wc *recv, struct rl_wc *send)
{
	for (int i = 0; i < 2; i++) {
		const struct rl_wc wc = pair_wait(p->cq);

		*((wc.opcode & RL_WC_RECV) != 0 ? recv : send) = wc;
	}
}

static void
send_immediate_inline(struct pair *p)
{
	char text[] = "not registered";
	struct rl_sge sge = { (uintptr_t)text, sizeof(text), 0 };
	struct rl_send_wr wr = { .wr_id = 7,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_SEND_WITH_IMM,
		.send_flags = RL_SEND_SIGNALED | RL_SEND_INLINE,
		.imm_data = htonl(0x01020304) };
	struct rl_wc recv, send;
	char *to = p->mr->addr;

	OK(pair_recv(p->b, pair_sge(p, 100, 64), 8));
	OK(rl_post_send(p->a, &wr, NULL));
	memset(text, 'x', sizeof(text)); /* copied when it was posted */
	wait_both(p, &recv, &send);
	CHECK(recv.status == RL_WC_SUCCESS && recv.wr_id == 8 && recv.byte_len == sizeof(text));
	CHECK((recv.wc_flags & RL_WC_WITH_IMM) != 0 && recv.imm_data == htonl(0x01020304));
	CHECK(send.status == RL_WC_SUCCESS && send.wr_id == 7);
	CHECK(strcmp(to + 100, "not registered") == 0);
}

static void
atomics(struct pair *p)
{
	uint64_t *m = p->mr->addr;
	struct rl_sge sge = pair_sge(p, 0, 8);
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_ATOMIC_FETCH_AND_ADD,
		.send_flags = RL_SEND_SIGNALED,
		.wr.atomic = {
			.remote_addr = (uintptr_t)&m[4], .compare_add = 5, .rkey = p->mr->rkey } };

	m[4] = 37;
	OK(rl_post_send(p->a, &wr, NULL));
	CHECK(pair_wait(p->cq).opcode == RL_WC_FETCH_ADD);
	CHECK(m[0] == 37 && m[4] == 42);
	wr.opcode = RL_WR_ATOMIC_CMP_AND_SWP;
	wr.wr.atomic.compare_add = 42;
	wr.wr.atomic.swap = 1;
	OK(rl_post_send(p->a, &wr, NULL));
	CHECK(pair_wait(p->cq).opcode == RL_WC_COMP_SWAP);
	CHECK(m[0] == 42 && m[4] == 1);
}

/* ATOMIC WRITE: 8 bytes, out of the list or with the request. */
static void
atomic_writes(struct pair *p)
{
	uint64_t *m = p->mr->addr, word = 0x1122334455667788;
	struct rl_sge sge = pair_sge(p, 0, 8);
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_ATOMIC_WRITE,
		.send_flags = RL_SEND_SIGNALED,
		.wr.rdma = { .remote_addr = (uintptr_t)&m[4], .rkey = p->mr->rkey } };
	struct rl_wc wc;

	m[0] = 99;
	m[3] = m[4] = m[5] = 0;
	OK(rl_post_send(p->a, &wr, NULL));
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.opcode == RL_WC_ATOMIC_WRITE);
	CHECK(m[3] == 0 && m[4] == 99 && m[5] == 0);
	sge.addr = (uintptr_t)&word;
	wr.send_flags |= RL_SEND_INLINE;
	OK(rl_post_send(p->a, &wr, NULL));
	CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS && m[4] == word);
	sge.length = 4;
	CHECK(rl_post_send(p->a, &wr, NULL) == -EINVAL);
	sge.length = 16;
	CHECK(rl_post_send(p->a, &wr, NULL) == -EINVAL);
}

/* FLUSH: without a list, answered once what was written is seen by all. */
static void
flushes(struct pair *p)
{
	struct rl_send_wr *bad, wr = { .wr_id = 4,
		.opcode = RL_WR_FLUSH,
		.send_flags = RL_SEND_SIGNALED,
		.wr.flush = { .remote_addr = (uintptr_t)p->mr->addr,
			.length = 64,
			.rkey = p->mr->rkey,
			.type = RL_FLUSH_GLOBAL } };
	struct rl_wc wc;

	OK(rl_post_send(p->a, &wr, NULL));
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.opcode == RL_WC_FLUSH && wc.wr_id == 4);
	wr.wr.flush = (struct rl_wr_flush){ .rkey = p->mr->rkey, .type = 1, .level = RL_FLUSH_MR };
	OK(rl_post_send(p->a, &wr, NULL));
	CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
	wr.wr.flush.length = (UINT64_C(1) << 31) + 1;
	CHECK(rl_post_send(p->a, &wr, &bad) == -EINVAL && bad == &wr);
	wr.wr.flush = (struct rl_wr_flush){ .rkey = p->mr->rkey }; /* of no type */
	CHECK(rl_post_send(p->a, &wr, &bad) == -EINVAL);
}

/* CQ-09: what the posting side can know is refused at once, and nothing of it is posted. */
static void
CQ_09_refused_at_once(struct pair *p)
{
	struct rl_sge sge[3] = { pair_sge(p, 0, 1), pair_sge(p, 0, 1), pair_sge(p, 0, 1) };
	struct rl_sge large = pair_sge(p, 0, 65);
	struct rl_send_wr *bad, wr = { .sg_list = sge, .num_sge = 3, .opcode = RL_WR_SEND };
	struct rl_recv_wr *bad_recv, recv = { .sg_list = sge, .num_sge = 3 };
	struct rl_qp *fresh = pair_qp(p, 4);

	CHECK(rl_post_send(p->a, &wr, &bad) == -EINVAL && bad == &wr);
	CHECK(rl_post_recv(p->a, &recv, &bad_recv) == -EINVAL && bad_recv == &recv);
	wr.num_sge = 1;
	wr.opcode = (enum rl_wr_opcode)7;
	CHECK(rl_post_send(p->a, &wr, NULL) == -EINVAL);
	wr.opcode = RL_WR_RDMA_WRITE;
	wr.sg_list = &large;
	wr.send_flags = RL_SEND_INLINE;
	CHECK(rl_post_send(p->a, &wr, NULL) == -EINVAL);
	CHECK(rl_post_send(fresh, &wr, NULL) == -EINVAL);
	recv.num_sge = 1;
	CHECK(rl_post_recv(fresh, &recv, NULL) == -EINVAL);
	pair_move(p, fresh, RL_QPS_INIT, 1, 0, 2);
	for (int i = 0; i < 4; i++)
		OK(rl_post_recv(fresh, &recv, NULL));
	CHECK(rl_post_recv(fresh, &recv, NULL) == -ENOMEM);
	OK(rl_destroy_qp(fresh));
	CHECK(pair_is_quiet(p->cq));
}

/* CQ-06: an event on the channel, once for each request, solicited only if so asked. */
static void
CQ_06_completion_events(struct pair *p)
{
	uint64_t *m = p->mr->addr;
	struct rl_cq *cq;
	struct rl_wc wc;
	void *ctx;

	OK(fcntl(p->channel->fd, F_SETFL, O_NONBLOCK));
	CHECK(rl_get_cq_event(p->channel, &cq, &ctx) == -EAGAIN);
	OK(fcntl(p->channel->fd, F_SETFL, 0));
	for (int i = 0; i < 20; i++) {
		OK(rl_req_notify_cq(p->cq, 0));
		OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)&m[9],
			p->mr->rkey, 1));
		OK(rl_get_cq_event(p->channel, &cq, &ctx));
		CHECK(cq == p->cq && ctx == p);
		CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
	}
	rl_ack_cq_events(p->cq, 20);
	OK(rl_req_notify_cq(p->cq, 1));
	OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), (uintptr_t)&m[9], p->mr->rkey, 1));
	pair_wait(p->cq);
	OK(fcntl(p->channel->fd, F_SETFL, O_NONBLOCK));
	CHECK(pair_is_quiet(p->cq));
	CHECK(rl_get_cq_event(p->channel, &cq, &ctx) == -EAGAIN); /* it was not solicited */
	OK(fcntl(p->channel->fd, F_SETFL, 0));
	OK(pair_recv(p->b, pair_sge(p, 0, 8), 2));
	{
		struct rl_sge sge = pair_sge(p, 0, 8);
		struct rl_send_wr wr = { .sg_list = &sge,
			.num_sge = 1,
			.opcode = RL_WR_SEND,
			.send_flags = RL_SEND_SOLICITED | RL_SEND_SIGNALED };

		OK(rl_post_send(p->a, &wr, NULL));
	}
	OK(rl_get_cq_event(p->channel, &cq, &ctx));
	rl_ack_cq_events(p->cq, 1);
	wait_both(p, &wc, &wc);
}

/* QP-13: what is posted to a QP in ERR is flushed, in posting order, on either queue. */
static void
QP_13_posted_in_ERR(struct pair *p)
{
	struct rl_qp_attr a = { .qp_state = RL_QPS_ERR };

	OK(pair_recv(p->b, pair_sge(p, 0, 8), 1));
	OK(rl_modify_qp(p->b, &a, RL_QP_STATE));
	OK(pair_recv(p->b, pair_sge(p, 0, 8), 2));
	OK(pair_recv(p->b, pair_sge(p, 0, 8), 3));
	for (uint64_t i = 1; i <= 3; i++) {
		const struct rl_wc wc = pair_wait(p->cq);

		CHECK(wc.status == RL_WC_WR_FLUSH_ERR && wc.wr_id == i);
	}
	OK(pair_post(p->b, RL_WR_SEND, pair_sge(p, 0, 8), 0, 0, 4));
	CHECK(pair_wait(p->cq).wr_id == 4);
}

/* A key that is nobody's: error completion, the peer's event with the rule behind it. */
static void
errors_and_events(struct pair *p)
{
	struct rl_async_event e;
	struct rl_qp_attr attr;
	struct rl_wc wc;

	OK(pair_post(p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 8), 4096, p->mr->rkey ^ 0x5a5a, 5));
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_REM_ACCESS_ERR && wc.wr_id == 5);
	OK(rl_get_async_event(p->ctx, &e));
	CHECK(e.event_type == RL_EVENT_QP_ACCESS_ERR && e.element.qp == p->b);
	CHECK(strncmp(e.detail, "RESP-", 5) == 0);
	rl_ack_async_event(&e);
	OK(rl_query_qp(p->b, &attr, 0, NULL));
	CHECK(attr.qp_state == RL_QPS_ERR && p->b->state == RL_QPS_ERR);
	OK(rl_query_qp(p->a, &attr, 0, NULL));
	CHECK(attr.qp_state == RL_QPS_ERR && attr.dest_qp_num == p->b->qp_num);
	CHECK(attr.path_mtu == RL_MTU_1024 && attr.port_num == 1 && attr.retry_cnt == 7);
	OK(fcntl(p->ctx->async_fd, F_SETFL, O_NONBLOCK));
	CHECK(rl_get_async_event(p->ctx, &e) == -EAGAIN);
	OK(fcntl(p->ctx->async_fd, F_SETFL, 0));
}

/* Through RESET the same QPs carry data again, and what was posted before is forgotten. */
static void
reset_and_again(struct pair *p)
{
	struct rl_qp_attr reset = { .qp_state = RL_QPS_RESET }, err = { .qp_state = RL_QPS_ERR };

	for (int i = 0; i < 5; i++) {
		OK(pair_recv(p->a, pair_sge(p, 0, 8), 1));
		OK(rl_modify_qp(p->a, &err, RL_QP_STATE));
		CHECK(pair_wait(p->cq).status == RL_WC_WR_FLUSH_ERR);
		OK(rl_modify_qp(p->b, &reset, RL_QP_STATE));
		OK(rl_modify_qp(p->a, &reset, RL_QP_STATE));
		pair_move(p, p->a, RL_QPS_RTS, 1, p->b->qp_num, 2);
		pair_move(p, p->b, RL_QPS_RTS, 2, p->a->qp_num, 1);
		write_and_read(p);
	}
}

/* The application's own memfd: taken when it cannot shrink any more. */
static void
own_memfd(struct pair *p)
{
	const int fd = memfd_create("mine", MFD_ALLOW_SEALING);
	struct rl_mr *mr;
	uint8_t *at;

	CHECK(fd >= 0);
	OK(ftruncate(fd, 16384));
	at = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	CHECK(at != MAP_FAILED);
	CHECK(rl_reg_mr_fd(p->pd, fd, 0, at, 16384, ALL, &mr) == -EPERM);
	CHECK(strstr(rl_last_error(), "F_SEAL_SHRINK") != NULL);
	OK(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK));
	CHECK(rl_reg_mr_fd(p->pd, fd, 4096, at, 16384, ALL, &mr) == -EINVAL);
	CHECK(rl_reg_mr_fd(p->pd, fd, 5000, at + 5000, 8000, ALL, &mr) == -ENODATA);
	CHECK(strstr(rl_last_error(), "MADV_POPULATE_WRITE") != NULL);
	memset(at, 0, 16384);
	OK(rl_reg_mr_fd(p->pd, fd, 5000, at + 5000, 8000, ALL, &mr));
	CHECK(ftruncate(fd, 4096) == -1);
	memcpy(p->mr->addr, "into a memfd", 13);
	OK(pair_post(
		p->a, RL_WR_RDMA_WRITE, pair_sge(p, 0, 13), (uintptr_t)at + 12000, mr->rkey, 1));
	CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
	CHECK(strcmp((char *)at + 12000, "into a memfd") == 0);
	OK(rl_dereg_mr(mr));
	close(fd);
	munmap(at, 16384);
}

static void
memory_and_use(struct pair *p)
{
	struct rl_mr *mr, *part;
	void *mem;

	CHECK(rl_mem_alloc(p->ctx, (size_t)2 << 30, &mem) == -ENOMEM); /* before a page is taken */
	CHECK(strstr(rl_last_error(), "control.client_limits.memory") != NULL);
	OK(rl_mem_alloc(p->ctx, 20000, &mem));
	OK(rl_reg_mr(p->pd, mem, 20000, ALL, &mr));
	OK(rl_reg_mr(p->pd, (uint8_t *)mem + 100, 50, RL_ACCESS_REMOTE_READ, &part));
	CHECK(mr->rkey != part->rkey && mr->lkey != 0);
	CHECK(rl_mem_free(p->ctx, mem) == -EBUSY);
	CHECK(rl_reg_mr(p->pd, &mr, 8, ALL, &part) == -EINVAL);
	CHECK(rl_reg_mr(p->pd, mem, 100, RL_ACCESS_REMOTE_WRITE, &part) == -EINVAL);
	OK(rl_dereg_mr(mr));
	CHECK(rl_dealloc_pd(p->pd) == -EBUSY);
	CHECK(rl_destroy_cq(p->cq) == -EBUSY);
	CHECK(rl_destroy_comp_channel(p->channel) == -EBUSY);
}

static void
ports_and_limits(struct pair *p)
{
	struct rl_device_attr dev;
	struct rl_port_attr port;
	union rl_gid gid, same;

	OK(rl_query_device(p->ctx, &dev));
	CHECK(dev.phys_port_cnt == 2 && dev.max_qp == 1024 && dev.max_sge == 16);
	OK(rl_query_port(p->ctx, 2, &port));
	CHECK(strcmp(port.name, "right") == 0 && port.mac[5] == 2 && port.gid_tbl_len == 1);
	CHECK(port.active_mtu == RL_MTU_4096 && port.state == RL_PORT_ACTIVE);
	CHECK(rl_query_port(p->ctx, 3, &port) == -EINVAL);
	CHECK(rl_watch_port(p->ctx, 0) == -EINVAL && rl_watch_port(p->ctx, 3) == -EINVAL);
	OK(rl_watch_port(p->ctx, 2));
	OK(rl_query_gid(p->ctx, 2, 0, &gid));
	OK(rl_gid_from_ip("10.77.0.2", &same));
	CHECK(memcmp(&gid, &same, sizeof(gid)) == 0);
	CHECK(rl_query_gid(p->ctx, 2, 1, &gid) == -EINVAL);
	CHECK(rl_gid_from_ip("nowhere", &gid) == -EINVAL);
}

/* CQ-05: more completions than fit: the queue's event, its QPs in ERR, nothing overwritten. */
static void
CQ_05_overflow(const char *socket)
{
	struct rl_async_event e;
	struct pair p;
	bool cq_err = false, qp_fatal = false;

	pair_open(&p, socket, 4, 4096);
	pair_connect(&p, 16);
	for (uint64_t i = 0; i < 10; i++)
		OK(pair_post(p.a, RL_WR_RDMA_WRITE, pair_sge(&p, 0, 8), (uintptr_t)p.mr->addr + 8,
			p.mr->rkey, i));
	while (!cq_err || !qp_fatal) {
		OK(rl_get_async_event(p.ctx, &e));
		if (e.event_type == RL_EVENT_CQ_ERR) {
			CHECK(e.element.cq == p.cq && !cq_err);
			cq_err = true;
		} else {
			CHECK(e.event_type == RL_EVENT_QP_FATAL && e.element.qp == p.a);
			qp_fatal = true;
		}
		rl_ack_async_event(&e);
	}
	for (uint64_t i = 0; i < 4; i++)
		CHECK(pair_wait(p.cq).wr_id == i);
	CHECK(pair_is_quiet(p.cq));
	pair_disconnect(&p);
	OK(rl_destroy_cq(p.cq));
	pair_close(&p);
}

/* One signalled request in four; a full queue stays full until a completion is polled. */
static void
unsignaled(struct pair *p)
{
	struct rl_sge sge = pair_sge(p, 0, 8);
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_WRITE,
		.wr.rdma = { (uintptr_t)p->mr->addr + 64, p->mr->rkey } };
	struct rl_wc wc;

	*(uint64_t *)p->mr->addr = 0x1234;
	for (uint64_t i = 0; i < 16; i++) {
		wr.wr_id = i;
		wr.send_flags = i % 4 == 3 ? RL_SEND_SIGNALED : 0;
		OK(rl_post_send(p->a, &wr, NULL));
	}
	CHECK(rl_post_send(p->a, &wr, NULL) == -ENOMEM);
	/* The last one's data is there: all have completed, and none was polled. */
	while (atomic_load((_Atomic uint64_t *)p->mr->addr + 8) != 0x1234)
		sched_yield();
	CHECK(rl_post_send(p->a, &wr, NULL) == -ENOMEM);
	wc = pair_wait(p->cq);
	CHECK(wc.status == RL_WC_SUCCESS && wc.wr_id == 3);
	wr.send_flags = RL_SEND_SIGNALED;
	for (uint64_t i = 0; i < 4; i++)
		OK(rl_post_send(p->a, &wr, NULL));
	CHECK(rl_post_send(p->a, &wr, NULL) == -ENOMEM);
	for (uint64_t i = 0; i < 7; i++)
		CHECK(pair_wait(p->cq).status == RL_WC_SUCCESS);
	CHECK(pair_is_quiet(p->cq));
}

struct sender {
	struct rl_qp *qp;
	struct pair *p;
	uint64_t id;
};

static void *
send_many(void *arg)
{
	struct sender *s = arg;

	for (uint64_t i = 0; i < 2000;) {
		const int rc = pair_post(s->qp, RL_WR_RDMA_WRITE, pair_sge(s->p, 0, 8),
			(uintptr_t)s->p->mr->addr + 64, s->p->mr->rkey, s->id << 32 | i);

		CHECK(rc == 0 || rc == -ENOMEM);
		i += rc == 0;
		if (rc != 0)
			sched_yield();
	}
	return NULL;
}

/* Four threads on two QPs and one doorbell ring: every request completes, once. */
static void
threads(struct pair *p)
{
	struct sender s[4] = { { p->a, p, 0 }, { p->a, p, 1 }, { p->b, p, 2 }, { p->b, p, 3 } };
	uint64_t next[4] = { 0 };
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		CHECK(pthread_create(&t[i], NULL, send_many, &s[i]) == 0);
	for (int i = 0; i < 8000; i++) {
		const struct rl_wc wc = pair_wait(p->cq);

		CHECK(wc.status == RL_WC_SUCCESS);
		CHECK((wc.wr_id & 0xffffffff) == next[wc.wr_id >> 32]++);
	}
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	CHECK(pair_is_quiet(p->cq));
}

int
main(int argc, char **argv)
{
	static void (*const cases[])(struct pair *) = { write_and_read, send_immediate_inline,
		atomics, atomic_writes, flushes, CQ_09_refused_at_once, CQ_06_completion_events,
		QP_13_posted_in_ERR, errors_and_events, reset_and_again, own_memfd, memory_and_use,
		ports_and_limits, unsignaled, threads };
	struct rl_context *nobody;
	struct pair p;

	CHECK(argc == 2);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_open(&p, argv[1], 64, 8192);
		pair_connect(&p, 16);
		cases[i](&p);
		pair_disconnect(&p);
		OK(rl_destroy_cq(p.cq));
		OK(rl_destroy_comp_channel(p.channel));
		OK(rl_dereg_mr(p.mr));
		if (cases[i] != memory_and_use)
			OK(rl_dealloc_pd(p.pd));
		pair_close(&p);
		printf("ok %u\n", i);
	}
	CQ_05_overflow(argv[1]);
	CHECK(rl_open("/nonexistent/socket", &nobody) == -ENOENT && nobody == NULL);
	puts("ok");
	return 0;
}
