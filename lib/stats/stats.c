/* SPDX-License-Identifier: BSD-3-Clause */
#include "stats.h"
#include "load.h"
#include "invariant.h"

#include <string.h>

const struct stats_info stats_info[STAT_MAX] = {
#define COUNTER(name, unit, drop, help) [STAT_##name] = { #name, unit, help, drop },
#include "counters.def"
#undef COUNTER
};

const char *const stats_stage_names[STAGE_MAX] = {
	[STAGE_RX] = "rx",
	[STAGE_PARSE] = "parse",
	[STAGE_ICRC] = "icrc",
	[STAGE_STEER] = "steer",
	[STAGE_RESPOND] = "respond",
	[STAGE_TIMERS] = "timers",
	[STAGE_DOORBELLS] = "doorbells",
	[STAGE_FLUSH] = "flush",
	[STAGE_REQUEST] = "request",
	[STAGE_TX] = "tx",
	[STAGE_MAILBOX] = "mailbox",
};

/* One line a bit, so that a row out of place is named by the compiler. */
#define SYNDROME(bit)                                                                  \
	_Static_assert((int)STAT_rx_syndrome_##bit == (int)STAT_rx_syndrome_0 + (bit), \
		"syndrome counters in a row")
SYNDROME(1);
SYNDROME(2);
SYNDROME(3);
SYNDROME(4);
SYNDROME(5);
SYNDROME(6);
SYNDROME(7);
SYNDROME(8);
SYNDROME(9);
SYNDROME(10);
SYNDROME(11);
SYNDROME(12);
SYNDROME(13);
SYNDROME(14);
SYNDROME(15);
SYNDROME(16);
SYNDROME(17);
SYNDROME(18);
SYNDROME(19);
SYNDROME(20);
SYNDROME(21);
SYNDROME(22);
SYNDROME(23);
SYNDROME(24);
SYNDROME(25);
SYNDROME(26);
SYNDROME(27);
SYNDROME(28);
SYNDROME(29);
SYNDROME(30);
SYNDROME(31);

enum stats_counter
stats_of_syndrome(unsigned int bit)
{
	ASSERT(bit < 32);
	return (enum stats_counter)(STAT_rx_syndrome_0 + (bit & 31));
}

enum stats_counter
stats_by_name(const char *name)
{
	for (unsigned int i = 0; i < STAT_MAX; i++) {
		if (strcmp(stats_info[i].name, name) == 0)
			return (enum stats_counter)i;
	}
	return STAT_MAX;
}

void
stats_sum(struct stats_block *into, const struct stats_block *from)
{
	for (unsigned int i = 0; i < STAT_MAX; i++)
		into->c[i] += from->c[i];
}
