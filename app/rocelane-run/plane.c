/* SPDX-License-Identifier: BSD-3-Clause */
/* A dataplane of this run's own, and where the library is. */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cpus.h"
#include "run.h"

#define START_MS 60000
#define STOP_MS  15000

#define LAST_LINES 16 /* of the log of one that has ended by itself */

/* Of the directory: a socket's path, "/sock" in it, has 107 bytes. */
enum { DIR_MAX = sizeof(((struct sockaddr_un *)NULL)->sun_path) - sizeof("/sock") };

/* ---- files ----------------------------------------------------------------------------------- */

/* The build's before the installed one. @param near relative to this program's directory. */
static bool
find(const char *const near[], const char *installed, char out[PATH_MAX])
{
	char exe[PATH_MAX / 2] = "";
	const ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	const char *dir = n > 0 ? dirname(exe) : ".";

	for (int i = 0; near[i] != NULL; i++) {
		snprintf(out, PATH_MAX, "%s/%s", dir, near[i]);
		if (access(out, R_OK) == 0)
			return true;
	}
	snprintf(out, PATH_MAX, "%s", installed);
	return access(out, R_OK) == 0;
}

void
plane_library(char dir[PATH_MAX])
{
	static const char *const near[] = { "../../lib/verbs/libibverbs.so.1", NULL };

	if (!find(near, VERBS_DIR "/libibverbs.so.1", dir))
		run_die("%s is not there", dir);
	*strrchr(dir, '/') = '\0';
}

static void
path_in(const struct plane *p, const char *name, char out[PATH_MAX])
{
	snprintf(out, PATH_MAX, "%.*s/%s", DIR_MAX, p->dir, name);
}

static void
make_dir(struct plane *p)
{
	if (folder_make(p->dir, DIR_MAX + 1))
		return;
	p->dir[0] = '\0';
	if (errno == ENAMETOOLONG)
		run_die("%s: the path is too long for a socket", folder_top());
	run_die("no folder for the files of this run can be made in %s (XDG_RUNTIME_DIR, TMPDIR): %s",
		folder_top(), strerror(errno));
}

static json_t *
port(int n)
{
	char name[16], device[16], mac[18], ip4[16], ip6[16];

	snprintf(name, sizeof(name), "rocelane%d", n);
	snprintf(device, sizeof(device), "net_pair0%c", 'a' + n);
	snprintf(mac, sizeof(mac), "02:00:00:00:00:%02x", 1 + n);
	snprintf(ip4, sizeof(ip4), "10.77.0.%d", 1 + n);
	snprintf(ip6, sizeof(ip6), "fd77::%d", 1 + n);
	return json_pack("{s:s, s:s, s:s, s:s, s:i, s:s, s:i}", "name", name, "device", device,
		"mac", mac, "ipv4", ip4, "prefix", 24, "ipv6", ip6, "mtu", 4200);
}

/*
 * It is for its user's programs alone, and their memory is their own: QEMU registers a guest's, and
 * what they share with each other (/dev/shm, System V) cannot be sealed. They may all connect at
 * once, as cmtime does, and their connections come from one host.
 */
#define MEMORY    (INT64_C(1) << 40)
#define REGIONS   16384 /* each is a mapping: of those a process has 65530 */
#define PENDING   1024  /* a listener's, in Linux */
#define HALF_OPEN (8 * PENDING)
#define CHANNELS  16384 /* each is a descriptor: its dataplane may have too few for so many */
#define IDS       16384 /* cm.connections */
#define LISTENERS 256   /* one that hears all ports takes two */
#define QUEUES    2048  /* rdma_create_qp() makes two for each of 1024 queue pairs */

static json_t *
control(const char *socket)
{
	json_t *user = json_pack("{s:I, s:i, s:i, s:i, s:i}", "memory", (json_int_t)MEMORY, "mrs",
		REGIONS, "channels", CHANNELS, "cm_ids", IDS, "cm_listeners", LISTENERS);
	json_t *limits = json_deep_copy(user);

	json_object_set_new(limits, "cqs", json_integer(QUEUES));
	json_object_set_new(limits, "cm_pending", json_integer(PENDING));
	json_object_set_new(user, "cm_pending", json_integer(HALF_OPEN / 2));
	json_object_set_new(limits, "user", user);
	return json_pack("{s:s, s:s, s:o}", "socket", socket, "client_memory", "any",
		"client_limits", limits);
}

static void
write_config(const struct plane *p, const char *path, bool polls)
{
	json_t *conf = json_pack(
		"{s:i, s:[s, s, s, s, s, s, s], s:{s:i, s:[i], s:s}, s:o, s:[o, o], s:{s:i, s:i}}",
		"version", 1, "eal", "--no-huge", "-m", "256", "--no-pci", "--no-shconf",
		"--no-telemetry", "--log-level=error", "lcores", "control", 0, "workers", 1, "idle",
		!polls     ? "sleep"
		: p->apart ? "poll"
			   : "yield",
		"control", control(p->socket), "ports", port(0), port(1), "cm", "half_open",
		HALF_OPEN, "reqs", 1000000);

	if (conf == NULL || json_dump_file(conf, path, JSON_INDENT(1)) != 0)
		run_die("%s cannot be written", path);
	json_decref(conf);
}

/* ---- start and stop -------------------------------------------------------------------------- */

bool
plane_answers(const char *path)
{
	struct jsonrpc c = { .fd = -1 };
	const int rc = jsonrpc_connect(&c, path, jsonrpc_now_ms());

	jsonrpc_close(&c);
	return rc == 0 || rc == -EAGAIN; /* with too many others, it may be */
}

static void
wait_ms(long ms)
{
	const struct timespec ts = { ms / 1000, ms % 1000 * 1000000 };

	nanosleep(&ts, NULL);
}

/* Data of the program comes into it: it is nobody else's, and nobody else reads along. */
static int
record_open(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW, 0600);
	struct stat st;

	if (fd < 0 && errno == ELOOP)
		run_die("%s: a symbolic link is not followed", path);
	if (fd < 0 || fstat(fd, &st) != 0)
		run_die("%s: %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		run_die("%s: not a regular file", path);
	if (st.st_uid != geteuid())
		run_die("%s: it belongs to another user", path);
	if (fchmod(fd, 0600) != 0)
		run_die("%s: %s", path, strerror(errno));
	return fd;
}

/* Lcores of EAL may share CPUs if they are told so. */
static void
lcores_say(const struct plane *p, char *out, size_t room)
{
	char worker[CPUS_TEXT], others[CPUS_TEXT];

	if (p->apart) {
		cpus_text(&p->worker, worker);
		cpus_text(&p->others, others);
		snprintf(out, room, "--lcores=0@(%s),1@(%s)", others, worker);
		return;
	}
	snprintf(out, room, "--lcores=(0-1)@(0-%ld)", sysconf(_SC_NPROCESSORS_CONF) - 1);
}

static _Noreturn void
become(const struct plane *p, pid_t parent, const char *program, const char *config,
	const char *log, int record)
{
	const int out = open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	char lcores[2 * CPUS_TEXT + 32], fd[16];

	signals_restore();
	/* It ends with us, and not by the terminal's signals. */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* killed already: nobody would tell us */
		_exit(127);
	setsid();
	/* What EAL makes there for an ordinary user goes with the rest. */
	setenv("XDG_RUNTIME_DIR", p->dir, 1);
	if (out >= 0) {
		dup2(out, 1);
		dup2(out, 2);
	}
	lcores_say(p, lcores, sizeof(lcores));
	snprintf(fd, sizeof(fd), "%d", record);
	if (record >= 0)
		fcntl(record, F_SETFD, 0);
	execl(program, program, lcores, "--", "--config", config,
		record >= 0 ? "--record-fd" : NULL, fd, (char *)NULL);
	_exit(127);
}

/*
 * Print what follows `from`, itself included, of the log's lines that have `what` there.
 * @param skip leave out so many of them. @return how many there are.
 */
static uint32_t
tell_log(const char *log, const char *before, const char *from, const char *what, uint32_t skip)
{
	char line[512];
	FILE *f = fopen(log, "re");
	uint32_t n = 0;

	while (f != NULL && fgets(line, sizeof(line), f) != NULL) {
		const char *at = strstr(line, from);

		if (at != NULL && strstr(at, what) != NULL && n++ >= skip)
			fprintf(stderr, "%s%s", before, at);
	}
	if (f != NULL)
		fclose(f);
	return n;
}

static bool
has_ended(struct plane *p)
{
	if (p->pid != 0 && waitpid(p->pid, &p->status, WNOHANG) == p->pid)
		p->pid = 0;
	return p->pid == 0;
}

/* Errors of the program's calls name the log, which is removed with the other files. */
static void
tell_end(const struct plane *p, const char *log)
{
	const uint32_t n = tell_log(log, "", "", "", UINT32_MAX);
	const bool killed = WIFSIGNALED(p->status);

	run_say("the dataplane has ended by itself (%s %d); the end of its log:",
		killed ? "signal" : "status",
		killed ? WTERMSIG(p->status) : WEXITSTATUS(p->status));
	tell_log(log, "  ", "", "", n > LAST_LINES ? n - LAST_LINES : 0);
}

void
plane_start(struct plane *p, bool polls, const char *record)
{
	static const char *const near[] = { "rocelane", "../rocelane/rocelane", NULL };
	char program[PATH_MAX], config[PATH_MAX], log[PATH_MAX];
	const int64_t end = jsonrpc_now_ms() + START_MS;
	const pid_t self = getpid();
	cpu_set_t allowed;
	int fd = -1;

	if (!find(near, BIN_DIR "/rocelane", program) || access(program, X_OK) != 0)
		run_die("%s is not there", program);
	if (record != NULL)
		fd = record_open(record);
	p->apart = polls && sched_getaffinity(0, sizeof(allowed), &allowed) == 0 &&
		   cpus_apart(&allowed, &p->worker, &p->others);
	make_dir(p);
	path_in(p, "sock", p->socket);
	path_in(p, "config.json", config);
	path_in(p, "log", log);
	write_config(p, config, polls);
	p->pid = fork();
	if (p->pid < 0)
		run_die("fork: %s", strerror(errno));
	if (p->pid == 0)
		become(p, self, program, config, log, fd);
	if (fd >= 0)
		close(fd);
	while (!plane_answers(p->socket)) {
		if (has_ended(p) || jsonrpc_now_ms() > end) {
			tell_log(log, "  ", "", "", 0);
			run_die("the dataplane did not start");
		}
		run_check();
		wait_ms(5);
	}
}

void
plane_stop(struct plane *p)
{
	const int64_t end = jsonrpc_now_ms() + STOP_MS;
	bool by_itself = p->pid > 0 && has_ended(p), by_us = false;
	char path[PATH_MAX];

	if (p->pid > 0)
		kill(p->pid, SIGTERM);
	while (!has_ended(p)) {
		if (jsonrpc_now_ms() > end) {
			kill(p->pid, SIGKILL);
			by_us = true;
			waitpid(p->pid, NULL, 0);
			p->pid = 0;
		} else {
			wait_ms(5);
		}
	}
	if (p->dir[0] == '\0')
		return;
	/* One that is killed takes a moment to end. Our SIGTERM may come before it is held. */
	by_itself =
		by_itself || (!by_us && WIFSIGNALED(p->status) && WTERMSIG(p->status) != SIGTERM);
	path_in(p, "log", path);
	tell_log(path, "rocelane-run: ", "record: ", "", 0);
	tell_log(path, "rocelane-run: the dataplane's ", "warning: ", "; disconnected", 0);
	if (by_itself)
		tell_end(p, path);
	folder_remove(p->dir);
}
