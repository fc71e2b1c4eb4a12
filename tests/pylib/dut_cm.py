# SPDX-License-Identifier: BSD-3-Clause
"""Fixtures F-CM-P (the DUT listens) and F-CM-A (it connects): a tester that speaks MADs."""
import ipaddress

import dut
import mad
import roce
from dut import BUF, BUFS

PORT, SERVICE = 7471, 0x1061D2F
PEER_ID, PEER_QPN, PEER_PSN, PEER_GUID = 0x51, 0x234, 0x123456, 0x0200CCFFFE000002
RESPONSE, TID = 20, 0xABC0
QP = {"qp_type": "RC", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0", "max_rd_atomic": 16,
      "max_dest_rd_atomic": 16, "min_rnr_timer": 12, "timeout": 14,
      "qp_access_flags": ["REMOTE_WRITE", "REMOTE_READ", "REMOTE_ATOMIC"],
      "cap": {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4, "max_recv_sge": 4}}


def gid(text):
    ip = ipaddress.ip_address(text)
    return ip.packed if ip.version == 6 else bytes(10) + b"\xff\xff" + ip.packed


def four(text):
    ip = ipaddress.ip_address(text)
    return ip.packed if ip.version == 6 else bytes(12) + ip.packed


class CmCase(dut.DutCase):

    def cm(self, accept="always", listen=True, v6=None, **qp):
        """Fresh objects, and a listener."""
        self.clear()
        self.peer = self.peer_of(v6).with_(qpn=mad.QPN, own_qpn=mad.QPN)
        self.make("cq_create", name="cq0", cqe=64)
        self.make("mr_register", name="rbuf", pd="pd0", length=BUF * BUFS, access=["LOCAL_WRITE"])
        self.template = {**QP, **qp}
        self.wr_id = 0
        self.tid = TID
        if listen:
            self.rpc("cm_listen", name="l0", port="p0", service_port=PORT, accept=accept,
                     qp=self.template)
        self.drain()
        while self.rpc("cm_events", max=64):
            pass

    def tearDown(self):
        self.end_connections()
        super().tearDown()

    def end_connections(self):
        """Whatever a test has left goes, QPs with it."""
        for name in ("l0", "l1", "l2"):
            try:
                self.rpc("cm_unlisten", name=name)
            except dut.RpcError:
                pass
        for _ in range(60):
            left = [c for c in self.rpc("cm_list") if c["state"] != "IDLE"]
            if not left:
                return
            for c in left:
                try:
                    self.rpc("cm_disconnect", id=c["id"])
                except dut.RpcError:
                    pass
            self.hang_up()
        raise AssertionError("connections stay: %r" % left)

    def hang_up(self):
        """Answer every DREQ, and let TIMEWAIT pass."""
        for m in self.mads(self.feed(ns=dut.MS)):
            if m.name == "DREQ":
                self.feed(self.datagram(mad.make("DREP", m.tid, local_comm_id=m.remote_comm_id,
                                                 remote_comm_id=m.local_comm_id)))
        self.mads(self.feed(ns=5000 * dut.MS))

    # -- the tester's messages --

    def datagram(self, data, qkey=mad.QKEY, src=mad.QPN, **kw):
        ext = roce.deth(qkey, src)
        return self.peer.packet(roce.UD_SEND_ONLY, 0, data, ext, ack=0, mig=0, **kw)

    def answers(self, *messages, ns=0):
        """Messages in; those of the DUT, each in a right envelope (CM-01, CM-02)."""
        return self.mads(self.feed(*[self.datagram(m) for m in messages], ns=ns))

    def wait(self, ms, step_ms=1):
        """Messages of the DUT while time goes by in small steps."""
        got = []
        for _ in range(int(ms / step_ms)):
            got += self.mads(self.feed(ns=int(step_ms * dut.MS)))
        return got

    def mads(self, frames):
        return [self.open(f) for f in frames if f.qpn == mad.QPN]

    def open(self, f):
        self.assertEqual((roce.UD_SEND_ONLY, 0xFFFF, 0, 288, mad.LEN, mad.QKEY, mad.QPN),
                         (f.opcode, f.pkey, f.pad, f.udp_len, len(f.payload), f.qkey, f.src_qpn))
        m = mad.Mad(f.payload)
        self.assertEqual({"base_version": 1, "mgmt_class": 7, "class_version": 2, "method": 3,
                          "status": 0, "class_specific": 0, "reserved": 0, "attr_mod": 0},
                         {k: v for k, v in m.header.items() if k not in ("tid", "attr_id")})
        self.assertEqual(bytes(232), m.reserved)
        return m

    def one(self, name, got):
        self.assertEqual([name], [m.name for m in got], got)
        return got[0]

    def req(self, header=None, user=b"hello", ip=None, **fields):
        us, them = self.peer.src_ip, self.peer.dst_ip
        head = mad.make_ip_header(6 if self.peer.v6 else 4, four(us), four(them))
        values = {"local_comm_id": PEER_ID, "service_id": SERVICE, "local_ca_guid": PEER_GUID,
                  "local_qpn": PEER_QPN, "starting_psn": PEER_PSN, "responder_resources": 3,
                  "initiator_depth": 2, "remote_cm_response_timeout": RESPONSE,
                  "local_cm_response_timeout": RESPONSE, "retry_count": 2, "rnr_retry_count": 3,
                  "pkey": 0xFFFF, "path_mtu": 3, "max_cm_retries": 3,
                  "primary_local_lid": 0xFFFF, "primary_remote_lid": 0xFFFF,
                  "primary_local_gid": gid(us), "primary_remote_gid": gid(them),
                  "primary_hop_limit": 64, "primary_local_ack_timeout": 12,
                  "private_data": (head if ip is None else ip) + user}
        values.update(fields)
        return mad.make("REQ", self.tid, header, **values)

    def reply(self, name, to, tid=None, **fields):
        """An answer to, or a message of the connection of, this message of the DUT."""
        fields = {"local_comm_id": PEER_ID, "remote_comm_id": to.local_comm_id, **fields}
        return mad.make(name, to.tid if tid is None else tid, **fields)

    def rep(self, req, **fields):
        return self.reply("REP", req, **{
            "local_qpn": PEER_QPN, "starting_psn": PEER_PSN, "responder_resources": 1,
            "initiator_depth": 1, "target_ack_delay": 15, "rnr_retry_count": 1,
            "local_ca_guid": PEER_GUID, **fields})

    # -- connections --

    def connect(self, **params):
        """The DUT asks. Its id, QPN, and the REQ."""
        got = self.rpc("cm_connect", **{
            "port": "p0", "dest_ip": self.peer.src_ip, "service_port": PORT, "qp": self.template,
            **params})
        return got["id"], got["qp_num"], self.one("REQ", self.mads(self.feed()))

    def accepted(self, **fields):
        """The DUT is asked and says yes: its REP."""
        return self.one("REP", self.answers(self.req(**fields)))

    def passive_up(self, **fields):
        rep = self.accepted(**fields)
        self.assertEqual([], self.answers(self.reply("RTU", rep)))
        self.heard("ESTABLISHED")
        return rep

    def active_up(self, **params):
        cid, qpn, req = self.connect(**params)
        self.one("RTU", self.answers(self.rep(req)))
        self.heard("ESTABLISHED")
        return cid, qpn, req

    def heard(self, *names):
        got = self.rpc("cm_events", max=64)
        self.assertEqual(list(names), [e["event"] for e in got], got)
        return got

    def listed(self, cid=None):
        got = [c for c in self.rpc("cm_list") if cid is None or c["id"] == cid]
        self.assertTrue(got)
        return got[-1] if cid is not None else got

    def of_qp(self, qpn):
        return [c for c in self.rpc("cm_list") if c["qp_num"] == qpn][-1]

    def cm_count(self, name):
        return self.delta(name)

    def data_peer(self, qpn):
        """The tester's end of the connection itself."""
        return self.peer.with_(qpn=qpn, own_qpn=PEER_QPN)

    def peer_for(self, frame):
        return self.peer if frame.qpn == mad.QPN else self.peer.with_(own_qpn=frame.qpn)
