/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef READ_RESPONSE_H
#define READ_RESPONSE_H
/**
 * @file read_response.h  One READ response packet in a buffer: made here, whoever asks for it.
 *
 * Owner:   replies.c, stage_06_fast_reads.c; the worker's lcore.
 * Memory:  the caller's mbuf.
 * Depends: copy.h, local.h, migration.h, reply.h, sending.h.
 * Spec:    RESP-06; WIRE-13, WIRE-14.
 */
#include "copy.h"
#include "local.h"
#include "migration.h"
#include "reply.h"
#include "sending.h"
#include "wire_ext.h"
#include "wire_head.h"

struct read_response {
	psn_t psn;
	uint32_t msn;
	uint8_t syndrome;
	uint8_t operation; /* opcode, as RC has it */
	uint32_t len;
	const uint8_t *data;
};

/** Bytes of the AETH, which one in the middle has not. */
static ALWAYS_INLINE uint32_t
read_response_aeth(const struct read_response *r)
{
	return r->operation != OP_RC_READ_RESPONSE_MIDDLE ? WIRE_AETH_LEN : 0;
}

/** Bytes of its frame. */
static ALWAYS_INLINE uint32_t
read_response_total(const struct qp *qp, const struct read_response *r)
{
	return qp->tmpl.len + read_response_aeth(r) + ((r->len + 3) & ~3u) + WIRE_ICRC_LEN;
}

/** Has a buffer with nothing in it room for so long a frame? The template writer stores more. */
static ALWAYS_INLINE bool
read_response_fits(const struct rte_mbuf *m, uint32_t total)
{
	const uint32_t least = sizeof(((struct wire_template *)0)->bytes);

	return m->buf_len >= RTE_PKTMBUF_HEADROOM + RTE_MAX(total, least);
}

/** The headers up to the BTH. */
static ALWAYS_INLINE void
read_response_head(const struct qp *qp, uint8_t *frame, const struct read_response *r)
{
	const uint8_t opcode = wire_opcode_on(qp->resp.transport, r->operation), pad = -r->len & 3;
	const uint16_t after = (uint16_t)(read_response_aeth(r) + r->len + pad);
	const struct wire_template *t = &qp->tmpl;
	struct wire_head head;

	if (UNLIKELY(!wire_head_fits(t))) {
		wire_template_write(t, frame, opcode, migreq_of(qp), pad, r->psn, after);
		return;
	}
	wire_head_init(&head);
	wire_head_write(
		&head, t, frame, wire_head_what(opcode, migreq_of(qp), pad, after), false, r->psn);
}

/** Its line in the recorder. */
void pipeline_trace_read(struct worker *w, struct qp *qp, const struct read_response *r);

/**
 * Make and send it. Its ICRC is still missing: pipeline_requests_seal().
 * @param m new, with room for it. @param total read_response_total().
 */
static ALWAYS_INLINE void
read_response_send(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf *m,
	const struct read_response *r, uint32_t total)
{
	const uint32_t pad = -r->len & 3;
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *), *payload;

	read_response_head(qp, frame, r);
	payload = wire_ext_write(frame + qp->tmpl.len,
		(opflags_t){ read_response_aeth(r) != 0 ? OPF_AETH : 0 },
		&(struct wire_fields){ .aeth = { r->syndrome, r->msn } });
	if (UNLIKELY(port >= w->wires_n) && local_lends(w, r->len)) {
		local_lend(w, m, frame, (uint32_t)(payload - frame), r->data, r->len);
	} else if (r->len < COPY_SEAL_MIN || UNLIKELY(port >= w->wires_n) ||
		   !icrc_copy_seal(&(struct icrc_frame){ frame, total, qp->tmpl.l3_off,
					   qp->tmpl.ipv6 != 0 },
			   (uint32_t)(payload - frame), r->data, r->len)) {
		memset(payload + r->len, 0, pad);
		if (LIKELY(r->len != 0))
			payload_copy(payload, r->data, r->len);
		if (LIKELY(port < w->wires_n))
			request_unsealed(w, frame, qp->tmpl.l3_off, qp->tmpl.ipv6 != 0, total);
	}
	count(w, port, qp, STAT_read_responses_sent);
	if (traced(w, qp))
		pipeline_trace_read(w, qp, r);
	send_frame(w, port, qp, m, total);
}

#endif
