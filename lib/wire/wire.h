/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef WIRE_H
#define WIRE_H
/**
 * @file wire.h  RoCEv2 on the wire: what a parsed packet is, and how one is read.
 *
 * Owner:   any lcore (pure functions over the caller's memory).
 * Memory:  the caller's frame; wire_pkt points into it and lives no longer than it.
 * Depends: base.
 * Spec:    IBTA vol. 1 chapter 9.2-9.3, annex A17 (RoCEv2); WIRE-01..18.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "be.h"
#include "compiler.h"
#include "invariant.h"
#include "psn.h"

#define WIRE_UDP_PORT 4791

#define WIRE_ETH_LEN         14
#define WIRE_VLAN_LEN        4
#define WIRE_IPV4_LEN        20
#define WIRE_IPV6_LEN        40
#define WIRE_UDP_LEN         8
#define WIRE_BTH_LEN         12
#define WIRE_RETH_LEN        16
#define WIRE_ATOMICETH_LEN   28
#define WIRE_AETH_LEN        4
#define WIRE_ATOMICACK_LEN   8
#define WIRE_IMM_LEN         4
#define WIRE_IETH_LEN        4
#define WIRE_DETH_LEN        8
#define WIRE_XRCETH_LEN      4
#define WIRE_FETH_LEN        4
#define WIRE_ICRC_LEN        4
#define WIRE_CNP_PAYLOAD_LEN 16

/* ---- opcodes (tables/opcodes.def) -------------------------------------------------------- */

/** What an opcode is, as bits; wrapped so that an opcode byte can never be tested as flags. */
typedef struct {
	uint32_t v;
} opflags_t;

enum {
	OPF_KNOWN = BIT32(0), /* listed in the table */
	OPF_REQUEST = BIT32(1),
	OPF_RESPONSE = BIT32(2),
	OPF_FIRST = BIT32(3),
	OPF_MIDDLE = BIT32(4),
	OPF_LAST = BIT32(5),
	OPF_ONLY = BIT32(6),
	OPF_SEND = BIT32(7),
	OPF_WRITE = BIT32(8),
	OPF_READ = BIT32(9),    /* READ request or response */
	OPF_ATOMIC = BIT32(10), /* ATOMIC request or response */
	OPF_ACK = BIT32(11),
	OPF_CNP = BIT32(12),
	OPF_RETH = BIT32(13),
	OPF_ATOMICETH = BIT32(14),
	OPF_AETH = BIT32(15),
	OPF_ATOMICACKETH = BIT32(16),
	OPF_IMM = BIT32(17),
	OPF_IETH = BIT32(18),
	OPF_DETH = BIT32(19),
	OPF_TAKES_WQE = BIT32(20), /* a receive WQE is taken with this packet (data.opcodes) */
	OPF_RECV_CQE = BIT32(21),  /* a receive completion follows from this packet */
	OPF_PAYLOAD = BIT32(22),   /* may carry payload */
	OPF_XRCETH = BIT32(23),
	OPF_ATOMIC_WRITE = BIT32(24), /* only with the knob ops.placement */
	OPF_FLUSH = BIT32(25),        /* the same */
	OPF_FETH = BIT32(26),         /* ahead of the RETH */
};
/** Answered by a READ response without data. */
#define OPF_PLACEMENT (OPF_ATOMIC_WRITE | OPF_FLUSH)

/** In tables: these bits, where `flags` are those of a request. */
#define OPF_IF_REQUEST(flags, bits) (((flags)&OPF_REQUEST) != 0 ? (bits) : 0)

enum wire_transport {
	WIRE_RC = 0,
	WIRE_UC = 1,
	WIRE_RD = 2,
	WIRE_UD = 3,
	WIRE_CNP = 4,
	WIRE_XRC = 5
};

/** The three high bits of an opcode are the transport: RC's opcodes are those below. */
#define OP_RC_END 0x20

/** enum wire_transport of an opcode. */
static inline uint8_t
wire_transport_of(uint8_t opcode)
{
	return opcode / OP_RC_END;
}

/** An opcode of RC as the opcode of another service. */
static ALWAYS_INLINE uint8_t
wire_opcode_on(uint8_t transport, uint8_t rc_opcode)
{
	return (uint8_t)(transport * OP_RC_END | rc_opcode);
}

enum { /* services whose requests are answered, a bit for each enum wire_transport */
	WIRE_ACKED = 0
#define SERVICE(type, transport, acked, connected, clause) | (acked) << WIRE_##transport
#include "tables/services.def"
#undef SERVICE
};

enum { /* services whose queue pairs have one peer */
	WIRE_CONNECTED = 0
#define SERVICE(type, transport, acked, connected, clause) | (connected) << WIRE_##transport
#include "tables/services.def"
#undef SERVICE
};

#define WIRE_GRH_LEN 40 /* what a datagram's receive begins with: its IP header (UD-03) */

/** Has a queue pair of this service one peer, whose packets alone are its own? */
static ALWAYS_INLINE bool
wire_is_connected(uint8_t transport)
{
	return (WIRE_CONNECTED >> transport & 1) != 0;
}

/** Are requests of this service answered, in order, and sent again when they are lost? */
static ALWAYS_INLINE bool
wire_is_acked(uint8_t transport)
{
	return (WIRE_ACKED >> transport & 1) != 0;
}

enum { /* flags and fragment offset of an IPv4 header, a word */
	WIRE_IPV4_DF = 0x4000,
	WIRE_IPV4_MF = 0x2000,
	WIRE_IPV4_FLAGS = 0xe000,
	WIRE_IPV4_OFFSET = 0x1fff,
};

#define WIRE_PKEY_FULL 0x8000 /* of a P_Key: full membership; the other bits are the partition */

enum opcode {
#define OPCODE(code, name, wireshark, hdrs, flags, clause) OP_##name = code,
#include "tables/opcodes.def"
#undef OPCODE
};

struct wire_opcode {
	const char *name;      /* as in the rules: "RC_SEND_FIRST"; NULL: not listed */
	const char *wireshark; /* "RC Send First" */
	const char *clause;
	opflags_t flags;
	uint8_t hdr_len; /* BTH and extension headers, bytes */
};

extern const struct wire_opcode wire_opcodes[256];

/** Has the opcode any of these OPF_ bits? */
static inline bool
op_has(opflags_t f, uint32_t bits)
{
	return (f.v & bits) != 0;
}

/** Has the opcode all of these OPF_ bits? */
static inline bool
op_has_all(opflags_t f, uint32_t bits)
{
	return (f.v & bits) == bits;
}

/* ---- faults of a packet (tables/faults.def) ----------------------------------------------- */

/**
 * Bits 0..31 are the syndrome bits of the rules (RX-SYN-nn); 32 and up are reasons that have no
 * syndrome bit of their own. One packet may have several: wire_fault_winner() names the one it is
 * charged to.
 */
typedef uint64_t fault_mask_t;

enum wire_fault {
#define FAULT(bit, name, precedence, impact, counter, text, clause) FAULT_##name = bit,
#include "tables/faults.def"
#undef FAULT
	FAULT_MAX = 64
};

#define FAULT_BIT(f) (UINT64_C(1) << (f))
/** These are charged before any fault that a queue pair finds: no QP has to be looked up. */
#define FIRST_FAULTS (FAULT_BIT(FAULT_FCS) | FAULT_BIT(FAULT_ICRC) | FAULT_BIT(FAULT_DST_MAC))

struct wire_fault_info {
	const char *name;    /* "ICRC"; NULL: bit not used */
	const char *impact;  /* "drop" "nak" "rnr" "fatal" */
	const char *counter; /* "rx_syndrome_30" */
	const char *text;    /* for people */
	const char *clause;  /* rule id */
	uint8_t precedence;  /* smaller is charged first */
};

extern const struct wire_fault_info wire_faults[FAULT_MAX];

/**
 * The fault of a non-empty mask that is charged: smallest precedence, then lowest bit.
 * FAULT_MAX for a mask without any listed bit.
 */
enum wire_fault wire_fault_winner(fault_mask_t m);

/* ---- AETH, NAK codes, RNR timers, FATAL codes (tables/) ------------------------------------- */

enum {
	AETH_ACK = 0x00,
	AETH_RNR = 0x20,
	AETH_NAK = 0x60,
	AETH_KIND_MASK = 0xe0,
	AETH_CODE_MASK = 0x1f
};
#define AETH_CREDIT_NONE 0x1f /* ACK syndrome without credit information */

enum nak_code {
#define NAK_CODE(code, name, text, status, on, clause) NAK_##name = code,
#include "tables/nak_codes.def"
#undef NAK_CODE
};

/** What a NAK code (0..31) means on a service, enum wire_transport; NULL: it is reserved there. */
const char *wire_nak_text(uint8_t transport, uint8_t code);
/** Completion status of the request that got this NAK; NULL: it is retried, or reserved. */
const char *wire_nak_status(uint8_t transport, uint8_t code);

/** RNR NAK timer code (0..31) to microseconds: code 0 is 655,360. */
extern const uint32_t wire_rnr_times[32];
/** How long a requester waits after an RNR NAK with this timer code (its low 5 bits), in us. */
static inline uint32_t
wire_rnr_us(uint8_t code)
{
	return wire_rnr_times[code & 31];
}

enum fatal_code {
#define FATAL_CODE(code, name, text, clause) FATAL_##name = code,
#include "tables/fatal_codes.def"
#undef FATAL_CODE
};
/** Text of a FATAL code (0..31), or NULL for one that is never produced. */
const char *wire_fatal_text(uint8_t code);

/* ---- a parsed packet ----------------------------------------------------------------------- */

enum wire_class {
	WIRE_CLASS_ROCE,    /* out->faults says whether it is good */
	WIRE_CLASS_CONTROL, /* ARP, ICMP, ICMPv6, IGMP: for the control lcore */
	WIRE_CLASS_OTHER,   /* anything else */
};

enum {
	PKT_ACKREQ = BIT32(0),
	PKT_IPV6 = BIT32(1),
	PKT_VLAN = BIT32(2),
	PKT_FECN = BIT32(3),
	PKT_BECN = BIT32(4),
	PKT_CE = BIT32(5),     /* IP ECN field is 11 */
	PKT_MIGREQ = BIT32(6), /* as in the BTH's second byte */
	PKT_SE = BIT32(7),     /* the same */
};

/**
 * One packet, one cache line. Offsets count from `frame`. With a FAULT_IP_VERSION, FAULT_IP_LEN,
 * FAULT_UDP_LEN or FAULT_TRUNCATED the fields behind the broken header are 0 and `icrc_off` 0 says
 * that no ICRC can be located; FAULT_IP_HDR_LEN leaves only `icrc_off` 0. The extension headers
 * may be read while `payload_off` is not 0.
 */
struct wire_pkt {
	const uint8_t *frame;
	fault_mask_t faults;
	opflags_t op;
	uint16_t frame_len; /* frames beyond 65535 bytes are cut there */
	uint16_t payload_off;
	uint16_t payload_len; /* bytes, without pad */
	uint16_t icrc_off;    /* 0: cannot be located */
	uint16_t l3_off;
	uint16_t bth_off;
	psn_t psn;
	uint32_t dest_qpn;
	uint16_t pkey;
	uint8_t opcode;
	uint8_t flags; /* PKT_* */
	uint8_t pad;   /* PadCnt, 0..3 */
	uint8_t tver;
	uint8_t reserved[18];
};
_Static_assert(sizeof(struct wire_pkt) == 64, "one cache line");

/** What a port answers to; the parser checks destination addresses against it. */
struct wire_port {
	uint8_t mac[6];
	bool has_ipv4;
	bool has_ipv6;
	bool require_df; /* knob rx.ip_df */
	uint8_t ipv4[4];
	uint8_t ipv6[16];
};

/** Is this the port's address? @param ip 4 or 16 bytes. */
static inline bool
wire_port_has(const struct wire_port *us, bool ipv6, const uint8_t *ip)
{
	return ipv6 ? us->has_ipv6 && memcmp(us->ipv6, ip, sizeof(us->ipv6)) == 0
		    : us->has_ipv4 && memcmp(us->ipv4, ip, sizeof(us->ipv4)) == 0;
}

/**
 * Read a frame. Never reads outside [frame, frame + len); trailing bytes after the IP length are
 * ignored. All faults that can be found without a QP are set in out->faults (RX-SYN rules, except
 * 15, 16, 18..23, 27, 28, 30, 31).
 * @return the class; `out` is filled for WIRE_CLASS_ROCE only.
 * Cost: no branch mispredicted for a good IPv4 packet without VLAN tag.
 */
enum wire_class wire_parse(
	const struct wire_port *port, const uint8_t *frame, uint32_t len, struct wire_pkt *out);

/** The same for what wire_plain.h did not recognise; any frame is allowed. */
enum wire_class wire_parse_any(
	const struct wire_port *port, const uint8_t *frame, uint32_t len, struct wire_pkt *out);

/* ---- extension headers: only for opcodes that have them; bounds were proved by wire_parse ---- */

struct wire_reth {
	uint64_t va;
	uint32_t rkey;
	uint32_t dma_len;
};
struct wire_atomiceth {
	uint64_t va;
	uint32_t rkey;
	uint64_t swap_add;
	uint64_t compare;
};
struct wire_aeth {
	uint8_t syndrome;
	uint32_t msn;
};
struct wire_deth {
	uint32_t qkey;
	uint32_t src_qpn;
};

/** The first byte behind the BTH: the extension headers begin there. */
static inline const uint8_t *
wire_ext(const struct wire_pkt *p)
{
	return p->frame + p->bth_off + WIRE_BTH_LEN;
}

/** The same behind an XRCETH, where there is one. */
static inline const uint8_t *
wire_ext_inner(const struct wire_pkt *p)
{
	_Static_assert(OPF_XRCETH >> 21 == WIRE_XRCETH_LEN, "the flag is the length, shifted");
	return wire_ext(p) + (p->op.v >> 21 & WIRE_XRCETH_LEN);
}

/** Number of the SRQ that a request of XRC is for (OPF_XRCETH). */
static inline uint32_t
wire_xrceth(const struct wire_pkt *p)
{
	ASSERT(op_has(p->op, OPF_XRCETH));
	return be24_load(wire_ext(p) + 1);
}

/** The RETH at this place. */
static ALWAYS_INLINE struct wire_reth
wire_reth_at(const uint8_t *e)
{
	return (struct wire_reth){ be64_load(e), be32_load(e + 8), be32_load(e + 12) };
}

/** The RETH of a packet whose opcode has one, and no FETH (OPF_RETH, OPF_FETH). */
static inline struct wire_reth
wire_reth(const struct wire_pkt *p)
{
	ASSERT((p->op.v & (OPF_RETH | OPF_FETH)) == OPF_RETH);
	return wire_reth_at(wire_ext_inner(p));
}

/** The same with or without a FETH ahead of it. */
static inline struct wire_reth
wire_reth_any(const struct wire_pkt *p)
{
	ASSERT(op_has(p->op, OPF_RETH));
	return wire_reth_at(wire_ext_inner(p) + (op_has(p->op, OPF_FETH) ? WIRE_FETH_LEN : 0));
}

/** The FETH of a packet whose opcode has one (OPF_FETH): FLUSH_x of verbs.h. */
static inline uint32_t
wire_feth(const struct wire_pkt *p)
{
	ASSERT(op_has(p->op, OPF_FETH));
	return be32_load(wire_ext_inner(p));
}

/** The AtomicETH of a packet whose opcode has one (OPF_ATOMICETH). */
static inline struct wire_atomiceth
wire_atomiceth(const struct wire_pkt *p)
{
	const uint8_t *e = wire_ext_inner(p);

	ASSERT(op_has(p->op, OPF_ATOMICETH));
	return (struct wire_atomiceth){ be64_load(e), be32_load(e + 8), be64_load(e + 12),
		be64_load(e + 20) };
}

/** The AETH of a packet whose opcode has one (OPF_AETH). */
static inline struct wire_aeth
wire_aeth(const struct wire_pkt *p)
{
	const uint8_t *e = wire_ext(p);

	ASSERT(op_has(p->op, OPF_AETH));
	return (struct wire_aeth){ e[0], be24_load(e + 1) };
}

/** The DETH of a packet whose opcode has one (OPF_DETH). */
static inline struct wire_deth
wire_deth(const struct wire_pkt *p)
{
	const uint8_t *e = wire_ext(p);

	ASSERT(op_has(p->op, OPF_DETH));
	return (struct wire_deth){ be32_load(e), be24_load(e + 5) };
}

/** AtomicAckETH: the original value. */
static inline uint64_t
wire_atomicack(const struct wire_pkt *p)
{
	ASSERT(op_has(p->op, OPF_ATOMICACKETH));
	return be64_load(wire_ext(p) + WIRE_AETH_LEN);
}

/** An opcode as RC has it: the operation, without the service. Of RC, UC and XRC. */
static ALWAYS_INLINE uint8_t
wire_operation(uint8_t opcode)
{
	return opcode & (OP_RC_END - 1);
}

/** ImmDt or IETH, whichever the opcode has: both are the last four header bytes. */
static inline uint32_t
wire_imm_or_inv(const struct wire_pkt *p)
{
	ASSERT(op_has(p->op, OPF_IMM | OPF_IETH));
	return be32_load(p->frame + p->payload_off - 4);
}

/** First payload byte. */
static inline const uint8_t *
wire_payload(const struct wire_pkt *p)
{
	return p->frame + p->payload_off;
}

/** 4 or 6. */
static inline uint8_t
wire_ip_version(const struct wire_pkt *p)
{
	return (p->flags & PKT_IPV6) != 0 ? 6 : 4;
}

/** First byte of the source IP address: 4 bytes, or 16 with PKT_IPV6. */
static inline const uint8_t *
wire_src_ip(const struct wire_pkt *p)
{
	return p->frame + p->l3_off + ((p->flags & PKT_IPV6) != 0 ? 8 : 12);
}

/** One line in Wireshark's terms, e.g. "RC Send Only PSN=256 QP=0x000011 ..." @return length. */
int wire_print(const struct wire_pkt *p, char *buf, size_t room);

#endif
