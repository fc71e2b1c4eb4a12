# SPDX-License-Identifier: BSD-3-Clause
"""RoCEv2 frames as Scapy makes and reads them: the other opinion.

Environment: ROCELANE_SCAPY=off asks nobody for it. In the sanitizers' build the frames are those of
the other build, where it was asked for; to load Scapy takes longer than many a test.
"""
import collections
import logging
import os

import variant

ROCE_PORT = 4791
OFF = os.environ.get("ROCELANE_SCAPY") == "off"

_seen = collections.Counter()


def load():
    """Scapy's names, when the first of them is needed."""
    global BTH, IP, UDP, IPv6, Dot1Q, Ether, Raw
    logging.getLogger("scapy").setLevel(logging.ERROR)
    from scapy.contrib.roce import BTH
    from scapy.layers.inet import IP, UDP
    from scapy.layers.inet6 import IPv6
    from scapy.layers.l2 import Dot1Q, Ether
    from scapy.packet import Raw


def looks(*kind):
    """Is Scapy asked about this frame? It takes longer than the dataplane. In the run by default
    about the first 20 of its kind in this process, in a variant about the first."""
    if OFF:
        return False
    _seen[kind] += 1
    return _seen[kind] <= (20 if variant.is_default() else 1)


def make(ether, vlan, ip, sport, bth, body):
    """A frame from the fields of its headers; without the ICRC over IPv6."""
    load()
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
    load()
    return Ether(frame)[BTH].compute_icrc(b"")
