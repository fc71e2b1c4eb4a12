# SPDX-License-Identifier: BSD-3-Clause
"""Goodput of queue pairs that keep sending, with and without loss, on a link with a delay.

One process, its two in-memory ports crossed, impairment on both. The queue pairs are never stopped:
rules of loss are switched at run time, lossless and lossy in turn, and each lossy sample is divided
by the lossless one before it. Both have the same rules, so that deciding about a packet costs both
the same; the lossless one's probability is 0. Goodput is what completed (req_message_bytes) over
the time between two looks at the counters. Workers poll, for one that has gone to sleep sees a
timer up to 100 us late.

A timer that ends though nothing is lost would be measured, too. So, unless it is given, the timeout
is the least one of four lossless round trips. Such a round trip has the queue in it: all messages
in flight, over the rate at which they complete.
"""
import argparse
import json
import os
import statistics
import sys
import time
from dataclasses import dataclass, field

import livenet
import transfer
from transfer import Client, Failed

OPCODES = {"write": "RDMA_WRITE", "send": "SEND", "read": "RDMA_READ"}
QPN = {"a": 0x100, "b": 0x200}
KEY, ADDR = 0x202, 0x202 << 32
COUNTERS = ("req_resent_pkts", "local_ack_timeout_err", "packet_seq_err", "implied_nak_seq_err",
            "rcvd_rnr_err")
WAITED_MAX = 0.05               # share of a sample that its workers may have waited for a CPU
BESIDE_MAX = 0.2                # CPUs that others may have used meanwhile: they slow this one down
AGAIN_MAX = 20                  # samples taken again, at most, for one that counts
MIN_TIMEOUT = 5                 # tmr.min_timeout by default
LONG_TIMEOUT = 14               # 67 ms: while the round trip is measured
MAX_TIMEOUT = 31
ROUNDS = 4                      # lossless round trips that a timeout is long, at least
DEPTH = 8                       # messages in flight of each queue pair
STILL_S = 60                    # without a message: something is wrong


@dataclass
class Setup:
    """What a run is about."""
    op: str
    qps: int
    size: int = 65536
    mtu: int = 4096
    delay: int = 5
    timeout: int = None         # LONG_TIMEOUT
    window: int = None
    workers: int = 1
    ms: int = 150
    seed: int = 1
    again: int = AGAIN_MAX
    read_gap: str = "restart"
    gap: str = "restart"
    probe: str = "lossy"


@dataclass
class Sample:
    seconds: float
    bytes: int
    lost: int
    waited: float
    beside: float
    counters: dict = field(default_factory=dict)

    @property
    def goodput(self):
        return self.bytes / self.seconds

    @property
    def disturbed(self):
        return self.waited > WAITED_MAX or self.beside > BESIDE_MAX


def timeout_of(seconds):
    """The least ibv_qp_attr.timeout that is at least so long."""
    for n in range(1, MAX_TIMEOUT):
        if timeout_s(n) >= seconds:
            return n
    return MAX_TIMEOUT


def timeout_s(exponent):
    return 4.096e-6 * 2**exponent


def busy():
    """Seconds that all CPUs together have worked, or were taken from this machine, so far."""
    with open("/proc/stat", encoding="ascii") as f:
        ticks = [int(n) for n in f.readline().split()[1:9]]
    return (sum(ticks) - ticks[3] - ticks[4]) / os.sysconf("SC_CLK_TCK")


def config(s):
    """Requesters on port a, responders on port b, as many of each as there are queue pairs."""
    ports = [transfer.port(end, "net_pair0" + end) for end in "ab"]
    timeout = LONG_TIMEOUT if s.timeout is None else s.timeout
    common = {"count": s.qps, "qp_type": "RC", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0",
              "qp_state": "RTS", "path_mtu": s.mtu, "timeout": timeout, "retry_cnt": 7,
              "rnr_retry": 7, "rq_psn": 0, "sq_psn": 0}
    feed = {"opcode": OPCODES[s.op], "size": s.size, "depth": DEPTH}
    if s.op != "send":
        feed.update(rkey=hex(KEY), remote_addr=hex(ADDR), stride=s.size)
    c = transfer.config(ports, s.window)
    if s.window is None:
        del c["knobs"]["cc.window"]
    c["lcores"].update(workers=list(range(1, 1 + s.workers)), idle="poll")
    c["knobs"]["req.read_gap"] = s.read_gap
    c["knobs"]["req.probe"] = s.probe
    if s.gap == "patch":
        c["knobs"].update({"req.gap": "patch", "resp.gap": "keep"})
    c["knobs"]["tmr.min_timeout"] = min(timeout, MIN_TIMEOUT)
    c["mrs"] = [{"name": "mr0", "pd": "pd0", "length": s.size * s.qps, "addr": hex(ADDR),
                 "rkey": hex(KEY), "access": ["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE"]}]
    c["cqs"] = [{"name": "cq0"}]
    c["qps"] = [dict(common, qp_num=QPN["b"], dest_qp_num=QPN["a"], port="b",
                     ah_attr={"dest_ip": transfer.IP["a"]},
                     qp_access_flags=["REMOTE_READ", "REMOTE_WRITE"],
                     recv_feed={"buffers": 4 * DEPTH, "size": s.size}),
                dict(common, qp_num=QPN["a"], dest_qp_num=QPN["b"], port="a",
                     ah_attr={"dest_ip": transfer.IP["b"]}, send_feed=feed)]
    return c


class Bench:
    """One process and samples of it."""

    def __init__(self, setup):
        self.s, self.nth = setup, 0
        self.client = Client(livenet.Process(config(setup)))

    def close(self):
        self.client.close()

    def impair(self, loss):
        """Delay always; the drops are other ones each time."""
        self.nth += 1
        for i, end in enumerate("ab"):
            rules = [{"action": "drop", "probability": loss}]
            if self.s.delay:
                rules.append({"action": "delay", "delay_us": self.s.delay})
            self.client.rpc("impair_set", port=end, impair={
                "seed": (self.s.seed << 16) + 2 * self.nth + i, "rules": rules})

    def counters(self):
        stats = self.client.rpc("stats", scope="total")
        return stats.get("counters", stats)

    def lost(self):
        return sum(self.client.rpc("impair_get", port=end)["counters"]["dropped"] for end in "ab")

    def waited(self):
        """Nanoseconds that the workers stood in line for a CPU, so far."""
        pid, total = self.client.process.proc.pid, 0
        for tid in os.listdir("/proc/%d/task" % pid):
            with open("/proc/%d/task/%s/comm" % (pid, tid), encoding="ascii") as f:
                if not f.read().startswith(("rte-worker", "lcore-worker")):
                    continue
            with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as f:
                total += int(f.read().split()[1])
        return total

    def sample(self, loss):
        self.impair(loss)
        time.sleep(self.s.ms / 1000 / 4)        # what was under way before has ended
        lost, waited, worked, before, start = (self.lost(), self.waited(), busy(),
                                               self.counters(), time.monotonic())
        while True:     # on a machine with much else to do a sample takes longer
            time.sleep(self.s.ms / 1000)
            after, end = self.counters(), time.monotonic()
            if (after["req_message_bytes"] != before["req_message_bytes"] or
                    end - start > STILL_S or after["req_cqe_error"] != before["req_cqe_error"]):
                break
        worked = busy() - worked
        waited, lost = self.waited() - waited, self.lost() - lost
        diff = {k: after[k] - before[k] for k in COUNTERS + ("req_cqe_error",
                                                             "req_message_bytes")}
        if diff["req_cqe_error"]:
            raise Failed("%s, loss %g: a queue pair has failed: %r" % (self.s.op, loss, diff))
        return Sample(end - start, diff["req_message_bytes"], lost,
                      waited / 1e9 / (end - start) / self.s.workers,
                      max(worked / (end - start) - self.s.workers, 0), diff)

    def undisturbed(self, loss):
        for _ in range(1 + self.s.again):
            sample = self.sample(loss)
            if not sample.disturbed:
                break
        if sample.bytes == 0:
            raise Failed("%s, loss %g: all stand still: %r" % (self.s.op, loss, sample.counters))
        return sample

    def round_trip(self):
        """Seconds, without losses, of a message: from its post to its completion."""
        goodput = statistics.median(self.undisturbed(0).goodput for _ in range(3))
        return self.s.qps * DEPTH * self.s.size / goodput

    def going_back(self, loss, goodput):
        """The most that can be reached by sending again all that was on the link behind a lost
        packet: what a round trip holds."""
        return 1 / (1 + loss * goodput / self.s.mtu * 2 * self.s.delay / 1e6)

    def measure(self, losses, pairs):
        """For each rate: one row."""
        rows = []
        seen = {loss: [] for loss in losses}
        for _ in range(pairs):
            for loss in losses:
                seen[loss].append((self.undisturbed(0), self.undisturbed(loss)))
        for loss in losses:
            lossy = [b for _, b in seen[loss]]
            gib = sum(b.bytes for b in lossy) / 2**30
            rows.append({
                "op": self.s.op, "qps": self.s.qps, "loss": loss, "pairs": pairs,
                "timeout": self.s.timeout,
                "lossless_mb_s": round(statistics.median(
                    a.goodput for a, _ in seen[loss]) / 1e6, 1),
                "mb_s": round(statistics.median(b.goodput for b in lossy) / 1e6, 1),
                "fraction": round(statistics.median(
                    b.goodput / a.goodput for a, b in seen[loss]), 4),
                "fractions": [round(b.goodput / a.goodput, 4) for a, b in seen[loss]],
                "going_back": round(self.going_back(loss, statistics.median(
                    a.goodput for a, _ in seen[loss])), 3),
                "lost": sum(b.lost for b in lossy),
                "waited": round(max(x.waited for pair in seen[loss] for x in pair), 3),
                "disturbed": sum(x.disturbed for pair in seen[loss] for x in pair),
                "gib": round(gib, 3),
                **{c: sum(b.counters[c] for b in lossy) for c in COUNTERS}})
        return rows


def show(row):
    print("%-6s %3d  %5g %%  %9.1f  %9.1f  %6.3f  %10.3f   lost %d, resent %d (%.1f for one lost), "
          "timeouts %d, sequence NAKs %d, implied NAKs %d%s" % (
              row["op"], row["qps"], row["loss"] * 100, row["lossless_mb_s"], row["mb_s"],
              row["fraction"], row["going_back"], row["lost"], row["req_resent_pkts"],
              row["req_resent_pkts"] / max(row["lost"], 1), row["local_ack_timeout_err"],
              row["packet_seq_err"], row["implied_nak_seq_err"],
              "" if row["disturbed"] == 0 else
              "  (%d of %d samples were disturbed)" % (row["disturbed"], 2 * row["pairs"])))
    sys.stdout.flush()


def choose_timeout(setup, tell):
    bench = Bench(setup)
    try:
        seconds = bench.round_trip()
    finally:
        bench.close()
    setup.timeout = timeout_of(ROUNDS * seconds)
    if tell:
        print("%-6s %3d  lossless round trip %.0f us, so timeout %d: %.0f us" % (
            setup.op, setup.qps, seconds * 1e6, setup.timeout, timeout_s(setup.timeout) * 1e6))


def main():
    p = argparse.ArgumentParser(prog="loss", description="Goodput on a link that loses packets, "
                                "as a fraction of the lossless one.")
    p.add_argument("--op", default="write,send,read", help="operations (write,send,read)")
    p.add_argument("--qps", default="1,4", help="queue pairs (1,4)")
    p.add_argument("--loss", default="0.1,1", help="rates in percent, each way (0.1,1)")
    p.add_argument("--size", type=transfer.size, default=65536, help="bytes of a message (64K)")
    p.add_argument("--pairs", type=int, default=5, help="of samples (5)")
    p.add_argument("--delay", type=int, default=5, help="microseconds, each way (5)")
    p.add_argument("--timeout", type=int, help="ibv_qp_attr.timeout; tmr.min_timeout is set to it "
                   "where it is less (the least one of %d lossless round trips, which are measured "
                   "first, with all messages in flight)" % ROUNDS)
    p.add_argument("--window", type=int, help="cc.window (the program's default)")
    p.add_argument("--mtu", type=int, default=4096, help="path MTU (4096)")
    p.add_argument("--workers", type=int, default=1, help="1: one core has both ends (1)")
    p.add_argument("--ms", type=int, default=150, help="length of a sample (150)")
    p.add_argument("--seed", type=int, default=1, help="of the losses (1)")
    p.add_argument("--again", type=int, default=AGAIN_MAX, help="times that a sample which others "
                   "on the machine have disturbed is taken again, at most (%d)" % AGAIN_MAX)
    p.add_argument("--read-gap", choices=("restart", "fill", "keep"), default="restart",
                   help="req.read_gap (restart)")
    p.add_argument("--gap", choices=("restart", "patch"), default="restart",
                   help="patch: req.gap patch, and resp.gap keep (restart)")
    p.add_argument("--probe", choices=("lossy", "always"), default="lossy",
                   help="req.probe (lossy)")
    p.add_argument("--json", metavar="FILE", help="write the rows there, too (-: only them, here)")
    a = p.parse_args()
    rows = []
    if a.json != "-":
        print("messages of %d bytes, path MTU %d, round trip of the link %d us, timeout %s, "
              "window %s, %d worker%s, medians of %d pairs\n"
              "op     QPs     loss   lossless   goodput  fraction  going back   (MB/s)" % (
                  a.size, a.mtu, 2 * a.delay, "as below" if a.timeout is None else a.timeout,
                  a.window or "by default", a.workers,
                  "s" if a.workers > 1 else "", a.pairs))
    for op in a.op.split(","):
        for qps in a.qps.split(","):
            setup = Setup(op, int(qps), a.size, a.mtu, a.delay, a.timeout, a.window,
                          a.workers, a.ms, a.seed, a.again, a.read_gap, a.gap, a.probe)
            if a.timeout is None:
                choose_timeout(setup, a.json != "-")
            bench = Bench(setup)
            try:
                for row in bench.measure([float(x) / 100 for x in a.loss.split(",")], a.pairs):
                    rows.append(row)
                    if a.json != "-":
                        show(row)
            finally:
                bench.close()
    if a.json:
        out = {"size": a.size, "mtu": a.mtu, "delay_us": a.delay, "window": a.window,
               "workers": a.workers, "rows": rows}
        with sys.stdout if a.json == "-" else open(a.json, "w", encoding="utf-8") as f:
            json.dump(out, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    try:
        main()
    except Failed as e:
        sys.exit("loss: %s" % e)
