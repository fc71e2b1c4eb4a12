#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""UCX over rocelane-run: its own test between the two ports, and two ranks of Open MPI over it."""
import os
import re
import subprocess
import sys
import time
import unittest

from programs import TIMEOUT, environment, free_port, installed, listens, run

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

RUN = os.environ["ROCELANE_RUN"]
SOCKET = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
# Its hooks of malloc and of signals are in the way of the sanitizer's.
QUIET = {"UCX_MEM_EVENTS": "n", "UCX_ERROR_SIGNALS": "", "UCX_WARN_UNUSED_ENV_VARS": "n"}


class Ucx(unittest.TestCase):
    def play(self, transports, test, *options):
        """@return the last row of numbers that the asking end printed."""
        port = free_port()
        words = ["-p", str(port), "-t", test, "-f", "-w", "10", *options]
        more = dict(QUIET, UCX_TLS=transports + ",self")
        server = subprocess.Popen(
            [RUN, "-s", SOCKET, installed("ucx_perftest"), "-p", str(port)],
            env=environment(SOCKET, UCX_NET_DEVICES="left:1", **more), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        end = time.monotonic() + TIMEOUT
        while not listens(port) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        code, out = run(SOCKET, RUN, "-s", SOCKET, "ucx_perftest", *words, "127.0.0.1",
                        UCX_NET_DEVICES="right:1", **more)
        said = server.communicate(timeout=TIMEOUT)[0]
        self.assertEqual((0, 0), (server.returncode, code), said + out)
        self.assertNotRegex(said + out, "ERROR|Fatal")
        # inf: ucx_perftest's average since its last row, if a slow machine had one just before.
        rows = re.findall(r"(?m)^\s*(\d+(?:\s+(?:[\d.]+|inf)){7})\s*$", out)
        self.assertEqual(1, len(rows), out)
        return rows[0].split()

    def test_rc(self):
        """Connected queue pairs; datagrams carry the addresses first."""
        for test, size in (("tag_bw", 65536), ("ucp_get", 4096), ("ucp_fadd", 8)):
            with self.subTest(test):
                row = self.play("rc_verbs,ud_verbs", test, "-n", "200", "-s", str(size))
                self.assertEqual("200", row[0])

    def test_ud(self):
        """Datagrams alone: UCX looks at the kind of headers that a completion names."""
        self.assertEqual("200", self.play("ud_verbs", "tag_bw", "-n", "200", "-s", "20000")[0])

    def test_sleep(self):
        """CQ-06: it polls until there is nothing, arms, waits. What came in between wakes it."""
        for transports in "rc_verbs,ud_verbs", "ud_verbs":
            with self.subTest(transports):
                row = self.play(transports, "tag_lat", "-n", "200", "-s", "2048", "-E", "sleep")
                self.assertEqual("200", row[0])

    def test_by_address(self):
        """UCX connects by librdmacm, whose queue pair is a mere number to it: one of UD."""
        port, more = str(free_port()), dict(QUIET, UCX_TLS="rc_v,ud_v,self",
                                            UCX_SOCKADDR_TLS_PRIORITY="rdmacm")
        server = subprocess.Popen(
            [RUN, "-s", SOCKET, installed("io_demo"), "-p", port, "-q"],
            env=environment(SOCKET, UCX_NET_DEVICES="left:1", **more), stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            end = time.monotonic() + TIMEOUT
            while jsonrpc.call(SOCKET, "stats")["cm_listeners"] == 0:
                self.assertIsNone(server.poll())
                self.assertLess(time.monotonic(), end)
                time.sleep(0.01)
            code, out = run(SOCKET, RUN, "-s", SOCKET, "io_demo", "-p", port, "-q", "-c", "1", "-i",
                            "200", "-I", "10.77.0.2", "10.77.0.1", UCX_NET_DEVICES="right:1",
                            **more)
        finally:
            server.terminate()
            said = server.communicate()[0]
        self.assertEqual(0, code, out + said)
        self.assertIn("Client exit with status 'OK'", out)

    def test_device_files(self):
        """What a kernel shows of RDMA devices is there for the program, and gone with it."""
        script = ("import os, stat; d = '/sys/class/infiniband/left/'\n"
                  "print(sorted(os.listdir('/sys/class/infiniband')))\n"
                  "print(open(d + 'ports/1/gid_attrs/types/0').read().strip())\n"
                  "print(open(d + 'ports/1/gids/0').read().strip())\n"
                  "st = os.stat('/dev/infiniband/uverbs1')\n"
                  "print(stat.S_ISCHR(st.st_mode), os.major(st.st_rdev), os.minor(st.st_rdev))\n"
                  "print(os.access('/dev/infiniband/uverbs1', os.R_OK | os.W_OK))\n"
                  "print(os.path.exists('/dev/infiniband/uverbs9'))\n"
                  "print(os.path.exists('/sys/class/infiniband_mad'))\n"
                  "print(os.environ['ROCELANE_FILES'])\n")
        code, out = run(SOCKET, RUN, "-s", SOCKET, "/usr/bin/python3", "-c", script)
        self.assertEqual(0, code, out)
        rows = out.splitlines()
        self.assertEqual(["['left', 'right']", "RoCE v2",
                          "0000:0000:0000:0000:0000:ffff:0a4d:0001", "True 231 193", "True",
                          "False", "False"], rows[:7], out)
        self.assertFalse(os.path.exists(rows[7]))

    def test_open_mpi(self):
        """Two ranks, each at a port of its own: 64 messages each way, every byte looked at. Without
        Open MPI's btl ofi, which in a container locks a mutex twice before it knows of us."""
        code, out = run(
            SOCKET, RUN, "--private", "mpirun", "--allow-run-as-root", "--oversubscribe",
            "--mca", "plm", "isolated", "--mca", "pml", "ucx", "--mca", "btl",
            "^ofi,openib,vader,tcp", "--mca", "osc", "ucx",
            "-n", "1", "-x", "UCX_NET_DEVICES=rocelane0:1", "/usr/bin/python3",
            os.path.join(HERE, "mpi_pair.py"), ":",
            "-n", "1", "-x", "UCX_NET_DEVICES=rocelane1:1", "/usr/bin/python3",
            os.path.join(HERE, "mpi_pair.py"),
            UCX_TLS="rc_verbs,ud_verbs,self", **QUIET)
        self.assertEqual(0, code, out)
        # Two of them write to one pipe: not always in rows.
        self.assertEqual((2, 0), (out.count("good"), out.count("bad")), out)


if __name__ == "__main__":
    unittest.main()
