# SPDX-License-Identifier: BSD-3-Clause
"""What the benchmarks of whole programs share: a release build, a dataplane, its CPU time."""
import argparse
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time

import jsonrpc

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PR_SET_PDEATHSIG = 1
START_S = 60    # that a program may take to come up on a busy machine
LEAST = 0.95    # of the wall time, or a sample does not count

_libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """The benchmark cannot go on; the text says why."""


def build(*targets):
    """Bring targets of the release build up to date. @return its folder."""
    folder = os.environ.get("BENCH_BUILD", os.path.join(ROOT, "build", "bench"))
    steps = [["ninja", "-C", folder, *targets]]
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        steps.insert(0, ["meson", "setup", "--buildtype=release", folder, ROOT])
    for step in steps:
        p = subprocess.run(step, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        if p.returncode != 0:
            sys.stderr.buffer.write(p.stdout)
            raise Failed("the release build failed")
    return folder


def start(words, **kwargs):
    """A child that does not outlive us."""
    return subprocess.Popen(words, preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG,
                                                                  signal.SIGKILL), **kwargs)


def stop(p):
    if p.poll() is None:
        p.send_signal(signal.SIGTERM)
    try:
        p.wait(20)
    except subprocess.TimeoutExpired:
        p.kill()
        p.wait()


def wait_for(what, ready, *running):
    """Until ready() is true. @param running processes that must not end before."""
    end = time.monotonic() + START_S
    while not ready():
        if any(p.poll() is not None for p in running):
            raise Failed("a process ended before %s" % what)
        if time.monotonic() > end:
            raise Failed("gave up waiting for %s" % what)
        time.sleep(0.01)


def cpu_ns(pid):
    """CPU time by thread."""
    times = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/schedstat" % (pid, tid), encoding="ascii") as f:
            times[tid] = int(f.read().split()[0])
    return times


class Watch:
    """What part of the time from here on the busiest thread of each process has a CPU."""

    def __init__(self, *pids):
        self.before = {pid: cpu_ns(pid) for pid in pids}
        self.began = time.monotonic_ns()

    def share(self):
        """Of the process that had least."""
        wall = time.monotonic_ns() - self.began
        return min(max(now - before.get(tid, 0) for tid, now in cpu_ns(pid).items()) / wall
                   for pid, before in self.before.items())


class Dataplane:
    """A rocelane with this configuration; its files are in a folder that ends with it."""

    def __init__(self, rocelane, config, *eal):
        self.folder = tempfile.TemporaryDirectory(prefix="bench")
        path = os.path.join(self.folder.name, "config.json")
        self.socket_path = os.path.join(self.folder.name, "sock")
        self.log = os.path.join(self.folder.name, "log")
        config = dict(config, control={"socket": self.socket_path})
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        words = [rocelane, *eal, "--", "--config", path] if eal else [rocelane, "--config", path]
        with open(self.log, "wb") as log:
            self.process = start(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            wait_for("the dataplane", self.listens, self.process)
        except Failed as e:
            text = self.text()
            self.close()
            raise Failed("%s\n%s" % (e, text)) from e

    def listens(self):
        """Its socket is there before it listens."""
        try:
            jsonrpc.Connection(self.socket_path).close()
        except (FileNotFoundError, ConnectionRefusedError):
            return False
        return True

    def text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()[-4000:]

    def rpc(self, method, **params):
        try:
            return jsonrpc.call(self.socket_path, method, START_S, **params)
        except jsonrpc.RpcError as e:
            raise Failed("%s: %s" % (method, e.message)) from e

    def stats(self):
        return self.rpc("stats", scope="total")

    def close(self):
        stop(self.process)
        self.folder.cleanup()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def listed(kind, good, what):
    """For argparse: values with commas between them, all of which are good."""
    def parse(text):
        try:
            values = [kind(word) for word in text.split(",")]
        except ValueError:
            values = [None]
        if not all(v is not None and good(v) for v in values):
            raise argparse.ArgumentTypeError("'%s': %s, with commas" % (text, what))
        return values
    return parse


def write_json(path, result):
    with open(path, "w", encoding="utf-8") as f:
        json.dump(result, f, indent=2)
        f.write("\n")
