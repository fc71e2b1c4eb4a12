/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CM_H
#define CM_H
/**
 * @file cm.h  The connection manager: (connection, message, now) -> verdict.
 *
 * Owner:   one lcore; no function here is safe from another.
 * Memory:  tables of constant size, allocated once. Peers cannot make them grow.
 * Time:    a parameter.
 * Depends: base wire wheel.
 * Spec:    IBTA vol. 1, chapter 12, annex A11; CM-03..44. tables/cm_states.def has the states.
 *
 * Nothing here makes queue pairs or sends: the verdict says what to do. The caller carries it out
 * before it calls again.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "mad.h"
#include "wheel.h"

#define CM_LISTENERS   256
#define CM_SOURCES     1024 /* places for peers' addresses, shared by those that fall together */
#define CM_NEIGHBOURS  256  /* places for MACs, shared by those that fall together */
#define CM_CONNECTIONS 16384
#define CM_HALF_OPEN   1024
#define CM_BACKLOG     128
#define CM_REQS        2000 /* a second, from one source */
#define CM_RETRIES     15
#define CM_DEPTH_MAX   16 /* READs and ATOMICs at once that a QP here can have */
#define CM_ACK_DELAY   14 /* what a REP says: 67 ms, for lcores that lose their CPU */
#define CM_PRIVATE_MAX 224
#define CM_MRA_TIMEOUT 24 /* the program's time to answer: 69 s */
#define CM_SIDR_KEPT   21 /* how long an answer to a SIDR_REQ is repeated: 8.6 s */
#define CM_TIMEOUT_MIN 8  /* of a peer's response timeout that is believed: 1 ms */
#define CM_TIMEOUT_MAX 20 /* ... 4.3 s */
/* 1.1 s: for an RTU in a crowd, and for the place of a peer that gave up: it may do so again */
#define CM_CROWDED_TIMEOUT 18
#define CM_UD_QKEY         UINT32_C(0x01234567) /* of datagram services where nobody says another */

enum cm_state {
	CM_IDLE,
	CM_SIDR_REQ_SENT,
	CM_REQ_SENT,
	CM_MRA_REQ_RCVD,
	CM_REQ_RCVD,
	CM_MRA_REQ_SENT,
	CM_REP_SENT,
	CM_MRA_REP_RCVD,
	CM_ESTABLISHED,
	CM_DREQ_SENT,
	CM_TIMEWAIT,
	CM_SIDR_REP_RCVD,
	CM_SIDR_REQ_RCVD,
	CM_SIDR_REP_SENT,
	CM_REJ_RCVD, /* the peer that asked gave up; its place is taken a moment longer (CM-40) */
	CM_STATES
};

/** "REQ_SENT" */
const char *cm_state_name(enum cm_state s);

enum cm_input {
	CM_IN_REQ,
	CM_IN_MRA,
	CM_IN_REJ,
	CM_IN_REP,
	CM_IN_RTU,
	CM_IN_DREQ,
	CM_IN_DREP,
	CM_IN_LAP,
	CM_IN_APR,
	CM_IN_SIDR_REP,   /* with a number */
	CM_IN_SIDR_NO,    /* ... without */
	CM_IN_DATA,       /* a packet at the queue pair */
	CM_IN_TIMEOUT,    /* an interval is over */
	CM_IN_LAST,       /* ... the last one */
	CM_IN_ACCEPT,     /* the program says */
	CM_IN_REJECT,     /* ... */
	CM_IN_DISCONNECT, /* ... */
	CM_INPUTS
};

enum cm_send {
	CM_SEND_NOTHING,
	CM_SEND_AGAIN, /* what was sent last, unchanged */
	CM_SEND_MRA,
	CM_SEND_REJ,
	CM_SEND_REP,
	CM_SEND_RTU,
	CM_SEND_DREQ,
	CM_SEND_DREP,
	CM_SEND_APR,
};

/** What becomes of the connection's queue pair. */
enum cm_todo {
	CM_DO_NONE,
	CM_DO_ASK,     /* a new REQ or SIDR_REQ: accept or reject it, now or later */
	CM_DO_CONNECT, /* client: to RTR and RTS by conn->taken */
	CM_DO_READY,   /* server: to RTS */
	CM_DO_DOWN,    /* to ERR */
};

/** What the program hears: enum rdma_cm_event_type's names. */
enum cm_event {
	CM_EVENT_NONE,
	CM_EVENT_CONNECT_REQUEST,
	CM_EVENT_ESTABLISHED,
	CM_EVENT_REJECTED,
	CM_EVENT_UNREACHABLE,
	CM_EVENT_CONNECT_ERROR,
	CM_EVENT_DISCONNECTED,
	CM_EVENT_TIMEWAIT_EXIT,
	CM_EVENTS
};

/** "CONNECT_REQUEST"; NULL for CM_EVENT_NONE. */
const char *cm_event_name(enum cm_event e);

enum cm_drop {
	CM_DROP_NONE,
#define DROP(name, text, rule) CM_DROP_##name,
#include "tables/cm_drops.def"
#undef DROP
	CM_DROPS
};

/** What it means; "" for CM_DROP_NONE. */
const char *cm_drop_text(enum cm_drop d);

/** Status of a SIDR_REP. */
enum { CM_SIDR_GOOD = 0, CM_SIDR_NO_SERVICE = 1, CM_SIDR_REFUSED = 2, CM_SIDR_NO_QP = 3 };

/** Types of queue pairs as a REQ names them; UD listeners are asked by SIDR. */
enum cm_service { CM_RC = 0, CM_UC = 1, CM_RD = 2, CM_XRC = 3, CM_UD = 8 };

/** What one side says of itself in a REQ or REP. */
struct cm_terms {
	uint32_t qpn;
	uint32_t psn;  /* where the other side begins to send (CM-19) */
	uint32_t qkey; /* UD */
	uint8_t responder_resources;
	uint8_t initiator_depth;
	uint8_t retry_count;     /* REQ */
	uint8_t rnr_retry_count; /* for the other side's requests */
	uint8_t ack_timeout;     /* REQ: Local ACK Timeout; REP: Target ACK Delay */
	uint8_t mtu;             /* REQ: 1..5 */
	uint8_t service;         /* enum cm_service */
	bool srq;
	bool no_credits; /* it says that it has no end-to-end flow control */
};

/** What the queue pair gets of the two sides' terms (data.cm_taken). */
struct cm_taken {
	uint32_t dest_qpn;
	uint32_t rq_psn;
	uint32_t sq_psn;
	uint8_t mtu;
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t max_rd_atomic;
	uint8_t max_dest_rd_atomic;
};

/** One end of the way, and the other. Addresses are GIDs: IPv4 is ::ffff:a.b.c.d. */
struct cm_path {
	uint16_t port; /* index */
	uint16_t tci;  /* of the VLAN tag; 0: none */
	uint8_t own_gid[16];
	uint8_t peer_gid[16];
	uint8_t peer_mac[6];
	bool has_mac; /* else the caller finds the neighbour */
};

/** Who reaches a listener (CM-45). */
struct cm_reach {
	uint8_t ip;  /* version of the addresses, 4 or 6; 0: both */
	bool is_one; /* asked at this own address alone: */
	uint8_t gid[16];
};

struct cm_listener {
	uint64_t service_id;
	struct cm_reach reach;
	void *user;
	uint32_t backlog; /* unfinished connections that it may have */
	uint32_t pending;
	uint32_t unheard_max; /* ... of whose request nobody has heard (cm_heard()); 0: all */
	uint32_t unheard;
	uint16_t port;
	uint8_t service; /* enum cm_service */
	uint8_t mtu;     /* largest code that its port carries */
	bool used;
	bool asks;          /* UD: the program answers each SIDR_REQ */
	struct cm_terms ud; /* ... else: number and key that a SIDR_REP says */
};

enum { CM_BY_REMOTE, CM_BY_QPN, CM_BY_OWN_QPN, CM_CHAINS };

struct cm_conn {
	struct wheel_node timer;
	uint32_t local_id; /* 0: nobody's place */
	uint32_t remote_id;
	uint32_t next[CM_CHAINS]; /* index + 1 */
	uint8_t state;            /* enum cm_state */
	uint8_t retries;          /* left */
	uint8_t retries_max;
	uint8_t packet_life;
	bool active; /* we asked */
	bool half_open;
	bool unheard; /* one of its listener's */
	bool told;    /* the program has heard of it, or made it */
	bool is_up;   /* was ESTABLISHED */
	struct cm_path path;
	uint64_t service_id;
	uint64_t tid;       /* of the REQ */
	uint64_t their_tid; /* of the peer's DREQ or LAP, for its answer */
	uint64_t peer_guid; /* of its port */
	struct cm_terms own, peer;
	struct cm_taken taken;
	struct cm_listener *listener; /* NULL: it is gone, or we asked */
	uint16_t reason;              /* of the REJ that ended it */
	uint16_t source;              /* place in cm->sources while half open */
	uint16_t neighbour;           /* ... in cm->neighbours */
	TAILQ_ENTRY(cm_conn) beside;  /* ... among those of that one */
	uint8_t last;                 /* enum cm_event that ended it */
	bool ip;                      /* of an IP port space */
	bool patient;                 /* an MRA may put give_up off */
	uint16_t source_port;         /* of that space: who asks */
	ns_t interval;                /* between repetitions */
	ns_t give_up;                 /* 0: by retries alone */
	ns_t time_req, time_rep, time_rtu;
	uint32_t sent_n; /* times that REQ or REP was sent */
	void *user;
	uint8_t sent[MAD_LEN]; /* REQ, REP or DREQ, as it is repeated */
	uint8_t private_len;
	uint8_t private
		[CM_PRIVATE_MAX]; /* the user's part of what came with the peer's last message */
};

/** A received message, with what its envelope said. */
struct cm_packet {
	const uint8_t *mad;
	uint32_t len;
	struct cm_path path;
};

/** A message to send. */
struct cm_out {
	struct cm_path path;
	uint8_t mad[MAD_LEN];
};

struct cm_verdict {
	struct cm_conn *conn; /* whose; NULL: none. Its place is free again with `over` */
	uint8_t drop;         /* enum cm_drop */
	uint8_t todo;         /* enum cm_todo */
	uint8_t event;        /* enum cm_event */
	bool duplicate;
	bool over;                 /* after this the connection is forgotten: cm_forget() */
	uint16_t status;           /* of the event: reason of a REJ, or an errno */
	struct cm_conn *displaced; /* another one, which gave its place to this; or NULL */
	uint8_t outs;
	struct cm_out out[2];
};

/** Those of one address, or of several that fall together. */
struct cm_source {
	uint32_t half_open;
};

/** REQs of one address and MAC. */
struct cm_rate {
	uint64_t second;
	uint32_t reqs;
};

/** Those whose frames come from one MAC: a host, or a router. */
struct cm_neighbour {
	TAILQ_HEAD(cm_conns, cm_conn) half_open; /* oldest first, but for cm_make_room() */
	uint32_t n;
	uint32_t all; /* connections that they have begun, whatever has become of them */
};

struct cm_limits {
	uint32_t connections; /* power of two, at most 65536 */
	uint32_t half_open;
	uint32_t reqs; /* a second, from one source */
};

struct cm {
	struct cm_limits limits;
	struct cm_conn *conns;
	uint32_t *heads[CM_CHAINS]; /* index + 1 of each chain's first */
	uint32_t *free;             /* a stack of places that were used */
	uint32_t free_n;
	uint32_t used_n; /* places from here on were never used */
	uint32_t n, half_open;
	uint64_t random;
	uint64_t key; /* of the hashes: not known to peers */
	uint64_t guid;
	struct wheel wheel;
	struct cm_listener listeners[CM_LISTENERS];
	struct cm_source sources[CM_SOURCES];
	struct cm_rate rates[CM_SOURCES];
	struct cm_neighbour neighbours[CM_NEIGHBOURS];
	struct {
		uint64_t second; /* of the map that is written */
		uint64_t *map;   /* bits of the REQs of the last seconds: cm_crowd.c */
	} crowd;
};

/**
 * @param seed not to be guessed: of ids, transaction ids, hashes. @param guid of this port (CM-44).
 * @return 0 or -ENOMEM; cm_fini() is right after both.
 */
int cm_init(struct cm *cm, const struct cm_limits *limits, uint64_t seed, uint64_t guid, ns_t now);
/** Everything goes. */
void cm_fini(struct cm *cm);

/** A number that peers cannot guess. */
uint64_t cm_random(struct cm *cm);

/**
 * @param reach NULL: all. @return the listener, or NULL with -ENOSPC in `rc`, or -EADDRINUSE: some
 * REQ would reach another one as well.
 */
struct cm_listener *cm_listen(
	struct cm *cm, uint16_t port, uint64_t service_id, const struct cm_reach *reach, int *rc);
/** The listener that such a one would be in the way of, or NULL. */
const struct cm_listener *cm_listener_beside(
	struct cm *cm, uint16_t port, uint64_t service_id, const struct cm_reach *reach);
/** Is there an address that both stand for? */
bool cm_reach_meets(const struct cm_reach *a, const struct cm_reach *b);
/** @return how many there are. */
uint32_t cm_listeners(const struct cm *cm);
/** Its connections live on. */
void cm_unlisten(struct cm *cm, struct cm_listener *l);

struct cm_ask {
	struct cm_path path;
	struct cm_terms terms; /* ack_timeout is made here */
	uint64_t service_id;
	uint16_t source_port;
	uint8_t packet_life; /* 4.096 us * 2^n, one way */
	bool ip;             /* IP port space: with its header in the private data */
	uint8_t traffic_class;
	uint8_t hop_limit;
	const uint8_t *private;
	uint32_t private_len;
	ns_t time;    /* the whole attempt may take */
	bool patient; /* ... and as much more as the peer asks for with MRAs */
	void *user;
};

/** How much private data of the user's has room in its first message. */
uint32_t cm_ask_room(const struct cm_ask *ask);

/**
 * Send a REQ; with terms.service CM_UD a SIDR_REQ, whose answer is only where datagrams may go.
 * @return 0 and v->conn; -EINVAL: private data is too long; -ENOSPC.
 */
int cm_connect(struct cm *cm, const struct cm_ask *ask, ns_t now, struct cm_verdict *v);
/**
 * Answer a REQ with a REP, a SIDR_REQ with a SIDR_REP. What `own` offers is cut to what the REQ
 * asks for.
 * @return 0; -EINVAL: state, or private data is too long.
 */
int cm_accept(struct cm *cm, struct cm_conn *c, const struct cm_terms *own, const uint8_t *private,
	uint32_t private_len, ns_t now, struct cm_verdict *v);
/** Answer it with a REJ, or with a SIDR_REP that says no. @return the same. */
int cm_reject(struct cm *cm, struct cm_conn *c, uint16_t reason, const uint8_t *private,
	uint32_t private_len, ns_t now, struct cm_verdict *v);
/** End a connection, or an attempt. @return 0; -EINVAL: it is over. */
int cm_disconnect(struct cm *cm, struct cm_conn *c, ns_t now, struct cm_verdict *v);
/** A packet has come to a queue pair that waits for its RTU. @return false: nobody waits. */
bool cm_data(struct cm *cm, uint32_t qpn, ns_t now, struct cm_verdict *v);
/** The program of its listener has heard of the request: another one has its place now. */
void cm_heard(struct cm_conn *c);

/** A message has come. */
void cm_receive(struct cm *cm, const struct cm_packet *p, ns_t now, struct cm_verdict *v);
/** The next thing that is due. @return false: nothing is. */
bool cm_timer(struct cm *cm, ns_t now, struct cm_verdict *v);
/** Carried out: the place of v->conn is free again. */
void cm_forget(struct cm *cm, struct cm_conn *c);

/** The connection with this id, or NULL. */
struct cm_conn *cm_find(struct cm *cm, uint32_t local_id);
/** The connection of our queue pair, or NULL. */
struct cm_conn *cm_by_own_qpn(struct cm *cm, uint32_t qpn);
/** Go through the connections: from 0. @return NULL at the end. */
struct cm_conn *cm_each(struct cm *cm, uint32_t *at);

/** 4.096 us * 2^n. */
static inline ns_t
cm_time(uint8_t n)
{
	return UINT64_C(4096) << (n & 31);
}

/** Local ACK Timeout of a path with this packet life, to a peer with this ACK delay (CM-16). */
uint8_t cm_ack_timeout(uint8_t delay, uint8_t life);
/** Longest response timeout with which `retries` repetitions fit into a time. */
uint8_t cm_response_timeout(ns_t time, uint32_t retries);

#endif
