# SPDX-License-Identifier: BSD-3-Clause
"""Scenes about connections: who asks, who answers, what each side takes from the other."""
import mad
import roce
from meeting import LISTENS_NOBODY, MAD_AT, SOON_S, with_fields, with_header
from rdmacm import message
from scene import bth, changed, connection, tell, variant

TERMS = {"retry_count": 5, "rnr_retry_count": 6, "responder_resources": 3, "initiator_depth": 2}


def yes(condition, text, otherwise=None):
    return text if condition else otherwise or "not " + text


def upset(p, name, act, **kw):
    """The other's message of this name is changed on its way."""
    return p.wire.rule(act, p.to_me, message(name), **kw)


# ---- envelopes and headers ----------------------------------------------------------------------

def envelope(s):
    raw, at = s.raw, s.at
    return (raw[at] == roce.UD_SEND_ONLY and raw[at + 1] & 0x3f == 0 and
            raw[at + 2:at + 4] == b"\xff\xff" and raw[at + 12:at + 20] ==
            mad.QKEY.to_bytes(4, "big") + b"\0\0\0\1" and
            raw[at - 4:at - 2] == (288).to_bytes(2, "big") and roce.has_good_icrc(raw))


@connection("CM-01, CM-02, CM-03, CM-04", "all messages of a client, to the end of a connection",
            "REQ, RTU, DREQ; envelopes and headers as they should be; one id; a TID for REQ and "
            "RTU; another for DREQ; ids echoed")
def cm_client_messages(p):
    p.connected_by_me()
    p.i_end_it()
    return messages(p, p.said(3), ("REQ", "RTU"), "DREQ")


@connection("CM-01, CM-02, CM-03, CM-04", "all messages of a server that ends the connection",
            "REP, DREQ; envelopes and headers as they should be; one id; a TID for REQ and REP; "
            "another for DREQ; ids echoed")
def cm_server_messages(p):
    p.connected_to_me()
    p.i_end_it()
    return messages(p, p.said(2), ("REQ", "REP"), "DREQ")


def messages(p, said, same_tid, other_tid):
    mine, its = p.mads(p.to_other), p.mads(p.to_me)
    tids = {m.name: m.tid for _, m in its}
    tids.update((m.name, m.tid) for _, m in mine)
    heads = [{k: v for k, v in m.header.items() if k not in ("tid", "attr_id")} for _, m in mine]
    want = {"base_version": 1, "mgmt_class": 7, "class_version": 2, "method": 3, "status": 0,
            "class_specific": 0, "reserved": 0, "attr_mod": 0}
    good = all(envelope(s) for s, _ in mine) and all(h == want for h in heads) and \
        not any(any(m.reserved) for _, m in mine)
    ids = {m.local_comm_id for _, m in mine}
    peers = {m.local_comm_id for _, m in its}
    echoed = {m.remote_comm_id for _, m in mine if m.name != "REQ"}
    return tell(said, yes(good, "envelopes and headers as they should be"),
                yes(len(ids) == 1 and 0 not in ids, "one id"),
                yes(len({tids[n] for n in same_tid}) == 1, "a TID for " + " and ".join(same_tid)),
                yes(tids[other_tid] != tids["REQ"], "another for " + other_tid),
                yes(echoed == peers, "ids echoed"))


def request(p, ipv6=False):
    p.other.listen(p.port)
    p.i_ask(ipv6=ipv6, private_data=b"hello".hex(), **TERMS)
    p.answered(p.me, p.other)
    return p.mads(p.to_other, "REQ")[0][1]


@connection("CM-05, CM-06", "the REQ: retry counts 5 and 6, depths 3 and 2",
            "service RC; retry 5, RNR 6; depths 3, 2; timeouts and CM retries not 0; P_Key ffff; "
            "LIDs ffff; no alternate path")
def cm_req(p):
    m = request(p)
    return tell(yes(m.transport_service_type == 0, "service RC"),
                "retry %d, RNR %d" % (m.retry_count, m.rnr_retry_count),
                "depths %d, %d" % (m.responder_resources, m.initiator_depth),
                yes(m.primary_local_ack_timeout and m.remote_cm_response_timeout and
                    m.local_cm_response_timeout and m.max_cm_retries,
                    "timeouts and CM retries not 0"), "P_Key %x" % m.pkey,
                yes(m.primary_local_lid == m.primary_remote_lid == 0xffff and
                    m.primary_hop_limit > 1 and not m.primary_subnet_local, "LIDs ffff"),
                yes(not any(m.alternate_local_gid + m.alternate_remote_gid), "no alternate path"))


def cm_addresses(p, ipv6):
    m = request(p, ipv6)
    head = mad.ip_header(m.private_data)
    def last(v):
        return v[-4:] if isinstance(v, bytes) else (v & 0xffffffff).to_bytes(4, "big")
    same = all(last(a) == last(b) for a, b in (
        (m.primary_local_gid, head["source_ip"]), (m.primary_remote_gid, head["destination_ip"])))
    return tell("service %016x" % (m.service_id - p.port), "header version %d, IP version %d" % (
        head["version"], head["ip_version"]), yes(same, "its addresses are the GIDs'"),
        yes(m.private_data[36:41] == b"hello" and not any(m.private_data[41:]),
            "the program's bytes behind it"))


connection("CM-07, CM-08", "the REQ's service id and private data, IPv4",
           "service 0000000001060000; header version 0, IP version 4; its addresses are the "
           "GIDs'; the program's bytes behind it")(variant("cm_addresses_4", cm_addresses, False))
connection("CM-07, CM-08, CM-42", "the same, IPv6",
           "service 0000000001060000; header version 0, IP version 6; its addresses are the "
           "GIDs'; the program's bytes behind it")(variant("cm_addresses_6", cm_addresses, True))


@connection("CM-09", "the REP to a REQ with depths 1 and 0", "depths at most 0, 1; failover 0 or "
            "1; CA GUID not 0; the program's bytes")
def cm_rep(p):
    upset(p, "REQ", with_fields("REQ", responder_resources=1, initiator_depth=0))
    p.me.listen(p.port)
    p.it_asks(**TERMS)
    p.me.asked()
    p.me.accept(private_data=b"bytes".hex())
    m = p.answer()[0][1]
    return tell(yes(m.responder_resources == 0 and m.initiator_depth <= 1, "depths at most 0, 1",
                    "depths %d, %d" % (m.responder_resources, m.initiator_depth)),
                yes(m.failover_accepted in (0, 1), "failover 0 or 1"),
                yes(m.local_ca_guid, "CA GUID not 0"),
                yes(m.private_data.rstrip(b"\0") == b"bytes", "the program's bytes"))


# ---- what is taken from whom --------------------------------------------------------------------

def in_force(party, *keys):
    q = party.query()
    return ", ".join("%s %d" % (k, q[k]) for k in keys)


@connection("CM-14, CM-15, CM-18, CM-20", "server: a REQ with timeout 17, retry 2, RNR 3, depths "
            "3 and 2, path MTU 512; read back",
            "timeout 17, retry_cnt 2, rnr_retry 3, max_rd_atomic 3, max_dest_rd_atomic 2, "
            "path_mtu 512")
def cm_server_takes(p):
    upset(p, "REQ", with_fields("REQ", primary_local_ack_timeout=17, retry_count=2,
                                rnr_retry_count=3, responder_resources=3, initiator_depth=2,
                                path_mtu=2))
    p.me.listen(p.port)
    p.it_asks()
    p.me.asked()
    p.me.accept()
    p.established()
    return in_force(p.me, "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic",
                    "max_dest_rd_atomic", "path_mtu")


@connection("CM-16, CM-17, CM-18", "client: REQ with retry 5, RNR 6; REP with target ACK delay 25, "
            "RNR 1, depths 1 and 2; read back",
            "timeout 25, retry_cnt 5, rnr_retry 1, max_rd_atomic 1, max_dest_rd_atomic 2")
def cm_client_takes(p):
    upset(p, "REP", with_fields("REP", target_ack_delay=25, rnr_retry_count=1,
                                responder_resources=1, initiator_depth=2))
    p.connected_by_me(**TERMS)
    return in_force(p.me, "timeout", "retry_cnt", "rnr_retry", "max_rd_atomic",
                    "max_dest_rd_atomic")


@connection("CM-16", "client: REP with target ACK delay 31; read back", "timeout 31")
def cm_client_timeout(p):
    upset(p, "REP", with_fields("REP", target_ack_delay=31))
    p.connected_by_me()
    return in_force(p.me, "timeout")


@connection("CM-19", "starting PSNs of both; read back, and a SEND each way",
            "rq_psn is the own message's; sq_psn is the peer's; SUCCESS; the first PSN is the "
            "peer's")
def cm_psns(p):
    p.connected_to_me()
    q = p.me.query()
    rep = p.mads(p.to_other, "REP")[0][1].starting_psn
    req = p.mads(p.to_me, "REQ")[0][1].starting_psn
    p.other.post_recv()
    p.me.send()
    done = p.me.completion()
    first = p.wire.frames(p.to_other, roce.SEND_ONLY)[0].psn
    return tell(yes(q["rq_psn"] == rep, "rq_psn is the own message's"),
                yes(first == req or q["sq_psn"] == req, "sq_psn is the peer's"),
                done, yes(first == req, "the first PSN is the peer's"))


def cm_mtu(p, code):
    upset(p, "REQ", with_fields("REQ", path_mtu=code), count=-1)
    p.me.listen(p.port)
    p.it_asks()
    asked = p.me.asked(wait_s=SOON_S)
    return p.said(wait_s=2) if asked is None else "the program is asked"


for _code in (0, 6):
    connection("CM-20", "a REQ with path MTU code %d" % _code, "REJ 26")(
        variant("cm_mtu_%d" % _code, cm_mtu, _code))


# ---- what comes twice, late, or not at all -------------------------------------------------------

@connection("CM-21", "the REQ twice before the program's answer, and once behind it",
            ("REP, REP; 1 CONNECT_REQUEST, 1 ESTABLISHED",
             "MRA of REQ, REP, REP; 1 CONNECT_REQUEST, 1 ESTABLISHED"))
def cm_req_again(p):
    upset(p, "REQ", "twice")
    p.me.listen(p.port)
    p.wire.rule("drop", p.to_me, message("RTU"))
    p.it_asks()
    p.me.asked()
    p.wire.drain()
    p.me.accept()
    p.other.wait("ESTABLISHED")
    p.heard_of("RTU")       # which is lost
    p.inject(p.heard_of("REQ")[0][0])
    p.answer(2, wait_s=2)
    p.inject(p.heard_of("RTU")[0][0])
    p.me.wait("ESTABLISHED")
    return tell(p.said(2), p.events())


@connection("CM-26", "the REQ again while the program thinks", "MRA of REQ, REP; 1 ESTABLISHED")
def cm_mra(p):
    p.me.listen(p.port)
    p.it_asks()
    p.me.asked()
    for _ in range(3):
        p.inject(p.heard_of("REQ")[0][0])
    p.answer(1, wait_s=1)
    p.me.accept()
    p.established()
    said = [w for w in p.said(2).split(", ")]
    once = [w for i, w in enumerate(said) if i == 0 or said[i - 1] != w]
    return tell(", ".join(once), "%d ESTABLISHED" % len(
        [e for e in p.me.mine() if e["event"] == "ESTABLISHED"]))


@connection("CM-22", "the REP three times", "REQ, RTU, RTU, RTU; 1 ESTABLISHED")
def cm_rep_again(p):
    p.connected_by_me()
    for _ in range(2):
        p.inject(p.heard_of("REP")[0][0])
    return tell(p.said(4, wait_s=2), p.events())


@connection("CM-23", "the RTU twice; RTU, DREP and MRA for ids that nobody has",
            "REP; 1 CONNECT_REQUEST, 1 ESTABLISHED")
def cm_nobodys(p):
    upset(p, "RTU", "twice")
    p.connected_to_me()
    rtu = p.heard_of("RTU")[0][0]
    for name in ("RTU", "DREP", "MRA"):
        p.inject(rtu, with_header(attr_id=mad.IDS[name]), with_fields(
            "RTU", local_comm_id=0x7a7a7a7a, remote_comm_id=0x6b6b6b6b))
    return tell(p.said(), p.events())


@connection("CM-24", "a REQ with another id and the queue pair of a connection that lives",
            ("REP, REJ 10", "REP, REJ 10, DREQ", "REP, DREQ, REJ 10"))
def cm_stale(p):
    p.connected_to_me()
    req = p.heard_of("REQ")[0]
    p.inject(req[0], with_header(tid=req[1].tid + 77),
             with_fields("REQ", local_comm_id=req[1].local_comm_id ^ 0x5a5a))
    return p.said(2, wait_s=2)


@connection("CM-36", "a SEND of the client before the server has the RTU",
            "receives: 1 SUCCESS; 1 CONNECT_REQUEST, 1 ESTABLISHED")
def cm_data_first(p):
    rule = p.wire.rule("drop", p.to_me, message("RTU"), count=-1)
    p.me.listen(p.port)
    p.it_asks()
    p.me.asked()
    p.me.accept()
    p.me.post_recv()
    p.other.wait("ESTABLISHED")
    p.other.send()
    got = p.me.completion()
    p.me.wait("ESTABLISHED", wait_s=1)
    p.wait(lambda: rule.hits)
    return tell("receives: 1 " + got, p.events())


# ---- refusals -----------------------------------------------------------------------------------

@connection("CM-13", "the program refuses, with bytes", "REJ 28; its bytes; no REP")
def cm_refuse(p):
    p.me.listen(p.port)
    p.it_asks()
    p.me.asked()
    p.me.reject(private_data=b"sorry".hex())
    said = p.said()
    rej = p.mads(p.to_other, "REJ")[0][1]
    return tell(said, yes(rej.private_data.rstrip(b"\0") == b"sorry", "its bytes"),
                yes(not p.mads(p.to_other, "REP"), "no REP"))


@connection("CM-29", "the server's program refuses, with bytes", "REQ; 1 REJECTED 28; its bytes")
def cm_refused(p):
    p.other.listen(p.port)
    p.i_ask()
    p.other.asked()
    p.other.reject(private_data=b"sorry".hex())
    e = p.me.wait("REJECTED")
    return tell(p.said(), p.events(), yes(bytes.fromhex(e["private_data"] or "").startswith(
        b"sorry"), "its bytes"))


def cm_reason(p, reason):
    upset(p, "REJ", with_fields("REJ", reason=reason))
    p.i_ask(port=LISTENS_NOBODY)
    p.me.wait("REJECTED")
    return tell(p.said(), p.events())


for _reason in (10, 26, 65535):
    connection("CM-29", "a REJ with reason %d" % _reason, "REQ; 1 REJECTED %d" % _reason)(
        variant("cm_reason_%d" % _reason, cm_reason, _reason))


@connection("CM-29", "a REJ with another TID and id than the REQ's, then the REP",
            "REQ, RTU; 1 ESTABLISHED")
def cm_rej_of_another(p):
    p.other.listen(p.port)
    p.i_ask()
    p.other.asked()
    raw = p.mads(p.to_other, "REQ")[0]
    rej = mad.make("REJ", raw[1].tid + 1, remote_comm_id=raw[1].local_comm_id ^ 1, reason=8)
    p.other.accept()
    rep = p.heard_of("REP")[0][0]
    at = bth(rep.raw) + MAD_AT
    p.wire.inject(p.to_me, roce.with_icrc(rep.raw[:at] + rej + rep.raw[at + mad.LEN:]))
    p.me.wait("ESTABLISHED")
    return tell(p.said(2), p.events())


@connection("CM-30", "nobody listens", "REJ 8; own id 0, of the REQ")
def cm_no_listener(p):
    p.it_asks(port=LISTENS_NOBODY)
    said = p.said()
    m = p.mads(p.to_other, "REJ")[0][1]
    req = p.mads(p.to_me, "REQ")[0][1]
    return tell(said, yes(m.local_comm_id == 0 and m.remote_comm_id == req.local_comm_id and
                          m.tid == req.tid and m.message_rejected == 0, "own id 0, of the REQ"))


def cm_cannot(p, act):
    p.me.listen(p.port)
    upset(p, "REQ", act, count=-1)
    p.it_asks()
    asked = p.me.asked(wait_s=2 * SOON_S)
    said = p.said(wait_s=SOON_S)
    return "refused, or no answer" if asked is None and (
        said == "no answer" or said.startswith("REJ")) else said


def private(at, value):
    return changed(MAD_AT + 24 + 140 + at, value)


for _id, _words, _act in (
        ("header", "an IP header of version 1", private(0, b"\1")),
        ("ip", "IP version 5", private(1, b"\x50")),
        ("gid", "a destination GID that is nobody's", with_fields(
            "REQ", primary_remote_gid=bytes(10) + b"\xff\xff\x0a\x4d\0\x63")),
        ("uc", "service UC at a listener of RC", with_fields("REQ", transport_service_type=1)),
        ("rd", "service type 2", with_fields("REQ", transport_service_type=2))):
    connection("CM-31", "a REQ with " + _words, "refused, or no answer")(
        variant("cm_cannot_" + _id, cm_cannot, _act))


# ---- the end ------------------------------------------------------------------------------------

@connection("CM-32", "a DREQ, and the same again", "REP, DREP, DREP; 1 CONNECT_REQUEST, "
            "1 ESTABLISHED, 1 DISCONNECTED")
def cm_dreq(p):
    p.connected_to_me()
    p.other.disconnect()
    p.me.wait("DISCONNECTED")
    if p.me.end.name == "linux":
        p.me.disconnect()       # its program has to, for the DREP
    p.answer(2)
    p.inject(p.heard_of("DREQ")[0][0])
    return tell(p.said(3, wait_s=2), p.events().replace(", 1 TIMEWAIT_EXIT", ""))


@connection("CM-33", "the program ends it", "REQ, RTU, DREQ; the peer's QPN; 1 ESTABLISHED, "
            "1 DISCONNECTED; ERR")
def cm_disconnect(p):
    p.connected_by_me()
    p.me.disconnect()
    state = p.me.query()["qp_state"]
    p.i_end_it(begun=True)
    said = p.said(3)
    dreq = p.mads(p.to_other, "DREQ")[0][1]
    rep = p.mads(p.to_me, "REP")[0][1]
    return tell(said, yes(dreq.remote_qpn == rep.local_qpn, "the peer's QPN"), p.events().replace(
        ", 1 TIMEWAIT_EXIT", ""), state)


@connection("CM-34", "a DREQ for ids that nobody has", "REP, DREP; 1 CONNECT_REQUEST, "
            "1 ESTABLISHED")
def cm_dreq_of_nobody(p):
    p.connected_to_me()
    p.inject(p.heard_of("RTU")[0][0], with_header(attr_id=mad.IDS["DREQ"], tid=0x4242),
             with_fields("DREQ", local_comm_id=0x7a7a7a7a, remote_comm_id=0x6b6b6b6b,
                         remote_qpn=0x777777))
    return tell(p.said(2, wait_s=2), p.events())


@connection("CM-34", "a DREQ with right ids and a wrong QPN", "REP; 1 CONNECT_REQUEST, "
            "1 ESTABLISHED")
def cm_dreq_wrong(p):
    p.connected_to_me()
    p.inject(p.heard_of("RTU")[0][0], with_header(attr_id=mad.IDS["DREQ"], tid=0x4242),
             with_fields("DREQ", remote_qpn=0x777777))
    return tell(p.said(), p.events())


@connection("CM-39", "LAP for a connection that lives", ("REP; lives", "REP, APR; lives"))
def cm_lap(p):
    p.connected_to_me()
    p.inject(p.heard_of("RTU")[0][0], with_header(attr_id=0x19, tid=0x4242))
    return tell(p.said(), yes("DISCONNECTED" not in p.events(), "lives"))


# ---- damage -------------------------------------------------------------------------------------

def cm_bad(p, act):
    """@return what is said to a REQ like that; nothing is asked of the program."""
    p.me.listen(p.port)
    upset(p, "REQ", act, count=-1)
    p.it_asks()
    asked = p.me.asked(wait_s=SOON_S)
    return tell(p.said(wait_s=SOON_S), "" if asked is None else "the program is asked")


for _id, _words, _act in (
        ("qkey", "Q_Key 0x80010001", changed(12, b"\x80\x01\0\1")),
        ("pkey", "P_Key 0x1234", changed(2, b"\x12\x34"))):
    connection("CM-37", "a REQ with " + _words, "no answer")(
        variant("cm_bad_" + _id, cm_bad, _act))
connection("CM-37", "a REQ with a wrong ICRC", "no answer")(variant("cm_bad_icrc", cm_bad, "flip"))
for _id, _words, _wants, _act in (
        ("base", "base version 2", "no answer", with_header(base_version=2)),
        ("class", "management class 3", "no answer", with_header(mgmt_class=3)),
        ("version", "class version 1", ("no answer", "REJ 31"), with_header(class_version=1)),
        ("method", "method 1 (Get)", "no answer", with_header(method=1)),
        ("attr", "attribute 0x000f", "no answer", with_header(attr_id=0x0f))):
    connection("CM-38", "a MAD with " + _words, _wants)(variant("cm_bad_" + _id, cm_bad, _act))


@connection("CM-38", "a REQ with an attribute modifier and reserved fields set",
            "REP; 1 CONNECT_REQUEST, 1 ESTABLISHED")
def cm_reserved(p):
    def act(raw):
        at = bth(raw) + MAD_AT
        raw = raw[:at + 18] + b"\xff\xff\0\0\0\1" + raw[at + 24:]
        return raw[:at + 24 + 4] + b"\xff" + raw[at + 24 + 5:]
    upset(p, "REQ", act)
    p.connected_to_me()
    return tell(p.said(), p.events())


# ---- datagrams ----------------------------------------------------------------------------------

@connection("CM-41", "SIDR_REQ to a listener, twice",
            "SIDR_REP 0, SIDR_REP 0; number and key of a UD queue pair; ids echoed")
def cm_sidr(p):
    upset(p, "SIDR_REQ", "twice")
    p.me.listen(p.port, "UDP")
    p.it_asks(ps="UDP")
    p.me.asked()
    p.me.accept()
    e = p.other.wait("ESTABLISHED", "UNREACHABLE")
    said = p.said(1)
    if said.count("SIDR_REP") == 1:
        p.inject(p.heard_of("SIDR_REQ")[0][0])
        said = p.said(2, wait_s=2)
    rep, req = p.mads(p.to_other, "SIDR_REP")[0][1], p.mads(p.to_me, "SIDR_REQ")[0][1]
    return tell(said, yes(rep.qpn == p.me.qpn and rep.qkey == 0x1234567 and
                          e["event"] == "ESTABLISHED", "number and key of a UD queue pair"),
                yes((rep.request_id, rep.service_id, rep.tid) ==
                    (req.request_id, req.service_id, req.tid), "ids echoed"))


@connection("CM-41", "SIDR_REQ where nobody listens", ("SIDR_REP 1", "SIDR_REP 2"))
def cm_sidr_nobody(p):
    p.it_asks(port=LISTENS_NOBODY, ps="UDP")
    return p.said()
