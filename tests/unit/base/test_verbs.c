/* SPDX-License-Identifier: BSD-3-Clause */
/* The words of verbs against numbers typed from <infiniband/verbs.h>, not from our tables. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "verbs.h"
#include "verbs_wr.h"

struct word {
	uint32_t value;
	const char *name;
};

static void
check(const char *(*name_of)(uint32_t), const struct word *words, size_t n, uint32_t end)
{
	for (uint32_t v = 0; v < end; v++) {
		const char *want = "UNKNOWN";

		for (size_t i = 0; i < n; i++) {
			if (words[i].value == v)
				want = words[i].name;
		}
		assert_string_equal(name_of(v), want);
	}
	assert_string_equal(name_of(UINT32_MAX), "UNKNOWN");
}

/* IBV_WC_SUCCESS is 0, and the others count up. */
static void
names_of_statuses(void **state UNUSED)
{
	static const struct word words[] = { { 0, "SUCCESS" }, { 1, "LOC_LEN_ERR" },
		{ 2, "LOC_QP_OP_ERR" }, { 3, "LOC_EEC_OP_ERR" }, { 4, "LOC_PROT_ERR" },
		{ 5, "WR_FLUSH_ERR" }, { 6, "MW_BIND_ERR" }, { 7, "BAD_RESP_ERR" },
		{ 8, "LOC_ACCESS_ERR" }, { 9, "REM_INV_REQ_ERR" }, { 10, "REM_ACCESS_ERR" },
		{ 11, "REM_OP_ERR" }, { 12, "RETRY_EXC_ERR" }, { 13, "RNR_RETRY_EXC_ERR" },
		{ 14, "LOC_RDD_VIOL_ERR" }, { 15, "REM_INV_RD_REQ_ERR" }, { 16, "REM_ABORT_ERR" },
		{ 17, "INV_EECN_ERR" }, { 18, "INV_EEC_STATE_ERR" }, { 19, "FATAL_ERR" },
		{ 20, "RESP_TIMEOUT_ERR" }, { 21, "GENERAL_ERR" } };

	check(verbs_wc_status_name, words, ARRAY_LEN(words), 300);
	assert_int_equal(WC_SUCCESS, 0);
	assert_int_equal(WC_WR_FLUSH_ERR, 5);
	assert_int_equal(WC_RNR_RETRY_EXC_ERR, 13);
}

static void
names_of_completions(void **state UNUSED)
{
	static const struct word words[] = { { 0, "SEND" }, { 1, "RDMA_WRITE" }, { 2, "RDMA_READ" },
		{ 3, "COMP_SWAP" }, { 4, "FETCH_ADD" }, { 5, "BIND_MW" }, { 6, "LOCAL_INV" },
		{ 8, "FLUSH" }, { 9, "ATOMIC_WRITE" }, { 128, "RECV" },
		{ 129, "RECV_RDMA_WITH_IMM" } };

	check(verbs_wc_opcode_name, words, ARRAY_LEN(words), 300);
	assert_int_equal(WC_RECV, 128);
	assert_int_equal(WC_GRH | WC_WITH_IMM << 8 | WC_WITH_INV << 16, 0x080201);
}

static void
names_of_events(void **state UNUSED)
{
	static const struct word words[] = { { 0, "CQ_ERR" }, { 1, "QP_FATAL" },
		{ 2, "QP_REQ_ERR" }, { 3, "QP_ACCESS_ERR" }, { 4, "COMM_EST" }, { 5, "SQ_DRAINED" },
		{ 6, "PATH_MIG" }, { 7, "PATH_MIG_ERR" }, { 8, "DEVICE_FATAL" },
		{ 9, "PORT_ACTIVE" }, { 10, "PORT_ERR" }, { 11, "LID_CHANGE" },
		{ 12, "PKEY_CHANGE" }, { 13, "SM_CHANGE" }, { 14, "SRQ_ERR" },
		{ 15, "SRQ_LIMIT_REACHED" }, { 16, "QP_LAST_WQE_REACHED" },
		{ 64, "RQ_LIMIT_REACHED" } };

	check(verbs_event_name, words, ARRAY_LEN(words), 300);
	assert_int_equal(EVENT_SRQ_LIMIT_REACHED, 15);
}

static void
names_of_states(void **state UNUSED)
{
	static const struct word states[] = { { 0, "RESET" }, { 1, "INIT" }, { 2, "RTR" },
		{ 3, "RTS" }, { 4, "SQD" }, { 5, "SQE" }, { 6, "ERR" } };
	static const struct word migration[] = { { 0, "MIGRATED" }, { 1, "REARM" },
		{ 2, "ARMED" } };

	check(verbs_qp_state_name, states, ARRAY_LEN(states), 300);
	check(verbs_mig_state_name, migration, ARRAY_LEN(migration), 300);
	assert_int_equal(QPS_MAX, 7);
	assert_int_equal(MIG_MAX, 3);
	assert_int_equal(QPT_RC | QPT_UC << 4 | QPT_UD << 8, 0x432);
}

/* What each work request has: IBTA vol. 1, 11.4.1.1 (modifiers of Post Send Request). */
static void
REQ_02_what_work_requests_have(void **state UNUSED)
{
	static const struct {
		uint32_t value;
		const char *name;
		uint8_t completion;
		const char *has; /* remote, immediate, key, data back, operands, bind, local,
				  * answer */
	} rows[] = {
		{ 0, "RDMA_WRITE", 1, "r" },
		{ 1, "RDMA_WRITE_WITH_IMM", 1, "ri" },
		{ 2, "SEND", 0, "" },
		{ 3, "SEND_WITH_IMM", 0, "i" },
		{ 4, "RDMA_READ", 2, "rd" },
		{ 5, "ATOMIC_CMP_AND_SWP", 3, "rdo" },
		{ 6, "ATOMIC_FETCH_AND_ADD", 4, "rdo" },
		{ 7, "LOCAL_INV", 6, "kl" },
		{ 8, "BIND_MW", 5, "bl" },
		{ 9, "SEND_WITH_INV", 0, "k" },
		{ 14, "FLUSH", 8, "ra" },
		{ 15, "ATOMIC_WRITE", 9, "ra" },
	};

	for (uint32_t v = 0; v < 300; v++) {
		const char *has = "", *name = "UNKNOWN";
		uint8_t completion = 0;
		bool exists = false;

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			if (rows[i].value != v)
				continue;
			has = rows[i].has;
			name = rows[i].name;
			completion = rows[i].completion;
			exists = true;
		}
		assert_string_equal(verbs_wr_opcode_name(v), name);
		assert_int_equal(verbs_wr_exists(v), exists);
		assert_int_equal(verbs_wc_opcode(v), completion);
		assert_int_equal(verbs_wr_has(v, WR_HAS_REMOTE), strchr(has, 'r') != NULL);
		assert_int_equal(verbs_wr_has(v, WR_HAS_IMM), strchr(has, 'i') != NULL);
		assert_int_equal(verbs_wr_has(v, WR_HAS_INV), strchr(has, 'k') != NULL);
		assert_int_equal(verbs_wr_returns(v), strchr(has, 'd') != NULL);
		assert_int_equal(verbs_wr_is_atomic(v), strchr(has, 'o') != NULL);
		assert_int_equal(verbs_wr_has(v, WR_HAS_BIND), strchr(has, 'b') != NULL);
		assert_int_equal(verbs_wr_is_local(v), strchr(has, 'l') != NULL);
		assert_int_equal(verbs_wr_has(v, WR_HAS_ANSWER), strchr(has, 'a') != NULL);
	}
	assert_int_equal(SEND_FENCE | SEND_SIGNALED << 8 | SEND_SOLICITED << 16 | SEND_INLINE << 24,
		0x08040201);
}

static void
access_and_attributes(void **state UNUSED)
{
	assert_int_equal(ACCESS_LOCAL_WRITE, 1);
	assert_int_equal(ACCESS_REMOTE_WRITE, 2);
	assert_int_equal(ACCESS_REMOTE_READ, 4);
	assert_int_equal(ACCESS_REMOTE_ATOMIC, 8);
	assert_int_equal(ACCESS_MW_BIND, 16);
	assert_int_equal(ACCESS_ZERO_BASED, 32);
	assert_int_equal(QP_ATTR_STATE, 1);
	assert_int_equal(QP_ATTR_TIMEOUT, 1 << 9);
	assert_int_equal(QP_ATTR_DEST_QPN, 1 << 20);
}

/* REQ-18: 2^31 bytes are the longest message; an ATOMIC has 8. */
static void
REQ_18_lengths(void **state UNUSED)
{
	assert_int_equal(VERBS_MESSAGE_MAX, 2147483648u);
	assert_int_equal(VERBS_ATOMIC_LEN, 8);
}

/* Every opcode, with and without inline bytes, at each limit and one beyond. */
static void
CQ_09_form(void **state UNUSED)
{
	const struct verbs_wr_limits some = { 4, 64, 1, QPT_RC, VERBS_MESSAGE_MAX },
				     none = { 0, 0, 0, QPT_RC, VERBS_MESSAGE_MAX };

	for (uint32_t v = 0; v < 300; v++) {
		const bool exists = v <= 9 || v == 14 || v == 15, local = v == 7 || v == 8;
		const bool returns = (v >= 4 && v <= 6) || v >= 14; /* or an empty answer */
		const bool good = exists && !returns && !local;

		assert_int_equal(verbs_wr_form(&some, v, 0, 4), local || v == 14 ? VERBS_WR_NO_LIST
								: exists         ? VERBS_WR_GOOD
									 : VERBS_WR_NO_OPCODE);
		assert_int_equal(
			verbs_wr_form(&some, v, 0, 5), exists ? VERBS_WR_SGES : VERBS_WR_NO_OPCODE);
		assert_int_equal(verbs_wr_form(&some, v, 8, 0), good || v == 15 ? VERBS_WR_GOOD
								: exists ? VERBS_WR_NOT_INLINE
									 : VERBS_WR_NO_OPCODE);
		assert_int_equal(verbs_wr_form(&none, v, 0, 0), good || local ? VERBS_WR_GOOD
								: exists      ? VERBS_WR_NO_READS
									      : VERBS_WR_NO_OPCODE);
	}
	for (uint32_t s = 0; s < 7; s++) /* RTS, SQD, SQE, ERR (QP-06, QP-13) */
		assert_int_equal(verbs_wr_may_post(s), s >= 3);
}

static void
REQ_18_length_of_work_requests(void **state UNUSED)
{
	const struct verbs_wr_limits l = { 4, 64, 1, QPT_RC, VERBS_MESSAGE_MAX };
	const uint64_t longest = UINT64_C(1) << 31;

	for (uint32_t v = 0; v <= 15; v = v == 9 ? 14 : v + 1) {
		const bool atomic = v == 5 || v == 6 || v == 15;

		assert_int_equal(verbs_wr_length(&l, v, 0, 8), VERBS_WR_GOOD);
		assert_int_equal(verbs_wr_length(&l, v, 0, 7),
			atomic ? VERBS_WR_ATOMIC_SHORT : VERBS_WR_GOOD);
		assert_int_equal(verbs_wr_length(&l, v, 0, longest),
			atomic ? VERBS_WR_ATOMIC_LONG : VERBS_WR_GOOD);
		assert_int_equal(verbs_wr_length(&l, v, 0, longest + 1), VERBS_WR_LENGTH);
	}
	assert_int_equal(verbs_wr_length(&l, 2, 8, 64), VERBS_WR_GOOD);
	assert_int_equal(verbs_wr_length(&l, 2, 8, 65), VERBS_WR_INLINE_LENGTH);
	assert_int_equal(verbs_wr_length(&l, 2, 8, longest + 1), VERBS_WR_INLINE_LENGTH);
	assert_int_equal(verbs_wr_length(&l, 2, 2, 65), VERBS_WR_GOOD);
}

/* Annex A19: a type at least, and no bits that have no meaning. */
static void
what_a_flush_is(void **state UNUSED)
{
	for (uint32_t v = 0; v < 300; v++)
		assert_int_equal(verbs_flush_exists(v),
			v == 1 || v == 2 || v == 3 || v == 17 || v == 18 || v == 19);
	assert_false(verbs_flush_exists(UINT64_C(1) << 32 | 1));
	assert_int_equal(verbs_flush_access(1), 256);
	assert_int_equal(verbs_flush_access(18), 512);
	assert_int_equal(verbs_flush_access(3), 768);
}

static void
rights_of_a_region(void **state UNUSED)
{
	for (uint32_t v = 0; v < 2048; v++) {
		const bool unknown = (v & 0x4c0) != 0, writes = (v & (2 | 8)) != 0;

		assert_int_equal(verbs_region_fault(v) == NULL,
			!unknown && !(writes && (v & 1) == 0) && (v & 512) == 0);
	}
}

/** UC-16: SENDs and WRITEs are on UC as on RC; READ, ATOMIC and invalidation are RC's alone. */
static void
UC_16_operations_of_a_service(void **state)
{
	static const uint8_t both[] = { WR_SEND, WR_SEND_WITH_IMM, WR_RDMA_WRITE,
		WR_RDMA_WRITE_WITH_IMM };
	static const uint8_t rc[] = { WR_RDMA_READ, WR_ATOMIC_CMP_AND_SWP, WR_ATOMIC_FETCH_AND_ADD,
		WR_SEND_WITH_INV };
	const struct verbs_wr_limits uc = { 4, 64, 1, QPT_UC, VERBS_MESSAGE_MAX };

	(void)state;
	for (size_t i = 0; i < ARRAY_LEN(both); i++) {
		assert_true(verbs_wr_is_on(both[i], QPT_RC) && verbs_wr_is_on(both[i], QPT_UC));
		assert_int_equal(verbs_wr_form(&uc, both[i], 0, 1), VERBS_WR_GOOD);
	}
	for (size_t i = 0; i < ARRAY_LEN(rc); i++) {
		assert_true(verbs_wr_is_on(rc[i], QPT_RC) && !verbs_wr_is_on(rc[i], QPT_UC));
		assert_int_equal(verbs_wr_form(&uc, rc[i], 0, 1), VERBS_WR_NO_SERVICE);
	}
	assert_false(verbs_wr_is_on(31, QPT_RC));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(UC_16_operations_of_a_service),
		cmocka_unit_test(what_a_flush_is),
		cmocka_unit_test(rights_of_a_region),
		cmocka_unit_test(names_of_statuses),
		cmocka_unit_test(names_of_completions),
		cmocka_unit_test(names_of_events),
		cmocka_unit_test(names_of_states),
		cmocka_unit_test(REQ_02_what_work_requests_have),
		cmocka_unit_test(access_and_attributes),
		cmocka_unit_test(REQ_18_lengths),
		cmocka_unit_test(CQ_09_form),
		cmocka_unit_test(REQ_18_length_of_work_requests),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
