/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 10, fast path: SENDs and RDMA WRITEs, and READs that one packet answers, that are sent for
 * the first time while nothing holds them up. What it leaves goes to requester_next() and
 * pipeline_request_send(), which would make the same packets. Datagrams have a path of their own:
 * stage_10_fast_ud.c.
 */
#include "count.h"
#include "fast_frame.h"
#include "local.h"
#include "mem_reach.h"
#include "reply.h"
#include "sending.h"
#include "wire_ext.h"
#include "wire_head.h"

/**
 * Headers.
 * @param ipv4 see frame_head(). @param service the high bits of the QP's opcodes. @param imms there
 * may be an immediate.
 * @return where the payload goes.
 */
static ALWAYS_INLINE uint8_t *
headers_write(const struct qp *qp, const bool ipv4, uint8_t service, const bool imms,
	struct wire_head *head, const struct requester_wr *wr, const struct requester_start *s,
	uint8_t *frame)
{
	const uint8_t imm = imms ? wr->opcode & REQUESTER_WHAT_IMM : 0;
	const bool write = wr->opcode - imm == WR_RDMA_WRITE;
	const uint32_t ext = (write ? WIRE_RETH_LEN : 0) + imm * WIRE_IMM_LEN, pad = -wr->len & 3;

	frame = frame_head(head, &qp->tmpl, ipv4, frame,
		wire_head_what(service | (write ? OP_RC_WRITE_ONLY : OP_RC_SEND_ONLY) | imm,
			s->flags, (uint8_t)pad, (uint16_t)(ext + wr->len + pad)),
		s);
	if (write)
		wire_reth_write(frame, wr->remote_addr, wr->rkey, wr->len);
	frame += ext;
	if (imm != 0)
		be32_store(frame - WIRE_IMM_LEN, wr->imm);
	return frame;
}
_Static_assert(OP_RC_WRITE_ONLY_IMM == (OP_RC_WRITE_ONLY | REQUESTER_WHAT_IMM) &&
		       OP_RC_SEND_ONLY_IMM == (OP_RC_SEND_ONLY | REQUESTER_WHAT_IMM),
	"the lowest bit is the immediate's in packets, too");

/** Payload and ICRC. @return false: the frame is still as it was, but for its payload. */
static __attribute__((noinline)) bool
fill_long(struct rte_mbuf *m, const struct wire_template *t, uint8_t *frame, const uint8_t *payload,
	const uint8_t *from, uint32_t len)
{
	const uint32_t at = (uint32_t)(payload - frame), pad = -len & 3;
	const struct icrc_frame f = { frame, at + len + pad + WIRE_ICRC_LEN, t->l3_off,
		t->ipv6 != 0 };

	if (!icrc_copy_seal(&f, at, from, len)) /* a pad is one of its reasons */
		return false;
	mbuf_len_set(m, f.len);
	return true;
}

/** Of a local frame: its payload stays where it is. */
static __attribute__((noinline)) void
lend_long(struct worker *w, struct rte_mbuf *m, uint8_t *frame, const uint8_t *payload,
	const uint8_t *from, uint32_t len)
{
	const uint32_t at = (uint32_t)(payload - frame);

	local_lend(w, m, frame, at, from, len);
	mbuf_len_set(m, at + len + (-len & 3) + WIRE_ICRC_LEN);
}

/** What a loop knows of its frames. */
struct frames_are {
	bool ipv4;  /* see frame_head() */
	bool longs; /* payloads may be long */
	bool seals; /* they have an ICRC; else local.h */
	bool lends; /* their payloads may stay where they are */
};

/** Payload, pad and ICRC of a frame, whose headers are written. */
static ALWAYS_INLINE void
fill(struct worker *w, const struct qp *qp, const struct frames_are are, struct rte_mbuf *m,
	uint8_t *frame, uint8_t *payload, const uint8_t *from, uint32_t len)
{
	if (are.longs && len >= COPY_SEAL_MIN && are.seals &&
		fill_long(m, &qp->tmpl, frame, payload, from, len))
		return;
	if (!are.seals && are.lends && local_lends(w, len)) {
		lend_long(w, m, frame, payload, from, len);
		return;
	}
	payload = frame_end(m, frame, payload, from, len);
	if (are.seals)
		frame_unsealed(w, &qp->tmpl, are.ipv4, frame, (uint32_t)(payload - frame));
}

/** Has the request several SGEs, and no bytes of its own? */
static ALWAYS_INLINE bool
has_pieces(const struct requester_wr *wr)
{
	return wr->num_sge > 1 && (wr->flags & SEND_INLINE) == 0;
}

/** The payload of such a request. @return false: a key is bad; the full path says which. */
static __attribute__((noinline)) bool
pieces_gather(const struct worker *w, const struct qp *qp, uint32_t position, uint8_t *payload)
{
	const struct requester_wr *wr = requester_slot(&qp->req, position);

	return mem_gather(w->mem, request_sges(qp, position), wr->num_sge, qp->pd, 0, payload,
		       wr->len) == MEM_OK;
}

/** Kinds of requests_make(), which constants sort out. */
enum {
	MAKE_PLAIN = BIT32(0), /* of an RC QP whose path is not local */
	MAKE_IPV4 = BIT32(1),  /* the path is IPv4 without a tag */
	MAKE_LONG = BIT32(2),  /* payloads may be long */
	MAKE_IMM = BIT32(3),   /* there may be an immediate */
	MAKE_SGES = BIT32(4),  /* there may be several SGEs */
	MAKE_RARE = MAKE_LONG | MAKE_IMM | MAKE_SGES,
};

static ALWAYS_INLINE uint32_t
requests_make(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n,
	const uint32_t kind)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	struct rte_mbuf **out = q->m + q->tail, **in = m + *n;
	const bool plain = (kind & MAKE_PLAIN) != 0;
	const bool imms = (kind & MAKE_IMM) != 0, sges = (kind & MAKE_SGES) != 0;
	const bool ipv4 = (kind & MAKE_IPV4) != 0;
	const uint8_t service = plain ? 0 : wire_opcode_on(r->transport, 0);
	const struct frames_are are = { ipv4, (kind & MAKE_LONG) != 0,
		plain || (qp->flags & QPF_LOCAL) == 0, service == 0 };
	uint32_t most = RTE_MIN(RTE_MIN(from->n, *n), TX_ROOM - q->tail), sent;
	struct requester_wr *const wrs = r->wr;
	const uint32_t mask = r->wr_mask;
	const size_t begins = frame_at(pool);
	struct requester_run run;
	struct wire_head head;

	if (UNLIKELY(!is_fast_pool(pool, ipv4 ? WIRE_HEAD_LEN : qp->tmpl.len, r->pmtu)))
		return 0;
	most = RTE_MIN(most, requester_run_begin(r, &run, w->now));
	if (plain)
		run.acked = true;
	wire_head_init(&head);
	for (sent = 0; sent < most; sent++) {
		struct requester_wr *wr = &wrs[run.at & mask];
		struct rte_mbuf *one = *--in;
		const bool pieces = sges && from->host[sent] == NULL && has_pieces(wr);
		const struct requester_run before = run;
		struct requester_start s;
		uint8_t *frame, *payload;

		if (!pieces && (UNLIKELY(from->host[sent] == NULL) ||
				       UNLIKELY(!mem_is_valid(from->region[sent]))))
			break;
		if (UNLIKELY(!requester_run_next(&run, wr, imms, &s)))
			break;
		frame = frame_begin(one, begins);
		payload = headers_write(qp, ipv4, service, imms, &head, wr, &s, frame);
		out[sent] = one;
		if (pieces) { /* behind the headers, which are written in words */
			if (UNLIKELY(!pieces_gather(w, qp, before.at, payload))) {
				run = before;
				break;
			}
			payload = frame_close(one, frame, payload, wr->len);
			if (are.seals)
				frame_unsealed(
					w, &qp->tmpl, ipv4, frame, (uint32_t)(payload - frame));
			continue;
		}
		fill(w, qp, are, one, frame, payload, from->host[sent], wr->len);
	}
	*n -= sent;
	frames_made(w, qp, q, &run, sent);
	return sent;
}

/* ---- messages that may have several packets -------------------------------------------------- */

/** Of a packet of a message with the work request's opcode: the same for all services. */
static ALWAYS_INLINE uint8_t
part_opcode(uint8_t opcode, const struct requester_part *p)
{
	const uint8_t imm = opcode & REQUESTER_WHAT_IMM;
	const uint8_t first = opcode - imm == WR_RDMA_WRITE ? OP_RC_WRITE_FIRST : OP_RC_SEND_FIRST;

	if (p->last)
		return first + imm + (p->offset == 0 ? OP_RC_SEND_ONLY : OP_RC_SEND_LAST);
	return first + (p->offset == 0 ? OP_RC_SEND_FIRST : OP_RC_SEND_MIDDLE);
}
_Static_assert(OP_RC_SEND_FIRST == 0 && OP_RC_SEND_LAST_IMM == (OP_RC_SEND_LAST | 1) &&
		       OP_RC_WRITE_MIDDLE == OP_RC_WRITE_FIRST + OP_RC_SEND_MIDDLE &&
		       OP_RC_WRITE_LAST == OP_RC_WRITE_FIRST + OP_RC_SEND_LAST &&
		       OP_RC_WRITE_LAST_IMM == OP_RC_WRITE_FIRST + OP_RC_SEND_LAST_IMM &&
		       OP_RC_WRITE_ONLY == OP_RC_WRITE_FIRST + OP_RC_SEND_ONLY,
	"SENDs and WRITEs have them in the same order");

/** Headers, as headers_write(). */
static ALWAYS_INLINE uint8_t *
part_headers(const struct qp *qp, const bool ipv4, uint8_t service, struct wire_head *head,
	const struct requester_wr *wr, const struct requester_part *p, uint8_t *frame)
{
	const uint8_t imm = p->last ? wr->opcode & REQUESTER_WHAT_IMM : 0;
	const bool reth = p->offset == 0 && (wr->opcode & ~REQUESTER_WHAT_IMM) == WR_RDMA_WRITE;
	const uint32_t ext = (reth ? WIRE_RETH_LEN : 0) + imm * WIRE_IMM_LEN, pad = -p->len & 3;

	frame = frame_head(head, &qp->tmpl, ipv4, frame,
		wire_head_what(service | part_opcode(wr->opcode, p), p->start.flags, (uint8_t)pad,
			(uint16_t)(ext + p->len + pad)),
		&p->start);
	if (reth)
		wire_reth_write(frame, wr->remote_addr, wr->rkey, wr->len);
	frame += ext;
	if (imm != 0)
		be32_store(frame - WIRE_IMM_LEN, wr->imm);
	return frame;
}

/** Packets in a row, of messages that are in one piece each. @param ipv4 see frame_head(). */
static ALWAYS_INLINE uint32_t
parts_make(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n,
	const bool ipv4)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	const uint8_t service = wire_opcode_on(r->transport, 0);
	const struct frames_are are = { ipv4, true, (qp->flags & QPF_LOCAL) == 0, service == 0 };
	uint32_t most = RTE_MIN(*n, TX_ROOM - q->tail), sent;
	struct requester_run run;
	struct wire_head head;

	if (UNLIKELY(!is_fast_pool(pool, ipv4 ? WIRE_HEAD_LEN : qp->tmpl.len, r->pmtu)))
		return 0;
	most = RTE_MIN(most, requester_parts_begin(r, &run, w->now));
	if (most == 0)
		return 0;
	wire_head_init(&head);
	for (sent = 0; sent < most; sent++) {
		const uint32_t i = run.at - from->first;
		struct requester_wr *wr = requester_slot(r, run.at);
		struct rte_mbuf *one = m[*n - 1 - sent];
		struct requester_part p;
		const uint8_t *host;
		uint8_t *frame, *payload;

		if (i >= from->n || UNLIKELY(from->host[i] == NULL) ||
			UNLIKELY(!mem_is_valid(from->region[i])) ||
			UNLIKELY(!requester_run_part(&run, wr, &p)))
			break;
		host = from->host[i] + p.offset;
		frame = frame_begin(one, frame_at(pool));
		payload = part_headers(qp, ipv4, service, &head, wr, &p, frame);
		q->m[q->tail + sent] = one;
		fill(w, qp, are, one, frame, payload, host, p.len);
	}
	*n -= sent;
	frames_made(w, qp, q, &run, sent);
	return sent;
}

/** Of its own, so that the loops over requests of one packet stay small. */
static __attribute__((noinline)) uint32_t
parts_make_any(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	return wire_head_fits(&qp->tmpl) ? parts_make(w, qp, port, m, n, true)
					 : parts_make(w, qp, port, m, n, false);
}

/* ---- which of them --------------------------------------------------------------------------- */

/** Is the next work request a READ? Then the others probably are, too. */
static ALWAYS_INLINE bool
next_is_read(const struct requester *r)
{
	return requester_slot(r, r->sending)->opcode == WR_RDMA_READ;
}

/** Is it anything but a short SEND or RDMA WRITE of one packet and piece, without an immediate? */
static ALWAYS_INLINE bool
next_is_rare(const struct requester *r)
{
	const struct requester_wr *wr = requester_slot(r, r->sending);

	return ((uint32_t)(wr->opcode & ~WR_SEND) | (uint32_t)(wr->len >= COPY_SEAL_MIN) |
		       (uint32_t)(wr->len > r->pmtu) | (uint32_t)(wr->num_sge > 1)) != 0;
}

/**
 * READs in a row. Whether there is a place for what comes back was looked up with the sources, as
 * mem_check_sges() would. @param ipv4 see frame_head().
 */
static ALWAYS_INLINE uint32_t
reads_make(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n,
	const bool ipv4)
{
	struct rte_mempool *pool = w->conf.ports[port].pool;
	struct requester *r = &qp->req;
	struct tx_queue *q = &w->tx[port];
	const struct request_sources *from = w->source;
	const bool seals = (qp->flags & QPF_LOCAL) == 0; /* else local.h */
	uint32_t most = RTE_MIN(RTE_MIN(from->n, *n), TX_ROOM - q->tail), sent;
	struct requester_run run;
	struct wire_head head;

	if (UNLIKELY(!is_fast_pool(pool, ipv4 ? WIRE_HEAD_LEN : qp->tmpl.len, 0)))
		return 0;
	most = RTE_MIN(most, requester_reads_most(r));
	most = RTE_MIN(most, requester_run_begin(r, &run, w->now));
	wire_head_init(&head);
	for (sent = 0; sent < most; sent++) {
		struct requester_wr *wr = &r->wr[run.at & r->wr_mask];
		struct rte_mbuf *one = m[*n - 1 - sent];
		struct requester_start s;
		uint8_t *frame, *reth;
		uint32_t len;

		if (UNLIKELY(from->host[sent] == NULL) ||
			UNLIKELY(!mem_is_valid(from->region[sent])) ||
			UNLIKELY(!requester_run_read(&run, wr, &s)))
			break;
		frame = frame_begin(one, frame_at(pool));
		reth = frame_head(&head, &qp->tmpl, ipv4, frame,
			wire_head_what(OP_RC_READ_REQUEST, s.flags, 0, WIRE_RETH_LEN), &s);
		wire_reth_write(reth, wr->remote_addr, wr->rkey, wr->len);
		q->m[q->tail + sent] = one;
		len = (uint32_t)(reth - frame) + WIRE_RETH_LEN + WIRE_ICRC_LEN;
		mbuf_len_set(one, len);
		if (seals)
			frame_unsealed(w, &qp->tmpl, ipv4, frame, len);
	}
	*n -= sent;
	frames_made(w, qp, q, &run, sent);
	return sent;
}

static __attribute__((noinline)) uint32_t
reads_make_ipv4(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	return reads_make(w, qp, port, m, n, true);
}

/** Requests whose path has a tag or IPv6. */
static __attribute__((noinline)) uint32_t
requests_make_long_heads(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if (next_is_read(&qp->req) && (qp->flags & QPF_SERVICE) == 0)
		return reads_make(w, qp, port, m, n, false);
	if (requester_next_is_long(&qp->req))
		return parts_make_any(w, qp, port, m, n);
	return requests_make(w, qp, port, m, n, MAKE_RARE);
}

static __attribute__((noinline)) uint32_t
requests_make_other(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if ((qp->flags & (QPF_TRACE | QPF_SEND_FEED | QPF_XRC)) != 0)
		return 0;
	if ((qp->flags & QPF_DATAGRAM) != 0)
		return pipeline_fast_datagrams(w, qp, port, m, n);
	if (!wire_head_fits(&qp->tmpl))
		return requests_make_long_heads(w, qp, port, m, n);
	if (next_is_read(&qp->req) && (qp->flags & QPF_SERVICE) == 0)
		return reads_make_ipv4(w, qp, port, m, n);
	if (requester_next_is_long(&qp->req))
		return parts_make_any(w, qp, port, m, n);
	return requests_make(w, qp, port, m, n, MAKE_IPV4 | MAKE_RARE);
}

/** Of its own, so that the loop over small requests stays small. */
static __attribute__((noinline)) uint32_t
requests_make_rare(struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if (next_is_read(&qp->req))
		return reads_make_ipv4(w, qp, port, m, n);
	if (requester_next_is_long(&qp->req))
		return parts_make_any(w, qp, port, m, n);
	return requests_make(w, qp, port, m, n, MAKE_PLAIN | MAKE_IPV4 | MAKE_RARE);
}

uint32_t
pipeline_fast_requests(
	struct worker *w, struct qp *qp, uint8_t port, struct rte_mbuf **m, uint32_t *n)
{
	if (UNLIKELY((qp->flags & (QPF_TRACE | QPF_SEND_FEED | QPF_SERVICE | QPF_LOCAL)) != 0) ||
		UNLIKELY(!wire_head_fits(&qp->tmpl)))
		return requests_make_other(w, qp, port, m, n);
	if (UNLIKELY(next_is_rare(&qp->req)))
		return requests_make_rare(w, qp, port, m, n);
	return requests_make(w, qp, port, m, n, MAKE_PLAIN | MAKE_IPV4);
}
