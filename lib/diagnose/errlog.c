/* SPDX-License-Identifier: BSD-3-Clause */
#include "errlog.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio_ext.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diagnose.h"
#include "log.h"
#include "pcapng.h"
#include "wall.h"

#define POLL_SHARE 64 /* records of each worker, in one poll */

static void
put(struct errlog *l, const void *p, size_t n)
{
	if (l->error == 0 && fwrite(p, 1, n, l->file) != n)
		l->error = errno;
}

/**
 * What was put since the last call is in the file as a whole, or not at all: a file that ends
 * inside a block could not be read. After a failure the file is left as it is.
 */
static void
settle(struct diagnose *dg)
{
	const char *path = dg->env->w.conf->error_buffer.pcapng;
	struct errlog *l = &dg->errlog;

	if (l->error == 0 && fflush(l->file) != 0)
		l->error = errno;
	if (l->error == 0) {
		l->whole = ftello(l->file);
		return;
	}
	log_error("error_buffer.pcapng %s: %s; the file ends here, rx_errors goes on", path,
		l->error == EAGAIN ? "its reader is too slow" : strerror(l->error));
	__fpurge(l->file);
	if (ftruncate(fileno(l->file), l->whole) != 0)
		log_error("error_buffer.pcapng %s: its last block is cut short: %s", path,
			strerror(errno));
	fclose(l->file);
	l->file = NULL;
}

static const char *
rule_of(const struct errbuf_record *r)
{
	if (r->rule != 0)
		return qp_rule_id(r->rule);
	return r->charged < FAULT_MAX ? wire_faults[r->charged].clause : "?";
}

/* "syndrome 0x40000000: ICRC [RX-SYN-30] (QP 17, worker 0)": the rule is that of the decision. */
static void
comment_of(const struct errlog_entry *e, char *buf, size_t room)
{
	int n = snprintf(buf, room, "syndrome 0x%08x:", (uint32_t)e->r.faults);

	for (unsigned int bit = 0; bit < FAULT_MAX && n < (int)room; bit++) {
		if ((e->r.faults >> bit & 1) != 0 && wire_faults[bit].name != NULL)
			n += snprintf(buf + n, room - (size_t)n, " %s", wire_faults[bit].name);
	}
	if (e->r.memory && n < (int)room)
		n += snprintf(buf + n, room - (size_t)n, " %s",
			mem_why_name((enum mem_why)e->r.refusal.why));
	if (n < (int)room)
		snprintf(buf + n, room - (size_t)n, " [%s] (QP %u, worker %u)", rule_of(&e->r),
			e->r.qpn, e->worker);
}

static void
put_packet(struct diagnose *dg, const struct errlog_entry *e)
{
	struct errlog *l = &dg->errlog;
	const uint32_t len =
		e->r.header_len <= ERRBUF_HEADER_BYTES ? e->r.header_len : ERRBUF_HEADER_BYTES;
	const int port = env_port_index(dg->env, e->r.port);
	char text[PCAPNG_COMMENT_MAX];
	uint8_t block[PCAPNG_PACKET_MAX(ERRBUF_HEADER_BYTES)];
	const struct pcapng_packet p = { .interface = port >= 0 ? (uint32_t)port : 0,
		.captured = len,
		.length = e->r.frame_len,
		.time_ns = wall_ns(dg->env, e->r.time_ns),
		.data = e->r.header,
		.comment = text };

	comment_of(e, text, sizeof(text));
	put(l, block, trace_pcapng_packet(block, &p));
}

/**
 * Frames of others come into the file: nobody may have it be another one, or read along.
 * @return the descriptor, or -errno.
 */
static int
file_open(const char *path)
{
	/* A FIFO must not make us wait: neither for a reader, nor for what it reads. */
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
	struct stat st;
	int rc = 0;

	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) != 0)
		rc = -errno;
	else if (S_ISREG(st.st_mode) && st.st_uid != geteuid())
		rc = -EPERM;
	/* One that we have made is so already; in the sandbox no mode can be changed. */
	else if (S_ISREG(st.st_mode) && (st.st_mode & 0077) != 0 && fchmod(fd, 0600) != 0)
		rc = -EACCES;
	else if (S_ISREG(st.st_mode) && ftruncate(fd, 0) != 0)
		rc = -errno;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

static const char *
why_not(int rc)
{
	switch (rc) {
	case -ENXIO:
		return "nobody reads from it: start the reader first";
	case -ELOOP:
		return "a symbolic link is not followed";
	case -EPERM:
		return "it belongs to another user";
	case -EEXIST:
		return "a file is there that is no capture (pcapng), and would be lost";
	default:
		return strerror(-rc);
	}
}

/* What every file begins with. */
static void
begin(struct diagnose *dg)
{
	struct errlog *l = &dg->errlog;
	uint8_t block[PCAPNG_INTERFACE_MAX];
	struct stat st;

	l->regular = fstat(fileno(l->file), &st) == 0 && S_ISREG(st.st_mode);
	l->began = dg->env->now;
	l->whole = 0;
	put(l, block, trace_pcapng_section(block));
	for (uint32_t p = 0; p < dg->env->w.conf->n_ports; p++)
		put(l, block,
			trace_pcapng_interface(
				block, dg->env->w.conf->ports[p].name, ERRBUF_HEADER_BYTES));
	settle(dg);
}

static bool
is_over(const struct diagnose *dg)
{
	const struct conf_error_buffer *conf = &dg->env->w.conf->error_buffer;
	const struct errlog *l = &dg->errlog;

	return l->file != NULL && l->regular &&
	       ((uint64_t)l->whole >= conf->pcapng_size ||
		       dg->env->now - l->began >= conf->pcapng_age * TIME_NS_PER_S);
}

/* Bytes that a file has before its first packet. */
static off_t
head_len(const struct diagnose *dg)
{
	uint8_t block[PCAPNG_INTERFACE_MAX];
	size_t n = trace_pcapng_section(block);

	for (uint32_t p = 0; p < dg->env->w.conf->n_ports; p++)
		n += trace_pcapng_interface(
			block, dg->env->w.conf->ports[p].name, ERRBUF_HEADER_BYTES);
	return (off_t)n;
}

/*
 * Any name may stand in the configuration: its own, too.
 * @return 1 or 0; or -errno: it cannot be looked into.
 */
static int
is_capture(const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	uint8_t section[PCAPNG_INTERFACE_MAX];
	uint32_t first = 0;
	int is;

	if (fd < 0)
		return -errno;
	trace_pcapng_section(section);
	is = read(fd, &first, sizeof(first)) == sizeof(first) &&
	     memcmp(&first, section, sizeof(first)) == 0;
	close(fd);
	return is;
}

static const char *
why_no_other(int error)
{
	return error == EEXIST ? "a file has that name that is no capture (pcapng)"
			       : strerror(error);
}

/*
 * What is no file stays by itself: rename() fails. Where there is no descriptor to look into FILE.1
 * it is taken for ours. @return 0, or an errno: FILE stays, too.
 */
static int
set_aside(const char *path)
{
	char old[CONF_PATH_MAX + 2];
	struct stat st;

	snprintf(old, sizeof(old), "%s.1", path);
	if (lstat(old, &st) == 0 && S_ISREG(st.st_mode) && st.st_size != 0 && is_capture(old) == 0)
		return EEXIST;
	return rename(path, old) == 0 ? 0 : errno;
}

/*
 * What was dropped before a crash, or before a restart, is what is looked for after it.
 * @return 0, or -EEXIST: the file is something else, and stays as it is.
 */
static int
keep_last(const struct diagnose *dg)
{
	const char *path = dg->env->w.conf->error_buffer.pcapng;
	struct stat st;
	int error;

	if (lstat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return 0;
	if (st.st_size != 0 && is_capture(path) <= 0)
		return -EEXIST;
	error = st.st_size > head_len(dg) ? set_aside(path) : 0;
	if (error != 0)
		log_warn("error_buffer.pcapng %s: what is in it is lost: it cannot become FILE.1: "
			 "%s",
			path, why_no_other(error));
	return 0;
}

/* @return 0 with a file that is empty, or -errno. */
static int
make(struct diagnose *dg)
{
	const char *path = dg->env->w.conf->error_buffer.pcapng;
	struct errlog *l = &dg->errlog;
	int rc = keep_last(dg);
	const int fd = rc == 0 ? file_open(path) : rc;

	if (fd < 0)
		return fd;
	l->file = fdopen(fd, "w");
	if (l->file != NULL)
		return 0;
	rc = -errno;
	close(fd);
	return rc;
}

/* Its name leads to another file by now, or to none: somebody has moved it, or removed it. */
static bool
is_moved(const struct diagnose *dg)
{
	const struct errlog *l = &dg->errlog;
	struct stat own, named;

	if (l->file == NULL || !l->regular || fstat(fileno(l->file), &own) != 0)
		return false;
	return stat(dg->env->w.conf->error_buffer.pcapng, &named) != 0 ||
	       own.st_ino != named.st_ino || own.st_dev != named.st_dev;
}

/* Where the folder allows no other name it is begun anew as it is. */
static void
empty(struct diagnose *dg, int why)
{
	struct errlog *l = &dg->errlog;

	log_rated(&l->told, dg->env->now, LOG_WARN,
		"error_buffer.pcapng %s: what is in it is lost: it cannot become FILE.1: %s",
		dg->env->w.conf->error_buffer.pcapng, why_no_other(why));
	if (ftruncate(fileno(l->file), 0) != 0 || fseeko(l->file, 0, SEEK_SET) != 0)
		l->error = errno;
	begin(dg);
}

/**
 * The file is large or old enough: it becomes FILE.1, in place of the one before. A peer who sends
 * rubbish fills no disk. One that has another name, from us or from somebody else, is complete.
 */
static void
rotate(struct diagnose *dg, bool moved)
{
	const char *path = dg->env->w.conf->error_buffer.pcapng;
	struct errlog *l = &dg->errlog;
	int rc = moved ? 0 : set_aside(path);

	if (rc != 0) {
		empty(dg, rc);
		return;
	}
	fclose(l->file); /* its descriptor may be the last one */
	l->file = NULL;
	rc = make(dg);
	if (rc == 0)
		begin(dg);
	else
		log_error("error_buffer.pcapng %s: it cannot be made anew: %s; rx_errors goes on",
			path, why_not(rc));
}

int
errlog_open(struct diagnose *dg)
{
	const struct conf_error_buffer *conf = &dg->env->w.conf->error_buffer;
	struct errlog *l = &dg->errlog;
	int rc;

	if (!conf->present)
		return 0;
	l->ring = calloc(conf->entries, sizeof(l->ring[0]));
	if (l->ring == NULL)
		return -ENOMEM;
	l->room = conf->entries;
	if (conf->pcapng[0] == '\0')
		return 0;
	rc = make(dg);
	if (rc != 0) {
		log_error("error_buffer.pcapng %s: %s", conf->pcapng, why_not(rc));
		return rc;
	}
	begin(dg);
	return 0;
}

/* What has come until now: workers go on, and a peer may send rubbish without end. */
static void
write_rest(struct diagnose *dg)
{
	uint32_t left = 0, n = 1;

	for (uint32_t w = 0; w < dg->env->w.workers_n; w++)
		if (dg->env->w.workers[w].errbuf != NULL)
			left += trace_errbuf_waiting(dg->env->w.workers[w].errbuf);
	for (; dg->errlog.file != NULL && left != 0 && n != 0; left -= n < left ? n : left)
		n = errlog_poll(dg);
}

void
errlog_close(struct diagnose *dg)
{
	struct errlog *l = &dg->errlog;

	write_rest(dg);
	if (l->file != NULL)
		fclose(l->file);
	free(l->ring);
	*l = (struct errlog){ 0 };
}

/* In a full queue it takes the place of the oldest one, which may be in the file. */
static void
keep(struct errlog *l, const struct errlog_entry *e)
{
	if (l->n == l->room) {
		l->head = (l->head + 1) % l->room;
		l->n--;
		l->lost += l->file == NULL;
	}
	l->ring[(l->head + l->n++) % l->room] = *e;
}

/* The oldest one of all workers' buffers. */
static bool
take_oldest(const struct diagnose *dg, struct errlog_entry *out)
{
	struct errbuf *from = NULL;
	ns_t oldest = UINT64_MAX, t;

	for (uint32_t w = 0; w < dg->env->w.workers_n; w++) {
		struct errbuf *b = dg->env->w.workers[w].errbuf;

		if (b == NULL || !trace_errbuf_oldest(b, &t) || t >= oldest)
			continue;
		oldest = t;
		from = b;
		out->worker = (uint16_t)w;
	}
	return from != NULL && trace_errbuf_take(from, &out->r, 1) == 1;
}

uint32_t
errlog_poll(struct diagnose *dg)
{
	const uint32_t most = POLL_SHARE * dg->env->w.workers_n;
	struct errlog *l = &dg->errlog;
	struct errlog_entry e;
	uint32_t n = 0;

	if (l->room == 0)
		return 0;
	for (; n < most && take_oldest(dg, &e); n++) {
		if (l->file != NULL)
			put_packet(dg, &e);
		keep(l, &e);
	}
	if (l->file == NULL)
		return 0; /* no reason to be in a hurry: the buffers have room */
	if (n > 0)
		settle(dg);
	if (n > 0 && is_moved(dg))
		rotate(dg, true);
	else if (UNLIKELY(is_over(dg)))
		rotate(dg, false);
	return n;
}

bool
errlog_take(struct diagnose *dg, struct errlog_entry *out)
{
	struct errlog *l = &dg->errlog;

	errlog_poll(dg);
	if (l->n > 0) {
		*out = l->ring[l->head];
		l->head = (l->head + 1) % l->room;
		l->n--;
		return true;
	}
	return take_oldest(dg, out);
}

/* The newest that is not in the picture yet, of the queue here and of the workers' buffers. */
static bool
look_back(const struct diagnose *dg, uint32_t *queued, uint32_t *waiting, struct errlog_entry *out)
{
	const struct errlog *l = &dg->errlog;
	int best = -2; /* -1: the queue */

	if (*queued > 0) {
		*out = l->ring[(l->head + *queued - 1) % l->room];
		best = -1;
	}
	for (uint32_t w = 0; w < dg->env->w.workers_n; w++) {
		struct errbuf_record r;

		if (waiting[w] == 0)
			continue;
		trace_errbuf_look(dg->env->w.workers[w].errbuf, waiting[w] - 1, &r);
		if (best == -2 || r.time_ns > out->r.time_ns) {
			*out = (struct errlog_entry){ .r = r, .worker = (uint16_t)w };
			best = (int)w;
		}
	}
	if (best >= 0)
		waiting[best]--;
	else if (best == -1)
		--*queued;
	return best != -2;
}

uint32_t
errlog_look(struct diagnose *dg, struct errlog_entry *out, uint32_t most)
{
	uint32_t waiting[ENV_MAX_WORKERS] = { 0 };
	uint32_t queued, n = 0;

	errlog_poll(dg);
	queued = dg->errlog.n;
	for (uint32_t w = 0; w < dg->env->w.workers_n; w++)
		if (dg->env->w.workers[w].errbuf != NULL)
			waiting[w] = trace_errbuf_waiting(dg->env->w.workers[w].errbuf);
	while (n < most && look_back(dg, &queued, waiting, &out[n]))
		n++;
	for (uint32_t i = 0; i < n / 2; i++) {
		const struct errlog_entry e = out[i];

		out[i] = out[n - 1 - i];
		out[n - 1 - i] = e;
	}
	return n;
}
