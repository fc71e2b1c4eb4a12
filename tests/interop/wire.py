# SPDX-License-Identifier: BSD-3-Clause
"""The wire between the two ends: a tap on one side, the guest's network device on the other.

A thread carries each frame across, and does to single ones what the rules say. It keeps what went
by, so that a test can look at what either end really sent.
"""
import collections
import fcntl
import os
import random
import select
import socket
import struct
import threading
import time

import roce

TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
ETH_MAX = 9216
HOLD_S = 0.002      # a held frame goes on after that, if none has passed it
FENCE_TURNS = 256   # of 32 frames each
QUEUE_MAX = 512     # frames for the guest before the host is left to queue them

TO_GUEST, TO_HOST = "to guest", "to host"


class Seen:
    """A RoCEv2 frame that came by, and what was done to it ("" = nothing)."""

    __slots__ = ("to", "raw", "at", "opcode", "psn", "act", "time")

    def __init__(self, to, raw, at):
        self.to, self.raw, self.at = to, raw, at
        self.opcode = raw[at]
        self.psn = int.from_bytes(raw[at + 9:at + 12], "big")
        self.act = ""
        self.time = time.monotonic()

    @property
    def syndrome(self):
        """The AETH's syndrome, or None."""
        return self.raw[self.at + 12] if self.opcode in roce.HAS_AETH else None

    @property
    def msn(self):
        return int.from_bytes(self.raw[self.at + 13:self.at + 16], "big")

    @property
    def ack_req(self):
        return self.raw[self.at + 8] >> 7

    def __repr__(self):
        syn = "" if self.syndrome is None else " %02x/%d" % (self.syndrome, self.msn)
        if self.opcode == roce.ATOMIC_ACK:
            syn += " " + self.raw[self.at + 16:self.at + 24].hex()
        return "%s %06x %s%s%s" % (self.to, self.psn, roce.NAMES.get(self.opcode, self.opcode),
                                   syn, " (%s)" % self.act if self.act else "")


class Rule:
    """What happens to frames: the first `skip` that match pass, then `count` of them are hit.

    act: "drop", "twice", "late" (after the next frame of its direction; or after `hold` seconds,
    whatever passes it), "flip" (a bit of the last
    byte before the ICRC, which stays as it is), or a function that makes a new frame of the old one
    (its ICRC is put right). count -1: all of them. chance: hit each with this probability.
    """

    def __init__(self, act, to, match=None, skip=0, count=1, chance=None, seed=0, hold=None):
        self.act, self.to, self.match, self.hold = act, to, match, hold
        self.skip, self.left = skip, count
        self.chance, self.random = chance, random.Random(seed)
        self.hits = 0

    def hit(self, seen):
        if self.to not in (None, seen.to) or self.left == 0:
            return False
        if self.match is not None and not self.match(seen):
            return False
        if self.skip > 0:
            self.skip -= 1
            return False
        if self.chance is not None and self.random.random() >= self.chance:
            return False
        self.left -= 1
        self.hits += 1
        return True


def opcode(*codes):
    """A match: any of these opcodes."""
    return lambda seen: seen.opcode in codes


def guest_sockets():
    """A pair of sockets that carries frames, for the wire and for a guest."""
    pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    for s in pair:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
    return pair


class Tap:
    """The host's end of the wire: a tap of this name."""

    def __init__(self, name):
        self.fd = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        fcntl.ioctl(self.fd, TUNSETIFF,
                    struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))

    def fileno(self):
        return self.fd

    def read(self):
        return os.read(self.fd, ETH_MAX)

    def write(self, raw):
        os.write(self.fd, raw)

    def close(self):
        os.close(self.fd)


class SecondGuest:
    """A guest in the host's place. It takes frames sooner or later, so a write waits for it."""

    def __init__(self):
        self.sock, self.guest_end = guest_sockets()

    def fileno(self):
        return self.sock.fileno()

    def read(self):
        return self.sock.recv(ETH_MAX, socket.MSG_DONTWAIT)

    def write(self, raw):
        self.sock.send(raw)

    def close(self):
        self.sock.close()


class Wire:
    def __init__(self, host):
        """@param host what is at its other end: a Tap or a SecondGuest."""
        self.host = host
        self.sock, self.guest_end = guest_sockets()
        self.sock.setblocking(False)
        self.lock = threading.Lock()
        self.rules = []
        self.seen = collections.deque(maxlen=40000)
        self.held = []          # [frames still to pass, deadline, to, raw]
        self.queue = collections.deque()
        self.injected = []
        self.carried = 0        # frames so far, of any kind: whether anything moves
        self.fence_wanted, self.fences, self.turns = False, 0, 0
        self.fenced = threading.Condition()
        self._woken, self._wake = os.pipe()
        self.error = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self):
        """After the guest has got its end of the socket."""
        self.guest_end.close()
        self.thread.start()

    def stop(self):
        os.close(self._wake)
        if self.thread.is_alive():
            self.thread.join(5)
        os.close(self._woken)
        self.host.close()
        self.sock.close()

    # ---- for tests ------------------------------------------------------------------------------

    def clear(self):
        """No rules, no memory of what went by; nothing of it is still on its way."""
        self.calm()
        self.drain()
        with self.lock:
            self.seen.clear()

    def drain(self):
        """Until the thread holds nothing back and has nothing queued, however long it takes."""
        asked = self.fences + 1
        with self.lock:
            self.fence_wanted = True
        os.write(self._wake, b"x")
        with self.fenced:
            self.fenced.wait_for(lambda: self.fences >= asked or self.error is not None)

    def calm(self):
        """No more rules; what went by stays."""
        with self.lock:
            self.rules = []

    def rule(self, act, to=None, match=None, **kw):
        r = Rule(act, to, match, **kw)
        with self.lock:
            self.rules = self.rules + [r]
        return r

    def frames(self, to=None, *codes):
        """What went by since clear(), in order."""
        with self.lock:
            seen = list(self.seen)
        return [s for s in seen if to in (None, s.to) and (not codes or s.opcode in codes)]

    def inject(self, to, raw):
        """A frame of the test's own, as if the other end had sent it."""
        with self.lock:
            self.injected.append((to, raw))
        os.write(self._wake, b"x")

    # ---- the thread -----------------------------------------------------------------------------

    def _run(self):
        try:
            while self._turn():
                pass
        except Exception as e:      # told in a failing test's dump; nothing passes any more
            with self.fenced:
                self.error = e
                self.fenced.notify_all()

    def _turn(self):
        reads = [self._woken, self.sock]
        if len(self.queue) < QUEUE_MAX:
            reads.append(self.host)
        writes = [self.sock] if self.queue else []
        wait = HOLD_S if self.held else 0 if self.fence_wanted else None
        ready, room, _ = select.select(reads, writes, [], wait)
        if self._woken in ready and not self._told():
            return False
        if room:
            self._flush()
        if self.sock in ready:
            self._drain(self._from_guest, TO_HOST)
        if self.host in ready:
            self._drain(self.host.read, TO_GUEST)
        if self.held:
            self._release(None)
        # Even if somebody never stops sending: what was there when it was asked for is through.
        self.turns = self.turns + 1 if self.fence_wanted else 0
        if self.turns > 1 and not self.held and not self.queue and (
                not ready or self.turns > FENCE_TURNS):
            with self.lock:
                self.fence_wanted = False
            with self.fenced:
                self.fences += 1
                self.fenced.notify_all()
        return True

    def _told(self):
        """@return whether to go on: frames to inject, or the end of the pipe."""
        if not os.read(self._woken, 64):
            return False
        with self.lock:
            injected, self.injected = self.injected, []
        for to, raw in injected:
            self._carry(to, raw)
        return True

    def _from_guest(self):
        return self.sock.recv(ETH_MAX)

    def _drain(self, read, to):
        for _ in range(32):
            try:
                raw = read()
            except (BlockingIOError, ConnectionError):
                return
            if raw:
                self._carry(to, raw)

    def _carry(self, to, raw):
        at = 42 if raw[12:14] == b"\x08\0" else 62
        if raw[at - 6:at - 4] != b"\x12\xb7" or len(raw) < at + 16:
            self._put(to, raw)      # ARP, ping
            return
        seen = Seen(to, raw, at)
        rule = next((r for r in self.rules if r.hit(seen)), None)
        with self.lock:
            self.seen.append(seen)      # before anybody can see what it does
        if rule is not None:
            self._do(rule, seen)
        else:
            self._put(to, raw)
        if self.held:
            self._release(to, seen)

    def _do(self, rule, seen):
        act = rule.act
        if callable(act):
            seen.act = "rewritten"
            seen.raw = roce.with_icrc(act(seen.raw))
            self._put(seen.to, seen.raw)
            return
        seen.act = act
        if act == "flip":
            self._put(seen.to, roce.flip(seen.raw, 8 * (len(seen.raw) - 5)))
        elif act == "twice":
            self._put(seen.to, seen.raw)
            self._put(seen.to, seen.raw)
        elif act == "late":
            for_s = rule.hold or HOLD_S
            self.held.append([1 if rule.hold is None else 1 << 30, time.monotonic() + for_s,
                              seen.to, seen])

    def _release(self, to, passing=None):
        now, keep = time.monotonic(), []
        for item in self.held:
            if item[2] == to and item[3] is not passing:
                item[0] -= 1
            if item[0] <= 0 or now >= item[1]:
                self._put(item[2], item[3].raw)
            else:
                keep.append(item)
        self.held = keep

    def _put(self, to, raw):
        self.carried += 1
        if to == TO_HOST:
            self.host.write(raw)
        else:
            self.queue.append(raw)
            self._flush()

    def _flush(self):
        while self.queue:
            try:
                self.sock.send(self.queue[0])
            except (BlockingIOError, InterruptedError):
                return
            except ConnectionError:
                self.queue.clear()      # the guest is gone
                return
            self.queue.popleft()
