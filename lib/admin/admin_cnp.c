/* SPDX-License-Identifier: BSD-3-Clause */
/* Congestion notifications that the control lcore sends for a QP: knob cc.cnp_path=control. */
#include "ask.h"
#include "admin.h"

/*
 * CC-04: the number of the peer's QP stands in it, not that of a management QP (CC-01). The frame
 * goes out as all frames of the control lcore do.
 */
void
admin_cnp_send(struct admin *adm, const struct mbox_msg *m, uint16_t worker)
{
	struct admin_qp *rec = admin_find(adm, m->cnp.qpn);
	struct wire_template t;
	struct wire_cnp cnp;
	uint8_t *frame = adm->net->frame_tx;
	uint32_t len;

	if (rec != NULL)
		admin_alternate_sync(adm, rec);
	if (rec == NULL || !rec->attached || rec->pending || rec->worker != worker ||
		rec->qp != m->cnp.qp || !rec->attr.path_resolved || rec->port < 0)
		return;
	wire_template_init(&t, &rec->attr.path, rec->attr.pkey, rec->attr.dest_qp_num);
	cnp = admin_knobs_cnp(rec);
	len = wire_cnp_write(&t, frame, &cnp);
	icrc_seal(adm->env->w.crc, frame, t.l3_off, t.ipv6 != 0, len);
	frames_send_cnp(adm->net,
		&(struct frames_cnp){
			rec->qpn, (uint16_t)rec->port, rec->worker, rec->attr.path.local },
		frame, len);
}
