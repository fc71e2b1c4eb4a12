/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef CONTROL_INTERNAL_H
#define CONTROL_INTERNAL_H
/**
 * @file internal.h  Inside lib/control: the control lcore's whole state.
 *
 * Owner:   control lcore.
 * Memory:  one allocation, with what its parts allocate.
 * Depends: all of lib/control.
 */
#include "ask.h"
#include "client.h"
#include "control.h"
#include "diagnose.h"
#include "net.h"
#include "object_notify.h"
#include "objects.h"
#include "qp_admin.h"
#include "regions.h"
#include "rpc_server.h"
#include "wall.h"

struct control {
	struct env env;
	struct objects objects;
	struct net net;
	struct admin admin;
	struct diagnose diagnose;
	struct rpc_server server;
	struct clients clients;
};

#endif
