/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef TELEMETRY_H
#define TELEMETRY_H
/**
 * @file telemetry.h  DPDK telemetry under /rocelane/: the counters that the control socket gives.
 *
 * Owner:   registered by the main lcore; the callbacks run in EAL's telemetry thread and only read
 *          counters, which any thread may.
 * Memory:  none; the dataplane must outlive EAL.
 * Depends: dataplane.h, rte_telemetry.
 */
struct dataplane;

/** Register the commands. Without telemetry (--no-telemetry, --no-shconf) nobody calls them. */
void telemetry_register(const struct dataplane *dp);
/** Before the dataplane is destroyed: later calls are refused; waits for one that runs. */
void telemetry_stop(void);

#endif
