#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Small programs over rocelane-run that do what is allowed and seldom done."""
import errno
import os
import subprocess
import sys
import tempfile
import unittest

from runs import RUN, Runs

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cli"))
from fake_daemon import FakeDaemon  # noqa: E402

# argv[1] sockets, and argv[2] ids that listen.
MANY = """
import ctypes, resource, struct, sys
most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
cm = ctypes.CDLL("librdmacm.so.1", use_errno=True)
cm.rdma_create_event_channel.restype = ctypes.c_void_p
channel, id = ctypes.c_void_p(cm.rdma_create_event_channel()), ctypes.c_void_p()
def good(rc, what):
    if rc < 0:
        sys.exit("%s: errno %d" % (what, ctypes.get_errno()))
for i in range(int(sys.argv[1])):
    good(cm.rsocket(2, 1, 0), "rsocket %d" % i)
for i in range(int(sys.argv[2])):
    good(cm.rdma_create_id(channel, ctypes.byref(id), None, 0x106), "id")
    good(cm.rdma_bind_addr(id, struct.pack("=H14x", 2)), "bind")
    good(cm.rdma_listen(id, 1), "listener %d" % i)
"""

# argv[1] is a command of rdma_user_cm.h, and argv[2] how long it says that it is.
WRITTEN = """
import os, struct, sys
try:
    fd = os.open("/dev/infiniband/rdma_cm", os.O_RDWR)
    os.write(fd, struct.pack("=I2H", *map(int, sys.argv[1:]), 0))
except OSError as e:
    sys.exit(e.errno)
"""

# What a program has that makes all anew for each of its connections: argv[1] of them.
FOR_EACH = """
import ctypes, struct, sys
ibv, void = ctypes.CDLL("libibverbs.so.1"), ctypes.c_void_p
def made(call, *args):
    function = getattr(ibv, call)
    function.restype = void
    return void(function(*args) or sys.exit("%s %d" % (call, i)))
i = 0
devices = made("ibv_get_device_list", None)
device = made("ibv_open_device", void.from_address(devices.value))
for i in range(int(sys.argv[1])):
    pd = made("ibv_alloc_pd", device)
    queues = [made("ibv_create_cq", device, 1, None, None, 0).value for _ in "sr"]
    made("ibv_create_qp", pd, struct.pack("=4Q7I4x", 0, *queues, 0, 1, 1, 1, 1, 0, 2, 1))
"""

# As in the examples of rocelane-run(1), but for the wait: 0x4853 is perftest's port.
MEETS = """
ip link set lo up; ip address add 10.77.0.1/32 dev lo
ib_write_bw -d rocelane0 -n 100 >/dev/null & server=$!
until grep -q ":4853 .* 0A " /proc/net/tcp /proc/net/tcp6; do kill -0 $server || exit; done
ib_write_bw -d rocelane1 -n 100 10.77.0.1 && wait $server
"""


class Answers(Runs):
    def test_of_another_shape(self):
        """Whatever is at the socket, what is said of it is text."""
        for answer, said in ((b'{"id":1}', "the answer has neither a result nor an error"),
                             (b'{"id":1,"error":{}}', "refused without a reason"),
                             (b'{"id":1,"error":{"message":7}}', "refused without a reason"),
                             (b'{"id":1,"error":{"message":"no \\u001b[2J"}}', "no ?[2J")):
            with self.subTest(answer), FakeDaemon({m: lambda _, a=answer: a + b"\n" for m in (
                    "version", "qp_post_mortem", "client_open", "impair_get")}) as d:
                code, out, err = self.run_it("-s", d.path, "true")
                self.assertEqual((0, ""), (code, out))
                self.assertIn(f"whether queue pairs failed is not known: {said}\n", err)
                code, _, err = self.run_it("-s", d.path, "-f", self.faults({"rules": []}), "true")
                self.assertEqual((125, f"rocelane-run: faults: {said}\n"), (code, err))


class NoProgram(Runs):
    def test_a_fifo(self):
        """Nobody waits for one who writes to it."""
        with tempfile.TemporaryDirectory(prefix="rl") as d:
            fifo = os.path.join(d, "fifo")
            os.mkfifo(fifo, 0o755)
            for words, path in (([fifo], os.environ["PATH"]), (["fifo"], d)):
                p = subprocess.run([RUN, "-p", *words], capture_output=True, timeout=60,
                                   check=False, env={**os.environ, "PATH": path})
                self.assertEqual((126, b""), (p.returncode, p.stdout))
                self.assertIn(b"fifo: Permission denied", p.stderr)


class Programs(Runs):
    def good(self, name, said, *args):
        code, out, err = self.run_it("-p", os.environ[name], *args)
        self.assertEqual((0, said + "\n"), (code, out), err)
        return err

    def test_newer_than_debian(self):
        """Symbols of rdma-core 59 to 65: regions and buffers are there, the others say so."""
        self.good("VERBS_NEWER", "newer")

    def test_small_stacks(self):
        self.good("VERBS_STACK", "little")

    def test_threads_that_poll_one_queue(self):
        """ibv_start_poll() without IBV_CREATE_CQ_ATTR_SINGLE_THREADED."""
        self.good("VERBS_POLLED", "each its own")

    def test_children_have_copies(self):
        """Of what their parent has registered, also where that has done unusual things to it."""
        for case in ("files", "proc", "access", "dontfork", "moved", "longer", "short"):
            with self.subTest(case):
                self.good("VERBS_FORKED", "its own", case)

    def test_short_of_something(self):
        # AddressSanitizer maps what it needs as it goes, and ends where it cannot.
        for what in ("files",) if os.environ.get("SANITIZER") else ("files", "memory"):
            with self.subTest(what):
                self.good("VERBS_SHORT", "for a moment", what)

    def test_devices_that_are_closed(self):
        """Regions end with their device: pages are the program's again, descriptors are free."""
        self.good("VERBS_CLOSED", "closed")

    def test_others_go_on_without_the_first_thread(self):
        """main() has ended by pthread_exit(), before or behind the first region."""
        for case in ("never", "before"):
            with self.subTest(case):
                self.good("VERBS_FIRST", "without the first", case)

    def test_what_the_kernel_refuses(self):
        """Attributes of queue pairs in each step, and SRQs without SGEs, which it takes."""
        self.good("VERBS_MASKS", "as the kernel")

    def test_what_differs_from_a_NIC(self):
        """Of memory: rocelane-run(1) lists it."""
        self.good("VERBS_DIFFERS", "as the page says")

    def test_beside_an_epoll_for_rsockets(self):
        """That of librspreload takes a lock which it holds while the devices are opened."""
        both = 'LD_PRELOAD="$OWN_EPOLL $LD_PRELOAD" exec $VERBS_ARMED ended'
        code, out, err = self.run_it("-p", "sh", "-c", both)
        self.assertEqual((0, "told\n"), (code, out), err)

    def test_TCP_at_the_address_of_a_device(self):
        """Programs meet there, and their connections are the network's."""
        code, out, err = self.run_it("-p", "unshare", "--user", "--map-root-user", "--net", "sh",
                                     "-c", MEETS)
        self.assertEqual(0, code, err)
        self.assertRegex(out, r"(?m)^ 65536 +100 ")

    def test_many_of_librdmacm(self):
        """A client of a shared dataplane has 256 channels, of which each socket has one."""
        self.assertEqual((0, "", ""), self.run_it("-p", "python3", "-c", MANY, "300", "100"))

    def test_a_command_newer_than_debian(self):
        """RDMA_USER_CM_CMD_WRITE_CM_EVENT of rdma-core 60; and one that is cut."""
        self.env["ROCELANE_WHY"] = "1"
        for command, why in ((25, 0), "not here: of rdma_resolve_addrinfo"), ((0, 8), "is cut"):
            code, _, err = self.run_it("-p", "python3", "-c", WRITTEN, *map(str, command))
            self.assertEqual(errno.EINVAL, code, err)
            self.assertRegex(err, f"(?m)^rocelane: rdma_cm: Invalid argument .*{why}")

    def test_much_for_each_connection(self):
        """As ucmatose: a protection domain; as rdma_create_qp(): two completion queues."""
        self.assertEqual((0, "", ""), self.run_it("-p", "python3", "-c", FOR_EACH, "1024"))

    def test_a_plugin_that_was_closed(self):
        self.good("PLUGIN_HOST", "its own", os.environ["VERBS_PLUGIN"])


if __name__ == "__main__":
    unittest.main()
