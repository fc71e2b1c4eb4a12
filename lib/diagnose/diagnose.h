/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef DIAGNOSE_H
#define DIAGNOSE_H
/**
 * @file diagnose.h  What is told of what happened: events, failures, packets that were dropped.
 *
 * Owner:   control lcore.
 * Memory:  part of struct control; the post-mortem and the queue of dropped packets are allocated.
 * Time:    env->now.
 * Depends: admin, net, objects, trace.
 */
#include "errlog.h"
#include "events.h"
#include "explain.h"
#include "post_mortem.h"
#include "admin.h"

/** Upwards: what others have to hear. Set once, by the owner of the loop. */
struct diagnose_up {
	/** An asynchronous event has happened. @return how many took it at once. */
	uint32_t (*event)(void *ctx, const struct event *e);
	void *ctx;
};

struct diagnose {
	struct env *env;
	struct objects *objects;
	struct net *net;
	struct admin *admin;
	struct diagnose_up up;
	uint32_t stories; /* QPs whose flight recorder is kept */
	struct events events;
	struct errlog errlog;
	struct post_mortem post_mortem;
};

/** Counters over all workers, with those of the control lcore itself. @param out overwritten. */
void diagnose_sum(const struct diagnose *dg, struct stats_block *out);

#endif
