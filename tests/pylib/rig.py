# SPDX-License-Identifier: BSD-3-Clause
"""The rig from Python: one thread of dataplane on a stepped clock, frames in and frames out.

Rig drives the process (environment: ROCELANE_RIG is the program). RigCase is the base of the tests:
one process for each class, fresh objects for each test, every frame that leaves is checked
(roce.check_frame), and after each test every received packet must be accounted for.
"""
import itertools
import json
import os
import re
import select
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

import roce
from roce import Frame, Peer, check_frame

MS = 1_000_000
SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class RpcError(Exception):
    """An error reply: .code and .message."""

    def __init__(self, error):
        super().__init__("%s: %s" % (error.get("code"), error.get("message")))
        self.code = error["code"]
        self.message = error["message"]


class RigDied(AssertionError):
    pass


def base_config(**sections):
    """F-RESP's port (IPv4 and IPv6), congestion control off; objects come by RPC."""
    config = {
        "version": 1,
        "eal": ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                "--log-level=error"],
        "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
        "ports": [
            {"name": "p0", "device": "net_ring_rig0", "mac": "02:00:00:00:00:11",
             "ipv4": "192.0.2.1", "prefix": 24, "ipv6": "2001:db8::1", "prefix6": 64,
             "mtu": 4200,
             "neighbors": [{"ipv4": "192.0.2.2", "mac": "02:00:00:00:00:22"},
                           {"ipv6": "2001:db8::2", "mac": "02:00:00:00:00:22"}]}],
        "knobs": {"cc.cnp": "off", "cc.algo": "none"},
        "error_buffer": {"entries": 256},
        "pds": ["pd0"],
    }
    config.update(sections)
    return config


def drop_counters():
    """Names of the counters whose drop column is 1 in lib/stats/counters.def."""
    path = os.path.join(SOURCE_ROOT, "lib", "stats", "counters.def")
    with open(path, encoding="ascii") as f:
        rows = re.findall(r'^COUNTER\(\s*(\w+)\s*,\s*"\w+"\s*,\s*(\d)\s*,', f.read(), re.M)
    return [name for name, drop in rows if drop == "1"]


def unexplained(case, scopes):
    """Fails where rx_packets is not rcvd_pkts + rx_control + every drop."""
    names = drop_counters()
    for c in scopes:
        drops = {name: c[name] for name in names if c[name]}
        case.assertEqual(
            c["rx_packets"] + c["rx_handoff_in"],
            c["rcvd_pkts"] + c["rx_control"] + c["rx_handoff"] + sum(drops.values()),
            "packets unexplained: rx_packets %d (+%d), rcvd_pkts %d, rx_control %d, "
            "rx_handoff %d, %r" % (c["rx_packets"], c["rx_handoff_in"], c["rcvd_pkts"],
                                   c["rx_control"], c["rx_handoff"], drops))


class Rig:
    """The process. Commands block until their answer is complete."""

    TIMEOUT_S = 30

    def __init__(self, config):
        self.dir = tempfile.mkdtemp(prefix="rocelane-rig-")
        self.stderr_path = os.path.join(self.dir, "stderr")
        path = os.path.join(self.dir, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        with open(self.stderr_path, "wb") as err:
            self.proc = subprocess.Popen(
                [os.environ["ROCELANE_RIG"], "--config", path], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=err, env=dict(os.environ, XDG_RUNTIME_DIR=self.dir))
        self._buf = b""
        self._ids = itertools.count(1)
        try:
            while self._line() != "ready":
                pass
        except BaseException:
            self.close()
            raise

    def stderr(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def _died(self, why):
        if self.proc.poll() is None and why.startswith("no answer"):
            self.proc.kill()
        rc = self.proc.wait()
        return RigDied("the rig %s (exit code %s)\n%s" % (why, rc, self.stderr()[-8000:]))

    def _line(self):
        end = time.monotonic() + self.TIMEOUT_S
        while b"\n" not in self._buf:
            ready, _, _ = select.select([self.proc.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise self._died("no answer in %d s" % self.TIMEOUT_S)
            more = os.read(self.proc.stdout.fileno(), 1 << 16)
            if not more:
                raise self._died("ended")
            self._buf += more
        line, self._buf = self._buf.split(b"\n", 1)
        return line.decode()

    def command(self, text):
        """Lines of the answer, without the final dot."""
        try:
            self.proc.stdin.write(text.encode() + b"\n")
            self.proc.stdin.flush()
        except BrokenPipeError:
            raise self._died("ended") from None
        lines = []
        while True:
            line = self._line()
            if line == ".":
                break
            lines.append(line)
        for line in lines:
            if line.startswith("error:"):
                raise AssertionError("rig: %s (command %.80s)" % (line, text))
        return lines

    def rx(self, frame, port=0, fcs_bad=False):
        self.command("rx %d %s%s" % (port, frame.hex(), " fcs" if fcs_bad else ""))

    def run(self, ns=0):
        """[(port, frame)] that left until the dataplane was idle."""
        return [(int(line.split()[1]), bytes.fromhex(line.split()[2]))
                for line in self.command("run %d" % ns) if line.startswith("tx ")]

    def now(self):
        return int(self.command("now")[0])

    def rpc_raw(self, text):
        """One request line as it stands; its reply decoded, or None."""
        lines = [line for line in self.command("rpc " + text) if not line.startswith("tx ")]
        return json.loads(lines[0]) if lines else None

    def rpc(self, method, **params):
        ident = next(self._ids)
        reply = self.rpc_raw(json.dumps(
            {"jsonrpc": "2.0", "id": ident, "method": method, "params": params}))
        if reply is None or reply.get("id") != ident:
            raise AssertionError("reply to %s: %r" % (method, reply))
        if "error" in reply:
            raise RpcError(reply["error"])
        return reply["result"]

    def counters(self, **scope):
        result = self.rpc("stats", **(scope or {"scope": "total"}))
        return result.get("counters", result) if isinstance(result, dict) else result

    def close(self):
        """Ends the process. @return its exit code."""
        if self.proc.poll() is None:
            try:
                self.proc.stdin.write(b"quit\n")
                self.proc.stdin.close()
                self.proc.wait(10)
            except (BrokenPipeError, ValueError, subprocess.TimeoutExpired):
                self.proc.kill()
        rc = self.proc.wait()
        for pipe in (self.proc.stdin, self.proc.stdout):
            try:
                pipe.close()
            except (BrokenPipeError, OSError):
                pass
        self.last_stderr = self.stderr() if os.path.exists(self.stderr_path) else ""
        shutil.rmtree(self.dir, ignore_errors=True)
        return rc


# ---- what answers are expected ------------------------------------------------------------------

class Reply:
    """An expected answer; what is None may be anything."""

    def __init__(self, opcode, psn, syndrome=None, msn=None, payload=None, original=None):
        self.opcode, self.psn, self.syndrome, self.msn = opcode, psn & roce.PSN_MASK, syndrome, msn
        self.payload, self.original = payload, original

    def matches(self, f):
        return (f.opcode == self.opcode and f.psn == self.psn and
                (self.syndrome is None or f.syndrome == self.syndrome) and
                (self.msn is None or f.msn == self.msn) and
                (self.payload is None or f.payload == self.payload) and
                (self.original is None or f.original == self.original))

    def __repr__(self):
        text = "%s psn %06x" % (roce.NAMES[self.opcode], self.psn)
        if self.syndrome is not None:
            text += " syndrome %02x" % self.syndrome
        if self.msn is not None:
            text += " msn %d" % self.msn
        if self.original is not None:
            text += " original %#x" % self.original
        if self.payload:
            text += " payload %d" % len(self.payload)
        return "<%s>" % text


def Ack(psn, msn=None):
    return Reply(roce.ACK, psn, roce.SYN_ACK, msn)


def Nak(psn, syndrome, msn=None):
    return Reply(roce.ACK, psn, syndrome, msn)


def Rnr(psn, code=12, msn=None):
    return Reply(roce.ACK, psn, roce.SYN_RNR + code, msn)


def AtomicAck(psn, original, msn=None):
    return Reply(roce.ATOMIC_ACK, psn, roce.SYN_ACK, msn, original=original)


def ReadResponse(psn, payload, msn=None, mtu=1024):
    """The packets that answer one READ."""
    parts = [payload[i:i + mtu] for i in range(0, len(payload), mtu)] or [b""]
    if len(parts) == 1:
        return [Reply(roce.READ_ONLY, psn, roce.SYN_ACK, msn, parts[0])]
    last = len(parts) - 1
    return ([Reply(roce.READ_FIRST, psn, roce.SYN_ACK, msn, parts[0])] +
            [Reply(roce.READ_MIDDLE, psn + i, payload=p) for i, p in enumerate(parts[1:-1], 1)] +
            [Reply(roce.READ_LAST, psn + last, roce.SYN_ACK, msn, parts[-1])])


# ---- the fixture --------------------------------------------------------------------------------

E = 0x100                       # the DUT's expected PSN
QPN, PEER_QPN = 0x11, 0x22
VA, RKEY, MR_LEN = 0x10000000, 0x00C0FFEE, 65536
BUF, BUFS = 4096, 16            # receive buffers: slot i of region "rbuf" is i * BUF
# Each QP is the first of so many of one template: from 256 on they are compact (lib/qp/qp_parts.h).
COMPACT = int(os.environ.get("ROCELANE_RIG_QPS", "0"))
ALL_REMOTE = ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"]


class RigCase(unittest.TestCase):
    """F-RESP: call self.resp() first; it may be called again for a fresh QP."""

    CONFIG = {}
    ACCOUNT_S = 0               # for how long counters may still move
    rig = None
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.start()

    @classmethod
    def start(cls):
        cls.rig = Rig(base_config(**cls.CONFIG))
        cls.made = []

    @classmethod
    def tearDownClass(cls):
        if cls.rig is not None:
            died = cls.rig.proc.poll() is not None
            rc = cls.rig.close()
            text, cls.rig = cls.rig.last_stderr, None
            if rc != 0 and not died:
                raise RigDied("the rig ended with %s\n%s" % (rc, text[-8000:]))

    def setUp(self):
        if self.rig.proc.poll() is not None:
            type(self).rig.close()
            self.start()
        self.peer = Peer()

    def tearDown(self):
        try:
            if self.rig.proc.poll() is None:
                self.assert_accounting()
        except AssertionError:
            self.dump()
            raise
        if not self._outcome.success:
            self.dump()

    def dump(self):
        if self.rig.proc.poll() is not None:
            print("rig's standard error:\n" + self.rig.stderr()[-8000:], file=sys.stderr)
            return
        print("--- %s" % self.id(), file=sys.stderr)
        for method, params in (("qp_query", {"qp_num": QPN}), ("stats", {"scope": "total"}),
                               ("trace_read", {"qp_num": QPN})):
            try:
                result = self.rig.rpc(method, **params)
                if method == "stats":
                    result = {k: v for k, v in self.rig.counters().items() if v}
                print("%s: %s" % (method, json.dumps(result)), file=sys.stderr)
            except (RpcError, AssertionError) as e:
                print("%s: %s" % (method, e), file=sys.stderr)
        print(self.rig.stderr()[-2000:], file=sys.stderr)

    # -- objects --

    def rpc(self, method, **params):
        return self.rig.rpc(method, **params)

    def make(self, method, **params):
        """Create an object that goes away with the next resp()."""
        others = 0
        if (method == "qp_create" and COMPACT and
                not {"count", "recv_feed", "srq"} & set(params)):
            others = COMPACT - 1
            params["count"] = COMPACT
        result = self.rpc(method, **params)
        self.made += [("qp_destroy", {"qp_num": result["qp_num"] + i})
                      for i in range(others, 0, -1)]
        key = {"qp_num": result["qp_num"]} if method == "qp_create" else {"name": params["name"]}
        undo = {"qp_create": "qp_destroy", "mr_register": "mr_deregister",
                "cq_create": "cq_destroy", "srq_create": "srq_destroy",
                "pd_create": "pd_dealloc"}[method]
        self.made.append((undo, key))
        return result

    def clear(self):
        while self.made:
            method, key = self.made.pop()
            try:
                self.rpc(method, **key)
            except RpcError as e:
                if "deregister" not in method:   # a test may have removed a region itself
                    raise AssertionError("%s %s: %s" % (method, key, e)) from e

    def resp(self, recv=4, v6=False, mr_access=None, cqe=64, mr_fill="zero", mr_params=None, **qp):
        """Fresh objects of F-RESP; `qp` overrides attributes of the QP."""
        self.clear()
        self.peer = Peer(src_ip="2001:db8::2", dst_ip="2001:db8::1") if v6 else Peer()
        self.peer = self.peer.with_(mtu=qp.get("path_mtu", 1024))
        self.make("cq_create", name="cq0", cqe=cqe)
        self.make("mr_register", name="mr0", pd="pd0", length=MR_LEN, addr=hex(VA), rkey=hex(RKEY),
                  access=ALL_REMOTE if mr_access is None else mr_access, fill=mr_fill,
                  **(mr_params or {}))
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("qp_create", **self.qp_params(v6=v6, **qp))
        self.wr_id = 0
        self.post_recv(recv)
        self.drain()

    def qp_params(self, v6=False, **qp):
        params = {
            "qp_num": QPN, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
            "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": PEER_QPN,
            "rq_psn": E, "sq_psn": 0x200,
            "ah_attr": {"dest_ip": "2001:db8::2" if v6 else "192.0.2.2",
                        "dest_mac": "02:00:00:00:00:22", "hop_limit": 64},
            "timeout": 14, "retry_cnt": 3, "rnr_retry": 3, "min_rnr_timer": 12,
            "max_rd_atomic": 4, "max_dest_rd_atomic": 4, "pkey": "0xffff",
            "qp_access_flags": ALL_REMOTE,
            "cap": {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4, "max_recv_sge": 4}}
        params.update(qp)
        return {k: v for k, v in params.items() if v is not None}

    def walk_up(self, state, qp_num=QPN, **attrs):
        """RESET to INIT, RTR, RTS as a verbs program does it."""
        a = self.qp_params(**attrs)
        steps = (("INIT", ("port", "pkey", "qp_access_flags")),
                 ("RTR", ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic",
                          "min_rnr_timer")),
                 ("RTS", ("sq_psn", "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic")))
        for name, keys in steps:
            self.rpc("qp_modify", qp_num=qp_num, qp_state=name, **{k: a[k] for k in keys if k in a})
            if name == state:
                break

    def drain(self):
        """Leftovers of earlier tests and of set-up."""
        self.rig.run()
        while self.rpc("async_events", max=64):
            pass
        while self.rpc("rx_errors", max=64):
            pass
        self.start_counters = self.rig.counters()

    def post_recv(self, n=1, size=BUF, qp_num=QPN):
        """n receive WQEs of one SGE, each with the next slot of "rbuf"; wr_id counts from 0."""
        for _ in range(n):
            self.post_recv_sges([{"mr": "rbuf", "offset": self.wr_id % BUFS * BUF, "length": size}],
                                qp_num)

    def post_recv_sges(self, sges, qp_num=QPN):
        result = self.rpc("post_recv", qp_num=qp_num, wrs=[{"wr_id": self.wr_id, "sg_list": sges}])
        self.assertEqual(result["posted"], 1, result)
        self.wr_id += 1

    def mem(self, offset, length, mr="mr0"):
        return bytes.fromhex(self.rpc("mr_read", name=mr, offset=offset, length=length)["data"])

    def set_mem(self, offset, data, mr="mr0"):
        self.rpc("mr_write", name=mr, offset=offset, data=data.hex())

    def slot(self, i, length):
        """What lies in the receive buffer of wr_id i."""
        return self.mem(i % BUFS * BUF, length, "rbuf")

    # -- stimulus --

    def feed(self, *frames, ns=0, port=0):
        """Frames in, then turn until idle. The DUT's frames, each checked and decoded."""
        for frame in itertools.chain.from_iterable(
                f if isinstance(f, list) else [f] for f in frames):
            self.rig.rx(frame, port)
        out = []
        for out_port, raw in self.rig.run(ns):
            self.assertEqual(out_port, port)
            f = Frame(raw)
            check_frame(f, self.peer)
            out.append(f)
        return out

    def each(self, *frames):
        """One frame at a time; all answers."""
        out = []
        for frame in itertools.chain.from_iterable(
                f if isinstance(f, list) else [f] for f in frames):
            out += self.feed(frame)
        return out

    # -- verdicts --

    def expect(self, got, *want):
        """These answers, all of them, in this order."""
        want = [w for group in want for w in (group if isinstance(group, list) else [group])]
        if len(got) != len(want) or not all(w.matches(f) for w, f in zip(want, got)):
            self.fail("answers %r,\nnot %r" % (got, want))

    def silent(self, got=(), ms=50):
        """No answer, and none in 50 ms of test time either."""
        self.assertEqual([], list(got))
        self.assertEqual([], self.feed(ns=ms * MS))

    def qp(self, qp_num=QPN):
        return self.rpc("qp_query", qp_num=qp_num)

    def state(self):
        return self.qp()["qp_state"]

    def cqes(self, cq="cq0"):
        return self.rpc("poll_cq", cq=cq, max=64)

    def statuses(self, cq="cq0"):
        return [(c["wr_id"], c["status"]) for c in self.cqes(cq)]

    def events(self):
        return [e for e in self.rpc("async_events", max=64) if e["event_type"] != "COMM_EST"]

    def event_types(self):
        return [(e["event_type"], e.get("qp_num")) for e in self.events()]

    def delta(self, name):
        return self.rig.counters()[name] - self.start_counters[name]

    def unchanged(self, epsn=E, recv=4, state="RTS"):
        """No completion, no event, ePSN and state as they were, all receive WQEs still there."""
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        q = self.qp()
        self.assertEqual((state, epsn), (q["qp_state"], q["epsn"]))
        if recv is not None:
            self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
            self.rig.run()
            self.assertEqual(["WR_FLUSH_ERR"] * recv, [c["status"] for c in self.cqes()],
                             "receive WQEs that were still posted")

    def fatal(self, psn, event=None, cqe=None, flushed=4, epsn=None):
        """The QP is in ERR; one report, by completion or by event; the rest flushed in order."""
        q = self.qp()
        self.assertEqual(("ERR", psn if epsn is None else epsn), (q["qp_state"], q["epsn"]))
        got = self.cqes()
        statuses = [c["status"] for c in got]
        self.assertEqual(([cqe] if cqe else []) + ["WR_FLUSH_ERR"] * flushed, statuses)
        self.assertEqual(sorted(c["wr_id"] for c in got), [c["wr_id"] for c in got])
        events = self.events()
        self.assertEqual([event] if event else [], [e["event_type"] for e in events])
        if event:
            self.assertEqual(QPN, events[0]["qp_num"])
        # dead to everything that follows
        self.silent(self.feed(self.peer.send_only(psn, b"later"),
                              self.peer.send_only(psn + 1, b"later")), ms=5)
        return events

    def assert_accounting(self):
        """Each packet that came was taken or is one drop: in all, by worker and by port."""
        end = time.monotonic() + self.ACCOUNT_S
        while True:
            try:
                unexplained(self, [self.rig.counters()] + self.rpc("stats", scope="worker") +
                            self.rpc("stats", scope="port"))
                break
            except AssertionError:
                if time.monotonic() >= end:
                    raise


def main():
    unittest.main(verbosity=2 if os.environ.get("VERBOSE") else 1)
