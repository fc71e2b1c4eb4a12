/* SPDX-License-Identifier: BSD-3-Clause */
/* rocelane-run: options, the program, its exit status. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fds.h"
#include "plain.h"
#include "run.h"

#define DEFAULT_SOCKET "/run/rocelane.sock"
#define PRELOAD        "librocelane-rdmacm.so"

static struct plane plane;

static void
usage(FILE *to)
{
	fprintf(to,
		"usage: rocelane-run [OPTION...] PROGRAM [ARGUMENT...]\n"
		"\n"
		"Run a program that uses libibverbs over rocelane, as it is: no RDMA NIC, no kernel\n"
		"module, no privileges. Its devices are the ports of a dataplane.\n"
		"\n"
		"  -s, --socket PATH   of the dataplane ($ROCELANE_SOCKET, or else " DEFAULT_SOCKET
		")\n"
		"  -p, --private       start a dataplane for this run alone, with two ports that are\n"
		"                      connected in memory: rocelane0 (10.77.0.1) and rocelane1\n"
		"                      (10.77.0.2); without this, only if nobody answers\n"
		"                      and no socket was named\n"
		"      --poll          a private dataplane's worker never sleeps: lowest latency\n"
		"  -f, --faults FILE   rules for a bad wire, as for \"rocelanectl impair set\": of all\n"
		"                      ports, or {\"PORT\": {...}, ...}\n"
		"  -r, --record FILE   what is on the wire of a private dataplane (pcapng); what a rule\n"
		"                      did to a packet stands in its comment\n"
		"  -h, --help\n"
		"      --version\n"
		"\n"
		"The exit status is the program's; 128 + N if signal N ended it; 125 if it could not be\n"
		"started over rocelane, 126 or 127 if it cannot be run or was not found. At the end\n"
		"there is a line on standard error for each queue pair that failed, and why.\n");
}

/* Nothing is left of this run. */
static void
clean_up(void)
{
	files_remove();
	if (plane.pid == 0)
		control_faults_undo(plane.socket);
	plane_stop(&plane);
}

void
run_check(void)
{
	const int sig = signals_pending();

	if (sig == 0)
		return;
	clean_up();
	exit(128 + sig);
}

static __attribute__((format(printf, 1, 0))) void
say(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		return;
	fprintf(stderr, "rocelane-run: %s\n", plain_text(text, ""));
	free(text);
}

void
run_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
}

void
run_die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(fmt, ap);
	va_end(ap);
	clean_up();
	exit(RUN_FAILED);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Both, with a colon in between; a variable that was not there has one. */
static void
join(const char *variable, const char *first, const char *second)
{
	char *text;

	if (first == NULL || *first == '\0' || second == NULL || *second == '\0') {
		setenv(variable, first != NULL && *first != '\0' ? first : second, 1);
		return;
	}
	if (asprintf(&text, "%s:%s", first, second) < 0)
		run_die("out of memory");
	setenv(variable, text, 1);
	free(text);
}

/*
 * What runs between us and the program may set LD_LIBRARY_PATH anew, so it is a path, but for one
 * that the dynamic linker would split or expand: then it is found in the folder that the variable
 * has from us. Behind others, for a sanitizer has to be the first.
 */
static void
preload(const char *folder)
{
	char path[PATH_MAX];
	const bool whole = strpbrk(folder, " :$") == NULL &&
			   snprintf(path, sizeof(path), "%s/" PRELOAD, folder) < (int)sizeof(path);

	join("LD_PRELOAD", getenv("LD_PRELOAD"), whole ? path : PRELOAD);
}

static int
run_program(char **argv)
{
	int status, rc;
	pid_t pid;

	run_check();
	pid = fork();
	if (pid < 0)
		run_die("fork: %s", strerror(errno));
	if (pid == 0) {
		signals_restore();
		if (plane.apart) /* if it may not, it shares them as before */
			sched_setaffinity(0, sizeof(plane.others), &plane.others);
		run_judge(argv[0]);
		execvp(argv[0], argv);
		rc = errno;
		run_say("%s: %s", argv[0], strerror(rc));
		_exit(rc == ENOENT ? 127 : 126);
	}
	signals_pass_on(pid);
	rc = signals_wait(pid, &status);
	if (rc != 0)
		run_die("waitid: %s", strerror(-rc));
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- options --------------------------------------------------------------------------------- */

/* What was asked for is on standard output, or it cannot be written. */
static _Noreturn void
told(void)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		exit(0);
	run_die("cannot write: %s", strerror(errno));
}

struct options {
	const char *socket; /* NULL: none was named */
	const char *faults;
	const char *record;
	bool own;
	bool polls;
};

enum { OPT_POLL = 256, OPT_VERSION };

static void
parse(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = { { "socket", required_argument, NULL, 's' },
		{ "private", no_argument, NULL, 'p' }, { "poll", no_argument, NULL, OPT_POLL },
		{ "faults", required_argument, NULL, 'f' },
		{ "record", required_argument, NULL, 'r' }, { "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION }, { 0 } };
	int c;

	/* +: what follows PROGRAM is its own */
	while ((c = getopt_long(argc, argv, "+s:pf:r:h", longs, NULL)) >= 0) {
		if (c == 's') {
			o->socket = optarg;
		} else if (c == 'p') {
			o->own = true;
		} else if (c == OPT_POLL) {
			o->polls = true;
		} else if (c == 'f') {
			o->faults = optarg;
		} else if (c == 'r') {
			o->record = optarg;
		} else if (c == 'h') {
			usage(stdout);
			told();
		} else if (c == OPT_VERSION) {
			puts("rocelane-run " ROCELANE_VERSION);
			told();
		} else {
			fprintf(stderr, "See rocelane-run --help\n");
			exit(RUN_FAILED);
		}
	}
	if (optind == argc) {
		usage(stderr);
		exit(RUN_FAILED);
	}
	if (o->own && o->socket != NULL)
		run_die("--private and --socket: a private dataplane has a socket of its own");
}

/* The program may go to another folder: it is told a path from the root, where that fits. */
static void
take_socket(const char *path)
{
	char full[PATH_MAX];
	const bool fits = realpath(path, full) != NULL && plane_answers(full);

	snprintf(plane.socket, sizeof(plane.socket), "%s", path[0] != '/' && fits ? full : path);
}

static void
choose_plane(const struct options *o)
{
	const char *env = getenv("ROCELANE_SOCKET");
	const char *named = o->socket;
	const char *socket;

	if (named == NULL && env != NULL && *env != '\0')
		named = env;
	socket = named != NULL ? named : DEFAULT_SOCKET;
	if ((o->record != NULL || o->polls) && !o->own && (named != NULL || plane_answers(socket)))
		run_die("%s: only a dataplane of this run's own %s: add --private",
			o->record != NULL ? "--record" : "--poll",
			o->record != NULL ? "is recorded" : "is told to poll");
	if (!o->own && plane_answers(socket)) {
		take_socket(socket);
		control_await(plane.socket);
		return;
	}
	/* Who named one means that one. */
	if (!o->own && named != NULL)
		run_die("%s: nobody answers there (is rocelane running?)", socket);
	plane_start(&plane, o->polls, o->record);
}

int
main(int argc, char **argv)
{
	struct options o = { .socket = NULL };
	char library[PATH_MAX];
	json_t *faults = NULL;
	int status;

	fds_standard(); /* or a record or a socket is what messages go to */
	parse(argc, argv, &o);
	plane_library(library);
	/* Before signals are held: whoever reads a FIFO in vain may end us. */
	if (o.faults != NULL)
		faults = control_faults_read(o.faults);
	signals_hold();
	folder_sweep();
	choose_plane(&o);
	if (faults != NULL)
		control_faults(plane.socket, faults);
	json_decref(faults);
	control_mark(plane.socket);
	join("LD_LIBRARY_PATH", library, getenv("LD_LIBRARY_PATH"));
	/* ASan wants to be the first of all libraries, and does not need it. */
	join("ASAN_OPTIONS", "verify_asan_link_order=0", getenv("ASAN_OPTIONS"));
	preload(library);
	setenv("ROCELANE_SOCKET", plane.socket, 1);
	files_make(plane.socket);
	status = run_program(argv + optind);
	control_report(plane.socket);
	clean_up();
	return status;
}
