/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: when two random bytes are asked for, which is for a port, does an event wait at the
 * descriptor $TOLD_FD already? Then "told" is printed.
 */
#include <poll.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t getrandom(void *to, size_t len, unsigned int flags);

ssize_t
getrandom(void *to, size_t len, unsigned int flags)
{
	const char *fd = getenv("TOLD_FD");
	struct pollfd p = { .fd = fd != NULL ? atoi(fd) : -1, .events = POLLIN };

	if (fd != NULL && len == 2 && poll(&p, 1, 0) == 1 && write(STDOUT_FILENO, "told\n", 5) != 5)
		abort();
	return syscall(SYS_getrandom, to, len, flags);
}
