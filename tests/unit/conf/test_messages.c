/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said of a fault: once, and where. */
#include "conf_test.h"

#include <errno.h>
#include <stdio.h>

/* ---- one mistake is one fault ---------------------------------------------------------------- */

#define LISTEN_DATAGRAMS                                                                         \
	"{ \"qp_num\": 100, \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", "        \
	"\"recv_cq\": \"cq0\" } ], \"cm\": { \"listen\": [ { \"name\": \"l\", \"port\": \"p0\"," \
	" \"ps\": \"x\", \"service_port\": 1, \"qp\": { \"qp_type\": \"UD\", \"pd\": \"pd0\", "  \
	"\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\" } } ] }"
#define FEED(type, feed)                          \
	"{ \"qp_num\": 100, \"qp_type\": \"" type \
	"\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", " feed " } ]"
#define XRC_SRQ                                                                  \
	"\"xrcds\": [ \"x\" ], \"srqs\": [ { \"name\": \"s\", \"pd\": \"pd0\", " \
	"\"srq_type\": \"XRC\", \"xrcd\": \"x\", \"cq\": \"cq0\" } ],"
#define LISTEN_SRQ                                                                             \
	FEED("RC", "\"recv_cq\": \"cq0\"")                                                     \
	", \"cm\": { \"listen\": [ { \"name\": \"l\", \"port\": \"p0\", \"service_port\": 1,"  \
	" \"qp\": { \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": " \
	"\"cq0\", \"srq\": \"s\" } } ] }"
#define PAIR(q)                                                                          \
	"\"neighbors\": [] }, { \"name\": \"a\", \"device\": \"net_pair0a\", \"ipv4\": " \
	"\"10.1.0.1\", \"rx_queues\": " q " }, { \"name\": \"b\", \"device\": "          \
	"\"net_pair0b\", \"ipv4\": \"10.2.0.1\", \"rx_queues\": 2 } ],"

/* A value with a fault, and in the other line what does not go with the default in its place. */
static const struct {
	const char *pointer; /* of the only fault */
	struct swap swaps[2];
} single[] = {
	{ "/control/socket", { { L_CONTROL, "\"control\": { \"socket\": 5, \"client_socket\": "
					    "\"/run/rocelane.sock\" }," } } },
	{ "/lcores/control", { { L_LCORES, "\"lcores\": { \"control\": \"x\", \"workers\": "
					   "[0, 2] }," } } },
	{ "/lcores/workers", { { L_LCORES, "\"lcores\": { \"workers\": 7 }," },
				     { L_WORKER, "\"worker\": 1," } } },
	{ "/lcores", { { L_LCORES, "\"lcores\": 7," }, { L_WORKER, "\"worker\": 1," } } },
	{ "/ports/0/ipv4", { { L_PORT_IP, "\"ipv4\": 5, \"mtu\": 4200, \"gateway\": "
					  "\"10.77.0.254\"," } } },
	{ "/ports/0/ipv6", { { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 4200, \"ipv6\": 5, "
					  "\"routes\": [ { \"to\": \"fd80::/64\", \"via\": "
					  "\"fd77::5\" } ]," } } },
	{ "/ports/0/prefix", { { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"prefix\": \"/16\", "
					    "\"mtu\": 4200, \"gateway\": \"10.77.9.254\"," } } },
	{ "/ports/0/prefix", { { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"prefix\": \"/16\", "
					    "\"mtu\": 4200," },
				     { L_AH, "\"ah_attr\": { \"dest_ip\": \"10.77.9.2\" }," } } },
	{ "/ports/0/routes/0/via",
		{ { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 4200, "
			       "\"routes\": [ { \"to\": \"10.80.0.0/16\", "
			       "\"via\": 5 } ]," },
			{ L_AH, "\"ah_attr\": { \"dest_ip\": \"10.80.0.1\" }," } } },
	{ "/ports/0/mtu", { { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": \"big\"," },
				  { L_PATH_MTU, "\"path_mtu\": 4096," } } },
	{ "/qps/0/path_mtu", { { L_PORT_IP, "\"ipv4\": \"10.77.0.1\", \"mtu\": 600," },
				     { L_PATH_MTU, "\"path_mtu\": 500," } } },
	{ "/ports/1/rx_queues", { { L_NEIGHBORS, PAIR("\"two\"") } } },
	{ "/srqs/0/max_wr", { { L_SRQS, "\"srqs\": [ { \"name\": \"s\", \"pd\": \"pd0\", "
					"\"max_wr\": \"x\", \"srq_limit\": 2000 } ]," } } },
	{ "/srqs/0/srq_type", { { L_SRQS, "\"srqs\": [ { \"name\": \"s\", \"pd\": \"pd0\", "
					  "\"srq_type\": \"xrc\", \"cq\": \"cq0\" } ]," } } },
	{ "/qps/0/qp_state", { { L_STATE, "\"qp_state\": \"rts\", \"path_mig_state\": \"REARM\", "
					  "\"alt_ah_attr\": { \"dest_ip\": \"10.77.0.2\" }," } } },
	{ "/qps/0/cap/max_recv_wr", { { L_CAP, "\"cap\": { \"max_recv_wr\": \"x\" }, "
					       "\"rq_limit\": 500," } } },
	{ "/qps/1/qp_type", { { L_QP2, "{ \"qp_num\": 100, \"qp_type\": \"rc\", \"pd\": "
				       "\"pd0\" } ]" } } },
	{ "/qps/1/send_feed", { { L_QP2, FEED("XRC_SEND", "\"send_feed\": 5") } } },
	{ "/qps/1/send_feed/size",
		{ { L_QP2, FEED("RC", "\"recv_cq\": \"cq0\", \"send_feed\": { \"opcode\": "
				      "\"ATOMIC_FETCH_AND_ADD\", \"rkey\": 1, \"remote_addr\": 8, "
				      "\"size\": \"x\" }") } } },
	/* XRC-04: requests name such an SRQ by its number, and no queue pair has it. */
	{ "/qps/1/srq", { { L_SRQS, XRC_SRQ },
				{ L_QP2, FEED("RC", "\"recv_cq\": \"cq0\", \"srq\": \"s\"") } } },
	{ "/cm/listen/0/qp/srq", { { L_SRQS, XRC_SRQ }, { L_QP2, LISTEN_SRQ } } },
	{ "/cm/listen/0/ps", { { L_QP2, LISTEN_DATAGRAMS } } },
};

static void
one_mistake_is_one_fault(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(single); i++) {
		const size_t n = single[i].swaps[1].line != 0 ? 2 : 1;
		struct conf_errors err;
		struct conf *c = NULL;

		print_message("# %s\n", single[i].pointer);
		assert_int_equal(base_load(single[i].swaps, n, &c, &err), -EINVAL);
		errors_show(&err);
		assert_int_equal(err.n_errors, 1);
		assert_string_equal(err.v[conf_errors_first(&err)].pointer, single[i].pointer);
		conf_errors_free(&err);
	}
}

/* ---- where ----------------------------------------------------------------------------------- */

static const struct {
	const char *text; /* in the place of the profile */
	const char *pointer;
} places[] = {
	{ "\"profile\": iba,", "/profile" },
	{ "\"profile\": \"iba\",,", "/profile" },
	/* No member of an object is called 0 because it is the first one. */
	{ "'profile': 1,", "" },
	{ "profile: 1,", "" },
	{ "// a comment", "" },
	{ "\"prof\\u0000ile\": 1,", "" },
	{ "\"prof\\xile\": 1,", "" },
	{ "\"cm\": { \"listen\": [ {}, { 'a': 1 } ] },", "/cm/listen/1" },
	{ "\"cm\": { \"listen\": [ {}, x ] },", "/cm/listen/1" },
};

static void
a_pointer_leads_to_the_fault(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const struct swap swap = { L_PROFILE, places[i].text };
		struct conf_errors err;
		struct conf *c = NULL;

		print_message("# %s\n", places[i].text);
		assert_int_equal(base_load(&swap, 1, &c, &err), -EINVAL);
		errors_show(&err);
		assert_int_equal(err.n_errors, 1);
		assert_string_equal(err.v[0].pointer, places[i].pointer);
		assert_int_equal(err.v[0].line, L_PROFILE);
		conf_errors_free(&err);
	}
}

/* ---- what ------------------------------------------------------------------------------------ */

/* Numbers are shown with as many digits as they need. */
static const struct {
	const char *p;
	const char *says;
} numbers[] = {
	{ "1.5", "from 0.0 to 1.0, not 1.5" },
	{ "1.0000001", "not 1.0000001" },
	{ "1.0000000000000002", "not 1.0000000000000002" },
	{ "-1e-9", "not -1e-9" },
};

static void
a_number_is_shown_as_it_is(void **state UNUSED)
{
	for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
		struct conf_errors err;
		struct conf *c = NULL;
		char text[256];

		snprintf(text, sizeof(text),
			"\"neighbors\": [], \"impair\": { \"rules\": [ { \"action\": \"drop\", "
			"\"probability\": %s } ] } } ],",
			numbers[i].p);
		assert_int_equal(
			base_load(&(const struct swap){ L_NEIGHBORS, text }, 1, &c, &err), -EINVAL);
		errors_show(&err);
		assert_non_null(strstr(err.v[0].message, numbers[i].says));
		conf_errors_free(&err);
	}
}

/* JSON has it, and C has not: it is told by what was written, not by a flag of the reader's. */
static void
a_byte_0_is_told(void **state UNUSED)
{
	static const char *const texts[] = { "\"profile\": \"i\\u0000ba\",",
		"\"pro\\u0000file\": \"iba\"," };

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		struct conf_errors err;
		struct conf *c = NULL;

		assert_int_equal(
			base_load(&(const struct swap){ L_PROFILE, texts[i] }, 1, &c, &err),
			-EINVAL);
		errors_show(&err);
		assert_int_equal(err.n_errors, 1);
		assert_non_null(strstr(err.v[0].message, "\\u0000"));
		assert_null(strstr(err.v[0].message, "JSON_"));
		conf_errors_free(&err);
	}
}

/* Each name is a whole one, and the others are counted. */
static void
a_list_is_not_cut_in_a_name(void **state UNUSED)
{
	const struct swap swap = { L_KNOBS, "\"knobs\": { \"zzzzzzzzzzz\": 1 }," };
	const struct conf_table *t = &conf_table_knobs;
	uint32_t shown = 0, more = 0;
	char *rest = NULL, *name;
	struct conf_errors err;
	struct conf *c = NULL;
	const char *list;

	assert_int_equal(base_load(&swap, 1, &c, &err), -EINVAL);
	errors_show(&err);
	list = strstr(err.v[0].message, "allowed here: ");
	assert_non_null(list);
	name = strtok_r((char *)(uintptr_t)list + strlen("allowed here: "), ", ", &rest);
	for (; name != NULL && strcmp(name, "and") != 0; name = strtok_r(NULL, ", ", &rest)) {
		assert_true(shown < t->n_fields);
		assert_string_equal(name, t->fields[shown++].name);
	}
	assert_non_null(name);
	assert_int_equal(sscanf(rest, "%u more", &more), 1);
	assert_int_equal(shown + more, t->n_fields);
	conf_errors_free(&err);
}

/* ---- what is a fault at all ------------------------------------------------------------------ */

#define PORT1(ip) \
	"\"neighbors\": [] }, { \"name\": \"p1\", \"device\": \"d\", \"ipv6\": \"" ip "\" } ],"
#define PORT0_IPV6 "\"ipv4\": \"10.77.0.1\", \"mtu\": 4200, \"ipv6\": \"64:ff9b::1\","

/* That prefix is for hosts that are reached by IPv4 behind a translator (RFC 6052). */
static void
an_address_may_begin_with_0(void **state UNUSED)
{
	const struct swap other[] = { { L_PORT_IP, PORT0_IPV6 },
		{ L_NEIGHBORS, PORT1("64:ff9b::2") } };
	const struct swap same[] = { { L_PORT_IP, PORT0_IPV6 },
		{ L_NEIGHBORS, PORT1("64:ff9b::1") } };
	struct conf_errors err;
	struct conf *c = NULL;

	assert_int_equal(base_load(other, 2, &c, &err), 0);
	conf_free(c);
	conf_errors_free(&err);
	assert_int_equal(base_load(same, 2, &c, &err), -EINVAL);
	errors_show(&err);
	assert_int_equal(err.n_errors, 1);
	assert_string_equal(err.v[0].pointer, "/ports/1/ipv6");
	conf_errors_free(&err);
}

/* A pointer has room for a part of it: it is found by that, in nested objects, too. */
static void
a_key_longer_than_its_pointer(void **state UNUSED)
{
	static const struct {
		const char *more; /* behind it */
		size_t len;
		int line;
	} rows[] = {
		{ "", CONF_POINTER_MAX - 3, L_PROFILE },
		{ "", CONF_POINTER_MAX, L_PROFILE },
		{ "", 2 * CONF_POINTER_MAX, L_PROFILE },
		{ "\xe2\x82\xac~", CONF_POINTER_MAX - 14, L_TIMEOUT },
		{ "\xe2\x82\xac~", CONF_POINTER_MAX - 13, L_TIMEOUT },
		{ "\xe2\x82\xac~", CONF_POINTER_MAX - 12, L_TIMEOUT },
		{ "\xe2\x82\xac~", CONF_POINTER_MAX - 11, L_TIMEOUT },
		{ "\xf0\x9f\x98\x80", CONF_POINTER_MAX - 11, L_TIMEOUT },
		{ "\xf0\x9f\x98\x80", CONF_POINTER_MAX - 12, L_TIMEOUT },
		{ "\\u20ac\\u20ac", CONF_POINTER_MAX - 12, L_TIMEOUT },
	};
	char key[2 * CONF_POINTER_MAX + 1], text[sizeof(key) + 64];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct swap swap = { rows[i].line, text };
		struct conf_errors err;
		struct conf *c = NULL;

		memset(key, 'k', rows[i].len);
		key[rows[i].len] = '\0';
		snprintf(text, sizeof(text), "\"%s%s\": 1, %s", key, rows[i].more,
			rows[i].line == L_TIMEOUT ? "\"timeout\": 14," : "\"profile\": \"iba\",");
		assert_int_equal(base_load(&swap, 1, &c, &err), -EINVAL);
		assert_int_equal(err.n_errors, 1);
		assert_int_equal(err.v[0].line, rows[i].line);
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_mistake_is_one_fault),
		cmocka_unit_test(a_pointer_leads_to_the_fault),
		cmocka_unit_test(a_number_is_shown_as_it_is),
		cmocka_unit_test(a_byte_0_is_told),
		cmocka_unit_test(a_list_is_not_cut_in_a_name),
		cmocka_unit_test(an_address_may_begin_with_0),
		cmocka_unit_test(a_key_longer_than_its_pointer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
