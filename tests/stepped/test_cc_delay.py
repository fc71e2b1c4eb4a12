# SPDX-License-Identifier: BSD-3-Clause
"""CC-29 .. CC-33: cc.algo=delay, as the wire shows it. The port is one of 10 Gb/s.

dut.Case's checks of each frame say that it is Not-ECT: nobody marks what does not react (CC-32).
"""
import dut
import roce
import test_cc_rate
from dut import MS, E
from dut_req import LKEY, LVA, S, ReqCase
from jsonrpc import RpcError
from test_cc_rate import CAP, US

# No flow scale: then the target is 50 us whatever the window is.
FLAT = {"cc.delay_fs_range": 0}


class Delay(ReqCase):

    CONFIG = {"knobs": {"cc.cnp": "off", "cc.algo": "delay"}}
    cc = test_cc_rate.Rate.cc
    wire = test_cc_rate.Rate.wire
    mbps = test_cc_rate.Rate.mbps
    writes = test_cc_rate.Rate.writes

    def begin(self, **kw):
        knobs = {**FLAT, **{"cc.delay_" + k: v for k, v in kw.pop("delay", {}).items()}}
        self.req(cap=CAP, knobs=knobs, **kw)
        self.psn = S

    def trip(self, us, ttl=64):
        """A WRITE of one packet whose ACK comes so much later. The window."""
        self.assertEqual([self.psn], self.psns(self.post(self.wr("RDMA_WRITE", 1024))))
        self.dut.run(us * US)
        self.ack(self.psn, msn=self.psn - S + 1, ttl=ttl)
        self.psn += 1
        return self.cc()["window"]

    def test_CC_09_choice(self):
        self.begin()
        self.assertEqual({"rate_current": 10000.0, "window": 32.0, "rtt": 0.0, "rtt_target": 0.0,
                          "stage": "line", "cnps": 0}, self.cc())
        self.assertEqual(32, self.qp()["window"])
        for name, least, most in (("target", 1, 1000000), ("beta", 1, 100), ("max_mdf", 1, 99),
                                  ("ai", 1, 1000000), ("min_window", 1, 1000),
                                  ("max_window", 1, 65535), ("timeouts", 1, 255)):
            for bad in (least - 1, most + 1):
                with self.assertRaises(RpcError):
                    self.begin(delay={name: bad})
            self.begin(delay={name: least})

    def test_CC_29_target_CC_30_increase(self):
        self.begin()
        self.assertEqual(33.0, self.trip(20))
        cc = self.cc()
        self.assertAlmostEqual(20, cc["rtt"], delta=1)
        self.assertEqual(50.0, cc["rtt_target"])
        self.assertEqual(33, self.qp()["window"])
        # Three switches on the way, then more than can be believed.
        self.assertEqual(34.0, self.trip(20, ttl=61))
        self.assertEqual(53.0, self.cc()["rtt_target"])
        self.trip(20, ttl=30)
        self.assertEqual(50.0, self.cc()["rtt_target"])
        # One round trip at a time, however many packets there are.
        self.assertEqual(20, len(self.post(
            *[self.wr("RDMA_WRITE", 1024) for _ in range(20)])))
        self.dut.run(20 * US)
        for i in range(20):
            self.ack(self.psn + i, msn=self.psn + i - S + 1)
        self.assertEqual(36.0, self.cc()["window"])

    def test_CC_29_hops_of_either_family(self):
        for v6 in (False, True):
            self.begin(v6=v6)
            self.trip(20, ttl=62)
            self.assertEqual(52.0, self.cc()["rtt_target"])
            self.trip(20, ttl=127)
            self.assertEqual(51.0, self.cc()["rtt_target"])

    def test_CC_29_flow_scale(self):
        """A window of one packet: 0.2939 of the range more (0.9 / 3.0623)."""
        self.begin(delay={"start": 1, "fs_range": 1000})
        self.trip(20)
        self.assertAlmostEqual(343.9, self.cc()["rtt_target"], delta=0.2)

    def test_CC_31_decrease(self):
        self.begin()
        # 100 us and a little, 50 wanted: 0.6 of 32.
        window = self.trip(100)
        self.assertAlmostEqual(32 * 0.6, window, delta=0.2)
        self.assertEqual(int(window), self.qp()["window"])
        self.assertEqual("decrease", self.cc()["stage"])
        # The next packet's round trip begins later than that; one of 2 ms takes a half.
        self.assertAlmostEqual(window / 2, self.trip(2000), delta=0.1)

    def test_CC_32_losses(self):
        self.begin()
        self.writes(1)
        self.dut.run(20 * US)
        self.ack(S + 15)    # not each packet asks for one
        self.assertEqual(33.0, self.cc()["window"])
        self.nak(S + 16, roce.NAK_SEQ)
        self.assertEqual(16.5, self.cc()["window"])
        self.nak(S + 17, roce.NAK_SEQ)    # of the same round trip
        self.assertEqual(16.5, self.cc()["window"])
        for _ in range(3):
            self.feed(self.peer.cnp())
        cc = self.cc()
        self.assertEqual((16.5, 3), (cc["window"], cc["cnps"]))
        # RESET: as if nothing had been.
        self.rpc("qp_modify", qp_num=dut.QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.assertEqual((32.0, 0), (self.cc()["window"], self.cc()["cnps"]))

    def test_CC_32_implied_nak(self):
        """An ACK beyond a READ tells of a loss as a NAK does."""
        self.begin()
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10))
        self.ack(S + 1)
        self.assertEqual(1, self.delta("implied_nak_seq_err"))
        self.assertEqual(16.0, self.cc()["window"])

    def test_CC_32_timeouts(self):
        self.begin(timeout=8, retry_cnt=7, delay={"timeouts": 2})
        self.assertEqual(1, len(self.post(self.wr("RDMA_WRITE", 1024))))
        self.assertEqual(1, len(self.until_sent(3 * MS)[1]))
        self.assertEqual(16.0, self.cc()["window"])
        self.assertEqual(1, len(self.until_sent(3 * MS)[1]))
        self.assertAlmostEqual(0.01, self.cc()["window"], delta=0.001)

    def test_CC_33_window(self):
        """No more packets in flight than there is room for."""
        self.begin(delay={"start": 4, "max_window": 8})
        self.assertEqual(list(range(S, S + 4)), self.psns(self.writes(1)))
        self.assertEqual([], self.wire(20 * US))
        # One more after a round trip, and each in its turn: five in 20 us.
        got = self.ack(S + 3) + [f for _, f in self.wire(100 * US)]
        self.assertEqual(list(range(S + 4, S + 9)), self.psns(got))
        self.no_more(1)

    def test_CC_33_pacing(self):
        """A quarter of a packet in 500 us: one packet each 2 ms."""
        self.begin(timeout=0, delay={"start": 1, "min_window": 250, "target": 50})
        self.trip(500)
        self.dut.run(4 * MS)
        self.assertEqual(0.25, self.trip(500))
        # The one before left at half a packet in 500 us, this one at a quarter.
        for wait in (500, 1500):
            self.assertEqual([], self.post(self.wr("RDMA_WRITE", 1024)))
            took, got = self.until_sent(4 * MS)
            self.assertEqual([self.psn], self.psns(got))
            self.assertAlmostEqual(wait, took / US, delta=40)
            self.dut.run(500 * US)
            self.ack(self.psn, msn=self.psn - S + 1)
            self.psn += 1

    def test_CC_33_read_responses(self):
        """They leave at the rate that round trips of the QP's own requests have made."""
        self.begin(timeout=0, access=("LOCAL_WRITE", "REMOTE_READ"), recv=1, fill="pattern:1",
                   delay={"start": 1, "min_window": 1000})
        self.assertEqual(1.0, self.trip(1000))    # 1082 bytes a millisecond
        now = self.cc()["rate_current"]
        self.assertAlmostEqual(8.66, now, delta=0.2)
        self.dut.run(4 * MS)
        self.feed(self.peer.read_req(E, LVA, LKEY, 8192))
        got = self.wire(6 * MS, step=20 * US)
        self.assertTrue(5 <= len(got) <= 7, len(got))
        self.assertAlmostEqual(now, self.mbps(got), delta=0.3)


if __name__ == "__main__":
    dut.main()
