/* SPDX-License-Identifier: BSD-3-Clause */
/* Multicast groups of ids: nobody is asked. Who is to be told the dataplane tells. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "cm.h"
#include "include/rocelane_mcast.h"

static void
gid_of(const void *addr, union rl_gid *gid)
{
	const struct sockaddr_in *in = addr;
	const struct sockaddr_in6 *in6 = addr;

	memset(gid, 0, sizeof(*gid));
	if (in->sin_family == AF_INET6) {
		memcpy(gid->raw, &in6->sin6_addr, sizeof(gid->raw));
	} else {
		gid->raw[10] = gid->raw[11] = 0xff;
		memcpy(&gid->raw[12], &in->sin_addr, sizeof(in->sin_addr));
	}
}

bool
client_cm_is_group(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;

	return a->ss_family == AF_INET6
		       ? IN6_IS_ADDR_MULTICAST(&in6->sin6_addr)
		       : a->ss_family == AF_INET && IN_MULTICAST(ntohl(in->sin_addr.s_addr));
}

/* Is it of the family of v4-mapped addresses, or of the others? */
static bool
is_v4(const union rl_gid *gid)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };

	return memcmp(gid->raw, mapped, sizeof(mapped)) == 0;
}

static bool
is_any(const struct sockaddr_storage *a)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)(const void *)a;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)(const void *)a;

	return a->ss_family == AF_INET6 ? IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr)
					: in->sin_addr.s_addr == 0;
}

static void
take_gid(struct sockaddr_storage *a, const union rl_gid *gid)
{
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)a;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)(void *)a;

	if (a->ss_family == AF_INET6)
		memcpy(&in6->sin6_addr, gid->raw, sizeof(gid->raw));
	else
		memcpy(&in->sin_addr, &gid->raw[12], sizeof(in->sin_addr));
}

/* The port with this address, or the first with one of its family, which it then is. 0: none. */
static uint8_t
port_of(struct rl_context *ctx, struct sockaddr_storage *local)
{
	const bool any = is_any(local);
	union rl_gid want, gid;

	gid_of(local, &want);
	for (uint8_t port = 1; port <= ctx->num_ports; port++) {
		for (int i = 0; rl_query_gid(ctx, port, i, &gid) == 0; i++) {
			if (is_v4(&gid) != (local->ss_family == AF_INET) ||
				(!any && memcmp(&gid, &want, sizeof(gid)) != 0))
				continue;
			take_gid(local, &gid);
			return port;
		}
	}
	return 0;
}

int
client_cm_resolve_group(struct cm_id *id)
{
	if (id->local.ss_family == AF_UNSPEC)
		id->local.ss_family = id->peer.ss_family;
	if (id->local.ss_family != id->peer.ss_family)
		return client_fail(EINVAL, "the group is of another family than the address");
	id->pub.port_num = port_of(id->pub.context, &id->local);
	if (id->pub.port_num == 0)
		return client_fail(EADDRNOTAVAIL, "no port has the address");
	return client_cm_tell(id, RL_CM_EVENT_ADDR_RESOLVED);
}

int
rl_cm_join_multicast(struct rl_cm_id *pub, const struct sockaddr *group)
{
	struct context *ctx = context_of(pub->context);
	struct sockaddr_storage a = { 0 };
	union rl_gid gid;
	int rc = 0;

	memcpy(&a, group,
		group->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6)
					     : sizeof(struct sockaddr_in));
	if (!client_cm_is_group(&a))
		return client_fail(EINVAL, "no multicast address");
	if (pub->port_num == 0)
		return client_fail(EINVAL, "the id has no port yet: resolve an address");
	gid_of(&a, &gid);
	if (pub->qp != NULL)
		rc = rl_attach_mcast(pub->qp, &gid, 0);
	if (rc != 0)
		return rc;
	client_lock(ctx);
	rc = client_cm_tell(cm_id_of(pub), RL_CM_EVENT_MULTICAST_JOIN);
	client_unlock(ctx);
	return rc;
}

int
rl_cm_leave_multicast(struct rl_cm_id *pub, const struct sockaddr *group)
{
	union rl_gid gid;

	gid_of(group, &gid);
	return pub->qp != NULL ? rl_detach_mcast(pub->qp, &gid, 0) : 0;
}
