/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conversation of perftest 4.5 over TCP. The client speaks first in each exchange. Texts are of
 * a fixed length with zeros behind; numbers are big-endian.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <errno.h>
#include <float.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "perf.h"

#define VERSION_BYTES   16
#define VERSION_TEXT    "6.06" /* of perftest 4.5's conversation */
#define TEST_AT         5      /* behind the text's zero: the test, as "WB", of two of ours */
#define VALIDATE_AT     7      /* 'V' or 'N', or of an older one 0 */
#define MARK_AT         8      /* "rocelan" */
#define KEYS_BYTES      108
#define REPORT_SIZE_MAX (UINT64_C(1) << 31)
#define CACHE_LINE      64
#define LOOK_MS         200
#define CLOSE_MS        2000
#define CONNECT_TRIES   100  /* of 100 ms: the server may be starting */
#define FAILED          (-2) /* and the message was printed */

static int
complain(const char *what)
{
	if (errno == EINTR && work_stopped())
		fprintf(stderr, "rocelane-perf: stopped\n");
	else
		fprintf(stderr, "rocelane-perf: %s: %s\n", what, strerror(errno));
	return -1;
}

/* A signal may come at any time, also before we wait. */
static int
wait_client(const struct perf *p, int listener)
{
	struct pollfd fd = { .fd = listener, .events = POLLIN };

	while (!work_stopped()) {
		if (poll(&fd, 1, LOOK_MS) > 0)
			return accept4(listener, NULL, NULL, SOCK_CLOEXEC);
		if (work_failed(p))
			return FAILED;
	}
	errno = EINTR;
	return -1;
}

static int
serve(struct perf *p)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons((uint16_t)p->o.port) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	if (listener < 0)
		return complain("no socket");
	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (const struct sockaddr *)(const void *)&any, sizeof(any)) != 0 ||
		listen(listener, 1) != 0) {
		complain("the TCP port of the handshake (another one for both ends: -p)");
		close(listener);
		return -1;
	}
	if (!p->o.json) {
		printf("\n************************************\n"
		       "* Waiting for client to connect... *\n"
		       "************************************\n");
		fflush(stdout);
	}
	p->sock = wait_client(p, listener);
	close(listener);
	if (p->sock == FAILED)
		return -1;
	return p->sock >= 0 ? 0 : complain("no client");
}

static int
dial_once(struct perf *p, const struct addrinfo *list)
{
	for (const struct addrinfo *a = list; a != NULL; a = a->ai_next) {
		p->sock = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol);
		if (p->sock >= 0 && connect(p->sock, a->ai_addr, a->ai_addrlen) == 0)
			return 0;
		if (p->sock >= 0)
			close(p->sock);
		p->sock = -1;
	}
	return -1;
}

int
oob_find_host(const struct perf *p, struct addrinfo **list)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	char port[8];
	int rc;

	snprintf(port, sizeof(port), "%u", p->o.port);
	rc = getaddrinfo(p->o.host, port, &hints, list);
	if (rc == 0)
		return 0;
	fprintf(stderr, "rocelane-perf: %s: %s\n", p->o.host, gai_strerror(rc));
	return -1;
}

static int
dial(struct perf *p)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct addrinfo *list;
	int rc;

	if (oob_find_host(p, &list) != 0)
		return -1;
	rc = dial_once(p, list);
	for (int i = 0; rc != 0 && errno == ECONNREFUSED && i < CONNECT_TRIES && !work_stopped();
		i++) {
		nanosleep(&pause, NULL);
		rc = dial_once(p, list);
	}
	freeaddrinfo(list);
	if (rc != 0 && work_stopped()) {
		errno = EINTR;
		return complain(p->o.host);
	}
	if (rc != 0)
		fprintf(stderr, "rocelane-perf: %s port %u: %s; start the server there first\n",
			p->o.host, p->o.port, strerror(errno));
	return rc;
}

int
oob_connect(struct perf *p)
{
	return p->o.client ? dial(p) : serve(p);
}

static int
write_all(struct perf *p, const void *data, size_t n)
{
	const char *at = data;

	while (n > 0) {
		ssize_t w = send(p->sock, at, n, MSG_NOSIGNAL);

		if (w < 0 && errno == EINTR && !work_stopped())
			continue;
		if (w <= 0)
			return complain("the peer's handshake");
		at += w;
		n -= (size_t)w;
	}
	return 0;
}

/*
 * Until the peer has said something. During the handshake it has so much time for each answer;
 * afterwards it may take as long as its test takes, but not in the middle of an answer.
 */
static int
wait_peer(const struct perf *p, bool begun)
{
	const uint64_t end = now_ns() + p->o.handshake_s * UINT64_C(1000000000);
	struct pollfd fd = { .fd = p->sock, .events = POLLIN };

	while (!work_stopped()) {
		if (poll(&fd, 1, LOOK_MS) > 0)
			return 0;
		if (work_failed(p))
			return -1;
		if ((begun || !p->running) && now_ns() > end) {
			fprintf(stderr,
				"rocelane-perf: the peer's handshake: no answer in %u s. Does it "
				"hang, or is it neither rocelane-perf nor perftest, or at another "
				"test? (--handshake_timeout)\n",
				p->o.handshake_s);
			return -1;
		}
	}
	errno = EINTR;
	return complain("the peer's handshake");
}

static int
read_all(struct perf *p, void *data, size_t n)
{
	char *at = data;

	while (n > 0) {
		ssize_t r;

		if (wait_peer(p, at != data) != 0)
			return -1;
		r = recv(p->sock, at, n, MSG_DONTWAIT);
		if (r < 0 && (errno == EINTR || errno == EAGAIN))
			continue;
		if (r == 0)
			errno = ECONNRESET;
		if (r <= 0 && p->running && errno == ECONNRESET) {
			fprintf(stderr, "rocelane-perf: the peer has closed the connection\n");
			return -1;
		}
		if (r <= 0)
			return complain("the peer's handshake");
		at += r;
		n -= (size_t)r;
	}
	return 0;
}

static int
exchange(struct perf *p, const void *mine, void *theirs, size_t n)
{
	if (p->o.client)
		return write_all(p, mine, n) != 0 ? -1 : read_all(p, theirs, n);
	return read_all(p, theirs, n) != 0 ? -1 : write_all(p, mine, n);
}

static int
exchange_u32(struct perf *p, uint32_t *v)
{
	uint32_t mine = htobe32(*v);
	uint32_t theirs;

	if (exchange(p, &mine, &theirs, sizeof(mine)) != 0)
		return -1;
	theirs = be32toh(theirs);
	*v = theirs > *v ? theirs : *v;
	return 0;
}

/* Path MTUs by their code of verbs, as a digit; the smaller one holds. */
static int
agree_mtu(struct perf *p)
{
	char mine[2] = { (char)('0' + __builtin_ctz(p->mtu) - 7), '\0' };
	char theirs[2];
	uint32_t mtu;

	if (exchange(p, mine, theirs, sizeof(mine)) != 0)
		return -1;
	if (theirs[0] < '1' || theirs[0] > '5')
		return 0;
	mtu = 128u << (theirs[0] - '0');
	if (mtu < p->mtu)
		p->mtu = mtu;
	return 0;
}

/* The peer's test is another one: then one would wait for what the other never says. */
static int
check_test(const char *mine, const char *theirs)
{
	static const char verbs[] = "SWRA";
	static const char *const names[] = { "send", "write", "read", "atomic" };
	const char *m = memchr(verbs, mine[0], sizeof(verbs) - 1);
	const char *t = memchr(verbs, theirs[0], sizeof(verbs) - 1);

	if (memcmp(mine, theirs, 2) == 0 || t == NULL || (theirs[1] != 'B' && theirs[1] != 'L'))
		return 0; /* the same, or one that does not tell */
	fprintf(stderr,
		"rocelane-perf: the peer runs %s_%s, and this is %s_%s: both ends need the "
		"same test\n",
		names[t - verbs], theirs[1] == 'L' ? "lat" : "bw", names[m - verbs],
		mine[1] == 'L' ? "lat" : "bw");
	return -1;
}

/* One would check what the other has not filled in. */
static int
check_validate(char mine, char theirs)
{
	if (mine == theirs || (theirs != 'V' && theirs != 'N'))
		return 0;
	fprintf(stderr, "rocelane-perf: --validate was said at %s alone: both ends must say it\n",
		mine == 'V' ? "this end" : "the other end");
	return -1;
}

/* What a stranger says may be anything, also for a terminal. */
static const char *
printable(char *text)
{
	for (char *c = text; *c != '\0'; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	return text;
}

int
oob_agree(struct perf *p)
{
	char mine[VERSION_BYTES] = VERSION_TEXT;
	char theirs[VERSION_BYTES];

	/* Behind the text's zero perftest leaves zeros: there two of ours know each other. */
	memcpy(mine + MARK_AT, "rocelan", 8);
	mine[TEST_AT] = "SWRA"[p->o.verb];
	mine[TEST_AT + 1] = p->o.lat ? 'L' : 'B';
	mine[VALIDATE_AT] = p->o.validate ? 'V' : 'N';
	if (exchange(p, mine, theirs, sizeof(mine)) != 0)
		return -1;
	theirs[VERSION_BYTES - 1] = '\0';
	p->peer_is_us = memcmp(mine + MARK_AT, theirs + MARK_AT, VERSION_BYTES - MARK_AT) == 0;
	if (p->peer_is_us && (check_test(mine + TEST_AT, theirs + TEST_AT) != 0 ||
				     check_validate(mine[VALIDATE_AT], theirs[VALIDATE_AT]) != 0))
		return -1;
	if (strtod(theirs, NULL) < 5.33) {
		fprintf(stderr,
			"rocelane-perf: the peer speaks version '%.15s' of perftest's "
			"handshake; 5.33 or later is needed\n",
			printable(theirs));
		return -1;
	}
	p->cycle_buffer = (uint32_t)sysconf(_SC_PAGESIZE);
	p->line = CACHE_LINE;
	if (exchange_u32(p, &p->cycle_buffer) != 0 || exchange_u32(p, &p->line) != 0)
		return -1;
	if (p->cycle_buffer > 1u << 30) {
		fprintf(stderr, "rocelane-perf: the peer asks for buffers of %u bytes\n",
			p->cycle_buffer);
		return -1;
	}
	return agree_mtu(p);
}

/* "lid:out_reads:qpn:psn:rkey:vaddr:" 16 bytes of the GID "srqn:" in hexadecimal */
static void
keys_text(const struct perf_dest *d, char text[KEYS_BYTES])
{
	int n;

	memset(text, 0, KEYS_BYTES);
	n = snprintf(text, KEYS_BYTES, "%04x:%04x:%06x:%06x:%08x:%016llx:", d->lid, d->out_reads,
		d->qpn, d->psn, d->rkey, (unsigned long long)d->vaddr);
	for (int i = 0; i < 16; i++)
		n += snprintf(text + n, KEYS_BYTES - (size_t)n, "%02x:", d->gid.raw[i]);
	snprintf(text + n, KEYS_BYTES - (size_t)n, "%08x:", d->srqn);
}

/* @return false: not a number with a colon behind it. */
static bool
field(const char **at, uint64_t max, uint64_t *v)
{
	char *end;

	errno = 0;
	*v = strtoull(*at, &end, 16);
	if (errno != 0 || end == *at || *end != ':' || *v > max)
		return false;
	*at = end + 1;
	return true;
}

static bool
keys_parse(const char *text, struct perf_dest *d)
{
	uint32_t *const plain[] = { &d->lid, &d->out_reads, &d->qpn, &d->psn, &d->rkey };
	const char *at = text;
	uint64_t v;

	for (size_t i = 0; i < sizeof(plain) / sizeof(plain[0]); i++) {
		if (!field(&at, UINT32_MAX, &v))
			return false;
		*plain[i] = (uint32_t)v;
	}
	if (!field(&at, UINT64_MAX, &d->vaddr))
		return false;
	for (int i = 0; i < 16; i++) {
		if (!field(&at, 0xff, &v))
			return false;
		d->gid.raw[i] = (uint8_t)v;
	}
	if (!field(&at, UINT32_MAX, &v))
		return false;
	d->srqn = (uint32_t)v;
	return d->qpn <= 0xffffff && d->psn <= 0xffffff;
}

int
oob_keys(struct perf *p, uint32_t qp)
{
	char mine[KEYS_BYTES];
	char theirs[KEYS_BYTES + 1];

	keys_text(&p->mine[qp], mine);
	if (exchange(p, mine, theirs, sizeof(mine)) != 0)
		return -1;
	theirs[KEYS_BYTES] = '\0';
	if (!keys_parse(theirs, &p->theirs[qp])) {
		fprintf(stderr,
			"rocelane-perf: the peer's handshake is not perftest's with a GID: "
			"'%s' (does it run the same test with as many queue pairs?)\n",
			printable(theirs));
		return -1;
	}
	return 0;
}

int
oob_all_keys(struct perf *p)
{
	for (uint32_t i = 0; i < p->num_qps; i++) {
		if (oob_keys(p, i) != 0)
			return -1;
	}
	return 0;
}

static uint64_t
double_to_be(double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	return htobe64(bits);
}

static double
double_from_be(uint64_t be)
{
	double v;

	be = be64toh(be);
	memcpy(&v, &be, sizeof(v));
	return v;
}

/* Neither infinite, nor none, nor below 0. */
static bool
is_rate(double v)
{
	return v >= 0 && v <= DBL_MAX;
}

int
oob_report(struct perf *p, const struct perf_result *mine, struct perf_result *theirs)
{
	const uint64_t out[] = { htobe64(mine->size), htobe64(mine->iters),
		double_to_be(mine->bw_peak / (1 << 20)), double_to_be(mine->bw_avg / (1 << 20)),
		double_to_be(mine->rate / 1e6) };
	uint64_t in[5];

	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++) {
		if (exchange(p, &out[i], &in[i], sizeof(in[i])) != 0)
			return -1;
	}
	theirs->size = be64toh(in[0]);
	theirs->iters = be64toh(in[1]);
	theirs->bw_peak = double_from_be(in[2]) * (1 << 20);
	theirs->bw_avg = double_from_be(in[3]) * (1 << 20);
	theirs->rate = double_from_be(in[4]) * 1e6;
	/*
	 * Of more queue pairs than ours it are keys still. Not so sure with perftest, whose server
	 * sends of READs and ATOMICs what its memory holds. A server shows what its client sends.
	 */
	if ((p->peer_is_us && theirs->size > REPORT_SIZE_MAX) ||
		(!p->o.client && !(is_rate(theirs->bw_peak) && is_rate(theirs->bw_avg) &&
					 is_rate(theirs->rate)))) {
		fprintf(stderr, "rocelane-perf: the peer's report is none: does it have as many "
				"queue pairs (-q), and the same options?\n");
		return -1;
	}
	return 0;
}

int
oob_close(struct perf *p)
{
	struct pollfd fd = { .fd = p->sock, .events = POLLIN };
	char theirs[5];

	if (oob_keys(p, 0) != 0 || write_all(p, "done", sizeof(theirs)) != 0)
		return -1;
	/* The peer's "done" may be cut off by its end: then nothing is wrong. */
	if (poll(&fd, 1, CLOSE_MS) > 0)
		(void)!recv(p->sock, theirs, sizeof(theirs), MSG_DONTWAIT);
	close(p->sock);
	p->sock = -1;
	return 0;
}
