/* SPDX-License-Identifier: BSD-3-Clause */
/* The control socket: clients, lines, and files that are in the way. */
#include "with_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "broker_conn.h"
#include "control_state.h"
#include "rpc_server.h"

static void
ask(int fd, int id, const char *method)
{
	char text[128];
	int n = snprintf(text, sizeof(text), "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"%s\"}\n",
		id, method);

	assert_int_equal(put(fd, text, (size_t)n), n);
}

static void
expect_id(int fd, int id)
{
	json_t *v = get_json(fd);

	assert_int_equal(number_of(v, "id"), id);
	assert_non_null(json_object_get(v, "result"));
	json_decref(v);
}

static bool
is_closed(int fd)
{
	const time_t end = patience();
	char byte;

	while (time(NULL) < end) {
		ssize_t n = recv(fd, &byte, 1, 0);

		if (n == 0 || (n < 0 && errno != EAGAIN))
			return true;
		turn();
	}
	return false;
}

static void
two_clients_at_once(void **state UNUSED)
{
	int a = client(), b = client();
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISSOCK(st.st_mode));
	assert_int_equal(st.st_mode & 0777, 0640);
	/* Half a line of one does not stop the other. */
	put_text(a, "{\"jsonrpc\":\"2.0\",\"id\":1,\"me");
	ask(b, 2, "version");
	expect_id(b, 2);
	put_text(a, "thod\":\"version\"}\n");
	expect_id(a, 1);
	close(a);
	close(b);
}

static void
many_lines_in_one_write(void **state UNUSED)
{
	static char text[200 * 64];
	size_t len = 0;
	int fd = client();

	for (int i = 0; i < 200; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len,
			"%s{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"pd_list\"}\r\n",
			i % 3 == 0 ? "\n" : "", i);
	put(fd, text, len);
	for (int i = 0; i < 200; i++)
		expect_id(fd, i);
	close(fd);
}

/* The library quotes what it has read so far: of a character perhaps the first byte alone. */
static void
what_is_no_json_inside_a_character(void **state UNUSED)
{
	static const char *const lines[] = { "{\"a\":\"\\\xc3\xa9\"}\n",
		"[\"\\u12\xe2\x82\xac\"]\n", "\xf0\x9f\x98\x80\n" };
	int fd = client();

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		json_t *v, *error;

		put_text(fd, lines[i]);
		v = get_json(fd);
		error = json_object_get(v, "error");
		assert_int_equal(number_of(error, "code"), -32700);
		assert_non_null(strstr(text_of(error, "message"), "not JSON: invalid "));
		assert_non_null(strstr(text_of(error, "message"), " at byte "));
		json_decref(v);
		v = rpc_raw(lines[i], strlen(lines[i]));
		error = json_object_get(v, "error");
		assert_non_null(strstr(text_of(error, "message"), "not JSON: invalid "));
		json_decref(v);
	}
	ask(fd, 1, "version");
	expect_id(fd, 1);
	close(fd);
}

static void
a_client_that_has_written_all_it_wants(void **state UNUSED)
{
	int fd = client();

	ask(fd, 1, "version");
	ask(fd, 2, "pd_list");
	assert_int_equal(shutdown(fd, SHUT_WR), 0);
	expect_id(fd, 1);
	expect_id(fd, 2);
	assert_true(is_closed(fd));
	close(fd);
}

static void
clients_that_die(void **state UNUSED)
{
	int keep = client();

	for (unsigned int i = 0; i < 300; i++) { /* more than may be there at a time */
		int fd = client();

		if (i % 3 == 0)
			put_text(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"meth");
		else if (i % 3 == 1)
			ask(fd, 1, "rpc_get_methods");
		close(fd);
		turn();
		turn();
	}
	ask(keep, 7, "version");
	expect_id(keep, 7);
	close(keep);
}

static void
a_client_takes_its_users_turns(void **state UNUSED)
{
	int fd = client();

	put_text(fd, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"client_open\","
		     "\"params\":{\"abi\":1}}\n");
	expect_id(fd, 1);
	ask(fd, 2, "client_pd_create");
	expect_id(fd, 2);
	assert_int_equal(fake.last.type, MBOX_CLIENT_ATTACH);
	assert_int_equal(fake.last.client.client->user, (uint64_t)geteuid() + 1);
	close(fd);
}

static void
a_line_of_one_mebibyte_is_the_longest(void **state UNUSED)
{
	enum { MIB = 1 << 20 };
	char *line = malloc(2 * MIB + 1);
	int fd = client(), other = client();
	int n = snprintf(line, 100, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"version\"}");

	memset(line + n, ' ', (size_t)(MIB - n));
	line[MIB] = '\n';
	for (int i = 0; i < 20; i++, close(fd), fd = client()) { /* its thread may be early */
		assert_int_equal(put(fd, line, MIB + 1), MIB + 1);
		expect_id(fd, 1);
	}

	memset(line + n, ' ', (size_t)(2 * MIB - n));
	line[MIB + 1] = '\n';
	put(fd, line, MIB + 2);
	json_t *v = get_json(fd);
	assert_int_equal(number_of(json_object_get(v, "error"), "code"), -32600);
	assert_true(json_is_null(json_object_get(v, "id")));
	json_decref(v);
	assert_null(get(fd));
	close(fd);

	/* No newline at all. */
	fd = client();
	memset(line, 'x', 2 * MIB);
	put(fd, line, 2 * MIB);
	v = get_json(fd);
	assert_int_equal(number_of(json_object_get(v, "error"), "code"), -32600);
	json_decref(v);
	assert_true(is_closed(fd));
	close(fd);
	ask(other, 3, "version");
	expect_id(other, 3);
	close(other);
	free(line);
}

static const char read_big[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"mr_read\",\"params\":"
			       "{\"name\":\"big\",\"offset\":0,\"length\":500000}}\n";

static void
a_client_that_does_not_read(void **state UNUSED)
{
	int slow = client(), other = client();

	json_decref(rpc_ok("mr_register", "{\"name\":\"big\",\"pd\":\"pd0\",\"length\":500000}"));
	for (unsigned int i = 0; i < 40; i++)
		put(slow, read_big, sizeof(read_big) - 1);
	ask(other, 1, "version");
	expect_id(other, 1);
	/* Cut off, after what had fitted the socket. */
	const time_t end = patience();
	bool closed = false;
	char buf[65536];

	while (time(NULL) < end && !closed) {
		ssize_t n = recv(slow, buf, sizeof(buf), 0);

		closed = n == 0 || (n < 0 && errno != EAGAIN);
		turn();
	}
	assert_true(closed);
	close(slow);
	close(other);
}

static void
replies_longer_than_the_sockets_buffer(void **state UNUSED)
{
	int fd = client();
	json_t *v;

	json_decref(rpc_ok("mr_register",
		"{\"name\":\"big\",\"pd\":\"pd0\",\"length\":500000,\"fill\":\"pattern:1\"}"));
	put(fd, read_big, sizeof(read_big) - 1);
	v = get_json(fd);
	assert_int_equal(strlen(text_of(json_object_get(v, "result"), "data")), 1000000);
	json_decref(v);
	close(fd);
}

/* A text that makes as many objects as there may be, with names as long as they may be. */
static char *
many_objects(void)
{
	static const char *const lists[] = { "pds", "xrcds" };
	const size_t room = 10u << 20;
	char *text = malloc(room);
	size_t at =
		(size_t)snprintf(text, room, "%.*s", (int)(strstr(conf, "\"pds\"") - conf), conf);

	for (size_t k = 0; k < ARRAY_LEN(lists); k++) {
		at += (size_t)snprintf(text + at, room - at, "\"%s\":[", lists[k]);
		for (uint32_t i = 0; i < CONF_MAX_OBJECTS; i++)
			at += (size_t)snprintf(
				text + at, room - at, "%s\"%063u\"", i == 0 ? "" : ",", i);
		at += (size_t)snprintf(text + at, room - at, "]%s", k == 0 ? "," : "}");
	}
	return text;
}

/* Who reads gets an answer of any length, and what is said to it meanwhile. */
static void
a_reply_longer_than_all_that_may_wait(void **state UNUSED)
{
	char *text = many_objects(), *buf = malloc(1u << 20);
	const time_t end = patience();
	size_t bytes = 0;
	int fd, lines = 0;

	fake_start_env(text, 0, false);
	free(text);
	fd = client();
	ask(fd, 1, "save_config");
	ask(fd, 2, "version");
	while (lines < 2 && time(NULL) < end) {
		ssize_t n = recv(fd, buf, 1u << 20, 0);

		assert_true(n > 0 || (n < 0 && errno == EAGAIN)); /* else it was cut off */
		for (ssize_t i = 0; i < n; i++)
			lines += buf[i] == '\n';
		bytes += n > 0 ? (size_t)n : 0;
		turn();
	}
	assert_int_equal(lines, 2);
	assert_true(bytes > RPC_OUT_MAX);
	free(buf);
	close(fd);
	fake_stop();
}

static void
waiting_for_work(void **state UNUSED)
{
	struct pollfd p = { .fd = control_wait_fd(fake.c), .events = POLLIN };
	int fd;

	assert_true(p.fd >= 0);
	assert_int_equal(poll(&p, 1, 0), 0);
	fd = client();
	assert_int_equal(poll(&p, 1, 0), 1);
	turn();
	assert_int_equal(poll(&p, 1, 0), 0);
	/* The connection's thread has half a line; the control lcore need not know. */
	assert_true(send(fd, "7", 1, 0) == 1);
	assert_int_equal(poll(&p, 1, 50), 0);
	assert_true(send(fd, "\n", 1, 0) == 1);
	assert_int_equal(poll(&p, 1, 1000 * PATIENCE_S), 1);
	close(fd);
}

/* Whoever comes meanwhile waits, the control lcore does not turn for it, and takes it later. */
static void
no_descriptor_for_another(void **state UNUSED)
{
	const int fd = client(), next = dup(fd);
	struct pollfd p = { .fd = control_wait_fd(fake.c), .events = POLLIN };
	struct rlimit old, none;

	assert_true(next > fd);
	close(next);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	none = old;
	none.rlim_cur = (rlim_t)next;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	turn();
	assert_int_equal(poll(&p, 1, 0), 0);
	turn();
	assert_int_equal(fake.c->server.n, 0);
	/* Not for the first look, but for one of the next. */
	fake.now += TIME_NS_PER_S;
	turn();
	turn();
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	fake.now += TIME_NS_PER_S;
	ask(fd, 1, "version");
	expect_id(fd, 1);
	close(fd);
}

/* The same while as many as may wait have not been seen off; then at once, not at the next look. */
static void
no_room_for_another_to_be_seen_off(void **state UNUSED)
{
	struct broker *b = fake.c->server.broker;
	const int fd = client();
	struct pollfd p = { .fd = control_wait_fd(fake.c), .events = POLLIN };

	b->leaving += BROKER_LEAVING_MAX;
	assert_int_equal(poll(&p, 1, 0), 1);
	turn();
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(fake.c->server.n, 0);
	fake.now += TIME_NS_PER_S;
	turn();
	turn();
	assert_int_equal(poll(&p, 1, 0), 0);
	b->leaving -= BROKER_LEAVING_MAX;
	turn();
	assert_int_equal(poll(&p, 1, 0), 1);
	ask(fd, 1, "version");
	expect_id(fd, 1);
	close(fd);
}

static void
a_second_instance_is_turned_away(void **state UNUSED)
{
	struct control *second = NULL;

	assert_int_equal(control_create(&fake.env, &second), -EADDRINUSE);
	assert_null(second);
	int fd = client(); /* the first one still answers */

	ask(fd, 1, "version");
	expect_id(fd, 1);
	close(fd);
}

static void
a_stale_socket_is_replaced(void **state UNUSED)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	memcpy(a.sun_path, path, sizeof(path));
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof(a)), 0);
	close(fd);
	assert_int_equal(access(path, F_OK), 0);
	fake_start_env(conf, 0, false);
	fd = client();
	ask(fd, 1, "version");
	expect_id(fd, 1);
	close(fd);
	fake_stop();
	assert_int_equal(access(path, F_OK), -1);
}

static void
a_file_that_is_no_socket_stays(void **state UNUSED)
{
	int fd = open(path, O_CREAT | O_WRONLY, 0600);

	close(fd);
	fake_start_env(conf, -EEXIST, false);
	fake_stop();
	assert_int_equal(access(path, F_OK), 0);
	assert_int_equal(unlink(path), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(two_clients_at_once),
		WITH_SOCKET(many_lines_in_one_write),
		WITH_SOCKET(what_is_no_json_inside_a_character),
		WITH_SOCKET(a_client_that_has_written_all_it_wants),
		WITH_SOCKET(clients_that_die),
		WITH_SOCKET(a_client_takes_its_users_turns),
		WITH_SOCKET(a_line_of_one_mebibyte_is_the_longest),
		WITH_SOCKET(a_client_that_does_not_read),
		WITH_SOCKET(replies_longer_than_the_sockets_buffer),
		cmocka_unit_test(a_reply_longer_than_all_that_may_wait),
		WITH_SOCKET(waiting_for_work),
		WITH_SOCKET(no_descriptor_for_another),
		WITH_SOCKET(no_room_for_another_to_be_seen_off),
		WITH_SOCKET(a_second_instance_is_turned_away),
		cmocka_unit_test(a_stale_socket_is_replaced),
		cmocka_unit_test(a_file_that_is_no_socket_stays),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
