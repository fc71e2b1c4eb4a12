/* SPDX-License-Identifier: BSD-3-Clause */
/* What clients know of workers, and how they wake them: made before the workers run. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "dataplane.h"
#include "log.h"

static int
sets_make(struct dataplane *dp, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++) {
		dp->env.workers[i].wake_set = epoll_create1(EPOLL_CLOEXEC);
		if (dp->env.workers[i].wake_set < 0) {
			const int rc = -errno;

			while (i-- != 0)
				close(dp->env.workers[i].wake_set);
			return rc;
		}
	}
	return 0;
}

/* Clients may read it, and nothing else. */
static int
area_make(struct mem_area *a, uint32_t n)
{
	int rc = mem_area_create(a, ring_presence_size(n), -1, MEM_AREA_OPEN);
	const int fd = rc == 0 ? fcntl(a->fd, F_DUPFD_CLOEXEC, 0) : -1;

	if (rc == 0)
		rc = fd >= 0 ? mem_area_seal(a, fd) : -errno;
	if (rc == 0 && (fcntl(a->fd, F_GET_SEALS) & F_SEAL_FUTURE_WRITE) == 0)
		rc = -ENOTSUP; /* a kernel before 5.1 */
	if (rc != 0)
		mem_area_destroy(a);
	return rc;
}

void
presence_open(struct dataplane *dp)
{
	const uint32_t n = dp->conf->lcores.n_workers;
	int rc = area_make(&dp->presence, n);

	if (rc == 0) {
		rc = sets_make(dp, n);
		if (rc != 0)
			mem_area_destroy(&dp->presence);
	}
	if (rc == 0)
		dp->env.presence = &dp->presence;
	else
		log_warn("clients cannot wake workers that sleep: %s", strerror(-rc));
}

void
presence_close(struct dataplane *dp)
{
	if (dp->env.presence == NULL)
		return;
	dp->env.presence = NULL;
	for (uint32_t i = 0; i < dp->conf->lcores.n_workers; i++)
		close(dp->env.workers[i].wake_set);
	mem_area_destroy(&dp->presence);
}
