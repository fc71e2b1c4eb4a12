# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's interface under a port: down, too small, and what is said of it."""
import resource
import socket
import struct
import time

import livenet
import dut
from livenet import DUT_IF, IF_MTU, PEER_IF

QPN = 0x11
OTHER_IP, OTHER_MAC = "192.0.2.3", b"\2\0\0\0\0\x33"


class Interface(livenet.LiveCase):
    CONFIG = {}

    def tearDown(self):
        for name in (DUT_IF, PEER_IF):
            livenet.ip("link", "set", name, "up", "mtu", str(IF_MTU))
        livenet.wait_up(DUT_IF)
        self.until(lambda: self.port()["warning"] is None)
        super().tearDown()

    def until(self, what):
        """What is so in the end, however slow the machine."""
        end = time.monotonic() + livenet.WAIT_S
        while not what():
            if time.monotonic() > end:
                raise AssertionError("%r\n%s" % (self.port(), self.dut.stderr()))
            time.sleep(0.02)    # between looks

    def port(self):
        return self.rpc("port_list")[0]

    def qp_to(self, ip, path_mtu, **qp):
        self.clear()
        self.make("cq_create", name="cq0", cqe=16)
        self.make("mr_register", name="mr0", pd="pd0", length=65536, access=["LOCAL_WRITE"])
        self.make("qp_create", **self.qp_params(
            ah_attr={"dest_ip": ip}, path_mtu=path_mtu, timeout=10, retry_cnt=1, **qp))
        self.rpc("post_send", qp_num=QPN, wrs=[{
            "wr_id": 1, "opcode": "SEND", "send_flags": ["SIGNALED"],
            "sg_list": [{"mr": "mr0", "offset": 0, "length": path_mtu}]}])

    def explained(self):
        """What is said of the QP once its retries are used up."""
        done = []
        self.until(lambda: done.extend(self.rpc("poll_cq", cq="cq0", max=1)) or done)
        self.assertEqual("RETRY_EXC_ERR", done[0]["status"])
        return self.rpc("qp_explain", qp_num=QPN)["summary"]

    def test_as_large_as_the_port(self):
        p = self.port()
        self.assertEqual((DUT_IF, IF_MTU, None, "UP"),
                         tuple(p[k] for k in ("interface", "interface_mtu", "warning", "state")))

    def test_no_descriptor_to_ask_by(self):
        """The kernel is not asked then, and nothing is gone: all is as it was."""
        before, pid = self.port(), self.dut.proc.pid
        most = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (8, most[1]))    # poll() needs some
        try:
            end = time.monotonic() + 0.25   # two looks; if it is late, it has looked less often
            self.until(lambda: self.port()["state"] != "UP" or time.monotonic() > end)
            after = self.port()
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, most)
        for key in ("state", "warning", "interface", "interface_mtu", "link_speed_mbps"):
            self.assertEqual(before[key], after[key], key)

    def test_smaller_than_the_port(self):
        livenet.ip("link", "set", DUT_IF, "mtu", "1500")
        self.until(lambda: self.port()["interface_mtu"] == 1500)
        said = self.port()["warning"]
        for word in (DUT_IF, "p0", "1500", "9100", "ip link set"):
            self.assertIn(word, said)
        self.until(lambda: said in self.dut.stderr())
        # It takes part where the QP's packets are longer, and nowhere else.
        livenet.ip("link", "set", PEER_IF, "arp", "off")
        try:
            self.qp_to("192.0.2.2", 4096, qp_num=QPN)
            self.assertIn("interface %s of port p0 has mtu 1500" % DUT_IF, self.explained())
            self.qp_to("192.0.2.2", 1024, qp_num=QPN)
            self.assertNotIn("interface", self.explained())
        finally:
            livenet.ip("link", "set", PEER_IF, "arp", "on")
        livenet.ip("link", "set", DUT_IF, "mtu", "9100")
        self.until(lambda: self.port()["warning"] is None)
        self.until(lambda: "mtu 9100 now" in self.dut.stderr())

    def test_set_down(self):
        livenet.ip("link", "set", DUT_IF, "down")
        self.until(lambda: self.port()["state"] == "DOWN")
        self.assertIn("interface %s of port p0 is down" % DUT_IF, self.port()["warning"])
        self.until(lambda: "ip link set %s up" % DUT_IF in self.dut.stderr())
        self.qp_to("192.0.2.77", 1024, qp_num=QPN)
        said = self.explained()
        self.assertIn("neighbour 192.0.2.77 is INCOMPLETE", said)
        self.assertIn("interface %s of port p0 is down" % DUT_IF, said)

    def test_no_carrier(self):
        livenet.ip("link", "set", PEER_IF, "down")
        self.until(lambda: self.port()["state"] == "DOWN")
        self.assertIn("no carrier", self.port()["warning"])

    def neighbour(self):
        return next(n for n in self.rpc("neighbor_list") if n.get("ipv4") == OTHER_IP)

    def asked_at_once(self):
        """Down and up: was the neighbour asked before what was heard of it is old?"""
        self.dut.rx(b"\xff" * 6 + OTHER_MAC + struct.pack(">HHHBBH", 0x0806, 1, 0x0800, 6, 4, 1) +
                    OTHER_MAC + socket.inet_aton(OTHER_IP) + bytes(6) +
                    socket.inet_aton(livenet.DUT_IP))
        self.until(lambda: self.neighbour()["state"] == "REACHABLE")
        n, start = self.neighbour(), time.monotonic()
        livenet.ip("link", "set", PEER_IF, "down")
        self.until(lambda: self.port()["state"] == "DOWN")
        livenet.ip("link", "set", PEER_IF, "up")
        self.until(lambda: self.neighbour()["asked"] > n["asked"])
        return n["age_ms"] / 1000 + time.monotonic() - start < 30

    def test_RT_07_asked_anew_when_the_link_is_up_again(self):
        self.qp_to(OTHER_IP, 1024, qp_num=QPN)
        self.until(self.asked_at_once)

    def test_at_the_start(self):
        livenet.ip("link", "set", DUT_IF, "mtu", "1500")
        other = livenet.Process()
        try:
            self.until(lambda: "has mtu 1500" in other.stderr())
        finally:
            other.stop()
            other.close()


if __name__ == "__main__":
    livenet.run_tests(dut.main)
