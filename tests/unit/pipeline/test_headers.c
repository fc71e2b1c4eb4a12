/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 2 on bursts of any mixture: each packet is read as wire_parse_any() reads it alone,
 * whatever stands before it and whatever the bursts before were; what leaves is what has to.
 */
#include <string.h>

#include <rte_mbuf_dyn.h>

#include "bed.h"
#include "be.h"
#include "spare.h"
#include "stage.h"
#include "worker.h"

enum { BURSTS = 2000, KIND_TAG = 1, KIND_IPV6 = 2, KINDS = 4, HEADERS = 80 };

/** What a burst is made of. */
struct mixture {
	uint32_t kind;   /* of most frames */
	uint32_t others; /* of 16: frames of another kind, */
	uint32_t wrong;  /* ... with a byte that is wrong, or cut, */
	uint32_t lens;   /* how many lengths */
	bool two_ports, check_udp;
	bool sums; /* UDP checksums, wrong ones */
};

static uint32_t
next(uint32_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 17;
	*seed ^= *seed << 5;
	return *seed;
}

static struct mixture
mixture_of(uint32_t *seed)
{
	static const uint32_t few[] = { 0, 0, 1, 8 };

	return (struct mixture){ .kind = next(seed) % KINDS,
		.others = few[next(seed) % ARRAY_LEN(few)],
		.wrong = few[next(seed) % ARRAY_LEN(few)],
		.lens = 1 + few[next(seed) % ARRAY_LEN(few)],
		.two_ports = (next(seed) & 7) == 0,
		.check_udp = (next(seed) & 1) == 0,
		.sums = (next(seed) & 3) == 0 };
}

static struct rte_mbuf *
frame_of(uint32_t kind, uint32_t len, bool sums, uint32_t *seed)
{
	const uint32_t l3 = WIRE_ETH_LEN + ((kind & KIND_TAG) != 0 ? WIRE_VLAN_LEN : 0);
	const uint32_t l4 = l3 + ((kind & KIND_IPV6) != 0 ? WIRE_IPV6_LEN : WIRE_IPV4_LEN);
	struct wire_fields f = write_only(E + next(seed) % 64, MR_VA, (uint16_t)(64 + 4 * len));
	struct wire_path path = bed_path();
	struct rte_mbuf *m;

	path.vlan = (kind & KIND_TAG) != 0;
	path.vlan_tci = (uint16_t)next(seed);
	if ((kind & KIND_IPV6) != 0) {
		path.ipv6 = true;
		memset(path.dst_ip, 0x20, sizeof(path.dst_ip));
		path.src_ip[15] = (uint8_t)next(seed);
	}
	m = bed_frame_on(&path, &f);
	if (sums)
		be16_store(rte_pktmbuf_mtod(m, uint8_t *) + l4 + 6, 0x5a5a);
	return m;
}

/** A bit, a byte, the end, the FCS, the UDP checksum, or all of it. */
static void
spoil(struct rte_mbuf *m, uint32_t *seed)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);
	const int fcs = rte_mbuf_dynflag_lookup(PIPELINE_FCS_FLAG, NULL);

	switch (next(seed) % 8) {
	case 0:
		frame[next(seed) % HEADERS] = (uint8_t)next(seed);
		break;
	case 1:
		m->data_len = m->pkt_len = next(seed) % (m->data_len + 1u);
		break;
	case 2:
		assert_true(fcs >= 0);
		m->ol_flags |= UINT64_C(1) << fcs;
		break;
	case 3:
		be16_store(frame + 12, 0x0806);
		break;
	case 4:
		be16_store(frame + 36, 4790);
		break;
	case 5:
		frame[5] ^= 1;
		break;
	default:
		frame[next(seed) % HEADERS] ^= (uint8_t)(1u << (next(seed) & 7));
		break;
	}
}

/** What is to be said of a frame. The sums of frames that have one are wrong. */
static enum wire_class
expected(const struct bed *b, const struct rte_mbuf *m, uint8_t port, struct wire_pkt *want)
{
	const fault_mask_t group =
		FAULT_BIT(FAULT_DST_MAC) | FAULT_BIT(FAULT_DST_IP) | FAULT_BIT(FAULT_DST_QP);
	const struct wire_port *us = &b->w->conf.ports[port].addr;
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	const enum wire_class class = wire_parse_any(us, frame, m->data_len, want);

	if (class != WIRE_CLASS_ROCE)
		return class;
	if (b->w->conf.ports[port].check_udp && (want->faults & ~group) == 0 &&
		be16_load(frame + want->bth_off - 2) != 0)
		want->faults |= FAULT_BIT(FAULT_UDP_CHECKSUM);
	if ((m->ol_flags & b->w->fcs_bad) != 0)
		want->faults |= FAULT_BIT(FAULT_FCS);
	return class;
}

/** Make a burst, run stage 2, and look at what it says. @return packets that were kept. */
static uint32_t
one_burst(struct bed *b, const struct mixture *mix, uint32_t *seed)
{
	struct wire_pkt want[PIPELINE_BURST];
	struct rte_mbuf *control[PIPELINE_BURST], *m;
	struct burst *burst = &b->w->burst;
	uint32_t kept = 0, controls = 0;
	struct mbox_msg up;

	burst->n = 1 + next(seed) % PIPELINE_BURST;
	for (uint32_t i = 0; i < burst->n; i++) {
		const bool other = next(seed) % 16 < mix->others;

		m = frame_of(
			other ? next(seed) : mix->kind, next(seed) % mix->lens, mix->sums, seed);
		if (next(seed) % 16 < mix->wrong)
			spoil(m, seed);
		burst->m[i] = m;
		burst->port[i] = mix->two_ports && (next(seed) & 3) == 0;
		switch (expected(b, m, burst->port[i], &want[kept])) {
		case WIRE_CLASS_ROCE:
			kept++;
			break;
		case WIRE_CLASS_CONTROL:
			control[controls++] = m;
			break;
		default:
			break;
		}
	}
	stage_parse(b->w, burst);
	pipeline_mbufs_free_spare(b->w);
	assert_int_equal(burst->n, kept);
	for (uint32_t i = 0; i < kept; i++) {
		assert_memory_equal(&burst->pkt[i], &want[i], offsetof(struct wire_pkt, reserved));
		assert_ptr_equal(rte_pktmbuf_mtod(burst->m[i], uint8_t *), want[i].frame);
		rte_pktmbuf_free(burst->m[i]);
	}
	/* Few are let through from one source. */
	for (uint32_t i = 0; mbox_recv_up(&b->mbox, &up, 1) == 1; i++) {
		while (i < controls && control[i] != up.pkt.m)
			i++;
		assert_in_range(i + 1, 1, controls);
		rte_pktmbuf_free(up.pkt.m);
	}
	return kept;
}

/* WIRE-01, WIRE-15, RX-SYN-00..14, RX-SYN-31: no packet is judged by another one. */
static void
WIRE_01_each_packet_as_alone(void **state)
{
	struct bed *b = *state;
	uint32_t seed = 0x20261127, kept = 0;

	for (uint32_t port = 0; port < 2; port++) {
		struct wire_port *us = &b->w->conf.ports[port].addr;

		*us = b->w->conf.ports[0].addr;
		us->has_ipv6 = port == 0;
		us->mac[5] ^= (uint8_t)port;
		memset(us->ipv6, 0x20, sizeof(us->ipv6));
		wire_front_init(&b->w->front[port], us);
	}
	for (uint32_t i = 0; i < BURSTS; i++) {
		const struct mixture mix = mixture_of(&seed);

		for (uint32_t port = 0; port < 2; port++)
			b->w->conf.ports[port].check_udp = mix.check_udp;
		/* What is known of the bursts before stays for some of them. */
		for (uint32_t n = 1 + next(&seed) % 20; n != 0; n--)
			kept += one_burst(b, &mix, &seed);
	}
	assert_true(kept > BURSTS * 64);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			WIRE_01_each_packet_as_alone, bed_setup, bed_teardown),
	};

	return cmocka_run_group_tests_name("pipeline_headers", tests, bed_group_setup, NULL);
}
