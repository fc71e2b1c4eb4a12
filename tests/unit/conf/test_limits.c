/* SPDX-License-Identifier: BSD-3-Clause */
/* More than there is room for: what the start would refuse, --check finds. */
#include "conf_mcast.h"
#include "conf_test.h"

#include <errno.h>
#include <stdio.h>

/* A text that grows; the test frees it. */
struct text {
	char *buf;
	size_t len;
	FILE *f;
};

static FILE *
begin(struct text *t)
{
	t->f = open_memstream(&t->buf, &t->len);
	assert_non_null(t->f);
	return t->f;
}

/* Load the base with this in the place of a line. @param pointer of the only fault; NULL: none. */
static void
expect(struct text *t, int line, const char *pointer, const char *says)
{
	struct conf_errors err;
	struct conf *c = NULL;
	int rc;

	fclose(t->f);
	rc = base_load(&(const struct swap){ line, t->buf }, 1, &c, &err);
	errors_show(&err);
	assert_int_equal(rc, pointer == NULL ? 0 : -EINVAL);
	if (pointer != NULL) {
		assert_int_equal(err.n_errors, 1);
		assert_string_equal(err.v[0].pointer, pointer);
		assert_non_null(strstr(err.v[0].message, says));
	}
	conf_errors_free(&err);
	conf_free(c);
	free(t->buf);
}

/* ---- queue pairs ----------------------------------------------------------------------------- */

#define QP(num, count)                                                                          \
	"{ \"qp_num\": " #num ", \"count\": " #count ", \"qp_type\": \"RC\", \"pd\": \"pd0\", " \
	"\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\" }"

#define ANY(count)                                                                     \
	"{ \"count\": " #count ", \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": " \
	"\"cq0\", \"recv_cq\": \"cq0\" }"

/* The base has QP 17 as /qps/0. Up to 65536 queue pairs have places by 16 bits. */
static void
each_number_has_a_place(void **state UNUSED)
{
	static const struct {
		const char *qps;
		const char *pointer;
		const char *says;
	} rows[] = {
		{ QP(100, 1) " ]", NULL, NULL },
		{ QP(65553, 1) " ]", "/qps/1/qp_num", "65553 and 17 of /qps/0" },
		{ QP(65552, 1) ", " QP(65554, 1) " ]", NULL, NULL },
		{ QP(65552, 2) " ]", "/qps/1/qp_num", "65553 and 17 of /qps/0" },
		/* Behind the last place the first one is next. */
		{ QP(65530, 6) ", " QP(131072, 17) " ]", NULL, NULL },
		{ QP(131000, 90) " ]", "/qps/1/qp_num", "131089 and 17 of /qps/0" },
		{ QP(131000, 72) ", " QP(196608, 17) " ]", NULL, NULL },
		{ QP(131000, 73) ", " QP(196608, 17) " ]", "/qps/2/qp_num",
			"196608 and 131072 of /qps/1" },
		/* The first of an entry that reaches further than the one behind it. */
		{ QP(1000, 1000) ", " QP(67535, 2) " ]", "/qps/2/qp_num",
			"67535 and 1999 of /qps/1" },
		/* With more of them one more bit counts. */
		{ QP(65536, 65000) ", " ANY(535) " ]", "/qps/1/qp_num", "65553 and 17 of /qps/0" },
		{ QP(65536, 65000) ", " ANY(536) " ]", NULL, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct text t;

		print_message("# %s\n", rows[i].qps);
		fputs(rows[i].qps, begin(&t));
		expect(&t, L_QP2, rows[i].pointer, rows[i].says);
	}
}

/* What is wrong elsewhere hides no place that is taken; what is wrong with a number does. */
static void
every_fault_is_told(void **state UNUSED)
{
	static const struct {
		struct swap elsewhere;
		uint32_t faults;
	} rows[] = {
		{ { L_PROFILE, "\"profile\": \"xib\"," }, 2 },
		{ { L_STATE, "\"qp_state\": \"RST\"," }, 1 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		const struct swap swaps[] = { rows[i].elsewhere, { L_QP2, QP(65553, 1) " ]" } };
		struct conf_errors err;
		struct conf *c = NULL;

		assert_int_equal(base_load(swaps, 2, &c, &err), -EINVAL);
		errors_show(&err);
		assert_int_equal(err.n_errors, rows[i].faults);
		conf_errors_free(&err);
	}
}

static void
a_feed_needs_its_knob(void **state UNUSED)
{
	static const char feed[] =
		"\"send_feed\": { \"opcode\": \"ATOMIC_WRITE\", \"rkey\": 1, \"remote_addr\": 8 }%s },";
	struct text t;

	fprintf(begin(&t), feed, "");
	expect(&t, L_SEND_FEED, "/qps/0/send_feed/opcode", "requires the knob ops.placement");
	fprintf(begin(&t), feed, ", \"knobs\": { \"ops.placement\": \"on\" }");
	expect(&t, L_SEND_FEED, NULL, NULL);
}

/* ---- others ---------------------------------------------------------------------------------- */

static void
ports(struct text *t, uint32_t n)
{
	FILE *f = begin(t);

	fputs("\"neighbors\": [] }", f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f,
			", { \"name\": \"q%u\", \"device\": \"d%u\", \"ipv4\": \"10.1.%u.1\", "
			"\"priorities\": {} }",
			i, i, i);
	fputs(" ],", f);
}

static void
so_many_ports_have_priorities(void **state UNUSED)
{
	struct text t;

	ports(&t, CONF_PRIO_PORTS);
	expect(&t, L_NEIGHBORS, NULL, NULL);
	ports(&t, CONF_PRIO_PORTS + 1);
	expect(&t, L_NEIGHBORS, "/ports/9/priorities", "8 ports have them already");
}

static void
srqs(struct text *t, uint32_t n)
{
	FILE *f = begin(t);

	fputs("\"xrcds\": [ \"x\" ], \"srqs\": [ { \"name\": \"srq0\", \"pd\": \"pd0\" }", f);
	for (uint32_t i = 0; i < n; i++)
		fprintf(f,
			", { \"name\": \"x%u\", \"pd\": \"pd0\", \"srq_type\": \"XRC\", "
			"\"xrcd\": \"x\", \"cq\": \"cq0\" }",
			i);
	fputs(" ],", f);
}

static void
so_many_srqs_are_of_xrc(void **state UNUSED)
{
	struct text t;

	srqs(&t, CONF_SRQ_PLACES);
	expect(&t, L_SRQS, NULL, NULL);
	srqs(&t, CONF_SRQ_PLACES + 1);
	expect(&t, L_SRQS, "/srqs", "has 4097 of type XRC");
}

/* @param groups from 239.1.0.0 on, and `members` in each. */
static void
mcasts(struct text *t, uint32_t groups, uint32_t members)
{
	FILE *f = begin(t);

	fputs("{ \"qp_num\": 200, \"count\": 100, \"qp_type\": \"UD\", \"pd\": \"pd0\", "
	      "\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", \"qkey\": 1, \"port\": \"p0\", "
	      "\"qp_state\": \"INIT\" } ], \"mcasts\": [",
		f);
	for (uint32_t i = 0; i < members; i++)
		for (uint32_t g = 0; g < groups; g++)
			fprintf(f, "%s{ \"qp_num\": %u, \"group\": \"239.1.%u.%u\" }",
				i + g == 0 ? "" : ", ", 200 + i, g / 256, g % 256);
	fputs(" ]", f);
}

static void
so_many_are_in_a_group(void **state UNUSED)
{
	struct text t;

	mcasts(&t, 2, CONF_MCAST_QPS);
	expect(&t, L_QP2, NULL, NULL);
	mcasts(&t, 1, CONF_MCAST_QPS + 1);
	expect(&t, L_QP2, "/mcasts/56/group", "has 56 members at port \"p0\" already");
	mcasts(&t, CONF_MCAST_GROUPS, 1);
	expect(&t, L_QP2, NULL, NULL);
	mcasts(&t, CONF_MCAST_GROUPS + 1, 1);
	expect(&t, L_QP2, "/mcasts", "has 4097 groups");
}

/* ---- af_packet's ring ------------------------------------------------------------------------ */

/* What is advised is taken. */
static void
a_ring_is_one_that_the_kernel_makes(void **state UNUSED)
{
	static const struct {
		const char *ring;
		const char *says; /* NULL: nothing */
	} rows[] = {
		{ "", NULL },
		{ ",framesz=4096", NULL },
		{ ",framesz=4112",
			"framesz 4112 of net_af_packet0 is larger than its blocksz, 4096: "
			"give it blocksz=65536" },
		{ ",framesz=4112,blocksz=65536", NULL },
		{ ",blocksz=4182016,framesz=65344", NULL },
		{ ",blocksz=65536,framesz=32768", NULL },
		{ ",blocksz=65536,framesz=32752", NULL }, /* 32768 is taken */
		{ ",blocksz=65536,framesz=32784",
			"framesz 32784 of net_af_packet0 does not divide its blocksz, 65536, and "
			"no larger one that an mbuf holds does: lower framesz to 32768" },
		{ ",blocksz=4611686018427387904,framesz=40000", "lower framesz to 32768" },
		{ ",blocksz=65536,framesz=65344", "lower framesz to 32768" },
		{ ",blocksz=69632,framesz=40000", "lower framesz to 34816" },
		{ ",blocksz=65536,framesz=32752,framecnt=0", "framecnt 0 of" },
		{ ",blocksz=65536,framesz=65360", "at most 65344" },
		{ ",blocksz=2048",
			"blocksz 2048 of net_af_packet0 must be a multiple of the page" },
		{ ",blocksz=0", "blocksz 0 of" },
		{ ",framesz=0", "must be a number of bytes" },
		{ ",framesz=x", "must be a number of bytes" },
		{ ",framecnt=1", "framecnt 1 of net_af_packet0 is less than the 2 frames" },
		{ ",framecnt=2", NULL },
		{ ",framecnt=0", "framecnt 0 of" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct text t;

		fprintf(begin(&t), "\"eal\": [ \"--vdev=net_af_packet0,iface=x%s\" ],",
			rows[i].ring);
		expect(&t, L_EAL, rows[i].says != NULL ? "/eal/0" : NULL, rows[i].says);
	}
}

/* The frames of a path MTU of 4096 are longer than DPDK's block. */
static void
longer_frames_want_a_longer_block(void **state UNUSED)
{
	static const char *const eal[] = { "\"eal\": [ \"--vdev=net_af_packet0,iface=x\" ],",
		"\"eal\": [ \"--vdev=net_af_packet0,iface=x,framesz=4240,blocksz=65536\" ]," };

	for (int i = 0; i < 2; i++) {
		const struct swap swaps[] = { { L_PATH_MTU, "\"path_mtu\": 4096," },
			{ L_EAL, eal[i] } };
		struct conf_errors err;
		struct conf *c = NULL;

		assert_int_equal(base_load(swaps, 2, &c, &err), i == 0 ? -EINVAL : 0);
		errors_show(&err);
		if (i == 0)
			assert_non_null(strstr(err.v[0].message,
				"raise framesz to at least 4240, and blocksz, which is 4096, to 65536"));
		conf_free(c);
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_number_has_a_place),
		cmocka_unit_test(every_fault_is_told),
		cmocka_unit_test(a_feed_needs_its_knob),
		cmocka_unit_test(so_many_ports_have_priorities),
		cmocka_unit_test(so_many_srqs_are_of_xrc),
		cmocka_unit_test(so_many_are_in_a_group),
		cmocka_unit_test(a_ring_is_one_that_the_kernel_makes),
		cmocka_unit_test(longer_frames_want_a_longer_block),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
