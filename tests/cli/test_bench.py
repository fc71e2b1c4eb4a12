# SPDX-License-Identifier: BSD-3-Clause
"""Each benchmark runs in small and prints a table, and JSON, with all that it promises.

What the figures are is nobody's business here: the machine may be busy, the build one with
sanitizers. That they are there and above 0 is.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

SCRIPTS = os.environ["SCRIPTS"]
WAIT_S = 240    # for a run of about a second, with sanitizers on a busy machine


PERFTEST = r"""#!/bin/sh
for word; do
    case $word in init=*) folder=$(dirname "${word#init=}") ;; esac
done
while read -r label program options; do
    n=1000
    case $options in *" -l "*) n=2000 ;; esac
    printf 'test %s\n #bytes     #iterations\n %d  %d  0.00  0.00  0.000000\n' "$label" \
    	"${label#*/}" $n
done <"$folder/tests" >"$folder/out"
echo "end of tests" >>"$folder/out"
"""


def benchmark(name, *words, check=True):
    """@return what it printed."""
    p = subprocess.run([os.path.join(SCRIPTS, "bench", name), *words], stdin=subprocess.DEVNULL,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False,
                       timeout=WAIT_S)
    if check and p.returncode != 0:
        raise AssertionError(f"{name} {words}: {p.returncode}\n{p.stdout[-2000:]}\n"
                             f"{p.stderr[-4000:]}")
    return p


class Figures(unittest.TestCase):
    def run_json(self, name, *words):
        """@return lines of the table, and what --json wrote."""
        with tempfile.TemporaryDirectory(prefix="rl") as d:
            path = os.path.join(d, "out.json")
            p = benchmark(name, "--json", path, *words)
            with open(path, encoding="utf-8") as f:
                return p.stdout.splitlines(), json.load(f)

    def above_0(self, row, *keys):
        for key in keys:
            self.assertIsInstance(row[key], (int, float), key)
            self.assertGreater(row[key], 0, f"{key} of {row}")

    def rows_of(self, lines, first_word):
        """Rows of the table that begin with it, without it, as numbers."""
        rows = [line.split()[1:] for line in lines if line.split()[:1] == [first_word]]
        self.assertTrue(rows, lines)
        return rows

    def test_wheel(self):
        lines, out = self.run_json("wheel")
        self.assertEqual([1, 1000, 1000000], [row["nodes"] for row in out["rows"]])
        for row in out["rows"]:
            self.above_0(row, "arm", "re-arm later", "cancel", "move and fire", "nothing due")
            self.assertEqual(5, len(self.rows_of(lines, str(row["nodes"]))[0]))

    def test_pipeline(self):
        lines, out = self.run_json("pipeline", "--repeats", "1", "write_64")
        row, = out["cases"]
        self.assertEqual(("write_64", 64, 1), (row["case"], row["bytes"], row["samples"]))
        self.above_0(row, "total", "ratio", "bare", "empty", "rx", "parse", "icrc", "steer",
                     "respond", "tx")
        self.assertEqual(16, len(self.rows_of(lines, "write_64")[0]))

    def test_each_byte_is_copied_once(self):
        # Between two local addresses, too, from region to region; short ones go by way of a frame.
        wanted = {"write_4096": 1, "send_64": 1, "read_4096": 1, "req_write_4096": 1,
                  "req_read_4096": 1, "local_write_4096": 1, "local_read_64k": 1,
                  "local_write_64": 2}
        with open(os.path.join(os.environ["BENCH_BUILD"], "meson-info/intro-buildoptions.json"),
                  encoding="utf-8") as f:
            sanitizers = [o["value"] for o in json.load(f) if o["name"] == "b_sanitize"]
        _, out = self.run_json("pipeline", "--repeats", "1", *wanted)
        if sanitizers != ["none"]:      # they have memory of their own, which nobody may read
            wanted = {name: None for name in wanted}
        self.assertEqual(wanted, {row["case"]: row.get("copied") for row in out["cases"]})

    def test_hostile(self):
        lines, out = self.run_json("hostile", "--repeats", "1", "icrc")
        row, = out["cases"]
        self.assertEqual(("icrc", "RX-SYN-30"), (row["case"], row["rule"]))
        self.above_0(row, "empty", "good_alone")
        for key in ("bad", "good_in_flood", "kept", "share"):
            self.above_0(row[key], "errbuf_off", "errbuf_on")
        self.assertEqual("RX-SYN-30", self.rows_of(lines, "icrc")[0][0])

    def test_fair(self):
        lines, out = self.run_json("fair", "--repeats", "1", "--ms", "2", "alone", "neighbour")
        self.assertEqual([("alone", 0), ("neighbour", 1)],
                         [(row["case"], row["qps"]) for row in out["cases"]])
        for row in out["cases"]:
            self.above_0(row, "rate", "kept", "p99_ns", "turn_ns", "later")
        self.assertEqual(7, len(self.rows_of(lines, "neighbour")[0]))

    def test_rows_that_are_none(self):
        """Nor is an option whose value was forgotten. A table without a row says nothing."""
        for name, good in (("fair", "neighbour"), ("hostile", "icrc"), ("pipeline", "write_64")):
            for words in (["no_such_row"], [good, "no_such_row"], ["--repeats"]):
                p = benchmark(name, *words, check=False)
                with self.subTest(name=name, words=words):
                    self.assertEqual((2, ""), (p.returncode, p.stdout))
                    self.assertRegex(p.stderr, f"'{words[-1]}' is no row.* {good}")

    def test_workers(self):
        if os.cpu_count() < 2:
            self.assertNotEqual(0, benchmark("workers", "--repeats", "1", check=False).returncode)
            return
        lines, out = self.run_json("workers", "--repeats", "1")
        self.assertEqual(["write_64", "write_1024"], [row["case"] for row in out["cases"]])
        for row in out["cases"]:
            self.assertIn(row["samples"], (0, 1))   # 0: no core for itself, nothing was measured
            if row["samples"] != 0:
                self.above_0(row, "one", "alone", "two", "speedup", "at_first", "at_owner",
                             "crossed")
            self.assertEqual(9, len(self.rows_of(lines, row["case"])[0]))
        self.assertEqual(["write_64", "write_1024"], [row["case"] for row in out["half"]])
        for row in out["half"]:
            self.assertIn(row["samples"], (0, 1))
            if row["samples"] != 0:
                self.above_0(row, "one", "two", "speedup")
        self.assertEqual([(c, n) for c in ("write_64", "write_1024") for n in (1, 2, 4, 8, 16)],
                         [(row["case"], row["workers"]) for row in out["simulated"]])
        for row in out["simulated"]:
            self.assertAlmostEqual(1 - 1 / row["workers"], row["handed"], 2)
            self.above_0(row, "cycles", "speedup")

    def test_link(self):
        words = ["--any", "--pairs", "2", "--ms", "50", "--bytes", "64,4096"]
        if os.cpu_count() < 2 or shutil.which("dpdk-testpmd") is None:
            p = benchmark("link", *words, check=False)
            self.assertRegex(p.stderr, "^link: (there is no dpdk-testpmd|it takes two CPUs)")
            return
        lines, out = self.run_json("link", *words)
        self.assertEqual([64, 4096], [row["bytes"] for row in out["rows"]])
        for row in out["rows"]:
            self.assertEqual("any", row["distance"])
            self.above_0(row, "pairs", "cycles", "ratio")
            self.above_0(row["rocelane"], "rate")
            self.above_0(row["testpmd"], "rate")
            for pair in row["samples"]:
                self.assertEqual(0, pair["rocelane"]["naks"])
                self.assertEqual(3, len(pair["cycles"]))
            self.assertEqual(11, len(self.rows_of(lines, str(row["bytes"]))[0]))

    def test_peer(self):
        lines, out = self.run_json("peer", "--link", "pair", "--op", "write,atomic", "--size",
                                   "4096", "--qps", "1,2", "--loss", "0,1", "--seconds", "0.1")
        self.assertEqual(0, out["failed"])
        self.assertEqual([(op, size, qps, loss) for op, size in (("write", 4096), ("atomic", 8))
                          for qps in (1, 2) for loss in (0, 1)],
                         [(row["op"], row["bytes"], row["qps"], row["loss_percent"])
                          for row in out["rows"]])
        for row in out["rows"]:
            self.above_0(row, "messages_per_second", "goodput_gbps")
            if row["qps"] == 1:
                self.above_0(row, "p50_us", "p99_us")
        for op in ("write", "atomic"):
            self.assertEqual([8, 8, 6, 6], [len(r) for r in self.rows_of(lines, op)])

    def test_rxe(self):
        """With a program in the place of the kernel that says what perftest in it would say."""
        with tempfile.TemporaryDirectory(prefix="rl") as d:
            kernel = os.path.join(d, "kernel")
            with open(kernel, "w", encoding="ascii") as f:
                f.write(PERFTEST)
            os.chmod(kernel, 0o755)
            lines, out = self.run_json("rxe", "--kernel", kernel, "--op", "write,read", "--size",
                                       "64", "--rounds", "1")
            self.assertEqual([("write", 64, 2000), ("read", 64, 2000)],
                             [(row["op"], row["bytes"], row["rxe"]) for row in out["rows"]])
            for row in out["rows"]:
                self.above_0(row, "one", "two")
                self.assertEqual(11, len(self.rows_of(lines, row["op"])[0]))
            p = benchmark("rxe", "--kernel", kernel + "s", check=False)
            self.assertEqual((2, True), (p.returncode, "no such program" in p.stderr))

    def test_loss(self):
        lines, out = self.run_json("loss", "--op", "write", "--qps", "1", "--loss", "1", "--pairs",
                                   "1", "--ms", "200", "--again", "0", "--timeout", "8")
        row, = out["rows"]
        self.assertEqual(("write", 1, 0.01), (row["op"], row["qps"], row["loss"]))
        self.above_0(row, "lossless_mb_s", "mb_s", "fraction", "lost", "req_resent_pkts",
                     "packet_seq_err")
        self.assertEqual(["1", "1", "%"], self.rows_of(lines, "write")[0][:3])

    def test_transfer(self):
        p = benchmark("transfer", "--link", "pair", "--bytes", "4M", "--region", "2M", "--op",
                      "write", "--loss", "0,1")
        for percent in (0, 1):
            found = re.search(rf"^ *{percent} % +([\d.]+) GB +([\d.]+) s +([\d.]+) MB/s +"
                              r"([\d.]+) +WRITE (\d+) +lost (\d+) of (\d+)", p.stdout, re.M)
            self.assertIsNotNone(found, p.stdout)
            self.assertGreater(float(found[3]), 0)
            self.assertGreater(float(found[4]), 0)
            self.assertGreater(int(found[7]), 1000)
        self.assertGreater(int(found[6]), 0)


if __name__ == "__main__":
    tap.main()
