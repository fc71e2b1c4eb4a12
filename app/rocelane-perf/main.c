/* SPDX-License-Identifier: BSD-3-Clause */
/* The order of a test: the handshakes are where perftest has them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fds.h"
#include "perf.h"

/* Keys, connection, keys again: then both ends are in RTS. */
static int
shake_hands(struct perf *p)
{
	if (p->o.lat && p->o.verb != PERF_SEND && oob_keys(p, 0) != 0)
		return -1;
	if (oob_all_keys(p) != 0 || ends_connect(p) != 0)
		return -1;
	if (p->o.verb == PERF_SEND)
		return oob_keys(p, 0) != 0 ? -1 : oob_all_keys(p);
	return oob_all_keys(p) != 0 ? -1 : oob_keys(p, 0);
}

static bool
receives(const struct perf *p)
{
	return p->o.verb == PERF_SEND && (p->o.lat || !p->o.client);
}

static int
post_receives(struct perf *p, uint64_t size)
{
	for (uint32_t i = 0; i < p->o.qps; i++) {
		for (uint32_t n = 0; n < p->o.rx_depth; n++) {
			if (p->o.duration_s == 0 && n == p->o.iters)
				break;
			if (work_post_recv(p, i, size) != 0)
				return -1;
		}
	}
	return 0;
}

/* One size, between the handshakes that SENDs need: nobody sends before receives are posted. */
static int
one_size(struct perf *p, uint64_t size, struct perf_result *r)
{
	int rc;

	work_reset(p, size);
	if (receives(p) && post_receives(p, size) != 0)
		return -1;
	if (p->o.verb == PERF_SEND && oob_keys(p, 0) != 0)
		return -1;
	if (p->o.lat)
		rc = lat_run(p, size, r);
	else
		rc = p->o.client ? bw_client(p, size, r) : bw_server_recv(p, size, r);
	if (rc != 0)
		return -1;
	if (p->o.lat)
		report_lat(p, r);
	else
		report_bw(p, r);
	if (p->o.all_sizes && p->o.verb == PERF_SEND && !p->o.lat)
		return oob_keys(p, 0);
	return 0;
}

static int
all_sizes(struct perf *p, struct perf_result *r)
{
	if (!p->o.all_sizes)
		return one_size(p, p->o.size, r);
	for (uint64_t size = 2; size <= (p->o.type == RL_QPT_UD ? p->mtu : 1u << 23); size *= 2) {
		if (one_size(p, size, r) != 0)
			return -1;
	}
	return 0;
}

/* WRITE, READ and ATOMIC at the server: nothing to do but wait for the client's keys. */
static int
passive(struct perf *p)
{
	struct perf_result mine = { .size = p->o.size, .iters = p->o.iters };
	struct perf_result theirs;

	work_prepare(p, p->o.size);
	if (shake_hands(p) != 0)
		return -1;
	p->running = true;
	report_head(p);
	if (p->o.lat)
		return oob_close(p);
	report_columns(p);
	if (oob_keys(p, 0) != 0 || oob_report(p, &mine, &theirs) != 0)
		return -1;
	if (p->o.validate && p->o.verb == PERF_WRITE)
		work_check_written(p, p->o.size, theirs.iters);
	theirs.seconds =
		theirs.rate > 0
			? (double)theirs.iters * (p->o.duration_s > 0 ? 1 : p->o.qps) / theirs.rate
			: 0;
	report_bw(p, &theirs);
	return oob_close(p);
}

static int
active(struct perf *p)
{
	struct perf_result theirs;
	struct perf_result r = { 0 };

	work_prepare(p, p->o.size);
	if (shake_hands(p) != 0)
		return -1;
	p->running = true;
	report_head(p);
	report_columns(p);
	if (all_sizes(p, &r) != 0)
		return -1;
	/* A server has nothing more to do: one that does not answer is at another test. */
	p->running = !p->o.client;
	if (p->o.verb != PERF_SEND && !p->o.lat &&
		(oob_keys(p, 0) != 0 || oob_report(p, &r, &theirs) != 0))
		return -1;
	if (p->o.lat && p->o.verb == PERF_WRITE && !p->peer_is_us)
		return 0; /* perftest's write_lat just goes */
	return oob_close(p);
}

static int
agree(struct perf *p)
{
	if (oob_agree(p) != 0)
		return -1;
	if (p->o.type == RL_QPT_UD && p->o.size > p->mtu) {
		if (p->o.size_given)
			fprintf(stderr,
				"rocelane-perf: a datagram has %u bytes at most: so many "
				"are sent\n",
				p->mtu);
		p->o.size = p->mtu;
	}
	if (p->o.validate && !p->peer_is_us) {
		fprintf(stderr,
			"rocelane-perf: --validate needs a rocelane-perf at the other end\n");
		return -1;
	}
	return 0;
}

static int
run(struct perf *p)
{
	const bool waits =
		!p->o.client && p->o.verb != PERF_SEND && !(p->o.lat && p->o.verb == PERF_WRITE);
	int rc;

	if (ends_open(p) != 0 || (p->o.by_cm ? cm_meet(p) : oob_connect(p)) != 0 || agree(p) != 0 ||
		ends_make(p) != 0)
		return PERF_FAILED;
	rc = waits ? passive(p) : active(p);
	if (rc == 0)
		report_end(p);
	return rc == 0 && p->wrong == 0 ? PERF_OK : PERF_FAILED;
}

/* A result that nobody can read is none. */
static int
written(int rc)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return rc;
	fprintf(stderr, "rocelane-perf: cannot write: %s\n", strerror(errno));
	return rc == PERF_OK ? PERF_FAILED : rc;
}

int
main(int argc, char **argv)
{
	static struct perf p = { .sock = -1 };
	int rc;

	fds_standard();
	rc = options_parse(&p.o, argc, argv);

	if (rc != PERF_OK)
		return written(rc < 0 ? PERF_OK : rc);
	work_init();
	rc = run(&p);
	if (p.sock >= 0)
		close(p.sock);
	ends_free(&p);
	rc = written(rc);
	if (rc != PERF_OK)
		work_end_as_stopped();
	return rc;
}
