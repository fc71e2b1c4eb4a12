# SPDX-License-Identifier: BSD-3-Clause
"""Processes that attack, all together: started for a round, each killed at a random moment.

The hive is a process of its own, without threads, that forks one attacker for each attack. With
root each of them is a user of its own, so that one user's limits do not keep the others' attacks
away. They are nice to the victim's CPU: what they do to the dataplane is what is tried.
"""
import contextlib
import ctypes
import mmap
import os
import random
import signal
import struct
import time
import traceback

import attackers
from attacks import CLIENTS, jsonrpc

ROOT = os.geteuid() == 0
USERS = 60000           # of the attackers: from here on
LIVES_S = (0.02, 0.5)
NICE = 10
BACKLOG = 256
PR_SET_CHILD_SUBREAPER = 36
COUNTS = ("passes", "refused", "killed", "broken")    # killed: in the middle


class Hive:
    """.round() is one round; .counts() is what the attacks did."""

    def __init__(self, programs, seed, only=()):
        """`programs`: {name: [path, argument...]}, each an attack that runs until it is killed."""
        self.names = [name for name in list(attackers.all_attacks(None)) + list(programs)
                      if not only or name in only]
        self.programs = programs
        self.shared = mmap.mmap(-1, 8 * len(COUNTS) * len(self.names))
        here, there = os.pipe(), os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(here[1])
            os.close(there[0])
            code = 1
            try:
                self._serve(here[0], there[1], random.Random(seed))
                code = 0
            except BaseException:
                traceback.print_exc()
            os._exit(code)
        os.close(here[0])
        os.close(there[1])
        self.say, self.hear = here[1], there[0]

    def round(self):
        os.write(self.say, b"r")
        if os.read(self.hear, 1) != b"r":
            raise AssertionError("the hive is gone")

    def close(self):
        """The end of the listener that the last round's sockets linger for, too."""
        os.close(self.say)
        _, status = os.waitpid(self.pid, 0)
        os.close(self.hear)
        if status != 0:
            raise AssertionError("the hive ended with %d" % status)

    def counts(self):
        return {name: {what: self._count(k, i)[0] for i, what in enumerate(COUNTS)}
                for k, name in enumerate(self.names)}

    def _count(self, k, i, more=0):
        """An attacker alone writes its counts while it lives."""
        at = 8 * (k * len(COUNTS) + i)
        n = struct.unpack_from("Q", self.shared, at)[0] + more
        struct.pack_into("Q", self.shared, at, n)
        return n, at

    # ---- in the hive ----------------------------------------------------------------------------

    def _serve(self, commands, answers, rng):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        server = None
        while os.read(commands, 1):
            if server:
                server.close()      # what lingered is over: a new round, a new listener
            server = attackers.listener(BACKLOG)
            self._play(server.getsockname(), rng)
            os.write(answers, b"r")

    def _play(self, address, rng):
        todo = attackers.all_attacks(address)
        running = []
        for k in rng.sample(range(len(self.names)), len(self.names)):
            seed, name = rng.getrandbits(31), self.names[k]
            pid = os.fork()
            if pid == 0:
                try:
                    self._attack(k, todo.get(name), self.programs.get(name), seed)
                except BaseException:
                    traceback.print_exc()
                self._count(k, COUNTS.index("broken"), 1)
                os._exit(1)
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.setpgid(pid, pid)
            running.append((time.monotonic() + rng.uniform(*LIVES_S), pid, k))
        for until, pid, k in sorted(running):
            time.sleep(max(0, until - time.monotonic()))
            self._end(pid, k)
        with contextlib.suppress(ChildProcessError):    # whom they left behind
            while True:
                os.waitpid(-1, 0)

    def _end(self, pid, k):
        gone = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        if not gone:
            self._count(k, COUNTS.index("killed"), 1)
        elif self.names[k] in self.programs:    # it does not go on when it is refused something
            self._count(k, COUNTS.index("refused"), 1)

    def _attack(self, k, what, program, seed):
        os.setpgid(0, 0)
        os.nice(NICE)
        fd = os.open(program[0], os.O_RDONLY | os.O_CLOEXEC) if program else -1
        if ROOT:
            os.setgroups([])
            os.setresgid(USERS + k, USERS + k, USERS + k)
            os.setresuid(USERS + k, USERS + k, USERS + k)
        if program:
            os.execve(fd, program + [str(seed)], dict(os.environ))
        random.seed(seed)
        while True:
            try:
                what()
                self._count(k, COUNTS.index("passes"), 1)
            except (jsonrpc.RpcError, OSError):
                self._count(k, COUNTS.index("refused"), 1)
                time.sleep(0.005)


def programs(hostile, flush, attacks):
    """The attacks that are not in Python: on rings, which librocelane's own headers describe."""
    out = {"flush": [flush, CLIENTS, "attack"]}
    for n in range(attacks):
        out["hostile %d" % n] = [hostile, CLIENTS, "attack", str(n)]
    return out
