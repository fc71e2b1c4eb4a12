# SPDX-License-Identifier: BSD-3-Clause
"""Two ports over memif, which are two devices; another dataplane comes and goes at one of them."""
import os
import sys
import tempfile
import unittest

import programs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import bench    # noqa: E402

EAL = ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "128", "--log-level=error",
       "--lcores=0@0,1@0"]


class Ports(unittest.TestCase):
    def started(self, role, folder, *names):
        d = bench.Dataplane(os.environ["ROCELANE"], {
            "version": 1, "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
            "eal": [*EAL, "--file-prefix=%s%d" % (role, os.getpid()),
                    *["--vdev=net_memif%d,role=%s,bsize=8192,socket-abstract=no,socket=%s" % (
                        i, role, os.path.join(folder, name)) for i, name in enumerate(names)]],
            "ports": [{"name": name, "device": "net_memif%d" % i,
                       "mac": "02:00:00:%02x:00:0%d" % (len(names), i),
                       "ipv4": "10.77.%d.%d" % (i, len(names)), "prefix": 24, "mtu": 4200}
                      for i, name in enumerate(names)]})
        self.addCleanup(d.close)
        return d

    def test_events_of_one_port(self):
        """A device's descriptor is silent when the link of another device changes."""
        folder = tempfile.TemporaryDirectory(prefix="rocelane-test-ports-")
        self.addCleanup(folder.cleanup)
        here = self.started("server", folder.name, "left", "right")
        program = programs.start(here.socket_path, os.environ["VERBS_PORTS"])
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.kill)
        self.assertEqual("looks\n", program.stdout.readline())
        there = self.started("client", folder.name, "right")
        self.assertEqual("active\n", program.stdout.readline())
        there.close()
        self.assertEqual(("", 0), (program.communicate(timeout=programs.TIMEOUT)[0],
                                   program.returncode))


if __name__ == "__main__":
    unittest.main(verbosity=0)
