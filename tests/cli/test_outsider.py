# SPDX-License-Identifier: BSD-3-Clause
"""What happens to whoever does something else than the README says: signals, sockets, files."""
import array
import json
import os
import signal
import socket
import stat
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402
from daemon import CTL, ROCELANE, VERSION, WAIT_S, Case, jsonrpc, run  # noqa: E402

SCRIPTS = os.path.join(os.environ["ROCELANE_ROOT"], "scripts")


# The script waits for a worker, and for requests under way, 60 s each, and 30 s for the dataplane's
# end; then it says what it has waited for.
LOOPBACK_S = 3 * 60 + 30 + WAIT_S

# FILE FUNCTION EVENT SCRIPT ARGUMENTS: the script, which gets SIGTERM there, once.
STOPS_ITSELF = """
import os, runpy, signal, sys
file, function, event = sys.argv[1:4]
sys.argv = sys.argv[4:]
sys.path.insert(0, os.path.dirname(sys.argv[0]))
def trace(frame, what, _):
    code = frame.f_code
    if os.path.basename(code.co_filename) != file or code.co_name != function:
        return trace
    if what == event and signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
        sys.settrace(None)
        frame.f_trace = None
        print("stopped", flush=True)
        os.kill(os.getpid(), signal.SIGTERM)
        return None
    return trace
sys.settrace(trace)
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Outsider(Case):

    # -- signals and descriptors --

    def test_a_signal_at_any_moment_of_the_start(self):
        """EAL alone may take its time: there is nothing to take down yet."""
        path = self.config()
        for n in range(12):
            p = subprocess.Popen([ROCELANE, "--config", path], stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
            self.addCleanup(self.end, p)
            time.sleep(n * 0.05)
            p.send_signal((signal.SIGINT, signal.SIGTERM)[n % 2])
            code = p.wait(WAIT_S)
            self.assertIn(code, (0, -signal.SIGINT, -signal.SIGTERM))
            self.assertFalse(os.path.exists(self.socket))

    def test_a_signal_while_eal_starts(self):
        path = self.config(eal=["-m", "900000"])     # more than EAL can have soon
        p = subprocess.Popen([ROCELANE, "--config", path], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        time.sleep(1)
        if p.poll() is None:
            p.send_signal(signal.SIGINT)
            self.assertEqual(0, p.wait(WAIT_S))

    def test_a_terminal_that_goes_away(self):
        """SIGHUP is a clean stop; who was told to live without a terminal does."""
        # These tests may run under nohup themselves.
        self.addCleanup(signal.signal, signal.SIGHUP,
                        signal.signal(signal.SIGHUP, signal.SIG_DFL))
        p = self.start()
        p.send_signal(signal.SIGHUP)
        self.assertEqual(0, p.wait(WAIT_S), self.said())
        self.assertIn("stopping", self.said())
        self.assertFalse(os.path.exists(self.socket))
        p = self.start(wrapper=["nohup"])
        p.send_signal(signal.SIGHUP)
        for _ in range(20):
            self.assertTrue(self.answers())
        self.stops(p)

    def test_closed_descriptors(self):
        """Nothing else may come to stand where standard output was."""
        p = self.start()
        code, out = run("sh", "-c", '"$0" -s "$1" metrics >&-', CTL, self.socket)
        self.assertEqual((1, "rocelanectl: cannot write: Bad file descriptor\n"), (code, out))
        code, out = run("sh", "-c", '"$0" -s "$1" metrics >/dev/full', CTL, self.socket)
        self.assertEqual((1, "rocelanectl: cannot write: No space left on device\n"), (code, out))
        for option in ("--help", "--version"):
            code, out = run("sh", "-c", '"$0" "$1" >/dev/full', ROCELANE, option)
            self.assertEqual((1, "rocelane: cannot write: No space left on device\n"), (code, out))
        self.stops(p)
        code, out = run("sh", "-c", '"$0" --config "$1" --duration 0.2 <&- >&- 2>&-', ROCELANE,
                        self.config())
        self.assertEqual((0, ""), (code, out))

    def test_nobody_reads_what_it_says(self):
        """A full pipe behind standard output and error: it serves, counts the lines, and ends."""
        ends = os.pipe()
        p = subprocess.Popen([ROCELANE, "--config", self.config()], stdout=ends[1],
                             stderr=ends[1])
        self.addCleanup(self.end, p)
        self.until(self.answers)
        os.set_blocking(ends[0], False)
        full = os.open("/proc/self/fd/%d" % ends[1], os.O_WRONLY | os.O_NONBLOCK)
        os.close(ends[1])
        with self.assertRaises(BlockingIOError):
            while os.write(full, bytes(4096)):
                pass
        for _ in range(3):      # each of them is told in the log
            with jsonrpc.Connection(self.socket) as c:
                c.call("client_open", abi=1, name="who")
                self.assertIn("version", self.ctl("version"))
        os.read(ends[0], 1 << 20)
        with jsonrpc.Connection(self.socket) as c:
            c.call("client_open", abi=1, name="who")
        said = os.read(ends[0], 1 << 20).decode()
        self.assertRegex(said, r"warning: \d+ lines of the log are lost: nobody read them\n")
        with self.assertRaises(BlockingIOError):
            while os.write(full, bytes(4096)):
                pass
        p.terminate()
        self.assertEqual(0, p.wait(WAIT_S))
        os.close(full)
        os.close(ends[0])

    # -- files --

    def test_fifos(self):
        fifo = self.at("fifo")
        os.mkfifo(fifo)
        p = subprocess.Popen([ROCELANE, "--config", fifo, "--check"], stderr=subprocess.PIPE,
                             text=True)
        self.addCleanup(p.stderr.close)
        self.addCleanup(self.end, p)
        self.assertIn("waiting for a configuration", p.stderr.readline())
        with open(self.config(), encoding="utf-8") as f, open(fifo, "w", encoding="utf-8") as to:
            to.write(f.read())
        self.assertEqual(0, p.wait(WAIT_S))
        # The log of drops must not wait for a reader, neither now nor later.
        code, out = run(ROCELANE, "--config", self.config(error_buffer={"pcapng": fifo}))
        self.assertEqual(1, code)
        self.assertIn("start the reader first", out)
        reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        self.addCleanup(os.close, reader)
        p = self.start(error_buffer={"pcapng": fifo})
        self.assertEqual(b"\x0a\x0d\x0d\x0a", os.read(reader, 4))
        self.stops(p)

    def test_impair_says_why_a_file_cannot_be_read(self):
        p = self.start()
        for path, why in ((self.dir, "Is a directory"), ("/nonexistent", "No such file")):
            code, out = run(CTL, "-s", self.socket, "impair", "set", "pa", path)
            self.assertEqual(2, code)
            self.assertIn(why, out)
        self.stops(p)

    def test_a_capture_with_a_frame_above_64_kib(self):
        """net_pcap says of it that it is longer than what it hands over."""
        capture = self.at("big.pcap")
        with open(capture, "wb") as f:
            f.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 262144, 1))
            for n in (60, 66000, 70000, 67584, 131072):
                f.write(struct.pack("<IIII", 0, 0, n, n) + bytes(n))
        code, out = run(ROCELANE, "--duration", "0.5", "--config", self.config(
            eal=["--vdev=net_pcap0,rx_pcap=%s,tx_pcap=%s" % (capture, self.at("out.pcap"))],
            ports=[{"name": "p0", "device": "net_pcap0", "mac": "02:00:00:00:00:01",
                    "ipv4": "10.77.0.1", "mtu": 1500}]))
        self.assertEqual(0, code, out)
        self.assertRegex(out, r"rx_packets +5\n")

    def test_what_cannot_be_made_is_told_with_its_place(self):
        more = {"pds": ["pd0"], "mrs": [
            {"name": "mr%d" % i, "pd": "pd0", "length": length, "addr": "0x10000",
             "rkey": hex(0x1001 + (i << 8)), "access": ["LOCAL_WRITE"]}
            for i, length in enumerate((4096, "900G"))]}
        code, out = run(ROCELANE, "--config", self.config(**more))
        self.assertEqual(1, code)
        self.assertRegex(out, r"/mrs/1: .*more memory than there is \(.*ulimit")
        # A shell's soft limit on descriptors is not ours.
        more["mrs"] = [dict(more["mrs"][0], name="m%d" % i, rkey=hex(0x1001 + (i << 8)))
                       for i in range(100)]
        code, out = run("bash", "-c", 'ulimit -Sn 64; exec "$0" --config "$1" --duration 0.2',
                        ROCELANE, self.config(**more))
        self.assertEqual(0, code, out)

    # -- connections --

    def test_more_connections_than_there_are_places(self):
        """Those turned away are told why, a few times in the log; the others go on."""
        p = self.start()
        files = self.open_files(p)
        held = []

        def hold():
            """All places; that of who looked whether it has started may not be free at first."""
            while len(held) < 128:
                s = self.dial()
                try:
                    s.sendall(VERSION)
                    if b"result" not in s.recv(4096):
                        return False
                except (BrokenPipeError, ConnectionResetError):
                    return False
                held.append(s)
            return True
        self.until(hold)
        for _ in range(20):
            reply = json.loads(self.dial().makefile("rb").readline())
            self.assertIsNone(reply["id"])
            self.assertIn("128 connections already", reply["error"]["message"])
        code, out = run(CTL, "-s", self.socket, "version")
        self.assertEqual(1, code)
        self.assertRegex(out, "128 connections already|closed the connection")
        self.assertIn(self.said().count("connections already"), range(1, 6))
        for s in held:
            s.close()
        self.until(lambda: self.open_files(p) <= files)
        self.assertEqual(0, run(CTL, "-s", self.socket, "version")[0])
        self.stops(p)

    def test_a_dataplane_that_does_not_answer(self):
        p = self.start()
        p.send_signal(signal.SIGSTOP)
        try:
            began = time.monotonic()
            code, out = run(CTL, "-s", self.socket, "-t", "0.5", "version")
            self.assertEqual(1, code)
            self.assertIn("in time", out)
            waiting = []
            while len(waiting) < 200:               # until its queue is full
                s = socket.socket(socket.AF_UNIX)
                self.addCleanup(s.close)
                s.setblocking(False)
                waiting.append(s)
                if s.connect_ex(self.socket) != 0:
                    break
            code, out = run(CTL, "-s", self.socket, "-t", "0.5", "version")
            self.assertEqual(1, code)
            self.assertIn("too many others", out)
            self.assertLess(time.monotonic() - began, 30)
        finally:
            p.send_signal(signal.SIGCONT)
        for s in waiting:
            s.close()
        self.assertEqual(0, run(CTL, "-s", self.socket, "version")[0])
        self.stops(p)

    def test_rubbish_and_who_never_reads(self):
        p = self.start()
        files = self.open_files(p)
        for text in (b"\0\xff rubbish\n", b"[" * 100000 + b"\n", b'{"a":' * 5000 + b"\n", b"[]\n",
                     b"[" + b",".join([VERSION[:-1]] * 1000) + b"]\n", b"GET / HTTP/1.1\r\n\r\n",
                     b'{"jsonrpc":"2.0","id":{},"method":"version"}\n', b"x" * (2 << 20) + b"\n"):
            s = self.dial()
            try:
                s.sendall(text)
            except OSError:                         # cut off in the middle of two MiB
                pass
            self.assertIn(b"error", s.recv(65536), text[:40])
        for _ in range(30):
            s = self.dial()
            s.setblocking(False)
            try:
                while True:
                    s.send(b'{"jsonrpc":"2.0","id":1,"method":"metrics"}\n' * 50)
            except OSError:
                pass
        s = self.dial()
        try:
            for _ in range(50):
                s.sendmsg([b"\n"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS,
                                     array.array("i", [0, 1, 2] * 10))])
        except OSError:
            pass
        for _ in range(100):
            s = self.dial()
            s.sendall(VERSION[:20])
            s.close()
        self.doCleanupsOfSockets()
        self.until(lambda: self.open_files(p) <= files)
        self.assertEqual(0, run(CTL, "-s", self.socket, "version")[0])
        self.stops(p)

    def doCleanupsOfSockets(self):
        """Close what dial() opened, now."""
        for function, args, _ in self._cleanups:
            if isinstance(getattr(function, "__self__", None), socket.socket):
                function(*args)

    # -- scripts --

    def test_drops_are_for_their_owner_alone(self):
        """They hold other people's data: no link is followed, and nobody else reads along."""
        target, path = self.at("target"), self.at("drops.pcapng")
        with open(target, "w", encoding="utf-8") as f:
            f.write("mine")
        os.symlink(target, path)
        code, out = run(ROCELANE, "--config", self.config(error_buffer={"pcapng": path}))
        self.assertEqual(1, code, out)
        self.assertIn("drops.pcapng: a symbolic link", out)
        with open(target, encoding="utf-8") as f:
            self.assertEqual("mine", f.read())
        os.unlink(path)
        os.umask(os.umask(0) & ~0o077)
        code, out = run(ROCELANE, "--config", self.config(error_buffer={"pcapng": path}),
                        "--duration", "0.1")
        self.assertEqual(0, code, out)
        self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
        if os.geteuid() == 0:
            os.chown(path, 65534, 65534)
            code, out = run(ROCELANE, "--config", self.config(error_buffer={"pcapng": path}))
            self.assertEqual(1, code, out)
            self.assertIn("drops.pcapng: it belongs to another user", out)

    def test_head_has_read_enough(self):
        code, out = run("bash", "-o", "pipefail", "-c",
                        '/usr/bin/python3 "$0/dev/loopback.py" --rocelane "$1" --duration 2 '
                        "| head -1", SCRIPTS, ROCELANE)
        self.assertEqual((128 + signal.SIGPIPE, 1), (code, out.count("\n")), out)
        self.assertNotIn("Traceback", out)

    def test_a_stop_while_the_loopback_starts(self):
        """Nothing is left behind: the dataplane is in a session of its own."""
        for wait in (0.1, 0.3, 0.6, 1.5):
            p = self.loopback()
            time.sleep(wait)
            p.terminate()
            out, _ = p.communicate(timeout=LOOPBACK_S)  # its end closes the pipe
            self.assertIn(p.returncode, (0, 128 + signal.SIGTERM, -signal.SIGTERM), out)
            self.assertNotIn("Traceback", out)
            self.until(lambda: not self.others(self.dir))

    def loopback(self, *before):
        """scripts/dev/loopback.py until it is stopped, by what stands before it."""
        p = subprocess.Popen(["/usr/bin/python3", *before,
                              os.path.join(SCRIPTS, "dev/loopback.py"), "--rocelane", ROCELANE,
                              "--duration", "0"], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True,
                             env=dict(os.environ, TMPDIR=self.dir))
        self.addCleanup(self.end, p)
        return p

    def test_a_stop_at_each_step_of_the_loopbacks_start(self):
        """The dataplane runs, and nobody has its number yet; that is where a stop left it."""
        for file, function, event in (("tempfile.py", "mkdtemp", "return"),
                                      ("subprocess.py", "_execute_child", "return"),
                                      ("subprocess.py", "__init__", "return"),
                                      ("loopback.py", "connect", "call"),
                                      ("loopback.py", "connect", "return"),
                                      ("loopback.py", "__init__", "return"),
                                      ("loopback.py", "table", "call"),
                                      ("loopback.py", "quiesce", "call")):
            with self.subTest(file=file, function=function, event=event):
                self.stops_itself(file, function, event)

    def stops_itself(self, file, function, event):
        p = self.loopback("-B", "-c", STOPS_ITSELF, file, function, event)
        if function == "quiesce":
            p.stdout.readline()
            p.terminate()
        out, _ = p.communicate(timeout=LOOPBACK_S)
        self.assertIn("stopped", out)
        self.assertIn(p.returncode, (0, 128 + signal.SIGTERM), out)
        self.assertNotIn("Traceback", out)
        self.assertEqual([], self.others(self.dir), (file, function, event))
        self.assertEqual([], [f for f in os.listdir(self.dir) if "loopback" in f])

    def test_a_second_stop_of_the_loopback_waits_for_nothing(self):
        """The first one waits for a dataplane that does not answer, and does not end."""
        p = self.loopback()
        p.stdout.readline()
        other, = [int(pid) for pid in self.others(self.dir) if int(pid) != p.pid]
        self.addCleanup(self.is_there, other, signal.SIGKILL)
        os.kill(other, signal.SIGSTOP)
        p.terminate()
        self.until(lambda: "0" * 16 == self.pending(p.pid))
        self.until(lambda: self.stopped(p))
        out, _ = p.communicate(timeout=WAIT_S / 3)
        self.assertEqual(128 + signal.SIGTERM, p.returncode, out)
        self.assertNotIn("Traceback", out)
        self.until(lambda: not self.others(self.dir))

    @staticmethod
    def stopped(p):
        """Stop it. Two signals are one to a program that has not come to the first one yet."""
        p.terminate()
        try:
            p.wait(0.5)
        except subprocess.TimeoutExpired:
            return False
        return True

    @staticmethod
    def is_there(pid, sig=0):
        try:
            os.kill(pid, sig)
        except ProcessLookupError:
            return False
        return True

    @staticmethod
    def pending(pid):
        """Signals that have not come to the process yet, as /proc has them."""
        with open("/proc/%d/status" % pid, encoding="ascii") as f:
            return next(line.split()[1] for line in f if line.startswith("ShdPnd:"))

    @staticmethod
    def others(folder):
        """Processes whose command line names something in `folder`."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % pid, "rb") as f:
                    if folder.encode() in f.read():
                        found.append(pid)
            except OSError:
                pass
        return found

    def test_a_stop_while_tap_starts(self):
        """Just when the dataplane has been started. Here a shell stands for it."""
        steps, fake, log = self.at("steps"), self.at("fake"), self.at("log")
        with open(steps, "w", encoding="utf-8") as f:
            f.write("""trap 'case $BASH_COMMAND in "pid=\\$!") kill -TERM $$ ;; esac' DEBUG\n""")
        with open(fake, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\n[ "$3" = --check ] || exec sleep 3600\n')
        os.chmod(fake, 0o700)
        config = self.config(ports=[{"name": "p0", "device": "net_tap0", "ipv4": "10.77.0.1",
                                     "mac": "02:00:00:00:00:01"}],
                             eal=["--vdev=net_tap0,iface=rltest"])
        with open(log, "w", encoding="utf-8") as out:
            p = subprocess.Popen([os.path.join(SCRIPTS, "dev/tap"), fake, fake, config],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True, env=dict(os.environ, BASH_ENV=steps))
        self.addCleanup(self.is_there, -p.pid, signal.SIGKILL)
        self.assertEqual(128 + signal.SIGTERM, p.wait(WAIT_S), self.said())
        self.until(lambda: not self.is_there(-p.pid))   # nor anybody of its group

    def test_tap_where_the_interface_cannot_be_set(self):
        """Its dataplane ends with it. Here a shell stands for that, and answers at once."""
        fake, log = self.at("fake"), self.at("log")
        with open(fake, "w", encoding="utf-8") as f:
            f.write('#!/bin/sh\ncase $1$3 in -sversion | --config--check) exit ;; esac\n'
                    'exec sleep 3600\n')
        os.chmod(fake, 0o700)
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind(self.socket)
        config = self.config(ports=[{"name": "p0", "device": "net_tap0", "ipv4": "10.77.0.1",
                                     "mac": "02:00:00:00:00:01"}],
                             eal=["--vdev=net_tap0,iface=rl-no-such-one"])
        with open(log, "w", encoding="utf-8") as out:
            p = subprocess.Popen([os.path.join(SCRIPTS, "dev/tap"), fake, fake, config],
                                 stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                 start_new_session=True)
        self.addCleanup(self.is_there, -p.pid, signal.SIGKILL)
        self.assertNotEqual(0, p.wait(WAIT_S), self.said())
        self.until(lambda: not self.is_there(-p.pid))

    def test_tap_with_a_configuration_that_is_none(self):
        for port in ({"ipv6": "fd99::1"}, {"ipv4": "10.77.0.1", "prefix": 32}):
            path = self.config(ports=[dict(port, name="p0", device="net_tap0")],
                               eal=["--vdev=net_tap0,iface=rltest"])
            code, out = run(os.path.join(SCRIPTS, "dev/tap"), ROCELANE, CTL, path)
            self.assertEqual(2, code, out)
            self.assertIn("has no ipv4 with an address", out)
        for path in ("/nonexistent", self.dir):
            code, out = run(os.path.join(SCRIPTS, "dev/tap"), ROCELANE, CTL, path)
            self.assertEqual(2, code, out)
            self.assertNotIn("Traceback", out)


tap.main()
