# SPDX-License-Identifier: BSD-3-Clause
"""Automatic path migration: a second port and a second address of the same peer."""
from scapy.layers.l2 import ARP, Ether

import dut
import roce
from dut import E, MS, QPN, RKEY, VA, AtomicAck, ReadResponse
from dut_apm import IP, MAC, PEER_IP, PEER_MAC, ApmCase
from dut_req import S, in_time, transport_ns
from roce import ACK, NAK_SEQ, SEND_ONLY, pattern


class Requester(ApmCase):

    def exhaust(self, psn, copies=1):
        """The copies that leave on the first path, and how long the last one waits."""
        for _ in range(copies):
            _, got = self.until(3 * transport_ns(10))
            self.assertEqual([(0, SEND_ONLY, psn, 0)], self.where(got))

    def test_REQ_RETRY_09_exhaustion_migrates(self):
        self.apm(alt_timeout=12)
        psn = self.arm()
        self.assertEqual([(0, SEND_ONLY, psn, 0)], self.where(self.send()))
        self.exhaust(psn)
        took, got = self.until(3 * transport_ns(10))
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(got))
        self.assertGreaterEqual(took, transport_ns(10))
        self.migrated("SQ", "REQ-RETRY-09")
        q = self.qp()
        self.assertEqual((1, 12, 1), (q["retry_cnt_left"], q["timeout"], q["migrations"]))
        # A counter that is full again, and the timeout of this path.
        took, got = self.until(3 * transport_ns(12))
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(got))
        self.assertTrue(in_time(took, transport_ns(12)), took)
        self.assertEqual([], self.put(self.peers[1].acknowledge(psn, msn=2), port=1))
        self.succeeded([101])
        self.assertEqual((3, 0, 1, 0), tuple(self.delta(n) for n in (
            "local_ack_timeout_err", "retry_exceeded_err", "path_migrations",
            "path_migration_errors")))
        self.assertEqual([], self.events())

    def test_REQ_RETRY_09_second_exhaustion_is_an_error(self):
        self.apm()
        psn = self.arm()
        self.send(2)
        self.until(3 * transport_ns(10))
        for _ in range(2):
            _, got = self.until(3 * transport_ns(10))
            self.assertEqual([(1, SEND_ONLY, psn, 1), (1, SEND_ONLY, psn + 1, 1)],
                             self.where(got))
        self.assertEqual([], self.until(5 * transport_ns(10))[1])
        self.assertEqual(["PATH_MIG"], [e["event_type"] for e in self.events()])
        self.ended("RETRY_EXC_ERR", 101, flushed=[102], fatal=6)
        self.assertEqual((1, 1), (self.delta("retry_exceeded_err"),
                                  self.delta("path_migrations")))

    def test_REQ_RETRY_09_sequence_and_implied_naks(self):
        self.apm(retry_cnt=0)
        psn = self.arm()
        self.send()
        got = self.put(self.peer.acknowledge(psn, NAK_SEQ, mig=0))
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(got))
        self.migrated("SQ", "REQ-RETRY-09")
        self.apm(retry_cnt=0)
        psn = self.arm()
        self.post_raw(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.dut.run()
        got = self.put(self.peer.acknowledge(psn + 1, mig=0))
        self.assertEqual([(1, roce.READ_REQ, psn, 1), (1, SEND_ONLY, psn + 1, 1)],
                         self.where(got))
        self.migrated("SQ", "REQ-RETRY-09")

    def test_REQ_CLS_B_01_nothing_migrates_for_what_is_at_fault(self):
        """A sequence NAK for a WRITE whose region is gone: it is reported, and stays here."""
        self.apm(retry_cnt=0, knobs={"req.max_outstanding_psn": 3})
        psn = self.arm()
        self.post_raw(self.wr("SEND", 64), self.wr("SEND", 64), self.wr("RDMA_WRITE", 4000))
        self.assertEqual([SEND_ONLY, SEND_ONLY, roce.WRITE_FIRST],
                         [f.opcode for _, f in self.take(self.dut.run())])
        self.rpc("mr_deregister", name="lmr")
        self.made.remove(("mr_deregister", {"name": "lmr"}))
        self.assertEqual([], self.put(self.peer.acknowledge(psn, msn=2, mig=0)))
        self.assertEqual([], self.put(self.peer.acknowledge(psn + 2, NAK_SEQ, msn=3, mig=0)))
        self.assertEqual([(101, "SUCCESS"), (102, "SUCCESS"), (103, "LOC_PROT_ERR")],
                         self.statuses())
        self.assertEqual(("ERR", 0, []),
                         (self.state(), self.qp()["migrations"], self.events()))

    def test_rnr_exhaustion_is_no_reason(self):
        self.apm(rnr_retry=0)
        psn = self.arm()
        self.send()
        self.assertEqual([], self.put(self.peer.acknowledge(psn, roce.SYN_RNR + 1, mig=0)))
        self.ended("RNR_RETRY_EXC_ERR", 101)
        self.assertEqual(0, self.delta("path_migrations"))

    def test_REQ_RETRY_07_a_peer_that_was_never_ready(self):
        """It never clears MigReq: REARM stays, and exhaustion is an error at once."""
        self.apm()
        self.send()
        self.assertEqual([], self.put(self.peer.acknowledge(S, msn=1, mig=1)))
        self.succeeded([100])
        self.assertEqual("REARM", self.mig_state())
        self.send()
        self.exhaust(S + 1)
        self.assertEqual([], self.until(5 * transport_ns(10))[1])
        self.ended("RETRY_EXC_ERR", 101, fatal=6)
        self.on_first()

    def test_without_the_neighbours_mac_there_is_nowhere_to_go(self):
        self.apm(alt_ah_attr={"dest_ip": "198.51.100.9"}, alt_port="p1", retry_cnt=0)
        psn = S + 1
        self.post_raw(self.wr("SEND", 64))
        self.dut.run()
        self.put(self.peer.acknowledge(S, msn=1, mig=0))
        self.assertEqual(("ARMED", False), tuple(
            self.qp()[k] for k in ("path_mig_state", "alt_path_resolved")))
        self.post_raw(self.wr("SEND", 64))
        self.dut.run()
        self.assertEqual([], self.put(self.peer.acknowledge(psn, NAK_SEQ, mig=0)))
        self.assertEqual("ERR", self.state())
        self.assertEqual([(100, "SUCCESS"), (101, "RETRY_EXC_ERR")], self.statuses())

    def test_a_large_transfer_goes_on(self):
        """The window's packets leave again, from the oldest one, all on the new path."""
        self.apm(retry_cnt=0, cap={"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4,
                                   "max_recv_sge": 4})
        psn = self.arm()
        self.post_raw(self.wr("RDMA_WRITE", 20000))
        first = self.take(self.dut.run())
        self.assertEqual([(0, 0, psn + i) for i in range(20)],
                         [(port, f.mig, f.psn) for port, f in first])
        self.put(self.peer.acknowledge(psn + 7, msn=1, mig=0))
        _, second = self.until(3 * transport_ns(10))
        self.assertEqual([(1, 1, psn + i) for i in range(8, 20)],
                         [(port, f.mig, f.psn) for port, f in second])
        self.assertEqual([f.payload for _, f in first[8:]], [f.payload for _, f in second])
        self.put(self.peers[1].acknowledge(psn + 19, msn=2), port=1)
        self.succeeded([101])


class Follower(ApmCase):
    """The peer migrates first."""

    def test_AE_12_a_request_on_the_alternate_path(self):
        """Accepted and answered there; what still comes on the old path is not."""
        self.apm()
        self.arm()
        got = self.put(self.peers[1].send_only(E, b"moved"), port=1)
        self.assertEqual([(1, ACK, E, 1)], self.where(got))
        self.migrated("RQ", "AE-12")
        self.assertEqual([(0, "SUCCESS")], self.statuses("rcq"))
        self.assertEqual([], self.put(self.peer.send_only(E + 1, b"late", mig=0)))
        self.assertEqual([], self.put(self.peer.send_only(E + 1, b"late", mig=1)))
        self.assertEqual(2, self.delta("rx_syndrome_27"))
        got = self.put(self.peers[1].send_only(E + 1, b"more"), port=1) + self.send()
        self.assertEqual([(1, ACK, E + 1, 1), (1, SEND_ONLY, S + 1, 1)], self.where(got))
        self.assertEqual((1, 0), (self.delta("path_migrations"),
                                  self.delta("path_migration_errors")))
        self.assertEqual([], self.events())

    def test_AE_12_a_response_on_the_alternate_path(self):
        self.apm()
        psn = self.arm()
        self.send(2)
        self.assertEqual([], self.put(self.peers[1].acknowledge(psn, msn=2), port=1))
        self.succeeded([101])
        self.migrated("RQ")
        # What was in flight goes out again there, when its time has come.
        _, got = self.until(3 * transport_ns(10))
        self.assertEqual([(1, SEND_ONLY, psn + 1, 1)], self.where(got))

    def test_AE_12_the_alternate_path_has_another_timeout(self):
        """It holds for what is in flight, too: only the first path had no timer, or had one."""
        for timeouts in ((0, 12), (12, 0)):
            self.apm(timeout=timeouts[0], alt_timeout=timeouts[1])
            psn = self.arm()
            self.send()
            self.put(self.peers[1].send_only(E, b"moved"), port=1)
            self.migrated("RQ", "AE-12")
            _, got = self.until(3 * transport_ns(12))
            self.assertEqual([(1, SEND_ONLY, psn, 1)] if timeouts[1] else [], self.where(got))

    def test_AE_12_a_response_on_a_path_whose_mac_is_unknown(self):
        """Who answers what is outstanding is the peer, and is followed; who answers nothing of it
        is not."""
        self.apm(alt_ah_attr={"dest_ip": "198.51.100.9"})
        self.post_raw(self.wr("SEND", 64))
        self.dut.run()
        self.put(self.peer.acknowledge(S, msn=1, mig=0))
        self.post_raw(*[self.wr("SEND", 64) for _ in range(3)])
        self.dut.run()
        self.assertEqual(("ARMED", False), tuple(
            self.qp()[k] for k in ("path_mig_state", "alt_path_resolved")))
        self.peers[1] = self.peers[1].with_(src_ip="198.51.100.9", src_mac="02:00:00:00:00:99")
        forged = self.peers[1].with_(src_mac="02:00:00:00:00:66")
        for psn in (S, S - 1, S + 4, S + 5):     # done before, not sent yet
            self.assertEqual([], self.put(forged.acknowledge(psn, msn=1), port=1))
        self.assertEqual([], self.put(self.peers[1].acknowledge(S + 1, msn=2), port=1))
        self.assertEqual([(100, "SUCCESS"), (101, "SUCCESS")], self.statuses())
        _, got = self.until(3 * transport_ns(10))
        self.assertEqual([(1, SEND_ONLY, S + 2, 1), (1, SEND_ONLY, S + 3, 1)], self.where(got))
        self.assertEqual("MIGRATED", self.mig_state())

    def test_answers_that_were_owed_leave_on_the_new_path(self):
        self.apm()
        self.arm()
        self.set_mem(0, pattern(3, 5000))
        for frame, port in ((self.peer.read_req(E, VA, RKEY, 5000, mig=0), 0),
                            (self.peers[1].fetch_add(E + 5, VA + 8192, RKEY, 1), 1)):
            self.dut.rx(frame, port)
        got = self.take(self.dut.run())
        self.assertEqual({1}, {f.mig for port, f in got if port == 1})
        self.expect([f for _, f in got], ReadResponse(E, pattern(3, 5000)), AtomicAck(E + 5, 0))
        self.migrated("RQ")

    def test_AE_12_requests_that_are_refused(self):
        """Dropped for what is wrong, PATH_MIG_ERR once, and still armed."""
        self.apm(alt_pkey="0x8011", pkey="0xffff")
        self.arm()
        one, two = self.peers[0], self.peers[1].with_(pkey=0x8011)
        bad = (
            (one.send_only(E, b"x"), 0, "rx_syndrome_27"),
            (two.send_only(E, b"x", src_ip="198.51.100.3"), 1, "rx_syndrome_27"),
            (two.send_only(E, b"x", dst_ip=IP[0], dst_mac=MAC[0]), 0, "rx_wrong_port"),
            (two.send_only(E, b"x", pkey=0xFFFF), 1, "rx_pkey_violation"),
            (two.with_(vlan=5).send_only(E, b"x"), 1, "rx_vlan_mismatch"),
        )
        for n, (frame, port, counter) in enumerate(bad, 1):
            before = self.delta(counter)
            self.assertEqual([], self.put(frame, port=port))
            self.assertEqual((before + 1, n), (self.delta(counter),
                                               self.delta("path_migration_errors")), counter)
            self.assertEqual("ARMED", self.mig_state())
        got = self.events()
        self.assertEqual([("PATH_MIG_ERR", QPN)], [(e["event_type"], e["qp_num"]) for e in got])
        self.assertIn("AE-12", got[0]["detail"])
        self.on_first()
        # Without MigReq the alternate path is nobody's.
        self.assertEqual([], self.put(two.send_only(E, b"x", mig=0), port=1))
        self.assertEqual(5, self.delta("path_migration_errors"))
        # A packet that is damaged asks for nothing.
        good = two.send_only(E, b"x")
        self.assertEqual([], self.put(roce.flip(good, len(good) * 8 - 1), port=1))
        self.assertEqual(("ARMED", 5), (self.mig_state(), self.delta("path_migration_errors")))
        self.peers[1] = two
        self.assertEqual([(1, ACK, E, 1)], self.where(self.put(good, port=1)))
        self.assertEqual("0x8011", self.qp()["pkey"])

    def test_not_armed_is_not_moved(self):
        for state in ("MIGRATED", "REARM"):
            self.apm(state=state)
            self.assertEqual([], self.put(self.peers[1].send_only(E, b"x"), port=1))
            self.assertEqual((state, []), (self.mig_state(), self.events()))
            self.assertEqual(0, self.delta("path_migration_errors"))
            self.on_first()

    def test_in_a_burst(self):
        """Old path, new path, old path again within one burst of each port: nothing twice."""
        self.apm()
        self.arm()
        self.dut.rx(self.peer.write_only(E, b"1", VA, RKEY, mig=0), 0)
        self.dut.rx(self.peer.write_only(E + 1, b"2", VA + 1, RKEY, mig=0), 0)
        self.dut.rx(self.peers[1].write_only(E + 2, b"3", VA + 2, RKEY), 1)
        got = self.take(self.dut.run())
        self.assertEqual(E + 2, got[-1][1].psn)
        self.assertEqual((b"123", E + 3), (self.mem(0, 3), self.qp()["epsn"]))
        self.migrated("RQ")


class Ordered(ApmCase):

    def test_AE_12_software_migrates(self):
        self.apm()
        psn = self.arm()
        reply = self.rpc("qp_modify", qp_num=QPN, path_mig_state="MIGRATED")
        self.assertEqual(("p1", "MIGRATED"), (reply["port"], reply["path_mig_state"]))
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(self.send()))
        self.migrated("SQ", "AE-12", "qp_modify")
        self.assertEqual([], self.put(self.peers[1].acknowledge(psn, msn=2), port=1))
        self.succeeded([101])
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="MIGRATED")     # no change
        self.assertEqual([], self.events())
        self.assertEqual(1, self.delta("path_migrations"))

    def test_and_back(self):
        """A path loaded anew, armed again, used again."""
        self.apm()
        psn = self.arm()
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="MIGRATED")
        self.migrated("SQ")
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="REARM", alt_port="p0",
                 alt_ah_attr={"dest_ip": PEER_IP[0], "dest_mac": PEER_MAC[0], "hop_limit": 64})
        self.assertEqual([(1, SEND_ONLY, psn, 0)], self.where(self.send()))
        self.put(self.peers[1].acknowledge(psn, msn=2, mig=0), port=1)
        self.assertEqual("ARMED", self.mig_state())
        self.assertEqual([(0, ACK, E, 1)], self.where(self.put(self.peer.send_only(E, b"back"))))
        self.on_first()
        self.assertEqual(["PATH_MIG"], [e["event_type"] for e in self.events()])
        self.assertEqual(2, self.qp()["migrations"])

    def test_in_sqd(self):
        self.apm()
        psn = self.arm()
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD")
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="MIGRATED")
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(self.send()))
        self.migrated("SQ")


class Ways(ApmCase):
    """Other kinds of second path."""

    def ask(self, got, ip):
        """One ARP request for that address, on the second port."""
        self.assertEqual([1], [port for port, _ in got])
        arp = Ether(got[0][1])[ARP]
        self.assertEqual((1, ip, IP[1]), (arp.op, arp.pdst, arp.psrc))

    def tell(self, ip, mac):
        self.dut.rx(bytes(Ether(src=mac, dst=MAC[1]) / ARP(op=2, hwsrc=mac, psrc=ip,
                                                           hwdst=MAC[1], pdst=IP[1])), 1)
        return self.dut.run()

    def test_the_neighbour_is_asked_for_in_time(self):
        """When the path is loaded."""
        self.apm(state=None, alt_ah_attr=None, alt_port=None, retry_cnt=0)
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="REARM", alt_port="p1",
                 alt_ah_attr={"dest_ip": "198.51.100.5"})
        self.ask(self.dut.run(), "198.51.100.5")
        self.assertFalse(self.qp()["alt_path_resolved"])
        self.assertEqual([], self.tell("198.51.100.5", "02:00:00:00:00:55"))
        q = self.qp()
        self.assertEqual((True, "02:00:00:00:00:55"),
                         (q["alt_path_resolved"], q["alt_ah_attr"]["dest_mac"]))
        self.assertEqual(PEER_MAC[0], q["ah_attr"]["dest_mac"])
        self.peers[1] = self.peers[1].with_(src_ip="198.51.100.5", src_mac="02:00:00:00:00:55")
        psn = self.arm()
        self.send()
        got = self.put(self.peer.acknowledge(psn, NAK_SEQ, mig=0))
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(got))

    def test_a_new_mac_after_the_migration(self):
        self.apm(alt_ah_attr={"dest_ip": "198.51.100.6"}, alt_port="p1")
        self.tell("198.51.100.6", "02:00:00:00:00:61")
        self.peers[1] = self.peers[1].with_(src_ip="198.51.100.6", src_mac="02:00:00:00:00:61")
        psn = self.arm()
        self.rpc("qp_modify", qp_num=QPN, path_mig_state="MIGRATED")
        self.tell("198.51.100.6", "02:00:00:00:00:62")
        self.peers[1] = self.peers[1].with_(src_mac="02:00:00:00:00:62")
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(self.send()))
        self.assertEqual("02:00:00:00:00:62", self.qp()["ah_attr"]["dest_mac"])

    def test_a_new_mac_that_the_control_lcore_hears_of_first(self):
        """The worker has migrated, and the message with the MAC names the path, not its place."""
        self.apm(alt_ah_attr={"dest_ip": "198.51.100.6"}, alt_port="p1")
        self.tell("198.51.100.6", "02:00:00:00:00:61")
        self.peers[1] = self.peers[1].with_(src_ip="198.51.100.6", src_mac="02:00:00:00:00:61")
        psn = self.arm()
        self.dut.rx(self.peers[1].send_only(E, b"x"), 1)
        mac = "02:00:00:00:00:63"
        self.dut.rx(bytes(Ether(src=mac, dst=MAC[1]) / ARP(
            op=2, hwsrc=mac, psrc="198.51.100.6", hwdst=MAC[1], pdst=IP[1])), 1)
        self.dut.run()
        self.peers[1] = self.peers[1].with_(src_mac=mac)
        self.assertEqual([(1, SEND_ONLY, psn, 1)], self.where(self.send()))

    def test_another_address_on_the_same_port(self):
        """Tagged, and IPv6 for IPv4."""
        for ip, ours, vlan in (("192.0.2.3", IP[0], None), ("192.0.2.3", IP[0], 7),
                               ("2001:db8:1::3", "2001:db8:1::1", None),
                               ("2001:db8:1::3", "2001:db8:1::1", 9)):
            alt = {"dest_ip": ip, "dest_mac": PEER_MAC[1], "hop_limit": 64}
            if vlan is not None:
                alt["vlan"] = vlan
            with self.subTest(ip=ip, vlan=vlan):
                self.apm(alt_ah_attr=alt, alt_port=None)
                self.arm()
                self.peers[0] = self.peer.with_(src_mac=PEER_MAC[1], src_ip=ip, dst_ip=ours,
                                                vlan=vlan)
                got = self.put(self.peers[0].send_only(E, b"x")) + self.send()
                self.assertEqual([(0, ACK, E, 1), (0, SEND_ONLY, S + 1, 1)], self.where(got))
                q = self.qp()
                self.assertEqual(("p0", ip, vlan), (q["port"], q["ah_attr"]["dest_ip"],
                                                    q["ah_attr"].get("vlan")))

    def test_the_recorder_and_explain(self):
        self.apm(retry_cnt=0)
        self.rpc("trace_start", qp_num=QPN)
        self.feed(ns=MS)        # the recorder may be full of QPs that had the number before
        since = self.dut.now()
        psn = self.arm()
        self.send()
        self.put(self.peer.acknowledge(psn, NAK_SEQ, mig=0))
        steps = [(e["detail"], e["rule"]) for e in self.rpc("trace_read", qp_num=QPN)
                 if e["kind"] == "path" and e["time_ns"] >= since]
        self.assertEqual([(2, ""), (0, "REQ-RETRY-09")], steps)     # ARMED, MIGRATED
        path = self.rpc("qp_explain", qp_num=QPN)["path"]
        self.assertEqual(("MIGRATED", 1, "REQ-RETRY-09"),
                         (path["path_mig_state"], path["migrations"], path["last"]["rule"]))


if __name__ == "__main__":
    dut.main()
