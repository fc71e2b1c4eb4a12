/* SPDX-License-Identifier: BSD-3-Clause */
/* The commands of rocelane-stepped; stepped.c says what each of them does. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_mbuf.h>
#include <rte_ring.h>

#include "../clib/own_report.h"
#include "objects.h"
#include "stepped.h"

#define IDLE_ROUNDS 3
#define MAX_ROUNDS  1000000
#define HELD_MAX    65536

static int link_to[CONF_MAX_PORTS]; /* far end of a port's wire + 1; 0: standard output */
static uint32_t link_loses;         /* one frame in so many */
static uint32_t link_random = 1;
static uint32_t printed; /* frames that left */
static struct rte_mbuf *held[HELD_MAX];
static uint32_t held_n;

static int
hex_digit(char c)
{
	return isdigit((unsigned char)c)    ? c - '0'
	       : isxdigit((unsigned char)c) ? tolower((unsigned char)c) - 'a' + 10
					    : -1;
}

static void
cmd_rx(char *arg)
{
	static uint8_t frame[STEPPED_FRAME_MAX];
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
	if (port >= stepped.dp.conf->n_ports || *hex != '\0') {
		puts("error: rx PORT HEX");
		return;
	}
	pool = stepped.dp.ports[port].pool;
	if (held_n != 0 || n + RTE_PKTMBUF_HEADROOM > rte_pktmbuf_data_room_size(pool))
		pool = stepped.pool;
	m = rte_pktmbuf_alloc(pool);
	if (m == NULL || rte_pktmbuf_tailroom(m) < n) {
		rte_pktmbuf_free(m);
		puts("error: frame does not fit the port's buffers");
		return;
	}
	memcpy(rte_pktmbuf_append(m, (uint16_t)n), frame, n);
	m->ol_flags |= fcs != NULL ? stepped.fcs_flag : 0;
	if (rte_ring_enqueue(stepped.ports[port].rx, m) != 0) {
		rte_pktmbuf_free(m);
		puts("error: receive ring full");
	}
}

/* Buffers of a port's pool are taken away, all but so many. */
static void
cmd_starve(char *arg)
{
	unsigned int port, keep;

	if (sscanf(arg, "%u %u", &port, &keep) != 2 || port >= stepped.dp.conf->n_ports ||
		held_n != 0) {
		puts("error: starve PORT N");
		return;
	}
	while (held_n < HELD_MAX) {
		held[held_n] = rte_pktmbuf_alloc(stepped.dp.ports[port].pool);
		if (held[held_n] == NULL)
			break;
		held_n++;
	}
	for (; keep != 0 && held_n > 1; keep--)
		rte_pktmbuf_free(held[--held_n]);
}

static void
cmd_sate(char *arg UNUSED)
{
	rte_pktmbuf_free_bulk(held, held_n);
	held_n = 0;
}

/* @return whether the frame went to another port of the dataplane. */
static bool
forward(uint32_t from, struct rte_mbuf *m)
{
	if (link_to[from] == 0)
		return false;
	link_random = link_random * 1664525u + 1013904223u;
	if ((link_loses != 0 && (link_random >> 8) % link_loses == 0) ||
		rte_ring_enqueue(stepped.ports[link_to[from] - 1].rx, m) != 0)
		rte_pktmbuf_free(m);
	return true;
}

static uint32_t
drain_tx(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < stepped.dp.conf->n_ports; i++) {
		struct rte_mbuf *m;

		while (rte_ring_dequeue(stepped.ports[i].tx, (void **)&m) == 0) {
			n++;
			if (is_own_report(rte_pktmbuf_mtod(m, const uint8_t *), m->data_len)) {
				rte_pktmbuf_free(m);
				continue;
			}
			if (forward(i, m))
				continue;
			printed++;
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

		for (uint32_t i = 0; i < stepped.dp.conf->lcores.n_workers; i++)
			work += worker_poll(stepped.dp.workers[i], stepped.now);
		work += control_poll(stepped.dp.control, stepped.now);
		work += drain_tx();
		idle = work == 0 ? idle + 1 : 0;
	}
	if (idle < IDLE_ROUNDS)
		puts("error: never idle");
}

static void
cmd_run(char *arg)
{
	stepped.now += strtoull(arg, NULL, 10);
	settle();
}

static void
cmd_step(char *arg)
{
	char *more;
	uint64_t step = strtoull(arg, &more, 10);
	uint64_t left = strtoull(more, NULL, 10);
	uint32_t before = printed;

	if (step == 0) {
		puts("error: step NS TOTAL");
		return;
	}
	settle();
	while (printed == before && left >= step) {
		stepped.now += step;
		left -= step;
		settle();
	}
}

static void
cmd_link(char *arg)
{
	char *more;
	unsigned long a = strtoul(arg, &more, 10);
	unsigned long b = strtoul(more, &more, 10);

	if (a >= stepped.dp.conf->n_ports || b >= stepped.dp.conf->n_ports) {
		puts("error: link A B [N]");
		return;
	}
	link_to[a] = (int)b + 1;
	link_to[b] = (int)a + 1;
	link_loses = (uint32_t)strtoul(more, NULL, 10);
}

static void
cmd_unlink(char *arg)
{
	(void)arg;
	memset(link_to, 0, sizeof(link_to));
}

static void
cmd_turn(char *arg)
{
	unsigned long n = strtoul(arg, NULL, 10);

	for (unsigned long i = 0; i < (n > 0 ? n : 1); i++)
		stepped_pump(NULL);
	drain_tx();
}

static void
cmd_rpc(char *arg)
{
	char *reply = control_rpc(stepped.dp.control, arg, strlen(arg));

	if (reply != NULL)
		puts(reply);
	free(reply);
}

/* What a worker would raise; it is this thread that stands for it. */
static void
cmd_aeq(char *arg)
{
	unsigned int worker, id, code, source, wqe;
	struct ring_aeq_event e;

	if (sscanf(arg, "%u %u %i %u %u", &worker, &id, (int *)&code, &source, &wqe) != 5 ||
		worker >= stepped.dp.conf->lcores.n_workers) {
		puts("error: aeq WORKER ID CODE SOURCE WQE");
		return;
	}
	e = (struct ring_aeq_event){ .id = id,
		.code = (uint16_t)code,
		.source = (uint8_t)source,
		.wqe_index = (uint16_t)wqe,
		.time_ns = stepped.now };
	if (ring_aeq_push(&stepped.dp.mbox[worker].raise, &e) != 0)
		puts("full");
}

/* What a host could write into the memory that it shares. */
static void
cmd_srq(char *arg)
{
	char name[CONF_NAME_MAX], what[8];
	struct object_srq *srq = NULL;
	struct ring_recv_wqe *wqe;
	struct refusal r;
	unsigned int n;

	if (sscanf(arg, "%63s %7s %u", name, what, &n) == 3)
		srq = object_srq_find(control_objects(stepped.dp.control), name, &r);
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
cmd_port(char *arg)
{
	char how[8] = "";
	unsigned int port;
	int rc = -EINVAL;

	if (sscanf(arg, "%u %7s", &port, how) != 2 || port >= stepped.dp.conf->n_ports) {
		puts("error: port PORT up|down|gone");
		return;
	}
	if (strcmp(how, "up") == 0)
		rc = rte_eth_dev_set_link_up(stepped.dp.ports[port].id);
	else if (strcmp(how, "down") == 0)
		rc = rte_eth_dev_set_link_down(stepped.dp.ports[port].id);
	else if (strcmp(how, "gone") == 0 && rte_eth_dev_stop(stepped.dp.ports[port].id) == 0)
		rc = rte_eth_dev_close(stepped.dp.ports[port].id);
	if (rc != 0)
		puts("error: port");
}

static void
cmd_buffers(char *arg UNUSED)
{
	for (uint32_t i = 0; i < stepped.dp.conf->n_ports; i++)
		printf("%u\n", rte_mempool_in_use_count(stepped.dp.ports[i].pool));
}

static void
cmd_now(char *arg UNUSED)
{
	printf("%llu\n", (unsigned long long)stepped.now);
}

static const struct {
	const char *name;
	void (*run)(char *arg);
} commands[] = {
	{ "rx", cmd_rx },
	{ "starve", cmd_starve },
	{ "sate", cmd_sate },
	{ "run", cmd_run },
	{ "step", cmd_step },
	{ "link", cmd_link },
	{ "unlink", cmd_unlink },
	{ "rpc", cmd_rpc },
	{ "turn", cmd_turn },
	{ "aeq", cmd_aeq },
	{ "srq", cmd_srq },
	{ "port", cmd_port },
	{ "buffers", cmd_buffers },
	{ "now", cmd_now },
};

bool
stepped_command(char *line)
{
	char *arg = strchr(line, ' ');

	if (arg != NULL)
		*arg++ = '\0';
	else
		arg = line + strlen(line);
	if (strcmp(line, "quit") == 0)
		return false;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		if (strcmp(line, commands[i].name) == 0) {
			commands[i].run(arg);
			return true;
		}
	}
	puts("error: no such command");
	return true;
}
