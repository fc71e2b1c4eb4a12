/* SPDX-License-Identifier: BSD-3-Clause */
/* rdma_set_option(). */
#include <string.h>

#include "ucm.h"

static int
set_flag(struct rl_cm_id *id, const struct rdma_ucm_set_option *o,
	int (*set)(struct rl_cm_id *id, bool on))
{
	int on;

	if (o->optlen != sizeof(on))
		return ucm_fail(EINVAL, "AFONLY and REUSEADDR are an int");
	memcpy(&on, (const void *)(uintptr_t)o->optval, sizeof(on));
	return set(id, on != 0);
}

static int
set_reuseaddr(struct ucm_id *id, const struct rdma_ucm_set_option *o)
{
	if (id->listens)
		return ucm_fail(EINVAL, "who listens is alone at its port");
	return set_flag(id->rl, o, rl_cm_set_reuseaddr);
}

static int
set_afonly(struct ucm_id *id, const struct rdma_ucm_set_option *o)
{
	const int rc = set_flag(id->rl, o, rl_cm_set_afonly);

	if (rc == 0)
		id->afonly = true;
	return rc;
}

/* For the queue pair as it is, 0 for no timer; and the peer is told of it. */
static int
set_ack_timeout(struct ucm_id *id, uint8_t timeout)
{
	const int rc = rl_cm_set_timeout(id->rl, timeout);

	if (rc == 0) {
		id->timeout = timeout;
		id->has_timeout = true;
	}
	return rc;
}

/* An option of one byte. The kernel refuses an int, and so do we. */
static int
set_byte(struct ucm_id *id, const struct rdma_ucm_set_option *o)
{
	const uint8_t *value = (const uint8_t *)(uintptr_t)o->optval;

	if (o->optlen != sizeof(*value))
		return ucm_fail(EINVAL, "TOS and ACK_TIMEOUT are a byte");
	if (o->optname == RDMA_OPTION_ID_TOS)
		return rl_cm_set_tos(id->rl, *value);
	if (id->rl->qp_type != RL_QPT_RC && id->rl->qp_type != RL_QPT_XRC_SEND)
		return ucm_fail(EINVAL, "ACK_TIMEOUT: RC and XRC_SEND have one");
	return set_ack_timeout(id, *value);
}

int
ucm_set_option(const struct ucm_call *call)
{
	const struct rdma_ucm_set_option *o = &call->in->set_option;

	if (o->optlen == 0)
		return ucm_fail(EINVAL, "an option without a value");
	if (o->level == RDMA_OPTION_ID &&
		(o->optname == RDMA_OPTION_ID_TOS || o->optname == RDMA_OPTION_ID_ACK_TIMEOUT))
		return set_byte(call->id, o);
	if (o->level == RDMA_OPTION_ID && o->optname == RDMA_OPTION_ID_REUSEADDR)
		return set_reuseaddr(call->id, o);
	if (o->level == RDMA_OPTION_ID && o->optname == RDMA_OPTION_ID_AFONLY)
		return set_afonly(call->id, o);
	return ucm_fail(ENOSYS, "options are TOS, REUSEADDR, AFONLY and ACK_TIMEOUT");
}
