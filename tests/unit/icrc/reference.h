/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TEST_ICRC_REFERENCE_H
#define TEST_ICRC_REFERENCE_H
/**
 * @file reference.h  The ICRC as the rules say it, a bit at a time, and bytes at random.
 *
 * Owner:   test_icrc.c.
 * Memory:  static.
 * Depends: nothing.
 * Spec:    ICRC-01..03.
 */
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { PACKET_MAX = 4300 };

/** The plainest CRC-32 there is, a bit at a time; the state is not complemented. */
static inline uint32_t
bitwise(uint32_t crc, const void *buf, uint64_t len)
{
	const uint8_t *p = buf;

	for (uint64_t i = 0; i < len; i++) {
		crc ^= p[i];
		for (int bit = 0; bit < 8; bit++)
			crc = (crc & 1) != 0 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return crc;
}

/** ICRC straight from the text of the rules: dummy bytes, masked copy, seed, complement. */
static inline uint32_t
reference(const uint8_t *l3, bool ipv6, uint32_t len)
{
	static const uint8_t v4[] = { 1, 8, 10, 11, 26, 27, 32 };
	static const uint8_t v6[] = { 1, 2, 3, 7, 46, 47, 52 };
	static uint8_t b[8 + PACKET_MAX];

	memset(b, 0xff, 8);
	memcpy(b + 8, l3, len);
	if (ipv6)
		b[8] |= 0x0f;
	for (int i = 0; i < 7; i++)
		b[8 + (ipv6 ? v6[i] : v4[i])] = 0xff;
	return ~bitwise(0xffffffff, b, 8 + len);
}

static uint64_t seed = 0x9e3779b97f4a7c15;

static inline uint8_t
random_byte(void)
{
	seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint8_t)(seed >> 56);
}

#endif
