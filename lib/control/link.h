/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_LINK_H
#define CONTROL_LINK_H
/**
 * @file link.h  Is a port's link up? The driver's word, and the kernel's where it has an interface.
 *
 * Owner:   control lcore.
 * Memory:  none.
 * Depends: DPDK.
 * Spec:    AE-07.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>

struct link_view {
	bool up;
	uint32_t speed_mbps; /* 0: not known */
};

/** @return 0; -ENODEV: the device is gone; another -errno: the driver cannot tell. A few us. */
int link_look(uint16_t port, struct link_view *out);

#endif
