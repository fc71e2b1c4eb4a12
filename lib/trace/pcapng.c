/* SPDX-License-Identifier: BSD-3-Clause */
#include "pcapng.h"

#include <string.h>

enum { BLOCK_SECTION = 0x0a0d0d0a, BLOCK_INTERFACE = 1, BLOCK_STATISTICS = 5, BLOCK_PACKET = 6 };
enum { OPT_COMMENT = 1, OPT_IF_NAME = 2, OPT_IF_DROP = 5, OPT_IF_TSRESOL = 9, LINK_ETHERNET = 1 };

#define HEAD 8 /* of a block: type, length; the length stands at its end, too */

static uint8_t *
put(uint8_t *at, const void *p, uint32_t n)
{
	memcpy(at, p, n);
	return at + n;
}

static uint8_t *
put32(uint8_t *at, uint32_t v)
{
	return put(at, &v, sizeof(v));
}

static uint8_t *
put16(uint8_t *at, uint16_t v)
{
	return put(at, &v, sizeof(v));
}

static uint8_t *
put_padded(uint8_t *at, const void *p, uint32_t n)
{
	at = put(at, p, n);
	while (n++ % 4 != 0)
		*at++ = 0;
	return at;
}

static uint8_t *
put_option(uint8_t *at, uint16_t code, const void *p, uint16_t n)
{
	at = put16(at, code);
	at = put16(at, n);
	return put_padded(at, p, n);
}

static uint8_t *
put_time(uint8_t *at, uint64_t ns)
{
	at = put32(at, (uint32_t)(ns >> 32));
	return put32(at, (uint32_t)ns);
}

/* What is at `at` ends the block that begins at `block`. */
static uint32_t
finish(uint8_t *block, uint8_t *at, uint32_t type)
{
	const uint32_t total = (uint32_t)(at - block) + 4;

	put32(at, total);
	put32(block, type);
	put32(block + 4, total);
	return total;
}

uint32_t
trace_pcapng_section(uint8_t *to)
{
	const int64_t unknown = -1;
	uint8_t *at = put32(to + HEAD, 0x1a2b3c4d);

	at = put16(at, 1);
	at = put16(at, 0);
	at = put(at, &unknown, sizeof(unknown));
	return finish(to, at, BLOCK_SECTION);
}

uint32_t
trace_pcapng_interface(uint8_t *to, const char *name, uint32_t snap)
{
	const uint8_t nanoseconds = 9;
	uint8_t *at = put16(to + HEAD, LINK_ETHERNET);

	at = put16(at, 0);
	at = put32(at, snap);
	at = put_option(at, OPT_IF_NAME, name, (uint16_t)strnlen(name, 64));
	at = put_option(at, OPT_IF_TSRESOL, &nanoseconds, 1);
	at = put32(at, 0); /* end of options */
	return finish(to, at, BLOCK_INTERFACE);
}

uint32_t
trace_pcapng_packet(uint8_t *to, const struct pcapng_packet *p)
{
	uint8_t *at = put32(to + HEAD, p->interface);

	at = put_time(at, p->time_ns);
	at = put32(at, p->captured);
	at = put32(at, p->length);
	at = put_padded(at, p->data, p->captured);
	if (p->comment != NULL) {
		at = put_option(at, OPT_COMMENT, p->comment,
			(uint16_t)strnlen(p->comment, PCAPNG_COMMENT_MAX - 1));
		at = put32(at, 0);
	}
	return finish(to, at, BLOCK_PACKET);
}

uint32_t
trace_pcapng_lost(uint8_t *to, uint32_t interface, uint64_t time_ns, uint64_t lost)
{
	uint8_t *at = put32(to + HEAD, interface);

	at = put_time(at, time_ns);
	at = put_option(at, OPT_IF_DROP, &lost, sizeof(lost));
	at = put32(at, 0);
	return finish(to, at, BLOCK_STATISTICS);
}
