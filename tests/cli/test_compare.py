# SPDX-License-Identifier: BSD-3-Clause
"""scripts/bench/compare tells what has become slower, and nothing else."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

SCRIPTS = os.environ["SCRIPTS"]


class Compare(unittest.TestCase):
    """scripts/bench/compare on runs and baselines typed here."""

    SEND = {"case": "send_64", "samples": 9, "loop": "write_64", "by_bare": 3.3333}
    WRITE = {"case": "write_64", "samples": 9, "loop": "write_64", "by_bare": 2.0}
    LOCAL = {"case": "local_write_64", "samples": 9, "loop": "own", "ratio": 0.5}

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.stored = os.path.join(holder.name, "baseline.json")
        self.made = os.path.join(holder.name, "run.json")

    def compare(self, *cases, args=(), crc="isal"):
        return self.compare_run("pipeline", {"crc": crc, "cases": cases}, *args)

    def compare_run(self, bench, run, *args):
        with open(self.made, "w", encoding="utf-8") as f:
            json.dump(run, f)
        p = subprocess.run([os.path.join(SCRIPTS, "bench/compare"), "--run",
                            "%s:%s" % (bench, self.made), "--baseline", self.stored, *args],
                           capture_output=True, text=True, timeout=60, check=False)
        return p.returncode, p.stdout + p.stderr

    def baseline(self, *cases):
        self.assertEqual(self.compare(*cases, args=["--update"])[0], 0)

    def test_update_writes_the_ratio_to_the_loop_of_the_run(self):
        self.baseline(self.SEND, self.WRITE)
        with open(self.stored, encoding="utf-8") as f:
            rows = json.load(f)["rows"]
        self.assertEqual(rows, {"send_64": {"ratio": 3.333, "loop": "write_64"},
                                "write_64": {"ratio": 2.0, "loop": "bare"}})

    def test_a_row_is_slower_from_10_percent_on(self):
        self.baseline(self.SEND, self.WRITE)
        for send, write, slow in ((3.333, 2, []), (3.65, 2.19, []), (3.68, 2, ["send_64"]),
                                  (3.333, 2.21, ["write_64"]), (1.7, 1, []),
                                  (6.7, 4, ["send_64", "write_64"])):
            with self.subTest(send=send, write=write):
                code, out = self.compare({**self.SEND, "by_bare": send},
                                         {**self.WRITE, "by_bare": write})
                self.assertEqual(code, 1 if slow else 0, out)
                self.assertEqual("slower" in out, bool(slow))
                if slow:
                    last = f"slower by 10% or more: {', '.join(slow)}\n"
                    self.assertTrue(out.endswith(last), out)

    def test_a_slower_machine_is_not_a_slower_row(self):
        self.baseline({**self.WRITE, "total": 120.0, "bare": 60.0})
        self.assertEqual(self.compare({**self.WRITE, "total": 240.0, "bare": 120.0})[0], 0)

    def test_a_row_that_is_next_to_another_one_of_ours(self):
        self.baseline(self.LOCAL)
        code, out = self.compare({**self.LOCAL, "ratio": 0.56})
        self.assertEqual(code, 1)
        self.assertRegex(out, r"local_write_64 +own +0\.50 +0\.56 .*SLOWER")

    def test_rows_that_are_new_or_gone(self):
        self.baseline(self.WRITE)
        code, out = self.compare(self.WRITE, self.SEND)
        self.assertEqual(code, 0)
        self.assertRegex(out, "send_64 .* new")
        self.baseline(self.WRITE, self.SEND)
        for gone in ([], [{**self.SEND, "samples": 0}]):
            code, out = self.compare(self.WRITE, *gone)
            self.assertEqual(code, 1)
            self.assertRegex(out, "send_64 .*in the baseline and not in the run")

    def test_what_does_not_compare_is_said(self):
        self.baseline(self.WRITE)
        self.assertIn("do not compare", self.compare(self.WRITE, crc="zlib")[1])
        for cases in ([], [{"case": "x"}]):
            self.assertEqual(self.compare(*cases)[0], 2)
        os.remove(self.stored)
        code, out = self.compare(self.WRITE)
        self.assertEqual(code, 2)
        self.assertNotIn("Traceback", out)

    OTHERS = {
        "client": ({"rows": [{"name": "list", "both": 50.0, "bare": 5.0}]},
                   {"client_list": {"ratio": 10.0, "loop": "bare"}}),
        "latency": ({"rows": [{"name": "alone", "p50": 0.5, "p99": 1.0, "by_alone": 1.0},
                              {"name": "write_1m", "p50": 0.7, "p99": 2.0, "by_alone": 2.0},
                              {"name": "alone_rare", "p50": 1.5, "p99": 9.0, "by_alone": 9.0}]},
                    {"latency_alone": {"ratio": 2.0, "loop": "median"},
                     "latency_write_1m": {"ratio": 2.0, "loop": "alone"},
                     "latency_alone_rare": {"ratio": 3.0, "loop": "median"}}),
        "workers": ({"cases": [{"case": "write_64", "samples": 9, "alone": 80.0, "speedup": 1.6,
                                "at_first": 40.0, "at_owner": 60.0}]},
                    {"workers_write_64": {"ratio": 0.625, "loop": "one"},
                     "workers_write_64_handed": {"ratio": 1.25, "loop": "kept"}}),
        "link": ({"rows": [{"bytes": 64, "distance": "near", "pairs": 5, "ratio": 0.5},
                           {"bytes": 64, "distance": "far", "pairs": 9, "ratio": 0.8}]},
                 {"link_64": {"ratio": 1.25, "loop": "far"}}),
    }

    def test_rows_of_other_benches_stand_beside_those_of_the_pipeline(self):
        self.baseline(self.SEND, self.WRITE)
        for bench, (run, rows) in self.OTHERS.items():
            self.assertEqual(self.compare_run(bench, run, "--update")[0], 0, bench)
            code, out = self.compare_run(bench, run)
            self.assertEqual(code, 0, out)
            with open(self.stored, encoding="utf-8") as f:
                stored = json.load(f)
            self.assertEqual({n: stored["rows"][n] for n in rows}, rows)
            self.assertEqual((stored["rows"]["send_64"]["ratio"], stored["crc"]), (3.333, "isal"))
            for name in rows:       # each of them tells when it gets slower
                stored["rows"][name]["ratio"] /= 1.2
            with open(self.stored, "w", encoding="utf-8") as f:
                json.dump(stored, f)
            code, out = self.compare_run(bench, run)
            self.assertEqual(code, 1)
            self.assertTrue(out.endswith(f"slower by 10% or more: {', '.join(rows)}\n"), out)
        self.assertEqual(self.compare_run("link", {"rows": [{"bytes": 1}]})[0], 2)
        self.assertEqual(self.compare_run("nothing", {})[0], 2)

    def test_the_stored_baseline_has_a_row_for_each_case(self):
        with open(os.path.join(SCRIPTS, "bench/baseline.json"), encoding="utf-8") as f:
            stored = json.load(f)["rows"]
        names = []
        for name, least in (("pipeline", 10), ("requests", 10)):
            with open(os.path.join(SCRIPTS, "../tests/bench/bench_%s.c" % name),
                      encoding="utf-8") as f:
                found = re.findall(r'^\t\{ "(\w+)", (?:OP|WR)_', f.read(), re.M)
            self.assertGreater(len(found), least, name)
            names += found
        # What the other benches measure.
        names += ["link_64", "link_1024", "link_4096"]
        for name in ("alone", "write_1m", "read_1m", "alone_rare", "write_1m_rare", "read_1m_rare"):
            names.append("latency_" + name)
        for name in ("write_64", "write_1024"):
            names += ["workers_" + name, "workers_%s_handed" % name]
        for way in ("list32", "single", "single_32qps"):
            names += ["client_%s_poll%d" % (way, n) for n in (1, 32)]
        self.assertEqual(sorted(stored), sorted(names))


if __name__ == "__main__":
    tap.main()
