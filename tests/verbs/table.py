#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""perftest and rocelane-perf in turn, between rocelane0 and rocelane1: scripts/bench/verbs."""
import argparse
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import time

LATEST = 120    # seconds for one test
ROW = re.compile(r"^ *\d+ +\d+ +[\d.].*$", re.M)


def parse_args():
    p = argparse.ArgumentParser(prog="scripts/bench/verbs")
    p.add_argument("--tests", default="write_bw,send_bw,read_bw,write_lat,send_lat")
    p.add_argument("--sizes", default="2,64,4096,65536,1048576,8388608")
    p.add_argument("--qps", default="1,16")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=int, default=300, help="of each bandwidth test, about")
    p.add_argument("--pin", action="store_true")
    p.add_argument("--json")
    return p.parse_args()


def listens(port):
    want = f":{port:04X}"
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path, encoding="ascii") as f:
            if any(r.split()[1].endswith(want) and r.split()[3] == "0A"
                   for r in f.readlines()[1:]):
                return True
    return False


def pair(program, options, pin):
    """What the end that asks printed."""
    with socket.socket() as s:
        s.bind(("", 0))
        port = s.getsockname()[1]
    at = ["taskset", "-c", "0"] if pin else []
    args = [*at, *program, *options, "-p", str(port)]
    server = subprocess.Popen([*args, "-d", "rocelane0"], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL)
    end = time.monotonic() + LATEST
    while not listens(port) and server.poll() is None and time.monotonic() < end:
        time.sleep(0.005)
    try:
        run = subprocess.run([*args, "-d", "rocelane1", "127.0.0.1"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, timeout=LATEST, check=False)
        server.wait(timeout=LATEST)
    finally:
        server.kill()
        server.wait()
    rows = ROW.findall(run.stdout)
    if run.returncode != 0 or not rows:
        sys.exit(f"{' '.join(args)}: exit status {run.returncode}\n{run.stdout}")
    return rows[-1].split()


def figure(test, row):
    """Rate in messages a second and MB/s; or microseconds at the median and the 99th."""
    if test.endswith("_lat"):
        return {"p50": float(row[4]), "p99": float(row[7])}
    mb = float(row[3]) * 1048576 / 1e6
    return {"mps": mb * 1e6 / int(row[0]), "MB": mb}


def iterations(test, size, ms):
    """Enough for the time, were it 2 GB or 100,000 messages a second."""
    if test.endswith("_lat"):
        return max(200, min(2000, (64 << 20) // size))
    return max(20, min(int(1e5 * ms / 1000), int(2e9 * ms / 1000 / size)))


def measure(args, test, size, qps):
    """{program: median figures}"""
    n = max(5, iterations(test, size, args.ms) // qps)
    options = ["-s", str(size), "-n", str(n), "-F"]
    if test.endswith("_bw"):
        options += ["-q", str(qps)]
    programs = {"perftest": [shutil.which(f"ib_{test}")],
                "rocelane-perf": [os.environ["ROCELANE_PERF"], test]}
    seen = {name: [] for name in programs}
    for turn in range(args.rounds):
        order = list(programs.items())
        for name, program in order if turn % 2 == 0 else order[::-1]:
            seen[name].append(figure(test, pair(program, options, args.pin)))
    return {name: {k: statistics.median(f[k] for f in v) for k in v[0]}
            for name, v in seen.items()}


def show(test, size, qps, got):
    a, b = got["perftest"], got["rocelane-perf"]
    if test.endswith("_lat"):
        text = f"{a['p50']:9.2f} {a['p99']:10.2f}   {b['p50']:9.2f} {b['p99']:10.2f}"
        ratio = b["p50"] / a["p50"]
    else:
        text = f"{a['mps']:9.0f} {a['MB']:10.1f}   {b['mps']:9.0f} {b['MB']:10.1f}"
        ratio = a["MB"] / b["MB"]
    print(f"{test:10} {size:8} {qps:3}   {text}   {ratio:5.2f}", flush=True)
    return ratio


def main():
    args = parse_args()
    rows = []
    if args.pin:
        os.sched_setaffinity(0, {0})
    print("                           perftest               rocelane-perf         as good as\n"
          "test           size  qp   msg/s|p50us  MB/s|p99us   msg/s|p50us  MB/s|p99us")
    for test in args.tests.split(","):
        for qps in [1] if test.endswith("_lat") else [int(q) for q in args.qps.split(",")]:
            for size in (int(s) for s in args.sizes.split(",")):
                got = measure(args, test, size, qps)
                rows.append({"test": test, "size": size, "qps": qps, **got,
                             "ratio": show(test, size, qps, got)})
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


main()
