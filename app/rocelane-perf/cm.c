/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * -R: both ends meet by the connection manager, without TCP (talk.c has their conversation). The
 * test's queue pairs are connected one after the other, at a service port that the server tells.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "cm.h"

#define LOOK_MS    200
#define RESOLVE_MS 5000
#define TRIES      100 /* of 100 ms: the server may be starting */
#define REJ_NOBODY 8
#define RETRIES    7

/* ---- events ---------------------------------------------------------------------------------- */

static int
unexpected(const struct rl_cm_event *e, enum rl_cm_event_type type)
{
	static const char *const why[] = {
		[REJ_NOBODY] = "nobody listens there", [28] = "refused"
	};
	const char *text = e->event == RL_CM_EVENT_REJECTED && e->status >= 0 &&
					   (size_t)e->status < sizeof(why) / sizeof(why[0])
				   ? why[e->status]
				   : NULL;

	fprintf(stderr, "rocelane-perf: the connection: %s instead of %s (%s%d)\n",
		rl_cm_event_str(e->event), rl_cm_event_str(type), text != NULL ? text : "status ",
		e->status);
	return -1;
}

/* The next event, whatever it is. @return NULL with a message: stopped, or a failure. */
static struct rl_cm_event *
any_event(const struct perf *p, struct rl_cm_event_channel *channel)
{
	struct pollfd fd = { .fd = channel->fd, .events = POLLIN };
	struct rl_cm_event *e;
	int rc;

	while (!work_stopped()) {
		if (poll(&fd, 1, LOOK_MS) > 0) {
			rc = rl_cm_get_event(channel, &e);
			if (rc == 0)
				return e;
			cm_refused("events of connections", rc);
			return NULL;
		}
		if (work_failed(p))
			return NULL;
	}
	fprintf(stderr, "rocelane-perf: stopped\n");
	return NULL;
}

/* The next one of these two has to be this one. @param id out, may be NULL. */
static int
wait_for(const struct perf *p, enum rl_cm_event_type type, struct rl_cm_id **id)
{
	struct rl_cm_event *e = any_event(p, p->cm->channel);
	int rc;

	/* What comes of connections that are over is of no use any more. */
	while (e != NULL && e->event == RL_CM_EVENT_TIMEWAIT_EXIT) {
		rl_cm_ack_event(e);
		e = any_event(p, p->cm->channel);
	}
	if (e == NULL)
		return -1;
	rc = e->event == type ? 0 : unexpected(e, type);
	if (id != NULL)
		*id = e->id;
	rl_cm_ack_event(e);
	return rc;
}

/* ---- the server ------------------------------------------------------------------------------ */

/* -d, -i: at that port's address alone. */
static struct sockaddr_storage
own_address(const struct perf *p, uint16_t service)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_storage a = { .ss_family = AF_INET };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)&a;

	in->sin_port = htons(service);
	if (p->o.device == NULL && p->o.ib_port == 0)
		return a;
	if (memcmp(p->gid.raw, mapped, sizeof(mapped)) == 0) {
		memcpy(&in->sin_addr, p->gid.raw + 12, 4);
	} else {
		a.ss_family = AF_INET6;
		memcpy(&in6->sin6_addr, p->gid.raw, 16);
	}
	return a;
}

static int
listen_at(struct perf *p, struct rl_cm_id **id, enum rl_qp_type type, uint16_t service)
{
	const struct sockaddr_storage at = own_address(p, service);
	int rc = rl_cm_create_id(p->cm->channel, id, NULL, RL_PS_TCP);

	if (rc != 0)
		return cm_refused("listener", rc);
	(*id)->qp_type = type;
	rc = rl_cm_bind_addr(*id, (const struct sockaddr *)&at);
	if (rc == 0)
		rc = rl_cm_listen(*id, 0);
	return rc == 0 ? 0 : cm_refused("the service port (another one for both ends: -p)", rc);
}

static int
serve(struct perf *p)
{
	struct perf_cm *cm = p->cm;
	struct rl_cm_conn_param param = { .rnr_retry_count = RETRIES };
	struct rl_cm_event *e;
	struct rl_cm_id *id;
	in_port_t port;
	int rc;

	if (listen_at(p, &cm->listener, RL_QPT_RC, (uint16_t)p->o.port) != 0 ||
		listen_at(p, &cm->data_listener, p->o.type, 0) != 0)
		return -1;
	if (!p->o.json) {
		printf("\n************************************\n"
		       "* Waiting for client to connect... *\n"
		       "************************************\n");
		fflush(stdout);
	}
	if (wait_for(p, RL_CM_EVENT_CONNECT_REQUEST, &id) != 0 || cm_talk_make(p, id) != 0)
		return -1;
	port = ((struct sockaddr_in *)(void *)rl_cm_get_local_addr(cm->data_listener))->sin_port;
	param.private_data = &port;
	param.private_data_len = sizeof(port);
	rc = rl_cm_accept(id, &param);
	if (rc != 0)
		return cm_refused("the client", rc);
	e = any_event(p, cm->talks);
	if (e == NULL)
		return -1;
	rc = e->event == RL_CM_EVENT_ESTABLISHED ? 0 : unexpected(e, RL_CM_EVENT_ESTABLISHED);
	rl_cm_ack_event(e);
	return rc;
}

/* ---- the client ------------------------------------------------------------------------------ */

static int
find_host(struct perf *p)
{
	struct addrinfo *list;

	if (oob_find_host(p, &list) != 0)
		return -1;
	memcpy(&p->cm->peer, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

/* An id with the way to the peer. */
static int
resolve(struct perf *p, struct rl_cm_id **id)
{
	const struct sockaddr_storage from = own_address(p, 0);
	int rc = rl_cm_create_id(p->cm->channel, id, NULL, RL_PS_TCP);

	if (rc == 0)
		rc = rl_cm_resolve_addr(*id, (const struct sockaddr *)&from,
			(const struct sockaddr *)&p->cm->peer, RESOLVE_MS);
	if (rc != 0)
		return cm_refused(p->o.host, rc);
	if (wait_for(p, RL_CM_EVENT_ADDR_RESOLVED, NULL) != 0)
		return -1;
	rc = rl_cm_resolve_route(*id, RESOLVE_MS);
	if (rc != 0)
		return cm_refused(p->o.host, rc);
	return wait_for(p, RL_CM_EVENT_ROUTE_RESOLVED, NULL);
}

/* One attempt. @return 0, 1: nobody listens there, or -1 with a message. */
static int
dial_once(struct perf *p)
{
	const struct rl_cm_conn_param param = { .retry_count = RETRIES,
		.rnr_retry_count = RETRIES };
	struct perf_cm *cm = p->cm;
	struct rl_cm_event *e;
	struct rl_cm_id *id;
	int rc;

	if (resolve(p, &id) != 0 || cm_talk_make(p, id) != 0)
		return -1;
	rc = rl_cm_connect(id, &param);
	if (rc != 0)
		return cm_refused(p->o.host, rc);
	e = any_event(p, cm->talks);
	if (e == NULL)
		return -1;
	if (e->event == RL_CM_EVENT_ESTABLISHED && e->conn.private_data_len >= 2) {
		/* At the same place in both families. */
		memcpy(&((struct sockaddr_in *)(void *)&cm->peer)->sin_port, e->conn.private_data,
			2);
		rc = 0;
	} else {
		rc = e->event == RL_CM_EVENT_REJECTED && e->status == REJ_NOBODY
			     ? 1
			     : unexpected(e, RL_CM_EVENT_ESTABLISHED);
	}
	rl_cm_ack_event(e);
	return rc;
}

static int
dial(struct perf *p)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	int rc;

	if (find_host(p) != 0)
		return -1;
	for (int i = 0; (rc = dial_once(p)) == 1 && i < TRIES && !work_stopped(); i++) {
		cm_talk_free(p->cm);
		nanosleep(&pause, NULL);
	}
	if (rc == 1)
		fprintf(stderr,
			"rocelane-perf: %s service port %u: nobody listens there; start the server "
			"there first\n",
			p->o.host, p->o.port);
	return rc == 0 ? 0 : -1;
}

int
cm_meet(struct perf *p)
{
	struct perf_cm *cm = p->cm = calloc(1, sizeof(*cm));
	int rc;

	if (cm == NULL)
		return cm_refused("connections", -ENOMEM);
	cm->sock = -1;
	cm->id = calloc(p->o.qps, sizeof(struct rl_cm_id *));
	rc = cm->id != NULL ? rl_cm_create_event_channel(p->ctx, &cm->channel) : -ENOMEM;
	if (rc == 0)
		rc = rl_cm_create_event_channel(p->ctx, &cm->talks);
	if (rc != 0)
		return cm_refused("events of connections", rc);
	if ((p->o.client ? dial(p) : serve(p)) != 0)
		return -1;
	/* The way has chosen the port. */
	p->o.device = NULL;
	p->o.ib_port = cm->talk->port_num;
	if (ends_port(p) != 0)
		return -1;
	return cm_talk_start(p);
}

/* ---- the test's queue pairs ------------------------------------------------------------------ */

static uint8_t
least(uint8_t a, uint32_t b)
{
	return a < b ? a : (uint8_t)b;
}

/* By what the connection says, and the options. */
static int
walk(struct perf *p, struct rl_cm_id *id, uint32_t i)
{
	const enum rl_mtu mtu = (enum rl_mtu)(__builtin_ctz(p->mtu) - 7);
	int rc = 0;

	for (int s = RL_QPS_RTR; rc == 0 && s <= RL_QPS_RTS; s++) {
		struct rl_qp_attr attr = { .qp_state = (enum rl_qp_state)s };
		int mask;

		rc = rl_cm_init_qp_attr(id, &attr, &mask);
		if (attr.path_mtu > mtu)
			attr.path_mtu = mtu;
		attr.max_dest_rd_atomic = least(attr.max_dest_rd_atomic, p->o.out_reads);
		attr.max_rd_atomic = least(attr.max_rd_atomic, p->o.out_reads);
		if (rc == 0)
			rc = rl_modify_qp(p->qp[i], &attr, mask);
	}
	return rc == 0 ? 0 : cm_refused("queue pair to RTS", rc);
}

static struct rl_cm_conn_param
terms(const struct perf *p, uint32_t i)
{
	return (struct rl_cm_conn_param){ .responder_resources = (uint8_t)p->o.out_reads,
		.initiator_depth = (uint8_t)p->o.out_reads,
		.retry_count = RETRIES,
		.rnr_retry_count = RETRIES,
		.qp_num = p->qp[i]->qp_num };
}

static int
connect_one(struct perf *p, uint32_t i)
{
	const struct rl_cm_conn_param param = terms(p, i);
	struct rl_cm_id *id;
	int rc;

	if (resolve(p, &p->cm->id[i]) != 0)
		return -1;
	id = p->cm->id[i];
	id->qp_type = p->o.type;
	rc = rl_cm_set_timeout(id, (uint8_t)p->o.qp_timeout);
	if (rc == 0)
		rc = rl_cm_connect(id, &param);
	if (rc != 0)
		return cm_refused("connect", rc);
	if (wait_for(p, RL_CM_EVENT_CONNECT_RESPONSE, NULL) != 0 || walk(p, id, i) != 0)
		return -1;
	rc = rl_cm_establish(id);
	return rc == 0 ? 0 : cm_refused("connect", rc);
}

static int
accept_one(struct perf *p, uint32_t i)
{
	const struct rl_cm_conn_param param = terms(p, i);
	int rc;

	if (wait_for(p, RL_CM_EVENT_CONNECT_REQUEST, &p->cm->id[i]) != 0 ||
		walk(p, p->cm->id[i], i) != 0)
		return -1;
	rc = rl_cm_accept(p->cm->id[i], &param);
	if (rc != 0)
		return cm_refused("accept", rc);
	return wait_for(p, RL_CM_EVENT_ESTABLISHED, NULL);
}

int
cm_connect(struct perf *p)
{
	for (uint32_t i = 0; i < p->o.qps; i++)
		if ((p->o.client ? connect_one(p, i) : accept_one(p, i)) != 0)
			return -1;
	return 0;
}

void
cm_free(struct perf *p)
{
	struct perf_cm *cm = p->cm;

	if (cm == NULL)
		return;
	cm_talk_end(cm);
	for (uint32_t i = 0; cm->id != NULL && i < p->o.qps; i++)
		if (cm->id[i] != NULL)
			rl_cm_destroy_id(cm->id[i]);
	cm_talk_free(cm);
	if (cm->data_listener != NULL)
		rl_cm_destroy_id(cm->data_listener);
	if (cm->listener != NULL)
		rl_cm_destroy_id(cm->listener);
	free(cm->id);
	free(cm);
	p->cm = NULL;
}
