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

void
vl_refused_because(const char *call, int err, const char *why)
{
	CANCEL_HELD;

	if (getenv("ROCELANE_WHY") != NULL)
		fprintf(stderr, "rocelane: %s: %s (%s)\n", call, strerror(err), why);
	errno = err;
}

void
vl_refused(const char *call, int err)
{
	vl_refused_because(call, err, reason != NULL ? reason : rl_last_error());
	reason = NULL;
}
