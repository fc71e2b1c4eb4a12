# SPDX-License-Identifier: BSD-3-Clause
"""A control socket that answers from a table and remembers what it was asked."""
import json
import os
import socket
import tempfile
import threading


class RpcError(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class FakeDaemon:
    """`answers` maps a method to its result, or to a function of the params that returns it.

    A result of type `Raw` is sent as it stands; `notes` are sent after the answer to async_events.
    """

    def __init__(self, answers, notes=()):
        self.answers = answers
        self.notes = notes
        self.asked = []
        self.dir = tempfile.TemporaryDirectory(prefix="rl")
        self.path = os.path.join(self.dir.name, "s")
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.listener.bind(self.path)
        self.listener.listen(8)
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(10)
        self.dir.cleanup()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _serve(self):
        while True:
            try:
                conn, _ = self.listener.accept()
            except OSError:
                return
            with conn:
                try:
                    self._client(conn)
                except OSError:
                    pass

    def _client(self, conn):
        with conn.makefile("rb") as lines:
            for line in lines:
                reply = self._reply(json.loads(line))
                if reply is None:
                    return
                conn.sendall(reply)
                if self.asked[-1][0] == "async_events" and self.notes:
                    for note in self.notes:
                        conn.sendall(json.dumps(note).encode() + b"\n")
                    return

    def _reply(self, request):
        method, params = request["method"], request.get("params")
        self.asked.append((method, params))
        reply = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            if method not in self.answers:
                raise RpcError(-32601, f"method '{method}' is not known")
            answer = self.answers[method]
            result = answer(params) if callable(answer) else answer
            if result is None:
                return None
            if isinstance(result, bytes):
                return result
            reply["result"] = result
        except RpcError as e:
            reply["error"] = {"code": e.code, "message": str(e)}
        return json.dumps(reply).encode() + b"\n"
