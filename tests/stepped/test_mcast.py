# SPDX-License-Identifier: BSD-3-Clause
"""UD-31: multicast groups over Ethernet."""
import errno
import ipaddress

import dut
import dut_ud
import roce
import variant
from dut import QPN
from dut_apm import PORTS
from dut_ud import GRH, PMTU, QKEY
from roce import pattern

GROUP_QPN = 0xFFFFFF
GROUPS = {4: ("239.1.130.3", "224.0.1.5"), 6: ("ff0e::1:2:3", "ff02::1234:5678")}


def mac_of(group):
    """RFC 1112, RFC 2464."""
    raw = ipaddress.ip_address(group).packed
    if len(raw) == 4:
        return "01:00:5e:%02x:%02x:%02x" % (raw[1] & 0x7F, raw[2], raw[3])
    return "33:33:%02x:%02x:%02x:%02x" % tuple(raw[12:])


class GroupCase(dut_ud.UdCase):
    ALONE = True                # it tells of its groups again, later

    @staticmethod
    def group(n=0):
        return GROUPS[6 if variant.v6() else 4][n]

    def to_group(self, payload=b"", group=None, mac=None, qpn=GROUP_QPN, peer=None, **kw):
        group = group or self.group()
        peer = (peer or self.peer).with_(dst_ip=group, dst_mac=mac or mac_of(group), qpn=qpn)
        return self.datagram(payload, peer=peer, **kw)

    def is_roce(self, raw):
        """Not what switches are told of members: IGMP, or MLD behind options for every hop."""
        l3 = 18 if raw[12:14] == b"\x81\0" else 14
        return raw[l3 + 9] != 2 if raw[l3] >> 4 == 4 else raw[l3 + 6] != 0

    def attach(self, qp_num=QPN, group=None):
        self.rpc("mcast_attach", qp_num=qp_num, group=group or self.group())

    def detach(self, qp_num=QPN, group=None):
        self.rpc("mcast_detach", qp_num=qp_num, group=group or self.group())

    def members(self, n, recv=4, **kw):
        """QPs QPN + 1 .. QPN + n - 1 beside ud()'s, each with receives of its own."""
        for i in range(1, n):
            self.make("qp_create", **self.ud_params(qp_num=QPN + i, **kw))
            self.wr_id = recv * i
            self.post_recv(recv, qp_num=QPN + i)

    def peer_for(self, frame):
        if not ipaddress.ip_address(frame.dst_ip).is_multicast:
            return super().peer_for(frame)
        return self.peer.with_(src_ip=frame.dst_ip, src_mac=mac_of(frame.dst_ip), own_qpn=GROUP_QPN,
                               ttl=3, vlan=frame.vlan)

    def refused(self, name, method, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(-32000 - getattr(errno, name), caught.exception.code)

    def invalid(self, method, **params):
        with self.assertRaises(dut.RpcError) as caught:
            self.rpc(method, **params)
        self.assertEqual(-32602, caught.exception.code)

    def by_qp(self):
        """wr_ids that completed, by QP."""
        out, cqes = {}, self.cqes()
        while len(cqes) % 64 == 0 and cqes:
            more = self.cqes()
            if not more:
                break
            cqes += more
        for c in cqes:
            self.assertEqual("SUCCESS", c["status"])
            out.setdefault(c["qp_num"], []).append(c["wr_id"])
        return out


class Receive(GroupCase):

    def test_UD_31_nobody_is_a_member(self):
        """Dropped, as what is sent to another's MAC (RX-SYN-00)."""
        self.ud()
        self.quiet(self.to_group(b"x"))
        self.received()
        self.assertEqual((1, 0), (self.delta("rx_syndrome_0"), self.delta("rx_mcast")))
        self.alive()

    def test_UD_31_a_member(self):
        self.ud()
        self.attach()
        frame = self.to_group(pattern(3, 100), imm=0x01020304, src=0x777)
        self.quiet(frame)
        [c] = self.cqes()
        self.assertEqual((QPN, 0, "SUCCESS", 100 + GRH, 0x777, 0x01020304), tuple(
            c[k] for k in ("qp_num", "wr_id", "status", "byte_len", "src_qp", "imm_data")))
        self.assertEqual({"GRH", "WITH_IMM"}, set(c["wc_flags"]))
        self.assertEqual(self.head_of(frame) + pattern(3, 100), self.slot(0, GRH + 100))
        self.assertEqual((1, 0), (self.delta("rx_mcast"), self.delta("rx_mcast_copies")))
        self.alive()

    def test_UD_31_one_copy_for_each(self):
        for n in (2, 5, 40):
            with self.subTest(n=n):
                self.ud(cqe=256, recv=3)
                self.members(n, recv=3)
                for i in range(n):
                    self.attach(QPN + i)
                self.drain()
                self.quiet(self.to_group(pattern(1, 64)), self.to_group(pattern(2, 64)))
                self.assertEqual({QPN + i: [3 * i, 3 * i + 1] for i in range(n)}, self.by_qp())
                for i in range(min(n, 5)):      # later ones share the memory
                    self.assertEqual(pattern(2, 64), self.slot(3 * i + 1, GRH + 64)[GRH:])
                self.assertEqual((2, 2 * (n - 1)),
                                 (self.delta("rx_mcast"), self.delta("rx_mcast_copies")))

    def test_UD_31_no_buffer_is_lost(self):
        """More datagrams than the tester has buffers, with room in a member and without."""
        self.ud(recv=2)
        self.members(2, recv=2)
        self.attach()
        self.attach(QPN + 1)
        self.dut.command("starve 0 0")      # frames are the tester's own now: 255
        self.addCleanup(self.dut.command, "sate")
        for n in range(300):
            self.quiet(self.to_group(b"%d" % n))
        self.assertEqual({QPN: [0, 1], QPN + 1: [2, 3]}, self.by_qp())

    def test_UD_31_its_own_group_alone(self):
        """Members of a group get no other group's; one QP may be in several."""
        self.ud()
        self.members(2)
        self.attach(QPN, self.group(0))
        self.attach(QPN + 1, self.group(0))
        self.attach(QPN + 1, self.group(1))
        self.drain()
        self.quiet(self.to_group(b"0", self.group(0)), self.to_group(b"1", self.group(1)))
        self.assertEqual({QPN: [0], QPN + 1: [4, 5]}, self.by_qp())
        self.detach(QPN + 1, self.group(0))
        self.quiet(self.to_group(b"2", self.group(0)), self.to_group(b"3", self.group(1)))
        self.assertEqual({QPN: [1], QPN + 1: [6]}, self.by_qp())

    def test_UD_31_a_mac_is_not_enough(self):
        """Several groups have one MAC: the IP address decides. And a group has one MAC."""
        self.ud()
        self.attach()
        if variant.v6():
            other = "ff0e::9:1:2:3"
            self.assertEqual(mac_of("ff0e::1:2:3")[6:], mac_of(other)[6:])
        else:
            other = "238.129.130.3"
            self.assertEqual(mac_of(self.group()), mac_of(other))
        self.quiet(self.to_group(b"x", other),
                   self.to_group(b"x", mac="ff:ff:ff:ff:ff:ff"),
                   self.to_group(b"x", mac=mac_of(self.group(1))),
                   self.to_group(b"x", mac="02:00:00:00:00:01"),
                   self.to_group(b"x", qpn=QPN),
                   self.to_group(b"x", qpn=0xFFFFFE))
        self.received()
        self.assertEqual(0, self.delta("rx_mcast"))
        self.quiet(self.to_group(b"y"))
        self.received((0, b"y"))
        self.alive()

    def test_UD_31_UD_02_UD_18_keys_of_each_member(self):
        """A member with another Q_Key or P_Key gets nothing, and counts it."""
        self.ud()
        self.make("qp_create", **self.ud_params(qp_num=QPN + 1, qkey="0x22222222"))
        self.make("qp_create", **self.ud_params(qp_num=QPN + 2, pkey="0x9234"))
        for i in (1, 2):
            self.wr_id = 4 * i
            self.post_recv(4, qp_num=QPN + i)
        for i in range(3):
            self.attach(QPN + i)
        self.drain()
        self.quiet(self.to_group(b"a"), self.to_group(b"b", qkey=0x22222222))
        self.assertEqual({QPN: [0], QPN + 1: [4]}, self.by_qp())
        self.assertEqual((2, 2), (self.delta("rx_qkey_violation"),
                                  self.delta("rx_pkey_violation")))
        self.alive()

    def test_UD_31_UD_04_members_in_all_conditions(self):
        """Without receives, with short ones, not yet in RTR, in ERR: the others are served."""
        self.ud()
        self.make("qp_create", **self.ud_params(qp_num=QPN + 1))
        self.make("qp_create", **self.ud_params(qp_num=QPN + 2))
        self.make("qp_create", **self.ud_params(qp_num=QPN + 3, qp_state="INIT", sq_psn=None))
        self.make("qp_create", **self.ud_params(qp_num=QPN + 4))
        self.wr_id = 8
        self.post_recv(1, 50, qp_num=QPN + 2)
        for i in range(5):
            self.attach(QPN + i)
        self.rpc("qp_modify", qp_num=QPN + 4, qp_state="ERR")
        self.drain()
        self.quiet(self.to_group(pattern(1, 11)))
        self.assertEqual({QPN: [0]}, self.by_qp())
        self.assertEqual(2, self.delta("rx_syndrome_15"))
        self.quiet(self.to_group(pattern(1, 10)))
        self.assertEqual({QPN: [1], QPN + 2: [8]}, self.by_qp())

    def test_UD_31_behind_what_came_before(self):
        """In a burst with others; the frames before it are served before it."""
        self.ud(recv=6)
        self.attach()
        self.quiet(self.datagram(b"a"), self.to_group(b"b"), self.datagram(b"c", qkey=1),
                   self.datagram(b"d"), self.to_group(b"e"))
        got = sorted(self.slot(c["wr_id"], GRH + 1)[GRH:] for c in self.cqes())
        self.assertEqual([b"a", b"b", b"d", b"e"], got)
        self.assertEqual(1, self.delta("rx_qkey_violation"))

    def test_UD_31_a_wrong_icrc(self):
        self.ud()
        self.attach()
        frame = bytearray(self.to_group(pattern(1, 32)))
        frame[-8] ^= 1
        self.quiet(bytes(frame))
        self.received()
        self.assertEqual((1, 0), (self.delta("rx_syndrome_30"), self.delta("rx_mcast")))

    def test_UD_31_UD_29_nothing_but_datagrams(self):
        self.ud()
        self.attach()
        peer = self.peer.with_(dst_ip=self.group(), dst_mac=mac_of(self.group()), qpn=GROUP_QPN)
        for opcode in (roce.SEND_ONLY, 0x24, 0x66):
            self.quiet(peer.packet(opcode, 0, b"x" * 8, roce.deth(QKEY, 0x22)))
        self.received()
        self.alive()

    def test_UD_31_a_member_that_is_gone(self):
        self.ud()
        self.members(2)
        self.attach(QPN)
        self.attach(QPN + 1)
        self.rpc("qp_destroy", qp_num=QPN + 1)
        self.made.remove(("qp_destroy", {"qp_num": QPN + 1}))
        self.assertEqual([QPN], [m["qp_num"] for m in self.rpc("mcast_list")])
        self.drain()
        self.quiet(self.to_group(b"x"))
        self.assertEqual({QPN: [0]}, self.by_qp())

    def test_UD_31_UD_28_on_an_srq(self):
        self.ud()
        self.make("srq_create", name="srq0", pd="pd0", max_wr=8)
        for i in (1, 2):
            self.make("qp_create", **self.ud_params(qp_num=QPN + i, srq="srq0"))
            self.attach(QPN + i)
        wrs = [{"wr_id": 8 + i, "sg_list": [{"mr": "rbuf", "offset": (8 + i) * dut.BUF,
                                             "length": dut.BUF}]} for i in range(2)]
        self.rpc("post_srq_recv", srq="srq0", wrs=wrs)
        self.drain()
        self.quiet(self.to_group(pattern(5, 20)))
        self.assertEqual({QPN + 1: [8], QPN + 2: [9]}, self.by_qp())
        for i in (8, 9):
            self.assertEqual(pattern(5, 20), self.slot(i, GRH + 20)[GRH:])
        self.quiet(self.to_group(pattern(5, 20)))        # the SRQ is empty
        self.received()


class Membership(GroupCase):

    def test_UD_31_what_is_refused(self):
        self.ud()
        self.attach()
        self.refused("EEXIST", "mcast_attach", qp_num=QPN, group=self.group())
        self.refused("EINVAL", "mcast_detach", qp_num=QPN, group=self.group(1))
        self.refused("ENOENT", "mcast_attach", qp_num=QPN + 9, group=self.group())
        for bad in ("192.0.2.7", "2001:db8::7", "255.255.255.255", "239.1", "", 7):
            self.invalid("mcast_attach", qp_num=QPN, group=bad)
        self.make("qp_create", **self.ud_params(qp_num=QPN + 1, qp_state="RESET", port=None,
                                                qkey=None, sq_psn=None))
        self.refused("EINVAL", "mcast_attach", qp_num=QPN + 1, group=self.group())
        self.make("qp_create", **self.connected())
        self.refused("EINVAL", "mcast_attach", qp_num=QPN + 2, group=self.group())
        self.assertEqual([{"qp_num": QPN, "group": self.group(), "port": "p0",
                           "mac": mac_of(self.group())}], self.rpc("mcast_list"))
        self.assertEqual(self.rpc("mcast_list"), self.rpc("qp_query", qp_num=QPN)["mcasts"])

    @staticmethod
    def connected(**qp):
        return {"qp_num": QPN + 2, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
                "recv_cq": "cq0", "qp_state": "INIT", **qp}

    def test_UD_31_as_many_members_as_there_may_be(self):
        self.ud(cqe=256, recv=1)
        for i in range(1, 57):
            self.make("qp_create", **self.ud_params(qp_num=QPN + i))
        for i in range(56):
            self.attach(QPN + i)
        self.refused("ENOSPC", "mcast_attach", qp_num=QPN + 56, group=self.group())
        self.detach(QPN + 3)
        self.attach(QPN + 56)
        self.drain()
        self.quiet(self.to_group(b"x"))
        self.assertEqual({QPN: [0]}, self.by_qp())
        self.assertEqual(55, self.delta("rx_mcast_copies"))

    def test_UD_31_come_and_go(self):
        """Many groups, one after the other: nothing is left of them."""
        self.ud()
        for n in range(300):
            group = ("ff0e::%x" if variant.v6() else "239.7.1.%d") % (n % 250 + 1)
            self.attach(QPN, group)
            if n % 3 == 0:
                self.quiet(self.to_group(b"", group))
            self.detach(QPN, group)
        self.assertEqual((100, []), (self.delta("rx_mcast"), self.rpc("mcast_list")))

    def test_UD_31_explained(self):
        self.ud()
        self.assertNotIn("mcasts", self.rpc("qp_explain", qp_num=QPN))
        self.attach()
        told = self.rpc("qp_explain", qp_num=QPN)["mcasts"]
        self.assertEqual([(self.group(), "p0", mac_of(self.group()))],
                         [(m["group"], m["port"], m["mac"]) for m in told])

    def test_UD_31_saved(self):
        """As the configuration would have it; nothing is saved of a member that left."""
        self.ud()
        self.attach()
        self.attach(QPN, self.group(1))
        self.detach(QPN, self.group(1))
        group = str(ipaddress.ip_address(self.group()))
        self.assertEqual([{"qp_num": QPN, "group": group}], self.rpc("save_config")["mcasts"])


class OtherPort(GroupCase):

    CONFIG = {"ports": PORTS}

    def test_UD_31_a_member_stays_at_its_port(self):
        """There its groups are, so another port is refused until it has left them."""
        self.ud(port="p1")
        self.attach()
        init = {"qp_num": QPN, "qp_state": "INIT", "pkey": "0xffff", "qkey": hex(QKEY)}
        self.rpc("qp_modify", qp_num=QPN, qp_state="RESET")
        self.refused("EBUSY", "qp_modify", port="p0", **init)
        self.rpc("qp_modify", port="p1", **init)
        self.refused("EBUSY", "qp_modify", port="p0", **init)
        self.detach()
        self.rpc("qp_modify", port="p0", **init)
        self.attach()
        self.assertEqual(["p0"], [m["port"] for m in self.rpc("mcast_list")])


class Send(GroupCase):

    def to_members(self, n=0, **ah):
        group = self.group(n)
        vlan = {} if variant.vlan() is None else {"vlan": variant.vlan()}
        return {"ah_attr": {"dest_ip": group, "hop_limit": 3, **vlan, **ah},
                "remote_qpn": GROUP_QPN, "remote_qkey": QKEY}

    def test_UD_31_to_a_group(self):
        """The MAC follows from the address; nobody is asked."""
        self.sender()
        for n in (0, 1):
            [f] = self.post(self.wr(100, ud=self.to_members(n)))
            self.assertEqual((mac_of(self.group(n)), GROUP_QPN, 3, 0x64),
                             (f.dst_mac, f.qpn, f.ttl, f.opcode))
            self.assertEqual(ipaddress.ip_address(self.group(n)),
                             ipaddress.ip_address(f.dst_ip))
            self.assertEqual(pattern(9, 100), f.payload)
        self.succeeded(100, 101)
        self.assertEqual(0, self.delta("local_packets"))

    def test_UD_31_own_members(self):
        """The port's own members get it, the sender's QP among them, and the wire does."""
        self.sender()
        self.members(2)
        self.attach(QPN)
        self.attach(QPN + 1)
        self.drain()
        [f] = self.post(self.wr(100, ud=self.to_members()))
        self.assertEqual(GROUP_QPN, f.qpn)
        cqes = self.cqes()
        self.assertEqual([(QPN, 0), (QPN, 100), (QPN + 1, 4)],
                         sorted((c["qp_num"], c["wr_id"]) for c in cqes))
        for wr_id in (0, 4):
            self.assertEqual(pattern(9, 100), self.slot(wr_id, GRH + 100)[GRH:])
            self.assertEqual(ipaddress.ip_address(self.group()).packed,
                             self.slot(wr_id, GRH)[-4:] if not variant.v6()
                             else self.slot(wr_id, GRH)[24:])
        self.assertEqual((1, 1, 1), (self.delta("local_packets"), self.delta("rx_mcast"),
                                     self.delta("rx_mcast_copies")))

    def test_UD_31_own_members_get_more_than_a_burst(self):
        """48 datagrams leave in one turn."""
        self.sender(cqe=256)
        self.members(4)
        cap = {"max_send_wr": 1, "max_recv_wr": 64, "max_send_sge": 1, "max_recv_sge": 1}
        self.make("qp_create", **self.ud_params(qp_num=QPN + 9, cap=cap))
        self.wr_id = 0
        self.post_recv(48, qp_num=QPN + 9)
        self.attach(QPN + 9)
        self.drain()
        for qp_num in (QPN, QPN + 1, QPN + 2):
            wrs = [self.wr(40, ud=self.to_members()) for _ in range(16)]
            self.rpc("post_send", qp_num=qp_num, wrs=wrs)
        self.assertEqual(48, len(self.feed()))
        self.assertEqual(list(range(48)), self.by_qp()[QPN + 9])
        self.assertEqual((48, 0), (self.delta("rx_mcast"), self.delta("rx_syndrome_0")))

    def test_UD_31_own_members_refuse_it(self):
        """A frame that no wire saw is recorded as if it came from one."""
        self.sender(qkey="0x33333333")
        self.attach()
        self.drain()
        [sent] = self.post(self.wr(40, ud=self.to_members()))
        self.assertEqual(1, self.delta("rx_qkey_violation"))
        if variant.errbuf():
            [record] = self.rpc("rx_errors", max=2)
            self.assertEqual(sent.raw.hex(), record["header"])
        self.assertEqual(["SUCCESS"], [c["status"] for c in self.cqes()])

    def test_UD_31_no_group_for_a_connection(self):
        self.ud()
        for key in ("ah_attr", "alt_ah_attr"):
            with self.subTest(key=key):
                self.invalid("qp_create",
                             **Membership.connected(**{key: {"dest_ip": self.group()}}))


class Workers(GroupCase):
    """Members on both workers: each worker gets one frame, and has a copy for each of its own."""

    FIXED = {"workers": "2"}

    def test_UD_31_members_on_two_workers(self):
        for members in ((0, 1), (1, 1), (1, 0, 1, 0, 0), (0, 0)):
            with self.subTest(members=members):
                self.ud(cqe=256, worker=members[0])
                for i, worker in enumerate(members[1:], 1):
                    self.make("qp_create", **self.ud_params(qp_num=QPN + i, worker=worker))
                    self.wr_id = 4 * i
                    self.post_recv(4, qp_num=QPN + i)
                for i in range(len(members)):
                    self.attach(QPN + i)
                self.drain()
                self.quiet(self.to_group(pattern(1, 64)), self.to_group(pattern(2, 64)))
                self.assertEqual({QPN + i: [4 * i, 4 * i + 1] for i in range(len(members))},
                                 self.by_qp())
                self.assertEqual(2, self.delta("rx_mcast"))

    def test_UD_31_sent_to_members_on_two_workers(self):
        for sender in (0, 1):
            with self.subTest(sender=sender):
                self.sender(worker=sender)
                self.make("qp_create", **self.ud_params(qp_num=QPN + 1, worker=1 - sender))
                self.wr_id = 4
                self.post_recv(4, qp_num=QPN + 1)
                self.attach(QPN)
                self.attach(QPN + 1)
                self.drain()
                ud = Send.to_members(self)
                self.assertEqual(1, len(self.post(self.wr(64, ud=ud))))
                self.assertEqual({(QPN, 0), (QPN, 100), (QPN + 1, 4)},
                                 {(c["qp_num"], c["wr_id"]) for c in self.cqes()})
                self.assertEqual(pattern(9, 64), self.slot(4, GRH + 64)[GRH:])


if __name__ == "__main__":
    dut.main()
