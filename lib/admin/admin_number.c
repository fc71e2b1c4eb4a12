/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>

#include "ask.h"
#include "admin.h"

#define QPN_BITS 24
#define TRIES    256 /* of a table that is full but for a twentieth, one is found by 99.9998 % */

/* Is this number outside of what may be given away? */
static bool
reserved(uint32_t qpn)
{
	return qpn < CONF_QPN_MIN || qpn > CONF_QPN_MAX;
}

/*
 * A generation for the slot that differs from the last one's (QP-20). @return the number, or 0
 * when the slot has none to give.
 */
static uint32_t
number_in(struct admin *adm, uint32_t slot)
{
	const uint32_t mask = adm->env->w.qps->mask;
	const uint32_t generations = (1u << QPN_BITS) / (mask + 1);
	const uint32_t last = adm->slots[slot].last_qpn;
	uint32_t g = (uint32_t)object_random(adm->objects);

	for (uint32_t i = 0; i < generations && i < TRIES; i++, g++) {
		const uint32_t qpn = (g % generations) * (mask + 1) | slot;

		if (!reserved(qpn) && (qpn != last || generations < 2))
			return qpn;
	}
	return 0;
}

static int
given(struct admin *adm, uint32_t want, struct refusal *r)
{
	const struct admin_slot *s = &adm->slots[want & adm->env->w.qps->mask];

	if (reserved(want))
		return refuse(
			r, EINVAL, "qp_num %u is not in %u..%u", want, CONF_QPN_MIN, CONF_QPN_MAX);
	if (admin_slot_qpn(s) == 0)
		return 0;
	if (admin_slot_qpn(s) == want)
		return refuse(r, EEXIST, "qp_num %u exists already", want);
	return refuse(r, EEXIST,
		"qp_num %u needs the table slot that qp_num %u has (numbers with the same low bits "
		"0x%x): take another number, or leave it out",
		want, admin_slot_qpn(s), want & adm->env->w.qps->mask);
}

int
admin_number_pick(struct admin *adm, uint32_t want, uint32_t *qpn, struct refusal *r)
{
	const uint32_t mask = adm->env->w.qps->mask;
	uint32_t slot = (uint32_t)object_random(adm->objects) & mask;
	int rc;

	if (want != 0) {
		rc = given(adm, want, r);
		if (rc == 0)
			*qpn = want;
		return rc;
	}
	/* Random slots while that is likely to succeed, then the next free one. */
	for (uint32_t i = 0; i <= mask + TRIES; i++) {
		if (admin_slot_qpn(&adm->slots[slot]) == 0 && (*qpn = number_in(adm, slot)) != 0)
			return 0;
		slot = i < TRIES ? (uint32_t)object_random(adm->objects) & mask : (slot + 1) & mask;
	}
	return refuse(r, ENOSPC, "the table of QPs is full (%u entries)", adm->env->w.qps->entries);
}
