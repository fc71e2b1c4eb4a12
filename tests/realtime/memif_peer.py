# SPDX-License-Identifier: BSD-3-Clause
"""The other end of a memif link, by hand: whoever connects to the socket of a port."""
import mmap
import os
import socket
import struct
import time

ACK, HELLO, INIT, ADD_REGION, ADD_RING, CONNECT, CONNECTED = range(1, 8)
VERSION = 0x0200
COOKIE = 0x3E31F20
MESSAGE, HEADER, DESC = 128, 128, 16
LOG2 = 8
SLOTS = 1 << LOG2
BUFFER = 2048
NEXT = 1        # a descriptor goes on in the next one


class Peer:
    """Connected; to_them and from_them are rings of descriptors."""

    def __init__(self, path, wait_s):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(wait_s)
        end = time.monotonic() + wait_s
        while self.sock.connect_ex(path) != 0:
            if time.monotonic() > end:
                raise TimeoutError("nobody listens at %s" % path)
            time.sleep(0.01)
        ring = HEADER + SLOTS * DESC
        self.buffers = 2 * ring
        self.size = self.buffers + 2 * SLOTS * BUFFER
        self.fd = os.memfd_create("memif", os.MFD_ALLOW_SEALING)
        os.ftruncate(self.fd, self.size)
        self.m = mmap.mmap(self.fd, self.size)
        self.rings = [0, ring]
        self.events = [os.eventfd(0), os.eventfd(0)]
        for at in self.rings:
            struct.pack_into("IH", self.m, at, COOKIE, 1)   # without interrupts
        self.expect(HELLO)
        self.ask(INIT, struct.pack("<HIB24s32s", VERSION, 0, 0, b"", b"peer"))
        self.ask(ADD_REGION, struct.pack("<HQ", 0, self.size), self.fd)
        for i, at in enumerate(self.rings):
            self.ask(ADD_RING, struct.pack("<HHHIBH", 1 - i, 0, 0, at, LOG2, 0), self.events[i])
        self.send(CONNECT, b"peer")
        self.expect(CONNECTED)
        self.at = 0

    def send(self, kind, body, *fds):
        line = (struct.pack("<H", kind) + body).ljust(MESSAGE, b"\0")
        socket.send_fds(self.sock, [line], list(fds))

    def expect(self, kind):
        got = struct.unpack_from("<H", self.sock.recv(MESSAGE))[0]
        assert got == kind, "memif says %d instead of %d" % (got, kind)

    def ask(self, kind, body, *fds):
        self.send(kind, body, *fds)
        self.expect(ACK)

    def put(self, data, flags=0, length=None):
        """The next buffer of the ring, and its descriptor. `length` may be a lie."""
        slot = self.at % SLOTS
        off = self.buffers + slot * BUFFER
        self.m[off:off + len(data)] = data
        struct.pack_into("<HHIII", self.m, HEADER + slot * DESC, flags, 0,
                         len(data) if length is None else length, off, 0)
        self.at += 1

    def head(self, value=None):
        struct.pack_into("<H", self.m, 6, (self.at if value is None else value) & 0xffff)

    def tail(self):
        """How far they have read."""
        return struct.unpack_from("<H", self.m, 64)[0]

    def room(self):
        return SLOTS - ((self.at - self.tail()) & 0xffff)

    def take_all(self):
        """What they send goes away: its buffers are theirs again."""
        ring = self.rings[1]
        for slot in range(SLOTS):
            struct.pack_into("<HHIII", self.m, ring + HEADER + slot * DESC, 0, 0, BUFFER,
                             self.buffers + (SLOTS + slot) * BUFFER, 0)
        tail = struct.unpack_from("<H", self.m, ring + 64)[0]
        struct.pack_into("<H", self.m, ring + 6, (tail + SLOTS) & 0xffff)

    def close(self):
        self.sock.close()
        self.m.close()
        for fd in (self.fd, *self.events):
            os.close(fd)
