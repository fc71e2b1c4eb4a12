/* SPDX-License-Identifier: BSD-3-Clause */
#include "sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <seccomp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "compiler.h"
#include "log.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

bool
sandbox_is_left_out(void)
{
#ifdef SANITIZED
	return true;
#else
	return false;
#endif
}

/* ---- capabilities ---------------------------------------------------------------------------- */

/*
 * They belong to a thread, not to the process. Each thread gives its own up in a signal handler, as
 * the C library does it for user ids.
 */
#define THREADS     256
#define DROP_SIGNAL (SIGRTMIN + 4)
#define WAIT_MS     5000

static struct {
	uint64_t keep;
	_Atomic int rc;
	_Atomic uint32_t done;
} drop;

/** The calling thread's. Only system calls: this runs in a signal handler. */
static int
drop_own(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) != 0)
		return -errno;
	/* That of a thread without CAP_SETPCAP stays; PR_SET_NO_NEW_PRIVS makes it worthless. */
	for (int cap = 0; prctl(PR_CAPBSET_READ, cap, 0, 0, 0) >= 0; cap++)
		if ((drop.keep >> cap & 1) == 0)
			prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	for (int i = 0; i < 2; i++) {
		const uint32_t keep = (uint32_t)(drop.keep >> (32 * i));

		data[i].effective &= keep;
		data[i].permitted &= keep;
		data[i].inheritable = 0;
	}
	return syscall(SYS_capset, &head, data) == 0 ? 0 : -errno;
}

static void
on_drop(int sig UNUSED)
{
	const int before = errno, rc = drop_own();

	if (rc != 0)
		atomic_store(&drop.rc, rc);
	atomic_fetch_add(&drop.done, 1);
	errno = before;
}

/** Have this thread do it, and wait. @return 0 also for a thread that has ended. */
static int
drop_of(pid_t tid)
{
	const struct timespec ms = { 0, 1000000 };
	const uint32_t before = atomic_load(&drop.done);

	if (syscall(SYS_tgkill, getpid(), tid, DROP_SIGNAL) != 0)
		return errno == ESRCH ? 0 : -errno;
	for (int i = 0; i < WAIT_MS; i++) {
		if (atomic_load(&drop.done) != before)
			return atomic_load(&drop.rc);
		if (syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH)
			return 0;
		nanosleep(&ms, NULL);
	}
	return -ETIMEDOUT;
}

/** Threads that are not in `known` yet. @return how many were added, or -errno. */
static int
drop_new(pid_t *known, uint32_t *n)
{
	DIR *d = opendir("/proc/self/task");
	const uint32_t before = *n;
	struct dirent *e;
	int rc = 0;

	if (d == NULL)
		return -errno;
	while (rc == 0 && (e = readdir(d)) != NULL) {
		const pid_t tid = (pid_t)strtol(e->d_name, NULL, 10);
		uint32_t i = 0;

		if (tid <= 0)
			continue;
		while (i < *n && known[i] != tid)
			i++;
		if (i < *n)
			continue;
		if (*n == THREADS) {
			rc = -EMFILE;
			break;
		}
		rc = drop_of(tid);
		known[(*n)++] = tid;
	}
	closedir(d);
	return rc != 0 ? rc : (int)(*n - before);
}

/** Of all threads: until a look finds none that began meanwhile. */
static int
drop_all(uint64_t keep)
{
	struct sigaction sa = { .sa_handler = on_drop, .sa_flags = SA_RESTART }, old;
	pid_t known[THREADS];
	uint32_t n = 0;
	int rc;

	drop.keep = keep;
	if (sigaction(DROP_SIGNAL, &sa, &old) != 0)
		return -errno;
	do {
		rc = drop_new(known, &n);
	} while (rc > 0);
	sigaction(DROP_SIGNAL, &old, NULL);
	return rc;
}

/* ---- system calls ---------------------------------------------------------------------------- */

static const int calls[] = {
#define CALL(name) SCMP_SYS(name),
#include "sandbox_calls.def"
#undef CALL
};

static const int families[] = { AF_UNIX, AF_INET, AF_INET6, AF_NETLINK };

/* Requests of ioctl(), by what all of a kind have in common: interfaces, taps, vfio, vhost. */
static const struct {
	uint64_t mask;
	uint64_t value;
} requests[] = {
	{ 0xff00, 0x8900 },         /* SIOC* */
	{ 0xffffff00, 0x40045400 }, /* TUNSET* */
	{ 0xffffff00, 0x80045400 }, /* TUNGET* */
	{ 0xff00, 0x3b00 },         /* VFIO_* */
	{ 0xff00, 0xaf00 },         /* VHOST_* */
	{ 0xffff, 0x5401 },         /* TCGETS: is it a terminal? */
	{ 0xffff, 0x541b },         /* FIONREAD */
	{ 0xffff, 0x5421 },         /* FIONBIO */
};

#define W_AND_X     ((uint64_t)(PROT_WRITE | PROT_EXEC))
#define OPEN_WRITES ((uint64_t)(O_ACCMODE | O_CREAT | O_TRUNC))
#define MASKED(arg, mask, value)                     \
	&(const struct scmp_arg_cmp)                 \
	{                                            \
		arg, SCMP_CMP_MASKED_EQ, mask, value \
	}

static int
allow(scmp_filter_ctx f, int call, const struct scmp_arg_cmp *when)
{
	return seccomp_rule_add_array(f, SCMP_ACT_ALLOW, call, when != NULL ? 1 : 0, when);
}

/** Calls of which it depends on an argument. */
static int
allow_some(scmp_filter_ctx f, const struct sandbox_needs *needs)
{
	const struct scmp_arg_cmp *reads = MASKED(2, OPEN_WRITES, 0);
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(families); i++)
		rc = allow(f, SCMP_SYS(socket), MASKED(0, UINT32_MAX, (uint64_t)families[i]));
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(requests); i++)
		rc = allow(f, SCMP_SYS(ioctl), MASKED(1, requests[i].mask, requests[i].value));
	/* Threads, no processes. clone3() hides its flags; without it libc takes clone(). */
	if (rc == 0)
		rc = allow(f, SCMP_SYS(clone), MASKED(0, CLONE_THREAD, CLONE_THREAD));
	if (rc == 0)
		rc = seccomp_rule_add(f, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(clone3), 0);
	/* Nothing that was written is run. */
	if (rc == 0)
		rc = allow(f, SCMP_SYS(mmap), MASKED(2, PROT_EXEC, 0));
	if (rc == 0)
		rc = allow(f, SCMP_SYS(mmap), MASKED(2, W_AND_X, PROT_EXEC));
	if (rc == 0)
		rc = allow(f, SCMP_SYS(mprotect), MASKED(2, PROT_EXEC, 0));
	if (rc == 0)
		rc = allow(f, SCMP_SYS(openat), needs->writes_files ? NULL : reads);
	if (rc == 0)
		rc = allow(f, SCMP_SYS(prctl), MASKED(0, UINT32_MAX, PR_SET_NAME));
	if (rc == 0)
		rc = allow(f, SCMP_SYS(prctl), MASKED(0, UINT32_MAX, PR_GET_NAME));
	/* A limit is read, not set. */
	if (rc == 0)
		rc = allow(f, SCMP_SYS(prlimit64), MASKED(2, UINT64_MAX, 0));
	return rc;
}

static int
confine(const struct sandbox_needs *needs)
{
	scmp_filter_ctx f = seccomp_init(SCMP_ACT_ERRNO(EPERM));
	int rc = f == NULL ? -ENOMEM : 0;

	/* It sets PR_SET_NO_NEW_PRIVS as well, on all threads. */
	if (rc == 0)
		rc = seccomp_attr_set(f, SCMP_FLTATR_CTL_TSYNC, 1);
	/* The audit log names what is refused; kernels before 4.14 cannot. */
	if (rc == 0)
		seccomp_attr_set(f, SCMP_FLTATR_CTL_LOG, 1);
	for (size_t i = 0; rc == 0 && i < ARRAY_LEN(calls); i++)
		rc = allow(f, calls[i], NULL);
	if (rc == 0)
		rc = allow_some(f, needs);
	if (rc == 0)
		rc = seccomp_load(f);
	if (f != NULL)
		seccomp_release(f);
	return rc;
}

int
sandbox_enter(const struct sandbox_needs *needs)
{
	const uint64_t keep = needs->physical ? UINT64_C(1) << CAP_SYS_ADMIN : 0;
	int rc = drop_all(keep);

	if (rc != 0) {
		log_error("a thread keeps its capabilities: %s", strerror(-rc));
		return rc;
	}
	rc = confine(needs);
	if (rc != 0)
		log_error("system calls cannot be filtered: %s", strerror(-rc));
	return rc;
}
