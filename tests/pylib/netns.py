# SPDX-License-Identifier: BSD-3-Clause
"""A network namespace of our own: as root, or as any user where the kernel lets users have one.

It has no name: it is gone as soon as the last process in it is, whatever happens.
"""
import ctypes
import os
import resource
import sys

CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET = 0x00020000, 0x10000000, 0x40000000
MS_REC, MS_PRIVATE = 0x4000, 0x40000
FEWEST_FRAMES = 64
SKIPPED = 77        # meson's exit status for a test that did not run
LIMITS = ("/proc/sys/kernel/unprivileged_userns_clone", "/proc/sys/user/max_user_namespaces")

libc = ctypes.CDLL(None, use_errno=True)
_as_user = False    # root in here alone: RLIMIT_MEMLOCK holds for us


class NoNamespace(Exception):
    """There is none to be had; the message says what would help."""


def _read(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().strip()
    except OSError:
        return None


def _become_root(uid, gid):
    """Who started us is root in the user namespace that we have entered, with a /run of its own."""
    for path, text in (("setgroups", "deny"), ("uid_map", "0 %d 1" % uid),
                       ("gid_map", "0 %d 1" % gid)):
        with open("/proc/self/" + path, "w", encoding="ascii") as f:
            f.write(text)
    if libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None) != 0 or \
            libc.mount(b"tmpfs", b"/run", b"tmpfs", 0, None) != 0:
        raise OSError(ctypes.get_errno(), "mount of /run")


def enter():
    """Into a new one. Call it before there is a second thread. May be called again, for another."""
    global _as_user
    if libc.unshare(CLONE_NEWNET) == 0:
        return
    error = ctypes.get_errno()
    uid, gid = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) != 0:
        error = ctypes.get_errno()
    else:
        try:
            _become_root(uid, gid)
            _as_user = True
            return
        except OSError as e:
            error = e.errno
    closed = ["%s is 0" % path for path in LIMITS if _read(path) == "0"]
    raise NoNamespace("needs root (CAP_SYS_ADMIN), or user namespaces, for a network namespace of "
                      "its own: %s" % "; ".join([os.strerror(error)] + closed))


def has_other_users():
    """Is there more than one user id in here, so that one may be changed to?"""
    with open("/proc/self/uid_map", encoding="ascii") as f:
        return sum(int(line.split()[2]) for line in f) > 1


def check():
    """Would enter() work? A child tries; we stay where we are."""
    child = os.fork()
    if child == 0:
        try:
            enter()
        except NoNamespace:
            os._exit(1)
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        enter()     # says why not


def locked_frames(want, size, queues=1, as_user=False):
    """How many frames of `size` net_af_packet's rings may have, which are locked in memory.

    `as_user`: for a process without CAP_IPC_LOCK, whoever we are."""
    limit = resource.getrlimit(resource.RLIMIT_MEMLOCK)[1]
    if not (_as_user or as_user) or limit == resource.RLIM_INFINITY:
        return want
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (limit, limit))
    while want > FEWEST_FRAMES and 2 * want * size * queues > limit * 3 // 4:
        want //= 2
    if 2 * want * size * queues > limit * 3 // 4:
        raise NoNamespace("needs root, or %d KiB of locked memory (RLIMIT_MEMLOCK is %d)" % (
            2 * want * size * queues * 4 // 3 >> 10, limit >> 10))
    return want


def need_device(path):
    """A device that a namespace does not give."""
    if not os.access(path, os.R_OK | os.W_OK):
        raise NoNamespace("needs %s, which %s" % (
            path, "this user may not open" if os.path.exists(path) else "is not there"))


def skip(why, status=SKIPPED):
    """End the process: it counts as skipped, which is a failure under CI=true."""
    print("1..0 # SKIP not run: %s" % why, flush=True)
    sys.exit(status)


def enter_or_skip():
    try:
        if os.environ.get("ROCELANE_NO_WIRE") == "1":
            raise NoNamespace("ROCELANE_NO_WIRE=1 leaves it out")
        enter()
    except NoNamespace as e:
        skip(e)
