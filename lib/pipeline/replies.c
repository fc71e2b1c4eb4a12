/* SPDX-License-Identifier: BSD-3-Clause */
/* Packets made from a QP's template: ATOMIC ACK, READ responses, CNP. ACKs are in acks.c. */
#include <errno.h>

#include "count.h"
#include "migration.h"
#include "tx_prio.h"
#include "read_response.h"
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

void
pipeline_trace_read(struct worker *w, struct qp *qp, const struct read_response *r)
{
	const struct resp_answer a = { .psn = r->psn, .msn = r->msn, .syndrome = r->syndrome };

	pipeline_trace_reply(
		w, qp, &a, TRACE_read_resp, wire_opcode_on(qp->resp.transport, r->operation));
}

int
pipeline_reply_read(struct worker *w, struct qp *qp, const struct resp_answer *a,
	const uint8_t *data, uint32_t len)
{
	const struct read_response r = { .psn = a->psn,
		.msn = a->msn,
		.syndrome = a->syndrome,
		.operation = resp_answer_opcode(a, len == a->len_left),
		.len = len,
		.data = data };
	const uint32_t total = read_response_total(qp, &r);
	uint8_t port = out_port(w, qp);
	struct rte_mbuf *m;

	if (UNLIKELY(port == PORT_NONE))
		return -ENETUNREACH;
	m = rte_mbuf_raw_alloc(w->conf.ports[port].pool);
	if (UNLIKELY(m == NULL))
		return -EAGAIN;
	if (UNLIKELY(!read_response_fits(m, total))) {
		rte_mbuf_raw_free(m);
		count(w, port, qp, STAT_tx_error_drop);
		return -EMSGSIZE;
	}
	mbuf_renew(m);
	read_response_send(w, qp, port, m, &r, total);
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
	port = prio_cnp(w, qp, port);
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
