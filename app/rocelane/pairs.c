/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices net_pair0a and net_pair0b, and so on: two in-memory ports, crossed, made on demand. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ethdev.h>

#include "dataplane.h"
#include "log.h"
#include "net_pair.h"

#define PREFIX     "net_pair"
#define RING_SIZE  4096 /* frames on the wire, each way */
#define NUMBER_MAX 999

/* "net_pair12b" -> 12 and 1. @return false: another kind of device. */
static bool
parse(const char *device, unsigned long *number, int *end)
{
	char *rest;

	if (strncmp(device, PREFIX, strlen(PREFIX)) != 0)
		return false;
	device += strlen(PREFIX);
	if (*device < '0' || *device > '9')
		return false;
	*number = strtoul(device, &rest, 10);
	if (*number > NUMBER_MAX || (rest[0] != 'a' && rest[0] != 'b') || rest[1] != '\0')
		return false;
	*end = rest[0] - 'a';
	return true;
}

/* The configured port at the other end, or -1. */
static int
far_end(const struct conf *conf, unsigned long number, int end)
{
	for (uint32_t i = 0; i < conf->n_ports; i++) {
		unsigned long n;
		int e;

		if (parse(conf->ports[i].device, &n, &e) && n == number && e != end)
			return (int)i;
	}
	return -1;
}

int
pair_open(struct dataplane *dp, uint32_t i)
{
	const char *device = dp->conf->ports[i].device;
	struct dataplane_port *p = &dp->ports[i];
	unsigned long number;
	uint16_t ids[2], queues;
	char name[16];
	int end, far, rc;

	if (p->paired)
		return 0;
	if (!parse(device, &number, &end))
		return -ENODEV;
	far = far_end(dp->conf, number, end);
	if (far < 0) {
		log_error("port %s: the other end of %s, " PREFIX "%lu%c, is no port",
			dp->conf->ports[i].name, device, number, end == 0 ? 'b' : 'a');
		return -ENODEV;
	}
	queues = dp->conf->ports[i].rx_queues;
	if (dp->conf->ports[far].rx_queues != queues) {
		log_error(
			"port %s: %u rx_queues, but %s, the other end of its wire, has %u: give both as many",
			dp->conf->ports[i].name, queues, dp->conf->ports[far].name,
			dp->conf->ports[far].rx_queues);
		return -EINVAL;
	}
	snprintf(name, sizeof(name), PREFIX "%lu", number);
	rc = net_pair_create(name, queues, RING_SIZE, &ids[0], &ids[1]);
	if (rc != 0) {
		log_error("%s: cannot be made: %s", name, strerror(-rc));
		return rc;
	}
	p->id = ids[end];
	p->paired = true;
	dp->ports[far].id = ids[1 - end];
	dp->ports[far].paired = true;
	return 0;
}
