/* SPDX-License-Identifier: BSD-3-Clause */
/* Ports' links from look to look: what changed, and what there is to say of it. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "env.h"
#include "log.h"
#include "net.h"

#define LINK_EVERY (100 * TIME_NS_PER_MS)

static bool
is_small(const struct link_watch *l, uint32_t datagram)
{
	return l->known && l->seen.interface_mtu != 0 && l->seen.interface_mtu < datagram;
}

bool
link_is_down(const struct net *net, uint16_t port)
{
	const struct link_watch *l = &net->links[port];

	return l->device_lost || (l->known && !l->seen.up);
}

const char *
link_state_name(const struct link_watch *l)
{
	if (l->device_lost)
		return "DOWN";
	if (!l->known)
		return "UNKNOWN";
	return l->seen.up ? "UP" : "DOWN";
}

static void
down_text(const struct link_watch *l, const char *port, char *buf, size_t room)
{
	const char *name = l->seen.interface;

	if (l->device_lost)
		snprintf(buf, room, "the device of port %s is gone", port);
	else if (!l->seen.has_interface)
		snprintf(buf, room, "the link of port %s is down", port);
	else if (l->seen.gone)
		snprintf(buf, room, "the interface of port %s is gone", port);
	else if (!l->seen.set_up)
		snprintf(buf, room, "interface %s of port %s is down: ip link set %s up", name,
			port, name);
	else
		snprintf(buf, room,
			"interface %s of port %s has no carrier: its cable, or its other end, is "
			"down",
			name, port);
}

bool
link_text(const struct net *net, uint16_t port, uint32_t datagram, char *buf, size_t room)
{
	const struct link_watch *l = &net->links[port];
	const struct conf_port *conf = &net->env->w.conf->ports[port];

	if (link_is_down(net, port)) {
		down_text(l, conf->name, buf, room);
		return true;
	}
	if (!is_small(l, datagram))
		return false;
	snprintf(buf, room,
		"interface %s of port %s has mtu %u, and the port's is %u: longer frames are lost "
		"there (ip link set %s mtu %u, or lower the port's mtu)",
		l->seen.interface, conf->name, l->seen.interface_mtu, conf->mtu, l->seen.interface,
		conf->mtu);
	return true;
}

/* ---- looking -------------------------------------------------------------------------------- */

static void
tell_down(const struct net *net, uint32_t port)
{
	char text[256];

	if (link_text(net, (uint16_t)port, 0, text, sizeof(text)))
		log_warn("%s", text);
}

/* Down and up again, in the log and as events; the first look is no event. */
static void
changed(struct net *net, uint32_t port, bool was_known)
{
	struct link_watch *l = &net->links[port];

	l->since = net->env->now;
	if (was_known)
		net->up.link(net->up.ctx, port, l->seen.up);
	if (l->seen.up)
		members_link_up(net, (uint16_t)port);
	if (was_known && l->seen.up) /* others may be at its other end now */
		neigh_flush(net, (int)port);
	if (!l->seen.up)
		tell_down(net, port);
	else if (was_known)
		log_info("the link of port %s is up again", net->env->w.conf->ports[port].name);
}

static void
compare_mtu(struct net *net, uint32_t port)
{
	const struct conf_port *conf = &net->env->w.conf->ports[port];
	struct link_watch *l = &net->links[port];
	const bool small = is_small(l, conf->mtu);
	char text[256];

	if (l->seen.interface_mtu == 0 || small == l->is_small)
		return;
	l->is_small = small;
	if (!small)
		log_info("interface %s of port %s has mtu %u now: it is large enough",
			l->seen.interface, conf->name, l->seen.interface_mtu);
	else if (link_text(net, (uint16_t)port, conf->mtu, text, sizeof(text)) && l->seen.up)
		log_warn("%s", text);
	else
		l->is_small = false; /* when it is up */
}

static void
look(struct net *net, uint32_t port)
{
	struct link_watch *l = &net->links[port];
	const struct link_view before = l->seen;
	const bool was_known = l->known;
	int rc = link_look(net->env->w.ports[port].id, &l->seen);

	if (rc == -ENODEV && !l->device_lost) {
		l->device_lost = true;
		l->since = net->env->now;
		net->up.device(net->up.ctx, port);
		tell_down(net, port);
	}
	if (rc != 0) {
		l->seen = before;
		return;
	}
	l->known = true;
	if (net->env->w.ports[port].mbps != NULL)
		atomic_store_explicit(
			net->env->w.ports[port].mbps, l->seen.speed_mbps, memory_order_relaxed);
	if (net->env->w.ports[port].prio != NULL)
		atomic_store_explicit(&net->env->w.ports[port].prio->pause.mbps, l->seen.speed_mbps,
			memory_order_relaxed);
	if (!was_known || l->seen.up != before.up)
		changed(net, port, was_known);
	compare_mtu(net, port);
}

void
link_look_at_all(struct net *net)
{
	net->link_next = net->env->now + LINK_EVERY;
	for (uint32_t p = 0; p < net->env->w.ports_n; p++)
		look(net, p);
}

void
link_poll(struct net *net)
{
	if (net->env->now >= net->link_next)
		link_look_at_all(net);
}

/* ---- for others ----------------------------------------------------------------------------- */

void
link_set_json(const struct net *net, uint16_t port, json_t *o)
{
	const struct link_watch *l = &net->links[port];
	const struct link_view *v = &l->seen;
	char text[256];

	json_object_set_new(o, "state", json_string(link_state_name(l)));
	json_object_set_new(o, "link_speed_mbps",
		v->speed_mbps == 0 ? json_null() : json_integer(v->speed_mbps));
	json_object_set_new(o, "interface",
		v->has_interface && !v->gone ? json_string(v->interface) : json_null());
	json_object_set_new(o, "interface_mtu",
		v->interface_mtu != 0 ? json_integer(v->interface_mtu) : json_null());
	json_object_set_new(o, "warning",
		link_text(net, port, net->env->w.conf->ports[port].mtu, text, sizeof(text))
			? json_string(text)
			: json_null());
}

json_t *
link_json(const struct net *net, uint16_t port)
{
	const struct conf_port *conf = &net->env->w.conf->ports[port];
	const struct link_watch *l = &net->links[port];
	json_t *o = json_pack("{s:s, s:i}", "port", conf->name, "mtu", (int)conf->mtu);

	link_set_json(net, port, o);
	json_object_set_new(o, "state_ms",
		l->known ? json_integer((json_int_t)((net->env->now - l->since) / TIME_NS_PER_MS))
			 : json_null());
	return o;
}
