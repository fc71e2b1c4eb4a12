# SPDX-License-Identifier: BSD-3-Clause
"""RESP: the responder when nothing is wrong."""
import dut
import roce
from dut import QPN, RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse
from roce import data


class Responder(dut.DutCase):

    def cqe(self, got, **want):
        self.assertEqual({k: got.get(k) for k in want}, want)

    def test_RESP_01_send_only(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, data(100))), Ack(E, 1))
        done = self.cqes()
        self.assertEqual(1, len(done))
        self.cqe(done[0], wr_id=0, status="SUCCESS", opcode="RECV", byte_len=100, qp_num=QPN)
        self.assertEqual(data(100), self.slot(0, 100))
        self.assertEqual(E + 1, self.qp()["epsn"])

    def test_RESP_02_send_across_sges(self):
        self.resp(recv=0)
        self.set_mem(0, b"\xee" * 6000, "rbuf")
        self.post_recv_sges([{"mr": "rbuf", "offset": 0, "length": 1000},
                             {"mr": "rbuf", "offset": 1500, "length": 3},
                             {"mr": "rbuf", "offset": 2000, "length": 2000}])
        self.expect(self.each(self.peer.send(E, data(2058))), Ack(E + 2, 1))
        done = self.cqes()
        self.assertEqual(1, len(done))
        self.cqe(done[0], status="SUCCESS", byte_len=2058)
        want = data(2058)
        self.assertEqual(want[:1000], self.mem(0, 1000, "rbuf"))
        self.assertEqual(b"\xee" * 500 + want[1000:1003] + b"\xee" * 497,
                         self.mem(1000, 1000, "rbuf"))
        self.assertEqual(want[1003:] + b"\xee" * 100, self.mem(2000, 1155, "rbuf"))

    def test_RESP_03_immediate_of_sends(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only_imm(E, b"abc", 0x11223344),
                              p.send_first(E + 1, data(1024)),
                              p.send_last_imm(E + 2, data(7), 0x55667788)),
                    Ack(E, 1), Ack(E + 2, 2))
        done = self.cqes()
        self.cqe(done[0], opcode="RECV", byte_len=3, imm_data=0x11223344, wc_flags=["WITH_IMM"])
        self.cqe(done[1], opcode="RECV", byte_len=1031, imm_data=0x55667788, wc_flags=["WITH_IMM"])

    def test_RESP_03_immediate_of_writes(self):
        self.resp()
        p = self.peer
        self.set_mem(0, b"\xee" * 64, "rbuf")
        self.expect(self.each(p.write_only_imm(E, data(20), VA, RKEY, imm=0x11223344),
                              p.write_first(E + 1, data(1024), VA + 100, RKEY, 1100),
                              p.write_last_imm(E + 2, data(76, 2), 0x99AABBCC)),
                    Ack(E, 1), Ack(E + 2, 2))
        done = self.cqes()
        self.cqe(done[0], opcode="RECV_RDMA_WITH_IMM", byte_len=20, imm_data=0x11223344,
                 wc_flags=["WITH_IMM"], status="SUCCESS", wr_id=0)
        self.cqe(done[1], opcode="RECV_RDMA_WITH_IMM", byte_len=1100, imm_data=0x99AABBCC)
        self.assertEqual(b"\xee" * 64, self.slot(0, 64))
        self.assertEqual(data(20), self.mem(0, 20))
        self.assertEqual(data(1024) + data(76, 2), self.mem(100, 1100))

    def test_RESP_04_send_with_invalidate(self):
        self.resp()
        self.make("mr_register", name="mrx", pd="pd0", length=4096, addr="0x20000000",
                  rkey="0x7777", access=dut.ALL_REMOTE, remote_invalidate=True)
        p = self.peer
        self.expect(self.feed(p.write_only(E, b"before", 0x20000000, 0x7777)), Ack(E, 1))
        self.expect(self.feed(p.send_only_inv(E + 1, data(10), 0x7777)), Ack(E + 1, 2))
        done = self.cqes()
        self.assertEqual(1, len(done))
        self.cqe(done[0], status="SUCCESS", byte_len=10, wc_flags=["WITH_INV"])
        self.assertEqual(0x7777, int(str(done[0]["invalidated_rkey"]), 0))
        self.expect(self.feed(p.write_only(E + 2, b"after", 0x20000000, 0x7777)),
                    Nak(E + 2, roce.NAK_RAE, 2))
        self.assertEqual(b"before", self.mem(0, 6, "mrx"))

    def test_RESP_05_write(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.write_only(E, data(64), VA + 8, RKEY),
                              p.write(E + 1, data(2500, 9), VA + 1001, RKEY)),
                    Ack(E, 1), Ack(E + 3, 2))
        self.assertEqual(data(64), self.mem(8, 64))
        self.assertEqual(bytes(100) + data(2500, 9) + bytes(100), self.mem(901, 2700))
        self.assertEqual(2, self.delta("rx_write_requests"))
        self.unchanged(epsn=E + 4)

    def test_RESP_05_write_at_the_edges_of_the_region(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.write_only(E, b"first", VA, RKEY),
                              p.write_only(E + 1, b"last!", VA + 65536 - 5, RKEY),
                              p.write(E + 2, data(65536), VA, RKEY)),
                    Ack(E, 1), Ack(E + 1, 2), Ack(E + 65, 3))
        self.assertEqual(data(65536), self.mem(0, 65536))

    def test_RESP_06_read(self):
        self.resp(mr_fill="pattern:5")
        got = self.feed(self.peer.read_req(E, VA + 3, RKEY, 2500))
        self.expect(got, ReadResponse(E, roce.pattern(5, 2500, 3), 1))
        self.assertEqual([1024, 1024, 452], [len(f.payload) for f in got])
        self.assertEqual(E + 3, self.qp()["epsn"])
        self.expect(self.feed(self.peer.read_req(E + 3, VA, RKEY, 1024)),
                    ReadResponse(E + 3, roce.pattern(5, 1024), 2))
        self.assertEqual(2, self.delta("rx_read_requests"))
        self.unchanged(epsn=E + 4)

    def test_RESP_07_atomics(self):
        self.resp()
        p = self.peer

        def value():
            return int.from_bytes(self.mem(16, 8), "little")

        self.set_mem(16, (5).to_bytes(8, "little"))
        self.expect(self.feed(p.fetch_add(E, VA + 16, RKEY, 3)), AtomicAck(E, 5, 1))
        self.assertEqual(8, value())
        self.expect(self.feed(p.cmp_swap(E + 1, VA + 16, RKEY, 8, 9)), AtomicAck(E + 1, 8, 2))
        self.assertEqual(9, value())
        self.expect(self.feed(p.cmp_swap(E + 2, VA + 16, RKEY, 1, 2)), AtomicAck(E + 2, 9, 3))
        self.assertEqual(9, value())
        self.set_mem(16, (2**64 - 1).to_bytes(8, "little"))
        self.expect(self.feed(p.fetch_add(E + 3, VA + 16, RKEY, 3)), AtomicAck(E + 3, 2**64 - 1, 4))
        self.assertEqual(2, value())
        self.assertEqual(4, self.delta("rx_atomic_requests"))
        self.unchanged(epsn=E + 4)

    def test_RESP_08_zero_length(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E), p.write_only(E + 1, b"", 0xDEAD0000, 0xBAD),
                              p.read_req(E + 2, 0xDEAD0000, 0xBAD, 0)),
                    Ack(E, 1), Ack(E + 1, 2), ReadResponse(E + 2, b"", 3))
        done = self.cqes()
        self.assertEqual(1, len(done))
        self.cqe(done[0], status="SUCCESS", byte_len=0)
        self.assertEqual(E + 3, self.qp()["epsn"])

    def test_RESP_08_zero_length_write_with_immediate(self):
        self.resp()
        self.expect(self.feed(self.peer.write_only_imm(E, b"", 0, 0xBAD)), Ack(E, 1))
        self.cqe(self.cqes()[0], opcode="RECV_RDMA_WITH_IMM", byte_len=0, status="SUCCESS")

    def test_RESP_09_ackreq_is_honoured_at_once(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x", ack=1)), Ack(E, 1))
        self.expect(self.feed(self.peer.write_first(E + 1, data(1024), VA, RKEY, 3000, ack=1)),
                    Ack(E + 1, 1))

    def test_RESP_10_coalescing_bounds(self):
        self.resp(recv=8)
        got = self.feed(*[self.peer.send_only(E + i, b"x") for i in range(8)])
        self.assertTrue(1 <= len(got) <= 8, got)
        psns = [f.psn for f in got]
        self.assertEqual(sorted(psns), psns)
        self.assertTrue(Ack(E + 7, 8).matches(got[-1]), got)
        for f in got:
            self.assertEqual((roce.SYN_ACK, f.psn - E + 1), (f.syndrome, f.msn))
        self.assertEqual([(i, "SUCCESS") for i in range(8)], self.statuses())

    def test_RESP_11_no_ackreq(self):
        self.resp()
        got = self.feed(self.peer.send_only(E, b"x", ack=0))
        self.assertTrue(not got or Ack(E, 1).matches(got[0]), got)
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.expect(self.feed(self.peer.send_only(E + 1, b"y")), Ack(E + 1, 2))

    def test_RESP_12_msn(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_only(E, b"s"), p.write_only(E + 1, b"w", VA, RKEY),
                              p.read_req(E + 2, VA, RKEY, 2000), p.fetch_add(E + 4, VA, RKEY, 1),
                              p.send(E + 5, data(2100))),
                    Ack(E, 1), Ack(E + 1, 2), ReadResponse(E + 2, b"w" + bytes(1999), 3),
                    AtomicAck(E + 4, ord("w"), 4), Ack(E + 7, 5))

    def test_RESP_12_partial_messages_do_not_count(self):
        self.resp()
        p = self.peer
        self.expect(self.each(p.send_first(E, data(1024), ack=1),
                              p.send_middle(E + 1, data(1024), ack=1),
                              p.send_last(E + 2, b"end")),
                    Ack(E, 0), Ack(E + 1, 0), Ack(E + 2, 1))

    def test_RESP_12_msn_starts_again_after_reset(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTR", rq_psn=0x700)
        self.post_recv()
        self.expect(self.feed(self.peer.send_only(0x700, b"x")), Ack(0x700, 1))

    def test_RESP_13_order_of_responses(self):
        self.resp(mr_fill="pattern:6")
        p = self.peer
        got = self.feed(p.read_req(E, VA, RKEY, 65536), p.send_only(E + 64, b"x"))
        self.expect(got, ReadResponse(E, roce.pattern(6, 65536), 1), Ack(E + 64, 2))

    def test_RESP_13_several_reads_in_a_row(self):
        self.resp(mr_fill="pattern:6")
        p = self.peer
        got = self.feed(p.read_req(E, VA, RKEY, 5000), p.fetch_add(E + 5, VA + 65528, RKEY, 0),
                        p.read_req(E + 6, VA + 9, RKEY, 3000),
                        p.write_only(E + 9, b"z", VA + 60000, RKEY),
                        p.send_only(E + 10, b"x"))
        old = int.from_bytes(roce.pattern(6, 8, 65528), "little")
        head = [w for w in ReadResponse(E, roce.pattern(6, 5000), None)] + [AtomicAck(E + 5,
                                                                                      old)] + \
            ReadResponse(E + 6, roce.pattern(6, 3000, 9), None)
        for want, f in zip(head, got):
            self.assertTrue(want.matches(f), (want, f))
        rest = got[len(head):]
        self.assertTrue(rest and Ack(E + 10, 5).matches(rest[-1]), rest)
        self.assertTrue(all(f.opcode == roce.ACK for f in rest))

    def test_RESP_14_write_is_there_before_the_send_completes(self):
        self.resp()
        p = self.peer
        self.feed(p.write(E, data(3000), VA, RKEY, ack=0), p.send_only(E + 3, b"go"))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.assertEqual(data(3000), self.mem(0, 3000))

    def test_RESP_15_no_timer_inside_a_message(self):
        self.resp()
        first, middle, last = self.peer.send(E, data(2500))
        self.silent(self.feed(first), ms=5000)
        self.silent(self.feed(middle), ms=5000)
        self.expect(self.feed(last), Ack(E + 2, 1))
        self.assertEqual(data(2500), self.slot(0, 2500))
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_RESP_16_responder_works_in_rtr(self):
        self.resp(qp_state="RTR", sq_psn=None, timeout=None, retry_cnt=None, rnr_retry=None,
                  max_rd_atomic=None)
        p = self.peer
        self.expect(self.each(p.send_only(E, b"s"), p.write_only(E + 1, b"w", VA, RKEY),
                              p.read_req(E + 2, VA, RKEY, 1)),
                    Ack(E, 1), Ack(E + 1, 2), ReadResponse(E + 2, b"w", 3))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.assertEqual("RTR", self.state())
        events = self.rpc("async_events", max=16)
        self.assertEqual([("COMM_EST", QPN)], [(e["event_type"], e["qp_num"]) for e in events])

    def test_RESP_17_receive_queue_goes_round(self):
        """A freed WQE is usable at once; the queue never needs a restart."""
        self.resp(recv=4)
        for i in range(60):
            self.expect(self.feed(self.peer.send_only(E + i, data(30, i))), Ack(E + i, i + 1))
            self.assertEqual([(i, "SUCCESS")], self.statuses())
            self.assertEqual(data(30, i), self.slot(i, 30))
            self.post_recv()

    def test_RESP_18_atomics_of_several_qps_on_one_word(self):
        """Four QPs, one target, retransmissions between: every original value exactly once."""
        self.resp()
        for qpn in range(0x12, 0x15):
            self.make("qp_create", **self.qp_params(qp_num=qpn))
        seen, n = [], 100
        for i in range(n):
            frames = []
            for qpn in range(0x11, 0x15):
                frame = self.peer.with_(qpn=qpn).fetch_add(E + i, VA, RKEY, 1)
                frames += [frame, frame] if i % 5 == qpn % 5 else [frame]
            first = {}
            for f in self.feed(*frames):
                self.assertEqual((roce.ATOMIC_ACK, E + i), (f.opcode, f.psn))
                first.setdefault(f.original, 0)
                first[f.original] += 1
            seen += first
        self.assertEqual(list(range(4 * n)), sorted(seen))
        self.assertEqual(4 * n, int.from_bytes(self.mem(0, 8), "little"))


if __name__ == "__main__":
    dut.main()
