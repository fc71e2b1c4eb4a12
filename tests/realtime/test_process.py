# SPDX-License-Identifier: BSD-3-Clause
"""The program as a process: start, refusal, control socket, end."""
import json
import os
import re
import signal
import stat
import subprocess
import tempfile
import time
import unittest

import jsonrpc
import livenet
import dut
from dut import QPN


class Lifecycle(unittest.TestCase):

    def start(self, config=None, **kw):
        p = livenet.Process(config, **kw)
        self.addCleanup(p.close)
        return p

    def test_sigterm_stops_cleanly(self):
        """Exit code 0, counters printed, the socket's file removed."""
        for sig in (signal.SIGTERM, signal.SIGINT):
            p = self.start()
            mode = os.stat(p.socket_path).st_mode
            self.assertTrue(stat.S_ISSOCK(mode))
            self.assertEqual(0o600, stat.S_IMODE(mode))
            self.assertEqual(0, p.stop(sig), p.stderr())
            self.assertFalse(os.path.exists(p.socket_path))

    def test_sigterm_that_was_blocked(self):
        """By whoever started it, with all others: signals of faults, too, are not."""
        def block():
            livenet.die_with_parent()
            signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        p = self.start(prepare=block)
        with open("/proc/%d/status" % p.proc.pid, encoding="ascii") as f:
            blocked = int(re.search(r"SigBlk:\s+(\w+)", f.read())[1], 16)
        for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGBUS):
            self.assertEqual(0, blocked >> (sig - 1) & 1, sig)
        self.assertEqual(0, p.stop(), p.stderr())

    def test_sigterm_with_a_qp_prints_counters(self):
        config = livenet.live_config(cqs=[{"name": "cq0", "cqe": 16}], qps=[{
            "qp_num": QPN, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
            "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": 0x22,
            "rq_psn": 1, "sq_psn": 1, "ah_attr": {"dest_ip": "192.0.2.2"}}])
        live = livenet.Live(config)
        self.addCleanup(live.close)
        peer = dut.Peer()
        live.rx(peer.send_only(1, b"x"))
        got = [dut.Frame(raw) for _, raw in live.frames(1)]
        self.assertTrue(dut.Rnr(1, 12, 0).matches(got[0]), got)
        self.assertEqual(0, live.process.stop(), live.stderr())
        out = live.process.stdout()
        for name, least in (("rx_packets", 1), ("out_of_buffer", 1), ("send_rnr_err", 1)):
            found = re.search(r"\b%s\b\W+(\d+)" % name, out)
            self.assertTrue(found and int(found[1]) >= least, (name, out))

    def test_duration(self):
        p = self.start(arguments=("--duration", "0.2"), wait=False)
        self.assertEqual(0, p.proc.wait(livenet.WAIT_S), p.stderr())

    def test_a_device_without_a_mac_gets_one(self):
        """As a wire in memory has none: the ends find each other, and each has another."""
        ends = [{"name": "p%d" % i, "device": "net_pair0%s" % "ab"[i],
                 "ipv4": "10.9.0.%d" % (i + 1)} for i in (0, 1)]
        qp = {"qp_num": QPN, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
              "recv_cq": "cq0", "qp_state": "RTS", "dest_qp_num": 0x22, "rq_psn": 1, "sq_psn": 1,
              "ah_attr": {"dest_ip": "10.9.0.2"}}
        p = self.start({
            "version": 1, "eal": ["--no-huge", "--no-shconf", "--no-pci", "-m", "256",
                                  "--no-telemetry", "--log-level=error"],
            "lcores": {"control": 0, "workers": [1], "idle": "sleep"}, "ports": ends,
            "pds": ["pd0"], "cqs": [{"name": "cq0"}], "qps": [qp],
            "knobs": {"path.local": "wire"}})
        macs = [port["mac"] for port in jsonrpc.call(p.socket_path, "port_list", livenet.WAIT_S)]
        self.assertEqual(2, len(set(macs)), macs)
        for mac in macs:  # one host's, and no manufacturer's
            self.assertEqual(2, int(mac[:2], 16) & 3, macs)
        end = time.monotonic() + livenet.WAIT_S
        while True:
            found = [n["mac"] for n in jsonrpc.call(p.socket_path, "neighbor_list", livenet.WAIT_S)
                     if n["state"] == "REACHABLE"]
            if macs[1] in found or time.monotonic() > end:
                break
            time.sleep(0.01)
        self.assertIn(macs[1], found)

    def test_method_shutdown(self):
        p = self.start()
        conn = jsonrpc.Connection(p.socket_path)
        reply = conn.ask(b'{"jsonrpc":"2.0","id":1,"method":"shutdown"}')
        self.assertEqual(1, reply["id"])
        self.assertNotIn("error", reply)
        conn.close()
        self.assertEqual(0, p.proc.wait(livenet.WAIT_S), p.stderr())
        self.assertFalse(os.path.exists(p.socket_path))

    def test_second_process_on_the_same_socket(self):
        """Refused with a message that names the socket; the first one goes on."""
        first = self.start()
        config = livenet.live_config(first.socket_path)
        config["eal"] = [a for a in config["eal"] if "vdev" not in a] + ["--vdev=net_null0"]
        config["ports"][0]["device"] = "net_null0"
        second = self.start(config, wait=False)
        self.assertEqual(1, second.proc.wait(livenet.WAIT_S), second.stderr())
        self.assertIn(first.socket_path, second.stderr())
        self.assertRegex(second.stderr(), r"in use|already|another")
        conn = jsonrpc.Connection(first.socket_path)
        self.assertIn("result", conn.ask(b'{"jsonrpc":"2.0","id":1,"method":"version"}'))
        conn.close()
        self.assertEqual(0, first.stop(), first.stderr())

    def test_stale_socket_is_replaced(self):
        p = self.start()
        path = p.socket_path
        p.proc.kill()
        p.proc.wait()
        self.assertTrue(os.path.exists(path))
        again = self.start(livenet.live_config(path))
        self.assertEqual(0, again.stop(), again.stderr())
        self.assertFalse(os.path.exists(path))

    def test_missing_device(self):
        config = livenet.live_config()
        config["ports"][0]["device"] = "net_af_packet7"
        p = self.start(config, wait=False)
        self.assertEqual(1, p.proc.wait(livenet.WAIT_S))
        self.assertIn("net_af_packet7", p.stderr())

    def test_missing_device_beside_one_of_a_longer_name(self):
        config = livenet.live_config()
        config["eal"].append("--vdev=net_null70")
        config["ports"][0]["device"] = "net_null7"
        p = self.start(config, wait=False)
        self.assertEqual(1, p.proc.wait(livenet.WAIT_S))
        self.assertIn("there is no device 'net_null7'", p.stderr())

    def test_a_port_that_cannot_be_recorded(self):
        """Packets of several queues have no order. A record without them would say nothing."""
        config = livenet.live_config()
        config["lcores"]["workers"] = [1, 2]
        config["ports"] = [{"name": side, "device": "net_pair0" + side, "rx_queues": 2,
                            "ipv4": ip} for side, ip in (("a", "10.0.0.1"), ("b", "10.0.0.2"))]
        with tempfile.TemporaryFile() as record:
            p = self.start(config, wait=False, arguments=("--record-fd", str(record.fileno())),
                           pass_fds=(record.fileno(),))
        self.assertEqual(1, p.proc.wait(livenet.WAIT_S), p.stderr())
        self.assertIn("port a: cannot be recorded: it has 2 receive queues", p.stderr())

    def test_what_does_not_start_says_what_to_do(self):
        config = livenet.live_config()
        config["control"] = {"socket": "/nonexistent/folder/sock"}
        wrong = livenet.live_config()
        wrong["eal"].append("--no-such-argument")
        for what, words in ((config, ("/nonexistent/folder/sock", '"control"', "writable")),
                            (wrong, ("--no-such-argument", '"eal"'))):
            p = self.start(what, wait=False)
            self.assertEqual(1, p.proc.wait(livenet.WAIT_S))
            for word in words:
                self.assertIn(word, p.stderr() + p.stdout())

    def test_wrong_config_names_every_fault(self):
        """FILE:LINE: JSON-POINTER: what; exit code 2; EAL is not started."""
        config = livenet.live_config()
        config["lcores"]["idle"] = "nap"
        config["ports"][0]["mac"] = "not a mac"
        config["ports"][0]["colour"] = "red"
        config["mrs"] = [{"name": "mr0", "pd": "nowhere", "length": 4096}]
        config["qps"] = [{"qp_type": "RC", "pd": "pd0", "send_cq": "cq9", "recv_cq": "cq9",
                          "path_mtu": 1000}]
        for arguments in ((), ("--check",)):
            p = self.start(json.dumps(config, indent=1), wait=False, arguments=arguments)
            self.assertEqual(2, p.proc.wait(livenet.WAIT_S))
            text = p.stderr() + p.stdout()
            for pointer in ("/lcores/idle", "/ports/0/mac", "/ports/0/colour", "/mrs/0/pd",
                            "/qps/0/path_mtu"):
                self.assertRegex(text, r"config\.json:\d+: %s: \S" % re.escape(pointer))
            self.assertNotIn("EAL", text)

    def test_habits_of_other_formats(self):
        faults = "".join(', "k%d": 1' % i for i in range(1000))
        for text, words in (("", "nothing in it"), (" \n", "nothing in it"),
                            ('{"version": 1%s}' % faults, "... and more than these 256"),
                            (" " * (33 << 20), "is longer than 33554432 bytes"),
                            ('{"version": 1,}', "no comma"), ('// x\n{}', "no comments"),
                            ('{\n# x\n}', "no comments")):
            with self.subTest(text=text[:80]), tempfile.NamedTemporaryFile("w") as f:
                f.write(text)
                f.flush()
                done = subprocess.run([os.environ["ROCELANE"], "--config", f.name, "--check"],
                                      text=True, timeout=60, stdout=subprocess.PIPE,
                                      stderr=subprocess.STDOUT, check=False)
                self.assertEqual(2, done.returncode)
                self.assertIn(words, done.stdout)

    def test_broken_json(self):
        p = self.start('{"version": 1,\n "eal": [}', wait=False)
        self.assertEqual(2, p.proc.wait(livenet.WAIT_S))
        self.assertRegex(p.stderr(), r"config\.json:2: ")

    def test_bad_usage(self):
        for arguments in ([], ["--config"], ["--config", "/nonexistent/file.json"],
                          ["--config", "/dev/null", "--colour"]):
            done = subprocess.run([os.environ["ROCELANE"], *arguments], capture_output=True,
                                  text=True, timeout=livenet.WAIT_S, check=False)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertTrue(done.stderr)
        for seconds in ("0", "-1", "nan", "1e10", "2s"):
            done = subprocess.run([os.environ["ROCELANE"], "--duration", seconds],
                                  capture_output=True, text=True, timeout=livenet.WAIT_S,
                                  check=False)
            self.assertEqual(2, done.returncode, done.stderr)
            self.assertIn("above 0, and no more than 1000000000, not '%s'" % seconds, done.stderr)


class Rpc(livenet.LiveCase):
    """Malformed requests get errors and change nothing."""

    def picture(self):
        lists = {m: self.rpc(m) for m in ("qp_list", "mr_list", "cq_list", "srq_list", "port_list")}
        for port in lists["port_list"]:     # it may tell of its groups meanwhile
            del port["counters"]
        return lists, self.qp()["qp_state"], self.qp()["epsn"]

    def ask(self, line):
        conn = jsonrpc.Connection(self.dut.process.socket_path)
        try:
            return conn.ask(line)
        finally:
            conn.close()

    def test_malformed_lines(self):
        self.resp()
        before = self.picture()
        for line, codes in (
                (b"hello", (-32700, -32600)), (b"{", (-32700, -32600)), (b"[]", (-32600,)),
                (b"1", (-32600, -32700)), (b"{}", (-32600,)),
            (b'{"jsonrpc":"1.0","id":1}', (-32600,)),
                (b'{"jsonrpc":"2.0","id":1,"method":7}', (-32600,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_explode"}', (-32601,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query"}', (-32602,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query","params":[17]}', (-32602, -32600)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query","params":{"qp_num":"many"}}',
                 (-32602,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query","params":{"qp_num":-1}}', (-32602,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query","params":{"qp_num":17,"x":1}}',
                 (-32602,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_modify",'
                 b'"params":{"qp_num":17,"qp_state":"UP"}}',
                 (-32602,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_destroy","params":{"qp_num":999}}',
                 (-32002, -32022)),
                (b'{"jsonrpc":"2.0","id":1,"method":"mr_deregister","params":{"name":""}}',
                 (-32602, -32002)),
                (b'{"jsonrpc":"2.0","id":1,"method":"cq_destroy","params":{"name":"cq0"}}',
                 (-32016,)),
                (b'{"jsonrpc":"2.0","id":1,"method":"mr_write","params":'
                 b'{"name":"mr0","offset":65530,"data":"00112233445566778899"}}',
                 (-32022, -32034, -32602)),
                (b'{"jsonrpc":"2.0","id":1,"method":"mr_read","params":'
                 b'{"name":"mr0","offset":"0xffffffffffffffff","length":8}}',
                 (-32022, -32034, -32602)),
                (b'{"jsonrpc":"2.0","id":1,"method":"mr_read","params":'
                 b'{"name":"mr0","offset":65536,"length":9223372036854775807}}',
                 (-32022, -32034, -32602)),
                (b'{"jsonrpc":"2.0","id":1,"method":"qp_query","params":'
                 b'{"qp_num":18446744073709551616}}', (-32700, -32602)),
                (b'{"id":1,"id":2,"jsonrpc":"2.0","method":"version"}', (-32700, -32600)),
                (b"\xff\xfe\x00\x01", (-32700, -32600)),
                (b"[" * 5000, (-32700, -32600)),
                (b'{"jsonrpc":"2.0","id":1,"method":"' + b"a" * 100000 + b'"}', (-32601, -32600)),
        ):
            with self.subTest(line=line[:80]):
                reply = self.ask(line)
                self.assertIsInstance(reply, dict)
                self.assertIn("error", reply)
                self.assertIn(reply["error"]["code"], codes, reply)
                self.assertTrue(reply["error"]["message"])
        self.assertEqual(before, self.picture())

    def test_messages_name_the_parameter(self):
        self.resp()
        for params, word in (({"qp_num": QPN, "min_rnr_timer": 32}, "min_rnr_timer"),
                             ({"qp_num": QPN, "colour": 1}, "colour"),
                             ({"qp_num": QPN, "path_mtu": 1000}, "path_mtu")):
            with self.assertRaises(dut.RpcError) as refused:
                self.rpc("qp_modify", **params)
            self.assertIn(word, refused.exception.message)

    def test_too_long_a_line(self):
        """An error, and that connection is closed; others go on."""
        conn = jsonrpc.Connection(self.dut.process.socket_path)
        try:
            conn.sock.sendall(b'{"x":"' + b"a" * (2 << 20))
        except (BrokenPipeError, ConnectionResetError):
            pass
        try:
            line = conn.line()
            if line is not None:
                self.assertIn("error", json.loads(line))
                self.assertIsNone(conn.line())
        except ConnectionResetError:
            pass
        conn.close()
        self.assertIn("version", self.rpc("version"))

    def test_a_client_that_dies(self):
        """In the middle of a line, and with an answer not read."""
        for _ in range(50):
            conn = jsonrpc.Connection(self.dut.process.socket_path)
            conn.sock.sendall(b'{"jsonrpc":"2.0","id":1,"method":"rpc_get_methods"}\n{"jsonr')
            conn.close()
        self.assertIn("version", self.rpc("version"))

    def test_many_requests_in_one_write(self):
        conn = jsonrpc.Connection(self.dut.process.socket_path)
        lines = b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"version"}\n' % i for i in range(200))
        conn.sock.sendall(lines)
        self.assertEqual(list(range(200)), [json.loads(conn.line())["id"] for _ in range(200)])
        conn.close()

    def test_a_line_in_pieces(self):
        conn = jsonrpc.Connection(self.dut.process.socket_path)
        for b in b'{"jsonrpc":"2.0","id":9,"method":"version"}':
            conn.sock.sendall(bytes((b,)))
        conn.sock.sendall(b"\n")
        self.assertEqual(9, json.loads(conn.line())["id"])
        conn.close()

    def test_get_methods(self):
        methods = self.rpc("rpc_get_methods")
        for name in ("version", "qp_create", "qp_modify", "qp_query", "qp_list", "qp_destroy",
                     "mr_register", "mr_deregister", "mr_list", "mr_read", "mr_write", "cq_create",
                     "cq_list", "pd_create", "pd_dealloc", "post_recv", "poll_cq", "async_events",
                     "rx_errors", "stats", "trace_start", "trace_stop", "trace_read",
                     "port_list", "worker_list", "neighbor_list", "shutdown"):
            self.assertIn(name, methods)


if __name__ == "__main__":
    livenet.run_tests(dut.main)
