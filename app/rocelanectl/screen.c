/* SPDX-License-Identifier: BSD-3-Clause */
#include "screen.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

static struct termios before; /* what the terminal gets back */
static bool changed;

static void
give_back(void)
{
	if (changed)
		tcsetattr(STDIN_FILENO, TCSANOW, &before);
	changed = false;
}

/* The terminal first, then what the signal would have done. */
static void
on_signal(int sig)
{
	give_back();
	signal(sig, SIG_DFL);
	raise(sig);
}

void
screen_begin(void)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT };
	struct termios t;

	if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0 ||
		tcgetattr(STDIN_FILENO, &before) != 0)
		return;
	t = before;
	t.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	t.c_cc[VMIN] = 1;
	t.c_cc[VTIME] = 0;
	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], on_signal);
	changed = true;
	atexit(give_back);
	tcsetattr(STDIN_FILENO, TCSANOW, &t);
}

static double
clock_s(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

bool
screen_wait(double seconds)
{
	const double end = clock_s() + seconds;
	double left;

	if (ferror(stdout) != 0)
		return true; /* nobody reads any more; main() says so */
	while ((left = end - clock_s()) > 0) {
		struct pollfd p = { .fd = changed ? STDIN_FILENO : -1, .events = POLLIN };
		const struct timespec ts = { .tv_sec = (time_t)left,
			.tv_nsec = (long)((left - (double)(time_t)left) * 1e9) };
		char key;

		if (ppoll(&p, 1, &ts, NULL) <= 0)
			continue;
		if (read(STDIN_FILENO, &key, 1) != 1 || key == 'q' || key == 'Q')
			return true;
	}
	return false;
}

/* Bytes of a line that fit into so many columns: the rest of a character is no column. */
static size_t
fitting(const char *line, size_t len, size_t columns)
{
	size_t i, seen = 0;

	for (i = 0; i < len; i++) {
		seen += ((unsigned char)line[i] & 0xc0) != 0x80;
		if (seen > columns)
			break;
	}
	return i;
}

void
screen_show(void (*print)(void *ctx), void *ctx)
{
	struct winsize size = { 0 };
	FILE *out = stdout;
	char *text = NULL;
	size_t len = 0;
	unsigned int row = 0;

	if (isatty(STDOUT_FILENO) == 0) {
		print(ctx);
		fflush(stdout);
		return;
	}
	stdout = open_memstream(&text, &len);
	if (stdout == NULL) {
		stdout = out;
		return;
	}
	print(ctx);
	fclose(stdout);
	stdout = out;
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	fputs("\033[H\033[J", stdout);
	for (const char *s = text; *s != '\0' && (size.ws_row == 0 || ++row < size.ws_row);) {
		const size_t n = strcspn(s, "\n");

		fwrite(s, 1, size.ws_col == 0 ? n : fitting(s, n, size.ws_col), stdout);
		putchar('\n');
		s += n + (s[n] == '\n');
	}
	fflush(stdout);
	free(text);
}
