/* SPDX-License-Identifier: BSD-3-Clause */
/* The control half: attach, rules, reading, detach. */
#include "impair_priv.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>

/* ---- rules ----------------------------------------------------------------------------------- */

static void
rules_free(struct rules *r)
{
	while (r != NULL) {
		struct rules *next = r->next;

		impair_model_destroy(r->model);
		free(r);
		r = next;
	}
}

static int
rules_make(const struct impair_conf *conf, struct rules **out)
{
	struct rules *r = calloc(1, sizeof(*r));
	int rc;

	if (r == NULL)
		return -ENOMEM;
	rc = impair_model_create(conf, &r->model);
	if (rc != 0) {
		free(r);
		return rc;
	}
	r->bottleneck = conf->bottleneck;
	r->bottleneck.seed = conf->seed;
	r->held_max = conf->held_max != 0 ? conf->held_max : IMPAIR_HELD_DEFAULT;
	*out = r;
	return 0;
}

/* A copy that owns its array of rules. */
static int
conf_copy(struct impair_conf *to, const struct impair_conf *from)
{
	size_t bytes = from->n_rules * sizeof(*from->rules);

	*to = *from;
	to->rules = NULL;
	if (bytes == 0)
		return 0;
	to->rules = malloc(bytes);
	if (to->rules == NULL)
		return -ENOMEM;
	memcpy(to->rules, from->rules, bytes);
	return 0;
}

/* ---- attach and detach ----------------------------------------------------------------------- */

int
impair_attach(const struct impair_port *port, const struct impair_conf *conf, struct impair **out)
{
	struct impair *im;
	struct rules *rules = NULL;
	int rc;

	if (port->pool == NULL || port->clock == NULL || !rte_eth_dev_is_valid_port(port->port_id))
		return -EINVAL;
	rc = impair_conf_check(conf, NULL, 0);
	if (rc != 0)
		return rc;
	im = calloc(1, sizeof(*im));
	if (im == NULL)
		return -ENOMEM;
	im->port = *port;
	rc = impair_hold_init(
		&im->hold, IMPAIR_HELD_MAX); /* pages that are not used take no memory */
	if (rc != 0)
		goto no_hold;
	rc = impair_queue_init(&im->queue, IMPAIR_HELD_MAX);
	if (rc != 0)
		goto no_queue;
	rc = conf_copy(&im->conf, conf);
	if (rc != 0)
		goto no_conf;
	rc = rules_make(conf, &rules);
	if (rc != 0)
		goto no_rules;
	atomic_store_explicit(&im->current, rules, memory_order_relaxed);
	impair_rules_apply(im, rules);
	im->callback = rte_eth_add_rx_callback(port->port_id, port->queue, impair_on_receive, im);
	if (im->callback == NULL) {
		rc = rte_errno != 0 ? -rte_errno : -EINVAL;
		goto no_callback;
	}
	*out = im;
	return 0;

no_callback:
	rules_free(rules);
no_rules:
	free(im->conf.rules);
no_conf:
	impair_queue_fini(&im->queue);
no_queue:
	impair_hold_fini(&im->hold);
no_hold:
	free(im);
	return rc;
}

void
impair_detach(struct impair *im)
{
	struct rte_mbuf *m;

	if (im == NULL)
		return;
	/* DPDK leaves a removed callback allocated, as somebody might be in it: nobody is. */
	if (rte_eth_remove_rx_callback(im->port.port_id, im->port.queue, im->callback) == 0)
		rte_free((void *)(uintptr_t)im->callback);
	while ((m = impair_hold_take(&im->hold)) != NULL)
		rte_pktmbuf_free(m);
	while ((m = impair_queue_take(&im->queue)) != NULL)
		rte_pktmbuf_free(m);
	impair_hold_fini(&im->hold);
	impair_queue_fini(&im->queue);
	rules_free(atomic_load_explicit(&im->current, memory_order_acquire));
	rules_free(atomic_load_explicit(&im->pending, memory_order_acquire));
	rules_free(atomic_load_explicit(&im->retired, memory_order_acquire));
	free(im->conf.rules);
	free(im);
}

int
impair_set(struct impair *im, const struct impair_conf *conf)
{
	struct impair_conf copy;
	struct rules *rules;
	int rc = rules_make(conf, &rules);

	if (rc != 0)
		return rc;
	rc = conf_copy(&copy, conf);
	if (rc != 0) {
		rules_free(rules);
		return rc;
	}
	free(im->conf.rules);
	im->conf = copy;
	/* What was pending has never been in use, what is retired is not any more. */
	rules_free(atomic_exchange_explicit(&im->pending, rules, memory_order_acq_rel));
	rules_free(atomic_exchange_explicit(&im->retired, NULL, memory_order_acquire));
	return 0;
}

/* ---- reading --------------------------------------------------------------------------------- */

const struct impair_conf *
impair_get(const struct impair *im)
{
	return &im->conf;
}

void
impair_read(const struct impair *im, struct impair_counters *out)
{
#define COUNTER(name, help) \
	out->name = atomic_load_explicit(&im->counters[C_##name], memory_order_relaxed);
	IMPAIR_COUNTERS(COUNTER)
#undef COUNTER
}

/* Control alone frees models, so that this one stays while control reads it. */
static const struct impair_log *
log_now(const struct impair *im)
{
	return impair_model_log(atomic_load_explicit(&im->current, memory_order_acquire)->model);
}

uint32_t
impair_log(const struct impair *im, uint64_t *from, struct impair_record *out, uint32_t max)
{
	return impair_log_read(log_now(im), from, out, max);
}

int
impair_log_script(const struct impair *im, char *buf, size_t room)
{
	return impair_log_print(log_now(im), buf, room);
}
