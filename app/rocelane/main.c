/* SPDX-License-Identifier: BSD-3-Clause */
/* The dataplane program: arguments, config, EAL, workers; then the control loop until told to stop.
 */
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_launch.h>
#include <rte_lcore.h>
#include <rte_pause.h>

#include "args.h"
#include "capture.h"
#include "dataplane.h"
#include "fds.h"
#include "idle.h"
#include "log.h"
#include "mem_guard.h"
#include "notify.h"
#include "record.h"
#include "runtime.h"
#include "sandbox.h"
#include "telemetry.h"
#include "timebase.h"

enum { EXIT_CLEAN = 0, EXIT_RUN = 1, EXIT_CONFIG = 2 };

#define EAL_PATIENCE_S  1     /* after a signal */
#define PRINT_MS        1000  /* a reader of the counters may take for the first of them */
#define DESCRIPTORS     65536 /* there is room for at once */
#define EAL_DESCRIPTORS 16    /* and four for each worker: fewer do for no start */
#define ARENAS          256   /* of malloc(); each connection has a thread */

static struct dataplane dp;

/*
 * EAL's start looks at nothing. Mostly it is over at once, and its files are removed as at any end;
 * but it may take long, and there is nothing else to take down yet.
 */
static _Atomic bool starting = true;

static void
on_signal(int sig)
{
	const bool again = atomic_exchange_explicit(&dp.stop, true, memory_order_relaxed);

	if (!atomic_load_explicit(&starting, memory_order_relaxed))
		return;
	if (again || sig == SIGALRM)
		_exit(EXIT_CLEAN);
	alarm(EAL_PATIENCE_S);
}

/* A page of a client's memory is gone: zeros instead of the end of everything. */
static void
on_bus_error(int sig, siginfo_t *info, void *ctx UNUSED)
{
	if (!mem_guard_fault(info->si_addr))
		signal(sig, SIG_DFL); /* ours: as if there were no handler */
}

/* It has come: whoever waited in the kernel comes back (a close() that lingers). */
static void
on_nudge(int sig UNUSED)
{
}

static void
print_errors(const struct conf_errors *err)
{
	for (uint32_t i = 0; i < err->n; i++) {
		char line[1024];

		conf_error_print(err, i, line, sizeof(line));
		fprintf(stderr, "%s\n", line);
	}
	if (err->n_errors + err->n_warnings > err->n)
		fprintf(stderr, "... and more than these %u\n", err->n);
}

static int
load(const struct args *args, struct conf **conf)
{
	struct conf_errors err;
	struct stat st;
	int rc;

	if (stat(args->config, &st) == 0 && S_ISFIFO(st.st_mode))
		fprintf(stderr, "rocelane: %s is a FIFO: waiting for a configuration\n",
			args->config);
	conf_errors_init(&err);
	rc = conf_load_file(args->config, conf, &err);
	print_errors(&err);
	if (rc != 0 && err.n == 0)
		fprintf(stderr, "rocelane: %s: %s\n", args->config, strerror(-rc));
	conf_errors_free(&err);
	return rc;
}

static int
worker_main(void *arg)
{
	uint32_t *index = arg;
	void (*idle)(void *, uint32_t) = idle_poll;
	struct idle state;

	if (dp.conf->lcores.idle == CONF_IDLE_PAUSE)
		idle = idle_pause;
	else if (dp.conf->lcores.idle == CONF_IDLE_YIELD)
		idle = idle_yield;
	else if (dp.conf->lcores.idle == CONF_IDLE_SLEEP)
		idle = idle_sleep;
	idle_init(&state, &dp, *index);
	worker_run(dp.workers[*index], &dp.workers_stop, idle, &state);
	return 0;
}

static void
pump_pause(void *ctx UNUSED)
{
	rte_pause();
	sched_yield(); /* a worker may share this CPU */
}

static void
pump_rest(void)
{
	static const struct timespec moment = { .tv_nsec = 50 * 1000 };

	nanosleep(&moment, NULL);
}

static int
workers_launch(void)
{
	static uint32_t indices[CONF_MAX_WORKERS];

	for (uint32_t i = 0; i < dp.conf->lcores.n_workers; i++) {
		int rc;

		indices[i] = i;
		rc = rte_eal_remote_launch(worker_main, &indices[i], dp.conf->lcores.workers[i]);

		if (rc != 0) {
			log_error("lcore %u cannot run worker %u: %s", dp.conf->lcores.workers[i],
				i, strerror(-rc));
			return rc;
		}
	}
	return 0;
}

/* Has every worker turned since this was asked last? */
static bool
workers_turn(void)
{
	static uint64_t seen[CONF_MAX_WORKERS];
	bool all = true;

	for (uint32_t i = 0; i < dp.conf->lcores.n_workers; i++) {
		const uint64_t turns = worker_load(dp.workers[i])->turns;

		all = all && turns != seen[i];
		seen[i] = turns;
	}
	return all;
}

static void
control_wait(struct pollfd *fd)
{
	const struct timespec ts = { 0, (long)control_wait_us(dp.control) * 1000 };

	ppoll(fd, 1, &ts, NULL);
}

static void
control_loop(double duration_s)
{
	ns_t end = duration_s > 0 ? timebase_now() + (ns_t)(duration_s * (double)TIME_NS_PER_S) : 0;
	struct pollfd fd = { .fd = control_wait_fd(dp.control), .events = POLLIN };

	while (!atomic_load_explicit(&dp.stop, memory_order_relaxed)) {
		ns_t now = timebase_now();

		if (end != 0 && now >= end)
			break;
		if (notify_due(now) && workers_turn())
			notify_alive(now);
		if (control_poll(dp.control, now) == 0)
			control_wait(&fd);
	}
}

/* The end does not wait for a reader: a second for all lines. */
static void
print_line(void *ctx, const char *line)
{
	bool *gave_up = ctx;

	if (*gave_up)
		return;
	*gave_up = fds_would_wait(STDOUT_FILENO, PRINT_MS);
	if (*gave_up)
		log_warn("the counters are not printed: nobody reads standard output");
	else
		puts(line);
}

/* Ports, memory and sockets are there: the rest is given up. */
static int
enter_sandbox(const struct conf *conf)
{
	const bool huge = rte_eal_has_hugepages() != 0;
	const struct sandbox_needs needs = {
		.writes_files = huge || (conf->error_buffer.given & CONF_EB_PCAPNG) != 0,
		.physical = huge && rte_eal_iova_mode() == RTE_IOVA_PA,
	};
	int rc;

	if (!conf->control.sandbox)
		return 0;
	if (sandbox_is_left_out()) {
		log_info("built with a sanitizer: there is no sandbox");
		return 0;
	}
	rc = sandbox_enter(&needs);
	if (rc != 0)
		log_error("control.sandbox: false starts it all the same");
	return rc;
}

static int
run(const struct args *args, const struct conf *conf, const struct eal_args *ea)
{
	struct dataplane_hooks hooks = {
		.clock = timebase_now, .pump = pump_pause, .rest = pump_rest, .eal = ea
	};
	int rc = 0;

	if (args->record_fd >= 0)
		rc = record_open(args->record_fd, conf, timebase_now, &hooks.record);
	if (rc == 0)
		rc = dataplane_create(&dp, conf, &hooks);
	if (rc != 0) {
		record_close(hooks.record);
		return rc;
	}
	presence_open(&dp);
	rc = workers_launch();
	if (rc == 0)
		rc = dataplane_start(&dp);
	if (rc == 0)
		rc = enter_sandbox(conf);
	if (rc == 0) {
		log_info("running: %u worker%s, %u port%s, control socket %s",
			conf->lcores.n_workers, conf->lcores.n_workers == 1 ? "" : "s",
			conf->n_ports, conf->n_ports == 1 ? "" : "s", conf->control.socket);
		telemetry_register(&dp);
		notify_ready();
		control_loop(args->duration_s);
		log_info("stopping");
		notify_stopping();
		telemetry_stop();
		control_print_counters(dp.control, print_line, &(bool){ false });
	}
	dataplane_stop_control(&dp);
	atomic_store_explicit(&dp.workers_stop, true, memory_order_relaxed);
	rte_eal_mp_wait_lcore();
	record_close(hooks.record);
	presence_close(&dp);
	dataplane_destroy(&dp);
	if (rc != -ECANCELED)
		return rc;
	log_info("stopped before all of the configuration was there");
	return 0;
}

static const char *
eal_hint(int error)
{
	switch (error) {
	case EINVAL:
		return "the first of its lines above names the argument of \"eal\" that it does not "
		       "take";
	case ENODEV:
		return "no driver knows a device of \"eal\": EAL's line above names it";
	default:
		return "see its lines above; without hugepages or root use \"--no-huge\", "
		       "\"--no-shconf\"";
	}
}

/* EAL panics where it has none for the pipes of an lcore. */
static bool
descriptors_do(uint32_t workers)
{
	const uint32_t want = EAL_DESCRIPTORS + 4 * workers;
	int fd[EAL_DESCRIPTORS + 4 * CONF_MAX_WORKERS];
	uint32_t n = 0;

	while (n < want && (fd[n] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0)
		n++;
	for (uint32_t i = 0; i < n; i++)
		close(fd[i]);
	if (n < want)
		log_error("%u descriptors are free, and the start takes %u or more (ulimit -n)", n,
			want);
	return n == want;
}

static int
eal_start(const struct args *args, const struct conf *conf, struct eal_args *ea)
{
	int rc = eal_args_build(conf, args, ea);
	int taken;

	if (rc != 0)
		return rc;
	if (!descriptors_do(conf->lcores.n_workers))
		return -EMFILE;
	/* EAL keeps pointers into argv: eal_args_free() only after rte_eal_cleanup(). */
	taken = rte_eal_init(ea->argc, ea->argv);
	if (taken < 0) {
		log_error("EAL does not start%s%s (%s)", rte_errno != 0 ? ": " : "",
			rte_errno != 0 ? rte_strerror(rte_errno) : "", eal_hint(rte_errno));
		return -EIO;
	}
	/* What is no option, and no option's value, it puts behind the rest. */
	if (taken + 1 < ea->argc) {
		log_error(
			"\"%s\" among the arguments of \"eal\" is no option, nor an option's value",
			ea->argv[taken + 1]);
		return -EINVAL;
	}
	for (uint32_t i = 0; i < conf->lcores.n_workers; i++) {
		if (!rte_lcore_is_enabled(conf->lcores.workers[i]) ||
			conf->lcores.workers[i] == rte_get_main_lcore()) {
			log_error("lcore %u of \"lcores.workers\" is %s", conf->lcores.workers[i],
				rte_lcore_is_enabled(conf->lcores.workers[i])
					? "EAL's main lcore"
					: "not among EAL's lcores");
			return -EINVAL;
		}
	}
	return 0;
}

/* Each region and each connection is a descriptor, and a shell's soft limit is low. */
static void
raise_limits(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
	/* Without its capabilities the process may lock no more than this. */
	if (geteuid() == 0)
		setrlimit(RLIMIT_MEMLOCK, &(const struct rlimit){ RLIM_INFINITY, RLIM_INFINITY });
}

/*
 * What grows later makes the control lcore wait for others: the kernel for all CPUs when the table
 * of descriptors does, malloc() for a lock when more threads come than it has arenas.
 */
static void
grow_now(void)
{
	struct rlimit l;
	int fd;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0) {
		const rlim_t n = l.rlim_cur < DESCRIPTORS ? l.rlim_cur : DESCRIPTORS;

		fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, (int)n - 1);
		if (fd >= 0)
			close(fd);
	}
	mallopt(M_ARENA_MAX, ARENAS);
}

/** Handlers, and no signal is blocked any more: whoever starts us may have blocked each of them. */
static void
take_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal };
	struct sigaction bus = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO };
	struct sigaction nudge = { .sa_handler = on_nudge };
	struct sigaction hup;
	sigset_t none;

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sigaction(SIGALRM, &sa, NULL);
	/* The terminal is gone: stop cleanly, unless the signal was ignored when we started. */
	if (sigaction(SIGHUP, NULL, &hup) == 0 && hup.sa_handler != SIG_IGN)
		sigaction(SIGHUP, &sa, NULL);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a write or ftruncate() fails then, and we say so */
	sigaction(SIGBUS, &bus, NULL);
	sigaction(SIGURG, &nudge, NULL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

int
main(int argc, char **argv)
{
	struct eal_args ea = { 0 };
	struct conf *conf = NULL;
	struct args args;
	int rc;

	fds_standard();
	timebase_begin();
	switch (args_parse(argc, argv, &args)) {
	case ARGS_DONE:
		return EXIT_CLEAN;
	case ARGS_UNTOLD:
		return EXIT_RUN;
	case ARGS_BAD:
		return EXIT_CONFIG;
	case ARGS_RUN:
		break;
	}
	if (args.verbose)
		log_set_level(LOG_DEBUG);
	if (load(&args, &conf) != 0)
		return EXIT_CONFIG;
	if (args.check) {
		conf_free(conf);
		return EXIT_CLEAN;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	raise_limits();
	grow_now();
	take_signals();
	runtime_begin();
	rc = eal_start(&args, conf, &ea);
	atomic_store_explicit(&starting, false, memory_order_relaxed);
	if (atomic_load_explicit(&dp.stop, memory_order_relaxed))
		alarm(0); /* on_signal()'s; one that was set before our exec() goes on */
	if (rc == 0) {
		runtime_enter();
		timebase_init();
		notify_init();
		capture_start();
		if (!atomic_load_explicit(&dp.stop, memory_order_relaxed))
			rc = run(&args, conf, &ea);
		capture_stop();
		rte_eal_cleanup();
	} else if (atomic_load_explicit(&dp.stop, memory_order_relaxed)) {
		rc = 0; /* the signal may have ended a call of EAL's */
	}
	if (rc != 0 && !log_had_error())
		log_error("%s", strerror(-rc)); /* somebody gave up without a word */
	eal_args_free(&ea);
	conf_free(conf);
	return rc == 0 ? EXIT_CLEAN : EXIT_RUN;
}
