# SPDX-License-Identifier: BSD-3-Clause
"""MATRIX.md: what the specification wants, what rocelane does, what the Linux kernel does.

Every cell of the last three columns comes from the scenes that have just been played.
"""
import os

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "MATRIX.md")
AS_WANTED = "as wanted"
TITLES = {"responder": "The responder", "requester": "The requester",
          "connections": "Connections"}    # tables of MATRIX.md
PARTS = tuple(TITLES)

HEAD = """# rocelane and the Linux kernel, rule by rule

Made by a run of `tests/interop` against the Soft-RoCE of Linux %s; not to be edited.
`scripts/test interop` compares rocelane's column with a new run and says where the kernel did
otherwise, which depends on the pace of its emulated machine; connections are played with `--long`
alone. README.md says how it is made anew.

In each row one end was watched, once with rocelane there and once with the kernel; the other end
was the other one of the two, over the same wire, which can lose, repeat and change single packets.
How to read a cell: `2 SUCCESS, 1 WR_FLUSH_ERR` are completions in their order, `NAK-RAE +2` is a
negative answer and its PSN counted from the first request, `QP_ACCESS_ERR` an asynchronous event,
`ERR` the queue pair's state at the end (else RTS). Of connections `REP, DREQ` are the messages that
were sent, `1 ESTABLISHED` is what the program heard, and values are read back from the queue pair.
*%s* means: exactly what the column before says.
Where the kernel does now this and now that, the cell has both (*or*). The last column says who does
what the rule wants, every time.

The kernel is a peer, not the law. What it does in its own way, rocelane gets along with, and none
of it needs a knob:

- retry_cnt 7 is without end in the kernel; rocelane counts to 7 (REQ-RETRY-03) and answers every
  repetition.
- An RNR NAK of the kernel is followed by a sequence NAK for the next packet in flight. rocelane
  waits the time it was told, and the second NAK neither shortens the wait nor costs a retry
  (REQ-RNR-09).
- MigReq is 0 in the kernel's packets and 1 in rocelane's; both take either (WIRE-18).
- Neither sends a UDP checksum. A wrong one changes nothing for rocelane, since the ICRC covers what
  it would, unless `rx.udp_checksum` is `check` (WIRE-15).
- A READ that the kernel is asked to resume goes on with READ RESPONSE MIDDLE; rocelane takes that
  (REQ-IMPL-09).
- Soft-RoCE has RC, UC and UD alone: it refuses to make an XRC queue pair (EOPNOTSUPP), so nothing
  of XRC can be tried against it.
- Of connections, Linux is the kernel's connection manager and a program that does what librdmacm
  does. librdmacm leaves it to the program to say that data came before the RTU (rdma_notify). The
  kernel does not repeat a REP or SIDR_REP when it is asked again; a REP comes again by its timer.
  Soft-RoCE makes a power of two of the READs that it may have outstanding.
"""
TABLE = "| rule | situation | the specification | rocelane | Linux | right |\n" \
        "| --- | --- | --- | --- | --- | --- |\n"


def right(scene, told):
    who = [name for name in ("rocelane", "linux")
           if scene.only in (None,) or scene.only[0] == name]
    good = [name for name in who if told[scene, name] in scene.wants and
            not (name == "linux" and scene.linux_varies)]
    if len(good) == 2:
        return "both"
    return {"rocelane": "rocelane", "linux": "Linux"}[good[0]] if good else "neither"


def cell(scene, told, name):
    text = told[scene, name]
    if name == "linux" and text in scene.linux_varies:
        return " *or* ".join(scene.linux_varies)
    return AS_WANTED if text in scene.wants else text


def rows(scenes, told):
    """Each scene's cells: rules, situation, wanted, rocelane, Linux, right."""
    return [[s.rules, s.title, " *or* ".join(s.wants), cell(s, told, "rocelane"),
             cell(s, told, "linux"), right(s, told)] for s in scenes]


def of(part, scenes):
    return [s for s in scenes if s.part == part]


def text(scenes, told, kernel):
    out = [HEAD % (kernel, AS_WANTED)]
    for part in PARTS:
        some = of(part, scenes)
        verdicts = [right(s, told) for s in some]
        counts = [verdicts.count(v) for v in ("both", "rocelane", "Linux", "neither")]
        out.append("\n## %s\n\n%d situations: both do as wanted in %d, rocelane alone in %d, "
                   "Linux alone in %d, neither in %d.\n\n" % (TITLES[part], len(some), *counts))
        out.append(TABLE)
        out += ["| %s |\n" % " | ".join(row) for row in rows(some, told)]
    return "".join(out)


def write(scenes, told, kernel):
    with open(PATH, "w", encoding="utf-8") as f:
        f.write(text(scenes, told, kernel))


def committed():
    with open(PATH, encoding="utf-8") as f:
        return f.read()


def lines(markdown, part):
    """A part's table, without its head."""
    begin = markdown.index("\n## %s\n" % TITLES[part])
    return [line for line in markdown[begin + 1:].split("\n## ")[0].splitlines()
            if line.startswith("| ") and not line.startswith(("| rule", "| ---"))]


def without_linux(markdown, part):
    """The first four cells of each row."""
    return [line.strip("| ").split(" | ")[:4] for line in lines(markdown, part)]
