# SPDX-License-Identifier: BSD-3-Clause
"""Losses between an end that keeps what is ahead of a gap and one that keeps nothing, the kernel.

As requester rocelane sends again what a NAK names, alone, and finds out that this is not enough; of
READs it keeps what is behind the gap. As responder it keeps requests, and the kernel sends them all
the same. Whatever happens, every request completes once, in order and with success, and memory is
right.
"""
from bench import InteropCase, LinuxAsks, RocelaneAsks
from test_loss import LossyWork

KNOBS = {"req.gap": "patch", "req.read_gap": "keep", "resp.gap": "keep"}


class Gaps(LossyWork):
    """REQ-NAK-11, REQ-NAK-12, RESP-SEQ-14, RESP-SEQ-15, REQ-IMPL-02, REQ-IMPL-04: with 20 packets
    a message, most losses leave something behind them."""

    def counter(self, name):
        return self.bench.host.rpc("stats", scope="total")[name]

    def lossy(self, chance, rounds, n, **attrs):
        before = self.counter(self.seen)
        with self.scene(chance=chance):
            self.assertGreater(self.by_chance("drop", chance, rounds, n=n, path_mtu=256,
                                              knobs=KNOBS, **attrs), 0)
        self.assertGreater(self.counter(self.seen), before)

    def test_1_percent(self):
        self.lossy(0.01, 8, 64)

    def test_5_percent(self):
        self.lossy(0.05, 2, 40)


class RocelaneAsksAroundGaps(RocelaneAsks, Gaps, InteropCase):
    seen = "packet_seq_err"         # NAKs of the kernel's


class LinuxAsksAroundGaps(LinuxAsks, Gaps, InteropCase):
    seen = "kept_requests"
