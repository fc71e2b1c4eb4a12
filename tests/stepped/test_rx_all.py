# SPDX-License-Identifier: BSD-3-Clause
"""Every syndrome bit, every FATAL code and every step of the precedence, read back by RPC.

The tables are typed from the rules. A test walks each of them whole and says at the end that
nothing is missing, so that a row which is taken out is noticed.
"""
import struct

import dut
import roce
import variant
from dut import ALL_REMOTE, QPN, RKEY, VA, E
from dut_req import LVA, MS, S, ReqCase
from roce import NAK_INV, NAK_RAE, NAK_ROE, NAK_SEQ, data

RESERVED = (1, 4, 7, 11, 24, 25, 26, 29)        # RX-SYN-32
ALL_BITS = 0xFFFFFFFF ^ sum(1 << b for b in RESERVED)
L3, UDP4, BTH4 = 14, 34, 42
BAD = RKEY ^ 0x01000000
FOREIGN_MAC = "02:00:00:00:00:77"


def put16(frame, at, value, fix=False):
    return roce.edit(frame, roce.behind_tag(frame, at), struct.pack(">H", value), fix)


def bad_icrc(frame):
    return roce.flip(frame, len(frame) * 8 - 1)


def bad_checksum(frame):
    at = roce.behind_tag(frame, L3 + 10)
    return roce.edit(frame, at, bytes(b ^ 0xFF for b in frame[at:at + 2]), fix=False)


def options(frame, dst=None):
    """IHL 6, lengths and checksum right; the ICRC of such a packet is defined nowhere."""
    l3, udp, _ = roce.offsets(frame)
    frame = frame[:udp] + b"\x01\x01\x01\x01" + frame[udp:]
    frame = put16(roce.edit(frame, l3, b"\x46", fix=False), L3 + 2, len(frame) - l3)
    if dst is not None:
        frame = roce.edit(frame, l3 + 16, dst, fix=False)
    return roce.with_ip_checksum(frame)


def beyond(frame, n=4):
    """IP and UDP length agree and lie."""
    l3, udp, _ = roce.offsets(frame)
    frame = put16(frame, L3 + 2, len(frame) - l3 + n)
    return roce.with_ip_checksum(put16(frame, UDP4 + 4, len(frame) - udp + n))


def udp_len(frame, n=-4):
    return put16(frame, UDP4 + 4, len(frame) - roce.offsets(frame)[1] + n)


def only(p, **kw):
    return p.send_only(kw.pop("psn", E), kw.pop("payload", b"x"), **kw)


# bit, name, (impact in profile iba, in ernic), stimulus, what the test does besides.
# "accept": the profile does not check it.
SYNDROMES = (
    (0, "DST_MAC", ("drop", "drop"), lambda p: only(p, dst_mac=FOREIGN_MAC), None),
    (2, "IP_VERSION", ("drop", "drop"),
     lambda p: p.with_(src_ip="2001:db8::2", dst_ip="2001:db8::1").send_only(E, b"x"), None),
    (3, "IP_HDR_LEN", ("drop", "drop"), lambda p: options(only(p)), None),
    (5, "IP_FLAGS", ("accept", "drop"), lambda p: only(p, flags=0), None),
    (5, "IP_FLAGS", ("drop", "drop"), lambda p: only(p, flags="MF"), None),
    (6, "IP_FRAGMENT", ("drop", "drop"), lambda p: put16(only(p), L3 + 6, 0x4008, True), None),
    (8, "DST_IP", ("drop", "drop"), lambda p: only(p, dst_ip="192.0.2.3"), None),
    (9, "IP_CHECKSUM", ("drop", "drop"), lambda p: bad_checksum(only(p)), None),
    (10, "IP_LEN", ("drop", "drop"), lambda p: beyond(only(p)), None),
    (12, "UDP_LEN", ("drop", "drop"), lambda p: udp_len(only(p, payload=data(40))), None),
    (13, "TVER", ("drop", "drop"), lambda p: only(p, tver=1), None),
    (14, "DST_QP", ("drop", "drop"), lambda p: only(p, qpn=0xFFFFFF), None),
    (15, "QP_STATE", ("drop", "drop"), lambda p: only(p, qpn=0x4444), None),
    (16, "OPCODE_SEQUENCE", ("fatal", "fatal"), lambda p: p.send_middle(E, data(1024)), None),
    (17, "OPCODE", ("fatal", "fatal"), lambda p: p.packet(0x1F, E), None),
    (18, "PAD", ("fatal", "drop"),
     lambda p: p.send_first(E, data(1024), pad=1, pad_bytes=b"\0"), None),
    (18, "PAD", ("fatal", "drop"),
     lambda p: p.packet(roce.READ_FIRST, S, data(1024), roce.aeth(0x1F, 1), ack=0, pad=1,
                        pad_bytes=b"\0"), "read"),
    (19, "PAYLOAD_LEN", ("fatal", "drop"), lambda p: p.send_first(E, data(1020)), None),
    (20, "RQ_EMPTY", ("rnr", "rnr"), only, "empty"),
    (21, "PSN", ("nak", "nak"), lambda p: only(p, psn=E + 1), None),
    (21, "PSN", ("drop", "drop"), lambda p: only(p, psn=E + 1), "latched"),
    (22, "AETH", ("fatal", "drop"), lambda p: p.acknowledge(S, 0x45), "send"),
    (23, "BAD_RESPONSE", ("fatal", "fatal"), lambda p: p.acknowledge(S, NAK_INV), "send"),
    (23, "BAD_RESPONSE", ("fatal", "fatal"),
     lambda p: p.packet(roce.READ_MIDDLE, S, data(1024), ack=0), "read"),
    (27, "SRC_IP", ("drop", "drop"), lambda p: only(p, src_ip="192.0.2.9"), None),
    (28, "SRC_MAC", ("accept", "drop"), lambda p: only(p, src_mac="02:00:00:00:00:66"), None),
    (30, "ICRC", ("drop", "drop"), lambda p: bad_icrc(only(p)), None),
    (31, "FCS", ("drop", "drop"), only, "fcs"),
)
# Faults behind which a parser cannot know where the BTH is.
NO_BTH = (2, 10, 12)


class Syndromes(ReqCase):
    """RX-ERR-01: one record a packet, with all that `rx_errors` tells."""

    FIXED = {"ip": "4"}
    PROFILES = ("iba", "ernic")

    def prepare(self, profile, how):
        self.req(recv=0 if how == "empty" else 4, profile=profile)
        if how in ("read", "send"):
            self.post(self.wr("RDMA_READ", 2048) if how == "read" else self.wr("SEND", 10))
        elif how == "latched":
            self.assertEqual(1, len(self.feed(only(self.peer, psn=E + 5))))
            self.rpc("rx_errors", max=8)

    def send(self, frame, how):
        self.dut.rx(frame, fcs_bad=how == "fcs")
        return self.feed()

    def record(self, frame, bit):
        r, = self.records(1)
        self.assertEqual((frame[:128].hex(), len(frame), "p0"),
                         (r["header"], r["length"], r["port"]))
        self.assertIn(r["worker"], (0, 1) if variant.handed_over() else (0,))
        if bit not in NO_BTH:
            at = roce.behind_tag(frame, UDP4 + 8 + (4 if bit == 3 else 0))
            qpn, word = struct.unpack_from(">II", frame, at + 4)
            self.assertEqual((qpn & 0xFFFFFF, word & 0xFFFFFF, frame[at]),
                             (r["qp_num"], r["psn"], r["opcode"]))
        return r

    def walk(self, profile):
        seen = 0
        for bit, name, impacts, build, how in SYNDROMES:
            impact = impacts[self.PROFILES.index(profile)]
            with self.subTest(bit=bit, profile=profile, impact=impact, how=how):
                self.prepare(profile, how)
                counter = "rx_syndrome_%d" % bit
                before = self.dut.counters()[counter]
                frame = build(self.peer)
                got = self.send(frame, how)
                moved = self.dut.counters()[counter] - before
                if impact == "accept":
                    self.assertEqual((0, [], 1), (moved, self.rpc("rx_errors", max=8), len(got)))
                    continue
                self.assertEqual(1, moved)
                if variant.errbuf():
                    r = self.record(frame, bit)
                    self.assertEqual((1 << bit, [name], impact),
                                     (r["syndrome"], r["names"], r["impact"]))
                self.assertEqual(1 if impact in ("nak", "rnr") or (impact == "fatal" and not how)
                                 else 0, len(got), got)
                self.assertEqual("ERR" if impact == "fatal" else "RTS", self.state())
                seen |= 1 << bit
        return seen

    def test_RX_SYN_32_every_bit_iba(self):
        """The source MAC is looked at only where the knob says so (RX-SYN-28)."""
        seen = self.walk("iba")
        self.assertEqual(ALL_BITS ^ 1 << 28, seen)
        self.req(recv=4, knobs={"rx.check_src_mac": "on"})
        frame = only(self.peer, src_mac="02:00:00:00:00:66")
        self.assertEqual([], self.feed(frame))
        self.assertEqual(1, self.delta("rx_syndrome_28"))
        if variant.errbuf():
            r = self.record(frame, 28)
            self.assertEqual((1 << 28, ["SRC_MAC"], "drop"),
                             (r["syndrome"], r["names"], r["impact"]))

    def test_RX_SYN_32_every_bit_ernic(self):
        self.assertEqual(ALL_BITS, self.walk("ernic"))


# ---- FATAL codes --------------------------------------------------------------------------------

def read_only(p, length, opcode=roce.READ_ONLY, psn=S):
    ext = b"" if opcode == roce.READ_MIDDLE else roce.aeth(0x1F, 1)
    return p.packet(opcode, psn, data(length), ext, ack=0)


# code, what the DUT has asked for (None: it answers), frames; other objects
FATAL_CODES = (
    (1, None, lambda p: [p.send_middle(E, data(1024))], {}),
    (1, None, lambda p: [p.send_first(E, data(1024)), p.send_only(E + 1)], {}),
    (2, None, lambda p: [p.send_first(E, data(1020))], {}),
    (2, None, lambda p: [p.send_first(E, data(1024), pad=1, pad_bytes=b"\0")], {}),
    (3, None, lambda p: [p.send_middle(E, data(1020))], {}),
    (4, None, lambda p: [p.packet(0x1F, E)], {}),
    (5, ("SEND", 10, {"sg_list": [{"lkey": "0x99", "addr": hex(LVA), "length": 10}]}), None, {}),
    (6, ("SEND", 10, {}), "silence", {"retry_cnt": 0}),
    (9, ("SEND", 10, {}), lambda p: [p.acknowledge(S, roce.SYN_RNR + 1)], {"rnr_retry": 0}),
    (10, ("SEND", 10, {}), lambda p: [p.acknowledge(S, NAK_INV)], {}),
    (10, ("SEND", 10, {}), lambda p: [p.acknowledge(S, NAK_RAE)], {}),
    (10, ("SEND", 10, {}), lambda p: [p.acknowledge(S, NAK_ROE)], {}),
    (12, ("SEND", 10, {}), lambda p: [read_only(p, 10)], {}),
    (16, None, lambda p: [p.read_req(E, LVA, RKEY, 4)], {"max_dest_rd_atomic": 0}),
    (17, None, lambda p: [p.write_middle(E, data(1024))], {}),
    (18, None, lambda p: [p.write_first(E, data(1020), VA, RKEY, 4000)], {}),
    (19, None, lambda p: [p.write_middle(E, data(1020))], {}),
    (21, None, lambda p: [p.write_only(E, b"x", VA, BAD)], {}),
    (22, None, lambda p: [p.read_req(E, LVA, RKEY, 0x80000001)], {"good_key": True}),
    (23, None, lambda p: [p.read_req(E, VA, BAD, 0x80000001)], {}),
    (25, ("SEND", 10, {}), lambda p: [p.acknowledge(S, 0x45)], {}),
    (26, ("RDMA_READ", 500, {}), lambda p: [read_only(p, 400)], {}),
    (27, ("RDMA_READ", 2048, {}), lambda p: [read_only(p, 1024, roce.READ_MIDDLE)], {}),
    (28, ("RDMA_READ", 500, {}), lambda p: [read_only(p, 500, roce.READ_LAST)], {}),
    (30, ("RDMA_READ", 3000, {}),
     lambda p: [read_only(p, 1024, roce.READ_FIRST), read_only(p, 1000, roce.READ_MIDDLE, S + 1)],
     {}),
    (31, ("RDMA_READ", 3000, {}),
     lambda p: [read_only(p, 1024, roce.READ_FIRST), read_only(p, 1024, roce.READ_MIDDLE, S + 1),
                read_only(p, 900, roce.READ_LAST, S + 2)], {}),
)
# Table 2-4 has no code 0, 7, 8, 11, 14, 15, 20, 24, 29; 13 is never used (RX-FATAL-13, AMB-14).
NO_SUCH_CODE = (0, 7, 8, 11, 14, 15, 20, 24, 29)
NEVER_USED = (13,)


# AEQ-11: the event beside an error completion, where it is not QP_FATAL.
BESIDE = {"LOC_PROT_ERR": "QP_ACCESS_ERR", "REM_ACCESS_ERR": "QP_ACCESS_ERR",
          "REM_INV_REQ_ERR": "QP_REQ_ERR"}


class FatalCodes(ReqCase):
    """Each code in an event; ae.with_cqe is on, so that those tied to a request come as one too."""

    def provoke(self, asked, frames, params):
        params = dict(params)
        good_key = params.pop("good_key", False)
        self.req(recv=4, knobs={"ae.with_cqe": "on"}, **params)
        if good_key:
            self.make("mr_register", name="mr0", pd="pd0", length=dut.MR_LEN, addr=hex(LVA),
                      rkey=hex(RKEY), access=ALL_REMOTE, fill="zero")
        if asked is not None:
            opcode, length, more = asked
            wr = self.wr(opcode, length)
            wr.update(more)
            self.post(wr)
        if frames == "silence":
            self.feed(ns=10000 * MS)
        elif frames is not None:
            self.each(*frames(self.peer))

    def test_RX_FATAL_13_every_code(self):
        """RX-FATAL-01 .. RX-FATAL-28, by event and, where a request is at fault, by completion."""
        seen = set()
        for code, asked, frames, params in FATAL_CODES:
            with self.subTest(code=code, asked=asked):
                self.provoke(asked, frames, params)
                self.assertEqual("ERR", self.state())
                events = self.events()
                self.assertEqual([(QPN, code, "SQ" if asked else "RQ")],
                                 [(e["qp_num"], e["fatal_code"], e["source"]) for e in events])
                bad = [c for c in self.cqes() + self.cqes("rcq") if c["status"] != "WR_FLUSH_ERR"]
                self.assertEqual([code] * len(bad), [c["vendor_err"] for c in bad])
                if asked:
                    self.assertEqual([BESIDE.get(c["status"], "QP_FATAL") for c in bad],
                                     [e["event_type"] for e in events])
                seen.add(code)
        self.assertEqual(set(range(32)) - set(NO_SUCH_CODE) - set(NEVER_USED), seen)


# ---- precedence ---------------------------------------------------------------------------------

# (numbers of two neighbours), bit that is charged, profiles, stimulus, how. Number 3 is not used.
BOTH = ("iba", "ernic")
PAIRS = (
    ((1, 2), 31, BOTH, lambda p: bad_icrc(only(p)), "fcs"),
    ((2, 4), 30, BOTH, lambda p: bad_icrc(only(p, dst_mac=FOREIGN_MAC)), None),
    ((2, 4), 30, ("ernic",), lambda p: bad_icrc(only(p, src_mac=FOREIGN_MAC)), None),
    ((4, 5), 0, BOTH, lambda p: only(p, dst_mac=FOREIGN_MAC, src_ip="192.0.2.9"), None),
    ((4, 5), 28, ("ernic",), lambda p: only(p, src_mac=FOREIGN_MAC, src_ip="192.0.2.9"), None),
    ((5, 6), 27, BOTH, lambda p: bad_checksum(only(p, src_ip="192.0.2.9")), None),
    ((6, 7), 9, BOTH, lambda p: bad_checksum(options(only(p))), None),
    ((7, 8), 3, BOTH, lambda p: options(only(p), dst=bytes((192, 0, 2, 3))), None),
    ((8, 9), 8, BOTH, lambda p: udp_len(only(p, payload=data(8), dst_ip="192.0.2.3")), None),
    ((8, 9), 6, BOTH, lambda p: roce.with_ip_checksum(put16(udp_len(
        only(p, payload=data(8))), L3 + 6, 0x4008)), None),
    ((8, 9), 10, BOTH, lambda p: udp_len(beyond(only(p))), None),
    ((9, 10), 12, BOTH, lambda p: udp_len(only(p, payload=data(8), tver=1)), None),
    ((10, 11), 13, BOTH, lambda p: only(p, tver=1, qpn=0x4444), None),
    ((11, 12), 15, BOTH, lambda p: only(p, psn=E + 1), "init"),
    ((12, 13), 21, BOTH, lambda p: only(p, psn=E + 1), "empty"),
    # The profiles differ here: RX-PREC-05, RX-PREC-06.
    ((13, 14), 20, ("ernic",), lambda p: p.send_middle(E, data(1024)), "empty"),
    ((13, 14), 16, ("iba",), lambda p: p.send_middle(E, data(1024)), "empty"),
    # Bit 17 has number 10 in the table, but only a packet at ePSN is charged with it: RX-PREC-04.
    ((10, 12), 21, BOTH, lambda p: p.packet(0x1F, E + 1), None),
    # Equal numbers: the lowest bit counts, and both are told (RX-PREC-02).
    ((8, 8), 6, BOTH, lambda p: put16(only(p, dst_ip="192.0.2.3"), L3 + 6, 0x4008, True), None),
    ((10, 10), 13, BOTH, lambda p: only(p, tver=1, qpn=0xFFFFFF), None),
)


class Precedence(Syndromes):

    test_RX_SYN_32_every_bit_iba = test_RX_SYN_32_every_bit_ernic = None

    def down_to_init(self):
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("INIT")

    def test_RX_PREC_01_RX_PREC_02_every_adjacent_pair(self):
        """A packet with two faults is one drop, charged to the one with the smaller number."""
        numbers = set()
        for pair, bit, profiles, build, how in PAIRS:
            for profile in profiles:
                with self.subTest(pair=pair, bit=bit, profile=profile):
                    self.prepare(profile, how)
                    if how == "init":
                        self.down_to_init()
                    before = self.dut.counters()
                    frame = build(self.peer)
                    self.send(frame, how)
                    after = self.dut.counters()
                    self.assertEqual(
                        ["rx_syndrome_%d" % bit],
                        [n for n in after if n.startswith("rx_syndrome") and
                         after[n] != before[n]])
                    for r in self.records(1):
                        self.assertTrue(r["syndrome"] >> bit & 1, r)
                        if pair[0] == pair[1]:
                            self.assertEqual(2, r["syndrome"].bit_count(), r)
                        self.assertEqual(0, r["syndrome"] & sum(1 << b for b in RESERVED))
            numbers.add(pair)
        ladder = (1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14)
        self.assertLessEqual(set(zip(ladder, ladder[1:])), numbers)


# step, step behind it, answer, FATAL code or None, completion or None, frames, objects.
# A packet cannot fail step 8 and 9: a SEND has no R_Key, and a WRITE fills no receive WQE.
STEPS = (
    (1, 2, NAK_SEQ, None, None, lambda p: [p.send_middle(E + 1, data(1024), ack=1)], {}),
    (2, 3, NAK_INV, 17, None, lambda p: [p.write_middle(E, data(1024))],
     {"qp_access_flags": ["REMOTE_READ"]}),
    (3, 4, NAK_INV, 4, None, lambda p: [p.write_only(E, data(1028), VA, RKEY)],
     {"qp_access_flags": ["REMOTE_READ"]}),
    (4, 5, NAK_INV, 2, None,
     lambda p: [p.packet(roce.READ_REQ, E, data(4), roce.reth(VA, RKEY, 4))],
     {"max_dest_rd_atomic": 0}),
    (5, 6, NAK_INV, 16, None, lambda p: [p.read_req(E, VA, RKEY, 0x80000001)],
     {"max_dest_rd_atomic": 0}),
    (5, 6, NAK_INV, 16, None, lambda p: [p.fetch_add(E, VA + 1, RKEY, 1)],
     {"max_dest_rd_atomic": 0}),
    (6, 7, NAK_INV, 22, None, lambda p: [p.write_only_imm(E, data(8), VA, RKEY, length=9)],
     {"recv": 0}),
    (7, 8, roce.SYN_RNR + 12, None, None, lambda p: [p.write_only_imm(E, b"x", VA, BAD)],
     {"recv": 0}),
    (8, 10, NAK_RAE, 21, "REM_ACCESS_ERR", lambda p: [p.write_only_imm(E, b"x", VA, BAD)],
     {"recv": 0, "wqe": {"lkey": "0x123456", "addr": "0x1000", "length": 10}}),
    (9, 10, NAK_INV, 0, "LOC_LEN_ERR", lambda p: [p.send_only(E, data(11))],
     {"recv": 0, "wqe": {"lkey": "0x123456", "addr": "0x1000", "length": 10}}),
    (10, 11, NAK_ROE, 0, "LOC_PROT_ERR", lambda p: [p.send_only_inv(E, b"x", BAD)],
     {"recv": 0, "wqe": {"lkey": "0x123456", "addr": "0x1000", "length": 10}}),
)


class ResponderSteps(dut.DutCase):

    def test_RX_PREC_03_every_adjacent_step(self):
        """One packet that fails two neighbouring checks: the first of them decides."""
        for first, second, syndrome, code, status, frames, params in STEPS:
            with self.subTest(first=first, second=second):
                params = dict(params)
                wqe = params.pop("wqe", None)
                self.resp(**params)
                if wqe is not None:
                    self.post_recv_sges([wqe])
                got = self.each(*frames(self.peer))
                self.assertEqual([(E, syndrome)], [(f.psn, f.syndrome) for f in got])
                self.assertEqual("RTS" if code is None else "ERR", self.state())
                events = self.events()
                done = [c for c in self.cqes() if c["status"] != "WR_FLUSH_ERR"]
                self.assertEqual([status] if status else [], [c["status"] for c in done])
                if code is not None:
                    told = done[0]["vendor_err"] if status else events[0]["fatal_code"]
                    self.assertEqual(code, told)
        steps = {(a, b) for a, b, *_ in STEPS}
        self.assertEqual({(n, n + 1) for n in range(1, 11)} - {(8, 9)} | {(8, 10)}, steps)


class Starved(dut.DutCase):
    """RESP-RNR-11: the port has no buffer for an answer."""

    def starve(self):
        self.dut.command("starve 0 0")
        self.addCleanup(self.dut.command, "sate")

    def test_RESP_RNR_11_read_without_buffers(self):
        """No NAK that ends anything: the READ waits for buffers."""
        self.resp(mr_fill="pattern:3")
        self.starve()
        frame = self.peer.read_req(E, VA, RKEY, 3000)
        self.dut.rx(frame)
        self.assertEqual([], self.dut.command("turn 8"))
        self.assertEqual(1, self.delta("rx_read_requests"))
        self.dut.command("sate")
        self.expect(self.feed(), dut.ReadResponse(E, roce.pattern(3, 3000), 1))
        self.expect(self.feed(frame), dut.ReadResponse(E, roce.pattern(3, 3000), 1))
        self.expect(self.feed(self.peer.send_only(E + 3, b"x")), dut.Ack(E + 3, 2))
        self.assertEqual("RTS", self.state())
        self.assertEqual([], self.events())

    def test_RESP_RNR_11_acknowledgements_use_the_requests_buffer(self):
        self.resp()
        self.starve()
        self.expect(self.feed(self.peer.send_only(E, b"x")), dut.Ack(E, 1))


if __name__ == "__main__":
    dut.main()
