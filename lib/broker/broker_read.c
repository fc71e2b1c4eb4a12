/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's thread: receives, judges descriptors, cuts lines, parses, hands over. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "broker_conn.h"
#include "fds.h"
#include "plain.h"

#define HALF_LINE_MS    5000
#define PARSE_ERROR     (-32700) /* JSON-RPC's */
#define INVALID_REQUEST (-32600)
#define INTERNAL_ERROR  (-32603)
#define READ_ROOM       4096u

int64_t
broker_now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

/* ---- descriptors ----------------------------------------------------------------------------- */

/* F_GET_SEALS first: it asks nobody. fstat() of a file of FUSE would wait for its server. */
static bool
is_memfd(int fd)
{
	struct stat st;

	return fcntl(fd, F_GET_SEALS) >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

static void
judge(struct broker_conn *c, uint32_t from)
{
	for (uint32_t i = from; i < c->fds_n; i++) {
		if (is_memfd(c->fds[i]))
			continue;
		close(c->fds[i]); /* as long as it takes */
		c->fds[i] = -1;
	}
}

void
broker_fds_end(struct broker_conn *c)
{
	for (uint32_t i = 0; i < c->fds_n; i++) {
		if (c->fds[i] >= 0)
			close(c->fds[i]);
	}
	c->fds_n = 0;
}

/* ---- input ----------------------------------------------------------------------------------- */

static size_t
line_max(const struct broker_conn *c)
{
	return atomic_load_explicit(&c->line_max, memory_order_relaxed);
}

/* Room behind what is there. @return false: no memory. */
static bool
make_room(struct broker_conn *c)
{
	size_t room = c->in_room;
	char *in;

	if (c->in_at != 0)
		memmove(c->in, c->in + c->in_at, c->in_len);
	c->in_at = 0;
	if (c->in_len < c->in_room)
		return true;
	room = room == 0 ? READ_ROOM : room * 2;
	in = realloc(c->in, room);
	if (in == NULL)
		return false;
	c->in = in;
	c->in_room = room;
	return true;
}

static ssize_t
receive_some(struct broker_conn *c, char *to, size_t room)
{
	union {
		uint8_t bytes[CMSG_SPACE(BROKER_FDS * sizeof(int)) +
			      CMSG_SPACE(sizeof(struct ucred))];
		struct cmsghdr align;
	} control;
	struct iovec iov = { to, room };
	struct msghdr msg = { .msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = sizeof(control.bytes) };
	const ssize_t n = recvmsg(c->fd, &msg, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	const uint32_t had = c->fds_n;

	if (n > 0) {
		c->fds_n = fds_keep(&msg, c->fds, had, c->discard ? 0 : BROKER_FDS);
		if (c->fds_n != had && fds_sender(&msg) != c->pid)
			c->shared = true;
		judge(c, had);
	}
	return n;
}

void
broker_receive(struct broker_conn *c)
{
	char scrap[READ_ROOM];
	ssize_t n;

	if (!c->discard && !make_room(c)) {
		c->eof = true;
		return;
	}
	n = c->discard ? receive_some(c, scrap, sizeof(scrap))
		       : receive_some(c, c->in + c->in_len, c->in_room - c->in_len);
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR))
		c->eof = true;
	if (n <= 0 || c->discard)
		return;
	c->in_len += (size_t)n;
	if (c->half_ms == 0)
		c->half_ms = broker_now_ms() + HALF_LINE_MS;
}

void
broker_half_again(struct broker_conn *c)
{
	if (c->half_ms != 0)
		c->half_ms = broker_now_ms() + HALF_LINE_MS;
}

/* ---- requests -------------------------------------------------------------------------------- */

static struct broker_request *
request_new(struct broker_conn *c, enum broker_kind kind)
{
	struct broker_request *q = calloc(1, sizeof(*q));

	if (q != NULL) {
		q->conn = c;
		q->kind = kind;
	} else {
		c->eof = c->ended_input = true; /* the control lcore sees the peer end */
		shutdown(c->fd, SHUT_RDWR);
	}
	return q;
}

void
broker_request_free(struct broker_request *q)
{
	struct broker_gift *g, *next;

	for (g = q->gifts; g != NULL; g = next) {
		next = g->next;
		if (g->memory != NULL)
			broker_memory_put(g->memory);
		mem_area_destroy(&g->area);
		free(g);
	}
	json_decref(q->json);
	free(q);
}

/*
 * What is not a request, and why. Nothing is read after the `last` one. Descriptors that came with
 * it must not be a later one's: all go, as nobody knows which.
 */
static struct broker_request *
bad(struct broker_conn *c, int code, bool last, const char *text)
{
	struct broker_request *q = request_new(c, BROKER_BAD);

	if (last) {
		c->discard = true;
		c->in_len = c->scanned = 0;
		c->half_ms = 0;
	}
	broker_fds_end(c);
	if (q == NULL)
		return NULL;
	q->code = code;
	q->last = last;
	snprintf(q->message, sizeof(q->message), "%s", text);
	return q;
}

/* Each value has one of these before it; a string may have some, too. */
static bool
is_too_much(const char *line, size_t len, uint32_t most)
{
	uint32_t n = 0;

	if (most == 0)
		return false;
	for (size_t i = 0; i < len; i++)
		n += line[i] == ',' || line[i] == '[' || line[i] == '{' || line[i] == ':';
	return n > most;
}

static struct broker_request *
parse(struct broker_conn *c, const char *line, size_t len)
{
	const uint32_t most = atomic_load_explicit(&c->values_max, memory_order_relaxed);
	struct broker_request *q;
	const uint64_t before = broker_json_failures();
	char text[sizeof(q->message)];
	json_error_t error;
	json_t *json;

	if (is_too_much(line, len, most)) {
		snprintf(text, sizeof(text), "more than %u values in a line", most);
		return bad(c, INVALID_REQUEST, false, text);
	}
	json = json_loadb(line, len, JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &error);
	if (broker_json_failures() != before) {
		json_decref(json); /* a byte of it may be left out */
		return bad(c, INTERNAL_ERROR, false, "no memory for the line");
	}
	if (json == NULL) {
		/* It may quote a part of a character, and an answer is UTF-8. */
		snprintf(text, sizeof(text), "not JSON: %s at byte %d", plain_text(error.text, ""),
			error.position);
		return bad(c, PARSE_ERROR, false, text);
	}
	q = request_new(c, BROKER_LINE);
	if (q == NULL) {
		json_decref(json);
		return NULL;
	}
	q->json = json;
	q->len = len;
	return q;
}

static struct broker_request *
too_long(struct broker_conn *c)
{
	char text[128];

	snprintf(text, sizeof(text), "line longer than %zu bytes; the connection is closed",
		line_max(c));
	return bad(c, INVALID_REQUEST, true, text);
}

/* Cut one line off. @param len out: 0 of an empty one. @return false: there is no whole line. */
static bool
cut(struct broker_conn *c, const char **line, size_t *len)
{
	const char *at = c->in_len != 0 ? c->in + c->in_at : NULL;
	const char *nl = c->in_len > c->scanned
				 ? memchr(at + c->scanned, '\n', c->in_len - c->scanned)
				 : NULL;

	if (nl == NULL) {
		c->scanned = c->in_len;
		*len = c->in_len;
		return false;
	}
	*line = at;
	*len = (size_t)(nl - at);
	c->in_at += *len + 1;
	c->in_len -= *len + 1;
	c->scanned = 0;
	c->half_ms = c->in_len != 0 ? broker_now_ms() + HALF_LINE_MS : 0;
	return true;
}

/* The next thing to hand over, or NULL: more has to come first. */
static struct broker_request *
next_request(struct broker_conn *c)
{
	const char *line = NULL;
	size_t len = 0;

	while (!c->discard && cut(c, &line, &len)) {
		if (len > line_max(c))
			return too_long(c);
		if (len != 0 && line[len - 1] == '\r')
			len--;
		if (len != 0)
			return parse(c, line, len);
	}
	if (!c->discard && len > line_max(c))
		return too_long(c);
	/* What no request took was sent with one that needs none, or was refused. */
	if (c->in_len == 0)
		broker_fds_end(c);
	if (!c->discard && c->late)
		return bad(c, INVALID_REQUEST, true,
			"half a line, and no more for 5 s; the connection is closed");
	if (!c->eof || c->ended_input)
		return NULL;
	c->ended_input = true;
	return request_new(c, BROKER_END);
}

/* ---- handing over ---------------------------------------------------------------------------- */

static const struct broker_slow *
slow_of(const struct broker_conn *c, const json_t *one)
{
	const struct broker_hooks *h = broker_hooks_of(c->b);

	return json_is_object(one) ? h->find(h->ctx, one) : NULL;
}

static bool
is_slow(const struct broker_conn *c, const struct broker_request *q)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(q->json))
		return slow_of(c, q->json) != NULL;
	json_array_foreach (q->json, i, one) {
		if (slow_of(c, one) != NULL)
			return true;
	}
	return false;
}

/* Has a request of this kind its gift already, in this line? */
static bool
has_gift(const struct broker_request *q, const struct broker_slow *kind)
{
	for (const struct broker_gift *g = q->gifts; g != NULL; g = g->next) {
		if (g->kind == kind)
			return true;
	}
	return false;
}

/* Who will be refused gets nothing made: it costs memory and time that nobody has paid for. */
static void
prepare_one(struct broker_conn *c, struct broker_request *q, const json_t *one)
{
	const struct broker_slow *slow = slow_of(c, one);
	struct broker_gift *g;

	if (slow == NULL ||
		(slow->who & atomic_load_explicit(&c->may, memory_order_relaxed)) == 0 ||
		(slow->once && has_gift(q, slow)))
		return;
	g = calloc(1, sizeof(*g));
	if (g == NULL) {
		broker_fds_end(c); /* as bad() */
		return;
	}
	g->area = (struct mem_area){ .fd = -1, .node = -1 };
	g->of = one;
	g->kind = slow;
	g->next = q->gifts;
	q->gifts = g;
	slow->prepare(broker_hooks_of(c->b)->ctx, c, g, json_object_get(one, "params"));
}

static void
prepare(struct broker_conn *c, struct broker_request *q)
{
	const json_t *one;
	size_t i;

	if (!json_is_array(q->json))
		prepare_one(c, q, q->json);
	if (json_array_size(q->json) > BROKER_BATCH)
		return;
	json_array_foreach (q->json, i, one)
		prepare_one(c, q, one);
}

/* Slow work is done when nothing before it is under way: it may depend on that. */
bool
broker_may_go(const struct broker_conn *c)
{
	const uint32_t open = broker_queue_open(&c->queue);
	const struct broker_request *q = c->pending;
	const size_t bytes =
		c->bytes_put - atomic_load_explicit(&c->bytes_done, memory_order_relaxed);

	if (open == 0)
		return true;
	return open < BROKER_QUEUE && bytes + q->len <= line_max(c) && !is_slow(c, q);
}

bool
broker_advance(struct broker_conn *c)
{
	for (;;) {
		if (c->pending == NULL)
			c->pending = next_request(c);
		if (c->pending == NULL)
			return true;
		if (!broker_may_go(c))
			return false;
		broker_jobs_run(&c->jobs); /* answers to what came before */
		prepare(c, c->pending);
		c->bytes_put += c->pending->len;
		broker_queue_put(&c->queue, c->pending);
		c->pending = NULL;
		broker_wake(c->b);
	}
}
