# SPDX-License-Identifier: BSD-3-Clause
"""What the systemd unit leaves the dataplane: its user, capabilities and system calls, without a
systemd that runs. The unit itself is read, so that the test is of what is installed.

Not here: what the unit does with mounts and devices, and more memory locked than a user may.
"""
import ctypes
import errno
import os
import re
import socket
import subprocess

import livenet
import netns
import seccomp

UNIT = os.path.join(os.environ["ROCELANE_ROOT"], "config", "systemd", "rocelane.service")
CAPABILITIES = {"CAP_NET_ADMIN": 12, "CAP_NET_RAW": 13}     # linux/capability.h
CAP_LAST = 63
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_KEEPCAPS, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 8, 24, 38
PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE = 47, 2
NOBODY = 65534


def settings():
    """Each key with its values, in order."""
    found = {}
    with open(UNIT, encoding="utf-8") as f:
        for key, value in re.findall(r"^(\w+)=(.*)$", f.read(), re.M):
            found.setdefault(key, []).append(value)
    return found


def calls_of(name):
    """The calls of a group of systemd's, "@group", or the call itself."""
    if not name.startswith("@"):
        return {name}
    shown = subprocess.run(["systemd-analyze", "syscall-filter", name], stdout=subprocess.PIPE,
                           text=True, timeout=60, check=True).stdout
    names = [line.strip() for line in shown.split("\n")[1:]]
    return set().union(*(calls_of(n) for n in names if n and not n.startswith("#")))


def allowed_calls(lines):
    """As systemd reads SystemCallFilter=: the first line allows, "~" takes away."""
    allowed = calls_of("@default")
    for line in lines:
        for name in line.lstrip("~").split():
            if line.startswith("~"):
                allowed -= calls_of(name)
            else:
                allowed |= calls_of(name)
    return allowed


def threads(pid):
    """/proc/PID/task/TID/status of each thread, as dictionaries."""
    found = []
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, tid), encoding="ascii") as f:
            found.append(dict(line.split(":\t", 1) for line in f.read().splitlines()))
    return found


def has_sandbox(live):
    """A build with a sanitizer says that it has none."""
    return "there is no sandbox" not in live.stderr()


class Confined:
    """Everything is looked up here; apply() runs between fork and exec."""

    def __init__(self):
        unit = settings()
        assert unit["AmbientCapabilities"] == unit["CapabilityBoundingSet"]
        self.caps = [CAPABILITIES[name] for name in unit["AmbientCapabilities"][0].split()]
        self.filter = seccomp.SyscallFilter(seccomp.ERRNO(errno.EPERM))
        for name in allowed_calls(unit["SystemCallFilter"]):
            if name == "socket":
                continue
            try:
                self.filter.add_rule(seccomp.ALLOW, name)
            except (ValueError, RuntimeError):
                pass    # of another architecture, or newer than libseccomp
        for family in unit["RestrictAddressFamilies"][0].split():
            self.filter.add_rule(seccomp.ALLOW, "socket",
                                 seccomp.Arg(0, seccomp.EQ, getattr(socket, family)))
        # With user ids of its own alone, a namespace has nobody else.
        self.user = NOBODY if netns.has_other_users() else None

    def _prctl(self, *args):
        if netns.libc.prctl(*args) != 0:
            raise OSError(ctypes.get_errno(), "prctl(%d)" % args[0])

    def apply(self):
        livenet.die_with_parent()
        for cap in range(CAP_LAST + 1):
            if cap not in self.caps:
                netns.libc.prctl(PR_CAPBSET_DROP, cap, 0, 0, 0)     # EINVAL: there is none
        self._prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
        if self.user is not None:
            os.setgroups([])
            os.setresgid(self.user, self.user, self.user)
            os.setresuid(self.user, self.user, self.user)
        mask = sum(1 << cap for cap in self.caps)
        head = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
        data = (ctypes.c_uint32 * 6)(mask, mask, mask, 0, 0, 0)
        if netns.libc.capset(head, data) != 0:
            raise OSError(ctypes.get_errno(), "capset")
        for cap in self.caps:
            self._prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, cap, 0, 0)
        livenet.die_with_parent()   # a change of user takes it away
        self._prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        self.filter.load()
