/* SPDX-License-Identifier: BSD-3-Clause */
/* Work requests, completions and asynchronous events. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

#define MAX_SGE 8

static const struct word send_words[] = {
	{ "SEND", IBV_WR_SEND },
	{ "SEND_WITH_IMM", IBV_WR_SEND_WITH_IMM },
	{ "SEND_WITH_INV", IBV_WR_SEND_WITH_INV },
	{ "RDMA_WRITE", IBV_WR_RDMA_WRITE },
	{ "RDMA_WRITE_WITH_IMM", IBV_WR_RDMA_WRITE_WITH_IMM },
	{ "RDMA_READ", IBV_WR_RDMA_READ },
	{ "ATOMIC_CMP_AND_SWP", IBV_WR_ATOMIC_CMP_AND_SWP },
	{ "ATOMIC_FETCH_AND_ADD", IBV_WR_ATOMIC_FETCH_AND_ADD },
	{ NULL, 0 },
};

static const struct word flag_words[] = {
	{ "SIGNALED", IBV_SEND_SIGNALED },
	{ "FENCE", IBV_SEND_FENCE },
	{ "SOLICITED", IBV_SEND_SOLICITED },
	{ "INLINE", IBV_SEND_INLINE },
	{ NULL, 0 },
};

static const struct word status_words[] = {
	{ "SUCCESS", IBV_WC_SUCCESS },
	{ "LOC_LEN_ERR", IBV_WC_LOC_LEN_ERR },
	{ "LOC_QP_OP_ERR", IBV_WC_LOC_QP_OP_ERR },
	{ "LOC_PROT_ERR", IBV_WC_LOC_PROT_ERR },
	{ "WR_FLUSH_ERR", IBV_WC_WR_FLUSH_ERR },
	{ "MW_BIND_ERR", IBV_WC_MW_BIND_ERR },
	{ "BAD_RESP_ERR", IBV_WC_BAD_RESP_ERR },
	{ "LOC_ACCESS_ERR", IBV_WC_LOC_ACCESS_ERR },
	{ "REM_INV_REQ_ERR", IBV_WC_REM_INV_REQ_ERR },
	{ "REM_ACCESS_ERR", IBV_WC_REM_ACCESS_ERR },
	{ "REM_OP_ERR", IBV_WC_REM_OP_ERR },
	{ "RETRY_EXC_ERR", IBV_WC_RETRY_EXC_ERR },
	{ "RNR_RETRY_EXC_ERR", IBV_WC_RNR_RETRY_EXC_ERR },
	{ "REM_ABORT_ERR", IBV_WC_REM_ABORT_ERR },
	{ "FATAL_ERR", IBV_WC_FATAL_ERR },
	{ "RESP_TIMEOUT_ERR", IBV_WC_RESP_TIMEOUT_ERR },
	{ "GENERAL_ERR", IBV_WC_GENERAL_ERR },
	{ NULL, 0 },
};

static const struct word opcode_words[] = {
	{ "SEND", IBV_WC_SEND },
	{ "RDMA_WRITE", IBV_WC_RDMA_WRITE },
	{ "RDMA_READ", IBV_WC_RDMA_READ },
	{ "COMP_SWAP", IBV_WC_COMP_SWAP },
	{ "FETCH_ADD", IBV_WC_FETCH_ADD },
	{ "LOCAL_INV", IBV_WC_LOCAL_INV },
	{ "RECV", IBV_WC_RECV },
	{ "RECV_RDMA_WITH_IMM", IBV_WC_RECV_RDMA_WITH_IMM },
	{ NULL, 0 },
};

static const struct word event_words[] = {
	{ "CQ_ERR", IBV_EVENT_CQ_ERR },
	{ "QP_FATAL", IBV_EVENT_QP_FATAL },
	{ "QP_REQ_ERR", IBV_EVENT_QP_REQ_ERR },
	{ "QP_ACCESS_ERR", IBV_EVENT_QP_ACCESS_ERR },
	{ "COMM_EST", IBV_EVENT_COMM_EST },
	{ "SQ_DRAINED", IBV_EVENT_SQ_DRAINED },
	{ "PATH_MIG", IBV_EVENT_PATH_MIG },
	{ "PATH_MIG_ERR", IBV_EVENT_PATH_MIG_ERR },
	{ "DEVICE_FATAL", IBV_EVENT_DEVICE_FATAL },
	{ "PORT_ACTIVE", IBV_EVENT_PORT_ACTIVE },
	{ "PORT_ERR", IBV_EVENT_PORT_ERR },
	{ "LID_CHANGE", IBV_EVENT_LID_CHANGE },
	{ "PKEY_CHANGE", IBV_EVENT_PKEY_CHANGE },
	{ "SM_CHANGE", IBV_EVENT_SM_CHANGE },
	{ "SRQ_ERR", IBV_EVENT_SRQ_ERR },
	{ "SRQ_LIMIT_REACHED", IBV_EVENT_SRQ_LIMIT_REACHED },
	{ "QP_LAST_WQE_REACHED", IBV_EVENT_QP_LAST_WQE_REACHED },
	{ "CLIENT_REREGISTER", IBV_EVENT_CLIENT_REREGISTER },
	{ "GID_CHANGE", IBV_EVENT_GID_CHANGE },
	{ NULL, 0 },
};

/* {mr, offset, length} or {lkey, addr, length}. @return how many. */
static int
scatter(struct peer *p, json_t *wr, struct ibv_sge *sge)
{
	json_t *list = json_object_get(wr, "sg_list");
	size_t i;
	json_t *v;

	if (json_array_size(list) > MAX_SGE)
		return -EINVAL;
	json_array_foreach (list, i, v) {
		struct region *r = region_find(p, value_text(v, "mr"));
		uint64_t lkey = r == NULL ? 0 : r->mr->lkey;

		sge[i] = (struct ibv_sge){
			.addr = r != NULL ? (uintptr_t)r->mem + value_number(v, "offset", 0)
					  : value_number(v, "addr", 0),
			.length = (uint32_t)value_number(v, "length", 0),
			.lkey = (uint32_t)value_number(v, "lkey", lkey),
		};
	}
	return (int)json_array_size(list);
}

static json_t *
posted(size_t n, json_t *wr, int err)
{
	if (err == 0)
		return json_pack("{s:I, s:n}", "posted", (json_int_t)n, "refused");
	return json_pack("{s:I, s:{s:I, s:I, s:i, s:s}}", "posted", (json_int_t)n, "refused",
		"index", (json_int_t)n, "wr_id", (json_int_t)value_number(wr, "wr_id", 0), "errno",
		err, "reason", strerror(err));
}

/* Where a datagram goes. Handles stay: there are few, and the guest ends soon. */
static int
direct(struct peer *p, json_t *ud, struct ibv_send_wr *wr)
{
	static struct {
		struct ibv_ah *ah;
		struct ibv_ah_attr attr;
	} known[32];
	struct ibv_ah_attr attr;
	size_t i;

	if (pair_address(p, json_object_get(ud, "ah_attr"), &attr) != 0)
		return EINVAL;
	for (i = 0; i < sizeof(known) / sizeof(known[0]) && known[i].ah != NULL; i++) {
		if (memcmp(&known[i].attr, &attr, sizeof(attr)) == 0)
			break;
	}
	if (i == sizeof(known) / sizeof(known[0]))
		return ENOSPC;
	if (known[i].ah == NULL) {
		known[i].ah = ibv_create_ah(p->pd, &attr);
		known[i].attr = attr;
	}
	if (known[i].ah == NULL)
		return errno;
	wr->wr.ud.ah = known[i].ah;
	wr->wr.ud.remote_qpn = (uint32_t)value_number(ud, "remote_qpn", 0);
	wr->wr.ud.remote_qkey = (uint32_t)value_number(ud, "remote_qkey", 0);
	return 0;
}

static int
post_one_send(struct peer *p, struct ibv_qp *qp, json_t *v)
{
	struct ibv_sge sge[MAX_SGE];
	struct ibv_send_wr *bad;
	struct ibv_send_wr wr = {
		.wr_id = value_number(v, "wr_id", 0),
		.sg_list = sge,
		.num_sge = scatter(p, v, sge),
		.opcode = (enum ibv_wr_opcode)value_word(send_words, value_text(v, "opcode")),
		.send_flags =
			(unsigned int)value_flags(flag_words, json_object_get(v, "send_flags")),
	};
	uint64_t addr = value_number(v, "remote_addr", 0);
	uint32_t rkey = (uint32_t)value_number(v, "rkey", 0);

	if (wr.num_sge < 0)
		return EINVAL;
	if (wr.opcode == IBV_WR_ATOMIC_CMP_AND_SWP || wr.opcode == IBV_WR_ATOMIC_FETCH_AND_ADD) {
		wr.wr.atomic.remote_addr = addr;
		wr.wr.atomic.rkey = rkey;
		wr.wr.atomic.compare_add = value_number(v, "compare_add", 0);
		wr.wr.atomic.swap = value_number(v, "swap", 0);
	} else {
		wr.wr.rdma.remote_addr = addr;
		wr.wr.rdma.rkey = rkey;
	}
	if (wr.opcode == IBV_WR_SEND_WITH_INV)
		wr.invalidate_rkey = (uint32_t)value_number(v, "invalidate_rkey", 0);
	else
		wr.imm_data = htonl((uint32_t)value_number(v, "imm_data", 0));
	if (json_object_get(v, "ud") != NULL) {
		const int err = direct(p, json_object_get(v, "ud"), &wr);

		if (err != 0)
			return err;
	}
	return ibv_post_send(qp, &wr, &bad);
}

json_t *
post_send(struct peer *p, json_t *params)
{
	struct ibv_qp *qp = pair_find(p, params);
	size_t i;
	json_t *v;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	json_array_foreach (json_object_get(params, "wrs"), i, v) {
		int err = post_one_send(p, qp, v);

		if (err != 0)
			return posted(i, v, err);
	}
	return posted(json_array_size(json_object_get(params, "wrs")), NULL, 0);
}

json_t *
post_recv(struct peer *p, json_t *params)
{
	struct ibv_qp *qp = pair_find(p, params);
	size_t i;
	json_t *v;

	if (qp == NULL)
		return peer_fail(ENOENT, "qp_num");
	json_array_foreach (json_object_get(params, "wrs"), i, v) {
		struct ibv_sge sge[MAX_SGE];
		struct ibv_recv_wr *bad;
		struct ibv_recv_wr wr = {
			.wr_id = value_number(v, "wr_id", 0),
			.sg_list = sge,
			.num_sge = scatter(p, v, sge),
		};
		int err = wr.num_sge < 0 ? EINVAL : ibv_post_recv(qp, &wr, &bad);

		if (err != 0)
			return posted(i, v, err);
	}
	return posted(json_array_size(json_object_get(params, "wrs")), NULL, 0);
}

static json_t *
completion(const struct ibv_wc *wc)
{
	json_t *flags = json_array();
	json_t *result =
		json_pack("{s:I, s:s, s:I, s:I, s:o}", "wr_id", (json_int_t)wc->wr_id, "status",
			value_name(status_words, (int)wc->status), "qp_num", (json_int_t)wc->qp_num,
			"vendor_err", (json_int_t)wc->vendor_err, "wc_flags", flags);

	if (wc->status != IBV_WC_SUCCESS)
		return result;
	json_object_set_new(
		result, "opcode", json_string(value_name(opcode_words, (int)wc->opcode)));
	json_object_set_new(result, "byte_len", json_integer(wc->byte_len));
	if ((wc->wc_flags & IBV_WC_WITH_IMM) != 0) {
		json_array_append_new(flags, json_string("WITH_IMM"));
		json_object_set_new(result, "imm_data", json_integer(ntohl(wc->imm_data)));
	}
	if ((wc->wc_flags & IBV_WC_WITH_INV) != 0) {
		json_array_append_new(flags, json_string("WITH_INV"));
		json_object_set_new(
			result, "invalidated_rkey", value_json_hex(wc->invalidated_rkey));
	}
	return result;
}

static uint64_t
now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* At most `max` completions; waits up to wait_ms for `min` of them. */
json_t *
poll_cq(struct peer *p, json_t *params)
{
	struct ibv_cq *cq = queue_find(p, value_text(params, "cq"));
	size_t max = value_number(params, "max", 64), min = value_number(params, "min", 0);
	uint64_t end = now_ms() + value_number(params, "wait_ms", 0);
	json_t *list;

	if (cq == NULL)
		return peer_fail(ENOENT, "cq");
	list = json_array();
	while (json_array_size(list) < max) {
		struct ibv_wc wc;
		int n = ibv_poll_cq(cq, 1, &wc);

		if (n > 0)
			json_array_append_new(list, completion(&wc));
		else if (n < 0 || json_array_size(list) >= min || now_ms() >= end)
			break;
		else
			usleep(500);
	}
	return list;
}

json_t *
async_events(struct peer *p, json_t *params)
{
	size_t max = value_number(params, "max", 64);
	int wait_ms = (int)value_number(params, "wait_ms", 0);
	json_t *list = json_array();

	while (json_array_size(list) < max) {
		struct pollfd fd = { .fd = p->ctx->async_fd, .events = POLLIN };
		struct ibv_async_event e;
		json_t *v;

		if (poll(&fd, 1, wait_ms) <= 0 || ibv_get_async_event(p->ctx, &e) != 0)
			break;
		wait_ms = 0;
		v = json_pack("{s:s}", "event_type", value_name(event_words, (int)e.event_type));
		switch (e.event_type) {
		case IBV_EVENT_QP_FATAL:
		case IBV_EVENT_QP_REQ_ERR:
		case IBV_EVENT_QP_ACCESS_ERR:
		case IBV_EVENT_COMM_EST:
		case IBV_EVENT_SQ_DRAINED:
		case IBV_EVENT_QP_LAST_WQE_REACHED:
			json_object_set_new(v, "qp_num", json_integer(e.element.qp->qp_num));
			break;
		default:
			break;
		}
		json_array_append_new(list, v);
		ibv_ack_async_event(&e);
	}
	return list;
}
