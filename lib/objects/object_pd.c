/* SPDX-License-Identifier: BSD-3-Clause */
#include "objects.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/random.h>

#include "ask.h"
#include "env.h"
#include "log.h"

_Static_assert(NAMES_NUMBER_MAX == MEM_PD_MAX, "what else a region's `pd` says is above it");

uint64_t
object_random(struct objects *objs)
{
	uint64_t v;

	if (getrandom(&v, sizeof(v), GRND_NONBLOCK) == (ssize_t)sizeof(v))
		return v;
	/* splitmix64 over the clock: still different each time. */
	objs->random_fallback += 0x9e3779b97f4a7c15u + objs->env->w.clock();
	v = objs->random_fallback;
	v = (v ^ v >> 30) * 0xbf58476d1ce4e5b9u;
	v = (v ^ v >> 27) * 0x94d049bb133111ebu;
	return v ^ v >> 31;
}

struct object_pd *
object_pd_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_pd *)(void *)names_get(&objs->pds, "pd", name, r);
}

int
object_pd_create(struct objects *objs, const struct conf_pd *conf, struct refusal *r)
{
	struct object_pd *pd;
	int rc = names_check(&objs->pds, "pd", conf->name, r);

	if (rc != 0)
		return rc;
	pd = calloc(1, sizeof(*pd));
	if (pd == NULL)
		return refuse(r, ENOMEM, "out of memory");
	pd->id = names_number(&objs->pds, &pd->n);
	TAILQ_INIT(&pd->mws);
	return names_add(&objs->pds, &pd->n, conf->name);
}

int
object_pd_destroy(struct objects *objs, struct object_pd *pd, struct refusal *r)
{
	if (pd->users != 0)
		return refuse(r, EBUSY, "pd \"%s\" is in use by %u objects (MRs, MWs, SRQs, QPs)",
			pd->n.name, pd->users);
	names_remove(&objs->pds, &pd->n);
	free(pd);
	return 0;
}
