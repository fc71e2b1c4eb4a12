/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is a packet from its QP's peer? Each kind of path against each kind of packet, by the test that
 * a good packet passes and by the one that names all faults: both find what the path says.
 */
#include <string.h>

#include "bed.h"
#include "stage_05_faults.h"
#include "worker.h"

/** Tags: none, or the VLAN and priority of one. */
enum { NO_TAG = -1 };
static const int tags[] = { NO_TAG, 0, 5 << 13, 7, 5 << 13 | 7, 8, 0xfff };

struct kind {
	bool ipv6;
	int tag;
};

static void
address(uint8_t *ip, bool ipv6, uint8_t last)
{
	static const uint8_t four[4] = { 10, 1, 2 }, six[16] = { 0xfd };

	memset(ip, 0, 16);
	memcpy(ip, ipv6 ? six : four, ipv6 ? sizeof(six) : sizeof(four));
	ip[ipv6 ? 15 : 3] = last;
}

static void
kind_set(struct wire_path *path, struct kind k, uint8_t src, uint8_t dst)
{
	path->ipv6 = k.ipv6;
	path->vlan = k.tag != NO_TAG;
	path->vlan_tci = k.tag != NO_TAG ? (uint16_t)k.tag : 0;
	address(path->src_ip, k.ipv6, src);
	address(path->dst_ip, k.ipv6, dst);
}

static uint16_t
vlan_of(struct kind k)
{
	return k.tag == NO_TAG ? 0 : k.tag & 0xfff;
}

/** Two kinds by one number. */
static struct kind
kind_of(size_t i)
{
	return (struct kind){ i % 2 != 0, tags[i / 2] };
}
enum { KINDS = 2 * ARRAY_LEN(tags) };

static void
judged(const struct bed *b, const struct wire_pkt *p, bool want, const char *what)
{
	const bool first = is_fast(b->qp, p, b->w->steer[0]);
	const bool all = pipeline_faults_all(b->qp, QPS_RTS, p, b->qp->port) == 0;

	if (first != want || all != want)
		fail_msg("%s: at once %d, by all faults %d; it is %d", what, first, all, want);
}

/** Of a QP that is not as most are, a packet is always looked at closely. */
static void
looked_at_closely(const struct bed *b, const struct wire_pkt *p)
{
	static const uint32_t odd[] = { QPF_CHECK_SRC_MAC, QPF_MIGRATION, QPF_RESOLVED };

	for (size_t i = 0; i < ARRAY_LEN(odd); i++) {
		b->qp->flags ^= odd[i];
		assert_false(is_fast(b->qp, p, b->w->steer[0]));
		b->qp->flags ^= odd[i];
	}
}

/** A frame of this kind, and the same with each byte of its source address another one. */
static uint32_t
frame_judged(struct bed *b, struct kind at, struct kind k, bool want_df)
{
	const struct wire_fields f = send_only(E, 8);
	const bool alike = at.ipv6 == k.ipv6 && vlan_of(at) == vlan_of(k);
	struct wire_path path = bed_path();
	struct rte_mbuf *m;
	struct wire_pkt p CACHE_ALIGNED;
	uint8_t *frame, *ip, *src;

	kind_set(&path, k, 2, 1);
	m = bed_frame_on(&path, &f);
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	assert_int_equal(
		wire_parse_any(&b->conf.ports[0].addr, frame, m->data_len, &p), WIRE_CLASS_ROCE);
	ip = frame + p.l3_off;
	src = ip + (k.ipv6 ? 8 : 12);
	judged(b, &p, alike, "from the peer");
	looked_at_closely(b, &p);
	for (uint32_t i = 0; i < (k.ipv6 ? 16 : 4); i++) {
		src[i] ^= 0x10;
		judged(b, &p, false, "from another one");
		src[i] ^= 0x10;
	}
	if (!k.ipv6) {
		ip[6] = 0;
		judged(b, &p, alike && !want_df, "without DF");
	}
	rte_pktmbuf_free(m);
	return alike;
}

/* RX-SYN-02, RX-SYN-05, RX-SYN-27, RX-SYN-33, WIRE-01: version, source, tag and DF of the path. */
static void
RX_SYN_02_05_27_from_the_peer(void **state)
{
	struct bed *b = *state;
	uint32_t alike = 0;

	for (size_t i = 0; i < KINDS; i++) {
		struct qp_attr attr = b->qp->attr;

		kind_set(&attr.path, kind_of(i), 1, 2);
		assert_int_equal(bed_modify(b, b->qp, &attr, QP_ATTR_AV), 0);
		for (uint32_t df = 0; df < 2; df++) {
			b->qp->flags &= ~(uint32_t)QPF_REQUIRE_DF;
			b->qp->flags |= df != 0 ? QPF_REQUIRE_DF : 0;
			for (size_t k = 0; k < KINDS; k++)
				alike += frame_judged(b, kind_of(i), kind_of(k), df != 0);
		}
	}
	/* Of seven tags three are VLAN 0, two are VLAN 7. */
	assert_int_equal(alike, 2 * 2 * (3 * 3 + 2 * 2 + 1 + 1));
}

/* UD-02, UD-10: a datagram may be from anybody and of any VLAN, but shows the Q_Key. */
static void
UD_02_a_datagram_from_anybody(void **state)
{
	enum { UD_QPN = 0x55, QKEY = 0x11111111 };
	const struct qp_alloc_params params = {
		.type = QPT_UD, .max_recv_wr = 1, .max_recv_sge = 1
	};
	struct bed *b = *state;
	struct qp *qp = bed_qp_with(b, UD_QPN, 0, &params);
	struct wire_fields f = send_only(E, 8);

	qp->qkey = QKEY;
	f.opcode = OP_UD_SEND_ONLY;
	f.dest_qpn = UD_QPN;
	for (size_t k = 0; k < 2 * KINDS; k++) {
		const bool good = k < KINDS;
		struct wire_path path = bed_path();
		struct wire_pkt p CACHE_ALIGNED;
		struct rte_mbuf *m;

		kind_set(&path, kind_of(k % KINDS), 77, 1);
		f.deth = (struct wire_deth){ .qkey = QKEY + !good, .src_qpn = 3 };
		m = bed_frame_on(&path, &f);
		assert_int_equal(wire_parse_any(&b->conf.ports[0].addr,
					 rte_pktmbuf_mtod(m, uint8_t *), m->data_len, &p),
			WIRE_CLASS_ROCE);
		assert_int_equal(is_fast_datagram(qp, &p, b->w->steer[0]), good);
		assert_int_equal(pipeline_faults_all(qp, QPS_RTS, &p, qp->port),
			good ? 0 : FAULT_BIT(FAULT_QKEY));
		rte_pktmbuf_free(m);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(RX_SYN_02_05_27_from_the_peer),
		TEST(UD_02_a_datagram_from_anybody),
	};

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
