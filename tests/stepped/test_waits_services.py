# SPDX-License-Identifier: BSD-3-Clause
"""qp_explain of services other than RC, and of a send_feed: no wait for what they have not."""
import dut
import dut_loop
import dut_uc
import dut_ud
import dut_xrc
from dut import E, QPN
from dut_loop import ASK

BAD = [{"addr": hex(0x1234), "length": 64, "lkey": 0x77777}]
SQE = "a send request has failed (SQE): those that are posted are flushed"


class Looked:

    def waits(self, qp_num=QPN):
        """[(kind, text, what ends it)]"""
        return [(w["kind"], w["text"], w["wakes"])
                for w in self.rpc("qp_explain", qp_num=qp_num)["waits"]]


class UC(Looked, dut_uc.UcCase):

    def test_no_receive(self):
        self.req(recv=0)
        self.assertIn(("RECEIVE_QUEUE_EMPTY", "the receive queue is empty: a SEND, or a WRITE with "
                       "immediate, is lost", "post_recv"), self.waits())

    def test_first_packet(self):
        self.req(recv=4, qp_state="RTR", sq_psn=None)
        self.assertEqual([("FIRST_PACKET", "no packet of the peer has been accepted",
                           "the first packet of a message, whatever its PSN")], self.waits())
        self.quiet(self.peer.send_only(E + 7, b"x"))
        self.assertEqual([("RTR", "requests are taken; none is sent before RTS",
                           "qp_modify to RTS")], self.waits())

    def test_sqe(self):
        self.req(recv=4)
        self.post(self.wr("SEND", sg_list=BAD))
        self.assertEqual([("SQE", SQE, "qp_modify to RTS")], self.waits())


class UD(Looked, dut_ud.UdCase):

    def test_no_receive(self):
        self.sender(recv=0)
        self.assertIn(("RECEIVE_QUEUE_EMPTY", "the receive queue is empty: a datagram is lost",
                       "post_recv"), self.waits())

    def test_first_datagram(self):
        self.ud(qp_state="RTR", sq_psn=None)
        self.assertEqual([("FIRST_PACKET", "no datagram has been accepted",
                           "a datagram with its qkey")], self.waits())

    def test_sqe(self):
        """Each datagram goes elsewhere: there is no peer to be named."""
        self.sender()
        self.post(self.wr(sg_list=BAD))
        self.assertEqual([("SQE", SQE, "qp_modify to RTS")], self.waits())
        self.assertIsNone(self.rpc("qp_explain", qp_num=QPN)["error"]["peer"])


class XRC(Looked, dut_xrc.XrcCase):

    def test_target_has_no_queues(self):
        self.target(recv=0)
        self.assertEqual([], self.waits())

    def test_target_in_rtr(self):
        self.target(qp_state="RTR")
        self.assertEqual([("FIRST_PACKET", "no packet of the peer has been accepted; PSN %u is "
                           "expected" % E, "a packet with PSN rq_psn")], self.waits())
        self.feed(self.peer.send_only(E, b"x"))
        self.assertEqual([("RTR", "requests are answered", "a packet of the peer")], self.waits())

    def test_initiator_has_no_receive_queue(self):
        self.initiator()
        self.assertEqual([("SEND_QUEUE_EMPTY", "the send queue is empty: nothing is posted",
                           "post_send")], self.waits())


class Feed(Looked, dut_loop.LoopCase):

    def test_its_count_is_behind_it(self):
        self.pair(ask={"send_feed": {"opcode": "RDMA_WRITE", "size": 64, "depth": 8, "count": 50,
                                     "rkey": "0x202", "remote_addr": hex(0x202 << 32)}})
        self.settle(ms=5)
        self.assertIn(("FEED_DONE", "the send_feed has done its count: 50 requests", "nothing"),
                      self.waits(ASK))
        self.assertNotIn("SEND_QUEUE_EMPTY", [kind for kind, _, _ in self.waits(ASK)])


if __name__ == "__main__":
    dut.main()
