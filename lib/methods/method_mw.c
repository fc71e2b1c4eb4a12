/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of memory windows, and what BIND_MW and LOCAL_INV say of them. */
#include <errno.h>
#include <string.h>

#include "mem_window.h"
#include "method_mw.h"
#include "ring_send.h"

struct p_mw_alloc {
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint32_t type;
};

static const struct conf_field alloc_rows[] = {
	P_NAME(p_mw_alloc, name, P_OPTIONAL),
	P_NAME(p_mw_alloc, pd, P_REQUIRED),
	P_U32(p_mw_alloc, type, 1, 2, P_DEFAULT(1)),
};
static const struct conf_table alloc_table = P_TABLE(p_mw_alloc, alloc_rows, "params");

static const struct conf_field bind_rows[] = {
	P_NAME(p_bind_mw, mw, P_REQUIRED),
	P_U32(p_bind_mw, rkey, 0, UINT32_MAX, P_DEFAULT(0)),
	P_NAME(p_bind_mw, mr, P_OPTIONAL),
	P_U64(p_bind_mw, addr, P_DEFAULT(0)),
	P_SIZE64(p_bind_mw, length, P_REQUIRED),
	{ .name = "mw_access_flags",
		.type = CONF_T_FLAGS,
		.offset = offsetof(struct p_bind_mw, mw_access_flags),
		.names = conf_names_access,
		.flags = CONF_F_NULL },
};

static void
check_bind(void *obj, enum conf_mode mode UNUSED, struct conf_errors *err)
{
	const struct p_bind_mw *b = obj;

	if (b->length != 0 && b->mr[0] == '\0')
		conf_fault(err, "mr", "is required, unless length is 0");
}

const struct conf_table method_bind_table = { .name = "bind_mw",
	.fields = bind_rows,
	.n_fields = ARRAY_LEN(bind_rows),
	.size = sizeof(struct p_bind_mw),
	.given_offset = CONF_NO_GIVEN,
	.check = check_bind };

int
method_bind_fill(struct rpc_call *call, const struct p_bind_mw *b, struct ring_send_wqe *wqe,
	struct refusal *r)
{
	struct object_mw *mw = object_mw_find(call->m->objects, b->mw, r);
	uint32_t lkey = 0;

	if (mw == NULL)
		return -ENOENT;
	if (b->mr[0] != '\0') {
		const struct object_mr *mr = object_mr_find(call->m->objects, b->mr, r);

		if (mr == NULL)
			return -ENOENT;
		lkey = mr->region->key;
	}
	wqe->rkey = mw->window->r.key;
	wqe->imm = b->rkey;
	wqe->remote_addr = b->addr;
	wqe->compare_add = b->length;
	wqe->swap = RING_BIND(lkey, b->mw_access_flags);
	return 0;
}

static int
mw_alloc(struct rpc_call *call)
{
	const struct p_mw_alloc *p = call->params;
	struct refusal r;
	struct object_pd *pd = object_pd_find(call->m->objects, p->pd, &r);
	struct object_mw *mw;

	if (pd == NULL || object_mw_alloc(call->m->objects, pd, p->type, p->name, &mw, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, object_mw_json(call->m->objects, mw));
}

static int
mw_dealloc(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_mw *mw = object_mw_find(call->m->objects, p->name, &r);

	if (mw == NULL)
		return rpc_refused(call, &r);
	object_mw_dealloc(call->m->objects, mw);
	return rpc_result(call, json_object());
}

static int
mw_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->mws.all, all)
		list = conf_json_append(
			list, object_mw_json(call->m->objects, (struct object_mw *)(void *)o));
	return rpc_result(call, list);
}

const struct rpc_method methods_mw[] = {
	{ "mw_alloc", mw_alloc, &alloc_table },
	{ "mw_dealloc", mw_dealloc, &method_name_table },
	{ "mw_list", mw_list, &method_no_params },
	{ NULL, NULL, NULL },
};
