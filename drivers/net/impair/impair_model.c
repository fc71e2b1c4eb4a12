/* SPDX-License-Identifier: BSD-3-Clause */
#include "impair_model.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "compiler.h"
#include "impair_rng.h"
#include "psn.h"

/* Content as one word: opcode 48..55, QPN 24..47, PSN 0..23, kind from 56 on. */
#define KEY_QPN     ((uint64_t)PSN_MASK << 24)
#define KEY_PSN     ((uint64_t)PSN_MASK)
#define KEY_OPCODE  (UINT64_C(0xff) << 48)
#define KEY_KIND(k) ((uint64_t)(k) << 56)

/* A rule made ready: what to compare, and how far it is. */
struct state {
	struct impair_rule rule; /* defaults filled in */
	uint64_t key;
	uint64_t mask;
	uint64_t rng;
	uint64_t seen; /* packets that matched */
	uint64_t fired;
	bool bad; /* Gilbert-Elliott state */
	uint16_t index;
	uint64_t probability; /* thresholds */
	uint64_t to_bad;
	uint64_t to_good;
	uint64_t loss[2]; /* good, bad */
};

struct impair_model {
	uint64_t packets;
	struct impair_log *log;
	uint32_t n; /* rules that may still fire */
	struct state *live[IMPAIR_RULES_MAX];
	struct state states[];
};

/* What one packet has got so far. */
struct decision {
	const struct impair_pkt *pkt;
	struct impair_verdict *v;
	struct impair_record base;
	struct impair_record records[IMPAIR_FIRED_MAX];
	uint32_t n;
	bool dropped;
};

/* ---- making ready ---------------------------------------------------------------------------- */

static uint32_t
or_default(uint32_t value, uint32_t def)
{
	return value != 0 ? value : def;
}

static void
prepare_match(struct state *s)
{
	const struct impair_rule *r = &s->rule;

	if ((r->given & IMPAIR_GIVEN_QP_NUM) != 0) {
		s->key |= (uint64_t)r->qp_num << 24;
		s->mask |= KEY_QPN;
	}
	if ((r->given & (IMPAIR_GIVEN_PSN | IMPAIR_GIVEN_PSN_LAST)) == IMPAIR_GIVEN_PSN) {
		s->key |= r->psn;
		s->mask |= KEY_PSN;
	}
	if ((r->given & IMPAIR_GIVEN_OPCODE) != 0) {
		s->key |= (uint64_t)r->opcode << 48;
		s->mask |= KEY_OPCODE;
	}
	if (r->direction != IMPAIR_ANY) {
		uint64_t bit = r->direction == IMPAIR_REQUEST ? KEY_KIND(IMPAIR_PKT_REQUEST)
							      : KEY_KIND(IMPAIR_PKT_RESPONSE);

		s->key |= bit;
		s->mask |= bit;
	}
	/* Content is of RoCE packets alone, whatever `frames` allows. */
	if (r->frames == IMPAIR_FRAMES_ROCE || s->mask != 0 || (r->given & IMPAIR_GIVEN_PSN) != 0) {
		s->key |= KEY_KIND(IMPAIR_PKT_ROCE);
		s->mask |= KEY_KIND(IMPAIR_PKT_ROCE);
	} else if (r->frames == IMPAIR_FRAMES_OTHER) {
		s->mask |= KEY_KIND(IMPAIR_PKT_ROCE);
	}
}

static void
prepare(struct state *s, const struct impair_conf *conf, uint32_t index)
{
	struct impair_rule *r = &s->rule;

	*r = conf->rules[index];
	r->copies = or_default(r->copies, 1);
	r->distance = or_default(r->distance, 1);
	r->hold_us = or_default(r->hold_us, IMPAIR_HOLD_DEFAULT);
	r->bits = or_default(r->bits, 1);
	s->index = (uint16_t)index;
	s->rng = impair_rng_stream(conf->seed, index);
	s->probability = impair_rng_threshold(r->probability);
	s->to_bad = impair_rng_threshold(r->burst.p);
	s->to_good = impair_rng_threshold(r->burst.r);
	s->loss[false] = impair_rng_threshold(r->burst.loss_good);
	s->loss[true] = impair_rng_threshold(r->burst.loss_bad);
	prepare_match(s);
}

int
impair_model_create(const struct impair_conf *conf, struct impair_model **out)
{
	struct impair_model *m;
	int rc = impair_conf_check(conf, NULL, 0);

	if (rc != 0)
		return rc;
	m = calloc(1, sizeof(*m) + conf->n_rules * sizeof(struct state));
	if (m == NULL)
		return -ENOMEM;
	m->log = impair_log_create(or_default(conf->log_size, IMPAIR_LOG_DEFAULT));
	if (m->log == NULL) {
		free(m);
		return -ENOMEM;
	}
	m->n = conf->n_rules;
	for (uint32_t i = 0; i < conf->n_rules; i++) {
		prepare(&m->states[i], conf, i);
		m->live[i] = &m->states[i];
	}
	*out = m;
	return 0;
}

void
impair_model_destroy(struct impair_model *m)
{
	if (m == NULL)
		return;
	impair_log_destroy(m->log);
	free(m);
}

const struct impair_log *
impair_model_log(const struct impair_model *m)
{
	return m->log;
}

/* ---- when ------------------------------------------------------------------------------------ */

static bool
matches(const struct state *s, const struct impair_pkt *p, uint64_t key, uint64_t packet)
{
	const struct impair_rule *r = &s->rule;

	if (((key ^ s->key) & s->mask) != 0)
		return false;
	if ((r->given & IMPAIR_GIVEN_PSN_LAST) != 0 &&
		!psn_between(psn(p->psn), psn(r->psn), psn(r->psn_last)))
		return false;
	return r->packet == 0 || r->packet == packet;
}

/* The packet is judged in the state that it meets; then the state may change. */
static bool
burst_strikes(struct state *s)
{
	bool hit = impair_rng_chance(&s->rng, s->loss[s->bad]);

	if (impair_rng_chance(&s->rng, s->bad ? s->to_good : s->to_bad))
		s->bad = !s->bad;
	return hit;
}

static bool
strikes(struct state *s)
{
	const struct impair_rule *r = &s->rule;

	if (++s->seen <= r->skip)
		return false;
	if ((r->given & IMPAIR_GIVEN_PROBABILITY) != 0)
		return impair_rng_chance(&s->rng, s->probability);
	if ((r->given & IMPAIR_GIVEN_BURST) != 0)
		return burst_strikes(s);
	return r->every == 0 || (s->seen - r->skip) % r->every == 0;
}

/* ---- how ------------------------------------------------------------------------------------- */

/* The next record of the decision, or NULL when it is full. */
static struct impair_record *
record(struct decision *d, const struct state *s)
{
	struct impair_record *r;

	if (d->n == IMPAIR_FIRED_MAX)
		return NULL;
	r = &d->records[d->n++];
	*r = d->base;
	r->action = (uint8_t)s->rule.action;
	r->rule = s->index;
	return r;
}

static bool
flip(struct decision *d, const struct state *s, uint32_t offset, uint8_t mask)
{
	struct impair_record *r = record(d, s);

	if (r == NULL)
		return false;
	r->arg = offset;
	r->mask = mask;
	d->v->flips[d->v->n_flips++] = (struct impair_flip){ (uint16_t)offset, mask };
	return true;
}

/*
 * Flip `bits` different bits of a range: the i-th of them is drawn from what is free, so none is
 * drawn twice.
 */
static bool
flip_random(struct decision *d, struct state *s, uint64_t first, uint64_t n_bits)
{
	uint64_t taken[IMPAIR_BITS_MAX]; /* ascending */
	uint32_t bits = s->rule.bits;

	if (bits > n_bits)
		bits = (uint32_t)n_bits;
	if (d->n + bits > IMPAIR_FIRED_MAX)
		return false;
	for (uint32_t i = 0; i < bits; i++) {
		uint64_t bit = impair_rng_below(&s->rng, n_bits - i);
		uint32_t at = 0;

		while (at < i && taken[at] <= bit) {
			bit++;
			at++;
		}
		memmove(&taken[at + 1], &taken[at], (i - at) * sizeof(taken[0]));
		taken[at] = bit;
		flip(d, s, (uint32_t)((first + bit) / 8), (uint8_t)(1u << (first + bit) % 8));
	}
	return bits != 0;
}

static bool
corrupt(struct decision *d, struct state *s)
{
	const struct impair_rule *r = &s->rule;
	uint32_t len = d->pkt->len < UINT16_MAX ? d->pkt->len : UINT16_MAX;

	if ((r->given & IMPAIR_GIVEN_OFFSET) == 0)
		return flip_random(d, s, 0, (uint64_t)len * 8);
	if (r->offset >= len)
		return false;
	if (r->xor_mask != 0)
		return flip(d, s, r->offset, r->xor_mask);
	return flip_random(d, s, (uint64_t)r->offset * 8, 8);
}

static bool
delay(struct decision *d, struct state *s)
{
	const struct impair_rule *rule = &s->rule;
	struct impair_record *r;
	uint32_t us = rule->delay_us;

	if (rule->jitter_us != 0)
		us += (uint32_t)impair_rng_below(&s->rng, (uint64_t)rule->jitter_us + 1);
	/* Not delayed: no rule says that. */
	r = us != 0 ? record(d, s) : NULL;
	if (r == NULL)
		return false;
	r->arg = us;
	d->v->delay_us += us;
	return true;
}

static bool
duplicate(struct decision *d, const struct state *s)
{
	const struct impair_rule *rule = &s->rule;
	struct impair_record *r = record(d, s);

	if (r == NULL)
		return false;
	r->arg = rule->copies;
	r->arg2 = rule->delay_us;
	d->v->copies = (uint8_t)(d->v->copies + rule->copies);
	if (rule->delay_us > d->v->copy_delay_us)
		d->v->copy_delay_us = rule->delay_us;
	return true;
}

static bool
reorder(struct decision *d, const struct state *s)
{
	const struct impair_rule *rule = &s->rule;
	struct impair_record *r = record(d, s);

	if (r == NULL)
		return false;
	r->arg = rule->distance;
	r->arg2 = rule->hold_us;
	if (rule->distance > d->v->distance)
		d->v->distance = (uint8_t)rule->distance;
	if (rule->hold_us > d->v->hold_us)
		d->v->hold_us = rule->hold_us;
	return true;
}

static bool
drop(struct decision *d, const struct state *s)
{
	if (d->dropped)
		return true;
	/* Whatever else there was, or will be behind this record, does not happen. */
	d->dropped = true;
	d->n = 0;
	d->v->n_flips = 0;
	return record(d, s) != NULL;
}

/* Enter what the rule does. @return false: it cannot be done to this packet. */
static bool
act(struct decision *d, struct state *s)
{
	switch (s->rule.action) {
	case IMPAIR_DROP:
		return drop(d, s);
	case IMPAIR_DUPLICATE:
		return duplicate(d, s);
	case IMPAIR_REORDER:
		return reorder(d, s);
	case IMPAIR_CORRUPT:
		return corrupt(d, s);
	case IMPAIR_DELAY:
		return delay(d, s);
	default:
		return (d->pkt->kind & (IMPAIR_PKT_IPV4 | IMPAIR_PKT_IPV6)) != 0 &&
		       record(d, s) != NULL;
	}
}

static void
decide(struct impair_model *m, const struct impair_pkt *p, struct impair_verdict *v)
{
	uint64_t key =
		KEY_KIND(p->kind) | (uint64_t)p->opcode << 48 | (uint64_t)p->qpn << 24 | p->psn;
	uint32_t kept = 0;
	struct decision d;

	memset(v, 0, sizeof(*v));
	m->packets++;
	d.pkt = p;
	d.v = v;
	d.n = 0;
	d.dropped = false;
	d.base = (struct impair_record){ .packet = m->packets,
		.qpn = p->qpn,
		.psn = p->psn,
		.opcode = p->opcode,
		.kind = p->kind };
	if ((p->kind & IMPAIR_PKT_ROCE) != 0)
		d.base.nth = impair_log_seen(m->log, p);

	for (uint32_t i = 0; i < m->n; i++) {
		struct state *s = m->live[i];

		if (matches(s, p, key, m->packets) && strikes(s) && act(&d, s)) {
			v->actions |= IMPAIR_BIT(s->rule.action);
			if (++s->fired == s->rule.times)
				continue; /* it never fires again */
		}
		m->live[kept++] = s;
	}
	m->n = kept;
	if (d.dropped) {
		*v = (struct impair_verdict){ .actions = IMPAIR_BIT(IMPAIR_DROP) };
		d.n = 1;
	}
	for (uint32_t i = 0; i < d.n; i++)
		impair_log_add(m->log, &d.records[i]);
}

void
impair_model_decide(struct impair_model *m, const struct impair_pkt *pkts, uint32_t n,
	struct impair_verdict *verdict)
{
	for (uint32_t i = 0; i < n; i++)
		decide(m, &pkts[i], &verdict[i]);
}

bool
impair_model_is_spent(const struct impair_model *m)
{
	return m->n == 0;
}
