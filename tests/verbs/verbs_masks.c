/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ibv_modify_qp() takes and refuses, with EINVAL, what the kernel does: of each step and each type
 * it says which attributes are needed and which may be there, before a driver sees any.
 */
#include "ends.h"

enum { RC, UC, UD, TYPES };

#define WAY    (IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
#define PLACE  (IBV_QP_PKEY_INDEX | IBV_QP_PORT)
#define RESP   (IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER)
#define TRIES  (IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC)
#define ACCESS IBV_QP_ACCESS_FLAGS
#define KEYS   (IBV_QP_PKEY_INDEX | IBV_QP_QKEY)
#define OTHER  (IBV_QP_ALT_PATH | ACCESS)
#define AGAIN  (IBV_QP_CUR_STATE | OTHER)
#define NOTIFY IBV_QP_EN_SQD_ASYNC_NOTIFY
#define ALL    21 /* attributes */
#define RATE   (1 << 25)

/* Path migration needs an alternate path, and so a step of its own. */
static const struct {
	enum ibv_qp_state from, to;
	int needed[TYPES], may[TYPES];
} steps[] = {
	{ IBV_QPS_RESET, IBV_QPS_INIT, { PLACE | ACCESS, PLACE | ACCESS, PLACE | IBV_QP_QKEY },
		{ 0 } },
	{ IBV_QPS_INIT, IBV_QPS_INIT, { 0 },
		{ PLACE | ACCESS, PLACE | ACCESS, PLACE | IBV_QP_QKEY } },
	{ IBV_QPS_INIT, IBV_QPS_RTR, { WAY | RESP, WAY, 0 },
		{ OTHER | IBV_QP_PKEY_INDEX, OTHER | IBV_QP_PKEY_INDEX, KEYS } },
	{ IBV_QPS_RTR, IBV_QPS_RTS, { TRIES | IBV_QP_SQ_PSN, IBV_QP_SQ_PSN, IBV_QP_SQ_PSN },
		{ AGAIN | IBV_QP_MIN_RNR_TIMER, AGAIN, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ IBV_QPS_RTS, IBV_QPS_RTS, { 0 },
		{ AGAIN | IBV_QP_MIN_RNR_TIMER, AGAIN, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	{ IBV_QPS_RTS, IBV_QPS_SQD, { 0 }, { NOTIFY, NOTIFY, NOTIFY } },
	{ IBV_QPS_SQD, IBV_QPS_RTS, { 0 },
		{ AGAIN | IBV_QP_MIN_RNR_TIMER, AGAIN, IBV_QP_CUR_STATE | IBV_QP_QKEY } },
	/* UC's port the specification allows, and so does this. */
	{ IBV_QPS_SQD, IBV_QPS_SQD, { 0 },
		{ PLACE | IBV_QP_AV | TRIES | RESP | OTHER, PLACE | IBV_QP_AV | OTHER, KEYS } },
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

static struct end e[2];

static struct ibv_qp_attr
attr_to(enum ibv_qp_state from, enum ibv_qp_state to)
{
	const struct ibv_ah_attr way = {
		.is_global = 1, .port_num = 1, .grh = { .dgid = e[1].gid, .hop_limit = 64 }
	};

	return (struct ibv_qp_attr){ .qp_state = to,
		.cur_qp_state = from,
		.port_num = 1,
		.qp_access_flags = ALL_ACCESS,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = e[1].qp->qp_num,
		.max_dest_rd_atomic = 1,
		.max_rd_atomic = 1,
		.timeout = 14,
		.ah_attr = way,
		.alt_ah_attr = way,
		.alt_port_num = 1,
		.alt_timeout = 14 };
}

static int
modify(struct ibv_qp *qp, enum ibv_qp_state from, enum ibv_qp_state to, int mask)
{
	struct ibv_qp_attr a = attr_to(from, to);
	const int rc = ibv_modify_qp(qp, &a, mask);

	CHECK(rc == 0 || rc == errno);
	return rc;
}

/* There is one step on the way to each. */
static void
walk(struct ibv_qp *qp, int type, enum ibv_qp_state to)
{
	enum ibv_qp_state at = IBV_QPS_RESET;

	CHECK(modify(qp, at, IBV_QPS_RESET, IBV_QP_STATE) == 0);
	for (size_t i = 0; i < STEPS && at != to; i++) {
		if (steps[i].from != at || steps[i].to == at)
			continue;
		CHECK(modify(qp, at, steps[i].to, IBV_QP_STATE | steps[i].needed[type]) == 0);
		at = steps[i].to;
	}
	if (to == IBV_QPS_ERR)
		CHECK(modify(qp, at, to, IBV_QP_STATE) == 0);
	else
		CHECK(at == to);
}

static int
expect(struct ibv_qp *qp, int type, enum ibv_qp_state from, enum ibv_qp_state to, int mask,
	int want)
{
	int rc;

	walk(qp, type, from);
	rc = modify(qp, from, to, mask);
	if (rc == want)
		return 0;
	printf("type %d, from %d to %d, mask 0x%x: %d, not %d\n", type, from, to,
		(unsigned int)mask, rc, want);
	return 1;
}

/* @return how often it was not as the kernel has it. */
static int
each_attribute(struct ibv_qp *qp, int type, enum ibv_qp_state from, enum ibv_qp_state to,
	int needed, int may)
{
	const int least = IBV_QP_STATE | needed;
	int wrong = expect(qp, type, from, to, least, 0);

	for (int i = 1; i < ALL; i++) {
		const int bit = 1 << i;

		if (bit == IBV_QP_PATH_MIG_STATE)
			continue;
		wrong += expect(qp, type, from, to, least ^ bit, (may & bit) != 0 ? 0 : EINVAL);
	}
	return wrong + expect(qp, type, from, to, least | RATE, EINVAL);
}

/* @return the number of the step, or STEPS: there is none. */
static size_t
step_of(enum ibv_qp_state from, enum ibv_qp_state to)
{
	size_t i = 0;

	while (i < STEPS && (steps[i].from != from || steps[i].to != to))
		i++;
	return i;
}

static int
each_step(struct ibv_qp *qp, int type)
{
	static const enum ibv_qp_state all[] = { IBV_QPS_RESET, IBV_QPS_INIT, IBV_QPS_RTR,
		IBV_QPS_RTS, IBV_QPS_SQD, IBV_QPS_ERR };
	int wrong = 0;

	for (size_t f = 0; f < sizeof(all) / sizeof(all[0]); f++) {
		for (size_t t = 0; t < sizeof(all) / sizeof(all[0]); t++) {
			const enum ibv_qp_state from = all[f], to = all[t];
			const size_t i = step_of(from, to);

			if (i < STEPS)
				wrong += each_attribute(qp, type, from, to, steps[i].needed[type],
					steps[i].may[type]);
			else if (to == IBV_QPS_RESET ||
				 (to == IBV_QPS_ERR && from != IBV_QPS_RESET))
				wrong += each_attribute(qp, type, from, to, 0, 0);
			else
				wrong += expect(qp, type, from, to, IBV_QP_STATE, EINVAL);
		}
	}
	return wrong;
}

/* Who hears of WRITEs with immediate data alone wants no place for data. */
static void
a_queue_without_sges(void)
{
	struct ibv_srq_init_attr init = { .attr = { .max_wr = 2, .max_sge = 0 } };
	struct ibv_recv_wr wr = { .wr_id = 1 }, *bad;
	struct ibv_srq *srq = ibv_create_srq(e[0].pd, &init);

	CHECK(srq != NULL && init.attr.max_wr >= 2);
	CHECK(ibv_post_srq_recv(srq, &wr, &bad) == 0);
	CHECK(ibv_destroy_srq(srq) == 0);
}

int
main(void)
{
	static const enum ibv_qp_type types[] = { IBV_QPT_RC, IBV_QPT_UC, IBV_QPT_UD };
	int wrong = 0;

	ends_open(e, 7);
	for (int type = RC; type < TYPES; type++) {
		struct ibv_qp_init_attr init = { .qp_type = types[type],
			.send_cq = e[0].cq,
			.recv_cq = e[0].cq,
			.cap = { 4, 4, 1, 1, 0 } };
		struct ibv_qp *qp = ibv_create_qp(e[0].pd, &init);

		CHECK(qp != NULL);
		wrong += each_step(qp, type);
		CHECK(ibv_destroy_qp(qp) == 0);
	}
	a_queue_without_sges();
	if (wrong == 0)
		printf("as the kernel\n");
	return wrong != 0;
}
