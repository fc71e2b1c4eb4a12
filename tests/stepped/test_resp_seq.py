# SPDX-License-Identifier: BSD-3-Clause
"""RESP-SEQ: what a PSN ahead of the expected one draws."""
import dut
import roce
from dut import RKEY, VA, Ack, E, Nak, ReadResponse
from roce import NAK_SEQ, data

HALF = 1 << 23


class Sequence(dut.DutCase):

    def test_RESP_SEQ_01_gap_draws_one_nak(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E + 1, b"x")), Nak(E, NAK_SEQ, 0))
        self.assertEqual(1, self.delta("out_of_sequence"))
        self.unchanged()

    def test_RESP_SEQ_01_msn_is_that_of_completed_messages(self):
        self.resp()
        self.expect(self.each(self.peer.send_only(E), self.peer.send_only(E + 1),
                              self.peer.send_only(E + 3)),
                    Ack(E, 1), Ack(E + 1, 2), Nak(E + 2, NAK_SEQ, 2))

    def test_RESP_SEQ_02_only_one_nak_for_a_gap(self):
        self.resp()
        p = self.peer
        got = self.each(*[p.send_only(E + i, b"x") for i in (1, 2, 3, 1)])
        self.expect(got, Nak(E, NAK_SEQ, 0))
        self.silent()
        self.assertEqual(4, self.delta("out_of_sequence"))
        self.resp()
        self.expect(self.feed(*[p.send_only(E + i, b"x") for i in (1, 2, 3, 1)]),
                    Nak(E, NAK_SEQ, 0))

    def test_RESP_SEQ_03_recovery(self):
        self.resp()
        p = self.peer
        self.expect(self.feed(p.send_only(E + 1, b"too early")), Nak(E, NAK_SEQ, 0))
        self.expect(self.each(p.send_only(E, b"first"), p.send_only(E + 1, b"second")),
                    Ack(E, 1), Ack(E + 1, 2))
        self.assertEqual([(0, "SUCCESS"), (1, "SUCCESS")], self.statuses())
        self.assertEqual((b"first", b"second"), (self.slot(0, 5), self.slot(1, 6)))

    def test_knob_psn_check_is_on_by_default(self):
        """A replayed PSN is a duplicate, one further on a gap: nobody gets resync unasked."""
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E), p.send_only(E), p.send_only(E + 7)),
                    Ack(E, 1), Ack(E, 1), Nak(E + 1, NAK_SEQ, 1))
        self.assertEqual(1, len(self.statuses()))

    def test_knob_psn_check_resync_takes_each_request_as_the_expected_one(self):
        """For benchmarks: what a replay sends again is placed, completed and acknowledged again."""
        self.resp(recv=2, knobs={"resp.psn_check": "resync"})
        p = self.peer
        self.expect(self.each(p.send_only(E + 9, b"one"), p.send_only(E + 9, b"two")),
                    Ack(E + 9, 1), Ack(E + 9, 2))
        self.assertEqual([(0, "SUCCESS"), (1, "SUCCESS")], self.statuses())
        self.assertEqual((b"one", b"two"), (self.slot(0, 3), self.slot(1, 3)))
        for payload in (b"first", b"again"):
            self.expect(self.feed(p.write_only(E - 3, payload, VA, RKEY)), Ack(E - 3))
            self.assertEqual(payload, self.mem(0, 5))
        self.assertEqual((0, 0), (self.delta("out_of_sequence"), self.delta("duplicate_request")))

    def test_RESP_SEQ_04_latch_arms_again(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E + 1), p.send_only(E), p.send_only(E + 1),
                              p.send_only(E + 3)),
                    Nak(E, NAK_SEQ, 0), Ack(E, 1), Ack(E + 1, 2), Nak(E + 2, NAK_SEQ, 2))

    def test_RESP_SEQ_05_duplicates_are_answered_while_latched(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E), p.send_only(E + 2)), Ack(E, 1),
                    Nak(E + 1, NAK_SEQ, 1))
        self.expect(self.feed(p.send_only(E)), Ack(E, 1))
        self.silent(self.feed(p.send_only(E + 2)))
        self.assertEqual(E + 1, self.qp()["epsn"])

    def test_RESP_SEQ_06_no_queue_impact(self):
        self.resp()
        self.expect(self.each(*[self.peer.send_only(E + i, b"x") for i in (1, 2, 3, 1)]),
                    Nak(E, NAK_SEQ, 0))
        self.unchanged(recv=4)

    def test_RESP_SEQ_07_earlier_requests_finish_first(self):
        self.resp(mr_fill="pattern:4")
        p = self.peer
        got = self.feed(p.read_req(E, VA, RKEY, 4096), p.send_only(E + 5, b"x"))
        self.expect(got, ReadResponse(E, roce.pattern(4, 4096), 1), Nak(E + 4, NAK_SEQ, 1))

    def test_RESP_SEQ_08_out_of_sequence_read(self):
        self.resp()
        self.expect(self.feed(self.peer.read_req(E + 1, VA, RKEY, 3000)), Nak(E, NAK_SEQ, 0))
        self.unchanged()

    def test_RESP_SEQ_09_window_ahead(self):
        for start in (0x800000, 0x000005):
            for ahead in (1, 2, HALF - 1):
                with self.subTest(start=start, ahead=ahead):
                    self.resp(rq_psn=start)
                    self.expect(self.feed(self.peer.send_only(start + ahead)),
                                Nak(start, NAK_SEQ, 0))
                    self.unchanged(epsn=start)

    def test_RESP_SEQ_09_window_behind(self):
        """A SEND done at E, so that an ACK can be told from silence; then one from behind."""
        for start in (0x800000, 0x000005):
            for behind in (1, 2, HALF - 1):
                with self.subTest(start=start, behind=behind):
                    self.resp(rq_psn=start - 1)
                    self.expect(self.feed(self.peer.send_only(start - 1, b"a")), Ack(start - 1, 1))
                    self.expect(self.feed(self.peer.send_only(start - behind, b"b")),
                                Ack(start - 1, 1))
                    self.assertEqual([(0, "SUCCESS")], self.statuses())
                    self.assertEqual(start, self.qp()["epsn"])
                    self.assertEqual(1, self.delta("duplicate_request"))

    def test_RESP_SEQ_10_half_the_window(self):
        for start in (0x800000, 0x000005):
            self.resp(rq_psn=start)
            self.expect(self.feed(self.peer.send_only(start + HALF)), Nak(start, NAK_SEQ, 0))

    def test_RESP_SEQ_10_knob_duplicate(self):
        self.resp(knobs={"resp.half_window": "duplicate"})
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.expect(self.feed(self.peer.send_only(E + 1 + HALF)), Ack(E, 1))

    def test_RESP_SEQ_11_loss_inside_a_message(self):
        self.resp()
        first, middle, last = self.peer.send(E, data(2500))
        self.expect(self.each(first, last), Nak(E + 1, NAK_SEQ, 0))
        self.expect(self.each(middle, last), Ack(E + 2, 1))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.assertEqual(data(2500), self.slot(0, 2500))

    def test_RESP_SEQ_11_loss_inside_a_write(self):
        self.resp()
        first, middle, last = self.peer.write(E, data(2500), VA, RKEY)
        self.expect(self.each(first, last, middle, last), Nak(E + 1, NAK_SEQ, 0), Ack(E + 2, 1))
        self.assertEqual(data(2500), self.mem(0, 2500))

    def test_RESP_SEQ_12_tail_loss_is_silent(self):
        self.resp()
        first, middle, _ = self.peer.send(E, data(2500))
        self.silent(self.feed(first, middle), ms=5000)

    def test_RESP_SEQ_13_bad_packet_at_epsn_keeps_the_latch(self):
        self.resp()
        p = self.peer
        self.expect(self.feed(p.send_only(E + 1)), Nak(E, NAK_SEQ, 0))
        bad = p.send_only(E, b"bad")
        self.silent(self.feed(roce.flip(bad, len(bad) * 8 - 1)))
        self.silent(self.feed(p.send_only(E + 1)))
        self.expect(self.feed(p.send_only(E, b"good")), Ack(E, 1))


if __name__ == "__main__":
    dut.main()
