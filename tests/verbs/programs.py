# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian, run with our libibverbs.so.1."""
import os
import shutil
import subprocess
import sys

OURS = os.environ["LIBIBVERBS"]
TIMEOUT = 120


def environment(sock, **more):
    env = dict(os.environ, ROCELANE_SOCKET=sock, LD_LIBRARY_PATH=os.path.dirname(OURS), **more)
    if env.get("SANITIZER"):
        # What the programs themselves leave behind is not ours to judge.
        env.update(LD_PRELOAD=env["SANITIZER"], ASAN_OPTIONS="detect_leaks=0")
    return env


def installed(program):
    path = shutil.which(program)
    if path is None:
        sys.exit(f"{program} is not installed: scripts/setup")
    return path


def start(sock, program, *args, **more):
    return subprocess.Popen([installed(program), *args], env=environment(sock, **more),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True)


def run(sock, program, *args, **more):
    """(exit code, what it printed)"""
    proc = start(sock, program, *args, **more)
    try:
        out = proc.communicate(timeout=TIMEOUT)[0]
    except subprocess.TimeoutExpired:
        proc.kill()
        out = proc.communicate()[0] + "\n(it did not end)"
    return proc.returncode, out
