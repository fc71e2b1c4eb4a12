/* SPDX-License-Identifier: BSD-3-Clause */
#include "frames.h"

#include <errno.h>
#include <string.h>

#include <rte_mbuf.h>

#include "be.h"
#include "env.h"
#include "net.h"
#include "qp_flags.h"

#define FRAME_MIN 60 /* without FCS */

enum { TYPE_VLAN = 0x8100 };

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
send_by(struct net *net, const struct frames_cnp *of, const uint8_t *frame, uint32_t len)
{
	const struct env_port *p = &net->env->w.ports[of->port];
	struct mbox_msg msg = { .type = MBOX_TX,
		.tx = { .cnp_of = of->qpn, .port = p->id | (of->local ? QP_OUT_LOCAL : 0) } };
	const uint32_t padded = len < FRAME_MIN ? FRAME_MIN : len;
	struct rte_mbuf *m = rte_pktmbuf_alloc(p->pool);
	char *data = m != NULL ? rte_pktmbuf_append(m, (uint16_t)padded) : NULL;

	if (data == NULL) {
		rte_pktmbuf_free(m);
		net->frames.tx_lost++;
		return -ENOBUFS;
	}
	memcpy(data, frame, len);
	memset(data + len, 0, padded - len);
	msg.tx.m = m;
	if (mbox_send_down(net->env->w.workers[of->worker].mbox, &msg) != 0) {
		rte_pktmbuf_free(m);
		net->frames.tx_lost++;
		return -ENOBUFS;
	}
	net->frames.tx++;
	return 0;
}

int
frames_send(struct net *net, uint16_t port, const uint8_t *frame, uint32_t len)
{
	const struct frames_cnp none = { 0, port, net->env->w.ports[port].worker, false };

	return send_by(net, &none, frame, len);
}

int
frames_send_cnp(struct net *net, const struct frames_cnp *of, const uint8_t *frame, uint32_t len)
{
	return send_by(net, of, frame, len);
}

bool
frames_is_other(const struct wire_port *us, const uint8_t mac[6])
{
	static const uint8_t none[6];

	return (mac[0] & 1) == 0 && memcmp(mac, none, sizeof(none)) != 0 &&
	       memcmp(mac, us->mac, sizeof(us->mac)) != 0;
}

void
frames_link_local(const struct wire_port *us, uint8_t out[16])
{
	memset(out, 0, 16);
	out[0] = 0xfe;
	out[1] = 0x80;
	memcpy(out + 8, us->mac, 3);
	out[8] ^= 2;
	out[11] = 0xff;
	out[12] = 0xfe;
	memcpy(out + 13, us->mac + 3, 3);
}
