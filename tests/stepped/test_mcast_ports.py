# SPDX-License-Identifier: BSD-3-Clause
"""UD-31: members of one group on two ports, and what is told of them there."""
import dut
from dut import MS, QPN
from dut_apm import PORTS
from test_mcast import GroupCase

SECOND = 1000 * MS


class TwoPorts(GroupCase):

    CONFIG = {"ports": PORTS}
    FIXED = {"ip": "4", "vlan": "none"}
    IS, LEAVES, JOINS = 2, 3, 4     # RFC 3376, 4.2.12

    def told(self, ns=0):
        """[(port, record type)] of the IGMP reports that leave in this time."""
        out = []
        for _ in range(4):
            out += [(port, raw[46]) for port, raw in self.dut.run(ns // 4) if raw[23] == 2]
        return sorted(out)

    @staticmethod
    def question():
        """A general query of IGMPv3, which gives 1 s."""
        ip = bytearray.fromhex("46c00024000000000102000000000000e000000194040000")
        ip[12:16] = bytes([10, 0, 0, 9])
        igmp = bytearray.fromhex("110a00000000000000000000")
        for part, at in ((ip, 10), (igmp, 2)):
            words = sum(int.from_bytes(part[i:i + 2], "big") for i in range(0, len(part), 2))
            while words > 0xFFFF:
                words = (words & 0xFFFF) + (words >> 16)
            part[at:at + 2] = (words ^ 0xFFFF).to_bytes(2, "big")
        return bytes.fromhex("01005e000001" "020000000009" "0800") + bytes(ip) + bytes(igmp)

    def test_UD_31_each_port_is_a_member_of_its_own(self):
        """RFC 3376: memberships are of an interface: so are questions, answers and changes."""
        self.ud()
        self.make("qp_create", **self.ud_params(qp_num=QPN + 1, port="p1"))
        self.attach()
        self.attach(QPN + 1)
        self.assertEqual([(0, self.JOINS)] * 2 + [(1, self.JOINS)] * 2, self.told(4 * SECOND))
        self.dut.rx(self.question(), 1)
        self.assertEqual([(1, self.IS)], self.told(4 * SECOND))
        self.detach(QPN + 1)
        self.assertEqual([(1, self.LEAVES)] * 2, self.told(4 * SECOND))
        self.dut.rx(self.question(), 1)
        self.assertEqual([], self.told(4 * SECOND))
        self.dut.rx(self.question(), 0)
        self.assertEqual([(0, self.IS)], self.told(4 * SECOND))


if __name__ == "__main__":
    dut.main()
