/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names of enumerators. The public header stands alone, for applications: that it has every row of
 * verbs' tables, with the same value, is checked here.
 */
#include "client_priv.h"
#include "verbs.h"

#define SAME(ours, value) _Static_assert((int)RL_##ours == (int)(value), #ours);

#define WC_STATUS(value, name)                      SAME(WC_##name, value)
#define WC_OPCODE(value, name)                      SAME(WC_##name, value)
#define WC_FLAG(bit, name)                          SAME(WC_##name, 1 << (bit))
#define EVENT_TYPE(value, name)                     SAME(EVENT_##name, value)
#define ACCESS_FLAG(bit, name)                      SAME(ACCESS_##name, 1 << (bit))
#define QP_TYPE(value, name)                        SAME(QPT_##name, value)
#define QP_STATE_NAME(value, name)                  SAME(QPS_##name, value)
#define MIG_STATE(value, name)                      SAME(MIG_##name, value)
#define QP_ATTR(bit, name)                          SAME(QP_##name, 1 << (bit))
#define WR_OPCODE(value, name, completion, has, on) SAME(WR_##name, value)
#define SEND_FLAG(bit, name)                        SAME(SEND_##name, 1 << (bit))
#include "tables/access_flags.def"
#include "tables/event_types.def"
#include "tables/mig_states.def"
#include "tables/qp_attrs.def"
#include "tables/qp_state_names.def"
#include "tables/qp_types.def"
#include "tables/send_flags.def"
#include "tables/wc_flags.def"
#include "tables/wc_opcodes.def"
#include "tables/wc_statuses.def"
#include "tables/wr_opcodes.def"

const char *
rl_wc_status_str(enum rl_wc_status status)
{
	return verbs_wc_status_name(status);
}

const char *
rl_event_type_str(enum rl_event_type event)
{
	return verbs_event_name(event);
}

const char *
rl_qp_state_str(enum rl_qp_state state)
{
	return verbs_qp_state_name(state);
}
