# SPDX-License-Identifier: BSD-3-Clause
"""WIRE and ICRC: what frames look like, and what of a received frame may differ."""
import dut
import roce
import variant
from dut import RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse, Rnr
from roce import data


class Wire(dut.DutCase):

    def provoke(self):
        """Every kind of answer a responder gives; dut.feed() checks each frame."""
        p = self.peer
        seen = self.each(p.send_only(E, b"a"),
                         p.read_req(E + 1, VA, RKEY, 3000), p.read_req(E + 4, VA, RKEY, 5),
                         p.fetch_add(E + 5, VA, RKEY, 1), p.cmp_swap(E + 6, VA, RKEY, 1, 2),
                         p.send_only(E + 9))
        self.expect(seen, Ack(E, 1), ReadResponse(E + 1, bytes(3000), 2),
                    ReadResponse(E + 4, bytes(5), 3), AtomicAck(E + 5, 0, 4),
                    AtomicAck(E + 6, 1, 5),
                    Nak(E + 7, roce.NAK_SEQ, 5))
        self.expect(self.feed(p.write_only(E + 7, b"x", VA, RKEY ^ 1)), Nak(E + 7, roce.NAK_RAE, 5))
        self.resp(recv=0, v6=p.v6)
        self.expect(self.feed(self.peer.send_only(E)), Rnr(E, 12, 0))
        self.expect(self.feed(self.peer.packet(0x1F, E)), Nak(E, roce.NAK_INV, 0))

    def test_WIRE_01_13_14_16_every_answer_over_ipv4(self):
        """WIRE-01, WIRE-13, WIRE-14, WIRE-16, ICRC-05: DutCase.feed() checks each frame."""
        self.resp()
        self.provoke()

    def test_WIRE_01_13_16_every_answer_over_ipv6(self):
        """WIRE-01, WIRE-13, WIRE-16, ICRC-05 over IPv6."""
        self.resp(v6=True)
        self.provoke()

    def test_WIRE_01_vlan_tag(self):
        self.resp(ah_attr=self.peer_address(vlan=7, vlan_priority=3))
        self.peer = self.peer.with_(vlan=7)
        self.expect(self.feed(self.peer.send_only(E, b"tagged")), Ack(E, 1))
        self.expect(self.feed(self.peer.read_req(E + 1, VA, RKEY, 2000)),
                    ReadResponse(E + 1, bytes(2000), 2))

    def test_WIRE_03_reserved_bits_are_ignored(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"x", resv6=0x3F, resv7=0x7F)), Ack(E, 1))
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_WIRE_05_order_of_extension_headers(self):
        """RETH before ImmDt; AETH before AtomicAckETH; payload behind the last header."""
        self.resp()
        p = self.peer
        self.set_mem(64, (0x1122334455667788).to_bytes(8, "little"))
        got = self.each(p.write_only_imm(E, data(8), VA, RKEY, imm=0xAABBCCDD),
                        p.read_req(E + 1, VA, RKEY, 8), p.fetch_add(E + 2, VA + 64, RKEY, 0))
        self.expect(got, Ack(E, 1), ReadResponse(E + 1, data(8), 2),
                    AtomicAck(E + 2, 0x1122334455667788, 3))
        self.assertEqual(0xAABBCCDD, self.cqes()[0]["imm_data"])
        behind = got[2].raw[got[2].udp + 20:]
        self.assertEqual(behind[:4], b"\x1f\0\0\x03")
        self.assertEqual(behind[4:12].hex(), "1122334455667788")

    def test_WIRE_07_pad_of_sends(self):
        """Pad bytes are ignored, covered by the ICRC, not delivered, not in byte_len."""
        for length, pad in ((1, 3), (2, 2), (3, 1), (4, 0), (5, 3)):
            with self.subTest(length=length):
                self.resp()
                self.set_mem(0, b"\xee" * 16, "rbuf")
                frame = self.peer.send_only(E, data(length), pad_bytes=b"\x5a" * pad)
                self.assertEqual(pad, roce.Frame(frame).pad)
                self.expect(self.feed(frame), Ack(E, 1))
                self.assertEqual(length, self.cqes()[0]["byte_len"])
                self.assertEqual(data(length) + b"\xee" * (16 - length), self.slot(0, 16))
                if pad:
                    bad = bytearray(self.peer.send_only(E + 1, data(length)))
                    bad[-5] ^= 1
                    self.silent(self.feed(bytes(bad)))

    def test_WIRE_07_pad_of_writes(self):
        self.resp()
        self.set_mem(0, b"\xee" * 16)
        for i, length in enumerate((1, 2, 3, 4, 5)):
            pad = -length % 4
            self.expect(self.feed(self.peer.write_only(E + i, data(length, i), VA, RKEY,
                                                       pad_bytes=b"\xa5" * pad)), Ack(E + i, i + 1))
            self.assertEqual(data(length, i), self.mem(0, length))
            self.assertEqual(b"\xee" * (16 - length), self.mem(length, 16 - length))

    def test_WIRE_07_pad_of_read_responses(self):
        self.resp()
        self.set_mem(0, b"\xff" * 64)
        for i, (length, pad) in enumerate(((1, 3), (2, 2), (3, 1), (4, 0), (5, 3))):
            got = self.feed(self.peer.read_req(E + i, VA, RKEY, length))
            self.expect(got, ReadResponse(E + i, b"\xff" * length, i + 1))
            self.assertEqual((pad, bytes(pad)), (got[0].pad, got[0].pad_bytes))

    def test_WIRE_08_first_and_middle_carry_the_path_mtu(self):
        for mtu in (256, 512, 1024, 2048, 4096):
            with self.subTest(mtu=mtu):
                self.resp(path_mtu=mtu, mr_fill="pattern:7")
                length = 2 * mtu + 452 if mtu > 452 else 2 * mtu + 100
                got = self.feed(self.peer.read_req(E, VA, RKEY, length))
                self.expect(got, ReadResponse(E, roce.pattern(7, length), 1, mtu))
                self.assertEqual([mtu, mtu, length - 2 * mtu], [len(f.payload) for f in got])
                self.assertEqual(0, got[0].pad)
                self.assertEqual(0, got[1].pad)

    def test_WIRE_09_read_response_sizes(self):
        self.resp(mr_fill="pattern:1")
        psn, msn = E, 0
        for length in (0, 1, 1023, 1024, 1025, 2048):
            got = self.feed(self.peer.read_req(psn, VA, RKEY, length))
            msn += 1
            self.expect(got, ReadResponse(psn, roce.pattern(1, length), msn))
            psn += max(1, -(-length // 1024))

    def test_WIRE_10_requests_without_payload(self):
        """A READ request and ATOMICs are taken with PadCnt 0 and nothing behind the header."""
        self.resp()
        p = self.peer
        self.expect(self.each(p.read_req(E, VA, RKEY, 4), p.cmp_swap(E + 1, VA, RKEY, 0, 1),
                              p.fetch_add(E + 2, VA, RKEY, 1)),
                    ReadResponse(E, bytes(4), 1), AtomicAck(E + 1, 0, 2), AtomicAck(E + 2, 1, 3))

    def test_WIRE_11_psn_wraps(self):
        self.resp(rq_psn=0xFFFFFE)
        psns = (0xFFFFFE, 0xFFFFFF, 0x000000, 0x000001)
        self.expect(self.each(*[self.peer.send_only(p, b"w") for p in psns]),
                    *[Ack(p, i) for i, p in enumerate(psns, 1)])
        self.assertEqual([(i, "SUCCESS") for i in range(4)], self.statuses())
        self.assertEqual(2, self.qp()["epsn"])

    def test_WIRE_11_psn_wraps_inside_messages(self):
        self.resp(rq_psn=0xFFFFFF, mr_fill="pattern:2")
        p = self.peer
        self.expect(self.each(p.send(0xFFFFFF, data(2500)), p.read_req(2, VA, RKEY, 100)),
                    Ack(1, 1), ReadResponse(2, roce.pattern(2, 100), 2))
        self.resp(rq_psn=0xFFFFFF, mr_fill="pattern:2")
        self.expect(self.feed(self.peer.read_req(0xFFFFFF, VA, RKEY, 2500)),
                    ReadResponse(0xFFFFFF, roce.pattern(2, 2500), 1))
        self.assertEqual(2, self.qp()["epsn"])

    def test_WIRE_14_hop_limit_is_the_address_vectors(self):
        self.resp(ah_attr=self.peer_address(hop_limit=9, traffic_class=0x60))
        self.dut.rx(self.peer.send_only(E))
        frames = [roce.Frame(raw) for _, raw in self.dut.run()]
        self.assertEqual(1, len(frames))
        self.assertEqual((9, 0x60), (frames[0].ttl, frames[0].tos))
        l3, udp, version = roce.offsets(frames[0].raw)
        if version == 4:
            self.assertEqual(0xFFFF, roce.ip_sum(frames[0].raw[l3:udp]))

    def test_WIRE_15_source_port(self):
        """Constant for a QP, in 0xC000..0xFFFF; a received UDP checksum of 0 is not verified."""
        self.resp()
        ports = set()
        for qpn in range(0x11, 0x19):
            if qpn != 0x11:
                self.make("qp_create", **self.qp_params(qp_num=qpn))
            peer = self.peer.with_(qpn=qpn)
            got = [f for i in range(3) for f in self.feed(
                peer.write_only(E + i, b"p", VA, RKEY))]
            self.assertEqual(3, len(got))
            self.assertEqual(1, len({f.sport for f in got}))
            ports.add(got[0].sport)
        self.assertGreater(len(ports), 4)

    def test_WIRE_15_source_port_by_flow_label(self):
        """As ibv_flow_label_to_udp_sport() has it, whatever the queue pair; in IPv6, the label."""
        self.resp()
        for qpn, (label, port) in enumerate(roce.LABELS, 0x12):
            self.make("qp_create", **self.qp_params(
                qp_num=qpn, ah_attr=self.peer_address(flow_label=label)))
            got = [f for i in range(3) for f in self.feed(
                self.peer.with_(qpn=qpn).write_only(E + i, b"p", VA, RKEY))]
            six = label if got[0].version == 6 else None
            self.assertEqual([(port, six)] * 3, [(f.sport, f.flow_label) for f in got])
            self.assertEqual(label, self.rpc("qp_query", qp_num=qpn)["ah_attr"]["flow_label"])

    def test_WIRE_15_received_checksum_is_not_verified(self):
        """The ICRC covers the packet; UDP checksums, right or wrong, are masked."""
        self.resp()
        frame = self.peer.send_only(E, b"c")
        frame = roce.edit(frame, roce.offsets(frame)[1] + 6, b"\x12\x34")
        self.expect(self.feed(frame), Ack(E, 1))

    def test_WIRE_16_response_addressing(self):
        """To the address vector, not to whatever the request's Ethernet source or UDP port were."""
        self.resp()
        got = self.feed(self.peer.send_only(E, b"a", se=1, src_mac="02:00:00:00:00:99", tos=0x40))
        self.expect(got, Ack(E, 1))
        self.assertEqual(("02:00:00:00:00:22", self.peer.src_ip, 0x22, 0, 0),
                         (got[0].dst_mac, got[0].dst_ip, got[0].qpn, got[0].ackreq, got[0].se))

    def test_WIRE_17_ethernet_padding_is_ignored(self):
        self.resp()
        for i, v6 in enumerate((False, True)):
            if v6:
                self.resp(v6=True)
            short = self.peer.send_only(E)
            frame = short + b"\x77" * max(60 - len(short), 6)
            self.expect(self.feed(frame), Ack(E, 1))
            self.assertEqual([0], [c["byte_len"] for c in self.cqes()])

    def test_WIRE_18_migreq_is_sent_as_one_and_ignored_on_receive(self):
        self.resp()
        for i, mig in enumerate((0, 1)):
            got = self.feed(self.peer.send_only(E + i, b"m", mig=mig))
            self.expect(got, Ack(E + i, i + 1))
            self.assertEqual(1, got[0].mig)


class Icrc(dut.DutCase):

    def accepted(self, frame, v6=False):
        self.resp(v6=v6)
        self.expect(self.feed(frame), Ack(E, 1))

    @variant.fixed(ip="4", vlan="none")
    def test_ICRC_02_masked_fields_ipv4(self):
        """TOS, TTL, checksums, FECN, BECN and the reserved six bits may change on the way."""
        good = self.peer_of(v6=False).send_only(E, data(50))
        for at, new in ((15, b"\xb8"), (15, b"\x01"), (22, b"\x01"), (40, b"\xbe\xef"),
                        (46, b"\x80"), (46, b"\x40"), (46, b"\x3f"), (46, b"\xff")):
            with self.subTest(at=at, new=new.hex()):
                self.accepted(roce.with_ip_checksum(roce.edit(good, at, new, fix=False)))

    @variant.fixed(vlan="none")
    def test_ICRC_03_masked_fields_ipv6(self):
        good = self.peer_of(v6=True).send_only(E, data(50))
        for at, new in ((14, b"\x6b\x80"), (15, b"\x0f\xff\xff"), (21, b"\x01"),
                        (60, b"\xbe\xef"), (66, b"\xff")):
            with self.subTest(at=at, new=new.hex()):
                self.accepted(roce.edit(good, at, new, fix=False), v6=True)

    def protected(self, good, bits):
        """Each flipped bit alone: nothing sent, nothing done."""
        for bit in bits:
            got = self.feed(roce.flip(good, bit))
            if got:
                self.fail("bit %d of byte %d flipped: %r" % (bit % 8, bit // 8, got))
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        self.assertEqual((E, "RTS"), (self.qp()["epsn"], self.state()))
        self.expect(self.feed(good), Ack(E, 1))

    @staticmethod
    def bits(*ranges):
        return [bit for first, end in ranges for bit in range(first * 8, end * 8)]

    @variant.fixed(ip="4", vlan="none")
    def test_ICRC_04_every_covered_bit_ipv4(self):
        self.resp()
        good = self.peer.write_only_imm(E, data(5), VA, RKEY)
        end = len(good)
        # not covered: Ethernet source, TOS, TTL, the checksum of UDP, byte 4 of the BTH
        self.protected(good, self.bits((0, 6), (12, 15), (16, 22), (23, 40), (42, 46), (47, end)))
        self.assertEqual(1, len(self.cqes()))
        self.assertEqual(data(5), self.mem(0, 5))

    @variant.fixed(vlan="none")
    def test_ICRC_04_every_covered_bit_ipv6(self):
        self.resp(v6=True)
        good = self.peer.send_only(E, data(5))
        # not covered: traffic class, flow label, hop limit
        bits = self.bits((18, 21), (22, 60), (62, 66), (67, len(good)))
        self.protected(good, bits + list(range(14 * 8, 14 * 8 + 4)))

    def test_ICRC_04_is_counted(self):
        self.resp()
        good = self.peer.send_only(E, data(8))
        bits = self.bits((roce.offsets(good)[1] + 20, len(good)))
        self.protected(good, bits)
        self.assertEqual(len(bits), self.delta("rx_icrc_encapsulated"))
        self.assertEqual(len(bits), self.delta("rx_syndrome_30"))

    @variant.fixed(ip="4", vlan="none")
    def test_ICRC_04_addresses_with_a_right_checksum(self):
        """A rewritten address that the IP checksum does not betray."""
        self.resp()
        good = self.peer.send_only(E, data(8))
        for at in (26, 30):
            for bit in range(32):
                bad = roce.with_ip_checksum(roce.flip(good, at * 8 + bit))
                self.assertEqual([], self.feed(bad))
        self.silent()
        self.expect(self.feed(good), Ack(E, 1))

    def test_ICRC_05_all_lengths(self):
        """READ responses of every length modulo four and around the vector widths of a CRC."""
        self.resp(mr_fill="pattern:3")
        lengths = list(range(0, 40)) + list(range(60, 70)) + list(range(120, 140)) + [255, 256, 257]
        for i, length in enumerate(lengths):
            self.expect(self.feed(self.peer.read_req(E + i, VA, RKEY, length)),
                        ReadResponse(E + i, roce.pattern(3, length), i + 1))

    def test_ICRC_05_received_lengths(self):
        """Payloads of every alignment are verified right, not only made right."""
        self.resp()
        lengths = list(range(0, 70)) + [127, 128, 129, 255, 256, 511, 512, 513, 1023, 1024]
        for i, length in enumerate(lengths):
            self.expect(self.feed(self.peer.write_only(E + i, data(length, i), VA, RKEY)),
                        Ack(E + i, i + 1))
            self.assertEqual(data(length, i), self.mem(0, length) if length else b"")


if __name__ == "__main__":
    dut.main()
