# SPDX-License-Identifier: BSD-3-Clause
"""All attacks of clients together, round after round, beside a victim that verifies its data.

    test_soak.py SOCKET CLIENT-HOSTILE CLIENT-FLUSH [--rounds N] [--seed N] [--only NAME]...

In each round hive.py starts one process for each attack and kills it at a random moment. Meanwhile
an operator asks all the time, and the victim, a client like the others, writes and reads back.
After the round the dataplane's descriptors, threads, mapped memory, clients and what users hold are
what they were, 1 s later at most; after the last one its memory has not grown. No answer took
50 ms, no turn of a worker 5 ms, and the victim had no gap of 5 ms. All that is without the waits
for a CPU, and without the time in which the machine below had the CPU: a witness, ahead of all
other programs, sees that. What depends on what else the machine does is printed: the same with it.

The suite plays a few rounds. A thousand of them take a quarter of an hour:

    meson test -C build/default --no-rebuild client-soak --test-args='--rounds 1000' -t 60 -v
"""
import argparse
import mmap
import os
import struct
import subprocess
import sys
import time

from attacks import (BACK_S, CLIENTS, PID, SLOW_S, SOCKET, TURN_S, Operator, Turns, Waits,
                     jsonrpc, mapped_memory, sanitized, soon, used, warm_up, worker_threads)
from hive import ROOT, Hive, programs

VICTIM_USER = 59999
WARM_ROUNDS = 3         # or a fifth of all: each of malloc's arenas finds its size
GROWTH_KIB = 16 * 1024
FLOW_S = 30
GAP_NS = 5e6 * (10 if sanitized() else 1)     # a worker's, without waits for a CPU


def private_kib():
    """Its own pages. Shared ones are EAL's, of a fixed size, and those of mapped_memory()."""
    with open("/proc/%d/smaps_rollup" % PID, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Anonymous"))


class Victim:
    """client-hostile's: its report is memory that both sides see."""
    def __init__(self, program):
        fd = os.memfd_create("victim")
        os.ftruncate(fd, mmap.PAGESIZE)
        os.fchmod(fd, 0o666)
        self.report = mmap.mmap(fd, mmap.PAGESIZE)
        as_user = {"user": VICTIM_USER, "group": VICTIM_USER, "extra_groups": []} if ROOT else {}
        waits = ":".join("/proc/%d/task/%d/schedstat" % (PID, tid) for tid in worker_threads())
        self.witnesses = [subprocess.Popen([program, str(cpu), "witness", str(fd)], pass_fds=[fd])
                          for cpu in os.sched_getaffinity(0)]
        self.process = subprocess.Popen([program, CLIENTS, "victim", str(fd)], pass_fds=[fd],
                                        env=dict(os.environ, VICTIM_WAITS=waits), **as_user)
        os.close(fd)
        self.longest_ns, self.longest_net_ns = [], []
        self.flows()

    def blocks(self):
        return struct.unpack_from("Q", self.report, 0)[0]

    def flows(self):
        """Some blocks more, within a time that does not depend on the machine."""
        start, end = self.blocks(), time.monotonic() + FLOW_S
        while self.blocks() < start + 2:
            assert self.process.poll() is None, "the victim ended: %r" % self.process.returncode
            assert time.monotonic() < end, "the victim stands still"
            time.sleep(0.001)

    def round_ends(self):
        self.flows()
        self.longest_ns.append(struct.unpack_from("Q", self.report, 8)[0])
        self.longest_net_ns.append(struct.unpack_from("Q", self.report, 24)[0])
        struct.pack_into("Q", self.report, 8, 0)
        struct.pack_into("Q", self.report, 24, 0)

    def close(self):
        struct.pack_into("B", self.report, 16, 1)
        code = self.process.wait(FLOW_S)
        assert code == 0, "the victim found an error: %d" % code
        for w in self.witnesses:
            assert w.wait(FLOW_S) == 0
        print("no program had its CPU for %.1f ms in all" % (
            struct.unpack_from("Q", self.report, 32)[0] / 1e6))


class Soak:

    def __init__(self, args):
        count = int(subprocess.run([args.hostile, "-", "count"], check=True,
                                   capture_output=True).stdout)
        self.hive = Hive(programs(args.hostile, args.flush, count), args.seed, args.only)
        warm_up()
        self.victim = Victim(args.hostile)
        self.op = jsonrpc.Connection(SOCKET, 60)
        self.turns, self.longest, self.story = Turns(self.op), [], ""
        self.operator = Operator()
        self.operator.start()
        self.slowest, self.net, self.backs = [], [], []
        assert soon(lambda: len(self.op.call("client_list")) == 1)
        self.before = self.state()
        while self.before != self.again():
            self.before = self.state()

    def again(self):
        time.sleep(0.1)
        return self.state()

    def state(self):
        """What must be there again. Of the victim's own, what it has does not change."""
        clients = [{k: c[k] for k in c if k != "client"} for c in self.op.call("client_list")]
        users = sorted((u for u in self.op.call("client_users")), key=str)
        return used(), mapped_memory(), clients, users

    def back(self):
        return self.state() == self.before

    def round(self, n):
        self.operator.worst = self.operator.worst_net = 0.0
        asked = self.operator.asked
        self.hive.round()
        waits = Waits()
        assert soon(self.back), "round %d: was %r, is %r" % (n, self.before, self.state())
        self.backs.append(waits.net_s())
        assert self.backs[-1] < BACK_S, "round %d: back after %.3f s" % (n, self.backs[-1])
        self.longest.append(self.longest_turn())
        self.turns.again()
        if self.longest[-1] >= max(self.longest):
            self.story = self.turns.story
        assert self.longest[-1] < TURN_S, "round %d: a worker's turn ran for %.1f ms: %s" % (
            n, self.longest[-1] * 1e3, self.turns.story)
        self.victim.round_ends()
        assert soon(lambda: self.operator.asked > asked + 2), "the operator has no answer"
        self.slowest.append(self.operator.worst)
        self.net.append(self.operator.worst_net)
        turn = self.op.call("control_load", reset=True)
        assert self.net[-1] < SLOW_S, "round %d: an answer took %.3f s; control lcore: %s" % (
            n, self.net[-1], turn)
        gap = self.victim.longest_net_ns[-1]
        assert gap < GAP_NS, "round %d: the victim had a gap of %.1f ms" % (n, gap / 1e6)

    def longest_turn(self):
        """A kernel counts interrupts, and what the host did not call stolen, as the worker's.

        A witness takes the CPU from whatever runs there, twice in a millisecond: 51 times and more
        in 25 ms of a loop beside it. Where it could not, nothing ran that it may interrupt.
        """
        took_s, worst = self.turns.worst_s(), self.turns.worst
        asleep = sum(worst["turn_max_" + k] for k in ("faults", "disk_faults", "waits"))
        if took_s < TURN_S or not ROOT or asleep or worst["turn_max_preempted"] > took_s * 1e3:
            return took_s
        print("not the worker's: %s" % self.turns.story, flush=True)
        return 0.0

    def close(self):
        self.operator.done = True
        self.operator.join()
        self.hive.close()
        self.victim.close()
        self.op.close()


def spread(what, values, unit):
    v = sorted(values)
    print("%s: median %.1f, 99 %% %.1f, most %.1f %s" % (
        what, v[len(v) // 2], v[int(len(v) * 0.99)], v[-1], unit))


def report(soak, rounds, seconds):
    print("%d rounds in %.0f s; %d blocks of the victim, each verified" % (
        rounds, seconds, soak.victim.blocks()))
    gaps = [ns / 1e6 for ns in soak.victim.longest_ns]
    spread("longest gap of the victim in a round", gaps, "ms")
    spread("    without waits for a CPU", [ns / 1e6 for ns in soak.victim.longest_net_ns], "ms")
    spread("slowest answer in a round", [s * 1e3 for s in soak.slowest], "ms")
    spread("    without waiting for a CPU", [s * 1e3 for s in soak.net], "ms")
    spread("longest turn of a worker in a round", [s * 1e3 for s in soak.longest], "ms")
    print("    the longest: %s" % soak.story)
    spread("all back after a round, without waiting for a CPU", [s * 1e3 for s in soak.backs], "ms")
    for name, n in soak.hive.counts().items():
        print("    %-18s %s" % (name, ", ".join("%d %s" % (n[k], k) for k in n)))


def main():
    p = argparse.ArgumentParser()
    p.add_argument("hostile")
    p.add_argument("flush")
    p.add_argument("--rounds", type=int, default=4)
    p.add_argument("--seed", type=int, default=int(time.time()))
    p.add_argument("--only", action="append", help="this attack, as the report names it")
    args = p.parse_args()
    print("%d rounds, seed %d%s" % (args.rounds, args.seed,
                                    "" if ROOT else "; not root: all are one user"), flush=True)
    soak, start = Soak(args), time.monotonic()
    warm_rounds, warm = max(WARM_ROUNDS, args.rounds // 5), private_kib()
    for n in range(args.rounds):
        soak.round(n)
        if n + 1 == warm_rounds:
            warm = private_kib()
        if n % 50 == 49:
            print("round %d: %.0f s, private %d KiB, slowest %.1f ms, gap %.1f ms" % (
                n + 1, time.monotonic() - start, private_kib(), max(soak.slowest) * 1e3,
                max(soak.victim.longest_ns) / 1e6), flush=True)
    grown = private_kib() - warm
    soak.close()
    report(soak, args.rounds, time.monotonic() - start)
    print("private memory: %+d KiB since round %d" % (grown, warm_rounds))
    assert sanitized() or grown < GROWTH_KIB, "the dataplane's memory grows"
    counts = soak.hive.counts()
    broken = [name for name in counts if counts[name]["broken"]]
    # In a few rounds, or as one user, an attack may be refused each time.
    may_fail = 0 if ROOT and args.rounds >= 100 else 1
    never = [name for name, n in counts.items()
             if not n["passes"] + n["killed"] + may_fail * n["refused"]]
    assert not broken, "attackers with mistakes of their own: %s" % broken
    assert not never, "never carried out: %s" % never


if __name__ == "__main__":
    sys.exit(main())
