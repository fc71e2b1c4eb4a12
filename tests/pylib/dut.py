# SPDX-License-Identifier: BSD-3-Clause
"""The device under test from Python: frames in and frames out, requests, counters.

DutCase is the base of the tests: one process (stepped.py, or tests/realtime/livenet.py) for each
class, or for several that have the same configuration (sharing), fresh objects for each test. Every
frame that leaves is checked (roce.check_frame), and after each test every received packet must be
accounted for.
"""
import itertools
import json
import os
import sys
import time
import unittest

import variant
from stepped import (  # noqa: F401
    DutDied, Stepped, base_config, drop_counters, unexplained)
from dut_replies import Ack, AtomicAck, Nak, ReadResponse, Reply, Rnr  # noqa: F401
from jsonrpc import RpcError
from roce import Frame, Peer, check_frame

MS = 1_000_000

E = 0x100                       # the DUT's expected PSN
QPN, PEER_QPN = 0x11, 0x22
VA, RKEY, MR_LEN = 0x10000000, 0x00C0FFEE, 65536
BUF, BUFS = 4096, 16            # receive buffers: slot i of region "rbuf" is i * BUF
ALL_REMOTE = ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"]


class DutCase(unittest.TestCase):
    """F-RESP: call self.resp() first; it may be called again for a fresh QP."""

    CONFIG = {}
    CC = False                  # do its QPs react to marks (ECT(0))?
    FIXED = {}                  # what it is about (variant.py), if its tests are about one value
    ACCOUNT_S = 0               # for how long counters may still move
    ALONE = False               # its process has to be a new one, in any case
    dut = None
    maxDiff = None
    sharing = False             # may a class have the process of the class before?
    spare = None                # that process, and what was made there

    @classmethod
    def setUpClass(cls):
        cls.start()

    @classmethod
    def start(cls):
        config = cls.config()
        cls.made = []
        if DutCase.spare is not None and not cls.take_spare(config):
            DutCase.end_spare()
        if cls.dut is None or cls.dut.proc.poll() is not None:
            cls.dut = Stepped(config)
            if DutCase.sharing:
                cls.dut.config, cls.dut.at_first = config, cls.condition(cls.dut)

    @classmethod
    def config(cls):
        with variant.held(cls.FIXED):
            return variant.config(base_config(**cls.CONFIG))

    @staticmethod
    def condition(dut):
        """What a process is like for whoever gets it."""
        ports = [{k: v for k, v in p.items() if k != "counters"} for p in dut.rpc("port_list")]
        return [ports] + [dut.rpc(m) for m in ("save_config", "neighbor_list", "qp_count",
                                              "cm_list")]

    @classmethod
    def take_spare(cls, config):
        """The process of the class before, if it is as it was when it was new."""
        dut, made = DutCase.spare
        if cls.ALONE or dut.config != config:
            return False
        cls.dut, cls.made = dut, made
        try:
            cls.clear()
            same = cls.condition(dut) == dut.at_first
        except AssertionError:
            same = False
        if same:
            DutCase.spare = None
        else:
            cls.dut, cls.made = None, []
        return same

    @staticmethod
    def end_spare():
        """The last class's process, if it has one still, ends as it should."""
        if DutCase.spare is not None:
            dut, DutCase.spare = DutCase.spare[0], None
            DutCase.end_process(dut)

    @staticmethod
    def end_process(dut):
        died = dut.proc.poll() is not None
        rc = dut.close()
        if rc != 0 and not died:
            raise DutDied("rocelane-stepped ended with %s\n%s" % (rc, dut.last_stderr[-8000:]))

    def run(self, result=None):
        test = getattr(self, self._testMethodName)
        with variant.held({**self.FIXED, **getattr(test, "variant_fixed", {})}):
            return super().run(result)

    @classmethod
    def tearDownClass(cls):
        dut, cls.dut = cls.dut, None
        if dut is None:
            return
        if DutCase.sharing and not cls.ALONE and dut.proc.poll() is None:
            DutCase.spare = dut, cls.made
        else:
            DutCase.end_process(dut)

    def setUp(self):
        if self.dut.proc.poll() is not None:
            type(self).dut.close()
            self.start()
        self.peer = self.peer_of()

    def tearDown(self):
        try:
            if self.dut.proc.poll() is None:
                self.assert_accounting()
        except AssertionError:
            self.dump()
            raise
        if not self._outcome.success:
            self.dump()

    def dump(self):
        if self.dut.proc.poll() is not None:
            print("dut's standard error:\n" + self.dut.stderr()[-8000:], file=sys.stderr)
            return
        print("--- %s" % self.id(), file=sys.stderr)
        for method, params in (("qp_query", {"qp_num": QPN}), ("stats", {"scope": "total"}),
                               ("trace_read", {"qp_num": QPN})):
            try:
                result = self.dut.rpc(method, **params)
                if method == "stats":
                    result = {k: v for k, v in self.dut.counters().items() if v}
                print("%s: %s" % (method, json.dumps(result)), file=sys.stderr)
            except (RpcError, AssertionError) as e:
                print("%s: %s" % (method, e), file=sys.stderr)
        print(self.dut.stderr()[-2000:], file=sys.stderr)

    # -- objects --

    @staticmethod
    def peer_of(v6=None, **kw):
        """The far end of the fixtures' QP; over IPv4 or IPv6 as the variant says."""
        if variant.v6() if v6 is None else v6:
            kw = {"src_ip": "2001:db8::2", "dst_ip": "2001:db8::1", **kw}
        return Peer(**{"vlan": variant.vlan(), **kw})

    @staticmethod
    def peer_address(v6=None, **kw):
        """Its address, as a QP has it."""
        if variant.v6() if v6 is None else v6:
            kw = {"dest_ip": "2001:db8::2", **kw}
        if variant.vlan() is not None:
            kw = {"vlan": variant.vlan(), "vlan_priority": 2, **kw}
        return {"dest_ip": "192.0.2.2", "dest_mac": "02:00:00:00:00:22", "hop_limit": 64, **kw}

    @classmethod
    def rpc(cls, method, **params):
        return cls.dut.rpc(method, **params)

    def make(self, method, **params):
        """Create an object that goes away with the next resp()."""
        others = 0
        if method == "qp_create":
            if variant.handed_over() and params.get("port") == "p0":
                params.setdefault("worker", 1)
            # From 256 of a template on they are compact (lib/qp/qp_parts.h).
            if variant.qps() > 1 and not {"count", "recv_feed", "srq", "xrcd"} & set(params):
                others = variant.qps() - 1
                params["count"] = variant.qps()
        result = self.rpc(method, **params)
        if others:
            first = result["qp_num"]
            self.dut.rpc_many("qp_destroy", "qp_num", range(first + others, first, -1))
        if method == "qp_create" and variant.traced():
            self.rpc("trace_start", qp_num=result["qp_num"])
        key = {"qp_num": result["qp_num"]} if method == "qp_create" else {"name": params["name"]}
        undo = {"qp_create": "qp_destroy", "mr_register": "mr_deregister",
                "cq_create": "cq_destroy", "srq_create": "srq_destroy",
                "pd_create": "pd_dealloc", "mw_alloc": "mw_dealloc",
                "xrcd_create": "xrcd_dealloc"}[method]
        self.made.append((undo, key))
        return result

    @classmethod
    def clear(cls):
        while cls.made:
            method, key = cls.made.pop()
            try:
                cls.rpc(method, **key)
            except RpcError as e:
                # A test may have removed a region or a window itself.
                if method not in ("mr_deregister", "mw_dealloc"):
                    raise AssertionError("%s %s: %s" % (method, key, e)) from e

    def resp(self, recv=4, v6=None, mr_access=None, cqe=64, mr_fill="zero", mr_params=None, **qp):
        """Fresh objects of F-RESP; `qp` overrides attributes of the QP."""
        self.clear()
        self.peer = self.peer_of(v6, mtu=qp.get("path_mtu", 1024))
        self.make("cq_create", name="cq0", cqe=cqe)
        self.make("mr_register", name="mr0", pd="pd0", length=MR_LEN, addr=hex(VA), rkey=hex(RKEY),
                  access=ALL_REMOTE if mr_access is None else mr_access, fill=mr_fill,
                  **(mr_params or {}))
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("qp_create", **self.qp_params(v6=v6, **qp))
        self.wr_id = 0
        self.post_recv(recv)
        self.drain()

    def qp_params(self, v6=None, **qp):
        params = {
            "qp_num": QPN, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
            "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": PEER_QPN,
            "rq_psn": E, "sq_psn": 0x200,
            "ah_attr": self.peer_address(v6),
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

    def in_sqd(self, **attrs):
        """The QP is brought from RTS to SQD, modified there, and brought back."""
        for state, kw in (("SQD", {}), ("SQD", attrs), ("RTS", {})):
            self.rpc("qp_modify", qp_num=QPN, qp_state=state, **kw)

    def drain(self):
        """Leftovers of earlier tests and of set-up."""
        self.dut.run()
        while self.rpc("async_events", max=64):
            pass
        while self.rpc("rx_errors", max=64):
            pass
        self.start_counters = self.dut.counters()

    def post_recv(self, n=1, size=BUF, qp_num=QPN):
        """n receive WQEs of one SGE, each with the next slot of "rbuf"; wr_id counts from 0."""
        for _ in range(n):
            self.post_recv_sges([{"mr": "rbuf", "offset": self.wr_id % BUFS * BUF, "length": size}],
                                qp_num)

    def post_recv_sges(self, sges, qp_num=QPN):
        result = self.rpc("post_recv", qp_num=qp_num, wrs=[{"wr_id": self.wr_id, "sg_list": sges}])
        self.assertEqual(result["posted"], 1, result)
        self.wr_id += 1

    def aeq(self, qp_num, code, source, wqe=0):
        """A record of the QP in its worker's event queue. What the command says, [] if all is well.
        """
        return self.dut.command("aeq %d %d %d %d %d" % (variant.handed_over(), qp_num, code, source,
                                                       wqe))

    def mem(self, offset, length, mr="mr0"):
        return bytes.fromhex(self.rpc("mr_read", name=mr, offset=offset, length=length)["data"])

    def set_mem(self, offset, data, mr="mr0"):
        self.rpc("mr_write", name=mr, offset=offset, data=data.hex())

    def slot(self, i, length):
        """What lies in the receive buffer of wr_id i."""
        return self.mem(i % BUFS * BUF, length, "rbuf")

    # -- stimulus --

    def peer_for(self, frame):
        """The peer that this frame of the DUT's has to be right for."""
        return self.peer

    def is_roce(self, raw):
        """Of what leaves: is it to be decoded and checked?"""
        return True

    def feed(self, *frames, ns=0, port=0):
        """Frames in, then turn until idle. The DUT's frames, each checked and decoded."""
        for frame in itertools.chain.from_iterable(
                f if isinstance(f, list) else [f] for f in frames):
            self.dut.rx(frame, port)
        out = []
        for out_port, raw in self.dut.run(ns):
            if not self.is_roce(raw):
                continue
            self.assertEqual(out_port, port)
            f = Frame(raw)
            check_frame(f, self.peer_for(f), cc=self.CC)
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

    def records(self, want):
        """That many packets are in the error buffer, or none where there is no such buffer."""
        got = self.rpc("rx_errors", max=16)
        self.assertEqual(want if variant.errbuf() else 0, len(got), got)
        return got

    def events(self):
        return [e for e in self.rpc("async_events", max=64) if e["event_type"] != "COMM_EST"]

    def event_types(self):
        return [(e["event_type"], e.get("qp_num")) for e in self.events()]

    def delta(self, name):
        return self.dut.counters()[name] - self.start_counters[name]

    def unchanged(self, epsn=E, recv=4, state="RTS"):
        """No completion, no event, ePSN and state as they were, all receive WQEs still there."""
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        q = self.qp()
        self.assertEqual((state, epsn), (q["qp_state"], q["epsn"]))
        if recv is not None:
            self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
            self.dut.run()
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
                unexplained(self, [self.dut.counters()] + self.rpc("stats", scope="worker") +
                            self.rpc("stats", scope="port"))
                break
            except AssertionError:
                if time.monotonic() >= end:
                    raise


def main():
    unittest.main(verbosity=2 if os.environ.get("VERBOSE") else 1)
