/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows: made and removed here, bound and invalidated by workers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ask.h"
#include "conf_json.h"
#include "conf_json_value.h"
#include "env.h"
#include "mem_window.h"
#include "objects.h"

#define KEY_TRIES 64

struct object_mw *
object_mw_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_mw *)(void *)names_get(&objs->mws, "mw", name, r);
}

/* "mw1", or the first number behind the last one that nobody took for a name. */
static void
pick_name(struct objects *objs, char name[CONF_NAME_MAX])
{
	do {
		snprintf(name, CONF_NAME_MAX, "mw%u", ++objs->next_mw);
	} while (names_find(&objs->mws, name) != NULL);
}

static int
publish(struct objects *objs, struct mem_window *w, struct refusal *r)
{
	int rc = -EEXIST;

	for (unsigned int i = 0; i < KEY_TRIES && rc == -EEXIST; i++)
		rc = mem_window_add(objs->env->w.mem, w, (uint32_t)object_random(objs));
	return rc == 0 ? 0 : refuse(r, ENOSPC, "the table of memory windows is full");
}

int
object_mw_alloc(struct objects *objs, struct object_pd *pd, uint32_t type, const char *name,
	struct object_mw **out, struct refusal *r)
{
	char picked[CONF_NAME_MAX];
	struct object_mw *mw;
	int rc;

	if (name[0] == '\0') {
		pick_name(objs, picked);
		name = picked;
	}
	rc = names_check(&objs->mws, "mw", name, r);
	if (rc != 0)
		return rc;
	mw = calloc(1, sizeof(*mw));
	if (mw == NULL)
		return refuse(r, ENOMEM, "out of memory");
	mw->window = mem_window_alloc();
	if (mw->window == NULL) {
		free(mw);
		return refuse(r, ENOMEM, "out of memory");
	}
	mw->window->r.kind = (uint8_t)(MEM_WINDOW_1 + type - 1);
	mw->window->home_pd = pd->id;
	rc = publish(objs, mw->window, r);
	if (rc != 0) {
		mem_window_free(mw->window);
		free(mw);
		return rc;
	}
	mw->pd = pd;
	mw->made_ns = objs->env->now;
	pd->users++;
	TAILQ_INSERT_TAIL(&pd->mws, mw, of_pd);
	*out = mw;
	return names_add(&objs->mws, &mw->n, name);
}

void
object_mw_revoke(struct objects *objs, struct object_mw *mw)
{
	if (!mw->window->gone)
		mem_window_remove(objs->env->w.mem, mw->window);
}

static void
forget(struct objects *objs, struct object_mw *mw)
{
	TAILQ_REMOVE(&mw->pd->mws, mw, of_pd);
	mw->pd->users--;
	names_remove(&objs->mws, &mw->n);
	free(mw);
}

void
object_mw_free_revoked(struct objects *objs, struct object_mw *mw)
{
	mem_window_free(mw->window);
	forget(objs, mw);
}

void
object_mw_dealloc(struct objects *objs, struct object_mw *mw)
{
	object_mw_revoke(objs, mw);
	if (ask_all(objs->env) == 0) {
		object_mw_free_revoked(objs, mw);
		return;
	}
	object_late_window(objs, mw->window);
	forget(objs, mw);
}

void
object_mws_leave(struct object_pd *pd, uint32_t qpn)
{
	struct object_mw *mw;

	TAILQ_FOREACH (mw, &pd->mws, of_pd)
		mem_window_leave(mw->window, qpn);
}

static const char *
region_name(const struct objects *objs, const struct mem_region *on)
{
	const struct named *n;

	TAILQ_FOREACH (n, &objs->mrs.all, all) {
		if (((const struct object_mr *)(const void *)n)->region == on)
			return n->name;
	}
	return "?";
}

json_t *
object_mw_json(struct objects *objs, const struct object_mw *mw)
{
	const struct mem_region *r = &mw->window->r;
	const bool bound = mem_is_valid(r);
	json_t *o = json_pack("{s:s, s:s, s:i, s:o, s:b}", "name", mw->n.name, "pd", mw->pd->n.name,
		"type", r->kind - MEM_WINDOW_1 + 1, "rkey", conf_json_hex(r->key), "bound", bound);

	if (o == NULL || !bound)
		return o;
	json_object_set_new(o, "mr", json_string(region_name(objs, mw->window->on)));
	json_object_set_new(o, "addr", conf_json_hex(r->va));
	json_object_set_new(o, "length", conf_json_u64(r->length));
	json_object_set_new(o, "mw_access_flags", conf_json_flags(conf_names_access, r->access));
	if (r->pd > MEM_PD_MAX)
		json_object_set_new(o, "qp_num", json_integer(r->pd & MEM_PD_MAX));
	return o;
}
