/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Preloaded: fork number $LATE_FORK returns to the parent when a SIGTERM has come, not before. A
 * negative one returns to the child when it has killed the parent.
 */
#include <dlfcn.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

pid_t fork(void);

static int late; /* forks until the late one */

__attribute__((constructor)) static void
begin(void)
{
	const char *number = getenv("LATE_FORK");

	late = number != NULL ? atoi(number) : 0;
	/* Not for those that are started. */
	unsetenv("LATE_FORK");
}

pid_t
fork(void)
{
	pid_t (*const next)(void) = (pid_t(*)(void))dlsym(RTLD_NEXT, "fork");
	const pid_t parent = getpid(), pid = next();
	sigset_t term, was, came;

	if (late < 0 && ++late == 0 && pid == 0) {
		kill(parent, SIGKILL);
		while (getppid() == parent)
			poll(NULL, 0, 1);
	}
	if (pid <= 0 || late <= 0 || --late != 0)
		return pid;
	sigemptyset(&term);
	sigaddset(&term, SIGTERM);
	sigprocmask(SIG_BLOCK, &term, &was);
	do {
		poll(NULL, 0, 1);
		sigpending(&came);
	} while (sigismember(&came, SIGTERM) != 1);
	/* A handler runs here, if the caller's mask lets it. */
	sigprocmask(SIG_SETMASK, &was, NULL);
	return pid;
}
