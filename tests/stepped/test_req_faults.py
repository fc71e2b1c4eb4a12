# SPDX-License-Identifier: BSD-3-Clause
"""Faults on this side, a peer that vanishes, a peer that answers rubbish, a queue that overflows:
each ends in its status and event; nothing hangs, and every packet buffer comes back."""
import json
import os
import random
import struct

import dut
import roce
from dut import MS, QPN
from dut_req import LKEY, LVA, S, ReqCase, Sent, transport_ns
from roce import pattern

OTHER = 0x12


def timeless(record):
    """The same without what depends on when it was."""
    return {k: v for k, v in record.items() if not k.endswith(("time_ns", "_ns", "time"))}


class Faults(ReqCase):

    def tearDown(self):
        super().tearDown()
        self.clear()
        self.dut.run(10 * MS)
        self.assertEqual(["0"], self.dut.command("buffers"), "packet buffers in use at rest")

    def other_qp(self, cq="cq0"):
        self.make("qp_create", **self.qp_params(qp_num=OTHER, send_cq=cq, recv_cq="rcq",
                                                sq_sig_all=True, sq_psn=0x900))

    def other_works(self):
        self.assertEqual([0x900], self.psns(self.post(self.wr("SEND", 10), qp_num=OTHER)))
        self.feed(self.peer.acknowledge(0x900, qpn=OTHER))
        self.succeeded([99 + self.send_id])

    def up_again(self):
        """From ERR through RESET; the next request is a good one."""
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.walk_up("RTS", sq_psn=S)
        wr_id = 100 + self.send_id
        self.expect(self.post(self.wr("SEND", inline=b"again".hex())),
                    Sent(roce.SEND_ONLY, S, b"again"))
        self.ack(S)
        self.succeeded([wr_id])


class Local(Faults):
    """REQ-CLS-B-01, REQ-19: memory of our own that is not what the request says."""

    def bad_sges(self):
        """What a key check must refuse, by name."""
        self.make("pd_create", name="pd1")
        self.make("mr_register", name="other_pd", pd="pd1", length=4096, addr=hex(LVA + (1 << 20)),
                  rkey="0x7171", access=["LOCAL_WRITE"])
        return {
            "no such key": {"lkey": LKEY + 1, "addr": hex(LVA), "length": 8},
            "key 0": {"lkey": 0, "addr": hex(LVA), "length": 8},
            "below": {"lkey": LKEY, "addr": hex(LVA - 1), "length": 8},
            "beyond": {"lkey": LKEY, "addr": hex(LVA + 65536 - 7), "length": 8},
            "wraps around": {"lkey": LKEY, "addr": "0xfffffffffffffffc", "length": 8},
            "longer than the region": {"lkey": LKEY, "addr": hex(LVA), "length": 65537},
            "another domain's": {"lkey": 0x7171, "addr": hex(LVA + (1 << 20)), "length": 8},
        }

    def test_REQ_CLS_B_01_every_bad_key(self):
        """Of every operation; another QP on the same queue goes on; RESET makes it good again."""
        for opcode in ("SEND", "RDMA_WRITE", "RDMA_READ", "ATOMIC_FETCH_AND_ADD"):
            self.req()
            self.other_qp()
            for name, sge in self.bad_sges().items():
                if opcode.startswith("ATOMIC") and sge["length"] != 8:
                    continue                            # refused when posted: CQ-09
                with self.subTest(opcode=opcode, sge=name):
                    wr_id = 100 + self.send_id
                    self.assertEqual([], self.post(self.wr(opcode, sg_list=[sge]),
                                                   self.wr("SEND", inline="00")))
                    self.ended("LOC_PROT_ERR", wr_id, flushed=[wr_id + 1], fatal=5)
                    self.up_again()
                self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
                self.walk_up("RTS", sq_psn=S)
            self.other_works()

    def test_REQ_CLS_B_01_reading_needs_no_right(self):
        """LOCAL_WRITE is for what is written: a region without it may be sent from."""
        self.req(access=())
        self.expect(self.sends(1, 100), Sent(roce.SEND_ONLY, S, pattern(9, 100)))
        self.ack(S)
        self.succeeded([100])

    def test_REQ_CLS_B_01_in_the_middle_of_a_message(self):
        """The first packets are out when the second buffer proves bad: none of the rest leaves."""
        self.req()
        got = self.post(self.wr("RDMA_WRITE", sg_list=[
            {"mr": "lmr", "offset": 0, "length": 2500},
            {"lkey": LKEY + 1, "addr": hex(LVA), "length": 5000}]), self.wr("SEND", 10))
        self.expect(got, Sent(roce.WRITE_FIRST, S), Sent(roce.WRITE_MIDDLE, S + 1))
        self.ended("LOC_PROT_ERR", 100, flushed=[101], fatal=5)
        self.up_again()

    def test_REQ_CLS_B_01_behind_a_read(self):
        """The READ before it comes in and completes, then the fault is told."""
        self.req()
        bad = {"lkey": LKEY + 1, "addr": hex(LVA), "length": 8}
        got = self.post(self.wr("RDMA_READ", 2000), self.wr("SEND", sg_list=[bad]),
                        self.wr("SEND", 10))
        self.expect(got, Sent(roce.READ_REQ, S))
        self.assertEqual([], self.cqes())
        self.assertEqual([], self.feed(self.read_answer(S, pattern(3, 2000))))
        self.ended("LOC_PROT_ERR", 101, ok=[100], flushed=[102], fatal=5)
        self.assertEqual(pattern(3, 2000), self.local(0, 2000))

    def test_REQ_CLS_B_01_behind_a_request_that_is_lost(self):
        """The older one is resent, its retries count, and it is told first."""
        self.req(retry_cnt=1)
        bad = {"lkey": LKEY + 1, "addr": hex(LVA), "length": 8}
        self.post(self.wr("SEND", 10), self.wr("SEND", sg_list=[bad]))
        self.assertEqual([S], self.psns(self.until_sent(300 * MS)[1]))
        self.assertEqual([], self.until_sent(300 * MS)[1])
        self.ended("RETRY_EXC_ERR", 100, flushed=[101], fatal=6)

    def test_REQ_19_second_buffer_of_a_read(self):
        """Data up to the bad buffer is there; nothing else of memory changes."""
        self.req()
        self.make("mr_register", name="gone", pd="pd0", length=4096, addr=hex(LVA + (1 << 20)),
                  rkey="0x7272", access=["LOCAL_WRITE"])
        self.post(self.wr("RDMA_READ", sg_list=[
            {"mr": "lmr", "offset": 0, "length": 1024},
            {"mr": "gone", "offset": 0, "length": 2048}]), self.wr("SEND", inline="00"))
        self.rpc("mr_deregister", name="gone")
        self.feed(self.read_answer(S, pattern(3, 3072)))
        self.ended("LOC_PROT_ERR", 100, flushed=[101])
        self.assertEqual(pattern(3, 1024) + pattern(9, 64512, 1024), self.local(0, 65536))


class Vanished(Faults):
    """REQ-RETRY-07, TMR-09: a peer that says nothing any more."""

    def silence(self, expect, retries, ttr=transport_ns(14)):
        """Each expiry sends `expect` again; then it is over, in no more than 4 timeouts each."""
        for _ in range(retries):
            took, got = self.until_sent(5 * ttr)
            self.assertEqual(expect, [(f.opcode, f.psn) for f in got])
            self.assertTrue(ttr <= took <= 4 * ttr, took)
        self.assertEqual([], self.until_sent(5 * ttr)[1])

    def test_in_the_middle_of_a_message(self):
        self.req(retry_cnt=2, recv=1)
        self.sends(1, 8 * 1024)
        self.sends(2)
        self.ack(S + 4)
        rest = ([(roce.SEND_MIDDLE, S + 5), (roce.SEND_MIDDLE, S + 6), (roce.SEND_LAST, S + 7)] +
                [(roce.SEND_ONLY, S + 8), (roce.SEND_ONLY, S + 9)])
        self.silence(rest, 2)
        self.ended("RETRY_EXC_ERR", 100, flushed=[101, 102], fatal=6)
        self.assertEqual([(0, "WR_FLUSH_ERR")], self.statuses("rcq"))
        self.assertEqual((3, 1), (self.delta("local_ack_timeout_err"),
                                  self.delta("retry_exceeded_err")))
        self.assertEqual([], self.ack(S + 9))        # back too late
        self.assertEqual([], self.cqes())
        self.up_again()

    def test_in_the_middle_of_a_read(self):
        self.req(retry_cnt=1)
        self.post(self.wr("RDMA_READ", 4096), self.wr("SEND", 10))
        self.feed(self.read_answer(S, pattern(3, 4096))[:2])
        self.silence([(roce.READ_REQ, S + 2), (roce.SEND_ONLY, S + 4)], 1)
        self.ended("RETRY_EXC_ERR", 100, flushed=[101], fatal=6)
        self.assertEqual(pattern(3, 2048) + pattern(9, 2048, 2048), self.local(0, 4096))
        self.feed(self.read_answer(S + 2, bytes(2048)))
        self.assertEqual(pattern(9, 2048, 2048), self.local(2048, 2048))

    def test_before_an_atomic_is_answered(self):
        self.req(retry_cnt=1)
        self.post(self.wr("ATOMIC_CMP_AND_SWP", 8, offset=16, compare_add=1, swap=2))
        self.silence([(roce.CMP_SWAP, S)], 1)
        self.ended("RETRY_EXC_ERR", 100, fatal=6)
        self.assertEqual(pattern(9, 8, 16), self.local(16, 8))

    def test_after_it_was_not_ready(self):
        """The RNR wait ends, then the transport timer counts."""
        self.req(retry_cnt=1)
        self.sends(2)
        self.rnr(S, 12)
        took, got = self.until_sent(10 * MS)
        self.assertEqual([S, S + 1], self.psns(got))
        self.assertGreaterEqual(took, 640000)
        self.silence([(roce.SEND_ONLY, S), (roce.SEND_ONLY, S + 1)], 1)
        self.ended("RETRY_EXC_ERR", 100, flushed=[101], fatal=6)

    def test_with_requests_that_wait_to_be_sent(self):
        """The window is full and READs are at their limit: all of it is flushed, in order."""
        self.req(retry_cnt=0, max_rd_atomic=1, cqe=64)
        self.post(self.wr("SEND", 10), *[self.wr("RDMA_READ", 100) for _ in range(3)],
                  self.wr("SEND", 10, send_flags=["FENCE"]), self.wr("SEND", 60000))
        self.assertEqual([], self.until_sent(300 * MS)[1])
        self.ended("RETRY_EXC_ERR", 100, flushed=self.ids(5, 101), fatal=6)

    def test_peer_of_one_of_two(self):
        self.req(retry_cnt=1)
        self.other_qp()
        self.sends(1)
        self.silence([(roce.SEND_ONLY, S)], 1)
        self.ended("RETRY_EXC_ERR", 100)
        self.other_works()


class Overflow(Faults):
    """REQ-CLS-F-01, CQ-05, AE-04: completions that find no room."""

    def told(self, *qps):
        """One event for the queue, one for each QP; nothing else."""
        got = [(e["event_type"], e.get("qp_num") or e.get("cq")) for e in self.events()]
        self.assertEqual([("CQ_ERR", "cq0")] + [("QP_FATAL", q) for q in qps], got)

    def test_REQ_CLS_F_01_with_work_of_every_kind_outstanding(self):
        self.req(cqe=2, recv=2)
        self.post(*[self.wr("SEND", 10) for _ in range(3)], self.wr("RDMA_READ", 3000),
                  self.wr("ATOMIC_FETCH_AND_ADD", 8), self.wr("RDMA_WRITE", 5000))
        self.ack(S + 2)
        self.told(QPN)
        self.assertEqual("ERR", self.state())
        self.assertEqual([(100, "SUCCESS"), (101, "SUCCESS")], self.statuses())
        self.assertEqual(["WR_FLUSH_ERR"] * 2, [c["status"] for c in self.cqes("rcq")])
        before = self.local(0, 4096)
        self.assertEqual([], self.feed(self.read_answer(S + 3, bytes(3000)),
                                       self.atomic_ack(S + 6, 1), self.peer.acknowledge(S + 11)))
        self.assertEqual(before, self.local(0, 4096))
        self.no_more()
        self.assertEqual([], self.events())

    def overflowed_by(self, feed):
        """What is told when the third of five answers meets a full queue."""
        self.req(cqe=2)
        self.sends(6)
        before = self.dut.counters()
        feed(*[self.peer.acknowledge(S + i) for i in range(5)])
        after = self.dut.counters()
        said = [json.loads(json.dumps(x), object_hook=timeless)
                for x in (self.events(), self.rpc("qp_query", qp_num=QPN))]
        moved = {k: after[k] - before[k] for k in after if after[k] != before[k]}
        return [self.statuses(), said, moved]

    def test_REQ_CLS_F_01_by_answers_of_one_burst(self):
        """They are the same to who asks why as answers one by one: the third one is named."""
        one_by_one, at_once = self.overflowed_by(self.each), self.overflowed_by(self.feed)
        self.assertEqual(one_by_one, at_once)
        statuses, (events, qp), moved = at_once
        self.assertEqual([(100, "SUCCESS"), (101, "SUCCESS")], statuses)
        self.assertEqual([("CQ_ERR", 0), ("QP_FATAL", S + 2)],
                         [(e["event_type"], e["psn"]) for e in events])
        self.assertEqual((S + 2, 3), (qp["last_acked_psn"], moved["rx_responses"]))

    def test_REQ_CLS_F_01_by_what_a_NAK_completes(self):
        """It refuses the third request; of the second there is no room, and that is told once."""
        self.req(cqe=1)
        self.sends(3)
        self.nak(S + 2, roce.NAK_RAE)
        self.assertEqual([(100, "SUCCESS")], self.statuses())
        self.assertEqual(["CQ_ERR", "QP_FATAL"], [e["event_type"] for e in self.events()])
        self.assertEqual("ERR", self.state())
        self.assertEqual(0, self.delta("req_cqe_error"))
        self.no_more()

    def test_REQ_CLS_F_01_while_it_is_flushed(self):
        """The error has room, the flushed ones have not: what was there stays readable."""
        self.req(cqe=2)
        self.sends(6)
        self.nak(S, roce.NAK_RAE)
        self.assertEqual([(100, "REM_ACCESS_ERR"), (101, "WR_FLUSH_ERR")], self.statuses())
        self.assertEqual("ERR", self.state())
        self.assertEqual(("CQ_ERR", "cq0"), [(e["event_type"], e.get("cq"))
                                             for e in self.events()][0])
        self.no_more()

    def test_CQ_05_a_new_queue_works(self):
        """The old one and its QP go away; the same numbers serve again."""
        for _ in range(3):
            self.req(cqe=1)
            self.sends(4)
            self.ack(S + 3)
            self.told(QPN)
            self.assertEqual([(100, "SUCCESS")], self.statuses())
        self.req(cqe=4)
        self.sends(4)
        self.ack(S + 3)
        self.succeeded(self.ids(4))
        self.well()


class Rubbish(Faults):
    """Anything at all as an answer. Requests complete once, in order; an error once; no hang."""

    STATUSES = {"BAD_RESP_ERR", "LOC_LEN_ERR", "REM_INV_REQ_ERR", "REM_ACCESS_ERR", "REM_OP_ERR",
                "RETRY_EXC_ERR", "RNR_RETRY_EXC_ERR"}
    EVENTS = {"QP_FATAL", "QP_REQ_ERR", "QP_ACCESS_ERR"}
    READ_AT = 32768         # answers may write from here on

    def shortened(self, frame, n):
        """n bytes less, all lengths and sums right: headers or data are missing."""
        l3, udp, _ = roce.offsets(frame)
        out = bytearray(frame[:max(udp + 8 + 12 + 4, len(frame) - n)])
        struct.pack_into(">H", out, l3 + 2, len(out) - l3)
        struct.pack_into(">H", out, udp + 4, len(out) - udp)
        return roce.with_icrc(roce.with_ip_checksum(bytes(out)))

    def near(self, rng):
        """Mostly the PSN that is due, or one near it."""
        return rng.choice((self.due, self.due, self.due + rng.randrange(-3, 12),
                           rng.randrange(1 << 24))) & roce.PSN_MASK

    def answer(self, rng):
        """A response, well made, that says something at random."""
        opcode = roce.ACK if rng.randrange(4) else rng.choice((
            roce.READ_FIRST, roce.READ_FIRST, roce.READ_MIDDLE, roce.READ_LAST, roce.READ_ONLY,
            roce.ATOMIC_ACK))
        syndrome = rng.choice((roce.SYN_ACK, roce.NAK_SEQ, roce.SYN_RNR + 1))
        if self.mild:           # nothing that is an error by itself, but for a length
            opcode = roce.ACK if rng.randrange(6) else roce.READ_FIRST
            syndrome = roce.SYN_ACK if opcode != roce.ACK else syndrome
        elif rng.randrange(16) == 0:
            syndrome = rng.choice((roce.NAK_INV, roce.NAK_RAE, roce.NAK_ROE, rng.randrange(256)))
        ext = b"" if opcode == roce.READ_MIDDLE else roce.aeth(syndrome, rng.randrange(1 << 24))
        if opcode == roce.ATOMIC_ACK:
            ext += rng.randbytes(8)
        size = rng.choice((0, 1024, 1024, rng.randrange(1, 1100)))
        payload = b"" if opcode in (roce.ACK, roce.ATOMIC_ACK) else rng.randbytes(size)
        return self.peer.packet(opcode, self.near(rng), payload, ext, ack=0)

    def rubbish(self, rng):
        frame = self.answer(rng)
        kind = rng.choice((1, 4, 9)) if self.mild else rng.randrange(10)
        if kind == 0:                                   # any opcode, any header
            return self.peer.packet(rng.randrange(256), self.near(rng),
                                    rng.randbytes(rng.randrange(64)),
                                    rng.randbytes(rng.randrange(0, 44, 4)), ack=rng.randrange(2))
        if kind == 1:                                   # cut off on the way
            return frame[:rng.randrange(14, len(frame))]
        if kind == 2:                                   # too short, but consistent
            return self.shortened(frame, rng.randrange(1, 40))
        if kind == 3:                                   # one bit of it, the sums made right again
            return roce.edit(frame, 42 + rng.randrange(12), [rng.randrange(256)])
        if kind == 4:
            return roce.flip(frame, rng.randrange(len(frame) * 8))
        return frame

    def post_some(self, rng):
        n, wrs = rng.randrange(1, 8), []
        for _ in range(n):
            kind = rng.choice(("SEND", "RDMA_WRITE", "RDMA_READ", "RDMA_READ",
                               "ATOMIC_FETCH_AND_ADD"))
            size = 8 if kind.startswith("ATOMIC") else rng.randrange(0, 5000)
            reads = kind in ("RDMA_READ", "ATOMIC_FETCH_AND_ADD")
            wrs.append(self.wr(kind, size, offset=(self.READ_AT if reads else 0) +
                               8 * rng.randrange(3000)))
        result = self.post_raw(*wrs)
        self.assertEqual(n, result["posted"], result)
        return n

    def until_over(self, n, done):
        """The peer is gone: all that is outstanding ends. RNR waits last up to 0.66 s."""
        for _ in range(400):
            done += self.cqes()
            if len(done) >= n:
                break
            self.until_sent(100 * MS, 4 * MS)
        self.assertEqual(self.ids(n), [c["wr_id"] for c in done])
        statuses = [c["status"] for c in done]
        bad = next((i for i, s in enumerate(statuses) if s != "SUCCESS"), n)
        events = [e["event_type"] for e in self.events()]
        if bad == n and not events:
            self.assertEqual("RTS", self.state())
            return "success"
        self.assertEqual("ERR", self.state())
        tail = statuses[bad:]
        if events:                                      # the responder's side met a bad request
            self.assertEqual(1, len(events), events)
            self.assertIn(events[0], self.EVENTS)
            self.assertLessEqual(set(tail), {"WR_FLUSH_ERR"})
            return events[0]
        self.assertIn(tail[0], self.STATUSES)
        self.assertLessEqual(set(tail[1:]), {"WR_FLUSH_ERR"})
        return tail[0]

    def one(self, seed):
        rng = random.Random(seed)
        self.mild = seed % 2 == 0
        self.req(retry_cnt=2, rnr_retry=2, max_rd_atomic=rng.randrange(1, 5), timeout=8,
                 cap={"max_send_wr": 64, "max_recv_wr": 16, "max_send_sge": 4, "max_recv_sge": 4})
        n, done = self.post_some(rng), []
        for _ in range(rng.randrange(1, 30)):
            self.due = (self.qp()["last_acked_psn"] + 1) & roce.PSN_MASK
            for _ in range(rng.randrange(1, 4)):
                self.dut.rx(self.rubbish(rng))
            self.dut.run(rng.choice((0, 0, 0, MS // 10, 2 * MS)))
            done += self.cqes()
            if n < 40 and rng.randrange(6) == 0 and self.state() == "RTS":
                n += self.post_some(rng)
        end = self.until_over(n, done)
        self.assertEqual(pattern(9, self.READ_AT), self.local(0, self.READ_AT))
        return end

    def test_random_answers(self):
        """SEEDS in the environment: more of them, by hand."""
        ends = {}
        for seed in range(int(os.environ.get("SEEDS", "100"))):
            with self.subTest(seed=seed):
                end = self.one(seed)
                ends[end] = ends.get(end, 0) + 1
        for status in ("BAD_RESP_ERR", "LOC_LEN_ERR", "RETRY_EXC_ERR"):
            self.assertIn(status, ends)

    def test_nothing_but_truncated_answers(self):
        """No prefix of a good answer is an answer: the timer ends it."""
        self.req(retry_cnt=1, timeout=8)
        self.post(self.wr("RDMA_READ", 100), self.wr("ATOMIC_FETCH_AND_ADD", 8), self.wr("SEND", 5))
        before = self.local(0, 4096)
        for good in (self.read_answer(S, bytes(100))[0], self.atomic_ack(S + 1, 5),
                     self.peer.acknowledge(S + 2)):
            for n in range(14, len(good)):
                self.assertEqual([], self.feed(good[:n]))
        self.assertEqual(3, self.qp()["outstanding"])
        self.assertEqual(before, self.local(0, 4096))
        self.assertEqual([S, S + 1, S + 2], self.psns(self.until_sent(20 * MS)[1]))
        self.assertEqual([], self.until_sent(20 * MS)[1])
        self.ended("RETRY_EXC_ERR", 100, flushed=[101, 102], fatal=6)

    def test_answers_short_of_their_headers(self):
        """An ACK without AETH, an ATOMIC ACK without its value: parsing stops them."""
        self.req(retry_cnt=1, timeout=8)
        self.post(self.wr("ATOMIC_FETCH_AND_ADD", 8), self.wr("SEND", 5))
        for good, cuts in ((self.atomic_ack(S, 5), (4, 8, 12)),
                           (self.peer.acknowledge(S + 1), (4,))):
            for n in cuts:
                frame = self.shortened(good, n)
                self.assertEqual(len(good) - n, len(frame))
                self.assertEqual([], self.feed(frame))
        self.assertEqual(2, self.qp()["outstanding"])
        self.assertEqual([], self.cqes())
        self.feed(self.atomic_ack(S, 5), self.peer.acknowledge(S + 1))
        self.succeeded(self.ids(2))
        self.well()


if __name__ == "__main__":
    dut.main()
