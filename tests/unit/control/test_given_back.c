/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory of regions that were taken back while a worker did not answer. */
#include "with_socket.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#include "control_state.h"

#define BYTES 8192

static const char mark[] = "what a peer has written there";

/* A request, with a descriptor if it is not negative. @return its result (release it). */
static json_t *
ask(int fd, const char *method, const char *params, int pass)
{
	union {
		uint8_t bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { 0 };
	char line[256];
	struct iovec iov = { line, (size_t)snprintf(line, sizeof(line),
					   "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\","
					   "\"params\":%s}\n",
					   method, params) };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	json_t *v, *result;

	if (pass >= 0) {
		struct cmsghdr *h;

		msg.msg_control = control.bytes;
		msg.msg_controllen = sizeof(control.bytes);
		h = CMSG_FIRSTHDR(&msg);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(h), &pass, sizeof(int));
	}
	assert_int_equal(sendmsg(fd, &msg, MSG_NOSIGNAL), iov.iov_len);
	v = get_json(fd);
	result = json_incref(json_object_get(v, "result"));
	if (result == NULL)
		fail_msg("%s: %s", method, text_of(json_object_get(v, "error"), "message"));
	json_decref(v);
	return result;
}

/* Whether the mark still stands there: what is given back may be another's memory at once. */
static bool
is_kept(const void *at)
{
	const int copy = memfd_create("copy", 0);
	char found[sizeof(mark)];
	bool kept;

	assert_true(copy >= 0);
	kept = syscall(SYS_write, copy, at, sizeof(mark)) == (long)sizeof(mark) &&
	       pread(copy, found, sizeof(found), 0) == (ssize_t)sizeof(found) &&
	       memcmp(found, mark, sizeof(mark)) == 0;
	close(copy);
	return kept;
}

static void
a_region_of_the_operator(void **state UNUSED)
{
	const struct object_mr *mr;
	struct refusal r;
	uint8_t *base;

	json_decref(rpc_ok("mr_register", "{\"name\":\"m\",\"pd\":\"pd0\",\"length\":65536}"));
	mr = object_mr_find(&fake.c->objects, "m", &r);
	assert_non_null(mr);
	base = mr->region->area.base;
	memcpy(base, mark, sizeof(mark));
	json_decref(rpc_ok("mw_alloc", "{\"name\":\"w\",\"pd\":\"pd0\",\"type\":1}"));
	fake_be_deaf();
	json_decref(rpc_ok("mw_dealloc", "{\"name\":\"w\"}"));
	json_decref(rpc_ok("mr_deregister", "{\"name\":\"m\"}"));
	turn();
	assert_true(is_kept(base)); /* a worker may be writing to it */
	assert_false(STAILQ_EMPTY(&fake.c->objects.late));
	fake_hear_again();
	assert_true(STAILQ_EMPTY(&fake.c->objects.late));
	assert_false(is_kept(base));
}

static uint32_t synced;

/* They answer that they have left what was there before, and nothing more. */
static void
be_deaf_behind_the_first_sync(void)
{
	if (fake.seen[MBOX_SYNC] < synced + FAKE_WORKERS)
		fake.hook = be_deaf_behind_the_first_sync;
	else
		fake_be_deaf();
}

static void
grow_late(uint32_t max_wr)
{
	char params[64];

	snprintf(params, sizeof(params), "{\"name\":\"s\",\"max_wr\":%u}", max_wr);
	synced = fake.seen[MBOX_SYNC];
	fake.hook = be_deaf_behind_the_first_sync;
	json_decref(rpc_ok("srq_modify", params));
	assert_true(fake.deaf);
}

static uint8_t *
ring_of_s(void)
{
	struct refusal r;
	uint8_t *base = object_srq_find(&fake.c->objects, "s", &r)->q.area.base;

	memcpy(base + 4096 - sizeof(mark), mark, sizeof(mark));
	return base + 4096 - sizeof(mark);
}

/* A worker may be taking from the ring that was left: it is given back when it can be no more. */
static void
rings_that_were_left(void **state UNUSED)
{
	const uint8_t *first, *second, *third;

	json_decref(rpc_ok("srq_create", "{\"name\":\"s\",\"pd\":\"pd0\",\"max_wr\":4}"));
	first = ring_of_s();
	grow_late(8192);
	second = ring_of_s();
	assert_true(is_kept(first));
	fake_hear_again();
	grow_late(16384);
	third = ring_of_s();
	assert_false(is_kept(first));
	assert_true(is_kept(second));
	fake_hear_again();
	json_decref(rpc_ok("srq_destroy", "{\"name\":\"s\"}"));
	assert_false(is_kept(second));
	assert_false(is_kept(third));
}

/* Its connection ends before that: its thread waits for the memory. */
static void
a_region_of_a_client(void **state UNUSED)
{
	const struct rpc_admission *places = &fake.c->server.admission;
	const int fd = client(), memory = memfd_create("test", MFD_ALLOW_SEALING);
	const time_t end = patience();
	struct broker_conn *conn;
	char params[160];
	json_t *v;

	assert_int_equal(fallocate(memory, 0, 0, BYTES), 0);
	assert_int_equal(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK), 0);
	json_decref(ask(fd, "client_open", "{\"abi\":1}", -1));
	v = ask(fd, "client_pd_create", "{}", -1);
	snprintf(params, sizeof(params),
		"{\"pd\":%d,\"addr\":4096,\"length\":%d,\"access\":1,\"once\":true}",
		(int)number_of(v, "handle"), BYTES);
	json_decref(v);
	v = ask(fd, "client_mr_register", params, memory);
	snprintf(params, sizeof(params), "{\"handle\":%d}", (int)number_of(v, "handle"));
	json_decref(v);
	conn = TAILQ_FIRST(&fake.c->apps.all)->o.home;
	assert_int_equal(broker_conn_mapped(conn), BYTES);
	fake_be_deaf();
	json_decref(ask(fd, "client_mr_deregister", params, -1));
	assert_int_equal(broker_conn_mapped(conn), BYTES);
	assert_false(STAILQ_EMPTY(&fake.c->objects.late));
	close(fd);
	close(memory);
	while (TAILQ_FIRST(&fake.c->apps.all)->conn != NULL && time(NULL) < end)
		turn();
	/* The application goes yet: workers answer what it asked them, and fall silent again. */
	for (unsigned int i = 0; i < 8; i++)
		turn();
	fake.deaf = false;
	fake.env.pump(NULL);
	fake_be_deaf();
	while (fake.c->apps.n != 0 && time(NULL) < end)
		turn();
	assert_int_equal(fake.c->apps.n, 0);
	assert_false(STAILQ_EMPTY(&fake.c->objects.late));
	assert_int_equal(broker_ending(fake.c->server.broker), 0);
	assert_int_equal(broker_conn_mapped(conn), BYTES);
	fake_hear_again();
	assert_true(STAILQ_EMPTY(&fake.c->objects.late));
	while (places->places.used + places->places.operators != 0 && time(NULL) < end) {
		fake.env.pump(NULL);
		turn();
	}
	assert_int_equal(places->places.used + places->places.operators, 0);
	assert_int_equal(fake.c->apps.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(a_region_of_the_operator),
		WITH_SOCKET(rings_that_were_left),
		WITH_SOCKET(a_region_of_a_client),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
