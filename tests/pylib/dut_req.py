# SPDX-License-Identifier: BSD-3-Clause
"""Fixture F-REQ: the dataplane asks, the tester plays the responder."""
import dut
import roce
from dut import MS, QPN

S = 0x200                       # first PSN that the DUT sends
LVA, LKEY, LMR_LEN = 0x20000000, 0x00005151, 65536
RVA, RRKEY = 0x7F0000001000, 0xABCD0001    # the tester's memory, as the DUT names it
TICK_NS = 4096


class Sent(dut.Reply):
    """An expected request; what is None may be anything."""

    def __init__(self, opcode, psn, payload=None, **fields):
        super().__init__(opcode, psn, payload=payload)
        self.fields = fields

    def matches(self, f):
        return super().matches(f) and all(getattr(f, k) == v for k, v in self.fields.items())

    def __repr__(self):
        return super().__repr__() + "".join(
            " %s=%s" % (k, hex(v) if isinstance(v, int) else v) for k, v in self.fields.items())


def transport_ns(n):
    """TMR-01: 4.096 us * 2^n."""
    return 4096 * 2 ** n


def in_time(took, wait):
    """Not before its time by any clock: two may differ by a thousandth (TMR-02, REQ-RNR-01)."""
    return wait * (1 + 0.9e-3) <= took <= wait * (1 + 1e-3) + 2 * TICK_NS


class ReqCase(dut.DutCase):

    def req(self, cqe=64, access=("LOCAL_WRITE",), fill="pattern:9", recv=0, v6=None, **qp):
        """Fresh objects of F-REQ; `qp` overrides attributes of the QP."""
        self.clear()
        self.peer = self.peer_of(v6, mtu=qp.get("path_mtu", 1024))
        self.make("cq_create", name="cq0", cqe=cqe)
        self.make("cq_create", name="rcq", cqe=64)
        self.make("mr_register", name="lmr", pd="pd0", length=LMR_LEN, addr=hex(LVA),
                  rkey=hex(LKEY), access=list(access), fill=fill)
        self.make("mr_register", name="rbuf", pd="pd0", length=dut.BUF * dut.BUFS,
                  access=["LOCAL_WRITE"])
        params = {"recv_cq": "rcq", "sq_sig_all": True, "sq_psn": S}
        params.update(qp)
        self.make("qp_create", **self.qp_params(v6=v6, **params))
        self.wr_id = 0
        self.send_id = 0
        self.post_recv(recv)
        self.drain()
        self.sent = []

    def forget_qp(self):
        """The test destroyed it."""
        self.made.remove(("qp_destroy", {"qp_num": QPN}))

    # -- posting --

    def wr(self, opcode, length=None, offset=0, **kw):
        """One request over `length` bytes of the local region; wr_id counts from 100."""
        wr = {"wr_id": 100 + self.send_id, "opcode": opcode}
        self.send_id += 1
        if length is not None:
            wr["sg_list"] = [{"mr": "lmr", "offset": offset, "length": length}]
        if opcode not in ("SEND", "SEND_WITH_IMM", "SEND_WITH_INV", "BIND_MW", "LOCAL_INV"):
            wr.update(remote_addr=hex(RVA), rkey=hex(RRKEY))
        wr.update(kw)
        return wr

    def post_raw(self, *wrs, qp_num=QPN):
        return self.rpc("post_send", qp_num=qp_num, wrs=list(wrs))

    def post(self, *wrs, qp_num=QPN):
        """Post all of them. The frames that left."""
        result = self.post_raw(*wrs, qp_num=qp_num)
        self.assertEqual((len(wrs), None), (result["posted"], result["refused"]))
        return self.feed()

    def sends(self, n, length=64, **kw):
        return self.post(*[self.wr("SEND", length, **kw) for _ in range(n)])

    def refused(self, result, *words):
        self.assertIsNotNone(result["refused"], result)
        for word in words:
            self.assertIn(word, result["refused"]["reason"])

    # -- answers of the tester --

    def ack(self, psn, msn=0, ns=0, **kw):
        return self.feed(self.peer.acknowledge(psn, msn=msn, **kw), ns=ns)

    def nak(self, psn, syndrome, ns=0):
        return self.feed(self.peer.acknowledge(psn, syndrome), ns=ns)

    def rnr(self, psn, code):
        return self.nak(psn, roce.SYN_RNR + code)

    def read_resp(self, opcode, psn, payload=b"", syndrome=roce.SYN_ACK, msn=1, **kw):
        ext = b"" if opcode == roce.READ_MIDDLE else roce.aeth(syndrome, msn)
        return self.peer.packet(opcode, psn, payload, ext, **{"ack": 0, **kw})

    def read_answer(self, psn, payload, mtu=1024):
        """All responses of one READ."""
        parts = [payload[i:i + mtu] for i in range(0, len(payload), mtu)] or [b""]
        last = len(parts) - 1
        out = []
        for i, part in enumerate(parts):
            opcode = (roce.READ_ONLY if last == 0 else roce.READ_FIRST if i == 0 else
                      roce.READ_LAST if i == last else roce.READ_MIDDLE)
            out.append(self.read_resp(opcode, psn + i, part))
        return out

    def atomic_ack(self, psn, original, syndrome=roce.SYN_ACK):
        return self.peer.packet(roce.ATOMIC_ACK, psn, b"",
                                roce.aeth(syndrome, 1) + original.to_bytes(8, "big"), ack=0)

    # -- time --

    def until_sent(self, limit_ns, step_ns=TICK_NS):
        """Step until frames leave. (nanoseconds that took, frames)."""
        start = self.dut.now()
        lines = self.dut.command("step %d %d" % (step_ns, limit_ns))
        out = []
        for line in lines:
            if line.startswith("tx "):
                f = roce.Frame(bytes.fromhex(line.split()[2]))
                roce.check_frame(f, self.peer, cc=self.CC)
                out.append(f)
        return self.dut.now() - start, out

    def no_more(self, ms=1000):
        """Nothing leaves in that time, however finely it is looked at."""
        took, got = self.until_sent(ms * MS, MS // 4)
        self.assertEqual([], got, "after %d ns" % took)

    # -- verdicts --

    def local(self, offset, length):
        return self.mem(offset, length, "lmr")

    def psns(self, frames):
        return [f.psn for f in frames]

    def ids(self, n, first=100):
        return list(range(first, first + n))

    def succeeded(self, ids):
        """These completed with success, in this order, and nothing else did."""
        self.assertEqual([(i, "SUCCESS") for i in ids], self.statuses())

    def ended(self, status, wr_id, flushed=(), ok=(), fatal=None):
        """Error completion of one request, what was before it done, what is behind it flushed."""
        got = self.cqes()
        self.assertEqual([(i, "SUCCESS") for i in ok] + [(wr_id, status)] +
                         [(i, "WR_FLUSH_ERR") for i in flushed],
                         [(c["wr_id"], c["status"]) for c in got])
        bad = got[len(ok)]
        self.assertEqual(QPN, bad["qp_num"])
        if fatal is not None:
            self.assertEqual(fatal, bad["vendor_err"])
        self.assertEqual("ERR", self.state())
        self.assertEqual([], self.events())
        self.no_more(ms=100)
        return bad

    def well(self):
        """RTS, and nobody was told of anything."""
        self.assertEqual("RTS", self.state())
        self.assertEqual([], self.events())
