# SPDX-License-Identifier: BSD-3-Clause
"""The other end of a vhost port, by hand: a virtio front end whose memory can say anything."""
import array
import mmap
import os
import socket
import struct
import time

SET_FEATURES, SET_OWNER, SET_MEM_TABLE = 2, 3, 5
SET_VRING_NUM, SET_VRING_ADDR, SET_VRING_BASE = 8, 9, 10
SET_VRING_KICK, SET_VRING_CALL = 12, 13
VERSION_1 = 1 << 32
NEXT, WRITE, INDIRECT = 1, 2, 4
SLOTS = 256
ADDRESS = 0x100000000               # of its memory, as it says
RING, AVAIL, USED = 0x4000, 0x1000, 0x2000
BUFFERS, SIZE = 0x10000, 0x100000
HEADER = 12                         # of virtio-net before each frame
TO_IT, FROM_IT = 0, 1               # rings, as the front end counts them: what it receives, sends


class Peer:
    """Connected, with both rings; it has given nothing yet."""

    def __init__(self, path, wait_s):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        end = time.monotonic() + wait_s
        while self.sock.connect_ex(path) != 0:
            if time.monotonic() > end:
                raise TimeoutError("nobody listens at %s" % path)
            time.sleep(0.01)
        self.fd = os.memfd_create("vhost")
        os.ftruncate(self.fd, SIZE)
        self.m = mmap.mmap(self.fd, SIZE)
        self.events = [os.eventfd(0) for _ in range(4)]
        self.at = 0                 # descriptors that it has made available
        self.tell(SET_OWNER)
        self.tell(SET_FEATURES, struct.pack("<Q", VERSION_1))
        self.tell(SET_MEM_TABLE, struct.pack("<II4Q", 1, 0, 0, SIZE, ADDRESS, 0), [self.fd])
        for ring in (TO_IT, FROM_IT):
            at = ADDRESS + ring * RING
            self.tell(SET_VRING_NUM, struct.pack("<II", ring, SLOTS))
            self.tell(SET_VRING_BASE, struct.pack("<II", ring, 0))
            self.tell(SET_VRING_ADDR, struct.pack("<II4Q", ring, 0, at, at + USED, at + AVAIL, 0))
            self.tell(SET_VRING_CALL, struct.pack("<Q", ring), [self.events[ring]])
            self.tell(SET_VRING_KICK, struct.pack("<Q", ring), [self.events[2 + ring]])

    def tell(self, request, payload=b"", fds=()):
        rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([struct.pack("<III", request, 1, len(payload)) + payload], rights)

    def descriptor(self, ring, slot, address, length, flags=0, following=0):
        struct.pack_into("<QIHH", self.m, ring * RING + slot * 16, address, length, flags,
                         following)

    def put(self, slot):
        """The chain that begins there is given to the other end with the next head()."""
        struct.pack_into("<H", self.m, FROM_IT * RING + AVAIL + 4 + self.at % SLOTS * 2, slot)
        self.at = (self.at + 1) & 0xffff

    def head(self, ring=FROM_IT, value=None):
        struct.pack_into("<H", self.m, ring * RING + AVAIL + 2, self.at if value is None else value)

    def frame(self, data, slot=0):
        """One good frame in one piece."""
        self.m[BUFFERS:BUFFERS + HEADER + len(data)] = bytes(HEADER) + data
        self.descriptor(FROM_IT, slot, BUFFERS, HEADER + len(data))
        self.put(slot)
        self.head()

    def close(self):
        self.sock.close()
        self.m.close()
        for fd in [self.fd, *self.events]:
            os.close(fd)
