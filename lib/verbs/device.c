/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices: one for each port of the dataplane, with the port's name. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cancel.h"
#include "vl.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* They stay: a program may compare pointers of two lists. */
static TAILQ_HEAD(, vl_device) devices = TAILQ_HEAD_INITIALIZER(devices);
static int devices_n;

static const char *
class_path(void)
{
	const char *path = getenv("SYSFS_PATH");

	return path != NULL ? path : "/sys";
}

static struct vl_device *
add(const char *name)
{
	struct vl_device *d = calloc(1, sizeof(*d));

	if (d == NULL)
		return NULL;
	d->index = devices_n++;
	d->pub.node_type = IBV_NODE_CA;
	d->pub.transport_type = IBV_TRANSPORT_IB;
	snprintf(d->pub.name, sizeof(d->pub.name), "%s", name);
	snprintf(d->pub.dev_name, sizeof(d->pub.dev_name), "uverbs%d", d->index);
	snprintf(d->pub.dev_path, sizeof(d->pub.dev_path), "%s/class/infiniband_verbs/%s",
		class_path(), d->pub.dev_name);
	snprintf(d->pub.ibdev_path, sizeof(d->pub.ibdev_path), "%s/class/infiniband/%s",
		class_path(), name);
	TAILQ_INSERT_TAIL(&devices, d, all);
	return d;
}

static struct vl_device *
find_or_add(const char *name)
{
	struct vl_device *d;

	TAILQ_FOREACH (d, &devices, all) {
		if (strcmp(d->pub.name, name) == 0)
			return d;
	}
	return add(name);
}

/* Ports of a dataplane that is there now. @return how many, or -errno. */
static int
look(struct ibv_device ***out)
{
	struct ibv_device **list = NULL;
	struct rl_context *rl;
	int rc = rl_open(NULL, &rl), n = 0;

	if (rc != 0)
		return rc;
	list = calloc((size_t)rl->num_ports + 1, sizeof(list[0]));
	rc = list == NULL ? -ENOMEM : 0;
	for (uint8_t port = 1; rc == 0 && port <= rl->num_ports; port++) {
		struct rl_port_attr attr;
		struct vl_device *d;

		rc = rl_query_port(rl, port, &attr);
		if (rc != 0)
			break;
		d = find_or_add(attr.name);
		if (d == NULL) {
			rc = -ENOMEM;
			break;
		}
		d->port = port;
		memcpy(d->mac, attr.mac, sizeof(d->mac));
		list[n++] = &d->pub;
	}
	rl_close(rl);
	*out = list;
	if (rc != 0)
		free(list);
	return rc != 0 ? rc : n;
}

struct ibv_device **
ibv_get_device_list(int *num_devices)
{
	static bool told;
	struct ibv_device **list = NULL;
	CANCEL_HELD;
	int n;

	pthread_mutex_lock(&lock);
	n = look(&list);
	if (n < 0 && !told) {
		told = true;
		fprintf(stderr, "rocelane: no devices: %s\n", rl_last_error());
	}
	pthread_mutex_unlock(&lock);
	if (n < 0)
		/* As without hardware: a list with nothing in it. */
		list = n == -ENOMEM ? NULL : calloc(1, sizeof(list[0]));
	if (num_devices != NULL)
		*num_devices = n < 0 ? 0 : n;
	return list != NULL ? list : vl_none(vl_no_memory());
}

void
ibv_free_device_list(struct ibv_device **list)
{
	free(list);
}

const char *
ibv_get_device_name(struct ibv_device *device)
{
	return device->name;
}

__be64
ibv_get_device_guid(struct ibv_device *device)
{
	return vl_guid(((const struct vl_device *)device)->mac);
}

int
ibv_get_device_index(struct ibv_device *device)
{
	return ((const struct vl_device *)device)->index;
}

struct ibv_context *
ibv_open_device(struct ibv_device *device)
{
	const struct vl_device *d = (const struct vl_device *)device;
	struct vl_context *c = calloc(1, sizeof(*c));
	CANCEL_HELD;
	int rc;

	if (c == NULL)
		return vl_none(vl_no_memory());
	rc = rl_open(NULL, &c->rl);
	if (rc == 0) {
		rc = d->port > c->rl->num_ports ? -ENODEV : rl_watch_port(c->rl, d->port);
		if (rc != 0)
			rl_close(c->rl);
	}
	if (rc != 0) {
		free(c);
		return vl_none(-rc);
	}
	TAILQ_INIT(&c->mrs);
	c->port = d->port;
	c->pub.sz = sizeof(c->pub);
	c->pub.context.device = device;
	/* Nothing is written to it; programs duplicate it, and ask for its flags. */
	c->pub.context.cmd_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	c->pub.context.async_fd = c->rl->async_fd;
	c->pub.context.num_comp_vectors = 1;
	c->pub.context.abi_compat = __VERBS_ABI_IS_EXTENDED;
	pthread_mutex_init(&c->pub.context.mutex, NULL);
	vl_context_ops(c);
	return &c->pub.context;
}

int
ibv_close_device(struct ibv_context *context)
{
	struct vl_context *c = vl_context_of(context);
	CANCEL_HELD;

	vl_close_regions(c);
	if (context->cmd_fd >= 0)
		close(context->cmd_fd);
	pthread_mutex_destroy(&c->pub.context.mutex);
	free(c);
	return 0;
}

/* ---- files that some programs read ----------------------------------------------------------- */

const char *
ibv_get_sysfs_path(void)
{
	return class_path();
}

int
ibv_read_sysfs_file(const char *dir, const char *file, char *buf, size_t size)
{
	char path[512];
	CANCEL_HELD;
	FILE *f;
	size_t n;

	snprintf(path, sizeof(path), "%s/%s", dir, file);
	f = fopen(path, "re");
	if (f == NULL)
		return -1;
	n = fread(buf, 1, size, f);
	fclose(f);
	if (n == 0)
		return -1;
	if (buf[n - 1] == '\n')
		buf[--n] = '\0';
	else if (n < size)
		buf[n] = '\0';
	return (int)n;
}
