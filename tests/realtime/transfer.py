# SPDX-License-Identifier: BSD-3-Clause
"""Move data between two ends at given rates of loss, verify every byte, compare goodput.

Two links: "pair", one process whose two in-memory ports are crossed, and "veth", two processes in
two network namespaces. Data goes in rounds of one region: WRITE, SEND and READ in turn, in messages
over several queue pairs. Before each round the source is filled with a pattern of its own, so that
what an earlier round left cannot pass; after it the CRC of each message is compared end to end.
Filling and comparing are not timed: goodput counts from the first post to the last completion.
"""
import argparse
import ctypes
import itertools
import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field

import jsonrpc
import livenet
import netns

MIB = 1 << 20
KEYS = {"a": 0x101, "b": 0x202}                 # rkey of each end's region
IP = {"a": "192.0.2.1", "b": "192.0.2.2"}
IFACE = {"a": "roce0", "b": "peer0"}
QPN = {"a": 0x100, "b": 0x200}
RIGHTS = ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE"]
WAIT_S = 120                                    # for one round
COUNTERS = ("req_resent_pkts", "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err",
            "rcvd_rnr_err", "req_cqe_error", "rx_syndrome_30")


class Failed(Exception):
    pass


# ---- the two ends -------------------------------------------------------------------------------

def port(end, device):
    return {"name": end, "device": device, "mac": "02:00:00:00:00:%02x" % (0x11 + "ab".index(end)),
            "ipv4": IP[end], "prefix": 24, "mtu": 4200}


def config(ports, window, *eal):
    return {"version": 1,
            "eal": ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                    "--log-level=error", *eal],
            "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
            "knobs": {"cc.cnp": "off", "cc.window": window, "path.local": "wire"},
            "ports": ports, "pds": ["pd0"]}


class Client:
    """Requests to a running process."""

    def __init__(self, process):
        self.process = process
        self.conn = jsonrpc.Connection(process.socket_path)

    def rpc(self, method, **params):
        try:
            return self.conn.call(method, **params)
        except ConnectionError as e:
            raise Failed("the process has ended (%s)\n%s" % (e, self.process.stderr())) from e
        except jsonrpc.RpcError as e:
            raise Failed("%s: %s" % (method, e.message)) from e

    def close(self):
        self.conn.close()
        code = self.process.stop()
        text = self.process.stderr()
        self.process.close()
        if code != 0:
            raise Failed("exit code %d\n%s" % (code, text[-4000:]))


class Pair:
    """One process over in-memory ports."""

    def __init__(self, window):
        process = livenet.Process(config([port("a", "net_pair0a"), port("b", "net_pair0b")],
                                         window))
        self.clients = [Client(process)]

    def client(self, _end):
        return self.clients[0]

    def close(self):
        self.clients[0].close()


def enter(space):
    """For a child: into a network namespace that is open already, and not to outlive us."""
    def prepare():
        if netns.libc.setns(space, netns.CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")
        livenet.die_with_parent()
    return prepare


class Veth:
    """Two processes, each in a namespace with one end of a veth pair (netns.py: what it needs)."""

    def __init__(self, window):
        self.clients, self.spaces = [], []
        for _ in "ab":                          # we end up in b's
            try:
                netns.enter()
            except netns.NoNamespace as e:
                raise Failed(str(e)) from None
            self.spaces.append(os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC))
        livenet.ip("link", "add", IFACE["b"], "type", "veth", "peer", "name", IFACE["a"])
        livenet.ip("link", "set", IFACE["a"], "netns",
                   "/proc/%d/fd/%d" % (os.getpid(), self.spaces[0]))
        for end, space in zip("ab", self.spaces):
            subprocess.run(["ip", "link", "set", IFACE[end], "mtu", "4300", "up"], check=True,
                           preexec_fn=enter(space))
        for end, space in zip("ab", self.spaces):
            device = "--vdev=net_af_packet0,iface=%s,blocksz=65536,framesz=8192,framecnt=%d" % (
                IFACE[end], netns.locked_frames(2048, 8192))
            self.clients.append(Client(livenet.Process(
                config([port(end, "net_af_packet0")], window, device), prepare=enter(space))))

    def client(self, end):
        return self.clients["ab".index(end)]

    def close(self):
        while self.clients:
            self.clients.pop().close()
        while self.spaces:
            os.close(self.spaces.pop())


LINKS = {"pair": Pair, "veth": Veth}


# ---- rounds -------------------------------------------------------------------------------------

@dataclass
class Result:
    """What one rate of loss came to."""
    loss: float
    bytes: int = 0
    seconds: float = 0
    lost: int = 0
    packets: int = 0
    counters: dict = field(default_factory=dict)
    by_kind: dict = field(default_factory=dict)     # operation: [bytes, seconds]

    @property
    def goodput(self):
        return self.bytes / self.seconds if self.seconds else 0.0


class Transfer:
    """One link, its objects, and runs over it."""

    def __init__(self, link, region, message, qps=4, mtu=4096, timeout=14, window=64):
        self.region, self.message, self.qps, self.mtu = region, message, qps, mtu
        self.timeout, self.seed, self.rounds = timeout, 0, 0
        self.n = region // message
        self.link = LINKS[link](window)
        try:
            for end in "ab":
                self.ask(end, "mr_register", name=end, pd="pd0", length=region,
                         addr=hex(KEYS[end] << 32), rkey=hex(KEYS[end]), access=RIGHTS)
                for cq in ("send", "recv"):
                    self.ask(end, "cq_create", name=cq + end, cqe=self.n + 16)
        except BaseException:
            self.close()
            raise

    def close(self):
        self.link.close()

    def ask(self, end, method, **params):
        return self.link.client(end).rpc(method, **params)

    def make_qps(self):
        share = -(-self.n // self.qps)
        for end, far in ("ab", "ba"):
            for i in range(self.qps):
                self.ask(end, "qp_create", qp_num=QPN[end] + i, dest_qp_num=QPN[far] + i,
                         qp_type="RC", port=end, pd="pd0", send_cq="send" + end,
                         recv_cq="recv" + end, qp_state="RTS", path_mtu=self.mtu, rq_psn=0xFFFF00,
                         sq_psn=0xFFFF00, sq_sig_all=True, ah_attr={"dest_ip": IP[far]},
                         timeout=self.timeout, retry_cnt=7, rnr_retry=7, min_rnr_timer=12,
                         qp_access_flags=RIGHTS[1:],
                         cap={"max_send_wr": share, "max_recv_wr": share, "max_send_sge": 1,
                              "max_recv_sge": 1})

    def drop_qps(self):
        for end in "ab":
            for i in range(self.qps):
                self.ask(end, "qp_destroy", qp_num=QPN[end] + i)

    def fill(self, end, seed):
        step = 16 * MIB
        for at in range(0, self.region, step):
            self.ask(end, "mr_fill", name=end, offset=at, length=min(step, self.region - at),
                     seed=seed)

    def crcs(self, end):
        """One for each message's part of the region."""
        return [self.ask(end, "mr_crc", name=end, offset=i * self.message,
                         length=self.message)["crc32"] for i in range(self.n)]

    def sge(self, end, i):
        return [{"mr": end, "offset": i * self.message, "length": self.message}]

    def post(self, kind):
        """All messages of a round, dealt out to the QPs."""
        for q in range(self.qps):
            mine = range(q, self.n, self.qps)
            if kind == "SEND":
                self.post_list("b", "post_recv", QPN["b"] + q,
                               [{"wr_id": i, "sg_list": self.sge("b", i)} for i in mine])
            wrs = [{"wr_id": i, "opcode": kind, "sg_list": self.sge("a", i)} for i in mine]
            for wr in wrs if kind != "SEND" else ():
                wr.update(rkey=hex(KEYS["b"]),
                          remote_addr=hex((KEYS["b"] << 32) + wr["wr_id"] * self.message))
            self.post_list("a", "post_send", QPN["a"] + q, wrs)

    def post_list(self, end, method, qp_num, wrs):
        for at in range(0, len(wrs), 256):
            result = self.ask(end, method, qp_num=qp_num, wrs=wrs[at:at + 256])
            if result["refused"] is not None:
                raise Failed("%s: %r" % (method, result["refused"]))

    def reap(self, end, cq, want):
        """So many completions, each for another request, all of them good."""
        seen, until = set(), time.monotonic() + WAIT_S
        while len(seen) < want:
            got = self.ask(end, "poll_cq", cq=cq, max=256)
            for c in got:
                if c["status"] != "SUCCESS" or c["wr_id"] in seen:
                    raise Failed(self.autopsy(c))
                seen.add(c["wr_id"])
            if not got:
                if time.monotonic() > until:
                    raise Failed("%d of %d completions after %d s" % (len(seen), want, WAIT_S))
                time.sleep(0.0005)      # between looks at the queue: the cores are the workers'

    def autopsy(self, completion):
        """A completion that should not be, and the queue pair's own account of it."""
        parts = [json.dumps(completion)]
        for end in "ab":
            qp_num = QPN[end] + completion["qp_num"] % 0x100
            for method in ("qp_query", "qp_explain"):
                parts.append("%s: %s" % (end, json.dumps(self.ask(end, method, qp_num=qp_num))))
        for client in self.link.clients:
            stats = client.rpc("stats", scope="total")
            stats = stats.get("counters", stats)
            parts.append(json.dumps({k: v for k, v in stats.items() if v}))
        return "\n".join(parts)

    def round(self, kind, result):
        """One region full: new bytes at the source, move, compare."""
        self.rounds += 1
        source, target = ("b", "a") if kind == "RDMA_READ" else ("a", "b")
        self.fill(source, self.seed + self.rounds)
        want, before = self.crcs(source), self.crcs(target)
        if any(w == b for w, b in zip(want, before)):
            raise Failed("the target holds the data already: nothing would be shown")
        began = time.monotonic()
        self.post(kind)
        self.reap("a", "senda", self.n)
        took = time.monotonic() - began
        if kind == "SEND":
            self.reap("b", "recvb", self.n)
        got = self.crcs(target)
        bad = [i for i in range(self.n) if got[i] != want[i]]
        if bad:
            raise Failed("%s: %d of %d messages have arrived wrong, the first is %d" % (
                kind, len(bad), self.n, bad[0]))
        result.bytes += self.region
        result.seconds += took
        share = result.by_kind.setdefault(kind, [0, 0.0])
        share[0] += self.region
        share[1] += took

    def counters(self):
        total = dict.fromkeys(COUNTERS, 0)
        for client in self.link.clients:
            stats = client.rpc("stats", scope="total")
            for name in COUNTERS:
                total[name] += stats.get("counters", stats).get(name, 0)
        return total

    def carried(self):
        """(packets, lost ones) that the impairment of both ends has seen."""
        seen = [self.ask(end, "impair_get", port=end)["counters"] for end in "ab"]
        return sum(c["in"] for c in seen), sum(c["dropped"] for c in seen)

    def impair(self, loss):
        for i, end in enumerate("ab"):
            rules = [{"action": "drop", "probability": loss}] if loss else []
            self.ask(end, "impair_set", port=end,
                     impair={"seed": self.seed + i, "rules": rules} if rules else None)

    def run(self, loss, volume, kinds, seed=1):
        """`volume` bytes at least, lost with probability `loss` in each direction."""
        self.seed, self.rounds = seed << 16, self.rounds
        result, kind = Result(loss), itertools.cycle(kinds)
        self.make_qps()
        self.impair(loss)
        counted, carried = self.counters(), self.carried()
        while result.bytes < volume:
            self.round(next(kind), result)
        result.counters = {k: v - counted[k] for k, v in self.counters().items()}
        result.packets, result.lost = (n - w for n, w in zip(self.carried(), carried))
        self.impair(0)
        self.drop_qps()
        return result


# ---- by hand ------------------------------------------------------------------------------------

def size(text):
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 10 ** 9}.get(text[-1:].upper())
    return int(text[:-1]) * unit if unit else int(text, 0)


def show(result, lossless):
    print("%5g %%  %8.3f GB  %7.2f s  %7.1f MB/s  %6s   %s   lost %d of %d, resent %d, "
          "timeouts %d, sequence NAKs %d, implied NAKs %d" % (
              result.loss * 100, result.bytes / 1e9, result.seconds, result.goodput / 1e6,
              "%.3f" % (result.goodput / lossless) if lossless else "-",
              ", ".join("%s %.0f" % (k.replace("RDMA_", ""), b / s / 1e6)
                        for k, (b, s) in result.by_kind.items()),
              result.lost, result.packets, *(result.counters[c] for c in COUNTERS[:4])))
    sys.stdout.flush()


def main():
    p = argparse.ArgumentParser(
        prog="transfer", description="Move data at given rates of loss, verify it, print goodput "
        "as a fraction of the lossless one.")
    p.add_argument("--link", choices=sorted(LINKS), action="append",
                   help="one process over in-memory ports, or two over veth (root); both if left "
                   "out")
    p.add_argument("--bytes", type=size, default=10 ** 9, help="for each rate (1G; K, M, G)")
    p.add_argument("--loss", default="0,0.1,1", help="rates in percent, each way (0,0.1,1)")
    p.add_argument("--op", default="write,read,send", help="what rounds do in turn")
    p.add_argument("--region", type=size, default=128 * MIB, help="bytes of a round (128M)")
    p.add_argument("--message", type=size, default=MIB, help="(1M)")
    p.add_argument("--qps", type=int, default=4, help="queue pairs (4)")
    p.add_argument("--mtu", type=int, default=4096, help="path MTU (4096)")
    p.add_argument("--window", type=int, default=64,
                   help="cc.window, packets in flight of a queue pair (64)")
    p.add_argument("--timeout", type=int, default=12, help="ibv_qp_attr.timeout (12: 16.8 ms)")
    p.add_argument("--seed", type=int, default=1, help="of patterns and losses (1)")
    a = p.parse_args()
    kinds = [{"write": "RDMA_WRITE", "read": "RDMA_READ", "send": "SEND"}[k]
             for k in a.op.split(",")]
    for link in a.link or ("pair", "veth"):
        print("%s: path MTU %d, %d queue pairs, window %d, timeout %d, messages of %d bytes, "
              "rounds of %d\n"
              " loss         bytes    time      goodput  of lossless  (MB/s by operation)" % (
                  link, a.mtu, a.qps, a.window, a.timeout, a.message, a.region))
        transfer = Transfer(link, a.region, a.message, a.qps, a.mtu, a.timeout, a.window)
        lossless = None
        try:
            for percent in a.loss.split(","):
                result = transfer.run(float(percent) / 100, a.bytes, kinds, a.seed)
                if result.loss == 0:
                    lossless = result.goodput
                show(result, lossless)
        finally:
            transfer.close()


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit("transfer: %s" % e)
