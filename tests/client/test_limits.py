# SPDX-License-Identifier: BSD-3-Clause
"""One user takes all that he can get: other users and the operator still get theirs.

Run by run.py; the socket's path is the first argument, the clients' own socket stands next to it.
The greedy user comes by the clients' socket, where nobody is an operator. Other users need root: a
connection's user is who made it (seteuid()); without root these parts say that they are left out.
"""
import contextlib
import json
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

SOCKET = sys.argv.pop(1)
CLIENTS = os.path.join(os.path.dirname(SOCKET), "clients")
ROOT = os.geteuid() == 0
GREEDY, OTHER = (65533, 65534) if ROOT else (os.geteuid(), None)
EUSERS, EDQUOT, ENOSPC, ENOMEM = 87, 122, 28, 12
SOON_S = 1.0


@contextlib.contextmanager
def as_user(uid):
    if ROOT:
        os.seteuid(uid)
    try:
        yield
    finally:
        if ROOT:
            os.seteuid(0)


class Case(unittest.TestCase):

    def connect(self, uid=None):
        """By the clients' socket as this user, or as the operator."""
        if uid is None:
            c = jsonrpc.Connection(SOCKET)
        else:
            with as_user(uid):
                c = jsonrpc.Connection(CLIENTS)
        self.addCleanup(c.close)
        return c

    def client(self, uid=None):
        c = self.connect(uid)
        c.call("client_open", abi=1, name="test")
        return c

    def others(self):
        """Who must not be hurt: the operator, and another user if there can be one."""
        if OTHER is None:
            print("not root: no other user is tried")
        return (None, OTHER) if OTHER is not None else (None,)

    def refusal(self, call, *a, **k):
        with self.assertRaises(jsonrpc.RpcError) as e:
            call(*a, **k)
        return e.exception

    def soon(self, what, message):
        end = time.monotonic() + SOON_S
        while not what():
            self.assertLess(time.monotonic(), end, message)
            time.sleep(0.005)


class Connections(Case):

    def turned_away(self, c):
        """What a connection is told that is refused; None: it is not."""
        try:
            reply = c.ask(jsonrpc.request(1, "client_open", {"abi": 1, "name": "idle"}).encode())
        except BrokenPipeError:
            reply = json.loads(c.line())
        self.assertIsNotNone(reply, "refused in silence")
        if reply["id"] is not None:
            return None
        self.assertIsNone(c.line())
        return reply["error"]

    def fill(self, uid, what):
        """Connections of a user until one is refused, and why."""
        held = []
        while len(held) < 200:
            c = self.connect(uid)
            error = what(c)
            if error is not None:
                return held, error
            held.append(c)
        return self.fail("there is no end to it")

    def idle(self, c):
        """One that asks for nothing; whether it was refused is seen after a moment."""
        c.sock.settimeout(0.05)
        try:
            error = json.loads(c.line())["error"]
        except TimeoutError:
            error = None
        c.sock.settimeout(jsonrpc.WAIT_S)
        return error

    def test_idle_connections(self):
        """A user's share is full: he is told so at once, and all others come in."""
        held, error = self.fill(GREEDY, self.idle)
        self.assertEqual(jsonrpc.ERRNO_BASE - EUSERS, error["code"])
        self.assertIn("user %d has %d connections, and control.client_limits.user.connections is"
                      % (GREEDY, len(held)), error["message"])
        for who in self.others():
            for _ in range(3):
                self.client(who).call("client_pd_create")
        self.assertTrue(self.connect().call("client_list"))
        self.assertIsNotNone(self.turned_away(self.connect(GREEDY)))
        # One goes, one comes; all go, and all is as it was.
        held.pop().close()
        self.soon(lambda: self.turned_away(self.connect(GREEDY)) is None, "the place stays taken")


if __name__ == "__main__":
    unittest.main()
