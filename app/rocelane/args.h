/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef ARGS_H
#define ARGS_H
/**
 * @file args.h  The program's arguments, and the EAL's made from config and command line.
 *
 * Owner:   main lcore, before EAL starts.
 * Memory:  args point into argv; eal_args are allocated by eal_args_build().
 * Depends: conf.
 */
#include <stdbool.h>

#include "conf.h"

struct args {
	const char *config;
	bool check;
	bool verbose;
	double duration_s; /* 0: until told to stop */
	int record_fd;     /* of a file for what comes to the ports; -1: none */
	int eal_argc;      /* EAL arguments in front of "--" */
	char **eal_argv;
};

enum args_result { ARGS_RUN, ARGS_DONE, ARGS_UNTOLD, ARGS_BAD };

/**
 * @return ARGS_DONE after --help or --version; with a message on standard error ARGS_UNTOLD: that
 * could not be written, or ARGS_BAD.
 */
enum args_result args_parse(int argc, char **argv, struct args *out);

struct eal_args {
	int argc;
	char **argv; /* NULL-terminated; EAL puts it in another order */
	char **own;  /* the strings, to be freed */
};

/** Program name, lcores, the config's "eal", then the command line's. @return 0 or -ENOMEM. */
int eal_args_build(const struct conf *conf, const struct args *args, struct eal_args *out);
void eal_args_free(struct eal_args *a);

#endif
