/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The whole dataplane in one thread on a clock of its own: frames and requests in on standard
 * input, frames and replies out on standard output. Nothing is timed, nothing races, no root.
 *
 *   rx PORT HEX [fcs]  queue a frame for that port (index in the config's "ports"); with fcs it
 *                  bears the mark of a driver that found its FCS wrong
 *   starve PORT N  leave N free buffers in the port's pool; frames given to rx come from elsewhere
 *   sate PORT      give them back
 *   run [NS]       advance the clock by NS nanoseconds and turn until nothing moves;
 *                  prints "tx PORT HEX" for each frame that left, but for what a port
 *                  with an IPv6 address says by itself (own_report.h)
 *   step NS TOTAL  advance by NS until a frame leaves, or TOTAL nanoseconds have passed
 *   link A B [N]   frames that leave port A arrive at port B, and the other way round, from now
 *                  on; one in N of them is lost, at random but always the same (0: none)
 *   unlink         no port is linked any more
 *   rpc JSON       one control request; prints the reply
 *   turn [N]       N turns of each worker (default 1) without waiting for idleness
 *   aeq WORKER ID CODE SOURCE WQE   an event record in a worker's queue (numbers)
 *   srq NAME sges|prod N            break an SRQ: SGEs of its next entry; N added to its producer
 *   port PORT up|down|gone          the port's link; gone: its device is closed
 *   buffers        prints how many packet buffers of each port are in use
 *   now            prints the clock
 *   quit
 *
 * Every command's output ends with a line ".". A command that is wrong prints "error: ...".
 *
 * usage: rocelane-stepped --config FILE
 * Its ports' devices are net_ring_stepped0, net_ring_stepped1, ...
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include "../clib/eal.h"
#include "args.h"
#include "log.h"
#include "stepped.h"

#define RING_FRAMES 4096
#define OWN_MBUFS   255

struct stepped stepped = { .now = TIME_NS_PER_MS };

static ns_t
stepped_clock(void)
{
	return stepped.now;
}

void
stepped_pump(void *ctx UNUSED)
{
	for (uint32_t i = 0; i < stepped.dp.conf->lcores.n_workers; i++)
		worker_poll(stepped.dp.workers[i], stepped.now);
}

/* What drivers and NICs have and net_ring has not. */
static int
stepped_extras_create(void)
{
	static const struct rte_mbuf_dynflag fcs = { .name = PIPELINE_FCS_FLAG };
	int bit = rte_mbuf_dynflag_register(&fcs);

	stepped.pool = rte_pktmbuf_pool_create("stepped", OWN_MBUFS, 0, 0,
		STEPPED_FRAME_MAX + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (bit < 0 || stepped.pool == NULL) {
		log_error("rocelane-stepped: %s", rte_strerror(rte_errno));
		return -ENOMEM;
	}
	stepped.fcs_flag = UINT64_C(1) << bit;
	return 0;
}

/* Each worker can send on every port; a port's frames are received by one of them. */
static int
stepped_ports_create(const struct conf *conf)
{
	for (uint32_t i = 0; i < conf->n_ports; i++) {
		struct rte_ring *tx[PIPELINE_MAX_WORKERS];
		char name[32];

		snprintf(name, sizeof(name), "stepped%u_rx", i);
		stepped.ports[i].rx = rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "stepped%u_tx", i);
		stepped.ports[i].tx = rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "stepped%u", i);
		for (uint32_t w = 0; w < conf->lcores.n_workers; w++)
			tx[w] = stepped.ports[i].tx;
		if (stepped.ports[i].rx == NULL || stepped.ports[i].tx == NULL ||
			rte_eth_from_rings(
				name, &stepped.ports[i].rx, 1, tx, conf->lcores.n_workers, 0) < 0) {
			log_error("port %u: %s", i, rte_strerror(rte_errno));
			return -ENOMEM;
		}
	}
	return 0;
}

static int
serve(void)
{
	char *line = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getline(&line, &room, stdin)) > 0) {
		bool more;

		if (line[n - 1] == '\n')
			line[n - 1] = '\0';
		more = stepped_command(line);
		puts(".");
		fflush(stdout);
		if (!more)
			break;
	}
	free(line);
	return 0;
}

static int
stepped_run(const struct conf *conf)
{
	const struct dataplane_hooks hooks = {
		.clock = stepped_clock, .pump = stepped_pump, .no_socket = true
	};
	int rc = stepped_ports_create(conf);

	stepped.dp.conf = conf;
	stepped.dp.stop = true; /* as a signal while ports are opened does */
	if (rc == 0)
		rc = stepped_extras_create();
	if (rc == 0)
		rc = dataplane_create(&stepped.dp, conf, &hooks);
	if (rc != 0)
		return rc;
	if (!stepped.dp.stop) {
		fputs("rocelane-stepped: the start has forgotten that it was told to stop\n",
			stderr);
		return -EINVAL;
	}
	stepped.dp.stop = false;
	rc = dataplane_start(&stepped.dp);
	puts(rc == 0 ? "ready" : "error: dataplane does not start");
	fflush(stdout);
	if (rc == 0)
		rc = serve();
	dataplane_stop_control(&stepped.dp);
	dataplane_destroy(&stepped.dp);
	return rc;
}

int
main(int argc, char **argv)
{
	struct args args = { .config = argc == 3 ? argv[2] : NULL };
	struct conf_errors err;
	struct eal_args ea;
	struct conf *conf;
	int rc;

	if (argc != 3 || strcmp(argv[1], "--config") != 0) {
		fputs("usage: rocelane-stepped --config FILE\n", stderr);
		return 2;
	}
	conf_errors_init(&err);
	rc = conf_load_file(args.config, &conf, &err);
	for (uint32_t i = 0; i < err.n; i++) {
		char line[1024];

		conf_error_print(&err, i, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	conf_errors_free(&err);
	if (rc != 0)
		return 2;
	/* One thread does it all: EAL gets the main lcore alone. */
	rc = eal_args_build(conf, &args, &ea);
	if (rc == 0 && eal_init_anywhere(ea.argc, ea.argv) < 0)
		rc = -EIO;
	if (rc == 0) {
		rc = stepped_run(conf);
		rte_eal_cleanup();
	}
	eal_args_free(&ea);
	conf_free(conf);
	return rc == 0 ? 0 : 1;
}
