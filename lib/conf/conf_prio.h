/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_PRIO_H
#define CONF_PRIO_H
/**
 * @file conf_prio.h  A port's "priorities": maps as of `dcb app`, shares, PAUSE frames.
 *
 * Owner:   see conf.h.
 * Memory:  likewise.
 * Depends: base.
 */
#include <stdbool.h>
#include <stdint.h>

#define CONF_PRIO_NONE  0xff
#define CONF_PRIO_PORTS 8u /* that can have priorities */

struct conf_prio {
	uint8_t dscp_prio[64]; /* CONF_PRIO_NONE: not said */
	uint8_t pcp_prio[8];   /* CONF_PRIO_NONE: the tag's own */
	uint8_t default_prio;
	uint8_t weights[8]; /* 0: strict */
	uint32_t *prio_pfc; /* whose PFC frames are obeyed */
	uint32_t n_prio_pfc;
	bool rx_pause;          /* 802.3x frames are */
	uint32_t pause_max;     /* ms, default 200 */
	uint32_t pause_restore; /* ms, default 400 */
};

#endif
