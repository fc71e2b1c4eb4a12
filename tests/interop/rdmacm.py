# SPDX-License-Identifier: BSD-3-Clause
"""rocelane's end of a connection with a program of librdmacm's in the guest.

What rping, ucmatose and udaddy say to each other after the connection is there is played here, with
work requests over the control socket.
"""
import itertools
import struct
import time

import mad
import roce
from bench import GUEST_IP, GUEST_IP6, GUEST_MAC
from ends import ALL_ACCESS

WAIT_S = 120
GRH = 40
SLOT = 4096     # bytes of a message's place in memory
PING_LEN = 64   # rping's own choice

CAP = {"max_send_wr": 64, "max_recv_wr": 64, "max_send_sge": 1, "max_recv_sge": 1}


def message(*names):
    """A match for wire rules: the connection manager's messages of these names."""
    def matches(seen):
        raw, at = seen.raw, seen.at
        return (seen.opcode == roce.UD_SEND_ONLY and
                int.from_bytes(raw[at + 5:at + 8], "big") == mad.QPN and
                mad.ATTRS.get(int.from_bytes(raw[at + 36:at + 38], "big")) in names)
    return matches


class Ours:
    """Listeners, connections and queue pairs of rocelane's, by its control socket."""

    numbers = itertools.count(1)

    def __init__(self, end):
        self.end, self.rpc = end, end.rpc
        self.n = next(self.numbers)
        self.cq, self.mr = "cm-c%d" % self.n, "cm-m%d" % self.n
        self.rpc("cq_create", name=self.cq, cqe=4096)
        self.region = end.region(self.mr, 128 * SLOT, ["LOCAL_WRITE"] + ALL_ACCESS)
        self.heard, self.listeners, self.done, self.free = [], [], [], set()
        self.qpn = self.cid = 0

    def template(self, qp_type="RC", **more):
        out = {"qp_type": qp_type, "pd": "pd0", "send_cq": self.cq, "recv_cq": self.cq, "cap": CAP}
        if qp_type == "RC":
            out.update(max_rd_atomic=1, max_dest_rd_atomic=1, min_rnr_timer=12, timeout=18,
                       retry_cnt=7, rnr_retry=7, qp_access_flags=ALL_ACCESS)
        return {**out, **more}

    def listen(self, port, accept="ask", ps="TCP", qp=None):
        name = "cm-l%d-%d" % (self.n, len(self.listeners))
        got = self.rpc("cm_listen", name=name, port="p0", service_port=port, ps=ps, accept=accept,
                       backlog=512, qp=qp or self.template())
        self.listeners.append(name)
        return got

    def connect(self, port, ipv6=False, ps="TCP", qp=None, **more):
        got = self.rpc("cm_connect", port="p0", dest_ip=GUEST_IP6 if ipv6 else GUEST_IP, ps=ps,
                       service_port=port, qp=qp or self.template(), timeout_ms=WAIT_S * 1000,
                       **more)
        self.cid, self.qpn = got["id"], got["qp_num"]
        return got

    def datagram(self, ipv6, qpn, qkey):
        """Where a datagram goes. While a neighbour is asked for, they are lost."""
        return {"ah_attr": {"dest_ip": GUEST_IP6 if ipv6 else GUEST_IP, "dest_mac": GUEST_MAC,
                            "hop_limit": 64},
                "remote_qpn": qpn, "remote_qkey": hex(qkey)}

    def until(self, what, look):
        """Ask until it says something."""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            got = look()
            if got:
                return got
            time.sleep(0.005)
        raise AssertionError("no %s; connections: %r; counters: %r" % (
            what, [(c["id"], c["state"], c["event"]) for c in self.rpc("cm_list")][-8:],
            {k: v for k, v in self.rpc("stats").items() if k.startswith("cm_") and v}))

    def event(self, *names, cid=None):
        """The next event of one of these names (and of this connection)."""
        def look():
            self.heard += self.rpc("cm_events", max=64)
            for e in self.heard:
                if e["event"] in names and cid in (None, e["id"]):
                    self.heard.remove(e)
                    return e
                if e["event"] in ("REJECTED", "UNREACHABLE", "CONNECT_ERROR") and \
                        cid in (None, e["id"]):
                    raise AssertionError("%r instead of %r: %r" % (
                        e, names, self.rpc("cm_explain", id=e["id"])["why"]))
            return None
        return self.until("/".join(names), look)

    def answer(self):
        """What becomes of the connection that was asked for last."""
        def look():
            self.heard += self.rpc("cm_events", max=64)
            for e in self.heard:
                if e["id"] == self.cid and e["event"] in (
                        "ESTABLISHED", "REJECTED", "UNREACHABLE"):
                    self.heard.remove(e)
                    return e
            return None
        return self.until("answer", look)

    def accept(self, receives=0):
        """The next peer that asks gets its queue pair, with receives."""
        e = self.event("CONNECT_REQUEST")
        self.cid = e["id"]
        self.qpn = self.rpc("cm_accept", id=self.cid)["qp_num"]
        self.post_recv(*range(receives))
        return e

    def taken(self, cid=None):
        """What rocelane says was agreed, and that the queue pair has it (CM-43)."""
        c = self.rpc("cm_explain", id=cid or self.cid)
        qp = self.rpc("qp_query", qp_num=c["qp_num"])
        for key in ("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "max_dest_rd_atomic",
                    "path_mtu", "dest_qp_num"):
            if qp[key] != c["taken"][key]:
                raise AssertionError("%s: %r, but %r was agreed" % (key, qp[key], c["taken"]))
        return c

    # ---- work requests --------------------------------------------------------------------------

    def post_recv(self, *slots, qpn=None):
        if slots:
            self.rpc("post_recv", qp_num=qpn or self.qpn, wrs=[
                {"wr_id": i, "sg_list": [{"mr": self.mr, "offset": i * SLOT, "length": SLOT}]}
                for i in slots])

    def post(self, opcode, slot, length, **more):
        got = self.rpc("post_send", qp_num=self.qpn, wrs=[{
            "wr_id": 1000 + slot, "opcode": opcode, "send_flags": ["SIGNALED"], "sg_list": [
                {"mr": self.mr, "offset": slot * SLOT, "length": length}], **more}])
        if got["refused"]:
            raise AssertionError("refused: %r" % got)

    def completion(self, wr_ids):
        """The next one of these."""
        def look():
            self.done += self.rpc("poll_cq", cq=self.cq, max=64)
            for c in self.done:
                if c["wr_id"] in wr_ids or c["status"] != "SUCCESS":
                    self.done.remove(c)
                    return c
            return None
        c = self.until("completion", look)
        if c["status"] != "SUCCESS":
            raise AssertionError("%r" % c)
        return c

    def do(self, opcode, slot, length, **more):
        self.post(opcode, slot, length, **more)
        self.completion((1000 + slot,))

    def write(self, slot, data):
        self.rpc("mr_write", name=self.mr, offset=slot * SLOT, data=data.hex())

    def read(self, slot, length, skip=0):
        return bytes.fromhex(self.rpc("mr_read", name=self.mr, offset=slot * SLOT + skip,
                                      length=length)["data"])

    # ---- rping ----------------------------------------------------------------------------------

    def rping_server(self, count):
        """@return the texts that were pinged. Receives 0 and 1 are posted."""
        texts = []
        for i in range(count):
            for op in ("RDMA_READ", "RDMA_WRITE"):
                slot = self.received()["wr_id"]
                addr, rkey, size = struct.unpack(">QII", self.read(slot, 16))
                self.post_recv(slot)
                self.do(op, 10, size, remote_addr=hex(addr), rkey=hex(rkey))
                # The client leaves with the last one: the ACK of that may be lost for ever.
                if (i, op) == (count - 1, "RDMA_WRITE"):
                    self.post("SEND", 11, 16)
                else:
                    self.do("SEND", 11, 16)
            texts.append(self.read(10, PING_LEN).split(b"\0")[0].decode())
        return texts

    def rping_client(self, count):
        """rping's server reads a text from here and writes it back to there."""
        for i in range(count):
            text = (b"rdma-ping-%d: " % i).ljust(PING_LEN - 1, b"x") + b"\0"
            self.write(20, text)
            self.write(21, bytes(PING_LEN))
            for slot in (20, 21):
                self.write(12, struct.pack(">QII", self.region["addr"] + slot * SLOT,
                                           self.region["rkey"], PING_LEN))
                self.do("SEND", 12, 16)
                self.post_recv(self.received()["wr_id"])
            if self.read(21, PING_LEN) != text:
                raise AssertionError("%r came back" % self.read(21, PING_LEN))

    def received(self):
        """The next receive that is complete."""
        return self.completion(range(1000))

    # ---- the end --------------------------------------------------------------------------------

    def disconnect(self):
        self.rpc("cm_disconnect", id=self.cid)
        self.event("DISCONNECTED", cid=self.cid)

    def close(self):
        for name in self.listeners:
            self.rpc("cm_unlisten", name=name)
        for c in self.rpc("cm_list"):
            if c["state"] not in ("IDLE", "TIMEWAIT", "DREQ_SENT"):
                self.rpc("cm_disconnect", id=c["id"])
        self.until("end of TIMEWAIT", lambda: all(
            c["state"] == "IDLE" for c in self.rpc("cm_list")))
        self.rpc("cq_destroy", name=self.cq)
        self.end.drop_region(self.mr)
