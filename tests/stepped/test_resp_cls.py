# SPDX-License-Identifier: BSD-3-Clause
"""RESP-CLS: what each class of responder error leaves behind."""
import dut
import roce
from dut import ALL_REMOTE, QPN, RKEY, VA, Ack, E, Nak, Rnr
from roce import NAK_INV, NAK_RAE, NAK_ROE, NAK_SEQ, data


class Classes(dut.DutCase):

    def test_RESP_CLS_A_01_local_error(self):
        """NAK-ROE, a completion error on the WQE, no event, QP in ERR."""
        self.resp(recv=0)
        self.post_recv_sges([{"lkey": "0x123456", "addr": "0x1000", "length": 4096}])
        self.post_recv(2)
        self.expect(self.feed(self.peer.send_first(E, data(1024))), Nak(E, NAK_ROE, 0))
        self.fatal(E, cqe="LOC_PROT_ERR", flushed=2)

    def test_RESP_CLS_B_01_nak_only(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E + 1)), Nak(E, NAK_SEQ, 0))
        self.unchanged(recv=4)
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 12, 0))
        self.unchanged(recv=0)

    def test_RESP_CLS_C_01_nak_and_local_report(self):
        """By an event where no WQE is tied to the request, by a completion where one is."""
        self.resp()
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))
        self.fatal(E, event="QP_ACCESS_ERR", flushed=4)
        self.resp()
        self.expect(self.each(self.peer.send_first(E, data(1024)), self.peer.send_only(E + 1)),
                    Nak(E + 1, NAK_INV, 0))
        self.fatal(E + 1, cqe="REM_INV_REQ_ERR", flushed=3)

    def test_RESP_CLS_C_01_knob_event_with_cqe(self):
        """ae.with_cqe: the event comes even where a completion reports the error."""
        self.resp(knobs={"ae.with_cqe": "on"})
        self.expect(self.feed(self.peer.write_only_imm(E, b"x", VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))
        self.fatal(E, event="QP_ACCESS_ERR", cqe="REM_ACCESS_ERR", flushed=3)

    def test_RESP_CLS_C_01_of_a_feed(self):
        """Its completions go nowhere, so its errors are events."""
        self.resp(recv=0, recv_feed={"buffers": 4, "size": 64})
        self.expect(self.feed(self.peer.send_only(E, data(64))), Ack(E, 1))
        self.expect(self.feed(self.peer.send_only(E + 1, data(65))), Nak(E + 1, NAK_INV, 1))
        self.fatal(E + 1, event="QP_REQ_ERR", flushed=0)

    def test_RESP_CLS_D_01_silent_drop(self):
        self.resp()
        p = self.peer
        self.expect(self.feed(p.write_only(E, b"x", VA, RKEY)), Ack(E, 1))
        for frame in (p.send_only(E + 1, tver=1), p.send_only(E + 1, pkey=0x1234),
                      p.fetch_add(E, VA, RKEY, 1), roce.flip(p.send_only(E + 1, b"x"), 56 * 8)):
            self.silent(self.feed(frame), ms=1)
        self.unchanged(epsn=E + 1)

    def test_RESP_CLS_G_01_completion_queue_full(self):
        """The CQ gets its event, the QP its own; memory stays safe."""
        self.resp(recv=4, cqe=1)
        p = self.peer
        cqe = self.rpc("cq_list")
        entries = [c["cqe"] for c in cqe if c["name"] == "cq0"][0]
        self.each(*[p.send_only(E + i, data(8, i)) for i in range(min(entries, 3) + 2)])
        events = self.rpc("async_events", max=64)
        kinds = [(e["event_type"], e.get("cq"), e.get("qp_num")) for e in events]
        self.assertIn("CQ_ERR", [k[0] for k in kinds], kinds)
        self.assertEqual("cq0", [k[1] for k in kinds if k[0] == "CQ_ERR"][0])
        self.assertIn(("QP_FATAL", QPN), [(k[0], k[2]) for k in kinds], kinds)
        self.assertEqual("ERR", self.state())
        done = self.cqes()
        self.assertEqual((0, "SUCCESS"), (done[0]["wr_id"], done[0]["status"]))

    def class_j(self, frame):
        """No NAK, no ACK: a completion in error, and the rest flushed."""
        self.silent(self.feed(frame))
        self.fatal(E, cqe="REM_INV_REQ_ERR", flushed=3)

    def test_RESP_CLS_J_01_unknown_key(self):
        self.resp()
        self.class_j(self.peer.send_only_inv(E, data(10), 0x7777))

    def test_RESP_CLS_J_01_not_invalidatable(self):
        self.resp()
        self.class_j(self.peer.send_only_inv(E, data(10), RKEY))

    def test_RESP_CLS_J_01_other_pd(self):
        self.resp()
        self.make("pd_create", name="pd1")
        self.make("mr_register", name="mr1", pd="pd1", length=4096, addr="0x20000000",
                  rkey="0x7777", access=ALL_REMOTE, remote_invalidate=True)
        self.class_j(self.peer.send_only_inv(E, data(10), 0x7777))

    def test_RESP_CLS_J_01_last_of_a_message(self):
        self.resp()
        self.assertEqual([], self.feed(self.peer.send_first(E, data(1024))))
        self.silent(self.feed(self.peer.packet(roce.SEND_LAST_INV, E + 1, b"x", roce.ieth(0x7777))))
        self.fatal(E + 1, cqe="REM_INV_REQ_ERR", flushed=3)

    def test_RESP_CLS_J_01_knob_ack(self):
        self.resp(knobs={"resp.class_j_ack": "ack"})
        got = self.feed(self.peer.send_only_inv(E, data(10), 0x7777))
        self.assertEqual([(roce.ACK, E, roce.SYN_ACK)], [f.key()[:3] for f in got])
        self.assertEqual("ERR", self.state())

    def test_RESP_CLS_J_02_lowest_priority(self):
        """Over-long, no WQE, out of sequence: that fault is reported, not the key."""
        self.resp(recv=0)
        self.post_recv(1, size=5)
        self.expect(self.feed(self.peer.send_only_inv(E, data(10), 0x7777)), Nak(E, NAK_INV, 0))
        self.fatal(E, cqe="LOC_LEN_ERR", flushed=0)
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only_inv(E, data(10), 0x7777)), Rnr(E, 12, 0))
        self.unchanged(recv=0)
        self.resp()
        self.expect(self.feed(self.peer.send_only_inv(E + 1, data(10), 0x7777)), Nak(E, NAK_SEQ, 0))
        self.unchanged()

    def test_RESP_CLS_01_table(self):
        """The RC rows of responder_errors that a peer can cause, one after the other."""
        bad = RKEY ^ 0x01000000
        rows = (
            # frames, syndrome, event, status of the tied WQE
            ("opcode", lambda p: [p.packet(0x1F, E)], NAK_INV, "QP_REQ_ERR", None),
            ("misaligned", lambda p: [p.fetch_add(E, VA + 4, RKEY, 1)], NAK_INV, "QP_REQ_ERR",
             None),
            ("first inside", lambda p: [p.send_first(E, data(1024)), p.send_only(E + 1)],
             NAK_INV, None, "REM_INV_REQ_ERR"),
            ("stray", lambda p: [p.write_last(E, b"x")], NAK_INV, "QP_REQ_ERR", None),
            ("too long", lambda p: p.send(E, data(4097)), NAK_INV, None, "LOC_LEN_ERR"),
            ("length", lambda p: [p.send_first(E, data(100))], NAK_INV, "QP_REQ_ERR", None),
            ("DMALen", lambda p: [p.write_only(E, b"x", VA, RKEY, length=2)],
             NAK_INV, "QP_REQ_ERR", None),
            ("key", lambda p: [p.read_req(E, VA, bad, 1)], NAK_RAE, "QP_ACCESS_ERR", None),
            ("key of immediate", lambda p: [p.write_only_imm(E, b"x", VA, bad)],
             NAK_RAE, None, "REM_ACCESS_ERR"),
        )
        for name, frames, syndrome, event, status in rows:
            with self.subTest(row=name):
                self.resp()
                sent = frames(self.peer)
                at = roce.Frame(sent[-1]).psn
                self.expect(self.each(*sent), Nak(at, syndrome, 0))
                self.fatal(at, event=event, cqe=status, flushed=3 if status else 4)


if __name__ == "__main__":
    dut.main()
