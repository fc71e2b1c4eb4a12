#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ibv_rc_pingpong and its relatives between the two ports, with data checked by themselves."""
import os
import re
import sys
import unittest

import programs

SOCKET = sys.argv.pop(1)
ROUNDS = 30        # each may take time slices of several programs


class PingPong(unittest.TestCase):
    def setUp(self):
        programs.remove_xrc_files(self)

    def play(self, program, *options, each=1, iters=ROUNDS):
        """Both ends exchange `iters` messages; with -c each compares what it received."""
        outs = programs.pair(SOCKET, program, ["-g", "0", "-n", str(iters), *options])
        for code, out in outs:
            self.assertEqual(0, code, out)
            self.assertRegex(out, rf"(?m)^{iters * each} iters in ")
            self.assertNotIn("invalid data", out)
        return outs

    def test_rc(self):
        (_, left), (_, right) = self.play("ibv_rc_pingpong", "-c")
        qpn = r"QPN 0x([0-9a-f]{6}), PSN 0x[0-9a-f]{6}, GID ::ffff:10\.77\.0\.(\d)"
        self.assertEqual(re.findall(qpn, left), re.findall(qpn, right)[::-1])

    def test_rc_events(self):
        self.play("ibv_rc_pingpong", "-c", "-e")

    def test_rc_ipv6(self):
        self.play("ibv_rc_pingpong", "-g", "1")

    def test_rc_small_mtu_large_messages(self):
        self.play("ibv_rc_pingpong", "-c", "-m", "256", "-s", "100000", iters=20)

    def test_placement(self):
        """ibv_wr_atomic_write() and ibv_wr_flush(), which no program of Debian's calls."""
        rc, out = programs.run(SOCKET, os.environ["VERBS_PLACEMENT"])
        self.assertEqual((0, "atomic write\nflush\n"), (rc, out[-19:]))
        self.assertIn("FLUSH_PERSISTENT", out)      # of memory that is not persistent

    def test_rc_new_post_send(self):
        """ibv_qp_ex: requests are put together by calls."""
        self.play("ibv_rc_pingpong", "-c", "-N")

    def test_rc_timestamps(self):
        """ibv_cq_ex: completions are read member by member, with their time."""
        self.play("ibv_rc_pingpong", "-c", "-t")

    def test_srq(self):
        self.play("ibv_srq_pingpong", "-c", "-q", "4")

    def test_xrc(self):
        """A target queue pair, and shared receive queues that requests name."""
        for options in ((), ("-e",)):
            for code, out in programs.pair(SOCKET, "ibv_xsrq_pingpong",
                                           ["-g", "0", "-n", str(ROUNDS), *options]):
                self.assertEqual(0, code, out)
                self.assertRegex(out, "(?m)^success$")

    def test_uc(self):
        self.play("ibv_uc_pingpong", "-c")

    def test_ud(self):
        self.play("ibv_ud_pingpong", "-c")
        self.play("ibv_ud_pingpong", "-g", "1", "-e")

    def test_no_such_gid(self):
        code, out = programs.run(SOCKET, "ibv_rc_pingpong", "-d", "left", "-g", "2")
        self.assertEqual(1, code, out)
        self.assertIn("can't read sgid of index 2", out)


if __name__ == "__main__":
    unittest.main()
