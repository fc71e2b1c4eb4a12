/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_test.h"

#include <inttypes.h>

/*
 * config/schema.json and the decoder's tables say the same: every key both ways, types, ranges,
 * enumerators, required keys, defaults, null; and every key has a description.
 */

static json_t *schema;

static int
load_schema(void **state UNUSED)
{
	schema = json_load_file(CONFIG_DIR "/schema.json", JSON_REJECT_DUPLICATES, NULL);
	return schema != NULL ? 0 : -1;
}

static int
free_schema(void **state UNUSED)
{
	json_decref(schema);
	return 0;
}

/* The node that a $ref leads to, also through anyOf with null. */
static const json_t *
resolve(const json_t *node)
{
	static const char prefix[] = "#/$defs/";
	const json_t *any = json_object_get(node, "anyOf");
	const char *ref = json_string_value(json_object_get(node, "$ref"));

	if (ref == NULL && json_is_array(any))
		ref = json_string_value(json_object_get(json_array_get(any, 0), "$ref"));
	if (ref == NULL)
		return node;
	assert_memory_equal(ref, prefix, strlen(prefix));
	node = json_object_get(json_object_get(schema, "$defs"), ref + strlen(prefix));
	assert_non_null(node);
	return node;
}

static bool
array_has(const json_t *list, const json_t *want)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		if (json_equal(json_array_get(list, i), (json_t *)(uintptr_t)want))
			return true;
	}
	return false;
}

static bool
has_type(const json_t *node, const char *name)
{
	const json_t *type = json_object_get(node, "type");
	json_t *want = json_string(name);
	bool has = json_equal(type, want) || array_has(type, want);

	json_decref(want);
	return has;
}

/* null is in the type, in the enum, or an alternative. */
static bool
takes_null(const json_t *node)
{
	const json_t *any = json_object_get(node, "anyOf");

	if (has_type(resolve(node), "null") ||
		array_has(json_object_get(node, "enum"), json_null()))
		return true;
	for (size_t i = 0; i < json_array_size(any); i++) {
		if (has_type(json_array_get(any, i), "null"))
			return true;
	}
	return false;
}

static void
compare_range(const json_t *node, uint64_t min, uint64_t max)
{
	assert_true(has_type(node, "integer"));
	assert_true(has_type(node, "string")); /* "0x..." */
	assert_true((uint64_t)json_integer_value(json_object_get(node, "minimum")) == min);
	if (max == UINT64_MAX) /* more than a JSON integer holds */
		assert_null(json_object_get(node, "maximum"));
	else
		assert_true((uint64_t)json_integer_value(json_object_get(node, "maximum")) == max);
	assert_non_null(json_object_get(node, "pattern"));
}

static size_t
compare_names(const json_t *list, const struct conf_name *names, bool numbers)
{
	size_t n = 0;

	for (; names[n].name != NULL; n++) {
		json_t *want = numbers ? json_integer(names[n].value) : json_string(names[n].name);

		assert_true(array_has(list, want));
		json_decref(want);
	}
	return n;
}

static void
compare_enum(const json_t *node, const struct conf_field *f)
{
	const json_t *list = json_object_get(node, "enum");
	size_t n;

	if (f->type == CONF_T_FLAGS) {
		assert_true(has_type(node, "array"));
		list = json_object_get(json_object_get(node, "items"), "enum");
	}
	n = compare_names(list, f->names, f->type == CONF_T_PICK);
	if (f->type == CONF_T_PICK) /* each also as "0x..." */
		n *= 2;
	if ((f->flags & CONF_F_NULL) != 0)
		n++;
	assert_int_equal(json_array_size(list), n);
}

static void
compare_elements(const json_t *node, const struct conf_field *f)
{
	const json_t *items = json_object_get(node, "items");

	assert_true(has_type(node, "array"));
	assert_int_equal(json_integer_value(json_object_get(node, "minItems")), f->n_min);
	assert_int_equal(json_integer_value(json_object_get(node, "maxItems")), f->n_max);
	if (f->type == CONF_T_NUMBERS)
		compare_range(items, f->min, f->max);
	if (f->type == CONF_T_STRINGS) {
		assert_int_equal(json_integer_value(json_object_get(items, "minLength")), f->min);
		assert_int_equal(json_integer_value(json_object_get(items, "maxLength")), f->max);
	}
}

/* The schema's default as a JSON value against the row's. */
static void
compare_default(const json_t *node, const struct conf_field *f)
{
	const json_t *def = json_object_get(node, "default");
	const char *text = json_string_value(def);

	if ((f->flags & CONF_F_DEFAULT) == 0 || f->type == CONF_T_OBJECT) {
		assert_null(def);
		return;
	}
	assert_non_null(def);
	if (f->type == CONF_T_ENUM)
		assert_string_equal(text, conf_name_of(f->names, (uint32_t)f->def));
	else if (f->type == CONF_T_STR || f->type == CONF_T_CUSTOM)
		assert_string_equal(text, f->def_str);
	else if (f->type == CONF_T_BOOL)
		assert_true(json_is_boolean(def) && json_is_true(def) == (f->def != 0));
	else if (f->type == CONF_T_FLAGS)
		assert_true(json_is_array(def) && json_array_size(def) == 0 && f->def == 0);
	else if (f->type == CONF_T_NUMBERS)
		assert_true((uint64_t)json_integer_value(json_array_get(def, 0)) == f->def);
	else if (text != NULL)
		assert_true(strtoull(text, NULL, 0) == f->def);
	else
		assert_true((uint64_t)json_integer_value(def) == f->def);
}

static void compare_table(const json_t *node, const struct conf_table *t);

static void
compare_type(const json_t *node, const struct conf_field *f)
{
	switch ((enum conf_type)f->type) {
	case CONF_T_U8:
	case CONF_T_U16:
	case CONF_T_U32:
	case CONF_T_U64:
	case CONF_T_SIZE32:
	case CONF_T_SIZE64:
		compare_range(node, f->min, f->max);
		assert_int_equal(
			strstr(json_string_value(json_object_get(node, "pattern")), "KMG") != NULL,
			f->type == CONF_T_SIZE32 || f->type == CONF_T_SIZE64);
		break;
	case CONF_T_ENUM:
	case CONF_T_PICK:
	case CONF_T_FLAGS:
		compare_enum(node, f);
		break;
	case CONF_T_REAL:
		assert_true(has_type(node, "number"));
		assert_true(json_number_value(json_object_get(node, "minimum")) == (double)f->min);
		assert_true(json_number_value(json_object_get(node, "maximum")) == (double)f->max);
		break;
	case CONF_T_BOOL:
		assert_true(has_type(node, "boolean"));
		break;
	case CONF_T_STR:
		assert_int_equal(json_integer_value(json_object_get(node, "minLength")), f->min);
		assert_int_equal(json_integer_value(json_object_get(node, "maxLength")), f->max);
		__attribute__((fallthrough));
	case CONF_T_NAME:
	case CONF_T_MAC:
	case CONF_T_IPV4:
	case CONF_T_IPV6:
	case CONF_T_IP:
	case CONF_T_ANY_IP:
	case CONF_T_GROUP:
	case CONF_T_CUSTOM:
		assert_true(has_type(node, "string"));
		break;
	case CONF_T_OBJECT:
		compare_table(resolve(node), f->sub);
		break;
	case CONF_T_ARRAY:
		node = json_object_get(node, "items");
		if (f->sub->shorthand != NULL) /* a name, or the object */
			node = json_array_get(json_object_get(node, "anyOf"), 1);
		compare_table(resolve(node), f->sub);
		break;
	case CONF_T_STRINGS:
	case CONF_T_NUMBERS:
		break;
	case CONF_T_HEX:
	case CONF_T_JSON:
		fail_msg("%s: a file has no such values", f->name);
	}
	if (f->type == CONF_T_STRINGS || f->type == CONF_T_NUMBERS)
		compare_elements(node, f);
}

static void
compare_table(const json_t *node, const struct conf_table *t)
{
	const json_t *properties = json_object_get(node, "properties");
	const json_t *required = json_object_get(node, "required");
	size_t rows = 0, n_required = 0;

	assert_true(has_type(node, "object"));
	assert_true(json_is_false(json_object_get(node, "additionalProperties")));
	for (uint32_t i = 0; i < t->n_fields; i++) {
		const struct conf_field *f = &t->fields[i];
		const json_t *p = json_object_get(properties, f->name);
		json_t *name = json_string(f->name);

		if ((f->flags & CONF_F_MODIFY) != 0) {
			json_decref(name);
			continue;
		}
		print_message("# %s.%s\n", t->name, f->name);
		assert_non_null(p);
		assert_true(json_string_length(json_object_get(resolve(p), "description")) > 0);
		assert_int_equal(array_has(required, name), (f->flags & CONF_F_REQUIRED) != 0);
		assert_int_equal(takes_null(p), (f->flags & CONF_F_NULL) != 0);
		compare_default(p, f);
		compare_type(p, f);
		if (f->type == CONF_T_ARRAY)
			compare_elements(p, f);
		n_required += (f->flags & CONF_F_REQUIRED) != 0 ? 1 : 0;
		rows++;
		json_decref(name);
	}
	assert_int_equal(json_object_size(properties), rows); /* no key that no row has */
	assert_int_equal(json_array_size(required), n_required);
}

static void
schema_is_the_tables(void **state UNUSED)
{
	compare_table(schema, &conf_table_root);
}

/* Every definition is used: the walk above has seen it. */
static void
no_idle_definitions(void **state UNUSED)
{
	char *text = json_dumps(schema, JSON_COMPACT);
	const char *key;
	json_t *v;

	json_object_foreach (json_object_get(schema, "$defs"), key, v) {
		char ref[128];

		snprintf(ref, sizeof(ref), "\"#/$defs/%s\"", key);
		assert_non_null(strstr(text, ref));
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(schema_is_the_tables),
		cmocka_unit_test(no_idle_definitions),
	};

	return cmocka_run_group_tests(tests, load_schema, free_schema);
}
