#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""libibverbs.so.1 exports what symbols.def lists, and that is what Debian's library exports."""
import errno
import glob
import os
import re
import subprocess
import unittest

OURS = os.environ["LIBIBVERBS"]
DEBIAN = "/usr/lib/*/libibverbs.so.1"
NODES = 13
PRIVATE = 57, 59, 64, 65    # rdma-core's numbers of it since 34
NEWER = 15, 16, 17, 18      # Debian 12 has 1.0 to 1.14


def exported(path):
    """name@VERSION or name@@VERSION of everything that is defined; version nodes by their name."""
    out = subprocess.run(["nm", "-D", "--with-symbol-versions", path], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return sorted(m.group(1) for m in re.finditer(r"^[0-9a-f]+ [TBDAR] (\S+)$", out, re.M))


def listed():
    with open(os.environ["SYMBOLS_DEF"], encoding="utf-8") as f:
        text = f.read()
    rows = [f"{name}@@IBVERBS_{node}"
            for name, node in re.findall(r"^(?:OURS|STUB)\((\w+), ([\w.]+)", text, re.M)]
    rows += [f"{name}@IBVERBS_{node}"
             for name, node in re.findall(r"^OLD\((\w+), ([\w.]+)", text, re.M)]
    private = re.findall(r"^PRIV\((\w+)", text, re.M)
    rows += [f"{name}@@IBVERBS_PRIVATE_34" for name in private]
    rows += [f"{name}@IBVERBS_PRIVATE_{n}" for name in [*private, "ibv_query_gid_type"]
             for n in PRIVATE]
    return rows


class Symbols(unittest.TestCase):
    def test_table(self):
        have = [s for s in exported(OURS) if "@" in s]
        self.assertEqual(sorted(listed()), have)

    def test_debian(self):
        found = glob.glob(DEBIAN)
        self.assertTrue(found, "libibverbs1 is not installed: scripts/setup")
        debian, ours = exported(found[0]), exported(OURS)
        self.assertEqual([], sorted(set(debian) - set(ours)))
        more = {s.split("@")[-1] for s in set(ours) - set(debian)}
        self.assertEqual({f"IBVERBS_1.{n}" for n in NEWER} |
                         {f"IBVERBS_PRIVATE_{n}" for n in (34, *PRIVATE)},
                         {node for node in more if "_" in node})
        self.assertEqual(NODES, len([s for s in debian if "@" not in s]))
        self.assertEqual(193, len(debian))

    def test_providers_load(self):
        """libmlx5 and libefa are linked with -z now: every private symbol of theirs is bound."""
        for name in ("libmlx5.so.1", "libefa.so.1"):
            path = glob.glob(f"/usr/lib/*/{name}")
            self.assertTrue(path, f"{name} is not installed: scripts/setup")
            run = subprocess.run(["/usr/bin/env", "LD_BIND_NOW=1", "/usr/bin/python3", "-c",
                                  f"import ctypes; ctypes.CDLL({path[0]!r}); "
                                  "print(open('/proc/self/maps').read())"],
                                 env=environment(), check=False, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, text=True)
            self.assertEqual("", run.stderr)
            self.assertIn(OURS, run.stdout)

    def test_stubs_say_so(self):
        code = ("import ctypes, errno, os; l = ctypes.CDLL(os.environ['LIBIBVERBS'], "
                "use_errno=True); l.ibv_import_pd.restype = ctypes.c_void_p; "
                "print(l.ibv_cmd_reg_mr(), l.ibv_import_pd(), ctypes.get_errno())")
        run = subprocess.run(["/usr/bin/python3", "-c", code], env=environment(), check=False,
                             stdout=subprocess.PIPE, text=True)
        self.assertEqual(f"{errno.EOPNOTSUPP} None {errno.EOPNOTSUPP}", run.stdout.strip())


def environment():
    return dict(os.environ, LD_LIBRARY_PATH=os.path.dirname(OURS),
                LD_PRELOAD=os.environ.get("SANITIZER", ""), ASAN_OPTIONS="detect_leaks=0")


if __name__ == "__main__":
    unittest.main()
