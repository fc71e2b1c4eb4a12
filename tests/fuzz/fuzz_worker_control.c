/* SPDX-License-Identifier: BSD-3-Clause */
/* What the control lcore does in a program: byte 1 says what, 2 to which, 3 and 4 how. */
#include <errno.h>

#include "fuzz_worker.h"
#include "qp_snapshot.h"

static void
set_client(const uint8_t *s)
{
	struct mbox_msg m = { .type = MBOX_CLIENT_SET };
	const uint32_t w = s[2] % WORKERS;

	m.client = (struct mbox_client){
		.client = &fw.w[w].client, .rate = (uint64_t)s[3] << 16, .weight = 1 + s[4] % 100
	};
	FUZZ_CHECK(bed_tell(w, &m) == 0);
}

static void
query(uint32_t i)
{
	static struct qp_snapshot snap;
	struct mbox_msg m = { .type = MBOX_QP_QUERY };

	m.query = (struct mbox_query){ fw.q[i].qp, &snap };
	if (fw.q[i].qp != NULL && fw.moving.q != &fw.q[i])
		FUZZ_CHECK(bed_tell(fw.q[i].worker, &m) == 0);
}

static void
fail(const uint8_t *s)
{
	struct qp_bed *q = &fw.q[s[2] % QPS];
	struct mbox_msg m = { .type = MBOX_QP_FAIL };
	int rc;

	if (q->qp == NULL || fw.moving.q == q)
		return;
	m.fail = (struct mbox_fail){ q->qp, s[3], (uint8_t)(s[4] % 4 << 2),
		(uint8_t)(1 + s[5] % 20) };
	rc = bed_tell(q->worker, &m);
	FUZZ_CHECK(rc == 0 || rc == -EALREADY);
}

static void
limit(const uint8_t *s)
{
	struct qp_bed *q = &fw.q[s[2] % QPS];
	struct mbox_msg m = { .type = MBOX_QP_RQ_LIMIT };

	if (q->qp == NULL || (q->plan->how & PLAN_LIMIT) == 0 || fw.moving.q == q)
		return;
	m.limit = (struct mbox_limit){ q->qp, s[3] % ENTRIES };
	FUZZ_CHECK(bed_tell(q->worker, &m) == 0);
}

void
control_step(const uint8_t s[STEP])
{
	switch (s[1] % C_N) {
	case C_STATE:
		bed_state(s[2] % QPS, s[3] % 7);
		break;
	case C_ATTACH:
		bed_attach(s[2] % QPS);
		for (uint8_t to = QPS_INIT; to <= QPS_RTS; to++)
			bed_state(s[2] % QPS, to);
		break;
	case C_DETACH:
		bed_detach(s[2] % QPS);
		break;
	case C_REGION:
		bed_region(s[2] % REGIONS, s[3] % 2);
		break;
	case C_WINDOW:
		bed_window(s[2] % WINDOWS, s[3] % 2);
		break;
	case C_HANDLE:
		bed_handle(s[2] % HANDLES, s[3]);
		break;
	case C_GROUP:
		bed_group(s[2] % GROUPS, s[3] % QPS, s[4] % 2);
		break;
	case C_SRQ:
		atomic_store(&fw.srq[s[2] % SRQS].q.limit, s[4] % ENTRIES);
		bed_srq(s[2] % SRQS, s[3] % 2);
		break;
	case C_QUERY:
		query(s[2] % QPS);
		break;
	case C_MOVE:
		bed_move(s[2] % QPS);
		break;
	case C_MOVED:
		bed_moved();
		break;
	case C_FAIL:
		fail(s);
		break;
	case C_LIMIT:
		limit(s);
		break;
	case C_IMPAIR:
		fw.impaired = s[2] % 2 != 0;
		break;
	case C_MODIFY:
		bed_modify(s[2] % QPS, s);
		break;
	case C_WORK:
		bed_work(s[2] % QPS);
		break;
	case C_DEATH:
		bed_death(s);
		break;
	case C_KNOBS:
		bed_knobs(s[2] % QPS, s);
		break;
	case C_RESIZE:
		bed_resize(s[2] % CQS);
		break;
	default:
		set_client(s);
		break;
	}
}
