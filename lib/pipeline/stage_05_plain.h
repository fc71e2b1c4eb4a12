/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef STAGE_05_PLAIN_H
#define STAGE_05_PLAIN_H
/**
 * @file stage_05_plain.h  A WRITE ONLY, SEND ONLY or ACK and its QP's first line, compared at once.
 *
 * Owner:   stage_05_steer.c, stage_05_half.h; the worker's lcore.
 * Memory:  none.
 * Depends: stage_05_faults.h, responder_fast.h, wire_wide.h; x86 with AVX-512, asked for with
 *          wire_has_wide().
 *
 * What is_fast() tests, and what stage 6 tests before it looks for the place of a payload: each
 * field of the packet goes to where the QP has what it is compared with. Fields of the packet alone
 * go to words whose value in the QP is not looked at. The state is no part of it: it is a range.
 * Of an ACK it is only what is_fast() tests.
 */
#include "responder_fast.h"
#include "stage_05_faults.h"
#include "wire_wide.h"

#if WIRE_WIDE

/** Words of four bytes of the QP's line, by number. */
enum {
	PLAIN_QPN = 0,
	PLAIN_OWNER = 1, /* state, type, port, worker */
	PLAIN_FLAGS = 2,
	PLAIN_ALONE = 3, /* of the packet: opcode, flags, P_Key's higher byte */
	PLAIN_PKEY = 4,  /* the lower half */
	PLAIN_PEER = 6,  /* IPv4 address */
	PLAIN_PSN = 10,  /* subtracted */
	PLAIN_LEN = 12,  /* lower half: length and path MTU, subtracted; higher half: knobs */
	PLAIN_OPEN = 13, /* open, latched, access */
};

_Static_assert(offsetof(struct qp, flags) == 4 * PLAIN_FLAGS &&
		       offsetof(struct qp, pkey) == 4 * PLAIN_PKEY &&
		       offsetof(struct qp, peer_ipv4) == 4 * PLAIN_PEER &&
		       offsetof(struct qp, resp.epsn) == 4 * PLAIN_PSN &&
		       offsetof(struct qp, resp.pmtu) == 4 * PLAIN_LEN &&
		       offsetof(struct qp, resp.open) == 4 * PLAIN_OPEN,
	"the words of a QP's first line");
_Static_assert(
	offsetof(struct wire_pkt, payload_len) == 24 && offsetof(struct wire_pkt, psn) == 32 &&
		offsetof(struct wire_pkt, dest_qpn) == 36 &&
		offsetof(struct wire_pkt, pkey) == 40 && offsetof(struct wire_pkt, opcode) == 42 &&
		offsetof(struct wire_pkt, flags) == 43 && WIRE_PKEY_FULL == 0x8000,
	"the bytes that plain_wrong() moves");

/** Rows of the tables. */
enum plain_kind { PLAIN_WRITE, PLAIN_SEND, PLAIN_ACK, PLAIN_KINDS };

/** @param opcode one of plain_has(), or OP_RC_ACKNOWLEDGE. */
static ALWAYS_INLINE enum plain_kind
plain_kind_of(uint8_t opcode)
{
	return opcode == OP_RC_WRITE_ONLY  ? PLAIN_WRITE
	       : opcode == OP_RC_SEND_ONLY ? PLAIN_SEND
					   : PLAIN_ACK;
}

/** Are there plain packets of this opcode? */
static ALWAYS_INLINE bool
plain_has(uint8_t opcode)
{
	return opcode == OP_RC_WRITE_ONLY || opcode == OP_RC_SEND_ONLY;
}

/** What is compared with packets of one opcode that came to one port. */
struct plain {
	__m512i from;  /* bytes of the packet */
	__m512i want;  /* what does not come from there */
	__m512i count; /* bits that count */
};

/* clang-format off */
#define PLAIN_FLAG_BITS                                                                 \
	(QPF_IPV6 | QPF_VLAN | QPF_CHECK_SRC_MAC | QPF_REQUIRE_DF | QPF_MIGRATION |     \
		QPF_RESOLVED | QPF_SERVICE)
#define PLAIN_REQUEST_BITS (QPF_ANSWERING | QPF_UNHEARD)
#define PLAIN_KNOB_BITS (RESP_KNOB_CREDITS | RESP_KNOB_RQ_LIMIT | RESP_KNOB_RESYNC)

/** Words of `count` and `want`. */
static const uint32_t plain_count[PLAIN_KINDS][16] CACHE_ALIGNED = {
#define STEER(flags)                                                                    \
		[PLAIN_QPN] = UINT32_MAX, [PLAIN_OWNER] = 0xffffff00,                   \
		[PLAIN_FLAGS] = PLAIN_FLAG_BITS | (flags),                              \
		[PLAIN_ALONE] = 0x800000 | (PKT_IPV6 | PKT_VLAN | PKT_CE) << 8 | 0xff,  \
		[PLAIN_PKEY] = 0xffff, [PLAIN_PEER] = UINT32_MAX
#define WORDS(flags, access)                                                            \
	{ STEER(PLAIN_REQUEST_BITS | (flags)),                                          \
		[PLAIN_PSN] = PSN_MASK & ~(uint32_t)(PIPELINE_BURST - 1),               \
		[PLAIN_LEN] = PLAIN_KNOB_BITS << 16 | 0xffff,                           \
		[PLAIN_OPEN] = (uint32_t)(access) << 16 | 0xffff }
	[PLAIN_WRITE] = WORDS(0, ACCESS_REMOTE_WRITE),
	[PLAIN_SEND] = WORDS(QPF_SRQ | QPF_RECV_FEED, 0),
	[PLAIN_ACK] = { STEER(0) },
#undef WORDS
#undef STEER
};
static const uint32_t plain_want[PLAIN_KINDS][16] CACHE_ALIGNED = {
#define WORDS(opcode, access)                                                           \
	{ [PLAIN_FLAGS] = QPF_RESOLVED, [PLAIN_ALONE] = 0x800000 | (opcode),            \
		[PLAIN_OPEN] = (uint32_t)(access) << 16 }
	[PLAIN_WRITE] = WORDS(OP_RC_WRITE_ONLY, ACCESS_REMOTE_WRITE),
	[PLAIN_SEND] = WORDS(OP_RC_SEND_ONLY, 0),
	[PLAIN_ACK] = WORDS(OP_RC_ACKNOWLEDGE, 0),
#undef WORDS
};
/** Bytes of the packet that go to a word, the lowest one last; 0: none. */
static const uint32_t plain_from[16] CACHE_ALIGNED = {
	[PLAIN_QPN] = 0x27262524, [PLAIN_ALONE] = 0x00292b2a, [PLAIN_PKEY] = 0x2928,
	[PLAIN_PSN] = 0x23222120, [PLAIN_LEN] = 0x1918,
};
/* clang-format on */

/** @param owner steer_owner(). @param opcode as of plain_kind_of(). */
TARGET_WIRE_WIDE static ALWAYS_INLINE struct plain
plain_of(uint64_t owner, uint8_t opcode)
{
	const enum plain_kind kind = plain_kind_of(opcode);

	return (struct plain){
		.from = _mm512_load_si512(plain_from),
		.want = _mm512_mask_set1_epi32(
			_mm512_load_si512(plain_want[kind]), 1 << PLAIN_OWNER, (int)(owner >> 32)),
		.count = _mm512_load_si512(plain_count[kind]),
	};
}

/** The words in which the QP's value counts. */
#define PLAIN_SHARED 0x3457

/** The words that is_fast() looks at. */
#define PLAIN_STEER                                                                \
	(1 << PLAIN_QPN | 1 << PLAIN_OWNER | 1 << PLAIN_FLAGS | 1 << PLAIN_ALONE | \
		1 << PLAIN_PKEY | 1 << PLAIN_PEER)

/**
 * Compare all but the QP's state. None of PLAIN_STEER: it is a good packet of that opcode, from its
 * peer, for an RC QP of this worker that owes no explanation. No word at all: the QP is between two
 * messages, too, and expects this PSN or one of the next few.
 * @param p has no faults. @return a bit for each word that is wrong.
 */
TARGET_WIRE_WIDE static ALWAYS_INLINE uint32_t
plain_wrong(const struct plain *c, const struct qp *qp, const struct wire_pkt *p)
{
	/* Bytes that come from the packet: those that plain_from names. */
	const __mmask64 moved = UINT64_C(0x00030f000003700f);
	const __mmask16 shared = PLAIN_SHARED;
	__m512i a, b, d;

	a = _mm512_maskz_permutexvar_epi8(moved, c->from, _mm512_load_si512((const void *)p));
	a = _mm512_mask_set1_epi32(
		a, 1 << PLAIN_PEER, (int)wire_load32(p->frame + WIRE_PLAIN_IP + 12));
	b = _mm512_maskz_load_epi32(shared, (const void *)qp);
	d = _mm512_ternarylogic_epi64(a, b, c->want, 0x96); /* exclusive or of three */
	d = _mm512_mask_sub_epi32(d, 1 << PLAIN_PSN, a, b);
	d = _mm512_mask_subs_epu16(d, 1 << 2 * PLAIN_LEN, a, b);
	return _mm512_test_epi32_mask(d, c->count);
}
#endif

#endif
