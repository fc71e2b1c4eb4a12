# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about the responder: what is lost, comes again or is damaged, and its other duties."""
import roce
from ends import FADD, READ, SEND, SEND_IMM, WRITE, WRITE_IMM
from scene import FAST, bth, changed, counted, responder, tell, with_ecn

# ---- sequence, duplicates, damage ---------------------------------------------------------------

@responder("RESP-SEQ-01, RESP-SEQ-02, RESP-SEQ-06", "first of four SENDs lost",
           "NAK-SEQ +0; one NAK; receives: 4 SUCCESS")
def gap(p):
    p.connect(of_a={"timeout": 17})
    p.wire.rule("drop", p.to_b)
    p.post(*[p.wr(SEND) for _ in range(4)])
    p.sent()
    naks = [s for s in p.frames("a", roce.ACK) if s.syndrome == 0x60]
    head, _, tail = p.tell_responder().partition("; ")
    return tell(head, "one NAK" if len(naks) == 1 else "more than one NAK", tail)


@responder("RESP-SEQ-11", "middle of a SEND of 3 packets lost", "NAK-SEQ +1; receives: 1 SUCCESS")
def gap_in_a_message(p):
    p.connect(of_a={"timeout": 17})
    p.wire.rule("drop", p.to_b, lambda s: s.opcode == roce.SEND_MIDDLE)
    p.post(p.wr(SEND, 3000))
    p.sent()
    return p.tell_responder()


@responder("RESP-SEQ-12", "last packet of a SEND lost", "no NAK; receives: 1 SUCCESS")
def tail_loss(p):
    p.connect(of_a={"timeout": 13})
    p.wire.rule("drop", p.to_b, lambda s: s.opcode == roce.SEND_LAST)
    p.post(p.wr(SEND, 3000))
    p.sent()
    return p.tell_responder()


def repeated(p, code, answer, *wrs):
    """The request of this opcode arrives again once it has been answered."""
    p.post(*wrs)
    p.sent()
    before = len(p.frames("a", answer))
    p.wire.inject(p.to_b, p.frames("b", code)[0].raw)
    p.wait(lambda: len(p.frames("a", answer)) > before, 0.5)
    return p.frames("a", answer)


@responder("RESP-DUP-01, RESP-DUP-12", "a SEND arrives again, another one was done since",
           "no NAK; acknowledged: +1, MSN 2; receives: 2 SUCCESS")
def duplicate_send(p):
    p.connect()
    ack = repeated(p, roce.SEND_ONLY, roce.ACK, p.wr(SEND), p.wr(SEND))[-1]
    head, _, tail = p.tell_responder().partition("; ")
    return tell(head, "acknowledged: +%d, MSN %d" % (p.offset(ack.psn), ack.msn), tail)


@responder("RESP-DUP-02", "a WRITE arrives again with other bytes",
           "no NAK; memory keeps the first")
def duplicate_write(p):
    p.connect()
    p.post(p.wr(WRITE, 100))
    p.sent()
    raw = p.frames("b", roce.WRITE_ONLY)[0].raw
    p.wire.inject(p.to_b, roce.with_icrc(changed(28, bytes(100))(raw)))
    p.wait(lambda: len(p.frames("a", roce.ACK)) > 1, 0.5)
    kept = p.b_end.read("scratch", 0, 100) == p.a_end.src_data[:100]
    return tell(p.tell_responder(), "memory keeps the first" if kept else "memory changed")


@responder("RESP-DUP-03", "a READ arrives again after the memory has changed",
           "no NAK; answered with what is there now")
def duplicate_read(p):
    p.connect()
    target = p.b_end.regions["scratch"]
    p.b_end.write("scratch", 0, bytes(700))
    p.post(p.wr(READ, 700, target))
    p.sent()
    p.b_end.write("scratch", 0, bytes(range(200)) * 3)
    raw = p.frames("b", roce.READ_REQ)[0].raw
    p.wire.inject(p.to_b, raw)
    p.wait(lambda: len(p.frames("a", roce.READ_ONLY)) > 1, 0.5)
    answers = p.frames("a", roce.READ_ONLY)[1:]
    told = "no answer" if not answers else "answered with what is there now" \
        if answers[0].raw[answers[0].at + 16:][:600] == bytes(range(200)) * 3 else "old data"
    return tell(p.tell_responder(), told)


@responder("RESP-DUP-06", "a FetchAdd arrives again", "no NAK; added once; 2 equal answers")
def duplicate_atomic(p):
    p.connect()
    p.b_end.write("scratch", 0, (5).to_bytes(8, "little"))
    answers = repeated(p, roce.FETCH_ADD, roce.ATOMIC_ACK, p.wr(FADD))
    value = int.from_bytes(p.b_end.read("scratch", 0, 8), "little")
    results = {s.raw[s.at + 16:s.at + 24] for s in answers}
    return tell(p.tell_responder(), "added once" if value == 8 else "value %d" % value,
                "%d %s answers" % (len(answers), "equal" if len(results) == 1 else "different"))


@responder("RESP-DUP-08, RESP-NAK-04", "a READ arrives again after its region is gone",
           "no NAK; no answer to the second")
def duplicate_read_without_region(p):
    target = p.region("brief", access=["REMOTE_READ"])
    p.connect()
    p.post(p.wr(READ, 100, target), p.wr(SEND))
    p.sent()
    again = p.frames("b", roce.READ_REQ)[0].raw
    p.regions.pop()
    p.b_end.drop_region("brief")
    p.wire.clear()
    p.wire.inject(p.to_b, again)
    p.wait(lambda: p.frames("a"), 0.1)
    p.recvs = 0
    return tell(p.negatives() or "no NAK", "answered" if p.frames("a") else
                "no answer to the second", "" if p.b.state() == "RTS" else p.b.state())


@responder("RX-SYN-30, ICRC-06", "SEND with a bit flipped, its ICRC wrong",
           "no NAK; receives: 1 SUCCESS")
def bad_icrc(p):
    p.connect(of_a={"timeout": 13})
    p.wire.rule("flip", p.to_b, lambda s: s.opcode == roce.SEND_ONLY)
    p.post(p.wr(SEND))
    p.sent()
    return p.tell_responder()


def unanswered(p, act):
    """Every request changed in the same way."""
    p.connect(of_a=FAST)
    p.wire.rule(act, p.to_b, count=-1)
    p.post(p.wr(SEND))
    p.sent()
    return "answered" if p.frames("a") else "no answer"


@responder("RX-SYN-14, RX-SYN-15", "SEND to a queue pair that does not exist", "no answer")
def unknown_qp(p):
    return unanswered(p, changed(5, b"\x5a\x5a\x5a"))


@responder("RX-SYN-13", "SEND with a transport version of 1 in the BTH", "no answer")
def wrong_version(p):
    return unanswered(p, lambda raw: changed(1, bytes([raw[bth(raw) + 1] | 1]))(raw))


# ---- other duties -------------------------------------------------------------------------------

@responder("RESP-12", "MSN after SEND, WRITE, READ, FetchAdd and a SEND of 3 packets",
           "1, 2, 3, 4, 5")
def msn(p):
    p.connect()
    told = []
    for wr in (p.wr(SEND), p.wr(WRITE), p.wr(READ), p.wr(FADD), p.wr(SEND, 3000)):
        p.wire.clear()
        p.sends = 0
        p.post(wr)
        p.sent()
        told.append(str([s for s in p.frames("a") if s.syndrome is not None][-1].msn))
    return ", ".join(told)


@responder("RESP-13", "READ of 64 packets with a SEND right behind it", "data first, then the ACK")
def order_of_answers(p):
    p.connect()
    p.post(p.wr(READ, 65536), p.wr(SEND))
    p.sent()
    codes = [s.opcode for s in p.frames("a")]
    last = max(i for i, code in enumerate(codes) if code == roce.READ_LAST)
    return "data first, then the ACK" if roce.ACK in codes[last:] and \
        roce.ACK not in codes[:last] else "out of order"


@responder("RESP-16, AE-05", "SEND, WRITE and READ while the responder is in RTR",
           "3 SUCCESS; receives: 1 SUCCESS; COMM_EST; RTR")
def served_in_rtr(p):
    p.connect(of_b={"stay_in": "RTR"})
    events = []
    p.post(p.wr(SEND), p.wr(WRITE), p.wr(READ))
    sent = p.sent()
    p.wait(lambda: events.extend(p.b_end.rpc("async_events", max=64)) or events, p.event_s)
    state = p.b.state()
    return tell("%d %s" % (sent.count(sent[0]), sent[0]),
                "receives: 1 %s" % p.received(1)[0],
                *sorted({e["event_type"] for e in events}), state)


@responder("CC-03", "16 SENDs marked as having met congestion", "no NAK; CNP; receives: 16 SUCCESS")
def congestion(p):
    p.connect(recvs=16)
    p.wire.rule(with_ecn, p.to_b, count=-1)
    p.post(*[p.wr(SEND) for _ in range(16)])
    p.sent()
    p.wait(lambda: p.frames("a", roce.CNP), 0.3)
    head, _, tail = p.tell_responder().partition("; ")
    return tell(head, "CNP" if p.frames("a", roce.CNP) else "no CNP", tail)


@responder("RESP-03", "immediate data in the completion", "0x11223344, 0x11223344")
def immediate(p):
    p.connect()
    p.post(p.wr(SEND_IMM), p.wr(WRITE_IMM, 2000))
    p.sent()
    return ", ".join("0x%08x" % c["imm_data"] for c in p.b.received(2))


@responder("WIRE-18", "MigReq set in requests, and not set", "2 SUCCESS")
def migreq(p):
    p.connect()
    p.wire.rule(lambda raw: changed(1, bytes([raw[bth(raw) + 1] ^ 0x40]))(raw), p.to_b, skip=1)
    p.post(p.wr(SEND), p.wr(SEND))
    sent = p.sent()
    return "%d %s" % (sent.count("SUCCESS"), "SUCCESS")


@responder("QP-12, CQ-02", "modified to ERR with 4 receives posted",
           "receives: 4 WR_FLUSH_ERR; ERR")
def to_error(p):
    p.connect()
    p.b.modify(qp_state="ERR")
    return tell(*p.tell_responder().split("; ")[1:])


@responder("QP-13", "a receive posted in ERR", "receives: 1 WR_FLUSH_ERR; ERR")
def receive_in_error(p):
    p.connect(recvs=0)
    p.b.modify(qp_state="ERR")
    p.post_recv(1)
    got = p.received(1, 0.5)
    return tell("receives: %s" % counted(got), p.b.state())
