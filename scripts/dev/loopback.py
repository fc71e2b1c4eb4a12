#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run config/examples/loopback.json and show, each second, what it does.

Eight queue pairs on one in-memory port ask, eight on the other answer: RDMA WRITE, READ, SEND and
FETCH_ADD. A ninth pair, made here through the control socket, sends random bytes over the same wire
each second and compares them. With --loss both ports lose packets after the first seconds.
"""
import argparse
import errno
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

import piped

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "pylib")]
sys.dont_write_bytecode = True
import jsonrpc  # noqa: E402

EXAMPLE = os.path.join(ROOT, "config", "examples", "loopback.json")
ASKERS = range(32, 40)
SUMS = {38: 0, 39: 8}                 # FETCH_ADD queue pairs: where their sums are
SIZES = {"RDMA_WRITE": 65536, "RDMA_READ": 65536, "SEND": 1024, "ATOMIC": 8}
PROBE, PROBE_PEER, PROBE_LEN = 48, 80, 16384
LATE = (-32000 - errno.ETIMEDOUT, -32000 - errno.EBUSY)  # a worker has not answered
COLUMNS = (("second", 6), ("ops/s", 9), ("Gbit/s", 6), ("Mpps", 5), ("p50 us", 6), ("p99 us", 7),
           ("lost", 6), ("resent", 7), ("seq NAK", 7), ("implied", 7), ("timeout", 7), ("RNR", 4),
           ("data", 6))


class Failed(Exception):
    pass


class Stop:
    """A first signal ends what is under way, in order; a second one does not wait for that.

    Its handler raises nothing as long as nobody knows of the dataplane that was started: between
    any two steps of Popen() that would leave it behind.
    """
    SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def __init__(self):
        self.came = None                # the first signal
        self.daemon = None              # who ends when nobody waits any more
        for sig in self.SIGNALS:
            signal.signal(sig, self.handle)

    def handle(self, sig, _frame):
        if self.came is not None and self.daemon is not None:
            self.daemon.kill()
            self.leave()
        self.came = self.came or sig

    def leave(self):
        sys.exit(128 + self.came)


class Daemon:
    """The dataplane and its control socket."""

    def __init__(self, program, where, stop):
        self.stopping = stop
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        path = os.path.join(where, "sock")
        config["control"]["socket"] = path
        config["eal"].append("--file-prefix=loopback%d" % os.getpid())
        conf = os.path.join(where, "loopback.json")
        with open(conf, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.log = os.path.join(where, "log")
        with open(self.log, "wb") as log:
            self.proc = subprocess.Popen(
                [program, "--log-level=error", "--", "--config", conf], stdout=subprocess.DEVNULL,
                stderr=log, start_new_session=True,
                env=dict(os.environ, XDG_RUNTIME_DIR=where))
        stop.daemon = self.proc
        try:
            self.conn = self.connect(path)
        except BaseException:           # stopped, too: it is in a session of its own
            self.proc.kill()
            self.proc.wait()
            raise

    def connect(self, path):
        end = time.monotonic() + 30
        while time.monotonic() < end and self.proc.poll() is None:
            if self.stopping.came is not None:
                self.stopping.leave()
            try:
                return jsonrpc.Connection(path, 60)
            except OSError:
                time.sleep(0.02)
        raise Failed("the dataplane does not start:\n" + self.said())

    def said(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()

    def rpc(self, method, patience=0, **params):
        """@param patience  seconds for a worker that other programs keep from its core"""
        end = time.monotonic() + patience
        while True:
            try:
                return self.conn.call(method, **params)
            except jsonrpc.RpcError as e:
                if e.code not in LATE or time.monotonic() > end:
                    raise Failed("%s: %s" % (method, e.message)) from None
            except (OSError, ValueError) as e:
                raise Failed("the dataplane is gone (%s):\n%s" % (e, self.said())) from None
            time.sleep(0.2)

    def stop(self):
        """@return its exit status; -SIGKILL: it did not end by itself"""
        if self.proc.poll() is None:
            self.proc.terminate()
        try:
            return self.proc.wait(30)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            return self.proc.wait()


class Probe:
    """A queue pair driven as an application does: its data is compared."""

    def __init__(self, d):
        self.d, self.bytes, self.rounds = d, 0, 0
        for name, addr, rkey in (("near", "0x40000000", "0x2001"), ("far", "0x50000000", "0x2002")):
            d.rpc("mr_register", name=name, pd="pd0", length=4 * PROBE_LEN, addr=addr, rkey=rkey,
                  access=["LOCAL_WRITE", "REMOTE_READ", "REMOTE_WRITE"])
        for name in ("probe_send", "probe_recv"):
            d.rpc("cq_create", name=name, cqe=16)
        for num, peer, port, ip in ((PROBE_PEER, PROBE, "answers", "10.77.0.1"),
                                    (PROBE, PROBE_PEER, "asks", "10.77.0.2")):
            d.rpc("qp_create", qp_num=num, qp_type="RC", port=port, pd="pd0", send_cq="probe_send",
                  recv_cq="probe_recv", qp_state="RTS", path_mtu=1024, timeout=12, rq_psn=0,
                  sq_psn=0, dest_qp_num=peer, ah_attr={"dest_ip": ip},
                  qp_access_flags=["REMOTE_READ", "REMOTE_WRITE"])

    def completions(self, cq, n):
        out, end = [], time.monotonic() + 60
        while len(out) < n:
            out += self.d.rpc("poll_cq", cq=cq, max=n)
            if time.monotonic() > end:
                raise Failed("a request of the probe has not completed in 60 s")
            time.sleep(0.001)
        return out

    def read(self, name, at, length):
        return bytes.fromhex(self.d.rpc("mr_read", name=name, offset=at, length=length)["data"])

    def round(self):
        """WRITE, READ back, SEND of random bytes. @return the word for the table."""
        n, data = PROBE_LEN, os.urandom(PROBE_LEN)
        self.d.rpc("mr_write", name="near", offset=0, data=data.hex())
        self.d.rpc("mr_write", name="far", offset=n, data=bytes(n).hex())
        self.d.rpc("post_recv", qp_num=PROBE_PEER, wrs=[
            {"wr_id": 0, "sg_list": [{"mr": "far", "offset": n, "length": n}]}])
        wr = {"send_flags": ["SIGNALED"], "remote_addr": "0x50000000", "rkey": "0x2002"}
        self.d.rpc("post_send", qp_num=PROBE, wrs=[
            dict(wr, wr_id=1, opcode="RDMA_WRITE",
                 sg_list=[{"mr": "near", "offset": 0, "length": n}]),
            dict(wr, wr_id=2, opcode="RDMA_READ",
                 sg_list=[{"mr": "near", "offset": 2 * n, "length": n}]),
            {"wr_id": 3, "opcode": "SEND", "send_flags": ["SIGNALED"],
             "sg_list": [{"mr": "near", "offset": 0, "length": n}]}])
        got = self.completions("probe_send", 3)
        if all(c["status"] == "SUCCESS" for c in got):      # else nothing comes at the other end
            got += self.completions("probe_recv", 1)
        good = ([(c["wr_id"], c["status"]) for c in got] ==
                [(i, "SUCCESS") for i in (1, 2, 3, 0)])
        for name, at in (("far", 0), ("near", 2 * n), ("far", n)):
            good = good and self.read(name, at, n) == data
        if not good:
            raise Failed("the probe's data is not what was sent: %r" % got)
        self.bytes += 3 * n
        self.rounds += 1
        return "same"


class Sample:
    def __init__(self, d):
        self.at = time.monotonic()
        self.c = d.rpc("stats", scope="total")
        self.lost = sum(p["counters"]["dropped"] for p in d.rpc("impair_get"))
        self.hist = {row["opcode"]: dict(row["buckets"])
                     for row in d.rpc("latency", buckets=True)}

    def latencies(self, before, opcode=None):
        """Buckets of the time between; of all requests, or of one kind."""
        out = {}
        for name, buckets in self.hist.items():
            for ns, n in buckets.items() if opcode in (None, name) else ():
                more = n - (before.hist[name].get(ns, 0) if before else 0)
                out[ns] = out.get(ns, 0) + more
        return out


def quantile(buckets, q):
    """Microseconds as text."""
    left = q * sum(buckets.values())
    for ns in sorted(buckets):
        left -= buckets[ns]
        if left <= 0 and buckets[ns]:
            return "%.0f" % (ns / 1000) if ns >= 10000 else "%.1f" % (ns / 1000)
    return "-"


def row(second, before, now, data):
    def per_s(*names):
        return sum(now.c[n] - before.c[n] for n in names) / (now.at - before.at)

    def moved(name):
        return "%d" % (now.c[name] - before.c[name])
    h = now.latencies(before)
    return (second, "%d" % per_s("req_messages"), "%.2f" % (per_s("req_message_bytes") * 8e-9),
            "%.2f" % (per_s("tx_packets") * 1e-6), quantile(h, 0.5), quantile(h, 0.99),
            "%d" % (now.lost - before.lost), moved("req_resent_pkts"), moved("packet_seq_err"),
            moved("implied_nak_seq_err"), moved("local_ack_timeout_err"),
            moved("rcvd_rnr_err"), data)


def show(cells):
    print("  ".join(c.rjust(w) for c, (_, w) in zip(cells, COLUMNS)), flush=True)


def goodput(before, now):
    return ((now.c["req_message_bytes"] - before.c["req_message_bytes"]) * 8e-9 /
            (now.at - before.at))


def quiesce(d):
    """Nothing new starts, what runs ends. @return {QP: requests completed}"""
    for qp in ASKERS:
        d.rpc("qp_modify", patience=60, qp_num=qp, qp_state="SQD")
    last, end = None, time.monotonic() + 60
    while time.monotonic() < end:
        done = {qp: d.rpc("qp_query", patience=60, qp_num=qp) for qp in ASKERS}
        state = [(q["feed"]["completed"], q["next_psn"], q["last_acked_psn"])
                 for q in done.values()]
        if state == last and all((q["last_acked_psn"] + 1 - q["next_psn"]) & 0xffffff == 0
                                 for q in done.values()):
            return {qp: q["feed"]["completed"] for qp, q in done.items()}
        last = state
        time.sleep(0.02)
    raise Failed("requests under way do not complete")


def check_end(d, probe, end):
    """What must hold once all is quiet; prints it."""
    completed = quiesce(d)
    for qp, at in SUMS.items():
        data = d.rpc("mr_read", name="sums", offset=at, length=8)["data"]
        total = int.from_bytes(bytes.fromhex(data), "little")
        if total != completed[qp]:
            raise Failed("QP %d: %d FETCH_ADDs completed, but the sum is %d" %
                         (qp, completed[qp], total))
    failed = end.c["req_cqe_error"] + end.c["resp_cqe_error"]
    if failed:
        raise Failed("%d completions with an error" % failed)
    print("checked: %d KiB of random data written, read back and sent, all of it the same; "
          "%d FETCH_ADDs\n         completed and their sums in memory are just that; "
          "no request failed" % (probe.bytes >> 10, sum(completed[qp] for qp in SUMS)))


def summary(first, end):
    seconds = end.at - first.at
    print("\n%-12s%12s%10s%9s%9s%9s%9s" % ("", "requests", "ops/s", "Gbit/s", "p50 us", "p99 us",
                                           "p99.9 us"))
    for opcode, size in SIZES.items():
        h = end.latencies(first, opcode)
        n = sum(h.values())
        print("%-12s%12d%10d%9.2f%9s%9s%9s" % (
            opcode, n, n / seconds, n * size * 8e-9 / seconds, quantile(h, 0.5),
            quantile(h, 0.99), quantile(h, 0.999)))
    print()


class Run:
    def __init__(self, args, d, stop):
        self.args, self.d, self.stop = args, d, stop
        self.clean = args.duration
        if args.loss:
            self.clean = max(1, min(3, (args.duration or 10) // 3))

    @property
    def stopped(self):
        return self.stop.came is not None

    def lose(self):
        for seed, port in enumerate(("asks", "answers"), 1):
            self.d.rpc("impair_set", port=port, impair={"seed": seed, "rules": [
                {"action": "drop", "probability": self.args.loss}]})
        print("   --- from here on each port loses %g %% of what it receives ---" %
              (self.args.loss * 100))

    def table(self):
        """@return samples: begin, when the losses began (or None), end"""
        probe = Probe(self.d)
        begin = before = Sample(self.d)
        lossy, second = None, 0
        while not self.stopped and (self.args.duration == 0 or second < self.args.duration):
            if second % 20 == 0:
                show([name for name, _ in COLUMNS])
            if self.args.loss and second == self.clean:
                self.lose()
                lossy = before = Sample(self.d)
            due = before.at + 1
            data = probe.round()
            while not self.stopped and time.monotonic() < due:
                time.sleep(max(0, min(0.1, due - time.monotonic())))
            second += 1
            now = Sample(self.d)
            show(row(str(second), before, now, data))
            before = now
        return probe, begin, lossy, before if second else Sample(self.d)

    def run(self):
        probe, begin, lossy, end = self.table()
        summary(begin, end)
        if lossy and end is not lossy:
            print("goodput with loss: %.0f %% of %.2f Gbit/s" %
                  (100 * goodput(lossy, end) / goodput(begin, lossy), goodput(begin, lossy)))
        check_end(self.d, probe, end)


def loss(text):
    value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    if not 0 <= value <= 0.5:
        raise argparse.ArgumentTypeError("from 0 to 50%%, as 1%% or 0.01, not %s" % text)
    return value


def duration(text):
    value = int(text)
    if value < 0 or value == 1:
        raise argparse.ArgumentTypeError("whole seconds from 2 on, or 0: until interrupted")
    return value


def main():
    ap = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    ap.add_argument("--rocelane", required=True, help="path of the program")
    ap.add_argument("--duration", type=duration, default=10, metavar="SECONDS",
                    help="0: until interrupted (default: %(default)s)")
    ap.add_argument("--loss", type=loss, default=0, metavar="SHARE", help="as 1%% or 0.01")
    args = ap.parse_args()
    stop = Stop()
    with tempfile.TemporaryDirectory(prefix="rocelane-loopback-") as where:
        d = None
        try:
            d = Daemon(args.rocelane, where, stop)
            run = Run(args, d, stop)
            print("requesters on port \"asks\", responders on port \"answers\", one worker core "
                  "for both; config/examples/loopback.json\n")
            run.run()
            status = d.stop()
            if status != 0:
                raise Failed("the dataplane ended with %d:\n%s" % (status, d.said()))
        except Failed as e:
            print("FAILED: %s" % e, file=sys.stderr)
            return 1
        finally:
            if d is not None:
                d.stop()
    if not args.loss:
        print("\nscripts/run --loss 1% shows how it recovers.")
    return 0


piped.run(main)
