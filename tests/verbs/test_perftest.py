#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs between the two ports: each ends with a row of results at both ends."""
import os
import re
import sys
import unittest

import programs

PERF = os.environ["ROCELANE_PERF"]
SOCKET = sys.argv.pop(1)
ITERS = 20
LONG = "--long" in sys.argv


class Perftest(unittest.TestCase):
    def setUp(self):
        programs.remove_xrc_files(self)

    def play(self, program, *options, size=None, iters=ITERS, asks=None):
        each = iters // 8 if "-q" in options else iters
        outs = programs.pair(SOCKET, program, ["-n", str(each), "-F", *options], asks)
        for code, out in outs:
            self.assertEqual(0, code, out)
            for word in ("Completion with error", "Failed", "failed"):
                self.assertNotIn(word, out)
        # The one that asks has the results.
        rows = [r.split() for r in re.findall(r"(?m)^ \d[\d. \t]*$", outs[1][1])]
        self.assertTrue(rows, outs[1][1])
        if size is not None:
            self.assertEqual(str(size), rows[-1][0])
        self.assertEqual(str(iters), rows[-1][1], outs[1][1])
        return rows

    def test_send_bw(self):
        self.play("ib_send_bw", size=65536)

    def test_send_bw_events(self):
        self.play("ib_send_bw", "-e", size=65536)

    def test_send_bw_srq(self):
        self.play("ib_send_bw", "--use-srq", "-s", "2048", size=2048)

    def test_send_bw_uc(self):
        self.play("ib_send_bw", "-c", "UC", "-s", "4096", size=4096)

    def test_send_ud(self):
        self.play("ib_send_bw", "-c", "UD", "-s", "4096", size=4096)
        self.play("ib_send_lat", "-c", "UD", size=2)

    def test_xrc(self):
        self.play("ib_send_bw", "-c", "XRC", size=65536)
        self.play("ib_read_lat", "-c", "XRC", size=2)
        self.play("ib_atomic_bw", "-c", "XRC", size=8)

    def test_xrc_with_ours_at_one_end(self):
        """rocelane-perf and perftest pair their queue pairs alike, whichever serves."""
        for test in ("send_bw", "send_lat", "read_lat"):
            ours, theirs = [PERF, test], "ib_" + test
            for serves, asks in ((ours, theirs), (theirs, ours)):
                with self.subTest(test, serves=serves):
                    self.play(serves, "-c", "XRC", asks=asks)

    def test_long(self):
        """Each program with each option that it takes."""
        if not LONG:
            return
        for kind in ("send", "write", "read", "atomic"):
            for way in ("bw", "lat"):
                options = [("-c", "XRC")]
                # Half a second for each size: perftest's ends meet over TCP in between.
                options += [("-a",)] if kind != "atomic" else []
                options += [("-e",)] if kind != "write" else []
                options += [("-q", "8")] if way == "bw" else []
                options += [("-c", "UC"), ("-I", "64")] if kind in ("send", "write") else []
                options += [("-c", "UD"), ("--use-srq", "-s", "1024")] if kind == "send" else []
                for option in options:
                    with self.subTest(f"ib_{kind}_{way}", option=option):
                        self.play(f"ib_{kind}_{way}", *option,
                                  iters=8 * ITERS if option[0] == "-q" else ITERS)

    def test_lat_events(self):
        """It counts on events of new completions alone, and on room beyond what it asked for."""
        self.play("ib_send_lat", "-e", size=2)
        self.play("ib_read_lat", "-e", size=2)

    def test_write_bw(self):
        self.play("ib_write_bw", size=65536)

    def test_write_bw_many_qps(self):
        self.play("ib_write_bw", "-q", "8", iters=80, size=65536)

    def test_read_bw(self):
        self.play("ib_read_bw", size=65536)

    def test_atomic_bw(self):
        self.play("ib_atomic_bw", size=8)
        self.play("ib_atomic_bw", "-A", "CMP_AND_SWAP", size=8)

    def test_latency(self):
        for program in ("ib_send_lat", "ib_write_lat", "ib_read_lat"):
            self.play(program, size=2)
        self.play("ib_atomic_lat", size=8)

    def test_inline(self):
        self.play("ib_write_lat", "-I", "64", "-s", "16", size=16)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
