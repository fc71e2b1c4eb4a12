/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_mcast.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "charge.h"
#include "conf_json_value.h"
#include "net_groups.h"
#include "qp_mcast.h"
#include "wire_group.h"

#define AGAIN_NS TIME_NS_PER_S

enum { MAC = 6, KEPT_PART = 8 /* of a group's places: the operator's */ };

static bool
is_group(const struct conf_ip *a, const struct conf_ip *b)
{
	return a->family == b->family && memcmp(a->addr, b->addr, sizeof(a->addr)) == 0;
}

static struct admin_mcast *
find(const struct admin *adm, uint32_t qpn, const struct conf_ip *group)
{
	struct admin_mcast *m;

	TAILQ_FOREACH (m, &adm->mcasts, all)
		if (m->qpn == qpn && is_group(&m->group, group))
			return m;
	return NULL;
}

static const char *
text_of(const struct conf_ip *group, char text[INET6_ADDRSTRLEN])
{
	return inet_ntop(
		group->family == 4 ? AF_INET : AF_INET6, group->addr, text, INET6_ADDRSTRLEN);
}

static struct qp_mcast_group
key_of(const struct admin *adm, const struct admin_mcast *m)
{
	struct qp_mcast_group g = { .port = adm->env->w.ports[m->port].id };

	wire_group_gid(m->group.family == 6, m->group.addr, g.addr);
	return g;
}

static int
compare(const void *a, const void *b)
{
	return memcmp(a, b, MAC);
}

/* @return how many are left. */
static uint32_t
once_each(uint8_t (*macs)[MAC], uint32_t n)
{
	uint32_t kept = 0;

	qsort(macs, n, sizeof(macs[0]), compare);
	for (uint32_t i = 0; i < n; i++) {
		if (kept == 0 || compare(macs[kept - 1], macs[i]) != 0)
			memmove(macs[kept++], macs[i], sizeof(macs[0]));
	}
	return kept;
}

/*
 * Every MAC of the port's groups once, for a device that has to be told: without those that are its
 * own it would hear no router's question, and no neighbour's. @return 0 or -errno.
 */
static int
filter(const struct admin *adm, int16_t port)
{
	const struct env_wiring *w = &adm->env->w;
	struct conf_ip own[NET_GROUPS];
	const struct admin_mcast *m;
	uint8_t(*macs)[MAC];
	uint32_t n = 0, room = NET_GROUPS, own_n;
	int rc;

	if (w->port_groups == NULL)
		return 0;
	TAILQ_FOREACH (m, &adm->mcasts, all)
		room += m->port == port;
	macs = calloc(room, sizeof(macs[0]));
	if (macs == NULL)
		return -ENOMEM;
	own_n = net_groups(w->ports[port].addr, own);
	for (uint32_t i = 0; i < own_n; i++)
		wire_group_mac(own[i].family == 6, own[i].addr, macs[n++]);
	TAILQ_FOREACH (m, &adm->mcasts, all) {
		if (m->port == port)
			wire_group_mac(m->group.family == 6, m->group.addr, macs[n++]);
	}
	n = once_each(macs, n);
	rc = w->port_groups(w->port_groups_ctx, (uint32_t)port, macs, n);
	free(macs);
	return rc;
}

static void
take_out(struct admin *adm, struct admin_qp *rec, struct admin_mcast *m)
{
	const struct qp_mcast_group g = key_of(adm, m);

	qp_mcast_remove(adm->env->w.mcasts, &g, m->qpn);
	members_leave(adm->net, (uint16_t)m->port, &m->group);
	TAILQ_REMOVE(&adm->mcasts, m, all);
	rec->mcasts_n--;
	free(m);
	if (rec->shared->owner != NULL)
		owner_uncharge(rec->shared->owner, OWNER_MCASTS, 1);
}

/* What can be said of the request alone. */
static int
may_join(const struct admin *adm, const struct admin_qp *rec, const struct conf_ip *group,
	struct refusal *r)
{
	const struct wire_port *us;
	char text[INET6_ADDRSTRLEN];

	if (admin_qp_type(rec) != QPT_UD)
		return refuse(r, EINVAL, "QP %u is of type %s: groups are for UD", rec->qpn,
			verbs_qp_type_name(admin_qp_type(rec)));
	if (rec->port < 0)
		return refuse(r, EINVAL, "QP %u has no port yet: it gets one with INIT", rec->qpn);
	us = adm->env->w.ports[rec->port].addr;
	if (group->family == 6 ? !us->has_ipv6 : !us->has_ipv4)
		return refuse(r, EINVAL, "group is IPv%u, and port \"%s\" has no IPv%u address",
			group->family, adm->env->w.conf->ports[rec->port].name, group->family);
	if (find(adm, rec->qpn, group) != NULL)
		return refuse(r, EEXIST, "QP %u is a member of %s already", rec->qpn,
			text_of(group, text));
	return 0;
}

/* Of the first n members. */
static uint32_t
count(const struct owner_user *const *users, uint32_t n, const struct owner_user *user)
{
	uint32_t found = 0;

	for (uint32_t i = 0; i < n; i++)
		found += users[i] == user;
	return found;
}

/* A group's places are shared out as all that is scarce is. @return 0 or a refusal. */
static int
may_have_place(const struct admin *adm, const struct admin_mcast *more, struct refusal *r)
{
	const struct owner_user *users[QP_MCAST_QPS];
	const struct admin_mcast *m;
	char text[INET6_ADDRSTRLEN];
	struct quota q;
	uint32_t n = 0;

	quota_init(&q, QP_MCAST_QPS, QP_MCAST_QPS / KEPT_PART, QP_MCAST_QPS);
	TAILQ_FOREACH (m, &adm->mcasts, all) {
		if (n == QP_MCAST_QPS || m->port != more->port ||
			!is_group(&m->group, &more->group))
			continue;
		quota_take(&q, count(users, n, m->user), 1, m->user == NULL);
		users[n++] = m->user;
	}
	if (quota_ask(&q, count(users, n, more->user), 1, more->user == NULL) == QUOTA_OK)
		return 0;
	if (n == QP_MCAST_QPS)
		return refuse(r, ENOSPC, "%s has %u members at port \"%s\" already",
			text_of(&more->group, text), n, adm->env->w.conf->ports[more->port].name);
	return refuse(r, ENOSPC,
		"%s has %u of %u members at port \"%s\", and a part is kept for the operator and "
		"other users",
		text_of(&more->group, text), n, QP_MCAST_QPS,
		adm->env->w.conf->ports[more->port].name);
}

static int
put_in(struct admin *adm, struct admin_qp *rec, struct admin_mcast *m, struct refusal *r)
{
	const struct qp_mcast_group g = key_of(adm, m);
	int rc = may_have_place(adm, m, r);

	if (rc == 0 && qp_mcast_add(adm->env->w.mcasts, &g, m->qpn) != 0)
		rc = refuse(r, ENOSPC, "there are %u multicast groups already", QP_MCAST_GROUPS);
	if (rc == 0 && members_join(adm->net, (uint16_t)m->port, &m->group) != 0) {
		qp_mcast_remove(adm->env->w.mcasts, &g, m->qpn);
		rc = refuse(r, ENOMEM, "out of memory");
	}
	if (rc != 0 && rec->shared->owner != NULL)
		owner_uncharge(rec->shared->owner, OWNER_MCASTS, 1);
	if (rc != 0)
		return rc;
	TAILQ_INSERT_TAIL(&adm->mcasts, m, all);
	rec->mcasts_n++;
	return 0;
}

static const struct owner_user *
user_of(const struct owner *owner)
{
	return owner != NULL && !owner->user->operator? owner->user : NULL;
}

int
admin_mcast_attach(
	struct admin *adm, struct admin_qp *rec, const struct conf_ip *group, struct refusal *r)
{
	struct owner *owner = rec->shared->owner;
	struct admin_mcast *m;
	int rc = may_join(adm, rec, group, r);

	if (rc == 0 && owner != NULL)
		rc = owner_charge(owner, OWNER_MCASTS, 1, r);
	if (rc != 0)
		return rc;
	m = calloc(1, sizeof(*m));
	if (m == NULL) {
		if (owner != NULL)
			owner_uncharge(owner, OWNER_MCASTS, 1);
		return refuse(r, ENOMEM, "out of memory");
	}
	*m = (struct admin_mcast){
		.qpn = rec->qpn, .port = rec->port, .group = *group, .user = user_of(owner)
	};
	rc = put_in(adm, rec, m, r);
	if (rc != 0) {
		free(m);
		return rc;
	}
	rc = filter(adm, rec->port);
	if (rc != 0) {
		take_out(adm, rec, m);
		adm->mcasts_left[rec->port] = true;
		return refuse(r, -rc, "the device of port \"%s\" does not take the group's MAC: %s",
			adm->env->w.conf->ports[rec->port].name, strerror(-rc));
	}
	return 0;
}

int
admin_mcast_attach_at(struct admin *adm, struct admin_qp *rec, int16_t port,
	const struct conf_ip *group, struct refusal *r)
{
	const int16_t had = rec->port;
	int rc;

	if (had < 0)
		rec->port = port;
	rc = admin_mcast_attach(adm, rec, group, r);
	if (rc != 0)
		rec->port = had;
	return rc;
}

int
admin_mcast_detach(
	struct admin *adm, struct admin_qp *rec, const struct conf_ip *group, struct refusal *r)
{
	struct admin_mcast *m = find(adm, rec->qpn, group);
	char text[INET6_ADDRSTRLEN];

	if (m == NULL)
		return refuse(
			r, EINVAL, "QP %u is no member of %s", rec->qpn, text_of(group, text));
	adm->mcasts_left[m->port] = true;
	take_out(adm, rec, m);
	return 0;
}

void
admin_mcast_leave(struct admin *adm, struct admin_qp *rec)
{
	struct admin_mcast *m, *next;

	if (rec->mcasts_n == 0)
		return;
	for (m = TAILQ_FIRST(&adm->mcasts); m != NULL; m = next) {
		next = TAILQ_NEXT(m, all);
		if (m->qpn != rec->qpn)
			continue;
		adm->mcasts_left[m->port] = true;
		take_out(adm, rec, m);
	}
}

/* What it can never do is not tried again. */
static bool
tell_device(struct admin *adm, uint32_t port)
{
	const int rc = filter(adm, (int16_t)port);

	if (rc != 0)
		log_rated(&adm->told_mcasts[port], adm->env->now, LOG_WARN,
			"port \"%s\": its device does not take the MACs of its multicast groups, and "
			"may not let in what is sent to them: %s",
			adm->env->w.conf->ports[port].name, strerror(-rc));
	return rc == 0 || rc == -ENOTSUP;
}

void
admin_mcast_poll(struct admin *adm)
{
	for (uint32_t i = 0; i < adm->env->w.conf->n_ports; i++) {
		if (!adm->mcasts_left[i] || adm->env->now < adm->mcasts_at[i])
			continue;
		if (tell_device(adm, i))
			adm->mcasts_left[i] = false;
		else
			adm->mcasts_at[i] = adm->env->now + AGAIN_NS;
	}
}

json_t *
admin_mcast_json(const struct admin *adm, uint32_t qpn)
{
	json_t *list = json_array();
	const struct admin_mcast *m;
	char text[INET6_ADDRSTRLEN], mac[18];
	uint8_t b[6];

	TAILQ_FOREACH (m, &adm->mcasts, all) {
		if (qpn != 0 && m->qpn != qpn)
			continue;
		wire_group_mac(m->group.family == 6, m->group.addr, b);
		snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3],
			b[4], b[5]);
		list = conf_json_append(
			list, json_pack("{s:I, s:s, s:s, s:s}", "qp_num", (json_int_t)m->qpn,
				      "group", text_of(&m->group, text), "port",
				      adm->env->w.conf->ports[m->port].name, "mac", mac));
	}
	return list;
}
