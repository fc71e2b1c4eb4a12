/* SPDX-License-Identifier: BSD-3-Clause */
/* MADs of the connection manager: the table of fields, and messages of Linux hosts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "compiler.h"
#include "mad.h"
#include "wire.h"
#include "../../vectors/pcap.h"

enum { PATH_ROOM = 1024, MADS_MAX = 16 };

static const char *captures;
static const char *rules;

struct mads {
	uint8_t mad[MADS_MAX][MAD_LEN];
	unsigned int n;
};

static void
load(const char *name, struct mads *out)
{
	static const struct wire_port any = { .has_ipv4 = true };
	char path[PATH_ROOM];
	struct pcap_file in;
	const uint8_t *frame;
	uint32_t len;

	out->n = 0;
	snprintf(path, sizeof(path), "%s/%s", captures, name);
	assert_int_equal(pcap_open(&in, path), 0);
	while (pcap_next(&in, &frame, &len) == 1) {
		struct wire_pkt p;

		if (wire_parse(&any, frame, len, &p) != WIRE_CLASS_ROCE || p.dest_qpn != MAD_QPN)
			continue;
		assert_true(out->n < MADS_MAX);
		assert_int_equal(p.payload_len, MAD_LEN);
		assert_int_equal(wire_deth(&p).qkey, MAD_QKEY);
		memcpy(out->mad[out->n++], wire_payload(&p), MAD_LEN);
	}
	pcap_close(&in);
}

static void
expect(const uint8_t *mad, enum mad_field f, uint64_t want)
{
	if (mad_get(mad, f) != want)
		fail_msg("%s is 0x%llx", mad_fields[f].name, (unsigned long long)mad_get(mad, f));
}

/* CM-01..CM-10: REQ, REP, RTU, DREQ, DREP of rping. QPNs and PSNs are those of its RC packets. */
static void
linux_rping(void **state)
{
	static const uint8_t order[] = { CM_REQ, CM_REP, CM_RTU, CM_DREQ, CM_DREP };
	static const uint8_t client[4] = { 10, 77, 0, 2 }, server[4] = { 10, 77, 0, 1 };
	static struct mads m;
	const uint8_t *req, *rep, *ip;

	(void)state;
	load("rping.pcap", &m);
	assert_int_equal(m.n, ARRAY_LEN(order));
	for (unsigned int i = 0; i < m.n; i++) {
		assert_int_equal(mad_check(m.mad[i], MAD_LEN), MAD_GOOD);
		assert_int_equal(mad_message(m.mad[i]), order[i]);
	}
	req = m.mad[0];
	rep = m.mad[1];
	expect(req, MAD_tid, 0x2fde8703e);
	expect(rep, MAD_tid, 0x2fde8703e);
	expect(req, REQ_service_id, 0x1061c06); /* TCP, 7174 */
	expect(req, REQ_local_qpn, 0x11);
	expect(req, REQ_starting_psn, 0xd3458b); /* CM-19: of the server's first packet */
	expect(req, REQ_transport_service_type, 0);
	expect(req, REQ_pkey, 0xffff);
	expect(req, REQ_remote_cm_response_timeout, 20);
	expect(req, REQ_local_cm_response_timeout, 20);
	expect(req, REQ_max_cm_retries, 15);
	expect(req, REQ_primary_local_lid, 0xffff);
	expect(req, REQ_primary_remote_lid, 0xffff);
	expect(req, REQ_primary_hop_limit, 64);
	expect(req, REQ_primary_local_ack_timeout, 19);
	expect(req, REQ_path_mtu, 3);
	expect(req, REQ_alternate_local_lid, 0);
	assert_memory_equal(mad_peek(req, REQ_primary_local_gid) + 12, client, 4);
	assert_memory_equal(mad_peek(req, REQ_primary_remote_gid) + 12, server, 4);
	ip = mad_peek(req, REQ_private_data);
	expect(ip, IP_version, 0);
	expect(ip, IP_ip_version, 4);
	assert_memory_equal(mad_peek(ip, IP_source_ip) + 12, client, 4);
	assert_memory_equal(mad_peek(ip, IP_destination_ip) + 12, server, 4);
	expect(rep, REP_local_qpn, 0x11);
	expect(rep, REP_starting_psn, 0xa0f71c);
	expect(rep, REP_target_ack_delay, 15);
	expect(rep, REP_remote_comm_id, mad_get(req, REQ_local_comm_id));
	expect(m.mad[2], RTU_local_comm_id, mad_get(req, REQ_local_comm_id));
	expect(m.mad[2], RTU_remote_comm_id, mad_get(rep, REP_local_comm_id));
	expect(m.mad[3], DREQ_remote_qpn, 0x11);
	expect(m.mad[4], DREP_local_comm_id, mad_get(m.mad[3], DREQ_remote_comm_id));
}

/* CM-02: what Linux sent is its fields and nothing else; written again they are the same bytes. */
static void
linux_again(void **state)
{
	static const char *const files[] = { "rping.pcap", "ucmatose.pcap" };
	static struct mads m;
	unsigned int n = 0;

	(void)state;
	for (unsigned int k = 0; k < ARRAY_LEN(files); k++) {
		load(files[k], &m);
		for (unsigned int i = 0; i < m.n; i++, n++) {
			const uint8_t *mad = m.mad[i];
			uint8_t own[MAD_LEN];

			mad_init(own, mad_message(mad), mad_get(mad, MAD_tid));
			for (enum mad_field f = 0; f < MAD_FIELDS; f++) {
				if (mad_fields[f].message != mad_message(mad))
					continue;
				if (mad_fields[f].bits <= 64)
					mad_set(own, f, mad_get(mad, f));
				else
					memcpy(mad_at(own, f), mad_peek(mad, f), mad_bytes(f));
			}
			assert_memory_equal(own, mad, MAD_LEN);
		}
	}
	assert_int_equal(n, 15);
}

/* A field holds its bits and touches no other. */
static void
alone(void **state)
{
	(void)state;
	for (enum mad_field f = 0; f < MAD_FIELDS; f++) {
		const struct mad_field_info *i = &mad_fields[f];
		uint8_t zeros[MAD_LEN] = { 0 }, ones[MAD_LEN];
		unsigned int set = 0;

		if (i->bits > 64)
			continue;
		memset(ones, 0xff, sizeof(ones));
		mad_set(zeros, f, UINT64_MAX);
		mad_set(ones, f, 0);
		for (unsigned int b = 0; b < MAD_LEN; b++) {
			set += (unsigned int)__builtin_popcount(zeros[b]);
			assert_int_equal(zeros[b] ^ ones[b], 0xff);
		}
		assert_int_equal(set, i->bits);
		assert_int_equal(mad_get(zeros, f), UINT64_MAX >> (64 - i->bits));
		assert_int_equal(mad_get(ones, f), 0);
	}
}

/* The rows of one table of the rules. */
static unsigned int
compare(const json_t *data, const char *key, uint8_t message, unsigned int header)
{
	const json_t *rows = json_object_get(json_object_get(data, key), "rows"), *row;
	unsigned int n = 0, have = 0;
	size_t at;

	json_array_foreach (rows, at, row) {
		const char *name = json_string_value(json_object_get(row, "field"));
		enum mad_field f;

		for (f = 0; f < MAD_FIELDS; f++)
			if (mad_fields[f].message == message &&
				strcmp(mad_fields[f].name, name) == 0)
				break;
		if (f == MAD_FIELDS)
			fail_msg("%s has no %s", key, name);
		assert_int_equal(mad_fields[f].byte,
			header + json_integer_value(json_object_get(row, "byte")));
		assert_int_equal(
			mad_fields[f].bit, json_integer_value(json_object_get(row, "bit")));
		assert_int_equal(
			mad_fields[f].bits, json_integer_value(json_object_get(row, "bits")));
		n++;
	}
	for (enum mad_field f = 0; f < MAD_FIELDS; f++)
		have += mad_fields[f].message == message;
	assert_int_equal(n, have);
	return n;
}

/* data.mad_header_fields, data.cm_req_fields ... data.cm_private_header, data.cm_rej_reasons */
static void
tables(void **state)
{
	json_t *all = json_load_file(rules, 0, NULL);
	const json_t *data = json_object_get(all, "data"), *row;
	size_t at;

	(void)state;
	assert_non_null(all);
	compare(data, "mad_header_fields", MAD_ANY, 0);
	compare(data, "cm_private_header", MAD_IP, 0);
	compare(data, "cm_req_fields", CM_REQ, 24);
	compare(data, "cm_mra_fields", CM_MRA, 24);
	compare(data, "cm_rej_fields", CM_REJ, 24);
	compare(data, "cm_rep_fields", CM_REP, 24);
	compare(data, "cm_rtu_fields", CM_RTU, 24);
	compare(data, "cm_dreq_fields", CM_DREQ, 24);
	compare(data, "cm_drep_fields", CM_DREP, 24);
	compare(data, "cm_sidr_req_fields", CM_SIDR_REQ, 24);
	compare(data, "cm_sidr_rep_fields", CM_SIDR_REP, 24);
	json_array_foreach (
		json_object_get(json_object_get(data, "cm_attributes"), "rows"), at, row) {
		const uint32_t id =
			(uint32_t)strtoul(json_string_value(json_object_get(row, "id")), NULL, 16);

		assert_string_equal(
			mad_message_name(id), json_string_value(json_object_get(row, "name")));
		assert_int_equal(mad_bytes(mad_private(id)),
			json_integer_value(json_object_get(row, "private_bytes")));
	}
	json_array_foreach (
		json_object_get(json_object_get(data, "cm_rej_reasons"), "rows"), at, row) {
		const json_int_t code = json_integer_value(json_object_get(row, "code"));

		assert_string_not_equal(mad_reason_text((uint32_t)code), mad_reason_text(0));
	}
	assert_string_equal(mad_reason_text(65535), mad_reason_text(0));
	json_decref(all);
}

/* CM_37, CM_38: what is no message of the CM. */
static void
bad(void **state)
{
	static const struct {
		enum mad_field field;
		uint64_t value;
		enum mad_fault want;
	} rows[] = {
		{ MAD_base_version, 2, MAD_BAD_BASE },
		{ MAD_mgmt_class, 3, MAD_BAD_CLASS },
		{ MAD_class_version, 1, MAD_BAD_CLASS_VERSION },
		{ MAD_method, 1, MAD_BAD_METHOD },
		{ MAD_attr_id, 0x0f, MAD_BAD_ATTRIBUTE },
		{ MAD_attr_id, 0xff, MAD_BAD_ATTRIBUTE },
		{ MAD_attr_id, 0x1b, MAD_BAD_ATTRIBUTE },
		{ MAD_attr_mod, 1, MAD_GOOD },
		{ MAD_reserved, 0xffff, MAD_GOOD },
	};
	uint8_t mad[MAD_LEN];

	(void)state;
	for (unsigned int i = 0; i < ARRAY_LEN(rows); i++) {
		mad_init(mad, CM_REQ, 5);
		assert_int_equal(mad_check(mad, MAD_LEN), MAD_GOOD);
		mad_set(mad, rows[i].field, rows[i].value);
		assert_int_equal(mad_check(mad, MAD_LEN), rows[i].want);
	}
	mad_init(mad, CM_REQ, 5);
	assert_int_equal(mad_check(mad, 255), MAD_BAD_LENGTH);
	assert_int_equal(mad_check(mad, 0), MAD_BAD_LENGTH);
	assert_null(mad_message_name(0x0f));
	assert_null(mad_message_text(0xff));
	assert_int_equal(mad_private(0xff), MAD_FIELDS);
}

static void
printed(void **state)
{
	uint8_t mad[MAD_LEN];
	char line[256], small[8];
	size_t n;

	(void)state;
	mad_init(mad, CM_REJ, 0x1234);
	mad_set(mad, REJ_remote_comm_id, 7);
	mad_set(mad, REJ_reason, CM_REJ_CONSUMER_DEFINED);
	memcpy(mad_at(mad, REJ_private_data), "\x01\x00\x02", 3);
	n = mad_print(mad, line, sizeof(line));
	assert_int_equal(n, strlen(line));
	assert_string_equal(
		line, "REJ tid=0x1234 remote_comm_id=0x7 reason=0x1c private_data=010002");
	assert_int_equal(mad_print(mad, small, sizeof(small)), 7);
	assert_string_equal(small, "REJ tid");
	mad_set(mad, MAD_attr_id, 0xff);
	mad_print(mad, line, sizeof(line));
	assert_string_equal(line, "attribute 0x00ff tid=0x1234");
	assert_string_equal(mad_message_text(CM_RTU), "ready to use");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(linux_rping),
		cmocka_unit_test(linux_again),
		cmocka_unit_test(alone),
		cmocka_unit_test(tables),
		cmocka_unit_test(bad),
		cmocka_unit_test(printed),
	};

	captures = argc > 1 ? argv[1] : "tests/vectors/captures";
	rules = argc > 2 ? argv[2] : "tests/conformance/rules.json";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
