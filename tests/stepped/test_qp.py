# SPDX-License-Identifier: BSD-3-Clause
"""QP: what each state does with packets and receives; the send queue's share is in test_req_qp."""
import dut
from dut import E, QPN, RKEY, VA, Ack, Nak, RpcError
from roce import NAK_RAE, NAK_SEQ

EINVAL = -32022


class States(dut.DutCase):

    def refused(self, code, method, **params):
        with self.assertRaises(RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(code, caught.exception.code, caught.exception)
        return caught.exception.message

    def modify(self, state, **attrs):
        return self.rpc("qp_modify", qp_num=QPN, qp_state=state, **attrs)

    def requests(self, psn):
        p = self.peer
        return (p.send_only(psn, b"s"), p.write_only(psn, b"w", VA, RKEY),
                p.read_req(psn, VA, RKEY, 4), p.fetch_add(psn, VA, RKEY, 1))

    def dropped(self, *frames):
        before = self.dut.counters()["rx_syndrome_15"]
        for frame in frames:
            self.silent(self.feed(frame), ms=1)
        self.assertEqual(len(frames), self.dut.counters()["rx_syndrome_15"] - before)

    def kill(self):
        self.expect(self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1)), Nak(E, NAK_RAE, 0))

    def test_QP_05_reset(self):
        """Posted receives vanish, numbers begin again, posting fails, packets are dropped."""
        self.resp(recv=4)
        self.expect(self.each(self.peer.send_only(E, b"1"), self.peer.send_only(E + 5)), Ack(E, 1),
                    Nak(E + 1, NAK_SEQ, 1))
        self.modify("RESET")
        self.assertEqual([(0, "SUCCESS")], self.statuses())   # what was there stays, nothing comes
        self.assertEqual([], self.events())
        q = self.qp()
        self.assertEqual(("RESET", 0, False, 0), (q["qp_state"], q["msn"], q["nak_latched"],
                                                  q["fatal_code"]))
        result = self.rpc("post_recv", qp_num=QPN, wrs=[{"wr_id": 77}])
        self.assertEqual(0, result["posted"])
        self.assertIn("RESET", result["refused"]["reason"])
        self.dropped(*self.requests(E + 1))
        self.walk_up("RTS", rq_psn=0x900)
        self.wr_id = 50
        self.post_recv(1)
        self.expect(self.feed(self.peer.send_only(0x900, b"again")), Ack(0x900, 1))
        self.expect(self.feed(self.peer.send_only(0x903)), Nak(0x901, NAK_SEQ, 1))
        self.assertEqual([(50, "SUCCESS")], self.statuses())
        stats = self.rpc("stats", scope="qp", qp_num=QPN)
        self.assertEqual(1, stats["rx_send_requests"])

    def test_QP_06_init(self):
        self.resp(recv=0, qp_state="INIT")
        self.post_recv(2)
        self.dropped(*self.requests(E))
        self.assertEqual([], self.cqes())
        self.walk_rest()
        self.expect(self.each(self.peer.send_only(E, b"a"), self.peer.send_only(E + 1, b"b")),
                    Ack(E, 1), Ack(E + 1, 2))
        self.assertEqual([(0, "SUCCESS"), (1, "SUCCESS")], self.statuses())

    def walk_rest(self, **attrs):
        a = self.qp_params(**attrs)
        self.modify("RTR", **{k: a[k] for k in ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn",
                                                "max_dest_rd_atomic", "min_rnr_timer")})

    def test_QP_07_rtr(self):
        """Requests are served, COMM_EST comes once, responses are dropped, a send is refused."""
        self.resp(qp_state="RTR")
        self.expect(self.each(self.peer.send_only(E), self.peer.write_only(E + 1, b"w", VA, RKEY)),
                    Ack(E, 1), Ack(E + 1, 2))
        got = self.rpc("async_events", max=8)
        self.assertEqual([("COMM_EST", QPN, "RQ")],
                         [(e["event_type"], e["qp_num"], e["source"]) for e in got])
        self.silent(self.feed(self.peer.acknowledge(0x200)), ms=1)
        result = self.rpc("post_send", qp_num=QPN, wrs=[{
            "wr_id": 1, "opcode": "SEND", "sg_list": [{"mr": "rbuf", "offset": 0, "length": 1}]}])
        self.assertEqual(0, result["posted"])
        self.assertIn("RTR", result["refused"]["reason"])
        self.assertEqual([(0, "SUCCESS")], self.statuses())

    def test_QP_12_error_on_request(self):
        """Every posted WR is flushed, each queue in posting order; no event."""
        self.resp(recv=4)
        wr = {"opcode": "SEND", "sg_list": [{"mr": "rbuf", "offset": 0, "length": 8}]}
        self.rpc("post_send", qp_num=QPN, wrs=[dict(wr, wr_id=100 + i) for i in range(3)])
        self.assertEqual(3, len(self.feed()))
        self.modify("ERR")
        got = self.statuses()
        self.assertEqual({"WR_FLUSH_ERR"}, {s for _, s in got})
        self.assertEqual([100, 101, 102], [i for i, _ in got if i >= 100])
        self.assertEqual([0, 1, 2, 3], [i for i, _ in got if i < 100])
        self.assertEqual([], self.events())
        self.silent()

    def test_QP_13_posting_in_error(self):
        self.resp(recv=1)
        self.kill()
        self.assertEqual([(0, "WR_FLUSH_ERR")], self.statuses())
        self.post_recv(3)
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in (1, 2, 3)], self.statuses())

    def test_QP_14_packets_in_error(self):
        self.resp()
        self.expect(self.feed(self.peer.send_only(E, b"1")), Ack(E, 1))
        self.modify("ERR")
        self.cqes()
        self.dropped(*self.requests(E + 1), *self.requests(E), self.peer.acknowledge(0x200),
                     self.peer.cnp())
        self.assertEqual(0, self.delta("np_cnp_sent"))
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())

    def test_QP_15_only_reset_leads_out(self):
        self.resp()
        self.kill()
        a = self.qp_params()
        self.refused(EINVAL, "qp_modify", qp_num=QPN, qp_state="INIT", port="p0", pkey="0xffff",
                     qp_access_flags=[])
        self.refused(EINVAL, "qp_modify", qp_num=QPN, qp_state="RTR",
                     **{k: a[k] for k in ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn",
                                          "max_dest_rd_atomic", "min_rnr_timer")})
        self.refused(EINVAL, "qp_modify", qp_num=QPN, qp_state="RTS",
                     **{k: a[k] for k in ("sq_psn", "timeout", "retry_cnt", "rnr_retry",
                                          "max_rd_atomic")})
        self.refused(EINVAL, "qp_modify", qp_num=QPN, qp_state="SQD")
        self.assertEqual("ERR", self.state())
        self.modify("RESET")
        self.drain()
        self.cqes()
        self.walk_up("RTS", rq_psn=0x500)
        self.wr_id = 9
        self.post_recv(1)
        self.expect(self.feed(self.peer.send_only(0x500, b"x")), Ack(0x500, 1))
        self.assertEqual([(9, "SUCCESS")], self.statuses())

    def test_QP_16_error_is_seen_with_the_first_flush(self):
        self.resp(recv=2)
        self.dut.rx(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        self.dut.command("turn 1")
        # The control lcore has not taken the worker's report yet.
        self.assertEqual([(0, "WR_FLUSH_ERR"), (1, "WR_FLUSH_ERR")], self.statuses())
        self.assertEqual("ERR", self.state())
        self.assertEqual([("QP_ACCESS_ERR", QPN)], self.event_types())

    def test_QP_17_failure_overtakes_a_modify(self):
        """The worker meets a fatal request just before the queued move to RTS: ERR stays ERR."""
        self.resp(qp_state="RTR", recv=2)
        a = self.qp_params()
        self.dut.rx(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        text = self.refused(EINVAL, "qp_modify", qp_num=QPN, qp_state="RTS",
                            **{k: a[k] for k in ("sq_psn", "timeout", "retry_cnt", "rnr_retry",
                                                 "max_rd_atomic")})
        self.assertIn("ERR", text)
        self.assertEqual("ERR", self.state())
        self.assertEqual(["WR_FLUSH_ERR"] * 2, [s for _, s in self.statuses()])
        self.dut.run()
        self.dropped(self.peer.send_only(E))
        self.modify("RESET")
        self.walk_up("RTS")
        self.assertEqual("RTS", self.state())

    def test_QP_17_posting_while_it_fails(self):
        """Whatever the moment, every posted receive gets one completion."""
        bad = [self.peer.write_only(E + k, b"x", VA, RKEY ^ 1) for k in range(4)]
        good = [self.peer.send_only(E + k, b"y") for k in range(4)]
        self.resp(recv=0)
        for i in range(200):
            self.wr_id = 0
            k = i % 4
            self.post_recv(k)
            for frame in good[:k]:
                self.dut.rx(frame)
            self.dut.rx(bad[k])
            self.post_recv(2)
            if i % 3 == 0:
                self.dut.command("turn 1")
            self.post_recv(2)
            self.dut.run()
            self.post_recv(1)
            got = self.statuses()
            self.assertEqual(list(range(k + 5)), [w for w, _ in got], i)
            self.assertEqual(["SUCCESS"] * k + ["WR_FLUSH_ERR"] * 5, [s for _, s in got], i)
            self.modify("RESET")
            self.rpc("async_events", max=64)
            self.walk_up("RTS")

    def test_QP_18_destroy(self):
        self.resp(recv=4)
        wr = {"opcode": "SEND", "sg_list": [{"mr": "rbuf", "offset": 0, "length": 8}]}
        self.rpc("post_send", qp_num=QPN, wrs=[dict(wr, wr_id=100 + i) for i in range(8)])
        self.assertEqual(8, len(self.feed()))
        self.feed(self.peer.write_only(E, b"x", VA, RKEY ^ 1))
        self.rpc("qp_destroy", qp_num=QPN)
        self.made.remove(("qp_destroy", {"qp_num": QPN}))
        self.assertEqual([], self.rpc("async_events", max=64))
        self.cqes()
        late = [self.peer.send_only(E + i) for i in range(50)] + \
               [self.peer.acknowledge(0x200 + i % 8) for i in range(50)]
        self.silent(self.feed(*late), ms=500)
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())
        self.refused(-32002, "qp_query", qp_num=QPN)

    def test_QP_20_numbers_change(self):
        """1000 QPs one after the other: no number comes back soon, ghosts are dropped."""
        self.resp()
        seen, ghosts = [], []
        params = self.qp_params(qp_num=None)
        for i in range(1000):
            n = self.rpc("qp_create", **params)["qp_num"]
            seen.append(n)
            if i % 100 == 50:
                ghosts.append(self.peer.send_only(E, qpn=seen[-2]))
                self.dropped(ghosts[-1])
            self.rpc("qp_destroy", qp_num=n)
        self.assertEqual(1000, len(set(seen)))
        # Not one behind the other: nobody can guess the next one.
        self.assertLess(sum(b - a == 1 for a, b in zip(seen, seen[1:])), 100)


if __name__ == "__main__":
    dut.main()
