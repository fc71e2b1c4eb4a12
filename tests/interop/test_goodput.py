# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench/kernel in small: the kernel with itself, then either way round with rocelane."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))


class Goodput(unittest.TestCase):

    def test_a_table(self):
        """Everybody gets through, with 1 % lost, too; no speed is asked for."""
        with tempfile.NamedTemporaryFile(suffix=".json") as f:
            p = subprocess.run([sys.executable, "-B", os.path.join(HERE, "goodput.py"), "--pairs",
                                "1", "--seconds", "0.1", "--json", f.name],
                               capture_output=True, text=True, timeout=800, check=False)
            self.assertEqual((0, ""), (p.returncode, p.stderr))
            rows = json.load(f)
        self.assertEqual([(asks, answers, op)
                          for asks, answers in [("kernel", "kernel")] + 2 * [("kernel", "ours")] +
                          2 * [("ours", "kernel")] for op in ("RDMA_WRITE", "RDMA_READ")],
                         [(r["asks"], r["answers"], r["op"]) for r in rows])
        for r in rows:
            self.assertTrue(r["mb_s"] > 0 < r["lossy_mb_s"], r)
            self.assertTrue(r["wrong"] == 0 or (r["asks"], r["op"]) == ("kernel", "RDMA_READ"), r)
        self.assertEqual(12, len(p.stdout.splitlines()))
