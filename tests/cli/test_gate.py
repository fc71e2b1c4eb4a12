# SPDX-License-Identifier: BSD-3-Clause
"""scripts/test, with a meson and a ninja of our own making: whatever ends early is a failure."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

SCRIPTS = os.environ["SCRIPTS"]
# A test of each name that passes; of the build in $BAD it fails.
MESON = """
dir=$2
case $1 in
setup) mkdir -p "$dir"; exit 0 ;;
test) dir=$3 ;;
*) exit 1 ;;
esac
result=OK
[ "$dir" != "$BAD" ] || result=FAIL
while [ "$1" != --logbase ]; do shift; done
mkdir -p "$dir/meson-logs"
echo '{"name": "one", "result": "'$result'", "stdout": ""}' >"$dir/meson-logs/$2.json"
echo "1/1 one $result"
echo "Ok: 1"
"""
# The build in $BROKEN fails; in $KILLED it ends the shell that waits for it, and writes no more.
NINJA = """
mkdir -p "$2/tests/unit"
cp /bin/true "$2/tests/unit/unit_pipeline"
[ "$2" != "$KILLED" ] || kill -KILL $PPID
[ "$2" != "$BROKEN" ]
"""
CHECKS = '[ "$KILLED" != checks ] || kill -KILL $$\necho "pass check all" >>"$2"\n'


class Gate(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.root = holder.name
        for name in ("test", "dev/summary.py"):
            to = os.path.join(self.root, "scripts", name)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(SCRIPTS, name), to)
        for name, text in (("scripts/setup", ""), ("scripts/check/all", CHECKS),
                           ("scripts/check/format", ""), ("scripts/check/analyze", ""),
                           ("scripts/check/memcheck", ""),
                           ("bin/meson", MESON), ("bin/ninja", NINJA)):
            path = os.path.join(self.root, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write("#!/bin/bash\n" + text)
            os.chmod(path, 0o755)

    def gate(self, *options, **env):
        """@return exit code, last line."""
        path = os.path.join(self.root, "bin") + ":" + os.environ["PATH"]
        p = subprocess.run(
            [os.path.join(self.root, "scripts/test"), *options], stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, check=False, timeout=60, stdin=subprocess.DEVNULL,
            env={**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1", **env})
        return p.returncode, p.stdout.splitlines()[-1]

    def test_all_is_well(self):
        self.assertEqual((0, "5 passed, 0 failed"), self.gate())
        self.assertEqual((0, "4 passed, 0 failed"), self.gate("--no-interop"))
        self.assertEqual((0, "2 passed, 0 failed"), self.gate("--quick"))
        self.assertEqual((0, "2 passed, 0 failed"), self.gate("one"))

    def test_a_test_fails(self):
        self.assertEqual((1, "3 passed, 2 failed"), self.gate(BAD="build/default"))
        self.assertEqual((1, "4 passed, 1 failed"), self.gate(BAD="build/asan"))
        self.assertEqual((1, "4 passed, 1 failed"), self.gate(BAD="build/tsan"))

    def test_deep(self):
        self.assertEqual((0, "6 passed, 0 failed"), self.gate("--deep"))
        self.assertEqual((0, "3 passed, 0 failed"), self.gate("--quick", "--deep"))
        self.assertEqual((1, "4 passed, 1 failed"),
                         self.gate("--no-interop", "--deep", BAD="build/clang"))
        self.assertEqual((1, "2 passed, 1 failed"),
                         self.gate("--quick", "--deep", BROKEN="build/clang"))

    def test_a_build_fails(self):
        self.assertEqual((1, "3 passed, 1 failed"), self.gate(BROKEN="build/default"))
        self.assertEqual((1, "4 passed, 1 failed"), self.gate(BROKEN="build/asan"))
        self.assertEqual((1, "4 passed, 1 failed"), self.gate(BROKEN="build/tsan"))

    def test_the_other_line_ends_early(self):
        self.assertEqual((1, "3 passed, 1 failed"), self.gate(KILLED="build/asan"))

    def test_the_checks_end_early(self):
        self.assertEqual((1, "4 passed, 1 failed"), self.gate(KILLED="checks"))


if __name__ == "__main__":
    tap.main()
