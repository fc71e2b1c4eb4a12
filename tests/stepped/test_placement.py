#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""ATOMIC WRITE and FLUSH (annex A19 of the base specification, release 1.5): knob ops.placement."""
import dut
import roce
from dut import E, QPN, RKEY, VA, DutCase, Nak, ReadResponse, Ack
from dut_req import LKEY, LVA, RRKEY, RVA, S, ReqCase, Sent
from jsonrpc import RpcError

ON = {"knobs": {"ops.placement": "on"}}
ALL_FLUSH = ["REMOTE_WRITE", "FLUSH_GLOBAL", "FLUSH_PERSISTENT"]
WORD, OTHER = bytes(range(0x11, 0x19)), bytes(range(0x81, 0x89))


def refuse(case, word, method, **params):
    with case.assertRaises(RpcError) as caught:
        case.rpc(method, **params)
    case.assertIn(word, str(caught.exception))


class Responder(DutCase):

    def on(self, **kw):
        self.resp(**{**ON, **kw})

    def write(self, psn, word=WORD, va=VA + 64, rkey=RKEY, length=8, **kw):
        return self.peer.packet(roce.ATOMIC_WRITE, psn, word, roce.reth(va, rkey, length), **kw)

    def fatal(self, got, nak, event):
        self.expect(got, nak)
        self.assertEqual("ERR", self.state())
        self.assertEqual([event], [e["event_type"] for e in self.rpc("async_events", max=9)
                                   if e["event_type"] != "COMM_EST"])

    def test_RESP_07_stores_eight_bytes_and_answers_with_an_empty_read_response(self):
        self.on()
        self.expect(self.feed(self.write(E)), ReadResponse(E, b"", 1))
        self.assertEqual(bytes(8) + WORD + bytes(8), self.mem(56, 24))
        self.assertEqual(1, self.delta("rx_atomic_write_requests"))
        self.assertEqual([], self.cqes())
        self.expect(self.feed(self.peer.read_req(E + 1, VA + 64, RKEY, 8)),
                    ReadResponse(E + 1, WORD, 2))

    def test_RESP_13_stands_in_line_with_reads_and_acks(self):
        self.on()
        p = self.peer
        self.expect(self.feed(p.read_req(E, VA, RKEY, 3000), self.write(E + 3, va=VA + 4096),
                              p.send_only(E + 4, b"x")),
                    ReadResponse(E, bytes(3000), 1), ReadResponse(E + 3, b"", 2), Ack(E + 4, 3))

    def test_RESP_DUP_06_answered_again_and_not_stored_again(self):
        self.on()
        self.feed(self.write(E))
        self.set_mem(64, OTHER)
        self.expect(self.feed(self.write(E)), ReadResponse(E, b"", 1))
        self.assertEqual(OTHER, self.mem(64, 8))
        self.assertEqual(1, self.delta("duplicate_request"))

    def test_RESP_DUP_07_another_request_under_that_psn(self):
        self.on()
        self.feed(self.write(E), self.peer.fetch_add(E + 1, VA, RKEY, 1))
        for frame in (self.write(E, va=VA), self.write(E, rkey=RKEY + 1), self.write(E + 1),
                      self.peer.fetch_add(E, VA + 64, RKEY, 1)):
            self.silent(self.feed(frame))
        self.assertEqual("RTS", self.state())

    def test_RESP_NAK_INV_01_off_it_is_a_reserved_opcode(self):
        for knobs in ({}, {"knobs": {"ops.placement": "off"}}):
            self.resp(**knobs)
            self.fatal(self.feed(self.write(E)), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
            self.assertEqual(bytes(8), self.mem(64, 8))
            self.assertEqual(1, self.delta("rx_syndrome_17"))
        self.resp()
        self.feed(self.peer.send_only(E, b"x"))
        self.silent(self.feed(self.write(E)))       # RX-PREC-04: behind ePSN

    def test_RESP_NAK_INV_02_RESP_NAK_RAE_01_needs_the_rights_of_a_write(self):
        self.on(qp_access_flags=["REMOTE_READ", "REMOTE_ATOMIC"])
        self.fatal(self.feed(self.write(E)), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
        self.on(qp_access_flags=["REMOTE_WRITE"])
        self.expect(self.feed(self.write(E)), ReadResponse(E, b"", 1))
        self.on(mr_access=["REMOTE_READ"])
        self.fatal(self.feed(self.write(E)), Nak(E, roce.NAK_RAE, 0), "QP_ACCESS_ERR")
        self.assertIn("REMOTE_WRITE", str(self.rpc("qp_explain", qp_num=QPN)))
        for va, rkey in ((VA + dut.MR_LEN, RKEY), (VA - 8, RKEY), (VA, RKEY + 1)):
            self.on()
            self.fatal(self.feed(self.write(E, va=va, rkey=rkey)), Nak(E, roce.NAK_RAE, 0),
                       "QP_ACCESS_ERR")

    def test_RESP_NAK_INV_08_INV_09_INV_13_eight_bytes_at_a_multiple_of_eight(self):
        for frame in (dict(va=VA + 4), dict(word=WORD[:4]), dict(word=b""), dict(word=WORD * 2),
                      dict(length=16), dict(length=0), dict(word=WORD * 2, length=16),
                      dict(word=b"", length=0), dict(word=WORD[:5])):
            self.on()
            self.fatal(self.feed(self.write(E, **frame)), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
            self.assertEqual(bytes(128), self.mem(0, 128), frame)

    def test_RESP_NAK_INV_10_counts_as_a_read(self):
        self.on(max_dest_rd_atomic=1)
        p = self.peer
        self.assertEqual(roce.NAK_INV, self.feed(p.read_req(E, VA, RKEY, 3000),
                                                 self.write(E + 3))[-1].syndrome)

    def test_RESP_NAK_INV_04_inside_another_message(self):
        self.on()
        self.feed(self.peer.send_first(E, bytes(1024)))
        self.assertEqual([roce.NAK_INV], [f.syndrome for f in self.feed(self.write(E + 1))])
        self.assertEqual("ERR", self.state())


class Flush(DutCase):
    """RESP-07: as an ATOMIC WRITE, with rights of its own."""
    RIGHTS = ["LOCAL_WRITE", "REMOTE_WRITE", "FLUSH_GLOBAL"]

    def on(self, **kw):
        self.resp(**{**ON, "qp_access_flags": ALL_FLUSH, "mr_access": self.RIGHTS, **kw})

    def flush(self, psn, kind=1, level=0, va=VA + 64, rkey=RKEY, length=100, payload=b""):
        return self.peer.packet(roce.FLUSH, psn, payload,
                                roce.imm_dt(kind | level << 4) + roce.reth(va, rkey, length))

    def fatal(self, frame, nak, event):
        self.expect(self.feed(frame), nak)
        self.assertEqual("ERR", self.state())
        self.assertEqual([event], [e["event_type"] for e in self.rpc("async_events", max=9)
                                   if e["event_type"] != "COMM_EST"])

    def test_RESP_07_answered_with_an_empty_read_response(self):
        self.on()
        p = self.peer
        self.expect(self.feed(p.write_only(E, WORD, VA, RKEY, ack=0), self.flush(E + 1),
                              p.send_only(E + 2, b"x")),
                    ReadResponse(E + 1, b"", 2), Ack(E + 2, 3))
        self.assertEqual(WORD, self.mem(0, 8))
        self.assertEqual(1, self.delta("rx_flush_requests"))
        self.assertEqual(0, self.delta("rx_atomic_write_requests"))

    def test_RESP_DUP_06_RESP_DUP_07_duplicates(self):
        self.on()
        self.feed(self.flush(E))
        self.expect(self.feed(self.flush(E)), ReadResponse(E, b"", 1))
        self.assertEqual((1, 1), (self.delta("duplicate_request"), self.delta("rx_flush_requests")))
        for other in (dict(kind=3), dict(level=1), dict(va=VA), dict(length=8)):
            self.silent(self.feed(self.flush(E, **other)))
        self.assertEqual("RTS", self.state())

    def test_RESP_NAK_INV_01_off_or_of_no_kind(self):
        self.resp(qp_access_flags=ALL_FLUSH)
        self.fatal(self.flush(E), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
        self.assertEqual(1, self.delta("rx_syndrome_17"))
        for kind, level in ((0, 0), (0, 1), (4, 0), (1, 2), (1, 3)):
            self.on()
            self.fatal(self.flush(E, kind, level), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
        self.on()                                   # bits 6 to 31 are reserved: nobody looks
        self.expect(self.feed(self.flush(E, 0xFFFFFFC1)), ReadResponse(E, b"", 1))

    def test_RESP_NAK_INV_02_the_queue_pair_has_to_grant_it(self):
        for rights, kind in ((["REMOTE_WRITE"], 1), (["FLUSH_GLOBAL"], 2), (["FLUSH_GLOBAL"], 3),
                             (["FLUSH_PERSISTENT"], 1)):
            self.on(qp_access_flags=rights)
            self.fatal(self.flush(E, kind), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
        self.assertIn("do not grant FLUSH_GLOBAL: they are FLUSH_PERSISTENT",
                      str(self.rpc("qp_explain", qp_num=QPN)))

    def test_RESP_NAK_RAE_01_the_region_has_to_grant_it(self):
        self.on(mr_access=["LOCAL_WRITE", "REMOTE_WRITE"])
        self.fatal(self.flush(E), Nak(E, roce.NAK_RAE, 0), "QP_ACCESS_ERR")
        self.assertIn("does not grant FLUSH_GLOBAL", str(self.rpc("qp_explain", qp_num=QPN)))
        self.on()                                   # nothing here is persistent
        self.fatal(self.flush(E, kind=2), Nak(E, roce.NAK_RAE, 0), "QP_ACCESS_ERR")
        self.assertIn("does not grant FLUSH_PERSISTENT", str(self.rpc("qp_explain", qp_num=QPN)))
        for wrong in (dict(rkey=RKEY + 1), dict(rkey=RKEY + 1, length=0),
                      dict(rkey=RKEY + 1, level=1), dict(va=VA + dut.MR_LEN, length=1),
                      dict(va=VA - 1), dict(length=dut.MR_LEN)):
            self.on()
            self.fatal(self.flush(E, **wrong), Nak(E, roce.NAK_RAE, 0), "QP_ACCESS_ERR")

    def test_RESP_07_of_a_whole_region_the_range_means_nothing(self):
        self.on()
        self.expect(self.feed(self.flush(E, level=1, va=0, length=0xFFFFFFFF)),
                    ReadResponse(E, b"", 1))
        self.expect(self.feed(self.flush(E + 1, va=VA + dut.MR_LEN, length=0)),
                    ReadResponse(E + 1, b"", 2))

    def test_RESP_NAK_INV_08_INV_10_INV_11(self):
        for wrong in (dict(payload=b"1234"), dict(length=0x80000001)):
            self.on()
            self.fatal(self.flush(E, **wrong), Nak(E, roce.NAK_INV, 0), "QP_REQ_ERR")
        self.on(max_dest_rd_atomic=1, mr_access=self.RIGHTS + ["REMOTE_READ"],
                qp_access_flags=ALL_FLUSH + ["REMOTE_READ"])
        self.assertEqual(roce.NAK_INV, self.feed(self.peer.read_req(E, VA, RKEY, 3000),
                                                 self.flush(E + 3))[-1].syndrome)

    def test_no_region_is_persistent(self):
        self.on()
        refuse(self, "FLUSH_PERSISTENT", "mr_register", name="mr9", pd="pd0", length=64,
                    access=["FLUSH_PERSISTENT"])
        refuse(self, "FLUSH_PERSISTENT", "mr_rereg", name="mr0",
                    access=["LOCAL_WRITE", "FLUSH_PERSISTENT"])


class Requester(ReqCase):

    def on(self, **kw):
        self.req(**{**ON, **kw})

    def done(self, *ids):
        got = self.cqes()
        self.assertEqual([(i, "SUCCESS", "ATOMIC_WRITE") for i in ids],
                         [(c["wr_id"], c["status"], c["opcode"]) for c in got])

    def test_REQ_02_one_packet_with_a_reth_and_eight_bytes(self):
        self.on()
        self.set_mem(40, WORD, "lmr")
        self.expect(self.post(self.wr("ATOMIC_WRITE", 8, offset=40),
                              self.wr("ATOMIC_WRITE", inline=OTHER.hex()),
                              self.wr("ATOMIC_WRITE", sg_list=[
                                  {"lkey": LKEY, "addr": hex(LVA + 40 + i), "length": 4}
                                  for i in (4, 0)])),
                    Sent(roce.ATOMIC_WRITE, S, WORD, va=RVA, rkey=RRKEY, length=8, ackreq=1),
                    Sent(roce.ATOMIC_WRITE, S + 1, OTHER, length=8),
                    Sent(roce.ATOMIC_WRITE, S + 2, WORD[4:] + WORD[:4], length=8))
        self.feed(self.read_answer(S, b""))
        self.done(100)
        self.feed(self.read_answer(S + 1, b""), self.read_answer(S + 2, b""))
        self.done(101, 102)

    def test_REQ_10_counts_in_max_rd_atomic(self):
        self.on(max_rd_atomic=1)
        self.assertEqual([S], self.psns(self.post(*[self.wr("ATOMIC_WRITE", 8)] * 2)))
        self.assertEqual([S + 1], self.psns(self.feed(self.read_answer(S, b""))))

    def test_REQ_14_REQ_17_an_ack_beyond_it_is_no_answer(self):
        """Its answer is lost: sent again, as it was."""
        self.on()
        first = self.post(self.wr("ATOMIC_WRITE", 8), self.wr("SEND", 8))
        again = self.ack(S + 1, 2)
        self.assertEqual([], self.cqes())
        again += self.until_sent(200 * dut.MS)[1] if not again else []
        self.assertEqual([(f.opcode, f.psn, f.payload) for f in first],
                         [(f.opcode, f.psn, f.payload) for f in again])
        self.feed(self.read_answer(S, b""), self.peer.acknowledge(S + 1, msn=2))
        self.assertEqual(["SUCCESS"] * 2, [c["status"] for c in self.cqes()])

    def test_REQ_CLS_B_wrong_answers(self):
        for answer, status in ((lambda: self.read_answer(S, WORD), "LOC_LEN_ERR"),
                               (lambda: self.atomic_ack(S, 1), "BAD_RESP_ERR"),
                               (lambda: self.read_resp(roce.READ_LAST, S), "BAD_RESP_ERR"),
                               (lambda: self.peer.acknowledge(S, roce.NAK_INV), "REM_INV_REQ_ERR"),
                               (lambda: self.peer.acknowledge(S, roce.NAK_RAE), "REM_ACCESS_ERR")):
            self.on()
            before = self.local(0, 64)
            self.post(self.wr("ATOMIC_WRITE", 8))
            self.feed(answer())
            self.assertEqual([(100, status)], self.statuses())
            self.assertEqual(before, self.local(0, 64))
        self.on()
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8))
        self.feed(self.read_answer(S, b""))
        self.assertEqual([(100, "BAD_RESP_ERR")], self.statuses())

    def test_CQ_09_refused_at_once(self):
        self.req()
        self.refused(self.post_raw(self.wr("ATOMIC_WRITE", 8)), "ops.placement")
        self.on()
        for length in (0, 4, 16):
            self.refused(self.post_raw(self.wr("ATOMIC_WRITE", length)), "8 bytes")
        self.on(max_rd_atomic=0)
        self.refused(self.post_raw(self.wr("ATOMIC_WRITE", 8)), "max_rd_atomic")


class RequesterFlush(ReqCase):

    def on(self, **kw):
        self.req(**{**ON, **kw})

    def flush(self, kind=("GLOBAL",), length=100, level=None, **kw):
        flush = {"type": list(kind), "length": length, **({"level": level} if level else {})}
        return self.wr("FLUSH", flush=flush, **kw)

    def test_REQ_02_one_packet_with_a_feth_and_a_reth(self):
        self.on()
        self.expect(self.post(self.flush(), self.flush(["PERSISTENT"], level="MR", length=0),
                              self.flush(["GLOBAL", "PERSISTENT"], level="RANGE", length=1 << 31)),
                    Sent(roce.FLUSH, S, b"", va=RVA, rkey=RRKEY, length=100, feth=1, ackreq=1),
                    Sent(roce.FLUSH, S + 1, b"", length=0, feth=0x12),
                    Sent(roce.FLUSH, S + 2, b"", length=1 << 31, feth=3))
        self.feed(*[self.read_answer(S + i, b"") for i in range(3)])
        self.assertEqual([(100 + i, "SUCCESS", "FLUSH") for i in range(3)],
                         [(c["wr_id"], c["status"], c["opcode"]) for c in self.cqes()])

    def test_REQ_10_REQ_11_counts_as_a_read(self):
        self.on(max_rd_atomic=1)
        self.assertEqual([S], self.psns(self.post(self.flush(), self.flush())))
        self.assertEqual([S + 1], self.psns(self.feed(self.read_answer(S, b""))))
        self.on()
        self.assertEqual([S], self.psns(self.post(self.flush(), self.wr(
            "SEND", 8, send_flags=["FENCE"]))))
        self.assertEqual([S + 1], self.psns(self.feed(self.read_answer(S, b""))))

    def test_REQ_14_sent_again_as_it_was(self):
        self.on()
        first = self.post(self.flush(length=5000))
        again = self.until_sent(200 * dut.MS)[1]
        self.assertEqual([(f.opcode, f.psn, f.feth, f.length) for f in first],
                         [(f.opcode, f.psn, f.feth, f.length) for f in again])

    def test_REQ_CLS_B_wrong_answers(self):
        for answer, status in ((lambda: self.read_answer(S, WORD), "LOC_LEN_ERR"),
                               (lambda: self.atomic_ack(S, 1), "BAD_RESP_ERR"),
                               (lambda: self.peer.acknowledge(S, roce.NAK_RAE), "REM_ACCESS_ERR")):
            self.on()
            self.post(self.flush())
            self.feed(answer())
            self.assertEqual([(100, status)], self.statuses())

    def test_CQ_09_refused_at_once(self):
        self.req()
        self.refused(self.post_raw(self.flush()), "ops.placement")
        self.on()
        self.refused(self.post_raw(self.flush(length=(1 << 31) + 1)), "2^31")
        self.refused(self.post_raw({**self.flush(), **{
            "sg_list": [{"mr": "lmr", "offset": 0, "length": 8}]}}), "sg_list")
        self.refused(self.post_raw({**self.flush(), "inline": "00"}), "inline")
        refuse(self, "flush.type", "post_send", qp_num=QPN, wrs=[self.flush([])])
        refuse(self, "flush", "post_send", qp_num=QPN, wrs=[self.wr("FLUSH")])
        refuse(self, "flush", "post_send", qp_num=QPN, wrs=[{**self.flush(), "opcode": "SEND"}])
        self.on(max_rd_atomic=0)
        self.refused(self.post_raw(self.flush()), "max_rd_atomic")


if __name__ == "__main__":
    dut.main()
