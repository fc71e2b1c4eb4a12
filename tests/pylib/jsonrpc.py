# SPDX-License-Identifier: BSD-3-Clause
"""JSON-RPC 2.0 as the control socket speaks it: one object a line, in both directions.

Connection is a connection; call() makes one for a single request. request() and result() are for
those whose lines travel in another way.
"""
import json
import os
import socket
import struct

WAIT_S = 20
FDS_MAX = 16
RECV_BYTES = 1 << 16     # more of it malloc() would map anew for each reply
ERRNO_BASE = -32000     # error -32000 - n is errno n


class RpcError(Exception):
    """An error reply: .code, .message, and .errno where the code stands for one."""

    def __init__(self, error):
        super().__init__("%s: %s" % (error.get("code"), error.get("message")))
        self.code = error["code"]
        self.message = error["message"]
        self.errno = ERRNO_BASE - self.code


def request(ident, method, params=None):
    """A request as text, without the newline at its end."""
    return json.dumps({"jsonrpc": "2.0", "id": ident, "method": method, "params": params or {}})


def result(reply, ident):
    """What a decoded reply to request `ident` has as its result. Raises RpcError.

    An error without an id is about the connection: it was turned away.
    """
    if reply is not None and reply.get("id", 0) is None and "error" in reply:
        raise RpcError(reply["error"])
    if reply is None or reply.get("id") != ident:
        raise AssertionError("no reply to request %r, but %r" % (ident, reply))
    if "error" in reply:
        raise RpcError(reply["error"])
    return reply["result"]


class Connection:
    """One connection to the control socket. Descriptors that come with replies are in .fds."""

    def __init__(self, path, timeout=WAIT_S):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        # Blocking, for connect() alone: where many wait to be accepted, one with a time limit of
        # Python's own fails at once.
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", WAIT_S, 0))
        try:
            self.sock.connect(path)
        except OSError:
            self.sock.close()
            raise
        self.sock.settimeout(timeout)
        self.fds = []
        self._ident, self._buf = 0, b""

    def line(self):
        """One line, or None at the end of the stream."""
        while b"\n" not in self._buf:
            more, fds, _, _ = socket.recv_fds(self.sock, RECV_BYTES, FDS_MAX)
            self.fds += fds
            if not more:
                return None
            self._buf += more
        line, self._buf = self._buf.split(b"\n", 1)
        return line

    def ask(self, line):
        """The decoded reply to a line as it stands, or None at the end of the stream."""
        self.sock.sendall(line + b"\n")
        answer = self.line()
        return None if answer is None else json.loads(answer)

    def send(self, method, params=None, fds=()):
        """A request, with descriptors; its reply is not waited for."""
        self._ident += 1
        line = request(self._ident, method, params).encode() + b"\n"
        if fds:
            socket.send_fds(self.sock, [line], list(fds))
        else:
            self.sock.sendall(line)

    def call_with(self, method, params=None, fds=()):
        """The result of a request. Raises RpcError, or ConnectionError at the end of the stream.

        A client's is sent again once it has got the memory that its result lies in.
        """
        while True:
            self.send(method, params, fds)
            answer = self.line()
            if answer is None:
                raise ConnectionError("closed")
            got = result(json.loads(answer), self._ident)
            if not isinstance(got, dict) or got.get("again") is not True:
                return got

    def call(self, method, /, **params):
        return self.call_with(method, params)

    def close(self):
        for fd in self.fds:
            os.close(fd)
        self.fds = []
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def call(path, method, wait_s=WAIT_S, /, **params):
    """One request over a connection of its own."""
    with Connection(path, wait_s) as c:
        return c.call_with(method, params)
