/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The state machine against a table typed from the rules (data.qp_transitions), not from the
 * code's.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "qp_attr.h"

static const char *const states[] = { "RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR" };
static const int types[] = { 2, 3, 4 }; /* RC UC UD */

/* Names by bit of enum ibv_qp_attr_mask. */
static const char *const attributes[] = { "STATE", "CUR_STATE", "EN_SQD_ASYNC_NOTIFY",
	"ACCESS_FLAGS", "PKEY_INDEX", "PORT", "QKEY", "AV", "PATH_MTU", "TIMEOUT", "RETRY_CNT",
	"RNR_RETRY", "RQ_PSN", "MAX_QP_RD_ATOMIC", "ALT_PATH", "MIN_RNR_TIMER", "SQ_PSN",
	"MAX_DEST_RD_ATOMIC", "PATH_MIG_STATE", "CAP", "DEST_QPN" };

/*
 * Which pairs are legal: rows are where from, columns where to, in the order above.
 * SQE is left by UC and UD only, and entered by nobody's order.
 */
static const char legal[2][7][8] = {
	{ "yy.....", "yyy...y", "y..y..y", "y..yy.y", "y..yy.y", ".......", "y.....y" }, /* RC */
	{ "yy.....", "yyy...y", "y..y..y", "y..yy.y", "y..yy.y", "y..y..y",
		"y.....y" }, /* UC, UD */
};

/* Transitions that ask for or allow something. Types: letters. */
static const struct {
	const char *types;
	const char *from;
	const char *to;
	const char *required;
	const char *optional;
} rows[] = {
	{ "RC UC", "RESET", "INIT", "PKEY_INDEX PORT ACCESS_FLAGS", "" },
	{ "UD", "RESET", "INIT", "PKEY_INDEX PORT QKEY", "" },
	{ "RC UC", "INIT", "INIT", "", "PKEY_INDEX PORT ACCESS_FLAGS" },
	{ "UD", "INIT", "INIT", "", "PKEY_INDEX PORT QKEY" },
	{ "RC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER",
		"ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "UC", "INIT", "RTR", "AV PATH_MTU DEST_QPN RQ_PSN", "ALT_PATH ACCESS_FLAGS PKEY_INDEX" },
	{ "UD", "INIT", "RTR", "", "PKEY_INDEX QKEY" },
	{ "RC", "RTR", "RTS", "TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC",
		"CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE" },
	{ "UC", "RTR", "RTS", "SQ_PSN", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE" },
	{ "UD", "RTR", "RTS", "SQ_PSN", "CUR_STATE QKEY" },
	{ "RC", "RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE MIN_RNR_TIMER" },
	{ "UC", "RTS", "RTS", "", "CUR_STATE ACCESS_FLAGS ALT_PATH PATH_MIG_STATE" },
	{ "UD", "RTS", "RTS", "", "CUR_STATE QKEY" },
	{ "RC UC UD", "RTS", "SQD", "", "EN_SQD_ASYNC_NOTIFY" },
	{ "RC", "SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS MIN_RNR_TIMER PATH_MIG_STATE" },
	{ "UC", "SQD", "RTS", "", "CUR_STATE ALT_PATH ACCESS_FLAGS PATH_MIG_STATE" },
	{ "UD", "SQD", "RTS", "", "CUR_STATE QKEY" },
	{ "UC", "SQD", "SQD", "", "PORT AV ALT_PATH ACCESS_FLAGS PKEY_INDEX PATH_MIG_STATE" },
	{ "UD", "SQD", "SQD", "", "PKEY_INDEX QKEY" },
	{ "RC", "SQD", "SQD", "",
		"PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ALT_PATH "
		"ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER PATH_MIG_STATE" },
	{ "UC", "SQE", "RTS", "", "CUR_STATE ACCESS_FLAGS" },
	{ "UD", "SQE", "RTS", "", "CUR_STATE QKEY" },
};

static uint32_t
mask_of(const char *names)
{
	char copy[256], *save = NULL;
	uint32_t mask = 0;

	strncpy(copy, names, sizeof(copy) - 1);
	copy[sizeof(copy) - 1] = 0;
	for (char *t = strtok_r(copy, " ", &save); t != NULL; t = strtok_r(NULL, " ", &save)) {
		uint32_t bit = 0;

		while (bit < ARRAY_LEN(attributes) && strcmp(attributes[bit], t) != 0)
			bit++;
		assert_true(bit < ARRAY_LEN(attributes));
		mask |= 1u << bit;
	}
	return mask;
}

static void
masks(int type, uint32_t from, uint32_t to, uint32_t *required, uint32_t *optional)
{
	static const char *const names[] = { [2] = "RC", [3] = "UC", [4] = "UD" };

	*required = *optional = 0;
	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strstr(rows[i].types, names[type]) != NULL &&
			strcmp(rows[i].from, states[from]) == 0 &&
			strcmp(rows[i].to, states[to]) == 0) {
			*required = mask_of(rows[i].required);
			*optional = mask_of(rows[i].optional);
		}
}

typedef void (*visit_fn)(
	int type, uint32_t from, uint32_t to, bool is_legal, uint32_t required, uint32_t optional);

static void
each_pair(visit_fn visit)
{
	for (size_t t = 0; t < ARRAY_LEN(types); t++)
		for (uint32_t from = 0; from < 7; from++)
			for (uint32_t to = 0; to < 7; to++) {
				uint32_t required, optional;

				masks(types[t], from, to, &required, &optional);
				visit(types[t], from, to, legal[t == 0 ? 0 : 1][from][to] == 'y',
					required, optional);
			}
}

static int
check(int type, uint32_t from, uint32_t to, uint32_t mask, const char **why)
{
	*why = "not set";
	return qp_transition_check(
		(enum qp_type)type, (enum qp_state)from, (enum qp_state)to, mask, why);
}

static void
visit_pair(
	int type, uint32_t from, uint32_t to, bool is_legal, uint32_t required, uint32_t optional)
{
	const char *why;
	uint32_t r = 1, o = 1;
	int rc = check(type, from, to, required | 1, &why);

	if (rc != (is_legal ? 0 : -EINVAL))
		fail_msg("type %d %s to %s: %d", type, states[from], states[to], rc);
	assert_int_equal(
		check(type, from, to, required | optional | 1, &why), is_legal ? 0 : -EINVAL);
	assert_int_equal(qp_transition_attrs((enum qp_type)type, (enum qp_state)from,
				 (enum qp_state)to, &r, &o),
		is_legal);
	if (is_legal) {
		assert_int_equal(r, required);
		assert_int_equal(o, optional);
		assert_null(why);
		return;
	}
	assert_non_null(strstr(why, states[from]));
	assert_non_null(strstr(why, states[to]));
}

/* QP-01, QP-15: every pair of the 7x7 matrix, for each type. */
static void
QP_01_matrix(void **state)
{
	(void)state;
	each_pair(visit_pair);
}

static void
visit_missing(
	int type, uint32_t from, uint32_t to, bool is_legal, uint32_t required, uint32_t optional)
{
	const char *why;

	(void)optional;
	for (uint32_t bit = 0; is_legal && bit < 21; bit++)
		if ((required & 1u << bit) != 0) {
			assert_int_equal(
				check(type, from, to, required & ~(1u << bit), &why), -EINVAL);
			assert_int_equal(strncmp(why, attributes[bit], strlen(attributes[bit])), 0);
			assert_non_null(strstr(why, "required"));
		}
}

/* QP-02: each required attribute missing in turn. */
static void
QP_02_missing(void **state)
{
	(void)state;
	each_pair(visit_missing);
}

static void
visit_forbidden(
	int type, uint32_t from, uint32_t to, bool is_legal, uint32_t required, uint32_t optional)
{
	const char *why;

	for (uint32_t bit = 1; is_legal && bit < 32; bit++) {
		int want = ((required | optional) & 1u << bit) != 0 ? 0 : -EINVAL;

		assert_int_equal(check(type, from, to, required | 1 | 1u << bit, &why), want);
		if (want != 0 && bit < 21) {
			assert_int_equal(strncmp(why, attributes[bit], strlen(attributes[bit])), 0);
			assert_non_null(strstr(why, "not allowed"));
		}
	}
}

/* QP-03: each attribute outside required and optional, the unknown ones too. */
static void
QP_03_forbidden(void **state)
{
	(void)state;
	each_pair(visit_forbidden);
}

/* Numbers outside the enumerations are refused, not looked up. */
static void
out_of_range(void **state)
{
	const char *why;

	(void)state;
	assert_int_equal(check(2, 7, 0, 0, &why), -EINVAL);
	assert_non_null(why);
	assert_int_equal(check(2, 0, 255, 0, &why), -EINVAL);
	assert_int_equal(check(0, 0, 0, 0, &why), -EINVAL);
	assert_int_equal(check(77, 0, 0, 0, &why), -EINVAL);
	assert_string_equal(verbs_qp_state_name(9), "UNKNOWN");
	assert_string_equal(qp_attr_name(0), "?");
	assert_string_equal(qp_attr_name(3), "?");
	assert_string_equal(qp_attr_name(1u << 31), "?");
}

static void
names(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 7; i++)
		assert_string_equal(verbs_qp_state_name((enum qp_state)i), states[i]);
	for (uint32_t i = 0; i < 21; i++)
		assert_string_equal(qp_attr_name(1u << i), attributes[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(QP_01_matrix),
		cmocka_unit_test(QP_02_missing),
		cmocka_unit_test(QP_03_forbidden),
		cmocka_unit_test(out_of_range),
		cmocka_unit_test(names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
