# SPDX-License-Identifier: BSD-3-Clause
"""QP, CQ, AE, CC and FLOW, as far as the send queue goes."""
import random

import dut
import roce
from dut import E, MS, QPN, RpcError
from dut_req import S, ReqCase


class States(ReqCase):

    def sqd(self, **kw):
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD", **kw)
        return self.feed()

    def drained(self):
        return [(e["event_type"], e["source"]) for e in self.events()]

    def test_QP_06_QP_07_no_sends_below_rts(self):
        """Also CQ-09."""
        for state in ("RESET", "INIT", "RTR"):
            self.req(qp_state=state)
            self.refused(self.post_raw(self.wr("SEND", 10)), state, "RTS")
            self.assertEqual([], self.feed())
            self.assertEqual([], self.cqes())

    def test_QP_05_reset_forgets(self):
        self.req()
        self.sends(3)
        self.rnr(S, 12)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.no_more()
        self.assertEqual([], self.cqes())
        self.refused(self.post_raw(self.wr("SEND", 10)), "RESET")
        self.walk_up("RTS", sq_psn=0x700)
        self.assertEqual([0x700], self.psns(self.sends(1)))
        q = self.qp()
        self.assertEqual((3, 3, 1), (q["retry_cnt_left"], q["rnr_retry_left"], q["outstanding"]))
        self.ack(0x700)
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.cqes()])

    def test_QP_08_first_psn(self):
        self.req(sq_psn=0xABCDEF)
        self.assertEqual([0xABCDEF], self.psns(self.sends(1)))

    def test_QP_09_AE_06_drain(self):
        """What was sent finishes, retries included; nothing new starts; one event at the end."""
        self.req(recv=1, max_rd_atomic=1)
        got = self.post(*[self.wr("RDMA_READ", 10) for _ in range(2)], self.wr("SEND", 10))
        self.assertEqual([S], self.psns(got))      # the second READ waits, the SEND behind it
        self.assertEqual([], self.sqd(en_sqd_async_notify=True))
        self.assertEqual([], self.drained())
        self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
        self.assertEqual([], self.feed(self.read_answer(S, bytes(10))))
        self.succeeded(self.ids(1))
        self.assertEqual([("SQ_DRAINED", "SQ")], self.drained())
        self.no_more()
        # The responder works on.
        self.expect(self.feed(self.peer.send_only(E, b"abc")), dut.Ack(E, 1))
        self.assertEqual("SQD", self.state())
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.assertEqual([S + 1, S + 2], self.psns(self.feed()))
        self.feed(self.read_answer(S + 1, bytes(10)), self.peer.acknowledge(S + 2))
        self.succeeded([101, 102])

    def test_AE_06_no_event_unless_asked_for(self):
        for kw in ({}, {"en_sqd_async_notify": False}):
            self.req()
            self.sends(3)
            self.assertFalse(self.qp()["sq_draining"])
            self.sqd(**kw)
            self.assertTrue(self.qp()["sq_draining"])
            self.ack(S + 2)
            self.assertFalse(self.qp()["sq_draining"])
            self.assertEqual([], self.drained())
            self.succeeded(self.ids(3))

    def test_AE_06_at_once_when_nothing_is_under_way(self):
        self.req()
        self.sqd(en_sqd_async_notify=True)
        self.assertEqual([("SQ_DRAINED", "SQ")], self.drained())
        # Asked for once is not asked for again.
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.sqd()
        self.assertEqual([], self.drained())

    def test_QP_10_sends_queue_up_in_sqd(self):
        self.req()
        self.sqd()
        self.assertEqual([], self.sends(3))
        self.no_more(ms=100)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.assertEqual([S, S + 1, S + 2], self.psns(self.feed()))
        self.ack(S + 2)
        self.succeeded(self.ids(3))

    def test_QP_12_err_on_request(self):
        self.req(recv=4)
        self.sends(3)
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in self.ids(3)], self.statuses())
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(4)], self.statuses("rcq"))
        self.assertEqual([], self.events())
        self.assertEqual(3, self.delta("req_cqe_flush_error"))

    def test_QP_13_work_posted_in_err(self):
        self.req()
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        for _ in range(3):
            self.assertEqual([], self.sends(2))
        self.post_recv(1)
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in self.ids(6)], self.statuses())
        self.assertEqual([(0, "WR_FLUSH_ERR")], self.statuses("rcq"))

    def test_QP_15_up_again_after_err(self):
        self.req()
        self.sends(2)
        self.nak(S, roce.NAK_INV)
        self.cqes()
        for state in ("INIT", "RTR", "RTS", "SQD"):
            with self.assertRaises(RpcError):
                self.rpc("qp_modify", qp_num=QPN, qp_state=state)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS", sq_psn=S)
        self.assertEqual([S], self.psns(self.sends(1)))
        self.ack(S)
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.cqes()])

    def test_QP_16_both_queues_go_when_the_responder_fails(self):
        self.req(recv=2)
        self.sends(2)
        self.feed(self.peer.send_middle(E, bytes(1024)))      # a stray MIDDLE: NAK-INV
        self.assertEqual("ERR", self.state())
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in self.ids(2)], self.statuses())
        self.assertEqual(["WR_FLUSH_ERR"] * 2, [c["status"] for c in self.cqes("rcq")])
        self.no_more()

    def test_QP_17_posting_while_it_fails(self):
        """Every request that was posted completes exactly once."""
        rng = random.Random(17)
        self.req()
        for _ in range(60):
            n = rng.randrange(1, 9)
            first = 100 + self.send_id
            self.post_raw(*[self.wr("SEND", rng.randrange(3000)) for _ in range(n)])
            self.dut.rx(self.peer.acknowledge(S + rng.randrange(8), roce.NAK_INV))
            if rng.random() < 0.5:
                self.dut.command("turn 1")
            posted = n + self.post_raw(*[self.wr("SEND", 1) for _ in range(3)])["posted"]
            self.dut.run()
            posted += self.post_raw(self.wr("SEND", 1))["posted"]
            if self.state() != "ERR":     # the NAK was beyond what had been sent
                self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
            self.dut.run()
            got = self.cqes()
            self.assertEqual(list(range(first, first + posted)), [c["wr_id"] for c in got])
            self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
            self.walk_up("RTS")

    def test_QP_19_live_numbers(self):
        self.req()
        self.sends(3)
        q = self.qp()
        self.assertEqual((S + 3, S + 3, S - 1, 3), (q["sq_psn"], q["next_psn"],
                                                    q["last_acked_psn"], q["outstanding"]))
        self.ack(S + 1)
        q = self.qp()
        self.assertEqual((S + 1, 1), (q["last_acked_psn"], q["outstanding"]))
        self.assertTrue(0 < q["timers"]["transport_us"] <= 67108.9 * 1.001)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.assertEqual(S, self.qp()["sq_psn"])


class Completions(ReqCase):

    def test_CQ_04_lossy_and_duplicating(self):
        """Every request once, in order, whatever the tester loses or repeats."""
        rng = random.Random(4)
        self.req(retry_cnt=7, rnr_retry=7)
        done = []
        for _ in range(40):
            self.post(*[self.wr("SEND", rng.randrange(3000)) for _ in range(4)])
            while True:
                last = self.qp()["next_psn"] - 1    # after a timeout a few go first
                roll = rng.random()
                una = self.qp()["last_acked_psn"] + 1
                if roll < 0.3:
                    self.until_sent(300 * MS)
                elif roll < 0.5:
                    self.nak(rng.randrange(una, last + 1), roce.NAK_SEQ)
                elif roll < 0.6:
                    self.ack(una - 1)
                else:
                    self.ack(rng.randrange(una, last + 1))
                if self.qp()["outstanding"] == 0:
                    break
            done += self.cqes()
        self.assertEqual(self.ids(160), [c["wr_id"] for c in done])
        self.assertEqual({"SUCCESS"}, {c["status"] for c in done})
        self.well()

    def test_CQ_07_shared_queue(self):
        """Sixteen QPs on one queue, one of them driven to ERR: order and numbers hold."""
        self.req(cqe=1024)
        nums = list(range(0x40, 0x50))
        for n in nums:
            self.make("qp_create", **self.qp_params(qp_num=n, sq_sig_all=True, sq_psn=S,
                                                    dest_qp_num=0x22))
        posted = {n: [] for n in nums}
        for _ in range(2):
            for n in nums:
                wrs = [self.wr("SEND", 10) for _ in range(4)]
                posted[n] += [w["wr_id"] for w in wrs]
                self.post(*wrs, qp_num=n)
        bad = nums[5]
        self.feed(self.peer.acknowledge(S + 3, roce.NAK_RAE, qpn=bad))
        self.feed(*[self.peer.acknowledge(S + 7, qpn=n) for n in reversed(nums) if n != bad])
        got = []
        while True:
            more = self.cqes()
            got += more
            if not more:
                break
        for n in nums:
            mine = [c for c in got if c["qp_num"] == n]
            self.assertEqual(posted[n], [c["wr_id"] for c in mine])
            want = (["SUCCESS"] * 8 if n != bad else
                    ["SUCCESS"] * 3 + ["REM_ACCESS_ERR"] + ["WR_FLUSH_ERR"] * 4)
            self.assertEqual(want, [c["status"] for c in mine])

    def test_CQ_09_immediate_errors(self):
        self.req(cap={"max_send_wr": 2, "max_recv_wr": 1, "max_send_sge": 2, "max_recv_sge": 1,
                      "max_inline_data": 16})
        sge = {"mr": "lmr", "offset": 0, "length": 8}
        for wr, word in ((self.wr("TSO", 8), "opcode"),
                         (self.wr("SEND", sg_list=[sge] * 3), "max_send_sge"),
                         (self.wr("SEND", inline="00" * 17), "max_inline_data"),
                         (self.wr("SEND", 17, send_flags=["INLINE"]), "max_inline_data"),
                         (self.wr("RDMA_READ", 8, send_flags=["INLINE"]), "inline"),
                         (self.wr("ATOMIC_FETCH_AND_ADD", 7), "8 bytes"),
                         (self.wr("SEND", sg_list=[{"mr": "nope", "offset": 0, "length": 1}]),
                          "nope")):
            self.refused(self.post_raw(wr), word)
        result = self.post_raw(*[self.wr("SEND", 8) for _ in range(4)])
        self.assertEqual((2, 2), (result["posted"], result["refused"]["index"]))
        self.refused(result, "full", "max_send_wr is 2")
        self.assertEqual([S, S + 1], self.psns(self.feed()))
        self.ack(S + 1)
        self.assertEqual(2, len(self.cqes()))      # and no completion of what was refused
        self.well()

    def test_CQ_09_malformed_parameters(self):
        self.req()
        for wr in ({"wr_id": 1}, self.wr("SEND", send_flags=["LOUD"]),
                   self.wr("SEND", 8, inline="00"), self.wr("SEND", inline="0"),
                   self.wr("SEND", sg_list=[{"mr": "lmr"}]), self.wr("SEND", 8, colour=1)):
            with self.assertRaises(RpcError) as e:
                self.post_raw(wr)
            self.assertEqual(-32602, e.exception.code)
        with self.assertRaises(RpcError):
            self.post_raw(self.wr("SEND", 8), qp_num=0x999)

    def test_max_send_wr_0(self):
        self.req(cap={"max_send_wr": 0, "max_recv_wr": 1, "max_send_sge": 0, "max_recv_sge": 1})
        self.refused(self.post_raw(self.wr("SEND")), "max_send_wr is 0")
        for psn in (S, S - 1, S + 1):
            self.assertEqual([], self.ack(psn))
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual([], self.cqes())


class Congestion(ReqCase):

    CC = True
    CONFIG = {"knobs": {"cc.cnp": "off", "cc.algo": "ernic_window", "cc.window": 16}}

    def test_CC_06_sixteen_then_eight(self):
        """Also CC-05: not acknowledged, PSN state untouched."""
        self.req(cap={"max_send_wr": 128, "max_recv_wr": 1, "max_send_sge": 1, "max_recv_sge": 1},
                 cqe=256)
        got = self.sends(100)
        self.assertEqual([S + i for i in range(16)], self.psns(got))
        self.assertEqual([], self.feed(self.peer.cnp()))
        self.assertEqual(1, self.delta("rp_cnp_handled"))
        # What is in flight drains first: eight are left before anything new leaves.
        for i in range(8):
            self.assertEqual([], self.ack(S + i))
        for _ in range(2):
            self.assertEqual([], self.feed(self.peer.cnp()))
        for i in range(8, 20):
            self.assertEqual([S + i + 8], self.psns(self.ack(S + i)))
        self.assertEqual(8, self.qp()["window"])
        # The old limit returns with a reset only.
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.assertEqual(16, len(self.sends(20)))

    def test_CC_08_bad_cnps(self):
        self.req()
        self.sends(1)
        bad = self.peer.cnp()
        for frame in (roce.flip(bad, len(bad) * 8 - 1), self.peer.cnp(becn=0),
                      self.peer.cnp(qpn=0x999)):
            self.assertEqual([], self.feed(frame))
        self.assertEqual(16, self.qp()["window"])
        self.assertEqual(0, self.delta("rp_cnp_handled"))

    def test_CC_02_mark_on_a_response(self):
        self.req()
        self.post(self.wr("RDMA_READ", 100))
        frame = self.read_answer(S, bytes(100))[0]
        marked = roce.marked(frame)
        self.assertEqual([], self.feed(marked))
        self.assertEqual(1, self.delta("np_ecn_marked_roce_packets"))
        self.succeeded(self.ids(1))


class Credits(ReqCase):

    def test_FLOW_04_limit(self):
        """SENDs beyond the credits wait; WRITEs and READs do not; one request probes."""
        self.req(knobs={"req.credits": "on"})
        self.sends(1)
        self.nak(S, 0x00)                                # ACK, no credit left, MSN 0
        self.succeeded(self.ids(1))
        got = self.post(self.wr("RDMA_WRITE", 10), self.wr("SEND", 10), self.wr("SEND", 10))
        self.assertEqual([S + 1], self.psns(got))        # the WRITE; the SENDs are held
        got = self.feed(self.peer.acknowledge(S + 1, 0x1F, msn=2))
        self.assertEqual([S + 2, S + 3], self.psns(got))
        self.ack(S + 3)
        self.assertEqual(3, len(self.cqes()))

    def test_FLOW_05_unsolicited_ack_gives_credit(self):
        self.req(knobs={"req.credits": "on"})
        self.sends(1)
        self.feed(self.peer.acknowledge(S, 0x00, msn=1))
        self.succeeded(self.ids(1))
        self.assertEqual([S + 1], self.psns(self.sends(3)))       # a probe
        self.assertEqual([S + 2, S + 3],
                         self.psns(self.feed(self.peer.acknowledge(S, 0x05, msn=1))))
        self.assertEqual([], self.cqes())
        self.assertEqual(3, self.qp()["retry_cnt_left"])

    def test_FLOW_06_credits_are_ignored_by_default(self):
        self.req()
        self.sends(1)
        self.feed(self.peer.acknowledge(S, 0x00, msn=1))
        self.assertEqual([S + 1, S + 2], self.psns(self.sends(2)))

    def test_FLOW_06_ghost_is_ignored_by_default(self):
        self.req()
        self.sends(1)
        self.ack(S)
        self.assertEqual([], self.feed(self.peer.acknowledge(S, 0x00, msn=1)))
        self.assertEqual([S + 1, S + 2], self.psns(self.sends(2)))

    def test_FLOW_06_too_little_from_a_ghost(self):
        """A probe leaves all the same, and its ACK corrects the value."""
        self.req(knobs={"req.credits": "on"})
        self.sends(1)
        self.feed(self.peer.acknowledge(S, 0x05, msn=1))
        self.succeeded(self.ids(1))
        self.assertEqual([], self.feed(self.peer.acknowledge(S, 0x00, msn=1)))
        self.assertEqual([S + 1], self.psns(self.sends(4)))
        self.assertEqual([S + 2, S + 3],
                         self.psns(self.feed(self.peer.acknowledge(S + 1, 0x02, msn=2))))
        self.assertEqual([S + 4],
                         self.psns(self.feed(self.peer.acknowledge(S + 3, 0x01, msn=4))))
        self.ack(S + 4)
        self.succeeded([101, 102, 103, 104])
        self.well()

    def test_FLOW_06_too_much_from_a_ghost(self):
        """What leaves too early draws an RNR NAK, and nobody hears of it; ACKs limit again."""
        self.req(knobs={"req.credits": "on"})
        self.sends(1)
        self.feed(self.peer.acknowledge(S, 0x01, msn=1))
        self.succeeded(self.ids(1))
        self.assertEqual([], self.feed(self.peer.acknowledge(S, 0x0a, msn=1)))
        self.assertEqual([S + 1, S + 2, S + 3], self.psns(self.sends(3)))
        self.assertEqual([], self.nak(S + 2, roce.SYN_RNR | 1))
        self.assertEqual([S + 2, S + 3], self.psns(self.until_sent(50 * MS)[1]))
        self.assertEqual([], self.feed(self.peer.acknowledge(S + 3, 0x00, msn=4)))
        self.succeeded([101, 102, 103])
        self.assertEqual([S + 4], self.psns(self.sends(2)))
        self.assertEqual([S + 5],
                         self.psns(self.feed(self.peer.acknowledge(S + 4, 0x01, msn=5))))
        self.ack(S + 5)
        self.succeeded([104, 105])
        self.well()


if __name__ == "__main__":
    dut.main()
