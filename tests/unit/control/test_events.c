/* SPDX-License-Identifier: BSD-3-Clause */
/* Asynchronous events, fatal status, dropped-packet records, counters. */
#include "fake.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rte_ethdev.h>

static void
raise_event(uint32_t worker, struct mbox_msg m)
{
	if (m.type == MBOX_NONE)
		m.type = MBOX_EVENT;
	assert_int_equal(mbox_send_up(&fake.mbox[worker], &m), 0);
}

static void
AE_01_AE_02_AE_03_qp_events(void **state UNUSED)
{
	static const struct {
		uint8_t event;
		const char *name;
	} rows[] = { { 1, "QP_FATAL" }, { 2, "QP_REQ_ERR" }, { 3, "QP_ACCESS_ERR" },
		{ 4, "COMM_EST" }, { 5, "SQ_DRAINED" }, { 16, "QP_LAST_WQE_REACHED" } };

	json_decref(rpc_ok("qp_create", qp17));
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		json_t *v, *e;

		raise_event(
			worker_of(17), (struct mbox_msg){ .ev = { .source = SOURCE_READ_RESPONSE,
								  .qpn = 17,
								  .event = rows[i].event,
								  .psn = 55,
								  .fatal = 21,
								  .time_ns = 1234,
								  .rule = RULE_GAP,
								  .opcode = OP_RC_READ_REQUEST } });
		v = events();
		assert_int_equal(json_array_size(v), 1);
		e = json_array_get(v, 0);
		assert_string_equal(text_of(e, "event_type"), rows[i].name);
		assert_int_equal(number_of(e, "qp_num"), 17);
		assert_string_equal(text_of(e, "source"), "READ_RESPONSE");
		assert_int_equal(number_of(e, "fatal_code"), 21);
		assert_int_equal(number_of(e, "psn"), 55);
		assert_int_equal(number_of(e, "time_ns"), 1234);
		assert_int_equal(strncmp(text_of(e, "detail"), "RESP-SEQ-01: ", 13), 0);
		json_decref(v);
		assert_int_equal(count_events(), 0); /* once */
	}
}

static void
AE_04_AEQ_08_cq_events(void **state UNUSED)
{
	struct qp_cq *cq;
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	cq = qp_lookup(fake.env.qps, 17)->recv_cq;
	raise_event(
		0, (struct mbox_msg){ .ev = { .source = SOURCE_CQ, .qpn = cq->id, .object = cq } });
	v = events();
	assert_string_equal(text_of(json_array_get(v, 0), "event_type"), "CQ_ERR");
	assert_string_equal(text_of(json_array_get(v, 0), "cq"), "cq0");
	assert_string_equal(text_of(json_array_get(v, 0), "source"), "CQ");
	json_decref(v);
	/* A CQ that is not there, and another object with the same number. */
	raise_event(
		0, (struct mbox_msg){ .ev = { .source = SOURCE_CQ, .qpn = 4711, .object = cq } });
	raise_event(
		0, (struct mbox_msg){ .ev = { .source = SOURCE_CQ, .qpn = cq->id, .object = &v } });
	assert_int_equal(count_events(), 0);
}

static void
AE_09_AEQ_05_AEQ_06_events_of_objects_that_are_gone(void **state UNUSED)
{
	uint32_t worker;

	json_decref(rpc_ok("qp_create", qp17));
	worker = worker_of(17);
	raise_event(worker, (struct mbox_msg){ .ev = { .qpn = 17, .event = 1 } });
	control_poll(fake.c, fake.now);
	raise_event(worker, (struct mbox_msg){ .ev = { .qpn = 17, .event = 2 } });
	/* One is queued, one still on its way: neither is delivered after the destroy (QP-18). */
	json_decref(rpc_ok("qp_destroy", "{\"qp_num\":17}"));
	assert_int_equal(count_events(), 0);
	/* Late messages of the old QP are not the new one's. */
	json_decref(rpc_ok("qp_create", qp17));
	raise_event(
		worker, (struct mbox_msg){ .ev = { .qpn = 17, .event = 1, .object = &worker } });
	raise_event(worker, (struct mbox_msg){ .ev = { .qpn = 18, .event = 1 } });
	raise_event(
		worker, (struct mbox_msg){ .type = MBOX_FATAL, .ev = { .qpn = 18, .fatal = 3 } });
	assert_int_equal(count_events(), 0);
}

static void
AEQ_14_a_full_queue_tells_so(void **state UNUSED)
{
	uint64_t lost = 0;
	uint32_t worker;
	json_t *v, *last;

	json_decref(rpc_ok("qp_create", qp17));
	worker = worker_of(17);
	for (uint32_t i = 0; i < 5000; i++) {
		raise_event(worker, (struct mbox_msg){ .ev = { .qpn = 17, .event = 1, .psn = i } });
		control_poll(fake.c, fake.now);
	}
	v = events();
	for (uint32_t i = 0; json_array_size(v) > 0; v = events()) {
		for (size_t k = 0; k < json_array_size(v); k++, i++) {
			last = json_array_get(v, k);
			if (strcmp(text_of(last, "event_type"), "AEQ_OVERFLOW") == 0)
				lost += (uint64_t)number_of(last, "lost");
			else
				assert_int_equal(number_of(last, "psn"), i); /* in order */
		}
		json_decref(v);
	}
	json_decref(v);
	assert_int_equal(lost, 5000 - 4095);
	v = rpc_ok("stats", NULL);
	assert_int_equal(number_of(v, "aeq_overflow"), lost);
	json_decref(v);

	/* What a worker could not hand over is told as well, and where it is missing. */
	for (uint32_t i = 0; i < MBOX_EVENTS + 3; i++) {
		struct mbox_msg m = { .type = MBOX_EVENT, .ev = { .qpn = 17, .event = 1 } };

		m.ev.psn = i;
		assert_int_equal(
			mbox_send_up(&fake.mbox[worker], &m), i < MBOX_EVENTS ? 0 : -ENOBUFS);
	}
	control_poll(fake.c, fake.now);
	raise_event(worker, (struct mbox_msg){ .ev = { .qpn = 17, .event = 1, .psn = 7000 } });
	v = events();
	assert_int_equal(json_array_size(v), MBOX_EVENTS + 2);
	assert_int_equal(number_of(json_array_get(v, MBOX_EVENTS), "lost"), 3);
	assert_int_equal(number_of(json_array_get(v, MBOX_EVENTS + 1), "psn"), 7000);
	json_decref(v);
	v = rpc_ok("stats", "{\"scope\":\"total\"}");
	assert_int_equal(number_of(v, "aeq_overflow"), lost + 3);
	json_decref(v);
}

/* ---- fatal status and dropped packets ---------------------------------------------------------
 */

static void
RX_ERR_04_fatal_status_of_a_qp(void **state UNUSED)
{
	json_t *v, *f;

	json_decref(rpc_ok("qp_create", qp17));
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	assert_true(json_is_null(json_object_get(v, "fatal")));
	json_decref(v);
	raise_event(worker_of(17), (struct mbox_msg){ .type = MBOX_FATAL,
					   .ev = { .qpn = 17,
						   .fatal = 21,
						   .psn = 9,
						   .time_ns = 8,
						   .opcode = OP_RC_WRITE_ONLY } });
	v = rpc_ok("qp_query", "{\"qp_num\":17}");
	f = json_object_get(v, "fatal");
	assert_int_equal(number_of(f, "fatal_code"), 21);
	assert_int_equal(number_of(f, "psn"), 9);
	assert_string_equal(text_of(f, "opcode"), "RC_WRITE_ONLY");
	json_decref(v);
	assert_int_equal(count_events(), 0); /* a status is no event */
}

static void
AE_07_port_events(void **state UNUSED)
{
	json_t *v;

	assert_int_equal(rte_eth_dev_set_link_up(0), 0);
	control_poll(fake.c, fake.now);
	assert_int_equal(count_events(), 0);
	assert_int_equal(rte_eth_dev_set_link_down(0), 0);
	control_poll(fake.c, fake.now += TIME_NS_PER_S);
	assert_int_equal(rte_eth_dev_set_link_up(0), 0);
	control_poll(fake.c, fake.now += TIME_NS_PER_S);
	control_poll(fake.c, fake.now += TIME_NS_PER_S);
	v = events();
	assert_int_equal(json_array_size(v), 2);
	assert_string_equal(text_of(json_array_get(v, 0), "event_type"), "PORT_ERR");
	assert_string_equal(text_of(json_array_get(v, 1), "event_type"), "PORT_ACTIVE");
	assert_string_equal(text_of(json_array_get(v, 1), "port"), "p0");
	assert_string_equal(text_of(json_array_get(v, 1), "source"), "PORT");
	json_decref(v);
	v = rpc_ok("port_list", NULL);
	assert_string_equal(text_of(json_array_get(v, 0), "state"), "UP");
	assert_string_equal(text_of(json_array_get(v, 0), "mac"), "02:00:00:00:00:01");
	json_decref(v);
}

static void
RX_ERR_01_records_of_dropped_packets(void **state UNUSED)
{
	json_t *v, *r;

	fake_drop(0, 5, FAULT_BIT(FAULT_TVER) | FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	fake_drop(1, 6, FAULT_BIT(FAULT_PKEY), FAULT_PKEY);
	v = rpc_ok("rx_errors", "{\"max\":1}");
	assert_int_equal(json_array_size(v), 1);
	r = json_array_get(v, 0);
	assert_int_equal(number_of(r, "syndrome"), 1 << 30 | 1 << 13);
	assert_int_equal(json_array_size(json_object_get(r, "names")), 2);
	assert_string_equal(text_of(r, "impact"), "drop");
	assert_string_equal(text_of(r, "port"), "p0");
	assert_int_equal(number_of(r, "worker"), 0);
	assert_int_equal(number_of(r, "qp_num"), 17);
	assert_int_equal(number_of(r, "opcode"), 4);
	assert_int_equal(number_of(r, "length"), 300);
	assert_string_equal(text_of(r, "header"), "0102ff");
	json_decref(v);
	v = rpc_ok("rx_errors", NULL);
	assert_int_equal(json_array_size(v), 1);
	r = json_array_get(v, 0);
	assert_int_equal(number_of(r, "syndrome"), 0); /* a reason without a bit */
	assert_string_equal(
		json_string_value(json_array_get(json_object_get(r, "names"), 0)), "PKEY");
	json_decref(v);
	v = rpc_ok("rx_errors", NULL);
	assert_int_equal(json_array_size(v), 0);
	json_decref(v);
}

static void
counters_at_every_scope(void **state UNUSED)
{
	json_t *v;

	json_decref(rpc_ok("qp_create", qp17));
	fake.stats[0].c[STAT_rx_packets] = 5;
	fake.stats[1].c[STAT_rx_packets] = 7;
	fake.port_stats[1].c[STAT_rx_bytes] = 9;
	qp_lookup(fake.env.qps, 17)->stats->c[STAT_send_rnr_err] = 3;
	v = rpc_ok("stats", "{\"scope\":\"total\"}");
	assert_int_equal(number_of(v, "rx_packets"), 12);
	json_decref(v);
	v = rpc_ok("stats", "{\"scope\":\"worker\"}");
	assert_int_equal(number_of(json_array_get(v, 1), "rx_packets"), 7);
	assert_int_equal(number_of(json_array_get(v, 1), "worker"), 1);
	json_decref(v);
	v = rpc_ok("stats", "{\"scope\":\"port\",\"port\":\"p0\"}");
	assert_int_equal(number_of(v, "rx_bytes"), 9);
	json_decref(v);
	v = rpc_ok("stats", "{\"scope\":\"port\"}");
	assert_string_equal(text_of(json_array_get(v, 0), "port"), "p0");
	json_decref(v);
	v = rpc_ok("stats", "{\"scope\":\"qp\",\"qp_num\":17}");
	assert_int_equal(number_of(v, "send_rnr_err"), 3);
	for (unsigned int i = 0; i < STAT_MAX; i++)
		assert_non_null(json_object_get(v, stats_info[i].name));
	json_decref(v);
	assert_int_equal(rpc_code("stats", "{\"scope\":\"qp\"}"), -32602);
	assert_int_equal(rpc_code("stats", "{\"scope\":\"qp\",\"qp_num\":5}"), REFUSED(ENOENT));
	assert_int_equal(rpc_code("stats", "{\"scope\":\"all\"}"), -32602);
	assert_non_null(strstr(rpc_message(), "total"));
	assert_int_equal(rpc_code("stats", "{\"scope\":\"port\",\"port\":\"p9\"}"), -32602);
	assert_int_equal(rpc_code("stats", "{\"scope\":\"worker\",\"worker\":2}"), -32602);
}

static void
count_line(void *ctx, const char *line)
{
	unsigned int *n = ctx;

	assert_non_null(strstr(line, "rx_packets"));
	assert_non_null(strstr(line, " 12"));
	(*n)++;
}

static void
printed_counters(void **state UNUSED)
{
	unsigned int n = 0;

	fake.stats[0].c[STAT_rx_packets] = 12;
	control_print_counters(fake.c, count_line, &n);
	assert_int_equal(n, 1);
}

#define WITH_FAKE(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		WITH_FAKE(AE_01_AE_02_AE_03_qp_events),
		WITH_FAKE(AE_04_AEQ_08_cq_events),
		WITH_FAKE(AE_09_AEQ_05_AEQ_06_events_of_objects_that_are_gone),
		WITH_FAKE(AEQ_14_a_full_queue_tells_so),
		WITH_FAKE(RX_ERR_04_fatal_status_of_a_qp),
		WITH_FAKE(AE_07_port_events),
		WITH_FAKE(RX_ERR_01_records_of_dropped_packets),
		WITH_FAKE(counters_at_every_scope),
		WITH_FAKE(printed_counters),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
