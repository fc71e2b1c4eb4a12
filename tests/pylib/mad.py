# SPDX-License-Identifier: BSD-3-Clause
"""Messages of the connection manager as dicts, by the tables of the rules (data.cm_*_fields)."""
import json
import os

RULES = os.path.join(os.path.dirname(__file__), "..", "conformance", "rules.json")
with open(RULES, encoding="utf-8") as rules:
    DATA = json.load(rules)["data"]
ATTRS = {int(r["id"], 16): r["name"] for r in DATA["cm_attributes"]["rows"]}
IDS = {name: number for number, name in ATTRS.items()}
QPN, QKEY, LEN = 1, 0x80010000, 256


def rows(name):
    return {r["field"]: (r["byte"] * 8 + r["bit"], r["bits"])
            for r in DATA["cm_%s_fields" % name.lower()]["rows"]}


HEADER = {r["field"]: (r["byte"] * 8 + r["bit"], r["bits"])
          for r in DATA["mad_header_fields"]["rows"]}
IP = {r["field"]: (r["byte"] * 8 + r["bit"], r["bits"])
      for r in DATA["cm_private_header"]["rows"]}
FIELDS = {name: rows(name) for name in IDS if "cm_%s_fields" % name.lower() in DATA}


def get(data, place):
    first, bits = place
    return int.from_bytes(data, "big") >> (len(data) * 8 - first - bits) & (1 << bits) - 1


def put(data, place, value):
    first, bits = place
    if isinstance(value, bytes):
        value = int.from_bytes(value.ljust(bits // 8, b"\0"), "big")
    assert 0 <= value < 1 << bits, (place, value)
    shift = len(data) * 8 - first - bits
    old = int.from_bytes(data, "big") & ~((1 << bits) - 1 << shift)
    return (old | value << shift).to_bytes(len(data), "big")


def make(name, tid, header=None, **fields):
    """256 bytes; fields by name, numbers or bytes."""
    head = bytes(24)
    for key, value in {"base_version": 1, "mgmt_class": 7, "class_version": 2, "method": 3,
                       "tid": tid, "attr_id": IDS[name], **(header or {})}.items():
        head = put(head, HEADER[key], value)
    body = bytes(232)
    for key, value in fields.items():
        body = put(body, FIELDS[name][key], value)
    return head + body


class Mad:
    """One message, decoded: its fields are attributes, those of many bytes are bytes."""

    def __init__(self, data):
        assert len(data) == LEN, len(data)
        self.data = bytes(data)
        self.header = {key: get(data[:24], place) for key, place in HEADER.items()}
        self.tid, self.attr_id = self.header["tid"], self.header["attr_id"]
        self.name = ATTRS[self.attr_id]
        rest = bytearray(data[24:])
        for key, place in FIELDS.get(self.name, {}).items():
            value = get(data[24:], place)
            wide = place[1] > 64
            setattr(self, key, value.to_bytes(place[1] // 8, "big") if wide else value)
            rest = bytearray(put(bytes(rest), place, 0))
        self.reserved = bytes(rest)

    def __repr__(self):
        return "%s tid=%x" % (self.name, self.tid)


def ip_header(data):
    """The first 36 bytes of a REQ's private data."""
    return {key: get(data[:36], place) for key, place in IP.items()}


def make_ip_header(version, source, destination, port=0x1234, hdr_version=0):
    data = bytes(36)
    for key, value in {"version": hdr_version, "ip_version": version, "source_port": port,
                       "source_ip": source, "destination_ip": destination}.items():
        data = put(data, IP[key], value)
    return data
