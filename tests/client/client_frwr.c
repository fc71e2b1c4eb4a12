/* SPDX-License-Identifier: BSD-3-Clause */
/* Fast-register regions of applications, against a real dataplane: argv[1] is its socket. */
#include <errno.h>
#include <string.h>

#include "pair.h"

#define LEN  8192u
#define PART 4096u

enum { FULL = RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE | RL_ACCESS_REMOTE_READ };

struct bed {
	struct pair p;
	struct rl_mr *base; /* no remote right of its own, no windows */
	struct rl_mr *fast;
};

/* Register [offset, offset + PART) of the base, by QP b. */
static enum rl_wc_status
reg(struct bed *b, uint32_t key, int access, size_t offset, size_t length)
{
	struct rl_send_wr wr = { .wr_id = 9,
		.opcode = RL_WR_REG_MR,
		.send_flags = RL_SEND_SIGNALED,
		.reg_mr = { b->fast, key, access, b->base, (uintptr_t)b->base->addr + offset,
			length } };
	struct rl_wc wc;

	OK(rl_post_send(b->p.b, &wr, NULL));
	wc = pair_wait(b->p.cq);
	CHECK(wc.wr_id == 9);
	CHECK(wc.status != RL_WC_SUCCESS || wc.opcode == RL_WC_BIND_MW);
	return wc.status;
}

static enum rl_wc_status
invalidate(struct bed *b, struct rl_qp *qp, uint32_t rkey)
{
	struct rl_send_wr wr = { .wr_id = 11,
		.opcode = RL_WR_LOCAL_INV,
		.send_flags = RL_SEND_SIGNALED,
		.invalidate_rkey = rkey };

	OK(rl_post_send(qp, &wr, NULL));
	return pair_wait(b->p.cq).status;
}

/* By the peer, through the key. */
static enum rl_wc_status
by_peer(struct bed *b, enum rl_wr_opcode opcode, uint32_t rkey, uint64_t remote, uint32_t length)
{
	struct rl_wc wc;

	memset(b->p.mr->addr, 0x5a, length);
	OK(pair_post(b->p.a, opcode, pair_sge(&b->p, 0, length), remote, rkey, 12));
	do
		wc = pair_wait(b->p.cq);
	while (wc.wr_id != 12);
	return wc.status;
}

static enum rl_wc_status
write_to(struct bed *b, uint32_t rkey, size_t offset, uint32_t length)
{
	return by_peer(b, RL_WR_RDMA_WRITE, rkey, (uintptr_t)b->base->addr + offset, length);
}

/* FREE, VALID, used, FREE, and VALID with another key and range: the first key is dead. */
static void
registered_used_and_freed(struct bed *b)
{
	const uint32_t first = b->fast->rkey, second = rl_inc_rkey(first);

	CHECK((first ^ second) != 0 && (first >> 8) == (second >> 8));
	CHECK(reg(b, first, FULL, 0, PART) == RL_WC_SUCCESS);
	CHECK(write_to(b, first, 0, PART) == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->base->addr)[PART - 1] == 0x5a);
	CHECK(rl_dereg_mr(b->base) == -EBUSY);
	CHECK(invalidate(b, b->p.a, first) == RL_WC_SUCCESS); /* any QP of its PD may */
	CHECK(reg(b, second, FULL, PART, PART) == RL_WC_SUCCESS);
	CHECK(b->fast->rkey == second && b->fast->lkey == second);
	CHECK(write_to(b, second, PART, PART) == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->base->addr)[LEN - 1] == 0x5a);
	CHECK(write_to(b, first, 0, 64) == RL_WC_REM_ACCESS_ERR);
}

static void
freed_is_no_key(struct bed *b)
{
	const uint32_t key = b->fast->rkey;

	CHECK(reg(b, key, FULL, 0, PART) == RL_WC_SUCCESS);
	CHECK(invalidate(b, b->p.b, key) == RL_WC_SUCCESS);
	CHECK(write_to(b, key, 0, 64) == RL_WC_REM_ACCESS_ERR);
}

static void
range_and_rights_are_its_own(struct bed *b)
{
	const uint32_t key = b->fast->rkey;

	CHECK(reg(b, key, RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE, 64, PART) ==
		RL_WC_SUCCESS);
	CHECK(write_to(b, key, 64, PART) == RL_WC_SUCCESS);
	CHECK(by_peer(b, RL_WR_RDMA_READ, key, (uintptr_t)b->base->addr + 64, 8) ==
		RL_WC_REM_ACCESS_ERR);
}

static void
one_byte_beyond(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey, FULL, 64, PART) == RL_WC_SUCCESS);
	CHECK(write_to(b, b->fast->rkey, 65, PART) == RL_WC_REM_ACCESS_ERR);
}

static void
zero_based(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey, FULL | RL_ACCESS_ZERO_BASED, 128, 64) == RL_WC_SUCCESS);
	CHECK(by_peer(b, RL_WR_RDMA_WRITE, b->fast->rkey, 0, 64) == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->base->addr)[127] == 0 && ((uint8_t *)b->base->addr)[128] == 0x5a);
	CHECK(((uint8_t *)b->base->addr)[191] == 0x5a && ((uint8_t *)b->base->addr)[192] == 0);
}

/* Its L_Key: source of a WRITE and target of a READ of its own PD. */
static void
local_key(struct bed *b)
{
	struct rl_sge sge = { .addr = (uintptr_t)b->base->addr, .length = 64 };

	CHECK(reg(b, b->fast->rkey, RL_ACCESS_LOCAL_WRITE, 0, PART) == RL_WC_SUCCESS);
	sge.lkey = b->fast->lkey;
	memset(b->base->addr, 0x77, 64);
	OK(pair_post(b->p.b, RL_WR_RDMA_WRITE, sge, (uintptr_t)b->p.mr->addr, b->p.mr->rkey, 13));
	CHECK(pair_wait(b->p.cq).status == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->p.mr->addr)[63] == 0x77);
	sge.addr += 128;
	OK(pair_post(b->p.b, RL_WR_RDMA_READ, sge, (uintptr_t)b->p.mr->addr, b->p.mr->rkey, 14));
	CHECK(pair_wait(b->p.cq).status == RL_WC_SUCCESS);
	CHECK(((uint8_t *)b->base->addr)[128 + 63] == 0x77);
	CHECK(invalidate(b, b->p.b, sge.lkey) == RL_WC_SUCCESS);
	OK(pair_post(b->p.b, RL_WR_RDMA_WRITE, sge, (uintptr_t)b->p.mr->addr, b->p.mr->rkey, 15));
	CHECK(pair_wait(b->p.cq).status == RL_WC_LOC_PROT_ERR);
}

static void
peer_invalidates(struct bed *b)
{
	const uint32_t key = b->fast->rkey;
	struct rl_send_wr wr = { .wr_id = 20,
		.opcode = RL_WR_SEND_WITH_INV,
		.send_flags = RL_SEND_SIGNALED,
		.invalidate_rkey = key };
	bool told = false;

	CHECK(reg(b, key, FULL, 0, PART) == RL_WC_SUCCESS);
	OK(pair_recv(b->p.b, pair_sge(&b->p, 0, 64), 21));
	OK(rl_post_send(b->p.a, &wr, NULL));
	for (int i = 0; i < 2; i++) {
		const struct rl_wc wc = pair_wait(b->p.cq);

		CHECK(wc.status == RL_WC_SUCCESS);
		told = told || (wc.wr_id == 21 && (wc.wc_flags & RL_WC_WITH_INV) != 0 &&
				       wc.invalidated_rkey == key);
	}
	CHECK(told);
	CHECK(reg(b, rl_inc_rkey(key), FULL, 0, PART) == RL_WC_SUCCESS); /* it is FREE */
	CHECK(write_to(b, key, 0, 64) == RL_WC_REM_ACCESS_ERR);
}

/* Each ends its QP: one case for each. */
static void
not_free(struct bed *b)
{
	const uint32_t key = b->fast->rkey;

	CHECK(reg(b, key, FULL, 0, PART) == RL_WC_SUCCESS);
	CHECK(reg(b, rl_inc_rkey(key), FULL, 0, 64) == RL_WC_MW_BIND_ERR);
}

static void
free_is_not_invalidated(struct bed *b)
{
	CHECK(invalidate(b, b->p.b, b->fast->rkey) != RL_WC_SUCCESS);
}

static void
beyond_its_region(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey, FULL, PART + 1, PART) == RL_WC_MW_BIND_ERR);
}

static void
remote_write_without_local(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey, RL_ACCESS_REMOTE_WRITE, 0, PART) == RL_WC_MW_BIND_ERR);
}

static void
another_index(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey ^ 0x100, FULL, 0, PART) == RL_WC_MW_BIND_ERR);
}

static void
no_length(struct bed *b)
{
	CHECK(reg(b, b->fast->rkey, FULL, 0, 0) == RL_WC_MW_BIND_ERR);
}

static void
refused_at_once(struct bed *b)
{
	struct rl_send_wr wr = { .opcode = RL_WR_REG_MR, .reg_mr = { .of = b->base } };

	CHECK(rl_post_send(b->p.b, &wr, NULL) == -EINVAL);
	wr.reg_mr.mr = b->base; /* it was registered otherwise */
	CHECK(rl_post_send(b->p.b, &wr, NULL) == -EINVAL);
	CHECK(rl_rereg_mr(b->fast, RL_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, 0) == -EINVAL);
	CHECK(rl_dealloc_pd(b->p.pd) == -EBUSY);
}

int
main(int argc, char **argv)
{
	static void (*const cases[])(struct bed *) = { registered_used_and_freed, freed_is_no_key,
		range_and_rights_are_its_own, one_byte_beyond, zero_based, local_key,
		peer_invalidates, not_free, free_is_not_invalidated, beyond_its_region,
		remote_write_without_local, another_index, no_length, refused_at_once };
	struct bed b;

	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		pair_open(&b.p, argv[1], 64, LEN);
		pair_connect(&b.p, 16);
		OK(rl_reg_mr(b.p.pd, NULL, LEN, RL_ACCESS_LOCAL_WRITE, &b.base));
		OK(rl_alloc_mr(b.p.pd, &b.fast));
		cases[i](&b);
		pair_disconnect(&b.p);
		OK(rl_dereg_mr(b.fast));
		OK(rl_dereg_mr(b.base));
		pair_close(&b.p);
	}
	return 0;
}
