# SPDX-License-Identifier: BSD-3-Clause
"""perftest in the guest and rocelane-perf here: eight programs, both directions, with loss."""
import json
import os
import subprocess

from bench import GUEST_IP
from debian import HANDSHAKE_IP, RUN, WAIT_S, DebianCase

PERF = os.environ.get("ROCELANE_PERF", "")
TESTS = ("send_bw", "write_bw", "read_bw", "atomic_bw",
         "send_lat", "write_lat", "read_lat", "atomic_lat")
BY_CM = ("write_bw", "send_lat")
SEED = int(os.environ.get("INTEROP_SEED", "7"))


class Perftest(DebianCase):
    def here(self, test, port, *args):
        p = subprocess.Popen([PERF, test, "--socket", self.bench.process.socket_path, "-p",
                              str(port), "--json", *args], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        return p

    def there(self, test, port, *args):
        return self.theirs("ib_" + test, "-d", "rxe0", "-F", "-p", port, *args)

    def both(self, test, guest_serves, *args):
        """Run with either end as the server; the measuring ends' figures."""
        port = next(self.ports)
        sized = args
        if not test.startswith("atomic"):
            sized = ("-s", "3000" if "bw" in test else "64", *args)
        if guest_serves:
            pid = self.there(test, port, *sized)
            p = self.here(test, port, *sized, GUEST_IP)
        else:
            p = self.here(test, port, *sized)
            self.listens(p, port)       # perftest asks once
            pid = self.there(test, port, *sized, HANDSHAKE_IP)
        try:
            out, err = p.communicate(timeout=WAIT_S)
        except subprocess.TimeoutExpired:
            p.kill()
            out, err = p.communicate()
        status, told_there = self.theirs_ended(pid)
        self.assertEqual((0, 0), (p.returncode, status), (out, err, told_there))
        if out:
            r = json.loads(out)
            self.assertEqual(int(args[args.index("-n") + 1]), r["iterations"])
            told = r.get("msg_rate_mpps", r.get("t_typical_us"))
            print("# %s, guest %s: %s %s" % (
                test, "serves" if guest_serves else "asks", told,
                "Mpps" if "bw" in test else "us"), flush=True)
        return told_there

    def every_test(self, guest_serves, *args):
        for test in TESTS:
            with self.subTest(test=test):
                self.both(test, guest_serves, *args)

    def test_rocelane_asks(self):
        self.every_test(True, "-n", "200")

    def test_linux_asks(self):
        self.every_test(False, "-n", "200")

    def test_unreliable_connections(self):
        """UC; of send_bw no more than the receives that are posted beforehand."""
        for guest_serves in (True, False):
            for test, n in (("write_bw", "200"), ("write_lat", "200"), ("send_lat", "200"),
                            ("send_bw", "100")):
                with self.subTest(test=test, guest_serves=guest_serves):
                    self.both(test, guest_serves, "-c", "UC", "-n", n)

    def test_datagrams(self):
        """UD, as for UC; perftest's sizes end with the path MTU."""
        for guest_serves in (True, False):
            for test, n in (("send_lat", "200"), ("send_bw", "100")):
                with self.subTest(test=test, guest_serves=guest_serves):
                    self.both(test, guest_serves, "-c", "UD", "-n", n, "-s", "1024")

    def test_rocelane_asks_with_loss(self):
        rule = self.bench.wire.rule("drop", None, chance=0.01, count=-1, seed=SEED)
        self.every_test(True, "-n", "200")
        self.assertGreater(rule.hits, 0)

    def test_linux_asks_with_loss(self):
        rule = self.bench.wire.rule("drop", None, chance=0.01, count=-1, seed=SEED)
        self.every_test(False, "-n", "200")
        self.assertGreater(rule.hits, 0)

    def test_connection_manager(self):
        """perftest -R at both ends, one of them on our dataplane: CM-16, both roles."""
        if not RUN:
            self.skipTest("rocelane-run of this build does not run Debian's programs")
        for guest_serves in (False, True):
            for test in BY_CM:
                with self.subTest(test=test, guest_serves=guest_serves):
                    self.perftest_by_cm(test, guest_serves, "-s", 64)
