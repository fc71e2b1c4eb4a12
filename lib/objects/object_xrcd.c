/* SPDX-License-Identifier: BSD-3-Clause */
/* XRC domains, and the numbers of the SRQs in them. */
#include <errno.h>
#include <stdlib.h>

#include "objects.h"

struct object_xrcd *
object_xrcd_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_xrcd *)(void *)names_get(&objs->xrcds, "xrcd", name, r);
}

int
object_xrcd_create(struct objects *objs, const struct conf_xrcd *conf, struct refusal *r)
{
	struct object_xrcd *xrcd;
	int rc = names_check(&objs->xrcds, "xrcd", conf->name, r);

	if (rc != 0)
		return rc;
	xrcd = calloc(1, sizeof(*xrcd));
	if (xrcd == NULL)
		return refuse(r, ENOMEM, "out of memory");
	xrcd->id = names_number(&objs->xrcds, &xrcd->n);
	xrcd->opened = 1;
	return names_add(&objs->xrcds, &xrcd->n, conf->name);
}

int
object_xrcd_close(struct objects *objs, struct object_xrcd *xrcd, struct refusal *r)
{
	if (xrcd->opened == 1 && xrcd->users != 0)
		return refuse(r, EBUSY, "xrcd \"%s\" is in use by %u objects (SRQs, QPs)",
			xrcd->n.name, xrcd->users);
	if (--xrcd->opened != 0)
		return 0;
	names_remove(&objs->xrcds, &xrcd->n);
	free(xrcd);
	return 0;
}
