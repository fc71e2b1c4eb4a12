/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals: held while there is nobody to pass them on to, then passed on to the program. */
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>

#include "run.h"

/* All that would end us, and that people send to a program. */
static const struct {
	int number;
	bool by_terminal;
} signals[] = { { SIGINT, true }, { SIGQUIT, true }, { SIGTERM, false }, { SIGHUP, false },
	{ SIGUSR1, false }, { SIGUSR2, false }, { SIGALRM, false } };

enum { SIGNALS = sizeof(signals) / sizeof(signals[0]) };

static struct sigaction was[SIGNALS]; /* by whoever started us */
static sigset_t held, mask;           /* what is held; what was blocked already */
static _Atomic pid_t child;           /* a signal handler reads it */

static void
pass_on(int sig, siginfo_t *info, void *context)
{
	(void)info;
	(void)context;
	if (child > 0)
		kill(child, sig);
}

/* The kernel's is the terminal's: it reaches the program by itself. */
static void
pass_on_of_process(int sig, siginfo_t *info, void *context)
{
	if (info->si_code <= 0)
		pass_on(sig, info, context);
}

void
signals_hold(void)
{
	sigprocmask(SIG_SETMASK, NULL, &mask);
	sigemptyset(&held);
	for (int i = 0; i < SIGNALS; i++) {
		sigaction(signals[i].number, NULL, &was[i]);
		/* What was ignored (nohup) stays so, for us and for the program. */
		if (was[i].sa_handler != SIG_IGN && sigismember(&mask, signals[i].number) == 0)
			sigaddset(&held, signals[i].number);
	}
	sigprocmask(SIG_BLOCK, &held, NULL);
}

int
signals_pending(void)
{
	sigset_t came;

	sigpending(&came);
	for (int i = 0; i < SIGNALS; i++)
		if (sigismember(&held, signals[i].number) == 1 &&
			sigismember(&came, signals[i].number) == 1)
			return signals[i].number;
	return 0;
}

void
signals_restore(void)
{
	for (int i = 0; i < SIGNALS; i++)
		sigaction(signals[i].number, &was[i], NULL);
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

void
signals_pass_on(pid_t to)
{
	struct sigaction sa = { .sa_flags = SA_SIGINFO };

	child = to;
	for (int i = 0; i < SIGNALS; i++) {
		sa.sa_sigaction = signals[i].by_terminal ? pass_on_of_process : pass_on;
		if (was[i].sa_handler != SIG_IGN)
			sigaction(signals[i].number, &sa, NULL);
	}
	sigprocmask(SIG_SETMASK, &mask, NULL);
}

int
signals_wait(pid_t pid, int *status)
{
	siginfo_t info;

	/* Its number stays its own until nobody signals it any more. */
	while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) != 0) {
		if (errno != EINTR)
			return -errno;
	}
	child = 0;
	return waitpid(pid, status, 0) == pid ? 0 : -errno;
}
