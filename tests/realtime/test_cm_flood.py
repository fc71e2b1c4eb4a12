# SPDX-License-Identifier: BSD-3-Clause
"""A host that floods a dataplane with REQs beside another one that means it: over a veth pair, in
real time. How many frames a second come is said, and not judged: that depends on the machine."""
import ctypes
import ipaddress
import json
import os
import select
import socket
import subprocess
import sys
import time
import unittest

import jsonrpc
import livenet
import mad
import roce
from dut_cm import PORT, SERVICE, four, gid

HOSTILE_MAC = "02:00:00:00:66:66"
NET = ipaddress.ip_network("192.0.0.0/16")
FORGED = 2000                   # addresses
A_SECOND = 100000
BATCH = 100
FIRST, FRAMES = 50000, 200000   # before memory is measured first, and then
CONNECTIONS = 5
WRITES = 100
SERVER, WRITER, RKEY = 0x40, 0x20, 0x1001
# A million REQs: whoever kept 64 bytes of each would need four times as much. A sanitizer makes
# each allocation larger and keeps what is freed for a while.
SANITIZED = "ASAN_OPTIONS" in os.environ
RSS_KIB = (32 if SANITIZED else 16) << 10
if SANITIZED:
    os.environ["ASAN_OPTIONS"] += ":quarantine_size_mb=1:thread_local_quarantine_size_kb=64"
HALF_OPEN = 128
REPEATS_MS = 20000              # a REQ each 1.1 s
WAIT_S = livenet.WAIT_S
TEMPLATE = {"qp_type": "RC", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0"}


# ---- the hostile host: a process of its own -----------------------------------------------------

class Iovec(ctypes.Structure):
    _fields_ = [("base", ctypes.c_char_p), ("len", ctypes.c_size_t)]


class Msghdr(ctypes.Structure):
    _fields_ = [("name", ctypes.c_void_p), ("namelen", ctypes.c_uint32),
                ("iov", ctypes.POINTER(Iovec)), ("iovlen", ctypes.c_size_t),
                ("control", ctypes.c_void_p), ("controllen", ctypes.c_size_t),
                ("flags", ctypes.c_int)]


class Mmsghdr(ctypes.Structure):
    _fields_ = [("hdr", Msghdr), ("len", ctypes.c_uint)]


def forged(n):
    """A REQ of an address that nobody has."""
    ip = str(NET.network_address + 0x1000 + n)
    peer = roce.Peer(src_ip=ip, dst_ip=livenet.DUT_IP, src_mac=HOSTILE_MAC, qpn=mad.QPN,
                     own_qpn=mad.QPN)
    req = mad.make(
        "REQ", 0x100000 + n, local_comm_id=0x1000 + n, service_id=SERVICE, local_ca_guid=n + 1,
        local_qpn=0x1000 + n, starting_psn=n, responder_resources=1, initiator_depth=1,
        remote_cm_response_timeout=18, local_cm_response_timeout=18, retry_count=2,
        rnr_retry_count=3, pkey=0xFFFF, path_mtu=3, max_cm_retries=1, primary_local_lid=0xFFFF,
        primary_remote_lid=0xFFFF, primary_local_gid=gid(ip),
        primary_remote_gid=gid(livenet.DUT_IP), primary_hop_limit=64,
        primary_local_ack_timeout=12,
        private_data=mad.make_ip_header(4, four(ip), four(livenet.DUT_IP)))
    return peer.packet(roce.UD_SEND_ONLY, 0, req, roce.deth(mad.QKEY, mad.QPN), ack=0, mig=0)


def attack():
    """Frames until standard input ends; each time that it says a line, how many they were."""
    libc = ctypes.CDLL(None, use_errno=True)
    out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    out.bind((livenet.PEER_IF, 0))
    frames = [forged(n) for n in range(FORGED)]
    iov = (Iovec * FORGED)(*[(f, len(f)) for f in frames])
    msgs = (Mmsghdr * FORGED)(*[
        ((None, 0, ctypes.pointer(iov[i]), 1, None, 0, 0), 0) for i in range(FORGED)])
    began, sent = time.monotonic(), 0
    print("ready", flush=True)
    while True:
        due = began + sent / A_SECOND - time.monotonic()
        if select.select([sys.stdin], [], [], max(0, due))[0]:
            if not sys.stdin.readline():
                return
            print(json.dumps([sent, time.monotonic() - began]), flush=True)
        at = sent % FORGED
        n = libc.sendmmsg(out.fileno(), ctypes.byref(msgs, at * ctypes.sizeof(Mmsghdr)),
                          min(BATCH, FORGED - at), 0)
        sent += max(n, 0)
        began = max(began, time.monotonic() - sent / A_SECOND - 1)  # nothing is made up for


class Attack:
    def __init__(self):
        self.proc = subprocess.Popen(
            [sys.executable, "-B", __file__, "--attack"], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, preexec_fn=livenet.die_with_parent)
        assert self.proc.stdout.readline() == "ready\n"

    def sent(self):
        """(frames, seconds) so far."""
        self.proc.stdin.write("?\n")
        self.proc.stdin.flush()
        return json.loads(self.proc.stdout.readline())

    def until(self, frames):
        end = time.monotonic() + WAIT_S
        while self.sent()[0] < frames:
            assert time.monotonic() < end, "too few frames go out"
            time.sleep(0.05)    # between two looks

    def end(self):
        self.proc.stdin.close()
        self.proc.wait()
        self.proc.stdout.close()


# ---- the two who mean it ------------------------------------------------------------------------

def qp(number, peer, ip, mac, **more):
    return {**TEMPLATE, "qp_num": number, "port": "p0", "qp_state": "RTS", "path_mtu": 1024,
            "dest_qp_num": peer, "rq_psn": 0, "sq_psn": 0, "timeout": 17, "retry_cnt": 7,
            "ah_attr": {"dest_ip": ip, "dest_mac": mac}, "qp_access_flags": ["REMOTE_WRITE"],
            **more}


def config(ours, theirs, **more):
    (iface, ip, mac), (_, their_ip, their_mac) = ours, theirs
    made = livenet.live_config(cqs=[{"name": "cq0", "cqe": 1024}], **more)
    made["eal"] = [a.replace("iface=" + livenet.DUT_IF, "iface=" + iface) for a in made["eal"]]
    made["ports"][0].update(
        ipv4=ip, mac=mac, prefix=16, neighbors=[{"ipv4": their_ip, "mac": their_mac}])
    return made


class Host:
    """A dataplane."""

    def __init__(self, conf):
        self.process = livenet.Process(conf)
        self.conn = jsonrpc.Connection(self.process.socket_path, WAIT_S)

    def rpc(self, method, **params):
        return self.conn.call(method, **params)

    def counters(self):
        return self.rpc("stats")

    def rss(self):
        with open("/proc/%d/status" % self.process.proc.pid, encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))

    def close(self):
        self.conn.close()
        code = self.process.stop()
        text = self.process.stderr()
        self.process.close()
        assert code == 0, "exit code %d\n%s" % (code, text[-4000:])


class CmFlood(unittest.TestCase):

    def setUp(self):
        here = (livenet.DUT_IF, livenet.DUT_IP, livenet.DUT_MAC)
        there = (livenet.PEER_IF, livenet.PEER_IP, livenet.PEER_MAC)
        self.server = Host(config(
            here, there,
            cm={"half_open": HALF_OPEN, "listen": [{
                "name": "l0", "port": "p0", "service_port": PORT, "accept": "always",
                "qp": TEMPLATE}]},
            mrs=[{"name": "mr0", "pd": "pd0", "length": "4K", "addr": "0x10000",
                  "rkey": hex(RKEY), "access": ["LOCAL_WRITE", "REMOTE_WRITE"]}],
            qps=[qp(SERVER, WRITER, livenet.PEER_IP, livenet.PEER_MAC)]))
        self.addCleanup(self.server.close)
        self.client = Host(config(there, here, qps=[
            qp(WRITER, SERVER, livenet.DUT_IP, livenet.DUT_MAC,
               send_feed={"opcode": "RDMA_WRITE", "size": 64, "depth": 1, "rkey": hex(RKEY),
                          "remote_addr": "0x10000"})]))
        self.addCleanup(self.client.close)

    def until(self, what, why):
        end = time.monotonic() + WAIT_S
        while not what():
            self.assertLess(time.monotonic(), end, why)
            time.sleep(0.02)    # between two looks

    def writes(self):
        return self.server.rpc("stats", qp_num=SERVER)["rx_write_requests"]

    def goes_on(self):
        """The established queue pair."""
        before = self.writes()
        self.until(lambda: self.writes() >= before + WRITES, "no WRITEs come")

    def connect(self):
        """One more connection; its id. On a machine that is busy all of its REQs may be lost."""
        end = time.monotonic() + WAIT_S
        while True:
            made = self.client.rpc("cm_connect", port="p0", dest_ip=livenet.DUT_IP,
                                   service_port=PORT, qp=TEMPLATE, timeout_ms=REPEATS_MS)["id"]
            events = []

            def told():
                events.extend(e for e in self.client.rpc("cm_events", max=64)
                              if e["id"] == made)     # pylint: disable=cell-var-from-loop
                return events                         # pylint: disable=cell-var-from-loop
            self.until(told, "the REQ is not answered")
            if events[0]["event"] == "ESTABLISHED":
                return made
            self.assertLess(time.monotonic(), end, self.client.rpc("cm_explain", id=made))

    def test_CM_40_legitimate_connections_in_a_flood(self):
        self.goes_on()
        ids = [self.connect()]
        hostile = Attack()
        self.addCleanup(hostile.end)
        hostile.until(FIRST)
        before = self.server.rss()
        most = 0
        for n in range(CONNECTIONS):
            ids.append(self.connect())
            self.goes_on()
            hostile.until(FIRST + (n + 1) * FRAMES // CONNECTIONS)
            most = max(most, self.server.counters()["cm_half_open"])
        sent, took = hostile.sent()
        self.assertLessEqual(self.server.rss() - before, RSS_KIB)
        self.assertLessEqual(most, HALF_OPEN)
        counters = self.server.counters()
        print("%d REQs, %d a second; %d limited, %d received, %d too many at a time" % (
            sent, sent / took, counters["rx_control_limited"], counters["cm_rx_req"],
            counters["cm_drops_crowded"]))
        self.assertGreater(counters["rx_control_limited"] + counters["cm_drops_crowded"], 0)
        hostile.end()
        self.goes_on()
        self.until(lambda: self.server.counters()["cm_half_open"] == 0, "half of them stay open")
        self.assertEqual({i: "ESTABLISHED" for i in ids}, {
            c["id"]: c["state"] for c in self.client.rpc("cm_list") if c["id"] in ids})
        theirs = {c["remote_qp_num"]: c["state"] for c in self.server.rpc("cm_list")}
        self.assertEqual({"ESTABLISHED"}, {
            theirs[c["qp_num"]] for c in self.client.rpc("cm_list") if c["id"] in ids})
        self.assertEqual("RTS", self.client.rpc("qp_query", qp_num=WRITER)["qp_state"])


if __name__ == "__main__":
    if sys.argv[1:] == ["--attack"]:
        attack()
    else:
        livenet.run_tests(lambda: unittest.main(verbosity=0))
