#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian's librdmacm as they are: each end is a rocelane-run of one dataplane."""
import errno
import os
import sys
import tempfile
import time
import unittest

import programs
import rdmacm_calls as calls

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402
import rping  # noqa: E402

SOCKET = sys.argv.pop(1)
RUN = os.environ["ROCELANE_RUN"]
EXAMPLE = os.environ["EXAMPLE_RPING"]    # app/examples/rping.c
LEFT, RIGHT, RIGHT6 = "10.77.0.1", "10.77.0.2", "fd77::2"
READY_S = 60
PERFTEST_REFUSED = "Unexpected CM event bl blka 8"
# The server of qperf goes on for ever.
QPERF = """
run=$1 sock=$2 ip=$3 n=0
shift 3
ip link set lo up && ip addr add "$ip/32" dev lo || exit 1
"$run" -s "$sock" qperf & server=$!
until grep -q ":4D35 .* 0A " /proc/net/tcp /proc/net/tcp6; do
    n=$((n + 1)); [ $n -lt 600 ] || exit 1
    sleep 0.1
done
"$run" -s "$sock" qperf -cm 1 -t 1 "$ip" "$@"
rc=$?
kill $server
wait $server
exit $rc
"""


def start(program, *args, **more):
    return programs.start(SOCKET, RUN, "-s", SOCKET, programs.installed(program), *args, **more)


def run(program, *args, **more):
    return programs.run(SOCKET, RUN, "-s", SOCKET, programs.installed(program), *args, **more)


def example(program, *args):
    return programs.start(SOCKET, program, *args)


class Rdmacm(unittest.TestCase):
    def end(self, proc):
        proc.terminate()    # rocelane-run passes it on
        return proc.communicate()[0]

    def until_listeners(self, serves, there):
        end = time.monotonic() + READY_S
        while (jsonrpc.call(SOCKET, "stats")["cm_listeners"] != 0) != there:
            if serves is not None and serves.poll() is not None:
                self.fail(f"The server ended: {serves.returncode}: {serves.communicate()[0]}")
            self.assertLess(time.monotonic(), end, "listeners")
            time.sleep(0.01)

    def serve(self, program, *args, begin=start):
        """A server that listens. Nobody else's listener is left."""
        self.until_listeners(None, False)
        serves = begin(program, *args)
        self.addCleanup(self.end, serves)
        self.until_listeners(serves, True)
        return serves

    def play(self, program, server, client, other=None):
        """What both print; both succeed."""
        return self.meet(self.serve(program, *server), run(other or program, *client))

    def meet(self, serves, asked):
        """Both ends' output, once both have ended well."""
        code, out = asked
        if rping.status(code, out) != 0:
            self.fail(f"{code}: {out}\nThe server: {self.end(serves)}")
        served = serves.communicate(timeout=programs.TIMEOUT)[0]
        self.assertEqual(0, rping.status(serves.returncode, served), served)
        return served, out

    def rping(self, server, *client):
        outs = self.play("rping", ["-s", "-a", server, "-C", "10", "-v"],
                         ["-c", "-a", server, "-C", "10", "-v", "-V", *client])
        for out, word in zip(outs, ("server ping data: ", "ping data: ")):
            for n in range(10):
                self.assertIn(f"{word}rdma-ping-{n}: {chr(65 + n)}{chr(66 + n)}", out)

    def test_rping(self):
        self.rping(RIGHT, "-I", LEFT)

    def test_rping_of_one_port(self):
        """LB-01: also where ports are joined by a wire, which path.local says here."""
        self.rping(RIGHT, "-I", RIGHT)

    def test_rping_ipv6(self):
        self.rping(RIGHT6)

    def test_loopback(self):
        """As the kernel: who listens there hears all ports; who asks there takes the first."""
        for address in ("127.0.0.1", "127.1.2.3", "::1"):
            self.rping(address)

    def test_loopback_is_any_address(self):
        outs = self.play("rping", ["-s", "-a", "127.0.0.1", "-C", "2", "-v"],
                         ["-c", "-a", RIGHT, "-C", "2", "-v", "-V"])
        self.assertIn("server ping data: rdma-ping-1", outs[0])

    def test_rnr_timer(self):
        """As with the kernel: 655.36 ms, whoever made the connection."""
        self.serve("rping", "-s", "-a", RIGHT)
        asks = start("rping", "-c", "-a", RIGHT)
        self.addCleanup(self.end, asks)
        end, states = time.monotonic() + READY_S, []
        while states != ["RTS", "RTS"]:
            self.assertLess(time.monotonic(), end, states)
            states = [qp["qp_state"] for qp in jsonrpc.call(SOCKET, "qp_list")]
        for qp in jsonrpc.call(SOCKET, "qp_list"):
            found = jsonrpc.call(SOCKET, "qp_query", qp_num=qp["qp_num"])
            self.assertEqual(655360, found["min_rnr_timer_us"])

    def test_rping_of_the_examples(self):
        """It talks to rdma-core's, as either end."""
        listen, ask = (["-s", "-a", RIGHT, "-C", "5", "-v"],
                       ["-c", "-a", RIGHT, "-C", "5", "-v"])
        for outs in (self.meet(self.serve("rping", *listen), programs.run(SOCKET, EXAMPLE, *ask)),
                     self.meet(self.serve(EXAMPLE, *listen, begin=example), run("rping", *ask))):
            for out, word in zip(outs, ("server ping data: ", "ping data: ")):
                for n in range(5):
                    self.assertIn(f"{word}rdma-ping-{n}: {chr(65 + n)}{chr(66 + n)}", out)

    def test_ucmatose(self):
        """Messages both ways."""
        sizes = ["-C", "20", "-S", "1000"]
        for out in self.play("ucmatose", ["-b", RIGHT, *sizes], ["-s", RIGHT, *sizes]):
            self.assertIn("data transfers complete", out)
            self.assertIn("return status 0", out)

    def test_perftest(self):
        """Its server does not listen between the two connections of a client. Who is faster is
        refused, and neither end survives it: then both begin again."""
        options = ["-R", "-F", "-n", "100", "-s", "65536"]
        end = time.monotonic() + READY_S
        while True:
            serves = self.serve("ib_write_bw", "-d", "right", *options)
            asked = run("ib_write_bw", "-d", "left", *options, RIGHT)
            if PERFTEST_REFUSED not in asked[1] or time.monotonic() > end:
                break
            print(f"# {self.end(serves)}", file=sys.stderr)
        for out in self.meet(serves, asked):
            self.assertRegex(out, r"(?m)^ 65536 +100 ")

    def test_rsockets(self):
        sizes = ["-S", "65536", "-C", "20"]
        for out in self.play("rstream", ["-b", RIGHT, *sizes], ["-s", RIGHT, *sizes]):
            self.assertRegex(out, r"(?m)^custom +64k +20 ")

    def test_examples_of_librdmacm(self):
        """rdma_xclient sends its 16 bytes inline without having asked for room for them: a queue
        pair has as much as its list of buffers takes, as Soft-RoCE's."""
        for name in "rdma_", "rdma_x":
            for out in self.meet(self.serve(name + "server"),
                                 run(name + "client", "-s", RIGHT)):
                self.assertRegex(out, r"(?m)rdma_x?(server|client): end 0$")

    def test_rcopy(self):
        """A file, whole. Its server goes on for ever."""
        data = os.urandom(300000)
        self.serve("rcopy")
        with tempfile.TemporaryDirectory() as tmp:
            here, there = os.path.join(tmp, "in"), os.path.join(tmp, "out")
            with open(here, "wb") as f:
                f.write(data)
            code, out = run("rcopy", here, f"{RIGHT}:{there}")
            self.assertEqual(0, code, out)
            with open(there, "rb") as f:
                self.assertEqual(data, f.read())

    def test_cmtime(self):
        """Connections begun and ended at once, which a listener has room for: none of them has to
        ask again. Its server goes on for ever."""
        self.serve("cmtime", "-b", RIGHT)
        before = jsonrpc.call(SOCKET, "stats")
        code, out = run("cmtime", "-b", LEFT, "-s", RIGHT, "-c", "90")
        self.assertEqual(0, code, out)
        self.assertRegex(out, r"(?m)^connect +: +[1-9]")
        stats = jsonrpc.call(SOCKET, "stats")
        for drop in "cm_drops_backlog", "cm_drops_crowded", "cm_drops_half_open":
            self.assertEqual(before[drop], stats[drop], drop)

    def test_qperf(self):
        """Its server binds to any free port. It meets by TCP at the address of its connections. Its
        UC and UD know LIDs alone: they do not run over any RoCE."""
        tests = {"rc_lat": "latency", "rc_bw": "bw", "rc_rdma_read_lat": "latency",
                 "rc_rdma_write_bw": "bw", "rc_compare_swap_mr": "msg_rate",
                 "ver_rc_fetch_add": "msg_rate"}
        code, out = programs.run(
            SOCKET, "unshare", "--user", "--map-root-user", "--net", "sh", "-c", QPERF, "sh", RUN,
            SOCKET, RIGHT, *tests)
        self.assertEqual(0, code, out)
        for test, figure in tests.items():
            self.assertRegex(out, rf"(?m)^{test}:\n +{figure} +=  ")

    def test_refusals(self):
        """Each as the kernel's: nobody listens, no port has the address, no way leads there, nobody
        is there."""
        for want, *args in (("RDMA_CM_EVENT_REJECTED, error 8", "-c", "-a", RIGHT, "-p", "9"),
                            ("Cannot assign requested address", "-s", "-a", "10.9.9.9"),
                            ("Network is unreachable", "-c", "-a", "10.9.9.9"),
                            ("RDMA_CM_EVENT_ADDR_ERROR, error -110", "-c", "-a", "10.77.0.99")):
            code, out = run("rping", *args)
            self.assertNotEqual(0, code, out)
            self.assertIn(want, out)

    def test_port_of_a_client(self):
        """An id that is not bound has a port of its own once its peer's address is resolved, as
        with the kernel; one that is bound keeps it."""
        for source, text in ((None, "0"), ("0.0.0.0", "0"), (LEFT, "0"), (LEFT, "4242"),
                             ("127.0.0.1", "0"), ("127.0.0.1", "4242")):
            with self.subTest((source, text)):
                code, out = run(
                    sys.executable, "-c", calls.PORT_OF_A_CLIENT, RIGHT, source or "", text)
                self.assertEqual(0, code, out)
                if text == "0":
                    self.assertIn(int(out), range(1024, 1 << 16))
                else:
                    self.assertEqual(text, out.strip())

    def test_port_of_a_bound_client(self):
        """It keeps the port, whether it names its address once more or not."""
        for source in ("", LEFT):
            with self.subTest(source):
                code, out = run(sys.executable, "-c", calls.PORT_OF_A_CLIENT, RIGHT, source, "0",
                                "4242")
                self.assertEqual((0, "4242"), (code, out.strip()))

    def test_port_of_a_client_before_the_event(self):
        """As with the kernel: whoever waits for ADDR_RESOLVED finds the port that the id has."""
        for source in ("", "0.0.0.0", "127.0.0.1", LEFT):
            with self.subTest(source):
                code, out = run(sys.executable, "-c", calls.PORT_OF_A_CLIENT, RIGHT, source, "0",
                                LD_PRELOAD=os.environ["TOLD_PORT"])
                self.assertEqual(0, code, out)
                self.assertNotIn("told", out)

    def by_calls(self, script, *args):
        code, out = run(sys.executable, "-c", script, *args)
        self.assertEqual(0, code, out)

    def test_bound_beside_a_listener(self):
        """As with the kernel, bind and not listen says that a port is taken. Who does not share
        its port has it alone, and EADDRNOTAVAIL is for those who are bound to any address."""
        self.by_calls(calls.BOUND_BESIDE_A_LISTENER, RIGHT, LEFT)

    def test_bound_twice(self):
        """As with the kernel: an id has its port from bind on, in any process."""
        self.by_calls(calls.BOUND_TWICE, RIGHT)

    def test_bound_together(self):
        """As with the kernel: REUSEADDR is what both have to say, and who listens is alone."""
        self.by_calls(calls.BOUND_TOGETHER, RIGHT)

    def test_families(self):
        """As with the kernel: who listens at 0.0.0.0 does not hear IPv6, and no id has an end of
        both."""
        code, out = run(sys.executable, "-c", calls.FAMILIES, RIGHT6, RIGHT)
        self.assertEqual((0, "8 8\n"), (code, out))

    def test_silent_client(self):
        """As with the kernel: a REP that nothing answers is UNREACHABLE at the server, too."""
        code, out = run(sys.executable, "-c", calls.SILENT_CLIENT, RIGHT, LEFT, SOCKET,
                        os.path.dirname(jsonrpc.__file__))
        self.assertEqual((0, f"7 {-errno.ETIMEDOUT}\n"), (code, out))

    def test_rejected_by_reason(self):
        """rdma_reject_ece(): the peer hears 35, and 28 of rdma_reject()."""
        code, out = run(sys.executable, "-c", calls.REJECTED, RIGHT)
        self.assertEqual((0, "28\n35\n"), (code, out))

    def test_route_once(self):
        """As with the kernel: one route, and no connection without it."""
        self.by_calls(calls.ROUTE_ONCE, RIGHT)

    def test_told_at_both_ends(self):
        """As with the kernel: what a REQ or REP says comes with its event alone, so that a handler
        of both ends keeps the peer's private data."""
        code, out = run(sys.executable, "-c", calls.TOLD_AT_BOTH_ENDS, RIGHT)
        self.assertEqual(0, code, out)
        # RDMA_OPTION_ID_TOS between ADDR_RESOLVED and the route, where Linux reads it.
        self.assertEqual(["classes 104 0"] + ["disconnected None 0 0 0 0"] * 2 +
                         ["established None 0 0 0 0", "established b'there' 196 2 4 0",
                          "request b'hello' 56 5 3 1", "timeouts 15 15"],
                         sorted(out.splitlines()))

    def test_ack_timeout(self):
        """rdma_set_option(3): the queue pair has what was set at its end; 0 is no timer."""
        for ends in (("5", "17"), ("0", "3")):
            code, out = run(sys.executable, "-c", calls.TOLD_AT_BOTH_ENDS, RIGHT, *ends)
            self.assertEqual(0, code, out)
            self.assertIn(" ".join(("timeouts", *ends)) + "\n", out)

    def test_options(self):
        """As with the kernel: what is no such value is EINVAL."""
        self.by_calls(calls.OPTIONS)

    def test_connections_of_XRC(self):
        """The answer brings the number of the shared receive queue that the client sends to."""
        for service in ("x", "r"):
            outs = self.play("rdma_xserver", ["-c", service], ["-s", RIGHT, "-c", service],
                             "rdma_xclient")
            self.assertIn("end 0", outs[0] + outs[1])

    def mckey(self, group, members, sender):
        """One sends ten datagrams, the others get each. mckey does not wait for its sends: it posts
        them, destroys its address handle and queue pair, and they are sent all the same."""
        def joined():
            return jsonrpc.call(SOCKET, "mcast_list")

        serve = [start("mckey", "-m", group, "-b", ip, "-C", "10") for ip in members]
        for proc in serve:
            self.addCleanup(self.end, proc)
        end = time.monotonic() + READY_S
        while len(joined()) < len(members) and time.monotonic() < end:
            time.sleep(0.01)
        code, out = run("mckey", "-m", group, "-b", sender, "-s", "-C", "10")
        self.assertEqual(0, code, out)
        for proc in serve:
            out = proc.communicate(timeout=programs.TIMEOUT)[0]
            self.assertEqual(0, proc.returncode, out)
            self.assertIn("receiving data transfers\ndata transfers complete", out)
        self.assertEqual([], joined())

    def test_mckey(self):
        """UD-31: members of two ports; the sender's is one."""
        self.mckey("239.1.2.3", [LEFT, RIGHT], LEFT)

    def test_mckey_ipv6(self):
        self.mckey("ff05::1:3", [RIGHT6], RIGHT6)

    def udaddy(self, server, *client):
        """CM-41: each end learns the other's QP by SIDR, ten datagrams go there and back."""
        outs = self.play("udaddy", ["-b", server, "-C", "10"],
                         ["-s", server, "-C", "10", *client])
        for out in outs:
            self.assertIn("data transfers complete", out)
            self.assertIn("return status 0", out)

    def test_udaddy(self):
        self.udaddy(RIGHT, "-b", LEFT)

    def test_udaddy_ipv6(self):
        self.udaddy(RIGHT6)

    def test_other_files(self):
        """Programs that have nothing to do with it: their files are libc's."""
        with tempfile.NamedTemporaryFile() as f:
            code, out = run("sh", "-c", f"seq 1000 > {f.name} && sort -n {f.name} | tail -n 1")
        self.assertEqual((0, "1000\n"), (code, out))


if __name__ == "__main__":
    unittest.main()
