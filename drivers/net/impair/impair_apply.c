/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_apply.h"

#include <stdbool.h>

#include <rte_mbuf.h>

#include "be.h"

#define ECN_CE 3u

static bool
is_ours_alone(const struct rte_mbuf *m)
{
	for (; m != NULL; m = m->next) {
		if (!RTE_MBUF_DIRECT(m) || rte_mbuf_refcnt_read(m) != 1)
			return false;
	}
	return true;
}

struct rte_mbuf *
impair_own(struct rte_mbuf *m, struct rte_mempool *pool)
{
	struct rte_mbuf *copy;

	if (is_ours_alone(m))
		return m;
	copy = rte_pktmbuf_copy(m, pool, 0, UINT32_MAX);
	if (copy != NULL)
		rte_pktmbuf_free(m);
	return copy;
}

/* A byte of a frame that may be chained, or NULL behind its end. */
static uint8_t *
byte_at(struct rte_mbuf *m, uint32_t offset)
{
	for (; m != NULL; m = m->next) {
		if (offset < m->data_len)
			return rte_pktmbuf_mtod_offset(m, uint8_t *, offset);
		offset -= m->data_len;
	}
	return NULL;
}

void
impair_corrupt(struct rte_mbuf *m, const struct impair_verdict *v)
{
	for (uint32_t i = 0; i < v->n_flips; i++) {
		uint8_t *b = byte_at(m, v->flips[i].offset);

		if (b != NULL)
			*b ^= v->flips[i].mask;
	}
	/* What the port found out about checksums was about another frame. */
	m->ol_flags &= ~(RTE_MBUF_F_RX_IP_CKSUM_MASK | RTE_MBUF_F_RX_L4_CKSUM_MASK);
}

static void
mark_ipv4(struct rte_mbuf *m, uint32_t l3_off)
{
	uint8_t *tos = byte_at(m, l3_off + 1);
	uint8_t *high = byte_at(m, l3_off + 10);
	uint8_t *low = byte_at(m, l3_off + 11);
	uint32_t sum, old;

	if (tos == NULL || high == NULL || low == NULL)
		return;
	old = *tos;
	*tos |= ECN_CE;
	/* RFC 1624, equation 3; the other byte of the changed word cancels out. */
	sum = (uint16_t) ~((uint32_t)*high << 8 | *low);
	sum += (uint16_t)~old + (uint32_t)*tos;
	sum = (sum & 0xffff) + (sum >> 16);
	sum = ~((sum & 0xffff) + (sum >> 16));
	*high = (uint8_t)(sum >> 8);
	*low = (uint8_t)sum;
}

bool
impair_is_ect(struct rte_mbuf *m, const struct impair_pkt *p)
{
	const uint8_t *tos = byte_at(m, p->l3_off + 1u);

	if (tos == NULL)
		return false;
	if ((p->kind & IMPAIR_PKT_IPV4) != 0)
		return (*tos & ECN_CE) != 0;
	return (p->kind & IMPAIR_PKT_IPV6) != 0 && (*tos >> 4 & ECN_CE) != 0;
}

void
impair_mark_ce(struct rte_mbuf *m, const struct impair_pkt *p)
{
	uint8_t *low;

	if ((p->kind & IMPAIR_PKT_IPV4) != 0) {
		mark_ipv4(m, p->l3_off);
		return;
	}
	/* Traffic class: its low four bits are the high ones of the second byte. */
	low = byte_at(m, p->l3_off + 1u);
	if ((p->kind & IMPAIR_PKT_IPV6) != 0 && low != NULL)
		*low |= (uint8_t)(ECN_CE << 4);
}
