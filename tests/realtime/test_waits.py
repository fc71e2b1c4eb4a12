# SPDX-License-Identifier: BSD-3-Clause
"""Waits in real time beside programs that take the worker's CPU away, and what an idle one uses.

How late a wait is depends on the machine and is nobody's fault; early is wrong whatever the load.
`scripts/bench/waits` measures more of them, and prints how late they were."""
import glob
import os
import time
import unittest

import livenet
import waits

BUSY, WAITS, QPS, CPU = 2, 150, 16, 1
WAKE_MAX = 2000                 # a second; the longest sleep is 1 ms


class Waits(unittest.TestCase):

    def none_early(self, rnr):
        for idle in ("poll", "sleep"):
            with self.subTest(idle=idle):
                w = waits.measure(idle, BUSY, rnr, WAITS, QPS, CPU)
                self.assertGreaterEqual(len(w.late), WAITS)
                self.assertEqual([], w.early())

    def test_REQ_RNR_01_none_early(self):
        self.none_early(rnr=True)

    def test_TMR_02_none_early(self):
        self.none_early(rnr=False)


def threads(pid, name):
    """Of a process, those with such a name: their folders in /proc."""
    out = []
    for task in glob.glob("/proc/%d/task/*" % pid):
        with open(os.path.join(task, "comm"), encoding="ascii") as f:
            if name in f.read():
                out.append(task)
    return out


def sleeps(task):
    """How often the thread has gone to sleep."""
    with open(os.path.join(task, "status"), encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("voluntary"))


class Idle(livenet.LiveCase):

    def test_idle_worker_sleeps(self):
        """Without timers or frames; and it still answers, for what arrives wakes it."""
        task, = threads(self.dut.proc.pid, "worker")
        least = None
        for _ in range(5):      # the sleeps grow with the time that nothing comes
            before, at = sleeps(task), time.monotonic()
            time.sleep(0.5)
            rate = (sleeps(task) - before) / (time.monotonic() - at)
            least = rate if least is None else min(least, rate)
        self.assertLess(least, WAKE_MAX)
        self.dut.frames()


if __name__ == "__main__":
    livenet.run_tests(lambda: unittest.main(verbosity=2))
