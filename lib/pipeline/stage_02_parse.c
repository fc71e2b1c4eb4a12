/* SPDX-License-Identifier: BSD-3-Clause */
/* Stage 2: read headers; what is not RoCE leaves to the control lcore, or for good. */
#include <rte_ip.h>

#include "count.h"
#include "spare.h"
#include "mcast.h"
#include "tx_prio.h"
#include "stage.h"
#include "to_control.h"
#include "wire_alike.h"
#include "wire_near.h"

/** Frames in a row of one port that are no RoCE: they are counted together. */
struct other_run {
	uint32_t n;
	uint8_t port;
};

static inline void
other_count(struct worker *w, const struct other_run *run)
{
	stats_add(&w->stats, STAT_rx_not_roce, run->n);
	stats_add(&w->port_stats[run->port], STAT_rx_not_roce, run->n);
}

static ALWAYS_INLINE void
other_add(struct worker *w, struct other_run *run, uint8_t port)
{
	if (UNLIKELY(port != run->port)) {
		other_count(w, run);
		*run = (struct other_run){ .port = port };
	}
	run->n++;
}

/** Anything but the common packet. */
static ALWAYS_INLINE bool
parse_slow(struct worker *w, struct burst *b, uint32_t i, struct wire_pkt *p, struct other_run *run)
{
	struct rte_mbuf *m = b->m[i];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	enum wire_class class;

	if (wire_is_other_udp(frame, m->data_len)) {
		other_add(w, run, b->port[i]);
		mbuf_done(w, m);
		return false;
	}
	class = wire_parse_any(&w->conf.ports[b->port[i]].addr, frame, m->data_len, p);
	if (LIKELY(class == WIRE_CLASS_ROCE))
		return true;
	if (class == WIRE_CLASS_CONTROL) {
		pipeline_to_control(w, b, i);
		return false;
	}
	if (prio_paused(w, b, i))
		return false;
	other_add(w, run, b->port[i]);
	mbuf_done(w, m);
	return false;
}

/** Read a packet that wire_plain.h knows, and fetch what stands at its QP number. */
static ALWAYS_INLINE bool
read_plain(const struct worker *w, const struct qp_table *qps, struct burst *b, uint32_t i)
{
	const struct wire_port *port = &w->conf.ports[b->port[i]].addr;
	const struct rte_mbuf *m = b->m[i];
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	struct wire_pkt *p = &b->pkt[i];

	if (LIKELY(m->data_len >= WIRE_PLAIN_MIN) && LIKELY(wire_match(port, frame)) &&
		LIKELY(wire_read_plain(frame, m->data_len, p)) &&
		LIKELY((m->ol_flags & w->fcs_bad) == 0)) {
		rte_prefetch0(&qps->slot[p->dest_qpn & qps->mask]);
		return true;
	}
	return false;
}

/**
 * Read the packets from `i` on that wire_plain.h knows, each to its own place.
 * @return a bit for each of the others, whose places say nothing.
 */
static __attribute__((noinline)) uint32_t
read_fast(const struct worker *w, struct burst *b, uint32_t i)
{
	const struct qp_table *qps = w->qps;
	uint32_t slow = 0;

	for (; i < b->n; i++)
		if (!read_plain(w, qps, b, i))
			slow |= BIT32(i);
	return slow;
}

#if WIRE_WIDE
/** Did all packets come to one port? Only in bursts that were handed over did they not. */
TARGET_WIRE_WIDE static ALWAYS_INLINE bool
one_port(const struct burst *b)
{
	const __m256i ports = _mm256_loadu_si256((const __m256i *)(const void *)b->port);
	const uint32_t other = _mm256_cmpneq_epu8_mask(ports, _mm256_set1_epi8((char)b->port[0]));

	return (uint32_t)((uint64_t)other << (PIPELINE_BURST - b->n)) == 0;
}
_Static_assert(PIPELINE_BURST == 32, "one_port() reads 32 ports");

/** Fetch what stands at a QP number. */
static ALWAYS_INLINE void
slot_fetch(const struct qp_table *qps, uint32_t qpn)
{
	rte_prefetch0(&qps->slot[qpn & qps->mask]);
}

/** read_fast() with wide registers, up to a packet that it does not know. @return its index */
TARGET_WIRE_WIDE static __attribute__((noinline)) uint32_t
read_each(const struct worker *w, struct burst *b, uint32_t i)
{
	const struct qp_table *qps = w->qps;
	const uint64_t fcs_bad = w->fcs_bad;
	const uint32_t n = b->n;

	for (; i < n; i++) {
		const struct rte_mbuf *m = b->m[i];
		uint32_t qpn;

		if (UNLIKELY(m->data_len < WIRE_PLAIN_MIN) ||
			UNLIKELY((m->ol_flags & fcs_bad) != 0))
			break;
		qpn = wire_read_wide(&w->front[b->port[i]], rte_pktmbuf_mtod(m, const uint8_t *),
			m->data_len, &b->pkt[i], NULL);
		if (UNLIKELY(qpn == 0))
			break;
		slot_fetch(qps, qpn);
	}
	return i;
}

/*
 * Flows, in runs, that a burst may have, and one more for each RUN packets: two long messages may
 * meet there. Bursts that are read one by one if one has more.
 */
enum { FLOWS = 4, RUN = 4, APART = 16 };

#define READ_FLOWS  read_wide
#define READ_TARGET TARGET_WIRE_WIDE
#define READ_BEFORE wire_like
#define READ_LIKE   wire_read_like
#define READ_FIRST  wire_read_wide
#define ONE_PORT    one_port
#define READ_EACH   read_each
#include "stage_02_flows.def"

/** one_port() with smaller registers. */
TARGET_WIRE_HALF static ALWAYS_INLINE bool
one_port_half(const struct burst *b)
{
	const __m256i ports = wire_half_piece(b->port);
	const __m256i same = _mm256_cmpeq_epi8(ports, _mm256_set1_epi8((char)b->port[0]));
	const uint32_t other = ~(uint32_t)_mm256_movemask_epi8(same);

	return (uint32_t)((uint64_t)other << (PIPELINE_BURST - b->n)) == 0;
}

/** read_fast() is to read them. */
static ALWAYS_INLINE uint32_t
read_none(const struct worker *w, const struct burst *b, uint32_t i)
{
	(void)w;
	(void)b;
	return i;
}

#define READ_FLOWS  read_half
#define READ_TARGET TARGET_WIRE_HALF
#define READ_BEFORE wire_half_like
#define READ_LIKE   wire_read_half_like
#define READ_FIRST  wire_read_half
#define ONE_PORT    one_port_half
#define READ_EACH   read_none
#include "stage_02_flows.def"
#endif

/**
 * WIRE-15, where the knob asks for it; of a packet with other faults it tells nothing. Over a
 * datagram with its right checksum in it the sum is 0, for which DPDK says 0xffff.
 */
static __attribute__((noinline)) bool
udp_sum_is_wrong(const struct wire_pkt *p)
{
	const void *ip = p->frame + p->l3_off, *udp = p->frame + p->bth_off - WIRE_UDP_LEN;
	uint16_t rest;

	if ((p->faults & ~MCAST_FAULTS) != 0 || p->bth_off == 0 ||
		be16_load((const uint8_t *)udp + 6) == 0)
		return false;
	rest = (p->flags & PKT_IPV6) != 0 ? rte_ipv6_udptcp_cksum(ip, udp)
					  : rte_ipv4_udptcp_cksum(ip, udp);
	return rest != UINT16_MAX;
}

/** The headers of a packet were read on a slower path: fetch what stands at its QP number. */
static inline void
slow_ready(const struct worker *w, const struct burst *b, uint32_t i, struct wire_pkt *p)
{
	const struct qp_table *qps = w->qps;

	if (UNLIKELY(w->conf.ports[b->port[i]].check_udp) && udp_sum_is_wrong(p))
		p->faults |= FAULT_BIT(FAULT_UDP_CHECKSUM);
	if (UNLIKELY((b->m[i]->ol_flags & w->fcs_bad) != 0))
		p->faults |= FAULT_BIT(FAULT_FCS);
	rte_prefetch0(&qps->slot[p->dest_qpn & qps->mask]);
}

/** Read the packets of these bits. @return a bit for each that has left. */
static __attribute__((noinline)) uint32_t
read_slow(struct worker *w, struct burst *b, uint32_t slow)
{
	struct other_run run = { .n = 0 };
	uint32_t gone = 0;

	for (; slow != 0; slow &= slow - 1) {
		const uint32_t i = (uint32_t)__builtin_ctz(slow);

		if (parse_slow(w, b, i, &b->pkt[i], &run))
			slow_ready(w, b, i, &b->pkt[i]);
		else
			gone |= BIT32(i);
	}
	if (run.n != 0)
		other_count(w, &run);
	return gone;
}

/** read_fast() of the packets from `i` on, and read_slow() of the others. */
static ALWAYS_INLINE uint32_t
read_apart(struct worker *w, struct burst *b, uint32_t i)
{
	const uint32_t slow = read_fast(w, b, i);

	return slow != 0 ? read_slow(w, b, slow) : 0;
}

#if WIRE_WIDE
/** Read packets from `i` on that have a VLAN tag or IPv6, too. @return a bit for each other one. */
TARGET_WIRE_WIDE static __attribute__((noinline)) uint32_t
read_medium(const struct worker *w, struct burst *b, uint32_t i)
{
	const uint32_t n = b->n;
	uint32_t slow = 0;

	for (; i < n; i++) {
		const struct rte_mbuf *m = b->m[i];
		struct wire_pkt *p = &b->pkt[i];

		if (LIKELY(wire_read_near(&w->front[b->port[i]], &w->conf.ports[b->port[i]].addr,
			    rte_pktmbuf_mtod(m, const uint8_t *), m->data_len, p)))
			slow_ready(w, b, i, p);
		else
			slow |= BIT32(i);
	}
	return slow;
}

/** Read all packets, with wide registers. @return a bit for each that has left. */
static uint32_t
parse_wide(struct worker *w, struct burst *b)
{
	uint32_t from = read_wide(w, b), slow;

	if (LIKELY(from == b->n))
		return 0;
	slow = read_medium(w, b, from);
	return slow != 0 ? read_slow(w, b, slow) : 0;
}

/** Read the packets from `i` on that are like that one. @return the index of one that is not. */
TARGET_WIRE_HALF static ALWAYS_INLINE uint32_t
read_run(const struct worker *w, struct burst *b, uint32_t i, const struct wire_alike *like)
{
	const struct qp_table *qps = w->qps;
	const uint64_t fcs_bad = w->fcs_bad;
	struct wire_pkt *p = &b->pkt[i], *const end = &b->pkt[b->n];
	struct rte_mbuf *const *to = &b->m[i];

	for (; p != end; p++, to++) {
		const struct rte_mbuf *m = *to;
		const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);

		if (UNLIKELY((m->ol_flags & fcs_bad) != 0) ||
			UNLIKELY(!wire_read_alike(like, frame, m->data_len, p)))
			break;
		slot_fetch(qps, p->dest_qpn);
	}
	return (uint32_t)(p - b->pkt);
}

/** Read a packet in full, and compare the next ones with it. @return its bit, if it has left. */
TARGET_WIRE_HALF static __attribute__((noinline)) uint32_t
read_model(struct worker *w, struct burst *b, uint32_t i, struct wire_alike *like)
{
	const uint32_t gone = read_slow(w, b, BIT32(i));

	if (gone == 0)
		wire_alike_begin(like, &b->pkt[i]);
	return gone;
}

/**
 * read_apart(), but a packet that is not plain is compared with the last such one that was read in
 * full. Where several are not alike, the rest of the burst is read without, and so are the next
 * ones. @return a bit for each that has left.
 */
TARGET_WIRE_HALF static __attribute__((noinline)) uint32_t
read_alike(struct worker *w, struct burst *b, uint32_t i)
{
	uint32_t gone = 0, flows = 0;
	struct wire_alike like;

	if (UNLIKELY(!one_port_half(b)))
		return read_apart(w, b, i);
	wire_alike_end(&like);
	for (;; i++) {
		i = read_run(w, b, i, &like);
		if (i == b->n)
			return gone;
		if (read_plain(w, w->qps, b, i))
			continue;
		if (i + 1 == b->n)
			break;
		if (flows++ == FLOWS) {
			w->apart = APART;
			break;
		}
		gone |= read_model(w, b, i, &like);
	}
	return gone | read_apart(w, b, i);
}

/** The same with smaller ones. */
static uint32_t
parse_half(struct worker *w, struct burst *b)
{
	const uint32_t apart = w->apart; /* which read_half() counts down, or sets */
	const uint32_t from = read_half(w, b);

	if (LIKELY(from == b->n))
		return 0;
	if (UNLIKELY((apart | w->apart) != 0))
		return read_apart(w, b, from);
	return read_alike(w, b, from);
}
#endif

static __attribute__((noinline)) void
close_gaps(struct burst *b, uint32_t gone)
{
	uint32_t kept = 0;

	for (uint32_t i = 0; i < b->n; i++)
		if ((gone >> i & 1) == 0)
			burst_keep(b, kept++, i);
	ASSERT(kept + (uint32_t)__builtin_popcount(gone) == b->n);
	b->n = kept;
}

void
stage_parse(struct worker *w, struct burst *b)
{
	uint32_t gone;

#if WIRE_WIDE
	if (LIKELY(wire_has_wide()))
		gone = parse_wide(w, b);
	else if (LIKELY(wire_has_half()))
		gone = parse_half(w, b);
	else
#endif
		gone = read_apart(w, b, 0);
	if (UNLIKELY(gone != 0))
		close_gaps(b, gone);
}
