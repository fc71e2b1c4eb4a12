# SPDX-License-Identifier: BSD-3-Clause
"""An application that listens, hosts that mean no connection, and one that does: over a veth pair.

CM-40 for what is the application's: places for those who wait for its answer, and ids. In the time
that the messages ask for, so that nothing of it depends on the machine.
"""
import select
import socket
import time
import unittest

import jsonrpc
import livenet
import mad
import roce
import test_cm_flood
from dut_cm import SERVICE, four, gid

PENDING, IDS = 64, 100
AT_ONCE = 16                    # frames: a worker lets so many of one MAC through in a turn
HOSTILE, HONEST = "02:00:00:00:66:66", "02:00:00:00:77:77"
HONEST_IP = "192.0.2.77"
WAIT_S = livenet.WAIT_S
TRIES_S = 1.1                   # between two REQs of one host, so that they are in two seconds
NO_RESOURCES = 3
KINDS = {0x10: "REQ", 0x11: "MRA", 0x12: "REJ", 0x13: "REP", 0x15: "DREQ", 0x16: "DREP"}
REP_LOCAL, REP_REMOTE, REP_QPN, REJ_REASON = 24, 28, 36, 34


def packet(mac, ip, message):
    peer = roce.Peer(src_ip=ip, dst_ip=livenet.DUT_IP, src_mac=mac, qpn=mad.QPN, own_qpn=mad.QPN)
    return peer.packet(roce.UD_SEND_ONLY, 0, message, roce.deth(mad.QKEY, mad.QPN), ack=0, mig=0)


def req(mac, ip, n):
    return packet(mac, ip, mad.make(
        "REQ", 0x100000 + n, local_comm_id=n, service_id=SERVICE, local_ca_guid=n + 1,
        local_qpn=0x1000 + n, starting_psn=n, responder_resources=1, initiator_depth=1,
        remote_cm_response_timeout=20, local_cm_response_timeout=20, retry_count=2,
        rnr_retry_count=3, pkey=0xFFFF, path_mtu=3, max_cm_retries=15, primary_local_lid=0xFFFF,
        primary_remote_lid=0xFFFF, primary_local_gid=gid(ip),
        primary_remote_gid=gid(livenet.DUT_IP), primary_hop_limit=64,
        primary_local_ack_timeout=20,
        private_data=mad.make_ip_header(4, four(ip), four(livenet.DUT_IP))))


class Application:
    """A client that accepts whoever asks, when it looks."""

    def __init__(self, path):
        self.conn = jsonrpc.Connection(path, WAIT_S)
        self.call = self.conn.call
        self.call("client_open", abi=1, name="server")
        self.call("client_pd_create")
        self.call("client_cq_create", cqe=16)
        self.channel = self.call("client_cm_channel_create")["handle"]
        self.call("client_cm_listen", channel=self.channel, service_port=SERVICE & 0xFFFF,
                  ip=livenet.DUT_IP)

    def serve(self):
        """@return how many have asked."""
        events = self.call("client_cm_events", channel=self.channel, max=64)
        asked = [e["handle"] for e in events if e["event"] == 4]
        for handle in asked:
            qpn = self.call("client_qp_create", pd=1, send_cq=1, recv_cq=1, qp_type="RC",
                            max_send_wr=1, max_recv_wr=1, max_send_sge=1, max_recv_sge=1,
                            max_inline_data=0, port_num=1)["qp_num"]
            try:
                self.call("client_cm_accept", handle=handle, qp_num=qpn, walk=True)
            except jsonrpc.RpcError:    # it gave up meanwhile
                pass
        return len(asked)


class Strangers(unittest.TestCase):

    def setUp(self):
        here = (livenet.DUT_IF, livenet.DUT_IP, livenet.DUT_MAC)
        there = (livenet.PEER_IF, livenet.PEER_IP, livenet.PEER_MAC)
        conf = test_cm_flood.config(here, there)
        conf["control"] = {"client_limits": {"cm_pending": PENDING, "cm_ids": IDS}}
        self.host = test_cm_flood.Host(conf)
        self.addCleanup(self.host.close)
        self.app = Application(self.host.process.socket_path)
        self.addCleanup(self.app.conn.close)
        self.wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.addCleanup(self.wire.close)
        self.wire.bind((livenet.PEER_IF, 0))

    def answer(self, mac, wait_s, *kinds):
        """The next MAD for this MAC of one of these kinds, served by the application; or None."""
        end, to = time.monotonic() + wait_s, bytes.fromhex(mac.replace(":", ""))
        while time.monotonic() < end:
            self.app.serve()
            while select.select([self.wire], [], [], 0.005)[0]:
                frame = self.wire.recv(4096)
                if frame[:6] != to or len(frame) < 62 + 256:
                    continue
                body = frame[62:62 + 256]
                if KINDS.get(int.from_bytes(body[16:18], "big")) in kinds:
                    return body
        return None

    def until(self, what, why):
        end = time.monotonic() + WAIT_S
        while not what():
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.005)   # between two looks

    def received(self):
        """All messages that came so far were looked at."""
        return self.host.counters()["cm_rx_req"]

    def asks(self, frames):
        for first in range(0, len(frames), AT_ONCE):
            some, before = frames[first:first + AT_ONCE], self.received()
            for frame in some:
                self.wire.send(frame)
            self.until(lambda: self.received() >= before + len(some),   # pylint: disable=W0640
                       "REQs do not arrive")

    def honest(self, n):
        """Is it served, in one of the tries that it has?"""
        end = time.monotonic() + WAIT_S
        while time.monotonic() < end:
            self.wire.send(req(HONEST, HONEST_IP, n))
            body = self.answer(HONEST, TRIES_S, "REP", "REJ")
            if body is not None:
                kind = KINDS[int.from_bytes(body[16:18], "big")]
                self.assertEqual("REP", kind, "REJ, reason %d" % int.from_bytes(
                    body[REJ_REASON:REJ_REASON + 2], "big"))
                return
        self.fail("no answer")

    def test_the_operator(self):
        """What is the application's to answer he cannot answer, nor take its listener away."""
        self.asks([req(HONEST, HONEST_IP, 0x50)])
        self.until(lambda: self.host.rpc("cm_list"), "the REQ is nowhere")
        for method, words in (("cm_accept", {"id": self.host.rpc("cm_list")[0]["id"]}),
                              ("cm_unlisten", {"name": "client 1 listener 1"})):
            with self.assertRaises(jsonrpc.RpcError):
                self.host.rpc(method, **words)
        self.honest(0x50)
        self.honest(0x51)

    def test_CM_40_a_place_of_the_crowd(self):
        """One MAC has all places, by REQs that it repeats; it never sends an RTU."""
        crowd = [req(HOSTILE, "192.0.3.%d" % (n + 1), 0x1000 + n) for n in range(2 * PENDING)]
        end = time.monotonic() + WAIT_S
        while True:
            self.asks(crowd)
            while self.app.serve():
                pass
            if self.host.counters()["cm_half_open"] == PENDING:
                break
            self.wire.send(req(HONEST, HONEST_IP, 0x50))
            self.assertLess(time.monotonic(), end, "there are places left")
            time.sleep(TRIES_S)     # a REQ counts as repeated in another second
        self.honest(0x50)

    def test_CM_32_who_ends_before_it_is_up(self):
        """A DREQ in place of the RTU: the place is free at once, not after TIMEWAIT."""
        for n in range(PENDING):
            self.wire.send(req(HOSTILE, "192.0.2.66", 0x1000 + n))
            rep = self.answer(HOSTILE, WAIT_S, "REP")
            self.assertIsNotNone(rep)
            ours, theirs = rep[REP_LOCAL:REP_LOCAL + 4], rep[REP_REMOTE:REP_REMOTE + 4]
            self.wire.send(packet(HOSTILE, "192.0.2.66", mad.make(
                "DREQ", 0x900 + n, local_comm_id=int.from_bytes(theirs, "big"),
                remote_comm_id=int.from_bytes(ours, "big"),
                remote_qpn=int.from_bytes(rep[REP_QPN:REP_QPN + 3], "big"))))
            self.assertIsNotNone(self.answer(HOSTILE, WAIT_S, "DREP"))
        self.assertEqual(PENDING, self.host.counters()["cm_connections"])   # in TIMEWAIT
        self.honest(0x50)

    def test_CM_40_who_gives_up_unheard(self):
        """REQ and REJ, again and again: the application keeps no id of who it has not heard of."""
        for first in range(0, IDS + PENDING, PENDING // 2):
            pairs = [(n, req(HOSTILE, "192.0.2.66", 0x1000 + n))
                     for n in range(first, first + PENDING // 2)]
            self.asks([r for _, r in pairs])
            for n, _ in pairs:
                self.wire.send(packet(HOSTILE, "192.0.2.66", mad.make(
                    "REJ", 0x101000 + n, local_comm_id=0x1000 + n, remote_comm_id=0, reason=4)))
            self.until(lambda: self.host.counters()["cm_half_open"] == 0, "a place stays taken")
        self.assertGreater(self.host.counters()["cm_rx_rej"], IDS)
        self.assertEqual(0, self.app.serve())
        self.honest(0x50)


if __name__ == "__main__":
    livenet.run_tests(lambda: unittest.main(verbosity=0))
