# SPDX-License-Identifier: BSD-3-Clause
"""UC, received: whole messages or nothing, and never an answer."""
import itertools

import dut
import dut_uc
import roce
from dut import BUF, BUFS, MR_LEN, QPN, RKEY, VA, E
from roce import UC, data

MTU = 1024


class Messages(dut_uc.UcCase):

    def test_UC_01_nothing_is_ever_answered(self):
        """Good and bad, with AckReq."""
        self.resp()
        p = self.peer
        self.quiet(p.send(E, data(3000)), p.write(E + 3, data(3000), VA, RKEY),
                   p.send_only(E + 9, b"x"), p.write_only(E + 10, b"x", VA, RKEY + 1),
                   p.send_middle(E + 77, data(MTU)), p.packet(0x0C, E + 11, b""))
        self.assertEqual(0, self.delta("acks_sent"))

    def test_UC_06_sequences(self):
        """1, PMTU, PMTU + 1 and 3 x PMTU bytes, with and without immediate."""
        for length in (0, 1, MTU, MTU + 1, 3 * MTU):
            payload = data(length, length + 1)
            parts = self.peer._parts(payload)
            last = len(parts) - 1
            self.resp()
            self.quiet(self.peer.send(E, payload))
            self.received((0, payload))
            self.alive(E + len(parts))

            self.resp()
            p = self.peer
            if last == 0:
                frames = [p.send_only_imm(E, payload, imm=0x01020304)]
            else:
                frames = p.send(E, payload)[:-1] + [p.send_last_imm(E + last, parts[-1],
                                                                    imm=0x01020304)]
            self.quiet(frames)
            got = self.cqes()
            self.assertEqual([(0, "SUCCESS", "RECV", length, 0x01020304)],
                             [(c["wr_id"], c["status"], c["opcode"], c["byte_len"], c["imm_data"])
                              for c in got])
            self.assertEqual(payload, self.slot(0, length))

            self.resp()
            self.quiet(self.peer.write(E, payload, VA, RKEY))
            self.assertEqual((payload, []), (self.mem(0, length), self.cqes()))
            self.alive(E + len(parts))

            self.resp()
            p = self.peer
            if last == 0:
                frames = [p.write_only_imm(E, payload, VA, RKEY)]
            else:
                frames = p.write(E, payload, VA, RKEY)[:-1] + [p.write_last_imm(E + last,
                                                                                parts[-1])]
            self.quiet(frames)
            got = self.cqes()
            self.assertEqual([(0, "SUCCESS", "RECV_RDMA_WITH_IMM", length, 0x11223344)],
                             [(c["wr_id"], c["status"], c["opcode"], c["byte_len"], c["imm_data"])
                              for c in got])
            self.assertEqual(payload, self.mem(0, length))

    def test_UC_05_a_message_begins_at_any_psn(self):
        """Lost between two messages: what comes next is taken, and ePSN follows."""
        self.resp()
        p = self.peer
        self.quiet(p.send_only(E, b"one"), p.send_only(E + 5, b"two"), p.send(E + 9, data(2500)))
        self.received((0, b"one"), (1, b"two"), (2, data(2500)))
        self.alive(E + 12)
        self.assertEqual(2, self.delta("out_of_sequence"))

    def test_UC_07_loss_in_the_middle(self):
        for writes in (False, True):
            self.resp()
            p = self.peer
            lost = p.write(E, data(3000, 7), VA, RKEY) if writes else p.send(E, data(3000, 7))
            self.quiet(lost[0], lost[2], p.send_only(E + 3, b"whole"))
            self.received((0, b"whole"))
            self.alive(E + 4)
            self.assertEqual(1, self.delta("out_of_sequence"), "one loss")

    def test_UC_07_only_comes_later(self):
        """In a burst of its own: the receive of the broken one is first, whatever is posted."""
        self.resp()
        p = self.peer
        lost = p.send(E, data(3000, 7))
        self.quiet(lost[0], lost[2])
        self.quiet(p.send_only(E + 3, b"whole"), p.send_only(E + 4, b"next"))
        self.received((0, b"whole"), (1, b"next"))
        self.alive(E + 5)

    def test_UC_07_next_message_follows_at_once(self):
        """FIRST, then the ONLY: LAST and all between are lost."""
        self.resp(recv=2)
        p = self.peer
        self.quiet(p.send(E, data(3000, 7))[0], p.send(E + 3, data(2000, 8)),
                   p.send_only(E + 5, b"end"))
        self.received((0, data(2000, 8)), (1, b"end"))

    def test_RESP_CLS_D1_01_dropped_until_the_next_message(self):
        """Its PSN may be ahead of ePSN; the receive of the broken one is used then."""
        self.resp(recv=1)
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.send_middle(E + 2, data(MTU)),
                   p.send_last(E + 3, b"end"), p.send(E + 9, data(2000, 4)))
        self.received((0, data(2000, 4)))
        self.alive(E + 11)

    def test_RESP_CLS_D1_02_begins_while_another_is_open(self):
        self.resp(recv=1)
        self.quiet(self.peer.send_first(E, data(MTU)), self.peer.send_only(E + 1, b"whole"))
        self.received((0, b"whole"))
        self.alive(E + 2)

    def test_UC_08_middle_or_last_without_first(self):
        self.resp()
        p = self.peer
        self.quiet(p.send_middle(E, data(MTU)), p.send_last(E + 1, b"end"),
                   p.send_only(E + 2, b"whole"))
        self.received((0, b"whole"))
        self.alive(E + 3)
        self.resp()
        self.quiet(self.peer.write_middle(E, data(MTU)), self.peer.write_last(E + 1, b"end"),
                   self.peer.write_last_imm(E + 2, b"end"), self.peer.send_only(E + 3, b"whole"))
        self.received((0, b"whole"))
        self.assertEqual(bytes(MR_LEN), self.mem(0, MR_LEN))

    def test_UC_09_another_kind_begins(self):
        self.resp()
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.write_only(E + 1, b"placed", VA, RKEY),
                   p.send_last(E + 2, b"end"), p.send_only(E + 3, b"whole"))
        self.assertEqual(b"placed", self.mem(0, 6))
        self.received((0, b"whole"))
        self.alive(E + 4)

    def test_UC_09_a_last_of_the_other_kind(self):
        """It ends neither, and the rest of the first is passed over."""
        self.resp()
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.write_last(E + 1, b"end"),
                   p.send_last(E + 2, b"end"), p.send_only(E + 3, b"whole"))
        self.received((0, b"whole"))

    def test_UC_09_immediate_of_a_write_uses_the_wqe_of_the_cut_off_send(self):
        self.resp(recv=1)
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.write_only_imm(E + 1, b"placed", VA, RKEY))
        got = self.cqes()
        self.assertEqual([(0, "SUCCESS", "RECV_RDMA_WITH_IMM")],
                         [(c["wr_id"], c["status"], c["opcode"]) for c in got])
        self.assertEqual(b"placed", self.mem(0, 6))

    def test_UC_18_psn_rules(self):
        self.resp(rq_psn=0xFFFFFE)
        p = self.peer
        self.quiet(p.send(0xFFFFFE, data(3000)))
        self.received((0, data(3000)))
        self.alive(1)
        self.quiet(p.send_only(0x800000, b"far"))
        self.alive(0x800001)
        self.quiet(p.send_only(0x000005, b"near"))
        self.alive(6)
        self.received((1, b"far"), (2, b"near"))
        self.quiet(p.send_middle(3, data(MTU)))
        self.alive(6)
        self.assertEqual([], self.cqes())

    def test_UC_18_no_duplicates(self):
        """The same packet again is the same message again."""
        self.resp()
        self.quiet(*[self.peer.send_only(E, b"again")] * 3)
        self.received((0, b"again"), (1, b"again"), (2, b"again"))
        self.assertEqual(0, self.delta("duplicate_request"))

    def test_UC_17_opcodes_that_uc_does_not_have(self):
        for opcode in range(UC | 0x0C, 2 * UC):
            self.resp()
            p = self.peer
            self.quiet(p.send_first(E, data(MTU)), p.packet(opcode, E + 1, b"", bytes(32)),
                       p.send_last(E + 1, b"end"), p.send_only(E + 2, b"whole"))
            self.received((0, b"whole"))
            self.well()

    def test_UC_17_an_open_message_survives_a_packet_of_another_service(self):
        self.resp()
        p, rc = self.peer, self.peer.with_(service=0)
        self.quiet(p.send_first(E, data(MTU)), rc.send_only(E + 1, b"RC"),
                   rc.packet(0x64, E + 1, b"UD", bytes(8)), rc.acknowledge(E),
                   p.send_last(E + 1, b"end"))
        self.received((0, data(MTU) + b"end"))
        self.assertEqual(3, self.delta("rx_qp_type_mismatch"))
        self.well()

    def test_comm_est_in_rtr(self):
        """AE-05, QP-07: the first message in RTR is taken and reported; what is dropped is not."""
        self.resp(qp_state="RTR", sq_psn=None)
        self.quiet(self.peer.send_middle(E, data(MTU)))
        self.assertEqual([], self.rpc("async_events", max=8))
        self.quiet(self.peer.send_only(E, b"hello"))
        self.assertEqual(["COMM_EST"],
                         [e["event_type"] for e in self.rpc("async_events", max=8)])
        self.received((0, b"hello"))


class Faults(dut_uc.UcCase):

    def test_UC_03_no_receive_wqe(self):
        self.resp(recv=0)
        p = self.peer
        self.quiet(p.send_only(E, b"lost"), p.send(E + 1, data(3000)))
        self.alive(E + 4)
        self.post_recv(1)
        self.quiet(p.send_only(E + 4, b"whole"))
        self.received((0, b"whole"))
        self.assertEqual(2, self.delta("out_of_buffer"), "one a message")

    def test_UC_11_immediate_without_a_receive_wqe(self):
        self.resp(recv=0)
        p = self.peer
        self.quiet(p.write_only_imm(E, b"a", VA, RKEY),
                   p.write_first(E + 1, data(MTU), VA, RKEY, MTU + 1),
                   p.write_last_imm(E + 2, b"b"))
        self.post_recv(1)
        self.quiet(p.send_only(E + 3, b"whole"))
        self.received((0, b"whole"))
        self.well()

    def test_UC_04_access_violation(self):
        for frames in ([self.peer.write_only(E, b"x", VA, RKEY + 1)],
                       [self.peer.write_only(E, b"x", VA + MR_LEN, RKEY)],
                       self.peer.write(E, data(3000), VA + MR_LEN - 2000, RKEY)):
            self.resp()
            self.quiet(frames, self.peer.write_only(E + len(frames), b"good", VA, RKEY))
            self.assertEqual((b"good", []), (self.mem(0, 4), self.cqes()))
            self.assertEqual(bytes(MR_LEN - 4), self.mem(4, MR_LEN - 4))
            self.alive(E + len(frames) + 1)
            self.assertGreaterEqual(self.delta("resp_silent_drops"), 1)

    def test_UC_10_refused_write_is_skipped_as_a_whole(self):
        self.resp()
        p = self.peer
        self.quiet(p.write(E, data(3000), VA, RKEY + 1), p.write_only(E + 3, b"good", VA + 8, RKEY))
        self.assertEqual(bytes(8) + b"good" + bytes(100), self.mem(0, 112))
        self.alive(E + 4)
        self.assertEqual((3, 0), (self.delta("resp_silent_drops"), self.delta("out_of_sequence")))

    def test_UC_04_key_revoked_while_a_write_is_open(self):
        self.resp()
        p = self.peer
        frames = p.write(E, data(3000, 3), VA, RKEY)
        self.quiet(frames[0])
        self.rpc("mr_deregister", name="mr0")
        self.quiet(frames[1:], p.send_only(E + 3, b"whole"))
        self.received((0, b"whole"))
        self.well()

    def test_UC_04_right_that_the_qp_does_not_grant(self):
        self.resp(qp_access_flags=["REMOTE_READ"])
        self.quiet(self.peer.write(E, data(3000), VA, RKEY), self.peer.send_only(E + 3, b"whole"))
        self.assertEqual(bytes(64), self.mem(0, 64))
        self.received((0, b"whole"))

    def test_UC_12_receive_buffer_too_small(self):
        self.resp(recv=0)
        self.post_recv(1, size=100)
        self.quiet(self.peer.send_only(E, data(200)), self.peer.send_only(E + 1, data(50, 2)))
        self.received((0, data(50, 2)))
        self.assertEqual(1, self.delta("resp_local_length_error"))
        self.well()

    def test_UC_12_too_small_for_a_later_packet(self):
        self.resp(recv=0)
        self.post_recv(1, size=MTU + 100)
        p = self.peer
        self.quiet(p.send(E, data(3000)), p.send_only(E + 3, data(50, 2)))
        self.received((0, data(50, 2)))
        self.alive(E + 4)

    def test_UC_13_bad_receive_sge(self):
        """Class A: without a NAK."""
        self.resp(recv=0)
        self.post_recv_sges([{"addr": hex(0x1234), "length": 64, "lkey": 0x77777}])
        self.post_recv(2)
        self.quiet(self.peer.send_only(E, b"x"), self.peer.send_only(E + 1, b"later"))
        self.assertEqual([(0, "LOC_PROT_ERR"), (1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")],
                         self.statuses())
        self.assertEqual("ERR", self.state())
        self.assertEqual([], self.events())

    def test_UC_20_length_and_pad(self):
        p = self.peer
        whole = data(MTU)
        for name, frames in (
                ("FIRST too short", [p.send_first(E, data(MTU - 4)), p.send_last(E + 1, b"x")]),
                ("FIRST with a pad", [p.send_first(E, whole, pad=1), p.send_last(E + 1, b"x")]),
                ("LAST too long", [p.send_first(E, whole), p.send_last(E + 1, data(MTU + 4))]),
                ("LAST of nothing", [p.send_first(E, whole), p.send_last(E + 1, b"")]),
                ("MIDDLE too short", [p.send_first(E, whole), p.send_middle(E + 1, data(64)),
                                      p.send_last(E + 2, b"x")]),
                ("ONLY too long", [p.send_only(E, data(MTU + 4))]),
                ("WRITE too short", [p.write_only(E, b"abcd", VA, RKEY, length=5)]),
                ("WRITE too long", [p.write_only(E, b"abcd", VA, RKEY, length=3)]),
                ("WRITE ends early", [p.write_first(E, whole, VA, RKEY, MTU + 8),
                                      p.write_last(E + 1, b"abcd")]),
                ("WRITE beyond 2^31", [p.write_first(E, whole, VA, RKEY, 0x80000001),
                                       p.write_last(E + 1, b"abcd")])):
            with self.subTest(name):
                self.resp()
                self.quiet(frames, self.peer.send_only(E + len(frames), b"whole"))
                self.received((0, b"whole"))
                self.alive(E + len(frames) + 1)
                self.assertEqual(bytes(8), self.mem(MTU if len(frames) > 1 else 0, 8))

    def test_RESP_CLS_01_cq_overflow(self):
        """Class G is the same on every service."""
        self.resp(cqe=1)
        self.quiet(*[self.peer.send_only(E + i, b"x") for i in range(3)])
        self.assertEqual("ERR", self.state())
        self.assertEqual({"CQ_ERR", "QP_FATAL"}, {e["event_type"] for e in self.events()})

    def test_flush_of_a_cut_off_message(self):
        """QP-12: its WQE is the oldest that is posted, and is flushed once."""
        self.resp(recv=3)
        self.quiet(self.peer.send_first(E, data(MTU)), self.peer.send_last(E + 5, b"end"))
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.dut.run()
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(3)], self.statuses())

    def test_reset_forgets_a_cut_off_message(self):
        """QP-05."""
        self.resp(recv=1)
        self.quiet(self.peer.send_first(E, data(MTU)), self.peer.send_last(E + 5, b"end"))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.post_recv(1)
        self.quiet(self.peer.send_only(E, b"whole"))
        self.received((1, b"whole"))

    def walk_up(self, state, qp_num=QPN, **attrs):
        a = self.qp_params(**attrs)
        for name, keys in (("INIT", ("port", "pkey", "qp_access_flags")),
                           ("RTR", ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn")),
                           ("RTS", ("sq_psn",))):
            self.rpc("qp_modify", qp_num=qp_num, qp_state=name, **{k: a[k] for k in keys})
            if name == state:
                break


class Feed(dut_uc.UcCase):

    def test_recv_feed(self):
        """A cut-off message leaves its buffer to the next one."""
        self.resp(recv=0, recv_feed={"buffers": 4, "size": 4096})
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.send_only(E + 7, b"x"),
                   p.write_only(E + 8, b"placed", VA, RKEY))
        self.assertEqual((b"placed", 2), (self.mem(0, 6), self.delta("rx_send_requests")))
        self.alive(E + 9)


class Shared(dut_uc.UcCase):
    """UC-22, RESP-CLS-E-01: a WQE of a shared queue cannot be given back: it completes in error."""

    def shared(self, recv=4, size=BUF):
        self.clear()
        self.peer = self.peer_of()
        self.make("cq_create", name="cq0", cqe=64)
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("srq_create", name="srq0", pd="pd0")
        for n in (QPN, QPN + 1):
            self.make("qp_create", **self.qp_params(qp_num=n, srq="srq0"))
        self.wr_id = 0
        for _ in range(recv):
            self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": self.wr_id, "sg_list": [
                {"mr": "rbuf", "offset": self.wr_id * BUF, "length": size}]}])
            self.wr_id += 1
        self.drain()

    def test_UC_22_cut_off(self):
        self.shared()
        p, other = self.peer, self.peer_of(qpn=QPN + 1)
        self.quiet(p.send_first(E, data(MTU)), other.send_only(E, b"other"),
                   p.send_last(E + 2, b"end"), p.send_only(E + 3, b"whole"))
        self.assertEqual([(1, "SUCCESS", QPN + 1), (0, "REM_INV_REQ_ERR", QPN),
                          (2, "SUCCESS", QPN)],
                         [(c["wr_id"], c["status"], c["qp_num"]) for c in self.cqes()])
        self.assertEqual(b"whole", self.slot(2, 5))
        self.assertEqual(("RTS", []), (self.state(), self.events()))

    def test_UC_22_cut_off_by_the_next_message(self):
        self.shared(recv=2)
        p = self.peer
        self.quiet(p.send_first(E, data(MTU)), p.send_only(E + 2, b"whole"))
        self.assertEqual([(0, "REM_INV_REQ_ERR"), (1, "SUCCESS")], self.statuses())

    def test_UC_22_too_long(self):
        """Before a WQE is taken, and behind."""
        self.shared(size=MTU + 8)
        p = self.peer
        self.quiet(p.packet(roce.SEND_ONLY, E, data(MTU)), p.send(E + 1, data(MTU + 9)),
                   p.send_only(E + 3, b"whole"))
        self.assertEqual([(0, "SUCCESS"), (1, "LOC_LEN_ERR"), (2, "SUCCESS")], self.statuses())
        self.shared(size=8)
        self.quiet(self.peer.send_only(E, data(9)), self.peer.send_only(E + 1, b"whole"))
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_UC_22_empty(self):
        self.shared(recv=0)
        self.quiet(self.peer.send_only(E, b"lost"))
        self.assertEqual(([], "RTS"), (self.statuses(), self.state()))


class CrossTalk(dut_uc.UcCase):

    def test_every_order_of_six_packets(self):
        """UC-05, -07, -08, -09: a model that knows only the rules says what is received."""
        p = self.peer
        one, two = data(2 * MTU + 9, 1), data(MTU + 5, 2)
        frames = p.send(E, one) + p.send(E + 3, two) + [p.send_only(E + 5, b"end")]
        for order in itertools.islice(itertools.permutations(range(6)), 0, 720, 13):
            self.resp(recv=8)
            self.quiet([frames[i] for i in order])
            self.received(*[(i, m) for i, m in enumerate(self.model(order, one, two))])
            self.well()

    @staticmethod
    def model(order, one, two):
        """Runs of consecutive packets that are a whole message."""
        messages = {(0, 1, 2): one, (3, 4): two, (5,): b"end"}
        out = []
        for end in range(len(order)):
            for parts, payload in messages.items():
                if tuple(order[end + 1 - len(parts):end + 1]) == parts:
                    out.append(payload)
        return out


if __name__ == "__main__":
    dut.main()
