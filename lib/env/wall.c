/* SPDX-License-Identifier: BSD-3-Clause */
#include "wall.h"

#include <stdio.h>
#include <time.h>

#include "conf_json_value.h"
#include "env.h"

/* The two clocks drift, and one may be set; less than this is not worth another reading. */
#define STEADY_NS ((int64_t)TIME_NS_PER_MS)

/* What to add to a time of the dataplane's clock; the same each time, while nobody sets one. */
static int64_t
offset_now(struct env *env)
{
	struct timespec ts;
	int64_t offset;

	clock_gettime(CLOCK_REALTIME, &ts);
	offset = (int64_t)ts.tv_sec * (int64_t)TIME_NS_PER_S + ts.tv_nsec - (int64_t)env->w.clock();
	if (offset > env->wall_offset + STEADY_NS || offset < env->wall_offset - STEADY_NS)
		env->wall_offset = offset;
	return env->wall_offset;
}

uint64_t
wall_ns(struct env *env, ns_t t)
{
	return (uint64_t)((int64_t)t + offset_now(env));
}

void
wall_text(struct env *env, ns_t t, char text[WALL_TEXT])
{
	const uint64_t wall = wall_ns(env, t);
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
wall_json(struct env *env, ns_t t)
{
	char text[WALL_TEXT];

	if (t == 0)
		return json_null();
	wall_text(env, t, text);
	return json_string(text);
}

void
wall_set(struct env *env, json_t *o, ns_t t)
{
	json_object_set_new(o, "time_ns", conf_json_u64(t));
	json_object_set_new(o, "time", wall_json(env, t));
}
