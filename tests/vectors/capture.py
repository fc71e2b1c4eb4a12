# SPDX-License-Identifier: BSD-3-Clause
"""One capture of captures/: the pcap and what its .txt says about the run.

A is the end with the lower address, mostly the responder; B mostly asks. The .txt holds both ends'
command lines and JSON lines, and the faults that the wire between them made.
"""
import json
import os
import re
import shlex
import struct
from dataclasses import dataclass

from roce import (ACK, NAK_SEQ, PSN_MASK, READ_FIRST, READ_REQ, RESPONSES, SEND_FIRST,
                  WRITE_FIRST, Frame, icrc)

DIR = os.path.join(os.path.dirname(os.path.abspath(__file__)), "captures")
IP = {"A": ("10.77.0.1", "fd77::1"), "B": ("10.77.0.2", "fd77::2")}
MAC = {"A": "02:00:00:77:00:01", "B": "02:00:00:77:00:02"}
PEER = {"A": "B", "B": "A"}


def port(end, device):
    """A port of a configuration, as that end's."""
    (v4, v6), peer = IP[end], PEER[end]
    return {"name": end, "device": device, "mac": MAC[end], "ipv4": v4, "prefix": 24,
            "ipv6": v6, "prefix6": 64, "mtu": 1500,
            "neighbors": [{"ipv4": IP[peer][0], "mac": MAC[peer]},
                          {"ipv6": IP[peer][1], "mac": MAC[peer]}]}


PORTS = [port("A", "net_ring_stepped0"), port("B", "net_ring_stepped1")]


def names():
    return sorted(f[:-5] for f in os.listdir(DIR) if f.endswith(".pcap"))


@dataclass(frozen=True)
class Sent:
    """A frame of the pcap: `number` from 1, `time` in seconds after the first one."""
    number: int
    time: float
    frame: Frame

    @property
    def raw(self):
        return self.frame.raw


@dataclass(frozen=True)
class Answer:
    number: int
    after: int      # number of the last request frame before it, in this direction and for this QP
    frame: Frame


class Command:
    """The options and operations of an rcpeer command line that matter to a responder."""

    def __init__(self, line):
        words = shlex.split(line[line.index("rcpeer") + len("rcpeer"):])
        self.options, self.operations = {}, []
        valued = re.compile(r"--(?!quiet$|stdin$)|-[dpgT]$")
        i = 0
        while i < len(words):
            if valued.match(words[i]):
                self.options[words[i].lstrip("-")] = words[i + 1]
                i += 2
            elif words[i].startswith("-"):
                i += 1
            else:
                self.operations.append(words[i])
                i += 1

    def number(self, name, default):
        return int(self.options.get(name, str(default)), 0)

    @property
    def recvs(self):
        return self.number("recvs", 16)

    @property
    def rsize(self):
        return self.number("rsize", 65536)

    @property
    def min_rnr(self):
        return self.number("min-rnr", 12)

    @property
    def max_dest_rd_atomic(self):
        return self.number("drd", 16)

    @property
    def access(self):
        mask = self.number("acc", 7)
        return ["LOCAL_WRITE"] + [name for bit, name in enumerate(
            ("REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC")) if mask >> bit & 1]

    @property
    def seed(self):
        """Of the pattern that the target memory starts with."""
        return self.number("tseed", 0x7000)

    @staticmethod
    def _keys(words):
        return {k: int(v, 0) for k, v in (w.split("=") for w in words if "=" in w)
                if re.fullmatch(r"0[xX][0-9a-fA-F]+|[0-9]+", v)}

    def sets(self):
        """[(offset, u64 in host order)]: what was stored before the first request."""
        out = []
        for op in self.operations:
            name, *rest = op.split(",")
            if name.split(":")[0] == "set":
                keys = self._keys(rest)
                out.append((keys.get("off", 0), keys.get("add", 0)))
        return out

    def posts(self):
        """[(milliseconds after the first request, size, count)]: receives posted later."""
        out, ms = [], 0
        for op in self.operations:
            words = op.split(",")[0].split(":")
            if words[0] == "sleep":
                ms += int(words[1], 0)
            elif words[0] == "post":
                out.append((ms, int(words[1], 0) or self.rsize, int(words[2], 0)))
        return out


class Capture:
    def __init__(self, name):
        self.name = name
        self.commands, self.lines, self.json, self.faults = {}, {"A": [], "B": []}, {}, {}
        self._read_text(os.path.join(DIR, name + ".txt"))
        self.frames = self._read_pcap(os.path.join(DIR, name + ".pcap"))

    def _read_text(self, path):
        section = None
        with open(path, encoding="utf-8") as f:
            for line in f.read().splitlines():
                head = re.match(r"# ([AB]): (.*)", line)
                if head:
                    self.commands[head[1]] = head[2]
                elif line.startswith("# --- "):
                    section = next((end for end in "AB" if line.startswith("# --- %s's" % end)),
                                   "faults" if "faults" in line else None)
                elif section == "faults":
                    fault = json.loads(line)
                    self.faults[fault["frame"]] = fault
                elif section:
                    self.lines[section].append(line)
        for end, lines in self.lines.items():
            self.json[end] = [json.loads(line) for line in lines if line.startswith("{")]

    @staticmethod
    def _read_pcap(path):
        with open(path, "rb") as f:
            blob = f.read()
        if blob[:4] != b"\xd4\xc3\xb2\xa1":
            raise ValueError("%s: not a little-endian pcap" % path)
        out, at, start = [], 24, None
        while at + 16 <= len(blob):
            sec, usec, length, _ = struct.unpack_from("<4I", blob, at)
            now = sec + usec / 1e6
            start = now if start is None else start
            out.append(Sent(len(out) + 1, now - start, Frame(blob[at + 16:at + 16 + length])))
            at += 16 + length
        return out

    def command(self, end):
        """The rcpeer command of an end, or None where another program ran."""
        line = self.commands[end]
        return Command(line) if re.search(r"\brcpeer\b", line) else None

    def event(self, end, name):
        return next((e for e in self.json[end] if e.get("ev") == name), None)

    def local(self, end):
        """qpn, psn, rkey, va, len, mtu, recvs as the end printed them, or None."""
        found = self.event(end, "local")
        return {k: int(v, 0) if isinstance(v, str) and k not in ("ip", "ev") else v
                for k, v in found.items()} if found else None

    def completions(self, end):
        """The receive completions that the end saw."""
        return [e for e in self.json[end] if e.get("ev") == "wc" and e.get("op") == "recv"]

    def sender(self, sent):
        return next(end for end in "AB" if sent.frame.src_ip in IP[end])

    def _to(self, end):
        return [s for s in self.frames if s.frame.opcode < 0x20 and self.sender(s) == PEER[end]]

    @staticmethod
    def _icrc_right(raw):
        value, at = icrc(raw)
        return raw[at:at + 4] == struct.pack("<I", value)

    def requests(self, end="A"):
        """RC requests that reached `end`: lost ones left out, doubled ones twice, flips applied."""
        out = []
        for sent in self._to(end):
            if sent.frame.opcode in RESPONSES:
                continue
            fault = self.faults.get(sent.number, {"act": None})
            if fault["act"] == "drop":
                continue
            if fault["act"] == "flip" and self._icrc_right(sent.raw):   # shown as it was before
                at = int(re.search(r"flip=(-?\w+)", fault["rule"])[1], 0)
                raw = bytearray(sent.raw)
                raw[at] ^= 1
                sent = Sent(sent.number, sent.time, Frame(bytes(raw)))
            out += [sent] * (2 if fault["act"] == "dup" else 1)
        return out

    def answers(self, end="A"):
        """What `end` answered, lost or not, with the request frame that came last before it."""
        out, after = [], 0
        seen = {s.number for s in self.requests(end)}
        for sent in self.frames:
            if sent.number in seen:
                after = sent.number
            elif sent.frame.opcode < 0x20 and self.sender(sent) == end and sent.frame.is_response:
                out.append(Answer(sent.number, after, sent.frame))
        return out

    # -- the other direction: an end as the requester --

    def _rc_of(self, end):
        return [s for s in self.frames if s.frame.opcode < 0x20 and self.sender(s) == end]

    def asked(self, end):
        """RC requests that `end` sent, lost or not, in the order on the wire. (A reserved opcode
        stands there where the wire rewrote a request.)"""
        return [s for s in self._rc_of(end) if s.frame.opcode not in RESPONSES]

    def heard(self, end):
        """RC responses that reached `end`."""
        return [s for s in self._rc_of(PEER[end]) if s.frame.opcode in RESPONSES and
                self.faults.get(s.number, {"act": None})["act"] != "drop"]

    def pairs(self, end):
        """[(QP of `end`, its peer's QP)] in the order in which they ask first."""
        out, local, peer = [], self.local(end), self.local(PEER[end])
        for sent in self.asked(end):
            dest = sent.frame.qpn
            if any(d == dest for _, d in out):
                continue
            own = local["qpn"] if peer and peer["qpn"] == dest else next(
                (s.frame.qpn for s in self._rc_of(PEER[end]) if s.frame.sport == sent.frame.sport))
            out.append((own, dest))
        return out

    def waited(self, end):
        """Frame numbers of the requests of `end` that begin a second pass without a sequence NAK
        that asked for it: Linux sent them when a timer expired."""
        out, newest, before, nak = [], {}, {}, set()
        heard = {s.number for s in self.heard(end)}
        asked = {s.number for s in self.asked(end)}
        for sent in self.frames:
            f = sent.frame
            if sent.number in heard and f.opcode == ACK and f.syndrome == NAK_SEQ:
                nak.add(f.sport)
            if sent.number not in asked:
                continue
            q, psn = f.qpn, self._asked_psn(sent)
            again = q in newest and (newest[q] - psn) & PSN_MASK < 1 << 23
            if again and psn != (before[q] + 1) & PSN_MASK and f.sport not in nak:
                out.append(sent.number)
            before[q] = (psn + self._span(sent.frame) - 1) & PSN_MASK
            newest[q] = newest[q] if again else before[q]
            nak.discard(f.sport)
        return out

    def _asked_psn(self, sent):
        """As the requester sent it: the wire may have rewritten it."""
        fault = self.faults.get(sent.number)
        return fault["psn"] if fault else sent.frame.psn

    def mtu(self, end):
        """Path MTU: as printed, or the longest payload of a message's beginning."""
        local = self.local(end)
        return local["mtu"] if local else max((
            len(s.frame.payload) for s in self.frames
            if s.frame.opcode in (SEND_FIRST, WRITE_FIRST, READ_FIRST)), default=1024)

    def _span(self, f):
        """PSNs that a request uses."""
        return max(1, -(-f.length // self.mtu("A"))) if f.opcode == READ_REQ else 1

    def has_rc(self):
        return any(s.frame.opcode < 0x20 for s in self.frames)


def ends(left_out, what):
    """[(capture, end)] wherever what(capture, end) is not empty."""
    return [(name, end) for name in names() if name not in left_out
            for end in "AB" if what(Capture(name), end)]
