/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Files of the devices. Some programs look for what a kernel with RDMA devices shows below
 * /sys/class and /dev/infiniband (UCX takes no device without its character device). They are made
 * in a folder of this run, and librocelane-rdmacm.so has the paths lead there.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <rocelane.h>

#include "run.h"

static char top[PATH_MAX];
static int put_errno; /* of the file that could not be made */

/* A line of its own in a file; folders above it are made. @return false: put_errno says why. */
static __attribute__((format(printf, 2, 3))) bool
put(const char *name, const char *fmt, ...)
{
	char path[PATH_MAX + 256];
	va_list ap;
	FILE *f;
	bool good;

	snprintf(path, sizeof(path), "%s%s", top, name);
	for (char *p = strchr(path + strlen(top) + 1, '/'); p != NULL; p = strchr(p + 1, '/')) {
		*p = '\0';
		mkdir(path, 0755); /* or fopen() fails */
		*p = '/';
	}
	f = fopen(path, "we");
	good = f != NULL;
	if (good) {
		va_start(ap, fmt);
		vfprintf(f, fmt, ap);
		va_end(ap);
		good = fputc('\n', f) != EOF;
		good = fclose(f) == 0 && good;
	}
	put_errno = good ? 0 : errno;
	return good;
}

static bool
put_gids(struct rl_context *ctx, uint8_t port, const char *base, const char *device)
{
	char name[256];
	union rl_gid g;
	bool good = true;

	for (int i = 0; good && rl_query_gid(ctx, port, i, &g) == 0; i++) {
		const uint8_t *b = g.raw;

		snprintf(name, sizeof(name), "%s/gids/%d", base, i);
		good = put(name,
			"%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x:%02x%02x",
			b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
			b[12], b[13], b[14], b[15]);
		snprintf(name, sizeof(name), "%s/gid_attrs/types/%d", base, i);
		good = good && put(name, "RoCE v2");
		snprintf(name, sizeof(name), "%s/gid_attrs/ndevs/%d", base, i);
		good = good && put(name, "%s", device);
	}
	return good;
}

/* As the kernel writes them; a port of the dataplane is a device with one port. */
static bool
put_port(const char *base, const struct rl_port_attr *a)
{
	const bool up = a->state == RL_PORT_ACTIVE;
	const struct {
		const char *name, *text;
	} rows[] = {
		{ "state", up ? "4: ACTIVE" : "1: DOWN" },
		{ "phys_state", up ? "5: LinkUp" : "3: Disabled" },
		{ "link_layer", "Ethernet" },
		{ "rate", "40 Gb/sec (4X FDR10)" }, /* as query.c has it */
		{ "lid", "0x0" },
		{ "lid_mask_count", "0" },
		{ "sm_lid", "0x0" },
		{ "sm_sl", "0" },
		{ "cap_mask", "0x00010000" }, /* IB_PORT_CM_SUP, as Soft-RoCE */
		{ "pkeys/0", "0xffff" },
	};
	char name[256];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "%s/%s", base, rows[i].name);
		if (!put(name, "%s", rows[i].text))
			return false;
	}
	return true;
}

/* What ibstat and UCX read. */
static bool
put_device(struct rl_context *ctx, uint8_t port)
{
	struct rl_device_attr d;
	struct rl_port_attr a;
	char guid[24], name[256], base[160];
	const uint8_t *m = a.mac;
	bool good;

	if (rl_query_port(ctx, port, &a) != 0 || strchr(a.name, '/') != NULL ||
		rl_query_device(ctx, &d) != 0)
		return false;
	snprintf(base, sizeof(base), "/sys/class/infiniband/%s/ports/1", a.name);
	good = put_port(base, &a) && put_gids(ctx, port, base, a.name);
	snprintf(guid, sizeof(guid), "%02x%02x:%02xff:fe%02x:%02x%02x", m[0] ^ 2, m[1], m[2], m[3],
		m[4], m[5]);
	const struct {
		const char *name, *text;
	} rows[] = {
		{ "node_type", "1: CA" },
		{ "node_guid", guid },
		{ "sys_image_guid", guid },
		{ "node_desc", a.name },
		{ "fw_ver", d.fw_ver },
		{ "hca_type", "rocelane" },
		{ "hw_rev", "0" }, /* hw_ver of ibv_query_device() */
		{ "device/numa_node", "-1" },
	};
	for (size_t i = 0; good && i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(name, sizeof(name), "/sys/class/infiniband/%s/%s", a.name, rows[i].name);
		good = put(name, "%s", rows[i].text);
	}
	snprintf(base, sizeof(base), "/sys/class/infiniband_verbs/uverbs%u", port - 1u);
	snprintf(name, sizeof(name), "%s/ibdev", base);
	good = good && put(name, "%s", a.name);
	snprintf(name, sizeof(name), "%s/abi_version", base);
	good = good && put(name, "1");
	snprintf(name, sizeof(name), "/dev/infiniband/uverbs%u", port - 1u);
	return good && put(name, "%s", a.name);
}

void
files_make(const char *socket)
{
	struct rl_context *ctx;
	bool good = false;

	if (!folder_make(top, sizeof(top))) {
		run_say("%s: %s: programs that look for devices' files find none", folder_top(),
			strerror(errno));
		top[0] = '\0';
		return;
	}
	if (rl_open(socket, &ctx) == 0) {
		control_own(socket, ctx->client);
		good = put("/sys/class/infiniband_verbs/abi_version", "6");
		for (uint8_t port = 1; good && port <= ctx->num_ports; port++)
			good = put_device(ctx, port);
		rl_close(ctx);
	}
	if (!good)
		run_say("%s: not all files of devices could be made: %s", top,
			put_errno != 0 ? strerror(put_errno) : rl_last_error());
	setenv("ROCELANE_FILES", top, 1);
}

void
files_remove(void)
{
	folder_remove(top);
}
