# SPDX-License-Identifier: BSD-3-Clause
"""FLOW: priorities of a port: maps, transmit queues with shares, PAUSE frames of its neighbour."""
import struct

import dut
import dut_ud
import roce
from dut import E, MS, QPN, RKEY, VA
from dut_req import S, ReqCase
from stepped import base_config

QUANTUM_NS = 51.2               # 512 bit times at the 10 Gb/s of the in-memory port
LONGEST = 65535                 # quanta: 3.36 ms
OTHER, OTHER_S = 0x13, 0x800    # another QP, and its first PSN
TOS = {0: 0, 1: 0x28, 2: 0x48, 3: 0x68, 5: 0xB8}         # by priority: DSCP 10, 18, 26, 46


def pfc(*prios, quanta=LONGEST, length=60):
    """802.1Qbb: opcode 0x0101, class-enable vector, a time for each priority."""
    times = [quanta if i in prios else 0 for i in range(8)]
    frame = bytes.fromhex("0180c2000001" "020000000022" "8808" "0101")
    frame += struct.pack(">H8H", sum(1 << p for p in prios), *times)
    return frame + bytes(max(0, length - len(frame)))


def pause(quanta=LONGEST):
    """802.3 annex 31B: opcode 0x0001, a time."""
    return bytes.fromhex("0180c2000001" "020000000022" "8808" "0001") + struct.pack(
        ">H", quanta) + bytes(42)


class PrioCase(ReqCase):
    PRIORITIES = {}

    @classmethod
    def start(cls):
        cls.CONFIG = {"ports": [{**base_config()["ports"][0], "priorities": cls.PRIORITIES}]}
        super().start()

    def of(self, prio, **kw):
        return self.peer_address(traffic_class=TOS[prio], **kw)

    def setUp(self):
        """What a neighbour said in the test before is over, storms too."""
        super().setUp()
        self.dut.run(100 * MS)

    def two(self, first, second):
        """QPs of these priorities; the second one's PSNs begin at OTHER_S."""
        self.req(ah_attr=self.of(first), timeout=18)
        self.make("qp_create", **self.qp_params(
            qp_num=OTHER, recv_cq="rcq", sq_sig_all=True, sq_psn=OTHER_S, timeout=18,
            ah_attr=self.of(second)))
        self.drain()
        self.before = self.port()

    def port(self):
        return self.rpc("stats", scope="port", port="p0")

    def counted(self, name):
        return self.port()[name] - self.before[name]

    def send(self, n, qp_num=QPN, length=64):
        return self.post(*[self.wr("SEND", length) for _ in range(n)], qp_num=qp_num)


class Pfc(PrioCase):
    PRIORITIES = {"dscp_prio": "10:1 18:2 26:3 46:5", "prio_pfc": [3], "pause_max": 20,
                  "pause_restore": 40}

    def test_FLOW_11_silent_for_its_time(self):
        """Not a bit time sooner than the neighbour says, and soon after that."""
        self.two(3, 0)
        self.assertEqual([], self.feed(pfc(3)))
        self.assertEqual([], self.send(2))
        self.assertEqual([], self.feed(ns=int(LONGEST * QUANTUM_NS) - 1000))
        self.assertEqual([S, S + 1], self.psns(self.feed(ns=2000)))
        self.assertEqual(1, self.counted("rx_prio3_pause"))
        self.assertIn(self.counted("rx_prio3_pause_duration"), (3355, 3356))
        self.assertEqual(2, self.counted("tx_prio3_packets"))
        self.assertEqual(0, self.counted("rx_prio0_pause"))

    def test_FLOW_11_others_go_on(self):
        """A priority that is silent holds up no other."""
        self.two(3, 0)
        self.feed(pfc(3))
        self.assertEqual([], self.send(10, length=4096))
        got = self.send(3, qp_num=OTHER)
        self.assertEqual([OTHER_S, OTHER_S + 1, OTHER_S + 2], self.psns(got))
        waits = {w["kind"] for w in self.rpc("qp_explain", qp_num=QPN)["waits"]}
        self.assertIn("PRIORITY_PAUSED", waits)
        self.assertEqual(40, len(self.feed(ns=4 * MS)))

    def test_FLOW_11_others_go_on_beside_a_full_one(self):
        """It has more to send than waits at a port; its requests pause, and its port does not."""
        self.two(3, 0)
        self.feed(pfc(3))
        self.assertEqual([], self.send(12, length=65536))   # 768 packets
        for i in range(20):
            self.feed(pfc(3))
            self.assertEqual([OTHER_S + i], self.psns(self.send(1, qp_num=OTHER)))
            self.feed(self.peer.acknowledge(OTHER_S + i, msn=i + 1, qpn=OTHER))
        self.assertEqual(0, self.counted("tx_backlog_drop"))

    def test_FLOW_11_go_on(self):
        """A time of 0 ends it at once; a shorter time takes the longer one's place."""
        self.two(3, 0)
        self.feed(pfc(3))
        self.assertEqual([], self.send(1))
        self.assertEqual([S], self.psns(self.feed(pfc(3, quanta=0))))
        self.assertLess(self.counted("rx_prio3_pause_duration"), 3000)   # of 3356 us
        self.feed(pfc(3))
        self.feed(pfc(3, quanta=100))
        self.assertEqual([], self.send(1))
        self.assertEqual([S + 1], self.psns(self.feed(ns=int(100 * QUANTUM_NS) + 1000)))

    def test_FLOW_11_not_asked_for(self):
        """Priorities that prio_pfc does not name, and the whole link: counted, not obeyed."""
        self.two(2, 0)
        self.feed(pfc(0, 2, 5))
        self.feed(pause())
        self.assertEqual([S], self.psns(self.send(1)))
        self.assertEqual([OTHER_S], self.psns(self.send(1, qp_num=OTHER)))
        self.assertEqual([1, 0, 1, 0, 0, 1, 0, 0],
                         [self.counted("rx_prio%d_pause" % i) for i in range(8)])
        self.assertEqual(1, self.counted("rx_global_pause"))
        self.assertEqual(2, self.counted("rx_pause_ctrl"))

    def test_FLOW_11_answers_too(self):
        """ACKs and READ responses have the priority of their QP's path."""
        self.resp(ah_attr=self.of(3))
        self.feed(pfc(3))
        self.assertEqual([], self.feed(self.peer.send_only(E, b"x")))
        self.assertEqual([], self.feed(self.peer.read_req(E + 1, VA, RKEY, 8)))
        got = self.feed(ns=4 * MS)
        self.assertEqual([(roce.ACK, E), (roce.READ_ONLY, E + 1)], [(f.opcode, f.psn) for f in got])

    def test_FLOW_11_no_timer_runs_meanwhile(self):
        """What waits for the neighbour was not sent: no timeout counts (TMR-02)."""
        self.req(ah_attr=self.of(3), timeout=8)             # 1 ms
        self.drain()
        self.feed(pfc(3))
        self.send(1)
        self.assertEqual([], self.feed(ns=3 * MS))
        self.assertEqual([S], self.psns(self.feed(ns=MS)))
        self.assertEqual(0, self.delta("local_ack_timeout_err"))

    def test_FLOW_11_what_is_no_pause_frame(self):
        """Cut short, of another opcode, to somebody else: dropped as whatever is no RoCE."""
        self.two(3, 0)
        good = pfc(3)
        for bad in (good[:33], good[:15] + b"\x02" + good[16:], b"\x02" + good[1:]):
            self.feed(bad)
        self.assertEqual(0, self.counted("rx_pause_ctrl"))
        self.assertEqual([S], self.psns(self.send(1)))

    def test_FLOW_09_notifications_have_their_own(self):
        """CC-02: a CNP has a class of its own (cc.cnp_dscp), and leaves while its QP is silent."""
        self.resp(ah_attr=self.of(3), knobs={"cc.cnp": "on", "cc.cnp_dscp": 46})
        self.feed(pfc(3))
        before = self.port()["tx_prio5_packets"]
        got = self.feed(self.peer.send_only(E, b"x", tos=3))
        self.assertEqual([roce.CNP], [f.opcode for f in got])
        self.assertEqual(before + 1, self.port()["tx_prio5_packets"])
        self.assertEqual([roce.ACK], [f.opcode for f in self.feed(ns=4 * MS)])

    def storm(self, ms):
        """A neighbour that never lets go."""
        got = []
        for _ in range(ms):
            got += self.feed(pfc(3), ns=MS)
        return got

    def test_FLOW_13_a_storm_ends(self):
        """pause_max after its beginning nobody obeys it any more, as long as it lasts."""
        self.two(3, 0)
        self.storm(1)
        self.assertEqual([], self.send(1))
        self.assertEqual([], self.storm(18))
        self.assertEqual([S], self.psns(self.storm(3)))
        self.assertEqual(1, self.counted("rx_pause_storms"))
        self.storm(60)
        self.assertEqual([S + 1], self.psns(self.send(1)))
        self.assertEqual(1, self.counted("rx_pause_storms"))
        self.assertTrue(19_000 < self.counted("rx_prio3_pause_duration") <= 20_000)

    def test_FLOW_13_a_blink_is_no_end(self):
        """Who lets go for less than a frame takes is in the same stretch."""
        self.two(3, 0)
        for _ in range(23):
            self.feed(pfc(3, quanta=0))
            self.feed(pfc(3), ns=1000)
            self.feed(ns=MS - 1000)
        self.assertEqual(1, self.counted("rx_pause_storms"))

    def test_FLOW_13_obeyed_again(self):
        """After pause_restore without such frames."""
        self.two(3, 0)
        self.storm(25)
        self.feed(ns=41 * MS)
        self.feed(pfc(3))
        self.assertEqual([], self.send(1))
        self.assertEqual([S], self.psns(self.feed(ns=4 * MS)))

    def test_FLOW_13_congestion_is_no_storm(self):
        """A switch that lets go again and again may go on for as long as it wants."""
        self.two(3, 0)
        for _ in range(60):
            self.feed(pfc(3, quanta=10000))                 # 0.51 ms
            self.feed(ns=MS)
        self.assertEqual(0, self.counted("rx_pause_storms"))


class Datagrams(dut_ud.UdCase):
    """Each has the priority of its own destination."""
    CONFIG = {"ports": [{**base_config()["ports"][0], "priorities": {
        "dscp_prio": "26:3", "prio_pfc": [3]}}]}

    def test_FLOW_11_datagrams(self):
        """One that is to wait does so; those behind it, to others, leave."""
        self.sender()
        self.dut.run(100 * MS)
        self.feed(pfc(3))
        got = self.post(self.wr(8), self.wr(8, ud=self.to(2, traffic_class=0x68)), self.wr(8))
        self.assertEqual([0, 0], [f.tos for f in got])
        self.assertEqual([0x68], [f.tos for f in self.feed(ns=4 * MS)])


class Link(PrioCase):
    PRIORITIES = {"rx_pause": True}

    def test_FLOW_12_all_priorities(self):
        """802.3x: the whole link, what the control lcore sends too; no priority by itself."""
        self.two(0, 5)
        self.feed(pfc(0, 1, 2, 3, 4, 5, 6, 7))
        self.assertEqual([S], self.psns(self.send(1)))
        self.feed(pause(1000))
        self.assertEqual([], self.send(1))
        self.assertEqual([], self.send(1, qp_num=OTHER))
        got = self.feed(ns=int(1000 * QUANTUM_NS) + 1000)
        self.assertEqual({S + 1, OTHER_S}, set(self.psns(got)))


class Shares(PrioCase):
    PRIORITIES = {"dscp_prio": "10:1 18:2 26:3 46:5", "weights": "1:1 2:3", "rx_pause": True}

    def held(self, first, second, n=16, length=1024):
        """The order in which frames of two priorities leave when there is room again."""
        self.two(first, second)
        self.feed(pause())
        for qp_num in (QPN, OTHER):
            self.assertEqual([], self.send(n, qp_num=qp_num, length=length))
        return [1 if f.psn < OTHER_S else 2 for f in self.feed(pause(0))]

    def test_FLOW_10_strict(self):
        """Without weights the higher one first, whoever came first."""
        self.assertEqual([2] * 16 + [1] * 16, self.held(3, 5))
        self.assertEqual([1] * 16 + [2] * 16, self.held(5, 3))

    def test_FLOW_10_strict_before_weights(self):
        self.assertEqual([2] * 16 + [1] * 16, self.held(2, 3))

    def test_FLOW_10_weights(self):
        """1 and 3: while both have frames, a quarter and three quarters of the bytes."""
        got = self.held(1, 2)
        self.assertEqual((16, 16), (got.count(1), got.count(2)))
        both = got[:20]
        self.assertTrue(4 <= both.count(1) <= 6, got)

    def test_FLOW_10_the_same_again(self):
        """Where all had left, whose turn it was decides nothing: the order is as at first."""
        first = self.held(1, 2)
        for qp_num in (QPN, OTHER, QPN):
            self.two(1, 2)
            self.assertEqual(3, len(self.send(3, qp_num=qp_num)))
            self.assertEqual(first, self.held(1, 2))

    def test_FLOW_10_order_within_a_priority(self):
        self.two(1, 2)
        self.feed(pause())
        self.send(16)
        self.send(16, qp_num=OTHER)
        got = self.psns(self.feed(pause(0)))
        self.assertEqual(list(range(S, S + 16)), [p for p in got if p < OTHER_S])
        self.assertEqual(list(range(OTHER_S, OTHER_S + 16)), [p for p in got if p >= OTHER_S])


class Maps(PrioCase):
    PRIORITIES = {"dscp_prio": "10:1 26:3", "pcp_prio": "2:6 5:4", "default_prio": 2}

    def sent_as(self, **ah):
        self.req(ah_attr=self.peer_address(v6=False, **ah), v6=False)
        self.peer = self.peer_of(False, vlan=ah.get("vlan", dut.variant.vlan()))
        before = self.port()
        self.assertEqual(1, len(self.send(1)))
        after = self.port()
        return [i for i in range(8)
                if after["tx_prio%d_packets" % i] != before["tx_prio%d_packets" % i]]

    def test_FLOW_09_sent(self):
        """By DSCP; else by the tag, through the map or as it is; else the default."""
        tag = {"vlan": 7}
        for prio, ah in ((1, {"traffic_class": 0x28}), (3, {"traffic_class": 0x68}),
                         (3, {"traffic_class": 0x68, **tag, "vlan_priority": 5}),
                         (4, {**tag, "vlan_priority": 5}), (6, {**tag, "vlan_priority": 2}),
                         (7, {**tag, "vlan_priority": 7})):
            self.assertEqual([prio], self.sent_as(**ah), ah)

    @dut.variant.fixed(vlan="none")
    def test_FLOW_09_default(self):
        self.assertEqual([2], self.sent_as())
        self.assertEqual([2], self.sent_as(traffic_class=0x30))

    def received_as(self, frame):
        """Priorities that count it."""
        before = self.port()
        self.dut.rx(frame)
        self.dut.run()
        after = self.port()
        return [i for i in range(8)
                if after["rx_prio%d_packets" % i] != before["rx_prio%d_packets" % i]]

    def test_FLOW_09_received(self):
        """The same of what comes."""
        for v6 in (False, True):
            self.resp(recv=4, v6=v6)
            for prio, kw in ((1, {"tos": 0x28}), (3, {"tos": 0x68})):
                self.assertEqual([prio], self.received_as(self.peer.send_only(E, b"x", **kw)))

    def test_FLOW_09_received_without_ip(self):
        """By the tag, through the map or as it is; else the default."""
        head, arp = bytes(12), bytes.fromhex("0806") + bytes(46)
        self.assertEqual([2], self.received_as(head + arp))
        for pcp, prio in ((2, 6), (5, 4), (7, 7), (0, 0)):
            tag = struct.pack(">HH", 0x8100, pcp << 13 | 7)
            self.assertEqual([prio], self.received_as(head + tag + arp))

    def test_FLOW_09_in_the_configuration(self):
        """As it was written; without such an object a port has no such counters."""
        got = self.rpc("port_list")[0]["priorities"]
        self.assertEqual(("10:1 26:3", "2:6 5:4", 2), (
            got["dscp_prio"], got["pcp_prio"], got["default_prio"]))
        self.assertIn("rx_prio0_pause", self.port())


if __name__ == "__main__":
    dut.main()
