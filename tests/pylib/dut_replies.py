# SPDX-License-Identifier: BSD-3-Clause
"""What a responder is expected to answer."""
import roce


class Reply:
    """An expected answer; what is None may be anything."""

    def __init__(self, opcode, psn, syndrome=None, msn=None, payload=None, original=None):
        self.opcode, self.psn, self.syndrome, self.msn = opcode, psn & roce.PSN_MASK, syndrome, msn
        self.payload, self.original = payload, original

    def matches(self, f):
        return (f.opcode == self.opcode and f.psn == self.psn and
                (self.syndrome is None or f.syndrome == self.syndrome) and
                (self.msn is None or f.msn == self.msn) and
                (self.payload is None or f.payload == self.payload) and
                (self.original is None or f.original == self.original))

    def __repr__(self):
        text = "%s psn %06x" % (roce.name_of(self.opcode), self.psn)
        if self.syndrome is not None:
            text += " syndrome %02x" % self.syndrome
        if self.msn is not None:
            text += " msn %d" % self.msn
        if self.original is not None:
            text += " original %#x" % self.original
        if self.payload:
            text += " payload %d" % len(self.payload)
        return "<%s>" % text


def Ack(psn, msn=None):
    return Reply(roce.ACK, psn, roce.SYN_ACK, msn)


def Nak(psn, syndrome, msn=None):
    return Reply(roce.ACK, psn, syndrome, msn)


def Rnr(psn, code=12, msn=None):
    return Reply(roce.ACK, psn, roce.SYN_RNR + code, msn)


def AtomicAck(psn, original, msn=None):
    return Reply(roce.ATOMIC_ACK, psn, roce.SYN_ACK, msn, original=original)


def ReadResponse(psn, payload, msn=None, mtu=1024):
    """The packets that answer one READ."""
    parts = [payload[i:i + mtu] for i in range(0, len(payload), mtu)] or [b""]
    if len(parts) == 1:
        return [Reply(roce.READ_ONLY, psn, roce.SYN_ACK, msn, parts[0])]
    last = len(parts) - 1
    return ([Reply(roce.READ_FIRST, psn, roce.SYN_ACK, msn, parts[0])] +
            [Reply(roce.READ_MIDDLE, psn + i, payload=p) for i, p in enumerate(parts[1:-1], 1)] +
            [Reply(roce.READ_LAST, psn + last, roce.SYN_ACK, msn, parts[-1])])
