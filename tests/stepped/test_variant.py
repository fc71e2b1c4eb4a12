# SPDX-License-Identifier: BSD-3-Clause
"""Which code paths the rules' tests are run on, and that a run is really on its own."""
import unittest

import dut
import roce
import variant
from dut import QPN, Ack, E


class Choice(unittest.TestCase):

    def test_each_pair_of_values_is_covered(self):
        self.assertEqual([], variant.uncovered(variant.COVERING))
        self.assertEqual(256, len(set(variant.every())))

    def test_each_value_is_covered_without_the_long_ones(self):
        self.assertEqual(set(), set(variant.BRIEF) - set(variant.COVERING))
        runs = [variant.read(text) for text in ("",) + variant.BRIEF]
        for name, values in variant.OPTIONS.items():
            self.assertEqual(set(values), {run[name] for run in runs})

    def test_each_value_is_covered_under_the_sanitizers(self):
        """Of the widths the widest and the narrowest: the others are the unit tests' in each
        build (pipeline_plain_256 and its like)."""
        runs = [variant.read(text) for text in ("",) + variant.SANITIZED]
        for name, values in variant.OPTIONS.items():
            left = set(values) - {run[name] for run in runs}
            self.assertEqual({"128", "256"} if name == "simd" else set(), left)

    def test_a_pair_that_is_missing_is_found(self):
        without = [text for text in variant.COVERING if text != "simd=64,errbuf=off,ip=6,vlan=7"]
        self.assertIn((("errbuf", "off"), ("simd", "64")), variant.uncovered(without))

    def test_what_is_no_option_is_refused(self):
        for text in ("errbuf", "errbuf=", "errbuf=maybe", "colour=red", "ip=5"):
            with self.assertRaises(ValueError):
                variant.read(text)


class Taken(dut.DutCase):

    def test_the_path_of_this_variant(self):
        self.resp()
        good = self.peer.send_only(E, b"x")
        self.assertEqual((6 if variant.v6() else 4, variant.vlan()),
                         (roce.Frame(good).version, roce.Frame(good).vlan))
        self.assertEqual([], self.feed(roce.flip(good, len(good) * 8 - 1)))
        self.records(1)
        self.expect(self.feed(good), Ack(E, 1))
        self.assertEqual(2 if variant.handed_over() else 0, self.delta("rx_handoff"))
        self.assertEqual(variant.traced(), self.rpc("trace_read", qp_num=QPN) != [])
        width = variant.now["simd"]
        said = "no more than %s bits" % width in self.dut.stderr()
        self.assertEqual(width != "512", said, self.dut.stderr())


if __name__ == "__main__":
    dut.main()
