/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows of both types, an alternate path, what ibv_query_qp() says: plain verbs. */
#include "ends.h"

#define KEY   UINT32_C(0xff)
#define BYTES 8192
#define PART  4096 /* what a window opens: from here on, so many bytes */

static struct end e[2];
static struct ibv_mr *mine, *peers;
static char *at, *peer;

/* The peer writes `len` bytes to offset `to`, by this key. */
static enum ibv_wc_status
write_by(uint32_t rkey, size_t to, uint32_t len)
{
	const struct ibv_mr key = { .rkey = rkey };
	enum ibv_wc_status status;

	memset(at, 0, BYTES);
	memset(peer, 'w', BYTES);
	status = end_run(&e[1], IBV_WR_RDMA_WRITE, peers, peer, len, &key, at + to, 1).status;
	CHECK(status != IBV_WC_SUCCESS || memcmp(at + to, peer, len) == 0);
	return status;
}

static struct ibv_wc
wait_for(struct end *of)
{
	struct ibv_wc wc;
	int n;

	while ((n = ibv_poll_cq(of->cq, 1, &wc)) == 0)
		;
	CHECK(n == 1 && wc.status == IBV_WC_SUCCESS);
	return wc;
}

static struct ibv_wc
post(struct end *of, struct ibv_send_wr *wr)
{
	struct ibv_send_wr *bad;

	wr->send_flags = IBV_SEND_SIGNALED;
	CHECK(ibv_post_send(of->qp, wr, &bad) == 0);
	return wait_for(of);
}

static const struct ibv_mw_bind_info *
part(void)
{
	static struct ibv_mw_bind_info info;

	info = (struct ibv_mw_bind_info){ .mr = mine,
		.addr = (uintptr_t)at + PART,
		.length = PART,
		.mw_access_flags = IBV_ACCESS_REMOTE_WRITE };
	return &info;
}

static void
type_1(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_1);
	struct ibv_mw_bind bind = {
		.wr_id = 7, .send_flags = IBV_SEND_SIGNALED, .bind_info = *part()
	};

	CHECK(mw != NULL && mw->pd == e[0].pd && mw->type == IBV_MW_TYPE_1);
	CHECK(ibv_bind_mw(e[0].qp, mw, &bind) == 0);
	CHECK(wait_for(&e[0]).opcode == IBV_WC_BIND_MW);
	CHECK(write_by(mw->rkey, PART, PART) == IBV_WC_SUCCESS);
	CHECK(ibv_dereg_mr(mine) == EBUSY);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

/* Only the key is the program's, which is the low byte: adapters take no more of what it says. */
static void
bind_2(struct ibv_mw *mw, uint32_t index)
{
	const uint32_t rkey = ibv_inc_rkey(mw->rkey);
	struct ibv_send_wr wr = { .opcode = IBV_WR_BIND_MW,
		.bind_mw = { mw, index | (rkey & KEY), *part() } };

	CHECK(post(&e[0], &wr).opcode == IBV_WC_BIND_MW);
	mw->rkey = rkey;
}

/* Bound by a request, ended by the peer; bound again, ended here. */
static void
type_2(void)
{
	struct ibv_mw *mw = ibv_alloc_mw(e[0].pd, IBV_MW_TYPE_2);
	struct ibv_send_wr wr = { .opcode = IBV_WR_SEND_WITH_INV };
	struct ibv_recv_wr recv = { .wr_id = 3 }, *bad;
	struct ibv_wc wc;

	CHECK(mw != NULL);
	bind_2(mw, mw->rkey & ~KEY);
	CHECK(write_by(mw->rkey, PART, PART) == IBV_WC_SUCCESS);
	CHECK(ibv_post_recv(e[0].qp, &recv, &bad) == 0);
	wr.invalidate_rkey = mw->rkey;
	post(&e[1], &wr);
	wc = wait_for(&e[0]);
	CHECK(wc.wr_id == 3 && (wc.wc_flags & IBV_WC_WITH_INV) != 0 &&
		wc.invalidated_rkey == mw->rkey);
	bind_2(mw, 0);
	CHECK(write_by(mw->rkey, PART, 1) == IBV_WC_SUCCESS);
	wr = (struct ibv_send_wr){ .opcode = IBV_WR_LOCAL_INV, .invalidate_rkey = mw->rkey };
	CHECK(post(&e[0], &wr).opcode == IBV_WC_LOCAL_INV);
	CHECK(write_by(mw->rkey, PART, 1) == IBV_WC_REM_ACCESS_ERR);
	CHECK(ibv_dealloc_mw(mw) == 0);
}

static void
alternate_path(void)
{
	struct ibv_qp_attr a = { .alt_port_num = 1,
		.alt_timeout = 13,
		.alt_ah_attr = { .is_global = 1,
			.port_num = 1,
			.grh = { .dgid = e[1].gid, .hop_limit = 9 } },
		.path_mig_state = IBV_MIG_REARM };
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	CHECK(ibv_query_qp(e[0].qp, &got, IBV_QP_PATH_MIG_STATE, &init) == 0);
	CHECK(got.path_mig_state == IBV_MIG_MIGRATED && got.alt_port_num == 0);
	CHECK(ibv_modify_qp(e[0].qp, &a, IBV_QP_ALT_PATH | IBV_QP_PATH_MIG_STATE) == 0);
	CHECK(ibv_query_qp(e[0].qp, &got, IBV_QP_ALT_PATH, &init) == 0);
	CHECK(got.path_mig_state == IBV_MIG_REARM && got.alt_port_num == 1 &&
		got.alt_timeout == 13 && got.alt_ah_attr.grh.hop_limit == 9 &&
		memcmp(&got.alt_ah_attr.grh.dgid, &e[1].gid, sizeof(e[1].gid)) == 0);
	a.alt_ah_attr.port_num = 0;
	CHECK(ibv_modify_qp(e[0].qp, &a, IBV_QP_ALT_PATH) == EINVAL);
	a.alt_ah_attr.port_num = 1;
	a.alt_port_num = 2;
	CHECK(ibv_modify_qp(e[0].qp, &a, IBV_QP_ALT_PATH) == EINVAL);
}

/* Each after a call that the dataplane refused: what it said then is not why. */
static void
no_paths(void)
{
	struct ibv_ah_attr ah = { .is_global = 1, .port_num = 2, .grh = { .dgid = e[1].gid } };
	struct ibv_srq_init_attr_ex srq = { .comp_mask = IBV_SRQ_INIT_ATTR_TYPE };
	struct ibv_qp_attr a = { .port_num = 2 };

	CHECK(ibv_dealloc_pd(e[0].pd) == EBUSY);
	CHECK(ibv_create_srq_ex(e[0].ctx, &srq) == NULL && errno == EINVAL);
	CHECK(ibv_modify_qp(e[0].qp, &a, IBV_QP_PORT) == EINVAL);
	CHECK(ibv_create_ah(e[0].pd, &ah) == NULL && errno == EINVAL);
	ah.port_num = 1;
	ah.grh.sgid_index = 99;
	CHECK(ibv_create_ah(e[0].pd, &ah) == NULL && errno == EINVAL);
	ah.grh.sgid_index = 0;
	memset(&ah.grh.dgid, 0xfd, sizeof(ah.grh.dgid));
	CHECK(ibv_create_ah(e[0].pd, &ah) == NULL && errno == EINVAL);
	ah.is_global = 0;
	CHECK(ibv_create_ah(e[0].pd, &ah) == NULL && errno == EINVAL);
}

/* Of this device's queue pair to that address: which of the port's GIDs goes with it? */
static uint8_t
own_gid_towards(const union ibv_gid *peer_gid, uint8_t own)
{
	struct ibv_qp_init_attr init = { .send_cq = e[0].cq,
		.recv_cq = e[0].cq,
		.cap = { 1, 1, 1, 1, 0 },
		.qp_type = IBV_QPT_UC };
	struct ibv_qp *qp = ibv_create_qp(e[0].pd, &init);
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1 };

	CHECK(qp != NULL);
	CHECK(ibv_modify_qp(qp, &a,
		      IBV_QP_STATE | IBV_QP_PORT | IBV_QP_PKEY_INDEX | IBV_QP_ACCESS_FLAGS) == 0);
	a.qp_state = IBV_QPS_RTR;
	a.path_mtu = IBV_MTU_1024;
	a.dest_qp_num = e[1].qp->qp_num;
	a.ah_attr = (struct ibv_ah_attr){ .is_global = 1,
		.port_num = 1,
		.grh = { .dgid = *peer_gid, .sgid_index = own, .hop_limit = 64 } };
	CHECK(ibv_modify_qp(qp, &a,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
			      IBV_QP_RQ_PSN) == 0);
	CHECK(ibv_query_qp(qp, &a, IBV_QP_AV, &init) == 0);
	CHECK(memcmp(&a.ah_attr.grh.dgid, peer_gid, sizeof(*peer_gid)) == 0);
	CHECK(ibv_destroy_qp(qp) == 0);
	return a.ah_attr.grh.sgid_index;
}

/* It is the one of the same family, whatever stands in the address. */
static void
families(void)
{
	union ibv_gid six;

	CHECK(own_gid_towards(&e[1].gid, 0) == 0);
	CHECK(ibv_query_gid(e[0].ctx, 1, 1, &six) == 0);
	six.raw[15] ^= 1;
	CHECK(own_gid_towards(&six, 1) == 1);
	six.raw[10] = 0xff; /* as in ::ffff:a.b.c.d */
	CHECK(own_gid_towards(&six, 1) == 1);
	six.raw[11] = 0xff;
	CHECK(own_gid_towards(&six, 1) == 1);
}

/* Each attribute that end_connect() gave. */
static void
all_attributes(void)
{
	struct ibv_qp_init_attr init;
	struct ibv_qp_attr got;

	CHECK(ibv_query_qp(e[0].qp, &got, IBV_QP_STATE, &init) == 0);
	CHECK(got.qp_state == IBV_QPS_RTS && got.cur_qp_state == IBV_QPS_RTS);
	CHECK(got.path_mtu == IBV_MTU_1024 && got.dest_qp_num == e[1].qp->qp_num);
	CHECK(got.rq_psn == 1000 && got.sq_psn == 1000 && got.port_num == 1);
	CHECK(got.max_rd_atomic == 4 && got.max_dest_rd_atomic == 4 && got.min_rnr_timer == 12);
	CHECK(got.timeout == END_TIMEOUT && got.retry_cnt == 7 && got.rnr_retry == 7);
	CHECK(((got.qp_access_flags ^ ALL_ACCESS) & ~(unsigned int)IBV_ACCESS_LOCAL_WRITE) == 0);
	CHECK(got.ah_attr.is_global == 1 && got.ah_attr.grh.sgid_index == 0 &&
		got.ah_attr.grh.hop_limit == 64 && got.ah_attr.port_num == 1);
	CHECK(memcmp(&got.ah_attr.grh.dgid, &e[1].gid, sizeof(e[1].gid)) == 0);
	CHECK(init.qp_type == IBV_QPT_RC && init.send_cq == e[0].cq && init.recv_cq == e[0].cq &&
		init.srq == NULL && init.sq_sig_all == 0);
	CHECK(init.cap.max_send_wr >= 64 && init.cap.max_send_sge >= 4 &&
		got.cap.max_send_wr == init.cap.max_send_wr);
}

/* As libibverbs 44 of Debian has them. */
static void
words(void)
{
	static const struct {
		enum ibv_rate rate;
		int mult;
	} rows[] = { { IBV_RATE_2_5_GBPS, 1 }, { IBV_RATE_120_GBPS, 48 }, { IBV_RATE_28_GBPS, 11 },
		{ IBV_RATE_50_GBPS, 20 }, { IBV_RATE_400_GBPS, 160 }, { IBV_RATE_600_GBPS, 240 },
		{ IBV_RATE_800_GBPS, 320 }, { IBV_RATE_1200_GBPS, 480 }, { IBV_RATE_25_GBPS, -1 } };
	struct ibv_gid_entry entry;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		CHECK(ibv_rate_to_mult(rows[i].rate) == rows[i].mult);
		CHECK(rows[i].mult < 0 || mult_to_ibv_rate(rows[i].mult) == rows[i].rate);
	}
	CHECK(ibv_query_gid_ex(e[0].ctx, 1, 0, &entry, 0) == 0);
	CHECK(ibv_query_gid_ex(e[0].ctx, 1, 99, &entry, 0) == EINVAL);
}

/* What is refused is refused with a reason: the test with ROCELANE_WHY reads it. */
static void
no_regions(void)
{
	CHECK(ibv_reg_mr(e[0].pd, at, 0, IBV_ACCESS_LOCAL_WRITE) == NULL && errno == EINVAL);
	errno = 0;
	CHECK(ibv_rereg_mr(mine, IBV_REREG_MR_CHANGE_ACCESS, NULL, NULL, 0,
		      IBV_ACCESS_REMOTE_WRITE) == IBV_REREG_MR_ERR_INPUT &&
		errno == EINVAL);
}

int
main(void)
{
	at = aligned_alloc(4096, BYTES);
	peer = aligned_alloc(4096, BYTES);
	ends_open(e, 7);
	CHECK((mine = ibv_reg_mr(
		       e[0].pd, at, BYTES, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND)) != NULL);
	CHECK((peers = ibv_reg_mr(e[1].pd, peer, BYTES, IBV_ACCESS_LOCAL_WRITE)) != NULL);
	no_regions();
	all_attributes();
	families();
	alternate_path();
	type_1();
	type_2();
	no_paths();
	words();
	CHECK(ibv_dereg_mr(mine) == 0 && ibv_dereg_mr(peers) == 0);
	printf("windows and paths\n");
	return 0;
}
