/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: who finds one, and what is found while they come, change and go. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

#include "be.h"
#include "qp_ah.h"

enum { PD = 5, PORT = 3 };

/** A path whose MAC, IPv4 address and source port all say the same number. */
static struct wire_path
path(uint16_t n)
{
	struct wire_path p = { .ttl = 64, .sport = n };

	for (int i = 0; i < 6; i += 2)
		be16_store(p.dmac + i, n);
	be16_store(p.dst_ip, n);
	be16_store(p.dst_ip + 2, n);
	return p;
}

/** The number that a copy has in all of its parts; -1: parts of several. */
static int
number(const struct qp_ah_dest *d)
{
	const uint8_t *f = d->tmpl.bytes;
	const uint16_t n = be16_load(f);

	if (be16_load(f + 2) != n || be16_load(f + 4) != n || d->sport != n ||
		be16_load(f + 30) != n || be16_load(f + 32) != n || d->known != (n % 2 != 0))
		return -1;
	return n;
}

/* UD-05: found by whoever is of its protection domain, on its port, and by nobody else. */
static void
UD_05_whose_it_is(void **state UNUSED)
{
	struct qp_ah_table *t = qp_ah_table_create();
	const struct wire_path p = path(7), q = path(8);
	uint32_t h = qp_ah_add(t, PD, PORT, &p, 0, true), other;
	struct qp_ah_dest d = { 0 };

	assert_int_not_equal(h, 0);
	assert_true(qp_ah_copy(t, h, PD, PORT, &d));
	assert_int_equal(number(&d), 7);
	assert_false(qp_ah_copy(t, h, PD + 1, PORT, &d));
	assert_false(qp_ah_copy(t, h, PD, PORT + 1, &d));
	assert_false(qp_ah_copy(t, 0, PD, PORT, &d));
	assert_false(qp_ah_copy(t, 0, 0, 0, &d));
	assert_false(qp_ah_copy(t, h + 1, PD, PORT, &d));
	assert_false(qp_ah_copy(t, h + 0x10000, PD, PORT, &d));
	assert_false(qp_ah_copy(t, UINT32_MAX, PD, PORT, &d));
	qp_ah_change(t, h, &q, false);
	assert_true(qp_ah_copy(t, h, PD, PORT, &d));
	assert_int_equal(number(&d), 8);
	qp_ah_remove(t, h);
	assert_false(qp_ah_copy(t, h, PD, PORT, &d));
	other = qp_ah_add(t, PD, PORT, &p, 0, true);
	assert_int_not_equal(other, h);
	assert_false(qp_ah_copy(t, h, PD, PORT, &d));
	qp_ah_table_destroy(t);
}

/* All there can be, each another number; a free one is found again. */
static void
as_many_as_there_are(void **state UNUSED)
{
	struct qp_ah_table *t = qp_ah_table_create();
	uint32_t *h = calloc(QP_AH_MAX, sizeof(*h));
	const struct wire_path p = path(1);
	struct qp_ah_dest d = { 0 };

	for (uint32_t i = 0; i < QP_AH_MAX; i++) {
		h[i] = qp_ah_add(t, PD, PORT, &p, 0, true);
		assert_true(qp_ah_copy(t, h[i], PD, PORT, &d));
		assert_true(i == 0 || h[i] != h[i - 1]);
	}
	assert_int_equal(qp_ah_add(t, PD, PORT, &p, 0, true), 0);
	for (uint32_t i = 0; i < 3; i++) {
		const uint32_t old = h[10 * i];

		qp_ah_remove(t, old);
		h[10 * i] = qp_ah_add(t, PD, PORT, &p, 0, true);
		assert_int_not_equal(h[10 * i], 0);
		assert_int_equal(qp_ah_add(t, PD, PORT, &p, 0, true), 0);
		assert_false(qp_ah_copy(t, old, PD, PORT, &d));
	}
	for (uint32_t i = 0; i < QP_AH_MAX; i++)
		qp_ah_remove(t, h[i]);
	free(h);
	qp_ah_table_destroy(t);
}

/* The life of a slot comes round without ever being 0. */
static void
many_lives(void **state UNUSED)
{
	struct qp_ah_table *t = qp_ah_table_create();
	const struct wire_path p = path(1);
	struct qp_ah_dest d = { 0 };

	t->made = QP_AH_MAX - 1; /* one slot left */
	for (uint32_t i = 0; i < 70000; i++) {
		const uint32_t h = qp_ah_add(t, PD, PORT, &p, 0, true);

		assert_int_not_equal(h >> 16, 0);
		assert_true(qp_ah_copy(t, h, PD, PORT, &d));
		qp_ah_remove(t, h);
	}
	qp_ah_table_destroy(t);
}

static _Atomic uint32_t now_handle;
static atomic_bool over;

static void *
reader(void *arg)
{
	uintptr_t wrong = 0;
	struct qp_ah_dest d = { 0 };

	while (!atomic_load_explicit(&over, memory_order_relaxed)) {
		const uint32_t h = atomic_load(&now_handle);

		if (qp_ah_copy(arg, h, PD, PORT, &d))
			wrong += number(&d) < 0;
	}
	return (void *)wrong;
}

/* Never parts of two: a handle that changes again and again, ends, and whose slot has another. */
static void
changed_while_read(void **state UNUSED)
{
	struct qp_ah_table *t = qp_ah_table_create();
	struct wire_path p = path(1);
	pthread_t who;
	void *wrong;
	uint32_t h;

	t->made = QP_AH_MAX - 1; /* one slot for all */
	h = qp_ah_add(t, PD, PORT, &p, 0, true);
	atomic_store(&now_handle, h);
	assert_int_equal(pthread_create(&who, NULL, reader, t), 0);
	for (uint32_t i = 0; i < 1000000; i++) {
		const uint16_t n = (uint16_t)(i * 40503u);

		p = path(n);
		if (i % 7 == 0) {
			qp_ah_remove(t, h);
			h = qp_ah_add(t, PD, PORT, &p, 0, n % 2 != 0);
			atomic_store(&now_handle, h);
		} else {
			qp_ah_change(t, h, &p, n % 2 != 0);
		}
	}
	atomic_store(&over, true);
	pthread_join(who, &wrong);
	assert_null(wrong);
	qp_ah_table_destroy(t);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(UD_05_whose_it_is),
		cmocka_unit_test(as_many_as_there_are),
		cmocka_unit_test(many_lives),
		cmocka_unit_test(changed_while_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
