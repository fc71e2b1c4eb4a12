# SPDX-License-Identifier: BSD-3-Clause
"""One behaviour, three ways: random requests, faults and losses of two queue pairs go over a wire,
over one that hands on a packet at a time, and inside (LB). Completions, events, states, counters of
requests, and memory are the same in the end."""
import random

import dut
from dut import ALL_REMOTE, MS
from dut_loop import ANSWER, ASK, LEN, LoopCase

SEEDS = 25
BUFFER, BUFFERS = 20000, 9      # receive buffers have a region of their own
PEER = {ASK: ANSWER, ANSWER: ASK}
NAME = {ASK: "asker", ANSWER: "answerer"}
KEY = {ASK: 0x101, ANSWER: 0x202}
# What is written, read, changed by ATOMICs, where their results and READs go, what is sent.
WRITTEN, READ, WORDS, OLD, BACK, SENT = 0, 0x50000, 0x80000, 0x90000, 0xA0000, 0xD0000
LENGTHS = (0, 1, 3, 8, 64, 200, 255, 256, 257, 511, 512, 513, 1000, 1023, 1024, 1025, 3000, 4096,
           4097, 9000, 20000)
OF_UC = ("SEND", "SEND_WITH_IMM", "RDMA_WRITE", "RDMA_WRITE_WITH_IMM")
OF_RC = OF_UC + ("SEND", "RDMA_WRITE", "RDMA_READ", "RDMA_READ", "ATOMIC_CMP_AND_SWP",
                 "ATOMIC_FETCH_AND_ADD", "ATOMIC_WRITE", "FLUSH")
FIELDS = ("wr_id", "status", "qp_num", "vendor_err")
ON_SUCCESS = FIELDS + ("opcode", "wc_flags", "imm_data", "byte_len")
COUNTED = ("rx_send_requests", "rx_write_requests", "rx_read_requests", "rx_atomic_requests",
           "rx_atomic_write_requests", "rx_flush_requests", "req_cqe_error", "resp_cqe_error",
           "req_cqe_flush_error", "resp_cqe_flush_error", "req_messages", "req_message_bytes",
           "read_responses_sent", "local_ack_timeout_err", "implied_nak_seq_err")


class Script(random.Random):
    """What happens in all three worlds, of this seed alone."""

    def __init__(self, seed):
        super().__init__(seed)
        self.ids, self.back, self.slot = 0, 0, 0
        self.rc, self.srq = self.random() < .75, self.random() < .3
        self.fault_rate = self.choice((0, 0, .02, .06))
        self.psn = self.choice((0x100, 0xFFFFF0, 0x7FFFFE))
        self.lost = [self.loss() for _ in range(self.choice((0, 0, 1, 2, 5)))]
        on = "on" if self.random() < .2 else "off"
        self.qp = {
            "path_mtu": self.choice((256, 1024, 4096)), "rq_psn": self.psn, "sq_psn": self.psn,
            "sq_sig_all": self.random() < .5,
            "cap": {"max_send_wr": 512, "max_recv_wr": 512, "max_send_sge": 4, "max_recv_sge": 4,
                    "max_inline_data": 256}}
        if self.rc:
            self.qp.update(
                retry_cnt=self.choice((1, 7)), max_rd_atomic=self.choice((1, 4, 16)),
                qp_access_flags=Same.ACCESS,
                knobs={"ops.placement": "on", "req.credits": on, "resp.credits": on})
        else:
            self.qp.update(
                qp_type="UC", qp_access_flags=["LOCAL_WRITE", "REMOTE_WRITE"],
                **{k: None for k in ("timeout", "retry_cnt", "rnr_retry", "min_rnr_timer",
                                     "max_rd_atomic", "max_dest_rd_atomic")})
        self.steps = [s for _ in range(self.randrange(4, 14)) for s in self.some()]
        self.steps += [("state", q, "RTS") for q in (ASK, ANSWER)]
        self.steps += [("recv", q, self.recvs(q, 60)) for q in (ANSWER, ASK)] + [("time", 40)]
        if self.random() < .3:
            self.steps += [("state", ANSWER, "ERR")]

    def loss(self):
        return self.choice(("p0", "p1")), {
            "action": self.choice(("drop", "drop", "duplicate")), "times": 1,
            "direction": self.choice(("request", "response")) if self.rc else "request",
            "psn": (self.psn + self.randrange(60)) & 0xFFFFFF}

    def some(self):
        """One step or two. Faults are of one side, or it is open which comes first."""
        q, kind = self.choice((ASK, ANSWER)) if self.fault_rate == 0 else ASK, self.random()
        out = [("time", 1)] if self.random() < .7 else []
        if kind < .3:
            return [("recv", PEER[q], self.recvs(PEER[q], self.randrange(1, 12)))] + out
        if kind < .85:
            return [("send", q, [self.wr(q) for _ in range(self.choice((1, 2, 5, 20, 40)))])] + out
        return [("state", q, self.choice(("SQD", "RTS")))] + out

    def cut(self, mr, at, length, pieces):
        ends = sorted(self.randrange(length + 1) for _ in range(pieces - 1)) + [length]
        return [{"mr": mr, "offset": at + a, "length": b - a} for a, b in zip([0] + ends, ends)]

    def recvs(self, q, n):
        out = []
        for _ in range(n):
            self.ids += 1
            self.slot = (self.slot + 1) % BUFFERS
            size = self.choice((0, 1000) + 40 * (BUFFER,)) if self.fault_rate else BUFFER
            out.append({"wr_id": self.ids, "sg_list": self.cut(
                "rbuf%x" % q, self.slot * BUFFER, size, self.choice((1, 1, 2, 4)))})
        return out

    def wr(self, q):
        self.ids += 1
        op, n, peer = self.choice(OF_RC if self.rc else OF_UC), self.choice(LENGTHS), PEER[q]
        wr = {"wr_id": self.ids, "opcode": op, "send_flags": [
            f for f, p in (("SIGNALED", .7), ("SOLICITED", .2), ("FENCE", .1))
            if self.random() < p and (self.rc or f != "FENCE")]}
        at = {"RDMA_READ": READ + self.randrange(0x20000), "FLUSH": READ}.get(
            op, WORDS + 8 * self.randrange(16) if op.startswith("ATOMIC") else
            WRITTEN + self.randrange(0x40000))
        if not op.startswith("SEND"):
            wr.update(remote_addr=hex((KEY[peer] << 32) + at), rkey=hex(KEY[peer]))
        if op == "FLUSH":
            wr["flush"] = {"type": ["GLOBAL"], "level": self.choice(("RANGE", "MR")), "length": n}
        elif op == "RDMA_READ":
            self.back = (self.back + BUFFER) % 0x28000
            wr["sg_list"] = self.cut(NAME[q], BACK + self.back, n, self.choice((1, 1, 2, 4)))
        elif op.startswith("ATOMIC"):
            n = 8
            wr["sg_list"] = [{"mr": NAME[q], "offset": OLD + 8 * self.ids, "length": 8}]
            wr.update({} if op == "ATOMIC_WRITE" else {"compare_add": 1, "swap": 2})
        elif self.random() < .2 and n <= 200:
            wr["inline"] = self.randbytes(n).hex()
        else:
            wr["sg_list"] = self.cut(NAME[q], SENT + self.randrange(0x20000), n,
                                     self.choice((1, 1, 2, 4)))
        if op.endswith("IMM"):
            wr["imm_data"] = self.getrandbits(32)
        if n == 0 and op.startswith("RDMA") and self.random() < .4:
            wr.update(rkey="0x999", remote_addr="0x3")      # RESP-08: nobody looks at them
        if self.random() < self.fault_rate:
            self.spoil(wr, op, n)
        return wr

    def spoil(self, wr, op, n):
        kind = self.randrange(4)
        if kind == 0 and "rkey" in wr:
            wr["rkey"] = "0x777"
        elif kind == 1 and op.startswith("ATOMIC"):
            wr["remote_addr"] = hex(int(wr["remote_addr"], 16) + 4)
        elif kind == 2 and "sg_list" in wr:
            wr["sg_list"] = [{"addr": "0x10", "lkey": "0x5555", "length": max(n, 8)}]
        elif kind == 3 and op.startswith("SEND"):
            wr["sg_list"] = [{"mr": NAME[ASK], "offset": SENT, "length": BUFFER + 1}]
            wr.pop("inline", None)


class Same(LoopCase):

    ACCESS = ALL_REMOTE + ["FLUSH_GLOBAL"]
    one_by_one = False

    def settle(self, ms=20):
        for _ in range(ms * 2 if self.one_by_one else 0):
            frames = self.dut.run(MS // 2)
            while frames:
                more = []
                for port, raw in frames:
                    self.dut.rx(raw, 1 - port)
                    more += self.dut.run()
                frames = more
        if not self.one_by_one:
            super().settle(ms)

    def take(self, script, what, *rest):
        """One step."""
        if what == "time":
            self.settle(*rest)
            return
        q, more = rest
        self.settle(ms=5)
        if what == "recv" and script.srq:
            self.rpc("post_srq_recv", srq="srq%x" % q, wrs=more)
        elif what == "recv":
            self.rpc("post_recv", qp_num=q, wrs=more)
        elif what == "send":
            self.rpc("post_send", qp_num=q, wrs=more)
        elif (self.qp(q)["qp_state"], more) in (("RTS", "SQD"), ("SQD", "RTS"), ("RTS", "ERR")):
            kw = {"en_sqd_async_notify": True} if more == "SQD" else {}
            self.rpc("qp_modify", qp_num=q, qp_state=more, **kw)

    def play(self, seed):
        script = Script(seed)
        self.clear()
        self.setUp()
        for q in (ASK, ANSWER):
            self.make("mr_register", name="rbuf%x" % q, pd="pd0", length=BUFFER * BUFFERS,
                      access=["LOCAL_WRITE"], fill="zero")
            if script.srq:
                self.make("srq_create", name="srq%x" % q, pd="pd0", max_wr=512, max_sge=4)
        if self.one_by_one:
            self.dut.command("unlink")
        ask, answer = ({"srq": "srq%x" % q} if script.srq else {} for q in (ASK, ANSWER))
        self.pair(ask=ask, answer=answer, **script.qp)
        for port in ("p0", "p1"):
            rules = [r for at, r in script.lost if at == port]
            self.rpc("impair_set", port=port, impair={"rules": rules} if rules else None)
        done = []
        for step in script.steps:
            self.take(script, *step)
            done += [(cq, c) for cq in ("scq", "rcq") for c in self.done(cq)]
        self.settle()
        out = [(cq, q, [[c[k] for k in (ON_SUCCESS if c["status"] == "SUCCESS" else FIELDS)]
                        for at, c in done + [(cq, c) for c in self.done(cq)]
                        if at == cq and c["qp_num"] == q])
               for q in (ASK, ANSWER) for cq in ("scq", "rcq")]
        out.append(sorted((e["event_type"], e["qp_num"]) for e in self.events()))
        for q in (ASK, ANSWER):
            state = self.qp(q)
            out.append([state[k] for k in ("qp_state", "epsn", "outstanding")])
            counters = self.rpc("stats", scope="qp", qp_num=q)
            out.append({k: counters[k] for k in COUNTED if not script.lost})
            out += [self.rpc("mr_crc", name=mr, offset=0, length=n)["crc32"]
                    for mr, n in ((NAME[q], LEN), ("rbuf%x" % q, BUFFER * BUFFERS))]
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair=None)
        self.dut.run()
        return out

    def test_LB_06_three_worlds(self):
        """Also CQ-02, CQ-04, CQ-08."""
        for seed in range(SEEDS):
            with self.subTest(seed=seed):
                seen = []
                for self.LOCAL, self.one_by_one in ((False, False), (False, True), (True, False)):
                    seen.append(self.play(seed))
                self.assertEqual(seen[0], seen[1], "a packet at a time")
                self.assertEqual(seen[0], seen[2], "inside")


if __name__ == "__main__":
    dut.main()
