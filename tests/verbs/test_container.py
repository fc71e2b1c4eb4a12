#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs in a rootless container of podman's, without any capability: by rocelane-run, and the
tests of this folder that need no network of their own.

No image is needed: its root is a tree of links, over this machine's /usr and the build, read-only.
Without podman, or where it cannot start any container, it says so and counts as skipped.
"""
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

NOBODY, SKIPPED = 65534, 77
LATEST_S = 600
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
# qperf wants to meet at the address of its port by TCP: no container gives that one.
RDMACM = ("rping", "loopback", "ucmatose", "perftest", "rsockets", "rcopy", "cmtime", "refusals",
          "mckey", "udaddy")
TESTS = {"pingpong": [], "perftest": [], "libfabric": [], "ucx": [],
         "rdmacm": [word for name in RDMACM for word in ("-k", "test_" + name)]}
RUN = os.environ["ROCELANE_RUN"]
# What is run by each runtime: the other one needs cgroups of the second version.
RUNTIMES = (("crun", ["--cgroups=disabled"]), ("runc", []))
BOTH_ENDS = """
port=18515
ib_write_bw -d rocelane0 -F -n 200 -p $port >/dev/null &
until grep -q ":$(printf %04X $port) .* 0A " /proc/net/tcp /proc/net/tcp6; do sleep 0.05; done
ib_write_bw -d rocelane1 -F -n 200 -p $port 127.0.0.1 && wait $!
"""


def runtime(name):
    """Where it is: in sbin for some, which is not in a user's path."""
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")


class Container(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.mkdtemp(prefix="rocelane-container-")
        self.addCleanup(self.remove)
        self.root = os.path.join(self.tmp, "root")
        self.build = os.path.dirname(os.path.dirname(os.path.dirname(RUN)))
        for name in ("home", "run", *("root/" + d for d in (
                "usr", "etc/alternatives", "proc", "sys", "dev", "tmp", "run", "var", "home"))):
            os.makedirs(os.path.join(self.tmp, name))
        for name in ("bin", "lib", "lib64", "sbin"):
            os.symlink("usr/" + name, os.path.join(self.root, name))
        self.drop = []
        if os.getuid() == 0:
            self.drop = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups",
                         "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs"]
            for folder, _, _ in os.walk(self.tmp):
                os.chown(folder, NOBODY, NOBODY)
        self.env = dict(os.environ, HOME=self.tmp + "/home", XDG_RUNTIME_DIR=self.tmp + "/run")
        for name in ("LD_PRELOAD", "ROCELANE_SOCKET", "DBUS_SESSION_BUS_ADDRESS"):
            self.env.pop(name, None)

    def remove(self):
        """podman leaves a process that keeps its user namespace."""
        try:
            with open(self.tmp + "/run/libpod/tmp/pause.pid", encoding="ascii") as f:
                os.kill(int(f.read()), 9)
        except (FileNotFoundError, ProcessLookupError):
            pass
        until = time.monotonic() + LATEST_S
        while True:     # ... and one that ends a container which could not start
            try:
                return shutil.rmtree(self.tmp)
            except OSError as e:
                if e.errno not in (errno.ENOTEMPTY, errno.EBUSY) or time.monotonic() > until:
                    raise

    def podman(self, name, more, *command):
        return subprocess.run(
            [*self.drop, "podman", "--runtime", runtime(name), "--cgroup-manager=cgroupfs",
             "--events-backend=none", "--storage-driver=vfs", "--log-level=error", "run", "--rm",
             "--network=none", "--cap-drop=all", "--pull=never", *more,
             *(f"--volume={path}:{path}:ro"
               for path in {"/usr", "/etc/alternatives", "/etc/hosts", SOURCE, self.build}),
             *(f"--env={key}={value}" for key, value in self.env.items()
               if value.startswith((SOURCE, self.build))), "--env=PYTHONDONTWRITEBYTECODE=1",
             "--rootfs", self.root, *command], cwd="/", env=self.env, check=False, text=True,
            timeout=LATEST_S, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)

    def works(self):
        """(runtime, its options) that can start a container here; or skip."""
        if shutil.which("podman") is None:
            self.skipTest("podman is not installed")
        said = []
        for name, more in RUNTIMES:
            if runtime(name) is None:
                continue
            done = self.podman(name, more, "true")
            if done.returncode == 0:
                return name, more
            said.append(f"{name}: {done.stderr.strip()}")
        self.skipTest("podman can start no container here: " + "; ".join(said or ["no runtime"]))

    def test_rootless(self):
        name, more = self.works()
        caps = "grep Cap /proc/self/status | cut -f 2 | sort -u"
        done = self.podman(name, more, "sh", "-c", caps + "; cat /proc/self/uid_map")
        self.assertEqual(0, done.returncode, done.stderr)
        words = done.stdout.split()
        self.assertEqual(["0000000000000000", "0"], words[:2], done.stdout)
        self.assertNotEqual("0", words[2], "root in there is root out here")
        print(f"# podman with {name}, uid_map {words[1:]}", file=sys.stderr)
        for command, want in ((("sh", "-c", BOTH_ENDS), r"(?m)^ 65536 +200 "),
                              ((os.environ["VERBS_MEMORY"],), "^all kinds of memory$")):
            done = self.podman(name, more, RUN, "--private", *command)
            self.assertEqual(0, done.returncode, done.stdout + done.stderr)
            self.assertRegex(done.stdout, want)
        self.assertEqual([], os.listdir(os.path.join(self.root, "tmp")))

    def test_programs(self):
        name, more = self.works()
        run = ["/usr/bin/python3", os.path.join(SOURCE, "tests/client/run.py"), "--ipv6"]
        for test, options in TESTS.items():
            with self.subTest(test):
                done = self.podman(name, more, *run, "/usr/bin/python3",
                                   os.path.join(HERE, f"test_{test}.py"), *options)
                self.assertEqual(0, done.returncode, done.stdout + done.stderr)
                print(f"# {test}: {done.stderr.strip().splitlines()[-3]}", file=sys.stderr)


if __name__ == "__main__":
    result = unittest.main(exit=False).result
    for _, why in result.skipped:
        print("1..0 # SKIP not run: " + why, flush=True)
        sys.exit(SKIPPED)
    sys.exit(not result.wasSuccessful())
