/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef BED_H
#define BED_H
/**
 * @file bed.h  Test bed: one worker on an in-memory port, one QP as in the rules' fixture F-RESP.
 *
 * DUT 192.0.2.1 QPN 0x11, tester 192.0.2.2 QPN 0x22, path MTU 1024, ePSN 0x100, four receive WQEs
 * of 4096 bytes, a 64 KiB region with all rights. The test turns the loop and owns the clock:
 * `now`, which worker_conf.clock reads, and which may move on within a turn.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "pipeline.h"
#include "qp.h"
#include "qp_client.h"
#include "qp_control.h"
#include "qp_parts.h"
#include "qp_rule.h"
#include "qp_snapshot.h"

#define E        0x100u
#define S        0x200u /* first PSN that it sends */
#define QPN      0x11u
#define PEER_QPN 0x22u
#define MR_VA    0x10000u
#define MR_LEN   65536u
#define MR_KEY   0x1001u
#define RQ_VA    0x400000u /* receive buffers: own region, local access only */
#define RQ_KEY   0x2002u
#define PD       7u
#define PMTU     1024u
#define FRAMES   64

struct bed {
	struct worker *w;
	struct worker_conf conf;
	struct qp_table *qps;
	struct mem_table *mem;
	struct qp_ah_table *ahs;
	struct mbox mbox;
	struct qp *qp;
	struct qp_cq cq;
	struct ring rq_producer;
	struct mem_region *mr;
	struct mem_region *rq_mr;
	uint8_t *memory; /* of the remote region */
	uint8_t *rq_memory;
	ns_t now;
	uint64_t wr_id;
	struct rte_mbuf *out[FRAMES]; /* what the last bed_turn() sent */
	struct wire_pkt pkt[FRAMES];
	uint32_t out_n;
	uint32_t out_at; /* next that an expectation looks at */
	uint64_t cookie;
	struct mbox_done done; /* the last answer */
};

/** Once a program: EAL, port, pool. 0, or fails the group. */
int bed_group_setup(void **state);
/** Each test: *state is a struct bed with the QP in RTS; everything is given back at the end. */
int bed_setup(void **state);
int bed_teardown(void **state);

/** Another QP like the first; posts no WQEs. Attached, in RTS. */
struct qp *bed_qp(struct bed *b, uint32_t qpn, uint32_t peer_qpn);
/** The same, with the parts of qp_parts.h when it needs them. */
struct qp *bed_qp_of(struct bed *b, uint32_t qpn, uint32_t peer_qpn, bool compact);
/** The same, of the caller's parameters. */
struct qp *bed_qp_with(
	struct bed *b, uint32_t qpn, uint32_t peer_qpn, const struct qp_alloc_params *params);
/** The same, with DCQCN at 10 Gb/s. @param first rate_to_set_on_first_cnp: Mb/s; 0: not set. */
struct qp *bed_qp_with_rate(struct bed *b, uint32_t qpn, uint32_t peer_qpn, uint32_t first);
void bed_qp_gone(struct bed *b, struct qp *qp);
/** Through the mailbox, with its answer. @return rc of DONE. */
int bed_tell(struct bed *b, struct mbox_msg *msg);
int bed_modify(struct bed *b, struct qp *qp, const struct qp_attr *attr, uint32_t mask);
int bed_state(struct bed *b, struct qp *qp, enum qp_state s);
/** The QP's path leads to its own port (LB), and it is connected to the QP of this number. */
void bed_make_local(struct bed *b, struct qp *qp, uint32_t to);
/** The bed's QP is back in RTR, and has heard of nobody. */
void bed_in_rtr(struct bed *b);
void bed_post(struct bed *b, uint32_t n);
void bed_worker_again(struct bed *b);

/** A request of the tester: fills addresses, QPN, P_Key; f->psn and the rest are the caller's. */
struct rte_mbuf *bed_frame(const struct wire_fields *f);
/** The same from a path of the caller's choice. */
struct rte_mbuf *bed_frame_on(const struct wire_path *path, const struct wire_fields *f);
struct wire_path bed_path(void);
/** Compute the ICRC again after the test changed the frame. */
void bed_reseal(struct rte_mbuf *m);
void bed_put(struct bed *b, struct rte_mbuf *m);
void bed_send(struct bed *b, const struct wire_fields *f);
/** One turn of the loop, and collect what was sent; checks that every packet is accounted for. */
void bed_turn(struct bed *b);
/** Turns until nothing is sent any more (at most 100). */
void bed_turns(struct bed *b);
void bed_collect(struct bed *b);
void bed_forget_output(struct bed *b);

/** The next frame sent is this ACKNOWLEDGE, with a good ICRC. */
#define expect_ack(b, syndrome, p, msn) bed_expect_ack(b, syndrome, p, msn, __LINE__)
void bed_expect_ack(struct bed *b, uint8_t syndrome, uint32_t p, uint32_t msn, int line);
/** The next frame sent is a packet of this opcode. */
#define expect_packet(b, opcode, p, len) bed_expect_packet(b, opcode, p, len, __LINE__)
const struct wire_pkt *bed_expect_packet(
	struct bed *b, uint8_t opcode, uint32_t p, uint32_t len, int line);
#define expect_silence(b) bed_expect_silence(b, __LINE__)
void bed_expect_silence(struct bed *b, int line);

/** Next completion; fails if there is none. */
struct ring_cqe bed_cqe(struct bed *b);
void bed_no_cqe(struct bed *b);
/** Next message up of this type; others before it fail the test. */
struct mbox_msg bed_up(struct bed *b, enum mbox_type type);
void bed_no_up(struct bed *b);

uint64_t bed_stat(const struct bed *b, enum stats_counter s);
uint16_t bed_port(void);
struct rte_ring *bed_far_end(void);
struct rte_ring *bed_near_end(void);

/* ---- requests, short ------------------------------------------------------------------------- */

static inline struct wire_fields
send_only(uint32_t p, uint16_t len)
{
	static uint8_t bytes[4096];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i * 7 + 3);
	return (struct wire_fields){ .opcode = OP_RC_SEND_ONLY,
		.flags = PKT_ACKREQ,
		.psn = psn(p),
		.payload = bytes,
		.payload_len = len };
}

static inline struct wire_fields
write_only(uint32_t p, uint64_t va, uint16_t len)
{
	struct wire_fields f = send_only(p, len);

	f.opcode = OP_RC_WRITE_ONLY;
	f.reth = (struct wire_reth){ va, MR_KEY, len };
	return f;
}

static inline struct wire_fields
read_request(uint32_t p, uint64_t va, uint32_t len)
{
	return (struct wire_fields){ .opcode = OP_RC_READ_REQUEST,
		.flags = PKT_ACKREQ,
		.psn = psn(p),
		.reth = { va, MR_KEY, len } };
}

static inline struct wire_fields
fetch_add(uint32_t p, uint64_t va, uint64_t add)
{
	return (struct wire_fields){ .opcode = OP_RC_FETCH_ADD,
		.flags = PKT_ACKREQ,
		.psn = psn(p),
		.atomiceth = { .va = va, .rkey = MR_KEY, .swap_add = add } };
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, bed_setup, bed_teardown)

#endif
