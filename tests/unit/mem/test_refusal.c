/* SPDX-License-Identifier: BSD-3-Clause */
/* Why memory is refused: each cause, by table; what is refused is what mem_check() refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mem_refusal.h"

enum { PD = 3, OTHER = 4 };
#define KEY   0x1001u
#define THEIR 0x2002u
#define GONE  0x3003u
#define ROOM  0x1000u
#define VA    UINT64_C(0x10000)
#define HIGH  (UINT64_MAX - ROOM) /* a region that ends one byte before the end of all addresses */

static uint8_t memory[ROOM];

struct bed {
	struct mem_table *t;
	struct mem_region own, their, gone, high;
};

static struct mem_region
region(uint32_t key, uint32_t pd, uint64_t va, uint8_t access)
{
	return (struct mem_region){
		.va = va, .length = ROOM, .host = memory, .key = key, .pd = pd, .access = access
	};
}

static void
bed_make(struct bed *b)
{
	b->t = mem_table_create(8);
	assert_non_null(b->t);
	b->own = region(KEY, PD, VA, ACCESS_LOCAL_WRITE | ACCESS_REMOTE_READ);
	b->their = region(THEIR, OTHER, VA, ACCESS_REMOTE_READ);
	b->gone = region(GONE, PD, VA, ACCESS_REMOTE_READ);
	b->high = region(KEY + 1, PD, HIGH, ACCESS_REMOTE_READ);
	assert_int_equal(mem_table_add(b->t, &b->own), 0);
	assert_int_equal(mem_table_add(b->t, &b->their), 0);
	assert_int_equal(mem_table_add(b->t, &b->gone), 0);
	assert_int_equal(mem_table_add(b->t, &b->high), 0);
	mem_invalidate(b->t, GONE);
}

static const struct row {
	const char *name;
	uint32_t key;
	uint64_t va;
	uint64_t length;
	uint8_t need;
	enum mem_why why;
	uint64_t excess;
} rows[] = {
	{ "all of it", KEY, VA, ROOM, ACCESS_REMOTE_READ, MEM_WHY_NONE, 0 },
	{ "nothing, at its end", KEY, VA + ROOM, 0, 0, MEM_WHY_NONE, 0 },
	{ "no such key", KEY ^ 0x10, VA, 1, 0, MEM_WHY_UNKNOWN_KEY, 0 },
	{ "revoked", GONE, VA, 1, 0, MEM_WHY_REVOKED, 0 },
	{ "another PD's", THEIR, VA, 1, ACCESS_REMOTE_READ, MEM_WHY_OTHER_PD, 0 },
	{ "another PD's, and too long", THEIR, VA, ROOM + 1, 0, MEM_WHY_OTHER_PD, 0 },
	{ "one byte below", KEY, VA - 1, 1, 0, MEM_WHY_BELOW, 1 },
	{ "from below into it", KEY, VA - 8, 64, 0, MEM_WHY_BELOW, 8 },
	{ "address 0", KEY, 0, 1, 0, MEM_WHY_BELOW, VA },
	{ "one byte too long", KEY, VA, ROOM + 1, 0, MEM_WHY_TOO_LONG, 1 },
	{ "its last byte, and one more", KEY, VA + ROOM - 1, 2, 0, MEM_WHY_TOO_LONG, 1 },
	{ "the longest of all", KEY, VA, UINT32_MAX, 0, MEM_WHY_TOO_LONG, UINT32_MAX - ROOM },
	{ "a bind of more than 32 bits", KEY, VA, UINT64_C(1) << 32, 0, MEM_WHY_TOO_LONG,
		(UINT64_C(1) << 32) - ROOM },
	{ "right behind it", KEY, VA + ROOM, 1, 0, MEM_WHY_BEYOND, 1 },
	{ "far behind it", KEY, VA + 3 * ROOM, 16, 0, MEM_WHY_BEYOND, 2 * ROOM + 16 },
	{ "nothing, behind it", KEY, VA + ROOM + 1, 0, 0, MEM_WHY_BEYOND, 1 },
	{ "over the end of 64 bits", KEY, UINT64_MAX, 2, 0, MEM_WHY_WRAPS, 0 },
	{ "up to the end of 64 bits", KEY + 1, UINT64_MAX, 1, 0, MEM_WHY_BEYOND, 1 },
	{ "a right that is not there", KEY, VA, 1, ACCESS_REMOTE_WRITE, MEM_WHY_NO_RIGHT, 0 },
	{ "one of two", KEY, VA, 1, ACCESS_REMOTE_READ | ACCESS_REMOTE_ATOMIC, MEM_WHY_NO_RIGHT,
		0 },
	{ "too long comes first", KEY, VA, ROOM + 1, ACCESS_REMOTE_WRITE, MEM_WHY_TOO_LONG, 1 },
};

/* RESP-NAK-RAE-01..04 */
static void
every_cause(void **state UNUSED)
{
	struct bed b;

	bed_make(&b);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct row *r = &rows[i];
		struct mem_refusal m = {
			.va = r->va, .length = r->length, .key = r->key, .pd = PD, .need = r->need
		};
		enum mem_fault fault;
		uint8_t *host;

		print_message("# %s\n", r->name);
		m.why = (uint8_t)mem_refusal_look(b.t, 0, &m);
		assert_string_equal(mem_why_name((enum mem_why)m.why), mem_why_name(r->why));
		assert_true(mem_refusal_excess(&m) == r->excess);
		assert_int_equal(m.region, r->why != MEM_WHY_UNKNOWN_KEY);
		fault = mem_check(b.t, r->key, PD, r->va, r->length, r->need, &host);
		assert_int_equal(fault == MEM_OK, r->why == MEM_WHY_NONE);
	}
	mem_table_destroy(b.t);
}

/* RESP-NAK-RAE-04: the region is told though it is not to be had. */
static void
region_of_the_key(void **state UNUSED)
{
	struct mem_refusal m = { .va = 7, .length = 1, .key = THEIR, .pd = PD };
	struct bed b;

	bed_make(&b);
	assert_int_equal(mem_refusal_look(b.t, 0, &m), MEM_WHY_OTHER_PD);
	assert_true(m.region && m.region_va == VA && m.region_length == ROOM);
	assert_int_equal(m.have, ACCESS_REMOTE_READ);
	mem_table_destroy(b.t);
}

/* RESP-CLS-J-01 */
static void
invalidate(void **state UNUSED)
{
	struct mem_refusal m = { .key = KEY, .pd = PD };
	struct bed b;

	bed_make(&b);
	assert_int_equal(mem_refusal_look_invalidate(b.t, 0, &m), MEM_WHY_NOT_REVOCABLE);
	b.own.remote_invalidate = true;
	assert_int_equal(mem_refusal_look_invalidate(b.t, 0, &m), MEM_WHY_NONE);
	m.key = THEIR;
	assert_int_equal(mem_refusal_look_invalidate(b.t, 0, &m), MEM_WHY_OTHER_PD);
	m.key = KEY ^ 1 << 20;
	assert_int_equal(mem_refusal_look_invalidate(b.t, 0, &m), MEM_WHY_UNKNOWN_KEY);
	mem_table_destroy(b.t);
}

/* REQ-CLS-B-01: the first entry that is bad; one of length 0 never is. */
static void
list(void **state UNUSED)
{
	const struct ring_sge good = { VA, 8, KEY }, none = { 1, 0, 0xbad },
			      bad = { VA + ROOM - 4, 8, KEY };
	const struct ring_sge sges[] = { good, none, bad, none };
	struct mem_refusal m = { .pd = PD, .need = ACCESS_LOCAL_WRITE };
	struct bed b;

	bed_make(&b);
	mem_refusal_of_list(b.t, sges, 4, &m);
	assert_int_equal(m.why, MEM_WHY_TOO_LONG);
	assert_int_equal(m.sge, 2);
	assert_int_equal(m.sges, 4);
	assert_true(m.va == bad.addr && m.length == 8 && m.key == KEY);
	assert_true(mem_refusal_excess(&m) == 4);
	mem_refusal_of_list(b.t, sges, 2, &m);
	assert_int_equal(m.why, MEM_WHY_GONE); /* somebody was told no, and it is good now */
	mem_table_destroy(b.t);
}

/* Every cause has a name and a sentence of its own. */
static void
words(void **state UNUSED)
{
	for (int i = 0; i < MEM_WHY_MAX; i++)
		for (int k = 0; k < i; k++) {
			assert_string_not_equal(
				mem_why_name((enum mem_why)i), mem_why_name((enum mem_why)k));
			assert_string_not_equal(
				mem_why_text((enum mem_why)i), mem_why_text((enum mem_why)k));
		}
	assert_string_equal(mem_why_name(MEM_WHY_MAX), "UNKNOWN");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_cause),
		cmocka_unit_test(region_of_the_key),
		cmocka_unit_test(invalidate),
		cmocka_unit_test(list),
		cmocka_unit_test(words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
