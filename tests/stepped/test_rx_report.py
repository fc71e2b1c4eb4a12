# SPDX-License-Identifier: BSD-3-Clause
"""RX-ERR, RX-FATAL, RX-LNK: what is told about packets that were not taken."""
import dut
from dut import QPN, RKEY, VA, Ack, E, Nak
from roce import NAK_INV, NAK_RAE, data


class ErrorRecord(dut.DutCase):

    CONFIG = {"error_buffer": {"entries": 64}}
    FIXED = {"errbuf": "on"}

    def test_RX_ERR_01_one_record_for_a_drop(self):
        self.resp()
        frame = self.peer.send_only(E, data(200), tver=2)
        self.silent(self.feed(frame))
        records = self.rpc("rx_errors", max=8)
        self.assertEqual(1, len(records))
        r = records[0]
        self.assertEqual((1 << 13, "drop", QPN, E, frame[:128].hex(), len(frame)),
                         (r["syndrome"], r["impact"], r["qp_num"], r["psn"], r["header"],
                          r["length"]))
        self.assertEqual([], self.rpc("rx_errors", max=8))

    def test_RX_ERR_01_a_look_takes_nothing(self):
        """peek: the newest that wait, as often as asked; then each is delivered once."""
        self.resp()
        for i in range(3):
            self.silent(self.feed(self.peer.send_only(E + i, b"x", tver=2)))
        for _ in range(2):
            self.assertEqual([E, E + 1, E + 2],
                             [r["psn"] for r in self.rpc("rx_errors", peek=True)])
            self.assertEqual([E + 1, E + 2],
                             [r["psn"] for r in self.rpc("rx_errors", max=2, peek=True)])
        looked = self.rpc("rx_errors", peek=True)
        taken = self.rpc("rx_errors", max=8)
        for r in looked + taken:
            del r["time"]   # the stepped clock stands still while the wall's goes on
        self.assertEqual(looked, taken)
        self.assertEqual([], self.rpc("rx_errors", peek=True))

    def test_RX_ERR_03_bounded(self):
        self.resp()
        bad = self.peer.send_only(E, b"x", tver=1)
        for _ in range(100):
            self.feed(*[bad] * 100)
            if _ == 0:
                self.assertLessEqual(len(self.rpc("rx_errors", max=1000)), 64)
        self.assertEqual(10000, self.delta("rx_syndrome_13"))
        self.assertGreater(self.delta("error_buffer_lost"), 0)
        self.assertLessEqual(len(self.rpc("rx_errors", max=1000)), 64 * 64)
        self.expect(self.feed(self.peer.send_only(E, b"x")), Ack(E, 1))

    def test_RX_ERR_04_fatal_faults_are_told(self):
        """The record of a packet that was fatal: QPN and FATAL code come with the event."""
        self.resp()
        self.expect(self.feed(self.peer.send_middle(E, data(1024))), Nak(E, NAK_INV, 0))
        event = self.events()[0]
        self.assertEqual((QPN, 1, "RQ", E), (event["qp_num"], event["fatal_code"], event["source"],
                                             event["psn"]))
        self.assertEqual(1, self.qp()["fatal"]["fatal_code"])

    def test_RX_ERR_04_others_are_not(self):
        """What is dropped, refused for now or repeated leaves no fatal status."""
        self.resp()
        p = self.peer
        self.feed(p.send_only(E, b"x", tver=1), p.send_only(E + 1, b"x"))
        self.feed(p.send_only(E, b"x"), p.send_only(E, b"x"))
        self.assertIsNone(self.qp()["fatal"])
        self.assertEqual([], self.events())


class NoErrorRecord(dut.DutCase):

    FIXED = {"errbuf": "off"}

    def test_RX_ERR_02_off(self):
        self.resp()
        self.silent(self.feed(self.peer.send_only(E, b"x", tver=1)))
        self.assertEqual([], self.rpc("rx_errors", max=8))
        self.assertEqual(1, self.delta("rx_syndrome_13"))


class FatalCodes(dut.DutCase):

    def code(self, *frames, **resp):
        self.resp(**resp)
        got = self.each(*frames)
        self.assertEqual(1, len(got), got)
        self.assertEqual("ERR", self.state())
        events = self.events()
        if events:
            return events[0]["fatal_code"], got[0].syndrome
        return self.cqes()[0]["vendor_err"], got[0].syndrome

    def test_RX_FATAL_codes_of_sends_and_opcodes(self):
        """RX-FATAL-01, RX-FATAL-02, RX-FATAL-03, RX-FATAL-04."""
        p = self.peer
        self.assertEqual((1, NAK_INV), self.code(p.send_middle(E, data(1024))))
        self.assertEqual((2, NAK_INV), self.code(p.send_first(E, data(1020))))
        self.assertEqual((3, NAK_INV), self.code(p.send_middle(E, data(1020))))
        self.assertEqual((4, NAK_INV), self.code(p.packet(0x1F, E)))

    def test_RX_FATAL_codes_tied_to_a_wqe(self):
        """The same codes as a completion's vendor_err: RX-FATAL-01, RX-FATAL-02."""
        p = self.peer
        self.assertEqual((1, NAK_INV), self.code(p.send_first(E, data(1024)), p.send_only(E + 1)))
        self.assertEqual((2, NAK_INV), self.code(p.send_first(E, data(1024)),
                                                 p.send_middle(E + 1, data(1020))))

    def test_RX_FATAL_16_read_resources(self):
        self.assertEqual((16, NAK_INV), self.code(self.peer.read_req(E, VA, RKEY, 4),
                                                  max_dest_rd_atomic=0))

    def test_RX_FATAL_17_18_writes(self):
        p = self.peer
        self.assertEqual((17, NAK_INV), self.code(p.write_middle(E, data(1024))))      # RX-FATAL-17
        self.assertEqual((19, NAK_INV), self.code(p.write_middle(E, data(1020))))
        self.assertEqual((18, NAK_INV),
                         self.code(p.write_first(E, data(1020), VA, RKEY, 4000)))      # RX-FATAL-18

    def test_RX_FATAL_21_22_keys_and_lengths(self):
        p = self.peer
        self.assertEqual((21, NAK_RAE),
                         self.code(p.write_only(E, b"x", VA, RKEY ^ 1)))  # RX-FATAL-21
        self.assertEqual((22, NAK_INV),
                         self.code(p.read_req(E, VA, RKEY, 0x80000001)))  # RX-FATAL-22
        self.assertEqual((23, NAK_INV), self.code(p.read_req(E, VA, RKEY ^ 1, 0x80000001)))


class PortMtu(dut.DutCase):

    CONFIG = {"ports": [dict(dut.base_config()["ports"][0], mtu=1500)]}

    def test_RX_LNK_02_path_mtu_beyond_the_port(self):
        self.resp()
        with self.assertRaises(dut.RpcError) as refused:
            self.rpc("qp_create", **self.qp_params(qp_num=0x44, path_mtu=2048))
        self.assertIn("mtu", refused.exception.message.lower())
        with self.assertRaises(dut.RpcError):
            self.qp(0x44)
        self.expect(self.feed(self.peer.send_only(E, data(1024))), Ack(E, 1))

    def test_RX_LNK_02_jumbo_frame(self):
        """Dropped and counted by the port, whatever is in it; the longest that fits is not."""
        self.resp()
        port = self.dut.counters(port="p0")["rx_oversize"]
        fits = 1500 + 14 + 4                        # a VLAN tag may be there
        good = self.peer.send_only(E, data(1024))
        longest = good + bytes(fits - len(good))    # bytes behind the ICRC are nobody's
        for n, frame in enumerate((longest + b"\0", good + bytes(9000 - len(good)),
                                   bytes(fits + 1), self.peer.send_only(E, data(1900))), 1):
            self.silent(self.feed(frame), ms=1)
            self.assertEqual((n, n), (self.delta("rx_oversize"),
                                      self.dut.counters(port="p0")["rx_oversize"] - port))
        self.expect(self.feed(longest), Ack(E, 1))
        # Between good ones of the same burst it takes nothing with it.
        second = self.peer.send_only(E + 1, data(1024))
        self.expect(self.feed(second + bytes(fits - len(second)), longest + b"\0",
                              self.peer.send_only(E + 2, b"x")), Ack(E + 2, 3))


if __name__ == "__main__":
    dut.main()
