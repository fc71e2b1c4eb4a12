# SPDX-License-Identifier: BSD-3-Clause
"""Connections of UC, XRC and UD, over IPv6, and why one did not come about."""
import ipaddress

import dut
import mad
import roce
from dut import BUF, MS
from dut_cm import PEER_ID, PEER_PSN, PEER_QPN, PORT, SERVICE, CmCase, four, gid

UD_SERVICE, UD_QKEY = 0x1111D2F, 0x1234567   # of a UD service unless somebody says another
UC, XRC = 1, 3
SRQN = 0x123


class Services(CmCase):

    def template_of(self, qp_type, *without, **more):
        out = {**self.template, "qp_type": qp_type, **more}
        for key in without:
            del out[key]
        return out

    def listen(self, qp, **kw):
        return self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, qp=qp, **kw)

    def test_listener_of_what_is_not_there(self):
        """No queue pair could be made: nobody listens, and what is saved starts."""
        self.cm(listen=False)
        for key, value in (("pd", "gone"), ("send_cq", "gone"), ("recv_cq", "gone"),
                           ("srq", "gone"), ("worker", 63)):
            with self.subTest(key=key), self.assertRaises(dut.RpcError) as e:
                self.listen(self.template_of("RC", **{key: value}))
            self.assertIn("%s does not exist" % (63 if key == "worker" else '"gone"'),
                          str(e.exception))
        self.rpc("pd_create", name="gone")
        self.listen(self.template_of("RC", pd="gone"))
        self.assertEqual(1, len(self.rpc("save_config")["cm"]["listen"]))
        self.rpc("pd_dealloc", name="gone")
        self.assertEqual([], self.rpc("save_config")["cm"]["listen"])

    UC_HAS_NOT = ("max_rd_atomic", "max_dest_rd_atomic", "min_rnr_timer", "timeout")

    def test_UC_20_CM_31_uc_is_asked(self):
        """Only a REQ for UC fits; its QP has PSNs and nothing of retries."""
        self.cm(listen=False)
        qp = self.template_of("UC", *self.UC_HAS_NOT, qp_access_flags=["REMOTE_WRITE"])
        self.listen(qp)
        for service in (0, 2, XRC):
            self.tid += 1
            rej = self.one("REJ", self.answers(self.req(transport_service_type=service)))
            self.assertEqual(9, rej.reason)
        self.tid += 1
        rep = self.passive_up(transport_service_type=UC)
        q = self.qp(rep.local_qpn)
        self.assertEqual(("UC", "RTS", PEER_QPN, rep.starting_psn, PEER_PSN, 1024),
                         (q["qp_type"], q["qp_state"], q["dest_qp_num"], q["rq_psn"], q["sq_psn"],
                          q["path_mtu"]))
        self.post_recv(1, qp_num=rep.local_qpn)
        peer = self.data_peer(rep.local_qpn).with_(service=roce.UC)
        self.assertEqual([], self.feed(peer.send_only(rep.starting_psn, b"data")))
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_CM_05_CM_12_uc_asks(self):
        self.cm(listen=False)
        self.template = self.template_of("UC", *self.UC_HAS_NOT,
                                         qp_access_flags=["REMOTE_WRITE"])
        _, qpn, req = self.active_up()
        self.assertEqual((UC, 0), (req.transport_service_type, req.extended_transport))
        self.assertEqual(("RTS", PEER_PSN), tuple(
            self.qp(qpn)[k] for k in ("qp_state", "sq_psn")))

    def test_XRC_01_CM_09_xrc_is_asked(self):
        """A target is named in the REP as an EE context, and serves SRQs."""
        self.cm(listen=False)
        self.make("xrcd_create", name="xrcd0")
        self.make("srq_create", name="srq0", pd="pd0", srq_type="XRC", xrcd="xrcd0", cq="cq0",
                  srq_num=SRQN, max_wr=16, max_sge=1)
        self.rpc("post_srq_recv", srq="srq0", wrs=[
            {"wr_id": 3, "sg_list": [{"mr": "rbuf", "offset": 0, "length": BUF}]}])
        with self.assertRaises(dut.RpcError) as e:
            self.listen(self.template_of("XRC_SEND", "recv_cq", "min_rnr_timer",
                                         "max_dest_rd_atomic", "cap"))
        self.assertIn("its peer is XRC_RECV", str(e.exception))
        self.listen(self.template_of("XRC_RECV", "send_cq", "recv_cq", "cap", "max_rd_atomic",
                                     xrcd="xrcd0"))
        rep = self.accepted(transport_service_type=XRC, extended_transport=1)
        self.assertEqual((0, 1), (rep.local_qpn, rep.srq))
        qpn = rep.local_eecn
        self.assertEqual([], self.answers(self.reply("RTU", rep)))
        self.heard("ESTABLISHED")
        q = self.qp(qpn)
        self.assertEqual(("XRC_RECV", "RTS", rep.starting_psn, 2),
                         (q["qp_type"], q["qp_state"], q["rq_psn"], q["max_dest_rd_atomic"]))
        peer = self.data_peer(qpn).with_(service=roce.XRC, srqn=SRQN)
        acks = self.feed(peer.send_only(rep.starting_psn, b"data"))
        self.assertEqual([rep.starting_psn], [f.psn for f in acks])
        self.assertEqual([(3, "SUCCESS")], self.statuses())

    def test_XRC_01_CM_12_xrc_asks(self):
        self.cm(listen=False)
        self.template = self.template_of("XRC_SEND", "recv_cq", "min_rnr_timer",
                                         "max_dest_rd_atomic",
                                         cap={"max_send_wr": 16, "max_send_sge": 4})
        _, qpn, req = self.connect(retry_count=5)
        self.assertEqual((XRC, 1), (req.transport_service_type, req.extended_transport))
        self.one("RTU", self.answers(self.rep(req, local_qpn=0, local_eecn=PEER_QPN)))
        self.heard("ESTABLISHED")
        q = self.qp(qpn)
        self.assertEqual(("RTS", PEER_QPN, PEER_PSN, 5, 1), (
            q["qp_state"], q["dest_qp_num"], q["sq_psn"], q["retry_cnt"], q["rnr_retry"]))
        with self.assertRaises(dut.RpcError) as e:
            self.connect(qp={"qp_type": "XRC_RECV", "pd": "pd0", "xrcd": "xrcd0"})
        self.assertIn("it is asked", str(e.exception))

    # -- datagrams --

    UD = {"qp_type": "UD", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0",
          "cap": {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4, "max_recv_sge": 4}}

    def sidr(self, **params):
        """The DUT asks where datagrams may go. Its id, QPN, and the SIDR_REQ."""
        got = self.rpc("cm_connect", **{
            "port": "p0", "dest_ip": self.peer.src_ip, "service_port": PORT, "ps": "UDP",
            "qp": self.UD, **params})
        return got["id"], got["qp_num"], self.one("SIDR_REQ", self.mads(self.feed()))

    def sidr_rep(self, req, **fields):
        return mad.make("SIDR_REP", req.tid, **{
            "request_id": req.request_id, "service_id": req.service_id, "qpn": PEER_QPN,
            "qkey": 0x777, **fields})

    def test_CM_41_CM_07_sidr_asks(self):
        self.cm(listen=False)
        cid, qpn, req = self.sidr(private_data="0102")
        self.assertEqual((UD_SERVICE, 0xFFFF), (req.service_id, req.pkey))
        self.assertNotIn(0, (req.request_id, req.tid))
        us, them = self.peer.dst_ip, self.peer.src_ip
        head = mad.ip_header(req.private_data)
        self.assertEqual((6 if self.peer.v6 else 4, four(us), four(them)), (
            head["ip_version"], head["source_ip"].to_bytes(16, "big"),
            head["destination_ip"].to_bytes(16, "big")))
        self.assertEqual(b"\1\2" + bytes(178), req.private_data[36:])
        self.assertEqual("SIDR_REQ_SENT", self.listed(cid)["state"])
        for wrong in ({"request_id": 1}, {}):
            other = self.sidr_rep(req, **wrong) if wrong else \
                mad.make("SIDR_REP", req.tid + 1, request_id=req.request_id, qpn=9, qkey=9)
            self.assertEqual([], self.answers(other))
            self.heard()
        for _ in range(2):
            self.assertEqual([], self.answers(self.sidr_rep(req, private_data=b"well")))
        event = self.heard("ESTABLISHED")[0]
        self.assertEqual((cid, qpn, PEER_QPN, 0x777, b"well"), (
            event["id"], event["qp_num"], event["peer"]["qp_num"], event["peer"]["qkey"],
            bytes.fromhex(event["private_data"])[:4]))
        q = self.qp(qpn)
        self.assertEqual(("RTS", UD_QKEY), (q["qp_state"], int(str(q["qkey"]), 0)))
        self.assertEqual(1, self.cm_count("cm_rx_duplicates"))
        why = self.rpc("cm_explain", id=cid)
        self.assertEqual(("SIDR_REP_RCVD", ["datagrams go to QP %d with Q_Key 0x777" % PEER_QPN]),
                         (why["state"], why["why"]))
        self.assertEqual([], self.wait(100, 10))
        self.rpc("cm_disconnect", id=cid)
        self.assertEqual([], self.mads(self.feed()))
        with self.assertRaises(dut.RpcError):
            self.qp(qpn)

    def test_CM_41_CM_27_sidr_of_nobody(self):
        """Not answered: repeated, unchanged. Answered with no: told at once."""
        self.cm(listen=False)
        cid, _, req = self.sidr(timeout_ms=1000)
        got = self.wait(1100, 10)
        self.assertEqual({req.data}, {m.data for m in got})
        self.assertTrue(0 < len(got) <= 15)
        self.assertEqual(110, self.heard("UNREACHABLE")[0]["status"])
        self.assertIn("timeout", self.rpc("cm_explain", id=cid)["why"][0])
        for status, words in ((2, "refused by the program"), (3, "has no queue pair"),
                              (9, "status 9"), (1, "no listener")):
            cid, qpn, req = self.sidr()
            self.assertEqual([], self.answers(self.sidr_rep(req, status=status, qpn=0, qkey=0)))
            self.assertEqual(status, self.heard("UNREACHABLE")[0]["status"])
            why = self.rpc("cm_explain", id=cid)["why"][0]
            self.assertIn(words, why)
            self.assertEqual(status == 1, "no listener" in why)
        with self.assertRaises(dut.RpcError):
            self.qp(qpn)
        with self.assertRaises(dut.RpcError) as e:
            self.sidr(private_data="00" * 181)
        self.assertIn("room for 180", str(e.exception))

    def test_CM_41_key_of_a_service(self):
        """Both ends know the key of the IP port spaces; Linux accepts no other."""
        self.cm(listen=False)
        got = self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, ps="UDP", qp=self.UD)
        rep = self.one("SIDR_REP", self.answers(mad.make(
            "SIDR_REQ", 7, request_id=1, pkey=0xFFFF, service_id=UD_SERVICE)))
        self.assertEqual((UD_QKEY, got["qp_num"]), (rep.qkey, rep.qpn))


class Saved(CmCase):

    def test_CM_11_CM_43_connections_are_not_saved(self):
        """A file starts listeners; the queue pairs of connections are their peers' matter."""
        self.cm()
        rep = self.passive_up()
        _, active, _ = self.connect()
        saved = self.rpc("save_config")
        self.assertEqual(["l0"], [x["name"] for x in saved["cm"]["listen"]])
        self.assertEqual([], [q for q in saved["qps"]
                              if q["qp_num"] in (rep.local_qpn, active)])
        self.assertEqual("RTS", self.qp(rep.local_qpn)["qp_state"])


class IPv6(CmCase):

    def test_CM_42_ipv6(self):
        self.cm(v6=True)
        us, them = self.peer.dst_ip, self.peer.src_ip
        self.assertEqual(16, len(gid(us)))
        self.assertNotEqual(bytes(10) + b"\xff\xff", gid(us)[:12])
        rep = self.passive_up()
        self.post_recv(1, qp_num=rep.local_qpn)
        got = self.feed(self.data_peer(rep.local_qpn).send_only(rep.starting_psn, b"data"))
        self.assertEqual([(roce.ACK, rep.starting_psn)], [(f.opcode, f.psn) for f in got])
        self.tid += 1
        rej = self.one("REJ", self.answers(self.req(
            local_comm_id=9, local_qpn=9, primary_local_gid=gid("fd99::1"))))
        self.assertEqual(12, rej.reason)
        _, qpn, req = self.connect(private_data="aa")
        head = mad.ip_header(req.private_data)
        self.assertEqual((0, 6, gid(us), gid(them), gid(us), gid(them)), (
            head["version"], head["ip_version"], head["source_ip"].to_bytes(16, "big"),
            head["destination_ip"].to_bytes(16, "big"), req.primary_local_gid,
            req.primary_remote_gid))
        self.one("RTU", self.answers(self.rep(req, local_qpn=PEER_QPN + 1,
                                              local_comm_id=PEER_ID + 1)))
        self.heard("ESTABLISHED")
        self.post_recv(1, qp_num=qpn)
        peer = self.peer.with_(qpn=qpn, own_qpn=PEER_QPN + 1)
        got = self.feed(peer.send_only(req.starting_psn, b"data"))
        self.assertEqual([roce.ACK], [f.opcode for f in got])


class Why(CmCase):
    """What cm_explain says of attempts that were never answered."""

    def test_CM_37_CM_27_wrong_partition(self):
        self.cm(listen=False)
        cid, _, req = self.connect(timeout_ms=1000)
        self.assertEqual([], self.mads(self.feed(self.datagram(self.rep(req), pkey=0x1234))))
        self.wait(1100, 10)
        self.heard("UNREACHABLE")
        why = " ".join(self.rpc("cm_explain", id=cid)["why"])
        self.assertIn("wrong P_Key: 1 packets", why)
        cid, _, req = self.connect(timeout_ms=1000)
        self.wait(1100, 10)
        self.assertNotIn("P_Key", " ".join(self.rpc("cm_explain", id=cid)["why"]))

    def test_CM_37_limited_member(self):
        """Of two ends one is a full member: the port is, so the peer need not be (RX-HDR-01)."""
        self.cm()
        self.one("REP", self.mads(self.feed(self.datagram(self.req(), pkey=0x7FFF))))

    def test_CM_27_unreachable(self):
        """Nobody has the address: the REQ never leaves, and the neighbour is to blame."""
        self.cm(listen=False)
        nobody = "fd00::99" if self.peer.v6 else str(
            ipaddress.ip_address(self.peer.src_ip) + 7)
        got = self.rpc("cm_connect", port="p0", dest_ip=nobody, service_port=PORT,
                       qp=self.template, timeout_ms=1000)
        for _ in range(110):
            self.dut.run(10 * MS)
        self.drain()    # of what asks for the neighbour
        self.assertEqual(110, self.heard("UNREACHABLE")[0]["status"])
        why = self.rpc("cm_explain", id=got["id"])["why"]
        self.assertIn("unreachable: ", " ".join(why))
        self.assertIn(nobody, " ".join(why))


class Sources(CmCase):

    def test_CM_37_nobody_is_answered_who_is_no_host(self):
        """Groups, broadcast and no address at all, as IP's source or as Ethernet's."""
        for v6, ips in ((False, ("239.1.1.1", "255.255.255.255", "0.0.0.0")),
                        (True, ("ff02::1", "::"))):
            self.cm(v6=v6)
            honest, rows = self.peer, [{"src_ip": ip} for ip in ips]
            for kw in rows + [{"src_mac": m} for m in ("ff:ff:ff:ff:ff:ff", "01:00:5e:01:01:01",
                                                       "00:00:00:00:00:00")]:
                self.peer = honest.with_(**kw)
                frames = [self.datagram(m) for m in (
                    self.req(),
                    mad.make("SIDR_REQ", 5, request_id=7, service_id=UD_SERVICE),
                    mad.make("DREQ", 6, local_comm_id=1, remote_comm_id=2),
                    mad.make("REP", 7, local_comm_id=1, remote_comm_id=2))]
                self.peer = honest
                self.assertEqual([], self.feed(*frames, ns=20 * dut.MS), kw)
            self.assertEqual(4 * (len(ips) + 3), self.cm_count("cm_drops_source"))
            self.assertEqual(0, self.cm_count("cm_connections"))
            self.one("REP", self.answers(self.req()))
            self.end_connections()


if __name__ == "__main__":
    dut.main()
