#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Replay a capture of two Linux hosts through the dataplane and set the answers side by side.

The requests that reached one Linux host are handed to rocelane through net_pcap; a queue pair is
configured as that host's was. What rocelane sends is captured and printed next to what Linux sent.
"""
import argparse
import collections
import json
import os
import struct
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path[:0] = [os.path.join(ROOT, "tests", "pylib"), os.path.join(ROOT, "tests", "vectors")]

import capture  # noqa: E402
import piped  # noqa: E402
import roce  # noqa: E402

PCAP_HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
NAKS = {0x60: "NAK PSN sequence error", 0x61: "NAK invalid request",
        0x62: "NAK remote access error", 0x63: "NAK remote operational error"}


def write_pcap(path, frames):
    with open(path, "wb") as f:
        f.write(PCAP_HEADER)
        for raw in frames:
            f.write(struct.pack("<IIII", 0, 0, len(raw), len(raw)) + raw)


def read_pcap(path):
    with open(path, "rb") as f:
        blob = f.read()
    at, frames = 24, []
    while at + 16 <= len(blob):
        length = struct.unpack_from("<I", blob, at + 8)[0]
        frames.append(roce.Frame(blob[at + 16:at + 16 + length]))
        at += 16 + length
    return frames


def config(cap, rx, tx, sock):
    """A dataplane that stands where host A stood."""
    a, b, cmd = cap.local("A"), cap.local("B"), cap.command("A")
    v6 = cap.frames[0].frame.version == 6
    qp = {"qp_num": a["qpn"], "qp_type": "RC", "port": "p0", "pd": "pd0", "send_cq": "cq0",
          "recv_cq": "cq0", "qp_state": "RTS", "path_mtu": a["mtu"], "dest_qp_num": b["qpn"],
          "rq_psn": b["psn"], "sq_psn": a["psn"],
          "ah_attr": {"dest_ip": capture.IP["B"][v6], "dest_mac": capture.MAC["B"]},
          # net_pcap hands over everything at once: READs that Linux sent one after the other are
          # outstanding together here.
          "min_rnr_timer": cmd.min_rnr, "max_dest_rd_atomic": 16,
          "qp_access_flags": ["REMOTE_READ", "REMOTE_WRITE", "REMOTE_ATOMIC"]}
    if cmd.recvs:
        qp["recv_feed"] = {"buffers": cmd.recvs, "size": cmd.rsize}
    return {
        "version": 1,
        "eal": ["--no-huge", "--no-shconf", "--no-pci", "-m", "256", "--log-level=error",
                "--file-prefix=replay%d" % os.getpid(),
                "--vdev=net_pcap0,rx_pcap=%s,tx_pcap=%s" % (rx, tx)],
        "lcores": {"control": 0, "workers": [1], "idle": "sleep"},
        "control": {"socket": sock},
        "ports": [{"name": "p0", "device": "net_pcap0", "mac": capture.MAC["A"],
                   "ipv4": capture.IP["A"][0], "prefix": 24, "ipv6": capture.IP["A"][1],
                   "prefix6": 64, "mtu": 4200}],
        "error_buffer": {"entries": 1024},
        "pds": ["pd0"],
        "mrs": [{"name": "target", "pd": "pd0", "length": a["len"], "addr": a["va"],
                 "rkey": a["rkey"], "access": cmd.access, "fill": "pattern:%d" % cmd.seed}],
        "cqs": [{"name": "cq0", "cqe": 1024}],
        "qps": [qp],
    }


def request_text(f):
    text = "%06x %s" % (f.psn, roce.NAMES.get(f.opcode, "opcode 0x%02x" % f.opcode))
    if f.length is not None:
        text += " %d B" % f.length
    elif f.payload:
        text += " %d B" % len(f.payload)
    return text + (" AckReq" if f.ackreq else "")


def answer_text(f):
    if f is None:
        return ""
    if f.opcode == roce.ACK and f.syndrome >> 5 == 1:
        what = "RNR NAK timer %d" % (f.syndrome & 31)
    elif f.opcode == roce.ACK and f.syndrome in NAKS:
        what = NAKS[f.syndrome]
    else:
        what = roce.NAMES.get(f.opcode, "opcode 0x%02x" % f.opcode)
    text = "%06x %s" % (f.psn, what)
    if f.msn is not None:
        text += " MSN %d" % f.msn
    if f.original is not None:
        text += " %#x" % f.original
    if f.payload:
        text += " %d B" % len(f.payload)
    return text


def span(f, mtu):
    """PSNs that a request takes."""
    if f.opcode == roce.READ_REQ:
        return max(1, -(-f.length // mtu))
    return 1


def queues(frames):
    out = collections.defaultdict(collections.deque)
    for f in frames:
        out[f.psn].append(f)
    return out


def verdict(linux, ours, later_ack):
    if linux is None and ours is None:
        return ""
    if linux is not None and ours is not None:
        return "same" if linux.key() == ours.key() else "DIFFERS"
    if ours is None and linux.opcode == roce.ACK and linux.syndrome < 0x20 and later_ack:
        return "covered by a later answer"
    return "only Linux" if ours is None else "only rocelane"


def compare(cap, ours):
    mtu = cap.local("A")["mtu"]
    linux_at, ours_at = queues(a.frame for a in cap.answers("A")), queues(ours)
    rows, tally = [], collections.Counter()
    newest = max((f.psn for f in ours), key=lambda p: (p - ours[0].psn) & roce.PSN_MASK, default=0)
    for sent in cap.requests("A"):
        first = True
        for i in range(span(sent.frame, mtu)):
            p = roce.psn_add(sent.frame.psn, i)
            lx = linux_at[p].popleft() if linux_at[p] else None
            us = ours_at[p].popleft() if ours_at[p] else None
            covered = ours and p != newest and (newest - p) & roce.PSN_MASK < 0x800000
            word = verdict(lx, us, covered)
            tally[word] += 1
            rows.append((request_text(sent.frame) if first else "", answer_text(lx),
                         answer_text(us), word))
            first = False
    for at, word in ((linux_at, "only Linux"), (ours_at, "only rocelane")):
        for q in at.values():
            for f in q:
                tally[word] += 1
                rows.append(("", answer_text(f) if at is linux_at else "",
                             answer_text(f) if at is ours_at else "", word))
    return rows, tally


def print_table(rows, head):
    widths = [max(len(r[i]) for r in rows + [head]) for i in range(4)]
    for r in [head, tuple("-" * w for w in widths)] + rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, widths)).rstrip())


def replayable():
    return [n for n in capture.names() if capture.Capture(n).has_rc() and
            capture.Capture(n).local("A") and capture.Capture(n).command("A")]


def find(name):
    path, name = name, os.path.basename(name)
    name = name[:-5] if name.endswith(".pcap") else name
    kept = os.path.join(capture.DIR, name + ".pcap")
    if os.sep in path and not (os.path.exists(path) and os.path.exists(kept) and
                               os.path.samefile(path, kept)):
        sys.exit("%s is none of the captures here, of which it is known how each host was set up; "
                 "scripts/run --list names them" % path)
    if name not in capture.names():
        sys.exit("no capture %r; scripts/run --list names them" % name)
    if name not in replayable():
        sys.exit("%s: nothing in it says how the responder was set up" % name)
    return capture.Capture(name)


def main():
    ap = argparse.ArgumentParser(description=__doc__)
    ap.add_argument("--rocelane", help="path of the program")
    ap.add_argument("--list", action="store_true", help="captures that can be replayed")
    ap.add_argument("capture", nargs="?", default="mixed")
    args = ap.parse_args()
    if args.list:
        print("\n".join(replayable()))
        return 0

    cap = find(args.capture)
    requests = cap.requests("A")
    with tempfile.TemporaryDirectory(prefix="rocelane-replay-") as tmp:
        rx, tx, conf = (os.path.join(tmp, n) for n in ("rx.pcap", "tx.pcap", "config.json"))
        write_pcap(rx, [r.raw for r in requests])
        with open(conf, "w", encoding="utf-8") as f:
            json.dump(config(cap, rx, tx, os.path.join(tmp, "rocelane.sock")), f, indent=1)
        run = subprocess.run([args.rocelane, "--config", conf, "--duration", "1"],
                             stdout=subprocess.PIPE, text=True)
        if run.returncode != 0:
            return run.returncode
        ours = read_pcap(tx)

    print("%s.pcap: %d requests that reached the Linux host %s, replayed to rocelane instead\n" %
          (cap.name, len(requests), requests[0].frame.dst_ip))
    if cap.command("A").sets():
        print("(Linux had stored values in its memory first, so original values differ.)\n")
    rows, tally = compare(cap, ours)
    print_table(rows, ("request: PSN, opcode", "Linux answered", "rocelane answered", ""))
    print("\n%d answers the same, %d acknowledged by a later one, %d different, "
          "%d only from Linux, %d only from rocelane" %
          tuple(tally[w] for w in ("same", "covered by a later answer", "DIFFERS", "only Linux",
                                   "only rocelane")))
    print("\ncounters of the run:\n" + "".join("  %s\n" % l for l in run.stdout.splitlines()))
    return 0


piped.run(main)
