# SPDX-License-Identifier: BSD-3-Clause
"""The two ends of a connection behind one interface, so that every scenario runs either way round.

An End is rocelane's process or the guest's peer: both take the same requests (rpc). Each has a
region "src" full of random bytes that nothing may change, and a region "dst" that the other end and
arriving messages write to; what "dst" should hold is kept here, byte for byte.
"""
import errno
import itertools
import random
import time
import zlib

SRC_LEN = 1 << 20
DST_LEN = 2 << 20
QKEY = 0x11111111       # of UD queue pairs
CHUNK = 128 << 10       # bytes a request that carries memory may hold
WAIT_S = 30             # without anything that moves
SLICE_S = 1.0           # how long the guest's peer looks for completions at one go

ROCELANE, LINUX = "rocelane", "linux"
ALL_ACCESS = ["REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"]

SEND, SEND_IMM, SEND_INV = "SEND", "SEND_WITH_IMM", "SEND_WITH_INV"
WRITE, WRITE_IMM, READ = "RDMA_WRITE", "RDMA_WRITE_WITH_IMM", "RDMA_READ"
CAS, FADD = "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD"
WC_OPCODE = {SEND: "SEND", SEND_IMM: "SEND", SEND_INV: "SEND", WRITE: "RDMA_WRITE",
             WRITE_IMM: "RDMA_WRITE", READ: "RDMA_READ", CAS: "COMP_SWAP", FADD: "FETCH_ADD"}
TAKES_RECV = (SEND, SEND_IMM, SEND_INV, WRITE_IMM)
WITH_IMM = (SEND_IMM, WRITE_IMM)


class End:
    """One end: rpc(method, **params) is its process's."""

    def __init__(self, name, rpc, ip, ip6, seed, moved=lambda: 0):
        self.name, self._rpc, self.ip, self.ip6 = name, rpc, ip, ip6
        self.moved = moved      # a number that changes while frames go by
        self.src_data = random.Random(seed).randbytes(SRC_LEN)
        self.dst_data = bytearray(DST_LEN)
        self.regions = {}
        self.touched = 0
        self.extra = {} if name == LINUX else {"pd": "pd0"}
        self.src = self.region("src", SRC_LEN, ["LOCAL_WRITE", "REMOTE_READ"])
        self.dst = self.region("dst", DST_LEN, ["LOCAL_WRITE"] + ALL_ACCESS)
        self.write("src", 0, self.src_data)

    def rpc(self, method, **params):
        return self._rpc(method, **params)

    def region(self, name, length, access, **more):
        r = self.rpc("mr_register", name=name, length=length, access=access, **self.extra, **more)
        r["addr"], r["rkey"] = int(r["addr"], 0), int(r["rkey"], 0)
        self.regions[name] = r
        return r

    def drop_region(self, name):
        self.rpc("mr_deregister", name=name)
        del self.regions[name]

    def write(self, region, offset, data):
        for i in range(0, len(data), CHUNK):
            part = data[i:i + CHUNK]
            size = {"length": len(part)} if self.name == LINUX else {}
            self.rpc("mr_write", name=region, offset=offset + i, data=part.hex(), **size)
        if region == "dst":
            self.dst_data[offset:offset + len(data)] = data
            self.touch(offset + len(data))

    def read(self, region, offset, length):
        out = b""
        while len(out) < length:
            n = min(CHUNK, length - len(out))
            out += bytes.fromhex(self.rpc("mr_read", name=region, offset=offset + len(out),
                                          length=n)["data"])
        return out

    def _crc(self, region, length):
        if self.name == LINUX:
            return self.rpc("mr_crc", name=region, length=length)["crc32"]
        return zlib.crc32(self.read(region, 0, length))

    def begin_anew(self):
        """After a failure: memory as it is now is what is expected from here on."""
        self.touched = 0
        self.dst_data[:] = self.read("dst", 0, DST_LEN)
        if self._crc("src", SRC_LEN) != zlib.crc32(self.src_data):
            self.write("src", 0, self.src_data)
        self.events()

    def touch(self, end):
        """Something may have been written to "dst" as far as that."""
        self.touched = max(self.touched, end)

    def memory_faults(self, all_of_it=False):
        """What is not as it should be in memory: a list of words, empty if all is well.

        "dst" is looked at as far as something was written since the last look, and 64 KiB more.
        """
        length = DST_LEN if all_of_it else min(DST_LEN, self.touched + (64 << 10))
        parts = [("dst", self.dst_data[:length])]
        if all_of_it:
            parts.append(("src", self.src_data))
        self.touched = 0
        faults = []
        for region, want in parts:
            if self._crc(region, len(want)) == zlib.crc32(want):
                continue
            got = self.read(region, 0, len(want))
            bad = [i for i in range(len(want)) if got[i] != want[i]]
            i = bad[0]
            faults.append("%s: %s differs in %d bytes, from %d to %d: %s is there, not %s" %
                          (self.name, region, len(bad), i, bad[-1], got[i:i + 16].hex(),
                           bytes(want[i:i + 16]).hex()))
            if region == "dst":
                self.dst_data[:length] = got    # the next test starts anew
        return faults

    def completions(self, cq, n, wait_s=WAIT_S):
        """n completions, or fewer when no more come in time.

        A wait that is no shorter than WAIT_S is for those that must come: it begins anew while
        frames go by, so that it ends where nothing happens any more, not where it is slow.
        """
        out, pause, before, end = [], 0.0005, None, 0
        last = time.monotonic() + max(wait_s, 4 * WAIT_S)
        while len(out) < n and time.monotonic() < last:
            more = self.look(cq, n - len(out), min(wait_s, SLICE_S))
            out += more
            now = len(out), self.moved() if wait_s >= WAIT_S else 0
            if now != before:
                before, end = now, time.monotonic() + wait_s
            elif time.monotonic() > end:
                break
            if not more and self.name != LINUX:
                time.sleep(pause)
                pause = min(0.01, pause * 1.3)
        return out

    def look(self, cq, n, wait_s):
        """What is there; the guest's peer waits for all of it itself, for a moment."""
        if self.name == LINUX:
            return self.rpc("poll_cq", cq=cq, max=n, min=n, wait_ms=int(wait_s * 1000))
        return self.rpc("poll_cq", cq=cq, max=min(64, n))

    def events(self):
        """Asynchronous events since the last look, without what says that data has arrived."""
        return [(e["event_type"], e.get("qp_num")) for e in self.rpc("async_events", max=64)
                if e["event_type"] not in ("COMM_EST", "GID_CHANGE")]


class GaveUp(AssertionError):
    """A requester failed that nobody has refused: its retries were used up, or it went to ERR with
    nothing but flushed requests, as the kernel's does after many ACKs beyond a READ."""


class Side:
    """One end of one connection: its queue pair and completion queues."""

    numbers = itertools.count(1)

    def __init__(self, end, attrs):
        self.end, self.attrs = end, attrs
        n = next(self.numbers)
        self.scq, self.rcq = "s%d" % n, "r%d" % n
        for cq in (self.scq, self.rcq):
            end.rpc("cq_create", name=cq, cqe=4096)
        port = {} if end.name == LINUX else {"port": "p0", "knobs": attrs.get("knobs")}
        cap = {"max_send_wr": 256, "max_recv_wr": 512, "max_send_sge": 4, "max_recv_sge": 4}
        self.qpn = end.rpc("qp_create", qp_type=attrs["qp_type"], send_cq=self.scq,
                           recv_cq=self.rcq, cap=dict(cap, **attrs.get("cap", {})), **port,
                           **end.extra)["qp_num"]
        self.gone = False
        self.to_init()

    def modify(self, **params):
        return self.end.rpc("qp_modify", qp_num=self.qpn, **params)

    def to_init(self):
        port = {} if self.end.name == LINUX else {"port": "p0", "pkey": "0xffff"}
        what = {"qkey": hex(QKEY)} if self.is_ud else {
            "qp_access_flags": self.attrs["qp_access_flags"]}
        self.modify(qp_state="INIT", **what, **port)

    @property
    def is_ud(self):
        return self.attrs["qp_type"] == "UD"

    def address_of(self, other):
        """The other end's, as an address vector."""
        to = other.end.ip6 if self.attrs.get("ipv6") else other.end.ip
        return dict({"dest_ip": to, "hop_limit": 64}, **self.attrs.get("ah_attr", {}))

    def connect(self, other):
        """To RTS, or as far as the attribute stay_in says."""
        a = self.attrs
        if a.get("stay_in") == "INIT":
            return
        if self.is_ud:
            self.modify(qp_state="RTR")
        else:
            self.modify(qp_state="RTR", path_mtu=a["path_mtu"], dest_qp_num=other.qpn,
                        rq_psn=other.attrs["sq_psn"],
                        **self.has("max_dest_rd_atomic", "min_rnr_timer"),
                        ah_attr=self.address_of(other))
        if a.get("stay_in") != "RTR":
            self.to_rts()

    def to_rts(self):
        self.modify(qp_state="RTS", sq_psn=self.attrs["sq_psn"],
                    **self.has("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic"))

    def has(self, *keys):
        """Attributes that only a service with ACKs has."""
        return {k: self.attrs[k] for k in keys if self.attrs["qp_type"] == "RC"}

    def query(self):
        return self.end.rpc("qp_query", qp_num=self.qpn)

    def state(self):
        return self.query()["qp_state"]

    def post_send(self, *wrs):
        """Again while the neighbour of a datagram has not answered: nothing was posted then."""
        end = time.monotonic() + WAIT_S
        while True:
            answer = self.end.rpc("post_send", qp_num=self.qpn, wrs=list(wrs))
            refused = answer["refused"] or {}
            if answer["posted"] or refused.get("errno") != errno.EAGAIN or time.monotonic() > end:
                return answer
            time.sleep(0.005)

    def post_recv(self, *wrs):
        return self.end.rpc("post_recv", qp_num=self.qpn, wrs=list(wrs))

    def sent(self, n, wait_s=WAIT_S):
        return self.end.completions(self.scq, n, wait_s)

    def received(self, n, wait_s=WAIT_S):
        return self.end.completions(self.rcq, n, wait_s)

    def close(self):
        if not self.gone:
            self.end.rpc("qp_destroy", qp_num=self.qpn)
        for cq in (self.scq, self.rcq):
            self.end.rpc("cq_destroy", name=cq)


DEFAULTS = {"qp_type": "RC", "path_mtu": 1024, "timeout": 14, "retry_cnt": 7, "rnr_retry": 7,
            "min_rnr_timer": 12, "max_rd_atomic": 16, "max_dest_rd_atomic": 16, "sq_psn": 0x100,
            "qp_access_flags": ALL_ACCESS}


class Link:
    """A connection: `a` asks, `b` answers. Attributes for one side alone: of_a, of_b."""

    def __init__(self, a, b, of_a=None, of_b=None, **attrs):
        self.a = Side(a, {**DEFAULTS, "sq_psn": 0x100, **attrs, **(of_a or {})})
        self.b = Side(b, {**DEFAULTS, "sq_psn": 0x800, **attrs, **(of_b or {})})
        self.b.connect(self.a)
        self.a.connect(self.b)
        self.dst_at, self.src_at, self.wr_id = 64, 0, itertools.count(1)

    def close(self):
        for side in (self.a, self.b):
            side.close()

    # ---- work requests --------------------------------------------------------------------------

    def source(self, length):
        """Where the next message's bytes are taken from: odd offsets, all over the region."""
        at = self.src_at % (SRC_LEN - length + 1)
        self.src_at += 4099
        return at

    def room(self, length):
        """Where the next message goes; a gap before the one after it."""
        if self.dst_at + length + 64 > DST_LEN:
            self.dst_at = 64
        at = self.dst_at
        self.dst_at += length + 13
        for side in (self.a, self.b):
            side.end.touch(self.dst_at)
        return at

    def request(self, op, size, **extra):
        """A work request and what it should do: an Expected."""
        return Expected(self, op, size, extra)

    def mixture(self, n, longest=5000):
        """n requests of all kinds that do not touch each other's memory, atomics aside."""
        out = []
        for i in range(n):
            op = (SEND, WRITE, READ, FADD, SEND_IMM, WRITE_IMM, CAS, WRITE)[i % 8]
            extra = {"at": 8 * (1 + i % 3), "compare_add": hex(i * 0x1111)} \
                if op in (FADD, CAS) else {}
            if op == CAS:
                extra["swap"] = hex(i)
            out.append(self.request(op, (i * 977) % longest, **extra))
        return out

    def run(self, requests, wait_s=WAIT_S, check=True):
        """Post all at once (receives first), wait for both ends, check what they say.

        @return the requester's completions and the responder's.
        """
        takers = [r for r in requests if r.op in TAKES_RECV]
        if takers:
            self.b.post_recv(*[r.recv() for r in takers])
        answer = self.a.post_send(*[r.wr for r in requests])
        if answer["refused"]:
            raise AssertionError("refused: %r" % answer)
        sent = self.a.sent(len(requests), wait_s)
        received = self.b.received(len(takers), wait_s) if takers else []
        if check:
            first = next((c for c in sent if c["status"] != "SUCCESS"), {"status": "SUCCESS"})
            if first["status"] in (("RETRY_EXC_ERR", "WR_FLUSH_ERR") if self.a.end.name == LINUX
                                   else ("RETRY_EXC_ERR",)):
                raise GaveUp("%s: %r" % (self.a.end.name, first))
            want = [r.completion() for r in requests]
            same([(c["wr_id"], c["status"], c.get("opcode")) for c in sent], want,
                 "completions of the requester, %s" % self.a.end.name)
            same([summary(c) for c in received], [summary(r.arrival()) for r in takers],
                 "completions of the responder, %s" % self.b.end.name)
            for r in requests:
                r.apply()
        return sent, received


def summary(c):
    return (c["wr_id"], c["status"], c.get("opcode"), c.get("byte_len"), c.get("imm_data"))


def same(got, want, what):
    if got == want:
        return
    for i, (g, w) in enumerate(zip(got, want)):
        if g != w:
            raise AssertionError("%s: number %d is %r, not %r" % (what, i, g, w))
    raise AssertionError("%s: %d, not %d: %r" % (what, len(got), len(want), got[-3:]))


class Expected:
    """One work request: what to post at either end, and what both should say and hold then."""

    def __init__(self, link, op, size, extra):
        self.link, self.op = link, op
        self.size = 8 if op in (CAS, FADD) else size
        self.id = next(link.wr_id)
        a, b = link.a.end, link.b.end
        self.local = self.remote = None
        self.wr = {"wr_id": self.id, "opcode": op, "send_flags": ["SIGNALED"]}
        if op == READ:
            self.local, self.remote = link.room(self.size), link.source(self.size)
            sge, target = {"mr": "dst", "offset": self.local}, b.src
        elif op in (CAS, FADD):
            self.local = link.room(8)
            self.remote = extra.pop("at")
            sge, target = {"mr": "dst", "offset": self.local}, b.dst
        else:
            self.local = link.source(self.size)
            self.remote = link.room(self.size)
            sge, target = {"mr": "src", "offset": self.local}, b.dst
        self.imm = (0xC0DE0000 + self.id) if op in WITH_IMM else None
        if op not in (SEND, SEND_IMM, SEND_INV):
            self.wr.update(remote_addr=hex(target["addr"] + self.remote), rkey=hex(target["rkey"]))
        if self.imm is not None:
            self.wr["imm_data"] = self.imm
        self.wr["sg_list"] = [dict(sge, length=self.size)] if self.size else []
        self.wr.update(extra)
        self.a, self.b = a, b

    def recv(self):
        """The receive that this request takes; a WRITE's immediate takes one without memory."""
        if self.op == WRITE_IMM or self.size == 0:
            return {"wr_id": self.id, "sg_list": []}
        return {"wr_id": self.id,
                "sg_list": [{"mr": "dst", "offset": self.remote, "length": self.size}]}

    def completion(self):
        return (self.id, "SUCCESS", WC_OPCODE[self.op])

    def arrival(self):
        return {"wr_id": self.id, "status": "SUCCESS", "byte_len": self.size, "imm_data": self.imm,
                "opcode": "RECV_RDMA_WITH_IMM" if self.op == WRITE_IMM else "RECV"}

    def apply(self):
        """Do to the expected memory what the request does."""
        a, b, n = self.a, self.b, self.size
        if self.op == READ:
            a.dst_data[self.local:self.local + n] = b.src_data[self.remote:self.remote + n]
        elif self.op in (CAS, FADD):
            old = bytes(b.dst_data[self.remote:self.remote + 8])
            value = int.from_bytes(old, "little")
            if self.op == FADD:
                value = (value + int(self.wr["compare_add"], 0)) % 2**64
            elif value == int(self.wr["compare_add"], 0):
                value = int(self.wr["swap"], 0)
            b.dst_data[self.remote:self.remote + 8] = value.to_bytes(8, "little")
            a.dst_data[self.local:self.local + 8] = old
        else:
            b.dst_data[self.remote:self.remote + n] = a.src_data[self.local:self.local + n]
