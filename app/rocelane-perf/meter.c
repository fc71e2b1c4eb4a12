/* SPDX-License-Identifier: BSD-3-Clause */
#include "perf.h"

#define PEAK_NS 100000000u /* shortest window of the best rate */

void
meter_start(struct meter *m, uint64_t now)
{
	*m = (struct meter){ .began = now };
	m->now = m->window = m->seen = m->shown = now;
}

void
meter_see(struct meter *m, uint64_t done, uint64_t now)
{
	double rate;

	m->now = now;
	if (done != m->seen_done) {
		m->seen = now;
		m->seen_done = done;
	}
	/*
	 * From completions to completions: one may stand for many messages, which took all the time
	 * since the one before.
	 */
	if (m->seen - m->window < PEAK_NS)
		return;
	rate = (double)(m->seen_done - m->window_done) * 1e9 / (double)(m->seen - m->window);
	m->peak = rate > m->peak ? rate : m->peak;
	m->window = m->seen;
	m->window_done = m->seen_done;
}
