# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about the requester: what it sends, local faults, and states of its queue pair."""
import roce
from ends import READ, SEND, SEND_IMM, WRITE
from scene import copies, counted, requester, tell

# ---- what it sends ------------------------------------------------------------------------------

@requester("REQ-10", "six READs, max_rd_atomic 2", "6 SUCCESS; 2 at a time")
def reads_at_a_time(p):
    p.connect(of_a={"max_rd_atomic": 2, "timeout": 15})
    p.wire.rule("drop", p.to_a, count=-1)
    p.post(*[p.wr(READ, 700) for _ in range(6)])

    def asked():
        return {s.psn for s in p.frames("b", roce.READ_REQ)}
    p.wait(lambda: len(asked()) >= 2)
    p.wait(lambda: len(asked()) > 2, 0.05)
    most = len(asked())
    p.wire.calm()
    return tell(p.tell_requester(), "%d at a time" % most)


@requester("REQ-11", "SEND with a fence behind a READ of 8 packets", "2 SUCCESS; after the data")
def fence(p):
    p.connect()
    p.post(p.wr(READ, 8192), p.wr(SEND, send_flags=["SIGNALED", "FENCE"]))
    telling = p.tell_requester()
    codes = [s.opcode for s in p.wire.frames()]
    return tell(telling, "after the data" if codes.index(roce.SEND_ONLY) >
                codes.index(roce.READ_LAST) else "before the data")


@requester("REQ-07, WIRE-18", "SE, AckReq and MigReq in a solicited SEND of 3 packets",
           "SE 0 0 1; AckReq on the last; MigReq 1")
def flags(p):
    p.connect()
    p.post(p.wr(SEND, 3000, send_flags=["SIGNALED", "SOLICITED"]))
    p.sent()
    frames = p.frames("b")
    return tell("SE " + " ".join(str(s.raw[s.at + 1] >> 7) for s in frames),
                "AckReq on the last" if frames[-1].ack_req else "no AckReq",
                "MigReq %d" % (frames[0].raw[frames[0].at + 1] >> 6 & 1))


@requester("REQ-09", "three SENDs without completion, one with", "1 SUCCESS; the fourth")
def unsignalled(p):
    p.connect()
    p.post(*[p.wr(SEND, send_flags=[]) for _ in range(3)], p.wr(SEND))
    done = p.a.sent(1) + p.a.sent(3, 0.1)
    return tell(counted([c["status"] for c in done]),
                "the fourth" if [c["wr_id"] for c in done] == [3] else "another one")


# ---- local faults -------------------------------------------------------------------------------

@requester("REQ-CLS-B-01", "second of three SENDs has a bad lkey",
           "1 SUCCESS, 1 LOC_PROT_ERR, 1 WR_FLUSH_ERR; ERR",
           linux_varies=("3 missing", "1 SUCCESS, 1 LOC_QP_OP_ERR, 1 WR_FLUSH_ERR; ERR"))
def bad_lkey(p):
    p.connect()
    p.post(p.wr(SEND), p.wr(SEND, sg_list=[{"lkey": "0x00deaf00", "addr": "0x1000",
                                            "length": 100}]), p.wr(SEND))
    return p.tell_requester()


@requester("REQ-CLS-B-01", "SEND from past the end of its region", "1 LOC_PROT_ERR; ERR")
def past_the_local_end(p):
    local = p.region("own", 8192, where=p.a_end)
    p.connect()
    p.post(p.wr(SEND, sg_list=[{"mr": "own", "offset": local["length"] - 99, "length": 100}]))
    return p.tell_requester()


@requester("REQ-19", "READ into a region that is gone when the answer comes",
           "1 LOC_PROT_ERR; ERR")
def read_into_nothing(p):
    p.region("own", 8192, where=p.a_end)
    p.connect(of_a={"timeout": 15})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(READ, sg_list=[{"mr": "own", "offset": 0, "length": 100}]))
    p.wait(lambda: copies(p))
    p.regions.pop()
    p.a_end.drop_region("own")
    return p.tell_requester()


@requester("CQ-09", "posts that nobody could carry out",
           "in INIT refused; in RTR refused; 5 entries of 4 refused")
def refused_posts(p):
    p.connect(recvs=0, of_a={"stay_in": "INIT"})
    told = []

    def attempt(what, **over):
        told.append("%s %s" % (what, "refused" if p.a.post_send(p.wr(SEND, **over))["refused"]
                               else "accepted"))

    attempt("in INIT")
    p.a.attrs["stay_in"] = "RTR"
    p.a.connect(p.b)
    attempt("in RTR")
    p.a.attrs["stay_in"] = ""
    p.a.to_rts()
    attempt("5 entries of 4", sg_list=5 * [{"mr": "src", "offset": 0, "length": 8}])
    return tell(*told)


@requester("QP-12, TMR-10", "modified to ERR with 3 SENDs under way", "3 WR_FLUSH_ERR; ERR; silent")
def to_error(p):
    p.connect(of_a={"timeout": 12})
    p.wire.rule("drop", p.to_b, count=-1)
    p.post(*[p.wr(SEND) for _ in range(3)])
    p.wait(lambda: copies(p, 2))
    p.a.modify(qp_state="ERR")
    telling = p.tell_requester()
    p.wire.clear()
    quiet = not p.wait(lambda: p.frames("b"), 0.1)
    return tell(telling, "silent" if quiet else "goes on")


@requester("QP-13", "a SEND posted in ERR", "1 WR_FLUSH_ERR; ERR")
def send_in_error(p):
    p.connect()
    p.a.modify(qp_state="ERR")
    p.post(p.wr(SEND))
    got = p.sent(0.5)
    return tell(counted(got), p.a.state())


@requester("QP-09, AE-06", "modified to SQD with 2 SENDs under way", "2 SUCCESS; SQ_DRAINED; SQD",
           linux_varies=("2 SUCCESS; SQ_DRAINED; SQD", "2 SUCCESS; SQD"))
def drained(p):
    p.connect(of_a={"timeout": 14})
    p.wire.rule("drop", p.to_b)
    p.post(p.wr(SEND), p.wr(SEND_IMM))
    p.wait(lambda: copies(p, 1))
    p.a.modify(qp_state="SQD", en_sqd_async_notify=True)
    return p.tell_requester()


@requester("QP-05, QP-15", "RESET after an error, then brought up again", "1 SUCCESS")
def again(p):
    p.connect(of_a={"timeout": 10, "retry_cnt": 0})
    p.wire.rule("drop", p.to_b, count=-1)
    p.post(p.wr(WRITE))
    p.sent()
    p.wire.clear()
    for side in (p.a, p.b):
        side.modify(qp_state="RESET")
        side.to_init()
    p.a.attrs.update(timeout=16, retry_cnt=7)
    p.b.connect(p.a)
    p.a.connect(p.b)
    p.sends = 0
    p.post(p.wr(WRITE))
    return p.tell_requester()
