# SPDX-License-Identifier: BSD-3-Clause
"""drivers/net/impair in the whole dataplane: rules from the file and by RPC, recovery, replay."""
import json

import dut
import roce
from dut_loop import ANSWER, ASK, LEN, PORTS, LoopCase
from roce import pattern

US = 1000
QP = 17
NAMED = {"action": "drop", "qp_num": QP, "psn": 42, "times": 1}


class ImpairCase(LoopCase):

    def impair(self, port, *rules, **more):
        return self.rpc("impair_set", port=port, impair={"rules": list(rules), **more})

    def tearDown(self):
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair=None)
        self.dut.run()
        super().tearDown()

    def seventeen(self, **both):
        """The requester sends to QP 17, PSN 40 first."""
        self.pair(ask={"dest_qp_num": QP, "sq_psn": 40}, answer={"qp_num": QP, "rq_psn": 40},
                  **both)

    def asks(self, length):
        """A WRITE to QP 17 whose packets are ECN-capable."""
        self.pair(ask={"dest_qp_num": QP, "sq_psn": 40, "ah_attr": {
            "dest_ip": "192.0.2.2", "hop_limit": 64, "traffic_class": 2}},
                  answer={"qp_num": QP, "rq_psn": 40})
        self.post(self.wr("RDMA_WRITE", length))

    def wire(self, port):
        return self.rpc("impair_get", port=port)["counters"]


class FromFile(ImpairCase):

    CONFIG = {"ports": [PORTS[0], {**PORTS[1], "impair": {"rules": [NAMED]}}]}

    def test_qp_17_psn_42_first_time(self):
        """REQ-NAK-01, RESP-SEQ-01: the named packet is lost once; a sequence NAK brings it back."""
        self.assertEqual([NAMED], self.rpc("impair_get", port="p1")["impair"]["rules"])
        self.assertIsNone(self.rpc("impair_get", port="p0")["impair"])
        self.seventeen()
        self.post(*[self.wr("RDMA_WRITE", 1000, 1000 * i, 1000 * i) for i in range(6)])
        self.settle()
        self.assertEqual([(i, "SUCCESS") for i in range(6)],
                         [(c["wr_id"], c["status"]) for c in self.done()])
        self.assertEqual(pattern(1, 6000), self.mem(0, 6000, "answerer"))
        self.assertEqual(1, self.wire("p1")["dropped"])
        self.assertEqual((1, 1, 4, 0), (self.delta("resp_nak_sequence_sent"),
                                        self.delta("packet_seq_err"),
                                        self.delta("req_resent_pkts"),
                                        self.delta("local_ack_timeout_err")))
        self.assertEqual({"port": "p1", "next": 1, "lost": 0, "impair": {"seed": 0, "rules": [
            {**NAMED, "opcode": roce.WRITE_ONLY}]}}, self.rpc("impair_log", port="p1"))


class Bottleneck(ImpairCase):

    QUEUE = {"rate": "100M", "buffer": 65536, "kmin": 4096, "kmax": 4096, "pmax": 1.0}
    CONFIG = {"ports": [PORTS[0], {**PORTS[1], "bottleneck": QUEUE}],
              "knobs": {"cc.cnp": "on", "cc.algo": "dcqcn"}}

    def test_CC_27_rate_and_marks_on_a_port(self):
        """32 KB at 100 Mb/s take 2.6 ms; beyond 4 KiB in the queue marks draw CNPs."""
        before = self.wire("p1")
        self.assertEqual(self.QUEUE, self.rpc("impair_get", port="p1")["impair"]["bottleneck"])
        self.asks(32768)
        for _ in range(26):
            self.dut.run(100 * US)
        self.assertEqual([], self.done())
        self.settle()
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, 32768), self.mem(0, 32768, "answerer"))
        after = self.wire("p1")
        marked = after["queue_marked"] - before["queue_marked"]
        self.assertGreater(marked, 0)
        self.assertEqual(marked, self.delta("np_ecn_marked_roce_packets"))
        self.assertGreater(self.delta("rp_cnp_handled"), 0)
        self.assertEqual((0, 0, 0), (after["queue_dropped"], after["queue_bytes"], after["held"]))
        self.assertNotIn("bottleneck", self.rpc("port_list")[1])


class SmallBuffer(ImpairCase):

    def test_CC_27_what_the_buffer_does_not_hold(self):
        """It is lost, and sent again: the data are right."""
        self.impair("p1", bottleneck={"rate": "1G", "buffer": "8K"})
        before = self.wire("p1")["queue_dropped"]
        self.asks(65536)
        self.settle(60)
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, 65536), self.mem(0, 65536, "answerer"))
        self.assertGreater(self.wire("p1")["queue_dropped"], before)


class Latency(ImpairCase):

    def test_latency_of_a_feed(self):
        """From posting to completion: 5 us each way are 10, told within a sixteenth."""
        for port in ("p0", "p1"):
            self.impair(port, {"action": "delay", "delay_us": 5})
        for opcode, kind in (("SEND", "SEND"), ("RDMA_WRITE_WITH_IMM", "RDMA_WRITE"),
                             ("RDMA_READ", "RDMA_READ"), ("ATOMIC_CMP_AND_SWP", "ATOMIC")):
            self.setUp()
            before = {row["opcode"]: row for row in self.rpc("latency")}
            feed = {"opcode": opcode, "depth": 1, "count": 20}
            if not opcode.startswith("SEND"):
                feed.update(rkey="0x202", remote_addr=hex(0x202 << 32))
            settle, self.settle = self.settle, lambda: None
            self.pair(ask={"send_feed": feed}, answer={"recv_feed": {"buffers": 8, "size": 64}})
            self.settle = settle
            for _ in range(800):
                self.dut.run(500)
            rows = {row["opcode"]: row for row in self.rpc("latency", buckets=True)}
            for name, row in rows.items():
                self.assertEqual(20 * (name == kind), row["count"] - before[name]["count"], name)
            row = rows[kind]
            self.assertEqual(row["count"], sum(n for _, n in row["buckets"]))
            self.assertGreaterEqual(row["p50_ns"], 10 * US)
            self.assertLessEqual(row["p50_ns"], 11 * US)
            self.assertLessEqual(row["p50_ns"], row["p99_ns"])
            self.assertEqual(row["max_ns"], row["buckets"][-1][0])


class OneLoss(ImpairCase):

    FIXED = {"qps": "1"}    # of 256 times as many READs a worker drops some by itself

    def test_one_lost_response_is_one_retry(self):
        """REQ-IMPL-05, RESP-DUP-03: with many READs under way the repeated ones are answered in PSN
        order, so that one resend is enough; else each resend would call for the next."""
        for depth, skip in ((4, 20), (4, 105), (8, 55), (16, 155)):
            self.setUp()
            self.impair("p0", {"action": "drop", "opcode": roce.READ_MIDDLE, "skip": skip,
                               "times": 1})
            dropped = self.wire("p0")["dropped"]
            before = self.dut.counters()
            self.pair(path_mtu=4096, timeout=14, ask={"send_feed": {
                "opcode": "RDMA_READ", "size": 65536, "depth": depth, "count": 60,
                "rkey": "0x202", "remote_addr": hex(0x202 << 32)}})
            self.settle(ms=5)
            after = self.dut.counters()
            self.assertEqual({"posted": 60, "completed": 60}, self.qp(ASK)["feed"])
            got = {name: after[name] - before[name] for name in (
                "implied_nak_seq_err", "req_resent_pkts", "local_ack_timeout_err",
                "read_duplicates_dropped")}
            self.assertEqual(1, got["implied_nak_seq_err"], (depth, skip, got))
            self.assertLessEqual(got["req_resent_pkts"], depth, (depth, skip, got))
            self.assertEqual((0, 0), (got["local_ack_timeout_err"],
                                      got["read_duplicates_dropped"]), (depth, skip))
            self.assertEqual(1, self.wire("p0")["dropped"] - dropped)


class ByRpc(ImpairCase):

    def test_a_lost_acknowledgement(self):
        """REQ-RETRY-01: nothing tells of it but the transport timer."""
        self.seventeen()
        self.impair("p0", {"action": "drop", "direction": "response", "qp_num": ASK, "times": 1})
        self.post(self.wr("RDMA_WRITE", 8))
        self.settle()
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.done()])
        self.assertEqual(1, self.wire("p0")["dropped"])
        self.assertEqual((1, 1), (self.delta("local_ack_timeout_err"),
                                  self.delta("duplicate_request")))

    def test_a_lost_read_response(self):
        """REQ-IMPL-01: the gap in a READ is seen at once, not by the timer."""
        self.seventeen()
        self.impair("p0", {"action": "drop", "qp_num": ASK, "opcode": roce.READ_MIDDLE, "skip": 1,
                           "times": 1})
        self.post(self.wr("RDMA_READ", 5000, 0, 3))
        self.settle()
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.done()])
        self.assertEqual(pattern(2, 5000, 3), self.mem(0, 5000, "asker"))
        self.assertEqual((1, 0), (self.delta("implied_nak_seq_err"),
                                  self.delta("local_ack_timeout_err")))

    def test_a_lost_atomic_result_is_one_retry(self):
        """REQ-IMPL-03, RESP-DUP-06: likewise; and each addition happens once."""
        for depth in (4, 16):
            self.setUp()
            self.set_mem(0, bytes(8), "answerer")
            self.impair("p0", {"action": "drop", "opcode": roce.ATOMIC_ACK, "skip": 20, "times": 1})
            before = self.dut.counters()
            self.pair(ask={"send_feed": {"opcode": "ATOMIC_FETCH_AND_ADD", "depth": depth,
                                         "count": 100, "rkey": "0x202",
                                         "remote_addr": hex(0x202 << 32)}})
            self.settle(ms=5)
            after = self.dut.counters()
            self.assertEqual(100, int.from_bytes(self.mem(0, 8, "answerer"), "little"))
            self.assertEqual(1, after["implied_nak_seq_err"] - before["implied_nak_seq_err"], depth)
            self.assertEqual(0, after["local_ack_timeout_err"] - before["local_ack_timeout_err"])

    def test_every_action_at_once(self):
        """CQ-04: whatever the wire does, each request completes once, in order, with its data."""
        self.seventeen()
        for port, seed in (("p0", 1), ("p1", 2)):
            self.impair(
                port, {"action": "drop", "probability": 0.02},
                {"action": "duplicate", "probability": 0.05, "copies": 2, "delay_us": 3},
                {"action": "reorder", "probability": 0.05, "distance": 3, "hold_us": 50},
                {"action": "corrupt", "probability": 0.02, "bits": 3},
                {"action": "delay", "delay_us": 2, "jitter_us": 20},
                {"action": "ce", "burst": {"p": 0.05, "r": 0.2}}, seed=seed)
        want = bytearray(pattern(2, LEN))
        for i in range(4):
            at = 200000 * i
            self.post(*[self.wr("RDMA_WRITE", 4000, at + 4000 * k, at + 4000 * k)
                        for k in range(25)])
            want[at:at + 100000] = pattern(1, LEN)[at:at + 100000]
            for _ in range(4000):
                self.dut.run(25 * US)
                if self.qp(ASK)["outstanding"] == 0:
                    break
        self.assertEqual([(i, "SUCCESS") for i in range(100)],
                         [(c["wr_id"], c["status"]) for c in self.done()])
        self.assertEqual(bytes(want), self.mem(0, LEN, "answerer"))
        self.dut.run(20_000 * US)
        for port in ("p0", "p1"):
            c = self.wire(port)
            self.assertEqual((c["in"] + c["duplicated"], 0),
                             (c["out"] + c["dropped"] + c["held"], c["held"]), c)
            for name in ("dropped", "duplicated", "reordered", "corrupted", "delayed", "ce_marked"):
                self.assertGreater(c[name], 0, (port, name))

    def a_run(self):
        """The same requests of a fresh pair. @return what each port decided."""
        self.setUp()
        self.seventeen()
        self.post(*[self.wr("RDMA_WRITE", 3000, 3000 * i, 3000 * i) for i in range(100)],
                  *[self.wr("RDMA_READ", 3000, 400000 + 3000 * i, 400000 + 3000 * i)
                    for i in range(50)])
        for _ in range(400):
            self.settle(ms=5)
            if self.qp(ASK)["outstanding"] == 0:
                break
        self.assertEqual(["SUCCESS"] * 150, [c["status"] for c in self.done()])
        self.assertEqual(pattern(1, 300000), self.mem(0, 300000, "answerer"))
        self.assertEqual(pattern(2, 150000, 400000), self.mem(400000, 150000, "asker"))
        logs = [self.rpc("impair_log", port=p) for p in ("p0", "p1")]
        self.assertEqual([0, 0], [log["lost"] for log in logs])
        return [log["impair"] for log in logs]

    def test_a_random_run_replays_as_a_script(self):
        """Recovery from losses seen at random: the log given back loses the same packets again."""
        for seed in (7, 8):
            for port in ("p0", "p1"):
                self.impair(port, {"action": "drop", "probability": 0.05}, seed=seed)
            random = self.a_run()
            for script in random:
                self.assertGreater(len(script["rules"]), 5)
                self.assertEqual({"drop"}, {r["action"] for r in script["rules"]})
                self.assertTrue(all("probability" not in r for r in script["rules"]))
            for port, script in zip(("p0", "p1"), random):
                # through text, as by a file
                self.rpc("impair_set", port=port, impair=json.loads(json.dumps(script)))
            self.assertEqual(random, self.a_run())

    def test_a_delay_is_a_longer_way(self):
        """5 us each way: the completion of a WRITE comes after 10 us, and not a moment earlier."""
        self.seventeen()
        for port in ("p0", "p1"):
            self.impair(port, {"action": "delay", "delay_us": 5})
        self.dut.run()
        self.post(self.wr("RDMA_WRITE", 8))
        start = self.dut.now()
        done = []
        self.dut.run()
        while not done and self.dut.now() < start + 100 * US:
            self.dut.run(500)
            done = self.done()
        self.assertEqual(10 * US, self.dut.now() - start)
        self.assertEqual(["SUCCESS"], [c["status"] for c in done])
        self.assertEqual(0, self.delta("req_resent_pkts"))

    def test_what_is_held_comes_back_with_the_port(self):
        """Held packets are no obstacle to a clean end: detached first, then the port is closed."""
        self.seventeen()
        self.impair("p1", {"action": "delay", "delay_us": 10_000_000})
        self.post(*[self.wr("RDMA_WRITE", 1000) for _ in range(10)])
        self.dut.run()
        self.assertGreater(self.wire("p1")["held"], 0)
        self.clear()
        self.assertEqual(0, self.dut.close())
        type(self).start()

    def test_refused_rules_leave_the_old_ones(self):
        self.impair("p1", NAMED)
        with self.assertRaises(dut.RpcError) as caught:
            self.impair("p1", {"action": "drop", "burst": {"p": 1}})
        self.assertIn("impair/rules/0/burst/r: is missing", caught.exception.message)
        self.assertEqual([NAMED], self.rpc("impair_get", port="p1")["impair"]["rules"])


class Cause(ImpairCase):

    def test_REQ_RETRY_07_what_was_dropped_is_the_cause(self):
        """It is named with the failure, and stays so; what goes wrong later is not its cause."""
        self.pair(timeout=8, retry_cnt=1)
        self.impair("p1", {"action": "drop", "direction": "request"})
        self.post(self.wr("RDMA_WRITE", 100))
        self.assertNotIn("impair", self.rpc("qp_explain", qp_num=ANSWER)["summary"])
        self.settle()
        says = "REQ-RETRY-07); impair at port p1 dropped or corrupted 2 packets"
        first = self.rpc("qp_explain", qp_num=ASK)["summary"]
        self.assertTrue(first.endswith(says), first)
        self.assertIn(says + "; completed with RETRY_EXC_ERR", self.dut.stderr())
        self.rpc("impair_set", port="p1", impair=None)
        self.dut.command("link 0 1 1")
        self.rpc("neighbor_flush", port="p0")
        self.settle(2000)
        now = self.rpc("qp_explain", qp_num=ASK)
        self.assertEqual(first, now["summary"])
        self.assertRegex(now["network"]["text"], "^neighbour 192.0.2.2 is (STALE|INCOMPLETE)")
        self.assertIn(says[len("REQ-RETRY-07); "):],
                      self.rpc("qp_post_mortem", qp_num=ASK)[0]["network"])

    def test_REQ_RETRY_07_what_was_dropped_before_is_not(self):
        """A packet of its own that has come since is not the cause, nor are those of others."""
        self.pair(timeout=8, retry_cnt=1)
        self.impair("p1", {"action": "drop", "direction": "request", "times": 1})
        self.post(self.wr("RDMA_WRITE", 100))
        self.dut.run(100 * US)
        self.assertIn("impair at port p1 dropped or corrupted 1 packet",
                      self.rpc("qp_explain", qp_num=ASK)["network"]["text"])
        self.settle()
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.done()])
        self.assertEqual(1, len(self.rpc("impair_log", port="p1")["impair"]["rules"]))
        self.rpc("qp_modify", qp_num=ANSWER, qp_state="ERR")
        self.post(self.wr("RDMA_WRITE", 100))
        self.settle()
        summary = self.rpc("qp_explain", qp_num=ASK)["summary"]
        self.assertIn("REQ-RETRY-07", summary)
        self.assertNotIn("impair", summary)
        self.assertIsNone(self.rpc("qp_post_mortem", qp_num=ASK)[0]["network"])


if __name__ == "__main__":
    dut.main()
