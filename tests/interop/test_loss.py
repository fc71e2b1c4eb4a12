# SPDX-License-Identifier: BSD-3-Clause
"""A bad wire: each type of packet lost, doubled, late or damaged once, and all of it by chance.

Whatever happens, every request completes once, in order and with success, and memory is right.
"""
import os
import struct

import roce
from bench import InteropCase, LinuxAsks, RocelaneAsks
from ends import CAS, FADD, LINUX, READ, SEND, SEND_IMM, WRITE, WRITE_IMM, GaveUp
from wire import TO_GUEST, TO_HOST, opcode

SEED = int(os.environ.get("INTEROP_SEED", "7"))

# What the work below puts on the wire, from the requester and from the responder.
REQUESTS = (roce.SEND_FIRST, roce.SEND_MIDDLE, roce.SEND_LAST, roce.SEND_LAST_IMM, roce.SEND_ONLY,
            roce.SEND_ONLY_IMM, roce.WRITE_FIRST, roce.WRITE_MIDDLE, roce.WRITE_LAST,
            roce.WRITE_LAST_IMM, roce.WRITE_ONLY, roce.WRITE_ONLY_IMM, roce.READ_REQ,
            roce.CMP_SWAP, roce.FETCH_ADD)
ANSWERS = (roce.ACK, roce.ATOMIC_ACK, roce.READ_FIRST, roce.READ_MIDDLE, roce.READ_LAST,
           roce.READ_ONLY)


def work(link):
    """Every operation, of one packet and of several; atomics with something before and behind."""
    out = [link.request(FADD, 8, at=8, compare_add="0x7"),
           link.request(CAS, 8, at=16, compare_add="0x0", swap="0x123456789abcdef")]
    for op in (SEND, SEND_IMM, WRITE, WRITE_IMM, READ):
        out += [link.request(op, size) for size in (3500, 100)]
    return out + [link.request(FADD, 8, at=8, compare_add="0x5")]


class LossyWork:
    """Requests over a wire that does something to packets, and what must come of them."""
    void = 0        # READs and atomics of the kernel without their data, in this scene

    to_answers = property(lambda self: TO_GUEST if self.answers.name == "linux" else TO_HOST)
    to_asks = property(lambda self: TO_HOST if self.answers.name == "linux" else TO_GUEST)

    def check_answers(self, link):
        """The responder's data on the wire: each READ's bytes, and one result for each atomic."""
        source, results = {}, {}
        base = link.b.end.src["addr"]
        for s in self.bench.wire.frames():
            raw, at = s.raw, s.at
            if s.opcode == roce.READ_REQ and s.to == self.to_answers:
                va, _, length = struct.unpack_from(">QII", raw, at + 12)
                mtu = link.b.attrs["path_mtu"]
                for i in range(max(1, -(-length // mtu))):
                    source[roce.psn_add(s.psn, i)] = (va - base + i * mtu,
                                                      min(mtu, length - i * mtu))
            elif s.opcode == roce.ATOMIC_ACK and s.to == self.to_asks:
                value = raw[at + 16:at + 24]
                self.assertEqual(value, results.setdefault(s.psn, value))
            elif roce.READ_FIRST <= s.opcode <= roce.READ_ONLY and s.to == self.to_asks:
                offset, length = source[s.psn]
                data = raw[at + (12 if s.opcode == roce.READ_MIDDLE else 16):][:length]
                self.assertEqual(link.b.end.src_data[offset:offset + length], data)

    def forgive(self, end, before, requests):
        """A bug of the kernel's requester (6.1): where answers are lost or late it may complete a
        READ or an atomic with success and leave its buffer as it was; what came over the wire was
        right (check_answers). Such bytes, and no others, may be the old ones."""
        results = [r for r in requests if r.op in (READ, CAS, FADD)]
        top = max((r.local + r.size for r in results), default=0)
        got, void = end.read("dst", 0, top), 0
        for r in results:
            where = slice(r.local, r.local + r.size)
            now, want, old = got[where], end.dst_data[where], before[where]
            if now != want and all(n in (w, o) for n, w, o in zip(now, want, old)):
                end.dst_data[where] = now
                void += 1
        self.void += void
        if void:
            print("# the kernel completed %d READs or atomics without their data" % void)

    def clean(self, failed):
        """Data that the kernel did not wait for may have come later: it is no surprise any more."""
        super().clean(failed or self.void > 0)
        self.void = 0

    def finish(self, link, requests):
        for at in (8, 16, 24):
            link.b.end.write("dst", at, bytes(8))
        before = bytes(link.a.end.dst_data)
        link.run(requests)
        self.check_answers(link)
        if link.a.end.name == LINUX:
            self.forgive(link.a.end, before, requests)
        self.check_memory()
        b = self.bench
        self.assertEqual([], b.host.events() + b.linux.events())
        self.assertEqual(["RTS", "RTS"], [link.a.state(), link.b.state()])

    def patiently(self, timeouts, play):
        """play(timeout): again, with the next timer, if a requester has given up. Between two ends
        of which one is emulated, on CPUs that others use, eight timers may pass in silence; what
        is never answered is not answered with the longest of them either. That the other end has
        done nothing wrong is to be seen on the wire."""
        for left, timeout in zip(reversed(range(len(timeouts))), timeouts):
            try:
                return play(timeout)
            except GaveUp as e:
                if left == 0:
                    self.tell_wire(400)
                    raise
                self.blameless(self.links[-1])
                print("# %s: again: %s" % (self.id(), e), flush=True)
                self.clean(failed=True)
            except AssertionError:
                self.tell_wire(400)
                raise
        raise AssertionError("no timeouts")

    def blameless(self, link):
        """The responder has refused nothing, and what it answered is right."""
        refusals = [s for s in self.bench.wire.frames(self.to_asks, roce.ACK)
                    if s.syndrome in (roce.NAK_INV, roce.NAK_RAE, roce.NAK_ROE)]
        self.assertEqual([], refusals)
        self.check_answers(link)
        self.assertEqual("RTS", link.b.state())
        self.assertEqual([], link.b.end.events())

    def by_chance(self, act, chance, rounds, n=100, **attrs):
        """Both directions of the wire; the host's side of it is rocelane's own impairment."""
        def play(timeout):
            b.host.rpc("impair_set", port="p0", impair={"seed": SEED, "rules": [
                {"action": {"drop": "drop", "twice": "duplicate", "late": "reorder"}[act],
                 "probability": chance}]})
            try:
                rule = b.wire.rule(act, TO_GUEST, chance=chance, count=-1, seed=SEED)
                link = self.link(timeout=timeout, **attrs)
                for _ in range(rounds):
                    self.finish(link, link.mixture(n))
            finally:
                b.host.rpc("impair_set", port="p0", impair=None)
            self.clean(failed=False)
            return rule.hits
        b = self.bench
        return self.patiently((15, 18, 18, 20) if act == "drop" else (18, 18, 18, 20), play)


class BadWire(LossyWork):
    def once(self, act):
        """Each type of packet on a connection of its own."""
        for code in REQUESTS + ANSWERS:
            to = self.to_asks if code in ANSWERS else self.to_answers

            def play(timeout, code=code, to=to):
                link = self.link(timeout=timeout)
                rule = self.bench.wire.rule(act, to, opcode(code))
                self.finish(link, work(link))
                self.assertEqual(1, rule.hits)
            with self.scene(packet=roce.NAMES[code]):
                self.patiently((14, 17, 20), play)

    def test_each_packet_lost_once(self):
        """REQ-RETRY-08, REQ-NAK-01, REQ-IMPL-01..03, RESP-SEQ-03, RESP-DUP-01..06."""
        self.once("drop")

    def test_each_packet_doubled(self):
        """RESP-DUP-01..06, REQ-15, REQ-16."""
        self.once("twice")

    def test_each_packet_late(self):
        """RESP-SEQ-01, REQ-CLS-B-07: overtaken by the next one."""
        self.once("late")

    def test_each_packet_damaged(self):
        """RX-SYN-30, ICRC-06: dropped for its ICRC."""
        self.once("flip")

    def test_a_failure_leaves_nothing_behind(self):
        """Data that arrived, of a request that then failed, is no surprise to the next scene."""
        link = self.link(timeout=8, retry_cnt=1)
        self.bench.wire.rule("drop", self.to_asks, count=-1)
        with self.assertRaises(GaveUp):
            link.run([link.request(WRITE, 3500)])
        self.clean(failed=True)
        link = self.link()
        link.run(work(link))
        self.check_memory(all_of_it=True)
        self.assertEqual([], self.bench.wire.rules)
        for at in (8, 16, 24):
            link.b.end.write("dst", at, bytes(8))

    def test_loss_of_1_percent(self):
        """CQ-04."""
        self.assertGreater(self.by_chance("drop", 0.01, 8), 0)

    def test_loss_of_a_thousandth(self):
        self.by_chance("drop", 0.001, 6, path_mtu=256)

    def test_loss_of_5_percent(self):
        """More than anybody promises."""
        self.assertGreater(self.by_chance("drop", 0.05, 2, n=40), 0)

    def test_duplication(self):
        self.by_chance("twice", 0.001, 3)
        self.by_chance("twice", 0.01, 5)

    def test_reordering(self):
        self.by_chance("late", 0.001, 3)
        self.by_chance("late", 0.01, 5)


class RocelaneAsksOverABadWire(RocelaneAsks, BadWire, InteropCase):
    pass


class LinuxAsksOverABadWire(LinuxAsks, BadWire, InteropCase):
    pass
