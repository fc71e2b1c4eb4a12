/* SPDX-License-Identifier: BSD-3-Clause */
/* Help on every level, and the words for completion, from the table of commands. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"

#define HELP_COLUMN 29 /* where the form of a key's value begins */

static const struct key *
key_find(const struct command *c, const char *name, size_t len)
{
	for (size_t i = 0; i < command_keys_n; i++) {
		const struct key *k = &command_keys[i];

		if (strlen(k->name) == len && strncmp(k->name, name, len) == 0 &&
			(k->object == NULL || strcmp(k->object, c->object) == 0))
			return k;
	}
	return NULL;
}

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
	       "  -j, --json             print the answer as JSON, and an error on standard error as\n"
	       "                         {\"error\": {\"code\", \"message\"}}\n"
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

/* The words that a value may be, in lines that a terminal holds. */
static void
print_choice(const char *what, const char *words)
{
	int column = printf("%*s%s", HELP_COLUMN, "", what);

	for (; *words != '\0'; words += strspn(words, " ")) {
		const int n = (int)strcspn(words, " ");

		if (column + n >= 80)
			column = printf("\n%*s", HELP_COLUMN + (int)strlen(what), "") - 1;
		column += printf(" %.*s", n, words);
		words += n;
	}
	putchar('\n');
}

static void
print_key(const struct command *c, const char *name, int len)
{
	const struct key *k = key_find(c, name, (size_t)len);
	const bool list = k != NULL && k->form != NULL && strcmp(k->form, "A,B") == 0;

	if (k == NULL) {
		printf("  %.*s\n", len, name);
		return;
	}
	printf("  %-26.*s %-21s %s\n", len, name,
		list              ? "list of names"
		: k->form != NULL ? k->form
				  : "word",
		k->help);
	if (k->method == NULL && k->words != NULL)
		print_choice(list ? "any of:" : "one of:", k->words);
}

void
help_command(const struct command *c)
{
	printf("usage: ");
	print_syntax(c);
	printf("\n%s (JSON-RPC method %s)\n", c->help, c->method);
	if (c->keys == NULL || c->run == run_stats)
		return;
	printf("\nKeys:\n");
	for (const char *s = c->keys; *s != '\0'; s += strspn(s, " ")) {
		const size_t n = strcspn(s, " ");

		print_key(c, s, (int)n);
		s += n;
	}
	printf("\nNumbers are decimal or 0x...; bytes may be written 64K, 16M, 1G; lists of names A,B.\n"
	       "Any other value is JSON where it looks like it (null, [1,2]), else a string; a.b sets\n"
	       "member b of a.\n");
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
	const struct key *k;
	char list[64];

	/* Where the name is the object's own, it is one of the object's list. */
	if (strcmp(name, "name") == 0 && c->verb != NULL) {
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
	k = key_find(c, name, strlen(name));
	if (k != NULL && k->method != NULL)
		print_members(ctl, k->method, k->words);
	else if (k != NULL && k->words != NULL)
		print_words(k->words);
}

/* What it makes has a name or a number that nobody has yet. */
static bool
makes(const struct command *c)
{
	return c->verb != NULL &&
	       (strcmp(c->verb, "create") == 0 || strcmp(c->verb, "register") == 0 ||
		       strcmp(c->verb, "alloc") == 0);
}

static bool
is_key(const struct command *c, const char *word)
{
	const size_t len = strlen(word);

	for (const char *s = c->keys; s != NULL && *s != '\0'; s += strspn(s, " ")) {
		const size_t n = strcspn(s, " ");

		if (n == len && strncmp(s, word, n) == 0)
			return true;
		s += n;
	}
	return false;
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
	if (c->run == run_post && argc > 0 && strcmp(argv[0], "srq") == 0) {
		c = command_find("post", "srq");
		spec = c->args;
		argc--;
		argv++;
	}
	while (params_next(&spec, name, sizeof(name), &kind, &optional)) {
		if (i == argc && !makes(c))
			print_values(ctl, c, name);
		if (optional && c->keys != NULL && (i == argc || is_key(c, argv[i])))
			continue; /* in front of pairs it may be left out */
		if (i++ == argc)
			return;
	}
	if (c->keys == NULL)
		return;
	if ((argc - i) % 2 == 0)
		print_words(c->keys);
	else
		print_values(ctl, c, argv[argc - 1]);
}

/*
 * An option in front of the object, with its value, if it has one: -s PATH, -sPATH, -jt5,
 * --socket PATH, and --socket=PATH, which bash takes apart. @return its words; 0: some are missing.
 */
static int
take_option(struct ctl *ctl, int argc, char **argv)
{
	const bool is_long = argv[0][1] == '-';
	const char *at = is_long ? argv[0] + 2 : strpbrk(argv[0], "st");
	const char *value = NULL;
	int n = 1;

	if (at == NULL || (is_long && *at != 's' && *at != 't'))
		return 1;
	if (!is_long && at[1] != '\0')
		value = at + 1;
	else if (is_long && strchr(at, '=') != NULL)
		value = strchr(at, '=') + 1;
	else
		n = is_long && argc > 1 && strcmp(argv[1], "=") == 0 ? 3 : 2;
	if (n > argc)
		return 0;
	if (*at == 's')
		ctl->socket = value != NULL ? value : argv[n - 1];
	return n;
}

void
complete_words(struct ctl *ctl, int argc, char **argv)
{
	const struct command *c;

	while (argc > 0 && argv[0][0] == '-') {
		const int n = take_option(ctl, argc, argv);

		if (n == 0)
			return;
		argc -= n;
		argv += n;
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
