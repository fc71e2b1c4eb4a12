# SPDX-License-Identifier: BSD-3-Clause
"""What Linux asked, asked by us: the kernel's captured answers in, Linux's own requests out.

Each capture is run through with a QP in the place of the Linux requester: it posts what the program
there posted, and gets each response that reached Linux, lost ones left out. Every frame that it
sends must be the one that Linux sent, byte by byte with its ICRC, but for what asker.as_linux()
names. The clock only goes on where Linux's next request needs a timer, and how long that took must
be what TMR-02 and REQ-RNR-02 say. DIFFERENCES is the whole list of what may differ; an entry that
does not come true is a failure too. Completions, READ data and the values that atomics brought are
those that the program printed.
"""
import unittest
import zlib
from dataclasses import dataclass

import asker
import capture
import dut
import roce
from dut import MS
from roce import Frame, Peer, check_frame

TICK_NS = 4096
RNR_US = {0: 655360, 12: 640, 22: 20480}        # of the codes that stand in the captures
LOCAL = 1 << 17


@dataclass(frozen=True)
class Diff:
    """One request that is not Linux's. `frame` is Linux's; ours is None: we do not send it, else
    (opcode, PSN, AckReq) of what we send in its place. With before=N ours is one more, ahead of
    Linux's frame N (0: behind the last)."""
    capture: str
    end: str
    frame: int
    rule: str
    reason: str
    ours: tuple = None
    before: int = None


DIFFERENCES = [
    Diff("mtu1024", "B", 46, "REQ-07", "one packet in 16 of a long message asks for an answer",
         (roce.WRITE_MIDDLE, 0x22A, 1)),
    Diff("mtu1024", "B", 62, "REQ-07", "one packet in 16 of a long message asks for an answer",
         (roce.WRITE_MIDDLE, 0x23A, 1)),
]

# Requests that Linux repeats when its timer expires, and we at once: frame -> (rule, reason).
AT_ONCE = {
    ("loss_readresp_first", "B", 6): ("REQ-IMPL-02", "a later READ response shows the loss"),
    ("loss_readresp_middle", "B", 6): ("REQ-IMPL-02", "a later READ response shows the loss"),
}

# Not RC; these areas have scope "later" in the rules.
NOT_RC = {"uc": "UC", "ud": "UD"}


class Asker:
    """One QP of ours in the place of a Linux requester: its posts, its frames that wait."""

    def __init__(self, qpn, dest, posts):
        self.qpn, self.dest, self.posts = qpn, dest, posts
        self.posted, self.completed, self.offset = [], [], 0
        self.frames = []
        self.rnr = None


class Requests(dut.DutCase):

    CONFIG = {"ports": capture.PORTS,
              "knobs": {"cc.cnp": "off", "cc.algo": "none", "path.local": "wire"}}

    # -- set-up --

    def askers(self, cap, end):
        """QPs by their number, as the end set them up."""
        local, command = cap.local(end), cap.command(end)
        requests = cap.asked(end)
        number = command.number if command else lambda name, default: default
        self.timeout, peer = number("timeout", 14), capture.PEER[end]
        out = {}
        for own, dest in cap.pairs(end):
            asked = [s for s in requests if s.frame.qpn == dest]
            psn = local["psn"] if local else asked[0].frame.psn
            posts = (asker.Program(command, cap.local(peer)).posts if command else
                     asker.posts_of_frames(
                         asked, [s for s in cap.heard(end) if s.frame.qpn == own]))
            v6 = asked[0].frame.version == 6
            self.make("mr_register", name="local%x" % own, pd="pd0", length=LOCAL,
                      access=["LOCAL_WRITE"])
            self.make("qp_create", qp_num=own, qp_type="RC", port=end, pd="pd0", send_cq="cq0",
                      recv_cq="cq0", qp_state="RTS", path_mtu=cap.mtu(end), dest_qp_num=dest,
                      rq_psn=0x654321, sq_psn=psn,
                      ah_attr={"dest_ip": capture.IP[peer][v6], "dest_mac": capture.MAC[peer],
                               "hop_limit": 64, "traffic_class": number("tclass", 0)},
                      timeout=self.timeout, retry_cnt=number("retry", 7),
                      rnr_retry=number("rnr", 7), max_rd_atomic=number("rd", 16),
                      min_rnr_timer=12, max_dest_rd_atomic=16,
                      cap={"max_send_wr": 256, "max_recv_wr": 1, "max_send_sge": 1,
                           "max_recv_sge": 1})
            out[own] = Asker(own, dest, posts)
        return out

    # -- the run --

    def collect(self, frames):
        for out_port, raw in frames:
            f = Frame(raw)
            self.assertEqual(self.port_index, out_port)
            q = next(q for q in self.qps.values() if q.dest == f.qpn)
            check_frame(f, self.peers[q.qpn])
            self.assertNotIn(f.opcode, roce.RESPONSES)
            q.frames.append(f)

    def post(self, q):
        """The next work requests of the program, up to one whose completion it waits for."""
        wrs, base = [], len(q.posted)
        while q.posts:
            post = q.posts.pop(0)
            wr = dict(post.wr, wr_id=len(q.posted))
            if post.data:
                self.set_mem(q.offset, post.data, "local%x" % q.qpn)
                wr["sg_list"] = [{"mr": "local%x" % q.qpn, "offset": q.offset,
                                  "length": len(post.data)}]
            q.posted.append((post, q.offset))
            q.offset += (len(post.data) + 63) // 64 * 64
            wrs.append(wr)
            if post.waits:
                break
        if wrs:
            result = self.rpc("post_send", qp_num=q.qpn, wrs=wrs)
            self.assertEqual((len(wrs), None), (result["posted"], result["refused"]), base)

    def settle(self):
        """Frames and completions out, and what the programs post when they see them."""
        while True:
            self.collect(self.dut.run())
            moved = False
            for c in self.rpc("poll_cq", cq="cq0", max=256):
                self.qps[c["qp_num"]].completed.append(c)
            for q in self.qps.values():
                if q.posts and len(q.completed) == len(q.posted):
                    self.post(q)
                    moved = True
            if not moved:
                return

    def wait(self, limit_ns):
        """Until a frame leaves. How long that took."""
        start = self.dut.now()
        self.collect([(int(line.split()[1]), bytes.fromhex(line.split()[2]))
                      for line in self.dut.command("step %d %d" % (TICK_NS, limit_ns))
                      if line.startswith("tx ")])
        self.settle()
        return self.dut.now() - start

    def wait_for_timer(self, q, what):
        """Linux's next request needs a timer: ours must take the time that the rules say."""
        ttr = 4096 << self.timeout
        took = self.wait(5 * ttr if q.rnr is None else RNR_US[q.rnr] * 1000 + MS)
        if not q.frames:
            return
        low, high = (ttr, 4 * ttr) if q.rnr is None else (RNR_US[q.rnr] * 1000,
                                                          RNR_US[q.rnr] * 1000 + MS)
        self.assertTrue(low <= took <= high, "%s: after %d ns, not in %d..%d" % (
            what, took, low, high))
        q.rnr = None

    def next_frame(self, q, what, number=0):
        if not q.frames:
            self.wait_for_timer(q, what)
            self.waited.append(number)
        return q.frames.pop(0) if q.frames else None

    def fail_at(self, cap, end, sent, ours):
        self.fail("%s, end %s: Linux's frame %s is\n  %s\nours is\n  %s\nthen %r" % (
            cap.name, end, sent.number if sent else None,
            asker.describe(sent.raw) if sent else None,
            asker.describe(ours) if ours else None,
            [q.frames for q in self.qps.values()]))

    @staticmethod
    def key(f):
        return f.opcode, f.psn, f.ackreq

    def same(self, cap, end, sent, q, diffs):
        """Linux's request is ours, or differs as listed."""
        what = "%s frame %d" % (cap.name, sent.number)
        for d in [d for d in diffs if d.before == sent.number]:
            ours = self.next_frame(q, what)
            self.assertEqual(d.ours, ours and self.key(ours), "%r, then %r" % (d, q.frames))
            self.used.add(d)
        listed = next((d for d in diffs if d.frame == sent.number), None)
        if listed is not None and listed.ours is None:
            self.used.add(listed)
            return
        ours = self.next_frame(q, what, sent.number)
        if ours is None:
            self.fail_at(cap, end, sent, None)
        self.assertEqual((0, 1), (sent.frame.mig, ours.mig), "WIRE-18: a difference that is none")
        raw = ours.raw
        if listed is not None:
            self.assertEqual(listed.ours, self.key(ours), listed)
            self.assertNotEqual(listed.ours, self.key(sent.frame), "a difference that is none")
            self.used.add(listed)
            if listed.ours[:2] != self.key(sent.frame)[:2]:
                return
            raw = asker.with_ackreq(raw, sent.frame.ackreq)
        if asker.as_linux(raw, sent.raw, cap.faults.get(sent.number)) != sent.raw:
            self.fail_at(cap, end, sent, raw)

    def compare(self, cap, end):
        self.clear()
        self.make("cq_create", name="cq0", cqe=1024)
        self.port_index, self.waited, self.used = "AB".index(end), [], set()
        self.qps = self.askers(cap, end)
        peer = capture.PEER[end]
        v6 = cap.asked(end)[0].frame.version == 6
        self.peers = {q.qpn: Peer(src_mac=capture.MAC[peer], dst_mac=capture.MAC[end],
                                  src_ip=capture.IP[peer][v6], dst_ip=capture.IP[end][v6],
                                  own_qpn=q.dest, qpn=q.qpn) for q in self.qps.values()}
        diffs = [d for d in DIFFERENCES if (d.capture, d.end) == (cap.name, end)]
        self.drain()
        self.settle()
        asked = {s.number for s in cap.asked(end)}
        heard = {s.number for s in cap.heard(end)}
        for sent in cap.frames:
            if sent.number in asked:
                q = next(q for q in self.qps.values() if q.dest == sent.frame.qpn)
                self.same(cap, end, sent, q, diffs)
            elif sent.number in heard:
                f = sent.frame
                if f.opcode == roce.ACK and f.syndrome >> 5 == 1:
                    self.qps[f.qpn].rnr = f.syndrome & 31
                self.dut.rx(sent.raw, self.port_index)
                self.settle()
        self.finish(cap, end, diffs)

    def finish(self, cap, end, diffs):
        """Nothing more is sent; a peer that fell silent ends in a completion."""
        for d in [d for d in diffs if d.before == 0]:
            q = next(iter(self.qps.values()))
            ours = self.next_frame(q, cap.name)
            self.assertEqual(d.ours, ours and self.key(ours), d)
            self.used.add(d)
        if any(len(q.completed) < len(q.posted) for q in self.qps.values()):
            self.wait(5 * (4096 << self.timeout))
        for q in self.qps.values():
            self.assertEqual([], q.frames, "%s: frames that Linux did not send" % cap.name)
            self.assertEqual([], q.posts, cap.name)
            self.compare_completions(cap, end, q)
        self.assertEqual(set(diffs), self.used, "differences that are none")
        early = {n for c, e, n in AT_ONCE if (c, e) == (cap.name, end)}
        self.assertLessEqual(early, set(cap.waited(end)), "no difference: Linux did not wait")
        self.assertEqual([n for n in cap.waited(end) if n not in early], self.waited,
                         "%s: frames that a timer sent" % cap.name)
        self.assertEqual([], self.events())

    def compare_completions(self, cap, end, q):
        self.assertEqual([i for i, _ in enumerate(q.posted)], [c["wr_id"] for c in q.completed])
        if cap.command(end) is None:
            self.assertEqual({"SUCCESS"}, {c["status"] for c in q.completed})
            return
        theirs = [e for e in cap.json[end] if e.get("ev") == "wc" and e["op"] in asker.VERBS]
        self.assertEqual(len(theirs), len(q.completed))
        for i, (their, our) in enumerate(zip(theirs, q.completed)):
            self.assertEqual((their["wr_id"], their["status"].upper()),
                             (our["wr_id"], our["status"]), cap.name)
            post, offset = q.posted[i]
            self.assertEqual(their["op"], post.kind)
            if "crc32" in their:
                data = self.mem(offset, len(post.data), "local%x" % q.qpn) if post.data else b""
                self.assertEqual(their["crc32"], "%08x" % zlib.crc32(data), cap.name)
            if "old" in their:
                self.assertEqual(int(their["old"], 0), int.from_bytes(
                    self.mem(offset, 8, "local%x" % q.qpn), "little"), cap.name)


def add_test(name, end):
    def test(self):
        self.compare(capture.Capture(name), end)
    test.__doc__ = "%s.pcap, end %s as the requester" % (name, end)
    setattr(Requests, "test_%s_%s" % (name, end), test)


class Listed(unittest.TestCase):
    """The tables themselves."""

    def test_every_capture_has_its_test(self):
        tested = {m[len("test_"):-2] for m in dir(Requests) if m.startswith("test_")}
        self.assertTrue(tested)
        self.assertEqual(set(capture.names()), tested | set(NOT_RC))

    def test_differences_have_reasons_and_name_captures(self):
        for d in DIFFERENCES:
            self.assertTrue(d.rule and d.reason, d)
        self.assertLessEqual({d.capture for d in DIFFERENCES} | {c for c, _, _ in AT_ONCE},
                             set(capture.names()) - set(NOT_RC))


for _name, _end in capture.ends(NOT_RC, capture.Capture.asked):
    add_test(_name, _end)

if __name__ == "__main__":
    dut.main()
