# SPDX-License-Identifier: BSD-3-Clause
"""What the checks share: the tree's files, C without comments, and how findings are reported."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SKIP_DIRS = {".git", "__pycache__"}
SKIP_FILES = {".git"}  # of a linked work tree

_found = []


def files(under=("",), ends=None):
    """Paths relative to the root, sorted; no builds, no git. `ends` is a tuple of name endings."""
    out = []
    for top in under:
        for here, dirs, names in os.walk(os.path.join(ROOT, top)):
            at_root = os.path.samefile(here, ROOT)
            dirs[:] = sorted(d for d in dirs if d not in SKIP_DIRS
                             and not (at_root and d.startswith("build")))
            out += [os.path.relpath(os.path.join(here, n), ROOT) for n in names
                    if n not in SKIP_FILES and (ends is None or n.endswith(ends))]
    return sorted(set(out))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8", errors="replace", newline="") as f:
        return f.read()


def is_text(path):
    with open(os.path.join(ROOT, path), "rb") as f:
        return b"\0" not in f.read(4096)


def _blank(text):
    return re.sub(r"[^\n]", " ", text)


def without_comments(text, strings=True):
    """C with comments (and, with strings=False, what is in quotes) turned into spaces."""
    def replace(m):
        s = m.group(0)
        if s.startswith("/"):
            return _blank(s)
        return s if strings else s[0] + _blank(s[1:-1]) + s[-1]
    return re.sub(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', replace, text,
                  flags=re.S)


def off_lines(text):
    """Line numbers between clang-format off and on: aligned by hand."""
    off, out = False, set()
    for n, line in enumerate(text.split("\n"), 1):
        if "clang-format off" in line:
            off = True
        if off:
            out.add(n)
        if "clang-format on" in line:
            off = False
    return out


def find(path, line, message):
    _found.append(f"{path}:{line}: {message}")


def done():
    """Report and exit: 1 where something was found."""
    print("\n".join(_found), end="\n" if _found else "")
    sys.exit(1 if _found else 0)
