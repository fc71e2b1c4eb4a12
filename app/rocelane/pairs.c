/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices net_pair0a and net_pair0b, and so on: two in-memory ports, crossed, made on demand. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <rte_ethdev.h>

#include "conf_pair.h"
#include "dataplane.h"
#include "log.h"
#include "net_pair.h"

#define RING_SIZE 4096 /* frames on the wire, each way */

int
pair_open(struct dataplane *dp, uint32_t i)
{
	const struct conf_port *conf = &dp->conf->ports[i];
	const int far = conf_pair_far(dp->conf, i);
	struct dataplane_port *p = &dp->ports[i];
	uint32_t number, end;
	uint16_t ids[2];
	char name[16];
	int rc;

	if (p->paired)
		return 0;
	if (far < 0 || !conf_pair_parse(conf->device, &number, &end))
		return -ENODEV;
	snprintf(name, sizeof(name), CONF_PAIR "%u", number);
	rc = net_pair_create(name, conf->rx_queues, RING_SIZE, &ids[0], &ids[1]);
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
