/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 4: verify the ICRC of every packet that has one, those with other faults too: a wrong ICRC
 * is what they are charged to then (RX-PREC-01), and nothing of them may be believed (RX-PREC-09).
 */
#include "reply.h"
#include "stage.h"

_Static_assert(PIPELINE_BURST <= 32, "a bit for each packet");

void
stage_icrc(struct worker *w, struct burst *b)
{
	uint32_t bad;

	if (UNLIKELY(w->local_burst)) /* made here: local.h */
		return;
	bad = icrc_verify_burst(w->crc, b->pkt, b->n);

	ASSERT(((uint64_t)bad >> b->n) == 0);
	for (uint32_t i = 0; UNLIKELY(bad != 0); i++, bad >>= 1)
		b->pkt[i].faults |= (fault_mask_t)(bad & 1) << FAULT_ICRC;
}
