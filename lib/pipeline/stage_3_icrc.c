/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Stage 3: verify the ICRC of every packet that has one, those with other faults too: a wrong ICRC
 * is what they are charged to then (RX-PREC-01), and nothing of them may be believed (RX-PREC-09).
 */
#include "pipeline_priv.h"

void
stage_icrc(struct worker *w, struct burst *b)
{
	for (uint32_t i = 0; i < b->n; i++) {
		struct wire_pkt *p = &b->pkt[i];

		if (LIKELY(p->icrc_off != 0) && UNLIKELY(!icrc_verify(w->crc, p)))
			p->faults |= FAULT_BIT(FAULT_ICRC);
	}
}
