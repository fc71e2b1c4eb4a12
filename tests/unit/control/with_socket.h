/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WITH_SOCKET_H
#define WITH_SOCKET_H
/**
 * @file with_socket.h  A control with its socket, and clients of it, whose threads run in real
 * time.
 *
 * Owner:   the test.
 * Depends: fake.h.
 */
#include "fake.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

static char dir[] = "/tmp/rlsocketXXXXXX";
static char path[64];
static char conf[512];

/* The connections' threads run in real time: whoever waits for one gives up after so long. */
#define PATIENCE_S 20

static inline void
write_conf(void)
{
	snprintf(path, sizeof(path), "%s/s", dir);
	snprintf(conf, sizeof(conf),
		"{\"version\":1,\"lcores\":{\"workers\":[1,2]},"
		"\"control\":{\"socket\":\"%s\",\"mode\":\"0640\"},"
		"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}],"
		"\"pds\":[\"pd0\"],\"cqs\":[{\"name\":\"cq0\",\"cqe\":16}]}",
		path);
}

static inline int
group_setup(void **state)
{
	assert_non_null(mkdtemp(dir));
	write_conf();
	return fake_eal(state);
}

static inline int
group_teardown(void **state)
{
	rmdir(dir);
	return fake_eal_end(state);
}

static inline int
setup(void **state UNUSED)
{
	fake_start_env(conf, 0, false);
	return 0;
}

static inline int
teardown(void **state UNUSED)
{
	fake_stop();
	/* The file goes with the program. */
	assert_int_equal(access(path, F_OK), -1);
	return 0;
}

static inline void
turn(void)
{
	fake.now += TIME_NS_PER_US;
	if (control_poll(fake.c, fake.now) == 0)
		usleep(20);
}

static inline time_t
patience(void)
{
	return time(NULL) + PATIENCE_S;
}

/* While as many as may wait are turned away, nobody is accepted: control turns meanwhile. */
static inline int
client(void)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	const time_t end = patience();

	memcpy(a.sun_path, path, sizeof(path));
	while (connect(fd, (struct sockaddr *)&a, sizeof(a)) != 0) {
		assert_true(errno == EAGAIN && time(NULL) < end);
		turn();
	}
	return fd;
}

/* All of it, while control turns. @return bytes written before the peer closed. */
static inline size_t
put(int fd, const char *text, size_t len)
{
	const time_t end = patience();
	size_t at = 0;

	while (at < len && time(NULL) < end) {
		ssize_t n = send(fd, text + at, len - at, MSG_NOSIGNAL);

		if (n < 0 && errno != EAGAIN)
			break;
		at += n > 0 ? (size_t)n : 0;
		turn();
	}
	return at;
}

static inline void
put_text(int fd, const char *text)
{
	assert_int_equal(put(fd, text, strlen(text)), strlen(text));
}

/* One line, without its newline; NULL: the peer closed. The test fails when nothing comes. */
static inline char *
get(int fd)
{
	size_t len = 0, room = 3u << 20;
	time_t end = patience();
	char *line = malloc(room);

	while (time(NULL) < end) {
		ssize_t n = recv(fd, line + len, 1, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			break;
		if (n < 0) {
			turn();
			continue;
		}
		end = patience();
		assert_true(len < room - 1);
		if (line[len] == '\n') {
			line[len] = '\0';
			return line;
		}
		len++;
	}
	assert_int_equal(len, 0);
	free(line);
	return NULL;
}

static inline json_t *
get_json(int fd)
{
	char *line = get(fd);
	json_t *v;

	assert_non_null(line);
	v = json_loads(line, 0, NULL);
	assert_non_null(v);
	free(line);
	return v;
}

#define WITH_SOCKET(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

#endif
