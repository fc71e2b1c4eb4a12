/* SPDX-License-Identifier: BSD-3-Clause */
#include "capture.h"

#include <stdbool.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_pdump.h>

#include "compiler.h"
#include "log.h"

static bool started;

static int
ignore(const struct rte_mp_msg *msg UNUSED, const void *peer UNUSED)
{
	return 0;
}

/* Can other processes attach? EAL says so only to who wants to hear of them. */
static bool
is_shared(void)
{
	static const char name[] = "rocelane_capture";

	if (rte_mp_action_register(name, ignore) != 0)
		return false;
	rte_mp_action_unregister(name);
	return true;
}

void
capture_start(void)
{
	if (!is_shared())
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
