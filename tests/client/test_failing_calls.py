# SPDX-License-Identifier: BSD-3-Clause
"""A dataplane that gets no memory, no descriptors, no threads, while clients do all they can.

    test_failing_calls.py SOCKET PROGRAM...

One call in so many fails in the dataplane (fail_calls.c), while all PROGRAMs run, again and again:
tests of clients, which do what clients do, and end wherever something is refused. Whatever fails,
the dataplane goes on, and 1 s after the last of them it has what it had before.
Run by run.py --preload.
"""
import contextlib
import mmap
import os
import random
import signal
import struct
import subprocess
import sys
import time
import unittest
import warnings

import attackers
from attacks import BACK_S, PID, SOCKET, Case, warm_up

PROGRAMS = []
KINDS = ("memory", "mappings", "descriptors", "threads", "sockets", "seals")
ONE_IN = (200, 40, 5)
FAILED = 40         # calls at each of them, but
ROUNDS = 12         # at most so many times of all that there is
ATTACKS = 6         # besides, of attackers.py
LIFE_S = 1.2
setUpModule = warm_up


class Calls:
    """Which calls fail."""

    def __init__(self):
        with open(os.environ["FAIL_CALLS"], "r+b") as f:
            self.m = mmap.mmap(f.fileno(), mmap.PAGESIZE)

    def fail(self, one_in, kinds):
        struct.pack_into("I", self.m, 4, sum(1 << KINDS.index(k) for k in kinds))
        struct.pack_into("I", self.m, 0, one_in)

    def failed(self, kind=None):
        n = struct.unpack_from("8Q", self.m, 8 + 64)
        return n[KINDS.index(kind)] if kind else sum(n)

    def asked(self):
        return dict(zip(KINDS, struct.unpack_from("8Q", self.m, 8)))


class FailingCalls(Case):

    def setUp(self):
        super().setUp()
        self.calls = Calls()
        self.addCleanup(self.calls.fail, 0, ())

    def play(self, rng):
        """All at the same time; who waits for what never comes is ended, with its children."""
        running = [subprocess.Popen([program, SOCKET], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
                   for program in PROGRAMS]
        end = time.monotonic() + LIFE_S
        pids = [self.attack(what, end) for name, what in
                rng.sample(list(attackers.all_attacks(None).items()), ATTACKS) if name != "linger"]
        for p in running:
            with contextlib.suppress(subprocess.TimeoutExpired):
                p.wait(max(0.01, end - time.monotonic()))
        for pid in pids + [p.pid for p in running]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
        for pid in pids:
            os.waitpid(pid, 0)
        for p in running:
            p.wait()
        self.assertTrue(os.path.exists("/proc/%d/exe" % PID), "the dataplane is gone")

    @staticmethod
    def attack(what, end):
        """In a process of its own."""
        pid = os.fork()
        if pid != 0:
            with contextlib.suppress(PermissionError, ProcessLookupError):
                os.setpgid(pid, pid)
            return pid
        os.setpgid(0, 0)
        warnings.simplefilter("ignore", ResourceWarning)
        while time.monotonic() < end:
            with contextlib.suppress(Exception):     # whatever an answer looks like now
                what()
        os._exit(0)

    def round(self, kinds):
        rng = random.Random(1)
        for one_in in ONE_IN:
            before = self.calls.failed()
            for _ in range(ROUNDS):
                self.calls.fail(one_in, kinds)
                self.play(rng)
                if self.calls.failed() >= before + FAILED:
                    break
            print("%s, one in %d: %d failed" % (kinds, one_in, self.calls.failed() - before),
                  flush=True)
        self.calls.fail(0, ())
        self.assertNotEqual(0, self.calls.failed())
        # Of the sockets that could not be closed meanwhile, up to 1,024, 16 are tried each 20 ms.
        self.assert_back(within_s=5 * BACK_S)
        self.works()

    def works(self):
        """As if nothing had been."""
        c = self.client()
        number = attackers.make_qp(c)["qp_num"]
        key = attackers.make_mr(c, 1)
        c.call("client_qp_destroy", qp_num=number)
        self.assertIn("key", key)
        c.close()

    def test_memory(self):
        self.round(["memory"])

    def test_mappings(self):
        self.round(["mappings", "seals"])

    def test_descriptors_and_threads(self):
        self.round(["descriptors", "threads", "sockets"])

    def test_all_of_them(self):
        self.round(KINDS)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
