# SPDX-License-Identifier: BSD-3-Clause
"""How scripts end: what they built for cannot be built, somebody stops them, words make no sense.

Each runs in a tree of its own, with compilers and programs that do no more than a test needs.
"""
import contextlib
import io
import json
import os
import runpy
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import types
import unittest
import unittest.mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

SCRIPTS = os.environ["SCRIPTS"]
WAIT_S = 60     # on a busy machine

# ninja -C FOLDER TARGET...: each is a program that ends at once.
NINJA = r"""folder=$2
shift 2
for target; do
    mkdir -p "$folder/$(dirname "$target")"
    printf '#!/bin/sh\nexit 0\n' >"$folder/$target"
    chmod +x "$folder/$target"
done
"""


class Tree(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        self.dir = holder.name
        self.root = os.path.join(self.dir, "a tree")
        os.makedirs(os.path.join(self.dir, "bin"))
        os.makedirs(os.path.join(self.dir, "tmp"))
        self.env = {**os.environ, "TMPDIR": os.path.join(self.dir, "tmp"), "HERE": self.dir,
                    "PATH": os.path.join(self.dir, "bin") + ":" + os.environ["PATH"],
                    "BENCH_BUILD": os.path.join(self.root, "build", "bench")}

    def copy(self, *paths):
        for path in paths:
            to = os.path.join(self.root, "scripts", path)
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(os.path.join(SCRIPTS, path), to)

    def program(self, path, text):
        path = os.path.join(self.dir, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write("#!/bin/bash\n" + text)
        os.chmod(path, 0o755)

    def start(self, *words, **kwargs):
        """In a group of its own, as a shell starts what is at a terminal."""
        p = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True, start_new_session=True,
                             env=self.env, **kwargs)
        self.addCleanup(self.end, p)
        return p

    @staticmethod
    def end(p):
        try:
            os.killpg(p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        p.communicate()

    def run_script(self, name, *words, cwd=None):
        p = self.start(os.path.join(self.root, "scripts", name), *words, cwd=cwd)
        out, err = p.communicate(timeout=WAIT_S)
        return p.returncode, out, err

    def lines(self, name):
        try:
            with open(os.path.join(self.dir, name), encoding="utf-8") as f:
                return f.read().split("\n")[:-1]
        except FileNotFoundError:
            return []

    def wait_for(self, what, ready):
        end = time.monotonic() + WAIT_S
        while not ready():
            self.assertLess(time.monotonic(), end, what)
            time.sleep(0.01)

    @staticmethod
    def is_there(pid):
        """A zombie is not."""
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as f:
                return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
        except (FileNotFoundError, ProcessLookupError):
            return False

    def left(self):
        return [os.path.join(self.env["TMPDIR"], name) for name in os.listdir(self.env["TMPDIR"])]


class Benches(Tree):
    def test_nothing_stays_in_tmp(self):
        self.program("bin/meson", "exit 0\n")
        self.program("bin/ninja", NINJA)
        names = [n for n in sorted(os.listdir(os.path.join(SCRIPTS, "bench")))
                 if "mktemp" in open(os.path.join(SCRIPTS, "bench", n), encoding="utf-8").read()]
        self.assertIn("pipeline", names)
        self.copy(*("bench/" + name for name in names))
        for name in names:
            self.run_script("bench/" + name, "--no-such-option")
            with self.subTest(name=name):
                self.assertEqual([], [os.remove(path) or path for path in self.left()])

    def test_words_that_make_no_sense(self):
        """They are looked at before anything is built."""
        self.program("bin/ninja", 'echo >>"$HERE/built"\n')
        for words in (["--rate", "5g"], ["--rate", "-1"], ["--rate", "0"], ["--rate", ""],
                      ["--flows", "0"], ["--flows", "2,x"], ["--algo", "fast"], ["--knob", "cc"],
                      ["--knob", "=1"], ["--seconds", "0"], ["--seconds", "nan"]):
            with self.subTest(words=words):
                p = self.start(os.path.join(SCRIPTS, "bench/shared"), *words)
                out, err = p.communicate(timeout=WAIT_S)
                self.assertEqual((2, ""), (p.returncode, out))
                self.assertIn(words[0], err.splitlines()[-1])
        self.assertEqual([], self.lines("built"))


# As ninja: what there is, and what it makes. A fuzzer says that it runs, and runs for long.
FUZZ_NINJA = r"""[ "$3" != -t ] || printf 'tests/fuzz/fuzz_%s: phony\n' a b c
case $3 in tests/*) ;; *) exit 0 ;; esac
folder=$2
shift 2
for target; do
    mkdir -p "$folder/$(dirname "$target")"
    {
        echo '#!/bin/bash'
        case $target in
        *_replay) ;;
        *) echo 'echo $$ $(basename "$0") >>"$HERE/ran"; exec sleep 1000' ;;
        esac
    } >"$folder/$target"
    chmod +x "$folder/$target"
done
"""


class Fuzz(Tree):
    def setUp(self):
        super().setUp()
        self.copy("fuzz", "dev/piped.py")
        self.program("bin/meson", "exit 0\n")
        self.program("bin/ninja", FUZZ_NINJA)

    def test_a_stop_is_one_of_all_targets(self):
        """By Ctrl-C, of which the fuzzers hear, too; by a signal to the script alone."""
        for send, sig in ((os.killpg, signal.SIGINT), (os.kill, signal.SIGINT),
                          (os.kill, signal.SIGTERM), (os.kill, signal.SIGHUP)):
            with self.subTest(send=send.__name__, sig=sig):
                p = self.start(os.path.join(self.root, "scripts/fuzz"), "--seconds", "900")
                self.wait_for("the first fuzzer", lambda: self.lines("ran"))
                send(p.pid, sig)
                out, err = p.communicate(timeout=WAIT_S)
                ran = [line.split() for line in self.lines("ran")]
                self.assertEqual(["fuzz_a"], [name for _, name in ran])
                self.assertFalse(self.is_there(ran[0][0]))
                self.assertIn(p.returncode, (128 + sig, -sig))
                self.assertNotIn("Traceback", err)
                self.assertRegex(out, r"(?m)^a +0 ")
                os.remove(os.path.join(self.dir, "ran"))

    def test_numbers_that_are_none(self):
        for words in (["--jobs", "0"], ["--seconds", "0"], ["--seconds", "-1"], ["--jobs", "x"]):
            with self.subTest(words=words):
                code, out, err = self.run_script("fuzz", *words)
                self.assertEqual((2, ""), (code, out))
                self.assertNotIn("Traceback", err)
                self.assertIn(words[0], err.splitlines()[-1])
        self.assertEqual([], self.lines("ran"))


class Run(Tree):
    """scripts/run where nothing can be built, and from another folder."""

    def setUp(self):
        super().setUp()
        self.copy("run")
        self.program("a tree/scripts/setup", "exit 0\n")
        self.program("a tree/scripts/dev/tap", 'printf "%s\\n" "$@"\n')
        self.program("bin/id", "echo 0\n")
        self.program("bin/meson", "mkdir -p $2; touch $2/build.ninja\n")
        self.program("bin/ninja", "echo '[1/2] Compiling'; echo '[2/2] Linking target x'\n")

    def test_says_why_it_cannot_be_built(self):
        self.program("bin/meson", "echo 'meson.build:7: ERROR: \"x\" not found'; exit 1\n")
        code, out, err = self.run_script("run", "--build")
        self.assertNotEqual(0, code)
        self.assertIn('ERROR: "x" not found', out + err)
        self.program("bin/meson", "mkdir -p $2; touch $2/build.ninja\n")
        self.program("bin/ninja", "echo 'a.c:1: error: no'; echo 'ninja: build stopped.'; exit 1\n")
        code, out, err = self.run_script("run", "--build")
        self.assertNotEqual(0, code)
        self.assertIn("a.c:1: error: no", out + err)

    def test_says_little_else(self):
        code, out, err = self.run_script("run", "--build")
        self.assertEqual((0, ""), (code, err))
        self.assertEqual(["[2/2] Linking target x"], out.splitlines()[:-1])

    def test_a_file_is_where_the_caller_is(self):
        for given, there in (("mine.json", os.path.join(self.dir, "mine.json")),
                             ("/x/mine.json", "/x/mine.json")):
            code, out, err = self.run_script("run", "--tap", given, cwd=self.dir)
            self.assertEqual((0, ""), (code, err))
            self.assertEqual(there, out.splitlines()[-1])
        self.program("a tree/scripts/dev/replay.py", "import sys\nprint(sys.argv[-1])\n")
        for given, there in (("mixed", "mixed"), ("x/mixed.pcap", self.dir + "/x/mixed.pcap")):
            _, out, _ = self.run_script("run", "--replay", given, cwd=self.dir)
            self.assertEqual(there, out.splitlines()[-1])
        _, out, _ = self.run_script("run", "--tap", cwd=self.dir)
        self.assertEqual("config/examples/tap.json", out.splitlines()[-1])


class Tap(Tree):
    def test_a_start_may_take_its_time(self):
        """Of 300 looks at the dataplane the last one finds it; then the interface is set up."""
        self.copy("dev/tap")
        conf = os.path.join(self.dir, "tap.json")
        with open(conf, "w", encoding="utf-8") as f:
            json.dump({"eal": ["--vdev=net_tap0,iface=dtap9"], "ports": [{"ipv4": "10.77.0.1"}],
                       "control": {"socket": os.path.join(self.dir, "sock")}}, f)
        self.program("bin/rocelane", """[ $# -eq 3 ] || exec /usr/bin/python3 -c '
import socket, sys, time
socket.socket(socket.AF_UNIX).bind(sys.argv[1])
time.sleep(1000)' "$HERE/sock"
""")
        self.program("bin/sleep", 'echo >>"$HERE/looks"; exec /usr/bin/sleep 0.001\n')
        self.program("bin/ctl", '[ "$(wc -l <"$HERE/looks")" -ge 300 ] && touch "$HERE/ready"\n')
        self.program("bin/ip", 'echo "$(ls "$HERE/ready") $*" >>"$HERE/asked"\n')
        p = self.start(os.path.join(self.root, "scripts/dev/tap"),
                       os.path.join(self.dir, "bin/rocelane"), os.path.join(self.dir, "bin/ctl"),
                       conf)
        self.wait_for("the interface", lambda: len(self.lines("asked")) == 2)
        os.killpg(p.pid, signal.SIGINT)
        p.communicate(timeout=WAIT_S)
        ready = os.path.join(self.dir, "ready")
        self.assertEqual([f"{ready} link set dtap9 up",
                          f"{ready} addr replace 10.77.0.2/24 dev dtap9"], self.lines("asked"))


class Replay(Tree):
    def replay(self, capture):
        """With a dataplane that ends with 7 at once."""
        self.program("bin/rocelane", "exit 7\n")
        p = self.start("/usr/bin/python3", os.path.join(SCRIPTS, "dev/replay.py"), "--rocelane",
                       os.path.join(self.dir, "bin/rocelane"), capture)
        return p.communicate(timeout=WAIT_S)[1], p.returncode

    def test_a_capture_of_ones_own_is_not_taken_for_ours(self):
        ours = os.path.join(os.path.dirname(SCRIPTS), "tests/vectors/captures/mixed.pcap")
        own = os.path.join(self.dir, "mixed.pcap")
        shutil.copy(ours, own)
        for capture in ("mixed", "mixed.pcap", ours):
            self.assertEqual(("", 7), self.replay(capture))
        for capture in (own, os.path.join(self.dir, "none.pcap")):
            err, code = self.replay(capture)
            self.assertEqual(1, code)
            self.assertIn(f"{capture} is none of the captures here", err)


class Layer:
    """Of a frame of Scapy's: all that the script does with it but for what is read of an answer."""

    def __init__(self, *words, **fields):
        del words
        self.__dict__.update(fields)

    def __truediv__(self, other):
        return self


class Send(Tree):
    """scripts/dev/send with a Scapy that takes its time to listen, or cannot."""

    def send(self, listens):
        did, sent = [], threading.Event()

        class Sniffer:
            results = ()

            def __init__(self, started_callback=lambda: None, **kwargs):
                del kwargs
                self.started = started_callback
                self.thread = threading.Thread(target=self.run)
                self.start, self.join = self.thread.start, self.thread.join

            def run(self):
                self.running = True  # which is not that it listens
                sent.wait(0.2)  # whoever does not wait for us sends now
                if listens:
                    did.append("listens")
                    self.started()

        def sendp(*words, **kwargs):
            del words, kwargs
            did.append("sent")
            sent.set()
        names = dict.fromkeys(("Ether", "IP", "UDP", "Raw"), Layer)
        modules = {"scapy": types.ModuleType("scapy"), "scapy.all": types.SimpleNamespace(
            AsyncSniffer=Sniffer, sendp=sendp, get_if_list=lambda: ["x0"],
            get_if_addr=lambda i: "10.77.0.2", get_if_hwaddr=lambda i: "02:00:00:00:00:02",
            getmacbyip=lambda ip: "02:00:00:00:00:01", **names),
            "scapy.contrib": types.ModuleType("scapy.contrib"),
            "scapy.contrib.roce": types.SimpleNamespace(AETH=Layer, BTH=Layer)}
        with unittest.mock.patch.dict(sys.modules, modules), \
                unittest.mock.patch.object(os, "geteuid", lambda: 0), \
                unittest.mock.patch.object(sys, "argv", ["send", "--iface", "x0", "--psn", "7"]), \
                contextlib.redirect_stdout(io.StringIO()), self.assertRaises(SystemExit) as end:
            runpy.run_path(os.path.join(SCRIPTS, "dev/send"), run_name="__main__")
        return did, str(end.exception.code)

    def test_an_answer_is_heard_however_fast_it_comes(self):
        did, said = self.send(True)
        self.assertEqual(["listens", "sent"], did)
        self.assertIn("no answer", said)

    def test_nothing_is_sent_that_nobody_listens_for(self):
        did, said = self.send(False)
        self.assertEqual([], did)
        self.assertIn("cannot listen at x0", said)


class Test(Tree):
    """scripts/test while it compiles, and its checks run beside the compiler."""

    def test_a_stop_ends_all(self):
        """By Ctrl-C, and by a signal to the script alone."""
        self.copy("test")
        self.program("a tree/scripts/setup", "exit 0\n")
        self.program("a tree/scripts/check/all", 'sleep 1000 & echo $! $$ >>"$HERE/ran"; wait\n')
        self.program("bin/meson", "mkdir -p $2; touch $2/build.ninja\n")
        self.program("bin/ninja", 'echo $$ >>"$HERE/built"; exec sleep 1000\n')
        for send, sig in ((os.killpg, signal.SIGINT), (os.killpg, signal.SIGTERM),
                          (os.kill, signal.SIGINT), (os.kill, signal.SIGTERM),
                          (os.kill, signal.SIGHUP)):
            with self.subTest(send=send.__name__, sig=sig):
                p = self.start(os.path.join(self.root, "scripts/test"), "--no-interop")
                self.wait_for("checks and compiler", lambda: self.lines("ran") and
                              self.lines("built"))
                pids = self.lines("ran")[0].split() + self.lines("built")
                send(p.pid, sig)
                p.communicate(timeout=WAIT_S)
                self.assertIn(p.returncode, (128 + sig, -sig))
                self.wait_for("their end", lambda: not any(map(self.is_there, pids)))
                for name in ("ran", "built"):
                    os.remove(os.path.join(self.dir, name))


class Pktgen(Tree):
    """scripts/pktgen with a dataplane that says nothing, and a pktgen that is never asked."""

    def setUp(self):
        super().setUp()
        self.program("bin/script", "exit 0\n")
        self.program("bin/pktgen", "exit 0\n")
        self.program("bin/rocelane", 'echo $$ >>"$HERE/ran"; exec sleep 1000\n')
        self.env.update(PKTGEN=os.path.join(self.dir, "bin/pktgen"),
                        ROCELANE=os.path.join(self.dir, "bin/rocelane"))

    def test_a_stop_leaves_nothing(self):
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(sig=sig):
                p = self.start(os.path.join(SCRIPTS, "pktgen"))
                self.wait_for("the dataplane", lambda: self.lines("ran"))
                os.kill(p.pid, sig)
                _, err = p.communicate(timeout=WAIT_S)
                self.assertEqual(128 + sig, p.returncode)
                self.assertFalse(self.is_there(self.lines("ran")[0]))
                self.assertEqual([], self.left())
                self.assertEqual("", err)
            os.remove(os.path.join(self.dir, "ran"))

    def test_a_stop_while_it_starts(self):
        """The process is there, and Popen() has not returned: nobody knows of it yet."""
        module = runpy.run_path(os.path.join(SCRIPTS, "pktgen"), run_name="pktgen")
        started = []

        def popen(words):
            started.append(subprocess.Popen(words, start_new_session=True))
            self.addCleanup(self.end, started[-1])
            os.kill(os.getpid(), sig)
            return started[-1]
        module["Stop"].start.__globals__["subprocess"] = types.SimpleNamespace(
            Popen=popen, TimeoutExpired=subprocess.TimeoutExpired)
        for sig in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM,
                                                       signal.SIGHUP)}
            try:
                with self.subTest(sig=sig), self.assertRaises(SystemExit) as stopped:
                    module["Stop"]().start(["sleep", "1000"])
                self.assertEqual(128 + sig, stopped.exception.code)
                self.assertEqual(-signal.SIGTERM, started[-1].returncode)
            finally:
                for s, how in before.items():
                    signal.signal(s, how)

    def test_capture(self):
        """All are requests for the queue pair, PSN after PSN."""
        module = runpy.run_path(os.path.join(SCRIPTS, "pktgen"), run_name="pktgen")
        path = os.path.join(self.dir, "load.pcap")
        for payload in (0, 64, 1024):
            module["capture"](path, payload)
            with open(path, "rb") as f:
                blob = f.read()
            at, psns = 24, []
            while at < len(blob):
                length, = struct.unpack_from("<I", blob, at + 8)
                opcode, = struct.unpack_from("B", blob, at + 16 + 42)
                qpn, psn = struct.unpack_from(">II", blob, at + 16 + 42 + 4)
                self.assertEqual((10, module["QPN"], 14 + 20 + 8 + 12 + 16 + payload + 4),
                                 (opcode, qpn, length))
                psns.append(psn & 0xffffff)
                at += 16 + length
            self.assertEqual(list(range(module["FRAMES"])), psns)

    def test_a_run_may_be_longer_than_a_start(self):
        """By a clock of its own: pktgen's figures are there when its time is over."""
        module = runpy.run_path(os.path.join(SCRIPTS, "pktgen"), run_name="pktgen")
        held = module["drive"].__globals__
        clock = types.SimpleNamespace(now=0, monotonic=lambda: clock.now)

        def sleep(seconds):
            clock.now += seconds
            if clock.now > 610:
                with open(os.path.join(self.dir, "done"), "w", encoding="ascii") as f:
                    f.write("opackets 7\n")
        clock.sleep = sleep

        class Child:
            def __init__(self, *words, **kwargs):
                del words, kwargs

            __enter__ = lambda self: self
            __exit__ = poll = wait = send_signal = lambda self, *args: None
        held.update(time=clock, stats=lambda where: {"rx_packets": 7})
        args = types.SimpleNamespace(seconds=600, verbose=False)
        self.assertEqual(({"opackets": 7}, {"rx_packets": 7}),
                         module["drive"]("/bin/pktgen", self.dir, Child(), args,
                                         types.SimpleNamespace(start=Child)))


if __name__ == "__main__":
    tap.main()
