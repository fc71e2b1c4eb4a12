/* SPDX-License-Identifier: BSD-3-Clause */
#include "wakes.h"

#include <sys/epoll.h>

#include "compiler.h"

#define AT_ONCE 16

void
env_wakes_init(struct wakes *w, int set)
{
	w->set = set;
	w->n = 0;
}

/* It may be gone, or its number be another one's: that one is heard, too. */
static void
listen_to(const struct wakes *w, int fd, uint32_t events)
{
	struct epoll_event e = { .events = events, .data.fd = fd };

	(void)epoll_ctl(w->set, EPOLL_CTL_MOD, fd, &e);
}

static void
heard(struct wakes *w, int fd)
{
	uint32_t i = 0;

	while (i < w->n && w->one[i].fd != fd)
		i++;
	if (i == WAKES_MOST)
		return;
	if (i == w->n)
		w->one[w->n++] = (struct wakes_one){ .fd = fd };
	if (++w->one[i].vain == WAKES_VAIN)
		listen_to(w, fd, 0);
}

void
env_wakes_heard(struct wakes *w)
{
	struct epoll_event e[AT_ONCE];
	const int n = epoll_wait(w->set, e, ARRAY_LEN(e), 0);

	for (int i = 0; i < n; i++)
		heard(w, e[i].data.fd);
}

void
env_wakes_worked(struct wakes *w)
{
	for (uint32_t i = 0; i < w->n; i++)
		if (w->one[i].vain >= WAKES_VAIN)
			listen_to(w, w->one[i].fd, EPOLLIN | EPOLLET);
	w->n = 0;
}
