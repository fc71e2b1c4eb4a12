# SPDX-License-Identifier: BSD-3-Clause
"""The rules of tests/conformance/rules.json, and how text cites them."""
import json
import re

import common

PATH = "tests/conformance/rules.json"
DOC = json.loads(common.read(PATH))
RULES = {r["id"]: r for r in DOC["rules"]}

_AREAS = {r["area"] for r in DOC["rules"]}
_FIRST = {a.split("-")[0] for a in _AREAS}
# A list (REQ-CLS-B-02,04) cites each of its rules; a range (RX-SYN-00..12) its two ends, which must
# exist, and what there is between them: not all areas number without gaps.
_ID = re.compile(r"(?<![A-Za-z0-9-])(?:[A-Z]+_)??([A-Z][A-Z0-9]*(?:[-_][A-Z][A-Z0-9]*)*)[-_](\d{2})"
                 r"(?![0-9])((?:(?:\.\.|,|/)\d{2}(?![0-9]))*)")


def _numbered(area, first, tail):
    last = int(first)
    yield f"{area}-{last:02}"
    for sep, digits in re.findall(r"(\.\.|,|/)(\d{2})", tail):
        if sep == "..":
            inner = (f"{area}-{n:02}" for n in range(last + 1, int(digits)))
            yield from (i for i in inner if i in RULES)
        last = int(digits)
        yield f"{area}-{last:02}"


def _area(name):
    """The area that a name ends with: test_RESP_SEQ_03 cites RESP-SEQ. None where it is none."""
    parts = re.split("[-_]", name)
    for at in range(len(parts)):
        area = "-".join(parts[at:])
        if area in _AREAS:
            return area
    return "-".join(parts) if parts[0] in _FIRST and "-" in name else None


def ids_in(line):
    """The ids that a line cites, existing or not."""
    for name, first, tail in _ID.findall(line):
        area = _area(name)
        if area is not None:
            yield from _numbered(area, first, tail)
