# SPDX-License-Identifier: BSD-3-Clause
"""perftest in the guest and rocelane-perf here: eight programs, both directions, with loss."""
import json
import os
import subprocess
import time

import livenet
from bench import GUEST_IP, HOST_IP, TAP, InteropCase

PERF = os.environ.get("ROCELANE_PERF", "")
RUN = os.environ.get("ROCELANE_RUN", "")
TESTS = ("send_bw", "write_bw", "read_bw", "atomic_bw",
         "send_lat", "write_lat", "read_lat", "atomic_lat")
BY_CM = ("write_bw", "send_lat")
CM_TRY_S = 20
HANDSHAKE_IP = "10.77.0.3"  # of the tap: the kernel's TCP; rocelane's own address is another
WAIT_S = 60
SEED = int(os.environ.get("INTEROP_SEED", "7"))


class Perftest(InteropCase):
    ports = iter(range(18515, 19515))

    @classmethod
    def setUpClass(cls):
        livenet.ip("addr", "replace", HANDSHAKE_IP + "/24", "dev", TAP)

    def here(self, test, port, *args):
        p = subprocess.Popen([PERF, test, "--socket", self.bench.process.socket_path, "-p",
                              str(port), "--json", *args], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        return p

    def listens(self, p, port):
        """Wait until it does, or has ended."""
        end = time.monotonic() + WAIT_S
        wanted = ":%04X" % port, "0A"
        while p.poll() is None and time.monotonic() < end:
            for table in ("tcp", "tcp6"):
                with open("/proc/net/" + table, encoding="ascii") as f:
                    if any((row[1][-5:], row[3]) == wanted for row in map(str.split, f)):
                        return
            time.sleep(0.01)

    def there(self, test, port, *args):
        argv = ["ib_" + test, "-d", "rxe0", "-F", "-p", str(port), *args]
        return self.bench.guest.rpc("run_start", argv=argv, log="perf")["pid"]

    def ended_there(self, pid):
        r = self.bench.guest.rpc("run_wait", pid=pid, wait_ms=WAIT_S * 1000, log="perf",
                                 timeout_s=WAIT_S + 30)
        if r["status"] is None:
            self.bench.guest.rpc("run_wait", pid=pid, kill=True, wait_ms=1000, log="perf")
        return r

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
        guest = self.ended_there(pid)
        self.assertEqual((0, 0), (p.returncode, guest["status"]), (out, err, guest["output"]))
        if out:
            r = json.loads(out)
            self.assertEqual(int(args[args.index("-n") + 1]), r["iterations"])
            told = r.get("msg_rate_mpps", r.get("t_typical_us"))
            print("# %s, guest %s: %s %s" % (
                test, "serves" if guest_serves else "asks", told,
                "Mpps" if "bw" in test else "us"), flush=True)
        return guest["output"]

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

    # ---- -R: the connection manager instead of TCP ----------------------------------------------

    def debian(self, test, port, *args):
        """perftest itself, as it is, over our dataplane."""
        p = subprocess.Popen([RUN, "-s", self.bench.process.socket_path, "ib_" + test, "-R", "-F",
                              "-p", str(port), *args], stdin=subprocess.DEVNULL, text=True,
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(p.stdout.close)
        return p

    def debian_ended(self, p, wait_s):
        try:
            out = p.communicate(timeout=wait_s)[0]
            return p.returncode, out
        except subprocess.TimeoutExpired:
            p.terminate()       # rocelane-run passes it on
            out = p.communicate()[0]
            return p.returncode, out + "(it did not end)"

    def guest_listens(self, port):
        """By the kernel's own list of what the connection manager has."""
        end, listens = time.monotonic() + WAIT_S, False
        while not listens and time.monotonic() < end:
            pid = self.bench.guest.start(["rdma", "resource", "show", "cm_id"], log="ids")
            out = self.bench.guest.wait(pid, log="ids")[1]
            listens = any("LISTEN" in row and ":%d" % port in row for row in out.splitlines())
        self.assertTrue(listens, out)

    def until_listeners(self, p, there):
        """Of rocelane's own connection manager; p is whose it will be."""
        end = time.monotonic() + WAIT_S
        while (self.bench.host.rpc("stats")["cm_listeners"] != 0) != there:
            if p is not None and p.poll() is not None:
                self.fail("%r: %s" % (p.returncode, p.communicate()[0]))
            self.assertLess(time.monotonic(), end, "listeners")
            time.sleep(0.01)

    def guest_asks(self, test, port, *args):
        """Once. @return both ends, the guest first, as debian_ended()."""
        self.until_listeners(None, False)
        p = self.debian(test, port, *args)
        self.until_listeners(p, True)
        pid = self.there(test, port, "-R", *args, HOST_IP)
        r = self.bench.guest.rpc("run_wait", pid=pid, log="perf", wait_ms=CM_TRY_S * 1000,
                                 timeout_s=CM_TRY_S + 30)
        if r["status"] is None:
            r = self.bench.guest.rpc("run_wait", pid=pid, kill=True, wait_ms=1000, log="perf")
        return ((r["status"], r["output"]),
                self.debian_ended(p, WAIT_S if r["status"] == 0 else 0))

    def guest_serves(self, test, port, *args):
        """Once. @return both ends, ours first."""
        pid = self.there(test, port, "-R", *args)
        self.guest_listens(port)
        asked = self.debian_ended(self.debian(test, port, *args, GUEST_IP), CM_TRY_S)
        r = self.bench.guest.rpc("run_wait", pid=pid, kill=asked[0] != 0, log="perf",
                                 wait_ms=WAIT_S * 1000, timeout_s=WAIT_S + 30)
        return asked, (r["status"], r["output"])

    def by_cm(self, test, guest_serves, *args):
        """perftest connects twice, and its server does not listen in between: a client that is
        faster is refused, and neither end survives it. Then both begin again."""
        end = time.monotonic() + WAIT_S
        while True:
            asked, served = (self.guest_serves if guest_serves else self.guest_asks)(
                test, next(self.ports), *args)
            if asked[0] == 0 or time.monotonic() > end:
                break
            print("# again: %r" % ((asked, served),), flush=True)
        self.assertEqual((0, 0), (asked[0], served[0]), (asked, served))
        row = r"(?m)^ %s +%s " % (args[args.index("-s") + 1], args[args.index("-n") + 1])
        self.assertRegex(asked[1], row)

    def test_connection_manager(self):
        """perftest -R at both ends, one of them on our dataplane: CM-16, both roles."""
        if not RUN:
            self.skipTest("rocelane-run of this build does not run Debian's programs")
        for guest_serves in (False, True):
            for test in BY_CM:
                with self.subTest(test=test, guest_serves=guest_serves):
                    self.by_cm(test, guest_serves, "-n", "200", "-s", "64")
