/* SPDX-License-Identifier: BSD-3-Clause */
/* The window: pages go aside, are copied, and other pages come in. See convert.h. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "convert.h"
#include "convert_pinned.h"
#include "convert_stop.h"
#include "convert_uffd.h"

#ifndef __x86_64__
#error "the helper is started by x86-64 code"
#endif

#ifndef MADV_POPULATE_READ /* Linux 5.14 */
#define MADV_POPULATE_READ 22
#endif

#define PAGE         ((size_t)4096) /* x86-64 */
#define HELPER_STACK ((size_t)64 << 10)
#define MAPPED_PAGES 512u /* asked for at once */

/* What the helper must not use: the program's stack guard and anything that looks at memory. */
#define BARE __attribute__((noinline, no_stack_protector, no_sanitize("address", "undefined")))
#define BARE_INLINE \
	__attribute__((always_inline, no_stack_protector, no_sanitize("address", "undefined")))

/* ---- the helper ------------------------------------------------------------------------------ */

/* It lies behind the helper's stack, far from the range. */
struct window {
	uintptr_t at;
	uintptr_t target; /* what shall come in */
	uintptr_t aside;  /* where the pages go */
	size_t len;
	size_t there; /* of it: what is to be copied, and can be read */
	int prot;
	int uffd;  /* -1: none */
	bool stop; /* the other threads */
	bool here; /* without a helper: then also what `target` is a mapping of */
	int fd;    /* -1: of no file */
	uint64_t offset;
	struct uffdio_register trap;
	struct uffdio_range range;
	long result; /* 0 or -errno */
};

static inline BARE_INLINE long
call(long number, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "0"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

static inline BARE_INLINE void
copy(uintptr_t to, uintptr_t from, size_t n)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(n) : : "memory");
}

/* Whoever touches [at, at + len) between the two moves sleeps. */
static BARE void
pass(struct window *w)
{
	const long n = (long)w->len;
	long rc = 0;

	if (w->uffd >= 0)
		rc = call(SYS_ioctl, w->uffd, (long)UFFDIO_REGISTER, (long)&w->trap, 0, 0);
	if (rc == 0)
		rc = call(SYS_mremap, (long)w->at, n, n,
			MREMAP_MAYMOVE | MREMAP_FIXED | MREMAP_DONTUNMAP, (long)w->aside);
	if (rc == (long)w->aside) {
		if ((w->prot & PROT_READ) == 0)
			call(SYS_mprotect, (long)w->aside, n, PROT_READ, 0, 0);
		copy(w->target, w->aside, w->there);
		if (w->prot != (PROT_READ | PROT_WRITE))
			call(SYS_mprotect, (long)w->target, n, w->prot, 0, 0);
		rc = call(SYS_mremap, (long)w->target, n, n, MREMAP_MAYMOVE | MREMAP_FIXED,
			(long)w->at);
		if (rc == (long)w->at) {
			rc = 0;
		} else { /* back to where they were */
			call(SYS_mprotect, (long)w->aside, n, w->prot, 0, 0);
			call(SYS_mremap, (long)w->aside, n, n, MREMAP_MAYMOVE | MREMAP_FIXED,
				(long)w->at);
		}
	}
	if (w->uffd >= 0)
		call(SYS_ioctl, w->uffd, (long)UFFDIO_WAKE, (long)&w->range, 0, 0);
	w->result = rc;
}

/*
 * Valgrind knows no such thread, and moves no pages. It lets one thread run at a time, so the
 * others stand still; from the first byte to the last one nothing here is on a stack.
 */
enum valgrind_request { RUNNING_ON_VALGRIND = 0x1001, CHANGE_ERR_DISABLEMENT = 0x1801 };

/* Its way to be asked: what the rotations leave alone anywhere else. @return 0 there. */
static long
ask_valgrind(enum valgrind_request request, long arg)
{
	const long words[6] = { request, arg };
	long ret = 0;

	__asm__ volatile("rolq $3, %%rdi\n\t"
			 "rolq $13, %%rdi\n\t"
			 "rolq $61, %%rdi\n\t"
			 "rolq $51, %%rdi\n\t"
			 "xchgq %%rbx, %%rbx"
			 : "+d"(ret)
			 : "a"(words)
			 : "cc", "memory");
	return ret;
}

/*
 * Copied out, mapped anew, copied in: not into a file's, which have it already, and count as set
 * from now on, for what a peer writes there Valgrind does not see. Pages of the heap hold what
 * nobody has allocated, and no error is to be made of that.
 */
static __attribute__((noinline)) long
pass_readable_here(struct window *w)
{
	register long r10 __asm__("r10") =
		MAP_FIXED | (w->fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
	register long r8 __asm__("r8") = w->fd;
	register long r9 __asm__("r9") = (long)w->offset;
	long ret = (long)w->at, len = (long)w->len, there = (long)w->there;

	ask_valgrind(CHANGE_ERR_DISABLEMENT, 1);
	__asm__ volatile("mov %%rax, %%rsi\n\t"
			 "mov %[target], %%rdi\n\t"
			 "mov %[there], %%rcx\n\t"
			 "rep movsb\n\t"
			 "mov %%rax, %%rdi\n\t"
			 "mov %[len], %%rsi\n\t"
			 "mov %[prot], %%edx\n\t"
			 "mov %[mmap], %%eax\n\t"
			 "syscall\n\t"
			 "cmp $-4096, %%rax\n\t"
			 "ja 1f\n\t"
			 "test %%r8d, %%r8d\n\t"
			 "jns 1f\n\t"
			 "mov %%rax, %%rdi\n\t"
			 "mov %[target], %%rsi\n\t"
			 "mov %[len], %%rcx\n\t"
			 "rep movsb\n"
			 "1:"
			 : "+a"(ret)
			 : [target] "r"(w->target), [len] "r"(len), [there] "r"(there),
			 [mmap] "i"(SYS_mmap), [prot] "i"(PROT_READ | PROT_WRITE), "r"(r10),
			 "r"(r8), "r"(r9)
			 : "rcx", "rdx", "rsi", "rdi", "r11", "cc", "memory");
	ask_valgrind(CHANGE_ERR_DISABLEMENT, -1);
	w->result = ret;
	if (ret != (long)w->at)
		return 0;
	call(SYS_munmap, (long)w->target, len, 0, 0, 0);
	w->result = w->prot == (PROT_READ | PROT_WRITE)
			    ? 0
			    : call(SYS_mprotect, (long)w->at, len, w->prot, 0, 0);
	return 0;
}

static long
pass_here(struct window *w)
{
	if ((w->prot & PROT_READ) == 0)
		call(SYS_mprotect, (long)w->at, (long)w->len, PROT_READ, 0, 0);
	return pass_readable_here(w);
}

/*
 * pass(w) on another stack, by a thread that shares all with this one. The kernel holds the caller
 * until it has ended (CLONE_VFORK).
 */
static long
run_helper(uint8_t *stack, struct window *w)
{
	const long flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
			   CLONE_SYSVSEM | CLONE_VFORK;
	void **top = (void **)(void *)(stack + HELPER_STACK);
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;
	long ret;

	*--top = (void *)(uintptr_t)pass;
	*--top = w;
	__asm__ volatile("syscall\n\t"
			 "test %%rax, %%rax\n\t"
			 "jnz 1f\n\t"
			 "xor %%ebp, %%ebp\n\t"
			 "pop %%rdi\n\t"
			 "pop %%rax\n\t"
			 "call *%%rax\n\t"
			 "mov $60, %%eax\n\t" /* exit: of this thread */
			 "xor %%edi, %%edi\n\t"
			 "syscall\n"
			 "1:"
			 : "=a"(ret)
			 : "0"((long)SYS_clone), "D"(flags), "S"(top), "d"(0L), "r"(r10), "r"(r8)
			 : "rcx", "r11", "memory");
	return ret;
}

/* ---- one part -------------------------------------------------------------------------------- */

static bool
is_alone(void)
{
	DIR *d = opendir("/proc/self/task");
	const struct dirent *e;
	int n = 0;

	if (d == NULL)
		return false;
	while ((e = readdir(d)) != NULL)
		n += e->d_name[0] != '.';
	closedir(d);
	return n == 1;
}

/* What keeps other threads out: w->uffd and w->trap, or w->stop. A userfaultfd does not watch the
 * pages of a file. */
static void
set_trap(struct window *w, bool from_shared, bool of_file)
{
	const uint64_t features =
		from_shared ? UFFD_FEATURE_MISSING_SHMEM | UFFD_FEATURE_MINOR_SHMEM : 0;
	enum convert_way way;

	w->uffd = -1;
	w->stop = false;
	w->here = ask_valgrind(RUNNING_ON_VALGRIND, 0) != 0;
	if (is_alone())
		return;
	w->uffd = of_file || w->here ? -1 : convert_uffd_open(features, &way);
	/* For an ordinary user system calls do not sleep there. They fail with EFAULT. */
	w->stop = w->uffd < 0 || way == CONVERT_WAY_USER_MODE;
	w->range = (struct uffdio_range){ .start = w->at, .len = w->len };
	w->trap.range = w->range;
	w->trap.mode = UFFDIO_REGISTER_MODE_MISSING;
	if (from_shared) /* the memfd's page is still there: what is missing is the table's entry */
		w->trap.mode |= UFFDIO_REGISTER_MODE_MINOR;
}

/* No signal finds the helper, and none the caller in between. */
static int
run_blocked(uint8_t *stack, struct window *w)
{
	const struct convert_trap trap = { w->uffd >= 0, w->at, w->len };
	sigset_t all, before;
	bool stopped = false;
	long rc = 0;

	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	if (w->stop) {
		rc = convert_stop(&trap);
		stopped = rc == 0;
	}
	if (rc == 0 || trap.is_there) { /* who does not stand gets EFAULT at worst */
		rc = w->here ? pass_here(w) : run_helper(stack, w);
		if (stopped)
			convert_go();
		if (trap.is_there)
			convert_wait_anew(w->at, w->len);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc < 0 ? (int)rc : (int)w->result;
}

/*
 * The pages of `part` go away, those at `target` come in. @param there bytes that can be read.
 * @param fd what `target` is a mapping of, or -1. @return 0, or -errno and both stay.
 */
static int
swap_pages(const struct convert_part *part, size_t there, void *target, int fd, uint64_t offset)
{
	const size_t bytes = HELPER_STACK + sizeof(struct window);
	uint8_t *stack = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	void *aside = mmap(NULL, part->len, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct window *w;
	int rc = -ENOMEM;

	if (stack != MAP_FAILED && aside != MAP_FAILED) {
		w = (struct window *)(void *)(stack + HELPER_STACK);
		w->at = part->at;
		w->len = part->len;
		w->there = there;
		w->prot = part->prot;
		w->target = (uintptr_t)target;
		w->aside = (uintptr_t)aside;
		w->fd = fd;
		w->offset = offset;
		set_trap(w, part->shared, part->kind == CONVERT_FILE);
		rc = run_blocked(stack, w);
		if (w->uffd >= 0)
			close(w->uffd);
	}
	if (stack != MAP_FAILED)
		munmap(stack, bytes);
	if (aside != MAP_FAILED)
		munmap(aside, part->len);
	return rc;
}

/* Of a file there may be less than is mapped: whoever touches the rest gets SIGBUS. */
static bool
can_be_read(const struct convert_part *part)
{
	return part->kind == CONVERT_PRIVATE ||
	       madvise((void *)part->at, part->len, MADV_POPULATE_READ) == 0 || errno != EFAULT;
}

int
convert_to_shared(const struct convert_part *part, int fd, uint64_t offset)
{
	void *target;
	int rc;

	if ((part->prot & PROT_READ) == 0)
		return -EFAULT;
	if (part->kind == CONVERT_NOT)
		return -EOPNOTSUPP;
	if (!can_be_read(part))
		return -EFAULT;
	rc = convert_pinned(part->at, part->len);
	if (rc != 0)
		return rc < 0 ? rc : -EBUSY;
	/* An error now, instead of SIGBUS later. */
	if (fallocate(fd, 0, (off_t)offset, (off_t)part->len) != 0)
		return -errno;
	target = mmap(NULL, part->len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd,
		(off_t)offset);
	if (target == MAP_FAILED)
		return -errno;
	rc = swap_pages(part, part->len, target, fd, offset);
	if (rc != 0)
		munmap(target, part->len);
	return rc;
}

/* A range that the child has. @param there bytes of it that can be read. */
static int
make_own(uintptr_t at, size_t len, size_t there, int prot)
{
	void *target = mmap(NULL, len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

	if (target == MAP_FAILED)
		return -errno;
	if (ask_valgrind(RUNNING_ON_VALGRIND, 0) != 0) {
		struct window w = { .at = at,
			.target = (uintptr_t)target,
			.len = len,
			.there = there,
			.prot = prot,
			.fd = -1 };

		pass_here(&w);
		return (int)w.result;
	}
	if ((prot & PROT_READ) == 0 && mprotect((void *)at, len, PROT_READ) != 0)
		return -errno;
	copy((uintptr_t)target, at, there);
	if (mprotect(target, len, prot) != 0 ||
		mremap(target, len, len, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)at) == MAP_FAILED)
		return -errno;
	return 0;
}

/* Valgrind lets us ask so of any address; it takes msync() for an access. */
static bool
is_mapped(uintptr_t at, size_t len)
{
	unsigned char unused[MAPPED_PAGES];

	return mincore((void *)at, len, unused) == 0;
}

/* How much of the range is mapped, or not mapped, as its first page is. */
static size_t
run_of(uintptr_t at, size_t len, bool *mapped)
{
	size_t n = 0;

	*mapped = is_mapped(at, PAGE);
	while (n < len) {
		const size_t some = len - n < MAPPED_PAGES * PAGE ? len - n : MAPPED_PAGES * PAGE;
		const bool all = *mapped && is_mapped(at + n, some);

		if (!all && is_mapped(at + n, PAGE) != *mapped)
			break;
		n += all ? some : PAGE;
	}
	return n;
}

int
convert_to_private_in_child(uintptr_t at, size_t len, size_t there, int prot)
{
	size_t n = 0;
	int rc = 0;

	for (; len != 0 && rc == 0; at += n, len -= n, there -= there < n ? there : n) {
		bool mapped;

		n = run_of(at, len, &mapped);
		if (mapped)
			rc = make_own(at, n, there < n ? there : n, prot);
	}
	return rc;
}

int
convert_to_private(const struct convert_part *part, size_t there)
{
	int rc = convert_pinned(part->at, part->len);
	void *target;

	if (rc != 0)
		return rc < 0 ? rc : -EBUSY;
	target = mmap(NULL, part->len, PROT_READ | PROT_WRITE,
		MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (target == MAP_FAILED)
		return -errno;
	rc = swap_pages(part, there < part->len ? there : part->len, target, -1, 0);
	if (rc != 0)
		munmap(target, part->len);
	return rc;
}
