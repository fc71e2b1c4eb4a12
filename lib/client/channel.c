/* SPDX-License-Identifier: BSD-3-Clause */
/* Channels of completion queues, and what is acknowledged. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "client_priv.h"
#include "fds.h"

int
rl_create_comp_channel(struct rl_context *pub, struct rl_comp_channel **out)
{
	struct context *ctx = context_of(pub);
	struct channel *ch = calloc(1, sizeof(*ch));
	json_t *result;
	int rc;

	*out = NULL;
	if (ch == NULL)
		return client_fail(ENOMEM, "out of memory");
	TAILQ_INIT(&ch->cqs);
	client_lock(ctx);
	rc = client_call_for_fds(ctx, "client_channel_create", NULL, &result);
	if (rc == 0) {
		ch->handle = (uint32_t)json_integer_value(json_object_get(result, "handle"));
		json_decref(result);
		ch->pub.context = pub;
		ch->pub.fd = client_take_channel(
			ctx, "client_channel_destroy", ch->handle, &ch->event_fd);
		if (ch->pub.fd < 0)
			rc = ch->pub.fd;
	}
	if (rc == 0) {
		TAILQ_INSERT_TAIL(&ctx->channels, ch, all);
		*out = &ch->pub;
	} else {
		free(ch);
	}
	client_unlock(ctx);
	return rc;
}

void
client_channel_free(struct context *ctx, struct channel *ch)
{
	client_close_channel(ctx, ch->pub.fd, ch->event_fd);
	free(ch);
}

int
rl_destroy_comp_channel(struct rl_comp_channel *pub)
{
	struct context *ctx = context_of(pub->context);
	struct channel *ch = (struct channel *)pub;
	CANCEL_HELD;
	const int rc = client_call_handle(ctx, "client_channel_destroy", ch->handle);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	TAILQ_REMOVE(&ctx->channels, ch, all);
	client_channel_free(ctx, ch);
	client_unlock(ctx);
	return 0;
}

/* The CQ of the channel that has fired and was not told of; lock held. */
static struct cq *
fired_cq(struct channel *ch)
{
	struct cq *cq;

	TAILQ_FOREACH (cq, &ch->cqs, of_channel) {
		if (atomic_load_explicit(&cq->ring.sh->fired, memory_order_acquire) == cq->fired)
			continue;
		cq->fired++;
		/* The others come first next time. */
		TAILQ_REMOVE(&ch->cqs, cq, of_channel);
		TAILQ_INSERT_TAIL(&ch->cqs, cq, of_channel);
		return cq;
	}
	return NULL;
}

/* Of a fault, mostly of the thread itself: many a program has handlers of them that only tell. */
static bool
is_of_fault(int number)
{
	return number == SIGSEGV || number == SIGBUS || number == SIGFPE || number == SIGILL ||
	       number == SIGTRAP || number == SIGSYS || number == SIGABRT;
}

/*
 * A device's descriptor is read, and read() goes on after a handler with SA_RESTART; poll() never
 * does. Which handler has run is not known: it is as if all of the program's had.
 */
static bool
signals_restart(void)
{
	struct sigaction a;

	for (int n = 1; n < NSIG; n++)
		if (!is_of_fault(n) && sigaction(n, NULL, &a) == 0 && a.sa_handler != SIG_DFL &&
			a.sa_handler != SIG_IGN && (a.sa_flags & SA_RESTART) == 0)
			return false;
	return true;
}

static int
no_event(int err)
{
	return client_fail(err, "%s", err == EAGAIN ? "no event is there" : strerror(err));
}

int
client_fd_wait(struct context *ctx, int fd, int shown)
{
	const int flags = fcntl(shown, F_GETFL);
	struct pollfd p[2] = { { .fd = fd, .events = POLLIN },
		{ .fd = ctx->line.fd, .events = POLLRDHUP } };
	int err;

	for (;;) {
		if ((flags & O_NONBLOCK) == 0) {
			if (poll(p, 2, -1) < 0) {
				if (errno == EINTR && signals_restart())
					continue;
				return no_event(errno);
			}
			if ((p[0].revents & POLLIN) == 0 && p[1].revents != 0)
				return client_no_dataplane();
		}
		/* Others may wait, too: who finds nothing waits on, for both. */
		if (fds_take_event(fd))
			return 0;
		if (errno == EAGAIN && (flags & O_NONBLOCK) == 0)
			continue;
		err = errno;
		return client_is_gone(ctx) ? client_no_dataplane() : no_event(err);
	}
}

int
rl_get_cq_event(struct rl_comp_channel *pub, struct rl_cq **out, void **cq_context)
{
	struct context *ctx = context_of(pub->context);
	struct channel *ch = (struct channel *)pub;
	struct cq *cq;
	int rc;

	do {
		rc = client_fd_wait(ctx, ch->event_fd, pub->fd);
		if (rc != 0)
			return rc;
		client_lock(ctx);
		cq = fired_cq(ch); /* NULL: of a CQ that was destroyed since */
		if (cq != NULL)
			cq->completion.given++;
		client_unlock(ctx);
	} while (cq == NULL);
	*out = &cq->pub;
	if (cq_context != NULL)
		*cq_context = cq->pub.cq_context;
	return 0;
}

void
rl_ack_cq_events(struct rl_cq *pub, unsigned int nevents)
{
	struct context *ctx = context_of(pub->context);

	client_lock(ctx);
	((struct cq *)pub)->completion.acked += nevents;
	pthread_cond_broadcast(&ctx->acked);
	client_unlock(ctx);
}

void
client_wait_acks(struct context *ctx, const struct acks *a)
{
	const int cancel = ctx->cancel; /* ours: meanwhile another thread has the lock */

	while (a->given != a->acked)
		pthread_cond_wait(&ctx->acked, &ctx->lock);
	ctx->cancel = cancel;
}
