/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two connection managers and the wire between them: messages are lost, come twice, late, in
 * another order, or with other bytes, while the programs at both ends connect, ask where datagrams
 * go, accept, reject and disconnect. Others invent messages of connections that there are.
 * Whatever comes, no table holds more than its limit, what is counted is there, and when all has
 * ended and time has passed both are empty.
 *
 * Input: steps of one byte and its operands (step()).
 */
#include "cm.h"
#include "compiler.h"
#include "fuzz.h"

enum { SIDES = 2, WIRE = 16, CONNS = 16, HALF_OPEN = 8, REQS = 50, ENDLESS = 4096 };

#define SERVICE UINT64_C(0x1061d2f) /* TCP, 7471 */
#define SERVICE_UD \
	UINT64_C(0x1111d2f) /* and UDP; the one behind it is answered without a program */

static struct {
	struct cm cm[SIDES];
	struct cm_listener *listener[SIDES], *ud[SIDES];
	ns_t now;
	struct {
		struct cm_out out;
		uint8_t to;
	} wire[WIRE];
	uint32_t wire_n;
	const uint8_t *at, *end;
} bed;

static uint8_t
next(void)
{
	return bed.at != bed.end ? *bed.at++ : 0;
}

static struct cm_path
path_of(uint8_t side)
{
	struct cm_path p = { .has_mac = true };

	memcpy(p.own_gid, (const uint8_t[16]){ [10] = 0xff, 0xff, 10, 77, 0, 1 + side }, 16);
	memcpy(p.peer_gid, (const uint8_t[16]){ [10] = 0xff, 0xff, 10, 77, 0, 2 - side }, 16);
	return p;
}

/** As the caller of the module: messages go to the wire, and what is over is forgotten. */
static void
carry_out(uint8_t side, const struct cm_verdict *v)
{
	FUZZ_CHECK(v->outs <= ARRAY_LEN(v->out));
	FUZZ_CHECK(v->drop < CM_DROPS && v->event < CM_EVENTS);
	FUZZ_CHECK(v->drop == CM_DROP_NONE || v->event == CM_EVENT_NONE);
	/* A REQ of a queue pair that is connected is refused, and the connection ends (CM-24). */
	FUZZ_CHECK(v->drop == CM_DROP_NONE || v->todo == CM_DO_NONE ||
		   (v->drop == CM_DROP_refused && v->status == CM_REJ_STALE_CONN &&
			   v->todo == CM_DO_DOWN));
	for (uint32_t i = 0; i < v->outs; i++) {
		FUZZ_CHECK(mad_check(v->out[i].mad, MAD_LEN) == MAD_GOOD);
		if (bed.wire_n == WIRE)
			continue; /* lost */
		bed.wire[bed.wire_n].out = v->out[i];
		bed.wire[bed.wire_n++].to = !side;
	}
	if (v->conn != NULL && v->over)
		cm_forget(&bed.cm[side], v->conn);
}

static void
check(uint8_t side)
{
	const struct cm *cm = &bed.cm[side];
	uint32_t at = 0, n = 0, half_open = 0, pending = 0, of_sources = 0, of_listeners = 0;
	struct cm_conn *c;

	while ((c = cm_each(&bed.cm[side], &at)) != NULL) {
		n++;
		half_open += c->half_open;
		pending += c->half_open && c->listener != NULL;
		FUZZ_CHECK(c->state != CM_IDLE && c->state < CM_STATES);
		FUZZ_CHECK(c->private_len <= CM_PRIVATE_MAX);
		FUZZ_CHECK(cm_find(&bed.cm[side], c->local_id) == c);
	}
	for (uint32_t i = 0; i < CM_SOURCES; i++)
		of_sources += cm->sources[i].half_open;
	FUZZ_CHECK(n == cm->n && n <= CONNS);
	FUZZ_CHECK(half_open == cm->half_open && half_open <= HALF_OPEN);
	FUZZ_CHECK(of_sources == half_open);
	for (uint32_t i = 0; i < CM_LISTENERS; i++) {
		FUZZ_CHECK(cm->listeners[i].pending <= cm->listeners[i].backlog);
		FUZZ_CHECK(cm->listeners[i].unheard <= cm->listeners[i].pending);
		of_listeners += cm->listeners[i].pending;
	}
	FUZZ_CHECK(of_listeners == pending);
}

/** A message of the wire arrives, with some of its bytes changed; it may come again. */
static void
deliver(uint8_t which, uint8_t how)
{
	struct cm_packet p = { .len = MAD_LEN };
	struct cm_verdict v;
	uint8_t mad[MAD_LEN], to;

	if (bed.wire_n == 0)
		return;
	which = (uint8_t)(which % bed.wire_n);
	to = bed.wire[which].to;
	memcpy(mad, bed.wire[which].out.mad, MAD_LEN);
	if ((how & 0x80) == 0)
		bed.wire[which] = bed.wire[--bed.wire_n];
	for (uint8_t i = how & 7; i != 0; i--) {
		const uint8_t at = next();

		mad[at] = next();
	}
	if ((how & 0x40) != 0)
		p.len = next();
	p.mad = mad;
	p.path = path_of(to);
	if ((how & 0x20) != 0)
		p.path.peer_gid[15] = next(); /* from elsewhere */
	cm_receive(&bed.cm[to], &p, bed.now, &v);
	carry_out(to, &v);
}

/** Where a listener is for datagrams, and another one that answers by itself. */
static void
listen_ud(uint8_t side)
{
	struct cm_listener *l;
	int rc;

	l = bed.ud[side] = cm_listen(&bed.cm[side], 0, SERVICE_UD, NULL, &rc);
	FUZZ_CHECK(l != NULL);
	l->service = CM_UD;
	l->asks = true;
	l = cm_listen(&bed.cm[side], 0, SERVICE_UD + 1, NULL, &rc);
	if (l == NULL)
		return; /* it is there already */
	l->service = CM_UD;
	l->ud = (struct cm_terms){ .qpn = 0x99, .qkey = CM_UD_QKEY };
}

/** The n-th connection of a side, or NULL. */
static struct cm_conn *
pick(uint8_t side, uint8_t n)
{
	struct cm_conn *c, *last = NULL;
	uint32_t at = 0;

	while ((c = cm_each(&bed.cm[side], &at)) != NULL) {
		last = c;
		if (n-- == 0)
			break;
	}
	return last;
}

static void
connect(uint8_t side, uint8_t how)
{
	static const uint8_t text[256];
	struct cm_verdict v;
	const struct cm_ask ask = { .path = path_of(side),
		.terms = { .qpn = 17u + how,
			.psn = how,
			.responder_resources = next(),
			.initiator_depth = next(),
			.retry_count = 7,
			.mtu = 3,
			.service = how % 9 },
		.service_id = (how % 9 == CM_UD ? SERVICE_UD : SERVICE) + (how & 1),
		.packet_life = next() & 15,
		.ip = (how & 2) != 0,
		.private = text,
		.private_len = next(),
		.time = (ns_t)next() * TIME_NS_PER_S / 8 };

	if (cm_connect(&bed.cm[side], &ask, bed.now, &v) == 0)
		carry_out(side, &v);
}

/** What the program at a side says of a connection. */
static void
say(uint8_t side, uint8_t how)
{
	static const uint8_t text[256];
	struct cm *cm = &bed.cm[side];
	struct cm_conn *c = pick(side, next());
	struct cm_verdict v;
	int rc = -1;

	if (c == NULL)
		return;
	if (how % 3 == 0) {
		const struct cm_terms own = { .qpn = 0x100u + next(),
			.psn = 1,
			.qkey = CM_UD_QKEY,
			.responder_resources = next(),
			.initiator_depth = next() };

		rc = cm_accept(cm, c, &own, text, next(), bed.now, &v);
	} else if (how % 3 == 1) {
		rc = cm_reject(cm, c, next(), text, next(), bed.now, &v);
	} else {
		rc = cm_disconnect(cm, c, bed.now, &v);
	}
	if (rc == 0)
		carry_out(side, &v);
}

/** Any message, with the ids that a connection expects; its other fields are anybody's. */
static void
invent(uint8_t side, uint8_t how)
{
	const struct cm_conn *c = pick(side, next());
	struct cm_packet p = { .len = MAD_LEN, .path = path_of(side) };
	uint8_t mad[MAD_LEN];
	struct cm_verdict v;

	if (c == NULL)
		return;
	mad_init(mad, CM_MESSAGE_FIRST + how % (CM_MESSAGE_LAST - CM_MESSAGE_FIRST + 1),
		(how & 0x80) != 0 ? next() : c->tid);
	mad_set(mad, RTU_local_comm_id, c->remote_id);
	if (mad_message(mad) == CM_SIDR_REP)
		mad_set(mad, SIDR_REP_request_id, c->local_id);
	else if (mad_message(mad) != CM_SIDR_REQ)
		mad_set(mad, RTU_remote_comm_id, c->local_id);
	if (mad_message(mad) == CM_DREQ)
		mad_set(mad, DREQ_remote_qpn, c->own.qpn);
	for (uint8_t i = next() & 3; i != 0; i--) {
		const uint8_t at = next();

		mad[32 + at % (MAD_LEN - 32)] = next();
	}
	p.mad = mad;
	cm_receive(&bed.cm[side], &p, bed.now, &v);
	carry_out(side, &v);
}

static void
timers(uint8_t side)
{
	struct cm_verdict v;
	uint32_t n = 0;

	while (cm_timer(&bed.cm[side], bed.now, &v)) {
		FUZZ_CHECK(++n < ENDLESS);
		carry_out(side, &v);
	}
}

static void
step(uint8_t what)
{
	const uint8_t side = what >> 7;
	struct cm_verdict v;
	int rc;

	switch (what & 7) {
	case 0:
		connect(side, next());
		break;
	case 1:
		say(side, next());
		break;
	case 2:
		bed.now += cm_time(next() & 31) / 4;
		timers(0);
		timers(1);
		break;
	case 3:
		if (cm_data(&bed.cm[side], 0x100u + next(), bed.now, &v))
			carry_out(side, &v);
		break;
	case 6:
		invent(side, next());
		break;
	case 4:
		if ((what & 16) != 0) {
			if (bed.ud[side] != NULL)
				cm_unlisten(&bed.cm[side], bed.ud[side]);
			bed.ud[side] = NULL;
			if ((what & 8) == 0)
				listen_ud(side);
			break;
		}
		if (bed.listener[side] != NULL)
			cm_unlisten(&bed.cm[side], bed.listener[side]);
		bed.listener[side] =
			(what & 8) != 0 ? NULL : cm_listen(&bed.cm[side], 0, SERVICE, NULL, &rc);
		break;
	default:
		deliver(what >> 3, next());
		break;
	}
}

/** Both programs end all they have: soon there is nothing. */
static void
finish(uint8_t side)
{
	struct cm_verdict v;
	struct cm_conn *c;
	uint32_t at = 0;

	while ((c = cm_each(&bed.cm[side], &at)) != NULL)
		if (cm_disconnect(&bed.cm[side], c, bed.now, &v) == 0)
			carry_out(side, &v);
	for (uint32_t i = 0; i < ENDLESS && bed.cm[side].n != 0; i++) {
		bed.now += TIME_NS_PER_S;
		timers(side);
	}
	FUZZ_CHECK(bed.cm[side].n == 0);
	check(side);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct cm_limits limits = { CONNS, HALF_OPEN, REQS };
	int rc;

	memset(&bed, 0, sizeof(bed));
	bed.now = 5 * TIME_NS_PER_S;
	bed.at = data;
	bed.end = data + size;
	for (uint8_t i = 0; i < SIDES; i++) {
		FUZZ_CHECK(cm_init(&bed.cm[i], &limits, 42 + i, 0x200 + i, bed.now) == 0);
		bed.listener[i] = cm_listen(&bed.cm[i], 0, SERVICE, NULL, &rc);
		FUZZ_CHECK(bed.listener[i] != NULL);
		listen_ud(i);
	}
	while (bed.at != bed.end) {
		step(next());
		check(0);
		check(1);
	}
	finish(0);
	finish(1);
	cm_fini(&bed.cm[0]);
	cm_fini(&bed.cm[1]);
	return 0;
}

size_t
fuzz_seed(unsigned int index, uint8_t *buf, size_t room)
{
	/* Connect, deliver the REQ, accept, deliver REP and RTU; then one side ends it. */
	static const uint8_t whole[] = { 0, 2, 3, 2, 14, 5, 80, 5, 0, 0x81, 0, 0, 9, 3, 2, 4, 5, 0,
		5, 0, 0x81, 2, 0, 5, 0, 5, 0 };
	static const uint8_t refused[] = { 0, 2, 3, 2, 14, 5, 80, 5, 0, 0x81, 1, 0, 28, 4, 5, 0 };
	static const uint8_t lost[] = { 0, 0, 3, 2, 14, 5, 80, 2, 20, 2, 24, 5, 0x80, 5, 1, 140, 1,
		2, 30 };
	/* Datagrams: told, twice; refused; told without a program; a LAP. */
	static const uint8_t told[] = { 0, 8, 3, 2, 14, 5, 80, 5, 0x80, 0x81, 0, 0, 9, 3, 2, 4, 5,
		0, 5, 0, 2, 24, 1, 2, 0 };
	static const uint8_t no[] = { 0, 26, 3, 2, 14, 5, 80, 5, 0, 0x81, 1, 0, 28, 4, 5, 0 };
	static const uint8_t always[] = { 0, 17, 3, 2, 14, 5, 80, 5, 0, 5, 0, 6, 8, 0, 0, 1, 2, 0 };
	static const uint8_t lap[] = { 0, 2, 3, 2, 14, 5, 80, 5, 0, 0x81, 0, 0, 9, 3, 2, 4, 5, 0, 5,
		0, 0x86, 9, 0, 0, 5, 0, 0x81, 2, 0, 5, 0 };
	static const struct {
		const uint8_t *bytes;
		size_t n;
	} seeds[] = { { whole, sizeof(whole) }, { refused, sizeof(refused) },
		{ lost, sizeof(lost) }, { told, sizeof(told) }, { no, sizeof(no) },
		{ always, sizeof(always) }, { lap, sizeof(lap) } };

	if (index >= ARRAY_LEN(seeds) || room < seeds[index].n)
		return 0;
	memcpy(buf, seeds[index].bytes, seeds[index].n);
	return seeds[index].n;
}
