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
drop(unsigned int worker, uint32_t psn, uint64_t faults, uint8_t charged)
{
	struct errbuf_record *r = trace_errbuf_slot(fake.errbuf[worker]);

	assert_non_null(r);
	*r = (struct errbuf_record){ .time_ns = psn,
		.faults = faults,
		.qpn = 17,
		.psn = psn,
		.frame_len = 300,
		.header_len = 3,
		.opcode = OP_RC_SEND_ONLY,
		.charged = charged,
		.header = { 1, 2, 0xff } };
	trace_errbuf_commit(fake.errbuf[worker]);
}

static void
RX_ERR_01_records_of_dropped_packets(void **state UNUSED)
{
	json_t *v, *r;

	drop(0, 5, FAULT_BIT(FAULT_TVER) | FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	drop(1, 6, FAULT_BIT(FAULT_PKEY), FAULT_PKEY);
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

/** With a pcapng file of its own, whose name goes into `path`. @return the file, open. */
static int
start_with_file(char path[32], const char *more)
{
	char conf[1024];
	int fd;

	strcpy(path, "/tmp/rlcontrolXXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	snprintf(conf, sizeof(conf),
		"{\"version\":1,\"lcores\":{\"workers\":[1,2]},"
		"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring0\",\"ipv4\":\"10.0.0.1\"}],"
		"\"error_buffer\":{\"entries\":64,\"pcapng\":\"%s\"%s}}",
		path, more);
	fake_start(conf);
	return fd;
}

/* Blocks of a pcapng file, read back by hand. */
static void
RX_ERR_01_pcapng_file(void **state UNUSED)
{
	char path[32];
	static uint32_t words[1024];
	const char *comment;
	uint64_t wall;
	json_t *v;
	size_t n;
	FILE *f;
	int fd = start_with_file(path, "");

	drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	control_poll(fake.c, fake.now);
	v = rpc_ok("rx_errors", NULL); /* the file takes nothing away */
	assert_int_equal(json_array_size(v), 1);
	json_decref(v);
	fake_stop();

	f = fdopen(fd, "r");
	n = fread(words, 4, ARRAY_LEN(words), f);
	fclose(f);
	remove(path);
	assert_int_equal(words[0], 0x0a0d0d0a);
	assert_int_equal(words[2], 0x1a2b3c4d);
	size_t at = words[1] / 4;

	assert_int_equal(words[at], 1);     /* interface */
	assert_int_equal(words[at + 2], 1); /* Ethernet */
	at += words[at + 1] / 4;
	assert_int_equal(words[at], 6); /* packet */
	assert_int_equal(words[at + 1] / 4, n - at);
	assert_int_equal(words[n - 1], words[at + 1]);
	wall = ((uint64_t)words[at + 3] << 32 | words[at + 4]) / TIME_NS_PER_S;
	assert_in_range(wall, (uint64_t)time(NULL) - 1000, (uint64_t)time(NULL) + 1000); /* UTC */
	assert_int_equal(words[at + 5], 3);
	assert_int_equal(words[at + 6], 300);
	assert_memory_equal(&words[at + 7], "\x01\x02\xff", 4);
	comment = (const char *)&words[at + 9];
	assert_int_equal(words[at + 8] & 0xffff, 1);
	assert_int_equal(strncmp(comment, "syndrome 0x40000000: ICRC [RX-SYN-30] (QP 17,", 45), 0);
}

/* Packets of one section, read back by hand; the file is whole blocks. */
static uint32_t
packets_in(const char *path)
{
	static uint32_t words[1 << 17];
	FILE *f = fopen(path, "r");
	uint32_t packets = 0;
	size_t n, at = 0;

	assert_non_null(f);
	n = fread(words, 4, ARRAY_LEN(words), f);
	fclose(f);
	assert_int_equal(words[0], 0x0a0d0d0a);
	while (at < n) {
		packets += words[at] == 6;
		at += words[at + 1] / 4;
	}
	assert_int_equal(at, n);
	return packets;
}

/* RX-ERR-03: a flood fills two files of a limited size; an old file is begun anew, too. */
static void
RX_ERR_03_the_pcapng_file_is_limited(void **state UNUSED)
{
	static const char *const more[] = { ",\"pcapng_size\":65536", ",\"pcapng_age\":60" };

	for (uint32_t how = 0; how < 2; how++) {
		char path[32], old[40];
		struct stat st;

		close(start_with_file(path, more[how]));
		snprintf(old, sizeof(old), "%s.1", path);
		for (uint32_t i = 0; i < (how == 0 ? 3000u : 10u); i++) {
			drop(0, 5, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
			fake.now += how == 0 ? 1000 : 9 * TIME_NS_PER_S;
			control_poll(fake.c, fake.now);
			assert_int_equal(stat(path, &st), 0);
			assert_in_range(st.st_size, 0, 65536 + 1024);
			assert_int_equal(st.st_mode & 0777, 0600);
		}
		fake_stop();
		assert_int_equal(stat(old, &st), 0);
		assert_in_range(st.st_size, 100, 65536 + 1024);
		assert_int_equal(st.st_mode & 0777, 0600);
		/* The old one is full, and the new one has what came later. */
		if (how == 0)
			assert_true(packets_in(old) > 200);
		else
			assert_int_equal(packets_in(old) + packets_in(path), 10);
		remove(path);
		remove(old);
	}
}

/* The disk is full: the file ends with a whole block, and the records are there by RPC as ever. */
static void
RX_ERR_03_pcapng_file_on_a_full_disk(void **state UNUSED)
{
	char path[32];
	int fd = start_with_file(path, "");
	struct rlimit was, limit;
	uint32_t end[2], records = 0;
	struct stat at, full;
	off_t pos = 0;
	json_t *v;

	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(fstat(fd, &at), 0);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	limit = was;
	limit.rlim_cur = (rlim_t)at.st_size + 500;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint32_t psn = 0; psn < 20; psn++) {
		drop(psn % 2, psn, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
		control_poll(fake.c, fake.now);
	}
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	assert_int_equal(fstat(fd, &full), 0);
	assert_in_range(full.st_size, at.st_size + 100, at.st_size + 500);
	drop(0, 20, FAULT_BIT(FAULT_ICRC), FAULT_ICRC);
	control_poll(fake.c, fake.now);
	v = rpc_ok("rx_errors", NULL);
	assert_int_equal(json_array_size(v), 21);
	json_decref(v);
	fake_stop();

	while (pread(fd, end, sizeof(end), pos) == sizeof(end)) {
		uint32_t last = 0;

		assert_in_range(end[1], 12, 1000);
		pos += end[1];
		assert_int_equal(pread(fd, &last, sizeof(last), pos - 4), sizeof(last));
		assert_int_equal(last, end[1]);
		records += end[0] == 6;
	}
	assert_int_equal(pos, full.st_size);
	assert_true(records >= 1);
	close(fd);
	remove(path);
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
		cmocka_unit_test(RX_ERR_01_pcapng_file),
		cmocka_unit_test(RX_ERR_03_pcapng_file_on_a_full_disk),
		cmocka_unit_test(RX_ERR_03_the_pcapng_file_is_limited),
		WITH_FAKE(counters_at_every_scope),
		WITH_FAKE(printed_counters),
	};

	return cmocka_run_group_tests(tests, fake_eal, fake_eal_end);
}
