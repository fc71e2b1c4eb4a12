/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A memory window: a key to a part of a region, for a time. The server binds one and tells its key;
 * the other side writes through it, until the server takes it back: then the same WRITE is refused,
 * and the server is told what for.
 */
#include <stdio.h>
#include <string.h>

#include "exchange.h"
#include "tcp.h"

#define BYTES 4096
#define PART  1024 /* the window's: the second quarter of the region */

/** What the server tells of its window. */
struct key {
	uint64_t addr;
	uint32_t rkey;
	uint32_t qp_num;
};

/* Only a request on the queue pair itself binds a window of type 2, and takes it back. */
static void
run(struct end *e, struct rl_send_wr *wr)
{
	wr->send_flags = RL_SEND_SIGNALED;
	must(rl_post_send(e->qp, wr, NULL), "rl_post_send");
	end_wait(e);
}

static int
serve(struct end *e)
{
	struct rl_async_event event;
	struct key key, ignored;
	struct rl_mr *base; /* it has no remote right of its own */
	struct rl_mw *mw;
	const char *in;

	must(rl_reg_mr(e->pd, NULL, BYTES, RL_ACCESS_LOCAL_WRITE | RL_ACCESS_MW_BIND, &base),
		"rl_reg_mr");
	must(rl_alloc_mw(e->pd, RL_MW_TYPE_2, &mw), "rl_alloc_mw");
	in = (char *)base->addr + PART;
	/* The low byte of the key is ours to choose: another one each time. */
	key = (struct key){ .addr = (uintptr_t)in, .rkey = mw->rkey ^ 1, .qp_num = e->qp->qp_num };
	run(e, &(struct rl_send_wr){ .opcode = RL_WR_BIND_MW,
		       .bind_mw = {
			       mw, key.rkey, { base, key.addr, PART, RL_ACCESS_REMOTE_WRITE } } });
	tcp_swap(e->tcp, &key, &ignored, sizeof(key));
	end_meet(e); /* written */
	printf("through the window came: %s\n", in);
	run(e, &(struct rl_send_wr){ .opcode = RL_WR_LOCAL_INV, .invalidate_rkey = key.rkey });
	end_meet(e); /* taken back */
	end_meet(e); /* tried again */
	must(rl_get_async_event(e->ctx, &event), "rl_get_async_event");
	while (event.event_type == RL_EVENT_COMM_EST) {
		rl_ack_async_event(&event);
		must(rl_get_async_event(e->ctx, &event), "rl_get_async_event");
	}
	printf("%s: %s\n", rl_event_type_str(event.event_type), event.detail);
	printf("all about it, now and when this program is gone: rocelanectl qp post-mortem %u\n",
		e->qp->qp_num);
	rl_ack_async_event(&event);
	return strcmp(in, "hello") != 0;
}

static int
ask(struct end *e)
{
	struct rl_sge sge = { (uintptr_t)e->mr->addr, sizeof("hello"), e->mr->lkey };
	struct rl_send_wr wr = { .sg_list = &sge,
		.num_sge = 1,
		.opcode = RL_WR_RDMA_WRITE,
		.send_flags = RL_SEND_SIGNALED };
	struct key key;
	struct rl_wc wc;

	tcp_swap(e->tcp, &(struct key){ 0 }, &key, sizeof(key));
	wr.wr.rdma.remote_addr = key.addr;
	wr.wr.rdma.rkey = key.rkey;
	snprintf(e->mr->addr, BYTES, "hello");
	run(e, &wr);
	end_meet(e);
	end_meet(e); /* taken back */
	snprintf(e->mr->addr, BYTES, "again");
	must(rl_post_send(e->qp, &wr, NULL), "rl_post_send");
	wc = end_wait_any(e);
	printf("the same WRITE again: %s\n", rl_wc_status_str(wc.status));
	end_meet(e);
	return wc.status != RL_WC_REM_ACCESS_ERR;
}

int
main(int argc, char **argv)
{
	struct end e;
	int wrong;

	end_open(&e, argc, argv, BYTES);
	wrong = e.serves ? serve(&e) : ask(&e);
	end_meet(&e);
	end_close(&e);
	return wrong;
}
