# SPDX-License-Identifier: BSD-3-Clause
"""Why memory was refused: which key, which range, which right, whose region, which request."""
import dut
import dut_req
from dut import ALL_REMOTE, MR_LEN, MS, RKEY, VA, E, QPN
from dut_req import LKEY, LVA, RRKEY, RVA, S
from roce import NAK_INV, NAK_RAE, NAK_ROE, data

END = VA + MR_LEN
NOBODY = 0x5A5A5A5A              # a key like no other


class WhyCase(dut_req.ReqCase):

    def explain(self):
        return self.rpc("qp_explain", qp_num=QPN)

    def memory(self):
        x = self.explain()
        m = x["error"]["memory"]
        self.assertIsNotNone(m, x)
        self.assertIn(m["text"], x["summary"])
        return m

    def said(self, m, **want):
        self.assertEqual(want, {k: m[k] for k in want}, m)

    def words(self, text, *words):
        for word in words:
            self.assertIn(word, text)


class Responder(WhyCase):
    """RESP-NAK-RAE-01..05: the causes are told apart, and the numbers are those of the RETH."""

    def refuse(self, frame, syndrome=NAK_RAE):
        got = self.feed(frame)
        self.assertEqual([syndrome], [f.syndrome for f in got], got)
        return self.memory()

    def test_RESP_NAK_RAE_01_unknown_key(self):
        for build, need in ((lambda p: p.write_only(E, data(24), VA + 8, NOBODY), "REMOTE_WRITE"),
                            (lambda p: p.read_req(E, VA + 8, NOBODY, 24), "REMOTE_READ")):
            self.resp()
            m = self.refuse(build(self.peer))
            self.said(m, why="UNKNOWN_KEY", by="packet", va=hex(VA + 8), length=24,
                      rkey=hex(NOBODY), needs=[need], region=None, excess=0, sge=None)
            self.words(m["text"], "R_Key 0x5a5a5a5a is no region's", "mr0")
            # the addresses are mr0's, so that is what to look at
            self.said(m["meant"], name="mr0", addr=hex(VA), length=MR_LEN, rkey=hex(RKEY),
                      pd="pd0", because=["addresses"])
        self.resp()
        m = self.refuse(self.peer.fetch_add(E, VA + 8, NOBODY, 1))
        self.said(m, why="UNKNOWN_KEY", va=hex(VA + 8), length=8, needs=["REMOTE_ATOMIC"])

    def test_a_typo_in_an_rkey(self):
        """The key byte, one digit, two digits changed places: the region's name is there."""
        for key in (RKEY ^ 0x11, RKEY ^ 0x00300000, 0x000CFFEE):
            self.resp()
            m = self.refuse(self.peer.write_only(E, data(4), 0x1234, key))
            self.said(m, why="UNKNOWN_KEY", rkey=hex(key), region=None)
            self.said(m["meant"], name="mr0", because=["key"])
            self.resp()
            m = self.refuse(self.peer.write_only(E, data(4), VA, key))
            self.said(m["meant"], name="mr0", because=["addresses", "key"])
            self.words(m["text"], "mr0 (0xc0ffee) has these addresses and a key like it")

    def test_nothing_was_meant(self):
        self.resp()
        m = self.refuse(self.peer.write_only(E, data(4), 0x1234, NOBODY))
        self.said(m, why="UNKNOWN_KEY", meant=None, region=None,
                  text="R_Key 0x5a5a5a5a is no region's")

    def test_RESP_NAK_RAE_02_outside_the_region(self):
        p = self.peer
        for frame, why, excess, words in (
                (p.write_only(E, data(24), VA - 8, RKEY), "BELOW", 8, "begins 8 bytes below mr0"),
                (p.write_only(E, data(2), END - 1, RKEY), "TOO_LONG", 1,
                 "ends 1 byte behind the end of mr0"),
                (p.read_req(E, END - 100, RKEY, 4096), "TOO_LONG", 3996,
                 "ends 3996 bytes behind the end of mr0"),
                (p.write_only(E, data(4), END + 96, RKEY), "BEYOND", 100,
                 "ends 100 bytes behind the end of mr0"),
                (p.read_req(E, 2 ** 64 - 4, RKEY, 8), "WRAPS", 0, "over the end of 64 bits")):
            self.resp()
            m = self.refuse(frame)
            self.said(m, why=why, excess=excess, rkey=hex(RKEY))
            self.words(m["text"], words)
            self.said(m["region"], name="mr0", addr=hex(VA), length=MR_LEN, registered=True)

    def test_RESP_NAK_RAE_02_the_range_of_another_region(self):
        """A good key, but of the wrong region: the right one is named."""
        self.resp()
        self.make("mr_register", name="mr1", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7101", access=ALL_REMOTE)
        m = self.refuse(self.peer.write_only(E, data(4), 0x777FF0, RKEY))
        self.said(m, why="BELOW")
        self.said(m["region"], name="mr0")
        self.said(m["meant"], name="mr1", rkey="0x7101", because=["addresses"])

    def test_RESP_NAK_RAE_03_a_right_of_the_region(self):
        for access, frame, lacks in (
                (["LOCAL_WRITE", "REMOTE_READ"],
                 lambda p: p.write_only(E, data(4), VA, RKEY), "REMOTE_WRITE"),
                (["LOCAL_WRITE", "REMOTE_WRITE"],
                 lambda p: p.read_req(E, VA, RKEY, 4), "REMOTE_READ"),
                (["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ"],
                 lambda p: p.cmp_swap(E, VA, RKEY, 0, 1), "REMOTE_ATOMIC")):
            self.resp(mr_access=access)
            m = self.refuse(frame(self.peer))
            self.said(m, why="NO_RIGHT", needs=[lacks])
            self.said(m["region"], name="mr0")
            self.assertEqual(set(access), set(m["region"]["access"]))
            self.words(m["text"], "mr0 does not grant " + lacks)

    def test_RESP_NAK_INV_02_a_right_of_the_queue_pair(self):
        """qp_access_flags, not the region: the flags are told, and the region is named."""
        self.resp(qp_access_flags=["REMOTE_READ"])
        m = self.refuse(self.peer.write_only(E, data(24), VA, RKEY), NAK_INV)
        self.said(m, why="QP_NO_RIGHT", va=hex(VA), length=24, rkey=hex(RKEY),
                  needs=["REMOTE_WRITE"])
        self.said(m["region"], name="mr0")
        self.words(m["text"], "qp_access_flags do not grant REMOTE_WRITE", "REMOTE_READ")

    def test_RESP_NAK_RAE_04_another_pd(self):
        self.resp()
        self.make("pd_create", name="pd7")
        self.make("mr_register", name="mr7", pd="pd7", length=4096, addr="0x777000",
                  rkey="0x7707", access=ALL_REMOTE)
        m = self.refuse(self.peer.write_only(E, data(4), 0x777000, 0x7707))
        self.said(m, why="OTHER_PD", pd="pd0")
        self.said(m["region"], name="mr7", pd="pd7", rkey="0x7707")
        self.words(m["text"], "mr7", "protection domain pd7, not in pd0")

    def test_RESP_NAK_RAE_04_deregistered(self):
        self.resp()
        self.make("mr_register", name="gone", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7707", access=ALL_REMOTE)
        self.rpc("mr_deregister", name="gone")
        m = self.refuse(self.peer.write_only(E, data(4), 0x777000, 0x7707))
        self.said(m, why="UNKNOWN_KEY")
        self.said(m["region"], name="gone", registered=False, addr="0x777000", length=4096)
        self.words(m["text"], "R_Key 0x7707 was that of gone", "deregistered")

    def test_RESP_NAK_RAE_04_revoked(self):
        """By a SEND with Invalidate: the region is there, its key is not good any more."""
        self.resp(mr_params={"remote_invalidate": True})
        self.feed(self.peer.send_only_inv(E, data(4), RKEY))
        m = self.refuse(self.peer.write_only(E + 1, data(4), VA, RKEY))
        self.said(m, why="REVOKED")
        self.said(m["region"], name="mr0", registered=True)

    def test_RESP_NAK_RAE_05_too_long_at_first(self):
        """The range of the whole message, not that of the first packet."""
        self.resp()
        m = self.refuse(self.peer.write_first(E, data(1024), END - 2048, RKEY, 4096))
        self.said(m, why="TOO_LONG", va=hex(END - 2048), length=4096, excess=2048)

    def test_RESP_NAK_RAE_09_inside_a_write(self):
        """Numbers of the packet that met it: MIDDLE has no RETH of its own."""
        self.resp()
        self.make("mr_register", name="gone", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7707", access=ALL_REMOTE)
        self.feed(self.peer.write_first(E, data(1024), 0x777000, 0x7707, 4096))
        self.rpc("mr_deregister", name="gone")
        m = self.refuse(self.peer.write_middle(E + 1, data(1024)))
        self.said(m, why="UNKNOWN_KEY", va=hex(0x777000 + 1024), length=1024, rkey="0x7707")
        self.said(m["region"], name="gone")

    def test_RESP_NAK_03_while_a_read_is_answered(self):
        self.resp()
        self.make("mr_register", name="big", pd="pd0", length=1 << 20, addr="0x40000000",
                  rkey="0x4444", access=ALL_REMOTE)
        self.dut.rx(self.peer.read_req(E, 0x40000000, 0x4444, 1 << 20))
        n = len(self.dut.command("turn 1"))
        self.rpc("mr_deregister", name="big")
        n += len(self.dut.run()) - 1
        m = self.memory()
        self.said(m, why="UNKNOWN_KEY", rkey="0x4444", length=1024, needs=["REMOTE_READ"],
                  va=hex(0x40000000 + n * 1024))
        self.said(m["region"], name="big")

    def test_RESP_NAK_INV_09_misaligned_atomic(self):
        self.resp()
        m = self.refuse(self.peer.fetch_add(E, VA + 4, RKEY, 1), NAK_INV)
        self.said(m, why="MISALIGNED", va=hex(VA + 4), rkey=hex(RKEY), length=8)
        self.words(m["text"], hex(VA + 4), "multiple of 8")

    def test_RESP_NAK_INV_11_longer_than_any_message(self):
        self.resp()
        m = self.refuse(self.peer.read_req(E, VA, RKEY, 2 ** 31 + 1), NAK_INV)
        self.said(m, why="MESSAGE_LIMIT", length=2 ** 31 + 1)

    def test_RESP_CLS_J_key_that_a_peer_may_not_revoke(self):
        self.resp()
        self.assertEqual([], self.feed(self.peer.send_only_inv(E, data(4), RKEY)))
        m = self.memory()
        self.said(m, why="NOT_REVOCABLE", rkey=hex(RKEY), va=None, length=None)
        self.said(m["region"], name="mr0")
        self.said(self.explain()["error"]["request"], queue="receive", wr_id=0)

    def test_it_outlives_the_queue_pair_and_the_region(self):
        self.resp()
        self.make("mr_register", name="brief", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7701", access=ALL_REMOTE)
        self.refuse(self.peer.write_only(E, data(4), 0x777000, 0x7702))
        self.clear()
        last = self.rpc("qp_post_mortem", qp_num=QPN)[0]
        self.said(last["error"]["memory"], why="UNKNOWN_KEY", rkey="0x7702", va="0x777000")
        self.said(last["error"]["memory"]["meant"], name="brief", registered=False)
        self.words(last["summary"], "R_Key 0x7702 is no region's", "brief")

    def test_what_was_not_there_yet(self):
        """A region that is registered after the failure has nothing to do with it."""
        for key, other, addr, gone in ((0x11223344, False, 0x999000, False),
                                       (0x55667788, False, 0x999000, True),
                                       (0x99AABBCC, True, 0x999000, False),
                                       (0xDDEEFF00, 0x7777, 0x500000, False),
                                       (0x13579BDF, 0x7777, 0x500000, True)):
            self.resp()
            self.rpc("trace_start", qp_num=QPN)
            before = self.refuse(self.peer.write_only(E, data(4), 0x500000, key))
            self.said(before, region=None, meant=None, text="R_Key %s is no region's" % hex(key))
            self.dut.run(MS)
            self.make("mr_register", name="late", pd="pd0", length=4096, addr=hex(addr),
                      rkey=hex(key ^ other), access=ALL_REMOTE)
            if gone:
                self.dut.run(MS)
                self.rpc("mr_deregister", name="late")
            self.assertEqual(before, self.memory())
            self.assertEqual(before, self.rpc("qp_post_mortem", qp_num=QPN)[0]["error"]["memory"])
            self.assertEqual([None], [t["region"] for t in self.explain()["trace"]
                                      if t.get("key") == hex(key)])
            self.clear()
            self.dut.run(MS)

    def test_not_about_memory(self):
        self.resp()
        self.feed(self.peer.write_last(E, b"x"))
        e = self.explain()["error"]
        self.assertEqual((None, None), (e["memory"], e["request"]))


class Receive(WhyCase):
    """The receive request, and which entry of its list."""

    def failed(self, frame, syndrome):
        got = self.feed(frame)
        self.assertEqual([syndrome], [f.syndrome for f in got], got)
        return self.memory()

    def test_RESP_NAK_RAE_08_the_request_that_reports(self):
        self.resp()
        self.feed(self.peer.write_only_imm(E, data(4), VA, NOBODY))
        e = self.explain()["error"]
        self.said(e["memory"], why="UNKNOWN_KEY", rkey=hex(NOBODY))
        self.said(e["request"], queue="receive", wr_id=0, opcode="RECV")
        self.assertEqual([(0, "REM_ACCESS_ERR")], self.statuses()[:1])

    def test_RESP_NAK_ROE_01_third_entry(self):
        self.resp(recv=0)
        good = {"mr": "rbuf", "offset": 0, "length": 16}
        self.wr_id = 31
        self.post_recv_sges([good, good, {"lkey": "0x123456", "addr": "0x1000", "length": 64}])
        m = self.failed(self.peer.send_only(E, b"x"), NAK_ROE)
        self.said(m, why="UNKNOWN_KEY", by="receive", sge=2, sges=3, lkey="0x123456",
                  addr="0x1000", length=64)
        self.words(m["text"], "sg_list[2] of 3", "L_Key 0x123456 is no region's")
        self.said(self.explain()["error"]["request"], queue="receive", wr_id=31)

    def test_RESP_NAK_ROE_01_no_local_write(self):
        self.resp(recv=0, mr_access=["REMOTE_READ"])
        self.post_recv_sges([{"mr": "mr0", "offset": 0, "length": 64}])
        m = self.failed(self.peer.send_only(E, b"x"), NAK_ROE)
        self.said(m, why="NO_RIGHT", needs=["LOCAL_WRITE"], sge=0, sges=1)
        self.said(m["region"], name="mr0")

    def test_RESP_NAK_INV_06_longer_than_its_buffers(self):
        self.resp(recv=0)
        self.post_recv(1, size=5)
        m = self.failed(self.peer.send_only(E, data(10)), NAK_INV)
        self.said(m, why="LIST_TOO_SHORT", length=10, excess=5)
        self.words(m["text"], "at least 10 bytes", "room for 5 bytes")
        self.resp(recv=0)
        self.post_recv(1, size=2000)
        self.feed(self.peer.send_first(E, data(1024)))
        m = self.failed(self.peer.send_last(E + 1, data(1000)), NAK_INV)
        self.said(m, why="LIST_TOO_SHORT", length=2024, excess=24)


class Requester(WhyCase):
    """REQ-CLS-B-01: LOC_PROT_ERR says which entry and why; a NAK says of which request."""

    def request(self):
        return self.explain()["error"]["request"]

    def test_REQ_CLS_B_01_second_of_three(self):
        self.req()
        wr = self.wr("SEND")
        wr["sg_list"] = [{"mr": "lmr", "offset": 0, "length": 8},
                         {"lkey": hex(LKEY), "addr": hex(LVA + 65532), "length": 8},
                         {"mr": "lmr", "offset": 0, "length": 8}]
        self.assertEqual([], self.post(wr))
        m = self.memory()
        self.said(m, why="TOO_LONG", by="send", sge=1, sges=3, lkey=hex(LKEY),
                  addr=hex(LVA + 65532), length=8, excess=4)
        self.said(m["region"], name="lmr")
        self.words(m["text"], "sg_list[1] of 3", "4 bytes behind the end of lmr")
        self.said(self.request(), queue="send", wr_id=100, opcode="SEND", length=24)
        self.ended("LOC_PROT_ERR", 100)

    def test_REQ_CLS_B_01_reported_when_its_turn_comes(self):
        """The older request completes first; what was wrong then is told, not what is so now."""
        self.req()
        self.sends(1)
        wr = self.wr("SEND")
        wr["sg_list"] = [{"lkey": "0x7707", "addr": "0x777000", "length": 8}]
        self.post(wr)
        self.well()
        self.make("mr_register", name="late", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7707", access=["LOCAL_WRITE"])
        self.ack(S)
        m = self.memory()
        self.said(m, why="UNKNOWN_KEY", lkey="0x7707", sge=0, sges=1)
        self.said(self.request(), wr_id=101)

    def test_REQ_19_place_of_a_read(self):
        self.req()
        self.make("mr_register", name="away", pd="pd0", length=4096, addr="0x777000",
                  rkey="0x7707", access=["LOCAL_WRITE"])
        wr = self.wr("RDMA_READ")
        wr["sg_list"] = [{"mr": "lmr", "offset": 0, "length": 16},
                         {"mr": "away", "offset": 0, "length": 16}]
        self.assertEqual(1, len(self.post(wr)))
        self.rpc("mr_deregister", name="away")
        self.feed(self.read_answer(S, bytes(32)))
        m = self.memory()
        self.said(m, why="UNKNOWN_KEY", by="send", sge=1, sges=2, lkey="0x7707",
                  needs=["LOCAL_WRITE"])
        self.said(m["region"], name="away", registered=False)
        self.said(self.request(), wr_id=100, opcode="RDMA_READ", remote_addr=hex(RVA),
                  rkey=hex(RRKEY), length=32)

    def test_read_into_memory_without_local_write(self):
        self.req(access=["REMOTE_READ"])
        self.assertEqual([], self.post(self.wr("RDMA_READ", 64)))
        m = self.memory()
        self.said(m, why="NO_RIGHT", needs=["LOCAL_WRITE"])
        self.words(m["text"], "lmr does not grant LOCAL_WRITE")

    def test_REQ_NAK_of_which_request(self):
        """The second of three WRITEs is refused: wr_id, opcode, address, key, length."""
        self.req()
        self.post(self.wr("RDMA_WRITE", 64), self.wr("RDMA_WRITE", 96, remote_addr=hex(RVA + 64)),
                  self.wr("RDMA_WRITE", 64))
        self.ack(S, msn=1)
        self.nak(S + 1, NAK_RAE)
        x = self.explain()
        self.said(x["error"]["request"], queue="send", wr_id=101, opcode="RDMA_WRITE",
                  remote_addr=hex(RVA + 64), rkey=hex(RRKEY), length=96)
        self.assertIsNone(x["error"]["memory"])
        self.ended("REM_ACCESS_ERR", 101, ok=[100], flushed=[102])

    def test_RESET_forgets(self):
        self.req()
        self.post(self.wr("RDMA_WRITE", 64))
        self.nak(S, NAK_RAE)
        self.assertIsNotNone(self.request())
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.assertIsNone(self.explain()["error"])


class Told(WhyCase):
    """The same in the event, in the recorder, and in the error buffer."""

    CONFIG = {"error_buffer": {"entries": 64}}
    FIXED = {"errbuf": "on", "ip": "4", "vlan": "none"}

    def test_event(self):
        self.resp()
        self.feed(self.peer.write_only(E, data(2), END - 1, RKEY))
        e = self.events()[0]
        self.assertEqual("QP_ACCESS_ERR", e["event_type"])
        self.said(e["memory"], why="TOO_LONG", va=hex(END - 1), length=2, rkey=hex(RKEY), excess=1)
        self.words(e["detail"], "RESP-NAK-RAE-01: ", e["memory"]["text"],
                   "1 byte behind the end of mr0")

    def test_event_beside_a_completion(self):
        self.req(knobs={"ae.with_cqe": "on"})
        wr = self.wr("SEND")
        wr["sg_list"] = [{"lkey": hex(NOBODY), "addr": "0x1000", "length": 8}]
        self.post(wr)
        e = self.events()[0]
        self.said(e["memory"], why="UNKNOWN_KEY", sge=0, sges=1)
        self.said(e["request"], wr_id=100, opcode="SEND")
        self.words(e["detail"], "sg_list[0] of 1", "wr_id 100")

    def test_other_events_have_none_of_it(self):
        self.resp(qp_state="RTR", sq_psn=None, timeout=None, retry_cnt=None, rnr_retry=None,
                  max_rd_atomic=None)
        self.feed(self.peer.send_only(E, b"x"))
        e = self.rpc("async_events", max=8)[0]
        self.assertEqual("COMM_EST", e["event_type"])
        self.assertFalse({"memory", "request"} & set(e))

    def test_recorder(self):
        """A line of its own, with the error and not before it."""
        self.resp()
        self.rpc("trace_start", qp_num=QPN)
        self.feed(self.peer.write_only(E, data(2), END - 1, RKEY))
        lines = [t for t in self.rpc("trace_read", qp_num=QPN) if t["kind"] == "memory"]
        lines = lines[-1:]
        self.said(lines[0], key=hex(RKEY), va=hex(END - 1), length=2, why="TOO_LONG",
                  region="mr0", opcode="RC_WRITE_ONLY", qp_state="ERR")
        x = self.explain()
        self.assertIn("memory", [t["kind"] for t in x["trace"][x["before"]:]])

    def test_recorder_of_a_requester(self):
        self.req()
        self.rpc("trace_start", qp_num=QPN)
        wr = self.wr("SEND")
        wr["sg_list"] = [{"lkey": hex(NOBODY), "addr": "0x1000", "length": 8}]
        self.post(wr)
        lines = [t for t in self.rpc("trace_read", qp_num=QPN) if t["kind"] == "memory"]
        lines = lines[-1:]      # the recorder keeps what an earlier QP of that number left
        self.assertEqual([(hex(NOBODY), "0x1000", 8, "UNKNOWN_KEY", None)],
                         [(t["key"], t["va"], t["length"], t["why"], t["region"]) for t in lines])

    def test_refused_packets_are_in_the_error_buffer(self):
        """No bit of the syndrome says it, so none is set: the rule, the impact and the memory."""
        p = self.peer_of()
        for frame, rule, why in (
                (p.write_only(E, data(24), VA, NOBODY), "RESP-NAK-RAE-01", "UNKNOWN_KEY"),
                (p.read_req(E, END - 1, RKEY, 2), "RESP-NAK-RAE-01", "TOO_LONG"),
                (p.fetch_add(E, VA + 4, RKEY, 1), "RESP-NAK-INV-09", "MISALIGNED"),
                (p.send_only_inv(E, data(4), RKEY), "RESP-CLS-J-01", "NOT_REVOCABLE")):
            self.resp()
            before = self.dut.counters()
            self.feed(frame)
            moved = [k for k, v in self.dut.counters().items()
                     if k.startswith("rx_syndrome") and v != before[k]]
            records = self.rpc("rx_errors", max=8)
            self.assertEqual(1, len(records), records)
            r = records[0]
            self.assertEqual(([], 0, [], "fatal", rule, QPN, E, frame[:128].hex()),
                             (moved, r["syndrome"], r["names"], r["impact"], r["rule"], r["qp_num"],
                              r["psn"], r["header"]))
            self.said(r["memory"], why=why)
            self.words(r["why"], r["memory"]["text"])
            self.assertEqual((frame[42], True),
                             (r["opcode"], r["opcode_name"].startswith("RC_")))

    def test_a_right_of_the_queue_pair_is_in_its_record(self):
        """RX-SYN-14: this refusal has a bit, and says why all the same."""
        self.resp(qp_access_flags=["REMOTE_READ"])
        self.feed(self.peer.write_only(E, data(24), VA, RKEY))
        records = self.rpc("rx_errors", max=8)
        self.assertEqual([("fatal", "QP_NO_RIGHT")],
                         [(r["impact"], r["memory"]["why"]) for r in records])

    def test_silent_drops_are_in_the_error_buffer(self):
        """RESP-DUP-07: a duplicate ATOMIC that nobody remembers."""
        self.resp()
        self.assertEqual([], self.feed(self.peer.fetch_add(E - 1, VA, RKEY, 1)))
        self.assertEqual([("drop", "RESP-DUP-07", False)],
                         [(r["impact"], r["rule"], "memory" in r)
                          for r in self.rpc("rx_errors", max=8)])

    def test_good_packets_are_not(self):
        self.resp()
        p = self.peer
        self.feed(p.send_only(E, b"x"), p.read_req(E + 1, VA, RKEY, 64),
                  p.fetch_add(E + 2, VA, RKEY, 1), p.send_only(E, b"x"),
                  p.read_req(E + 1, VA, RKEY, 64), p.fetch_add(E + 2, VA, RKEY, 1))
        self.assertEqual([], self.rpc("rx_errors", max=8))


if __name__ == "__main__":
    dut.main()
