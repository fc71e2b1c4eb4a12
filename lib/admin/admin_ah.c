/* SPDX-License-Identifier: BSD-3-Clause */
#include "admin_ah.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define SPORT_FREE 0x3fff /* bits of a UDP source port that RoCEv2 leaves to the sender */

/** Same destination, by the same way? */
static bool
is_same(const struct conf_ah *a, const struct conf_ah *b)
{
	return a->given == b->given && a->dest_ip.family == b->dest_ip.family &&
	       memcmp(a->dest_ip.addr, b->dest_ip.addr, sizeof(a->dest_ip.addr)) == 0 &&
	       ((a->given & CONF_AH_DEST_MAC) == 0 ||
		       memcmp(a->dest_mac, b->dest_mac, sizeof(a->dest_mac)) == 0) &&
	       a->traffic_class == b->traffic_class && a->hop_limit == b->hop_limit &&
	       a->flow_label == b->flow_label &&
	       ((a->given & CONF_AH_VLAN) == 0 ||
		       (a->vlan == b->vlan && a->vlan_priority == b->vlan_priority));
}

/** Path and next hop of a record. @return 0 or a refusal. */
static int
find_way(struct admin *adm, struct admin_ah *ah, const struct admin_ah_for *who, struct refusal *r)
{
	const struct admin_way way = { .key = who->key,
		.ah = &ah->ah,
		.port = ah->port,
		.link = &ah->link,
		.path = &ah->path,
		.resolved = &ah->known };
	const struct admin_sender from = { .owner = who->owner,
		.wire = adm->env->w.conf->knobs.path_local == KNOB_path_local_wire };
	int rc = admin_path_fill(adm, &from, &way, r);

	return rc == 0 ? admin_path_resolve(adm, &way, r) : rc;
}

int
admin_ah_create(struct admin *adm, const struct admin_ah_for *who, const struct conf_ah *ah,
	struct admin_ah **out, struct refusal *r)
{
	struct admin_ah *a = calloc(1, sizeof(*a));
	int rc;

	if (a == NULL)
		return refuse(r, ENOMEM, "out of memory");
	a->ah = *ah;
	a->port = who->port;
	a->link.ah = &a->ah;
	a->link.user = a;
	a->link.of_handle = true;
	admin_link_charge(&a->link, who->owner);
	rc = find_way(adm, a, who, r);
	if (rc == 0) {
		a->handle = qp_ah_add(adm->env->w.ahs, who->pd, adm->env->w.ports[a->port].id,
			&a->path, a->path.flow_label != 0 ? 0 : SPORT_FREE, a->known);
		if (a->handle == 0)
			rc = refuse(r, ENOSPC, "there are %u address handles already", QP_AH_MAX);
	}
	if (rc != 0) {
		neigh_leave(adm->net, &a->link);
		free(a);
		return rc;
	}
	*out = a;
	return 0;
}

void
admin_ah_destroy(struct admin *adm, struct admin_ah *ah)
{
	qp_ah_remove(adm->env->w.ahs, ah->handle);
	neigh_leave(adm->net, &ah->link);
	free(ah);
}

void
admin_ah_new_mac(struct admin *adm, struct admin_ah *ah)
{
	ah->known = neigh_has_mac(ah->link.neigh);
	if (ah->known)
		memcpy(ah->path.dmac, ah->link.neigh->mac, sizeof(ah->path.dmac));
	qp_ah_change(adm->env->w.ahs, ah->handle, &ah->path, ah->known);
}

/** The QP's handle for that destination, if it has one. */
static struct admin_ah *
find(const struct admin_ahs *ahs, const struct conf_ah *ah)
{
	struct admin_ah *a;

	TAILQ_FOREACH (a, &ahs->list, of_qp)
		if (is_same(&a->ah, ah))
			return a;
	return NULL;
}

/** Does a request name it that its worker has not completed? */
static bool
is_awaited(const struct admin_qp *rec, const struct admin_ah *a)
{
	const uint32_t cons = atomic_load_explicit(&rec->sq.sh->cons, memory_order_acquire);

	return a->posted && (int32_t)(a->last_at - cons) >= 0;
}

/** The one that was asked for longest ago, of those that no request waits for. */
static void
forget_one(struct admin *adm, const struct admin_qp *rec)
{
	struct admin_ahs *ahs = rec->ahs;
	struct admin_ah *a;

	TAILQ_FOREACH_REVERSE(a, &ahs->list, admin_ah_list, of_qp)
	if (!is_awaited(rec, a))
		break;
	if (a == NULL)
		return;
	TAILQ_REMOVE(&ahs->list, a, of_qp);
	admin_ah_destroy(adm, a);
	ahs->n--;
}

/** One more, and one less where there are as many as requests. @return 0 or a refusal. */
static int
add(struct admin *adm, const struct admin_qp *rec, const struct conf_ah *ah, struct admin_ah **out,
	struct refusal *r)
{
	const struct admin_ah_for who = { .owner = rec->shared->owner,
		.pd = rec->pd->id,
		.port = rec->port,
		.key = "ud.ah_attr" };
	struct admin_ahs *ahs = rec->ahs;
	const int rc = admin_ah_create(adm, &who, ah, out, r);

	if (rc != 0)
		return rc;
	if (ahs->n >= qp_limits(rec->qp).max_send_wr)
		forget_one(adm, rec);
	TAILQ_INSERT_HEAD(&ahs->list, *out, of_qp);
	ahs->n++;
	return 0;
}

/** Nobody has said where to send to. */
static int
refuse_unknown(struct admin *adm, const struct admin_ah *a, struct refusal *r)
{
	char text[256];

	if (!neigh_text(adm->net, &a->link, text, sizeof(text)))
		text[0] = '\0';
	return refuse(r, EAGAIN, "ud.ah_attr: nobody has answered yet: %s", text);
}

int
admin_ah_of_qp(struct admin *adm, struct admin_qp *rec, const struct conf_ah *ah, uint32_t *handle,
	struct refusal *r)
{
	struct admin_ah *a;
	int rc;

	if (rec->ahs == NULL) {
		rec->ahs = calloc(1, sizeof(*rec->ahs));
		if (rec->ahs == NULL)
			return refuse(r, ENOMEM, "out of memory");
		TAILQ_INIT(&rec->ahs->list);
	}
	a = find(rec->ahs, ah);
	if (a != NULL) {
		TAILQ_REMOVE(&rec->ahs->list, a, of_qp);
		TAILQ_INSERT_HEAD(&rec->ahs->list, a, of_qp);
	} else {
		rc = add(adm, rec, ah, &a, r);
		if (rc != 0)
			return rc;
	}
	if (!a->known)
		return refuse_unknown(adm, a, r);
	a->posted = true;
	a->last_at = rec->sq.prod; /* the place that it is about to have */
	*handle = a->handle;
	return 0;
}

void
admin_ahs_free(struct admin *adm, struct admin_qp *rec)
{
	struct admin_ah *a;

	if (rec->ahs == NULL)
		return;
	while ((a = TAILQ_FIRST(&rec->ahs->list)) != NULL) {
		TAILQ_REMOVE(&rec->ahs->list, a, of_qp);
		admin_ah_destroy(adm, a);
	}
	free(rec->ahs);
	rec->ahs = NULL;
}
