# SPDX-License-Identifier: BSD-3-Clause
"""Scenes: one situation, played with rocelane and then with the Linux kernel in the same part.

A scene is a function of a Play and names the rule that it shows. It is about the responder or about
the requester; the other end is the partner, and both ends are always of different make. What the
observed end did is told in words with a fixed vocabulary, so that two tellings can be compared with
each other and with what the specification wants.

    3 SUCCESS, 1 WR_FLUSH_ERR   completions of the queue in question, in order
    NAK-RAE +2                  a negative answer and its PSN, counted from the first request's
    QP_ACCESS_ERR               an asynchronous event
    ERR                         the state of the queue pair, where it is not RTS
"""
import itertools
import struct
import time

import roce
from ends import ALL_ACCESS, QKEY, READ, Link
from wire import TO_GUEST, TO_HOST

SCRATCH_LEN = 512 << 10
RECV_LEN = 4096
NAKS = {0x60: "NAK-SEQ", 0x61: "NAK-INV", 0x62: "NAK-RAE", 0x63: "NAK-ROE"}
FAST = {"timeout": 11, "retry_cnt": 1}      # for a requester that nobody answers
SURE = {"timeout": 16}      # a partner's own: 0.27 s, a loaded machine is no loss
PATIENT = {"timeout": 18}       # 1.07 s: what is done before that was not done by the timer
AT_ONCE_S = 0.9
EVENTS = ("QP_REQ_ERR", "QP_ACCESS_ERR", "QP_FATAL", "SQ_DRAINED", "COMM_EST")

SCENES = []


class Scene:
    def __init__(self, part, rules, title, wants, fn, only, linux_varies):
        self.part, self.rules, self.title, self.fn = part, rules, title, fn
        self.wants = wants if isinstance(wants, tuple) else (wants,)
        self.only = only        # the one end it may be played with, and why
        self.linux_varies = linux_varies    # what has been seen of the kernel, where it differs
        self.name = fn.__name__


def _scene(part, rules, title, wants, only=None, linux_varies=()):
    def keep(fn):
        SCENES.append(Scene(part, rules, title, wants, fn, only, linux_varies))
        return fn
    return keep


def responder(rules, title, wants, **more):
    """wants: what the specification wants told; a tuple where it leaves a choice."""
    return _scene("responder", rules, title, wants, **more)


def requester(rules, title, wants, **more):
    return _scene("requester", rules, title, wants, **more)


def connection(rules, title, wants, **more):
    """Played by a Meeting (meeting.py)."""
    return _scene("connections", rules, title, wants, **more)


def variant(name, fn, *args):
    """The scene that is fn with these arguments, under a name of its own."""
    def play(p):
        return fn(p, *args)
    play.__name__ = name
    return play


def counted(words):
    """["a", "a", "b"] -> "2 a, 1 b"."""
    return ", ".join("%d %s" % (len(list(group)), word)
                     for word, group in itertools.groupby(words)) or "none"


def tell(*parts):
    return "; ".join(p for p in parts if p)


class Play:
    """One scene on its way: a connection from the requester a to the responder b."""

    def __init__(self, wire, a, b, scene):
        self.wire, self.a_end, self.b_end = wire, a, b
        self.link = None
        self.observed = "b" if scene.part == "responder" else "a"
        # An event that is wanted may take its time; that none comes is seen after a short one.
        self.event_s = 0.6 if any(e in w for w in scene.wants for e in EVENTS) else 0.08
        self.recvs = self.sends = 0
        self.to_b = TO_GUEST if b.name == "linux" else TO_HOST
        self.to_a = TO_HOST if b.name == "linux" else TO_GUEST
        self.regions = []
        wire.clear()

    # ---- setting the stage ----------------------------------------------------------------------

    def connect(self, recvs=4, recv_len=RECV_LEN, **attrs):
        partner = "of_a" if self.observed == "b" else "of_b"
        attrs[partner] = {**SURE, **attrs.get(partner, {})}
        self.link = Link(self.a_end, self.b_end, **attrs)
        self.a, self.b = self.link.a, self.link.b
        self.first = self.a.attrs["sq_psn"]
        if recvs:
            self.post_recv(recvs, recv_len)

    def post_recv(self, n, length=RECV_LEN, **sge):
        wrs = []
        for i in range(self.recvs, self.recvs + n):
            wrs.append({"wr_id": i, "sg_list": [
                {"mr": "scratch", "offset": i * RECV_LEN, "length": length, **sge}]})
        self.recvs += n
        return self.b.post_recv(*wrs)

    def region(self, name, length=8192, access=(), where=None, **more):
        """A region of the responder's (or `where`'s) that ends with the scene."""
        end = where or self.b_end
        region = end.region(name, length, ["LOCAL_WRITE"] + list(access), **more)
        self.regions.append((end, name))
        return region

    def wr(self, op, size=100, target=None, **over):
        """A request of the requester's; its target is the responder's scratch (READ: src)."""
        target = target or self.b_end.regions["src" if op == READ else "scratch"]
        local = {"mr": "scratch" if op == READ or op.startswith("ATOMIC") else "src", "offset": 0,
                 "length": 8 if op.startswith("ATOMIC") else size}
        wr = {"opcode": op, "send_flags": ["SIGNALED"], "sg_list": [local] if size else []}
        if not op.startswith("SEND"):
            wr.update(remote_addr=hex(target["addr"] + over.pop("at", 0)),
                      rkey=hex(target["rkey"]))
        if "imm" in op.lower():
            wr["imm_data"] = 0x11223344
        if op.startswith("ATOMIC"):
            wr.update(compare_add="0x3", swap="0x9")
        if self.link is not None and self.a.is_ud:
            wr["ud"] = {"ah_attr": self.a.address_of(self.b), "remote_qpn": self.b.qpn,
                        "remote_qkey": over.pop("qkey", QKEY)}
        wr.update(over)
        return wr

    def post(self, *wrs):
        for i, wr in enumerate(wrs):
            wr["wr_id"] = self.sends + i
        answer = self.a.post_send(*wrs)
        self.sends += answer["posted"]
        return answer

    # ---- looking --------------------------------------------------------------------------------

    def frames(self, to, *codes):
        """Frames of this connection, towards "a" or "b"."""
        side = self.a if to == "a" else self.b
        return [s for s in self.wire.frames(self.to_a if to == "a" else self.to_b, *codes)
                if int.from_bytes(s.raw[s.at + 5:s.at + 8], "big") == side.qpn]

    def offset(self, psn):
        return (psn - self.first) & roce.PSN_MASK

    def negatives(self):
        """NAKs of every kind that the responder sent, a run of equal ones told once."""
        out = []
        for s in self.frames("a", roce.ACK):
            if s.syndrome in NAKS:
                out.append("%s +%d" % (NAKS[s.syndrome], self.offset(s.psn)))
            elif s.syndrome >> 5 == 1:
                out.append("RNR +%d" % self.offset(s.psn))
            elif s.syndrome >> 5 != 0:
                out.append("AETH %02x +%d" % (s.syndrome, self.offset(s.psn)))
        return ", ".join(word for word, _ in itertools.groupby(out))

    def sent(self, wait_s=4):
        """All of the requester's completions; "missing" for those that never come."""
        done = self.a.sent(self.sends, wait_s)
        ids = [c["wr_id"] for c in done]
        if ids != sorted(ids):
            return [c["status"] for c in done] + ["out of order %r" % ids]
        return [c["status"] for c in done] + ["missing"] * (self.sends - len(done))

    def received(self, n=None, wait_s=2):
        """n completions of the responder's receives; by default all of those that it has."""
        if n is None:
            n, wait_s = self.recvs, wait_s if self.b.state() == "ERR" else 0.05
        return [c["status"] for c in self.b.received(n, wait_s)]

    def wait(self, condition, wait_s=5):
        end = time.monotonic() + wait_s
        while not condition():
            if time.monotonic() > end:
                return False
            time.sleep(0.002)
        return True

    def _events(self, side):
        found = []
        self.wait(lambda: found.extend(e for e, qpn in side.end.events()
                                       if qpn in (None, side.qpn)) or found, self.event_s)
        return found

    def tell_responder(self, *more):
        """The usual telling of scenes about the responder, once the requester has finished."""
        got = self.received()
        state = self.b.state()
        return tell(self.negatives() or "no NAK", "receives: %s" % counted(got) if got else "",
                    *more, *self._events(self.b), "" if state == "RTS" else state)

    def tell_requester(self, *more):
        got = self.sent()
        state = self.a.state()
        return tell(counted(got), *more, *self._events(self.a), "" if state == "RTS" else state)

    def close(self):
        if self.link is not None:
            self.link.close()
        for end, name in self.regions:
            end.drop_region(name)
        self.wire.clear()


def open_scratch(*ends):
    for end in ends:
        end.region("scratch", SCRATCH_LEN, ["LOCAL_WRITE"] + ALL_ACCESS)


# ---- changes of frames on the wire --------------------------------------------------------------

def bth(raw):
    return 42 if raw[12:14] == b"\x08\0" else 62


def changed(at, value):
    """An act for a rule: put bytes at this offset from the BTH."""
    def act(raw):
        i = bth(raw) + at
        return raw[:i] + value + raw[i + len(value):]
    return act


def with_opcode(code):
    return changed(0, bytes([code]))


def with_aeth(syndrome, psn=None):
    """An act: another syndrome in an ACK, and another PSN."""
    def act(raw):
        raw = changed(12, bytes([syndrome]))(raw)
        return raw if psn is None else changed(9, psn.to_bytes(3, "big"))(raw)
    return act


def with_ecn(raw):
    """Marked CE; the ICRC does not cover it, IPv4's checksum does."""
    return roce.with_ip_checksum(raw[:15] + bytes([raw[15] | 3]) + raw[16:])


def reth_length(length):
    return changed(24, struct.pack(">I", length))


# ---- what scenes of several files need -----------------------------------------------------------

def timed(p, *wrs, meanwhile=None):
    """Post, wait, and tell whether the transport timer was needed."""
    began = time.monotonic()
    p.post(*wrs)
    if meanwhile is not None:
        meanwhile()
    telling = p.tell_requester()
    late = time.monotonic() - began > AT_ONCE_S
    return tell(telling, "waits for its timer" if late else "at once")


def copies(p, offset=0, codes=()):
    return [s for s in p.frames("b", *codes) if p.offset(s.psn) == offset]
