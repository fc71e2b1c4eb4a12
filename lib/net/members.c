/* SPDX-License-Identifier: BSD-3-Clause */
/* Memberships in time: what is told when. members_wire.c has the frames. */
#include "members.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "be.h"
#include "env.h"
#include "net.h"

#define ROBUSTNESS  2u
#define OLDER_FOR   (260 * TIME_NS_PER_S) /* ROBUSTNESS queries of 125 s, and 10 s for answers */
#define HEARD_FOR   OLDER_FOR
#define SENDS_TURN  32u
#define ANSWERS_GAP (100 * TIME_NS_PER_MS) /* for who asks more often than that */
#define LOOKS_GAP   (10 * TIME_NS_PER_MS)  /* at all groups of a port, MEMBER_TAGS times in that */
#define NEVER       UINT64_MAX
#define VLAN_ID     0xfffu
#define NEWEST_IGMP 3
#define NEWEST_MLD  2

void
members_init(struct member_table *t)
{
	TAILQ_INIT(&t->all);
	t->next = NEVER;
}

void
members_fini(struct member_table *t)
{
	struct member *m;

	while ((m = TAILQ_FIRST(&t->all)) != NULL) {
		TAILQ_REMOVE(&t->all, m, all);
		free(m);
	}
}

static uint32_t
chain_of(uint16_t port, const struct conf_ip *group)
{
	uint32_t h = 2166136261u ^ port;

	for (uint32_t i = 0; i < sizeof(group->addr); i++)
		h = (h ^ group->addr[i]) * 16777619u;
	return (h ^ h >> 16) % MEMBER_CHAINS;
}

static struct member *
find(const struct member_table *t, uint16_t port, const struct conf_ip *group)
{
	struct member *m;

	LIST_FOREACH (m, &t->chain[chain_of(port, group)], chain)
		if (m->port == port && m->group.family == group->family &&
			memcmp(m->group.addr, group->addr, sizeof(group->addr)) == 0)
			return m;
	return NULL;
}

static void
forget(struct member_table *t, struct member *m)
{
	LIST_REMOVE(m, chain);
	TAILQ_REMOVE(&t->all, m, all);
	free(m);
}

/* All hosts are members of theirs, and some groups never leave a host: nobody is told of them. */
static bool
is_told(const struct conf_ip *group)
{
	static const uint8_t all_hosts[4] = { 224, 0, 0, 1 };
	static const uint8_t all_nodes[16] = { 0xff, 0x02, [15] = 1 };

	if (group->family == 4)
		return memcmp(group->addr, all_hosts, sizeof(all_hosts)) != 0;
	return (group->addr[1] & 0xf) > 1 && memcmp(group->addr, all_nodes, 16) != 0;
}

static uint8_t
version_of(const struct net *net, const struct member *m)
{
	const struct member_querier *q = &net->members.querier[m->port][m->group.family == 6];
	const uint8_t newest = m->group.family == 6 ? NEWEST_MLD : NEWEST_IGMP;

	for (uint8_t older = 1; older < newest; older++)
		if (net->env->now < q->older_until[older])
			return older;
	return newest;
}

/* Somewhere in a time: hosts that were asked at once, of other MACs, do not answer at once. */
static ns_t
spread(struct net *net, const struct member *m, ns_t within)
{
	const uint32_t host = be32_load(net->env->w.ports[m->port].addr->mac + 2);

	net->members.spread = net->members.spread * 1664525u + 1013904223u;
	return within / 1024 * ((net->members.spread ^ host * 0x9e3779b1u) >> 22);
}

static void
due_at(struct net *net, ns_t at)
{
	if (at < net->members.next)
		net->members.next = at;
}

static void
changed(struct net *net, struct member *m)
{
	m->tells = is_told(&m->group) ? ROBUSTNESS : 0;
	m->tell_at = net->env->now;
	due_at(net, m->tell_at);
}

int
members_join(struct net *net, uint16_t port, const struct conf_ip *group)
{
	struct member_table *t = &net->members;
	struct member *m = find(t, port, group);

	if (m == NULL) {
		m = calloc(1, sizeof(*m));
		if (m == NULL)
			return -ENOMEM;
		m->group = *group;
		m->port = port;
		LIST_INSERT_HEAD(&t->chain[chain_of(port, group)], m, chain);
		TAILQ_INSERT_TAIL(&t->all, m, all);
	}
	if (m->users++ == 0)
		changed(net, m);
	return 0;
}

void
members_leave(struct net *net, uint16_t port, const struct conf_ip *group)
{
	struct member *m = find(&net->members, port, group);

	if (m == NULL || m->users == 0 || --m->users != 0)
		return;
	memset(m->answer_at, 0, sizeof(m->answer_at));
	changed(net, m);
}

void
members_link_up(struct net *net, uint16_t port)
{
	struct member *m;

	TAILQ_FOREACH (m, &net->members.all, all)
		if (m->port == port && m->users != 0)
			changed(net, m);
}

static void
answer_in(struct net *net, struct member *m, const struct member_query *q, uint32_t asker)
{
	ns_t *answer_at = &m->answer_at[asker];
	const ns_t at = net->env->now + spread(net, m, q->within);

	if (m->users == 0 || !is_told(&m->group))
		return;
	if (*answer_at == 0 || at < *answer_at)
		*answer_at = at < m->answered + ANSWERS_GAP ? m->answered + ANSWERS_GAP : at;
	due_at(net, *answer_at);
}

/* Who is new gets the place of him who was silent for longest. */
static struct member_asker *
asker_of(struct member_querier *who, uint16_t tci)
{
	struct member_asker *silent = &who->asker[0];

	for (uint32_t i = 0; i < MEMBER_TAGS; i++) {
		struct member_asker *a = &who->asker[i];

		if (a->used && ((a->tci ^ tci) & VLAN_ID) == 0)
			return a;
		if (a->heard < silent->heard)
			silent = a;
	}
	*silent = (struct member_asker){ .used = true };
	return silent;
}

/* Whoever asks again at once, and gives no less time, has asked for the same. */
static bool
may_look(struct member_querier *who, struct member_asker *a, const struct member_query *q, ns_t now)
{
	const bool soon = a->asked != 0 && now < a->asked + LOOKS_GAP;

	if (soon && q->within >= a->within)
		return false;
	if (now >= who->looks_from + LOOKS_GAP) {
		who->looks_from = now;
		who->looks = 0;
	}
	if (who->looks == MEMBER_TAGS)
		return false;
	who->looks++;
	a->asked = now;
	a->within = q->within;
	return true;
}

void
members_asked(struct net *net, const struct member_query *q)
{
	struct member_querier *who = &net->members.querier[q->port][q->family == 6];
	struct member_asker *asker = asker_of(who, q->tci);
	const uint32_t at = (uint32_t)(asker - who->asker);
	struct conf_ip group = { .family = q->family };
	struct member *m;

	asker->tci = q->tci;
	asker->heard = net->env->now;
	if (q->version < (q->family == 6 ? NEWEST_MLD : NEWEST_IGMP))
		who->older_until[q->version] = net->env->now + OLDER_FOR;
	if (q->group != NULL) {
		memcpy(group.addr, q->group, q->family == 6 ? 16 : 4);
		m = find(&net->members, q->port, &group);
		if (m != NULL)
			answer_in(net, m, q, at);
		return;
	}
	if (!may_look(who, asker, q, net->env->now))
		return;
	TAILQ_FOREACH (m, &net->members.all, all)
		if (m->port == q->port && m->group.family == q->family)
			answer_in(net, m, q, at);
}

/* In each VLAN in which somebody asks, or asked last. @return how many. */
static uint32_t
tell(struct net *net, const struct member *m, uint8_t version)
{
	const enum member_report why = m->users != 0 ? MEMBER_JOINS : MEMBER_LEAVES;
	const struct member_querier *q = &net->members.querier[m->port][m->group.family == 6];
	const struct member_asker *newest = &q->asker[0];
	uint32_t sent = 0;

	for (uint32_t i = 1; i < MEMBER_TAGS; i++)
		if (q->asker[i].used && q->asker[i].heard > newest->heard)
			newest = &q->asker[i];
	for (uint32_t i = 0; i < MEMBER_TAGS; i++) {
		const struct member_asker *a = &q->asker[i];

		if (a != newest && (!a->used || net->env->now >= a->heard + HEARD_FOR))
			continue;
		members_report(net, m, why, version, a->tci);
		sent++;
	}
	return sent;
}

/* @return how many frames; 0: nothing was due. */
static uint32_t
send_due(struct net *net, struct member *m)
{
	const struct member_querier *q = &net->members.querier[m->port][m->group.family == 6];
	const uint8_t version = version_of(net, m);
	const ns_t now = net->env->now;
	uint32_t sent = 0;

	if (m->tells != 0 && m->tell_at <= now) {
		m->tells--;
		m->tell_at = now + spread(net, m, TIME_NS_PER_S);
		return tell(net, m, version);
	}
	for (uint32_t i = 0; i < MEMBER_TAGS; i++) {
		if (m->answer_at[i] == 0 || m->answer_at[i] > now)
			continue;
		members_report(net, m, MEMBER_IS, version, q->asker[i].tci);
		m->answer_at[i] = 0;
		m->answered = now;
		sent++;
	}
	return sent;
}

uint32_t
members_poll(struct net *net)
{
	struct member_table *t = &net->members;
	struct member *m, *next;
	uint32_t sent = 0;

	if (LIKELY(net->env->now < t->next))
		return 0;
	t->next = NEVER;
	for (m = TAILQ_FIRST(&t->all); m != NULL; m = next) {
		next = TAILQ_NEXT(m, all);
		if (sent < SENDS_TURN)
			sent += send_due(net, m);
		if (m->tells != 0)
			due_at(net, m->tell_at);
		for (uint32_t i = 0; i < MEMBER_TAGS; i++)
			if (m->answer_at[i] != 0)
				due_at(net, m->answer_at[i]);
		if (m->tells == 0 && m->users == 0)
			forget(t, m);
	}
	return sent;
}
