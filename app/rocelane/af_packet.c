/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's af_packet finds frame i of its ring at i * framesz; the kernel begins each block anew.
 * With a framesz that does not divide blocksz the port falls silent at the end of the first block,
 * in both directions, and nothing tells.
 */
#include "af_packet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conf.h"
#include "log.h"

enum { BLOCKSZ = 4096, FRAMESZ = 2048, FRAMECNT = 512 }; /* DPDK's defaults */

/* Where the value of ",KEY=" stands in the argument, or NULL. */
static const char *
value_at(const char *arg, const char *key)
{
	const char *at = strstr(arg, key);

	return at != NULL ? at + strlen(key) : NULL;
}

static unsigned long
value_of(const char *arg, const char *key, unsigned long otherwise)
{
	const char *at = value_at(arg, key);

	return at != NULL ? strtoul(at, NULL, 0) : otherwise;
}

/* The argument with that key's value changed, or with the key added. Takes `arg` over. */
static char *
with_value(char *arg, const char *key, unsigned long value)
{
	const char *at = value_at(arg, key), *rest = "";
	char *out = NULL;
	int n;

	if (arg == NULL)
		return NULL;
	if (at == NULL) {
		n = asprintf(&out, "%s%s%lu", arg, key, value);
	} else {
		rest = at + strcspn(at, ",");
		n = asprintf(&out, "%.*s%lu%s", (int)(at - arg), arg, value, rest);
	}
	free(arg);
	return n >= 0 ? out : NULL;
}

static bool
is_af_packet(const char *arg)
{
	return strstr(arg, "net_af_packet") != NULL || strstr(arg, "eth_af_packet") != NULL;
}

uint32_t
af_packet_framesz(const char *arg)
{
	unsigned long frame = value_of(arg, ",framesz=", FRAMESZ);
	unsigned long block = value_of(arg, ",blocksz=", BLOCKSZ);

	if (!is_af_packet(arg) || frame == 0 || block > UINT32_MAX || frame > block)
		return 0;
	return (uint32_t)conf_af_packet_framesz(frame, block);
}

char *
af_packet_mend(const char *arg)
{
	const uint32_t fits = af_packet_framesz(arg);
	const unsigned long frame = value_of(arg, ",framesz=", FRAMESZ);
	const unsigned long block = value_of(arg, ",blocksz=", BLOCKSZ);
	const unsigned long count = value_of(arg, ",framecnt=", FRAMECNT);
	unsigned long whole;
	char *out = strdup(arg);

	if (fits == 0 || fits == frame || out == NULL)
		return out;
	log_warn(
		"%s: framesz %lu does not divide blocksz %lu: af_packet would stop after %lu frames; "
		"taking framesz=%u",
		arg, frame, block, block / frame, fits);
	whole = (count + block / fits - 1) / (block / fits) * (block / fits);
	out = with_value(out, ",framesz=", fits);
	return whole == count || out == NULL ? out : with_value(out, ",framecnt=", whole);
}
