# SPDX-License-Identifier: BSD-3-Clause
"""Descriptors whose reads, faults or close() wait for another program of the client's: files of a
FUSE server of its own, and memory under userfaultfd. They cost their sender alone.

The server stands in a user namespace, as any user can make one. Run by run.py.
"""
import contextlib
import ctypes
import fcntl
import mmap
import os
import select
import signal
import socket
import struct
import tempfile
import unittest

from attacks import ENODATA, MIB, Case, connect, memfd, warm_up
from attackers import OPEN

setUpModule = warm_up
LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
LOOKUP, FORGET, GETATTR, FUSE_OPEN, READ, RELEASE, FLUSH, INIT = 1, 2, 3, 14, 15, 18, 25, 26
REGISTER = (b'{"jsonrpc":"2.0","id":7,"method":"client_mr_register","params":'
            b'{"pd":1,"length":4096,"addr":65536,"access":15}}\n')
PD = b'{"jsonrpc":"2.0","id":6,"method":"client_pd_create"}\n'


def attr(node):
    directory = node == 1
    return struct.pack("<QQQQQQ10I", node, 0 if directory else 4096, 8, 0, 0, 0, 0, 0, 0,
                       0o40755 if directory else 0o100666, 1, 0, 0, 0, 4096, 0)


def serve(dev, flushes, heard):
    """Answers what is needed to open the file; never a READ, and a FLUSH only if `flushes`."""
    while True:
        request = os.read(dev, 1 << 17)
        _, op, unique, node = struct.unpack_from("<IIQQ", request)
        if op in (READ, FLUSH):
            os.write(heard, b"R" if op == READ else b"F")
        if op == FORGET or op == READ or (op == FLUSH and not flushes):
            continue
        body = {INIT: struct.pack("<IIIIHHIIHHI7I", 7, 31, 4096, 0, 1, 1, 4096, 1, 1, 0, 0,
                                  *[0] * 7),
                LOOKUP: struct.pack("<QQQQII", 2, 0, 9, 9, 0, 0) + attr(2),
                GETATTR: struct.pack("<QII", 9, 0, 0) + attr(node),
                FUSE_OPEN: struct.pack("<QII", 1, 0, 0), FLUSH: b"", RELEASE: b""}.get(op)
        head = struct.pack("<IiQ", 16 + len(body or b""), 0 if body is not None else -38, unique)
        os.write(dev, head + (body or b""))


def send_file(path, say):
    """A client that registers the file; it says what it is answered."""
    s = connect()
    s.sendall(OPEN + PD)
    text = b""
    while text.count(b"\n") < 2:
        text += s.recv(1 << 16)
    os.write(say, b"o")
    socket.send_fds(s, [REGISTER], [os.open(path, os.O_RDWR)])
    os.write(say, b"s")
    os.write(say, s.recv(1 << 16))
    signal.pause()


def mounted(folder, flushes, heard, say):
    """In a child: the server, and a client beside it."""
    uid, gid = os.getuid(), os.getgid()
    if LIBC.unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0:
        os._exit(77)
    for name, text in (("uid_map", "0 %d 1" % uid), ("setgroups", "deny"),
                       ("gid_map", "0 %d 1" % gid)):
        with open("/proc/self/" + name, "w", encoding="ascii") as f:
            f.write(text)
    dev = os.open("/dev/fuse", os.O_RDWR)
    options = "fd=%d,rootmode=40000,user_id=0,group_id=0" % dev
    if LIBC.mount(b"fuse", folder.encode(), b"fuse", 0, options.encode()) != 0:
        os._exit(77)
    client = os.fork()
    if client == 0:
        os.close(dev)
        send_file(folder + "/f", say)
    os.write(heard, struct.pack("<i", client))
    serve(dev, flushes, heard)


class Fuse(Case):

    def start(self, flushes):
        """@return what the server heard, and what its client was answered: two pipes."""
        folder = tempfile.mkdtemp()
        self.addCleanup(os.rmdir, folder)
        (heard, heard_in), (said, say) = os.pipe(), os.pipe()
        self.server = os.fork()
        if self.server == 0:
            with contextlib.suppress(OSError):
                mounted(folder, flushes, heard_in, say)
            os._exit(1)
        os.close(heard_in)
        os.close(say)
        for fd in (heard, said):
            self.addCleanup(os.close, fd)
        pid = os.read(heard, 4)
        if len(pid) < 4:
            _, status = os.waitpid(self.server, 0)
            self.assertEqual(77, os.waitstatus_to_exitcode(status))
            self.skipTest("no user namespace of this machine may mount FUSE")
        self.client_pid, = struct.unpack("<i", pid)
        return heard, said

    def end(self):
        os.kill(self.server, signal.SIGKILL)    # with it goes what waits for its answers
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.client_pid, signal.SIGKILL)
        os.waitpid(self.server, 0)

    def others_work(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(4096)
        self.region(c, pd, fd)
        os.close(fd)
        c.close()

    def until(self, fd, wanted):
        text = b""
        while wanted not in text:
            self.assertTrue(select.select([fd], [], [], 30)[0], (text, wanted))
            text += os.read(fd, 1 << 16)
        return text

    def test_a_file_is_refused_and_never_read(self):
        with self.watched():
            heard, said = self.start(True)
            text = self.until(said, b"}\n")
            self.assertIn(b'"error"', text)
            self.assertIn(b"memfd", text)
            self.others_work()
            # What the server heard is that somebody closed it.
            self.assertEqual({b"F"[0]}, set(self.until(heard, b"F")))
            self.end()
        self.assert_back()

    def test_a_close_that_waits_for_ever(self):
        with self.watched():
            heard, said = self.start(False)
            self.until(said, b"s")
            self.until(heard, b"F")             # the dataplane is in its close()
            self.others_work()
            os.kill(self.client_pid, signal.SIGKILL)
            self.others_work()
            self.end()
        self.assert_back()


UFFDIO_API, UFFDIO_REGISTER, SYS_USERFAULTFD = 0xc018aa3f, 0xc020aa00, 323
UFFD_USER_MODE_ONLY = 1


class Userfault(Case):
    """Memory of the client whose faults the client serves, or does not."""

    def mapped(self, fd, size):
        """@return (mapping, userfaultfd) that nobody answers."""
        m = mmap.mmap(fd, size)
        uffd = LIBC.syscall(SYS_USERFAULTFD, os.O_CLOEXEC | os.O_NONBLOCK | UFFD_USER_MODE_ONLY)
        if uffd < 0:
            self.skipTest("no userfaultfd on this machine")
        self.addCleanup(os.close, uffd)
        at = ctypes.addressof(ctypes.c_char.from_buffer(m))
        fcntl.ioctl(uffd, UFFDIO_API, struct.pack("<QQQ", 0xaa, 0, 0))
        fcntl.ioctl(uffd, UFFDIO_REGISTER, struct.pack("<QQQQ", at, size, 1, 0))
        return m, uffd

    def register(self, filled):
        """@return the refusal; None: there was none."""
        fd = memfd(MIB, filled)
        _, uffd = self.mapped(fd, MIB)
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        text = None
        with self.watched():
            if filled:
                mr = self.region(c, pd, fd, length=MIB)
                c.call("client_mr_deregister", handle=mr["handle"])
            else:
                text = self.refused(ENODATA, c, "client_mr_register",
                                    {"pd": pd, "length": MIB, "addr": 0x10000, "access": 15}, [fd])
        # No fault of the dataplane's has come to the client.
        with self.assertRaises(BlockingIOError):
            os.read(uffd, 32)
        c.close()
        os.close(fd)
        self.assert_back()
        return text

    def test_pages_that_are_there(self):
        self.assertIsNone(self.register(True))

    def test_pages_that_a_fault_would_bring(self):
        self.assertIn("holes", self.register(False))


if __name__ == "__main__":
    unittest.main()
