# SPDX-License-Identifier: BSD-3-Clause
"""Memory of clients that want to hurt others: it is their own, all of it is there, and it stays.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import ctypes
import fcntl
import mmap
import os
import unittest

from attacks import (Case, EINVAL, ENODATA, EPERM, F_GET_SEALS, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL,
                     F_SEAL_SHRINK, MIB, SOCKET, jsonrpc, memfd, shared_kib, soon, warm_up)

setUpModule = warm_up


class Memory(Case):
    """A region's pages are there, are the client's, and stay."""

    def test_no_holes_can_be_punched(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(MIB)
        with mmap.mmap(fd, MIB) as m:
            self.region(c, pd, fd, length=MIB)
            with self.assertRaises(OSError) as e:
                m.madvise(mmap.MADV_REMOVE)
            self.assertEqual(EPERM, e.exception.errno)
            m[0] = 7    # it still writes there
        seals = fcntl.fcntl(fd, F_GET_SEALS)
        self.assertTrue(seals & F_SEAL_FUTURE_WRITE)
        os.close(fd)

    def test_holes_are_refused(self):
        """Whoever touches a page first pays for it."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        shared = shared_kib()
        for _ in range(4):
            fd = memfd(32 * MIB, filled=False)
            text = self.refused(ENODATA, c, "client_mr_register",
                                {"pd": pd, "length": 4096, "addr": 0, "access": 1}, [fd])
            self.assertIn("MADV_POPULATE_WRITE", text)
            self.assertEqual(0, os.fstat(fd).st_blocks)
            # It was not changed: filled, it is good.
            with mmap.mmap(fd, 32 * MIB) as m:
                for at in range(0, 32 * MIB, mmap.PAGESIZE):
                    m[at] = 1
            os.close(fd)
        self.assertLess(shared_kib(), shared + 16 * 1024)

    def test_blocks_behind_the_end_do_not_count(self):
        """As many blocks as the size asks for, but not there."""
        libc = ctypes.CDLL(None, use_errno=True)
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(MIB, filled=False, seals=F_SEAL_SHRINK)
        keep_size = 1
        self.assertEqual(0, libc.fallocate(fd, keep_size, ctypes.c_long(MIB), ctypes.c_long(MIB)))
        self.assertEqual(MIB, os.fstat(fd).st_blocks * 512)
        self.refused(ENODATA, c, "client_mr_register",
                     {"pd": pd, "length": 4096, "addr": 0, "access": 1}, [fd])
        os.close(fd)

    def test_what_cannot_be_sealed(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
        fd = memfd(4096, seals=F_SEAL_SHRINK | F_SEAL_SEAL)
        self.assertIn("F_SEAL_SEAL", self.refused(EPERM, c, "client_mr_register", params, [fd]))
        os.close(fd)
        fd = memfd(4096, seals=F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
        self.assertIn("new one", self.refused(EPERM, c, "client_mr_register", params, [fd]))
        os.close(fd)

    def test_one_memfd_many_regions(self):
        """Registered again, deregistered, registered again: it is mapped once."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(4 * MIB)
        one = self.region(c, pd, fd)
        two = self.region(c, pd, fd, offset=MIB, length=3 * MIB)
        self.assertEqual(one["memory"], two["memory"])
        self.assertNotEqual(one["key"], two["key"])
        self.refused(EINVAL, c, "client_mr_register",
                     {"pd": pd, "length": 1, "offset": 4 * MIB, "addr": 0, "access": 1}, [fd])
        for r in (one, two):
            c.call("client_mr_deregister", handle=r["handle"])
        again = self.region(c, pd, fd, offset=8192)
        self.assertEqual(one["memory"], again["memory"])
        with jsonrpc.Connection(SOCKET) as op:
            row = op.call("client_list")[0]
        self.assertEqual(4 * MIB, row["mapped"])
        os.close(fd)

    def test_memory_comes_back(self):
        """With its last region if it was the only one, when it is forgotten, or for room."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        op = jsonrpc.Connection(SOCKET)
        self.addCleanup(op.close)

        def memory():
            return op.call("client_list")[0]["mapped"]
        base = memory()
        fd = memfd(8 * MIB)
        r = self.region(c, pd, fd, once=True)
        self.assertEqual(base + 8 * MIB, memory())
        c.call("client_mr_deregister", handle=r["handle"])
        os.close(fd)
        self.assertTrue(soon(lambda: memory() == base))
        fd = memfd(8 * MIB)
        r = self.region(c, pd, fd)
        c.call("client_mr_deregister", handle=r["handle"])
        c.call("client_memory_forget", handle=r["memory"])
        os.close(fd)
        self.assertTrue(soon(lambda: memory() == base))
        for _ in range(12):     # the limit is 64M
            fd = memfd(16 * MIB)
            r = self.region(c, pd, fd)
            os.close(fd)
            c.call("client_mr_deregister", handle=r["handle"])
        self.assertLessEqual(memory(), 64 * MIB)
        c.close()
        op.close()
        self.assert_back()

    def test_reconnecting_leaves_nothing(self):
        """The client keeps its memfds and comes again: the dataplane does not."""
        shared, kept = shared_kib(), []
        for _ in range(10):
            c = self.client()
            pd = c.call("client_pd_create")["handle"]
            fd = memfd(32 * MIB)
            self.region(c, pd, fd, length=32 * MIB)
            kept.append(fd)
            c.close()
        self.assert_back()
        self.assertTrue(soon(lambda: shared_kib() < shared + 16 * 1024),
                        (shared, shared_kib()))
        for fd in kept:
            os.close(fd)


if __name__ == "__main__":
    unittest.main()
