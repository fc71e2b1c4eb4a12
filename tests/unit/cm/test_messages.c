/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * CM-10: the short messages of this side, byte by byte, as data.cm_mra_fields and the other tables
 * have them: what is in no row there is 0.
 */
#include "bed.h"
#include "be.h"

enum { BODY = 24, BODY_LEN = 232, LIFE = 13 };

/** So many bytes at this place behind the common header. */
struct part {
	uint32_t at, bytes;
	uint64_t value;
};

/** Bits of a table are counted from the highest. */
#define BITS(value, n) ((uint64_t)(value) << (8 - (n)))
/* Reason 4 alone: the peer finds its part by our GUID and id. */
#define BY_GUID                 \
	{ 9, 1, BITS(8, 7) },   \
	{                       \
		12, 8, OWN_GUID \
	}
#define ENOUGH 7

static const uint8_t *
expect_body(struct bed *b, enum cm_message m, uint64_t tid, const struct part parts[ENOUGH])
{
	const uint8_t *mad = bed_sent(b, m);
	uint8_t want[BODY_LEN] = { 0 };

	assert_int_equal(MAD_LEN, BODY + BODY_LEN);
	assert_int_equal(be64_load(mad + 8), tid);
	for (uint32_t i = 0; i < ENOUGH; i++)
		for (uint32_t k = 0; k < parts[i].bytes; k++)
			want[parts[i].at + k] =
				(uint8_t)(parts[i].value >> 8 * (parts[i].bytes - 1 - k));
	assert_memory_equal(mad + BODY, want, BODY_LEN);
	return mad;
}

#define EXPECT(b, message, tid, ...) \
	expect_body(b, message, tid, (const struct part[ENOUGH]){ __VA_ARGS__ })

static void
ask(struct bed *b)
{
	const struct cm_ask a = { .path = b->path,
		.terms = { .qpn = OWN_QPN, .psn = OWN_PSN, .mtu = 4 },
		.service_id = SERVICE,
		.packet_life = LIFE,
		.ip = true,
		.time = TIME_NS_PER_S };

	assert_int_equal(cm_connect(&b->cm, &a, b->now, &b->v), 0);
	b->c = b->v.conn;
}

static void
rep(struct bed *b)
{
	bed_message(b, CM_REP);
	mad_set(b->mad, REP_local_qpn, PEER_QPN);
	mad_set(b->mad, REP_starting_psn, PEER_PSN);
	mad_set(b->mad, REP_target_ack_delay, 15);
	bed_receive(b);
}

/*
 * CM-10, CM-26: the MRA says how long the program may take, and so long a REJ for its silence does
 * not come. Whoever has read our id in the MRA finds it in the REJ.
 */
static void
CM_10_mra(void **state)
{
	struct bed b;
	uint32_t n;

	(void)state;
	bed_init(&b);
	bed_asked(&b);
	bed_message(&b, CM_REQ);
	bed_receive(&b);
	n = bed_sent(&b, CM_MRA)[BODY + 9] >> 3;
	EXPECT(&b, CM_MRA, PEER_TID, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID },
		{ 9, 1, BITS(n, 5) });
	assert_int_not_equal(b.c->local_id, 0);
	assert_true(n > RESPONSE);
	assert_false(bed_due(&b, (UINT64_C(4096) << n) - 10 * TIME_NS_PER_MS));
	assert_true(bed_due(&b, 20 * TIME_NS_PER_MS));
	EXPECT(&b, CM_REJ, PEER_TID, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID }, BY_GUID,
		{ 10, 2, 4 });
	bed_over(&b);
	bed_fini(&b);
}

/* CM-10, CM-33: the DREQ of either side names the peer's QPN, and is repeated as it was. */
static void
CM_10_dreq(void **state)
{
	(void)state;
	for (uint32_t active = 0; active < 2; active++) {
		uint8_t first[MAD_LEN];
		struct bed b;
		uint64_t tid;

		bed_init(&b);
		if (active) {
			ask(&b);
			rep(&b);
			EXPECT(&b, CM_RTU, b.c->tid, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID });
		} else {
			bed_passive_up(&b);
		}
		assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), 0);
		memcpy(first, bed_sent(&b, CM_DREQ), sizeof(first));
		tid = be64_load(first + 8);
		assert_true(tid != 0 && tid != b.c->tid);
		EXPECT(&b, CM_DREQ, tid, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID },
			{ 8, 3, PEER_QPN });
		assert_true(bed_due(&b, 10 * TIME_NS_PER_S));
		assert_memory_equal(bed_sent(&b, CM_DREQ), first, sizeof(first));
		/* The peer's own is answered with its TID. */
		bed_message(&b, CM_DREQ);
		mad_set(b.mad, MAD_tid, 0x999);
		bed_receive(&b);
		EXPECT(&b, CM_DREP, 0x999, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID });
		bed_fini(&b);
	}
}

/* CM-10: a REJ of the listening side: which message it refuses, and why. */
static void
CM_10_rej_of_a_listener(void **state)
{
	static const uint8_t no[] = "no";
	struct bed b;

	(void)state;
	bed_init(&b);
	/* No id was given so far. */
	bed_asked(&b);
	assert_int_equal(cm_reject(&b.cm, b.c, CM_REJ_CONSUMER_DEFINED, no, 2, b.now, &b.v), 0);
	EXPECT(&b, CM_REJ, PEER_TID, { 4, 4, PEER_ID }, { 10, 2, 28 }, { 84, 2, 0x6e6f });
	bed_over(&b);
	/* The MRA has told the id; it is the REQ that is refused all the same. */
	bed_asked(&b);
	bed_message(&b, CM_REQ);
	bed_receive(&b);
	assert_int_equal(cm_reject(&b.cm, b.c, CM_REJ_CONSUMER_DEFINED, no, 2, b.now, &b.v), 0);
	EXPECT(&b, CM_REJ, PEER_TID, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID }, { 10, 2, 28 },
		{ 84, 2, 0x6e6f });
	bed_over(&b);
	/* No RTU: no message is refused. */
	bed_accept(&b);
	for (uint32_t i = 0; i < REQ_RETRIES; i++) {
		assert_true(bed_due(&b, 5 * TIME_NS_PER_S));
		bed_sent(&b, CM_REP);
	}
	assert_true(bed_due(&b, 5 * TIME_NS_PER_S));
	EXPECT(&b, CM_REJ, PEER_TID, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID },
		{ 8, 1, BITS(2, 2) }, BY_GUID, { 10, 2, 4 });
	bed_over(&b);
	/* A REQ of which nothing is kept: a service that nobody listens to. */
	bed_message(&b, CM_REQ);
	mad_set(b.mad, REQ_service_id, SERVICE + 1);
	bed_receive(&b);
	EXPECT(&b, CM_REJ, PEER_TID, { 4, 4, PEER_ID }, { 10, 2, 8 });
	bed_fini(&b);
}

/* CM-10: a REJ of the side that asks. */
static void
CM_10_rej_of_who_asks(void **state)
{
	enum { STRANGE = 0x12345678 };
	static const uint8_t no[] = "no";
	struct bed b;

	(void)state;
	/* CM-35: a REP that comes after the end */
	bed_init(&b);
	ask(&b);
	rep(&b);
	bed_message(&b, CM_DREQ);
	bed_receive(&b);
	bed_state(&b, CM_TIMEWAIT);
	rep(&b);
	EXPECT(&b, CM_REJ, b.c->tid, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID },
		{ 8, 1, BITS(1, 2) }, { 10, 2, 10 });
	/* CM-23: a REP for nobody: the ids are its own, the other way round */
	bed_message(&b, CM_REP);
	mad_set(b.mad, REP_remote_comm_id, STRANGE);
	mad_set(b.mad, MAD_tid, 0x998);
	bed_receive(&b);
	EXPECT(&b, CM_REJ, 0x998, { 0, 4, STRANGE }, { 4, 4, PEER_ID }, { 8, 1, BITS(1, 2) },
		{ 10, 2, 6 });
	bed_fini(&b);
	/* CM-27: no answer at all. The peer's id is not known; our GUID tells who we are. */
	bed_init(&b);
	ask(&b);
	while (b.v.event == CM_EVENT_NONE)
		assert_true(bed_due(&b, 5 * TIME_NS_PER_S));
	bed_event(&b, CM_EVENT_UNREACHABLE, b.v.status);
	EXPECT(&b, CM_REJ, b.c->tid, { 0, 4, b.c->local_id }, { 8, 1, BITS(2, 2) }, BY_GUID,
		{ 10, 2, 4 });
	bed_over(&b);
	bed_fini(&b);
	/* CM-33: taken back before there is an answer. */
	bed_init(&b);
	ask(&b);
	assert_int_equal(cm_disconnect(&b.cm, b.c, b.now, &b.v), 0);
	EXPECT(&b, CM_REJ, b.c->tid, { 0, 4, b.c->local_id }, { 8, 1, BITS(2, 2) }, BY_GUID,
		{ 10, 2, 4 });
	bed_over(&b);
	bed_fini(&b);
	/* CM-29: the REP is refused. */
	bed_init(&b);
	ask(&b);
	rep(&b);
	bed_state(&b, CM_ESTABLISHED);
	assert_int_equal(cm_reject(&b.cm, b.c, CM_REJ_CONSUMER_DEFINED, no, 2, b.now, &b.v), 0);
	EXPECT(&b, CM_REJ, b.c->tid, { 0, 4, b.c->local_id }, { 4, 4, PEER_ID },
		{ 8, 1, BITS(1, 2) }, { 10, 2, 28 }, { 84, 2, 0x6e6f });
	bed_over(&b);
	bed_fini(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(CM_10_mra),
		cmocka_unit_test(CM_10_dreq),
		cmocka_unit_test(CM_10_rej_of_a_listener),
		cmocka_unit_test(CM_10_rej_of_who_asks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
