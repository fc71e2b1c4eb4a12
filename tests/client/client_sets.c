/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program for which the kernel does not watch a channel: the call says so, and neither end keeps
 * anything of it. argv[1] is the socket.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"
#include "rocelane_cm.h"

/* More than a client may have (client_limits.channels), and than have an end that is watched. */
#define TRIES 300

static unsigned int granted = ~0u;

/* The library's sets are made by system calls, whoever else has functions of these names. */
long
syscall(long number, ...)
{
	static long (*next)(long number, ...);
	long a[6];
	va_list list;

	va_start(list, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	if (number == SYS_epoll_ctl && a[1] == EPOLL_CTL_ADD && granted-- == 0) {
		granted = ~0u;
		errno = ENOSPC;
		return -1;
	}
	if (next == NULL)
		*(void **)&next = dlsym(RTLD_NEXT, "syscall");
	return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static unsigned int
descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	CHECK(d != NULL);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

static int
comp_channel(struct rl_context *ctx)
{
	struct rl_comp_channel *ch = NULL;
	const int rc = rl_create_comp_channel(ctx, &ch);

	CHECK((rc == 0) == (ch != NULL));
	if (rc == 0)
		OK(rl_destroy_comp_channel(ch));
	return rc;
}

static int
cm_channel(struct rl_context *ctx)
{
	struct rl_cm_event_channel *ch = NULL;
	const int rc = rl_cm_create_event_channel(ctx, &ch);

	CHECK((rc == 0) == (ch != NULL));
	if (rc == 0)
		OK(rl_cm_destroy_event_channel(ch));
	return rc;
}

int
main(int argc, char **argv)
{
	static int (*const makes[])(struct rl_context * ctx) = { comp_channel, cm_channel };
	unsigned int before;
	struct pair p;

	CHECK(argc >= 2);
	pair_open(&p, argv[1], 16, 4096);
	for (unsigned int k = 0; k < 2; k++) {
		OK(makes[k](p.ctx));
		before = descriptors();
		for (unsigned int i = 0; i < TRIES; i++) {
			granted = i % 2; /* its events, or the connection's end */
			CHECK(makes[k](p.ctx) == -EMFILE);
			CHECK(granted == ~0u);
		}
		CHECK(descriptors() == before);
		OK(makes[k](p.ctx));
	}
	pair_close(&p);
	return 0;
}
