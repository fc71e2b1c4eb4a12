/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef LOAN_BED_H
#define LOAN_BED_H
/* A bed with both ends of a connection that no wire is between: for payloads on loan (local.h). */
#include "bed.h"
#include "worker.h"

enum {
	SENDER = 0x12,
	FROM = 0,   /* of the region: what is sent */
	TO = 32768, /* ... where it goes */
	LEN = 1021, /* with a pad */
	FILLED = 8192
};

struct loan_bed {
	struct qp *sender; /* its peer is the bed's QP, and its peer it is */
	struct ring producer;
	uint32_t seeds;
};
extern struct loan_bed loan;

int loan_setup(void **state);
int loan_teardown(void **state);
#define LOAN_TEST(f) cmocka_unit_test_setup_teardown(f, loan_setup, loan_teardown)

/** Other bytes at FROM, so many as FILLED says. */
void loan_refill(struct bed *b);
/** Post it to this QP; a turn will find it. */
struct ring_send_wqe *loan_post_to(struct bed *b, struct qp *qp, struct ring *r, uint8_t opcode,
	uint32_t from, uint32_t to, uint32_t len);
/** The same to the sender. */
struct ring_send_wqe *loan_post(
	struct bed *b, uint8_t opcode, uint32_t from, uint32_t to, uint32_t len);
/** So many turns. */
void loan_turns(struct bed *b, uint32_t n);
/** What was made and not taken yet. */
const struct tx_queue *loan_queue(const struct bed *b);
void loan_success(struct bed *b, uint8_t opcode);

#endif
