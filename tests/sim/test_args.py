#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Words that a simulation does not know are no reason to play something else, and to pass.

    test_args.py PROGRAM...
"""
import os
import subprocess
import sys

WRONG = {"sim": (["--seeds", "x"], ["--first", str(2 ** 64 - 1), "--seeds", "3"]),
         "sim-loss": (["--row", "x"], ["--row", "999"]), "sim-unacked": (["--seeds"],),
         "sim-cm": (["--seeds", "-1"],), "sim-fair": (["4", "nosuch", "20"], ["4", "paper"])}


def main():
    failed = 0
    for path in sys.argv[1:]:
        for words in (["nosuch"], *WRONG[os.path.basename(path)]):
            done = subprocess.run([path, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False)
            if (done.returncode, done.stdout) != (2, "") or "usage: " not in done.stderr:
                print(path, *words, done)
                failed += 1
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
