# SPDX-License-Identifier: BSD-3-Clause
"""REQ-NAK and REQ-IMPL: NAKs, and responses that show that another one is missing."""
import dut
import roce
from dut import MS
from dut_req import RVA, S, ReqCase, Sent
from roce import NAK_INV, NAK_RAE, NAK_ROE, NAK_SEQ, pattern


class Naks(ReqCase):

    def test_REQ_NAK_01_REQ_NAK_02_rewind(self):
        self.req()
        self.sends(5)
        self.assertEqual([S + 2, S + 3, S + 4], self.psns(self.nak(S + 2, NAK_SEQ)))
        self.succeeded(self.ids(2))
        self.assertEqual((1, 1), (self.delta("packet_seq_err"), self.delta("rcvd_seq_err")))
        self.ack(S + 4)
        self.succeeded([102, 103, 104])
        self.well()

    def test_REQ_NAK_01_inside_a_message(self):
        self.req()
        first = self.sends(1, 5000)
        again = self.nak(S + 3, NAK_SEQ)
        self.assertEqual([(f.opcode, f.psn, f.payload) for f in first[3:]],
                         [(f.opcode, f.psn, f.payload) for f in again])

    def test_REQ_NAK_03_stray(self):
        self.req()
        self.sends(5)
        self.ack(S + 1)
        self.succeeded(self.ids(2))
        for psn in (S + 1, S + 9):
            self.assertEqual([], self.nak(psn, NAK_SEQ))
        self.assertEqual(3, self.qp()["retry_cnt_left"])

    def test_REQ_NAK_04_repeated(self):
        self.req(retry_cnt=3)
        self.sends(3)
        for left in (2, 1):
            self.assertEqual([S, S + 1, S + 2], self.psns(self.nak(S, NAK_SEQ)))
            self.assertEqual(left, self.qp()["retry_cnt_left"])
        # Two in one burst: one pass in flight at a time.
        self.req(retry_cnt=3)
        self.sends(3)
        got = self.feed(self.peer.acknowledge(S, NAK_SEQ), self.peer.acknowledge(S, NAK_SEQ))
        self.assertEqual([S, S + 1, S + 2], self.psns(got))

    def fatal_nak(self, syndrome, status, counter):
        self.req(recv=2)
        self.sends(4)
        self.assertEqual([], self.nak(S + 1, syndrome))
        self.ended(status, 101, ok=[100], flushed=[102, 103], fatal=10)
        self.assertEqual([(0, "WR_FLUSH_ERR"), (1, "WR_FLUSH_ERR")], self.statuses("rcq"))
        self.assertEqual(1, self.delta(counter))
        self.assertEqual(0, self.delta("req_resent_pkts"))

    def test_REQ_NAK_05_invalid_request(self):
        """Also REQ-NAK-09, REQ-NAK-10, CQ-02, CQ-03, QP-16, RX-FATAL-10."""
        self.fatal_nak(NAK_INV, "REM_INV_REQ_ERR", "req_remote_invalid_request")
        self.assertEqual(1, self.delta("rx_syndrome_23"))

    def test_REQ_NAK_06_remote_access(self):
        self.fatal_nak(NAK_RAE, "REM_ACCESS_ERR", "req_remote_access_errors")

    def test_REQ_NAK_07_remote_operation(self):
        self.fatal_nak(NAK_ROE, "REM_OP_ERR", "req_remote_operation_errors")

    def test_QP_14_a_refused_request_ends_the_answers_too(self):
        """The QP's responder owes a READ when its requester fails: nothing of it is sent."""
        self.req()
        self.make("mr_register", name="mr0", pd="pd0", length=dut.MR_LEN, addr=hex(dut.VA),
                  rkey=hex(dut.RKEY), access=dut.ALL_REMOTE)
        self.sends(1)
        self.assertEqual([], self.feed(self.peer.read_req(dut.E, dut.VA, dut.RKEY, 50000),
                                       self.peer.acknowledge(S, NAK_INV)))
        self.assertEqual(1, self.delta("rx_read_requests"))
        self.ended("REM_INV_REQ_ERR", 100)

    def test_REQ_NAK_08_inside_a_send(self):
        self.req()
        self.sends(1, 2500)
        self.nak(S + 1, NAK_INV)
        self.ended("REM_INV_REQ_ERR", 100)

    def test_REQ_NAK_08_inside_a_read(self):
        self.req()
        self.post(self.wr("RDMA_READ", 4096), self.wr("SEND", 1))
        self.feed(self.read_answer(S, bytes(4096))[:2])
        self.nak(S + 2, NAK_RAE)
        self.ended("REM_ACCESS_ERR", 100, flushed=[101])

    def test_RX_ERR_04_qp_show_tells_what_happened(self):
        self.req()
        self.sends(2)
        self.nak(S + 1, NAK_RAE)
        f = self.qp()["fatal"]
        self.assertEqual((10, S + 1, "REQ-NAK-06", "RC_ACKNOWLEDGE", NAK_RAE),
                         (f["fatal_code"], f["psn"], f["rule"], f["opcode"], f["syndrome"]))


class Implied(ReqCase):

    def test_REQ_IMPL_01_ack_beyond_a_read(self):
        self.req()
        self.post(self.wr("SEND", 10), self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.assertEqual([S + 1, S + 2], self.psns(self.ack(S + 2)))
        self.succeeded(self.ids(1))
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.feed(self.read_answer(S + 1, bytes(100)), self.peer.acknowledge(S + 2))
        self.succeeded([101, 102])
        self.well()

    def lost_response(self):
        self.req()
        data = pattern(3, 4096)
        self.post(self.wr("RDMA_READ", 4096), self.wr("SEND", 10))
        answer = self.read_answer(S, data)
        return data, self.feed(answer[0], answer[1], answer[3])

    def test_REQ_IMPL_02_REQ_IMPL_04_resume(self):
        _, got = self.lost_response()
        self.expect(got, Sent(roce.READ_REQ, S + 2, va=RVA + 2048, length=2048),
                    Sent(roce.SEND_ONLY, S + 4))
        self.assertEqual(1, self.delta("implied_nak_seq_err"))

    def test_REQ_IMPL_04_the_missing_part_alone(self):
        self.req(knobs={"req.read_gap": "fill"})
        data = pattern(3, 5120)
        self.post(self.wr("RDMA_READ", 5120), self.wr("SEND", 10))
        answer = self.read_answer(S, data)
        got = self.feed(answer[0], answer[2])
        self.expect(got, Sent(roce.READ_REQ, S + 1, va=RVA + 1024, length=1024),
                    Sent(roce.SEND_ONLY, S + 5))
        self.assertEqual([], self.feed(answer[3], answer[4]))
        self.feed(self.read_answer(S + 1, data[1024:2048]), self.peer.acknowledge(S + 5))
        self.succeeded(self.ids(2))
        self.assertEqual(data, self.local(0, 5120))
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.well()

    def test_REQ_IMPL_04_later_reads_are_kept(self):
        self.req(knobs={"req.read_gap": "keep"})
        data = pattern(3, 4096)
        self.post(self.wr("RDMA_READ", 2048), self.wr("RDMA_READ", 2048, offset=2048))
        answer = self.read_answer(S, data[:2048]) + self.read_answer(S + 2, data[2048:])
        got = self.feed(answer[0], answer[2])
        self.expect(got, Sent(roce.READ_REQ, S + 1, va=RVA + 1024, length=1024))
        self.assertEqual([], self.feed(answer[3]))
        self.succeeded([])
        self.assertEqual([], self.feed(*self.read_answer(S + 1, data[1024:2048])))
        self.succeeded(self.ids(2))
        self.assertEqual(data, self.local(0, 4096))
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.well()

    def test_REQ_IMPL_05_overtaken_by_two(self):
        self.req(knobs={"req.read_gap": "fill", "req.reorder": 3})
        data = pattern(3, 5120)
        self.post(self.wr("RDMA_READ", 5120))
        answer = self.read_answer(S, data)
        self.assertEqual([], self.feed(*[answer[i] for i in (0, 2, 3, 1, 4)]))
        self.succeeded(self.ids(1))
        self.assertEqual(data, self.local(0, 5120))
        self.assertEqual(0, self.delta("implied_nak_seq_err"))
        self.well()

    def test_REQ_IMPL_09_a_new_stream(self):
        data, _ = self.lost_response()
        self.feed(self.read_answer(S + 2, data[2048:]), self.peer.acknowledge(S + 4))
        self.succeeded(self.ids(2))
        self.assertEqual(data, self.local(0, 4096))

    def test_REQ_IMPL_09_the_old_stream_goes_on(self):
        data, _ = self.lost_response()
        self.feed(self.read_resp(roce.READ_MIDDLE, S + 2, data[2048:3072]),
                  self.read_resp(roce.READ_LAST, S + 3, data[3072:]))
        self.succeeded(self.ids(1))
        self.assertEqual(data, self.local(0, 4096))

    def test_REQ_IMPL_09_one_packet_left(self):
        for opcode in (roce.READ_ONLY, roce.READ_LAST):
            self.req()
            data = pattern(3, 2048)
            self.post(self.wr("RDMA_READ", 2048), self.wr("SEND", 10))
            self.feed(self.read_answer(S, data)[0])
            self.assertEqual([S + 1, S + 2], self.psns(self.ack(S + 2)))
            self.feed(self.read_resp(opcode, S + 1, data[1024:]))
            self.succeeded(self.ids(1))
            self.assertEqual(data, self.local(0, 2048))

    def test_REQ_IMPL_03_atomic(self):
        self.req()
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8), self.wr("SEND", 10))
        self.assertEqual([S, S + 1], self.psns(self.ack(S + 1)))
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.feed(self.atomic_ack(S, 77), self.peer.acknowledge(S + 1))
        self.succeeded(self.ids(2))
        self.assertEqual((77).to_bytes(8, "little"), self.local(0, 8))

    def test_REQ_IMPL_05_one_retry_for_a_burst(self):
        self.req(retry_cnt=1)
        self.post(self.wr("RDMA_READ", 100), *[self.wr("SEND", 10) for _ in range(8)])
        got = self.feed(*[self.peer.acknowledge(S + 1 + i) for i in range(8)])
        self.assertEqual([S + i for i in range(9)], self.psns(got))
        self.assertEqual(0, self.qp()["retry_cnt_left"])
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.feed(self.read_answer(S, bytes(100)), self.peer.acknowledge(S + 8))
        self.succeeded(self.ids(9))

    def test_REQ_IMPL_05_each_second_copy_acknowledged(self):
        """Linux acknowledges each packet that it knows, AckReq or not, with the newest PSN: these
        ACKs lie beyond the READ whose answer is right behind them."""
        self.req(retry_cnt=2)
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8), self.wr("SEND", 5000),
                  self.wr("RDMA_READ", 2048), self.wr("SEND", 10))
        self.assertEqual([S + i for i in (0, 1, 2, 3, 4, 5, 6, 8)],
                         self.psns(self.ack(S + 5)))      # the ATOMIC's answer is lost
        acks = [self.peer.acknowledge(S + 8) for _ in range(5)]
        self.feed(self.peer.acknowledge(S + 8), self.atomic_ack(S, 77))
        for ack in acks:        # each in a burst of its own
            self.feed(ack)
        self.feed(self.read_answer(S + 6, bytes(2048)), self.peer.acknowledge(S + 8))
        self.succeeded(self.ids(4))
        self.well()

    def test_REQ_IMPL_06_exhaustion(self):
        self.req(retry_cnt=1)
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.assertEqual([S, S + 1], self.psns(self.ack(S + 1)))
        self.ack(S + 1)
        self.until_sent(300 * MS)
        self.ended("RETRY_EXC_ERR", 100, flushed=[101])

    def test_REQ_IMPL_07_nak_beyond_a_read(self):
        for syndrome in (NAK_INV, roce.SYN_RNR + 12):
            self.req()
            self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
            self.assertEqual([S, S + 1], self.psns(self.nak(S + 1, syndrome)))
            self.assertEqual(2, self.qp()["retry_cnt_left"])
            self.assertEqual(3, self.qp()["rnr_retry_left"])
            self.well()

    def test_REQ_IMPL_07_rnr_that_comes_again(self):
        self.req()
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.rnr(S + 1, 12)
        self.assertEqual([], self.feed(self.read_answer(S, bytes(100)),
                                       self.peer.acknowledge(S + 1, roce.SYN_RNR + 12)))
        self.succeeded(self.ids(1))
        took, got = self.until_sent(10 * MS)
        self.assertEqual([S + 1], self.psns(got))
        self.assertGreaterEqual(took, 640000)

    def test_REQ_IMPL_08_ack_inside_a_read(self):
        self.req()
        self.post(self.wr("RDMA_READ", 4096))
        self.expect(self.ack(S + 2), Sent(roce.READ_REQ, S, va=RVA, length=4096))
        self.assertEqual(2, self.qp()["retry_cnt_left"])


if __name__ == "__main__":
    dut.main()
