#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Ceph's messenger over RDMA (async+rdma): Debian's daemons as they are, unpacked for it."""
import json
import os
import subprocess
import tempfile
import unittest

from programs import free_port, unpack

RUN = os.environ["ROCELANE_RUN"]
HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = ("ceph-mon", "ceph-osd", "ceph-base", "ceph-common", "librados2", "librbd1",
            "libcephfs2", "libradosstriper1", "librabbitmq4", "libboost-context1.74.0",
            "libboost-program-options1.74.0", "libboost-thread1.74.0",
            "libboost-iostreams1.74.0", "libgoogle-perftools4", "libtcmalloc-minimal4",
            "libunwind8", "libleveldb1d", "libsnappy1v5", "liboath0", "liblua5.3-0", "libfuse2",
            "python3-rados")
# Ceph registers all that it may ever receive into: here 32 MiB, not 512, of each process.
CONF = """[global]
fsid = @CLUSTER@
mon host = v2:{mon}
mon initial members = a
ms type = async+rdma
ms async rdma device name = rocelane0
ms async rdma receive queue len = 256
ms async rdma receive buffers = 1024
ms async rdma send buffers = 256
ms bind msgr1 = false
auth cluster required = none
auth service required = none
auth client required = none
run dir = @DIR@
admin socket = @DIR@/$name.$pid.asok
log file = @DIR@/$name.log
erasure code dir = @LIB@/ceph/erasure-code
osd class dir = @LIB@/rados-classes
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg autoscale mode = off
mon allow pool size one = true
{how}
[mon.a]
mon data = @DIR@/mon/ceph-a
public addr = v2:{mon}
[osd]
osd objectstore = memstore
osd data = @DIR@/osd
public addr = {host}
cluster addr = {host}
"""


class Ceph(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.tmp = tempfile.TemporaryDirectory(prefix="rl")
        cls.addClassCleanup(cls.tmp.cleanup)
        cls.root = unpack(cls.tmp.name, *PACKAGES)

    def good(self, host, how, *options):
        """A monitor, an OSD and a client: what was written to objects is read back."""
        mon = f"{host}:{free_port()}"
        with tempfile.TemporaryDirectory(prefix="rl") as folder:
            done = subprocess.run(
                [RUN, "--private", *options, "sh", os.path.join(HERE, "ceph_one.sh"), self.root,
                 folder, os.path.join(HERE, "ceph_client.py")], check=False, text=True,
                timeout=300, input=CONF.format(mon=mon, host=host, how=how), env=dict(
                    os.environ, MON=mon), stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertIn("all objects are good", done.stdout)

    def test_sockets(self):
        """Peers tell each other of their queue pairs by TCP, on a wire that loses."""
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump({"rules": [{"action": "drop", "probability": 0.01}]}, f)
            f.flush()
            self.good("127.0.0.1", "", "--faults", f.name)

    def test_connection_manager(self):
        """Made for iWARP: librdmacm connects, and its addresses are the port's."""
        self.good("10.77.0.1", "ms async rdma cm = true\nms async rdma type = iwarp")


if __name__ == "__main__":
    unittest.main()
