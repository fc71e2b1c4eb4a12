/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine as a table (tables/qp_states.def), and its words for people. */
#include <errno.h>
#include <stddef.h>

#include "qp_attr.h"

/* The table's columns are written without the prefix. */
enum {
	NONE = 0,
	CUR_STATE = QP_ATTR_CUR_STATE,
	EN_SQD_ASYNC_NOTIFY = QP_ATTR_EN_SQD_ASYNC_NOTIFY,
	ACCESS_FLAGS = QP_ATTR_ACCESS_FLAGS,
	PKEY_INDEX = QP_ATTR_PKEY_INDEX,
	PORT = QP_ATTR_PORT,
	QKEY = QP_ATTR_QKEY,
	AV = QP_ATTR_AV,
	PATH_MTU = QP_ATTR_PATH_MTU,
	TIMEOUT = QP_ATTR_TIMEOUT,
	RETRY_CNT = QP_ATTR_RETRY_CNT,
	RNR_RETRY = QP_ATTR_RNR_RETRY,
	RQ_PSN = QP_ATTR_RQ_PSN,
	MAX_QP_RD_ATOMIC = QP_ATTR_MAX_QP_RD_ATOMIC,
	ALT_PATH = QP_ATTR_ALT_PATH,
	MIN_RNR_TIMER = QP_ATTR_MIN_RNR_TIMER,
	SQ_PSN = QP_ATTR_SQ_PSN,
	MAX_DEST_RD_ATOMIC = QP_ATTR_MAX_DEST_RD_ATOMIC,
	PATH_MIG_STATE = QP_ATTR_PATH_MIG_STATE,
	DEST_QPN = QP_ATTR_DEST_QPN,
};

struct transition {
	uint32_t required;
	uint32_t optional;
	bool legal;
};

enum { TYPES = QPT_UD + 1 };

static const struct transition transitions[TYPES][QPS_MAX][QPS_MAX] = {
#define QP_STATE(type, from, to, required, optional, clause) \
	[QPT_##type][QPS_##from][QPS_##to] = { required, optional, true },
#include "tables/qp_states.def"
#undef QP_STATE
};

static const char *const state_names[QPS_MAX] = {
	[QPS_RESET] = "RESET",
	[QPS_INIT] = "INIT",
	[QPS_RTR] = "RTR",
	[QPS_RTS] = "RTS",
	[QPS_SQD] = "SQD",
	[QPS_SQE] = "SQE",
	[QPS_ERR] = "ERR",
};

/** By bit of the mask: the name, and what is said when it is missing or too much. */
static const struct {
	const char *name;
	const char *missing;
	const char *forbidden;
} attrs[] = {
#define ATTR(bit, name)                                          \
	[bit] = { name, name " is required for this transition", \
		name " is not allowed in this transition" }
	ATTR(0, "STATE"),
	ATTR(1, "CUR_STATE"),
	ATTR(2, "EN_SQD_ASYNC_NOTIFY"),
	ATTR(3, "ACCESS_FLAGS"),
	ATTR(4, "PKEY_INDEX"),
	ATTR(5, "PORT"),
	ATTR(6, "QKEY"),
	ATTR(7, "AV"),
	ATTR(8, "PATH_MTU"),
	ATTR(9, "TIMEOUT"),
	ATTR(10, "RETRY_CNT"),
	ATTR(11, "RNR_RETRY"),
	ATTR(12, "RQ_PSN"),
	ATTR(13, "MAX_QP_RD_ATOMIC"),
	ATTR(14, "ALT_PATH"),
	ATTR(15, "MIN_RNR_TIMER"),
	ATTR(16, "SQ_PSN"),
	ATTR(17, "MAX_DEST_RD_ATOMIC"),
	ATTR(18, "PATH_MIG_STATE"),
	ATTR(19, "CAP"),
	ATTR(20, "DEST_QPN"),
#undef ATTR
};

#define FROM(s)                                                                                  \
	{                                                                                        \
		s " to RESET is not a legal transition", s " to INIT is not a legal transition", \
			s " to RTR is not a legal transition",                                   \
			s " to RTS is not a legal transition",                                   \
			s " to SQD is not a legal transition",                                   \
			s " to SQE is not a legal transition",                                   \
			s " to ERR is not a legal transition"                                    \
	}
static const char *const bad_pair[QPS_MAX][QPS_MAX] = { FROM("RESET"), FROM("INIT"), FROM("RTR"),
	FROM("RTS"), FROM("SQD"), FROM("SQE"), FROM("ERR") };
#undef FROM

static const struct transition *
find(enum qp_type type, enum qp_state from, enum qp_state to)
{
	const struct transition *t;

	if ((unsigned int)type >= TYPES || (unsigned int)from >= QPS_MAX ||
		(unsigned int)to >= QPS_MAX)
		return NULL;
	t = &transitions[type][from][to];
	return t->legal ? t : NULL;
}

bool
qp_transition_attrs(enum qp_type type, enum qp_state from, enum qp_state to, uint32_t *required,
	uint32_t *optional)
{
	const struct transition *t = find(type, from, to);

	if (t == NULL)
		return false;
	*required = t->required;
	*optional = t->optional;
	return true;
}

int
qp_transition_check(
	enum qp_type type, enum qp_state from, enum qp_state to, uint32_t mask, const char **why)
{
	const struct transition *t = find(type, from, to);
	uint32_t missing, forbidden;

	if (t == NULL) {
		*why = (unsigned int)from < QPS_MAX && (unsigned int)to < QPS_MAX
			       ? bad_pair[from][to]
			       : "no such state";
		return -EINVAL;
	}
	missing = t->required & ~mask;
	forbidden = mask & ~(t->required | t->optional | QP_ATTR_STATE);
	if (missing != 0) {
		*why = attrs[__builtin_ctz(missing)].missing;
		return -EINVAL;
	}
	if (forbidden != 0) {
		uint32_t bit = (uint32_t)__builtin_ctz(forbidden);

		*why = bit < ARRAY_LEN(attrs) ? attrs[bit].forbidden : "no such attribute";
		return -EINVAL;
	}
	*why = NULL;
	return 0;
}

const char *
qp_state_name(enum qp_state s)
{
	return (unsigned int)s < QPS_MAX ? state_names[s] : "?";
}

const char *
qp_attr_name(uint32_t one_bit)
{
	uint32_t bit;

	if (one_bit == 0 || (one_bit & (one_bit - 1)) != 0)
		return "?";
	bit = (uint32_t)__builtin_ctz(one_bit);
	return bit < ARRAY_LEN(attrs) ? attrs[bit].name : "?";
}
