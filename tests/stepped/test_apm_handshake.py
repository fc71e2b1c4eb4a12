# SPDX-License-Identifier: BSD-3-Clause
"""Automatic path migration: loading a path, and how both sides get ready."""
from scapy.layers.l2 import ARP, Ether

import dut
import roce
from dut import E, QPN, RKEY, VA
from dut_apm import ALT, IP, MAC, PEER_IP, ApmCase
from dut_req import S, transport_ns
from roce import ACK, SEND_ONLY


class Handshake(ApmCase):

    def asked_everything(self, mig):
        """ACK, READ responses, ATOMIC ACK, and a request: the MigReq of each."""
        e = self.qp()["epsn"]
        got = self.put(
            self.peer.write_only(e, b"abcd", VA, RKEY, mig=mig),
            self.peer.read_req(e + 1, VA, RKEY, 2000, mig=mig),
            self.peer.fetch_add(e + 3, VA + 64, RKEY, 1, mig=mig)) + self.send()
        self.assertEqual([ACK, roce.READ_FIRST, roce.READ_LAST, roce.ATOMIC_ACK, SEND_ONLY],
                         [f.opcode for _, f in got])
        return {f.mig for _, f in got}

    def test_WIRE_18_migreq_is_one_while_migrated(self):
        """An alternate path alone changes nothing."""
        self.apm(state="MIGRATED")
        self.assertEqual({1}, self.asked_everything(mig=0))
        self.assertEqual("MIGRATED", self.mig_state())

    def test_migreq_is_zero_in_rearm_and_armed(self):
        self.apm()
        self.assertEqual({0}, self.asked_everything(mig=1))
        self.assertEqual("REARM", self.mig_state())
        self.assertEqual({0}, self.asked_everything(mig=0))
        self.assertEqual("ARMED", self.mig_state())
        self.assertEqual({0}, self.asked_everything(mig=0))
        self.assertEqual([], self.events())

    def test_only_good_packets_arm(self):
        self.apm()
        good = self.peer.send_only(E, b"x", mig=0)
        for bad in (roce.flip(good, len(good) * 8 - 1),
                    self.peer.send_only(E, b"x", mig=0, src_ip="192.0.2.9"),
                    self.peer.send_only(E, b"x", mig=0, pkey=0x8001),
                    self.peer.packet(0x20 + SEND_ONLY, E, b"x", mig=0)):
            self.assertEqual([], self.put(bad))
            self.assertEqual("REARM", self.mig_state())
        self.assertEqual([], self.put(self.peer.cnp()))     # CC-01: MigReq 0 there means nothing
        self.assertEqual("REARM", self.mig_state())
        self.assertEqual([(0, ACK, E, 0)], self.where(self.put(good)))
        self.assertEqual("ARMED", self.mig_state())

    def test_a_modify_begins_it(self):
        """MigReq changes with the next packet, also that of a template in use."""
        self.apm(state=None, alt_ah_attr=None, alt_port=None)
        self.assertEqual([(0, ACK, E, 1)],
                         self.where(self.put(self.peer.send_only(E, b"x", mig=0))))
        self.assertNotIn("alt_ah_attr", self.qp())
        self.rpc("qp_modify", qp_num=QPN, alt_ah_attr=ALT, alt_port="p1",
                 path_mig_state="REARM")
        self.assertEqual([(0, ACK, E + 1, 0)],
                         self.where(self.put(self.peer.send_only(E + 1, b"x", mig=1))))
        q = self.qp()
        self.assertEqual(("REARM", "p1", PEER_IP[1], True), tuple(
            (q["path_mig_state"], q["alt_port"], q["alt_ah_attr"]["dest_ip"],
             q["alt_path_resolved"])))

    def test_reset_forgets_it(self):
        self.apm()
        self.arm()
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        q = self.qp()
        self.assertEqual("MIGRATED", q["path_mig_state"])
        self.assertNotIn("alt_ah_attr", q)
        self.walk_up("RTS", sq_psn=S, retry_cnt=0, timeout=10)
        self.send()
        _, got = self.until(5 * transport_ns(10))
        self.assertEqual([], got)
        self.assertEqual("RETRY_EXC_ERR", self.cqes()[0]["status"])

    def test_refusals(self):
        self.apm(state=None, alt_ah_attr=None, alt_port=None)
        words = (
            ({"path_mig_state": "REARM"}, "alt_ah_attr"),
            ({"path_mig_state": "ARMED"}, "ask for REARM"),
            ({"path_mig_state": "GONE"}, "REARM"),
            ({"alt_port": "p1"}, "alt_ah_attr"),
            ({"alt_timeout": 3}, "alt_ah_attr"),
            ({"alt_ah_attr": ALT, "alt_timeout": 32}, "from 0 to 31"),
            ({"alt_ah_attr": ALT, "alt_pkey": "0x8000"}, "15 bits"),
            ({"alt_ah_attr": ALT, "alt_port": "p7"}, "p7"),
            ({"alt_ah_attr": {"hop_limit": 1}}, "dest_ip"),
        )
        for attr, word in words:
            with self.subTest(attr=attr):
                with self.assertRaises(dut.RpcError) as caught:
                    self.rpc("qp_modify", qp_num=QPN, **attr)
                self.assertIn(word, str(caught.exception))
                q = self.qp()
                self.assertEqual("MIGRATED", q["path_mig_state"])
                self.assertNotIn("alt_ah_attr", q)
        self.apm()
        for state, word in (("MIGRATED", "only ARMED"), ("ARMED", "by itself")):
            with self.assertRaises(dut.RpcError) as caught:
                self.rpc("qp_modify", qp_num=QPN, path_mig_state=state)
            self.assertEqual(-32022, caught.exception.code)
            self.assertIn(word, str(caught.exception))
        self.arm()
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc("qp_modify", qp_num=QPN, path_mig_state="REARM")
        self.assertIn("ARMED", str(caught.exception))
        self.assertEqual("ARMED", self.mig_state())

    def test_the_path_mtu_holds_for_both_ports(self):
        with self.assertRaises(dut.RpcError) as caught:
            self.apm(path_mtu=4096)
        self.assertIn("p1", str(caught.exception))

    def test_a_path_that_is_refused_leaves_the_one_before(self):
        self.apm(alt_ah_attr={"dest_ip": "198.51.100.7"})
        with self.assertRaises(dut.RpcError):
            self.rpc("qp_modify", qp_num=QPN, path_mig_state="ARMED",
                     alt_ah_attr={"dest_ip": "198.51.100.8"}, alt_port="p1")
        self.assertEqual("198.51.100.7", self.qp()["alt_ah_attr"]["dest_ip"])
        is_at = Ether(src="02:00:00:00:00:77", dst=MAC[1]) / ARP(
            op=2, hwsrc="02:00:00:00:00:77", psrc="198.51.100.7", hwdst=MAC[1], pdst=IP[1])
        self.dut.rx(bytes(is_at), 1)
        self.dut.run()
        self.assertEqual("02:00:00:00:00:77", self.qp()["alt_ah_attr"]["dest_mac"])


if __name__ == "__main__":
    dut.main()
