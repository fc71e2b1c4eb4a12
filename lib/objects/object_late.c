/* SPDX-License-Identifier: BSD-3-Clause */
/* Regions and windows that nobody has any more, and that a worker may still be at. */
#include <stdlib.h>

#include "ask.h"
#include "broker.h"
#include "env.h"
#include "log.h"
#include "mem_window.h"
#include "objects.h"

#define LATE_TURN 64 /* given back in a turn */

struct object_late {
	STAILQ_ENTRY(object_late) all;
	struct mem_region *region;    /* or NULL */
	struct mem_window *window;    /* or NULL */
	struct broker_memory *memory; /* of the region: a use of a client's; or NULL */
	struct broker_conn *home;     /* ... and the connection whose thread has it, held */
};

static void
add(struct objects *objs, const struct object_late *what, uint32_t key)
{
	struct object_late *l = malloc(sizeof(*l));

	if (l == NULL) {
		log_error("key 0x%x: its memory is not given back: a worker did not answer", key);
		return;
	}
	log_warn("key 0x%x: its memory is given back later: a worker does not answer", key);
	*l = *what;
	if (l->memory != NULL)
		l->home = broker_conn_hold(broker_memory_home(l->memory));
	STAILQ_INSERT_TAIL(&objs->late, l, all);
}

void
object_late_region(struct objects *objs, struct mem_region *region, struct broker_memory *memory)
{
	add(objs, &(struct object_late){ .region = region, .memory = memory }, region->key);
}

void
object_late_window(struct objects *objs, struct mem_window *window)
{
	add(objs, &(struct object_late){ .window = window }, window->r.key);
}

static void
give_back(struct object_late *l)
{
	mem_region_free(l->region);
	if (l->window != NULL)
		mem_window_free(l->window);
	if (l->memory != NULL) {
		broker_memory_put(l->memory);
		broker_conn_put(l->home);
	}
	free(l);
}

uint32_t
object_late_poll(struct objects *objs)
{
	struct object_late *l;
	uint32_t n = 0;

	if (STAILQ_EMPTY(&objs->late) || !ask_all_answer(objs->env) || ask_all(objs->env) != 0)
		return 0;
	for (; n < LATE_TURN && (l = STAILQ_FIRST(&objs->late)) != NULL; n++) {
		STAILQ_REMOVE_HEAD(&objs->late, all);
		give_back(l);
	}
	return n;
}

void
object_late_fini(struct objects *objs)
{
	while (object_late_poll(objs) != 0)
		;
}
