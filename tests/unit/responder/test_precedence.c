/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RX-PREC-03: of two things wrong with one packet, the earlier check decides. For four kinds of
 * request every pair of faults that can meet is put into one packet.
 */
#include "pkt.h"

enum step {
	PSN,
	SEQUENCE,
	ENABLED,
	LENGTH,
	RESOURCES,
	DMA_LEN,
	WQE,
	KEY,
	FITS,
	LOCAL,
	INVALIDATE,
	STEPS
};

/** The faults, each independent of the others. */
static void
inject(struct bed *s, struct spec *p, enum step step)
{
	switch (step) {
	case PSN:
		p->psn++;
		break;
	case SEQUENCE:
		s->r.open = OPEN_WRITE;
		break;
	case ENABLED:
		s->r.access = 0;
		break;
	case LENGTH:
		p->len = 1028;
		break;
	case RESOURCES:
		s->r.unfinished = 4;
		break;
	case DMA_LEN:
		p->dma_len = 0x80000001;
		p->va += 4;
		break;
	case WQE:
		s->wqes = 0;
		s->f.short_of_resources = true;
		break;
	case KEY:
		p->rkey = BAD_KEY;
		break;
	case FITS:
		s->wqe_bytes = 10;
		break;
	case LOCAL:
		s->f.exec_fault = true;
		break;
	case INVALIDATE:
		p->imm = BAD_KEY;
		break;
	case STEPS:
		break;
	}
}

/** For each request the rule that each fault breaks, NULL where it cannot have the fault. */
static const struct {
	struct spec p;
	const char *rule[STEPS];
	uint8_t syndrome[STEPS];
} kinds[] = {
	{ { .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 600, .imm = INV_KEY },
		{ [PSN] = "RESP-SEQ-01",
			[SEQUENCE] = "RESP-NAK-INV-04",
			[LENGTH] = "RESP-NAK-INV-08",
			[WQE] = "RESP-RNR-01",
			[FITS] = "RESP-NAK-INV-06",
			[LOCAL] = "RESP-NAK-ROE-02",
			[INVALIDATE] = "RESP-CLS-J-01" },
		{ 0x60, 0x61, 0, 0x61, 0, 0, 0x2c, 0, 0x61, 0x63, 0 } },
	{ { .op = OP_RC_WRITE_ONLY_IMM,
		  .psn = E,
		  .len = 600,
		  .va = MR_VA,
		  .rkey = MR_RKEY,
		  .dma_len = 600 },
		{ [PSN] = "RESP-SEQ-01",
			[SEQUENCE] = "RESP-NAK-INV-04",
			[ENABLED] = "RESP-NAK-INV-02",
			[LENGTH] = "RESP-NAK-INV-08",
			[DMA_LEN] = "RESP-NAK-INV-12",
			[WQE] = "RESP-RNR-02",
			[KEY] = "RESP-NAK-RAE-08",
			[LOCAL] = "RESP-NAK-ROE-02" },
		{ 0x60, 0x61, 0x61, 0x61, 0, 0x61, 0x2c, 0x62, 0, 0x63, 0 } },
	{ { READ(E, 600) },
		{ [PSN] = "RESP-SEQ-01",
			[SEQUENCE] = "RESP-NAK-INV-04",
			[ENABLED] = "RESP-NAK-INV-02",
			[LENGTH] = "RESP-NAK-INV-08",
			[RESOURCES] = "RESP-NAK-INV-10",
			[DMA_LEN] = "RESP-NAK-INV-11",
			[WQE] = "RESP-RNR-11",
			[KEY] = "RESP-NAK-RAE-01",
			[LOCAL] = "RESP-NAK-ROE-02" },
		{ 0x60, 0x61, 0x61, 0x61, 0x61, 0x61, 0x2c, 0x62, 0, 0x63, 0 } },
	{ { FETCH_ADD(E) },
		{ [PSN] = "RESP-SEQ-01",
			[SEQUENCE] = "RESP-NAK-INV-04",
			[ENABLED] = "RESP-NAK-INV-02",
			[LENGTH] = "RESP-NAK-INV-08",
			[RESOURCES] = "RESP-NAK-INV-10",
			[DMA_LEN] = "RESP-NAK-INV-09",
			[WQE] = "RESP-RNR-11",
			[KEY] = "RESP-NAK-RAE-01",
			[LOCAL] = "RESP-NAK-ROE-02" },
		{ 0x60, 0x61, 0x61, 0x61, 0x61, 0x61, 0x2c, 0x62, 0, 0x63, 0 } },
};

static void
expect_step(const struct bed *s, size_t kind, enum step a, enum step b, enum step winner)
{
	const char *want = kinds[kind].rule[winner];

	if (strcmp(responder_rule_id(s->v.rule), want) != 0)
		fail_msg("request %zu, faults %d and %d: %s instead of %s", kind, (int)a, (int)b,
			responder_rule_id(s->v.rule), want);
	if ((s->v.act & ACT_NAK) != 0)
		assert_int_equal(s->v.syndrome, kinds[kind].syndrome[winner]);
	assert_int_equal((s->v.act & ACT_NAK) != 0, kinds[kind].syndrome[winner] != 0);
	assert_int_equal(s->r.epsn.v, E);
}

static void
RX_PREC_03_pairs(void **state)
{
	uint32_t pairs = 0;

	(void)state;
	for (size_t k = 0; k < ARRAY_LEN(kinds); k++)
		for (enum step a = PSN; a < STEPS; a++)
			for (enum step b = a; b < STEPS; b++) { /* a == b: the fault alone */
				struct spec p = kinds[k].p;
				struct bed s;

				if (kinds[k].rule[a] == NULL || kinds[k].rule[b] == NULL)
					continue;
				bed_init(&s);
				inject(&s, &p, a);
				if (b != a)
					inject(&s, &p, b);
				feed_spec(&s, p);
				expect_step(&s, k, a, b, a);
				pairs++;
			}
	assert_int_equal(pairs, 28 + 36 + 45 + 45);
}

/** The same with the knob of profile ernic: no receive WQE comes right after the PSN. */
static void
RX_PREC_05_rnr_first(void **state)
{
	(void)state;
	for (size_t k = 0; k < 2; k++) /* the two that take a WQE */
		for (enum step a = PSN; a < STEPS; a++)
			for (enum step b = (enum step)(a + 1); b < STEPS; b++) {
				struct spec p = kinds[k].p;
				struct bed s;

				if (kinds[k].rule[a] == NULL || kinds[k].rule[b] == NULL)
					continue;
				bed_init(&s);
				s.r.knobs = RESP_KNOB_RNR_FIRST;
				inject(&s, &p, a);
				inject(&s, &p, b);
				feed_spec(&s, p);
				expect_step(&s, k, a, b, a != PSN && b == WQE ? b : a);
			}
}

static void
RX_PREC_05_RX_PREC_06_stray_middle(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s); /* iba */
	s.wqes = 0;
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E, .len = PMTU);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);

	bed_init(&s); /* ernic: bit 20 beats bit 16 */
	s.r.knobs = RESP_KNOB_RNR_FIRST;
	s.wqes = 0;
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E, .len = PMTU);
	expect_nak(&s, RNR_12, E, 0);
	assert_int_equal(s.v.fault, 20);

	s.wqes = 1; /* with a WQE the sequence is judged again */
	FEED(&s, .op = OP_RC_SEND_MIDDLE, .psn = E, .len = PMTU);
	expect_fatal_event(&s, NAK_INV, EV_QP_REQ_ERR);

	bed_init(&s); /* a message that has its WQE does not need another */
	s.r.knobs = RESP_KNOB_RNR_FIRST;
	s.wqes = 1;
	FEED(&s, SEND_FIRST(E));
	assert_int_equal(s.wqes, 0);
	FEED(&s, .op = OP_RC_SEND_LAST, .psn = E + 1, .len = 4);
	assert_int_equal(s.v.act, ACT_PLACE_SEND | ACT_COMPLETE);
}

static void
RX_PREC_08_rnr_before_rkey(void **state)
{
	const struct spec bad = { WRITE_ONLY_IMM(E, BAD_KEY) };
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqes = 0;
	feed_spec(&s, bad);
	expect_nak(&s, RNR_12, E, 0);
	s.wqes = 1;
	feed_spec(&s, bad);
	expect_fatal_cqe(&s, NAK_RAE, WC_REM_ACCESS, ACT_TAKE_WQE);
}

/** Order 9 before 10: an over-long SEND into memory that is not accessible. */
static void
RX_PREC_03_length_before_wqe_memory(void **state)
{
	struct bed s;

	(void)state;
	bed_init(&s);
	s.wqe_bytes = 10;
	s.f.wqe_fault = WQE_FAULT_PROT;
	FEED(&s, SEND_ONLY(E, 11));
	expect_fatal_cqe(&s, NAK_INV, WC_LOC_LEN, ACT_TAKE_WQE);
	bed_init(&s); /* 8 before 10 */
	s.f.wqe_fault = WQE_FAULT_MALFORMED;
	FEED(&s, WRITE_ONLY_IMM(E, BAD_KEY));
	expect_fatal_cqe(&s, NAK_RAE, WC_REM_ACCESS, ACT_TAKE_WQE);
	bed_init(&s); /* 10 before 11 */
	s.f.wqe_fault = WQE_FAULT_PROT;
	FEED(&s, .op = OP_RC_SEND_ONLY_INV, .psn = E, .len = 4, .imm = BAD_KEY);
	expect_fatal_cqe(&s, NAK_ROE, WC_LOC_PROT, ACT_TAKE_WQE);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(RX_PREC_03_pairs),
		cmocka_unit_test(RX_PREC_05_rnr_first),
		cmocka_unit_test(RX_PREC_05_RX_PREC_06_stray_middle),
		cmocka_unit_test(RX_PREC_08_rnr_before_rkey),
		cmocka_unit_test(RX_PREC_03_length_before_wqe_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
