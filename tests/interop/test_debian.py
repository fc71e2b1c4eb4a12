# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian at both ends: here over rocelane-run as they are, there over the kernel."""
import hashlib
import os
import re
import signal
import socket
import tempfile
import time

import livenet
import rping
from bench import GUEST_IP, GUEST_IP6, HOST_IP, HOST_IP6, HOST_MAC, TAP
from debian import RUN, WAIT_S, DebianCase

TAP_MAC = "02:00:00:77:00:0f"
BOTH_WAYS = (True, False)
PINGPONG = 20           # messages
ROCE = 4791             # UDP
READS = 16              # outstanding
TIMEOUT = 19            # 2.1 s: the guest may be slow, and nothing is lost
QPERF, UDADDY = 19765, 7174     # their own ports
UCX = ("UCX_MEM_EVENTS=n", "UCX_ERROR_SIGNALS=", "UCX_WARN_UNUSED_ENV_VARS=n")
# It drops Soft-RoCE's datagrams otherwise, with both ends in the guest as well: in front of them
# it does not find its own address.
UCX_SOFT_ROCE = "UCX_UD_VERBS_ETH_DGID_CHECK=n"
WRITERS = os.environ.get("INTEROP_WRITERS", "1048576 20").split()    # bytes, rounds
STOPS = (signal.SIGTERM, signal.SIGINT)


class Programs(DebianCase):
    """How each of them is played: `guest_serves` says which way round."""

    @classmethod
    def setUpClass(cls):
        """Programs that meet by TCP at the address of their connections: the kernel has it, too,
        with the port's MAC, and a socket for datagrams so that it does not refuse them."""
        super().setUpClass()
        livenet.ip("link", "set", "lo", "up")
        livenet.ip("link", "set", TAP, "address", HOST_MAC)
        livenet.ip("addr", "replace", HOST_IP + "/32", "dev", "lo")
        # getaddrinfo() knows IPv6 where an interface has it.
        livenet.ip("addr", "replace", "fd78::1/128", "dev", "lo")
        cls.deaf = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        cls.deaf.bind((HOST_IP, ROCE))

    @classmethod
    def tearDownClass(cls):
        cls.deaf.close()
        for address in (HOST_IP + "/32", "fd78::1/128"):
            livenet.ip("addr", "del", address, "dev", "lo")
        livenet.ip("link", "set", TAP, "address", TAP_MAC)

    def setUp(self):
        super().setUp()
        if not RUN:
            self.skipTest("rocelane-run of this build does not run Debian's programs")

    def every(self, *plays):
        for guest_serves in BOTH_WAYS:
            for play, *args in plays:
                with self.subTest(play=play.__name__, args=args, guest_serves=guest_serves):
                    play(guest_serves, *args)

    def meet(self, guest_serves, port, serves, asks, by_cm=False, status=lambda n, _: n):
        """What who asked wrote, and who served; both end well."""
        play = self.guest_serves if guest_serves else self.guest_asks
        (asked, out), (served, said) = play(port, serves, asks, by_cm)
        self.assertEqual((0, 0), (status(asked, out), status(served, said)), out + said)
        return out, said

    def by_tcp(self, guest_serves, words, there, here):
        """They meet at a port of the kernels'. Options of each end: `there`, `here`."""
        port = next(self.ports)
        words = [*words, "-p", port]
        serves, asks = (there, here) if guest_serves else (here, there)
        return self.meet(guest_serves, port, [*words, *serves],
                         [*words, *asks, *self.by_address(guest_serves)])

    def perftest(self, guest_serves, test, *options, iters=200):
        words = ["ib_" + test, "-F", "-n", iters, "-u", TIMEOUT, *options]
        if test[:4] in ("read", "atom"):
            words += ["-o", READS]      # each takes its own device's limit for the other's
        out, _ = self.by_tcp(guest_serves, words, ["-d", "rxe0"], ["-d", "p0"])
        # Its deviation is the root of what may have been rounded to less than nothing: -nan.
        rows = [r.split() for r in re.findall(r"(?m)^ \d(?:[\d. \t]|-?nan)*$", out)]
        self.assertTrue(rows, out)
        times = 8 if "-q" in options else 1
        self.assertEqual(str(times * iters), rows[-1][1], out)

    def gid(self, ip):
        """Index of this address in the guest's table."""
        want = "0000:0000:0000:0000:0000:ffff:%02x%02x:%02x%02x" % tuple(map(int, ip.split(".")))
        for i in range(8):
            if want in self.told_there("cat", "/sys/class/infiniband/rxe0/ports/1/gids/%d" % i):
                return i
        raise AssertionError("the guest has no such address")

    def pingpong(self, guest_serves, program, *options):
        words = [program, "-n", PINGPONG, *options]
        for text in self.by_tcp(guest_serves, words, ["-d", "rxe0", "-g", self.gid(GUEST_IP)],
                                ["-d", "p0", "-g", 0]):
            self.assertRegex(text, r"(?m)^\d+ iters in ")
            self.assertNotIn("invalid data", text)

    def by_address(self, guest_serves, ipv6=False):
        """Where connections go: [address]"""
        return [(GUEST_IP6 if ipv6 else GUEST_IP) if guest_serves else
                (HOST_IP6 if ipv6 else HOST_IP)]

    def rping(self, guest_serves, ipv6=False):
        port, at = next(self.ports), self.by_address(guest_serves, ipv6)
        common = ["-p", port, "-C", 10, "-v", "-a", *at]
        out, said = self.meet(guest_serves, port, ["rping", "-s", *common],
                              ["rping", "-c", "-V", *common], True, rping.status)
        self.assertEqual((10, 10), (out.count("ping data: rdma-ping-"),
                                    said.count("server ping data: rdma-ping-")), out + said)

    def fabric(self, guest_serves, *options, here=(), there=(), env=()):
        port = next(self.ports)
        words = ["fi_pingpong", "-c", "-I", "20", "-S", "4096", *options]
        here = ["env", *env, *words, *here]
        there = ["busybox", "env", "FI_VERBS_GID_IDX=%d" % self.gid(GUEST_IP), *env, *words, *there]
        serves, asks = (there, here) if guest_serves else (here, there)
        for text in self.meet(guest_serves, port, [*serves, "-B", port],
                              [*asks, "-P", port, *self.by_address(guest_serves)]):
            self.assertRegex(text, r"(?m)^4k +20 +=20 ")

    def ucx(self, guest_serves, test, by="rc_verbs"):
        """Devices of the same name. by=None: the layer above transports, which Open MPI is on; it
        meets by datagrams, and goes on by RC."""
        port = next(self.ports)
        if by is None:
            more, options = ["UCX_TLS=rc_verbs,ud_verbs", "UCX_NET_DEVICES=p0:1"], []
        else:
            more, options = [], ["-d", "p0:1", "-x", by]
        self.told_there("rdma", "dev", "set", "rxe0", "name", "p0")
        try:
            here = ["env", *UCX, *more, "ucx_perftest", "-p", port]
            there = ["busybox", "env", UCX_SOFT_ROCE, *here[1:]]
            serves, asks = (there, here) if guest_serves else (here, there)
            out, said = self.meet(guest_serves, port, serves, [
                *asks, *options, "-t", test, "-n", 200, "-s", 8, "-f", "-w", 10,
                *self.by_address(guest_serves)])
        finally:
            self.told_there("rdma", "dev", "set", "p0", "name", "rxe0")
        self.assertNotRegex(out + said, "ERROR|Fatal")
        # inf: ucx_perftest's average since its last row, if a slow machine had one just before.
        row = re.findall(r"(?m)^\s*(\d+(?:\s+(?:[\d.]+|inf)){7})\s*$", out)
        self.assertEqual(["200"], [r.split()[0] for r in row], out)

    def qperf(self, guest_serves, **tests):
        """Its server goes on for ever, and tells its port before it listens there: who is faster is
        refused, and begins again."""
        end = time.monotonic() + WAIT_S
        while True:
            status, out = self.qperf_once(guest_serves, *tests)
            if "Event rejected" not in out or time.monotonic() > end:
                break
            print("# again: %r" % out, flush=True)
        self.assertEqual(0, status, out)
        for test, figure in tests.items():
            self.assertRegex(out, rf"(?m)^{test}:\n +{figure} +=  ")

    def qperf_once(self, guest_serves, *tests):
        asks = ["qperf", "-cm", 1, "-t", 1, *self.by_address(guest_serves), *tests]
        play = self.guest_serves if guest_serves else self.guest_asks
        return play(QPERF, ["qperf"], asks, ends=False)[0]

    def cm_pair(self, guest_serves, program, *options, port=None, ipv6=False, said=()):
        """One of librdmacm's own, at a port of the connection manager."""
        at = self.by_address(guest_serves, ipv6)
        port = port or next(self.ports)
        words = [program, *options] if port == UDADDY else [program, "-p", port, *options]
        for text in self.meet(guest_serves, port, [*words, "-b", *at], [*words, "-s", *at], True):
            for word in said:
                self.assertRegex(text, word)

    def mckey(self, guest_serves):
        """One sends ten datagrams to a group that the other has joined."""
        words = ["mckey", "-m", "239.7.7.7", "-C", 10]
        if guest_serves:
            pid = self.theirs(*words, "-b", GUEST_IP)
            self.until_joined_there()
            asked = self.ours_ended(self.ours(*words, "-b", HOST_IP, "-s"))
            served = self.theirs_ended(pid)
        else:
            p = self.ours(*words, "-b", HOST_IP)
            self.wait_for(lambda: self.bench.host.rpc("mcast_list"))
            asked = self.theirs_ended(self.theirs(*words, "-b", GUEST_IP, "-s"))
            served = self.ours_ended(p)
        self.assertEqual((0, 0), (asked[0], served[0]), asked[1] + served[1])
        self.assertIn("receiving data transfers\ndata transfers complete", served[1])

    def until_joined_there(self):
        """The device takes the group's frames."""
        self.wait_for(lambda: "01:00:5e:07:07:07" in self.told_there(
            "ip", "maddr", "show", "dev", "eth0"))

    def rcopy(self, guest_serves):
        """A file, whole. Its server goes on for ever."""
        data = os.urandom(200000)
        # A file here is not one there: the guest copies its own program.
        if guest_serves:
            pid = self.theirs("rcopy", log="serves")
            self.guest_listens(7427, True)
            with tempfile.NamedTemporaryFile() as f:
                f.write(data)
                f.flush()
                status, out = self.ours_ended(self.ours("rcopy", f.name, GUEST_IP + ":/tmp/copy"))
            self.theirs_ended(pid, 0, log="serves")
            self.assertEqual(0, status, out)
            self.assertIn(hashlib.sha256(data).hexdigest(),
                          self.told_there("busybox", "sha256sum", "/tmp/copy"))
            return
        self.until_listeners(None, False)
        p = self.ours("rcopy")
        self.until_listeners(p, True)
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "copy")
            status, out = self.theirs_ended(self.theirs("rcopy", "/bin/rping",
                                                        "%s:%s" % (HOST_IP, path)))
            self.ours_ended(p, 0)
            self.assertEqual(0, status, out)
            with open(path, "rb") as f:
                self.assertIn(hashlib.sha256(f.read()).hexdigest(),
                              self.told_there("busybox", "sha256sum", "/bin/rping"))

    def cmtime(self, guest_serves):
        """Its server goes on for ever."""
        port = next(self.ports)
        serves = ["cmtime", "-p", port, "-b", *self.by_address(guest_serves)]
        asks = ["cmtime", "-p", port, "-s", *self.by_address(guest_serves), "-c", 5]
        play = self.guest_serves if guest_serves else self.guest_asks
        (status, out), _ = play(port, serves, asks, True, ends=False)
        self.assertEqual(0, status, out)
        self.assertRegex(out, r"(?m)^connect +: +[1-9]")

    def convert(self, *args):
        """Hours of it can be wanted (INTEROP_WRITERS): it says how far it is, and where SIGTERM or
        SIGINT comes before its end, the result is that of the rounds until then."""
        pid = self.theirs("convert-writers", *args)
        came, told, status = [], 0, None
        before = {n: signal.signal(n, lambda n, _: came.append(n)) for n in STOPS}
        try:
            while status is None:
                more = {"signal": came[0]} if came else {}
                status, out = self.bench.guest.wait(pid, 10, log="perf", **more)
                lines = out.splitlines()
                if status is None:      # the last line may not be whole yet
                    lines = out[:out.rfind("\n") + 1].splitlines()
                for line in lines[told:]:
                    print("# %s %s" % (time.strftime("%H:%M:%S"), line), flush=True)
                told = len(lines)
        finally:
            for n, handler in before.items():
                signal.signal(n, handler)
        self.assertEqual(0, status, out)
        self.assertRegex(out, r"(?m)^all: .* lost 0, EFAULT 0 of ")


class Brief(Programs):
    """What is played each time."""

    def test_both_ways(self):
        for guest_serves in BOTH_WAYS:
            for play, *args in ((self.perftest, "write_bw"),
                                (self.pingpong, "ibv_rc_pingpong", "-c"), (self.rping,),
                                (self.ucx, "am_bw"), (self.fabric, "-p", "verbs", "-e", "msg")):
                with self.subTest(play=play.__name__, guest_serves=guest_serves):
                    play(guest_serves, *args)

    def test_conversion(self):
        """Memory of this kernel is moved while threads write to it: none of it is lost."""
        self.convert(*WRITERS)


class Perftest(Programs):
    """All eight programs, each option, each size."""

    def test_each_option(self):
        """Soft-RoCE has no XRC."""
        plays = []
        for kind in ("send", "write", "read", "atomic"):
            for way in ("bw", "lat"):
                options = [()]
                options += [("-e",)] if kind != "write" else []
                options += [("-q", "8")] if way == "bw" else []
                options += [("-I", "64", "-s", "32")] if kind in ("send", "write") else []
                options += [("--use-srq", "-s", "1024")] if kind == "send" else []
                options += [("-c", "UC", "-s", "64")] if kind in ("send", "write") else []
                options += [("-c", "UD", "-s", "64")] if kind == "send" else []
                plays += [(self.perftest, f"{kind}_{way}", *o) for o in options]
        self.every(*plays)

    def test_all_sizes(self):
        """Five messages of each, which is the least that perftest takes."""
        for guest_serves in BOTH_WAYS:
            for test in ("send_bw", "write_bw", "read_bw", "send_lat", "write_lat", "read_lat"):
                with self.subTest(test, guest_serves=guest_serves):
                    self.perftest(guest_serves, test, "-a", iters=5)

    def test_by_cm(self):
        """-R: all of them, and what each connection has in another way then."""
        for guest_serves in BOTH_WAYS:
            for test, *options in (
                    ("send_bw", "-s", 3000), ("send_lat", "-s", 64), ("write_bw", "-s", 3000),
                    ("write_lat", "-s", 64), ("read_bw", "-s", 3000), ("read_lat", "-s", 64),
                    ("atomic_bw",), ("atomic_lat",), ("send_lat", "-e"),
                    ("send_bw", "--use-srq", "-s", 1024), ("send_lat", "-c", "UD", "-s", 64)):
                if test[:4] in ("read", "atom"):
                    options += ["-o", READS]
                with self.subTest(test, options=options, guest_serves=guest_serves):
                    self.perftest_by_cm(test, guest_serves, *options)
            with self.subTest("8 queue pairs", guest_serves=guest_serves):
                self.perftest_by_cm("write_bw", guest_serves, "-s", 3000, qps=8)


class Long(Programs):
    """Every other program that runs at both ends, and each option."""

    def test_pingpong(self):
        self.every(*((self.pingpong, f"ibv_{kind}_pingpong", "-c", *options)
                     for kind in ("rc", "uc", "ud", "srq") for options in ((), ("-e",))))

    def test_rdmacm(self):
        sizes = ("-C", 10, "-S", 1000)
        done = ("data transfers complete", "return status 0")
        for ipv6 in (False, True):
            for guest_serves in BOTH_WAYS:
                with self.subTest(ipv6=ipv6, guest_serves=guest_serves):
                    self.rping(guest_serves, ipv6)
                    self.cm_pair(guest_serves, "ucmatose", *sizes, ipv6=ipv6, said=done)
                    self.cm_pair(guest_serves, "udaddy", *sizes, port=UDADDY, ipv6=ipv6, said=done)
        for guest_serves in BOTH_WAYS:
            for play in (self.cmtime, self.rcopy, self.mckey):
                with self.subTest(play=play.__name__, guest_serves=guest_serves):
                    play(guest_serves)
            with self.subTest("rstream", guest_serves=guest_serves):
                self.cm_pair(guest_serves, "rstream", "-S", 65536, "-C", 20,
                             said=[r"(?m)^custom +64k +20 "])

    def test_qperf(self):
        for guest_serves in BOTH_WAYS:
            with self.subTest(guest_serves=guest_serves):
                self.qperf(guest_serves, rc_lat="latency", rc_bw="bw", rc_rdma_read_lat="latency",
                           rc_rdma_write_bw="bw", rc_compare_swap_mr="msg_rate",
                           ver_rc_fetch_add="msg_rate")

    def test_ucx(self):
        self.every(*((self.ucx, test) for test in ("am_bw", "am_lat", "put_bw", "fadd")),
                   *((self.ucx, test, "ud_verbs") for test in ("am_bw", "am_lat")),
                   *((self.ucx, test, None) for test in ("tag_bw", "tag_lat", "ucp_put_bw",
                                                         "ucp_get", "ucp_fadd")))

    def test_fi_pingpong(self):
        for guest_serves in BOTH_WAYS:
            for options, env in ((("-p", "verbs", "-e", "msg"), ()),
                                 (("-p", "verbs", "-e", "dgram"), ()),
                                 (("-p", "verbs;ofi_rxm", "-e", "rdm"), ["FI_UNIVERSE_SIZE=16"])):
                with self.subTest(options=options, guest_serves=guest_serves):
                    self.fabric(guest_serves, *options, env=env)

    def test_conversion_by_stopping(self):
        self.convert("--stop", *WRITERS)
