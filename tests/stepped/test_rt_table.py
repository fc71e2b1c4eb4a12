# SPDX-License-Identifier: BSD-3-Clause
"""The neighbour table, and routes that are refused (rules RT-07, RT-09)."""
import dut
import roce
from dut import MS, QPN
from dut_req import S
from dut_rt import (EEXIST, EINVAL, ENOENT, GATEWAY, HOST, IP, IP6, MAC, PEER, RtCase, port)
from scapy.layers.l2 import ARP, Dot1Q, Ether

PEER6 = "2001:db8::50"


class Table(RtCase):
    """RT-07."""
    CONFIG = {"ports": [port(neighbors=[{"ipv4": "192.0.2.2", "mac": "02:00:00:00:00:22"}])]}

    def test_RT_07_listed_with_state_and_mac(self):
        self.assertEqual(("PERMANENT", "02:00:00:00:00:22"), tuple(
            self.neighbour("192.0.2.2")[k] for k in ("state", "mac")))
        self.to(PEER)
        self.run_for(150)
        n = self.neighbour(PEER)
        self.assertEqual(("INCOMPLETE", None, 2, None, 1), tuple(
            n[k] for k in ("state", "mac", "asked", "age_ms", "paths")))
        self.tell(PEER)
        self.run_for(50)
        n = self.neighbour(PEER)
        self.assertEqual(("REACHABLE", HOST[PEER], 2, 0), tuple(
            n[k] for k in ("state", "mac", "asked", "unanswered")))
        self.assertTrue(40 <= n["age_ms"] <= 60, n)

    def test_RT_07_flushed_and_resolved_anew(self):
        self.hop_of(PEER)
        self.dut.rx(self.peer.acknowledge(S, msn=1))
        self.run_for()
        self.asked = []
        self.assertEqual(1, self.rpc("neighbor_flush", port="p0")["flushed"])
        self.assertEqual(("STALE", HOST[PEER]), tuple(
            self.neighbour(PEER)[k] for k in ("state", "mac")))
        self.assertEqual("PERMANENT", self.neighbour("192.0.2.2")["state"])
        self.run_for()
        self.assertEqual([PEER], self.asked)
        self.tell(PEER, "02:00:00:00:00:51")
        self.run_for()
        self.assertEqual([(roce.SEND_ONLY, S + 1, "02:00:00:00:00:51", PEER)],
                         self.sent_to(self.send()))
        self.assertEqual("REACHABLE", self.neighbour(PEER)["state"])
        self.assertEqual([], self.events())
        self.assertEqual("RTS", self.state())
        # One that nobody uses is gone.
        self.rpc("qp_destroy", qp_num=QPN)
        self.forget_qp()
        self.rpc("neighbor_flush")
        self.assertIsNone(self.neighbour(PEER))

    def test_RT_07_asked_for_again_when_the_link_is_back(self):
        """Somebody else may be at its other end."""
        self.hop_of(PEER)
        self.run_for(150)
        for how, state, asked in (("down", "REACHABLE", []), ("up", "STALE", [PEER])):
            self.asked = []
            self.dut.command("port 0 " + how)
            self.run_for(150)
            self.assertEqual((state, HOST[PEER], asked), (
                *(self.neighbour(PEER)[k] for k in ("state", "mac")), self.asked[:1]))

    def test_RT_07_gratuitous_arp(self):
        self.hop_of(PEER)
        self.gratuitous(PEER, "02:00:00:00:00:52")
        self.run_for()
        self.assertEqual([(roce.SEND_ONLY, S + 1, "02:00:00:00:00:52", PEER)],
                         self.sent_to(self.send()))

    def wait(self, s):
        for _ in range(10 * s):
            self.sort(self.dut.run(100 * MS))

    def test_RT_07_what_is_old_is_asked_for_again(self):
        """Its MAC is used until it answers; an answer counts for 30 seconds."""
        self.hop_of(PEER)
        self.dut.rx(self.peer.acknowledge(S, msn=1))
        self.run_for()
        self.asked = []
        for s, asked in ((29, []), (2, [PEER])):
            self.wait(s)
            self.assertEqual(asked, self.asked[:1])
        self.assertEqual("STALE", self.neighbour(PEER)["state"])
        self.assertEqual([(roce.SEND_ONLY, S + 1, HOST[PEER], PEER)], self.sent_to(self.send()))
        self.dut.rx(self.peer.acknowledge(S + 1, msn=2))
        self.tell(PEER, "02:00:00:00:00:51")
        self.run_for()
        self.assertEqual([(roce.SEND_ONLY, S + 2, "02:00:00:00:00:51", PEER)],
                         self.sent_to(self.send()))
        self.assertEqual(("REACHABLE", 0), tuple(
            self.neighbour(PEER)[k] for k in ("state", "unanswered")))
        self.assertEqual(([], "RTS"), (self.events(), self.state()))

    def test_RT_07_an_old_one_that_is_silent(self):
        """Asked five times, then each 30 seconds, or for a new path."""
        self.hop_of(PEER)
        self.wait(31 + 5)
        self.asked = []
        self.wait(300)
        self.assertEqual(10, len(self.asked))
        self.assertEqual("STALE", self.neighbour(PEER)["state"])
        self.wait(2)
        self.asked = []
        self.make("qp_create", **self.qp_params(qp_num=QPN + 1, recv_cq="rcq",
                                                ah_attr={"dest_ip": PEER}))
        self.run_for()
        self.assertEqual([PEER], self.asked)

    def test_RT_07_an_old_one_without_a_path(self):
        """Nobody asks for it until there is one; its MAC is used meanwhile."""
        self.hop_of(PEER)
        self.rpc("qp_destroy", qp_num=QPN)
        self.forget_qp()
        self.asked = []
        self.wait(60)
        self.assertEqual(([], "REACHABLE"), (self.asked, self.neighbour(PEER)["state"]))
        self.make("qp_create", **self.qp_params(recv_cq="rcq", sq_psn=S,
                                                ah_attr={"dest_ip": PEER, "hop_limit": 33}))
        self.assertEqual([(roce.SEND_ONLY, S, HOST[PEER], PEER)], self.sent_to(self.send()))
        self.assertEqual([PEER], self.asked)
        self.tell(PEER)
        self.run_for()
        self.assertEqual("REACHABLE", self.neighbour(PEER)["state"])

    def test_RT_07_without_override(self):
        """Who does not insist is believed where no MAC is known, or whoever has it is silent."""
        self.to(PEER6, timeout=14)
        self.run_for()
        self.tell(PEER6, override=0)
        self.run_for()
        self.assertEqual(HOST[PEER6], self.neighbour(PEER6)["mac"])
        self.asked = []
        self.tell(PEER6, "02:00:00:00:00:61", override=0)
        self.run_for()
        self.assertEqual((HOST[PEER6], "STALE", [PEER6]), (
            *(self.neighbour(PEER6)[k] for k in ("mac", "state")), self.asked))
        self.tell(PEER6)
        self.run_for()
        self.assertEqual("REACHABLE", self.neighbour(PEER6)["state"])
        self.tell(PEER6, "02:00:00:00:00:61", override=0)
        self.wait(5)
        self.tell(PEER6, "02:00:00:00:00:62", override=0)
        self.run_for()
        self.assertEqual([(roce.SEND_ONLY, S, "02:00:00:00:00:62", PEER6)],
                         self.sent_to(self.send()))

    def test_RT_07_macs_that_no_neighbour_has(self):
        for peer in (PEER, PEER6):
            self.to(peer)
            for mac in ("00:00:00:00:00:00", MAC, "01:00:5e:00:00:01"):
                self.tell(peer, mac)
                self.run_for()
                self.assertEqual((None, "INCOMPLETE"), tuple(
                    self.neighbour(peer)[k] for k in ("mac", "state")))
            self.tell(peer)
            self.run_for()
            self.assertEqual(HOST[peer], self.neighbour(peer)["mac"])

    def test_RT_07_our_address_at_somebody_else(self):
        """It is no neighbour; the log says who it is."""
        mac = "02:00:00:00:00:77"
        for ip, tell in ((IP, self.gratuitous), (IP6, self.tell)):
            tell(ip, mac)
            self.dut.run(MS)
            self.assertIsNone(self.neighbour(ip))
            self.assertIn("port p0: %s says that it has %s, which is the port's" % (mac, ip),
                          self.dut.stderr())
        before = self.dut.stderr()
        self.gratuitous(IP, MAC)        # its own frame came back
        self.dut.run(MS)
        self.assertEqual(before, self.dut.stderr())

    def test_RT_07_added_and_deleted(self):
        self.to(PEER, timeout=14)
        self.post_raw(self.wr("SEND", 10))
        self.run_for()
        self.rpc("neighbor_add", port="p0", ipv4=PEER, mac="02:00:00:00:00:53")
        self.assertEqual([(roce.SEND_ONLY, S, "02:00:00:00:00:53", PEER)],
                         self.sent_to(self.run_for()))
        self.assertEqual("PERMANENT", self.neighbour(PEER)["state"])
        self.gratuitous(PEER, "02:00:00:00:00:54")
        self.rpc("neighbor_flush")
        self.run_for()
        self.assertEqual("02:00:00:00:00:53", self.neighbour(PEER)["mac"])
        self.asked = []
        self.rpc("neighbor_del", port="p0", ipv4=PEER)
        self.run_for()
        self.assertEqual([PEER], self.asked)
        self.tell(PEER)
        self.run_for()
        self.assertEqual(HOST[PEER], self.send()[-1].dst_mac)

    def test_RT_07_a_fixed_one_off_the_link_is_reached(self):
        self.rpc("neighbor_add", port="p0", ipv4="203.0.113.9", mac="02:00:00:00:00:39")
        self.to("203.0.113.9")
        self.assertEqual(["02:00:00:00:00:39"], [f.dst_mac for f in self.send()])
        self.rpc("neighbor_del", port="p0", ipv4="203.0.113.9")
        self.run_for()
        self.assertEqual("NO_ROUTE", self.qp()["neighbor"]["state"])
        self.assertEqual([], self.send())

    def test_RT_07_a_tagged_path_asks_with_its_tag(self):
        """A fixed entry stands for all tags; what comes after it is the path's own again."""
        self.to(PEER, ah={"vlan": 20}, timeout=14)
        self.assertEqual({20}, self.tags_asked())
        self.rpc("neighbor_add", port="p0", ipv4=PEER, mac="02:00:00:00:00:53")
        self.assertEqual(set(), self.tags_asked())
        self.rpc("neighbor_del", port="p0", ipv4=PEER)
        self.assertEqual({20}, self.tags_asked())

    def tags_asked(self):
        """The tags of the questions for PEER in the next two seconds; None: untagged."""
        frames = [Ether(raw) for _ in range(200) for _, raw in self.dut.run(10 * MS)]
        return {f[Dot1Q].vlan if Dot1Q in f else None for f in frames
                if ARP in f and f[ARP].pdst == PEER}

    def test_RT_07_refusals(self):
        for params, word in (({"ipv4": PEER}, "mac"), ({"mac": HOST[PEER]}, "ipv4"),
                             ({"ipv4": IP, "mac": HOST[PEER]}, "own"),
                             ({"ipv4": PEER, "ipv6": IP6, "mac": HOST[PEER]}, "both"),
                             ({"ipv4": "224.0.0.1", "mac": HOST[PEER]}, "ipv4"),
                             ({"ipv4": PEER, "mac": "01:00:00:00:00:01"}, "mac")):
            self.refused(None, word, "neighbor_add", port="p0", **params)
        self.refused(ENOENT, "port", "neighbor_add", port="p7", ipv4=PEER, mac=HOST[PEER])
        self.refused(ENOENT, "ipv4", "neighbor_del", port="p0", ipv4="192.0.2.77")
        self.refused(ENOENT, "port", "neighbor_flush", port="p7")


class BadRoutes(RtCase):
    CONFIG = {"ports": [port(gateway=GATEWAY)]}

    def test_RT_09_refused_with_the_parameter_named(self):
        self.rpc("route_add", port="p0", to="198.51.0.0/16", via=GATEWAY)
        for err, word, to, via in (
                (EINVAL, "via", "198.51.100.0/24", "203.0.113.9"),      # not on the link
                (EINVAL, "via", "2001:db8:9::/48", "2001:db8:1::1"),
                (EINVAL, "via", "198.51.100.0/24", IP),                  # our own
                (EINVAL, "via", "2001:db8:9::/48", IP6),
                (EINVAL, "via", "fd00::/8", "fe80::ff:fe00:11"),
                (EINVAL, "via", "198.51.100.0/24", "192.0.2.255"),       # nobody's
                (EINVAL, "via", "198.51.100.0/24", "192.0.2.0"),
                (None, "via", "198.51.100.0/24", "224.0.0.5"),
                (None, "to", "198.51.100.0/33", GATEWAY),
                (None, "to", "2001:db8:9::/129", "2001:db8::fe"),
                (None, "to", "198.51.100/24", GATEWAY),
                (None, "to", "198.51.100.0/", GATEWAY),
                (None, "to", "", GATEWAY),
                (EINVAL, "to", "198.51.100.7/24", GATEWAY),              # bits behind the prefix
                (EINVAL, "via", "198.51.100.0/24", "2001:db8::fe"),      # families mixed
                (EINVAL, "via", "2001:db8:9::/48", GATEWAY),
                (EINVAL, "to", "192.0.2.0/24", GATEWAY),                 # the subnet itself
                (EEXIST, "to", "198.51.0.0/16", GATEWAY),                # twice
                (EEXIST, "to", "0.0.0.0/0", GATEWAY)):
            with self.subTest(to=to, via=via):
                self.refused(err, word + ":", "route_add", port="p0", to=to, via=via)
        self.refused(ENOENT, "port:", "route_add", port="p9", to="198.51.100.0/24", via=GATEWAY)
        for err, word, params in ((ENOENT, "to:", {"to": "10.0.0.0/8"}),
                                  (ENOENT, "to:", {"to": "198.51.0.0/17"}),
                                  (ENOENT, "via:", {"to": "198.51.0.0/16", "via": "192.0.2.9"}),
                                  (EINVAL, "to:", {"to": "192.0.2.0/24"})):
            self.refused(err, word, "route_del", port="p0", **params)
        self.refused(None, "via", "route_add", port="p0", to="10.0.0.0/8")


if __name__ == "__main__":
    dut.main()
