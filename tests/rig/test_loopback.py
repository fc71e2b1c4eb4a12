# SPDX-License-Identifier: BSD-3-Clause
"""config/examples/loopback.json in the real program: two in-memory ports, no privileges."""
import json
import os
import re
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "config", "examples", "loopback.json")


class Loopback(unittest.TestCase):

    def run_example(self, change=lambda config: None, seconds="2"):
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        with tempfile.TemporaryDirectory(prefix="rocelane-loop-") as where:
            config["control"]["socket"] = os.path.join(where, "sock")
            change(config)
            path = os.path.join(where, "config.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            return subprocess.run(
                [os.environ["ROCELANE"], "--config", path, "--duration", seconds],
                env=dict(os.environ, XDG_RUNTIME_DIR=where), text=True, timeout=60,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def counters(self, output):
        return {name: int(value) for name, value in re.findall(r"^(\w+) +(\d+)$", output, re.M)}

    def test_feeds_run(self):
        done = self.run_example()
        self.assertEqual(0, done.returncode, done.stdout)
        c = self.counters(done.stdout)
        self.assertGreater(c["req_messages"], 10000)
        self.assertEqual(c["req_messages"] * 1024, c["req_message_bytes"])
        self.assertGreaterEqual(c["rx_write_requests"], c["req_messages"])
        for name in ("req_cqe_error", "resp_cqe_error", "tx_backlog_drop", "rx_syndrome_30"):
            self.assertEqual(0, c.get(name, 0), name)

    def test_a_delay_is_kept_while_the_worker_sleeps(self):
        """5 us each way and one ATOMIC at a time: an idle sleep of 50 us would show."""
        def delayed(config):
            self.assertEqual("sleep", config["lcores"]["idle"])
            config["qps"] = [q for q in config["qps"] if q["qp_num"] in (32, 64)]
            for q in config["qps"]:
                q["count"] = 1
                if "send_feed" in q:
                    q["send_feed"] = {"opcode": "ATOMIC_FETCH_AND_ADD", "depth": 1,
                                      "rkey": "0x1001", "remote_addr": "0x10000"}
            for port in config["ports"]:
                port["impair"] = {"rules": [{"action": "delay", "delay_us": 5}]}
        done = self.run_example(delayed, "1")
        self.assertEqual(0, done.returncode, done.stdout)
        c = self.counters(done.stdout)
        # 100,000 at most; one that slept would do 8,000, on an idle machine
        self.assertLess(c["req_messages"], 100001)
        self.assertGreater(c["req_messages"], 12000)
        self.assertEqual(0, c.get("req_resent_pkts", 0))

    def test_a_pair_has_two_ends(self):
        def drop_port(config):
            config["ports"].pop()
            config["qps"] = []
        done = self.run_example(drop_port, "1")
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertIn("net_pair0b", done.stdout)


if __name__ == "__main__":
    unittest.main()
