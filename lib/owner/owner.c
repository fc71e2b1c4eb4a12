/* SPDX-License-Identifier: BSD-3-Clause */
#include "owner.h"

#include <stdio.h>
#include <string.h>

void
owner_name(struct owner *o, const char *kind, char name[CONF_NAME_MAX])
{
	snprintf(name, CONF_NAME_MAX, "client %u %s %u", o->id, kind, ++o->named);
}

bool
owner_is_name(const char *name)
{
	return strchr(name, ' ') != NULL;
}

/* What an application makes has names that begin with its own. */
bool
owner_may_see(const struct owner *viewer, const char *name)
{
	char prefix[CONF_NAME_MAX];

	if (viewer == NULL)
		return true;
	snprintf(prefix, sizeof(prefix), "client %u ", viewer->id);
	return strncmp(name, prefix, strlen(prefix)) == 0;
}
