# SPDX-License-Identifier: BSD-3-Clause
"""Queue pairs whose destination is an address of their own dataplane: every stage, and no wire."""
import dut
import dut_ud
import roce
import test_impair
import test_req_loop
from dut import MS
from dut_loop import ANSWER, ASK, PORTS, LoopCase
from roce import pattern

IPS = ["192.0.2.1", "192.0.2.2"]
IPS6 = ["2001:db8::1", "2001:db8::2"]
PORTS6 = [{**p, "ipv6": IPS6[i]} for i, p in enumerate(PORTS)]


class LocalCase(LoopCase):
    """settle() sees that no frame leaves, ARP requests included."""

    LOCAL = True

    def tearDown(self):
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair=None)
        self.dut.run()
        super().tearDown()

    def own(self, **both):
        """Both QPs on p0, connected through its own address."""
        answer = {"port": "p0", **both.pop("answer", {})}
        self.pair(answer=answer, **{"ah_attr": {"dest_ip": IPS[0], "hop_limit": 64}, **both})

    def counted(self, qp_num):
        return self.rpc("stats", scope="qp", qp_num=qp_num)

    def of_port(self, name):
        return self.rpc("stats", scope="port")[int(name[1])]


class TwoPorts(LocalCase, test_req_loop.Loop):
    """LB-06: all of what works over a wire, from p0 to the address of p1."""


class OwnAddress(LocalCase, test_req_loop.Loop):
    """LB-01: the same, through the port's own address."""

    def qp_params(self, v6=None, **qp):
        qp = {**qp, "port": "p0"}
        qp["ah_attr"] = {**qp.get("ah_attr", {"hop_limit": 64}), "dest_ip": IPS[0]}
        return super().qp_params(v6, **qp)


class Impaired(LocalCase, test_impair.ByRpc):
    """LB-03: rules of the port that has the address."""

    FIXED = {"qps": "1"}        # a feed rests if its peer comes later


class OneLoss(LocalCase, test_impair.OneLoss):
    """LB-03: likewise."""


class ImpairedFromFile(LocalCase, test_impair.FromFile):
    """LB-03: likewise."""


class Rules(LocalCase):

    def recv(self, n=1, length=1000, qp_num=ANSWER):
        self.rpc("post_recv", qp_num=qp_num, wrs=[
            {"wr_id": i, "sg_list": [{"mr": "answerer", "offset": 1000 * i, "length": length}]}
            for i in range(n)])

    # -- LB-02 --

    def outcome(self, wrs, recv=0, **both):
        """Completions, states and events after these requests."""
        if recv:
            self.recv(1, recv)
        self.post(*wrs)
        self.settle(ms=60)
        out = [[(c["status"], c["opcode"]) for c in self.done(cq)] for cq in ("scq", "rcq")]
        events = sorted((e["event_type"], e["qp_num"]) for e in self.events())
        return out, events, [self.qp(q)["qp_state"] for q in (ASK, ANSWER)]

    def test_LB_02_errors_are_those_of_a_wire(self):
        cases = {
            "no receive": (lambda: [self.wr("SEND", 10)], 0, {"rnr_retry": 2}),
            "bad rkey": (lambda: [self.wr("RDMA_WRITE", 10, rkey="0x999")], 0, {}),
            "too long": (lambda: [self.wr("SEND", 2000)], 100, {}),
            "misaligned": (lambda: [self.wr("ATOMIC_FETCH_AND_ADD", 8, 0, 3, compare_add=1)], 0,
                           {}),
            "no right": (lambda: [self.wr("RDMA_READ", 8)], 0,
                         {"answer": {"qp_access_flags": ["REMOTE_WRITE"]}})}
        want = {"no receive": "RNR_RETRY_EXC_ERR", "bad rkey": "REM_ACCESS_ERR",
                "too long": "REM_INV_REQ_ERR", "misaligned": "REM_INV_REQ_ERR",
                "no right": "REM_INV_REQ_ERR"}
        for name, (wrs, recv, both) in cases.items():
            got = []
            for self.LOCAL in (False, True):
                with self.subTest(name, local=self.LOCAL):
                    self.clear()
                    self.setUp()
                    answer = {"port": "p1", **both.get("answer", {})}
                    self.pair(**{**both, "answer": answer})
                    got.append(self.outcome(wrs(), recv))
                    self.assertEqual(want[name], got[-1][0][0][0][0])
            self.assertEqual(got[0], got[1], name)

    # -- LB-03 --

    def test_LB_03_both_queue_pairs_count(self):
        self.own()
        self.recv()
        before = self.of_port("p0")
        self.post(self.wr("SEND", 100), self.wr("RDMA_WRITE", 5000), self.wr("RDMA_READ", 3000))
        self.settle()
        self.assertEqual(["SUCCESS"] * 3, [c["status"] for c in self.done()])
        ask, answer = self.counted(ASK), self.counted(ANSWER)
        # SEND, five of the WRITE, one READ request; an ACK or more, three READ responses.
        self.assertEqual((7, 7), (ask["sent_pkts"], answer["rcvd_pkts"]))
        self.assertEqual(ask["rcvd_pkts"], answer["sent_pkts"])
        self.assertEqual(3, answer["read_responses_sent"])
        self.assertGreater(answer["acks_sent"], 0)
        sent = 7 + answer["sent_pkts"]
        self.assertEqual([sent] * 5, [self.delta(name) for name in (
            "sent_pkts", "tx_packets", "local_packets", "rx_packets", "rcvd_pkts")])
        after = self.of_port("p0")
        self.assertEqual([sent] * 3, [after[k] - before[k] for k in (
            "tx_packets", "sent_pkts", "local_packets")])

    def test_LB_03_a_destroyed_queue_pair(self):
        self.own(retry_cnt=1)
        self.made.remove(("qp_destroy", {"qp_num": ANSWER}))
        self.rpc("qp_destroy", qp_num=ANSWER)
        self.post(self.wr("RDMA_WRITE", 10, 1, 2))
        self.settle(ms=60)
        self.assertEqual(["RETRY_EXC_ERR"], [c["status"] for c in self.done()])
        self.assertEqual(2, self.delta("rx_syndrome_15"))
        for r in self.records(2):
            self.assertEqual((1 << 15, "p0", ANSWER),
                             (r["syndrome"] & 0xffff, r["port"], r["qp_num"]))
            frame = roce.Frame(bytes.fromhex(r["header"]))
            self.assertEqual((IPS[0], IPS[0]), (frame.src_ip, frame.dst_ip))
            self.assertTrue(roce.has_good_icrc(frame.raw), "as on a wire")

    def test_LB_03_the_flight_recorder(self):
        self.own()
        for qp_num in (ASK, ANSWER):
            self.rpc("trace_start", qp_num=qp_num)
        self.post(self.wr("RDMA_WRITE", 10))
        self.settle()
        kinds = [[t["kind"] for t in self.rpc("trace_read", qp_num=q)] for q in (ASK, ANSWER)]
        self.assertIn("tx", kinds[0])
        self.assertIn("ack", kinds[1])

    def test_LB_03_marks_and_cnps(self):
        for path in ("data", "control"):
            with self.subTest(path):
                self.clear()
                self.setUp()
                self.own(knobs={"cc.cnp": "on", "cc.cnp_interval": 50, "cc.cnp_path": path})
                self.start_counters = self.dut.counters()
                self.rpc("impair_set", port="p0", impair={"rules": [
                    {"action": "ce", "direction": "request", "times": 1}]})
                self.post(self.wr("RDMA_WRITE", 10))
                self.settle()
                self.assertEqual((1, 1), (self.delta("np_cnp_sent"),
                                          self.delta("rp_cnp_handled")))
                self.rpc("impair_set", port="p0", impair=None)

    def test_LB_03_a_changed_packet_is_noticed(self):
        """Under an impairment the ICRC counts: a flipped bit is a lost packet."""
        self.own()
        self.rpc("impair_set", port="p0", impair={"rules": [
            {"action": "corrupt", "direction": "request", "times": 1}]})
        self.post(self.wr("RDMA_WRITE", 500, 0, 0), self.wr("RDMA_WRITE", 500, 500, 500))
        self.settle()
        self.assertEqual(["SUCCESS"] * 2, [c["status"] for c in self.done()])
        self.assertEqual(1, self.delta("rx_syndrome_30"))
        self.assertEqual(pattern(1, 1000), self.mem(0, 1000, "answerer"))

    # -- LB-05 --

    def test_LB_05_a_queue_pair_connected_to_itself(self):
        self.make("qp_create", **self.qp_params(
            qp_num=ASK, dest_qp_num=ASK, send_cq="scq", recv_cq="rcq", rq_psn=7, sq_psn=7,
            sq_sig_all=True, timeout=10, ah_attr={"dest_ip": IPS[0], "hop_limit": 64},
            cap={"max_send_wr": 256, "max_recv_wr": 256, "max_send_sge": 4, "max_recv_sge": 4}))
        self.drain()
        for turn in range(10):
            self.recv(40, 1000, ASK)
            kinds = ("SEND", "RDMA_WRITE", "RDMA_READ", "SEND", "RDMA_WRITE")
            self.post(*[self.wr(kinds[i % 5], 700, 1000 * i, 500000 + 1000 * i)
                        for i in range(100)])
            self.settle()
            self.assertEqual([(100 * turn + i, "SUCCESS") for i in range(100)],
                             [(c["wr_id"], c["status"]) for c in self.done()])
            self.assertEqual([(i, "SUCCESS", 700) for i in range(40)], [
                (c["wr_id"], c["status"], c["byte_len"]) for c in self.done("rcq")])
        self.assertEqual(0, self.delta("req_resent_pkts"))

    # -- LB-06 --

    def test_LB_06_source_and_counters(self):
        self.pair(retry_cnt=0)
        before = self.of_port("p0"), self.of_port("p1")
        self.post(self.wr("RDMA_WRITE", 5000))
        self.settle()
        after = self.of_port("p0"), self.of_port("p1")
        ask, answer = [{k: a[k] - b[k] for k in ("tx_packets", "sent_pkts", "rx_packets",
                                                 "local_packets", "tx_bytes", "rx_bytes")}
                       for a, b in zip(after, before)]
        acks = answer["tx_packets"]
        self.assertIn(acks, range(1, 5))
        for own, other, n in ((ask, answer, 5), (answer, ask, acks)):
            self.assertEqual((n, n, n, n), (own["tx_packets"], own["sent_pkts"],
                                            own["local_packets"], other["rx_packets"]))
            self.assertEqual(own["tx_bytes"], other["rx_bytes"])
        self.assertTrue(0 < answer["tx_bytes"] < 5000 < ask["tx_bytes"])
        self.rpc("qp_modify", qp_num=ANSWER, qp_state="RESET")
        self.post(self.wr("RDMA_WRITE", 10))
        self.settle(ms=30)
        for r in self.records(1):
            frame = roce.Frame(bytes.fromhex(r["header"]))
            self.assertEqual(("p1", *IPS), (r["port"], frame.src_ip, frame.dst_ip))

    # -- what a path may be --

    def test_the_wire_is_for_who_asks_for_it(self):
        """Another's MAC, or the knob."""
        for more in ({"knobs": {"path.local": "wire"}},
                     {"ah_attr": {"dest_ip": IPS[1], "dest_mac": "02:00:00:00:00:99"}}):
            self.make("qp_create", **self.qp_params(
                qp_num=ASK, dest_qp_num=ANSWER, send_cq="scq", recv_cq="rcq", timeout=10,
                **{"ah_attr": {"dest_ip": IPS[1]}, **more}))
            self.post(self.wr("RDMA_WRITE", 10))
            self.assertNotEqual([], self.dut.run(MS))
            self.assertIsNone(self.qp(ASK)["local_port"])
            self.made.remove(("qp_destroy", {"qp_num": ASK}))
            self.rpc("qp_destroy", qp_num=ASK)

    def test_no_wire_leads_to_its_own_port(self):
        """LB-01: nobody on it would answer for its address."""
        self.own(knobs={"path.local": "wire"})
        self.assertEqual("p0", self.qp(ASK)["local_port"])
        self.done_well()

    def test_its_own_mac_is_local(self):
        self.own(ah_attr={"dest_ip": IPS[0], "dest_mac": PORTS[0]["mac"]})
        self.done_well()

    def done_well(self, length=3000):
        self.post(self.wr("RDMA_WRITE", length), self.wr("RDMA_READ", length, 5000, 5000))
        self.settle()
        self.assertEqual(["SUCCESS"] * 2, [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, length), self.mem(0, length, "answerer"))

    def test_a_vlan(self):
        self.own(ah_attr={"dest_ip": IPS[0], "vlan": 9, "vlan_priority": 3})
        self.done_well()

    def test_one_vlan_is_not_the_other(self):
        self.own(retry_cnt=0, answer={"ah_attr": {"dest_ip": IPS[0], "vlan": 8}},
                 ah_attr={"dest_ip": IPS[0], "vlan": 9})
        self.post(self.wr("RDMA_WRITE", 10))
        self.settle(ms=30)
        self.assertEqual(["RETRY_EXC_ERR"], [c["status"] for c in self.done()])

    def test_explained(self):
        self.own()
        q = self.qp(ASK)
        self.assertEqual("p0", q["local_port"])
        self.assertIsNone(q["neighbor"])
        self.assertIn("local destination", self.rpc("qp_explain", qp_num=ASK)["network"]["text"])
        self.assertIn("port p0", self.rpc("qp_explain", qp_num=ASK)["network"]["text"])

    def test_a_link_that_is_down(self):
        """Nothing goes over it. Linux's loopback does not ask for a carrier either."""
        self.own()
        self.dut.command("port 0 down")
        self.settle(ms=1200)
        self.done_well()
        self.rpc("qp_modify", qp_num=ANSWER, qp_state="ERR")
        self.post(self.wr("RDMA_WRITE", 10))
        self.assertNotIn("PORT_DOWN", [w["kind"] for w in
                                       self.rpc("qp_explain", qp_num=ASK)["waits"]])
        self.dut.command("port 0 up")
        self.settle(ms=1200)

    def test_no_wait_is_for_the_wire(self):
        """TMR-02: the peer's receives come late, and the timer counts from each departure."""
        self.own(rnr_retry=7, min_rnr_timer=14)
        self.post(*[self.wr("SEND", 10, 10 * i) for i in range(64)])
        self.settle(ms=3)
        self.recv(64, 10)
        self.settle(ms=10)
        self.assertEqual(["SUCCESS"] * 64, [c["status"] for c in self.done()])
        self.assertEqual(0, self.delta("local_ack_timeout_err"))


class Six(LocalCase):
    """IPv6, and a port that has a smaller MTU."""

    CONFIG = {"ports": [PORTS6[0], {**PORTS6[1], "mtu": 1500}]}

    def test_LB_06_over_ipv6(self):
        ends = [{"ah_attr": {"dest_ip": IPS6[1 - i]}} for i in range(2)]
        self.pair(ask=ends[0], answer=ends[1])
        self.post(self.wr("RDMA_WRITE", 5000), self.wr("RDMA_READ", 5000, 10000, 10000))
        self.settle()
        self.assertEqual(["SUCCESS"] * 2, [c["status"] for c in self.done()])

    def test_what_the_other_port_does_not_take(self):
        """RX-LNK-02: as over a wire."""
        self.pair(retry_cnt=1, ask={"path_mtu": 4096})
        self.post(self.wr("RDMA_WRITE", 4096))
        self.settle(ms=30)
        self.assertEqual(["RETRY_EXC_ERR"], [c["status"] for c in self.done()])
        self.assertEqual(2, self.delta("rx_oversize"))


class TwoWorkers(LocalCase):
    """The ends belong to two workers, and p1 is polled by another one than p0."""

    FIXED = {"workers": "2"}

    def ends(self):
        for ask, answer in ((0, 1), (1, 0), (1, 1)):
            yield {"worker": ask}, {"worker": answer}

    def test_LB_01_ends_on_two_workers(self):
        for ask, answer in self.ends():
            with self.subTest(ask=ask, answer=answer):
                self.clear()
                self.setUp()
                self.own(ask=ask, answer=answer)
                self.post(*[self.wr("RDMA_WRITE", 4000, 4000 * i, 4000 * i) for i in range(100)])
                self.settle()
                self.assertEqual(["SUCCESS"] * 100, [c["status"] for c in self.done()])
                self.assertEqual(pattern(1, 400000), self.mem(0, 400000, "answerer"))
                self.assertEqual(0, self.delta("req_resent_pkts"))

    def test_LB_03_impaired_by_the_worker_that_polls(self):
        for ask, answer in self.ends():
            for port in ("p0", "p1"):
                with self.subTest(ask=ask, answer=answer, port=port):
                    self.clear()
                    self.setUp()
                    self.own(ask={**ask, "ah_attr": {"dest_ip": IPS[int(port[1])]}},
                             answer={**answer, "port": port})
                    for rule in ({"action": "drop", "times": 1}, {"action": "duplicate"},
                                 {"action": "delay", "delay_us": 5},
                                 {"action": "reorder", "times": 3}):
                        self.rpc("impair_set", port=port, impair={"rules": [rule]})
                        self.post(*[self.wr("RDMA_WRITE", 4000, 4000 * i, 4000 * i)
                                    for i in range(20)])
                        self.settle()
                        self.assertEqual(["SUCCESS"] * 20, [c["status"] for c in self.done()])
                        self.assertEqual(pattern(1, 80000), self.mem(0, 80000, "answerer"))
                        self.rpc("impair_set", port=port, impair=None)

    def test_moved_to_another_worker(self):
        self.own(ask={"worker": 0}, answer={"worker": 0})
        self.post(*[self.wr("RDMA_WRITE", 4000, 4000 * i, 4000 * i) for i in range(100)])
        for qp_num, worker in ((ASK, 1), (ANSWER, 1), (ASK, 0), (ANSWER, 0)):
            self.dut.command("turn 2")
            self.rpc("qp_modify", qp_num=qp_num, worker=worker)
        self.settle()
        self.assertEqual(["SUCCESS"] * 100, [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, 400000), self.mem(0, 400000, "answerer"))


class Datagrams(dut_ud.UdCase):
    """LB-04: two UD QPs of one port, and some to the wire in between."""

    FIXED = {"ip": "4", "vlan": "none"}

    def test_LB_04_to_the_own_address(self):
        self.sender()
        self.make("qp_create", **self.ud_params(qp_num=0x77, sq_psn=5, qkey="0x22222222"))
        self.post_recv_of(0x77)
        own = {"ah_attr": {"dest_ip": IPS[0], "hop_limit": 9, "traffic_class": 0x20},
               "remote_qpn": 0x77, "remote_qkey": 0x22222222}
        got = self.post(self.wr(100, "SEND_WITH_IMM", own, imm_data=77), self.wr(10))
        self.assertEqual([10], [len(f.payload) for f in got], "the other one has left")
        cqes = {c["qp_num"]: c for c in self.cqes()}
        got = cqes[0x77]
        self.assertEqual(("SUCCESS", dut.QPN, 140, 77), tuple(
            got[k] for k in ("status", "src_qp", "byte_len", "imm_data")))
        self.assertEqual({"GRH", "WITH_IMM"}, set(got["wc_flags"]))
        head = self.slot(got["wr_id"], 140)
        self.assertEqual(bytes(20), head[:20])
        self.assertEqual((0x45, 0x20, 9), (head[20], head[21], head[28]))
        self.assertEqual(bytes([192, 0, 2, 1] * 2), head[32:40])
        self.assertEqual(pattern(9, 100), head[40:140])
        self.assertEqual(1, self.delta("local_packets"))

    def post_recv_of(self, qp_num):
        self.wr_id = 8
        self.post_recv(2, qp_num=qp_num)


class Paths(LocalCase):
    """APM: both paths are local, on one port each."""

    FIXED = {"qps": "1"}

    def test_the_alternate_path_is_local(self):
        """REQ-RETRY-09: p0's own address loses everything; then it is that of p1."""
        both = {"alt_ah_attr": {"dest_ip": IPS[1]}, "alt_port": "p1", "path_mig_state": "REARM"}
        self.own(retry_cnt=2, **both)
        self.post(self.wr("RDMA_WRITE", 10))
        self.settle(2)
        self.assertEqual([("p0", "p0", "p1", "ARMED")] * 2, [
            tuple(self.qp(q)[k] for k in ("port", "local_port", "alt_local_port",
                                          "path_mig_state")) for q in (ASK, ANSWER)])
        self.rpc("impair_set", port="p0", impair={"rules": [{"action": "drop"}]})
        self.post(self.wr("RDMA_WRITE", 5000, 100, 100))
        self.settle(60)
        self.assertEqual(["SUCCESS"] * 2, [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, 5000, 100), self.mem(100, 5000, "answerer"))
        self.assertEqual([("p1", "p1", "MIGRATED")] * 2, [
            tuple(self.qp(q)[k] for k in ("port", "local_port", "path_mig_state"))
            for q in (ASK, ANSWER)])


if __name__ == "__main__":
    dut.main()
