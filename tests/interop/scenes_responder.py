# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about the responder: what it refuses, and how.

A requester that would not send a faulty request gets a right one posted, and the wire changes it.
"""
import roce
from ends import ALL_ACCESS, CAS, FADD, READ, SEND, SEND_INV, WRITE, WRITE_IMM
from scene import FAST, bth, reth_length, responder, tell, with_opcode

RAE = "NAK-RAE +0; receives: 4 WR_FLUSH_ERR; QP_ACCESS_ERR; ERR"
INV = "NAK-INV +0; receives: 4 WR_FLUSH_ERR; QP_REQ_ERR; ERR"
NEVER_ISSUED = "0x00deaf00"


def one(p, *wrs, **attrs):
    """Connect, post these, wait for the requester to be done with them, tell."""
    p.connect(**attrs)
    p.post(*wrs)
    p.sent()
    return p.tell_responder()


# ---- remote access ------------------------------------------------------------------------------

@responder("RESP-NAK-RAE-01, RESP-NAK-05", "WRITE with a key never issued, two SENDs behind it",
           RAE)
def write_unknown_key(p):
    return one(p, p.wr(WRITE, rkey=NEVER_ISSUED), p.wr(SEND), p.wr(SEND))


@responder("RESP-NAK-RAE-01", "READ with a key never issued", RAE)
def read_unknown_key(p):
    return one(p, p.wr(READ, rkey=NEVER_ISSUED))


@responder("RESP-NAK-RAE-01", "FetchAdd with a key never issued", RAE)
def atomic_unknown_key(p):
    return one(p, p.wr(FADD, rkey=NEVER_ISSUED))


@responder("RESP-NAK-RAE-02", "WRITE that ends one byte past its region", RAE)
def write_past_the_end(p):
    return one(p, p.wr(WRITE, 100, p.region("short"), at=8192 - 99))


@responder("RESP-NAK-RAE-02", "READ that starts below its region", RAE)
def read_below_the_start(p):
    target = p.region("short", access=["REMOTE_READ"])
    return one(p, p.wr(READ, 100, target, at=-8))


@responder("RESP-NAK-RAE-05", "WRITE of 8 packets, the last of them past the region's end", RAE)
def write_range_on_first(p):
    target = p.region("short", access=["REMOTE_WRITE"])
    telling = one(p, p.wr(WRITE, 8193, target))
    touched = p.b_end.read("short", 0, 8192) != bytes(8192)
    return tell(telling, "memory written" if touched else "")


@responder("RESP-NAK-RAE-03", "WRITE to a region without REMOTE_WRITE", RAE)
def write_not_granted(p):
    return one(p, p.wr(WRITE, 100, p.region("other", access=["REMOTE_READ"])))


@responder("RESP-NAK-RAE-03", "READ from a region without REMOTE_READ", RAE)
def read_not_granted(p):
    return one(p, p.wr(READ, 100, p.region("other", access=["REMOTE_WRITE"])))


@responder("RESP-NAK-RAE-03", "CmpSwap on a region without REMOTE_ATOMIC", RAE)
def atomic_not_granted(p):
    return one(p, p.wr(CAS, 8, p.region("other", access=["REMOTE_WRITE", "REMOTE_READ"])))


@responder("RESP-NAK-RAE-04", "WRITE with the key of a region that is gone", RAE)
def write_stale_key(p):
    target = p.region("gone", access=["REMOTE_WRITE"])
    p.regions.pop()
    p.b_end.drop_region("gone")
    return one(p, p.wr(WRITE, 100, target))


@responder("RESP-NAK-RAE-08, AE-10", "WRITE with immediate and a key never issued",
           "NAK-RAE +0; receives: 1 REM_ACCESS_ERR, 3 WR_FLUSH_ERR; ERR")
def write_imm_unknown_key(p):
    return one(p, p.wr(WRITE_IMM, rkey=NEVER_ISSUED))


@responder("RESP-08", "WRITE and READ of 0 bytes with a key never issued", "no NAK")
def nothing_with_unknown_key(p):
    return one(p, p.wr(WRITE, 0, rkey=NEVER_ISSUED), p.wr(READ, 0, rkey=NEVER_ISSUED))


# ---- invalid requests ---------------------------------------------------------------------------

def without(access):
    return {"of_b": {"qp_access_flags": [a for a in ALL_ACCESS if a != access]}}


@responder("RESP-NAK-INV-02, RESP-NAK-INV-16", "WRITE to a queue pair without REMOTE_WRITE", INV)
def write_not_enabled(p):
    return one(p, p.wr(WRITE), **without("REMOTE_WRITE"))


@responder("RESP-NAK-INV-02", "READ from a queue pair without REMOTE_READ", INV)
def read_not_enabled(p):
    return one(p, p.wr(READ), **without("REMOTE_READ"))


@responder("RESP-NAK-INV-02", "FetchAdd on a queue pair without REMOTE_ATOMIC", INV)
def atomic_not_enabled(p):
    return one(p, p.wr(FADD), **without("REMOTE_ATOMIC"))


@responder("RESP-NAK-INV-06, RESP-NAK-INV-15", "SEND of 2 packets, the receive has room for 1500",
           "NAK-INV +1; receives: 1 LOC_LEN_ERR, 3 WR_FLUSH_ERR; ERR")
def send_too_long(p):
    return one(p, p.wr(SEND, 2048), recv_len=1500)


@responder("RESP-NAK-INV-06", "SEND of one packet, longer than the receive",
           "NAK-INV +0; receives: 1 LOC_LEN_ERR, 3 WR_FLUSH_ERR; ERR")
def send_only_too_long(p):
    return one(p, p.wr(SEND, 500), recv_len=100)


def rewritten(p, code, act, *wrs, **attrs):
    """The first request packet of this opcode is changed on the wire."""
    p.connect(**attrs)
    rule = p.wire.rule(act, p.to_b, lambda s: s.opcode == code)
    p.post(*wrs)
    p.sent()
    return tell("" if rule.hits == 1 else "nothing was rewritten", p.tell_responder())


@responder("RESP-NAK-INV-03", "SEND LAST where no message is open", INV)
def last_without_first(p):
    return rewritten(p, roce.SEND_ONLY, with_opcode(roce.SEND_LAST), p.wr(SEND))


@responder("RESP-NAK-INV-04", "SEND ONLY while a SEND is open",
           "NAK-INV +1; receives: 1 REM_INV_REQ_ERR, 3 WR_FLUSH_ERR; ERR")
def only_inside_a_message(p):
    return rewritten(p, roce.SEND_LAST, with_opcode(roce.SEND_ONLY), p.wr(SEND, 1500))


@responder("RESP-NAK-INV-05", "WRITE LAST after SEND FIRST",
           "NAK-INV +1; receives: 1 REM_INV_REQ_ERR, 3 WR_FLUSH_ERR; ERR")
def type_change(p):
    return rewritten(p, roce.SEND_LAST, with_opcode(roce.WRITE_LAST), p.wr(SEND, 1500))


@responder("RESP-NAK-INV-05", "SEND LAST after WRITE FIRST",
           "NAK-INV +1; receives: 4 WR_FLUSH_ERR; QP_REQ_ERR; ERR")
def type_change_in_a_write(p):
    return rewritten(p, roce.WRITE_LAST, with_opcode(roce.SEND_LAST), p.wr(WRITE, 1500))


@responder("RESP-NAK-INV-09", "FetchAdd on an address that is no multiple of 8", INV)
def atomic_misaligned(p):
    def crooked(raw):
        at = bth(raw) + 19
        return raw[:at] + bytes([raw[at] | 4]) + raw[at + 1:]
    return rewritten(p, roce.FETCH_ADD, crooked, p.wr(FADD))


@responder("RESP-NAK-INV-13", "WRITE ONLY of 100 bytes whose RETH says 999", INV)
def write_length_differs(p):
    return rewritten(p, roce.WRITE_ONLY, reth_length(999), p.wr(WRITE, 100))


@responder("RESP-NAK-INV-13", "WRITE of 2 packets whose RETH says less than they hold",
           "NAK-INV +1; receives: 4 WR_FLUSH_ERR; QP_REQ_ERR; ERR")
def write_longer_than_said(p):
    return rewritten(p, roce.WRITE_FIRST, reth_length(1200), p.wr(WRITE, 1500))


@responder("RESP-NAK-INV-08", "SEND FIRST of 256 bytes at a path MTU of 1024", INV)
def first_too_short(p):
    return one(p, p.wr(SEND, 600), of_a={"path_mtu": 256})


@responder("RESP-NAK-INV-08", "WRITE FIRST of 256 bytes at a path MTU of 1024", INV)
def write_first_too_short(p):
    return one(p, p.wr(WRITE, 600), of_a={"path_mtu": 256})


@responder("RESP-NAK-INV-08", "SEND ONLY of 1000 bytes at a path MTU of 256", INV)
def only_too_long(p):
    return one(p, p.wr(SEND, 1000), of_b={"path_mtu": 256})


@responder("RESP-NAK-INV-01", "a reserved opcode at the expected PSN", INV,
           only=("rocelane", "not sent: some kernels crash on it"))
def reserved_opcode(p):
    return rewritten(p, roce.SEND_ONLY, with_opcode(0x1F), p.wr(SEND))


@responder("RESP-NAK-ROE-01", "SEND into a receive with a bad lkey",
           "NAK-ROE +0; receives: 1 LOC_PROT_ERR, 3 WR_FLUSH_ERR; ERR")
def receive_with_bad_key(p):
    p.connect(recvs=0)
    p.b.post_recv({"wr_id": 0, "sg_list": [{"lkey": NEVER_ISSUED, "addr": "0x1000",
                                            "length": 4096}]})
    p.recvs = 1
    p.post_recv(3)
    p.post(p.wr(SEND))
    p.sent()
    return p.tell_responder()


@responder("RESP-CLS-J-01", "SEND with invalidate of a key that nobody may invalidate",
           "no NAK; no answer; receives: 1 REM_INV_REQ_ERR, 3 WR_FLUSH_ERR; ERR")
def invalidate_refused(p):
    p.connect(of_a=FAST)
    p.post(p.wr(SEND_INV, invalidate_rkey=hex(p.b_end.regions["src"]["rkey"])))
    p.sent()
    answered = "ACK" if p.frames("a", roce.ACK) else "no answer"
    head, _, tail = p.tell_responder().partition("; ")
    return tell(head, answered, tail)


@responder("RESP-04", "SEND with invalidate of a key that may be invalidated",
           "no NAK; receives: 1 SUCCESS; invalidated", only=(
               "rocelane", "not run: the kernel wants a memory window"))
def invalidate_granted(p):
    target = p.region("open", access=["REMOTE_WRITE"], remote_invalidate=True)
    p.connect()
    p.post(p.wr(SEND_INV, invalidate_rkey=hex(target["rkey"])))
    p.sent()
    done = p.b.received(1)[0]
    same_key = int(done["invalidated_rkey"], 0) == target["rkey"]
    return tell(p.negatives() or "no NAK", "receives: 1 " + done["status"],
                "invalidated" if same_key and "WITH_INV" in done["wc_flags"] else "wrong key")


@responder("RESP-NAK-02", "SEND, READ of 4 packets, then a WRITE with a key never issued",
           "NAK-RAE +5; 4 READ responses first; receives: 1 SUCCESS, 3 WR_FLUSH_ERR; "
           "QP_ACCESS_ERR; ERR")
def earlier_requests_first(p):
    p.connect()
    p.post(p.wr(SEND), p.wr(READ, 4096), p.wr(WRITE, rkey=NEVER_ISSUED))
    p.sent()
    frames = p.frames("a")
    naks = [i for i, s in enumerate(frames) if s.opcode == roce.ACK and s.syndrome & 0x60]
    reads = [s for s in frames[:naks[0] if naks else 0] if s.opcode in range(0x0D, 0x11)]
    head, _, tail = p.tell_responder().partition("; ")
    return tell(head, "%d READ responses first" % len(reads), tail)


# ---- receiver not ready -------------------------------------------------------------------------

def not_ready(p, *wrs, then=4, **attrs):
    """No receive until the first RNR NAK has been seen."""
    p.connect(recvs=0, **attrs)
    p.post(*wrs)
    p.wait(lambda: [s for s in p.frames("a", roce.ACK) if s.syndrome >> 5 == 1])
    p.post_recv(then)
    p.sent()
    return p.tell_responder()


@responder("RESP-RNR-01, RESP-RNR-04, RESP-RNR-06", "SEND without a receive, posted later",
           "RNR +0; receives: 1 SUCCESS")
def rnr(p):
    return not_ready(p, p.wr(SEND))


@responder("RESP-RNR-05", "three SENDs without a receive", "RNR +0; receives: 3 SUCCESS")
def rnr_and_more(p):
    return not_ready(p, p.wr(SEND), p.wr(SEND), p.wr(SEND), min_rnr_timer=18)


@responder("RESP-RNR-02", "WRITE with immediate of 3 packets without a receive",
           "RNR +2; receives: 1 SUCCESS")
def rnr_at_the_immediate(p):
    return not_ready(p, p.wr(WRITE_IMM, 3000))


@responder("RESP-RNR-02", "WRITE, READ and FetchAdd without a receive", "no NAK")
def no_rnr_without_need(p):
    return one(p, p.wr(WRITE), p.wr(READ), p.wr(FADD), recvs=0)


@responder("RESP-RNR-03", "min_rnr_timer 1, 12, 14 and 20 in the RNR NAK", "21, 2c, 2e, 34")
def rnr_timer_code(p):
    codes = []
    for code in (1, 12, 14, 20):
        p.wire.clear()
        p.recvs = p.sends = 0
        if p.link is not None:
            p.link.close()
        not_ready(p, p.wr(SEND), then=1, min_rnr_timer=code)
        codes.append("%02x" % next(s.syndrome for s in p.frames("a", roce.ACK)))
    return ", ".join(codes)


@responder("RESP-RNR-10", "two SENDs, one receive", "RNR +1; receives: 2 SUCCESS")
def rnr_for_the_second(p):
    p.connect(recvs=1)
    p.post(p.wr(SEND), p.wr(SEND))
    p.wait(lambda: [s for s in p.frames("a", roce.ACK) if s.syndrome >> 5 == 1])
    p.post_recv(1)
    p.sent()
    return p.tell_responder()
