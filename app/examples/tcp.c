/* SPDX-License-Identifier: BSD-3-Clause */
#include "tcp.h"

#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define TRIES    100
#define PAUSE_US 100000
#define LOOK_MS  250

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
	ssize_t n = send(fd, mine, len, MSG_NOSIGNAL);

	errno = 0;
	if (n == (ssize_t)len)
		n = recv(fd, theirs, len, MSG_WAITALL);
	if (n == (ssize_t)len)
		return;
	fprintf(stderr, errno == EAGAIN ? "the other side says nothing: is it this example?\n"
					: "the other side is gone\n");
	exit(1);
}

void
tcp_patience(int fd, int seconds)
{
	const struct timeval t = { .tv_sec = seconds };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

bool
tcp_check(int fd)
{
	char byte;
	const ssize_t n = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

	if (n != 0)
		return n > 0;
	fprintf(stderr, "the other side is gone\n");
	exit(1);
}

bool
tcp_sleep(int fd, int event)
{
	struct pollfd p = { .fd = event, .events = POLLIN };
	const bool there = poll(&p, 1, LOOK_MS) > 0;

	if (!there)
		tcp_check(fd);
	return there;
}
