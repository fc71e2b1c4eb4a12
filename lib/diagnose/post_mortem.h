/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef POST_MORTEM_H
#define POST_MORTEM_H
/**
 * @file post_mortem.h  The last failures of queue pairs, which outlive the QP and its owner.
 *
 * Owner:   control lcore.
 * Memory:  POST_MORTEM_MAX records, allocated with the first failure; they point to nothing.
 * Depends: explain, client.
 *
 * Where there is no room, the oldest record goes of the user who has most, and of that user's
 * applications the one that has most: who fails over and over pushes out his own failures.
 */
#include <stdbool.h>
#include <stdint.h>

#include "clock.h"
#include "conf.h"
#include "explain.h"
#include "admin.h"

#define POST_MORTEM_MAX 256
#define FAILED_NETWORK  512

struct diagnose;
struct mbox_msg;
struct admin_qp;

enum failed_of { FAILED_OF_CONFIGURATION, FAILED_OF_OPERATOR, FAILED_OF_CLIENT };

/** Whose QP it was. */
struct failed_owner {
	uint8_t kind; /* enum failed_of */
	/* FAILED_OF_CLIENT */
	uint32_t client;
	int32_t pid;
	uint32_t uid;
	char name[CONF_NAME_MAX];
};

struct failed_qp {
	struct failure f;
	struct failed_owner owner;
	struct story story; /* empty unless the flight recorder was on */
	ns_t ended_ns;
	uint64_t flushed; /* valid from ADMIN_END_DESTROYED on */
	uint32_t neigh_tries;
	uint16_t path_mtu;
	int16_t port; /* index in conf->ports, -1: none */
	uint8_t worker;
	uint8_t end; /* enum admin_end */
	uint8_t timeout;
	uint8_t retry_cnt;
	uint8_t rnr_retry;
	uint8_t neigh; /* enum neigh_state, or FAILED_NO_NEIGHBOR */
	bool recorder;
	bool port_down;
	char network[FAILED_NETWORK]; /* retries were used up: what was wrong on the way */
};
#define FAILED_NO_NEIGHBOR 0xff

/** One user's lines in the log: so many at once, then one in a while; the rest is counted. */
struct failed_lines {
	struct failed_owner user;          /* one of its applications */
	struct failed_owner last_left_out; /* of those left out */
	ns_t full_at;                      /* when it may write as many at once again as ever */
	uint32_t left_out;
};
#define FAILED_USERS 16 /* that have lines of their own at a time */

struct post_mortem {
	struct failed_qp *v;             /* POST_MORTEM_MAX, or NULL */
	uint16_t order[POST_MORTEM_MAX]; /* indices in v, oldest first */
	uint32_t n;
	uint64_t total; /* failures, ever */
	struct failed_lines lines[FAILED_USERS];
	uint32_t lines_n;
	bool untold; /* lines were left out since tell_at was set */
	ns_t tell_at;
};

/** Every record goes. */
void post_mortem_fini(struct diagnose *dg);
/**
 * A worker says that the QP failed. The QP is read: what its worker remembers of the failure was
 * written before the message was sent, and stays until this lcore has the QP reset.
 * Cost: about a microsecond, and a line in the log while the owner has some left.
 */
void post_mortem_add(struct diagnose *dg, struct admin_qp *rec, const struct mbox_msg *m);
/**
 * The QP, which is detached, is reset or goes away. A failure that was never told of (the mailbox
 * was full) is written down now.
 */
void post_mortem_end(struct diagnose *dg, struct admin_qp *rec, enum admin_end how);
/** Is a failure of a QP with this number kept? */
bool post_mortem_has(const struct diagnose *dg, uint32_t qpn);
/**
 * What was wrong on the way when the QP's retries were used up at `time_ns`, by its record.
 * @return "": nothing was known to be; NULL: there is no such record any more.
 */
const char *post_mortem_network(const struct diagnose *dg, uint32_t qpn, ns_t time_ns);
/** Tell how many lines were left out, once a second at most. */
void post_mortem_poll(struct diagnose *dg);

#define FAILED_OWNER_TEXT 160
/** "client 3 (pid 4711, uid 0, pingpong)" */
void failed_owner_text(const struct failed_owner *o, char *text, size_t room);

#endif
