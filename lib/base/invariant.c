/* SPDX-License-Identifier: BSD-3-Clause */
#include "invariant.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
invariant_failed(const char *file, int line, const char *function, const char *cond)
{
	/* The compiler is given paths that begin at the folder of the build. */
	while (strncmp(file, "../", 3) == 0)
		file += 3;
	fprintf(stderr, "%s:%d: %s: ASSERT(%s) does not hold\n", file, line, function, cond);
	abort();
}
