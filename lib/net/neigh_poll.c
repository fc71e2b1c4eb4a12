/* SPDX-License-Identifier: BSD-3-Clause */
/* Neighbours, turn by turn: who is asked for, and whose paths have a new MAC. */
#include <arpa/inet.h>

#include "env.h"
#include "log.h"
#include "neigh_table.h"
#include "net.h"

/* Work of one turn: the control lcore has other things to do too. */
#define REQUESTS_PER_TURN 32
#define LOOKS_PER_TURN    256 /* at entries that are asked for */
#define UPDATES_PER_TURN  64
#define DOUBTS_PER_TURN   64
#define STUCK_PER_TURN    1024 /* paths whose worker takes no message are passed over */

static ns_t
request_gap(const struct neigh *n)
{
	if (n->tries == 1)
		return 100 * TIME_NS_PER_MS;
	if (n->tries == 2)
		return 200 * TIME_NS_PER_MS;
	return n->state == NEIGH_STALE && n->tries >= NEIGH_FAILED ? NEIGH_OLD : TIME_NS_PER_S;
}

/* What was heard too long ago is asked for again. */
static uint32_t
doubt_old(struct net *net)
{
	struct neigh *n;
	uint32_t done = 0;

	while (done < DOUBTS_PER_TURN && (n = TAILQ_FIRST(&net->neighs.young)) != NULL &&
		net->env->now >= n->heard + NEIGH_OLD) {
		neigh_doubt(net, n);
		done++;
	}
	return done;
}

static void
send_request(struct net *net, struct neigh *n)
{
	char text[INET6_ADDRSTRLEN];

	if (n->ip.family == 4)
		arp_request(net, n);
	else
		icmp6_solicit(net, n);
	n->first_try = n->tries == 0 ? net->env->now : n->first_try;
	n->last_try = net->env->now;
	n->asked++;
	n->tries++;
	n->next = net->env->now + request_gap(n);
	if (n->tries == NEIGH_FAILED)
		log_rated(&net->told.silent, net->env->now, LOG_WARN,
			"port %s: neighbour %s does not answer; still asking",
			net->env->w.conf->ports[n->port].name, neigh_ip_text(&n->ip, text));
}

static uint32_t
send_requests(struct net *net)
{
	struct neigh_list *waiting = &net->neighs.waiting;
	const struct neigh *last = TAILQ_LAST(waiting, neigh_list);
	uint32_t sent = 0;
	struct neigh *n;

	for (uint32_t i = 0; i < LOOKS_PER_TURN && sent < REQUESTS_PER_TURN; i++) {
		n = TAILQ_FIRST(waiting);
		if (n == NULL)
			break;
		/* To the end, so that all of a long list have their turn. */
		TAILQ_REMOVE(waiting, n, waits);
		TAILQ_INSERT_TAIL(waiting, n, waits);
		if (n->next <= net->env->now) {
			send_request(net, n);
			sent++;
		}
		if (n == last)
			break;
	}
	return sent;
}

/*
 * Paths to a neighbour whose MAC is new; those done go to the list's end. One whose worker takes no
 * message now stays in front, and the others have theirs.
 * @param stuck counts those that stay.
 */
static uint32_t
update_links(struct net *net, struct neigh *n, uint32_t room, uint32_t *stuck)
{
	struct neigh_link *link = TAILQ_FIRST(&n->links), *next;
	uint32_t done = 0;

	for (; link != NULL && link->turn != n->turn && done < room && *stuck < STUCK_PER_TURN;
		link = next) {
		next = TAILQ_NEXT(link, on);
		if (net->up.new_mac(net->up.ctx, link) != 0) {
			++*stuck;
			continue;
		}
		link->turn = n->turn;
		TAILQ_REMOVE(&n->links, link, on);
		TAILQ_INSERT_TAIL(&n->links, link, on);
		done++;
	}
	link = TAILQ_FIRST(&n->links);
	if (link == NULL || link->turn == n->turn)
		neigh_set_changed(&net->neighs, n, false);
	return done;
}

uint32_t
neigh_poll(struct net *net)
{
	uint32_t work = doubt_old(net) + send_requests(net);
	uint32_t room = UPDATES_PER_TURN, stuck = 0;
	struct neigh *n, *seen = NULL;

	while (room > 0 && stuck < STUCK_PER_TURN &&
		(n = TAILQ_FIRST(&net->neighs.changed)) != NULL && n != seen) {
		const uint32_t done = update_links(net, n, room, &stuck);

		work += done;
		room -= done;
		if (!n->is_changed)
			continue;
		/* The next ones, too. */
		TAILQ_REMOVE(&net->neighs.changed, n, changes);
		TAILQ_INSERT_TAIL(&net->neighs.changed, n, changes);
		seen = seen != NULL ? seen : n;
	}
	return work;
}
