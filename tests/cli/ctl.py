# SPDX-License-Identifier: BSD-3-Clause
"""Running rocelanectl against a daemon that answers as it is told to."""
import os
import subprocess
import unittest

from fake_daemon import FakeDaemon

CTL = os.environ["ROCELANECTL"]

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
