/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest's columns, or a JSON object a size. */
#include <inttypes.h>
#include <stdio.h>

#include "perf.h"

#define LINE \
	"---------------------------------------------------------------------------------------\n"

void
report_head(const struct perf *p)
{
	const struct perf_options *o = &p->o;

	if (o->json)
		return;
	fputs(LINE, stdout);
	printf("                    %s %s Test\n", options_verb_name(o), o->lat ? "Latency" : "BW");
	printf(" Transport type  : RoCEv2 (rocelane)   Connection type : %s\n",
		options_type_name(&p->o));
	printf(" Number of qps   : %-19u Mtu             : %u[B]\n", o->qps, p->mtu);
	printf(" TX depth        : %-19u CQ Moderation   : %u\n", o->tx_depth, o->cq_mod);
	printf(" Outstand reads  : %-19u GID index       : %d\n", o->out_reads, o->gid_index);
	fputs(LINE, stdout);
	for (int side = 0; side < 2; side++) {
		for (uint32_t i = 0; i < o->qps && i < 8; i++) {
			const struct perf_dest *d = side == 0 ? &p->mine[i] : &p->theirs[i];

			printf(" %s address: QPN %#06x PSN %#06x RKey %#010x VAddr %#018" PRIx64
			       "\n",
				side == 0 ? "local " : "remote", d->qpn, d->psn, d->rkey, d->vaddr);
		}
	}
	fputs(LINE, stdout);
}

void
report_columns(const struct perf *p)
{
	const char *unit = p->o.report_gbits ? "Gb/sec" : "MB/sec";

	if (p->o.json)
		return;
	if (p->o.lat)
		printf(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    "
		       "t_avg[usec]    t_stdev[usec]   99%% percentile[usec]   "
		       "99.9%% percentile[usec]\n");
	else
		printf(" #bytes     #iterations    BW peak[%s]    BW average[%s]   "
		       "MsgRate[Mpps]\n",
			unit, unit);
	fflush(stdout);
}

static void
json_head(const struct perf *p, const struct perf_result *r)
{
	printf("{\"test\": \"%s_%s\", \"role\": \"%s\", \"qps\": %u, \"mtu\": %u, "
	       "\"bytes\": %" PRIu64 ", \"iterations\": %" PRIu64 ", \"seconds\": %.6f",
		options_verb_name(&p->o), p->o.lat ? "lat" : "bw",
		p->o.client ? "client" : "server", p->o.qps, p->mtu, r->size, r->iters, r->seconds);
}

static void
json_tail(const struct perf *p)
{
	if (p->o.validate)
		printf(", \"wrong_messages\": %" PRIu64, p->wrong);
	printf("}\n");
}

void
report_bw(const struct perf *p, const struct perf_result *r)
{
	const double unit = p->o.report_gbits ? 1e9 / 8 : 1 << 20;

	if (p->o.json) {
		json_head(p, r);
		printf(", \"bw_peak_gbps\": %.6f, \"bw_average_gbps\": %.6f, \"msg_rate_mpps\": %.6f",
			r->bw_peak * 8 / 1e9, r->bw_avg * 8 / 1e9, r->rate / 1e6);
		json_tail(p);
	} else {
		printf(" %-10" PRIu64 " %-14" PRIu64 " %-17.2f %-20.2f %-7.6f\n", r->size, r->iters,
			r->bw_peak / unit, r->bw_avg / unit, r->rate / 1e6);
	}
	fflush(stdout);
}

void
report_lat(const struct perf *p, const struct perf_result *r)
{
	const struct hist *h = &p->hist;
	const double us[] = { (double)(h->n != 0 ? h->min : 0) / 1e3, (double)h->max / 1e3,
		hist_at(h, 0.5) / 1e3, hist_mean(h) / 1e3, hist_stdev(h) / 1e3,
		hist_at(h, 0.99) / 1e3, hist_at(h, 0.999) / 1e3 };

	if (p->o.json) {
		json_head(p, r);
		printf(", \"t_min_us\": %.3f, \"t_max_us\": %.3f, \"t_typical_us\": %.3f, "
		       "\"t_avg_us\": %.3f, \"t_stdev_us\": %.3f, \"p99_us\": %.3f, "
		       "\"p99_9_us\": %.3f",
			us[0], us[1], us[2], us[3], us[4], us[5], us[6]);
		json_tail(p);
	} else {
		printf(" %-7" PRIu64 " %-14" PRIu64 " %-14.2f %-12.2f %-18.2f %-14.2f %-15.2f "
		       "%-22.2f %-7.2f\n",
			r->size, r->iters, us[0], us[1], us[2], us[3], us[4], us[5], us[6]);
	}
	fflush(stdout);
}

void
report_end(const struct perf *p)
{
	if (p->o.json)
		return;
	fputs(LINE, stdout);
	if (p->o.validate)
		printf(" validated: %" PRIu64 " wrong messages\n", p->wrong);
}
