# SPDX-License-Identifier: BSD-3-Clause
"""Watches on what a client shares with the dataplane: the kernel looks at each, at every event.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import contextlib
import multiprocessing
import os
import select
import socket
import statistics
import time
import unittest

from attacks import CLIENTS, PID, SLOW_S, SLOWER, Case, connect, soon, warm_up

COPIES, SETS = 500, 240     # 120,000 watches: 10 ms for each event, and more
MANY, AWAY = 60, 8
ROUNDS, WRITERS = 3, 2
MORE_ROUNDS = 9             # at most, beside the writers
ASKED = 0.01 * SLOWER       # of an event: what an answer to the operator may take
# ... and what an event may. With a sanitizer the dataplane unmaps memory all the time, and each
# time it waits for the CPU of the thread that looks.
ALLOWED = 0.5 * SLOWER
PEER = "10.77.0.9"          # nobody's


@contextlib.contextmanager
def watches(fd, open_=True):
    """Epoll sets that have each of many descriptors of one open file; these are open, or not."""
    with contextlib.ExitStack() as mine, contextlib.ExitStack() as copied:
        copies = [os.dup(fd) for _ in range(COPIES)]
        for copy in copies:
            copied.callback(os.close, copy)
        for _ in range(SETS):
            one = mine.enter_context(select.epoll())
            for copy in copies:
                one.register(copy, select.EPOLLIN | select.EPOLLET)
        if not open_:
            copied.close()
        yield


def event_s():
    """What an event costs on this machine: a look at each watch."""
    def once():
        start = time.thread_time()
        os.write(fd, bytes([1] + 7 * [0]))
        return time.thread_time() - start

    fd = os.eventfd(0)
    try:
        with watches(fd):
            return min(once() for _ in range(3))
    finally:
        os.close(fd)


def setUpModule():
    global EVENT_S
    warm_up()
    EVENT_S = event_s()
    # The kernel looks with interrupts off. Who is woken meanwhile, by another CPU, waits for that,
    # there and back, and no counter of the kernel has it. A host's speed may change by half.
    Watches.slow_s = SLOW_S + 4 * EVENT_S
    print("an event costs %.1f ms" % (EVENT_S * 1e3))


def write_on(fd):
    """Each write looks at all watches. The connection is not ours to keep."""
    os.closerange(3, fd)
    os.closerange(fd + 1, 4096)
    while True:
        with contextlib.suppress(BlockingIOError):
            os.write(fd, bytes([1] + 7 * [0]))


@contextlib.contextmanager
def writers(fd):
    """Processes that write all the time."""
    fork = multiprocessing.get_context("fork")
    them = [fork.Process(target=write_on, args=(fd,), daemon=True) for _ in range(WRITERS)]
    for one in them:
        one.start()
    try:
        yield
    finally:
        for one in them:
            one.kill()
            one.join()


def control_s():
    """What the control lcore has run, whoever else had its CPU."""
    with open("/proc/%d/task/%d/schedstat" % (PID, PID), encoding="ascii") as f:
        return int(f.read().split()[0]) * 1e-9


class Watches(Case):
    def setUp(self):
        super().setUp()
        self.alone = []     # of each event that was measured alone: what the control lcore ran
        self.usual = statistics.median

    def tearDown(self):
        """
        Other threads look, with interrupts off. If the control lcore needs that CPU to answer, it
        waits as long as the look takes. That may happen at an event, not at most of them. Beside
        writers, who do nothing else on each CPU, it may happen at most, but not at all of them. A
        look of its own costs as much each time.
        """
        if self.alone:
            self.assertGreaterEqual(len(self.alone), ROUNDS)
            self.assertLess(self.usual(self.alone), ALLOWED * EVENT_S)

    @contextlib.contextmanager
    def cheap(self, events=1):
        """The control lcore does not look at them, and nobody else waits."""
        with self.watched() as op:
            before, asked = control_s(), op.asked
            yield
            used, asked = control_s() - before, op.asked - asked
        print("%s: %.1f ms of the control lcore, %d events, asked %d times" %
              (self.id(), used * 1e3, events, asked))
        used -= asked * ASKED * EVENT_S
        if events == 1:
            self.alone.append(used)
        else:
            self.assertLess(used, events * ALLOWED * EVENT_S)

    def test_an_eventfd(self):
        """Of a channel: what comes, and what is gone before anybody has heard of it."""
        c = self.client()
        ch = c.call("client_cm_channel_create")["handle"]
        fd, = c.fds[-1:]
        with watches(fd):
            with self.cheap(MANY):
                ids = [c.call("client_cm_resolve", channel=ch, dest_ip=PEER,
                              timeout_ms=1)["handle"]
                       for _ in range(MANY)]
            self.assertTrue(soon(lambda: select.select([fd], [], [], 0)[0]))
            with self.cheap(MANY):
                for handle in ids:
                    c.call("client_cm_destroy", handle=handle)
            c.close()
        self.assert_back()

    def test_an_eventfd_that_ends(self):
        for _ in range(ROUNDS):
            c = self.client()
            c.call("client_cm_channel_create")
            with watches(c.fds[-1]), self.cheap():
                c.close()
                self.assertTrue(soon(lambda: self.clients() == 0))
            self.assert_back()

    def test_what_wakes_workers(self):
        """The dataplane has it last: to close it takes all watches away."""
        for _ in range(ROUNDS):
            c = self.client()
            del c.fds[:]
            c.call("client_presence")
            fd = c.fds[-1]
            with watches(fd, open_=False):
                os.close(fd)
                del c.fds[-1]
                with self.cheap():
                    c.close()
                    self.assertTrue(soon(lambda: self.clients() == 0))
            self.assert_back()

    def test_what_wakes_workers_and_others_write(self):
        """To take it from the workers is to wait for none of the writers: an event each time."""
        self.usual = min
        for _ in range(MORE_ROUNDS):
            if len(self.alone) >= ROUNDS and min(self.alone) < ALLOWED * EVENT_S:
                break
            c = self.client()
            del c.fds[:]
            c.call("client_presence")
            fd = c.fds[-1]
            with watches(fd), writers(fd), self.cheap():
                c.close()
                self.assertTrue(soon(lambda: self.clients() == 0))
            self.assert_back()

    def test_its_end_of_the_socket(self):
        """Answers, and the end."""
        c = self.client()
        with watches(c.sock.fileno()):
            with self.cheap(MANY):
                for _ in range(MANY):
                    c.call("client_pd_create")
            c.close()
        self.assert_back()

    def test_its_end_of_the_socket_at_the_end(self):
        for _ in range(ROUNDS):
            c = self.client()
            with watches(c.sock.fileno()), self.cheap():
                c.sock.shutdown(socket.SHUT_RDWR)     # as if closed: the watches have it, too
                self.assertTrue(soon(lambda: self.clients() == 0))
            self.assert_back()

    def test_sockets_that_are_turned_away(self):
        with contextlib.ExitStack() as mine:
            for _ in range(140):
                mine.enter_context(connect())
            for _ in range(AWAY):
                s = mine.enter_context(socket.socket(socket.AF_UNIX))
                with watches(s.fileno()), self.cheap():
                    s.connect(CLIENTS)
                    self.assertIn(b"error", s.recv(65536))
                    self.assertEqual(b"", s.recv(65536))
        self.assert_back()


if __name__ == "__main__":
    unittest.main()
