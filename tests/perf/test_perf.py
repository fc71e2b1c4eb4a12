# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-perf: both ends over one dataplane's two in-memory ports, every byte checked."""
import concurrent.futures
import contextlib
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

PERF, ROCELANE = os.environ["ROCELANE_PERF"], os.environ["ROCELANE"]
WAIT_S = 60


def free_ports(n):
    """n different ones."""
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [s.getsockname()[1] for s in held]


def free_port():
    return free_ports(1)[0]


def answers(path):
    """The socket's file is there before anybody listens."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


class Dataplane:
    def __init__(self, mtu=4200):
        self.dir = tempfile.TemporaryDirectory(prefix="rocelane-perf-")
        self.socket = os.path.join(self.dir.name, "sock")
        config = {
            "version": 1,
            "eal": ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                    "--log-level=error"],
            "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
            "control": {"socket": self.socket},
            "ports": [{"name": name, "device": "net_pair0" + end, "mac": "02:00:00:00:00:0" + n,
                       "ipv4": "10.77.0." + n, "prefix": 24, "mtu": mtu}
                      for name, end, n in (("left", "a", "1"), ("right", "b", "2"))]}
        path = os.path.join(self.dir.name, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.log = open(os.path.join(self.dir.name, "log"), "w+", encoding="utf-8")
        self.proc = subprocess.Popen([ROCELANE, "--config", path], stdout=self.log,
                                     stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + WAIT_S
        while not answers(self.socket):
            if self.proc.poll() is not None or time.monotonic() > deadline:
                self.log.seek(0)
                raise RuntimeError(self.log.read())
            time.sleep(0.01)

    def close(self):
        self.proc.send_signal(signal.SIGTERM)
        code = self.proc.wait(WAIT_S)
        self.log.close()
        self.dir.cleanup()
        return code


class Ends(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dataplane = Dataplane()

    @classmethod
    def tearDownClass(cls):
        code = cls.dataplane.close()
        if code != 0:
            raise AssertionError("the dataplane ended with %d" % code)

    def start(self, *args):
        p = subprocess.Popen([PERF, "--socket", self.dataplane.socket, *args],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        return p

    @staticmethod
    def end(proc):
        """Nothing is left behind, whatever failed."""
        if proc.poll() is None:
            proc.kill()
        proc.communicate()

    def finish(self, proc, code=0):
        out, err = proc.communicate(timeout=WAIT_S)
        self.assertEqual(code, proc.returncode, (out, err))
        return out, err

    def pair(self, test, *args, host="127.0.0.1"):
        """Client's and server's output."""
        port = str(free_port())
        server = self.start(test, "-d", "right", "-p", port, *args)
        client = self.start(test, "-d", "left", "-p", port, *args, host)
        return self.finish(client)[0], self.finish(server)[0]


class Perf(Ends):

    def test_unreliable_connections(self):
        """UC: what has receives posted for it arrives, since the link loses nothing."""
        for test, size in (("send_bw", "3000"), ("write_bw", "65537"), ("send_lat", "5000")):
            with self.subTest(test=test):
                for out in self.pair(test, "-c", "UC", "-s", size, "-n", "300", "--validate",
                                     "--json"):
                    r = json.loads(out)
                    self.assertEqual((int(size), 300, 0),
                                     (r["bytes"], r["iterations"], r["wrong_messages"]))
        self.pair("write_lat", "-c", "UC", "-s", "64", "-n", "300")
        for test in ("read_bw", "atomic_lat"):
            _, err = self.finish(self.start(test, "-c", "UC", "127.0.0.1"), 2)
            self.assertIn("UC", err)
        _, err = self.finish(self.start("send_bw", "-c", "RD", "127.0.0.1"), 2)
        self.assertIn("RC, UC, UD or XRC", err)

    def test_targets_of_shared_receive_queues(self):
        """XRC: what RC has, and a queue pair for each direction."""
        self.every_test("-c", "XRC")
        client, _ = self.pair("write_lat", "-c", "XRC", "-s", "64", "-n", "300")
        self.assertIn("Connection type : XRC", client)
        self.pair("send_bw", "-c", "XRC", "-D", "0.2", "-e")
        self.pair("send_bw", "-c", "XRC", "-a", "-n", "5")
        _, err = self.finish(self.start("send_bw", "-c", "XRC", "-R", "127.0.0.1"), 2)
        self.assertIn("-R", err)

    def test_datagrams(self):
        """UD: the same, a packet a message; the default size is a path MTU."""
        for test, size in (("send_bw", "4096"), ("send_bw", "1"), ("send_lat", "3000")):
            with self.subTest(test=test, size=size):
                for out in self.pair(test, "-c", "UD", "-s", size, "-n", "300", "--validate",
                                     "--json"):
                    r = json.loads(out)
                    self.assertEqual((int(size), 300, 0),
                                     (r["bytes"], r["iterations"], r["wrong_messages"]))
        for out in self.pair("send_bw", "-c", "UD", "-n", "300", "--json"):
            self.assertEqual(4096, json.loads(out)["bytes"])
        self.pair("send_lat", "-c", "UD", "-a", "-n", "50")
        for test in ("read_bw", "write_bw", "atomic_lat"):
            _, err = self.finish(self.start(test, "-c", "UD", "127.0.0.1"), 2)
            self.assertIn("UD", err)

    def test_every_test_validates(self):
        self.every_test()

    def every_test(self, *args):
        for test, size in (("send_bw", "3000"), ("write_bw", "65537"), ("read_bw", "8192"),
                           ("atomic_bw", "8"), ("send_lat", "5000"), ("read_lat", "2"),
                           ("atomic_lat", "8")):
            with self.subTest(test=test):
                more = ("-q", "3") if test.endswith("_bw") else ()
                for out in self.pair(test, "-s", size, "-n", "300", "--validate", "--json", *more,
                                     *args):
                    if not out and test in ("read_lat", "atomic_lat"):
                        continue  # the passive end has measured nothing
                    r = json.loads(out)
                    self.assertEqual((int(size), 300, 0),
                                     (r["bytes"], r["iterations"], r["wrong_messages"]))

    def test_compare_and_swap_small_mtu_inline_and_moderation(self):
        self.pair("atomic_bw", "-A", "CMP_AND_SWAP", "-n", "200", "--validate")
        self.pair("write_bw", "-s", "10000", "-n", "100", "-m", "256", "--validate")
        self.pair("send_bw", "-s", "64", "-I", "64", "-n", "500", "--validate")
        # as much memory as is under way: no more than 20 of 4 MiB, whatever the depths
        self.pair("write_bw", "-s", "4M", "-n", "20", "--validate")
        self.pair("write_bw", "-s", "64", "-Q", "1", "-t", "2", "-n", "500")
        self.pair("write_bw", "-s", "64", "-Q", "7", "-t", "20", "-n", "503")
        self.pair("send_bw", "-e", "-s", "100", "-n", "300")

    def test_latency_has_perftests_columns(self):
        client, server = self.pair("write_lat", "-n", "600", "-s", "200")
        for out in (client, server):
            head, row = re.search(r"^ (#bytes.*)\n (.*)$", out, re.M).groups()
            self.assertIn("t_typical[usec]", head)
            v = [float(x) for x in row.split()]
            self.assertEqual((9, 200, 600), (len(v), v[0], v[1]))
            t_min, t_max, typical, average, _, p99, p999 = v[2:]
            self.assertLessEqual(0, t_min)
            self.assertLessEqual(t_min, typical)
            self.assertLessEqual(typical, p99)
            self.assertLessEqual(p99, p999)
            self.assertLessEqual(p999, t_max)
            self.assertTrue(t_min <= average <= t_max)

    def test_bandwidth_has_perftests_columns(self):
        client, server = self.pair("write_bw", "-n", "1000", "-s", "4096", "--report_gbits")
        for out in (client, server):
            self.assertIn("BW average[Gb/sec]", out)
            row = re.search(r"^ #bytes.*\n (.*)$", out, re.M)[1].split()
            self.assertEqual(["4096", "1000"], row[:2])
            peak, average, rate = (float(x) for x in row[2:])
            self.assertGreaterEqual(peak + 0.01, average)
            self.assertAlmostEqual(rate * 4096 * 8 / 1e3, average, delta=0.02 * average + 0.02)

    def test_peak_is_no_more_than_what_was_moved(self):
        """One completion tells of all messages: they took the whole run (perf_hist has more)."""
        for out in self.pair("write_bw", "-s", "8M", "-n", "100", "-Q", "100", "--json"):
            r = json.loads(out)
            self.assertAlmostEqual(r["bw_average_gbps"], r["bw_peak_gbps"],
                                   delta=0.02 * r["bw_average_gbps"])
        for out in self.pair("send_bw", "-s", "64", "-n", "5", "--json"):
            r = json.loads(out)                     # whatever came at once took some time
            self.assertLess(r["bw_peak_gbps"], 100)

    def test_duration_and_all_sizes(self):
        for test in ("write_bw", "send_bw", "read_lat", "send_lat"):
            with self.subTest(test=test):
                out, _ = self.pair(test, "-D", "0.3", "-s", "512", "--json")
                r = json.loads(out)
                self.assertGreater(r["iterations"], 0)
                self.assertGreaterEqual(r["seconds"], 0.29)
        for test in ("send_bw", "write_lat"):
            out, _ = self.pair(test, "-a", "-n", "5", "--json")
            self.assertEqual([2 ** k for k in range(1, 24)],
                             [json.loads(line)["bytes"] for line in out.splitlines()])

    def test_speaks_perftests_handshake(self):
        """A peer that talks as perftest 4.5 does, typed here from what goes over its connection."""
        port = free_port()
        got = {}

        def peer():
            with socket.create_server(("127.0.0.1", port)) as listener:
                conn, _ = listener.accept()
                with conn:
                    conn.settimeout(WAIT_S)
                    f = conn.makefile("rwb")

                    def turn(n, answer):
                        data = f.read(n)
                        f.write(answer)
                        f.flush()
                        return data
                    got["version"] = turn(16, b"6.06".ljust(16, b"\0"))
                    got["cycle"] = turn(4, struct.pack(">i", 8192))
                    got["line"] = turn(4, struct.pack(">i", 64))
                    got["mtu"] = turn(2, b"3\0")
                    keys = (b"0000:0010:000011:000abc:00001234:0000556600000000:"
                            + b":".join(b"%02x" % b for b in bytes(10) + b"\xff\xff\x0a\x4d\0\x02")
                            + b":00000000:").ljust(108, b"\0")
                    got["keys"] = [turn(108, keys) for _ in range(3)]
        t = threading.Thread(target=peer, daemon=True)
        t.start()
        client = self.start("write_bw", "-d", "left", "-p", str(port), "127.0.0.1")
        _, err = self.finish(client, 1)  # the peer hangs up, and it has no QP 17
        t.join(WAIT_S)
        self.assertTrue(err)
        self.assertEqual(b"6.06\0", got["version"][:5])
        self.assertEqual(struct.pack(">i", 4096), got["cycle"])
        self.assertEqual(b"5\0", got["mtu"])
        for keys in got["keys"]:
            self.assertRegex(keys.rstrip(b"\0"),
                             rb"^[0-9a-f]{4}:[0-9a-f]{4}:[0-9a-f]{6}:[0-9a-f]{6}:[0-9a-f]{8}:"
                             rb"[0-9a-f]{16}:(00:){10}ff:ff:0a:4d:00:01:00000000:$")

    def test_what_is_wrong_is_told(self):
        for args, text in ((("fly_bw",), "{send|write|read|atomic}_{bw|lat}"), ((), "which test"),
                           (("write_bw", "-s", "0"), "-s takes"),
                           (("write_bw", "-m", "1000"), "256, 512, 1024"),
                           (("atomic_bw", "-s", "16"), "8 bytes"),
                           (("write_lat", "-q", "2"), "one queue pair"),
                           (("write_bw", "a", "b"), "one host")):
            with self.subTest(args=args):
                _, err = self.finish(self.start(*args), 2)
                self.assertIn(text, err)
        _, err = self.finish(self.start("write_bw", "-d", "nowhere", "127.0.0.1"), 1)
        self.assertIn("1: left, 2: right", err)
        with socket.socket() as taken:
            taken.bind(("", 0))
            taken.listen()
            _, err = self.finish(self.start("write_bw", "-p", str(taken.getsockname()[1])), 1)
            self.assertIn("-p", err)
        server = self.start("write_bw", "-p", str(free_port()))
        for _ in range(3):  # until it waits
            server.stdout.readline()
        server.terminate()
        self.assertIn("stopped", self.finish(server, -signal.SIGTERM)[1])
        p = subprocess.run([PERF, "write_bw", "--socket", self.dataplane.socket + "x"], check=False,
                           capture_output=True, text=True, timeout=WAIT_S)
        self.assertEqual(1, p.returncode)
        self.assertIn("Is the dataplane running?", p.stderr)
        for word in ("-h", "--version"):
            self.assertIn("rocelane-perf", self.finish(self.start(word))[0])

    def test_end_of_the_peer_ends_the_run(self):
        port = str(free_port())
        server = self.start("send_bw", "-d", "right", "-p", port, "-D", "600")
        client = self.start("send_bw", "-d", "left", "-p", port, "-D", "600", "127.0.0.1")
        deadline = time.monotonic() + WAIT_S
        line = server.stdout.readline()
        while "#bytes" not in line and time.monotonic() < deadline:
            line = server.stdout.readline()
        client.kill()
        client.wait(WAIT_S)
        self.finish(server, 1)
        server = self.start("write_bw", "-d", "right", "-p", port)
        client = self.start("write_bw", "-d", "left", "-p", port, "-D", "600", "127.0.0.1")
        line = client.stdout.readline()
        while "#bytes" not in line and time.monotonic() < deadline:
            line = client.stdout.readline()
        server.kill()
        server.wait(WAIT_S)
        _, err = self.finish(client, 1)
        self.assertRegex(err, "peer has closed|RETRY_EXC_ERR|REM_")

    def test_the_mtu_is_the_ports(self):
        """A port with an ordinary mtu: nobody has to say -m."""
        dataplane, port = Dataplane(mtu=1500), str(free_port())
        args = ("--socket", dataplane.socket, "-p", port, "-n", "100", "--json")
        server = self.start("write_bw", "-d", "right", *args)
        client = self.start("write_bw", "-d", "left", *args, "127.0.0.1")
        self.assertEqual(1024, json.loads(self.finish(client)[0])["mtu"])
        self.finish(server)
        _, err = self.finish(self.start("write_bw", *args, "-m", "2048"), 1)
        self.assertIn("1024 at most", err)
        self.assertEqual(0, dataplane.close())

    def test_end_of_the_dataplane_ends_the_run(self):
        dataplane, port = Dataplane(), str(free_port())
        args = ("--socket", dataplane.socket, "-p", port, "-D", "600")
        server = self.start("send_bw", "-d", "right", *args)
        client = self.start("send_bw", "-d", "left", *args, "127.0.0.1")
        line = client.stdout.readline()
        while line and "#bytes" not in line:
            line = client.stdout.readline()
        self.assertEqual(0, dataplane.close())
        for p in (client, server):
            self.assertRegex(self.finish(p, 1)[1],
                             "DEVICE_FATAL|_ERR|dataplane is gone|peer has closed|reset by peer")

    def test_a_killed_dataplane_ends_the_run(self):
        """It says nothing, it is just gone; some wait for it, some for their peer alone."""
        for test, extra in (("send_bw", ()), ("send_bw", ("-e",)), ("write_bw", ()),
                            ("write_lat", ()), ("read_lat", ())):
            with self.subTest(test=test, extra=extra):
                dataplane, port = Dataplane(), str(free_port())
                self.addCleanup(dataplane.proc.wait)
                self.addCleanup(dataplane.proc.kill)
                args = ("--socket", dataplane.socket, "-p", port, *extra,
                        *(("-n", "1000000000") if test == "write_lat" else ("-D", "600")))
                server = self.start(test, "-d", "right", *args)
                client = self.start(test, "-d", "left", *args, "127.0.0.1")
                line = client.stdout.readline()
                while line and "#bytes" not in line:
                    line = client.stdout.readline()
                dataplane.proc.kill()
                began = time.monotonic()
                for p in (client, server):
                    self.assertRegex(self.finish(p, 1)[1],
                                     "DEVICE_FATAL|dataplane is gone|peer has closed|reset by peer")
                self.assertLess(time.monotonic() - began, 20)

    def test_a_server_notices_that_its_dataplane_is_gone(self):
        dataplane = Dataplane()
        self.addCleanup(dataplane.proc.wait)
        server = self.start("write_bw", "--socket", dataplane.socket, "-p", str(free_port()))
        for _ in range(3):  # until it waits
            server.stdout.readline()
        dataplane.proc.kill()
        self.assertIn("DEVICE_FATAL", self.finish(server, 1)[1])

    def test_a_stranger_that_hangs(self):
        """A peer that says nothing more, at any moment of the handshake."""
        good = b"6.06".ljust(16, b"\0")
        cases = [(words, is_server) for is_server in (False, True) for words in (
            b"", good[:9], good, good + struct.pack(">ii", 4096, 64) + b"3")]
        with concurrent.futures.ThreadPoolExecutor(len(cases)) as pool:
            told = pool.map(lambda case, port: self.stranger(*case, port, 1), cases,
                            free_ports(len(cases)))
        for case, (code, err) in zip(cases, told):
            with self.subTest(case=case):
                self.assertEqual(1, code, err)
                self.assertIn("no answer in 1 s", err)

    def test_a_stranger_at_the_other_end(self):
        """A peer that speaks something else."""
        good = b"6.06".ljust(16, b"\0")
        for words, text in ((good + struct.pack(">ii", 4096, 64) + b"3\0" + b"x" * 108,
                             "not perftest's with a GID"),
                            (good + b"\x7f\xff\xff\xff" * 2, "asks for buffers"),
                            (b"SSH-2.0-OpenSSH_9.2p1\r\n", "version 'SSH-2.0-OpenSSH'"),
                            (b"HTTP/1.1 400 Bad Request\r\n\r\n", "version 'HTTP/1.1 400 Ba'"),
                            (b"\x1b]0;hello\x07\x9b2J\xff.....", "version '?]0;hello??2J?.'"),
                            (bytes(4096), "version ''")):
            for is_server in (False, True):
                with self.subTest(words=words[:30], is_server=is_server):
                    code, err = self.stranger(words, is_server, free_port(), WAIT_S)
                    self.assertEqual(1, code, err)
                    self.assertIn(text, err)

    def stranger(self, words, is_server, port, patience_s):
        """Say these words to it. @return its exit code and what it said."""
        args = ("write_bw", "-p", str(port), "--handshake_timeout", str(patience_s))
        with socket.create_server(("127.0.0.1", port)) if not is_server else socket.socket() as s:
            p = self.start(*args, *(() if is_server else ("127.0.0.1",)))
            if is_server:
                deadline = time.monotonic() + WAIT_S
                while True:
                    conn = socket.socket()
                    if conn.connect_ex(("127.0.0.1", port)) == 0:
                        break
                    conn.close()
                    self.assertLess(time.monotonic(), deadline)
                    time.sleep(0.01)
            else:
                s.settimeout(WAIT_S)
                conn, _ = s.accept()
            with conn:
                conn.sendall(words)
                _, err = p.communicate(timeout=WAIT_S)
        return p.returncode, err

    def test_another_test_at_the_other_end(self):
        """Two of ours know at once; both say which test the other one runs, and fail."""
        for mine, theirs in (("send_bw", "write_bw"), ("write_bw", "send_bw"),
                             ("read_lat", "read_bw"), ("write_lat", "send_lat"),
                             ("atomic_bw", "read_bw")):
            with self.subTest(mine=mine, theirs=theirs):
                port = str(free_port())
                server = self.start(theirs, "-d", "right", "-p", port)
                client = self.start(mine, "-d", "left", "-p", port, "127.0.0.1")
                self.assertIn("the peer runs %s, and this is %s" % (theirs, mine),
                              self.finish(client, 1)[1])
                self.assertIn("the peer runs %s, and this is %s" % (mine, theirs),
                              self.finish(server, 1)[1])

    def test_a_server_of_perftests_that_waits_for_another_test(self):
        """
        ib_send_bw under our write_bw: its handshake is the same, and it goes on waiting for
        messages. What our client has to say after its test is not answered.
        """
        port, other = free_port(), str(free_port())
        relay = threading.Thread(target=self.perftest_server, args=(port, other), daemon=True)
        relay.start()
        self.start("write_bw", "-d", "right", "-p", other)
        client = self.start("write_bw", "-d", "left", "-p", str(port), "-n", "100",
                            "--handshake_timeout", "1", "127.0.0.1")
        _, err = self.finish(client, 1)
        self.assertIn("no answer in 1 s", err)
        self.assertIn("another test", err)
        relay.join(WAIT_S)

    @staticmethod
    def perftest_server(port, other):
        """
        A server as perftest's, with a real QP: what a rocelane-perf at `other` says, without its
        mark, and no word more when the test has begun.
        """
        with socket.create_server(("127.0.0.1", port)) as listener:
            conn, _ = listener.accept()
            with conn:
                while True:
                    behind = socket.socket()
                    if behind.connect_ex(("127.0.0.1", int(other))) == 0:
                        break
                    behind.close()
                    time.sleep(0.01)
                with behind:
                    for n in (16, 4, 4, 2, 108, 108, 108):
                        said = conn.recv(n, socket.MSG_WAITALL)
                        behind.sendall(b"6.06".ljust(16, b"\0") if n == 16 else said)
                        conn.sendall(behind.recv(n, socket.MSG_WAITALL)
                                     if n != 16 else b"6.06".ljust(16, b"\0"))
                        if n == 16:
                            behind.recv(16, socket.MSG_WAITALL)
                    conn.settimeout(WAIT_S)
                    while conn.recv(4096):          # until the client is gone
                        pass

    def test_another_number_of_queue_pairs(self):
        args = ("write_bw", "-p", str(free_port()), "-n", "10", "--handshake_timeout", "2")
        server = self.start(*args, "-d", "right", "-q", "2")
        client = self.start(*args, "-d", "left", "-q", "3", "127.0.0.1")
        self.assertIn("as many queue pairs (-q)", self.finish(server, 1)[1])
        self.assertTrue(self.finish(client, 1)[1])

    def test_a_stop_while_the_server_is_not_there_yet(self):
        client = self.start("write_bw", "-p", str(free_port()), "127.0.0.1")
        time.sleep(0.3)
        began = time.monotonic()
        client.terminate()
        self.assertIn("stopped", self.finish(client, -signal.SIGTERM)[1])
        self.assertLess(time.monotonic() - began, 20)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0]])
