/* SPDX-License-Identifier: BSD-3-Clause */
#include "rpc_server.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "env.h"
#include "rpc.h"

#define EVENTS       32
#define ACCEPT_SHARE 8
#define CLOSING_NS   ((ns_t)2 * TIME_NS_PER_S)
/* For what a peer that is gone has sent before. */
#define GONE_NS ((ns_t)500 * TIME_NS_PER_MS)

/* ---- the end of a connection ----------------------------------------------------------------- */

/* Whose place it is, until the thread has ended. */
struct place {
	uint32_t uid;
	bool operator;
};

void
rpc_server_ended(void *ctx, void *tag)
{
	struct rpc_server *s = ctx;
	struct place *p = tag;

	rpc_admit_end(&s->admission, p->uid, p->operator);
	free(p);
}

static void
work_end(struct rpc_work *w)
{
	json_decref(w->replies);
	if (w->from != NULL)
		broker_conn_done(w->from);
	*w = (struct rpc_work){ 0 };
}

static void
free_client(struct rpc_server *s, struct rpc_client *cl)
{
	work_end(&cl->work);
	if (cl->app != NULL)
		s->up.closed(s->up.ctx, cl);
	rpc_server_drop_fds(cl);
	TAILQ_REMOVE(&s->clients, cl, all);
	s->n--;
	rpc_server_unfollow(s, cl);
	epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, cl->fd, NULL);
	if (cl->process >= 0)
		close(cl->process);
	broker_conn_end(cl->conn);
	broker_conn_put(cl->conn);
	free(cl);
}

/* The process that connected is gone, whoever else has its socket now. */
static void
peer_is_gone(struct rpc_server *s, struct rpc_client *cl)
{
	if (cl->app != NULL)
		cl->dead = true;
	broker_conn_drain(cl->conn);
	if (cl->close_by == UINT64_MAX)
		cl->close_by = s->env->now + GONE_NS;
	if (cl->app == NULL)
		rpc_server_unfollow(s, cl);
}

/* ---- requests -------------------------------------------------------------------------------- */

static void
reply(struct rpc_server *s, struct rpc_client *cl, char *line)
{
	if (line != NULL)
		rpc_server_send(s, cl, line, strlen(line));
	free(line);
}

/* Who would wait for an answer that never comes sees the connection end. */
static void
answer_lost(struct rpc_server *s, struct rpc_client *cl)
{
	log_rated(&s->told_lost, s->env->now, LOG_WARN,
		"control socket: no memory for an answer; disconnected");
	cl->dead = true;
}

/* No line: say so. After the last one what comes is thrown away until the peer closes. */
static void
refuse_line(struct rpc_server *s, struct rpc_client *cl, struct broker_request *q)
{
	char *line = rpc_error_line(q->code, q->message);

	if (line == NULL)
		answer_lost(s, cl);
	reply(s, cl, line);
	if (q->last) {
		broker_conn_hush(cl->conn);
		cl->closing = true;
		cl->close_by = s->env->now + CLOSING_NS;
	}
	broker_conn_done(q);
}

/* The next line, if none is under way. @return is one under way now? */
static bool
next_line(struct rpc_server *s, struct rpc_client *cl)
{
	struct broker_request *q;

	if (cl->work.from != NULL)
		return true;
	q = broker_conn_take(cl->conn);
	switch (q->kind) {
	case BROKER_LINE:
		cl->work.from = q;
		cl->work.json = q->json;
		break;
	case BROKER_BAD:
		refuse_line(s, cl, q);
		break;
	case BROKER_END:
		cl->eof = true;
		broker_conn_done(q);
		break;
	}
	return cl->work.from != NULL;
}

/* Is there a request, and was it not tried in this turn? */
static bool
wants(const struct rpc_server *s, const struct rpc_client *cl)
{
	if (cl->dead)
		return false;
	if (cl->work.from == NULL)
		return broker_conn_has(cl->conn);
	return cl->work.since == 0 || cl->work.turn != s->env->turns.n;
}

/* Of the user who has had least of our time, the connection that has waited longest. */
static struct rpc_client *
most_urgent(const struct rpc_server *s)
{
	struct rpc_client *cl, *best = NULL;
	ns_t least = 0;

	TAILQ_FOREACH (cl, &s->clients, all) {
		ns_t used;

		if (!wants(s, cl))
			continue;
		used = rpc_used(&s->admission, cl->peer.uid, cl->operator);
		if (best == NULL || used < least) {
			best = cl;
			least = used;
		}
	}
	return best;
}

/* One request. */
static void
serve(struct rpc_server *s, struct rpc_client *cl)
{
	char *line;

	if (next_line(s, cl) && rpc_work_step(s, cl, &cl->work, &line)) {
		if (cl->work.lost)
			answer_lost(s, cl);
		reply(s, cl, line);
		work_end(&cl->work);
	}
}

/*
 * One request after the other, until there is nothing left or the turn is long enough. Where what
 * comes before takes long, as under a flood of frames for us, one a turn would be too few.
 */
static uint32_t
serve_all(struct rpc_server *s)
{
	ns_t now = s->env->w.clock(), before;
	const ns_t least = now + RPC_LEAST_NS, most = s->env->turns.began + RPC_TURN_NS;
	const ns_t end = most > least ? most : least;
	struct rpc_client *cl;
	uint32_t work = 0;

	while (now < end && (cl = most_urgent(s)) != NULL) {
		TAILQ_REMOVE(&s->clients, cl, all);
		TAILQ_INSERT_TAIL(&s->clients, cl, all);
		serve(s, cl);
		before = now;
		now = s->env->w.clock();
		rpc_paid(&s->admission, cl->peer.uid, cl->operator, now - before);
		work += cl->work.since == 0;
	}
	return work;
}

/* Has the peer closed its side, and all been said? Half a line is nothing. */
static bool
is_finished(const struct rpc_client *cl)
{
	if (cl->eof && cl->hup)
		return true;
	return cl->eof && broker_conn_unsaid(cl->conn) == 0 && (cl->closing || cl->follows == 0);
}

/* ---- connections ----------------------------------------------------------------------------- */

/* Why nobody is served, for the log. @return the line for whoever reads it, to be freed. */
static char *
why_not(struct rpc_server *s, const struct refusal *r, size_t *len)
{
	char *line = rpc_error_line(RPC_REFUSED - r->err, r->text);

	log_rated(&s->admission.told, s->env->now, LOG_WARN, "control socket: %s", r->text);
	*len = line != NULL ? strlen(line) : 0;
	if (line != NULL)
		line[(*len)++] = '\n'; /* instead of its end */
	return line;
}

static void
turn_away(struct rpc_server *s, int fd, const struct refusal *r)
{
	size_t len;
	char *line = why_not(s, r, &len);

	broker_turn_away(s->broker, fd, line, len);
	free(line);
}

/* One that has its thread already. */
static void
say_why(struct rpc_server *s, struct rpc_client *cl, const struct refusal *r)
{
	size_t len;
	char *line = why_not(s, r, &len);

	if (line != NULL)
		rpc_server_send(s, cl, line, len);
	free(line);
}

static void
watch_process(struct rpc_server *s, struct rpc_client *cl)
{
	struct epoll_event e = { .events = EPOLLIN | EPOLLET, .data.ptr = &cl->on_process };
	struct refusal r;

	cl->process = rpc_peer_process(cl->fd, &cl->peer);
	if (cl->process == -ESRCH)
		peer_is_gone(s, cl);
	/* Nobody would know of its end. */
	if (cl->process == -EMFILE ||
		(cl->process >= 0 && epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, cl->process, &e) != 0)) {
		refuse(&r, EMFILE, "no memory or no descriptor to watch your process by");
		say_why(s, cl, &r);
		cl->dead = true;
	}
}

static const struct broker_limits of_app = { RPC_APP_LINE_MAX, RPC_APP_VALUES, RPC_MAY_APP };
static const struct broker_limits of_limited = { RPC_APP_LINE_MAX, RPC_APP_VALUES, RPC_MAY_OPEN };
static const struct broker_limits of_others = { RPC_LINE_MAX, 0, RPC_MAY_OPEN | RPC_MAY_OPERATE };

void
rpc_server_is_app(struct rpc_client *cl, struct app *app)
{
	cl->app = app;
	broker_conn_limit(cl->conn, &of_app);
}

/* One that is admitted. */
static int
take_in(struct rpc_server *s, int fd, const struct rpc_client *as, struct refusal *r)
{
	struct rpc_client *cl = calloc(1, sizeof(*cl));
	struct place *place = malloc(sizeof(*place));
	/* What comes in is the thread's; the peer's end is told in any case. */
	struct epoll_event e = { .events = EPOLLET };

	if (cl != NULL && place != NULL) {
		*place = (struct place){ as->peer.uid, as->operator};
		*cl = *as;
		cl->fd = fd;
		/* From the start on: its thread may read before this one goes on. */
		cl->conn = broker_conn_start(
			s->broker, fd, cl->limited ? &of_limited : &of_others, place);
	}
	if (cl == NULL || cl->conn == NULL) {
		free(cl);
		free(place);
		return refuse(r, ENOMEM, "no memory or no descriptor for another connection");
	}
	cl->close_by = UINT64_MAX;
	cl->process = -1;
	cl->on_socket = (struct rpc_watch){ cl, false };
	e.data.ptr = &cl->on_socket;
	cl->on_process = (struct rpc_watch){ cl, true };
	TAILQ_INSERT_TAIL(&s->clients, cl, all);
	s->n++;
	if (epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &e) != 0)
		cl->dead = true;
	watch_process(s, cl);
	return 0;
}

static bool
has_room(const struct broker *b)
{
	return broker_left(b) < BROKER_LEFT_MAX && broker_leaving(b) < BROKER_LEAVING_MAX;
}

/* Who waits for a descriptor, or for room, would wake the control lcore again and again. */
static void
hear_listeners(struct rpc_server *s, bool hear)
{
	struct rpc_listener *const l[] = { &s->main, &s->clients_only };

	for (uint32_t i = 0; i < ARRAY_LEN(l); i++) {
		struct epoll_event e = { .events = hear ? EPOLLIN : 0, .data.ptr = l[i] };

		if (l[i]->bound)
			epoll_ctl(s->epoll_fd, EPOLL_CTL_MOD, l[i]->fd, &e);
	}
	s->accept_at = hear ? 0 : s->env->now + RPC_FULL_NS;
	s->crowded = !hear && !has_room(s->broker);
}

static bool
is_full(int err)
{
	return err == EMFILE || err == ENFILE || err == ENOBUFS || err == ENOMEM;
}

static uint32_t
accept_some(struct rpc_server *s, const struct rpc_listener *from)
{
	uint32_t n;

	for (n = 0; n < ACCEPT_SHARE && has_room(s->broker); n++) {
		const int fd = accept4(from->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		struct rpc_client as = { .limited = from == &s->clients_only };
		struct refusal r;

		if (fd < 0 && is_full(errno)) {
			log_rated(&s->told_full, s->env->now, LOG_WARN,
				"control socket %s: those who connect have to wait: %s", from->path,
				strerror(errno));
			hear_listeners(s, false);
		}
		if (fd < 0)
			break;
		as.peer = rpc_peer(fd);
		as.operator= rpc_is_operator(&as.peer, as.limited);
		if (rpc_admit(&s->admission, as.peer.uid, as.operator, & r) != 0) {
			turn_away(s, fd, &r);
			continue;
		}
		if (take_in(s, fd, &as, &r) != 0) {
			rpc_admit_end(&s->admission, as.peer.uid, as.operator);
			turn_away(s, fd, &r);
		}
	}
	if (!has_room(s->broker))
		hear_listeners(s, false);
	return n;
}

/* ---- turns ----------------------------------------------------------------------------------- */

static void
hear(struct rpc_server *s, const struct rpc_watch *w, uint32_t events)
{
	struct rpc_client *cl = w->cl;

	if (w->process) {
		peer_is_gone(s, cl);
		return;
	}
	/* Its thread reads what was sent, and then the end; but it may be kept from it. */
	if ((events & (EPOLLHUP | EPOLLERR)) != 0) {
		cl->hup = true;
		if (cl->close_by == UINT64_MAX)
			cl->close_by = s->env->now + GONE_NS;
	}
}

/* Those that are over, until the turn is long enough: the others in the next one. */
static uint32_t
end_some(struct rpc_server *s)
{
	const ns_t end = s->env->turns.began + RPC_ENDS_NS;
	struct rpc_client *cl, *next;
	uint32_t work = 0;

	for (cl = TAILQ_FIRST(&s->clients); cl != NULL; cl = next) {
		next = TAILQ_NEXT(cl, all);
		if (is_finished(cl) || broker_conn_is_deaf(cl->conn) || s->env->now >= cl->close_by)
			cl->dead = true;
		if (!cl->dead)
			continue;
		free_client(s, cl);
		env_turn_piece(&s->env->turns, "ends of connections");
		work++;
		if (s->env->w.clock() >= end)
			break;
	}
	return work;
}

uint32_t
rpc_server_poll(struct rpc_server *s)
{
	struct epoll_event events[EVENTS];
	uint32_t work = 0;
	int n;

	if (s->broker == NULL)
		return 0;
	if (s->accept_at != 0 && s->env->now >= s->accept_at)
		hear_listeners(s, true);
	n = epoll_wait(s->epoll_fd, events, EVENTS, 0);
	for (int i = 0; i < n; i++) {
		void *from = events[i].data.ptr;

		if (from == &s->main || from == &s->clients_only)
			work += accept_some(s, from);
		else if (from == s->broker)
			broker_clear(s->broker);
		else
			hear(s, from, events[i].events);
	}
	broker_poll(s->broker, s->env->now / TIME_NS_PER_MS);
	if (s->crowded && has_room(s->broker))
		hear_listeners(s, true);
	env_turn_piece(&s->env->turns, "new and old connections");
	work += serve_all(s);
	env_turn_piece(&s->env->turns, "replies");
	return work + end_some(s);
}

void
rpc_server_drop_all(struct rpc_server *s)
{
	struct rpc_client *cl;

	while ((cl = TAILQ_FIRST(&s->clients)) != NULL)
		free_client(s, cl);
}
