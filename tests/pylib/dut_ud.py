# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-UD: a QP that takes datagrams of whoever knows its Q_Key."""
import dut
import roce
import variant
from dut import BUF, BUFS, QPN

QKEY = 0x11111111
GRH = 40


class UdCase(dut.DutCase):

    def ud(self, recv=4, cqe=64, size=BUF, **qp):
        """Fresh objects; `qp` overrides attributes of the QP."""
        self.clear()
        self.peer = self.peer_of()
        self.make("cq_create", name="cq0", cqe=cqe)
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.make("qp_create", **self.ud_params(**qp))
        self.wr_id = 0
        self.post_recv(recv, size)
        self.drain()

    @staticmethod
    def ud_params(**qp):
        params = {"qp_num": QPN, "qp_type": "UD", "port": "p0", "pd": "pd0", "send_cq": "cq0",
                  "recv_cq": "cq0", "qp_state": "RTS", "sq_psn": 0x200, "pkey": "0xffff",
                  "qkey": hex(QKEY), "path_mtu": 1024,
                  "cap": {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4,
                          "max_recv_sge": 4}}
        params.update(qp)
        return {k: v for k, v in params.items() if v is not None}

    def datagram(self, payload=b"", psn=0, qkey=QKEY, src=0x22, imm=None, peer=None, **kw):
        ext = roce.deth(qkey, src)
        if imm is not None:
            ext += roce.imm_dt(imm)
        opcode = roce.UD_SEND_ONLY if imm is None else roce.UD_SEND_ONLY_IMM
        return (peer or self.peer).packet(opcode, psn, payload, ext, **kw)

    def quiet(self, *frames):
        """Frames in, none out (UD-21)."""
        self.silent(self.feed(*frames))

    def head_of(self, frame):
        """The 40 bytes that this frame's receive begins with (UD-14, UD-15)."""
        at = 18 if variant.vlan() is not None else 14
        if variant.v6():
            return frame[at:at + 40]
        return bytes(20) + frame[at:at + 20]

    def received(self, *want):
        """(wr_id, payload) of receives that completed, in order, and nothing else did."""
        self.assertEqual([(i, "SUCCESS", len(p) + GRH) for i, p in want],
                         [(c["wr_id"], c["status"], c["byte_len"]) for c in self.cqes()])
        for i, p in want:
            self.assertEqual(p, self.slot(i, GRH + len(p))[GRH:])

    def alive(self):
        self.assertEqual(("RTS", []), (self.state(), self.events()))
