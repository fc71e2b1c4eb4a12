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
 *                  prints "tx PORT HEX" for each frame that left
 *   step NS TOTAL  advance by NS until a frame leaves, or TOTAL nanoseconds have passed
 *   link A B [N]   frames that leave port A arrive at port B, and the other way round, from now
 *                  on; one in N of them is lost, at random but always the same (0: none)
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
 * usage: rocelane-rig --config FILE; its ports' devices are net_ring_rig0, net_ring_rig1, ...
 */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_mbuf_dyn.h>
#include <rte_ring.h>

#include "args.h"
#include "dataplane.h"
#include "log.h"
#include "objects.h"

#define RING_FRAMES 4096
#define IDLE_ROUNDS 3
#define MAX_ROUNDS  1000000
#define MAX_FRAME   16384
#define HELD_MAX    65536
#define OWN_MBUFS   255

struct rig_port {
	struct rte_ring *rx;
	struct rte_ring *tx;
};

static struct dataplane dp;
static struct rig_port rig_ports[CONF_MAX_PORTS];
static int rig_link[CONF_MAX_PORTS]; /* far end of a port's wire + 1; 0: standard output */
static uint32_t rig_lose;            /* one frame in so many */
static uint32_t rig_random = 1;
static uint32_t rig_printed;         /* frames that left */
static ns_t rig_now = TIME_NS_PER_MS;
static uint64_t rig_fcs_flag;
static struct rte_mempool *rig_pool; /* of frames given to a starving port */
static struct rte_mbuf *rig_held[HELD_MAX];
static uint32_t rig_held_n;

static ns_t
rig_clock(void)
{
	return rig_now;
}

static void
rig_pump(void *ctx UNUSED)
{
	for (uint32_t i = 0; i < dp.conf->lcores.n_workers; i++)
		worker_poll(dp.workers[i], rig_now);
}

/* What drivers and NICs have and net_ring has not. */
static int
rig_extras_create(void)
{
	static const struct rte_mbuf_dynflag fcs = { .name = PIPELINE_FCS_FLAG };
	int bit = rte_mbuf_dynflag_register(&fcs);

	rig_pool = rte_pktmbuf_pool_create("rig", OWN_MBUFS, 0, 0,
		MAX_FRAME + RTE_PKTMBUF_HEADROOM, SOCKET_ID_ANY);
	if (bit < 0 || rig_pool == NULL) {
		log_error("rig: %s", rte_strerror(rte_errno));
		return -ENOMEM;
	}
	rig_fcs_flag = UINT64_C(1) << bit;
	return 0;
}

/* Each worker can send on every port; a port's frames are received by one of them. */
static int
rig_ports_create(const struct conf *conf)
{
	for (uint32_t i = 0; i < conf->n_ports; i++) {
		struct rte_ring *tx[PIPELINE_MAX_WORKERS];
		char name[32];

		snprintf(name, sizeof(name), "rig%u_rx", i);
		rig_ports[i].rx = rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "rig%u_tx", i);
		rig_ports[i].tx = rte_ring_create(name, RING_FRAMES, SOCKET_ID_ANY, 0);
		snprintf(name, sizeof(name), "rig%u", i);
		for (uint32_t w = 0; w < conf->lcores.n_workers; w++)
			tx[w] = rig_ports[i].tx;
		if (rig_ports[i].rx == NULL || rig_ports[i].tx == NULL ||
			rte_eth_from_rings(name, &rig_ports[i].rx, 1, tx, conf->lcores.n_workers,
				0) < 0) {
			log_error("rig port %u: %s", i, rte_strerror(rte_errno));
			return -ENOMEM;
		}
	}
	return 0;
}

static int
hex_digit(char c)
{
	return isdigit((unsigned char)c) ? c - '0' :
		isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10 : -1;
}

static void
cmd_rx(char *arg)
{
	static uint8_t frame[MAX_FRAME];
	char *hex, *fcs;
	unsigned long port = strtoul(arg, &hex, 10);
	struct rte_mempool *pool;
	struct rte_mbuf *m;
	size_t n = 0;

	fcs = strstr(hex, " fcs");
	if (fcs != NULL)
		*fcs = '\0';
	while (*hex == ' ')
		hex++;
	for (; n < sizeof(frame) && hex_digit(hex[0]) >= 0 && hex_digit(hex[1]) >= 0; hex += 2)
		frame[n++] = (uint8_t)(hex_digit(hex[0]) << 4 | hex_digit(hex[1]));
	if (port >= dp.conf->n_ports || *hex != '\0') {
		puts("error: rx PORT HEX");
		return;
	}
	pool = dp.ports[port].pool;
	if (rig_held_n != 0 || n + RTE_PKTMBUF_HEADROOM > rte_pktmbuf_data_room_size(pool))
		pool = rig_pool;
	m = rte_pktmbuf_alloc(pool);
	if (m == NULL || rte_pktmbuf_tailroom(m) < n) {
		rte_pktmbuf_free(m);
		puts("error: frame does not fit the port's buffers");
		return;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	m->ol_flags |= fcs != NULL ? rig_fcs_flag : 0;
	if (rte_ring_enqueue(rig_ports[port].rx, m) != 0) {
		rte_pktmbuf_free(m);
		puts("error: receive ring full");
	}
}

/* Buffers of a port's pool are taken away, all but so many. */
static void
cmd_starve(const char *arg)
{
	unsigned int port, keep;

	if (sscanf(arg, "%u %u", &port, &keep) != 2 || port >= dp.conf->n_ports ||
		rig_held_n != 0) {
		puts("error: starve PORT N");
		return;
	}
	while (rig_held_n < HELD_MAX) {
		rig_held[rig_held_n] = rte_pktmbuf_alloc(dp.ports[port].pool);
		if (rig_held[rig_held_n] == NULL)
			break;
		rig_held_n++;
	}
	for (; keep != 0 && rig_held_n > 1; keep--)
		rte_pktmbuf_free(rig_held[--rig_held_n]);
}

static void
cmd_sate(void)
{
	rte_pktmbuf_free_bulk(rig_held, rig_held_n);
	rig_held_n = 0;
}

/* @return whether the frame went to another port of the dataplane. */
static bool
forward(uint32_t from, struct rte_mbuf *m)
{
	if (rig_link[from] == 0)
		return false;
	rig_random = rig_random * 1664525u + 1013904223u;
	if ((rig_lose != 0 && (rig_random >> 8) % rig_lose == 0) ||
		rte_ring_enqueue(rig_ports[rig_link[from] - 1].rx, m) != 0)
		rte_pktmbuf_free(m);
	return true;
}

static uint32_t
drain_tx(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < dp.conf->n_ports; i++) {
		struct rte_mbuf *m;

		while (rte_ring_dequeue(rig_ports[i].tx, (void **)&m) == 0) {
			n++;
			if (forward(i, m))
				continue;
			rig_printed++;
			printf("tx %u ", i);
			for (const struct rte_mbuf *s = m; s != NULL; s = s->next)
				for (uint16_t b = 0; b < s->data_len; b++)
					printf("%02x", rte_pktmbuf_mtod(s, const uint8_t *)[b]);
			putchar('\n');
			rte_pktmbuf_free(m);
		}
	}
	return n;
}

/* Turn until nothing moves. */
static void
settle(void)
{
	uint32_t idle = 0;

	for (uint32_t round = 0; idle < IDLE_ROUNDS && round < MAX_ROUNDS; round++) {
		uint32_t work = 0;

		for (uint32_t i = 0; i < dp.conf->lcores.n_workers; i++)
			work += worker_poll(dp.workers[i], rig_now);
		work += control_poll(dp.control, rig_now);
		work += drain_tx();
		idle = work == 0 ? idle + 1 : 0;
	}
	if (idle < IDLE_ROUNDS)
		puts("error: never idle");
}

static void
cmd_run(const char *arg)
{
	rig_now += strtoull(arg, NULL, 10);
	settle();
}

static void
cmd_step(const char *arg)
{
	char *more;
	uint64_t step = strtoull(arg, &more, 10);
	uint64_t left = strtoull(more, NULL, 10);
	uint32_t before = rig_printed;

	if (step == 0) {
		puts("error: step NS TOTAL");
		return;
	}
	settle();
	while (rig_printed == before && left >= step) {
		rig_now += step;
		left -= step;
		settle();
	}
}

static void
cmd_link(const char *arg)
{
	char *more;
	unsigned long a = strtoul(arg, &more, 10);
	unsigned long b = strtoul(more, &more, 10);

	if (a >= dp.conf->n_ports || b >= dp.conf->n_ports) {
		puts("error: link A B [N]");
		return;
	}
	rig_link[a] = (int)b + 1;
	rig_link[b] = (int)a + 1;
	rig_lose = (uint32_t)strtoul(more, NULL, 10);
}

static void
cmd_turn(const char *arg)
{
	unsigned long n = strtoul(arg, NULL, 10);

	for (unsigned long i = 0; i < (n > 0 ? n : 1); i++)
		rig_pump(NULL);
	drain_tx();
}

static void
cmd_rpc(const char *arg)
{
	char *reply = control_rpc(dp.control, arg, strlen(arg));

	if (reply != NULL)
		puts(reply);
	free(reply);
}

/* What a worker would raise; it is this thread that stands for it. */
static void
cmd_aeq(const char *arg)
{
	unsigned int worker, id, code, source, wqe;
	struct ring_aeq_event e;

	if (sscanf(arg, "%u %u %i %u %u", &worker, &id, (int *)&code, &source, &wqe) != 5 ||
		worker >= dp.conf->lcores.n_workers) {
		puts("error: aeq WORKER ID CODE SOURCE WQE");
		return;
	}
	e = (struct ring_aeq_event){ .id = id,
		.code = (uint16_t)code,
		.source = (uint8_t)source,
		.wqe_index = (uint16_t)wqe,
		.time_ns = rig_now };
	if (ring_aeq_push(&dp.mbox[worker].raise, &e) != 0)
		puts("full");
}

/* What a host could write into the memory that it shares. */
static void
cmd_srq(const char *arg)
{
	char name[CONF_NAME_MAX], what[8];
	struct object_srq *srq = NULL;
	struct ring_recv_wqe *wqe;
	struct refusal r;
	unsigned int n;

	if (sscanf(arg, "%63s %7s %u", name, what, &n) == 3)
		srq = object_srq_find(dp.control, name, &r);
	if (srq == NULL) {
		puts("error: srq NAME sges|prod N");
		return;
	}
	if (strcmp(what, "prod") == 0) {
		atomic_fetch_add(&srq->rq.sh->prod, n);
		return;
	}
	wqe = (void *)(srq->rq.sh->slots +
		       (size_t)(atomic_load(&srq->q.ring.head) & srq->rq.mask) * srq->rq.stride);
	wqe->num_sge = n;
}

static void
cmd_port(const char *arg)
{
	char how[8] = "";
	unsigned int port;
	int rc = -EINVAL;

	if (sscanf(arg, "%u %7s", &port, how) != 2 || port >= dp.conf->n_ports) {
		puts("error: port PORT up|down|gone");
		return;
	}
	if (strcmp(how, "up") == 0)
		rc = rte_eth_dev_set_link_up(dp.ports[port].id);
	else if (strcmp(how, "down") == 0)
		rc = rte_eth_dev_set_link_down(dp.ports[port].id);
	else if (strcmp(how, "gone") == 0 && rte_eth_dev_stop(dp.ports[port].id) == 0)
		rc = rte_eth_dev_close(dp.ports[port].id);
	if (rc != 0)
		puts("error: port");
}

static void
cmd_buffers(void)
{
	for (uint32_t i = 0; i < dp.conf->n_ports; i++)
		printf("%u\n", rte_mempool_in_use_count(dp.ports[i].pool));
}

/* @return false at quit. */
static bool
command(char *line)
{
	char *arg = strchr(line, ' ');

	if (arg != NULL)
		*arg++ = '\0';
	else
		arg = line + strlen(line);
	if (strcmp(line, "rx") == 0)
		cmd_rx(arg);
	else if (strcmp(line, "starve") == 0)
		cmd_starve(arg);
	else if (strcmp(line, "sate") == 0)
		cmd_sate();
	else if (strcmp(line, "run") == 0)
		cmd_run(arg);
	else if (strcmp(line, "step") == 0)
		cmd_step(arg);
	else if (strcmp(line, "link") == 0)
		cmd_link(arg);
	else if (strcmp(line, "turn") == 0)
		cmd_turn(arg);
	else if (strcmp(line, "rpc") == 0)
		cmd_rpc(arg);
	else if (strcmp(line, "aeq") == 0)
		cmd_aeq(arg);
	else if (strcmp(line, "srq") == 0)
		cmd_srq(arg);
	else if (strcmp(line, "port") == 0)
		cmd_port(arg);
	else if (strcmp(line, "buffers") == 0)
		cmd_buffers();
	else if (strcmp(line, "now") == 0)
		printf("%llu\n", (unsigned long long)rig_now);
	else if (strcmp(line, "quit") == 0)
		return false;
	else
		puts("error: no such command");
	return true;
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
		more = command(line);
		puts(".");
		fflush(stdout);
		if (!more)
			break;
	}
	free(line);
	return 0;
}

static int
rig_run(const struct conf *conf)
{
	const struct dataplane_hooks hooks = {
		.clock = rig_clock, .pump = rig_pump, .no_socket = true
	};
	int rc = rig_ports_create(conf);

	dp.conf = conf;
	if (rc == 0)
		rc = rig_extras_create();
	if (rc == 0)
		rc = dataplane_create(&dp, conf, &hooks);
	if (rc != 0)
		return rc;
	rc = dataplane_start(&dp);
	puts(rc == 0 ? "ready" : "error: dataplane does not start");
	fflush(stdout);
	if (rc == 0)
		rc = serve();
	dataplane_stop_control(&dp);
	dataplane_destroy(&dp);
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
		fputs("usage: rocelane-rig --config FILE\n", stderr);
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
	if (rc == 0 && rte_eal_init(ea.argc, ea.argv) < 0)
		rc = -EIO;
	if (rc == 0) {
		rc = rig_run(conf);
		rte_eal_cleanup();
	}
	eal_args_free(&ea);
	conf_free(conf);
	return rc == 0 ? 0 : 1;
}
