# SPDX-License-Identifier: BSD-3-Clause
"""What Linux was asked, asked again: the answers must be Linux's, except where a rule says no.

Each capture's requests are fed one at a time, on the capture's own clock, to a QP set up as the
responder was. Opcode, PSN, syndrome, MSN, original value and payload of every answer are compared,
and so are the receive completions and the memory that the far end printed. DIFFERENCES is the whole
list of what may differ; an entry that does not come true is a failure too.
"""
import unittest
import zlib
from dataclasses import dataclass

import capture
import dut
import roce
from roce import ACK, NAK_INV, SYN_ACK, Frame, Peer, check_frame

NS = 1_000_000_000


@dataclass(frozen=True)
class Diff:
    """One answer that is not Linux's. `frame` is Linux's answer; ours is None: we say nothing.
    With before=N ours is one answer more, ahead of Linux's frame N (0: behind the last)."""
    capture: str
    frame: int
    rule: str
    reason: str
    ours: tuple = None
    before: int = None


def answer(opcode, psn, syndrome=None, msn=None, original=None, payload=b""):
    return (opcode, psn, syndrome, msn, original, payload)


DIFFERENCES = [
    Diff("bad_opcode", None, "RESP-NAK-INV-01",
         "Linux drops a reserved opcode silently, even at ePSN",
         answer(ACK, 0x200, NAK_INV, 0), before=3),
    Diff("bad_opcode", 3, "RESP-NAK-05", "the QP is in ERR after the NAK"),
    Diff("nak_len", 4, "RESP-NAK-INV-06",
         "a SEND longer than the receive is the peer's fault: 0x61",
         answer(ACK, 0x200, NAK_INV, 0)),
    Diff("loss_readresp_middle", 7, "RESP-DUP-04",
         "a READ retried from its middle starts with FIRST",
         answer(roce.READ_FIRST, 0x202, SYN_ACK, 1, None, roce.pattern(0x7000, 256, 512))),
    Diff("send_inv", 2, "RESP-CLS-J-01", "no response to a SEND whose invalidate failed"),
]

# Statuses of receive completions that differ: (capture, index) -> (ours, rule, reason).
COMPLETIONS = {
    ("bad_opcode", 0): ("WR_FLUSH_ERR", "RESP-NAK-INV-16", "see above: the QP went to ERR"),
    ("nak_len", 0): ("LOC_LEN_ERR", "RESP-NAK-INV-15", "Linux calls it a local operation error"),
}

# Not RC, or nothing that a responder answers; these areas have scope "later" in the rules.
NOT_RC = {"uc": "UC", "ud": "UD"}


class Replay(dut.DutCase):

    CONFIG = {"ports": capture.PORTS,
              "knobs": {"cc.cnp": "off", "cc.algo": "none", "path.local": "wire"}}

    # -- set-up --

    def regions(self, cap, end):
        """Targets of the peer's requests. Without an "local" line they follow from its RETHs."""
        local, command = cap.local(end), cap.command(end)
        if local:
            self.make("mr_register", name="target", pd="pd0", length=local["len"],
                      addr=hex(local["va"]), rkey=hex(local["rkey"]), access=command.access,
                      fill="pattern:%d" % command.seed)
            for offset, value in command.sets():
                self.set_mem(offset, value.to_bytes(8, "little"), "target")
            return True
        spans = {}
        for sent in cap.requests(end):
            f = sent.frame
            if f.va is not None:
                length = 8 if f.length is None else f.length
                low, high = spans.get(f.rkey, (f.va, f.va))
                spans[f.rkey] = (min(low, f.va), max(high, f.va + length))
        for rkey, (low, high) in spans.items():
            self.make("mr_register", name="target%x" % rkey, pd="pd0", length=high - low,
                      addr=hex(low), rkey=hex(rkey), access=dut.ALL_REMOTE)
        return False

    def qps(self, cap, end):
        """QPs that the requests name, each as its owner set it up."""
        local, command = cap.local(end), cap.command(end)
        firsts = {}
        for sent in cap.requests(end):
            firsts.setdefault(sent.frame.qpn, sent)
        dests = {s.frame.sport: s.frame.qpn for s in cap.frames
                 if s.frame.opcode < 0x20 and cap.sender(s) == end}
        recvs, rsize = (command.recvs, command.rsize) if command else (32, 4096)
        posts = command.posts() if command else []
        total = recvs + sum(n for _, _, n in posts)
        if total:
            self.make("mr_register", name="recv", pd="pd0", length=total * rsize * len(firsts),
                      access=["LOCAL_WRITE"])
        self.posted = []
        for qpn, sent in firsts.items():
            dest = cap.local(capture.PEER[end])
            dest_qpn = dest["qpn"] if dest else dests.get(sent.frame.sport, qpn)
            psn = dest["psn"] if dest else sent.frame.psn
            v6 = sent.frame.version == 6
            self.make("qp_create", qp_num=qpn, qp_type="RC", port=end, pd="pd0", send_cq="cq0",
                      recv_cq="cq0", qp_state="RTS", path_mtu=cap.mtu(end), dest_qp_num=dest_qpn,
                      rq_psn=psn, sq_psn=0x123456,
                      ah_attr={"dest_ip": capture.IP[capture.PEER[end]][v6],
                               "dest_mac": capture.MAC[capture.PEER[end]], "hop_limit": 64},
                      timeout=14, retry_cnt=7, rnr_retry=7, max_rd_atomic=16,
                      min_rnr_timer=command.min_rnr if command else 12,
                      max_dest_rd_atomic=command.max_dest_rd_atomic if command else 16,
                      qp_access_flags=dut.ALL_REMOTE,
                      cap={"max_send_wr": 16, "max_recv_wr": 1024, "max_send_sge": 1,
                           "max_recv_sge": 1})
            self.peers[qpn] = Peer(src_mac=capture.MAC[capture.PEER[end]], dst_mac=capture.MAC[end],
                                   src_ip=capture.IP[capture.PEER[end]][v6],
                                   dst_ip=capture.IP[end][v6], own_qpn=dest_qpn, qpn=qpn)
            self.post(qpn, recvs, rsize, rsize)
        return posts, rsize

    def post(self, qpn, count, size, stride):
        wrs = []
        for _ in range(count):
            self.posted.append(len(self.posted) * stride)
            wrs.append({"wr_id": len(self.posted) - 1,
                        "sg_list": [{"mr": "recv", "offset": self.posted[-1], "length": size}]})
        if wrs:
            result = self.rpc("post_recv", qp_num=qpn, wrs=wrs)
            self.assertEqual(count, result["posted"], result)

    # -- the run --

    def feed_all(self, cap, end):
        """[(request's frame number, our answer)]"""
        self.peers = {}
        self.clear()
        self.make("cq_create", name="cq0", cqe=4096)
        known = self.regions(cap, end)
        posts, rsize = self.qps(cap, end)
        self.drain()
        port_index = "AB".index(end)
        start, out = self.dut.now(), []
        first = cap.requests(end)[0].time
        for sent in cap.requests(end):
            due = start + int((sent.time - first) * NS)
            while posts and (sent.time - first) * 1000 >= posts[0][0]:
                _, size, count = posts.pop(0)
                self.post(sent.frame.qpn, count, size, rsize)
            self.dut.run(max(0, due - self.dut.now()))
            self.dut.rx(sent.raw, port_index)
            for out_port, raw in self.dut.run():
                f = Frame(raw)
                self.assertEqual(port_index, out_port)
                check_frame(f, next(p for p in self.peers.values() if p.own_qpn == f.qpn))
                out.append((sent.number, f))
        return out, known

    @staticmethod
    def key(frame, payload=True):
        return frame.key() if payload else frame.key()[:5] + (len(frame.payload),)

    def wanted(self, cap, end, payload):
        """Linux's answers with the listed differences applied: [(frame number, key)]"""
        want = [(a.number, self.key(a.frame, payload)) for a in cap.answers(end)]
        for d in DIFFERENCES if end == "A" else []:
            if d.capture != cap.name:
                continue
            self.assertTrue(d.rule and d.reason)
            if d.before is not None:
                at = len(want) if d.before == 0 else [n for n, _ in want].index(d.before)
                want.insert(at, ("ours", d.ours))
                continue
            at = [n for n, _ in want].index(d.frame)
            self.assertNotEqual(want[at][1], d.ours, "difference that is none: %r" % (d,))
            if d.ours is None:
                del want[at]
            else:
                want[at] = (d.frame, d.ours)
        return want

    def compare(self, cap, end="A"):
        got, known = self.feed_all(cap, end)
        want = self.wanted(cap, end, known)
        for i in range(max(len(got), len(want))):
            ours = self.key(got[i][1], known) if i < len(got) else None
            theirs = want[i][1] if i < len(want) else None
            if ours != theirs:
                self.fail("%s, end %s, answer %d: to request frame %s we say %s, Linux's frame %s "
                          "is %s\nall: %r" % (
                              cap.name, end, i + 1, got[i][0] if i < len(got) else None,
                              got[i][1] if i < len(got) else None,
                              want[i][0] if i < len(want) else None, theirs,
                              [(n, f) for n, f in got]))
        if known:
            self.compare_completions(cap, end)
            self.compare_memory(cap, end)

    def compare_completions(self, cap, end):
        ours = []
        while True:
            more = self.rpc("poll_cq", cq="cq0", max=64)
            if not more:
                break
            ours += more
        for i, theirs in enumerate(cap.completions(end)):
            self.assertLess(i, len(ours), "%s: completion %d is missing" % (cap.name, i))
            status = theirs["status"].upper()
            if (cap.name, i) in COMPLETIONS:
                self.assertNotEqual(status, COMPLETIONS[cap.name, i][0], "difference that is none")
                status = COMPLETIONS[cap.name, i][0]
            self.assertEqual((i, status), (i, ours[i]["status"]), cap.name)
            self.assertEqual(theirs["wr_id"], ours[i]["wr_id"])
            if status != "SUCCESS" or theirs["status"] != "success":
                continue
            kind = {"recv": "RECV", "recv_rdma_imm": "RECV_RDMA_WITH_IMM"}[theirs["kind"]]
            self.assertEqual((kind, theirs["len"]), (ours[i]["opcode"], ours[i]["byte_len"]))
            if "imm" in theirs:
                self.assertEqual(int(theirs["imm"], 16), ours[i]["imm_data"])
            if "crc32" in theirs:
                data = self.mem(self.posted[i], theirs["len"], "recv") if theirs["len"] else b""
                self.assertEqual(theirs["crc32"], "%08x" % zlib.crc32(data))

    def compare_memory(self, cap, end):
        for shown in (e for e in cap.json[end] if e.get("ev") == "show"):
            want = bytes.fromhex(shown["hex"])
            self.assertEqual(want, self.mem(shown["off"], len(want), "target"), cap.name)


def add_test(name, end):
    def test(self):
        self.compare(capture.Capture(name), end)
    test.__doc__ = "%s.pcap, end %s as the responder" % (name, end)
    setattr(Replay, "test_%s_%s" % (name, end), test)


class Listed(unittest.TestCase):
    """The tables themselves."""

    def test_every_capture_has_its_test(self):
        names = set(capture.names())
        self.assertTrue(names)
        tested = {m[len("test_"):-2] for m in dir(Replay) if m.startswith("test_")}
        self.assertEqual(names, tested | set(NOT_RC))

    def test_differences_name_captures(self):
        self.assertLessEqual({d.capture for d in DIFFERENCES} | {c for c, _ in COMPLETIONS},
                             set(capture.names()) - set(NOT_RC))


for _name, _end in capture.ends(NOT_RC, capture.Capture.requests):
    add_test(_name, _end)

if __name__ == "__main__":
    dut.main()
