#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_map.py SYMBOLS.DEF MAP: the linker's version script from the table of exported symbols."""
import re
import sys

ROW = re.compile(r"^(OURS|STUB|PRIV)\((\w+), ([\w.]+)", re.M)
DEFAULT = "PRIVATE_34"
NEWER = 57, 59, 64, 65              # IBVERBS_PABI_VERSION of rdma-core since


def order(node):
    return [int(x) for x in node.split(".")] if node[0].isdigit() else [99]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = [(name, DEFAULT if kind == "PRIV" else at)
                for kind, name, at in ROW.findall(f.read())]
    nodes = sorted({node for _, node in rows}, key=order)
    out, before = [], ""
    for node in nodes:
        names = "".join(f"\t{name};\n" for name, at in rows if at == node)
        # Not in a node that has old versions: it would hide them.
        hidden = "local:\n\t*;\n" if node == nodes[-1] else ""
        parent = before if node[0].isdigit() else ""
        out.append(f"IBVERBS_{node} {{\nglobal:\n{names}{hidden}}}{parent};\n")
        before = f" IBVERBS_{node}"
    # What they have is said where it is defined (.symver).
    out += [f"IBVERBS_PRIVATE_{n} {{\n}};\n" for n in NEWER]
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("".join(out))


main()
