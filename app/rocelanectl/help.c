/* SPDX-License-Identifier: BSD-3-Clause */
/* Help on every level, and the words for completion, from the table of commands. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

static bool
new_object(size_t i)
{
	return i == 0 || strcmp(commands[i].object, commands[i - 1].object) != 0;
}

static void
print_syntax(const struct command *c)
{
	const char *spec = c->args;
	char name[64];
	char kind;
	bool optional;

	printf("rocelanectl %s%s%s", c->object, c->verb != NULL ? " " : "",
		c->verb != NULL ? c->verb : "");
	while (params_next(&spec, name, sizeof(name), &kind, &optional)) {
		for (char *p = name; *p != '\0'; p++)
			*p = (char)toupper((unsigned char)*p);
		printf(optional ? " [%s]" : " %s", name);
	}
	if (c->run == run_stats)
		printf(" [total | port | worker | qp N] [--all] [--watch [SECONDS]]");
	else if (c->keys != NULL)
		printf(" [KEY VALUE]...");
	putchar('\n');
}

void
help_all(void)
{
	printf("usage: rocelanectl [-s SOCKET] [-j] [-t SECONDS] OBJECT VERB ...\n"
	       "Command line to a running rocelane dataplane.\n\n");
	for (size_t i = 0; i < commands_n; i++) {
		const struct command *c = &commands[i];

		if (c->verb == NULL) {
			printf("%s  %-9s %s", i > 0 ? "\n" : "", c->object, c->help);
			continue;
		}
		if (new_object(i))
			printf("%s  %-9s %s", i > 0 ? "\n" : "", c->object, c->verb);
		else
			printf("|%s", c->verb);
	}
	printf("\n\n"
	       "  -s, --socket SOCKET    the daemon's control socket ($ROCELANE_SOCKET, or else\n"
	       "                         %s)\n"
	       "  -j, --json             print the answer as JSON\n"
	       "  -t, --timeout SECONDS  how long to wait for an answer (default 10)\n"
	       "  -h, --help             help; also after an object or a verb\n"
	       "  -V, --version          this program's version (`version` asks the daemon)\n"
	       "      --complete [WORD]...  words that may follow, for the shell\n\n"
	       "Exit codes: 0 done, 1 refused or not reached, 2 usage.\n",
		CTL_SOCKET);
}

void
help_object(const char *object)
{
	for (size_t i = 0; i < commands_n; i++) {
		if (strcmp(commands[i].object, object) != 0)
			continue;
		print_syntax(&commands[i]);
		printf("        %s\n", commands[i].help);
	}
}

void
help_command(const struct command *c)
{
	size_t column = 0;

	printf("usage: ");
	print_syntax(c);
	printf("\n%s (JSON-RPC method %s)\n", c->help, c->method);
	if (c->keys == NULL || c->run == run_stats)
		return;
	printf("\nKeys:\n");
	for (const char *s = c->keys; *s != '\0'; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		if (column > 0 && column + n > 76)
			column = 0;
		printf("%s%.*s", column > 0 ? " " : s == c->keys ? "  " : "\n  ", (int)n, s);
		column += n + 1;
		s += n;
	}
	printf("\n\nA value is JSON where it looks like it (17, null, [1,2]), else a string; lists of\n"
	       "names are written A,B; a.b sets member b of a.\n");
}

char *
help_names(const char *object)
{
	char *text = NULL;
	size_t len = 0;
	FILE *f = ctl_must(open_memstream(&text, &len));
	const char *sep = "";

	for (size_t i = 0; i < commands_n; i++) {
		if (object == NULL ? !new_object(i) : strcmp(commands[i].object, object) != 0)
			continue;
		fprintf(f, "%s%s", sep, object == NULL ? commands[i].object : commands[i].verb);
		sep = ", ";
	}
	fclose(f);
	return ctl_must(text);
}

/* ---- completion ----------------------------------------------------------------------------- */

/* What the value of a key, or a positional word, may be: words, or a member of a list. */
static const struct source {
	const char *name;
	const char *method; /* NULL: `words` are all */
	const char *words;  /* with a method: the member */
} sources[] = {
	{ "qp_num", "qp_list", "qp_num" },
	{ "cq", "cq_list", "name" },
	{ "send_cq", "cq_list", "name" },
	{ "recv_cq", "cq_list", "name" },
	{ "srq", "srq_list", "name" },
	{ "mr", "mr_list", "name" },
	{ "port", "port_list", "name" },
	{ "qp_state", NULL, "RESET INIT RTR RTS SQD SQE ERR" },
	{ "qp_type", NULL, "RC" },
	{ "path_mtu", NULL, "256 512 1024 2048 4096" },
	{ "profile", NULL, "iba ernic" },
	{ "qp_access_flags", NULL, "REMOTE_READ REMOTE_WRITE REMOTE_ATOMIC" },
	{ "access", NULL, "LOCAL_WRITE REMOTE_READ REMOTE_WRITE REMOTE_ATOMIC" },
	{ "fill", NULL, "zero" },
	{ "send_flags", NULL, "SIGNALED FENCE SOLICITED INLINE" },
	{ "opcode", NULL,
		"SEND SEND_WITH_IMM SEND_WITH_INV RDMA_WRITE RDMA_WRITE_WITH_IMM "
		"RDMA_READ ATOMIC_CMP_AND_SWP ATOMIC_FETCH_AND_ADD" },
};

static void
print_words(const char *words)
{
	for (; *words != '\0'; words += strspn(words, " ")) {
		size_t n = strcspn(words, " ");

		printf("%.*s\n", (int)n, words);
		words += n;
	}
}

static void
print_members(struct ctl *ctl, const char *method, const char *key)
{
	json_t *rows;

	if (ctl_call(ctl, method, NULL, &rows) != CTL_OK)
		return;
	for (size_t i = 0; i < json_array_size(rows); i++) {
		char *text = fmt_value(json_object_get(json_array_get(rows, i), key));

		puts(text);
		free(text);
	}
	json_decref(rows);
}

static void
print_values(struct ctl *ctl, const struct command *c, const char *name)
{
	char list[64];

	/* Where the name is the object's own, it is one of the object's list. */
	if (strcmp(name, "name") == 0 && c->verb != NULL && strcmp(c->verb, "create") != 0 &&
		strcmp(c->verb, "register") != 0) {
		snprintf(list, sizeof(list), "%s_list", c->object);
		if (command_find(c->object, "list") != NULL)
			print_members(ctl, list, "name");
		return;
	}
	/* Of those that failed, gone ones too. */
	if (c->run == run_post_mortem) {
		print_members(ctl, c->method, name);
		return;
	}
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		if (strcmp(sources[i].name, name) != 0)
			continue;
		if (sources[i].method != NULL)
			print_members(ctl, sources[i].method, sources[i].words);
		else
			print_words(sources[i].words);
	}
}

/* The words of a command were `argv`: what may come next. */
static void
complete_command(struct ctl *ctl, const struct command *c, int argc, char **argv)
{
	const char *spec = c->args;
	char name[64];
	char kind;
	bool optional;
	int i = 0;

	if (c->run == run_stats) {
		if (argc > 0 && strcmp(argv[argc - 1], "qp") == 0)
			print_values(ctl, c, "qp_num");
		else
			print_words(c->keys);
		return;
	}
	while (params_next(&spec, name, sizeof(name), &kind, &optional)) {
		if (optional && c->keys != NULL)
			continue;
		if (i++ == argc) {
			print_values(ctl, c, name);
			return;
		}
	}
	if (c->keys == NULL)
		return;
	if ((argc - i) % 2 == 0)
		print_words(c->keys);
	else
		print_values(ctl, c, argv[argc - 1]);
}

void
complete_words(struct ctl *ctl, int argc, char **argv)
{
	const struct command *c;

	while (argc > 0 && argv[0][0] == '-') {
		bool value = strcmp(argv[0], "-s") == 0 || strcmp(argv[0], "--socket") == 0 ||
			     strcmp(argv[0], "-t") == 0 || strcmp(argv[0], "--timeout") == 0;

		if (value && argc == 1)
			return;
		if (value && argv[0][strspn(argv[0], "-")] == 's')
			ctl->socket = argv[1];
		argc -= 1 + value;
		argv += 1 + value;
	}
	if (argc == 0) {
		for (size_t i = 0; i < commands_n; i++)
			if (new_object(i))
				puts(commands[i].object);
		return;
	}
	c = command_find(argv[0], NULL);
	if (c == NULL)
		return;
	if (c->verb == NULL) {
		complete_command(ctl, c, argc - 1, argv + 1);
	} else if (argc == 1) {
		for (size_t i = 0; i < commands_n; i++)
			if (strcmp(commands[i].object, argv[0]) == 0)
				puts(commands[i].verb);
	} else if ((c = command_find(argv[0], argv[1])) != NULL) {
		complete_command(ctl, c, argc - 2, argv + 2);
	}
}
