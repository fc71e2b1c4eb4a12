/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_AH_H
#define ADMIN_AH_H
/**
 * @file admin_ah.h  Address handles: made, followed when a neighbour's MAC changes, ended.
 *
 * Owner:   control lcore; what workers read of a handle is qp_ah.h's.
 * Memory:  a record for each handle.
 * Depends: admin.h, qp.
 * Spec:    UD-05, UD-31, RT-01, RT-05, WIRE-15.
 *
 * An application's handles are its own to make and to end. Those of the operator's post_send belong
 * to the QP: as many as it has send requests, the one that was not used for the longest time makes
 * room for another. No request that waits names it any more.
 */
#include "admin.h"
#include "qp_ah.h"

struct admin_ah {
	uint32_t handle;
	int16_t port; /* index in conf->ports */
	bool known;   /* there is a MAC to send to */
	struct conf_ah ah;
	struct wire_path path;
	struct neigh_link link;
	TAILQ_ENTRY(admin_ah) of_qp;
	bool posted;      /* of a QP: a request has named it */
	uint32_t last_at; /* ... the last one: its index in the send ring */
};

/** The handles of a QP that the operator posts to: the one used last comes first. */
struct admin_ahs {
	TAILQ_HEAD(admin_ah_list, admin_ah) list;
	uint32_t n;
};

/** Who asks for a handle. */
struct admin_ah_for {
	const struct owner *owner; /* bound by what the port allows; NULL: may do all */
	uint32_t pd;
	int16_t port;    /* index in conf->ports */
	const char *key; /* of the vector, for refusals */
};

/**
 * A handle for this destination; its neighbour is asked for. @return 0 or a refusal: what the port
 * cannot send, or does not allow; no route; no room.
 */
int admin_ah_create(struct admin *adm, const struct admin_ah_for *who, const struct conf_ah *ah,
	struct admin_ah **out, struct refusal *r);
/** No request finds it from now on. */
void admin_ah_destroy(struct admin *adm, struct admin_ah *ah);
/** The neighbour's MAC is another one, or not known any more. */
void admin_ah_new_mac(struct admin *adm, struct admin_ah *ah);
/**
 * The QP's own handle for that destination, for the request that is posted now: it keeps the handle
 * until it is completed. @return 0 or a refusal: also while the neighbour's MAC
 * is not known. It is asked for from the first call on.
 */
int admin_ah_of_qp(struct admin *adm, struct admin_qp *rec, const struct conf_ah *ah,
	uint32_t *handle, struct refusal *r);
/** The QP is gone, and so are its handles. */
void admin_ahs_free(struct admin *adm, struct admin_qp *rec);

#endif
