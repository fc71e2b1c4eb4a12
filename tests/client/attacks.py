# SPDX-License-Identifier: BSD-3-Clause
"""What attacks share: an operator who asks all the time, and what the dataplane has in use.

While an attack is under way an operator asks something, over and over. No answer may take longer
than SLOW_S, without the waits for a CPU: the attacks cost 8 to 21 s before. No turn of a worker
runs for more than TURN_S.
When the attacker is gone, the dataplane has as many descriptors and threads as before, in BACK_S
without the waits for a CPU.
The socket's path is the first argument, the clients' own socket stands next to it.
"""
import contextlib
import fcntl
import mmap
import os
import signal
import socket
import struct
import sys
import threading
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

SOCKET = sys.argv.pop(1)
CLIENTS = os.path.join(os.path.dirname(SOCKET), "clients")
SOON_S = 10.0
F_ADD_SEALS, F_GET_SEALS = 1033, 1034
F_SEAL_SEAL, F_SEAL_SHRINK, F_SEAL_GROW, F_SEAL_FUTURE_WRITE = 1, 2, 4, 16
EPERM, ENOENT, EINVAL, ENOMEM, ENODATA = 1, 2, 22, 12, 61
MIB = 1 << 20
EAL = "/memfd:nohuge"


def memfd(size, filled=True, seals=F_SEAL_SHRINK):
    fd = os.memfd_create("attack", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if filled:
        with mmap.mmap(fd, size) as m:
            for at in range(0, size, mmap.PAGESIZE):
                m[at] = 1
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


def connect(path=CLIENTS):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.setblocking(False)
    end = time.monotonic() + SOON_S
    while True:
        with contextlib.suppress(BlockingIOError):  # so many wait to be accepted
            s.connect(path)
            break
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.001)
    s.settimeout(SOON_S)
    return s


def dataplane():
    """Its process, as the kernel knows it."""
    with connect(SOCKET) as s:
        cred = s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return struct.unpack("3i", cred)[0]


PID = dataplane()


def sanitized():
    """Slower, then; and freed memory is kept by AddressSanitizer."""
    with open("/proc/%d/maps" % PID, encoding="utf-8") as f:
        return "libasan" in f.read()


SLOWER = 10 if sanitized() else 1
SLOW_S, TURN_S, BACK_S = 0.05 * SLOWER, 0.005 * SLOWER, 1.0 * SLOWER


def used():
    """Descriptors and threads of the dataplane."""
    return tuple(len(os.listdir("/proc/%d/%s" % (PID, what))) for what in ("fd", "task"))


def mapped_memory():
    """Clients' memory and rings' areas that the dataplane maps: how many, and their bytes."""
    with open("/proc/%d/maps" % PID, encoding="utf-8") as f:
        at = [line.split()[0].split("-") for line in f if "/memfd:" in line and EAL not in line]
    return len(at), sum(int(end, 16) - int(start, 16) for start, end in at)


def shared_kib():
    with open("/proc/%d/status" % PID, encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("RssShmem"))


def soon(what):
    end = time.monotonic() + SOON_S
    while not what():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def waited_s(pid, tid):
    """How long a thread has waited for a CPU that others had."""
    with open("/proc/%d/task/%d/schedstat" % (pid, tid), encoding="ascii") as f:
        return int(f.read().split()[1]) * 1e-9


STOPPED = [0.0]     # seconds for which a test itself kept the dataplane from running


@contextlib.contextmanager
def stopped():
    """The dataplane does nothing meanwhile, whoever has a CPU."""
    start = time.monotonic()
    os.kill(PID, signal.SIGSTOP)
    try:
        soon(is_stopped)
        yield
    finally:
        STOPPED[0] += time.monotonic() - start
        os.kill(PID, signal.SIGCONT)


def is_stopped():
    """Each thread of the dataplane: a signal only asks them to stop."""
    for task in tasks():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open("/proc/%d/task/%d/stat" % (PID, task), encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] != "T":
                    return False
    return True


def tasks():
    return {int(tid) for tid in os.listdir("/proc/%d/task" % PID)}


def worker_threads():
    """EAL's threads for lcores, but for the main one, which is the control lcore's."""
    found = []
    for tid in tasks():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            with open("/proc/%d/task/%d/comm" % (PID, tid), encoding="ascii") as f:
                if "-worker" in f.read():
                    found.append(tid)
    return found


def stolen_s():
    """How long the host had our CPUs."""
    with open("/proc/stat", encoding="ascii") as f:
        return int(f.readline().split()[8]) / os.sysconf("SC_CLK_TCK")


class Waits:
    """What the threads of the dataplane, and this one, have waited for a CPU since this was made.

    What a thread waited that has ended meanwhile is not in it.
    """

    def __init__(self):
        self.start, self.before = time.monotonic(), self.now()

    @staticmethod
    def now():
        found = {None: stolen_s() + STOPPED[0],
                 0: waited_s(os.getpid(), threading.get_native_id())}
        for tid in tasks():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found[tid] = waited_s(PID, tid)
        return found

    def net_s(self):
        """How long it is since then, without that."""
        took, now = time.monotonic() - self.start, self.now()
        return took - sum(now[k] - self.before.get(k, 0) for k in now)


class Turns:
    """The longest turn of each worker, by the time that its thread ran; .story is what it did."""

    def __init__(self, op):
        self.op, self.story = op, ""
        self.again()

    def again(self):
        self.op.call("worker_load", measure=True, reset=True)
        self.stolen = stolen_s()

    def worst_s(self):
        """A kernel may count what the host took as the thread's."""
        worst = self.worst = max(self.op.call("worker_load"), key=lambda w: w["turn_max_cpu_us"])
        self.story = ", ".join("%s %s" % (k[len("turn_max_"):], worst[k])
                               for k in sorted(worst) if k.startswith("turn_max_"))
        return worst["turn_max_cpu_us"] * 1e-6 - (stolen_s() - self.stolen)

    def close(self):
        self.op.call("worker_load", measure=False)


@contextlib.contextmanager
def control_turns(op):
    """Yields a list that gets the control lcore's longest turn meanwhile, in seconds of its CPU."""
    op.call("control_load", reset=True)
    before, longest = stolen_s(), []
    yield longest
    taken = op.call("control_load")["turn_max_cpu_us"] * 1e-6 - (stolen_s() - before)
    print("longest turn of the control lcore %.2f ms" % (taken * 1e3))
    longest.append(taken)


class Operator(threading.Thread):
    """Asks all the time; .worst is the longest answer in seconds.

    .worst_net is the longest without what they waited for a CPU who may have to do with it: this
    thread, and those that the dataplane had before the attack. Any of them may hold a lock that the
    answer needs. That is what an attack costs the dataplane, whatever else the machine does.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.worst, self.worst_net, self.asked, self.done = 0.0, 0.0, 0, False
        self.c = jsonrpc.Connection(SOCKET, 60)
        self.c.call("version")
        self.theirs = tasks()

    def waited(self):
        """By thread; one that has ended is left out."""
        so_far = {"this": waited_s(os.getpid(), threading.get_native_id()),
                  "host": stolen_s(), "test": STOPPED[0]}
        for tid in self.theirs:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                so_far[tid] = waited_s(PID, tid)
        return so_far

    def run(self):
        while not self.done:
            before, start = self.waited(), time.monotonic()
            self.c.call("version")
            took = time.monotonic() - start
            after = self.waited()
            waited = sum(after[who] - before[who] for who in before if who in after)
            self.worst = max(self.worst, took)
            self.worst_net = max(self.worst_net, took - waited)
            self.asked += 1
            time.sleep(0.001)


def warm_up():
    """What the first client brings along stays."""
    with jsonrpc.Connection(CLIENTS) as c:
        c.call("client_open", abi=1)


class Case(unittest.TestCase):
    slow_s = SLOW_S

    @contextlib.contextmanager
    def watched(self):
        """No answer is slow while this runs, and no turn of a worker long."""
        op, turn_s = Operator(), 0.0
        turns = Turns(op.c)
        op.start()
        try:
            yield op
            # What was asked during the attack is answered, and something behind it.
            asked = op.asked
            self.assertTrue(soon(lambda: op.asked > asked + 2))
        finally:
            op.done = True
            op.join()
            turn_s = turns.worst_s()
            turns.close()
            op.c.close()
        print("%s: slowest answer %.1f ms of %d, %.1f ms without waiting for a CPU; "
              "longest turn of a worker %.2f ms" % (
                  self.id(), op.worst * 1e3, op.asked, op.worst_net * 1e3, turn_s * 1e3))
        self.assertLess(op.worst_net, self.slow_s)
        self.assertLess(turn_s, TURN_S)

    def setUp(self):
        self.before = None
        # What an earlier test had may still be on its way out.
        self.assertTrue(soon(lambda: self.clients() == 0))
        self.before, seen = used(), 0
        while seen < 5:
            time.sleep(0.02)
            seen = seen + 1 if used() == self.before else 0
            self.before = used()

    def assert_back(self, within_s=BACK_S):
        waits = Waits()
        self.assertTrue(soon(lambda: self.clients() == 0), "a client is left")
        # Less: a connection of before the attack had not ended when we looked.
        self.assertTrue(soon(lambda: all(map(int.__le__, used(), self.before))),
                        (self.before, used()))
        net_s = waits.net_s()
        print("%s: all back after %.0f ms without waiting for a CPU" % (self.id(), net_s * 1e3))
        self.assertLess(net_s, within_s)

    def clients(self):
        with jsonrpc.Connection(SOCKET) as c:
            return len(c.call("client_list"))

    def client(self, path=CLIENTS):
        c = jsonrpc.Connection(path)
        self.addCleanup(c.close)
        c.me = c.call("client_open", abi=1, name="attacker")
        return c

    def refused(self, errno, c, method, params=None, fds=()):
        with self.assertRaises(jsonrpc.RpcError) as e:
            c.call_with(method, params, fds)
        self.assertEqual(errno, e.exception.errno, e.exception)
        return str(e.exception)

    def region(self, c, pd, fd, **more):
        params = dict({"pd": pd, "length": 4096, "addr": 0x10000, "access": 15}, **more)
        return c.call_with("client_mr_register", params, [fd])
