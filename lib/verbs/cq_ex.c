/* SPDX-License-Identifier: BSD-3-Clause */
/* ibv_cq_ex: one completion at a time, read member by member. */
#include <string.h>

#include "vl.h"

static int
next_poll(struct ibv_cq_ex *pub)
{
	struct vl_cq *cq = (struct vl_cq *)pub;
	const int n = rl_poll_cq(cq->rl, 1, &cq->wc);

	if (n <= 0)
		return n == 0 ? ENOENT : -n;
	pub->status = (enum ibv_wc_status)cq->wc.status;
	pub->wr_id = cq->wc.wr_id;
	return 0;
}

/* Another thread must not step on: what is read of a completion is read between these two. */
static int
start_poll(struct ibv_cq_ex *pub, struct ibv_poll_cq_attr *attr)
{
	struct vl_cq *cq = (struct vl_cq *)pub;
	int err;

	if (attr != NULL && attr->comp_mask != 0)
		return EINVAL;
	if (cq->locked)
		pthread_mutex_lock(&cq->polling);
	err = next_poll(pub);
	if (err != 0 && cq->locked) /* then there is no end_poll() */
		pthread_mutex_unlock(&cq->polling);
	return err;
}

static void
end_poll(struct ibv_cq_ex *pub)
{
	struct vl_cq *cq = (struct vl_cq *)pub;

	if (cq->locked)
		pthread_mutex_unlock(&cq->polling);
}

/* clang-format off */
#define READ(type, name, value)                          \
	static type read_##name(struct ibv_cq_ex *pub)   \
	{                                                \
		const struct vl_cq *cq = (struct vl_cq *)pub; \
		(void)cq;                                \
		return value;                            \
	}
READ(enum ibv_wc_opcode, opcode, (enum ibv_wc_opcode)cq->wc.opcode)
READ(uint32_t, vendor_err, cq->wc.vendor_err)
READ(uint32_t, byte_len, cq->wc.byte_len)
READ(__be32, imm_data, cq->wc.imm_data)
READ(uint32_t, qp_num, cq->wc.qp_num)
READ(uint32_t, src_qp, cq->wc.src_qp)
READ(unsigned int, wc_flags, cq->wc.wc_flags)
READ(uint32_t, slid, 0)
READ(uint8_t, sl, vl_wc_sl(&cq->wc))
READ(uint8_t, dlid_path_bits, 0)
READ(uint64_t, completion_ts, cq->wc.timestamp_ns)
READ(uint64_t, completion_wallclock_ns, cq->wc.timestamp_ns + cq->to_wall)
/* clang-format on */

void
vl_cq_ex_init(struct vl_cq *cq, bool locked)
{
	struct ibv_cq_ex *p = &cq->pub;

	cq->locked = locked;
	p->start_poll = start_poll;
	p->next_poll = next_poll;
	p->end_poll = end_poll;
	p->read_opcode = read_opcode;
	p->read_vendor_err = read_vendor_err;
	p->read_byte_len = read_byte_len;
	p->read_imm_data = read_imm_data;
	p->read_qp_num = read_qp_num;
	p->read_src_qp = read_src_qp;
	p->read_wc_flags = read_wc_flags;
	p->read_slid = read_slid;
	p->read_sl = read_sl;
	p->read_dlid_path_bits = read_dlid_path_bits;
	p->read_completion_ts = read_completion_ts;
	p->read_completion_wallclock_ns = read_completion_wallclock_ns;
}
