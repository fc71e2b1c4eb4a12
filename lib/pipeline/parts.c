/* SPDX-License-Identifier: BSD-3-Clause */
/* Stages 4 to 6 of long packets: a few at a time. */
#include <string.h>

#include "parts.h"
#include "spare.h"
#include "stage.h"
#include "stage_06_fast.h"

/** A few long packets, or all short ones up to the next long one. */
static inline uint32_t
few_n(const struct burst *b, uint32_t at)
{
	const uint32_t len = b->pkt[at].frame_len;
	uint32_t n = 1;

	if (LIKELY(len > LARGE_FRAME)) {
		n = RTE_MAX(LARGE_BYTES / len, 2u);
		return RTE_MIN(RTE_MIN(n, LARGE_PART), b->n - at);
	}
	while (at + n < b->n && b->pkt[at + n].frame_len <= LARGE_FRAME)
		n++;
	return n;
}

/** A NAK leaves before the next part is looked at. */
static ALWAYS_INLINE void
hurry(struct worker *w)
{
	if (UNLIKELY((w->hurry & HURRY_NAK) != 0))
		stage_tx(w);
}

/**
 * Plain packets from the first on, if there are many: QPs and places are looked at for all of them,
 * and a part has its ICRCs verified and its payloads copied, no more. What is looked at of a packet
 * is not changed by those before it (struct fast's `calm`), and nothing is done before its ICRC is
 * known to be right (RX-PREC-01, RX-PREC-09).
 * @return how many were delivered: up to a part with a wrong ICRC, or what stage 6's fast path
 * does not take.
 */
static uint32_t
deliver_plain(struct worker *w, struct burst *b, uint64_t *since)
{
	const uint32_t n = b->n;
	uint32_t at = 0, end = 0, plain;
	struct fast f;

	if (UNLIKELY(w->local_burst) || UNLIKELY(w->answering != 0))
		return 0;
	plain = stage_steer_plain(w, b);
	lap(w, STAGE_STEER, since);
	if (plain < LARGE_PART)
		return 0;
	b->n = plain;
	pipeline_fast_begin(w, b, &f);
	while (at == end && at != plain) {
		uint32_t bad;

		b->n = plain;
		end += few_n(b, at);
		lap(w, STAGE_RESPOND, since);
		bad = icrc_verify_burst(w->crc, &b->pkt[at], end - at);
		lap(w, STAGE_ICRC, since);
		if (UNLIKELY(bad != 0))
			break;
		b->n = end;
		at = pipeline_fast_run(w, b, at, &f);
	}
	b->n = n;
	mbufs_done(w, b, 0, at, f.reused);
	naks_send(w);
	pipeline_fast_end(w, b, &f);
	lap(w, STAGE_RESPOND, since);
	hurry(w);
	return at;
}

void
pipeline_deliver_parts(struct worker *w, struct burst *b, uint64_t *since)
{
	struct burst *few = &w->few;

	for (uint32_t at = deliver_plain(w, b, since); at < b->n; at += few_n(b, at)) {
		uint32_t n = few_n(b, at);

		ASSERT(n != 0 && at + n <= b->n);
		for (uint32_t i = 0; i < n; i++) {
			few->m[i] = b->m[at + i];
			few->qp[i] = b->qp[at + i];
			few->port[i] = b->port[at + i];
			few->pkt[i] = b->pkt[at + i];
		}
		few->n = n;
		w->few_end = at + n;
		pipeline_deliver(w, few, since);
		hurry(w);
	}
}
