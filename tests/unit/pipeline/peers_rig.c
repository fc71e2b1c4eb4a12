/* SPDX-License-Identifier: BSD-3-Clause */
#include "peers_rig.h"

#include <string.h>

struct peer peers[PEERS];

void
peer_begin(struct bed *b, uint32_t i)
{
	struct peer *p = &peers[i];
	struct qp_attr attr = { .path_resolved = true, .path = bed_path() };

	*p = (struct peer){ .path = bed_path(), .way = bed_near_end(), .port = bed_port() };
	p->path.src_ip[3] = (uint8_t)(2 + i);
	memcpy(attr.path.smac, p->path.dmac, 6);
	memcpy(attr.path.dmac, p->path.smac, 6);
	memcpy(attr.path.src_ip, p->path.dst_ip, 4);
	memcpy(attr.path.dst_ip, p->path.src_ip, 4);
	for (uint32_t k = 0; k < QPS; k++) {
		const uint32_t qpn = FIRST_QPN + i * QPS + k;

		p->qp[k] = bed_qp(b, qpn, qpn);
		p->psn[k] = p->acked[k] = E;
		assert_int_equal(bed_modify(b, p->qp[k], &attr, QP_ATTR_AV), 0);
	}
}

void
peer_end(struct bed *b, uint32_t i)
{
	for (uint32_t k = 0; k < QPS; k++)
		bed_qp_gone(b, peers[i].qp[k]);
}

/** @return false: there is no room. */
static bool
comes(const struct peer *p, struct rte_mbuf *m)
{
	m->port = p->port;
	if (rte_ring_enqueue(p->way, m) == 0)
		return true;
	rte_pktmbuf_free(m);
	return false;
}

bool
peer_sends(struct peer *p, uint16_t len, uint32_t each)
{
	const uint32_t k = p->next / each % QPS;
	struct wire_fields f = write_only(p->psn[k], MR_VA, len);
	struct rte_mbuf *m;

	f.dest_qpn = p->qp[k]->qpn;
	m = bed_frame_on(&p->path, &f);
	if (!comes(p, m))
		return false;
	p->psn[k]++;
	p->next++;
	return true;
}

/** What was sent in this turn. */
static void
read_answers(struct bed *b)
{
	for (uint32_t i = 0; i < b->out_n; i++) {
		const uint32_t at = b->pkt[i].dest_qpn - FIRST_QPN;
		struct peer *p;

		if (b->pkt[i].dest_qpn == PEER_QPN)
			continue;
		p = &peers[at / QPS];
		if (wire_aeth(&b->pkt[i]).syndrome >> 5 != 0)
			p->naks++;
		else
			p->acked[at % QPS] = b->pkt[i].psn.v + 1;
	}
}

void
peers_turn(struct bed *b)
{
	bed_forget_output(b);
	worker_poll(b->w, b->now);
	bed_collect(b);
	assert_true(b->out_n < FRAMES);
	read_answers(b);
}

uint32_t
peer_owed(const struct peer *p)
{
	uint32_t n = 0;

	for (uint32_t k = 0; k < QPS; k++)
		n += p->psn[k] - p->acked[k];
	return n;
}

bool
peer_repeats(struct peer *p)
{
	struct wire_fields f = write_only(E - 1, MR_VA, 64);
	struct rte_mbuf *m;

	f.dest_qpn = p->qp[p->next++ % QPS]->qpn;
	m = bed_frame_on(&p->path, &f);
	return comes(p, m);
}

uint64_t
peer_served(const struct peer *p)
{
	uint64_t n = 0;

	for (uint32_t k = 0; k < QPS; k++)
		n += p->qp[k]->hot[STAT_duplicate_request];
	return n;
}
