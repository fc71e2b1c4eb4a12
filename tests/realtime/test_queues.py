# SPDX-License-Identifier: BSD-3-Clause
"""Ports with several receive queues: who polls them, who owns a QP, and in which order."""
import time
import unittest

import jsonrpc
import livenet
import dut
import roce
from dut import RKEY, VA, Ack
from roce import data

FLOWS = 32                      # a peer's source ports; all in one queue of two: 1 in 2^31
MESSAGES = 12


def two_workers(config, rx_queues=2):
    config["lcores"] = {"control": 0, "workers": [1, 2], "idle": "sleep"}
    config["eal"].append("--lcores=0@0,1@0,2@0")    # there need not be three cores
    for port in config["ports"]:
        port["rx_queues"] = rx_queues
    return config


class AfPacket(unittest.TestCase):
    """af_packet's qpairs: the kernel spreads what it receives over them, by flow."""

    def start(self, qpairs, **sections):
        config = two_workers(livenet.live_config(**sections))
        at = [i for i, s in enumerate(config["eal"]) if s.startswith("--vdev")][0]
        config["eal"][at] += ",qpairs=%d" % qpairs
        return config

    def test_queues_that_the_device_lacks(self):
        p = livenet.Process(self.start(1), wait=False)
        self.addCleanup(p.close)
        self.assertEqual(1, p.proc.wait(livenet.WAIT_S))
        self.assertIn("2 rx_queues, but driver net_af_packet has 1: lower rx_queues", p.stderr())

    def test_a_device_of_the_command_line(self):
        """It is as one of the file's "eal": its buffers hold a whole frame of its ring."""
        config = livenet.live_config()
        vdev = [s for s in config["eal"] if s.startswith("--vdev")][0]
        config["eal"].remove(vdev)
        p = livenet.Process(config, eal=[vdev])
        self.addCleanup(p.close)
        self.assertNotIn("error", p.stderr())

    def test_every_qp_is_answered_in_order(self):
        """QPs of both workers, flows on both queues: what meets the wrong worker changes hands."""
        qps = [{"qp_num": 0x100 + i, "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
                "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": 0x900 + i,
                "rq_psn": 0, "sq_psn": 0, "worker": i % 2, "ah_attr": {"dest_ip": "192.0.2.2"},
                "qp_access_flags": ["REMOTE_WRITE"]} for i in range(FLOWS)]
        config = self.start(2, cqs=[{"name": "cq0"}], qps=qps, mrs=[
            {"name": "mr0", "pd": "pd0", "length": "64K", "addr": hex(VA), "rkey": hex(RKEY),
             "access": ["LOCAL_WRITE", "REMOTE_WRITE"]}])
        live = livenet.Live(config)
        self.addCleanup(live.close)
        peers = [roce.Peer(qpn=0x100 + i, sport=0xC000 + 37 * i) for i in range(FLOWS)]
        for n in range(MESSAGES):
            for i, p in enumerate(peers):
                live.rx(p.write_only(n, data(64, i), VA + 64 * i, RKEY))
        acked = {0x900 + i: [] for i in range(FLOWS)}
        end = time.monotonic() + livenet.WAIT_S
        while min(a[-1] if a else -1 for a in acked.values()) < MESSAGES - 1:
            self.assertLess(time.monotonic(), end, "ACKs so far: %r" % acked)
            for _, raw in live.frames():
                f = dut.Frame(raw)
                self.assertTrue(Ack(f.psn, f.psn + 1).matches(f), f)
                acked[f.qpn].append(f.psn)
        for seen in acked.values():
            self.assertEqual(sorted(set(seen)), seen)      # in order, none twice
        mem = bytes.fromhex(live.rpc("mr_read", name="mr0", offset=0, length=64 * FLOWS)["data"])
        self.assertEqual(b"".join(data(64, i) for i in range(FLOWS)), mem)
        workers = [live.rpc("stats", scope="worker", worker=w) for w in (0, 1)]
        dut.unexplained(self, workers)
        for w in workers:
            self.assertGreater(w["rx_packets"], 0, workers)
            self.assertGreater(w["rx_handoff"], 0, workers)
            self.assertEqual(0, w["rx_handoff_lost"], workers)
        self.assertEqual(sum(w["rx_handoff"] for w in workers),
                         sum(w["rx_handoff_in"] for w in workers))
        with self.assertRaises(dut.RpcError) as e:
            live.rpc("impair_set", port="p0", impair={"rules": [{"action": "drop"}]})
        self.assertIn("one receive queue", str(e.exception))


class InMemory(unittest.TestCase):

    def config(self, right=2):
        ports = [{"name": name, "device": "net_pair0" + end, "mac": "02:00:00:00:00:0" + mac,
                  "ipv4": "10.77.0." + mac, "mtu": 4200}
                 for name, end, mac in (("left", "a", "1"), ("right", "b", "2"))]
        config = two_workers(dut.base_config(ports=ports, cqs=[{"name": "cq0"}], mrs=[
            {"name": "mr0", "pd": "pd0", "length": "64K", "addr": hex(VA), "rkey": hex(RKEY),
             "access": ["LOCAL_WRITE", "REMOTE_WRITE"]}]))
        ports[1]["rx_queues"] = right
        config["knobs"] = {"path.local": "wire"}
        config["qps"] = [
            {"qp_num": own + w, "qp_type": "RC", "port": port, "pd": "pd0", "send_cq": "cq0",
             "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024, "dest_qp_num": far + w,
             "rq_psn": 0, "sq_psn": 0, "worker": w, "ah_attr": {"dest_ip": "10.77.0." + to},
             "qp_access_flags": ["REMOTE_WRITE"], **more}
            for own, far, port, to, more in (
                (0x20, 0x30, "right", "1", {}),
                (0x30, 0x20, "left", "2", {"send_feed": {
                    "opcode": "RDMA_WRITE", "size": 3000, "depth": 4, "rkey": hex(RKEY),
                    "remote_addr": hex(VA)}}))
            for w in (0, 1)]
        return config

    def test_each_worker_has_a_wire_of_its_own(self):
        """What worker 1 sends its own queue receives: nothing is handed over."""
        p = livenet.Process(self.config())
        self.addCleanup(p.close)
        conn = jsonrpc.Connection(p.socket_path)
        self.addCleanup(conn.close)
        end = time.monotonic() + livenet.WAIT_S
        workers = []
        while min((w["rx_packets"] for w in workers), default=0) < 1000:
            self.assertLess(time.monotonic(), end, workers)
            workers = [conn.call("stats", scope="worker", worker=w) for w in (0, 1)]
        for w in workers:
            self.assertEqual((0, 0), (w["rx_handoff"], w["rx_handoff_in"]))
        self.assertEqual(0, p.stop(), p.stderr())

    def test_both_ends_of_a_wire_agree(self):
        p = livenet.Process(self.config(right=1), wait=False)
        self.addCleanup(p.close)
        self.assertEqual(2, p.proc.wait(livenet.WAIT_S))
        self.assertIn("/ports/1/rx_queues: 1, but left, the other end of the wire, has 2",
                      p.stderr())


if __name__ == "__main__":
    livenet.run_tests(unittest.main)
