# SPDX-License-Identifier: BSD-3-Clause
"""Debian's programs as they are: here over our dataplane by rocelane-run, there over Soft-RoCE."""
import contextlib
import os
import signal
import subprocess
import time

import livenet
from bench import GUEST_IP, HOST_IP, TAP, InteropCase

RUN = os.environ.get("ROCELANE_RUN", "")
HANDSHAKE_IP = "10.77.0.3"  # of the tap: the kernel's TCP; rocelane's own address is another
WAIT_S = 240    # without a frame that goes by
LONGEST_S = 4 * WAIT_S
SLICE_S = 5
CM_TRY_S = 20


class DebianCase(InteropCase):
    """Programs at both ends: each serves one, asks the other."""

    ports = iter(range(18515, 19515))

    @classmethod
    def setUpClass(cls):
        livenet.ip("addr", "replace", HANDSHAKE_IP + "/24", "dev", TAP)

    @contextlib.contextmanager
    def subTest(self, *msg, **params):
        """VERBOSE=1 tells how long each of them took."""
        began = time.monotonic()
        with super().subTest(*msg, **params):
            yield
        if os.environ.get("VERBOSE"):
            print("#   %.2f s: %s" % (time.monotonic() - began, " ".join(map(str, (
                *msg, *params.values())))), flush=True)

    # ---- here -----------------------------------------------------------------------------------

    def ours(self, *argv, **env):
        """Start a program of Debian's over our dataplane."""
        p = subprocess.Popen([RUN, "-s", self.bench.process.socket_path, *map(str, argv)],
                             stdin=subprocess.DEVNULL, text=True, env=dict(os.environ, **env),
                             stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.addCleanup(self.ours_ended, p, 0)
        return p

    def until(self, look, wait_s):
        """What look(seconds) finds, or None. A wait of WAIT_S begins anew while frames go by."""
        now, before, found = time.monotonic(), self.bench.moved(), None
        end, last = now + wait_s, now + max(wait_s, LONGEST_S)
        while found is None:
            found = look(max(0, min(SLICE_S, end - time.monotonic())))
            moved, now = self.bench.moved(), time.monotonic()
            if moved != before and wait_s >= WAIT_S:
                before, end = moved, min(now + wait_s, last)
            elif now > end:
                break
        return found

    def ours_ended(self, p, wait_s=WAIT_S):
        """(status, what it wrote); after this time it is told to end."""
        def look(seconds):
            try:
                return p.communicate(timeout=seconds)[0]
            except subprocess.TimeoutExpired:
                return None

        if p.stdout.closed:
            return None
        out = self.until(look, wait_s)
        if out is None:
            p.terminate()       # rocelane-run passes it on
            out = p.communicate()[0] + "(it did not end)"
        return p.returncode, out

    def listens(self, p, port):
        """Wait until it does, by TCP, or has ended."""
        wanted = ":%04X" % port, "0A"
        end = time.monotonic() + WAIT_S
        while p.poll() is None and time.monotonic() < end:
            for table in ("tcp", "tcp6"):
                with open("/proc/net/" + table, encoding="ascii") as f:
                    if any((row[1][-5:], row[3]) == wanted for row in map(str.split, f)):
                        return
            time.sleep(0.01)

    def wait_for(self, look):
        end = time.monotonic() + WAIT_S
        while not look():
            self.assertLess(time.monotonic(), end)
            time.sleep(0.01)

    def until_listeners(self, p, there):
        """Of rocelane's own connection manager; p is whose it will be."""
        end = time.monotonic() + WAIT_S
        while (self.bench.host.rpc("stats")["cm_listeners"] != 0) != there:
            if p is not None and p.poll() is not None:
                self.fail("%r: %s" % (p.returncode, p.communicate()[0]))
            self.assertLess(time.monotonic(), end, "listeners")
            time.sleep(0.01)

    # ---- there ----------------------------------------------------------------------------------

    def theirs(self, *argv, log="perf", **env):
        """Start a program of the guest. @return its process"""
        words = ["busybox", "env", *("%s=%s" % kv for kv in env.items())] if env else []
        return self.bench.guest.start([*words, *argv], log=log)

    def theirs_ended(self, pid, wait_s=WAIT_S, log="perf"):
        """(status, what it wrote); after this time it is killed."""
        def look(seconds):
            done = self.bench.guest.wait(pid, seconds, log=log)
            return done if done[0] is not None else None

        done = self.until(look, wait_s)
        if done is not None:
            return done
        status, out = self.bench.guest.wait(pid, 1, log=log, signal=signal.SIGKILL)
        return status, out + "(it did not end)"

    def told_there(self, *argv):
        return self.bench.guest.wait(self.bench.guest.start(argv, log="told"), log="told")[1]

    def guest_listens(self, port, by_cm):
        """By TCP, or by the kernel's own list of what the connection manager has."""
        end, there = time.monotonic() + WAIT_S, False
        while not there and time.monotonic() < end:
            if by_cm:
                out = self.told_there("rdma", "resource", "show", "cm_id")
                there = any("LISTEN" in row and ":%d" % port in row for row in out.splitlines())
            else:
                out = self.told_there("cat", "/proc/net/tcp", "/proc/net/tcp6")
                there = ":%04X" % port in [row.split()[1][-5:] for row in out.splitlines()
                                           if row.split()[3:4] == ["0A"]]
        self.assertTrue(there, out)

    # ---- both -----------------------------------------------------------------------------------

    def guest_asks(self, port, serves, asks, by_cm=False, wait_s=WAIT_S, ends=True):
        """Once. `serves`, `asks`: words of the commands; `ends`: the server does by itself.
        @return who asked first, as …_ended()."""
        if by_cm:
            self.until_listeners(None, False)
        p = self.ours(*serves)
        if by_cm:
            self.until_listeners(p, True)
        else:
            self.listens(p, port)
        asked = self.theirs_ended(self.theirs(*asks), wait_s)
        return asked, self.ours_ended(p, WAIT_S if ends and asked[0] == 0 else 0)

    def guest_serves(self, port, serves, asks, by_cm=False, wait_s=WAIT_S, ends=True):
        pid = self.theirs(*serves, log="serves")
        self.guest_listens(port, by_cm)
        asked = self.ours_ended(self.ours(*asks), wait_s)
        return asked, self.theirs_ended(pid, WAIT_S if ends and asked[0] == 0 else 0, "serves")

    def perftest_by_cm(self, test, guest_serves, *options, iters=200, qps=1):
        """-R: without TCP. perftest connects twice, and its server does not listen in between: a
        client that is faster is refused, and neither end survives it. Then both begin again."""
        end = time.monotonic() + WAIT_S
        while True:
            port = next(self.ports)
            words = ["ib_" + test, "-R", "-F", "-n", iters, "-p", port, *options]
            words += ["-q", qps] if qps != 1 else []
            if guest_serves:
                asked, served = self.guest_serves(
                    port, [*words, "-d", "rxe0"], [*words, GUEST_IP], True, CM_TRY_S)
            else:
                asked, served = self.guest_asks(
                    port, words, [*words, "-d", "rxe0", HOST_IP], True, CM_TRY_S)
            if asked[0] == 0 or time.monotonic() > end:
                break
            print("# again: %r" % ((asked, served),), flush=True)
        self.assertEqual((0, 0), (asked[0], served[0]), (asked, served))
        self.assertRegex(asked[1], r"(?m)^ \d+ +%d " % (qps * iters))
