#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run a test as an ordinary user in a user namespace, without any capability.

    unprivileged.py COMMAND...

Root becomes nobody first. What the test makes in $TMPDIR, $HOME and $XDG_RUNTIME_DIR goes with it.
"""
import os
import re
import subprocess
import sys
import tempfile

NOBODY = 65534
RIGHTS = ("CapInh", "CapPrm", "CapEff", "CapAmb")


def inside(command):
    """In the namespace: without rights, and with a number that is not root's."""
    with open("/proc/self/status", encoding="ascii") as f:
        status = dict(re.findall(r"(\w+):\t(.*)", f.read()))
    if os.getuid() == 0 or any(int(status[name], 16) for name in RIGHTS):
        sys.exit(f"user {os.getuid()} has rights: {[status[name] for name in RIGHTS]}")
    with open("/proc/self/uid_map", encoding="ascii") as f:
        print(f"user {os.getuid()}, uid_map {f.read().split()}, no capability", flush=True)
    os.execvp(command[0], command)


def main():
    if sys.argv[1:2] == ["--inside"]:
        inside(sys.argv[2:])
    drop = [] if os.getuid() != 0 else [
        "setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
        "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
    with tempfile.TemporaryDirectory(prefix="rocelane-user-") as tmp:
        if drop:
            os.chown(tmp, NOBODY, NOBODY)
        env = dict(os.environ, HOME=tmp, TMPDIR=tmp, XDG_RUNTIME_DIR=tmp)
        sys.exit(subprocess.run([*drop, "unshare", "--user", "--map-current-user", sys.executable,
                                 "-B", os.path.abspath(__file__), "--inside", *sys.argv[1:]],
                                env=env, check=False).returncode)


if __name__ == "__main__":
    main()
