/* SPDX-License-Identifier: BSD-3-Clause */
/* The device's counters, and other programs of the guest. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "peer.h"

#define MAX_ARGS 64

json_t *
version(struct peer *p, json_t *params)
{
	struct utsname u;

	(void)params;
	if (uname(&u) != 0)
		return peer_fail(errno, "uname");
	return json_pack(
		"{s:s, s:s, s:s}", "name", "peer", "kernel", u.release, "device", p->device);
}

json_t *
stats(struct peer *p, json_t *params)
{
	char folder[128], path[512];
	json_t *result = json_object();
	struct dirent *e;
	DIR *dir;

	(void)params;
	snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports/1/hw_counters", p->device);
	dir = opendir(folder);
	while (dir != NULL && (e = readdir(dir)) != NULL) {
		unsigned long long v;
		FILE *f;

		snprintf(path, sizeof(path), "%s/%s", folder, e->d_name);
		f = e->d_name[0] == '.' ? NULL : fopen(path, "r");
		if (f == NULL)
			continue;
		if (fscanf(f, "%llu", &v) == 1)
			json_object_set_new(result, e->d_name, json_integer((json_int_t)v));
		fclose(f);
	}
	if (dir != NULL)
		closedir(dir);
	return result;
}

static const char *
log_path(json_t *params, char *buf, size_t size)
{
	snprintf(buf, size, "/dev/shm/%s.log", value_text(params, "log"));
	return buf;
}

json_t *
run_start(struct peer *p, json_t *params)
{
	json_t *list = json_object_get(params, "argv");
	char *argv[MAX_ARGS + 1] = { NULL };
	char path[128];
	size_t i;
	json_t *v;
	pid_t pid;
	int fd;

	(void)p;
	if (json_array_size(list) == 0 || json_array_size(list) > MAX_ARGS)
		return peer_fail(EINVAL, "argv");
	json_array_foreach (list, i, v)
		argv[i] = (char *)(uintptr_t)(json_is_string(v) ? json_string_value(v) : "");
	fd = open(log_path(params, path, sizeof(path)), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC,
		0600);
	if (fd < 0)
		return peer_fail(errno, path);
	pid = fork();
	if (pid == 0) {
		dup2(fd, 1);
		dup2(fd, 2);
		execvp(argv[0], argv);
		_exit(127);
	}
	close(fd);
	return pid < 0 ? peer_fail(errno, "fork") : json_pack("{s:i}", "pid", (int)pid);
}

static json_t *
log_text(const char *path)
{
	static char text[1 << 16];
	FILE *f = fopen(path, "r");
	size_t n = f == NULL ? 0 : fread(text, 1, sizeof(text), f);
	json_t *s = json_stringn(text, n);

	if (f != NULL)
		fclose(f);
	return s != NULL ? s : json_string("(not UTF-8)");
}

json_t *
run_wait(struct peer *p, json_t *params)
{
	pid_t pid = (pid_t)value_number(params, "pid", 0);
	long left_ms = (long)value_number(params, "wait_ms", 0);
	char path[128];
	int status;
	pid_t r;

	(void)p;
	if (pid <= 0)
		return peer_fail(EINVAL, "pid");
	if (json_object_get(params, "signal") != NULL)
		kill(pid, (int)value_number(params, "signal", 0));
	while ((r = waitpid(pid, &status, WNOHANG)) == 0 && left_ms > 0) {
		usleep(10000);
		left_ms -= 10;
	}
	if (r < 0)
		return peer_fail(errno, "waitpid");
	return json_pack("{s:o, s:o}", "status",
		r == 0 ? json_null()
		       : json_integer(
				 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)),
		"output", log_text(log_path(params, path, sizeof(path))));
}
