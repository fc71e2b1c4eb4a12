#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""make_map.py SYMBOLS.DEF MAP: the linker's version script from the table of exported symbols."""
import re
import sys

ROW = re.compile(r"^(OURS|STUB)\((\w+), ([\w.]+)", re.M)


def order(node):
    return [int(x) for x in node.split(".")] if node[0].isdigit() else [99]


def main():
    with open(sys.argv[1], encoding="utf-8") as f:
        rows = ROW.findall(f.read())
    nodes = sorted({node for _, _, node in rows}, key=order)
    out, before = [], ""
    for node in nodes:
        names = "".join(f"\t{name};\n" for _, name, at in rows if at == node)
        # Not in a node that has old versions: it would hide them.
        hidden = "local:\n\t*;\n" if node == nodes[-1] else ""
        parent = before if node[0].isdigit() else ""
        out.append(f"IBVERBS_{node} {{\nglobal:\n{names}{hidden}}}{parent};\n")
        before = f" IBVERBS_{node}"
    with open(sys.argv[2], "w", encoding="utf-8") as f:
        f.write("".join(out))


main()
