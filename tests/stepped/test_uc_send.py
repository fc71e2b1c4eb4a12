# SPDX-License-Identifier: BSD-3-Clause
"""UC, sent: done when the port has it; a fault stops the send queue alone."""
import dut
import dut_uc
import roce
from dut import ALL_REMOTE, MS, QPN, E
from dut_req import RRKEY, RVA, S, Sent
from roce import UC, data, pattern

MTU = 1024
SEND, WRITE = UC | roce.SEND_ONLY, UC | roce.WRITE_ONLY
BAD = [{"addr": hex(0x1234), "length": 64, "lkey": 0x77777}]


class Sending(dut_uc.UcCase):

    def test_UC_06_sequences(self):
        """Opcodes, lengths, pads and RETH of 0, 1, PMTU, PMTU + 1 and 3 x PMTU bytes."""
        for length in (0, 1, MTU, MTU + 1, 3 * MTU):
            n = max(1, -(-length // MTU))
            parts = [pattern(9, length)[i * MTU:(i + 1) * MTU] for i in range(n)]
            for opcode, first, imm in (("SEND", roce.SEND_FIRST, None),
                                       ("SEND_WITH_IMM", roce.SEND_FIRST, 0x01020304),
                                       ("RDMA_WRITE", roce.WRITE_FIRST, None),
                                       ("RDMA_WRITE_WITH_IMM", roce.WRITE_FIRST, 0x01020304)):
                with self.subTest(opcode, length=length):
                    self.req()
                    kw = {} if imm is None else {"imm_data": imm}
                    got = self.post(self.wr(opcode, length, **kw))
                    last, only = (2, 4) if imm is None else (3, 5)
                    ops = [first + only] if n == 1 else [first] + [first + 1] * (n - 2) + [
                        first + last]
                    self.expect(got, [Sent(UC | op, S + i, payload=parts[i], ackreq=0)
                                      for i, op in enumerate(ops)])
                    self.assertEqual([None] * (n - 1) + [imm], [f.imm for f in got])
                    if first == roce.WRITE_FIRST:
                        self.assertEqual((RVA, RRKEY, length),
                                         (got[0].va, got[0].rkey, got[0].length))
                        self.assertEqual([None] * (n - 1), [f.va for f in got[1:]])
                    self.succeeded([100])

    def test_UC_02_UC_14_completion_at_transmit(self):
        """The tester is silent: no timer, nothing is sent again."""
        self.req(sq_sig_all=False)
        got = self.post(self.wr("RDMA_WRITE", 3 * MTU, send_flags=["SIGNALED"]),
                        self.wr("SEND", 64), self.wr("SEND", 64, send_flags=["SIGNALED"]))
        self.assertEqual([S, S + 1, S + 2, S + 3, S + 4], self.psns(got))
        self.assertEqual({0}, {f.ackreq for f in got})
        self.succeeded([100, 102])
        self.no_more(ms=1000)
        self.well()
        q = self.qp()
        self.assertEqual((S + 5, 0), (q["next_psn"], q["outstanding"]))
        self.assertEqual(None, q["timers"]["transport_us"])

    def test_UC_19_psn_of_what_is_sent(self):
        self.req(sq_psn=0xFFFFFF)
        self.assertEqual([0xFFFFFF, 0, 1], self.psns(self.post(self.wr("SEND", 2 * MTU),
                                                               self.wr("SEND", 8))))
        self.succeeded([100, 101])

    def test_more_than_the_queue_holds(self):
        """Entries are given back as their packets leave."""
        self.req()
        for i in range(20):
            self.assertEqual(16, len(self.sends(16, 8)))
            self.succeeded(self.ids(16, 100 + 16 * i))
        self.assertEqual((S + 320) & 0xFFFFFF, self.qp()["next_psn"])

    def test_solicited(self):
        """WIRE-18: with the last packet of what takes a receive WQE."""
        self.req()
        got = self.post(self.wr("SEND", 2 * MTU, send_flags=["SOLICITED"]),
                        self.wr("RDMA_WRITE", 8, send_flags=["SOLICITED"]),
                        self.wr("RDMA_WRITE_WITH_IMM", 8, send_flags=["SOLICITED"]))
        self.assertEqual([0, 1, 0, 1], [f.se for f in got])

    def test_inline(self):
        self.req()
        self.expect(self.post(self.wr("SEND", inline=b"inline".hex())),
                    Sent(SEND, S, payload=b"inline"))
        self.succeeded([100])

    def test_UC_16_operations_that_uc_refuses(self):
        self.req(access=ALL_REMOTE)
        for opcode in ("RDMA_READ", "ATOMIC_CMP_AND_SWP", "ATOMIC_FETCH_AND_ADD", "SEND_WITH_INV"):
            result = self.post_raw(self.wr("SEND", 8), self.wr(opcode, 8), self.wr("SEND", 8))
            self.assertEqual(1, result["posted"])
            self.refused(result, opcode, "UC")
            self.expect(self.feed(), Sent(SEND, self.qp()["next_psn"] - 1))
        self.well()

    def test_responses_are_of_another_service(self):
        """RX-HDR-02: an ACK is dropped; there is nothing that it could end."""
        self.req()
        self.sends(1)
        self.silent(self.feed(self.peer.with_(service=0).acknowledge(S)))
        self.assertEqual(1, self.delta("rx_qp_type_mismatch"))
        self.well()

    def test_QP_09_drained(self):
        self.req()
        self.post(self.wr("SEND", 3 * MTU))
        self.rpc("qp_modify", qp_num=QPN, qp_state="SQD", en_sqd_async_notify=True)
        self.dut.run()
        self.assertEqual([("SQ_DRAINED", QPN)], self.event_types())
        self.assertEqual([], self.post(self.wr("SEND", 8)))
        self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
        self.expect(self.feed(), Sent(SEND, S + 3))
        self.succeeded([100, 101])


class SendQueueError(dut_uc.UcCase):

    def broken(self, **kw):
        """UC-15: a SEND at fault between two good ones."""
        self.req(recv=4, **kw)
        got = self.post(self.wr("SEND", 64), self.wr("SEND", sg_list=BAD), self.wr("SEND", 64))
        self.expect(got, Sent(SEND, S))
        self.assertEqual([(100, "SUCCESS"), (101, "LOC_PROT_ERR"), (102, "WR_FLUSH_ERR")],
                         self.statuses())
        self.assertEqual("SQE", self.state())
        self.assertEqual([], self.events())

    def test_UC_15_QP_11_receive_side_is_alive(self):
        self.broken()
        self.quiet(self.peer.send_only(E, b"taken"))
        self.assertEqual([(0, "SUCCESS")], self.statuses("rcq"))
        self.assertEqual(b"taken", self.slot(0, 5))

    def test_UC_15_QP_11_AEQ_11_an_event_beside_it(self):
        """ae.with_cqe: the event comes with the completion, and nothing else is different."""
        self.req(recv=4, knobs={"ae.with_cqe": "on"})
        self.post(self.wr("SEND", sg_list=BAD))
        self.assertEqual([(100, "LOC_PROT_ERR")], self.statuses())
        self.assertEqual(("SQE", [("QP_ACCESS_ERR", QPN)]), (self.state(), self.event_types()))
        self.assertEqual(100, self.rpc("qp_explain", qp_num=QPN)["error"]["request"]["wr_id"])
        self.quiet(self.peer.send_only(E, b"taken"))
        self.assertEqual([(0, "SUCCESS")], self.statuses("rcq"))

    def test_UC_15_posted_in_sqe_is_flushed(self):
        self.broken()
        self.assertEqual([], self.post(self.wr("SEND", 8), self.wr("SEND", 8)))
        self.assertEqual([(103, "WR_FLUSH_ERR"), (104, "WR_FLUSH_ERR")], self.statuses())
        self.assertEqual("SQE", self.state())

    def test_UC_15_back_to_rts(self):
        for kw in ({}, {"cur_qp_state": "SQE"}):
            self.broken()
            self.rpc("qp_modify", qp_num=QPN, qp_state="RTS", **kw)
            self.assertEqual("RTS", self.state())
            self.expect(self.post(self.wr("SEND", 64)), Sent(SEND, S + 1))
            self.succeeded([103])
            got = self.post(self.wr("SEND", sg_list=BAD))
            self.assertEqual(([], [(104, "LOC_PROT_ERR")], "SQE"),
                             (got, self.statuses(), self.state()))

    def test_UC_15_to_reset_and_err(self):
        self.broken()
        self.rpc("qp_modify", qp_num=QPN, qp_state="ERR")
        self.dut.run()
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(4)], self.statuses("rcq"))
        self.broken()
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.assertEqual("RESET", self.state())

    def test_UC_15_states_that_are_refused(self):
        for state in ("INIT", "RTR", "SQD", "SQE"):
            self.broken()
            with self.assertRaises(dut.RpcError) as caught:
                self.rpc("qp_modify", qp_num=QPN, qp_state=state)
            self.assertEqual(-32022, caught.exception.code)
            self.assertEqual("SQE", self.state())

    def test_QP_11_fault_in_a_later_part_of_a_message(self):
        """What left before is not taken back; the next PSN is one that was not used."""
        for parts in (1, 2, 40):
            self.req()
            good = {"mr": "lmr", "offset": 0, "length": parts * MTU}
            got = self.post(self.wr("SEND", 8), self.wr("SEND", sg_list=[good] + BAD))
            self.assertEqual(list(range(S, S + parts + 1)), self.psns(got))
            self.assertEqual([(100, "SUCCESS"), (101, "LOC_PROT_ERR")], self.statuses())
            self.rpc("qp_modify", qp_num=QPN, qp_state="RTS")
            self.expect(self.post(self.wr("SEND", 64)), Sent(SEND, S + parts + 1))

    def test_QP_11_explained(self):
        self.broken()
        text = str(self.rpc("qp_explain", qp_num=QPN))
        self.assertIn("SQE", text)
        self.assertIn("LOC_PROT_ERR", text)


class Transitions(dut_uc.UcCase):
    """UC-21: exactly the attributes of data.qp_transitions."""

    STEPS = (("INIT", ("pkey", "port", "qp_access_flags")),
             ("RTR", ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn")),
             ("RTS", ("sq_psn",)))
    REFUSED = {"timeout": 14, "retry_cnt": 3, "rnr_retry": 3, "min_rnr_timer": 12,
               "max_rd_atomic": 4, "max_dest_rd_atomic": 4}

    def bare(self):
        self.clear()
        self.make("cq_create", name="cq0", cqe=16)
        self.make("qp_create", qp_num=QPN, qp_type="UC", pd="pd0", send_cq="cq0", recv_cq="cq0",
                  port="p0")

    def refused(self, before, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc("qp_modify", qp_num=QPN, **params)
        self.assertEqual(-32022, caught.exception.code, caught.exception.message)
        self.assertEqual(before, self.state())

    def test_UC_21_each_attribute(self):
        a = self.qp_params()
        self.bare()
        before = "RESET"
        for state, keys in self.STEPS:
            good = {k: a[k] for k in keys}
            for missing in keys:
                self.refused(before, qp_state=state,
                             **{k: v for k, v in good.items() if k != missing})
            for extra, value in self.REFUSED.items():
                self.refused(before, qp_state=state, **good, **{extra: value})
            self.rpc("qp_modify", qp_num=QPN, qp_state=state, **good)
            self.assertEqual(state, self.state())
            before = state

    def test_UC_21_saved_and_made_again(self):
        """What save_config prints has no key that the service does not."""
        self.req()
        saved = self.rpc("save_config")["qps"][0]
        self.assertEqual([], [k for k in self.REFUSED if k in saved])
        self.rpc("qp_destroy", qp_num=QPN)
        self.assertEqual("UC", self.rpc("qp_create", **saved)["qp_type"])

    def test_UC_21_create_refuses_what_uc_never_has(self):
        self.bare()
        for key, value in self.REFUSED.items():
            with self.assertRaises(dut.RpcError) as caught:
                self.rpc("qp_create", **self.qp_params(qp_num=0x33, **{key: value}))
            self.assertEqual(-32602, caught.exception.code)
            self.assertIn(key, caught.exception.message)


if __name__ == "__main__":
    dut.main()
