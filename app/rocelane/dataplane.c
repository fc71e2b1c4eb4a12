/* SPDX-License-Identifier: BSD-3-Clause */
/* From a config to workers and a control that know each other. */
#define ALLOW_EXPERIMENTAL_API /* rte_vect_*_max_simd_bitwidth() */
#include "dataplane.h"

#include <errno.h>
#include <string.h>

#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_vect.h>

#include "conf_mcast.h"
#include "conf_qps.h"
#include "args.h"
#include "cpu.h"
#include "qp_ah.h"
#include "qp_mcast.h"
#include "crc_isal.h"
#include "crc_zlib.h"
#include "log.h"
#include "mem_window.h"
#include "qp_cq.h"

_Static_assert(CONF_MAX_PORTS <= PIPELINE_MAX_PORTS && CONF_MAX_PORTS <= ENV_MAX_PORTS &&
		       CONF_MAX_WORKERS <= PIPELINE_MAX_WORKERS &&
		       CONF_MAX_WORKERS <= ENV_MAX_WORKERS && CONF_PRIO_PORTS <= PRIO_PORTS_MAX &&
		       CONF_MCAST_GROUPS <= QP_MCAST_GROUPS && CONF_MCAST_QPS <= QP_MCAST_QPS &&
		       CONF_SRQ_PLACES <= QP_SRQ_TABLE,
	"every configuration fits");

#define MBOX_ENTRIES    4096
#define HANDOFF_ENTRIES 4096
#define TRACE_ENTRIES   8192
#define MEM_REGIONS_MIN 32768u /* half as many mappings as Linux allows a process by default */

const struct crc_ops *
dataplane_crc(void)
{
#ifdef ROCELANE_CRC_ZLIB
	return crc_zlib();
#else
	return crc_isal();
#endif
}

static int
tables_create(struct dataplane *dp)
{
	const struct conf *conf = dp->conf;
	uint32_t regions = MEM_REGIONS_MIN + conf->n_mrs;

	for (uint32_t i = 0; i < conf->n_qps; i++) { /* those of feeds */
		if ((conf->qps[i].given & CONF_QP_RECV_FEED) != 0)
			regions += conf->qps[i].count;
		regions++;
	}
	dp->qps = qp_table_create(conf_qp_places(conf), SOCKET_ID_ANY);
	dp->mem = mem_table_create(regions);
	dp->ahs = qp_ah_table_create();
	dp->mcasts = qp_mcast_table_create();
	dp->srqs = rte_zmalloc("srq_table", sizeof(*dp->srqs), CACHE_LINE);
	if (dp->qps == NULL || dp->mem == NULL || dp->ahs == NULL || dp->srqs == NULL ||
		dp->mcasts == NULL || mem_table_readers(dp->mem, conf->lcores.n_workers) != 0) {
		log_error(
			"no memory for the tables of QPs, keys, address handles, groups and SRQs");
		return -ENOMEM;
	}
	return 0;
}

static int
worker_make(struct dataplane *dp, uint16_t i)
{
	const struct conf *conf = dp->conf;
	int socket = (int)rte_lcore_to_socket_id(conf->lcores.workers[i]);
	struct worker_conf wc = {
		.index = i,
		.ports_n = (uint16_t)conf->n_ports,
		.workers_n = (uint16_t)conf->lcores.n_workers,
		.socket = socket,
		.crc = dp->crc,
		.qps = dp->qps,
		.mem = dp->mem,
		.ahs = dp->ahs,
		.srqs = dp->srqs,
		.mcasts = dp->mcasts,
		.mbox = &dp->mbox[i],
		.errbuf_entries = conf->error_buffer.present ? conf->error_buffer.entries : 0,
		.trace_entries = TRACE_ENTRIES,
		.clock = dp->clock,
		.by_arrival = conf->knobs.rx_turns == KNOB_rx_turns_arrival,
		.start_paused = true,
	};

	for (uint32_t k = 0; k < conf->n_ports; k++) {
		const struct dataplane_port *p = &dp->ports[k];
		const uint16_t turn = (uint16_t)((i + wc.workers_n - p->rx_worker) % wc.workers_n);

		wc.ports[k] = (struct pipeline_port){
			.id = p->id,
			.tx_queue = (uint16_t)(i % p->tx_queues),
			.rx_queue = turn,
			.rx_worker = p->rx_worker,
			.polls_rx = turn < p->rx_queues,
			.max_frame = (uint16_t)RTE_MIN(p->max_frame, UINT16_MAX),
			.check_udp = conf->knobs.rx_udp_checksum == KNOB_rx_udp_checksum_check,
			.addr = p->addr,
			.pool = p->pool,
			.impair = &p->local,
			.prio = p->has_prio ? &dp->ports[k].prio : NULL,
			.mbps = &dp->ports[k].mbps,
		};
	}
	if (conf->lcores.n_workers > 1) {
		wc.handoff_in = dp->handoff[i];
		memcpy(wc.handoff, dp->handoff, sizeof(wc.handoff));
	}
	dp->workers[i] = worker_create(&wc);
	return dp->workers[i] != NULL ? 0 : -ENOMEM;
}

static int
workers_create(struct dataplane *dp)
{
	uint32_t n = dp->conf->lcores.n_workers;
	int rc = 0;

	for (uint32_t i = 0; rc == 0 && i < n; i++) {
		char name[32];

		rc = mbox_create(&dp->mbox[i], i, MBOX_ENTRIES, SOCKET_ID_ANY);
		if (rc != 0)
			break;
		dp->mbox_made[i] = true;
		if (n == 1)
			continue;
		snprintf(name, sizeof(name), "handoff%u", i);
		dp->handoff[i] =
			rte_ring_create(name, HANDOFF_ENTRIES, SOCKET_ID_ANY, RING_F_SC_DEQ);
		if (dp->handoff[i] == NULL)
			rc = -ENOMEM;
	}
	for (uint32_t i = 0; rc == 0 && i < n; i++)
		rc = worker_make(dp, (uint16_t)i);
	if (rc != 0)
		log_error("workers cannot be made: %s", strerror(-rc));
	return rc;
}

/* A worker without a transmit queue of its own on a port cannot serve QPs there. */
static int
check_qp_workers(const struct dataplane *dp)
{
	const struct conf *conf = dp->conf;

	for (uint32_t i = 0; i < conf->n_qps; i++) {
		const struct conf_qp *q = &conf->qps[i];

		for (uint32_t k = 0; k < conf->n_ports; k++) {
			if (strcmp(conf->ports[k].name, q->port) != 0)
				continue;
			if ((q->given & CONF_QP_WORKER) == 0 ||
				env_can_send(
					dp->ports[k].rx_worker, dp->ports[k].tx_queues, q->worker))
				continue;
			log_error(
				"/qps/%u: worker %u cannot send on port %s: its driver has %u transmit queue; use worker %u",
				i, q->worker, q->port, dp->ports[k].tx_queues,
				dp->ports[k].rx_worker);
			return -EINVAL;
		}
	}
	return 0;
}

static void
env_fill(struct dataplane *dp, const struct dataplane_hooks *hooks)
{
	struct env_wiring *e = &dp->env;
	const struct conf *conf = dp->conf;

	e->conf = conf;
	e->crc = dp->crc;
	e->qps = dp->qps;
	e->srqs = dp->srqs;
	e->mcasts = dp->mcasts;
	e->port_groups = ports_groups;
	e->port_groups_ctx = dp;
	e->mem = dp->mem;
	e->ahs = dp->ahs;
	e->workers_n = conf->lcores.n_workers;
	e->ports_n = conf->n_ports;
	e->numa_node = conf->n_ports > 0 ? rte_eth_dev_socket_id(dp->ports[0].id) : -1;
	e->pump = hooks->pump;
	e->pump_ctx = hooks->pump_ctx;
	e->rest = hooks->rest;
	e->clock = hooks->clock;
	e->stop = &dp->stop;
	e->no_socket = hooks->no_socket;
	for (uint32_t i = 0; i < e->workers_n; i++) {
		struct env_worker *w = &e->workers[i];

		w->lcore = conf->lcores.workers[i];
		w->mbox = &dp->mbox[i];
		w->stats = worker_stats(dp->workers[i]);
		w->load = worker_load(dp->workers[i]);
		w->latency = worker_latency(dp->workers[i]);
		w->trace = worker_trace(dp->workers[i]);
		w->errbuf = worker_errbuf(dp->workers[i]);
		for (uint32_t k = 0; k < conf->n_ports; k++) {
			w->port_stats[k] = worker_port_stats(dp->workers[i], (uint16_t)k);
			w->prio_stats[k] = worker_prio_stats(dp->workers[i], (uint16_t)k);
		}
	}
	for (uint32_t k = 0; k < conf->n_ports; k++) {
		e->ports[k] = (struct env_port){
			.id = dp->ports[k].id,
			.worker = dp->ports[k].rx_worker,
			.tx_queues = dp->ports[k].tx_queues,
			.addr = &dp->ports[k].addr,
			.pool = dp->ports[k].pool,
			.max_frame = dp->ports[k].max_frame,
			.prio = dp->ports[k].has_prio ? &dp->ports[k].prio : NULL,
			.mbps = &dp->ports[k].mbps,
			.impair = &impairs_ops,
			.impair_ctx = &dp->ports[k],
		};
	}
}

/* EAL's --force-max-simd-bitwidth is for us, too. A width that was forced cannot be set again; that
 * which EAL has otherwise is for drivers alone. */
static void
obey_simd_limit(void)
{
	uint16_t bits = rte_vect_get_max_simd_bitwidth();

	if (rte_vect_set_max_simd_bitwidth(bits) != -EPERM)
		return;
	cpu_limit(bits);
	log_info("vector registers: no more than %u bits", bits);
}

int
dataplane_create(struct dataplane *dp, const struct conf *conf, const struct dataplane_hooks *hooks)
{
	int rc;

	dp->conf = conf;
	dp->eal = hooks->eal != NULL ? hooks->eal->own : conf->eal;
	dp->eal_n = hooks->eal != NULL ? (uint32_t)hooks->eal->argc : conf->n_eal;
	obey_simd_limit();
	dp->crc = dataplane_crc();
	dp->clock = hooks->clock;
	for (uint32_t i = 0; i < conf->n_ports; i++)
		dp->ports[i].record = hooks->record;
	rc = ports_open(dp);
	if (rc == 0)
		rc = check_qp_workers(dp);
	if (rc == 0)
		rc = tables_create(dp);
	if (rc == 0)
		rc = workers_create(dp);
	if (rc != 0) {
		dataplane_destroy(dp);
		return rc;
	}
	env_fill(dp, hooks);
	return 0;
}

int
dataplane_start(struct dataplane *dp)
{
	int rc;

	mem_stop_by(&dp->stop);
	rc = control_create(&dp->env, &dp->control);
	for (uint32_t i = 0; rc == 0 && i < dp->conf->lcores.n_workers; i++)
		worker_receive(dp->workers[i]);
	return rc;
}

void
dataplane_stop_control(struct dataplane *dp)
{
	if (dp->control != NULL)
		control_destroy(dp->control);
	dp->control = NULL;
}

void
dataplane_destroy(struct dataplane *dp)
{
	for (uint32_t i = 0; i < dp->conf->lcores.n_workers; i++) {
		if (dp->workers[i] != NULL)
			worker_destroy(dp->workers[i]);
		if (dp->mbox_made[i])
			mbox_destroy(&dp->mbox[i]);
		rte_ring_free(dp->handoff[i]);
	}
	qp_ah_table_destroy(dp->ahs);
	qp_mcast_table_destroy(dp->mcasts);
	rte_free(dp->srqs);
	if (dp->mem != NULL)
		mem_table_destroy(dp->mem);
	if (dp->qps != NULL)
		qp_table_destroy(dp->qps);
	ports_close(dp);
}
