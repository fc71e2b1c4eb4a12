# SPDX-License-Identifier: BSD-3-Clause
"""SRQ: receive WQEs that queue pairs share, across workers too."""
import itertools

import dut
from dut import ALL_REMOTE, BUF, BUFS, E, MR_LEN, MS, QPN, RKEY, VA, Ack, Nak, Rnr
from roce import NAK_INV, NAK_ROE, NAK_SEQ, Frame, Peer, check_frame, data

EINVAL, ENOMEM, EBUSY, EEXIST, ENOENT = 32022, 32012, 32016, 32017, 32002


class SrqCase(dut.DutCase):
    """F-RESP-SRQ: two QPs, 0x11 and 0x12, on srq0."""

    NUMBERS = (QPN, 0x12)

    def shared(self, recv=4, qps=2, srq=None, qp=None, pd="pd0", each=None):
        self.clear()
        self.make("cq_create", name="cq0", cqe=256)
        self.make("mr_register", name="mr0", pd="pd0", length=MR_LEN, addr=hex(VA), rkey=hex(RKEY),
                  access=ALL_REMOTE)
        self.make("mr_register", name="rbuf", pd=pd, length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("srq_create", name="srq0", pd=pd, **(srq or {}))
        self.peers = []
        for i in range(qps):
            number, far = QPN + i, 0x22 + i
            own = dict(qp or {}, **(each or [{}] * qps)[i])
            self.make("qp_create", **self.qp_params(
                qp_num=number, dest_qp_num=far, srq="srq0", **own))
            self.peers.append(self.peer_of(qpn=number, own_qpn=far, mtu=1024))
        self.peer = self.peers[0]
        self.wr_id = 0
        self.post_srq(recv)
        self.drain()

    def post_srq(self, n=1, size=BUF, srq="srq0", **sge):
        for _ in range(n):
            entry = dict({"mr": "rbuf", "offset": self.wr_id % BUFS * BUF, "length": size}, **sge)
            result = self.rpc("post_srq_recv", srq=srq,
                              wrs=[{"wr_id": self.wr_id, "sg_list": [entry]}])
            self.assertEqual((1, None), (result["posted"], result["refused"]))
            self.wr_id += 1

    def feed_to(self, i, *frames):
        self.peer = self.peers[i]
        return self.feed(*frames)

    def both(self, *frames):
        """Frames to either QP; the answers by QP, each checked."""
        for frame in frames:
            self.dut.rx(frame)
        out = {p.own_qpn: [] for p in self.peers}
        for _, raw in self.dut.run():
            f = Frame(raw)
            check_frame(f, next(p for p in self.peers if p.own_qpn == f.qpn))
            out[f.qpn].append(f)
        return [out[p.own_qpn] for p in self.peers]

    def srq(self):
        return self.rpc("srq_query", name="srq0")

    def posted(self):
        return self.srq()["posted"]

    def done(self):
        return [(c["wr_id"], c["status"], c["qp_num"]) for c in self.cqes()]

    def srq_events(self):
        return [(e["event_type"], e.get("srq", e.get("qp_num"))) for e in self.events()]

    def refused(self, code, word, method, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(-code, caught.exception.code, caught.exception.message)
        self.assertIn(word, caught.exception.message)


class Shared(SrqCase):

    def test_SRQ_01_one_wqe_a_message(self):
        """Two interleaved messages: a WQE for each, from its FIRST on; the CQE names the QP."""
        self.shared(recv=4)
        a, b = self.peers
        one, two = data(2058, 1), data(2500, 2)
        parts = zip(a.send(E, one), b.send(E, two))
        left = []
        for pair in parts:
            self.both(*pair)
            left.append(self.posted())
        self.assertEqual([2, 2, 2], left)
        got = self.cqes()
        self.assertEqual([(0, "SUCCESS", QPN, 2058), (1, "SUCCESS", 0x12, 2500)],
                         [(c["wr_id"], c["status"], c["qp_num"], c["byte_len"]) for c in got])
        self.assertEqual((one, two), (self.slot(0, 2058), self.slot(1, 2500)))
        self.expect(self.feed_to(0, a.send_only(E + 3, b"c")), Ack(E + 3, 2))
        self.assertEqual([(2, "SUCCESS", QPN)], self.done())

    def test_SRQ_01_immediate_of_a_write(self):
        """RESP-RNR-02: the WQE is taken where the immediate is."""
        self.shared(recv=2)
        a = self.peers[0]
        self.assertEqual([], self.feed(a.write_first(E, data(1024), VA, RKEY, 1030)))
        self.assertEqual(2, self.posted())
        self.expect(self.feed(a.write_last_imm(E + 1, data(6))), Ack(E + 1, 1))
        self.assertEqual((1, [(0, "SUCCESS", QPN)]), (self.posted(), self.done()))

    def test_SRQ_01_order_among_many(self):
        """In posting order, whoever takes; the ring wraps many times."""
        self.shared(recv=0, srq={"max_wr": 4}, qps=3)
        psn, ids = [E] * 3, []
        for k in range(40):
            self.post_srq(1 + k % 4)
            while self.posted():
                i = (k + len(ids)) % 3
                ids.append((len(ids), "SUCCESS", QPN + i))
                self.feed_to(i, self.peers[i].send_only(psn[i], data(k % 50 + 1)))
                psn[i] += 1
            self.assertEqual(ids[-(1 + k % 4):], self.done())

    def test_SRQ_02_limit(self):
        """Below 2: one event, and no limit any more; srq_modify arms it again."""
        self.shared(recv=4, srq={"srq_limit": 2})
        psn = itertools.count(E)
        want = [[], [], [("SRQ_LIMIT_REACHED", "srq0")], []]
        for expected in want:
            self.feed(self.peer.send_only(next(psn), b"x"))
            self.assertEqual(expected, self.srq_events())
        self.assertEqual(0, self.srq()["srq_limit"])
        self.post_srq(3)
        self.feed(self.peer.send_only(next(psn), b"x"))
        self.assertEqual([], self.srq_events())
        self.assertEqual(2, self.rpc("srq_modify", name="srq0", srq_limit=2)["srq_limit"])
        self.assertEqual([], self.srq_events())
        self.feed_to(1, self.peers[1].send_only(E, b"x"))
        events = self.events()
        self.assertEqual([("SRQ_LIMIT_REACHED", "srq0", "RQ")],
                         [(e["event_type"], e["srq"], e["source"]) for e in events])
        self.assertNotIn("qp_num", events[0])
        self.assertEqual("RTS", self.state())

    def test_SRQ_02_armed_below_the_limit(self):
        """The next WQE taken tells, and so does the first that is not there."""
        self.shared(recv=2)
        self.rpc("srq_modify", name="srq0", srq_limit=3)
        self.feed(self.peer.send_only(E, b"x"))
        self.assertEqual([("SRQ_LIMIT_REACHED", "srq0")], self.srq_events())
        self.feed(self.peer.send_only(E + 1, b"x"))
        self.rpc("srq_modify", name="srq0", srq_limit=3)
        self.assertEqual([], self.srq_events())
        self.expect(self.feed(self.peer.send_only(E + 2, b"x")), Rnr(E + 2, 12, 2))
        self.assertEqual([("SRQ_LIMIT_REACHED", "srq0")], self.srq_events())

    def test_SRQ_03_empty(self):
        """RNR for whoever finds nothing; what is posted later serves the retry."""
        self.shared(recv=1)
        a, b = self.peers
        self.expect(self.feed_to(0, a.send_only(E, b"x")), Ack(E, 1))
        self.expect(self.feed_to(1, b.send_only(E, b"y")), Rnr(E, 12, 0))
        self.expect(self.feed_to(0, a.send_only(E + 1, b"x")), Rnr(E + 1, 12, 1))
        self.post_srq(1)
        self.dut.run(MS)
        self.expect(self.feed_to(1, b.send_only(E, b"y")), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", QPN), (1, "SUCCESS", 0x12)], self.done())
        self.assertEqual([], self.events())

    def test_SRQ_03_no_credits(self):
        """0x1F: no information, whatever is posted. Also of duplicates and NAKs' partners."""
        self.shared(recv=4, qp={"knobs": {"resp.credits": "on"}})
        p = self.peers[0]
        for frame, psn, msn in ((p.send_only(E, b"x"), E, 1), (p.send_only(E, b"x"), E, 1),
                                (p.write_only(E + 1, b"x", VA, RKEY), E + 1, 2),
                                (p.write_only_imm(E + 2, b"x", VA, RKEY), E + 2, 3)):
            self.expect(self.feed(frame), Ack(psn, msn))

    def test_SRQ_04_RESP_CLS_A_03_RESP_CLS_A_04_in_error(self):
        """A malformed entry: the QP that takes it fails, and so does the SRQ; then its QPs do."""
        self.shared(recv=3, qps=3)
        a, b, c = self.peers
        self.dut.command("srq srq0 sges 5")
        self.expect(self.feed_to(0, a.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.assertEqual([(0, "LOC_QP_OP_ERR", QPN)], self.done())
        self.assertEqual([("SRQ_ERR", "srq0"), ("QP_LAST_WQE_REACHED", QPN)], self.srq_events())
        self.assertEqual((2, True), (self.posted(), self.srq()["error"]))
        # RESP-CLS-A-04: no WQE is taken any more.
        self.expect(self.feed_to(1, b.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.assertEqual([("QP_FATAL", 0x12), ("QP_LAST_WQE_REACHED", 0x12)], self.srq_events())
        self.assertEqual(("ERR", "ERR"), (self.state(), self.qp(0x12)["qp_state"]))
        # What needs no WQE is served.
        self.expect(self.feed_to(2, c.write_only(E, b"x", VA, RKEY)), Ack(E, 1))
        self.expect(self.feed_to(2, c.write_only_imm(E + 1, b"x", VA, RKEY)),
                    Nak(E + 1, NAK_ROE, 1))
        self.assertEqual([("QP_FATAL", 0x13), ("QP_LAST_WQE_REACHED", 0x13)], self.srq_events())
        self.assertEqual((2, []), (self.posted(), self.done()))
        result = self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": 9, "sg_list": []}])
        self.assertEqual((0, 22), (result["posted"], result["refused"]["errno"]))

    def test_SRQ_04_index_that_cannot_be(self):
        """A producer that claims more than the ring holds is not followed."""
        self.shared(recv=2)
        self.dut.command("srq srq0 prod 1000000")
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        codes = [e.get("code") for e in self.rpc("async_events", max=64, peek=True)]
        self.assertEqual([None, 0x180, 0x001], codes)   # AEQ-10: LOCAL_CATASTROPHIC
        self.assertEqual([("SRQ_ERR", "srq0"), ("QP_FATAL", QPN), ("QP_LAST_WQE_REACHED", QPN)],
                         self.srq_events())
        self.assertEqual([], self.done())

    def test_RESP_CLS_A_02_bad_memory_behind_a_wqe(self):
        """RESP-NAK-ROE-01 on one QP: SRQ and the other QP go on."""
        self.shared(recv=0)
        a, b = self.peers
        key = self.rpc("mr_list")[0]["lkey"]
        self.rpc("post_srq_recv", srq="srq0", wrs=[
            {"wr_id": 100, "sg_list": [{"lkey": hex(int(key, 16) ^ 0x5555), "addr": "0x1000",
                                        "length": 64}]}])
        self.post_srq(2)
        self.expect(self.feed_to(0, a.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.assertEqual([(100, "LOC_PROT_ERR", QPN)], self.done())
        self.assertEqual([("QP_LAST_WQE_REACHED", QPN)], self.srq_events())
        self.silent(self.feed_to(0, a.send_only(E + 1, b"x")), ms=1)
        self.assertEqual((2, False), (self.posted(), self.srq()["error"]))
        self.expect(self.feed_to(1, b.send_only(E, b"y")), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS", 0x12)], self.done())

    def test_RESP_NAK_INV_06_RESP_CLS_A_02_too_long(self):
        """Class C in mid-message: that WQE alone."""
        self.shared(recv=0)
        a, b = self.peers
        self.post_srq(1, size=1500)
        self.post_srq(2)
        self.assertEqual([], self.feed_to(0, a.send_first(E, data(1024))))
        self.expect(self.feed_to(0, a.send_last(E + 1, data(1000))), Nak(E + 1, NAK_INV, 0))
        self.assertEqual(([(0, "LOC_LEN_ERR", QPN)], 2), (self.done(), self.posted()))
        self.expect(self.feed_to(1, b.send_only(E, b"y")), Ack(E, 1))
        self.assertEqual([(1, "SUCCESS", 0x12)], self.done())

    def test_AE_08_last_wqe_reached(self):
        """An open message's WQE is flushed, what is in the SRQ stays; then the event, once."""
        self.shared(recv=3)
        a, b = self.peers
        self.assertEqual([], self.feed_to(0, a.send_first(E, data(1024))))
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual([(0, "WR_FLUSH_ERR", QPN)], self.done())
        events = self.events()
        self.assertEqual([("QP_LAST_WQE_REACHED", QPN, "RQ")],
                         [(e["event_type"], e["qp_num"], e["source"]) for e in events])
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual(([], [], 2), (self.events(), self.done(), self.posted()))
        self.expect(self.feed_to(1, b.send_only(E, b"y")), Ack(E, 1))
        self.assertEqual([(1, "SUCCESS", 0x12)], self.done())

    def test_AE_08_without_a_message(self):
        """No WQE is out: the event comes as well; and again in the QP's next life."""
        self.shared(recv=1)
        for _ in range(2):
            self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
            self.assertEqual([("QP_LAST_WQE_REACHED", QPN)], self.srq_events())
            self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
            self.assertEqual([], self.srq_events())
            self.walk_up("RTS", srq="srq0")
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.assertEqual(([(0, "SUCCESS", QPN)], []), (self.done(), self.events()))

    def test_AE_08_not_of_a_plain_qp(self):
        self.resp(recv=1)
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.assertEqual([], self.events())

    def test_RESP_DUP_09_duplicates_and_gaps_take_nothing(self):
        self.shared(recv=2)
        p = self.peer
        self.expect(self.feed(p.send_only(E, b"x")), Ack(E, 1))
        self.expect(self.feed(p.send_only(E, b"x")), Ack(E, 1))
        self.expect(self.feed(p.send_only(E + 5, b"x")), Nak(E + 1, NAK_SEQ, 1))
        self.assertEqual(([(0, "SUCCESS", QPN)], 1), (self.done(), self.posted()))

    def test_RX_PREC_05_immediate_inside_a_send(self):
        """ernic: the open SEND's WQE is not one for the immediate."""
        for shared in (True, False):
            if shared:
                self.shared(recv=1, qp={"profile": "ernic"})
            else:
                self.resp(recv=1, profile="ernic")
            p = self.peer
            self.assertEqual([], self.feed(p.send_first(E, data(1024, 3))))
            self.expect(self.feed(p.write_only_imm(E + 1, b"x", VA, RKEY)), Rnr(E + 1, 12, 0))
            self.dut.run(MS)
            self.expect(self.feed(p.send_last(E + 1, b"end")), Ack(E + 1, 1))
            self.assertEqual(data(1024, 3) + b"end", self.slot(0, 1027))
            self.assertEqual([(0, "SUCCESS", QPN)], self.done())

    def test_RX_PREC_05_with_a_wqe_the_sequence_decides(self):
        for shared in (True, False):
            if shared:
                self.shared(recv=2, qp={"profile": "ernic"})
            else:
                self.resp(recv=2, profile="ernic")
            self.assertEqual([], self.feed(self.peer.send_first(E, data(1024))))
            self.expect(self.feed(self.peer.write_only_imm(E + 1, b"x", VA, RKEY)),
                        Nak(E + 1, NAK_INV, 0))
            self.assertEqual((0, "REM_INV_REQ_ERR", QPN), self.done()[0])


class Objects(SrqCase):

    def test_attributes(self):
        self.shared(recv=3, srq={"max_wr": 8, "max_sge": 2, "srq_limit": 1})
        want = {"name": "srq0", "pd": "pd0", "max_wr": 8, "max_sge": 2, "srq_limit": 1,
                "posted": 3, "users": 2, "error": False}
        self.assertEqual(want, self.srq())
        self.assertEqual([want], self.rpc("srq_list"))
        q = self.qp()
        self.assertEqual(("srq0", want), (q["srq"], q["srq_attr"]))

    def test_posting(self):
        """ENOMEM when full, EINVAL of too many SGEs; the good prefix is posted."""
        self.shared(recv=2, srq={"max_wr": 3, "max_sge": 2})
        wr = {"wr_id": 7, "sg_list": []}
        result = self.rpc("post_srq_recv", srq="srq0", wrs=[wr, wr, wr])
        self.assertEqual((1, 1, 12), (result["posted"], result["refused"]["index"],
                                      result["refused"]["errno"]))
        sge = {"mr": "rbuf", "offset": 0, "length": 1}
        result = self.rpc("post_srq_recv", srq="srq0",
                          wrs=[{"wr_id": 8, "sg_list": [sge] * 3}])
        self.assertEqual((0, 22, 8), (result["posted"], result["refused"]["errno"],
                                      result["refused"]["wr_id"]))
        self.assertIn("max_sge is 2", result["refused"]["reason"])
        result = self.rpc("post_recv", qp_num=QPN, wrs=[wr])
        self.assertEqual((0, 22), (result["posted"], result["refused"]["errno"]))
        self.assertIn("srq0", result["refused"]["reason"])
        self.refused(ENOENT, "srq9", "post_srq_recv", srq="srq9", wrs=[wr])
        # One is taken: there is room for one.
        self.feed(self.peer.send_only(E, b"x"))
        self.post_srq(1)
        self.assertEqual(3, self.posted())

    def test_in_use(self):
        self.shared()
        self.refused(EBUSY, "2 QPs", "srq_destroy", name="srq0")
        self.refused(EBUSY, "pd0", "pd_dealloc", name="pd0")
        self.refused(EEXIST, "srq0", "srq_create", name="srq0", pd="pd0")
        self.refused(ENOENT, "nothing", "qp_create", **self.qp_params(qp_num=0x40, srq="nothing"))
        self.assertEqual(2, self.srq()["users"])

    def test_modify(self):
        self.shared(recv=3, srq={"max_wr": 4, "srq_limit": 2})
        self.refused(EINVAL, "3", "srq_modify", name="srq0", max_wr=2)
        self.refused(EINVAL, "max_wr (4)", "srq_modify", name="srq0", srq_limit=5)
        self.refused(ENOENT, "srq9", "srq_modify", name="srq9", srq_limit=1)
        self.refused(32602, "max_wr", "srq_modify", name="srq0", max_wr=0)
        self.assertEqual((4, 2, 3), tuple(self.srq()[k] for k in ("max_wr", "srq_limit", "posted")))
        self.assertEqual(3, self.rpc("srq_modify", name="srq0", max_wr=3)["max_wr"])
        result = self.rpc("post_srq_recv", srq="srq0", wrs=[{"wr_id": 7, "sg_list": []}])
        self.assertEqual(12, result["refused"]["errno"])
        self.assertEqual(0, self.rpc("srq_modify", name="srq0", srq_limit=0)["srq_limit"])
        self.feed(self.peer.send_only(E, b"x"), self.peer.send_only(E + 1, b"x"))
        self.assertEqual([], self.srq_events())

    def test_modify_grows_with_what_is_posted(self):
        """SRQ-01 across a resize: nothing lost, nothing twice, in order."""
        self.shared(recv=0, srq={"max_wr": 4})
        psn = E
        for _ in range(3):             # the ring's indices are no multiples of its size
            self.post_srq(1)
            self.feed(self.peer.send_only(psn, b"x"))
            psn += 1
        self.post_srq(4)
        self.assertEqual([], self.feed(self.peer.send_first(psn, data(1024))))
        self.rpc("srq_modify", name="srq0", max_wr=16)
        self.rpc("srq_modify", name="srq0", max_wr=1000)
        self.post_srq(9)
        self.assertEqual(12, self.posted())
        self.expect(self.feed(self.peer.send_last(psn + 1, b"x")), Ack(psn + 1, 4))
        psn += 2
        for _ in range(12):
            self.feed(self.peer.send_only(psn, b"x"))
            psn += 1
        self.assertEqual([(i, "SUCCESS", QPN) for i in range(16)], self.done())
        self.assertEqual(0, self.posted())

    def test_domain_is_the_srqs(self):
        """lkeys of its WQEs are of the SRQ's PD, whatever the QP's is."""
        self.make("pd_create", name="pd1")
        undo = self.made.pop()
        self.shared(recv=1, pd="pd1")
        self.made.insert(0, undo)
        self.expect(self.feed(self.peer.send_only(E, b"hello")), Ack(E, 1))
        self.assertEqual(b"hello", self.slot(0, 5))
        self.post_srq(1, mr="mr0", offset=0)
        self.expect(self.feed(self.peer.send_only(E + 1, b"hello")), Nak(E + 1, NAK_ROE, 1))
        self.assertEqual(bytes(5), self.mem(0, 5))

    def test_AE_09_destroyed_with_an_event_waiting(self):
        self.shared(recv=1, srq={"srq_limit": 1})
        self.feed(self.peer.send_only(E, b"x"))
        self.clear()
        self.assertEqual([], self.rpc("async_events", max=64))


class Workers(SrqCase):
    """QPs of one SRQ on two workers, each with a port of its own."""

    FIXED = {"ip": "4", "workers": "1"}
    CONFIG = {"lcores": {"control": 0, "workers": [1, 2], "idle": "sleep"},
              "ports": [{"name": "p%d" % i, "device": "net_ring_stepped%d" % i,
                         "mac": "02:00:00:00:00:%02x" % (17 + i),
                         "ipv4": "192.0.2.%d" % (1 + 8 * i), "prefix": 24, "mtu": 4200}
                        for i in range(2)]}

    def test_SRQ_01_across_workers(self):
        self.shared(recv=8, srq={"srq_limit": 1}, each=[{"port": "p0"}, {"port": "p1"}])
        self.assertEqual([0, 1], [self.qp(n)["worker"] for n in (QPN, 0x12)])
        self.peers[1] = self.peers[1].with_(dst_ip="192.0.2.9", dst_mac="02:00:00:00:00:12")

        def turn(i):
            """A SEND for each, in one turn; what each answers."""
            for port, p in enumerate(self.peers):
                self.dut.rx(p.send_only(E + i, data(10 + i + 10 * port)), port)
            got = [[], []]
            for port, raw in self.dut.run():
                got[port].append(Frame(raw))
                check_frame(got[port][-1], self.peers[port])
            return got

        for i in range(4):
            for answers in turn(i):
                self.expect(answers, Ack(E + i, i + 1))
        done = self.done()
        self.assertEqual(list(range(8)), sorted(d[0] for d in done))
        self.assertEqual([4, 4], [sum(d[2] == n for d in done) for n in (QPN, 0x12)])
        self.assertEqual([("SRQ_LIMIT_REACHED", "srq0")], self.srq_events())
        for answers in turn(4):
            self.expect(answers, Rnr(E + 4, 12, 4))
        for number in (QPN, 0x12):
            self.rpc("qp_modify", qp_num=number, qp_state="ERR")
        self.assertEqual([("QP_LAST_WQE_REACHED", QPN), ("QP_LAST_WQE_REACHED", 0x12)],
                         self.srq_events())


if __name__ == "__main__":
    dut.main()
