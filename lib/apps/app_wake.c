/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's eventfd, which wakes workers that sleep. They listen for writes, whatever the counter
 * is: nobody here reads it, and a client that fills it up fills up its own.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "app.h"

int
app_wake_open(struct apps *apps, struct app *app, struct refusal *r)
{
	const struct env_wiring *w = &apps->env->w;
	struct epoll_event e = { .events = EPOLLIN | EPOLLET };

	if (w->presence == NULL)
		return refuse(r, ENOTSUP, "the workers of this dataplane are woken by nobody");
	if (app->wake_fd >= 0)
		return 0;
	app->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (app->wake_fd < 0)
		return refuse(r, EMFILE, "no descriptor to wake workers by");
	for (uint32_t i = 0; i < w->workers_n; i++) {
		if (epoll_ctl(w->workers[i].wake_set, EPOLL_CTL_ADD, app->wake_fd, &e) == 0)
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

	if (app->wake_fd < 0)
		return;
	/* The client has the same open file: closing ours does not take it out of the sets. */
	for (uint32_t i = 0; i < w->workers_n; i++)
		epoll_ctl(w->workers[i].wake_set, EPOLL_CTL_DEL, app->wake_fd, NULL);
	close(app->wake_fd);
	app->wake_fd = -1;
}
