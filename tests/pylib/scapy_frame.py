# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames as Scapy makes and reads them: the other opinion."""
import logging

logging.getLogger("scapy").setLevel(logging.ERROR)

from scapy.contrib.roce import BTH  # noqa: E402
from scapy.layers.inet import IP, UDP  # noqa: E402
from scapy.layers.inet6 import IPv6  # noqa: E402
from scapy.layers.l2 import Dot1Q, Ether  # noqa: E402
from scapy.packet import Raw  # noqa: E402

import variant  # noqa: E402

ROCE_PORT = 4791

_seen = set()


def looks(*kind):
    """Is Scapy asked about this frame? In the run by default about each, in a variant about the
    first of its kind: it takes longer than the dataplane."""
    new = kind not in _seen
    _seen.add(kind)
    return new or variant.is_default()


def make(ether, vlan, ip, sport, bth, body):
    """A frame from the fields of its headers; without the ICRC over IPv6."""
    out = Ether(**ether)
    if vlan is not None:
        out = out / Dot1Q(vlan=vlan)
    udp = UDP(sport=sport, dport=ROCE_PORT, chksum=0)
    if "hlim" not in ip:
        return bytes(out / IP(**ip) / udp / BTH(**bth) / Raw(body))
    headers = len(bytes(out / IPv6(**ip) / udp))
    bth = bytes(BTH(**bth, icrc=0))[:12]
    out = bytearray(bytes(out / IPv6(**ip) / udp / Raw(bth + body + bytes(4))))
    out[headers - 2:headers] = b"\0\0"     # it writes a checksum where 0 was asked for
    return bytes(out[:-4])


def icrc(frame):
    """Of an IPv4 frame without padding of the wire's: the four bytes that should be its last."""
    return Ether(frame)[BTH].compute_icrc(b"")
