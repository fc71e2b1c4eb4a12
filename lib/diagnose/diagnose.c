/* SPDX-License-Identifier: BSD-3-Clause */
#include "diagnose.h"

#include <string.h>

#include "env.h"

void
diagnose_sum(const struct diagnose *dg, struct stats_block *out)
{
	memset(out, 0, sizeof(*out));
	for (uint32_t w = 0; w < dg->env->w.workers_n; w++)
		stats_sum(out, dg->env->w.workers[w].stats);
	/* What workers lost is in the queue's figure as well: each loss counts once. */
	out->c[STAT_aeq_overflow] = 0;
	stats_add(out, STAT_aeq_overflow, dg->events.overflow);
	stats_add(out, STAT_error_buffer_lost, dg->errlog.lost);
}
