#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest's programs between the two ports: each ends with a row of results at both ends."""
import re
import sys
import unittest

import programs

SOCKET = sys.argv.pop(1)
ITERS = 20


class Perftest(unittest.TestCase):
    def play(self, program, *options, size=None, iters=ITERS):
        outs = programs.pair(SOCKET, program, ["-n", str(iters), "-F", *options])
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
        for kind in ("send", "write", "read"):
            self.play(f"ib_{kind}_bw", "-c", "XRC", size=65536)
            self.play(f"ib_{kind}_lat", "-c", "XRC", size=2)
        self.play("ib_atomic_bw", "-c", "XRC", size=8)
        self.play("ib_atomic_lat", "-c", "XRC", size=8)

    def test_lat_events(self):
        """It counts on events of new completions alone, and on room beyond what it asked for."""
        self.play("ib_send_lat", "-e", size=2)
        self.play("ib_read_lat", "-e", size=2)

    def test_write_bw(self):
        self.play("ib_write_bw", size=65536)

    def test_write_bw_all_sizes(self):
        rows = self.play("ib_write_bw", "-a", iters=5, size=8388608)
        self.assertGreaterEqual(len(rows), 1)

    def test_write_bw_many_qps(self):
        rows = programs.pair(SOCKET, "ib_write_bw", ["-n", "10", "-F", "-q", "8"])
        for code, out in rows:
            self.assertEqual(0, code, out)
        self.assertRegex(rows[1][1], r"(?m)^ 65536 +80 ")

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
    unittest.main()
