# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about the requester: what answers make of its requests, and what it sends again.

Where the partner would not give the answer in question, the wire changes the partner's answer or
gives one of its own.
"""
import roce
from ends import FADD, READ, SEND
from scene import (PATIENT, changed, copies, counted, requester, reth_length, tell, timed, variant,
                   with_aeth, with_opcode)

# ---- answers ------------------------------------------------------------------------------------

def answered(p, act):
    """Four SENDs; of the responder's answers only one arrives, and that one changed."""
    p.connect(of_a=PATIENT)
    last = (p.first + 3) & roce.PSN_MASK
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.ACK and s.psn != last, count=-1)
    p.wire.rule(act(p), p.to_a, lambda s: s.opcode == roce.ACK)
    p.wire.rule("drop", p.to_a, count=-1)
    p.post(*[p.wr(SEND) for _ in range(4)])
    return p.tell_requester()


@requester("REQ-NAK-05, REQ-NAK-09, CQ-02", "NAK-INV for the second of four SENDs",
           "1 SUCCESS, 1 REM_INV_REQ_ERR, 2 WR_FLUSH_ERR; ERR")
def nak_inv(p):
    return answered(p, lambda p: with_aeth(0x61, p.first + 1))


@requester("REQ-NAK-06", "NAK-RAE for the second of four SENDs",
           "1 SUCCESS, 1 REM_ACCESS_ERR, 2 WR_FLUSH_ERR; ERR")
def nak_rae(p):
    return answered(p, lambda p: with_aeth(0x62, p.first + 1))


@requester("REQ-NAK-07", "NAK-ROE for the second of four SENDs",
           "1 SUCCESS, 1 REM_OP_ERR, 2 WR_FLUSH_ERR; ERR")
def nak_roe(p):
    return answered(p, lambda p: with_aeth(0x63, p.first + 1))


@requester("REQ-CLS-B-04", "NAK code 5 for the first of four SENDs",
           "1 BAD_RESP_ERR, 3 WR_FLUSH_ERR; ERR")
def nak_reserved(p):
    return answered(p, lambda p: with_aeth(0x65, p.first))


@requester("REQ-CLS-B-04", "a reserved AETH type for the first of four SENDs",
           "1 BAD_RESP_ERR, 3 WR_FLUSH_ERR; ERR")
def aeth_reserved(p):
    return answered(p, lambda p: with_aeth(0x45, p.first))


@requester("REQ-CLS-B-02", "READ RESPONSE ONLY for the first of four SENDs",
           "1 BAD_RESP_ERR, 3 WR_FLUSH_ERR; ERR")
def data_for_a_send(p):
    def act(p):
        return lambda raw: with_opcode(roce.READ_ONLY)(with_aeth(0x1F, p.first)(raw))
    return answered(p, act)


@requester("REQ-03, REQ-04", "only the last of four ACKs arrives", "4 SUCCESS")
def coalesced(p):
    return answered(p, lambda p: lambda raw: raw)


def read_answered(p, act):
    p.connect(of_a=PATIENT)
    p.wire.rule(act, p.to_a, lambda s: s.opcode == roce.READ_ONLY)
    p.post(p.wr(READ, 100), p.wr(SEND))
    return p.tell_requester()


@requester("REQ-CLS-B-02", "READ RESPONSE LAST where ONLY is due",
           "1 BAD_RESP_ERR, 1 WR_FLUSH_ERR; ERR")
def last_for_only(p):
    return read_answered(p, with_opcode(roce.READ_LAST))


@requester("REQ-CLS-B-02", "READ RESPONSE ONLY that carries a NAK",
           "1 BAD_RESP_ERR, 1 WR_FLUSH_ERR; ERR")
def data_with_nak(p):
    return read_answered(p, with_aeth(0x61))


def read_of_another_length(p, length):
    p.connect(of_a={"timeout": 12, "retry_cnt": 1})
    p.wire.rule(reth_length(length), p.to_b, lambda s: s.opcode == roce.READ_REQ, count=-1)
    p.post(p.wr(READ, 100), p.wr(SEND))
    return p.tell_requester()


for _name, _length in (("read_too_short", 52), ("read_too_long", 200)):
    requester("REQ-CLS-B-03", "READ of 100 bytes answered with %d" % _length,
              "1 LOC_LEN_ERR, 1 WR_FLUSH_ERR; ERR")(
                  variant(_name, read_of_another_length, _length))


# ---- stray answers ------------------------------------------------------------------------------

def with_an_ack(p, **attrs):
    """A connection on which one SEND has been done. @return its ACK, to make others of."""
    p.connect(**attrs)
    p.post(p.wr(SEND))
    p.sent()
    p.sends = 0
    return p.frames("a", roce.ACK)[0].raw


@requester("REQ-15, REQ-CLS-E-01, REQ-NAK-03, REQ-RNR-10",
           "ACK and NAKs for other PSNs than the outstanding one", "1 SUCCESS; 2 copies")
def ghosts(p):
    ack = with_an_ack(p, of_a={"timeout": 15})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(SEND))
    p.wait(lambda: copies(p, 1))
    for syndrome, offset in ((0x1F, -5), (0x1F, 9), (0x61, 9), (0x62, -1), (0x60, 5), (0x2C, 3),
                             (0x1F, 1 << 23)):
        psn = (p.first + 1 + offset) & roce.PSN_MASK
        p.wire.inject(p.to_a, roce.with_icrc(with_aeth(syndrome, psn)(ack)))
    return tell(p.tell_requester(), "%d copies" % len(copies(p, 1)))


@requester("REQ-16", "a READ's answer comes again with other bytes", "1 SUCCESS; buffer as it was")
def late_data(p):
    p.connect()
    p.post(p.wr(READ, 100))
    telling = p.tell_requester()
    before = p.a_end.read("scratch", 0, 100)
    answer = p.frames("a", roce.READ_ONLY)[0].raw
    p.wire.inject(p.to_a, roce.with_icrc(changed(16, bytes(100))(answer)))
    p.post(p.wr(SEND))
    p.sends = 1
    p.sent()
    same = before == p.a_end.read("scratch", 0, 100) == p.b_end.src_data[:100]
    return tell(telling, "buffer as it was" if same else "buffer changed")


@requester("REQ-CLS-B-06", "ACK where a READ RESPONSE is due", "1 SUCCESS")
def ack_for_a_read(p):
    ack = with_an_ack(p, of_a={"timeout": 14})
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.READ_ONLY)
    p.post(p.wr(READ, 100))
    p.wait(lambda: p.frames("a", roce.READ_ONLY))
    p.wire.inject(p.to_a, roce.with_icrc(with_aeth(0x1F, p.first + 1)(ack)))
    return p.tell_requester()


@requester("REQ-RNR-11", "RNR NAK for a READ", "1 SUCCESS; at once")
def rnr_for_a_read(p):
    ack = with_an_ack(p, of_a=PATIENT)
    p.wire.rule("drop", p.to_b)

    def refuse():
        p.wait(lambda: copies(p, 1))
        p.wire.inject(p.to_a, roce.with_icrc(with_aeth(0x2C, p.first + 1)(ack)))
    return timed(p, p.wr(READ, 100), meanwhile=refuse)


@requester("CC-05", "CNP", "2 SUCCESS", only=(
    "rocelane", "not sent: an opcode that its driver does not know"))
def cnp(p):
    ack = with_an_ack(p)
    frame = roce.Peer(src_mac=":".join("%02x" % b for b in ack[6:12]),
                      dst_mac=":".join("%02x" % b for b in ack[0:6]),
                      src_ip=p.b_end.ip, dst_ip=p.a_end.ip, qpn=p.a.qpn).cnp()
    p.wire.inject(p.to_a, frame)
    p.post(p.wr(SEND), p.wr(SEND))
    return p.tell_requester()


# ---- retries ------------------------------------------------------------------------------------

def nobody_there(p, retry_cnt, wait_s=0):
    p.connect(of_a={"timeout": 10, "retry_cnt": retry_cnt})
    p.wire.rule("drop", p.to_b, count=-1)
    p.post(p.wr(SEND))
    p.wait(lambda: len(copies(p)) > 8, wait_s)
    got = p.sent(0.2 if len(copies(p)) > 8 else 5)
    n = len(copies(p))
    state = p.a.state()
    return tell(counted(got), "%d copies" % n if got != ["missing"] else
                "more than 8 copies" if n > 8 else "%d copies" % n, "" if state == "RTS" else state)


for _name, _rule, *_args in (("no_retry", "REQ-RETRY-02", 0), ("one_retry", "REQ-RETRY-02", 1),
                             ("three_retries", "REQ-RETRY-02", 3),
                             ("seven_retries", "REQ-RETRY-03", 7, 1)):
    requester(_rule, "no answer, retry_cnt %d" % _args[0],
              "1 RETRY_EXC_ERR; %d copies; ERR" % (_args[0] + 1))(
                  variant(_name, nobody_there, *_args))


@requester("REQ-RETRY-07, QP-16", "the responder's queue pair is destroyed, 4 SENDs",
           "1 RETRY_EXC_ERR, 3 WR_FLUSH_ERR; ERR")
def peer_gone(p):
    p.connect(of_a={"timeout": 10, "retry_cnt": 2})
    p.b.end.rpc("qp_destroy", qp_num=p.b.qpn)
    p.b.gone = True
    p.post(*[p.wr(SEND) for _ in range(4)])
    return p.tell_requester()


@requester("REQ-NAK-01, REQ-RETRY-08", "second of five SENDs lost",
           "5 SUCCESS; at once; first copy of +0 enough")
def sequence_nak(p):
    p.connect(recvs=5, of_a=PATIENT)
    p.wire.rule("drop", p.to_b, skip=1)
    telling = timed(p, *[p.wr(SEND) for _ in range(5)])
    return tell(telling, "first copy of +0 enough" if len(copies(p)) == 1 else "+0 sent again")


@requester("REQ-14", "a SEND sent again", "1 SUCCESS; same packet")
def same_again(p):
    p.connect(of_a={"timeout": 12})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(SEND))
    telling = p.tell_requester()
    parts = {s.raw[s.at:s.at + 8] + s.raw[s.at + 9:-4] for s in copies(p)}
    return tell(telling, "same packet" if len(parts) == 1 else "another packet")


@requester("TMR-02", "a SEND lost, timeout 16 (0.27 s)",
           "1 SUCCESS; sent again within Ttr .. 4 Ttr")
def timer(p):
    p.connect(of_a={"timeout": 16})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(SEND))
    telling = p.tell_requester()
    one, two = copies(p)[:2]
    ttr = 4.096e-6 * 2 ** 16
    return tell(telling, "sent again within Ttr .. 4 Ttr" if ttr * 0.99 <= two.time - one.time <=
                4 * ttr else "sent again too early" if two.time - one.time < ttr else
                "sent again too late")


@requester("TMR-03", "a SEND lost, timeout 0; another one after 0.5 s", "2 SUCCESS; no timer")
def no_timer(p):
    p.connect(of_a={"timeout": 0})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(SEND))
    resent = p.wait(lambda: len(copies(p)) > 1, 0.5)
    p.post(p.wr(SEND))
    return tell(p.tell_requester(), "resent" if resent else "no timer")


# ---- receiver not ready -------------------------------------------------------------------------

def never_ready(p, rnr_retry):
    p.connect(recvs=0, of_a={"rnr_retry": rnr_retry}, of_b={"min_rnr_timer": 1})
    p.post(p.wr(SEND))
    telling = p.tell_requester()
    return tell(telling, "%d copies" % len(copies(p)))


for _name, _retries in (("no_rnr_retry", 0), ("one_rnr_retry", 1), ("three_rnr_retries", 3)):
    requester("REQ-RNR-04", "never ready, rnr_retry %d" % _retries,
              "1 RNR_RETRY_EXC_ERR; ERR; %d copies" % (_retries + 1))(
                  variant(_name, never_ready, _retries))


def rnrs(p):
    return [s for s in p.frames("a", roce.ACK) if s.syndrome >> 5 == 1]


@requester("REQ-RNR-06", "ready after 12 RNR NAKs, rnr_retry 7", "1 SUCCESS")
def rnr_for_ever(p):
    p.connect(recvs=0, of_a={"rnr_retry": 7}, of_b={"min_rnr_timer": 1})
    p.post(p.wr(SEND))
    p.wait(lambda: len(rnrs(p)) >= 12)
    p.post_recv(1)
    return p.tell_requester()


@requester("REQ-RNR-05", "never ready, rnr_retry 0, three SENDs",
           "1 RNR_RETRY_EXC_ERR, 2 WR_FLUSH_ERR; ERR")
def rnr_exhausted(p):
    p.connect(recvs=0, of_a={"rnr_retry": 0})
    p.post(*[p.wr(SEND) for _ in range(3)])
    return p.tell_requester()


@requester("REQ-RNR-01, REQ-RNR-03, REQ-RNR-09",
           "RNR NAK of 163.84 ms for the second of four SENDs, timeout 14 (67 ms)",
           "4 SUCCESS; waits long enough; silent meanwhile; +0 not sent again")
def rnr_wait(p):
    p.connect(recvs=1, of_a={"timeout": 14}, of_b={"min_rnr_timer": 28})
    p.post(*[p.wr(SEND) for _ in range(4)])
    p.wait(lambda: rnrs(p))
    p.post_recv(3)
    telling = p.tell_requester()
    told = rnrs(p)[0].time
    again = [s for s in p.frames("b") if s.time > told + 0.02]
    return tell(telling, "waits long enough" if again[0].time - told >= 0.1635 else "too early",
                "silent meanwhile" if p.offset(again[0].psn) == 1 else "not silent",
                "+0 not sent again" if len(copies(p)) == 1 else "+0 sent again")


# ---- implied NAKs -------------------------------------------------------------------------------

@requester("REQ-IMPL-01", "answer to a READ lost, the SEND behind it acknowledged",
           "2 SUCCESS; at once")
def ack_beyond_a_read(p):
    p.connect(of_a=PATIENT)
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.READ_ONLY)
    return timed(p, p.wr(READ, 100), p.wr(SEND))


@requester("REQ-IMPL-02, REQ-IMPL-04, REQ-IMPL-09", "third of four packets of a READ's answer lost",
           "1 SUCCESS; at once; asked again from +2")
def gap_in_data(p):
    p.connect(of_a=PATIENT)
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.READ_MIDDLE, skip=1)
    telling = timed(p, p.wr(READ, 4096))
    data_right = p.a_end.read("scratch", 0, 4096) == p.b_end.src_data[:4096]
    again = p.frames("b", roce.READ_REQ)[1:]
    return tell(telling, *["asked again from +%d" % p.offset(s.psn) for s in again],
                "" if data_right else "wrong data")


@requester("REQ-IMPL-03", "answer to a FetchAdd lost, the SEND behind it acknowledged",
           "2 SUCCESS; at once")
def ack_beyond_an_atomic(p):
    p.connect(of_a=PATIENT)
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.ATOMIC_ACK)
    return timed(p, p.wr(FADD), p.wr(SEND))


@requester("REQ-IMPL-06", "no answer to a READ ever, the SEND behind it acknowledged, retry_cnt 1",
           "1 RETRY_EXC_ERR, 1 WR_FLUSH_ERR; ERR; at once")
def ack_beyond_a_read_for_ever(p):
    p.connect(of_a={**PATIENT, "retry_cnt": 1})
    p.wire.rule("drop", p.to_a, lambda s: s.opcode == roce.READ_ONLY, count=-1)
    return timed(p, p.wr(READ, 100), p.wr(SEND))
