# SPDX-License-Identifier: BSD-3-Clause
"""Two dataplanes over memif: the link comes after both run, goes with one, and comes again.

One, and an end that sends what no dataplane would. What DPDK's driver takes from such an end as it
is, offsets and regions, is not tried: SECURITY.md.
"""
import os
import random
import tempfile
import time
import unittest

import bench
import memif_peer

EAL = ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "128", "--log-level=error"]
WAIT_S = 100
FRAMES, JUMPS = 20000, 1000
LENGTHS = (0, 1, 13, 14, 20, 41, 42, 60, 64, 100, 1000, memif_peer.BUFFER)
PIECES = (0, 0, 0, 1, 4, 6)     # before the last one
FLAGS = (0, 0, 0, 0xfffe)
TURN_US = 50000     # with a sanitizer


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

    def frame(self, rng):
        """Of any length; as a rule its headers are of a UDP datagram for us."""
        data = bytearray(rng.randbytes(rng.choice(LENGTHS)))
        if rng.random() < 0.7 and len(data) >= 42:
            data[0:6] = bytes.fromhex("020000000001")
            data[12:15] = b"\x08\0\x45"
            data[23] = 17
            data[26:34] = bytes([10, 77, 0, 2, 10, 77, 0, 1])
            data[36:38] = b"\x12\xb7"
        return bytes(data)

    def test_any_frames_in_any_pieces(self):
        """Empty ones, chains that never end or are longer than a frame, a head that jumps."""
        d, rng = self.started("server", 1), random.Random(1)
        peer = memif_peer.Peer(self.link, WAIT_S)
        self.addCleanup(peer.close)
        d.rpc("worker_load", measure=True, reset=True)
        before, end = d.rpc("stats"), time.monotonic() + WAIT_S
        while peer.at < FRAMES:
            self.assertIsNone(d.process.poll(), d.text())
            self.assertLess(time.monotonic(), end, d.text())
            while peer.room() > len(PIECES):
                for _ in range(rng.choice(PIECES)):
                    peer.put(self.frame(rng), memif_peer.NEXT)
                peer.put(self.frame(rng), rng.choice(FLAGS))
            peer.head()
            peer.take_all()
            time.sleep(0.0001)  # it may have our CPU
        for _ in range(JUMPS):
            peer.head(rng.getrandbits(16))
            peer.take_all()
        stats = d.rpc("stats")
        for what in ("rx_packets", "rx_not_roce", "rx_oversize", "rx_segments"):
            self.assertGreater(stats[what], before[what], what)
        longest = d.rpc("worker_load")[0]
        self.assertLess(longest["turn_max_cpu_us"], TURN_US, longest)
        self.assertIsNone(d.process.poll(), d.text())


if __name__ == "__main__":
    unittest.main(verbosity=0)
