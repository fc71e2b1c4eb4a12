# SPDX-License-Identifier: BSD-3-Clause
"""What one client can reach of another, and what the control socket makes of wrong descriptors.

Requests go over the socket as they are, without librocelane, which would not send most of them.
Run by run.py; the socket's path is the first argument, the clients' own socket stands next to it.
"""
import fcntl
import json
import mmap
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

SOCKET = sys.argv.pop(1)
F_ADD_SEALS, F_SEAL_SHRINK, F_SEAL_WRITE = 1033, 2, 8
EPERM, ENOENT, EACCES, EINVAL, ENOMEM, ENOSPC = 1, 2, 13, 22, 12, 28
ABOUT_CLIENTS = ("client_list", "client_users", "client_end", "client_set")     # for operators


class Connection(jsonrpc.Connection):
    def __init__(self, path=SOCKET):
        super().__init__(path)

    def call(self, method, params=None, fds=()):
        return self.call_with(method, params, fds)


def memfd(size, seals=F_SEAL_SHRINK, filled=True):
    fd = os.memfd_create("test", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    if filled:
        for at in range(0, size, mmap.PAGESIZE):
            os.pwrite(fd, b"\0", at)
    if seals:
        fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Case(unittest.TestCase):
    has_clients = False

    def connect(self, path=SOCKET):
        c = Connection(path)
        self.addCleanup(c.close)
        return c

    def others_gone(self):
        """Clients of a test are counted until the dataplane is done with them."""
        operator = Connection()
        until = time.monotonic() + 60
        while operator.call("client_list") and time.monotonic() < until:
            time.sleep(0.01)
        self.assertEqual([], operator.call("client_list"))
        operator.close()

    def client(self, path=SOCKET):
        if not self.has_clients:
            self.has_clients = True
            self.others_gone()
        c = self.connect(path)
        c.me = c.call("client_open", {"abi": 1, "name": "test"})
        return c

    def refused(self, errno, connection, method, params=None, fds=()):
        with self.assertRaises(jsonrpc.RpcError) as e:
            connection.call(method, params, fds)
        self.assertEqual(errno, e.exception.errno, e.exception)
        return str(e.exception)

    def mr(self, c, pd, fd, **more):
        params = dict({"pd": pd, "length": 4096, "addr": 0x10000, "access": 15}, **more)
        try:
            return c.call("client_mr_register", params, [fd])
        finally:
            os.close(fd)

    def make_qp(self, c, **more):
        pd = c.call("client_pd_create")["handle"]
        cq = c.call("client_cq_create", {"cqe": 16})["handle"]
        params = dict({"pd": pd, "send_cq": cq, "recv_cq": cq, "qp_type": "RC",
                       "max_send_wr": 8, "max_recv_wr": 8, "max_send_sge": 1,
                       "max_recv_sge": 1, "max_inline_data": 0}, **more)
        return pd, cq, c.call("client_qp_create", params)


class Presence(Case):
    """Where the workers are: to be read by everybody, to be written by nobody but them."""

    def presence(self):
        c = self.client()
        for fd in c.fds:
            os.close(fd)
        c.fds = []
        size = c.call("client_presence")["bytes"]
        self.assertEqual(2, len(c.fds))
        return c, c.fds[0], c.fds[1], size

    def test_it_is_read_only(self):
        _, fd, _, size = self.presence()
        with mmap.mmap(fd, size, prot=mmap.PROT_READ) as page:
            self.assertEqual(size, len(page))
        with self.assertRaises(PermissionError):
            mmap.mmap(fd, size)
        with self.assertRaises(PermissionError):
            os.pwrite(fd, b"x", 0)
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, 0)
        with self.assertRaises(PermissionError):
            os.ftruncate(fd, 1 << 30)
        with self.assertRaises(PermissionError):
            fcntl.fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE)

    def test_asked_twice_it_is_the_same_descriptor(self):
        c, _, wake, size = self.presence()
        self.assertEqual(size, c.call("client_presence")["bytes"])
        os.write(wake, (7).to_bytes(8, "little"))
        self.assertEqual(7, int.from_bytes(os.read(c.fds[3], 8), "little"))

    def test_a_counter_that_is_full_stops_nobody(self):
        """Nobody reads it; a client that fills it up and goes leaves the others what they had."""
        c, _, wake, _ = self.presence()
        os.write(wake, (0xfffffffffffffffe).to_bytes(8, "little"))
        with self.assertRaises(BlockingIOError):
            os.write(wake, (1).to_bytes(8, "little"))
        kept = os.dup(wake)
        c.close()
        self.addCleanup(os.close, kept)
        for _ in range(100):
            os.read(kept, 8)
            os.write(kept, (1).to_bytes(8, "little"))
        self.assertEqual([], self.client().call("client_events"))


class Descriptors(Case):
    """A region is made of a memfd that cannot shrink, or not at all."""

    def test_good(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        got = self.mr(c, pd, memfd(4096))
        self.assertGreater(got["key"], 0)
        self.assertNotEqual(got["key"], self.mr(c, pd, memfd(8192), offset=1000)["key"])

    def test_wrong_kinds(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        r, w = os.pipe()
        s1, s2 = socket.socketpair()
        kinds = {"pipe": r, "pipe's other end": w, "socket": s1.detach(), "other": s2.detach(),
                 "/dev/null": os.open("/dev/null", os.O_RDWR),
                 "/dev/zero": os.open("/dev/zero", os.O_RDWR),
                 "folder": os.open("/", os.O_RDONLY),
                 "file": os.open(__file__, os.O_RDONLY)}
        for name, fd in kinds.items():
            with self.subTest(name), self.assertRaises(jsonrpc.RpcError) as e:
                self.mr(c, pd, fd)
            self.assertEqual(EINVAL, e.exception.errno, name)

    def test_seals_and_sizes(self):
        rows = [
            ("not sealed", memfd(4096, 0), {}, EPERM),
            ("cannot be written", memfd(4096, F_SEAL_SHRINK | F_SEAL_WRITE), {}, EACCES),
            ("empty", memfd(0), {}, EINVAL),
            ("too small", memfd(4095), {}, EINVAL),
            ("offset behind its end", memfd(4096), {"offset": 8192}, EINVAL),
            ("offset runs over", memfd(4096), {"offset": "0xfffffffffffff000"}, EINVAL),
            ("longer than it is", memfd(8192), {"offset": 4097}, EINVAL),
            ("address runs over", memfd(4096), {"addr": "0xfffffffffffff800"}, EINVAL),
            ("over the limit", memfd(1 << 31, filled=False), {"length": 1 << 31}, ENOMEM),
        ]
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        for name, fd, more, errno in rows:
            with self.subTest(name), self.assertRaises(jsonrpc.RpcError) as e:
                self.mr(c, pd, fd, **more)
            self.assertEqual(errno, e.exception.errno, name)
        self.mr(c, pd, memfd(4096))

    def test_read_only(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(4096)
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        os.close(fd)
        with self.assertRaises(jsonrpc.RpcError) as e:
            self.mr(c, pd, again)
        self.assertEqual(EACCES, e.exception.errno)

    def test_none_and_many(self):
        """No descriptor is a fault of the call; what nobody takes is closed."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        params = {"pd": pd, "length": 4096, "addr": 0, "access": 1}
        with self.assertRaises(jsonrpc.RpcError) as e:
            c.call("client_mr_register", params)
        self.assertEqual(-32602, e.exception.code)
        fd = memfd(4096)
        for _ in range(100):
            c.call("client_ports", None, [fd] * 8)
        with self.assertRaises(jsonrpc.RpcError) as e:
            c.call("client_mr_register", params)
        self.assertEqual(-32602, e.exception.code)
        c.call("client_mr_register", params, [fd])
        os.close(fd)

    def test_RESP_07_atomics_need_addresses_in_step(self):
        """The bytes lie where the client has them: an ATOMIC's at a multiple of 8 there, too."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        for addr, offset, access in ((0x10004, 0, 15), (0x10000, 4, 15), (0x10007, 8, 9)):
            with self.assertRaises(jsonrpc.RpcError) as e:
                self.mr(c, pd, memfd(8192), addr=addr, offset=offset, access=access)
            self.assertEqual(EINVAL, e.exception.errno)
            for word in ("REMOTE_ATOMIC", hex(addr), "offset %d" % offset, "remainder by 8"):
                self.assertIn(word, str(e.exception))
        for addr, offset, access in ((0x10004, 0, 7), (0x10004, 4, 15), (0x10001, 4097, 15)):
            self.mr(c, pd, memfd(12288), addr=addr, offset=offset, access=access)

    def test_punched(self):
        """Nobody takes a page out of a region that is registered."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        fd = memfd(1 << 20)
        with mmap.mmap(fd, 1 << 20) as m:
            c.call("client_mr_register", {"pd": pd, "length": 1 << 20, "addr": 0, "access": 1},
                   [fd])
            with self.assertRaises(PermissionError):
                m.madvise(mmap.MADV_REMOVE)
        os.close(fd)
        c.call("client_ports")


class Isolation(Case):

    def test_handles_are_ones_own(self):
        one, two = self.client(), self.client()
        pd, cq, qp = self.make_qp(one)
        srq = one.call("client_srq_create", {"pd": pd, "max_wr": 4, "max_sge": 1})["handle"]
        two.call("client_pd_create")
        for method, params in (
                ("client_cq_destroy", {"handle": cq}),
                ("client_channel_destroy", {"handle": 1}),
                ("client_mr_deregister", {"handle": 1}),
                ("client_srq_query", {"handle": srq}),
                ("client_srq_modify", {"handle": srq, "srq_limit": 1}),
                ("client_srq_destroy", {"handle": srq}),
                ("client_qp_query", {"qp_num": qp["qp_num"]}),
                ("client_qp_modify", {"qp_num": qp["qp_num"], "qp_state": "ERR"}),
                ("client_qp_destroy", {"qp_num": qp["qp_num"]})):
            with self.subTest(method):
                self.refused(ENOENT, two, method, params)
        self.assertEqual("RESET", one.call("client_qp_query",
                                           {"qp_num": qp["qp_num"]})["qp_state"])
        self.assertEqual(1, pd)
        with self.assertRaises(jsonrpc.RpcError) as e:
            self.make_qp(two, srq=srq)
        self.assertEqual(ENOENT, e.exception.errno)
        self.assertEqual(0, one.call("client_srq_query", {"handle": srq})["srq_limit"])

    def test_operators_cannot_name_a_clients_srq(self):
        c = self.client()
        pd, _, _ = self.make_qp(c)
        c.call("client_srq_create", {"pd": pd, "max_wr": 4, "max_sge": 1})
        operator = self.connect()
        mine = [s["name"] for s in operator.call("srq_list") if s["name"].startswith(
            "client %d " % c.me["client"])]
        self.assertEqual(1, len(mine))
        for method, params in (("srq_destroy", {"name": mine[0]}),
                               ("srq_modify", {"name": mine[0], "srq_limit": 1}),
                               ("post_srq_recv", {"srq": mine[0], "wrs": [{"wr_id": 1}]})):
            with self.subTest(method), self.assertRaises(jsonrpc.RpcError) as e:
                operator.call(method, params)
            self.assertEqual(-32602, e.exception.code)

    def test_save_config_leaves_clients_out(self):
        """What is saved starts a dataplane: with what an operator made, and nothing else."""
        operator = self.connect()
        before = operator.call("save_config")
        c = self.client()
        pd, _, _ = self.make_qp(c)
        self.mr(c, pd, memfd(4096))
        srq = c.call("client_srq_create", {"pd": pd, "max_wr": 4, "max_sge": 1})["handle"]
        c.call("client_qp_create", {
            "pd": pd, "send_cq": 1, "recv_cq": 1, "srq": srq, "qp_type": "RC",
            "max_send_wr": 1, "max_recv_wr": 0, "max_send_sge": 1, "max_recv_sge": 0,
            "max_inline_data": 0})
        self.assertEqual(before, operator.call("save_config"))
        operator.call("pd_create", {"name": "ours"})
        operator.call("srq_create", {"name": "shared", "pd": "ours"})
        after = operator.call("save_config")
        operator.call("srq_destroy", {"name": "shared"})
        operator.call("pd_dealloc", {"name": "ours"})
        self.assertEqual((["ours"], ["shared"]),
                         (after["pds"], [s["name"] for s in after["srqs"]]))
        with tempfile.NamedTemporaryFile("w", suffix=".json") as f:
            json.dump(after, f)
            f.flush()
            checked = subprocess.run([os.environ["ROCELANE"], "--config", f.name, "--check"],
                                     capture_output=True, check=False, text=True)
        self.assertEqual(0, checked.returncode, checked.stderr)

    def methods(self):
        """Every one that there is: those of operators, and those of clients."""
        names = self.connect().call("rpc_get_methods")
        clients = [n for n in names if n.startswith("client_") and n not in ABOUT_CLIENTS]
        self.assertGreater(len(clients), 40)
        self.assertTrue(set(ABOUT_CLIENTS) < set(names))
        return [n for n in names if n not in clients], clients

    def test_operators_methods_are_not_clients(self):
        operators, _ = self.methods()
        c = self.client()
        for method in operators:
            with self.subTest(method):
                self.refused(EPERM, c, method)

    def test_clients_methods_need_a_client(self):
        _, clients = self.methods()
        c = self.connect()
        for method in clients:
            if method != "client_open":
                with self.subTest(method):
                    self.assertIn("client_open", self.refused(EPERM, c, method))

    def test_the_clients_socket_serves_clients_alone(self):
        operators, _ = self.methods()
        c = self.connect(os.path.join(os.path.dirname(SOCKET), "clients"))
        for opened in (False, True):
            if opened:
                c.call("client_open", {"abi": 1})
                c.call("client_pd_create")
            for method in operators:
                with self.subTest(method, opened=opened):
                    self.refused(EPERM, c, method)

    def test_abi(self):
        self.assertIn("abi", self.refused(71, self.connect(), "client_open", {"abi": 2}))

    def test_names_cannot_be_taken(self):
        c = self.client()
        c.call("client_pd_create")
        with self.assertRaises(jsonrpc.RpcError) as e:
            self.connect().call("pd_dealloc", {"name": "client %d pd 1" % c.me["client"]})
        self.assertEqual(-32602, e.exception.code)

    def test_operators_see_but_do_not_post(self):
        c = self.client()
        _, _, qp = self.make_qp(c)
        operator = self.connect()
        rows = [r for r in operator.call("client_list") if r["client"] == c.me["client"]]
        self.assertEqual([(os.getpid(), 1, os.getuid(), 1, 0)],
                         [(r["pid"], r["qps"], r["uid"], r["weight"], r["rate"]) for r in rows])
        self.assertIn(qp["qp_num"], [q["qp_num"] for q in operator.call("qp_list")])
        got = operator.call("post_recv", {"qp_num": qp["qp_num"], "wrs": [{"wr_id": 1}]})
        self.assertEqual((0, EPERM), (got["posted"], got["refused"]["errno"]))
        self.assertFalse([q for q in operator.call("save_config")["qps"]
                          if q["qp_num"] == qp["qp_num"]])
        operator.call("qp_destroy", {"qp_num": qp["qp_num"]})
        self.refused(ENOENT, c, "client_qp_query", {"qp_num": qp["qp_num"]})

    def test_numbers_are_unpredictable(self):
        c = self.client()
        pd, cq, _ = self.make_qp(c)
        params = {"pd": pd, "send_cq": cq, "recv_cq": cq, "qp_type": "RC", "max_send_wr": 1,
                  "max_recv_wr": 1, "max_send_sge": 1, "max_recv_sge": 1, "max_inline_data": 0}
        numbers = [c.call("client_qp_create", params)["qp_num"] for _ in range(32)]
        self.assertEqual(32, len(set(numbers)))
        steps = {(b - a) & 0xffffff for a, b in zip(numbers, numbers[1:])}
        self.assertGreater(len(steps), 28, numbers)
        keys = [self.mr(c, pd, memfd(4096))["key"] for _ in range(32)]
        self.assertGreater(len({b - a for a, b in zip(keys, keys[1:])}), 28, keys)


class Limits(Case):
    """run.py's --control has: qps 40, cqs 6, srqs 4, pds 5, mrs 40, outstanding 2000."""

    def test_counts(self):
        c = self.client()
        for _ in range(5):
            c.call("client_pd_create")
        self.assertIn("client_limits.pds", self.refused(ENOSPC, c, "client_pd_create"))
        for _ in range(6):
            c.call("client_cq_create", {"cqe": 1})
        self.refused(ENOSPC, c, "client_cq_create", {"cqe": 1})
        params = {"pd": 1, "max_wr": 1, "max_sge": 1}
        for _ in range(4):
            c.call("client_srq_create", params)
        self.assertIn("client_limits.srqs",
                      self.refused(ENOSPC, c, "client_srq_create", params))
        c.call("client_srq_destroy", {"handle": 2})
        c.call("client_srq_create", params)

    def test_entries_of_srqs_are_outstanding(self):
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        srq = c.call("client_srq_create", {"pd": pd, "max_wr": 1500, "max_sge": 1})["handle"]
        self.assertIn("client_limits.outstanding", self.refused(
            ENOSPC, c, "client_srq_create", {"pd": pd, "max_wr": 501, "max_sge": 1}))
        self.refused(ENOSPC, c, "client_srq_modify", {"handle": srq, "max_wr": 2001})
        c.call("client_srq_modify", {"handle": srq, "max_wr": 2000})
        c.call("client_srq_modify", {"handle": srq, "max_wr": 10})
        self.refused(EINVAL, c, "client_srq_modify", {"handle": srq, "srq_limit": 11})
        c.call("client_srq_create", {"pd": pd, "max_wr": 1990, "max_sge": 1})
        for handle in (1, 2):
            c.call("client_srq_destroy", {"handle": handle})
        rows = [r for r in self.connect().call("client_list") if r["client"] == c.me["client"]]
        self.assertEqual([(0, 0)], [(r["srqs"], r["outstanding"]) for r in rows])

    def test_memory_of_srqs_comes_back(self):
        """Made, grown and destroyed over and over: the client's memory does not grow."""
        c = self.client()
        pd = c.call("client_pd_create")["handle"]
        for _ in range(200):
            srq = c.call("client_srq_create", {"pd": pd, "max_wr": 16, "max_sge": 16})
            c.call("client_srq_modify", {"handle": srq["handle"], "max_wr": 1000})
            c.call("client_srq_destroy", {"handle": srq["handle"]})
        rows = [r for r in self.connect().call("client_list") if r["client"] == c.me["client"]]
        self.assertLess(rows[0]["memory"], 2 << 20)

    def test_outstanding(self):
        c = self.client()
        self.make_qp(c, max_send_wr=1000, max_recv_wr=900)
        with self.assertRaises(jsonrpc.RpcError) as e:
            self.make_qp(c, max_send_wr=100, max_recv_wr=100)
        self.assertEqual(ENOSPC, e.exception.errno)
        self.make_qp(c, max_send_wr=10, max_recv_wr=10)

    def test_qps_and_their_memory_come_back(self):
        c = self.client()
        pd, cq, qp = self.make_qp(c)
        c.call("client_qp_destroy", {"qp_num": qp["qp_num"]})
        params = {"pd": pd, "send_cq": cq, "recv_cq": cq, "qp_type": "RC", "max_send_wr": 20,
                  "max_recv_wr": 20, "max_send_sge": 4, "max_recv_sge": 4,
                  "max_inline_data": 0}
        for _ in range(10):
            made = [c.call("client_qp_create", params)["qp_num"] for _ in range(40)]
            self.refused(ENOSPC, c, "client_qp_create", params)
            for number in made:
                c.call("client_qp_destroy", {"qp_num": number})
        rows = [r for r in self.connect().call("client_list") if r["client"] == c.me["client"]]
        self.assertEqual([(0, 0)], [(r["qps"], r["outstanding"]) for r in rows])
        self.assertLess(rows[0]["memory"], 2 << 20)

    def test_clients(self):
        def gone():
            return len(self.connect().call("client_list")) == 0
        while not gone():
            pass
        for _ in range(8):
            self.client()
        self.refused(ENOSPC, self.connect(), "client_open", {"abi": 1})


class Manners(Case):

    def test_a_client_that_does_not_read(self):
        """It is disconnected, and nobody else is held up."""
        c = self.client()
        with self.assertRaises((BrokenPipeError, ConnectionResetError)):
            while True:
                c.send("client_channel_create")
        other = self.client()
        other.call("client_pd_create")

    def test_half_a_request_and_gone(self):
        for text in (b"{", b'{"jsonrpc":"2.0","id":1,"method":"client_open"', b"\0\0\0\n"):
            c = self.connect()
            c.sock.sendall(text)
            c.close()
        self.client().call("client_pd_create")


if __name__ == "__main__":
    unittest.main()
