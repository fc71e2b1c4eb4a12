# SPDX-License-Identifier: BSD-3-Clause
"""XRC, received: a target finds the SRQ of each request in its domain."""
import dut
import roce
from dut import BUF, MS, QPN, RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse, Rnr
from dut_xrc import SRQN, SRQN2, XRC, XrcCase
from roce import NAK_INV, NAK_RAE, NAK_ROE, NAK_SEQ, NAK_XRC, data

MTU = 1024
EINVAL, ENOENT, EBUSY, EEXIST, PARAMS = 32022, 32002, 32016, 32017, 32602


class Target(XrcCase):

    def test_XRC_03_requests_are_executed_as_on_rc(self):
        self.target()
        p = self.peer
        self.expect(self.feed(p.send_only(E, b"hello")), Ack(E, 1))
        self.expect(self.feed(p.send_only_imm(E + 1, b"with imm", imm=0x0A0B0C0D)), Ack(E + 1, 2))
        got = self.cqes("xcq0")
        self.assertEqual([(0, "SUCCESS", 5, "RECV"), (1, "SUCCESS", 8, "RECV")],
                         [(c["wr_id"], c["status"], c["byte_len"], c["opcode"]) for c in got])
        self.assertEqual(0x0A0B0C0D, got[1]["imm_data"])
        self.assertEqual((b"hello", b"with imm"), (self.slot(0, 5), self.slot(1, 8)))
        body = data(3 * MTU - 5)
        self.expect(self.feed(p.send(E + 2, body)), Ack(E + 4, 3))
        self.assertEqual([(2, "SUCCESS", len(body), QPN)], self.done())
        self.assertEqual(body, self.slot(2, len(body)))
        self.expect(self.feed(p.write(E + 5, body, VA + 64, RKEY)), Ack(E + 7, 4))
        self.assertEqual(body, self.mem(64, len(body)))
        self.expect(self.feed(p.write_only_imm(E + 8, b"w", VA, RKEY, imm=7)), Ack(E + 8, 5))
        got = self.cqes("xcq0")
        self.assertEqual([(3, "RECV_RDMA_WITH_IMM", 7)],
                         [(c["wr_id"], c["opcode"], c["imm_data"]) for c in got])
        self.expect(self.feed(p.read_req(E + 9, VA + 64, RKEY, len(body))),
                    ReadResponse(E + 9, body, 6))
        self.set_mem(0, (41).to_bytes(8, "little"))
        self.expect(self.feed(p.fetch_add(E + 12, VA, RKEY, 1)), AtomicAck(E + 12, 41, 7))
        self.expect(self.feed(p.cmp_swap(E + 13, VA, RKEY, 42, 7)), AtomicAck(E + 13, 42, 8))
        self.assertEqual((7).to_bytes(8, "little"), self.mem(0, 8))
        self.well()

    def test_XRC_03_sequence_and_duplicates(self):
        self.target()
        p = self.peer
        self.expect(self.feed(p.send_only(E + 1, b"ahead")), Nak(E, NAK_SEQ, 0))
        self.silent(self.feed(p.send_only(E + 2, b"ahead")), ms=1)
        self.expect(self.feed(p.send_only(E, b"first")), Ack(E, 1))
        self.expect(self.feed(p.send_only(E, b"first")), Ack(E, 1))
        self.set_mem(0, (5).to_bytes(8, "little"))
        self.expect(self.feed(p.fetch_add(E + 1, VA, RKEY, 1)), AtomicAck(E + 1, 5, 2))
        self.expect(self.feed(p.fetch_add(E + 1, VA, RKEY, 1)), AtomicAck(E + 1, 5, 2))
        self.assertEqual((6).to_bytes(8, "little"), self.mem(0, 8))
        self.expect(self.feed(p.read_req(E + 2, VA, RKEY, 8)),
                    ReadResponse(E + 2, (6).to_bytes(8, "little"), 3))
        self.expect(self.feed(p.read_req(E + 2, VA, RKEY, 8)),
                    ReadResponse(E + 2, (6).to_bytes(8, "little"), 3))
        self.assertEqual([(0, "SUCCESS", 5, QPN)], self.done())
        self.well()

    def test_XRC_01_reserved_opcodes(self):
        for opcode in [0xB5] + list(range(0xB8, 0xC0)):
            with self.subTest(hex(opcode)):
                self.target()
                ext = roce.imm_dt(SRQN) + bytes(20)     # of 0xBC and 0xBD: FETH, RETH
                self.expect(self.feed(self.peer.packet(opcode, E, b"", ext)), Nak(E, NAK_INV, 0))
                self.dead("QP_REQ_ERR")
                self.assertEqual((4, []), (self.posted(), self.done()))

    def test_XRC_01_XRC_12_transports_do_not_mix(self):
        """RC to a target, responses to a target, requests cut inside of the XRCETH."""
        self.target()
        rc = self.peer.with_(service=0)
        self.silent(self.feed(rc.send_only(E, b"rc")), ms=5)
        self.silent(self.feed(self.peer.acknowledge(E)), ms=5)
        self.assertEqual(2, self.delta("rx_qp_type_mismatch"))
        for n in range(4):
            self.silent(self.feed(rc.packet(XRC | roce.SEND_ONLY, E, bytes(n), pad=0,
                                            pad_bytes=b"")), ms=5)
        self.assertEqual(4, self.delta("rx_truncated"))
        self.well()
        self.assertEqual(E, self.qp()["epsn"])

    def test_XRC_01_XRC_12_other_types_drop_xrc(self):
        for qp in ({}, {"qp_type": "UC", **{k: None for k in (
                "timeout", "retry_cnt", "rnr_retry", "min_rnr_timer", "max_rd_atomic",
                "max_dest_rd_atomic")}}):
            with self.subTest(qp.get("qp_type", "RC")):
                self.resp(**qp)
                for opcode in (roce.SEND_ONLY, roce.WRITE_ONLY, roce.READ_REQ, roce.FETCH_ADD):
                    self.silent(self.feed(self.peer.packet(opcode, E, b"", bytes(28))), ms=1)
                self.silent(self.feed(self.peer.acknowledge(E)), ms=1)
                self.assertEqual(5, self.delta("rx_qp_type_mismatch"))
                self.well()

    def test_XRC_04_completions_are_the_srqs(self):
        self.target(srqs=2)
        self.expect(self.each(self.peer.send_only(E, b"one"),
                              self.to(SRQN2).send_only(E + 1, b"two"),
                              self.peer.send_only(E + 2, b"three")),
                    Ack(E, 1), Ack(E + 1, 2), Ack(E + 2, 3))
        self.assertEqual([(0, "SUCCESS", 3, QPN), (1, "SUCCESS", 5, QPN)], self.done("xcq0"))
        self.assertEqual([(4, "SUCCESS", 3, QPN)], self.done("xcq1"))
        self.assertEqual((b"one", b"three", b"two"),
                         (self.slot(0, 3), self.slot(1, 5), self.slot(4, 3)))

    def test_XRC_04_in_one_burst(self):
        self.target(srqs=2)
        peers = self.peer, self.to(SRQN2)
        self.expect(self.feed(*[peers[i % 2].send_only(E + i, b"%d" % i, ack=i == 7)
                                for i in range(8)]), Ack(E + 7, 8))
        self.assertEqual([(i, "SUCCESS", 1, QPN) for i in range(4)], self.done("xcq0"))
        self.assertEqual([(i, "SUCCESS", 1, QPN) for i in range(4, 8)], self.done("xcq1"))

    def test_XRC_04_two_targets_one_srq(self):
        self.target(path_mtu=MTU)
        far = self.peer_of(qpn=0x12, own_qpn=0x23)
        self.make("qp_create", **self.target_params(qp_num=0x12, dest_qp_num=0x23))
        self.feed(self.peer.send_only(E, b"a"))
        self.peer = far
        self.expect(self.feed(far.send_only(E, b"b")), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", 1, QPN), (1, "SUCCESS", 1, 0x12)], self.done())

    def no_such_srq(self, *frames):
        """XRC-05: refused at ePSN, and nothing was used."""
        self.expect(self.feed(*frames), Nak(E, NAK_XRC, 0))
        self.assertEqual(1, self.delta("resp_nak_srq_sent"))
        self.dead("QP_ACCESS_ERR")
        self.assertEqual(([], 4), (self.done(), self.posted()))
        self.assertEqual("XRC-05", self.rpc("qp_explain", qp_num=QPN)["error"]["rule"])

    def test_XRC_05_unknown_number(self):
        self.target()
        self.no_such_srq(self.to(SRQN + 4096).send_only(E, b"x"))

    def test_XRC_05_of_another_domain(self):
        self.target()
        self.make("xrcd_create", name="xrcd1")
        self.xrc_srq("other", SRQN2, xrcd="xrcd1")
        self.no_such_srq(self.to(SRQN2).send_only(E, b"x"))

    def test_XRC_05_not_of_type_xrc(self):
        """Such an SRQ has no number: not its own one, whatever that is."""
        self.target()
        self.make("srq_create", name="basic", pd="pd0")
        self.assertNotIn("srq_num", self.rpc("srq_query", name="basic"))
        self.no_such_srq(self.to(1).send_only(E, b"x"))

    def test_XRC_05_not_of_the_open_message(self):
        """RESP-CLS-K-01: a WQE is tied to it, and completes where it came from."""
        self.target(srqs=2)
        self.feed(self.peer.send_first(E, data(MTU)))
        self.expect(self.feed(self.to(SRQN2).send_last(E + 1, b"x")), Nak(E + 1, NAK_XRC))
        self.assertEqual([(0, "REM_INV_REQ_ERR", QPN)],
                         [(c["wr_id"], c["status"], c["qp_num"]) for c in self.cqes("xcq0")])
        self.assertEqual([], self.done("xcq1"))
        self.dead("QP_ACCESS_ERR", E + 1)
        self.assertEqual((3, 4), (self.posted(), self.posted("srq1")))

    def test_XRC_07_empty_srq(self):
        self.target(recv=0)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Rnr(E, 12, 0))
        self.assertEqual([], self.done())
        self.post_srq()
        self.expect(self.feed(self.peer.send_only(E, b"x"), ns=MS), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", 1, QPN)], self.done())
        self.assertEqual(0, self.qp()["answers_pending"])

    def test_XRC_07_no_credits(self):
        """0x1F, whatever the knob says: Ack() asks for it."""
        self.target(knobs={"resp.credits": "on"})
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.expect(self.feed(self.peer.write_only(E + 1, b"x", VA, RKEY)), Ack(E + 1, 2))

    def test_XRC_10_write_and_read_name_an_srq_too(self):
        for make in (lambda p: p.write_only(E, b"x", VA, RKEY),
                     lambda p: p.read_req(E, VA, RKEY, 8),
                     lambda p: p.fetch_add(E, VA, RKEY, 1)):
            self.target()
            self.no_such_srq(make(self.to(SRQN2)))
            self.assertEqual(bytes(8), self.mem(0, 8))
        self.target(recv=0)
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY)), Ack(E, 1))

    def test_XRC_10_keys_are_those_of_the_srqs_pd(self):
        """One target, two protection domains: a READ goes on with its own while others come."""
        self.target(srqs=2)
        self.made_pd = self.make("pd_create", name="pdx")
        self.make("mr_register", name="mrx", pd="pdx", length=65536, addr=hex(VA), rkey="0x2002",
                  access=dut.ALL_REMOTE, fill="pattern:5")
        self.make("cq_create", name="xcqx")
        self.xrc_srq("srqx", 0x789, pd="pdx", cq="xcqx")
        theirs = self.to(0x789)
        body = roce.pattern(5, 3 * MTU)
        self.expect(self.feed(theirs.read_req(E, VA, 0x2002, len(body)),
                              self.peer.write_only(E + 3, b"x", VA, RKEY)),
                    ReadResponse(E, body, 1), Ack(E + 3, 2))
        self.expect(self.feed(self.peer.read_req(E + 4, VA, 0x2002, 8)), Nak(E + 4, NAK_RAE))
        self.dead("QP_ACCESS_ERR", E + 4)

    def test_other_ips(self):
        self.target(v6=True)
        self.expect(self.feed(self.peer.send_only(E, b"six")), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", 3, QPN)], self.done())


class Classes(XrcCase):
    """A target's own classes: K for C and A, L for G, M for J."""

    def test_RESP_CLS_K_01_too_long(self):
        self.target(size=16)
        self.expect(self.feed(self.peer.send_only(E, bytes(17))), Nak(E, NAK_INV))
        self.assertEqual([(0, "LOC_LEN_ERR")], self.statuses("xcq0"))
        self.dead("QP_REQ_ERR")
        self.assertEqual(3, self.posted())

    def test_RESP_CLS_K_01_no_wqe_tied(self):
        self.target()
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY + 1)), Nak(E, NAK_RAE))
        self.assertEqual([], self.done())
        self.dead("QP_ACCESS_ERR")

    def test_RESP_CLS_K_01_wqe_of_the_open_message(self):
        self.target()
        self.feed(self.peer.send_first(E, data(MTU)))
        self.expect(self.feed(self.peer.send_only(E + 1, b"x")), Nak(E + 1, NAK_INV))
        self.assertEqual([(0, "REM_INV_REQ_ERR")], self.statuses("xcq0"))
        self.dead("QP_REQ_ERR", E + 1)
        self.assertEqual(3, self.posted())

    def test_RESP_CLS_K_01_bad_buffer(self):
        self.target(recv=0)
        self.rpc("post_srq_recv", srq="srq0", wrs=[
            {"wr_id": 9, "sg_list": [{"addr": "0x1234", "length": 64, "lkey": 0x777}]}])
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NAK_ROE))
        self.assertEqual([(9, "LOC_PROT_ERR")], self.statuses("xcq0"))
        self.dead("QP_FATAL")

    def test_RESP_CLS_K_01_the_srq_goes_on(self):
        """Other targets take what is left."""
        self.target()
        far = self.peer_of(qpn=0x12, own_qpn=0x23)
        self.make("qp_create", **self.target_params(qp_num=0x12, dest_qp_num=0x23))
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY + 1)), Nak(E, NAK_RAE))
        self.dead("QP_ACCESS_ERR")
        self.peer = far
        self.expect(self.feed(far.send_only(E, b"y")), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", 1, 0x12)], self.done())

    def test_RESP_CLS_L_01_completion_queue_full(self):
        self.target(cqe=1)
        self.expect(self.feed(self.peer.send_only(E, b"1")), Ack(E, 1))
        self.silent(self.feed(self.peer.send_only(E + 1, b"2")), ms=5)
        events = self.events()
        self.assertEqual({"CQ_ERR", "QP_FATAL", "SRQ_ERR"}, {e["event_type"] for e in events})
        self.assertEqual(3, len(events))
        self.assertEqual("ERR", self.state())
        self.assertTrue(self.rpc("srq_query", name="srq0")["error"])
        self.assertEqual("RESP-CLS-L-01", self.rpc("qp_explain", qp_num=QPN)["error"]["rule"])

    def test_RESP_CLS_M_01_invalidate_refused(self):
        self.target()
        self.silent(self.feed(self.peer.send_only_inv(E, b"x", 0xBAD)), ms=5)
        self.assertEqual([(0, "REM_INV_REQ_ERR")], self.statuses("xcq0"))
        self.dead(None)

    def test_RESP_CLS_M_01_a_good_one(self):
        self.target()
        self.make("mr_register", name="inv", pd="pd0", length=4096, addr="0x5000", rkey="0x3003",
                  access=dut.ALL_REMOTE, remote_invalidate=True)
        self.expect(self.feed(self.peer.send_only_inv(E, b"x", 0x3003)), Ack(E, 1))
        self.assertEqual([0x3003], [int(str(c["invalidated_rkey"]), 0) for c in self.cqes("xcq0")])


class Going(XrcCase):
    """An SRQ may go away under a target."""

    def gone(self, name):
        self.rpc("srq_destroy", name=name)
        self.made.remove(("srq_destroy", {"name": name}))

    def test_XRC_05_destroyed_between_messages(self):
        self.target()
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.gone("srq0")
        self.expect(self.feed(self.peer.send_only(E + 1, b"x")), Nak(E + 1, NAK_XRC))
        self.dead("QP_ACCESS_ERR", E + 1)

    def test_XRC_05_destroyed_inside_of_a_message(self):
        """Its WQE is nobody's, also when another SRQ has the number now."""
        for again in (False, True):
            self.target()
            self.feed(self.peer.send_first(E, data(MTU)))
            self.gone("srq0")
            if again:
                self.xrc_srq("srq0", SRQN)
                self.post_srq(2)
            self.expect(self.feed(self.peer.send_last(E + 1, b"x")), Nak(E + 1, NAK_XRC))
            self.assertEqual([], self.done())
            self.dead("QP_ACCESS_ERR", E + 1)
            if again:
                self.assertEqual(2, self.posted())

    def test_destroyed_then_the_qp_flushes(self):
        self.target()
        self.feed(self.peer.send_first(E, data(MTU)))
        self.gone("srq0")
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.dut.run()
        self.assertEqual([], self.done())

    def test_flushed_with_the_srq(self):
        """AE-08 is not a target's: it is tied to no SRQ. Its open WQE is flushed there."""
        self.target()
        self.feed(self.peer.send_first(E, data(MTU)))
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.dut.run()
        self.assertEqual([(0, "WR_FLUSH_ERR")], self.statuses("xcq0"))
        self.assertEqual([], self.events())


class Objects(XrcCase):

    def refused(self, code, word, method, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(-code, caught.exception.code, caught.exception.message)
        self.assertIn(word, caught.exception.message)

    def test_XRC_09_what_is_missing(self):
        self.target()
        t = self.target_params(qp_num=0x20)
        self.refused(PARAMS, "xrcd", "qp_create", **{k: v for k, v in t.items() if k != "xrcd"})
        self.refused(PARAMS, "send_cq", "qp_create", **t, send_cq="xcq0")
        self.refused(PARAMS, "recv_cq", "qp_create", **t, recv_cq="xcq0")
        self.refused(PARAMS, "srq", "qp_create", **t, srq="srq0")
        self.refused(ENOENT, "xrcd", "qp_create", **{**t, "xrcd": "none"})
        self.refused(PARAMS, "xrcd", "qp_create", **self.qp_params(qp_num=0x20, xrcd="xrcd0"))
        s = {"name": "s", "pd": "pd0", "srq_type": "XRC"}
        self.refused(PARAMS, "xrcd", "srq_create", **s, cq="xcq0")
        self.refused(PARAMS, "cq", "srq_create", **s, xrcd="xrcd0")
        self.refused(PARAMS, "srq_num", "srq_create", name="s", pd="pd0", srq_num=5)
        self.refused(EEXIST, "srq_num", "srq_create", **s, xrcd="xrcd0", cq="xcq0", srq_num=SRQN)
        self.refused(EEXIST, "srq_num", "srq_create", **s, xrcd="xrcd0", cq="xcq0",
                     srq_num=SRQN + 4096)
        self.refused(ENOENT, "xrcd", "srq_create", **s, xrcd="none", cq="xcq0")

    def test_XRC_09_in_use(self):
        self.target()
        self.refused(EBUSY, "xrcd0", "xrcd_dealloc", name="xrcd0")
        self.refused(EBUSY, "xcq0", "cq_destroy", name="xcq0")
        self.assertEqual([{"name": "xrcd0", "users": 2, "opened": 1}], self.rpc("xrcd_list"))
        self.clear()
        self.assertEqual([], self.rpc("xrcd_list"))

    def test_XRC_09_numbers(self):
        """Given, or chosen and reported."""
        self.target()
        self.assertEqual(SRQN, self.rpc("srq_query", name="srq0")["srq_num"])
        got = {self.xrc_srq("s%d" % i, None)["srq_num"] for i in range(8)}
        self.assertEqual(8, len(got))
        self.assertTrue(all(0 < n < 1 << 24 for n in got))
        n = self.rpc("srq_query", name="s3")["srq_num"]
        self.post_srq(1, "s3")
        self.expect(self.feed(self.to(n).send_only(E, b"chosen")), Ack(E, 1))

    def test_XRC_09_posts_are_refused(self):
        self.target()
        result = self.rpc("post_recv", qp_num=QPN, wrs=[{"wr_id": 1}])
        self.assertIn("XRC_RECV", result["refused"]["reason"])
        result = self.rpc("post_send", qp_num=QPN, wrs=[{"wr_id": 1, "opcode": "SEND"}])
        self.assertIn("XRC_RECV", result["refused"]["reason"])
        self.initiator()
        result = self.rpc("post_recv", qp_num=QPN, wrs=[{"wr_id": 1}])
        self.assertIn("XRC_SEND", result["refused"]["reason"])
        bare = self.wr("SEND", 8)
        del bare["xrc_remote_srqn"]
        result = self.post_raw(bare)
        self.assertIn("xrc_remote_srqn is missing", result["refused"]["reason"])
        self.req()
        result = self.post_raw(self.wr("SEND", 8))
        self.assertIn("xrc_remote_srqn", result["refused"]["reason"])

    def test_XRC_11_transitions(self):
        """Each step with what it needs; one missing in turn is named and changes nothing."""
        steps = {
            "XRC_SEND": (("RTR", {"ah_attr": 0, "path_mtu": 1024, "dest_qp_num": 0x22,
                                  "rq_psn": 0}),
                         ("RTS", {"timeout": 14, "retry_cnt": 7, "rnr_retry": 7, "sq_psn": 0,
                                  "max_rd_atomic": 4})),
            "XRC_RECV": (("RTR", {"ah_attr": 0, "path_mtu": 1024, "dest_qp_num": 0x22, "rq_psn": E,
                                  "max_dest_rd_atomic": 4, "min_rnr_timer": 12}),
                         ("RTS", {"timeout": 14, "sq_psn": 0}))}
        for kind, way in steps.items():
            self.target()
            own = {"xrcd": "xrcd0"} if kind == "XRC_RECV" else {"send_cq": "xcq0"}
            self.make("qp_create", qp_num=0x30, qp_type=kind, pd="pd0", port="p0", **own)
            init = {"port": "p0", "pkey": "0xffff", "qp_access_flags": []}
            for state, attrs in (("INIT", init),) + way:
                if "ah_attr" in attrs:
                    attrs = {**attrs, "ah_attr": self.peer_address()}
                for left_out in attrs:
                    with self.subTest(kind, state=state, without=left_out):
                        with self.assertRaises(dut.RpcError):
                            self.rpc("qp_modify", qp_num=0x30, qp_state=state,
                                     **{k: v for k, v in attrs.items() if k != left_out})
                self.rpc("qp_modify", qp_num=0x30, qp_state=state, **attrs)
                self.assertEqual(state, self.qp(0x30)["qp_state"])
        other = {"XRC_SEND": ("min_rnr_timer", "max_dest_rd_atomic"),
                 "XRC_RECV": ("retry_cnt", "rnr_retry", "max_rd_atomic")}
        for kind, keys in other.items():
            for key in keys:
                own = {"xrcd": "xrcd0"} if kind == "XRC_RECV" else {"send_cq": "xcq0"}
                self.refused(PARAMS, key, "qp_create", qp_num=0x31, qp_type=kind, pd="pd0", **own,
                             **{key: 1})

    def test_saved_and_loaded(self):
        """save_config says all of it, and a check of that file finds nothing."""
        self.target()
        self.make("qp_create", **{k: v for k, v in self.qp_params(
            qp_num=0x40, qp_type="XRC_SEND", send_cq="xcq0", recv_cq=None, min_rnr_timer=None,
            max_dest_rd_atomic=None).items()})
        saved = self.rpc("save_config")
        self.assertEqual(["xrcd0"], [x if isinstance(x, str) else x["name"]
                                     for x in saved["xrcds"]])
        srq = next(s for s in saved["srqs"] if s["name"] == "srq0")
        self.assertEqual(("XRC", "xrcd0", "xcq0", SRQN),
                         (srq["srq_type"], srq["xrcd"], srq["cq"], srq["srq_num"]))
        kinds = {q["qp_type"]: q for q in saved["qps"]}
        self.assertNotIn("send_cq", kinds["XRC_RECV"])
        self.assertNotIn("retry_cnt", kinds["XRC_RECV"])
        self.assertNotIn("min_rnr_timer", kinds["XRC_SEND"])
        again = dut.Stepped(saved)
        try:
            self.assertEqual(SRQN, again.rpc("srq_query", name="srq0")["srq_num"])
            self.assertEqual("RTS", again.rpc("qp_query", qp_num=QPN)["qp_state"])
        finally:
            again.close()


if __name__ == "__main__":
    dut.main()
