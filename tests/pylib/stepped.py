# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-stepped, the dataplane in one thread on a stepped clock: commands, frames, RPC.

Environment: ROCELANE_STEPPED is the program.
"""
import collections
import functools
import itertools
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

import jsonrpc

SOURCE_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

BATCH_MAX = 64      # requests of a batch


class DutDied(AssertionError):
    pass


def base_config(**sections):
    """F-RESP's port (IPv4 and IPv6), congestion control off; objects come by RPC."""
    config = {
        "version": 1,
        "eal": ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                "--log-level=error"],
        "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
        "ports": [
            {"name": "p0", "device": "net_ring_stepped0", "mac": "02:00:00:00:00:11",
             "ipv4": "192.0.2.1", "prefix": 24, "ipv6": "2001:db8::1", "prefix6": 64,
             "mtu": 4200,
             "neighbors": [{"ipv4": "192.0.2.2", "mac": "02:00:00:00:00:22"},
                           {"ipv6": "2001:db8::2", "mac": "02:00:00:00:00:22"}]}],
        "knobs": {"cc.cnp": "off", "cc.algo": "none"},
        "error_buffer": {"entries": 256},
        "pds": ["pd0"],
    }
    config.update(sections)
    return config


# Variants of many QPs ask for the same a thousand times, and get the same.
@functools.lru_cache(maxsize=64)
def batch(method, param, values):
    """The line of a batch of requests; values: a range or a tuple."""
    return "[%s]" % ",".join(jsonrpc.request(i, method, {param: v}) for i, v in enumerate(values))


@functools.lru_cache(maxsize=64)
def granted(text, n):
    """Fails where a batch's reply does not grant all of n requests."""
    replies = json.loads(text or "[]")
    for i, reply in enumerate(replies):
        jsonrpc.result(reply, i)
    if len(replies) != n:
        raise AssertionError("%d replies to %d requests" % (len(replies), n))


def drop_counters():
    """Names of the counters whose drop column is 1 in lib/stats/counters.def."""
    path = os.path.join(SOURCE_ROOT, "lib", "stats", "counters.def")
    with open(path, encoding="ascii") as f:
        rows = re.findall(r'^COUNTER\(\s*(\w+)\s*,\s*"\w+"\s*,\s*(\d)\s*,', f.read(), re.M)
    return [name for name, drop in rows if drop == "1"]


def unexplained(case, scopes):
    """Fails where rx_packets is not rcvd_pkts + rx_control + every drop."""
    names = drop_counters()
    for c in scopes:
        drops = {name: c[name] for name in names if c[name]}
        case.assertEqual(
            c["rx_packets"] + c["rx_handoff_in"] + c["rx_mcast_copies"],
            c["rcvd_pkts"] + c["rx_control"] + c["rx_handoff"] + sum(drops.values()),
            "packets unexplained: rx_packets %d (+%d), rcvd_pkts %d, rx_control %d, "
            "rx_handoff %d, %r" % (c["rx_packets"], c["rx_handoff_in"], c["rcvd_pkts"],
                                   c["rx_control"], c["rx_handoff"], drops))


class Stepped:
    """The process. Commands block until their answer is complete."""

    TIMEOUT_S = 240             # for one answer, on a machine that has much else to do
    QUEUED_MOST = 256           # frames

    def __init__(self, config):
        self.dir = tempfile.mkdtemp(prefix="rocelane-stepped-")
        self.stderr_path = os.path.join(self.dir, "stderr")
        path = os.path.join(self.dir, "config.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f, indent=1)
        with open(self.stderr_path, "wb") as err:
            self.proc = subprocess.Popen(
                [os.environ["ROCELANE_STEPPED"], "--config", path], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=err, env=dict(os.environ, XDG_RUNTIME_DIR=self.dir))
        self._rest, self._lines = b"", collections.deque()
        self._queued = []
        self._ids = itertools.count(1)
        try:
            while self._line() != "ready":
                pass
        except BaseException:
            self.close()
            raise

    def stderr(self):
        with open(self.stderr_path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def _died(self, why):
        if self.proc.poll() is None and why.startswith("no answer"):
            self.proc.kill()
        rc = self.proc.wait()
        return DutDied("rocelane-stepped %s (exit code %s)\n%s" % (why, rc, self.stderr()[-8000:]))

    def _line(self):
        end = time.monotonic() + self.TIMEOUT_S
        while not self._lines:
            ready, _, _ = select.select([self.proc.stdout], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise self._died("no answer in %d s" % self.TIMEOUT_S)
            more = os.read(self.proc.stdout.fileno(), 1 << 16)
            if not more:
                raise self._died("ended")
            *lines, self._rest = (self._rest + more).split(b"\n")
            self._lines.extend(lines)
        return self._lines.popleft().decode()

    def command(self, text):
        """Lines of the answer, without the final dot."""
        texts, self._queued = self._queued + [text], []
        try:
            self.proc.stdin.write("".join(t + "\n" for t in texts).encode())
            self.proc.stdin.flush()
        except BrokenPipeError:
            raise self._died("ended") from None
        answers = [list(iter(self._line, ".")) for _ in texts]
        for t, lines in zip(texts, answers):
            for line in lines:
                if line.startswith("error:"):
                    raise AssertionError("dut: %s (command %.80s)" % (line, t))
        return answers[-1]

    def rx(self, frame, port=0, fcs_bad=False):
        """The frame goes with the next command, which also fails for it."""
        self._queued.append("rx %d %s%s" % (port, frame.hex(), " fcs" if fcs_bad else ""))
        if len(self._queued) == self.QUEUED_MOST:
            self.command("now")

    def run(self, ns=0):
        """[(port, frame)] that left until the dataplane was idle."""
        return [(int(line.split()[1]), bytes.fromhex(line.split()[2]))
                for line in self.command("run %d" % ns) if line.startswith("tx ")]

    def now(self):
        return int(self.command("now")[0])

    def rpc_text(self, text):
        """One request line as it stands; its reply's, or None."""
        lines = [line for line in self.command("rpc " + text) if not line.startswith("tx ")]
        return lines[0] if lines else None

    def rpc_raw(self, text):
        """The same, the reply decoded."""
        reply = self.rpc_text(text)
        return None if reply is None else json.loads(reply)

    def rpc(self, method, **params):
        ident = next(self._ids)
        return jsonrpc.result(self.rpc_raw(jsonrpc.request(ident, method, params)), ident)

    def rpc_many(self, method, param, values):
        """The same request with another value each, in batches: all have to be granted."""
        for at in range(0, len(values), BATCH_MAX):
            some = values[at:at + BATCH_MAX]
            granted(self.rpc_text(batch(method, param, some)), len(some))

    def counters(self, **scope):
        result = self.rpc("stats", **(scope or {"scope": "total"}))
        return result.get("counters", result) if isinstance(result, dict) else result

    def _end(self):
        """Its output ends when it does; Popen.wait() with a timeout would sleep and look again."""
        end = time.monotonic() + 10
        while select.select([self.proc.stdout], [], [], max(0, end - time.monotonic()))[0]:
            if not os.read(self.proc.stdout.fileno(), 1 << 16):
                return
        raise TimeoutError

    def close(self):
        """Ends the process. @return its exit code."""
        if self.proc.poll() is None:
            try:
                self.proc.stdin.write(b"quit\n")
                self.proc.stdin.close()
                self._end()
            except (BrokenPipeError, ValueError, TimeoutError):
                self.proc.kill()
        rc = self.proc.wait()
        for pipe in (self.proc.stdin, self.proc.stdout):
            try:
                pipe.close()
            except (BrokenPipeError, OSError):
                pass
        self.last_stderr = self.stderr() if os.path.exists(self.stderr_path) else ""
        shutil.rmtree(self.dir, ignore_errors=True)
        return rc
