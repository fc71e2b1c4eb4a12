/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that is short of something for a moment, "files" or "memory": queues and channels are
 * refused, and there are as many as ever when the moment is over.
 */
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ends.h"

enum { TIMES = 20, CQE = 65536, FEW = 64 };

static struct ibv_context *ctx;

static void
refused(const void *made, int err)
{
	CHECK(made == NULL && errno == err);
}

/* Each place in the areas of before is taken: the next queue needs one more. */
static void
without(int err)
{
	for (int i = 0; i < TIMES; i++) {
		refused(ibv_create_cq(ctx, CQE, NULL, NULL, 0), err);
		if (err == EMFILE)
			refused(ibv_create_comp_channel(ctx), err);
	}
}

static void
without_files(struct rlimit few)
{
	int n = 0, fds[FEW];

	few.rlim_cur = FEW;
	CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
	while (n < FEW && (fds[n] = open("/dev/null", O_RDONLY)) >= 0)
		n++;
	CHECK(n > 1 && n < FEW && errno == EMFILE);
	without(EMFILE);
	close(fds[--n]); /* a queue needs one, and its area another */
	without(EMFILE);
	while (n != 0)
		close(fds[--n]);
}

static struct ibv_qp *
make_qp(struct ibv_pd *pd, struct ibv_cq *cq)
{
	struct ibv_qp_init_attr init = {
		.send_cq = cq, .recv_cq = cq, .qp_type = IBV_QPT_RC, .cap = { CQE, 1, 1, 1, 0 }
	};

	return ibv_create_qp(pd, &init);
}

/* There is room for its queues, and none for what the library notes of them. */
static void
without_heap(struct rlimit few)
{
	struct ibv_pd *pd = ibv_alloc_pd(ctx);
	struct ibv_cq *cq = ibv_create_cq(ctx, 1, NULL, NULL, 0);
	struct ibv_qp *qp = make_qp(pd, cq);
	struct rlimit before;
	void *last = NULL, **more;

	CHECK(qp != NULL && ibv_destroy_qp(qp) == 0 && getrlimit(RLIMIT_AS, &before) == 0);
	CHECK(setrlimit(RLIMIT_AS, &few) == 0);
	for (; (more = malloc(CQE)) != NULL; last = more)
		*more = last;
	refused(make_qp(pd, cq), ENOMEM);
	for (; last != NULL; last = more) {
		more = *(void **)last;
		free(last);
	}
	CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	CHECK(ibv_destroy_cq(cq) == 0 && ibv_dealloc_pd(pd) == 0);
}

static void
without_memory(struct rlimit few)
{
	const struct rlimit before = few;

	few.rlim_cur = 1 << 20;
	CHECK(setrlimit(RLIMIT_AS, &few) == 0);
	without(ENOMEM);
	CHECK(setrlimit(RLIMIT_AS, &before) == 0);
	without_heap(few);
}

int
main(int argc, char **argv)
{
	const int what = argc > 1 && strcmp(argv[1], "files") == 0 ? RLIMIT_NOFILE : RLIMIT_AS;
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_cq *cq[TIMES];
	struct rlimit before;

	CHECK(list != NULL && (ctx = ibv_open_device(list[0])) != NULL);
	CHECK(getrlimit(what, &before) == 0);
	if (what == RLIMIT_NOFILE)
		without_files(before);
	else
		without_memory(before);
	CHECK(setrlimit(what, &before) == 0);
	for (int i = 0; i < TIMES; i++) {
		struct ibv_comp_channel *channel = ibv_create_comp_channel(ctx);

		CHECK(channel != NULL);
		CHECK((cq[i] = ibv_create_cq(ctx, CQE, NULL, channel, 0)) != NULL);
	}
	for (int i = 0; i < TIMES; i++) {
		struct ibv_comp_channel *channel = cq[i]->channel;

		CHECK(ibv_destroy_cq(cq[i]) == 0 && ibv_destroy_comp_channel(channel) == 0);
	}
	CHECK(ibv_close_device(ctx) == 0);
	printf("for a moment\n");
	return 0;
}
