/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_test.h"

#include <errno.h>

static const char smallest[] =
	"{\"version\":1,\"ports\":[{\"name\":\"p\",\"device\":\"d\",\"ipv4\":\"10.0.0.1\"}],"
	"\"pds\":[\"a\",{\"name\":\"b\"}],\"cqs\":[{\"name\":\"c\"}],\"srqs\":[{\"name\":\"s\",\"pd\":\"a\"}],"
	"\"mrs\":[{\"name\":\"m\",\"pd\":\"b\",\"length\":1}],"
	"\"qps\":[{\"qp_type\":\"RC\",\"pd\":\"a\",\"send_cq\":\"c\",\"recv_cq\":\"c\"}]}";

static struct conf *
load_good(const char *text)
{
	struct conf_errors err;
	struct conf *c;

	conf_errors_init(&err);
	assert_int_equal(conf_load_text(text, strlen(text), &c, &err), 0);
	assert_int_equal(err.n, 0);
	conf_errors_free(&err);
	return c;
}

/* Typed from the interface's own text: what a key is when it is left out. */
static void
defaults(void **state UNUSED)
{
	struct conf *c = load_good(smallest);
	const struct conf_qp *qp = &c->qps[0];

	assert_int_equal(c->n_eal, 0);
	assert_int_equal(c->lcores.control, 0);
	assert_int_equal(c->lcores.n_workers, 1);
	assert_int_equal(c->lcores.workers[0], 1);
	assert_int_equal(c->lcores.idle, CONF_IDLE_POLL);
	assert_string_equal(c->control.socket, "/run/rocelane.sock");
	assert_int_equal(c->control.mode, 0600);
	assert_int_equal(c->profile, CONF_PROFILE_IBA);
	assert_false(c->error_buffer.present);
	assert_int_equal(c->error_buffer.entries, 4096);
	assert_string_equal(c->error_buffer.pcapng, "");
	assert_int_equal(c->ports[0].given, CONF_PORT_IPV4);
	assert_int_equal(c->ports[0].prefix, 24);
	assert_int_equal(c->ports[0].prefix6, 64);
	assert_int_equal(c->ports[0].mtu, 1500);
	assert_int_equal(c->ports[0].n_neighbors, 0);
	assert_string_equal(c->pds[1].name, "b");
	assert_int_equal(c->cqs[0].cqe, 1024);
	assert_int_equal(c->srqs[0].max_wr, 1024);
	assert_int_equal(c->srqs[0].max_sge, 4);
	assert_int_equal(c->srqs[0].srq_limit, 0);
	assert_int_equal(c->mrs[0].given, 0);
	assert_int_equal(c->mrs[0].access, 0);
	assert_int_equal(c->mrs[0].fill, CONF_FILL_ZERO);
	assert_false(c->mrs[0].remote_invalidate);
	assert_int_equal(qp->given, CONF_QP_SEND_CQ | CONF_QP_RECV_CQ);
	assert_int_equal(qp->qp_type, 2); /* IBV_QPT_RC */
	assert_int_equal(qp->qp_state, QPS_RESET);
	assert_int_equal(qp->path_mtu, 1024);
	assert_int_equal(qp->timeout, 14);
	assert_int_equal(qp->retry_cnt, 7);
	assert_int_equal(qp->rnr_retry, 7);
	assert_int_equal(qp->min_rnr_timer, 12);
	assert_int_equal(qp->max_rd_atomic, 16);
	assert_int_equal(qp->max_dest_rd_atomic, 16);
	assert_int_equal(qp->pkey, 0xffff);
	assert_int_equal(qp->qp_access_flags, 0);
	assert_int_equal(qp->cap.max_send_wr, 128);
	assert_int_equal(qp->cap.max_recv_wr, 128);
	assert_int_equal(qp->cap.max_send_sge, 4);
	assert_int_equal(qp->cap.max_recv_sge, 4);
	assert_int_equal(qp->count, 1);
	conf_free(c);
}

static void
values(void **state UNUSED)
{
	static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 1 }, peer_mac[6] = { 2, 0, 0, 0, 0, 0xaB };
	static const uint8_t ipv4[4] = { 10, 77, 0, 1 }, peer[4] = { 10, 77, 0, 2 };
	struct conf *c = base_good(L_AH,
		"\"ah_attr\": { \"dest_ip\": \"10.77.0.2\", \"dest_mac\": "
		"\"02:00:00:00:00:aB\", \"traffic_class\": 104, \"hop_limit\": 1, \"vlan\": 4094, "
		"\"vlan_priority\": 7 },");
	const struct conf_qp *qp = &c->qps[0];

	assert_int_equal(c->n_eal, 2);
	assert_string_equal(c->eal[1], "--vdev=net_af_packet0,iface=x,framesz=4240,blocksz=65536");
	assert_int_equal(c->lcores.n_workers, 2);
	assert_int_equal(c->lcores.workers[1], 2);
	assert_int_equal(c->ports[0].given, CONF_PORT_MAC | CONF_PORT_IPV4);
	assert_memory_equal(c->ports[0].mac, mac, 6);
	assert_memory_equal(c->ports[0].ipv4, ipv4, 4);
	assert_int_equal(c->ports[0].mtu, 4200);
	assert_int_equal(c->ports[0].n_neighbors, 1);
	assert_int_equal(c->ports[0].neighbors[0].ip.family, 4);
	assert_memory_equal(c->ports[0].neighbors[0].ip.addr, peer, 4);
	assert_int_equal(c->mrs[0].given, CONF_MR_ADDR | CONF_MR_RKEY);
	assert_int_equal(c->mrs[0].length, 1048576);
	assert_int_equal(c->mrs[0].addr, 0x10000);
	assert_int_equal(c->mrs[0].rkey, 0x1001);
	assert_int_equal(qp->qp_num, 17);
	assert_int_equal(qp->dest_qp_num, 18);
	assert_int_equal(qp->qp_state, 3); /* IBV_QPS_RTS */
	assert_string_equal(qp->port, "p0");
	assert_int_equal(qp->ah_attr.given, CONF_AH_DEST_MAC | CONF_AH_VLAN);
	assert_memory_equal(qp->ah_attr.dest_mac, peer_mac, 6);
	assert_int_equal(qp->ah_attr.traffic_class, 104);
	assert_int_equal(qp->ah_attr.hop_limit, 1);
	assert_int_equal(qp->ah_attr.vlan, 4094);
	assert_int_equal(qp->ah_attr.vlan_priority, 7);
	/* null is not given; everything else in the text is, with the bits of ibv_qp_attr_mask. */
	assert_int_equal(qp->given & UINT32_MAX,
		1 << 0 | 1 << 3 | 1 << 4 | 1 << 5 | 1 << 7 | 1 << 8 | 1 << 9 | 1 << 10 | 1 << 11 |
			1 << 12 | 1 << 13 | 1 << 15 | 1 << 16 | 1 << 17 | 1 << 19 | 1 << 20);
	assert_int_equal(qp->given >> 32 << 32,
		CONF_QP_QP_NUM | CONF_QP_WORKER | CONF_QP_SEND_CQ | CONF_QP_RECV_CQ);
	assert_non_null(conf_port_find(c, "p0"));
	assert_null(conf_port_find(c, "p1"));
	conf_free(c);
}

static void
sizes_and_numbers(void **state UNUSED)
{
	static const struct {
		const char *text;
		uint64_t length, addr;
	} rows[] = {
		{ "\"length\": 4096, \"addr\": 0", 4096, 0 },
		{ "\"length\": \"4096\", \"addr\": \"0X0\"", 4096, 0 },
		{ "\"length\": \"0x1000\", \"addr\": \"0xFFFFFFFFFFFFEFFF\"", 4096,
			0xffffffffffffefff },
		{ "\"length\": \"64K\", \"addr\": 65536", 65536, 65536 },
		{ "\"length\": \"16M\", \"addr\": \"0xabcdef\"", 16777216, 0xabcdef },
		{ "\"length\": \"1G\", \"addr\": 9223372036854775807", 1073741824, INT64_MAX },
		{ "\"length\": \"1024G\"", 1099511627776, 0 },
		{ "\"length\": 1, \"addr\": \"0xfffffffffffffffe\"", 1, UINT64_MAX - 1 },
		{ "\"length\": 1, \"addr\": null, \"rkey\": null", 1, 0 },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char line[256];
		struct conf *c;

		snprintf(line, sizeof(line), "{ \"name\": \"mr1\", \"pd\": \"pd0\", %s } ],",
			rows[i].text);
		c = base_good(L_MR1, line);
		assert_true(c->mrs[1].length == rows[i].length);
		assert_true(c->mrs[1].addr == rows[i].addr);
		conf_free(c);
	}
}

static void
regions(void **state UNUSED)
{
	struct conf *c = base_good(L_MR1,
		"{ \"name\": \"mr1\", \"pd\": \"pd0\", \"length\": 64, "
		"\"access\": [\"LOCAL_WRITE\", \"REMOTE_WRITE\", \"REMOTE_READ\", \"REMOTE_ATOMIC\"], "
		"\"fill\": \"pattern:9000000000000000000\", \"remote_invalidate\": true } ],");

	assert_int_equal(c->mrs[1].access, 1 | 2 | 4 | 8); /* ibv_access_flags */
	assert_int_equal(c->mrs[1].fill, CONF_FILL_PATTERN);
	assert_true(c->mrs[1].fill_seed == 9000000000000000000u);
	assert_true(c->mrs[1].remote_invalidate);
	conf_free(c);
}

static void
templates_and_feeds(void **state UNUSED)
{
	struct conf *c = base_good(L_COUNT, "\"count\": 83,"); /* 17 .. 99, and the next is 100 */

	assert_int_equal(c->qps[0].count, 83);
	assert_int_equal(c->qps[0].given & (CONF_QP_RECV_FEED | CONF_QP_SEND_FEED), 0);
	conf_free(c);
	c = base_good(L_RECV_FEED, "\"recv_feed\": {},");
	assert_true((c->qps[0].given & CONF_QP_RECV_FEED) != 0);
	assert_int_equal(c->qps[0].recv_feed.buffers, 256);
	assert_int_equal(c->qps[0].recv_feed.size, 4096);
	conf_free(c);
	c = base_good(L_SEND_FEED, "\"send_feed\": { \"opcode\": \"SEND\" } },");
	assert_int_equal(c->qps[0].send_feed.opcode, 2); /* IBV_WR_SEND */
	assert_int_equal(c->qps[0].send_feed.size, 64);
	assert_int_equal(c->qps[0].send_feed.depth, 64);
	assert_true(c->qps[0].send_feed.stride == 0 && c->qps[0].send_feed.count == 0);
	conf_free(c);
	c = base_good(L_SEND_FEED,
		"\"send_feed\": { \"opcode\": \"RDMA_READ\", \"size\": \"1M\", "
		"\"depth\": 1, \"rkey\": \"0x12345678\", \"remote_addr\": \"0x7fffffffffffffff\", "
		"\"stride\": \"2M\", \"count\": 1000000000000 } },");
	assert_int_equal(
		c->qps[0].send_feed.given, CONF_FEED_RKEY | CONF_FEED_REMOTE_ADDR | CONF_FEED_SIZE);
	assert_int_equal(c->qps[0].send_feed.opcode, 4); /* IBV_WR_RDMA_READ */
	assert_int_equal(c->qps[0].send_feed.size, 1048576);
	assert_int_equal(c->qps[0].send_feed.rkey, 0x12345678);
	assert_true(c->qps[0].send_feed.remote_addr == 0x7fffffffffffffff);
	assert_true(c->qps[0].send_feed.stride == 2097152);
	assert_true(c->qps[0].send_feed.count == 1000000000000);
	conf_free(c);
	c = base_good(L_SEND_FEED,
		"\"send_feed\": { \"opcode\": \"ATOMIC_FETCH_AND_ADD\", \"rkey\": 1, "
		"\"remote_addr\": 8 } },");
	assert_int_equal(c->qps[0].send_feed.size, 8);
	conf_free(c);
}

/* clang-format off */
/* Names, values and defaults of every knob, typed from the conformance rules' list. */
static const struct knob_row {
	const char *name, *iba, *ernic, *other; /* JSON values; other: one that is neither default */
	size_t offset;
	uint32_t iba_value, ernic_value, other_value;
} knob_rows[] = {
#define K(m) offsetof(struct conf_knobs, m)
	{ "rx.len_pad_impact", "\"nak\"", "\"drop\"", NULL, K(rx_len_pad_impact), 0, 1, 0 },
	{ "rx.ip_df", "\"ignore\"", "\"require\"", NULL, K(rx_ip_df), 0, 1, 0 },
	{ "rx.udp_checksum", "\"ignore\"", "\"ignore\"", "\"check\"", K(rx_udp_checksum), 0, 0, 1 },
	{ "rx.turns", "\"peers\"", "\"peers\"", "\"arrival\"", K(rx_turns), 0, 0, 1 },
	{ "rx.check_src_mac", "\"off\"", "\"on\"", NULL, K(rx_check_src_mac), 0, 1, 0 },
	{ "rx.errbuf", "\"off\"", "\"off\"", "\"on\"", K(rx_errbuf), 0, 0, 1 },
	{ "req.bad_aeth", "\"fatal\"", "\"drop\"", NULL, K(req_bad_aeth), 0, 1, 0 },
	{ "req.ack_for_read", "\"drop\"", "\"drop\"", "\"fatal\"", K(req_ack_for_read), 0, 0, 1 },
	{ "req.gap", "\"restart\"", "\"restart\"", "\"patch\"", K(req_gap), 0, 0, 1 },
	{ "resp.gap", "\"drop\"", "\"drop\"", "\"keep\"", K(resp_gap), 0, 0, 1 },
	{ "req.read_gap", "\"restart\"", "\"restart\"", "\"fill\"", K(req_read_gap), 0, 0, 1 },
	{ "req.probe", "\"lossy\"", "\"lossy\"", "\"always\"", K(req_probe), 0, 0, 1 },
	{ "req.reorder", "0", "0", "3", K(req_reorder), 0, 0, 3 },
	{ "req.ackreq_interval", "16", "16", "1", K(req_ackreq_interval), 16, 16, 1 },
	{ "req.max_outstanding_psn", "8388607", "8388607", "\"0x10\"", K(req_max_outstanding_psn),
		8388607, 8388607, 16 },
	{ "req.credits", "\"off\"", "\"off\"", "\"on\"", K(req_credits), 0, 0, 1 },
	{ "resp.credits", "\"off\"", "\"off\"", "\"on\"", K(resp_credits), 0, 0, 1 },
	{ "resp.early_retry", "\"process\"", "\"process\"", "\"drop\"", K(resp_early_retry), 0, 0, 1 },
	{ "resp.half_window", "\"invalid\"", "\"invalid\"", "\"duplicate\"", K(resp_half_window), 0, 0, 1 },
	{ "resp.class_j_ack", "\"none\"", "\"none\"", "\"ack\"", K(resp_class_j_ack), 0, 0, 1 },
	{ "resp.imm_access_status", "\"rem_access\"", "\"rem_access\"", "\"loc_access\"",
		K(resp_imm_access_status), 0, 0, 1 },
	{ "resp.psn_check", "\"on\"", "\"on\"", "\"resync\"", K(resp_psn_check), 0, 0, 1 },
	{ "ops.placement", "\"off\"", "\"off\"", "\"on\"", K(ops_placement), 0, 0, 1 },
	{ "path.local", "\"inside\"", "\"inside\"", "\"wire\"", K(path_local), 0, 0, 1 },
	{ "tmr.min_timeout", "5", "5", "31", K(tmr_min_timeout), 5, 5, 31 },
	{ "ae.with_cqe", "\"off\"", "\"off\"", "\"on\"", K(ae_with_cqe), 0, 0, 1 },
	{ "cc.cnp", "\"on\"", "\"on\"", "\"off\"", K(cc_cnp), 1, 1, 0 },
	{ "cc.window", "256", "16", "1", K(cc_window), 256, 16, 1 },
	{ "cc.cnp_interval", "50", "50", "0", K(cc_cnp_interval), 50, 50, 0 },
	{ "cc.cnp_dscp", "48", "48", "63", K(cc_cnp_dscp), 48, 48, 63 },
	{ "cc.cnp_802p_prio", "6", "6", "0", K(cc_cnp_802p_prio), 6, 6, 0 },
	{ "cc.cnp_path", "\"data\"", "\"data\"", "\"control\"", K(cc_cnp_path), 0, 0, 1 },
	{ "cc.algo", "\"ernic_window\"", "\"ernic_window\"", "\"dcqcn\"", K(cc_algo), 0, 0, 3 },
	{ "cc.preset", "\"mlx5\"", "\"mlx5\"", "\"hpcc\"", K(cc_preset), 0, 0, 2 },
	{ "cc.rpg_time_reset", "300", "300", "1", K(cc_rpg_time_reset), 300, 300, 1 },
	{ "cc.rpg_byte_reset", "32767", "32767", "0", K(cc_rpg_byte_reset), 32767, 32767, 0 },
	{ "cc.rpg_threshold", "1", "1", "31", K(cc_rpg_threshold), 1, 1, 31 },
	{ "cc.rpg_ai_rate", "5", "5", "1", K(cc_rpg_ai_rate), 5, 5, 1 },
	{ "cc.rpg_hai_rate", "50", "50", "1", K(cc_rpg_hai_rate), 50, 50, 1 },
	{ "cc.rpg_gd", "11", "11", "10", K(cc_rpg_gd), 11, 11, 10 },
	{ "cc.rpg_min_dec_fac", "50", "50", "0", K(cc_rpg_min_dec_fac), 50, 50, 0 },
	{ "cc.rpg_min_rate", "1", "1", "400000", K(cc_rpg_min_rate), 1, 1, 400000 },
	{ "cc.rpg_max_rate", "0", "0", "400000", K(cc_rpg_max_rate), 0, 0, 400000 },
	{ "cc.rate_to_set_on_first_cnp", "0", "0", "400000", K(cc_rate_to_set_on_first_cnp), 0, 0, 400000 },
	{ "cc.dce_tcp_g", "1019", "1019", "0", K(cc_dce_tcp_g), 1019, 1019, 0 },
	{ "cc.dce_tcp_rtt", "1", "1", "131071", K(cc_dce_tcp_rtt), 1, 1, 131071 },
	{ "cc.rate_reduce_monitor_period", "4", "4", "1", K(cc_rate_reduce_monitor_period), 4, 4, 1 },
	{ "cc.initial_alpha_value", "1023", "1023", "1", K(cc_initial_alpha_value), 1023, 1023, 1 },
	{ "cc.clamp_tgt_rate", "0", "0", "1", K(cc_clamp_tgt_rate), 0, 0, 1 },
	{ "cc.delay_target", "50", "50", "1", K(cc_delay_target), 50, 50, 1 },
	{ "cc.delay_hop", "1", "1", "0", K(cc_delay_hop), 1, 1, 0 },
	{ "cc.delay_fs_range", "100", "100", "1000000", K(cc_delay_fs_range), 100, 100, 1000000 },
	{ "cc.delay_fs_min", "100", "100", "1", K(cc_delay_fs_min), 100, 100, 1 },
	{ "cc.delay_fs_max", "100000", "100000", "10000000", K(cc_delay_fs_max), 100000, 100000, 10000000 },
	{ "cc.delay_ai", "1000", "1000", "1", K(cc_delay_ai), 1000, 1000, 1 },
	{ "cc.delay_beta", "80", "80", "100", K(cc_delay_beta), 80, 80, 100 },
	{ "cc.delay_max_mdf", "50", "50", "99", K(cc_delay_max_mdf), 50, 50, 99 },
	{ "cc.delay_start", "32", "32", "65535", K(cc_delay_start), 32, 32, 65535 },
	{ "cc.delay_min_window", "10", "10", "1", K(cc_delay_min_window), 10, 10, 1 },
	{ "cc.delay_max_window", "256", "256", "65535", K(cc_delay_max_window), 256, 256, 65535 },
	{ "cc.delay_timeouts", "3", "3", "255", K(cc_delay_timeouts), 3, 3, 255 },
#undef K
};
/* clang-format on */

static uint32_t
knob(const struct conf_knobs *k, const struct knob_row *r)
{
	uint32_t v;

	memcpy(&v, (const uint8_t *)k + r->offset, sizeof(v));
	return v;
}

static void
knobs_and_profiles(void **state UNUSED)
{
	struct conf *iba = base_good(L_PROFILE, "\"profile\": \"iba\",");
	struct conf *ernic = base_good(L_PROFILE, "\"profile\": \"ernic\",");

	assert_int_equal(ARRAY_LEN(knob_rows), conf_table_knobs.n_fields);
	assert_int_equal(iba->knobs.profile, CONF_PROFILE_IBA);
	assert_int_equal(ernic->knobs.profile, CONF_PROFILE_ERNIC);
	for (size_t i = 0; i < ARRAY_LEN(knob_rows); i++) {
		const struct knob_row *r = &knob_rows[i];
		const bool grouped = r->iba_value != r->ernic_value;
		char line[128];
		struct conf *c;

		print_message("# %s\n", r->name);
		assert_int_equal(knob(&iba->knobs, r), r->iba_value);
		assert_int_equal(knob(&ernic->knobs, r), r->ernic_value);
		/* set alone, in the profile where it is not the default */
		snprintf(line, sizeof(line), "\"profile\": \"%s\", \"knobs\": { \"%s\": %s },",
			grouped ? "ernic" : "iba", r->name, grouped ? r->iba : r->other);
		const struct swap swaps[] = { { L_PROFILE, line }, { L_KNOBS, "" } };
		struct conf_errors err;

		assert_int_equal(base_load(swaps, 2, &c, &err), 0);
		assert_int_equal(err.n_errors, 0);
		assert_int_equal(err.n_warnings, strcmp(r->name, "resp.psn_check") == 0);
		assert_int_equal(knob(&c->knobs, r), grouped ? r->iba_value : r->other_value);
		assert_true(c->knobs.given != 0 && (c->knobs.given & (c->knobs.given - 1)) == 0);
		for (size_t k = 0; k < ARRAY_LEN(knob_rows); k++) {
			if (k != i)
				assert_int_equal(knob(&c->knobs, &knob_rows[k]),
					knob(grouped ? &ernic->knobs : &iba->knobs, &knob_rows[k]));
		}
		conf_errors_free(&err);
		conf_free(c);
	}
	conf_free(iba);
	conf_free(ernic);
}

/* The most particular wins: a QP's knob, its profile's group, the file's knob, its profile. */
static void
knobs_of_a_qp(void **state UNUSED)
{
	static const struct swap swaps[] = {
		{ L_KNOBS,
			"\"knobs\": { \"rx.ip_df\": \"require\", \"cc.cnp\": \"off\", \"cc.window\": 99 }," },
		{ L_CAP, "\"profile\": \"ernic\", \"knobs\": { \"rx.check_src_mac\": \"off\" }," },
		{ L_QP2,
			"{ \"qp_type\": \"RC\", \"pd\": \"pd0\", \"send_cq\": \"cq0\", \"recv_cq\": \"cq0\", "
			"\"profile\": \"iba\" }, { \"qp_type\": \"RC\", \"pd\": \"pd0\", "
			"\"send_cq\": \"cq0\", \"recv_cq\": \"cq0\" } ]" },
	};
	struct conf_knobs k;
	struct conf_errors err;
	struct conf *c;

	assert_int_equal(base_load(swaps, ARRAY_LEN(swaps), &c, &err), 0);
	conf_qp_knobs(&c->knobs, &c->qps[0], &k);
	assert_int_equal(k.profile, CONF_PROFILE_ERNIC);
	assert_int_equal(k.rx_len_pad_impact, KNOB_rx_len_pad_impact_drop);
	assert_int_equal(k.rx_ip_df, KNOB_rx_ip_df_require);
	assert_int_equal(k.rx_check_src_mac, 0);
	assert_int_equal(k.req_bad_aeth, KNOB_req_bad_aeth_drop);
	assert_int_equal(k.cc_window, 16);
	assert_int_equal(k.cc_cnp, 0);
	conf_qp_knobs(&c->knobs, &c->qps[1], &k);
	assert_int_equal(k.profile, CONF_PROFILE_IBA);
	assert_int_equal(k.rx_ip_df, KNOB_rx_ip_df_ignore);
	assert_int_equal(k.cc_cnp, 0);
	conf_qp_knobs(&c->knobs, &c->qps[2], &k);
	assert_int_equal(k.rx_ip_df, KNOB_rx_ip_df_require);
	assert_int_equal(k.cc_window, 99);
	conf_free(c);
	conf_errors_free(&err);
}

static void
error_buffer_on_and_off(void **state UNUSED)
{
	static const struct {
		const char *buffer, *knobs;
		bool present;
		uint32_t entries, warnings;
		const char *pcapng;
	} rows[] = {
		{ "null", "{}", false, 4096, 0, "" },
		{ "{}", "{}", true, 4096, 0, "" },
		{ "{ \"entries\": 7, \"pcapng\": null }", "{}", true, 7, 0, "" },
		{ "{ \"pcapng\": \"a.pcapng\" }", "{}", true, 4096, 0, "a.pcapng" },
		{ "null", "{ \"rx.errbuf\": \"on\" }", true, 4096, 0, "" },
		{ "{ \"entries\": 7 }", "{ \"rx.errbuf\": \"on\" }", true, 7, 0, "" },
		{ "{ \"entries\": 7 }", "{ \"rx.errbuf\": \"off\" }", false, 7, 1, "" },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		char buffer[128], knobs[128];
		const struct swap swaps[] = { { L_ERROR_BUFFER, buffer }, { L_KNOBS, knobs } };
		struct conf_errors err;
		struct conf *c;

		snprintf(buffer, sizeof(buffer), "\"error_buffer\": %s,", rows[i].buffer);
		snprintf(knobs, sizeof(knobs), "\"knobs\": %s,", rows[i].knobs);
		print_message("# %s %s\n", buffer, knobs);
		assert_int_equal(base_load(swaps, 2, &c, &err), 0);
		assert_int_equal(c->error_buffer.present, rows[i].present);
		assert_int_equal(c->knobs.rx_errbuf, rows[i].present);
		assert_int_equal(c->error_buffer.entries, rows[i].entries);
		assert_string_equal(c->error_buffer.pcapng, rows[i].pcapng);
		assert_int_equal(err.n_warnings, rows[i].warnings);
		conf_free(c);
		conf_errors_free(&err);
	}
}

/* What save_config writes loads again to the same. */
static void
written_configuration_loads_again(void **state UNUSED)
{
	struct conf *c =
		base_good(L_CAP, "\"profile\": \"ernic\", \"knobs\": { \"cc.window\": 7 },");
	json_t *first = conf_encode_all(c);
	char *text = json_dumps(first, 0);
	struct conf *again = load_good(text);
	json_t *second = conf_encode_all(again);

	assert_non_null(first);
	assert_true(json_equal(first, second));
	/* Only the mask differs: what was a default is written, and given from then on. */
	for (uint32_t i = 0; i < c->n_qps; i++) {
		assert_true((again->qps[i].given & c->qps[i].given) == c->qps[i].given);
		again->qps[i].given = c->qps[i].given;
	}
	assert_memory_equal(again->qps, c->qps, c->n_qps * sizeof(struct conf_qp));
	assert_memory_equal(again->mrs, c->mrs, c->n_mrs * sizeof(struct conf_mr));
	assert_memory_equal(&again->knobs, &c->knobs, sizeof(struct conf_knobs));
	assert_true(json_is_string(json_array_get(json_object_get(first, "pds"), 0)));
	free(text);
	json_decref(first);
	json_decref(second);
	conf_free(c);
	conf_free(again);
}

static void
examples(void **state UNUSED)
{
	static const struct {
		const char *name;
		uint32_t ports, qps, mrs, state;
	} rows[] = {
		{ "apm", 4, 2, 1, QPS_RTS },
		{ "loopback", 2, 5, 3, QPS_RTS },
		{ "minimal", 1, 0, 0, 0 },
		{ "replay", 1, 1, 1, QPS_RTR },
		{ "responder", 1, 1, 1, QPS_RTS },
		{ "tap", 1, 1, 1, QPS_RTS },
	};

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct conf_errors err;
		char path[512];
		struct conf *c;

		snprintf(path, sizeof(path), "%s/examples/%s.json", CONFIG_DIR, rows[i].name);
		print_message("# %s\n", path);
		conf_errors_init(&err);
		assert_int_equal(conf_load_file(path, &c, &err), 0);
		errors_show(&err);
		assert_int_equal(err.n, 0);
		assert_int_equal(c->n_ports, rows[i].ports);
		assert_int_equal(c->n_qps, rows[i].qps);
		assert_int_equal(c->n_mrs, rows[i].mrs);
		if (c->n_qps != 0)
			assert_int_equal(c->qps[0].qp_state, rows[i].state);
		conf_free(c);
		conf_errors_free(&err);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(defaults),
		cmocka_unit_test(values),
		cmocka_unit_test(sizes_and_numbers),
		cmocka_unit_test(regions),
		cmocka_unit_test(templates_and_feeds),
		cmocka_unit_test(knobs_and_profiles),
		cmocka_unit_test(knobs_of_a_qp),
		cmocka_unit_test(error_buffer_on_and_off),
		cmocka_unit_test(written_configuration_loads_again),
		cmocka_unit_test(examples),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
