/* SPDX-License-Identifier: BSD-3-Clause */
/* A program without verbs, whose plugin has some and is closed before fork(): plugin_host PLUGIN */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BYTES = 10000 };

int
main(int argc, char **argv)
{
	void *plugin = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
	int (*use)(void *at, size_t len) = NULL;
	char *at = malloc(BYTES);
	int status;
	pid_t pid;

	if (plugin != NULL)
		use = (int (*)(void *, size_t))(uintptr_t)dlsym(plugin, "plugin_use");
	if (use == NULL || at == NULL || use(at, BYTES) != 0 || dlclose(plugin) != 0)
		return 1;
	memset(at, 'p', BYTES);
	pid = fork();
	if (pid == 0) {
		memset(at, 'c', BYTES);
		_exit(7);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status) ||
		WEXITSTATUS(status) != 7)
		return 2;
	printf("%s\n", at[0] == 'p' ? "its own" : "its child's");
	return 0;
}
