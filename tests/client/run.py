#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run a client program against a dataplane of its own: run.py PROGRAM [ARGUMENT...].

The program gets the path of the socket as its first argument. The dataplane (environment: ROCELANE)
has two in-memory ports and must be alive at the end, stop cleanly, and leave nothing behind.
Options before PROGRAM: --control JSON (merged into "control"), --workers N, --queues N (of each
port: without, a port is one worker's), --allow JSON (of port "right"), --ipv6 (addresses of both
families), --path local (no wire between the ports), --knobs JSON (more of them), --preload LIBRARY
(into the dataplane: fail_calls.c; FAIL_CALLS is its file, for PROGRAM too).
"""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

START_S = 60


def config(where, workers, queues, control, allow=None, ipv6=False, knobs=None):
    return {
        "version": 1,
        "eal": ["--no-huge", "-m", "256", "--no-pci", "--no-shconf", "--no-telemetry",
                "--log-level=error"],
        "lcores": {"control": 0, "workers": list(range(1, workers + 1)), "idle": "sleep"},
        "control": dict({"socket": os.path.join(where, "sock")}, **control),
        "knobs": {"path.local": "wire", "ops.placement": "on", **(knobs or {})},
        "ports": [
            {"name": "left", "device": "net_pair0a", "mac": "02:00:00:00:00:01",
             "ipv4": "10.77.0.1", "prefix": 24, **({"ipv6": "fd77::1"} if ipv6 else {}),
             "mtu": 4200, "rx_queues": queues},
            {"name": "right", "device": "net_pair0b", "mac": "02:00:00:00:00:02",
             "ipv4": "10.77.0.2", "prefix": 24, **({"ipv6": "fd77::2"} if ipv6 else {}),
             "mtu": 4200, "rx_queues": queues,
             **({"allow": allow} if allow else {})}],
    }


def answers(path):
    """The socket's file is there before anybody listens."""
    with socket.socket(socket.AF_UNIX) as s:
        return s.connect_ex(path) == 0


def wait_ready(proc, path, log):
    end = time.monotonic() + START_S
    while not answers(path):
        if proc.poll() is not None or time.monotonic() > end:
            sys.exit("the dataplane does not start:\n" + read(log))
        time.sleep(0.01)


def read(path):
    with open(path, encoding="utf-8", errors="replace") as f:
        return f.read()[-20000:]


def main():
    workers, queues, control, allow, args = 1, 1, {}, None, sys.argv[1:]
    ipv6, knobs, preload = False, {}, {}
    while args and args[0].startswith("--"):
        if args[0] == "--workers":
            workers = int(args[1])
        elif args[0] == "--queues":
            queues = int(args[1])
        elif args[0] == "--control":
            control = json.loads(args[1])
        elif args[0] == "--allow":
            allow = json.loads(args[1])
        elif args[0] == "--ipv6":
            ipv6 = True
            args = args[1:]
            continue
        elif args[0] == "--preload":
            preload = {"LD_PRELOAD": args[1]}
        elif args[0] == "--path":
            knobs["path.local"] = {"local": "inside"}.get(args[1], args[1])
        elif args[0] == "--knobs":
            knobs.update(json.loads(args[1]))
        args = args[2:]
    where = tempfile.mkdtemp(prefix="rocelane-client-")
    if "client_socket" in control:
        control["client_socket"] = os.path.join(where, control["client_socket"])
    if "client_mode" in control:        # for other users
        os.chmod(where, 0o711)
    if preload:
        os.environ["FAIL_CALLS"] = os.path.join(where, "calls")
        with open(os.environ["FAIL_CALLS"], "wb") as f:
            f.truncate(4096)
    log = os.path.join(where, "log")
    path = os.path.join(where, "config.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump(config(where, workers, queues, control, allow, ipv6, knobs), f)
    with open(log, "wb") as out:
        # EAL wants distinct CPUs for its lcores unless told that they may share.
        dataplane = subprocess.Popen(
            [os.environ["ROCELANE"], f"--lcores=(0-{workers})@(0-{(os.cpu_count() or 1) - 1})",
             "--", "--config", path],
            stdout=out, stderr=subprocess.STDOUT,
            env=dict(os.environ, XDG_RUNTIME_DIR=where, **preload))
    code = 1
    try:
        wait_ready(dataplane, os.path.join(where, "sock"), log)
        # A script: its interpreter comes first.
        at = 2 if len(args) > 1 and args[1].endswith(".py") else 1
        code = subprocess.run(args[:at] + [os.path.join(where, "sock")] + args[at:],
                              check=False).returncode
        if dataplane.poll() is not None:
            print("the dataplane died:", dataplane.returncode)
            code = 1
        dataplane.send_signal(signal.SIGTERM)
        ended = dataplane.wait(30)
        if ended != 0 or "left behind" in read(log):
            print("the dataplane did not stop cleanly:", ended)
            code = 1
    finally:
        if dataplane.poll() is None:
            dataplane.kill()
            dataplane.wait()
        if code != 0:
            print(read(log))
        shutil.rmtree(where)
    sys.exit(code if code >= 0 else 1)


if __name__ == "__main__":
    main()
