#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Debian's libfabric over rocelane-run: its provider finds the ports, and its own test runs."""
import errno
import os
import re
import subprocess
import sys
import time
import unittest

from programs import TIMEOUT, free_port, installed, listens, run, start

RUN = os.environ["ROCELANE_RUN"]
SOCKET = sys.argv.pop(1)
SMALL = ["64", "256", "1k", "4k"]
ALL = [*SMALL, "64k", "1m"]
# Its completion queues have room for all of that many peers: 256 unless told.
FEW = {"FI_UNIVERSE_SIZE": "16"}
# The names in getifaddrs(), before and after librdmacm is loaded; freed each time.
NAMES = """
import ctypes

class Ifa(ctypes.Structure):
    pass

Ifa._fields_ = [("next", ctypes.POINTER(Ifa)), ("name", ctypes.c_char_p)]
libc = ctypes.CDLL(None)

def names():
    head = ctypes.POINTER(Ifa)()
    assert libc.getifaddrs(ctypes.byref(head)) == 0
    at, found = head, []
    while at:
        found.append(at.contents.name.decode())
        at = at.contents.next
    libc.freeifaddrs(head)
    return found

before = names()
rdmacm = ctypes.CDLL("librdmacm.so.1")
after = names()
assert after[:len(before)] == before, after
print(sorted(set(before) & {"left", "right"}), sorted(after[len(before):]))
assert names() == after
"""


def last_was_lost(ends):
    """
    Did one end end well, and the other find its last message flushed? libfabric's ofi_rxm may do
    so with any device: it polls the completion queue, then the connection's events. If it is
    held up in between, its last completion and its peer's end come, it sees the latter first,
    destroys the queue pair with what was not polled, and says itself that it was flushed.
    """
    (_, good), (_, bad) = sorted(ends, key=lambda end: end[0])
    flushed = "cq_readerr: Work Request Flushed Error"
    return sorted(code for code, _ in ends) == [0, errno.ECANCELED] and \
        bad.count("[error]") == 1 and flushed in bad and "[error]" not in good


class Libfabric(unittest.TestCase):
    def both(self, options, left, right, more):
        """The program at both ends. [(exit code, what it printed) of each]"""
        port = str(free_port())
        words = [RUN, "-s", SOCKET, installed("fi_pingpong"), "-c", "-I", "20", *options]
        server = start(SOCKET, *words, "-B", port, *right, **more)
        end = time.monotonic() + TIMEOUT
        while not listens(int(port)) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        code, out = run(SOCKET, *words, "-P", port, *left, "127.0.0.1", **more)
        try:
            said = server.communicate(timeout=10 if code else TIMEOUT)[0]
        except subprocess.TimeoutExpired:
            server.terminate()      # it waits for its peer
            said = server.communicate(timeout=TIMEOUT)[0]
        return [(server.returncode, said), (code, out)]

    def ping(self, sizes, *options, left=(), right=(), tries=1, **more):
        """
        Both ends print a row for each size; data are compared (-c). With more than one of `tries`,
        another one follows where the `last_was_lost()`.
        """
        for at_most in range(tries, 0, -1):
            ends = self.both(options, left, right, more)
            text = "".join(said for _, said in ends)
            for _, said in ends:
                self.assertEqual(sizes, re.findall(r"(?m)^(\w+) +20 +=20 ", said), text)
            if at_most == 1 or not last_was_lost(ends):
                break
        self.assertEqual([0, 0], [code for code, _ in ends], text)

    def test_connections(self):
        """-p verbs: its server listens at 127.0.0.1, and the client connects there."""
        self.ping(ALL, "-p", "verbs", "-e", "msg")

    def test_datagrams(self):
        self.ping(SMALL, "-p", "verbs", "-e", "dgram", left=["-d", "left-dgram"],
                  right=["-d", "right-dgram"])

    def test_rxm(self):
        """Endpoints for any peer over connections, between the two ports."""
        self.ping(ALL, "-p", "verbs;ofi_rxm", "-e", "rdm", left=["-d", "left"],
                  right=["-d", "right"], tries=5, **FEW)

    def test_ports(self):
        """Connections are offered at each address of each port."""
        code, out = run(SOCKET, RUN, "-s", SOCKET, installed("fi_info"), "-p", "verbs", "-t",
                        "FI_EP_MSG", "-v")
        self.assertEqual(0, code, out)
        for address in ("fi_sockaddr_in://10.77.0.1:0", "fi_sockaddr_in6://[fd77::1]:0",
                        "fi_sockaddr_in://10.77.0.2:0", "fi_sockaddr_in6://[fd77::2]:0"):
            self.assertIn(f"src_addr: {address}", out)

    def test_interfaces(self):
        """No socket has these addresses: a program without librdmacm is told of none."""
        code, out = run(SOCKET, RUN, "-s", SOCKET, "/usr/bin/python3", "-c", NAMES)
        self.assertEqual((0, "[] ['left', 'left', 'right', 'right']\n"), (code, out))


if __name__ == "__main__":
    unittest.main()
