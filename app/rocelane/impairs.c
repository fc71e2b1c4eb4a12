/* SPDX-License-Identifier: BSD-3-Clause */
/* A bad wire in front of a port: from the configuration, or from the first impair_set on. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dataplane.h"
#include "impair.h"
#include "log.h"
#include "record.h"

static struct impair *
impair_of(const struct dataplane_port *p)
{
	return atomic_load_explicit(&p->impair, memory_order_acquire);
}

static ns_t
clock_of(void *arg)
{
	const struct dataplane_port *p = arg;

	return p->clock();
}

/*
 * Control lcore, or main before the workers run: ethdev lets callbacks come while others poll.
 * Rules that say nothing of a bottleneck leave the port's own one as it is.
 */
static int
set(void *ctx, const struct impair_conf *rules)
{
	struct dataplane_port *p = ctx;
	struct impair *im = impair_of(p);
	struct impair_conf with = *rules;
	const struct impair_conf *conf = &with;
	const struct impair_port port = {
		.port_id = p->id,
		.pool = p->pool,
		.clock = clock_of,
		.clock_arg = p,
		.tap = p->record != NULL ? record_packet : NULL,
		.tap_arg = p,
	};
	int rc;

	if (with.bottleneck.rate == 0 && p->bottleneck.rate != 0) {
		with.bottleneck = p->bottleneck;
		with.given |= IMPAIR_HAS_BOTTLENECK;
	}
	/* One order of packets is what makes a run repeatable. */
	if (p->rx_queues > 1)
		return conf->n_rules == 0 && conf->bottleneck.rate == 0 ? 0 : -ENOTSUP;
	if (im != NULL)
		return impair_set(im, conf);
	rc = impair_attach(&port, conf, &im);
	if (rc == 0)
		atomic_store_explicit(&p->impair, im, memory_order_release);
	return rc;
}

static bool
is_on(void *ctx)
{
	return impair_of(ctx) != NULL;
}

static uint16_t
receive(void *ctx, struct rte_mbuf **m, uint16_t n, uint16_t max)
{
	struct impair *im = impair_of(ctx);

	return im != NULL ? impair_receive(im, m, n, max) : n;
}

static void
locals_pass(struct dataplane_port *p)
{
	p->local = (struct pipeline_impair){ .is_on = is_on, .receive = receive, .ctx = p };
}

static const struct impair_conf *
get(void *ctx, struct impair_counters *out)
{
	const struct impair *im = impair_of(ctx);

	memset(out, 0, sizeof(*out));
	if (im == NULL)
		return NULL;
	impair_read(im, out);
	return impair_get(im);
}

static uint32_t
read_log(void *ctx, uint64_t *from, struct impair_rule *out, uint32_t max)
{
	const struct impair *im = impair_of(ctx);
	struct impair_record *r;
	uint32_t n;

	if (im == NULL)
		return 0;
	r = malloc(max * sizeof(*r));
	if (r == NULL)
		return 0;
	n = impair_log(im, from, r, max);
	for (uint32_t i = 0; i < n; i++)
		out[i] = impair_record_rule(&r[i]);
	free(r);
	return n;
}

const struct impair_ops impairs_ops = { .set = set, .get = get, .log = read_log };

int
impairs_open(struct dataplane_port *p, const struct conf_port *cp)
{
	const uint64_t on = CONF_PORT_IMPAIR | CONF_PORT_BOTTLENECK;
	struct impair_conf conf = { .held_max = IMPAIR_HELD_DEFAULT,
		.log_size = IMPAIR_LOG_DEFAULT };
	int rc;

	locals_pass(p);
	if ((cp->given & on) == 0 && p->record == NULL)
		return 0;
	if (p->record != NULL && p->rx_queues > 1) {
		log_error("port %s: cannot be recorded: it has %u receive queues", cp->name,
			p->rx_queues);
		return -ENOTSUP;
	}
	if ((cp->given & CONF_PORT_IMPAIR) != 0)
		conf = cp->impair;
	if ((cp->given & CONF_PORT_BOTTLENECK) != 0)
		p->bottleneck = cp->bottleneck;
	rc = set(p, &conf);
	if (rc != 0)
		log_error("port %s: cannot be impaired: %s", cp->name, strerror(-rc));
	else if (cp->impair.n_rules != 0)
		log_warn("port %s: what it receives is impaired on purpose by %u rule%s", cp->name,
			cp->impair.n_rules, cp->impair.n_rules == 1 ? "" : "s");
	return rc;
}

void
impairs_close(struct dataplane_port *p)
{
	impair_detach(atomic_exchange_explicit(&p->impair, NULL, memory_order_acq_rel));
}

ns_t
impairs_next(const struct dataplane *dp, uint32_t worker)
{
	ns_t next = UINT64_MAX;

	for (uint32_t i = 0; i < dp->conf->n_ports; i++) {
		const struct dataplane_port *p = &dp->ports[i];
		const struct impair *im = p->rx_worker == worker ? impair_of(p) : NULL;
		const ns_t at = im != NULL ? impair_next(im) : UINT64_MAX;

		next = at < next ? at : next;
	}
	return next;
}
