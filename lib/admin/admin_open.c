/* SPDX-License-Identifier: BSD-3-Clause */
/* Who has an XRC target besides its owner, and who is the owner next. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "admin_open.h"
#include "invariant.h"

static struct admin_opener *
find(const struct owner *o, const struct admin_qp *rec)
{
	struct admin_opener *by;

	TAILQ_FOREACH (by, &rec->openers, of_qp) {
		if (by->owner == o)
			return by;
	}
	return NULL;
}

int
admin_open(struct owner *o, struct admin_qp *rec, struct object_pd *pd, struct refusal *r)
{
	struct admin_opener *by;

	if (admin_qp_type(rec) != QPT_XRC_RECV)
		return refuse(r, EINVAL, "QP %u is %s: XRC_RECV alone can be opened", rec->qpn,
			verbs_qp_type_name(admin_qp_type(rec)));
	/* Its owner is gone, or destroys it: it goes, too. */
	if (rec->pending || rec->shared->owner->gone)
		return refuse(r, ENOENT, "QP %u does not exist any more", rec->qpn);
	if (rec->shared->owner == o || find(o, rec) != NULL)
		return refuse(r, EEXIST, "this application has QP %u already", rec->qpn);
	if (owner_charge(o, OWNER_QPS, 1, r) != 0)
		return -r->err;
	by = calloc(1, sizeof(*by));
	if (by == NULL) {
		owner_uncharge(o, OWNER_QPS, 1);
		return refuse(r, ENOMEM, "out of memory");
	}
	*by = (struct admin_opener){ .rec = rec, .owner = o, .pd = pd };
	pd->users++;
	if (TAILQ_EMPTY(&rec->openers)) /* all zero so far */
		TAILQ_INIT(&rec->openers);
	TAILQ_INSERT_TAIL(&rec->openers, by, of_qp);
	TAILQ_INSERT_TAIL(&o->opened, by, of_owner);
	return 0;
}

bool
admin_has_open(const struct owner *o, const struct admin_qp *rec)
{
	return find(o, rec) != NULL;
}

bool
admin_has_open_in(const struct owner *o, const struct object_xrcd *xrcd)
{
	const struct admin_opener *by;

	TAILQ_FOREACH (by, &o->opened, of_owner) {
		if (by->rec->xrcd == xrcd)
			return true;
	}
	return false;
}

static void
unlink_opener(struct admin_opener *by)
{
	TAILQ_REMOVE(&by->rec->openers, by, of_qp);
	TAILQ_REMOVE(&by->owner->opened, by, of_owner);
}

static void
give_back(struct admin_opener *by)
{
	unlink_opener(by);
	by->pd->users--;
	owner_uncharge(by->owner, OWNER_QPS, 1);
	free(by);
}

/* An opener is charged for a queue pair, the owner for what it needs, too. */
static void
hand_over(struct admin_qp *rec, struct admin_opener *to)
{
	struct owner *from = rec->shared->owner;

	ASSERT(rec->shared->refs == 1);
	unlink_opener(to);
	TAILQ_REMOVE(&from->qps, rec, of_owner);
	from->qps_n--;
	owner_uncharge(to->owner, OWNER_QPS, 1);
	owner_rings_pass(from, to->owner, &rec->rings);
	rec->shared->owner = to->owner;
	TAILQ_INSERT_TAIL(&to->owner->qps, rec, of_owner);
	to->owner->qps_n++;
	rec->pd->users--;
	rec->pd = to->pd;
	memcpy(rec->shared->conf.pd, to->pd->n.name, sizeof(rec->shared->conf.pd));
	free(to);
}

bool
admin_close(struct owner *o, struct admin_qp *rec)
{
	struct admin_opener *by = find(o, rec);

	if (by != NULL) {
		give_back(by);
		return true;
	}
	by = TAILQ_FIRST(&rec->openers);
	if (by == NULL)
		return false;
	ASSERT(rec->shared->owner == o);
	hand_over(rec, by);
	return true;
}

void
admin_close_all(struct owner *o)
{
	struct admin_opener *by;
	struct admin_qp *rec, *next;

	while ((by = TAILQ_FIRST(&o->opened)) != NULL)
		give_back(by);
	for (rec = TAILQ_FIRST(&o->qps); rec != NULL; rec = next) {
		next = TAILQ_NEXT(rec, of_owner);
		if (!TAILQ_EMPTY(&rec->openers))
			hand_over(rec, TAILQ_FIRST(&rec->openers));
	}
}

void
admin_open_forget(struct admin_qp *rec)
{
	while (!TAILQ_EMPTY(&rec->openers))
		give_back(TAILQ_FIRST(&rec->openers));
}
