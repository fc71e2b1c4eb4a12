/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QP-01..03: may a QP go from one state to another, with these attributes? If not, what may it do
 * instead?
 */
#include <errno.h>
#include <stdio.h>

#include "admin.h"

static const char *
keys_of(uint32_t mask, char *buf, size_t room)
{
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t bit = 1; bit != 0 && at < room; bit <<= 1) {
		if ((mask & bit) != 0)
			at += (size_t)snprintf(buf + at, room - at, "%s%s", at > 0 ? ", " : "",
				admin_attr_key(bit));
	}
	return buf;
}

/* The shortest way: step[to] is the state before it. @return is there one? */
static bool
find_way(enum qp_type type, enum qp_state from, enum qp_state to, uint8_t step[QPS_MAX])
{
	uint8_t queue[QPS_MAX] = { (uint8_t)from };
	bool seen[QPS_MAX] = { false };
	uint32_t required, optional, n = 1;

	seen[from] = true;
	for (uint32_t i = 0; i < n && !seen[to]; i++) {
		for (uint32_t s = 0; s < QPS_MAX; s++) {
			if (seen[s] ||
				!qp_transition_attrs(type, queue[i], s, &required, &optional))
				continue;
			seen[s] = true;
			step[s] = queue[i];
			queue[n++] = (uint8_t)s;
		}
	}
	return seen[to];
}

/* Where it may go instead, and the way to where it was to go. */
static int
refuse_transition(
	const struct admin_qp *rec, enum qp_state from, enum qp_state to, struct refusal *r)
{
	const enum qp_type type = admin_qp_type(rec);
	uint32_t required, optional, last = 0;
	uint8_t step[QPS_MAX], way[QPS_MAX];
	char next[64] = "", steps[64] = "";
	size_t at = 0, n = 0;

	for (uint32_t s = 0; s < QPS_MAX; s++)
		if (qp_transition_attrs(type, from, s, &required, &optional))
			last = s;
	for (uint32_t s = 0; s < QPS_MAX && at < sizeof(next); s++)
		if (qp_transition_attrs(type, from, s, &required, &optional))
			at += (size_t)snprintf(next + at, sizeof(next) - at, "%s%s",
				at == 0     ? ""
				: s == last ? " or "
					    : ", ",
				verbs_qp_state_name(s));
	if (find_way(type, from, to, step)) {
		for (uint8_t s = (uint8_t)to; s != from; s = step[s])
			way[n++] = s;
		at = (size_t)snprintf(
			steps, sizeof(steps), "; the way to %s is", verbs_qp_state_name(to));
		while (n > 0 && at < sizeof(steps)) {
			const char *name = verbs_qp_state_name(way[--n]);

			at += (size_t)snprintf(
				steps + at, sizeof(steps) - at, " %s%s", name, n > 0 ? "," : "");
		}
	}
	return refuse(r, EINVAL,
		"qp_state: QP %u cannot go from %s to %s; from %s it may go to %s%s", rec->qpn,
		verbs_qp_state_name(from), verbs_qp_state_name(to), verbs_qp_state_name(from), next,
		steps);
}

/* The transitions that take an attribute: "RTR to RTS and SQD to SQD". */
static const char *
takers_of(enum qp_type type, uint32_t attr, char *buf, size_t room)
{
	uint32_t required, optional, n = 0;
	char last[24] = "";
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < QPS_MAX * QPS_MAX && at < room; i++) {
		const enum qp_state from = i / QPS_MAX, to = i % QPS_MAX;

		if (!qp_transition_attrs(type, from, to, &required, &optional) ||
			((required | optional) & attr) == 0)
			continue;
		if (n > 0)
			at += (size_t)snprintf(
				buf + at, room - at, "%s%s", n > 1 ? ", " : "", last);
		snprintf(last, sizeof(last), "%s to %s", verbs_qp_state_name(from),
			verbs_qp_state_name(to));
		n++;
	}
	if (n > 0 && at < room)
		snprintf(buf + at, room - at, "%s%s", n > 1 ? " and " : "", last);
	return buf;
}

/* Of several attributes the first one is looked up: the next try tells of the next. */
static int
refuse_attributes(
	const struct admin_qp *rec, const struct admin_change *ch, uint32_t mask, struct refusal *r)
{
	char keys[200], takers[160];
	const uint32_t first = mask & -mask;

	takers_of(admin_qp_type(rec), first, takers, sizeof(takers));
	return refuse(r, EINVAL, "QP %u from %s to %s does not take %s%s%s%s%s", rec->qpn,
		verbs_qp_state_name(ch->from), verbs_qp_state_name(ch->to),
		keys_of(mask, keys, sizeof(keys)), takers[0] != '\0' ? "; " : "",
		takers[0] != '\0' ? admin_attr_key(first) : "", takers[0] != '\0' ? " is for " : "",
		takers);
}

int
admin_transition_check(const struct admin_qp *rec, const struct admin_change *ch, struct refusal *r)
{
	const enum qp_state from = ch->from, to = ch->to;
	const enum qp_type type = admin_qp_type(rec);
	const uint32_t qpn = rec->qpn;
	uint32_t mask = ch->mask, required, optional;
	const char *why = "";
	char keys[200];

	if (!qp_transition_attrs(type, from, to, &required, &optional))
		return refuse_transition(rec, from, to, r);
	required &= ~(uint32_t)QP_ATTR_STATE;
	mask &= ~(uint32_t)QP_ATTR_STATE;
	if ((required & ~mask) != 0)
		return refuse(r, EINVAL, "QP %u from %s to %s needs %s", qpn,
			verbs_qp_state_name(from), verbs_qp_state_name(to),
			keys_of(required & ~mask, keys, sizeof(keys)));
	if ((mask & ~(required | optional)) != 0)
		return refuse_attributes(rec, ch, mask & ~(required | optional), r);
	if (qp_transition_check(type, from, to, mask | QP_ATTR_STATE, &why) != 0)
		return refuse(r, EINVAL, "QP %u from %s to %s: %s", qpn, verbs_qp_state_name(from),
			verbs_qp_state_name(to), why);
	return 0;
}
