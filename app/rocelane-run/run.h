/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef RUN_H
#define RUN_H
/**
 * @file run.h  rocelane-run: a program over a dataplane, with nothing changed in the program.
 *
 * main.c     options, the program, its exit status    plane.c    a dataplane of its own
 * control.c  calls, faults, queue pairs that failed   signals.c  held, or passed on
 * files.c    what a kernel shows of RDMA devices      cpus.c     which CPU is the worker's
 * folder.c   folders of runs, and of those that were killed
 *
 * Owner:   one thread.
 * Memory:  what is left at the end goes with the process.
 * Depends: jsonrpc, jansson, client.
 */
#include <jansson.h>
#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/types.h>

#include "jsonrpc.h"

#define RUN_FAILED 125 /* exit status: the program was not started, for reasons of ours */

/** A line on standard error. What others wrote into it does not steer a terminal. */
void run_say(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** The same, and end with RUN_FAILED. Nothing is left: no dataplane of its own, file or rule. */
_Noreturn void run_die(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/** End, with nothing left, if a signal is held that would have ended us. */
void run_check(void);

/** Hold those that end a process, but for those that were ignored or blocked before. */
void signals_hold(void);
/** @return the number of one that is held; 0: none. */
int signals_pending(void);
/** In a child: as they were before signals_hold(). */
void signals_restore(void);
/** Hold none any more. Those that do not come from a terminal go to this process. */
void signals_pass_on(pid_t to);
/** Wait for the end of that process; from then on nothing is passed on. @return 0 or -errno. */
int signals_wait(pid_t pid, int *status);

/** A dataplane that was started for this run. */
struct plane {
	pid_t pid;  /* 0: none */
	int status; /* of one that has ended, as waitpid() gives it */
	bool apart; /* its worker has a CPU of its own, the program the others */
	cpu_set_t worker, others;
	char dir[PATH_MAX];    /* its files */
	char socket[PATH_MAX]; /* of the dataplane that is used, whoever started it */
};

/**
 * Start it, with two ports that are connected in memory, and wait until it answers.
 * @param record a file for what is on the wire; NULL: none.
 */
void plane_start(struct plane *p, bool polls, const char *record);
/**
 * End it, tell what a record lacks, which clients it turned out and whether it had ended by itself,
 * remove its files. May be called at any time, also twice.
 */
void plane_stop(struct plane *p);
/** Is anybody there? */
bool plane_answers(const char *socket);
/** Directory of our libibverbs.so.1; ends the program if there is none. */
void plane_library(char dir[PATH_MAX]);

/** @return where files of a run are made: XDG_RUNTIME_DIR, TMPDIR or /tmp. */
const char *folder_top(void);
/** A folder there, which nobody else removes while this process is. @return false: see errno. */
bool folder_make(char *path, size_t room);
/** With all that is in it; path is "" from then on. May be called with that. */
void folder_remove(char *path);
/** Those of runs that were killed. */
void folder_sweep(void);

/** Files that a kernel shows of RDMA devices, for the ports of this dataplane. */
void files_make(const char *socket);
/** May be called at any time, also twice. */
void files_remove(void);

/** Wait until it answers. Ends the program if it does not, or at a signal that would have. */
void control_await(const char *socket);
/** Rules of a file: of all ports, or {"PORT": rules, …}. A FIFO's may take their time. */
json_t *control_faults_read(const char *file);
/** These are in force from now on. @param faults stays the caller's. */
void control_faults(const char *socket, json_t *faults);
/** The ports that got some are as before, and no others are touched. May be called twice. */
void control_faults_undo(const char *socket);
/** Remember which queue pairs have failed so far. */
void control_mark(const char *socket);
/**
 * Which user is this, to the dataplane? In a user namespace, as of a rootless container, it has
 * another number. @param client one of ours, that is connected.
 */
void control_own(const char *socket, uint32_t client);
/** A line for each of this user that failed since control_mark(). @return how many. */
unsigned int control_report(const char *socket);

/** Says on standard error why a program that is about to run loads none of our libraries. */
void run_judge(const char *name);

#endif
