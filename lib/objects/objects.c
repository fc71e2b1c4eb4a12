/* SPDX-License-Identifier: BSD-3-Clause */
#include "objects.h"

#include <errno.h>
#include <string.h>

#include "env.h"
#include "log.h"

int
objects_init(struct objects *objs, struct env *env, const struct objects_up *up)
{
	objs->env = env;
	objs->up = *up;
	TAILQ_INIT(&objs->pds.all);
	TAILQ_INIT(&objs->mrs.all);
	TAILQ_INIT(&objs->mws.all);
	TAILQ_INIT(&objs->cqs.all);
	TAILQ_INIT(&objs->srqs.all);
	TAILQ_INIT(&objs->xrcds.all);
	STAILQ_INIT(&objs->late);
	/* Events name completion queues and shared receive queues by their numbers. */
	return names_init(&objs->pds, NAMES_NUMBER_MAX) != 0 ||
			       names_init(&objs->mrs, NAMES_NUMBER_MAX) != 0 ||
			       names_init(&objs->mws, NAMES_NUMBER_MAX) != 0 ||
			       names_init(&objs->cqs, AEQ_ID_MAX) != 0 ||
			       names_init(&objs->srqs, AEQ_ID_MAX) != 0 ||
			       names_init(&objs->xrcds, NAMES_NUMBER_MAX) != 0
		       ? -ENOMEM
		       : 0;
}

void
objects_fini(struct objects *objs)
{
	struct refusal r;
	struct named *o;

	while ((o = TAILQ_FIRST(&objs->srqs.all)) != NULL) {
		if (object_srq_destroy(objs, (struct object_srq *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&objs->xrcds.all)) != NULL) {
		if (object_xrcd_close(objs, (struct object_xrcd *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&objs->mws.all)) != NULL)
		object_mw_dealloc(objs, (struct object_mw *)(void *)o);
	while ((o = TAILQ_FIRST(&objs->mrs.all)) != NULL) {
		if (object_mr_destroy(objs, (struct object_mr *)(void *)o, NULL, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&objs->cqs.all)) != NULL) {
		if (object_cq_destroy(objs, (struct object_cq *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	while ((o = TAILQ_FIRST(&objs->pds.all)) != NULL) {
		if (object_pd_destroy(objs, (struct object_pd *)(void *)o, &r) != 0) {
			log_error("%s: left behind", r.text);
			break;
		}
	}
	object_late_fini(objs);
	names_fini(&objs->srqs);
	names_fini(&objs->xrcds);
	names_fini(&objs->mrs);
	names_fini(&objs->mws);
	names_fini(&objs->cqs);
	names_fini(&objs->pds);
}
