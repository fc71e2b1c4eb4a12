# SPDX-License-Identifier: BSD-3-Clause
"""FLOW: what a responder tells its peer, and its host, of its receives."""
import dut
import roce
from dut import Ack, DutCase, E, Nak, QPN, RKEY, VA

NONE = 0x1F                     # no credit information


class Credits(DutCase):
    """resp.credits=on: the credit is the syndrome of an ACK."""

    def credits(self, recv, **qp):
        self.resp(recv=recv, knobs={"resp.credits": "on"}, **qp)

    def test_FLOW_07_unsolicited_ack(self):
        """After a credit of 0, what is posted is told: last acknowledged PSN, new credit."""
        self.credits(1)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, 0, 1))
        self.silent()
        self.post_recv(1)
        self.expect(self.feed(), Nak(E, 1, 1))
        self.post_recv(1)
        self.silent(self.feed())
        self.expect(self.feed(self.peer.send_only(E + 1, b"x")), Nak(E + 1, 1, 2))

    def test_FLOW_07_of_several(self):
        """Those posted at once are told of at once, as far as the code goes."""
        self.credits(1)
        self.feed(self.peer.send_only(E, b"x"))
        self.rpc("post_recv", qp_num=QPN, wrs=[{"wr_id": 10 + i} for i in range(9)])
        self.expect(self.feed(), Nak(E, 6, 1))                    # code 6: eight

    def test_FLOW_07_credit_0_by_any_answer(self):
        """A WRITE's ACK and a READ's response announce as well as a SEND's."""
        for request in (lambda p: p.write_only(E, b"x", VA, RKEY),
                        lambda p: p.read_req(E, VA, RKEY, 8)):
            self.credits(0)
            got = self.feed(request(self.peer))
            self.assertEqual([0], [f.syndrome for f in got])
            self.post_recv(1)
            self.expect(self.feed(), Nak(E, 1, 1))

    def test_FLOW_07_while_the_peer_waits(self):
        """An RNR NAK is no announcement that replaces the credit: the ACK comes all the same."""
        self.credits(1)
        self.feed(self.peer.send_only(E, b"x"))
        got = self.feed(self.peer.send_only(E + 1, b"probe"))
        self.assertEqual([roce.SYN_RNR + 12], [f.syndrome for f in got])
        self.post_recv(1)
        self.expect(self.feed(), Nak(E, 1, 1))
        self.expect(self.feed(self.peer.send_only(E + 1, b"probe")), Nak(E + 1, 0, 2))

    def test_FLOW_07_a_dropped_duplicate_tells_nothing(self):
        """It comes just before what is posted is looked at."""
        for frame in (lambda p: p.read_req(E - 5, VA, RKEY, 8),
                      lambda p: p.fetch_add(E - 5, VA, RKEY, 1),
                      lambda p: p.packet(0x1F, E)):
            self.credits(1)
            self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, 0, 1))
            self.dut.rx(frame(self.peer))
            self.post_recv(1)
            self.expect(self.feed(), Nak(E, 1, 1))

    def test_FLOW_07_not_in_ERR_nor_after_RESET(self):
        for state in ("ERR", "RESET"):
            self.credits(1)
            self.feed(self.peer.send_only(E, b"x"))
            self.rpc("qp_modify", qp_num=QPN, qp_state=state)
            if state == "RESET":
                self.walk_up("RTS")
            self.post_recv(1)
            self.silent(self.feed(), ms=1)

    def test_FLOW_02_off_by_default(self):
        self.resp(recv=1)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.post_recv(1)
        self.silent()

    def test_SRQ_03_shared_queue_announces_nothing(self):
        """Whose receives they are nobody knows: 31, and no ACK by itself."""
        self.make("srq_create", name="srq0", pd="pd0", max_wr=16, max_sge=4)
        self.addCleanup(self.clear)
        made = self.made.pop()
        self.resp(recv=0, srq="srq0", knobs={"resp.credits": "on"},
                  cap={"max_send_wr": 16, "max_send_sge": 4})
        self.made.insert(0, made)
        self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": 1, "sg_list": [
            {"mr": "rbuf", "offset": 0, "length": 64}]}])
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NONE, 1))
        self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": 2}])
        self.silent()

    def test_FLOW_03_recv_feed_is_never_empty(self):
        """The worker keeps the queue filled: of 8 buffers 7 are free, code 5 stands for 6."""
        self.credits(0, recv_feed={"buffers": 8, "size": 64})
        for i in range(12):
            self.expect(self.feed(self.peer.send_only(E + i, b"x")), Nak(E + i, 5, i + 1))

    def test_FLOW_07_explain(self):
        self.credits(1)
        self.feed(self.peer.send_only(E, b"x"))
        waits = {w["kind"]: w["text"] for w in self.rpc("qp_explain", qp_num=QPN)["waits"]}
        self.assertIn("the peer has no credit", waits["RECEIVE_QUEUE_EMPTY"])


class Limit(DutCase):
    """FLOW-08: rq_limit of a QP, as srq_limit of a shared receive queue (SRQ-02)."""

    LOW = [("RQ_LIMIT_REACHED", QPN)]

    def arm(self, limit, qp_num=QPN):
        self.assertEqual(limit, self.rpc("qp_modify", qp_num=qp_num, rq_limit=limit)["rq_limit"])

    def take(self, psn, **kw):
        return self.feed(self.peer.send_only(psn, b"x", **kw))

    def test_FLOW_08_once(self):
        """Below 2: one event, and no limit any more; qp_modify arms it again."""
        self.resp(recv=4, rq_limit=2)
        self.assertEqual(2, self.qp()["rq_limit"])
        for i, want in enumerate(([], [], self.LOW, [])):
            self.expect(self.take(E + i), Ack(E + i, i + 1))
            self.assertEqual(want, self.event_types())
        self.assertEqual(0, self.qp()["rq_limit"])
        self.post_recv(3)
        self.take(E + 4)
        self.assertEqual([], self.events())
        self.arm(2)
        self.assertEqual([], self.events())
        self.take(E + 5)
        event = self.events()
        self.assertEqual([("RQ_LIMIT_REACHED", QPN, "RQ")],
                         [(e["event_type"], e["qp_num"], e["source"]) for e in event])
        self.assertIn("rq_limit", event[0]["detail"])
        self.assertEqual("RTS", self.state())

    def test_FLOW_08_a_burst_is_one_event(self):
        """Of many at once, on the short path or not, and nothing is answered otherwise for it."""
        self.resp(recv=8, rq_limit=6)
        self.feed(*(self.peer.send_only(E + i, b"x") for i in range(8)))
        self.assertEqual(self.LOW, self.event_types())
        self.assertEqual([(i, "SUCCESS") for i in range(8)], self.statuses())
        self.assertEqual(E + 8, self.qp()["epsn"])

    def test_FLOW_08_armed_below_the_limit(self):
        """The next receive taken tells, and so does the first that is not there."""
        self.resp(recv=2)
        self.arm(3)
        self.take(E)
        self.assertEqual(self.LOW, self.event_types())
        self.take(E + 1)
        self.arm(3)
        self.assertEqual([], self.events())
        got = self.take(E + 2)
        self.assertEqual([roce.SYN_RNR + 12], [f.syndrome for f in got])
        self.assertEqual(self.LOW, self.event_types())

    def test_FLOW_08_disarmed(self):
        self.resp(recv=2, rq_limit=2)
        self.arm(0)
        self.take(E)
        self.assertEqual([], self.events())

    def test_FLOW_08_beside_credits(self):
        self.resp(recv=2, rq_limit=2, knobs={"resp.credits": "on"})
        self.expect(self.take(E), Nak(E, 1, 1))
        self.assertEqual(self.LOW, self.event_types())
        self.expect(self.take(E + 1), Nak(E + 1, 0, 2))
        self.post_recv(1)
        self.expect(self.feed(), Nak(E + 1, 1, 2))

    def test_FLOW_08_no_receive_of_a_WRITE(self):
        """A WRITE takes none; with immediate it does."""
        self.resp(recv=2, rq_limit=2)
        self.feed(self.peer.write_only(E, b"x", VA, RKEY))
        self.assertEqual([], self.events())
        self.feed(self.peer.write_only_imm(E + 1, b"x", VA, RKEY))
        self.assertEqual(self.LOW, self.event_types())

    def test_FLOW_08_stays_over_RESET(self):
        self.resp(recv=2, rq_limit=2)
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS", rq_psn=E)
        self.post_recv(2)
        self.assertEqual([], self.events())
        self.take(E)
        self.assertEqual(self.LOW, self.event_types())

    def test_FLOW_08_refused(self):
        self.resp(recv=2)
        for limit, text in ((17, "max_recv_wr (16)"),):
            with self.assertRaises(dut.RpcError) as e:
                self.arm(limit)
            self.assertIn(text, str(e.exception))
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("qp_modify", qp_num=QPN, rq_limit=1, min_rnr_timer=3)
        self.assertIn("without other attributes", str(e.exception))
        with self.assertRaises(dut.RpcError) as e:
            self.resp(recv=0, rq_limit=1, recv_feed={"buffers": 4, "size": 64})
        self.assertIn("rq_limit", str(e.exception))
        self.resp(recv=0, recv_feed={"buffers": 4, "size": 64})
        with self.assertRaises(dut.RpcError) as e:
            self.arm(1)
        self.assertIn("no receive queue of its own", str(e.exception))


if __name__ == "__main__":
    dut.main()
