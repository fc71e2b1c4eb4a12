/* SPDX-License-Identifier: BSD-3-Clause */
#include "refusal.h"

#include <stdarg.h>
#include <stdio.h>

int
refuse(struct refusal *r, int err, const char *fmt, ...)
{
	va_list ap;

	r->err = err;
	va_start(ap, fmt);
	vsnprintf(r->text, sizeof(r->text), fmt, ap);
	va_end(ap);
	return -err;
}
