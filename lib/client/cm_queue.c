/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events that a channel has: those that the dataplane told of, fetched many at a time, and some of
 * the library's own. Each is one in the channel's eventfd.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cm.h"
#include "fds.h"

enum { FETCH = 16 };

STAILQ_HEAD(places, cm_waiting);

/* As many as there is memory for, before anything is taken. */
static int
places_get(struct places *p)
{
	struct cm_waiting *e;
	int n = 0;

	STAILQ_INIT(p);
	while (n < FETCH && (e = malloc(sizeof(*e))) != NULL) {
		STAILQ_INSERT_TAIL(p, e, next);
		n++;
	}
	return n;
}

static void
places_put(struct places *p)
{
	struct cm_waiting *e;

	while ((e = STAILQ_FIRST(p)) != NULL) {
		STAILQ_REMOVE_HEAD(p, next);
		free(e);
	}
}

void
client_cm_count(struct cm_channel *ch)
{
	const uint64_t one = 1;

	(void)!write(ch->event_fd, &one, sizeof(one));
}

int
client_cm_tell(struct cm_id *id, enum rl_cm_event_type event)
{
	struct cm_channel *ch = (struct cm_channel *)id->pub.channel;
	struct cm_waiting *e = malloc(sizeof(*e));

	if (e == NULL)
		return client_fail(ENOMEM, "out of memory");
	*e = (struct cm_waiting){ .id = id, .event = event };
	STAILQ_INSERT_TAIL(&ch->waiting, e, next);
	client_cm_count(ch);
	return 0;
}

int
client_cm_fetch(struct context *ctx, struct cm_channel *ch)
{
	struct places places;
	struct cm_waiting *e;
	json_t *list = NULL, *told;
	size_t i;
	int n, rc;

	if (!STAILQ_EMPTY(&ch->waiting))
		return 0;
	n = places_get(&places);
	if (n == 0)
		return client_fail(ENOMEM, "out of memory");
	rc = client_call(ctx, "client_cm_events",
		json_pack("{s:I, s:i}", "channel", (json_int_t)ch->handle, "max", n), -1, &list);
	json_array_foreach (list, i, told) {
		e = STAILQ_FIRST(&places);
		if (e == NULL) /* no more were asked for */
			break;
		STAILQ_REMOVE_HEAD(&places, next);
		*e = (struct cm_waiting){ .told = json_incref(told) };
		STAILQ_INSERT_TAIL(&ch->waiting, e, next);
	}
	json_decref(list);
	places_put(&places);
	return rc;
}

void
client_cm_drop(struct cm_channel *ch)
{
	struct cm_waiting *e = STAILQ_FIRST(&ch->waiting);

	STAILQ_REMOVE_HEAD(&ch->waiting, next);
	json_decref(e->told);
	free(e);
}

static uint32_t
number(const struct cm_waiting *e, const char *key)
{
	return (uint32_t)json_integer_value(json_object_get(e->told, key));
}

/* All of one id, to another channel, or NULL: they are dropped. */
static void
sort_out(struct cm_channel *ch, const struct cm_id *id, uint32_t handle, struct cm_channel *to)
{
	struct cm_waiting *e, *next;

	for (e = STAILQ_FIRST(&ch->waiting); e != NULL; e = next) {
		next = STAILQ_NEXT(e, next);
		if (e->told != NULL ? number(e, "handle") != handle : e->id != id)
			continue;
		STAILQ_REMOVE(&ch->waiting, e, cm_waiting, next);
		fds_uncount(ch->event_fd, 1);
		if (to == NULL) {
			json_decref(e->told);
			free(e);
			continue;
		}
		STAILQ_INSERT_TAIL(&to->waiting, e, next);
		client_cm_count(to);
	}
}

/* One who has asked the listener, and of whom the application has not heard. @return 0: none. */
static uint32_t
unheard(const struct cm_channel *ch, const struct cm_id *listener)
{
	const struct cm_waiting *e;

	STAILQ_FOREACH (e, &ch->waiting, next)
		if (e->told != NULL && number(e, "listener") == listener->handle)
			return number(e, "handle");
	return 0;
}

void
client_cm_forget(struct context *ctx, struct cm_channel *ch, const struct cm_id *id)
{
	uint32_t asker;

	while (id->handle != 0 && (asker = unheard(ch, id)) != 0) {
		client_call(ctx, "client_cm_destroy",
			json_pack("{s:I}", "handle", (json_int_t)asker), -1, NULL);
		sort_out(ch, NULL, asker, NULL);
	}
	sort_out(ch, id, id->handle, NULL);
}

static int
migrate(struct context *ctx, uint32_t handle, const struct cm_channel *to)
{
	return client_call(ctx, "client_cm_migrate",
		json_pack("{s:I, s:I}", "handle", (json_int_t)handle, "channel",
			(json_int_t)to->handle),
		-1, NULL);
}

int
client_cm_move(
	struct context *ctx, const struct cm_id *id, struct cm_channel *from, struct cm_channel *to)
{
	uint32_t asker;
	int rc;

	if (id->bound != 0) {
		rc = migrate(ctx, id->bound, to);
		if (rc != 0)
			return rc;
	}
	if (id->handle != 0) {
		rc = migrate(ctx, id->handle, to);
		if (rc != 0)
			return rc;
		while ((asker = unheard(from, id)) != 0) {
			migrate(ctx, asker, to);
			sort_out(from, NULL, asker, to);
		}
	}
	sort_out(from, id, id->handle, to);
	return 0;
}

void
client_cm_free_waiting(struct cm_channel *ch)
{
	while (!STAILQ_EMPTY(&ch->waiting))
		client_cm_drop(ch);
}
