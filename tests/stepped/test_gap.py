# SPDX-License-Identifier: BSD-3-Clause
"""resp.gap, req.gap: requests behind a missing one are kept, and it is sent again alone."""
import dut
import roce
from dut import MS, QPN, RKEY, VA, Ack, E, Nak, ReadResponse
from dut_req import S, ReqCase
from roce import NAK_RAE, NAK_SEQ, data

KEEP = {"resp.gap": "keep"}
PLACES = 256                    # PSNs from the expected one on
QPS = 8                         # that miss something at a time


class Kept(dut.DutCase):

    def keeping(self, **kw):
        self.resp(knobs=KEEP, **kw)

    def test_RESP_SEQ_14_in_its_turn(self):
        self.keeping()
        p = self.peer
        got = self.each(*[p.send_only(E + i, b"%d" % i) for i in (2, 1, 3)])
        self.expect(got, Nak(E, NAK_SEQ, 0))
        self.assertEqual((E, 0), (self.qp()["epsn"], self.qp()["msn"]))
        self.assertEqual([], self.statuses())
        self.expect(self.feed(p.send_only(E, b"0")), Ack(E + 3, 4))
        self.assertEqual([(i, "SUCCESS") for i in range(4)], self.statuses())
        self.assertEqual([b"0", b"1", b"2", b"3"], [self.slot(i, 1) for i in range(4)])
        self.assertEqual((3, 3, 0), tuple(self.delta(c) for c in (
            "out_of_sequence", "kept_requests", "duplicate_request")))
        self.expect(self.feed(p.send_only(E + 2, b"2")), Ack(E + 3, 4))
        self.assertEqual(1, self.delta("duplicate_request"))

    def test_RESP_SEQ_14_one_burst(self):
        self.keeping()
        p = self.peer
        self.expect(self.feed(*[p.send_only(E + i, b"%d" % i) for i in (1, 2, 0, 3)]),
                    Nak(E, NAK_SEQ, 0), Ack(E + 3, 4))
        self.assertEqual([b"0", b"1", b"2", b"3"], [self.slot(i, 1) for i in range(4)])

    def test_RESP_SEQ_14_messages_of_several_packets(self):
        self.keeping()
        frames = (self.peer.write(E, data(2500), VA, RKEY) + self.peer.send(E + 3, data(2100)))
        self.expect(self.each(frames[1:]), Nak(E, NAK_SEQ, 0))
        self.assertEqual(bytes(2500), self.mem(0, 2500))
        self.expect(self.feed(frames[0]), Ack(E + 5, 2))
        self.assertEqual(data(2500), self.mem(0, 2500))
        self.assertEqual(data(2100), self.slot(0, 2100))
        self.assertEqual((6, 5, 5, 1, 1), tuple(self.delta(c) for c in (
            "rcvd_pkts", "out_of_sequence", "kept_requests", "rx_write_requests",
            "rx_send_requests")))
        counters = self.rpc("stats", scope="qp", qp_num=QPN)
        self.assertEqual((6, 5, 1), tuple(counters[c] for c in (
            "rcvd_pkts", "kept_requests", "rx_write_requests")))

    def test_RESP_SEQ_14_more_than_a_burst(self):
        """Each is counted once, and recorded when it comes and in its turn."""
        self.keeping()
        self.rpc("trace_start", qp_num=QPN)
        self.expect(self.each(self.peer.write(E + 1, data(40 * 1024), VA, RKEY)),
                    Nak(E, NAK_SEQ, 0))
        self.expect(self.feed(self.peer.send_only(E, b"0")), Ack(E + 40, 2))
        self.assertEqual(data(40 * 1024), self.mem(0, 40 * 1024))
        self.assertEqual((41, 40, 40, 1, 1), tuple(self.delta(c) for c in (
            "rcvd_pkts", "out_of_sequence", "kept_requests", "rx_write_requests",
            "rx_send_requests")))
        rules = [t["rule"] for t in self.rpc("trace_read", qp_num=QPN) if t["kind"] == "rx"]
        self.assertEqual(["RESP-SEQ-01"] + 39 * ["RESP-SEQ-14"] + ["RESP-01"] +
                         40 * ["RESP-05"], rules[-81:])

    def test_RESP_SEQ_14_reads_what_the_write_before_it_wrote(self):
        self.keeping()
        p = self.peer
        got = self.each(p.read_req(E + 1, VA, RKEY, 1000), p.fetch_add(E + 2, VA + 2048, RKEY, 1))
        self.expect(got, Nak(E, NAK_SEQ, 0))
        got = self.feed(p.write_only(E, data(1000), VA, RKEY))
        self.expect(got[-2:-1], ReadResponse(E + 1, data(1000), 2))
        self.assertEqual((E + 2, roce.ATOMIC_ACK), (got[-1].psn, got[-1].opcode))
        self.assertEqual(1, self.mem(2048, 1)[0])

    def test_RESP_SEQ_15_the_next_gap(self):
        self.keeping()
        p = self.peer
        self.expect(self.each(*[p.send_only(E + i) for i in (1, 3, 2 + 3)]), Nak(E, NAK_SEQ, 0))
        self.expect(self.feed(p.send_only(E)), Ack(E + 1, 2), Nak(E + 2, NAK_SEQ, 2))
        self.expect(self.feed(p.send_only(E + 2)), Ack(E + 3, 4), Nak(E + 4, NAK_SEQ, 4))
        self.silent(self.feed(p.send_only(E + 6)))

    def test_RESP_SEQ_14_window(self):
        """As far as there are places; what is further ahead has to be sent again."""
        self.keeping()
        p = self.peer
        writes = [p.write_only(E + i, b"%03d" % i, VA + 4 * i, RKEY) for i in range(PLACES + 1)]
        self.expect(self.feed(writes[PLACES], writes[PLACES - 1]), Nak(E, NAK_SEQ, 0))
        self.assertEqual(1, self.delta("kept_requests"))
        self.feed(writes[:PLACES - 1])
        self.assertEqual(E + PLACES, self.qp()["epsn"])
        self.assertEqual(b"255", self.mem(4 * 255, 3))
        self.assertEqual(bytes(3), self.mem(4 * 256, 3))

    def test_RESP_SEQ_14_the_peer_sends_all_of_it_again(self):
        """A peer that goes back: what was kept is done once."""
        self.keeping()
        p = self.peer
        self.make("mr_register", name="sum", pd="pd0", length=4096, addr=hex(VA + (1 << 30)),
                  rkey="0x7007", access=dut.ALL_REMOTE, fill="zero")
        adds = [p.fetch_add(E + i, VA + (1 << 30), 0x7007, 1) for i in range(4)]
        self.expect(self.each(adds[1:]), Nak(E, NAK_SEQ, 0))
        self.feed(*adds)
        self.assertEqual((4).to_bytes(8, "little"), self.mem(0, 8, "sum"))
        self.assertEqual(3, self.delta("duplicate_request"))

    def test_RESP_NAK_RAE_01_no_key_is_looked_at_before(self):
        """What is refused in its turn ends the queue pair, with the rest that was kept."""
        self.keeping()
        p = self.peer
        got = self.each(p.write_only(E + 1, b"bad", VA, RKEY ^ 1),
                        p.write_only(E + 2, b"no", VA, RKEY))
        self.expect(got, Nak(E, NAK_SEQ, 0))
        self.expect(self.feed(p.write_only(E, b"yes", VA + 8, RKEY)), Ack(E, 1),
                    Nak(E + 1, NAK_RAE, 1))
        self.assertEqual("ERR", self.state())
        self.assertEqual((bytes(3), b"yes"), (self.mem(0, 3), self.mem(8, 3)))

    def test_RESP_RNR_01_in_its_turn(self):
        self.keeping(recv=2)
        p = self.peer
        sends = [p.send_only(E + i, b"%d" % i) for i in range(4)]
        self.expect(self.each(sends[1:]), Nak(E, NAK_SEQ, 0))
        got = self.feed(sends[0])
        self.assertEqual((E + 2, 0x20), (got[-1].psn, got[-1].syndrome & 0xe0))
        self.post_recv(2)
        self.expect(self.feed(sends[2]), Ack(E + 3, 4))
        self.assertEqual([b"0", b"1", b"2", b"3"], [self.slot(i, 1) for i in range(4)])

    def test_QP_05_nothing_is_kept_over_a_reset(self):
        self.keeping()
        p = self.peer
        self.expect(self.feed(p.send_only(E + 1, b"old")), Nak(E, NAK_SEQ, 0))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS")
        self.post_recv(2)
        self.expect(self.feed(p.send_only(E, b"new")), Ack(E, 1))

    def test_RESP_SEQ_14_places(self):
        """Eight queue pairs at a time; one that is silent for ten milliseconds gives way."""
        self.keeping()
        peers = [self.peer]
        for i in range(1, QPS + 1):
            self.make("qp_create", **self.qp_params(qp_num=QPN + 16 * i, knobs=KEEP))
            peers.append(self.peer_of(qpn=QPN + 16 * i))
        frames = [[p.write_only(E + k, b"%d" % k, VA + 64 * i, RKEY) for k in range(2)]
                  for i, p in enumerate(peers)]
        for i in range(QPS):
            self.feed(frames[i][1])
        self.feed(frames[QPS][1])
        self.assertEqual(QPS, self.delta("kept_requests"))
        self.feed(frames[QPS][0])
        self.assertEqual(E + 1, self.qp(QPN + 16 * QPS)["epsn"])
        self.feed(frames[QPS][1])
        self.dut.run(11 * MS)
        self.feed(peers[QPS].write_only(E + 3, b"x", VA + 64 * QPS, RKEY))
        self.assertEqual(QPS + 1, self.delta("kept_requests"))
        self.feed(frames[0][0])         # whose place was taken
        self.assertEqual(E + 1, self.qp()["epsn"])
        self.feed(frames[1][0])
        self.assertEqual(E + 2, self.qp(QPN + 16)["epsn"])


class Patch(ReqCase):

    def test_REQ_NAK_11_one_packet(self):
        self.req(knobs={"req.gap": "patch"})
        self.sends(5)
        got = self.nak(S + 2, NAK_SEQ)
        self.assertEqual([S + 2], self.psns(got))
        self.succeeded(self.ids(2))
        self.ack(S + 4)
        self.succeeded([102, 103, 104])
        self.assertEqual((1, 1), (self.delta("packet_seq_err"), self.delta("req_resent_pkts")))
        self.well()

    def test_REQ_NAK_12_a_peer_that_keeps_nothing(self):
        self.req(knobs={"req.gap": "patch"})
        self.sends(5)
        self.assertEqual([S + 2], self.psns(self.nak(S + 2, NAK_SEQ)))
        self.ack(S + 2)
        self.assertEqual([S + 3, S + 4], self.psns(self.nak(S + 3, NAK_SEQ)))
        self.ack(S + 4)
        self.succeeded(self.ids(5))
        self.well()


if __name__ == "__main__":
    dut.main()
