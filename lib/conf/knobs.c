/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"

#include <string.h>

/* Single choices where readings of the standard differ, their names and their defaults. */

/* clang-format off */
static const struct conf_name off_on[] = { { "off", KNOB_off }, { "on", KNOB_on }, { NULL, 0 } };

#define KNOB_NAMES(group, name, ...) \
	static const struct conf_name group##_##name##_values[] = { __VA_ARGS__, { NULL, 0 } };
#define KNOB_NAMED(group, name, value) { #value, KNOB_VALUE(group, name, value) }
#define KNOB_SWITCH(group, name, iba, ernic, text)
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text) \
	KNOB_NAMES(group, name, KNOB_NAMED(group, name, v0), KNOB_NAMED(group, name, v1))
#define KNOB_THREE(group, name, v0, v1, v2, iba, ernic, text) \
	KNOB_NAMES(group, name, KNOB_NAMED(group, name, v0), KNOB_NAMED(group, name, v1), \
		KNOB_NAMED(group, name, v2))
#define KNOB_FIVE(group, name, v0, v1, v2, v3, v4, iba, ernic, text) \
	KNOB_NAMES(group, name, KNOB_NAMED(group, name, v0), KNOB_NAMED(group, name, v1), \
		KNOB_NAMED(group, name, v2), KNOB_NAMED(group, name, v3), \
		KNOB_NAMED(group, name, v4))
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text)
#include "tables/knobs.def"
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER

#define KNOB_PICKED(group, name, list, value) \
	ROW_ENUM(conf_knobs, group##_##name, #group "." #name, list, WITH(CONF_F_DEFAULT), \
		GIVEN(KNOB_GIVEN(group##_##name)), DEFAULT(value)),
#define KNOB_SWITCH(group, name, iba, ernic, text) \
	KNOB_PICKED(group, name, off_on, KNOB_##iba)
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text) \
	KNOB_PICKED(group, name, group##_##name##_values, KNOB_VALUE(group, name, iba))
#define KNOB_THREE(group, name, v0, v1, v2, iba, ernic, text) \
	KNOB_PICKED(group, name, group##_##name##_values, KNOB_VALUE(group, name, iba))
#define KNOB_FIVE(group, name, v0, v1, v2, v3, v4, iba, ernic, text) \
	KNOB_PICKED(group, name, group##_##name##_values, KNOB_VALUE(group, name, iba))
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text) \
	ROW_U32(conf_knobs, group##_##name, #group "." #name, least, most, WITH(CONF_F_DEFAULT), \
		GIVEN(KNOB_GIVEN(group##_##name)), DEFAULT(iba)),
static const struct conf_field knob_rows[] = {
#include "tables/knobs.def"
};
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER
const struct conf_table conf_table_knobs = { .name = "knobs", TABLE_ROWS(knob_rows),
	.size = sizeof(struct conf_knobs), .given_offset = offsetof(struct conf_knobs, given),
	.sparse = true };
/* clang-format on */

/* What a profile chooses; everything else is the same in both. */
static void
set_profile(struct conf_knobs *k, enum conf_profile profile)
{
	const bool is_ernic = profile == CONF_PROFILE_ERNIC;

	k->profile = profile;
#define KNOB_CHOSEN(member, in_iba, in_ernic)                         \
	do {                                                          \
		if ((in_iba) != (in_ernic))                           \
			k->member = is_ernic ? (in_ernic) : (in_iba); \
	} while (0);
#define KNOB_SWITCH(group, name, iba, ernic, text) \
	KNOB_CHOSEN(group##_##name, KNOB_##iba, KNOB_##ernic)
#define KNOB_TWO(group, name, v0, v1, iba, ernic, text)                     \
	KNOB_CHOSEN(group##_##name, (uint32_t)KNOB_VALUE(group, name, iba), \
		(uint32_t)KNOB_VALUE(group, name, ernic))
#define KNOB_THREE(group, name, v0, v1, v2, iba, ernic, text) \
	KNOB_TWO(group, name, v0, v1, iba, ernic, text)
#define KNOB_FIVE(group, name, v0, v1, v2, v3, v4, iba, ernic, text) \
	KNOB_TWO(group, name, v0, v1, iba, ernic, text)
#define KNOB_NUMBER(group, name, least, most, iba, ernic, text) \
	KNOB_CHOSEN(group##_##name, iba##u, ernic##u)
#include "tables/knobs.def"
#undef KNOB_SWITCH
#undef KNOB_TWO
#undef KNOB_THREE
#undef KNOB_FIVE
#undef KNOB_NUMBER
}

static void
set_given(struct conf_knobs *to, const struct conf_knobs *from)
{
	for (uint32_t i = 0; i < ARRAY_LEN(knob_rows); i++) {
		const uint32_t at = knob_rows[i].offset;

		if ((from->given & knob_rows[i].given) != 0)
			memcpy((uint8_t *)to + at, (const uint8_t *)from + at, sizeof(uint32_t));
	}
	to->given |= from->given;
}

void
conf_knobs_default(struct conf_knobs *k, enum conf_profile profile)
{
	memset(k, 0, sizeof(*k));
	for (uint32_t i = 0; i < ARRAY_LEN(knob_rows); i++) {
		const uint32_t def = (uint32_t)knob_rows[i].def;

		memcpy((uint8_t *)k + knob_rows[i].offset, &def, sizeof(def));
	}
	set_profile(k, profile);
}

void
conf_knobs_apply(struct conf_knobs *k, enum conf_profile profile)
{
	const struct conf_knobs given = *k;

	conf_knobs_default(k, profile);
	set_given(k, &given);
}

void
conf_qp_knobs(const struct conf_knobs *global, const struct conf_qp *qp, struct conf_knobs *out)
{
	*out = *global;
	if ((qp->given & CONF_QP_PROFILE) != 0)
		set_profile(out, (enum conf_profile)qp->profile);
	if ((qp->given & CONF_QP_KNOBS) != 0)
		set_given(out, &qp->knobs);
}
