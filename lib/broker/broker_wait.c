/* SPDX-License-Identifier: BSD-3-Clause */
#include "broker_wait.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <string.h>
#include <sys/select.h>

#define BITS     (CHAR_BIT * (int)sizeof(unsigned long))
#define MOST_FDS 65536 /* fd_set has room for 1024 */

typedef unsigned long set[MOST_FDS / BITS];

static void
put(set s, int fd)
{
	s[fd / BITS] |= 1UL << fd % BITS;
}

static bool
has(const set s, int fd)
{
	return (s[fd / BITS] >> fd % BITS & 1) != 0;
}

/* select() has no such limit. */
static __attribute__((noinline)) int
wait_without_limit(struct pollfd *p, unsigned int n, int ms)
{
	struct timeval time = { .tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000 };
	set in, out;
	int most = -1, rc;

	memset(in, 0, sizeof(in));
	memset(out, 0, sizeof(out));
	for (unsigned int i = 0; i < n; i++) {
		p[i].revents = 0;
		if (p[i].fd < 0)
			continue;
		if (p[i].fd >= MOST_FDS) {
			errno = EINVAL;
			return -1;
		}
		if ((p[i].events & POLLIN) != 0)
			put(in, p[i].fd);
		if ((p[i].events & POLLOUT) != 0)
			put(out, p[i].fd);
		most = p[i].fd > most ? p[i].fd : most;
	}
	rc = select(most + 1, (fd_set *)(void *)in, (fd_set *)(void *)out, NULL,
		ms >= 0 ? &time : NULL);
	for (unsigned int i = 0; i < n && rc > 0; i++) {
		if (p[i].fd < 0)
			continue;
		p[i].revents = (short)((has(in, p[i].fd) ? POLLIN : 0) |
				       (has(out, p[i].fd) ? POLLOUT : 0));
	}
	return rc;
}

int
broker_wait(struct pollfd *p, unsigned int n, int ms)
{
	const int rc = poll(p, n, ms);

	return rc < 0 && errno == EINVAL ? wait_without_limit(p, n, ms) : rc;
}
