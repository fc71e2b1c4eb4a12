/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef MEMBERS_BED_H
#define MEMBERS_BED_H
/**
 * @file members_bed.h  A port whose queue pairs join groups, and somebody who asks for them.
 *
 * Owner:   unit tests.
 * Memory:  fake.h's.
 * Depends: fake.h.
 */
#include "fake.h"

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "be.h"
#include "members.h"

#define US      0x02, 0, 0, 0, 0, 0x01
#define PEER    0x02, 0, 0, 0, 0, 0x02
#define LL_US   0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0x01
#define LL_PEER 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xfe, 0, 0, 0x02
#define G4      239, 1, 2, 3
#define G6      0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x12, 0x34, 0x56
#define NONE6   0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0

#define IP4_AT  14
#define IGMP_AT 38 /* behind a header with a router alert */
#define MLD_AT  62 /* behind hop-by-hop options */
#define TO_EX   4  /* RFC 3376, 4.2.12 */
#define TO_IN   3
#define IS_EX   2

static UNUSED const char join4[] = "{\"qp_num\":40,\"group\":\"239.1.2.3\"}";
static UNUSED const char join6[] = "{\"qp_num\":40,\"group\":\"ff0e::12:3456\"}";

static UNUSED void
make_qp(uint32_t qpn)
{
	char text[256];

	snprintf(text, sizeof(text),
		"{\"qp_num\":%u,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\","
		"\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTR\",\"qkey\":1,"
		"\"cap\":{\"max_recv_wr\":1}}",
		qpn);
	json_decref(rpc_ok("qp_create", text));
}

static UNUSED void
turn_after(ns_t ns)
{
	fake.now += ns;
	control_poll(fake.c, fake.now);
	fake.env.pump(NULL);
}

static UNUSED void
call(const char *method, const char *params)
{
	json_decref(rpc_ok(method, params));
	turn_after(0);
}

static UNUSED const uint8_t *
sent(uint32_t len)
{
	assert_int_equal(fake.frames_n, 1);
	fake.frames_n = 0;
	assert_int_equal(fake.frames[0].len, len);
	return fake.frames[0].data;
}

static UNUSED void
nothing_sent(void)
{
	assert_int_equal(fake.frames_n, 0);
}

static UNUSED uint16_t
sum6(const uint8_t *ip, const uint8_t *icmp, uint32_t len)
{
	uint32_t sum = 58 + len;

	for (uint32_t i = 8; i < 40; i += 2)
		sum += be16_load(ip + i);
	return fake_sum16(icmp, len, sum);
}

static UNUSED void
feed(const uint8_t *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fake.env.ports[0].pool);
	struct mbox_msg msg = { .type = MBOX_PACKET, .pkt = { .m = m, .port = 0 } };

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), data, len);
	assert_int_equal(mbox_send_up(&fake.mbox[0], &msg), 0);
	turn_after(0);
}

/** What is wrong with the next frame: bits of one byte, which go before MLD's checksum is made. */
static UNUSED struct {
	uint32_t at;
	uint8_t bits;
} wrong;

/** The same, done to a frame that is complete. */
static UNUSED struct {
	uint32_t at;
	uint8_t bits;
} spoil;

/** IGMP of `len` bytes to 224.0.0.1, its checksums made right. */
static UNUSED void
ask4(const uint8_t *igmp, uint32_t len, uint16_t tci)
{
	static const uint8_t head[] = { 0x46, 0xc0, 0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 10, 0, 0, 2, 224,
		0, 0, 1, 0x94, 4, 0, 0 };
	uint8_t f[100] = { 0x01, 0, 0x5e, 0, 0, 1, PEER };
	uint32_t at = 12;

	if (tci != 0) {
		be16_store(f + at, 0x8100);
		be16_store(f + at + 2, tci);
		at += 4;
	}
	be16_store(f + at, 0x0800);
	memcpy(f + at + 2, head, sizeof(head));
	be16_store(f + at + 4, (uint16_t)(sizeof(head) + len));
	be16_store(f + at + 12, fake_sum16(f + at + 2, sizeof(head), 0));
	memcpy(f + at + 2 + sizeof(head), igmp, len);
	be16_store(f + at + 4 + sizeof(head), fake_sum16(igmp, len, 0));
	f[wrong.at] ^= wrong.bits;
	feed(f, at + 2 + (uint32_t)sizeof(head) + len);
}

/** MLD of `len` bytes to all nodes. */
static UNUSED void
ask6(const uint8_t *mld, uint32_t len)
{
	static const uint8_t head[] = { 0x33, 0x33, 0, 0, 0, 1, PEER, 0x86, 0xdd, 0x60, 0, 0, 0, 0,
		0, 0, 1, LL_PEER, 0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 58, 0, 5, 2, 0,
		0, 1, 0 };
	uint8_t f[140];

	memcpy(f, head, sizeof(head));
	be16_store(f + 18, (uint16_t)(8 + len));
	memcpy(f + sizeof(head), mld, len);
	f[wrong.at] ^= wrong.bits;
	be16_store(f + sizeof(head) + 2, sum6(f + 14, mld, len));
	f[spoil.at] ^= spoil.bits;
	feed(f, (uint32_t)sizeof(head) + len);
}

/** Two groups of each IP version, all told of. */
static UNUSED void
join_four(void)
{
	make_qp(40);
	call("mcast_attach", join4);
	call("mcast_attach", "{\"qp_num\":40,\"group\":\"239.1.2.4\"}");
	call("mcast_attach", join6);
	call("mcast_attach", "{\"qp_num\":40,\"group\":\"ff0e::99\"}");
	turn_after(TIME_NS_PER_S);
	turn_after(TIME_NS_PER_S);
	turn_after(TIME_NS_PER_S);
	assert_int_equal(fake.frames_n, 8);
	fake.frames_n = 0;
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

#endif
