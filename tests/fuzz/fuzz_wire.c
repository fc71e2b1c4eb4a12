/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parser on any bytes: it stays inside the frame (the frame is a heap block of exactly its
 * size, for a sanitizer to guard), what it says agrees with itself, and a packet built from the
 * parsed fields is parsed the same again and has a good ICRC. What is said of a frame that is
 * compared with another one (wire_alike.h) is what the parser says.
 *
 * Input: one byte of options for the port, then the frame.
 */
#include <string.h>

#include "crc_isal.h"
#include "fuzz.h"
#include "icrc.h"
#include "wire_alike.h"
#include "wire_build.h"
#include "../clib/fields.h"
#include "../vectors/hex.h"
#include "../vectors/tables.h"

enum { OPT_DF = 1, OPT_NO_V4 = 2, OPT_NO_V6 = 4, OPT_OTHER_MAC = 8, FRAME_ROOM = 66000 };

/* Keeps reads from being optimised away. */
static uint64_t sink;

static uint64_t
sum_bytes(const uint8_t *p, size_t len)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < len; i++)
		sum += p[i];
	return sum;
}

static struct wire_port
port_of(uint8_t options)
{
	return (struct wire_port){
		.mac = { 2, 0, 0, 0, 0, (options & OPT_OTHER_MAC) != 0 ? 0x12 : 0x11 },
		.has_ipv4 = (options & OPT_NO_V4) == 0,
		.has_ipv6 = (options & OPT_NO_V6) == 0,
		.require_df = (options & OPT_DF) != 0,
		.ipv4 = { 192, 0, 2, 1 },
		.ipv6 = { 0x20, 1, 0x0d, 0xb8, [15] = 1 },
	};
}

static void
check_offsets(const struct wire_pkt *p, size_t len)
{
	const fault_mask_t no_icrc = FAULT_BIT(FAULT_IP_VERSION) | FAULT_BIT(FAULT_IP_HDR_LEN) |
				     FAULT_BIT(FAULT_IP_LEN) | FAULT_BIT(FAULT_UDP_LEN) |
				     FAULT_BIT(FAULT_TRUNCATED);

	FUZZ_CHECK(p->frame_len <= len);
	FUZZ_CHECK((p->icrc_off == 0) == ((p->faults & no_icrc) != 0));
	FUZZ_CHECK((p->faults == 0) == (wire_fault_winner(p->faults) == FAULT_MAX));
	if (p->payload_off != 0) {
		FUZZ_CHECK(p->bth_off > p->l3_off);
		FUZZ_CHECK(p->payload_off >= p->bth_off + WIRE_BTH_LEN);
		FUZZ_CHECK((size_t)p->payload_off + p->payload_len + p->pad + WIRE_ICRC_LEN <= len);
	}
	if (p->icrc_off != 0)
		FUZZ_CHECK(p->payload_off + p->payload_len + p->pad == p->icrc_off);
}

static void
rebuild(const struct wire_pkt *p, uint8_t options)
{
	const struct wire_port port = port_of(options & OPT_OTHER_MAC);
	const struct wire_fields f = fields_of(p);
	const fault_mask_t bth_faults = FAULT_BIT(FAULT_TVER) | FAULT_BIT(FAULT_DST_QP);
	const size_t headers = p->payload_off - p->bth_off;
	const size_t xrceth = op_has(p->op, OPF_XRCETH) ? WIRE_XRCETH_LEN : 0;
	static uint8_t b[FRAME_ROOM];
	struct wire_path path = { .ipv6 = (p->flags & PKT_IPV6) != 0,
		.vlan = (p->flags & PKT_VLAN) != 0,
		.sport = 0xc000 };
	struct wire_pkt q;
	int len;

	memcpy(path.dmac, port.mac, 6);
	memcpy(path.dst_ip, path.ipv6 ? port.ipv6 : port.ipv4, path.ipv6 ? 16 : 4);
	len = wire_build(&path, &f, 0, b, sizeof(b));
	if (len < 0)
		return; /* with its pad right, it is longer than an IP length can say */
	FUZZ_CHECK(len <= UINT16_MAX + WIRE_ETH_LEN + WIRE_VLAN_LEN + WIRE_IPV6_LEN);
	if (len > UINT16_MAX)
		return;
	icrc_seal(crc_isal(), b, path.vlan ? 18 : 14, path.ipv6, (uint32_t)len);
	FUZZ_CHECK(wire_parse(&port, b, (uint32_t)len, &q) == WIRE_CLASS_ROCE);
	FUZZ_CHECK(q.faults == (p->faults & bth_faults));
	FUZZ_CHECK(icrc_verify(crc_isal(), &q));
	FUZZ_CHECK(q.opcode == p->opcode && q.psn.v == p->psn.v && q.dest_qpn == p->dest_qpn);
	FUZZ_CHECK(q.pkey == p->pkey && q.tver == p->tver && q.op.v == p->op.v);
	FUZZ_CHECK((q.flags | PKT_CE) == (p->flags | PKT_CE));
	FUZZ_CHECK(q.payload_len == p->payload_len);
	FUZZ_CHECK((size_t)(q.payload_off - q.bth_off) == headers);
	/* Extension headers survive, but for DETH's reserved byte and XRCETH: no field has it. */
	if (!op_has(p->op, OPF_DETH))
		FUZZ_CHECK(memcmp(wire_ext(&q) + xrceth, wire_ext(p) + xrceth,
				   headers - WIRE_BTH_LEN - xrceth) == 0);
	FUZZ_CHECK(memcmp(wire_payload(&q), wire_payload(p), p->payload_len) == 0);
}

#if WIRE_WIDE
/** The frame, and then one with a byte that is different, after one that `p` was read from. */
TARGET_WIRE_HALF static void
check_alike(const struct wire_port *port, const struct wire_pkt *p, uint8_t *frame, uint32_t len)
{
	const uint64_t which = sum_bytes(frame, len);
	struct wire_pkt got CACHE_ALIGNED, want;
	struct wire_alike alike = { .l3_off = 0 };

	if (!wire_has_half())
		return;
	wire_alike_end(&alike);
	got = *p;
	wire_alike_begin(&alike, &got);
	for (uint32_t i = 0; i < 2; i++) {
		if (wire_read_alike(&alike, frame, len, &got)) {
			FUZZ_CHECK(wire_parse_any(port, frame, len, &want) == WIRE_CLASS_ROCE);
			FUZZ_CHECK(memcmp(&got, &want, offsetof(struct wire_pkt, reserved)) == 0);
		}
		frame[which % 80 % len] ^= (uint8_t)(1u << (which & 7));
	}
}
#endif

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_port port;
	struct wire_pkt p;
	uint8_t options;
	uint8_t *frame;
	char line[512];
	size_t len;

	if (size == 0)
		return 0;
	options = data[0];
	port = port_of(options);
	len = size - 1;
	frame = malloc(len != 0 ? len : 1);
	if (frame == NULL)
		return 0;
	memcpy(frame, data + 1, len);

	if (wire_parse(&port, frame, (uint32_t)len, &p) == WIRE_CLASS_ROCE) {
		int n = wire_print(&p, line, sizeof(line));

		FUZZ_CHECK(n > 0 && (size_t)n < sizeof(line) && line[n] == '\0');
		check_offsets(&p, len);
		sink += sum_bytes(wire_src_ip(&p), (p.flags & PKT_IPV6) != 0 ? 16 : 4);
		if (p.icrc_off != 0)
			sink += icrc_verify(crc_isal(), &p);
		if (p.payload_off != 0) {
			sink += sum_bytes(wire_payload(&p), p.payload_len);
			rebuild(&p, options);
		}
#if WIRE_WIDE
		check_alike(&port, &p, frame, (uint32_t)len);
#endif
	}
	free(frame);
	return 0;
}

/** The ICRC examples as frames: plain, tagged, and of a port that wants DF. */
size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t macs[12] = { 2, 0, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 0x22 };
	unsigned int kind = index / ARRAY_LEN(vector_icrcs);
	const struct vector_icrc *v = &vector_icrcs[index % ARRAY_LEN(vector_icrcs)];
	size_t len = 1 + sizeof(macs);

	if (kind > 2 || room < 256)
		return 0;
	buf[0] = kind == 2 ? OPT_DF : 0;
	memcpy(buf + 1, macs, sizeof(macs));
	if (kind == 1)
		len += hex_bytes("81 00 20 07", buf + len, room - len);
	len += hex_bytes(v->ipv6 ? "86 dd" : "08 00", buf + len, room - len);
	len += hex_bytes(v->packet, buf + len, room - len);
	len += hex_bytes(v->icrc, buf + len, room - len);
	return len;
}
