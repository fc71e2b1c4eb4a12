/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may become a member of which group, with plain verbs (UD-31). */
#include <arpa/inet.h>

#include "ends.h"

static union ibv_gid
gid_of(const char *ip)
{
	union ibv_gid gid;

	CHECK(inet_pton(AF_INET6, ip, gid.raw) == 1);
	return gid;
}

/* What the call says, and errno as well. */
static int
said(int rc)
{
	CHECK(rc == 0 || rc == errno);
	return rc;
}

int
main(void)
{
	const union ibv_gid group = gid_of("::ffff:239.1.2.3"), group6 = gid_of("ff05::1:3");
	const union ibv_gid host = gid_of("::ffff:10.77.0.2");
	struct ibv_qp_attr a = { .qp_state = IBV_QPS_INIT, .port_num = 1, .qkey = 7 };
	struct ibv_qp_init_attr init = {
		.qp_type = IBV_QPT_UD,
		.cap = { .max_send_wr = 1, .max_recv_wr = 1, .max_send_sge = 1, .max_recv_sge = 1 }
	};
	union ibv_gid more = gid_of("ff05::2:0:0");
	struct ibv_device_attr d;
	struct ibv_qp *ud;
	struct end e[2];

	ends_open(e, 7);
	CHECK(ibv_query_device(e[0].ctx, &d) == 0);
	CHECK(d.max_mcast_grp > 1 && d.max_mcast_qp_attach == d.max_mcast_grp);
	init.send_cq = init.recv_cq = e[0].cq;
	CHECK((ud = ibv_create_qp(e[0].pd, &init)) != NULL);
	CHECK(said(ibv_attach_mcast(ud, &host, 0)) == EINVAL);
	CHECK(ibv_attach_mcast(ud, &group, 0) == 0); /* as the kernel's: in RESET, too */
	CHECK(ibv_modify_qp(ud, &a, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_QKEY) ==
		0);
	CHECK(ibv_attach_mcast(ud, &group, 0) == 0);
	CHECK(ibv_attach_mcast(ud, &group, 0) == 0); /* as the kernel's: it is one already */
	CHECK(ibv_attach_mcast(ud, &group6, 0xffff) == 0);
	CHECK(said(ibv_attach_mcast(ud, &host, 0)) == EINVAL);
	CHECK(said(ibv_attach_mcast(e[0].qp, &group, 0)) == EINVAL); /* RC */
	CHECK(ibv_detach_mcast(ud, &group, 0) == 0);
	CHECK(said(ibv_detach_mcast(ud, &group, 0)) == EINVAL); /* no more */
	CHECK(said(ibv_detach_mcast(e[0].qp, &group, 0)) == EINVAL);
	for (int n = 1; n < d.max_total_mcast_qp_attach; n++) {
		more.raw[14] = (uint8_t)(n >> 8);
		more.raw[15] = (uint8_t)n;
		CHECK(ibv_attach_mcast(ud, &more, 0) == 0);
	}
	more.raw[13] = 1;
	CHECK(said(ibv_attach_mcast(ud, &more, 0)) == ENOSPC);
	/* The kernel does not take a member's queue pair away, either. */
	CHECK(said(ibv_destroy_qp(ud)) == EBUSY);
	more.raw[13] = 0;
	for (int n = 1; n < d.max_total_mcast_qp_attach; n++) {
		more.raw[14] = (uint8_t)(n >> 8);
		more.raw[15] = (uint8_t)n;
		CHECK(ibv_detach_mcast(ud, &more, 0) == 0);
	}
	CHECK(ibv_detach_mcast(ud, &group6, 0) == 0);
	CHECK(ibv_destroy_qp(ud) == 0);
	printf("members\n");
	return 0;
}
