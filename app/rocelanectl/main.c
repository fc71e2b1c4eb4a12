/* SPDX-License-Identifier: BSD-3-Clause */
/* rocelanectl: options, and which command it is. */
#include <errno.h>
#include <getopt.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "fds.h"
#include "plain.h"

static bool json_errors; /* -j */

static void
message(int code, const char *fmt, va_list ap)
{
	char *text;
	json_t *v;

	fflush(stdout);
	if (vasprintf(&text, fmt, ap) < 0)
		ctl_must(NULL);
	plain_text(text, "\n");
	if (!json_errors) {
		fprintf(stderr, "rocelanectl: %s", text);
	} else {
		v = ctl_must(json_pack("{s:{s:i, s:s}}", "error", "code", code, "message", text));
		json_dumpf(v, stderr, JSON_ENSURE_ASCII);
		json_decref(v);
	}
	free(text);
	fputc('\n', stderr);
}

int
ctl_usage(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(RPC_USAGE, fmt, ap);
	va_end(ap);
	return CTL_USAGE;
}

int
ctl_refuse(int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(code, fmt, ap);
	va_end(ap);
	return CTL_REFUSED;
}

void *
ctl_must(void *p)
{
	if (p == NULL) {
		fprintf(stderr, "rocelanectl: out of memory, or text that is not UTF-8\n");
		exit(CTL_REFUSED);
	}
	return p;
}

static int
connect_once(struct ctl *ctl)
{
	int rc = ctl->rpc.line.fd >= 0 ? 0 : rpc_connect(&ctl->rpc, ctl->socket);

	if (rc == 0)
		return CTL_OK;
	if (!ctl->quiet && rc == -EACCES)
		ctl_refuse(ctl->rpc.code,
			"%s\nIt is for the dataplane's user: `control.mode` in the config says "
			"who else may open it",
			ctl->rpc.err);
	else if (!ctl->quiet)
		ctl_refuse(ctl->rpc.code,
			"%s\nIs the dataplane running? Start it with: rocelane --config FILE\n"
			"(`control.socket` in the config names its socket, -s chooses another here)",
			ctl->rpc.err);
	return CTL_REFUSED;
}

int
ctl_call(struct ctl *ctl, const char *method, json_t *params, json_t **result)
{
	if (connect_once(ctl) != CTL_OK) {
		json_decref(params);
		return CTL_REFUSED;
	}
	if (rpc_call(&ctl->rpc, method, params, result) == 0)
		return CTL_OK;
	if (!ctl->quiet)
		ctl_refuse(ctl->rpc.code, "%s", ctl->rpc.err);
	return CTL_REFUSED;
}

static bool
is_help(const char *word)
{
	return strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0 || strcmp(word, "help") == 0;
}

static int
unknown(const char *what, const char *word, const char *object)
{
	char *names = help_names(object);
	int rc;

	if (word == NULL)
		rc = ctl_usage("no %s given; one of: %s", what, names);
	else
		rc = ctl_usage("unknown %s '%s'; one of: %s", what, word, names);
	free(names);
	return rc;
}

static int
dispatch(struct ctl *ctl, int argc, char **argv)
{
	const struct command *cmd = argc > 0 ? command_find(argv[0], NULL) : NULL;
	int used = 1;

	if (argc > 0 && is_help(argv[0])) {
		help_all();
		return CTL_OK;
	}
	if (cmd == NULL)
		return unknown("object", argc > 0 ? argv[0] : NULL, NULL);
	if (cmd->verb != NULL) {
		if (argc > 1 && is_help(argv[1])) {
			help_object(argv[0]);
			return CTL_OK;
		}
		cmd = argc > 1 ? command_find(argv[0], argv[1]) : NULL;
		if (cmd == NULL)
			return unknown("verb", argc > 1 ? argv[1] : NULL, argv[0]);
		used = 2;
	}
	if (argc > used && is_help(argv[used])) {
		help_command(cmd);
		return CTL_OK;
	}
	return cmd->run(ctl, cmd, argc - used, argv + used);
}

static int
timeout_parse(const char *text, int *ms)
{
	char *end;
	double s = strtod(text, &end);

	if (end == text || *end != '\0' || !(s >= 0.001 && s <= 86400))
		return ctl_usage("-t takes 0.001 to 86400 seconds, not '%s'", text);
	*ms = (int)(s * 1000);
	return CTL_OK;
}

/* @param word  the last that was read whole: one of several letters is not that yet. */
static int
unknown_option(const char *word)
{
	const char letter[] = { '-', (char)optopt, '\0' };

	return ctl_usage("option '%s' is unknown, or lacks its value: see rocelanectl --help",
		optopt != 0 && strncmp(word, "--", 2) != 0 ? letter : word);
}

/* @return -1 to go on, else the exit code. */
static int
options(struct ctl *ctl, int argc, char **argv, bool *complete)
{
	static const struct option longs[] = {
		{ "socket", required_argument, NULL, 's' },
		{ "json", no_argument, NULL, 'j' },
		{ "timeout", required_argument, NULL, 't' },
		{ "help", no_argument, NULL, 'h' },
		{ "version", no_argument, NULL, 'V' },
		{ "complete", no_argument, NULL, 'c' },
		{ NULL, 0, NULL, 0 },
	};
	int c;

	opterr = 0;
	while (!*complete && (c = getopt_long(argc, argv, "+s:jt:hV", longs, NULL)) != -1) {
		switch (c) {
		case 's':
			ctl->socket = optarg;
			break;
		case 'j':
			ctl->json = true;
			json_errors = true;
			break;
		case 't':
			if (timeout_parse(optarg, &ctl->timeout_ms) != CTL_OK)
				return CTL_USAGE;
			break;
		case 'h':
			help_all();
			return CTL_OK;
		case 'V':
			printf("rocelanectl %s\n", ROCELANE_VERSION);
			return CTL_OK;
		case 'c':
			*complete = true;
			break;
		default:
			return unknown_option(argv[optind - 1]);
		}
	}
	return -1;
}

int
main(int argc, char **argv)
{
	const char *socket = getenv("ROCELANE_SOCKET"); /* as librocelane */
	struct ctl ctl = { .socket = socket != NULL && socket[0] != '\0' ? socket : CTL_SOCKET,
		.timeout_ms = 10000 };
	bool complete = false;
	int rc;

	fds_standard();
	rc = options(&ctl, argc, argv, &complete);

	rpc_init(&ctl.rpc, complete ? 1000 : ctl.timeout_ms);
	if (complete) {
		ctl.quiet = true;
		optind += optind < argc && strcmp(argv[optind], "--") == 0;
		complete_words(&ctl, argc - optind, argv + optind);
		rc = CTL_OK;
	} else if (rc < 0) {
		rc = dispatch(&ctl, argc - optind, argv + optind);
	}
	rpc_close(&ctl.rpc);
	if (fflush(stdout) != 0 || ferror(stdout) != 0)
		rc = rc != CTL_OK
			     ? rc
			     : ctl_refuse(RPC_REFUSED - errno, "cannot write: %s", strerror(errno));
	return rc;
}
