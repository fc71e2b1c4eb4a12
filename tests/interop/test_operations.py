# SPDX-License-Identifier: BSD-3-Clause
"""Every operation, size and path MTU, either way round, with nothing wrong on the wire."""
import itertools

import roce
from bench import InteropCase, LinuxAsks, RocelaneAsks
from ends import CAS, FADD, READ, SEND, SEND_IMM, WRITE, WRITE_IMM
from wire import TO_GUEST, TO_HOST

MESSAGES = (SEND, SEND_IMM, WRITE, WRITE_IMM, READ)


class Operations:

    def all_went_well(self, all_of_it=False):
        """Memory is right, nothing was repeated, and nobody refused anything."""
        self.check_memory(all_of_it)
        b = self.bench
        self.assertEqual([], b.host.events() + b.linux.events())
        naks = [s for s in b.wire.frames() if s.syndrome is not None and s.syndrome & 0x60]
        self.assertEqual([], naks)

    def sizes(self, op, sizes, **attrs):
        link = self.link(**attrs)
        link.run([link.request(op, size) for size in sizes])
        self.all_went_well()

    SIZES = (0, 1, 2, 3, 4, 5, 64, 1023, 1024, 1025, 2048, 3001, 65537)

    def test_send(self):
        """RESP-01, RESP-02, REQ-01: all pads, one packet and many."""
        self.sizes(SEND, self.SIZES)

    def test_send_with_immediate(self):
        """RESP-03."""
        self.sizes(SEND_IMM, self.SIZES)

    def test_write(self):
        """RESP-05."""
        self.sizes(WRITE, self.SIZES)

    def test_write_with_immediate(self):
        """RESP-05: the immediate takes a receive."""
        self.sizes(WRITE_IMM, self.SIZES)

    def test_read(self):
        """RESP-06, REQ-05."""
        self.sizes(READ, self.SIZES)

    def test_a_mebibyte(self):
        """All that moves data, in the smallest and in the largest packets."""
        for op, mtu in itertools.product(MESSAGES, (256, 4096)):
            with self.subTest(op=op, mtu=mtu):
                link = self.link(path_mtu=mtu)
                link.run([link.request(op, 1 << 20)])
        self.all_went_well(all_of_it=True)

    def test_every_path_mtu(self):
        """WIRE-08: around one and several packets of each."""
        for mtu in (256, 512, 1024, 2048, 4096):
            sizes = (0, 1, mtu - 1, mtu, mtu + 1, 3 * mtu + 6)
            with self.subTest(mtu=mtu):
                link = self.link(path_mtu=mtu)
                self.bench.wire.clear()
                link.run([link.request(op, size) for op in MESSAGES for size in sizes])
                self.all_went_well()
                longest = max(s.raw[16] << 8 | s.raw[17] for s in self.bench.wire.frames())
                self.assertEqual(64, longest - mtu)     # WRITE ONLY with immediate

    def test_compare_and_swap(self):
        """RESP-07: equal, not equal, all bits; the answer is the value before."""
        link = self.link()
        link.b.end.write("dst", 8, (5).to_bytes(8, "little"))
        pairs = ((5, 7), (5, 9), (7, 2**64 - 1), (2**64 - 1, 0x0102030405060708), (0, 1))
        link.run([link.request(CAS, 8, at=8, compare_add=hex(c), swap=hex(s)) for c, s in pairs])
        self.all_went_well()
        self.assertEqual(0x0102030405060708, int.from_bytes(link.b.end.read("dst", 8, 8), "little"))

    def test_fetch_and_add(self):
        """RESP-07: with a carry, and around 2^64."""
        link = self.link()
        link.b.end.write("dst", 16, (2**32 - 1).to_bytes(8, "little"))
        link.run([link.request(FADD, 8, at=16, compare_add=hex(n))
                  for n in (0, 1, 2**63, 2**63, 2**64 - 1)])
        self.all_went_well()
        self.assertEqual(2**32 - 1, int.from_bytes(link.b.end.read("dst", 16, 8), "little"))

    def test_many_outstanding(self):
        """REQ-09: 200 requests posted at once, the READs and atomics held to max_rd_atomic."""
        link = self.link()
        link.run(link.mixture(200))
        self.all_went_well()

    def test_one_read_at_a_time(self):
        """REQ-09: max_rd_atomic 1."""
        link = self.link(max_rd_atomic=1, max_dest_rd_atomic=1)
        link.run(link.mixture(48))
        self.all_went_well()

    def test_psn_wrap(self):
        """WIRE-11: inside of each kind of message, on both sides' counters."""
        for op in MESSAGES:
            for before in (1, 2):
                with self.subTest(op=op, before=before):
                    link = self.link(sq_psn=0x1000000 - before)
                    link.run([link.request(op, 3500), link.request(op, 10)])
                    self.all_went_well()

    def test_psn_wrap_under_load(self):
        link = self.link(sq_psn=0xFFFFF0, path_mtu=256)
        link.run(link.mixture(120))
        self.all_went_well()

    def test_both_directions_at_once(self):
        """Requests and responses of one queue pair share the wire."""
        link = self.link()
        back = self.link(link.b.end, link.a.end)
        back.a, back.b = link.b, link.a
        self.links.remove(back)
        there = [link.request(WRITE, 20000) for _ in range(20)]
        link.dst_at, back.dst_at = 64, 1 << 20
        here = [back.request(READ, 20000) for _ in range(20)]
        link.a.post_send(*[r.wr for r in there])
        back.run(here)
        self.assertEqual([r.completion() for r in there],
                         [(c["wr_id"], c["status"], c["opcode"]) for c in link.a.sent(20)])
        for r in there:
            r.apply()
        self.all_went_well()

    def test_ipv6(self):
        link = self.link(ipv6=True)
        link.run(link.mixture(24))
        self.all_went_well()
        self.assertTrue(all(s.raw[12:14] == b"\x86\xdd" for s in self.bench.wire.frames()))

    def test_four_pairs_at_once(self):
        """Each with its own PSNs and completion queues."""
        links = [self.link(sq_psn=0x1000 * (i + 1)) for i in range(4)]
        work = []
        for i, link in enumerate(links):
            link.dst_at = 64 + i * (400 << 10)
            requests = [link.request(WRITE, 3000) for _ in range(30)]
            link.a.post_send(*[r.wr for r in requests])
            work.append((link, requests))
        for link, requests in work:
            self.assertEqual([r.completion() for r in requests],
                             [(c["wr_id"], c["status"], c["opcode"]) for c in link.a.sent(30)])
            for r in requests:
                r.apply()
        self.all_went_well()

    def test_icrc_of_every_packet(self):
        """ICRC-01..03: what either end sends has the ICRC of an independent routine."""
        link = self.link()
        link.run(link.mixture(16))
        frames = self.bench.wire.frames()
        self.assertTrue({TO_GUEST, TO_HOST} <= {s.to for s in frames})
        for s in frames:
            self.assertEqual(roce.with_icrc(s.raw), s.raw)
        for s in frames[::10]:
            self.assertEqual(roce.scapy_icrc(s.raw), s.raw[-4:])


class RocelaneAsksLinux(RocelaneAsks, Operations, InteropCase):
    pass


class LinuxAsksRocelane(LinuxAsks, Operations, InteropCase):
    pass


class Guest(InteropCase):
    """What else the guest has."""

    def test_perftest_is_there(self):
        guest = self.bench.guest
        for kind, what in itertools.product(("send", "write", "read", "atomic"), ("bw", "lat")):
            program = "ib_%s_%s" % (kind, what)
            status, output = guest.wait(guest.start([program, "--version"]))
            self.assertIsNotNone(status)
            self.assertIn("Version", output, program)
