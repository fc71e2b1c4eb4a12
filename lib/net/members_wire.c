/* SPDX-License-Identifier: BSD-3-Clause */
/* IGMP and MLD: questions in, reports out. Each has one group: there is no need for few frames. */
#include "members.h"

#include <string.h>

#include "be.h"
#include "env.h"
#include "net.h"
#include "wire_group.h"

enum { TYPE_IPV4 = 0x0800, TYPE_IPV6 = 0x86dd, PROTO_IGMP = 2, PROTO_ICMPV6 = 58 };
enum { IPV4_ALERT_LEN = WIRE_IPV4_LEN + 4, IPV6_ALERT_LEN = WIRE_IPV6_LEN + 8 };
enum { TOS_CONTROL = 0xc0 };

enum { IGMP_QUERY = 0x11, IGMP_REPORT_1 = 0x12, IGMP_REPORT_2 = 0x16, IGMP_LEAVE = 0x17 };
enum { IGMP_REPORT_3 = 0x22, IGMP_LEN = 8, IGMP_QUERY_3_LEN = 12, IGMP_REPORT_3_LEN = 16 };
enum { MLD_QUERY = 130, MLD_REPORT_1 = 131, MLD_DONE = 132, MLD_REPORT_2 = 143 };
enum { MLD_LEN = 24, MLD_QUERY_2_LEN = 28, MLD_REPORT_2_LEN = 28 };
enum { OPT_PAD1 = 0, OPT_PADN = 1, OPT_ALERT = 5, ALERT_MLD = 0 };

/* RFC 3376, 4.2.12: filter modes. We never name sources. */
static const uint8_t record_of[] = { [MEMBER_IS] = 2, [MEMBER_JOINS] = 4, [MEMBER_LEAVES] = 3 };

static const uint8_t all_routers4[4] = { 224, 0, 0, 2 }, reports4[4] = { 224, 0, 0, 22 };
static const uint8_t all_routers6[16] = { 0xff, 0x02, [15] = 2 };
static const uint8_t reports6[16] = { 0xff, 0x02, [15] = 0x16 };

/* ---- out ------------------------------------------------------------------------------------- */

/* Where it goes, and with which type; NULL: this version has no such report. */
static const uint8_t *
igmp_to(const struct member *m, enum member_report why, uint8_t version, uint8_t *type)
{
	if (version == 3) {
		*type = IGMP_REPORT_3;
		return reports4;
	}
	if (why == MEMBER_LEAVES) {
		*type = IGMP_LEAVE;
		return version == 2 ? all_routers4 : NULL;
	}
	*type = version == 2 ? IGMP_REPORT_2 : IGMP_REPORT_1;
	return m->group.addr;
}

static void
igmp_report(struct net *net, const struct member *m, enum member_report why, uint8_t version,
	uint16_t tci)
{
	const uint32_t len = version == 3 ? IGMP_REPORT_3_LEN : IGMP_LEN;
	const struct wire_port *us = net->env->w.ports[m->port].addr;
	uint8_t frame[WIRE_ETH_LEN + WIRE_VLAN_LEN + IPV4_ALERT_LEN + IGMP_REPORT_3_LEN] = { 0 };
	uint8_t mac[6], type, *ip, *igmp;
	const uint8_t *to = igmp_to(m, why, version, &type);
	uint32_t at;

	if (to == NULL)
		return;
	wire_group_mac(false, to, mac);
	at = frames_header(frame, mac, us->mac, tci, TYPE_IPV4);
	ip = frame + at;
	igmp = ip + IPV4_ALERT_LEN;
	ip[0] = 0x46;
	ip[1] = TOS_CONTROL;
	be16_store(ip + 2, (uint16_t)(IPV4_ALERT_LEN + len));
	be16_store(ip + 6, WIRE_IPV4_DF);
	ip[8] = 1;
	ip[9] = PROTO_IGMP;
	memcpy(ip + 12, us->ipv4, 4);
	memcpy(ip + 16, to, 4);
	ip[20] = 0x94; /* router alert, RFC 2113 */
	ip[21] = 4;
	be16_store(ip + 10, frames_checksum(0, ip, IPV4_ALERT_LEN));
	igmp[0] = type;
	if (version == 3) {
		igmp[7] = 1; /* record */
		igmp[8] = record_of[why];
		memcpy(igmp + 12, m->group.addr, 4);
	} else {
		memcpy(igmp + 4, m->group.addr, 4);
	}
	be16_store(igmp + 2, frames_checksum(0, igmp, len));
	frames_send(net, m->port, frame, at + IPV4_ALERT_LEN + len);
}

static void
mld_report(struct net *net, const struct member *m, enum member_report why, uint8_t version,
	uint16_t tci)
{
	const uint32_t len = version == 2 ? MLD_REPORT_2_LEN : MLD_LEN;
	const struct wire_port *us = net->env->w.ports[m->port].addr;
	const bool leaves = why == MEMBER_LEAVES;
	const uint8_t *to = version == 2 ? reports6 : leaves ? all_routers6 : m->group.addr;
	uint8_t frame[WIRE_ETH_LEN + WIRE_VLAN_LEN + IPV6_ALERT_LEN + MLD_REPORT_2_LEN] = { 0 };
	uint8_t mac[6], *ip, *mld;
	uint32_t at;

	wire_group_mac(true, to, mac);
	at = frames_header(frame, mac, us->mac, tci, TYPE_IPV6);
	ip = frame + at;
	mld = ip + IPV6_ALERT_LEN;
	ip[0] = 0x60;
	be16_store(ip + 4, (uint16_t)(IPV6_ALERT_LEN - WIRE_IPV6_LEN + len));
	ip[7] = 1;
	frames_link_local(us, ip + 8);
	memcpy(ip + 24, to, 16);
	ip[WIRE_IPV6_LEN] = PROTO_ICMPV6;
	ip[WIRE_IPV6_LEN + 2] = OPT_ALERT; /* RFC 2711: of MLD */
	ip[WIRE_IPV6_LEN + 3] = 2;
	ip[WIRE_IPV6_LEN + 6] = OPT_PADN;
	mld[0] = version == 2 ? MLD_REPORT_2 : leaves ? MLD_DONE : MLD_REPORT_1;
	if (version == 2) {
		mld[7] = 1; /* record */
		mld[8] = record_of[why];
		memcpy(mld + 12, m->group.addr, 16);
	} else {
		memcpy(mld + 8, m->group.addr, 16);
	}
	be16_store(mld + 2, frames_checksum6(ip, mld, len));
	frames_send(net, m->port, frame, at + IPV6_ALERT_LEN + len);
}

void
members_report(struct net *net, const struct member *m, enum member_report why, uint8_t version,
	uint16_t tci)
{
	(m->group.family == 6 ? mld_report : igmp_report)(net, m, why, version, tci);
}

/* ---- in -------------------------------------------------------------------------------------- */

/* A code with a mantissa of so many bits, and above it three of an exponent, and a one. */
static uint32_t
response_code(uint32_t code, uint32_t bits)
{
	const uint32_t one = UINT32_C(1) << bits;

	if (code < one << 3)
		return code;
	return ((code & (one - 1)) | one) << ((code >> bits & 7) + 3);
}

void
igmp_receive(struct net *net, const struct frame_in *f)
{
	const struct wire_port *us = net->env->w.ports[f->port].addr;
	const uint8_t *ip = f->l3, *igmp;
	const uint32_t hdr = (ip[0] & 0xfu) * 4, total = be16_load(ip + 2);
	struct member_query q = { .family = 4, .port = f->port, .tci = f->tci, .version = 3 };
	static const uint8_t all[4];
	uint32_t len;

	if (ip[0] >> 4 != 4 || hdr < WIRE_IPV4_LEN || total < hdr + IGMP_LEN || total > f->l3_len ||
		!us->has_ipv4 || frames_checksum(0, ip, hdr) != 0) {
		net->frames.rx_ignored++;
		return;
	}
	igmp = ip + hdr;
	len = total - hdr;
	if (igmp[0] != IGMP_QUERY || (len > IGMP_LEN && len < IGMP_QUERY_3_LEN) ||
		frames_checksum(0, igmp, len) != 0) {
		net->frames.rx_ignored++;
		return;
	}
	q.within = response_code(igmp[1], 4) * (TIME_NS_PER_S / 10);
	if (len == IGMP_LEN) {
		q.version = igmp[1] != 0 ? 2 : 1;
		q.within = igmp[1] * (TIME_NS_PER_S / 10);
	}
	if (q.version == 1)
		q.within = 10 * TIME_NS_PER_S;
	q.group = q.version == 1 || memcmp(igmp + 4, all, 4) == 0 ? NULL : igmp + 4;
	members_asked(net, &q);
}

/* Routers ask from an address of the link, and only that far. */
static bool
is_from_router(const uint8_t *ip)
{
	return ip[7] == 1 && ip[8] == 0xfe && (ip[9] & 0xc0) == 0x80;
}

/* RFC 3810, 6.2: a question has the option that makes routers look at it. */
static bool
is_alert(const uint8_t *options, uint32_t len)
{
	for (uint32_t at = 2; at + 4 <= len;
		at += options[at] == OPT_PAD1 ? 1 : options[at + 1] + 2u)
		if (options[at] == OPT_ALERT)
			return options[at + 1] == 2 && be16_load(options + at + 2) == ALERT_MLD;
	return false;
}

void
mld_receive(struct net *net, const struct frame_in *f)
{
	static const uint8_t all[16];
	const uint8_t *ip = f->l3, *options = ip + WIRE_IPV6_LEN;
	const uint32_t payload = be16_load(ip + 4);
	const uint32_t skip = f->l3_len >= WIRE_IPV6_LEN + 8 ? (options[1] + 1u) * 8 : 0;
	struct member_query q = { .family = 6, .port = f->port, .tci = f->tci };
	const uint8_t *mld = options + skip;
	uint32_t len;

	if (skip == 0 || ip[0] >> 4 != 6 || payload > f->l3_len - WIRE_IPV6_LEN ||
		payload < skip + MLD_LEN || options[0] != PROTO_ICMPV6 || !is_from_router(ip) ||
		!is_alert(options, skip) || !net->env->w.ports[f->port].addr->has_ipv6) {
		net->frames.rx_ignored++;
		return;
	}
	len = payload - skip;
	if (mld[0] != MLD_QUERY || (len > MLD_LEN && len < MLD_QUERY_2_LEN) ||
		frames_checksum6(ip, mld, len) != 0) {
		net->frames.rx_ignored++;
		return;
	}
	q.version = len == MLD_LEN ? 1 : 2;
	q.within = be16_load(mld + 4) * TIME_NS_PER_MS;
	if (q.version == 2)
		q.within = response_code(be16_load(mld + 4), 12) * TIME_NS_PER_MS;
	q.group = memcmp(mld + 8, all, 16) == 0 ? NULL : mld + 8;
	members_asked(net, &q);
}
