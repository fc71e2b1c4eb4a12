# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 neighbour discovery and echo, frames made and read by Scapy."""
import dut
from scapy.layers.inet6 import (ICMPv6EchoReply, ICMPv6EchoRequest, ICMPv6ND_NA, ICMPv6ND_NS,
                                ICMPv6NDOptDstLLAddr, ICMPv6NDOptSrcLLAddr, IPv6, in6_chksum)
from scapy.layers.l2 import Ether

MAC, PEER_MAC = "02:00:00:00:00:11", "02:00:00:00:00:22"
GLOBAL, PEER_GLOBAL = "2001:db8::1", "2001:db8::2"
# RFC 4291, appendix A: the second bit of the MAC's first byte is turned.
LOCAL, PEER_LOCAL = "fe80::ff:fe00:11", "fe80::ff:fe00:22"


def group_of(address):
    """(solicited-node address, its MAC) of an address that ends in one group of digits."""
    last = int(address.rsplit(":", 1)[1], 16)
    return "ff02::1:ff00:%x" % last, "33:33:ff:00:%02x:%02x" % (last >> 8, last & 0xFF)


class NeighbourDiscovery(dut.DutCase):

    def ask(self, frame):
        self.dut.rx(bytes(frame))
        return [Ether(raw) for _, raw in self.dut.run()]

    def solicit(self, target, src, unicast=False, option=True):
        group, mac = (target, MAC) if unicast else group_of(target)
        ns = ICMPv6ND_NS(tgt=target)
        if option:
            ns = ns / ICMPv6NDOptSrcLLAddr(lladdr=PEER_MAC)
        return self.ask(Ether(src=PEER_MAC, dst=mac) / IPv6(src=src, dst=group, hlim=255) / ns)

    def advertised(self, got, target, dst, solicited):
        self.assertEqual(1, len(got), got)
        f = got[0]
        na = f[ICMPv6ND_NA]
        self.assertEqual((target, dst, 255, target, solicited, 1, 0, MAC, MAC),
                         (f[IPv6].src, f[IPv6].dst, f[IPv6].hlim, na.tgt, na.S, na.O, na.R,
                          f[ICMPv6NDOptDstLLAddr].lladdr, f.src))
        whole = bytes(f)
        del na.cksum
        self.assertEqual(whole, bytes(f), "checksum")

    def test_who_asks_and_what_for(self):
        for target in (GLOBAL, LOCAL):
            for src in (PEER_GLOBAL, PEER_LOCAL):
                for unicast in (False, True):
                    with self.subTest(target=target, src=src, unicast=unicast):
                        got = self.solicit(target, src, unicast)
                        self.advertised(got, target, src, 1)
                        self.assertEqual(PEER_MAC, got[0].dst)

    def test_probe_without_an_address(self):
        for target in (GLOBAL, LOCAL):
            got = self.solicit(target, "::", option=False)
            self.advertised(got, target, "ff02::1", 0)
            self.assertEqual("33:33:00:00:00:01", got[0].dst)

    def test_solicitations_that_are_none(self):
        """RFC 4861, 7.1.1: what breaks one of its rules is discarded."""
        group, mac = group_of(GLOBAL)
        stranger = "02:00:00:00:00:77"
        link = ICMPv6NDOptSrcLLAddr(lladdr=stranger)
        empty = bytes([253, 0]) + bytes(6)      # an option of no length
        for why, dst, to, src, options in (
                ("from nobody, with a MAC", group, mac, "::", bytes(link)),
                ("from nobody, to one host", GLOBAL, MAC, "::", b""),
                ("an empty option", group, mac, PEER_GLOBAL, empty),
                ("an empty option behind", group, mac, PEER_GLOBAL, bytes(link) + empty),
                ("an option cut short", group, mac, PEER_GLOBAL, bytes(link)[:4])):
            with self.subTest(why):
                got = self.ask(Ether(src=PEER_MAC, dst=to) / IPv6(src=src, dst=dst, hlim=255) /
                               ICMPv6ND_NS(tgt=GLOBAL) / options)
                self.assertEqual([], [f for f in got if ICMPv6ND_NA in f])
                self.assertNotIn(stranger, [n["mac"] for n in self.rpc("neighbor_list")])

    def test_a_solicitation_ends_where_ip_says(self):
        """What stands behind it in the frame is no target."""
        whole = bytes(ICMPv6ND_NS(tgt=GLOBAL, cksum=0))
        for plen in (8, 23):
            ip = IPv6(src=PEER_GLOBAL, dst=GLOBAL, hlim=255, nh=58, plen=plen)
            ns = bytearray(whole)
            ns[2:4] = in6_chksum(58, ip, bytes(ns[:plen])).to_bytes(2, "big")
            self.assertEqual([], self.ask(Ether(src=PEER_MAC, dst=MAC) / ip / bytes(ns)))

    def test_the_mac_may_be_in_any_option(self):
        """Options of other types, and of more than a unit, are skipped."""
        self.rpc("neighbor_flush")
        nonce = bytes([14, 2]) + bytes([1, 1, 2, 0, 0, 0, 0, 0x66] + [1, 1, 2, 0, 0, 0])
        got = self.ask(Ether(src=PEER_MAC, dst=MAC) /
                       IPv6(src="2001:db8::97", dst=GLOBAL, hlim=255) / ICMPv6ND_NS(tgt=GLOBAL) /
                       nonce / ICMPv6NDOptSrcLLAddr(lladdr="02:00:00:00:00:97"))
        self.advertised([f for f in got if ICMPv6ND_NA in f], GLOBAL, "2001:db8::97", 1)
        self.assertEqual(["02:00:00:00:00:97"], [
            n["mac"] for n in self.rpc("neighbor_list") if n.get("ipv6") == "2001:db8::97"])

    def test_advertisements_that_are_none(self):
        """RFC 4861, 7.1.2; only what is for one host can answer it."""
        self.resp()
        self.make("qp_create", **self.qp_params(
            qp_num=0x56, ah_attr={"dest_ip": "fe80::98", "hop_limit": 64}))
        self.dut.run(dut.MS)
        link = bytes(ICMPv6NDOptDstLLAddr(lladdr=PEER_MAC))

        def state_after(dst, to, solicited, options):
            self.ask(Ether(src=PEER_MAC, dst=to) / IPv6(src="fe80::98", dst=dst, hlim=255) /
                     ICMPv6ND_NA(tgt="fe80::98", S=solicited, O=1) / options)
            return [n["state"] for n in self.rpc("neighbor_list") if n.get("ipv6") == "fe80::98"]

        for dst, to, solicited, options in (
                ("ff02::1", "33:33:00:00:00:01", 1, link),
                (LOCAL, MAC, 1, link + bytes([253, 0]) + bytes(6)),
                (LOCAL, MAC, 1, link + bytes([253, 2]) + bytes(6))):
            self.assertEqual(["INCOMPLETE"], state_after(dst, to, solicited, options))
        self.assertEqual(["REACHABLE"],
                         state_after("ff02::1", "33:33:00:00:00:01", 0, link))

    def test_addresses_of_others(self):
        for target in ("2001:db8::11", "fe80::11", "fe80::ff:fe00:12", "fe80::ff:fe00:10",
                       "2001:db8::ff:fe00:11"):
            self.assertEqual([], self.solicit(target, PEER_LOCAL), target)

    def test_echo_of_both_addresses(self):
        for dst, src in ((GLOBAL, PEER_GLOBAL), (LOCAL, PEER_LOCAL), (GLOBAL, PEER_LOCAL)):
            got = self.ask(Ether(src=PEER_MAC, dst=MAC) / IPv6(src=src, dst=dst) /
                           ICMPv6EchoRequest(id=7, seq=9, data=b"there?"))
            self.assertEqual(1, len(got))
            reply = got[0][ICMPv6EchoReply]
            self.assertEqual((dst, src, 7, 9, b"there?"),
                             (got[0][IPv6].src, got[0][IPv6].dst, reply.id, reply.seq, reply.data))
        self.assertEqual([], self.ask(Ether(src=PEER_MAC, dst=MAC) /
                                      IPv6(src=PEER_LOCAL, dst="fe80::1") / ICMPv6EchoRequest()))

    def test_our_own_addresses_are_no_neighbours(self):
        """Nor is nobody's: what cannot be a peer's is neither believed nor answered."""
        self.rpc("neighbor_flush")
        for own in (GLOBAL, LOCAL):
            self.solicit(GLOBAL, own)
            self.solicit(LOCAL, own)
        known = [n.get("ipv6") for n in self.rpc("neighbor_list")]
        self.assertFalse({GLOBAL, LOCAL} & set(known), known)
        for src in ("::", "ff02::1"):
            self.assertEqual([], self.ask(Ether(src=PEER_MAC, dst=MAC) / IPv6(src=src, dst=GLOBAL)
                                          / ICMPv6EchoRequest(data=b"there?")))

    def test_a_link_local_neighbour_is_asked_from_there(self):
        """Others are asked from the port's address."""
        self.resp()
        for i, (target, src) in enumerate((("fe80::99", LOCAL), ("febf::99", LOCAL),
                                           ("2001:db8::99", GLOBAL))):
            self.make("qp_create", **self.qp_params(
                qp_num=0x55 + i, ah_attr={"dest_ip": target, "hop_limit": 64}))
            asked = [Ether(raw) for _, raw in self.dut.run(dut.MS)]
            self.assertEqual([(src, target)],
                             [(f[IPv6].src, f[ICMPv6ND_NS].tgt) for f in asked])


if __name__ == "__main__":
    dut.main()
