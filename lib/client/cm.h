/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CLIENT_CM_H
#define CLIENT_CM_H
/**
 * @file cm.h  Inside librocelane: what stands behind the structs of rocelane_cm.h.
 *
 * Owner:   as client_priv.h; ctx->lock is held around calls and list changes.
 * Memory:  as client_priv.h.
 * Depends: client_priv.h.
 */
#include "client_priv.h"
#include "include/rocelane_cm.h"

#define CM_PRIVATE_DATA 224 /* bytes that an event has at most */

/** An event of this library's own: it has no part in the dataplane. */
struct cm_local {
	STAILQ_ENTRY(cm_local) next;
	struct cm_id *id;
	enum rl_cm_event_type event;
};

struct cm_channel {
	struct rl_cm_event_channel pub;
	TAILQ_ENTRY(cm_channel) all;
	uint32_t handle;
	uint32_t ids;
	STAILQ_HEAD(, cm_local) local;
};

struct cm_id {
	struct rl_cm_id pub;
	TAILQ_ENTRY(cm_id) all;
	uint32_t handle; /* 0: the dataplane does not know of it */
	bool peers;      /* it is a CONNECT_REQUEST's */
	bool answered;   /* ... and the answer was given */
	uint8_t timeout; /* 0: as it is usual */
	bool has_attr;
	struct rl_qp_attr attr; /* RTR and RTS */
	uint8_t responder_resources, initiator_depth;
	struct acks events;
	struct sockaddr_storage local, peer;
};

struct cm_event {
	struct rl_cm_event pub;
	struct cm_id *counted; /* whose event it is */
	uint8_t private_data[CM_PRIVATE_DATA];
};

/** Of this handle; ctx->lock held. @return NULL: none. */
struct cm_id *client_cm_id(struct context *ctx, uint32_t handle);
/** One more; ctx->lock held. @return NULL: no memory. */
struct cm_id *client_cm_id_new(struct cm_channel *ch, void *id_context, enum rl_cm_port_space ps);
/** "10.77.0.1" and a port as an address. */
void client_cm_address(struct sockaddr_storage *out, const char *ip, uint16_t port);
/** The port of an address. */
uint16_t client_cm_port(const struct sockaddr_storage *a);
/** "TCP" */
const char *client_cm_space(enum rl_cm_port_space ps);
/** A call that has only the id's handle to say; ctx->lock held. @return 0 or -errno. */
int client_cm_call(struct context *ctx, const struct cm_id *id, const char *method);
/** An event of the library's own. @return 0 or -ENOMEM. */
int client_cm_tell(struct cm_id *id, enum rl_cm_event_type event);
/** Is it a multicast address? */
bool client_cm_is_group(const struct sockaddr_storage *a);
/** The peer's address is a group's: find the port, and tell. @return 0 or -errno. */
int client_cm_resolve_group(struct cm_id *id);
/** The QP of rl_cm_create_qp() to a state. @return 0 or -errno. */
int client_cm_walk(struct cm_id *id, enum rl_qp_state to);

/** The library's struct behind the one that the application has. */
static inline struct cm_id *
cm_id_of(struct rl_cm_id *id)
{
	return (struct cm_id *)id;
}

#endif
