/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rping: the protocol of librdmacm's program of this name, which may be at the other end.
 *
 *     rping -s [-a ADDRESS] [-p PORT] [-C COUNT] [-S SIZE] [-v]      serves one client
 *     rping -c -a ADDRESS [-p PORT] [-C COUNT] [-S SIZE] [-v]
 *
 * In each round the client tells where its text is, and the server READs it; then it tells where
 * its other buffer is, and the server WRITEs the text there. Each SEND but the client's two says
 * nothing but "go on".
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rocelane_cm.h>

#define PORT     7174 /* rping's */
#define SIZE     64
#define SIZE_MIN 24 /* "rdma-ping-2147483647: " */
#define TIME_MS  2000
#define ENTRIES  16

/* What a SEND says. */
struct info {
	uint64_t buf; /* big-endian, as all of it */
	uint32_t rkey;
	uint32_t size;
};

/* One region: what is received, what is sent, the client's text, and what comes back. */
struct memory {
	struct info in, out;
	char text[];
};

struct rping {
	bool serves, verbose;
	unsigned long count; /* 0: for ever */
	uint32_t size;
	struct sockaddr_storage at;
	struct rl_context *ctx;
	struct rl_cm_event_channel *events;
	struct rl_cm_id *listener, *id;
	struct rl_pd *pd;
	struct rl_comp_channel *channel;
	struct rl_cq *cq;
	struct rl_mr *mr;
	struct memory *m;
	unsigned int received; /* and not used yet */
	bool over;
};

static void
must(int rc, const char *what)
{
	if (rc == 0)
		return;
	fprintf(stderr, "rping: %s: %s (%s)\n", what, rl_last_error(), strerror(-rc));
	exit(1);
}

/* ---- the connection -------------------------------------------------------------------------- */

/* The next event of the connection, which has to be this one. The caller acknowledges it. */
static struct rl_cm_event *
wait_for(struct rping *r, enum rl_cm_event_type type)
{
	struct rl_cm_event *e;

	must(rl_cm_get_event(r->events, &e), "rl_cm_get_event");
	if (e->event == type)
		return e;
	fprintf(stderr, "rping: %s instead of %s, status %d\n", rl_cm_event_str(e->event),
		rl_cm_event_str(type), e->status);
	exit(1);
}

static void
expect(struct rping *r, enum rl_cm_event_type type)
{
	rl_cm_ack_event(wait_for(r, type));
}

static void
post_recv(struct rping *r)
{
	struct rl_sge sge = { (uintptr_t)&r->m->in, sizeof(r->m->in), r->mr->lkey };
	struct rl_recv_wr wr = { .sg_list = &sge, .num_sge = 1 };

	must(rl_post_recv(r->id->qp, &wr, NULL), "rl_post_recv");
}

/* The queue pair, and what it needs. */
static void
prepare(struct rping *r)
{
	struct rl_qp_init_attr init = { .qp_type = RL_QPT_RC,
		.sq_sig_all = 1,
		.cap = { .max_send_wr = ENTRIES,
			.max_recv_wr = ENTRIES,
			.max_send_sge = 1,
			.max_recv_sge = 1 } };

	must(rl_alloc_pd(r->ctx, &r->pd), "rl_alloc_pd");
	must(rl_create_comp_channel(r->ctx, &r->channel), "rl_create_comp_channel");
	must(rl_create_cq(r->ctx, 4 * ENTRIES, NULL, r->channel, &r->cq), "rl_create_cq");
	must(rl_reg_mr(r->pd, NULL, sizeof(*r->m) + 2 * (size_t)r->size,
		     RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ,
		     &r->mr),
		"rl_reg_mr");
	r->m = r->mr->addr;
	init.send_cq = r->cq;
	init.recv_cq = r->cq;
	must(rl_cm_create_qp(r->id, r->pd, &init), "rl_cm_create_qp");
	post_recv(r);
}

static void
make_connection(struct rping *r)
{
	const struct rl_cm_conn_param param = { .responder_resources = 1,
		.initiator_depth = 1,
		.retry_count = 7,
		.rnr_retry_count = 7 };
	struct sockaddr *at = (struct sockaddr *)&r->at;
	struct rl_cm_event *e;

	must(rl_open(NULL, &r->ctx), "rl_open");
	must(rl_cm_create_event_channel(r->ctx, &r->events), "rl_cm_create_event_channel");
	if (r->serves) {
		must(rl_cm_create_id(r->events, &r->listener, r, RL_PS_TCP), "rl_cm_create_id");
		must(rl_cm_bind_addr(r->listener, at), "rl_cm_bind_addr");
		must(rl_cm_listen(r->listener, 1), "rl_cm_listen");
		e = wait_for(r, RL_CM_EVENT_CONNECT_REQUEST);
		r->id = e->id;
		rl_cm_ack_event(e);
		prepare(r);
		must(rl_cm_accept(r->id, &param), "rl_cm_accept");
	} else {
		must(rl_cm_create_id(r->events, &r->id, r, RL_PS_TCP), "rl_cm_create_id");
		must(rl_cm_resolve_addr(r->id, NULL, at, TIME_MS), "rl_cm_resolve_addr");
		expect(r, RL_CM_EVENT_ADDR_RESOLVED);
		must(rl_cm_resolve_route(r->id, TIME_MS), "rl_cm_resolve_route");
		expect(r, RL_CM_EVENT_ROUTE_RESOLVED);
		prepare(r);
		must(rl_cm_connect(r->id, &param), "rl_cm_connect");
	}
	expect(r, RL_CM_EVENT_ESTABLISHED);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* The peer has something to say, or to ask for an end. */
static void
sleep_for_both(struct rping *r)
{
	struct pollfd p[2] = { { .fd = r->channel->fd, .events = POLLIN },
		{ .fd = r->events->fd, .events = POLLIN } };
	struct rl_cq *cq;

	if (poll(p, 2, TIME_MS) < 0 && errno != EINTR)
		must(-errno, "poll");
	if ((p[1].revents & POLLIN) != 0) {
		expect(r, RL_CM_EVENT_DISCONNECTED);
		r->over = true;
	}
	if ((p[0].revents & POLLIN) != 0) {
		must(rl_get_cq_event(r->channel, &cq, NULL), "rl_get_cq_event");
		rl_ack_cq_events(cq, 1);
	}
}

/* @return 1: one, in *wc; 0: none. */
static int
look(struct rping *r, struct rl_wc *wc)
{
	const int n = rl_poll_cq(r->cq, 1, wc);

	must(n < 0 ? n : 0, "rl_poll_cq");
	return n;
}

/* @return false: the peer has left. */
static bool
complete(struct rping *r, struct rl_wc *wc)
{
	while (look(r, wc) == 0) {
		if (r->over)
			return false;
		must(rl_req_notify_cq(r->cq, 0), "rl_req_notify_cq");
		if (look(r, wc) != 0)
			break;
		sleep_for_both(r);
	}
	if (wc->status == RL_WC_SUCCESS)
		return true;
	if (wc->status != RL_WC_WR_FLUSH_ERR)
		fprintf(stderr, "rping: %s\n", rl_wc_status_str(wc->status));
	return false;
}

/* A request of our own; what is received meanwhile is counted. */
static bool
post(struct rping *r, struct rl_send_wr *wr, const void *local, uint32_t length)
{
	struct rl_sge sge = { (uintptr_t)local, length, r->mr->lkey };
	struct rl_wc wc;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	must(rl_post_send(r->id->qp, wr, NULL), "rl_post_send");
	do {
		if (!complete(r, &wc))
			return false;
		r->received += wc.opcode == RL_WC_RECV;
	} while (wc.opcode == RL_WC_RECV);
	return true;
}

static bool
say(struct rping *r, const char *where)
{
	struct rl_send_wr wr = { .opcode = RL_WR_SEND };

	r->m->out = (struct info){ .buf = htobe64((uintptr_t)where),
		.rkey = htobe32(r->mr->rkey),
		.size = htobe32(r->size) };
	return post(r, &wr, &r->m->out, sizeof(r->m->out));
}

/* What the peer says, in *in. */
static bool
hear(struct rping *r, struct info *in)
{
	struct rl_wc wc;

	while (r->received == 0) {
		if (!complete(r, &wc))
			return false;
		r->received += wc.opcode == RL_WC_RECV;
	}
	r->received--;
	*in = (struct info){ .buf = be64toh(r->m->in.buf),
		.rkey = be32toh(r->m->in.rkey),
		.size = be32toh(r->m->in.size) };
	post_recv(r);
	return true;
}

/* @return false: the client has left. */
static bool
serve_round(struct rping *r)
{
	struct rl_send_wr wr = { .opcode = RL_WR_RDMA_READ };
	char *text = r->m->text;
	struct info in;

	if (!hear(r, &in))
		return false;
	if (in.size > r->size) {
		fprintf(stderr, "rping: the client has %u bytes, and this has %u: -S\n", in.size,
			r->size);
		exit(1);
	}
	wr.wr.rdma.remote_addr = in.buf;
	wr.wr.rdma.rkey = in.rkey;
	if (!post(r, &wr, text, in.size))
		return false;
	text[r->size - 1] = '\0';
	if (r->verbose)
		printf("server ping data: %s\n", text);
	if (!say(r, text) || !hear(r, &in))
		return false;
	wr = (struct rl_send_wr){ .opcode = RL_WR_RDMA_WRITE,
		.wr.rdma = { .remote_addr = in.buf, .rkey = in.rkey } };
	return post(r, &wr, text, (uint32_t)strlen(text) + 1) && say(r, text);
}

/* The text of a round: a number, and letters that move on. */
static void
write_text(struct rping *r, unsigned long n)
{
	const uint32_t letters = 'z' - 'A' + 1;
	char *text = r->m->text;

	for (uint32_t i = (uint32_t)snprintf(text, r->size, "rdma-ping-%lu: ", n), k = 0;
		i < r->size; i++, k++)
		text[i] = (char)('A' + (n + k) % letters);
	text[r->size - 1] = '\0';
}

static bool
ask_round(struct rping *r, unsigned long n)
{
	char *text = r->m->text, *back = text + r->size;
	struct info in;

	write_text(r, n);
	memset(back, 0, r->size);
	if (!say(r, text) || !hear(r, &in) || !say(r, back) || !hear(r, &in))
		return false;
	if (memcmp(text, back, r->size) != 0) {
		fprintf(stderr, "rping: data mismatch in round %lu: \"%s\"\n", n, back);
		exit(1);
	}
	if (r->verbose)
		printf("ping data: %s\n", back);
	return true;
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
usage(void)
{
	fprintf(stderr, "usage: rping -s|-c [-a ADDRESS] [-p PORT] [-C COUNT] [-S SIZE] [-v]\n");
	exit(2);
}

static void
parse(struct rping *r, int argc, char **argv)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&r->at;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&r->at;
	bool asks = false, has_address = false;
	uint16_t port = PORT;
	int c;

	in->sin_family = AF_INET;
	while ((c = getopt(argc, argv, "sca:p:C:S:v")) >= 0) {
		if (c == 's') {
			r->serves = true;
		} else if (c == 'c') {
			asks = true;
		} else if (c == 'a') {
			has_address = true;
			in->sin_family = strchr(optarg, ':') != NULL ? AF_INET6 : AF_INET;
			if (inet_pton(in->sin_family, optarg,
				    in->sin_family == AF_INET ? (void *)&in->sin_addr
							      : (void *)&in6->sin6_addr) != 1)
				usage();
		} else if (c == 'p') {
			port = (uint16_t)strtoul(optarg, NULL, 0);
		} else if (c == 'C') {
			r->count = strtoul(optarg, NULL, 0);
		} else if (c == 'S') {
			r->size = (uint32_t)strtoul(optarg, NULL, 0);
		} else if (c == 'v') {
			r->verbose = true;
		} else {
			usage();
		}
	}
	in->sin_port = htons(port);
	if (r->serves == asks || (asks && !has_address) || r->size < SIZE_MIN || r->size > 1 << 20)
		usage();
}

int
main(int argc, char **argv)
{
	struct rping r = { .size = SIZE };
	unsigned long n = 0;

	parse(&r, argc, argv);
	make_connection(&r);
	while ((r.count == 0 || n < r.count) && (r.serves ? serve_round(&r) : ask_round(&r, n)))
		n++;
	if (!r.serves) /* the server waits for it */
		rl_cm_disconnect(r.id);
	if (!r.over)
		expect(&r, RL_CM_EVENT_DISCONNECTED);
	printf("%lu rounds\n", n);
	rl_close(r.ctx); /* takes the rest along */
	return r.count != 0 && n < r.count && !r.serves;
}
