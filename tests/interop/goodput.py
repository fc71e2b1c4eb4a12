#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Goodput on a wire that loses frames: the kernel's Soft-RoCE with itself, and with rocelane.

Called by scripts/bench/kernel, which says what it prints.
"""
import argparse
import itertools
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("realtime", "pylib", "interop"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import bench  # noqa: E402
import run  # noqa: E402
from ends import LINUX, READ, WRITE, End, Link  # noqa: E402
from guest import Guest  # noqa: E402
from wire import SecondGuest, Wire  # noqa: E402

SIZE, DEPTH, MTU, TIMEOUT = 65536, 12, 4096, 14
MAC, IP, IP6 = "02:00:00:77:00:03", "10.77.0.3", "fd77::3"     # of the second guest


@dataclass
class Row:
    """Who asks and who answers, with which knobs of ours."""
    asks: str
    answers: str
    of_a: dict = None
    of_b: dict = None


KERNEL, OURS = "kernel", "ours"
ROWS = (Row(KERNEL, KERNEL), Row(KERNEL, OURS),
        Row(KERNEL, OURS, of_b={"knobs": {"resp.gap": "keep"}}), Row(OURS, KERNEL),
        Row(OURS, KERNEL, of_a={"knobs": {"req.gap": "patch", "req.read_gap": "keep"}}))


class TwoGuests:
    """The kernel with itself. One guest takes the host's place at the wire."""

    def __init__(self, image):
        self.folder = tempfile.TemporaryDirectory(prefix="rocelane-kernels-")
        self.guests = []
        second = SecondGuest()
        self.wire = Wire(second)
        try:
            for sock, mac, ip, ip6 in ((self.wire.guest_end, bench.GUEST_MAC, bench.GUEST_IP,
                                        bench.GUEST_IP6),
                                       (second.guest_end, MAC, IP, IP6)):
                folder = os.path.join(self.folder.name, str(len(self.guests)))
                os.mkdir(folder)
                self.guests.append(Guest(image, sock, folder, {
                    "mac": mac, "mtu": bench.IF_MTU, "ip": ip + "/24", "ip6": ip6 + "/64"}))
            second.guest_end.close()
            self.wire.start()
            for guest in self.guests:
                guest.wait_ready()
            self.ends = {KERNEL: End(LINUX, self.guests[0].rpc, bench.GUEST_IP, bench.GUEST_IP6, 1,
                                     self.moved),
                         "other": End(LINUX, self.guests[1].rpc, IP, IP6, 2, self.moved)}
        except BaseException:
            self.close()
            raise

    def moved(self):
        return self.wire.carried

    def link(self, row, **attrs):
        return Link(self.ends[KERNEL], self.ends["other"], of_a=row.of_a, of_b=row.of_b, **attrs)

    def close(self):
        for guest in self.guests:
            guest.close()
        self.wire.stop()
        self.folder.cleanup()


class WithOurs(bench.Bench):
    """rocelane and a guest."""

    def link(self, row, **attrs):
        ends = {OURS: self.host, KERNEL: self.linux}
        return Link(ends[row.asks], ends[row.answers], of_a=row.of_a, of_b=row.of_b, **attrs)


def faults_of(link):
    """Words about memory that is not as it should be."""
    return [f for side in (link.a, link.b) for f in side.end.memory_faults()]


def sample(place, link, op, loss, seconds, seed):
    """MB/s with so many frames lost, each way."""
    spent = done = 0
    place.wire.clear()
    if loss:
        place.wire.rule("drop", None, chance=loss, count=-1, seed=seed)
    while spent < seconds:
        requests = [link.request(op, SIZE) for _ in range(DEPTH)]
        began = time.monotonic()
        link.run(requests)
        spent += time.monotonic() - began
        done += SIZE * len(requests)
    place.wire.calm()
    return done / spent / 1e6


def measure(place, row, op, args, seeds):
    """One line of the table."""
    seen, bad = [], 0
    link = place.link(row, path_mtu=MTU, timeout=TIMEOUT)
    try:
        for _ in range(args.pairs):
            seen.append([sample(place, link, op, loss, args.seconds, next(seeds))
                         for loss in (0, args.loss / 100)])
            bad += len(faults_of(link))
    finally:
        link.close()
    # The kernel's READs (6.1) may complete without their data where answers are lost: test_loss.py.
    if bad and not (op == READ and row.asks == KERNEL):
        raise AssertionError("%s: %d regions are not as they should be" % (row, bad))
    return {"asks": row.asks, "answers": row.answers, "op": op,
            "knobs": dict((row.of_a or {}).get("knobs", {}), **(row.of_b or {}).get("knobs", {})),
            "mb_s": round(statistics.median(a for a, _ in seen), 1),
            "lossy_mb_s": round(statistics.median(b for _, b in seen), 1),
            "fraction": round(statistics.median(b / a for a, b in seen), 3), "wrong": bad}


def show(r):
    print("%-7s %-7s %-10s  %8.1f  %8.1f  %8.3f   %s%s" % (
        r["asks"], r["answers"], r["op"], r["mb_s"], r["lossy_mb_s"], r["fraction"],
        ", ".join("%s: %s" % kv for kv in r["knobs"].items()),
        "" if not r["wrong"] else "  (READs of the kernel's without data: %d)" % r["wrong"]),
        flush=True)


def main():
    p = argparse.ArgumentParser(prog="kernel", description="Goodput on a wire that loses frames, "
                                "beside what the kernel has with itself.")
    p.add_argument("--loss", type=float, default=1, help="percent, each way (1)")
    p.add_argument("--pairs", type=int, default=4, help="of samples, without and with losses (4)")
    p.add_argument("--seconds", type=float, default=2, help="length of a sample (2)")
    p.add_argument("--seed", type=int, default=1, help="of the losses (1)")
    p.add_argument("--json", metavar="FILE", help="write the rows there, too")
    args = p.parse_args()
    image = run.prepare()
    seeds, rows = itertools.count(args.seed << 16), []
    print("messages of %d bytes, %d at a time, path MTU %d, timeout %d, %g %% lost, %d pairs\n"
          "asks    answers op             MB/s     lossy  fraction" % (
              SIZE, DEPTH, MTU, TIMEOUT, args.loss, args.pairs), flush=True)
    for kind, its in itertools.groupby(
            ROWS, lambda r: TwoGuests if OURS not in (r.asks, r.answers) else WithOurs):
        place = kind(image)
        try:
            for row, op in itertools.product(its, (WRITE, READ)):
                rows.append(measure(place, row, op, args, seeds))
                show(rows[-1])
        finally:
            place.close()
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)
            f.write("\n")


if __name__ == "__main__":
    main()
