/* SPDX-License-Identifier: BSD-3-Clause */
/* Notifications: who follows, and what is delivered by them. */
#include "with_socket.h"

static void
events_are_carried_to_followers(void **state UNUSED)
{
	static const char follow[] = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"async_events\","
				     "\"params\":{\"follow\":true}}\n";
	int a = client(), b = client();
	struct mbox_msg m = { .type = MBOX_EVENT, .ev = { .qpn = 17, .event = 4, .psn = 1 } };
	uint32_t worker;
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	worker = qp_lookup(fake.env.qps, 17)->worker;
	assert_int_equal(mbox_send_up(&fake.mbox[worker], &m), 0);
	put(a, follow, sizeof(follow) - 1);
	v = get_json(a); /* what was there already */
	assert_int_equal(json_array_size(json_object_get(v, "result")), 1);
	json_decref(v);
	put(b, follow, sizeof(follow) - 1);
	v = get_json(b);
	assert_int_equal(json_array_size(json_object_get(v, "result")), 0);
	json_decref(v);
	for (uint32_t i = 2; i < 5; i++) {
		m.ev.psn = i;
		assert_int_equal(mbox_send_up(&fake.mbox[worker], &m), 0);
	}
	for (uint32_t i = 2; i < 5; i++) {
		int fds[] = { a, b };

		for (unsigned int k = 0; k < 2; k++) {
			v = get_json(fds[k]);
			assert_string_equal(text_of(v, "method"), "async_event");
			assert_null(json_object_get(v, "id"));
			assert_int_equal(number_of(json_object_get(v, "params"), "psn"), i);
			json_decref(v);
		}
	}
	close(a);
	turn();
	/* A follower that is gone is no trouble; the other one goes on. */
	assert_int_equal(mbox_send_up(&fake.mbox[worker], &m), 0);
	json_decref(get_json(b));
	v = rpc_ok("async_events", "{\"peek\":true}");
	assert_int_equal(json_array_size(v), 0); /* they were taken */
	json_decref(v);
	close(b);
}

/* Who follows something else hears of events, too, and takes none. */
static void
events_wait_for_who_asked_for_them(void **state UNUSED)
{
	static const char *const others[] = { "cm_events", "cq_events" };
	struct mbox_msg m = { .type = MBOX_EVENT, .ev = { .qpn = 17, .event = 4, .psn = 1 } };
	char follow[128];
	uint32_t worker;
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	worker = qp_lookup(fake.env.qps, 17)->worker;
	for (unsigned int k = 0; k < ARRAY_LEN(others); k++) {
		int fd = client();

		snprintf(follow, sizeof(follow),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%s\","
			"\"params\":{\"follow\":true}}\n",
			others[k]);
		put(fd, follow, strlen(follow));
		json_decref(get_json(fd));
		assert_int_equal(mbox_send_up(&fake.mbox[worker], &m), 0);
		v = get_json(fd);
		assert_string_equal(text_of(v, "method"), "async_event");
		json_decref(v);
		v = rpc_ok("async_events", NULL);
		assert_int_equal(json_array_size(v), 1);
		json_decref(v);
		close(fd);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_SOCKET(events_are_carried_to_followers),
		WITH_SOCKET(events_wait_for_who_asked_for_them),
	};

	return cmocka_run_group_tests(tests, group_setup, group_teardown);
}
