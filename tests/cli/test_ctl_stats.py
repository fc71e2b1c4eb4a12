# SPDX-License-Identifier: BSD-3-Clause
"""rocelanectl: counters, stages, top, what is watched, metrics."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from ctl import QPS, Case  # noqa: E402

ROOT = os.environ["ROCELANE_ROOT"]


class Stats(Case):
    WORKERS = [{"worker": 0, "rx_packets": 7, "tx_packets": 0},
               {"worker": 1, "rx_packets": 12, "tx_packets": 0}]

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
                 "total_ns": 10000 * turn, "tsc_hz": 1000,
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

    def test_top_shows_workers_ports_and_queue_pairs(self):
        turns = {}

        def turn(key):
            turns[key] = turns.get(key, 0) + 1
            return turns[key] - 1

        def stats(params):
            n = turn(params["scope"] + str(params.get("qp_num", ""))) * 100
            c = {"rx_packets": 10 * n, "rcvd_pkts": 7 * n, "rx_control": n, "tx_packets": 5 * n,
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
            self.assertEqual((0, 3, "50.0"), (w["worker"], w["lcore"], w["busy%"]))
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

    def test_metrics(self):
        def stats(params):
            if params["scope"] == "worker":
                return self.WORKERS
            if params["scope"] == "port":
                return [{"port": 'p"0', "rx_packets": 19}]
            return {"rx_packets": 19, "tx_packets": 0}
        out = self.ctl({"stats": stats, "worker_load": self.load(3)}, "metrics").splitlines()
        self.assertIn('rocelane_worker_busy_seconds_total{worker="0"} 0.000015000', out)
        self.assertIn('rocelane_worker_seconds_total{worker="0"} 0.000030000', out)
        for line in out:
            self.assertRegex(line, r'^(# (HELP|TYPE) \w+ .+|\w+{[^}]+} [0-9.]+)$')
        self.assertEqual(out[0], "# HELP rocelane_rx_packets_total frames taken from ports")
        self.assertEqual(out[1:6], [
            "# TYPE rocelane_rx_packets_total counter",
            'rocelane_rx_packets_total{scope="total"} 19',
            'rocelane_rx_packets_total{scope="port",port="p\\"0"} 19',
            'rocelane_rx_packets_total{scope="worker",worker="0"} 7',
            'rocelane_rx_packets_total{scope="worker",worker="1"} 12'])


    def test_dashboard_asks_for_counters_that_exist(self):
        with open(os.path.join(ROOT, "lib/stats/counters.def"), encoding="utf-8") as f:
            known = set(re.findall(r"^COUNTER\((\w+),", f.read(), re.M))
        with open(os.path.join(ROOT, "config/grafana/rocelane.json"), encoding="utf-8") as f:
            panels = json.load(f)["panels"]
        asked = {n for p in panels for t in p["targets"]
                 for n in re.findall(r"rocelane_(\w+)_total", t["expr"])}
        self.assertGreater(len(asked), 10)
        self.assertEqual(set(), asked - known - {"worker_seconds", "worker_busy_seconds"})


if __name__ == "__main__":
    tap.main()
