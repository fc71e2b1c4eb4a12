# SPDX-License-Identifier: BSD-3-Clause
"""A test of rocelane-run: programs are run in an empty folder, and nothing is left in it."""
import json
import os
import subprocess
import tempfile
import unittest

RUN = os.environ["ROCELANE_RUN"]


class Runs(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.TemporaryDirectory(prefix="rocelane-test-run-")
        self.addCleanup(self.dir.cleanup)
        self.env = dict(os.environ, XDG_RUNTIME_DIR=self.dir.name)
        self.env.pop("ROCELANE_SOCKET", None)
        if self.env.get("SANITIZER"):
            self.env.update(LD_PRELOAD=self.env["SANITIZER"], ASAN_OPTIONS="detect_leaks=0")

    def start(self, *args):
        return subprocess.Popen([RUN, *args], env=self.env, stdin=subprocess.DEVNULL, text=True,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run_it(self, *args):
        """(exit status, standard output, standard error); nothing is left behind."""
        proc = self.start(*args)
        out, err = proc.communicate(timeout=120)
        self.assertEqual([], os.listdir(self.dir.name))
        return proc.returncode, out, err

    def faults(self, rules):
        # Not in the run's own directory, which must be empty at the end.
        with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as f:
            json.dump(rules, f)
        self.addCleanup(os.unlink, f.name)
        return f.name


class Beside(Runs):
    """With a dataplane that somebody else has started, in a folder of its own."""

    def plane(self):
        """Its socket."""
        other = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(other.cleanup)
        proc = subprocess.Popen(
            [RUN, "-p", "sh", "-c", "echo $ROCELANE_SOCKET; exec sleep 1000"], text=True,
            env={**self.env, "XDG_RUNTIME_DIR": other.name}, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE)
        self.addCleanup(proc.communicate, timeout=120)
        self.addCleanup(proc.terminate)
        return proc.stdout.readline().strip()
