/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_pair.h"

#include <stdlib.h>
#include <string.h>

#include "cross.h"
#include "errors.h"

#define NUMBER_MAX 999

bool
conf_pair_parse(const char *device, uint32_t *number, uint32_t *end)
{
	unsigned long n;
	char *rest;

	if (strncmp(device, CONF_PAIR, strlen(CONF_PAIR)) != 0)
		return false;
	device += strlen(CONF_PAIR);
	if (*device < '0' || *device > '9')
		return false;
	n = strtoul(device, &rest, 10);
	if (n > NUMBER_MAX || (rest[0] != 'a' && rest[0] != 'b') || rest[1] != '\0')
		return false;
	*number = (uint32_t)n;
	*end = (uint32_t)(rest[0] - 'a');
	return true;
}

int
conf_pair_far(const struct conf *c, uint32_t port)
{
	uint32_t number, end, n, e;

	if (!conf_pair_parse(c->ports[port].device, &number, &end))
		return -1;
	for (uint32_t i = 0; i < c->n_ports; i++)
		if (conf_pair_parse(c->ports[i].device, &n, &e) && n == number && e != end)
			return (int)i;
	return -1;
}

/* Of some port the device is not known, as it had a fault: it may be the other end. */
static bool
all_known(const struct conf *c)
{
	for (uint32_t i = 0; i < c->n_ports; i++)
		if (c->ports[i].device[0] == '\0')
			return false;
	return true;
}

static void
wire(const struct conf *c, uint32_t port, const bool *known, struct conf_errors *err)
{
	const struct conf_port *p = &c->ports[port];
	const int far = conf_pair_far(c, port);
	uint32_t number, end;

	if (!conf_pair_parse(p->device, &number, &end))
		return;
	if (far < 0 && all_known(c))
		conf_fault(err, "device",
			"the other end of %s, " CONF_PAIR "%u%c, is no port's device", p->device,
			number, end == 0 ? 'b' : 'a');
	else if (far >= 0 && (uint32_t)far < port && known[far] && known[port] &&
		 c->ports[far].rx_queues != p->rx_queues)
		conf_fault(err, "rx_queues",
			"%u, but %s, the other end of the wire, has %u: give both as many",
			p->rx_queues, c->ports[far].name, c->ports[far].rx_queues);
}

void
conf_cross_pairs(const struct conf *c, struct conf_errors *err)
{
	bool known[CONF_MAX_PORTS]; /* the number of queues had no fault */

	for (uint32_t i = 0; i < c->n_ports; i++) {
		const uint32_t mark = conf_enter(err, "ports");

		conf_enter_index(err, i);
		known[i] = !conf_errors_within(err, "rx_queues");
		wire(c, i, known, err);
		conf_leave(err, mark);
	}
}
