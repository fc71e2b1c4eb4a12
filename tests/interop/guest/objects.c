/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and completion queues, by name. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "peer.h"

static const struct word access_words[] = {
	{ "LOCAL_WRITE", IBV_ACCESS_LOCAL_WRITE },
	{ "REMOTE_WRITE", IBV_ACCESS_REMOTE_WRITE },
	{ "REMOTE_READ", IBV_ACCESS_REMOTE_READ },
	{ "REMOTE_ATOMIC", IBV_ACCESS_REMOTE_ATOMIC },
	{ NULL, 0 },
};

struct region *
region_find(struct peer *p, const char *name)
{
	for (int i = 0; i < PEER_OBJECTS; i++) {
		if (p->regions[i].mr != NULL && strcmp(p->regions[i].name, name) == 0)
			return &p->regions[i];
	}
	return NULL;
}

static json_t *
region_json(const struct region *r)
{
	return json_pack("{s:s, s:o, s:o, s:o, s:I}", "name", r->name, "addr",
		value_json_hex((uintptr_t)r->mem), "rkey", value_json_hex(r->mr->rkey), "lkey",
		value_json_hex(r->mr->lkey), "length", (json_int_t)r->length);
}

json_t *
mr_register(struct peer *p, json_t *params)
{
	int access = value_flags(access_words, json_object_get(params, "access"));
	struct region *r = NULL;

	for (int i = 0; i < PEER_OBJECTS && r == NULL; i++) {
		if (p->regions[i].mr == NULL)
			r = &p->regions[i];
	}
	if (r == NULL)
		return peer_fail(ENOSPC, "regions");
	r->length = value_number(params, "length", 4096);
	r->mem = mmap(NULL, r->length, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (r->mem == MAP_FAILED)
		return peer_fail(errno, "mmap");
	r->mr = ibv_reg_mr(p->pd, r->mem, r->length, access);
	if (r->mr == NULL) {
		int err = errno;

		munmap(r->mem, r->length);
		return peer_fail(err, "ibv_reg_mr");
	}
	snprintf(r->name, sizeof(r->name), "%s", value_text(params, "name"));
	return region_json(r);
}

json_t *
mr_deregister(struct peer *p, json_t *params)
{
	struct region *r = region_find(p, value_text(params, "name"));
	int err;

	if (r == NULL)
		return peer_fail(ENOENT, "name");
	err = ibv_dereg_mr(r->mr);
	if (err != 0)
		return peer_fail(err, "ibv_dereg_mr");
	munmap(r->mem, r->length);
	r->mr = NULL;
	return json_object();
}

/* The part of a region that {name, offset, length} means; NULL where there is none. */
static uint8_t *
part(struct peer *p, json_t *params, size_t *length)
{
	struct region *r = region_find(p, value_text(params, "name"));
	size_t offset = value_number(params, "offset", 0);

	if (r == NULL || offset > r->length)
		return peer_fail(ENOENT, "region"), NULL;
	*length = value_number(params, "length", r->length - offset);
	if (*length > r->length - offset)
		return peer_fail(ERANGE, "region"), NULL;
	return r->mem + offset;
}

json_t *
mr_read(struct peer *p, json_t *params)
{
	static const char digits[] = "0123456789abcdef";
	size_t length;
	uint8_t *at = part(p, params, &length);
	json_t *result;
	char *hex;

	if (at == NULL)
		return NULL;
	hex = malloc(2 * length + 1);
	if (hex == NULL)
		return peer_fail(ENOMEM, "mr_read");
	for (size_t i = 0; i < length; i++) {
		hex[2 * i] = digits[at[i] >> 4];
		hex[2 * i + 1] = digits[at[i] & 15];
	}
	result = json_pack("{s:s#}", "data", hex, (int)(2 * length));
	free(hex);
	return result;
}

json_t *
mr_write(struct peer *p, json_t *params)
{
	const char *hex = value_text(params, "data");
	size_t length;
	uint8_t *at = part(p, params, &length);

	if (at == NULL)
		return NULL;
	value_hex(hex, at, length);
	return json_object();
}

json_t *
mr_crc(struct peer *p, json_t *params)
{
	size_t length;
	uint8_t *at = part(p, params, &length);

	if (at == NULL)
		return NULL;
	return json_pack("{s:I}", "crc32", (json_int_t)value_crc32(at, length));
}

struct ibv_cq *
queue_find(struct peer *p, const char *name)
{
	for (int i = 0; i < PEER_OBJECTS; i++) {
		if (p->queues[i].cq != NULL && strcmp(p->queues[i].name, name) == 0)
			return p->queues[i].cq;
	}
	return NULL;
}

json_t *
cq_create(struct peer *p, json_t *params)
{
	int cqe = (int)value_number(params, "cqe", 1024);

	for (int i = 0; i < PEER_OBJECTS; i++) {
		struct queue *q = &p->queues[i];

		if (q->cq != NULL)
			continue;
		q->cq = ibv_create_cq(p->ctx, cqe, NULL, NULL, 0);
		if (q->cq == NULL)
			return peer_fail(errno, "ibv_create_cq");
		snprintf(q->name, sizeof(q->name), "%s", value_text(params, "name"));
		return json_pack("{s:s, s:i}", "name", q->name, "cqe", q->cq->cqe);
	}
	return peer_fail(ENOSPC, "completion queues");
}

json_t *
cq_destroy(struct peer *p, json_t *params)
{
	for (int i = 0; i < PEER_OBJECTS; i++) {
		struct queue *q = &p->queues[i];
		int err;

		if (q->cq == NULL || strcmp(q->name, value_text(params, "name")) != 0)
			continue;
		err = ibv_destroy_cq(q->cq);
		if (err != 0)
			return peer_fail(err, "ibv_destroy_cq");
		q->cq = NULL;
		return json_object();
	}
	return peer_fail(ENOENT, "name");
}
