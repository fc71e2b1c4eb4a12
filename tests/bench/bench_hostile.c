/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a flood of bad packets costs: by kind, in TSC cycles a packet, with the error buffer off and
 * on; and what is left for a good QP of the same worker while the wire brings ten bad packets for
 * each of its WRITEs of 64 bytes. The yardstick is a neighbour that sends as many good ones: a
 * flood costs the good QP less than its share where `share` is above 1, when the good QP is served
 * faster than next to that neighbour. Of the cases with a `*` each packet of a sample goes to a QP
 * of its own, since it is the last that its QP takes (the QPs are revived between samples); the
 * neighbour sends to as many QPs then. A READ that is asked for again is answered again, which a
 * WRITE is not: its yardstick is a neighbour that sends as many good READs of the same size, to
 * which good_readers is the row. A turn of the worker is a microsecond. Samples are interleaved;
 * nothing passes or fails here.
 *
 *   bench_hostile [--stages yes] [--json FILE] [--repeats N] [CASE...]
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_cycles.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "bench_hostile_rig.h"
#include "bench_stat.h"

enum { MAX_REPEATS = 2001, WARM_UP = 10, IPV4 = 14, UDP = 34, BTH = 42 };

/* clang-format off */
static const struct hostile_case cases[] = {
	/* name,              rule,              spoil,            at, value, each, psn, counter */
	{ "good_neighbour",   "",                SPOIL_NOTHING,    0, 0, false, 0, STAT_MAX },
	{ "good_neighbours",  "",                SPOIL_NOTHING,    0, 0, true, 0, STAT_MAX },
	{ "good_readers",     "",                SPOIL_NOTHING,    OP_RC_READ_REQUEST, 0, true, 0, STAT_rx_read_requests },
	{ "not_roce",         "",                SPOIL_NOT_ROCE,   UDP + 3, 1, false, 0, STAT_rx_not_roce },
	{ "dst_mac",          "RX-SYN-00",       SPOIL_BYTE,       5, 1, false, 0, STAT_rx_syndrome_0 },
	{ "ip_version",       "RX-SYN-02",       SPOIL_IPV6,       0, 0, false, 0, STAT_rx_syndrome_2 },
	{ "ip_header_len",    "RX-SYN-03",       SPOIL_BYTE_SUM,   IPV4, 1, false, 0, STAT_MAX },
	{ "ip_flags",         "RX-SYN-05",       SPOIL_BYTE_SEAL,  IPV4 + 6, 0x20, false, 0, STAT_rx_syndrome_5 },
	{ "ip_fragment",      "RX-SYN-06",       SPOIL_BYTE_SEAL,  IPV4 + 7, 1, false, 0, STAT_rx_syndrome_6 },
	{ "dst_ip",           "RX-SYN-08",       SPOIL_BYTE_SEAL,  IPV4 + 19, 1, false, 0, STAT_rx_syndrome_8 },
	{ "ip_checksum",      "RX-SYN-09",       SPOIL_BYTE,       IPV4 + 10, 1, false, 0, STAT_rx_syndrome_9 },
	{ "ip_len",           "RX-SYN-10",       SPOIL_CUT,        0, 8, false, 0, STAT_rx_syndrome_10 },
	{ "udp_len",          "RX-SYN-12",       SPOIL_BYTE,       UDP + 5, 4, false, 0, STAT_rx_syndrome_12 },
	{ "bth_version",      "RX-SYN-13",       SPOIL_BYTE_SEAL,  BTH + 1, 1, false, 0, STAT_rx_syndrome_13 },
	{ "reserved_qp",      "RX-SYN-14",       SPOIL_BYTE_SEAL,  BTH + 6, 0x10, false, 0, STAT_rx_syndrome_14 },
	{ "no_qp",            "RX-SYN-15",       SPOIL_NO_QP,      0, 0, false, 0, STAT_rx_syndrome_15 },
	{ "qp_in_err",        "RX-SYN-15",       SPOIL_STATE,      0, 0, false, 0, STAT_rx_syndrome_15 },
	{ "src_ip",           "RX-SYN-27",       SPOIL_BYTE_SEAL,  IPV4 + 15, 4, false, 0, STAT_rx_syndrome_27 },
	{ "src_mac",          "RX-SYN-28",       SPOIL_MAC,        0, 0, false, 0, STAT_rx_syndrome_28 },
	{ "icrc",             "RX-SYN-30",       SPOIL_BYTE,       BTH + 30, 1, false, 0, STAT_rx_syndrome_30 },
	{ "fcs",              "RX-SYN-31",       SPOIL_FCS,        0, 0, false, 0, STAT_rx_syndrome_31 },
	{ "pkey",             "RX-HDR-01",       SPOIL_BYTE_SEAL,  BTH + 3, 1, false, 0, STAT_rx_pkey_violation },
	{ "qp_type",          "RX-HDR-02",       SPOIL_OPCODE,     OP_UC_WRITE_ONLY, 0, false, 0, STAT_rx_qp_type_mismatch },
	{ "response_in_rtr",  "RX-HDR-05",       SPOIL_RTR,        OP_RC_ACKNOWLEDGE, 0, false, 0, STAT_rx_response_state },
	{ "vlan",             "WIRE-01",         SPOIL_VLAN,       0, 0, false, 0, STAT_rx_vlan_mismatch },
	{ "bad_cnp",          "CC-08",           SPOIL_OPCODE,     OP_CNP, 0, false, 0, STAT_rx_bad_cnp },
	{ "unsolicited_ack",  "",                SPOIL_OPCODE,     OP_RC_ACKNOWLEDGE, 0, false, 0, STAT_rx_responses },
	{ "sequence_storm",   "RESP-SEQ-02",     SPOIL_PSN,        0, 0, false, 7, STAT_out_of_sequence },
	{ "duplicate_write",  "RESP-DUP-02",     SPOIL_PSN,        0, 0, false, -1, STAT_duplicate_request },
	{ "duplicate_read",   "RESP-DUP-03",     SPOIL_READ_AGAIN, 0, 0, false, -1, STAT_duplicate_request },
	{ "rnr_storm",        "RESP-RNR-01",     SPOIL_RNR,        0, 0, false, 0, STAT_out_of_buffer },
	{ "nak_sequence",     "RESP-SEQ-01",     SPOIL_PSN,        0, 0, true, 7, STAT_resp_nak_sequence_sent },
	{ "nak_order",        "RESP-NAK-INV-03", SPOIL_OPCODE,     OP_RC_WRITE_LAST, 0, true, 0, STAT_resp_nak_invalid_sent },
	{ "nak_opcode",       "RESP-NAK-INV-01", SPOIL_OPCODE,     0x1f, 0, true, 0, STAT_resp_nak_invalid_sent },
	{ "nak_length",       "RESP-NAK-INV-08", SPOIL_OPCODE,     OP_RC_SEND_FIRST, 0, true, 0, STAT_resp_nak_invalid_sent },
	{ "nak_access",       "RESP-NAK-RAE-01", SPOIL_RKEY,       0, 0, true, 0, STAT_resp_remote_access_errors },
	{ "nak_operation",    "RESP-NAK-ROE-01", SPOIL_WQE,        0, 0, true, 0, STAT_resp_nak_operation_sent },
};
/* clang-format on */

/** Figures of a case; [2]: error buffer off and on. All in cycles a packet but the last two. */
struct figures {
	double empty;
	double good_alone;
	double bad[2];   /* a flood alone, per bad packet */
	double good[2];  /* good and bad mixed, per good packet: what it takes until the next one */
	double kept[2];  /* rate of the good QP with the flood to its rate alone */
	double share[2]; /* the same to its rate next to the good neighbour */
	double stage[STAGE_MAX]; /* cycles of a bad packet in a flood alone */
};

static bool with_stages;

/* ---- samples --------------------------------------------------------------------------------- */

/** A turn of the worker. A request that comes again in the same moment is another case. */
static uint32_t
turn(struct worker *w)
{
	static ns_t now;

	now += TIME_NS_PER_US;
	return worker_poll(w, now);
}

static double
sample(struct hostile_rig *r, const struct hostile_case *c, struct worker *w, uint32_t good,
	uint32_t bad)
{
	uint64_t start, cycles, counted = 0;
	uint32_t before = hostile_good_psn();

	hostile_prepare(r, c, good, bad);
	if (c->counter != STAT_MAX)
		counted = worker_stats(w)->c[c->counter];
	start = rte_rdtsc_precise();
	while (rte_ring_count(r->to) != 0)
		turn(w);
	cycles = rte_rdtsc_precise() - start;
	if (c->counter != STAT_MAX && worker_stats(w)->c[c->counter] - counted != bad)
		fprintf(stderr, "%s: %" PRIu64 " of %" PRIu32 " packets counted\n", c->name,
			worker_stats(w)->c[c->counter] - counted, bad);
	if (((hostile_good_psn() - before) & PSN_MASK) != good)
		fprintf(stderr, "%s: the good QP lost packets\n", c->name);
	for (uint32_t i = 0; i < 1000 && turn(w) != 0; i++)
		hostile_clear(r);
	hostile_clear(r);
	hostile_revive(c);
	return (double)cycles;
}

/** The same frames, received and sent back as they are. */
static double
sample_empty(struct hostile_rig *r, const struct hostile_case *c)
{
	uint64_t start, cycles;

	hostile_prepare(r, c, GOOD, FLOOD);
	start = rte_rdtsc_precise();
	while (rte_ring_count(r->to) != 0) {
		struct rte_mbuf *m[PIPELINE_BURST];
		uint16_t n = rte_eth_rx_burst(r->port, 0, m, PIPELINE_BURST);

		rte_eth_tx_burst(r->port, 0, m, n);
	}
	cycles = rte_rdtsc_precise() - start;
	hostile_clear(r);
	return (double)cycles / (GOOD + FLOOD);
}

/** Where the cycles of a flood alone go. */
static void
sample_stages(struct hostile_rig *r, const struct hostile_case *c, double stage[STAGE_MAX])
{
	const struct stats_load *load = worker_load(r->worker[WITH_LAPS]);
	uint64_t before[STAGE_MAX];

	memcpy(before, load->cycles, sizeof(before));
	sample(r, c, r->worker[WITH_LAPS], 0, FLOOD);
	for (uint32_t s = 0; s < STAGE_MAX; s++)
		stage[s] = (double)(load->cycles[s] - before[s]) / FLOOD;
}

/** The good packets that these are held against. */
static const struct hostile_case *
neighbour_of(const struct hostile_case *c)
{
	if (c->spoil == SPOIL_READ_AGAIN || c == &cases[2])
		return &cases[2];
	return &cases[c->each ? 1 : 0];
}

static struct figures
measure(struct hostile_rig *r, const struct hostile_case *c, uint32_t repeats)
{
	static double empty[MAX_REPEATS], alone[MAX_REPEATS], next[MAX_REPEATS];
	static double bad[2][MAX_REPEATS], good[2][MAX_REPEATS];
	static double stage[STAGE_MAX][MAX_REPEATS];
	const struct hostile_case *neighbour = neighbour_of(c);
	struct figures f = { 0 };
	double next_to_good;

	hostile_begin(c);
	for (uint32_t i = 0; i < repeats + WARM_UP; i++) {
		uint32_t at = i < WARM_UP ? 0 : i - WARM_UP;

		empty[at] = sample_empty(r, c);
		alone[at] = sample(r, &cases[0], r->worker[0], 5 * GOOD, 0) / (5 * GOOD);
		next[at] = sample(r, neighbour, r->worker[0], GOOD, FLOOD) / GOOD;
		for (uint32_t e = 0; e < 2; e++) {
			bad[e][at] = sample(r, c, r->worker[e], 0, FLOOD) / FLOOD;
			good[e][at] = sample(r, c, r->worker[e], GOOD, FLOOD) / GOOD;
		}
		if (with_stages)
			sample_stages(r, c, f.stage);
		for (uint32_t s = 0; s < STAGE_MAX; s++)
			stage[s][at] = f.stage[s];
	}
	for (uint32_t s = 0; s < STAGE_MAX; s++)
		f.stage[s] = median(stage[s], repeats);
	f.empty = median(empty, repeats);
	f.good_alone = median(alone, repeats);
	next_to_good = median(next, repeats);
	for (uint32_t e = 0; e < 2; e++) {
		f.bad[e] = median(bad[e], repeats);
		f.good[e] = median(good[e], repeats);
		f.kept[e] = f.good_alone / f.good[e];
		f.share[e] = next_to_good / f.good[e];
	}
	return f;
}

/* ---- output ---------------------------------------------------------------------------------- */

static void
print_header(uint32_t repeats)
{
	printf("TSC cycles a packet (%.0f MHz), median of %" PRIu32
	       " runs; %d bad packets for each "
	       "good one.\n"
	       "bad: a flood alone. rate: the good QP's packets per second, alone and in the flood.\n"
	       "kept: the latter to the former. share: to the rate next to a neighbour that sends as\n"
	       "many good packets (good_neighbour; good_neighbours where each packet is to another QP;\n"
	       "good_readers for duplicate_read); fair: it is not below 1.\n"
	       "on, off: error buffer. *: each packet to another QP.\n\n",
		(double)rte_get_tsc_hz() / 1e6, repeats, FLOOD / GOOD);
	printf("%-16s %-16s %6s %7s %7s %9s %9s %9s %7s %7s %6s %6s ", "case", "rule", "empty",
		"bad off", "bad on", "rate Mp/s", "flood off", "flood on", "kept off", "kept on",
		"sh.off", "sh.on");
	for (uint32_t s = 0; with_stages && s < STAGE_MAX; s++)
		printf("%7s ", stats_stage_names[s]);
	printf("fair\n");
}

/** Did the good QP keep its share? */
static const char *
fair_text(const struct figures *f)
{
	const double least = 0.98;

	if (f->share[0] >= least && f->share[1] >= least)
		return "yes";
	return f->share[0] >= least ? "without the error buffer" : "no";
}

static void
print_row(const struct hostile_case *c, const struct figures *f)
{
	double mhz = (double)rte_get_tsc_hz() / 1e6;

	printf("%-15s%s %-16s %6.1f %7.1f %7.1f %9.3f %9.3f %9.3f %7.1f%% %6.1f%% %6.2f %6.2f ",
		c->name, c->each ? "*" : " ", c->rule, f->empty, f->bad[0], f->bad[1],
		mhz / f->good_alone, mhz / f->good[0], mhz / f->good[1], 100 * f->kept[0],
		100 * f->kept[1], f->share[0], f->share[1]);
	for (uint32_t s = 0; with_stages && s < STAGE_MAX; s++)
		printf("%7.1f ", f->stage[s]);
	printf("%s\n", fair_text(f));
	fflush(stdout);
}

static void
json_pair(FILE *out, const char *name, const double v[2])
{
	fprintf(out, ", \"%s\": {\"errbuf_off\": %.4g, \"errbuf_on\": %.4g}", name, v[0], v[1]);
}

static void
print_json(FILE *out, const struct hostile_case *c, const struct figures *f, bool first)
{
	fprintf(out,
		"%s\n    {\"case\": \"%s\", \"rule\": \"%s\", \"qps\": %d, \"empty\": %.1f, \"good_alone\": %.1f",
		first ? "" : ",", c->name, c->rule, c->each ? HOSTILE_QPS : 1, f->empty,
		f->good_alone);
	json_pair(out, "bad", f->bad);
	json_pair(out, "good_in_flood", f->good);
	json_pair(out, "kept", f->kept);
	json_pair(out, "share", f->share);
	for (uint32_t s = 0; with_stages && s < STAGE_MAX; s++)
		fprintf(out, ", \"%s\": %.4g", stats_stage_names[s], f->stage[s]);
	fprintf(out, ", \"fair\": \"%s\"}", fair_text(f));
}

static const char *
name_of(size_t i)
{
	return i < ARRAY_LEN(cases) ? cases[i].name : NULL;
}

static void
run(struct hostile_rig *r, uint32_t repeats, FILE *json, int argc, char **argv, int at)
{
	bool first = true;

	print_header(repeats);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct figures f;

		if (!is_chosen(cases[i].name, argc, argv, at))
			continue;
		f = measure(r, &cases[i], repeats);
		print_row(&cases[i], &f);
		if (json != NULL)
			print_json(json, &cases[i], &f, first);
		first = false;
	}
}

int
main(int argc, char **argv)
{
	static struct hostile_rig r;
	uint32_t repeats = 201;
	FILE *json = NULL;
	int at = 1;

	for (; at + 1 < argc && strncmp(argv[at], "--", 2) == 0; at += 2) {
		if (strcmp(argv[at], "--json") == 0)
			json = fopen(argv[at + 1], "w");
		else if (strcmp(argv[at], "--stages") == 0)
			with_stages = strcmp(argv[at + 1], "yes") == 0;
		else if (strcmp(argv[at], "--repeats") == 0)
			repeats = (uint32_t)strtoul(argv[at + 1], NULL, 10);
		else
			die("unknown option");
		if (strcmp(argv[at], "--json") == 0 && json == NULL)
			die("cannot write the JSON file");
	}
	if (repeats == 0 || repeats > MAX_REPEATS)
		die("--repeats is 1 to 2001");
	check_rows(argc, argv, at, name_of);
	hostile_set_up(&r);
	if (json != NULL)
		fprintf(json,
			"{\n  \"unit\": \"TSC cycles a packet, median\",\n  \"tsc_hz\": %" PRIu64
			",\n  \"repeats\": %" PRIu32 ",\n  \"bad_per_good\": %d,\n  \"cases\": [",
			rte_get_tsc_hz(), repeats, FLOOD / GOOD);
	run(&r, repeats, json, argc, argv, at);
	if (json != NULL) {
		fprintf(json, "\n  ]\n}\n");
		fclose(json);
	}
	hostile_tear_down(&r);
	return 0;
}
