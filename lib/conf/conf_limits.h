/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONF_LIMITS_H
#define CONF_LIMITS_H
/**
 * @file conf_limits.h  A part of conf.h: what applications may have.
 *
 * Owner:   the configuration's.
 * Memory:  none of its own.
 * Depends: nothing.
 */
#include <stdint.h>

/** What all clients of one user may have together; an operator's are not bound by it. */
struct conf_user_limits {
	uint32_t connections;    /* default 80 */
	uint32_t clients;        /* default 64 */
	uint32_t pds;            /* default 4096 */
	uint32_t mrs;            /* default 16384 */
	uint32_t cqs;            /* default 16384 */
	uint32_t srqs;           /* default 4096 */
	uint32_t ahs;            /* default 16384 */
	uint32_t mcasts;         /* default 1024 */
	uint32_t qps;            /* default 16384 */
	uint32_t channels;       /* default 512 */
	uint32_t cm_ids;         /* default 8192 */
	uint32_t cm_listeners;   /* default 64 */
	uint32_t cm_pending;     /* default 256 */
	uint32_t outstanding;    /* default 16777216 */
	uint64_t memory;         /* default 16 GiB */
	uint64_t private_memory; /* default 512 MiB */
};

/** What one client of the host rings may have. */
struct conf_client_limits {
	uint32_t clients;        /* at a time, of all users, default 96 */
	uint32_t pds;            /* default 1024: programs have one for each queue pair */
	uint32_t mrs;            /* default 1024 */
	uint32_t cqs;            /* default 1024 */
	uint32_t srqs;           /* default 256 */
	uint32_t ahs;            /* address handles, default 1024 */
	uint32_t mcasts;         /* QPs in multicast groups, default 256 */
	uint32_t qps;            /* default 1024 */
	uint32_t outstanding;    /* entries of all its work queues, default 1048576 */
	uint32_t channels;       /* of completions and of connections, default 256 */
	uint32_t cm_ids;         /* connections, binds and listeners, default 2048 */
	uint32_t cm_listeners;   /* at ports, default 16 */
	uint32_t cm_pending;     /* begun by peers and not answered, default 128 */
	uint64_t memory;         /* bytes of its regions and rings, default 1 GiB */
	uint64_t private_memory; /* bytes that its QPs take beside them, default 128 MiB */
	uint64_t rate;           /* bytes a second of its requests, at a worker; 0: any */
	uint32_t weight;         /* of its share of a worker, default 1 */
	struct conf_user_limits user;
};

#endif
