# SPDX-License-Identifier: BSD-3-Clause
"""One bench for the whole suite: a namespace, the wire, rocelane, the guest; and the tests' base.

Everything hangs on this process: the namespace has no name and the tap belongs to the wire's file
descriptor, so nothing of it is left when the process ends, whatever happens.
"""
import contextlib
import os
import shutil
import sys
import tempfile
import time
import unittest

import jsonrpc
import livenet
import netns
from ends import LINUX, ROCELANE, End, Link
from guest import Guest
from wire import Tap, Wire

TAP, IF_MTU = "guest0", 4200
HOST_MAC, HOST_IP, HOST_IP6 = "02:00:00:77:00:01", "10.77.0.1", "fd77::1"
GUEST_MAC, GUEST_IP, GUEST_IP6 = "02:00:00:77:00:02", "10.77.0.2", "fd77::2"


def config():
    """rocelane on af_packet at the tap; frames for a path MTU of 4096."""
    return {
        "version": 1,
        "eal": ["--no-huge", "-m", "512", "--no-pci", "--no-shconf", "--no-telemetry",
                "--log-level=error",
                "--vdev=net_af_packet0,iface=%s,blocksz=65536,framesz=8192,framecnt=%d" %
                (TAP, netns.locked_frames(4096, 8192))],
        "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
        "ports": [{"name": "p0", "device": "net_af_packet0", "mac": HOST_MAC, "ipv4": HOST_IP,
                   "prefix": 24, "ipv6": HOST_IP6, "prefix6": 64, "mtu": IF_MTU}],
        "error_buffer": {"entries": 1024},
        "pds": ["pd0"],
    }


def enter_namespace():
    netns.enter()
    with open("/proc/sys/net/unix/max_dgram_qlen", "w", encoding="ascii") as f:
        f.write("512")


class Bench:
    def __init__(self, image):
        self.dir = tempfile.mkdtemp(prefix="rocelane-interop-")
        self.process = self.guest = self.conn = None
        self.wire = Wire(Tap(TAP))
        try:
            self._start(image)
        except BaseException:
            self.close()
            raise

    def _start(self, image):
        with open("/proc/sys/net/ipv6/conf/%s/disable_ipv6" % TAP, "w", encoding="ascii") as f:
            f.write("1")
        livenet.ip("link", "set", TAP, "mtu", str(IF_MTU), "txqueuelen", "10000", "up")
        self.guest = Guest(image, self.wire.guest_end, self.dir,
                           {"mac": GUEST_MAC, "mtu": IF_MTU, "ip": GUEST_IP + "/24",
                            "ip6": GUEST_IP6 + "/64"})
        self.wire.start()
        self.process = livenet.Process(config())
        self.conn = jsonrpc.Connection(self.process.socket_path)
        self.host = End(ROCELANE, self.host_rpc, HOST_IP, HOST_IP6, 1, self.moved)
        self.boot_s = self.guest.wait_ready()
        self.linux = End(LINUX, self.guest.rpc, GUEST_IP, GUEST_IP6, 2, self.moved)

    host_rpc = livenet.Live.rpc

    def moved(self):
        return self.wire.carried

    def dump(self):
        """What helps to understand a failure."""
        lines = ["wire: %d frames, error %r" % (len(self.wire.seen), self.wire.error)]
        lines += ["  %r" % s for s in self.wire.frames()[-30:]]
        lines += ["rocelane (exit code %r): %s" % (self.process.proc.poll(),
                                                   self.process.stderr()[-2000:])]
        lines += ["guest (QEMU: %r): %s" % (self.guest.proc.poll(), self.guest.console()[-2000:])]
        return "\n".join(lines)

    def close(self):
        rc = None
        if self.conn is not None:
            self.conn.close()
        if self.process is not None:
            rc = self.process.stop() if self.process.proc.poll() is None else \
                self.process.proc.returncode
            self.stderr = self.process.stderr()
            self.process.close()
        if self.guest is not None:
            self.guest.close()
        self.wire.stop()
        shutil.rmtree(self.dir, ignore_errors=True)
        return rc


    def left_behind(self):
        """After close(): processes, files and devices that should be gone."""
        with open("/proc/self/task/%d/children" % os.getpid(), encoding="ascii") as f:
            left = ["process " + pid for pid in f.read().split()]
        left += [path for path in (self.dir, self.process.dir) if os.path.exists(path)]
        return left + ["device " + TAP] * os.path.exists("/proc/sys/net/ipv4/conf/" + TAP)


class InteropCase(unittest.TestCase):
    """Base of the tests. `bench` is set by run.py before any of them starts."""

    bench = None
    maxDiff = None

    def setUp(self):
        b = self.bench
        self.links = []
        b.wire.clear()
        for end in (b.host, b.linux):
            end.events()
        self.began = time.monotonic()

    def tearDown(self):
        b = self.bench
        failed = any(err for _, err in self._outcome.result.failures + self._outcome.result.errors
                     if _.id() == self.id()) or sys.exc_info()[0] is not None
        if os.environ.get("VERBOSE"):
            print("# %s: %.2f s, %d frames" % (self.id(), time.monotonic() - self.began,
                                               len(b.wire.seen)), flush=True)
        if failed and not os.environ.get("BRIEF"):
            print("\n".join("# " + line for line in b.dump().splitlines()), flush=True)
        self.clean(failed)

    def clean(self, failed):
        """Nothing of a scene is left for the next one: no QP, no rule, no frame, no surprise."""
        b = self.bench
        b.wire.calm()
        try:
            for link in self.links:
                link.close()
        finally:
            self.links = []
            b.wire.clear()
            if failed and b.guest.dead is None and b.process.proc.poll() is None:
                b.host.rpc("impair_set", port="p0", impair=None)
                for end in (b.host, b.linux):
                    end.begin_anew()

    @contextlib.contextmanager
    def scene(self, **params):
        """A subtest that has links of its own, and that leaves nothing to the next one."""
        with self.subTest(**params):
            failed = True
            try:
                yield
                failed = False
            finally:
                self.clean(failed)

    def link(self, a=None, b=None, **attrs):
        """A connection that ends with the test; a and b are Ends.

        Its timer is for what the test does to the wire; where nothing is lost it is 1.07 s, eight
        times of which no machine is busy.
        """
        attrs.setdefault("timeout", 18)
        link = Link(a or self.asks, b or self.answers, **attrs)
        self.links.append(link)
        return link

    def tell_wire(self, n=60):
        """What went by last, in milliseconds from the first of it."""
        frames = self.bench.wire.frames()[-n:]
        for s in frames:
            print("#   %8.2f %r" % ((s.time - frames[0].time) * 1e3, s), flush=True)

    def check_memory(self, all_of_it=False):
        faults = [f for end in (self.bench.host, self.bench.linux)
                  for f in end.memory_faults(all_of_it)]
        self.assertEqual([], faults)


class RocelaneAsks:
    """Mixed in: rocelane is the requester."""

    asks = property(lambda self: self.bench.host)
    answers = property(lambda self: self.bench.linux)


class LinuxAsks:
    asks = property(lambda self: self.bench.linux)
    answers = property(lambda self: self.bench.host)
