# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-RT: no configured neighbours; the tester is every host of the link."""
import dut
import roce
from dut import MS
from dut_req import S, ReqCase
from scapy.layers.inet6 import ICMPv6ND_NA, ICMPv6ND_NS, ICMPv6NDOptDstLLAddr, IPv6
from scapy.layers.l2 import ARP, Ether

MAC, IP, IP6 = "02:00:00:00:00:11", "192.0.2.1", "2001:db8::1"
PEER, GATEWAY, FAR, FAR6 = "192.0.2.50", "192.0.2.254", "198.51.100.7", "2001:db8:9::7"
HOST = {PEER: "02:00:00:00:00:50", GATEWAY: "02:00:00:00:00:fe", "192.0.2.251": "02:00:00:00:00:f1",
        "192.0.2.252": "02:00:00:00:00:f2", "192.0.2.253": "02:00:00:00:00:f3",
        "2001:db8::50": "02:00:00:00:06:50", "2001:db8::fe": "02:00:00:00:06:fe",
        "fe80::fe": "02:00:00:00:08:fe"}
ENETUNREACH, EINVAL, ENOENT, EEXIST = 101, 22, 2, 17


def port(**more):
    """F-RT: no configured neighbours."""
    return dict({"name": "p0", "device": "net_ring_stepped0", "mac": MAC, "ipv4": IP, "prefix": 24,
                 "ipv6": IP6, "prefix6": 64, "mtu": 4200}, **more)


class RtCase(ReqCase):
    CONFIG = {"ports": [port()]}
    deaf = ()                   # who does not answer

    @classmethod
    def clear(cls):
        super().clear()
        cls.rpc("neighbor_flush")
        for r in cls.rpc("route_list"):
            if r["source"] == "added":
                cls.rpc("route_del", port="p0", to=r["to"])
        gateway = cls.CONFIG["ports"][0].get("gateway")
        if gateway and "0.0.0.0/0" not in [r["to"] for r in cls.rpc("route_list")]:
            cls.rpc("route_add", port="p0", to="0.0.0.0/0", via=gateway)

    def req(self, **qp):
        self.asked = []
        super().req(**qp)

    def drain(self):
        """What an object's creation sends is looked at, too."""
        self.sort(self.dut.run())
        super().drain()

    def to(self, dest_ip, **qp):
        """A QP to that address; nothing is answered yet."""
        self.req(ah_attr={"dest_ip": dest_ip, "hop_limit": 33, **qp.pop("ah", {})}, **qp)
        self.peer = self.peer.with_(src_ip=dest_ip, dst_ip=IP6 if ":" in dest_ip else IP)

    def tell(self, ip, mac=None, override=1):
        """The host says where it is; over IPv6 it may not insist."""
        mac = mac or HOST[ip]
        if ":" in ip:
            frame = (Ether(src=mac, dst=MAC) / IPv6(src=ip, dst=IP6, hlim=255) /
                     ICMPv6ND_NA(tgt=ip, S=override, O=override) / ICMPv6NDOptDstLLAddr(lladdr=mac))
        else:
            frame = Ether(src=mac, dst=MAC) / ARP(op=2, hwsrc=mac, psrc=ip, hwdst=MAC, pdst=IP)
        self.dut.rx(bytes(frame))

    def gratuitous(self, ip, mac):
        self.dut.rx(bytes(Ether(src=mac, dst="ff:ff:ff:ff:ff:ff") /
                          ARP(op=1, hwsrc=mac, psrc=ip, pdst=ip)))

    def sort(self, frames):
        """Notes whom the DUT asks for; returns its other frames."""
        out = []
        for _, raw in frames:
            f = Ether(raw)
            if ARP in f:
                self.assertEqual((1, MAC, IP, "ff:ff:ff:ff:ff:ff"),
                                 (f[ARP].op, f[ARP].hwsrc, f[ARP].psrc, f.dst))
                self.asked.append(f[ARP].pdst)
            elif ICMPv6ND_NS in f:
                self.asked.append(f[ICMPv6ND_NS].tgt)
            else:
                out.append(roce.Frame(raw))
        return out

    def run_for(self, ms=1):
        """What leaves in that time, but for questions, which go to self.asked."""
        out = []
        for _ in range(ms):
            out += self.sort(self.dut.run(MS))
        return out

    def sent_to(self, frames):
        return [(f.opcode, f.psn, f.dst_mac, f.dst_ip) for f in frames]

    def send(self):
        self.post_raw(self.wr("SEND", 10))
        return self.run_for()

    def neighbour(self, ip):
        rows = [n for n in self.rpc("neighbor_list") if n.get("ipv4", n.get("ipv6")) == ip]
        self.assertLessEqual(len(rows), 1)
        return rows[0] if rows else None

    def hop_of(self, dest, resolve=True):
        """Whom the DUT asks for on behalf of a QP to `dest`, and the MAC that its SEND goes to."""
        self.to(dest, timeout=14, retry_cnt=7)
        self.run_for()
        self.assertEqual(1, len(set(self.asked)), self.asked)
        hop = self.asked[0]
        if resolve:
            self.tell(hop)
        got = self.send()
        self.assertEqual([(roce.SEND_ONLY, S, HOST[hop], dest)], self.sent_to(got))
        self.assertEqual(33, got[0].ttl)
        return hop

    def refused(self, err, word, method, **params):
        before = self.rpc("route_list"), self.rpc("neighbor_list")
        with self.assertRaises(dut.RpcError) as e:
            self.rpc(method, **params)
        if err is not None:
            self.assertEqual(-32000 - err, e.exception.code, e.exception.message)
        self.assertIn(word, e.exception.message)
        self.assertEqual(before, (self.rpc("route_list"), self.rpc("neighbor_list")))
        return e.exception.message
