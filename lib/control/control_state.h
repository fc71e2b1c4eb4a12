/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_STATE_H
#define CONTROL_STATE_H
/**
 * @file control_state.h  The control lcore's whole state. For control.c, and for tests of it.
 *
 * Owner:   control lcore.
 * Memory:  one allocation, with what its parts allocate.
 * Depends: all modules of the control lcore.
 */
#include "control.h"
#include "methods.h"

struct control {
	struct env env;
	struct objects objects;
	struct net net;
	struct admin admin;
	struct connect connect;
	struct diagnose diagnose;
	struct rpc_server server;
	struct apps apps;
	struct methods methods;
};

#endif
