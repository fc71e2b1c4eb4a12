/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UCM_H
#define UCM_H
/**
 * @file ucm.h  /dev/infiniband/rdma_cm for librdmacm as it is, over rocelane_cm.h.
 *
 * librdmacm writes commands of rdma_user_cm.h (ABI 4) to that device. librocelane-rdmacm.so, which
 * rocelane-run preloads, opens a channel of the dataplane in its place:
 *
 * ucm_file.c  open, write, fstat, close    ucm_command.c  commands    ucm_query.c  what is known
 * ucm_event.c events                         ucm_mcast.c    groups
 * ucm_option.c options                       ifaddrs.c      getifaddrs(): ports' addresses
 *
 * Owner:   any thread, as librdmacm's; librocelane has the locks. A copy of the process has none
 *          of it.
 * Memory:  a file until its descriptor is closed and no call is under way; an id until DESTROY_ID
 *          or its file's end.
 * Depends: vl.h, rocelane_cm.h; rdma_user_cm.h of the kernel's headers.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <rdma/rdma_user_cm.h>

#include "vl.h"

#include "include/rocelane_cm.h"

#define UCM_QKEY 0x01234567 /* of all datagrams */

/** An open /dev/infiniband/rdma_cm. */
struct ucm_file {
	struct rl_cm_event_channel *channel;
	pthread_mutex_t getting; /* around GET_EVENT: an id is known before its next event */
	uint32_t users;          /* its descriptor, and each call under way */
	bool _Atomic used;       /* it has had an id */
	struct ucm_file *next;   /* of those that end now */
};

/** librdmacm's id; rl->id_context points to it. */
struct ucm_id {
	uint32_t number;
	struct rl_cm_id *rl;
	_Atomic uint64_t uid;    /* librdmacm's name of it; 0: it has not taken it yet */
	_Atomic uint32_t events; /* that were told */
	bool routed;
	bool listens;
	bool afonly;   /* AFONLY was said, on or off */
	bool loopback; /* bound to 127.0.0.1 or ::1 */
	bool has_timeout;
	uint8_t timeout; /* RDMA_OPTION_ID_ACK_TIMEOUT */
};

/** The part of a command behind its header. */
union ucm_in {
	struct rdma_ucm_create_id create_id;
	struct rdma_ucm_destroy_id destroy_id;
	struct rdma_ucm_bind_ip bind_ip;
	struct rdma_ucm_resolve_ip resolve_ip;
	struct rdma_ucm_resolve_route resolve_route;
	struct rdma_ucm_query query;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_listen listen;
	struct rdma_ucm_accept accept;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_disconnect disconnect;
	struct rdma_ucm_init_qp_attr init_qp_attr;
	struct rdma_ucm_get_event get_event;
	struct rdma_ucm_set_option set_option;
	struct rdma_ucm_notify notify;
	struct rdma_ucm_migrate_id migrate_id;
	struct rdma_ucm_join_ip_mcast join_ip;
};

/** A command that was written. */
struct ucm_call {
	struct ucm_file *file;
	struct ucm_id *id; /* that it names; NULL: it is of a kind that names none */
	const union ucm_in *in;
	size_t room; /* bytes for its response */
};

/** @return 0 or -errno. */
typedef int ucm_command(const struct ucm_call *call);

/** What write() to the file does. @return len, or -1 with errno. */
ssize_t ucm_write(struct ucm_file *f, const void *buf, size_t len);
/** End the ids whose events come on this file. */
void ucm_end_ids(struct ucm_file *f);
/** In a copy of the process: the ids were its parent's, and nobody holds their lock. */
void ucm_ids_inherited(void);
/** The same of groups. */
void ucm_joins_inherited(void);
/** A new id for an id of the library. @return NULL: no memory. */
struct ucm_id *ucm_id_new(struct rl_cm_id *rl);
/** No command works with it; rl_last_error() knows nothing of why. @return -err. */
int ucm_fail(int err, const char *why);
/** The device cannot be opened. @param rc -errno; errno is set. */
void ucm_open_refused(int rc);
/** Write as much of a response as there is room for. */
void ucm_answer(const struct ucm_call *call, uint64_t response, const void *what, size_t size);

/** Does the address say none? */
bool ucm_is_any(const struct sockaddr *addr);
/** Make it say none; its TCP port stays. */
void ucm_make_any(struct sockaddr *addr);
/** Is it one of this host alone, such as 127.0.0.1? */
bool ucm_is_loopback(const struct sockaddr *addr);
/**
 * As the kernel, which takes a destination of this host alone for the first port that is up: put
 * its address, or the one that the id is bound to, in the place of such a destination.
 */
int ucm_to_self(struct rl_context *ctx, const struct sockaddr *own, struct sockaddr *to);

/** An address as librdmacm has it in paths. */
union rl_gid ucm_gid_of(const struct sockaddr *addr);
/** A path from an id's port, as librdmacm reads it. */
void ucm_path_to(struct rl_cm_id *id, const struct rl_ah_attr *from, struct ib_uverbs_ah_attr *to);
/** Its groups are forgotten: the id ends. */
void ucm_leave_all(const struct ucm_id *id);
/** The event of the oldest join of the id that was not told. @return false: none waits. */
bool ucm_joined(struct ucm_id *id, struct rdma_ucm_event_resp *resp);

ucm_command ucm_query_route, ucm_init_qp_attr, ucm_get_event, ucm_join_ip, ucm_leave,
	ucm_set_option;

#endif
