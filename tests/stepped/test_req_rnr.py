# SPDX-License-Identifier: BSD-3-Clause
"""REQ-RNR: a peer that is not ready."""
import dut
import roce
from dut import MS
from dut_req import S, ReqCase, Sent, in_time, transport_ns

# Table of the RNR NAK timer field, in microseconds.
RNR_US = {0: 655360, 1: 10, 12: 640, 20: 10240, 25: 61440}


class Rnr(ReqCase):

    def test_REQ_RNR_01_REQ_RNR_02_wait(self):
        """Not before the time, and not more than 1 ms after it."""
        for code, us in RNR_US.items():
            self.req()
            first = self.sends(1)
            self.assertEqual([], self.rnr(S, code))
            took, again = self.until_sent(2000 * MS)
            self.expect(again, Sent(roce.SEND_ONLY, S, first[0].payload))
            self.assertTrue(in_time(took, us * 1000), "code %d: %d ns" % (code, took))
            self.assertLess(took, us * 1000 + MS)

    def test_REQ_RNR_03_rewind(self):
        self.req()
        self.sends(4)
        self.assertEqual([], self.rnr(S + 1, 12))
        self.succeeded(self.ids(1))
        self.assertEqual([], self.sends(1))       # nothing new leaves in the wait, either
        self.assertEqual([S + 1, S + 2, S + 3, S + 4], self.psns(self.until_sent(10 * MS)[1]))
        self.ack(S + 4)
        self.succeeded([101, 102, 103, 104])
        self.well()

    def test_REQ_RNR_04_number_of_retries(self):
        """Also one that is set in SQD, where another was before."""
        for before, n in ((0, 0), (1, 1), (3, 3), (0, 2), (6, 1)):
            self.req(rnr_retry=before)
            if n != before:
                self.in_sqd(rnr_retry=n)
            seen = len(self.sends(1))
            while True:
                self.rnr(S, 1)
                got = self.until_sent(10 * MS)[1]
                if not got:
                    break
                self.expect(got, Sent(roce.SEND_ONLY, S))
                seen += 1
            self.assertEqual(n + 1, seen)
            self.assertEqual((n + 1, n + 1, 1, 1), tuple(self.delta(c) for c in (
                "rcvd_rnr_err", "rnr_nak_retry_err", "retry_rnr_exceeded_err",
                "req_rnr_retries_exceeded")))
            self.ended("RNR_RETRY_EXC_ERR", 100, fatal=9)

    def test_REQ_RNR_05_exhaustion(self):
        self.req(rnr_retry=0, recv=2)
        self.sends(4)
        self.assertEqual([], self.rnr(S, 1))
        self.ended("RNR_RETRY_EXC_ERR", 100, flushed=[101, 102, 103], fatal=9)
        self.assertEqual([(0, "WR_FLUSH_ERR"), (1, "WR_FLUSH_ERR")], self.statuses("rcq"))
        self.assertEqual(1, self.delta("req_cqe_error"))

    def test_REQ_RNR_06_for_ever(self):
        self.req(rnr_retry=7)
        self.sends(1)
        for _ in range(100):
            self.rnr(S, 1)
            self.assertEqual([S], self.psns(self.until_sent(MS)[1]))
        self.assertEqual(7, self.qp()["rnr_retry_left"])
        self.ack(S)
        self.succeeded(self.ids(1))

    def test_REQ_RNR_07_reload(self):
        self.req(rnr_retry=1)
        self.sends(2)
        for psn in (S, S + 1):
            self.rnr(psn, 1)
            self.until_sent(MS)
            self.ack(psn)
        self.succeeded(self.ids(2))
        self.well()

    def test_REQ_RNR_08_acknowledges_what_precedes(self):
        self.req()
        self.sends(4)
        self.rnr(S + 2, 12)
        self.succeeded(self.ids(2))

    def test_REQ_RNR_09_no_timeout_in_the_wait(self):
        self.req(timeout=8)
        self.sends(1)
        self.rnr(S, 20)
        took, got = self.until_sent(100 * MS)
        self.assertTrue(in_time(took, 10240000), took)
        self.assertEqual([S], self.psns(got))
        self.assertEqual(3, self.qp()["retry_cnt_left"])
        self.assertEqual(0, self.delta("local_ack_timeout_err"))
        took, got = self.until_sent(100 * MS)     # the transport timer began with the resend
        self.assertTrue(in_time(took, transport_ns(8)), took)

    def test_REQ_RNR_10_stray(self):
        self.req()
        self.sends(3)
        self.ack(S + 1)
        self.succeeded(self.ids(2))
        self.assertEqual([], self.rnr(S + 1, 12))
        self.assertEqual([], self.rnr(S + 9, 12))
        self.assertEqual([S + 3], self.psns(self.sends(1)))    # there is no wait
        self.assertEqual(3, self.qp()["rnr_retry_left"])

    def test_REQ_RNR_11_any_request(self):
        for opcode, length, offset in (("RDMA_READ", 100, 0), ("RDMA_WRITE", 100, 0),
                                       ("ATOMIC_FETCH_AND_ADD", 8, 0), ("SEND", 3000, 1)):
            self.req()
            first = self.post(self.wr(opcode, length))
            self.assertEqual([], self.rnr(S + offset, 12))
            took, again = self.until_sent(10 * MS)
            self.assertGreaterEqual(took, 640000)
            self.assertEqual([(f.opcode, f.psn, f.payload) for f in first[offset:]],
                             [(f.opcode, f.psn, f.payload) for f in again])

    def test_REQ_RNR_12_others_go_on(self):
        self.req()
        self.make("qp_create", **self.qp_params(qp_num=0x12, recv_cq="rcq", sq_sig_all=True,
                                                sq_psn=0x900, dest_qp_num=0x22))
        self.sends(1)
        self.rnr(S, 0)
        self.assertEqual([0x900], self.psns(self.post(self.wr("SEND", 10), qp_num=0x12)))
        self.feed(self.peer.acknowledge(0x900, qpn=0x12))
        self.succeeded([101])
        self.assertEqual([S], self.psns(self.until_sent(1000 * MS)[1]))


if __name__ == "__main__":
    dut.main()
