/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_SRQ_H
#define CONF_SRQ_H
/**
 * @file conf_srq.h  A part of conf.h: shared receive queues and XRC domains.
 *
 * Owner:   the configuration's.
 * Memory:  none of its own.
 * Depends: conf.h.
 */
#include "conf.h"

struct conf_xrcd {
	char name[CONF_NAME_MAX];
};

enum conf_srq_type { CONF_SRQ_BASIC, CONF_SRQ_XRC };
enum { CONF_SRQ_XRCD = 1 << 0, CONF_SRQ_CQ = 1 << 1, CONF_SRQ_NUM = 1 << 2 };

struct conf_srq {
	uint64_t given; /* CONF_SRQ_*: of type XRC */
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint32_t max_wr;    /* default 1024 */
	uint32_t max_sge;   /* default 4 */
	uint32_t srq_limit; /* default 0: no event */
	uint32_t srq_type;  /* enum conf_srq_type, default BASIC */
	uint32_t srq_num;   /* what requests name; without CONF_SRQ_NUM the dataplane picks */
	char xrcd[CONF_NAME_MAX];
	char cq[CONF_NAME_MAX];
};

#endif
