# SPDX-License-Identifier: BSD-3-Clause
"""rocelanectl: counters, stages, top, what is watched, metrics."""
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
import prometheus  # noqa: E402
from ctl import CTL, QPS, Case  # noqa: E402
from fake_daemon import FakeDaemon, RpcError  # noqa: E402

ROOT = os.environ["ROCELANE_ROOT"]


class Stats(Case):
    WORKERS = [{"worker": 0, "rx_packets": 7, "tx_packets": 0},
               {"worker": 1, "rx_packets": 12, "tx_packets": 0}]
    DROPS = [{"worker": 0, "rx_packets": 7, "rx_syndrome_30": 3, "rx_syndrome_16": 9}]

    def test_total_leaves_zeros_out(self):
        answers = {"stats": {"rx_packets": 12, "rx_bytes": 0}}
        self.assertEqual(self.ctl(answers, "stat", "show"),
                         "counter     total\nrx_packets     12\n")
        self.assertEqual(self.asked, [("stats", {"scope": "total"})])
        self.assertIn("rx_bytes", self.ctl(answers, "stat", "show", "--all"))

    def test_a_column_a_worker(self):
        want = "counter     0   1\nrx_packets  7  12\n"
        shapes = [self.WORKERS, {"0": {"rx_packets": 7}, "1": {"rx_packets": 12}},
                  [{"worker": 0, "counters": {"rx_packets": 7}},
                   {"worker": 1, "counters": {"rx_packets": 12}}]]
        for shape in shapes:
            with self.subTest(shape=shape):
                self.assertEqual(self.ctl({"stats": shape}, "stat", "show", "worker"), want)

    def test_qp_scope(self):
        self.ctl({"stats": {"qp_num": 17, "rcvd_pkts": 1}}, "stat", "show", "qp", 17)
        self.assertEqual(self.asked, [("stats", {"scope": "qp", "qp_num": 17})])

    @staticmethod
    def load(turn):
        """A worker that is busy half of the time, 40 cycles in "rx" and 60 in "tx" a packet."""
        return [{"worker": 0, "lcore": 3, "measure": True, "packets": 1000 * turn,
                 "turns": 10 * turn, "busy_turns": 5 * turn, "busy_ns": 5000 * turn,
                 "total_ns": 10000 * turn, "tsc_hz": 1000, "stall_ns": 2000000 * turn,
                 "stage_cycles": {"rx": 40000 * turn, "tx": 60000 * turn}}]

    def test_stages_are_cycles_between_two_readings(self):
        turns = iter(range(1, 9))
        asked = []

        def worker_load(params):
            asked.append(params)
            return self.load(next(turns))
        out = self.ctl({"worker_load": worker_load}, "stat", "show", "--stages", "0.01")
        self.assertEqual([{"measure": True}, {"measure": False}], asked)
        self.assertEqual(["worker", "lcore", "busy%", "packets", "rx", "tx", "cycles/packet"],
                         out.splitlines()[0].split())
        self.assertEqual(["0", "3", "50.0", "1000", "40.0", "60.0", "100.0"],
                         out.splitlines()[1].split())

    def test_json_has_numbers_as_numbers(self):
        out = self.ctl({"worker_load": lambda p, n=iter((1, 2)): self.load(next(n))},
                       "-j", "stat", "show", "--stages", "0.01")
        self.assertEqual([{"worker": 0, "lcore": 3, "busy%": 50.0, "packets": 1000, "rx": 40.0,
                           "tx": 60.0, "cycles/packet": 100.0}], json.loads(out))

    def test_top_shows_workers_ports_and_queue_pairs(self):
        turns = {}

        def turn(key):
            turns[key] = turns.get(key, 0) + 1
            return turns[key] - 1

        def stats(params):
            n = turn(params["scope"] + str(params.get("qp_num", ""))) * 100
            c = {"rx_packets": 10 * n, "rcvd_pkts": 7 * n, "rx_control": n, "tx_packets": 5 * n,
                 "rx_handoff": 4 * n, "rx_syndrome_30": n, "out_of_sequence": n,
                 "rx_handoff_lost": n,
                 "sent_pkts": 4 * n, "resp_nak_sequence_sent": n, "local_ack_timeout_err": 2 * n,
                 "rx_bytes": 0, "tx_bytes": 0}
            if params["scope"] == "qp":
                return dict(c, qp_num=params["qp_num"])
            return [dict(c, **{params["scope"]: 0 if params["scope"] == "worker" else "p0"})]
        answers = {"stats": stats, "worker_load": lambda p: self.load(turn("load") + 1),
                   "port_list": [{"name": "p0", "state": "UP"}], "qp_list": QPS}
        out = self.ctl(answers, "-j", "top", "interval", "0.01", "count", "2", "qps", "2")
        pictures = [json.loads(line) for line in out.splitlines()]
        self.assertEqual(2, len(pictures))
        for p in pictures:
            w, port, qps = p["workers"][0], p["ports"][0], p["qps"]
            self.assertEqual((0, 3, 50.0), (w["worker"], w["lcore"], w["busy%"]))
            self.assertIsInstance(w["rx_gbps"], float)
            self.assertEqual("UP", port["state"])
            self.assertEqual([17, 1048593], [q["qp_num"] for q in qps])
            # the counters grow in fixed proportions, whatever the interval really was
            self.assertGreater(w["rx/s"], 0)
            for share, got in ((0.5, w["tx/s"]), (0.2, w["drops/s"]), (0.2, w["retries/s"]),
                               (0.5, port["tx/s"]), (0.2, port["drops/s"])):
                self.assertAlmostEqual(share, got / w["rx/s"], delta=0.1)
            self.assertAlmostEqual(4 / 7, qps[0]["tx/s"] / qps[0]["rx/s"], delta=0.01)
            self.assertAlmostEqual(1 / 7, qps[0]["naks/s"] / qps[0]["rx/s"], delta=0.01)
        text = self.ctl(answers, "top", "interval", "0.01", "count", "1")
        self.assertIn("busy%", text)
        self.assertIn("retries/s", text)

    def on_a_terminal(self, answers, *words, columns, rows):
        """The program on a pseudo-terminal: q after the second picture. What it wrote, its code."""
        master, slave = pty.openpty()
        termios.tcsetwinsize(slave, (rows, columns))
        before = termios.tcgetattr(slave)
        with FakeDaemon(answers) as d, subprocess.Popen(
                [CTL, "-s", d.path, *words], stdin=slave, stdout=slave, stderr=slave) as p:
            out = b""
            while out.count(b"\x1b[H") < 2:
                self.assertTrue(select.select([master], [], [], 20)[0], out)
                out += os.read(master, 65536)
            os.write(master, b"xq")
            while p.poll() is None:                 # and nobody waits for us to read
                if select.select([master], [], [], 0.05)[0]:
                    os.read(master, 65536)
        self.assertEqual(before, termios.tcgetattr(slave))
        os.close(slave)
        os.close(master)
        self.assertEqual(0, p.returncode)
        return out.decode().split("\x1b[H\x1b[J")[1]

    def test_top_and_watch_on_a_terminal(self):
        """q ends them; no line is longer than the terminal is wide, and none scrolls away."""
        def stats(params):
            if params["scope"] == "total":
                return {"rx_packets_with_a_name_that_is_long_%d" % i: i for i in range(1, 40)}
            return [dict({"rx_packets": 1}, **{params["scope"]: "p0"})]
        answers = {"stats": stats, "worker_load": self.load(3), "qp_list": QPS,
                   "port_list": [{"name": "p0", "state": "UP"}]}
        for words in (["top", "interval", "0.05"], ["stat", "show", "--watch", "0.05"]):
            with self.subTest(words=words):
                shown = self.on_a_terminal(answers, *words, columns=30, rows=8)
                lines = shown.replace("\r", "").split("\n")
                self.assertGreater(len(lines), 5)
                self.assertLessEqual(len(lines), 8)
                self.assertEqual(30, max(map(len, lines)))

    def test_config_save_prints_a_file(self):
        out = self.ctl({"save_config": {"version": 1, "pds": ["pd0"]}}, "config", "save")
        self.assertEqual({"version": 1, "pds": ["pd0"]}, json.loads(out))

    def test_watch_shows_rates_until_the_daemon_goes(self):
        seen = []

        def stats(_):
            seen.append(1)
            return {"rx_packets": len(seen)} if len(seen) < 3 else None
        out = self.ctl({"stats": stats}, "stat", "show", "--watch", "0.01", code=1)
        self.assertIn("counter     total  total/s\n", out)

    def metrics(self, **more):
        def stats(params):
            if params["scope"] == "worker":
                return self.WORKERS
            if params["scope"] == "port":
                return [{"port": 'p"0\\', "rx_packets": 19, "dev_rx_missed": 4}]
            return {"rx_packets": 19, "tx_packets": 0, "control_rx": 3}
        answers = {"stats": stats, "worker_load": self.load(3),
                   "version": {"version": "1.2", "dpdk_version": 'DPDK "22"', "crc": "x"},
                   "qp_count": {"RESET": 0, "RTS": 5, "ERR": 2},
                   "port_list": [{"name": "p0", "state": "UP", "mtu": 1500},
                                 {"name": "p1", "state": "DOWN", "mtu": 4200}],
                   "worker_list": [{"worker": 0, "qps": 7}], "client_list": [{"client": 1}]}
        return prometheus.parse(self.ctl(dict(answers, **more), "metrics"))

    def test_metrics_are_what_prometheus_reads(self):
        """A strict parser takes every line; each name is one thing, with a type and a help text."""
        families = self.metrics()
        self.assertEqual([], prometheus.faults_of(families))
        self.assertTrue(all(f.type and f.help and f.samples for f in families.values()))
        self.assertEqual("frames taken from ports", families["rocelane_rx_packets_total"].help)

    def test_metrics_add_up(self):
        """sum() over the labels is the total: workers and ports have names of their own."""
        f = self.metrics()

        def samples(name):
            return {tuple(v for _, v in k): n for k, n in f["rocelane_" + name].samples.items()}
        self.assertEqual({("0",): 7, ("1",): 12}, samples("rx_packets_total"))
        self.assertEqual({('p\\"0\\\\',): 19}, samples("port_rx_packets_total"))
        self.assertEqual({('p\\"0\\\\',): 4}, samples("port_dev_rx_missed_total"))
        self.assertEqual({(): 3}, samples("control_rx_total"))
        self.assertEqual({("0",): 0.000015}, samples("worker_busy_seconds_total"))
        self.assertEqual({("0",): 0.00003}, samples("worker_seconds_total"))
        self.assertEqual({("0",): 0.006}, samples("worker_stall_seconds_total"))

    def test_metrics_of_what_the_control_lcore_counts_too(self):
        """The sum over workers would lack its part: the total has no label."""
        for name in ("aeq_overflow", "error_buffer_lost"):
            f = self.metrics(stats=lambda p, n=name: {
                "worker": [{"worker": 0, n: 2}], "port": []}.get(p["scope"], {n: 5}))
            self.assertEqual({(): 5}, f["rocelane_%s_total" % name].samples)

    def test_metrics_of_drops_are_one_family(self):
        """Whatever makes a packet leave early, by reason: their sum is all drops."""
        f = self.metrics(stats=lambda p: self.DROPS)["rocelane_rx_dropped_packets_total"]
        self.assertEqual({(("reason", "rx_syndrome_30"), ("worker", "0")): 3}, f.samples)

    def test_metrics_have_gauges(self):
        f = self.metrics()
        self.assertEqual({(("crc", "x"), ("dpdk_version", 'DPDK \\"22\\"'), ("version", "1.2")): 1},
                         f["rocelane_build_info"].samples)
        self.assertEqual({(("state", "RESET"),): 0, (("state", "RTS"),): 5, (("state", "ERR"),): 2},
                         f["rocelane_qps"].samples)
        self.assertEqual({(("port", "p0"),): 1, (("port", "p1"),): 0},
                         f["rocelane_port_up"].samples)
        self.assertEqual({(("port", "p0"),): 1500, (("port", "p1"),): 4200},
                         f["rocelane_port_mtu_bytes"].samples)
        self.assertEqual({(("worker", "0"),): 7}, f["rocelane_worker_qps"].samples)
        self.assertEqual({(): 1}, f["rocelane_clients"].samples)

    def test_half_a_page_of_metrics_is_none(self):
        def gone(_):
            raise RpcError(-32000, "no")
        out = self.ctl({"stats": self.WORKERS, "version": gone}, "metrics", code=1)
        self.assertEqual("", out)

    def test_dashboard_asks_for_counters_that_exist(self):
        with open(os.path.join(ROOT, "lib/stats/counters.def"), encoding="utf-8") as f:
            known = set(re.findall(r"^COUNTER\((\w+),", f.read(), re.M))
        with open(os.path.join(ROOT, "config/grafana/rocelane.json"), encoding="utf-8") as f:
            panels = json.load(f)["panels"]
        names = {"rocelane_port_" + n + "_total" for n in known}
        names |= {"rocelane_" + n + "_total" for n in known}
        names |= set(self.metrics()) | {"rocelane_rx_dropped_packets_total"}
        asked = [t["expr"] for p in panels for t in p["targets"]]
        self.assertEqual(set(), set(re.findall(r"\brocelane_\w+", " ".join(asked))) - names)
        self.assertGreater(len(asked), 10)
        self.assertNotIn("scope=", " ".join(asked))
        for gauge in ("rocelane_qps", "rocelane_port_up", "rocelane_build_info"):
            self.assertTrue(any(gauge in a for a in asked), gauge)


if __name__ == "__main__":
    tap.main()
