/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is at the other end of a connection. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "rpc_server.h"

#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD 77 /* Linux 6.5 */
#endif

struct owner_process
rpc_peer(int fd)
{
	struct owner_process p = { .pid = 0, .uid = UINT32_MAX, .gid = UINT32_MAX };
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) == 0)
		p = (struct owner_process){ .pid = cred.pid, .uid = cred.uid, .gid = cred.gid };
	return p;
}

int
rpc_peer_process(int fd, const struct owner_process *peer)
{
	socklen_t len = sizeof(int);
	int pidfd = -1;

	if (getsockopt(fd, SOL_SOCKET, SO_PEERPIDFD, &pidfd, &len) == 0)
		return pidfd;
	if (errno == ESRCH || errno == EINVAL) /* it was reaped; how older kernels say so */
		return -ESRCH;
	if (peer->pid <= 0) /* of another PID namespace */
		return -1;
	pidfd = (int)syscall(SYS_pidfd_open, peer->pid, 0);
	if (pidfd >= 0 || errno == ESRCH)
		return pidfd >= 0 ? pidfd : -ESRCH;
	return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -EMFILE : -1;
}
