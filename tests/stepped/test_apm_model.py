# SPDX-License-Identifier: BSD-3-Clause
"""Path migration at large: random walks next to a model, and two ends whose wires break."""
import random

import dut
from dut import ALL_REMOTE, E, MS, QPN
from dut_apm import ALT, PEER_IP, PEER_MAC, ApmCase
from dut_req import LMR_LEN
from roce import ACK, pattern


class Model(ApmCase):
    """Random packets and orders, next to the state machine as the specification has it."""

    def steps(self, seed, n):
        rng = random.Random(seed)
        self.apm(state="MIGRATED", alt_ah_attr=None, alt_port=None, timeout=0)
        state, at, alt, e = "MIGRATED", 0, None, E
        moved, errors = 0, 0
        for step in range(n):
            kind = rng.random()
            if kind < 0.1:                              # load the path that is not in use
                alt = 1 - at
                self.rpc("qp_modify", qp_num=QPN, alt_port="p%d" % alt,
                         alt_ah_attr={**ALT, "dest_ip": PEER_IP[alt], "dest_mac": PEER_MAC[alt]})
            elif kind < 0.35:
                want = rng.choice(("MIGRATED", "REARM", "REARM", "REARM", "ARMED"))
                good = ((state, want) in (("MIGRATED", "MIGRATED"), ("REARM", "REARM"),
                                          ("ARMED", "MIGRATED")) or
                        ((state, want) == ("MIGRATED", "REARM") and alt is not None))
                try:
                    self.rpc("qp_modify", qp_num=QPN, path_mig_state=want)
                    self.assertTrue(good, (step, state, want))
                    if (state, want) == ("ARMED", "MIGRATED"):
                        at, moved = alt, moved + 1
                    state = want
                except dut.RpcError:
                    self.assertFalse(good, (step, state, want))
            else:
                way, mig = rng.randrange(2), rng.randrange(2)
                right = way == (alt if state == "ARMED" and mig else at)
                got = self.put(self.peers[way].send_only(e, b"x", mig=mig), port=way)
                if right:
                    if state == "ARMED" and mig:
                        state, at, moved = "MIGRATED", alt, moved + 1
                    elif state == "REARM" and not mig:
                        state = "ARMED"
                    self.assertEqual([(at, ACK, e, int(state == "MIGRATED"))], self.where(got),
                                     step)
                    self.post_recv()
                    e += 1
                else:
                    self.assertEqual([], got, step)
                    if state == "ARMED" and mig:
                        errors += 1
            q = self.qp()
            self.assertEqual((state, "p%d" % at, e, moved),
                             (q["path_mig_state"], q["port"], q["epsn"], q["migrations"]), step)
        self.assertEqual((moved, errors), (self.delta("path_migrations"),
                                           self.delta("path_migration_errors")))
        types = [t for t, _ in self.event_types()]
        self.assertEqual(moved, types.count("PATH_MIG"))
        self.assertLessEqual(types.count("PATH_MIG_ERR"), errors)
        self.assertEqual(errors > 0, "PATH_MIG_ERR" in types)
        return moved, errors

    def test_random_walks(self):
        ends = [self.steps(seed, 60) for seed in range(8)]
        self.assertGreater(sum(moved for moved, _ in ends), 8)
        self.assertGreater(sum(errors for _, errors in ends), 8)


class Loop(dut.DutCase):
    """Both ends inside, on two wires; the first one is cut."""

    CONFIG = {"ports": [
        {"name": "p%d" % i, "device": "net_ring_stepped%d" % i,
         "mac": "02:00:00:00:00:%02x" % (17 + i),
         "ipv4": "192.0.%d.%d" % (2 + i // 2, 1 + i % 2), "prefix": 24, "mtu": 4200}
        for i in range(4)]}

    def pair(self, **both):
        self.clear()
        for name, rkey, fill in (("asker", 0x101, "pattern:1"), ("answerer", 0x202, "zero")):
            self.make("mr_register", name=name, pd="pd0", length=LMR_LEN, addr=hex(rkey << 32),
                      rkey=hex(rkey), access=ALL_REMOTE, fill=fill)
        self.make("cq_create", name="cq0", cqe=256)
        for i in range(2):
            self.make("qp_create", **self.qp_params(**{**dict(
                qp_num=0x31 + i, dest_qp_num=0x32 - i, port="p%d" % i, rq_psn=0x100, sq_psn=0x100,
                sq_sig_all=True, timeout=10, retry_cnt=2,
                ah_attr={"dest_ip": "192.0.2.%d" % (2 - i)}, alt_port="p%d" % (2 + i),
                alt_ah_attr={"dest_ip": "192.0.3.%d" % (2 - i)}, path_mig_state="REARM",
                knobs={"path.local": "wire"}),
                **both}))
        for _ in range(20):
            self.assertEqual([], self.dut.run(MS))
        self.drain()

    def write(self, ident, length, offset=0):
        self.rpc("post_send", qp_num=0x31, wrs=[
            {"wr_id": ident, "opcode": "RDMA_WRITE", "rkey": "0x202",
             "remote_addr": hex((0x202 << 32) + offset),
             "sg_list": [{"mr": "asker", "offset": offset, "length": length}]}])

    def settle(self, ms):
        for _ in range(ms * 2):
            self.assertEqual([], self.dut.run(MS // 2))

    def test_the_first_wire_breaks(self):
        self.dut.command("link 0 1 0")
        self.dut.command("link 2 3 0")
        self.pair()
        self.write(1, 100)
        self.settle(2)
        self.assertEqual(["ARMED"] * 2, [self.qp(q)["path_mig_state"] for q in (0x31, 0x32)])
        self.dut.command("link 0 0 0")           # what leaves comes back to where it came from
        self.dut.command("link 1 1 0")
        self.write(2, 60000, 200)
        self.settle(60)
        self.assertEqual([(1, "SUCCESS"), (2, "SUCCESS")], self.statuses())
        self.assertEqual(pattern(1, 60000, 200), self.mem(200, 60000, "answerer"))
        self.assertEqual([("p2", "MIGRATED"), ("p3", "MIGRATED")],
                         [(q["port"], q["path_mig_state"]) for q in map(self.qp, (0x31, 0x32))])
        self.assertEqual([("PATH_MIG", 0x31), ("PATH_MIG", 0x32)], sorted(self.event_types()))

    def test_both_wires_break(self):
        self.dut.command("link 0 1 0")
        self.dut.command("link 2 3 0")
        self.pair()
        self.write(1, 100)
        self.settle(2)
        for i in range(4):
            self.dut.command("link %d %d 0" % (i, i))
        self.write(2, 5000)
        self.settle(60)
        self.assertEqual([(1, "SUCCESS"), (2, "RETRY_EXC_ERR")], self.statuses())


if __name__ == "__main__":
    dut.main()
