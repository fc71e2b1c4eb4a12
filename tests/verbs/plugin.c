/* SPDX-License-Identifier: BSD-3-Clause */
/* A plugin that registers what it is given, and leaves it so. */
#include <stddef.h>

#include <infiniband/verbs.h>

int plugin_use(void *at, size_t len);

int
plugin_use(void *at, size_t len)
{
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list != NULL ? ibv_open_device(list[0]) : NULL;
	struct ibv_pd *pd = ctx != NULL ? ibv_alloc_pd(ctx) : NULL;

	return pd != NULL && ibv_reg_mr(pd, at, len, IBV_ACCESS_LOCAL_WRITE) != NULL ? 0 : -1;
}
