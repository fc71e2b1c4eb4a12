# SPDX-License-Identifier: BSD-3-Clause
"""Connections with librdmacm's programs in the guest: rping, ucmatose, udaddy, cmtime."""
import contextlib
import itertools
import os
import signal
import time

import roce
import rping
from bench import GUEST_IP, GUEST_IP6, HOST_IP, HOST_IP6, InteropCase
from rdmacm import GRH, WAIT_S, Ours, message
from wire import TO_GUEST, TO_HOST, opcode

SEED = int(os.environ.get("INTEROP_SEED", "7"))
MESSAGES, SIZE = 10, 100    # of ucmatose and udaddy
UDADDY, UD_QKEY = 7174, 0x1234567
NOBODY = (8, 1, 2)          # listens: reason of a REJ, status of a SIDR_REP
HELD_S = 5.5                # longer than Linux waits before it repeats a message


def part(taken):
    return {k: taken[k] for k in ("timeout", "retry_cnt", "rnr_retry", "max_rd_atomic",
                                  "max_dest_rd_atomic", "path_mtu")}


class CmCase(InteropCase):
    ports = itertools.count(7471)

    def setUp(self):
        super().setUp()
        self.ours = None
        self.running = []
        self.anew()

    def anew(self):
        """An end of ours without a past."""
        if self.ours is not None:
            self.ours.close()
        self.ours = Ours(self.bench.host)
        self.port = next(self.ports)

    def tearDown(self):
        for pid in self.running:
            self.bench.guest.wait(pid, 1, log="cm", signal=signal.SIGKILL)
        self.ours.close()
        super().tearDown()

    @contextlib.contextmanager
    def again(self, **params):
        """One of several runs of a test, with a port and an end of its own."""
        with self.subTest(**params):
            yield
        self.bench.wire.clear()
        self.anew()

    def there(self, program, *args):
        pid = self.bench.guest.start([program, *args], log="cm")
        self.running.append(pid)
        return pid

    def ended(self, pid):
        """What it wrote, once it has ended well."""
        status, output = self.bench.guest.wait(pid, WAIT_S, log="cm")
        if status is not None:
            self.running.remove(pid)
        self.assertEqual(0, rping.status(status, output), output)
        return output

    def connected(self, ipv6=False, port=None, **more):
        """Ask the guest's program; it may not listen yet: then again."""
        for _ in range(200):
            self.ours.connect(port or self.port, ipv6, **more)
            e = self.ours.answer()
            if e["event"] == "ESTABLISHED":
                return e
            self.assertIn(e["status"], NOBODY, e)
        raise AssertionError("nobody listens")

    # ---- the programs; each plays one connection, or more, to its end --------------------------

    def rping_asks(self, count, ipv6=False):
        self.ours.listen(self.port)
        pid = self.there("rping", "-c", "-v", "-C", count, "-p", self.port, "-a",
                         HOST_IP6 if ipv6 else HOST_IP)
        self.ours.accept(receives=2)
        texts = self.ours.rping_server(count)
        self.assertTrue(texts[-1].startswith("rdma-ping-%d: " % (count - 1)), texts)
        taken = self.ours.taken()
        out = self.ended(pid)
        self.assertEqual(count, out.count("ping data: rdma-ping-"), out)
        self.ours.event("DISCONNECTED", cid=self.ours.cid)
        return taken

    def rping_serves(self, count, ipv6=False):
        pid = self.there("rping", "-s", "-v", "-C", count, "-p", self.port, "-a",
                         GUEST_IP6 if ipv6 else GUEST_IP)
        self.connected(ipv6)
        self.ours.post_recv(0, 1)
        self.ours.rping_client(count)
        taken = self.ours.taken()
        self.ours.disconnect()
        out = self.ended(pid)
        self.assertEqual(count, out.count("ping data: rdma-ping-"), out)
        return taken

    def ucmatose_asks(self, connections=1, ipv6=False):
        """The server sends first, and ends the connections."""
        self.ours.listen(self.port)
        pid = self.there("ucmatose", "-s", HOST_IP6 if ipv6 else HOST_IP, "-p", self.port, "-c",
                         connections, "-C", MESSAGES, "-S", SIZE)
        cids = []
        for _ in range(connections):
            self.ours.accept(receives=MESSAGES)
            cids.append((self.ours.cid, self.ours.qpn))
        for self.ours.cid, self.ours.qpn in cids:
            self.ours.event("ESTABLISHED", cid=self.ours.cid)
            self.messages_out()
        self.messages_in(connections)
        taken = [self.ours.taken(cid) for cid, _ in cids][-1]
        for self.ours.cid, _ in cids:
            self.ours.disconnect()
        self.assertIn("return status 0", self.ended(pid))
        return taken

    def ucmatose_serves(self, ipv6=False):
        pid = self.there("ucmatose", "-b", GUEST_IP6 if ipv6 else GUEST_IP, "-p", self.port, "-C",
                         MESSAGES, "-S", SIZE)
        self.connected(ipv6)
        self.ours.post_recv(*range(MESSAGES))
        self.messages_in()
        self.messages_out()
        taken = self.ours.taken()
        self.ours.event("DISCONNECTED", cid=self.ours.cid)
        self.assertIn("return status 0", self.ended(pid))
        return taken

    def messages_out(self):
        for i in range(MESSAGES):
            self.ours.post("SEND", 20 + i, SIZE)

    def messages_in(self, connections=1):
        """As many arrive as are sent, on each connection."""
        for _ in range(MESSAGES * connections):
            self.assertEqual(SIZE, self.ours.received()["byte_len"])

    def udaddy_asks(self, ipv6=False):
        """The server takes the client's number from the datagrams' immediate, and sends back."""
        self.ours.qpn = self.ours.listen(UDADDY, accept="always", ps="UDP",
                                         qp=self.ours.template("UD"))["qp_num"]
        self.ours.post_recv(*range(MESSAGES))
        pid = self.there("udaddy", "-s", HOST_IP6 if ipv6 else HOST_IP, "-C", MESSAGES, "-S", SIZE)
        for i in range(MESSAGES):
            c = self.ours.received()
            self.assertEqual(SIZE + GRH, c["byte_len"])
        to = self.ours.datagram(ipv6, c["imm_data"], UD_QKEY)
        for i in range(MESSAGES):
            self.ours.post("SEND_WITH_IMM", 20 + i, SIZE, imm_data=self.ours.qpn, ud=to)
        self.assertIn("return status 0", self.ended(pid))

    def udaddy_serves(self, ipv6=False):
        pid = self.there("udaddy", "-b", GUEST_IP6 if ipv6 else GUEST_IP, "-C", MESSAGES, "-S",
                         SIZE)
        e = self.connected(ipv6, port=UDADDY, ps="UDP", qp=self.ours.template("UD"))
        self.ours.post_recv(*range(MESSAGES))
        to = self.ours.datagram(ipv6, e["peer"]["qp_num"], e["peer"]["qkey"])
        for i in range(MESSAGES):
            self.ours.post("SEND_WITH_IMM", 20 + i, SIZE, imm_data=self.ours.qpn, ud=to)
        for _ in range(MESSAGES):
            self.assertEqual(SIZE + GRH, self.ours.received()["byte_len"])
        self.assertIn("return status 0", self.ended(pid))

    def cmtime_asks(self, connections, ipv6=False):
        """Connections all at once, accepted by nobody but the listener itself."""
        self.ours.listen(self.port, accept="always")
        out = self.ended(self.there("cmtime", "-s", HOST_IP6 if ipv6 else HOST_IP, "-p", self.port,
                                    "-c", connections))
        for _ in range(connections):
            self.ours.event("ESTABLISHED")
            self.ours.event("DISCONNECTED")
        print("# cmtime of the guest\n# " + out.replace("\n", "\n# "), flush=True)
        return out


    def cmtime_serves(self, connections, ipv6=False):
        """It accepts all, and never ends: tearDown() ends it."""
        self.there("cmtime", "-b", GUEST_IP6 if ipv6 else GUEST_IP, "-p", self.port,
                   "-c", connections)
        cids = []
        for _ in range(connections):
            self.connected(ipv6)
            cids.append(self.ours.cid)
        for self.ours.cid in cids:
            self.ours.disconnect()


class Brief(CmCase):
    """What is played each time."""

    def test_rping_both_ways(self):
        """CM-11, CM-12."""
        for play in (self.rping_asks, self.rping_serves):
            with self.again(play=play.__name__):
                play(3)


class Rping(CmCase):
    def test_the_guest_asks(self):
        """CM-11, CM-14, CM-15, CM-18, CM-43."""
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                t = self.rping_asks(100, ipv6)
                self.assertEqual(
                    {"timeout": 19, "retry_cnt": 7, "rnr_retry": 7, "max_rd_atomic": 1,
                     "max_dest_rd_atomic": 1, "path_mtu": 4096}, part(t["taken"]))

    def test_the_guest_serves(self):
        """CM-12, CM-16, CM-17, CM-18."""
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                t = self.rping_serves(100, ipv6)
                self.assertEqual(
                    {"timeout": 18, "retry_cnt": 7, "rnr_retry": 7, "max_rd_atomic": 1,
                     "max_dest_rd_atomic": 1, "path_mtu": 1024}, part(t["taken"]))


class Ucmatose(CmCase):
    def test_the_guest_asks(self):
        """CM-11, CM-33; ucmatose gives no RNR retries, and five others."""
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                t = self.ucmatose_asks(ipv6=ipv6)
                self.assertEqual((5, 0), (t["taken"]["retry_cnt"], t["taken"]["rnr_retry"]))

    def test_ten_at_once(self):
        self.ucmatose_asks(10)

    def test_the_guest_serves(self):
        """CM-12, CM-32."""
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                t = self.ucmatose_serves(ipv6)
                # Soft-RoCE does not count 7 down (rxe_comp.c, COMPST_ERROR_RETRY): to a peer that
                # is silent it resends for ever, where the specification ends after 7 times.
                self.assertEqual(7, t["taken"]["retry_cnt"])


class Cmtime(CmCase):
    def test_the_guest_asks(self):
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                self.cmtime_asks(100, ipv6)

    def test_the_guest_serves(self):
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                self.cmtime_serves(20, ipv6)


class Udaddy(CmCase):
    """CM-41: datagrams, found by SIDR."""

    def test_the_guest_asks(self):
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                self.udaddy_asks(ipv6)

    def test_the_guest_serves(self):
        for ipv6 in (False, True):
            with self.again(ipv6=ipv6):
                self.udaddy_serves(ipv6)

    def test_each_message_lost_doubled_late(self):
        for act in ("drop", "twice", "late"):
            for play, to, name in ((self.udaddy_asks, TO_HOST, "SIDR_REQ"),
                                   (self.udaddy_asks, TO_GUEST, "SIDR_REP"),
                                   (self.udaddy_serves, TO_GUEST, "SIDR_REQ"),
                                   (self.udaddy_serves, TO_HOST, "SIDR_REP")):
                with self.again(act=act, message=name, to=to):
                    rule = self.bench.wire.rule(act, to, message(name), hold=HELD_S)
                    play()
                    self.bench.wire.drain()
                    self.assertEqual(1, rule.hits)


class InForce(CmCase):
    """What each end does with the values that it has taken: seen on the wire. The one message of
    ucmatose's client and the one of ours are never acknowledged."""

    def unanswered(self, deaf, heard_by):
        """@return times at which the same SEND was sent, until its sender gave up."""
        self.ours.listen(self.port)
        pid = self.there("ucmatose", "-s", HOST_IP, "-p", self.port, "-C", 1)
        self.bench.wire.rule("drop", deaf, opcode(roce.ACK), count=-1)
        self.ours.accept(receives=2)
        self.ours.event("ESTABLISHED")
        taken = self.ours.taken()
        self.ours.post("SEND", 20, SIZE)
        yield taken
        times = [s.time for s in self.bench.wire.frames(heard_by, roce.SEND_ONLY)]
        print("# %d times, %s s apart" % (len(times), ", ".join(
            "%.3f" % (b - a) for a, b in zip(times, times[1:]))), flush=True)
        self.bench.wire.calm()
        self.bench.guest.wait(pid, 1, log="cm", signal=signal.SIGKILL)
        self.running.remove(pid)
        yield times

    def apart(self, times, timeout):
        for a, b in zip(times, times[1:]):
            self.assertGreater(b - a, 4.096e-6 * 2 ** timeout * 0.95)

    def test_CM_14_CM_15_here(self):
        """Of ucmatose's REQ: five retries, timeout 19."""
        play = self.unanswered(TO_HOST, TO_GUEST)
        taken = next(play)
        self.assertEqual((5, 19), (taken["taken"]["retry_cnt"], taken["taken"]["timeout"]))
        self.ours.until("failure", lambda: [
            c for c in self.ours.rpc("poll_cq", cq=self.ours.cq, max=64)
            if c["status"] == "RETRY_EXC_ERR"])
        times = next(play)
        self.assertEqual(1 + 5, len(times))
        self.apart(times, 19)

    def test_CM_16_CM_17_there(self):
        """Its own REQ's five retries; the timeout by our REP's target ACK delay of 14."""
        play = self.unanswered(TO_GUEST, TO_HOST)
        taken = next(play)
        self.assertEqual(14, taken["proposed"]["local"]["ack_timeout"])
        self.ours.until("six times", lambda: len(
            self.bench.wire.frames(TO_HOST, roce.SEND_ONLY)) >= 6)
        time.sleep(2 * 4.096e-6 * 2 ** 19)  # for a seventh
        times = next(play)
        self.assertEqual(1 + 5, len(times))
        self.apart(times, 19)


class BadWire(CmCase):
    """Each message of the connection manager lost, doubled or late once; and by chance."""

    def once(self, play, to_host, to_guest, *args):
        for act in ("drop", "twice", "late"):
            for to, names in ((TO_HOST, to_host), (TO_GUEST, to_guest)):
                for name in names:
                    with self.again(act=act, message=name, to=to):
                        rule = self.bench.wire.rule(act, to, message(name), hold=HELD_S)
                        play(*args)
                        self.bench.wire.drain()
                        self.assertEqual(1, rule.hits)

    def test_each_message_of_rping_IPv6(self):
        """The client ends it, whichever that is. The guest's leaves at once behind its DREQ, which
        the kernel does not repeat then."""
        self.once(self.rping_asks, ("REQ", "RTU"), ("REP", "DREP"), 3, True)
        self.once(self.rping_serves, ("REP", "DREP"), ("REQ", "RTU", "DREQ"), 3, True)

    def test_each_message_the_guest_asks(self):
        """CM-21, CM-22, CM-23, CM-28, CM-32, CM-33, CM-36. ucmatose's server ends it."""
        self.once(self.ucmatose_asks, ("REQ", "RTU", "DREP"), ("REP", "DREQ"))

    def test_each_message_the_guest_serves(self):
        self.once(self.ucmatose_serves, ("REP", "DREQ"), ("REQ", "RTU", "DREP"))

    def test_each_rejection(self):
        """CM-29, CM-30: nobody listens, and that is lost, doubled or late."""
        for act in ("drop", "twice", "late"):
            for to in (TO_HOST, TO_GUEST):
                with self.again(act=act, to=to):
                    rule = self.bench.wire.rule(act, to, message("REJ"), hold=HELD_S)
                    if to == TO_HOST:
                        self.ours.connect(self.port)
                        e = self.ours.answer()
                        self.assertEqual(("REJECTED", 8), (e["event"], e["status"]))
                    else:
                        pid = self.there("ucmatose", "-s", HOST_IP, "-p", self.port)
                        status, out = self.bench.guest.wait(pid, WAIT_S, log="cm")
                        self.running.remove(pid)
                        self.assertNotIn(status, (None, 0), out)
                        self.assertIn("RDMA_CM_EVENT_REJECTED, error: 8", out)
                    self.bench.wire.drain()
                    self.assertEqual(1, rule.hits)

    def test_each_mra(self):
        """CM-26: the program takes longer than the peer would wait."""
        for act in ("drop", "twice", "late"):
            with self.again(act=act):
                rule = self.bench.wire.rule(act, TO_GUEST, message("MRA"), hold=HELD_S)
                self.ours.listen(self.port)
                pid = self.there("ucmatose", "-s", HOST_IP, "-p", self.port, "-C", MESSAGES)
                self.ours.until("MRA", lambda r=rule: r.hits)
                self.ours.accept(receives=MESSAGES)
                self.ours.event("ESTABLISHED")
                self.messages_out()
                self.messages_in()
                self.ours.disconnect()
                self.assertIn("return status 0", self.ended(pid))

    def by_chance(self, chance, play, *args):
        b = self.bench
        b.host.rpc("impair_set", port="p0", impair={"seed": SEED, "rules": [
            {"action": "drop", "probability": chance}]})
        try:
            b.wire.rule("drop", TO_GUEST, chance=chance, count=-1, seed=SEED)
            play(*args)
        finally:
            b.host.rpc("impair_set", port="p0", impair=None)
            b.wire.calm()

    def test_loss_of_1_and_5_percent(self):
        for chance, ipv6 in itertools.product((0.01, 0.05), (False, True)):
            for play, *args in ((self.rping_asks, 100), (self.rping_serves, 100),
                                (self.ucmatose_asks, 5), (self.ucmatose_serves,),
                                (self.cmtime_asks, 20), (self.cmtime_serves, 10)):
                with self.again(chance=chance, ipv6=ipv6, play=play.__name__):
                    self.by_chance(chance, play, *args, ipv6)
