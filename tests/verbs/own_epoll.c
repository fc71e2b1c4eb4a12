/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: epoll by which no file can be watched but its own, as in librspreload of rdma-core 65,
 * whose sets are for rsockets.
 */
#include <errno.h>
#include <sys/epoll.h>

int
epoll_create1(int flags)
{
	(void)flags;
	errno = EDEADLK;
	return -1;
}

int
epoll_ctl(int set, int op, int fd, struct epoll_event *event)
{
	(void)set, (void)op, (void)fd, (void)event;
	errno = EDEADLK;
	return -1;
}
