# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 and VLAN: addresses that are resolved and answered, and RoCE over both, on both profiles."""
import struct

from scapy.layers.inet import IP, ICMP
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6)
from scapy.layers.l2 import ARP, Dot1Q, Ether

import dut
import roce
from dut import E, MS, QPN, RKEY, VA, Ack, AtomicAck, Nak, ReadResponse
from roce import NAK_RAE, data

DUT_MAC, DUT6, DUT4 = "02:00:00:00:00:11", "2001:db8::1", "192.0.2.1"
MAC9, PEER9, PEER9_4 = "02:00:00:00:00:99", "2001:db8::99", "192.0.2.99"


def tagged(ether, vlan, prio=0):
    return ether if vlan is None else ether / Dot1Q(vlan=vlan, prio=prio)


class Hosts(dut.DutCase):
    """The control lcore's frames."""

    def host(self, packet):
        self.dut.rx(bytes(packet))
        return [Ether(raw) for _, raw in self.dut.run()]

    def test_neighbour_solicitation_is_answered(self):
        for vlan in (None, 7):
            group = "ff02::1:ff00:1"
            got = self.host(tagged(Ether(src=MAC9, dst="33:33:ff:00:00:01"), vlan) /
                            IPv6(src=PEER9, dst=group, hlim=255) / ICMPv6ND_NS(tgt=DUT6) /
                            ICMPv6NDOptSrcLLAddr(lladdr=MAC9))
            self.assertEqual(1, len(got))
            na = got[0]
            self.assertEqual((MAC9, DUT_MAC), (na.dst, na.src))
            self.assertEqual(vlan, na[Dot1Q].vlan if Dot1Q in na else None)
            self.assertEqual((DUT6, PEER9, 255), (na[IPv6].src, na[IPv6].dst, na[IPv6].hlim))
            self.assertEqual((DUT6, 1, 1), (na[ICMPv6ND_NA].tgt, na[ICMPv6ND_NA].S,
                                            na[ICMPv6ND_NA].O))
            self.assertEqual(DUT_MAC, na[ICMPv6NDOptDstLLAddr].lladdr)
            again = Ether(bytes(na))
            del again[ICMPv6ND_NA].cksum
            self.assertEqual(na[ICMPv6ND_NA].cksum, Ether(bytes(again))[ICMPv6ND_NA].cksum)

    def test_solicitation_of_others_is_not(self):
        for target in ("2001:db8::2", "fe80::1"):
            self.assertEqual([], self.host(
                Ether(src=MAC9, dst="33:33:ff:00:00:02") /
                IPv6(src=PEER9, dst="ff02::1:ff00:2", hlim=255) / ICMPv6ND_NS(tgt=target) /
                ICMPv6NDOptSrcLLAddr(lladdr=MAC9)))

    def test_a_bad_checksum_is_nothing(self):
        """Whatever else is good of it."""
        self.assertEqual([], self.host(Ether(src=MAC9, dst=DUT_MAC) / IPv6(
            src=PEER9, dst=DUT6) / ICMPv6EchoRequest(id=3, seq=4, cksum=0x1234)))

    def test_echo(self):
        for vlan in (None, 7):
            got = self.host(tagged(Ether(src=MAC9, dst=DUT_MAC), vlan, 5) /
                            IPv6(src=PEER9, dst=DUT6) /
                            ICMPv6EchoRequest(id=3, seq=4, data=b"hello there"))
            self.assertEqual(1, len(got))
            self.assertEqual((3, 4, b"hello there"), (got[0][ICMPv6EchoReply].id,
                                                      got[0][ICMPv6EchoReply].seq,
                                                      got[0][ICMPv6EchoReply].data))
            self.assertEqual(vlan, got[0][Dot1Q].vlan if Dot1Q in got[0] else None)
            got = self.host(tagged(Ether(src=MAC9, dst=DUT_MAC), vlan) /
                            IP(src=PEER9_4, dst=DUT4) / ICMP(id=1, seq=2) / b"ping")
            self.assertEqual([0], [p[ICMP].type for p in got])

    def test_echo_of_no_host(self):
        """Nobody has such an address: an answer would go to many, or nowhere."""
        for src in ("0.0.0.9", "224.0.0.9", "255.255.255.255"):
            self.assertEqual([], self.host(Ether(src=MAC9, dst=DUT_MAC) /
                                           IP(src=src, dst=DUT4) / ICMP(id=1, seq=2)), src)

    def arp(self, src, vlan=None, prio=0, **kw):
        """Who has the DUT's address?"""
        got = self.host(tagged(Ether(src=MAC9, dst="ff:ff:ff:ff:ff:ff"), vlan, prio) /
                        ARP(hwsrc=MAC9, psrc=src, pdst=DUT4, **kw))
        return [f for f in got if ARP in f]

    def heard(self, ip):
        return [n["vlan"] for n in self.rpc("neighbor_list") if n.get("ipv4") == ip]

    def test_who_asks_is_a_neighbour_of_his_vlan(self):
        """Whatever his frame's priority; a group is nobody, and an answer is no question."""
        self.rpc("neighbor_flush")
        for vlan, prio in ((None, 0), (7, 5), (0, 3)):
            got = self.arp(PEER9_4, vlan, prio)
            self.assertEqual([(MAC9, DUT_MAC, DUT4)],
                             [(f.dst, f[ARP].hwsrc, f[ARP].psrc) for f in got])
        self.assertEqual([None, 7], self.heard(PEER9_4))
        self.arp("239.1.2.3")
        self.assertEqual([], self.heard("239.1.2.3"))
        self.assertEqual([], self.arp(PEER9_4, op=2))
        self.assertEqual([], self.arp(PEER9_4, hwtype=6))

    def test_short_frames_are_filled_up_with_zeros(self):
        """Not with what their buffer had before."""
        for _ in range(4):
            self.assertEqual(1, len(self.host(Ether(src=MAC9, dst=DUT_MAC) /
                                              IP(src=PEER9_4, dst=DUT4) / ICMP() /
                                              (b"\xff" * 100))))
            got = self.arp(PEER9_4)
            self.assertEqual((60, bytes(18)), (len(got[0]), bytes(got[0])[42:]))

    def test_neighbour_is_asked_for(self):
        """NS at once and again; what the NA says counts."""
        self.clear()
        self.make("cq_create", name="cq0", cqe=64)
        self.make("mr_register", name="mr0", pd="pd0", length=4096, addr=hex(VA), rkey=hex(RKEY),
                  access=dut.ALL_REMOTE)
        for i, vlan in enumerate((None, 9)):
            ip = "2001:db8::%x" % (0x90 + i)
            ah = {"dest_ip": ip, "hop_limit": 64}
            if vlan is not None:
                ah.update(vlan=vlan, vlan_priority=2)
            self.make("qp_create", **self.qp_params(ah_attr=ah, qp_num=0x30 + i))
            asked = [Ether(raw) for _, raw in self.dut.run()]
            self.assertEqual(1, len(asked), asked)
            ns = asked[0]
            self.assertEqual("33:33:ff:00:00:%02x" % (0x90 + i), ns.dst)
            self.assertEqual("ff02::1:ff00:%x" % (0x90 + i), ns[IPv6].dst)
            self.assertEqual((ip, 255, DUT_MAC), (ns[ICMPv6ND_NS].tgt, ns[IPv6].hlim,
                                                  ns[ICMPv6NDOptSrcLLAddr].lladdr))
            self.assertEqual(vlan, ns[Dot1Q].vlan if Dot1Q in ns else None)
            self.assertEqual(1, len(self.dut.run(101 * MS)))
            mac = "02:00:00:00:01:%02x" % i
            peer = roce.Peer(src_ip=ip, dst_ip=DUT6, src_mac=mac, qpn=0x30 + i, vlan=vlan)
            # Until somebody answers, the MAC is that of the peer's own packets.
            self.peer = peer.with_(src_mac="02:00:00:00:02:%02x" % i)
            self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY)), Ack(E, 1))
            # A wrong VLAN does not tell.
            wrong = tagged(Ether(src=MAC9, dst=DUT_MAC), 5) / IPv6(src=ip, dst=DUT6, hlim=255) / \
                ICMPv6ND_NA(tgt=ip, S=1, O=1) / ICMPv6NDOptDstLLAddr(lladdr=MAC9)
            self.assertEqual([], self.host(wrong))
            self.assertFalse(self.qp(0x30 + i)["path_resolved"])
            self.assertEqual([vlan], [n["vlan"] for n in self.rpc("neighbor_list")
                                      if n.get("ipv6") == ip and n["paths"]])
            self.host(tagged(Ether(src=mac, dst=DUT_MAC), vlan) /
                      IPv6(src=ip, dst=DUT6, hlim=255) / ICMPv6ND_NA(tgt=ip, S=1, O=1) /
                      ICMPv6NDOptDstLLAddr(lladdr=mac))
            self.assertTrue(self.qp(0x30 + i)["path_resolved"])
            self.peer = peer
            self.expect(self.feed(peer.write_only(E + 1, b"x", VA, RKEY)), Ack(E + 1, 2))


class RoCE(dut.DutCase):

    FIXED = {"ip": "4", "vlan": "none"}

    def every_answer(self, **kw):
        """SEND, WRITE, READ, ATOMIC, NAK; each frame is checked against self.peer."""
        self.resp(mr_fill="pattern:4", **kw)
        self.peer = self.peer.with_(vlan=kw.get("ah_attr", {}).get("vlan"))
        p = self.peer
        self.expect(self.each(p.send(E, data(2500)), p.write(E + 3, data(3000), VA + 4096, RKEY)),
                    Ack(E + 2, 1), Ack(E + 5, 2))
        self.expect(self.feed(p.read_req(E + 6, VA, RKEY, 3000)),
                    ReadResponse(E + 6, roce.pattern(4, 3000), 3))
        self.set_mem(16, bytes(8))
        self.expect(self.feed(p.fetch_add(E + 9, VA + 16, RKEY, 5)), AtomicAck(E + 9, 0, 4))
        self.assertEqual(data(2500), self.slot(0, 2500))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.expect(self.feed(p.write_only(E + 10, b"x", VA, RKEY ^ 1)), Nak(E + 10, NAK_RAE, 4))
        self.assertEqual("ERR", self.state())

    def ah(self, v6, vlan=None, prio=0):
        ah = {"dest_ip": "2001:db8::2" if v6 else "192.0.2.2", "dest_mac": "02:00:00:00:00:22",
              "hop_limit": 64}
        if vlan is not None:
            ah.update(vlan=vlan, vlan_priority=prio)
        return ah

    def test_WIRE_01_both_profiles(self):
        """IPv4 and IPv6, tagged and not, profiles iba and ernic."""
        for profile in ("iba", "ernic"):
            for v6 in (False, True):
                for vlan in (None, 7, 4094):
                    with self.subTest(profile=profile, v6=v6, vlan=vlan):
                        self.every_answer(profile=profile, v6=v6, ah_attr=self.ah(v6, vlan))

    def test_priority_is_sent(self):
        for v6 in (False, True):
            for prio in (0, 3, 7):
                self.resp(v6=v6, ah_attr=self.ah(v6, 7, prio))
                self.dut.rx(self.peer.with_(vlan=7).send_only(E))
                raw = self.dut.run()[0][1]
                self.assertEqual((b"\x81\x00", prio << 13 | 7),
                                 (raw[12:14], struct.unpack_from(">H", raw, 14)[0]))

    def refused(self, frame):
        before = self.dut.counters()["rx_vlan_mismatch"]
        self.silent(self.feed(frame), ms=1)
        self.assertEqual(1, self.dut.counters()["rx_vlan_mismatch"] - before)
        for record in self.records(1):
            self.assertEqual((["VLAN"], 0, QPN), (record["names"], record["syndrome"],
                                                  record["qp_num"]))

    def test_another_vlan_is_refused(self):
        """Without a VLAN: no tag, or one that has a priority only. With one: that one alone."""
        for v6 in (False, True):
            self.resp(v6=v6, ah_attr=self.ah(v6))
            p = self.peer
            self.refused(p.with_(vlan=7).send_only(E))
            self.expect(self.feed(p.with_(vlan=0).send_only(E)), Ack(E, 1))
            self.expect(self.feed(p.send_only(E + 1)), Ack(E + 1, 2))
            self.resp(v6=v6, ah_attr=self.ah(v6, 7))
            self.peer = p.with_(vlan=7)
            for vlan in (None, 0, 8, 4095):
                self.refused(p.with_(vlan=vlan).send_only(E))
            self.expect(self.feed(self.peer.send_only(E)), Ack(E, 1))

    def test_any_priority_is_taken(self):
        self.resp(ah_attr=self.ah(False, 7, 1))
        self.peer = self.peer.with_(vlan=7)
        for i in range(8):
            frame = self.peer.write_only(E + i, b"x", VA, RKEY)
            frame = frame[:14] + struct.pack(">H", i << 13 | 7) + frame[16:]
            self.expect(self.feed(frame), Ack(E + i, i + 1))

    def test_requests_over_vlan_and_ipv6(self):
        """The requester's packets carry the tag too."""
        for v6 in (False, True):
            self.resp(v6=v6, ah_attr=self.ah(v6, 7, 2))
            self.peer = self.peer.with_(vlan=7)
            self.rpc("post_send", qp_num=QPN, wrs=[{
                "wr_id": 1, "opcode": "RDMA_WRITE", "send_flags": ["SIGNALED"],
                "sg_list": [{"mr": "rbuf", "offset": 0, "length": 2000}],
                "remote_addr": hex(VA), "rkey": hex(RKEY)}])
            got = self.feed()
            self.assertEqual([(roce.WRITE_FIRST, 7), (roce.WRITE_LAST, 7)],
                             [(f.opcode, f.vlan) for f in got])
            self.feed(self.peer.acknowledge(0x201, msn=1))
            self.assertEqual([(1, "SUCCESS")], self.statuses())


if __name__ == "__main__":
    dut.main()
