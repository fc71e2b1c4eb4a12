# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames for the black-box tests: made, read and checked, and compared with Scapy's.

Nothing here comes from lib/: opcodes, header sizes and checks are typed from the rules. Scapy's
contrib.roce is the oracle of the ICRC over IPv4; IPv6 has the zlib one below alone.
"""
import ipaddress
import struct
import zlib
from dataclasses import dataclass, replace

import scapy_frame
from pattern import pattern

ROCE_PORT = 4791
PSN_MASK = 0xFFFFFF
IP_FLAGS = {0: 0, "MF": 0x2000, "DF": 0x4000}

# RC opcodes
SEND_FIRST, SEND_MIDDLE, SEND_LAST, SEND_LAST_IMM, SEND_ONLY, SEND_ONLY_IMM = range(0x00, 0x06)
WRITE_FIRST, WRITE_MIDDLE, WRITE_LAST, WRITE_LAST_IMM, WRITE_ONLY, WRITE_ONLY_IMM = range(0x06,
                                                                                          0x0C)
READ_REQ, READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY = range(0x0C, 0x11)
ACK, ATOMIC_ACK, CMP_SWAP, FETCH_ADD = range(0x11, 0x15)
SEND_LAST_INV, SEND_ONLY_INV, FLUSH, ATOMIC_WRITE = 0x16, 0x17, 0x1C, 0x1D
CNP = 0x81

# UC has the same SENDs and WRITEs, XRC all; the three high bits of an opcode are the service.
UC, UD, XRC = 0x20, 0x60, 0xA0
UNLIKE_RC = frozenset([*range(UC | 0x0C, XRC), *range(XRC + 0x18, XRC + FLUSH), *range(0xBE, 256)])
UD_SEND_ONLY, UD_SEND_ONLY_IMM = 0x64, 0x65


def operation(opcode):
    """The RC opcode that does the same on RC; None of what another service alone has."""
    return None if opcode in UNLIKE_RC else opcode & 0x1F


NAMES = {
    SEND_FIRST: "SEND_FIRST", SEND_MIDDLE: "SEND_MIDDLE", SEND_LAST: "SEND_LAST",
    SEND_LAST_IMM: "SEND_LAST_IMM", SEND_ONLY: "SEND_ONLY", SEND_ONLY_IMM: "SEND_ONLY_IMM",
    WRITE_FIRST: "WRITE_FIRST", WRITE_MIDDLE: "WRITE_MIDDLE", WRITE_LAST: "WRITE_LAST",
    WRITE_LAST_IMM: "WRITE_LAST_IMM", WRITE_ONLY: "WRITE_ONLY", WRITE_ONLY_IMM: "WRITE_ONLY_IMM",
    READ_REQ: "READ_REQ", READ_FIRST: "READ_RESP_FIRST", READ_MIDDLE: "READ_RESP_MIDDLE",
    READ_LAST: "READ_RESP_LAST", READ_ONLY: "READ_RESP_ONLY", ACK: "ACK",
    ATOMIC_ACK: "ATOMIC_ACK", CMP_SWAP: "CMP_SWAP", FETCH_ADD: "FETCH_ADD",
    SEND_LAST_INV: "SEND_LAST_INV", SEND_ONLY_INV: "SEND_ONLY_INV", ATOMIC_WRITE: "ATOMIC_WRITE",
    FLUSH: "FLUSH", CNP: "CNP",
}


def name_of(opcode):
    """For people: "SEND_ONLY", "UC SEND_ONLY"."""
    if opcode in UNLIKE_RC or opcode < UC:
        return NAMES.get(opcode, "opcode 0x%02x" % opcode)
    service = "XRC " if opcode >= XRC else "UC "
    return service + NAMES.get(operation(opcode), "opcode 0x%02x" % opcode)


RESPONSES = frozenset((READ_FIRST, READ_MIDDLE, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK))
HAS_RETH = frozenset((WRITE_FIRST, WRITE_ONLY, WRITE_ONLY_IMM, READ_REQ, FLUSH, ATOMIC_WRITE))
HAS_IMM = frozenset((SEND_LAST_IMM, SEND_ONLY_IMM, WRITE_LAST_IMM, WRITE_ONLY_IMM))
HAS_IETH = frozenset((SEND_LAST_INV, SEND_ONLY_INV))
HAS_ATOMIC = frozenset((CMP_SWAP, FETCH_ADD))
HAS_AETH = frozenset((READ_FIRST, READ_LAST, READ_ONLY, ACK, ATOMIC_ACK))

# AETH syndromes
SYN_ACK, SYN_RNR = 0x1F, 0x20
NAK_SEQ, NAK_INV, NAK_RAE, NAK_ROE, NAK_XRC = range(0x60, 0x65)     # the last: no such SRQ


def psn_add(psn, n):
    return (psn + n) & PSN_MASK


def data(length, seed=1):
    """Payload without a short period, so that misplaced bytes show."""
    return pattern(seed, length)


# ---- extension headers --------------------------------------------------------------------------

def reth(va, rkey, length):
    return struct.pack(">QII", va & 0xFFFFFFFFFFFFFFFF, rkey, length)


def atomic_eth(va, rkey, swap_add, compare):
    return struct.pack(">QIQQ", va & 0xFFFFFFFFFFFFFFFF, rkey, swap_add, compare)


def imm_dt(value):
    return struct.pack(">I", value)


def ieth(rkey):
    return struct.pack(">I", rkey)


def deth(qkey, src_qpn):
    return struct.pack(">II", qkey, src_qpn)


def aeth(syndrome, msn):
    return struct.pack(">I", syndrome << 24 | msn)


# ---- ICRC and checksum, independent of Scapy ----------------------------------------------------

def offsets(frame):
    """(offset of the IP header, offset of the UDP header, IP version)."""
    l3 = 18 if frame[12:14] == b"\x81\x00" else 14
    kind = frame[l3 - 2:l3]
    if kind == b"\x08\x00":
        return l3, l3 + (frame[l3] & 15) * 4, 4
    if kind == b"\x86\xdd":
        return l3, l3 + 40, 6
    raise ValueError("no IP frame: %s" % frame[:20].hex())


def icrc(frame):
    """Value of the ICRC over a frame, and where its four bytes stand."""
    l3, udp, version = offsets(frame)
    end = udp + struct.unpack_from(">H", frame, udp + 4)[0] - 4
    masked = bytearray(frame[l3:end])
    if version == 4:
        masked[1] = masked[8] = 0xFF
        masked[10:12] = b"\xff\xff"
    else:
        masked[0] |= 0x0F
        masked[1:4] = b"\xff\xff\xff"
        masked[7] = 0xFF
    at = udp - l3
    masked[at + 6:at + 8] = b"\xff\xff"
    masked[at + 12] = 0xFF
    return zlib.crc32(bytes(8 * b"\xff") + bytes(masked)), end


def with_icrc(frame):
    value, end = icrc(frame)
    return frame[:end] + struct.pack("<I", value) + frame[end + 4:]


def has_good_icrc(frame):
    return with_icrc(frame) == frame


def ip_sum(header):
    total = sum(struct.unpack(">%dH" % (len(header) // 2), header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def with_ip_checksum(frame):
    l3, udp, version = offsets(frame)
    if version != 4:
        return frame
    header = bytearray(frame[l3:udp])
    header[10:12] = b"\0\0"
    struct.pack_into(">H", header, 10, 0xFFFF ^ ip_sum(bytes(header)))
    return frame[:l3] + bytes(header) + frame[udp:]


def edit(frame, at, new, fix=True):
    """Replace bytes; then make checksum and ICRC right again unless told not to."""
    out = frame[:at] + bytes(new) + frame[at + len(new):]
    return with_icrc(with_ip_checksum(out)) if fix else out


def marked(frame):
    """The same with the mark of a congested router (ECN CE)."""
    l3, _, version = offsets(frame)
    at, bits = (l3 + 1, 0x03) if version == 4 else (l3 + 1, 0x30)
    return edit(frame, at, bytes([frame[at] | bits]))


def behind_tag(frame, at):
    """Where that stands which stands at `at` of an untagged frame, from the type on."""
    return at + offsets(frame)[0] - 14


def flip(frame, bit):
    """Flip one bit and mend nothing."""
    out = bytearray(frame)
    out[bit // 8] ^= 0x80 >> bit % 8
    return bytes(out)


def scapy_icrc(frame):
    """Scapy's opinion of the ICRC of an IPv4 frame, as the four bytes on the wire."""
    _, udp, _ = offsets(frame)
    return scapy_frame.icrc(frame[:udp + struct.unpack_from(">H", frame, udp + 4)[0]])


# ---- requests -----------------------------------------------------------------------------------

@dataclass(frozen=True)
class Peer:
    """The tester's end of one connection; its methods make frames for the DUT."""
    src_mac: str = "02:00:00:00:00:22"
    dst_mac: str = "02:00:00:00:00:11"
    src_ip: str = "192.0.2.2"
    dst_ip: str = "192.0.2.1"
    qpn: int = 0x11           # the DUT's QP
    own_qpn: int = 0x22
    sport: int = 0xC022
    pkey: int = 0xFFFF
    vlan: int = None
    mtu: int = 1024
    ttl: int = 64             # of what it gets
    service: int = 0          # UC, XRC: packets get this service's opcodes
    srqn: int = 0             # XRC: what requests name

    def with_(self, **kw):
        return replace(self, **kw)

    @property
    def v6(self):
        return ":" in self.dst_ip

    def packet(self, opcode, psn, payload=b"", ext=b"", *, ack=1, se=0, mig=1, pad=None,
               pad_bytes=None, tver=0, pkey=None, qpn=None, fecn=0, becn=0, resv6=0, resv7=0,
               tos=0, ttl=64, flags="DF", src_ip=None, dst_ip=None, src_mac=None, dst_mac=None,
               flow=0):
        """One frame, its ICRC right. `pad` alone sets the field; pad_bytes the bytes as well."""
        if opcode < UC:
            opcode |= self.service
            if self.service == XRC and opcode & 0x1F not in RESPONSES:
                ext = imm_dt(self.srqn) + ext
        if pad is None:
            pad = -len(payload) % 4
        if pad_bytes is None:
            pad_bytes = bytes(-len(payload) % 4)
        src_mac, dst_mac = src_mac or self.src_mac, dst_mac or self.dst_mac
        src_ip, dst_ip = src_ip or self.src_ip, dst_ip or self.dst_ip
        pkey = self.pkey if pkey is None else pkey
        qpn = self.qpn if qpn is None else qpn
        psn &= PSN_MASK
        body = ext + payload + pad_bytes
        bth = struct.pack(">BBHIII", opcode, se << 7 | mig << 6 | pad << 4 | tver, pkey,
                          (fecn << 7 | becn << 6 | resv6) << 24 | qpn,
                          (ack << 7 | resv7) << 24 | psn, 0)[:12]
        length = 8 + len(bth) + len(body) + 4
        udp = struct.pack(">4H", self.sport, ROCE_PORT, length, 0)
        ether = bytes.fromhex((dst_mac + src_mac).replace(":", ""))
        if self.vlan is not None:
            ether += struct.pack(">HH", 0x8100, self.vlan)
        if self.v6:
            ip = struct.pack(">HIHBB", 0x86DD, 6 << 28 | tos << 20 | flow, length, 17, ttl)
        else:
            ip = struct.pack(">HBBHHHBBH", 0x0800, 0x45, tos, 20 + length, 1, IP_FLAGS[flags], ttl,
                             17, 0)
        ip += ipaddress.ip_address(src_ip).packed + ipaddress.ip_address(dst_ip).packed
        frame = with_icrc(with_ip_checksum(ether + ip + udp + bth + body + bytes(4)))
        if scapy_frame.looks(opcode, self.v6, self.vlan is None):
            theirs = scapy_frame.make(
                {"src": src_mac, "dst": dst_mac}, self.vlan,
                {"src": src_ip, "dst": dst_ip, "tc": tos, "hlim": ttl, "fl": flow} if self.v6 else
                {"src": src_ip, "dst": dst_ip, "tos": tos, "ttl": ttl, "flags": flags}, self.sport,
                {"opcode": opcode, "solicited": se, "migreq": mig, "padcount": pad,
                 "version": tver, "pkey": pkey, "fecn": fecn, "becn": becn, "resv6": resv6,
                 "dqpn": qpn, "ackreq": ack, "resv7": resv7, "psn": psn}, body)
            # Of IPv6 it knows no ICRC.
            if theirs != frame[:-4] if self.v6 else theirs != frame:
                raise AssertionError("Scapy makes another frame: %s, not %s" % (theirs.hex(),
                                                                                frame.hex()))
        return frame

    # SEND
    def send_only(self, psn, payload=b"", **kw):
        return self.packet(SEND_ONLY, psn, payload, **kw)

    def send_only_imm(self, psn, payload=b"", imm=0x11223344, **kw):
        return self.packet(SEND_ONLY_IMM, psn, payload, imm_dt(imm), **kw)

    def send_only_inv(self, psn, payload, rkey, **kw):
        return self.packet(SEND_ONLY_INV, psn, payload, ieth(rkey), **kw)

    def send_first(self, psn, payload, **kw):
        return self.packet(SEND_FIRST, psn, payload, **{"ack": 0, **kw})

    def send_middle(self, psn, payload, **kw):
        return self.packet(SEND_MIDDLE, psn, payload, **{"ack": 0, **kw})

    def send_last(self, psn, payload, **kw):
        return self.packet(SEND_LAST, psn, payload, **kw)

    def send_last_imm(self, psn, payload, imm=0x11223344, **kw):
        return self.packet(SEND_LAST_IMM, psn, payload, imm_dt(imm), **kw)

    # WRITE
    def write_only(self, psn, payload, va, rkey, length=None, **kw):
        length = len(payload) if length is None else length
        return self.packet(WRITE_ONLY, psn, payload, reth(va, rkey, length), **kw)

    def write_only_imm(self, psn, payload, va, rkey, length=None, imm=0x11223344, **kw):
        length = len(payload) if length is None else length
        return self.packet(WRITE_ONLY_IMM, psn, payload, reth(va, rkey, length) + imm_dt(imm), **kw)

    def write_first(self, psn, payload, va, rkey, length, **kw):
        return self.packet(WRITE_FIRST, psn, payload, reth(va, rkey, length), **{"ack": 0, **kw})

    def write_middle(self, psn, payload, **kw):
        return self.packet(WRITE_MIDDLE, psn, payload, **{"ack": 0, **kw})

    def write_last(self, psn, payload, **kw):
        return self.packet(WRITE_LAST, psn, payload, **kw)

    def write_last_imm(self, psn, payload, imm=0x11223344, **kw):
        return self.packet(WRITE_LAST_IMM, psn, payload, imm_dt(imm), **kw)

    # READ and ATOMIC
    def read_req(self, psn, va, rkey, length, **kw):
        return self.packet(READ_REQ, psn, b"", reth(va, rkey, length), **kw)

    def cmp_swap(self, psn, va, rkey, compare, swap, **kw):
        return self.packet(CMP_SWAP, psn, b"", atomic_eth(va, rkey, swap, compare), **kw)

    def fetch_add(self, psn, va, rkey, add, **kw):
        return self.packet(FETCH_ADD, psn, b"", atomic_eth(va, rkey, add, 0), **kw)

    # responses (to the DUT's requester)
    def acknowledge(self, psn, syndrome=SYN_ACK, msn=0, **kw):
        return self.packet(ACK, psn, b"", aeth(syndrome, msn), **{"ack": 0, **kw})

    def cnp(self, **kw):
        return self.packet(CNP, 0, bytes(16), **{"ack": 0, "mig": 0, "becn": 1, **kw})

    # whole messages
    def _parts(self, payload):
        return [payload[i:i + self.mtu] for i in range(0, len(payload), self.mtu)] or [b""]

    def send(self, psn, payload, **kw):
        """All packets of one SEND; AckReq on the last."""
        parts = self._parts(payload)
        if len(parts) == 1:
            return [self.send_only(psn, payload, **kw)]
        return ([self.send_first(psn, parts[0])] +
                [self.send_middle(psn_add(psn, i), p) for i, p in enumerate(parts[1:-1], 1)] +
                [self.send_last(psn_add(psn, len(parts) - 1), parts[-1], **kw)])

    def write(self, psn, payload, va, rkey, **kw):
        """All packets of one WRITE; AckReq on the last."""
        parts = self._parts(payload)
        if len(parts) == 1:
            return [self.write_only(psn, payload, va, rkey, **kw)]
        return ([self.write_first(psn, parts[0], va, rkey, len(payload))] +
                [self.write_middle(psn_add(psn, i), p) for i, p in enumerate(parts[1:-1], 1)] +
                [self.write_last(psn_add(psn, len(parts) - 1), parts[-1], **kw)])


# ---- reading frames -----------------------------------------------------------------------------

# Flow labels, and the UDP source ports that Linux makes of them.
LABELS = ((1, 0xC001), (0x3FFF, 0xFFFF), (0x4000, 0xC001), (0x12345, 0xE341), (0xFFFFF, 0xFFC0))


class Frame:
    """A RoCEv2 frame taken apart by position; None where the opcode has no such header."""

    def __init__(self, raw):
        self.raw = raw
        self.l3, self.udp, self.version = offsets(raw)
        self.dst_mac = ":".join("%02x" % b for b in raw[0:6])
        self.src_mac = ":".join("%02x" % b for b in raw[6:12])
        self.vlan = struct.unpack_from(">H", raw, 14)[0] & 0xFFF if self.l3 == 18 else None
        if self.version == 4:
            self.tos, self.ip_len = raw[self.l3 + 1], struct.unpack_from(">H", raw, self.l3 + 2)[0]
            self.frag = struct.unpack_from(">H", raw, self.l3 + 6)[0]
            self.ttl, self.proto = raw[self.l3 + 8], raw[self.l3 + 9]
            self.src_ip = str(ipaddress.ip_address(raw[self.l3 + 12:self.l3 + 16]))
            self.dst_ip = str(ipaddress.ip_address(raw[self.l3 + 16:self.l3 + 20]))
            ip_end = self.l3 + self.ip_len
            self.flow_label = None
        else:
            self.tos = (raw[self.l3] << 4 | raw[self.l3 + 1] >> 4) & 0xFF
            self.flow_label = int.from_bytes(raw[self.l3 + 1:self.l3 + 4], "big") & 0xFFFFF
            self.ip_len = struct.unpack_from(">H", raw, self.l3 + 4)[0]
            self.frag = 0
            self.proto, self.ttl = raw[self.l3 + 6], raw[self.l3 + 7]
            self.src_ip = str(ipaddress.ip_address(raw[self.l3 + 8:self.l3 + 24]))
            self.dst_ip = str(ipaddress.ip_address(raw[self.l3 + 24:self.l3 + 40]))
            ip_end = self.l3 + 40 + self.ip_len
        self.sport, self.dport, self.udp_len, self.udp_sum = struct.unpack_from(">4H", raw,
                                                                                self.udp)
        self.trailer = raw[ip_end:]
        b = raw[self.udp + 8:ip_end]
        self.opcode, self.flags, self.pkey = struct.unpack_from(">BBH", b, 0)
        self.se, self.mig = self.flags >> 7, self.flags >> 6 & 1
        self.pad, self.tver = self.flags >> 4 & 3, self.flags & 15
        self.fecn, self.becn, self.resv6 = b[4] >> 7, b[4] >> 6 & 1, b[4] & 0x3F
        self.qpn = int.from_bytes(b[5:8], "big")
        self.ackreq, self.resv7 = b[8] >> 7, b[8] & 0x7F
        self.psn = int.from_bytes(b[9:12], "big")
        self.syndrome = self.msn = self.original = self.va = self.rkey = self.length = None
        self.swap_add = self.compare = self.imm = self.inv = self.qkey = None
        self.src_qpn, self.srqn, at = None, None, 12
        if self.opcode >> 5 == UD >> 5:
            self.qkey, self.src_qpn = struct.unpack_from(">II", b, at)
            at += 8
        if self.opcode >> 5 == XRC >> 5 and self.opcode & 0x1F not in RESPONSES:
            if b[at] != 0:
                raise AssertionError("XRC-02 reserved byte of the XRCETH: %s" % raw.hex())
            self.srqn = int.from_bytes(b[at + 1:at + 4], "big")
            at += 4
        kind = operation(self.opcode & 0x1F if self.qkey is not None else self.opcode)
        if kind == FLUSH:
            self.feth = struct.unpack_from(">I", b, at)[0]
            at += 4
        if kind in HAS_RETH:
            self.va, self.rkey, self.length = struct.unpack_from(">QII", b, at)
            at += 16
        if kind in HAS_ATOMIC:
            self.va, self.rkey, self.swap_add, self.compare = struct.unpack_from(">QIQQ", b, at)
            at += 28
        if kind in HAS_AETH:
            self.syndrome, self.msn = b[at], int.from_bytes(b[at + 1:at + 4], "big")
            at += 4
        if kind == ATOMIC_ACK:
            self.original = struct.unpack_from(">Q", b, at)[0]
            at += 8
        for name, kinds in (("imm", HAS_IMM), ("inv", HAS_IETH)):
            if kind in kinds:
                setattr(self, name, struct.unpack_from(">I", b, at)[0])
                at += 4
        self.payload = b[at:len(b) - 4 - self.pad]
        self.pad_bytes = b[len(b) - 4 - self.pad:len(b) - 4]

    @property
    def is_response(self):
        return operation(self.opcode) in RESPONSES

    @property
    def is_nak(self):
        return operation(self.opcode) == ACK and self.syndrome >> 5 in (1, 3)

    def key(self):
        """What two answers are compared by."""
        return (self.opcode, self.psn, self.syndrome, self.msn, self.original, self.payload)

    def __repr__(self):
        text = "%s psn %06x" % (name_of(self.opcode), self.psn)
        if self.syndrome is not None:
            text += " syndrome %02x msn %d" % (self.syndrome, self.msn)
        if self.original is not None:
            text += " original %#x" % self.original
        if self.va is not None:
            text += " va %#x rkey %#x" % (self.va, self.rkey)
        if self.payload:
            text += " payload %d" % len(self.payload)
        return "<%s>" % text


def check_frame(f, peer, cc=False):
    """WIRE-01, -03, -07, -10, -13, -14, -15, -16 and ICRC-05 on one frame that the DUT sent."""
    def need(cond, what):
        if not cond:
            raise AssertionError("%s in %r: %s" % (what, f, f.raw.hex()))

    need(f.proto == 17 and f.dport == ROCE_PORT, "WIRE-01 not UDP to 4791")
    need(f.vlan == peer.vlan, "WIRE-01 VLAN tag %r, not %r" % (f.vlan, peer.vlan))
    l3_len = f.ip_len if f.version == 4 else 40 + f.ip_len
    need(not f.trailer or (len(f.raw) == 60 and not any(f.trailer)),
         "WIRE-01 bytes behind the ICRC")
    need(f.udp_len == l3_len - (f.udp - f.l3), "WIRE-13 UDP length %d" % f.udp_len)
    need(len(f.raw) - len(f.trailer) == f.l3 + l3_len, "WIRE-13 IP length %d" % f.ip_len)
    if f.version == 4:
        need(f.raw[f.l3] == 0x45, "WIRE-14 IHL")
        need(f.frag == 0x4000, "WIRE-14 flags and fragment offset %04x" % f.frag)
        need(ip_sum(f.raw[f.l3:f.udp]) == 0xFFFF, "WIRE-14 header checksum")
    need(f.ttl == peer.ttl, "WIRE-14 TTL %d" % f.ttl)
    need(f.tos & 3 == (2 if cc and f.opcode != CNP else 0), "WIRE-14 ECN bits %d" % (f.tos & 3))
    need(0xC000 <= f.sport <= 0xFFFF, "WIRE-15 source port %#x" % f.sport)
    need(f.udp_sum == 0, "WIRE-15 UDP checksum %04x" % f.udp_sum)
    need(f.dst_mac == peer.src_mac, "WIRE-16 destination MAC %s" % f.dst_mac)
    need(f.src_mac == peer.dst_mac, "WIRE-16 source MAC %s" % f.src_mac)
    need(f.dst_ip == peer.src_ip, "WIRE-16 destination IP %s" % f.dst_ip)
    need(f.src_ip == peer.dst_ip, "WIRE-16 source IP %s" % f.src_ip)
    need(f.qpn == peer.own_qpn, "WIRE-16 DestQP %#x" % f.qpn)
    need(f.pkey == peer.pkey, "WIRE-16 P_Key %04x" % f.pkey)
    need(f.tver == 0, "WIRE-16 TVer %d" % f.tver)
    need(f.resv6 == 0 and f.resv7 == 0, "WIRE-03 reserved bits sent")
    if f.is_response:
        need(f.ackreq == 0 and f.se == 0, "WIRE-16 AckReq or SE in a response")
    need(f.pad == -len(f.payload) % 4, "WIRE-07 pad count %d" % f.pad)
    need(not any(f.pad_bytes), "WIRE-07 pad bytes not zero")
    if operation(f.opcode) in (ACK, ATOMIC_ACK, READ_REQ, CMP_SWAP, FETCH_ADD):
        need(not f.payload and f.pad == 0, "WIRE-10 payload")
    value, at = icrc(f.raw)
    need(f.raw[at:at + 4] == struct.pack("<I", value), "ICRC-05 ICRC")
    if f.version == 4 and scapy_frame.looks("read", f.opcode, f.vlan is None):
        need(f.raw[at:at + 4] == scapy_icrc(f.raw), "ICRC-05 ICRC by Scapy")
