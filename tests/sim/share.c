/* SPDX-License-Identifier: BSD-3-Clause */
/* Marks, CNPs, rates and round trips: what the pipeline does about congestion, in short. */
#include "share.h"
#include "sim.h"

#define CNP_INTERVAL (20 * TIME_NS_PER_US)
#define ECN_CE       3

void
share_choose(struct sim *s)
{
	const uint64_t n = s->seed / 7;

	s->share.on = !s->perfect && (s->share.all || s->seed % 7 == 3);
	if (!s->share.on)
		return;
	s->hostile = true; /* the queue has an end */
	s->fifo = false;   /* round trips vary: how many retries are in vain is not judged */
	for (uint32_t i = 0; i < 2; i++) {
		const uint32_t kmin = 1024u << (n / 3 + i) % 5;

		impair_bottleneck_init(&s->share.neck[i],
			&(struct bottleneck_conf){ .rate = UINT64_C(200000000) << (n + i) % 7,
				.buffer = 8 * kmin + 8192,
				.kmin = kmin,
				.kmax = 4 * kmin,
				.pmax = 0.1,
				.seed = s->seed + i });
	}
}

void
share_begin(struct sim *s, struct end *e)
{
	const bool by_delay = (s->seed / 14 + e->index) % 3 == 0;
	struct cc_params p;

	if (!s->share.on)
		return;
	if (by_delay)
		cc_delay_preset(&p);
	else
		cc_preset((enum cc_preset)(s->seed / 42 % CC_PRESETS), &p);
	p.line_rate = 10000;
	p.rpg_min_rate = 100;
	p.delay.target = 20u << s->seed / 21 % 4;
	cc_start(&e->share.cc, &p);
	e->share.window = e->req.window;
	e->req.rounds = by_delay;
	if (by_delay)
		e->path.tos &= (uint8_t)~ECN_CE;
	if (s->share.all)
		e->req.knobs |= REQ_KNOB_READ_FILL;
}

/* ---- the queue ------------------------------------------------------------------------------- */

/** Set CE in the IP header; an IPv4 checksum follows what it covers (RFC 1624). */
static void
mark(const struct end *e, uint8_t *ip)
{
	const uint32_t before = be16_load(ip);
	uint32_t sum;

	if (e->path.ipv6) {
		ip[1] |= ECN_CE << 4;
		return;
	}
	ip[1] |= ECN_CE;
	sum = (~be16_load(ip + 10) & 0xffffu) + (~before & 0xffffu) + be16_load(ip);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16_store(ip + 10, (uint16_t)~sum);
}

ns_t
share_queue(struct sim *s, const struct end *e, struct packet *p)
{
	const bool ect = (e->path.tos & ECN_CE) != 0 && !p->cnp;
	struct bottleneck_verdict v;

	if (!s->share.on)
		return s->now;
	v = impair_bottleneck_offer(&s->share.neck[e->index & 1], p->len, ect, s->now);
	s->t.overflowed += v.dropped;
	if (v.dropped)
		return 0;
	if (v.marked) {
		s->t.marked++;
		mark(e, p->frame + WIRE_ETH_LEN + (e->path.vlan ? WIRE_VLAN_LEN : 0));
	}
	return v.leaves;
}

/* ---- CNPs ------------------------------------------------------------------------------------ */

static void
send_cnp(struct sim *s, struct end *e)
{
	static const uint8_t zeros[WIRE_CNP_PAYLOAD_LEN];

	if (s->now < e->share.cnp_next)
		return;
	e->share.cnp_next = s->now + CNP_INTERVAL;
	link_send(s, e,
		&(struct wire_fields){ .opcode = OP_CNP,
			.flags = PKT_BECN,
			.pkey = 0xffff,
			.dest_qpn = peer_of(s, e)->qpn,
			.psn = psn_add(e->req.una, PSN_MASK), /* nobody misses it */
			.payload = zeros,
			.payload_len = sizeof(zeros) });
}

bool
share_arrived(struct sim *s, struct end *e, const struct wire_pkt *p, bool corrupt)
{
	const bool cnp = op_has(p->op, OPF_CNP);

	if (!s->share.on)
		return false;
	/* No ICRC covers these bits. */
	CHECK(s, !cnp || corrupt || (p->flags & (PKT_CE | PKT_BECN)) == PKT_BECN,
		"CC-01: a CNP of another form");
	if (cnp) {
		s->t.cnps++;
		cc_notified(&e->share.cc, s->now);
	} else if ((p->flags & PKT_CE) != 0) {
		send_cnp(s, e);
	}
	return cnp;
}

/* ---- rates ----------------------------------------------------------------------------------- */

bool
share_may(struct sim *s, struct end *e)
{
	struct cc *c = &e->share.cc;

	if (!s->share.on)
		return true;
	cc_advance(c, s->now);
	CHECK(s, c->rate >= cc_floor(c) && c->rate <= cc_top(c), "CC-13: %u kb/s", c->rate);
	if (!cc_is_paced(c) || cc_packets(c, e->req.pmtu, s->now) != 0)
		return true;
	e->share.wakes_at = c->due;
	s->t.paced++;
	return false;
}

void
share_sent(struct sim *s, struct end *e, uint32_t len)
{
	if (s->share.on && cc_is_paced(&e->share.cc))
		cc_sent(&e->share.cc, len);
}

void
share_heard(struct sim *s, struct end *e, const struct requester_verdict *v)
{
	struct cc *c = &e->share.cc;
	uint32_t n;

	CHECK(s, (v->act & REQACT_ROUND) == 0 || e->req.rounds,
		"a round trip that nobody asked for");
	if (!s->share.on || !c->p.by_delay)
		return;
	if ((v->act & REQACT_ROUND) != 0) {
		s->t.rounds++;
		cc_delay_round(c,
			&(struct cc_round){ .rtt = e->req.rtt, .frame = e->req.pmtu + 58u },
			s->now);
	}
	if ((v->act & REQACT_RESEND) != 0 &&
		(v->cause == QC_TIMEOUT || v->cause == QC_SEQ_NAK || v->cause == QC_IMPLIED_NAK))
		cc_delay_lost(c, v->cause == QC_TIMEOUT, s->now);
	n = cc_delay_window(c);
	e->req.window = n < e->share.window ? n : e->share.window;
}
