/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Addresses of the ports among those of the host's interfaces, where a kernel with RoCE devices has
 * them. libfabric looks for devices of connections by them: it binds an id to each. No socket has
 * them, and so they are told to no program without librdmacm.
 */
#include <arpa/inet.h>
#include <dirent.h>
#include <ifaddrs.h>
#include <limits.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "next.h"

#define CLASS "/sys/class/infiniband"

struct own {
	struct own *next; /* of all lists */
	struct ifaddrs ifa;
	struct sockaddr_in6 addr, mask; /* large enough for those of IPv4 */
	char name[NAME_MAX + 1];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own *all; /* that programs have */

/* As rocelane-run writes an address: eight groups, ::ffff:a.b.c.d if it is one of IPv4. */
static bool
take_address(const char *text, struct own *e)
{
	static const uint8_t mapped[12] = { [10] = 0xff, 0xff };
	struct sockaddr_in *in = (struct sockaddr_in *)(void *)&e->addr;
	struct sockaddr_in *mask = (struct sockaddr_in *)(void *)&e->mask;
	struct in6_addr a;

	/* One of a link needs an interface's number, which a port does not have. */
	if (inet_pton(AF_INET6, text, &a) != 1 || IN6_IS_ADDR_LINKLOCAL(&a))
		return false;
	if (memcmp(&a, mapped, sizeof(mapped)) == 0) {
		in->sin_family = mask->sin_family = AF_INET;
		memcpy(&in->sin_addr, &a.s6_addr[12], sizeof(in->sin_addr));
		memset(&mask->sin_addr, 0xff, sizeof(mask->sin_addr));
	} else {
		e->addr.sin6_family = e->mask.sin6_family = AF_INET6;
		e->addr.sin6_addr = a;
		memset(&e->mask.sin6_addr, 0xff, sizeof(e->mask.sin6_addr));
	}
	return true;
}

static struct own *
read_address(const char *device, int i)
{
	char path[PATH_MAX], text[INET6_ADDRSTRLEN];
	struct own *e = NULL;
	FILE *f;

	snprintf(path, sizeof(path), CLASS "/%s/ports/1/gids/%d", device, i);
	f = fopen(path, "re");
	if (f == NULL)
		return NULL;
	if (fscanf(f, "%45s", text) == 1)
		e = calloc(1, sizeof(*e));
	fclose(f);
	if (e == NULL)
		return NULL;
	snprintf(e->name, sizeof(e->name), "%s", device);
	e->ifa = (struct ifaddrs){ .ifa_name = e->name, .ifa_flags = IFF_UP | IFF_RUNNING };
	if (take_address(text, e)) {
		e->ifa.ifa_addr = (struct sockaddr *)&e->addr;
		e->ifa.ifa_netmask = (struct sockaddr *)&e->mask;
	}
	return e;
}

/* Does an interface have it, by which it is more than a port's? */
static bool
is_known(const struct ifaddrs *list, const struct own *e)
{
	const bool v4 = e->addr.sin6_family == AF_INET;
	const size_t at = v4 ? offsetof(struct sockaddr_in, sin_addr)
			     : offsetof(struct sockaddr_in6, sin6_addr);

	for (; list != NULL; list = list->ifa_next) {
		if (list->ifa_addr != NULL && (list->ifa_flags & IFF_LOOPBACK) == 0 &&
			list->ifa_addr->sa_family == e->addr.sin6_family &&
			memcmp((const char *)list->ifa_addr + at, (const char *)&e->addr + at,
				v4 ? sizeof(struct in_addr) : sizeof(struct in6_addr)) == 0)
			return true;
	}
	return false;
}

static void
add_device(struct ifaddrs **list, const char *device)
{
	struct ifaddrs **end = list;
	struct own *e;

	while (*end != NULL)
		end = &(*end)->ifa_next;
	for (int i = 0; (e = read_address(device, i)) != NULL; i++) {
		if (e->ifa.ifa_addr == NULL || is_known(*list, e)) {
			free(e);
			continue;
		}
		*end = &e->ifa;
		end = &e->ifa.ifa_next;
		pthread_mutex_lock(&lock);
		e->next = all;
		all = e;
		pthread_mutex_unlock(&lock);
	}
}

/* Take it from those that programs have. @return NULL: it is none of ours. */
static struct own *
take_back(const struct ifaddrs *ifa)
{
	struct own **at = &all, *e;

	pthread_mutex_lock(&lock);
	while (*at != NULL && &(*at)->ifa != ifa)
		at = &(*at)->next;
	e = *at;
	if (e != NULL)
		*at = e->next;
	pthread_mutex_unlock(&lock);
	return e;
}

static bool
has_librdmacm(void)
{
	void *lib = dlopen("librdmacm.so.1", RTLD_LAZY | RTLD_NOLOAD);

	if (lib != NULL)
		dlclose(lib);
	return lib != NULL;
}

/* ---- libc's functions ------------------------------------------------------------------------ */

EXPORT int
getifaddrs(struct ifaddrs **list)
{
	const int rc = NEXT(getifaddrs)(list);
	struct dirent *e;
	DIR *d;

	/* Without that folder they would be the kernel's. */
	if (rc != 0 || getenv("ROCELANE_FILES") == NULL || !has_librdmacm())
		return rc;
	d = opendir(CLASS);
	while (d != NULL && (e = readdir(d)) != NULL) {
		if (e->d_name[0] != '.')
			add_device(list, e->d_name);
	}
	if (d != NULL)
		closedir(d);
	return 0;
}

EXPORT void
freeifaddrs(struct ifaddrs *list)
{
	struct ifaddrs *theirs = list, *next;
	struct own *own;

	/* Ours are the last ones. */
	for (struct ifaddrs *at = list; at != NULL; at = next) {
		next = at->ifa_next;
		own = take_back(at);
		if (own != NULL && at == theirs)
			theirs = NULL;
		free(own);
	}
	NEXT(freeifaddrs)(theirs);
}
