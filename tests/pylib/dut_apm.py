# SPDX-License-Identifier: BSD-3-Clause
"""Tests of path migration: a queue pair with two paths, on two ports, to one peer."""
import roce
from dut import ALL_REMOTE, MR_LEN, QPN, RKEY, VA
from dut_req import S, ReqCase
from roce import SEND_ONLY

MAC = ["02:00:00:00:00:11", "02:00:00:00:00:12"]
IP = ["192.0.2.1", "198.51.100.1"]
PEER_MAC = ["02:00:00:00:00:22", "02:00:00:00:00:33"]
PEER_IP = ["192.0.2.2", "198.51.100.2"]
PORTS = [{"name": "p%d" % i, "device": "net_ring_stepped%d" % i, "mac": MAC[i], "ipv4": IP[i],
          "prefix": 24, "ipv6": "2001:db8:%x::1" % (i + 1), "mtu": 4200 if i == 0 else 1500}
         for i in range(2)]
ALT = {"dest_ip": PEER_IP[1], "dest_mac": PEER_MAC[1], "hop_limit": 64}


class ApmCase(ReqCase):

    CONFIG = {"ports": PORTS}
    FIXED = {"ip": "4", "vlan": "none", "workers": "1"}   # test_apm_workers.py has two

    def apm(self, state="REARM", **qp):
        """F-REQ and F-RESP of one QP with both paths."""
        params = {"alt_ah_attr": ALT, "alt_port": "p1", "path_mig_state": state, "timeout": 10,
                  "retry_cnt": 1, "recv_cq": "rcq"}
        params.update(qp)
        self.req(recv=4, **{k: v for k, v in params.items() if v is not None})
        self.make("mr_register", name="mr0", pd="pd0", length=MR_LEN, addr=hex(VA),
                  rkey=hex(RKEY), access=ALL_REMOTE, fill="zero")
        self.peers = [self.peer, self.peer.with_(
            src_mac=PEER_MAC[1], dst_mac=MAC[1], src_ip=PEER_IP[1], dst_ip=IP[1])]

    def take(self, out):
        """[(port, frame)], each frame checked against the path of its port."""
        got = []
        for port, raw in out:
            f = roce.Frame(raw)
            roce.check_frame(f, self.peers[port])
            got.append((port, f))
        return got

    def put(self, *frames, port=0, ns=0):
        for frame in frames:
            self.dut.rx(frame, port)
        return self.take(self.dut.run(ns))

    def until(self, limit_ns):
        """(nanoseconds, [(port, frame)]) until frames leave."""
        start = self.dut.now()
        lines = self.dut.command("step 4096 %d" % limit_ns)
        out = [(int(line.split()[1]), bytes.fromhex(line.split()[2]))
               for line in lines if line.startswith("tx ")]
        return self.dut.now() - start, self.take(out)

    def send(self, n=1):
        result = self.post_raw(*[self.wr("SEND", 64) for _ in range(n)])
        self.assertEqual((n, None), (result["posted"], result["refused"]))
        return self.take(self.dut.run())

    def where(self, got):
        """(port, opcode, psn, MigReq) of what left."""
        return [(port, f.opcode, f.psn, f.mig) for port, f in got]

    def mig_state(self):
        return self.qp()["path_mig_state"]

    def arm(self):
        """The peer says that it is ready. The next PSN that it expects."""
        self.assertEqual([(0, SEND_ONLY, S, 0)], self.where(self.send()))
        self.assertEqual([], self.put(self.peer.acknowledge(S, msn=1, mig=0)))
        self.assertEqual("ARMED", self.mig_state())
        self.succeeded([100])
        return S + 1

    def on_first(self):
        q = self.qp()
        self.assertEqual(("p0", PEER_IP[0]), (q["port"], q["ah_attr"]["dest_ip"]))

    def migrated(self, source, *words):
        """It was told of, once; every question is answered with the path that is in use now."""
        got = self.events()
        self.assertEqual([("PATH_MIG", QPN, source)],
                         [(e["event_type"], e["qp_num"], e["source"]) for e in got])
        for word in words:
            self.assertIn(word, got[0]["detail"])
        q = self.qp()
        self.assertEqual(("RTS", "MIGRATED", "p1", PEER_IP[1], PEER_MAC[1]),
                         (q["qp_state"], q["path_mig_state"], q["port"],
                          q["ah_attr"]["dest_ip"], q["ah_attr"]["dest_mac"]))
