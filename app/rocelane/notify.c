/* SPDX-License-Identifier: BSD-3-Clause */
#include "notify.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "log.h"

static struct sockaddr_un to;
static socklen_t to_len;
static int fd = -1;      /* kept open: clients may use up all descriptors. -1: nobody listens */
static ns_t alive_every; /* 0: no watchdog */
static ns_t alive_next;

void
notify_init(void)
{
	const char *path = getenv("NOTIFY_SOCKET");
	const char *usec = getenv("WATCHDOG_USEC");
	const char *pid = getenv("WATCHDOG_PID");
	size_t len = path != NULL ? strlen(path) : 0;

	if (len == 0)
		return;
	if ((path[0] != '/' && path[0] != '@') || len >= sizeof(to.sun_path)) {
		log_warn("NOTIFY_SOCKET '%s' is no address of a socket: not used", path);
		return;
	}
	to.sun_family = AF_UNIX;
	memcpy(to.sun_path, path, len);
	if (path[0] == '@') /* Linux's abstract names begin with a zero */
		to.sun_path[0] = '\0';
	to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0) {
		log_warn("no socket to the service manager: %s", strerror(errno));
		return;
	}
	if (usec != NULL && (pid == NULL || strtol(pid, NULL, 10) == getpid()))
		alive_every = strtoull(usec, NULL, 10) * TIME_NS_PER_US / 2;
}

static void
say(const char *what)
{
	if (fd >= 0 && sendto(fd, what, strlen(what), MSG_NOSIGNAL,
			       (const struct sockaddr *)(const void *)&to, to_len) < 0)
		log_warn("the service manager does not hear \"%s\": %s", what, strerror(errno));
}

void
notify_ready(void)
{
	say("READY=1");
}

void
notify_stopping(void)
{
	say("STOPPING=1");
}

bool
notify_due(ns_t now)
{
	return alive_every != 0 && now >= alive_next;
}

void
notify_alive(ns_t now)
{
	alive_next = now + alive_every;
	say("WATCHDOG=1");
}
