/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "af_packet.h"
#include "args.h"
#include "lcores.h"
#include "log.h"

#define LCORES_TEXT 4096

static int
add(struct eal_args *a, const char *text)
{
	char **grown = realloc(a->own, sizeof(*grown) * ((size_t)a->argc + 1));

	if (grown == NULL)
		return -ENOMEM;
	a->own = grown;
	grown[a->argc] = af_packet_mend(text);
	if (grown[a->argc] == NULL)
		return -ENOMEM;
	a->argc++;
	return 0;
}

/* Does the user place lcores himself? */
static bool
names_lcores(char *const *argv, int argc)
{
	for (int i = 0; i < argc; i++) {
		if (strncmp(argv[i], "-l", 2) == 0 || strncmp(argv[i], "--lcores", 8) == 0 ||
			strncmp(argv[i], "-c", 2) == 0)
			return true;
	}
	return false;
}

static int
lcores_text(const struct conf *conf, char *buf, size_t room)
{
	const uint32_t count = conf->lcores.n_workers + 1;
	uint32_t lcore[CONF_MAX_WORKERS + 1] = { conf->lcores.control };
	int cpu[CONF_MAX_WORKERS + 1];
	cpu_set_t allowed;
	size_t at = 0;
	bool moved = false;

	CPU_ZERO(&allowed);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0 || CPU_COUNT(&allowed) == 0)
		CPU_SET(0, &allowed);
	for (uint32_t i = 1; i < count; i++)
		lcore[i] = conf->lcores.workers[i - 1];
	lcores_place(&allowed, lcore, count, cpu);
	for (uint32_t i = 0; i < count; i++) {
		int n = snprintf(
			buf + at, room - at, "%s%u@%d", i == 0 ? "" : ",", lcore[i], cpu[i]);

		if (n < 0 || (size_t)n >= room - at)
			return -E2BIG;
		at += (size_t)n;
		moved |= cpu[i] != (int)lcore[i];
	}
	if (moved)
		log_warn("not every lcore has the CPU of its number: placed as %s", buf);
	return 0;
}

int
eal_args_build(const struct conf *conf, const struct args *args, struct eal_args *out)
{
	char text[LCORES_TEXT + 16] = "--lcores=";
	char main_lcore[32];
	int rc;

	memset(out, 0, sizeof(*out));
	rc = add(out, "rocelane");
	if (rc == 0 && !names_lcores(conf->eal, (int)conf->n_eal) &&
		!names_lcores(args->eal_argv, args->eal_argc)) {
		rc = lcores_text(conf, text + strlen(text), LCORES_TEXT);
		snprintf(main_lcore, sizeof(main_lcore), "--main-lcore=%u", conf->lcores.control);
		if (rc == 0)
			rc = add(out, text);
		if (rc == 0)
			rc = add(out, main_lcore);
	}
	for (uint32_t i = 0; rc == 0 && i < conf->n_eal; i++)
		rc = add(out, conf->eal[i]);
	for (int i = 0; rc == 0 && i < args->eal_argc; i++)
		rc = add(out, args->eal_argv[i]);
	if (rc == 0) {
		out->argv = calloc((size_t)out->argc + 1, sizeof(*out->argv));
		rc = out->argv != NULL ? 0 : -ENOMEM;
	}
	if (rc == 0)
		memcpy(out->argv, out->own, (size_t)out->argc * sizeof(*out->argv));
	else
		eal_args_free(out);
	return rc;
}

void
eal_args_free(struct eal_args *a)
{
	for (int i = 0; i < a->argc; i++)
		free(a->own[i]);
	free(a->own);
	free(a->argv);
	memset(a, 0, sizeof(*a));
}
