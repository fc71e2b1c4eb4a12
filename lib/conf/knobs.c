/* SPDX-License-Identifier: BSD-3-Clause */
#include "table_rows.h"

#include <string.h>

/* Single choices where readings of the standard differ, their names and their defaults. */

/* clang-format off */
static const struct conf_name off_on[] = { { "off", 0 }, { "on", 1 }, { NULL, 0 } };
static const struct conf_name len_pad[] = {
	{ "nak", CONF_LEN_PAD_NAK }, { "drop", CONF_LEN_PAD_DROP }, { NULL, 0 },
};
static const struct conf_name ip_df[] = {
	{ "ignore", CONF_IP_DF_IGNORE }, { "require", CONF_IP_DF_REQUIRE }, { NULL, 0 },
};
static const struct conf_name udp_checksum[] = {
	{ "ignore", CONF_UDP_CHECKSUM_IGNORE }, { "check", CONF_UDP_CHECKSUM_CHECK }, { NULL, 0 },
};
static const struct conf_name bad_aeth[] = {
	{ "fatal", CONF_BAD_AETH_FATAL }, { "drop", CONF_BAD_AETH_DROP }, { NULL, 0 },
};
static const struct conf_name ack_for_read[] = {
	{ "drop", CONF_ACK_FOR_READ_DROP }, { "fatal", CONF_ACK_FOR_READ_FATAL }, { NULL, 0 },
};
static const struct conf_name early_retry[] = {
	{ "process", CONF_EARLY_RETRY_PROCESS }, { "drop", CONF_EARLY_RETRY_DROP }, { NULL, 0 },
};
static const struct conf_name half_window[] = {
	{ "invalid", CONF_HALF_WINDOW_INVALID }, { "duplicate", CONF_HALF_WINDOW_DUPLICATE }, { NULL, 0 },
};
static const struct conf_name class_j[] = {
	{ "none", CONF_CLASS_J_NONE }, { "ack", CONF_CLASS_J_ACK }, { NULL, 0 },
};
static const struct conf_name imm_access[] = {
	{ "rem_access", CONF_IMM_REM_ACCESS }, { "loc_access", CONF_IMM_LOC_ACCESS }, { NULL, 0 },
};
static const struct conf_name psn_check[] = {
	{ "on", CONF_PSN_CHECK_ON }, { "resync", CONF_PSN_CHECK_RESYNC }, { NULL, 0 },
};
static const struct conf_name cnp_path[] = {
	{ "data", CONF_CNP_PATH_DATA }, { "control", CONF_CNP_PATH_CONTROL }, { NULL, 0 },
};
static const struct conf_name algo[] = {
	{ "ernic_window", CONF_CC_ERNIC_WINDOW }, { "rate", CONF_CC_RATE }, { "none", CONF_CC_NONE },
	{ NULL, 0 },
};

#define PSN_WINDOW_MAX 0x7fffff /* 2^23-1 */

#define KNOB_ENUM(m, key, list, bit, value) \
	ROW_ENUM(conf_knobs, m, key, list, WITH(CONF_F_DEFAULT), GIVEN(CONF_KNOB_##bit), DEFAULT(value))
#define KNOB_U32(m, key, lo, hi, bit, value) \
	ROW_U32(conf_knobs, m, key, lo, hi, WITH(CONF_F_DEFAULT), GIVEN(CONF_KNOB_##bit), DEFAULT(value))

static const struct conf_field knob_rows[] = {
	KNOB_ENUM(rx_len_pad_impact, "rx.len_pad_impact", len_pad, LEN_PAD_IMPACT, CONF_LEN_PAD_NAK),
	KNOB_ENUM(rx_ip_df, "rx.ip_df", ip_df, IP_DF, CONF_IP_DF_IGNORE),
	KNOB_ENUM(rx_udp_checksum, "rx.udp_checksum", udp_checksum, UDP_CHECKSUM,
		CONF_UDP_CHECKSUM_IGNORE),
	KNOB_ENUM(rx_check_src_mac, "rx.check_src_mac", off_on, CHECK_SRC_MAC, 0),
	KNOB_ENUM(rx_errbuf, "rx.errbuf", off_on, ERRBUF, 0),
	KNOB_ENUM(req_bad_aeth, "req.bad_aeth", bad_aeth, BAD_AETH, CONF_BAD_AETH_FATAL),
	KNOB_ENUM(req_ack_for_read, "req.ack_for_read", ack_for_read, ACK_FOR_READ, CONF_ACK_FOR_READ_DROP),
	KNOB_U32(req_ackreq_interval, "req.ackreq_interval", 1, PSN_WINDOW_MAX, ACKREQ_INTERVAL, 16),
	KNOB_U32(req_max_outstanding_psn, "req.max_outstanding_psn", 1, PSN_WINDOW_MAX, MAX_OUTSTANDING,
		PSN_WINDOW_MAX),
	KNOB_ENUM(req_credits, "req.credits", off_on, REQ_CREDITS, 0),
	KNOB_ENUM(resp_credits, "resp.credits", off_on, RESP_CREDITS, 0),
	KNOB_ENUM(resp_early_retry, "resp.early_retry", early_retry, EARLY_RETRY, CONF_EARLY_RETRY_PROCESS),
	KNOB_ENUM(resp_half_window, "resp.half_window", half_window, HALF_WINDOW, CONF_HALF_WINDOW_INVALID),
	KNOB_ENUM(resp_class_j_ack, "resp.class_j_ack", class_j, CLASS_J_ACK, CONF_CLASS_J_NONE),
	KNOB_ENUM(resp_imm_access_status, "resp.imm_access_status", imm_access, IMM_ACCESS_STATUS,
		CONF_IMM_REM_ACCESS),
	KNOB_ENUM(resp_psn_check, "resp.psn_check", psn_check, PSN_CHECK, CONF_PSN_CHECK_ON),
	KNOB_U32(tmr_min_timeout, "tmr.min_timeout", 0, 31, MIN_TIMEOUT, CONF_DEFAULT_MIN_TIMEOUT),
	KNOB_ENUM(ae_with_cqe, "ae.with_cqe", off_on, WITH_CQE, 0),
	KNOB_ENUM(cc_cnp, "cc.cnp", off_on, CNP, 1),
	KNOB_U32(cc_window, "cc.window", 1, PSN_WINDOW_MAX, WINDOW, CONF_DEFAULT_CC_WINDOW),
	KNOB_U32(cc_cnp_interval, "cc.cnp_interval", 0, 1000000, CNP_INTERVAL, 50),
	KNOB_U32(cc_cnp_dscp, "cc.cnp_dscp", 0, 63, CNP_DSCP, 48),
	KNOB_U32(cc_cnp_802p_prio, "cc.cnp_802p_prio", 0, 7, CNP_802P_PRIO, 6),
	KNOB_ENUM(cc_cnp_path, "cc.cnp_path", cnp_path, CNP_PATH, CONF_CNP_PATH_DATA),
	KNOB_ENUM(cc_algo, "cc.algo", algo, ALGO, CONF_CC_ERNIC_WINDOW),
};
const struct conf_table conf_table_knobs = { .name = "knobs", TABLE_ROWS(knob_rows),
	.size = sizeof(struct conf_knobs), .given_offset = offsetof(struct conf_knobs, given),
	.sparse = true };
/* clang-format on */

/* What a profile chooses; everything else is the same in both. */
static void
set_profile(struct conf_knobs *k, enum conf_profile profile)
{
	const bool ernic = profile == CONF_PROFILE_ERNIC;

	k->profile = profile;
	k->rx_len_pad_impact = ernic ? CONF_LEN_PAD_DROP : CONF_LEN_PAD_NAK;
	k->rx_ip_df = ernic ? CONF_IP_DF_REQUIRE : CONF_IP_DF_IGNORE;
	k->rx_check_src_mac = ernic ? 1 : 0;
	k->req_bad_aeth = ernic ? CONF_BAD_AETH_DROP : CONF_BAD_AETH_FATAL;
	k->cc_window = ernic ? CONF_ERNIC_CC_WINDOW : CONF_DEFAULT_CC_WINDOW;
}

static void
set_given(struct conf_knobs *to, const struct conf_knobs *from)
{
	for (uint32_t i = 0; i < ARRAY_LEN(knob_rows); i++) {
		const uint32_t at = knob_rows[i].offset;

		if ((from->given & knob_rows[i].given) != 0)
			memcpy((uint8_t *)to + at, (const uint8_t *)from + at, sizeof(uint32_t));
	}
	to->given |= from->given;
}

void
conf_knobs_default(struct conf_knobs *k, enum conf_profile profile)
{
	memset(k, 0, sizeof(*k));
	for (uint32_t i = 0; i < ARRAY_LEN(knob_rows); i++) {
		const uint32_t def = (uint32_t)knob_rows[i].def;

		memcpy((uint8_t *)k + knob_rows[i].offset, &def, sizeof(def));
	}
	set_profile(k, profile);
}

void
conf_knobs_apply(struct conf_knobs *k, enum conf_profile profile)
{
	const struct conf_knobs given = *k;

	conf_knobs_default(k, profile);
	set_given(k, &given);
}

void
conf_qp_knobs(const struct conf_knobs *global, const struct conf_qp *qp, struct conf_knobs *out)
{
	*out = *global;
	if ((qp->given & CONF_QP_PROFILE) != 0)
		set_profile(out, (enum conf_profile)qp->profile);
	if ((qp->given & CONF_QP_KNOBS) != 0)
		set_given(out, &qp->knobs);
}
