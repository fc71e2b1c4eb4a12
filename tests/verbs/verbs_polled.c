/* SPDX-License-Identifier: BSD-3-Clause */
/* Two threads poll one ibv_cq_ex: each reads a completion that the other one does not step on. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ends.h"

enum { BYTES = 64, BOTH = 2 };

static struct end e[2];
static struct ibv_cq_ex *cq;
static _Atomic pid_t other;
static atomic_bool done;

/* The next completion; it is read until end_poll(). */
static uint64_t
polled(void)
{
	struct ibv_poll_cq_attr attr = { 0 };

	while (ibv_start_poll(cq, &attr) != 0)
		;
	return cq->wr_id;
}

static void *
polls(void *arg)
{
	uint64_t *id = arg;

	other = (pid_t)syscall(SYS_gettid);
	*id = polled();
	CHECK(ibv_wc_read_opcode(cq) == IBV_WC_RDMA_WRITE);
	ibv_end_poll(cq);
	atomic_store(&done, true);
	return arg;
}

/* Does it sleep at a futex? */
static bool
waits(pid_t tid)
{
	char path[64], text[64] = "";
	FILE *f;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", tid);
	f = tid != 0 ? fopen(path, "r") : NULL;
	if (f == NULL)
		return false;
	if (fgets(text, sizeof(text), f) == NULL)
		text[0] = '\0';
	fclose(f);
	return strncmp(text, "202 ", 4) == 0;
}

static void
post(const struct ibv_mr *mr, const struct ibv_mr *peer, uint64_t id)
{
	struct ibv_sge sge = { (uintptr_t)mr->addr, BYTES, mr->lkey };
	struct ibv_send_wr wr = { .wr_id = id,
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED,
		.wr.rdma = { (uintptr_t)peer->addr, peer->rkey } };
	struct ibv_send_wr *bad;

	CHECK(ibv_post_send(e[0].qp, &wr, &bad) == 0);
}

/* The first end's queue becomes one of this kind. */
static void
open_ends(void)
{
	struct ibv_cq_init_attr_ex init = { .cqe = 16, .wc_flags = IBV_WC_STANDARD_FLAGS };
	struct ibv_qp_init_attr qp = { .qp_type = IBV_QPT_RC,
		.cap = { .max_send_wr = 16, .max_send_sge = 1, .max_recv_sge = 1 } };
	struct ibv_device **list = ibv_get_device_list(NULL);

	CHECK(list != NULL && list[0] != NULL && list[1] != NULL);
	end_open(&e[0], list[0]);
	end_open(&e[1], list[1]);
	ibv_free_device_list(list);
	CHECK(ibv_destroy_qp(e[0].qp) == 0);
	CHECK((cq = ibv_create_cq_ex(e[0].ctx, &init)) != NULL);
	qp.send_cq = qp.recv_cq = ibv_cq_ex_to_cq(cq);
	CHECK((e[0].qp = ibv_create_qp(e[0].pd, &qp)) != NULL);
	end_connect(&e[0], &e[1], 7);
	end_connect(&e[1], &e[0], 7);
}

int
main(void)
{
	char *at[BOTH];
	struct ibv_mr *mr[BOTH];
	uint64_t first, second = 0;
	pthread_t t;

	open_ends();
	for (int i = 0; i < BOTH; i++) {
		CHECK((at[i] = calloc(1, BYTES)) != NULL);
		CHECK((mr[i] = ibv_reg_mr(e[i].pd, at[i], BYTES, ALL_ACCESS)) != NULL);
	}
	post(mr[0], mr[1], 1);
	post(mr[0], mr[1], 2);
	first = polled();
	CHECK(first == 1);
	CHECK(pthread_create(&t, NULL, polls, &second) == 0);
	while (!waits(other) && !atomic_load(&done))
		usleep(1000);
	CHECK(cq->wr_id == first);
	ibv_end_poll(cq);
	CHECK(pthread_join(t, NULL) == 0);
	CHECK(second == 2);
	printf("each its own\n");
	return 0;
}
