/* SPDX-License-Identifier: BSD-3-Clause */
/* The QPs of a completion queue, by their numbers: a poll takes no lock but that of its queue. */
#include <errno.h>
#include <stdlib.h>

#include "client_priv.h"

#define USERS_MIN 16

/* Twice as many lists; cq->lock held. @return false: no memory. */
static bool
grow(struct cq *cq)
{
	const uint32_t lists = cq->users == NULL ? USERS_MIN : 2 * (cq->users_mask + 1);
	const uint32_t old = cq->users == NULL ? 0 : cq->users_mask + 1;
	struct cq_user **users = calloc(lists, sizeof(struct cq_user *)), *u, *next;

	if (users == NULL)
		return false;
	for (uint32_t i = 0; i < old; i++) {
		for (u = cq->users[i]; u != NULL; u = next) {
			struct cq_user **list = &users[u->qp->pub.qp_num & (lists - 1)];

			next = u->next;
			u->next = *list;
			*list = u;
		}
	}
	free(cq->users);
	cq->users = users;
	cq->users_mask = lists - 1;
	return true;
}

static int
join(struct cq *cq, struct cq_user *u, struct qp *qp)
{
	struct cq_user **list;
	bool room;

	spin_lock(&cq->lock);
	room = cq->users != NULL && cq->users_n <= cq->users_mask;
	/* Long lists are slow, and no more than that. */
	if (!room && !grow(cq) && cq->users == NULL) {
		spin_unlock(&cq->lock);
		return client_fail(ENOMEM, "out of memory");
	}
	list = &cq->users[qp->pub.qp_num & cq->users_mask];
	*u = (struct cq_user){ *list, qp };
	*list = u;
	cq->users_n++;
	spin_unlock(&cq->lock);
	return 0;
}

static void
leave(struct cq *cq, struct cq_user *u)
{
	struct cq_user **at;

	if (u->qp == NULL)
		return;
	spin_lock(&cq->lock);
	at = &cq->users[u->qp->pub.qp_num & cq->users_mask];
	while (*at != u)
		at = &(*at)->next;
	*at = u->next;
	u->qp = NULL;
	cq->users_n--;
	spin_unlock(&cq->lock);
}

int
client_cqs_join(struct qp *qp)
{
	struct cq *send = (struct cq *)qp->pub.send_cq, *recv = (struct cq *)qp->pub.recv_cq;
	int rc = send != NULL ? join(send, &qp->of_send, qp) : 0;

	if (rc == 0 && recv != NULL && recv != send)
		rc = join(recv, &qp->of_recv, qp);
	if (rc != 0)
		client_cqs_leave(qp);
	return rc;
}

void
client_cqs_leave(struct qp *qp)
{
	leave((struct cq *)qp->pub.send_cq, &qp->of_send);
	leave((struct cq *)qp->pub.recv_cq, &qp->of_recv);
}

struct qp *
client_cq_user(const struct cq *cq, uint32_t qpn)
{
	const struct cq_user *u = cq->users != NULL ? cq->users[qpn & cq->users_mask] : NULL;

	while (u != NULL && u->qp->pub.qp_num != qpn)
		u = u->next;
	return u != NULL ? u->qp : NULL;
}
