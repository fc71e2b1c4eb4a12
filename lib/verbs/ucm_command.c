/* SPDX-License-Identifier: BSD-3-Clause */
/* Commands to /dev/infiniband/rdma_cm, and the ids that they name. */
#include <stdlib.h>
#include <string.h>
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/random.h>

#include "cancel.h"
#include "ucm.h"

#define PORT_ANY               0x8000u /* and above */
#define REJECTED_BY_PROGRAM    28
#define REJECTED_VENDOR_OPTION 35

/* ---- ids ------------------------------------------------------------------------------------- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ucm_id **ids; /* by number */
static uint32_t ids_n;

/* Lock held. @return a number that nobody has; ids_n: no memory. */
static uint32_t
free_number(void)
{
	struct ucm_id **more;
	const uint32_t n = ids_n;

	for (uint32_t i = 0; i < n; i++) {
		if (ids[i] == NULL)
			return i;
	}
	more = reallocarray(ids, n + 64u, sizeof(ids[0]));
	if (more == NULL)
		return n;
	ids = more;
	ids_n = n + 64;
	memset(&ids[n], 0, 64 * sizeof(ids[0]));
	return n;
}

struct ucm_id *
ucm_id_new(struct rl_cm_id *rl)
{
	struct ucm_id *id = calloc(1, sizeof(*id));

	if (id == NULL)
		return NULL;
	id->rl = rl;
	pthread_mutex_lock(&lock);
	id->number = free_number();
	if (id->number < ids_n) {
		ids[id->number] = id;
		rl->id_context = id;
	} else {
		free(id);
		id = NULL;
	}
	pthread_mutex_unlock(&lock);
	return id;
}

static struct ucm_id *
id_of(uint32_t number)
{
	struct ucm_id *id;

	pthread_mutex_lock(&lock);
	id = number < ids_n ? ids[number] : NULL;
	pthread_mutex_unlock(&lock);
	return id;
}

/* @return events that were told of it: librdmacm waits until it has seen as many. */
static uint32_t
end_id(struct ucm_id *id)
{
	uint32_t events;

	pthread_mutex_lock(&lock);
	ids[id->number] = NULL;
	pthread_mutex_unlock(&lock);
	ucm_leave_all(id);
	rl_cm_destroy_id(id->rl);
	events = id->events;
	free(id);
	return events;
}

void
ucm_ids_inherited(void)
{
	pthread_mutex_init(&lock, NULL);
	ids = NULL;
	ids_n = 0;
}

static struct ucm_id *
one_of(const struct ucm_file *f)
{
	struct ucm_id *found = NULL;

	pthread_mutex_lock(&lock);
	for (uint32_t i = 0; i < ids_n && found == NULL; i++) {
		if (ids[i] != NULL && ids[i]->rl->channel == f->channel)
			found = ids[i];
	}
	pthread_mutex_unlock(&lock);
	return found;
}

void
ucm_end_ids(struct ucm_file *f)
{
	struct ucm_id *id;

	while ((id = one_of(f)) != NULL)
		end_id(id);
}

/* ---- ids' commands --------------------------------------------------------------------------- */

static int
create_id(const struct ucm_call *call)
{
	const struct rdma_ucm_create_id *c = &call->in->create_id;
	struct rdma_ucm_create_id_resp resp;
	struct rl_cm_id *rl;
	struct ucm_id *id;
	int rc;

	if (c->ps != RDMA_PS_TCP && c->ps != RDMA_PS_UDP && c->ps != RDMA_PS_IB)
		return ucm_fail(EINVAL, "port spaces are TCP, UDP, and IB");
	rc = rl_cm_create_id(call->file->channel, &rl, NULL, (enum rl_cm_port_space)c->ps);
	if (rc != 0)
		return rc;
	rl->qp_type = (enum rl_qp_type)c->qp_type;
	id = ucm_id_new(rl);
	if (id == NULL) {
		rl_cm_destroy_id(rl);
		return ucm_fail(ENOMEM, "out of memory");
	}
	id->uid = c->uid;
	call->file->used = true;
	resp.id = id->number;
	ucm_answer(call, c->response, &resp, sizeof(resp));
	return 0;
}

static int
destroy_id(const struct ucm_call *call)
{
	struct rdma_ucm_destroy_id_resp resp;

	resp.events_reported = end_id(call->id);
	ucm_answer(call, call->in->destroy_id.response, &resp, sizeof(resp));
	return 0;
}

static int
migrate_id(const struct ucm_call *call)
{
	struct rdma_ucm_migrate_resp resp;
	const int rc = rl_cm_migrate_id(call->id->rl, call->file->channel);

	if (rc != 0)
		return rc;
	call->file->used = true;
	resp.events_reported = call->id->events;
	ucm_answer(call, call->in->migrate_id.response, &resp, sizeof(resp));
	return 0;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* A client's. Others may have the same one. */
static void
give_port(struct sockaddr *addr)
{
	/* At the same place in both families. */
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)addr;
	uint16_t port = 0;

	if (in->sin_port != 0 || getrandom(&port, sizeof(port), GRND_NONBLOCK) != sizeof(port))
		return;
	in->sin_port = htons(PORT_ANY | (port & (PORT_ANY - 1)));
}

/* As the kernel: who is bound to an address of IPv4 is asked by IPv4 alone. */
static int
bind_to(struct ucm_id *id, const struct sockaddr *addr)
{
	if (addr->sa_family == AF_INET && !id->afonly)
		rl_cm_set_afonly(id->rl, true);
	return rl_cm_bind_addr(id->rl, addr);
}

static int
bind_ip(const struct ucm_call *call)
{
	struct sockaddr_in6 to = call->in->bind_ip.addr;
	struct sockaddr *addr = (struct sockaddr *)&to;

	/* The kernel takes it for no address: the id has no device yet. */
	call->id->loopback = ucm_is_loopback(addr);
	if (call->id->loopback)
		ucm_make_any(addr);
	return bind_to(call->id, addr);
}

/* What the id is bound to, or is to be, and the peer: both IPv4, or both IPv6. */
static bool
are_of_a_family(struct rl_cm_id *rl, const struct sockaddr_in6 *src, const struct sockaddr_in6 *dst)
{
	const sa_family_t own = rl_cm_get_local_addr(rl)->sa_family;
	const sa_family_t family = own != 0 ? own : src->sin6_family;

	return family == 0 || family == dst->sin6_family;
}

/*
 * The kernel binds an id that is not bound, and then resolves: who is told of the end, perhaps in
 * another thread, finds the port that the id has. One that is bound keeps its port.
 * @param from in: what the program names; out: the same, with that port.
 * @return from; NULL: it names no address but that of the machine.
 */
static const struct sockaddr *
bind_source(struct rl_cm_id *rl, struct sockaddr_in6 *from)
{
	struct sockaddr *source = (struct sockaddr *)from;
	const bool given = source->sa_family != 0 && !ucm_is_loopback(source);
	/* At the same place in both families. */
	struct sockaddr_in *own = (struct sockaddr_in *)(void *)rl_cm_get_local_addr(rl);
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)from;

	if (in->sin_port == 0)
		in->sin_port = own->sin_port;
	give_port(source);
	if (given)
		return source;
	if (own->sin_port == 0)
		own->sin_port = in->sin_port;
	return NULL;
}

static int
resolve_ip(const struct ucm_call *call)
{
	const struct rdma_ucm_resolve_ip *c = &call->in->resolve_ip;
	struct rl_cm_id *rl = call->id->rl;
	struct sockaddr_in6 dst = c->dst_addr, from = c->src_addr;
	struct sockaddr *to = (struct sockaddr *)&dst;
	const struct sockaddr *source;
	int rc = 0;

	if (!are_of_a_family(rl, &from, &dst))
		return ucm_fail(EINVAL, "one end is IPv4, the other IPv6");
	source = bind_source(rl, &from);
	if (ucm_is_any(to) || ucm_is_loopback(to))
		rc = ucm_to_self(call->file->channel->context,
			source != NULL ? source : rl_cm_get_local_addr(rl), to);
	return rc != 0 ? rc : rl_cm_resolve_addr(rl, source, to, (int)c->timeout_ms);
}

static int
resolve_route(const struct ucm_call *call)
{
	int rc;

	if (call->id->routed)
		return ucm_fail(EINVAL, "the route is resolved");
	call->id->routed = true; /* another thread may be told at once */
	rc = rl_cm_resolve_route(call->id->rl, (int)call->in->resolve_route.timeout_ms);
	if (rc != 0)
		call->id->routed = false;
	return rc;
}

/* ---- connections ----------------------------------------------------------------------------- */

static struct rl_cm_conn_param
param_of(const struct rdma_ucm_conn_param *p)
{
	return (struct rl_cm_conn_param){ .private_data = p->private_data,
		.private_data_len = p->private_data_len,
		.responder_resources = p->responder_resources,
		.initiator_depth = p->initiator_depth,
		.flow_control = p->flow_control,
		.retry_count = p->retry_count,
		.rnr_retry_count = p->rnr_retry_count,
		.srq = p->srq,
		.qp_num = p->qp_num };
}

static int
connect_to(const struct ucm_call *call)
{
	struct rl_cm_conn_param param = param_of(&call->in->connect.conn_param);

	if (!call->id->routed)
		return ucm_fail(EINVAL, "the route is not resolved");
	return rl_cm_connect(call->id->rl, &param);
}

static int
listen_at(const struct ucm_call *call)
{
	const struct sockaddr_in any = { .sin_family = AF_INET };
	struct ucm_id *id = call->id;
	int rc = 0;

	/* The kernel binds an id that is not bound. */
	if (rl_cm_get_local_addr(id->rl)->sa_family == 0)
		rc = bind_to(id, (const struct sockaddr *)&any);
	if (rc == 0)
		rc = rl_cm_listen(id->rl, (int)call->in->listen.backlog);
	if (rc == 0)
		id->listens = true;
	return rc;
}

static int
accept_it(const struct ucm_call *call)
{
	struct rl_cm_conn_param param = param_of(&call->in->accept.conn_param);
	int rc;

	/* Without parameters it follows a CONNECT_RESPONSE: the QP is in RTS. */
	if (call->in->accept.conn_param.valid == 0)
		return rl_cm_establish(call->id->rl);
	call->id->uid = call->in->accept.uid; /* events may come at once */
	rc = rl_cm_accept(call->id->rl, &param);
	if (rc != 0) /* as the kernel does it: the peer is not left waiting */
		rl_cm_reject(call->id->rl, NULL, 0);
	return rc;
}

static int
reject_it(const struct ucm_call *call)
{
	const struct rdma_ucm_reject *c = &call->in->reject;
	const uint8_t reason = c->reason != 0 ? c->reason : REJECTED_BY_PROGRAM;

	if (reason != REJECTED_BY_PROGRAM && reason != REJECTED_VENDOR_OPTION)
		return ucm_fail(EINVAL, "a program may give reasons 28 and 35");
	return rl_cm_reject_because(call->id->rl, reason, c->private_data, c->private_data_len);
}

static int
disconnect_it(const struct ucm_call *call)
{
	return rl_cm_disconnect(call->id->rl);
}

/* The dataplane sees by itself that a peer's first packet is there, or comes by another path. */
static int
notify(const struct ucm_call *call)
{
	const uint32_t event = call->in->notify.event;

	if (call->id->rl->port_num == 0 ||
		(event != IBV_EVENT_COMM_EST && event != IBV_EVENT_PATH_MIG))
		return ucm_fail(EINVAL, "no device yet, or an event that says nothing to it");
	return 0;
}

/* ---- the device's write() -------------------------------------------------------------------- */

static const struct {
	const char *name;
	ucm_command *run; /* NULL: not here */
	size_t size;      /* at least */
	size_t id;        /* where it names one */
} commands[] = {
#define NAMES_NONE               SIZE_MAX
#define OF(member)               sizeof(((union ucm_in *)0)->member)
#define ROW(cmd, run, member)    WITH(cmd, run, OF(member), offsetof(union ucm_in, member.id))
#define WITH(cmd, run, size, id) [RDMA_USER_CM_CMD_##cmd] = { "rdma_cm " #cmd, run, size, id }
#define NOT_HERE(cmd)            WITH(cmd, NULL, 0, NAMES_NONE)
	WITH(CREATE_ID, create_id, OF(create_id), NAMES_NONE),
	ROW(DESTROY_ID, destroy_id, destroy_id),
	ROW(BIND_IP, bind_ip, bind_ip),
	ROW(RESOLVE_IP, resolve_ip, resolve_ip),
	ROW(RESOLVE_ROUTE, resolve_route, resolve_route),
	ROW(QUERY_ROUTE, ucm_query_route, query),
	/* Older ones end before `ece`. */
	WITH(CONNECT, connect_to, offsetof(struct rdma_ucm_connect, ece),
		offsetof(union ucm_in, connect.id)),
	ROW(LISTEN, listen_at, listen),
	WITH(ACCEPT, accept_it, offsetof(struct rdma_ucm_accept, ece),
		offsetof(union ucm_in, accept.id)),
	ROW(REJECT, reject_it, reject),
	ROW(DISCONNECT, disconnect_it, disconnect),
	ROW(INIT_QP_ATTR, ucm_init_qp_attr, init_qp_attr),
	WITH(GET_EVENT, ucm_get_event, OF(get_event), NAMES_NONE),
	NOT_HERE(GET_OPTION),
	ROW(SET_OPTION, ucm_set_option, set_option),
	ROW(NOTIFY, notify, notify),
	ROW(JOIN_IP_MCAST, ucm_join_ip, join_ip),
	WITH(LEAVE_MCAST, ucm_leave, OF(destroy_id), NAMES_NONE),
	ROW(MIGRATE_ID, migrate_id, migrate_id),
	NOT_HERE(QUERY),
	NOT_HERE(BIND),
	NOT_HERE(RESOLVE_ADDR),
	NOT_HERE(JOIN_MCAST),
};

static _Thread_local const char *reason; /* NULL: rl_last_error() has it */

int
ucm_fail(int err, const char *why)
{
	reason = why;
	return -err;
}

void
ucm_open_refused(int rc)
{
	/* What it has opened librdmacm goes on with, also for new ids: none of them would work. */
	if (rc == -EIO)
		vl_refused_because("rdma_cm open", ENODEV,
			"the dataplane that this process had its ids with is gone, and librdmacm "
			"keeps the devices that it has opened: start the program again");
	else
		vl_refused("rdma_cm open", -rc);
}

void
ucm_answer(const struct ucm_call *call, uint64_t response, const void *what, size_t size)
{
	memcpy((void *)(uintptr_t)response, what, size < call->room ? size : call->room);
}

static int
run(uint32_t cmd, struct ucm_call *call, size_t len)
{
	const size_t at = commands[cmd].id;
	uint32_t number;

	reason = NULL;
	if (commands[cmd].run == NULL)
		return ucm_fail(EOPNOTSUPP, "not over rocelane");
	if (len < commands[cmd].size)
		return ucm_fail(EINVAL, "the command is too short");
	if (at != NAMES_NONE) {
		memcpy(&number, (const uint8_t *)call->in + at, sizeof(number));
		call->id = id_of(number);
		if (call->id == NULL)
			return ucm_fail(ENOENT, "no such id");
	}
	return commands[cmd].run(call);
}

/* Whoever waits for an event may be cancelled there; no other command is left undone. */
static int
run_whole(uint32_t cmd, struct ucm_call *call, size_t len)
{
	CANCEL_HELD;

	return run(cmd, call, len);
}

ssize_t
ucm_write(struct ucm_file *f, const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr = { 0 };
	union ucm_in in = { 0 };
	struct ucm_call call = { .file = f, .in = &in };
	int rc;

	if (len >= sizeof(hdr))
		memcpy(&hdr, buf, sizeof(hdr));
	if (len < sizeof(hdr) || hdr.in > len - sizeof(hdr)) {
		vl_refused_because("rdma_cm", EINVAL, "the command is cut");
		return -1;
	}
	/* As a kernel does that is older than the program. */
	if (hdr.cmd >= sizeof(commands) / sizeof(commands[0])) {
		vl_refused_because("rdma_cm", EINVAL,
			"a command that is not here: of rdma_resolve_addrinfo(), "
			"rdma_write_cm_event()");
		return -1;
	}
	memcpy(&in, (const uint8_t *)buf + sizeof(hdr), hdr.in < sizeof(in) ? hdr.in : sizeof(in));
	call.room = hdr.out;
	rc = hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT ? run(hdr.cmd, &call, hdr.in)
						   : run_whole(hdr.cmd, &call, hdr.in);
	if (rc == 0)
		return (ssize_t)len;
	if (rc == -EAGAIN)
		errno = EAGAIN;
	else
		vl_refused_because(
			commands[hdr.cmd].name, -rc, reason != NULL ? reason : rl_last_error());
	return -1;
}
