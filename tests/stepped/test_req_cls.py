# SPDX-License-Identifier: BSD-3-Clause
"""REQ-CLS: error classes of the requester; faults of responses."""
import dut
import roce
from dut import MS, QPN
from dut_req import LKEY, LVA, S, ReqCase
from roce import NAK_INV, pattern


class Classes(ReqCase):

    def test_REQ_CLS_B_01_bad_lkey_behind_a_good_request(self):
        """Also RX-FATAL-05, CQ-09."""
        self.req(recv=2)
        bad = {"lkey": LKEY + 1, "addr": hex(LVA), "length": 8}
        got = self.post(self.wr("SEND", 10), self.wr("SEND", sg_list=[bad]), self.wr("SEND", 10))
        self.assertEqual([S], self.psns(got))          # nothing of the second or third
        self.assertEqual([], self.cqes())
        self.assertEqual("RTS", self.state())
        self.assertEqual([], self.ack(S))
        self.ended("LOC_PROT_ERR", 101, ok=[100], flushed=[102], fatal=5)
        self.assertEqual(2, len(self.cqes("rcq")))

    def test_REQ_CLS_B_01_behind_an_unsignalled_request(self):
        """REQ-07: that one may have asked for nothing, so a copy with AckReq may follow it."""
        self.req(sq_sig_all=False)
        bad = {"lkey": LKEY + 1, "addr": hex(LVA), "length": 8}
        got = self.post(self.wr("SEND", 10), self.wr("SEND", 10), self.wr("SEND", sg_list=[bad]))
        self.assertEqual([S, S + 1, S + 1], self.psns(got))
        self.assertEqual([0, 0, 1], [f.ackreq for f in got])
        self.assertEqual(got[1].payload, got[2].payload)
        self.assertEqual([], self.ack(S + 1))
        self.ended("LOC_PROT_ERR", 102, fatal=5)

    def test_REQ_CLS_B_01_at_the_head(self):
        for sge in ({"lkey": LKEY + 1, "addr": hex(LVA), "length": 8},
                    {"mr": "lmr", "offset": 65535, "length": 2},
                    {"lkey": LKEY, "addr": hex(LVA - 1), "length": 8}):
            self.req()
            self.assertEqual([], self.post(self.wr("RDMA_WRITE", sg_list=[sge])))
            self.ended("LOC_PROT_ERR", 100, fatal=5)

    def test_REQ_CLS_B_01_read_into_memory_that_may_not_be_written(self):
        for opcode, length in (("RDMA_READ", 16), ("ATOMIC_FETCH_AND_ADD", 8)):
            self.req(access=())
            self.assertEqual([], self.post(self.wr(opcode, length)))
            self.ended("LOC_PROT_ERR", 100)

    def test_REQ_CLS_B_01_region_gone_before_a_resend(self):
        self.req()
        self.sends(2)
        self.rpc("mr_deregister", name="lmr")
        self.until_sent(300 * MS)
        self.ended("LOC_PROT_ERR", 100, flushed=[101])

    def bad(self, wr, frames, status="BAD_RESP_ERR", fatal=None, **kw):
        self.req(**kw)
        self.post(self.wr(*wr), self.wr("SEND", 5))
        before = self.local(0, 4096)
        self.assertEqual([], self.feed(*frames))
        self.ended(status, 100, flushed=[101], fatal=fatal)
        return before

    def test_REQ_CLS_B_02_bad_response_opcode(self):
        r = self.read_resp
        first, only, middle, last = (roce.READ_FIRST, roce.READ_ONLY, roce.READ_MIDDLE,
                                     roce.READ_LAST)
        full = bytes(1024)
        self.req()
        for wr, frames, fatal in (
                (("SEND", 10), [r(only, S, b"x")], 12),
                (("SEND", 10), [self.atomic_ack(S, 1)], 12),
                (("RDMA_READ", 100), [self.atomic_ack(S, 1)], 12),
                (("ATOMIC_FETCH_AND_ADD", 8), [r(only, S, bytes(8))], 12),
                (("RDMA_READ", 2048), [r(middle, S, full)], 27),
                (("RDMA_READ", 2048), [r(last, S, full)], 27),
                (("RDMA_READ", 100), [r(last, S, bytes(100))], 28),
                (("RDMA_READ", 2048), [r(only, S, full)], 27),
                (("RDMA_READ", 3072), [r(first, S, full), r(last, S + 1, full)], 27),
                (("RDMA_READ", 3072), [r(first, S, full), r(first, S + 1, full)], 27),
                (("RDMA_READ", 100), [r(only, S, bytes(100), syndrome=roce.NAK_INV)], 27),
                (("RDMA_READ", 100), [r(only, S, bytes(100), syndrome=roce.SYN_RNR + 1)], 27)):
            self.bad(wr, frames, fatal=fatal)
            self.assertEqual(1, self.delta("rx_syndrome_23"))

    def test_REQ_CLS_B_03_read_of_the_wrong_length(self):
        """Also RX-FATAL-26, whose second code is 31."""
        r = self.read_resp
        self.req()
        for length, frames in (
                (1500, [r(roce.READ_FIRST, S, bytes(1000))]),
                (1500, [r(roce.READ_FIRST, S, bytes(1024)), r(roce.READ_LAST, S + 1, bytes(475))]),
                (1500, [r(roce.READ_FIRST, S, bytes(1024)), r(roce.READ_LAST, S + 1, bytes(477))]),
                (100, [r(roce.READ_ONLY, S, bytes(99))]),
                (100, [r(roce.READ_ONLY, S, bytes(101))]),
                (0, [r(roce.READ_ONLY, S, bytes(1))])):
            self.bad(("RDMA_READ", length), frames, status="LOC_LEN_ERR")
            self.assertEqual(pattern(9, 2048, 1024), self.local(1024, 2048))

    def test_REQ_CLS_B_04_reserved_syndrome(self):
        """Also RX-FATAL-25."""
        self.req()
        for syndrome in (0x45, 0x40, 0x5F) + tuple(range(0x64, 0x80)):
            self.bad(("SEND", 10), [self.peer.acknowledge(S, syndrome)], fatal=25)
            self.assertEqual(1, self.delta("rx_syndrome_22"))

    def test_RX_SYN_22_reserved_syndrome_dropped(self):
        for syndrome in (0x45, 0x70):
            self.req(knobs={"req.bad_aeth": "drop"})
            self.sends(1)
            self.assertEqual([], self.nak(S, syndrome))
            self.assertEqual(1, self.delta("rx_syndrome_22"))
            self.well()
            self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
            self.ack(S)
            self.succeeded(self.ids(1))

    def test_RX_SYN_23_bad_responses_are_recorded(self):
        self.req()
        self.post(self.wr("RDMA_READ", 2048))
        self.feed(self.read_resp(roce.READ_MIDDLE, S, bytes(1024)))
        for r in self.records(1):
            self.assertEqual((1 << 23, S, QPN), (r["syndrome"], r["psn"], r["qp_num"]))
        self.ended("BAD_RESP_ERR", 100, fatal=27)

    def test_REQ_CLS_B_06_ack_for_a_read(self):
        self.req()
        self.post(self.wr("RDMA_READ", 100))
        self.assertEqual([], self.ack(S))
        self.well()
        self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
        self.feed(self.read_answer(S, bytes(100)))
        self.succeeded(self.ids(1))
        self.req(knobs={"req.ack_for_read": "fatal"})
        self.post(self.wr("RDMA_READ", 100))
        self.ack(S)
        self.ended("BAD_RESP_ERR", 100)

    def test_REQ_CLS_B_07_responses_of_two_copies(self):
        self.req()
        data = pattern(3, 4096)
        self.post(self.wr("RDMA_READ", 4096))
        old = self.read_answer(S, data)
        self.feed(old[0])
        self.assertEqual([S + 1], self.psns(self.until_sent(300 * MS)[1]))
        new = self.read_answer(S + 1, data[1024:])
        self.feed(old[0], new[0], old[1], new[1], old[2], new[2], old[3])
        self.succeeded(self.ids(1))
        self.assertEqual(data, self.local(0, 4096))
        self.well()

    def test_REQ_CLS_B_08_responses_in_err(self):
        """Also QP-14."""
        self.req()
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        before = self.local(0, 100)
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.statuses()
        self.assertEqual([], self.feed(self.read_answer(S, b"\x11" * 100),
                                       self.peer.acknowledge(S + 1),
                                       self.peer.acknowledge(S + 1, NAK_INV)))
        self.assertEqual([], self.cqes())
        self.assertEqual(before, self.local(0, 100))
        self.no_more()

    def test_REQ_CLS_E_01_ghosts(self):
        """Ghost or duplicate acknowledgements have no effect."""
        self.req()
        self.sends(2)
        self.ack(S + 1)
        self.succeeded(self.ids(2))
        for psn in (S + 1, S, S + 2, S + 2**22, S - 2**22):
            for syndrome in (roce.SYN_ACK, roce.NAK_SEQ, roce.NAK_INV, 0x45):
                self.assertEqual([], self.nak(psn, syndrome))
        self.assertEqual([], self.cqes())
        self.well()

    def test_REQ_CLS_F_01_completion_queue_full(self):
        """Also CQ-05, AE-03, AE-04: one event for the queue, one for the QP."""
        self.req(cqe=1, recv=1)
        self.sends(3)
        self.ack(S + 2)
        self.dut.run()
        events = [(e["event_type"], e.get("cq"), e.get("qp_num")) for e in self.events()]
        self.assertEqual([("CQ_ERR", "cq0", None), ("QP_FATAL", None, QPN)], events)
        self.assertEqual("ERR", self.state())
        self.assertEqual([(100, "SUCCESS")], self.statuses())
        self.assertEqual(["WR_FLUSH_ERR"], [c["status"] for c in self.cqes("rcq")])
        self.no_more()


if __name__ == "__main__":
    dut.main()
