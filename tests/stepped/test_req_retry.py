# SPDX-License-Identifier: BSD-3-Clause
"""REQ-RETRY and TMR: the transport timer and the retries it begins."""
import dut
import roce
from dut import MS, QPN
from dut_req import S, ReqCase, Sent, in_time, transport_ns

US = 1000                       # ns


class Retry(ReqCase):

    def test_REQ_RETRY_01_one_counter_for_three_causes(self):
        self.req(retry_cnt=3)
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.until_sent(300 * MS)                        # timeout
        self.assertEqual(2, self.qp()["retry_cnt_left"])
        self.assertEqual([S, S + 1], self.psns(self.nak(S, roce.NAK_SEQ)))
        self.assertEqual(1, self.qp()["retry_cnt_left"])
        self.rnr(S, 1)
        q = self.qp()
        self.assertEqual((1, 2), (q["retry_cnt_left"], q["rnr_retry_left"]))
        self.until_sent(10 * MS)
        self.until_sent(300 * MS)                        # another timeout
        self.assertEqual(0, self.qp()["retry_cnt_left"])
        self.assertEqual((2, 1, 1), (self.delta("local_ack_timeout_err"),
                                     self.delta("packet_seq_err"), self.delta("rcvd_rnr_err")))

    def test_REQ_RETRY_01_implied_nak_counts(self):
        self.req(retry_cnt=3)
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.assertEqual([S, S + 1], self.psns(self.ack(S + 1)))
        self.assertEqual(2, self.qp()["retry_cnt_left"])
        self.assertEqual(1, self.delta("implied_nak_seq_err"))

    def test_ICRC_06_bad_icrc_ends_in_a_timeout(self):
        """A corrupt ACK is no ACK: nothing completes, the timer resends, a good one completes."""
        self.req(retry_cnt=3)
        self.sends(1)
        good = self.peer.acknowledge(S, msn=1)
        self.assertEqual([], self.feed(roce.flip(good, len(good) * 8 - 1)))
        self.assertEqual(1, self.delta("rx_icrc_encapsulated"))
        self.assertEqual(1, self.qp()["outstanding"])
        took, got = self.until_sent(5 * transport_ns(14))
        self.expect(got, Sent(roce.SEND_ONLY, S))
        self.assertGreaterEqual(took, transport_ns(14))
        self.assertEqual(1, self.delta("local_ack_timeout_err"))
        self.assertEqual([], self.feed(good))
        self.succeeded([100])

    def transmissions(self, retry_cnt, timeout=10, before=None):
        """@param before the number until it is modified in SQD."""
        self.req(retry_cnt=retry_cnt if before is None else before, timeout=timeout)
        if before is not None:
            self.in_sqd(retry_cnt=retry_cnt)
        seen = len(self.sends(1))
        while True:
            _, got = self.until_sent(5 * transport_ns(timeout))
            if not got:
                break
            self.expect(got, Sent(roce.SEND_ONLY, S))
            seen += 1
        self.assertEqual(retry_cnt + 1, seen)
        self.assertEqual(retry_cnt + 1, self.delta("local_ack_timeout_err"))
        for name in ("retry_exceeded_err", "req_transport_retries_exceeded", "req_cqe_error"):
            self.assertEqual(1, self.delta(name), name)
        self.ended("RETRY_EXC_ERR", 100, fatal=6)

    def test_REQ_RETRY_02_number_of_retries(self):
        """Also RX-FATAL-06: the code of exhausted retries."""
        for n in (0, 1, 3):
            self.transmissions(n)

    def test_REQ_RETRY_02_a_number_set_in_SQD(self):
        """It counts from there on, not only behind the next acknowledgement."""
        for before, n in ((0, 3), (7, 1)):
            self.transmissions(n, before=before)

    def test_REQ_RETRY_03_seven_is_finite(self):
        self.transmissions(7, timeout=8)

    def test_REQ_RETRY_04_reload_on_progress(self):
        self.req(retry_cnt=2)
        self.sends(4)
        for _ in range(2):
            self.assertEqual([S, S + 1, S + 2, S + 3], self.psns(self.until_sent(300 * MS)[1]))
        self.ack(S)
        self.assertEqual(2, self.qp()["retry_cnt_left"])
        for _ in range(2):
            self.assertEqual([S + 1, S + 2, S + 3], self.psns(self.until_sent(300 * MS)[1]))
        self.ack(S + 3)
        self.succeeded(self.ids(4))
        self.well()

    def test_REQ_RETRY_05_ghosts_do_not_reload(self):
        self.req(retry_cnt=2)
        self.sends(1)
        for _ in range(2):
            self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
            self.ack(S - 1)
        self.assertEqual([], self.until_sent(300 * MS)[1])
        self.ended("RETRY_EXC_ERR", 100)

    def test_REQ_RETRY_06_nak_with_progress(self):
        self.req(retry_cnt=1)
        self.sends(10)
        for i in range(1, 10):
            self.assertEqual([S + k for k in range(i, 10)],
                             self.psns(self.nak(S + i, roce.NAK_SEQ)))
        self.ack(S + 9)
        self.succeeded(self.ids(10))
        self.well()

    def test_REQ_RETRY_07_exhaustion(self):
        """Also CQ-03: the fields that count; QP-16."""
        self.req(retry_cnt=1, recv=2)
        self.sends(4)
        self.assertEqual([S, S + 1, S + 2, S + 3], self.psns(self.nak(S, roce.NAK_SEQ)))
        self.assertEqual([], self.nak(S, roce.NAK_SEQ))
        bad = self.ended("RETRY_EXC_ERR", 100, flushed=[101, 102, 103], fatal=6)
        self.assertEqual("REQ-RETRY-07", bad["cause"]["rule"])
        self.assertEqual([(0, "WR_FLUSH_ERR"), (1, "WR_FLUSH_ERR")], self.statuses("rcq"))
        self.assertEqual((2, 2, 1, 3), tuple(self.delta(n) for n in (
            "packet_seq_err", "rcvd_seq_err", "req_cqe_error", "req_cqe_flush_error")))

    def test_REQ_RETRY_08_recovered_errors_stay_invisible(self):
        """Also REQ-CLS-A-01."""
        self.req()
        self.sends(1)
        self.until_sent(300 * MS)
        self.nak(S, roce.NAK_SEQ)
        self.rnr(S, 1)
        self.until_sent(10 * MS)
        self.ack(S)
        self.succeeded(self.ids(1))
        self.well()

    def test_REQ_RETRY_10_counters_are_independent(self):
        self.req(retry_cnt=1, rnr_retry=1)
        self.sends(1)
        self.until_sent(300 * MS)
        self.rnr(S, 1)
        q = self.qp()
        self.assertEqual((0, 0), (q["retry_cnt_left"], q["rnr_retry_left"]))
        self.until_sent(10 * MS)
        self.ack(S)
        self.succeeded(self.ids(1))

    # -- timers --

    def first_resend(self, n, **kw):
        self.req(timeout=n, **kw)
        self.sends(1)
        return self.until_sent(300 * MS)[0]

    def test_TMR_01_TMR_02_timeout_and_bounds(self):
        for n in (8, 10, 14):
            took = self.first_resend(n)
            ttr = transport_ns(n)
            self.assertTrue(in_time(took, ttr), "%d: %d, not %d" % (n, took, ttr))

    def test_TMR_03_zero_disables(self):
        self.req(timeout=0)
        self.sends(1)
        self.no_more(ms=10000)
        self.assertEqual({"transport_us": None, "rnr_us": None}, self.qp()["timers"])
        self.ack(S)
        self.succeeded(self.ids(1))

    def test_TMR_04_minimum(self):
        for asked, n in ((1, 7), (9, 9)):
            took = self.first_resend(asked, knobs={"tmr.min_timeout": 7})
            self.assertTrue(in_time(took, transport_ns(n)), took)

    def test_TMR_05_what_arms(self):
        for opcode, length in (("SEND", 10), ("RDMA_READ", 10), ("ATOMIC_FETCH_AND_ADD", 8)):
            self.req()
            self.post(self.wr(opcode, length))
            self.assertIsNotNone(self.qp()["timers"]["transport_us"], opcode)

    def test_TMR_05_packets_without_ackreq_arm_nothing(self):
        """Part of a long message is out, none of it with AckReq; then all, and the last asks."""
        n = 240
        self.req(path_mtu=256, knobs={"req.ackreq_interval": 255, "cc.window": 1024})
        self.post_raw(self.wr("RDMA_WRITE", n * 256))
        part = [roce.Frame(bytes.fromhex(line.split()[2])) for line in self.dut.command("turn 1")]
        self.assertTrue(16 <= len(part) < n, len(part))
        self.assertEqual({0}, {f.ackreq for f in part})
        rest = self.feed(ns=5 * transport_ns(14))       # a timer would have expired in between
        self.assertEqual([S + i for i in range(n)], self.psns(part + rest))
        self.assertEqual([0] * (n - 1) + [1], [f.ackreq for f in part + rest])
        self.assertEqual(0, self.delta("local_ack_timeout_err"))
        took, again = self.until_sent(5 * transport_ns(14))
        self.assertTrue(again)                          # now it runs
        self.assertGreaterEqual(took, transport_ns(14))
        self.ack(S + n - 1)
        self.succeeded(self.ids(1))

    def test_TMR_07_a_timeout_sends_few_packets_until_there_is_progress(self):
        """200 packets vanish: eight come again with each timeout, then twice as many with each
        ACK. All that is sent in vain for one lost window is counted."""
        n, probe = 200, 8
        self.req(path_mtu=256, retry_cnt=7, knobs={"cc.window": 256})
        self.assertEqual([S + i for i in range(n)],
                         self.psns(self.post(self.wr("RDMA_WRITE", n * 256))))
        for _ in range(3):
            took, again = self.until_sent(5 * transport_ns(14))
            self.assertGreaterEqual(took, transport_ns(14))
            self.assertEqual([S + i for i in range(probe)], self.psns(again))
            self.assertEqual(1, again[-1].ackreq)
        self.assertEqual(3 * probe, self.delta("req_resent_pkts"))
        una, more = S, probe
        while una + more < S + n:
            got = self.ack(una + more - 1)
            una += more
            more = min(2 * more, 100, S + n - una)  # up to half of what was in flight
            self.assertEqual([una + i for i in range(more)], self.psns(got))
        self.ack(S + n - 1)
        self.succeeded(self.ids(1))
        self.assertEqual(2 * probe + n, self.delta("req_resent_pkts"))
        self.well()

    def test_REQ_NAK_01_resent_packets_of_one_loss(self):
        """One packet of 64 is lost: what followed it comes again, once, and nothing else."""
        n, lost = 64, 20
        self.req(path_mtu=256, knobs={"cc.window": 256})
        self.post(self.wr("RDMA_WRITE", n * 256))
        got = self.nak(S + lost, roce.NAK_SEQ)
        while got and got[-1].psn < S + n - 1:          # the window may be smaller now
            self.assertLessEqual(32, len(got))
            got += self.ack(got[-1].psn)
        self.assertEqual([S + i for i in range(lost, n)], self.psns(got))
        self.assertEqual(n - lost, self.delta("req_resent_pkts"))
        self.ack(S + n - 1)
        self.succeeded(self.ids(1))

    def test_TMR_06_restart_and_stop(self):
        self.req()
        self.sends(4)
        ttr = transport_ns(14)
        self.ack(S, ns=ttr * 8 // 10)
        took, got = self.until_sent(5 * ttr)
        self.assertEqual([S + 1, S + 2, S + 3], self.psns(got))
        self.assertTrue(in_time(took, ttr), took)
        self.ack(S + 3)
        self.assertIsNone(self.qp()["timers"]["transport_us"])
        self.no_more()

    def test_TMR_07_expiry_resends_from_the_oldest(self):
        self.req()
        self.sends(3)
        self.assertEqual([S, S + 1, S + 2], self.psns(self.until_sent(300 * MS)[1]))
        self.assertEqual(1, self.delta("local_ack_timeout_err"))
        self.assertEqual(2, self.qp()["retry_cnt_left"])

    def lone_message_lost(self, knobs):
        """How long until it comes again: the second of two; the first took 10 us."""
        self.req(retry_cnt=3, knobs=knobs)
        self.sends(1)
        self.ack(S, ns=10 * US)
        self.sends(1)
        took, got = self.until_sent(5 * transport_ns(14))
        self.expect(got, Sent(roce.SEND_ONLY, S + 1))
        return took

    def test_TMR_07_no_probe_before_the_first_loss(self):
        """req.probe is lossy by default."""
        self.assertTrue(in_time(self.lone_message_lost({}), transport_ns(14)))
        self.assertEqual(2, self.qp()["retry_cnt_left"])
        self.assertEqual(1, self.delta("local_ack_timeout_err"))

    def test_TMR_07_probe_always(self):
        """req.probe=always: the first loss does not wait for the timer. Who has vanished sees three
        more copies, and then the retries."""
        took = self.lone_message_lost({"req.probe": "always"})
        self.assertLess(took, MS)
        self.assertGreater(took, 20 * US)
        for probes in (2, 1, 0):
            self.assertEqual(3, self.qp()["retry_cnt_left"])
            self.assertEqual(0, self.delta("local_ack_timeout_err"))
            took, got = self.until_sent(5 * transport_ns(14))
            self.expect(got, Sent(roce.SEND_ONLY, S + 1))
            self.assertEqual(probes > 0, took < MS)
        self.assertEqual(2, self.qp()["retry_cnt_left"])
        self.ack(S + 1)
        self.assertEqual(3, self.qp()["retry_cnt_left"])
        self.succeeded([100, 101])

    def test_TMR_08_one_timer_at_a_time(self):
        self.req()
        self.sends(1)
        timers = self.qp()["timers"]
        self.assertTrue(timers["transport_us"] > 0 and timers["rnr_us"] is None, timers)
        self.rnr(S, 20)
        timers = self.qp()["timers"]
        self.assertTrue(timers["transport_us"] is None and timers["rnr_us"] > 0, timers)
        self.until_sent(20 * MS)
        timers = self.qp()["timers"]
        self.assertTrue(timers["transport_us"] > 0 and timers["rnr_us"] is None, timers)

    def test_TMR_09_lost_requests(self):
        """A peer that drops everything looks like a timeout, until a good copy is answered."""
        self.req(retry_cnt=7)
        self.sends(1)
        for _ in range(5):
            self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
        self.ack(S)
        self.succeeded(self.ids(1))

    def test_TMR_10_reset_and_err_stop_the_timer(self):
        for state in ("RESET", "ERR"):
            self.req()
            self.sends(2)
            self.rpc("qp_modify", qp_num=QPN, qp_state=state)
            self.no_more()
            self.assertEqual([] if state == "RESET" else ["WR_FLUSH_ERR"] * 2,
                             [c["status"] for c in self.cqes()])
            self.assertEqual([], self.events())

    def test_TMR_10_destroy_with_a_running_timer(self):
        """Also QP-18: late responses meet nobody."""
        self.req()
        self.sends(8)
        self.rpc("qp_destroy", qp_num=QPN)
        self.forget_qp()
        for i in range(100):
            self.assertEqual([], self.ack(S + i % 8))
        self.no_more()
        self.assertEqual([], self.cqes())

    def test_TMR_10_destroy_in_an_rnr_wait(self):
        self.req()
        self.sends(1)
        self.rnr(S, 0)
        self.rpc("qp_destroy", qp_num=QPN)
        self.forget_qp()
        self.no_more(ms=2000)

    def test_TMR_12_ghosts_do_not_feed_the_timer(self):
        self.req()
        self.sends(1)
        ttr, start, got = transport_ns(14), self.dut.now(), []
        while not got:
            took, got = self.until_sent(ttr // 2)
            if not got:
                got = self.ack(S - 1)
        self.assertTrue(in_time(self.dut.now() - start, ttr))


if __name__ == "__main__":
    dut.main()
