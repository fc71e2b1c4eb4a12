/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection: who we are, which memory is shared, what the dataplane has. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "client_priv.h"

#define LOOK_MS 100 /* between two looks at the connection */

/* ---- areas ----------------------------------------------------------------------------------- */

static int
map_area(struct area *a, size_t bytes, int fd)
{
	void *base = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);

	if (base == MAP_FAILED)
		return client_fail(errno, "%zu bytes of rings: %s", bytes, strerror(errno));
	*a = (struct area){ .base = base, .len = bytes };
	return 0;
}

/* @param fd -1: its descriptor did not come. */
static int
add_area(struct context *ctx, uint32_t number, size_t bytes, int fd)
{
	struct area *areas;

	if (number != ctx->areas_n || bytes == 0)
		return client_fail(EPROTO, "area %u of the dataplane is out of order", number);
	areas = realloc(ctx->areas, (number + 1) * sizeof(*areas));
	if (areas == NULL)
		return client_fail(ENOMEM, "out of memory");
	ctx->areas = areas;
	areas[ctx->areas_n++] = (struct area){ .base = NULL };
	if (fd < 0)
		return client_fail(EMFILE, "descriptors are missing: too many open files?");
	return map_area(&areas[number], bytes, fd);
}

/* Their descriptors are the last of those that came. Where one is missing, none is known. */
int
client_map_areas(struct context *ctx, const json_t *result)
{
	const json_t *list = json_object_get(result, "areas"), *row;
	const size_t n = json_array_size(list);
	const bool whole = n <= ctx->line.fds_n;
	size_t i;
	int rc = 0;

	json_array_foreach (list, i, row) {
		const int err =
			add_area(ctx, (uint32_t)json_integer_value(json_object_get(row, "area")),
				(size_t)json_integer_value(json_object_get(row, "bytes")),
				whole ? ctx->line.fds[ctx->line.fds_n - n + i] : -1);

		if (err != 0)
			rc = err;
	}
	for (i = 0; i < n && ctx->line.fds_n != 0; i++)
		close(ctx->line.fds[--ctx->line.fds_n]);
	return rc;
}

bool
client_lost_area(struct context *ctx, uint32_t *number)
{
	for (uint32_t i = 0; i < ctx->areas_n; i++) {
		struct area *a = &ctx->areas[i];

		if (a->base == NULL && !a->told) {
			a->told = true;
			*number = i;
			return true;
		}
	}
	return false;
}

void *
client_place(struct context *ctx, const json_t *at, size_t bytes)
{
	const json_int_t number = json_integer_value(json_object_get(at, "area"));
	const json_int_t offset = json_integer_value(json_object_get(at, "offset"));
	const struct area *a;

	if (number < 0 || number >= ctx->areas_n || offset < 0 || bytes == 0)
		return NULL;
	a = &ctx->areas[number];
	if ((size_t)offset > a->len || bytes > a->len - (size_t)offset)
		return NULL;
	return a->base + offset;
}

/* ---- what the dataplane says of itself ------------------------------------------------------- */

static json_int_t
number(const json_t *o, const char *key)
{
	return json_integer_value(json_object_get(o, key));
}

static void
take_limits(struct rl_device_attr *a, const json_t *result)
{
	const json_t *l = json_object_get(result, "limits");
	const char *version = json_string_value(json_object_get(result, "version"));

	snprintf(a->fw_ver, sizeof(a->fw_ver), "%s", version != NULL ? version : "");
	a->max_mr_size = (uint64_t)number(l, "memory");
	a->max_memory = (uint64_t)number(l, "memory");
	a->max_qp = (int)number(l, "qps");
	a->max_qp_wr = (int)number(l, "wr");
	a->max_outstanding_wr = (int)number(l, "outstanding");
	a->max_sge = (int)number(l, "sge");
	a->max_inline_data = (int)number(l, "inline");
	a->max_cq = (int)number(l, "cqs");
	a->max_cqe = (int)number(l, "cqe");
	a->max_mr = (int)number(l, "mrs");
	a->max_pd = (int)number(l, "pds");
	a->max_srq = (int)number(l, "srqs");
	a->max_ah = (int)number(l, "ahs");
	a->max_mcast = (int)number(l, "mcasts");
	a->max_qp_rd_atom = (int)number(l, "rd_atomic");
	a->placement = json_is_true(json_object_get(l, "placement"));
}

static void
take_port(struct port *p, const json_t *o)
{
	const char *name = json_string_value(json_object_get(o, "name"));
	const char *mac = json_string_value(json_object_get(o, "mac"));
	const json_t *gid;
	size_t i;

	snprintf(p->name, sizeof(p->name), "%s", name != NULL ? name : "");
	if (mac != NULL)
		sscanf(mac, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", &p->mac[0], &p->mac[1], &p->mac[2],
			&p->mac[3], &p->mac[4], &p->mac[5]);
	p->path_mtu = (uint32_t)number(o, "path_mtu");
	json_array_foreach (json_object_get(o, "gids"), i, gid) {
		const char *hex = json_string_value(gid);

		if (hex == NULL || strlen(hex) != 32 || p->gids == (int)ARRAY_LEN(p->gid))
			continue;
		for (unsigned int k = 0; k < 16; k++)
			sscanf(hex + 2 * k, "%2hhx", &p->gid[p->gids].raw[k]);
		p->gids++;
	}
}

/* Once: any thread reads them, without a lock. */
static int
take_ports(struct context *ctx, const json_t *list)
{
	const json_t *row;
	size_t i;

	ctx->ports = calloc(json_array_size(list) + 1, sizeof(ctx->ports[0]));
	if (ctx->ports == NULL)
		return client_fail(ENOMEM, "out of memory");
	ctx->pub.num_ports = (uint8_t)json_array_size(list);
	json_array_foreach (list, i, row)
		take_port(&ctx->ports[i], row);
	ctx->limits.phys_port_cnt = ctx->pub.num_ports;
	return 0;
}

static int
take_bells(struct context *ctx, const json_t *list)
{
	const json_t *row;
	size_t i;

	ctx->bells = calloc(json_array_size(list) + 1, sizeof(ctx->bells[0]));
	if (ctx->bells == NULL)
		return client_fail(ENOMEM, "out of memory");
	json_array_foreach (list, i, row) {
		const uint32_t entries = (uint32_t)number(row, "entries");
		void *mem = client_place(ctx, row, ring_bells_size(entries));

		if (mem == NULL)
			return client_fail(EPROTO, "a doorbell ring lies nowhere");
		ring_bells_attach(&ctx->bells[i], mem, entries);
		ctx->workers++;
	}
	return ctx->workers != 0 ? 0 : client_fail(EPROTO, "the dataplane has no workers");
}

/* ---- open and close -------------------------------------------------------------------------- */

static int
dial(struct context *ctx, const char *path)
{
	const int rc = jsonrpc_connect(&ctx->line, path, jsonrpc_end(PATIENCE_MS));

	if (rc == -ENAMETOOLONG)
		return client_fail(
			ENAMETOOLONG, "%s: the path of a socket has 1 to 107 bytes", path);
	if (rc == -EAGAIN)
		return client_fail(ETIMEDOUT, "%s: it has too many others to answer", path);
	if (rc != 0)
		return client_fail(-rc, "%s: %s%s", path, strerror(-rc),
			rc == -ECONNREFUSED || rc == -ENOENT ? " (is rocelane running?)" : "");
	return 0;
}

/* One descriptor to sleep on: events, and the end of the connection. */
static int
make_async_fd(struct context *ctx)
{
	struct epoll_event ev = { .events = EPOLLIN };
	struct epoll_event end = { .events = EPOLLRDHUP };

	ctx->event_fd = client_take_fd(ctx);
	ctx->pub.async_fd = client_set_create();
	if (ctx->event_fd < 0 || ctx->pub.async_fd < 0 ||
		fcntl(ctx->event_fd, F_SETFL, O_NONBLOCK) != 0 ||
		client_set_ctl(ctx->pub.async_fd, EPOLL_CTL_ADD, ctx->event_fd, &ev) != 0 ||
		client_set_ctl(ctx->pub.async_fd, EPOLL_CTL_ADD, ctx->line.fd, &end) != 0)
		return client_fail(EMFILE, "no descriptor for asynchronous events");
	return 0;
}

static int
greet(struct context *ctx)
{
	json_t *params = json_pack("{s:i}", "abi", CLIENT_ABI), *result;
	char name[32] = "";
	FILE *f = fopen("/proc/self/comm", "re");
	int rc;

	if (f != NULL) {
		/* As the dataplane's lists may show it: printing ASCII without blanks. */
		if (fgets(name, sizeof(name), f) == NULL)
			name[0] = '\0';
		name[strcspn(name, " \t\n")] = '\0';
		for (char *at = name; *at != '\0'; at++)
			if (*at < '!' || *at > '~')
				*at = '_';
		fclose(f);
	}
	if (name[0] != '\0')
		json_object_set_new(params, "name", json_string(name));
	rc = client_call(ctx, "client_open", params, -1, &result);
	if (rc != 0)
		return rc;
	ctx->pub.client = (uint32_t)number(result, "client");
	take_limits(&ctx->limits, result);
	rc = take_ports(ctx, json_object_get(result, "ports"));
	if (rc == 0)
		rc = make_async_fd(ctx);
	if (rc == 0)
		rc = take_bells(ctx, json_object_get(result, "bells"));
	json_decref(result);
	return rc == 0 ? client_presence_open(ctx) : rc;
}

static void
release(struct context *ctx)
{
	jsonrpc_close(&ctx->line);
	client_free_cqs(ctx);
	client_free_cm(ctx);
	client_free_mws(ctx);
	client_free_memory(ctx);
	client_presence_close(ctx);
	for (uint32_t i = 0; i < ctx->areas_n; i++) {
		if (ctx->areas[i].base != NULL)
			munmap(ctx->areas[i].base, ctx->areas[i].len);
	}
	if (ctx->event_fd >= 0)
		close(ctx->event_fd);
	if (ctx->pub.async_fd >= 0)
		close(ctx->pub.async_fd);
	pthread_mutex_destroy(&ctx->lock);
	pthread_cond_destroy(&ctx->acked);
	free(ctx->areas);
	free(ctx->bells);
	free(ctx->ports);
	free(ctx);
}

int
rl_open(const char *path, struct rl_context **out)
{
	struct context *ctx = calloc(1, sizeof(*ctx));
	const char *env = getenv("ROCELANE_SOCKET");
	CANCEL_HELD;
	int rc;

	*out = NULL;
	if (ctx == NULL)
		return client_fail(ENOMEM, "out of memory");
	ctx->line = (struct jsonrpc){ .fd = -1, .most = ANSWER_MAX };
	ctx->event_fd = -1;
	ctx->wake_fd = -1;
	ctx->pub.async_fd = -1;
	pthread_mutex_init(&ctx->lock, NULL);
	pthread_cond_init(&ctx->acked, NULL);
	TAILQ_INIT(&ctx->pds);
	TAILQ_INIT(&ctx->mrs);
	TAILQ_INIT(&ctx->mws);
	TAILQ_INIT(&ctx->memories);
	TAILQ_INIT(&ctx->channels);
	TAILQ_INIT(&ctx->cqs);
	TAILQ_INIT(&ctx->srqs);
	TAILQ_INIT(&ctx->xrcds);
	TAILQ_INIT(&ctx->ahs);
	TAILQ_INIT(&ctx->ended_ahs);
	TAILQ_INIT(&ctx->qps);
	TAILQ_INIT(&ctx->cm_channels);
	TAILQ_INIT(&ctx->cm_ids);
	for (uint32_t i = 0; i < QP_BUCKETS; i++)
		TAILQ_INIT(&ctx->by_number[i]);
	if (path == NULL && env != NULL && env[0] != '\0')
		path = env;
	if (path == NULL)
		path = RL_DEFAULT_SOCKET;
	rc = dial(ctx, path);
	if (rc == 0)
		rc = greet(ctx);
	if (rc != 0) {
		release(ctx);
		return rc;
	}
	*out = &ctx->pub;
	return 0;
}

int
rl_close(struct rl_context *pub)
{
	CANCEL_HELD;

	if (pub != NULL)
		release(context_of(pub));
	return 0;
}

bool
client_is_gone(struct context *ctx)
{
	struct pollfd p = { .fd = ctx->line.fd, .events = POLLRDHUP };
	CANCEL_HELD;

	if (client_gone(ctx))
		return true;
	if (poll(&p, 1, 0) > 0 && (p.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
		atomic_store(&ctx->gone, true);
	return atomic_load(&ctx->gone) || atomic_load(&ctx->broken);
}

bool
client_lost(struct context *ctx)
{
	struct timespec ts;
	int64_t now;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &ts);
	now = (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
	if (LIKELY(now - atomic_load_explicit(&ctx->looked, memory_order_relaxed) < LOOK_MS))
		return client_gone(ctx);
	atomic_store_explicit(&ctx->looked, now, memory_order_relaxed);
	return client_is_gone(ctx);
}

int
client_no_dataplane(void)
{
	return client_fail(
		EIO, "the dataplane is gone, or has closed the connection: its log says why");
}

/* ---- queries --------------------------------------------------------------------------------- */

int
rl_query_device(struct rl_context *pub, struct rl_device_attr *attr)
{
	*attr = context_of(pub)->limits;
	return 0;
}

int
rl_query_clock(struct rl_context *pub, struct rl_clock *now)
{
	struct context *ctx = context_of(pub);
	json_t *o = NULL;
	int rc;

	client_lock(ctx);
	rc = client_call(ctx, "client_clock", NULL, -1, &o);
	client_unlock(ctx);
	if (rc != 0)
		return rc;
	*now = (struct rl_clock){ .timestamp_ns = (uint64_t)json_integer_value(
					  json_object_get(o, "time_ns")),
		.wall_ns = (uint64_t)json_integer_value(json_object_get(o, "wall_ns")) };
	json_decref(o);
	return 0;
}

int
client_check_port(const struct context *ctx, uint8_t port_num)
{
	if (port_num >= 1 && port_num <= ctx->pub.num_ports)
		return 0;
	return client_fail(EINVAL, "port %u does not exist: there are %u, from 1", port_num,
		ctx->pub.num_ports);
}

static enum rl_mtu
mtu_code(uint32_t bytes)
{
	enum rl_mtu code = RL_MTU_256;

	while (code < RL_MTU_4096 && (256u << code) <= bytes)
		code++;
	return code;
}

int
rl_query_port(struct rl_context *pub, uint8_t port_num, struct rl_port_attr *attr)
{
	struct context *ctx = context_of(pub);
	const struct port *p;
	json_t *list = NULL;
	bool up = false;
	int rc = client_check_port(ctx, port_num);

	if (rc != 0)
		return rc;
	client_lock(ctx);
	rc = client_call(ctx, "client_ports", NULL, -1, &list);
	if (rc == 0)
		up = json_is_true(json_object_get(json_array_get(list, port_num - 1u), "up"));
	json_decref(list);
	client_unlock(ctx);
	if (rc != 0)
		return rc;
	/* The link comes and goes; the rest is as it was from the start. */
	p = &ctx->ports[port_num - 1];
	*attr = (struct rl_port_attr){ .state = up ? RL_PORT_ACTIVE : RL_PORT_DOWN,
		.max_mtu = RL_MTU_4096,
		.active_mtu = mtu_code(p->path_mtu),
		.gid_tbl_len = p->gids };
	memcpy(attr->name, p->name, sizeof(attr->name));
	memcpy(attr->mac, p->mac, sizeof(attr->mac));
	return 0;
}

int
rl_query_gid(struct rl_context *pub, uint8_t port_num, int index, union rl_gid *gid)
{
	const struct context *ctx = context_of(pub);
	const int rc = client_check_port(ctx, port_num);

	if (rc != 0)
		return rc;
	if (index < 0 || index >= ctx->ports[port_num - 1].gids)
		return client_fail(EINVAL, "gid %d does not exist: port %u has %d", index, port_num,
			ctx->ports[port_num - 1].gids);
	*gid = ctx->ports[port_num - 1].gid[index];
	return 0;
}
