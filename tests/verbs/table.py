#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""One perftest over rocelane, rocelane-perf and Linux's Soft-RoCE, in turn: scripts/bench/verbs."""
import argparse
import json
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

LATEST = 300    # seconds for one test
ROW = re.compile(r"^ *\d+ +\d+ +[\d.].*$", re.M)
GOALS = {8: ("mps", 5e6, "M WRITEs of 8 bytes a second", 1e6),
         1 << 20: ("MB", 8000, "GB/s of WRITEs of 1 MiB", 1e3)}
CQ_MOD = 100    # perftest asks for one completion in so many messages
P50_GOAL = 4        # us, of ib_write_lat at 2 bytes
RATIO_GOAL = 0.9
CPUS = os.sched_getaffinity(0)
CPUS_ENOUGH = 3     # for a worker and both ends, each of which spins


def parse_args():
    p = argparse.ArgumentParser(prog="scripts/bench/verbs")
    p.add_argument("--tests", default="write_bw,send_bw,read_bw,write_lat,send_lat")
    p.add_argument("--sizes", default="2,8,64,512,4096,65536,1048576,8388608")
    p.add_argument("--qps", default="1,16")
    p.add_argument("--rounds", type=int, default=3)
    p.add_argument("--ms", type=int, default=300, help="of each test, about")
    p.add_argument("--pin", action="store_true")
    p.add_argument("--guest", action="store_true", help="Soft-RoCE in the guest of tests/interop")
    p.add_argument("--host", metavar="DEVICE", help="Soft-RoCE of this machine's kernel")
    p.add_argument("--json")
    return p.parse_args()


def iterations(test, size, ms, slower=1):
    """Of a rehearsal: enough for the time, were it 2 GB or 100,000 messages a second."""
    if test.endswith("_lat"):
        return max(100, min(2000, (64 << 20) // size) // slower)
    return max(20, min(int(1e5 * ms / 1000), int(2e9 * ms / 1000 / size)) // slower)


def rate(test, got):
    """Messages a second: those of a latency test but READ's go there and back."""
    if test.endswith("_lat"):
        return 1e6 / got["p50"] / (1 if test.startswith(("read", "atomic")) else 2)
    return got["mps"]


def of_each(n, qps):
    """@return messages of a queue pair. Perftest 4.5 counts the last completion of each as CQ_MOD,
    and may have counted all before it has polled what others wait for: hence a multiple."""
    n = max(5, n // qps)
    return n if n < CQ_MOD else n // CQ_MOD * CQ_MOD


def figure(test, row):
    """Rate in messages a second and MB/s; or microseconds at the median and the 99th."""
    if test.endswith("_lat"):
        return {"p50": float(row[4]), "p99": float(row[7])}
    mb = float(row[3]) * 1048576 / 1e6
    return {"mps": mb * 1e6 / int(row[0]), "MB": mb}


# ---- where it runs -------------------------------------------------------------------------------

def workers():
    """Threads of the dataplane's workers."""
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(os.environ["ROCELANE_SOCKET"])
        pid = struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    found = []
    for tid in os.listdir(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{tid}/comm", encoding="ascii") as f:
                if f.read().startswith("rte-worker"):
                    found.append(int(tid))
        except FileNotFoundError:    # of the connection that asked
            pass
    return found


def apart(args, test):
    """Are the ends on CPU 0, and the worker on CPU 1?"""
    return {0, 1} <= CPUS and (
        args.pin or (test.endswith("_lat") and len(CPUS) < CPUS_ENOUGH))


def distance():
    """Cycles in which a line goes from CPU 0 to 1 and back: a virtual machine changes them."""
    p = subprocess.run([os.environ["BENCH_DISTANCE"], "0", "1"], stdout=subprocess.PIPE, check=True)
    return json.loads(p.stdout)["cycles"]


# ---- who is measured -----------------------------------------------------------------------------

def perftest(test):
    """It notes the time of each message for the peak, unless told otherwise or there are many."""
    return [shutil.which(f"ib_{test}"), *(["-N"] if test.endswith("_bw") else [])]


class Here:
    """Two processes of this machine, each at its device."""

    slower = 1

    def __init__(self, name, program, devices, args, env=None):
        self.name, self.program, self.devices, self.env = name, program, devices, env
        self.args = args

    @staticmethod
    def listens(port):
        want = f":{port:04X}"
        for path in ("/proc/net/tcp", "/proc/net/tcp6"):
            with open(path, encoding="ascii") as f:
                if any(r.split()[1].endswith(want) and r.split()[3] == "0A"
                       for r in f.readlines()[1:]):
                    return True
        return False

    def play(self, test, size, options):
        """What the end that asks printed."""
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        at = ["taskset", "-c", "0"] if apart(self.args, test) else []
        args = [*at, *self.program(test), *options, "-p", str(port)]
        server = subprocess.Popen([*args, "-d", self.devices[0]], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=self.env)
        end = time.monotonic() + LATEST
        while not self.listens(port) and server.poll() is None and time.monotonic() < end:
            time.sleep(0.005)
        try:
            run = subprocess.run([*args, "-d", self.devices[1], "127.0.0.1"], text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=self.env,
                                 timeout=LATEST, check=False)
            server.wait(timeout=LATEST)
        finally:
            server.kill()
            server.wait()
        return run.returncode, run.stdout


class InGuest:
    """Two processes of the guest, at its one device. It has one processor, which is emulated unless
    INTEROP_ACCEL says otherwise."""

    name, slower = "Soft-RoCE, guest", 20

    def __init__(self):
        tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
        sys.path[:0] = [os.path.join(tests, d) for d in ("realtime", "pylib", "interop")]
        import guest
        import image
        self.tmp = tempfile.TemporaryDirectory(prefix="rocelane-table-")
        self.wire = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.guest = guest.Guest(image.build()[:2], self.wire[0], self.tmp.name, {
            "mac": "02:00:00:77:00:02", "mtu": 4200, "ip": "10.77.0.2/24", "ip6": "fd77::2/64"})
        self.guest.wait_ready()
        self.port = 20000

    def about(self):
        how = os.environ.get("INTEROP_ACCEL", "tcg")
        return (f"Soft-RoCE: Linux {self.guest.kernel} in QEMU ("
                f"{'software emulation: no measure of real machines' if how == 'tcg' else how}), "
                "both ends and the driver on one virtual CPU")

    def play(self, test, _size, options):
        self.port += 1
        args = [f"ib_{test}", *perftest(test)[1:], "-d", "rxe0", "-p", str(self.port),
                "-u", "19", *options]
        if test.startswith(("read", "atomic")):
            args += ["-o", "16"]
        serves = self.guest.start(args, log="serves")
        end = time.monotonic() + LATEST
        while time.monotonic() < end and f":{self.port:04X} " not in self.guest.wait(
                self.guest.start(["cat", "/proc/net/tcp6", "/proc/net/tcp"], log="told"),
                log="told")[1]:
            pass
        done = self.guest.wait(self.guest.start([*args, "127.0.0.1"], log="asks"), LATEST,
                               log="asks")
        stop = {"signal": signal.SIGKILL} if done[0] != 0 else {}
        self.guest.wait(serves, 1 if stop else LATEST, log="serves", **stop)
        return done

    def close(self):
        self.guest.close()
        for s in self.wire:
            s.close()


def systems(args):
    mine = ("rocelane0", "rocelane1")
    found = [Here("perftest", perftest, mine, args),
             Here("rocelane-perf", lambda test: [os.environ["ROCELANE_PERF"], test], mine,
                  args)]
    if args.host:
        # As if rocelane-run were not there.
        env = {k: v for k, v in os.environ.items()
               if k not in ("LD_PRELOAD", "LD_LIBRARY_PATH") and not k.startswith("ROCELANE")}
        found.append(Here("Soft-RoCE, host", perftest, (args.host, args.host), args, env))
    if args.guest:
        found.append(InGuest())
        print(found[-1].about())
    return found


# ---- the table -----------------------------------------------------------------------------------

def played(who, test, size, qps, n):
    """The figures of one run."""
    options = ["-s", str(size), "-n", str(of_each(n, qps)), "-F"]
    if test.endswith("_bw"):
        options += ["-q", str(qps)]
    code, out = who.play(test, size, options)
    rows = ROW.findall(out)
    if code != 0 or not rows:
        sys.exit(f"{who.name}: {test} {' '.join(options)}: exit status {code}\n{out}")
    return figure(test, rows[-1].split())


def rehearsed(args, who, test, size, qps):
    """How many messages take the time. A run of two milliseconds would be that of its start, and of
    whatever else the machine did meanwhile."""
    least = iterations(test, size, args.ms, who.slower)
    got = played(who, test, size, qps, least)
    return max(least, int(rate(test, got) * args.ms / 1000))


def measure(args, who, test, size, qps):
    """{name: median figures}"""
    seen = {s.name: [] for s in who}
    n = {s.name: rehearsed(args, s, test, size, qps) for s in who}
    for turn in range(args.rounds):
        for s in who if turn % 2 == 0 else who[::-1]:
            seen[s.name].append(played(s, test, size, qps, n[s.name]))
    return {name: {k: statistics.median(f[k] for f in v) for k in v[0]}
            for name, v in seen.items()}


def show(test, size, qps, got, cycles):
    """A row. @return how good perftest is beside rocelane-perf."""
    far = f"   {min(cycles):.0f}..{max(cycles):.0f}" if cycles else ""
    if test.endswith("_lat"):
        text = "   ".join(f"{f['p50']:9.2f} {f['p99']:10.2f}" for f in got.values())
        ratio = got["rocelane-perf"]["p50"] / got["perftest"]["p50"]
    else:
        text = "   ".join(f"{f['mps']:9.0f} {f['MB']:10.1f}" for f in got.values())
        ratio = got["perftest"]["MB"] / got["rocelane-perf"]["MB"]
    print(f"{test:10} {size:8} {qps:3}   {text}   {ratio:5.2f}{far}", flush=True)
    return ratio


def goals(rows):
    """Issue by issue what was wanted, and what perftest had."""
    low = [r for r in rows if r["ratio"] < RATIO_GOAL]
    print(f"\nperftest as good as rocelane-perf (goal {RATIO_GOAL}): "
          f"{len(rows) - len(low)} of {len(rows)} rows; lowest {min(r['ratio'] for r in rows):.2f}")
    for size, (key, goal, text, unit) in GOALS.items():
        best = [r["perftest"][key] for r in rows if (r["test"], r["size"]) == ("write_bw", size)]
        if best:
            print(f"{max(best) / unit:.2f} {text} (goal {goal / unit:g})")
    for r in rows:
        if (r["test"], r["size"]) == ("write_lat", 2):
            print(f"{r['perftest']['p50']:.2f} us of ib_write_lat at the median (goal {P50_GOAL})")


def main():
    args = parse_args()
    if args.pin:
        os.sched_setaffinity(0, {0})
    who = systems(args)
    print(" " * 26 + "".join(f"{s.name:23}" for s in who) + "perftest as good\n"
          "test           size  qp   " + "msg/s|p50us  MB/s|p99us " * len(who) +
          ("         distance" if args.pin else ""))
    rows = []
    try:
        for test in args.tests.split(","):
            for qps in [1] if test.endswith("_lat") else map(int, args.qps.split(",")):
                for size in map(int, args.sizes.split(",")):
                    for tid in workers():
                        os.sched_setaffinity(tid, {1} if apart(args, test) else CPUS)
                    cycles = [distance()] if args.pin else []
                    got = measure(args, who, test, size, qps)
                    cycles += [distance()] if args.pin else []
                    rows.append({"test": test, "size": size, "qps": qps, **got, "cycles": cycles,
                                 "ratio": show(test, size, qps, got, cycles)})
    finally:
        for s in who:
            if isinstance(s, InGuest):
                s.close()
    goals(rows)
    if args.json:
        with open(args.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


main()
