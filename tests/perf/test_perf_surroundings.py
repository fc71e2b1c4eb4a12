#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-perf: ends that differ, output that goes nowhere, an environment with empty names.

    test_perf_surroundings.py --long     also what takes long
"""
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
import unittest

from test_perf import PERF, WAIT_S, Ends, free_port

LONG = "--long" in sys.argv


class Surroundings(Ends):

    def test_another_size_at_the_other_end(self):
        """Once it was counted by the own size: a rate of nothing, or "wrong messages"."""
        for test, args in (("send_bw", ()), ("send_bw", ("--validate",)), ("send_lat", ()),
                           ("send_bw", ("-c", "UD"))):
            with self.subTest(test=test, args=args):
                port = str(free_port())
                server = self.start(test, "-d", "right", "-p", port, "-s", "2048", *args)
                client = self.start(test, "-d", "left", "-p", port, "-s", "1K", *args,
                                    "127.0.0.1")
                _, err = self.finish(server, 1)
                self.assertIn("1024 bytes has come, not of 2048", err)
                self.assertIn("-s", err)
                client.communicate(timeout=WAIT_S)

    def test_completions_as_perftest_asks_for_them(self):
        """Each of more than 8 KiB has one, unless sizes change, it sleeps, or -Q is given."""
        for args, want in (
                ((), "1"), (("-s", "8192"), "100"), (("-s", "8193"), "1"), (("-a",), "100"),
                (("-e",), "100"), (("-Q", "7"), "7"), (("-s", "8", "-t", "20"), "20")):
            with self.subTest(args=args):
                out, _ = self.pair("write_bw", "-n", "5", *args)
                self.assertRegex(out, rf"CQ Moderation +: {want}\n")
        out, _ = self.pair("send_bw", "-c", "UD", "-n", "5")
        self.assertRegex(out, r"CQ Moderation +: 100\n")

    def test_a_run_for_a_time_that_sleeps(self):
        """The last of it is waited for too, though nothing comes after it."""
        for test, *more in (("send_bw",), ("send_bw", "-c", "UC"), ("send_bw", "-c", "UD"),
                            ("write_bw",), ("read_bw", "-q", "2"), ("atomic_bw",),
                            ("send_lat",), ("read_lat",), ("atomic_lat",)):
            with self.subTest(test=test, more=more):
                out, _ = self.pair(test, "-e", "-D", "0.2", "--json", *more)
                r = json.loads(out)
                self.assertGreater(r["iterations"], 0)
                self.assertGreaterEqual(r["seconds"], 0.19)

    def test_lists(self):
        """Whole ones or not, longer than the queue or not: every message is there once."""
        for test, *more in (("write_bw", "-l", "32", "-q", "3"), ("read_bw", "-l", "5"),
                            ("send_bw", "-l", "64", "-t", "20"), ("atomic_bw", "-l", "7")):
            with self.subTest(test=test, more=more):
                self.pair(test, "-s", "8", "-n", "501", "--validate", *more)

    def test_what_does_not_go_together(self):
        """It is known before anybody waits for the other end."""
        for args, text in ((("-D", "1e-10"), "-D takes seconds"), (("-D", "nan"), "-D takes"),
                           (("-s", "2048M"), "1073741824, also as 64K or 4M, not '2048M'"),
                           (("-s", "1025M"), "not '1025M'"), (("-s", "-1"), "not '-1'"),
                           (("-s", "K"), "not 'K'"), (("-s", "4k"), "not '4k'"),
                           (("-s", "4KK"), "not '4KK'"), (("-s", ""), "not ''"),
                           (("-s", "0M"), "not '0M'"), (("-s", " 4K"), "not ' 4K'"),
                           (("-s", "+4K"), "not '+4K'"), (("-s", " -1"), "not ' -1'"),
                           (("-n", " 7"), "not ' 7'"), (("-n", "+7"), "not '+7'"),
                           (("-s", "36893488147419103232"), "-s takes a number of bytes"),
                           (("--validate", "-a"), "--validate"),
                           (("--validate", "-D", "1"), "--validate")):
            self.assertIn(text, self.finish(self.start("write_bw", *args), 2)[1])
        self.assertIn("write_lat", self.finish(self.start("write_lat", "--validate"), 2)[1])

    def test_validate_at_one_end(self):
        """A READ would find nothing that was filled in, and each message would be wrong."""
        for at_server, at_client in (((), ("--validate",)), (("--validate",), ())):
            for test in ("read_bw", "send_bw"):
                port = str(free_port())
                server = self.start(test, "-d", "right", "-p", port, *at_server)
                client = self.start(test, "-d", "left", "-p", port, "-n", "9", *at_client,
                                    "127.0.0.1")
                for end, said in ((client, at_client), (server, at_server)):
                    out, err = self.finish(end, 1)
                    self.assertIn("--validate was said at %s alone: both ends must say it"
                                  % ("this end" if said else "the other end"), err)
                    self.assertNotIn("wrong messages", out)

    def test_a_report_that_is_none(self):
        """A server shows what its client has measured: no number is no JSON."""
        port = free_port()
        server = self.start("write_bw", "-d", "right", "-p", str(port), "--json")
        keys = (b"0000:0010:000011:000abc:00001234:0000556600000000:"
                + b":".join(b"%02x" % b for b in bytes(10) + b"\xff\xff\x0a\x4d\0\x01")
                + b":00000000:").ljust(108, b"\0")
        said = [b"6.06".ljust(16, b"\0"), struct.pack(">i", 4096), struct.pack(">i", 64), b"5\0",
                *[keys] * 4, struct.pack(">Q", 65536), struct.pack(">Q", 5000),
                *[struct.pack(">d", v) for v in (float("nan"), float("inf"), 1.0)]]
        with contextlib.closing(self.connection(port)) as conn:
            for words in said:
                conn.sendall(words)
                self.assertEqual(len(words), len(conn.recv(len(words), socket.MSG_WAITALL)))
            out, err = self.finish(server, 1)
        self.assertEqual("", out)
        self.assertIn("report is none", err)

    @staticmethod
    def connection(port):
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                return socket.create_connection(("127.0.0.1", port))
            except ConnectionRefusedError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def test_output_that_cannot_be_written(self):
        port = str(free_port())
        server = self.start("write_bw", "-d", "right", "-p", port, "-n", "10")
        with open("/dev/full", "w", encoding="ascii") as full:
            client = subprocess.run(
                [PERF, "--socket", self.dataplane.socket, "write_bw", "-d", "left", "-p", port,
                 "-n", "10", "127.0.0.1"], stdout=full, stderr=subprocess.PIPE, text=True,
                timeout=WAIT_S, check=False)
            self.assertEqual((1, "rocelane-perf: cannot write: No space left on device\n"),
                             (client.returncode, client.stderr))
            self.finish(server)
            said = subprocess.run([PERF, "--help"], stdout=full, stderr=subprocess.PIPE,
                                  timeout=WAIT_S, check=False)
            self.assertEqual(1, said.returncode)

    def test_an_empty_socket_of_the_environment_is_none(self):
        p = subprocess.run([PERF, "write_bw", "-p", str(free_port()), "127.0.0.1"],
                           env={**os.environ, "ROCELANE_SOCKET": ""}, capture_output=True,
                           text=True, timeout=WAIT_S, check=False)
        self.assertEqual(1, p.returncode)
        self.assertNotIn("rocelane-perf: :", p.stderr)

    if LONG:
        def test_a_socket_with_too_many_others(self):
            """rl_open() waits for half a minute, as long as for an answer, and not for ever."""
            path = os.path.join(self.dataplane.dir.name, "full")
            with contextlib.ExitStack() as stack:
                listener = stack.enter_context(socket.socket(socket.AF_UNIX))
                listener.bind(path)
                listener.listen(0)
                waiting = 0
                while waiting == 0:
                    s = stack.enter_context(socket.socket(socket.AF_UNIX))
                    s.setblocking(False)
                    waiting = s.connect_ex(path)
                p = subprocess.run([PERF, "--socket", path, "write_bw"], capture_output=True,
                                   text=True, timeout=WAIT_S, check=False)
            self.assertEqual(1, p.returncode)
            self.assertIn("too many others", p.stderr)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
