/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A packet step's bytes: 0 kind (not used here), 1 QP and how, 2 request, 3 length, 4 address,
 * 5 mutation, 6 and 7 its parameters. Without a mutation the packet is the QP's next valid one.
 * Where QPs have an alternate path, bit 4 of byte 2 sends it there, and bit 5 sets MigReq.
 */
#include "fuzz_responder.h"

#include "crc_isal.h"

enum { OTHER_WAY = 0x10, MIGRATE = 0x20 }; /* byte 2 */
enum { HOW_QUEUE = 0x08, HOW_ACKREQ = 0x10, HOW_SE = 0x20, HOW_HEAP = 0x40, HOW_CE = 0x80 };

/* ---- the next valid request ------------------------------------------------------------------ */

static const uint8_t *
payload(const struct qp_bed *q, uint32_t salt)
{
	static uint8_t bytes[PAYLOAD_MAX + 256];

	if (bytes[1] == 0)
		for (uint32_t i = 0; i < sizeof(bytes); i++)
			bytes[i] = (uint8_t)(i * 7 + (i >> 6) + 1);
	return bytes + ((q->next.v * 5 + salt) & 0xff);
}

static uint32_t
only_len(uint8_t sel, uint16_t pmtu)
{
	static const uint8_t small[] = { 0, 1, 2, 3, 4, 5, 8, 16, 63, 64, 65, 127, 128, 255 };

	sel &= 15;
	if (sel < sizeof(small))
		return small[sel];
	return sel == 14 ? pmtu - 1u : pmtu;
}

/** Where a request of `len` bytes goes in a region. */
static uint64_t
address(const struct region *m, uint8_t sel, uint32_t len, bool aligned)
{
	uint32_t off = (sel >> 3 & 15) * 24u;

	if ((sel >> 3 & 15) == 15)
		off = m->len - len;
	else if ((sel >> 3 & 15) == 14)
		off = m->len - len + 1;
	else if ((sel >> 3 & 15) == 13)
		off = 4093;
	return m->va + (aligned ? off & ~7u : off);
}

static void
reth(struct making *k, const uint8_t *s, uint32_t len)
{
	const struct qp_bed *q = &fb.q[k->qp];
	const struct region *m = &fb.mr[(s[4] & 0x80) != 0 ? s[4] & 7 : q->plan->good_mr];

	k->f.reth = (struct wire_reth){ address(m, s[4], len, false), m->key, len };
	k->f.atomiceth = (struct wire_atomiceth){ .va = address(m, s[4], 8, true),
		.rkey = m->key,
		.swap_add = 0x0102030405060708u + s[3],
		.compare = s[3] < 128 ? 0 : s[3] };
}

/** A message that is not open yet. */
static void
begin(struct making *k, const uint8_t *s)
{
	static const uint8_t kinds[16] = { OP_RC_SEND_ONLY, OP_RC_SEND_FIRST, OP_RC_WRITE_ONLY,
		OP_RC_WRITE_FIRST, OP_RC_READ_REQUEST, OP_RC_COMPARE_SWAP, OP_RC_FETCH_ADD,
		OP_RC_SEND_ONLY_IMM, OP_RC_WRITE_ONLY_IMM, OP_RC_SEND_ONLY_INV, OP_RC_READ_REQUEST,
		OP_CNP, OP_RC_ACKNOWLEDGE, OP_RC_READ_RESPONSE_ONLY, OP_RC_WRITE_FIRST,
		OP_RC_SEND_FIRST };
	struct qp_bed *q = &fb.q[k->qp];
	uint16_t pmtu = q->plan->pmtu;
	uint32_t len = only_len(s[3], pmtu), total = len;

	k->f.opcode = kinds[s[2] & 15];
	switch (k->f.opcode) {
	case OP_RC_SEND_FIRST:
	case OP_RC_WRITE_FIRST:
		len = pmtu;
		total = pmtu + 1u + s[3] * 13u % (3u * pmtu);
		q->open = k->f.opcode == OP_RC_SEND_FIRST ? OPEN_SEND : OPEN_WRITE;
		q->left = total - len;
		break;
	case OP_RC_READ_REQUEST:
		if ((s[2] & 15) == 10)
			total = (s[3] + 1u) * 32u;
		len = 0;
		break;
	case OP_RC_COMPARE_SWAP:
	case OP_RC_FETCH_ADD:
	case OP_RC_ACKNOWLEDGE:
		len = 0;
		break;
	case OP_CNP:
		k->f.flags |= PKT_BECN;
		len = WIRE_CNP_PAYLOAD_LEN;
		break;
	default:
		break;
	}
	k->f.payload_len = (uint16_t)len;
	reth(k, s, total);
}

/** The next packet of the open message. */
static void
go_on(struct making *k, const uint8_t *s)
{
	static const uint8_t send[3] = { OP_RC_SEND_LAST, OP_RC_SEND_LAST_IMM,
		OP_RC_SEND_LAST_INV };
	static const uint8_t write[3] = { OP_RC_WRITE_LAST, OP_RC_WRITE_LAST_IMM,
		OP_RC_WRITE_LAST };
	struct qp_bed *q = &fb.q[k->qp];
	bool is_send = q->open == OPEN_SEND;
	uint16_t pmtu = q->plan->pmtu;

	if (q->left > pmtu) {
		k->f.opcode = is_send ? OP_RC_SEND_MIDDLE : OP_RC_WRITE_MIDDLE;
		k->f.payload_len = pmtu;
		q->left -= pmtu;
		return;
	}
	k->f.opcode = (is_send ? send : write)[s[2] % 3];
	k->f.payload_len = (uint16_t)(q->left != 0 ? q->left : 1);
	q->open = OPEN_NONE;
	q->left = 0;
}

static uint32_t
psns_of(const struct making *k)
{
	uint16_t pmtu = fb.q[k->qp].plan->pmtu;
	uint32_t len = k->f.reth.dma_len;

	return k->f.opcode != OP_RC_READ_REQUEST || len == 0 ? 1 : (len + pmtu - 1) / pmtu;
}

/** A request again; a READ from some packet of its answer on, and up to some packet. */
static void
repeat(struct making *k, const uint8_t *s)
{
	const struct qp_bed *q = &fb.q[k->qp];
	uint32_t back = s[4] % LASTS < q->last_n ? s[4] % LASTS : 0;
	uint32_t pmtu = q->plan->pmtu, skip = s[3] & 7, len;

	k->f = q->last[(q->last_n - 1 - back) % LASTS];
	len = k->f.reth.dma_len;
	if (k->f.opcode != OP_RC_READ_REQUEST || (uint64_t)skip * pmtu >= len)
		return;
	k->f.psn = psn_add(k->f.psn, skip);
	k->f.reth.va += skip * pmtu;
	k->f.reth.dma_len = len - skip * pmtu;
	if ((s[3] & 8) != 0) /* ends early, or not where it should */
		k->f.reth.dma_len = (s[3] >> 4) * (pmtu / 2) + (s[4] >> 4);
}

/** On which of the QP's ways it goes, and whether it asks for a migration. */
static uint8_t
choose_way(struct making *k, const uint8_t *s)
{
	const struct qp_bed *q = &fb.q[k->qp];
	uint8_t way = paths_way(k->qp), alternate = paths_alternate(k->qp);

	if (fb.apm && (s[2] & OTHER_WAY) != 0)
		way = alternate != WAY_NONE ? alternate : 1;
	k->path = bed_way(q->plan, way & 3, true);
	if (way == 3) /* where no address is, this one has it */
		k->path.dst_ip[k->path.ipv6 ? 15 : 3] = 1;
	k->path.tos = (s[1] & HOW_CE) != 0 ? 3 : 2;
	return way & 3;
}

static void
fields(struct making *k, const uint8_t *s)
{
	struct qp_bed *q = &fb.q[k->qp];
	const struct responder *r = &q->qp->resp;
	uint8_t way = choose_way(k, s);

	if (fb.sent_n == 0) { /* nothing is under way: believe the QP */
		if (q->open != r->open)
			q->left = q->plan->pmtu;
		q->open = r->open;
		q->next = r->epsn;
		if (r->open == OPEN_WRITE)
			q->left = r->dma_len - r->received;
	}
	if ((s[2] & 0x40) != 0 && q->last_n != 0) {
		repeat(k, s);
		k->f.pkey = paths_pkey(k->qp, way) | 0x8000;
		return;
	}
	k->f = (struct wire_fields){ .flags = (s[1] & HOW_ACKREQ) != 0 ? PKT_ACKREQ : 0,
		.pkey = paths_pkey(k->qp, way) | 0x8000,
		.dest_qpn = q->plan->qpn,
		.psn = q->next,
		.imm = 0x11223344,
		.ieth = fb.mr[(s[3] & 1) != 0 ? 2 : 3].key,
		.aeth = { 0x1f, 1 },
		.payload = payload(q, s[7]) };
	if ((s[1] & HOW_SE) != 0)
		k->f.flags |= PKT_SE;
	if (q->open != OPEN_NONE && (s[2] & 0x80) == 0)
		go_on(k, s);
	else
		begin(k, s);
	if (op_has(wire_opcodes[k->f.opcode].flags, OPF_REQUEST)) {
		q->last[q->last_n++ % LASTS] = k->f;
	}
}

/* ---- on the wire ----------------------------------------------------------------------------- */

struct heap_frame {
	struct rte_mbuf_ext_shared_info info;
	uint8_t *bytes;
};

static void
heap_free(void *addr, void *opaque)
{
	struct heap_frame *h = opaque;

	FUZZ_CHECK(addr == h->bytes);
	free(h->bytes);
	free(h);
	fb.ext_live--;
}

/** A heap block of exactly the frame's size, for a sanitizer to guard. */
static bool
put_heap(struct rte_mbuf *m, const uint8_t *b, uint32_t len)
{
	struct heap_frame *h = malloc(sizeof(*h));
	uint8_t *bytes = malloc(len);

	if (h == NULL || bytes == NULL) {
		free(h);
		free(bytes);
		return false;
	}
	memcpy(bytes, b, len);
	h->bytes = bytes;
	h->info.free_cb = heap_free;
	h->info.fcb_opaque = h;
	rte_mbuf_ext_refcnt_set(&h->info, 1);
	rte_pktmbuf_attach_extbuf(m, bytes, 0, (uint16_t)len, &h->info);
	m->data_off = 0;
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	fb.ext_live++;
	return true;
}

static struct rte_mbuf *
mbuf_of(const uint8_t *b, uint32_t len, bool heap)
{
	struct rte_mbuf *m = rte_pktmbuf_alloc(fb.in);

	if (m == NULL)
		return NULL;
	if (heap && len != 0 && put_heap(m, b, len))
		return m;
	memcpy(rte_pktmbuf_mtod(m, uint8_t *), b, len);
	m->data_len = (uint16_t)len;
	m->pkt_len = len;
	return m;
}

static struct rte_mbuf *
segments(const struct making *k, bool heap)
{
	uint32_t first = k->cut != 0 && k->cut < k->len ? k->cut : k->len;
	struct rte_mbuf *m = mbuf_of(k->frame, first, heap), *rest;

	if (m == NULL || first == k->len)
		return m;
	rest = mbuf_of(k->frame + first, k->len - first, heap);
	if (rest == NULL || rte_pktmbuf_chain(m, rest) != 0) {
		rte_pktmbuf_free(rest);
		rte_pktmbuf_free(m);
		return NULL;
	}
	return m;
}

/** Give the frame to the wire and note what it says, by a look of the tester's own. */
static void
emit(const struct making *k, bool heap)
{
	struct sent *t;
	struct rte_mbuf *m;

	if (fb.sent_n == BURST_MAX)
		turn();
	m = segments(k, heap);
	if (m == NULL)
		return; /* the worker holds them all: backlog */
	m->port = fb.port;
	if (k->bad_fcs)
		m->ol_flags |= fb.fcs_flag;
	t = &fb.sent[fb.sent_n];
	memcpy(t->frame, k->frame, k->len);
	t->qp = -1;
	t->good = wire_parse(&fb.conf.ports[0].addr, t->frame, k->len, &t->p) == WIRE_CLASS_ROCE &&
		  t->p.faults == 0 && !k->bad_fcs && icrc_verify(crc_isal(), &t->p);
	for (int i = 0; t->good && i < QPS; i++)
		if (bed_attached((uint32_t)i) && fb.q[i].plan->qpn == t->p.dest_qpn)
			t->qp = i;
	if (rte_ring_enqueue(fb.to, m) != 0) {
		rte_pktmbuf_free(m);
		return;
	}
	fb.sent_n++;
}

void
packet_step(const uint8_t s[STEP])
{
	static struct making k;
	bool mutated = (s[5] & MUTATE) != 0;
	int len;

	k.qp = s[1] & 7;
	k.cut = 0;
	k.copies = 1;
	k.bad_fcs = false;
	if (!bed_attached(k.qp))
		return;
	fields(&k, s);
	if (fb.apm)
		k.f.flags = (uint8_t)((k.f.flags & ~PKT_MIGREQ) |
				      ((s[2] & MIGRATE) != 0 ? PKT_MIGREQ : 0));
	if (mutated && mutate_fields(&k, s))
		mutated = false;
	len = wire_build(&k.path, &k.f, 1, k.frame, sizeof(k.frame));
	FUZZ_CHECK(len > 0);
	k.len = (uint32_t)len;
	packet_seal(&k);
	if ((s[5] & MUTATE) == 0 && (s[2] & 0x40) == 0 &&
		op_has(wire_opcodes[k.f.opcode].flags, OPF_REQUEST))
		fb.q[k.qp].next = psn_add(k.f.psn, psns_of(&k));
	if (mutated)
		mutate_frame(&k, s);
	for (uint32_t i = 0; i < k.copies; i++)
		emit(&k, (s[1] & HOW_HEAP) != 0);
	if ((s[1] & HOW_QUEUE) == 0)
		turn();
}

void
packet_noise(const uint8_t s[STEP])
{
	static const uint8_t ethertypes[][2] = { { 8, 0 }, { 8, 6 }, { 0x86, 0xdd }, { 0x81, 0 } };
	static const uint8_t protos[] = { 1, 17, 58, 6 };
	static struct making k;

	memset(&k, 0, sizeof(k));
	memcpy(k.frame, fb.conf.ports[0].addr.mac, 6);
	memcpy(k.frame + 12, ethertypes[s[2] & 3], 2);
	k.frame[14] = (s[2] & 4) != 0 ? 0x60 : 0x45;
	k.frame[20] = k.frame[23] = protos[s[2] >> 3 & 3];
	k.frame[36] = k.frame[56] = 0x12;
	k.frame[37] = k.frame[57] = 0xb7;
	for (uint32_t i = 0; i < 3; i++)
		k.frame[12 + s[4 + i] % 60u] ^= s[7];
	k.len = s[3];
	k.copies = 1;
	emit(&k, true);
	if ((s[1] & HOW_QUEUE) == 0)
		turn();
}
