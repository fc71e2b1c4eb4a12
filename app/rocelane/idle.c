/* SPDX-License-Identifier: BSD-3-Clause */
#include "idle.h"

#include <dirent.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <rte_ethdev.h>
#include <rte_pause.h>

#include "timebase.h"

#define SPIN_TURNS 1000u
#define SHORTEST   (50 * TIME_NS_PER_US)
#define LONGEST    TIME_NS_PER_MS
#define PART       8                      /* of the time that nothing came */
#define HELD_NS    (150 * TIME_NS_PER_US) /* before a frame that is held back goes on: awake */
#define VAIN_MAX   64 /* so often in vain: no port is listened to until there is work */
#define LOOK       32 /* of so many turns one says on which CPU it is, and looks for others there */

/* ---- descriptors ----------------------------------------------------------------------------- */

/* The interface that this descriptor of the process takes frames from; 0: none. */
static unsigned int
interface_of(int fd)
{
	struct sockaddr_ll ll = { 0 };
	socklen_t len = sizeof(ll);
	char path[64], to[64];
	struct ifreq ifr;
	ssize_t n;

	if (getsockname(fd, (struct sockaddr *)&ll, &len) == 0)
		return ll.sll_family == AF_PACKET ? (unsigned int)ll.sll_ifindex : 0;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	n = readlink(path, to, sizeof(to) - 1);
	to[n > 0 ? n : 0] = '\0';
	memset(&ifr, 0, sizeof(ifr));
	if (strcmp(to, "/dev/net/tun") != 0 || ioctl(fd, TUNGETIFF, &ifr) != 0 ||
		(ifr.ifr_flags & IFF_DETACH_QUEUE) != 0)
		return 0;
	return if_nametoindex(ifr.ifr_name);
}

/* Drivers do not give their descriptors away; the kernel says whose they are. */
static void
listen_to(struct idle *i, unsigned int interface)
{
	DIR *dir = opendir("/proc/self/fd");
	const struct dirent *e;

	while (dir != NULL && i->fds_n < ARRAY_LEN(i->fds) && (e = readdir(dir)) != NULL) {
		const int fd = (int)strtol(e->d_name, NULL, 10);

		if (e->d_name[0] != '.' && fd != dirfd(dir) && interface_of(fd) == interface)
			i->fds[i->fds_n++] = (struct pollfd){ .fd = fd, .events = POLLIN };
	}
	if (dir != NULL)
		closedir(dir);
}

/* ---- clients --------------------------------------------------------------------------------- */

/* Clients on the same CPU let us have it while they wait. */
static void
tell_cpu(struct idle *i)
{
	const uint32_t cpu = (uint32_t)sched_getcpu();

	if (i->presence != NULL)
		ring_presence_move(i->presence, i->cpu, cpu);
	i->cpu = cpu;
}

void
idle_init(struct idle *i, const struct dataplane *dp, uint32_t worker)
{
	*i = (struct idle){ .dp = dp, .worker = worker, .cpu = UINT32_MAX };
	i->presence = dp->env.presence != NULL ? (void *)dp->env.presence->base : NULL;
	tell_cpu(i);
	if (dp->conf->lcores.idle != CONF_IDLE_SLEEP)
		return;
	if (i->presence != NULL) {
		env_wakes_init(&i->wakes, dp->env.workers[worker].wake_set);
		i->fds[i->fds_n++] = (struct pollfd){ .fd = i->wakes.set, .events = POLLIN };
	}
	prctl(PR_SET_TIMERSLACK, 1UL); /* this thread's: by default it sleeps 50 us longer */
	for (uint32_t p = 0; p < dp->conf->n_ports; p++) {
		const struct dataplane_port *port = &dp->ports[p];
		struct rte_eth_dev_info info;

		if (port->rx_worker == worker && port->rx_queues == 1 &&
			rte_eth_dev_info_get(port->id, &info) == 0 && info.if_index != 0)
			listen_to(i, info.if_index);
	}
}

/* ---- between turns --------------------------------------------------------------------------- */

void
idle_poll(void *ctx, uint32_t turns)
{
	if (turns % LOOK == 0)
		tell_cpu(ctx);
}

void
idle_pause(void *ctx, uint32_t turns)
{
	idle_poll(ctx, turns);
	rte_pause();
}

/* How long nothing has to be done; 0: stay awake. */
static ns_t
may_sleep(const struct idle *i, ns_t now)
{
	const ns_t held = impairs_next(i->dp, i->worker);
	const ns_t timer = worker_next(i->dp->workers[i->worker]);
	ns_t most = (now - i->since) / PART;

	most = RTE_MIN(RTE_MAX(most, SHORTEST), LONGEST);
	/* A packet that is held back goes on in time: that is what a delay is for. */
	if (held != UINT64_MAX)
		most = held > now + HELD_NS ? RTE_MIN(most, held - now - HELD_NS) : 0;
	if (timer == 0)
		return RTE_MIN(most, SHORTEST);
	return timer > now ? RTE_MIN(most, timer - now) : 0;
}

/* Is there somebody who wants this CPU? Only a yield shows that. */
static void
give_way(struct idle *i, uint32_t turns)
{
	ns_t began;

	if (i->crowd.turns == 0 && turns % LOOK != 0) {
		rte_pause();
		return;
	}
	began = timebase_now();
	if (crowd_asks(&i->crowd, began))
		crowd_ran(&i->crowd, began, timebase_ran(), 0); /* sleep_for() tells */
	if (!crowd_may_yield(&i->crowd, &i->looked, began, turns)) {
		rte_pause();
		return;
	}
	sched_yield();
	crowd_yielded(&i->crowd, &i->looked, began, timebase_now());
}

void
idle_yield(void *ctx, uint32_t turns)
{
	idle_poll(ctx, turns);
	if (turns != 0)
		give_way(ctx, turns);
}

/* Until a descriptor tells something. A client that rings a doorbell writes to its own. */
static void
sleep_for(struct idle *i, const struct timespec *ts)
{
	const uint32_t clients = i->presence != NULL ? 1 : 0;
	int told = 0;

	if (i->presence != NULL)
		ring_presence_sleeps(i->presence, i->worker);
	if (i->presence == NULL || !worker_is_rung(i->dp->workers[i->worker]))
		told = ppoll(i->fds, i->vain < VAIN_MAX ? i->fds_n : clients, ts, NULL);
	crowd_slept(&i->crowd);
	if (told > 0 && clients != 0 && i->fds[0].revents != 0) {
		env_wakes_heard(&i->wakes);
		told--;
	}
	if (told > 0)
		i->vain++;
	if (i->presence != NULL)
		ring_presence_wakes(i->presence, i->worker);
}

void
idle_sleep(void *ctx, uint32_t turns)
{
	struct idle *i = ctx;
	struct timespec ts = { 0, 0 };
	ns_t now;

	if (turns < SPIN_TURNS) {
		idle_yield(i, turns);
		return;
	}
	tell_cpu(i);
	now = timebase_now();
	if (turns == SPIN_TURNS) {
		i->since = now;
		i->vain = 0;
		if (i->presence != NULL)
			env_wakes_worked(&i->wakes);
	}
	ts.tv_nsec = (long)may_sleep(i, now);
	if (ts.tv_nsec == 0)
		give_way(i, turns);
	else
		sleep_for(i, &ts);
}
