/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "be.h"
#include "internal.h"

#define FRAME_MIN 60 /* without FCS */

enum { TYPE_IPV4 = 0x0800, TYPE_ARP = 0x0806, TYPE_VLAN = 0x8100, TYPE_IPV6 = 0x86dd };
enum { PROTO_ICMP = 1, PROTO_ICMPV6 = 58 };

uint32_t
frames_header(
	uint8_t *out, const uint8_t dst[6], const uint8_t src[6], uint16_t tci, uint16_t ethertype)
{
	uint32_t at = 12;

	memcpy(out, dst, 6);
	memcpy(out + 6, src, 6);
	if (tci != 0) {
		be16_store(out + at, TYPE_VLAN);
		be16_store(out + at + 2, tci);
		at += WIRE_VLAN_LEN;
	}
	be16_store(out + at, ethertype);
	return at + 2;
}

uint16_t
frames_checksum(uint64_t sum, const uint8_t *p, uint32_t len)
{
	uint32_t i;

	for (i = 0; i + 1 < len; i += 2)
		sum += be16_load(p + i);
	if (i < len)
		sum += (uint32_t)p[i] << 8;
	while (sum >> 16 != 0)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* A frame to a worker that can send on the port. */
static int
send_by(struct control *c, uint16_t port, uint16_t worker, uint32_t cnp_of, const uint8_t *frame,
	uint32_t len)
{
	const struct env_port *p = &c->env.w.ports[port];
	struct mbox_msg msg = { .type = MBOX_TX, .tx = { .cnp_of = cnp_of, .port = p->id } };
	const uint32_t padded = len < FRAME_MIN ? FRAME_MIN : len;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	char *data = m != NULL ? rte_pktmbuf_append(m, (uint16_t)padded) : NULL;

	if (data == NULL) {
		rte_pktmbuf_free(m);
		c->frames.tx_lost++;
		return -ENOBUFS;
	}
	memcpy(data, frame, len);
	memset(data + len, 0, padded - len);
	msg.tx.m = m;
	if (mbox_send_down(c->env.w.workers[worker].mbox, &msg) != 0) {
		rte_pktmbuf_free(m);
		c->frames.tx_lost++;
		return -ENOBUFS;
	}
	c->frames.tx++;
	return 0;
}

int
frames_send(struct control *c, uint16_t port, const uint8_t *frame, uint32_t len)
{
	return send_by(c, port, c->env.w.ports[port].worker, 0, frame, len);
}

int
frames_send_cnp(struct control *c, struct qp_rec *rec, const uint8_t *frame, uint32_t len)
{
	return send_by(c, (uint16_t)rec->port, rec->qp->worker, rec->qp->qpn, frame, len);
}

/* Ethernet and at most one tag. @return false: too short. */
static bool
open_frame(struct frame_in *f, uint32_t len)
{
	uint32_t at = WIRE_ETH_LEN;

	if (len < WIRE_ETH_LEN)
		return false;
	f->ethertype = be16_load(f->l2 + 12);
	if (f->ethertype == TYPE_VLAN) {
		at += WIRE_VLAN_LEN;
		if (len < at)
			return false;
		f->tagged = true;
		f->tci = be16_load(f->l2 + 14);
		f->ethertype = be16_load(f->l2 + 16);
	}
	f->l3 = f->l2 + at;
	f->l3_len = len - at;
	return true;
}

static void
dispatch(struct control *c, const struct frame_in *f)
{
	static const uint8_t broadcast[6] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	const uint8_t *mac = c->env.w.ports[f->port].addr->mac;

	if (memcmp(f->l2, mac, 6) != 0 && memcmp(f->l2, broadcast, 6) != 0 &&
		!(f->ethertype == TYPE_IPV6 && f->l2[0] == 0x33 && f->l2[1] == 0x33)) {
		c->frames.rx_ignored++;
		return;
	}
	if (f->ethertype == TYPE_ARP)
		arp_receive(c, f);
	else if (f->ethertype == TYPE_IPV4 && f->l3_len >= WIRE_IPV4_LEN && f->l3[9] == PROTO_ICMP)
		icmp_receive(c, f);
	else if (f->ethertype == TYPE_IPV6 && f->l3_len >= WIRE_IPV6_LEN &&
		 f->l3[6] == PROTO_ICMPV6)
		icmp6_receive(c, f);
	else
		c->frames.rx_ignored++;
}

void
frames_receive(struct control *c, struct rte_mbuf *m, uint16_t dpdk_port)
{
	const int port = env_port_index(&c->env, dpdk_port);
	const uint32_t len = rte_pktmbuf_pkt_len(m);
	struct frame_in f = { .port = (uint16_t)port };

	c->frames.rx++;
	if (port >= 0 && len <= sizeof(c->frame_rx))
		f.l2 = rte_pktmbuf_read(m, 0, len, c->frame_rx);
	if (f.l2 != NULL && open_frame(&f, len))
		dispatch(c, &f);
	else
		c->frames.rx_ignored++;
	rte_pktmbuf_free(m);
}
