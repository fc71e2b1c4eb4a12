# SPDX-License-Identifier: BSD-3-Clause
"""REQs of forged addresses, and what becomes of those who mean it."""
import ipaddress

import dut
import roce
from dut import MS
from dut_cm import PEER_ID, PEER_QPN, CmCase

STEP_MS, FORGED = 20, 8
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
        out = [roce.Frame(raw) for _, raw in self.dut.run(STEP_MS * MS)
               if raw[0] & 1 == 0]      # nobody knows the forged neighbours
        return [f for f in out if ipaddress.ip_address(f.dst_ip) ==
                ipaddress.ip_address(self.peer.src_ip)]

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


if __name__ == "__main__":
    dut.main()
