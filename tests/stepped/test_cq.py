# SPDX-License-Identifier: BSD-3-Clause
"""CQ: overflow, notification, and a queue that many QPs share."""
import struct

import dut
import roce
from dut import BUF, E, QPN, RKEY, VA, Ack
from roce import NAK_INV, data


class Completions(dut.DutCase):

    def test_CQ_05_overflow(self):
        """n + 1 completions in a queue of n: one CQ_ERR, nothing unread is overwritten."""
        self.resp(recv=6, cqe=4)
        for i in range(6):
            self.dut.rx(self.peer.send_only(E + i, data(10 + i, i)))
        self.dut.run()
        events = self.rpc("async_events", max=64)
        self.assertEqual(["CQ_ERR", "QP_FATAL"], [e["event_type"] for e in events])
        got = self.cqes()
        self.assertEqual([(i, "SUCCESS", 10 + i) for i in range(4)],
                         [(c["wr_id"], c["status"], c["byte_len"]) for c in got])
        # The queue is in error for good.
        self.assertEqual([], self.cqes())
        self.post_recv(1)
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.events())

    def fired(self):
        self.dut.run()
        return [e["cq"] for e in self.rpc("cq_events")]

    def test_CQ_06_solicited_only(self):
        """SE 0: none; SE 1: one; an error: one."""
        self.resp(recv=4)
        p = self.peer
        self.rpc("req_notify", cq="cq0", solicited_only=True)
        self.expect(self.feed(p.send_only(E)), Ack(E, 1))
        self.assertEqual([], self.fired())
        self.expect(self.feed(p.send_only(E + 1, se=1)), Ack(E + 1, 2))
        self.assertEqual(["cq0"], self.fired())
        self.assertEqual([False, True], [c["solicited"] for c in self.cqes()])
        # Once: it must be armed again.
        self.expect(self.feed(p.send_only(E + 2, se=1)), Ack(E + 2, 3))
        self.assertEqual([], self.fired())
        self.rpc("req_notify", cq="cq0", solicited_only=True)
        self.assertEqual([], self.fired())
        self.feed(p.write_only(E + 3, b"x", VA, RKEY ^ 1))
        self.assertEqual(["cq0"], self.fired())
        self.assertEqual(["SUCCESS", "WR_FLUSH_ERR"], [s for _, s in self.statuses()])

    def test_CQ_06_solicited_only_and_a_failed_send(self):
        """Of a request that fails, and of one that is flushed behind it; success is none."""
        self.resp(recv=0, sq_sig_all=True)
        sends = [{"wr_id": i, "opcode": "SEND"} for i in range(3)]
        self.rpc("req_notify", cq="cq0", solicited_only=True)
        self.rpc("post_send", qp_num=QPN, wrs=sends)
        self.feed()
        self.assertEqual([], self.feed(self.peer.acknowledge(0x200)))
        self.assertEqual([], self.fired())
        self.feed(self.peer.acknowledge(0x201, NAK_INV))
        self.assertEqual(["cq0"], self.fired())
        self.assertEqual([(0, "SUCCESS"), (1, "REM_INV_REQ_ERR"), (2, "WR_FLUSH_ERR")],
                         self.statuses())
        self.rpc("req_notify", cq="cq0", solicited_only=True)
        self.rpc("post_send", qp_num=QPN, wrs=sends[:1])        # QP-13
        self.feed()
        self.assertEqual(["cq0"], self.fired())
        self.assertEqual([(0, "WR_FLUSH_ERR")], self.statuses())

    def test_CQ_06_next_completion(self):
        self.resp(recv=4)
        self.rpc("req_notify", cq="cq0")
        self.rpc("req_notify", cq="cq0", solicited_only=True)   # takes nothing back
        self.assertEqual([], self.fired())
        self.expect(self.feed(self.peer.send_only(E)), Ack(E, 1))
        self.assertEqual(["cq0"], self.fired())
        self.assertEqual([], self.fired())
        with self.assertRaises(dut.RpcError):
            self.rpc("req_notify", cq="nowhere")

    def test_CQ_07_shared_by_sixteen(self):
        """10,000 SENDs, WRITEs with immediate and own sends of 16 QPs; one dies in mid-run."""
        n, rounds, batch = 16, 10, 62
        self.resp(recv=0, cqe=8192)
        qpns = [0x40 + i for i in range(n)]
        victim, victim_round = qpns[5], 4
        cap = {"max_send_wr": 64, "max_recv_wr": 64, "max_send_sge": 1, "max_recv_sge": 1}
        for q in qpns:
            self.make("qp_create", **self.qp_params(qp_num=q, dest_qp_num=q + 0x100, cap=cap))
        send = self.peer.send_only(E, data(8))
        imm = self.peer.write_only_imm(E, data(8), VA, RKEY)
        bad = self.peer.write_only(E, b"x", VA, RKEY ^ 1)
        ack = self.peer.acknowledge(0x200)

        def frame(base, qpn, psn):
            _, udp, _ = roce.offsets(base)
            out = roce.edit(base, udp + 13, struct.pack(">I", qpn)[1:], fix=False)
            return roce.edit(out, udp + 17, struct.pack(">I", psn & roce.PSN_MASK)[1:])

        sge = [{"mr": "rbuf", "offset": 0, "length": BUF}]
        wr = {"opcode": "RDMA_WRITE", "sg_list": [{"mr": "rbuf", "offset": 0, "length": 8}],
              "remote_addr": hex(VA), "rkey": hex(RKEY), "send_flags": ["SIGNALED"]}
        received = {q: [] for q in qpns}
        sent = {q: [] for q in qpns}
        want = {q: [] for q in qpns}
        psn = {q: E for q in qpns}
        total = 0
        for r in range(rounds):
            for q in qpns:
                first = r * batch
                self.rpc("post_recv", qp_num=q, wrs=[{"wr_id": first + i, "sg_list": sge}
                                                     for i in range(batch)])
                dead = r > victim_round and q == victim
                if not dead:
                    self.rpc("post_send", qp_num=q, wrs=[dict(wr, wr_id=10**6 + r)])
            self.dut.run()
            for i in range(batch):
                for q in qpns:
                    if q == victim and (r > victim_round or (r == victim_round and i > 30)):
                        want[q].append((r * batch + i, "WR_FLUSH_ERR"))
                        continue
                    if q == victim and r == victim_round and i == 30:
                        self.dut.rx(frame(bad, q, psn[q]))
                        want[q].append((r * batch + i, "WR_FLUSH_ERR"))
                        continue
                    self.dut.rx(frame(send if i % 2 else imm, q, psn[q]))
                    psn[q] += 1
                    want[q].append((r * batch + i, "SUCCESS"))
                    total += 1
                self.dut.run()
            for q in qpns:
                if not (q == victim and r >= victim_round):
                    self.dut.rx(frame(ack, q, 0x200 + r))
            self.dut.run()
            while True:
                got = self.rpc("poll_cq", cq="cq0", max=1024)
                for c in got:
                    kind = sent if c["wr_id"] >= 10**6 else received
                    kind[c["qp_num"]].append((c["wr_id"], c["status"]))
                if not got:
                    break
        self.assertGreater(total, 9000)
        for q in qpns:
            self.assertEqual(want[q], received[q])
            if q == victim:
                self.assertEqual([(10**6 + r, "SUCCESS") for r in range(victim_round)] +
                                 [(10**6 + victim_round, "WR_FLUSH_ERR")], sent[q])
            else:
                self.assertEqual([(10**6 + r, "SUCCESS") for r in range(rounds)], sent[q])
        self.assertEqual([("QP_ACCESS_ERR", victim)], self.event_types())


if __name__ == "__main__":
    dut.main()
