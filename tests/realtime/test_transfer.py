# SPDX-License-Identifier: BSD-3-Clause
"""The whole program moves verified data at 0, 0.1 % and 1 % loss; scripts/bench/transfer and
scripts/bench/loss in small.

WRITE, SEND and READ, four queue pairs; no speed is asked for: the machine may be busy.
"""
import os
import unittest
import unittest.mock

import loss
import netns
import transfer
from transfer import MIB, Failed, Transfer

KINDS = ("RDMA_WRITE", "RDMA_READ", "SEND")
REGION, MESSAGE, MTU = 16 * MIB, 256 << 10, 4096


class Moves(unittest.TestCase):

    def over(self, link):
        t = Transfer(link, REGION, MESSAGE, mtu=MTU)
        self.addCleanup(t.close)
        packets = 3 * REGION // MTU             # at least, in one direction
        clean = t.run(0, 3 * REGION, KINDS)
        self.assertEqual((3 * REGION, 0), (clean.bytes, clean.lost))
        self.assertEqual(set(KINDS), set(clean.by_kind))
        for loss in (0.001, 0.01):
            r = t.run(loss, 3 * REGION, KINDS, seed=int(loss * 1000))
            self.assertEqual(3 * REGION, r.bytes)
            # A tenth of what is expected at the least: the losses are seeded, the packets are not.
            self.assertGreater(r.lost, packets * loss / 10)
            self.assertGreater(r.counters["req_resent_pkts"], 0)
            self.assertEqual(0, r.counters["req_cqe_error"])
            transfer.show(r, clean.goodput)

    def test_in_memory_ports(self):
        self.over("pair")

    def test_veth_pair_between_namespaces(self):
        self.over("veth")


class Measured:
    """A loss.Bench that has measured 3.2 GB/s already."""
    open = 0
    round_trip = loss.Bench.round_trip

    def __init__(self, setup):
        self.s = setup
        Measured.open += 1

    def undisturbed(self, rate):
        return loss.Sample(seconds=0.1, bytes=320 * 10**6, lost=rate, waited=0, beside=0)

    @staticmethod
    def close():
        Measured.open -= 1


class Loses(unittest.TestCase):
    """scripts/bench/loss: queue pairs that keep sending while losses come and go."""

    def test_each_operation(self):
        for op in loss.OPCODES:
            bench = loss.Bench(loss.Setup(op, 2, timeout=8, ms=100, again=0))
            try:
                row, = bench.measure([0.01], 1)
            finally:
                bench.close()
            self.assertEqual((op, 2, 0.01, 1), tuple(row[k] for k in ("op", "qps", "loss",
                                                                      "pairs")))
            for name in ("lossless_mb_s", "mb_s", "fraction", "lost", "req_resent_pkts"):
                self.assertGreater(row[name], 0, name)
            # REQ-NAK-01, REQ-IMPL-02: at 1 % most losses are told of, and need no timer.
            self.assertGreater(row["packet_seq_err"] + row["implied_nak_seq_err"], 0)


    def test_the_timeout_that_it_chooses(self):
        """TMR-01: 4.096 us * 2^n; the least one of four lossless round trips, queue included."""
        for us, n in ((1, 1), (8.192, 1), (8.193, 2), (65.536, 4), (65.537, 5), (717, 8),
                      (1e12, 31)):
            self.assertEqual(n, loss.timeout_of(us / 1e6), us)
        setup = loss.Setup("write", 4)
        with unittest.mock.patch.object(loss, "Bench", Measured):
            loss.choose_timeout(setup, False)
        # 4 * 8 messages of 64 KiB take 655 us, and four times as much is 2.6 ms: 2^10 is 4.2 ms.
        self.assertEqual(10, setup.timeout)
        self.assertEqual(0, Measured.open)


class Refusals(unittest.TestCase):
    """What the comparison must not let pass."""

    def setUp(self):
        self.t = Transfer("pair", MIB, 64 << 10, qps=2, mtu=1024)
        self.addCleanup(self.t.close)
        self.t.make_qps()

    def test_data_that_was_there_before(self):
        self.t.fill("a", 1)
        self.t.fill("b", 1)
        self.t.fill = lambda end, seed: None
        with self.assertRaisesRegex(Failed, "already"):
            self.t.round("RDMA_WRITE", transfer.Result(0))

    def test_a_byte_that_is_wrong(self):
        post = self.t.post

        def post_and_spoil(kind):
            post(kind)
            self.t.reap("a", "senda", self.t.n)
            self.t.reap = lambda *_: None
            byte = self.t.ask("b", "mr_read", name="b", offset=70000, length=1)["data"]
            self.t.ask("b", "mr_write", name="b", offset=70000,
                       data="%02x" % (int(byte, 16) ^ 1))
        self.t.post = post_and_spoil
        with self.assertRaisesRegex(Failed, "1 of 16 messages have arrived wrong, the first is 1"):
            self.t.round("RDMA_WRITE", transfer.Result(0))

    def test_data_of_another_message(self):
        post_list = self.t.post_list

        def crossed(end, method, qp_num, wrs):
            for wr in wrs:
                wr["sg_list"][0]["offset"] ^= 2 * 65536
            post_list(end, method, qp_num, wrs)
        self.t.post_list = crossed
        with self.assertRaisesRegex(Failed, "16 of 16 messages have arrived wrong"):
            self.t.round("RDMA_WRITE", transfer.Result(0))


if __name__ == "__main__":
    netns.enter_or_skip()       # Veth goes on from there to two more
    unittest.main(verbosity=2 if os.environ.get("VERBOSE") else 1)
