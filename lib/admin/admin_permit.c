/* SPDX-License-Identifier: BSD-3-Clause */
/* What an application may put on a port's wire: the port's own, and what its "allow" adds. */
#include <errno.h>
#include <stdio.h>

#include "admin.h"

#define ECN 3u /* congestion control's, whatever the application says */

static bool
is_operators(const struct owner *owner)
{
	return owner == NULL || (owner->user != NULL && owner->user->operator);
}

void
admin_link_charge(struct neigh_link *link, const struct owner *owner)
{
	link->of_user = !is_operators(owner);
	link->uid = link->of_user ? owner->process.uid : 0;
}

static bool
is_listed(const uint32_t *list, uint32_t n, uint32_t v)
{
	for (uint32_t i = 0; i < n; i++) {
		if (list[i] == v)
			return true;
	}
	return false;
}

/* What would have been good: "0", "0, 3, 5". */
static int
refuse_value(const struct conf_port *port, const char *attr, uint32_t value, const char *own,
	const char *key, const uint32_t *list, uint32_t n, struct refusal *r)
{
	char allowed[96];
	size_t at = (size_t)snprintf(allowed, sizeof(allowed), "%s", own);

	for (uint32_t i = 0; i < n && at < sizeof(allowed); i++)
		at += (size_t)snprintf(allowed + at, sizeof(allowed) - at, ", %u", list[i]);
	return refuse(r, EPERM,
		"%s: %u is not for applications on port \"%s\": allowed is %s (\"allow\": {\"%s\": "
		"[...]} of the port adds to it)",
		attr, value, port->name, allowed, key);
}

int
admin_permit(struct admin *adm, const struct owner *owner, int16_t port, const char *key,
	const struct conf_ah *ah, struct refusal *r)
{
	const struct conf_port *p = &adm->env->w.conf->ports[port];
	const struct conf_allow *a = &p->allow;
	const uint32_t class = ah->traffic_class & ~ECN;
	char attr[64];

	if (is_operators(owner))
		return 0;
	snprintf(attr, sizeof(attr), "%s.vlan", key);
	if ((ah->given & CONF_AH_VLAN) != 0 && !is_listed(a->vlans, a->n_vlans, ah->vlan))
		return refuse_value(p, attr, ah->vlan, "none", "vlans", a->vlans, a->n_vlans, r);
	snprintf(attr, sizeof(attr), "%s.vlan_priority", key);
	if ((ah->given & CONF_AH_VLAN) != 0 && ah->vlan_priority != 0 &&
		!is_listed(a->priorities, a->n_priorities, ah->vlan_priority))
		return refuse_value(p, attr, ah->vlan_priority, "0", "priorities", a->priorities,
			a->n_priorities, r);
	snprintf(attr, sizeof(attr), "%s.traffic_class", key);
	if (class != 0 && !is_listed(a->traffic_classes, a->n_traffic_classes, class))
		return refuse_value(p, attr, ah->traffic_class, "0", "traffic_classes",
			a->traffic_classes, a->n_traffic_classes, r);
	if ((ah->given & CONF_AH_DEST_MAC) != 0 && !a->dest_mac)
		return refuse(r, EPERM,
			"%s.dest_mac: %02x:%02x:%02x:%02x:%02x:%02x is not for applications on port "
			"\"%s\": allowed is what neighbours answer; leave it out (\"allow\": "
			"{\"dest_mac\": true} of the port lets them choose)",
			key, ah->dest_mac[0], ah->dest_mac[1], ah->dest_mac[2], ah->dest_mac[3],
			ah->dest_mac[4], ah->dest_mac[5], p->name);
	return 0;
}
