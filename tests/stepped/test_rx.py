# SPDX-License-Identifier: BSD-3-Clause
"""RX: packets that are dropped before the transport sees them, and in which order faults count."""
import struct

import dut
import roce
import variant
from dut import QPN, RKEY, VA, Ack, E, Nak, Rnr
from roce import NAK_INV, NAK_RAE, NAK_SEQ, data

RESERVED_BITS = sum(1 << b for b in (1, 4, 7, 11, 24, 25, 26, 29))
L3, UDP4 = 14, 34
UDP6 = 54


def put16(frame, at, value, fix=True):
    return roce.edit(frame, roce.behind_tag(frame, at), struct.pack(">H", value), fix)


def edit(frame, at, new):
    return roce.edit(frame, roce.behind_tag(frame, at), new, fix=False)


def l3_len(frame):
    return len(frame) - roce.offsets(frame)[0]


def udp_len(frame):
    return len(frame) - roce.offsets(frame)[1]


class Drops(dut.DutCase):
    """RX-SYN: dropped, one drop counted and recorded, the same packet without the fault taken."""

    def dropped(self, frame, bit=None, counter=None, good=True, epsn=E, state="RTS"):
        """RX-ERR-01 and RX-SYN-32 on the way: the record, and its reserved bits."""
        counter = counter or "rx_syndrome_%d" % bit
        names = dut.drop_counters()
        before = self.dut.counters()
        self.silent(self.feed(frame), ms=1)
        after = self.dut.counters()
        moved = {n: after[n] - before[n] for n in names if after[n] != before[n]}
        self.assertEqual({counter: 1}, moved)
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        q = self.qp()
        self.assertEqual((state, epsn), (q["qp_state"], q["epsn"]))
        if bit is not None or counter.startswith(("rx_trunc", "rx_pkey", "rx_qp_type")):
            for record in self.records(1):
                self.assertEqual("drop", record["impact"])
                self.assertEqual(frame[:128].hex(), record["header"])
                self.assertEqual(0, record["syndrome"] & RESERVED_BITS)
                if bit is not None:
                    self.assertTrue(record["syndrome"] >> bit & 1, record)
        if good:
            self.expect(self.feed(self.peer.send_only(E, b"good")), Ack(E, 1))

    def test_RX_SYN_00_foreign_mac(self):
        self.resp()
        self.dropped(self.peer.send_only(E, b"x", dst_mac="02:00:00:00:00:77"), 0)

    @variant.fixed(ip="4")
    def test_RX_SYN_02_ip_version_not_the_qps(self):
        self.resp()
        self.dropped(self.peer_of(v6=True).send_only(E, b"x"), 2)
        self.resp(v6=True)
        self.dropped(self.peer_of(v6=False).send_only(E, b"x"), 2)

    @variant.fixed(ip="4")
    def test_RX_SYN_02_version_nibble_against_ethertype(self):
        self.resp()
        self.dropped(edit(self.peer.send_only(E, b"x"), L3, b"\x65"), 2)

    @variant.fixed(ip="4")
    def test_RX_SYN_03_header_with_options(self):
        self.resp()
        good = self.peer.send_only(E, b"x")
        at = roce.offsets(good)[1]
        frame = good[:at] + b"\x01\x01\x01\x01" + good[at:]
        frame = edit(frame, L3, b"\x46")
        self.dropped(roce.with_ip_checksum(put16(frame, L3 + 2, l3_len(frame), fix=False)), 3)

    @variant.fixed(ip="4")
    def test_RX_SYN_05_more_fragments(self):
        """A set MF bit is always dropped (RX-SYN-33)."""
        self.resp()
        self.dropped(put16(self.peer.send_only(E, b"x"), L3 + 6, 0x2000), 5)
        self.resp()
        self.dropped(put16(self.peer.send_only(E, b"x"), L3 + 6, 0x6000), 5)

    @variant.fixed(ip="4")
    def test_RX_SYN_06_fragment_offset(self):
        self.resp()
        self.dropped(put16(self.peer.send_only(E, b"x"), L3 + 6, 0x4008), 6)

    @variant.fixed(ip="4")
    def test_RX_SYN_08_foreign_ip(self):
        self.resp()
        self.dropped(self.peer.send_only(E, b"x", dst_ip="192.0.2.3"), 8)
        self.resp(v6=True)
        self.dropped(self.peer.send_only(E, b"x", dst_ip="2001:db8::3"), 8)

    @variant.fixed(ip="4")
    def test_RX_SYN_09_header_checksum(self):
        self.resp()
        good = self.peer.send_only(E, b"x")
        at = roce.behind_tag(good, 24)
        bad = bytes(b ^ 0xFF for b in good[at:at + 2])
        self.dropped(roce.edit(good, at, bad, fix=False), 9)

    @variant.fixed(ip="4")
    def test_RX_SYN_10_ip_length(self):
        self.resp()
        good = self.peer.send_only(E, data(40))
        short = put16(put16(good, L3 + 2, 20 + 23, fix=False), UDP4 + 4, 23, fix=False)
        self.dropped(roce.with_ip_checksum(short), 10)
        for beyond in (1, 2, 40, 9000):
            self.resp()
            over = put16(good, L3 + 2, l3_len(good) + beyond, fix=False)
            over = put16(over, UDP4 + 4, udp_len(good) + beyond, fix=False)
            self.dropped(roce.with_ip_checksum(over), 10)
        self.resp()
        tiny = roce.with_ip_checksum(put16(good, L3 + 2, 19, fix=False))
        self.dropped(tiny, 10)

    def test_RX_SYN_10_ipv6_payload_length(self):
        self.resp(v6=True)
        good = self.peer.send_only(E, data(40))
        self.dropped(put16(put16(good, L3 + 4, 23, fix=False), UDP6 + 4, 23, fix=False), 10)
        self.resp(v6=True)
        n = udp_len(good)
        self.dropped(put16(put16(good, L3 + 4, n + 8, fix=False), UDP6 + 4, n + 8, fix=False), 10)

    @variant.fixed(ip="4")
    def test_RX_SYN_12_udp_length(self):
        for diff in (-4, 4):
            self.resp()
            good = self.peer.send_only(E, data(40))
            self.dropped(put16(good, UDP4 + 4, udp_len(good) + diff, fix=False), 12)
            self.resp(v6=True)
            good = self.peer.send_only(E, data(40))
            self.dropped(put16(good, UDP6 + 4, udp_len(good) + diff, fix=False), 12)

    def test_RX_SYN_13_transport_version(self):
        self.resp()
        self.dropped(self.peer.send_only(E, b"x", tver=1), 13)

    def test_RX_SYN_14_qp_number_not_supported(self):
        for qpn in (0, 1, 0xFFFFFF):
            self.resp()
            self.dropped(self.peer.send_only(E, b"x", qpn=qpn), 14)

    def test_RX_SYN_15_qp_not_there(self):
        for qpn in (0x12, 0x10011, 0x800011, 0xFFFFFE):
            self.resp()
            self.dropped(self.peer.send_only(E, b"x", qpn=qpn), 15)

    def test_RX_SYN_15_qp_not_enabled(self):
        """RX-HDR-04 too: after RTR the same PSN is accepted."""
        for state in ("RESET", "INIT"):
            self.resp(recv=0)
            self.make("qp_create", **self.qp_params(qp_num=0x33, qp_state="RESET"))
            peer = self.peer.with_(qpn=0x33)
            if state == "INIT":
                self.rpc("qp_modify", qp_num=0x33, qp_state="INIT", port="p0", pkey="0xffff",
                         qp_access_flags=dut.ALL_REMOTE)
                self.post_recv(1, qp_num=0x33)
            self.silent(self.feed(peer.send_only(E, b"x")))
            self.assertEqual(1, self.delta("rx_syndrome_15"))
            self.assertEqual(state, self.qp(0x33)["qp_state"])
            if state == "INIT":
                a = self.qp_params()
                self.rpc("qp_modify", qp_num=0x33, qp_state="RTR", **{k: a[k] for k in (
                    "ah_attr", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic",
                    "min_rnr_timer")})
                self.expect(self.feed(peer.send_only(E, b"x")), Ack(E, 1))

    def test_RX_SYN_15_destroyed_qp(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))
        self.silent(self.feed(self.peer.send_only(E + 1, b"x")))
        self.assertEqual(1, self.delta("rx_syndrome_15"))

    def test_RX_SYN_16_opcode_sequence(self):
        self.resp()
        self.expect(self.feed(self.peer.send_middle(E, data(1024))), Nak(E, NAK_INV, 0))
        self.assertEqual(1, self.delta("rx_syndrome_16"))
        self.assertEqual(1, self.fatal(E, event="QP_REQ_ERR")[0]["fatal_code"])

    def test_RX_SYN_17_unsupported_opcode(self):
        self.resp()
        self.expect(self.feed(self.peer.packet(0x1F, E)), Nak(E, NAK_INV, 0))
        self.assertEqual(1, self.delta("rx_syndrome_17"))
        self.assertEqual(4, self.fatal(E, event="QP_REQ_ERR")[0]["fatal_code"])

    def test_RX_SYN_20_receive_queue_empty(self):
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 12, 0))
        self.assertEqual(1, self.delta("rx_syndrome_20"))

    def test_RX_SYN_21_psn(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E + 1)), Nak(E, NAK_SEQ, 0))
        self.assertEqual(1, self.delta("rx_syndrome_21"))

    @variant.fixed(ip="4")
    def test_RX_SYN_27_unknown_source_ip(self):
        self.resp()
        self.dropped(self.peer.send_only(E, b"x", src_ip="192.0.2.9"), 27)
        self.resp(v6=True)
        self.dropped(self.peer.send_only(E, b"x", src_ip="2001:db8::9"), 27)

    def test_RX_SYN_30_icrc(self):
        self.resp()
        good = self.peer.send_only(E, b"x")
        self.dropped(roce.flip(good, len(good) * 8 - 1), 30)
        self.assertEqual(1, self.delta("rx_icrc_encapsulated"))

    def test_RX_SYN_33_df_is_not_required(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x", flags=0)), Ack(E, 1))

    def test_RX_SYN_34_source_mac_is_not_checked(self):
        self.resp()
        got = self.feed(self.peer.send_only(E, b"x", src_mac="02:00:00:00:00:66"))
        self.expect(got, Ack(E, 1))
        self.assertEqual("02:00:00:00:00:22", got[0].dst_mac)

    def test_RX_HDR_01_pkey(self):
        self.resp()
        self.dropped(self.peer.send_only(E, b"x", pkey=0x1234), counter="rx_pkey_violation")
        # Two limited members do not hear each other; a full and a limited one do.
        self.resp(pkey="0x7fff")
        self.dropped(self.peer.send_only(E, b"x", pkey=0x7FFF), counter="rx_pkey_violation",
                     good=False)
        self.peer = self.peer.with_(pkey=0x7FFF)
        self.expect(self.feed(self.peer.send_only(E, b"x", pkey=0xFFFF)), Ack(E, 1))
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x", pkey=0x7FFF)), Ack(E, 1))

    def test_RX_HDR_02_other_transports(self):
        for opcode, ext in ((0x24, b""), (0x64, bytes(8)), (0x44, bytes(4)), (0xA4, bytes(4))):
            self.resp()
            self.dropped(self.peer.packet(opcode, E, b"x", ext), counter="rx_qp_type_mismatch")

    @variant.fixed(ip="4")
    def test_RX_HDR_03_truncated(self):
        """Cut inside the RETH and with more pad than payload; the lengths agree."""
        for build in (lambda p: p.write_only(E, b"", VA, RKEY),
                      lambda p: p.fetch_add(E, VA, RKEY, 1),
                      lambda p: p.send_only_imm(E)):
            whole = build(self.peer)
            for cut in range(1, udp_len(whole) - 8 - 12 - 4 + 1):
                self.resp()
                frame = whole[:len(whole) - 4 - cut] + bytes(4)
                frame = put16(put16(frame, L3 + 2, l3_len(frame), fix=False),
                              UDP4 + 4, udp_len(frame), fix=False)
                frame = roce.with_icrc(roce.with_ip_checksum(frame))
                self.dropped(frame, counter="rx_truncated", good=cut == 1)
        self.resp()
        self.dropped(self.peer.send_only(E, b"", pad=3), counter="rx_truncated")

    def test_RX_HDR_03_cut_frames(self):
        """Every prefix of a good frame: whatever the fault is called, the packet has no effect."""
        self.resp()
        for frame in (self.peer.write_only_imm(E, data(20), VA, RKEY),):
            for n in range(14, len(frame)):
                self.assertEqual([], self.feed(frame[:n]), n)
        self.silent()
        self.assertEqual(E, self.qp()["epsn"])
        self.expect(self.feed(frame), Ack(E, 1))

    def test_RX_HDR_05_responses_to_a_qp_that_cannot_send(self):
        self.resp(qp_state="RTR", sq_psn=None, timeout=None, retry_cnt=None, rnr_retry=None,
                  max_rd_atomic=None)
        p = self.peer
        self.dropped(p.acknowledge(0x200), counter="rx_response_state", state="RTR")
        self.resp(qp_state="RTR", sq_psn=None, timeout=None, retry_cnt=None, rnr_retry=None,
                  max_rd_atomic=None)
        self.dropped(p.packet(roce.READ_ONLY, 0x200, b"data", roce.aeth(0x1F, 0), ack=0),
                     counter="rx_response_state", state="RTR")

    @variant.fixed(ip="4")
    def test_RX_HDR_06_not_roce(self):
        self.resp()
        good = self.peer.send_only(E, b"x")
        self.dropped(put16(good, UDP4 + 2, 4790), counter="rx_not_roce")
        self.resp()
        self.dropped(put16(good, 12, 0x8915, fix=False), counter="rx_not_roce")


class Ernic(dut.DutCase):
    """Choices of the other profile."""

    CONFIG = {"knobs": {"cc.cnp": "off", "cc.algo": "none", "rx.ip_df": "require"}}

    def gone(self, *frames, bit, epsn=E):
        """Dropped; the QP goes on as if it had not come."""
        self.silent(self.each(*frames))
        self.assertEqual(1, self.delta("rx_syndrome_%d" % bit))
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        self.assertEqual(("RTS", epsn), (self.state(), self.qp()["epsn"]))

    @variant.fixed(ip="4")
    def test_RX_SYN_05_df_required(self):
        """Codes of flags 000 and MF."""
        self.resp()
        self.gone(self.peer.send_only(E, b"x", flags=0), bit=5)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))
        self.resp()
        self.gone(put16(self.peer.send_only(E, b"x"), L3 + 6, 0x2000), bit=5)

    def test_RX_SYN_18_pad_is_dropped(self):
        self.resp(profile="ernic")
        p = self.peer
        self.gone(p.send_first(E, data(1024), pad=1, pad_bytes=b"\0"), bit=18)
        self.expect(self.each(p.send(E, data(2000))), Ack(E + 1, 1))
        self.resp(profile="ernic")
        self.gone(p.send_first(E, data(1024)),
                  p.send_middle(E + 1, data(1024), pad=2, pad_bytes=b"\0\0"), bit=18,
                  epsn=E + 1)
        self.expect(self.each(p.send_middle(E + 1, data(1024)), p.send_last(E + 2, b"x")),
                    Ack(E + 2, 1))

    def test_RX_SYN_19_length_is_dropped(self):
        p = self.peer
        for frame in (p.send_first(E, data(1020)), p.send_only(E, data(1028))):
            self.resp(profile="ernic")
            self.gone(frame, bit=19)
            self.expect(self.feed(p.send_only(E, b"x")), Ack(E, 1))
        for frame in (p.send_middle(E + 1, data(1028)), p.send_last(E + 1, b""),
                      p.send_last(E + 1, data(1028))):
            self.resp(profile="ernic")
            self.gone(p.send_first(E, data(1024)), frame, bit=19, epsn=E + 1)

    def test_RX_SYN_28_source_mac(self):
        self.resp(knobs={"rx.check_src_mac": "on"})
        self.gone(self.peer.send_only(E, b"x", src_mac="02:00:00:00:00:66"), bit=28)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))

    def test_RX_PREC_05_rnr_before_opcode_sequence(self):
        self.resp(recv=0, profile="ernic")
        self.expect(self.feed(self.peer.send_middle(E, data(1024), ack=1)), Rnr(E, 12, 0))
        self.assertEqual("RTS", self.state())


class Precedence(dut.DutCase):
    """Every adjacent pair: test_rx_all.py."""

    def test_RX_PREC_03_fit_before_local_memory(self):
        """An over-long SEND into a WQE with a bad key: the length is reported."""
        self.resp(recv=0)
        self.post_recv_sges([{"lkey": "0x123456", "addr": "0x1000", "length": 10}])
        self.expect(self.feed(self.peer.send_only(E, data(11))), Nak(E, NAK_INV, 0))
        self.fatal(E, cqe="LOC_LEN_ERR", flushed=0)

    def test_RX_PREC_04_unsupported_opcode_with_a_wrong_psn(self):
        self.resp()
        self.expect(self.feed(self.peer.packet(0x1F, E + 1)), Nak(E, NAK_SEQ, 0))
        self.silent(self.feed(self.peer.packet(0x1F, E - 1)))
        self.unchanged()

    def test_RX_PREC_06_opcode_sequence_before_rnr(self):
        self.resp(recv=0)
        self.expect(self.feed(self.peer.send_middle(E, data(1024), ack=1)), Nak(E, NAK_INV, 0))
        self.fatal(E, event="QP_REQ_ERR", flushed=0)

    def test_RX_PREC_07_psn_before_everything(self):
        p = self.peer
        for recv, frame in ((4, p.write_only(E + 1, b"x", VA, RKEY ^ 1)),
                            (4, p.send_only(E + 1, data(1028))), (0, p.send_only(E + 1)),
                            (4, p.send_middle(E + 1, data(1024), ack=1)),
                            (4, p.send_first(E + 1, data(1024), pad=1, pad_bytes=b"\0"))):
            self.resp(recv=recv)
            self.expect(self.each(frame, frame), Nak(E, NAK_SEQ, 0))
            self.unchanged(recv=recv)

    def test_RX_PREC_08_rnr_before_key(self):
        self.resp(recv=0)
        frame = self.peer.write_only_imm(E, b"x", VA, RKEY ^ 1)
        self.expect(self.feed(frame), Rnr(E, 12, 0))
        self.post_recv()
        self.expect(self.feed(frame, ns=dut.MS), Nak(E, NAK_RAE, 0))
        self.fatal(E, cqe="REM_ACCESS_ERR", flushed=0)

    def test_RX_PREC_09_bad_icrc_has_no_effect(self):
        p = self.peer
        frames = (p.send_middle(E, data(1024), ack=1), p.packet(0x1F, E), p.send_only(E),
                  p.send_only(E + 1), p.acknowledge(0x200), p.acknowledge(0x200, NAK_INV),
                  p.acknowledge(0x1FF, NAK_SEQ), p.write_only(E, b"x", VA, RKEY ^ 1),
                  p.packet(roce.READ_MIDDLE, 0x200, data(1024), ack=0), p.cnp())
        self.resp(recv=0)
        for frame in frames:
            self.silent(self.feed(roce.flip(frame, len(frame) * 8 - 8)), ms=1)
        self.assertEqual(len(frames), self.delta("rx_syndrome_30"))
        # the latch was not set either
        self.expect(self.feed(p.send_only(E + 1)), Nak(E, NAK_SEQ, 0))
        self.unchanged(recv=0)


if __name__ == "__main__":
    dut.main()
