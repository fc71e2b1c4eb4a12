/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEMBERS_H
#define MEMBERS_H
/**
 * @file members.h  Which groups a port is a member of, as routers and switches that snoop are told.
 *
 * Owner:   control lcore.
 * Memory:  a record for each group of a port, until it was left and that was told.
 * Time:    env->now.
 * Depends: conf, frames.
 * Spec:    RFC 3376, 2236 and 1112 (IGMP), RFC 3810 and 2710 (MLD).
 *
 * A change is told twice, at once and within a second; who asks gets an answer for each group in
 * the time that he gives. Each VLAN may have somebody who asks: he is answered in his, and a change
 * is told in all of them. Where somebody asks by an older version, that one is spoken until nothing
 * of it was heard for 260 s. Reports of others are not looked at: switches keep them to themselves.
 */
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include "clock.h"
#include "conf.h"
#include "frames.h"

#define MEMBER_CHAINS 1024u
#define MEMBER_TAGS   8u /* VLANs of a port in which somebody asks; of more, the newest */
#define MEMBER_OLDER  3u /* versions before the newest are 1, and of IGMP 2 */

/** Why a report is sent. */
enum member_report { MEMBER_IS, MEMBER_JOINS, MEMBER_LEAVES };

struct member {
	struct conf_ip group;
	uint16_t port;               /* index */
	uint32_t users;              /* queue pairs; 0: it was left, which is being told */
	uint32_t tells;              /* reports of the last change that are to come */
	ns_t tell_at;                /* the next of them */
	ns_t answer_at[MEMBER_TAGS]; /* that asker asked; 0: he did not */
	ns_t answered;
	LIST_ENTRY(member) chain;
	TAILQ_ENTRY(member) all;
};

/** Who asks in one VLAN of a port. */
struct member_asker {
	bool used;
	uint16_t tci; /* of his newest query; 0: without a tag */
	ns_t heard;
	ns_t asked; /* for all groups, and they were looked at */
	ns_t within;
};

/** Who asks at a port, by IP version. */
struct member_querier {
	ns_t older_until[MEMBER_OLDER]; /* somebody speaks that version */
	struct member_asker asker[MEMBER_TAGS];
	ns_t looks_from;
	uint32_t looks; /* at all groups of the port, since then */
};

struct member_table {
	LIST_HEAD(, member) chain[MEMBER_CHAINS];
	TAILQ_HEAD(, member) all;
	ns_t next; /* when something is due */
	uint32_t spread;
	struct member_querier querier[CONF_MAX_PORTS][2];
};

/** A question: for all groups of a port, or for one. */
struct member_query {
	uint8_t family; /* 4, 6 */
	uint16_t port;
	uint16_t tci;
	uint8_t version;      /* of IGMP or MLD */
	const uint8_t *group; /* NULL: all */
	ns_t within;
};

/** @param t all zero. */
void members_init(struct member_table *t);
/** All records go; nobody is told. */
void members_fini(struct member_table *t);
/** One more queue pair of the port is a member. @return 0 or -ENOMEM. */
int members_join(struct net *net, uint16_t port, const struct conf_ip *group);
/** One less. */
void members_leave(struct net *net, uint16_t port, const struct conf_ip *group);
/** The link has come up: who is on it now may know nothing. */
void members_link_up(struct net *net, uint16_t port);
/** Send what is due. @return how many frames. */
uint32_t members_poll(struct net *net);
/** Somebody asks who is a member: each group is answered for in the time that he gives. */
void members_asked(struct net *net, const struct member_query *q);

/** members_wire.c: an IGMP frame, with its IP header read. */
void igmp_receive(struct net *net, const struct frame_in *f);
/** An IPv6 frame with hop-by-hop options. */
void mld_receive(struct net *net, const struct frame_in *f);
/** @param version of IGMP or MLD. */
void members_report(struct net *net, const struct member *m, enum member_report why,
	uint8_t version, uint16_t tci);

#endif
