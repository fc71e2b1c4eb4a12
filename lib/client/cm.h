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

/** An event that the application has not taken yet. */
struct cm_waiting {
	STAILQ_ENTRY(cm_waiting) next;
	json_t *told;     /* by the dataplane; NULL: it is this library's own */
	struct cm_id *id; /* ... whose */
	enum rl_cm_event_type event;
};

struct cm_channel {
	struct rl_cm_event_channel pub;
	int event_fd; /* what pub.fd watches, beside the connection's end */
	TAILQ_ENTRY(cm_channel) all;
	uint32_t handle;
	uint32_t ids;
	STAILQ_HEAD(, cm_waiting) waiting;
};

struct cm_id {
	struct rl_cm_id pub;
	TAILQ_ENTRY(cm_id) all;
	uint32_t handle; /* 0: the dataplane does not know of it */
	uint32_t bound;  /* the dataplane's id that has its service port, or 0 */
	bool peers;      /* it is a CONNECT_REQUEST's */
	bool answered;   /* ... and the answer was given */
	bool afonly;     /* asked by addresses of its own family alone */
	bool reuse;      /* may be bound where others are that say the same */
	uint8_t timeout; /* 0: as it is usual */
	uint8_t tos;
	bool has_attr;
	struct rl_qp_attr attr; /* RTR and RTS */
	uint8_t responder_resources, initiator_depth;
	struct acks events;
	struct sockaddr_storage local, peer;
	struct sockaddr_storage asked; /* `local` as it was before the peer was looked for */
	uint8_t asked_port;            /* ... and port_num */
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
/** Is it a multicast address? */
bool client_cm_is_group(const struct sockaddr_storage *a);
/** The peer's address is a group's: find the port, and tell. @return 0 or -errno. */
int client_cm_resolve_group(struct cm_id *id);

/** Has it a QP of rl_cm_create_qp() that is walked as the connection goes? */
static inline bool
client_cm_walks(const struct cm_id *id)
{
	return id->pub.qp != NULL && id->pub.qp_type != RL_QPT_UD;
}

/* cm_queue.c; ctx->lock held */
/** An event of the library's own. @return 0 or -ENOMEM. */
int client_cm_tell(struct cm_id *id, enum rl_cm_event_type event);
/** With nothing waiting: ask the dataplane. @return 0 or -errno. */
int client_cm_fetch(struct context *ctx, struct cm_channel *ch);
/** The oldest, which must be there, goes. */
void client_cm_drop(struct cm_channel *ch);
/** One more can be taken: it was not taken after all. */
void client_cm_count(struct cm_channel *ch);
/** The id ends: its events go, and who asked it unheard. */
void client_cm_forget(struct context *ctx, struct cm_channel *ch, const struct cm_id *id);
/** Its events, and who asked it unheard, come on another channel. @return 0 or -errno. */
int client_cm_move(struct context *ctx, const struct cm_id *id, struct cm_channel *from,
	struct cm_channel *to);
/** The channel ends. */
void client_cm_free_waiting(struct cm_channel *ch);

/** The library's struct behind the one that the application has. */
static inline struct cm_id *
cm_id_of(struct rl_cm_id *id)
{
	return (struct cm_id *)id;
}

#endif
