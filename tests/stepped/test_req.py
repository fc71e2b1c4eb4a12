# SPDX-License-Identifier: BSD-3-Clause
"""REQ: the requester when nothing is wrong."""
import dut
import roce
from dut import MS
from dut_req import LKEY, LVA, RRKEY, RVA, S, ReqCase, Sent
from roce import pattern


class Requester(ReqCase):

    def test_REQ_01_segmentation(self):
        self.req()
        data = pattern(9, 2500)
        got = self.post(self.wr("SEND", 2500), self.wr("RDMA_WRITE", 2500))
        self.expect(got, Sent(roce.SEND_FIRST, S, data[:1024], ackreq=0),
                    Sent(roce.SEND_MIDDLE, S + 1, data[1024:2048], ackreq=0),
                    Sent(roce.SEND_LAST, S + 2, data[2048:], ackreq=1),
                    Sent(roce.WRITE_FIRST, S + 3, data[:1024], va=RVA, rkey=RRKEY, length=2500),
                    Sent(roce.WRITE_MIDDLE, S + 4, data[1024:2048], va=None),
                    Sent(roce.WRITE_LAST, S + 5, data[2048:], va=None, ackreq=1))
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.ack(S + 5, 2))
        self.succeeded(self.ids(2))
        self.well()

    def test_REQ_01_every_path_mtu(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            self.req(path_mtu=mtu)
            n = -(-10000 // mtu)
            got = self.post(self.wr("RDMA_WRITE", 10000))
            self.assertEqual([S + i for i in range(n)], self.psns(got))
            self.assertEqual(pattern(9, 10000), b"".join(f.payload for f in got))
            self.ack(S + n - 1, 1)
            self.succeeded(self.ids(1))

    def test_REQ_01_ipv6(self):
        self.req(v6=True)
        self.expect(self.sends(1, 1500), Sent(roce.SEND_FIRST, S), Sent(roce.SEND_LAST, S + 1))
        self.ack(S + 1, 1)
        self.succeeded(self.ids(1))

    def test_REQ_02_opcodes_of_one_packet(self):
        """Also CQ-08: the completions' opcodes."""
        self.req(max_rd_atomic=4)
        imm = dict(imm_data=0x11223344)
        got = self.post(
            self.wr("SEND", 10), self.wr("SEND_WITH_IMM", 10, **imm),
            self.wr("SEND_WITH_INV", 10, invalidate_rkey="0x55667788"), self.wr("RDMA_WRITE", 10),
            self.wr("RDMA_WRITE_WITH_IMM", 10, **imm), self.wr("RDMA_READ", 10),
            self.wr("ATOMIC_CMP_AND_SWP", 8, compare_add=7, swap=9),
            self.wr("ATOMIC_FETCH_AND_ADD", 8, compare_add=11))
        data = pattern(9, 10)
        self.expect(
            got, Sent(roce.SEND_ONLY, S, data, ackreq=1, imm=None, inv=None, va=None),
            Sent(roce.SEND_ONLY_IMM, S + 1, data, imm=0x11223344),
            Sent(roce.SEND_ONLY_INV, S + 2, data, inv=0x55667788),
            Sent(roce.WRITE_ONLY, S + 3, data, va=RVA, rkey=RRKEY, length=10),
            Sent(roce.WRITE_ONLY_IMM, S + 4, data, va=RVA, rkey=RRKEY, length=10, imm=0x11223344),
            Sent(roce.READ_REQ, S + 5, b"", va=RVA, rkey=RRKEY, length=10),
            Sent(roce.CMP_SWAP, S + 6, b"", va=RVA, rkey=RRKEY, swap_add=9, compare=7),
            Sent(roce.FETCH_ADD, S + 7, b"", va=RVA, rkey=RRKEY, swap_add=11, compare=0))
        self.ack(S + 4)
        self.feed(self.read_answer(S + 5, b"0123456789"), self.atomic_ack(S + 6, 1),
                  self.atomic_ack(S + 7, 2))
        done = self.cqes()
        self.assertEqual(["SEND", "SEND", "SEND", "RDMA_WRITE", "RDMA_WRITE", "RDMA_READ",
                          "COMP_SWAP", "FETCH_ADD"], [c["opcode"] for c in done])
        self.assertEqual(["SUCCESS"] * 8, [c["status"] for c in done])
        self.assertEqual(self.ids(8), [c["wr_id"] for c in done])

    def test_REQ_02_immediate_and_key_of_long_messages_stand_in_the_last_packet(self):
        self.req()
        got = self.post(self.wr("SEND_WITH_IMM", 2000, imm_data=0x01020304),
                        self.wr("RDMA_WRITE_WITH_IMM", 2000, imm_data=0x05060708),
                        self.wr("SEND_WITH_INV", 2000, invalidate_rkey=0x0A0B0C0D))
        self.expect(got, Sent(roce.SEND_FIRST, S), Sent(roce.SEND_LAST_IMM, S + 1, imm=0x01020304),
                    Sent(roce.WRITE_FIRST, S + 2, va=RVA, length=2000),
                    Sent(roce.WRITE_LAST_IMM, S + 3, imm=0x05060708),
                    Sent(roce.SEND_FIRST, S + 4), Sent(roce.SEND_LAST_INV, S + 5, inv=0x0A0B0C0D))

    def test_REQ_02_no_payload(self):
        self.req()
        got = self.post(self.wr("SEND"), self.wr("RDMA_WRITE", 0), self.wr("RDMA_READ", 0))
        self.expect(got, Sent(roce.SEND_ONLY, S, b""), Sent(roce.WRITE_ONLY, S + 1, b"", length=0),
                    Sent(roce.READ_REQ, S + 2, b"", length=0))
        self.feed(self.peer.acknowledge(S + 1), self.read_answer(S + 2, b""))
        self.succeeded(self.ids(3))

    def test_REQ_02_sges_and_inline(self):
        self.req()
        data = pattern(9, 65536)
        sges = [{"mr": "lmr", "offset": 100, "length": 700},
                {"mr": "lmr", "offset": 5, "length": 0},
                {"lkey": LKEY, "addr": hex(LVA + 30000), "length": 900},
                {"mr": "lmr", "offset": 65535, "length": 1}]
        got = self.post(self.wr("SEND", sg_list=sges), self.wr("SEND", inline=b"few bytes".hex()),
                        self.wr("RDMA_WRITE", 40, offset=7, send_flags=["INLINE"]))
        want = data[100:800] + data[30000:30900] + data[65535:]
        self.expect(got, Sent(roce.SEND_FIRST, S, want[:1024]),
                    Sent(roce.SEND_LAST, S + 1, want[1024:]),
                    Sent(roce.SEND_ONLY, S + 2, b"few bytes"),
                    Sent(roce.WRITE_ONLY, S + 3, data[7:47], length=40))
        # Inline bytes were taken when posted; the rest is read again (REQ-14).
        self.set_mem(0, bytes(1024), "lmr")
        got = self.nak(S, roce.NAK_SEQ)
        want = bytes(700) + want[700:]
        self.expect(got, Sent(roce.SEND_FIRST, S, want[:1024]), Sent(roce.SEND_LAST, S + 1),
                    Sent(roce.SEND_ONLY, S + 2, b"few bytes"),
                    Sent(roce.WRITE_ONLY, S + 3, data[7:47]))

    def test_REQ_03_completion_on_acknowledgement(self):
        self.req()
        self.assertEqual(3, len(self.sends(1, 2500)))
        self.ack(S + 1)
        self.assertEqual([], self.cqes())
        self.ack(S + 2, 1)
        self.succeeded(self.ids(1))

    def test_REQ_04_coalesced_ack(self):
        self.req()
        self.assertEqual([S, S + 1, S + 2], self.psns(self.sends(3)))
        self.assertEqual([], self.ack(S + 2, 3))
        self.succeeded(self.ids(3))
        self.no_more()

    def test_REQ_05_read(self):
        self.req()
        data = pattern(3, 2048)
        self.expect(self.post(self.wr("RDMA_READ", 2048, offset=512)),
                    Sent(roce.READ_REQ, S, b"", va=RVA, length=2048))
        self.feed(self.read_resp(roce.READ_FIRST, S, data[:1024]))
        self.assertEqual([], self.cqes())
        self.feed(self.read_resp(roce.READ_LAST, S + 1, data[1024:]))
        done = self.cqes()
        self.assertEqual([("SUCCESS", "RDMA_READ", 2048)],
                         [(c["status"], c["opcode"], c["byte_len"]) for c in done])
        want = bytearray(pattern(9, 65536))
        want[512:2560] = data
        self.assertEqual(bytes(want), self.local(0, 65536))
        self.assertEqual(S + 2, self.qp()["next_psn"])

    def test_REQ_05_read_across_sges(self):
        self.req()
        data = pattern(3, 3000)
        sges = [{"mr": "lmr", "offset": 0, "length": 1000},
                {"mr": "lmr", "offset": 2000, "length": 1},
                {"mr": "lmr", "offset": 4000, "length": 1999}]
        self.post(self.wr("RDMA_READ", sg_list=sges))
        self.feed(self.read_answer(S, data))
        self.succeeded(self.ids(1))
        self.assertEqual(data, self.local(0, 1000) + self.local(2000, 1) + self.local(4000, 1999))
        self.assertEqual(pattern(9, 100, 2001), self.local(2001, 100))

    def test_REQ_06_atomic(self):
        self.req()
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8, offset=24, compare_add=1))
        self.feed(self.atomic_ack(S, 0x0102030405060708))
        done = self.cqes()
        self.assertEqual([("SUCCESS", "FETCH_ADD", 8)],
                         [(c["status"], c["opcode"], c["byte_len"]) for c in done])
        self.assertEqual((0x0102030405060708).to_bytes(8, "little"), self.local(24, 8))

    def test_REQ_07_ackreq(self):
        """The last packet of each message, and one in 16 of a long one."""
        self.req(knobs={"cc.algo": "none"})
        got = self.sends(1, 64 * 1024)
        asks = [i for i, f in enumerate(got) if f.ackreq]
        self.assertEqual([15, 31, 47, 63], asks)
        self.assertEqual(64, len(got))

    def test_REQ_07_read_and_atomic(self):
        """One packet is the whole message."""
        self.req()
        got = self.post(self.wr("RDMA_READ", 3000), self.wr("ATOMIC_CMP_AND_SWP", 8),
                        self.wr("ATOMIC_FETCH_AND_ADD", 8))
        self.assertEqual([1, 1, 1], [f.ackreq for f in got])

    def test_REQ_07_interval_and_unsignalled(self):
        self.req(knobs={"req.ackreq_interval": 3}, sq_sig_all=False)
        got = self.sends(7, 10)
        self.assertEqual([0, 0, 1, 0, 0, 1, 1], [f.ackreq for f in got])

    def test_REQ_08_completions_in_posting_order(self):
        self.req()
        got = self.post(self.wr("RDMA_WRITE", 10), self.wr("RDMA_READ", 1000), self.wr("SEND", 5))
        self.assertEqual([S, S + 1, S + 2], self.psns(got))
        self.ack(S)
        self.feed(self.read_answer(S + 1, bytes(1000)))
        self.ack(S + 2)
        self.succeeded(self.ids(3))

    def test_REQ_09_unsignalled(self):
        self.req(sq_sig_all=False, cap={"max_send_wr": 4, "max_recv_wr": 1, "max_send_sge": 1,
                                        "max_recv_sge": 1})
        flags = [[], [], [], ["SIGNALED"]]
        self.post(*[self.wr("SEND", 10, send_flags=f) for f in flags])
        self.refused(self.post_raw(self.wr("SEND", 10)), "full", "max_send_wr")
        self.ack(S + 3)
        self.succeeded([103])
        self.assertEqual(4, len(self.sends(4)))          # the four slots are free again
        self.nak(S + 5, roce.NAK_INV)
        # 105 was acknowledged in silence, 106 is at fault, signalled or not.
        self.ended("REM_INV_REQ_ERR", 106, flushed=[107, 108])

    def test_REQ_10_read_limit(self):
        self.req(max_rd_atomic=2)
        got = self.post(*[self.wr("RDMA_READ", 2000) for _ in range(4)])
        self.assertEqual([S, S + 2], self.psns(got))
        self.assertEqual([], self.feed())
        self.expect(self.feed(self.read_answer(S, bytes(2000))), Sent(roce.READ_REQ, S + 4))
        self.expect(self.feed(self.read_answer(S + 2, bytes(2000))), Sent(roce.READ_REQ, S + 6))
        self.feed(self.read_answer(S + 4, bytes(2000)), self.read_answer(S + 6, bytes(2000)))
        self.succeeded(self.ids(4))

    def test_REQ_10_no_reads_at_all(self):
        self.req(max_rd_atomic=0)
        self.refused(self.post_raw(self.wr("RDMA_READ", 8)), "max_rd_atomic")
        self.refused(self.post_raw(self.wr("ATOMIC_FETCH_AND_ADD", 8)), "max_rd_atomic")
        self.assertEqual([], self.feed())
        self.well()

    def test_REQ_11_fence(self):
        self.req()
        got = self.post(self.wr("RDMA_READ", 100), self.wr("SEND", 10, send_flags=["FENCE"]),
                        self.wr("SEND", 10))
        self.assertEqual([S], self.psns(got))
        got = self.feed(self.read_answer(S, bytes(100)))
        self.assertEqual([S + 1, S + 2], self.psns(got))

    def test_REQ_12_order(self):
        self.req(max_rd_atomic=16)
        lengths = [("SEND", 2500, 3), ("RDMA_READ", 5000, 5), ("RDMA_WRITE", 1, 1),
                   ("ATOMIC_FETCH_AND_ADD", 8, 1), ("SEND", 1024, 1), ("RDMA_READ", 1024, 1),
                   ("RDMA_WRITE", 4097, 5)]
        got = self.post(*[self.wr(o, n) for o, n, _ in lengths])
        want, psn = [], S
        for opcode, _, n in lengths:
            want += [psn] if opcode == "RDMA_READ" else range(psn, psn + n)
            psn += n
        self.assertEqual(want, self.psns(got))
        self.assertEqual(psn, self.qp()["next_psn"])

    def test_REQ_12_psn_wraps(self):
        self.req(sq_psn=0xFFFFFE)
        self.assertEqual([0xFFFFFE, 0xFFFFFF, 0, 1], self.psns(self.sends(4)))
        self.ack(0xFFFFFF)
        self.ack(1)
        self.succeeded(self.ids(4))

    def test_REQ_14_resend_is_identical(self):
        self.req()
        first = self.post(self.wr("SEND", 2100), self.wr("RDMA_WRITE_WITH_IMM", 1500, imm_data=5),
                          self.wr("ATOMIC_CMP_AND_SWP", 8, compare_add=1, swap=2))
        took, again = self.until_sent(300 * MS)
        self.assertEqual(len(first), len(again))
        for a, b in zip(first, again):
            self.assertEqual((a.opcode, a.psn, a.payload, a.va, a.rkey, a.length, a.imm, a.se,
                              a.swap_add, a.compare, a.pad, a.mig),
                             (b.opcode, b.psn, b.payload, b.va, b.rkey, b.length, b.imm, b.se,
                              b.swap_add, b.compare, b.pad, b.mig))
            self.assertLessEqual(a.ackreq, b.ackreq)
        self.assertEqual(len(first), self.delta("req_resent_pkts"))

    def test_REQ_15_outside_the_range(self):
        self.req()
        self.sends(4)
        for psn in (S - 5, S + 4, S + 2**23):
            self.assertEqual([], self.ack(psn))
        self.assertEqual([], self.feed(self.read_resp(roce.READ_ONLY, S - 3, b"data")))
        self.assertEqual([], self.cqes())
        self.assertEqual(4, self.delta("rx_responses_unmatched"))
        q = self.qp()
        self.assertEqual((S - 1, 3, 4),
                         (q["last_acked_psn"], q["retry_cnt_left"], q["outstanding"]))
        self.ack(S + 3)
        self.succeeded(self.ids(4))
        self.well()

    def test_REQ_16_duplicate_responses(self):
        self.req()
        self.post(self.wr("RDMA_READ", 100), self.wr("ATOMIC_FETCH_AND_ADD", 8, offset=200))
        self.feed(self.read_answer(S, b"\x11" * 100), self.atomic_ack(S + 1, 5))
        self.succeeded(self.ids(2))
        before = self.local(0, 300)
        self.feed(self.read_answer(S, b"\x22" * 100), self.atomic_ack(S + 1, 6))
        self.assertEqual(before, self.local(0, 300))
        self.assertEqual([], self.cqes())
        self.well()

    def test_REQ_17_ack_above_the_resent_psn(self):
        self.req()
        self.sends(4)
        _, again = self.until_sent(300 * MS)
        self.assertEqual([S, S + 1, S + 2, S + 3], self.psns(again))
        self.assertEqual([], self.ack(S + 2, 3))
        self.succeeded(self.ids(3))
        self.assertEqual([S + 4], self.psns(self.sends(1)))
        self.ack(S + 4)
        self.succeeded([103, 104])

    def test_REQ_18_length_limit(self):
        self.req()
        big = {"lkey": LKEY, "addr": hex(LVA), "length": 2**31}
        one = {"lkey": LKEY, "addr": hex(LVA), "length": 1}
        self.refused(self.post_raw(self.wr("SEND", sg_list=[big, one])), "2^31")
        self.assertEqual([], self.feed())
        self.assertEqual([], self.cqes())
        self.well()

    def test_REQ_19_region_gone_under_a_read(self):
        self.req(recv=2)
        self.post(self.wr("RDMA_READ", 100), self.wr("SEND", inline="00"))
        self.rpc("mr_deregister", name="lmr")
        self.feed(self.read_answer(S, b"\x77" * 100))
        self.ended("LOC_PROT_ERR", 100, flushed=[101])
        self.assertEqual(["WR_FLUSH_ERR"] * 2, [c["status"] for c in self.cqes("rcq")])

    def test_REQ_19_region_gone_under_an_atomic(self):
        self.req()
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8))
        self.rpc("mr_deregister", name="lmr")
        self.feed(self.atomic_ack(S, 5))
        self.ended("LOC_PROT_ERR", 100)

    def test_WIRE_14_WIRE_18_header_bits(self):
        """SE on the last packet of what asks for it; MigReq always."""
        self.req()
        se = dict(send_flags=["SOLICITED"])
        got = self.post(self.wr("SEND", 2500, **se), self.wr("RDMA_WRITE", 10, **se),
                        self.wr("RDMA_WRITE_WITH_IMM", 10, **se), self.wr("SEND", 10))
        self.assertEqual([0, 0, 1, 0, 1, 0], [f.se for f in got])
        self.assertEqual([1] * 6, [f.mig for f in got])

    def test_counters_of_goodput(self):
        self.req()
        self.post(self.wr("SEND", 1000), self.wr("RDMA_WRITE", 2000), self.wr("RDMA_READ", 3000))
        self.feed(self.peer.acknowledge(S + 2), self.read_answer(S + 3, bytes(3000)))
        self.assertEqual((3, 6000), (self.delta("req_messages"), self.delta("req_message_bytes")))
        self.assertEqual(4, self.delta("rx_responses"))

    def test_two_qps_take_turns(self):
        """A long message of one does not keep the other waiting: 16 packets at a time."""
        self.req(knobs={"cc.window": 256})
        self.make("qp_create", **self.qp_params(qp_num=0x12, recv_cq="rcq", sq_sig_all=True,
                                                sq_psn=S, dest_qp_num=0x22))
        self.post_raw(self.wr("RDMA_WRITE", 65536))
        self.post_raw(self.wr("SEND", 10), qp_num=0x12)
        got = self.feed()
        at = [f.opcode for f in got].index(roce.SEND_ONLY)
        self.assertLess(at, 65)
        self.assertEqual(65, len(got))


if __name__ == "__main__":
    dut.main()
