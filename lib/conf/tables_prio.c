/* SPDX-License-Identifier: BSD-3-Clause */
/* A port's "priorities". Lists are written as dcb(8) of iproute2 writes them: "26:3 46:5". */
#include "table_rows.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PRIOS 8

/* Pairs KEY:VALUE, keys below n, values from `least` to `most`; out[key] is set. */
static int
pairs_decode(
	const char *text, uint8_t *out, unsigned long n, unsigned long least, unsigned long most)
{
	const char *at = text;

	for (;;) {
		unsigned long key, value;
		char *end;

		at += strspn(at, " ");
		if (*at == '\0')
			return 0;
		if (strchr("0123456789", *at) == NULL)
			return -EINVAL;
		key = strtoul(at, &end, 10);
		if (key >= n || end[0] != ':' || end[1] == '\0' ||
			strchr("0123456789", end[1]) == NULL)
			return -EINVAL;
		value = strtoul(end + 1, &end, 10);
		if (value < least || value > most || (*end != ' ' && *end != '\0'))
			return -EINVAL;
		out[key] = (uint8_t)value;
		at = end;
	}
}

/* Those that are not `none`. */
static void
pairs_encode(const uint8_t *from, uint32_t n, uint8_t none, char *buf, size_t room)
{
	size_t at = 0;

	buf[0] = '\0';
	for (uint32_t i = 0; i < n && at < room; i++)
		if (from[i] != none)
			at += (size_t)snprintf(
				buf + at, room - at, "%s%u:%u", at != 0 ? " " : "", i, from[i]);
}

static int
dscp_decode(const char *text, void *obj)
{
	struct conf_prio *p = obj;

	memset(p->dscp_prio, CONF_PRIO_NONE, sizeof(p->dscp_prio));
	return pairs_decode(text, p->dscp_prio, sizeof(p->dscp_prio), 0, PRIOS - 1);
}

static void
dscp_encode(const void *obj, char *buf, size_t room)
{
	const struct conf_prio *p = obj;

	pairs_encode(p->dscp_prio, sizeof(p->dscp_prio), CONF_PRIO_NONE, buf, room);
}

static int
pcp_decode(const char *text, void *obj)
{
	struct conf_prio *p = obj;

	memset(p->pcp_prio, CONF_PRIO_NONE, sizeof(p->pcp_prio));
	return pairs_decode(text, p->pcp_prio, PRIOS, 0, PRIOS - 1);
}

static void
pcp_encode(const void *obj, char *buf, size_t room)
{
	pairs_encode(((const struct conf_prio *)obj)->pcp_prio, PRIOS, CONF_PRIO_NONE, buf, room);
}

static int
weights_decode(const char *text, void *obj)
{
	struct conf_prio *p = obj;

	memset(p->weights, 0, sizeof(p->weights));
	return pairs_decode(text, p->weights, PRIOS, 1, 100);
}

static void
weights_encode(const void *obj, char *buf, size_t room)
{
	pairs_encode(((const struct conf_prio *)obj)->weights, PRIOS, 0, buf, room);
}

static const struct conf_custom dscp_prio = {
	"pairs DSCP:PRIORITY as of `dcb app`: \"26:3 46:5\", from 0 to 63 and from 0 to 7",
	dscp_decode, dscp_encode
};
static const struct conf_custom pcp_prio = {
	"pairs PCP:PRIORITY as of `dcb app`: \"5:4\", each from 0 to 7", pcp_decode, pcp_encode
};
static const struct conf_custom weights = {
	"pairs PRIORITY:WEIGHT: \"0:30 3:70\", from 0 to 7 and from 1 to 100", weights_decode,
	weights_encode
};

/* clang-format off */
static const struct conf_field prio_rows[] = {
	ROW_CUSTOM(conf_prio, dscp_prio, "dscp_prio", &dscp_prio, WITH(CONF_F_DEFAULT), .def_str = ""),
	ROW_CUSTOM(conf_prio, pcp_prio, "pcp_prio", &pcp_prio, WITH(CONF_F_DEFAULT), .def_str = ""),
	ROW_U8(conf_prio, default_prio, "default_prio", 0, PRIOS - 1, WITH(CONF_F_DEFAULT)),
	ROW_CUSTOM(conf_prio, weights, "weights", &weights, WITH(CONF_F_DEFAULT), .def_str = ""),
	{ .name = "prio_pfc", .type = CONF_T_NUMBERS, .offset = TYPED(conf_prio, prio_pfc, uint32_t *),
		.n_offset = offsetof(struct conf_prio, n_prio_pfc), .n_max = PRIOS, .min = 0, .max = PRIOS - 1 },
	ROW_BOOL(conf_prio, rx_pause, "rx_pause", WITH(CONF_F_DEFAULT)),
	ROW_U32(conf_prio, pause_max, "pause_max", 1, 60000, WITH(CONF_F_DEFAULT), DEFAULT(200)),
	ROW_U32(conf_prio, pause_restore, "pause_restore", 1, 60000, WITH(CONF_F_DEFAULT), DEFAULT(400)),
};
const struct conf_table conf_table_prio = { .name = "priorities", TABLE_ROWS(prio_rows),
	.size = sizeof(struct conf_prio), .given_offset = CONF_NO_GIVEN };
/* clang-format on */
