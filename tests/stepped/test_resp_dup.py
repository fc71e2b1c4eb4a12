# SPDX-License-Identifier: BSD-3-Clause
"""RESP-DUP: requests that come twice."""
import dut
import roce
import variant
from dut import RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse
from roce import data


class Duplicates(dut.DutCase):

    def sends(self, n=4):
        """n SENDs done at E .. E+n-1."""
        self.expect(self.each(*[self.peer.send_only(E + i, data(10, i)) for i in range(n)]),
                    *[Ack(E + i, i + 1) for i in range(n)])
        self.assertEqual([(i, "SUCCESS") for i in range(n)], self.statuses())

    def alive(self, epsn, msn):
        """Still in RTS, nothing reported, and the next WRITE is taken."""
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        q = self.qp()
        self.assertEqual(("RTS", epsn), (q["qp_state"], q["epsn"]))
        self.expect(self.feed(self.peer.write_only(epsn, b"alive", VA + 60000, RKEY)),
                    Ack(epsn, msn + 1))

    def test_RESP_DUP_01_send(self):
        self.resp(recv=5)
        self.sends()
        self.expect(self.feed(self.peer.send_only(E + 1, b"different")), Ack(E + 3, 4))
        self.assertEqual(data(10, 1), self.slot(1, 10))
        self.assertEqual(1, self.delta("duplicate_request"))
        self.unchanged(epsn=E + 4, recv=1)

    def test_RESP_DUP_01_send_of_several_packets(self):
        self.resp()
        frames = self.peer.send(E, data(2500))
        self.expect(self.each(*frames), Ack(E + 2, 1))
        self.assertEqual(1, len(self.cqes()))
        got = self.each(*frames)
        self.assertTrue(got)
        for f in got:
            self.assertEqual((roce.ACK, E + 2, roce.SYN_ACK, 1), f.key()[:4])
        self.unchanged(epsn=E + 3, recv=3)

    def test_RESP_DUP_02_write(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.write_only(E, b"first", VA, RKEY),
                              *[p.send_only(E + i) for i in (1, 2, 3)]),
                    *[Ack(E + i, i + 1) for i in range(4)])
        self.cqes()
        self.expect(self.feed(p.write_only(E, b"other", VA, RKEY)), Ack(E + 3, 4))
        self.assertEqual(b"first", self.mem(0, 5))
        self.assertEqual(1, self.delta("duplicate_request"))
        self.alive(E + 4, 4)

    def test_RESP_DUP_03_read_is_executed_again(self):
        self.resp(mr_fill="pattern:1")
        p = self.peer
        self.expect(self.each(p.read_req(E, VA, RKEY, 2048), p.send_only(E + 2, b"x")),
                    ReadResponse(E, roce.pattern(1, 2048), 1), Ack(E + 2, 2))
        self.cqes()
        self.set_mem(0, data(2048, 99))
        self.expect(self.feed(p.read_req(E, VA, RKEY, 2048)), ReadResponse(E, data(2048, 99)))
        self.assertEqual(1, self.delta("duplicate_request"))
        self.alive(E + 3, 2)

    def test_RESP_13_RESP_DUP_03_an_older_read_goes_first(self):
        """What waits behind it is of no use to a peer that lost the older one."""
        self.resp(mr_fill="pattern:1")
        p = self.peer
        self.expect(self.feed(p.read_req(E, VA, RKEY, 1024)),
                    ReadResponse(E, roce.pattern(1, 1024), 1))
        got = self.feed(p.read_req(E + 1, VA, RKEY, 4096), p.read_req(E, VA, RKEY, 1024))
        self.expect(got, ReadResponse(E, roce.pattern(1, 1024)),
                    ReadResponse(E + 1, roce.pattern(1, 4096), 2))
        self.assertEqual([2, 2, 2], [f.msn for f in got if f.msn is not None])

    def interrupted(self, *repeated):
        """The first packets of 40 are out when the peer goes back. (Those, what follows.)"""
        self.resp(mr_fill="pattern:1", max_dest_rd_atomic=4)
        p = self.peer
        self.feed(p.read_req(E, VA, RKEY, 1024))
        self.dut.rx(p.read_req(E + 1, VA, RKEY, 40960))
        begun = [roce.Frame(bytes.fromhex(line.split()[2]))
                 for line in self.dut.command("turn 1")]
        self.assertTrue(0 < len(begun) < 40, begun)
        self.assertEqual([E + 1 + i for i in range(len(begun))], [f.psn for f in begun])
        return len(begun), self.feed(*repeated)

    def test_RESP_13_RESP_DUP_03_a_read_under_way_is_interrupted(self):
        p, long = self.peer, roce.pattern(1, 40960)
        n, got = self.interrupted(p.read_req(E, VA, RKEY, 1024))
        self.expect(got, ReadResponse(E, long[:1024]), ReadResponse(E + 1, long, 2)[n:])
        _, got = self.interrupted(p.read_req(E, VA, RKEY, 1024),
                                  p.read_req(E + 1, VA, RKEY, 40960))
        self.expect(got, ReadResponse(E, long[:1024]), ReadResponse(E + 1, long, 2))

    def test_RESP_13_RESP_DUP_06_an_older_atomic_goes_first(self):
        self.resp(mr_fill="pattern:1")
        p = self.peer
        self.expect(self.feed(p.fetch_add(E, VA, RKEY, 1)),
                    AtomicAck(E, int.from_bytes(roce.pattern(1, 8), "little"), 1))
        self.expect(self.feed(p.read_req(E + 1, VA + 4096, RKEY, 4096),
                              p.fetch_add(E, VA, RKEY, 1)),
                    AtomicAck(E, int.from_bytes(roce.pattern(1, 8), "little"), 2),
                    ReadResponse(E + 1, roce.pattern(1, 4096, 4096), 2))

    def test_RESP_DUP_04_part_of_a_read(self):
        self.resp(mr_fill="pattern:1")
        p = self.peer
        self.expect(self.feed(p.read_req(E, VA, RKEY, 3072)),
                    ReadResponse(E, roce.pattern(1, 3072), 1))
        self.expect(self.feed(p.read_req(E + 1, VA + 1024, RKEY, 2048)),
                    ReadResponse(E + 1, roce.pattern(1, 2048, 1024)))
        self.expect(self.feed(p.read_req(E + 2, VA + 2048, RKEY, 1024)),
                    ReadResponse(E + 2, roce.pattern(1, 1024, 2048)))
        self.silent()
        self.alive(E + 3, 1)

    def test_RESP_DUP_05_read_outside_the_original(self):
        self.resp()
        self.make("mr_register", name="mr1", pd="pd0", length=8192, addr="0x20000000",
                  rkey="0x7777", access=dut.ALL_REMOTE)
        p = self.peer
        self.expect(self.feed(p.read_req(E, VA + 4096, RKEY, 3072)),
                    ReadResponse(E, bytes(3072), 1))
        for frame in (p.read_req(E, VA + 4096, RKEY, 4096), p.read_req(E, VA + 4096, 0x7777, 3072),
                      p.read_req(E, VA + 4095, RKEY, 3072), p.read_req(E, VA, RKEY, 3072),
                      p.read_req(E + 1, VA + 4096 + 1024, RKEY, 2049)):
            self.silent(self.feed(frame))
        self.alive(E + 3, 1)

    def test_RESP_DUP_06_atomic_replays_the_saved_result(self):
        self.resp()
        p = self.peer
        self.set_mem(0, (5).to_bytes(8, "little"))
        self.expect(self.each(p.fetch_add(E, VA, RKEY, 3), p.fetch_add(E + 1, VA, RKEY, 1)),
                    AtomicAck(E, 5, 1), AtomicAck(E + 1, 8, 2))
        self.expect(self.feed(p.fetch_add(E, VA, RKEY, 3)), AtomicAck(E, 5))
        self.expect(self.feed(p.fetch_add(E + 1, VA, RKEY, 1)), AtomicAck(E + 1, 8))
        self.assertEqual(9, int.from_bytes(self.mem(0, 8), "little"))
        self.assertEqual(2, self.delta("duplicate_request"))
        self.alive(E + 2, 2)

    def test_RESP_DUP_07_unknown_atomic(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.fetch_add(E, VA, RKEY, 3), p.fetch_add(E + 1, VA, RKEY, 1),
                              p.send_only(E + 2, b"x")),
                    AtomicAck(E, 0, 1), AtomicAck(E + 1, 3, 2), Ack(E + 2, 3))
        self.cqes()
        self.silent(self.feed(p.fetch_add(E + 2, VA, RKEY, 1)))
        self.silent(self.feed(p.cmp_swap(E, VA, RKEY, 0, 1)))
        self.assertEqual(4, int.from_bytes(self.mem(0, 8), "little"))
        self.alive(E + 3, 3)

    def test_RESP_DUP_08_faults_in_duplicates_draw_no_nak(self):
        self.resp(recv=2)
        self.make("mr_register", name="mr1", pd="pd0", length=4096, addr="0x20000000",
                  rkey="0x7777", access=dut.ALL_REMOTE)
        p = self.peer
        self.expect(self.each(p.read_req(E, 0x20000000, 0x7777, 100), p.send_only(E + 1, b"x")),
                    ReadResponse(E, bytes(100), 1), Ack(E + 1, 2))
        self.cqes()
        self.rpc("mr_deregister", name="mr1")
        self.silent(self.feed(p.read_req(E, 0x20000000, 0x7777, 100)))
        for frame in (p.send_middle(E + 1, data(1024), ack=1), p.send_only(E + 1, data(1100)),
                      p.send_first(E + 1, data(10), ack=1),
                      p.write_only(E + 1, b"y", VA, RKEY ^ 1),
                      p.write_last(E + 1, b"z"), p.fetch_add(E + 1, VA + 1, RKEY, 1)):
            for f in self.feed(frame):
                self.assertFalse(f.is_nak, f)
        self.alive(E + 2, 2)

    def test_RESP_DUP_09_never_touches_the_state(self):
        """No receive WQE, a SEND half received: duplicates change nothing."""
        self.resp(recv=3)
        p = self.peer
        self.expect(self.each(p.send_only(E, b"s"), p.write_only_imm(E + 1, b"w", VA, RKEY),
                              p.read_req(E + 2, VA, RKEY, 4), p.fetch_add(E + 3, VA + 8, RKEY, 1)),
                    Ack(E, 1), Ack(E + 1, 2), ReadResponse(E + 2, b"w\0\0\0", 3),
                    AtomicAck(E + 3, 0, 4))
        self.assertEqual(2, len(self.cqes()))
        first, middle, last = p.send(E + 4, data(2500))
        self.assertEqual([], self.feed(first))
        for _ in range(2):
            self.expect(self.feed(p.send_only(E, b"S")), Ack(E + 4, 4))
            self.expect(self.feed(p.write_only_imm(E + 1, b"W", VA, RKEY)), Ack(E + 4, 4))
            self.expect(self.feed(p.read_req(E + 2, VA, RKEY, 4)),
                        ReadResponse(E + 2, b"w\0\0\0"))
            self.expect(self.feed(p.fetch_add(E + 3, VA + 8, RKEY, 1)), AtomicAck(E + 3, 0))
        self.assertEqual([], self.cqes())
        self.assertEqual(b"w", self.mem(0, 1))
        self.expect(self.each(middle, last), Ack(E + 6, 5))
        self.assertEqual([(2, "SUCCESS")], self.statuses())
        self.assertEqual(data(2500), self.slot(2, 2500))
        self.assertEqual(0, self.delta("send_rnr_err"))

    def test_RESP_DUP_10_ack_does_not_run_ahead(self):
        self.resp(mr_fill="pattern:2")
        p = self.peer
        self.expect(self.feed(p.send_only(E, b"x")), Ack(E, 1))
        got = self.feed(p.read_req(E + 1, VA, RKEY, 65536), p.send_only(E, b"x"))
        acks = [i for i, f in enumerate(got) if f.opcode == roce.ACK]
        self.assertTrue(acks, got)
        for i in acks:
            if got[i].psn > E:
                self.assertEqual(64, i, "ACK before the READ's last response")
        self.expect([f for f in got if f.opcode != roce.ACK],
                    ReadResponse(E + 1, roce.pattern(2, 65536), 2))

    def test_RESP_DUP_11_depth_of_saved_results(self):
        self.resp(recv=8)
        p = self.peer
        self.expect(self.each(*[p.fetch_add(E + i, VA, RKEY, 1 << i) for i in range(4)]),
                    *[AtomicAck(E + i, (1 << i) - 1, i + 1) for i in range(4)])
        self.feed(*[p.send_only(E + 4 + i, b"x") for i in range(4)])
        for i in (3, 0, 2, 1):
            self.expect(self.feed(p.fetch_add(E + i, VA, RKEY, 1 << i)),
                        AtomicAck(E + i, (1 << i) - 1))
        self.assertEqual(15, int.from_bytes(self.mem(0, 8), "little"))
        # more than that many: the last four are still exact
        self.expect(self.each(*[p.fetch_add(E + 8 + i, VA + 8, RKEY, 1) for i in range(6)]),
                    *[AtomicAck(E + 8 + i, i, 9 + i) for i in range(6)])
        for i in (2, 3, 4, 5):
            self.expect(self.feed(p.fetch_add(E + 8 + i, VA + 8, RKEY, 1)), AtomicAck(E + 8 + i, i))
        for f in self.feed(p.fetch_add(E + 8, VA + 8, RKEY, 1)):
            self.assertEqual((E + 8, 0), (f.psn, f.original))
        self.assertEqual(6, int.from_bytes(self.mem(8, 8), "little"))

    def test_RESP_DUP_06_max_dest_rd_atomic_changes_in_sqd(self):
        """Fewer, more or none at a time: the peer may still repeat what it asked for before."""
        for now in (1, 2, 3, 0, 16):
            with self.subTest(now=now):
                self.resp(mr_fill="zero")
                p = self.peer
                asked = [p.fetch_add(E, VA, RKEY, 5), p.read_req(E + 1, VA, RKEY, 8),
                         p.fetch_add(E + 2, VA, RKEY, 7), p.read_req(E + 3, VA + 8, RKEY, 8)]
                want = [AtomicAck(E, 0), ReadResponse(E + 1, b"\x05" + bytes(7)),
                        AtomicAck(E + 2, 5), ReadResponse(E + 3, bytes(8))]
                self.expect(self.each(*asked), *want)
                self.rpc("qp_modify", qp_num=dut.QPN, qp_state="SQD")
                if variant.qps() > 1 and now > 4:
                    with self.assertRaisesRegex(dut.RpcError, "was created for"):
                        self.rpc("qp_modify", qp_num=dut.QPN, max_dest_rd_atomic=now)
                    continue
                self.rpc("qp_modify", qp_num=dut.QPN, max_dest_rd_atomic=now)
                want[1] = ReadResponse(E + 1, b"\x0c" + bytes(7))      # RESP-DUP-03
                self.expect(self.each(*asked), *want)
                self.rpc("qp_modify", qp_num=dut.QPN, qp_state="RTS")
                self.expect(self.each(*asked), *want)
                self.assertEqual(12, int.from_bytes(self.mem(0, 8), "little"))
                self.assertEqual(("RTS", E + 4), (self.state(), self.qp()["epsn"]))

    def test_RESP_DUP_12_delayed_first_copy(self):
        self.resp()
        p = self.peer
        ghost = p.send_only(E, b"same")
        self.expect(self.each(ghost, p.send_only(E + 1, b"next")), Ack(E, 1), Ack(E + 1, 2))
        self.expect(self.feed(ghost, ns=300 * dut.MS), Ack(E + 1, 2))
        self.assertEqual([(0, "SUCCESS"), (1, "SUCCESS")], self.statuses())

    def test_RESP_DUP_13_duplicates_without_ackreq(self):
        self.resp()
        self.sends()
        p = self.peer
        for f in self.feed(p.send_only(E, b"x", ack=0)):
            self.assertTrue(Ack(E + 3, 4).matches(f), f)
        got = self.feed(*[p.send_only(E + i % 4, b"x") for i in range(100)])
        self.assertTrue(1 <= len(got) <= 100)
        for f in got:
            self.assertTrue(Ack(E + 3, 4).matches(f), f)
        self.alive(E + 4, 4)

    def test_RESP_DUP_01_nak_latch_is_not_touched(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E), p.send_only(E + 5), p.send_only(E),
                              p.send_only(E + 6)),
                    Ack(E, 1), Nak(E + 1, roce.NAK_SEQ, 1), Ack(E, 1))


if __name__ == "__main__":
    dut.main()
