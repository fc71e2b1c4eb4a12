/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "admin.h"
#include "conf_mcast.h"
#include "wire_group.h"

enum { ECN_MASK = 3, ECN_ECT0 = 2 };

/* Constant for a QP, different between QPs (WIRE-15). */
static uint16_t
source_port(uint32_t qpn, const struct conf_ip *peer)
{
	uint32_t h = qpn * 0x9e3779b1u;

	for (unsigned int i = 0; i < sizeof(peer->addr); i++)
		h = (h ^ peer->addr[i]) * 0x01000193u;
	h ^= h >> 15;
	return (uint16_t)(0xc000 | (h & 0x3fff));
}

/* As Linux makes it of a label (ibv_flow_label_to_udp_sport()): networks spread flows by either. */
static uint16_t
port_of_label(uint32_t label)
{
	return (uint16_t)(0xc000 | ((label & 0x3fff) ^ (label >> 14)));
}

/** LB-01, LB-06: the port that a path leads to. @return -1: none, or the QP is to use the wire. */
static int
local_port(const struct admin *adm, const struct admin_sender *from, const struct admin_way *way)
{
	const struct conf_ah *ah = way->ah;
	const bool ipv6 = ah->dest_ip.family == 6;
	const int port =
		env_port_inside(adm->env, (uint32_t)way->port, from->wire, ipv6, ah->dest_ip.addr);

	if (port < 0)
		return -1;
	/* Whoever names the MAC of somebody else means somebody else. */
	if ((ah->given & CONF_AH_DEST_MAC) != 0 &&
		memcmp(ah->dest_mac, adm->env->w.ports[port].addr->mac, sizeof(ah->dest_mac)) != 0)
		return -1;
	return port;
}

/** FLOW-09: the queue of the priority that the path's frames have. */
static uint8_t
queue_of(const struct prio_port *p, const struct wire_path *path)
{
	return prio_queue(p, prio_of(&p->map, path->vlan, path->vlan_tci, path->tos));
}

int
admin_path_fill(struct admin *adm, const struct admin_sender *from, const struct admin_way *way,
	struct refusal *r)
{
	const struct conf_port *port = &adm->env->w.conf->ports[way->port];
	const struct wire_port *us = adm->env->w.ports[way->port].addr;
	const struct conf_ah *ah = way->ah;
	struct wire_path *path = way->path;
	const bool ipv6 = ah->dest_ip.family == 6;
	int local;

	if (ipv6 ? !us->has_ipv6 : !us->has_ipv4)
		return refuse(r, EINVAL,
			"%s.dest_ip is IPv%d, and port \"%s\" has no IPv%d address", way->key,
			ipv6 ? 6 : 4, port->name, ipv6 ? 6 : 4);
	if (admin_permit(adm, from->owner, way->port, way->key, ah, r) != 0)
		return -r->err;
	*path = (struct wire_path){ .ipv6 = ipv6,
		.ttl = ah->hop_limit,
		.tos = (uint8_t)((ah->traffic_class & ~ECN_MASK) | (from->ect ? ECN_ECT0 : 0)),
		.sport = ah->flow_label != 0 ? port_of_label(ah->flow_label)
					     : source_port(from->qpn, &ah->dest_ip),
		.flow_label = ah->flow_label };
	memcpy(path->smac, us->mac, sizeof(path->smac));
	memcpy(path->src_ip, ipv6 ? us->ipv6 : us->ipv4, ipv6 ? 16 : 4);
	memcpy(path->dst_ip, ah->dest_ip.addr, ipv6 ? 16 : 4);
	if ((ah->given & CONF_AH_VLAN) != 0) {
		path->vlan = true;
		path->vlan_tci = (uint16_t)(ah->vlan_priority << 13 | ah->vlan);
	}
	if ((ah->given & CONF_AH_DEST_MAC) != 0)
		memcpy(path->dmac, ah->dest_mac, sizeof(path->dmac));
	else if (conf_ip_is_group(&ah->dest_ip))
		wire_group_mac(ipv6, ah->dest_ip.addr, path->dmac);
	local = local_port(adm, from, way);
	path->local = local >= 0;
	if (adm->env->w.ports[way->port].prio != NULL && !path->local)
		path->queue = queue_of(adm->env->w.ports[way->port].prio, path);
	if (path->local)
		memcpy(path->dmac, adm->env->w.ports[local].addr->mac, sizeof(path->dmac));
	return 0;
}

int
admin_path_make(struct admin *adm, const struct admin_qp *rec, const struct admin_way *way,
	struct refusal *r)
{
	const struct admin_sender from = { .owner = rec->shared->owner,
		.qpn = rec->qpn,
		.ect = admin_knobs_ect(&rec->shared->knobs),
		.wire = rec->shared->knobs.path_local == KNOB_path_local_wire };

	return admin_path_fill(adm, &from, way, r);
}

int
admin_path_mtu_check(
	struct admin *adm, const struct admin_way *way, uint32_t path_mtu, struct refusal *r)
{
	const struct conf_port *port = &adm->env->w.conf->ports[way->port];
	const uint32_t max_frame = adm->env->w.ports[way->port].max_frame;
	const struct conf_ah *ah = way->ah;
	const bool ipv6 = ah->dest_ip.family == 6;
	const uint32_t datagram = conf_datagram_len(path_mtu, ipv6);
	const uint32_t frame = conf_frame_len(path_mtu, ipv6, (ah->given & CONF_AH_VLAN) != 0);

	if (datagram > port->mtu)
		return refuse(r, EINVAL,
			"path_mtu %u needs IP datagrams of %u bytes, and port \"%s\" has mtu %u: "
			"raise the port's mtu or lower path_mtu",
			path_mtu, datagram, port->name, port->mtu);
	if (max_frame != 0 && frame > max_frame)
		return refuse(r, EINVAL,
			"path_mtu %u needs frames of %u bytes, and device %s of port \"%s\" "
			"carries %u: raise the device's frame size or lower path_mtu",
			path_mtu, frame, port->device, port->name, max_frame);
	return 0;
}

/* RT-04: what can be done about an address that nobody can send to. */
static int
unreachable(const struct admin *adm, const struct admin_way *way, struct refusal *r)
{
	const struct route_addr dest = conf_route_addr(&way->ah->dest_ip);
	const char *port = adm->env->w.conf->ports[way->port].name;
	char text[ROUTE_TEXT];

	return refuse(r, ENETUNREACH,
		"%s.dest_ip: no route of port \"%s\" reaches %s: add one (rocelanectl route add %s "
		"PREFIX via GATEWAY; in the file \"%s\" or \"routes\" of the port), or give %s.dest_mac",
		way->key, port, route_addr_text(&dest, text), port,
		dest.family == 6 ? "gateway6" : "gateway", way->key);
}

static int
resolve(struct admin *adm, const struct admin_way *way, bool must, struct refusal *r)
{
	const struct conf_ah *ah = way->ah;
	struct neigh_key key = { .port = (uint16_t)way->port,
		.vlan = (ah->given & CONF_AH_VLAN) != 0 ? ah->vlan : 0 };
	int rc;

	/* UD-31: a group's MAC follows from its address. */
	if ((ah->given & CONF_AH_DEST_MAC) != 0 || way->path->local ||
		conf_ip_is_group(&ah->dest_ip)) {
		neigh_leave(adm->net, way->link);
		*way->resolved = true;
		return 0;
	}
	key.no_route = !routes_hop(adm->net, key.port, &ah->dest_ip, &key.ip);
	if (key.no_route && must)
		return unreachable(adm, way, r);
	rc = neigh_use(adm->net, &key, way->link);
	if (rc == -EDQUOT)
		return refuse(r, EDQUOT,
			"applications of user %u have paths to %u neighbours, and more is not "
			"for one user: give %s.dest_mac",
			way->link->uid, NEIGH_USER, way->key);
	if (rc != 0)
		return refuse(r, -rc, "no room for another neighbour: give %s.dest_mac", way->key);
	*way->resolved = neigh_has_mac(way->link->neigh);
	if (*way->resolved)
		memcpy(way->path->dmac, way->link->neigh->mac, sizeof(way->path->dmac));
	return 0;
}

int
admin_path_resolve(struct admin *adm, const struct admin_way *way, struct refusal *r)
{
	return resolve(adm, way, true, r);
}

void
admin_path_resolve_again(struct admin *adm, const struct admin_way *way)
{
	struct refusal ignored;

	resolve(adm, way, false, &ignored);
}

uint16_t
admin_path_datagram(const struct admin *adm, const struct admin_qp *rec)
{
	const struct conf_qp *conf = &rec->shared->conf;
	const uint32_t fits = conf_path_mtu(adm->env->w.conf->ports[rec->port].mtu);
	const bool less = (conf->given & QP_ATTR_PATH_MTU) != 0 && conf->path_mtu < fits;

	return (uint16_t)(less ? conf->path_mtu : fits);
}
