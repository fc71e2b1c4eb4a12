/* SPDX-License-Identifier: BSD-3-Clause */
/* What a step does to a packet: byte 5 of it says what, bytes 6 and 7 with which values. */
#include "fuzz_responder.h"

#include "crc_isal.h"

enum { SEAL = 0x40, KIND = 0x1f, ETH = 14 };

static uint32_t
l3_off(const struct making *k)
{
	return k->path.vlan ? ETH + 4 : ETH;
}

static uint32_t
bth_off(const struct making *k)
{
	return l3_off(k) + (k->path.ipv6 ? 40 : 20) + 8;
}

bool
mutate_fields(struct making *k, const uint8_t *s)
{
	static const uint32_t lens[] = { 0, 1, 0x80000000, 0x80000001, 0xffffffff, 256, 257, 8192 };
	static const uint64_t vas[] = { 0, UINT64_MAX, UINT64_MAX - 7, 0x8000000000000000 };
	static const uint32_t qpns[] = { 0, 1, 0xffffff, 0x51, 0x16, 0x7f, 0x2, 0x12 };
	const uint32_t v = s[6] | (uint32_t)s[7] << 8;
	struct wire_fields *f = &k->f;

	switch (s[5] & KIND) {
	case 0:
		f->psn = psn_add(f->psn, (uint32_t)(int32_t)(int8_t)s[6]);
		return true;
	case 1:
		f->psn = psn_add(f->psn, PSN_HALF + (uint32_t)(int32_t)(int8_t)s[6]);
		return true;
	case 2:
		f->opcode = s[6];
		return true;
	case 3:
		f->reth.dma_len = s[6] < 128 ? lens[s[6] & 7]
					     : f->reth.dma_len + (uint32_t)(int32_t)(int8_t)s[7];
		return true;
	case 4:
		f->reth.va = s[6] < 16 ? vas[s[6] & 3] : f->reth.va + v - 32768;
		f->atomiceth.va = f->reth.va;
		return true;
	case 5:
		f->reth.rkey = s[6] < 128 ? fb.mr[s[6] & 7].key : f->reth.rkey + s[7];
		f->atomiceth.rkey = f->ieth = f->reth.rkey;
		return true;
	case 6:
		f->pkey = s[6] < 128 ? f->pkey ^ 0x8000 : (uint16_t)v;
		return true;
	case 7:
		f->dest_qpn = s[6] < 128 ? qpns[s[6] & 7] : f->dest_qpn + QPN_SLOTS;
		return true;
	case 8:
		f->payload_len = (uint16_t)(v % PAYLOAD_MAX);
		return true;
	case 9:
		f->flags ^= s[6] & 0x1f;
		f->tver = s[7] & 3;
		return true;
	case 10: /* the other IP version, a tag or none */
		if ((s[6] & 1) != 0) {
			struct plan p = *fb.q[k->qp].plan;

			p.ipv6 = !p.ipv6;
			k->path = bed_path(&p, true);
		}
		k->path.vlan ^= (s[6] & 2) != 0;
		k->path.smac[s[7] % 6] ^= (s[6] & 4) != 0;
		k->path.dmac[s[7] % 6] ^= (s[6] & 8) != 0;
		k->path.src_ip[s[7] % 4] ^= (s[6] & 16) != 0;
		k->path.dst_ip[s[7] % 4] ^= (s[6] & 32) != 0;
		return true;
	case 11:
		k->copies += s[6] & 3;
		return true;
	case 12:
		f->payload_len = (uint16_t)(f->payload_len + (int8_t)s[6]);
		f->payload_len %= PAYLOAD_MAX;
		return true;
	default:
		return false;
	}
}

static void
ip_checksum(struct making *k)
{
	uint8_t *ip = k->frame + l3_off(k);
	uint32_t sum = 0;

	if (k->path.ipv6)
		return;
	be16_store(ip + 10, 0);
	for (int i = 0; i < 20; i += 2)
		sum += be16_load(ip + i);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	be16_store(ip + 10, (uint16_t)~sum);
}

/** The datagram is `by` bytes shorter, and says so. */
static void
shorten(struct making *k, uint32_t by)
{
	uint8_t *ip = k->frame + l3_off(k);
	uint8_t *udp = k->frame + bth_off(k) - 8;
	uint32_t udp_len = be16_load(udp + 4);

	by = udp_len > 8 ? by % (udp_len - 8) : 0;
	k->len -= by;
	be16_store(udp + 4, (uint16_t)(udp_len - by));
	if (k->path.ipv6)
		be16_store(ip + 4, (uint16_t)(udp_len - by));
	else
		be16_store(ip + 2, (uint16_t)(20 + udp_len - by));
}

void
packet_seal(struct making *k)
{
	if (k->len >= bth_off(k) + 16)
		icrc_seal(crc_isal(), k->frame, (uint16_t)l3_off(k), k->path.ipv6, k->len);
}

void
mutate_frame(struct making *k, const uint8_t *s)
{
	const uint32_t v = s[6] | (uint32_t)s[7] << 8;
	uint8_t *ip = k->frame + l3_off(k);
	bool reseal = (s[5] & SEAL) != 0;

	switch (s[5] & KIND) {
	case 13: /* a bit of anything */
		k->frame[(v >> 3) % k->len] ^= (uint8_t)(1u << (v & 7));
		break;
	case 14: /* a byte of the headers */
		k->frame[s[6] % 100u % k->len] = s[7];
		break;
	case 15: /* a byte behind IP and UDP */
		k->frame[bth_off(k) + s[6] % 40u % (k->len - bth_off(k))] ^= s[7];
		break;
	case 16: /* cut without a word */
		k->len = v % (k->len + 1);
		reseal = false;
		break;
	case 17:
		shorten(k, s[6]);
		ip_checksum(k);
		break;
	case 18: /* pad count */
		k->frame[bth_off(k) + 1] ^= (uint8_t)((s[6] & 3) << 4);
		break;
	case 19: /* fragment word */
		if (!k->path.ipv6)
			be16_store(ip + 6, (uint16_t)v);
		ip_checksum(k);
		break;
	case 20: /* bytes behind the datagram */
		if (k->len + s[6] <= FRAME_ROOM)
			k->len += s[6];
		return;
	case 21:
		k->cut = 1 + v % (k->len - 1);
		return;
	case 22:
		k->bad_fcs = true;
		return;
	case 23: /* IP header length, options */
		if (!k->path.ipv6)
			ip[0] = (uint8_t)(0x40 | (s[6] & 15));
		ip_checksum(k);
		break;
	default:
		return;
	}
	if (reseal)
		packet_seal(k);
}
