# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about unreliable connections: what is lost is lost, whole, and nobody says so."""
from ends import READ, SEND, SEND_IMM, WRITE, WRITE_IMM
from scene import RECV_LEN, changed, counted, requester, responder, tell

QUIET = {"qp_type": "UC"}
SOON_S = 0.3        # nothing else comes


def arrived(p, n, *places):
    """n receives, no more of them, and nothing was ever sent back. (slot, bytes) of some."""
    got = p.received(n, 4) + [c["status"] for c in p.b.received(1, SOON_S)]
    state = p.b.state()
    answers = len(p.frames("a"))
    return tell("receives: %s" % counted(got),
                "" if "SUCCESS" not in got else
                "whole" if all(whole(p, *place) for place in places) else "other bytes",
                "%d answers" % answers if answers else "no answer", *p._events(p.b),
                "" if state == "RTS" else state)


def whole(p, slot, size):
    """Are the bytes of "src" there?"""
    return p.b_end.read("scratch", slot * RECV_LEN, size) == p.a_end.read("src", 0, size)


def lost(p, psns, *wrs, recvs=4):
    """Packets of these PSNs, counted from the first, do not arrive."""
    p.connect(recvs, **QUIET)
    for i in psns:
        p.wire.rule("drop", p.to_b, lambda s, i=i: p.offset(s.psn) == i)
    p.post(*wrs)
    sent = p.sent()
    return "" if sent == ["SUCCESS"] * len(wrs) else "sends: " + counted(sent)


ONE = "receives: 1 SUCCESS; whole; no answer"


@responder("UC-01, UC-06", "SEND and WRITE of 3 packets, with and without immediate",
           "receives: 3 SUCCESS; whole; no answer")
def uc_messages(p):
    p.connect(**QUIET)
    p.post(p.wr(SEND, 3000), p.wr(WRITE, 3000, at=40960), p.wr(SEND_IMM, 3000),
           p.wr(WRITE_IMM, 3000, at=49152))
    p.sent()
    return arrived(p, 3, *[(slot, 3000) for slot in (0, 1, 10, 12)])


@responder("UC-07", "the second of a SEND's three packets is lost, a SEND behind it", ONE)
def uc_loss_in_the_middle(p):
    sends = lost(p, [1], p.wr(SEND, 3000), p.wr(SEND, 500))
    return tell(sends, arrived(p, 1, (0, 500)))


@responder("UC-08", "the first of a SEND's three packets is lost, a SEND behind it", ONE)
def uc_loss_of_the_first(p):
    sends = lost(p, [0], p.wr(SEND, 3000), p.wr(SEND, 500))
    return tell(sends, arrived(p, 1, (0, 500)))


@responder("UC-07", "the last of a SEND's three packets is lost, a SEND behind it", ONE)
def uc_loss_of_the_last(p):
    sends = lost(p, [2], p.wr(SEND, 3000), p.wr(SEND, 500))
    return tell(sends, arrived(p, 1, (0, 500)))


@responder("UC-05", "a whole SEND is lost between two", "receives: 2 SUCCESS; whole; no answer")
def uc_loss_between(p):
    sends = lost(p, [1], *[p.wr(SEND, 500) for _ in range(3)])
    return tell(sends, arrived(p, 2, (1, 500)))


@responder("UC-09", "a SEND's last packet is lost, a WRITE and a SEND behind it", ONE)
def uc_another_kind(p):
    sends = lost(p, [2], p.wr(SEND, 3000), p.wr(WRITE, 500, at=40960), p.wr(SEND, 500))
    return tell(sends, arrived(p, 1, (0, 500)), "" if whole(p, 10, 500) else "WRITE lost")


@responder("UC-03", "SEND without a receive, then with one", ONE)
def uc_no_receive(p):
    p.connect(0, **QUIET)
    p.post(p.wr(SEND, 3000))
    p.sent()
    p.wait(lambda: len(p.frames("b")) == 3)
    p.wire.drain()
    p.b.received(1, SOON_S)
    p.post_recv(1)
    p.post(p.wr(SEND, 500))
    return arrived(p, 1, (0, 500))


@responder("UC-04, UC-10", "WRITE of 3 packets with a key never issued, a SEND behind it", ONE)
def uc_unknown_key(p):
    p.connect(**QUIET)
    p.post(p.wr(WRITE, 3000, rkey="0x00deaf00"), p.wr(SEND, 500))
    p.sent()
    return arrived(p, 1, (0, 500))


@responder("RX-HDR-01, UC-05", "a wrong P_Key in the second of three SENDs",
           "receives: 2 SUCCESS; whole; no answer")
def uc_wrong_pkey(p):
    p.connect(**QUIET)
    p.wire.rule(changed(2, b"\x92\x34"), p.to_b, lambda s: p.offset(s.psn) == 1)
    p.post(*[p.wr(SEND, 500) for _ in range(3)])
    sent = p.sent()
    return tell("" if set(sent) == {"SUCCESS"} else "sends: " + counted(sent),
                arrived(p, 2, (0, 500), (1, 500)))


@responder("UC-12", "SEND longer than the receive, a shorter one behind it", ONE)
def uc_too_long(p):
    p.connect(recv_len=600, **QUIET)
    p.post(p.wr(SEND, 900), p.wr(SEND, 500))
    p.sent()
    return arrived(p, 1, (0, 500))


@requester("UC-02, UC-14", "SEND and WRITE of 3 packets, and nobody is there",
           "2 SUCCESS; each packet once; no AckReq",)
def uc_completes_alone(p):
    p.connect(**QUIET)
    p.wire.rule("drop", p.to_b, count=-1)
    p.post(p.wr(SEND, 3000), p.wr(WRITE, 3000))
    telling = p.tell_requester()
    p.wait(lambda: len(p.frames("b")) > 6, SOON_S)
    frames = p.frames("b")
    return tell(telling, "each packet once" if len({s.psn for s in frames}) == len(frames) == 6
                else "%d packets" % len(frames),
                "AckReq" if any(s.ack_req for s in frames) else "no AckReq")


@requester("UC-15, QP-11", "second of three SENDs has a bad lkey",
           "1 SUCCESS, 1 LOC_PROT_ERR, 1 WR_FLUSH_ERR; SQE")
def uc_bad_lkey(p):
    p.connect(**QUIET)
    bad = [{"addr": "0x1000", "length": 64, "lkey": "0x00deaf00"}]
    p.post(p.wr(SEND), p.wr(SEND, sg_list=bad), p.wr(SEND))
    return p.tell_requester()


@requester("UC-16", "READ", "refused when it is posted")
def uc_read(p):
    p.connect(**QUIET)
    answer = p.post(p.wr(READ))
    return "refused when it is posted" if answer["refused"] else p.tell_requester()

