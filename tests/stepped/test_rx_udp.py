# SPDX-License-Identifier: BSD-3-Clause
"""WIRE-15: the UDP checksum of what is received, which senders of RoCE leave out."""
import struct

import dut
import roce
from dut import E, QPN, RKEY, VA, Ack
from roce import data

CHECK = {"cc.cnp": "off", "cc.algo": "none", "rx.udp_checksum": "check"}


def udp_sum(frame):
    """The right one; RFC 768, RFC 8200: never 0."""
    l3, udp, version = roce.offsets(frame)
    length = struct.unpack_from(">H", frame, udp + 4)[0]
    ends = frame[l3 + 12:l3 + 20] if version == 4 else frame[l3 + 8:l3 + 40]
    body = bytearray(frame[udp:udp + length])
    body[6:8] = b"\0\0"
    pseudo = ends + struct.pack(">II", length, 17) + bytes(body) + bytes(length % 2)
    return (0xFFFF ^ roce.ip_sum(pseudo)) or 0xFFFF


def with_sum(frame, change=0):
    """With the right checksum, or one that is `change` off; the ICRC does not cover it."""
    _, udp, _ = roce.offsets(frame)
    value = udp_sum(frame)
    if change:
        value = (value + change) % 0x10000 or 1
    return frame[:udp + 6] + struct.pack(">H", value) + frame[udp + 8:]


class UdpCase(dut.DutCase):

    def frames(self, psn, **kw):
        """Packets of both ends of the length, and of the shortest."""
        p = self.peer
        return [p.send_only(psn, b"", **kw), p.write_only(psn + 1, data(1023), VA, RKEY, **kw),
                p.write_only(psn + 2, data(1024), VA, RKEY, **kw)]

    def taken(self, change):
        for i, frame in enumerate(self.frames(E)):
            self.assertEqual(roce.icrc(frame), roce.icrc(with_sum(frame, change)))
            self.expect(self.feed(with_sum(frame, change)), Ack(E + i, i + 1))

    def refused(self, *changes):
        n = 0
        for change in changes:
            for frame in self.frames(E):
                n += 1
                self.silent(self.feed(with_sum(frame, change)), ms=1)
                self.assertEqual(n, self.delta("rx_udp_checksum"))
        self.assertEqual(0, self.delta("rcvd_pkts"))

    def kinds(self):
        """IPv4, IPv6, and each with a tag."""
        for v6 in (False, True):
            for vlan in (None, 5):
                with self.subTest(v6=v6, vlan=vlan):
                    ah = {"dest_ip": "2001:db8::2" if v6 else "192.0.2.2", "hop_limit": 64,
                          "dest_mac": "02:00:00:00:00:22"}
                    self.resp(v6=v6, ah_attr=dict(ah, vlan=vlan) if vlan else ah)
                    self.peer = self.peer.with_(vlan=vlan)
                    yield


class Ignored(UdpCase):

    def test_ICRC_02_ICRC_03_any_checksum_is_taken(self):
        """By default: it may be rewritten on the way, and the ICRC still holds."""
        for change in (0, 1, 0x5555):
            for _ in self.kinds():
                self.taken(change)
        self.assertEqual(0, self.dut.counters()["rx_udp_checksum"])


class Checked(UdpCase):

    CONFIG = {"knobs": CHECK}

    def test_WIRE_15_a_right_one_is_taken(self):
        for _ in self.kinds():
            self.taken(0)

    def test_WIRE_15_none_is_taken(self):
        """Over IPv6, too: RFC 6935."""
        for _ in self.kinds():
            for i, frame in enumerate(self.frames(E)):
                self.expect(self.feed(frame), Ack(E + i, i + 1))

    def test_WIRE_15_a_wrong_one_is_not(self):
        for _ in self.kinds():
            self.refused(1, 0x100, 0xFFFE)
            self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))

    def test_WIRE_15_says_why(self):
        self.resp()
        self.silent(self.feed(with_sum(self.peer.send_only(E, b"x"), 1)), ms=1)
        r = self.rpc("rx_errors", max=8)[-1]
        self.assertEqual((["UDP_CHECKSUM"], "drop", QPN, 0),
                         (r["names"], r["impact"], r["qp_num"], r["syndrome"]))
        self.unchanged()


class Precedence(UdpCase):

    CONFIG = {"knobs": CHECK}

    def test_RX_PREC_01_other_reasons_come_first(self):
        self.resp()
        frame = with_sum(self.peer.send_only(E, b"x"), 1)
        for bad, counter in ((roce.flip(frame, len(frame) * 8 - 1), "rx_syndrome_30"),
                             (with_sum(self.peer.send_only(E, b"x", qpn=0x4242), 1),
                              "rx_syndrome_15"),
                             (with_sum(self.peer.send_only(E, b"x", pkey=0x1234), 1),
                              "rx_pkey_violation")):
            self.silent(self.feed(bad), ms=1)
            self.assertEqual((1, 0), (self.delta(counter), self.delta("rx_udp_checksum")))


class CheckedByTwo(Checked):
    """Some of them come to a worker that hands over what is good."""

    CONFIG = {"knobs": CHECK, "lcores": {"control": 0, "workers": [1, 2], "idle": "sleep"}}

    def qp_params(self, **kw):
        return dict(super().qp_params(**kw), worker=1)


if __name__ == "__main__":
    dut.main()
