/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "broker.h"
#include "env.h"
#include "invariant.h"
#include "log.h"
#include "mem_window.h"
#include "objects.h"

/* Below this a 2 MiB page would mostly be air. */
#define HUGE_FROM (512u << 10)

/* An address that the dataplane picks: user space, page-aligned, never 0. */
#define ADDR_MASK UINT64_C(0x00007ffffffff000)

#define ATOMIC_MASK UINT64_C(7)

#define KEY_TRIES 64

/* Bytes that can be had without starving the machine: free, reclaimable, and free hugepages. */
static uint64_t
memory_available(void)
{
	uint64_t available = UINT64_MAX, huge_free = 0, huge_kb = 0;
	FILE *f = fopen("/proc/meminfo", "re");
	char line[128];

	if (f == NULL)
		return UINT64_MAX;
	while (fgets(line, sizeof(line), f) != NULL) {
		uint64_t v;

		if (sscanf(line, "MemAvailable: %" SCNu64, &v) == 1)
			available = v << 10;
		else if (sscanf(line, "HugePages_Free: %" SCNu64, &v) == 1)
			huge_free = v;
		else if (sscanf(line, "Hugepagesize: %" SCNu64, &v) == 1)
			huge_kb = v;
	}
	fclose(f);
	if (available == UINT64_MAX)
		return UINT64_MAX;
	return available + (huge_free * huge_kb << 10);
}

static void
log_memory(struct objects *objs, const struct mem_area *a)
{
	if (objs->memory_logged || a->len < HUGE_FROM)
		return;
	objs->memory_logged = true;
	if (a->page_size > 4096)
		log_info("regions are on hugepages of %zu KiB", a->page_size >> 10);
	else
		log_info("no hugepages free: regions are on pages of %zu KiB", a->page_size >> 10);
}

/*
 * Memory for a region at this virtual address: an ATOMIC's address is a multiple of 8, and has to
 * be one in this process, too (RESP-07).
 */
static int
make_area(int node, uint64_t va, uint64_t bytes, struct mem_area *out, struct refusal *r)
{
	const unsigned int flags = bytes >= HUGE_FROM ? MEM_AREA_HUGE : 0;
	const uint64_t skew = va & ATOMIC_MASK;
	int rc;

	if (bytes >= HUGE_FROM && bytes > memory_available())
		return refuse(r, ENOMEM, "length %" PRIu64 " is more memory than there is", bytes);
	rc = bytes + skew < bytes ? -EINVAL : mem_area_create(out, bytes + skew, node, flags);
	if (rc != 0)
		return refuse(r, -rc, "no memory for a region of %" PRIu64 " bytes: %s", bytes,
			strerror(-rc));
	return 0;
}

static void
region_over(struct objects *objs, struct mem_region *region, uint64_t bytes)
{
	log_memory(objs, &region->area);
	region->host = region->area.base + (region->va & ATOMIC_MASK);
	region->length = bytes;
}

static int
region_memory(struct objects *objs, struct mem_region *region, uint64_t bytes, struct refusal *r)
{
	const int rc = make_area(objs->env->w.numa_node, region->va, bytes, &region->area, r);

	if (rc == 0)
		region_over(objs, region, bytes);
	return rc;
}

static void
fill(const struct conf_mr *conf, uint8_t *host)
{
	if (conf->fill == CONF_FILL_PATTERN)
		mem_pattern_fill(host, conf->length, (uint32_t)conf->fill_seed, 0);
}

int
object_mr_prepare(
	int numa_node, const struct conf_mr *conf, struct mem_area *out, struct refusal *r)
{
	/* What is picked later is a multiple of the page. */
	const uint64_t va = (conf->given & CONF_MR_ADDR) != 0 ? conf->addr : 0;
	const int rc = make_area(numa_node, va, conf->length, out, r);

	if (rc == 0)
		fill(conf, out->base + (va & ATOMIC_MASK));
	return rc;
}

static uint64_t
pick_addr(struct objects *objs, uint64_t bytes)
{
	uint64_t addr;

	do {
		addr = object_random(objs) & ADDR_MASK;
	} while (addr == 0 || addr > ADDR_MASK - bytes);
	return addr;
}

static int
publish(struct objects *objs, struct mem_region *region, bool key_given, struct refusal *r)
{
	int rc = -EEXIST;

	for (unsigned int i = 0; i < KEY_TRIES && rc == -EEXIST; i++) {
		if (!key_given) {
			region->key = (uint32_t)object_random(objs);
			if (region->key == 0)
				continue;
		}
		rc = mem_table_add(objs->env->w.mem, region);
		if (key_given)
			break;
	}
	if (rc == -EEXIST)
		return refuse(r, EEXIST, "rkey 0x%x is in use by another region", region->key);
	if (rc == -ENOSPC)
		return refuse(r, ENOSPC, "the table of memory regions is full");
	if (rc != 0)
		return refuse(r, -rc,
			"addr 0x%" PRIx64 " with length %" PRIu64 " runs over the end of 64 bits",
			region->va, region->length);
	return 0;
}

/* Where its bytes are is the client's choice: what no atomic unit can do is refused here. */
static int
check_atomic(const struct mem_region *region, const struct conf_mr *conf, uint64_t offset,
	struct refusal *r)
{
	if ((conf->access & ACCESS_REMOTE_ATOMIC) == 0 ||
		((region->va ^ (uintptr_t)region->host) & ATOMIC_MASK) == 0)
		return 0;
	return refuse(r, EINVAL,
		"REMOTE_ATOMIC needs addr and offset to have the same remainder by 8, and addr "
		"0x%" PRIx64 " and offset %" PRIu64 " have not: no processor does an ATOMIC on "
		"bytes that lie so; choose another of the two, or leave the right out",
		region->va, offset);
}

static int
mr_fill(struct objects *objs, struct object_mr *mr, const struct conf_mr *conf,
	const struct object_memory *from, struct refusal *r)
{
	struct mem_region *region = mr->region;
	const bool key_given = (conf->given & CONF_MR_RKEY) != 0;
	int rc = 0;

	if ((conf->given & CONF_MR_ADDR) != 0 && conf->addr + conf->length < conf->addr)
		return refuse(r, EINVAL,
			"addr 0x%" PRIx64 " with length %" PRIu64 " runs over the end of 64 bits",
			conf->addr, conf->length);
	if (key_given && mem_table_find(objs->env->w.mem, conf->rkey) != NULL)
		return refuse(r, EEXIST, "rkey 0x%x is in use by another region", conf->rkey);
	mr->addr = (conf->given & CONF_MR_ADDR) != 0 ? conf->addr : pick_addr(objs, conf->length);
	region->va = (conf->access & ACCESS_ZERO_BASED) != 0 ? 0 : mr->addr;
	if (from != NULL && from->host != NULL) {
		region->host = from->host;
		region->length = conf->length;
		rc = check_atomic(region, conf, from->offset, r);
	} else if (from != NULL && from->made != NULL) {
		region->area = *from->made;
		*from->made = (struct mem_area){ .fd = -1, .node = -1 };
		region_over(objs, region, conf->length);
	} else {
		rc = region_memory(objs, region, conf->length, r);
		if (rc == 0)
			fill(conf, region->host);
	}
	if (rc != 0)
		return rc;
	region->key = conf->rkey;
	region->pd = mr->pd->id;
	region->access = (access_t)conf->access;
	region->remote_invalidate = conf->remote_invalidate;
	return publish(objs, region, key_given, r);
}

struct object_mr *
object_mr_find(struct objects *objs, const char *name, struct refusal *r)
{
	return (struct object_mr *)(void *)names_get(&objs->mrs, "mr", name, r);
}

int
object_mr_create(struct objects *objs, const struct conf_mr *conf, struct refusal *r)
{
	struct object_mr *mr;

	return object_mr_create_in(objs, conf, NULL, &mr, r);
}

int
object_mr_create_in(struct objects *objs, const struct conf_mr *conf,
	const struct object_memory *from, struct object_mr **out, struct refusal *r)
{
	struct object_pd *pd = object_pd_find(objs, conf->pd, r);
	struct object_mr *mr;
	int rc;

	if (pd == NULL)
		return -ENOENT;
	rc = names_check(&objs->mrs, "mr", conf->name, r);
	if (rc != 0)
		return rc;
	mr = calloc(1, sizeof(*mr));
	if (mr == NULL)
		return refuse(r, ENOMEM, "out of memory");
	mr->pd = pd;
	mr->region = mem_region_alloc();
	rc = mr->region == NULL ? refuse(r, ENOMEM, "out of memory")
				: mr_fill(objs, mr, conf, from, r);
	if (rc != 0) {
		mem_region_free(mr->region);
		free(mr);
		return rc;
	}
	mr->made_ns = objs->env->now;
	mr->conf = *conf;
	mr->conf.addr = mr->region->va;
	mr->conf.rkey = mr->region->key;
	mr->conf.given |= CONF_MR_ADDR | CONF_MR_RKEY;
	pd->users++;
	*out = mr;
	return names_add(&objs->mrs, &mr->n, conf->name);
}

int
object_mr_rereg(struct objects *objs, struct object_mr *mr, const struct conf_mr *conf,
	const struct object_memory *from, struct refusal *r)
{
	struct object_pd *pd = object_pd_find(objs, conf->pd, r);
	struct mem_region *region = mr->region;
	const struct mem_region next = { .va = (conf->access & ACCESS_ZERO_BASED) != 0 ? 0
										       : conf->addr,
		.length = from != NULL ? conf->length : region->length,
		.host = from != NULL ? from->host : region->host };
	uint32_t windows;
	int rc, added;

	if (pd == NULL)
		return -ENOENT;
	if (next.va + next.length < next.va)
		return refuse(r, EINVAL,
			"addr 0x%" PRIx64 " with length %" PRIu64 " runs over the end of 64 bits",
			next.va, next.length);
	rc = check_atomic(
		&next, conf, from != NULL ? from->offset : (uintptr_t)next.host & ATOMIC_MASK, r);
	if (rc != 0)
		return rc;
	windows = mem_region_claim(region);
	if (windows != 0)
		return refuse(r, EBUSY,
			"%u memory windows are bound to mr \"%s\": invalidate or deallocate them",
			windows, mr->n.name);
	regions_note_gone(objs, mr);
	mem_table_remove(objs->env->w.mem, region->key);
	rc = ask_all(objs->env);
	if (rc == 0) {
		region->va = next.va;
		region->length = next.length;
		region->host = next.host;
		region->pd = pd->id;
		region->access = (access_t)conf->access;
		region->remote_invalidate = conf->remote_invalidate;
	}
	/* Its key is free, and there is room: it was there a moment ago. */
	added = mem_table_add(objs->env->w.mem, region);
	ASSERT(added == 0);
	(void)added;
	if (rc != 0)
		return refuse(r, ETIMEDOUT, "mr \"%s\" is as before: a worker does not answer",
			mr->n.name);
	mr->made_ns = objs->env->now;
	mr->pd->users--;
	pd->users++;
	mr->pd = pd;
	memcpy(mr->conf.pd, conf->pd, sizeof(mr->conf.pd));
	mr->conf.access = conf->access;
	mr->conf.remote_invalidate = conf->remote_invalidate;
	mr->conf.addr = next.va;
	mr->addr = conf->addr;
	mr->conf.length = next.length;
	return 0;
}

/* @return false: a worker did not answer, and may still be at it. It is given back later. */
static bool
let_go(struct objects *objs, struct mem_region *region, struct broker_memory *memory)
{
	mem_table_remove(objs->env->w.mem, region->key);
	if (ask_all(objs->env) == 0)
		return true;
	object_late_region(objs, region, memory);
	return false;
}

bool
object_region_retire(struct objects *objs, struct mem_region *region)
{
	if (!let_go(objs, region, NULL))
		return false;
	mem_region_free(region);
	return true;
}

static void
mr_free(struct objects *objs, struct object_mr *mr)
{
	mr->pd->users--;
	names_remove(&objs->mrs, &mr->n);
	free(mr);
}

void
object_mr_revoke(struct objects *objs, struct object_mr *mr)
{
	if (!mr->revoked) {
		regions_note_gone(objs, mr);
		mem_table_remove(objs->env->w.mem, mr->region->key);
	}
	mr->revoked = true;
}

void
object_mr_free_revoked(struct objects *objs, struct object_mr *mr)
{
	mem_region_free(mr->region);
	if (mr->memory != NULL)
		broker_memory_put(mr->memory);
	mr_free(objs, mr);
}

int
object_mr_destroy(
	struct objects *objs, struct object_mr *mr, struct broker_conn *where, struct refusal *r)
{
	const uint32_t windows = mem_region_claim(mr->region);

	if (windows != 0)
		return refuse(r, EBUSY,
			"%u memory windows are bound to mr \"%s\": invalidate or deallocate them",
			windows, mr->n.name);
	regions_note_gone(objs, mr);
	if (let_go(objs, mr->region, mr->memory)) {
		broker_area_free(where, &mr->region->area);
		mem_region_free(mr->region);
		if (mr->memory != NULL)
			broker_memory_put(mr->memory);
	}
	mr_free(objs, mr);
	return 0;
}

int
object_feed_region(struct objects *objs, struct object_pd *pd, uint64_t bytes,
	struct mem_region **out, struct refusal *r)
{
	struct mem_region *region = mem_region_alloc();
	int rc;

	if (region == NULL)
		return refuse(r, ENOMEM, "out of memory");
	region->va = pick_addr(objs, bytes);
	rc = region_memory(objs, region, bytes, r);
	if (rc == 0) {
		region->pd = pd->id;
		region->access = ACCESS_LOCAL_WRITE;
		rc = publish(objs, region, false, r);
	}
	if (rc != 0) {
		mem_region_free(region);
		return rc;
	}
	*out = region;
	return 0;
}
