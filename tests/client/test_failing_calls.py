# SPDX-License-Identifier: BSD-3-Clause
"""A dataplane that gets no memory, no descriptors, no threads, while clients do all they can.

    test_failing_calls.py SOCKET PROGRAM...

One call in so many fails in the dataplane (fail_calls.c), while all PROGRAMs run, again and again:
tests of clients, which do what clients do, and end wherever something is refused. Whatever fails,
the dataplane goes on, and 1 s after the last of them it has what it had before.
Run by run.py --preload.
"""
import contextlib
import json
import mmap
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest
import warnings

import attackers
import operators
from attacks import (BACK_S, CLIENTS, PID, SOCKET, SOON_S, Case, jsonrpc, mapped_memory, memfd,
                     soon, warm_up)

PROGRAMS = []
KINDS = ("memory", "mappings", "descriptors", "threads", "sockets", "seals", "files", "ports")
ONE_IN = (200, 40, 5)
FAILED = 30         # calls at each of them, but
ROUNDS = 12         # at most so many times of all that there is
ATTACKS = 6         # besides, of attackers.py
LIFE_S = 0.8
ANSWERS = 500       # calls that fail while answers are looked at, at each rate
ASKED_BY_CLIENTS = (
    ("client_open", {"abi": 1}), ("client_pd_create", {}), ("client_cq_create", {"cqe": 16}),
    ("client_qp_create", {"pd": 1, "send_cq": 1, "recv_cq": 1, "qp_type": "RC", "max_send_wr": 8,
                          "max_recv_wr": 8, "max_send_sge": 1, "max_recv_sge": 1,
                          "max_inline_data": 0}),
    ("client_srq_create", {"pd": 1, "max_wr": 8, "max_sge": 1}),
    ("client_srq_query", {"handle": 1}), ("client_ports", {}))
ASKED_BY_OPERATORS = (("version", {}), ("port_list", {}), ("worker_list", {}),
                      ("save_config", {}), ("stats", {}))
setUpModule = warm_up


def shape(value):
    """The keys of it, and of what is in it."""
    if isinstance(value, dict):
        return {key: shape(value[key]) for key in value}
    return [shape(value[0])] if isinstance(value, list) and value else None


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
        self.calls, self.mapped = Calls(), mapped_memory()
        self.addCleanup(self.calls.fail, 0, ())

    def play(self, rng):
        """All at the same time; who waits for what never comes is ended, with its children."""
        running = [subprocess.Popen([program, SOCKET], stdout=subprocess.DEVNULL,
                                    stderr=subprocess.DEVNULL, start_new_session=True)
                   for program in PROGRAMS]
        end = time.monotonic() + LIFE_S
        pids = [self.attack(what, end) for name, what in
                rng.sample(list(attackers.all_attacks(None).items()), ATTACKS) if name != "linger"]
        pids += [self.attack(what, end) for what in operators.all_operations()]
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
        for method, left in operators.tidy().items():
            self.assertEqual([], left, method)
        # Of the sockets that could not be closed meanwhile, up to 1,024, 16 are tried each 20 ms.
        self.assert_back(within_s=5 * BACK_S)
        self.assertTrue(soon(lambda: mapped_memory() <= self.mapped),
                        (self.mapped, mapped_memory()))
        self.works()

    def works(self):
        """As if nothing had been."""
        c = self.client()
        number = attackers.make_qp(c)["qp_num"]
        key = attackers.make_mr(c, 1)
        c.call("client_qp_destroy", qp_num=number)
        self.assertIn("key", key)
        c.close()

    def ask_all(self, seen):
        """One by one, and all at once."""
        for path, asks in ((CLIENTS, ASKED_BY_CLIENTS), (SOCKET, ASKED_BY_OPERATORS)):
            with contextlib.suppress(ConnectionError), jsonrpc.Connection(path, SOON_S) as c:
                lines = [json.loads(jsonrpc.request(n, *ask)) for n, ask in enumerate(asks)]
                for line in lines + [lines]:
                    answers = c.ask(json.dumps(line).encode())
                    if answers is None:
                        break
                    if isinstance(answers, list):
                        self.assertEqual(len(asks), len(answers))
                    for answer in answers if isinstance(answers, list) else [answers]:
                        self.look(answer, asks, seen)

    def look(self, answer, asks, seen):
        """It lacks nothing of what others have `seen`; or it is a refusal."""
        if "error" in answer:
            self.assertEqual({"jsonrpc", "id", "error"}, set(answer) - {"data"}, answer)
            self.assertTrue(answer["error"]["message"], answer)
        else:
            self.assertEqual({"jsonrpc", "id", "result"}, set(answer), answer)
            method = asks[answer["id"]][0]
            self.assertEqual(seen.setdefault(method, shape(answer["result"])),
                             shape(answer["result"]), method)

    def test_each_request_is_answered(self):
        """In full. No answer within SOON_S is one that never comes."""
        seen = {}
        self.ask_all(seen)
        self.assertEqual({m for m, _ in ASKED_BY_CLIENTS + ASKED_BY_OPERATORS}, set(seen))
        for one_in in (300, 60, 15):
            before = self.calls.failed()
            self.calls.fail(one_in, ["memory"])
            while self.calls.failed() < before + ANSWERS:
                self.ask_all(seen)
        self.calls.fail(0, ())
        self.assert_back(within_s=5 * BACK_S)
        self.works()

    def test_descriptors_stay_with_their_requests(self):
        """One of some regions finds no memory: the next one is not made of its memfd."""
        region = {"pd": 1, "addr": 0x10000, "access": 15}
        sizes = [4096 * n for n in range(1, 7)]
        lines = "".join(jsonrpc.request(n, "client_mr_register", dict(region, length=n)) + "\n"
                        for n in sizes).encode()
        end, self.misplaced = time.monotonic() + LIFE_S, False
        while time.monotonic() < end:
            with contextlib.ExitStack() as mine:
                fds = [memfd(n) for n in sizes]
                for fd in fds:
                    mine.callback(os.close, fd)
                mine.enter_context(contextlib.suppress(OSError, AssertionError, jsonrpc.RpcError))
                c = mine.enter_context(attackers.opened())
                c.call("client_pd_create")
                self.calls.fail(50, ["memory"])
                mine.callback(self.calls.fail, 0, ())
                socket.send_fds(c.sock, [lines], fds)
                for _ in sizes:
                    self.misplaced |= b"ends before" in (c.line() or b"")
        self.assertFalse(self.misplaced)
        self.assert_back(within_s=5 * BACK_S)

    def test_memory(self):
        self.round(["memory"])

    def test_mappings(self):
        self.round(["mappings", "seals"])

    def test_descriptors_and_threads(self):
        self.round(["descriptors", "threads", "sockets"])

    def test_files_and_ports(self):
        self.round(["files", "ports"])

    def test_all_of_them(self):
        self.round(KINDS)


if __name__ == "__main__":
    PROGRAMS = sys.argv[1:]
    unittest.main(argv=sys.argv[:1])
