# SPDX-License-Identifier: BSD-3-Clause
"""The systemd unit: how much it leaves the dataplane, and that the dataplane can live with it."""
import json
import os
import re
import subprocess
import tempfile
import unittest

import confined
import livenet
import dut
from dut import QPN

HIGHEST_EXPOSURE = 2.0


class Service(unittest.TestCase):

    def test_exposure(self):
        """`systemd-analyze security` of the unit as it is installed."""
        with open(confined.UNIT, encoding="utf-8") as f:
            unit = f.read().replace("@bindir@", "/usr/bin")
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "rocelane.service")
            with open(path, "w", encoding="utf-8") as f:
                f.write(unit)
            shown = subprocess.run(
                ["systemd-analyze", "security", "--offline=true", "--no-pager", path],
                stdout=subprocess.PIPE, text=True, timeout=60, check=True).stdout
        level = re.search(r"Overall exposure level for rocelane.service: ([0-9.]+)", shown)
        self.assertTrue(level, shown)
        self.assertLessEqual(float(level[1]), HIGHEST_EXPOSURE, shown)

    def test_its_configuration(self):
        """What its comment says to write is a configuration by which its group gets in."""
        with open(confined.UNIT, encoding="utf-8") as f:
            said, = re.findall(r'# "control": (\{.*\})', f.read())
        unit, control = confined.settings(), json.loads(said)
        folders = ["/run/" + name for name in unit["RuntimeDirectory"]]
        self.assertIn(os.path.dirname(control["socket"]), folders)
        self.assertEqual(0o060, int(control["mode"], 8) & 0o067)
        self.assertEqual(0o050, int(unit["RuntimeDirectoryMode"][0], 8) & 0o057)

    def test_runs_with_what_the_unit_leaves(self):
        """An ordinary user with two capabilities and the unit's system calls, on net_af_packet."""
        config = livenet.live_config(as_user=True, cqs=[{"name": "cq0", "cqe": 16}], qps=[{
            "qp_num": QPN, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
            "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": 0x22,
            "rq_psn": 1, "sq_psn": 1, "ah_attr": {"dest_ip": "192.0.2.2"}}])
        # LeakSanitizer looks for leaks by ptrace(), which the unit does not allow.
        os.environ["ASAN_OPTIONS"] = os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"
        limits = confined.Confined()
        live = livenet.Live(config, prepare=limits.apply, owner=limits.user)
        self.addCleanup(live.close)
        self.assertEqual([], [line for line in live.stderr().split("\n")
                              if "ermitted" in line or "cannot" in line], live.stderr())
        left = 0 if confined.has_sandbox(live) else sum(1 << cap for cap in limits.caps)
        for status in confined.threads(live.proc.pid):
            self.assertEqual("%016x" % left, status["CapEff"], status)
            self.assertEqual(("1", "2"), (status["NoNewPrivs"], status["Seccomp"]), status)
            if limits.user is not None:
                self.assertEqual({str(limits.user)}, set(status["Uid"].split()))
        peer = dut.Peer()
        live.rx(peer.send_only(1, b"x"))
        got = [dut.Frame(raw) for _, raw in live.frames(1)]
        self.assertTrue(dut.Rnr(1, 12, 0).matches(got[0]), got)
        self.assertEqual(0, live.process.stop(), live.stderr())

    def test_gives_everything_up_by_itself(self):
        """Without systemd, as root if need be: no capability is left to any thread, and all of them
        have a filter (tests/sandbox: what it refuses). `control.sandbox` turns it off."""
        for wanted in (True, False):
            with self.subTest(sandbox=wanted):
                live = livenet.Live(livenet.live_config(control={"sandbox": wanted}))
                self.addCleanup(live.close)
                sandbox = wanted and confined.has_sandbox(live)
                found = confined.threads(live.proc.pid)
                self.assertGreater(len(found), 1)
                for status in found:
                    self.assertEqual(sandbox, status["Seccomp"] == "2", status)
                    self.assertEqual(sandbox, status["NoNewPrivs"] == "1", status)
                    if sandbox:
                        for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
                            self.assertEqual(0, int(status[kind], 16), status)
                self.assertEqual(0, live.process.stop(), live.stderr())


if __name__ == "__main__":
    livenet.run_tests(dut.main)
