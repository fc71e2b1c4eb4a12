/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Workers make blocks in memory, a thread writes them. A worker that does not get a place goes on:
 * a disk must not hold up the packets that it is to show.
 */
#include "record.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rte_mbuf.h>

#include "dataplane.h"
#include "impair_model.h"
#include "log.h"
#include "pcapng.h"

#define FRAME_MAX 65536u
#define WAIT_NS   1000000

/* Bytes of whole blocks from a worker; what is between tail and head waits. */
struct lane {
	_Atomic uint64_t head __attribute__((aligned(64))); /* the worker's */
	_Atomic uint64_t tail __attribute__((aligned(64))); /* the thread's */
	uint8_t *bytes;
	uint8_t block[PCAPNG_PACKET_MAX(FRAME_MAX)]; /* the worker makes one here */
	uint8_t frame[FRAME_MAX];                    /* for one in pieces */
};

struct record {
	int fd;
	uint32_t lanes_n;
	uint32_t ports_n;
	uint64_t room;    /* of each lane: a power of two */
	uint64_t written; /* whole blocks in the file */
	uint64_t since;   /* 1970 to the clock's 0 */
	uint64_t (*clock)(void);
	_Atomic uint64_t lost[CONF_MAX_PORTS];
	_Atomic bool full; /* the file takes no more */
	_Atomic bool stop;
	pthread_t thread;
	struct lane *lanes;
};

/* ---- workers --------------------------------------------------------------------------------- */

/* "drop", "corrupt, delay": what rules do. NULL: nothing. */
static const char *
comment_of(uint32_t actions, char text[PCAPNG_COMMENT_MAX])
{
	int n = 0;

	if (LIKELY(actions == 0))
		return NULL;
	for (uint32_t a = 0; a < IMPAIR_ACTIONS; a++)
		if ((actions & IMPAIR_BIT(a)) != 0)
			n += snprintf(text + n, PCAPNG_COMMENT_MAX - (size_t)n, "%s%s",
				n == 0 ? "impair: " : ", ", impair_action_name(a));
	return text;
}

static bool
push(const struct record *r, struct lane *l, uint32_t n)
{
	const uint64_t head = atomic_load_explicit(&l->head, memory_order_relaxed);
	const uint64_t tail = atomic_load_explicit(&l->tail, memory_order_acquire);
	const uint64_t at = head & (r->room - 1);
	const uint64_t first = RTE_MIN((uint64_t)n, r->room - at);

	if (r->room - (head - tail) < n)
		return false;
	memcpy(l->bytes + at, l->block, first);
	memcpy(l->bytes, l->block + first, n - first);
	atomic_store_explicit(&l->head, head + n, memory_order_release);
	return true;
}

void
record_packet(void *arg, const struct rte_mbuf *m, uint32_t actions, uint64_t now)
{
	const struct dataplane_port *port = arg;
	struct record *r = port->record;
	struct lane *l = &r->lanes[port->rx_worker];
	const uint32_t have = RTE_MIN(m->pkt_len, FRAME_MAX);
	char text[PCAPNG_COMMENT_MAX];
	const struct pcapng_packet p = { .interface = port->index,
		.captured = have,
		.length = m->pkt_len,
		.time_ns = r->since + now,
		.data = rte_pktmbuf_read(m, 0, have, l->frame),
		.comment = comment_of(actions, text) };

	if (p.data == NULL || atomic_load_explicit(&r->full, memory_order_relaxed) ||
		!push(r, l, trace_pcapng_packet(l->block, &p)))
		atomic_fetch_add_explicit(&r->lost[port->index], 1, memory_order_relaxed);
}

/* ---- the file -------------------------------------------------------------------------------- */

/* @return bytes that are in the file now; fewer than n: it takes no more. */
static uint64_t
put(const struct record *r, const void *bytes, uint64_t n)
{
	uint64_t done = 0;

	while (done < n) {
		const ssize_t k = write(r->fd, (const uint8_t *)bytes + done, n - done);

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0) {
			log_error("record: %s; the file ends here", strerror(k < 0 ? errno : EIO));
			break;
		}
		done += (uint64_t)k;
	}
	return done;
}

/* A word of a block: blocks are whole words, so none goes around the end of a lane. */
static uint32_t
word_at(const struct record *r, const struct lane *l, uint64_t at)
{
	uint32_t word;

	memcpy(&word, l->bytes + (at & (r->room - 1)), sizeof(word));
	return word;
}

/* Bytes of whole blocks among the first n that wait. */
static uint64_t
whole_blocks(const struct record *r, const struct lane *l, uint64_t tail, uint64_t n)
{
	uint64_t sum = 0;

	for (uint64_t next = 0; n - sum >= 8; sum = next) {
		next = sum + word_at(r, l, tail + sum + 4);
		if (next > n)
			break;
	}
	return sum;
}

/* What waits comes into no file any more. */
static void
lose(struct record *r, struct lane *l)
{
	const uint64_t head = atomic_load_explicit(&l->head, memory_order_acquire);
	uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);

	for (; tail != head; tail += word_at(r, l, tail + 4))
		atomic_fetch_add_explicit(
			&r->lost[word_at(r, l, tail + 8)], 1, memory_order_relaxed);
	atomic_store_explicit(&l->tail, tail, memory_order_release);
}

static void
cut(const struct record *r)
{
	if (ftruncate(r->fd, (off_t)r->written) != 0 ||
		lseek(r->fd, (off_t)r->written, SEEK_SET) < 0)
		log_error("record: its last block is cut short: %s", strerror(errno));
}

/* What every interface lacks. @return bytes that are in the file now, as put(). */
static uint64_t
statistics_put(const struct record *r, uint64_t *lost)
{
	uint8_t block[PCAPNG_LOST_BYTES];
	uint64_t done = 0;

	*lost = 0;
	for (uint32_t i = 0; i < r->ports_n; i++) {
		const uint64_t n = atomic_load_explicit(&r->lost[i], memory_order_relaxed);
		const uint32_t len = trace_pcapng_lost(block, i, r->since + r->clock(), n);

		*lost += n;
		if (done == (uint64_t)i * PCAPNG_LOST_BYTES)
			done += put(r, block, len);
	}
	return done;
}

/* @return is there perhaps more? */
static bool
drain(struct record *r, struct lane *l)
{
	const uint64_t tail = atomic_load_explicit(&l->tail, memory_order_relaxed);
	const uint64_t head = atomic_load_explicit(&l->head, memory_order_acquire);
	const uint64_t n = head - tail, left = RECORD_FILE_MAX - r->written;
	const uint64_t fits = n <= left ? n : whole_blocks(r, l, tail, left);
	const uint64_t at = tail & (r->room - 1), first = RTE_MIN(fits, r->room - at);
	const uint64_t statistics = (uint64_t)r->ports_n * PCAPNG_LOST_BYTES;
	uint64_t done, room, lost;
	bool takes_more;

	if (n == 0 || atomic_load_explicit(&r->full, memory_order_relaxed))
		return false;
	done = put(r, l->bytes + at, first);
	if (done == first)
		done += put(r, l->bytes, fits - first);
	/*
	 * The end of the file is for its statistics: they are there each time, and what comes next
	 * is written over them. So there is room for them when no more fits.
	 */
	room = done + (done == fits ? statistics_put(r, &lost) : 0);
	takes_more = room == fits + statistics;
	if (!takes_more)
		done = whole_blocks(r, l, tail, room > statistics ? room - statistics : 0);
	r->written += done;
	atomic_store_explicit(&l->tail, tail + done, memory_order_release);
	if (takes_more && lseek(r->fd, (off_t)r->written, SEEK_SET) < 0)
		log_error("record: %s", strerror(errno));
	if (takes_more && done == n)
		return true;
	if (!takes_more)
		cut(r);
	else
		log_error("record: the file has its 1 GiB, and ends here");
	atomic_store_explicit(&r->full, true, memory_order_relaxed);
	return false;
}

static void *
write_all(void *arg)
{
	const struct timespec nap = { 0, WAIT_NS };
	struct record *r = arg;
	bool stop, more;

	do {
		stop = atomic_load_explicit(&r->stop, memory_order_acquire);
		more = false;
		for (uint32_t i = 0; i < r->lanes_n; i++)
			more = drain(r, &r->lanes[i]) || more;
		if (!more && !stop)
			clock_nanosleep(CLOCK_MONOTONIC, 0, &nap, NULL);
	} while (more || !stop);
	return NULL;
}

/* ---- open and close -------------------------------------------------------------------------- */

static uint64_t
real_now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return (uint64_t)ts.tv_sec * TIME_NS_PER_S + (uint64_t)ts.tv_nsec;
}

static bool
begin(struct record *r, const struct conf *conf)
{
	uint8_t block[PCAPNG_INTERFACE_MAX];
	uint32_t n = trace_pcapng_section(block);
	bool good = ftruncate(r->fd, 0) == 0 && put(r, block, n) == n;

	r->written = n;
	for (uint32_t i = 0; good && i < conf->n_ports; i++) {
		n = trace_pcapng_interface(block, conf->ports[i].name, FRAME_MAX);
		good = put(r, block, n) == n;
		r->written += n;
	}
	return good;
}

static void
give_back(struct record *r)
{
	for (uint32_t i = 0; r->lanes != NULL && i < r->lanes_n; i++)
		if (r->lanes[i].bytes != NULL)
			munmap(r->lanes[i].bytes, r->room);
	free(r->lanes);
	close(r->fd);
	free(r);
}

static bool
lanes_make(struct record *r, uint32_t n)
{
	r->lanes = aligned_alloc(64, n * sizeof(*r->lanes));
	if (r->lanes == NULL)
		return false;
	memset(r->lanes, 0, n * sizeof(*r->lanes));
	r->lanes_n = n;
	for (uint32_t i = 0; i < n; i++) {
		void *p = mmap(
			NULL, r->room, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return false;
		r->lanes[i].bytes = p;
	}
	return true;
}

int
record_open(int fd, const struct conf *conf, uint64_t (*clock)(void), struct record **out)
{
	struct record *r = calloc(1, sizeof(*r));
	int rc = r != NULL ? 0 : -ENOMEM;

	if (rc == 0) {
		*r = (struct record){ .fd = fd,
			.ports_n = conf->n_ports,
			.room = RECORD_ROOM,
			.clock = clock,
			.since = real_now() - clock() };
		while (r->room * conf->lcores.n_workers > RECORD_ROOM)
			r->room /= 2;
		if (!lanes_make(r, conf->lcores.n_workers))
			rc = -ENOMEM;
		else if (!begin(r, conf))
			rc = -EIO;
		else
			rc = -pthread_create(&r->thread, NULL, write_all, r);
		if (rc != 0)
			give_back(r);
	}
	if (rc != 0)
		log_error("record: %s", strerror(-rc));
	*out = rc == 0 ? r : NULL;
	return rc;
}

void
record_close(struct record *r)
{
	uint64_t lost;

	if (r == NULL)
		return;
	atomic_store_explicit(&r->stop, true, memory_order_release);
	pthread_join(r->thread, NULL);
	for (uint32_t i = 0; i < r->lanes_n; i++)
		lose(r, &r->lanes[i]);
	if (statistics_put(r, &lost) < (uint64_t)r->ports_n * PCAPNG_LOST_BYTES)
		cut(r);
	if (lost != 0)
		log_error("record: %llu packets are not in the file", (unsigned long long)lost);
	give_back(r);
}
