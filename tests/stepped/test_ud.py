# SPDX-License-Identifier: BSD-3-Clause
"""UD, received: datagrams of anybody with the Q_Key, behind 40 bytes of IP header."""
import itertools

import dut
import dut_ud
import roce
import variant
from dut import BUF, BUFS, QPN
from dut_ud import GRH, QKEY
from roce import UC, data

PMTU = 1024


class Datagrams(dut_ud.UdCase):

    def test_UD_03_UD_14_UD_15_header_ahead_of_the_payload(self):
        """Byte for byte as it came: traffic class, hop limit, identification, checksum."""
        for payload, imm in itertools.product((b"", b"x", data(PMTU)), (None, 7)):
            self.ud()
            self.set_mem(0, b"\xee" * (GRH + PMTU), "rbuf")     # what was there before
            frame = self.datagram(payload, imm=imm, tos=0x5C, ttl=17, **(
                {"flow": 0xABCDE} if self.peer.v6 else {}))
            self.quiet(frame)
            got = self.cqes()
            self.assertEqual([(0, "SUCCESS", "RECV", len(payload) + GRH, 0x22)],
                             [(c["wr_id"], c["status"], c["opcode"], c["byte_len"],
                               c["src_qp"]) for c in got])
            self.assertEqual({"GRH"} | ({"WITH_IMM"} if imm else set()),
                             set(got[0]["wc_flags"]))
            self.assertEqual(self.head_of(frame) + payload, self.slot(0, GRH + len(payload)))
            self.alive()

    def test_UD_14_identification(self):
        self.ud()
        if self.peer.v6:
            return
        at = 18 if self.peer.vlan is not None else 14
        frame = roce.edit(self.datagram(b"x"), at + 4, b"\xbe\xef")
        self.quiet(frame)
        self.assertEqual(bytes(20) + frame[at:at + 20] + b"x", self.slot(0, GRH + 1))

    def test_UD_27_shortest_and_longest(self):
        self.ud(recv=0)
        sizes = (0, 1, 2, 3, PMTU)
        for size in sizes:
            self.post_recv(1, GRH + size)
        self.quiet(*[self.datagram(data(size, 9)) for size in sizes])
        self.received(*[(i, data(size, 9)) for i, size in enumerate(sizes)])

    def test_UD_27_UD_04_too_long_for_the_receive(self):
        """Dropped; its receive is the next one's."""
        for size in (0, 1, 39, 40, 140):
            self.ud(recv=0)
            self.post_recv(1, size)
            self.quiet(self.datagram(data(max(0, size - GRH) + 1)))
            self.assertEqual([], self.cqes())
            if size >= GRH:
                self.quiet(self.datagram(data(size - GRH, 3)))
                self.received((0, data(size - GRH, 3)))
            self.alive()

    def test_UD_04_no_receive(self):
        self.ud(recv=0)
        self.quiet(self.datagram(b"lost"))
        self.post_recv(1)
        self.quiet(self.datagram(b"taken"))
        self.received((0, b"taken"))
        self.assertEqual(1, self.delta("out_of_buffer"))
        self.alive()

    def test_UD_08_psn_is_not_checked(self):
        self.ud()
        self.quiet(*[self.datagram(b"%d" % i, psn) for i, psn in enumerate((5, 5, 0xFFFFFF, 0))])
        self.received(*[(i, b"%d" % i) for i in range(4)])
        self.assertEqual((0, 0), (self.delta("out_of_sequence"), self.delta("duplicate_request")))

    def test_UD_10_any_source_is_served(self):
        self.ud()
        other = {"src_ip": "2001:db8::99"} if self.peer.v6 else {"src_ip": "192.0.2.99"}
        self.quiet(self.datagram(b"a", src=0x22), self.datagram(b"b", src=0xFFFFFE, **other),
                   self.datagram(b"c", src_mac="02:00:00:00:00:99"))
        self.assertEqual([0x22, 0xFFFFFE, 0x22], [c["src_qp"] for c in self.cqes()])
        self.assertEqual((0, 0), (self.delta("rx_syndrome_27"), self.delta("rx_syndrome_28")))

    @variant.fixed(ip="4")
    def test_UD_10_both_families_at_once(self):
        self.ud()
        six = self.peer_of(True)
        self.quiet(self.datagram(b"four"), self.datagram(b"six", peer=six))
        self.received((0, b"four"), (1, b"six"))
        self.assertEqual(0x60, self.slot(1, 1)[0] & 0xF0)

    @variant.fixed(ip="6")
    def test_UD_15_header_of_ipv6(self):
        """All 40 bytes, on both ways through the responder."""
        for imm in (None, 7):
            self.ud()
            frame = self.datagram(b"x", imm=imm, tos=0x5C, ttl=17, flow=0xABCDE)
            self.quiet(frame)
            self.assertEqual(self.head_of(frame) + b"x", self.slot(0, GRH + 1))

    def test_UD_11_immediate(self):
        self.ud()
        self.quiet(self.datagram(b"data", imm=0x01020304))
        got = self.cqes()[0]
        self.assertEqual((0x01020304, {"GRH", "WITH_IMM"}, GRH + 4),
                         (got["imm_data"], set(got["wc_flags"]), got["byte_len"]))
        self.assertEqual(b"data", self.slot(0, GRH + 4)[GRH:])

    def test_UD_13_solicited(self):
        for imm in (None, 7):
            self.ud()
            for se in (0, 1, 0):
                self.quiet(self.datagram(b"a", imm=imm, se=se))
            self.assertEqual([False, True, False], [c["solicited"] for c in self.cqes()])

    def test_UD_21_never_acknowledged(self):
        self.ud()
        self.quiet(self.datagram(b"x", ack=1), self.peer.acknowledge(0),
                   self.datagram(b"x", qkey=1, ack=1))
        self.assertEqual(1, self.delta("rx_qp_type_mismatch"))
        self.assertEqual(1, len(self.cqes()))
        self.alive()

    def test_UD_21_nobody_is_told_of_congestion(self):
        """A datagram has no connection that a CNP could name."""
        self.ud(knobs={"cc.cnp": "on"})
        self.quiet(roce.marked(self.datagram(b"x")))
        self.assertEqual((1, 1), (len(self.cqes()),
                                  self.delta("np_ecn_marked_roce_packets")))


class Faults(dut_ud.UdCase):

    def test_UD_02_UD_19_wrong_qkey(self):
        self.ud()
        self.quiet(self.datagram(b"a"), self.datagram(b"b", qkey=QKEY + 1), self.datagram(b"c"))
        self.received((0, b"a"), (1, b"c"))
        self.assertEqual(1, self.delta("rx_qkey_violation"))
        self.alive()
        for bit in range(32):
            self.quiet(self.datagram(b"b", qkey=QKEY ^ 1 << bit))
        self.assertEqual((33, []), (self.delta("rx_qkey_violation"), self.cqes()))
        self.ud(recv=0)
        self.quiet(self.datagram(b"b", qkey=0))
        self.assertEqual((1, 0), (self.delta("rx_qkey_violation"), self.delta("out_of_buffer")))
        self.alive()

    def test_UD_23_another_qkey(self):
        """qkey may be given again, up to RTS."""
        self.ud(qp_state="INIT", sq_psn=None)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTR", qkey="0x22222222")
        self.quiet(self.datagram(b"old"), self.datagram(b"new", qkey=0x22222222))
        self.received((0, b"new"))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS", sq_psn=1, qkey="0x33333333")
        self.quiet(self.datagram(b"old", qkey=0x22222222), self.datagram(b"y", qkey=0x33333333))
        self.received((1, b"y"))
        self.assertEqual(0x33333333, self.qp()["qkey"] if isinstance(self.qp()["qkey"], int)
                         else int(self.qp()["qkey"], 0))

    def test_UD_24_qkey_in_every_transition(self):
        """The one attribute that each transition of UD up to SQE to RTS takes."""
        self.ud(qp_state="INIT", sq_psn=None, recv=8)
        for i, (state, more) in enumerate((("INIT", {}), ("RTR", {}), ("RTS", {"sq_psn": 1}),
                                           ("RTS", {}), ("SQD", {}), ("SQD", {}), ("RTS", {}))):
            qkey = 0x44444440 + i
            if i == 4:      # RTS to SQD takes nothing but en_sqd_async_notify
                self.rpc("qp_modify", qp_num=QPN, qp_state=state)
                continue
            self.rpc("qp_modify", qp_num=QPN, qp_state=state, qkey=hex(qkey), **more)
            self.assertEqual(state, self.state())
            if state != "INIT":
                self.quiet(self.datagram(b"old", qkey=qkey ^ 1), self.datagram(b"y", qkey=qkey))
                self.assertEqual(1, len(self.cqes()))

    def test_UD_18_pkey(self):
        self.ud()
        self.quiet(self.datagram(b"a", pkey=0x1234), self.datagram(b"b", pkey=0x7FFF))
        self.received((0, b"b"))
        self.assertEqual(1, self.delta("rx_pkey_violation"))

    def test_UD_29_only_ud_opcodes(self):
        self.ud()
        p = self.peer
        others = [p.packet(op, 0, b"", roce.deth(QKEY, 0x22) + bytes(24))
                  for op in (0x04, UC | 0x04, 0xA4)]
        self.quiet(*others)
        self.assertEqual(3, self.delta("rx_qp_type_mismatch"))
        for op in [*range(0x60, 0x64), *range(0x66, 0x80)]:
            self.quiet(p.packet(op, 0, b"", roce.deth(QKEY, 0x22)))
        self.assertEqual([], self.cqes())
        self.quiet(self.datagram(b"x"))
        self.received((0, b"x"))
        self.alive()

    def test_UD_20_reserved_numbers(self):
        self.ud()
        for number in (0, 1, 0xFFFFFF):
            self.quiet(self.datagram(b"x", qpn=number))
            with self.assertRaises(dut.RpcError):
                self.rpc("qp_create", **self.ud_params(qp_num=number))
        # QP 1 takes datagrams, of whoever has its Q_Key (CM-37).
        self.assertEqual((2, 1), (self.delta("rx_syndrome_14"), self.delta("rx_qkey_violation")))

    def test_UD_30_bad_receive_buffer(self):
        """Class A."""
        self.ud(recv=0)
        self.post_recv_sges([{"addr": hex(0x1234), "length": 640, "lkey": 0x77777}])
        self.post_recv(2)
        self.quiet(self.datagram(b"x"))
        self.assertEqual([(0, "LOC_PROT_ERR"), (1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")],
                         self.statuses())
        self.assertEqual("ERR", self.state())

    def test_UD_12_longer_than_the_path_mtu(self):
        self.ud()
        self.quiet(self.datagram(data(PMTU)), self.datagram(data(PMTU + 4)))
        self.received((0, data(PMTU)))
        self.ud(path_mtu=None)      # what fits the port
        self.quiet(self.datagram(data(2048)))
        self.received((0, data(2048)))

    def test_UD_26_flush(self):
        self.ud(recv=3)
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.post_recv(1)
        self.quiet(self.datagram(b"x"))
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(4)], self.statuses())
        self.assertEqual(1, self.delta("rx_syndrome_15"))

    def test_bad_icrc(self):
        """ICRC-06: before anything that the QP finds."""
        self.ud()
        frame = self.datagram(b"payload")
        self.quiet(roce.flip(frame, 8 * (len(frame) - 8)))
        self.assertEqual((1, []), (self.delta("rx_syndrome_30"), self.cqes()))


class Shared(dut_ud.UdCase):

    def test_UD_28_on_an_srq(self):
        self.clear()
        self.make("cq_create", name="cq0", cqe=64)
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("srq_create", name="srq0", pd="pd0")
        for n in (QPN, QPN + 1):
            self.make("qp_create", **self.ud_params(qp_num=n, srq="srq0"))
        for i in range(3):
            self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": i, "sg_list": [
                {"mr": "rbuf", "offset": i * BUF, "length": 100}]}])
        self.drain()
        self.quiet(self.datagram(b"a"), self.datagram(b"b", qpn=QPN + 1),
                   self.datagram(b"c", qkey=1), self.datagram(data(61)), self.datagram(b"d"),
                   self.datagram(b"none is left", qpn=QPN + 1))
        self.assertEqual([(0, "SUCCESS", QPN), (1, "SUCCESS", QPN + 1), (2, "SUCCESS", QPN)],
                         [(c["wr_id"], c["status"], c["qp_num"]) for c in self.cqes()])
        self.assertEqual(b"d", self.slot(2, GRH + 1)[GRH:])


class Transitions(dut_ud.UdCase):

    REFUSED = {"dest_qp_num": 0x22, "ah_attr": {"dest_ip": "192.0.2.2"}, "rq_psn": 1,
               "path_mtu": 1024, "timeout": 14, "retry_cnt": 3, "rnr_retry": 3,
               "min_rnr_timer": 12, "max_rd_atomic": 4, "max_dest_rd_atomic": 4,
               "qp_access_flags": ["REMOTE_READ"]}

    def refused(self, before, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc("qp_modify", qp_num=QPN, **params)
        self.assertEqual(-32022, caught.exception.code, caught.exception.message)
        self.assertEqual(before, self.state())

    def test_UD_23_UD_24_each_transition(self):
        self.clear()
        self.make("cq_create", name="cq0", cqe=16)
        self.make("qp_create", **self.ud_params(qp_state=None, qkey=None, sq_psn=None))
        steps = (("INIT", {"pkey": 0xFFFF, "port": "p0", "qkey": QKEY}), ("RTR", {}),
                 ("RTS", {"sq_psn": 5}))
        before = "RESET"
        for state, good in steps:
            for missing in good:
                self.refused(before, qp_state=state,
                             **{k: v for k, v in good.items() if k != missing})
            for extra, value in self.REFUSED.items():
                self.refused(before, qp_state=state, **good, **{extra: value})
            self.rpc("qp_modify", qp_num=QPN, qp_state=state, **good)
            self.assertEqual(state, self.state())
            before = state

    def test_UD_24_create(self):
        self.ud()
        for key, value in self.REFUSED.items():
            if key == "path_mtu":
                continue        # UD-12: the longest datagram
            with self.assertRaises(dut.RpcError) as caught:
                self.rpc("qp_create", **self.ud_params(qp_num=0x33, **{key: value}))
            self.assertIn(key, caught.exception.message)
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc("qp_create", **self.ud_params(qp_num=0x33, qkey=None))
        self.assertIn("qkey", caught.exception.message)

    def test_UD_24_saved_and_made_again(self):
        self.ud()
        saved = self.rpc("save_config")["qps"][0]
        self.assertEqual(["path_mtu"], [k for k in self.REFUSED if k in saved])
        self.rpc("qp_destroy", qp_num=QPN)
        self.rpc("qp_create", **saved)
        self.post_recv(1)
        self.quiet(self.datagram(b"x"))
        self.received((4, b"x"))

    def test_no_comm_est(self):
        """AE-05 is about connections."""
        self.ud(qp_state="RTR", sq_psn=None)
        self.quiet(self.datagram(b"x"))
        self.assertEqual([], self.rpc("async_events", max=8))
        self.received((0, b"x"))


if __name__ == "__main__":
    dut.main()
