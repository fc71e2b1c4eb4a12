/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ROCELANE_CM_H
#define ROCELANE_CM_H
/**
 * @file rocelane_cm.h  librocelane's connections: queue pairs set up by address and port.
 *
 * Names are librdmacm's with rl_cm_ for rdma_ and RL_CM_ for RDMA_CM_; values are the same. The
 * other end may be rocelane, Linux, or whatever else speaks RDMA IP CM. What differs:
 *   - a call returns 0 or -errno, rl_last_error() says why; objects come out by a parameter;
 *   - every channel is of one context, and every id has a channel: there is no synchronous mode;
 *   - RC, UC, XRC (XRC_SEND asks, XRC_RECV listens and answers), and UD; rl_attach_mcast() joins
 *     groups;
 *   - a port of the dataplane takes the place of a device; IPv4 and IPv6 addresses are the ports'.
 *
 * A server: create_event_channel, create_id, bind_addr, listen; for each CONNECT_REQUEST, whose
 * event->id is new: create_qp, post receives, accept; ESTABLISHED follows.
 * A client: create_id, resolve_addr (ADDR_RESOLVED), resolve_route (ROUTE_RESOLVED), create_qp,
 * connect; ESTABLISHED, or REJECTED, UNREACHABLE.
 * Either end: disconnect; DISCONNECTED comes to both.
 *
 * Datagrams (RL_PS_UDP, RL_QPT_UD): the same calls. A QP is in RTS as soon as it is made. The
 * client's ESTABLISHED says in event->ud where datagrams go; the server hears of none, and nobody
 * of an end.
 *
 * The library walks the QP that rl_cm_create_qp() made: to INIT there, to RTR and RTS when the
 * connection is accepted, to ERR by rl_cm_disconnect(). A QP of your own (conn_param.qp_num) is
 * yours to move, by rl_cm_init_qp_attr(); then the client hears CONNECT_RESPONSE, and says
 * rl_cm_establish() when its QP is in RTS.
 *
 * Owner:   as rocelane.h.
 * Memory:  the library's, until the destroy call; an event's until rl_cm_ack_event().
 * Depends: rocelane.h.
 * Spec:    IBTA vol. 1, chapter 12 and annex A11.
 */
#include <sys/socket.h>

#include "rocelane.h"

#ifdef __cplusplus
extern "C" {
#endif

enum rl_cm_port_space { RL_PS_TCP = 0x0106, RL_PS_UDP = 0x0111, RL_PS_IB = 0x013f };

enum rl_cm_event_type {
	RL_CM_EVENT_ADDR_RESOLVED,
	RL_CM_EVENT_ADDR_ERROR,
	RL_CM_EVENT_ROUTE_RESOLVED,
	RL_CM_EVENT_ROUTE_ERROR,
	RL_CM_EVENT_CONNECT_REQUEST,
	RL_CM_EVENT_CONNECT_RESPONSE,
	RL_CM_EVENT_CONNECT_ERROR,
	RL_CM_EVENT_UNREACHABLE,
	RL_CM_EVENT_REJECTED,
	RL_CM_EVENT_ESTABLISHED,
	RL_CM_EVENT_DISCONNECTED,
	RL_CM_EVENT_DEVICE_REMOVAL,
	RL_CM_EVENT_MULTICAST_JOIN,
	RL_CM_EVENT_MULTICAST_ERROR,
	RL_CM_EVENT_ADDR_CHANGE,
	RL_CM_EVENT_TIMEWAIT_EXIT
};

/** As many as the QP and the peer can have: for responder_resources and initiator_depth. */
#define RL_CM_MAX_RESP_RES   0xff
#define RL_CM_MAX_INIT_DEPTH 0xff

struct rl_cm_event_channel {
	struct rl_context *context;
	int fd; /* readable: rl_cm_get_event() has something */
};

struct rl_cm_id {
	struct rl_context *context;
	struct rl_cm_event_channel *channel;
	void *id_context;
	struct rl_qp *qp; /* of rl_cm_create_qp() */
	enum rl_cm_port_space ps;
	enum rl_qp_type qp_type; /* RL_QPT_RC; set it before rl_cm_listen() to have another one */
	uint8_t port_num;        /* of the dataplane, from 1; 0: not known yet */
};

struct rl_cm_conn_param {
	const void *private_data;
	uint8_t private_data_len;    /* connect: 56 at most, accept: 196, reject: 148;
					UD: 180, 136, 136 */
	uint8_t responder_resources; /* READs and ATOMICs of the peer at a time */
	uint8_t initiator_depth;     /* ... of this side */
	uint8_t flow_control;        /* the peer is told whether ACKs bring credits */
	uint8_t retry_count;
	uint8_t rnr_retry_count;
	uint8_t srq;     /* without rl_cm_create_qp(): does the QP have one? */
	uint32_t qp_num; /* ... its number */
	uint32_t qkey;   /* ... UD, accept: its key; 0: RL_UDP_QKEY */
};

/** The Q_Key of UD QPs that rl_cm_create_qp() made, and the only one that Linux takes. */
#define RL_UDP_QKEY 0x01234567u

struct rl_cm_ud_param {
	const void *private_data;
	uint8_t private_data_len;  /* CONNECT_REQUEST: 180, ESTABLISHED: 136 */
	struct rl_ah_attr ah_attr; /* the way to the peer, as rl_create_ah() has it */
	uint32_t qp_num;           /* ESTABLISHED: of the peer */
	uint32_t qkey;             /* ... */
};

struct rl_cm_event {
	struct rl_cm_id *id;
	struct rl_cm_id *listen_id; /* of a CONNECT_REQUEST */
	enum rl_cm_event_type event;
	int status; /* REJECTED: the reason, 8: nobody listens, 28: by the program; UNREACHABLE of
		       UD: 1: nobody listens, 2: by the program; else -errno */
	struct rl_cm_conn_param conn; /* what the peer said; private data with zeros behind it */
	struct rl_cm_ud_param ud;     /* UD: the same */
};

/** For events of ids. @return 0; -ENOSPC: over a limit of this client. */
int rl_cm_create_event_channel(struct rl_context *ctx, struct rl_cm_event_channel **channel);
/**
 * As with librdmacm: who has asked is heard of again only once rl_cm_accept() was called. An
 * error before that is not told; accept fails then. For a channel without ids.
 */
int rl_cm_accepted_only(struct rl_cm_event_channel *channel);
/** @return -EBUSY: ids are on it. */
int rl_cm_destroy_event_channel(struct rl_cm_event_channel *channel);
/** @param id_context yours. @return 0 or -ENOMEM. */
int rl_cm_create_id(struct rl_cm_event_channel *channel, struct rl_cm_id **id, void *id_context,
	enum rl_cm_port_space ps);
/**
 * Its connection ends, its listener too; its QP stays, until rl_cm_destroy_qp() before this. Waits
 * until its events are acknowledged.
 */
int rl_cm_destroy_id(struct rl_cm_id *id);
/** Its events come on another channel of the context from now on. */
int rl_cm_migrate_id(struct rl_cm_id *id, struct rl_cm_event_channel *channel);

/**
 * Address and port to listen at, or to connect from; zeros: any address, and a port that nobody
 * has (rl_cm_get_local_addr()). With an address the id has its port_num. Nobody else is bound
 * there as long as the id lives, in any process.
 * @return -EAFNOSUPPORT; -EADDRNOTAVAIL: no port has it; -EADDRINUSE: somebody is bound to it;
 * -EADDRNOTAVAIL, as Linux says it, if either is bound to any address; -EINVAL: it is bound.
 */
int rl_cm_bind_addr(struct rl_cm_id *id, const struct sockaddr *addr);
/**
 * A listener without an address is asked by those of its family alone (RDMA_OPTION_ID_AFONLY).
 * Before rl_cm_bind_addr(): then another one may be bound for the other family.
 */
int rl_cm_set_afonly(struct rl_cm_id *id, bool on);
/**
 * It may be bound where others are that say the same (RDMA_OPTION_ID_REUSEADDR). Said after
 * rl_cm_bind_addr() it counts for those who come later, and cannot be taken back. Who listens is
 * alone there all the same. @return 0; -EINVAL: too late.
 */
int rl_cm_set_reuseaddr(struct rl_cm_id *id, bool on);
/**
 * IP's traffic class towards the peer (RDMA_OPTION_ID_TOS). It counts until rl_cm_connect(), and
 * changes nothing afterwards. The connections of a listener do not take it over. @return 0; of an
 * id whose peer's address is resolved -EPERM: the port is not for it.
 */
int rl_cm_set_tos(struct rl_cm_id *id, uint8_t tos);
/**
 * @param backlog requests that were not told yet; 0: as many as may be. Beyond it peers are not
 * answered, and ask again some seconds later. @return -EADDRINUSE, -ENOSPC.
 */
int rl_cm_listen(struct rl_cm_id *id, int backlog);
/**
 * Find the port and the neighbour that lead to a peer: ADDR_RESOLVED or ADDR_ERROR follows.
 * After ADDR_ERROR it may be called again, also for a peer that another port leads to. @param src
 * NULL: any; not looked at where the id is bound, or where it was given before.
 * @return -ENETUNREACH: no port has a route; -EADDRNOTAVAIL.
 */
int rl_cm_resolve_addr(struct rl_cm_id *id, const struct sockaddr *src, const struct sockaddr *dst,
	int timeout_ms);
/** There is nothing to look for: ROUTE_RESOLVED follows. */
int rl_cm_resolve_route(struct rl_cm_id *id, int timeout_ms);
/**
 * The QP of this connection, in INIT; UD: in RTS. @param init qp_type is the id's. @return -EINVAL:
 * UD does not go with RL_PS_TCP.
 */
int rl_cm_create_qp(struct rl_cm_id *id, struct rl_pd *pd, struct rl_qp_init_attr *init);
/** @return as rl_destroy_qp(). */
int rl_cm_destroy_qp(struct rl_cm_id *id);
/** Ask the peer. @param param NULL: no private data, depths as large as may be, 7 retries. */
int rl_cm_connect(struct rl_cm_id *id, const struct rl_cm_conn_param *param);
/** Answer a CONNECT_REQUEST. @param param NULL: as for rl_cm_connect(). */
int rl_cm_accept(struct rl_cm_id *id, const struct rl_cm_conn_param *param);
/** Without rl_cm_create_qp(): the QP is in RTS, after a CONNECT_RESPONSE. */
int rl_cm_establish(struct rl_cm_id *id);
/** Say no to a CONNECT_REQUEST, or to a CONNECT_RESPONSE. */
int rl_cm_reject(struct rl_cm_id *id, const void *private_data, uint8_t private_data_len);
/** The same for another reason than the program's, 28: 35, by which vendors' options end. */
int rl_cm_reject_because(
	struct rl_cm_id *id, uint8_t reason, const void *private_data, uint8_t private_data_len);
/** Its QP goes to ERR, the peer is told. Right, too, when the peer was faster. */
int rl_cm_disconnect(struct rl_cm_id *id);
/**
 * Attributes for the state in attr->qp_state: INIT always, RTR and RTS after CONNECT_REQUEST or
 * CONNECT_RESPONSE. @return -EINVAL: not known yet.
 */
int rl_cm_init_qp_attr(struct rl_cm_id *id, struct rl_qp_attr *attr, int *mask);
/**
 * How long an answer may take on the way (4.096 us * 2^timeout): 14 without this, and with 0.
 * Before rl_cm_connect(). The QP's timeout, and the peer's, is made of it and of what the other end
 * needs: 14 at least, 15 and 16 for 14 and 15. @return -EINVAL: above 31.
 */
int rl_cm_set_timeout(struct rl_cm_id *id, uint8_t timeout);

/** Wait for an event (O_NONBLOCK on channel->fd: -EAGAIN). @return -EIO: the dataplane is gone. */
int rl_cm_get_event(struct rl_cm_event_channel *channel, struct rl_cm_event **event);
/** It was dealt with. A CONNECT_REQUEST counts for the id that listens. */
int rl_cm_ack_event(struct rl_cm_event *event);
/** "CONNECT_REQUEST" */
const char *rl_cm_event_str(enum rl_cm_event_type event);

/** This side's address and port, in an id's own memory; ss_family 0: not known yet. */
struct sockaddr *rl_cm_get_local_addr(struct rl_cm_id *id);
/** The peer's. */
struct sockaddr *rl_cm_get_peer_addr(struct rl_cm_id *id);

#ifdef __cplusplus
}
#endif

#endif
