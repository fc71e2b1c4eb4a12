/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads stand still: a signal to each, and a handler that waits. See convert_stop.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "convert_stop.h"

#ifndef __x86_64__
#error "threads wait in x86-64 code"
#endif

#define STOP_SIGNAL 33 /* glibc's SIGSETXID: sigprocmask() leaves it out */
#define THREADS     4096u
#define LATEST_NS   2000000000ull
#define TRAPPED_NS  100000000ull /* ... where it is no error, and none of them runs meanwhile */
#define PAUSE_NS    50000
#define LOOK_NS     10000000ull /* after so long: is it one that has ended? */
#define BARE        __attribute__((no_stack_protector, no_sanitize("address", "undefined")))

/* As the kernel has it. */
struct action {
	void (*handler)(int, siginfo_t *, void *);
	unsigned long flags;
	void (*restorer)(void);
	unsigned long mask;
};

#define RESTORER 0x04000000ul /* SA_RESTORER */

struct entry {
	uint32_t tid;
	uint32_t stands; /* in which stop */
	/* What it slept in when it was looked at. */
	uint64_t number; /* of the system call; NOT_SLEEPING */
	uint64_t sp;
	uint64_t pc;
};

#define NOT_SLEEPING UINT64_MAX

/*
 * Those that end with EINTR after any handler: which argument is the limit of time, and what means
 * none.
 */
enum { NO_LIMIT = UINT8_MAX };
static const struct {
	uint16_t number;
	uint8_t argument;
	bool is_pointer;
} waits[] = {
	{ SYS_pause, NO_LIMIT, false },
	{ SYS_rt_sigsuspend, NO_LIMIT, false },
	{ SYS_semop, NO_LIMIT, false },
	{ SYS_semtimedop, 3, true },
	{ SYS_msgrcv, NO_LIMIT, false },
	{ SYS_msgsnd, NO_LIMIT, false },
	{ SYS_io_getevents, 4, true },
	{ SYS_poll, 2, false },
	{ SYS_epoll_wait, 3, false },
	{ SYS_epoll_pwait, 3, false },
	{ SYS_ppoll, 2, true },
	{ SYS_select, 4, true },
	{ SYS_pselect6, 4, true },
	{ SYS_rt_sigtimedwait, 2, true },
};

/* Those that are made again by nobody: they have a limit, and the rest of it is not known. */
static const uint16_t naps[] = { SYS_nanosleep, SYS_clock_nanosleep, SYS_restart_syscall };

static struct {
	uint32_t closed; /* number of the stop, 0: go */
	uint32_t n;
	struct entry threads[THREADS];
} * table;

static struct action before;
static uint32_t stops;

void convert_restore(void);
__asm__(".text\n"
	".hidden convert_restore\n"
	".globl convert_restore\n"
	".type convert_restore, @function\n"
	"convert_restore:\n"
	"	mov $15, %eax\n" /* rt_sigreturn */
	"	syscall\n"
	".size convert_restore, . - convert_restore\n");

static uint64_t
now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

static BARE struct entry *
find(uint32_t tid)
{
	const uint32_t n = __atomic_load_n(&table->n, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < n; i++) {
		if (table->threads[i].tid == tid)
			return &table->threads[i];
	}
	return NULL;
}

/* From the first store on nothing but registers and the table: the stack may be moved. */
static BARE void
stand(struct entry *e, uint32_t number)
{
	__asm__ volatile("	movl %[number], (%[stands])\n"
			 "1:	mov %[wait], %%esi\n"
			 "	mov %[number], %%edx\n"
			 "	xor %%r10d, %%r10d\n"
			 "	mov %[futex], %%eax\n"
			 "	syscall\n"
			 "	cmpl %[number], (%%rdi)\n"
			 "	je 1b\n"
			 :
			 : [stands] "r"(&e->stands), [number] "r"(number),
			 "D"(&table->closed), [wait] "i"(FUTEX_WAIT_PRIVATE), [futex] "i"(SYS_futex)
			 : "rax", "rcx", "rdx", "rsi", "r10", "r11", "memory", "cc");
}

/* A wait without a limit, which the signal has ended: back to the instruction. */
static BARE void
call_again(const struct entry *e, greg_t *regs)
{
	if (e->number == NOT_SLEEPING || regs[REG_RAX] != -EINTR ||
		(uint64_t)regs[REG_RIP] != e->pc || (uint64_t)regs[REG_RSP] != e->sp)
		return;
	regs[REG_RAX] = (greg_t)e->number;
	regs[REG_RIP] -= 2; /* syscall */
}

static BARE void
handler(int sig, siginfo_t *info, void *context)
{
	const uint32_t number = __atomic_load_n(&table->closed, __ATOMIC_ACQUIRE);
	struct entry *e;

	if (info->si_code != SI_QUEUE || info->si_value.sival_ptr != (void *)table) {
		if ((uintptr_t)before.handler > (uintptr_t)SIG_IGN)
			before.handler(sig, info, context);
		return;
	}
	e = number != 0 ? find((uint32_t)syscall(SYS_gettid)) : NULL;
	if (e == NULL)
		return;
	call_again(e, ((ucontext_t *)context)->uc_mcontext.gregs);
	stand(e, number);
}

/* A signal of a stop that failed may come late: this action stays where the default one ends the
 * program. glibc's takes no notice of a signal with a value. */
static void
put_back(void)
{
	if ((uintptr_t)before.handler > (uintptr_t)SIG_IGN)
		syscall(SYS_rt_sigaction, STOP_SIGNAL, &before, NULL, sizeof(before.mask));
}

/* @param number of the stop; 0: the handler only comes and goes. */
static int
prepare(uint32_t number)
{
	struct action ours = { .handler = handler,
		.flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK | RESTORER,
		.restorer = convert_restore,
		.mask = ~0ul },
		      was;

	if (table == NULL) {
		void *t = mmap(NULL, sizeof(*table), PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

		if (t == MAP_FAILED)
			return -ENOMEM;
		table = t;
	}
	if (syscall(SYS_rt_sigaction, STOP_SIGNAL, NULL, &was, sizeof(was.mask)) != 0)
		return -errno;
	if (was.handler != handler)
		before = was;
	if (syscall(SYS_rt_sigaction, STOP_SIGNAL, &ours, NULL, sizeof(ours.mask)) != 0)
		return -errno;
	__atomic_store_n(&table->n, 0, __ATOMIC_RELEASE);
	__atomic_store_n(&table->closed, number, __ATOMIC_RELEASE);
	return 0;
}

/* @return bytes of a file of a thread's, as text. */
static ssize_t
read_of(uint32_t tid, const char *name, char *text, size_t size)
{
	char path[48];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%u/%s", tid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return n;
}

/*
 * What it sleeps in. @param values out: six arguments, the stack's address, the instruction's.
 * @return the system call's number; -1: it runs, or is not there.
 */
static long
call_of(uint32_t tid, uint64_t values[8])
{
	char text[256], *at = text;
	long number;

	if (read_of(tid, "syscall", text, sizeof(text)) <= 0)
		return -1;
	number = strtol(text, &at, 10);
	if (at == text) /* "running" */
		return -1;
	for (size_t i = 0; i < 8; i++)
		values[i] = strtoull(at, &at, 16);
	return number;
}

/* @param wait of `waits`. @param values as of call_of(). */
static bool
is_without_limit(size_t wait, const uint64_t values[8])
{
	const uint8_t argument = waits[wait].argument;

	if (argument == NO_LIMIT)
		return true;
	return waits[wait].is_pointer ? values[argument] == 0 : (int32_t)values[argument] < 0;
}

/* Does it sleep for a limited time, and on? The kernel may write to what the call has named. */
static bool
may_sleep_on(uint32_t tid, const struct convert_trap *trap)
{
	uint64_t values[8];
	const long number = trap->is_there ? call_of(tid, values) : -1;

	for (size_t i = 0; i < 6 && number >= 0; i++) {
		if (values[i] >= trap->at && values[i] - trap->at < trap->len)
			return false;
	}
	for (size_t i = 0; i < sizeof(naps) / sizeof(naps[0]); i++) {
		if (naps[i] == number)
			return true;
	}
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (waits[i].number == number)
			return !is_without_limit(i, values);
	}
	return false;
}

/* Does it wait without a limit? */
static void
see_wait(struct entry *e)
{
	uint64_t values[8];
	const long number = call_of(e->tid, values);

	e->number = NOT_SLEEPING;
	if (number < 0)
		return;
	e->sp = values[6];
	e->pc = values[7];
	for (size_t i = 0; i < sizeof(waits) / sizeof(waits[0]); i++) {
		if (waits[i].number == number && is_without_limit(i, values))
			e->number = (uint64_t)number;
	}
}

/* @return 0, also if it has ended; or -errno. */
static int
send_to(uint32_t tid)
{
	siginfo_t info = { .si_signo = STOP_SIGNAL, .si_code = SI_QUEUE };

	info.si_pid = getpid();
	info.si_uid = getuid();
	info.si_value.sival_ptr = table;
	if (syscall(SYS_rt_tgsigqueueinfo, getpid(), (pid_t)tid, STOP_SIGNAL, &info) == 0 ||
		errno == ESRCH)
		return 0;
	return -errno;
}

static int
call_one(uint32_t tid)
{
	const uint32_t n = table->n;

	if (n == THREADS)
		return -E2BIG;
	table->threads[n] = (struct entry){ .tid = tid };
	see_wait(&table->threads[n]);
	__atomic_store_n(&table->n, n + 1, __ATOMIC_RELEASE);
	return send_to(tid);
}

/* As proc(5) has it; 'X': it has ended. The first thread stays in the list then, as 'Z'. */
static char
state_of(uint32_t tid)
{
	char text[64];
	const char *at;

	if (read_of(tid, "stat", text, sizeof(text)) < 0)
		return 'X';
	at = strrchr(text, ')');
	return at != NULL && at[1] == ' ' ? at[2] : '?';
}

/*
 * One look at the list. @param runs set, if it is `late`: does one of those run, or wait for a CPU?
 * It stands as soon as it has one. @return how many do not stand yet, or -errno.
 */
static int
look(int dir, uint32_t self, const struct convert_trap *trap, bool late, bool *runs)
{
	struct {
		uint64_t inode;
		int64_t next;
		uint16_t len;
		uint8_t type;
		char name[];
	} __attribute__((packed)) * d;
	char buf[4096] __attribute__((aligned(8)));
	int missing = 0;
	long n;

	if (lseek(dir, 0, SEEK_SET) != 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, dir, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n; at += d->len) {
			struct entry *e;
			uint32_t tid;
			char state;
			int rc;

			d = (void *)(buf + at);
			tid = (uint32_t)strtoul(d->name, NULL, 10);
			if (tid == 0 || tid == self)
				continue;
			e = find(tid);
			if (e != NULL &&
				__atomic_load_n(&e->stands, __ATOMIC_ACQUIRE) == table->closed)
				continue;
			if (e == NULL && may_sleep_on(tid, trap))
				continue;
			rc = e == NULL ? call_one(tid) : 0;
			if (rc != 0)
				return rc;
			state = late ? state_of(tid) : '?';
			missing += state != 'X' && state != 'Z';
			*runs = *runs || state == 'R';
		}
	}
	return n < 0 ? -errno : missing;
}

int
convert_stop(const struct convert_trap *trap)
{
	const uint64_t latest = trap->is_there ? TRAPPED_NS : LATEST_NS;
	const int dir = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	const uint32_t self = (uint32_t)syscall(SYS_gettid);
	const uint64_t from = now_ns();
	uint64_t ran = from; /* when one of those that do not stand yet was last seen to run */
	int rc, twice = 0;

	if (dir < 0)
		return -errno;
	if (++stops == 0)
		stops = 1;
	rc = prepare(stops);
	if (rc != 0) {
		close(dir);
		return rc;
	}
	/* A thread that stands now may have made another one: twice in a row nobody is missing. */
	while (rc >= 0 && twice < 2) {
		const uint64_t now = now_ns(), waited = now - from;
		bool runs = false;

		rc = look(dir, self, trap, waited > LOOK_NS, &runs);
		twice = rc == 0 ? twice + 1 : 0;
		ran = runs ? now : ran;
		if (rc > 0 && (waited > LATEST_NS || now - ran > latest))
			rc = -ETIMEDOUT;
		else if (rc > 0)
			nanosleep(&pause, NULL);
	}
	close(dir);
	if (rc < 0)
		convert_go();
	return rc;
}

void
convert_go(void)
{
	__atomic_store_n(&table->closed, 0, __ATOMIC_RELEASE);
	syscall(SYS_futex, &table->closed, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
	put_back();
}

/* Does it sleep at a word there that others than this process may know, too? */
static bool
waits_at(uint32_t tid, uintptr_t at, size_t len)
{
	uint64_t values[8];
	const long number = call_of(tid, values);

	return number == SYS_futex_waitv || (number == SYS_futex && values[0] - at < len &&
						    (values[1] & FUTEX_PRIVATE_FLAG) == 0);
}

void
convert_wait_anew(uintptr_t at, size_t len)
{
	const uint32_t self = (uint32_t)syscall(SYS_gettid);
	const struct timespec pause = { .tv_nsec = PAUSE_NS };
	bool called = false;

	/* Whoever was about to fall asleep at the first look does so at the second. */
	for (int looks = 0; looks < 2; looks++) {
		DIR *dir = opendir("/proc/self/task");
		const struct dirent *d;

		while (dir != NULL && (d = readdir(dir)) != NULL) {
			const uint32_t tid = (uint32_t)strtoul(d->d_name, NULL, 10);

			if (tid == 0 || tid == self || !waits_at(tid, at, len))
				continue;
			if (!called && prepare(0) != 0)
				break;
			called = true;
			send_to(tid);
		}
		if (dir != NULL)
			closedir(dir);
		if (looks == 0)
			nanosleep(&pause, NULL);
	}
	if (called)
		put_back();
}
