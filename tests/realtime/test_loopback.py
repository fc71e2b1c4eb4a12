# SPDX-License-Identifier: BSD-3-Clause
"""config/examples/{loopback,apm}.json in the real program: in-memory ports, no privileges."""
import contextlib
import ctypes
import glob
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import jsonrpc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(ROOT, "config", "examples", "loopback.json")
APM = os.path.join(ROOT, "config", "examples", "apm.json")


@contextlib.contextmanager
def held(pid, name):
    """One thread of a child does not run, as if nothing gave it a CPU. By ptrace(2)."""
    attach, interrupt, detach = 0x4206, 0x4207, 17
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long] * 4

    def ask(request):
        if libc.ptrace(request, tid, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "ptrace")
    for comm in glob.glob(f"/proc/{pid}/task/*/comm"):
        with open(comm, encoding="ascii") as f:
            if f.read().strip() == name:
                tid = int(comm.split("/")[-2])
    ask(attach)
    try:
        ask(interrupt)
        os.waitpid(tid, 0x40000000)     # __WALL
        yield
    finally:
        ask(detach)


class Loopback(unittest.TestCase):

    @contextlib.contextmanager
    def started(self, change, example=EXAMPLE):
        """The program with a changed example. Yields a function that asks it (JSON-RPC)."""
        with open(example, encoding="utf-8") as f:
            config = json.load(f)
        with tempfile.TemporaryDirectory(prefix="rocelane-loop-") as where:
            path = os.path.join(where, "config.json")
            config["control"]["socket"] = os.path.join(where, "sock")
            change(config)
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            with open(os.path.join(where, "out"), "w+b") as out, subprocess.Popen(
                    [os.environ["ROCELANE"], "--config", path], stdout=out, stderr=out,
                    env=dict(os.environ, XDG_RUNTIME_DIR=where)) as proc:
                try:
                    with self.connected(proc, config["control"]["socket"], out) as conn:
                        self.pid = proc.pid
                        yield conn.call
                finally:
                    proc.terminate()
                    self.assertEqual(0, proc.wait(30))
                    out.seek(0)
                    self.output = out.read().decode(errors="replace")

    def until(self, what, condition, patience=100):
        """Look until `condition` gives something true, however busy the machine is. @return it"""
        end = time.monotonic() + patience
        while True:
            got = condition()
            if got:
                return got
            self.assertLess(time.monotonic(), end, "still waiting for " + what)
            time.sleep(0.05)   # between two looks

    def connected(self, proc, path, out):
        end = time.monotonic() + 30
        while True:
            try:
                return jsonrpc.Connection(path, 30)
            except OSError:
                if proc.poll() is not None or time.monotonic() > end:
                    out.seek(0)
                    self.fail(out.read().decode(errors="replace"))
                time.sleep(0.02)

    def run_example(self, change=lambda config: None, seconds="2"):
        with open(EXAMPLE, encoding="utf-8") as f:
            config = json.load(f)
        with tempfile.TemporaryDirectory(prefix="rocelane-loop-") as where:
            config["control"]["socket"] = os.path.join(where, "sock")
            change(config)
            path = os.path.join(where, "config.json")
            with open(path, "w", encoding="utf-8") as f:
                json.dump(config, f)
            return subprocess.run(
                [os.environ["ROCELANE"], "--config", path, "--duration", seconds],
                env=dict(os.environ, XDG_RUNTIME_DIR=where), text=True, timeout=60,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)

    def counters(self, output):
        return {name: int(value) for name, value in re.findall(r"^(\w+) +(\d+)$", output, re.M)}

    def test_feeds_run(self):
        """All kinds of requests, and what is printed at the end is what has been counted."""
        def enough():
            c = ask("stats", scope="total")
            return c if c["req_messages"] > 10000 and all(c[n] > 1000 for n in kinds) else None
        kinds = ("rx_write_requests", "rx_read_requests", "rx_atomic_requests")
        with self.started(lambda config: None) as ask:
            seen = self.until("10000 requests, 1000 of a kind", enough)
        c = self.counters(self.output)
        for name in ("req_messages",) + kinds:
            self.assertGreaterEqual(c[name], seen[name], name)
        for name in ("req_cqe_error", "resp_cqe_error", "tx_backlog_drop", "rx_syndrome_30"):
            self.assertEqual(0, c.get(name, 0), name)

    def test_a_delay_is_kept_while_the_worker_sleeps(self):
        """5 us each way and one ATOMIC at a time: an idle sleep of 50 us would be in each of them.
        What takes longer was kept waiting by another program."""
        fast_ns, want = 40000, 1000

        def delayed(config):
            self.assertEqual("sleep", config["lcores"]["idle"])
            atomic = config["qps"][-1]
            config["qps"] = [config["qps"][0], atomic]
            self.assertEqual("ATOMIC_FETCH_AND_ADD", atomic["send_feed"]["opcode"])
            atomic["count"] = atomic["send_feed"]["depth"] = 1
            for port in config["ports"]:
                port["impair"] = {"rules": [{"action": "delay", "delay_us": 5}]}
        def fast():
            row = [r for r in ask("latency", buckets=True) if r["opcode"] == "ATOMIC"][0]
            n = sum(n for ns, n in row["buckets"] if ns < fast_ns)
            return row if n >= want else None
        with self.started(delayed) as ask:
            row = self.until("%d ATOMICs of less than %d ns" % (want, fast_ns), fast)
        # A worker stopped right between clock and port sees packets earlier than they were due.
        self.assertGreaterEqual(row["p50_ns"], 10000)

    def test_REQ_RETRY_07_a_worker_that_stands_still(self):
        """Its packets wait, so their sender gives up; and it is told which worker that was."""
        def two(config):
            config["lcores"]["workers"] = [1, 2]
            for port in config["ports"]:
                port["rx_queues"] = 2
            answers, asks = config["qps"][:2]
            config["qps"] = [dict(answers, count=1, worker=1, dest_qp_num=32),
                             dict(asks, count=1, worker=0, timeout=13, retry_cnt=3)]

        def failed():
            return ask("qp_query", qp_num=32)["qp_state"] == "ERR"
        with self.started(two) as ask:
            self.until("a request", lambda: ask("stats", scope="total")["req_messages"] > 0)
            with held(self.pid, "rte-worker-2"):
                self.until("the end of all retries", failed)
                meanwhile = ask("qp_explain", qp_num=32)["summary"]
            story = ask("qp_post_mortem", qp_num=32)[0]
            self.until("the worker", lambda: ask("worker_load")[1]["stalls"] > 0)
            after = ask("qp_explain", qp_num=32)["summary"]
            stalled_s = ask("worker_load")[1]["stall_ns"] / 1e9
        for text in (meanwhile, after, story["network"], self.output):
            self.assertRegex(text, r"worker 1 stood still for \d+ ms")
        self.assertRegex(self.output, r"REQ-RETRY-07\); worker 1 stood still for \d+ ms; completed")
        self.assertGreater(stalled_s, 4 * 4.096e-6 * 2 ** 13)

    def test_RESP_18_atomics_on_four_lcores(self):
        """Four workers, one word, requests and answers lost: each addition happens once."""
        each, lost = 5000, {"seed": 18, "rules": [{"action": "drop", "probability": 0.01}]}

        def atomics(config):
            config["eal"][config["eal"].index("-m") + 1] = "384"
            config["lcores"]["workers"] = [1, 2, 3, 4]
            asking, answering = config["ports"]
            answers, asks = config["qps"][0], config["qps"][-1]
            config["ports"], config["qps"] = [], []
            for port, last, end in ((asking, 1, "a"), (answering, 2, "b")):
                config["ports"] += [
                    dict(port, name="%s%d" % (end, i), device="net_pair%d%s" % (i, end),
                         mac="02:00:00:00:%02x:%02x" % (i, last),
                         ipv4="10.77.%d.%d" % (i, last), mtu=1500, impair=lost) for i in range(4)]
            for i in range(4):
                config["qps"] += [
                    dict(answers, port="b%d" % i, qp_num=64 + i, dest_qp_num=32 + i, count=1,
                         path_mtu=1024, worker=i, ah_attr={"dest_ip": "10.77.%d.1" % i}),
                    dict(asks, port="a%d" % i, qp_num=32 + i, dest_qp_num=64 + i, count=1,
                         path_mtu=1024, worker=i, timeout=16, ah_attr={"dest_ip": "10.77.%d.2" % i},
                         send_feed={"opcode": "ATOMIC_FETCH_AND_ADD", "size": 8, "depth": 16,
                                    "rkey": "0x1003", "remote_addr": "0x30000000",
                                    "count": each})]
        def done():
            c = ask("stats", scope="total")
            self.assertEqual(0, c["req_cqe_error"], c)
            return c if c["req_messages"] == 4 * each else None
        with self.started(atomics) as ask:
            c = self.until("%d ATOMICs" % (4 * each), done)
            per_worker = [w["rx_atomic_requests"] for w in ask("stats", scope="worker")]
            word = ask("mr_read", name="sums", offset=0, length=8)["data"]
        self.assertEqual(4 * each, int.from_bytes(bytes.fromhex(word), sys.byteorder), c)
        self.assertEqual([each] * 4, per_worker)
        self.assertGreater(c["req_resent_pkts"], 100)
        self.assertGreater(c["duplicate_request"], 0)

    def test_REQ_RETRY_09_an_alternate_path_takes_over(self):
        """config/examples/apm.json: all is lost on the first path, and it goes on on the second."""
        def both(*want):
            got = [ask("qp_query", qp_num=n) for n in (17, 18)]
            return [(q["path_mig_state"], q["port"]) for q in got] == list(want)

        def counters():
            return ask("stats", scope="total")
        with self.started(lambda config: None, APM) as ask:
            self.until("both sides to be ready",
                       lambda: both(("ARMED", "asks0"), ("ARMED", "answers0")))
            for port in ("asks0", "answers0"):
                ask("impair_set", port=port,
                    impair={"rules": [{"action": "drop", "probability": 1}]})
            self.until("both sides on the second path",
                       lambda: both(("MIGRATED", "asks1"), ("MIGRATED", "answers1")))
            n = counters()["req_messages"] + 1000
            self.until("1000 requests there", lambda: counters()["req_messages"] >= n)
            events = [e["event_type"] for e in ask("async_events", max=64)]
            c = counters()
        self.assertEqual((0, 0), (c["req_cqe_error"], c["resp_cqe_error"]))
        self.assertEqual(2, events.count("PATH_MIG"), events)

    def test_RESP_SEQ_01_QPs_move_between_workers(self):
        """Feeds run while those that answer change workers: no request gets out of order."""
        def two_workers(config):
            config["eal"][config["eal"].index("-m") + 1] = "512"
            config["lcores"]["workers"] = [1, 2]
            for port in config["ports"]:
                port["rx_queues"] = 2
            for qp in config["qps"]:
                qp["timeout"] = 18      # a busy machine may keep a worker for long
        seen = set()
        with self.started(two_workers) as ask:
            numbers = [q["qp_num"] for q in ask("qp_list") if q["port"] == "answers"]
            for turn in range(6):
                for i, number in enumerate(numbers):
                    ask("qp_modify", qp_num=number, worker=(turn + i) % 2)
                    seen.add((number, ask("qp_query", qp_num=number)["worker"]))
                before = ask("stats", scope="total")["req_messages"]
                end = time.monotonic() + 60
                while ask("stats", scope="total")["req_messages"] < before + 2000:
                    self.assertLess(time.monotonic(), end, "nothing moves any more")
                    time.sleep(0.01)
            c = ask("stats", scope="total")
            states = {q["qp_num"]: q["qp_state"] for q in ask("qp_list")}
        self.assertEqual(2 * len(numbers), len(seen))
        self.assertEqual({"RTS"}, set(states.values()), states)
        for name in ("rx_handoff_lost", "out_of_sequence", "req_cqe_error", "resp_cqe_error"):
            self.assertEqual(0, c.get(name, 0), name)
        self.assertGreater(c["rx_handoff"], 1000)

    def test_a_pair_has_two_ends(self):
        def drop_port(config):
            config["ports"].pop()
            config["qps"] = []
        done = self.run_example(drop_port, "1")
        self.assertEqual(2, done.returncode, done.stdout)
        self.assertIn("/ports/0/device: the other end of net_pair0a, net_pair0b", done.stdout)


class Shown(unittest.TestCase):
    """What scripts/run prints: a line each second, a summary, and what it has checked."""

    SHOW = os.path.join(ROOT, "scripts", "dev", "loopback.py")

    def start(self, *args):
        return subprocess.Popen(
            ["/usr/bin/python3", "-B", self.SHOW, "--rocelane", os.environ["ROCELANE"], *args],
            text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def rows(self, out):
        """Second to its cells, by the names of the columns."""
        head = re.search(r"^second .*$", out, re.M).group().split("  ")
        head = [name.strip() for name in head if name.strip()]
        lines = re.findall(r"^ *\d+ +\d+ .*(?:same)$", out, re.M)
        return [dict(zip(head, line.split())) for line in lines]

    def test_recovery_is_seen(self):
        """Nothing is lost before; then NAKs, implied NAKs and resends, and all of it arrives."""
        p = self.start("--duration", "4", "--loss", "2%")
        out, err = p.communicate(timeout=110)
        self.assertEqual((0, ""), (p.returncode, err), out)
        rows = self.rows(out)
        self.assertEqual(["1", "2", "3", "4"], [r["second"] for r in rows], out)
        for r in rows:
            self.assertGreater(int(r["ops/s"]), 0, r)
            self.assertLessEqual(float(r["p50 us"]), float(r["p99 us"]))
        self.assertEqual("0", rows[0]["lost"])
        for name in ("lost", "resent", "seq NAK", "implied"):
            self.assertGreater(sum(int(r[name]) for r in rows[1:]), 0, (name, rows))
        self.assertIn("each port loses 2 %", out)
        self.assertRegex(out, r"goodput with loss: +\d+ % of")
        for kind in ("RDMA_WRITE", "RDMA_READ", "SEND", "ATOMIC"):
            self.assertRegex(out, r"(?m)^%s +[1-9]\d* " % kind)
        self.assertIn("checked: 192 KiB of random data", out)

    def test_until_interrupted(self):
        p = self.start("--duration", "0")
        for line in p.stdout:
            if re.match(r" +1 +\d+", line):
                break
        p.send_signal(signal.SIGINT)
        out, err = p.stdout.read(), p.stderr.read()
        self.assertEqual((0, ""), (p.wait(110), err), out)
        self.assertIn("no request failed", out)
        self.assertIn("--loss 1%", out)

    def test_wrong_words(self):
        for args, says in ((("--loss", "60%"), "from 0 to 50%"), (("--loss", "x"), "loss"),
                           (("--duration", "-1"), "whole seconds")):
            p = self.start(*args)
            _, err = p.communicate(timeout=110)
            self.assertEqual(2, p.returncode, args)
            self.assertIn(says, err)

    def test_no_program(self):
        p = self.start("--duration", "2", "--rocelane", "/bin/false")
        _, err = p.communicate(timeout=110)
        self.assertEqual(1, p.returncode)
        self.assertIn("does not start", err)


if __name__ == "__main__":
    unittest.main()
