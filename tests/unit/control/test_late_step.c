/* SPDX-License-Identifier: BSD-3-Clause */
/* A worker that carries a qp_modify out, and answers after everybody has stopped waiting. */
#include "qp17.h"

#include "admin.h"
#include "connect_priv.h"
#include "control_state.h"
#include "log.h"

#define OTHER_AH "\"ah_attr\":{\"dest_ip\":\"10.0.0.9\"}"

static json_t *
look(void)
{
	return rpc_ok("qp_query", "{\"qp_num\":17}");
}

static void
late(const char *rest)
{
	fake_be_deaf();
	assert_int_equal(rpc_code("qp_modify", with_qpn(rest)), REFUSED(ETIMEDOUT));
}

/* It takes the ATTACH yet, and no more. */
static void
be_deaf_behind_the_attach(void)
{
	if (fake.seen[MBOX_QP_ATTACH] == 0)
		fake.hook = be_deaf_behind_the_attach;
	else
		fake_be_deaf();
}

/* The record is what the worker has. */
static void
assert_agrees(void)
{
	const struct admin_qp *rec = admin_find(&fake.c->admin, 17);
	struct qp_snapshot s;

	assert_non_null(rec);
	qp_snapshot(rec->qp, fake.now, 0, &s);
	assert_int_equal(rec->attr.path_mtu, s.attr.path_mtu);
	assert_int_equal(rec->attr.dest_qp_num, s.attr.dest_qp_num);
	assert_int_equal(rec->attr.rq_psn, s.attr.rq_psn);
	assert_int_equal(rec->attr.path_resolved, s.attr.path_resolved);
	assert_memory_equal(rec->attr.path.dst_ip, s.attr.path.dst_ip, 4);
	assert_memory_equal(rec->attr.path.dmac, s.attr.path.dmac, 6);
}

/* The way to RTS goes on from where the worker has brought it. */
static void
one_step_is_answered_late(void **state UNUSED)
{
	json_t *v;

	bring_to("RESET");
	fake.hook = be_deaf_behind_the_attach;
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_INIT)), REFUSED(ETIMEDOUT));
	fake_hear_again();
	assert_state("INIT");
	v = look();
	assert_string_equal(text_of(v, "port"), "p0");
	json_decref(v);
	late(TO_RTR);
	fake_hear_again();
	assert_state("RTR");
	assert_agrees();
	v = look();
	assert_int_equal(number_of(v, "dest_qp_num"), 18);
	assert_string_equal(text_of(json_object_get(v, "ah_attr"), "dest_ip"), "10.0.0.2");
	json_decref(v);
	modify(TO_RTS);
	assert_state("RTS");
	assert_agrees();
}

/* Until then nobody knows what it is. */
static void
nothing_follows_before_the_answer(void **state UNUSED)
{
	bring_to("INIT");
	late(TO_RTR);
	assert_int_equal(rpc_code("qp_modify", with_qpn(TO_RTR)), REFUSED(EBUSY));
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(EBUSY));
	fake_hear_again();
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_null(admin_find(&fake.c->admin, 17));
}

/* What the worker refuses, late, has changed nothing. */
static void
a_late_refusal(void **state UNUSED)
{
	char *before, *after;

	bring_to("INIT");
	before = everything();
	late(TO_RTR);
	fake.refuse = -EINVAL;
	fake_hear_again();
	after = everything();
	assert_string_equal(before, after);
	free(before);
	free(after);
	modify(TO_RTR);
	assert_state("RTR");
	assert_agrees();
}

/* The neighbour moves while nobody knows whether the path leads there. */
static void
a_new_mac_amid_a_late_step(void **state UNUSED)
{
	bring_to("RTR");
	modify(TO_RTS);
	modify("\"qp_state\":\"SQD\"");
	late(OTHER_AH);
	fake.step = 1000;
	json_decref(rpc_ok("neighbor_add",
		"{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\",\"mac\":\"02:00:00:00:00:99\"}"));
	fake_hear_again();
	assert_agrees();
	assert_int_equal(admin_find(&fake.c->admin, 17)->attr.path.dmac[5], 0x99);
	modify("\"qp_state\":\"RTS\"");
}

/* The same, and the worker refuses the path: the old one is the neighbour's that it was. */
static void
a_new_path_that_is_refused_late(void **state UNUSED)
{
	bring_to("RTR");
	modify(TO_RTS);
	modify("\"qp_state\":\"SQD\"");
	late(OTHER_AH);
	fake.refuse = -EAGAIN;
	fake_hear_again();
	assert_agrees();
	assert_int_equal(admin_find(&fake.c->admin, 17)->attr.path.dmac[5], 2);
	json_decref(rpc_ok("neighbor_add",
		"{\"port\":\"p0\",\"ipv4\":\"10.0.0.9\",\"mac\":\"02:00:00:00:00:99\"}"));
	assert_agrees();
}

/* Its worker has it until somebody wants it again; then it may be another's. */
static void
a_late_reset(void **state UNUSED)
{
	json_t *v;

	bring_to("RTR");
	json_decref(rpc_ok("post_recv", "{\"qp_num\":17,\"wrs\":[{\"wr_id\":1,\"sg_list\":[]}]}"));
	assert_true(admin_find(&fake.c->admin, 17)->attr.path_resolved);
	late("\"qp_state\":\"RESET\"");
	fake_hear_again();
	assert_state("RESET");
	assert_false(admin_find(&fake.c->admin, 17)->attr.path_resolved);
	modify(TO_INIT);
	json_decref(rpc_ok("post_recv", "{\"qp_num\":17,\"wrs\":[{\"wr_id\":2,\"sg_list\":[]}]}"));
	modify("\"qp_state\":\"ERR\"");
	v = rpc_ok("poll_cq", "{\"cq\":\"cq0\",\"max\":8}");
	assert_int_equal(json_array_size(v), 1);
	assert_int_equal(number_of(json_array_get(v, 0), "wr_id"), 2);
	json_decref(v);
}

/* Its connection ends meanwhile: it goes to ERR behind the step. */
static void
a_connection_that_ends_amid_a_late_step(void **state UNUSED)
{
	struct refusal r;

	bring_to("INIT");
	late(TO_RTR);
	assert_int_equal(connect_qp_error(&fake.c->connect, admin_find(&fake.c->admin, 17), &r), 0);
	assert_int_equal(qp_lookup(fake.env.qps, 17)->state, QPS_INIT);
	fake_hear_again();
	assert_state("ERR");
	modify("\"qp_state\":\"RESET\"");
	fake_hear_again();
	assert_state("RESET");
}

static uint32_t not_to_err;

static void
count_not_to_err(void *ctx UNUSED, enum log_level level UNUSED, const char *line)
{
	not_to_err += strstr(line, "does not go to ERR") != NULL;
}

static void
sink_nothing(void *ctx UNUSED, enum log_level level UNUSED, const char *line UNUSED)
{
}

static void
its_connection_is_over(void)
{
	struct connect_conn cc = { .id = 1, .qpn = 17 };

	not_to_err = 0;
	log_set_sink(count_not_to_err, NULL);
	connect_qp_down(&fake.c->connect, &cc);
	log_set_sink(sink_nothing, NULL);
}

/* It has the order, and is late: nothing else is said of it. */
static void
a_connection_whose_end_is_answered_late(void **state UNUSED)
{
	bring_to("RTR");
	fake_be_deaf();
	its_connection_is_over();
	assert_int_equal(not_to_err, 0);
	fake_hear_again();
	assert_state("ERR");
}

/* It hears the next MODIFY yet, and no more. */
static void
be_deaf_behind_the_modify(void)
{
	static unsigned int before;

	if (before == 0)
		before = fake.seen[MBOX_QP_MODIFY];
	if (fake.seen[MBOX_QP_MODIFY] == before) {
		fake.hook = be_deaf_behind_the_modify;
		return;
	}
	before = 0;
	fake_be_deaf();
}

/* One in RESET does not go to ERR, and what it is used for afterwards has another connection. */
static void
a_connection_that_ends_amid_a_late_reset(void **state UNUSED)
{
	struct refusal r;

	bring_to("RTR");
	fake.hook = be_deaf_behind_the_modify;
	assert_int_equal(
		rpc_code("qp_modify", with_qpn("\"qp_state\":\"RESET\"")), REFUSED(ETIMEDOUT));
	assert_int_equal(connect_qp_error(&fake.c->connect, admin_find(&fake.c->admin, 17), &r), 0);
	fake_hear_again();
	assert_state("RESET");
	modify(TO_INIT);
	modify(TO_RTR);
	late(TO_RTS);
	fake_hear_again();
	assert_state("RTS");
}

/* Nobody has it then who could flush what was posted: it goes to ERR with the next step. */
static void
a_connection_that_ends_amid_a_late_detach(void **state UNUSED)
{
	struct refusal r;

	bring_to("INIT");
	fake_be_deaf();
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(ETIMEDOUT));
	assert_int_equal(connect_qp_error(&fake.c->connect, admin_find(&fake.c->admin, 17), &r), 0);
	fake_hear_again();
	modify(TO_RTR);
	fake_hear_again();
	assert_state("ERR");
	modify("\"qp_state\":\"RESET\"");
	modify(TO_INIT);
	fake_hear_again();
	assert_state("INIT");
}

/* The same once nobody has it: who is to take it is late, and the order follows. */
static void
a_connection_whose_end_begins_with_a_late_attach(void **state UNUSED)
{
	bring_to("INIT");
	fake_be_deaf();
	assert_int_equal(rpc_code("qp_destroy", "{\"qp_num\":17}"), REFUSED(ETIMEDOUT));
	fake_hear_again();
	assert_false(admin_find(&fake.c->admin, 17)->attached);
	fake_be_deaf();
	its_connection_is_over();
	assert_int_equal(not_to_err, 0);
	fake_hear_again();
	assert_state("ERR");
}

/* What was sent is carried out: the record says so at once, or nobody would turn it off again. */
static void
a_trace_that_begins_late(void **state UNUSED)
{
	bring_to("INIT");
	fake_be_deaf();
	assert_int_equal(rpc_code("trace_start", "{\"qp_num\":17}"), REFUSED(ETIMEDOUT));
	fake_hear_again();
	assert_true((qp_lookup(fake.env.qps, 17)->flags & QPF_TRACE) != 0);
	json_decref(rpc_ok("trace_stop", NULL));
	assert_true((qp_lookup(fake.env.qps, 17)->flags & QPF_TRACE) == 0);
}

/* The dataplane ends meanwhile: what was asked is answered first. */
static void
the_end_comes_between(void **state UNUSED)
{
	fake.c->env.w.workers_n = 1;
	bring_to("INIT");
	late(TO_RTR);
	fake.deaf = false;
	fake.step = 1000;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(one_step_is_answered_late),
		WITH_FAKE(nothing_follows_before_the_answer),
		WITH_FAKE(a_late_refusal),
		WITH_FAKE(a_new_mac_amid_a_late_step),
		WITH_FAKE(a_new_path_that_is_refused_late),
		WITH_FAKE(a_late_reset),
		WITH_FAKE(a_connection_that_ends_amid_a_late_step),
		WITH_FAKE(a_connection_whose_end_is_answered_late),
		WITH_FAKE(a_connection_whose_end_begins_with_a_late_attach),
		WITH_FAKE(a_connection_that_ends_amid_a_late_reset),
		WITH_FAKE(a_connection_that_ends_amid_a_late_detach),
		WITH_FAKE(a_trace_that_begins_late),
		WITH_FAKE(the_end_comes_between),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
