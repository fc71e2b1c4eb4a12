# SPDX-License-Identifier: BSD-3-Clause
"""Memory windows: bound, used, invalidated by either side, removed."""
import dut
import roce
from dut import E, QPN, Ack, Nak, ReadResponse
from dut_mw import BKEY, BVA, QPN2, RAE, MwCase, byte_on
from dut_req import RVA, S, Sent
from jsonrpc import RpcError

FOUR = 4096


class Windows(MwCase):

    def refused(self, errno, method, **params):
        with self.assertRaises(RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(-32000 - errno, caught.exception.code)
        return str(caught.exception)

    def test_MW_01_allocation(self):
        self.mw()
        self.make("pd_create", name="pdw")
        for kind in (1, 2):
            key = self.alloc("w%d" % kind, type=kind, pd="pdw")
            w = self.window("w%d" % kind)
            self.assertEqual((kind, "pdw", key, False),
                             (w["type"], w["pd"], int(w["rkey"], 0), w["bound"]))
        self.assertIn("MWs", self.refused(16, "pd_dealloc", name="pdw"))
        for kind in (1, 2):
            self.rpc("mw_dealloc", name="w%d" % kind)
        self.assertEqual([], self.rpc("mw_list"))
        self.refused(2, "mw_dealloc", name="w1")
        self.rpc("pd_dealloc", name="pdw")
        type(self).made = [m for m in self.made if m[1].get("name") not in ("pdw", "w1", "w2")]

    def test_MW_01_unbound_key(self):
        for kind in (1, 2):
            self.mw()
            self.denied(self.write(BVA, self.alloc(type=kind)))

    def test_MW_01_name_is_picked(self):
        self.mw()
        a, b = (self.rpc("mw_alloc", pd="pd0", type=1) for _ in range(2))
        self.assertNotEqual(a["name"], b["name"])
        self.assertNotEqual(a["rkey"], b["rkey"])
        for w in (a, b):
            self.rpc("mw_dealloc", name=w["name"])

    def test_MW_02_type_1_bind(self):
        self.mw()
        first = self.alloc()
        key = self.bind()
        self.assertEqual((first >> 8, True), (key >> 8, key != first))
        w = self.window()
        self.assertEqual((True, "base", BVA, FOUR, ["REMOTE_WRITE", "REMOTE_READ"]),
                         (w["bound"], w["mr"], int(w["addr"], 0), w["length"],
                          sorted(w["mw_access_flags"], reverse=True)))
        self.wrote(key)
        self.wrote(key, at=FOUR - 7)
        self.expect(self.feed(self.peer.read_req(self.epsn, BVA, key, FOUR)),
                    ReadResponse(self.epsn, self.mem(0, FOUR, "base")))
        self.epsn += 4
        self.denied(self.write(BVA + FOUR - 6, key))

    def test_MW_02_one_byte_below(self):
        self.mw()
        self.alloc()
        key = self.bind(at=FOUR)
        self.wrote(key, at=FOUR)
        self.denied(self.write(BVA + FOUR - 1, key))

    def test_MW_02_large_messages(self):
        """Each packet of a WRITE asks for the key again."""
        self.mw()
        self.alloc()
        key = self.bind(length=8 * 1024)
        payload = roce.pattern(3, 5000)
        got = self.feed(self.peer.write(self.epsn, payload, BVA + 100, key))
        self.assertEqual((roce.ACK, self.epsn + 4), got[-1].key()[:2])
        self.assertEqual(payload, self.mem(100, 5000, "base"))

    def test_MW_03_type_2_bind(self):
        self.mw()
        key = self.alloc(type=2)
        new = byte_on(key, 0x55)
        self.assertEqual(new, self.bind(rkey=new))
        self.wrote(new)
        self.denied(self.write(BVA, key))

    def test_MW_03_wrong_keys(self):
        self.mw()
        key = self.alloc(type=2)
        self.bind_failed(self.bind_wr(rkey=byte_on(key) ^ 0x100), self.wr("SEND", 8))
        self.bind_failed(self.bind_wr(rkey=key))
        self.assertEqual((key, False), (self.rkey(), self.window()["bound"]))
        self.wrote(self.bind(rkey=byte_on(key)))

    def test_MW_05_rights_of_the_window(self):
        self.mw()
        self.alloc()
        key = self.bind(access=["REMOTE_WRITE"])
        self.wrote(key)
        self.denied(self.feed(self.peer.read_req(self.epsn, BVA, key, 8)))
        self.denied(self.feed(self.peer.fetch_add(self.epsn, BVA, key, 1)))
        self.denied(self.write(BVA, BKEY))
        self.wrote(key)

    def test_MW_05_atomic(self):
        self.mw()
        self.alloc()
        key = self.bind(access=["REMOTE_ATOMIC"])
        got = self.feed(self.peer.fetch_add(self.epsn, BVA + 8, key, 5))
        self.expect(got, dut.AtomicAck(self.epsn, 0))
        self.epsn += 1
        self.denied(self.write(BVA, key))

    def test_MW_06_bind_again(self):
        self.mw()
        self.alloc()
        old = self.bind()
        new = self.bind(at=8192)
        self.assertNotEqual(old, new)
        self.wrote(new, at=8192)
        self.denied(self.write(BVA, old))
        self.denied(self.write(BVA, new))
        self.wrote(new, at=8192 + 100)

    def test_MW_06_unbind(self):
        self.mw()
        self.alloc()
        old = self.bind()
        last = self.bind(length=0, mr=None)
        self.assertFalse(self.window()["bound"])
        for key in (old, last, byte_on(last)):
            self.denied(self.write(BVA, key))
        self.rpc("mr_deregister", name="base")

    def test_MW_07_invalidated_by_the_peer(self):
        self.mw(recv=4)
        key = self.bound2()
        self.wrote(key)
        self.accepted(self.feed(self.peer.send_only_inv(self.epsn, b"done", key)))
        c, = self.cqes("rcq")
        self.assertEqual(("SUCCESS", ["WITH_INV"], key),
                         (c["status"], c["wc_flags"], int(str(c["invalidated_rkey"]), 0)))
        self.assertFalse(self.window()["bound"])
        self.denied(self.write(BVA, key))
        self.post_recv(4)
        self.wrote(self.bind(rkey=byte_on(key)), payload=b"again")

    def test_MW_07_type_1_is_not_the_peers(self):
        """RESP-CLS-J-01."""
        self.mw(recv=4)
        self.alloc()
        key = self.bind()
        self.silent(self.feed(self.peer.send_only_inv(self.epsn, b"done", key)))
        self.assertEqual("REM_INV_REQ_ERR", self.cqes("rcq")[0]["status"])
        self.again()
        self.wrote(key)

    def test_MW_08_local_invalidate(self):
        self.mw()
        key = self.bound2()
        wr = self.inv_wr(key)
        self.assertEqual([], self.post(wr))
        c, = self.cqes()
        self.assertEqual((wr["wr_id"], "SUCCESS", "LOCAL_INV"),
                         (c["wr_id"], c["status"], c["opcode"]))
        self.denied(self.write(BVA, key))
        self.bind_failed(self.inv_wr(key), status="LOC_PROT_ERR")
        self.wrote(self.bind(rkey=byte_on(key)))

    def test_MW_08_not_to_be_invalidated(self):
        self.mw()
        self.alloc()
        for key in (self.bind(), BKEY, 0x12345678):
            self.bind_failed(self.inv_wr(key), self.wr("SEND", 8), status="LOC_PROT_ERR")
        self.wrote(self.rkey())

    def test_MW_09_type_2_belongs_to_its_queue_pair(self):
        self.mw(recv=4)
        other = self.second()
        key = self.bound2()
        self.expect(self.feed_of(other, other.write_only(E, b"no", BVA, key)), Nak(E, RAE))
        self.wrote(key)

    def test_MW_09_invalidate_through_another(self):
        self.mw(recv=4)
        other = self.second()
        self.post_recv(2, qp_num=QPN2)
        key = self.bound2()
        self.assertEqual([], self.feed_of(other, other.send_only_inv(E, b"no", key)))
        self.assertEqual("ERR", self.qp(QPN2)["qp_state"])
        self.assertEqual("REM_INV_REQ_ERR", self.cqes("rcq")[0]["status"])
        self.wrote(key)

    def test_MW_09_local_invalidate_through_another(self):
        self.mw()
        self.second()
        key = self.bound2()
        self.post(self.inv_wr(key), qp_num=QPN2)
        self.assertEqual("LOC_PROT_ERR", self.cqes()[0]["status"])
        self.wrote(key)

    def test_MW_09_type_1_is_everybodys(self):
        self.mw()
        other = self.second()
        self.alloc()
        key = self.bind()
        self.expect(self.feed_of(other, other.write_only(E, b"yes", BVA, key)), Ack(E))
        self.assertEqual(b"yes", self.mem(0, 3, "base"))
        key = self.bind(at=64, qp_num=QPN2)
        self.wrote(key, at=64)

    def feed_of(self, peer, *frames):
        mine, self.peer = self.peer, peer
        try:
            return self.feed(*frames)
        finally:
            self.peer = mine

    def test_MW_09_the_queue_pair_goes(self):
        """What was bound through it is not the next one's with its number."""
        self.mw()
        self.second()
        key = byte_on(self.alloc(type=2))
        self.post(self.bind_wr(rkey=key), qp_num=QPN2)
        self.assertEqual("SUCCESS", self.cqes()[0]["status"])
        self.rpc("qp_destroy", qp_num=QPN2)
        self.made.remove(("qp_destroy", {"qp_num": QPN2}))
        self.assertFalse(self.window()["bound"])
        other = self.second()
        self.expect(self.feed_of(other, other.write_only(E, b"no", BVA, key)), Nak(E, RAE))
        self.rpc("mr_deregister", name="base")

    def test_MW_10_region_with_windows(self):
        for kind in (1, 2):
            self.mw()
            key = byte_on(self.alloc(type=kind))
            key = self.bind(rkey=key if kind == 2 else None)
            self.assertIn("window", self.refused(16, "mr_deregister", name="base"))
            self.wrote(key)
            self.rpc("mw_dealloc", name="w")
            self.denied(self.write(BVA, key))
            self.rpc("mr_deregister", name="base")

    def test_MW_10_an_unbound_window_holds_nothing(self):
        for take in (lambda k: self.post(self.inv_wr(k)),
                     lambda k: self.feed(self.peer.send_only_inv(E, b"", k))):
            self.mw(recv=1)
            take(self.bound2())
            self.rpc("mr_deregister", name="base")

    def test_MW_01_saved(self):
        self.mw()
        self.alloc("a")
        self.alloc("b", type=2)
        self.bind("a")
        self.assertEqual([{"name": "a", "pd": "pd0", "type": 1},
                          {"name": "b", "pd": "pd0", "type": 2}], self.rpc("save_config")["mws"])

    def test_MW_10_two_windows(self):
        self.mw()
        self.alloc("a")
        self.alloc("b")
        self.bind("a")
        self.bind("b")
        self.assertIn("2 ", self.refused(16, "mr_deregister", name="base"))
        self.rpc("mw_dealloc", name="a")
        self.refused(16, "mr_deregister", name="base")
        self.rpc("mw_dealloc", name="b")
        self.rpc("mr_deregister", name="base")

    def test_MW_11_zero_based(self):
        self.mw()
        key = self.bound2(at=8192, access=["REMOTE_WRITE", "ZERO_BASED"])
        self.wrote(key, at=8192, va=0)
        self.wrote(key, at=8192 + 100, va=100)
        self.wrote(key, at=8192 + FOUR - 7, va=FOUR - 7)
        self.denied(self.write(FOUR - 6, key))
        self.denied(self.write(BVA + 8192, key))

    def test_MW_10_zero_based_region(self):
        """Registered, not bound: its first byte is address 0, for both kinds of keys."""
        self.mw()
        key = 0x5005
        self.make("mr_register", name="zero", pd="pd0", length=FOUR, rkey=hex(key),
                  access=["LOCAL_WRITE", "REMOTE_WRITE", "REMOTE_READ", "ZERO_BASED"])
        data = roce.data(16)
        for at in (0, 100, FOUR - 16):
            self.feed(self.peer.write_only(self.epsn, data, at, key))
            self.assertEqual(data, self.mem(at, 16, "zero"))
            self.expect(self.feed(self.peer.read_req(self.epsn + 1, at, key, 16)),
                        ReadResponse(self.epsn + 1, data))
            self.epsn += 2
        got = self.post(self.wr("SEND", sg_list=[
            {"lkey": hex(key), "addr": "0x64", "length": 16}]))
        self.assertEqual(data, got[0].payload)
        self.feed(self.peer.acknowledge(S, msn=1))
        zero = [m for m in self.rpc("mr_list") if m["name"] == "zero"][0]
        self.assertEqual(0, int(zero["addr"], 0))
        with self.assertRaises(RpcError) as caught:
            self.rpc("mr_register", name="z2", pd="pd0", length=FOUR, addr="0x1000",
                     access=["ZERO_BASED"])
        self.assertIn("ZERO_BASED", str(caught.exception))
        self.expect(self.feed(self.peer.write_only(self.epsn, data, FOUR - 15, key)),
                    Nak(self.epsn, RAE))
        self.assertIn("zero (0x0 plus 4096 bytes)", str(self.rpc("qp_explain", qp_num=QPN)))

    def test_MW_11_not_with_type_1(self):
        self.mw()
        self.alloc()
        self.bind_failed(self.bind_wr(access=["REMOTE_WRITE", "ZERO_BASED"]))

    def test_MW_12_order(self):
        """What is behind the bind starts when it is done; completions in posting order."""
        self.mw()
        key = byte_on(self.alloc(type=2))
        got = self.post(self.wr("RDMA_READ", 8), self.bind_wr(rkey=key), self.wr("SEND", 8))
        self.expect(got[:1], Sent(roce.READ_REQ, S))
        done = self.window()["bound"]
        self.assertEqual(done, len(got) == 2)
        got += self.feed(self.read_answer(S, roce.data(8)))
        self.expect(got[1:], Sent(roce.SEND_ONLY, S + 1))
        self.ack(S + 1)
        self.assertEqual(["RDMA_READ", "BIND_MW", "SEND"], [c["opcode"] for c in self.cqes()])
        self.wrote(key)

    def test_MW_12_fence(self):
        self.mw()
        key = self.bound2()
        got = self.post(self.wr("RDMA_READ", 8),
                        self.inv_wr(key, send_flags=["SIGNALED", "FENCE"]), self.wr("SEND", 8))
        self.expect(got, Sent(roce.READ_REQ, S))
        self.wrote(key)
        self.expect(self.feed(self.read_answer(S, roce.data(8))), Sent(roce.SEND_ONLY, S + 1))
        self.assertFalse(self.window()["bound"])
        self.ack(S + 1)
        self.assertEqual(["RDMA_READ", "LOCAL_INV", "SEND"], [c["opcode"] for c in self.cqes()])

    def test_MW_12_behind_unsignaled_work(self):
        """Nobody was asked for an ACK of what is before it: it is asked for."""
        self.mw(sq_sig_all=False)
        key = byte_on(self.alloc(type=2))
        got = self.post(self.wr("SEND", 8), self.wr("SEND", 8),
                        self.bind_wr(rkey=key, send_flags=["SIGNALED"]))
        self.assertEqual(1, got[-1].ackreq)
        self.ack(S + 1)
        self.assertEqual([(102, "SUCCESS")], self.statuses())
        self.wrote(key)

    def test_MW_12_lost_before_a_bind(self):
        """What is resent comes before; the bind happens once."""
        self.mw()
        self.alloc()
        self.post(self.wr("SEND", 8), self.bind_wr(), self.wr("SEND", 8))
        took, got = self.until_sent(200 * dut.MS)
        self.expect(got, Sent(roce.SEND_ONLY, S))
        self.assertFalse(self.window()["bound"])
        first = self.rkey()
        self.expect(self.ack(S), Sent(roce.SEND_ONLY, S + 1))
        self.assertEqual(byte_on(first), self.rkey())
        self.ack(S + 1)
        self.succeeded(self.ids(3))

    def test_many_binds(self):
        """Every low byte, and as many requests as the queue takes; only local work, no packet."""
        self.mw()
        first = self.alloc()
        for i in range(20):
            self.assertEqual([], self.post(*[self.bind_wr() for _ in range(16)]))
            self.assertEqual(["SUCCESS"] * 16, [c["status"] for c in self.cqes()])
            self.assertEqual(byte_on(first, 16 * (i + 1)), self.rkey())
        self.wrote(self.rkey())
        self.assertEqual(S, self.qp()["next_psn"])

    def test_QP_09_drained(self):
        """In SQD it waits."""
        self.mw()
        self.alloc()
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD", en_sqd_async_notify=True)
        self.dut.run()
        self.assertEqual([("SQ_DRAINED", QPN)], self.event_types())
        self.post(self.bind_wr())
        self.assertFalse(self.window()["bound"])
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.dut.run()
        self.assertTrue(self.window()["bound"])

    def test_a_read_that_is_being_answered(self):
        """RESP-NAK-03: the window goes under it."""
        self.mw()
        self.alloc()
        key = self.bind(length=65536)
        self.dut.rx(self.peer.read_req(self.epsn, BVA, key, 65536))
        self.rpc("mw_dealloc", name="w")
        got = self.feed()
        self.assertTrue(got[-1].is_nak or len(got) == 64, got[-1])

    def test_a_window_has_no_lkey(self):
        self.mw()
        self.alloc()
        key = self.bind(access=["REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"])
        for wr in (self.wr("SEND"), self.wr("RDMA_READ"), self.wr("RDMA_WRITE")):
            wr["sg_list"] = [{"lkey": hex(key), "addr": hex(BVA), "length": 8}]
            self.assertEqual([], self.post(wr))
            self.assertEqual(["LOC_PROT_ERR"], [c["status"] for c in self.cqes()])
            self.again()


if __name__ == "__main__":
    dut.main()
