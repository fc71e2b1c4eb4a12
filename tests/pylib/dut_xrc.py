# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-XRC: a domain with an SRQ, a target, and an initiator."""
import dut
import dut_req
import roce
from dut import ALL_REMOTE, BUF, BUFS, MR_LEN, PEER_QPN, QPN, RKEY, VA, E
from dut_req import S
from roce import XRC

SRQN, SRQN2 = 0x123, 0x456
NOT_OF_TARGET = ("send_cq", "recv_cq", "cap", "retry_cnt", "rnr_retry", "max_rd_atomic")
NOT_OF_INITIATOR = ("recv_cq", "min_rnr_timer", "max_dest_rd_atomic")


class XrcCase(dut_req.ReqCase):

    @classmethod
    def peer_of(cls, v6=None, **kw):
        return super().peer_of(v6, **{"service": XRC, "srqn": SRQN, **kw})

    def expect(self, got, *want):
        """What is typed for RC is XRC's; all of it belongs to the service."""
        want = [w for group in want for w in (group if isinstance(group, list) else [group])]
        for w in want:
            w.opcode |= XRC
        super().expect(got, *want)

    # -- target --

    def target(self, recv=4, srqs=1, cqe=64, size=BUF, pd="pd0", v6=None, **qp):
        """Fresh objects: srq0 (and srq1), each with a CQ; an XRC_RECV QP."""
        self.clear()
        self.peer = self.peer_of(v6, mtu=qp.get("path_mtu", 1024))
        self.make("xrcd_create", name="xrcd0")
        self.make("mr_register", name="mr0", pd="pd0", length=MR_LEN, addr=hex(VA), rkey=hex(RKEY),
                  access=ALL_REMOTE)
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        for i in range(srqs):
            self.make("cq_create", name="xcq%d" % i, cqe=cqe)
            self.xrc_srq("srq%d" % i, (SRQN, SRQN2)[i], cq="xcq%d" % i)
        self.make("qp_create", **self.target_params(v6=v6, pd=pd, **qp))
        self.wr_id = 0
        for i in range(srqs):
            self.post_srq(recv, "srq%d" % i, size)
        self.drain()

    def xrc_srq(self, name, number, **kw):
        params = {"name": name, "pd": "pd0", "srq_type": "XRC", "xrcd": "xrcd0", "cq": "xcq0",
                  "srq_num": number, "max_wr": 16, "max_sge": 4}
        params.update(kw)
        return self.make("srq_create", **{k: v for k, v in params.items() if v is not None})

    def target_params(self, v6=None, **qp):
        return self.qp_params(v6=v6, **{"qp_type": "XRC_RECV", "xrcd": "xrcd0",
                                        **{k: None for k in NOT_OF_TARGET}, **qp})

    def post_srq(self, n=1, srq="srq0", size=BUF, **sge):
        for _ in range(n):
            entry = {"mr": "rbuf", "offset": self.wr_id % BUFS * BUF, "length": size, **sge}
            result = self.rpc("post_srq_recv", srq=srq,
                              wrs=[{"wr_id": self.wr_id, "sg_list": [entry]}])
            self.assertEqual((1, None), (result["posted"], result["refused"]))
            self.wr_id += 1

    def posted(self, srq="srq0"):
        return self.rpc("srq_query", name=srq)["posted"]

    def to(self, srqn):
        """The same peer, whose requests name another SRQ."""
        return self.peer.with_(srqn=srqn)

    def done(self, cq="xcq0"):
        return [(c["wr_id"], c["status"], c["byte_len"], c["qp_num"]) for c in self.cqes(cq)]

    def ok(self, *ids, length=None, qpn=QPN):
        return [(i, "SUCCESS", length, qpn) for i in ids]

    def dead(self, event, psn=E):
        """The target is in ERR, its owner heard of it, and it answers nothing any more."""
        q = self.qp()
        self.assertEqual(("ERR", psn), (q["qp_state"], q["epsn"]))
        self.assertEqual([(event, QPN)] if event else [], self.event_types())
        self.silent(self.feed(self.peer.send_only(psn, b"later")), ms=5)

    # -- initiator --

    def initiator(self, **qp):
        """F-REQ with an XRC_SEND QP."""
        self.req(**{"qp_type": "XRC_SEND", **{k: None for k in NOT_OF_INITIATOR}, **qp})

    def wr(self, opcode, length=None, offset=0, **kw):
        return super().wr(opcode, length, offset, **{"xrc_remote_srqn": SRQN, **kw})


__all__ = ["XrcCase", "SRQN", "SRQN2", "XRC", "QPN", "PEER_QPN", "E", "S", "dut", "roce"]
