/* SPDX-License-Identifier: BSD-3-Clause */
#include "turn.h"

#include <time.h>

/* What this thread has used of a CPU. */
static ns_t
cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (ns_t)t.tv_sec * TIME_NS_PER_S + (ns_t)t.tv_nsec;
}

void
env_turn_begin(struct turns *t, ns_t (*clock)(void), ns_t now)
{
	t->clock = clock;
	t->began = now;
	if (t->n == 0 || now - t->cpu_read_at >= TURN_CPU_EVERY) {
		t->cpu_read_at = now;
		t->cpu_read = cpu_now();
	}
	t->piece_began = now;
	t->piece_took = 0;
	t->piece = NULL;
	t->n++;
}

void
env_turn_piece(struct turns *t, const char *what)
{
	ns_t now;

	if (t->clock == NULL) /* between turns: the program is starting, or ending */
		return;
	now = t->clock();
	if (t->piece == NULL || now - t->piece_began > t->piece_took) {
		t->piece = what;
		t->piece_took = now - t->piece_began;
	}
	t->piece_began = now;
}

void
env_turn_end(struct turns *t)
{
	const ns_t took = t->piece_began - t->began;

	if (took > t->worst.took) {
		const ns_t ran = cpu_now() - t->cpu_read;

		t->worst = (struct turn_worst){ .took = took,
			.cpu = ran < took ? ran : took,
			.piece_took = t->piece_took,
			.piece = t->piece };
	}
	t->clock = NULL;
}
