/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client's eventfd, which wakes workers that sleep. They listen for writes, whatever the counter
 * is: nobody here reads it, and a client that fills it up fills up its own.
 */
#include <errno.h>
#include <sys/eventfd.h>

#include "app.h"

int
app_wake_open(struct apps *apps, struct app *app, struct refusal *r)
{
	const struct env_wiring *w = &apps->env->w;
	int sets[ENV_MAX_WORKERS];

	if (w->presence == NULL)
		return refuse(r, ENOTSUP, "the workers of this dataplane are woken by nobody");
	if (app->wake != NULL)
		return 0;
	for (uint32_t i = 0; i < w->workers_n; i++)
		sets[i] = w->workers[i].wake_set;
	app->wake = broker_signal_watched(app->o.home, EFD_NONBLOCK, sets, w->workers_n);
	if (app->wake == NULL)
		return refuse(r, errno, "no memory, or no descriptor, to wake workers by");
	return 0;
}

void
app_wake_close(struct app *app)
{
	broker_signal_free(app->wake);
	app->wake = NULL;
}
