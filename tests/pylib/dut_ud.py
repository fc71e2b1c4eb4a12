# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-UD: a QP that takes datagrams of whoever knows its Q_Key."""
import dut
import roce
import variant
from dut import BUF, BUFS, QPN

QKEY = 0x11111111
GRH = 40
PMTU = 1024


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

    # -- sending --

    # Whom datagrams are sent to, by the last byte of the address: (DestQP, TTL).
    PEERS = {2: (0x22, 64), 3: (0x33, 17), 4: (0xFFFFFE, 255)}

    def sender(self, length=2 * PMTU, **qp):
        """ud() with memory to send from."""
        self.ud(**qp)
        self.make("mr_register", name="lmr", pd="pd0", length=length, access=[],
                  fill="pattern:9")
        self.send_id = 100

    @staticmethod
    def address(host=2, **kw):
        """The address vector of one of PEERS."""
        ah = {"dest_ip": ("2001:db8::%d" if variant.v6() else "192.0.2.%d") % host,
              "dest_mac": "02:00:00:00:00:2%d" % host, "hop_limit": UdCase.PEERS[host][1]}
        if variant.vlan() is not None:
            ah["vlan"] = variant.vlan()
        return {k: v for k, v in {**ah, **kw}.items() if v is not None}

    def to(self, host=2, qkey=QKEY, qpn=None, **ah):
        return {"ah_attr": self.address(host, **ah), "remote_qkey": qkey,
                "remote_qpn": self.PEERS[host][0] if qpn is None else qpn}

    def wr(self, length=None, opcode="SEND", ud=None, **kw):
        wr = {"wr_id": self.send_id, "opcode": opcode, "ud": ud or self.to(),
              "send_flags": ["SIGNALED"]}
        self.send_id += 1
        if length is not None:
            wr["sg_list"] = [{"mr": "lmr", "offset": 0, "length": length}]
        wr.update(kw)
        return {k: v for k, v in wr.items() if v is not None}

    def post_raw(self, *wrs):
        return self.rpc("post_send", qp_num=QPN, wrs=list(wrs))

    def post(self, *wrs):
        """Post all of them. The frames that left."""
        result = self.post_raw(*wrs)
        self.assertEqual((len(wrs), None), (result["posted"], result["refused"]))
        return self.feed()

    def peer_for(self, frame):
        host = int(frame.dst_ip.rsplit(":" if ":" in frame.dst_ip else ".")[-1])
        qpn, ttl = self.PEERS.get(host, (frame.qpn, 64))
        return self.peer.with_(src_ip=frame.dst_ip, src_mac="02:00:00:00:00:2%d" % host,
                               own_qpn=qpn, ttl=ttl, vlan=frame.vlan)

    def succeeded(self, *ids):
        self.assertEqual([(i, "SUCCESS") for i in ids], self.statuses())

    # -- verdicts --

    def received(self, *want):
        """(wr_id, payload) of receives that completed, in order, and nothing else did."""
        self.assertEqual([(i, "SUCCESS", len(p) + GRH) for i, p in want],
                         [(c["wr_id"], c["status"], c["byte_len"]) for c in self.cqes()])
        for i, p in want:
            self.assertEqual(p, self.slot(i, GRH + len(p))[GRH:])

    def alive(self):
        self.assertEqual(("RTS", []), (self.state(), self.events()))
