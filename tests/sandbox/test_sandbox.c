/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process in the sandbox can still do, and what it cannot: in the thread that entered it, in
 * one that was there before, and in one that began later. Each case is a process of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler.h"
#include "sandbox.h"

/** One thing to try. @return 0, or the errno that it failed with. */
typedef int (*attempt)(void);

#define TRY(call) ((call) >= 0 ? 0 : errno)

static int
starts_program(void)
{
	char *argv[] = { (char *)(uintptr_t) "true", NULL };

	return TRY(execv("/bin/true", argv));
}

static int
starts_process(void)
{
	const pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	return TRY(pid);
}

static int
traces(void)
{
	return TRY(ptrace(PTRACE_TRACEME, 0, NULL, NULL));
}

static int
reads_other_process(void)
{
	char byte;
	struct iovec here = { &byte, 1 }, there = { &byte, 1 };

	return TRY(process_vm_readv(getppid(), &here, 1, &there, 1, 0));
}

static int
signals_other_process(void)
{
	return TRY(kill(getppid(), 0));
}

static int
opens_packet_socket(void)
{
	return TRY(socket(AF_PACKET, SOCK_RAW, 0));
}

static int
opens_vsock(void)
{
	return TRY(socket(AF_VSOCK, SOCK_STREAM, 0));
}

static int
writes_file(void)
{
	return TRY(open("/dev/null", O_WRONLY));
}

static int
makes_file(void)
{
	return TRY(open("/tmp/rocelane-sandbox", O_RDONLY | O_CREAT, 0600));
}

static int
changes_mode(void)
{
	return TRY(chmod("/tmp", 01777));
}

static int
changes_user(void)
{
	return TRY(setuid(getuid()));
}

static int
mounts(void)
{
	return TRY(syscall(SYS_mount, "none", "/tmp", "tmpfs", 0, NULL));
}

static int
leaves_namespace(void)
{
	return TRY(syscall(SYS_unshare, 0x10000000 /* CLONE_NEWUSER */));
}

static int
loads_bpf(void)
{
	return TRY(syscall(SYS_bpf, 0, NULL, 0));
}

static int
types_for_terminal(void)
{
	return TRY(ioctl(0, TIOCSTI, "x"));
}

static int
writes_code(void)
{
	return mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0) == MAP_FAILED
		       ? errno
		       : 0;
}

static int
makes_data_code(void)
{
	void *m = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	return TRY(mprotect(m, 4096, PROT_READ | PROT_EXEC));
}

static int
raises_limit(void)
{
	struct rlimit l = { 64, 64 };

	return TRY(setrlimit(RLIMIT_NOFILE, &l));
}

static int
can_be_dumped(void)
{
	return TRY(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0));
}

static const struct {
	const char *name;
	attempt attempt;
} forbidden[] = {
	{ "execve", starts_program },
	{ "fork", starts_process },
	{ "ptrace", traces },
	{ "process_vm_readv", reads_other_process },
	{ "kill", signals_other_process },
	{ "socket(AF_PACKET)", opens_packet_socket },
	{ "socket(AF_VSOCK)", opens_vsock },
	{ "open for writing", writes_file },
	{ "open that creates", makes_file },
	{ "chmod", changes_mode },
	{ "setuid", changes_user },
	{ "mount", mounts },
	{ "unshare", leaves_namespace },
	{ "bpf", loads_bpf },
	{ "ioctl(TIOCSTI)", types_for_terminal },
	{ "mmap of code that can be written", writes_code },
	{ "mprotect of data to code", makes_data_code },
	{ "setrlimit", raises_limit },
	{ "prctl(PR_SET_DUMPABLE)", can_be_dumped },
};

/** Capabilities of the calling thread, all of its sets, and whether its calls are filtered. */
static int
privileges(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0)
		return -1;
	for (int i = 0; i < 2; i++)
		if ((data[i].effective | data[i].permitted | data[i].inheritable) != 0)
			return -1;
	return 0;
}

/** What each thread tries. @return NULL, or what it could do. */
static void *
try_all(void *arg UNUSED)
{
	static char line[3][128];
	static _Atomic int lines;
	char *text = line[lines++ % 3];

	if (privileges() != 0) {
		snprintf(text, sizeof(line[0]), "capabilities are left");
		return text;
	}
	for (size_t i = 0; i < ARRAY_LEN(forbidden); i++) {
		const int rc = forbidden[i].attempt();

		if (rc != EPERM) {
			snprintf(text, sizeof(line[0]), "%s: %s", forbidden[i].name, strerror(rc));
			return text;
		}
	}
	return NULL;
}

static sem_t entered;

static void *
wait_then_try(void *arg)
{
	while (sem_wait(&entered) != 0)
		;
	return try_all(arg);
}

/** Run `fn` in a process of its own. @return its exit status; what it prints is of use then. */
static int
in_process(int (*fn)(void))
{
	int status;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		alarm(60);
		_exit(fn());
	}
	assert_true(pid > 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static int
report(const char *who, const char *what)
{
	if (what == NULL)
		return 0;
	fprintf(stderr, "%s: %s\n", who, what);
	return 1;
}

static int
each_thread(void)
{
	const struct sandbox_needs needs = { 0 };
	pthread_t before, after;
	void *what;
	int bad = 0;

	sem_init(&entered, 0, 0);
	pthread_create(&before, NULL, wait_then_try, NULL);
	if (sandbox_enter(&needs) != 0)
		return 2;
	sem_post(&entered);
	bad += report("this thread", try_all(NULL));
	pthread_join(before, &what);
	bad += report("a thread from before", what);
	if (pthread_create(&after, NULL, try_all, NULL) != 0)
		return 3;
	pthread_join(after, &what);
	bad += report("a thread begun later", what);
	return bad;
}

static void
no_thread_can(void **state UNUSED)
{
	assert_int_equal(in_process(each_thread), 0);
}

/** What the dataplane does while it runs. */
static int
work(void)
{
	const struct sandbox_needs needs = { 0 };
	const pid_t parent = getppid();
	struct stat st;
	int fd, pair[2];
	void *m;

	if (sandbox_enter(&needs) != 0)
		return 2;
	fd = memfd_create("area", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0 || ftruncate(fd, 8192) != 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) != 0 ||
		fcntl(fd, F_GET_SEALS) != F_SEAL_SHRINK || fstat(fd, &st) != 0)
		return 3;
	m = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
	if (m == MAP_FAILED || madvise(m, 8192, MADV_DONTDUMP) != 0 || munmap(m, 8192) != 0)
		return 4;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0 ||
		socket(AF_INET, SOCK_DGRAM, 0) < 0 || socket(AF_NETLINK, SOCK_RAW, 0) < 0)
		return 5;
	if (eventfd(0, EFD_NONBLOCK) < 0 || syscall(SYS_pidfd_open, parent, 0) < 0)
		return 6;
	if (open("/proc/self/status", O_RDONLY) < 0 || open("/dev/null", O_RDONLY) < 0)
		return 7;
	return 0;
}

static void
its_own_work_goes_on(void **state UNUSED)
{
	assert_int_equal(in_process(work), 0);
}

static int
write_where_needed(void)
{
	const struct sandbox_needs needs = { .writes_files = true };

	if (sandbox_enter(&needs) != 0)
		return 2;
	return writes_file() == 0 && starts_program() == EPERM ? 0 : 1;
}

static void
files_where_the_configuration_has_some(void **state UNUSED)
{
	assert_int_equal(in_process(write_where_needed), 0);
}

static int
keep_one(void)
{
	const struct sandbox_needs needs = { .physical = true };
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct old[2], data[2];

	if (syscall(SYS_capget, &head, old) != 0 || sandbox_enter(&needs) != 0 ||
		syscall(SYS_capget, &head, data) != 0)
		return 2;
	return data[0].permitted == (old[0].permitted & 1u << CAP_SYS_ADMIN) &&
			       data[1].permitted == 0
		       ? 0
		       : 1;
}

static void
physical_addresses_need_one_capability(void **state UNUSED)
{
	assert_int_equal(in_process(keep_one), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_thread_can),
		cmocka_unit_test(its_own_work_goes_on),
		cmocka_unit_test(files_where_the_configuration_has_some),
		cmocka_unit_test(physical_addresses_need_one_capability),
	};

	return cmocka_run_group_tests_name("sandbox", tests, NULL, NULL);
}
