/* SPDX-License-Identifier: BSD-3-Clause */
/* The state machine as a table (tables/qp_states.def), and its words for people. */
#include <errno.h>
#include <stddef.h>

#include "qp_attr.h"

/* The table's columns are written without the prefix. */
enum {
	NONE = 0,
#define QP_ATTR(bit, name) name = QP_ATTR_##name,
#include "tables/qp_attrs.def"
#undef QP_ATTR
};

struct transition {
	uint32_t required;
	uint32_t optional;
	bool legal;
};

enum { TYPES = QPT_XRC_RECV + 1 };

static const struct transition transitions[TYPES][QPS_MAX][QPS_MAX] = {
#define QP_STATE(type, from, to, required, optional, clause) \
	[QPT_##type][QPS_##from][QPS_##to] = { required, optional, true },
#include "tables/qp_states.def"
#undef QP_STATE
};

/** By bit of the mask: the name, and what is said when it is missing or too much. */
static const struct {
	const char *name;
	const char *missing;
	const char *forbidden;
} attrs[] = {
#define QP_ATTR(bit, name)                                         \
	[bit] = { #name, #name " is required for this transition", \
		#name " is not allowed in this transition" },
#include "tables/qp_attrs.def"
#undef QP_ATTR
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
qp_attr_name(uint32_t one_bit)
{
	uint32_t bit;

	if (one_bit == 0 || (one_bit & (one_bit - 1)) != 0)
		return "?";
	bit = (uint32_t)__builtin_ctz(one_bit);
	return bit < ARRAY_LEN(attrs) ? attrs[bit].name : "?";
}
