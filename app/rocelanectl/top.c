/* SPDX-License-Identifier: BSD-3-Clause */
/* What moves: top (workers, ports, queue pairs with their rates) and stat show --stages. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "compiler.h"
#include "ctl.h"
#include "screen.h"

#define QPS_DEFAULT 16
#define QPS_MAX     256

#define WORKER_COLUMNS "worker lcore busy% rx/s tx/s rx_gbps tx_gbps drops/s retries/s"
#define PORT_COLUMNS   "port state rx/s tx/s rx_gbps tx_gbps drops/s"
#define QP_COLUMNS                                                                             \
	"qp_num qp_state port dest_ip dest_qp_num epsn next_psn outstanding rx/s tx/s naks/s " \
	"retries/s"

/* Counters that a column adds up. */
static const char *const naks[] = { "resp_nak_sequence_sent", "resp_nak_invalid_sent",
	"resp_remote_access_errors", "resp_nak_operation_sent", "send_rnr_err", NULL };
static const char *const retries[] = { "local_ack_timeout_err", "packet_seq_err",
	"implied_nak_seq_err", "rnr_nak_retry_err", NULL };

struct sample {
	double time;
	json_t *load;    /* worker_load */
	json_t *workers; /* stats, scope worker */
	json_t *ports;   /* stats, scope port */
	json_t *links;   /* port_list */
	json_t *qps;     /* qp_list, each with "counters" */
};

static void
sample_free(struct sample *s)
{
	json_decref(s->load);
	json_decref(s->workers);
	json_decref(s->ports);
	json_decref(s->links);
	json_decref(s->qps);
	memset(s, 0, sizeof(*s));
}

static double
clock_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

static void
sleep_s(double s)
{
	struct timespec ts = { .tv_sec = (time_t)s,
		.tv_nsec = (long)((s - (double)(time_t)s) * 1e9) };

	nanosleep(&ts, NULL);
}

static double
value(const json_t *o, const char *key)
{
	return (double)json_integer_value(json_object_get(o, key));
}

/* Growth of a counter, each second; 0 for what was not there before. */
static double
rate(const json_t *was, const json_t *is, const char *key, double seconds)
{
	double d = was != NULL ? value(is, key) - value(was, key) : 0;

	return d > 0 ? d / seconds : 0;
}

static double
rate_of(const json_t *was, const json_t *is, const char *const *keys, double seconds)
{
	double sum = 0;

	for (; *keys != NULL; keys++)
		sum += rate(was, is, *keys, seconds);
	return sum;
}

static void
set_rounded(json_t *row, const char *key, double v)
{
	json_object_set_new(row, key, json_integer((json_int_t)(v + 0.5)));
}

static void
set_tenths(json_t *row, const char *key, double v)
{
	json_object_set_new(row, key, json_real((double)(json_int_t)(v * 10 + 0.5) / 10));
}

/* What was received and not accepted, by reason: with a hand-off other sums are of two workers. */
static double
drop_rate(const json_t *was, const json_t *is, double seconds)
{
	static const struct {
		const char *name;
		bool drop;
	} counters[] = {
#define COUNTER(name, unit, drop, help) { #name, drop },
#include "counters.def"
#undef COUNTER
	};
	double sum = 0;

	for (size_t i = 0; i < ARRAY_LEN(counters); i++) {
		if (counters[i].drop)
			sum += rate(was, is, counters[i].name, seconds);
	}
	return sum;
}

static void
set_frames(json_t *row, const json_t *was, const json_t *is, double s)
{
	set_rounded(row, "rx/s", rate(was, is, "rx_packets", s));
	set_rounded(row, "tx/s", rate(was, is, "tx_packets", s));
	set_tenths(row, "rx_gbps", rate(was, is, "rx_bytes", s) * 8 / 1e9);
	set_tenths(row, "tx_gbps", rate(was, is, "tx_bytes", s) * 8 / 1e9);
	set_rounded(row, "drops/s", drop_rate(was, is, s));
}

static double
busy_percent(const json_t *was, const json_t *is)
{
	double total = value(is, "total_ns") - value(was, "total_ns");

	return total > 0 ? 100 * (value(is, "busy_ns") - value(was, "busy_ns")) / total : 0;
}

static json_t *
worker_rows(const struct sample *a, const struct sample *b, double seconds)
{
	json_t *rows = ctl_must(json_array());
	json_t *is;
	size_t i;

	json_array_foreach (b->workers, i, is) {
		const json_t *was = json_array_get(a->workers, i);
		const json_t *load = json_array_get(b->load, i);
		json_t *row = ctl_must(json_object());

		json_object_set(row, "worker", json_object_get(is, "worker"));
		json_object_set(row, "lcore", json_object_get(load, "lcore"));
		set_tenths(row, "busy%", busy_percent(json_array_get(a->load, i), load));
		set_frames(row, was, is, seconds);
		set_rounded(row, "retries/s", rate_of(was, is, retries, seconds));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *
port_rows(const struct sample *a, const struct sample *b, double seconds)
{
	json_t *rows = ctl_must(json_array());
	json_t *is;
	size_t i;

	json_array_foreach (b->ports, i, is) {
		json_t *row = ctl_must(json_object());

		json_object_set(row, "port", json_object_get(is, "port"));
		json_object_set(
			row, "state", json_object_get(json_array_get(b->links, i), "state"));
		set_frames(row, json_array_get(a->ports, i), is, seconds);
		json_array_append_new(rows, row);
	}
	return rows;
}

static const json_t *
qp_find(const json_t *qps, const json_t *number)
{
	json_t *q;
	size_t i;

	json_array_foreach (qps, i, q)
		if (json_equal(json_object_get(q, "qp_num"), number))
			return q;
	return NULL;
}

static json_t *
qp_rows(const struct sample *a, const struct sample *b, double seconds)
{
	static const char *const copied[] = { "qp_num", "qp_state", "port", "dest_qp_num", "epsn",
		"next_psn", "outstanding" };
	json_t *rows = ctl_must(json_array());
	json_t *q;
	size_t i;

	json_array_foreach (b->qps, i, q) {
		const json_t *before = qp_find(a->qps, json_object_get(q, "qp_num"));
		const json_t *was = json_object_get(before, "counters");
		const json_t *is = json_object_get(q, "counters");
		json_t *row = ctl_must(json_object());

		for (size_t k = 0; k < sizeof(copied) / sizeof(copied[0]); k++)
			json_object_set(row, copied[k], json_object_get(q, copied[k]));
		json_object_set(
			row, "dest_ip", json_object_get(json_object_get(q, "ah_attr"), "dest_ip"));
		set_rounded(row, "rx/s", rate(was, is, "rcvd_pkts", seconds));
		set_rounded(row, "tx/s", rate(was, is, "sent_pkts", seconds));
		set_rounded(row, "naks/s", rate_of(was, is, naks, seconds));
		set_rounded(row, "retries/s", rate_of(was, is, retries, seconds));
		json_array_append_new(rows, row);
	}
	return rows;
}

/* A QP may go while it is asked about: then it has no counters. */
static void
qp_counters(struct ctl *ctl, json_t *qp)
{
	json_t *params = ctl_must(
		json_pack("{s:s, s:O}", "scope", "qp", "qp_num", json_object_get(qp, "qp_num")));
	const bool quiet = ctl->quiet;
	json_t *result;

	ctl->quiet = true;
	if (ctl_call(ctl, "stats", params, &result) == CTL_OK)
		json_object_set_new(qp, "counters", result);
	ctl->quiet = quiet;
}

static int
sample_take(struct ctl *ctl, int qps, struct sample *s)
{
	json_t *q;
	size_t i;
	int rc;

	memset(s, 0, sizeof(*s));
	s->time = clock_s();
	rc = ctl_call(ctl, "worker_load", NULL, &s->load);
	if (rc == CTL_OK)
		rc = ctl_call(ctl, "stats", json_pack("{s:s}", "scope", "worker"), &s->workers);
	if (rc == CTL_OK)
		rc = ctl_call(ctl, "stats", json_pack("{s:s}", "scope", "port"), &s->ports);
	if (rc == CTL_OK)
		rc = ctl_call(ctl, "port_list", NULL, &s->links);
	if (rc == CTL_OK && qps > 0)
		rc = ctl_call(ctl, "qp_list", json_pack("{s:i}", "limit", qps), &s->qps);
	if (rc == CTL_OK)
		json_array_foreach (s->qps, i, q)
			qp_counters(ctl, q);
	if (rc != CTL_OK)
		sample_free(s);
	return rc;
}

struct picture {
	json_t *workers;
	json_t *ports;
	json_t *qps;
};

static void
print_picture(void *ctx)
{
	const struct picture *p = ctx;

	fmt_table(p->workers, WORKER_COLUMNS, true);
	putchar('\n');
	fmt_table(p->ports, PORT_COLUMNS, true);
	if (json_array_size(p->qps) > 0) {
		putchar('\n');
		fmt_table(p->qps, QP_COLUMNS, true);
	}
	putchar('\n');
}

static void
show(struct ctl *ctl, const struct sample *a, const struct sample *b)
{
	const double s = b->time > a->time ? b->time - a->time : 1;
	struct picture p = { worker_rows(a, b, s), port_rows(a, b, s), qp_rows(a, b, s) };

	if (ctl->json) {
		json_t *all = ctl_must(json_pack(
			"{s:O, s:O, s:O}", "workers", p.workers, "ports", p.ports, "qps", p.qps));

		fmt_json_line(all);
		json_decref(all);
	} else {
		screen_show(print_picture, &p);
	}
	json_decref(p.workers);
	json_decref(p.ports);
	json_decref(p.qps);
}

struct top_args {
	double interval;
	long qps;
	long count; /* 0: no end */
};

static int
top_parse(struct top_args *a, int argc, char **argv)
{
	for (int i = 0; i < argc; i += 2) {
		const char *text = i + 1 < argc ? argv[i + 1] : "";
		char *end;
		double v = strtod(text, &end);
		const bool number = end != text && *end == '\0';

		if (strcmp(argv[i], "interval") == 0) {
			if (!number || !(v >= 0.01 && v <= 86400))
				return ctl_usage("interval takes 0.01 to 86400 seconds");
			a->interval = v;
		} else if (strcmp(argv[i], "qps") == 0) {
			if (!number || !(v >= 0 && v <= QPS_MAX))
				return ctl_usage("qps takes 0 to %d", QPS_MAX);
			a->qps = (long)v;
		} else if (strcmp(argv[i], "count") == 0) {
			if (!number || !(v >= 1 && v <= 1e9))
				return ctl_usage("count takes a number of pictures from 1");
			a->count = (long)v;
		} else {
			return ctl_usage(
				"'%s' is none of: interval SECONDS, qps N, count N", argv[i]);
		}
	}
	return CTL_OK;
}

int
run_top(struct ctl *ctl, const struct command *cmd, int argc, char **argv)
{
	struct top_args args = { .interval = 1, .qps = QPS_DEFAULT };
	struct sample before;
	struct sample now;
	int rc = top_parse(&args, argc, argv);

	(void)cmd;
	if (rc != CTL_OK)
		return rc;
	rc = sample_take(ctl, (int)args.qps, &before);
	if (rc != CTL_OK)
		return rc;
	screen_begin();
	for (long n = 0; args.count == 0 || n < args.count; n++) {
		if (screen_wait(args.interval))
			break;
		rc = sample_take(ctl, (int)args.qps, &now);
		if (rc != CTL_OK)
			break;
		show(ctl, &before, &now);
		sample_free(&before);
		before = now;
	}
	sample_free(&before);
	return rc;
}

/* ---- stat show --stages ---------------------------------------------------------------------- */

/* Cycles per packet and stage of one worker, between two readings. */
static json_t *
stage_row(const json_t *was, const json_t *is)
{
	const json_t *then = json_object_get(was, "stage_cycles");
	const double packets = value(is, "packets") - value(was, "packets");
	json_t *row = ctl_must(json_object());
	double sum = 0;
	const char *stage;
	json_t *v;

	json_object_set(row, "worker", json_object_get(is, "worker"));
	json_object_set(row, "lcore", json_object_get(is, "lcore"));
	set_tenths(row, "busy%", busy_percent(was, is));
	json_object_set_new(row, "packets", json_integer((json_int_t)packets));
	json_object_foreach (json_object_get(is, "stage_cycles"), stage, v) {
		double d = (double)json_integer_value(v) - value(then, stage);

		sum += d;
		if (packets > 0)
			set_tenths(row, stage, d / packets);
		else
			json_object_set_new(row, stage, json_null());
	}
	if (packets > 0)
		set_tenths(row, "cycles/packet", sum / packets);
	return row;
}

int
run_stages(struct ctl *ctl, double seconds)
{
	json_t *rows;
	json_t *was;
	json_t *is;
	json_t *w;
	size_t i;
	int rc = ctl_call(ctl, "worker_load", json_pack("{s:b}", "measure", 1), &was);

	if (rc != CTL_OK)
		return rc;
	sleep_s(seconds);
	rc = ctl_call(ctl, "worker_load", json_pack("{s:b}", "measure", 0), &is);
	if (rc == CTL_OK) {
		rows = ctl_must(json_array());
		json_array_foreach (is, i, w)
			json_array_append_new(rows, stage_row(json_array_get(was, i), w));
		if (ctl->json)
			fmt_json(rows);
		else
			fmt_table(rows, NULL, true);
		json_decref(rows);
		json_decref(is);
	}
	json_decref(was);
	return rc;
}
