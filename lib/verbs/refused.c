/* SPDX-License-Identifier: BSD-3-Clause */
/* Refusals: errno for the program, the reason for whoever asks for it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cancel.h"
#include "vl.h"

/* Of the call that is about to be refused; NULL: rl_last_error() has it. */
static _Thread_local const char *reason;

int
vl_why(int err, const char *why)
{
	reason = why;
	return err;
}

/* Ours are behind tables of verbs', or in front of a version of a name. */
static const char *
without_prefix(const char *call)
{
	static const char *const prefixes[] = { "ibv_", "_ibv_", "vl_" };

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++) {
		const size_t len = strlen(prefixes[i]);

		if (strncmp(call, prefixes[i], len) == 0)
			return call + len;
	}
	return call;
}

void
vl_refused_because(const char *call, int err, const char *why)
{
	const bool is_cm = strncmp(call, "rdma_", strlen("rdma_")) == 0;
	CANCEL_HELD;

	if (getenv("ROCELANE_WHY") != NULL)
		fprintf(stderr, "rocelane: %s%s: %s (%s)\n", is_cm ? "" : "ibv_",
			is_cm ? call : without_prefix(call), strerror(err), why);
	errno = err;
}

void
vl_refused(const char *call, int err)
{
	vl_refused_because(call, err, reason != NULL ? reason : rl_last_error());
	reason = NULL;
}
