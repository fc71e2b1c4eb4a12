# SPDX-License-Identifier: BSD-3-Clause
"""REQs of forged addresses, and what becomes of those who mean it."""
import ipaddress

import dut
import roce
from dut import MS
from dut_cm import PEER_ID, PEER_QPN, CmCase

STEP_MS, FORGED = 20, 8
PER_MS, WINDOW_MS, DISTINCT_MS = 100, 10, 5     # 100,000 a second
HOSTILE_MAC = "02:00:00:00:66:66"
HONEST_ID, HONEST_QPN, HONEST_TID = 0x77, 0x377, 0x7777


class Flood(CmCase):

    def forged(self, n):
        """A REQ of an address that nobody has."""
        honest, self.tid = self.peer, 0x100000 + n
        self.peer = honest.with_(src_ip=str(ipaddress.ip_address(honest.src_ip) + 100 + n))
        frame = self.datagram(self.req(local_comm_id=0x1000 + n, local_qpn=0x1000 + n % 50000,
                                       max_cm_retries=3))
        self.peer = honest
        return frame

    def feed_some(self, *frames):
        """Frames in, time on; what comes back to the tester's own addresses."""
        for f in frames:
            self.dut.rx(f, 0)
        return self.heard_by(self.peer, STEP_MS)

    def test_CM_40_forged_addresses(self):
        """Whoever repeats its REQ is served in the middle of it; an established QP goes on; in the
        end nothing is left."""
        self.cm()
        rep = self.passive_up()
        peer, psn = self.data_peer(rep.local_qpn), rep.starting_psn
        self.post_recv(16, qp_num=rep.local_qpn)
        n, asked, up, acks = 0, 0, None, 0
        most = self.dut.counters()["cm_half_open"]
        for step in range(70):
            frames = [self.forged(n + i) for i in range(FORGED)]
            n += FORGED
            if up is None and step in (15, 68):   # its response timeout is 1.1 s
                self.tid = HONEST_TID
                frames.append(self.datagram(self.req(local_comm_id=HONEST_ID,
                                                     local_qpn=HONEST_QPN)))
                asked += 1
            if step % 10 == 5:
                frames.append(peer.send_only(roce.psn_add(psn, acks), b"goes on"))
            got = self.feed_some(*frames)
            acks += sum(f.opcode == roce.ACK for f in got)
            for m in self.mads(got):
                if m.name == "REP" and m.remote_comm_id == HONEST_ID:
                    up = m
                    self.dut.rx(self.datagram(self.reply("RTU", m, local_comm_id=HONEST_ID)), 0)
            most = max(most, self.dut.counters()["cm_half_open"])
        self.assertEqual(7, acks)
        self.assertEqual(2, asked)
        self.assertIsNotNone(up)
        self.assertEqual("RTS", self.qp(up.local_qpn)["qp_state"])
        self.assertTrue(90 <= most <= 128, most)
        self.assertGreater(self.cm_count("cm_drops_crowded"), n // 2)
        self.assertEqual((PEER_ID, PEER_QPN), tuple(self.of_qp(rep.local_qpn)[k] for k in (
            "remote_comm_id", "remote_qp_num")))
        for _ in range(30):
            self.dut.run(1000 * MS)
        self.assertEqual(0, self.dut.counters()["cm_half_open"])
        self.drain()
        while self.rpc("cm_events", max=4096):
            pass

    def test_CM_40_100_kpps(self):
        """A hostile host sends 100 REQs a millisecond, and no two of one address. It gets no more
        than its part of the way to the control lcore; who repeats its REQ is served; an established
        QP answers all."""
        self.cm()
        rep = self.passive_up()
        data, psn = self.data_peer(rep.local_qpn), rep.starting_psn
        self.post_recv(16, qp_num=rep.local_qpn)
        honest, self.peer = self.peer, self.peer.with_(src_mac=HOSTILE_MAC)
        hostile = [self.forged(i) for i in range(PER_MS * DISTINCT_MS)]
        self.peer, self.tid, acks, up = honest, HONEST_TID, 0, None
        asks = self.datagram(self.req(local_comm_id=HONEST_ID, local_qpn=HONEST_QPN))
        limited = self.dut.counters()["rx_control_limited"]
        for second in range(2):
            for ms in range(WINDOW_MS):
                at = ms % DISTINCT_MS * PER_MS
                for f in hostile[at:at + PER_MS]:
                    self.dut.rx(f, 0)
                if ms == WINDOW_MS // 2:
                    self.dut.rx(asks, 0)
                    self.dut.rx(data.send_only(roce.psn_add(psn, acks), b"goes on"), 0)
                got = self.heard_by(honest)
                acks += sum(f.opcode == roce.ACK for f in got)
                up = next((m for m in self.mads(got) if m.name == "REP" and
                           m.remote_comm_id == HONEST_ID), up)
            self.assertEqual((second + 1, second == 1), (acks, up is not None))
            self.dut.run((1000 - WINDOW_MS) * MS)
        self.dut.rx(self.datagram(self.reply("RTU", up, local_comm_id=HONEST_ID)), 0)
        self.dut.run(MS)
        self.assertEqual("RTS", self.qp(up.local_qpn)["qp_state"])
        limited = self.dut.counters()["rx_control_limited"] - limited
        self.assertGreaterEqual(limited, 2 * (WINDOW_MS - 1) * (PER_MS - 64))
        self.assertGreater(self.cm_count("cm_drops_crowded"), 0)
        for _ in range(30):
            self.dut.run(1000 * MS)
        self.assertEqual(0, self.dut.counters()["cm_half_open"])
        self.drain()
        while self.rpc("cm_events", max=4096):
            pass

    def heard_by(self, peer, ms=1):
        """Time on: what comes to this one's address."""
        out = [roce.Frame(raw) for _, raw in self.dut.run(ms * MS)
               if raw[0] & 1 == 0]      # nobody knows the forged neighbours
        return [f for f in out if ipaddress.ip_address(f.dst_ip) ==
                ipaddress.ip_address(peer.src_ip)]


if __name__ == "__main__":
    dut.main()
