# SPDX-License-Identifier: BSD-3-Clause
"""Clients that want to hurt others, over the socket alone: what they do costs them alone.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import contextlib
import json
import os
import resource
import socket
import threading
import time
import unittest

from attackers import (DEEP, LONG_LINE, MANY_VALUES, OPEN, batches, flood, ghost, heir, lingering,
                       listener, make_qp)
from attacks import (Case, EINVAL, ENOENT, EPERM, MIB, SOCKET, TURN_S, connect, control_turns,
                     PID, jsonrpc, memfd, soon, stopped, warm_up)

setUpModule = warm_up


class Descriptors(Case):
    """A descriptor whose close() takes long is closed at its sender's cost."""

    def send_lingering(self, s, text, n=1):
        peers = []
        for _ in range(n):
            with listener() as server:
                tcp = lingering(server.getsockname())
                peer, _ = server.accept()
            with stopped():     # the last close() has to be the dataplane's
                try:
                    socket.send_fds(s, [text], [tcp.fileno()])
                except OSError:
                    peer.close()    # or our own close() would wait
                    raise
                finally:
                    tcp.close()
            peers.append(peer)
        return peers

    def attack(self, text, first=None, n=1):
        with self.watched():
            s = connect()
            if first:
                s.sendall(first)
                s.recv(1 << 16)
            peers = self.send_lingering(s, text, n)
            # Another connection of the same kind works meanwhile.
            other = self.client()
            other.call("client_pd_create")
            other.close()
            time.sleep(0.3)
            s.close()
        self.assert_back()
        for p in peers:
            p.close()

    def test_linger_without_client_open(self):
        self.attack(b"{")

    def test_linger_with_a_request(self):
        self.attack(b'{"jsonrpc":"2.0","id":2,"method":"client_ports"}\n',
                    OPEN)

    def test_linger_many_in_the_queue(self):
        """The socket itself takes long to close: descriptors wait in it."""
        self.attack(b"x", n=12)

    def test_linger_of_one_that_is_turned_away(self):
        """No place for it: what it has sent is thrown away somewhere else, too."""
        with self.watched():
            kept, peers = [], []
            for _ in range(140):
                s = connect()
                kept.append(s)
                with contextlib.suppress(BrokenPipeError, ConnectionResetError):
                    if len(kept) > 100 and len(kept) % 8 == 0:
                        peers += self.send_lingering(s, b"x")
            for s in kept:
                s.close()
        self.assert_back()
        for p in peers:
            p.close()

    def test_a_refused_descriptor_keeps_its_place(self):
        """What was no memfd is refused by the request that it came with, and the next is fine."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        r, w = os.pipe()
        good = memfd(4096)
        params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
        lines = b""
        for i, fd in ((10, r), (11, good)):
            lines = jsonrpc.request(i, "client_mr_register", params).encode() + b"\n"
            socket.send_fds(c.sock, [lines], [fd])
        answers = [json.loads(c.line()), json.loads(c.line())]
        self.assertEqual([10, 11], [a["id"] for a in answers])
        self.assertEqual(-32000 - EINVAL, answers[0]["error"]["code"])
        self.assertIn("key", answers[1]["result"])
        for fd in (r, w, good):
            os.close(fd)
        c.close()
        self.assert_back()


class Ghosts(Case):
    """A connection ends with the process that made it."""

    def child(self, what):
        """Run `what` in a process of its own. It exits at once, without closing anything."""
        pid = os.fork()
        if pid == 0:
            try:
                what()
            finally:        # it must not go on with the tests
                os._exit(0)
        return pid

    def test_own_socket_in_half_a_line(self):
        """Its other end is in the queue of the one that is to read it: nobody closes it."""
        pids = [self.child(ghost) for _ in range(8)]
        for pid in pids:
            os.waitpid(pid, 0)
        self.assert_back()

    def test_a_child_keeps_the_socket(self):
        """The process that connected is gone; one that it left behind has its socket."""
        hold, told = os.pipe()

        def parent():
            c = heir()
            os.close(told)
            os.read(hold, 1)
            c.close()
        pid = self.child(parent)
        os.waitpid(pid, 0)
        self.assert_back()
        os.close(told)
        os.close(hold)

    def test_killed_with_much_under_way(self):
        pid = self.child(flood)
        os.waitpid(pid, 0)
        self.assert_back()

    def test_half_a_line_ends(self):
        s = connect()
        s.sendall(b'{"jsonrpc":"2.0"')
        got = b""
        while True:
            more = s.recv(65536)
            if not more:
                break
            got += more
        self.assertIn("half a line", json.loads(got)["error"]["message"])
        s.close()
        self.assert_back()

    def test_the_operator_ends_a_client(self):
        c, other = self.client(), self.client()
        with jsonrpc.Connection(SOCKET) as op:
            op.call("client_end", id=c.me["client"])
            self.assertIsNone(c.line())
            self.assertTrue(soon(lambda: [r["client"] for r in op.call("client_list")] ==
                                 [other.me["client"]]))
            self.refused(ENOENT, op, "client_end", {"id": c.me["client"]})
        self.refused(EPERM, other, "client_end", {"id": other.me["client"]})
        other.call("client_pd_create")
        c.close()
        other.close()
        self.assert_back()


class Work(Case):
    """What one asks for does not keep others waiting."""

    def test_pipelined_registrations(self):
        """Of holes, and of memory that is there: mapped and given back by the client's thread."""
        c = self.client(SOCKET)
        pd = c.call("client_pd_create")["handle"]
        fds = [memfd(48 * MIB, filled=False), memfd(48 * MIB)]
        with self.watched():
            for i in range(40):
                params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
                line = jsonrpc.request(i, "client_mr_register", params).encode() + b"\n"
                socket.send_fds(c.sock, [line], [fds[i % 2]])
            for i in range(40):
                answer = json.loads(c.line())
                self.assertEqual(i, answer["id"])
                self.assertEqual(i % 2 == 1, "result" in answer, answer)
            c.close()
        self.assert_back()
        for fd in fds:
            os.close(fd)

    def test_much_json_on_many_connections(self):
        """A line of a client is short, and has few values; an operator's may be long."""
        with self.watched():
            conns = [connect() for _ in range(30)]
            for s in conns:
                with contextlib.suppress(OSError):
                    s.sendall(LONG_LINE)
            for s in conns:
                got = b""
                with contextlib.suppress(ConnectionResetError):
                    got = s.recv(65536)
                self.assertIn(b"line longer than 65536", got)
                s.close()
        self.assert_back()

    def test_many_values_in_a_short_line(self):
        s = connect()
        s.sendall(MANY_VALUES)
        self.assertIn(b"values", s.recv(65536))
        s.sendall(OPEN)
        self.assertIn(b"result", s.recv(65536))
        s.close()

    def test_deep_json(self):
        """As deep as the parser goes, in a small stack."""
        with connect(SOCKET) as s:
            s.sendall(DEEP + b"[" * 500000 + b"\n")
            s.recv(65536)
        with self.watched():
            pass

    def test_batches_and_pipelines(self):
        """64 requests a line, many lines, from several connections: others have their turn."""
        conns = [self.client() for _ in range(6)]
        with self.watched():
            threads = [threading.Thread(target=batches, args=[c, 1.5]) for c in conns]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        for c in conns:
            c.close()
        self.assert_back()

    def test_many_ids_end_with_events(self):
        """Each with an event that nobody fetched, of several clients, at once."""
        conns = [self.client() for _ in range(8)]
        for c in conns:
            ch = c.call("client_cm_channel_create")["handle"]
            for _ in range(1000):
                c.call("client_cm_resolve", channel=ch, dest_ip="10.77.0.9", timeout_ms=1)
        self.ends_cheaply(conns)

    def ends_cheaply(self, conns):
        """All of them at the same time."""
        with jsonrpc.Connection(SOCKET, 60) as op:
            with control_turns(op) as longest, self.watched():
                for c in conns:
                    c.close()
                self.assertTrue(soon(lambda: self.clients() == 0))
        self.assertLess(longest[0], TURN_S)
        self.assert_back()

    def test_members_of_many_groups_end(self):
        """Of each that is left the device is told, and of all at once."""
        conns = [self.client() for _ in range(4)]
        for i, c in enumerate(conns):
            number = make_qp(c, qp_type="UD")["qp_num"]
            c.call("client_qp_modify", qp_num=number, qp_state="INIT", pkey=0xffff, port="left",
                   qkey=1)
            for group in range(256):
                c.call("client_mcast_attach", qp_num=number, group="239.1.%d.%d" % (i, group))
        self.ends_cheaply(conns)

    def test_fill_of_a_large_region(self):
        """An operator's, too: 200 MiB of pattern take a second."""
        with jsonrpc.Connection(SOCKET, 60) as op, self.watched():
            op.call("pd_create", name="large")
            op.call("mr_register", name="large", pd="large", length=200 * MIB, fill="pattern:7")
            one = op.call("mr_read", name="large", offset=100 * MIB, length=16)["data"]
            op.call("mr_fill", name="large", offset=100 * MIB, length=16, seed=7)
            self.assertEqual(one, op.call("mr_read", name="large", offset=100 * MIB,
                                          length=16)["data"])
            op.call("mr_deregister", name="large")
            op.call("pd_dealloc", name="large")

    def peak_mib(self, *lines):
        """How much more memory the dataplane has at any time until these lines are answered."""
        with open("/proc/%d/clear_refs" % PID, "w", encoding="ascii") as f:
            f.write("5")    # VmHWM begins anew
        before = self.status_mib("VmRSS")
        for line in lines:
            with connect() as s:
                s.settimeout(60)
                s.sendall(json.dumps(line).encode() + b"\n")
                self.assertIn(b"error", s.recv(65536))
        return self.status_mib("VmHWM") - before

    @staticmethod
    def status_mib(key):
        with open("/proc/%d/status" % PID, encoding="ascii") as f:
            return next(int(text.split()[1]) // 1024 for text in f if text.startswith(key + ":"))

    def test_what_is_refused_is_not_made(self):
        """An operator's region asked for by a client, and more clients than a line may open."""
        region = {"jsonrpc": "2.0", "id": 1, "method": "mr_register", "params": {
            "name": "x", "pd": "p", "length": 512 * MIB, "access": ["LOCAL_WRITE"],
            "fill": "zero"}}
        open_ = {"jsonrpc": "2.0", "id": 1, "method": "client_open", "params": {"abi": 1}}
        self.assertLess(self.peak_mib([open_, region]), 64)
        self.assertLess(self.peak_mib(*[[open_] * 300] * 4), 64)

    def test_no_descriptor_to_watch_a_process(self):
        """Whoever cannot be watched is sent away with the reason, at each descriptor that lacks."""
        soft, hard = resource.prlimit(PID, resource.RLIMIT_NOFILE)
        open_ = {int(fd) for fd in os.listdir("/proc/%d/fd" % PID)}
        free = [n for n in range(len(open_) + 8) if n not in open_]
        said = []
        for few in range(1, 4):     # the socket's own, what wakes its thread, the process's
            resource.prlimit(PID, resource.RLIMIT_NOFILE, (free[few], hard))
            try:
                with connect() as s:
                    with contextlib.suppress(BrokenPipeError):     # it is closed already
                        s.sendall(b'{"jsonrpc": "2.0", "id": "me", "method": "none"}\n')
                    said.append(json.loads(s.recv(4096) or "{}"))
            finally:
                resource.prlimit(PID, resource.RLIMIT_NOFILE, (soft, hard))
            self.assert_back()
        self.assertEqual("me", said[-1].get("id"), said)
        for what in said[:-1]:
            self.assertIsNone(what.get("id", 0), said)
            self.assertIn("descriptor", what["error"]["message"])


if __name__ == "__main__":
    unittest.main()
