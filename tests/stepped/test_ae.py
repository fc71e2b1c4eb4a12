# SPDX-License-Identifier: BSD-3-Clause
"""AE, AEQ: asynchronous events, from the worker's queue to the user."""
import dut
import variant
from dut import E, MS, QPN, RKEY, VA, Ack, Nak
from dut_req import S, ReqCase
from roce import NAK_INV, NAK_RAE, NAK_ROE, READ_ONLY, SYN_RNR, aeth, data

# lib/ring/tables/event_codes.def
REPORT, CQ_OPERATION, SUSPEND_COMPLETE, DOUBT, EXHAUSTION = 0x001, 0x002, 0x003, 0x011, 0x012
INVALID_KEY, WQE_OPCODE, MESSAGE_TOO_LONG, REMOTE_ACCESS, INVALID_REQUEST = (
    0x101, 0x111, 0x123, 0x131, 0x160)
INVALIDATE_RIGHTS, RETRIES, RNRS, RESPONSE_LENGTH, REMOTE_OPERATION = (
    0x130, 0x150, 0x151, 0x172, 0x173)
FROM_NONE, FROM_RQ, FROM_CQ, FROM_SQ, FROM_READ = 0, 1, 2, 5, 13


class Events(dut.DutCase):

    def one(self, event_type, source="RQ"):
        """Exactly one event, affiliated with the QP; the QP is in ERR when it is delivered."""
        events = self.events()
        self.assertEqual([(event_type, QPN, source)],
                         [(e["event_type"], e["qp_num"], e["source"]) for e in events])
        self.assertEqual("ERR", self.state())
        return events[0]

    def test_AE_01_invalid_request(self):
        self.resp()
        self.expect(self.feed(self.peer.write_last(E, b"x")), Nak(E, NAK_INV, 0))
        e = self.one("QP_REQ_ERR")
        self.assertEqual((E, "RC_WRITE_LAST", NAK_INV), (e["psn"], e["opcode"], e["syndrome"]))
        self.assertIn(e["rule"], e["detail"])
        self.assertNotEqual(0, e["fatal_code"])

    def test_AE_02_AE_11_access_violation(self):
        """AE-11: the state is ERR when the event is delivered; flushes are there too."""
        self.resp()
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))
        self.one("QP_ACCESS_ERR")
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(4)], self.statuses())

    def test_AE_03_AE_04_overflow_of_a_shared_queue(self):
        """One CQ_ERR, before or with the QP's event; each QP that loses one has its own."""
        self.resp(recv=4, cqe=4)
        self.make("qp_create", **self.qp_params(qp_num=0x12, dest_qp_num=0x23))
        self.post_recv(4, qp_num=0x12)
        other = self.peer.with_(qpn=0x12, own_qpn=0x23)
        for i in range(3):
            self.dut.rx(self.peer.send_only(E + i, b"a"))
            self.dut.rx(other.send_only(E + i, b"b"))
        self.dut.run()
        events = self.rpc("async_events", max=64)
        kinds = [e["event_type"] for e in events]
        self.assertEqual(1, kinds.count("CQ_ERR"), kinds)
        self.assertEqual(("CQ_ERR", "cq0", "CQ"),
                         (events[0]["event_type"], events[0]["cq"], events[0]["source"]))
        self.assertEqual({("QP_FATAL", QPN), ("QP_FATAL", 0x12)},
                         {(e["event_type"], e["qp_num"]) for e in events[1:]})
        self.assertEqual(3, len(events))
        self.assertEqual(("ERR", "ERR"), (self.state(), self.qp(0x12)["qp_state"]))
        self.assertEqual(["SUCCESS"] * 4, [c["status"] for c in self.cqes()])

    def test_AE_05_communication_established(self):
        self.resp(qp_state="RTR", recv=4)
        self.expect(self.each(self.peer.send_only(E), self.peer.send_only(E + 1)), Ack(E, 1),
                    Ack(E + 1, 2))
        got = self.rpc("async_events", max=64)
        self.assertEqual([("COMM_EST", QPN)], [(e["event_type"], e["qp_num"]) for e in got])
        self.resp(recv=4)
        self.expect(self.feed(self.peer.send_only(E)), Ack(E, 1))
        self.assertEqual([], self.rpc("async_events", max=64))

    def test_AE_05_once_whatever_changes_later(self):
        """In RTR, where attributes come without a new state."""
        self.resp(qp_state="RTR", recv=4)
        self.feed(self.peer.send_only(E))
        self.assertEqual(["COMM_EST"], [e["event_type"] for e in
                                        self.rpc("async_events", max=64)])
        for method in ("trace_stop", "trace_start"):
            self.rpc(method, qp_num=QPN)
        self.expect(self.feed(self.peer.send_only(E + 1)), Ack(E + 1, 2))
        self.assertEqual([], self.rpc("async_events", max=64))

    def test_AE_05_a_stale_duplicate_says_nothing(self):
        """Of the life before this one: answered as duplicates are, and no sign of the peer."""
        for write in (False, True):
            self.resp(qp_state="RTR", recv=4)
            p = self.peer
            self.feed(p.send_only(E - 1, b"old"), p.write_only(E - 2, b"old", VA, RKEY),
                      p.read_req(E - 3, VA, RKEY, 8), p.fetch_add(E - 4, VA, RKEY, 1),
                      p.send_only(E + 1, b"ahead"), p.cnp())
            self.assertEqual([], self.rpc("async_events", max=64))
            self.assertEqual(E, self.qp()["epsn"])
            self.expect(self.feed(p.write_only(E, b"new", VA, RKEY) if write else p.send_only(E)),
                        Ack(E, 1))
            self.feed(p.send_only(E - 1, b"old"))
            self.assertEqual([("COMM_EST", QPN)], [(e["event_type"], e["qp_num"]) for e in
                                                   self.rpc("async_events", max=64)])

    def test_a_look_at_events_takes_none(self):
        """peek: the newest that wait, oldest first; then async_events delivers each once."""
        self.resp(qp_state="RTR", recv=4)
        self.expect(self.feed(self.peer.send_only(E)), Ack(E, 1))
        self.expect(self.feed(self.peer.write_only(E + 1, b"x", VA, RKEY ^ 1)),
                    Nak(E + 1, NAK_RAE, 1))
        want = ["COMM_EST", "QP_ACCESS_ERR"]
        for _ in range(2):
            self.assertEqual(want, [e["event_type"] for e in self.rpc("async_events", peek=True)])
        self.assertEqual(want[1:], [e["event_type"] for e in
                                    self.rpc("async_events", max=1, peek=True)])
        self.assertEqual(want, [e["event_type"] for e in self.rpc("async_events", max=64)])
        self.assertEqual([], self.rpc("async_events", peek=True))
        with self.assertRaises(dut.RpcError) as refused:
            self.rpc("async_events", peek=True, follow=True)
        self.assertIn("peek", refused.exception.message)

    def test_AE_09_destroyed_with_an_event_waiting(self):
        """Neither what was queued nor what comes late names the QP, or its successor."""
        self.resp()
        self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))
        self.assertEqual([], self.rpc("async_events", max=64))
        self.resp()
        self.assertEqual([], self.rpc("async_events", max=64))
        # Raised, and not taken from the worker before the QP is gone.
        self.dut.rx(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        self.dut.command("turn 3")
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))
        self.make("qp_create", **self.qp_params())
        self.assertEqual([], self.rpc("async_events", max=64))
        self.assertEqual("RTS", self.state())

    def test_AE_10_a_completion_is_enough(self):
        """A receive WQE that carries the error leaves the event queue empty."""
        self.resp(recv=0)
        self.post_recv(2, size=5)
        self.expect(self.feed(self.peer.send_only(E, data(10))), Nak(E, NAK_INV, 0))
        self.fatal(E, cqe="LOC_LEN_ERR", flushed=1)
        self.resp(recv=2)
        self.expect(self.feed(self.peer.write_only_imm(E, b"x", VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))
        self.fatal(E, cqe="REM_ACCESS_ERR", flushed=1)

    def test_AE_12_without_an_alternate_path_nothing_migrates(self):
        """What a migration raises where there is one: test_apm.py."""
        self.resp()
        with self.assertRaises(dut.RpcError):
            self.rpc("qp_modify", qp_num=QPN, qp_state="RTS", path_mig_state="REARM")
        for i, mig in enumerate((0, 1, 0, 1)):
            self.feed(self.peer.send_only(E + i, b"m", mig=mig))
        self.assertEqual([], self.events())


class Queue(dut.DutCase):
    """Records put into the worker's queue as hardware would put them."""

    def record(self, code, source, wqe=0, ident=QPN):
        got = self.aeq(ident, code, source, wqe)
        self.dut.run()
        return got

    def test_AEQ_05_AEQ_07_records_of_nothing(self):
        self.resp()
        self.record(INVALID_KEY, FROM_RQ, ident=0x4321)
        self.record(SUSPEND_COMPLETE, FROM_NONE, ident=0x4321)
        for code in (INVALID_KEY, INVALID_REQUEST, DOUBT, 0xABC):
            self.record(code, FROM_NONE)
            self.record(code, FROM_CQ)
        self.unchanged()

    def test_AEQ_08_cq_operation_error(self):
        self.resp()
        self.make("cq_create", name="cq1", cqe=4)
        names = []
        for ident in range(1, 100):
            self.record(CQ_OPERATION, FROM_CQ, ident=ident)
            names += [e["cq"] for e in self.events()]
        self.assertEqual(["cq0", "cq1"], sorted(names))
        self.unchanged()

    def test_AEQ_09_nothing_happens(self):
        self.resp()
        for code in (DOUBT, EXHAUSTION):
            for source in (FROM_RQ, FROM_SQ, FROM_READ):
                self.record(code, source)
        self.unchanged()

    def test_AEQ_10_AEQ_11_abnormal(self):
        """The WR of the queue that the source names carries the status, or the event does."""
        rows = ((INVALID_KEY, "LOC_PROT_ERR", "QP_ACCESS_ERR"),
                (WQE_OPCODE, "LOC_QP_OP_ERR", "QP_FATAL"),
                (MESSAGE_TOO_LONG, "LOC_LEN_ERR", "QP_FATAL"),
                (REMOTE_ACCESS, "REM_ACCESS_ERR", "QP_ACCESS_ERR"),
                (INVALID_REQUEST, "REM_INV_REQ_ERR", "QP_REQ_ERR"),
                (0x7FF, "WR_FLUSH_ERR", "QP_FATAL"))
        for code, status, event in rows:
            with self.subTest(code=hex(code)):
                self.resp(recv=3)
                self.record(code, FROM_RQ, wqe=0)
                self.assertEqual([], self.events())
                self.assertEqual([(0, status), (1, "WR_FLUSH_ERR"), (2, "WR_FLUSH_ERR")],
                                 self.statuses())
                self.assertEqual("ERR", self.state())
                self.silent(self.feed(self.peer.send_only(E)), ms=1)
                for source in (FROM_SQ, FROM_READ):   # no send is posted
                    self.resp(recv=3)
                    self.record(code, source)
                    self.assertEqual([(event, QPN)], self.event_types())
                    self.assertEqual(["WR_FLUSH_ERR"] * 3, [s for _, s in self.statuses()])
                    self.assertEqual("ERR", self.state())

    def test_AEQ_11_send_queue(self):
        """The oldest send has the status; receives get flushes only."""
        self.resp(recv=2)
        wr = {"opcode": "RDMA_WRITE", "sg_list": [{"mr": "rbuf", "offset": 0, "length": 8}],
              "remote_addr": hex(VA), "rkey": hex(RKEY), "send_flags": ["SIGNALED"]}
        self.rpc("post_send", qp_num=QPN, wrs=[dict(wr, wr_id=100 + i) for i in range(3)])
        self.assertEqual(3, len(self.feed()))
        self.record(INVALID_KEY, FROM_SQ)
        got = self.statuses()
        self.assertEqual([(100, "LOC_PROT_ERR"), (101, "WR_FLUSH_ERR"), (102, "WR_FLUSH_ERR")],
                         [c for c in got if c[0] >= 100])
        self.assertEqual([(0, "WR_FLUSH_ERR"), (1, "WR_FLUSH_ERR")], [c for c in got if c[0] < 100])
        self.assertEqual([], self.events())

    def test_AEQ_10_index_of_the_failing_receive(self):
        """WQE indices go on with the ring: here the fourth, of which two were used."""
        self.resp(recv=4)
        self.expect(self.each(self.peer.send_only(E), self.peer.send_only(E + 1)), Ack(E, 1),
                    Ack(E + 1, 2))
        self.cqes()
        self.record(INVALID_KEY, FROM_RQ, wqe=3)
        self.assertEqual([(2, "WR_FLUSH_ERR"), (3, "LOC_PROT_ERR")], self.statuses())
        last = self.qp()["last_event"]
        self.assertEqual((INVALID_KEY, 3, "RQ", "invalid key"),
                         (last["code"], last["wqe_index"], last["source"], last["text"]))
        self.assertEqual([], self.events())

    def test_AEQ_11_knob_event_with_the_completion(self):
        self.resp(recv=1, knobs={"ae.with_cqe": "on"})
        self.record(INVALID_KEY, FROM_RQ)
        self.assertEqual([("QP_ACCESS_ERR", QPN)], self.event_types())
        self.assertEqual([(0, "LOC_PROT_ERR")], self.statuses())

    def test_AEQ_12_last_event(self):
        self.resp()
        self.assertIsNone(self.qp()["last_event"])
        self.record(DOUBT, FROM_SQ)
        self.record(SUSPEND_COMPLETE, FROM_NONE)
        self.assertEqual(DOUBT, self.qp()["last_event"]["code"])
        self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        last = self.qp()["last_event"]
        self.assertEqual((REMOTE_ACCESS, "QP_ACCESS_ERR", "RQ"),
                         (last["code"], last["event_type"], last["source"]))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.assertIsNone(self.qp()["last_event"])

    def test_AEQ_14_overflow_is_told(self):
        """More than the queue holds before anybody looks: what is lost is counted and reported."""
        self.resp()
        full = 0
        for _ in range(1100):
            full += self.aeq(QPN, REPORT, FROM_RQ) != []
        self.dut.run()
        self.assertEqual(1100 - 1024, full)
        self.aeq(QPN, REPORT, FROM_RQ)
        events = self.rpc("async_events", max=4096)
        lost = [(i, e["lost"]) for i, e in enumerate(events) if e["event_type"] == "AEQ_OVERFLOW"]
        self.assertEqual([full], [n for _, n in lost])
        if not variant.handed_over():   # in order within one worker's queue
            self.assertEqual(1024, lost[0][0])
        self.assertEqual(1026, len(events))
        self.assertEqual(full, self.delta("aeq_overflow"))


class Producers(ReqCase):
    """Each code that a worker raises of its own (scripts/check/events), as last_event shows it."""

    def last(self):
        e = self.qp()["last_event"]
        return e and e["code"]

    def test_AEQ_10_what_the_responder_fails_of(self):
        """ae.with_cqe: the event comes beside the completion, with the code of the cause."""
        p, on = self.peer, {"ae.with_cqe": "on"}
        rows = ((INVALID_REQUEST, "QP_REQ_ERR", lambda: p.write_last(E, b"x")),
                (REMOTE_ACCESS, "QP_ACCESS_ERR", lambda: p.write_only(E, b"x", VA, RKEY ^ 1)),
                (MESSAGE_TOO_LONG, "QP_REQ_ERR", lambda: p.send_only(E, data(10))),
                (INVALIDATE_RIGHTS, "QP_REQ_ERR", lambda: p.send_only_inv(E, b"x", 0x7777)))
        for code, event, frame in rows:
            with self.subTest(code=hex(code)):
                self.resp(recv=0, knobs=on)
                self.post_recv(2, size=5)
                self.feed(frame())
                self.assertEqual(([(event, QPN)], code), (self.event_types(), self.last()))

    def test_AEQ_10_a_receive_that_cannot_be(self):
        self.resp(recv=0, knobs={"ae.with_cqe": "on"})
        self.post_recv_sges([{"lkey": "0x7777", "addr": "0x1000", "length": 64}])
        self.feed(self.peer.send_only(E, b"x"))
        self.assertEqual(WQE_OPCODE, self.last())

    def test_AEQ_10_what_the_requester_fails_of(self):
        for code, syndrome in ((INVALID_REQUEST, NAK_INV), (REMOTE_ACCESS, NAK_RAE),
                               (REMOTE_OPERATION, NAK_ROE)):
            with self.subTest(code=hex(code)):
                self.req(knobs={"ae.with_cqe": "on"})
                self.sends(1, 10)
                self.nak(S, syndrome)
                self.assertEqual(code, self.last())
        self.req(rnr_retry=0, knobs={"ae.with_cqe": "on"})
        self.sends(1, 10)
        self.rnr(S, 12)
        self.assertEqual(RNRS, self.last())
        self.req(knobs={"ae.with_cqe": "on"})
        self.post(self.wr("RDMA_READ", 10))
        self.feed(self.peer.packet(READ_ONLY, S, b"123456789", aeth(0x1F, 1), ack=0))
        self.assertEqual(RESPONSE_LENGTH, self.last())
        self.req(knobs={"ae.with_cqe": "on"})
        self.post_raw(self.wr("SEND", sg_list=[{"lkey": "0x7777", "addr": "0x10", "length": 9}]))
        self.dut.run()
        self.assertEqual(INVALID_KEY, self.last())

    def test_AEQ_11_what_the_requester_tells_beside_the_completion(self):
        """ae.with_cqe: the event is that of the completion's status."""
        def answered(syndrome):
            self.sends(1, 10)
            self.nak(S, syndrome)

        def read_short():
            self.post(self.wr("RDMA_READ", 10))
            self.feed(self.read_resp(READ_ONLY, S, b"123456789"))

        def fault():
            self.post_raw(self.wr("SEND", sg_list=[
                {"lkey": "0x7777", "addr": "0x10", "length": 9}]))
            self.dut.run()

        rows = (("REM_INV_REQ_ERR", "QP_REQ_ERR", lambda: answered(NAK_INV)),
                ("REM_ACCESS_ERR", "QP_ACCESS_ERR", lambda: answered(NAK_RAE)),
                ("REM_OP_ERR", "QP_FATAL", lambda: answered(NAK_ROE)),
                ("RNR_RETRY_EXC_ERR", "QP_FATAL", lambda: answered(SYN_RNR + 12)),
                ("LOC_LEN_ERR", "QP_FATAL", read_short),
                ("LOC_PROT_ERR", "QP_ACCESS_ERR", fault))
        for status, event, act in rows:
            with self.subTest(status):
                self.req(rnr_retry=0, knobs={"ae.with_cqe": "on"})
                act()
                self.assertEqual([(100, status)], self.statuses())
                self.assertEqual([(event, QPN)], self.event_types())

    def test_AEQ_09_AEQ_10_silence(self):
        """Doubt when half of the retries are used up, which nobody is told; then RETRIES."""
        self.req(timeout=8, retry_cnt=4, knobs={"ae.with_cqe": "on"})
        self.sends(1, 10)
        codes = []
        for _ in range(200):
            self.feed(ns=MS)
            if self.last() not in codes:
                codes.append(self.last())
            if self.last() == DOUBT:
                self.assertEqual("RTS", self.state())
                self.assertEqual([], self.events())
        self.assertEqual([None, DOUBT, RETRIES], codes)
        self.assertEqual([("QP_FATAL", QPN)], self.event_types())


class Ports(dut.DutCase):
    ALONE = True    # the port does not come back

    def test_AE_07_link_and_device(self):
        """Unaffiliated; one for each change, none for a look. Also REQ-CLS-C-02."""
        self.resp()
        self.dut.run(200 * MS)
        self.assertEqual([], self.events())
        want = []
        for how, event in (("down", "PORT_ERR"), ("up", "PORT_ACTIVE"), ("gone", "DEVICE_FATAL")):
            self.dut.command("port 0 " + how)
            self.dut.run(200 * MS)
            self.dut.run(200 * MS)
            want = self.events()
            self.assertEqual([(event, "p0", "PORT")],
                             [(e["event_type"], e["port"], e["source"]) for e in want])
            self.assertNotIn("qp_num", want[0])


if __name__ == "__main__":
    dut.main()
