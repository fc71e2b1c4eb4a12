# SPDX-License-Identifier: BSD-3-Clause
"""RESP-RNR: a request that needs a receive WQE and finds none."""
import dut
import roce
from dut import MS, QPN, RKEY, VA, Ack, AtomicAck, E, ReadResponse, Rnr
from roce import data


class ReceiverNotReady(dut.DutCase):

    def test_RESP_RNR_01_send_without_a_wqe(self):
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Rnr(E, 12, 0))
        self.assertEqual((1, 1), (self.delta("out_of_buffer"), self.delta("send_rnr_err")))

    def test_RESP_RNR_02_sends_of_every_kind(self):
        for make in (lambda p: p.send_first(E, data(1024)), lambda p: p.send_only(E),
                     lambda p: p.send_only_imm(E), lambda p: p.send_only_inv(E, b"x", 0x7777),
                     lambda p: p.write_only_imm(E, b"x", VA, RKEY)):
            self.resp(recv=0)
            self.expect(self.feed(make(self.peer)), Rnr(E, 12, 0))
            self.assertEqual(bytes(8), self.mem(0, 8))
            self.unchanged(recv=0)

    def test_RESP_RNR_02_write_of_several_packets_at_its_last(self):
        self.resp(recv=0)
        p = self.peer
        self.expect(self.each(p.write_first(E, data(1024), VA, RKEY, 2148),
                              p.write_middle(E + 1, data(1024, 2)),
                              p.write_last_imm(E + 2, data(100, 3))), Rnr(E + 2, 12, 0))
        self.assertEqual(data(1024) + data(1024, 2), self.mem(0, 2048))
        self.assertEqual([], self.cqes())
        self.post_recv()
        self.expect(self.feed(p.write_last_imm(E + 2, data(100, 3)), ns=MS), Ack(E + 2, 1))
        self.assertEqual(data(100, 3), self.mem(2048, 100))
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_RESP_RNR_02_plain_write_read_atomic_need_none(self):
        self.resp(recv=0)
        p = self.peer
        self.expect(self.each(p.write_only(E, b"w", VA, RKEY), p.write(E + 1, data(2500), VA, RKEY),
                              p.read_req(E + 4, VA, RKEY, 2500),
                              p.fetch_add(E + 7, VA + 4096, RKEY, 1)),
                    Ack(E, 1), Ack(E + 3, 2), ReadResponse(E + 4, data(2500), 3),
                    AtomicAck(E + 7, 0, 4))

    def test_RESP_RNR_03_timer_code_is_the_qps(self):
        for t in range(32):
            with self.subTest(min_rnr_timer=t):
                self.resp(recv=0, min_rnr_timer=t)
                self.expect(self.feed(self.peer.send_only(E)), Rnr(E, t, 0))

    def test_RESP_RNR_03_modified_timer_code(self):
        self.resp(recv=0)
        self.rpc("qp_modify", qp_num=QPN, min_rnr_timer=25)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 25, 0))

    def test_RESP_RNR_04_no_queue_impact(self):
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 12, 0))
        self.unchanged(recv=0)

    def test_RESP_RNR_05_silence_after_an_rnr(self):
        self.resp(recv=0)
        p = self.peer
        self.expect(self.feed(p.send_only(E)), Rnr(E, 12, 0))
        self.post_recv(3)
        self.silent(self.each(p.send_only(E + 1), p.send_only(E + 2)), ms=1)
        self.expect(self.feed(p.send_only(E)), Ack(E, 1))

    def test_RESP_RNR_05_packets_right_behind(self):
        """In one burst: the RNR NAK is all that is said."""
        self.resp(recv=0)
        p = self.peer
        self.expect(self.feed(*[p.send_only(E + i) for i in range(4)]), Rnr(E, 12, 0))

    def test_RESP_RNR_06_retry_is_accepted(self):
        self.resp(recv=0)
        p = self.peer
        self.expect(self.feed(p.send_only(E, b"retry")), Rnr(E, 12, 0))
        self.post_recv(2)
        self.expect(self.feed(p.send_only(E, b"retry"), ns=640_000), Ack(E, 1))
        self.expect(self.feed(p.send_only(E + 1, b"next")), Ack(E + 1, 2))
        self.assertEqual([(0, "SUCCESS"), (1, "SUCCESS")], self.statuses())
        self.assertEqual(b"retry", self.slot(0, 5))

    def test_RESP_RNR_07_still_not_ready(self):
        self.resp(recv=0)
        p = self.peer
        self.expect(self.feed(p.send_only(E)), Rnr(E, 12, 0))
        for _ in range(3):
            self.expect(self.feed(p.send_only(E), ns=MS), Rnr(E, 12, 0))
        self.assertEqual(4, self.delta("send_rnr_err"))

    def test_RESP_RNR_08_early_retry_is_processed(self):
        self.resp(recv=0, min_rnr_timer=31)
        p = self.peer
        self.expect(self.feed(p.send_only(E)), Rnr(E, 31, 0))
        self.post_recv()
        self.expect(self.feed(p.send_only(E), ns=MS), Ack(E, 1))

    def test_RESP_RNR_08_knob_drop(self):
        self.resp(recv=0, min_rnr_timer=31, knobs={"resp.early_retry": "drop"})
        p = self.peer
        self.expect(self.feed(p.send_only(E)), Rnr(E, 31, 0))
        self.post_recv()
        self.silent(self.feed(p.send_only(E), ns=MS))
        self.expect(self.feed(p.send_only(E), ns=500 * MS), Ack(E, 1))

    def test_RESP_RNR_09_duplicates_are_answered(self):
        self.resp(recv=1)
        p = self.peer
        self.expect(self.each(p.send_only(E), p.send_only(E + 1)), Ack(E, 1), Rnr(E + 1, 12, 1))
        self.expect(self.feed(p.send_only(E)), Ack(E, 1))
        self.silent(self.feed(p.send_only(E + 2)), ms=1)

    def test_RESP_RNR_10_earlier_requests_finish_first(self):
        self.resp(recv=1)
        got = self.feed(self.peer.send_only(E), self.peer.send_only(E + 1))
        self.assertTrue(Rnr(E + 1, 12, 1).matches(got[-1]), got)
        self.assertTrue(len(got) == 1 or (len(got) == 2 and Ack(E, 1).matches(got[0])), got)
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_RESP_RNR_10_a_read_before_it(self):
        self.resp(recv=0, mr_fill="pattern:1")
        got = self.feed(self.peer.read_req(E, VA, RKEY, 60000), self.peer.send_only(E + 59))
        self.expect(got, ReadResponse(E, roce.pattern(1, 60000), 1), Rnr(E + 59, 12, 1))


if __name__ == "__main__":
    dut.main()
