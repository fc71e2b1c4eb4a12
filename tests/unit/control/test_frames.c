/* SPDX-License-Identifier: BSD-3-Clause */
/* ARP, ICMP, ICMPv6 and what QPs make of them. Frames are typed from the RFCs. */
#include "fake.h"

#include "log.h"

#include <stdio.h>

#include <rte_mbuf.h>

#include "be.h"

#define US   0x02, 0, 0, 0, 0, 0x01
#define PEER 0x02, 0, 0, 0, 0, 0x02
#define ALL  0xff, 0xff, 0xff, 0xff, 0xff, 0xff

static const char waiting_qp[] =
	"{\"qp_num\":17,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\","
	"\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"dest_qp_num\":18,\"rq_psn\":1,\"sq_psn\":2,"
	"\"ah_attr\":{\"dest_ip\":\"10.0.0.2\"},\"cap\":{\"max_recv_wr\":1}}";

/* Who has 10.0.0.1, tell 10.0.0.2. */
static const uint8_t arp_request[] = { ALL, PEER, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1, PEER, 10,
	0, 0, 2, 0, 0, 0, 0, 0, 0, 10, 0, 0, 1 };

static const uint8_t arp_reply[] = { US, PEER, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2, PEER, 10, 0,
	0, 2, US, 10, 0, 0, 1 };

static void
feed(const void *data, uint32_t len)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fake.env.ports[0].pool);
	struct mbox_msg msg = { .type = MBOX_PACKET, .pkt = { .m = m, .port = 0 } };

	assert_non_null(m);
	memcpy(rte_pktmbuf_append(m, (uint16_t)len), data, len);
	assert_int_equal(mbox_send_up(&fake.mbox[0], &msg), 0);
	control_poll(fake.c, fake.now);
	fake.env.pump(NULL);
}

/* The one frame that control has sent since. */
static const struct fake_frame *
sent(void)
{
	assert_int_equal(fake.frames_n, 1);
	fake.frames_n = 0;
	return &fake.frames[0];
}

static void
nothing_sent(void)
{
	assert_int_equal(fake.frames_n, 0);
}

static void
arp_is_answered(void **state UNUSED)
{
	static const uint8_t want[] = { PEER, US, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 2, US, 10, 0,
		0, 1, PEER, 10, 0, 0, 2 };
	const struct fake_frame *f;

	feed(arp_request, sizeof(arp_request));
	f = sent();
	assert_int_equal(f->len, 60);
	assert_memory_equal(f->data, want, sizeof(want));
	for (uint32_t i = sizeof(want); i < 60; i++)
		assert_int_equal(f->data[i], 0);
}

static void
arp_keeps_the_tag(void **state UNUSED)
{
	uint8_t tagged[sizeof(arp_request) + 4];

	memcpy(tagged, arp_request, 12);
	memcpy(tagged + 12, "\x81\x00\x60\x05", 4);
	memcpy(tagged + 16, arp_request + 12, sizeof(arp_request) - 12);
	feed(tagged, sizeof(tagged));
	assert_memory_equal(sent()->data + 12, "\x81\x00\x60\x05\x08\x06", 6);
}

/* One byte of a good request changed: no answer, and nothing bad happens. */
static void
arp_that_is_not_for_us(void **state UNUSED)
{
	static const struct {
		unsigned int at;
		uint8_t value;
	} rows[] = { { 0, 0 }, { 15, 2 }, { 16, 9 }, { 18, 5 }, { 19, 16 }, { 21, 2 }, { 21, 3 },
		{ 41, 7 }, { 22, 1 } };

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t f[sizeof(arp_request)];

		memcpy(f, arp_request, sizeof(f));
		f[rows[i].at] = rows[i].value;
		feed(f, sizeof(f));
		nothing_sent();
	}
}

static void
frames_of_any_length(void **state UNUSED)
{
	uint8_t f[600];
	uint32_t x = 99;

	for (uint32_t len = 1; len < sizeof(arp_request); len++)
		feed(arp_request, len);
	nothing_sent();
	/* Random bytes behind each of the headers that are looked at. */
	for (unsigned int round = 0; round < 4000; round++) {
		static const uint16_t types[] = { 0x0806, 0x0800, 0x86dd, 0x8100, 0x1234 };
		uint32_t len;

		for (unsigned int i = 0; i < sizeof(f); i++) {
			x = x * 1664525 + 1013904223;
			f[i] = (uint8_t)(x >> 24);
		}
		memcpy(f, fake.addr.mac, 6);
		be16_store(f + 12, types[round % ARRAY_LEN(types)]);
		if (round % 5 == 1) {
			f[14] = 0x45;
			f[23] = round % 10 == 1 ? 1 : 2; /* ICMP, IGMP */
		} else if (round % 5 == 2) {
			f[14] = 0x60;
			f[20] = round % 10 == 2 ? 58 : 0; /* ICMPv6, behind options */
			memcpy(f + 21, "\x01\xfe\x80", 3);
			f[54] = 58;
			memcpy(f + 38, fake.addr.ipv6, 16);
		}
		len = 14 + (x >> 8) % (sizeof(f) - 14);
		feed(f, len);
	}
}

static uint32_t
ping4(uint8_t *f, uint32_t payload)
{
	static const uint8_t head[] = { US, PEER, 0x08, 0x00, 0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0,
		64, 1, 0, 0, 10, 0, 0, 2, 10, 0, 0, 1, 8, 0, 0, 0, 0xab, 0xcd, 0, 1 };
	const uint32_t total = 28 + payload;

	memcpy(f, head, sizeof(head));
	be16_store(f + 16, (uint16_t)total);
	for (uint32_t i = 0; i < payload; i++)
		f[42 + i] = (uint8_t)i;
	be16_store(f + 24, fake_sum16(f + 14, 20, 0));
	be16_store(f + 36, fake_sum16(f + 34, 8 + payload, 0));
	return 14 + total;
}

static void
ping_is_answered(void **state UNUSED)
{
	static const uint32_t sizes[] = { 0, 1, 56, 1399 };

	/* Before any QP is there. */
	for (unsigned int i = 0; i < ARRAY_LEN(sizes); i++) {
		uint8_t f[2048];
		const uint32_t len = ping4(f, sizes[i]);
		const struct fake_frame *r;

		feed(f, len);
		r = sent();
		assert_int_equal(r->len, len < 60 ? 60 : len);
		assert_memory_equal(r->data, f + 6, 6);
		assert_memory_equal(r->data + 6, f, 6);
		assert_int_equal(fake_sum16(r->data + 14, 20, 0), 0);
		assert_memory_equal(r->data + 26, "\x0a\0\0\x01\x0a\0\0\x02", 8);
		assert_int_equal(r->data[34], 0);
		assert_int_equal(fake_sum16(r->data + 34, 8 + sizes[i], 0), 0);
		assert_memory_equal(
			r->data + 38, f + 38, 4 + sizes[i]); /* identifier, sequence, data */
	}
}

static void
pings_that_are_wrong(void **state UNUSED)
{
	/* Byte to change, and whether the IP and ICMP sums are made right again. */
	static const struct {
		unsigned int at;
		uint8_t value;
		bool fix;
	} rows[] = {
		{ 14, 0x46, true },  /* options */
		{ 17, 0xff, true },  /* longer than the frame */
		{ 17, 27, true },    /* too short for an echo */
		{ 20, 0x20, true },  /* a fragment */
		{ 24, 0x77, false }, /* header checksum */
		{ 26, 224, true },   /* from a group */
		{ 33, 9, true },     /* not to us */
		{ 34, 13, true },    /* no echo */
		{ 36, 0x77, false }, /* ICMP checksum */
		{ 6, 3, true },      /* from a group's MAC */
	};

	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t f[2048];
		const uint32_t len = ping4(f, 32);

		f[rows[i].at] = rows[i].value;
		if (rows[i].fix) {
			be16_store(f + 24, 0);
			be16_store(f + 24, fake_sum16(f + 14, 20, 0));
			be16_store(f + 36, 0);
			be16_store(f + 36, fake_sum16(f + 34, 40, 0));
		}
		feed(f, len);
		nothing_sent();
	}
}

/* Pseudo-header: addresses, length, next header. */
static uint16_t
sum6(const uint8_t *ip, uint32_t len)
{
	uint32_t sum = len + 58;

	for (uint32_t i = 8; i < 40; i += 2)
		sum += be16_load(ip + i);
	return fake_sum16(ip + 40, len, sum);
}

static uint32_t
frame6(uint8_t *f, const uint8_t *dst_mac, const char *dst_ip, const uint8_t *icmp, uint32_t len)
{
	static const uint8_t head[] = { US, PEER, 0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 58, 255, 0xfd, 0,
		0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2 };

	memcpy(f, head, sizeof(head));
	memcpy(f, dst_mac, 6);
	be16_store(f + 18, (uint16_t)len);
	memcpy(f + 38, dst_ip, 16);
	memcpy(f + 54, icmp, len);
	be16_store(f + 56, 0);
	be16_store(f + 56, sum6(f + 14, len));
	return 54 + len;
}

#define IP6(last) "\xfd\0\0\0\0\0\0\0\0\0\0\0\0\0\0" last

static void
ipv6_ping_and_solicitation(void **state UNUSED)
{
	static const uint8_t us[] = { US }, group[] = { 0x33, 0x33, 0xff, 0, 0, 1 };
	static const uint8_t ping[] = { 128, 0, 0, 0, 1, 2, 0, 3, 'h', 'i', '!' };
	static const uint8_t ns[] = { 135, 0, 0, 0, 0, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 1, 1, 1, PEER };
	const struct fake_frame *r;
	uint8_t f[256];

	feed(f, frame6(f, us, IP6("\x01"), ping, sizeof(ping)));
	r = sent();
	assert_int_equal(r->data[54], 129);
	assert_memory_equal(r->data + 58, ping + 4, sizeof(ping) - 4);
	assert_memory_equal(r->data + 22, IP6("\x01"), 16);
	assert_memory_equal(r->data + 38, IP6("\x02"), 16);
	assert_int_equal(sum6(r->data + 14, sizeof(ping)), 0);

	feed(f, frame6(f, group, "\xff\x02\0\0\0\0\0\0\0\0\0\x01\xff\0\0\x01", ns, sizeof(ns)));
	r = sent();
	assert_memory_equal(r->data, f + 6, 6);
	assert_int_equal(r->data[54], 136);
	assert_int_equal(r->data[58], 0x60); /* solicited, override */
	assert_memory_equal(r->data + 62, IP6("\x01"), 16);
	assert_memory_equal(r->data + 78, "\x02\x01\x02\0\0\0\0\x01", 8);
	assert_int_equal(sum6(r->data + 14, 32), 0);
	assert_int_equal(r->data[21], 255);

	/* Another hop limit: it came through a router, and is not believed. */
	const uint32_t len = frame6(f, us, IP6("\x01"), ns, sizeof(ns));

	f[21] = 64;
	feed(f, len);
	nothing_sent();
}

static json_t *
query(void)
{
	return rpc_ok("qp_query", "{\"qp_num\":17}");
}

static void
poll_after(ns_t ns)
{
	control_poll(fake.c, fake.now += ns);
	fake.env.pump(NULL);
	control_poll(fake.c, fake.now);
}

static void
neighbours_are_asked_for(void **state UNUSED)
{
	static const uint8_t want[] = { ALL, US, 0x08, 0x06, 0, 1, 0x08, 0, 6, 4, 0, 1, US, 10, 0,
		0, 1, 0, 0, 0, 0, 0, 0, 10, 0, 0, 2 };
	json_t *v = rpc_ok("qp_create", waiting_qp);
	const struct qp *qp = qp_lookup(fake.env.qps, 17);

	/* In its state at once, but without a path. */
	assert_string_equal(text_of(v, "qp_state"), "RTS");
	assert_true(json_is_false(json_object_get(v, "path_resolved")));
	assert_true(json_is_null(json_object_get(json_object_get(v, "ah_attr"), "dest_mac")));
	json_decref(v);
	assert_true((qp->flags & QPF_RESOLVED) == 0);

	poll_after(0);
	assert_memory_equal(sent()->data, want, sizeof(want));
	poll_after(50 * TIME_NS_PER_MS);
	nothing_sent();
	poll_after(60 * TIME_NS_PER_MS); /* again after 100 ms */
	sent();
	poll_after(210 * TIME_NS_PER_MS);
	sent();
	for (unsigned int i = 0; i < 10; i++) { /* and then each second, without end */
		poll_after(TIME_NS_PER_S + TIME_NS_PER_MS);
		sent();
	}
	feed(arp_reply, sizeof(arp_reply));
	poll_after(0);
	assert_true((qp->flags & QPF_RESOLVED) != 0);
	assert_memory_equal(qp->attr.path.dmac, "\x02\0\0\0\0\x02", 6);
	assert_memory_equal(qp->tmpl.bytes, "\x02\0\0\0\0\x02", 6);
	v = query();
	assert_string_equal(text_of(v, "qp_state"), "RTS");
	assert_true(json_is_true(json_object_get(v, "path_resolved")));
	assert_string_equal(
		text_of(json_object_get(v, "ah_attr"), "dest_mac"), "02:00:00:00:00:02");
	json_decref(v);
	poll_after((ns_t)10 * TIME_NS_PER_S);
	nothing_sent();
}

static uint32_t lines;

static void
count_lines(void *ctx UNUSED, enum log_level level UNUSED, const char *line UNUSED)
{
	lines++;
}

/* Two who claim one address a thousand times a second do not fill the log. */
static void
a_flip_flop_is_a_few_lines(void **state UNUSED)
{
	uint8_t other[sizeof(arp_reply)];

	memcpy(other, arp_reply, sizeof(other));
	other[27] = 0x77;
	json_decref(rpc_ok("qp_create", waiting_qp));
	lines = 0;
	log_set_sink(count_lines, NULL);
	for (uint32_t i = 0; i < 100000; i++) {
		fake.now += TIME_NS_PER_MS;
		feed((i & 1) != 0 ? other : arp_reply, sizeof(other));
		poll_after(0);
		fake.frames_n = 0;
	}
	log_set_sink(NULL, NULL);
	assert_in_range(lines, 2, 5 + 100 / 10 + 1);
}

static void
a_neighbour_that_moves(void **state UNUSED)
{
	uint8_t moved[sizeof(arp_reply)];
	const struct qp *qp;

	json_decref(rpc_ok("qp_create", waiting_qp));
	qp = qp_lookup(fake.env.qps, 17);
	feed(arp_reply, sizeof(arp_reply));
	poll_after(0);
	memcpy(moved, arp_reply, sizeof(moved));
	moved[27] = 0x77;
	feed(moved, sizeof(moved));
	poll_after(0);
	assert_memory_equal(qp->attr.path.dmac, "\x02\0\0\0\0\x77", 6);
	/* A second QP to the same place needs no request. */
	json_t *o = json_loads(waiting_qp, 0, NULL);

	json_object_set_new(o, "qp_num", json_integer(19));
	char *text = json_dumps(o, 0);

	fake.frames_n = 0;
	json_decref(rpc_ok("qp_create", text));
	poll_after(0);
	nothing_sent();
	assert_memory_equal(qp_lookup(fake.env.qps, 19)->attr.path.dmac, "\x02\0\0\0\0\x77", 6);
	free(text);
	json_decref(o);
}

static void
static_and_given_macs_stay(void **state UNUSED)
{
	uint8_t liar[sizeof(arp_reply)];
	json_t *o = json_loads(waiting_qp, 0, NULL);
	char *text;

	json_object_set_new(json_object_get(o, "ah_attr"), "dest_ip", json_string("10.0.0.9"));
	text = json_dumps(o, 0);
	json_decref(rpc_ok("qp_create", text));
	free(text);
	json_decref(o);
	assert_memory_equal(qp_lookup(fake.env.qps, 17)->attr.path.dmac, "\x02\0\0\0\0\x09", 6);
	memcpy(liar, arp_reply, sizeof(liar));
	liar[31] = 9;
	feed(liar, sizeof(liar));
	poll_after(0);
	assert_memory_equal(qp_lookup(fake.env.qps, 17)->attr.path.dmac, "\x02\0\0\0\0\x09", 6);
}

static void
ipv6_neighbours_are_asked_for(void **state UNUSED)
{
	static const uint8_t us[] = { US };
	static const uint8_t na[] = { 136, 0, 0, 0, 0x60, 0, 0, 0, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 2, 2, 1, PEER };
	json_t *o = json_loads(waiting_qp, 0, NULL);
	const struct fake_frame *r;
	uint8_t f[256];
	char *text;

	json_object_set_new(json_object_get(o, "ah_attr"), "dest_ip", json_string("fd00::2"));
	text = json_dumps(o, 0);
	json_decref(rpc_ok("qp_create", text));
	free(text);
	json_decref(o);
	poll_after(0);
	r = sent();
	assert_memory_equal(r->data, "\x33\x33\xff\0\0\x02", 6);
	assert_memory_equal(r->data + 38, "\xff\x02\0\0\0\0\0\0\0\0\0\x01\xff\0\0\x02", 16);
	assert_int_equal(r->data[54], 135);
	assert_memory_equal(r->data + 62, IP6("\x02"), 16);
	assert_memory_equal(r->data + 78, "\x01\x01\x02\0\0\0\0\x01", 8);
	assert_int_equal(sum6(r->data + 14, 32), 0);
	feed(f, frame6(f, us, IP6("\x01"), na, sizeof(na)));
	poll_after(0);
	assert_memory_equal(qp_lookup(fake.env.qps, 17)->attr.path.dmac, "\x02\0\0\0\0\x02", 6);
}

static void
the_neighbour_list(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("qp_create", waiting_qp));
	v = rpc_ok("neighbor_list", NULL);
	assert_int_equal(json_array_size(v), 2);
	assert_string_equal(text_of(json_array_get(v, 0), "ipv4"), "10.0.0.9");
	assert_string_equal(text_of(json_array_get(v, 0), "state"), "PERMANENT");
	assert_string_equal(text_of(json_array_get(v, 1), "state"), "INCOMPLETE");
	assert_true(json_is_null(json_object_get(json_array_get(v, 1), "mac")));
	json_decref(v);
	/* With the last QP that wanted it the question goes. */
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	v = rpc_ok("neighbor_list", NULL);
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
	poll_after(TIME_NS_PER_S);
	nothing_sent();
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(arp_is_answered),
		WITH_FAKE(arp_keeps_the_tag),
		WITH_FAKE(arp_that_is_not_for_us),
		WITH_FAKE(frames_of_any_length),
		WITH_FAKE(ping_is_answered),
		WITH_FAKE(pings_that_are_wrong),
		WITH_FAKE(ipv6_ping_and_solicitation),
		WITH_FAKE(neighbours_are_asked_for),
		WITH_FAKE(a_flip_flop_is_a_few_lines),
		WITH_FAKE(a_neighbour_that_moves),
		WITH_FAKE(static_and_given_macs_stay),
		WITH_FAKE(ipv6_neighbours_are_asked_for),
		WITH_FAKE(the_neighbour_list),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
