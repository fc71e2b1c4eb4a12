# SPDX-License-Identifier: BSD-3-Clause
"""control.client_memory "any": memory that cannot be sealed is let in, and the dataplane lives.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import mmap
import os
import tempfile
import unittest

from attacks import (Case, F_SEAL_SEAL, F_SEAL_SHRINK, MIB, SOCKET, jsonrpc, memfd, warm_up)

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


if __name__ == "__main__":
    unittest.main()
