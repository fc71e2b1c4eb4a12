# SPDX-License-Identifier: BSD-3-Clause
"""rocelanectl: what it asks, what it prints, how it exits."""
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from fake_daemon import FakeDaemon, RpcError  # noqa: E402

CTL = os.environ["ROCELANECTL"]
ROOT = os.environ["ROCELANE_ROOT"]
COMPLETION = os.environ["ROCELANECTL_COMPLETION"]

QPS = [
    {"qp_num": 17, "qp_state": "RTS", "qp_type": "RC", "port": "p0", "path_mtu": 1024,
     "dest_qp_num": 18, "ah_attr": {"dest_ip": "10.77.0.2", "hop_limit": 64}, "worker": 0},
    {"qp_num": 1048593, "qp_state": "INIT", "qp_type": "RC", "port": "p0", "path_mtu": 4096,
     "dest_qp_num": 0, "ah_attr": {"dest_ip": None, "hop_limit": 64}, "worker": 1},
]
MRS = [{"name": "mr0", "pd": "pd0", "addr": "0x10000", "length": 1048576, "rkey": "0x1001",
        "lkey": "0x1001", "access": ["LOCAL_WRITE", "REMOTE_READ"]}]


def run(*args, socket=None, timeout=20):
    cmd = [CTL] + (["-s", socket] if socket else []) + [str(a) for a in args]
    return subprocess.run(cmd, capture_output=True, text=True, timeout=timeout, check=False,
                          stdin=subprocess.DEVNULL)


class Case(unittest.TestCase):
    def ctl(self, answers, *args, code=0, notes=()):
        """Run against a daemon with these answers; keep what it was asked in self.asked."""
        with FakeDaemon(answers, notes) as d:
            p = run(*args, socket=d.path)
            self.asked = d.asked
        self.assertEqual(p.returncode, code, p.stdout + p.stderr)
        self.err = p.stderr
        return p.stdout

    def params(self, answers, *args, code=0):
        self.ctl(answers, *args, code=code)
        return self.asked[-1][1]


class Output(Case):
    def test_table_is_aligned(self):
        def qp_list(params):
            return [] if params.get("after") else QPS
        self.assertEqual(
            self.ctl({"qp_list": qp_list}, "qp", "list"),
            " qp_num  qp_state  qp_type  port  path_mtu  dest_qp_num  dest_ip    worker\n"
            "     17  RTS       RC       p0        1024           18  10.77.0.2       0\n"
            "1048593  INIT      RC       p0        4096            0  -               1\n")

    def test_list_of_a_daemon_that_does_not_page_is_printed_once(self):
        out = self.ctl({"qp_list": QPS}, "-j", "qp", "list")
        self.assertEqual(json.loads(out), QPS)

    def test_list_is_paged_to_the_end(self):
        def qp_list(params):
            start = params.get("after", -1) + 1
            return [{"qp_num": n, "qp_state": "RTS"}
                    for n in range(start, min(start + params["limit"], 700))]
        out = self.ctl({"qp_list": qp_list}, "-j", "qp", "list", "qp_state", "RTS")
        self.assertEqual([q["qp_num"] for q in json.loads(out)], list(range(700)))
        self.assertTrue(all(p["qp_state"] == "RTS" for _, p in self.asked))

    def test_limit_asks_for_one_page(self):
        self.ctl({"qp_list": QPS}, "qp", "list", "limit", 2)
        self.assertEqual(self.asked, [("qp_list", {"limit": 2})])

    def test_empty_list_has_a_header(self):
        self.assertIn("rkey", self.ctl({"mr_list": []}, "mr", "list"))

    def test_nothing_recorded_says_what_records(self):
        """An empty list may mean that nobody asked for the record."""
        for words, method, hint in ((("error", "show"), "rx_errors", "error_buffer"),
                                    (("trace", "read"), "trace_read", "trace start")):
            self.ctl({method: []}, *words)
            self.assertIn(hint, self.err)
            self.assertEqual("[]\n", self.ctl({method: []}, "-j", *words))
            self.assertEqual("", self.err)

    def test_a_fraction_has_no_noise(self):
        out = self.ctl({"qp_query": {"timeout_us": 67108.864}}, "qp", "show", 17)
        self.assertEqual("timeout_us  67108.864\n", out)

    def test_socket_of_the_environment(self):
        with FakeDaemon({"pd_list": [{"name": "pd0", "users": 0}]}) as d:
            env = dict(os.environ, ROCELANE_SOCKET=d.path)
            p = subprocess.run([CTL, "pd", "list"], capture_output=True, text=True, timeout=20,
                               check=False, env=env)
            self.assertEqual((0, True), (p.returncode, "pd0" in p.stdout), p.stderr)
            p = subprocess.run([CTL, "-s", "/nonexistent/s", "pd", "list"], capture_output=True,
                               text=True, timeout=20, check=False, env=env)
            self.assertEqual((1, True), (p.returncode, "/nonexistent/s" in p.stderr))

    def test_pairs(self):
        out = self.ctl({"qp_query": QPS[0]}, "qp", "show", 17)
        self.assertEqual(self.asked, [("qp_query", {"qp_num": 17})])
        self.assertIn("qp_state           RTS\n", out)
        self.assertIn("ah_attr.dest_ip    10.77.0.2\n", out)

    def test_explain(self):
        entry = {"time_ns": 5, "kind": "rx", "opcode": "RC_SEND_ONLY", "psn": 255, "msn": 1,
                 "len": 8, "syndrome": 0, "fault": None, "rule": "RESP-01", "qp_state": "RTS"}
        answer = {
            "qp_num": 17, "qp_state": "ERR", "summary": "RC_WRITE_ONLY PSN 256: no such key (X-1)",
            "recorder": True, "flushed": 4, "before": 1,
            "trace": [entry, dict(entry, kind="nak", psn=256, qp_state="ERR")],
            "error": {"rule": "X-1", "text": "no such key", "side": "responder", "time_ns": 7,
                      "packet": {"psn": 256, "opcode": 10, "opcode_name": "RC_WRITE_ONLY",
                                 "length": 24},
                      "peer": {"ip": "192.0.2.2", "mac": None, "qp_num": 34}, "fault": None,
                      "received_syndrome": None, "answer": {"syndrome": 98, "text": "NAK 0x62 (x)"},
                      "completion": None, "event": "QP_ACCESS_ERR", "fatal_code": 21,
                      "fatal_text": "remote access"}}
        out = self.ctl({"qp_explain": answer}, "qp", "explain", 17)
        self.assertEqual(self.asked, [("qp_explain", {"qp_num": 17})])
        for line in ("QP 17 (ERR): RC_WRITE_ONLY PSN 256: no such key (X-1)\n",
                     "packet        RC_WRITE_ONLY  PSN 256  payload 24\n",
                     "peer          192.0.2.2  QP 34\n", "answered      NAK 0x62 (x)\n",
                     "event         QP_ACCESS_ERR\n", "FATAL code    21: remote access\n",
                     "before it:\n", "with it and behind it:\n"):
            self.assertIn(line, out)
        self.assertNotIn("completed", out)
        self.assertEqual(json.loads(self.ctl({"qp_explain": answer}, "-j", "qp", "explain", 17)),
                         answer)
        self.assertEqual("QP 3 (RTS): no error since RESET\n", self.ctl(
            {"qp_explain": {"qp_num": 3, "qp_state": "RTS", "summary": "no error since RESET",
                            "error": None}}, "qp", "explain", 3))

    def test_json_is_the_result(self):
        self.assertEqual(json.loads(self.ctl({"qp_query": QPS[0]}, "-j", "qp", "show", 17)), QPS[0])
        self.assertEqual(json.loads(self.ctl({"pd_create": {}}, "-j", "pd", "create", "x")), {})

    def test_show_finds_by_name(self):
        self.assertIn("access  LOCAL_WRITE,REMOTE_READ\n",
                      self.ctl({"mr_list": MRS}, "mr", "show", "mr0"))
        self.ctl({"mr_list": MRS}, "mr", "show", "mr9", code=1)
        self.assertIn("there is no mr 'mr9'", self.err)

    def test_control_characters_do_not_reach_the_terminal(self):
        out = self.ctl({"qp_query": {"qp_num": 1, "x\x1b[1m": "a\x1b[2Jb\n"}}, "qp", "show", 1)
        self.assertNotIn("\x1b", out)
        self.assertIn("a?[2Jb?", out)

    def test_hexdump(self):
        out = self.ctl({"mr_read": {"data": bytes(range(60, 80)).hex()}},
                       "mr", "read", "mr0", "0x100", 20)
        self.assertEqual(self.asked, [("mr_read", {"name": "mr0", "offset": 256, "length": 20})])
        self.assertEqual(
            out,
            "00000100  3c 3d 3e 3f 40 41 42 43  44 45 46 47 48 49 4a 4b  |<=>?@ABCDEFGHIJK|\n"
            "00000110  4c 4d 4e 4f                                       |LMNO|\n")

    def test_long_reads_are_split(self):
        def mr_read(params):
            return {"data": "5a" * params["length"]}
        out = self.ctl({"mr_read": mr_read}, "-j", "mr", "read", "mr0", 0, "160K")
        self.assertEqual(json.loads(out), {"data": "5a" * 163840})
        self.assertEqual([p["offset"] for _, p in self.asked], [0, 65536, 131072])

    def test_read_of_no_hex_is_refused(self):
        self.ctl({"mr_read": {"data": "zz"}}, "mr", "read", "mr0", 0, 1, code=1)

    def test_events_follow(self):
        note = {"jsonrpc": "2.0", "method": "async_event",
                "params": {"event_type": "QP_FATAL", "qp_num": 17, "psn": None}}
        first = {"event_type": "COMM_EST", "qp_num": 16}
        out = self.ctl({"async_events": [first]}, "event", "monitor", code=1, notes=[note])
        self.assertEqual(self.asked, [("async_events", {"follow": True})])
        self.assertEqual(out, "event_type COMM_EST  qp_num 16\nevent_type QP_FATAL  qp_num 17\n")
        self.assertIn("closed the connection", self.err)

    def test_notes_before_the_answer_are_kept(self):
        note = b'{"jsonrpc":"2.0","method":"async_event","params":{"n":1}}\n'
        answer = b'{"jsonrpc":"2.0","id":1,"result":[]}\n'
        out = self.ctl({"async_events": note + answer}, "-j", "event", "monitor", code=1,
                       notes=[{"method": "async_event", "params": {"n": 2}}])
        self.assertEqual(out, '{"n":1}\n{"n":2}\n')


class Params(Case):
    def test_modify(self):
        p = self.params({"qp_modify": {}}, "qp", "modify", "0x11", "qp_state", "ERR", "timeout", 12)
        self.assertEqual(p, {"qp_num": 17, "qp_state": "ERR", "timeout": 12})

    def test_create_nests_dotted_keys(self):
        p = self.params({"qp_create": QPS[0]}, "qp", "create", "qp_num", 17, "qp_type", "RC",
                        "pd", "0", "ah_attr.dest_ip", "10.77.0.2", "ah_attr.dest_mac", "null",
                        "knobs.resp.early_retry", "process", "rkey", "0x10",
                        "qp_access_flags", "REMOTE_READ,REMOTE_WRITE", "cap", '{"max_send_wr":1}')
        self.assertEqual(p, {"qp_num": 17, "qp_type": "RC", "pd": "0",
                             "ah_attr": {"dest_ip": "10.77.0.2", "dest_mac": None},
                             "knobs": {"resp.early_retry": "process"}, "rkey": "0x10",
                             "qp_access_flags": ["REMOTE_READ", "REMOTE_WRITE"],
                             "cap": {"max_send_wr": 1}})

    def test_name_before_pairs_is_optional(self):
        answers = {"mr_register": MRS[0]}
        self.assertEqual(self.params(answers, "mr", "register", "m", "length", "1M"),
                         {"name": "m", "length": "1M"})
        self.assertEqual(self.params(answers, "mr", "register", "length", 4096), {"length": 4096})

    def test_hex_data_stays_text(self):
        p = self.params({"mr_write": {}}, "mr", "write", "mr0", 0, "1122")
        self.assertEqual(p, {"name": "mr0", "offset": 0, "data": "1122"})

    def test_fill_and_crc(self):
        p = self.params({"mr_fill": {}}, "mr", "fill", "mr0", 0, "64K", 7)
        self.assertEqual(p, {"name": "mr0", "offset": 0, "length": 65536, "seed": 7})
        out = self.ctl({"mr_crc": {"crc32": 305419896}}, "mr", "crc", "mr0", "1K", 16)
        self.assertEqual(self.asked, [("mr_crc", {"name": "mr0", "offset": 1024, "length": 16})])
        self.assertIn("305419896", out)

    def test_post(self):
        answers = {"post_recv": {"posted": 4, "refused": None}}
        out = self.ctl(answers, "post", "recv", 17, "mr", "mr0", "offset", 0, "length", 4096,
                       "count", 4)
        sge = [{"mr": "mr0", "offset": 0, "length": 4096}]
        self.assertEqual(self.asked, [("post_recv", {
            "qp_num": 17, "wrs": [{"wr_id": i, "sg_list": sge} for i in range(4)]})])
        self.assertEqual(out, "posted 4\n")

    def test_post_to_a_shared_queue(self):
        answers = {"post_srq_recv": {"posted": 2, "refused": None}}
        for words in (("recv", "srq", "srq0"), ("srq", "srq0")):
            self.ctl(answers, "post", *words, "mr", "mr0", "length", 8, "wr_id", 5, "count", 2)
            sge = [{"mr": "mr0", "offset": 0, "length": 8}]
            self.assertEqual(self.asked, [("post_srq_recv", {
                "srq": "srq0", "wrs": [{"wr_id": 5 + i, "sg_list": sge} for i in range(2)]})])

    def test_post_refused(self):
        answers = {"post_send": lambda p: {"posted": 300 - 256 - 1, "refused": {
            "index": 43, "wr_id": 307, "errno": 12, "reason": "the send queue is full"}}
            if p["wrs"][0]["wr_id"] else {"posted": 256, "refused": None}}
        out = self.ctl(answers, "post", "send", 17, "opcode", "SEND", "mr", "mr0", "length", 8,
                       "send_flags", "SIGNALED", "count", 300, code=1)
        self.assertEqual(out, "posted 299\n")
        self.assertIn("wr_id 307 refused: the send queue is full", self.err)
        self.assertEqual(self.asked[1][1]["wrs"][0]["wr_id"], 256)
        self.assertEqual(self.asked[0][1]["wrs"][0]["send_flags"], ["SIGNALED"])


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


class Failures(Case):
    def test_refused(self):
        def refuse(_):
            raise RpcError(-32022, "timeout: 32 is not allowed, 0 to 31 are")
        out = self.ctl({"qp_modify": refuse}, "qp", "modify", 17, "timeout", 32, code=1)
        self.assertEqual(out, "")
        self.assertEqual(self.err, "rocelanectl: timeout: 32 is not allowed, 0 to 31 are\n")

    def test_no_daemon_says_where_and_what_to_do(self):
        p = run("qp", "list", socket="/nonexistent/rl.sock")
        self.assertEqual(p.returncode, 1)
        self.assertIn("/nonexistent/rl.sock", p.stderr)
        self.assertIn("rocelane --config", p.stderr)

    def test_socket_path_too_long(self):
        p = run("qp", "list", socket="/x" * 100)
        self.assertEqual(p.returncode, 1)
        self.assertIn("socket path", p.stderr)

    def test_daemon_that_hangs_up(self):
        self.ctl({"version": lambda _: None}, "version", code=1)
        self.assertIn("closed the connection", self.err)

    def test_answers_that_are_no_answers(self):
        for raw in (b"[]\n", b"nonsense\n", b"\n", b'{"id":1}\n', b"\xff\xfe\n"):
            with self.subTest(raw=raw):
                self.ctl({"version": lambda _, r=raw: r}, "version", code=1)
                self.assertIn("rocelanectl: answer", self.err)

    def test_results_of_another_shape_do_not_crash(self):
        commands = [("qp", "list"), ("qp", "show", 1), ("mr", "list"), ("mr", "show", "a"),
                    ("mr", "read", "a", 0, 1), ("cq", "poll", "c"), ("stat", "show"),
                    ("stat", "show", "worker"), ("metrics",), ("post", "recv", 1), ("methods",),
                    ("trace", "read"), ("error", "show"), ("qp", "explain", 1)]
        methods = ["qp_list", "qp_query", "mr_list", "mr_read", "poll_cq", "stats", "post_recv",
                   "rpc_get_methods", "trace_read", "rx_errors", "qp_explain"]
        for value in (None, True, 3, "text", [], {}, [1, "a", None], [[1]], [{}], {"a": []},
                      {"a": {"b": {"c": [{}]}}}, [{"qp_num": "x"}, 4]):
            raw = json.dumps(value)
            answers = {m: (lambda _, r=raw: b'{"id":null,"result":%s}\n' % r.encode())
                       for m in methods}
            with FakeDaemon(answers) as d:
                for c in commands:
                    for j in ((), ("-j",)):
                        with self.subTest(value=value, command=c, json=j):
                            p = run(*j, *c, socket=d.path)
                            self.assertIn(p.returncode, (0, 1), p.stderr)

    def test_no_answer_in_time(self):
        with FakeDaemon({"version": b""}) as d:
            p = run("-t", "0.05", "version", socket=d.path)
        self.assertEqual(p.returncode, 1)
        self.assertIn("in time", p.stderr)

    def test_output_that_cannot_be_written(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            p = subprocess.run([CTL, "--help"], stdout=full, stderr=subprocess.PIPE, check=False)
        self.assertEqual(p.returncode, 1)


class Impair(Case):
    """impair show, set, log."""

    RULES = [{"action": "drop", "qp_num": 17, "psn": 42, "opcode": 4, "times": 1},
             {"action": "drop", "qp_num": 17, "psn": 50, "opcode": 4, "skip": 1, "times": 1}]
    PORT = {"port": "p0", "impair": {"seed": 3, "rules": RULES[:1]},
            "counters": {"in": 100, "out": 99, "held": 0, "dropped": 1, "limited": 0}}

    def test_show(self):
        want = ("port   in  out  held  dropped\n"
                "p0    100   99     0        1\n"
                'p0: {"action":"drop","qp_num":17,"psn":42,"opcode":4,"times":1}\n')
        self.assertEqual(self.ctl({"impair_get": [self.PORT]}, "impair", "show"), want)
        self.assertEqual(self.asked[-1], ("impair_get", {}))
        self.assertEqual(self.ctl({"impair_get": self.PORT}, "impair", "show", "p0"), want)
        self.assertEqual(self.asked[-1], ("impair_get", {"port": "p0"}))

    def test_set_one_rule(self):
        got = self.params({"impair_set": self.PORT}, "impair", "set", "p0", "action", "drop",
                          "probability", "0.01", "burst.p", "0.5", "seed", 7)
        self.assertEqual(got, {"port": "p0", "impair": {"seed": 7, "rules": [
            {"action": "drop", "probability": 0.01, "burst": {"p": 0.5}}]}})

    def test_set_none(self):
        self.assertEqual(self.params({"impair_set": self.PORT}, "impair", "set", "p0", "none"),
                         {"port": "p0", "impair": None})

    def test_log_is_a_file_for_set(self):
        answer = {"port": "p0", "next": 2, "lost": 0, "impair": {"seed": 0, "rules": self.RULES}}
        text = self.ctl({"impair_log": answer}, "impair", "log", "p0")
        self.assertEqual((self.asked, self.err), ([("impair_log", {"port": "p0"})], ""))
        self.assertEqual(json.loads(text), answer["impair"])
        self.assertEqual(len(text.splitlines()), 4)  # a rule a line
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            f.write(text)
            f.flush()
            got = self.params({"impair_set": self.PORT}, "impair", "set", "p0", f.name)
        self.assertEqual(got, {"port": "p0", "impair": answer["impair"]})

    def test_log_says_what_is_missing(self):
        many = {"port": "p0", "next": 5000, "lost": 904,
                "impair": {"seed": 0, "rules": self.RULES * 2048}}
        self.ctl({"impair_log": many}, "impair", "log", "p0")
        self.assertIn("904 older decisions are forgotten", self.err)
        self.assertIn("from 5000 on", self.err)

    def test_wrong_words(self):
        for args, text in ((["set"], "port is missing"),
                           (["set", "p0"], "give a file"),
                           (["set", "p0", "/nonexistent"], "/nonexistent cannot be read"),
                           (["set", "p0", "/dev/null"], "/dev/null:1: "),
                           (["set", "p0", "none", "action", "drop"], "do not go together"),
                           (["log"], "port is missing")):
            with self.subTest(args=args):
                self.ctl({}, "impair", *args, code=2)
                self.assertIn(text, self.err)
                self.assertEqual(self.asked, [])


class Usage(Case):
    def test_usage_errors(self):
        rows = [
            ([], "no object given; one of: qp, mr"),
            (["nonsense"], "unknown object 'nonsense'; one of: qp"),
            (["qp"], "no verb given; one of: list, show"),
            (["qp", "fly"], "unknown verb 'fly'; one of: list, show"),
            (["qp", "show"], "qp_num is missing"),
            (["qp", "show", "17", "18"], "'18' is too much"),
            (["qp", "show", "x17"], "qp_num must be a number, not 'x17'"),
            (["qp", "show", "1K"], "qp_num must be a number, not '1K'"),
            (["qp", "show", "-1"], "qp_num must be a number, not '-1'"),
            (["qp", "show", "99999999999999999999"], "qp_num must be a number"),
            (["mr", "read", "a", "0", "17000000000G"], "length must be a number of bytes"),
            (["qp", "modify", "17", "timeout"], "'timeout' has no value"),
            (["qp", "modify", "17", "a", "1", "a", "2"], "'a' is given twice"),
            (["qp", "modify", "17", "a", "1", "a.b", "2"], "'a.b' does not fit"),
            (["qp", "modify", "17", "a.", "1"], "'a.' does not fit"),
            (["post", "recv", "17", "count", "0"], "count must be"),
            (["stat", "show", "galaxy"], "'galaxy' is no scope"),
            (["stat", "show", "qp"], "qp needs a number"),
            (["stat", "show", "--watch", "0"], "--watch takes"),
            (["stat", "show", "--stages", "0"], "--stages takes"),
            (["top", "interval", "soon"], "interval takes"),
            (["top", "qps", "1000"], "qps takes 0 to 256"),
            (["top", "count", "0"], "count takes"),
            (["top", "17"], "'17' is none of"),
            (["-t", "soon", "version"], "-t takes"),
            (["-x"], "--help"),
        ]
        for args, text in rows:
            with self.subTest(args=args):
                p = run(*args)
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn(text, p.stderr)
                self.assertEqual(p.stdout, "")

    def test_manual_has_every_command(self):
        """And each with the words of its --help."""
        with open(os.path.join(ROOT, "app/rocelanectl/rocelanectl.1"), encoding="utf-8") as f:
            page = f.read().replace("\\-", "-")
        for obj in run("--complete").stdout.split():
            verbs = [] if obj == "top" else run("--complete", obj).stdout.split()
            for words in [f"{obj} {v}" for v in verbs] or [obj]:
                line = re.search(rf"^\.B {words}(?: .*)?\n(.+)$", page, re.M)
                self.assertIsNotNone(line, words)
                text = run(*words.split(), "--help").stdout
                self.assertIn(line[1][1:-1], text.replace("\n", " "), words)

    def test_help_on_every_level(self):
        for args, text in ((["--help"], "OBJECT VERB"), (["qp", "--help"], "qp modify QP_NUM"),
                           (["qp", "modify", "--help"], "min_rnr_timer"),
                           (["help"], "OBJECT VERB"), (["metrics", "-h"], "Prometheus")):
            with self.subTest(args=args):
                p = run(*args)
                self.assertEqual((p.returncode, p.stderr), (0, ""))
                self.assertIn(text, p.stdout)

    def test_every_command_has_help_and_is_completed(self):
        objects = run("--complete").stdout.split()
        self.assertIn("qp", objects)
        text = run("--help").stdout
        for obj in objects:
            self.assertIn(f"\n  {obj} ", text)
            p = run(obj, "--help")
            self.assertEqual(p.returncode, 0, obj)
            self.assertIn(f"rocelanectl {obj}", p.stdout)
            if obj == "top":  # its words are options, not verbs
                continue
            for verb in run("--complete", obj).stdout.split():
                p = run(obj, verb, "--help")
                self.assertEqual(p.returncode, 0, f"{obj} {verb}")
                self.assertIn(f"rocelanectl {obj} {verb}", p.stdout)


class Completion(Case):
    ANSWERS = {"qp_list": QPS, "mr_list": MRS, "cq_list": [{"name": "cq0"}]}

    def words(self, *args):
        with FakeDaemon(self.ANSWERS) as d:
            return run("--complete", "--", "-s", d.path, *args).stdout.split()

    def test_words(self):
        self.assertEqual(self.words("mr"),
                         ["list", "show", "register", "deregister", "read", "write", "fill", "crc"])
        self.assertEqual(self.words("qp", "show"), ["17", "1048593"])
        self.assertEqual(self.words("mr", "read"), ["mr0"])
        self.assertEqual(self.words("post", "recv", "17", "mr"), ["mr0"])
        self.assertEqual(self.words("cq", "poll"), ["cq0"])
        self.assertEqual(self.words("stat", "show", "qp"), ["17", "1048593"])
        self.assertIn("timeout", self.words("qp", "modify", "17"))
        self.assertIn("RTS", self.words("qp", "modify", "17", "qp_state"))
        self.assertEqual(self.words("qp", "show", "17"), [])
        self.assertEqual(self.words("nonsense", "x"), [])

    def test_without_a_daemon_it_is_silent(self):
        p = run("--complete", "--", "-s", "/nonexistent/s", "qp", "show")
        self.assertEqual((p.returncode, p.stdout, p.stderr), (0, "", ""))

    def test_bash(self):
        with FakeDaemon(self.ANSWERS) as d:
            for words, want in ((["q"], ["qp"]), (["qp", "sh"], ["show"]),
                                (["-s", d.path, "qp", "show", "1"], ["17", "1048593"]),
                                (["-s", d.path, "mr", "read", ""], ["mr0"])):
                script = ('. "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
                          '_rocelanectl; printf "%s\\n" "${COMPREPLY[@]}"')
                p = subprocess.run(["bash", "-c", script, "bash", COMPLETION, CTL] + words,
                                   capture_output=True, text=True, timeout=20, check=False)
                with self.subTest(words=words):
                    self.assertEqual(p.stdout.split(), want, p.stderr)


if __name__ == "__main__":
    tap.main()
