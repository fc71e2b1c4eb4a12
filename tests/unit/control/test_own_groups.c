/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Groups of a port itself: what its device must let in, and what switches that snoop are told (RFC
 * 4861, 7.2.1). The fake port is fd00::1 and fe80::ff:fe00:1, which ask for one and the same group.
 */
#include "fake.h"

#include <errno.h>

#include <rte_mbuf.h>

#include "be.h"
#include "control_state.h"
#include "log.h"

#define MLD_AT 62 /* behind hop-by-hop options */
#define TO_EX  4  /* RFC 3376, 4.2.12 */
#define IS_EX  2
#define MACS   8

static const uint8_t hosts[6] = { 0x01, 0, 0x5e, 0, 0, 1 }, nodes[6] = { 0x33, 0x33, 0, 0, 0, 1 };
static const uint8_t solicited[6] = { 0x33, 0x33, 0xff, 0, 0, 1 };
static const uint8_t group[16] = { 0xff, 2, [11] = 1, 0xff, 0, 0, 1 };

/** What the device was told last. */
static struct {
	uint8_t mac[MACS][6];
	uint32_t n, calls, port;
	int refuse[2]; /* rc, for each port */
} told;

static int
port_groups(void *ctx UNUSED, uint32_t port, uint8_t (*macs)[6], uint32_t n)
{
	assert_in_range(n, 0, MACS);
	memcpy(told.mac, macs, n * sizeof(macs[0]));
	told.n = n;
	told.port = port;
	told.calls++;
	return told.refuse[port];
}

static bool
lets_in(const uint8_t mac[6])
{
	for (uint32_t i = 0; i < told.n; i++)
		if (memcmp(told.mac[i], mac, 6) == 0)
			return true;
	return false;
}

static void
turn_after(ns_t ns)
{
	fake.now += ns;
	control_poll(fake.c, fake.now);
	fake.env.pump(NULL);
}

/* With the first turn, with every change, and when the last group was left. */
static void
the_device_lets_them_in(void **state UNUSED)
{
	static const uint8_t joined[6] = { 0x01, 0, 0x5e, 1, 2, 3 };
	static const char join[] = "{\"qp_num\":40,\"group\":\"239.1.2.3\"}";

	memset(&told, 0, sizeof(told));
	fake_wire_groups = port_groups;
	fake_start(NULL);
	fake_wire_groups = NULL;
	turn_after(0);
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.n, 3);
	assert_true(lets_in(hosts) && lets_in(nodes) && lets_in(solicited));
	json_decref(rpc_ok("qp_create",
		"{\"qp_num\":40,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTR\",\"qkey\":1,"
		"\"cap\":{\"max_recv_wr\":1}}"));
	json_decref(rpc_ok("mcast_attach", join));
	assert_int_equal(told.n, 4);
	assert_true(lets_in(hosts) && lets_in(nodes) && lets_in(solicited) && lets_in(joined));
	json_decref(rpc_ok("mcast_detach", join));
	turn_after(0);
	assert_int_equal(told.n, 3);
	assert_true(lets_in(hosts) && lets_in(nodes) && lets_in(solicited));
	fake_stop();
}

static uint32_t lines, lines_of_p1;

static void
count_lines(void *ctx UNUSED, enum log_level level, const char *line)
{
	const bool is_one = level <= LOG_WARN && strstr(line, "multicast") != NULL;

	lines += is_one;
	lines_of_p1 += is_one && strstr(line, "\"p1\"") != NULL;
}

static void
sink_nothing(void *ctx UNUSED, enum log_level level UNUSED, const char *line UNUSED)
{
}

/* It hears no router's question meanwhile: somebody is told, and it is tried again. */
static void
a_device_that_refuses_them(void **state UNUSED)
{
	memset(&told, 0, sizeof(told));
	told.refuse[0] = -EIO;
	fake_wire_groups = port_groups;
	fake_start(NULL);
	fake_wire_groups = NULL;
	lines = 0;
	log_set_sink(count_lines, NULL);
	turn_after(0);
	turn_after(0);
	assert_int_equal(told.calls, 1);
	assert_int_equal(lines, 1);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(told.calls, 2);
	told.refuse[0] = 0;
	for (unsigned int i = 0; i < 8; i++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(told.calls, 3);
	/* What it cannot do it is not asked for again. */
	told.refuse[0] = -ENOTSUP;
	fake.c->admin.mcasts_left[0] = true;
	lines = 0;
	for (unsigned int i = 0; i < 8; i++)
		turn_after(TIME_NS_PER_S);
	assert_int_equal(told.calls, 4);
	assert_int_equal(lines, 1);
	log_set_sink(sink_nothing, NULL);
	fake_stop();
}

/* One that refuses each second: another port's device is told at once, and spoken of. */
static void
devices_that_refuse_them(void **state UNUSED)
{
	memset(&told, 0, sizeof(told));
	told.refuse[0] = -EIO;
	fake_wire_groups = port_groups;
	fake_start("{\"version\":1,\"lcores\":{\"control\":0,\"workers\":[1,2]},\"ports\":["
		   "{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"},"
		   "{\"name\":\"p1\",\"device\":\"net_ring1\",\"ipv4\":\"10.0.1.1\"}]}");
	fake_wire_groups = NULL;
	turn_after(0);
	assert_int_equal(told.calls, 2);
	fake.c->admin.mcasts_left[1] = true; /* as when a group is left */
	turn_after(0);
	assert_int_equal(told.calls, 3);
	assert_int_equal(told.port, 1);
	for (unsigned int i = 0; i < 16; i++)
		turn_after(TIME_NS_PER_S);
	lines_of_p1 = 0;
	log_set_sink(count_lines, NULL);
	fake.c->admin.mcasts_left[1] = true;
	told.refuse[1] = -EIO;
	turn_after(0);
	assert_int_equal(lines_of_p1, 1);
	log_set_sink(sink_nothing, NULL);
	fake_stop();
}

/** The one frame that was sent is an MLDv2 report of the group. */
static void
is_told(uint8_t how)
{
	const uint8_t *f = fake.frames[0].data;

	assert_int_equal(fake.frames_n, 1);
	fake.frames_n = 0;
	assert_int_equal(f[MLD_AT], 143);
	assert_int_equal(f[MLD_AT + 8], how);
	assert_memory_equal(f + MLD_AT + 12, group, sizeof(group));
}

/* Two reports when the port begins, and one for each question. */
static void
solicited_nodes_are_told_of(void **state UNUSED)
{
	static const uint8_t ask[] = { 0x33, 0x33, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x86, 0xdd, 0x60,
		0, 0, 0, 0, 36, 0, 1, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 2,
		0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 58, 0, 5, 2, 0, 0, 1, 0, 130, 0,
		0, 0, 0x03, 0xe8 };
	uint8_t f[90] = { 0 };
	struct rte_mbuf *m = rte_pktmbuf_alloc(fake.env.ports[0].pool);
	struct mbox_msg msg = { .type = MBOX_PACKET, .pkt = { .m = m, .port = 0 } };
	uint32_t sum = 58 + 28;

	fake.tells_own = true;
	turn_after(0);
	is_told(TO_EX);
	turn_after(TIME_NS_PER_S);
	is_told(TO_EX);
	turn_after(100 * TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 0);
	memcpy(f, ask, sizeof(ask));
	for (uint32_t i = 22; i < 54; i += 2)
		sum += be16_load(f + i);
	be16_store(f + MLD_AT + 2, fake_sum16(f + MLD_AT, 28, sum));
	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, sizeof(f)), f, sizeof(f));
	assert_int_equal(mbox_send_up(&fake.mbox[0], &msg), 0);
	turn_after(0);
	turn_after(TIME_NS_PER_S);
	is_told(IS_EX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device_lets_them_in),
		cmocka_unit_test(a_device_that_refuses_them),
		cmocka_unit_test(devices_that_refuse_them),
		cmocka_unit_test_setup_teardown(
			solicited_nodes_are_told_of, fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
