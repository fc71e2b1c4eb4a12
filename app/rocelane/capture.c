/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <stdbool.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pdump.h>

#include "log.h"
#include "runtime.h"

static bool started;

void
capture_start(void)
{
	if (!runtime_is_shared())
		return;
	started = rte_pdump_init() == 0;
	if (!started)
		log_warn("dpdk-dumpcap cannot capture here: %s (EAL's -m may be too small)",
			rte_strerror(rte_errno));
}

void
capture_stop(void)
{
	if (started)
		rte_pdump_uninit();
	started = false;
}
