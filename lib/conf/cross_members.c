/* SPDX-License-Identifier: BSD-3-Clause */
/* Members of multicast groups, and listeners: against each other, and against what they are of. */
#include "conf_mcast.h"
#include "cross.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static bool
has_fault_in(const char *array, const struct conf_errors *err)
{
	const size_t n = strlen(array);

	for (uint32_t i = 0; i < err->n; i++) {
		const struct conf_error *e = &err->v[i];

		if (!e->is_warning && e->pointer[0] == '/' &&
			strncmp(e->pointer + 1, array, n) == 0)
			return true;
	}
	return false;
}

/* ---- multicast ------------------------------------------------------------------------------- */

/* Entries of /qps with numbers that do not overlap, sorted by them. */
struct numbered {
	const struct conf_qp **v;
	uint32_t n;
};

static int
by_number(const void *a, const void *b)
{
	const struct conf_qp *const *x = a, *const *y = b;

	return ((*x)->qp_num > (*y)->qp_num) - ((*x)->qp_num < (*y)->qp_num);
}

static const struct conf_qp *
qp_numbered(const struct numbered *t, uint32_t number)
{
	uint32_t lo = 0, hi = t->n;

	while (lo < hi) {
		const uint32_t mid = lo + (hi - lo) / 2;

		if (t->v[mid]->qp_num <= number)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == 0 || number - t->v[lo - 1]->qp_num >= t->v[lo - 1]->count)
		return NULL;
	return t->v[lo - 1];
}

/* The same queue pair and group beside each other, in the order of the file. */
static int
by_member(const void *a, const void *b)
{
	const struct conf_mcast *const *x = a, *const *y = b;
	int order = ((*x)->qp_num > (*y)->qp_num) - ((*x)->qp_num < (*y)->qp_num);

	if (order == 0)
		order = memcmp(&(*x)->group, &(*y)->group, sizeof((*x)->group));
	return order != 0 ? order : (*x > *y) - (*x < *y);
}

static const struct conf_port *
port_named(const struct conf *c, const char *name)
{
	for (uint32_t i = 0; i < c->n_ports; i++) {
		if (strcmp(c->ports[i].name, name) == 0)
			return &c->ports[i];
	}
	return NULL;
}

static void
member(const struct conf *c, const struct numbered *t, const struct conf_mcast *m,
	struct conf_errors *err)
{
	const struct conf_qp *q = qp_numbered(t, m->qp_num);
	const struct conf_port *p = q != NULL ? port_named(c, q->port) : NULL;
	const bool ipv6 = m->group.family == 6;

	if (q == NULL)
		conf_fault(err, "qp_num", "%u: no entry of /qps has this number", m->qp_num);
	else if (q->qp_type != QPT_UD)
		conf_fault(err, "qp_num", "QP %u is of type %s: groups are for UD", m->qp_num,
			conf_name_of(conf_names_qp_type, q->qp_type));
	else if (q->port[0] == '\0')
		conf_fault(err, "qp_num", "QP %u has no port: it gets one with INIT", m->qp_num);
	else if (p != NULL && (p->given & (ipv6 ? CONF_PORT_IPV6 : CONF_PORT_IPV4)) == 0)
		conf_fault(err, "group", "is IPv%u, and port \"%s\" has no IPv%u address",
			m->group.family, p->name, m->group.family);
}

static void
twice(const struct conf *c, const struct conf_mcast **v, struct conf_errors *err)
{
	for (uint32_t i = 0; i < c->n_mcasts; i++)
		v[i] = &c->mcasts[i];
	qsort(v, c->n_mcasts, sizeof(v[0]), by_member);
	for (uint32_t i = 1; i < c->n_mcasts; i++) {
		const uint32_t mark = err->at_len;

		if (v[i]->qp_num != v[i - 1]->qp_num ||
			memcmp(&v[i]->group, &v[i - 1]->group, sizeof(v[i]->group)) != 0)
			continue;
		conf_enter(err, "mcasts");
		conf_enter_index(err, (uint32_t)(v[i] - c->mcasts));
		conf_fault(err, NULL, "is /mcasts/%u once more", (uint32_t)(v[i - 1] - c->mcasts));
		conf_leave(err, mark);
	}
}

/* A member as its port sees it. */
struct seat {
	const struct conf_port *port;
	const struct conf_mcast *of;
};

static int
by_group(const void *a, const void *b)
{
	const struct seat *x = a, *y = b;
	int order = (x->port > y->port) - (x->port < y->port);

	if (order == 0)
		order = memcmp(&x->of->group, &y->of->group, sizeof(x->of->group));
	return order != 0 ? order : (x->of > y->of) - (x->of < y->of);
}

/* More than a group, or all groups, have room for. */
static int
crowded(const struct conf *c, const struct numbered *t, struct conf_errors *err)
{
	struct seat *v = calloc((size_t)c->n_mcasts + 1, sizeof(*v));
	uint32_t groups = 0, first = 0, n = 0;

	if (v == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_mcasts; i++) {
		const struct conf_qp *q = qp_numbered(t, c->mcasts[i].qp_num);
		const struct conf_port *p = q != NULL ? port_named(c, q->port) : NULL;

		if (p != NULL)
			v[n++] = (struct seat){ p, &c->mcasts[i] };
	}
	qsort(v, n, sizeof(*v), by_group);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t mark = err->at_len;

		if (i == 0 || v[i].port != v[first].port ||
			memcmp(&v[i].of->group, &v[first].of->group, sizeof(v[i].of->group)) != 0) {
			first = i;
			groups++;
		}
		if (i - first != CONF_MCAST_QPS)
			continue;
		conf_enter(err, "mcasts");
		conf_enter_index(err, (uint32_t)(v[i].of - c->mcasts));
		conf_fault(err, "group", "has %u members at port \"%s\" already: no more can be",
			CONF_MCAST_QPS, v[i].port->name);
		conf_leave(err, mark);
	}
	if (groups > CONF_MCAST_GROUPS)
		conf_fault(err, "mcasts", "has %u groups: at most %u", groups, CONF_MCAST_GROUPS);
	free(v);
	return 0;
}

static int
members(const struct conf *c, struct conf_errors *err)
{
	struct numbered t = { .v = calloc((size_t)c->n_qps + 1, sizeof(t.v[0])) };
	const struct conf_mcast **v = calloc((size_t)c->n_mcasts + 1, sizeof(v[0]));
	/* What had a fault was not read. */
	const bool unread = has_fault_in("qps", err) || has_fault_in("ports", err) ||
			    has_fault_in("mcasts", err);
	int rc = t.v == NULL || v == NULL ? -ENOMEM : 0;

	for (uint32_t i = 0; rc == 0 && i < c->n_qps; i++) {
		if (c->qps[i].qp_num != 0)
			t.v[t.n++] = &c->qps[i];
	}
	if (rc == 0 && !unread) {
		qsort(t.v, t.n, sizeof(t.v[0]), by_number);
		for (uint32_t i = 0; i < c->n_mcasts; i++) {
			const uint32_t mark = conf_enter(err, "mcasts");

			conf_enter_index(err, i);
			member(c, &t, &c->mcasts[i], err);
			conf_leave(err, mark);
		}
		twice(c, v, err);
		rc = crowded(c, &t, err);
	}
	free(t.v);
	free(v);
	return rc;
}

/* ---- listeners ------------------------------------------------------------------------------- */

static void
listeners(const struct conf *c, struct conf_errors *err)
{
	if (has_fault_in("cm", err))
		return;
	for (uint32_t i = 0; i < c->cm.n_listen; i++) {
		const struct conf_cm_listen *l = &c->cm.listen[i];
		const uint32_t mark = conf_enter(err, "cm");

		conf_enter(err, "listen");
		conf_enter_index(err, i);
		for (uint32_t k = 0; k < i; k++) {
			const struct conf_cm_listen *o = &c->cm.listen[k];

			if (strcmp(o->name, l->name) == 0)
				conf_fault(err, "name",
					"\"%s\" is taken by /cm/listen/%u: each must be different",
					l->name, k);
			if (o->ps == l->ps && o->service_port == l->service_port &&
				strcmp(o->port, l->port) == 0)
				conf_fault(err, "service_port",
					"%u of port \"%s\" is that of /cm/listen/%u",
					l->service_port, l->port, k);
		}
		conf_leave(err, mark);
	}
}

int
conf_cross_members(const struct conf *c, struct conf_errors *err)
{
	listeners(c, err);
	return members(c, err);
}
