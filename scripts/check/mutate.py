# SPDX-License-Identifier: BSD-3-Clause
"""What can be broken in a line of C: each a small mistake that a programmer could make.

Works on text, by patterns that rely on clang-format: binary operators stand between spaces.
"""
import collections
import hashlib
import re

import common

# path, line number (from 1), the line, the line broken, what was done. Lines are stripped.
Mutation = collections.namedtuple("Mutation", "path line old new what")

SWAPS = [  # (what, pattern, replacements)
    ("boundary", r"(?<= )<(?= )", ["<="]),
    ("boundary", r"(?<= )<=(?= )", ["<"]),
    ("boundary", r"(?<= )>(?= )", [">="]),
    ("boundary", r"(?<= )>=(?= )", [">"]),
    ("relation", r"(?<= )<(?= )", [">="]),
    ("relation", r"(?<= )>(?= )", ["<="]),
    ("relation", r"(?<= )==(?= )", ["!="]),
    ("relation", r"(?<= )!=(?= )", ["=="]),
    ("logic", r"(?<= )&&(?= )", ["||"]),
    ("logic", r"(?<= )\|\|(?= )", ["&&"]),
    ("step", r"\+\+", ["--"]),
    ("step", r"--(?!>)", ["++"]),
    ("one off", r" [+-] 1\b(?!\.)", [""]),
    ("arithmetic", r"(?<= )\+(?= )", ["-"]),
    ("arithmetic", r"(?<= )-(?= )", ["+"]),
    ("bits", r"(?<= )&(?= )", ["|"]),
    ("bits", r"(?<= )\|(?= )", ["&"]),
    ("assignment", r"(?<= )\+=(?= )", ["-=", "="]),
    ("assignment", r"(?<= )-=(?= )", ["+="]),
    ("assignment", r"(?<= )\|=(?= )", ["="]),
    ("assignment", r"(?<= )&= ~", ["|= "]),
    ("not", r"!(?=[a-z(])", [""]),
    ("truth", r"\btrue\b", ["false"]),
    ("truth", r"\bfalse\b", ["true"]),
    ("number", r"(?<=[ (])[2-9]\d*\b(?![.x])", ["+1"]),
    ("number", r"(?<== )0(?=;)", ["1"]),
    ("number", r"(?<== )1(?=;)", ["0"]),
    ("way out", r"\bcontinue;", ["break;"]),
]
SWAPS = [(what, re.compile(pattern), new) for what, pattern, new in SWAPS]

# Names of one kind: each could be mistaken for another of it.
KINDS = re.compile(r"\b(STAT_[a-z]|REQACT_|ACT_|REQRULE_|RULE_|QC_|FATAL_|STATUS_|QPS_|NAK_|"
                   r"FAULT_|EVENT_|REQ_(?!KNOB)|QPF_|OPF_|HURRY_|ERRBUF_)\w+")
CALL = re.compile(r"^(\([a-z]+\))?[a-z_]\w*\(.*\);$")
ASSIGN = re.compile(r"^[a-z_*][\w.>\[\]()*& -]*? [|&+-]?= .*;$|^[\w.>\[\]-]+(\+\+|--);$"
                    r"|^(\+\+|--)\w.*;$")
DECLARES = re.compile(r"^(const |static |struct |enum |u?int\d*_t |uint|int |bool |char |psn_t |"
                      r"ns_t |tick_t |opflags_t |size_t |void |return\b|goto )")
LEAVE = re.compile(r"_Static_assert|prefetch|^#|^\s*$|__attribute__|\bextern\b|^\s*\w+:$")


def condition(code):
    """(begin, end) of what stands in the brackets of an if that ends on its line, or None."""
    m = re.search(r"\bif \(", code)
    if not m:
        return None
    depth, at = 1, m.end()
    while at < len(code) and depth:
        depth += {"(": 1, ")": -1}.get(code[at], 0)
        at += 1
    return (m.end(), at - 1) if depth == 0 else None


def breaks(code, text, names):
    """(what, the line broken) for everything that can be broken in it."""
    def put(begin, end, new):
        return text[:begin] + new + text[end:]

    for what, pattern, news in SWAPS:
        for m in pattern.finditer(code):
            for new in news:
                if new == "+1":
                    new = str(int(m.group(0)) + 1)
                yield what, put(m.start(), m.end(), new)
    cond = condition(code)
    if cond:
        yield "condition", put(cond[0], cond[1], "!(" + text[cond[0]:cond[1]] + ")")
    for m in KINDS.finditer(code):
        others = [n for n in names[m.group(1)] if n != m.group(0)]
        if others:
            pick = int(hashlib.sha256((text + m.group(0)).encode()).hexdigest(), 16)
            yield "name", put(m.start(), m.end(), others[pick % len(others)])
    code = code.strip()
    if (CALL.match(code) or ASSIGN.match(code)) and not DECLARES.match(code) and \
            code.count("(") == code.count(")"):
        yield "left out", ";"
    if code == "break;":
        yield "left out", ";"


def statements(code):
    """Numbers of the lines that begin a statement (or go on with one: `False`)."""
    starts = True
    for n, line in enumerate(code.split("\n"), 1):
        text = line.strip()
        yield n, line, starts
        if text and not text.startswith("#"):
            starts = text.endswith((";", "{", "}", ":")) or bool(condition(text)) and \
                text.endswith(")") or text == "else"


def find(paths):
    """Every mutation of these files."""
    names = collections.defaultdict(set)
    sources = {}
    for path in paths:
        text = common.read(path)
        sources[path] = (text, common.without_comments(text, strings=False))
        for m in KINDS.finditer(sources[path][1]):
            names[m.group(1)].add(m.group(0))
    names = {kind: sorted(found) for kind, found in names.items()}
    for path, (text, code) in sources.items():
        lines = text.split("\n")
        body = False  # only what stands in functions: prototypes and types do not run
        for n, line, starts in statements(code):
            body = (body or line.startswith("{")) and not line.startswith("}")
            if not body or LEAVE.search(line):
                continue
            old = lines[n - 1].strip()
            for what, new in breaks(line, lines[n - 1], names):
                if what == "left out" and not starts:
                    continue
                yield Mutation(path, n, old, new.strip(), what)


def chosen(paths, seed):
    """In the order of a draw that stays the same where code is moved about; one of each line."""
    def lot(m):
        return hashlib.sha256(f"{seed}:{m.path}:{m.old}:{m.new}".encode()).hexdigest()

    taken, groups = set(), collections.defaultdict(list)
    for m in sorted(set(find(paths)), key=lambda m: (lot(m), m.line)):
        if (m.path, m.line) not in taken:
            taken.add((m.path, m.line))
            groups[m.path.split("/")[1]].append(m)
    order = sorted(groups)
    while any(groups.values()):  # as many of each module
        for module in order:
            if groups[module]:
                yield groups[module].pop(0)
