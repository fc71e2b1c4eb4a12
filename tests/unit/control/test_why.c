/* SPDX-License-Identifier: BSD-3-Clause */
/* Why memory was refused, as the operator reads it and as applications do. */
#include "fake.h"

#include <stdio.h>
#include <string.h>

#include "control_state.h"
#include "mem_window.h"
#include "why.h"

#define OWN   0x3001u    /* client 3's */
#define THEIR 0x400777u  /* client 4's */
#define OURS  0x5000999u /* the operator's, named in the configuration's way */

static const struct owner three = { .id = 3 };

static void
pd_make(const char *name)
{
	struct conf_pd conf = { "" };
	struct refusal r;

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	assert_int_equal(object_pd_create(&fake.c->objects, &conf, &r), 0);
}

static uint32_t
pd_id(const char *name)
{
	struct refusal r;
	const struct object_pd *pd = object_pd_find(&fake.c->objects, name, &r);

	assert_non_null(pd);
	return pd->id;
}

static struct object_mr *
mr_make(const char *name, const char *pd, uint32_t key, uint64_t addr)
{
	struct conf_mr conf = { .given = CONF_MR_ADDR | CONF_MR_RKEY,
		.length = 4096,
		.addr = addr,
		.rkey = key,
		.access = ACCESS_LOCAL_WRITE };
	struct object_mr *mr;
	struct refusal r;

	snprintf(conf.name, sizeof(conf.name), "%s", name);
	snprintf(conf.pd, sizeof(conf.pd), "%s", pd);
	assert_int_equal(object_mr_create_in(&fake.c->objects, &conf, NULL, &mr, &r), 0);
	return mr;
}

static void
regions_make(void)
{
	pd_make("client 3 pd 1");
	pd_make("client 4 pd 1");
	mr_make("client 3 mr 2", "client 3 pd 1", OWN, 0x10000);
	mr_make("client 4 mr 2", "client 4 pd 1", THEIR, 0x20000);
	mr_make("ours", "pd0", OURS, 0x30000);
}

/* A packet to client 3's QP asked for this. */
static struct mem_refusal
asked(uint32_t key, uint64_t va, uint32_t length)
{
	struct mem_refusal m = { .va = va,
		.length = length,
		.key = key,
		.pd = pd_id("client 3 pd 1"),
		.need = ACCESS_REMOTE_WRITE };

	m.why = (uint8_t)mem_refusal_look(fake.env.mem, 0, &m);
	return m;
}

static json_t *
seen(const struct owner *viewer, const struct mem_refusal *m)
{
	const struct why_view view = { .owner = viewer, .time_ns = fake.now };

	return why_memory(&fake.c->diagnose, &view, m);
}

static char *
told(const struct owner *viewer, const struct mem_refusal *m)
{
	json_t *v = seen(viewer, m);
	char *text = json_dumps(v, 0);

	json_decref(v);
	assert_non_null(text);
	return text;
}

/* Another's key is to an application what a key is that nobody has. */
static void
key_of_another(void **state UNUSED)
{
	struct mem_refusal m, none;
	json_t *all, *theirs, *nobodys;

	regions_make();
	m = asked(THEIR, 0x77000, 8);
	none = asked(0x990000, 0x77000, 8);
	assert_int_equal(m.why, MEM_WHY_OTHER_PD);
	all = seen(NULL, &m);
	assert_string_equal(text_of(all, "why"), "OTHER_PD");
	assert_string_equal(text_of(json_object_get(all, "region"), "name"), "client 4 mr 2");
	theirs = seen(&three, &m);
	nobodys = seen(&three, &none);
	assert_string_equal(text_of(theirs, "why"), "UNKNOWN_KEY");
	assert_string_equal(text_of(theirs, "text"), "R_Key 0x400777 is no region's");
	/* But for the key itself, no difference is to be seen. */
	json_object_del(theirs, "rkey");
	json_object_del(theirs, "text");
	json_object_del(nobodys, "rkey");
	json_object_del(nobodys, "text");
	assert_true(json_equal(theirs, nobodys));
	json_decref(all);
	json_decref(theirs);
	json_decref(nobodys);
}

/* A key like another's, or like the operator's: only the operator is told whose. */
static void
key_like_another(void **state UNUSED)
{
	static const uint32_t keys[] = { THEIR ^ 2, OURS ^ 2 };
	static const char *const names[] = { "client 4 mr 2", "ours" };

	regions_make();
	for (int i = 0; i < 2; i++) {
		struct mem_refusal m = asked(keys[i], 0x77000, 8);
		char *all = told(NULL, &m), *own = told(&three, &m);

		assert_non_null(strstr(all, names[i]));
		assert_null(strstr(own, names[i]));
		assert_non_null(strstr(own, "\"meant\": null"));
		free(all);
		free(own);
	}
}

/* What was another's is as unknown as what is. */
static void
deregistered_region_of_another(void **state UNUSED)
{
	struct mem_refusal m;
	struct refusal refusal;
	char *all, *own;

	regions_make();
	assert_int_equal(object_mr_destroy(&fake.c->objects,
				 (struct object_mr *)(void *)names_find(
					 &fake.c->objects.mrs, "client 4 mr 2"),
				 NULL, &refusal),
		0);
	m = asked(THEIR, 0x20000, 8);
	all = told(NULL, &m);
	own = told(&three, &m);
	assert_non_null(strstr(all, "was that of client 4 mr 2"));
	assert_non_null(strstr(own, "R_Key 0x400777 is no region's"));
	assert_non_null(strstr(own, "\"region\": null"));
	free(all);
	free(own);
}

/* Of its own it reads everything but the dataplane's names. */
static void
own_region(void **state UNUSED)
{
	struct mem_refusal m;
	json_t *v;

	regions_make();
	m = asked(OWN, 0x10ff0, 32);
	v = seen(&three, &m);
	assert_string_equal(text_of(v, "why"), "TOO_LONG");
	assert_int_equal(number_of(v, "excess"), 16);
	assert_non_null(strstr(text_of(v, "text"), "16 bytes behind the end of the region with key "
						   "0x3001"));
	assert_null(json_object_get(json_object_get(v, "region"), "name"));
	assert_string_equal(text_of(json_object_get(v, "region"), "addr"), "0x10000");
	json_decref(v);
	m = asked(OWN ^ 2, 0x10000, 8);
	v = seen(&three, &m);
	assert_string_equal(text_of(json_object_get(v, "meant"), "rkey"), "0x3001");
	json_decref(v);
}

static json_t *
seen_at(ns_t when, const struct mem_refusal *m)
{
	const struct why_view view = { .time_ns = when };

	return why_memory(&fake.c->diagnose, &view, m);
}

/* The region took other addresses, or the window the key's index, after the failure. */
static void
what_came_later(void **state UNUSED)
{
	struct conf_mr conf = { .addr = 0x50000, .length = 4096, .access = ACCESS_LOCAL_WRITE };
	struct object_mw *mw;
	struct object_mr *mr;
	struct refusal r;
	struct mem_refusal m;
	json_t *v;
	ns_t then;

	regions_make();
	mr = object_mr_find(&fake.c->objects, "client 3 mr 2", &r);
	m = asked(0x990000, 0x10000, 8);
	snprintf(conf.pd, sizeof(conf.pd), "client 3 pd 1");
	then = fake.c->env.now;
	fake.now += TIME_NS_PER_MS;
	control_poll(fake.c, fake.now);
	assert_int_equal(object_mr_rereg(&fake.c->objects, mr, &conf, NULL, &r), 0);
	v = seen_at(then, &m);
	assert_string_equal(text_of(json_object_get(v, "meant"), "addr"), "0x10000");
	json_decref(v);
	m.va = 0x50000;
	v = seen_at(then, &m);
	assert_true(json_is_null(json_object_get(v, "meant")));
	json_decref(v);
	v = seen_at(fake.c->env.now, &m);
	assert_string_equal(text_of(json_object_get(v, "meant"), "addr"), "0x50000");
	json_decref(v);

	assert_int_equal(object_mw_alloc(&fake.c->objects, mr->pd, 2, "late", &mw, &r), 0);
	m.key = mw->window->r.key ^ 1;
	v = seen_at(then, &m);
	assert_true(json_is_null(json_object_get(v, "region")));
	json_decref(v);
	v = seen_at(fake.c->env.now, &m);
	assert_string_equal(text_of(json_object_get(v, "region"), "name"), "late");
	json_decref(v);
}

/* A fast-register region is bound as a window is, and is called by its own name. */
static void
fast_register_regions(void **state UNUSED)
{
	static const enum mem_why whys[] = { MEM_WHY_BOUND, MEM_WHY_NEW_KEY, MEM_WHY_NO_LOCAL_WRITE,
		MEM_WHY_NO_LENGTH, MEM_WHY_WINDOW_ACCESS, MEM_WHY_UNBOUND };

	for (size_t i = 0; i < ARRAY_LEN(whys); i++) {
		struct mem_refusal m = {
			.key = 0x12345600, .by = MEM_BY_BIND, .why = (uint8_t)whys[i]
		};
		char *text = told(NULL, &m);

		assert_non_null(strstr(text, "window"));
		assert_non_null(strstr(text, "0x12345600"));
		free(text);
		m.fast = true;
		text = told(NULL, &m);
		assert_null(strstr(text, "window"));
		assert_non_null(strstr(text, "fast-register region"));
		free(text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(key_of_another, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(key_like_another, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(
			deregistered_region_of_another, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(fast_register_regions, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(own_region, fake_setup, fake_teardown),
		cmocka_unit_test_setup_teardown(what_came_later, fake_setup, fake_teardown),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
