# SPDX-License-Identifier: BSD-3-Clause
"""Two dataplanes over memif: the link comes after both run, goes with one, and comes again."""
import os
import tempfile
import time
import unittest

import bench

EAL = ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "128", "--log-level=error"]
WAIT_S = 100


class Memif(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="memif")
        self.addCleanup(folder.cleanup)
        self.link = os.path.join(folder.name, "link")

    def started(self, role, number):
        d = bench.Dataplane(os.environ["ROCELANE"], {
            "version": 1, "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
            "eal": [*EAL, "--lcores=0@0,1@0", "--file-prefix=%s%d" % (role, os.getpid()),
                    "--vdev=net_memif0,role=%s,bsize=8192,socket-abstract=no,socket=%s" % (
                        role, self.link)],
            "ports": [{"name": "p", "device": "net_memif0", "mac": "02:00:00:00:00:0%d" % number,
                       "ipv4": "10.77.0.%d" % number, "prefix": 24, "mtu": 4200}]})
        self.addCleanup(d.close)
        return d

    def until(self, state, *dataplanes):
        end = time.monotonic() + WAIT_S
        for d in dataplanes:
            while d.rpc("port_list")[0]["state"] != state:
                self.assertIsNone(d.process.poll(), d.text())
                self.assertLess(time.monotonic(), end, "port is not %s\n%s" % (state, d.text()))
                time.sleep(0.02)    # between two looks

    def test_link_comes_goes_and_comes_again(self):
        server = self.started("server", 1)
        self.until("DOWN", server)
        for _ in range(2):
            client = self.started("client", 2)
            self.until("UP", server, client)
            client.close()
            self.until("DOWN", server)
        self.assertIsNone(server.process.poll(), server.text())


if __name__ == "__main__":
    unittest.main(verbosity=0)
