#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Folders of rocelane-run: where they are, what is in them, and what becomes of them."""
import fcntl
import os
import re
import signal
import subprocess
import tempfile
import time
import unittest

from runs import RUN, Beside


class Folders(Beside):
    """Where files of a run are, and that a program may go to another folder."""

    def setUp(self):
        super().setUp()
        self.other = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(self.other.cleanup)

    def places(self, *args, **env):
        """(of the socket, of the devices' files), after a run from `other` that left nothing."""
        self.env.update(env)
        done = subprocess.run(
            [RUN, *args, "sh", "-c", "cd / && ibv_devinfo -l >&2; "
             'echo "$ROCELANE_SOCKET"; echo "$ROCELANE_FILES"'], env=self.env, text=True,
            cwd=self.other.name, timeout=120, stdin=subprocess.DEVNULL, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(0, done.returncode, done.stderr)
        self.assertIn("rocelane1", done.stderr)
        socket, files = done.stdout.split()
        self.assertEqual([], os.listdir(self.other.name))
        return socket, files

    def test_tmpdir(self):
        """Where there is no XDG_RUNTIME_DIR; all of a run is in it."""
        del self.env["XDG_RUNTIME_DIR"]
        for path in self.places("-p", TMPDIR=self.other.name):
            self.assertTrue(path.startswith(self.other.name + "/"), path)

    def lasting(self):
        """A run that ends with its standard input. Its folders are there."""
        proc = subprocess.Popen([RUN, "-p", "sh", "-c", "echo ready; read x"], env=self.env,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.addCleanup(proc.communicate, timeout=120)
        self.assertEqual(b"ready\n", proc.stdout.readline())
        return proc

    def test_what_a_killed_run_has_left(self):
        """The next one removes it, but not those of a run that goes on, nor what is no run's."""
        def made():
            return set(os.listdir(self.dir.name))

        def run_another():
            subprocess.run([RUN, "-p", "true"], env=self.env, check=True, timeout=120)

        notes = os.path.join(self.dir.name, "rocelane-run-notes")
        os.mkdir(notes)
        lives = self.lasting()
        kept = made()
        dies = self.lasting()
        all_of_it = made()
        self.assertEqual((3, 5), (len(kept), len(all_of_it)))
        dies.kill()
        dies.wait(60)
        run_another()       # the program goes on, and may still look at the devices' files
        self.assertEqual(all_of_it, made())
        dies.communicate(timeout=60)
        while made() != kept:       # its dataplane ends in its own time
            run_another()
            self.assertLessEqual(kept, made())
        lives.communicate(timeout=120)
        self.assertEqual({"rocelane-run-notes"}, made())
        os.rmdir(notes)

    def test_what_users_call_alike(self):
        """Whatever begins as runs' folders do is not theirs: it is left, with all that is in it."""
        for name in ("rocelane-run.my-results", "rocelane-run.backup", "rocelane-run."):
            path = os.path.join(self.dir.name, name)
            os.mkdir(path)
            with open(os.path.join(path, "data"), "w", encoding="ascii") as f:
                f.write("x")
        subprocess.run([RUN, "-p", "true"], env=self.env, check=True, timeout=120)
        for name in os.listdir(self.dir.name):
            self.assertEqual(["data"], os.listdir(os.path.join(self.dir.name, name)), name)
        self.assertEqual(3, len(os.listdir(self.dir.name)))

    def test_what_a_run_that_was_killed_at_once_has_left(self):
        """Its dataplane does not run on, and what it was making goes, too: nothing else does."""
        def users():
            for pid in filter(str.isdigit, os.listdir("/proc")):
                try:
                    with open("/proc/%s/environ" % pid, "rb") as f:
                        if int(pid) != os.getpid() and self.dir.name.encode() in f.read():
                            yield pid
                except OSError:
                    pass

        preloads = [self.env.get("LD_PRELOAD"), os.environ["LATE_FORK"]]
        env = dict(self.env, LATE_FORK="-1", LD_PRELOAD=":".join(filter(None, preloads)))
        self.assertEqual(-signal.SIGKILL, subprocess.run(
            [RUN, "-p", "true"], env=env, timeout=120, check=False).returncode)
        deadline = time.monotonic() + 60
        while list(users()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        kept = []
        for name, inside, age in (("Ab1Cd2", "lock", 100), ("Ab1Cd3", "lock", 100),
                                  ("Ab1Cd4", "lock", 0), ("backup", "mine", 100),
                                  ("backups", "lock", 100), ("mktemp", None, 100)):
            path = os.path.join(self.dir.name, "rocelane-run-" + name)
            os.mkdir(path, 0o700)
            if inside:
                open(os.path.join(path, inside), "w", encoding="ascii").close()
            os.utime(path, (time.time() - age, time.time() - age))
            if name == "Ab1Cd3":    # its maker was stopped (SIGSTOP), and goes on later
                holds = open(os.path.join(path, "lock"), encoding="ascii")
                self.addCleanup(holds.close)
                fcntl.flock(holds, fcntl.LOCK_EX)
            kept += [] if name == "Ab1Cd2" else [path]
        subprocess.run([RUN, "-p", "true"], env=self.env, check=True, timeout=120)
        self.assertEqual(sorted(kept), sorted(
            os.path.join(self.dir.name, name) for name in os.listdir(self.dir.name)))

    def test_names_do_not_steer_a_terminal(self):
        for want, args in ((125, ("-s", "/\x1b]0;x\a")), (125, ("-f", "\x9b31m")),
                           (127, ("-p", "/\x1b[31m"))):
            code, _, err = self.run_it(*args, "true")
            self.assertEqual(want, code, err)
            self.assertRegex(err, r"rocelane-run: /?\?+[][3]", args)
            self.assertEqual([], re.findall("[\0-\x09\x0b-\x1f\x7f-\x9f]", err), args)

    def test_what_is_no_folder_of_ours(self):
        """Nothing is made in the root of the file system, or beside the program."""
        for name in ("", ".", "/no/such/folder", __file__, "/tmp/" + 5000 * "x"):
            for path in self.places("-p", TMPDIR=name, XDG_RUNTIME_DIR=name):
                self.assertTrue(path.startswith("/tmp/rocelane-run."), path)

    def test_a_socket_from_here(self):
        """--socket goes by the folder of rocelane-run, not by those that its program goes to."""
        path = self.plane()
        near = os.path.relpath(path, self.other.name)
        self.assertEqual(path, self.places("-s", near)[0])
        self.assertEqual(path, self.places(ROCELANE_SOCKET=near)[0])

    def test_an_empty_name_is_none(self):
        """As for rocelanectl: without a default one, a private dataplane is started."""
        self.env["ROCELANE_SOCKET"] = ""
        code, out, err = self.run_it("sh", "-c", "echo $ROCELANE_SOCKET")
        self.assertEqual((0, ""), (code, err))
        self.assertTrue(out.startswith(("/run/", self.dir.name)), out)


if __name__ == "__main__":
    unittest.main()
