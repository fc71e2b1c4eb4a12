# SPDX-License-Identifier: BSD-3-Clause
"""Both sides inside one dataplane: a requester on port 0, a responder on port 1, crossed wires; or
without a wire (LOCAL)."""
import dut
import variant
from dut import ALL_REMOTE, MS

ASK, ANSWER = 0x31, 0x32
LEN = 1 << 20
PORTS = [{"name": "p%d" % i, "device": "net_ring_stepped%d" % i,
          "mac": "02:00:00:00:00:%02x" % (17 + i), "ipv4": "192.0.2.%d" % (i + 1), "prefix": 24,
          "mtu": 4200} for i in range(2)]


class LoopCase(dut.DutCase):
    """Neighbours are found by ARP over the same wire."""

    CONFIG = {"ports": PORTS}
    LOCAL = False               # the ports' addresses are local destinations: nothing may leave
    ACCESS = ALL_REMOTE         # to the regions

    def setUp(self):
        super().setUp()
        self.dut.command("unlink" if self.LOCAL else "link 0 1 0")
        self.clear()
        for name, rkey, fill in (("asker", 0x101, "pattern:1"), ("answerer", 0x202, "pattern:2")):
            self.make("mr_register", name=name, pd="pd0", length=LEN, addr=hex(rkey << 32),
                      rkey=hex(rkey), access=self.ACCESS, fill=fill)
        self.make("cq_create", name="scq", cqe=4096)
        self.make("cq_create", name="rcq", cqe=4096)
        self.wr_id = 0

    def mem(self, offset, length, mr="mr0"):
        """In pieces that fit a reply."""
        step = 1 << 18
        return b"".join(super(LoopCase, self).mem(offset + i, min(step, length - i), mr)
                        for i in range(0, length, step))

    def qp_params(self, v6=None, **qp):
        where = "inside" if self.LOCAL else "wire"
        qp["knobs"] = {"path.local": where, **qp.get("knobs", {})}
        return super().qp_params(v6, **qp)

    def lose(self, every):
        """One frame in `every` is lost, in both directions; 0: none."""
        if not self.LOCAL:
            self.dut.command("link 0 1 %d" % every)
            return
        for port in ("p0", "p1"):
            self.rpc("impair_set", port=port, impair={"rules": [
                {"action": "drop", "probability": 1 / every}]} if every else None)

    def pair(self, ask=None, answer=None, **both):
        cap = {"max_send_wr": 256, "max_recv_wr": 256, "max_send_sge": 4, "max_recv_sge": 4}
        both_ends = []
        for qp_num, peer, port, own in ((ASK, ANSWER, 0, ask), (ANSWER, ASK, 1, answer)):
            params = dict(
                qp_num=qp_num, dest_qp_num=peer, port="p%d" % port, send_cq="scq", recv_cq="rcq",
                rq_psn=0x100, sq_psn=0x100, sq_sig_all=True, cap=cap, timeout=10, retry_cnt=7,
                rnr_retry=7, min_rnr_timer=1, max_rd_atomic=16, max_dest_rd_atomic=16,
                ah_attr={"dest_ip": "192.0.2.%d" % (2 - port), "hop_limit": 64})
            both_ends.append(self.qp_params(**{**params, **both, **(own or {})}))
        # The smaller number first: a compact QP's template needs those behind its own.
        # Over a wire the neighbour has to be found before anything is sent.
        for params in sorted(both_ends, key=lambda p: p["qp_num"],
                             reverse=self.LOCAL and variant.qps() == 1):
            self.make("qp_create", **params)
        self.settle()
        self.drain()

    def settle(self, ms=20):
        """Time passes; nothing may leave by the ports' other ends."""
        for _ in range(ms * 2):
            self.assertEqual([], self.dut.run(MS // 2))

    def wr(self, opcode, length, offset=0, remote=0, **kw):
        wr = {"wr_id": self.wr_id, "opcode": opcode,
              "sg_list": [{"mr": "asker", "offset": offset, "length": length}]}
        self.wr_id += 1
        if not opcode.startswith("SEND"):
            wr.update(remote_addr=hex((0x202 << 32) + remote), rkey="0x202")
        wr.update(kw)
        return wr

    def post(self, *wrs, qp_num=ASK):
        result = self.rpc("post_send", qp_num=qp_num, wrs=list(wrs))
        self.assertEqual((len(wrs), None), (result["posted"], result["refused"]))

    def done(self, cq="scq"):
        out = []
        while True:
            more = self.rpc("poll_cq", cq=cq, max=256)
            out += more
            if not more:
                return out
