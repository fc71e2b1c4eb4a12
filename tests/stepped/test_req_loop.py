# SPDX-License-Identifier: BSD-3-Clause
"""Both sides inside: requesters on one port, responders on the other, crossed; and send_feed."""
import random
import zlib

import dut
import roce
from dut import MS
from dut_loop import ANSWER, ASK, LEN, LoopCase
from dut_req import S, ReqCase
from roce import pattern


class Loop(LoopCase):

    def test_every_operation(self):
        self.pair()
        self.rpc("post_recv", qp_num=ANSWER, wrs=[
            {"wr_id": i, "sg_list": [{"mr": "answerer", "offset": 900000 + 10000 * i,
                                      "length": 10000}]} for i in range(3)])
        self.post(self.wr("RDMA_WRITE", 100000, 7, 3), self.wr("SEND", 5000, 1000),
                  self.wr("RDMA_READ", 70000, 200000, 500000),
                  self.wr("RDMA_WRITE_WITH_IMM", 10, 0, 150000, imm_data=7),
                  self.wr("ATOMIC_FETCH_AND_ADD", 8, 400000, 600000, compare_add=5),
                  self.wr("SEND_WITH_IMM", 10, 0, imm_data=9))
        self.settle()
        self.assertEqual([(i, "SUCCESS") for i in range(6)],
                         [(c["wr_id"], c["status"]) for c in self.done()])
        one, two = pattern(1, LEN), pattern(2, LEN)
        self.assertEqual(one[7:100007], self.mem(3, 100000, "answerer"))
        self.assertEqual(one[1000:6000], self.mem(900000, 5000, "answerer"))
        self.assertEqual(two[500000:570000], self.mem(200000, 70000, "asker"))
        before = int.from_bytes(two[600000:600008], "little")
        self.assertEqual(before.to_bytes(8, "little"), self.mem(400000, 8, "asker"))
        self.assertEqual((before + 5) % 2**64,
                         int.from_bytes(self.mem(600000, 8, "answerer"), "little"))
        self.assertEqual([("RECV", None, 5000), ("RECV_RDMA_WITH_IMM", 7, 10), ("RECV", 9, 10)],
                         [(c["opcode"], c["imm_data"], c["byte_len"]) for c in self.done("rcq")])

    def test_fill_and_crc_of_a_region(self):
        """mr_fill gives the documented pattern from the region's byte 0 on; mr_crc is zlib's."""
        self.rpc("mr_fill", name="asker", offset=1000, length=5000, seed=77)
        want = pattern(1, 1000) + pattern(77, 5000, 1000) + pattern(1, LEN - 6000, 6000)
        self.assertEqual(want[:8192], self.mem(0, 8192, "asker"))
        for at, n in ((0, LEN), (999, 5002), (LEN - 1, 1), (LEN, 0)):
            self.assertEqual(zlib.crc32(want[at:at + n]), self.rpc(
                "mr_crc", name="asker", offset=at, length=n)["crc32"])
        for method, more in (("mr_fill", {"seed": 1}), ("mr_crc", {})):
            for at, n in ((0, LEN + 1), (LEN + 1, 0), (hex(2**64 - 1), 2), (0, (16 << 20) + 1)):
                with self.assertRaises(dut.RpcError):
                    self.rpc(method, name="asker", offset=at, length=n, **more)

    def test_both_ways_at_once(self):
        self.pair()
        self.post(*[self.wr("RDMA_WRITE", 3000, 3000 * i, 3000 * i) for i in range(100)])
        back = []
        for i in range(100):
            back.append({"wr_id": 1000 + i, "opcode": "RDMA_WRITE", "rkey": "0x101",
                         "remote_addr": hex((0x101 << 32) + 500000 + 3000 * i),
                         "sg_list": [{"mr": "answerer", "offset": 500000 + 3000 * i,
                                      "length": 3000}]})
        self.post(*back, qp_num=ANSWER)
        self.settle()
        self.assertEqual(200, len(self.done()))
        self.assertEqual(pattern(1, 300000), self.mem(0, 300000, "answerer"))
        self.assertEqual(pattern(2, 300000, 500000), self.mem(500000, 300000, "asker"))

    def lossy(self, every, path_mtu):
        """One frame in `every` is lost, in both directions: all arrives, once."""
        self.pair(path_mtu=path_mtu)
        rng = random.Random(every)
        self.lose(every)
        expected = bytearray(pattern(2, LEN))
        asker = bytearray(pattern(1, LEN))
        counter = 0
        self.rpc("mr_write", name="answerer", offset=LEN - 8, data=bytes(8).hex())
        expected[LEN - 8:] = bytes(8)
        for _ in range(6):
            wrs = []
            for _ in range(40):
                kind, n = rng.randrange(3), rng.randrange(1, 20000)
                a, b = rng.randrange(400000), rng.randrange(400000)
                if kind == 0:
                    wrs.append(self.wr("RDMA_WRITE", n, a, b))
                    expected[b:b + n] = asker[a:a + n]
                elif kind == 1:
                    wrs.append(self.wr("RDMA_READ", n, 500000 + a, 500000 + b))
                    asker[500000 + a:500000 + a + n] = expected[500000 + b:500000 + b + n]
                else:
                    wrs.append(self.wr("ATOMIC_FETCH_AND_ADD", 8, LEN - 8, LEN - 8, compare_add=1))
                    asker[LEN - 8:] = counter.to_bytes(8, "little")
                    counter += 1
            self.post(*wrs)
            for _ in range(200):
                self.settle(ms=5)
                if self.qp(ASK)["outstanding"] == 0:
                    break
        expected[LEN - 8:] = counter.to_bytes(8, "little")
        done = self.done()
        self.assertEqual([(i, "SUCCESS") for i in range(240)],
                         [(c["wr_id"], c["status"]) for c in done])
        self.assertEqual(bytes(expected), self.mem(0, LEN, "answerer"))
        self.assertEqual(bytes(asker), self.mem(0, LEN, "asker"))
        self.assertGreater(self.delta("req_resent_pkts"), 0)
        self.lose(0)

    def test_CQ_04_loss(self):
        """Also REQ-08, REQ-14: the order and the content survive."""
        self.lossy(23, 1024)

    def test_CQ_04_loss_of_small_packets(self):
        self.lossy(101, 256)

    def test_rnr_and_retry(self):
        """The receiver posts late: RNR NAKs, waits, then all of it arrives."""
        self.pair(answer={"min_rnr_timer": 12})
        self.post(*[self.wr("SEND", 100, 100 * i) for i in range(4)])
        self.settle(ms=3)
        self.assertGreater(self.delta("rnr_nak_retry_err"), 0)
        self.rpc("post_recv", qp_num=ANSWER, wrs=[
            {"wr_id": i, "sg_list": [{"mr": "answerer", "offset": 1000 * i, "length": 1000}]}
            for i in range(4)])
        self.settle(ms=3)
        self.assertEqual(["SUCCESS"] * 4, [c["status"] for c in self.done()])
        self.assertEqual([(i, 100) for i in range(4)],
                         [(c["wr_id"], c["byte_len"]) for c in self.done("rcq")])

    # -- send_feed --

    def test_feed_counts(self):
        """`count` requests, no completions for a host, goodput counted."""
        self.pair(ask={"send_feed": {"opcode": "RDMA_WRITE", "size": 3000, "depth": 8, "count": 500,
                                     "rkey": "0x202", "remote_addr": hex(0x202 << 32)}})
        self.settle(ms=5)
        self.assertEqual({"posted": 500, "completed": 500}, self.qp(ASK)["feed"])
        self.assertEqual([], self.done())
        c = self.dut.rpc("stats", scope="qp", qp_num=ASK)
        c = c.get("counters", c)
        self.assertEqual((500, 1500000), (c["req_messages"], c["req_message_bytes"]))
        self.assertEqual(pattern(0, 3000), self.mem(0, 3000, "answerer"))
        with self.assertRaises(AssertionError):
            self.post(self.wr("SEND", 1))

    def test_feed_of_every_kind(self):
        for opcode in ("SEND", "SEND_WITH_IMM", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "RDMA_READ",
                       "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"):
            feed = {"opcode": opcode, "depth": 4, "count": 50, "rkey": "0x202",
                    "remote_addr": hex(0x202 << 32)}
            if not opcode.startswith("ATOMIC"):
                feed["size"] = 2000
            self.pair(ask={"send_feed": feed}, answer={"recv_feed": {"buffers": 8, "size": 4096}})
            self.settle(ms=5)
            self.assertEqual(50, self.qp(ASK)["feed"]["completed"], opcode)
            for qp_num in (ANSWER, ASK):
                self.made.remove(("qp_destroy", {"qp_num": qp_num}))
                self.rpc("qp_destroy", qp_num=qp_num)
        self.assertEqual([], self.done())

    def test_feeds_of_a_template(self):
        """count: N steps remote_addr by the stride."""
        for side in (1, 0):      # who asks comes last: it rests while nobody is there
            feed = {"opcode": "RDMA_WRITE", "size": 100, "count": 10, "rkey": "0x202",
                    "remote_addr": hex(0x202 << 32), "stride": 1000}
            self.make("qp_create", **self.qp_params(
                qp_num=0x50 + 0x10 * side, dest_qp_num=0x60 - 0x10 * side, count=8,
                port="p%d" % side, send_cq="scq", recv_cq="rcq", rq_psn=1, sq_psn=1,
                ah_attr={"dest_ip": "192.0.2.%d" % (2 - side), "hop_limit": 64},
                send_feed=feed if side == 0 else None))
        for q in [("qp_destroy", {"qp_num": b + i}) for b in (0x50, 0x60) for i in range(1, 8)]:
            self.made.append(q)
        self.settle(ms=5)
        for i in range(8):
            self.assertEqual(10, self.qp(0x50 + i)["feed"]["completed"])
            self.assertEqual(pattern(0, 100), self.mem(1000 * i, 100, "answerer"))
            self.assertEqual(pattern(2, 900, 1000 * i + 100),
                             self.mem(1000 * i + 100, 900, "answerer"))

    def test_feed_waits_for_its_peer(self):
        """No peer yet: it rests and tries again instead of failing."""
        self.make("qp_create", **self.qp_params(
            qp_num=ASK, dest_qp_num=ANSWER, send_cq="scq", recv_cq="rcq", rq_psn=1, sq_psn=1,
            ah_attr={"dest_ip": "192.0.2.2", "hop_limit": 64}, timeout=10, retry_cnt=1,
            send_feed={"opcode": "RDMA_WRITE", "size": 64, "count": 1000, "rkey": "0x202",
                       "remote_addr": hex(0x202 << 32)}))
        self.settle(ms=500)
        self.assertEqual("RTS", self.state_of(ASK))
        self.make("qp_create", **self.qp_params(
            qp_num=ANSWER, dest_qp_num=ASK, port="p1", send_cq="scq", recv_cq="rcq", rq_psn=1,
            sq_psn=1, ah_attr={"dest_ip": "192.0.2.1", "hop_limit": 64}))
        self.settle(ms=2100)
        self.assertEqual({"posted": 1000, "completed": 1000}, self.qp(ASK)["feed"])

    def test_feed_that_fails_goes_to_err(self):
        self.pair(ask={"send_feed": {"opcode": "RDMA_WRITE", "size": 64, "rkey": "0x999",
                                     "remote_addr": "0x1000"}})
        self.settle(ms=5)
        self.assertEqual("ERR", self.state_of(ASK))
        self.assertEqual("REQ-NAK-06", self.qp(ASK)["fatal"]["rule"])
        self.assertEqual([], self.done())
        self.assertIn("send_feed stopped", self.dut.stderr())

    def state_of(self, qp_num):
        return self.qp(qp_num)["qp_state"]


class Unresolved(ReqCase):
    """The neighbour is asked for; work waits for it."""

    def test_sends_wait_for_the_neighbour(self):
        self.req(timeout=0, ah_attr={"dest_ip": "192.0.2.9", "hop_limit": 64})
        self.post_raw(self.wr("SEND", 10))
        for _ in range(5):
            for _, raw in self.dut.run(1000 * MS):
                self.assertEqual(b"\x08\x06", raw[12:14])       # ARP requests only
        self.assertEqual(None, self.qp()["timers"]["transport_us"])
        self.assertEqual([(roce.SEND_ONLY, S, "02:00:00:00:00:09")], self.tell("020000000009", 9))

    def seen(self):
        """(opcode, PSN, to which MAC) of what leaves, but for questions after the neighbour."""
        frames = [raw for _, raw in self.dut.run()]
        return [(f.opcode, f.psn, f.dst_mac) for f in map(roce.Frame, (
            raw for raw in frames if raw[12:14] != b"\x08\x06" and raw[20] != 58))]

    def tell(self, mac, last):
        """The neighbour 192.0.2.`last` answers."""
        mac = bytes.fromhex(mac)
        self.dut.rx(bytes.fromhex("020000000011") + mac + b"\x08\x06" +
                    bytes.fromhex("0001080006040002") + mac + bytes([192, 0, 2, last]) +
                    bytes.fromhex("020000000011") + bytes([192, 0, 2, 1]) + bytes(18))
        return self.seen()

    def unresolved(self, ip="192.0.2.13", **qp):
        self.req(recv=4, ah_attr={"dest_ip": ip, "hop_limit": 64, **qp})
        self.peer = self.peer.with_(src_ip=ip, src_mac="02:00:00:00:00:09", vlan=qp.get("vlan"),
                                    dst_ip="2001:db8::1" if ":" in ip else "192.0.2.1")

    def send(self, psn, **kw):
        self.dut.rx(self.peer.send_only(psn, b"x", **kw))
        return self.seen()

    def test_answers_go_where_the_request_came_from(self):
        """A peer that knows us before we know it is not answered by silence, and a timeout."""
        for how in ({}, {"vlan": 7}, {"ip": "2001:db8::9"}, {"ip": "2001:db8::9", "vlan": 7}):
            with self.subTest(how):
                self.unresolved(**how)
                self.assertEqual([(roce.ACK, dut.E, "02:00:00:00:00:09")], self.send(dut.E))
                self.assertEqual([(roce.ACK, dut.E + 1, "02:00:00:00:00:09")],
                                 self.send(dut.E + 1, src_mac="02:00:00:00:00:0a"), "the first one")
                self.assertEqual(0, self.delta("tx_no_neighbor"))

    def test_requests_that_waited_go_there_too(self):
        self.unresolved("192.0.2.11")
        self.post_raw(self.wr("SEND", 10))
        self.assertEqual([], self.seen())
        self.assertEqual({(roce.ACK, dut.E, "02:00:00:00:00:09"),
                          (roce.SEND_ONLY, S, "02:00:00:00:00:09")}, set(self.send(dut.E)))

    def test_the_neighbours_own_answer_counts_more(self):
        self.unresolved("192.0.2.10")
        self.assertEqual([(roce.ACK, dut.E, "02:00:00:00:00:0a")],
                         self.send(dut.E, src_mac="02:00:00:00:00:0a"))
        self.assertEqual([], self.tell("020000000009", 10))
        self.assertEqual([(roce.ACK, dut.E + 1, "02:00:00:00:00:09")],
                         self.send(dut.E + 1, src_mac="02:00:00:00:00:0a"))

    def test_who_is_not_believed(self):
        """Another address, another key, a broken packet; and MACs that cannot be anybody's."""
        self.unresolved("192.0.2.12")
        broken = roce.flip(self.peer.send_only(dut.E, b"x"), 8 * 60)
        for frame in (self.peer.send_only(dut.E, b"x", src_ip="192.0.2.8"),
                      self.peer.send_only(dut.E, b"x", pkey=0x8001), broken,
                      self.peer.with_(vlan=9).send_only(dut.E, b"x")):
            self.dut.rx(frame)
            self.assertEqual([], self.seen())
        self.assertEqual(0, self.delta("tx_no_neighbor"))
        for e, mac in enumerate(("ff:ff:ff:ff:ff:ff", "01:00:5e:00:00:09", "00:00:00:00:00:00")):
            self.assertEqual([], self.send(dut.E + e, src_mac=mac))
            self.assertEqual(e + 1, self.delta("tx_no_neighbor"))
        self.assertEqual([(roce.ACK, dut.E + 3, "02:00:00:00:00:09")], self.send(dut.E + 3))

    def test_who_proves_nothing_is_not_followed(self):
        """A CNP has no PSN that counts; a PSN that is not expected shows no knowledge of the QP."""
        self.unresolved("192.0.2.14")
        forged = self.peer.with_(src_mac="02:00:00:00:00:66")
        self.dut.rx(forged.cnp())
        for psn in (dut.E + 1, dut.E - 1, dut.E + 1000, dut.E + (1 << 23)):
            self.dut.rx(forged.send_only(psn & 0xffffff, b"x"))
        for psn in (S, S - 1, S + 1):
            self.dut.rx(forged.acknowledge(psn & 0xffffff))
        self.seen()
        self.assertEqual([(roce.ACK, dut.E, "02:00:00:00:00:09")], self.send(dut.E))


if __name__ == "__main__":
    dut.main()
