/* SPDX-License-Identifier: BSD-3-Clause */
/* Priorities of a port that takes a few frames at a time, as a full one does. */
#include "bed.h"

#include <rte_ethdev.h>

enum { TAKES = 3, LIGHT = 1, HEAVY = 2, OTHER = 0x12, OTHER_PEER = 0x23 };

static uint64_t bytes[2]; /* of the light and the heavy one */
static bool is_shut;

static uint16_t
take_a_few(void *queue, struct rte_mbuf **m, uint16_t n)
{
	const uint16_t taken = is_shut ? 0 : RTE_MIN(n, (uint16_t)TAKES);

	(void)queue;
	for (uint16_t i = 0; i < taken; i++) {
		/* Ethernet 14, IPv4 20, UDP 8; the low byte of the destination's number. */
		const uint8_t qpn = rte_pktmbuf_mtod(m[i], const uint8_t *)[42 + 7];

		assert_true(qpn == PEER_QPN || qpn == OTHER_PEER);
		bytes[qpn == OTHER_PEER] += m[i]->pkt_len;
		rte_pktmbuf_free(m[i]);
	}
	return taken;
}

static void
goes_by(struct bed *b, struct qp *qp, uint8_t prio)
{
	struct qp_attr attr = qp->attr;

	attr.path.queue = prio_queue(b->conf.ports[0].prio, prio);
	assert_int_equal(bed_modify(b, qp, &attr, QP_ATTR_AV), 0);
}

static void
ask(struct bed *b, uint32_t dest, uint32_t p)
{
	struct wire_fields f = read_request(p, MR_VA, 65536);

	f.dest_qpn = dest;
	bed_send(b, &f);
}

/* FLOW-10: who waits for room has the same share of it as of a port that takes everything. */
static void
FLOW_10_shares_of_a_full_port(void **state)
{
	static struct prio_port prio;
	struct bed *b = *state;
	const eth_tx_burst_t real = rte_eth_fp_ops[bed_port()].tx_pkt_burst;
	struct qp *other;
	uint64_t all;

	prio = (struct prio_port){ .first = 1, .weight = { [LIGHT] = 1, [HEAVY] = 3 } };
	memset(prio.map.dscp, PRIO_NONE, sizeof(prio.map.dscp));
	bed_qp_gone(b, b->qp);
	b->conf.ports[0].prio = &prio;
	bed_worker_again(b);
	b->qp = bed_qp(b, QPN, PEER_QPN);
	other = bed_qp(b, OTHER, OTHER_PEER);
	goes_by(b, b->qp, LIGHT);
	goes_by(b, other, HEAVY);
	rte_eth_fp_ops[bed_port()].tx_pkt_burst = take_a_few;
	for (uint32_t n = 0; n < 4; n++) {
		ask(b, QPN, E + 64 * n);
		ask(b, OTHER, E + 64 * n);
	}
	is_shut = true;
	for (int i = 0; i < 50; i++)
		worker_poll(b->w, b->now);
	is_shut = false;
	memset(bytes, 0, sizeof(bytes));
	for (int k = 0; bytes[1] < 200 * PMTU && k < 1000; k++)
		worker_poll(b->w, b->now);
	assert_true(bytes[1] >= 200 * PMTU);
	all = bytes[0] + bytes[1];
	print_message("# %llu of %llu\n", (unsigned long long)bytes[0], (unsigned long long)all);
	assert_in_range(bytes[0], all * 24 / 100, all * 26 / 100);
	for (int i = 0; i < 500; i++)
		worker_poll(b->w, b->now);
	rte_eth_fp_ops[bed_port()].tx_pkt_burst = real;
	bed_qp_gone(b, other);
}

int
main(void)
{
	const struct CMUnitTest tests[] = { TEST(FLOW_10_shares_of_a_full_port) };

	return cmocka_run_group_tests(tests, bed_group_setup, NULL);
}
