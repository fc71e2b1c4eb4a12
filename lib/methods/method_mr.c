/* SPDX-License-Identifier: BSD-3-Clause */
/* Methods of memory regions, and their bytes. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "methods.h"

/* As hexadecimal digits, with the rest of the reply, within one line. */
#define READ_MAX ((RPC_LINE_MAX - 1024) / 2)

struct p_mr_read {
	char name[CONF_NAME_MAX];
	uint64_t offset;
	uint32_t length;
};

static const struct conf_field read_rows[] = {
	P_NAME(p_mr_read, name, P_REQUIRED),
	P_SIZE64(p_mr_read, offset, P_DEFAULT(0)),
	P_SIZE32(p_mr_read, length, READ_MAX, P_REQUIRED),
};
static const struct conf_table read_table = P_TABLE(p_mr_read, read_rows, "params");

struct p_mr_write {
	char name[CONF_NAME_MAX];
	uint64_t offset;
	struct conf_bytes data;
};

static const struct conf_field write_rows[] = {
	P_NAME(p_mr_write, name, P_REQUIRED),
	P_SIZE64(p_mr_write, offset, P_DEFAULT(0)),
	P_NUMBER(p_mr_write, data, CONF_T_HEX, 0, READ_MAX, P_REQUIRED),
};
static const struct conf_table write_table = P_TABLE(p_mr_write, write_rows, "params");

/* As long as the control lcore may be busy with one request: some 30 ms of pattern. */
#define SPAN_MAX (16u << 20)

struct p_mr_fill {
	char name[CONF_NAME_MAX];
	uint64_t offset;
	uint32_t length;
	uint32_t seed;
};

static const struct conf_field fill_rows[] = {
	P_NAME(p_mr_fill, name, P_REQUIRED),
	P_SIZE64(p_mr_fill, offset, P_DEFAULT(0)),
	P_SIZE32(p_mr_fill, length, SPAN_MAX, P_REQUIRED),
	P_U32(p_mr_fill, seed, 0, UINT32_MAX, P_REQUIRED),
};
static const struct conf_table fill_table = P_TABLE(p_mr_fill, fill_rows, "params");

static const struct conf_field crc_rows[] = {
	P_NAME(p_mr_read, name, P_REQUIRED),
	P_SIZE64(p_mr_read, offset, P_DEFAULT(0)),
	P_SIZE32(p_mr_read, length, SPAN_MAX, P_REQUIRED),
};
static const struct conf_table crc_table = P_TABLE(p_mr_read, crc_rows, "params");

enum { REREG_PD = 1, REREG_ACCESS = 2 };

struct p_mr_rereg {
	uint64_t given;
	char name[CONF_NAME_MAX];
	char pd[CONF_NAME_MAX];
	uint32_t access;
};

static const struct conf_field rereg_rows[] = {
	P_NAME(p_mr_rereg, name, P_REQUIRED),
	P_NAME(p_mr_rereg, pd, P_OPTIONAL, .given = REREG_PD),
	{ .name = "access",
		.type = CONF_T_FLAGS,
		.offset = offsetof(struct p_mr_rereg, access),
		.names = conf_names_access,
		P_OPTIONAL,
		.given = REREG_ACCESS },
};
static const struct conf_table rereg_table = P_TABLE_GIVEN(p_mr_rereg, rereg_rows, "params");

static json_t *
mr_json(const struct object_mr *mr)
{
	json_t *o = conf_encode_mr(&mr->conf);
	const bool valid = atomic_load_explicit(&mr->region->valid, memory_order_relaxed);

	if (o == NULL)
		return NULL;
	json_object_set_new(o, "lkey", conf_json_hex(mr->region->key));
	json_object_set_new(o, "valid", json_boolean(valid));
	return o;
}

/* From here on memory is made, and filled, in the connection's thread: 1 GiB takes 5 s. */
#define SLOW_FROM (1u << 20)

void
method_mr_prepare(const void *ctx, struct broker_conn *c UNUSED, struct broker_gift *gift,
	const json_t *params)
{
	const struct rpc_server *srv = ctx;
	struct conf_errors err;
	struct conf_mr conf;
	struct refusal r;

	conf_errors_init(&err);
	/* What is wrong is told, or tried again, by the handler. */
	if (conf_decode(&conf_table_mr, params, CONF_CREATE, &conf, &err) == 0) {
		if (conf.length >= SLOW_FROM)
			gift->rc = object_mr_prepare(srv->env->w.numa_node, &conf, &gift->area, &r);
		conf_release(&conf_table_mr, &conf);
	}
	conf_errors_free(&err);
}

static int
mr_register(struct rpc_call *call)
{
	const struct conf_mr *conf = call->params;
	struct broker_gift *gift = rpc_gift(call);
	const struct object_memory from = {
		.made = gift != NULL && gift->area.base != NULL ? &gift->area : NULL
	};
	struct object_mr *mr;
	struct refusal r;

	/* In the configuration it is where one begins that was ZERO_BASED when it was saved. */
	if ((conf->access & ACCESS_ZERO_BASED) != 0 && (conf->given & CONF_MR_ADDR) != 0 &&
		conf->addr != 0)
		return rpc_invalid(
			call, "addr: goes without ZERO_BASED: the first byte is address 0");
	if (object_mr_create_in(call->m->objects, conf, &from, &mr, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, mr_json(object_mr_find(call->m->objects, conf->name, &r)));
}

/* The operator's regions are the dataplane's memory: they stay where they are. */
static int
mr_rereg(struct rpc_call *call)
{
	const struct p_mr_rereg *p = call->params;
	struct refusal r;
	struct object_mr *mr = object_mr_find(call->m->objects, p->name, &r);
	struct conf_mr conf;
	const char *fault;

	if (mr == NULL)
		return rpc_refused(call, &r);
	conf = mr->conf;
	conf.addr = mr->addr; /* ZERO_BASED may come and go */
	if ((p->given & REREG_PD) != 0)
		memcpy(conf.pd, p->pd, sizeof(conf.pd));
	if ((p->given & REREG_ACCESS) != 0)
		conf.access = p->access;
	fault = verbs_region_fault(conf.access);
	if (fault != NULL)
		return rpc_invalid(call, "access: %s", fault);
	if (object_mr_rereg(call->m->objects, mr, &conf, NULL, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, mr_json(mr));
}

static int
mr_deregister(struct rpc_call *call)
{
	const struct p_name *p = call->params;
	struct refusal r;
	struct object_mr *mr = object_mr_find(call->m->objects, p->name, &r);

	struct broker_conn *home = call->client != NULL ? call->client->conn : NULL;

	if (mr == NULL || object_mr_destroy(call->m->objects, mr, home, &r) != 0)
		return rpc_refused(call, &r);
	return rpc_result(call, json_object());
}

static int
mr_list(struct rpc_call *call)
{
	json_t *list = json_array();
	struct named *o;

	TAILQ_FOREACH (o, &call->m->objects->mrs.all, all)
		list = conf_json_append(list, mr_json((const struct object_mr *)(const void *)o));
	return rpc_result(call, list);
}

/* The bytes asked for, or NULL with the error filled in. */
static uint8_t *
bytes_at(struct rpc_call *call, const char *name, uint64_t offset, uint64_t length)
{
	struct refusal r;
	const struct object_mr *mr = object_mr_find(call->m->objects, name, &r);
	uint64_t room;

	if (mr == NULL) {
		rpc_refused(call, &r);
		return NULL;
	}
	room = mr->region->length;
	if (offset > room || length > room - offset) {
		rpc_invalid(call,
			"%s: offset %" PRIu64 " and length %" PRIu64
			" go beyond the region's %" PRIu64 " bytes",
			offset > room ? "offset" : "length", offset, length, room);
		return NULL;
	}
	return mr->region->host + offset;
}

static int
mr_read(struct rpc_call *call)
{
	static const char digits[] = "0123456789abcdef";
	const struct p_mr_read *p = call->params;
	const uint8_t *from = bytes_at(call, p->name, p->offset, p->length);
	json_t *data;
	char *hex;

	if (from == NULL)
		return -1;
	hex = malloc((size_t)p->length * 2 + 1);
	if (hex == NULL)
		return rpc_result(call, NULL);
	for (uint32_t i = 0; i < p->length; i++) {
		const uint8_t byte = from[i]; /* once: a worker may be writing */

		hex[2 * i] = digits[byte >> 4];
		hex[2 * i + 1] = digits[byte & 15];
	}
	data = json_stringn_nocheck(hex, (size_t)p->length * 2);
	free(hex);
	return rpc_result(call, data != NULL ? json_pack("{s:o}", "data", data) : NULL);
}

static int
mr_write(struct rpc_call *call)
{
	const struct p_mr_write *p = call->params;
	uint8_t *to = bytes_at(call, p->name, p->offset, p->data.len);

	if (to == NULL)
		return -1;
	memcpy(to, p->data.data, p->data.len);
	return rpc_result(call, json_pack("{s:I}", "length", (json_int_t)p->data.len));
}

/* The pattern that "fill": "pattern:SEED" gives the whole region, from byte 0 of the region on. */
static int
mr_fill(struct rpc_call *call)
{
	const struct p_mr_fill *p = call->params;
	uint8_t *to = bytes_at(call, p->name, p->offset, p->length);

	if (to == NULL)
		return -1;
	mem_pattern_fill(to, p->length, p->seed, (uint32_t)p->offset);
	return rpc_result(call, json_pack("{s:I}", "length", (json_int_t)p->length));
}

/* As zlib's crc32() and the crc32 of an Ethernet frame: complemented at both ends. */
static int
mr_crc(struct rpc_call *call)
{
	const struct p_mr_read *p = call->params;
	const struct crc_ops *crc = call->m->env->w.crc;
	const uint8_t *from = bytes_at(call, p->name, p->offset, p->length);
	uint32_t value;

	if (from == NULL)
		return -1;
	value = ~crc->update(UINT32_MAX, from, p->length);
	return rpc_result(call, json_pack("{s:I}", "crc32", (json_int_t)value));
}

const struct rpc_method methods_mr[] = {
	{ "mr_register", mr_register, &conf_table_mr },
	{ "mr_rereg", mr_rereg, &rereg_table },
	{ "mr_deregister", mr_deregister, &method_name_table },
	{ "mr_list", mr_list, &method_no_params },
	{ "mr_read", mr_read, &read_table },
	{ "mr_write", mr_write, &write_table },
	{ "mr_fill", mr_fill, &fill_table },
	{ "mr_crc", mr_crc, &crc_table },
	{ NULL, NULL, NULL },
};
