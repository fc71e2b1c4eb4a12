#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""ibv_devices and ibv_devinfo: the ports of the dataplane, their GIDs and GUIDs."""
import re
import sys
import unittest

import programs

SOCKET = sys.argv.pop(1)
# EUI-64 of the ports' MACs: the bit for local addresses is flipped, ff:fe is in the middle.
GUIDS = {"left": "000000fffe000001", "right": "000000fffe000002"}


class Devices(unittest.TestCase):
    def test_devices(self):
        code, out = programs.run(SOCKET, "ibv_devices")
        self.assertEqual(0, code, out)
        self.assertEqual(GUIDS, dict(re.findall(r"^\s+(\w+)\s+([0-9a-f]{16})$", out, re.M)))

    def test_devinfo(self):
        code, out = programs.run(SOCKET, "ibv_devinfo", "-v")
        self.assertEqual(0, code, out)
        ports = re.split(r"^hca_id:\s*", out, flags=re.M)[1:]
        self.assertEqual(["left", "right"], [p.split()[0] for p in ports])
        for text, ip4, ip6 in zip(ports, ("10.77.0.1", "10.77.0.2"), ("fd77::1", "fd77::2")):
            for line in (r"transport:\s+InfiniBand \(0\)", r"phys_port_cnt:\s+1",
                         r"state:\s+PORT_ACTIVE \(4\)", r"active_mtu:\s+4096 \(5\)",
                         r"link_layer:\s+Ethernet", r"max_msg_sz:\s+0x80000000",
                         r"pkey_tbl_len:\s+1", r"gid_tbl_len:\s+2", r"phys_state:\s+LINK_UP \(5\)",
                         r"atomic_cap:\s+ATOMIC_HCA \(1\)", r"max_qp_rd_atom:\s+16",
                         r"MEM_MGT_EXTENSIONS",
                         rf"GID\[  0\]:\s+::ffff:{ip4}, RoCE v2",
                         rf"GID\[  1\]:\s+{ip6}, RoCE v2"):
                self.assertRegex(text, line)

    def test_one_device(self):
        code, out = programs.run(SOCKET, "ibv_devinfo", "-d", "right", "-i", "1")
        self.assertEqual(0, code, out)
        self.assertNotIn("left", out)
        code, out = programs.run(SOCKET, "ibv_devinfo", "-d", "right", "-i", "2")
        self.assertNotEqual(0, code, out)

    def test_nobody_there(self):
        code, out = programs.run(SOCKET + ".none", "ibv_devinfo")
        self.assertEqual(255, code, out)
        self.assertIn("rocelane: no devices:", out)
        self.assertIn("No IB devices found", out)


if __name__ == "__main__":
    unittest.main()
