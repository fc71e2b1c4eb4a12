/* SPDX-License-Identifier: BSD-3-Clause */
#include "conf_mcast.h"
#include "cross.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A name or number with its place in the file, sorted by both. */
struct entry {
	const char *name;
	uint64_t number;
	uint32_t index;
};

struct entries {
	const char *array; /* key of the array in the file */
	const char *key;   /* key of the name in an element; NULL: the element itself */
	struct entry *v;
	uint32_t n;
	bool partial; /* some name had a fault: what is not found may be that one */
};

static int
by_name(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = strcmp(x->name, y->name);

	return order != 0 ? order : x->index < y->index ? -1 : x->index > y->index;
}

static int
by_number(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return x->index < y->index ? -1 : x->index > y->index;
}

/* Did the whole array have a fault, so that nothing of it was read? */
static bool
array_failed(const char *array, const struct conf_errors *err)
{
	for (uint32_t i = 0; i < err->n; i++) {
		if (err->v[i].pointer[0] == '/' && strcmp(err->v[i].pointer + 1, array) == 0)
			return true;
	}
	return false;
}

/* Sorted names of an array of structs; blank ones are left out. */
static int
names_make(struct entries *e, const void *base, uint32_t n, size_t stride, size_t offset)
{
	e->n = 0;
	e->v = malloc((n == 0 ? 1 : n) * sizeof(*e->v));
	if (e->v == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < n; i++) {
		const char *name = (const char *)base + i * stride + offset;

		if (name[0] != '\0')
			e->v[e->n++] = (struct entry){ .name = name, .index = i };
	}
	e->partial = e->n != n;
	qsort(e->v, e->n, sizeof(*e->v), by_name);
	return 0;
}

static void
names_unique(const struct entries *e, struct conf_errors *err)
{
	for (uint32_t i = 1; i < e->n; i++) {
		uint32_t mark = err->at_len;
		const struct entry *first = &e->v[i - 1];

		if (strcmp(first->name, e->v[i].name) != 0)
			continue;
		conf_enter(err, e->array);
		conf_enter_index(err, e->v[i].index);
		conf_fault(err, e->key, "\"%s\" is taken by /%s/%u: each must be different",
			e->v[i].name, e->array, first->index);
		conf_leave(err, mark);
	}
}

/* @return the first entry of this name, or NULL. */
static const struct entry *
entry_named(const struct entries *e, const char *name)
{
	const struct entry want = { .name = name, .index = 0 };
	uint32_t lo = 0, hi = e->n;

	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;

		if (by_name(&e->v[mid], &want) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo < e->n && strcmp(e->v[lo].name, name) == 0 ? &e->v[lo] : NULL;
}

static void
refer(const struct entries *e, const char *key, const char *name, struct conf_errors *err)
{
	if (name[0] == '\0' || e->partial || entry_named(e, name) != NULL)
		return;
	if (e->n == 0)
		conf_fault(err, key, "\"%s\" does not exist: /%s has no entry", name, e->array);
	else
		conf_fault(err, key, "\"%s\" does not exist: must be a name of /%s, as \"%s\"",
			name, e->array, e->v[0].name);
}

struct tables {
	struct entries port, device, pd, mr, cq, xrcd, srq, mw;
	uint32_t workers; /* 0: their list had a fault */
};

static void
refer_worker(const struct tables *t, const struct conf_qp *qp, struct conf_errors *err)
{
	if ((qp->given & CONF_QP_WORKER) != 0 && t->workers != 0 && qp->worker >= t->workers)
		conf_fault(err, "worker",
			"%u does not exist: must be a number from 0 to %u, "
			"an index into /lcores/workers",
			qp->worker, t->workers - 1);
}

/* An SRQ of type XRC is for whom a request names it by its number (XRC-04). */
static void
refer_srq(const struct conf *c, const struct tables *t, const struct conf_qp *qp,
	struct conf_errors *err)
{
	const struct entry *e = entry_named(&t->srq, qp->srq);

	refer(&t->srq, "srq", qp->srq, err);
	if (e != NULL && c->srqs[e->index].srq_type == CONF_SRQ_XRC)
		conf_fault(err, "srq",
			"\"%s\" is of type XRC: requests of XRC name it, and no QP has it",
			qp->srq);
}

static void
refer_all(const struct conf *c, const struct tables *t, struct conf_errors *err)
{
	for (uint32_t i = 0; i < c->n_mrs; i++) {
		uint32_t mark = conf_enter(err, "mrs");

		conf_enter_index(err, i);
		refer(&t->pd, "pd", c->mrs[i].pd, err);
		conf_leave(err, mark);
	}
	for (uint32_t i = 0; i < c->n_mws; i++) {
		uint32_t mark = conf_enter(err, "mws");

		conf_enter_index(err, i);
		refer(&t->pd, "pd", c->mws[i].pd, err);
		conf_leave(err, mark);
	}
	for (uint32_t i = 0; i < c->n_srqs; i++) {
		uint32_t mark = conf_enter(err, "srqs");

		conf_enter_index(err, i);
		refer(&t->pd, "pd", c->srqs[i].pd, err);
		refer(&t->xrcd, "xrcd", c->srqs[i].xrcd, err);
		refer(&t->cq, "cq", c->srqs[i].cq, err);
		conf_leave(err, mark);
	}
	for (uint32_t i = 0; i < c->n_qps; i++) {
		const struct conf_qp *qp = &c->qps[i];
		uint32_t mark = conf_enter(err, "qps");

		conf_enter_index(err, i);
		refer(&t->port, "port", qp->port, err);
		refer(&t->port, "alt_port", qp->alt_port, err);
		refer(&t->pd, "pd", qp->pd, err);
		refer(&t->cq, "send_cq", qp->send_cq, err);
		refer(&t->cq, "recv_cq", qp->recv_cq, err);
		refer_srq(c, t, qp, err);
		refer(&t->xrcd, "xrcd", qp->xrcd, err);
		refer_worker(t, qp, err);
		conf_leave(err, mark);
	}
}

/* Of what each connection gets. */
static void
refer_listeners(const struct conf *c, const struct tables *t, struct conf_errors *err)
{
	for (uint32_t i = 0; i < c->cm.n_listen; i++) {
		const struct conf_cm_listen *l = &c->cm.listen[i];
		const uint32_t mark = conf_enter(err, "cm");

		conf_enter(err, "listen");
		conf_enter_index(err, i);
		refer(&t->port, "port", l->port, err);
		conf_enter(err, "qp");
		refer(&t->pd, "pd", l->qp.pd, err);
		refer(&t->cq, "send_cq", l->qp.send_cq, err);
		refer(&t->cq, "recv_cq", l->qp.recv_cq, err);
		refer_srq(c, t, &l->qp, err);
		refer(&t->xrcd, "xrcd", l->qp.xrcd, err);
		refer_worker(t, &l->qp, err);
		conf_leave(err, mark);
	}
}

/* Two regions may not have the same key, nor two SRQs the same number. @param v is sorted. */
static void
numbers_unique(struct entry *v, uint32_t n, const char *array, const char *key, const char *what,
	struct conf_errors *err)
{
	qsort(v, n, sizeof(*v), by_number);
	for (uint32_t i = 1; i < n; i++) {
		uint32_t mark = err->at_len;

		if (v[i].number != v[i - 1].number)
			continue;
		conf_enter(err, array);
		conf_enter_index(err, v[i].index);
		conf_fault(err, key, "0x%" PRIx64 " is taken by /%s/%u: %s", v[i].number, array,
			v[i - 1].index, what);
		conf_leave(err, mark);
	}
}

static int
keys_unique(const struct conf *c, struct conf_errors *err)
{
	struct entry *v = malloc((c->n_mrs + c->n_srqs + 1) * sizeof(*v));
	uint32_t n = 0;

	if (v == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < c->n_mrs; i++) {
		if ((c->mrs[i].given & CONF_MR_RKEY) != 0)
			v[n++] = (struct entry){ .number = c->mrs[i].rkey, .index = i };
	}
	numbers_unique(v, n, "mrs", "rkey", "each must be different", err);
	n = 0;
	for (uint32_t i = 0; i < c->n_srqs; i++) {
		if ((c->srqs[i].given & CONF_SRQ_NUM) != 0)
			v[n++] = (struct entry){ .number = c->srqs[i].srq_num % CONF_SRQ_PLACES,
				.index = i };
	}
	numbers_unique(v, n, "srqs", "srq_num", "each must be different in its low 12 bits", err);
	free(v);
	return 0;
}

/* A queue is polled by one worker, and a worker polls one queue of a port. */
static void
queues_polled(const struct conf *c, uint32_t workers, struct conf_errors *err)
{
	for (uint32_t i = 0; i < c->n_ports; i++) {
		const struct conf_port *p = &c->ports[i];
		uint32_t mark = conf_enter(err, "ports");

		conf_enter_index(err, i);
		if (workers != 0 && p->rx_queues > workers)
			conf_fault(err, "rx_queues",
				"%u, but /lcores has %u worker%s: each queue needs one of its own",
				p->rx_queues, workers, workers == 1 ? "" : "s");
		if (p->rx_queues > 1 && (p->given & CONF_PORT_IMPAIR) != 0 &&
			(p->impair.n_rules != 0 || p->impair.bottleneck.rate != 0))
			conf_fault(err, "impair",
				"needs one order of packets to be repeatable: leave rx_queues at 1");
		if (p->rx_queues > 1 && (p->given & CONF_PORT_BOTTLENECK) != 0)
			conf_fault(err, "bottleneck",
				"is one queue for all packets: leave rx_queues at 1");
		conf_leave(err, mark);
	}
}

static void
addresses_unique(const struct conf *c, struct conf_errors *err)
{
	static const uint8_t none[16]; /* of one that had a fault; 64:ff9b::1 begins with 0, too */

	for (uint32_t i = 1; i < c->n_ports; i++) {
		const struct conf_port *p = &c->ports[i];
		uint32_t mark = conf_enter(err, "ports");

		conf_enter_index(err, i);
		for (uint32_t k = 0; k < i; k++) {
			const uint64_t both = p->given & c->ports[k].given;

			if ((both & CONF_PORT_IPV4) != 0 && p->ipv4[0] != 0 &&
				memcmp(p->ipv4, c->ports[k].ipv4, 4) == 0)
				conf_fault(err, "ipv4",
					"is the address of /ports/%u: each must be "
					"different",
					k);
			if ((both & CONF_PORT_IPV6) != 0 && memcmp(p->ipv6, none, 16) != 0 &&
				memcmp(p->ipv6, c->ports[k].ipv6, 16) == 0)
				conf_fault(err, "ipv6",
					"is the address of /ports/%u: each must be "
					"different",
					k);
		}
		conf_leave(err, mark);
	}
}

int
conf_cross_names(const struct conf *c, struct conf_errors *err)
{
	struct tables t = {
		.port = { .array = "ports", .key = "name" },
		.device = { .array = "ports", .key = "device" },
		.pd = { .array = "pds" },
		.mr = { .array = "mrs", .key = "name" },
		.cq = { .array = "cqs", .key = "name" },
		.xrcd = { .array = "xrcds" },
		.mw = { .array = "mws", .key = "name" },
		.srq = { .array = "srqs", .key = "name" },
	};
	struct entries *all[] = { &t.port, &t.device, &t.pd, &t.mr, &t.cq, &t.xrcd, &t.srq, &t.mw };
	int ret = 0;

	/* A number that had a fault is one of them, too. */
	t.workers = c->lcores.n_workers;
	if (array_failed("lcores", err) || array_failed("lcores/workers", err))
		t.workers = 0;
#define NAMES(e, array, n, S, m) names_make(&t.e, array, n, sizeof(struct S), offsetof(struct S, m))
	if (NAMES(port, c->ports, c->n_ports, conf_port, name) != 0 ||
		NAMES(device, c->ports, c->n_ports, conf_port, device) != 0 ||
		NAMES(pd, c->pds, c->n_pds, conf_pd, name) != 0 ||
		NAMES(mr, c->mrs, c->n_mrs, conf_mr, name) != 0 ||
		NAMES(cq, c->cqs, c->n_cqs, conf_cq, name) != 0 ||
		NAMES(xrcd, c->xrcds, c->n_xrcds, conf_xrcd, name) != 0 ||
		NAMES(mw, c->mws, c->n_mws, conf_mw, name) != 0 ||
		NAMES(srq, c->srqs, c->n_srqs, conf_srq, name) != 0)
		ret = -ENOMEM;
#undef NAMES
	if (ret == 0) {
		for (size_t i = 0; i < ARRAY_LEN(all); i++) {
			all[i]->partial |= array_failed(all[i]->array, err);
			names_unique(all[i], err);
		}
		refer_all(c, &t, err);
		refer_listeners(c, &t, err);
		addresses_unique(c, err);
		queues_polled(c, t.workers, err);
		ret = keys_unique(c, err);
	}
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		free(all[i]->v);
	return ret;
}

int
conf_cross_qp_nums(const struct conf *c, struct conf_errors *err)
{
	struct entry *v = malloc((c->n_qps == 0 ? 1 : c->n_qps) * sizeof(*v));
	const uint32_t mark = conf_enter(err, "qps");
	uint64_t total = 0, reach = 0;
	uint32_t n = 0, holder = 0;

	for (uint32_t i = 0; v != NULL && i < c->n_qps; i++) {
		total += c->qps[i].count;
		if (c->qps[i].qp_num != 0)
			v[n++] = (struct entry){ .number = c->qps[i].qp_num, .index = i };
	}
	if (total > CONF_MAX_QPS)
		conf_fault(err, NULL, "asks for %" PRIu64 " QPs in all: at most %u", total,
			CONF_MAX_QPS);
	if (v != NULL)
		qsort(v, n, sizeof(*v), by_number);
	for (uint32_t i = 0; i < n; i++) {
		const uint32_t count = c->qps[v[i].index].count;
		const uint64_t last = v[i].number + count - 1;

		if (v[i].number <= reach) {
			uint32_t inner = conf_enter_index(err, v[i].index);

			conf_fault(err, "qp_num",
				"%" PRIu64 " to %" PRIu64 " overlaps the numbers of "
				"/qps/%u, which end at %" PRIu64 ": each QP needs its own",
				v[i].number, last, holder, reach);
			conf_leave(err, inner);
		}
		if (last > reach) {
			reach = last;
			holder = v[i].index;
		}
	}
	free(v);
	conf_leave(err, mark);
	return v == NULL ? -ENOMEM : 0;
}
