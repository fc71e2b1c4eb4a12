/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program for which the kernel does not watch a channel: the call says so, and neither end keeps
 * anything of it. argv[1] is the socket.
 */
#include <dirent.h>
#include <errno.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "pair.h"
#include "rocelane_cm.h"

/* More than a client may have (client_limits.channels), and than have an end that is watched. */
#define TRIES 300

static unsigned int granted = ~0u;

int
epoll_ctl(int set, int op, int fd, struct epoll_event *e)
{
	if (op != EPOLL_CTL_ADD || granted-- != 0)
		return (int)syscall(SYS_epoll_ctl, set, op, fd, e);
	granted = ~0u;
	errno = ENOSPC;
	return -1;
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
