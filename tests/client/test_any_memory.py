# SPDX-License-Identifier: BSD-3-Clause
"""control.client_memory "any": memory that cannot be sealed is let in, and the dataplane lives.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import json
import mmap
import os
import socket
import tempfile
import unittest

from attackers import lay
from attacks import (Case, F_SEAL_SEAL, F_SEAL_SHRINK, MIB, SOCKET, jsonrpc, memfd, soon,
                     warm_up)

setUpModule = warm_up


class AnyMemory(Case):

    def taken(self, fd, length):
        """The region is made. Pages are taken out of it, and the dataplane goes on."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        self.region(c, pd, fd, length=length)
        with mmap.mmap(fd, length) as m:
            m.madvise(mmap.MADV_REMOVE)
            m[0] = 7
        with jsonrpc.Connection(SOCKET) as op:
            self.assertTrue(op.call("version"))
        c.call("client_ports")
        c.close()
        os.close(fd)
        self.assert_back()

    def test_what_takes_no_more_seals(self):
        self.taken(memfd(MIB, seals=F_SEAL_SHRINK | F_SEAL_SEAL), MIB)

    def test_what_takes_no_more_seals_and_has_holes(self):
        self.taken(memfd(MIB, filled=False, seals=F_SEAL_SHRINK | F_SEAL_SEAL), MIB)

    def test_what_may_shrink(self):
        """Also from the outset: /dev/shm is not made for seals."""
        for seals in (0, F_SEAL_SEAL):
            self.taken(memfd(MIB, seals=seals), MIB)
        with tempfile.TemporaryFile(dir="/dev/shm") as f:
            os.ftruncate(f.fileno(), MIB)
            self.taken(os.dup(f.fileno()), MIB)

    def test_files_one_behind_the_other(self):
        """More than come with one message. What was begun and not ended goes with its client."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        with jsonrpc.Connection(SOCKET) as op:
            base = op.call("client_list")[0]["mapped"]
            for at in range(0, 24, 8):
                lay(c, 8, 24, at)
            region = {"pd": pd, "length": 24 * 4096, "addr": 0x10000, "access": 15, "laid": True}
            handle = c.call("client_mr_register", **region)["handle"]
            self.assertEqual(base + 24 * 4096, op.call("client_list")[0]["mapped"])
            with self.assertRaisesRegex(jsonrpc.RpcError, "client_memory_lay has not laid all"):
                c.call("client_mr_register", **region)
            lay(c, 8, 24)      # and never more
            c.call("client_mr_deregister", handle=handle)
            self.assertTrue(soon(lambda: op.call("client_list")[0]["mapped"] == base + 24 * 4096))
            c.call("client_memory_lay", length=1, offset=0)     # it shall end
            self.assertEqual(base, op.call("client_list")[0]["mapped"])
            lay(c, 8, 24)
        c.close()
        self.assert_back()

    def test_nothing_is_left_where_parameters_are_refused(self):
        """What was laid goes; a descriptor that comes behind is the next request's."""
        c, fd = self.client(), memfd(4096)
        pd = c.call("client_pd_create")["handle"]
        region = {"pd": pd, "length": 4096, "addr": 0x10000, "access": 15}
        with jsonrpc.Connection(SOCKET) as op:
            base = op.call("client_list")[0]["mapped"]
            for method, params in (
                    ("client_mr_register", dict(region, laid=True, access="all")),
                    ("client_mr_register", dict(region, laid=True, pd=99)),
                    ("client_mr_register", dict(region, laid=True, length=1 << 30)),
                    ("client_memory_lay", {"length": 8 * 4096, "offset": "here"}),
                    ("client_mr_rereg", dict(region, handle=99)),
                    ("client_mr_rereg", dict(region, handle="one"))):
                lay(c, 8, 8)
                asks = [(method, params), ("client_mr_register", region)]
                if method == "client_mr_rereg":     # which is no matter of what is laid
                    asks.insert(1, ("client_memory_lay", {"length": 1, "offset": 0}))
                lines = [jsonrpc.request(n, *ask) for n, ask in enumerate(asks)]
                fds = [fd] * (1 + (method == "client_memory_lay"))
                socket.send_fds(c.sock, ["".join(x + "\n" for x in lines).encode()], fds)
                answers = [json.loads(c.line()) for _ in lines]
                self.assertIn("error", answers[0])
                self.assertIn("result", answers[-1], (method, params, answers))
                self.assertEqual(base + 4096, op.call("client_list")[0]["mapped"])
                c.call("client_memory_forget", handle=answers[-1]["result"]["memory"])
                c.call("client_mr_deregister", handle=answers[-1]["result"]["handle"])
                self.assertTrue(soon(lambda: op.call("client_list")[0]["mapped"] == base))
                os.close(fd)
                fd = memfd(4096)
        os.close(fd)
        c.close()
        self.assert_back()

    def test_files_that_are_refused(self):
        c = self.client()
        for what, files, pages, at, piece in (
                ("has not laid all of it", 1, 24, 8, (0, 4096)),
                ("not of whole pages", 1, 24, 0, (0, 100)),
                ("not of whole pages", 8, 2, 0, (0, 4096)),
                ("end before", 1, 24, 0, (4096, 4096)),
                ("are over control.client_limits.memory", 1, 1 << 20, 0, (0, 4096))):
            with self.assertRaisesRegex(jsonrpc.RpcError, what):
                lay(c, files, pages, at, piece)
        c.call("client_ports")
        c.close()
        self.assert_back()


if __name__ == "__main__":
    unittest.main()
