# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-MW: a region that windows may be bound to, and both ends of an RC queue pair."""
import dut
import dut_req
import roce
from dut import ALL_REMOTE, E, QPN, Ack, Nak

BVA, BKEY, BLEN = 0x30000000, 0x0B0B0100, 65536
LOCAL = ["LOCAL_WRITE", "MW_BIND"]
QPN2 = 0x31
RAE = roce.NAK_RAE


def byte_on(rkey, n=1):
    """The key with another low byte."""
    return (rkey & ~0xFF) | ((rkey + n) & 0xFF)


class MwCase(dut_req.ReqCase):

    def mw(self, access=None, recv=0, **qp):
        """Fresh objects; region "base" grants `access`."""
        self.req(recv=recv, **{"qp_access_flags": ALL_REMOTE, **qp})
        self.make("mr_register", name="base", pd="pd0", length=BLEN, addr=hex(BVA),
                  rkey=hex(BKEY), access=LOCAL if access is None else access, fill="zero")
        self.epsn = E
        self.drain()

    def alloc(self, name="w", type=1, pd="pd0"):  # noqa: A002
        """A window; its key."""
        return int(self.make("mw_alloc", name=name, pd=pd, type=type)["rkey"], 0)

    def window(self, name="w"):
        return next(w for w in self.rpc("mw_list") if w["name"] == name)

    def rkey(self, name="w"):
        return int(self.window(name)["rkey"], 0)

    def bind_wr(self, name="w", at=0, length=4096, access=("REMOTE_WRITE", "REMOTE_READ"),
                mr="base", rkey=None, addr=None, **kw):
        b = {"mw": name, "addr": hex(BVA + at if addr is None else addr), "length": length,
             "mw_access_flags": list(access)}
        if mr is not None:
            b["mr"] = mr
        if rkey is not None:
            b["rkey"] = hex(rkey)
        return self.wr("BIND_MW", bind_mw=b, **kw)

    def bind(self, *args, qp_num=QPN, **kw):
        """Bind, which has to succeed. The window's key now."""
        wr = self.bind_wr(*args, **kw)
        self.assertEqual([], self.post(wr, qp_num=qp_num))
        c, = self.cqes()
        self.assertEqual((wr["wr_id"], "SUCCESS", "BIND_MW", 0),
                         (c["wr_id"], c["status"], c["opcode"], c["byte_len"]))
        return self.rkey(args[0] if args else kw.get("name", "w"))

    def bound2(self, **kw):
        """A window of type 2, bound. Its key."""
        key = byte_on(self.alloc(type=2))
        self.assertEqual(key, self.bind(rkey=key, **kw))
        return key

    def inv_wr(self, rkey, **kw):
        return self.wr("LOCAL_INV", invalidate_rkey=hex(rkey), **kw)

    # -- what the peer does through a key --

    def write(self, va, rkey, payload=b"through", peer=None):
        return self.feed((peer or self.peer).write_only(self.epsn, payload, va, rkey))

    def accepted(self, got):
        self.expect(got, Ack(self.epsn))
        self.epsn += 1

    def wrote(self, rkey, at=0, va=None, payload=b"through"):
        """A WRITE through the key is accepted, and the bytes lie there in the region."""
        self.accepted(self.write(BVA + at if va is None else va, rkey, payload))
        self.assertEqual(payload, self.mem(at, len(payload), "base"))

    def denied(self, got):
        """NAK-RAE; the queue pair is in ERR: one more comes instead."""
        self.expect(got, Nak(self.epsn, RAE))
        self.assertEqual("ERR", self.state())
        self.again()

    def again(self):
        """RESET and RTS: what is bound stays bound."""
        for state in ("ERR", "RESET"):
            self.rpc("qp_modify", qp_num=QPN, qp_state=state)
        self.walk_up("RTS")
        self.epsn = E
        self.drain()
        for cq in ("cq0", "rcq"):
            self.cqes(cq)

    def bind_failed(self, *wrs, status="MW_BIND_ERR"):
        """The first request fails, the rest is flushed. Then a fresh queue pair."""
        self.assertEqual([], self.post(*wrs))
        self.assertEqual([status] + ["WR_FLUSH_ERR"] * (len(wrs) - 1),
                         [c["status"] for c in self.cqes()])
        self.assertEqual("ERR", self.state())
        self.assertEqual([], self.events())
        why = self.rpc("qp_explain", qp_num=QPN)
        self.again()
        return why

    def second(self):
        """Another queue pair of the same protection domain, and its peer."""
        self.make("qp_create", **self.qp_params(
            qp_num=QPN2, dest_qp_num=dut.PEER_QPN + 1, recv_cq="rcq", sq_sig_all=True))
        self.drain()
        return self.peer.with_(qpn=QPN2, own_qpn=dut.PEER_QPN + 1)
