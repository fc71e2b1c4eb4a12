# SPDX-License-Identifier: BSD-3-Clause
"""qp_explain of a QP that is not in ERR: what it waits for, since when, what would end it."""
import dut
import roce
from dut import MS, QPN, RKEY, VA, E
from dut_req import S, ReqCase, in_time, transport_ns

LAPSE = 3 * MS
RNR_12 = 640_000                # ns of min_rnr_timer 12: 0.64 ms


class Waits(ReqCase):

    def waits(self):
        return self.rpc("qp_explain", qp_num=QPN)["waits"]

    def one(self, kind):
        """Exactly one of this kind, with something for people to read."""
        got = [w for w in self.waits() if w["kind"] == kind]
        self.assertEqual(1, len(got), self.waits())
        self.assertTrue(got[0]["text"] and got[0]["wakes"])
        return got[0]

    def kinds(self):
        return [w["kind"] for w in self.waits()]

    def ago(self, w):
        return self.now() - w["since_ns"]

    def now(self):
        return int(self.dut.command("now")[0])

    def test_nothing_posted(self):
        self.req(recv=4)
        self.assertEqual(["SEND_QUEUE_EMPTY"], self.kinds())
        self.assertEqual("post_send", self.one("SEND_QUEUE_EMPTY")["wakes"])
        self.sends(1, 100)
        self.ack(S, 1)
        self.assertEqual(["SEND_QUEUE_EMPTY"], self.kinds())

    def test_acknowledgement(self):
        """Oldest PSN, since the packet left, until the timer, retries; after a timeout one less."""
        self.req(recv=4, timeout=14, retry_cnt=3)
        self.sends(2, 100)
        sent = self.now()
        self.dut.run(LAPSE)
        w = self.one("ACK")
        self.assertEqual((S, 100, 3), (w["psn"], w["wr_id"], w["retries_left"]))
        self.assertEqual(sent, w["since_ns"])
        self.assertTrue(in_time(w["until_ns"] - sent, transport_ns(14)), w)
        self.assertIn("SEND wr_id 100, and 1 requests behind it", w["text"])
        self.assertEqual(["ACK"], self.kinds())
        self.feed(ns=w["until_ns"] - self.now() + LAPSE)
        self.assertEqual(2, self.one("ACK")["retries_left"])
        self.ack(S + 1, 2)
        self.assertEqual(["SEND_QUEUE_EMPTY"], self.kinds())

    def test_timeout_too_short(self):
        """TMR-01, TMR-07: a queue takes longer than `timeout`, so answers come behind the timer.

        What has ended stays told of with another `timeout`, which is too short only if more end.
        """
        self.req(recv=4, timeout=10, retry_cnt=7)
        self.assertNotIn("timeouts", self.rpc("qp_explain", qp_num=QPN))
        self.sends(8)
        self.ack(S + 7, 8)
        self.post(self.wr("RDMA_WRITE", 60000))      # 59 packets
        self.until_sent(5 * transport_ns(10))
        first = self.rpc("qp_explain", qp_num=QPN)["timeouts"]
        self.assertEqual((1, 0, 10), (first["count"], first["early"], first["timeout"]))
        self.assertEqual("transport timers that have ended: 1", first["text"])
        self.ack(S + 23, 8)
        self.assertEqual(0, self.delta("local_ack_timeout_early"))
        self.ack(S + 55, 8)
        self.assertEqual(1, self.delta("local_ack_timeout_early"))
        self.ack(S + 66, 9)
        self.assertEqual((1, 1), (self.delta("local_ack_timeout_err"),
                                  self.delta("local_ack_timeout_early")))
        self.well()
        got = self.rpc("qp_explain", qp_num=QPN)["timeouts"]
        self.assertEqual((1, 1, 10), (got["count"], got["early"], got["timeout"]))
        # Eight times as long: 4.096 us * 2^13.
        for words in ("at least 1 of 1 transport timers ended too early",
                      "If local_ack_timeout_early still grows, timeout 10 (4194 us) is shorter",
                      "try timeout 13 (33554 us)"):
            self.assertIn(words, got["text"])
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD")
        self.feed()
        for timeout, words in (
                (12, "timeout 12 (16777 us) is shorter than the queues, the link or the peer "
                     "take: try timeout 15 (134217 us). It is changed in state SQD"),
                (30, "try timeout 31 (8796093022 us). It is changed in state SQD"),
                (31, "timeout is 31 (8796093022 us) now: there is no longer one, and 0 runs no "
                     "timer"),
                (0, "timeout is 0 now: no timer runs")):
            self.rpc("qp_modify", qp_num=QPN, timeout=timeout)
            got = self.rpc("qp_explain", qp_num=QPN)["timeouts"]
            self.assertEqual((1, 1, timeout), (got["count"], got["early"], got["timeout"]))
            self.assertTrue(got["text"].endswith(words), got["text"])

    def test_timeout_0(self):
        """No timer: it says so, and knows nevertheless since when."""
        self.req(recv=4, timeout=0)
        self.sends(1, 100)
        sent = self.now()
        self.dut.run(LAPSE)
        w = self.one("ACK")
        self.assertNotIn("until_ns", w)
        self.assertIn("timeout is 0", w["text"])
        self.assertEqual(sent, w["since_ns"])

    def test_rnr(self):
        self.req(recv=4, rnr_retry=3)
        self.sends(1, 100)
        self.rnr(S, 12)
        began = self.now()
        self.dut.run(MS // 10)
        w = self.one("RNR")
        self.assertEqual((S, 2), (w["psn"], w["retries_left"]))
        self.assertEqual(began, w["since_ns"])
        self.assertTrue(in_time(w["until_ns"] - began, RNR_12), w)
        self.assertIn("640 us", w["text"])
        self.assertEqual(["RNR"], self.kinds())

    def test_receive_queue_empty(self):
        """Of a QP whose peer was told so: since then."""
        self.req(recv=0)
        self.assertNotIn("since_ns", self.one("RECEIVE_QUEUE_EMPTY"))
        self.feed(self.peer.send_only(dut.E, b"x"))
        began = self.now()
        self.dut.run(MS // 10)
        w = self.one("RECEIVE_QUEUE_EMPTY")
        self.assertEqual(began, w["since_ns"])
        self.assertEqual("post_recv", w["wakes"])
        self.assertIn("the peer waits with one", w["text"])
        self.dut.run(RNR_12)
        text = self.one("RECEIVE_QUEUE_EMPTY")["text"]
        self.assertNotIn("the peer waits", text)
        self.assertIn("has not come again", text)
        self.post_recv(1)
        self.assertNotIn("RECEIVE_QUEUE_EMPTY", self.kinds())

    def test_fence(self):
        self.req(recv=4)
        self.post(self.wr("RDMA_READ", 10), self.wr("SEND", 10, send_flags=["FENCE"]))
        w = self.one("FENCE")
        self.assertEqual((S, 100), (w["psn"], w["wr_id"]))
        self.assertEqual(["FENCE", "ACK"], self.kinds())

    def test_read_limit(self):
        self.req(recv=4, max_rd_atomic=1)
        self.post(self.wr("RDMA_READ", 10), self.wr("RDMA_READ", 10))
        self.assertEqual((S, 100), tuple(self.one("READ_LIMIT")[k] for k in ("psn", "wr_id")))

    def test_window(self):
        """More packets than may be in flight; since the newest sign of the peer."""
        self.req(recv=4, knobs={"req.max_outstanding_psn": 8})
        self.post(self.wr("RDMA_WRITE", 60000))
        self.assertIn("8 request packets in flight of 8", self.one("WINDOW")["text"])
        self.assertEqual(["WINDOW", "ACK"], self.kinds())

    def test_congestion(self):
        """CC-05: a CNP has halved the window."""
        self.req(recv=4, knobs={"cc.algo": "ernic_window"})
        self.feed(self.peer.cnp())
        self.post_raw(*[self.wr("RDMA_WRITE", 60000) for _ in range(12)])
        self.dut.run()
        self.assertIn("CNP", self.one("CONGESTION")["text"])

    def test_congestion_of_answers(self):
        """CC-22: READ responses wait for their turn."""
        self.resp(recv=4, knobs={"cc.algo": "dcqcn", "cc.rpg_max_rate": 1})
        self.dut.rx(self.peer.read_req(E, VA, RKEY, 8192))
        self.dut.run()
        self.assertIn("packets leave at 1.000 Mb/s", self.one("CONGESTION")["text"])

    def test_congestion_by_delay(self):
        """CC-33: the window is that of round trips, and no CNP has come."""
        self.req(recv=4, knobs={"cc.algo": "delay", "cc.delay_start": 2})
        self.post(*[self.wr("SEND", 10) for _ in range(4)])
        self.assertIn("2 request packets in flight of 2, as its round trips have it",
                      self.one("CONGESTION")["text"])

    def test_credits(self):
        """FLOW-03: the peer has announced no receive beyond this one."""
        self.req(recv=4, knobs={"req.credits": "on"})
        self.sends(1, 10)
        self.feed(self.peer.acknowledge(S, syndrome=0, msn=1))
        self.sends(3, 10)
        self.assertEqual(["CREDITS", "ACK"], self.kinds())

    def test_states(self):
        """RESET, INIT and RTR: what leads on; since the modify that led there."""
        self.req(recv=0)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        began = self.now()
        self.dut.run(LAPSE)
        self.assertEqual(["RESET"], self.kinds())
        self.assertEqual(began, self.one("RESET")["since_ns"])
        self.walk_up("INIT")
        self.assertEqual(["INIT"], self.kinds())
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTR")
        self.post_recv(2)
        self.assertEqual(["FIRST_PACKET"], self.kinds())
        self.feed(self.peer.send_only(dut.E, b"x"))
        self.assertEqual(["RTR"], self.kinds())

    def test_sqd(self):
        self.req(recv=4)
        self.sends(1, 100)
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD")
        began = self.now()
        self.assertEqual(["SQD", "ACK"], self.kinds())
        self.dut.run(LAPSE)
        self.ack(S, 1)
        self.post_raw(self.wr("SEND", 10))
        w = self.one("SQD")
        self.assertEqual(began, w["since_ns"])
        self.assertIn("drained (SQD); 1 requests wait", w["text"])
        self.assertEqual(["SQD"], self.kinds())

    def test_neighbor(self):
        """Nobody answers for the peer's address."""
        self.req(recv=4, ah_attr={"dest_ip": "192.0.2.77"})
        self.post_raw(self.wr("SEND", 10))
        self.dut.run(350 * MS)
        w = self.one("NEIGHBOR")
        self.assertRegex(w["text"], "192.0.2.77 is INCOMPLETE: asked .* on port p0")

    def test_no_route(self):
        """Nobody is asked, so nobody's answer is waited for."""
        self.rpc("route_add", port="p0", to="198.51.100.0/24", via="192.0.2.77")
        self.req(recv=4, ah_attr={"dest_ip": "198.51.100.7"})
        self.rpc("route_del", port="p0", to="198.51.100.0/24")
        w = self.one("NEIGHBOR")
        self.assertEqual(("no route of port p0 reaches 198.51.100.7",
                          "a route of that port to it (route add)"), (w["text"], w["wakes"]))

    def test_port_down(self):
        self.req(recv=4)
        self.dut.run(200 * MS)
        self.dut.command("port 0 down")
        self.dut.run(200 * MS)
        began = self.now()
        self.dut.run(LAPSE)
        w = self.one("PORT_DOWN")
        self.assertIn("port p0", w["text"])
        self.assertEqual(began, w["since_ns"])
        self.dut.command("port 0 up")
        self.dut.run(200 * MS)
        self.assertEqual(["SEND_QUEUE_EMPTY"], self.kinds())

    def test_completion_queue_full(self):
        self.req(recv=4, cqe=2)
        self.sends(2, 10)
        self.ack(S + 1, 2)
        self.assertIn("cq0 is full (2 of 2)", self.one("CQ_FULL")["text"])
        self.cqes()
        self.assertNotIn("CQ_FULL", self.kinds())

    def test_message_open_and_nak(self):
        self.req(recv=4)
        self.feed(self.peer.send(dut.E, roce.pattern(9, 3000))[:1])
        self.assertEqual(dut.E + 1, self.one("MESSAGE_OPEN")["psn"])
        self.feed(self.peer.send_only(dut.E + 2, b"x"))
        self.assertEqual(dut.E + 1, self.one("NAK_SENT")["psn"])

    def test_failed(self):
        """In ERR nothing is waited for: the error tells."""
        self.req(recv=4)
        self.sends(1, 10)
        self.feed(self.peer.acknowledge(S, syndrome=roce.NAK_RAE))
        self.assertEqual([], self.waits())


if __name__ == "__main__":
    dut.main()
