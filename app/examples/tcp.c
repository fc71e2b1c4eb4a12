/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp.h"

#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define TRIES    100
#define PAUSE_US 100000

static int
fail(const char *what)
{
	perror(what);
	exit(1);
}

static int
accept_one(const struct addrinfo *at)
{
	const int one = 1, fd = socket(at->ai_family, at->ai_socktype, 0);
	int peer;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, at->ai_addr, at->ai_addrlen) != 0 || listen(fd, 1) != 0)
		fail("listen");
	peer = accept(fd, NULL, NULL);
	close(fd);
	return peer >= 0 ? peer : fail("accept");
}

/* The other side may not listen yet. */
static int
connect_to(const struct addrinfo *to)
{
	for (int i = 0; i < TRIES; i++) {
		const int fd = socket(to->ai_family, to->ai_socktype, 0);

		if (connect(fd, to->ai_addr, to->ai_addrlen) == 0)
			return fd;
		close(fd);
		usleep(PAUSE_US);
	}
	return fail("connect");
}

int
tcp_open(const char *host, const char *port)
{
	const struct addrinfo hints = { .ai_family = AF_INET,
		.ai_socktype = SOCK_STREAM,
		.ai_flags = host == NULL ? AI_PASSIVE : 0 };
	struct addrinfo *at;
	const int rc = getaddrinfo(host, port, &hints, &at);
	int fd;

	if (rc != 0) {
		fprintf(stderr, "%s, port %s: %s\n", host != NULL ? host : "here", port,
			gai_strerror(rc));
		exit(1);
	}
	fd = host == NULL ? accept_one(at) : connect_to(at);
	freeaddrinfo(at);
	return fd;
}

void
tcp_swap(int fd, const void *mine, void *theirs, size_t len)
{
	if (send(fd, mine, len, MSG_NOSIGNAL) != (ssize_t)len ||
		recv(fd, theirs, len, MSG_WAITALL) != (ssize_t)len) {
		fprintf(stderr, "the other side is gone\n");
		exit(1);
	}
}
