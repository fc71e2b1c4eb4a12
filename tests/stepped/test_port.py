# SPDX-License-Identifier: BSD-3-Clause
"""A queue pair's packets come to its own port (RX-SYN-08): what comes to another one is not its."""
import dut
import roce
from dut import E, MS, QPN, RKEY, VA, Ack
from dut_apm import IP, MAC, PORTS, ApmCase
from dut_req import S
from roce import NAK_INV, data

COUNTER = "rx_wrong_port"


class Kinds(ApmCase):
    """Right in every respect, from the peer's address, to the address of the other port."""

    def stray(self, v6):
        """The peer, as it talks to p1."""
        return self.peer.with_(dst_mac=MAC[1], dst_ip=PORTS[1]["ipv6"] if v6 else IP[1])

    def pair(self, v6, **qp):
        """F-REQ and F-RESP of a QP on p0, which waits for an ACK and for READ data."""
        ah = {"dest_ip": "2001:db8:1::2" if v6 else "192.0.2.2",
              "dest_mac": "02:00:00:00:00:22", "hop_limit": 64}
        self.req(recv=4, ah_attr=ah, timeout=0, **qp)
        if v6:
            self.peer = self.peer.with_(src_ip="2001:db8:1::2", dst_ip=PORTS[0]["ipv6"])
        self.peers = [self.peer, self.stray(v6)]
        self.make("mr_register", name="mr0", pd="pd0", length=dut.MR_LEN, addr=hex(VA),
                  rkey=hex(RKEY), access=dut.ALL_REMOTE, fill="zero")
        self.post(self.wr("RDMA_READ", 64), self.wr("SEND", 64))

    def strays(self):
        """One of each kind that the QP would take on its own port."""
        p = self.peers[1]
        return {
            "write": p.write_only(E, b"stray", VA, RKEY),
            "send": p.send_only(E, b"stray"),
            "read": p.read_req(E, VA, RKEY, 64),
            "atomic": p.fetch_add(E, VA, RKEY, 1),
            "duplicate": p.write_only(E - 1, b"stray", VA, RKEY),
            "ahead": p.send_only(E + 5, b"stray"),
            "part": p.send_first(E, data(1024)),
            "ack": p.acknowledge(S + 1, msn=2),
            "ghost": p.acknowledge(S - 9, msn=1),
            "nak": p.acknowledge(S, NAK_INV),
            "data": p.packet(roce.READ_ONLY, S, data(64), roce.aeth(roce.SYN_ACK, 1), ack=0),
            "mark": p.send_only(E, b"stray", tos=3),
            "cnp": p.cnp(),
        }

    def every_kind(self, v6, **qp):
        self.pair(v6, **qp)
        for n, (kind, frame) in enumerate(self.strays().items(), 1):
            with self.subTest(kind=kind, v6=v6):
                self.assertEqual([], self.put(frame, frame, port=1, ns=MS))
                self.assertEqual(2 * n, self.delta(COUNTER))
        for counter in ("np_ecn_marked_roce_packets", "np_cnp_sent", "rp_cnp_handled",
                        "rcvd_pkts", "duplicate_request", "out_of_sequence"):
            self.assertEqual(0, self.delta(counter), counter)
        q = self.qp()
        self.assertEqual(("RTS", E, []), (q["qp_state"], q["epsn"], self.events()))
        self.assertEqual(([], bytes(8)), (self.statuses(), self.mem(0, 8)))
        # Nothing of it was missed: the same on its own port is taken.
        self.expect([f for _, f in self.put(self.peer.send_only(E, b"x"))], Ack(E, 1))
        self.put(self.peer.packet(roce.READ_ONLY, S, data(64), roce.aeth(roce.SYN_ACK, 1), ack=0),
                 self.peer.acknowledge(S + 1, msn=2))
        self.succeeded([100, 101])

    def test_RX_SYN_08_every_kind(self):
        self.every_kind(v6=False)

    def test_RX_SYN_08_every_kind_ipv6(self):
        self.every_kind(v6=True)

    def test_RX_SYN_08_where_the_peers_mac_is_checked(self):
        self.every_kind(v6=False, knobs={"rx.check_src_mac": "on", "rx.ip_df": "require"})


class OtherPort(Kinds):
    """The other port of a queue pair's device."""

    ALONE = True                # the recorder has nothing yet
    FIXED = {**ApmCase.FIXED, "errbuf": "on", "trace": "off"}

    def test_RX_SYN_08_traced(self):
        """In the flight recorder and in the error buffer, with its reason and its port."""
        self.pair(v6=False)
        self.rpc("trace_start", qp_num=QPN)
        self.put(self.strays()["nak"], port=1)
        drops = [e for e in self.rpc("trace_read", qp_num=QPN) if e["kind"] == "drop"]
        self.assertEqual(["PORT"], [e["fault"] for e in drops])
        r = self.rpc("rx_errors", max=8)[-1]
        self.assertEqual((["PORT"], "drop", QPN, "p1"),
                         (r["names"], r["impact"], r["qp_num"], r["port"]))

    def test_RX_PREC_01_other_reasons_come_first(self):
        self.pair(v6=False)
        p = self.peers[1]
        rows = ((p.send_only(E, b"x", src_ip="192.0.2.9"), "rx_syndrome_27"),
                (p.send_only(E, b"x", pkey=0x1234), "rx_pkey_violation"),
                (p.with_(vlan=5).send_only(E, b"x"), "rx_vlan_mismatch"))
        for frame, counter in rows:
            before = self.delta(counter)
            self.assertEqual([], self.put(frame, port=1))
            self.assertEqual((before + 1, 0), (self.delta(counter), self.delta(COUNTER)), counter)


class NoErrorBuffer(Kinds):
    """Where a flood is only counted."""

    CONFIG = {"ports": PORTS, "knobs": {"cc.cnp": "off", "cc.algo": "none", "rx.errbuf": "off"}}


class TwoWorkers(OtherPort):
    """p1 is received by the other worker, which hands over what is p0's QP's."""

    CONFIG = {"ports": PORTS, "lcores": {"control": 0, "workers": [1, 2], "idle": "sleep"}}


class MigrationPort(ApmCase):
    """AE-12: each of the two paths has a port."""

    def test_AE_12_the_alternate_path_has_its_own_port(self):
        """Once armed, what asks for the migration on the wrong port is refused, and told of."""
        self.apm()
        self.arm()
        stray = self.peers[1].with_(dst_mac=MAC[0], dst_ip=IP[0])
        self.assertEqual([], self.put(stray.send_only(E, b"x"), port=0))
        self.assertEqual((1, 1), (self.delta(COUNTER), self.delta("path_migration_errors")))
        self.assertEqual(["PATH_MIG_ERR"], [e["event_type"] for e in self.events()])
        self.on_first()
        stray = self.peers[0].with_(dst_mac=MAC[1], dst_ip=IP[1])
        self.assertEqual([], self.put(stray.send_only(E, b"x", mig=0), port=1))
        self.assertEqual((2, 1), (self.delta(COUNTER), self.delta("path_migration_errors")))
        self.expect([f for _, f in self.put(self.peers[1].send_only(E, b"x"), port=1)], Ack(E, 1))
        self.migrated("RQ", "AE-12")
        # From now on p0 is the wrong one.
        stray = self.peers[1].with_(dst_mac=MAC[0], dst_ip=IP[0])
        self.assertEqual([], self.put(stray.send_only(E + 1, b"x"), port=0))
        self.assertEqual(3, self.delta(COUNTER))


if __name__ == "__main__":
    dut.main()
