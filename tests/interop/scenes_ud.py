# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about datagrams: who knows the Q_Key is served, what is lost is lost, nobody says so."""
from ends import QKEY, SEND, SEND_IMM
from scene import RECV_LEN, changed, counted, requester, responder, tell

DATAGRAM = {"qp_type": "UD"}
GRH = 40
GROUP, GROUP_QPN = "ff15::7:7777", 0xFFFFFF
SOON_S = 0.3        # nothing else comes


def whole(p, slot, size):
    """Are the bytes of "src" there, behind the IP header?"""
    return p.b_end.read("scratch", slot * RECV_LEN + GRH, size) == p.a_end.read("src", 0, size)


def arrived(p, n, *places):
    """n receives, no more of them, and nothing was ever sent back. (slot, bytes) of some."""
    done = p.b.received(n, 4)
    got = [c["status"] for c in done] + [c["status"] for c in p.b.received(1, SOON_S)]
    state = p.b.state()
    answers = len(p.frames("a"))
    return tell("receives: %s" % counted(got),
                "" if "SUCCESS" not in got else
                "whole" if all(whole(p, *place) for place in places) else "other bytes",
                "%d answers" % answers if answers else "no answer", *p._events(p.b),
                "" if state == "RTS" else state)


def three(p, *wrs, act=None, at=1, **kw):
    """Datagrams of 500 bytes; the frame number `at` is changed on its way, or lost."""
    p.connect(**DATAGRAM, **kw)
    if act is not None:
        p.wire.rule(act, p.to_b, lambda s: p.offset(s.psn) == at)
    p.post(*(wrs or [p.wr(SEND, 500) for _ in range(3)]))
    sent = p.sent()
    return "" if set(sent) == {"SUCCESS"} else "sends: " + counted(sent)


TWO = "receives: 2 SUCCESS; whole; no answer"


@responder("UD-01, UD-11", "SEND and SEND with immediate, 500 and 1024 bytes",
           "receives: 2 SUCCESS; whole; no answer; immediate; byte_len 540, 1064; GRH")
def ud_messages(p):
    p.connect(**DATAGRAM)
    p.post(p.wr(SEND, 500), p.wr(SEND_IMM, 1024))
    p.sent()
    done = p.b.received(2, 4)
    state = arrived(p, 0, (0, 500), (1, 1024))
    imm = [c.get("imm_data") for c in done]
    return tell("receives: %s" % counted([c["status"] for c in done]), "whole" if whole(
        p, 0, 500) and whole(p, 1, 1024) else "other bytes", state.split("; ")[-1],
        "immediate" if imm[-1] == 0x11223344 and imm[0] in (None, 0) else "imm %r" % imm,
        "byte_len " + ", ".join(str(c["byte_len"]) for c in done),
        "GRH" if all("GRH" in c["wc_flags"] for c in done) else "no GRH")


@responder("UD-14", "what is ahead of the payload", "zeros, then the IPv4 header as it came")
def ud_header(p):
    p.connect(ah_attr={"traffic_class": 0x20, "hop_limit": 17}, **DATAGRAM)
    p.post(p.wr(SEND, 500))
    p.sent()
    p.b.received(1, 4)
    head = p.b_end.read("scratch", 0, GRH)
    raw = p.frames("b")[0].raw
    zeros = head[:20] == bytes(20)
    return "%s, then %s" % ("zeros" if zeros else "no zeros",
                            "the IPv4 header as it came" if head[20:] == raw[14:34] else
                            "other bytes")


@responder("UD-02, UD-19", "a wrong Q_Key between two right ones", TWO)
def ud_wrong_qkey(p):
    p.connect(**DATAGRAM)
    p.post(p.wr(SEND, 500), p.wr(SEND, 500, qkey=QKEY + 1), p.wr(SEND, 500))
    p.sent()
    return arrived(p, 2, (0, 500), (1, 500))


@responder("UD-18", "a wrong P_Key between two right ones", TWO)
def ud_wrong_pkey(p):
    sends = three(p, act=changed(2, b"\x92\x34"))
    return tell(sends, arrived(p, 2, (0, 500), (1, 500)))


@responder("UD-22", "the second of three is lost", TWO)
def ud_loss(p):
    sends = three(p, act="drop")
    return tell(sends, arrived(p, 2, (0, 500), (1, 500)))


@responder("UD-08", "another PSN in the second of three",
           "receives: 3 SUCCESS; whole; no answer")
def ud_psn(p):
    sends = three(p, act=changed(9, b"\x77\x77\x77"))
    return tell(sends, arrived(p, 3, (0, 500), (1, 500), (2, 500)))


@responder("UD-04, UD-27", "longer than the receive, a shorter one behind it",
           "receives: 1 SUCCESS; whole; no answer")
def ud_too_long(p):
    p.connect(recv_len=GRH + 600, **DATAGRAM)
    p.post(p.wr(SEND, 900), p.wr(SEND, 500))
    p.sent()
    return arrived(p, 1, (0, 500))


@responder("UD-04", "without a receive, then with one", "receives: 1 SUCCESS; whole; no answer")
def ud_no_receive(p):
    p.connect(0, **DATAGRAM)
    p.post(p.wr(SEND, 500))
    p.sent()
    p.wait(lambda: len(p.frames("b")) == 1)
    p.wire.drain()
    p.b.received(1, SOON_S)
    p.post_recv(1)
    p.post(p.wr(SEND, 500))
    return arrived(p, 1, (0, 500))


@responder("UD-29", "a SEND ONLY of RC on its way to the queue pair", TWO)
def ud_other_service(p):
    sends = three(p, act=changed(0, b"\x04"))
    return tell(sends, arrived(p, 2, (0, 500), (1, 500)))


@responder("UD-31", "to a group that it has joined, to itself, to the group that it has left", TWO)
def ud_group(p):
    def to_group():
        wr = p.wr(SEND, 500)
        return dict(wr, ud=dict(wr["ud"], ah_attr={"dest_ip": GROUP}, remote_qpn=GROUP_QPN))

    p.connect(**DATAGRAM)
    member = {"qp_num": p.b.qpn, "group": GROUP}
    p.b.end.rpc("mcast_attach", **member)
    try:
        p.post(to_group(), p.wr(SEND, 500))
        got = [c["status"] for c in p.b.received(2, 4)]
    finally:
        p.b.end.rpc("mcast_detach", **member)
    p.post(to_group())
    sent = p.sent()
    got += [c["status"] for c in p.b.received(1, SOON_S)]
    return tell("" if set(sent) == {"SUCCESS"} else "sends: " + counted(sent),
                "receives: %s" % counted(got),
                "whole" if whole(p, 0, 500) and whole(p, 1, 500) else "other bytes",
                "no answer" if not p.frames("a") else "answers", *p._events(p.b))


@requester("UD-22", "three SENDs, and nobody is there", "3 SUCCESS; each packet once; no AckReq")
def ud_completes_alone(p):
    p.connect(**DATAGRAM)
    p.wire.rule("drop", p.to_b, count=-1)
    p.post(*[p.wr(SEND, 500) for _ in range(3)])
    telling = p.tell_requester()
    p.wait(lambda: len(p.frames("b")) > 3, SOON_S)
    frames = p.frames("b")
    return tell(telling, "each packet once" if len({s.psn for s in frames}) == len(frames) == 3
                else "%d packets" % len(frames),
                "AckReq" if any(s.ack_req for s in frames) else "no AckReq")


@requester("UD-05, UD-06, UD-07", "another Q_Key, one with its highest bit, and the QP's own",
           "3 SUCCESS; Q_Keys 12345678 11111111 11111111")
def ud_qkeys(p):
    p.connect(**DATAGRAM)
    p.post(*[p.wr(SEND, 8, qkey=k) for k in (0x12345678, 0x80010000, QKEY)])
    telling = p.tell_requester()
    p.wait(lambda: len(p.frames("b")) == 3)
    keys = [s.raw[s.at + 12:s.at + 16].hex() for s in p.frames("b")]
    return tell(telling, "Q_Keys " + " ".join(keys))


@requester("UD-16, QP-11", "second of three SENDs has a bad lkey",
           "1 SUCCESS, 1 LOC_PROT_ERR, 1 WR_FLUSH_ERR; SQE")
def ud_bad_lkey(p):
    p.connect(**DATAGRAM)
    bad = [{"addr": "0x1000", "length": 64, "lkey": "0x00deaf00"}]
    p.post(p.wr(SEND), p.wr(SEND, sg_list=bad), p.wr(SEND))
    return p.tell_requester()


@requester("UD-12", "one byte more than the path MTU of the port",
           ("refused when it is posted", "1 LOC_LEN_ERR; SQE"))
def ud_too_long_to_send(p):
    p.connect(**DATAGRAM)
    answer = p.post(p.wr(SEND, 4097))
    return "refused when it is posted" if answer["refused"] else p.tell_requester()


@requester("UD-25", "RDMA WRITE", "refused when it is posted")
def ud_write(p):
    p.connect(**DATAGRAM)
    answer = p.post(p.wr("RDMA_WRITE", 8))
    return "refused when it is posted" if answer["refused"] else p.tell_requester()
