/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions that change in place, against a real dataplane: argv[1] is its socket. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <sys/mman.h>

#include "pair.h"

#define LEN    8192u
#define RIGHTS (RL_ACCESS_LOCAL_WRITE | RL_ACCESS_REMOTE_WRITE)

struct bed {
	struct pair p;
	uint8_t *mem; /* two halves of LEN */
	struct rl_mr *mr;
};

static void
bed_open(struct bed *b, const char *socket)
{
	void *mem;

	pair_open(&b->p, socket, 64, LEN);
	pair_connect(&b->p, 16);
	OK(rl_mem_alloc(b->p.ctx, 2 * LEN, &mem));
	b->mem = mem;
	OK(rl_reg_mr(b->p.pd, mem, LEN, RIGHTS, &b->mr));
}

static void
bed_close(struct bed *b)
{
	pair_disconnect(&b->p);
	OK(rl_dereg_mr(b->mr));
	OK(rl_mem_free(b->p.ctx, b->mem));
	pair_close(&b->p);
}

/* By the peer. What is refused fails the queue pairs: they are connected anew. */
static enum rl_wc_status
write_to(struct bed *b, const uint8_t *at, uint32_t length)
{
	struct rl_wc wc;

	memset(b->p.mr->addr, 0x5a, length);
	OK(pair_post(b->p.a, RL_WR_RDMA_WRITE, pair_sge(&b->p, 0, length), (uintptr_t)at,
		b->mr->rkey, 12));
	do
		wc = pair_wait(b->p.cq);
	while (wc.wr_id != 12);
	if (wc.status != RL_WC_SUCCESS) {
		pair_disconnect(&b->p);
		pair_connect(&b->p, 16);
	}
	return wc.status;
}

static void
access_changes(struct bed *b)
{
	const uint32_t key = b->mr->rkey;

	CHECK(write_to(b, b->mem, LEN) == RL_WC_SUCCESS);
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RL_ACCESS_REMOTE_READ));
	CHECK(b->mr->rkey == key && b->mr->lkey == key);
	CHECK(write_to(b, b->mem, 64) == RL_WC_REM_ACCESS_ERR);
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0, RIGHTS));
	CHECK(write_to(b, b->mem, 64) == RL_WC_SUCCESS);
}

static void
translation_changes(struct bed *b)
{
	uint8_t *other = b->mem + LEN;

	memset(b->mem, 0, 2 * LEN);
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_TRANSLATION, NULL, other, LEN / 2, 0));
	CHECK(b->mr->addr == other && b->mr->length == LEN / 2);
	CHECK(write_to(b, other, LEN / 2) == RL_WC_SUCCESS);
	CHECK(other[0] == 0x5a && other[LEN / 2 - 1] == 0x5a && other[LEN / 2] == 0);
	CHECK(b->mem[0] == 0);
	CHECK(write_to(b, other + 1, LEN / 2) == RL_WC_REM_ACCESS_ERR);
	CHECK(write_to(b, b->mem, 64) == RL_WC_REM_ACCESS_ERR);
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_TRANSLATION, NULL, b->mem, LEN, 0));
}

static void
pd_changes(struct bed *b)
{
	struct rl_pd *pd;

	OK(rl_alloc_pd(b->p.ctx, &pd));
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_PD, pd, NULL, 0, 0));
	CHECK(b->mr->pd == pd && rl_dealloc_pd(pd) == -EBUSY);
	CHECK(write_to(b, b->mem, 64) == RL_WC_REM_ACCESS_ERR);
	OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_PD, b->p.pd, NULL, 0, 0));
	CHECK(write_to(b, b->mem, 64) == RL_WC_SUCCESS);
	OK(rl_dealloc_pd(pd));
}

/* Refused: as before. */
static void
refused(struct bed *b)
{
	const int move = RL_REREG_MR_CHANGE_TRANSLATION, rights = RL_REREG_MR_CHANGE_ACCESS;

	CHECK(rl_rereg_mr(b->mr, 0, NULL, NULL, 0, 0) == -EINVAL);
	CHECK(rl_rereg_mr(b->mr, 8, NULL, NULL, 0, 0) == -EINVAL);
	CHECK(rl_rereg_mr(b->mr, move, NULL, b->mem, 2 * LEN + 1, 0) == -EINVAL);
	CHECK(rl_rereg_mr(b->mr, move, NULL, b, 64, 0) == -EINVAL);
	CHECK(rl_rereg_mr(b->mr, rights, NULL, NULL, 0, RL_ACCESS_REMOTE_WRITE) == -EINVAL);
	CHECK(rl_rereg_mr(b->p.mr, move, NULL, b->mem, 64, 0) == -EINVAL);
	CHECK(rl_rereg_mr_fd(b->mr, move, NULL, 0, 0, b->mem, 64, 0) == -EINVAL);
	CHECK(b->mr->addr == b->mem && b->mr->length == LEN);
	CHECK(write_to(b, b->mem, LEN) == RL_WC_SUCCESS);
}

/* MW-10: not under a window that is bound. */
static void
MW_10_bound(struct bed *b)
{
	struct rl_mw_bind bind = { .wr_id = 9,
		.send_flags = RL_SEND_SIGNALED,
		.bind_info = { .addr = (uintptr_t)b->mem,
			.length = 64,
			.mw_access_flags = RL_ACCESS_REMOTE_WRITE } };
	const int rights = RL_REREG_MR_CHANGE_ACCESS;
	struct rl_mw *mw;

	OK(rl_rereg_mr(b->mr, rights, NULL, NULL, 0, RIGHTS | RL_ACCESS_MW_BIND));
	OK(rl_alloc_mw(b->p.pd, RL_MW_TYPE_1, &mw));
	bind.bind_info.mr = b->mr;
	OK(rl_bind_mw(b->p.b, mw, &bind));
	CHECK(pair_wait(b->p.cq).status == RL_WC_SUCCESS);
	CHECK(rl_rereg_mr(b->mr, rights, NULL, NULL, 0, RIGHTS) == -EBUSY);
	CHECK(write_to(b, b->mem, 64) == RL_WC_SUCCESS);
	OK(rl_dealloc_mw(mw));
	OK(rl_rereg_mr(b->mr, rights, NULL, NULL, 0, RIGHTS));
}

/* What a peer writes to all the time: each WRITE is done or refused, none goes astray. */
static void
while_it_is_used(struct bed *b)
{
	const int move = RL_REREG_MR_CHANGE_TRANSLATION;
	unsigned int done = 0;

	for (int i = 0; i < 16; i++) {
		uint8_t *at = b->mem + (i % 2 == 0 ? LEN : 0);

		OK(pair_post(b->p.a, RL_WR_RDMA_WRITE, pair_sge(&b->p, 0, LEN),
			(uintptr_t)b->mr->addr, b->mr->rkey, 12));
		OK(rl_rereg_mr(b->mr, move, NULL, at, LEN, 0));
		if (pair_wait(b->p.cq).status == RL_WC_SUCCESS) {
			done++;
			continue;
		}
		pair_disconnect(&b->p);
		pair_connect(&b->p, 16);
	}
	CHECK(write_to(b, b->mr->addr, LEN) == RL_WC_SUCCESS);
	printf("%u of 16 WRITEs were done\n", done);
}

static uint8_t *
memfd_map(int *fd)
{
	uint8_t *at;

	*fd = memfd_create("own", MFD_ALLOW_SEALING);
	CHECK(*fd >= 0);
	OK(ftruncate(*fd, 2 * LEN));
	at = mmap(NULL, 2 * LEN, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
	CHECK(at != MAP_FAILED);
	memset(at, 0, 2 * LEN);
	OK(fcntl(*fd, F_ADD_SEALS, F_SEAL_SHRINK));
	return at;
}

/* From one memfd of the application's own to another, not from its beginning, and with rights. */
static void
moves_to_another_memfd(struct bed *b)
{
	const int move = RL_REREG_MR_CHANGE_TRANSLATION, rights = RL_REREG_MR_CHANGE_ACCESS;
	struct rl_mr *const given = b->mr;
	uint8_t *at[2];
	uint32_t key;
	int fd[2];

	for (int i = 0; i < 2; i++)
		at[i] = memfd_map(&fd[i]);
	OK(rl_reg_mr_fd(b->p.pd, fd[0], 0, at[0], LEN, RIGHTS, &b->mr));
	key = b->mr->rkey;
	CHECK(write_to(b, at[0], LEN) == RL_WC_SUCCESS && at[0][LEN - 1] == 0x5a);
	memset(at[0], 0, LEN);
	OK(rl_rereg_mr_fd(b->mr, move, NULL, fd[1], 4096, at[1] + 4096, LEN, 0));
	CHECK(b->mr->addr == at[1] + 4096 && b->mr->length == LEN && b->mr->rkey == key);
	CHECK(write_to(b, at[1] + 4096, LEN) == RL_WC_SUCCESS);
	CHECK(at[1][4095] == 0 && at[1][4096] == 0x5a && at[1][4095 + LEN] == 0x5a);
	CHECK(at[1][4096 + LEN] == 0 && at[0][0] == 0 && at[0][4096] == 0);
	CHECK(write_to(b, at[0], 64) == RL_WC_REM_ACCESS_ERR);
	OK(rl_rereg_mr_fd(b->mr, move | rights, NULL, fd[1], 0, at[1], LEN, RL_ACCESS_REMOTE_READ));
	CHECK(write_to(b, at[1], 64) == RL_WC_REM_ACCESS_ERR && at[1][0] == 0);
	OK(rl_dereg_mr(b->mr));
	b->mr = given;
	for (int i = 0; i < 2; i++) {
		munmap(at[i], 2 * LEN);
		close(fd[i]);
	}
}

/* One region of two memfds, made so and moved there; what cannot be one leaves all as it was. */
static void
of_pieces(struct bed *b)
{
	const int move = RL_REREG_MR_CHANGE_TRANSLATION;
	struct rl_mr *const given = b->mr, *none, *keeps;
	struct rl_mr_piece p[RL_MR_PIECES + 1];
	uint8_t *at[2], *iova = (uint8_t *)0x10000000;
	uint32_t key;
	int fd[2];

	for (int i = 0; i < 2; i++)
		at[i] = memfd_map(&fd[i]);
	p[0] = (struct rl_mr_piece){ .fd = fd[1], .offset = 4096, .length = 4096 };
	p[1] = (struct rl_mr_piece){ .fd = fd[0], .offset = 0, .length = 8192 };
	OK(rl_reg_mr_pieces(b->p.pd, p, 2, 100, iova, LEN, RIGHTS, &b->mr));
	CHECK(write_to(b, iova, LEN) == RL_WC_SUCCESS);
	CHECK(at[1][4195] == 0 && at[1][4196] == 0x5a && at[1][8191] == 0x5a && at[1][8192] == 0);
	CHECK(at[0][0] == 0x5a && at[0][4195] == 0x5a && at[0][4196] == 0);
	CHECK(write_to(b, iova + LEN - 63, 64) == RL_WC_REM_ACCESS_ERR);
	/* To other pieces and back to one. */
	memset(at[0], 0, 2 * LEN);
	key = b->mr->rkey;
	p[0].offset = 0;
	p[1].offset = 8192;
	OK(rl_rereg_mr_pieces(b->mr, move, NULL, p, 2, 0, iova, LEN, 0));
	CHECK(b->mr->rkey == key && write_to(b, iova + 4000, 4096) == RL_WC_SUCCESS);
	CHECK(at[1][3999] == 0 && at[1][4095] == 0x5a && at[0][8192] == 0x5a);
	CHECK(at[0][8192 + 3999] == 0x5a && at[0][8192 + 4000] == 0);
	/* A memfd without a region would be given back, and could not be had again. */
	OK(rl_reg_mr_fd(b->p.pd, fd[1], 0, iova, 1, RIGHTS, &keeps));
	OK(rl_rereg_mr_fd(b->mr, move, NULL, fd[0], 4096, iova, 4096, 0));
	CHECK(write_to(b, iova, 64) == RL_WC_SUCCESS && at[0][4096] == 0x5a);

	for (int i = 0; i < 200; i++) {
		CHECK(rl_reg_mr_pieces(b->p.pd, p, 0, 0, iova, 1, RIGHTS, &none) == -EINVAL);
		CHECK(rl_reg_mr_pieces(b->p.pd, p, RL_MR_PIECES + 1, 0, iova, 1, RIGHTS, &none) ==
			-EINVAL);
		p[1].offset = 2 * LEN;
		CHECK(rl_reg_mr_pieces(b->p.pd, p, 2, 0, iova, 1, RIGHTS, &none) == -EINVAL);
		p[1].offset = 4097;
		CHECK(rl_reg_mr_pieces(b->p.pd, p, 2, 0, iova, 1, RIGHTS, &none) == -EINVAL);
		p[1].offset = 8192;
		CHECK(rl_reg_mr_pieces(b->p.pd, p, 2, 12288, iova, 1, RIGHTS, &none) == -EINVAL);
		CHECK(rl_rereg_mr_pieces(b->mr, move, NULL, p, 2, 0, iova, 12289, 0) == -EINVAL);
		CHECK(write_to(b, iova, 64) == RL_WC_SUCCESS);
	}
	OK(rl_dereg_mr(keeps));
	OK(rl_dereg_mr(b->mr));
	b->mr = given;
	for (int i = 0; i < 2; i++) {
		munmap(at[i], 2 * LEN);
		close(fd[i]);
	}
}

/* A peer may know a region by any address of 64 bits but the last one. */
static void
any_address(struct bed *b)
{
	const int move = RL_REREG_MR_CHANGE_TRANSLATION;
	static const uint64_t iova[] = { 0, UINT64_C(1) << 63, (UINT64_C(1) << 63) - LEN / 2,
		UINT64_MAX - LEN };
	struct rl_mr *const given = b->mr;
	uint8_t *at, *there;
	int fd;

	for (size_t i = 0; i < sizeof(iova) / sizeof(iova[0]); i++) {
		there = (uint8_t *)(uintptr_t)iova[i];
		at = memfd_map(&fd);
		OK(rl_reg_mr_fd(b->p.pd, fd, 0, there, LEN, RIGHTS, &b->mr));
		CHECK(write_to(b, there, LEN) == RL_WC_SUCCESS && at[LEN - 1] == 0x5a);
		OK(rl_rereg_mr_fd(b->mr, move, NULL, fd, 0, at, LEN, 0));
		OK(rl_rereg_mr_fd(b->mr, move, NULL, fd, 0, there, LEN, 0));
		memset(at, 0, LEN);
		CHECK(write_to(b, there + 1, LEN - 1) == RL_WC_SUCCESS && at[0] == 0);
		CHECK(at[LEN - 1] == 0x5a);
		CHECK(rl_rereg_mr_fd(b->mr, move, NULL, fd, 0, (void *)-(uintptr_t)LEN, LEN, 0) ==
			-EINVAL);
		CHECK(strstr(rl_last_error(), "64 bits") != NULL);
		CHECK(rl_rereg_mr_fd(b->mr, move, NULL, fd, 0, there, SIZE_MAX, 0) == -EINVAL);
		CHECK(strstr(rl_last_error(), "-1") == NULL);
		OK(rl_dereg_mr(b->mr));
		munmap(at, 2 * LEN);
		close(fd);
	}
	b->mr = given;
}

/* A number that is no descriptor is an error of this call alone. */
static void
closed_already(struct bed *b)
{
	struct rl_mr *mr;
	uint8_t *at;
	int fd;

	at = memfd_map(&fd);
	close(fd);
	CHECK(rl_reg_mr_fd(b->p.pd, fd, 0, at, LEN, RIGHTS, &mr) == -EBADF && mr == NULL);
	CHECK(strstr(rl_last_error(), "descriptor") != NULL);
	CHECK(rl_reg_mr_once(b->p.pd, fd, 0, at, LEN, RIGHTS, &mr) == -EBADF);
	munmap(at, 2 * LEN);
	at = memfd_map(&fd);
	OK(rl_reg_mr_fd(b->p.pd, fd, 0, at, LEN, RIGHTS, &mr));
	OK(rl_dereg_mr(mr));
	munmap(at, 2 * LEN);
	close(fd);
}

/* Whatever it was charged is given back: a limit is met neither early nor late. */
static void
charged(struct bed *b)
{
	for (int i = 0; i < 60; i++)
		OK(rl_rereg_mr(b->mr, RL_REREG_MR_CHANGE_TRANSLATION, NULL, b->mem,
			i % 2 == 0 ? 2 * LEN : LEN, 0));
}

int
main(int argc, char **argv)
{
	static void (*const cases[])(struct bed *) = { access_changes, translation_changes,
		pd_changes, refused, MW_10_bound, while_it_is_used, moves_to_another_memfd,
		of_pieces, any_address, closed_already, charged };
	struct bed b;

	CHECK(argc == 2);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bed_open(&b, argv[1]);
		cases[i](&b);
		bed_close(&b);
	}
	return 0;
}
