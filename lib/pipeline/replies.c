/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets made from a QP's template: ATOMIC ACK, READ responses, CNP. ACKs are in acks.c. */
#include <errno.h>

#include "count.h"
#include "migration.h"
#include "reply.h"
#include "sending.h"
#include "wire_ext.h"

uint8_t
pipeline_no_port(struct worker *w, struct qp *qp, uint8_t port)
{
	if (port != PORT_NONE) {
		count(w, port, qp, STAT_tx_no_neighbor);
		return PORT_NONE;
	}
	stats_inc(&w->stats, STAT_tx_error_drop);
	qp_count(w, qp, STAT_tx_error_drop, 1);
	return PORT_NONE;
}

void
pipeline_trace_reply(struct worker *w, struct qp *qp, const struct resp_answer *a,
	enum trace_kind kind, uint8_t opcode)
{
	trace_put(w->trace, &(struct trace_entry){ .time_ns = w->now,
				    .qpn = qp->qpn,
				    .psn = a->psn.v,
				    .msn = a->msn,
				    .kind = (uint8_t)kind,
				    .opcode = opcode,
				    .syndrome = a->syndrome,
				    .fault = VERDICT_NO_FAULT,
				    .state = qp_state_of(qp) });
}

int
pipeline_reply_atomic(struct worker *w, struct qp *qp, const struct resp_answer *a)
{
	const struct wire_template *t = &qp->tmpl;
	const uint32_t after = WIRE_AETH_LEN + WIRE_ATOMICACK_LEN;
	const uint8_t opcode = wire_opcode_on(qp->resp.transport, OP_RC_ATOMIC_ACKNOWLEDGE);
	uint8_t port = out_port(w, qp);
	uint32_t len = t->len + after + WIRE_ICRC_LEN;
	struct rte_mbuf *m;
	uint8_t *frame;

	if (UNLIKELY(port == PORT_NONE))
		return 0;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL))
		return -EAGAIN;
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(t, frame, opcode, migreq_of(qp), 0, a->psn, (uint16_t)after);
	wire_ext_write(frame + t->len, (opflags_t){ OPF_AETH | OPF_ATOMICACKETH },
		&(struct wire_fields){ .aeth = { a->syndrome, a->msn }, .atomicack = a->va });
	icrc_seal(w->crc, frame, t->l3_off, t->ipv6 != 0, len);
	if (traced(w, qp))
		pipeline_trace_reply(w, qp, a, TRACE_atomic_ack, opcode);
	send_frame(w, port, qp, m, len);
	return 0;
}

/** Its ICRC is still missing: pipeline_requests_seal(). */
int
pipeline_reply_read(struct worker *w, struct qp *qp, const struct resp_answer *a,
	const uint8_t *data, uint32_t len)
{
	const struct wire_template *t = &qp->tmpl;
	const uint8_t operation = resp_answer_opcode(a, len == a->len_left);
	const uint8_t opcode = wire_opcode_on(qp->resp.transport, operation);
	uint32_t aeth = operation != OP_RC_READ_RESPONSE_MIDDLE ? WIRE_AETH_LEN : 0;
	uint32_t pad = -len & 3;
	uint32_t total = t->len + aeth + len + pad + WIRE_ICRC_LEN;
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;
	uint8_t *frame, *payload;

	if (UNLIKELY(port == PORT_NONE))
		return -ENETUNREACH;
	m = rte_mbuf_raw_alloc(w->conf.ports[port].pool);
	if (UNLIKELY(m == NULL))
		return -EAGAIN;
	mbuf_renew(m);
	m->data_len = 0; /* tailroom counts from there */
	/* The template writer stores whole vectors. */
	if (UNLIKELY(rte_pktmbuf_tailroom(m) < total ||
		     rte_pktmbuf_tailroom(m) < sizeof(t->bytes))) {
		rte_pktmbuf_free(m);
		count(w, port, qp, STAT_tx_error_drop);
		return -EMSGSIZE;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	wire_template_write(t, frame, opcode, migreq_of(qp), (uint8_t)pad, a->psn,
		(uint16_t)(aeth + len + pad));
	payload = wire_ext_write(frame + t->len, (opflags_t){ aeth != 0 ? OPF_AETH : 0 },
		&(struct wire_fields){ .aeth = { a->syndrome, a->msn } });
	memset(payload + len, 0, pad);
	if (LIKELY(len != 0))
		mem_copy(payload, data, len);
	if (LIKELY(port < w->ports_n)) /* else local.h */
		request_unsealed(w, frame, t->l3_off, t->ipv6 != 0, total);
	count(w, port, qp, STAT_read_responses_sent);
	if (traced(w, qp))
		pipeline_trace_reply(w, qp, a, TRACE_read_resp, opcode);
	send_frame(w, port, qp, m, total);
	return 0;
}

/** CC-01. A small reply has room for it: it is no longer than an ATOMIC ACK and eight bytes. */
void
pipeline_reply_cnp(struct worker *w, struct qp *qp)
{
	const struct wire_template *t = &qp->tmpl;
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;
	uint8_t *frame;
	uint32_t len;

	if (UNLIKELY(port == PORT_NONE))
		return;
	m = small_mbuf(w, port);
	if (UNLIKELY(m == NULL)) {
		count(w, port, qp, STAT_tx_no_mbuf);
		return;
	}
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	len = wire_cnp_write(t, frame, &qp->cnp);
	icrc_seal(w->crc, frame, t->l3_off, t->ipv6 != 0, len);
	count(w, port, qp, STAT_np_cnp_sent);
	if (traced(w, qp))
		pipeline_trace_reply(w, qp, &(struct resp_answer){ 0 }, TRACE_cnp, OP_CNP);
	send_frame(w, port, qp, m, len);
}
