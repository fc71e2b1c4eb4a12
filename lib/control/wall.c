/* SPDX-License-Identifier: BSD-3-Clause */
#include "wall.h"

#include <stdio.h>
#include <time.h>

#include "conf_json_value.h"
#include "internal.h"

/* The two clocks drift, and one may be set; less than this is not worth another reading. */
#define STEADY_NS ((int64_t)TIME_NS_PER_MS)

/* What to add to a time of the dataplane's clock; the same each time, while nobody sets one. */
static int64_t
offset_now(struct control *c)
{
	struct timespec ts;
	int64_t offset;

	clock_gettime(CLOCK_REALTIME, &ts);
	offset = (int64_t)ts.tv_sec * (int64_t)TIME_NS_PER_S + ts.tv_nsec -
		 (int64_t)c->env.clock();
	if (offset > c->wall_offset + STEADY_NS || offset < c->wall_offset - STEADY_NS)
		c->wall_offset = offset;
	return c->wall_offset;
}

void
wall_text(struct control *c, ns_t t, char text[WALL_TEXT])
{
	const uint64_t wall = (uint64_t)((int64_t)t + offset_now(c));
	const time_t seconds = (time_t)(wall / TIME_NS_PER_S);
	const unsigned int us = (unsigned int)(wall % TIME_NS_PER_S / TIME_NS_PER_US);
	struct tm tm;
	size_t n = 0;

	if (gmtime_r(&seconds, &tm) != NULL)
		n = strftime(text, WALL_TEXT, "%Y-%m-%dT%H:%M:%S", &tm);
	if (n == 0)
		n = (size_t)snprintf(text, WALL_TEXT, "?");
	snprintf(text + n, WALL_TEXT - n, ".%06uZ", us % 1000000);
}

json_t *
wall_json(struct control *c, ns_t t)
{
	char text[WALL_TEXT];

	if (t == 0)
		return json_null();
	wall_text(c, t, text);
	return json_string(text);
}

void
wall_set(struct control *c, json_t *o, ns_t t)
{
	json_object_set_new(o, "time_ns", conf_json_u64(t));
	json_object_set_new(o, "time", wall_json(c, t));
}
