/* SPDX-License-Identifier: BSD-3-Clause */
/* The alternate path of a QP (automatic path migration), as the control lcore has it. */
#include <errno.h>
#include <string.h>

#include "ask.h"
#include "log.h"
#include "admin.h"

_Static_assert(QP_ATTR_ALT_PATH == QP_ATTR_ALT_PATH &&
		       QP_ATTR_PATH_MIG_STATE == QP_ATTR_PATH_MIG_STATE &&
		       (int)MIG_REARM == (int)MIG_REARM && (int)MIG_ARMED == (int)MIG_ARMED,
	"masks and states agree");

/* A template's port was checked when it was made; a modify names another one. */
static int
take_port(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf, struct refusal *r)
{
	const uint32_t worker = rec->worker;

	rec->alt_port = -1;
	if ((conf->given & CONF_QP_ALT_PORT) != 0) {
		rec->alt_port = env_port_named(adm->env, conf->alt_port);
		if (rec->alt_port < 0)
			return refuse(
				r, ENOENT, "alt_port: port \"%s\" does not exist", conf->alt_port);
	}
	if (rec->alt_port >= 0 && !env_worker_sends(adm->env, rec->alt_port, worker))
		return refuse(r, EINVAL,
			"alt_port: worker %u, which has QP %u, cannot send on port \"%s\": a QP "
			"keeps its worker, so use a port with a transmit queue for it, or make the "
			"QP on worker %u",
			worker, rec->qpn, conf->alt_port, adm->env->w.ports[rec->alt_port].worker);
	return 0;
}

static struct admin_way
way_of(struct admin_qp *rec, struct qp_attr *attr)
{
	return (struct admin_way){ .key = "alt_ah_attr",
		.ah = &rec->alt_ah,
		.port = rec->alt_port >= 0 ? rec->alt_port : rec->port,
		.link = &rec->alt_link,
		.path = &attr->alt_path,
		.resolved = &attr->alt_resolved };
}

static int
take_path(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf, struct qp_attr *attr,
	struct refusal *r)
{
	int rc = take_port(adm, rec, conf, r);
	struct admin_way way;

	if (rc != 0)
		return rc;
	rec->alt_ah = conf->alt_ah_attr;
	rec->alt_given = conf->given & (CONF_QP_ALT_PORT | CONF_QP_ALT_TIMEOUT | CONF_QP_ALT_PKEY);
	way = way_of(rec, attr);
	attr->alt_port = (uint8_t)adm->env->w.ports[way.port].id;
	attr->alt_timeout =
		(conf->given & CONF_QP_ALT_TIMEOUT) != 0 ? conf->alt_timeout : QP_ALT_TIMEOUT_SAME;
	attr->alt_pkey = (conf->given & CONF_QP_ALT_PKEY) != 0 ? conf->alt_pkey : 0;
	rc = admin_path_mtu_check(adm, &way, attr->path_mtu, r);
	if (rc == 0)
		rc = admin_path_make(adm, rec, &way, r);
	return rc == 0 ? admin_path_resolve(adm, &way, r) : rc;
}

int
admin_alternate_take(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_change *ch, struct refusal *r)
{
	const bool loads = (ch->mask & QP_ATTR_ALT_PATH) != 0;
	const char *why;

	if ((ch->mask & QP_ATTR_PATH_MIG_STATE) != 0) {
		const enum mig_state now = rec->attr.path_mig_state;
		const enum mig_state to = (enum mig_state)conf->path_mig_state;

		if (qp_migration_check(now, to, loads || rec->alt_loaded, &why) != 0)
			return refuse(r, EINVAL, "path_mig_state: QP %u is %s: %s", rec->qpn,
				verbs_mig_state_name(now), why);
		ch->attr.path_mig_state = (uint8_t)to;
	}
	return loads ? take_path(adm, rec, conf, &ch->attr, r) : 0;
}

void
admin_alternate_again(struct admin *adm, struct admin_qp *rec)
{
	const struct admin_way way = way_of(rec, &rec->attr);

	if (rec->alt_loaded)
		admin_path_resolve_again(adm, &way);
	else
		neigh_leave(adm->net, &rec->alt_link);
}

void
admin_alternate_sync(struct admin *adm, struct admin_qp *rec)
{
	const uint32_t n = qp_migrations(rec->qp);
	struct qp_attr *a = &rec->attr;

	if (a->migrations == n || rec->pending) /* what the worker has now is not known */
		return;
	a->migrations = n;
	qp_attr_migrate(a);
	rec->ah = rec->alt_ah;
	if (rec->alt_port >= 0)
		rec->port = rec->alt_port;
	neigh_join(adm->net, &rec->link, &rec->alt_link);
}

int
admin_alternate_look(struct admin *adm, struct admin_qp *rec, struct refusal *r)
{
	struct qp_snapshot s;
	int rc = admin_snapshots(adm, &rec, 1, &s, r);

	admin_alternate_sync(adm, rec);
	if (rc == 0)
		rec->attr.path_mig_state = s.attr.path_mig_state;
	return rc;
}

void
admin_alternate_forget(struct admin *adm, struct admin_qp *rec)
{
	neigh_leave(adm->net, &rec->alt_link);
	rec->alt_loaded = false;
	rec->alt_given = 0;
	rec->alt_port = -1;
	rec->given &= ~(uint32_t)(QP_ATTR_ALT_PATH | QP_ATTR_PATH_MIG_STATE);
	rec->attr.alt_resolved = false;
	rec->attr.path_mig_state = MIG_MIGRATED;
}
