/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of applications, against a real dataplane: argv[1] is its socket. */
#include <errno.h>
#include <string.h>

#include "pair.h"

#define LEN  8192u
#define PART 4096u

struct bed {
	struct pair p;
	struct rl_mr *base; /* no remote right of its own */
	struct rl_mw *mw;
	const char *socket;
};

static void
bed_open(struct bed *b, const char *socket, enum rl_mw_type type)
{
	b->socket = socket;
	pair_open(&b->p, socket, 64, LEN);
	pair_connect(&b->p, 16);
	OK(rl_reg_mr(b->p.pd, NULL, LEN, RL_ACCESS_LOCAL_WRITE | RL_ACCESS_MW_BIND, &b->base));
	OK(rl_alloc_mw(b->p.pd, type, &b->mw));
}

static struct rl_mw_bind_info
part(const struct bed *b)
{
	return (struct rl_mw_bind_info){ .mr = b->base,
		.addr = (uintptr_t)b->base->addr,
		.length = PART,
		.mw_access_flags = RL_ACCESS_REMOTE_WRITE };
}

static enum rl_wc_status
bind_1(struct rl_qp *qp, struct rl_cq *cq, struct rl_mw *mw, struct rl_mw_bind_info info)
{
	const struct rl_mw_bind bind = {
		.wr_id = 9, .send_flags = RL_SEND_SIGNALED, .bind_info = info
	};
	struct rl_wc wc;

	OK(rl_bind_mw(qp, mw, &bind));
	wc = pair_wait(cq);
	CHECK(wc.wr_id == 9 && wc.qp_num == qp->qp_num);
	CHECK(wc.status != RL_WC_SUCCESS || wc.opcode == RL_WC_BIND_MW);
	return wc.status;
}

static enum rl_wc_status
bind_2(struct bed *b, uint32_t rkey)
{
	struct rl_send_wr wr = { .wr_id = 10,
		.opcode = RL_WR_BIND_MW,
		.send_flags = RL_SEND_SIGNALED,
		.bind_mw = { b->mw, rkey, part(b) } };

	OK(rl_post_send(b->p.b, &wr, NULL));
	return pair_wait(b->p.cq).status;
}

static enum rl_wc_status
invalidate(struct rl_qp *qp, struct rl_cq *cq, uint32_t rkey)
{
	struct rl_send_wr wr = { .wr_id = 11,
		.opcode = RL_WR_LOCAL_INV,
		.send_flags = RL_SEND_SIGNALED,
		.invalidate_rkey = rkey };

	OK(rl_post_send(qp, &wr, NULL));
	return pair_wait(cq).status;
}

/* By the peer, through the key. */
static enum rl_wc_status
write_to(struct bed *b, uint32_t rkey, size_t offset, uint32_t length)
{
	struct rl_wc wc;

	memset(b->p.mr->addr, 0x5a, length);
	OK(pair_post(b->p.a, RL_WR_RDMA_WRITE, pair_sge(&b->p, 0, length),
		(uintptr_t)b->base->addr + offset, rkey, 12));
	do
		wc = pair_wait(b->p.cq);
	while (wc.wr_id != 12);
	return wc.status;
}

static void
bed_close(struct bed *b)
{
	pair_disconnect(&b->p);
	OK(rl_dealloc_mw(b->mw));
	OK(rl_dereg_mr(b->base));
	pair_close(&b->p);
}

static void
MW_02_type_1(struct bed *b)
{
	const uint32_t first = b->mw->rkey;

	CHECK(bind_1(b->p.b, b->p.cq, b->mw, part(b)) == RL_WC_SUCCESS);
	CHECK(b->mw->rkey != first);
	CHECK(write_to(b, b->mw->rkey, 0, PART) == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->base->addr)[PART - 1] == 0x5a);
	CHECK(rl_dereg_mr(b->base) == -EBUSY);
	CHECK(rl_dealloc_pd(b->p.pd) == -EBUSY);
	CHECK(write_to(b, b->mw->rkey, 1, PART) == RL_WC_REM_ACCESS_ERR);
}

/* Bound, used, invalidated, used again: refused. */
static void
MW_08_type_2(struct bed *b)
{
	const uint32_t key = b->mw->rkey ^ 1;

	CHECK(bind_2(b, key) == RL_WC_SUCCESS);
	CHECK(write_to(b, key, 0, 64) == RL_WC_SUCCESS);
	CHECK(invalidate(b->p.b, b->p.cq, key) == RL_WC_SUCCESS);
	CHECK(bind_2(b, key ^ 2) == RL_WC_SUCCESS);
	CHECK(write_to(b, key ^ 2, 0, 64) == RL_WC_SUCCESS);
	CHECK(write_to(b, key, 0, 64) == RL_WC_REM_ACCESS_ERR);
}

static void
MW_07_peer_invalidates(struct bed *b)
{
	const uint32_t key = b->mw->rkey ^ 1;
	struct rl_send_wr wr = { .wr_id = 20,
		.opcode = RL_WR_SEND_WITH_INV,
		.send_flags = RL_SEND_SIGNALED,
		.invalidate_rkey = key };
	bool told = false;

	CHECK(bind_2(b, key) == RL_WC_SUCCESS);
	OK(pair_recv(b->p.b, pair_sge(&b->p, 0, 64), 21));
	OK(rl_post_send(b->p.a, &wr, NULL));
	for (int i = 0; i < 2; i++) {
		const struct rl_wc wc = pair_wait(b->p.cq);

		CHECK(wc.status == RL_WC_SUCCESS);
		if (wc.wr_id == 21) {
			told = true;
			CHECK((wc.wc_flags & RL_WC_WITH_INV) != 0 && wc.invalidated_rkey == key);
		}
	}
	CHECK(told);
	CHECK(write_to(b, key, 0, 64) == RL_WC_REM_ACCESS_ERR);
}

/* What is another application's can be neither bound to, nor bound, nor invalidated. */
static void
MW_04_another_application(struct bed *b)
{
	const uint32_t key = b->mw->rkey ^ 1;
	struct rl_mw theirs;
	struct bed other;

	CHECK(bind_2(b, key) == RL_WC_SUCCESS);
	for (int i = 0; i < 3; i++) {
		bed_open(&other, b->socket, RL_MW_TYPE_1);
		if (i == 0) { /* our window on their region */
			CHECK(bind_1(other.p.b, other.p.cq, other.mw, part(b)) ==
				RL_WC_MW_BIND_ERR);
		} else if (i == 1) { /* their window on our region */
			theirs = *b->mw;
			theirs.type = RL_MW_TYPE_1;
			theirs.rkey = key;
			CHECK(bind_1(other.p.b, other.p.cq, &theirs, part(&other)) ==
				RL_WC_MW_BIND_ERR);
		} else {
			CHECK(invalidate(other.p.b, other.p.cq, key) == RL_WC_LOC_PROT_ERR);
		}
		bed_close(&other);
	}
	CHECK(write_to(b, key, 0, 64) == RL_WC_SUCCESS);
}

static void
refused_at_once(struct bed *b)
{
	struct rl_mw_bind bind = { .bind_info = part(b) };
	struct rl_send_wr wr = { .opcode = RL_WR_BIND_MW };
	struct rl_sge sge = pair_sge(&b->p, 0, 8);

	CHECK(rl_bind_mw(b->p.b, b->mw, &bind) == -EINVAL); /* it is of type 2 */
	CHECK(rl_post_send(b->p.b, &wr, NULL) == -EINVAL);
	wr.bind_mw.mw = b->mw;
	wr.sg_list = &sge;
	wr.num_sge = 1;
	CHECK(rl_post_send(b->p.b, &wr, NULL) == -EINVAL);
	wr.num_sge = 0;
	wr.send_flags = RL_SEND_INLINE;
	CHECK(rl_post_send(b->p.b, &wr, NULL) == -EINVAL);
}

/* They count as regions, and those of a connection that ends are gone. */
static void
charged_and_cleaned_up(struct bed *b)
{
	struct rl_context *ctx;
	struct rl_device_attr limits;

	for (int round = 0; round < 2; round++) {
		struct rl_mw *mw;
		struct rl_pd *pd;
		int n = 0, rc;

		OK(rl_open(b->socket, &ctx));
		OK(rl_query_device(ctx, &limits));
		OK(rl_alloc_pd(ctx, &pd));
		while ((rc = rl_alloc_mw(pd, RL_MW_TYPE_2, &mw)) == 0)
			n++;
		CHECK(rc == -ENOSPC && n == limits.max_mr);
		rl_close(ctx);
	}
}

int
main(int argc, char **argv)
{
	static const struct {
		void (*run)(struct bed *);
		enum rl_mw_type type;
	} cases[] = {
		{ MW_02_type_1, RL_MW_TYPE_1 },
		{ MW_08_type_2, RL_MW_TYPE_2 },
		{ MW_07_peer_invalidates, RL_MW_TYPE_2 },
		{ MW_04_another_application, RL_MW_TYPE_2 },
		{ refused_at_once, RL_MW_TYPE_2 },
		{ charged_and_cleaned_up, RL_MW_TYPE_1 },
	};
	struct bed b;

	CHECK(argc == 2);
	for (unsigned int i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bed_open(&b, argv[1], cases[i].type);
		cases[i].run(&b);
		if (i % 2 == 0)
			bed_close(&b);
		else
			pair_close(&b.p); /* with all that is in it, bound as it is */
		printf("ok %u\n", i);
	}
	puts("ok");
	return 0;
}
