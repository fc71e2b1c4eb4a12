# SPDX-License-Identifier: BSD-3-Clause
"""Connections in a running process, beside many queue pairs and one that WRITEs."""
import argparse
import json
import os
import subprocess
import sys
import time

import jsonrpc
import livenet

LEFT, RIGHT, FAR = "10.77.0.1", "10.77.0.2", "10.77.0.9"
WRITER, TARGET, MANY = 0x20, 0x40, 0x100100
MANY_LEFT_QPN = 0x300000
SERVICE = 4791
TEMPLATE = {"qp_type": "RC", "pd": "pd0", "send_cq": "cq0", "recv_cq": "cq0"}
LEFT_S = 10                     # for those that are not answered
CALM_S = 1.0                    # of WRITEs alone, before and after a row


def qp(number, port, peer, **more):
    return {"qp_num": number, "qp_type": "RC", "port": port, "pd": "pd0", "send_cq": "cq0",
            "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": 4096, "timeout": 14, "rq_psn": 0,
            "sq_psn": 0, "ah_attr": peer, "qp_access_flags": ["REMOTE_WRITE"], **more}


def config(qps):
    most = {"qps": 16384, "cm_ids": 16384, "cm_pending": 256, "channels": 16}
    made = {
        "version": 1,
        "eal": ["--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
                "--log-level=error"],
        "lcores": {"control": 0, "workers": [1], "idle": "poll"},
        "control": {"client_limits": {**most, "memory": "4G", "private_memory": "1G",
                                      "user": {**most, "cm_ids": 32768, "qps": 32768}}},
        "knobs": {"path.local": "wire"},
        "cm": {"connections": 65536, "half_open": 1024, "reqs": 1000000,
               "listen": [{"name": "l0", "port": "right", "service_port": SERVICE,
                           "accept": "always", "qp": TEMPLATE}]},
        "ports": [{"name": name, "device": "net_pair0" + "ab"[i], "prefix": 24, "mtu": 4200,
                   "mac": "02:00:00:00:00:%02x" % (i + 1), "ipv4": (LEFT, RIGHT)[i]}
                  for i, name in enumerate(("left", "right"))],
        "pds": ["pd0"], "cqs": [{"name": "cq0"}],
        "mrs": [{"name": "mr0", "pd": "pd0", "length": "4K", "addr": "0x10000", "rkey": "0x1001",
                 "access": ["LOCAL_WRITE", "REMOTE_WRITE"]}],
        "qps": [
            qp(WRITER, "left", {"dest_ip": RIGHT}, dest_qp_num=TARGET,
               send_feed={"opcode": "RDMA_WRITE", "size": 64, "depth": 64, "rkey": "0x1001",
                          "remote_addr": "0x10000"}),
            qp(TARGET, "right", {"dest_ip": LEFT}, dest_qp_num=WRITER)],
    }
    if qps:
        far = {"dest_ip": FAR, "dest_mac": "02:00:00:00:00:09"}
        made["qps"].append(qp(MANY, "left", far, dest_qp_num=MANY_LEFT_QPN, count=qps))
    return made


class Bench:

    def __init__(self, qps, realtime=False):
        self.process = livenet.Process(config(qps))
        os.sched_setaffinity(0, {0})    # ours and the clients': the other CPU is the worker's
        if realtime:
            for who in (0, self.process.proc.pid):      # the latter is its control thread
                os.sched_setscheduler(who, os.SCHED_FIFO, os.sched_param(50))
        self.conn = jsonrpc.Connection(self.process.socket_path)

    def close(self):
        os.sched_setaffinity(0, range(os.cpu_count()))
        self.conn.close()
        code = self.process.stop()
        text = self.process.stderr()
        self.process.close()
        if code != 0:
            sys.exit("cm: exit code %d\n%s" % (code, text[-4000:]))

    def writes(self):
        """(time, messages) of the writer."""
        stats = self.conn.call("stats", qp_num=TARGET)
        return time.monotonic(), stats.get("counters", stats)["rx_write_requests"]

    @staticmethod
    def rate(a, b):
        return (b[1] - a[1]) / (b[0] - a[0])

    def calm(self):
        before = self.writes()
        time.sleep(CALM_S)
        return self.rate(before, self.writes())

    def memory(self):
        with open("/proc/%d/status" % self.process.proc.pid, encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) / 1024

    def applications(self, seconds, window, rate):
        """Two, by librocelane: what it has printed, and the rate of WRITEs meanwhile."""
        with subprocess.Popen([os.environ["BENCH_CM"], self.process.socket_path, RIGHT,
                               str(seconds), str(window), str(rate)], stdout=subprocess.PIPE,
                              text=True) as client:
            time.sleep(seconds * 0.1)
            before = self.writes()
            time.sleep(seconds * 0.8)
            beside = self.rate(before, self.writes())
            out = client.communicate()[0]
        if client.returncode != 0:
            sys.exit("cm: the client has failed\n" + self.process.stderr()[-4000:])
        return json.loads(out), beside

    def templates(self, seconds, window, rate):
        """The same by the dataplane itself, whose queue pairs are made from templates."""
        made = Templates(jsonrpc.Connection(self.process.socket_path))
        before = self.writes()
        figures = made.run(seconds, window, rate)
        return figures, self.rate(before, self.writes())

    def row(self, how, seconds, window, rate):
        calm = self.calm()
        made, beside = getattr(self, how)(seconds, window, rate)
        calm = (calm + self.calm()) / 2
        return {**made, "a_second": made["good"] / made["seconds"], "writes": beside,
                "writes_alone": calm, "kept": beside / calm}


class Templates:
    """Connections that an operator asks for, in batches."""

    def __init__(self, conn):
        self.conn = conn
        self.under_way, self.up = {}, {}        # id: when it was asked for, and when to end
        self.begun = self.failed = 0
        self.times = {"connect": [], "teardown": []}

    def ask(self, calls):
        calls = list(calls)
        for method, params in calls:
            self.conn.send(method, params)
        return [json.loads(self.conn.line()) for _ in calls]

    def begin(self, n):
        call = ("cm_connect", {"port": "left", "dest_ip": RIGHT, "service_port": SERVICE,
                               "qp": TEMPLATE})
        now = time.monotonic()
        self.begun += n
        for reply in self.ask([call] * n):
            self.under_way[reply["result"]["id"]] = now

    def events(self):
        now, ends = time.monotonic(), []
        for e in self.conn.call("cm_events", max=4096):
            ident, kind = e["id"], e["event"]
            if kind == "ESTABLISHED" and ident in self.under_way:
                self.times["connect"].append(now - self.under_way.pop(ident))
                self.up[ident] = now
                ends.append(("cm_disconnect", {"id": ident}))
            elif kind == "DISCONNECTED" and ident in self.up:
                self.times["teardown"].append(now - self.up.pop(ident))
            elif kind != "TIMEWAIT_EXIT" and ident in self.under_way:
                self.under_way.pop(ident)
                self.failed += 1
        self.ask(ends)

    def run(self, seconds, window, rate):
        start = time.monotonic()
        end = start + seconds
        while (now := time.monotonic()) < end or self.under_way or self.up:
            room = window - len(self.under_way) - len(self.up)
            if rate:
                room = min(room, int((now - start) * rate) - self.begun)
            if room > 0 and now < end:
                self.begin(room)
            self.events()
            if now > end + LEFT_S:
                break
        took = time.monotonic() - start
        self.conn.close()
        good = len(self.times["teardown"])
        figures = {"begun": self.begun, "good": good, "failed": self.failed, "seconds": took}
        for name, v in self.times.items():
            v = sorted(1e6 * x for x in v) or [0]
            figures[name] = [v[len(v) // 2], v[len(v) * 99 // 100], v[-1]]
        return {**figures, "setup": figures["connect"]}


def number(text):
    unit = {"K": 1000, "M": 1000000}.get(text[-1:].upper())
    return int(float(text[:-1]) * unit) if unit else int(text, 0)


def main():
    p = argparse.ArgumentParser(prog="cm")
    p.add_argument("--qps", default="0,1M", help="established queue pairs (0,1M)")
    p.add_argument("--seconds", type=float, default=5, help="of a row (5)")
    p.add_argument("--rate", type=number, default=1000, help="connections a second (1000)")
    p.add_argument("--window", type=int, default=32, help="connections under way at a time (32)")
    p.add_argument("--realtime", action="store_true",
                   help="for a busy machine: nobody else has CPU 0 (with nice -n -20, as root)")
    p.add_argument("--json", help="write the rows there, too")
    p.add_argument("rows", nargs="*", help="one, most, own_one, own_steady, own_most")
    a = p.parse_args()
    ways = {"one": ("applications", 1, 0), "most": ("applications", a.window, 0),
            "own_one": ("templates", 1, 0), "own_steady": ("templates", a.window, a.rate),
            "own_most": ("templates", a.window, 0)}
    if set(a.rows) - set(ways):
        p.error("no such row: " + " ".join(sorted(set(a.rows) - set(ways))))
    rows = []
    print("   QPs      RSS row        a second  failed  setup us: p50    p99  connect: p50    p99"
          "  teardown: p50    p99   WRITEs/s   kept")
    for qps in (number(n) for n in a.qps.split(",")):
        began = time.monotonic()
        bench = Bench(qps, a.realtime)
        began = time.monotonic() - began
        try:
            for name in a.rows or ways:
                how, window, rate = ways[name]
                r = bench.row(how, a.seconds, window, rate)
                r.update(name=name, qps=qps, started=began, rss_mib=bench.memory())
                rows.append(r)
                lost = r["begun"] - r["good"]
                print("%7d %5.0f MiB %-10s %8.0f %7d %14.0f %6.0f %13.0f %6.0f %14.0f %6.0f "
                      "%10.0f  %.3f" % (qps, r["rss_mib"], name, r["a_second"], lost,
                                        *r["setup"][:2], *r["connect"][:2], *r["teardown"][:2],
                                        r["writes"], r["kept"]))
                sys.stdout.flush()
        finally:
            bench.close()
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
