# SPDX-License-Identifier: BSD-3-Clause
"""The asking end of a capture: what its program posted; our frames as Linux would send them.

rcpeer's operations follow from the command line. Where another program ran (ping-pong, rping), its
work requests follow from the frames: one for each message.
"""
import re
from dataclasses import dataclass

import roce
from roce import Frame, pattern, with_icrc, with_ip_checksum

VERBS = {"send": "SEND", "send_imm": "SEND_WITH_IMM", "send_inv": "SEND_WITH_INV",
         "write": "RDMA_WRITE", "write_imm": "RDMA_WRITE_WITH_IMM", "read": "RDMA_READ",
         "cas": "ATOMIC_CMP_AND_SWP", "fadd": "ATOMIC_FETCH_AND_ADD"}
IMM, ATOMIC_SEED, READ_FILL = 0xDEADBEEF, 0x3000, 0xEE      # rcpeer's defaults


@dataclass
class Post:
    """One work request: what post_send takes, and the bytes that lie in its buffer."""
    wr: dict
    data: bytes
    kind: str
    waits: bool = False     # nothing behind it is posted before all so far have completed


class Program:
    """Work requests of an rcpeer command line, in the order in which it posted them."""

    def __init__(self, command, remote):
        self.remote, self.sends, self.writes = remote, 0, 0
        self.send_seed = command.number("seed", 0x1000)
        self.write_seed = command.number("wseed", 0x2000)
        self.posts = []
        for operation in command.operations:
            head, *words = operation.split(",")
            name, size, count = (head.split(":") + ["0", "1"])[:3]
            if ":" in head and head.count(":") == 1:
                count = "1"
            keys = command._keys(words)
            if name == "wait" and self.posts:
                self.posts[-1].waits = True
            if name not in VERBS:
                continue
            for _ in range(int(count, 0)):
                self.posts.append(self.post(name, int(size, 0), keys))
            self.posts[-1].waits = keys.get("async", 0) == 0

    def data(self, name, size):
        if name == "read":
            return bytes([READ_FILL]) * size
        if name.startswith("send"):
            self.sends += 1
            return pattern(self.send_seed + self.sends - 1, size)
        if name.startswith("write"):
            self.writes += 1
            return pattern(self.write_seed + self.writes - 1, size)
        return pattern(ATOMIC_SEED, size)

    def post(self, name, size, keys):
        wr = {"opcode": VERBS[name]}
        rkey = keys.get("rkey", self.remote["rkey"])
        if name in ("cas", "fadd"):
            size = 8
            wr["compare_add"] = keys.get("cmp" if name == "cas" else "add", 0)
            wr["swap"] = keys.get("swp", 0)
        if not name.startswith("send"):
            wr.update(rkey=hex(rkey),
                      remote_addr=hex(keys.get("rva", self.remote["va"]) + keys.get("off", 0)))
        if name.endswith("_imm"):
            wr["imm_data"] = keys.get("imm", IMM)
        if name == "send_inv":
            wr["invalidate_rkey"] = hex(rkey)
        wr["send_flags"] = ["SIGNALED"] + [flag for key, flag in (
            ("fence", "FENCE"), ("sol", "SOLICITED"), ("inl", "INLINE")) if keys.get(key)]
        return Post(wr, self.data(name, size), name)


MESSAGE_STARTS = frozenset((roce.SEND_FIRST, roce.SEND_ONLY, roce.WRITE_FIRST, roce.WRITE_ONLY,
                            roce.READ_REQ))


def posts_of_frames(asked, heard):
    """Work requests of the messages that these request frames carry; no copy, no immediate among
    them. One is posted with the next if no answer came between the two."""
    out, last = [], 0
    for sent in asked:
        f = sent.frame
        if f.opcode in MESSAGE_STARTS:
            if out:
                out[-1].waits = any(last < h.number < sent.number for h in heard)
            kind = ("read" if f.opcode == roce.READ_REQ else
                    "write" if f.opcode in roce.HAS_RETH else "send")
            wr = {"opcode": VERBS[kind], "send_flags": ["SIGNALED"]}
            if f.va is not None:
                wr.update(rkey=hex(f.rkey), remote_addr=hex(f.va))
            out.append(Post(wr, b"", kind))
        out[-1].data += bytes(f.length) if out[-1].kind == "read" else f.payload
        if f.se:
            out[-1].wr["send_flags"] = ["SIGNALED", "SOLICITED"]
        last = sent.number
    return out


# ---- our frame as Linux and the wire would have made it -----------------------------------------

def as_linux(ours, theirs, fault):
    """Our frame with what is Linux's own choice put in, then with what the wire did to it.

    Linux's choices: IP identification or flow label, UDP source port, and WIRE-18 MigReq 0.
    """
    f, t = Frame(ours), Frame(theirs)
    raw = bytearray(ours)
    if f.version == 4:
        raw[f.l3 + 4:f.l3 + 6] = theirs[t.l3 + 4:t.l3 + 6]
    else:
        raw[f.l3 + 1:f.l3 + 4] = theirs[t.l3 + 1:t.l3 + 4]
    raw[f.udp:f.udp + 2] = theirs[t.udp:t.udp + 2]
    raw[f.udp + 9] &= 0xBF
    return damage(with_icrc(with_ip_checksum(bytes(raw))), fault)


def damage(raw, fault):
    """What the wire between the two made of a frame."""
    out, rule = bytearray(raw), fault["rule"] if fault else ""
    if fault and fault["act"] == "ecn":
        out[Frame(raw).l3 + 1] |= 3
        return with_ip_checksum(bytes(out))
    for at, value in re.findall(r"set=(\w+):(\w+)", rule):
        out[int(at, 0)] = int(value, 0)
    for at in re.findall(r"flip=(\w+)", rule):
        out[int(at, 0)] ^= 1
    return with_icrc(bytes(out)) if "fix=1" in rule else bytes(out)


def with_ackreq(raw, value):
    out = bytearray(raw)
    at = Frame(raw).udp + 16
    out[at] = out[at] & 0x7F | value << 7
    return bytes(out)


def describe(raw):
    f = Frame(raw)
    return "%r AckReq %d, flags %02x: %s" % (f, f.ackreq, f.flags, raw.hex())
