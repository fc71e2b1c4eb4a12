# SPDX-License-Identifier: BSD-3-Clause
"""The real program, real sockets: what tests/stepped proves packet by packet, over a real link."""
import socket
import subprocess
import time

import livenet
import dut
import roce
from livenet import DUT_IP, PEER_IF, PEER_IP
from dut import RKEY, VA, Ack, AtomicAck, E, Nak, ReadResponse, Rnr
from roce import NAK_INV, NAK_RAE, NAK_SEQ, data


class Operations(livenet.LiveCase):

    def test_send_and_its_completion(self):
        """RESP-01, RESP-02, RESP-03."""
        self.resp()
        p = self.peer
        self.ask([p.send_only(E, data(100))], Ack(E, 1))
        self.ask([p.send(E + 1, data(3000, 2))], Ack(E + 3, 2))
        self.ask([p.send_only_imm(E + 4, b"imm", 0xCAFE0001)], Ack(E + 4, 3))
        done = self.cqes()
        self.assertEqual([(0, 100), (1, 3000), (2, 3)],
                         [(c["wr_id"], c["byte_len"]) for c in done])
        self.assertEqual(0xCAFE0001, done[2]["imm_data"])
        self.assertEqual(data(100), self.slot(0, 100))
        self.assertEqual(data(3000, 2), self.slot(1, 3000))

    def test_write_read_and_memory(self):
        """RESP-05, RESP-06: memory is looked at through mr_read."""
        self.resp(mr_fill="pattern:9")
        p = self.peer
        self.ask([p.write(E, data(5000), VA + 77, RKEY)], Ack(E + 4, 1))
        want = roce.pattern(9, 77) + data(5000) + roce.pattern(9, 1000, 5077)
        self.assertEqual(want, self.mem(0, 6077))
        self.ask([p.read_req(E + 5, VA, RKEY, 6077)], ReadResponse(E + 5, want, 2))
        self.ask([p.read_req(E + 11, VA, RKEY, 65536)],
                 ReadResponse(E + 11, want + roce.pattern(9, 65536 - 6077, 6077), 3))

    def test_atomics(self):
        """RESP-07."""
        self.resp()
        p = self.peer
        self.ask([p.fetch_add(E, VA + 8, RKEY, 5)], AtomicAck(E, 0, 1))
        self.ask([p.cmp_swap(E + 1, VA + 8, RKEY, 5, 2**63)], AtomicAck(E + 1, 5, 2))
        self.assertEqual(2**63, int.from_bytes(self.mem(8, 8), "little"))

    def test_ipv6(self):
        self.resp(v6=True)
        p = self.peer
        self.ask([p.write(E, data(2500), VA, RKEY)], Ack(E + 2, 1))
        self.ask([p.read_req(E + 3, VA, RKEY, 2500)], ReadResponse(E + 3, data(2500), 2))

    def test_vlan(self):
        """Tagged over IPv4 and IPv6, and nothing of another VLAN."""
        for v6 in (False, True):
            ah = {"dest_ip": "2001:db8::2" if v6 else PEER_IP, "dest_mac": livenet.PEER_MAC,
                  "hop_limit": 64, "vlan": 7, "vlan_priority": 3}
            self.resp(v6=v6, ah_attr=ah)
            untagged, self.peer = self.peer, self.peer.with_(vlan=7)
            self.ask([untagged.send_only(E)])
            self.ask([self.peer.write(E, data(2500), VA, RKEY)], Ack(E + 2, 1))
            self.ask([self.peer.read_req(E + 3, VA, RKEY, 2500)],
                     ReadResponse(E + 3, data(2500), 2))

    def test_loss(self):
        """RESP-SEQ-01, -03, -11: a lost packet is asked for once and the message resumes."""
        self.resp()
        first, middle, last = self.peer.send(E, data(2500))
        self.ask([first, last], Nak(E + 1, NAK_SEQ, 0))
        self.ask([last, last])
        self.ask([middle, last], Ack(E + 2, 1))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.assertEqual(data(2500), self.slot(0, 2500))

    def test_duplicates(self):
        """RESP-DUP-01, -03, -06."""
        self.resp()
        p = self.peer
        self.ask([p.send_only(E, b"once")], Ack(E, 1))
        self.ask([p.fetch_add(E + 1, VA, RKEY, 7)], AtomicAck(E + 1, 0, 2))
        self.ask([p.read_req(E + 2, VA, RKEY, 8)], ReadResponse(E + 2, b"\x07" + bytes(7), 3))
        self.ask([p.send_only(E, b"twice")], Ack(E + 2, 3))
        self.ask([p.fetch_add(E + 1, VA, RKEY, 7)], AtomicAck(E + 1, 0))
        self.ask([p.read_req(E + 2, VA, RKEY, 8)], ReadResponse(E + 2, b"\x07" + bytes(7)))
        self.assertEqual([(0, "SUCCESS")], self.statuses())
        self.assertEqual(b"once\0", self.slot(0, 5))

    def test_psn_wrap(self):
        """WIRE-11: inside a SEND, a WRITE and a READ."""
        self.resp(rq_psn=0xFFFFFE)
        self.ask([self.peer.send(0xFFFFFE, data(4000))], Ack(1, 1))
        self.resp(rq_psn=0xFFFFFE)
        self.ask([self.peer.write(0xFFFFFE, data(4000), VA, RKEY)], Ack(1, 1))
        self.resp(rq_psn=0xFFFFFF, mr_fill="pattern:2")
        self.ask([self.peer.read_req(0xFFFFFF, VA, RKEY, 4000)],
                 ReadResponse(0xFFFFFF, roce.pattern(2, 4000), 1))

    def test_every_path_mtu(self):
        """WIRE-08: messages of several packets at 256 .. 4096."""
        for mtu in (256, 512, 1024, 2048, 4096):
            with self.subTest(mtu=mtu):
                self.resp(recv=0, path_mtu=mtu, mr_fill="pattern:3")
                size = 3 * mtu + 17
                self.post_recv_sges([{"mr": "rbuf", "offset": 0, "length": 3 * 4096 + 64}])
                p = self.peer
                self.ask([p.send(E, data(size))], Ack(E + 3, 1))
                self.assertEqual(data(size), self.mem(0, size, "rbuf"))
                self.ask([p.read_req(E + 4, VA + 5, RKEY, size)],
                         ReadResponse(E + 4, roce.pattern(3, size, 5), 2, mtu))
                self.ask([p.write(E + 8, data(size, 8), VA, RKEY)], Ack(E + 11, 3))
                self.assertEqual(data(size, 8), self.mem(0, size))

    def test_frames_of_9000_bytes(self):
        """Received whole, so its ICRC is right; but no path MTU is that large: NAK, not silence."""
        self.resp()
        frame = self.peer.send_only(E, data(8900))
        self.assertGreater(len(frame), 8940)
        self.ask([frame], Nak(E, NAK_INV, 0))
        self.assertEqual(0, self.delta("rx_syndrome_30"))

    def test_errors(self):
        """RESP-NAK-RAE-01, RESP-RNR-01 and what they leave behind."""
        self.resp()
        self.ask([self.peer.write_only(E, b"x", VA, RKEY ^ 1)], Nak(E, NAK_RAE, 0))
        self.ask([self.peer.send_only(E)])
        self.assertEqual("ERR", self.state())
        self.assertEqual([(i, "WR_FLUSH_ERR") for i in range(4)], self.statuses())
        self.assertEqual([("QP_ACCESS_ERR", dut.QPN)], self.event_types())
        self.resp(recv=0)
        self.ask([self.peer.send_only(E)], Rnr(E, 12, 0))
        self.post_recv()
        self.ask([self.peer.send_only(E, b"now")], Ack(E, 1))

    def test_a_thousand_messages(self):
        """RESP-10: coalesced or not, the last ACK covers all; nothing is lost on the way."""
        self.resp(recv=0)
        psn = E
        for _ in range(10):
            for i in range(100):
                self.dut.rx(self.peer.write_only(psn + i, data(64, i), VA + 64 * i, RKEY))
            psn += 100
            got = [dut.Frame(raw) for _, raw in self.dut.frames(1)]
            while got[-1].psn != psn - 1:
                got += [dut.Frame(raw) for _, raw in self.dut.frames(1)]
            self.assertTrue(Ack(psn - 1, psn - E).matches(got[-1]), got[-1])
        self.assertEqual(b"".join(data(64, i) for i in range(100)), self.mem(0, 6400))
        self.assertEqual(1000, self.delta("rx_write_requests"))


class RingOfOddFrames(livenet.LiveCase):
    """
    framesz=4240 is the smallest for path MTU 4096, but does not divide blocksz: af_packet alone
    would fall silent after 15 frames, in both directions.
    """

    CONFIG = {
        "eal": [e.replace("framesz=16384,framecnt=512", "framesz=4240,framecnt=480")
                for e in livenet.live_config()["eal"]],
        "ports": [dict(p, mtu=4200) for p in livenet.live_config()["ports"]]}

    def test_more_frames_than_a_block_holds(self):
        self.resp(path_mtu=4096)
        self.assertIn("framesz=8192", self.dut.stderr())
        for psn in range(E, E + 600):
            self.ask([self.peer.write_only(psn, data(4096), VA, RKEY)], Ack(psn, psn - E + 1))


class Cable(livenet.LiveCase):
    """af_packet's driver says "up" whatever happens; the kernel's word counts (AE-07)."""

    def until(self, state):
        end = time.monotonic() + livenet.WAIT_S
        while self.rpc("port_list")[0]["state"] != state:
            self.assertLess(time.monotonic(), end, "the port does not get %s" % state)
        while True:
            for e in self.events():
                if e["source"] == "PORT":
                    return e["event_type"], e["port"]
            self.assertLess(time.monotonic(), end, "no event")

    def test_cable_out_and_in(self):
        """Either end; QPs stay as they are, and traffic goes on."""
        self.resp()
        for psn, end in ((E, PEER_IF), (E + 1, livenet.DUT_IF)):
            livenet.ip("link", "set", end, "down")
            self.addCleanup(livenet.ip, "link", "set", end, "up")
            self.assertEqual(("PORT_ERR", "p0"), self.until("DOWN"))
            livenet.ip("link", "set", end, "up")
            self.assertEqual(("PORT_ACTIVE", "p0"), self.until("UP"))
            for name in (PEER_IF, livenet.DUT_IF):
                livenet.wait_up(name)
            self.dut.raw.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)     # of that time
            self.ask([self.peer.send_only(psn, b"x")], Ack(psn, psn - E + 1))


class KernelPeer(livenet.LiveCase):
    """The kernel's own stack on the other end: ARP and ping."""

    @classmethod
    def setUpClass(cls):
        livenet.ip("addr", "add", PEER_IP + "/24", "dev", PEER_IF)
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        livenet.ip("addr", "del", PEER_IP + "/24", "dev", PEER_IF)
        livenet.ip("neigh", "flush", "dev", PEER_IF)

    def ping(self, *args):
        livenet.ping(*args, DUT_IP)

    def test_arp_and_ping(self):
        """A ping works before the first QP is up."""
        self.ping()
        neighbors = subprocess.run(["ip", "neigh", "show", "dev", PEER_IF], check=True,
                                   capture_output=True, text=True).stdout
        self.assertIn("%s lladdr %s" % (DUT_IP, livenet.DUT_MAC), neighbors)

    def test_large_ping(self):
        """An echo of a jumbo frame comes back whole."""
        self.ping("-s", "1472", "-M", "do")
        self.ping("-s", "8900", "-M", "do")

class KernelPeer6(livenet.LiveCase):
    """The kernel's IPv6 on the other end: neighbour discovery, both ways, and ping."""

    PEER6, DUT6 = "2001:db8::77", "2001:db8::1"

    @staticmethod
    def ipv6(on):
        with open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % PEER_IF, "w", encoding="ascii") as f:
            f.write("0" if on else "1")

    @classmethod
    def setUpClass(cls):
        cls.ipv6(True)
        livenet.ip("addr", "add", cls.PEER6 + "/64", "dev", PEER_IF, "nodad")
        super().setUpClass()

    @classmethod
    def tearDownClass(cls):
        super().tearDownClass()
        cls.ipv6(False)

    def ping(self, *args):
        livenet.ping("-6", *args, self.DUT6)

    def test_ping(self):
        self.ping()
        self.ping("-s", "8000")
        neighbors = subprocess.run(["ip", "-6", "neigh", "show", "dev", PEER_IF], check=True,
                                   capture_output=True, text=True).stdout
        self.assertIn("%s lladdr %s" % (self.DUT6, livenet.DUT_MAC), neighbors)

    def test_the_kernel_answers_a_solicitation(self):
        """A QP whose peer's MAC nobody gave finds it by neighbour discovery."""
        self.clear()
        self.make("cq_create", name="cq0", cqe=64)
        params = self.qp_params(ah_attr={"dest_ip": self.PEER6, "hop_limit": 64})
        self.make("qp_create", **params)
        end = time.monotonic() + livenet.WAIT_S
        while not self.qp()["path_resolved"]:
            self.assertLess(time.monotonic(), end, "the kernel's MAC is not found: %r" %
                            self.rpc("neighbor_list"))
            self.ping()   # time passes, and the control lcore turns
        self.assertEqual(livenet.PEER_MAC, self.qp()["ah_attr"]["dest_mac"])


if __name__ == "__main__":
    livenet.run_tests(dut.main)
