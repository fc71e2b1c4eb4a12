# SPDX-License-Identifier: BSD-3-Clause
"""rocelanectl: what it asks, what it prints, how it exits."""
import json
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from ctl import CTL, MRS, QPS, Case, run  # noqa: E402
from fake_daemon import FakeDaemon, RpcError  # noqa: E402


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
            "network": {"link": {"port": "p0", "state": "UP"}, "text": "worker 0 stood still"},
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
                     "link now      p0  UP\n", "network now   worker 0 stood still\n",
                     "event         QP_ACCESS_ERR\n", "FATAL code    21: remote access\n",
                     "before it:\n", "with it and behind it:\n"):
            self.assertIn(line, out)
        self.assertNotIn("completed", out)
        self.assertEqual(json.loads(self.ctl({"qp_explain": answer}, "-j", "qp", "explain", 17)),
                         answer)
        self.assertEqual("QP 3 (RTS): no error since RESET\n", self.ctl(
            {"qp_explain": {"qp_num": 3, "qp_state": "RTS", "summary": "no error since RESET",
                            "error": None}}, "qp", "explain", 3))

    def test_cm_explain(self):
        """CM-43: why comes first, then each side's words beside what was taken."""
        said = {"qp_num": 17, "starting_psn": 5, "path_mtu": 1024, "ack_timeout": 15,
                "retry_count": 6, "rnr_retry_count": 7, "responder_resources": 1,
                "initiator_depth": 2, "qkey": 0, "srq": False}
        answer = {
            "id": 3, "state": "IDLE", "event": "REJECTED", "reason": 8, "port": "p0",
            "peer_ip": "192.0.2.2", "service_id": "0x1061d2f", "listener": None, "qp_num": 17,
            "why": ["no listener: nobody listens on 7471", "the REJ has reason 8, told"],
            "proposed": {"local": said, "remote": dict(said, ack_timeout=19)},
            "taken": {"dest_qp_num": 34, "sq_psn": 9, "path_mtu": 1024, "timeout": 18,
                      "retry_cnt": 6, "rnr_retry": 7, "max_rd_atomic": 1, "max_dest_rd_atomic": 2},
            "local_comm_id": 77, "remote_comm_id": 0, "req_time": "12:00", "rep_time": None}
        out = self.ctl({"cm_explain": answer}, "cm", "explain", 3)
        self.assertEqual(self.asked, [("cm_explain", {"id": 3})])
        for line in ("connection 3  IDLE  REJECTED  port p0  peer 192.0.2.2  "
                     "service 0x1061d2f  QP 17\n"
                     "why           no listener: nobody listens on 7471\n"
                     "why           the REJ has reason 8, told\n",
                     "                       this side    the peer       taken\n",
                     "ack_timeout                   15          19          18  timeout\n",
                     "responder_resources            1           1           2  "
                     "max_dest_rd_atomic\n", "req_time      12:00\n"):
            self.assertIn(line, out)
        self.assertNotIn("rep_time", out)
        self.assertEqual(answer, json.loads(self.ctl({"cm_explain": answer}, "-j", "cm", "explain",
                                                     3)))

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
        evil = dict.fromkeys(("time", "end", "ended", "summary", "text", "fatal_text"), "x\x1b[2J")
        story = dict(evil, qp_num=17, owner=evil, error=dict(evil, fatal_code=10))
        out = self.ctl({"qp_post_mortem": [story]}, "qp", "post-mortem", 17)
        self.assertEqual((False, 7), ("\x1b" in out, out.count("x?[2J")), out)

    def test_nor_do_those_beyond_ASCII(self):
        """U+009B is CSI to many a terminal; U+202E turns a line around. Others are let through."""
        row = {"name": "user 9 \u009b31m\u202eabc\u2066\u061c\u00e9\u2028x", "users": 0}
        self.assertIn("user 9 ??31m???abc?????\u00e9???x",
                      self.ctl({"xrcd_list": [row]}, "xrcd", "list"))
        out = self.ctl({"xrcd_list": [row]}, "-j", "xrcd", "list")
        self.assertTrue(out.isascii())
        self.assertEqual([row], json.loads(out))

        def refused(_):
            raise RpcError(-32002, "no \x1b[2J\u009b2J")
        for words in ((), ("-j",)):
            self.ctl({"xrcd_list": refused}, *words, "xrcd", "list", code=1)
            self.assertNotIn("\x1b", self.err)
            self.assertNotIn("\u009b", self.err)

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
        self.assertEqual([p["offset"] for m, p in self.asked if m == "mr_read"],
                         [0, 65536, 131072])

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

    def test_errors_are_asked_for_as_long_as_there_are_some(self):
        """Not 256 a second: a buffer that fills faster would lose the rest."""
        left = [[{"psn": i}] for i in range(60)]
        out = self.ctl({"rx_errors": lambda _: left.pop(0) if left else None}, "error", "monitor",
                       code=1)
        self.assertEqual("".join("psn %d\n" % i for i in range(60)), out)

    def test_show_and_list_take_nothing(self):
        """Looking twice shows the same; `clear` and `monitor` are the verbs that take."""
        for words, method in ((("error", "show"), "rx_errors"),
                              (("event", "list"), "async_events")):
            self.assertEqual({"peek": True}, self.params({method: [{"psn": 1}]}, *words))
            self.assertEqual({"peek": True, "max": 3}, self.params({method: []}, *words, 3))
            left = [[{"psn": 1}] * 3, [{"psn": 1}], []]
            out = self.ctl({method: lambda _, q=left: q.pop(0)}, words[0], "clear")
            self.assertEqual(([(method, {})] * 3, "cleared  4\n"), (self.asked, out))

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
                        "recv_feed.a.b", 1, "recv_feed.a.c", 2, "x.knobs.d.e", 3,
                        "qp_access_flags", "REMOTE_READ,REMOTE_WRITE", "cap", '{"max_send_wr":1}',
                        "qp.srq", "4", "qp.xrcd", "5")
        self.assertEqual(p, {"qp_num": 17, "qp_type": "RC", "pd": "0",
                             "ah_attr": {"dest_ip": "10.77.0.2", "dest_mac": None},
                             "knobs": {"resp.early_retry": "process"}, "rkey": "0x10",
                             "recv_feed": {"a": {"b": 1, "c": 2}}, "x": {"knobs": {"d.e": 3}},
                             "qp_access_flags": ["REMOTE_READ", "REMOTE_WRITE"],
                             "cap": {"max_send_wr": 1}, "qp": {"srq": "4", "xrcd": "5"}})

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

    def test_numbers_of_a_post(self):
        """As --help has them: decimal or 0x...; a wr_id has 64 bits."""
        for wr_id, count, sent in (("0x10", "2", [16, 17]), ("16", "0x2", [16, 17]),
                                   ("0x7fffffffffffffff", "2", [2**63 - 1, "0x8000000000000000"]),
                                   ("18446744073709551615", "1", ["0xffffffffffffffff"])):
            asked = self.params({"post_recv": {"posted": len(sent), "refused": None}}, "post",
                                "recv", 17, "wr_id", wr_id, "count", count)
            self.assertEqual(sent, [wr["wr_id"] for wr in asked["wrs"]])
        for words in (("wr_id", "x"), ("wr_id", "-1"), ("wr_id", "0xffffffffffffffff", "count", 2),
                      ("wr_id", "1.5"), ("wr_id", "18446744073709551616"), ("count", "0x")):
            self.ctl({}, "post", "recv", 17, *words, code=2)
            self.assertEqual(([], True), (self.asked, words[-2] in self.err), words)

    def test_post_to_a_shared_queue(self):
        answers = {"post_srq_recv": {"posted": 2, "refused": None}}
        for words in (("recv", "srq", "srq0"), ("srq", "srq0")):
            self.ctl(answers, "post", *words, "mr", "mr0", "length", 8, "wr_id", 5, "count", 2)
            sge = [{"mr": "mr0", "offset": 0, "length": 8}]
            self.assertEqual(self.asked, [("post_srq_recv", {
                "srq": "srq0", "wrs": [{"wr_id": 5 + i, "sg_list": sge} for i in range(2)]})])

    def test_post_a_datagram(self):
        """Its address has two dots; it stays text."""
        answers = {"post_send": {"posted": 1, "refused": None}}
        self.ctl(answers, "post", "send", 17, "opcode", "SEND", "inline", "00",
                 "ud.ah_attr.dest_ip", "10.77.0.2", "ud.ah_attr.hop_limit", 3,
                 "ud.remote_qpn", 18, "ud.remote_qkey", "0x11")
        self.assertEqual(self.asked[0][1]["wrs"][0]["ud"], {
            "ah_attr": {"dest_ip": "10.77.0.2", "hop_limit": 3},
            "remote_qpn": 18, "remote_qkey": "0x11"})
        self.ctl(answers, "post", "send", 17, "ud", 1, "ud.remote_qpn", 18, code=2)
        self.assertIn("'ud.remote_qpn' does not fit", self.err)

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


class Failures(Case):
    def test_refused(self):
        def refuse(_):
            raise RpcError(-32022, "timeout: 32 is not allowed, 0 to 31 are")
        out = self.ctl({"qp_modify": refuse}, "qp", "modify", 17, "timeout", 32, code=1)
        self.assertEqual(out, "")
        self.assertEqual(self.err, "rocelanectl: timeout: 32 is not allowed, 0 to 31 are\n")

    def failure(self, answers, *args, code=1):
        """The JSON error of a command that fails with -j: alone on standard error."""
        self.ctl(answers, "-j", *args, code=code)
        error = json.loads(self.err)["error"]
        self.assertEqual({"code", "message"}, set(error))
        return error["code"], error["message"]

    def test_json_errors(self):
        """-j: whoever reads JSON gets JSON, whatever goes wrong; the codes are the interface's."""
        def refuse(_):
            raise RpcError(-32022, "timeout: 32 is not allowed, 0 to 31 are")
        self.assertEqual((-32022, "timeout: 32 is not allowed, 0 to 31 are"), self.failure(
            {"qp_modify": refuse}, "qp", "modify", 17, "timeout", 32))
        self.assertEqual((-32601, "method 'version' is not known"), self.failure({}, "version"))
        self.assertEqual(-32002, self.failure({"mr_list": []}, "mr", "show", "x")[0])
        posted = {"posted": 0, "refused": {"index": 0, "wr_id": 0, "errno": 12, "reason": "full"}}
        self.assertEqual((-32012, "wr_id 0 refused: full"), self.failure(
            {"post_recv": posted}, "post", "recv", 17, "mr", "m", "length", 8))
        self.assertEqual(-32104, self.failure({"version": lambda _: None}, "version")[0])
        for words in (["qp"], ["fly"], ["qp", "show"], ["stat", "show", "x"], ["top", "x", 1],
                      ["impair", "set", "p0", "/nonexistent"], ["-x"], ["-t", "soon", "version"]):
            with self.subTest(words=words):
                self.assertEqual(-32602, self.failure({}, *words, code=2)[0])
        p = run("-j", "version", socket="/nonexistent/s")
        self.assertEqual((1, -32002), (p.returncode, json.loads(p.stderr)["error"]["code"]))

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
                    ("trace", "read"), ("error", "show"), ("qp", "explain", 1),
                    ("cm", "explain", 1), ("qp", "post-mortem"), ("qp", "post-mortem", 1)]
        methods = ["qp_list", "qp_query", "mr_list", "mr_read", "poll_cq", "stats", "post_recv",
                   "rpc_get_methods", "trace_read", "rx_errors", "qp_explain",
                   "cm_explain", "qp_post_mortem"]
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

    def test_what_goes_on_ends_when_nobody_reads(self):
        """Where SIGPIPE is ignored, as by many parents, and where the disk is full."""
        event = {"event_type": "COMM_EST", "qp_num": 16}
        worker = {"worker": 0, "lcore": 1}
        answers = {"stats": {"rx_packets": 1}, "rx_errors": [event], "async_events": [event],
                   "worker_list": [worker], "worker_load": [worker], "port_list": [],
                   "qp_list": []}
        for words in (("stat", "show", "--watch", "0.01"), ("top", "interval", "0.01"),
                      ("error", "monitor"), ("event", "monitor")):
            with FakeDaemon(answers) as d, self.subTest(words=words):
                reader, writer = os.pipe()
                os.close(reader)
                with os.fdopen(writer, "w") as closed, \
                        open("/dev/full", "w", encoding="ascii") as full:
                    for out in (closed, full):
                        p = subprocess.run([CTL, "-s", d.path, *words], stdout=out, check=False,
                                           stderr=subprocess.PIPE, text=True, timeout=60,
                                           restore_signals=False)
                        self.assertEqual(1, p.returncode)
                        self.assertIn("cannot write", p.stderr)


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

    def test_a_bottleneck(self):
        """It needs no rule, and its rate is text whatever it looks like."""
        got = self.params({"impair_set": self.PORT}, "impair", "set", "p0", "bottleneck.rate",
                          "10000000000", "bottleneck.buffer", "256K", "bottleneck.pmax", "0.2")
        queue = {"rate": "10000000000", "buffer": "256K", "pmax": 0.2}
        self.assertEqual(got, {"port": "p0", "impair": {"bottleneck": queue}})
        got = self.params({"impair_set": self.PORT}, "impair", "set", "p0", "action", "drop",
                          "bottleneck.rate", "10G", "bottleneck.buffer", "4K")
        self.assertEqual(got, {"port": "p0", "impair": {
            "rules": [{"action": "drop"}], "bottleneck": {"rate": "10G", "buffer": "4K"}}})
        port = {**self.PORT, "impair": {"rules": [], "bottleneck": queue}}
        self.assertIn('p0: bottleneck {"rate":"10000000000",',
                      self.ctl({"impair_get": port}, "impair", "show", "p0"))

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


if __name__ == "__main__":
    tap.main()
