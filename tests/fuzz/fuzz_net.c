/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ARP, ICMP, neighbour discovery, IGMP and MLD from anybody on the link, while an operator makes
 * queue pairs, members of groups and neighbours. Whatever comes, what leaves is well-formed, and
 * no frame draws more than a few.
 *
 * Input: steps of two bytes and their operands (step()).
 */
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "be.h"
#include "control_state.h"
#include "fuzz_control.h"
#include "net.h"

enum { STEPS = 96, FRAME = 300, L2 = 14, TAG = 4, DRAWS_MAX = 33 + 8 };
enum { IPV4 = 0x0800, ARP = 0x0806, VLAN = 0x8100, IPV6 = 0x86dd };
enum { ICMP = 1, IGMP = 2, ICMPV6 = 58, LEAST = 60 };

static struct {
	const uint8_t *at, *end;
	uint8_t frame[FRAME];
	uint32_t len;
	uint32_t l3; /* where its network header is */
	uint32_t l4; /* ... and what is behind that; 0: nothing with a sum */
} bed;

static uint8_t
next(void)
{
	return bed.at != bed.end ? *bed.at++ : 0;
}

/* ---- what comes ------------------------------------------------------------------------------ */

static void
begin(uint16_t type, uint8_t which)
{
	static const uint8_t head[12] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 1 };
	uint32_t at = sizeof(head);

	memset(bed.frame, 0, sizeof(bed.frame));
	memcpy(bed.frame, head, sizeof(head));
	bed.frame[11] = which;
	if ((which & 1) != 0) {
		be16_store(bed.frame + at, VLAN);
		be16_store(bed.frame + at + 2, which);
		at += TAG;
	}
	be16_store(bed.frame + at, type);
	bed.l3 = at + 2;
	bed.l4 = 0;
}

static void
arp(uint8_t which)
{
	static const uint8_t body[28] = { 0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 1, 9, 10, 0, 0, 9, 0,
		0, 0, 0, 0, 0, 10, 0, 0, 1 };
	uint8_t *p;

	begin(ARP, which);
	p = bed.frame + bed.l3;
	memcpy(p, body, sizeof(body));
	p[7] = 1 + (which >> 1 & 1);
	p[13] = p[17] = which;
	bed.len = bed.l3 + (uint32_t)sizeof(body);
}

/** IPv4 of a protocol, `options` bytes of a router alert, `len` bytes of `body`. */
static void
ipv4(uint8_t which, uint8_t protocol, uint32_t options, const uint8_t *body, uint32_t len)
{
	uint8_t *ip;

	begin(IPV4, which);
	ip = bed.frame + bed.l3;
	ip[0] = (uint8_t)(0x45 + options / 4);
	be16_store(ip + 2, (uint16_t)(20 + options + len));
	ip[8] = 1;
	ip[9] = protocol;
	memcpy(ip + 12, ((const uint8_t[]){ 10, 0, 0, which, 10, 0, 0, 1 }), 8);
	ip[20] = options != 0 ? 0x94 : 0;
	ip[21] = (uint8_t)options;
	bed.l4 = bed.l3 + 20 + options;
	memcpy(bed.frame + bed.l4, body, len);
	bed.len = bed.l4 + len;
}

static void
ipv6(uint8_t which, uint32_t options, const uint8_t *body, uint32_t len)
{
	static const uint8_t every_hop[8] = { ICMPV6, 0, 5, 2, 0, 0, 1, 0 };
	uint8_t *ip;

	begin(IPV6, which);
	ip = bed.frame + bed.l3;
	ip[0] = 0x60;
	be16_store(ip + 4, (uint16_t)(options + len));
	ip[6] = options != 0 ? 0 : ICMPV6;
	ip[7] = options != 0 ? 1 : 255;
	ip[8] = 0xfe;
	ip[9] = 0x80;
	ip[23] = which;
	ip[24] = 0xfd;
	ip[39] = 1;
	memcpy(ip + 40, every_hop, options);
	bed.l4 = bed.l3 + 40 + options;
	memcpy(bed.frame + bed.l4, body, len);
	bed.len = bed.l4 + len;
}

static void
make(uint8_t what, uint8_t which)
{
	static const uint8_t echo[16] = { 8, 0, 0, 0, 1, 2, 3, 4 };
	static const uint8_t igmp[12] = { 0x11, 5, 0, 0, 0, 0, 0, 0, 2, 125 };
	uint8_t body[32] = { 0 };

	switch (what % 8) {
	case 0:
		arp(which);
		break;
	case 1:
		ipv4(which, ICMP, 0, echo, sizeof(echo));
		break;
	case 2: /* of version 1 or 2, and 3; of all groups, or of one */
		memcpy(body, igmp, sizeof(igmp));
		body[1] = which & 0xfe;
		if ((which & 4) != 0)
			memcpy(body + 4, ((const uint8_t[]){ 239, 1, 2, which >> 6 }), 4);
		ipv4(which, IGMP, 4, body, (which & 2) != 0 ? 8 : 12);
		memcpy(bed.frame, ((const uint8_t[]){ 1, 0, 0x5e, 0, 0, 1 }), 6);
		break;
	case 3:
		body[0] = 130;
		be16_store(body + 4, (uint16_t)(which << 8));
		if ((which & 4) != 0)
			memcpy(body + 8, ((const uint8_t[]){ 0xff, 0x0e }), 2);
		body[23] = which >> 6;
		ipv6(which, 8, body, (which & 2) != 0 ? 24 : 28);
		memcpy(bed.frame, ((const uint8_t[]){ 0x33, 0x33, 0, 0, 0, 1 }), 6);
		break;
	case 4:
		body[0] = 128;
		ipv6(which, 0, body, 16);
		break;
	case 5: /* who has our address */
	case 6: /* I have mine */
		body[0] = what % 8 == 5 ? 135 : 136;
		body[4] = which & 0xe0;
		body[8] = 0xfd;
		body[23] = what % 8 == 5 ? 1 : which;
		body[24] = what % 8 == 5 ? 1 : 2;
		body[25] = 1;
		memcpy(body + 26, ((const uint8_t[]){ 2, 0, 0, 0, 1, which }), 6);
		ipv6(which, 0, body, 32);
		break;
	default: /* anything */
		begin(next() % 2 == 0 ? IPV4 : IPV6, which);
		bed.len = bed.l3;
		while (bed.at != bed.end && bed.len < bed.l3 + which)
			bed.frame[bed.len++] = next();
		break;
	}
}

/** Sums of what is behind IPv6's addresses, `sum` carried in. */
static uint16_t
sum6(const uint8_t *ip, const uint8_t *p, uint32_t len)
{
	uint32_t sum = ICMPV6 + len;

	for (uint32_t i = 8; i < 40; i += 2)
		sum += be16_load(ip + i);
	return fake_sum16(p, len, sum);
}

/** As far as the frame has what it says that it has. */
static void
fix_sums(void)
{
	const uint16_t type = be16_load(bed.frame + bed.l3 - 2);
	uint8_t *ip = bed.frame + bed.l3, *p = bed.frame + bed.l4;
	const uint32_t len = bed.len - bed.l4;

	if (bed.l4 == 0 || bed.len < bed.l4 + 4)
		return;
	if (type == IPV4) {
		be16_store(ip + 10, 0);
		be16_store(ip + 10, fake_sum16(ip, bed.l4 - bed.l3, 0));
	}
	be16_store(p + 2, 0);
	be16_store(p + 2, type == IPV4 ? fake_sum16(p, len, 0) : sum6(ip, p, len));
}

/** In two pieces, if `cut` lies in it: what a device gives a small buffer for. */
static void
feed(uint32_t cut)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fake.env.ports[0].pool), *more = NULL;

	FUZZ_CHECK(m != NULL);
	if (cut > 0 && cut < bed.len) {
		more = rte_pktmbuf_alloc(fake.env.ports[0].pool);
		FUZZ_CHECK(more != NULL);
		memcpy(rte_pktmbuf_append(more, (uint16_t)(bed.len - cut)), bed.frame + cut,
			bed.len - cut);
	} else {
		cut = bed.len;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)cut), bed.frame, cut);
	FUZZ_CHECK(more == NULL || rte_pktmbuf_chain(m, more) == 0);
	frames_receive(&fake.c->net, m, 0);
}

/* ---- what leaves ----------------------------------------------------------------------------- */

static void
look_at_ipv4(const uint8_t *ip, uint32_t len)
{
	const uint32_t hdr = (ip[0] & 15u) * 4, total = be16_load(ip + 2);

	FUZZ_CHECK(ip[0] >> 4 == 4 && hdr >= 20 && total >= hdr + 8 && total <= len);
	FUZZ_CHECK(fake_sum16(ip, hdr, 0) == 0);
	FUZZ_CHECK(ip[9] == ICMP || ip[9] == IGMP);
	FUZZ_CHECK(fake_sum16(ip + hdr, total - hdr, 0) == 0);
	FUZZ_CHECK(memcmp(ip + 12, fake.addr.ipv4, 4) == 0);
	FUZZ_CHECK(ip[9] != IGMP || ((ip[16] & 0xf0) == 0xe0 && ip[8] == 1 && hdr == 24));
	FUZZ_CHECK(ip[9] != ICMP || (ip[16] & 0xf0) != 0xe0);
}

static void
look_at_ipv6(const uint8_t *ip, uint32_t len)
{
	const uint32_t payload = be16_load(ip + 4), options = ip[6] == 0 ? 8 : 0;

	FUZZ_CHECK(ip[0] >> 4 == 6 && payload >= options + 8 && payload + 40 <= len);
	FUZZ_CHECK(ip[options != 0 ? 40 : 6] == ICMPV6);
	FUZZ_CHECK(sum6(ip, ip + 40 + options, payload - options) == 0);
	FUZZ_CHECK(ip[8] == 0xfe || memcmp(ip + 8, fake.addr.ipv6, 16) == 0);
	FUZZ_CHECK(options == 0 || (ip[24] == 0xff && ip[7] == 1));
}

static void
look(void)
{
	FUZZ_CHECK(fake.frames_n <= DRAWS_MAX);
	for (uint32_t i = 0; i < fake.frames_n; i++) {
		const struct fake_frame *f = &fake.frames[i];
		const uint8_t *l3 = f->data + L2;
		uint16_t type = be16_load(f->data + 12);

		FUZZ_CHECK(f->len >= LEAST && f->len <= sizeof(f->data));
		FUZZ_CHECK(memcmp(f->data + 6, fake.addr.mac, 6) == 0);
		FUZZ_CHECK(memcmp(f->data, fake.addr.mac, 6) != 0);
		if (type == VLAN) {
			type = be16_load(f->data + 16);
			l3 += TAG;
		}
		FUZZ_CHECK(type == ARP || type == IPV4 || type == IPV6);
		if (type == IPV4)
			look_at_ipv4(l3, f->len - (uint32_t)(l3 - f->data));
		if (type == IPV6)
			look_at_ipv6(l3, f->len - (uint32_t)(l3 - f->data));
	}
	fake.frames_n = 0;
}

/* ---- what the operator does ------------------------------------------------------------------ */

static void
call(uint8_t what, uint8_t which)
{
	static const char *const lines[] = {
		CALL("mcast_attach", "{\"qp_num\":40,\"group\":\"239.1.2.%u\"}"),
		CALL("mcast_detach", "{\"qp_num\":40,\"group\":\"239.1.2.%u\"}"),
		CALL("mcast_attach", "{\"qp_num\":40,\"group\":\"ff0e::%u\"}"),
		CALL("mcast_detach", "{\"qp_num\":40,\"group\":\"ff0e::%u\"}"),
		CALL("qp_create",
			"{\"qp_num\":40,\"qp_type\":\"UD\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":"
			"\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTR\",\"qkey\":%u}"),
		CALL("qp_create",
			"{\"qp_num\":41,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":"
			"\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"dest_qp_num\":1,"
			"\"ah_attr\":{\"dest_ip\":\"10.0.0.%u\"}}"),
		CALL("qp_create",
			"{\"qp_num\":42,\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":"
			"\"cq0\",\"recv_cq\":\"cq0\",\"qp_state\":\"RTS\",\"dest_qp_num\":1,"
			"\"ah_attr\":{\"dest_ip\":\"fd00::%u\"}}"),
		CALL("qp_destroy", "{\"qp_num\":%u}"),
		CALL("neighbor_add",
			"{\"port\":\"p0\",\"ipv4\":\"10.0.0.%u\",\"mac\":\"02:00:00:00:01:09\"}"),
		CALL("neighbor_del", "{\"port\":\"p0\",\"ipv4\":\"10.0.0.%u\"}"),
		CALL("neighbor_flush", "{\"port\":\"p0\"}"),
		CALL("neighbor_list", "{}"),
	};
	char line[512];
	char *reply;
	int n;

	what %= ARRAY_LEN(lines);
	which = strstr(lines[what], "qp_destroy") != NULL ? 40 + which % 3 : which;
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-extra-args"
	n = snprintf(line, sizeof(line), lines[what], which);
#pragma GCC diagnostic pop
	reply = control_rpc(fake.c, line, (size_t)n);
	FUZZ_CHECK(reply != NULL);
	free(reply);
}

static void
step(void)
{
	const uint8_t what = next(), which = next();

	switch (what % 8) {
	case 0:
	case 1:
	case 2:
		make(what / 8, which);
		fix_sums();
		feed(0);
		break;
	case 3: /* the same with another byte, or without its end */
		bed.frame[next() % FRAME] = which;
		if ((which & 1) != 0)
			fix_sums();
		feed((which & 2) != 0 ? next() : 0);
		break;
	case 4:
		bed.len = which < bed.len ? which : bed.len;
		feed(0);
		break;
	case 5:
		call(what / 8, which);
		break;
	case 6:
		if ((which & 1) != 0)
			rte_eth_dev_set_link_down(0);
		else
			rte_eth_dev_set_link_up(0);
		break;
	default:
		fake.now += (ns_t)which * which * 10 * TIME_NS_PER_MS;
		break;
	}
	control_poll(fake.c, fake.now);
	fake.env.pump(NULL);
	look();
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t seeds[][32] = {
		{ 0, 8, 5 + 8 * 5, 8, 7, 10, 0, 8, 0, 10, 0, 12 },          /* ARP */
		{ 8, 8, 9, 8, 3, 1, 20, 32, 8, 8, 32, 4, 3, 0, 70 },        /* echo */
		{ 5, 1, 21, 1, 7, 20, 16, 8, 7, 10, 16, 64, 7, 40, 13, 1 }, /* IGMP */
		{ 5, 0, 24, 8, 24, 10, 7, 200, 24, 12, 7, 200, 29, 1 },     /* MLD */
		{ 53, 9, 40, 8, 48, 9, 7, 60, 48, 41, 7, 255, 7, 255 },     /* discovery */
		{ 5, 1, 21, 2, 6, 1, 7, 30, 6, 0, 7, 30, 16, 2, 7, 100 },   /* link */
		{ 56, 40, 0x45, 0, 0, 40, 0, 0, 0, 0, 1, 2, 0, 0, 10 },     /* rubbish */
	};

	if (index >= ARRAY_LEN(seeds) || room < sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[index], sizeof(seeds[0]));
	return sizeof(seeds[0]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	LLVMFuzzerInitialize(NULL, NULL);
	fake_start(NULL);
	call(4, 1);
	call(0, 0);
	fake.frames_n = 0;
	bed.at = data;
	bed.end = data + size;
	bed.len = 0;
	begin(IPV4, 0);
	for (uint32_t n = 0; bed.at != bed.end && n < STEPS; n++)
		step();
	rte_eth_dev_set_link_up(0);
	fake_stop();
	return 0;
}
