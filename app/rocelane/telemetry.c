/* SPDX-License-Identifier: BSD-3-Clause */
#include "telemetry.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <rte_telemetry.h>
#include <rte_version.h>

#include "dataplane.h"
#include "log.h"

static const struct dataplane *dataplane;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* telemetry's thread against the end */

typedef int (*answer)(const struct dataplane *dp, const char *params, struct rte_tel_data *d);

/* Index of a worker: "0"; without parameters -1. */
static int
worker_of(const struct dataplane *dp, const char *params, long *worker)
{
	char *end;

	*worker = -1;
	if (params == NULL || params[0] == '\0')
		return 0;
	errno = 0;
	*worker = strtol(params, &end, 10);
	if (errno != 0 || *end != '\0' || *worker < 0 || *worker >= dp->conf->lcores.n_workers)
		return -EINVAL;
	return 0;
}

static int
put_block(struct rte_tel_data *d, const struct stats_block *b)
{
	int rc = rte_tel_data_start_dict(d);

	for (unsigned int i = 0; rc == 0 && i < STAT_MAX; i++)
		rc = rte_tel_data_add_dict_u64(d, stats_info[i].name, b->c[i]);
	return rc;
}

static int
info(const struct dataplane *dp, const char *params UNUSED, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_dict(d);

	if (rc == 0)
		rc = rte_tel_data_add_dict_string(d, "name", "rocelane");
	if (rc == 0)
		rc = rte_tel_data_add_dict_string(d, "version", ROCELANE_VERSION);
	if (rc == 0)
		rc = rte_tel_data_add_dict_int(d, "workers", (int)dp->conf->lcores.n_workers);
	if (rc == 0)
		rc = rte_tel_data_add_dict_int(d, "ports", (int)dp->conf->n_ports);
	return rc;
}

static int
worker_list(const struct dataplane *dp, const char *params UNUSED, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_INT_VAL);

	for (uint32_t i = 0; rc == 0 && i < dp->conf->lcores.n_workers; i++)
		rc = rte_tel_data_add_array_int(d, (int)i);
	return rc;
}

static int
port_list(const struct dataplane *dp, const char *params UNUSED, struct rte_tel_data *d)
{
	int rc = rte_tel_data_start_array(d, RTE_TEL_STRING_VAL);

	for (uint32_t i = 0; rc == 0 && i < dp->conf->n_ports; i++)
		rc = rte_tel_data_add_array_string(d, dp->conf->ports[i].name);
	return rc;
}

/* All workers together, or the one that is named. */
static int
stats(const struct dataplane *dp, const char *params, struct rte_tel_data *d)
{
	struct stats_block sum = { 0 };
	long worker;
	int rc = worker_of(dp, params, &worker);

	for (uint32_t i = 0; rc == 0 && i < dp->conf->lcores.n_workers; i++) {
		if (worker < 0 || worker == (long)i)
			stats_sum(&sum, worker_stats(dp->workers[i]));
	}
	return rc != 0 ? rc : put_block(d, &sum);
}

static int
port_stats(const struct dataplane *dp, const char *params, struct rte_tel_data *d)
{
	struct stats_block sum = { 0 };

	for (uint32_t p = 0; params != NULL && p < dp->conf->n_ports; p++) {
		if (strcmp(dp->conf->ports[p].name, params) != 0)
			continue;
		for (uint32_t i = 0; i < dp->conf->lcores.n_workers; i++) {
			const struct stats_block *b =
				worker_port_stats(dp->workers[i], (uint16_t)p);

			if (b != NULL)
				stats_sum(&sum, b);
		}
		return put_block(d, &sum);
	}
	return -EINVAL;
}

static int
load(const struct dataplane *dp, const char *params, struct rte_tel_data *d)
{
	const struct stats_load *l;
	long worker;
	int rc = worker_of(dp, params, &worker);

	if (rc != 0 || worker < 0)
		return -EINVAL;
	l = worker_load(dp->workers[worker]);
	rc = rte_tel_data_start_dict(d);
	if (rc == 0)
		rc = rte_tel_data_add_dict_int(d, "lcore", (int)dp->conf->lcores.workers[worker]);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(d, "turns", l->turns);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(d, "busy_turns", l->busy_turns);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(d, "busy_ns", l->busy_ns);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(d, "total_ns", l->total_ns);
	if (rc == 0)
		rc = rte_tel_data_add_dict_u64(d, "stall_ns", l->stall_ns);
	return rc;
}

static const struct {
	const char *path;
	answer answer;
	const char *help;
} commands[] = {
	{ "/rocelane/info", info,
		"Name, version, numbers of workers and ports. Takes no parameters" },
	{ "/rocelane/worker/list", worker_list, "Workers. Takes no parameters" },
	{ "/rocelane/worker/stats", stats, "Counters of a worker, or of all. Parameters: int worker" },
	{ "/rocelane/worker/load", load,
		"Turns and busy time of a worker. Parameters: int worker" },
	{ "/rocelane/port/list", port_list, "Ports by name. Takes no parameters" },
	{ "/rocelane/port/stats", port_stats, "Counters of a port. Parameters: string name" },
	{ "/rocelane/stats", stats, "Counters of all workers. Takes no parameters" },
};

static int
command(const char *path, const char *params, struct rte_tel_data *d)
{
	int rc = -EINVAL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; dataplane != NULL && i < ARRAY_LEN(commands); i++) {
		if (strcmp(commands[i].path, path) == 0)
			rc = commands[i].answer(dataplane, params, d);
	}
	pthread_mutex_unlock(&lock);
	return rc;
}

void
telemetry_register(const struct dataplane *dp)
{
	dataplane = dp;
	for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
		int rc = rte_telemetry_register_cmd(commands[i].path, command, commands[i].help);

		if (rc != 0)
			log_warn("telemetry: %s is not registered: %s", commands[i].path,
				strerror(-rc));
	}
}

void
telemetry_stop(void)
{
	pthread_mutex_lock(&lock);
	dataplane = NULL;
	pthread_mutex_unlock(&lock);
}
