/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ADMIN_H
#define ADMIN_H
/**
 * @file admin.h  Life of a queue pair: number, creation, transitions, address, end.
 *
 * Owner:   control lcore. A QP in RESET is detached and the control's own; from INIT on it is
 *          attached to its worker and changed by message only.
 * Memory:  a record for each QP; QPs of one template (`count`) share their configuration. Compact
 *          ones have a record only while somebody looks, or once it is changed (admin_fold.c).
 * Depends: conf qp mbox mem.
 * Circles: its files call each other, since making a QP walks it to its state, a walk that fails
 *          ends the QP, and a look-up may make a folded record again (admin_fold.c).
 * Spec:    QP-01..20, RX-LNK-02, WIRE-14, WIRE-15.
 */
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "conf.h"
#include "env.h"
#include "log_rate.h"
#include "net.h"
#include "objects.h"
#include "owner.h"
#include "qp_attr.h"
#include "qp_control.h"
#include "qp_migration.h"
#include "qp_rule.h"
#include "refusal.h"

struct ask;
struct admin;
struct admin_ahs;
struct story;

/** What was heard of a QP last (AEQ-12). */
struct event_last {
	ns_t time_ns;
	uint16_t code;      /* enum aeq_code, 0: nothing yet */
	uint16_t wqe_index; /* of the failing receive, with source RQ */
	uint8_t source;
	uint8_t event; /* ibv_event_type, of a report */
};

/** How a QP leaves a failure behind. */
enum admin_end { ADMIN_END_NONE, ADMIN_END_RESET, ADMIN_END_DESTROYED, ADMIN_END_OWNER };

/** What QPs of one template have in common. */
struct admin_shared {
	uint32_t refs;
	struct conf_qp conf;
	struct conf_knobs knobs;        /* in effect */
	struct mem_region *send_region; /* send_feed: what all of them send, or read into */
	bool configured;                /* by the file, not while it runs */
	struct owner *owner; /* whose QP it is, or NULL: then `count` is 1, without feeds */
};

/** The last fatal fault that a worker reported (RX-ERR-04). */
struct admin_fatal {
	ns_t time_ns;
	uint32_t psn;
	uint16_t rule;
	uint8_t code;
	uint8_t opcode;
	uint8_t syndrome;
};

struct admin_qp {
	struct qp *qp; /* its fields are its worker's: qp_control.h */
	uint32_t qpn;
	uint8_t worker; /* who has it, or will when it is attached */
	struct admin_shared *shared;
	struct object_pd *pd;
	struct object_cq *send_cq; /* either may be NULL: XRC */
	struct object_cq *recv_cq;
	struct object_srq *srq;   /* NULL: a receive queue of its own, or none (XRC) */
	struct object_xrcd *xrcd; /* of an XRC target; then there are no CQs */
	struct mem_region *feed;
	struct neigh_link link;     /* of the primary path */
	struct neigh_link alt_link; /* of the alternate one */
	uint32_t nth;               /* which QP of its template, from 0 */
	int16_t port;               /* index in conf->ports; -1: not given yet */
	int16_t alt_port;           /* the same for the alternate path; -1: not given, the same */
	bool alt_loaded;            /* the worker has an alternate path */
	bool attached;
	bool held; /* was attached: a worker may hold it for a packet, until it is asked */
	struct qp_work *work; /* of a compact QP: what it posts with */
	bool has_work;        /* ... and its worker has it */
	bool pending;         /* ATTACH, MODIFY, DETACH, RELEASE or ADOPT is not answered yet */
	bool mac_missed;      /* ... a path's MAC is new since */
	bool err_missed;      /* ... it is to go to ERR */
	uint8_t move_to;      /* RELEASE: where the QP goes then */
	uint8_t owed;         /* ADMIN_OWED_*: what workers could not be told */
	bool trace;
	bool failed;         /* since RESET, and that is in the post-mortem */
	ns_t state_ns;       /* qp_modify moved it to its state; 0: it was made in it */
	uint32_t given;      /* attributes that have a value: configuration and modifies */
	struct ring rq;      /* producer's view of the receive queue */
	struct ring sq;      /* ... of the send queue; sq.sh NULL: there is none */
	struct qp_attr attr; /* as control set them last */
	struct conf_ah ah;
	struct conf_ah alt_ah;
	uint64_t alt_given; /* CONF_QP_ALT_* */
	struct admin_fatal fatal;
	struct event_last last_event;
	struct story *story; /* flight recorder at the last error, or NULL */
	TAILQ_ENTRY(admin_qp) of_owner;
	TAILQ_HEAD(, admin_opener) openers; /* admin_open.h: who has it besides its owner */
	struct owner_rings rings;           /* in the client's memory */
	uint16_t holds;                     /* handlers that are at work on it (AEQ-06) */
	bool doomed;                        /* destroyed while held: freed with the last hold */
	bool unwanted;                      /* admin_end_later() */
	TAILQ_ENTRY(admin_qp) of_unwanted;  /* ... among those */
	TAILQ_ENTRY(admin_qp) of_owed;      /* who is owed something */
	uint16_t mcasts_n;                  /* admin_mcast.h: groups that it is a member of */
	struct admin_ahs *ahs; /* admin_ah.h: where the operator's posts to it go, or NULL */
};

/** Its transport service. */
static inline enum qp_type
admin_qp_type(const struct admin_qp *rec)
{
	return (enum qp_type)rec->shared->conf.qp_type;
}

struct admin_slot {
	uintptr_t at;      /* admin_slot_rec() */
	uint32_t last_qpn; /* of the QP that had the slot before, 0: none (QP-20) */
};

/** A worker's stock of sides for compact QPs. */
struct admin_stock {
	uint64_t given; /* so far */
	bool wanted;
	bool short_told;
};

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct admin_up {
	/** The QP, which is detached, is reset or destroyed: its failure is over. */
	void (*left)(void *ctx, struct admin_qp *rec, enum admin_end how);
	void *ctx;
};

#define ADMIN_SNAPSHOTS 32 /* QPs that are asked for their live numbers at one round trip */

/** All queue pairs. */
struct admin {
	struct env *env;
	struct objects *objects;
	struct net *net;
	struct admin_up up;
	struct admin_slot *slots; /* env->w.qps->entries, by the low bits of the QPN */
	uint32_t qps_n;
	TAILQ_HEAD(, admin_mcast) mcasts; /* admin_mcast.h */
	bool mcasts_left[CONF_MAX_PORTS]; /* since the device was told, or it never was */
	ns_t mcasts_at[CONF_MAX_PORTS];   /* a device that has refused is not told before */
	struct log_rate told_mcasts[CONF_MAX_PORTS];
	TAILQ_HEAD(, admin_qp) unwanted; /* admin_end_later() */
	ns_t unwanted_at;                /* not tried again before */
	TAILQ_HEAD(, admin_qp) owed;     /* admin_owed.c */
	uint32_t fold_at;                /* admin_fold_poll(): the next slot */
	uint32_t fold_left;              /* slots that it has still to look at */
	uint32_t worker_qps[ENV_MAX_WORKERS];
	struct admin_stock stock[ENV_MAX_WORKERS];
	bool running;                /* what the configuration asks for is made */
	uint32_t suspended;          /* QPs that were told to be quiet and are not yet (AEQ-05) */
	void (*on_quiet)(void *ctx); /* the last of them is quiet; may be NULL */
	void *on_quiet_ctx;
	struct qp_snapshot snapshots[ADMIN_SNAPSHOTS]; /* room for whoever asks for many */
};

/**
 * @param adm all zero but for the modules below it, `up` and `env`.
 * @return 0 or -ENOMEM.
 */
int admin_init(struct admin *adm);
/** Every QP to ERR, detached, freed. */
void admin_fini(struct admin *adm);

/** The record is good until the next control_poll(), or until it is put again. */
struct admin_qp *admin_find(struct admin *adm, uint32_t qpn);
/** Record of this number, or NULL with the refusal (ENOENT) filled in. */
struct admin_qp *admin_get(struct admin *adm, uint32_t qpn, struct refusal *r);
/** First record in or behind table slot *slot, which moves behind it; NULL: no more. */
struct admin_qp *admin_next(struct admin *adm, uint32_t *slot);

/**
 * Create `count` QPs and walk each to its state; all of them or none.
 * @param recs room for conf->count records, or NULL.
 */
int admin_create(
	struct admin *adm, const struct conf_qp *conf, struct admin_qp **recs, struct refusal *r);
/** One QP of a client, with its rings in memory that it shares. */
int admin_create_for(struct admin *adm, struct owner *owner, const struct conf_qp *conf,
	struct admin_qp **rec, struct refusal *r);
/** What a decoded modify asks for. Nothing changes on a refusal. */
int admin_modify(
	struct admin *adm, struct admin_qp *rec, const struct conf_qp *m, struct refusal *r);
/** Detached, and freed unless it is held. @return 0 or a refusal: EBUSY, a worker is silent. */
int admin_destroy(struct admin *adm, struct admin_qp *rec, struct refusal *r);
/** One that could not be destroyed now, and that nobody knows of: as soon as workers answer. */
void admin_end_later(struct admin *adm, struct admin_qp *rec);
/** Some of those, when it is their time. @return how many. */
uint32_t admin_end_poll(struct admin *adm);
/** The record stays until it is put, whatever happens to the QP meanwhile. */
void admin_hold(struct admin_qp *rec);
/** The last one frees a QP that was destroyed meanwhile. */
void admin_put(struct admin *adm, struct admin_qp *rec);
/** A detached QP got its port: a worker that can send there. @return 0 or a refusal. */
int admin_place(struct admin *adm, struct admin_qp *rec, struct refusal *r);
/** Present state: the worker may have moved the QP to ERR by itself. */
enum qp_state admin_state(const struct admin_qp *rec);
/** A worker has not answered, so that nobody knows whose the QP is. @return -EBUSY. */
int admin_refuse_pending(const struct admin_qp *rec, struct refusal *r);
/** Workers could not be told that it has moved. @return -EBUSY. */
int admin_refuse_owed(const struct admin_qp *rec, struct refusal *r);
/** Its connection is over: to ERR, now or when its worker has answered. @return 0 or a refusal. */
int admin_fail(struct admin *adm, struct admin_qp *rec, struct refusal *r);
/** ADMIN_OWED_ERR. @return false: there is no room. */
bool admin_fail_try(struct admin *adm, struct admin_qp *rec);
/** The worker has answered, and has the QP: it is told of what is new since. */
void admin_answered(struct admin *adm, struct admin_qp *rec);
/**
 * Live numbers of n QPs (at most ADMIN_SNAPSHOTS) at one round trip.
 * @return 0 or a refusal.
 */
int admin_snapshots(struct admin *adm, struct admin_qp *const *recs, uint32_t n,
	struct qp_snapshot *out, struct refusal *r);
/** Turn the flight recorder of a QP on or off. */
int admin_trace(struct admin *adm, struct admin_qp *rec, bool on, struct refusal *r);
/** The same for all QPs there are, without a round trip for each. @param n out: how many. */
int admin_trace_all(struct admin *adm, bool on, uint32_t *n, struct refusal *r);
/**
 * The neighbour's MAC is another one, or not known any more: tell the worker.
 * @return 0, -EAGAIN: later.
 */
int admin_new_mac(struct admin *adm, struct neigh_link *link);

/* admin_owed.c */
enum {
	ADMIN_OWED_ADOPT = 1, /* its worker let go of it, and nobody has it: pending */
	ADMIN_OWED_UNPARK = 2,
	ADMIN_OWED_POSTED = 4,
	ADMIN_OWED_RECEIVES = 8,
	ADMIN_OWED_ERR = 16 /* until it is in RESET */
};
/** A worker's queue is full: it is told as soon as there is room. */
void admin_owe(struct admin *adm, struct admin_qp *rec, uint8_t what);
/** @return is nothing owed (any more)? */
bool admin_owed_settle(struct admin *adm, struct admin_qp *rec);
/** Some of those for whom there is room by now. @return how many. */
uint32_t admin_owed_poll(struct admin *adm);
/** The QP goes. */
void admin_owed_forget(struct admin *adm, struct admin_qp *rec);
/** This one is owed no more. */
void admin_owed_forgive(struct admin *adm, struct admin_qp *rec, uint8_t what);
/** Its worker looks at what was posted, now or later. @param what POSTED or RECEIVES. */
void admin_ring(struct admin *adm, struct admin_qp *rec, uint8_t what);

/* admin_move.c */
/** One that nobody could be told to adopt: its old owner has it again. @return is it told? */
bool admin_move_back(struct admin *adm, struct admin_qp *rec);
/**
 * To another worker, while packets come and go: their order is kept. @return 0 or a refusal.
 * Cost: round trips to every worker.
 */
int admin_move(struct admin *adm, struct admin_qp *rec, uint32_t to, struct refusal *r);
/** AEQ-05: one more QP was told to be quiet. */
void admin_quiet_begin(struct admin *adm);
/** ... and does not become quiet: nothing will come. */
void admin_quiet_cancel(struct admin *adm);
/** A worker says SUSPEND_COMPLETE; also of a QP that is gone, or those who wait would for ever. */
void admin_quiet_end(struct admin *adm);

/* admin_fold.c */
/** Record of a slot, made again if it was folded; NULL: none, or no memory (logged). */
struct admin_qp *admin_slot_rec(struct admin *adm, struct admin_slot *slot);
/** NULL: the slot is free. */
void admin_slot_set(struct admin_slot *slot, struct admin_qp *rec);
/** Number of the QP that has the slot, 0: none. */
uint32_t admin_slot_qpn(const struct admin_slot *slot);
/** State of the QP that has the slot, -1: none. Makes no record. */
int admin_slot_state(const struct admin_slot *slot);
/** Give the record back if its template says it all. @return did it? Then it is freed. */
bool admin_fold(struct admin *adm, struct admin_qp *rec);
/** Nobody looks at records now: fold those that somebody looked at before. */
void admin_fold_poll(struct admin *adm);

/* admin_create.c */
/** Configuration of the nth QP of a template. @return 0 or a refusal. */
int admin_nth_conf(const struct conf_qp *conf, uint32_t n, struct conf_qp *one, struct refusal *r);
/** The objects and ports that it names. @return 0 or a refusal. */
int admin_references(
	struct admin *adm, const struct conf_qp *conf, struct admin_qp *rec, struct refusal *r);
/** Attributes before the first transition. */
void admin_set_defaults(struct admin_qp *rec, const struct conf_qp *conf);
/** Its paths' links say whose they are: those of the record at `at`. */
void admin_paths_link(struct admin_qp *rec, struct admin_qp *at);
/** One reference less; the last one frees. */
void admin_shared_put(struct admin *adm, struct admin_shared *s);

/** The posting side's views of the QP's rings, as the rings are now. */
void admin_rings_attach(struct admin_qp *rec);

/* admin_stock.c */
/** A compact QP can be posted to from now on. @return 0 or a refusal. */
int admin_work_attach(struct admin *adm, struct admin_qp *rec, struct refusal *r);
/** The worker gets the QP. */
void admin_stock_begin(struct admin *adm, const struct admin_qp *rec, uint32_t worker);
/** Fill up what workers have given to compact QPs. @return how many got something. */
uint32_t admin_stock_poll(struct admin *adm);

/* admin_knobs.c */
/** Has a QP with these knobs a rate of its own? */
bool admin_knobs_rate(const struct conf_knobs *k);
/** May switches mark its packets? Only if it reacts to CNPs (CC-32). */
bool admin_knobs_ect(const struct conf_knobs *k);
/** What its worker is told with QP_ATTACH. */
void admin_knobs_settings(struct admin *adm, const struct admin_qp *rec, struct qp_settings *s);
/** How its CNPs look. */
struct wire_cnp admin_knobs_cnp(const struct admin_qp *rec);

/* admin_number.c */
/** A free number: `want` itself when not 0. @return 0 or a refusal (EEXIST, ENOSPC). */
int admin_number_pick(struct admin *adm, uint32_t want, uint32_t *qpn, struct refusal *r);

/* admin_path.c */
/** One of a QP's two paths: what it is made from, and where it goes. */
struct admin_way {
	const char *key; /* "ah_attr", "alt_ah_attr": for refusals */
	const struct conf_ah *ah;
	int16_t port; /* index in conf->ports */
	struct neigh_link *link;
	struct wire_path *path; /* out */
	bool *resolved;         /* out */
};
/**
 * May an application put this on the port's wire? VLAN, priority, traffic class and MAC are the
 * port's own unless its "allow" says more; the source addresses are always the port's.
 * @param owner NULL or an operator's: he may. @param key of the vector, for the refusal (EPERM).
 */
int admin_permit(struct admin *adm, const struct owner *owner, int16_t port, const char *key,
	const struct conf_ah *ah, struct refusal *r);
/** Neighbours of this path count for its owner's user (neigh.h). @param owner NULL: for nobody. */
void admin_link_charge(struct neigh_link *link, const struct owner *owner);
/** Who sends over a path. */
struct admin_sender {
	const struct owner *owner; /* bound by admin_permit() */
	uint32_t qpn;              /* 0: many queue pairs */
	bool ect;                  /* packets may be marked instead of dropped */
	bool wire;                 /* path.local=wire: no destination is local */
};
/** Path of an address vector from a port, without dmac; what its owner may not use is refused. */
int admin_path_fill(struct admin *adm, const struct admin_sender *from, const struct admin_way *way,
	struct refusal *r);
/** The same for a QP. */
int admin_path_make(struct admin *adm, const struct admin_qp *rec, const struct admin_way *way,
	struct refusal *r);
/** The longest datagram of a UD QP (UD-12): what its configuration says, or what fits the port. */
uint16_t admin_path_datagram(const struct admin *adm, const struct admin_qp *rec);
/** Does this path MTU fit the port (RX-LNK-02)? */
int admin_path_mtu_check(
	struct admin *adm, const struct admin_way *way, uint32_t path_mtu, struct refusal *r);
/** Destination MAC: given, static, known or asked for; the next hop's. */
int admin_path_resolve(struct admin *adm, const struct admin_way *way, struct refusal *r);
/** The same for the path that is in use: it stays, whether a route is left or not. */
void admin_path_resolve_again(struct admin *adm, const struct admin_way *way);

/* admin_alternate.c */
struct admin_change;
/**
 * The alternate path and the path migration state of a step; may change rec->alt_ah and such.
 * The state is refused unless the QP can go there from where it was seen last.
 */
int admin_alternate_take(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_change *ch, struct refusal *r);
/** The worker may have moved the QP to its alternate path: then the record follows. */
void admin_alternate_sync(struct admin *adm, struct admin_qp *rec);
/** The same, and rec->attr.path_mig_state as it is now. @return 0 or a refusal. */
int admin_alternate_look(struct admin *adm, struct admin_qp *rec, struct refusal *r);
/** Another alternate path was refused: the one that is loaded has its neighbour back. */
void admin_alternate_again(struct admin *adm, struct admin_qp *rec);
/** No alternate path any more: RESET. */
void admin_alternate_forget(struct admin *adm, struct admin_qp *rec);

/* admin_attrs.c */
/** Key of an attribute in JSON: "min_rnr_timer". */
const char *admin_attr_key(uint32_t one_bit);
/** Values for `mask` out of a decoded object. */
void admin_attrs_take(struct qp_attr *to, const struct conf_qp *from, uint32_t mask);

/* admin_walk.c */
/**
 * One transition, with the values of `mask` from `conf`: checked, then carried out by the worker.
 * Attaches on the way out of RESET and detaches on the way in. Nothing changes on a refusal.
 */
int admin_walk_step(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	enum qp_state to, uint32_t mask, struct refusal *r);
/** One transition, as planned. */
struct admin_change {
	enum qp_state from;
	enum qp_state to;
	uint32_t mask; /* without STATE */
	struct qp_attr attr;
};
/** The checks of a step and what it makes of the attributes; may change rec->ah and rec->port. */
int admin_walk_plan(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_change *ch, struct refusal *r);
/** For ask_forget() with the record as `arg`: the ATTACH is answered after all. */
void admin_walk_late_attach(void *ctx, struct ask *a);
/** The same for DETACH. */
void admin_walk_late_detach(void *ctx, struct ask *a);
/** Take the QP from its worker. @return 0 or a refusal. */
int admin_walk_detach(struct admin *adm, struct admin_qp *rec, struct refusal *r);

/* admin_transition.c */
/** QP-01..03, and the words that say which attribute it was. @return 0 or a refusal. */
int admin_transition_check(
	const struct admin_qp *rec, const struct admin_change *ch, struct refusal *r);

/* admin_many.c */
#define ADMIN_WINDOW 32 /* QPs on their way at a time */
struct admin_walk {
	struct ask *ask[4]; /* ATTACH, then each step */
	uint32_t n;
};
/**
 * A new QP from RESET to the state its configuration asks for: check and send.
 * Whatever it returns, admin_many_finish() must be called before the QP is destroyed.
 */
int admin_many_start(struct admin *adm, struct admin_qp *rec, const struct conf_qp *conf,
	struct admin_walk *walk, struct refusal *r);
/** Wait for what admin_many_start() sent. @return 0 or the first refusal. */
int admin_many_finish(
	struct admin *adm, struct admin_qp *rec, struct admin_walk *walk, struct refusal *r);
/**
 * An attached QP goes to ERR and is detached; it is `pending` until then, and can be destroyed
 * after it. Never waits. @return false: later, there is no room for the messages.
 */
bool admin_end_begin(struct admin *adm, struct admin_qp *rec);
/** At the end: n QPs (at most ADMIN_WINDOW) to ERR, detached, freed. */
void admin_many_end(struct admin *adm, struct admin_qp *const *recs, uint32_t n);

/* admin_cnp.c */
/** The CNP that a worker asks for (CC-04). @param m the worker's message. */
void admin_cnp_send(struct admin *adm, const struct mbox_msg *m, uint16_t worker);

/* admin_json.c */
/**
 * The record as an entry of the configuration, with count 1 and qp_state RESET: what was asked
 * for, not what was found out (worker, dest_mac).
 */
void admin_conf(struct admin *adm, struct admin_qp *rec, struct conf_qp *q);
/** Attributes as in the configuration, every value filled in. */
json_t *admin_json(struct admin *adm, struct admin_qp *rec);
/** The same with live state. */
json_t *admin_json_live(struct admin *adm, struct admin_qp *rec, const struct qp_snapshot *s);

#endif
