# SPDX-License-Identifier: BSD-3-Clause
"""Connections by the connection manager: a tester that speaks MADs over QP 1."""
import dut
import mad
import roce
from dut import MS
from dut_cm import PEER_GUID, PEER_ID, PEER_PSN, PEER_QPN, PORT, SERVICE, CmCase, four, gid


class Passive(CmCase):

    def test_CM_09_CM_11_CM_14_CM_15_CM_18_CM_19_accept_always(self):
        self.cm(min_rnr_timer=12)
        rep = self.accepted()
        lst = self.listed()[-1]
        self.assertEqual((PEER_ID, 2, 3, 1), (rep.remote_comm_id, rep.responder_resources,
                                              rep.initiator_depth, rep.failover_accepted))
        self.assertNotEqual((0, 0), (rep.local_ca_guid, rep.local_comm_id))
        self.assertEqual("RTR", self.qp(rep.local_qpn)["qp_state"])
        self.assertEqual([], self.answers(self.reply("RTU", rep)))
        event = self.heard("ESTABLISHED")[0]
        self.assertEqual(("l0", rep.local_qpn, self.peer.src_ip, PEER_QPN),
                         (event["listener"], event["qp_num"], event["peer"]["ip"],
                          event["peer"]["qp_num"]))
        qp = self.qp(rep.local_qpn)
        self.assertEqual(
            ("RTS", 2, 3, 12, 3, 2, PEER_QPN, 1024, rep.starting_psn, PEER_PSN),
            (qp["qp_state"], qp["retry_cnt"], qp["rnr_retry"], qp["timeout"], qp["max_rd_atomic"],
             qp["max_dest_rd_atomic"], qp["dest_qp_num"], qp["path_mtu"], qp["rq_psn"],
             qp["sq_psn"]))
        self.assertEqual(rep.local_qpn, lst["qp_num"])
        # Data flows with the agreed PSNs.
        self.post_recv(1, qp_num=rep.local_qpn)
        peer = self.data_peer(rep.local_qpn)
        acks = self.feed(peer.send_only(rep.starting_psn, b"data"))
        self.assertEqual([(roce.ACK, rep.starting_psn)], [(f.opcode, f.psn) for f in acks])
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.rpc("post_send", qp_num=rep.local_qpn, wrs=[{
            "wr_id": 9, "opcode": "SEND", "inline": "aa", "send_flags": ["SIGNALED", "INLINE"]}])
        sent = self.feed()
        self.assertEqual([(roce.SEND_ONLY, PEER_PSN, PEER_QPN)],
                         [(f.opcode, f.psn, f.qpn) for f in sent])

    def test_CM_15_timeouts(self):
        for timeout in (12, 17, 0):
            self.cm()
            rep = self.passive_up(primary_local_ack_timeout=timeout)
            self.assertEqual(timeout, self.qp(rep.local_qpn)["timeout"])
            self.end_connections()

    def test_CM_20_path_mtu(self):
        self.cm()
        for code in (0, 6, 15):
            rej = self.one("REJ", self.answers(self.req(path_mtu=code)))
            self.assertEqual(26, rej.reason)
        for code in (1, 2, 3):
            self.tid += 1
            rep = self.accepted(path_mtu=code, local_qpn=0x300 + code, local_comm_id=0x300 + code)
            self.assertEqual(128 << code, self.qp(rep.local_qpn)["path_mtu"])

    def test_CM_13_ask(self):
        self.cm(accept="ask")
        self.assertEqual([], self.answers(self.req()))
        event = self.heard("CONNECT_REQUEST")[0]
        self.assertEqual(("l0", b"hello", self.peer.src_ip),
                         (event["listener"], bytes.fromhex(event["private_data"])[:5],
                          event["peer"]["ip"]))
        self.rpc("cm_accept", id=event["id"], private_data="0102")
        rep = self.one("REP", self.mads(self.feed()))
        self.assertEqual(b"\1\2", rep.private_data[:2])
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("cm_accept", id=event["id"])
        self.assertIn("REP_SENT", str(e.exception))
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("cm_accept", id=4000000)
        self.assertIn("does not exist", str(e.exception))
        self.tid += 1
        self.assertEqual([], self.answers(self.req(local_comm_id=9, local_qpn=0x999)))
        event = self.heard("CONNECT_REQUEST")[0]
        self.rpc("cm_reject", id=event["id"], private_data="0a0b")
        rej = self.one("REJ", self.mads(self.feed()))
        self.assertEqual((28, 0, 9, 0, b"\x0a\x0b"),
                         (rej.reason, rej.local_comm_id, rej.remote_comm_id, rej.message_rejected,
                          rej.private_data[:2]))
        self.tid += 1
        self.answers(self.req(local_comm_id=10, local_qpn=0x99A))
        event = self.heard("CONNECT_REQUEST")[0]
        self.rpc("cm_reject", id=event["id"], reason=3)
        self.assertEqual(3, self.one("REJ", self.mads(self.feed())).reason)

    def test_CM_21_CM_26_repeated_req(self):
        self.cm(accept="ask")
        self.answers(self.req())
        mra = self.one("MRA", self.answers(self.req()))
        self.assertEqual((0, PEER_ID), (mra.message_mraed, mra.remote_comm_id))
        event = self.heard("CONNECT_REQUEST")[0]
        self.rpc("cm_accept", id=event["id"])
        rep = self.one("REP", self.mads(self.feed()))
        for _ in range(3):
            again = self.one("REP", self.answers(self.req()))
            self.assertEqual(rep.data, again.data)
        self.assertEqual(4, self.cm_count("cm_rx_duplicates"))
        self.assertEqual(1, len([c for c in self.rpc("cm_list") if c["state"] == "REP_SENT"]))
        self.heard()

    def test_CM_28_rep_without_rtu(self):
        self.cm()
        rep = self.accepted(local_cm_response_timeout=8, max_cm_retries=2)
        got = self.wait(10, 0.25)
        self.assertEqual([rep.data] * 2, [m.data for m in got if m.name == "REP"])
        self.assertEqual((4, "REJ"), (got[-1].reason, got[-1].name))
        self.assertEqual(110, self.heard("CONNECT_ERROR")[0]["status"])
        with self.assertRaises(dut.RpcError):
            self.qp(rep.local_qpn)
        self.assertEqual(0, self.dut.counters()["cm_half_open"])

    def test_CM_36_data_before_the_rtu(self):
        self.cm()
        rep = self.accepted()
        self.post_recv(1, qp_num=rep.local_qpn)
        got = self.feed(self.data_peer(rep.local_qpn).send_only(rep.starting_psn, b"early"))
        self.assertEqual([roce.ACK], [f.opcode for f in got])
        self.heard("ESTABLISHED")
        self.assertIn("COMM_EST", [e["event_type"] for e in self.rpc("async_events", max=64)])
        self.assertEqual("RTS", self.qp(rep.local_qpn)["qp_state"])
        self.assertEqual([], self.answers(self.reply("RTU", rep)))
        self.heard()

    def test_CM_32_CM_35_CM_24_peer_disconnects(self):
        self.cm()
        rep = self.passive_up()
        self.post_recv(1, qp_num=rep.local_qpn)
        dreq = self.reply("DREQ", rep, tid=0x777, remote_qpn=rep.local_qpn)
        for _ in range(2):
            drep = self.one("DREP", self.answers(dreq))
            self.assertEqual((0x777, PEER_ID), (drep.tid, drep.remote_comm_id))
        self.heard("DISCONNECTED")
        self.assertEqual("ERR", self.qp(rep.local_qpn)["qp_state"])
        self.assertEqual(["WR_FLUSH_ERR"], [s for _, s in self.statuses()])
        # CM-24: not yet with the same QP of the peer; CM-35: others are served.
        self.tid += 1
        rej = self.one("REJ", self.answers(self.req(local_comm_id=0x52)))
        self.assertEqual((10, 0x52), (rej.reason, rej.remote_comm_id))
        other = self.accepted(local_comm_id=0x53, local_qpn=0x888)
        self.assertNotEqual(rep.local_qpn, other.local_qpn)
        self.rpc("cm_events", max=9)
        self.feed(ns=200 * MS)
        self.assertIn("TIMEWAIT_EXIT", [e["event"] for e in self.rpc("cm_events", max=9)])
        with self.assertRaises(dut.RpcError):
            self.qp(rep.local_qpn)

    def test_CM_24_stale_while_established(self):
        self.cm()
        rep = self.passive_up()
        self.tid += 1
        got = self.answers(self.req(local_comm_id=0x52))
        self.assertEqual(["REJ", "DREQ"], [m.name for m in got])
        self.assertEqual((10, PEER_QPN), (got[0].reason, got[1].remote_qpn))
        drep = self.reply("DREP", rep, tid=got[1].tid)
        self.assertEqual([], self.answers(drep))
        self.heard("DISCONNECTED")

    def test_CM_24_same_number_of_another_adapter(self):
        """A host may have several, each with numbers of its own."""
        self.cm()
        rep = self.passive_up()
        self.tid += 1
        other = self.accepted(local_comm_id=0x52, local_ca_guid=PEER_GUID + 1)
        self.assertNotEqual(rep.local_qpn, other.local_qpn)
        self.assertEqual("RTS", self.qp(rep.local_qpn)["qp_state"])

    def test_CM_30_no_listener(self):
        self.cm()
        for service in (0x106270F, 0x13F1D2F, 0x1122334455667788):
            rej = self.one("REJ", self.answers(self.req(service_id=service)))
            self.assertEqual((8, 0, PEER_ID, 0, self.tid),
                             (rej.reason, rej.local_comm_id, rej.remote_comm_id,
                              rej.message_rejected, rej.tid))

    def test_CM_31_cannot_be_served(self):
        self.cm()
        us, them = self.peer.src_ip, self.peer.dst_ip
        for reason, fields in (
                (28, {"ip": mad.make_ip_header(4, four(us), four(them), hdr_version=1)}),
                (28, {"ip": mad.make_ip_header(5, four(us), four(them))}),
                (12, {"primary_remote_gid": gid("192.0.2.77")}),
                (12, {"primary_local_gid": gid("192.0.2.77")}),
                (9, {"transport_service_type": 1}), (9, {"transport_service_type": 2})):
            rej = self.one("REJ", self.answers(self.req(**fields)))
            self.assertEqual(reason, rej.reason, fields)
        self.assertEqual(6, self.cm_count("cm_drops_refused"))
        self.assertEqual([], [c for c in self.rpc("cm_list") if c["state"] != "IDLE"])

    def test_CM_31_no_queue_pair(self):
        """Each REQ is rejected; the log has a few lines of it, whoever asks and how often."""
        self.cm()
        self.rpc("cq_destroy", name="cq0")
        said = "no queue pair for a connection"
        before = self.dut.stderr().count(said)
        for i in range(40):
            self.tid += 1
            rej = self.one("REJ", self.answers(self.req(local_comm_id=0x600 + i,
                                                        local_qpn=0x600 + i)))
            self.assertEqual(3, rej.reason)     # no resources
        self.assertIn(self.dut.stderr().count(said) - before, range(1, 6))
        self.rpc("cq_create", name="cq0", cqe=64)

    def test_CM_34_dreq_of_nobody(self):
        self.cm()
        drep = self.one("DREP", self.answers(mad.make(
            "DREQ", 0x123, local_comm_id=7, remote_comm_id=8, remote_qpn=9)))
        self.assertEqual((0x123, 8, 7), (drep.tid, drep.local_comm_id, drep.remote_comm_id))
        rep = self.passive_up()
        self.assertEqual([], self.answers(
            self.reply("DREQ", rep, tid=5, remote_qpn=rep.local_qpn + 1)))
        self.assertEqual(1, self.cm_count("cm_drops_qpn"))
        self.assertEqual("RTS", self.qp(rep.local_qpn)["qp_state"])

    def test_CM_37_bad_envelopes(self):
        self.cm()
        req = self.req()
        self.assertEqual([], self.feed(self.datagram(req, qkey=0x80010001),
                                       self.datagram(req, pkey=0x1234),
                                       self.datagram(req[:255]), self.datagram(req + b"x")))
        broken = bytearray(self.datagram(req))
        broken[-1] ^= 1
        self.assertEqual([], self.feed(bytes(broken)))
        self.assertEqual((1, 1, 2, 1),
                         (self.delta("rx_qkey_violation"), self.delta("rx_pkey_violation"),
                          self.delta("cm_drops_length"), self.delta("rx_syndrome_30")))
        self.one("REP", self.mads(self.feed(self.datagram(req, src=0x22))))

    def test_CM_38_bad_mads(self):
        self.cm()
        for header, name in (({"base_version": 2}, "base_version"), ({"mgmt_class": 3}, "class"),
                             ({"class_version": 1}, "class_version"), ({"method": 1}, "method"),
                             ({"attr_id": 0xF}, "attribute"), ({"attr_id": 0xFF}, "attribute")):
            self.assertEqual([], self.answers(self.req(header=header)))
            self.assertGreaterEqual(self.cm_count("cm_drops_" + name), 1)
        self.one("REP", self.answers(self.req(header={"attr_mod": 1, "reserved": 5})))

    def test_CM_39_alternate_path(self):
        self.cm()
        rep = self.passive_up()
        lap = bytearray(self.reply("RTU", rep))
        lap[17] = 0x19
        got = self.feed(self.datagram(bytes(lap)))
        self.assertEqual([0x1A], [f.payload[17] for f in got])
        self.assertNotEqual(0, got[0].payload[24 + 9])
        self.assertEqual("RTS", self.qp(rep.local_qpn)["qp_state"])

    def test_CM_40_flood(self):
        """Half-open connections of one source are bounded; another is served meanwhile."""
        self.cm(accept="ask")
        for i in range(700):
            self.dut.rx(self.datagram(self.req(local_comm_id=0x1000 + i, local_qpn=0x1000 + i)), 0)
            if i % 50 == 49:
                self.dut.run(2 * MS)
        self.dut.run(10 * MS)
        n = self.dut.counters()["cm_half_open"]
        self.assertEqual(96, n)     # of 128, the listener's backlog: the others are for REQs
        self.assertEqual(700 - n, self.cm_count("cm_drops_crowded"))    # that are repeated
        for e in self.rpc("cm_events", max=4096):
            self.rpc("cm_reject", id=e["id"])
        self.dut.run(10 * MS)
        self.assertEqual(0, self.dut.counters()["cm_half_open"])
        self.assertEqual([], self.answers(self.req()))
        self.heard("CONNECT_REQUEST")

    def test_CM_43_what_was_agreed(self):
        self.cm()
        rep = self.passive_up()
        c, qp = self.of_qp(rep.local_qpn), self.qp(rep.local_qpn)
        self.assertEqual(("ESTABLISHED", rep.local_comm_id, PEER_ID, PEER_QPN),
                         (c["state"], c["local_comm_id"], c["remote_comm_id"],
                          c["remote_qp_num"]))
        for key in ("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic", "max_dest_rd_atomic",
                    "rq_psn", "sq_psn", "path_mtu", "dest_qp_num"):
            self.assertEqual(qp[key], c["taken"][key], key)
        self.assertEqual((2, 3, 12, 3, 2, PEER_PSN),
                         tuple(c["proposed"]["remote"][k] for k in (
                             "retry_count", "rnr_retry_count", "ack_timeout",
                             "responder_resources", "initiator_depth", "starting_psn")))
        for key in ("req_time", "rep_time", "rtu_time"):
            self.assertIsNotNone(c[key])


class Active(CmCase):

    def test_CM_05_CM_06_CM_07_CM_08_request(self):
        self.cm(listen=False)
        _, qpn, req = self.connect(retry_count=5, rnr_retry_count=6, responder_resources=3,
                                   initiator_depth=2, private_data="0102030405")
        self.assertEqual((qpn, 0, 5, 6, 3, 2, 3, 0xFFFF, 0, PORT | 0x1060000),
                         (req.local_qpn, req.transport_service_type, req.retry_count,
                          req.rnr_retry_count, req.responder_resources, req.initiator_depth,
                          req.path_mtu, req.pkey, req.srq, req.service_id))
        self.assertNotIn(0, (req.local_comm_id, req.tid, req.primary_local_ack_timeout,
                             req.remote_cm_response_timeout, req.local_cm_response_timeout,
                             req.max_cm_retries, req.local_ca_guid))
        us, them = self.peer.dst_ip, self.peer.src_ip
        self.assertEqual((0xFFFF, 0xFFFF, gid(us), gid(them), 64, 0, bytes(16)),
                         (req.primary_local_lid, req.primary_remote_lid, req.primary_local_gid,
                          req.primary_remote_gid, req.primary_hop_limit, req.primary_subnet_local,
                          req.alternate_local_gid))
        head = mad.ip_header(req.private_data)
        self.assertEqual((0, 6 if self.peer.v6 else 4), (head["version"], head["ip_version"]))
        self.assertEqual((four(us), four(them)),
                         (head["source_ip"].to_bytes(16, "big"),
                          head["destination_ip"].to_bytes(16, "big")))
        self.assertEqual(b"\1\2\3\4\5" + bytes(51), req.private_data[36:])
        with self.assertRaises(dut.RpcError):
            self.connect(private_data="00" * 57)
        for ps, number in (("UDP", 0x1111D2F), ("IB", 0x13F1D2F)):
            self.assertEqual(number, self.connect(ps=ps)[2].service_id)

    def test_CM_12_no_queue_pair_is_left(self):
        self.cm(listen=False)
        _, qpn, req = self.connect()
        self.rpc("qp_destroy", qp_num=qpn)
        names = [m.name for m in self.answers(self.rep(req))]
        self.assertNotIn("RTU", names)
        self.heard("CONNECT_ERROR")

    def test_CM_12_CM_16_CM_17_CM_18_CM_22_established(self):
        self.cm(listen=False)
        cid, qpn, req = self.connect(retry_count=5, rnr_retry_count=6, responder_resources=3,
                                     initiator_depth=2)
        self.assertEqual("INIT", self.qp(qpn)["qp_state"])
        other = self.rep(req, starting_psn=7, local_qpn=0x777)
        rep = self.rep(req, private_data=b"well", initiator_depth=3)
        for n in range(3):
            rtu = self.one("RTU", self.answers(rep))
            self.assertEqual((req.tid, req.local_comm_id, PEER_ID),
                             (rtu.tid, rtu.local_comm_id, rtu.remote_comm_id), n)
        event = self.heard("ESTABLISHED")[0]
        self.assertEqual((cid, b"well"), (event["id"], bytes.fromhex(event["private_data"])[:4]))
        self.assertEqual(2, self.cm_count("cm_rx_duplicates"))
        self.one("RTU", self.answers(other))    # what counts is the first one
        taken = self.of_qp(qpn)["taken"]
        self.assertEqual((PEER_PSN, PEER_QPN), (taken["sq_psn"], taken["dest_qp_num"]))
        qp = self.qp(qpn)
        # CM-16: cm_ack_timeout(15, 13): 14 is less than 15, and not less than 14.
        self.assertEqual(("RTS", 1024, 5, 1, 1, 3, 16, PEER_PSN, req.starting_psn),
                         (qp["qp_state"], qp["path_mtu"], qp["retry_cnt"], qp["rnr_retry"],
                          qp["max_rd_atomic"], qp["max_dest_rd_atomic"], qp["timeout"],
                          qp["sq_psn"], qp["rq_psn"]))
        self.post_recv(1, qp_num=qpn)
        got = self.feed(self.data_peer(qpn).send_only(req.starting_psn, b"x"))
        self.assertEqual([roce.ACK], [f.opcode for f in got])

    def test_CM_18_more_than_was_asked_for(self):
        """What a REP offers beyond the REQ is not taken."""
        self.cm(listen=False)
        _, qpn, req = self.connect(responder_resources=3, initiator_depth=2)
        self.one("RTU", self.answers(self.rep(req, responder_resources=9, initiator_depth=9)))
        self.heard("ESTABLISHED")
        qp = self.qp(qpn)
        self.assertEqual((2, 3), (qp["max_rd_atomic"], qp["max_dest_rd_atomic"]))

    def test_CM_27_silence(self):
        self.cm(listen=False)
        cid, qpn, req = self.connect(timeout_ms=1000)
        got = self.wait(1100, 10)
        reqs = [m for m in got if m.name == "REQ"]
        self.assertTrue(0 < len(reqs) <= req.max_cm_retries)
        self.assertEqual({req.data}, {m.data for m in reqs})
        self.assertEqual([4], [m.reason for m in got if m.name == "REJ"])
        self.assertEqual(110, self.heard("UNREACHABLE")[0]["status"])
        with self.assertRaises(dut.RpcError):
            self.qp(qpn)
        self.assertEqual([], self.mads(self.feed(ns=5000 * MS)))
        self.assertIn("timeout", self.rpc("cm_explain", id=cid)["why"][0])

    def test_CM_25_mra(self):
        self.cm(listen=False)
        _, _, req = self.connect()
        mra = self.reply("MRA", req, message_mraed=0, service_timeout=20)
        self.assertEqual([], self.answers(mra))
        self.assertEqual([], self.mads(self.feed(ns=4000 * MS)))
        self.one("RTU", self.answers(self.rep(req)))
        self.heard("ESTABLISHED")

    def test_CM_29_rejected(self):
        self.cm(listen=False)
        for reason, words in ((8, "no listener"), (10, "stale"), (28, "refused by the program"),
                              (26, "path MTU"), (65535, "unknown")):
            cid, qpn, req = self.connect()
            wrong = self.reply("REJ", req, tid=req.tid + 1, reason=reason, local_comm_id=0)
            self.assertEqual([], self.answers(wrong))
            self.heard()
            self.assertEqual([], self.answers(self.reply(
                "REJ", req, reason=reason, local_comm_id=0, private_data=b"why")))
            event = self.heard("REJECTED")[0]
            self.assertEqual((cid, reason, b"why"),
                             (event["id"], event["status"],
                              bytes.fromhex(event["private_data"])[:3]))
            with self.assertRaises(dut.RpcError):
                self.qp(qpn)
            self.assertIn(words, " ".join(self.rpc("cm_explain", id=cid)["why"]))

    def test_CM_29_rejected_when_established(self):
        """It ends the connection that it names, by both ids and the transaction; no other."""
        self.cm()
        for of in (self.active_up()[2], self.passive_up(local_qpn=0x888)):
            qpn = of.local_qpn
            self.assertEqual([], self.answers(
                self.reply("REJ", of, reason=28, local_comm_id=PEER_ID + 1),
                self.reply("REJ", of, reason=28, remote_comm_id=of.local_comm_id ^ 1),
                self.reply("REJ", of, reason=28, tid=of.tid + 1)))
            self.heard()
            self.assertEqual("RTS", self.qp(qpn)["qp_state"])
            self.assertEqual([], self.answers(self.reply("REJ", of, reason=28)))
            self.heard("DISCONNECTED")
            self.assertEqual("ERR", self.qp(qpn)["qp_state"])

    def test_CM_02_unused_private_data(self):
        """Nothing of another message, or of memory, stands in it."""
        self.cm()
        rep = self.passive_up()
        got = [rep, self.one("DREP", self.answers(
            self.reply("DREQ", rep, tid=0x777, remote_qpn=rep.local_qpn)))]
        cid, _, req = self.connect(private_data="ff" * 56)
        mra = self.reply("MRA", req, message_mraed=0, service_timeout=20)
        self.assertEqual([], self.answers(mra))
        got.append(self.one("RTU", self.answers(self.rep(req, private_data=b"\xff" * 196))))
        self.rpc("cm_disconnect", id=cid)
        got += self.mads(self.feed())
        self.tid += 1
        got += self.answers(self.req(service_id=1, local_comm_id=9, user=b"\xff" * 56))
        self.assertEqual(["REP", "DREP", "RTU", "DREQ", "REJ"], [m.name for m in got])
        for m in got:
            self.assertEqual(bytes(len(m.private_data)), m.private_data, m.name)

    def test_CM_33_disconnect(self):
        self.cm(listen=False)
        cid, qpn, req = self.active_up()
        self.post_recv(1, qp_num=qpn)
        self.rpc("cm_disconnect", id=cid)
        dreq = self.one("DREQ", self.mads(self.feed()))
        self.assertEqual((PEER_QPN, PEER_ID), (dreq.remote_qpn, dreq.remote_comm_id))
        self.assertNotEqual(req.tid, dreq.tid)
        self.assertEqual("ERR", self.qp(qpn)["qp_state"])
        self.assertEqual(["WR_FLUSH_ERR"], [s for _, s in self.statuses()])
        self.assertEqual([], self.answers(self.reply("DREP", dreq)))
        self.heard("DISCONNECTED")

    def test_CM_23_strangers(self):
        self.cm(listen=False)
        for name in ("RTU", "MRA", "DREP"):
            self.assertEqual([], self.answers(mad.make(name, 5, local_comm_id=1,
                                                       remote_comm_id=0x777)))
        self.assertEqual(3, self.cm_count("cm_drops_unknown"))
        rej = self.one("REJ", self.answers(mad.make("REP", 5, local_comm_id=1,
                                                    remote_comm_id=0x777, local_qpn=5)))
        self.assertEqual((6, 1, 1), (rej.reason, rej.remote_comm_id, rej.message_rejected))

    def test_CM_03_CM_04_CM_19_CM_44_many(self):
        self.cm(listen=False)
        reqs = [self.connect()[2] for _ in range(20)]
        for key in ("tid", "local_comm_id", "starting_psn", "local_qpn"):
            self.assertEqual(20, len({getattr(r, key) for r in reqs}), key)
        self.assertEqual(1, len({r.local_ca_guid for r in reqs}))

    def test_CM_19_CM_44_many_servers(self):
        """A REP has the GUID of a REQ, which is the port's, and a PSN that cannot be guessed."""
        self.cm()
        mac = bytes.fromhex(self.peer.dst_mac.replace(":", ""))
        eui = bytes([mac[0] ^ 2]) + mac[1:3] + b"\xff\xfe" + mac[3:]
        got = [self.connect()[2]]
        for i in range(10):
            self.tid += 1
            got.append(self.accepted(local_comm_id=0x300 + i, local_qpn=0x300 + i))
        self.assertEqual({int.from_bytes(eui, "big")}, {m.local_ca_guid for m in got})
        steps = {b.starting_psn - a.starting_psn for a, b in zip(got, got[1:])}
        self.assertEqual(10, len(steps))


class Datagrams(CmCase):

    def test_CM_41_sidr(self):
        self.cm(listen=False)
        qp = {"qp_type": "UD", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0", "qkey": "0x1234",
              "recv_feed": {"buffers": 4, "size": 4096}}
        self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, ps="UDP", qp=qp)
        ask = mad.make("SIDR_REQ", 0x66, request_id=0x99, pkey=0xFFFF, service_id=0x1111D2F)
        for _ in range(2):
            rep = self.one("SIDR_REP", self.answers(ask))
            self.assertEqual((0x66, 0x99, 0, 0x1111D2F, 0x1234),
                             (rep.tid, rep.request_id, rep.status, rep.service_id, rep.qkey))
        peer = self.peer.with_(qpn=rep.qpn)
        self.assertEqual([], self.feed(peer.packet(
            roce.UD_SEND_ONLY, 0, b"hi", roce.deth(0x1234, 0x22))))
        self.assertEqual(1, self.dut.counters(scope="qp", qp_num=rep.qpn)["rcvd_pkts"])
        ask = mad.make("SIDR_REQ", 0x67, request_id=0x99, service_id=SERVICE)
        self.assertEqual(1, self.one("SIDR_REP", self.answers(ask)).status)


if __name__ == "__main__":
    dut.main()
