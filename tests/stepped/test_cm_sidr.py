# SPDX-License-Identifier: BSD-3-Clause
"""CM-41: SIDR_REQs that a program answers."""
import dut
import mad
from dut_cm import PORT, CmCase, four
from test_cm_services import UD_QKEY, UD_SERVICE

UD = {"qp_type": "UD", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0",
      "cap": {"max_send_wr": 16, "max_recv_wr": 16, "max_send_sge": 4, "max_recv_sge": 4}}
PROGRAMS_TIME, KEPT = 68720, 8590   # ms: 4.096 us << 24, << 21


class Asks(CmCase):

    def setUp(self):
        super().setUp()
        self.cm(listen=False)
        self.qpn = self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, ps="UDP",
                            accept="ask", qp={**UD, "qkey": "0x4321"})["qp_num"]
        self.request_id = 0x70

    def ask(self, user=b"who", again=False):
        """A SIDR_REQ; what comes back."""
        self.request_id += not again
        head = mad.make_ip_header(6 if self.peer.v6 else 4, four(self.peer.src_ip),
                                  four(self.peer.dst_ip))
        return self.answers(mad.make("SIDR_REQ", 0x1000 + self.request_id,
                                     request_id=self.request_id, pkey=0xFFFF,
                                     service_id=UD_SERVICE, private_data=head + user))

    def asked(self):
        """The event, and nothing is said yet."""
        self.assertEqual([], self.ask())
        return self.heard("CONNECT_REQUEST")[0]

    def half_open(self):
        return self.cm_count("cm_half_open")

    def test_CM_41_listener_whose_queue_pair_cannot_be_made(self):
        """It leaves nothing: neither its name, nor its service, nor a place."""
        more = {"port": "p0", "service_port": PORT + 1, "ps": "UDP", "accept": "ask"}
        for _ in range(300):
            with self.assertRaises(dut.RpcError) as e:
                self.rpc("cm_listen", name="l2", qp={**UD, "pd": "nobody"}, **more)
            self.assertIn("nobody", str(e.exception))
        self.rpc("cm_listen", name="l2", qp=UD, **more)

    def test_CM_41_yes(self):
        event = self.asked()
        private = bytes.fromhex(event["private_data"])
        self.assertEqual(("l1", b"who" + bytes(177), 1),
                         (event["listener"], private, self.half_open()))
        self.assertEqual([], self.ask(again=True))     # the program still thinks
        self.assertEqual([], self.heard())
        self.assertIn("cm_accept or cm_reject",
                      self.rpc("cm_explain", id=event["id"])["why"][0])
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("cm_accept", id=event["id"], private_data="00" * 137)
        self.assertIn("a SIDR_REP has room for 136", str(e.exception))
        with self.assertRaises(dut.RpcError) as e:
            self.rpc("cm_accept", id=event["id"], qp=UD)
        self.assertIn("the listener's", str(e.exception))
        self.rpc("cm_accept", id=event["id"], private_data="0a0b")
        first = self.one("SIDR_REP", self.mads(self.feed()))
        self.assertEqual((0x1000 + self.request_id, self.request_id, 0, UD_SERVICE, self.qpn,
                          0x4321, b"\x0a\x0b" + bytes(134)),
                         (first.tid, first.request_id, first.status, first.service_id, first.qpn,
                          first.qkey, first.private_data))
        self.assertEqual(0, self.half_open())
        # It was lost: the same once more, and the program is not asked again.
        self.assertEqual(first.data, self.one("SIDR_REP", self.ask(again=True)).data)
        self.assertEqual([], self.heard())
        with self.assertRaises(dut.RpcError):
            self.rpc("cm_accept", id=event["id"])
        # The answer is forgotten in the end, the listener's queue pair stays.
        self.assertEqual([], self.wait(KEPT + 100, 100))
        self.assertEqual([], self.heard())
        self.assertEqual((0, "IDLE", "RTS"), (
            self.cm_count("cm_connections"), self.rpc("cm_explain", id=event["id"])["state"],
            self.qp(self.qpn)["qp_state"]))
        self.assertEqual([], self.ask(again=True))
        self.heard("CONNECT_REQUEST")

    def test_CM_41_no(self):
        event = self.asked()
        self.rpc("cm_reject", id=event["id"], private_data="77")
        rep = self.one("SIDR_REP", self.mads(self.feed()))
        self.assertEqual((2, 0, 0, b"\x77"),
                         (rep.status, rep.qpn, rep.qkey, rep.private_data[:1]))
        self.assertEqual((0, 0), (self.half_open(), self.cm_count("cm_connections")))
        event = self.asked()
        self.rpc("cm_disconnect", id=event["id"])   # without an answer: that is no, too
        self.assertEqual(2, self.one("SIDR_REP", self.mads(self.feed())).status)

    def test_CM_41_program_does_not_answer(self):
        event = self.asked()
        self.assertEqual([], self.wait(PROGRAMS_TIME + 2000, 1000))
        self.assertEqual(event["id"], self.heard("CONNECT_ERROR")[0]["id"])
        self.assertEqual((0, 0), (self.half_open(), self.cm_count("cm_connections")))

    def test_CM_41_other_messages_do_nothing(self):
        """Ids and transaction fit, the kind of message does not."""
        event = self.asked()
        ours = [c for c in self.rpc("cm_list") if c["id"] == event["id"]][0]["local_comm_id"]
        for name in ("RTU", "REP", "MRA", "REJ", "DREQ", "DREP"):
            self.answers(mad.make(name, 0x1000 + self.request_id,
                                  local_comm_id=self.request_id, remote_comm_id=ours))
        self.tid = 0x1000 + self.request_id
        self.assertEqual([], self.answers(self.req(local_comm_id=self.request_id)))
        self.assertEqual([], self.heard())
        self.rpc("cm_accept", id=event["id"])
        self.assertEqual(self.qpn, self.one("SIDR_REP", self.mads(self.feed())).qpn)

    def test_CM_40_CM_41_backlog(self):
        """Questions that wait for the program are bounded as REQs are."""
        self.rpc("cm_unlisten", name="l1")
        self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, ps="UDP", accept="ask",
                 qp=UD, backlog=2)
        for _ in range(2):
            self.assertEqual([], self.ask())
            self.ask(again=True)    # in a crowd it is heard when it is repeated
        self.heard("CONNECT_REQUEST", "CONNECT_REQUEST")
        for _ in range(3):
            self.assertEqual([], self.ask())
        self.assertEqual([], self.heard())
        self.assertEqual((2, 3), (self.half_open(), self.cm_count("cm_drops_backlog")))

    def test_CM_41_listener_always_answers_alone(self):
        self.rpc("cm_unlisten", name="l1")
        self.rpc("cm_listen", name="l1", port="p0", service_port=PORT, ps="UDP", qp=UD)
        self.assertEqual(UD_QKEY, self.one("SIDR_REP", self.ask()).qkey)
        self.assertEqual(0, self.cm_count("cm_connections"))


if __name__ == "__main__":
    dut.main()
