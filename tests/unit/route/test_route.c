/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes of a port: the longest prefix, what is refused, and a model that looks at every bit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "compiler.h"
#include "route.h"

static struct route_prefix
prefix(const char *text)
{
	struct route_prefix p;

	if (route_prefix_parse(text, &p) != 0)
		fail_msg("%s", text);
	return p;
}

static struct route_addr
addr(const char *text)
{
	return prefix(text).net;
}

static struct route
route(const char *to, const char *via)
{
	return (struct route){ .to = prefix(to), .via = addr(via), .source = ROUTE_ADDED };
}

/* A port 192.0.2.1/24 with fd00::1/64 and a link-local address. */
static struct route_table
port(void)
{
	const struct route_addr v4 = addr("192.0.2.1"), v6 = addr("fd00::1"), ll = addr("fe80::1");
	struct route_table t = { 0 };

	assert_int_equal(route_connect(&t, &v4, 24), ROUTE_OK);
	assert_int_equal(route_connect(&t, &v6, 64), ROUTE_OK);
	assert_int_equal(route_connect(&t, &ll, 10), ROUTE_OK);
	return t;
}

static enum route_fault
add(struct route_table *t, const char *to, const char *via)
{
	const struct route r = route(to, via);

	return route_add(t, &r, NULL);
}

/* Next hop of an address as text: "-" on the link, "" nowhere. */
static const char *
hop(const struct route_table *t, const char *dest)
{
	static char buf[ROUTE_TEXT];
	const struct route_addr to = addr(dest);
	const struct route *r = route_find(t, &to);

	if (r == NULL)
		return "";
	return r->source == ROUTE_CONNECTED ? "-" : route_addr_text(&r->via, buf);
}

static void
prefixes_as_text(void **state UNUSED)
{
	static const char *const good[][2] = { { "10.80.0.0/16", "10.80.0.0/16" },
		{ "0.0.0.0/0", "0.0.0.0/0" }, { "10.1.2.3", "10.1.2.3/32" }, { "::/0", "::/0" },
		{ "fd80::/64", "fd80::/64" }, { "fd80::7", "fd80::7/128" },
		{ "10.80.0.0/016", "10.80.0.0/16" } };
	static const char *const bad[] = { "", "/", "10.80.0.0/", "10.80.0.0/33", "fd80::/129",
		"10.80/16", "10.80.0.0/16x", "10.80.0.0/-1", "x/8", "10.80.0.0 /16",
		"10.80.0.0/0016", "10.80.0.0//8",
		"1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111:1111/64" };
	struct route_prefix p;
	char buf[ROUTE_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		p = prefix(good[i][0]);
		assert_string_equal(route_prefix_text(&p, buf), good[i][1]);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		print_message("# %s\n", bad[i]);
		assert_int_not_equal(route_prefix_parse(bad[i], &p), 0);
	}
}

static void
RT_03_longest_prefix(void **state UNUSED)
{
	static const char *const rows[][2] = { { "0.0.0.0/0", "192.0.2.254" },
		{ "198.51.0.0/16", "192.0.2.252" }, { "198.51.100.0/24", "192.0.2.253" },
		{ "198.51.100.7/32", "192.0.2.251" } };

	/* The order of the list does not matter: each rotation, both ways. */
	for (size_t turn = 0; turn < 2 * ARRAY_LEN(rows); turn++) {
		struct route_table t = port();

		for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
			const size_t k = (turn < ARRAY_LEN(rows) ? turn + i : 2 * turn - i) %
					 ARRAY_LEN(rows);

			assert_int_equal(add(&t, rows[k][0], rows[k][1]), ROUTE_OK);
		}
		assert_string_equal(hop(&t, "198.51.100.7"), "192.0.2.251");
		assert_string_equal(hop(&t, "198.51.100.8"), "192.0.2.253");
		assert_string_equal(hop(&t, "198.51.1.1"), "192.0.2.252");
		assert_string_equal(hop(&t, "203.0.113.1"), "192.0.2.254");
		assert_string_equal(hop(&t, "192.0.2.77"), "-");
		assert_string_equal(hop(&t, "fd00::9"), "-");
		assert_string_equal(hop(&t, "fe80::9"), "-");
		assert_string_equal(hop(&t, "fd01::9"), ""); /* 0.0.0.0/0 is IPv4's */
		route_fini(&t);
	}
}

static void
RT_09_bad_routes(void **state UNUSED)
{
	static const struct {
		const char *to, *via;
		enum route_fault fault;
		bool is_via;
	} rows[] = { { "10.0.0.0/8", "203.0.113.9", ROUTE_OFF_LINK, true },
		{ "10.0.0.0/8", "192.0.2.1", ROUTE_OWN, true },
		{ "fd01::/16", "fe80::1", ROUTE_OWN, true },
		{ "10.0.0.0/8", "fd00::9", ROUTE_FAMILY, true },
		{ "10.0.0.0/8", "192.0.2.0", ROUTE_NO_HOST, true },
		{ "10.0.0.0/8", "192.0.2.255", ROUTE_NO_HOST, true },
		{ "fd01::/16", "fd00::", ROUTE_NO_HOST, true },
		{ "10.0.0.0/8", "0.0.0.0", ROUTE_NO_HOST, true },
		{ "10.0.0.0/8", "224.0.0.1", ROUTE_NO_HOST, true },
		{ "10.0.0.1/8", "192.0.2.9", ROUTE_HOST_BITS, false },
		{ "192.0.2.0/24", "192.0.2.9", ROUTE_OWN_NET, false },
		{ "198.51.0.0/16", "192.0.2.9", ROUTE_TWICE, false } };
	struct route_table t = port();

	assert_int_equal(add(&t, "198.51.0.0/16", "192.0.2.9"), ROUTE_OK);
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const uint32_t n = t.n;

		print_message("# %s via %s\n", rows[i].to, rows[i].via);
		assert_int_equal(add(&t, rows[i].to, rows[i].via), rows[i].fault);
		assert_int_equal(route_fault_is_via(rows[i].fault), rows[i].is_via);
		assert_true(strlen(route_fault_text(rows[i].fault)) > 0);
		assert_int_equal(t.n, n);
	}
	assert_string_equal(hop(&t, "198.51.0.1"), "192.0.2.9");
	route_fini(&t);
}

static void
replaced_and_deleted(void **state UNUSED)
{
	const struct route_prefix to = prefix("198.51.0.0/16"), own = prefix("192.0.2.0/24");
	const struct route other = route("198.51.0.0/16", "192.0.2.8");
	const struct route_addr first = addr("192.0.2.9");
	struct route_table t = port();
	struct route old;
	char buf[ROUTE_TEXT];

	assert_int_equal(route_del(&t, &to, NULL), ROUTE_NONE);
	assert_int_equal(route_del(&t, &own, NULL), ROUTE_OWN_NET);
	assert_int_equal(add(&t, "198.51.0.0/16", "192.0.2.9"), ROUTE_OK);
	assert_int_equal(route_add(&t, &other, &old), ROUTE_OK);
	assert_string_equal(route_addr_text(&old.via, buf), "192.0.2.9");
	assert_string_equal(hop(&t, "198.51.0.1"), "192.0.2.8");
	assert_int_equal(route_del(&t, &to, &first), ROUTE_OTHER_VIA);
	assert_int_equal(route_del(&t, &to, &other.via), ROUTE_OK);
	assert_string_equal(hop(&t, "198.51.0.1"), "");
	assert_int_equal(t.n, 3);
	route_fini(&t);
}

static void
as_many_as_there_is_room_for(void **state UNUSED)
{
	struct route_table t = port();
	char to[ROUTE_TEXT];

	for (uint32_t i = t.n; i < ROUTE_MAX; i++) {
		snprintf(to, sizeof(to), "10.%u.%u.0/24", i >> 8, i & 255);
		assert_int_equal(add(&t, to, "192.0.2.9"), ROUTE_OK);
	}
	assert_int_equal(add(&t, "10.200.0.0/24", "192.0.2.9"), ROUTE_FULL);
	assert_string_equal(hop(&t, "10.3.255.7"), "192.0.2.9");
	route_fini(&t);
}

/* ---- a model: a list without order, compared bit by bit -------------------------------------- */

struct model {
	struct route v[64];
	uint32_t n;
};

static bool
bit(const struct route_addr *a, unsigned int i)
{
	return (a->addr[i / 8] >> (7 - i % 8) & 1) != 0;
}

static bool
model_holds(const struct route_prefix *p, const struct route_addr *a)
{
	bool same = p->net.family == a->family;

	for (unsigned int i = 0; i < p->bits; i++)
		same = same && bit(&p->net, i) == bit(a, i);
	return same;
}

static const struct route *
model_find(const struct model *m, const struct route_addr *a)
{
	const struct route *best = NULL;

	for (uint32_t i = 0; i < m->n; i++) {
		if (model_holds(&m->v[i].to, a) &&
			(best == NULL || m->v[i].to.bits > best->to.bits))
			best = &m->v[i];
	}
	return best;
}

static struct route
random_route(unsigned int *seed)
{
	struct route r = { .source = ROUTE_ADDED };
	const bool ipv6 = rand_r(seed) % 2 != 0;

	r.via = addr(ipv6 ? "fd00::5" : "192.0.2.5");
	r.via.addr[ipv6 ? 15 : 3] = (uint8_t)(2 + rand_r(seed) % 200);
	r.to.net.family = r.via.family;
	r.to.bits = (uint8_t)(rand_r(seed) % (ipv6 ? 129 : 33));
	/* Few different bits, so that prefixes lie in one another. */
	for (unsigned int i = 0; i < r.to.bits; i++)
		r.to.net.addr[i / 8] |= (uint8_t)((rand_r(seed) % 8 == 0) << (7 - i % 8));
	return r;
}

static void
step(struct route_table *t, struct model *m, unsigned int *seed)
{
	const struct route r = random_route(seed);

	if (rand_r(seed) % 3 != 0 && m->n < ARRAY_LEN(m->v)) {
		struct route old;
		const enum route_fault f = route_add(t, &r, &old);
		uint32_t i = 0;

		if (f != ROUTE_OK)
			return;
		while (i < m->n && memcmp(&m->v[i].to, &r.to, sizeof(r.to)) != 0)
			i++;
		assert_int_equal(old.to.net.family != 0, i < m->n);
		m->v[i] = r;
		m->n += i == m->n;
	} else if (m->n > 3) {
		const uint32_t i = 3 + (uint32_t)rand_r(seed) % (m->n - 3);

		assert_int_equal(route_del(t, &m->v[i].to, NULL), ROUTE_OK);
		m->v[i] = m->v[--m->n];
	}
}

static void
the_table_is_the_model(void **state UNUSED)
{
	unsigned int seed = 7;

	for (unsigned int round = 0; round < 50; round++) {
		struct route_table t = port();
		struct model m = { .n = 3 };

		memcpy(m.v, t.v, 3 * sizeof(m.v[0]));
		for (unsigned int i = 0; i < 200; i++) {
			const struct route *a, *b;
			struct route_addr dest;

			step(&t, &m, &seed);
			assert_int_equal(t.n, m.n);
			dest = random_route(&seed).to.net;
			a = route_find(&t, &dest);
			b = model_find(&m, &dest);
			assert_int_equal(a == NULL, b == NULL);
			if (a != NULL)
				assert_memory_equal(a, b, sizeof(*a));
		}
		route_fini(&t);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(prefixes_as_text),
		cmocka_unit_test(RT_03_longest_prefix),
		cmocka_unit_test(RT_09_bad_routes),
		cmocka_unit_test(replaced_and_deleted),
		cmocka_unit_test(as_many_as_there_is_room_for),
		cmocka_unit_test(the_table_is_the_model),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
