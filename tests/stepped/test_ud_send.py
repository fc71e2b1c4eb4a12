# SPDX-License-Identifier: BSD-3-Clause
"""UD, sent: each request says where it goes; done when the port has it."""
import errno

import dut
import dut_ud
import roce
import variant
from dut import MS, QPN
from dut_ud import GRH, PMTU, QKEY
from roce import data, pattern

S = 0x200
BAD = [{"addr": hex(0x1234), "length": 64, "lkey": 0x77777}]
IMM = 0x01020304


class Datagrams(dut_ud.UdCase):

    def test_UD_01_UD_06_UD_11_layout(self):
        """DETH, then ImmDt, then the payload, byte for byte."""
        self.sender()
        for length in (0, 1, 2, 3, 64, PMTU):
            for opcode, kw, want in (("SEND", {}, 0x64),
                                     ("SEND_WITH_IMM", {"imm_data": IMM}, 0x65)):
                got = self.post(self.wr(length, opcode, self.to(qkey=0x12345678), **kw))
                self.assertEqual([want], [f.opcode for f in got])
                body = got[0].raw[got[0].udp + 20:]
                ext = bytes.fromhex("1234567800") + QPN.to_bytes(3, "big")
                ext += IMM.to_bytes(4, "big") if kw else b""
                pad = -length % 4
                self.assertEqual(ext + pattern(9, length) + bytes(pad),
                                 body[:len(ext) + length + pad])
                self.assertEqual((0, 0), (got[0].ackreq, got[0].se))
                self.succeeded(self.send_id - 1)
        self.alive()

    def test_UD_29_no_CNP_is_for_datagrams(self):
        """Whoever sends one shows no Q_Key: neither rate nor window become less."""
        for knobs in ({"cc.algo": "dcqcn"}, {"cc.algo": "ernic_window"}):
            self.sender(knobs=knobs)
            self.quiet(*[self.peer.cnp()] * 20)
            q = self.rpc("qp_query", qp_num=QPN)
            if "cc" in q:
                self.assertEqual((10000.0, 0), (q["cc"]["rate_current"], q["cc"]["cnps"]))
            self.assertEqual((20, 0), (self.delta("rp_cnp_ignored"),
                                       self.delta("rp_cnp_handled")))
            self.assertEqual(16, len(self.post(*[self.wr(PMTU) for _ in range(16)])))

    def test_UD_05_address_of_each_request(self):
        self.sender()
        hosts = ((2, {"traffic_class": 0}), (3, {"traffic_class": 0xA0}),
                 (4, {"traffic_class": 0x5C}), (2, {"traffic_class": 0x20}))
        got = self.post(*[self.wr(8, ud=self.to(h, **kw)) for h, kw in hosts])
        self.assertEqual([(h, kw["traffic_class"]) for h, kw in hosts],
                         [(int(f.dst_ip[-1]), f.tos) for f in got])   # the rest by peer_for()
        self.assertEqual([0x22, 0x33, 0xFFFFFE, 0x22], [f.qpn for f in got])
        self.assertEqual([variant.vlan()] * 4, [f.vlan for f in got])

    @variant.fixed(vlan="none")
    def test_UD_05_vlan(self):
        """One to the VLAN, and nothing is kept from the one before."""
        self.sender()
        got = self.post(self.wr(8), self.wr(8, ud=self.to(2, vlan=7, vlan_priority=5)),
                        self.wr(8))
        self.assertEqual([None, 7, None], [f.vlan for f in got])
        self.assertEqual(5 << 5, got[1].raw[14] & 0xE0)

    @variant.fixed(ip="4", vlan="none")
    def test_UD_05_both_families_at_once(self):
        self.sender()
        six = {"ah_attr": {"dest_ip": "2001:db8::2"}, "remote_qpn": 0x22, "remote_qkey": QKEY}
        self.post_raw(self.wr(8), self.wr(8, ud=six))
        frames = [roce.Frame(raw) for _, raw in self.dut.run(0)]
        self.assertEqual([4, 6], [f.version for f in frames])
        roce.check_frame(frames[1], self.peer_of(True))

    def test_UD_05_more_destinations_than_requests(self):
        """The oldest address makes room; what waits keeps its own."""
        self.sender()
        for first in range(1, 200, 16):
            wrs = [self.wr(4, ud={"ah_attr": {**self.address(2), "hop_limit": 1 + n},
                                  "remote_qpn": n, "remote_qkey": QKEY})
                   for n in range(first, first + 16)]
            self.assertEqual(16, self.post_raw(*wrs)["posted"])
            got = [roce.Frame(raw) for _, raw in self.dut.run(0)]
            self.assertEqual([(n, 1 + n) for n in range(first, first + 16)],
                             [(f.qpn, f.ttl) for f in got])
            self.cqes()

    def test_UD_05_where_what_failed_was_to_go(self):
        """Told with the failure, in the event, and when the queue pair is gone."""
        self.sender(knobs={"ae.with_cqe": "on"})
        self.post(self.wr(8), self.wr(sg_list=BAD, ud=self.to(3)), self.wr(8))
        want = {"queue": "send", "wr_id": 101, "opcode": "SEND", "length": 64,
                "dest_ip": self.address(3)["dest_ip"], "remote_qpn": 0x33}
        self.assertEqual(want, self.rpc("qp_explain", qp_num=QPN)["error"]["request"])
        self.assertEqual([want], [e["request"] for e in self.events()])
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))
        self.assertEqual(want, self.rpc("qp_post_mortem", qp_num=QPN)[0]["error"]["request"])

    def test_UD_07_highest_bit_of_the_qkey(self):
        self.sender()
        got = self.post(*[self.wr(8, ud=self.to(qkey=k))
                          for k in (0x80000000, 0xFFFFFFFF, 0x80010000, 0x7FFFFFFF)])
        self.assertEqual([QKEY] * 3 + [0x7FFFFFFF], [f.qkey for f in got])

    def test_UD_09_psn_of_what_is_sent(self):
        self.sender(sq_psn=0xFFFFFE)
        got = self.post(*[self.wr(8, ud=self.to(h)) for h in (2, 3, 2, 3)])
        self.assertEqual([0xFFFFFE, 0xFFFFFF, 0, 1], [f.psn for f in got])
        self.assertEqual(2, self.qp()["next_psn"])

    def test_UD_12_longer_than_the_path_mtu(self):
        self.sender()
        self.assertEqual(1, len(self.post(self.wr(PMTU))))
        result = self.post_raw(self.wr(8), self.wr(PMTU + 1), self.wr(8))
        self.assertEqual((1, 1, 90), (result["posted"], result["refused"]["index"],
                                      result["refused"]["errno"]))
        self.assertEqual(1, len(self.feed()))
        self.alive()

    def test_UD_13_solicited(self):
        self.sender()
        got = self.post(self.wr(8, send_flags=["SOLICITED"]), self.wr(8))
        self.assertEqual([1, 0], [f.se for f in got])
        imm = {"opcode": "SEND_WITH_IMM", "imm_data": 7}
        got = self.post(self.wr(8, **imm), self.wr(8, send_flags=["SOLICITED"], **imm),
                        self.wr(inline="00", send_flags=["SOLICITED", "INLINE"]))
        self.assertEqual([0, 1, 1], [f.se for f in got])

    def test_UD_21_UD_22_completion_at_transmit(self):
        """The tester is silent: no timer, nothing is sent again, nothing asks for an ACK."""
        self.sender()
        got = self.post(self.wr(8), self.wr(8, send_flags=[]), self.wr(8))
        self.assertEqual([(S, 0), (S + 1, 0), (S + 2, 0)], [(f.psn, f.ackreq) for f in got])
        self.succeeded(100, 102)
        self.silent(ms=1000)
        q = self.qp()
        self.assertEqual((S + 3, 0), (q["next_psn"], q["outstanding"]))
        self.assertEqual(None, q["timers"]["transport_us"])
        self.alive()

    def test_UD_22_more_than_the_queue_holds(self):
        self.sender()
        for i in range(20):
            self.assertEqual(16, len(self.post(*[self.wr(8) for _ in range(16)])))
            self.succeeded(*range(100 + 16 * i, 116 + 16 * i))

    def test_inline(self):
        self.sender()
        got = self.post(self.wr(inline=b"inline".hex()))
        self.assertEqual([b"inline"], [f.payload for f in got])
        self.succeeded(100)

    def test_UD_14_to_itself_by_the_tester(self):
        """What is sent is received again, behind its own IP header."""
        self.sender()
        got = self.post(self.wr(64))[0]
        back = self.datagram(got.payload, got.psn, qkey=got.qkey, src=got.src_qpn)
        self.cqes()
        self.quiet(back)
        self.received((0, pattern(9, 64)))

    @variant.fixed(vlan="none")
    def test_UD_31_from_a_group(self):
        """To the group's MAC and queue pair: dropped, and nothing follows."""
        self.sender()
        kw = {"dst_ip": "ff0e::1", "dst_mac": "33:33:00:00:00:01"} if variant.v6() else \
            {"dst_ip": "239.1.2.3", "dst_mac": "01:00:5e:01:02:03"}
        self.quiet(self.datagram(b"x", qpn=0xFFFFFF, **kw), self.datagram(b"x", **kw))
        self.assertEqual([], self.cqes())
        self.quiet(self.datagram(b"taken"))
        self.received((0, b"taken"))
        self.alive()

    def test_WIRE_15_source_port(self):
        """The same for a QP and an address; others have others."""
        self.sender()
        got = self.post(*[self.wr(8, ud=self.to(h)) for h in (2, 3, 4, 2)])
        ports = [f.sport for f in got]
        self.assertEqual(ports[0], ports[3])
        self.assertEqual(3, len(set(ports)))

    def test_WIRE_15_source_port_by_flow_label(self):
        """An address has a label, or none."""
        self.sender()
        for label, port in roce.LABELS:
            got = self.post(*[self.wr(8, ud=self.to(2, **kw)) for kw in
                              ({"flow_label": label}, {}, {"flow_label": label})])
            self.assertEqual([port, port], [got[0].sport, got[2].sport])
            self.assertNotEqual(port, got[1].sport)
            self.assertEqual([label, 0, label] if got[0].version == 6 else [None] * 3,
                             [f.flow_label for f in got])

    def test_RT_05_nobody_knows_the_neighbour(self):
        """Nothing is posted, and the neighbour is asked: a datagram has nobody to miss it. Then
        there is an answer."""
        if variant.v6() or variant.vlan() is not None:
            return
        self.sender()
        far = {"ah_attr": {"dest_ip": "192.0.2.77"}, "remote_qpn": 0x22, "remote_qkey": QKEY}
        for first, arps in ((100, 1), (103, 0)):
            result = self.post_raw(self.wr(8), self.wr(8, ud=far), self.wr(8))
            self.assertEqual((1, 1, first + 1, errno.EAGAIN), (result["posted"], *[
                result["refused"][k] for k in ("index", "wr_id", "errno")]))
            self.assertIn("192.0.2.77 is INCOMPLETE", result["refused"]["reason"])
            kinds = [raw[12:14] for _, raw in self.dut.run(0)]
            self.assertEqual(sorted([b"\x08\x06"] * arps + [b"\x08\x00"]), sorted(kinds))
            self.succeeded(first)
        self.assertEqual(0, self.delta("tx_no_neighbor"))
        arp = (bytes.fromhex("020000000011020000000077") + bytes.fromhex("0806000108000604") +
               b"\0\2" + bytes.fromhex("020000000077c000024d020000000011c0000201"))
        self.dut.rx(arp, 0)
        self.dut.run(0)
        self.post_raw(self.wr(8, ud=far))
        frames = [roce.Frame(raw) for _, raw in self.dut.run(0)]
        self.assertEqual(["02:00:00:00:00:77"], [f.dst_mac for f in frames])
        self.succeeded(106)


class Refused(dut_ud.UdCase):

    def test_UD_25_operations_that_ud_refuses(self):
        self.sender()
        for opcode in ("RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "RDMA_READ", "ATOMIC_CMP_AND_SWP",
                       "ATOMIC_FETCH_AND_ADD", "SEND_WITH_INV", "BIND_MW"):
            bind = {"bind_mw": {"mw": "none", "length": 0}} if opcode == "BIND_MW" else {}
            result = self.post_raw(self.wr(8), self.wr(None if bind else 8, opcode, **bind),
                                   self.wr(8))
            self.assertEqual((1, 22), (result["posted"], result["refused"]["errno"]), opcode)
            self.assertIn(opcode, result["refused"]["reason"])
            self.assertEqual(1, len(self.feed()))
        wr = self.wr(8)
        del wr["ud"]
        result = self.post_raw(self.wr(8), wr)
        self.assertEqual((1, 22), (result["posted"], result["refused"]["errno"]))
        self.assertIn("ud", result["refused"]["reason"])
        self.feed()
        self.alive()

    def test_UD_25_addresses_that_cannot_be(self):
        self.sender()
        no_route = "2001:db8:77::1" if variant.v6() else "198.51.100.1"
        for ah, word in (({"dest_ip": no_route, "dest_mac": None}, "route"),):
            result = self.post_raw(self.wr(8, ud=self.to(2, **ah)))
            self.assertEqual(0, result["posted"])
            self.assertIn(word, result["refused"]["reason"])
        for ud in ({"remote_qpn": 1, "remote_qkey": 1}, {"ah_attr": {}, "remote_qpn": 1},
                   {**self.to(), "remote_qpn": 1 << 24}, {**self.to(), "rkey": 1}):
            with self.assertRaises(dut.RpcError):
                self.post_raw(self.wr(8, ud=ud))
        self.alive()

    def test_UC_16_ud_on_a_connected_qp(self):
        self.clear()
        self.peer = self.peer_of()
        self.make("cq_create", name="cq0", cqe=16)
        self.make("qp_create", **self.qp_params(send_cq="cq0", recv_cq="cq0"))
        self.send_id = 0
        result = self.post_raw(self.wr())
        self.assertEqual(0, result["posted"])
        self.assertIn("ud", result["refused"]["reason"])

    def test_UD_24_no_feed(self):
        self.ud()
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc("qp_create", **self.ud_params(qp_num=0x33, send_feed={"opcode": "SEND"}))
        self.assertIn("send_feed", caught.exception.message)


class SendQueueError(dut_ud.UdCase):

    def broken(self, **kw):
        self.sender(**kw)
        got = self.post(self.wr(64), self.wr(sg_list=BAD), self.wr(64))
        self.assertEqual([S], [f.psn for f in got])
        self.assertEqual([(100, "SUCCESS"), (101, "LOC_PROT_ERR"), (102, "WR_FLUSH_ERR")],
                         self.statuses())
        self.assertEqual(("SQE", []), (self.state(), self.events()))

    def test_UD_16_receives_and_flushes(self):
        self.broken()
        self.quiet(self.datagram(b"taken"), self.datagram(b"this, too", imm=7))
        self.received((0, b"taken"), (1, b"this, too"))
        self.assertEqual([], self.post(self.wr(8), self.wr(8)))
        self.assertEqual([(103, "WR_FLUSH_ERR"), (104, "WR_FLUSH_ERR")], self.statuses())
        self.assertEqual("SQE", self.state())

    def test_UD_16_AEQ_11_an_event_beside_it(self):
        """ae.with_cqe: the event comes with the completion, and nothing else is different."""
        self.sender(knobs={"ae.with_cqe": "on"})
        self.post(self.wr(64), self.wr(sg_list=BAD), self.wr(64))
        self.assertEqual([(100, "SUCCESS"), (101, "LOC_PROT_ERR"), (102, "WR_FLUSH_ERR")],
                         self.statuses())
        self.assertEqual(("SQE", [("QP_ACCESS_ERR", QPN)]), (self.state(), self.event_types()))
        self.quiet(self.datagram(b"taken"))
        self.received((0, b"taken"))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.assertEqual(1, len(self.post(self.wr(8))))
        self.succeeded(103)

    def test_UD_17_back_to_rts(self):
        for kw in ({}, {"cur_qp_state": "SQE"}, {"qkey": 0x22222222}):
            self.broken()
            self.rpc("qp_modify", qp_num=QPN, qp_state="RTS", **kw)
            got = self.post(self.wr(8, ud=self.to(qkey=0xFFFFFFFF)))
            self.assertEqual([(S + 1, kw.get("qkey", QKEY))], [(f.psn, f.qkey) for f in got])
            self.succeeded(103)
            self.alive()

    def test_UD_17_other_ways_out(self):
        for state in ("RESET", "ERR"):
            self.broken()
            for no in ("INIT", "RTR", "SQD"):
                with self.assertRaises(dut.RpcError) as caught:
                    self.rpc("qp_modify", qp_num=QPN, qp_state=no)
                self.assertEqual(-32022, caught.exception.code)
                self.assertEqual("SQE", self.state())
            self.rpc("qp_modify", qp_num=QPN, qp_state=state)
            self.assertEqual(state, self.state())

    def test_UD_26_flush_of_sends(self):
        self.sender(recv=1)
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual([], self.post(self.wr(8)))
        self.assertEqual([(0, "WR_FLUSH_ERR"), (100, "WR_FLUSH_ERR")], self.statuses())

    def test_QP_09_drained(self):
        self.sender()
        self.post(self.wr(8))
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD", en_sqd_async_notify=True)
        self.dut.run()
        self.assertEqual(["SQ_DRAINED"], [e["event_type"] for e in self.events()])
        self.assertEqual([], self.post(self.wr(8)))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.assertEqual([S + 1], [f.psn for f in self.feed()])
        self.succeeded(100, 101)


class OnAnSrq(dut_ud.UdCase):

    def test_UD_28_sends_beside_an_srq(self):
        self.clear()
        self.peer = self.peer_of()
        self.make("cq_create", name="cq0", cqe=64)
        self.make("mr_register", name="lmr", pd="pd0", length=4096, access=["LOCAL_WRITE"])
        self.make("srq_create", name="srq0", pd="pd0")
        self.make("qp_create", **self.ud_params(srq="srq0"))
        self.send_id = 100
        self.assertEqual(1, len(self.post(self.wr(100))))
        self.succeeded(100)


if __name__ == "__main__":
    dut.main()
