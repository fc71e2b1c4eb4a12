# SPDX-License-Identifier: BSD-3-Clause
"""What watches the program: DPDK telemetry, the service manager, load by worker."""
import fcntl
import json
import os
import resource
import socket
import struct
import tempfile
import time
import unittest

import jsonrpc
import livenet
import dut


class Telemetry:
    """Client of DPDK's telemetry socket, version 2."""

    def __init__(self, prefix):
        path = "/var/run/dpdk/%s/dpdk_telemetry.v2" % prefix
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(livenet.WAIT_S)
        self.sock.connect(path)
        self.limit = json.loads(self.sock.recv(4096))["max_output_len"]

    def ask(self, command):
        self.sock.send(command.encode())
        return json.loads(self.sock.recv(self.limit))[command.split(",")[0]]


def null_config(prefix):
    """A port that is always idle; telemetry is on."""
    config = livenet.live_config()
    config["eal"] = ["--no-huge", "-m", "256", "--no-pci", "--file-prefix=" + prefix,
                     "--log-level=error", "--vdev=net_null0,no-rx=1"]
    config["ports"][0]["device"] = "net_null0"
    config["ports"][0]["mtu"] = 1500
    return config


class Manage(unittest.TestCase):

    def test_a_mark_that_somebody_has(self):
        """Others may take its files for a dead one's: that is said, and it runs all the same."""
        prefix = "rocelane-mark-%d" % os.getpid()

        def lock():
            livenet.die_with_parent()
            folder = "/var/run/dpdk/" + prefix
            os.makedirs(folder, 0o700, exist_ok=True)
            fd = os.open("%s/rocelane.%d" % (folder, os.getpid()), os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(fd, fcntl.LOCK_EX)
            os.dup2(fd, 0)      # is kept beyond exec()
        p = livenet.Process(null_config(prefix), prepare=lock)
        self.addCleanup(p.close)
        self.assertRegex(p.stderr(), r"rocelane\.\d+: another process has its lock")
        self.assertEqual(0, p.stop())
        self.assertFalse(os.path.exists("/var/run/dpdk/" + prefix))

    def test_telemetry(self):
        prefix = "rocelane-test-%d" % os.getpid()
        p = livenet.Process(null_config(prefix))
        self.addCleanup(p.close)
        t = Telemetry(prefix)
        self.addCleanup(t.sock.close)
        commands = t.ask("/")
        for name in ("info", "stats", "port/list", "port/stats", "worker/list", "worker/stats",
                     "worker/load"):
            self.assertIn("/rocelane/" + name, commands)
        self.assertEqual("rocelane", t.ask("/rocelane/info")["name"])
        self.assertEqual(["p0"], t.ask("/rocelane/port/list"))
        self.assertEqual([0], t.ask("/rocelane/worker/list"))
        conn = jsonrpc.Connection(p.socket_path)
        self.addCleanup(conn.close)
        total = conn.call("stats")
        # What the control lcore counts is not there: telemetry has a thread of its own.
        names = {k for k in total if not k.startswith(("control_", "cm_"))}
        for command in ("/rocelane/stats", "/rocelane/worker/stats,0", "/rocelane/port/stats,p0"):
            self.assertEqual(names, set(t.ask(command)))
        first = t.ask("/rocelane/worker/load,0")
        self.assertIn("stall_ns", first)
        deadline = time.monotonic() + livenet.WAIT_S
        while t.ask("/rocelane/worker/load,0")["turns"] == first["turns"]:
            self.assertLess(time.monotonic(), deadline, "the worker does not turn")
        for command in ("/rocelane/worker/stats,7", "/rocelane/worker/load",
                        "/rocelane/worker/load,x", "/rocelane/port/stats,nope"):
            self.assertIsNone(t.ask(command))
        self.assertEqual(0, p.stop(), p.stderr())

    def test_dumpcap_is_heard(self):
        """dpdk-dumpcap asks over EAL's channel between processes: a request gets an answer. (To
        capture, it attaches to hugepages: README, "Capturing".)"""
        prefix = "rocelane-test-dump-%d" % os.getpid()
        p = livenet.Process(null_config(prefix))
        self.addCleanup(p.close)
        message = struct.Struct("=i64sii256s")  # EAL's: type, name, lengths, data
        request, reply = 1, 2
        with tempfile.TemporaryDirectory(prefix="rocelane-dump-") as d, \
                socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.settimeout(livenet.WAIT_S)
            sock.bind(os.path.join(d, "me"))
            sock.sendto(message.pack(request, b"mp_pdump", 1, 0, b"?"),
                        "/var/run/dpdk/%s/mp_socket" % prefix)
            answer = message.unpack(sock.recv(4096))
        self.assertEqual((reply, b"mp_pdump"), (answer[0], answer[1].split(b"\0")[0]))
        self.assertEqual(0, p.stop(), p.stderr())

    def test_service_manager_hears_ready_alive_and_stopping(self):
        with tempfile.TemporaryDirectory(prefix="rocelane-notify-") as d:
            path = os.path.join(d, "n")
            listener = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self.addCleanup(listener.close)
            listener.bind(path)
            listener.settimeout(livenet.WAIT_S)
            os.environ.update(NOTIFY_SOCKET=path, WATCHDOG_USEC="100000")
            try:
                p = livenet.Process(wait=False)
            finally:
                del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]
            self.addCleanup(p.close)
            self.assertEqual(b"READY=1", listener.recv(100), p.stderr())
            jsonrpc.Connection(p.socket_path).close()  # ready means that it answers
            for _ in range(3):
                self.assertEqual(b"WATCHDOG=1", listener.recv(100))
            # No descriptor left, as when clients have used them up: the watchdog still hears.
            used = max(map(int, os.listdir("/proc/%d/fd" % p.proc.pid)))
            resource.prlimit(p.proc.pid, resource.RLIMIT_NOFILE, (used + 1, used + 1))
            while True:
                listener.setblocking(False)
                try:
                    listener.recv(100)
                except BlockingIOError:
                    break
            listener.settimeout(livenet.WAIT_S)
            for _ in range(3):
                self.assertEqual(b"WATCHDOG=1", listener.recv(100), p.stderr())
            p.proc.terminate()
            said = [listener.recv(100)]
            while said[-1] == b"WATCHDOG=1":
                said.append(listener.recv(100))
            self.assertEqual(b"STOPPING=1", said[-1])
            self.assertEqual(0, p.proc.wait(livenet.WAIT_S), p.stderr())

    def test_worker_load_counts_stages_only_while_asked(self):
        p = livenet.Process()
        self.addCleanup(p.close)
        conn = jsonrpc.Connection(p.socket_path)
        self.addCleanup(conn.close)

        def load(**params):
            return conn.call("worker_load", **params)[0]

        first = load()
        self.assertFalse(first["measure"])
        self.assertEqual(0, sum(first["stage_cycles"].values()))
        self.assertTrue(load(measure=True)["measure"])
        deadline = time.monotonic() + livenet.WAIT_S
        while load()["stage_cycles"]["rx"] == 0:
            self.assertLess(time.monotonic(), deadline, "no cycles are counted")
        while load()["turn_max_cpu_us"] == 0:
            self.assertLess(time.monotonic(), deadline, "no turn takes a microsecond")
        longest = load()
        self.assertIn(longest["turn_max_stage"], longest["stage_cycles"])
        self.assertLessEqual(longest["turn_max_cpu_us"], longest["turn_max_us"])
        self.assertLessEqual(longest["turn_max_stage_us"], longest["turn_max_us"])
        self.assertLessEqual({"turn_max_faults", "turn_max_disk_faults", "turn_max_waits",
                              "turn_max_preempted"}, set(longest))
        self.assertFalse(load(measure=False)["measure"])
        then = load()
        while load()["turns"] < then["turns"] + 10:
            self.assertLess(time.monotonic(), deadline, "the worker does not turn")
        settled = load()["stage_cycles"]
        while load()["turns"] < then["turns"] + 100:
            self.assertLess(time.monotonic(), deadline, "the worker does not turn")
        self.assertEqual(settled, load()["stage_cycles"])
        self.assertLessEqual(then["busy_ns"], then["total_ns"])


if __name__ == "__main__":
    livenet.run_tests(dut.main)
