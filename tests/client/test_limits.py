# SPDX-License-Identifier: BSD-3-Clause
"""One user takes all that he can get: other users and the operator still get theirs.

Run by run.py; the socket's path is the first argument, the clients' own socket stands next to it.
The greedy user comes by the clients' socket, where nobody is an operator. Other users need root: a
connection's user is who made it (seteuid()); without root these parts say that they are left out.
"""
import contextlib
import json
import os
import select
import time
import unittest

from attackers import WIRE, make_mr, make_qp, qp_in_init, to_rtr
from attacks import BACK_S, CLIENTS, SOCKET, Waits, jsonrpc

ROOT = os.geteuid() == 0
GREEDY, OTHER = (65533, 65534) if ROOT else (os.geteuid(), None)
EPERM, ENOENT, EUSERS, EDQUOT, ENOSPC, ENOMEM = 1, 2, 87, 122, 28, 12


@contextlib.contextmanager
def as_user(uid):
    if ROOT:
        os.seteuid(uid)
    try:
        yield
    finally:
        if ROOT:
            os.seteuid(0)


def listed(path):
    """How often the kernel lists a socket of this path: who listens there, and its connections."""
    with open("/proc/net/unix", encoding="ascii", errors="replace") as f:
        return sum(line.split()[-1] == path for line in f)


class Case(unittest.TestCase):

    def connect(self, uid=None):
        """By the clients' socket as this user, or as the operator."""
        if uid is None:
            c = jsonrpc.Connection(SOCKET)
        else:
            with as_user(uid):
                c = jsonrpc.Connection(CLIENTS)
        self.addCleanup(c.close)
        return c

    def client(self, uid=None):
        c = self.connect(uid)
        c.call("client_open", abi=1, name="test")
        return c

    def others(self):
        """Who must not be hurt: the operator, and another user if there can be one."""
        if OTHER is None:
            print("not root: no other user is tried")
        return (None, OTHER) if OTHER is not None else (None,)

    def refusal(self, call, *a, **k):
        with self.assertRaises(jsonrpc.RpcError) as e:
            call(*a, **k)
        return e.exception

    def soon(self, what, message):
        waits = Waits()
        while not what():
            self.assertLess(waits.net_s(), BACK_S, message)
            time.sleep(0.005)


class Connections(Case):

    def turned_away(self, c):
        """What a connection is told that is refused; None: it is not."""
        try:
            reply = c.ask(jsonrpc.request(1, "client_open", {"abi": 1, "name": "idle"}).encode())
        except BrokenPipeError:
            reply = json.loads(c.line())
        self.assertIsNotNone(reply, "refused in silence")
        if reply["id"] is not None:
            return None
        self.assertIsNone(c.line())
        return reply["error"]

    def fill(self, uid):
        """A user's connections that ask for nothing, until one is refused, and why it was.

        A refusal may come after further connections were made. They are accepted in their order,
        so that the first one with something to read is the first that was refused.
        """
        held = []
        while len(held) < 200:
            held.append(self.connect(uid))
            if self.readable(held, 0):
                break
        self.assertTrue(self.readable(held, jsonrpc.WAIT_S), "there is no end to it")
        refused = self.readable(held, 0)    # an earlier one that select() had passed by then, too
        first = held.index(refused[0])
        error = json.loads(refused[0].line())["error"]
        for c in held[first:]:
            c.close()
        return held[:first], error

    @staticmethod
    def readable(connections, wait_s):
        """Those with something to read, in the order of the list."""
        ready, _, _ = select.select([c.sock for c in connections], [], [], wait_s)
        return [c for c in connections if c.sock in ready]

    def test_idle_connections(self):
        """A user's share is full: he is told so at once, and all others come in."""
        held, error = self.fill(GREEDY)
        self.assertEqual(jsonrpc.ERRNO_BASE - EUSERS, error["code"])
        self.assertIn("user %d has %d connections, and control.client_limits.user.connections is"
                      % (GREEDY, len(held)), error["message"])
        for who in self.others():
            for _ in range(3):
                self.client(who).call("client_pd_create")
        self.assertTrue(self.connect().call("client_list"))
        self.assertIsNotNone(self.turned_away(self.connect(GREEDY)))
        # One goes, one comes; all go, and all is as it was.
        held.pop().close()
        self.soon(lambda: self.turned_away(self.connect(GREEDY)) is None, "the place stays taken")


class Wire(Case):
    """What a client may put on the wire: the port's own, and what its "allow" adds."""

    def test_the_ports_own(self):
        """VID 666, PCP 7, a forged MAC and any TOS were on the wire."""
        c = self.client(GREEDY)
        for name, (ah, value) in WIRE.items():
            for port in ("left", "right"):
                if name == "dest_mac" and port == "right":
                    continue
                with self.subTest(name=name, port=port):
                    number = qp_in_init(c, port)
                    e = self.refusal(to_rtr, c, number, **ah)
                    self.assertEqual(1, e.errno)
                    attr = "vlan" if port == "left" and name == "vlan_priority" else name
                    self.assertIn("ah_attr.%s: " % attr, e.message)
                    self.assertIn(value if attr == name else "20", e.message)
                    self.assertIn('port "%s"' % port, e.message)
                    self.assertIn("allowed is", e.message)
                    to_rtr(c, number)              # it is where it was
        number = qp_in_init(c, "left")
        to_rtr(c, number, traffic_class=2)         # ECN is no class

    def test_the_alternate_path(self):
        c = self.client(GREEDY)
        number = qp_in_init(c, "left")
        to_rtr(c, number)
        e = self.refusal(c.call, "client_qp_modify", qp_num=number, qp_state="RTS", sq_psn=0,
                         timeout=14, retry_cnt=7, rnr_retry=7, max_rd_atomic=1,
                         alt_ah_attr={"dest_ip": "10.77.0.9", "vlan": 20}, path_mig_state="REARM")
        self.assertEqual(1, e.errno)
        self.assertIn("alt_ah_attr.vlan: 20", e.message)

    def test_the_class_of_a_peer_that_is_found(self):
        c = self.client(GREEDY)
        channel = c.call("client_cm_channel_create")["handle"]
        left, right = (c.call("client_cm_resolve", channel=channel, source_ip=ip,
                              dest_ip="10.77.0.9")["handle"] for ip in ("10.77.0.1", "10.77.0.2"))
        e = self.refusal(c.call, "client_cm_class", handle=left, traffic_class=32)
        self.assertEqual(1, e.errno)
        self.assertIn("to.traffic_class: 32", e.message)
        self.assertIn('port "left"', e.message)
        c.call("client_cm_class", handle=left, traffic_class=0)    # it is where it was
        c.call("client_cm_class", handle=right, traffic_class=32)

    def test_what_allow_adds_and_the_operator(self):
        good = [{"vlan": 20}, {"vlan": 20, "vlan_priority": 3}, {"traffic_class": 32},
                {"dest_mac": "02:de:ad:be:ef:01"}]
        c = self.client(GREEDY)
        for ah in good:
            to_rtr(c, qp_in_init(c, "right"), **ah)
        c = self.client()
        for ah, _ in WIRE.values():
            to_rtr(c, qp_in_init(c, "left"), **ah)


class Objects(Case):
    """What is made until nothing more can be had, with several clients of one user."""

    def users(self):
        return {u["uid"]: u for u in self.operator.call("client_users") if not u["operator"]}

    def setUp(self):
        # Places of connections that an earlier test has closed are free a moment later.
        self.soon(lambda: listed(CLIENTS) == 1, "connections stay that were closed")
        self.operator = self.connect()

    def all_have_theirs(self):
        for who in self.others():
            c = self.client(who)
            for _ in range(3):
                make_qp(c)
                make_mr(c, c.call("client_pd_create")["handle"])
                c.call("client_channel_create")
                c.call("client_srq_create", pd=1, max_wr=16, max_sge=1)
            c.close()
        name = "operators"
        self.operator.call("pd_create", name=name)
        self.operator.call("cq_create", name=name)
        self.operator.call("qp_create", qp_num=77, qp_type="RC", pd=name, send_cq=name,
                           recv_cq=name, port="left")
        self.operator.call("mr_register", name=name, pd=name, length=4096, access=["LOCAL_WRITE"])
        for what in ("qp_destroy", "mr_deregister", "cq_destroy", "pd_dealloc"):
            self.operator.call(what, **({"qp_num": 77} if what == "qp_destroy" else {"name": name}))

    def take_all(self, make, more_clients=8):
        """make(client) again and again, with one client after another. The last refusal."""
        held, n = [], 0
        for _ in range(more_clients):
            c = self.client(GREEDY)
            held.append(c)
            try:
                state = make(c, None)
                while True:
                    n += 1
                    state = make(c, state)
                    self.assertLess(n, 100000)
            except jsonrpc.RpcError as e:
                last = e
            if "client_limits.user" in last.message:
                break
        self.taken = n
        return held, last

    def gone(self, held):
        for c in held:
            c.close()
        self.soon(lambda: GREEDY not in self.users(), "what the user had is not given back")

    def over(self, last, key):
        self.assertIn(last.errno, (EDQUOT, ENOSPC, ENOMEM))
        self.assertIn("control.client_limits.user." + key, last.message)

    def test_keys(self):
        """One-page regions: the key table was full at 4095."""
        def make(c, pd):
            pd = c.call("client_pd_create")["handle"] if pd is None else pd
            make_mr(c, pd)
            return pd
        held, last = self.take_all(make)
        self.over(last, "mrs")
        self.assertEqual(3000, self.users()[GREEDY]["mrs"])
        self.all_have_theirs()
        self.gone(held)

    def test_private_memory(self):
        """QPs with the deepest queues: 21 of them emptied the heap."""
        def make(c, state):
            make_qp(c, state, max_send_wr=65536, max_send_sge=16)
            return True
        held, last = self.take_all(make)
        self.over(last, "private_memory")
        self.assertGreater(self.users()[GREEDY]["private_memory"], 16 << 20)
        self.all_have_theirs()
        self.gone(held)

    def test_XRC_a_target_that_is_handed_over(self):
        """Who has opened it has it, and pays for it, when who made it is gone."""
        one, two = self.client(GREEDY), self.client(GREEDY)
        for c in (one, two):
            c.call("client_pd_create")
            c.call("client_xrcd_open", name="shared")
        before = self.users()[GREEDY]
        number = one.call("client_qp_create", pd=1, xrcd=1, qp_type="XRC_RECV", max_send_wr=0,
                          max_recv_wr=0, max_send_sge=0, max_recv_sge=0,
                          max_inline_data=0)["qp_num"]
        has = self.users()[GREEDY]
        self.assertGreater(has["private_memory"], before["private_memory"])
        self.assertEqual(before["qps"] + 1, has["qps"])
        two.call("client_qp_open", pd=1, xrcd=1, qp_num=number)
        self.assertEqual(before["qps"] + 2, self.users()[GREEDY]["qps"])
        one.call("client_qp_destroy", qp_num=number)
        self.assertEqual(has, self.users()[GREEDY])
        two.call("client_qp_destroy", qp_num=number)
        self.assertEqual(before, self.users()[GREEDY])
        self.gone([one, two])

    def test_XRC_shared_queues(self):
        """The workers find them by number in one table: its 4,096 places were one user's."""
        def make(c, state):
            if state is None:
                c.call("client_pd_create")
                c.call("client_xrcd_open")
                c.call("client_cq_create", cqe=16)
            c.call("client_srq_create", pd=1, max_wr=1, max_sge=1, xrcd=1, cq=1)
            return True
        held, last = self.take_all(make, 20)
        self.over(last, "srqs")
        for who in self.others():
            c = self.client(who)
            make(c, make(c, None))
        name = "operators"
        self.operator.call("pd_create", name=name)
        self.operator.call("xrcd_create", name=name)
        self.operator.call("cq_create", name=name)
        self.operator.call("srq_create", name=name, pd=name, srq_type="XRC", xrcd=name, cq=name)
        for what in ("srq_destroy", "xrcd_dealloc", "cq_destroy", "pd_dealloc"):
            self.operator.call(what, name=name)
        # Of the other type there are more; one goes, one comes.
        held[-1].call("client_srq_create", pd=1, max_wr=1, max_sge=1)
        held[-1].call("client_srq_destroy", handle=1)
        make(held[-1], True)
        self.gone(held)

    def test_members_of_a_group(self):
        """A group has 56 places at a port: they were one client's, who kept all others out."""
        def joins(c):
            number = make_qp(c, True, qp_type="UD")["qp_num"]
            c.call("client_qp_modify", qp_num=number, qp_state="INIT", pkey=0xffff, port="left",
                   qkey=1)
            c.call("client_mcast_attach", qp_num=number, group="239.7.7.7")
        held = [self.client(GREEDY), self.client(GREEDY)]
        for c in held:
            make_qp(c)
        with self.assertRaises(jsonrpc.RpcError) as e:
            for i in range(99):
                joins(held[i % 2])
        self.assertEqual(ENOSPC, e.exception.errno)
        self.assertIn("239.7.7.7", e.exception.message)
        self.assertGreater(self.users()[GREEDY]["mcasts"], 28)
        for who in self.others():
            c = self.client(who)
            make_qp(c)
            joins(c)
            c.close()
        # Another group has places of its own, and so has this one at another port.
        number = make_qp(held[0], True, qp_type="UD")["qp_num"]
        held[0].call("client_qp_modify", qp_num=number, qp_state="INIT", pkey=0xffff, port="right",
                     qkey=1)
        for group in ("239.7.7.8", "239.7.7.7"):
            held[0].call("client_mcast_attach", qp_num=number, group=group)
        self.gone(held)

    def test_channels(self):
        """Each is a descriptor of the dataplane."""
        def make(c, state):
            c.call("client_channel_create")
            for fd in c.fds:
                os.close(fd)
            c.fds = []
            return True
        held, last = self.take_all(make)
        self.over(last, "channels")
        self.all_have_theirs()
        self.gone(held)

    def test_qps(self):
        def make(c, state):
            make_qp(c, state)
            return True
        held, last = self.take_all(make)
        self.over(last, "qps")
        self.assertEqual(100, self.users()[GREEDY]["qps"])
        self.all_have_theirs()
        # One is destroyed, one is made.
        c = held[0]
        c.call("client_qp_destroy", qp_num=self.some_qp(c))
        make_qp(c, True)
        self.gone(held)

    def some_qp(self, c):
        """A QP of a client, by the operator's list."""
        for qp in self.operator.call("qp_list"):
            try:
                c.call("client_qp_query", qp_num=qp["qp_num"])
                return qp["qp_num"]
            except jsonrpc.RpcError:
                pass
        return self.fail("it has none")

    def test_neighbours(self):
        """They count for who asks; how many one may have: tests/unit/control/test_neighbours.c."""
        def whose(last):
            ip = f"10.77.0.{last}"
            return [n["user"] for n in self.operator.call("neighbor_list") if n.get("ipv4") == ip]
        c = self.client(GREEDY)
        to_rtr(c, qp_in_init(c, "left"), dest_ip="10.77.0.101")
        operators = self.client()
        to_rtr(operators, qp_in_init(operators, "left"), dest_ip="10.77.0.102")
        to_rtr(operators, qp_in_init(operators, "left"), dest_ip="10.77.0.101")
        self.assertEqual([GREEDY], whose(101))
        self.assertEqual([None], whose(102))
        self.gone([c])
        self.assertEqual([None], whose(101))      # the operator's goes on using it

    def test_clients(self):
        """Sixty-four clients of a user kept all others out."""
        held = []
        while True:
            c = self.connect(GREEDY)
            try:
                c.call("client_open", abi=1, name="one-more")
            except jsonrpc.RpcError as e:
                last = e
                break
            held.append(c)
        self.over(last, "clients")
        self.assertEqual(30, len(held))
        self.all_have_theirs()
        self.gone(held)

    def test_the_operator_sets_another_limit(self):
        """client_set: for one client that is here, until it goes; others are as before."""
        c, other = self.client(GREEDY), self.client(GREEDY)
        ids = [r["client"] for r in self.operator.call("client_list")][-2:]
        make_qp(c)
        before = self.row(ids[0])
        self.operator.call("client_set", id=ids[0], qps=1, weight=7, rate=1 << 30)
        self.assertEqual((7, 1 << 30), tuple(self.row(ids[0])[k] for k in ("weight", "rate")))
        e = self.refusal(make_qp, c)
        self.assertEqual(ENOSPC, e.errno)
        self.assertIn("1 more queue pairs than the 1", e.message)
        make_qp(other)
        make_qp(other)
        # What is not named stays as it is.
        self.operator.call("client_set", id=ids[0], qps=2)
        self.assertEqual(7, self.row(ids[0])["weight"])
        make_qp(c)
        self.operator.call("client_set", id=ids[0], weight=before["weight"], rate=0)
        self.assertEqual(0, self.row(ids[0])["rate"])
        for bad in ({"weight": 0}, {"weight": 101}, {"qps": 1 << 40}, {"clients": 1}):
            self.refusal(self.operator.call, "client_set", id=ids[0], **bad)
        self.assertEqual(EPERM, self.refusal(c.call, "client_set", id=ids[0], weight=9).errno)
        self.assertEqual(ENOENT, self.refusal(self.operator.call, "client_set", id=99999).errno)
        self.gone([c, other])

    def row(self, client):
        return next(r for r in self.operator.call("client_list") if r["client"] == client)

    def test_a_client_that_is_killed_in_the_middle(self):
        for _ in range(20):
            c = self.client(GREEDY)
            make_qp(c)
            make_mr(c, 1)
            c.send("client_qp_create", {"pd": 1, "send_cq": 1, "recv_cq": 1, "qp_type": "RC",
                                        "max_send_wr": 8, "max_recv_wr": 8, "max_send_sge": 1,
                                        "max_recv_sge": 1, "max_inline_data": 0})
            c.close()
        self.gone([])


if __name__ == "__main__":
    unittest.main()
