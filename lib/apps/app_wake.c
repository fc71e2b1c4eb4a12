/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's eventfd, which wakes workers that sleep. They listen for writes, whatever the counter
 * is: nobody here reads it, and a client that fills it up fills up its own.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>

#include "app.h"

int
app_wake_open(struct apps *apps, struct app *app, struct refusal *r)
{
	const struct env_wiring *w = &apps->env->w;
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	if (w->presence == NULL)
		return refuse(r, ENOTSUP, "the workers of this dataplane are woken by nobody");
	if (app->wake != NULL)
		return 0;
	app->wake = broker_signal_new(app->o.home, EFD_NONBLOCK);
	if (app->wake == NULL)
		return refuse(r, EMFILE, "no descriptor to wake workers by");
	for (uint32_t i = 0; i < w->workers_n; i++) {
		if (epoll_ctl(w->workers[i].wake_set, EPOLL_CTL_ADD, broker_signal_fd(app->wake),
			    &e) == 0)
			continue;
		app_wake_close(apps, app);
		return refuse(r, ENOMEM, "no memory to wake workers by");
	}
	return 0;
}

void
app_wake_close(struct apps *apps, struct app *app)
{
	const struct env_wiring *w = &apps->env->w;

	if (app->wake == NULL)
		return;
	/* The client has the same open file: closing ours does not take it out of the sets. */
	for (uint32_t i = 0; i < w->workers_n; i++)
		epoll_ctl(w->workers[i].wake_set, EPOLL_CTL_DEL, broker_signal_fd(app->wake), NULL);
	broker_signal_free(app->wake);
	app->wake = NULL;
}
