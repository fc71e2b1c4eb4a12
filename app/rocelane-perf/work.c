/* SPDX-License-Identifier: BSD-3-Clause */
/* Posting and completions, and what messages hold when they are validated. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include "perf.h"

#define POLL_BATCH 16
#define LOOK_SPINS 8192 /* empty polls before the peer is looked at */
#define EVENT_MS   1000

static _Atomic int stopped; /* by this signal. Lock-free: a signal handler may set it */

static void
on_signal(int sig)
{
	atomic_store_explicit(&stopped, sig, memory_order_relaxed);
}

void
work_init(void)
{
	struct sigaction sa = { .sa_handler = on_signal };

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
}

bool
work_stopped(void)
{
	return atomic_load_explicit(&stopped, memory_order_relaxed) != 0;
}

void
work_end_as_stopped(void)
{
	const int sig = atomic_load_explicit(&stopped, memory_order_relaxed);

	if (sig == 0)
		return;
	signal(sig, SIG_DFL);
	raise(sig);
}

uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* ---- contents -------------------------------------------------------------------------------- */

/* Message n of QP i: every eight bytes are another number. */
static uint64_t
word_of(uint32_t qp, uint64_t n, uint64_t k)
{
	uint64_t v = (n << 20) + ((uint64_t)qp << 52) + k + 1;

	v *= 0x9e3779b97f4a7c15u;
	return v ^ v >> 29;
}

static void
message_fill(uint8_t *at, uint32_t qp, uint64_t n, uint64_t size)
{
	for (uint64_t k = 0; k * 8 < size; k++) {
		const uint64_t w = word_of(qp, n, k);

		memcpy(at + k * 8, &w, size - k * 8 < 8 ? size - k * 8 : 8);
	}
}

static bool
message_is(const uint8_t *at, uint32_t qp, uint64_t n, uint64_t size)
{
	for (uint64_t k = 0; k * 8 < size; k++) {
		const uint64_t w = word_of(qp, n, k);

		if (memcmp(at + k * 8, &w, size - k * 8 < 8 ? size - k * 8 : 8) != 0)
			return false;
	}
	return true;
}

/* Where message n is received; ahead of a datagram is its IP header. */
static uint8_t *
receive_at(const struct perf *p, uint32_t qp, uint64_t n)
{
	return ends_remote(p, qp) + place_of(&p->received_at, n);
}

void
work_reset(struct perf *p, uint64_t size)
{
	places_set(p, size);
	p->done = 0;
	p->received = 0;
	memset(p->count, 0, p->o.qps * sizeof(*p->count));
	hist_reset(&p->hist);
}

void
work_prepare(struct perf *p, uint64_t size)
{
	places_set(p, size);
	for (uint32_t i = 0; i < p->o.qps; i++) {
		memset(ends_remote(p, i), 0, p->room);
		if (!p->o.validate || p->o.verb != PERF_READ)
			continue;
		for (uint32_t n = 0; n < p->slots; n++) /* what a READ of slot n must find */
			message_fill(ends_remote(p, i) + place_of(&p->sent_at, n), i, n, size);
	}
}

void
work_check_written(struct perf *p, uint64_t size, uint64_t iters)
{
	for (uint32_t i = 0; i < p->o.qps; i++) {
		for (uint64_t n = iters > p->slots ? iters - p->slots : 0; n < iters; n++)
			p->wrong += !message_is(
				ends_remote(p, i) + place_of(&p->sent_at, n), i, n, size);
	}
}

/* The n-th request of a QP has completed. */
static void
check_sent(struct perf *p, uint32_t i, uint64_t n, uint64_t size)
{
	const uint8_t *at = ends_local(p, i) + place_of(&p->sent_at, n);
	uint64_t old;

	if (p->o.verb == PERF_READ) {
		p->wrong += !message_is(at, i, n % p->slots, size);
	} else if (p->o.verb == PERF_ATOMIC) { /* nobody else adds or swaps there */
		memcpy(&old, at, sizeof(old));
		p->wrong += old != n;
	}
}

/* ---- posting --------------------------------------------------------------------------------- */

static int
refused(const char *what, int rc)
{
	fprintf(stderr, "rocelane-perf: %s: %s: %s\n", what, strerror(-rc), rl_last_error());
	return -1;
}

static void
fill_atomic(const struct perf *p, struct rl_send_wr *wr, uint64_t n)
{
	wr->wr.atomic.rkey = 0;
	if (p->o.atomic == PERF_FETCH_AND_ADD) {
		wr->opcode = RL_WR_ATOMIC_FETCH_AND_ADD;
		wr->wr.atomic.compare_add = 1;
	} else {
		wr->opcode = RL_WR_ATOMIC_CMP_AND_SWP;
		wr->wr.atomic.compare_add = n;
		wr->wr.atomic.swap = n + 1;
	}
}

/* What message n is before it goes, when that is looked at. */
static void
before_post(struct perf *p, uint32_t i, uint64_t n, uint64_t size)
{
	uint8_t *at = ends_local(p, i) + place_of(&p->sent_at, n);

	if (p->o.verb == PERF_READ || p->o.verb == PERF_ATOMIC)
		memset(at, 0xee, size);
	else
		message_fill(at, i, n, size);
}

int
work_flush(struct perf *p, uint32_t qp)
{
	int rc;

	if (p->listed == 0)
		return 0;
	for (uint32_t i = 0; i + 1 < p->listed; i++)
		p->list[i].next = &p->list[i + 1];
	p->listed = 0;
	rc = rl_post_send(p->qp[qp], p->list, NULL);
	return rc == 0 ? 0 : refused("post", rc);
}

int
work_post(struct perf *p, uint32_t qp, uint64_t size, bool signaled)
{
	static const enum rl_wr_opcode opcodes[] = { [PERF_SEND] = RL_WR_SEND,
		[PERF_WRITE] = RL_WR_RDMA_WRITE,
		[PERF_READ] = RL_WR_RDMA_READ };
	struct perf_count *c = &p->count[qp];
	const struct perf_dest *to = ends_peer(p, qp);
	const uint64_t n = c->posted;
	const uint64_t offset = place_of(&p->sent_at, n);
	struct rl_sge *sge = &p->list_sge[p->listed];
	struct rl_send_wr *wr = &p->list[p->listed];

	*sge = (struct rl_sge){ .addr = (uint64_t)(uintptr_t)ends_local(p, qp) + offset,
		.length = (uint32_t)size,
		.lkey = p->mr->lkey };
	*wr = (struct rl_send_wr){
		.sg_list = sge, .num_sge = 1, .send_flags = signaled ? RL_SEND_SIGNALED : 0
	};
	if (p->o.validate)
		before_post(p, qp, n, size);
	if (p->o.verb == PERF_ATOMIC) {
		fill_atomic(p, wr, n);
		wr->wr.atomic.remote_addr = to->vaddr + (p->o.validate ? 0 : offset);
		wr->wr.atomic.rkey = to->rkey;
	} else {
		wr->opcode = opcodes[p->o.verb];
		wr->wr.rdma.remote_addr = to->vaddr + offset;
		wr->wr.rdma.rkey = to->rkey;
		if (p->o.type == RL_QPT_UD) {
			wr->wr.ud.ah = p->ah[qp];
			wr->wr.ud.remote_qpn = to->qpn;
			wr->wr.ud.remote_qkey = PERF_QKEY;
		}
		if (size <= p->o.inline_size && p->o.verb != PERF_READ)
			wr->send_flags |= RL_SEND_INLINE;
	}
	if (p->o.type == RL_QPT_XRC_SEND)
		wr->qp_type.xrc.remote_srqn = to->srqn;
	c->unsignaled++;
	wr->wr_id = (uint64_t)qp << 32 | c->unsignaled;
	if (signaled)
		c->unsignaled = 0;
	c->posted++;
	p->listed++;
	return p->listed == p->o.post_list ? work_flush(p, qp) : 0;
}

int
work_post_recv(struct perf *p, uint32_t qp, uint64_t size)
{
	struct perf_count *c = &p->count[qp];
	struct rl_sge sge = { .addr = (uint64_t)(uintptr_t)receive_at(p, qp, c->recv_posted),
		.length = (uint32_t)size + p->head,
		.lkey = p->mr->lkey };
	struct rl_recv_wr wr = { .wr_id = (uint64_t)qp << 32 | 1, .sg_list = &sge, .num_sge = 1 };
	int rc = p->srq[qp] != NULL ? rl_post_srq_recv(p->srq[qp], &wr, NULL)
				    : rl_post_recv(p->qp[qp], &wr, NULL);

	c->recv_posted++;
	return rc == 0 ? 0 : refused("post of a receive", rc);
}

/* ---- completions ----------------------------------------------------------------------------- */

static const char *
hint(enum rl_wc_status status)
{
	switch (status) {
	case RL_WC_RETRY_EXC_ERR:
		return "The peer does not answer: has it ended, are its port's address and path "
		       "right?";
	case RL_WC_RNR_RETRY_EXC_ERR:
		return "The peer had no receive posted: is it stopped, is its -r too small?";
	case RL_WC_WR_FLUSH_ERR:
		return "The queue pair has failed before: see the lines above; or the dataplane ends.";
	default:
		return "Do both ends have the same options?";
	}
}

static int
failed(const struct perf *p, const struct rl_wc *wc, const char *which)
{
	fprintf(stderr,
		"rocelane-perf: %s of queue pair %u failed: %s (vendor_err %u, packet PSN %u) "
		"after %llu completions\n",
		which, wc->qp_num, rl_wc_status_str(wc->status), wc->vendor_err, wc->psn,
		(unsigned long long)(p->done + p->received));
	/* Our QP goes with us, so that nobody could ask for it afterwards. */
	fprintf(stderr,
		"%s\nWhat was dropped, and why: rocelanectl stat show, rocelanectl error "
		"show\n",
		hint(wc->status));
	return -1;
}

/* Perftest's handshake does not say it, and each end would count by its own. */
static int
other_size(const struct perf *p, uint32_t bytes, uint64_t size)
{
	fprintf(stderr,
		"rocelane-perf: a message of %u bytes has come, not of %llu: both ends take the same "
		"-s and -a\n",
		bytes - p->head, (unsigned long long)size);
	return -1;
}

static void
count_sent(struct perf *p, uint32_t qp, uint32_t n, uint64_t size)
{
	struct perf_count *c = &p->count[qp];

	for (uint32_t k = 0; p->o.validate && k < n; k++)
		check_sent(p, qp, c->done + k, size);
	c->done += n;
	p->done += n;
}

static void
count_received(struct perf *p, uint32_t qp, uint64_t size)
{
	struct perf_count *c = &p->count[qp];

	if (p->o.validate)
		p->wrong += !message_is(
			receive_at(p, qp, c->received) + p->head, qp, c->received, size);
	c->received++;
	p->received++;
}

int64_t
work_poll(struct perf *p, struct rl_cq *cq, uint64_t size)
{
	struct rl_wc wc[POLL_BATCH];
	int64_t messages = 0;
	int n = rl_poll_cq(cq, POLL_BATCH, wc);

	if (n < 0)
		return refused("poll", n);
	for (int i = 0; i < n; i++) {
		const uint32_t qp = (uint32_t)(wc[i].wr_id >> 32);
		const uint32_t covers = (uint32_t)wc[i].wr_id;

		if (wc[i].status != RL_WC_SUCCESS)
			return failed(p, &wc[i], cq == p->recv_cq ? "a receive" : "a request");
		if (qp >= p->o.qps)
			return refused("completion of an unknown request", -EPROTO);
		if (cq == p->recv_cq && wc[i].byte_len != size + p->head)
			return other_size(p, wc[i].byte_len, size);
		if (cq == p->recv_cq)
			count_received(p, qp, size);
		else
			count_sent(p, qp, covers, size);
		messages += cq == p->recv_cq ? 1 : covers;
	}
	return messages;
}

bool
work_peer_speaks(const struct perf *p)
{
	struct pollfd fd = { .fd = p->sock, .events = POLLIN };

	return poll(&fd, 1, 0) != 0;
}

static bool
peer_is_gone(const struct perf *p)
{
	char c;

	return recv(p->sock, &c, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}

bool
work_failed(const struct perf *p)
{
	struct pollfd fd = { .fd = p->ctx->async_fd, .events = POLLIN };
	struct rl_async_event e;
	bool ends;

	if (poll(&fd, 1, 0) <= 0 || rl_get_async_event(p->ctx, &e) != 0)
		return false;
	ends = e.event_type == RL_EVENT_DEVICE_FATAL || e.event_type == RL_EVENT_QP_FATAL ||
	       e.event_type == RL_EVENT_QP_REQ_ERR || e.event_type == RL_EVENT_QP_ACCESS_ERR ||
	       e.event_type == RL_EVENT_CQ_ERR;
	if (ends)
		fprintf(stderr, "rocelane-perf: %s%s%s\n", rl_event_type_str(e.event_type),
			e.detail[0] != '\0' ? ": " : "", e.detail);
	rl_ack_async_event(&e);
	return ends;
}

/* Sleep until the CQ has something, the peer says something, or for a second. */
static int
wait_event(struct perf *p, struct rl_cq *cq)
{
	struct pollfd fd[] = { { .fd = p->channel->fd, .events = POLLIN },
		{ .fd = p->sock, .events = POLLIN } };
	struct rl_cq *from;
	void *context;
	int rc = rl_req_notify_cq(cq, 0);

	if (rc != 0)
		return refused("completion event", rc);
	if (poll(fd, 2, EVENT_MS) <= 0 || (fd[0].revents & POLLIN) == 0)
		return 0;
	rc = rl_get_cq_event(p->channel, &from, &context);
	if (rc != 0)
		return refused("completion event", rc);
	rl_ack_cq_events(from, 1);
	return 0;
}

int
work_idle(struct perf *p, struct rl_cq *cq, uint32_t *spins)
{
	++*spins;
	if (p->o.events && cq != NULL) {
		if (wait_event(p, cq) != 0)
			return -1;
	}
	if (!p->o.events && *spins % LOOK_SPINS != 0)
		return 0;
	if (work_stopped()) {
		fprintf(stderr, "rocelane-perf: stopped\n");
		return -1;
	}
	if (work_failed(p))
		return -1;
	if (peer_is_gone(p)) {
		fprintf(stderr, "rocelane-perf: the peer has closed the connection\n");
		return -1;
	}
	return 0;
}
