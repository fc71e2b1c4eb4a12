# SPDX-License-Identifier: BSD-3-Clause
"""The examples, built outside of the tree against an installed librocelane, and run.

Run by run.py; the socket's path is the first argument. Environment: ROCELANE_BUILD is the build
folder that is installed, MESON the command.
"""
import json
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest

import run as runner

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

    def both(self, name, serve=("serve",)):
        """What each side prints: those that serve, then the one that asks them all."""
        program, ports = os.path.join(self.built, name), [self.free_port() for _ in serve]
        servers = [subprocess.Popen([program, how, port], env=self.env, text=True,
                                    stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                   for how, port in zip(serve, ports)]
        for server in servers:
            self.addCleanup(self.end, server)
        asked = run([program, "ask", "127.0.0.1", *ports], env=self.env)
        served = [server.communicate(timeout=60)[0] for server in servers]
        self.assertEqual([0] * len(serve), [server.returncode for server in servers], served)
        return *served, asked

    def ctl(self, *words):
        """(exit code, all that rocelanectl prints)"""
        done = subprocess.run([os.environ["ROCELANECTL"], "-s", SOCKET, *words], text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60,
                              check=False)
        return done.returncode, done.stdout

    def test_pingpong(self):
        for text in self.both("pingpong"):
            self.assertRegex(text, r"1000 round trips of 64 bytes: [\d.]+ us each")

    def rping(self, served, asked):
        """A server and a client by the connection manager: what each prints."""
        program = os.path.join(self.built, "rping")
        server = subprocess.Popen([program, "-s"] + served, env=self.env, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for _ in range(1000):       # until it listens, nobody is there: REJ 8
                client = subprocess.run([program, "-c"] + asked, env=self.env, text=True,
                                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                        timeout=120, check=False)
                if "REJECTED instead of ESTABLISHED, status 8" not in client.stdout:
                    break
                self.assertIsNone(server.poll())
            text, _ = server.communicate(timeout=60)
        finally:
            server.kill()
            server.wait()
        self.assertEqual((0, 0), (client.returncode, server.returncode), client.stdout + text)
        return text, client.stdout

    def test_rping(self):
        """The text of rdma-core's rping, both ways; the server ends with its client."""
        first = "ping data: rdma-ping-0: ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqr\n"
        served, asked = self.rping(["-a", "10.77.0.2", "-v"],
                                   ["-a", "10.77.0.2", "-C", "100", "-v"])
        self.assertTrue(asked.startswith(first), asked[:200])
        self.assertTrue(served.startswith("server " + first), served[:200])
        self.assertIn("rdma-ping-99: ", served)
        for text in (served, asked):
            self.assertEqual(101, text.count("\n"), text)
            self.assertTrue(text.endswith("100 rounds\n"), text)

    def test_rping_large_and_any_address(self):
        self.rping(["-p", "9999", "-S", "100000"],
                   ["-a", "10.77.0.2", "-p", "9999", "-C", "10", "-S", "100000"])

    def test_write_imm(self):
        served, _ = self.both("write_imm")
        self.assertEqual(["this is record %d" % (n * 5 % 16) for n in range(16)],
                         served.splitlines())

    def test_kv_get(self):
        _, asked = self.both("kv_get")
        self.assertIn("RNR: try again later", asked)
        self.assertEqual(6, len(asked.splitlines()))

    def test_UD_datagrams_between_two_processes(self):
        for text in self.both("datagram"):
            self.assertRegex(text, r"^200 datagrams of 64 bytes there and back, \d+ sent again\n$")

    def test_XRC_a_target_of_two_processes(self):
        """Each application has what named its own receive queue, by the same target."""
        served, joined, asked = self.both("xrc", ("serve", "join"))
        target = asked.split()[-1]
        self.assertIn("16 messages, half of them for each", asked)
        for name, text in (("serve", served), ("join", joined)):
            self.assertEqual(["message %d for %s, by target %s" % (i, name, target)
                              for i in range(8)], text.splitlines())

    def test_MW_a_window_taken_back(self):
        """Bound, used, invalidated, used again: refused; the event and rocelanectl say why."""
        served, asked = self.both("window")
        self.assertEqual("the same WRITE again: REM_ACCESS_ERR\n", asked)
        came, event, hint = served.splitlines()
        self.assertEqual("through the window came: hello", came)
        why = r"R_Key 0x[0-9a-f]+ is that of a memory window, which is not bound, or is bound " \
              r"with another key by now"
        self.assertRegex(event, "^QP_ACCESS_ERR: RESP-NAK-RAE-01: .*: %s; the region with "
                         r"key 0x[0-9a-f]+ has these addresses$" % why)
        number = hint.split()[-1]
        # As long as it is there, the operator has the window's name, too.
        why = why.replace("is that of ", r"is that of (?:client \d+ mw \d+, )?")
        # The queue pair goes with its application: who asks for it is told where it is told of.
        code, text = self.ctl("qp", "explain", number)
        deadline = time.monotonic() + 60
        while code == 0 and time.monotonic() < deadline:
            self.assertRegex(text, why)
            code, text = self.ctl("qp", "explain", number)
        self.assertEqual(1, code)
        self.assertIn("qp post-mortem %s" % number, text)
        code, text = self.ctl("qp", "post-mortem", number)
        self.assertEqual(0, code, text)
        self.assertRegex(text, why)
        self.assertIn("RC_WRITE_ONLY", text)

    # -- nobody there any more --

    def waits(self, name, env):
        """A server of that example, connected to a peer that never sends, and our TCP to it."""
        port = self.free_port()
        server = subprocess.Popen([os.path.join(self.built, name), "serve", port], env=env,
                                  text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.addCleanup(self.end, server)
        tcp = self.dial(port, server)
        # struct address: GID, QP number, PSN, R_Key, address
        tcp.sendall(bytes(10) + b"\xff\xff" + bytes([10, 77, 0, 1]) +
                    struct.pack("=3I4xQ", 17, 0, 1, 0))
        self.assertEqual(40, len(tcp.recv(40, socket.MSG_WAITALL)))
        tcp.sendall(b"00")                          # end_meet(), twice
        self.assertEqual(2, len(tcp.recv(2, socket.MSG_WAITALL)))
        time.sleep(0.2)                             # it waits for a completion by now, or will
        self.assertIsNone(server.poll())
        return server, tcp

    def dial(self, port, server):
        end = time.monotonic() + 30
        while True:
            tcp = socket.socket()
            if tcp.connect_ex(("127.0.0.1", int(port))) == 0:
                self.addCleanup(tcp.close)
                return tcp
            tcp.close()
            self.assertIsNone(server.poll())
            self.assertLess(time.monotonic(), end)

    @staticmethod
    def end(proc):
        if proc.poll() is None:
            proc.kill()
        proc.communicate()

    def test_the_dataplane_ends(self):
        """Whoever spins or sleeps for it notices, and says so."""
        for name in ("pingpong", "write_imm", "kv_get"):
            for how in ("kill", "terminate"):
                with self.subTest(name=name, how=how), tempfile.TemporaryDirectory() as where:
                    dataplane, env = self.another(where)
                    server, tcp = self.waits(name, env)
                    began = time.monotonic()
                    getattr(dataplane, how)()
                    dataplane.wait(30)
                    if name == "kv_get":            # waits for its peer alone
                        tcp.close()
                    _, text = server.communicate(timeout=30)
                    self.assertLess(time.monotonic() - began, 15)
                    self.assertEqual(1, server.returncode, text)
                    if name != "kv_get":            # it takes its leave with WR_FLUSH_ERR, or not
                        self.assertRegex(text, "dataplane (is )?gone")

    def another(self, where):
        """A dataplane to be killed, and the environment that leads to it."""
        path, log = os.path.join(where, "config.json"), os.path.join(where, "log")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(runner.config(where, 1, 1, {}), f)
        with open(log, "wb") as out:
            proc = subprocess.Popen([os.environ["ROCELANE"], "--config", path], stdout=out,
                                    stderr=subprocess.STDOUT,
                                    env=dict(os.environ, XDG_RUNTIME_DIR=where))
        self.addCleanup(self.end, proc)
        at = os.path.join(where, "sock")
        runner.wait_ready(proc, at, log)
        return proc, dict(self.env, ROCELANE_SOCKET=at)

    def test_the_peer_ends(self):
        for name in ("pingpong", "write_imm", "kv_get", "datagram"):
            with self.subTest(name):
                server, tcp = self.waits(name, self.env)
                tcp.close()
                _, text = server.communicate(timeout=30)
                self.assertEqual((1, "the other side is gone\n"), (server.returncode, text))

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
