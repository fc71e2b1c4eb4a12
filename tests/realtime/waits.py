# SPDX-License-Identifier: BSD-3-Clause
"""RNR waits and transport timeouts of the real program, on the peer's one clock.

The peer is a packet socket of its own at the other end of a veth pair; it sees its own frames as
they leave and the program's as they arrive, and the kernel writes down when. A wait is what passes
between two of these times: from an RNR NAK to the copy that follows it, or from one copy of a
request to the next when nothing is ever answered: send_feed, its retries used up, rests and begins
again. Programs that only use up their CPU run beside the
worker, so that it loses its own between any two instructions.
"""
import argparse
import contextlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass, field

import livenet
import roce

SOL_PACKET, PACKET_OUTGOING = 263, 4
SO_TIMESTAMPNS = 35
OUR_QPN, PEER_QPN = 0x100, 0x800
RNR_CODE, RNR_NS = 20, 10240000
TIMEOUT, TIMEOUT_NS = 10, 4096 << 10
RETRIES = 7
SEND_ONLY = 4
STILL_S = 60                    # without a frame: something is wrong


@dataclass
class Wait:
    """How long the waits of one kind were, beyond their time (ns)."""
    wait_ns: int
    late: list = field(default_factory=list)

    def early(self):
        return [x for x in self.late if x < 0]

    def late_us(self, share):
        return sorted(self.late)[min(len(self.late) - 1, int(len(self.late) * share))] / 1e3


def config(idle, qps, rnr):
    """Queue pairs that try to send one SEND each, for ever."""
    qp = {"qp_num": OUR_QPN, "count": qps, "qp_type": "RC", "port": "p0", "pd": "pd0",
          "send_cq": "cq0", "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 1024,
          "dest_qp_num": PEER_QPN, "rq_psn": 0, "sq_psn": 0, "retry_cnt": RETRIES, "rnr_retry": 7,
          # Without copies by timeout: a NAK of one that is old would not begin a wait.
          "timeout": 0 if rnr else TIMEOUT,
          "ah_attr": {"dest_ip": livenet.PEER_IP, "dest_mac": livenet.PEER_MAC},
          "send_feed": {"opcode": "SEND", "size": 16, "depth": 1}}
    made = livenet.live_config(cqs=[{"name": "cq0"}], qps=[qp])
    made["lcores"]["idle"] = idle
    return made


@contextlib.contextmanager
def beside(n, cpu):
    """So many programs that do nothing but keep this CPU busy."""
    burn = [sys.executable, "-c", "while True: pass"]
    procs = []
    try:
        for _ in range(n):
            procs.append(subprocess.Popen(burn, preexec_fn=lambda: (
                livenet.die_with_parent(), os.sched_setaffinity(0, {cpu}))))
        yield
    finally:
        for p in procs:
            p.kill()
            p.wait()


class Peer:
    """Answers, and writes down."""

    def __init__(self, rnr):
        self.rnr = rnr
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 16 << 20)
        self.sock.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self.sock.bind((livenet.PEER_IF, 0))
        self.sock.settimeout(STILL_S)
        # A socket does not see what it sends itself.
        self.out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
        self.out.bind((livenet.PEER_IF, 0))
        self.peer = roce.Peer(src_ip=livenet.PEER_IP, dst_ip=livenet.DUT_IP)
        self.frames = {}        # RNR NAKs, by QPN and PSN
        self.since = {}         # QPN -> (time of what started the wait, copies in this row)
        self.wait = Wait(RNR_NS if rnr else TIMEOUT_NS)

    def close(self):
        self.sock.close()
        self.out.close()

    def answer(self, qpn, psn):
        if (qpn, psn) not in self.frames:
            self.frames[qpn, psn] = self.peer.with_(qpn=OUR_QPN + qpn - PEER_QPN).acknowledge(
                psn, 0x20 + RNR_CODE)
        self.out.send(self.frames[qpn, psn])

    def copy_came(self, qpn, psn, at):
        since, copies = self.since.get(qpn, (None, 0))
        if since is not None:
            self.wait.late.append(at - since - self.wait.wait_ns)
        if self.rnr:
            self.since[qpn] = (None, 0)         # until the NAK has left
            self.answer(qpn, psn)
        else:
            last = copies == RETRIES            # then it rests
            self.since[qpn] = (None, 0) if last else (at, copies + 1)

    def step(self):
        """One frame, in either direction."""
        frame, control, _, address = self.sock.recvmsg(2048, 256)
        at = next(s * 10 ** 9 + ns for level, kind, value in control
                  if level == socket.SOL_SOCKET and kind == SO_TIMESTAMPNS
                  for s, ns in [struct.unpack("=qq", value[:16])])
        if frame[12:14] != b"\x08\x00" or frame[36:38] != b"\x12\xb7":
            return
        qpn = int.from_bytes(frame[47:50], "big")
        psn = int.from_bytes(frame[51:54], "big")
        if address[2] == PACKET_OUTGOING:
            qpn += PEER_QPN - OUR_QPN
            self.since[qpn] = (at, 0)
        elif frame[42] == SEND_ONLY:
            self.copy_came(qpn, psn, at)

    def until(self, n):
        while len(self.wait.late) < n:
            self.step()
        return self.wait


def measure(idle, busy, rnr, n, qps, cpu):
    """@return a Wait of n waits and more."""
    peer = Peer(rnr)
    try:
        live = livenet.Process(config(idle, qps, rnr))
        try:
            with beside(busy, cpu):
                return peer.until(n)
        finally:
            live.stop()
            live.close()
    finally:
        peer.close()


def row(idle, busy, rnr, w, took):
    return {"idle": idle, "busy": busy, "wait": "RNR" if rnr else "timeout", "n": len(w.late),
            "early": len(w.early()), "least_us": min(w.late) / 1e3, "p50_us": w.late_us(0.5),
            "p99_us": w.late_us(0.99), "max_us": max(w.late) / 1e3, "took_s": took}


def main():
    ap = argparse.ArgumentParser(description="RNR waits of %.2f ms and transport timeouts of %.2f "
                                 "ms, beyond their time" % (RNR_NS / 1e6, TIMEOUT_NS / 1e6))
    ap.add_argument("--idle", default="poll,sleep,pause")
    ap.add_argument("--busy", default="0,2,4", help="programs beside the worker, on its CPU")
    ap.add_argument("--waits", type=int, default=1000, help="of each kind")
    ap.add_argument("--qps", type=int, default=32)
    ap.add_argument("--cpu", type=int, default=1, help="the worker's")
    ap.add_argument("--json", help="file for the rows")
    a = ap.parse_args()
    others = os.sched_getaffinity(0) - {a.cpu}
    rows = []
    print("idle   busy  wait        n  early    least      p50      p99      max  us late")
    for idle in a.idle.split(","):
        for busy in map(int, a.busy.split(",")):
            for rnr in (True, False):
                began = time.monotonic()
                os.sched_setaffinity(0, {a.cpu} | others)   # the program finds its worker's CPU
                w = measure(idle, busy, rnr, a.waits, a.qps, a.cpu)
                rows.append(row(idle, busy, rnr, w, time.monotonic() - began))
                print("%(idle)-6s %(busy)4d  %(wait)-7s %(n)5d  %(early)5d %(least_us)8.1f "
                      "%(p50_us)8.1f %(p99_us)8.1f %(max_us)8.1f" % rows[-1], flush=True)
    if a.json:
        with open(a.json, "w", encoding="ascii") as f:
            json.dump(rows, f, indent=1)
    return 1 if any(r["early"] for r in rows) else 0


if __name__ == "__main__":
    livenet.run_tests(lambda: sys.exit(main()))
