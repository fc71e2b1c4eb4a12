# SPDX-License-Identifier: BSD-3-Clause
"""CC: what a responder does about CE marks."""
import dut
import roce
from dut import MS, RKEY, VA, Ack, E, ReadResponse, Reply
from dut_loop import ANSWER, PORTS, LoopCase
from dut_req import S, ReqCase
from roce import NAK_SEQ, data

CNP = Reply(roce.CNP, 0)


class Congestion(dut.DutCase):

    CONFIG = {"knobs": {"cc.algo": "none", "cc.cnp": "on", "cc.cnp_interval": 50}}

    def marked(self, psn, **kw):
        return self.peer.send_only(psn, data(10), tos=3, **kw)

    def split(self, got):
        return ([f for f in got if f.opcode == roce.CNP], [f for f in got if f.opcode != roce.CNP])

    def cnp_format(self, v6):
        self.resp(v6=v6)
        cnps, answers = self.split(self.feed(self.marked(E)))
        self.expect(answers, Ack(E, 1))
        self.expect(cnps, CNP)
        f = cnps[0]
        self.assertEqual((0, 0, 0, 0, 0, 1, 0, 0, 0x22),
                         (f.se, f.mig, f.pad, f.tver, f.fecn, f.becn, f.psn, f.ackreq, f.qpn))
        self.assertEqual((bytes(16), 40), (f.payload, f.udp_len))

    def test_CC_01_format(self):
        """Also CC-02: the marked packet is processed as usual, and counted."""
        self.cnp_format(v6=False)
        self.assertEqual(1, self.delta("np_ecn_marked_roce_packets"))
        self.assertEqual(1, self.delta("np_cnp_sent"))

    def test_CC_01_format_ipv6(self):
        self.cnp_format(v6=True)
        self.assertEqual(1, self.delta("np_ecn_marked_roce_packets"))

    def test_CC_02_other_code_points_are_no_marks(self):
        self.resp()
        for i, tos in enumerate((0, 1, 2)):
            self.expect(self.feed(self.peer.send_only(E + i, b"x", tos=tos)), Ack(E + i, i + 1))
        self.assertEqual(0, self.delta("np_ecn_marked_roce_packets"))

    def test_CC_02_bad_icrc_is_no_mark(self):
        self.resp()
        bad = self.marked(E)
        self.silent(self.feed(roce.flip(bad, len(bad) * 8 - 1)))
        self.assertEqual(0, self.delta("np_cnp_sent"))

    def test_CC_03_one_cnp_per_interval(self):
        """1000 marked packets in 1 ms: at least one CNP, at most one in 50 us."""
        self.resp(recv=0)
        cnps = 0
        for i in range(1000):
            frame = self.peer.write_only(E + i, b"x", VA, RKEY, tos=3, ack=0)
            cnps += len(self.split(self.feed(frame, ns=1000))[0])
        self.assertTrue(10 <= cnps <= 21, cnps)
        self.assertEqual(1000, self.delta("np_ecn_marked_roce_packets"))

    def test_CC_03_knob_off(self):
        self.resp(knobs={"cc.cnp": "off"})
        self.expect(self.feed(self.marked(E)), Ack(E, 1))

    def test_CC_04_by_the_control_lcore(self):
        """cc.cnp_path=control: the same CNP, one for all marks until it has left, paced as ever."""
        for v6 in (False, True):
            self.resp(v6=v6, profile="ernic", knobs={"cc.cnp": "on", "cc.cnp_path": "control"})
            cnps, answers = self.split(self.feed(*[self.marked(E + i) for i in range(3)]))
            self.assertEqual([E + 2], [f.psn for f in answers])
            self.expect(cnps, CNP)
            f = cnps[0]
            self.assertEqual((0, 0, 0, 0, 1, 0, 0x22),
                             (f.se, f.mig, f.pad, f.fecn, f.becn, f.ackreq, f.qpn))
            self.assertEqual((bytes(16), 40), (f.payload, f.udp_len))
            self.assertEqual((3, 1), (self.delta("np_ecn_marked_roce_packets"),
                                      self.delta("np_cnp_sent")))
            # Within the interval none, behind it the next one.
            self.post_recv(4)
            self.assertEqual(0, len(self.split(self.feed(self.marked(E + 3), ns=1000))[0]))
            self.assertEqual(1, len(self.split(self.feed(self.marked(E + 4), ns=100_000))[0]))
            self.assertEqual(2, self.delta("np_cnp_sent"))

    def test_CC_04_the_worker_sends_none(self):
        """Until the control lcore has its turn nothing leaves; a QP that is gone gets none."""
        self.resp(knobs={"cc.cnp": "on", "cc.cnp_path": "control"})
        self.dut.rx(self.marked(E))
        self.dut.command("turn 3")
        self.rpc("qp_destroy", qp_num=dut.QPN)
        self.made.remove(("qp_destroy", {"qp_num": dut.QPN}))
        self.assertEqual([], self.split(self.feed())[0])
        self.assertEqual(0, self.delta("np_cnp_sent"))

    def test_CC_08_bad_cnps(self):
        """Bad ICRC, unknown QP, BECN 0, wrong length: dropped, counted, the QP as it was."""
        self.resp()
        p = self.peer
        good = p.cnp()
        rows = ((roce.flip(good, len(good) * 8 - 1), "rx_syndrome_30"),
                (p.cnp(qpn=0x4242), "rx_syndrome_15"),
                (p.cnp(becn=0), "rx_bad_cnp"), (p.cnp(becn=0, fecn=1), "rx_bad_cnp"),
                (p.packet(roce.CNP, 0, bytes(12), ack=0, mig=0, becn=1), "rx_bad_cnp"))
        for frame, counter in rows:
            before = self.dut.counters()[counter]
            self.silent(self.feed(frame), ms=1)
            self.assertEqual(1, self.dut.counters()[counter] - before, counter)
        self.assertEqual(0, self.delta("rp_cnp_handled"))
        self.silent(self.feed(good), ms=1)
        self.assertEqual(1, self.delta("rp_cnp_handled"))
        self.unchanged()

    def test_CC_05_cnp_is_not_acknowledged(self):
        """A CNP to a QP that only answers: PSN state untouched, nothing sent."""
        self.resp(mr_fill="pattern:1")
        self.silent(self.feed(self.peer.cnp()))
        self.expect(self.feed(self.peer.read_req(E, VA, RKEY, 100), ns=MS),
                    ReadResponse(E, roce.pattern(1, 100), 1))

    def class_of(self, tos, prio=None, v6=False, knobs=None, **kw):
        """Traffic class and priority of the CNP that a mark draws."""
        ah = {"dest_ip": "2001:db8::2" if v6 else "192.0.2.2", "hop_limit": 64,
              "dest_mac": "02:00:00:00:00:22", "traffic_class": 0x64}
        if prio is not None:
            ah.update(vlan=7, vlan_priority=2)
        self.resp(v6=v6, ah_attr=ah, knobs=dict({"cc.cnp": "on"}, **(knobs or {})), **kw)
        self.peer = self.peer.with_(vlan=7 if prio is not None else None)
        cnps, answers = self.split(self.feed(self.marked(E)))
        self.assertEqual([(E, 0x64)], [(f.psn, f.tos) for f in answers])
        self.assertEqual([tos], [f.tos for f in cnps])
        if prio is not None:
            self.assertEqual([prio, 2], [f.raw[14] >> 5 for f in (cnps[0], answers[0])])

    def test_CC_01_a_class_of_its_own(self):
        """Not-ECT, whatever the QP's other packets are; data path and control path."""
        for path in ("data", "control"):
            for v6 in (False, True):
                with self.subTest(path=path, v6=v6):
                    by = {"cc.cnp_path": path}
                    self.class_of(0xC0, v6=v6, knobs=by)
                    self.class_of(0xC0, 6, v6=v6, knobs=by)
                    by.update({"cc.cnp_dscp": 10, "cc.cnp_802p_prio": 3})
                    self.class_of(0x28, 3, v6=v6, knobs=by)
                    by.update({"cc.cnp_dscp": 0, "cc.cnp_802p_prio": 0})
                    self.class_of(0, 0, v6=v6, knobs=by)

    def test_CC_24_a_marked_cnp_draws_none(self):
        """It is acted upon, and its mark is counted."""
        for v6 in (False, True):
            for path in ("data", "control"):
                self.resp(v6=v6, knobs={"cc.cnp": "on", "cc.cnp_path": path})
                self.silent(self.feed(self.peer.cnp(tos=3)), ms=1)
                self.assertEqual((1, 1, 0), tuple(self.delta(n) for n in (
                    "np_ecn_marked_roce_packets", "rp_cnp_handled", "np_cnp_sent")))
                # Nor does it use up the interval of the next mark.
                self.assertEqual(1, len(self.split(self.feed(self.marked(E)))[0]))


class Requests(ReqCase):
    """Marks on what a requester gets."""

    CONFIG = {"knobs": {"cc.algo": "none", "cc.cnp": "on", "cc.cnp_interval": 50}}

    def test_CC_24_responses_draw_them(self):
        """READ responses, and ACKs and NAKs, which are RoCE packets like others."""
        self.req(timeout=0)
        p = self.peer
        for n, (opcode, answer) in enumerate((
                ("SEND", lambda psn: p.acknowledge(psn, msn=1, tos=3)),
                ("SEND", lambda psn: p.acknowledge(psn, NAK_SEQ, tos=3)),
                ("RDMA_READ", lambda psn: p.packet(
                    roce.READ_ONLY, psn, data(64), roce.aeth(roce.SYN_ACK, 1), ack=0, tos=3)))):
            self.post(self.wr(opcode, 64))
            psn = S + (0, 1, 1)[n]
            if n == 2:
                self.ack(psn)
                psn += 1
            got = self.feed(answer(psn), ns=100_000)
            self.assertEqual([(roce.CNP, 0xC0)],
                             [(f.opcode, f.tos) for f in got if f.opcode == roce.CNP], n)


class MarkingLink(LoopCase):
    """Both directions of a wire mark everything, however it is labelled."""

    CONFIG = {"ports": PORTS, "knobs": {"cc.cnp": "on", "cc.cnp_interval": 50}}

    def test_CC_24_cnps_do_not_answer_each_other(self):
        self.pair()
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair={"rules": [
                {"action": "ce"}, {"action": "delay", "delay_us": 100}]})
        self.rpc("post_recv", qp_num=ANSWER, wrs=[
            {"wr_id": 0, "sg_list": [{"mr": "answerer", "offset": 0, "length": 64}]}])
        before = self.dut.counters()
        self.post(self.wr("SEND", 64))
        for _ in range(300):         # 10 ms, a hundred ways there
            self.assertEqual([], self.dut.run(MS // 30))
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair=None)
        after = self.dut.counters()
        self.assertEqual([(0, "SUCCESS")], [(c["wr_id"], c["status"]) for c in self.done()])
        # One for the SEND, one for its ACK.
        self.assertEqual(2, after["np_cnp_sent"] - before["np_cnp_sent"])
        self.assertEqual(2, after["rp_cnp_handled"] - before["rp_cnp_handled"])


if __name__ == "__main__":
    dut.main()
