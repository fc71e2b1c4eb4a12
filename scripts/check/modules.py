# SPDX-License-Identifier: BSD-3-Clause
"""The modules of lib/ and drivers/ as their meson.build files describe them."""
import os
import re

import common


def _list(text, name):
    m = re.search(rf"^{name}\s*=\s*\[(.*?)\]", text, re.S | re.M)
    if m is None:
        return []
    items = re.sub(r"#[^\n]*", "", m.group(1))
    items = re.sub(r"\w+\.\w+\([^()]*\)", "", items)  # libraries without headers of their own
    return re.findall(r"[\w/-]+", items)


def read():
    """name -> {dir, deps: module names, ext: external dependencies}; drivers go by their folder."""
    out = {}
    for top in ("lib", "drivers"):
        for path in common.files((top,), ("meson.build",)):
            folder = os.path.dirname(path)
            if folder == top:
                continue
            text = common.read(path)
            name = os.path.relpath(folder, "lib") if top == "lib" else folder
            out[name] = {"dir": folder, "deps": _list(text, "deps"), "ext": _list(text, "ext_deps")}
    return out


def module_of(path, mods):
    """The module whose folder holds the file, or None."""
    folder = os.path.dirname(path)
    while folder:
        for name, info in mods.items():
            if info["dir"] == folder:
                return name
        folder = os.path.dirname(folder)
    return None
