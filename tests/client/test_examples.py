# SPDX-License-Identifier: BSD-3-Clause
"""The examples, built outside of the tree against an installed librocelane, and run.

Run by run.py; the socket's path is the first argument. Environment: ROCELANE_BUILD is the build
folder that is installed, MESON the command.
"""
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import unittest

SOCKET = sys.argv.pop(1)
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "app", "examples")


def run(command, **kw):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=120, check=False, **kw)
    if done.returncode != 0:
        raise AssertionError("%s: %d\n%s" % (command, done.returncode, done.stdout))
    return done.stdout


class Examples(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.dir = tempfile.mkdtemp(prefix="rocelane-examples-")
        cls.addClassCleanup(shutil.rmtree, cls.dir)
        root = os.path.join(cls.dir, "root")
        run(os.environ["MESON"].split() +
            ["install", "-C", os.environ["ROCELANE_BUILD"], "--no-rebuild", "--quiet",
             "--destdir", root, "--tags", "devel,runtime"])
        found = [os.path.join(where, "librocelane.pc") for where, _, names in os.walk(root)
                 if "librocelane.pc" in names]
        assert len(found) == 1, found
        libs = os.path.dirname(os.path.dirname(found[0]))
        # A build with sanitizers has to link with them, too.
        extra = os.environ.get("EXAMPLES_CFLAGS", "")
        cls.env = dict(os.environ, PKG_CONFIG_PATH=os.path.dirname(found[0]),
                       PKG_CONFIG_SYSROOT_DIR=root, LD_LIBRARY_PATH=libs,
                       ROCELANE_SOCKET=SOCKET, CFLAGS=extra, LDFLAGS=extra)
        cls.built = os.path.join(cls.dir, "examples")
        shutil.copytree(SOURCE, cls.built)
        run(["make", "-C", cls.built], env=cls.env)

    def free_port(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            return str(s.getsockname()[1])

    def both(self, name):
        """What the two sides print."""
        program, port = os.path.join(self.built, name), self.free_port()
        server = subprocess.Popen([program, "serve", port], env=self.env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            asked = run([program, "ask", "127.0.0.1", port], env=self.env)
            served, _ = server.communicate(timeout=60)
        finally:
            server.kill()
            server.wait()
        self.assertEqual(0, server.returncode, served)
        return served, asked

    def test_pingpong(self):
        for text in self.both("pingpong"):
            self.assertRegex(text, r"1000 round trips of 64 bytes: [\d.]+ us each")

    def test_write_imm(self):
        served, _ = self.both("write_imm")
        self.assertEqual(["this is record %d" % (n * 5 % 16) for n in range(16)],
                         served.splitlines())

    def test_kv_get(self):
        _, asked = self.both("kv_get")
        self.assertIn("RNR: try again later", asked)
        self.assertEqual(6, len(asked.splitlines()))

    def test_usage_and_no_dataplane(self):
        program = os.path.join(self.built, "pingpong")
        done = subprocess.run([program], env=self.env, capture_output=True, text=True, check=False)
        self.assertEqual(2, done.returncode)
        env = dict(self.env, ROCELANE_SOCKET="/nonexistent/socket")
        done = subprocess.run([program, "serve", "1"], env=env, capture_output=True, text=True,
                              check=False)
        self.assertEqual(1, done.returncode)
        self.assertIn("is rocelane running?", done.stderr)

    def test_static(self):
        """The static library serves as well."""
        flags = run(["pkg-config", "--cflags", "--static", "--libs", "librocelane"],
                    env=self.env).split()
        flags = [f if f != "-lrocelane" else "-l:librocelane.a" for f in flags]
        out = os.path.join(self.dir, "static")
        run(["cc", "-o", out] + self.env["CFLAGS"].split() +
            [os.path.join(SOURCE, f) for f in ("pingpong.c", "exchange.c", "tcp.c")] + flags)
        linked = run(["ldd", out])
        self.assertNotIn("librocelane", linked)


if __name__ == "__main__":
    unittest.main()
