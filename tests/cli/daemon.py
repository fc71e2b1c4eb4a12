# SPDX-License-Identifier: BSD-3-Clause
"""A real dataplane on two in-memory ports, without privileges."""
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

ROCELANE, CTL = os.environ["ROCELANE"], os.environ["ROCELANECTL"]
WAIT_S = 60
VERSION = b'{"jsonrpc":"2.0","id":1,"method":"version"}\n'


def run(*args, **kw):
    p = subprocess.run(args, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                       errors="replace", timeout=WAIT_S, check=False,
                       **{"stdin": subprocess.DEVNULL, **kw})
    return p.returncode, p.stdout


class Case(unittest.TestCase):
    """A folder, a configuration with two in-memory ports, and a dataplane that is started on it."""

    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.dir = holder.name
        self.socket = self.at("sock")
        os.environ["XDG_RUNTIME_DIR"] = self.dir
        os.environ["RUNTIME_DIRECTORY"] = self.dir      # root's, too: no other test sweeps there

    def at(self, name):
        return os.path.join(self.dir, name)

    def config(self, eal=(), ports=None, shared=False, **more):
        """`shared`: other processes can attach."""
        path = self.at("config.json")
        private = [] if shared else ["--no-shconf", "--no-telemetry"]
        with open(path, "w", encoding="utf-8") as f:
            json.dump({"version": 1,
                       "eal": ["--no-huge", "--no-pci", "-m", "128", "--log-level=error",
                               *private, *eal],
                       "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
                       "control": {"socket": self.socket},
                       "ports": ports or [
                           {"name": "p" + end, "device": "net_pair0" + end, "prefix": 24,
                            "mac": "02:00:00:00:00:0" + n, "ipv4": "10.77.0." + n}
                           for end, n in (("a", "1"), ("b", "2"))], **more}, f)
        return path

    def start(self, wrapper=(), **kw):
        self.log = open(self.at("log"), "w+", encoding="utf-8")
        self.addCleanup(self.log.close)
        p = subprocess.Popen([*wrapper, ROCELANE, "--config", self.config(**kw)], stdout=self.log,
                             stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        deadline = time.monotonic() + WAIT_S
        while not self.answers():
            self.assertIsNone(p.poll(), self.said())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        return p

    def said(self):
        with open(self.at("log"), encoding="utf-8") as f:
            return f.read()

    def answers(self):
        """Not before everything of its configuration is made: its socket is there earlier."""
        try:
            return bool(jsonrpc.call(self.socket, "version", WAIT_S))
        except ConnectionError:
            return False
        except FileNotFoundError:
            return False

    @staticmethod
    def end(p):
        if p.poll() is None:
            p.kill()
        p.wait()

    def stops(self, p):
        p.terminate()
        self.assertEqual(0, p.wait(WAIT_S), self.said())

    def dial(self):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.connect(self.socket)
        s.settimeout(WAIT_S)
        return s

    def open_files(self, p):
        return len(os.listdir("/proc/%d/fd" % p.pid))

    def until(self, what):
        deadline = time.monotonic() + WAIT_S
        while not what():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def ctl(self, *words, code=0):
        """Standard output of rocelanectl; standard error is kept in self.err."""
        p = subprocess.run([CTL, "-s", self.socket, *map(str, words)], capture_output=True,
                           text=True, stdin=subprocess.DEVNULL, timeout=WAIT_S, check=False)
        self.assertEqual(code, p.returncode, p.stdout + p.stderr)
        self.err = p.stderr
        return p.stdout

    def json(self, *words):
        return json.loads(self.ctl("-j", *words))

    @staticmethod
    def pair(**more):
        """Objects for QPs 17 on pa and 18 on pb, connected with each other, and a region each."""
        def qp(number, port, ip, mac):
            return dict({"qp_num": number, "qp_type": "RC", "port": port, "pd": "pd0",
                         "send_cq": "cq0", "recv_cq": "cq0", "qp_state": "RTS",
                         "dest_qp_num": 35 - number, "rq_psn": 100, "sq_psn": 100,
                         "ah_attr": {"dest_ip": ip, "dest_mac": mac},
                         "qp_access_flags": ["REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"]},
                        **more)
        return {"pds": ["pd0"], "cqs": [{"name": "cq0"}],
                "mrs": [{"name": "mr%d" % i, "pd": "pd0", "length": "2M", "addr": "0x10000",
                         "rkey": hex(0x1001 + 256 * i),
                         "access": ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE",
                                    "REMOTE_ATOMIC"]} for i in range(2)],
                "qps": [qp(17, "pa", "10.77.0.2", "02:00:00:00:00:02"),
                        qp(18, "pb", "10.77.0.1", "02:00:00:00:00:01")]}
