/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * sim [--seeds N] [--first S] [--packets MIN] [--jobs J] [--shared] [--timeless] [--verbose SEED]
 *
 * Plays N seeds from S on, and then more until MIN packets have been sent. Prints what was done; or
 * one line that says which seed failed, how to play it again, and what broke. With --shared all
 * runs that may lose packets share a queue with an end, marks and CNPs, have a rate by cc.algo, and
 * req.read_gap=fill; without, one in seven shares a queue. With --timeless most queue pairs of all
 * runs have timeout 0, where only what is told of a loss leads to a retry; without, of one run in
 * eight. The long run, at idle priority:
 *
 *   nice -n 19 sim --shared --packets 1000000000 --jobs 2
 */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "args.h"
#include "sim.h"

#define SEED_SECONDS 60 /* of the processor's time: one that takes longer hangs */
#define JOBS_MAX     64

static struct sim *running; /* for the signal handler */

/* ---- what breaks -------------------------------------------------------------------------- */

void
sim_fail(struct sim *s, const char *fmt, ...)
{
	char text[256];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	printf("sim %s%s--verbose %llu # %.6f ms: %s\n", s->share.all ? "--shared " : "",
		s->all_timeless ? "--timeless " : "", (unsigned long long)s->seed,
		(double)s->now / 1e6, text);
	fflush(stdout);
	_exit(1);
}

void
sim_trace(struct sim *s, const struct end *e, const char *fmt, ...)
{
	va_list ap;

	printf("%14.6f end %u ", (double)s->now / 1e6, e->index);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
}

static void
crashed(int sig)
{
	static const char digits[] = "0123456789";
	const bool shared = running != NULL && running->share.all;
	const bool timeless = running != NULL && running->all_timeless;
	char line[96] = "sim ", number[24];
	uint64_t seed = running != NULL ? running->seed : 0;
	size_t n, k = 0;

	strcat(line, shared ? "--shared " : "");
	strcat(line, timeless ? "--timeless --verbose " : "--verbose ");
	n = strlen(line);
	do {
		number[k++] = digits[seed % 10];
		seed /= 10;
	} while (seed != 0);
	while (k != 0)
		line[n++] = number[--k];
	memcpy(line + n, " # signal ", 10);
	n += 10;
	line[n++] = digits[sig / 10 % 10];
	line[n++] = digits[sig % 10];
	line[n++] = '\n';
	if (write(STDOUT_FILENO, line, n) < 0)
		_exit(3);
	_exit(1);
}

static void
catch_signals(void)
{
	static const int signals[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGPROF };

	for (size_t i = 0; i < ARRAY_LEN(signals); i++)
		signal(signals[i], crashed);
}

/* ---- what to do --------------------------------------------------------------------------- */

struct options {
	uint64_t seeds, first, packets;
	uint32_t jobs;
	bool verbose, shared, timeless;
	uint64_t verbose_seed;
};

#define USAGE                                                                             \
	"sim [--seeds N] [--first S] [--packets MIN] [--jobs J] [--shared] [--timeless] " \
	"[--verbose SEED]"

static struct options
parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "seeds", required_argument, NULL, 's' },
		{ "first", required_argument, NULL, 'f' },
		{ "packets", required_argument, NULL, 'p' },
		{ "jobs", required_argument, NULL, 'j' },
		{ "shared", no_argument, NULL, 'q' },
		{ "timeless", no_argument, NULL, 't' },
		{ "verbose", required_argument, NULL, 'v' },
		{ NULL, 0, NULL, 0 },
	};
	struct options o = { .seeds = 100, .first = 1, .jobs = 1 };
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		uint64_t v = c == '?' || optarg == NULL ? 0 : args_number(optarg, USAGE);

		switch (c) {
		case 's':
			o.seeds = v;
			break;
		case 'f':
			o.first = v;
			break;
		case 'p':
			o.packets = v;
			break;
		case 'j':
			o.jobs = (uint32_t)(v < 1 ? 1 : v > JOBS_MAX ? JOBS_MAX : v);
			break;
		case 'q':
			o.shared = true;
			break;
		case 't':
			o.timeless = true;
			break;
		case 'v':
			o.verbose = true;
			o.verbose_seed = v;
			break;
		default:
			args_bad(USAGE);
		}
	}
	if (optind != argc)
		args_bad(USAGE);
	args_seeds(o.first, o.seeds, USAGE);
	return o;
}

static double
seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void
report(const struct totals *t, double took)
{
#define N(x) (unsigned long long)(x)
	printf("%llu seeds, %llu packets in %.1f s: %.0f seeds/s, %.0f packets/s\n", N(t->seeds),
		N(t->packets), took, (double)t->seeds / took, (double)t->packets / took);
	printf("link: %llu lost, %llu corrupt, %llu duplicated, %llu very late; %llu for a QP before\n",
		N(t->lost), N(t->corrupt), N(t->duplicates), N(t->ghosts), N(t->strays));
	printf("requester: %llu completed (%llu ATOMIC WRITEs, %llu FLUSHes), "
	       "%llu REG_MRs, %llu windows bound, %llu invalidations, %llu flushed, "
	       "%llu packets resent, %llu timeouts (%llu of them early), "
	       "%llu sequence NAKs, %llu implied, %llu needless, %llu kept, %llu kept ahead, %llu RNR NAKs, %llu drained, "
	       "%llu migrations, %llu timeouts for what was told\n",
		N(t->completed), N(t->stores), N(t->flushes), N(t->registered), N(t->bound),
		N(t->invalidated), N(t->flushed), N(t->resent), N(t->timeouts), N(t->early),
		N(t->nak_seq), N(t->implied), N(t->needless), N(t->kept), N(t->ahead), N(t->rnr),
		N(t->drained), N(t->migrations), N(t->unheard));
	printf("shared queue: %llu dropped, %llu marked, %llu CNPs, %llu waits for a turn, "
	       "%llu round trips\n",
		N(t->overflowed), N(t->marked), N(t->cnps), N(t->paced), N(t->rounds));
	printf("connections: %llu made anew; failed work requests by status:", N(t->resets));
	for (uint32_t i = 0; i < ARRAY_LEN(t->status); i++)
		if (t->status[i] != 0)
			printf(" %u: %llu", i, N(t->status[i]));
	putchar('\n');
#undef N
}

static void
watch(time_t cpu_seconds)
{
	const struct itimerval t = { .it_value.tv_sec = cpu_seconds };

	setitimer(ITIMER_PROF, &t, NULL);
}

/** Every jobs-th seed from `first + job` on. */
static int
play(const struct options *o, uint32_t job, struct totals *out)
{
	struct sim *s = sim_create();
	uint64_t last = o->first + o->seeds, seed = o->first + job;

	running = s;
	s->share.all = o->shared;
	s->all_timeless = o->timeless;
	for (; seed < last || s->t.packets * o->jobs < o->packets; seed += o->jobs) {
		watch(SEED_SECONDS);
		sim_run(s, seed);
	}
	watch(0);
	*out = s->t;
	return 0;
}

static int
play_verbose(const struct options *o)
{
	struct sim *s = sim_create();

	running = s;
	s->share.all = o->shared;
	s->all_timeless = o->timeless;
	s->verbose = true;
	sim_run(s, o->verbose_seed);
	puts("nothing broke");
	return 0;
}

static void
add(struct totals *sum, const struct totals *t)
{
	uint64_t *to = (uint64_t *)sum;
	const uint64_t *from = (const uint64_t *)t;

	for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
		to[i] += from[i];
}

/** A process each; a pipe brings back what it did. */
static int
play_jobs(const struct options *o, struct totals *sum)
{
	int pipes[JOBS_MAX][2], failed = 0;
	pid_t pids[JOBS_MAX];
	struct totals t;

	fflush(stdout);
	for (uint32_t i = 0; i < o->jobs; i++) {
		if (pipe(pipes[i]) != 0 || (pids[i] = fork()) < 0) {
			perror("sim");
			exit(2);
		}
		if (pids[i] == 0) {
			play(o, i, &t);
			_exit(write(pipes[i][1], &t, sizeof(t)) == sizeof(t) ? 0 : 2);
		}
		close(pipes[i][1]);
	}
	for (uint32_t n = 0; n < o->jobs; n++) {
		int status;
		pid_t pid = wait(&status);

		for (uint32_t i = 0; i < o->jobs; i++) {
			if (pids[i] == pid)
				pids[i] = 0;
			else if (status != 0 && failed == 0 && pids[i] != 0)
				kill(pids[i], SIGTERM);
		}
		failed |= status != 0;
	}
	for (uint32_t i = 0; i < o->jobs; i++)
		if (read(pipes[i][0], &t, sizeof(t)) == sizeof(t))
			add(sum, &t);
	return failed;
}

int
main(int argc, char **argv)
{
	struct options o = parse_options(argc, argv);
	struct totals t = { 0 };
	double start = seconds();
	int rc;

	catch_signals();
	if (o.verbose)
		return play_verbose(&o);
	rc = o.jobs > 1 ? play_jobs(&o, &t) : play(&o, 0, &t);
	if (rc == 0)
		report(&t, seconds() - start);
	return rc;
}
