# SPDX-License-Identifier: BSD-3-Clause
"""Regions that begin at any virtual address, as verbs allow: ATOMICs in them (RESP-07)."""
import dut
from dut import ALL_REMOTE, MR_LEN, QPN, RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse
from roce import NAK_INV, NAK_RAE, data, pattern


class Alignment(dut.DutCase):

    def region(self, va, length=4096, fill="pattern:3"):
        self.resp()
        self.rpc("mr_deregister", name="mr0")
        mr = self.rpc("mr_register", name="mr0", pd="pd0", length=length, addr=hex(va),
                      rkey=hex(RKEY), access=ALL_REMOTE, fill=fill)
        self.assertEqual(length, mr["length"])

    def test_RESP_07_RESP_18_wherever_the_region_begins(self):
        """The first multiple of 8 in it, and the last."""
        for begin in range(8):
            for length in (4096, 4096 + 7, 1 << 20):
                with self.subTest(begin=begin, length=length):
                    va, want = VA + begin, pattern(3, 4096 + 7)
                    self.region(va, length)
                    first, p = -va % 8, self.peer
                    was = int.from_bytes(want[first:first + 8], "little")
                    self.expect(self.feed(p.fetch_add(E, va + first, RKEY, 5)), AtomicAck(E, was))
                    now = (was + 5) % 2**64
                    self.expect(self.feed(p.cmp_swap(E + 1, va + first, RKEY, now, 9)),
                                AtomicAck(E + 1, now))
                    self.assertEqual(want[:first] + (9).to_bytes(8, "little") +
                                     want[first + 8:100], self.mem(0, 100))
                    self.expect(self.feed(p.read_req(E + 2, va, RKEY, 100)),
                                ReadResponse(E + 2, self.mem(0, 100)))
                    last = (va + length - 8) // 8 * 8
                    self.set_mem(last - va, bytes(8))
                    self.expect(self.feed(p.fetch_add(E + 3, last, RKEY, 1)), AtomicAck(E + 3, 0))
                    self.assertEqual(1, int.from_bytes(self.mem(last - va, 8), "little"))

    def test_RESP_NAK_ROE_03_what_is_not_aligned_is_the_peers_fault(self):
        for begin in (1, 4):
            self.region(VA + begin)
            self.expect(self.feed(self.peer.fetch_add(E, VA + 8 + begin, RKEY, 1)),
                        Nak(E, NAK_INV))
            self.region(VA + begin)
            self.expect(self.feed(self.peer.fetch_add(E, VA, RKEY, 1)), Nak(E, NAK_RAE))

    def test_its_ends_are_where_they_were(self):
        """A byte in front of it and one behind it are not the region's."""
        for begin in (0, 3, 7):
            for va, length, good in ((VA + begin, 4096, True), (VA + begin - 1, 2, False),
                                     (VA + begin + 4095, 2, False)):
                self.region(VA + begin)
                got = self.feed(*self.peer.write(E, data(length), va, RKEY))
                self.assertEqual(not good, got[-1].is_nak, (begin, va))
            with self.assertRaises(dut.RpcError):
                self.mem(4096, 1)

    def test_the_end_of_the_address_space(self):
        for begin in range(1, 9):
            self.region(2**64 - 4096 - begin)
            va = 2**64 - 4096 if begin != 8 else 2**64 - 4104
            was = int.from_bytes(self.mem(va - (2**64 - 4096 - begin), 8), "little")
            self.expect(self.feed(self.peer.fetch_add(E, va, RKEY, 1)), AtomicAck(E, was))
            self.expect(self.feed(self.peer.write_only(E + 1, b"x", 2**64 - begin - 1, RKEY)),
                        Ack(E + 1))

    def test_a_region_picked_by_the_dataplane(self):
        self.resp()
        mr = self.make("mr_register", name="any", pd="pd0", length=MR_LEN, access=ALL_REMOTE)
        self.assertEqual(0, int(str(mr["addr"]), 0) % 8)
        self.expect(self.feed(self.peer.fetch_add(E, int(str(mr["addr"]), 0) + 8,
                                                  int(str(mr["rkey"]), 0), 1)), AtomicAck(E, 0))
        self.assertEqual((1).to_bytes(8, "little"), self.mem(8, 8, "any"))

    def test_an_operators_region_changes_in_place(self):
        """Rights, then the domain, then both back: the key and what is in it stay."""
        p = self.peer

        def write(good, psn, payload):
            got = self.feed(*p.write(psn, payload, VA, RKEY))
            self.assertEqual(not good, got[-1].is_nak)

        self.region(VA)
        self.make("pd_create", name="pd1")
        write(True, E, data(64))
        for change, back in (({"access": ["REMOTE_READ"]}, {"access": ALL_REMOTE}),
                             ({"pd": "pd1"}, {"pd": "pd0"})):
            with self.subTest(change=change):
                mr = self.rpc("mr_rereg", name="mr0", **change)
                self.assertEqual(RKEY, int(str(mr["rkey"]), 0))
                self.assertEqual(change, {k: mr[k] for k in change})
                write(False, E + 1, bytes(64))
                self.assertEqual(data(64), self.mem(0, 64))
                self.rpc("mr_rereg", name="mr0", **back)
                self.rpc("qp_destroy", qp_num=QPN)  # the refused WRITE has failed it
                self.rpc("qp_create", **self.qp_params())
                write(True, E, data(64))

    def test_zero_based_and_back(self):
        """Without ZERO_BASED it begins again where it began, or where the dataplane has picked."""
        p = self.peer
        self.region(VA)
        for psn, access, va in ((E, ALL_REMOTE + ["ZERO_BASED"], 0), (E + 1, ALL_REMOTE, VA)):
            mr = self.rpc("mr_rereg", name="mr0", access=access)
            self.assertEqual(va, int(str(mr["addr"]), 0))
            self.expect(self.feed(*p.write(psn, data(64), va, RKEY))[-1:], Ack(psn))
        self.make("mr_register", name="zero", pd="pd0", length=MR_LEN,
                  access=ALL_REMOTE + ["ZERO_BASED"])
        mr = self.rpc("mr_rereg", name="zero", access=ALL_REMOTE)
        self.assertNotEqual(0, int(str(mr["addr"]), 0))


if __name__ == "__main__":
    dut.main()
