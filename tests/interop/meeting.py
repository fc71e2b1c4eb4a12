# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about connections: one end is watched while it asks for one, or is asked for one.

What it said is told by the names of its messages ("REP, REJ 10"), what its program heard by the
events of librdmacm ("ESTABLISHED"), what its queue pair got by libibverbs' attributes.
"""
import contextlib
import itertools
import time

import mad
import rdmacm
import roce
from dut import RpcError
from ends import LINUX
from scene import Play, bth, counted

MAD_AT = 20         # from the BTH
SOON_S = 0.25       # nothing else comes
WAIT_S = 60         # what has to come; a busy machine is no failure
INIT, RTR, RTS, ERR = 1, 2, 3, 6
LISTENS_NOBODY = 7777
READ_BACK = ("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "max_dest_rd_atomic", "path_mtu")
ENDS = ("ESTABLISHED", "REJECTED", "UNREACHABLE", "CONNECT_ERROR")


class Party:
    """One end: its program listens, asks, answers, and hears."""

    cq = "cm-scenes"    # queue pairs wait in it for the end of TIMEWAIT: it stays
    ready = set()
    names = itertools.count(1)

    def __init__(self, end):
        self.end, self.rpc = end, end.rpc
        self.heard, self.cid, self.qpn = [], None, None
        if end.name not in self.ready:
            self.rpc("cq_create", name=self.cq, cqe=4096)
            self.ready.add(end.name)

    def events(self):
        new = self.more()
        self.heard += new
        return new

    def mine(self):
        return [e for e in self.heard if e["id"] == self.cid]

    def wait(self, *names, wait_s=WAIT_S):
        """The first event of these names; None: it does not come."""
        end = time.monotonic() + wait_s
        while True:
            self.events()
            for e in self.heard:
                if e["event"] in names and self.cid in (None, e["id"]):
                    return e
            if time.monotonic() > end:
                return None
            time.sleep(0.005)

    def asked(self, wait_s=WAIT_S):
        e = self.wait("CONNECT_REQUEST", wait_s=wait_s)
        self.cid = e["id"] if e else None
        return e

    def query(self):
        return self.rpc("qp_query", qp_num=self.qpn)

    def post_recv(self):
        self.rpc("post_recv", qp_num=self.qpn, wrs=[
            {"wr_id": 1, "sg_list": [{"mr": "scratch", "offset": 0, "length": 4096}]}])

    def send(self):
        self.rpc("post_send", qp_num=self.qpn, wrs=[
            {"wr_id": 2, "opcode": "SEND", "send_flags": ["SIGNALED"], "sg_list": [
                {"mr": "src", "offset": 0, "length": 100}]}])

    def completion(self):
        """The next one of my queue pair; the queue also has those of others that were flushed."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            for c in self.end.look(self.cq, 1, 0):
                if c["qp_num"] == self.qpn:
                    return c["status"]
            time.sleep(0.002)
        return "missing"


class Rocelane(Party):
    def template(self, qp_type):
        out = {"qp_type": qp_type, "pd": "pd0", "send_cq": self.cq, "recv_cq": self.cq,
               "cap": rdmacm.CAP}
        if qp_type == "RC":
            out.update(max_rd_atomic=4, max_dest_rd_atomic=4, min_rnr_timer=12, timeout=14,
                       retry_cnt=7, rnr_retry=7, qp_access_flags=rdmacm.ALL_ACCESS)
        return out

    def listen(self, port, ps="TCP"):
        self.listener = "scene%d" % next(self.names)
        return self.rpc("cm_listen", name=self.listener, port="p0", service_port=port, ps=ps,
                        accept="ask", qp=self.template("UD" if ps == "UDP" else "RC"))

    def ask(self, to, port, ps="TCP", **terms):
        got = self.rpc("cm_connect", port="p0", dest_ip=to, service_port=port, ps=ps,
                       timeout_ms=WAIT_S * 1000,
                       qp=self.template("UD" if ps == "UDP" else "RC"), **terms)
        self.cid, self.qpn = got["id"], got["qp_num"]

    def accept(self, **terms):
        self.qpn = self.rpc("cm_accept", id=self.cid, **terms)["qp_num"]

    def reject(self, **terms):
        self.rpc("cm_reject", id=self.cid, **terms)

    def disconnect(self):
        self.rpc("cm_disconnect", id=self.cid)

    def more(self):
        return self.rpc("cm_events", max=64)

    def close(self):
        self.more()
        if hasattr(self, "listener"):
            self.rpc("cm_unlisten", name=self.listener)
        end = time.monotonic() + WAIT_S
        asked = set()
        while time.monotonic() < end:
            alive = [c for c in self.rpc("cm_list") if c["state"] not in ("IDLE", "TIMEWAIT")]
            for c in alive:
                if c["state"] != "DREQ_SENT" and c["id"] not in asked:
                    asked.add(c["id"])
                    with contextlib.suppress(RpcError):     # it has ended meanwhile
                        self.rpc("cm_disconnect", id=c["id"])
            if not alive:
                return
            time.sleep(0.01)


class Linux(Party):
    """By the commands of the kernel's connection manager, as librdmacm gives them."""

    def __init__(self, end):
        super().__init__(end)
        self.ids, self.qps, self.ps = [], [], "TCP"

    def create(self, ps):
        self.ps = ps
        cid = self.rpc("cm_create", ps=ps, name=len(self.ids) + 1)["id"]
        self.ids.append(cid)
        return cid

    def pair(self):
        self.qpn = self.rpc("qp_create", qp_type="UD" if self.ps == "UDP" else "RC",
                            send_cq=self.cq, recv_cq=self.cq, cap=rdmacm.CAP)["qp_num"]
        self.qps.append(self.qpn)
        self.step(INIT)

    def step(self, *states):
        for state in states:
            self.rpc("cm_qp", id=self.cid, qp_num=self.qpn, state=state)

    def listen(self, port, ps="TCP"):
        self.rpc("cm_listen", id=self.create(ps), service_port=port)

    def ask(self, to, port, ps="TCP", **terms):
        self.cid = self.create(ps)
        self.rpc("cm_resolve", id=self.cid, dest_ip=to, service_port=port)
        self.wait("ADDR_RESOLVED", "ADDR_ERROR")
        self.rpc("cm_route", id=self.cid)
        self.wait("ROUTE_RESOLVED", "ROUTE_ERROR")
        self.pair()
        self.rpc("cm_connect", id=self.cid, qp_num=self.qpn, **terms)

    def accept(self, **terms):
        if self.cid not in self.ids:
            self.ids.append(self.cid)
        e = next(e for e in self.heard if e["event"] == "CONNECT_REQUEST")
        for key in ("responder_resources", "initiator_depth"):
            terms.setdefault(key, min(4, e[key]))       # as librdmacm does
        self.pair()
        if self.ps != "UDP":
            self.step(RTR, RTS)
        self.rpc("cm_accept", id=self.cid, qp_num=self.qpn, **terms)

    def reject(self, **terms):
        self.rpc("cm_reject", id=self.cid, **terms)

    def disconnect(self):
        self.rpc("qp_modify", qp_num=self.qpn, qp_state="ERR")
        self.rpc("cm_disconnect", id=self.cid)

    def more(self):
        new = self.rpc("cm_events")
        for e in new:
            if e["event"] == "CONNECT_REQUEST":
                self.ids.append(e["id"])
            elif e["event"] == "CONNECT_RESPONSE" and e["id"] == self.cid:
                self.step(RTR, RTS)
                self.rpc("cm_accept", id=self.cid)
                e["event"] = "ESTABLISHED"
        return new

    def close(self):
        self.more()
        for cid in self.ids:
            self.rpc("cm_destroy", id=cid)
        for qpn in self.qps:
            self.rpc("qp_destroy", qp_num=qpn)


def with_fields(name, **fields):
    """An act: a message with other values."""
    def act(raw):
        at = bth(raw) + MAD_AT + 24
        body = raw[at:at + 232]
        for key, value in fields.items():
            body = mad.put(body, mad.FIELDS[name][key], value)
        return raw[:at] + body + raw[at + 232:]
    return act


def with_header(**fields):
    def act(raw):
        at = bth(raw) + MAD_AT
        head = raw[at:at + 24]
        for key, value in fields.items():
            head = mad.put(head, mad.HEADER[key], value)
        return raw[:at] + head + raw[at + 24:]
    return act


class Meeting(Play):
    """me is watched; the other one is of the other make."""

    ports = itertools.count(8200)

    def __init__(self, wire, me, other, scene):
        super().__init__(wire, me, other, scene)
        make = {LINUX: Linux}
        self.me = make.get(me.name, Rocelane)(me)
        self.other = make.get(other.name, Rocelane)(other)
        self.to_me, self.to_other = self.to_a, self.to_b
        self.port = next(self.ports)
        for party in (self.me, self.other):
            party.more()

    # ---- what the two do ------------------------------------------------------------------------

    def i_ask(self, port=None, ps="TCP", ipv6=False, **terms):
        end = self.other.end
        self.me.ask(end.ip6 if ipv6 else end.ip, port or self.port, ps, **terms)

    def it_asks(self, port=None, ps="TCP", ipv6=False, **terms):
        end = self.me.end
        self.other.ask(end.ip6 if ipv6 else end.ip, port or self.port, ps, **terms)

    def answered(self, client, server, **terms):
        """The server's program says yes; both are established."""
        server.asked()
        server.accept(**terms)
        server.post_recv()
        client.wait(*ENDS)
        server.wait(*ENDS)

    def connected_by_me(self, **terms):
        self.other.listen(self.port)
        self.i_ask(**terms)
        self.answered(self.me, self.other)

    def connected_to_me(self, **terms):
        self.me.listen(self.port)
        self.it_asks(**terms)
        self.answered(self.other, self.me)

    def inject(self, seen, *acts):
        """A message of the other's once more, with changes."""
        raw = seen.raw
        for act in acts:
            raw = act(raw)
        self.wire.inject(self.to_me, roce.with_icrc(raw))

    def i_end_it(self, begun=False):
        """The server's program on Linux has to say yes to that."""
        if not begun:
            self.me.disconnect()
        self.other.wait("DISCONNECTED")
        if self.other.end.name == LINUX:
            self.other.disconnect()
        self.me.wait("DISCONNECTED")

    def established(self):
        """The other one asked; it has work to do first."""
        self.other.wait(*ENDS)
        self.me.wait(*ENDS)

    # ---- what is seen of it ---------------------------------------------------------------------

    def mads(self, to, *names):
        """(frame, message) of one direction, in order."""
        out = []
        for s in self.wire.frames(to, roce.UD_SEND_ONLY):
            if int.from_bytes(s.raw[s.at + 5:s.at + 8], "big") != mad.QPN:
                continue
            m = mad.Mad(s.raw[s.at + MAD_AT:s.at + MAD_AT + mad.LEN])
            if not names or m.name in names:
                out.append((s, m))
        return out

    def heard_of(self, *names):
        """Messages that came to me, of these names; waits for the first."""
        self.wait(lambda: self.mads(self.to_me, *names), WAIT_S)
        return self.mads(self.to_me, *names)

    def answer(self, n=1, wait_s=WAIT_S):
        """My messages since the start, once there are n of them."""
        self.wait(lambda: len(self.mads(self.to_other)) >= n, wait_s)
        return self.mads(self.to_other)

    def said(self, n=1, wait_s=WAIT_S, skip=0, soon=SOON_S):
        """Told: the messages that I sent, n or more of them."""
        self.answer(skip + n, wait_s)
        before = None
        while before != len(self.mads(self.to_other)):
            before = len(self.mads(self.to_other))
            self.wait(lambda b=before: len(self.mads(self.to_other)) > b, soon)
        return ", ".join(word(m) for _, m in self.mads(self.to_other)[skip:]) or "no answer"

    def events(self, party=None, soon=SOON_S):
        """Told: what my program has heard since the start."""
        party = party or self.me
        self.wait(lambda: bool(party.events()) and False, soon)
        return counted([e["event"] if e["event"] != "REJECTED" else "REJECTED %d" % e["status"]
                        for e in party.mine() if not e["event"].endswith("_RESOLVED")])

    def close(self):
        self.wire.calm()
        # Without its program Linux answers a DREQ at once; with it, when the program says so.
        for party in sorted((self.other, self.me), key=lambda p: p.end.name):
            party.close()
        self.wire.clear()


def word(m):
    if m.name == "REJ":
        return "REJ %d" % m.reason
    if m.name == "SIDR_REP":
        return "SIDR_REP %d" % m.status
    if m.name == "MRA":
        return "MRA of %s" % ("REQ", "REP", "LAP")[m.message_mraed]
    return m.name
