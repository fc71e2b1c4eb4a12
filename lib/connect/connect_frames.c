/* SPDX-License-Identifier: BSD-3-Clause */
/* Datagrams of QP 1: frames to messages and back (CM-01). */
#include <string.h>

#include "conf_mcast.h"
#include "connect_priv.h"
#include "frames.h"
#include "icrc.h"
#include "log.h"
#include "wire_build.h"

enum { PKEY = 0xffff, SPORT = 0xc001, HOPS = 64, GID_IPV4 = 12 };

#define TALKING_NS (2 * TIME_NS_PER_MS)

bool
connect_is_talking(const struct connect *cx)
{
	return cx->talked != 0 && cx->env->now - cx->talked < TALKING_NS;
}

static uint16_t *
of_mac(struct connect *cx, const uint8_t *frame)
{
	const uint8_t *mac = frame + 6;
	const uint32_t hash = (be32_load(mac + 2) ^ be16_load(mac)) * UINT32_C(0x9e3779b1);

	return &cx->inbox.of[hash >> 24];
}

/* CM-40: who fills the inbox leaves half of it to others. */
static bool
has_room(struct connect *cx, const uint8_t *frame)
{
	return cx->inbox.n < CONNECT_INBOX / 2 ||
	       (cx->inbox.n < CONNECT_INBOX && *of_mac(cx, frame) < CONNECT_INBOX / 2);
}

bool
connect_inbox_take(struct connect *cx, struct connect_inbox *out)
{
	if (cx->inbox.n == 0)
		return false;
	*out = cx->inbox.at[cx->inbox.head];
	cx->inbox.head = (cx->inbox.head + 1) % CONNECT_INBOX;
	cx->inbox.n--;
	--*of_mac(cx, out->frame);
	return true;
}

void
connect_frame(struct connect *cx, uint16_t port, const uint8_t *frame, uint32_t len)
{
	struct connect_inbox *in;

	if (len > CONNECT_FRAME) {
		cx->drops[CM_DROP_length]++;
		return;
	}
	if (len < WIRE_ETH_LEN || !has_room(cx, frame)) {
		cx->inbox.lost++;
		return;
	}
	in = &cx->inbox.at[(cx->inbox.head + cx->inbox.n++) % CONNECT_INBOX];
	++*of_mac(cx, frame);
	cx->talked = cx->env->now;
	in->port = port;
	in->len = (uint16_t)len;
	memcpy(in->frame, frame, len);
}

/* CM-37: to answer a group, or broadcast, is to let one frame become many. */
static bool
is_a_host(const uint8_t mac[6], const struct conf_ip *ip)
{
	static const uint8_t none[6];

	return (mac[0] & 1) == 0 && memcmp(mac, none, sizeof(none)) != 0 && conf_ip_is_unicast(ip);
}

bool
connect_parse(struct connect *cx, const struct connect_inbox *in, struct cm_packet *out)
{
	const struct wire_port *addr = cx->env->w.ports[in->port].addr;
	const uint8_t *src_mac = in->frame + 6;
	struct conf_ip from, to;
	struct wire_pkt p;
	uint32_t len;

	if (wire_parse(addr, in->frame, in->len, &p) != WIRE_CLASS_ROCE ||
		p.faults != FAULT_BIT(FAULT_DST_QP) || p.payload_off == 0)
		return false;
	len = (p.flags & PKT_IPV6) != 0 ? 16 : 4;
	from = to = (struct conf_ip){ .family = len == 16 ? 6 : 4 };
	memcpy(from.addr, wire_src_ip(&p), len);
	memcpy(to.addr, wire_src_ip(&p) + len, len);
	if (!is_a_host(src_mac, &from)) {
		cx->drops[CM_DROP_source]++;
		return false;
	}
	*out = (struct cm_packet){ .mad = wire_payload(&p),
		.len = p.payload_len,
		.path = { .port = in->port, .has_mac = true } };
	connect_gid(&from, out->path.peer_gid);
	connect_gid(&to, out->path.own_gid);
	memcpy(out->path.peer_mac, src_mac, 6);
	if ((p.flags & PKT_VLAN) != 0)
		out->path.tci = be16_load(in->frame + WIRE_ETH_LEN);
	return true;
}

/* Is it one of our own ports' (LB-01)? */
static bool
is_ours(const struct connect *cx, const struct cm_path *to)
{
	static const uint8_t mapped[GID_IPV4] = { [10] = 0xff, [11] = 0xff };
	const bool ipv4 = memcmp(to->peer_gid, mapped, GID_IPV4) == 0;

	return env_port_inside(cx->env, to->port,
		       cx->env->w.conf->knobs.path_local == KNOB_path_local_wire, !ipv4,
		       to->peer_gid + (ipv4 ? GID_IPV4 : 0)) >= 0;
}

/* Back to where a message came from. */
static struct wire_path
path_back(const struct connect *cx, const struct cm_path *from)
{
	static const uint8_t mapped[GID_IPV4] = { [10] = 0xff, [11] = 0xff };
	const uint32_t at = memcmp(from->own_gid, mapped, GID_IPV4) == 0 ? GID_IPV4 : 0;
	struct wire_path to = { .ipv6 = at == 0,
		.vlan = from->tci != 0,
		.vlan_tci = from->tci,
		.ttl = HOPS,
		.sport = SPORT };

	memcpy(to.smac, cx->env->w.ports[from->port].addr->mac, 6);
	memcpy(to.dmac, from->peer_mac, 6);
	memcpy(to.src_ip, from->own_gid + at, 16 - at);
	memcpy(to.dst_ip, from->peer_gid + at, 16 - at);
	return to;
}

void
connect_send(struct connect *cx, const struct connect_conn *cc, const struct cm_out *out)
{
	const struct wire_fields f = { .opcode = OP_UD_SEND_ONLY,
		.pkey = PKEY,
		.dest_qpn = MAD_QPN,
		.psn = psn(cx->psn),
		.deth = { .qkey = MAD_QKEY, .src_qpn = MAD_QPN },
		.payload = out->mad,
		.payload_len = MAD_LEN };
	const enum cm_message message = mad_message(out->mad);
	uint8_t frame[CONNECT_FRAME];
	const struct frames_cnp way = { .port = out->path.port,
		.worker = cx->env->w.ports[out->path.port].worker,
		.local = is_ours(cx, &out->path) };
	struct wire_path path;
	int len;

	if (cc != NULL && cc->ah != NULL) {
		path = cc->ah->path;
		path.sport = SPORT;
		if (!cc->ah->known) { /* as if it were lost: it is repeated */
			cx->tx_lost++;
			return;
		}
	} else {
		path = path_back(cx, &out->path);
	}
	len = wire_build(&path, &f, 0, frame, sizeof(frame));
	ASSERT(len > 0);
	icrc_seal(cx->env->w.crc, frame, path.vlan ? WIRE_ETH_LEN + WIRE_VLAN_LEN : WIRE_ETH_LEN,
		path.ipv6, (uint32_t)len);
	cx->psn = (cx->psn + 1) & PSN_MASK;
	cx->tx[message]++;
	cx->talked = cx->env->now;
	if (frames_send_cnp(cx->net, &way, frame, (uint32_t)len) != 0)
		cx->tx_lost++;
}
