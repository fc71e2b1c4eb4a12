# SPDX-License-Identifier: BSD-3-Clause
"""Memory and start of many idle QPs of one template. By hand: test_memory.py --qps 1000000"""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

QPS = 250000
QP_BYTES = 1024          # all of it: QP, place in the tables, what the control lcore knows
WAIT_S = 120


def config(directory, qps):
    return {
        "version": 1,
        "eal": ["--no-huge", "--no-shconf", "--no-pci", "--no-telemetry", "-m", "128",
                "--log-level=error", "--vdev=net_null0,no-rx=1"],
        "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
        "control": {"socket": os.path.join(directory, "socket")},
        "ports": [{"name": "p0", "device": "net_null0", "mac": "02:00:00:00:00:11",
                   "ipv4": "192.0.2.1", "mtu": 1500}],
        "pds": ["pd0"], "cqs": [{"name": "cq0"}],
        "qps": [{"qp_num": 1 << 20, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
                 "recv_cq": "cq0", "qp_state": "RTS", "dest_qp_num": 1 << 20, "rq_psn": 0,
                 "sq_psn": 0, "count": qps,
                 "ah_attr": {"dest_ip": "192.0.2.2", "dest_mac": "02:00:00:00:00:22"}}]}


def measure(qps):
    """Start and stop a dataplane: (seconds to start, resident bytes, seconds to stop)."""
    with tempfile.TemporaryDirectory(prefix="rocelane-memory") as d:
        path = os.path.join(d, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config(d, qps), f)
        began = time.monotonic()
        with subprocess.Popen([os.environ["ROCELANE"], "--config", path], stderr=subprocess.PIPE,
                              stdout=subprocess.DEVNULL, text=True) as p:
            said = ""
            for line in p.stderr:
                said += line
                if "running:" in line:
                    break
            started = time.monotonic() - began
            if p.poll() is not None or "running:" not in said:
                p.kill()
                raise AssertionError("the dataplane did not start:\n" + said)
            with open("/proc/%d/statm" % p.pid, encoding="ascii") as f:
                resident = int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")
            began = time.monotonic()
            p.send_signal(signal.SIGTERM)
            rest = p.stderr.read()
            rc = p.wait(WAIT_S)
            if rc != 0:
                raise AssertionError("exit code %d\n%s%s" % (rc, said, rest))
            return started, resident, time.monotonic() - began


def report(qps):
    alone, many = measure(1), measure(qps)
    each = (many[1] - alone[1]) / qps
    print("%d idle QPs in RTS: %.0f bytes each of %.1f MB resident, started in %.1f s (one QP: "
          "%.1f s), stopped in %.1f s" % (qps, each, many[1] / 1e6, many[0], alone[0], many[2]))
    return each


class Memory(unittest.TestCase):

    def test_idle_qps(self):
        """All that the process has more of with more QPs; slabs and hash tables are in it."""
        self.assertLess(report(QPS), QP_BYTES)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--qps":
        report(int(sys.argv[2]))
    else:
        unittest.main()
