# SPDX-License-Identifier: BSD-3-Clause
"""CC-07, CC-09 .. CC-25: cc.algo=dcqcn, as the wire shows it. The port is one of 10 Gb/s."""
import dut
import roce
from dut import MS, RKEY, VA, E
from dut_req import S, ReqCase
from jsonrpc import RpcError
from roce import data

US = 1000
CAP = {"max_send_wr": 64, "max_recv_wr": 16, "max_send_sge": 1, "max_recv_sge": 4}


class Rate(ReqCase):
    """F-CC."""

    CC = True
    CONFIG = {"knobs": {"cc.cnp": "off", "cc.algo": "dcqcn", "cc.preset": "mlx5"}}

    def cc(self):
        return self.qp()["cc"]

    def knobs(self, **kw):
        return {"cc." + k: v for k, v in kw.items()}

    def wire(self, ns, step=4 * US):
        """Frames of so much time, each with the time at which it left."""
        out, end = [], self.dut.now() + ns
        while self.dut.now() < end:
            got = self.until_sent(end - self.dut.now(), min(step, end - self.dut.now()))[1]
            out += [(self.dut.now(), f) for f in got]
        return out

    def mbps(self, frames):
        """Between the first and the last of them."""
        took = frames[-1][0] - frames[0][0]
        return sum(len(f.raw) for _, f in frames[1:]) * 8000 / took

    def writes(self, n, **kw):
        """n WRITEs of 64 packets."""
        return self.post(*[self.wr("RDMA_WRITE", 65536, **kw) for _ in range(n)])

    def test_CC_09_choice(self):
        self.req()
        self.assertEqual({"rate_current": 10000.0, "rate_target": 10000.0, "alpha": 1023 / 1024,
                          "stage": "line", "cnps": 0}, self.cc())
        self.req(knobs={"cc.algo": "rate", **self.knobs(rpg_max_rate=300)})
        self.assertEqual(300.0, self.cc()["rate_current"])
        for algo in ("none", "ernic_window"):
            CC, self.CC = self.CC, algo != "none"
            self.req(knobs={"cc.algo": algo})
            self.assertNotIn("cc", self.qp())
            self.CC = CC
        # A single parameter goes before the preset: a cut of a quarter with preset paper, whose
        # least time between two cuts, 50 us, stays.
        self.req(knobs=self.knobs(preset="paper", initial_alpha_value=512))
        self.feed(self.peer.cnp())
        self.feed(self.peer.cnp(), ns=49 * US)
        self.assertEqual(7500.0, self.cc()["rate_current"])
        self.feed(self.peer.cnp(), ns=2 * US)
        self.assertEqual(5625.0, self.cc()["rate_current"])
        for bad in (self.knobs(algo="swift"), self.knobs(preset="other"), self.knobs(rpg_gd=12),
                    self.knobs(rpg_min_rate=0), self.knobs(initial_alpha_value=1024)):
            with self.assertRaises(RpcError):
                self.req(knobs=bad)

    def test_CC_10_first_cnp(self):
        self.req(knobs=self.knobs(rate_to_set_on_first_cnp=100))
        self.feed(self.peer.cnp())
        cc = self.cc()
        self.assertEqual((100.0, 1), (cc["rate_current"], cc["cnps"]))
        self.assertNotEqual("line", cc["stage"])
        self.assertEqual(1, self.delta("rp_cnp_handled"))
        self.req()
        self.feed(self.peer.cnp())
        self.assertAlmostEqual(10000 * 1025 / 2048, self.cc()["rate_current"], 2)
        # RESET: as if there had been none.
        self.rpc("qp_modify", qp_num=dut.QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.assertEqual(("line", 0, 10000.0), tuple(
            self.cc()[k] for k in ("stage", "cnps", "rate_current")))

    def test_CC_19_idle(self):
        """Who sends nothing is asked: the timer has brought its rate back half of the way."""
        self.req()
        self.feed(self.peer.cnp())
        low = self.cc()["rate_current"]
        self.feed(ns=310 * US)
        cc = self.cc()
        self.assertAlmostEqual((10000 + low) / 2, cc["rate_current"], 2)
        self.assertEqual("fast_recovery", cc["stage"])

    def test_CC_21_pacing(self):
        """250 packets at 100 Mb/s: within 5 % in all, 2 % over each 10 ms; in order, no bursts."""
        self.req(cap=CAP, timeout=0, knobs=self.knobs(rpg_max_rate=100))
        first = self.writes(5)
        self.assertTrue(1 <= len(first) <= 16, len(first))
        got = self.wire(22 * MS)
        self.assertEqual([S + i for i in range(len(first), len(first) + len(got))],
                         [f.psn for _, f in got])
        self.assertTrue(245 <= len(got) <= 255, len(got))
        for at in (0, 10 * MS):
            part = [p for p in got if at < p[0] - got[0][0] <= at + 10 * MS]
            self.assertAlmostEqual(100, self.mbps(part), delta=2)
        times = [t for t, _ in got]
        self.assertTrue(max(times.count(t) for t in set(times)) <= 3)

    def test_CC_21_one_ms(self):
        """At 1 Gb/s: within 2 % over each millisecond, but for the packet at its edge."""
        self.req(cap=CAP, timeout=0, knobs=self.knobs(rpg_max_rate=1000))
        self.writes(4)
        start = self.dut.now()
        got = self.wire(2 * MS)
        for at in (0, MS):
            sent = sum(len(f.raw) for t, f in got if at < t - start <= at + MS)
            self.assertAlmostEqual(125000, sent, delta=2500 + 1100)

    def test_CC_07_falls_and_recovers(self):
        """A CNP cuts the rate on the wire; without CNPs it comes back."""
        self.req(cap=CAP, timeout=0, knobs=self.knobs(
            rate_to_set_on_first_cnp=200, rpg_ai_rate=100, rpg_byte_reset=0, rpg_hai_rate=1000))
        self.assertEqual(64, len(self.writes(1)))    # at the port's rate: all at once
        self.feed(self.peer.cnp())
        self.writes(1)
        slow = self.wire(MS // 4)
        self.assertAlmostEqual(200, self.mbps(slow), delta=30)
        # 300 us: fast recovery; then 1 Gb/s more at each.
        self.feed(ns=5 * MS)
        self.assertEqual("hyper", self.cc()["stage"])
        self.writes(4)
        fast = self.wire(MS // 10)
        self.assertTrue(self.mbps(fast) > 5000, self.mbps(fast))
        self.feed(ns=50 * MS)
        self.assertEqual(("line", 10000.0), tuple(
            self.cc()[k] for k in ("stage", "rate_current")))

    def test_CC_13_least_rate(self):
        """Many CNPs: 1 Mb/s, and packets still leave."""
        self.req(cap=CAP, timeout=0, knobs=self.knobs(rpg_time_reset=131071, rpg_byte_reset=0))
        for _ in range(60):
            self.dut.rx(self.peer.cnp())
            self.dut.run(5 * US)
        self.assertEqual(1.0, self.cc()["rate_current"])
        self.writes(1)
        # Who asks why it takes so long is told.
        why = self.rpc("qp_explain", qp_num=dut.QPN)
        self.assertIn("1.000 Mb/s (cc.algo dcqcn, 60 CNPs", str(why))
        self.assertTrue(1 <= len(self.wire(20 * MS, step=100 * US)) <= 3)

    def test_CC_23_what_is_not_paced(self):
        """At 1 Mb/s: answers at once; pacing alone never expires the transport timer."""
        self.req(cap=CAP, recv=4, retry_cnt=1, knobs=self.knobs(rpg_max_rate=1))
        got = self.writes(1)
        answers = self.feed(self.peer.send_only(E, b"x"), self.peer.send_only(E, b"x"), ns=US)
        self.assertEqual([roce.ACK], sorted({f.opcode for f in answers}))
        # 63 packets of 8.7 ms each; the timer is one of 67 ms.
        sent = [f.psn for f in got]
        while len(sent) < 64:
            took, got = self.until_sent(20 * MS, 100 * US)
            self.assertNotEqual([], got, sent)
            sent += [f.psn for f in got]
            for f in got:
                if f.ackreq:
                    self.assertEqual([], self.ack(f.psn))
        self.assertEqual([S + i for i in range(64)], sent)
        self.assertEqual(0, self.delta("local_ack_timeout_err"))

    def test_CC_23_the_timer_does_not_wait_for_the_pace(self):
        """The next packet may leave in 8.7 ms; what has left is missed before that."""
        self.req(cap=CAP, timeout=8, knobs=self.knobs(rpg_max_rate=1))
        self.assertEqual([(S, 1)], [(f.psn, f.ackreq) for f in self.post(self.wr("SEND", 1024))])
        self.assertEqual([], self.post(self.wr("SEND", 1024)))
        self.assertEqual([], self.feed(ns=2 * MS))
        self.assertEqual(1, self.delta("local_ack_timeout_err"))

    def test_CC_21_QP_09_in_SQD(self):
        """What has begun goes on at its rate to its end."""
        self.req(cap=CAP, timeout=0, knobs=self.knobs(rpg_max_rate=100))
        first = self.writes(1)
        self.assertTrue(len(first) < 32, len(first))
        self.rpc("qp_modify", qp_num=dut.QPN, qp_state="SQD")
        self.writes(1)
        got = first + [f for _, f in self.wire(8 * MS)]
        self.assertEqual([S + i for i in range(64)], self.psns(got))

    def test_CC_23_resends_are_paced_too(self):
        self.req(cap=CAP, knobs=self.knobs(rpg_max_rate=10))
        sent = len(self.writes(1)) + len(self.wire(4 * MS))
        self.assertTrue(4 <= sent <= 7, sent)
        self.assertEqual([], self.feed(self.peer.acknowledge(S, roce.NAK_SEQ)))
        again = self.wire(9 * MS)
        self.assertEqual([S + i for i in range(len(again))], [f.psn for _, f in again])
        self.assertAlmostEqual(10, self.mbps(again), delta=1)


class Responses(dut.DutCase):
    """CC-22."""

    CC = True
    CONFIG = Rate.CONFIG

    def answers(self, ns, step=20 * US):
        out = []
        for at in range(0, ns, step):
            out += [(at + step, f) for f in self.feed(ns=step)]
        return out

    def test_CC_22_read_responses_are_paced(self):
        self.resp(mr_fill="pattern:1", knobs={"cc.rpg_max_rate": 100, "cc.rpg_threshold": 31,
                                              "cc.rpg_time_reset": 131071,
                                              "cc.rpg_byte_reset": 0})
        got = [(0, f) for f in self.feed(self.peer.read_req(E, VA, RKEY, 65536))]
        self.assertTrue(1 <= len(got) <= 2, len(got))
        # A SEND stands behind it.
        got += [(0, f) for f in self.feed(self.peer.send_only(E + 64, b"x"))]
        got += self.answers(2 * MS)
        sent = sum(len(f.raw) for t, f in got if t > 0)
        self.assertAlmostEqual(100, sent * 8000 / (2 * MS), delta=5)
        # Four CNPs, and the rate does not come back for 131 ms.
        for _ in range(4):
            self.feed(self.peer.cnp())
            got += self.answers(10 * US, step=10 * US)
        now = self.rpc("qp_query", qp_num=dut.QPN)["cc"]["rate_current"]
        self.assertTrue(now < 60, now)
        slow = self.answers(2 * MS)
        self.assertAlmostEqual(now, sum(len(f.raw) for _, f in slow) * 8000 / (2 * MS), delta=5)
        got += slow
        got += self.answers(300 * MS, step=5 * MS)
        reads = [f for _, f in got if f.opcode != roce.ACK]
        self.assertEqual(list(range(E, E + 64)), [f.psn for f in reads])
        self.assertEqual(roce.pattern(1, 65536), b"".join(f.payload for f in reads))
        # The SEND's ACK comes behind the last response, at once.
        acks = [(t, f) for t, f in got if f.opcode == roce.ACK]
        self.assertEqual([E + 64], [f.psn for _, f in acks])
        self.assertEqual(got[-1], acks[0])
        self.assertEqual(got[-2][0], acks[0][0])

    def test_CC_22_while_a_send_feed_rests(self):
        """Its peer answers no WRITE, so that it rests from 1 ms on; a response takes 9 ms."""
        self.resp(mr_fill="pattern:1", timeout=8, retry_cnt=0, knobs={"cc.rpg_max_rate": 1},
                  send_feed={"opcode": "RDMA_WRITE", "size": 8, "depth": 1, "rkey": "0x999",
                             "remote_addr": "0x0"})
        first = self.feed(self.peer.read_req(E, VA, RKEY, 8192))
        got = first + [f for _, f in self.answers(80 * MS, step=MS)]
        self.assertEqual(list(range(E, E + 8)),
                         [f.psn for f in got if f.opcode in roce.RESPONSES])


class None_(ReqCase):
    """CC-25."""

    CONFIG = {"knobs": {"cc.cnp": "off", "cc.algo": "none"}}

    def test_CC_25_no_reaction(self):
        self.req(cap=CAP)
        self.assertEqual(64, len(self.post(self.wr("RDMA_WRITE", 65536))))
        window = self.qp()["window"]
        for i in range(100):
            self.assertEqual([], self.feed(self.peer.cnp(), ns=US))
        self.ack(S + 63)
        self.assertEqual([S + 64 + i for i in range(64)],
                         [f.psn for f in self.post(self.wr("RDMA_WRITE", 65536))])
        self.assertEqual(window, self.qp()["window"])
        self.assertEqual(100, self.delta("rp_cnp_handled"))


if __name__ == "__main__":
    dut.main()
