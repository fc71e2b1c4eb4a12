# SPDX-License-Identifier: BSD-3-Clause
"""A virtio front end at a vhost port whose descriptors, chains and heads are anything.

DPDK's library checks what they say: whatever it is costs the front end its own frames, and the next
one at the same port has its own. What it does not stand is not tried: memory that is truncated, and
a table of memory that it refuses while frames come (SECURITY.md).
"""
import os
import random
import struct
import tempfile
import time
import unittest

import bench
import vhost_peer

EAL = ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "128", "--log-level=error"]
WAIT_S = 100
ROUNDS = 200
TURN_US = 50000     # with a sanitizer
LENGTHS = (0, 1, 11, 12, 13, 26, 60, 100, 1514, 4000)
ADDRESSES = (0, vhost_peer.SIZE - 1, vhost_peer.SIZE, vhost_peer.ADDRESS, 1 << 63, (1 << 64) - 8)
TOO_LONG = (65535, 65536, 1 << 31, (1 << 32) - 1)
GOOD = bytes.fromhex("0200000000010200000000020800") + b"\x45" + bytes(60)
KINDS = ("address", "length", "next", "indirect", "writable", "slot", "head", "ring")


class Vhost(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="vhost")
        self.addCleanup(folder.cleanup)
        self.link = os.path.join(folder.name, "link")
        self.d = bench.Dataplane(os.environ["ROCELANE"], {
            "version": 1, "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
            "eal": [*EAL, "--lcores=0@0,1@0", "--file-prefix=vhost%d" % os.getpid(),
                    "--vdev=net_vhost0,iface=%s" % self.link],
            "ports": [{"name": "p", "device": "net_vhost0", "mac": "02:00:00:00:00:01",
                       "ipv4": "10.77.0.1", "prefix": 24, "mtu": 1500}]})
        self.addCleanup(self.d.close)

    def until(self, what, said):
        end = time.monotonic() + WAIT_S
        while not what():
            self.assertIsNone(self.d.process.poll(), self.d.text())
            self.assertLess(time.monotonic(), end, "%s\n%s" % (said, self.d.text()))
            time.sleep(0.02)    # between two looks

    def received(self):
        return self.d.rpc("stats")["rx_packets"]

    def good(self):
        """The port works: a front end comes, and its frame. @return the front end."""
        self.until(lambda: self.d.rpc("port_list")[0]["state"] == "DOWN", "the last one is there")
        peer = vhost_peer.Peer(self.link, WAIT_S)
        self.until(lambda: self.d.rpc("port_list")[0]["state"] == "UP", "no link")
        before = self.received()
        peer.frame(GOOD)
        self.until(lambda: self.received() == before + 1, "no frame")
        return peer

    @staticmethod
    def describe(peer, rng, kind):
        """All descriptors of both rings; a third of them are of that kind."""
        for slot in range(vhost_peer.SLOTS):
            at = rng.randrange(vhost_peer.BUFFERS, vhost_peer.SIZE - 5000)
            length, flags = rng.choice(LENGTHS), rng.choice((0, 0, vhost_peer.NEXT))
            following = (slot + 1) % vhost_peer.SLOTS
            if rng.random() < 0.3:
                if kind == "address":
                    at = rng.choice((*ADDRESSES, rng.getrandbits(64)))
                elif kind == "length":
                    length = rng.choice((*TOO_LONG, rng.getrandbits(32)))
                elif kind == "next":
                    flags = vhost_peer.NEXT
                    following = rng.choice((slot, rng.randrange(vhost_peer.SLOTS), 65535))
                elif kind == "indirect":
                    flags |= vhost_peer.INDIRECT
                    length = rng.choice((0, 15, 16, 17, 160, 4096, (1 << 32) - 16))
                elif kind == "writable":
                    flags |= vhost_peer.WRITE
            peer.descriptor(vhost_peer.FROM_IT, slot, at, length, flags, following)
            peer.descriptor(vhost_peer.TO_IT, slot, at, length, flags | vhost_peer.WRITE, following)

    @staticmethod
    def attack(peer, rng, kind, n):
        for _ in range(rng.randrange(1, 100)):
            peer.put(rng.getrandbits(16) if kind == "slot" else rng.randrange(vhost_peer.SLOTS))
        peer.head()
        peer.head(vhost_peer.TO_IT, rng.getrandbits(16) if kind == "head" else n)
        if kind == "head" and rng.random() < 0.3:
            peer.head(value=rng.getrandbits(16))
        if n % 50 == 49 and kind == "ring":
            places = (vhost_peer.ADDRESS, vhost_peer.ADDRESS + vhost_peer.SIZE - 8, 0,
                      (1 << 64) - 16)
            peer.tell(vhost_peer.SET_VRING_ADDR, struct.pack(
                "<II4Q", n // 50 % 2, 0, *(rng.choice(places) for _ in range(3)), 0))

    def test_anything_from_a_front_end(self):
        rng = random.Random(1)
        self.d.rpc("worker_load", measure=True, reset=True)
        for kind in KINDS:
            with self.subTest(kind=kind):
                peer = self.good()
                try:
                    for n in range(ROUNDS):
                        self.describe(peer, rng, kind)
                        self.attack(peer, rng, kind, n)
                        self.assertIsNone(self.d.process.poll(), self.d.text())
                        time.sleep(0.0001)  # it may have our CPU
                except (BrokenPipeError, ConnectionResetError):
                    pass                    # it was refused, and is off
                finally:
                    peer.close()
        self.good().close()
        longest = self.d.rpc("worker_load")[0]
        self.assertLess(longest["turn_max_cpu_us"], TURN_US, longest)
        self.assertIsNone(self.d.process.poll(), self.d.text())


if __name__ == "__main__":
    unittest.main(verbosity=0)
