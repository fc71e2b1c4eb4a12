/* SPDX-License-Identifier: BSD-3-Clause */
/* The tables of the wire as constant arrays: everything here is expanded from tables/. */
#include "wire_front.h"

/* Bytes of BTH and extension headers: derived, so that a row cannot contradict itself. */
#define HDR_IF(hdrs, bit, len) (((hdrs) & (bit)) != 0 ? (len) : 0)
#define HDR_LEN(hdrs)                                                                           \
	(WIRE_BTH_LEN + HDR_IF(hdrs, OPF_DETH, WIRE_DETH_LEN) +                                 \
		HDR_IF(hdrs, OPF_XRCETH, WIRE_XRCETH_LEN) +                                     \
		HDR_IF(hdrs, OPF_FETH, WIRE_FETH_LEN) + HDR_IF(hdrs, OPF_RETH, WIRE_RETH_LEN) + \
		HDR_IF(hdrs, OPF_ATOMICETH, WIRE_ATOMICETH_LEN) +                               \
		HDR_IF(hdrs, OPF_AETH, WIRE_AETH_LEN) +                                         \
		HDR_IF(hdrs, OPF_ATOMICACKETH, WIRE_ATOMICACK_LEN) +                            \
		HDR_IF(hdrs, OPF_IMM, WIRE_IMM_LEN) + HDR_IF(hdrs, OPF_IETH, WIRE_IETH_LEN))

#define RESERVED_4(c)                                                               \
	[c] = { .hdr_len = WIRE_BTH_LEN }, [(c) + 1] = { .hdr_len = WIRE_BTH_LEN }, \
	[(c) + 2] = { .hdr_len = WIRE_BTH_LEN }, [(c) + 3] = { .hdr_len = WIRE_BTH_LEN }
#define RESERVED_32(c)                                                                 \
	RESERVED_4(c), RESERVED_4((c) + 4), RESERVED_4((c) + 8), RESERVED_4((c) + 12), \
		RESERVED_4((c) + 16), RESERVED_4((c) + 20), RESERVED_4((c) + 24),      \
		RESERVED_4((c) + 28)

/* Rows of the table replace the reserved entries that all values start with, on purpose. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverride-init"
const struct wire_opcode wire_opcodes[256] = {
	RESERVED_32(0x00),
	RESERVED_32(0x20),
	RESERVED_32(0x40),
	RESERVED_32(0x60),
	RESERVED_32(0x80),
	RESERVED_32(0xa0),
	RESERVED_32(0xc0),
	RESERVED_32(0xe0),
#define OPCODE(op, nm, ws, hdrs, fl, cl)                \
	[op] = { .name = #nm,                           \
		.wireshark = (ws),                      \
		.clause = (cl),                         \
		.flags = { OPF_KNOWN | (fl) | (hdrs) }, \
		.hdr_len = HDR_LEN(hdrs) },
#include "tables/opcodes.def"
#undef OPCODE
};

/* From the UDP length to that of the payload, to the ICRC; one more for a complement. */
#define ROW(fl, hdr_bytes)                                                                 \
	{                                                                                  \
		.op = { fl }, .payload_off = WIRE_PLAIN_BTH + (hdr_bytes),                 \
		.payload_len = (uint16_t)(1 - WIRE_UDP_LEN - WIRE_ICRC_LEN - (hdr_bytes)), \
		.icrc_off = WIRE_PLAIN_UDP - WIRE_ICRC_LEN, .l3_off = WIRE_PLAIN_IP,       \
		.bth_off = WIRE_PLAIN_BTH                                                  \
	}

const struct wire_row wire_rows[256] = {
	[0 ... 255] = ROW(0, WIRE_BTH_LEN),
#define OPCODE(code, nm, ws, hdrs, fl, cl) [code] = ROW(OPF_KNOWN | (fl) | (hdrs), HDR_LEN(hdrs)),
#include "tables/opcodes.def"
#undef OPCODE
};
#pragma GCC diagnostic pop

const struct wire_fault_info wire_faults[FAULT_MAX] = {
#define FAULT(bit, nm, prec, imp, ctr, txt, cl) \
	[bit] = { .name = #nm,                  \
		.impact = (imp),                \
		.counter = (ctr),               \
		.text = (txt),                  \
		.clause = (cl),                 \
		.precedence = (prec) },
#include "tables/faults.def"
#undef FAULT
};

const uint32_t wire_rnr_times[32] = {
#define RNR_TIMER(code, us, clause) [code] = (us),
#include "tables/rnr_timers.def"
#undef RNR_TIMER
};

static const char *const fatal_texts[32] = {
#define FATAL_CODE(code, name, text, clause) [code] = (text),
#include "tables/fatal_codes.def"
#undef FATAL_CODE
};

static const struct {
	const char *text;
	const char *status;
	uint8_t on; /* a bit for each enum wire_transport */
} naks[32] = {
#define NAK_CODE(code, name, txt, st, services, clause) \
	[code] = { .text = (txt), .status = (st), .on = (services) },
#include "tables/nak_codes.def"
#undef NAK_CODE
};

enum wire_fault
wire_fault_winner(fault_mask_t m)
{
	enum wire_fault winner = FAULT_MAX;
	unsigned int best = UINT8_MAX + 1u;

	/* From the lowest bit up, so that of equal precedences the lowest bit stays. */
	for (; m != 0; m &= m - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(m);

		if (wire_faults[bit].name != NULL && wire_faults[bit].precedence < best) {
			best = wire_faults[bit].precedence;
			winner = (enum wire_fault)bit;
		}
	}
	return winner;
}

const char *
wire_fatal_text(uint8_t code)
{
	return code < ARRAY_LEN(fatal_texts) ? fatal_texts[code] : NULL;
}

const char *
wire_nak_text(uint8_t transport, uint8_t code)
{
	return (naks[code & 31].on >> transport & 1) != 0 ? naks[code & 31].text : NULL;
}

const char *
wire_nak_status(uint8_t transport, uint8_t code)
{
	return (naks[code & 31].on >> transport & 1) != 0 ? naks[code & 31].status : NULL;
}
