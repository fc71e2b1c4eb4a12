/* SPDX-License-Identifier: BSD-3-Clause */
/* perftest's options, and which test it is. */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "perf.h"

#define CQ_MOD       100
#define SIZE_MOST    (1u << 30)
#define CQ_MOD_UP_TO 8192 /* bytes: of longer messages each has a completion */

enum { /* long options without a letter */
	O_SOCKET = 256,
	O_GBITS,
	O_JSON,
	O_VALIDATE,
	O_HANDSHAKE,
	O_VERSION
};

static const struct {
	const char *name;
	enum perf_verb verb;
	const char *title;
} verbs[] = {
	{ "send", PERF_SEND, "Send" },
	{ "write", PERF_WRITE, "RDMA_Write" },
	{ "read", PERF_READ, "RDMA_Read" },
	{ "atomic", PERF_ATOMIC, "Atomic" },
};

static const struct {
	const char *name;
	enum rl_qp_type type;
} types[] = {
	{ "RC", RL_QPT_RC },
	{ "UC", RL_QPT_UC },
	{ "UD", RL_QPT_UD },
	{ "XRC", RL_QPT_XRC_SEND },
};

const char *
options_verb_name(const struct perf_options *o)
{
	return verbs[o->verb].title;
}

const char *
options_type_name(const struct perf_options *o)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == o->type)
			return types[i].name;
	return "?";
}

bool
options_may_lose(const struct perf_options *o)
{
	return o->type == RL_QPT_UC || o->type == RL_QPT_UD;
}

static int
usage(void)
{
	fputs("usage: rocelane-perf {send|write|read|atomic}_{bw|lat} [OPTIONS] [HOST]\n"
	      "Without HOST it is the server. Both ends take the same options; either may be\n"
	      "perftest's ib_send_bw and so on (version 4.5) on another host.\n\n"
	      "  -c, --connection TYPE   RC (default), UC, UD or XRC; UC has no read and no atomic, UD\n"
	      "                          has send alone, of a path MTU at most\n"
	      "  -s, --size BYTES        message size, also 64K, 4M (65536 for bw, 2 for lat, 8 for\n"
	      "                          atomic)\n"
	      "  -a, --all               all sizes from 2 to 2^23\n"
	      "  -n, --iters N           messages of each queue pair (1000; write_bw 5000)\n"
	      "  -D, --duration SECONDS  run for a time instead\n"
	      "  -q, --qp N              queue pairs (bw)\n"
	      "  -t, --tx-depth N        requests in flight on a queue pair (128)\n"
	      "  -r, --rx-depth N        receives posted on a queue pair (512)\n"
	      "  -Q, --cq-mod N          a completion for every Nth request (100; 1 for\n"
	      "                          messages of more than 8 KiB)\n"
	      "  -l, --post_list N       requests handed over in one list (1)\n"
	      "  -m, --mtu BYTES         path MTU (the port's)\n"
	      "  -I, --inline_size BYTES longest message sent inline\n"
	      "  -o, --outs N            READs and atomics in flight (16)\n"
	      "  -A, --atomic_type TYPE  CMP_AND_SWAP or FETCH_AND_ADD (default)\n"
	      "  -u, --qp-timeout N      4.096 us * 2^N (14)\n"
	      "  -e, --events            sleep for completions instead of polling\n"
	      "  -d, --ib-dev NAME       port of the dataplane, by its name\n"
	      "  -i, --ib-port N         the same by number, from 1\n"
	      "  -x, --gid-index N       address of the port: 0 IPv4, then IPv6\n"
	      "  -p, --port N            TCP port of the handshake (18515)\n"
	      "  -R, --rdma_cm           connect by the connection manager at service port -p, without\n"
	      "                          TCP: HOST is an RDMA address. RC and UC; a rocelane-perf at\n"
	      "                          the other end\n"
	      "  -F, --CPU-freq          accepted and ignored\n"
	      "      --socket PATH       the dataplane's socket ($ROCELANE_SOCKET)\n"
	      "      --handshake_timeout SECONDS  for each answer of the peer before the test (30)\n"
	      "      --report_gbits      Gbit/s instead of MiB/s\n"
	      "      --json              the result as a JSON object\n"
	      "      --validate          check every byte; both ends must say it\n"
	      "  -h, --help\n"
	      "  -V, --version\n",
		stdout);
	return -1;
}

static int
bad(const char *what, const char *text, const char *allowed)
{
	fprintf(stderr, "rocelane-perf: %s takes %s, not '%s'; see --help\n", what, allowed, text);
	return PERF_USAGE;
}

static int
number(const char *what, const char *text, uint64_t lo, uint64_t hi, uint64_t *v)
{
	char allowed[64];
	char *end;

	errno = 0;
	*v = strtoull(text, &end, 0);
	/* A blank or a sign before it is nobody's number. */
	if (errno == 0 && isdigit((unsigned char)text[0]) && *end == '\0' && *v >= lo && *v <= hi)
		return PERF_OK;
	snprintf(allowed, sizeof(allowed), "a number from %llu to %llu", (unsigned long long)lo,
		(unsigned long long)hi);
	return bad(what, text, allowed);
}

/* perftest's 64K and 4M. */
static int
size_parse(struct perf_options *o, const char *text)
{
	const size_t n = strlen(text);
	const unsigned int shift = n == 0               ? 0
				   : text[n - 1] == 'K' ? 10
				   : text[n - 1] == 'M' ? 20
							: 0;
	char *end;

	errno = 0;
	o->size = strtoull(text, &end, 0);
	if (errno != 0 || !isdigit((unsigned char)text[0]) || end + (shift != 0) != text + n ||
		o->size < 1 || o->size > SIZE_MOST >> shift)
		return bad("-s", text, "a number of bytes from 1 to 1073741824, also as 64K or 4M");
	o->size <<= shift;
	return PERF_OK;
}

static int
number32(const char *what, const char *text, uint64_t lo, uint64_t hi, uint32_t *v)
{
	uint64_t n;
	int rc = number(what, text, lo, hi, &n);

	if (rc == PERF_OK)
		*v = (uint32_t)n;
	return rc;
}

static int
test_parse(struct perf_options *o, const char *name)
{
	const char *kind = strchr(name, '_');

	for (size_t i = 0; kind != NULL && i < sizeof(verbs) / sizeof(verbs[0]); i++) {
		size_t n = strlen(verbs[i].name);

		if ((size_t)(kind - name) != n || strncmp(name, verbs[i].name, n) != 0)
			continue;
		o->verb = verbs[i].verb;
		o->lat = strcmp(kind, "_lat") == 0;
		if (o->lat || strcmp(kind, "_bw") == 0)
			return PERF_OK;
	}
	return bad("the first argument", name, "{send|write|read|atomic}_{bw|lat}");
}

static int
mtu_parse(struct perf_options *o, const char *text)
{
	uint64_t v;

	if (number("-m", text, 256, 4096, &v) != PERF_OK)
		return PERF_USAGE;
	if ((v & (v - 1)) != 0)
		return bad("-m", text, "256, 512, 1024, 2048 or 4096");
	o->mtu = (uint32_t)v;
	return PERF_OK;
}

static int
atomic_parse(struct perf_options *o, const char *text)
{
	if (strcmp(text, "CMP_AND_SWAP") == 0)
		o->atomic = PERF_CMP_AND_SWAP;
	else if (strcmp(text, "FETCH_AND_ADD") == 0)
		o->atomic = PERF_FETCH_AND_ADD;
	else
		return bad("-A", text, "CMP_AND_SWAP or FETCH_AND_ADD");
	return PERF_OK;
}

static int
connection_parse(struct perf_options *o, const char *text)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(text, types[i].name) != 0)
			continue;
		o->type = types[i].type;
		return PERF_OK;
	}
	return bad("-c", text, "RC, UC, UD or XRC");
}

static int
duration_parse(struct perf_options *o, const char *text)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end != '\0' || !(v >= 1e-6 && v <= 1e6))
		return bad("-D", text, "seconds, from 0.000001 to 1000000");
	o->duration_s = v;
	return PERF_OK;
}

static int
option(struct perf_options *o, int c, const char *arg)
{
	uint32_t v = 0;
	int rc;

	switch (c) {
	case 's':
		return size_parse(o, arg);
	case 'n':
		return number("-n", arg, 1, 1ull << 40, &o->iters);
	case 'D':
		return duration_parse(o, arg);
	case 'q':
		return number32("-q", arg, 1, PERF_MAX_QPS, &o->qps);
	case 't':
		return number32("-t", arg, 1, 32768, &o->tx_depth);
	case 'r':
		return number32("-r", arg, 1, 32768, &o->rx_depth);
	case 'l':
		return number32("-l", arg, 1, PERF_LIST_MAX, &o->post_list);
	case 'Q':
		return number32("-Q", arg, 1, 1024, &o->cq_mod);
	case 'I':
		return number32("-I", arg, 0, 65536, &o->inline_size);
	case 'o':
		return number32("-o", arg, 1, 16, &o->out_reads);
	case 'u':
		return number32("-u", arg, 0, 31, &o->qp_timeout);
	case 'i':
		return number32("-i", arg, 1, 255, &o->ib_port);
	case 'p':
		return number32("-p", arg, 1, 65535, &o->port);
	case 'x':
		rc = number32("-x", arg, 0, 255, &v);
		o->gid_index = (int)v;
		return rc;
	case 'm':
		return mtu_parse(o, arg);
	case 'A':
		return atomic_parse(o, arg);
	case 'c':
		return connection_parse(o, arg);
	case 'd':
		o->device = arg;
		return PERF_OK;
	case 'a':
		o->all_sizes = true;
		return PERF_OK;
	case 'e':
		o->events = true;
		return PERF_OK;
	case 'R':
		o->by_cm = true;
		return PERF_OK;
	case 'F':
		return PERF_OK;
	case O_SOCKET:
		o->socket = arg;
		return PERF_OK;
	case O_HANDSHAKE:
		return number32("--handshake_timeout", arg, 1, 3600, &o->handshake_s);
	case O_GBITS:
		o->report_gbits = true;
		return PERF_OK;
	case O_JSON:
		o->json = true;
		return PERF_OK;
	case O_VALIDATE:
		o->validate = true;
		return PERF_OK;
	case 'h':
		return usage();
	case 'V':
		printf("rocelane-perf %s\n", ROCELANE_VERSION);
		return -1;
	default:
		fprintf(stderr, "rocelane-perf: see --help\n");
		return PERF_USAGE;
	}
}

/* As perftest, which leaves it where sizes change, and where it sleeps for completions. */
static uint32_t
cq_mod_of(const struct perf_options *o)
{
	const bool longer = o->size > CQ_MOD_UP_TO && o->type != RL_QPT_UD;

	return longer && !o->all_sizes && !o->events ? 1 : CQ_MOD;
}

/* What does not fit together, and the defaults that depend on the test. */
static int
settle(struct perf_options *o)
{
	if (o->verb == PERF_ATOMIC && ((o->size != 0 && o->size != 8) || o->all_sizes)) {
		fprintf(stderr, "rocelane-perf: atomics are of 8 bytes: leave -s and -a out\n");
		return PERF_USAGE;
	}
	if (o->type == RL_QPT_UC && (o->verb == PERF_READ || o->verb == PERF_ATOMIC)) {
		fprintf(stderr, "rocelane-perf: -c UC has no read and no atomic\n");
		return PERF_USAGE;
	}
	if (o->type == RL_QPT_UD && o->verb != PERF_SEND) {
		fprintf(stderr, "rocelane-perf: -c UD has send alone\n");
		return PERF_USAGE;
	}
	if (o->by_cm && o->type != RL_QPT_RC && o->type != RL_QPT_UC) {
		fprintf(stderr, "rocelane-perf: -R connects RC and UC: leave it out, or -c %s\n",
			options_type_name(o));
		return PERF_USAGE;
	}
	if (o->lat && o->qps > 1) {
		fprintf(stderr, "rocelane-perf: a latency test has one queue pair: leave -q out\n");
		return PERF_USAGE;
	}
	if (o->lat && o->post_list > 1) {
		fprintf(stderr, "rocelane-perf: a latency test posts one by one: leave -l out\n");
		return PERF_USAGE;
	}
	if (o->all_sizes && o->duration_s > 0) {
		fprintf(stderr, "rocelane-perf: -a goes by iterations: leave -D out\n");
		return PERF_USAGE;
	}
	if (o->lat && o->verb == PERF_WRITE && o->duration_s > 0) {
		fprintf(stderr, "rocelane-perf: write_lat goes by iterations: use -n\n");
		return PERF_USAGE;
	}
	if (o->validate &&
		(o->all_sizes || o->duration_s > 0 || (o->lat && o->verb == PERF_WRITE))) {
		fprintf(stderr, "rocelane-perf: --validate goes by iterations and one size, and "
				"not with write_lat\n");
		return PERF_USAGE;
	}
	o->size_given = o->size != 0;
	if (o->size == 0)
		o->size = o->verb == PERF_ATOMIC ? 8 : o->lat ? 2 : 65536;
	if (o->iters == 0)
		o->iters = !o->lat && o->verb == PERF_WRITE ? 5000 : 1000;
	if (o->tx_depth == 0)
		o->tx_depth = o->lat ? 1 : 128;
	if (o->cq_mod == 0)
		o->cq_mod = cq_mod_of(o);
	if (o->cq_mod > o->tx_depth)
		o->cq_mod = o->tx_depth;
	o->client = o->host != NULL;
	return PERF_OK;
}

int
options_parse(struct perf_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "connection", required_argument, NULL, 'c' },
		{ "size", required_argument, NULL, 's' },
		{ "all", no_argument, NULL, 'a' },
		{ "iters", required_argument, NULL, 'n' },
		{ "duration", required_argument, NULL, 'D' },
		{ "qp", required_argument, NULL, 'q' },
		{ "tx-depth", required_argument, NULL, 't' },
		{ "rx-depth", required_argument, NULL, 'r' },
		{ "cq-mod", required_argument, NULL, 'Q' },
		{ "post_list", required_argument, NULL, 'l' },
		{ "mtu", required_argument, NULL, 'm' },
		{ "inline_size", required_argument, NULL, 'I' },
		{ "outs", required_argument, NULL, 'o' },
		{ "atomic_type", required_argument, NULL, 'A' },
		{ "qp-timeout", required_argument, NULL, 'u' },
		{ "events", no_argument, NULL, 'e' },
		{ "ib-dev", required_argument, NULL, 'd' },
		{ "ib-port", required_argument, NULL, 'i' },
		{ "gid-index", required_argument, NULL, 'x' },
		{ "port", required_argument, NULL, 'p' },
		{ "rdma_cm", no_argument, NULL, 'R' },
		{ "CPU-freq", no_argument, NULL, 'F' },
		{ "socket", required_argument, NULL, O_SOCKET },
		{ "handshake_timeout", required_argument, NULL, O_HANDSHAKE },
		{ "report_gbits", no_argument, NULL, O_GBITS },
		{ "json", no_argument, NULL, O_JSON },
		{ "validate", no_argument, NULL, O_VALIDATE },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ NULL, 0, NULL, 0 },
	};
	int words = 0;
	int rc;
	int c;

	*o = (struct perf_options){ .type = RL_QPT_RC,
		.qps = 1,
		.rx_depth = 512,
		.post_list = 1,
		.out_reads = 16,
		.qp_timeout = 14,
		.port = 18515,
		.handshake_s = 30,
		.atomic = PERF_FETCH_AND_ADD };
	while ((c = getopt_long(argc, argv, "c:s:an:D:q:t:r:Q:l:m:I:o:A:u:ed:i:x:p:RFhV", longs,
			NULL)) != -1) {
		rc = option(o, c, optarg);
		if (rc != PERF_OK)
			return rc;
	}
	for (; optind < argc; optind++, words++) {
		if (words == 0 && test_parse(o, argv[optind]) != PERF_OK)
			return PERF_USAGE;
		if (words == 1)
			o->host = argv[optind];
		if (words == 2)
			return bad("the command line", argv[optind], "one host");
	}
	if (words == 0) {
		fprintf(stderr, "rocelane-perf: which test? One of "
				"{send|write|read|atomic}_{bw|lat}; see --help\n");
		return PERF_USAGE;
	}
	return settle(o);
}
