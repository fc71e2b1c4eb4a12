# SPDX-License-Identifier: BSD-3-Clause
"""qp_explain: the last error of a QP, with all that is known of it."""
import dut
from dut import E, MS, QPN, RKEY, VA, Ack, Nak
from roce import NAK_INV, NAK_RAE, data


class Explain(dut.DutCase):

    def explain(self):
        return self.rpc("qp_explain", qp_num=QPN)

    def test_no_error(self):
        self.resp()
        x = self.explain()
        self.assertEqual((None, "no error since RESET", "RTS"),
                         (x["error"], x["summary"], x["qp_state"]))
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        x = self.explain()
        self.assertIsNone(x["error"])
        self.assertIn("qp_modify", x["summary"])
        with self.assertRaises(dut.RpcError):
            self.rpc("qp_explain", qp_num=4711)

    def test_access_error(self):
        """RESP-NAK-RAE-01: packet, peer, answer, event, FATAL code."""
        self.resp()
        self.expect(self.feed(self.peer.write_only(E, data(24), VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))
        x = self.explain()
        e = x["error"]
        self.assertEqual("ERR", x["qp_state"])
        self.assertIn("RC_WRITE_ONLY PSN 256", x["summary"])
        self.assertEqual({"psn": E, "opcode": 0x0A, "opcode_name": "RC_WRITE_ONLY", "length": 24},
                         e["packet"])
        self.assertEqual({"ip": self.peer.src_ip, "mac": self.peer.src_mac, "qp_num": 0x22},
                         e["peer"])
        self.assertEqual(NAK_RAE, e["answer"]["syndrome"])
        self.assertIn("NAK 0x62", e["answer"]["text"])
        self.assertEqual(("QP_ACCESS_ERR", None, "responder"),
                         (e["event"], e["completion"], e["side"]))
        self.assertTrue(e["rule"].startswith("RESP-NAK-RAE"), e["rule"])
        self.assertTrue(e["text"])
        self.assertEqual(self.qp()["fatal_code"], e["fatal_code"])
        self.assertTrue(e["fatal_text"])
        self.assertEqual(4, x["flushed"])

    def test_completion_error(self):
        """A SEND longer than its WQE: the completion carries it, with the same cause."""
        self.resp(recv=0)
        self.post_recv(1, size=5)
        self.expect(self.feed(self.peer.send_only(E, data(10))), Nak(E, NAK_INV, 0))
        e = self.explain()["error"]
        self.assertEqual(("LOC_LEN_ERR", None), (e["completion"], e["event"]))
        cause = self.cqes()[0]["cause"]
        self.assertEqual((e["rule"], e["text"], E), (cause["rule"], cause["text"], cause["psn"]))

    def test_class_j_is_not_answered(self):
        self.resp()
        self.assertEqual([], self.feed(self.peer.send_only_inv(E, data(10), 0x7777)))
        e = self.explain()["error"]
        self.assertIsNone(e["answer"])
        self.assertEqual("REM_INV_REQ_ERR", e["completion"])

    def test_header_fault_has_its_syndrome(self):
        """An opcode out of sequence: bit 16 by name."""
        self.resp()
        self.expect(self.feed(self.peer.write_last(E, b"x")), Nak(E, NAK_INV, 0))
        fault = self.explain()["error"]["fault"]
        self.assertEqual(("OPCODE_SEQUENCE", 1 << 16, "RX-SYN-16"),
                         (fault["name"], fault["syndrome"], fault["rule"]))

    def test_flight_recorder_is_kept(self):
        """Later traffic does not overwrite what came before the error."""
        self.resp(recv=8)
        self.rpc("trace_start", qp_num=QPN)
        p = self.peer
        self.expect(self.each(*[p.send_only(E + i, b"ok") for i in range(3)]),
                    *[Ack(E + i, i + 1) for i in range(3)])
        self.expect(self.feed(p.write_only(E + 3, b"x", VA, RKEY ^ 1)), Nak(E + 3, NAK_RAE, 3))
        other = p.with_(qpn=0x12, own_qpn=0x23)
        self.make("qp_create", **self.qp_params(qp_num=0x12, dest_qp_num=0x23))
        self.rpc("trace_start", qp_num=0x12)
        frame = other.write_only(E, b"w", VA, RKEY, ack=0)
        late = p.send_only(E + 4)
        for i in range(150):
            for k in range(32):
                self.dut.rx(late if k % 2 else frame)
            self.dut.run()
        self.rpc("poll_cq", cq="cq0", max=64)
        x = self.explain()
        before, behind = x["trace"][:x["before"]], x["trace"][x["before"]:]
        # Older ones are of a QP that had the number before, if all are recorded.
        self.assertEqual([E, E + 1, E + 2], [t["psn"] for t in before if t["kind"] == "rx"][-3:])
        self.assertEqual({QPN}, {t["qp_num"] for t in x["trace"]})
        kinds = [t["kind"] for t in behind]
        self.assertIn("event", kinds)
        self.assertIn("nak", kinds)
        self.assertEqual([(E + 3, "ERR")],
                         [(t["psn"], t["qp_state"]) for t in behind if t["kind"] == "rx"])
        self.assertNotIn("drop", kinds)
        self.assertTrue(x["recorder"])
        # RESET forgets.
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.assertIsNone(self.explain()["error"])

    def test_recorder_of_what_is_no_packet(self):
        """A completion, a state, a timer have no opcode; what a packet did has that packet's."""
        self.resp(timeout=8, retry_cnt=0)
        self.rpc("trace_start", qp_num=QPN)
        sge = {"mr": "rbuf", "offset": 0, "length": 8}
        self.rpc("post_send", qp_num=QPN, wrs=[
            {"wr_id": 7 + i, "opcode": "RDMA_WRITE", "send_flags": ["SIGNALED"], "sg_list": [sge],
             "remote_addr": hex(VA), "rkey": hex(RKEY)} for i in range(2)])
        self.feed()
        self.feed(self.peer.acknowledge(0x200, msn=1))
        self.dut.run(100 * MS)
        lines = self.rpc("trace_read", qp_num=QPN)
        last = lines[-1]["time_ns"] - 200 * MS
        seen = {}
        for t in lines:
            if t["time_ns"] > last:
                seen.setdefault(t["kind"], set()).add(t["opcode"])
        self.assertEqual({"RC_WRITE_ONLY"}, seen["tx"])
        self.assertEqual({"RC_ACKNOWLEDGE"}, seen["rx_resp"])
        for kind in ("cqe", "timer"):
            self.assertEqual({None}, seen[kind], kind)

    def test_requester_error(self):
        """A fatal NAK: what was received, what completed."""
        self.resp()
        self.rpc("post_send", qp_num=QPN, wrs=[{
            "wr_id": 7, "opcode": "RDMA_WRITE", "send_flags": ["SIGNALED"],
            "sg_list": [{"mr": "rbuf", "offset": 0, "length": 8}], "remote_addr": hex(VA),
            "rkey": hex(RKEY)}])
        self.assertEqual(1, len(self.feed()))
        self.feed(self.peer.acknowledge(0x200, syndrome=NAK_RAE))
        x = self.explain()
        e = x["error"]
        self.assertEqual(("requester", "REM_ACCESS_ERR", None), (e["side"], e["completion"],
                                                                 e["answer"]))
        self.assertIn("NAK 0x62", e["received_syndrome"])
        self.assertTrue(e["rule"].startswith("REQ-"), e)

    def test_abnormal_event(self):
        self.resp()
        self.aeq(QPN, 0x101, 1)
        self.dut.run()
        x = self.explain()
        self.assertEqual("abnormal event: invalid key", x["summary"])
        self.assertEqual("LOC_PROT_ERR", x["error"]["completion"])


if __name__ == "__main__":
    dut.main()
