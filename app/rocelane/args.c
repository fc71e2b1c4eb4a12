/* SPDX-License-Identifier: BSD-3-Clause */
#include "args.h"

#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define DURATION_MAX 1000000000u /* seconds: without an end for whoever waits */

static void
usage(FILE *out)
{
	fputs("usage: rocelane --config FILE [--check] [--duration SECONDS] [--verbose]\n"
	      "       rocelane EAL-ARGUMENTS -- --config FILE [...]\n"
	      "\n"
	      "  -c, --config FILE       JSON configuration (config/schema.json describes it)\n"
	      "      --check             only validate FILE: print every fault, exit 0 or 2\n"
	      "  -d, --duration SECONDS  stop cleanly after that time\n"
	      "      --record-fd FD      write what comes to the ports to this open file (pcapng)\n"
	      "  -v, --verbose           log debug lines\n"
	      "  -h, --help\n"
	      "      --version\n"
	      "\n"
	      "EAL arguments come after those in the config's \"eal\" array.\n"
	      "SIGINT, SIGTERM and SIGHUP stop cleanly (under nohup SIGHUP does nothing). Exit\n"
	      "status: 0 clean, 1 failed at run time, 2 wrong usage or configuration.\n",
		out);
}

/* What was asked for is on standard output, or it cannot be written. */
static enum args_result
told(void)
{
	if (fflush(stdout) == 0 && ferror(stdout) == 0)
		return ARGS_DONE;
	fprintf(stderr, "rocelane: cannot write: %s\n", strerror(errno));
	return ARGS_UNTOLD;
}

/* Everything in front of a lone "--" is EAL's; without one, everything is ours. */
static int
split(int argc, char **argv, struct args *out)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--") == 0) {
			out->eal_argc = i - 1;
			out->eal_argv = argv + 1;
			return i;
		}
	}
	return 0;
}

static bool
eal_is_good(const struct args *a)
{
	char text[256];

	for (int i = 0; i < a->eal_argc; i++) {
		if (!conf_eal_fault(a->eal_argv, (uint32_t)i, text, sizeof(text)))
			continue;
		fprintf(stderr, "rocelane: %s: %s\n", a->eal_argv[i], text);
		return false;
	}
	return true;
}

static bool
duration_parse(const char *text, double *out)
{
	char *end;

	*out = strtod(text, &end);
	return end != text && *end == '\0' && *out > 0 && *out <= DURATION_MAX;
}

/* A regular file that was opened for us. */
static bool
descriptor_parse(const char *text, int *out)
{
	struct stat st;
	char *end;
	const long fd = strtol(text, &end, 10);

	*out = (int)fd;
	return end != text && *end == '\0' && fd > 2 && fd <= INT_MAX && fstat((int)fd, &st) == 0 &&
	       S_ISREG(st.st_mode);
}

enum args_result
args_parse(int argc, char **argv, struct args *out)
{
	enum { OPT_CHECK = 256, OPT_RECORD, OPT_VERSION };
	static const struct option options[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "check", no_argument, NULL, OPT_CHECK },
		{ "duration", required_argument, NULL, 'd' },
		{ "record-fd", required_argument, NULL, OPT_RECORD },
		{ "verbose", no_argument, NULL, 'v' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, OPT_VERSION },
		{ NULL, 0, NULL, 0 },
	};
	static char program[] = "rocelane"; /* what getopt's messages start with */
	int skip, opt;

	memset(out, 0, sizeof(*out));
	out->record_fd = -1;
	skip = split(argc, argv, out);
	argc -= skip;
	argv += skip;
	argv[0] = program;
	optind = 1;
	while ((opt = getopt_long(argc, argv, "c:d:vh", options, NULL)) != -1) {
		switch (opt) {
		case 'c':
			out->config = optarg;
			break;
		case OPT_CHECK:
			out->check = true;
			break;
		case 'd':
			if (!duration_parse(optarg, &out->duration_s)) {
				fprintf(stderr,
					"rocelane: --duration wants seconds above 0, and no more than %u, not '%s'\n",
					DURATION_MAX, optarg);
				return ARGS_BAD;
			}
			break;
		case OPT_RECORD:
			if (!descriptor_parse(optarg, &out->record_fd)) {
				fprintf(stderr,
					"rocelane: --record-fd wants the descriptor of a file that is open, not '%s'\n",
					optarg);
				return ARGS_BAD;
			}
			break;
		case 'v':
			out->verbose = true;
			break;
		case 'h':
			usage(stdout);
			return told();
		case OPT_VERSION:
			puts("rocelane " ROCELANE_VERSION);
			return told();
		default:
			usage(stderr);
			return ARGS_BAD;
		}
	}
	if (optind < argc) {
		fprintf(stderr,
			"rocelane: unexpected argument '%s' (EAL arguments go in front of --)\n",
			argv[optind]);
		return ARGS_BAD;
	}
	if (out->config == NULL) {
		fputs("rocelane: --config FILE is missing\n", stderr);
		usage(stderr);
		return ARGS_BAD;
	}
	return eal_is_good(out) ? ARGS_RUN : ARGS_BAD;
}
