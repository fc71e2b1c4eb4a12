# SPDX-License-Identifier: BSD-3-Clause
"""Routes, gateways, and neighbours that do not answer (rules RT)."""
import ipaddress

import dut
import roce
from dut import MS, QPN
from dut_req import S, transport_ns
from dut_rt import ENETUNREACH, FAR, FAR6, GATEWAY, HOST, IP, IP6, PEER, RtCase, port


class OnTheLink(RtCase):

    def test_RT_01_the_peer_itself_is_asked_for(self):
        self.assertEqual(PEER, self.hop_of(PEER))
        self.assertEqual((PEER, "REACHABLE", HOST[PEER], False), tuple(
            self.qp()["neighbor"][k] for k in ("ip", "state", "mac", "is_gateway")))

    def test_RT_04_an_address_that_no_route_reaches(self):
        for dest, what in (("203.0.113.1", "gateway"), ("2001:db8:9::1", "gateway6")):
            self.req(qp_state="INIT", ah_attr=None, dest_qp_num=None, rq_psn=None, sq_psn=None)
            said = self.refused(
                ENETUNREACH, dest, "qp_modify", qp_num=QPN, qp_state="RTR", dest_qp_num=0x22,
                rq_psn=0, ah_attr={"dest_ip": dest}, path_mtu=1024, max_dest_rd_atomic=1,
                min_rnr_timer=12)
            self.assertIn("route add p0", said)
            self.assertIn('"%s"' % what, said)
            self.assertIn("ah_attr.dest_mac", said)
            self.assertEqual("INIT", self.state())
            self.assertEqual([], self.run_for(5))
            self.assertEqual([], self.asked)

    def test_a_mac_that_is_given_needs_no_route(self):
        self.to("203.0.113.1", ah={"dest_mac": "02:00:00:00:00:99"})
        self.assertEqual([(roce.SEND_ONLY, S, "02:00:00:00:00:99", "203.0.113.1")],
                         self.sent_to(self.send()))
        self.assertIsNone(self.qp()["neighbor"])


class Silent(RtCase):
    """RT-05, RT-06: the neighbour does not answer, or late."""

    def explain(self):
        return self.rpc("qp_explain", qp_num=QPN)

    def wait_for_the_end(self, wr_id=100):
        """(nanoseconds until the completion, packets that left)."""
        start, got = self.dut.now(), []
        for _ in range(20000):
            got += self.sort(self.dut.run(MS // 4))
            cqes = self.statuses()
            if cqes:
                self.assertEqual([(wr_id, "RETRY_EXC_ERR")], cqes)
                return self.dut.now() - start, got
        raise AssertionError("no completion")

    def test_RT_05_it_ends_as_packet_loss_ends(self):
        self.to(PEER, timeout=12, retry_cnt=2)
        self.post_raw(self.wr("SEND", 10))
        took, got = self.wait_for_the_end()
        self.assertEqual([], got, "nothing is sent to a made-up MAC")
        # TMR-02 for each of the three transmissions.
        self.assertTrue(3 * transport_ns(12) <= took <= 12 * transport_ns(12), took)
        self.assertEqual("ERR", self.state())
        self.assertEqual({PEER}, set(self.asked))
        self.assertEqual((3, 3), (self.delta("tx_no_neighbor"),
                                  self.delta("local_ack_timeout_err")))
        self.assertEqual(1, self.delta("retry_exceeded_err"))
        x = self.explain()
        n = x["network"]["neighbor"]
        self.assertEqual((PEER, "INCOMPLETE", None, len(self.asked)),
                         (n["ip"], n["state"], n["mac"], n["unanswered"]))
        self.assertLessEqual(n["last_asked_ms"], 300)
        self.assertEqual(("p0", "UP"), tuple(x["network"]["link"][k] for k in ("port", "state")))
        for word in ("retries", PEER, "INCOMPLETE", "ARP", "p0",
                     "3 packets had nowhere to go"):
            self.assertIn(word, x["summary"])

    def test_RT_05_what_was_lost_before_is_no_cause_of_what_fails_now(self):
        self.to(PEER, timeout=12, retry_cnt=2)
        self.post_raw(self.wr("SEND", 10))
        self.assertEqual([], self.run_for(5))
        self.assertIn("had nowhere to go", self.explain()["summary"])
        self.tell(PEER)
        self.assertEqual([S], [f.psn for f in self.run_for(1)])
        self.dut.rx(self.peer.acknowledge(S, msn=1))
        self.run_for()
        self.assertEqual([(100, "SUCCESS")], self.statuses())
        lost = self.delta("tx_no_neighbor")
        self.assertGreater(lost, 0)
        self.assertEqual("no error since RESET", self.explain()["summary"])
        self.assertEqual(lost, self.explain()["network"]["not_sent"])
        self.post_raw(self.wr("SEND", 10))
        _, got = self.wait_for_the_end(101)
        self.assertEqual([S + 1], sorted({f.psn for f in got}))
        summary = self.explain()["summary"]
        self.assertIn("retries", summary)
        self.assertNotIn("nowhere", summary)
        self.assertIsNone(self.rpc("qp_post_mortem", qp_num=QPN)[0]["network"])

    def test_RT_05_requests_for_it_have_a_bounded_rate(self):
        """However many sends want the address: at once, after 100 and 300 ms, each second."""
        self.to(PEER, timeout=0)
        start = self.dut.now()
        times = [0]
        for i in range(5350):
            if i % 10 == 0 and i < 600:
                self.post_raw(self.wr("SEND", 10))
            self.asked = []
            self.assertEqual([], self.run_for())
            times += [(self.dut.now() - start) // MS] * len(self.asked)
        gaps = [b - a for a, b in zip(times, times[1:])]
        self.assertEqual(8, len(times), times)
        self.assertTrue(all(g >= w for g, w in zip(gaps, (100, 200) + (1000,) * 9)), gaps)
        self.assertEqual("FAILED", self.neighbour(PEER)["state"])

    def test_RT_05_answers_that_cannot_be_sent(self):
        """A responder whose peer's frames say no MAC that could be anybody's."""
        self.to(PEER, recv=4)
        self.peer = self.peer.with_(src_mac="01:00:5e:00:00:09")
        for i in range(3):
            self.dut.rx(self.peer.send_only(dut.E + i, b"x"))
            self.assertEqual([], self.run_for())
        self.assertEqual(3, self.delta("tx_no_neighbor"))
        x = self.explain()
        self.assertIn("3 packets had nowhere to go", x["summary"])
        self.assertIn(PEER, x["summary"])

    def test_RT_06_a_late_answer(self):
        self.to(PEER, timeout=14, retry_cnt=7)
        self.post_raw(self.wr("SEND", 10))
        self.assertEqual([], self.run_for(150))
        self.tell(PEER)
        got = self.run_for(1)
        self.assertEqual([(roce.SEND_ONLY, S, HOST[PEER], PEER)], self.sent_to(got))
        self.assertEqual([], self.run_for(60), "once")
        self.dut.rx(self.peer.acknowledge(S, msn=1))
        self.run_for()
        self.assertEqual([(100, "SUCCESS")], self.statuses())
        self.assertEqual("RTS", self.state())

    def test_RT_06_everything_posted_meanwhile(self):
        """A long message, READ and ATOMIC among it; no retry is used up by the answer."""
        self.to(PEER, timeout=14, retry_cnt=7)
        self.post_raw(self.wr("SEND", 5000), self.wr("RDMA_READ", 3000), self.wr("SEND", 10))
        self.assertEqual([], self.run_for(20))
        self.assertEqual(7, self.qp()["retry_cnt_left"])
        self.tell(PEER)
        got = self.run_for()
        self.assertEqual([S + i for i in range(6)] + [S + 8], [f.psn for f in got])
        self.assertEqual(7, self.qp()["retry_cnt_left"])
        self.assertEqual(0, self.delta("local_ack_timeout_err"))

    def test_TMR_03_without_a_timer_it_waits_and_says_for_what(self):
        self.to(PEER, timeout=0)
        self.post_raw(self.wr("SEND", 10))
        self.assertEqual([], self.run_for(3000))
        self.assertEqual([], self.statuses())
        self.assertEqual("RTS", self.state())
        for word in (PEER, "FAILED", "asked 5 times", "ARP"):
            self.assertIn(word, self.explain()["summary"])
        self.tell(PEER)
        self.assertEqual([(roce.SEND_ONLY, S, HOST[PEER], PEER)], self.sent_to(self.run_for()))
        self.assertEqual([], self.run_for(200))
        self.assertNotIn("FAILED", self.explain()["summary"])

    def test_a_bad_source_is_a_local_error_all_the_same(self):
        self.to(PEER, timeout=14)
        wr = self.wr("SEND")
        wr["sg_list"] = [{"lkey": "0x7777", "addr": "0x10", "length": 8}]
        self.post_raw(wr)
        self.assertEqual([], self.run_for())
        self.assertEqual([(100, "LOC_PROT_ERR")], self.statuses())

    def test_a_feed_waits_for_its_neighbour(self):
        self.req(qp_state="RESET", ah_attr=None, dest_qp_num=None, rq_psn=None, sq_psn=None)
        self.clear()
        self.make("cq_create", name="cq0", cqe=64)
        self.make("cq_create", name="rcq", cqe=64)
        self.make("qp_create", **self.qp_params(
            recv_cq="rcq", sq_psn=S, timeout=8, retry_cnt=0, ah_attr={"dest_ip": PEER},
            send_feed={"opcode": "SEND", "size": 8, "depth": 1}))
        self.assertEqual([], self.run_for(500))
        self.assertEqual("RTS", self.state())
        for word in (PEER, "INCOMPLETE"):
            self.assertIn(word, self.explain()["summary"])
        self.tell(PEER)
        self.assertEqual([(roce.SEND_ONLY, S)],
                         [(f.opcode, f.psn) for f in self.run_for()][:1])


class Gateway(RtCase):
    CONFIG = {"ports": [port(gateway=GATEWAY, gateway6="fe80::fe")]}

    def test_RT_02_behind_the_gateway(self):
        self.assertEqual(GATEWAY, self.hop_of(FAR))
        n = self.qp()["neighbor"]
        self.assertEqual((GATEWAY, FAR, True, "REACHABLE"),
                         (n["ip"], n["dest_ip"], n["is_gateway"], n["state"]))
        self.dut.rx(self.peer.with_(src_mac=HOST[GATEWAY]).acknowledge(S, msn=1))
        self.run_for()
        self.assertEqual([(100, "SUCCESS")], self.statuses())

    def test_RT_02_its_requests_are_answered_by_the_gateway(self):
        self.to(FAR, recv=2)
        self.run_for()
        self.tell(GATEWAY)
        self.dut.rx(self.peer.with_(src_mac=HOST[GATEWAY]).send_only(dut.E, b"hello"))
        self.assertEqual([(roce.ACK, dut.E, HOST[GATEWAY], FAR)], self.sent_to(self.run_for()))

    def test_RT_05_a_gateway_that_does_not_answer(self):
        self.to(FAR, timeout=10, retry_cnt=1)
        self.post_raw(self.wr("SEND", 10))
        self.assertEqual([], self.run_for(200))
        self.assertEqual([(100, "RETRY_EXC_ERR")], self.statuses())
        said = self.rpc("qp_explain", qp_num=QPN)["summary"]
        self.assertIn("gateway %s to %s is INCOMPLETE" % (GATEWAY, FAR), said)

    def test_RT_10_ipv6(self):
        self.assertEqual("2001:db8::50", self.hop_of("2001:db8::50"))
        self.assertEqual("fe80::fe", self.hop_of(FAR6))

    def test_the_subnet_needs_no_gateway(self):
        self.assertEqual(PEER, self.hop_of(PEER))

    def test_RT_08_changes_under_a_running_qp(self):
        self.assertEqual(GATEWAY, self.hop_of(FAR))
        psn = S
        for to, via in (("198.51.100.0/24", "192.0.2.253"), ("198.51.100.7/32", "192.0.2.252")):
            self.rpc("route_add", port="p0", to=to, via=via)
            self.asked = []
            self.run_for()
            self.assertEqual([via], self.asked)
            self.assertIn((to, via), [(r["to"], r["via"]) for r in self.rpc("route_list")])
            self.tell(via)
            psn += 1
            got = self.send()
            self.assertEqual({(HOST[via], FAR)}, {(f.dst_mac, f.dst_ip) for f in got})
            self.assertEqual(psn, got[-1].psn)
        # What was lost on the old way is sent again on the new one.
        self.rpc("route_del", port="p0", to="198.51.100.7/32")
        got = self.run_for(300)
        self.assertEqual([S, S + 1, S + 2], [f.psn for f in got[:3]])
        self.assertEqual({HOST["192.0.2.253"]}, {f.dst_mac for f in got})
        self.dut.rx(self.peer.acknowledge(S + 2, msn=3))
        self.run_for()
        self.assertEqual(["SUCCESS"] * 3, [s for _, s in self.statuses()])
        self.rpc("route_del", port="p0", to="198.51.100.0/24", via="192.0.2.253")
        got = self.send()
        self.assertEqual([(HOST[GATEWAY], S + 3)], [(f.dst_mac, f.psn) for f in got])

    def test_RT_08_another_gateway(self):
        self.assertEqual(GATEWAY, self.hop_of(FAR))
        reply = self.rpc("route_add", port="p0", to="0.0.0.0/0", via="192.0.2.251")
        self.assertEqual((GATEWAY, 1, 0), (reply["replaced"], reply["paths_moved"],
                                           reply["paths_unreachable"]))
        self.assertEqual([], self.send(), "nothing goes to the old one")
        self.tell("192.0.2.251")
        got = self.run_for()
        self.assertEqual({(HOST["192.0.2.251"], FAR)}, {(f.dst_mac, f.dst_ip) for f in got})
        self.assertEqual([S, S + 1], [f.psn for f in got])

    def test_RT_08_the_last_route_goes(self):
        self.assertEqual(GATEWAY, self.hop_of(FAR))
        self.dut.rx(self.peer.acknowledge(S, msn=1))
        self.run_for()
        reply = self.rpc("route_del", port="p0", to="0.0.0.0/0")
        self.assertEqual(1, reply["paths_unreachable"])
        self.assertEqual([], self.send())
        self.assertEqual("NO_ROUTE", self.qp()["neighbor"]["state"])
        said = self.rpc("qp_explain", qp_num=QPN)["summary"]
        self.assertIn("no route of port p0 reaches %s" % FAR, said)
        self.rpc("route_add", port="p0", to="0.0.0.0/0", via=GATEWAY)
        self.assertEqual([(HOST[GATEWAY], S + 1)],
                         [(f.dst_mac, f.psn) for f in self.run_for()])

    def test_RT_08_what_is_saved(self):
        self.req()
        self.rpc("route_add", port="p0", to="198.51.100.0/24", via="192.0.2.253")
        self.rpc("neighbor_add", port="p0", ipv4="192.0.2.253", mac=HOST["192.0.2.253"])
        saved = self.rpc("save_config")["ports"][0]
        self.rpc("neighbor_del", port="p0", ipv4="192.0.2.253")
        self.assertEqual((GATEWAY, "fe80::fe", [{"to": "198.51.100.0/24", "via": "192.0.2.253"}]),
                         (saved["gateway"], saved["gateway6"], saved["routes"]))
        self.assertEqual([{"ipv4": "192.0.2.253", "mac": HOST["192.0.2.253"]}], [
            {k: v for k, v in n.items() if v is not None} for n in saved["neighbors"]])


class Longest(RtCase):
    """The list is not in order."""
    CONFIG = {"ports": [port(gateway="192.0.2.251", routes=[
        {"to": "198.51.0.0/16", "via": "192.0.2.252"},
        {"to": "198.51.100.7/32", "via": "192.0.2.254"},
        {"to": "198.51.100.0/24", "via": "192.0.2.253"},
        {"to": "2001:db8:9::/48", "via": "2001:db8::fe"}])]}

    def test_RT_03_the_most_specific_route(self):
        for dest, via in (("198.51.100.7", "192.0.2.254"), ("198.51.100.8", "192.0.2.253"),
                          ("198.51.1.1", "192.0.2.252"), ("203.0.113.1", "192.0.2.251"),
                          (FAR6, "2001:db8::fe")):
            self.assertEqual(via, self.hop_of(dest), dest)

    def test_route_list(self):
        rows = self.rpc("route_list", port="p0")
        self.assertEqual({("192.0.2.0/24", None, "connected"), ("2001:db8::/64", None, "connected"),
                          ("fe80::/10", None, "connected"),
                          ("0.0.0.0/0", "192.0.2.251", "configured"),
                          ("198.51.0.0/16", "192.0.2.252", "configured"),
                          ("198.51.100.7/32", "192.0.2.254", "configured"),
                          ("198.51.100.0/24", "192.0.2.253", "configured"),
                          ("2001:db8:9::/48", "2001:db8::fe", "configured")},
                         {(r["to"], r["via"], r["source"]) for r in rows})
        self.assertEqual({IP, IP6, "fe80::ff:fe00:11"}, {r["src"] for r in rows if r["src"]})
        lengths = [ipaddress.ip_network(r["to"]).prefixlen for r in rows]
        self.assertEqual(sorted(lengths, reverse=True), lengths)


if __name__ == "__main__":
    dut.main()
