/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs hear: a bounded queue, and whoever follows. */
#include <arpa/inet.h>
#include <string.h>

#include "conf_json_value.h"
#include "connect_client.h"
#include "connect_priv.h"
#include "wall.h"

static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

void
connect_gid_text(const uint8_t gid[16], char *buf, size_t room)
{
	const bool ipv4 = memcmp(gid, mapped, sizeof(mapped)) == 0;

	if (inet_ntop(ipv4 ? AF_INET : AF_INET6, ipv4 ? gid + 12 : gid, buf, (socklen_t)room) ==
		NULL)
		buf[0] = '\0';
}

void
connect_gid(const struct conf_ip *ip, uint8_t gid[16])
{
	memcpy(gid, mapped, sizeof(mapped));
	if (ip->family == 4)
		memcpy(gid + 12, ip->addr, 4);
	else
		memcpy(gid, ip->addr, 16);
}

void
connect_event(struct connect *cx, struct connect_conn *cc, const struct cm_verdict *v)
{
	const struct cm_conn *c = v->conn;
	struct connect_event e = { .time_ns = cx->env->now,
		.id = cc->id,
		.qpn = cc->qpn,
		.peer_qpn = c->peer.qpn,
		.peer_qkey = c->peer.qkey,
		.status = v->status,
		.event = v->event };

	if (cc->foreign) {
		connect_client_event(cx, cc, v);
		return;
	}
	if (c->active)
		e.peer_port = (uint16_t)c->service_id;
	memcpy(e.peer_gid, c->path.peer_gid, 16);
	memcpy(e.listener, cc->listener, sizeof(e.listener));
	e.private_len = c->private_len;
	memcpy(e.private, c->private, c->private_len);
	if (cx->up.event != NULL && cx->up.event(cx->up.ctx, &e) != 0)
		return;
	if (cx->events.n == CONNECT_EVENTS) {
		cx->events.head = (cx->events.head + 1) % CONNECT_EVENTS;
		cx->events.n--;
		cx->events.lost++;
	}
	cx->events.at[(cx->events.head + cx->events.n++) % CONNECT_EVENTS] = e;
}

json_t *
connect_hex(const uint8_t *bytes, uint32_t n)
{
	static const char digits[] = "0123456789abcdef";
	char text[2 * CM_PRIVATE_MAX];

	for (uint32_t i = 0; i < n; i++) {
		text[2 * i] = digits[bytes[i] >> 4];
		text[2 * i + 1] = digits[bytes[i] & 15];
	}
	return json_stringn(text, 2 * n);
}

json_t *
connect_event_json(struct connect *cx, const struct connect_event *e)
{
	char ip[INET6_ADDRSTRLEN];
	json_t *o = json_object(), *peer = json_object();

	connect_gid_text(e->peer_gid, ip, sizeof(ip));
	json_object_set_new(peer, "ip", json_string(ip));
	json_object_set_new(
		peer, "service_port", e->peer_port != 0 ? json_integer(e->peer_port) : json_null());
	json_object_set_new(peer, "qp_num", json_integer(e->peer_qpn));
	if (e->peer_qkey != 0)
		json_object_set_new(peer, "qkey", json_integer(e->peer_qkey));
	json_object_set_new(o, "event", json_string(cm_event_name((enum cm_event)e->event)));
	json_object_set_new(o, "id", json_integer(e->id));
	json_object_set_new(
		o, "listener", e->listener[0] != '\0' ? json_string(e->listener) : json_null());
	json_object_set_new(o, "qp_num", json_integer(e->qpn));
	json_object_set_new(o, "status", json_integer(e->status));
	json_object_set_new(o, "private_data", connect_hex(e->private, e->private_len));
	json_object_set_new(o, "peer", peer);
	wall_set(cx->env, o, e->time_ns);
	return o;
}

json_t *
connect_event_take(struct connect *cx)
{
	const struct connect_event *e = &cx->events.at[cx->events.head];

	if (cx->events.n == 0)
		return NULL;
	cx->events.head = (cx->events.head + 1) % CONNECT_EVENTS;
	cx->events.n--;
	return connect_event_json(cx, e);
}
