/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's thread and the one that takes its requests: order, memory, the end. */
#include "broker_conn.h"
#include "broker_out.h"
#include "rig.h"

#define LINES 2000

/* More than the queue holds, while they are taken. */
static void
all_come_in_order(void **state UNUSED)
{
	char line[64];
	int sent = 0, got = 0;

	while (got < LINES) {
		struct broker_request *q;
		int n = snprintf(line, sizeof(line), "{\"n\":%d}\n", sent);

		while (sent < LINES && send(mine, line, (size_t)n, MSG_DONTWAIT) == n)
			n = snprintf(line, sizeof(line), "{\"n\":%d}\n", ++sent);
		q = next();
		assert_int_equal(q->kind, BROKER_LINE);
		assert_int_equal(json_integer_value(json_object_get(q->json, "n")), got++);
		broker_conn_done(q);
	}
	assert_int_equal(shutdown(mine, SHUT_WR), 0);
	struct broker_request *q = next();

	assert_int_equal(q->kind, BROKER_END);
	broker_conn_done(q);
}

static void
what_is_no_request(void **state UNUSED)
{
	static const struct {
		const char *line;
		int code;
	} rows[] = { { "{\n", -32700 }, { "[1,2", 0 }, { ",3]\r\n", 1 }, { "\n\n7\n", 1 },
		{ "[,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,"
		  ",,,,,,,,,,,,,,,,,,,,,,,,,,,,,,,]\n",
			-32600 } };
	char *long_line = malloc(5000);
	struct broker_request *q;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		say(rows[i].line);
		if (rows[i].code == 0)
			continue;
		q = next();
		assert_int_equal(q->kind, rows[i].code == 1 ? BROKER_LINE : BROKER_BAD);
		assert_int_equal(q->code, rows[i].code == 1 ? 0 : rows[i].code);
		assert_false(q->last);
		broker_conn_done(q);
	}
	memset(long_line, ' ', 4999);
	long_line[4999] = '\0';
	say(long_line);
	q = next();
	assert_int_equal(q->kind, BROKER_BAD);
	assert_true(q->last);
	assert_non_null(strstr(q->message, "4096 bytes"));
	broker_conn_done(q);
	free(long_line);
}

/* Registered, used twice, given back in any order, again and again: mapped once. */
static void
memory_is_mapped_once(void **state UNUSED)
{
	const int fd = memfd_of(8192);
	struct broker_memory *kept = NULL;
	uint32_t id = 0;

	for (int i = 0; i < 200; i++) {
		struct broker_gift *g;
		struct broker_request *q;

		pass("{\"slow\":1}\n", fd);
		q = next();
		g = broker_gift_of(q, q->json);
		assert_non_null(g);
		assert_int_equal(g->rc, 0);
		id = id != 0 ? id : broker_memory_id(g->memory);
		assert_int_equal(broker_memory_id(g->memory), id);
		assert_int_equal(broker_conn_mapped(c), 8192);
		broker_memory_at(g->memory, 0)[0] = (uint8_t)i;
		if (kept != NULL && i % 3 != 0) {
			broker_memory_put(kept);
			kept = NULL;
		}
		if (kept == NULL) { /* else it goes back with the request */
			kept = g->memory;
			g->memory = NULL;
		}
		broker_conn_done(q);
	}
	broker_memory_forget(c, id);
	broker_memory_put(kept);
	wait_for_mapped(0);
	close(fd);
}

/* One range out of three pieces, in an order of its own; they stay while it is used. */
static void
memory_of_pieces(void **state UNUSED)
{
	static const struct broker_piece pieces[] = { { 4096, 4096 }, { 8192, 8192 }, { 0, 4096 } };
	const int fd[] = { memfd_of(16384), memfd_of(16384) };
	const int order[] = { fd[0], fd[1], fd[0] };
	uint8_t *at[2];
	struct broker_memory *m, *first;

	for (int i = 0; i < 2; i++) {
		at[i] = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, fd[i], 0);
		assert_ptr_not_equal(at[i], MAP_FAILED);
	}
	terms = (struct broker_terms){ .offset = 100,
		.length = 16284,
		.pieces = pieces,
		.pieces_n = 3,
		.most = 1 << 20,
		.once = true };
	pass_all("{\"slow\":1}\n", order, 3);
	m = take(0);
	assert_int_equal(broker_conn_mapped(c), 3 * 16384);
	for (size_t i = 0; i < 16384; i += 4096)
		broker_memory_at(m, i)[0] = (uint8_t)('a' + i / 4096);
	assert_int_equal(at[0][4096], 'a');
	assert_int_equal(at[1][8192], 'b');
	assert_int_equal(at[1][12288], 'c');
	assert_int_equal(at[0][0], 'd');
	/* Sealed by now: it is had from where it is mapped. */
	terms = (struct broker_terms){ .length = 16384, .most = 1 << 20, .once = true };
	pass("{\"slow\":1}\n", fd[0]);
	first = take(0);
	terms.length++;
	pass("{\"slow\":1}\n", fd[0]);
	assert_null(take(-ERANGE));
	broker_memory_put(m);
	wait_for_mapped(16384);
	assert_int_equal(broker_memory_at(first, 4096)[0], 'a');
	broker_memory_put(first);
	wait_for_mapped(0);
	for (int i = 0; i < 2; i++) {
		munmap(at[i], 16384);
		close(fd[i]);
	}
}

/* The second or the third piece, or all of them, are bad: nothing is kept, nothing left over. */
static void
bad_pieces(void **state UNUSED)
{
	static const struct {
		struct broker_piece pieces[3];
		uint64_t offset;
		uint64_t most;
		int rc;
	} rows[] = {
		{ { { 0, 4096 }, { 4096, 8192 }, { 0, 4096 } }, 0, 1 << 20, -ERANGE },
		{ { { 0, 4096 }, { UINT64_MAX, 2 }, { 0, 4096 } }, 0, 1 << 20, -ERANGE },
		{ { { 0, 4096 }, { 0, 0 }, { 0, 4096 } }, 0, 1 << 20, -ERANGE },
		{ { { 0, 4096 }, { 0, 4095 }, { 0, 4096 } }, 0, 1 << 20, -EINVAL },
		{ { { 0, 4096 }, { 0, 4096 }, { 1, 4095 } }, 0, 1 << 20, -EINVAL },
		{ { { 0, 4096 }, { 0, 4096 }, { 0, 4096 } }, 12289, 1 << 20, -ERANGE },
		{ { { 0, 4096 }, { 0, 4096 }, { 0, 4096 } }, UINT64_MAX, 1 << 20, -ERANGE },
		{ { { 0, 8192 }, { 0, 8192 }, { 0, 8192 } }, 0, 8192 + 24575, -EFBIG },
		{ { { 0, 8192 }, { 0, 8192 }, { 0, 8192 } }, 0, 8192 + 24576, 0 },
	};
	const int bad = open("/dev/null", O_RDWR);
	struct broker_memory *m;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		/* Given back, each is sealed, and cannot be had again. */
		const int fd = memfd_of(8192), next_fd = memfd_of(8192), other = memfd_of(4096);
		const int same[] = { fd, fd, fd }, one_bad[] = { next_fd, bad, next_fd };

		terms = (struct broker_terms){ .offset = rows[i].offset,
			.length = 1,
			.pieces = rows[i].pieces,
			.pieces_n = 3,
			.most = rows[i].most,
			.once = true };
		pass_all("{\"slow\":1}\n", same, 3);
		m = take(rows[i].rc);
		if (m != NULL)
			broker_memory_put(m);
		terms.pieces = rows[ARRAY_LEN(rows) - 1].pieces;
		pass_all("{\"slow\":1}\n", one_bad, 3);
		assert_null(take(-EBADF));
		/* No descriptor is left: the next one is the next request's. */
		terms = (struct broker_terms){ .length = 1, .most = 1 << 20, .once = true };
		pass("{\"slow\":1}\n", other);
		m = take(0);
		assert_non_null(m);
		wait_for_mapped(4096);
		broker_memory_put(m);
		wait_for_mapped(0);
		close(fd);
		close(next_fd);
		close(other);
	}
	close(bad);
}

/* One page each, of no use any more: a process has 65,530 mappings, bytes do not bound them. */
static void
idle_memory_is_bounded_by_number(void **state UNUSED)
{
	terms.most = 2 * (uint64_t)BROKER_IDLE * PAGE;
	for (uint32_t i = 0; i < BROKER_IDLE + 44; i++) {
		const int fd = memfd_create("test", MFD_ALLOW_SEALING);
		struct broker_request *q;

		assert_int_equal(ftruncate(fd, PAGE), 0);
		assert_int_equal(fallocate(fd, 0, 0, PAGE), 0);
		assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK), 0);
		pass("{\"slow\":1}\n", fd);
		q = next();
		assert_int_equal(broker_gift_of(q, q->json)->rc, 0);
		/* And this one, and the last one, which may be on its way back still. */
		assert_in_range(broker_conn_mapped(c), PAGE, (BROKER_IDLE + 2) * PAGE);
		broker_conn_done(q); /* the memory goes back with it */
		close(fd);
	}
	assert_in_range(broker_conn_mapped(c), PAGE, (BROKER_IDLE + 2) * PAGE);
}

static void
what_is_no_memfd(void **state UNUSED)
{
	const int fd = open("/dev/null", O_RDWR);
	struct broker_request *q;

	pass("{\"slow\":1}\n", fd);
	q = next();
	assert_int_equal(broker_gift_of(q, q->json)->rc, -EBADF);
	broker_conn_done(q);
	say("{\"slow\":1}\n");
	q = next();
	assert_int_equal(broker_gift_of(q, q->json)->rc, -ENODEV);
	broker_conn_done(q);
	close(fd);
}

/* With requests in the queue, one taken, one line half there, and a descriptor nobody took. */
static void
the_end_in_the_middle(void **state UNUSED)
{
	const int fd = memfd_create("test", MFD_ALLOW_SEALING);
	struct broker_request *q;
	char byte;

	for (int i = 0; i < 30; i++)
		say("{\"n\":1}\n");
	pass("{\"n\":", fd);
	close(fd);
	q = next();
	broker_conn_done(q);
	broker_conn_end(c);
	broker_conn_put(c);
	c = NULL;
	while (recv(mine, &byte, 1, 0) > 0)
		;
	while (broker_ending(b) != 0) {
		broker_poll(b, 0);
		usleep(100);
	}
}

/* The thread looks at its clock, again and again, and hands nothing over. */
static void
nothing_comes(void)
{
	char said[2];

	for (int i = 0; i < 200; i++) {
		assert_true(broker_conn_say(c, "x", 1, NULL, 0));
		assert_int_equal(recv(mine, said, sizeof(said), MSG_WAITALL), sizeof(said));
		assert_false(broker_conn_has(c));
	}
}

/* Its time is over. Unseen by ThreadSanitizer: the thread looks before that or behind it. */
static __attribute__((noinline, no_sanitize("thread"))) void
has_waited(void)
{
	c->half_ms = 1;
}

/* Where the control lcore takes nothing, the peer cannot send the rest of its line. */
static void
half_a_line_waits_for_us(void **state UNUSED)
{
	char text[128] = "";
	struct broker_request *q;

	for (uint32_t i = 0; i <= BROKER_QUEUE; i++)
		strcat(text, "{\"n\":1}\n");
	say(strcat(text, "{\"n\":")); /* at once: behind a full queue nothing is read */
	while (!atomic_load(&c->waits))
		usleep(100);
	has_waited();
	for (uint32_t i = 0; i <= BROKER_QUEUE; i++)
		broker_conn_done(next());
	nothing_comes();
	say("2}\n");
	q = next();
	assert_int_equal(q->kind, BROKER_LINE);
	broker_conn_done(q);
}

/* It is nothing, and who has sent it may still listen. */
static void
half_a_line_at_the_end(void **state UNUSED)
{
	struct broker_request *q;

	say("{\"n\":1}\n ");
	assert_int_equal(shutdown(mine, SHUT_WR), 0);
	broker_conn_done(next());
	q = next();
	assert_int_equal(q->kind, BROKER_END);
	broker_conn_done(q);
	has_waited();
	nothing_comes();
}

/* Until so many are left that cannot be closed. */
static void
poll_until_left(uint32_t n)
{
	uint64_t now = 1000;

	for (int i = 0; i < PATIENCE_MS; i++) {
		broker_poll(b, now++);
		if (broker_left(b) == n && broker_leaving(b) == 0 && broker_ending(b) == 0)
			return;
		usleep(1000);
	}
	fail_msg("%u are left, %u are leaving", broker_left(b), broker_leaving(b));
}

/* With a descriptor in it, and none to be had for the thread that is to close it. */
static void
who_is_turned_away_is_closed_in_the_end(void **state UNUSED)
{
	const int keep = mine;
	struct rlimit was, none;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	mine = pair[0];
	pass("x", STDERR_FILENO);
	mine = keep;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	none = (struct rlimit){ 0, was.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	broker_turn_away(b, pair[1], "no", 2);
	poll_until_left(1);
	assert_true(fcntl(pair[1], F_GETFD) >= 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	poll_until_left(0);
	assert_int_equal(fcntl(pair[1], F_GETFD), -1);
	close(pair[0]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(all_come_in_order, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_request, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_is_mapped_once, setup, teardown),
		cmocka_unit_test_setup_teardown(memory_of_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(bad_pieces, setup, teardown),
		cmocka_unit_test_setup_teardown(idle_memory_is_bounded_by_number, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_no_memfd, setup, teardown),
		cmocka_unit_test_setup_teardown(the_end_in_the_middle, setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_line_waits_for_us, setup, teardown),
		cmocka_unit_test_setup_teardown(half_a_line_at_the_end, setup, teardown),
		cmocka_unit_test_setup_teardown(
			who_is_turned_away_is_closed_in_the_end, setup, teardown),
	};

	return cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
