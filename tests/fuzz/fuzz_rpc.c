/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lines of the control socket, given to a control lcore whose workers are mailboxes only (that of
 * tests/unit/control). Whatever a line is, its reply is one line of JSON-RPC 2.0 or nothing; a
 * refused request changes nothing; and in the end everything can be taken down without a leak.
 *
 * Input: the lines.
 */
#include <string.h>

#include "fuzz_control.h"

enum { LINES_MAX = 64 };

#define QP                                                                                      \
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\"," \
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"path_mtu\":1024,\"dest_qp_num\":18,"        \
	"\"rq_psn\":100,\"sq_psn\":200,\"qp_access_flags\":[\"REMOTE_READ\"],"                  \
	"\"ah_attr\":{\"dest_ip\":\"10.0.0.2\",\"dest_mac\":\"02:00:00:00:00:02\"},"            \
	"\"cap\":{\"max_recv_wr\":4,\"max_recv_sge\":2}}"
#define MR                                                                                        \
	"{\"name\":\"m\",\"pd\":\"pd0\",\"length\":\"4K\",\"addr\":\"0x1000\",\"rkey\":\"0x77\"," \
	"\"access\":[\"LOCAL_WRITE\",\"REMOTE_READ\"],\"fill\":\"pattern:3\"}"

static const char *const seeds[] = {
	CALL("version", "{}") CALL("rpc_get_methods", "{}") CALL("stats", "{\"scope\":\"port\"}"),
	CALL("qp_create", QP) CALL("qp_query", "{\"qp_num\":17}")
		CALL("qp_destroy", "{\"qp_num\":17}"),
	CALL("mr_register", MR) CALL("mr_read", "{\"name\":\"m\",\"offset\":8,\"length\":16}")
		CALL("mr_write", "{\"name\":\"m\",\"offset\":0,\"data\":\"00ff\"}")
			CALL("mr_deregister", "{\"name\":\"m\"}"),
	CALL("qp_create", QP) CALL("qp_modify", "{\"qp_num\":17,\"qp_state\":\"SQD\"}")
		CALL("qp_modify", "{\"qp_num\":17,\"qp_state\":\"ERR\"}")
			CALL("qp_modify", "{\"qp_num\":17,\"qp_state\":\"RESET\"}"),
	CALL("mr_register", MR) CALL("qp_create", QP) CALL("post_recv",
		"{\"qp_num\":17,\"wrs\":[{\"wr_id\":1,\"sg_list\":"
		"[{\"mr\":\"m\",\"offset\":0,\"length\":64}]}]}") CALL("post_send",
		"{\"qp_num\":17,\"wrs\":[{\"wr_id\":1,\"opcode\":\"SEND\","
		"\"inline\":\"aabb\"}]}") CALL("poll_cq", "{\"cq\":\"cq0\",\"max\":4}"),
	CALL("pd_create", "{\"name\":\"pd1\"}") CALL("cq_create", "{\"name\":\"c\",\"cqe\":8}")
		CALL("cq_destroy", "{\"name\":\"c\"}") CALL("pd_dealloc", "{\"name\":\"pd1\"}"),
	CALL("qp_create", QP) CALL("trace_start", "{\"qp_num\":17}")
		CALL("trace_read", "{\"qp_num\":17}") CALL("trace_stop", "{\"qp_num\":17}")
			CALL("qp_list", "{\"qp_state\":\"RTS\",\"limit\":1,\"after\":3}"),
	CALL("async_events", "{\"max\":4,\"follow\":true}") CALL("rx_errors", "{\"max\":4}")
		CALL("neighbor_list", "{}") CALL("worker_list", "{}") CALL("port_list", "{}"),
	"[" CALL(
		"version", "{}") ",{\"jsonrpc\":\"2.0\",\"method\":\"stats\"},3]\n[]\n{}\n\n\xff\n",
	"{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":1}\n{\"jsonrpc\":\"1.0\"}\nnull\n\"\\ud800\"\n",
};

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	return index < ARRAY_LEN(seeds) ? fuzz_text(seeds[index], buf, room) : 0;
}

static void
check_object(const json_t *reply)
{
	const json_t *error = json_object_get(reply, "error");
	const char *version = json_string_value(json_object_get(reply, "jsonrpc"));

	FUZZ_CHECK(version != NULL && strcmp(version, "2.0") == 0);
	FUZZ_CHECK(json_object_get(reply, "id") != NULL);
	FUZZ_CHECK((error != NULL) != (json_object_get(reply, "result") != NULL));
	if (error == NULL)
		return;
	FUZZ_CHECK(json_is_integer(json_object_get(error, "code")));
	FUZZ_CHECK(json_string_length(json_object_get(error, "message")) != 0);
}

static void
check_reply(const char *text)
{
	json_t *reply = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *one;
	size_t i;

	FUZZ_CHECK(strchr(text, '\n') == NULL);
	FUZZ_CHECK(reply != NULL);
	if (!json_is_array(reply))
		check_object(reply);
	json_array_foreach (reply, i, one)
		check_object(one);
	json_decref(reply);
}

static void
line(const char *text, size_t len)
{
	char *reply;

	if (memmem(text, len, "save_config", 11) != NULL)
		return; /* it writes files */
	reply = control_rpc(fake.c, text, len);
	if (reply != NULL)
		check_reply(reply);
	free(reply);
	control_poll(fake.c, fake.now);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *at = (const char *)data, *end = at + size;

	LLVMFuzzerInitialize(NULL, NULL);
	fake_start(NULL);
	for (uint32_t n = 0; at != end && n < LINES_MAX; n++) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));

		if (stop == NULL)
			stop = end;
		line(at, (size_t)(stop - at));
		at = stop != end ? stop + 1 : end;
	}
	fake_stop();
	return 0;
}
