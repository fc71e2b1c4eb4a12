/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The responder of a service without ACKs on any packets: nothing is answered, what is dropped
 * changes no memory, a receive is taken once for each message, and a message completes with as many
 * bytes as were placed for it.
 *
 * Input: five bytes a packet: opcode, PSN, payload length, what the facts say, length of a WRITE.
 */
#include <string.h>

#include "be.h"
#include "fuzz.h"
#include "responder.h"

enum { PMTU = 256, E = 0xfffffe, PACKET = 5 };

/** One packet of the input, as a parser would leave it. */
static void
make(const uint8_t *in, uint8_t frame[64], struct wire_pkt *p)
{
	const struct wire_opcode *op = &wire_opcodes[in[0]];
	const uint32_t len = in[2] < 64 ? in[2] : in[2] < 160 ? PMTU : in[2] + PMTU - 192u;

	memset(frame, 0, 64);
	be64_store(frame + WIRE_BTH_LEN, 0x1000);
	be32_store(frame + WIRE_BTH_LEN + 8, 0x1001);
	be32_store(frame + WIRE_BTH_LEN + 12, in[4] == 255 ? 0x80000001 : in[4] * 16u);
	*p = (struct wire_pkt){ .frame = frame,
		.op = op->flags,
		.opcode = in[0],
		.psn = psn((uint32_t)E + (uint32_t)(int8_t)in[1]),
		.payload_off = op->hdr_len != 0 ? op->hdr_len : WIRE_BTH_LEN,
		.payload_len = (uint16_t)(op_has(op->flags, OPF_PAYLOAD) ? len : 0),
		.flags = in[3] & (PKT_ACKREQ | PKT_SE),
		.pad = in[3] >> 1 & 3 };
}

static void
check(const struct responder *r, const struct responder_verdict *v, uint32_t *placed, bool *active)
{
	const uint32_t answers = ACT_ACK | ACT_NAK | ACT_READ | ACT_ATOMIC | ACT_REPLAY;

	FUZZ_CHECK((v->act & answers) == 0);
	if ((v->act & ACT_ERR) != 0)
		return;
	if ((v->act & ACT_DROP) != 0) {
		FUZZ_CHECK((v->act & (ACT_PLACE_SEND | ACT_PLACE_WRITE | ACT_COMPLETE)) == 0);
		FUZZ_CHECK((v->act & ACT_TAKE_WQE) == 0);
		FUZZ_CHECK(r->open == OPEN_NONE || v->rule == RULE_NOT_A_REQUEST);
		return;
	}
	if ((v->act & ACT_TAKE_WQE) != 0) {
		*active = true;
		*placed = 0;
	}
	if ((v->act & ACT_PLACE_SEND) != 0)
		FUZZ_CHECK(*active && v->offset == *placed);
	if ((v->act & ACT_COMPLETE) != 0) {
		FUZZ_CHECK(*active && v->wc_status == 0);
		*active = false;
	}
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct responder r = { .pmtu = PMTU, .transport = WIRE_UC, .access = 2 };
	uint32_t placed = 0;
	bool active = false, dead = false;

	responder_reset(&r, psn(E));
	for (; size >= PACKET && !dead; size -= PACKET, data += PACKET) {
		struct responder_facts f = { .has_wqe = (data[3] & 8) == 0,
			.key_ok = (data[3] & 16) == 0,
			.wqe_fault = (data[3] & 0xe0) == 0xe0 ? data[4] & 3 : 0,
			.wqe_bytes = (data[3] & 32) != 0 ? 300 : 4096 };
		struct responder_verdict v;
		struct responder_query q;
		uint8_t frame[64];
		struct wire_pkt p;

		make(data, frame, &p);
		if (op_has(p.op, OPF_CNP))
			continue;
		if (f.wqe_fault == 3)
			f.has_wqe = false;
		f.has_wqe |= active;
		responder_resync(&r, &p);
		responder_query(&r, &p, &q);
		responder_receive(&r, &p, &f, 1, &v);
		check(&r, &v, &placed, &active);
		if ((v.act & ACT_PLACE_SEND) != 0)
			placed += p.payload_len;
		dead = (v.act & ACT_ERR) != 0;
	}
	return 0;
}

/** A SEND and a WRITE of three packets, with a loss, another kind between, and reserved opcodes. */
size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	static const uint8_t seeds[][6 * PACKET] = {
		{ 0x20, 0, 64, 0, 0, 0x21, 1, 64, 0, 0, 0x22, 2, 9, 0, 0, 0x24, 3, 5, 0, 0 },
		{ 0x26, 0, 64, 0, 33, 0x27, 1, 64, 0, 0, 0x29, 2, 16, 1, 0, 0x2a, 3, 16, 0, 1 },
		{ 0x20, 0, 64, 0, 0, 0x22, 2, 9, 0, 0, 0x25, 3, 5, 1, 0, 0x22, 4, 5, 0, 0 },
		{ 0x20, 0, 64, 0, 0, 0x2a, 1, 16, 0, 1, 0x22, 2, 9, 0, 0, 0x24, 3, 5, 0, 0 },
		{ 0x20, 0, 64, 0, 0, 0x2c, 1, 0, 0, 0, 0x04, 1, 5, 1, 0, 0x22, 1, 9, 0, 0 },
		{ 0x24, 0, 9, 0xe0, 1, 0x24, 1, 9, 8, 0, 0x2b, 2, 16, 16, 1, 0x26, 3, 64, 0, 255 },
	};

	if (index >= sizeof(seeds) / sizeof(seeds[0]) || room < sizeof(seeds[0]))
		return 0;
	memcpy(buf, seeds[index], sizeof(seeds[0]));
	return sizeof(seeds[0]);
}
