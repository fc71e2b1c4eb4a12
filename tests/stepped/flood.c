/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A million random, cut, forged and valid packets into the whole dataplane, wired as in the
 * program. It must neither crash nor stop; every packet must be accounted for; every frame that
 * leaves must carry a right ICRC; no packet buffer may be lost; a QP that nobody aimed at must
 * still answer.
 *
 * usage: rocelane-flood [PACKETS [SEED]]; a failing run prints its seed.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <rte_ring.h>

#include "../clib/eal.h"
#include "../clib/own_report.h"
#include "args.h"
#include "dataplane.h"
#include "flood_frames.h"
#include "qp.h"

#define RING_FRAMES 4096
#define BURST       32
#define QPS         16u
#define FIRST_QPN   0x40u
#define GOOD_QPN    0x3000u
#define TURNS_MAX   100000u

/* clang-format off */
#define QP_COMMON                                                                                  \
	"\"qp_type\":\"RC\",\"port\":\"p0\",\"pd\":\"pd0\",\"send_cq\":\"cq0\",\"recv_cq\":\"cq0\","  \
	"\"qp_state\":\"RTS\",\"rq_psn\":256,\"sq_psn\":512,\"max_dest_rd_atomic\":4,"               \
	"\"recv_feed\":{\"buffers\":16,\"size\":4096},"                                             \
	"\"qp_access_flags\":[\"LOCAL_WRITE\",\"REMOTE_READ\",\"REMOTE_WRITE\",\"REMOTE_ATOMIC\"]"
#define AH(ip) "\"ah_attr\":{\"dest_ip\":\"" ip "\",\"dest_mac\":\"02:00:00:00:00:22\"}"

static const char config[] =
	"{\"version\":1,"
	"\"eal\":[\"--no-huge\",\"-m\",\"256\",\"--no-pci\",\"--no-shconf\",\"--no-telemetry\","
	"\"--log-level=error\"],"
	"\"lcores\":{\"control\":0,\"workers\":[1]},"
	"\"ports\":[{\"name\":\"p0\",\"device\":\"net_ring_stepped0\",\"mac\":\"02:00:00:00:00:11\","
	"\"ipv4\":\"192.0.2.1\",\"prefix\":24,\"ipv6\":\"2001:db8::1\",\"prefix6\":64,\"mtu\":4200}],"
	"\"error_buffer\":{\"entries\":256},\"pds\":[\"pd0\"],"
	"\"mrs\":[{\"name\":\"mr0\",\"pd\":\"pd0\",\"length\":65536,\"addr\":\"0x10000000\","
	"\"rkey\":\"0x00c0ffee\",\"access\":[\"LOCAL_WRITE\",\"REMOTE_READ\",\"REMOTE_WRITE\","
	"\"REMOTE_ATOMIC\"]}],"
	"\"cqs\":[{\"name\":\"cq0\",\"cqe\":65536}],"
	"\"qps\":["
	"{\"qp_num\":64,\"count\":8,\"dest_qp_num\":128," QP_COMMON "," AH("192.0.2.2") "},"
	"{\"qp_num\":72,\"count\":8,\"dest_qp_num\":136," QP_COMMON "," AH("2001:db8::2") "},"
	"{\"qp_num\":12288,\"dest_qp_num\":144," QP_COMMON "," AH("192.0.2.99") "}]}";
/* clang-format on */

#define REQUEST(method, params) \
	"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"" method "\",\"params\":" params "}"

static struct dataplane dp;
static struct rte_ring *rx_ring, *tx_ring;
static ns_t flood_now = TIME_NS_PER_MS;
static uint64_t frames_in, frames_out, bad_icrc;
static bool good_answered;

static ns_t
flood_clock(void)
{
	return flood_now;
}

/* Take what left; look at every ICRC, and for the answer to the good packet. */
static uint32_t
drain(void)
{
	struct rte_mbuf *m;
	uint32_t n = 0;

	while (rte_ring_dequeue(tx_ring, (void **)&m) == 0) {
		uint8_t frame[16384];
		const uint8_t *b = rte_pktmbuf_read(m, 0, m->pkt_len, frame);

		if (b != NULL && is_own_report(b, m->pkt_len)) {
			rte_pktmbuf_free(m);
			continue;
		}
		n++;
		if (b == NULL || !flood_icrc_ok(b, m->pkt_len))
			bad_icrc++;
		else if (m->pkt_len >= 62 && b[33] == 99 && b[42] == 0x11 && b[54] == 0x1f)
			good_answered = true;
		rte_pktmbuf_free(m);
	}
	frames_out += n;
	return n;
}

static void
pump(void *ctx UNUSED)
{
	worker_poll(dp.workers[0], flood_now);
	drain();
}

/* @return 0, or -ETIMEDOUT when the dataplane never becomes idle. */
static int
settle(void)
{
	uint32_t idle = 0;

	for (uint32_t i = 0; i < TURNS_MAX; i++) {
		uint32_t work = worker_poll(dp.workers[0], flood_now) +
				control_poll(dp.control, flood_now) + drain();

		idle = work == 0 ? idle + 1 : 0;
		if (idle > 3)
			return 0;
	}
	return -ETIMEDOUT;
}

static bool
inject(const struct flood_frame *f)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(dp.ports[0].pool);
	char *at = m != NULL ? rte_pktmbuf_append(m, (uint16_t)f->len) : NULL;

	if (at == NULL || (memcpy(at, f->b, f->len), rte_ring_enqueue(rx_ring, m)) != 0) {
		rte_pktmbuf_free(m);
		return false;
	}
	frames_in++;
	return true;
}

/* One request; the result is the caller's reference, NULL after an error reply. */
static json_t *
rpc(const char *line)
{
	char *text = control_rpc(dp.control, line, strlen(line));
	json_t *reply = text != NULL ? json_loads(text, 0, NULL) : NULL;
	json_t *result = json_incref(json_object_get(reply, "result"));

	if (result == NULL)
		fprintf(stderr, "flood: %s\n  -> %s\n", line, text != NULL ? text : "no reply");
	json_decref(reply);
	free(text);
	return result;
}

static bool
rpc_ok(const char *line)
{
	json_t *result = rpc(line);

	json_decref(result);
	return result != NULL;
}

/* Back to RTS: a QP that is in ERR swallows everything, and the flood would test nothing. */
static bool
revive(uint32_t qpn, bool ipv6)
{
	static const char *const steps[] = {
		"\"qp_state\":\"RESET\"",
		"\"qp_state\":\"INIT\",\"port\":\"p0\",\"pkey\":\"0xffff\",\"qp_access_flags\":"
		"[\"LOCAL_WRITE\",\"REMOTE_READ\",\"REMOTE_WRITE\",\"REMOTE_ATOMIC\"]",
		"\"qp_state\":\"RTR\",\"path_mtu\":1024,\"rq_psn\":16777200,\"max_dest_rd_atomic\":4,"
		"\"min_rnr_timer\":12,\"dest_qp_num\":",
		"\"qp_state\":\"RTS\",\"sq_psn\":512,\"timeout\":14,\"retry_cnt\":7,\"rnr_retry\":7,"
		"\"max_rd_atomic\":4",
	};
	bool ok = true;

	for (uint32_t i = 0; ok && i < 4; i++) {
		char line[512];

		snprintf(line, sizeof(line),
			"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"qp_modify\",\"params\":{\"qp_num\":%u,%s",
			qpn, steps[i]);
		if (i == 2)
			snprintf(line + strlen(line), sizeof(line) - strlen(line), "%u,%s",
				qpn + 64, ipv6 ? AH("2001:db8::2") : AH("192.0.2.2"));
		strcat(line, "}}");
		ok = rpc_ok(line);
	}
	return ok;
}

static bool
revive_all(void)
{
	for (uint32_t i = 0; i < QPS; i++) {
		const struct qp *qp = qp_lookup(dp.qps, FIRST_QPN + i);

		if (qp == NULL ||
			(atomic_load(&qp->state) == QPS_ERR && !revive(FIRST_QPN + i, i >= 8)))
			return false;
	}
	return rpc_ok(REQUEST("async_events", "{\"max\":64}")) &&
	       rpc_ok(REQUEST("rx_errors", "{\"max\":64}"));
}

static int
flood(uint64_t packets, struct flood_rng *rng)
{
	for (uint64_t done = 0; done < packets;) {
		uint32_t n = 1 + flood_random(rng, BURST);

		for (uint32_t i = 0; i < n; i++) {
			uint32_t k = flood_random(rng, QPS);
			const struct qp *qp = qp_lookup(dp.qps, FIRST_QPN + k);
			struct flood_target t = { .qpn = FIRST_QPN + k,
				.last_ip = 2,
				.ipv6 = k >= 8,
				.psn = qp != NULL ? qp->resp.epsn.v : 0 };
			static struct flood_frame f;

			flood_valid(rng, &t, &f);
			if (flood_random(rng, 2) == 0)
				flood_mutate(rng, &f);
			if (!inject(&f)) {
				fprintf(stderr, "flood: no buffer after %" PRIu64 " packets\n",
					done);
				return -ENOBUFS;
			}
		}
		done += n;
		flood_now += 1000 + flood_random(rng, 100000);
		if (settle() != 0) {
			fprintf(stderr, "flood: never idle after %" PRIu64 " packets\n", done);
			return -ETIMEDOUT;
		}
		if (flood_random(rng, 12) == 0 && !revive_all())
			return -EIO;
	}
	return 0;
}

static uint64_t
counter(const json_t *stats, const char *name)
{
	const json_t *inner = json_object_get(stats, "counters");

	return (uint64_t)json_integer_value(json_object_get(inner != NULL ? inner : stats, name));
}

/* rx_packets = rcvd_pkts + rx_control + all drops, and as many as were put in. */
static bool
accounted(void)
{
	json_t *stats = rpc(REQUEST("stats", "{\"scope\":\"total\"}"));
	uint64_t in = counter(stats, "rx_packets");
	uint64_t sum = counter(stats, "rcvd_pkts") + counter(stats, "rx_control");

#define COUNTER(name, unit, drop, help) sum += (drop) != 0 ? counter(stats, #name) : 0;
#include "counters.def"
#undef COUNTER
	printf("flood: %" PRIu64 " in, %" PRIu64 " accepted, %" PRIu64 " frames out\n", in,
		counter(stats, "rcvd_pkts"), frames_out);
	json_decref(stats);
	if (in == frames_in && in == sum)
		return true;
	fprintf(stderr,
		"flood: %" PRIu64 " packets sent, %" PRIu64 " counted, %" PRIu64 " explained\n",
		frames_in, in, sum);
	return false;
}

static bool
good_packet(void)
{
	const struct qp *qp = qp_lookup(dp.qps, GOOD_QPN);
	struct flood_target t = { .qpn = GOOD_QPN, .psn = 256, .last_ip = 99 };
	static struct flood_frame f;

	if (qp == NULL || qp->resp.epsn.v != 256) {
		fputs("flood: the QP that nobody aimed at has moved\n", stderr);
		return false;
	}
	flood_send_only(&t, &f);
	if (inject(&f) && settle() == 0 && good_answered)
		return true;
	fputs("flood: a good packet is not answered any more\n", stderr);
	return false;
}

static bool
run(uint64_t packets, uint64_t seed)
{
	struct flood_rng rng = { .s = seed };
	bool ok;

	ok = settle() == 0 && flood(packets - 1, &rng) == 0;
	ok = ok && good_packet();
	if (ok && bad_icrc != 0) {
		fprintf(stderr, "flood: %" PRIu64 " frames left with a wrong ICRC\n", bad_icrc);
		ok = false;
	}
	return ok;
}

static int
start(struct conf *conf)
{
	const struct dataplane_hooks hooks = {
		.clock = flood_clock, .pump = pump, .no_socket = true
	};
	int rc;

	rx_ring = rte_ring_create("flood_rx", RING_FRAMES, SOCKET_ID_ANY, 0);
	tx_ring = rte_ring_create("flood_tx", RING_FRAMES, SOCKET_ID_ANY, 0);
	if (rx_ring == NULL || tx_ring == NULL ||
		rte_eth_from_rings("stepped0", &rx_ring, 1, &tx_ring, 1, 0) < 0)
		return -ENOMEM;
	rc = dataplane_create(&dp, conf, &hooks);
	return rc == 0 ? dataplane_start(&dp) : rc;
}

int
main(int argc, char **argv)
{
	uint64_t packets = argc > 1 ? strtoull(argv[1], NULL, 0) : 1000000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 0) : 0x9e3779b97f4a7c15ull;
	struct args args = { 0 };
	struct conf_errors err;
	struct conf *conf = NULL;
	struct eal_args ea;
	uint32_t buffers;
	bool ok = false;

	conf_errors_init(&err);
	if (conf_load_text(config, strlen(config), &conf, &err) != 0) {
		char line[1024];

		conf_error_print(&err, (uint32_t)conf_errors_first(&err), line, sizeof(line));
		fprintf(stderr, "flood: config: %s\n", line);
		return 1;
	}
	conf_errors_free(&err);
	if (eal_args_build(conf, &args, &ea) != 0 || eal_init_anywhere(ea.argc, ea.argv) < 0)
		return 1;
	if (start(conf) == 0) {
		buffers = rte_mempool_in_use_count(dp.ports[0].pool);
		ok = run(packets, seed) && accounted();
		if (ok && rte_mempool_in_use_count(dp.ports[0].pool) != buffers) {
			fprintf(stderr, "flood: %d packet buffers lost\n",
				(int)rte_mempool_in_use_count(dp.ports[0].pool) - (int)buffers);
			ok = false;
		}
	}
	if (!ok)
		fprintf(stderr,
			"flood: failed; again with: rocelane-flood %" PRIu64 " 0x%" PRIx64 "\n",
			packets, seed);
	dataplane_stop_control(&dp);
	dataplane_destroy(&dp);
	rte_eal_cleanup();
	eal_args_free(&ea);
	conf_free(conf);
	return ok ? 0 : 1;
}
