/* SPDX-License-Identifier: BSD-3-Clause */
/* The asynchronous event queue; tables and expected words are typed from the rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <sched.h>

#include "../../clib/rounds.h"
#include "ring_aeq.h"

struct pair {
	void *mem;
	struct ring_aeq in;
	struct ring_aeq out;
};

static struct pair
make(uint32_t entries)
{
	struct pair p;
	const size_t size = ring_aeq_size(entries);

	p.mem = aligned_alloc(CACHE_LINE, size);
	assert_non_null(p.mem);
	memset(p.mem, 0, size);
	ring_aeq_attach(&p.in, p.mem, entries);
	ring_aeq_attach(&p.out, p.mem, entries);
	return p;
}

static void
sizes(void **state UNUSED)
{
	assert_int_equal(ring_aeq_size(0), 0);
	assert_int_equal(ring_aeq_size(3), 0);
	assert_int_equal(ring_aeq_size(64) - ring_aeq_size(1), 63 * 64);
}

static void
AEQ_01_entry_decode(void **state UNUSED)
{
	struct ring_aeq_event e = { 0 };
	struct pair p = make(4);
	const struct ring_aeq_event in = { .context = 0x123456789abcdef0,
		.time_ns = 11,
		.trace_at = 12,
		.id = 0xabcdef,
		.psn = 0xfffffe,
		.wqe_index = 0xbeef,
		.code = 0x123,
		.rule = 0x8007,
		.source = 3,
		.event = 2,
		.fatal = 21,
		.opcode = 0x0c,
		.state = 6,
		.syndrome = 0x62,
		.fault = 19 };

	/* phase 1, overflow 1, source 0xd, code 0x160, WQE index 0x4321, id 0x1000ab */
	ring_aeq_decode(UINT64_C(0x81d16043211000ab), &e);
	assert_int_equal(e.id, 0x1000ab);
	assert_int_equal(e.wqe_index, 0x4321);
	assert_int_equal(e.code, 0x160);
	assert_int_equal(e.source, 0xd);
	assert_true(e.overflow);
	assert_int_equal(e.flags, AEQ_QP | AEQ_OUT_RDRSP);
	assert_int_equal(ring_aeq_encode(&e, true), UINT64_C(0x81d16043211000ab));
	e.overflow = false;
	assert_int_equal(ring_aeq_encode(&e, false), UINT64_C(0x00d16043211000ab));

	assert_int_equal(ring_aeq_push(&p.in, &in), 0);
	memset(&e, 0xff, sizeof(e));
	assert_true(ring_aeq_next(&p.out, &e));
	assert_int_equal(e.context, in.context);
	assert_int_equal(e.time_ns, 11);
	assert_int_equal(e.trace_at, 12);
	assert_int_equal(e.id, 0xabcdef);
	assert_int_equal(e.psn, 0xfffffe);
	assert_int_equal(e.wqe_index, 0xbeef);
	assert_int_equal(e.code, 0x123);
	assert_int_equal(e.rule, 0x8007);
	assert_int_equal(e.source, 3);
	assert_int_equal(e.event, 2);
	assert_int_equal(e.fatal, 21);
	assert_int_equal(e.opcode, 0x0c);
	assert_int_equal(e.state, 6);
	assert_int_equal(e.syndrome, 0x62);
	assert_int_equal(e.fault, 19);
	assert_int_equal(e.flags, AEQ_QP | AEQ_RQ);
	assert_false(e.overflow);
	free(p.mem);
}

/* The entry says nothing before its bit does; what a turn left is not valid in the next. */
static void
AEQ_02_phase(void **state UNUSED)
{
	struct pair p = make(4);
	struct ring_aeq_event e;
	const struct ring_aeq_event one = { .code = AEQ_QP_REPORT, .source = 1 };

	assert_false(ring_aeq_next(&p.out, &e));
	for (uint32_t i = 0; i < 23; i++) {
		struct ring_aeq_event in = one;
		const bool phase = (i / 4) % 2 == 0;

		in.id = i;
		assert_int_equal(ring_aeq_push(&p.in, &in), 0);
		assert_int_equal(atomic_load(&p.in.sh->e[i % 4].word) >> 63, phase);
		assert_true(ring_aeq_next(&p.out, &e));
		assert_int_equal(e.id, i);
		assert_false(ring_aeq_next(&p.out, &e));
		assert_int_equal(ring_aeq_done(&p.out), 1);
	}
	/* Content without the bit: not there yet. */
	p.in.sh->e[23 % 4].psn = 7;
	assert_false(ring_aeq_next(&p.out, &e));
	free(p.mem);
}

static void
AEQ_03_sources(void **state UNUSED)
{
	static const struct {
		uint8_t flags;
		const char *name;
	} want[16] = { [1] = { AEQ_QP | AEQ_RQ, "RQ" },
		[3] = { AEQ_QP | AEQ_RQ, "RQ" },
		[5] = { AEQ_QP | AEQ_SQ, "SQ" },
		[7] = { AEQ_QP | AEQ_SQ, "SQ" },
		[2] = { AEQ_CQ, "CQ" },
		[6] = { AEQ_CQ, "CQ" },
		[10] = { AEQ_CQ, "CQ" },
		[14] = { AEQ_CQ, "CQ" },
		[9] = { AEQ_QP | AEQ_IN_RDRSP_WR, "READ_RESPONSE" },
		[11] = { AEQ_QP | AEQ_IN_RDRSP_WR, "READ_RESPONSE" },
		[13] = { AEQ_QP | AEQ_OUT_RDRSP, "READ_RESPONSE" },
		[15] = { AEQ_QP | AEQ_OUT_RDRSP, "READ_RESPONSE" } };

	for (uint8_t s = 0; s < 16; s++) {
		struct ring_aeq_event e = { .code = AEQ_REMOTE_ACCESS, .source = s };

		ring_aeq_decode(ring_aeq_encode(&e, true), &e);
		assert_int_equal(e.source, s);
		assert_int_equal(e.flags, want[s].flags);
		assert_string_equal(
			ring_aeq_source_name(s), want[s].name != NULL ? want[s].name : "NONE");
	}
	assert_string_equal(ring_aeq_source_name(16), "NONE");
	assert_int_equal(ring_aeq_source_flags(16), 0);
}

static void
AEQ_04_codes_override_the_source(void **state UNUSED)
{
	struct pair p = make(16);
	struct ring_aeq_event e;

	for (uint8_t s = 0; s < 16; s++) {
		e = (struct ring_aeq_event){
			.code = AEQ_CQ_OPERATION, .source = s, .context = 642
		};
		assert_int_equal(ring_aeq_push(&p.in, &e), 0);
		/* A CQ's context is kept halved, and doubled when it is read. */
		assert_int_equal(p.in.sh->e[s].context, 321);
		assert_true(ring_aeq_next(&p.out, &e));
		assert_int_equal(e.flags, AEQ_CQ);
		assert_int_equal(e.context, 642);
	}
	/* A QP's report that comes from its completion queue is the QP's. */
	e = (struct ring_aeq_event){ .code = AEQ_QP_REPORT, .source = 2 };
	ring_aeq_decode(ring_aeq_encode(&e, true), &e);
	assert_int_equal(e.flags, AEQ_QP);
	assert_string_equal(ring_aeq_source_name(e.source), "CQ");
	free(p.mem);
}

/* data.event_flush_map, by the names of its codes. */
static void
AEQ_11_flush_map(void **state UNUSED)
{
	static const struct {
		const char *codes; /* each ended by ';' */
		const char *flush;
		uint8_t status;
		uint8_t event;
	} rows[] = {
		{ "invalid key;", "PROT", 4, 3 },
		{ "WQE unexpected opcode;", "LOC_QP_OP", 2, 1 },
		{ "message too long for the buffer;", "LOC_LEN", 1, 1 },
		{ "invalidate without remote rights;remote access error;", "REM_ACCESS", 10, 3 },
		{ "too many retries;", "RETRY_EXC", 12, 1 },
		{ "too many RNRs;", "RNR_RETRY_EXC", 13, 1 },
		{ "invalid request;", "REM_INV_REQ", 9, 2 },
		{ "response length error;remote operation error;", "REM_OP", 11, 1 },
		{ "local catastrophic QP error;context catastrophic QP error;", "FATAL", 19, 1 },
	};
	unsigned int found = 0, abnormal = 0;

	for (uint16_t code = 0; code < 4096; code++) {
		const struct aeq_flush f = ring_aeq_flush_of(code);
		char name[64];
		bool listed = false;

		snprintf(name, sizeof(name), "%s;", ring_aeq_code_text(code));
		abnormal += ring_aeq_code_class(code) == AEQ_CLASS_ABNORMAL &&
			    strcmp(name, "unknown event;") != 0;
		for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
			const char *at = strstr(rows[i].codes, name);

			if (at == NULL || (at != rows[i].codes && at[-1] != ';'))
				continue;
			assert_string_equal(f.name, rows[i].flush);
			assert_int_equal(f.status, rows[i].status);
			assert_int_equal(f.event, rows[i].event);
			assert_int_equal(ring_aeq_code_class(code), AEQ_CLASS_ABNORMAL);
			listed = true;
			found++;
		}
		if (listed)
			continue;
		/* "any other" */
		assert_string_equal(f.name, "GENERAL");
		assert_int_equal(f.status, 5);
		assert_int_equal(f.event, 1);
	}
	assert_int_equal(found, 12);
	assert_int_equal(abnormal, 12);
	assert_int_equal(ring_aeq_code_class(0xfff), AEQ_CLASS_ABNORMAL);
}

/* AEQ-13: iWARP's connections come and go; RoCE has no code for that. */
static void
AEQ_13_no_codes_of_connections(void **state UNUSED)
{
	static const char *const words[] = { "establish", "connection", "fin ", "syn ", "close",
		"reset", "terminate" };

	for (uint16_t code = 0; code < 4096; code++) {
		char text[128];

		snprintf(text, sizeof(text), "%s ", ring_aeq_code_text(code));
		for (unsigned int i = 0; i < ARRAY_LEN(words); i++)
			assert_null(strcasestr(text, words[i]));
	}
}

static void
AEQ_14_drain_credits_overflow(void **state UNUSED)
{
	struct pair p = make(64);
	struct ring_aeq_event e = { .code = AEQ_QP_REPORT, .source = 1 };
	uint32_t taken = 0, passes = 0, next = 0, flagged = 0;

	/* 500 events, 100 for each pass of the consumer. */
	for (uint32_t i = 0; i < 500; i++) {
		e.psn = i;
		if (i % 100 < 64)
			assert_int_equal(ring_aeq_push(&p.in, &e), 0);
		else
			assert_int_equal(ring_aeq_push(&p.in, &e), -ENOSPC);
		if (i % 100 != 99)
			continue;
		while (ring_aeq_next(&p.out, &e)) {
			assert_int_equal(e.psn, next++);
			flagged += e.overflow;
			/* The first behind a loss says so. */
			assert_int_equal(e.overflow, passes > 0 && e.psn == passes * 100);
			taken++;
			/* No entry is given back before the pass ends. */
			assert_int_equal(atomic_load(&p.in.sh->returned), passes * 64);
		}
		assert_int_equal(ring_aeq_done(&p.out), 64);
		assert_int_equal(ring_aeq_done(&p.out), 0);
		next = ++passes * 100;
		assert_int_equal(ring_aeq_lost(&p.in), passes * 36);
		assert_int_equal(ring_aeq_lost(&p.out), passes * 36);
	}
	assert_int_equal(taken, 5 * 64);
	assert_int_equal(flagged, 4);
	free(p.mem);
}

/* ---- four workers at once ---------------------------------------------------------------------
 */

#define WORKERS 4
#define EACH    ROUNDS(10000)

static void *
produce(void *arg)
{
	struct ring_aeq *q = arg;

	for (uint32_t i = 0; i < EACH; i++) {
		const struct ring_aeq_event e = { .code = AEQ_QP_REPORT,
			.source = 1,
			.id = 16 + i % 3,
			.psn = i,
			.context = i ^ 0x5a5a,
			.time_ns = ~(uint64_t)i };

		while (ring_aeq_push(q, &e) != 0)
			sched_yield();
	}
	return NULL;
}

static void
AEQ_15_many_producers_one_consumer(void **state UNUSED)
{
	struct pair p[WORKERS];
	pthread_t t[WORKERS];
	uint32_t seen[WORKERS] = { 0 }, total = 0;

	for (int i = 0; i < WORKERS; i++) {
		p[i] = make(64);
		assert_int_equal(pthread_create(&t[i], NULL, produce, &p[i].in), 0);
	}
	while (total < WORKERS * EACH) {
		for (int i = 0; i < WORKERS; i++) {
			struct ring_aeq_event e;

			while (ring_aeq_next(&p[i].out, &e)) {
				assert_int_equal(e.psn, seen[i]);
				assert_int_equal(e.id, 16 + seen[i] % 3);
				assert_int_equal(e.context, seen[i] ^ 0x5a5a);
				assert_true(e.time_ns == ~(uint64_t)seen[i]);
				seen[i]++;
				total++;
			}
			ring_aeq_done(&p[i].out);
		}
		sched_yield();
	}
	for (int i = 0; i < WORKERS; i++) {
		assert_int_equal(pthread_join(t[i], NULL), 0);
		assert_int_equal(seen[i], EACH);
		free(p[i].mem);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sizes),
		cmocka_unit_test(AEQ_01_entry_decode),
		cmocka_unit_test(AEQ_02_phase),
		cmocka_unit_test(AEQ_03_sources),
		cmocka_unit_test(AEQ_04_codes_override_the_source),
		cmocka_unit_test(AEQ_11_flush_map),
		cmocka_unit_test(AEQ_13_no_codes_of_connections),
		cmocka_unit_test(AEQ_14_drain_credits_overflow),
		cmocka_unit_test(AEQ_15_many_producers_one_consumer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
