#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rdma-core's own tests, as Debian packages them: none fails, and those that are skipped say why.

    test_pyverbs.py --long     all of them; without it those that are quick
"""
import collections
import glob
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

LONG = "--long" in sys.argv
SOURCE = "/usr/share/doc/rdma-core/tests"
QUICK = ("test_addr", "test_atomic", "test_cq", "test_cqex", "test_device", "test_mr", "test_pd",
         "test_qp", "test_rdmacm")
PASS = 111 if LONG else 70   # at least; the rest needs other hardware, or what is not there
IP = "10.77.0.1"            # of rocelane0, for connections
# What a test may be skipped for.
REASONS = r"MLX5|mlx5|EFA|ODP|[Dd]evice memory|dmabuf|Raw Packet|RAW QP|QP type 8|" \
    r"huge pages|CUDA|PCI device|real time|timestamp|gid indices|Extended CQ|" \
    r"Extended QP|[Ii]mport|multicast|rc_atomic_write"


class PyVerbs(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory(prefix="rocelane-pyverbs-")
        self.addCleanup(tmp.cleanup)
        self.tests = os.path.join(tmp.name, "tests")
        self.assertTrue(os.path.isdir(SOURCE), "rdma-core is not installed: scripts/setup")
        shutil.copytree(SOURCE, self.tests)
        for path in glob.glob(os.path.join(self.tests, "*.gz")):
            with gzip.open(path) as packed, open(path[:-3], "wb") as f:
                shutil.copyfileobj(packed, f)
        self.give_address()

    def give_address(self):
        """They ask the kernel's interface for the address of a device's port. There is none."""
        path = os.path.join(self.tests, "base.py")
        with open(path, encoding="utf-8") as f:
            text = f.read()
        body = "    def _get_ip_mac(self, dev, port, idx):\n"
        self.assertEqual(1, text.count(body))
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace(body, body + f"""\
        self.args.append([dev, port, idx, "{IP}", None])
        return
"""))

    def test_all(self):
        chosen = [] if LONG else [arg for name in QUICK for arg in ("-k", f"tests.{name}.*")]
        env = dict(os.environ)
        if env.get("SANITIZER"):
            env.update(LD_PRELOAD=env["SANITIZER"], ASAN_OPTIONS="detect_leaks=0")
        run = subprocess.run([os.environ["ROCELANE_RUN"], "-p", "/usr/bin/python3", "-B",
                              os.path.join(self.tests, "run_tests.py"), "-v", "--dev",
                              "rocelane0", "--port", "1", "--gid", "0", *chosen], env=env,
                             check=False, timeout=600, text=True, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        out = run.stdout
        self.assertEqual(0, run.returncode, out)
        # "name (module.class.name)", perhaps what it is about, "... ok" or "... skipped 'reason'"
        ended = re.findall(r"^(test\w+) \(([\w.]+)\)(?:\n[^\n]*?)?"
                           r" \.\.\. (?:(?!^test\w+ \().)*?(ok|skipped ['\"][^\n]*['\"])$", out,
                           re.M | re.S)
        ran, = re.findall(r"^Ran (\d+) tests? in ", out, re.M)
        self.assertEqual(int(ran), len(ended), "some are neither passed nor skipped:\n" + out)
        skipped = collections.defaultdict(list)
        for name, where, how in ended:
            if how != "ok":
                skipped[how[len("skipped '"):-1]].append(f"{where.split('.')[1]}.{name}")
        passed = [f"{where.split('.')[1]}.{name}" for name, where, how in ended if how == "ok"]
        print(f"{len(passed)} passed: {' '.join(passed)}")
        for reason, names in sorted(skipped.items()):
            print(f"{len(names)} skipped, {reason}: {' '.join(names)}")
        for reason in skipped:
            self.assertRegex(reason, REASONS)
        self.assertGreaterEqual(len(passed), PASS)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
