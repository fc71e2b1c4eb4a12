# SPDX-License-Identifier: BSD-3-Clause
"""Memory of clients that want to hurt others: it is their own, all of it is there, and it stays.

Run by run.py; attacks.py says what is expected while an attack goes on, and after it.
"""
import contextlib
import ctypes
import fcntl
import json
import mmap
import os
import stat
import unittest

import attackers
from attacks import (Case, EINVAL, ENODATA, EPERM, F_GET_SEALS, F_SEAL_FUTURE_WRITE, F_SEAL_SEAL,
                     F_SEAL_SHRINK, MIB, SOCKET, TURN_S, control_turns, jsonrpc, memfd, shared_kib,
                     soon, warm_up)

setUpModule = warm_up


class Memory(Case):
    """A region's pages are there, are the client's, and stay."""

    def test_no_holes_can_be_punched(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(MIB)
        with mmap.mmap(fd, MIB) as m:
            self.region(c, pd, fd, length=MIB)
            with self.assertRaises(OSError) as e:
                m.madvise(mmap.MADV_REMOVE)
            self.assertEqual(EPERM, e.exception.errno)
            m[0] = 7    # it still writes there
        seals = fcntl.fcntl(fd, F_GET_SEALS)
        self.assertTrue(seals & F_SEAL_FUTURE_WRITE)
        os.close(fd)

    def test_holes_are_refused(self):
        """Whoever touches a page first pays for it."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        shared = shared_kib()
        for _ in range(4):
            fd = memfd(32 * MIB, filled=False)
            text = self.refused(ENODATA, c, "client_mr_register",
                                {"pd": pd, "length": 4096, "addr": 0, "access": 1}, [fd])
            self.assertIn("MADV_POPULATE_WRITE", text)
            self.assertEqual(0, os.fstat(fd).st_blocks)
            # It was not changed: filled, it is good.
            with mmap.mmap(fd, 32 * MIB) as m:
                for at in range(0, 32 * MIB, mmap.PAGESIZE):
                    m[at] = 1
            os.close(fd)
        self.assertLess(shared_kib(), shared + 16 * 1024)

    def test_blocks_behind_the_end_do_not_count(self):
        """As many blocks as the size asks for, but not there."""
        libc = ctypes.CDLL(None, use_errno=True)
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        size = 2 * MIB      # of whole pages, also where they are huge
        fd = memfd(size, filled=False, seals=F_SEAL_SHRINK)
        keep_size = 1
        self.assertEqual(0, libc.fallocate(fd, keep_size, ctypes.c_long(size),
                                           ctypes.c_long(size)))
        self.assertEqual(size, os.fstat(fd).st_blocks * 512)
        self.refused(ENODATA, c, "client_mr_register",
                     {"pd": pd, "length": 4096, "addr": 0, "access": 1}, [fd])
        os.close(fd)

    def test_what_cannot_be_sealed(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
        fd = memfd(4096, seals=F_SEAL_SHRINK | F_SEAL_SEAL)
        self.assertIn("F_SEAL_SEAL", self.refused(EPERM, c, "client_mr_register", params, [fd]))
        os.close(fd)
        fd = memfd(4096, seals=F_SEAL_SHRINK | F_SEAL_FUTURE_WRITE)
        self.assertIn("new one", self.refused(EPERM, c, "client_mr_register", params, [fd]))
        os.close(fd)

    def test_one_memfd_many_regions(self):
        """Registered again, deregistered, registered again: it is mapped once."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(4 * MIB)
        one = self.region(c, pd, fd)
        two = self.region(c, pd, fd, offset=MIB, length=3 * MIB)
        self.assertEqual(one["memory"], two["memory"])
        self.assertNotEqual(one["key"], two["key"])
        self.refused(EINVAL, c, "client_mr_register",
                     {"pd": pd, "length": 1, "offset": 4 * MIB, "addr": 0, "access": 1}, [fd])
        for r in (one, two):
            c.call("client_mr_deregister", handle=r["handle"])
        again = self.region(c, pd, fd, offset=8192)
        self.assertEqual(one["memory"], again["memory"])
        with jsonrpc.Connection(SOCKET) as op:
            row = op.call("client_list")[0]
        self.assertEqual(4 * MIB, row["mapped"])
        os.close(fd)

    def test_files_that_are_not_sealed(self):
        c, fd = self.client(), memfd(4096)
        lay = {"length": 4096, "offset": 0, "pieces": [{"offset": 0, "length": 4096}]}
        said = self.refused(EPERM, c, "client_memory_lay", lay, [fd])
        self.assertIn('only control.client_memory "any"', said)
        os.close(fd)
        c.close()
        self.assert_back()

    def test_a_socket_that_is_inherited(self):
        """What is sealed may be taken by another connection of its process, but not for another one
        that holds that connection's socket."""
        one, two = self.client(), self.client()
        pds = [c.call("client_pd_create")["handle"] for c in (one, two)]
        fd = memfd(4096)
        attackers.make_mr(two, pds[1], fd=fd)
        attackers.make_mr(one, pds[0], fd=fd)
        child = os.fork()
        if child == 0:
            code = 1
            try:
                other = memfd(4096)
                attackers.make_mr(two, pds[1], fd=other)   # its own: taken, and sealed by that
                attackers.make_mr(one, pds[0], fd=other)
            except jsonrpc.RpcError:
                code = 7
            finally:
                os._exit(code)
        self.assertEqual(7, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        fd = memfd(4096)                                   # no connection of one process any more
        attackers.make_mr(two, pds[1], fd=fd)
        with self.assertRaises(jsonrpc.RpcError):
            attackers.make_mr(one, pds[0], fd=fd)

    def test_memory_comes_back(self):
        """With its last region if it was the only one, when it is forgotten, or for room."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        op = jsonrpc.Connection(SOCKET)
        self.addCleanup(op.close)

        def memory():
            return op.call("client_list")[0]["mapped"]
        base = memory()
        fd = memfd(8 * MIB)
        r = self.region(c, pd, fd, once=True)
        self.assertEqual(base + 8 * MIB, memory())
        c.call("client_mr_deregister", handle=r["handle"])
        os.close(fd)
        self.assertTrue(soon(lambda: memory() == base))
        fd = memfd(8 * MIB)
        r = self.region(c, pd, fd)
        c.call("client_mr_deregister", handle=r["handle"])
        c.call("client_memory_forget", handle=r["memory"])
        os.close(fd)
        self.assertTrue(soon(lambda: memory() == base))
        for _ in range(12):     # the limit is 64M
            fd = memfd(16 * MIB)
            r = self.region(c, pd, fd)
            os.close(fd)
            c.call("client_mr_deregister", handle=r["handle"])
        self.assertLessEqual(memory(), 64 * MIB)
        c.close()
        op.close()
        self.assert_back()

    def test_reconnecting_leaves_nothing(self):
        """The client keeps its memfds and comes again: the dataplane does not."""
        shared, kept = shared_kib(), []
        for _ in range(10):
            c = self.client()
            pd = c.call("client_pd_create")["handle"]
            fd = memfd(32 * MIB)
            self.region(c, pd, fd, length=32 * MIB)
            kept.append(fd)
            c.close()
        self.assert_back()
        self.assertTrue(soon(lambda: shared_kib() < shared + 16 * 1024),
                        (shared, shared_kib()))
        for fd in kept:
            os.close(fd)


class Rings(Case):
    """The dataplane makes them, their client maps them, and workers read them."""

    def areas(self, c):
        """Descriptors of ring memory that came, which are this client's from now on."""
        fds = [fd for fd in c.fds if stat.S_ISREG(os.fstat(fd).st_mode)]
        c.fds = [fd for fd in c.fds if fd not in fds]
        for fd in fds:
            self.addCleanup(os.close, fd)
        return fds

    def assert_sealed(self, fd, m):
        with self.assertRaises(OSError) as e:
            m.madvise(mmap.MADV_REMOVE)
        self.assertEqual(EPERM, e.exception.errno)
        with self.assertRaises(OSError) as e:
            mmap.mmap(fd, 0)
        self.assertEqual(EPERM, e.exception.errno)
        m[-1] = 7   # what was mapped before can be written to

    def test_no_holes_in_the_first_area(self):
        """Doorbells: no worker looks at them before they are sealed."""
        c = self.client()
        fd, = self.areas(c)
        with mmap.mmap(fd, 0) as m:
            m.madvise(mmap.MADV_REMOVE)     # still open, and nobody reads it
            c.call("client_pd_create")
            self.assert_sealed(fd, m)
            # What was taken out is there again, at its client's cost only once. Pages may be huge.
            self.assertIn(os.fstat(fd).st_blocks * 512, (os.fstat(fd).st_size, 2 * MIB))

    def test_no_holes_in_a_later_area(self):
        """Its descriptor comes first, and the queue is made in it when it is sealed."""
        c = self.client()
        pd, cq = c.call("client_pd_create"), c.call("client_cq_create", cqe=16)
        self.areas(c)
        c.send("client_qp_create", {
            "pd": pd["handle"], "send_cq": cq["handle"], "recv_cq": cq["handle"], "qp_type": "RC",
            "max_send_wr": 1900, "max_recv_wr": 8, "max_send_sge": 8, "max_recv_sge": 1,
            "max_inline_data": 0})
        first = json.loads(c.line())["result"]
        self.assertIs(True, first["again"])
        self.assertNotIn("qp_num", first)
        fd, = self.areas(c)
        self.assertEqual(first["areas"][0]["bytes"], os.fstat(fd).st_size)
        with mmap.mmap(fd, 0) as m:
            m.madvise(mmap.MADV_REMOVE)
            made = attackers.make_qp(c, True, max_send_wr=1900, max_send_sge=8)
            self.assertEqual(first["areas"][0]["area"], made["sq"]["area"])
            self.assert_sealed(fd, m)

    def test_what_was_never_mapped(self):
        """It is the client's own loss."""
        c = self.client()
        fd, = self.areas(c)
        c.call("client_pd_create")
        with self.assertRaises(OSError):
            mmap.mmap(fd, 0)
        attackers.make_qp(c, True, pd=1, send_cq=c.call("client_cq_create", cqe=16)["handle"])
        c.close()
        self.assert_back()

    def test_what_could_not_be_mapped(self):
        """A client that says so gets no queue there, and its memory back."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        op = jsonrpc.Connection(SOCKET)
        self.addCleanup(op.close)

        def memory():
            return op.call("client_list")[0]["memory"]
        base = memory()
        for number in range(1, 20):
            c.send("client_cq_create", {"cqe": 16384})
            area, = json.loads(c.line())["result"]["areas"]
            self.assertEqual((number, area["bytes"]), (area["area"], memory() - base))
            self.areas(c)
            c.call("client_area_lost", area=number)
            self.assertEqual(base, memory())
        self.assertEqual(20, c.call("client_cq_create", cqe=16384)["area"])
        for number in (0, 1, 20, 21):     # with doorbells, gone, with a queue, none
            self.refused(EINVAL, c, "client_area_lost", {"area": number})
        attackers.make_qp(c, True, pd=pd, send_cq=c.call("client_cq_create", cqe=16)["handle"])
        c.close()
        op.close()
        self.assert_back()

    def test_a_hole_is_punched_all_the_time(self):
        """By another process, which tries to keep the seal away."""
        c = self.client()
        fd, = self.areas(c)
        begun, begins = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                with mmap.mmap(fd, 0) as m:
                    m.madvise(mmap.MADV_REMOVE)
                    os.write(begins, b"1")
                    with contextlib.suppress(OSError):
                        while True:
                            m.madvise(mmap.MADV_REMOVE)
                os._exit(0)
            finally:
                os._exit(1)
        os.close(begins)
        with os.fdopen(begun, "rb") as f:
            self.assertEqual(b"1", f.read(1))   # before anything is sealed
        with self.watched():
            for _ in range(20):
                c.call("client_pd_destroy", handle=c.call("client_pd_create")["handle"])
        _, status = os.waitpid(pid, 0)
        self.assertEqual(0, status)     # it was refused at last


class Pieces(Case):
    """A region of several pieces is a mapping for each, and a process has 65,530."""

    def region_of_pieces(self, c, pd, fd):
        """Eight of them, none of which lies behind the one before."""
        pieces = [{"offset": at * mmap.PAGESIZE, "length": mmap.PAGESIZE}
                  for at in range(14, -1, -2)]
        return c.call_with("client_mr_register", {
            "pd": pd, "length": 8 * mmap.PAGESIZE, "addr": 0, "access": 1, "pieces": pieces},
            [fd] * 8)

    def test_many_beyond_what_may_be_locked(self):
        """Some connections have all that there is; another one gets its own."""
        conns, n = [], 0
        with self.watched():
            with self.assertRaises(jsonrpc.RpcError) as refused:
                for _ in range(12):
                    conns.append(self.client())
                    pd = conns[-1].call("client_pd_create")["handle"]
                    fd = memfd(16 * mmap.PAGESIZE)
                    self.addCleanup(os.close, fd)
                    for _ in range(200):
                        self.region_of_pieces(conns[-1], pd, fd)
                        n += 1
            self.assertIn("pieces", str(refused.exception))
            self.assertGreater(n, 250)
            conns.append(self.client())
            pd = conns[-1].call("client_pd_create")["handle"]
            for _ in range(2):
                self.region_of_pieces(conns[-1], pd, fd)
            for c in conns:
                c.close()
        self.assert_back()


STEPS = (("INIT", ("port", "pkey", "qp_access_flags")),
         ("RTR", ("ah_attr", "path_mtu", "dest_qp_num", "rq_psn", "max_dest_rd_atomic",
                  "min_rnr_timer")),
         ("RTS", ("sq_psn", "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic")))


def walk(call, qp_num, port, dest_ip, dest_qp_num):
    attrs = {"port": port, "pkey": "0xffff", "qp_access_flags": ["REMOTE_WRITE"],
             "ah_attr": {"dest_ip": dest_ip}, "path_mtu": 1024, "dest_qp_num": dest_qp_num,
             "rq_psn": 0, "sq_psn": 0, "max_dest_rd_atomic": 1, "min_rnr_timer": 12,
             "timeout": 14, "retry_cnt": 7, "rnr_retry": 7, "max_rd_atomic": 1}
    for state, keys in STEPS:
        call(qp_num=qp_num, qp_state=state, **{k: attrs[k] for k in keys})


class Failures(Case):
    """What is told of a refused key names the region that may have been meant."""

    def failing(self, op, c):
        """A queue pair of the client that an operator's writes to, if it had a key."""
        mine = attackers.make_qp(c, True)["qp_num"]
        own = op.call("qp_create", qp_type="RC", pd="pd", send_cq="cq", recv_cq="cq",
                      port="left")["qp_num"]
        walk(lambda **p: c.call("client_qp_modify", **p), mine, "right", "10.77.0.1", own)
        walk(lambda **p: op.call("qp_modify", **p), own, "left", "10.77.0.2", mine)
        return own

    def test_many_events_beside_many_regions(self):
        """Each would be looked at for each event."""
        conns = [self.client() for _ in range(11)]
        for c in conns:
            own = memfd(4096)
            pd = c.call("client_pd_create")["handle"]
            for _ in range(600):
                self.region(c, pd, own)
            os.close(own)
        c = self.client()
        c.call("client_pd_create")
        c.call("client_cq_create", cqe=64)
        with jsonrpc.Connection(SOCKET, 60) as op:
            op.call("pd_create", name="pd")
            op.call("cq_create", name="cq", cqe=64)
            op.call("mr_register", name="mr", pd="pd", length=4096, access=["LOCAL_WRITE"])
            qps = [self.failing(op, c) for _ in range(40)]
            for qp in qps:
                op.call("post_send", qp_num=qp, wrs=[{
                    "wr_id": 7, "opcode": "RDMA_WRITE", "rkey": "0x12345678",
                    "sg_list": [{"mr": "mr", "offset": 0, "length": 64}],
                    "remote_addr": "0x10000"}])
            done = []
            self.assertTrue(soon(lambda: len(
                done.extend(op.call("poll_cq", cq="cq", max=64)) or done) == 40))
            with control_turns(op) as longest:
                events = c.call("client_events", max=256)
            for qp in qps:
                op.call("qp_destroy", qp_num=qp)
            op.call("mr_deregister", name="mr")
            op.call("cq_destroy", name="cq")
            op.call("pd_dealloc", name="pd")
        # 2 ms; 5.3 were seen beside six busy programs a CPU. To look at each takes 15.
        self.assertLess(longest[0], 2 * TURN_S)
        self.assertEqual(40, len(events))
        self.assertIn("is no region's", events[0]["detail"])
        self.assertIn("was not looked for", events[-1]["detail"])
        for c in conns + [c]:
            c.close()
        self.assert_back()

    def overflowing(self, c, rings):
        """A queue of one completion, and a queue pair that will flush two receives into it."""
        cq = c.call("client_cq_create", cqe=1)["handle"]
        qp = c.call("client_qp_create", pd=1, send_cq=cq, recv_cq=cq, qp_type="RC", max_send_wr=1,
                    max_recv_wr=2, max_send_sge=1, max_recv_sge=1, max_inline_data=0)
        c.call("client_qp_modify", qp_num=qp["qp_num"], qp_state="INIT", port="left", pkey=0xffff,
               qp_access_flags=[])
        self.assertEqual(0, qp["rq"]["area"])
        at = qp["rq"]["offset"]
        rings[at:at + 4] = (2).to_bytes(4, "little")    # its producer's index
        return qp["qp_num"]

    def test_many_events_beside_many_queues(self):
        """Each queue would be looked at for each event."""
        conns = [self.client() for _ in range(11)]
        for c in conns:
            with contextlib.suppress(jsonrpc.RpcError):     # as many as there may be
                while True:
                    c.call("client_cq_create", cqe=1)
        c, told = self.client(), []
        area = next(fd for fd in c.fds if stat.S_ISREG(os.fstat(fd).st_mode))
        with mmap.mmap(area, 0) as rings:
            c.call("client_pd_create")
            qps = [self.overflowing(c, rings) for _ in range(200)]
        for qp_num in qps:
            c.call("client_qp_modify", qp_num=qp_num, qp_state="ERR")
        with jsonrpc.Connection(SOCKET, 60) as op, control_turns(op) as longest:
            self.assertTrue(soon(lambda: told.extend(
                e["cq"] for e in c.call("client_events", max=256)) or len(told) == 200))
        self.assertLess(longest[0], TURN_S)
        self.assertEqual(list(range(1, 201)), sorted(told))
        for c in conns + [c]:
            c.close()
        self.assert_back()


if __name__ == "__main__":
    unittest.main()
