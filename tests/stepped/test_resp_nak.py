# SPDX-License-Identifier: BSD-3-Clause
"""RESP-NAK: fatal NAKs, what they name, and what they leave behind."""
import dut
import roce
from dut import ALL_REMOTE, MR_LEN, RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse, Rnr
from roce import NAK_INV, NAK_RAE, NAK_ROE, NAK_SEQ, data

BAD = RKEY ^ 0x5A000001


class General(dut.DutCase):

    def test_RESP_NAK_01_formats(self):
        """Each of the five kinds: opcode 0x11, its syndrome, no payload."""
        self.resp()
        self.expect(self.feed(self.peer.send_only(E + 1)), Nak(E, NAK_SEQ, 0))
        self.expect(self.feed(self.peer.send_middle(E, data(1024))), Nak(E, NAK_INV, 0))
        self.resp()
        self.expect(self.feed(self.peer.read_req(E, VA, BAD, 4)), Nak(E, NAK_RAE, 0))
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 12, 0))
        self.resp(recv=0)
        self.post_recv_sges([{"lkey": "0x123456", "addr": "0x1000", "length": 64}])
        got = self.feed(self.peer.send_only(E, b"x"))
        self.expect(got, Nak(E, NAK_ROE, 0))
        self.assertEqual(8 + 12 + 4 + 4, got[0].udp_len)

    def test_RESP_NAK_02_earlier_requests_finish_first(self):
        self.resp(mr_fill="pattern:1")
        p = self.peer
        got = self.feed(p.send_only(E, b"s"), p.read_req(E + 1, VA, RKEY, 4096),
                        p.write_only(E + 5, b"w", VA, BAD))
        if got and got[0].opcode == roce.ACK and not got[0].is_nak:
            self.expect(got[:1], Ack(E, 1))
            got = got[1:]
        self.expect(got, ReadResponse(E + 1, roce.pattern(1, 4096), 2), Nak(E + 5, NAK_RAE, 2))
        self.assertEqual([(0, "SUCCESS")], self.statuses()[:1])

    def test_RESP_NAK_03_replaces_a_read_response(self):
        """The region goes away while a long READ is being answered."""
        self.resp()
        self.make("mr_register", name="big", pd="pd0", length=1 << 20, addr="0x40000000",
                  rkey="0x4444", access=ALL_REMOTE, fill="pattern:3")
        self.dut.rx(self.peer.read_req(E, 0x40000000, 0x4444, 1 << 20))
        frames = [bytes.fromhex(line.split()[2]) for line in self.dut.command("turn 1")]
        self.assertLess(len(frames), 1024, "the whole READ was answered in one turn")
        self.rpc("mr_deregister", name="big")
        frames += [raw for _, raw in self.dut.run()]
        got = [roce.Frame(raw) for raw in frames]
        for f in got:
            dut.check_frame(f, self.peer)
        n = len(got) - 1
        self.assertLess(n, 1024)
        whole = roce.pattern(3, 1024 * n)
        self.expect(got, ReadResponse(E, whole + bytes(1), None)[:n] if n else [],
                    Nak(E + n, NAK_RAE))
        # the READ had its PSNs: ePSN stands behind it, and does not move
        self.assertEqual(E + 1024, self.qp()["epsn"])
        self.fatal(E + 1024, event="QP_ACCESS_ERR")

    def test_RESP_NAK_04_only_requests_at_epsn(self):
        def faulty(p, psn):
            return (p.packet(0x1F, psn), p.send_middle(psn, data(1024), ack=1),
                    p.write_last(psn, b"x"), p.write_only(psn, b"x", VA, BAD),
                    p.read_req(psn, VA, BAD, 4), p.fetch_add(psn, VA + 1, RKEY, 1),
                    p.send_only(psn, data(1028)), p.write_first(psn, data(1020), VA, RKEY, 4000),
                    p.read_req(psn, VA, RKEY, 0x80000001), p.send_only(psn, bytes(1024), pad=1))
        for i in range(len(faulty(self.peer, E))):
            self.resp()
            self.expect(self.feed(faulty(self.peer, E + 1)[i]), Nak(E, NAK_SEQ, 0))
            self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
            for f in self.feed(faulty(self.peer, E)[i]):
                self.assertFalse(f.is_nak, (i, f))
            self.assertEqual(("RTS", E + 1), (self.state(), self.qp()["epsn"]))

    def test_RESP_NAK_05_state_after_a_fatal_nak(self):
        self.resp()
        p = self.peer
        got = self.feed(p.write_only(E, b"x", VA, BAD), p.send_only(E, b"y"),
                        p.send_only(E + 1, b"z"), p.send_only(E - 1, b"d"))
        self.expect(got, Nak(E, NAK_RAE, 0))
        self.silent(self.each(p.send_only(E, b"y"), p.send_only(E + 1, b"z"), p.send_only(E - 1)))
        self.fatal(E, event="QP_ACCESS_ERR")
        self.assertEqual(1, self.delta("resp_remote_access_errors"))
        self.assertEqual(4, self.delta("resp_cqe_flush_error"))

    def test_RESP_NAK_06_earlier_packets_of_a_faulty_write(self):
        """FIRST and MIDDLE may be in memory; nothing else is."""
        self.resp()
        first, middle, _ = self.peer.write(E, data(3000), VA, RKEY)
        self.expect(self.each(first, middle, self.peer.write_last(E + 2, data(900))),
                    Nak(E + 2, NAK_INV, 0))
        self.assertIn(self.mem(0, 2048), (data(2048), data(1024) + bytes(1024), bytes(2048)))
        self.assertEqual(bytes(4096), self.mem(3000, 4096))


class Invalid(dut.DutCase):

    def invalid(self, *frames, at=None, event="QP_REQ_ERR", cqe=None, flushed=4, fatal_code=None,
                epsn=None, msn=0):
        """The last frame draws NAK-INV at its own PSN and nothing else is said."""
        psn = roce.Frame(frames[-1]).psn if at is None else at
        self.expect(self.each(*frames), Nak(psn, NAK_INV, msn))
        self.assertEqual(1, self.delta("resp_nak_invalid_sent"))
        events = self.fatal(psn, event=event, cqe=cqe, flushed=flushed)
        if fatal_code is not None and event:
            self.assertEqual(fatal_code, events[0]["fatal_code"])

    def test_RESP_NAK_INV_01_reserved_opcodes(self):
        """RX-FATAL-04: the code is 00100. A FLUSH has 20 bytes of headers."""
        for opcode in (0x15, *range(0x18, 0x20)):
            with self.subTest(opcode=hex(opcode)):
                self.resp()
                self.invalid(self.peer.packet(opcode, E, bytes(20)), fatal_code=4)

    def test_RESP_NAK_INV_02_operation_not_enabled(self):
        for missing, make in (
                ("REMOTE_READ", lambda p: p.read_req(E, VA, RKEY, 4)),
                ("REMOTE_WRITE", lambda p: p.write_only(E, b"x", VA, RKEY)),
                ("REMOTE_WRITE", lambda p: p.write_first(E, data(1024), VA, RKEY, 2000)),
                ("REMOTE_ATOMIC", lambda p: p.fetch_add(E, VA, RKEY, 1)),
                ("REMOTE_ATOMIC", lambda p: p.cmp_swap(E, VA, RKEY, 0, 1))):
            with self.subTest(missing=missing):
                self.resp(qp_access_flags=[f for f in ALL_REMOTE if f != missing])
                self.invalid(make(self.peer), fatal_code=4)
                self.assertEqual(bytes(1024), self.mem(0, 1024))

    def test_RESP_NAK_INV_03_stray_middle_or_last(self):
        """RX-SYN-16; no WQE is taken for it (AMB-20)."""
        for opcode, code in ((roce.SEND_MIDDLE, 1), (roce.SEND_LAST, 1), (roce.SEND_LAST_IMM, 1),
                             (roce.SEND_LAST_INV, 1), (roce.WRITE_MIDDLE, 17),
                             (roce.WRITE_LAST, 17), (roce.WRITE_LAST_IMM, 17)):
            with self.subTest(opcode=roce.NAMES[opcode]):
                self.resp()
                ext = bytes(4) if opcode in roce.HAS_IMM | roce.HAS_IETH else b""
                self.invalid(self.peer.packet(opcode, E, data(1024), ext), fatal_code=code)
                self.assertEqual(1, self.delta("rx_syndrome_16"))

    def new_message(self, psn):
        p = self.peer
        return (p.send_first(psn, data(1024)), p.send_only(psn, b"x"),
                p.send_only_imm(psn, b"x"), p.write_first(psn, data(1024), VA, RKEY, 2000),
                p.write_only(psn, b"x", VA, RKEY), p.write_only_imm(psn, b"x", VA, RKEY),
                p.read_req(psn, VA, RKEY, 4), p.fetch_add(psn, VA, RKEY, 1),
                p.cmp_swap(psn, VA, RKEY, 0, 1))

    def test_RESP_NAK_INV_04_new_message_inside_a_send(self):
        for i in range(9):
            with self.subTest(i=i):
                self.resp()
                self.invalid(self.peer.send_first(E, data(1024)), self.new_message(E + 1)[i],
                             event=None, cqe="REM_INV_REQ_ERR", flushed=3)

    def test_RESP_NAK_INV_04_new_message_inside_a_write(self):
        for i in range(9):
            with self.subTest(i=i):
                self.resp()
                self.invalid(self.peer.write_first(E, data(1024), VA + 4096, RKEY, 2000),
                             self.new_message(E + 1)[i])

    def test_RESP_NAK_INV_05_type_change_inside_a_message(self):
        for frame in (self.peer.write_middle(E + 1, data(1024)), self.peer.write_last(E + 1, b"x"),
                      self.peer.write_last_imm(E + 1, b"x")):
            self.resp()
            self.invalid(self.peer.send_first(E, data(1024)), frame, event=None,
                         cqe="REM_INV_REQ_ERR", flushed=3)
        for frame in (self.peer.send_middle(E + 1, data(1024)), self.peer.send_last(E + 1, b"x"),
                      self.peer.send_last_imm(E + 1, b"x")):
            self.resp()
            self.invalid(self.peer.write_first(E, data(1024), VA, RKEY, 3000), frame)

    def test_RESP_NAK_INV_06_send_longer_than_the_wqe(self):
        self.resp(recv=0)
        self.set_mem(0, b"\xee" * 8192, "rbuf")
        self.post_recv(1, size=1500)
        self.post_recv(3)
        p = self.peer
        self.expect(self.each(p.send_first(E, data(1024)), p.send_last(E + 1, data(1024))),
                    Nak(E + 1, NAK_INV, 0))
        self.assertEqual(1, self.delta("resp_local_length_error"))
        self.fatal(E + 1, cqe="LOC_LEN_ERR", flushed=3)
        self.assertEqual(b"\xee" * 4000, self.mem(1500, 4000, "rbuf"))

    def test_RESP_NAK_INV_06_only(self):
        self.resp(recv=0)
        self.set_mem(0, b"\xee" * 4096, "rbuf")
        self.post_recv(1, size=99)
        self.post_recv(3)
        self.expect(self.feed(self.peer.send_only(E, data(100))), Nak(E, NAK_INV, 0))
        self.fatal(E, cqe="LOC_LEN_ERR", flushed=3)
        self.assertEqual(b"\xee" * 1000, self.mem(99, 1000, "rbuf"))

    def test_RESP_NAK_INV_06_exact_fit_is_taken(self):
        self.resp(recv=0)
        self.post_recv(1, size=1500)
        self.expect(self.each(self.peer.send(E, data(1500))), Ack(E + 1, 1))

    def test_RESP_NAK_INV_07_pad_on_first_or_middle(self):
        """Codes 00010, 10010: RX-FATAL-02, -18."""
        self.resp()
        self.invalid(self.peer.send_first(E, data(1024), pad=1, pad_bytes=b"\0"), fatal_code=2)
        self.resp()
        self.invalid(self.peer.write_first(E, data(1024), VA, RKEY, 3000, pad=1, pad_bytes=b"\0"),
                     fatal_code=18)
        self.resp()
        self.invalid(self.peer.send_first(E, data(1024)),
                     self.peer.send_middle(E + 1, data(1024), pad=2, pad_bytes=b"\0\0"),
                     event=None, cqe="REM_INV_REQ_ERR", flushed=3)
        self.resp()
        self.invalid(self.peer.write_first(E, data(1024), VA, RKEY, 3000),
                     self.peer.write_middle(E + 1, data(1024), pad=2, pad_bytes=b"\0\0"),
                     fatal_code=18)

    def test_RESP_NAK_INV_07_pad_inside_the_path_mtu(self):
        """The last byte of a full packet declared pad."""
        self.resp()
        self.invalid(self.peer.send_first(E, data(1024), pad=1, pad_bytes=b""), fatal_code=2)

    def test_RESP_NAK_INV_08_length_of_first_and_only(self):
        self.resp()
        self.invalid(self.peer.send_first(E, data(1020)), fatal_code=2)
        self.resp()
        self.invalid(self.peer.send_first(E, data(1028)), fatal_code=2)
        self.resp()
        self.invalid(self.peer.send_only(E, data(1028)), fatal_code=2)
        self.resp()
        self.invalid(self.peer.write_first(E, data(1020), VA, RKEY, 3000), fatal_code=18)
        self.resp()
        self.invalid(self.peer.write_only(E, data(1028), VA, RKEY), fatal_code=18)

    def test_RESP_NAK_INV_08_length_inside_a_message(self):
        for frame in (self.peer.send_middle(E + 1, data(1028)),
                      self.peer.send_middle(E + 1, data(1020)),
                      self.peer.send_last(E + 1, b""), self.peer.send_last(E + 1, data(1028))):
            self.resp()
            self.invalid(self.peer.send_first(E, data(1024)), frame, event=None,
                         cqe="REM_INV_REQ_ERR", flushed=3)
        for frame in (self.peer.write_middle(E + 1, data(1028)),
                      self.peer.write_middle(E + 1, data(1020)), self.peer.write_last(E + 1, b""),
                      self.peer.write_last(E + 1, data(1028))):
            self.resp()
            self.invalid(self.peer.write_first(E, data(1024), VA, RKEY, 3000), frame, fatal_code=18)

    def test_RESP_NAK_INV_09_misaligned_atomic(self):
        for off in (1, 2, 4):
            for make in (lambda a: self.peer.fetch_add(E, a, RKEY, 1),
                         lambda a: self.peer.cmp_swap(E, a, RKEY, 0, 1),
                         lambda a: self.peer.fetch_add(E, a, BAD, 1)):
                self.resp()
                self.invalid(make(VA + off))
                self.assertEqual(bytes(32), self.mem(0, 32))

    def test_RESP_NAK_INV_10_no_read_resources(self):
        """RX-FATAL-16: the code is 10000."""
        for make in (lambda p: p.read_req(E, VA, RKEY, 4), lambda p: p.fetch_add(E, VA, RKEY, 1)):
            self.resp(max_dest_rd_atomic=0)
            self.invalid(make(self.peer), fatal_code=16)

    def test_RESP_NAK_INV_10_too_many_outstanding(self):
        """Two allowed, each longer than one turn can answer; the third is one too many."""
        self.resp(max_dest_rd_atomic=2, mr_fill="pattern:1")
        p = self.peer
        got = self.feed(p.read_req(E, VA, RKEY, 65536), p.read_req(E + 64, VA, RKEY, 65536),
                        p.read_req(E + 128, VA, RKEY, 4))
        want = ReadResponse(E, roce.pattern(1, 65536), 1) + \
            ReadResponse(E + 64, roce.pattern(1, 65536), 2)
        self.expect(got, want, Nak(E + 128, NAK_INV, 2))
        self.fatal(E + 128, event="QP_REQ_ERR")

    def test_RESP_NAK_INV_11_read_longer_than_2_31(self):
        """RX-FATAL-22: 10110; with a bad R_Key as well 10111."""
        self.resp()
        self.invalid(self.peer.read_req(E, VA, RKEY, 0x80000001), fatal_code=0x16)
        self.resp()
        self.invalid(self.peer.read_req(E, VA, BAD, 0xFFFFFFFF), fatal_code=0x17)
        self.resp()
        self.expect(self.feed(self.peer.read_req(E, VA, RKEY, 0x80000000)), Nak(E, NAK_RAE, 0))

    def test_RESP_NAK_INV_12_write_longer_than_2_31(self):
        self.resp()
        self.invalid(self.peer.write_first(E, data(1024), VA, RKEY, 0x80000001))
        self.assertEqual(bytes(1024), self.mem(0, 1024))

    def test_RESP_NAK_INV_13_write_sum(self):
        p = self.peer
        self.resp()
        self.invalid(p.write_first(E, data(1024), VA, RKEY, 2048), p.write_last(E + 1, data(476)))
        self.resp()
        self.invalid(p.write_first(E, data(1024), VA, RKEY, 2048),
                     p.write_middle(E + 1, data(1024)),
                     p.write_middle(E + 2, data(1024)))
        self.assertEqual(bytes(4096), self.mem(2048, 4096))
        self.resp()
        self.invalid(p.write_only(E, data(64), VA, RKEY, length=100))
        self.resp()
        self.invalid(p.write_only(E, data(64), VA, RKEY, length=60))
        self.assertEqual(bytes(64), self.mem(60, 64))
        self.resp()
        self.invalid(p.write_first(E, data(1024), VA, RKEY, 1030), p.write_last(E + 1, data(7)))
        self.assertEqual(bytes(64), self.mem(1030, 64))

    def test_RESP_NAK_INV_14_psn_and_execution(self):
        """At a later PSN, with messages completed: PSN is the ePSN, MSN theirs."""
        self.resp(recv=6)
        p = self.peer
        self.expect(self.each(p.send_only(E), p.send_only(E + 1)), Ack(E, 1), Ack(E + 1, 2))
        self.cqes()
        self.invalid(p.fetch_add(E + 2, VA + 4, RKEY, 1), msn=2)
        self.assertEqual(bytes(16), self.mem(0, 16))

    def test_RESP_NAK_INV_15_tied_to_a_wqe(self):
        self.resp()
        self.invalid(self.peer.write_only_imm(E, data(64), VA, RKEY, length=100),
                     event=None, cqe="REM_INV_REQ_ERR", flushed=3)
        self.assertEqual((1, 3), (self.delta("resp_cqe_error"), self.delta("resp_cqe_flush_error")))

    def test_RESP_NAK_INV_16_not_tied_to_a_wqe(self):
        self.resp()
        self.invalid(self.peer.read_req(E, VA, RKEY, 0x90000000))
        self.assertEqual((0, 4), (self.delta("resp_cqe_error"), self.delta("resp_cqe_flush_error")))


class Access(dut.DutCase):

    def refused(self, frame, at=E, event="QP_ACCESS_ERR", cqe=None, flushed=4):
        self.expect(self.feed(frame), Nak(at, NAK_RAE, 0))
        events = self.fatal(at, event=event, cqe=cqe, flushed=flushed)
        if event:
            self.assertEqual(0x15, events[0]["fatal_code"])     # 10101, RX-FATAL-21

    def test_RESP_NAK_RAE_01_unknown_key(self):
        """Also RESP-NAK-RAE-06 (PSN, ePSN) and RESP-NAK-RAE-07 (one event, flushes only)."""
        for make in (lambda p: p.write_only(E, b"x", VA, BAD), lambda p: p.read_req(E, VA, BAD, 4),
                     lambda p: p.fetch_add(E, VA, BAD, 1), lambda p: p.cmp_swap(E, VA, BAD, 0, 1),
                     lambda p: p.write_only(E, b"x", VA, 0),
                     lambda p: p.read_req(E, VA, 0xFFFFFFFF, 4)):
            self.resp()
            self.refused(make(self.peer))
            self.assertEqual(1, self.delta("resp_remote_access_errors"))

    def test_RESP_NAK_RAE_02_outside_the_region(self):
        end = VA + MR_LEN
        for make in (lambda p: p.write_only(E, data(8), VA - 1, RKEY),
                     lambda p: p.write_only(E, data(8), end - 7, RKEY),
                     lambda p: p.write_only(E, data(8), end, RKEY),
                     lambda p: p.write_only(E, data(8), 2**64 - 4, RKEY),
                     lambda p: p.read_req(E, VA - 1, RKEY, 4),
                     lambda p: p.read_req(E, end - 3, RKEY, 4),
                     lambda p: p.read_req(E, 2**64 - 1, RKEY, 2),
                     lambda p: p.read_req(E, VA, RKEY, MR_LEN + 1),
                     lambda p: p.read_req(E, VA, RKEY, 0x7FFFFFFF),
                     lambda p: p.fetch_add(E, VA - 8, RKEY, 1),
                     lambda p: p.fetch_add(E, end, RKEY, 1),
                     lambda p: p.fetch_add(E, 2**64 - 8, RKEY, 1)):
            self.resp()
            self.refused(make(self.peer))
            self.assertEqual(bytes(MR_LEN), self.mem(0, MR_LEN))

    def test_RESP_NAK_RAE_03_access_not_granted(self):
        ops = (("REMOTE_WRITE", lambda p: p.write_only(E, b"x", VA, RKEY), [Ack(E, 1)]),
               ("REMOTE_READ", lambda p: p.read_req(E, VA, RKEY, 4), ReadResponse(E, bytes(4), 1)),
               ("REMOTE_ATOMIC", lambda p: p.fetch_add(E, VA, RKEY, 1), [AtomicAck(E, 0, 1)]))
        for access in (["LOCAL_WRITE"], ["REMOTE_READ"], ["LOCAL_WRITE", "REMOTE_WRITE"],
                       ["LOCAL_WRITE", "REMOTE_ATOMIC"]):
            for need, make, good in ops:
                with self.subTest(access=access, need=need):
                    self.resp(mr_access=access)
                    if need in access:
                        self.expect(self.feed(make(self.peer)), good)
                    else:
                        self.refused(make(self.peer))

    def test_RESP_NAK_RAE_04_other_pd(self):
        self.resp()
        self.make("pd_create", name="pd1")
        self.make("mr_register", name="mr1", pd="pd1", length=4096, addr="0x20000000",
                  rkey="0x7777", access=ALL_REMOTE)
        self.refused(self.peer.write_only(E, b"x", 0x20000000, 0x7777))
        self.assertEqual(bytes(8), self.mem(0, 8, "mr1"))

    def test_RESP_NAK_RAE_04_deregistered(self):
        self.resp()
        self.make("mr_register", name="mr1", pd="pd0", length=4096, addr="0x20000000",
                  rkey="0x7777", access=ALL_REMOTE)
        self.rpc("mr_deregister", name="mr1")
        self.refused(self.peer.write_only(E, b"x", 0x20000000, 0x7777))

    def test_RESP_NAK_RAE_04_variant_byte_changed(self):
        for bit in range(32):
            self.resp(recv=1)
            self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1 << bit)),
                        Nak(E, NAK_RAE, 0))
        self.assertEqual(bytes(8), self.mem(0, 8))

    def test_RESP_NAK_RAE_05_whole_range_on_the_first_packet(self):
        self.resp()
        self.make("mr_register", name="mr1", pd="pd0", length=4096, addr="0x20000000",
                  rkey="0x7777", access=ALL_REMOTE)
        self.refused(self.peer.write_first(E, data(1024), 0x20000000, 0x7777, 8192))
        self.assertEqual(bytes(4096), self.mem(0, 4096, "mr1"))

    def test_RESP_NAK_RAE_06_psn_of_a_later_request(self):
        self.resp()
        self.expect(self.feed(self.peer.write_only(E, b"ok", VA, RKEY)), Ack(E, 1))
        self.expect(self.feed(self.peer.read_req(E + 1, VA, BAD, 9000)), Nak(E + 1, NAK_RAE, 1))
        self.fatal(E + 1, event="QP_ACCESS_ERR")

    def test_RESP_NAK_RAE_07_local_report_without_wqe(self):
        self.resp()
        self.refused(self.peer.read_req(E, VA, BAD, 4))

    def test_RESP_NAK_RAE_08_write_with_immediate(self):
        self.resp()
        self.refused(self.peer.write_only_imm(E, b"x", VA, BAD), event=None,
                     cqe="REM_ACCESS_ERR", flushed=3)

    def test_RESP_NAK_RAE_08_knob_loc_access(self):
        self.resp(knobs={"resp.imm_access_status": "loc_access"})
        self.refused(self.peer.write_only_imm(E, b"x", VA, BAD), event=None,
                     cqe="LOC_ACCESS_ERR", flushed=3)

    def test_RESP_NAK_RAE_09_key_revoked_inside_a_write(self):
        self.resp()
        self.make("mr_register", name="mr1", pd="pd0", length=4096, addr="0x20000000",
                  rkey="0x7777", access=ALL_REMOTE)
        self.assertEqual([],
                         self.feed(self.peer.write_first(E, data(1024), 0x20000000, 0x7777, 3000)))
        self.rpc("mr_deregister", name="mr1")
        self.refused(self.peer.write_middle(E + 1, data(1024)), at=E + 1)


class Operation(dut.DutCase):

    def test_RESP_NAK_ROE_01_bad_local_key(self):
        self.resp(recv=0)
        self.post_recv_sges([{"lkey": "0x123456", "addr": "0x1000", "length": 64}])
        self.post_recv(3)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.assertEqual(1, self.delta("resp_cqe_error"))
        self.fatal(E, cqe="LOC_PROT_ERR", flushed=3)

    def test_RESP_NAK_ROE_01_region_gone_since_the_post(self):
        self.resp(recv=0)
        self.make("mr_register", name="mr1", pd="pd0", length=4096, access=["LOCAL_WRITE"])
        self.post_recv_sges([{"mr": "mr1", "offset": 0, "length": 64}])
        self.post_recv(3)
        self.rpc("mr_deregister", name="mr1")
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.fatal(E, cqe="LOC_PROT_ERR", flushed=3)

    def test_RESP_NAK_ROE_01_no_local_write(self):
        self.resp(recv=0)
        self.make("mr_register", name="mr1", pd="pd0", length=4096, access=["REMOTE_READ"])
        self.post_recv_sges([{"mr": "mr1", "offset": 0, "length": 64}])
        self.expect(self.feed(self.peer.send_only(E, b"x")), Nak(E, NAK_ROE, 0))
        self.assertEqual(bytes(8), self.mem(0, 8, "mr1"))
        self.fatal(E, cqe="LOC_PROT_ERR", flushed=0)

    def test_RESP_NAK_ROE_03_never_caused_by_the_peer(self):
        """Every opcode, with and without a payload, at ePSN of a fresh QP."""
        for opcode in range(0x20):
            for payload in (b"", data(16), data(1024), data(1028)):
                self.resp(recv=1)
                for ext in (b"", roce.reth(VA, RKEY, len(payload)), roce.reth(VA, BAD, 99)):
                    for f in self.feed(self.peer.packet(opcode, self.qp()["epsn"], payload, ext)):
                        self.assertNotEqual(NAK_ROE, f.syndrome, (hex(opcode), f))


if __name__ == "__main__":
    dut.main()
