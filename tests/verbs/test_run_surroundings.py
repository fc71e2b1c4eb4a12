#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-run where its surroundings are unusual: faults for nobody, signals, descriptors.

    test_run_surroundings.py --long     also what takes long
"""
import errno
import fcntl
import glob
import json
import os
import re
import resource
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

import rdmacm_calls
from programs import read_pcapng
from runs import RUN, Beside, Runs

LONG = "--long" in sys.argv
CTL, FRAGILE = os.environ["ROCELANECTL"], os.environ["FRAGILE"]
QUEUE = {"bottleneck": {"rate": "10G", "buffer": "256K"}}
DROP = {"action": "drop", "probability": 1.0}

# Plain segments and mappings are there; huge ones are refused before the kernel is asked.
HUGE_PAGES = """
import ctypes, errno, mmap
c = ctypes.CDLL(None, use_errno=True)
c.mmap.restype = c.mmap64.restype = ctypes.c_void_p
PRIVATE, CREAT, SHM_HUGETLB, MAP_HUGETLB = 0, 0o1000, 0o4000, 0x40000
NONE = ctypes.c_void_p(-1).value
def refused(got, none):
    assert got == none and ctypes.get_errno() == errno.ENOMEM, (got, ctypes.get_errno())
id = c.shmget(PRIVATE, 1 << 21, CREAT | 0o600)
assert id >= 0 and c.shmctl(id, 0, None) == 0
refused(c.shmget(PRIVATE, 1 << 21, CREAT | SHM_HUGETLB | 0o600), -1)
def anonymous(call, flags):
    return call(None, ctypes.c_size_t(1 << 21), mmap.PROT_READ | mmap.PROT_WRITE,
                flags | mmap.MAP_ANONYMOUS, -1, ctypes.c_long(0))
for flags in mmap.MAP_PRIVATE, mmap.MAP_SHARED:
    assert anonymous(c.mmap, flags) != NONE
    refused(anonymous(c.mmap, flags | MAP_HUGETLB), NONE)
refused(anonymous(c.mmap64, mmap.MAP_PRIVATE | MAP_HUGETLB), NONE)
"""

# Argument: the signal that ends the dataplane of this run, which its rocelane-run has not seen yet.
END_THE_PLANE = """
import os, socket, struct, sys
with socket.socket(socket.AF_UNIX) as s:
    s.connect(os.environ["ROCELANE_SOCKET"])
    pid, = struct.unpack_from("i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
os.kill(pid, int(sys.argv[1]))
state = ""
while state != "Z":
    with open("/proc/%d/stat" % pid, encoding="ascii") as f:
        state = f.read().rpartition(") ")[2][0]
"""


class Faults(Beside):
    """A test that believes in faults must have them: what sets none is an error."""

    def setUp(self):
        super().setUp()
        self.env["ROCELANE_SOCKET"] = self.plane()

    def shown(self, rules):
        """{port: what is set there} of a run with these faults."""
        code, out, err = self.run_it("-f", self.faults(rules), CTL, "-j", "impair", "show")
        self.assertEqual((0, ""), (code, err))
        return {p["port"]: p["impair"] or {} for p in json.loads(out)}

    def refused(self, path):
        code, out, err = self.run_it("-f", path, "echo", "it ran")
        self.assertEqual((125, ""), (code, out), err)
        return err

    def test_a_fifo_that_nobody_writes(self):
        """It waits for it, and can be ended meanwhile."""
        fifo = os.path.join(self.dir.name, "fifo")
        os.mkfifo(fifo)
        p = subprocess.Popen([RUN, "-p", "-f", fifo, "true"], env=self.env)
        self.addCleanup(p.kill)
        call = ""
        while not call.startswith("257 "):      # it sleeps in openat()
            self.assertIsNone(p.poll())
            with open("/proc/%d/syscall" % p.pid, encoding="ascii") as f:
                call = f.read()
        p.terminate()
        self.assertEqual(-signal.SIGTERM, p.wait(60))

    def test_a_program_whose_name_is_not_ascii(self):
        """A client's name is; the program runs all the same."""
        holder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(holder.cleanup)
        program = os.path.join(holder.name, "t\u00e9st")
        shutil.copy("/usr/bin/ibv_devices", program)
        code, out, err = self.run_it(program)
        self.assertEqual((0, 2), (code, out.count("rocelane")), err)

    def test_a_posting_is_whole(self):
        code, out, err = self.run_it(os.environ["VERBS_WHOLE"])
        self.assertEqual((0, "all or nothing\n"), (code, out), err)

    def test_files_on_a_small_stack(self):
        code, out, err = self.run_it("-p", os.environ["SMALL_STACK"])
        self.assertEqual((0, "small\n", ""), (code, out, err))

    def test_domains_and_clock(self):
        code, out, err = self.run_it(os.environ["VERBS_DOMAINS"])
        self.assertEqual((0, "domains\n"), (code, out), err)

    def test_for_no_port(self):
        for rules, words in (({"p0": {"rules": [DROP]}}, ("p0", "rocelane0, rocelane1")),
                             ({"rocelane0": {"rules": [DROP]}, "rocelane2": {}},
                              ("rocelane2", "rocelane0, rocelane1")),
                             ({"rule": [DROP]}, ("rule", "rules")),
                             ({"rules": [DROP], "rocelane0": {"rules": []}}, ("rules",)),
                             ({}, ("rules", "bottleneck")), ({"seed": 7}, ("seed", "rules")),
                             ({"bottleneck": None}, ("rules",)),
                             ({"rocelane0": None}, ("rocelane0", "rules")),
                             ([DROP], ("object",)), ([], ("object",))):
            with self.subTest(rules=rules):
                err = self.refused(self.faults(rules))
                for word in words:
                    self.assertIn(word, err)

    def test_of_all_ports_without_rules(self):
        """A switch's queue is no rule, and is set."""
        got = self.shown(QUEUE)
        self.assertEqual(["rocelane0", "rocelane1"], sorted(got))
        for impair in got.values():
            self.assertEqual("10G", impair["bottleneck"]["rate"])

    def test_of_one_port(self):
        got = self.shown({"rocelane1": QUEUE})
        self.assertEqual({}, got["rocelane0"])
        self.assertEqual("10G", got["rocelane1"]["bottleneck"]["rate"])

    def test_those_of_before_come_back(self):
        """The dataplane goes on with what its operator has set; no other port is touched."""
        def ctl(*words):
            return subprocess.run([CTL, "-s", self.env["ROCELANE_SOCKET"], "-j", "impair", *words],
                                  check=True, stdout=subprocess.PIPE, text=True).stdout

        for port in ("rocelane0", "rocelane1"):
            ctl("set", port, "action", "delay", "delay_us", "5", "psn", "77")
        before = {p["port"]: p["impair"] for p in json.loads(ctl("show"))}
        self.assertEqual("10G", self.shown({"rocelane1": QUEUE})["rocelane1"]["bottleneck"]["rate"])
        self.assertEqual(before, {p["port"]: p["impair"] for p in json.loads(ctl("show"))})
        for wrong in ({"rocelane0": {"rules": [DROP]}, "rocelane2": {"rules": [DROP]}},
                      {"rocelane2": {"rules": []}}):
            self.refused(self.faults(wrong))
            self.assertEqual(before, {p["port"]: p["impair"] for p in json.loads(ctl("show"))})
        for port in before:
            ctl("set", port, "none")

    def test_files_that_cannot_be_read(self):
        for path, why in (("/no/such/file", "No such file"), (self.dir.name, "Is a directory")):
            err = self.refused(path)
            self.assertIn(f"{path}: ", err)
            self.assertIn(why, err)


class Devices(Runs):
    """Files of the devices, for programs that list and visit them."""

    def said(self, script):
        code, out, err = self.run_it("-p", "sh", "-c", script)
        self.assertEqual((0, ""), (code, err), out)
        return out

    def test_shell(self):
        """cd, and names with an asterisk."""
        self.assertEqual("1: CA\n1: CA\n", self.said("cat /sys/class/infiniband/*/node_type"))
        self.assertEqual("1\n4: ACTIVE\n", self.said(
            "cd /sys/class/infiniband/rocelane1/ports && echo * && cat 1/state"))

    def test_what_it_is(self):
        """ibstat and scripts read that: no file is empty."""
        self.assertEqual("rocelane\n0\n", self.said(
            "cd /sys/class/infiniband/rocelane0 && cat hca_type hw_rev"))

    def test_ls_and_find(self):
        self.assertEqual("rocelane0\nrocelane1\n", self.said("ls /sys/class/infiniband"))
        self.assertRegex(self.said("ls -l /dev/infiniband/uverbs1"), r"^crw.* 231, 193 ")
        found = self.said("find /sys/class/infiniband /sys/class/infiniband_verbs").splitlines()
        for path in ("infiniband/rocelane0/fw_ver", "infiniband/rocelane1/ports/1/gids/0",
                     "infiniband_verbs/uverbs0/ibdev"):
            self.assertIn("/sys/class/" + path, found)


class OtherLibrary(Runs):
    """A script on the way sets LD_LIBRARY_PATH, and the program is given a libibverbs that has none
    of our devices. It is told, where that looks for them."""

    def finds(self, path, program="ibv_devices"):
        """What it prints on standard error."""
        _, out, err = self.run_it("-p", "sh", "-c", f'LD_LIBRARY_PATH={path} exec {program}')
        self.assertNotIn("rocelane0", out)
        return err

    def test_in_front(self):
        for debian in glob.glob("/usr/lib/*-linux-gnu"):
            if os.path.exists(debian + "/libibverbs.so.1"):
                self.assertIn(f"rocelane: it has loaded {debian}/libibverbs.so.1, not rocelane's",
                              self.finds(debian + ":$LD_LIBRARY_PATH"))
                return
        self.fail("no libibverbs.so.1 of Debian's")

    def test_set_anew(self):
        """What is preloaded does not depend on it."""
        err = self.finds("/nowhere")
        self.assertEqual(1, err.count("rocelane: it has loaded "), err)
        self.assertNotIn("cannot be preloaded", err)

    def test_nobody_asks(self):
        """A program without one, or that does not look for devices, is none of our business."""
        self.assertEqual("", self.finds("/nowhere", "ls /sys/class/infiniband/rocelane1"))
        self.assertEqual("", self.finds("/nowhere", "ib_write_bw --version"))


NAMES = ["SIGHUP", "SIGINT", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGALRM", "SIGTERM"]
# It says which signals came, and ends with SIGTERM, or when none comes any more.
SAYS_SIGNALS = """
import os, signal
them = {getattr(signal, "SIG" + n) for n in ("HUP", "INT", "QUIT", "USR1", "USR2", "ALRM", "TERM")}
signal.pthread_sigmask(signal.SIG_BLOCK, them)
os.write(1, b"ready\\n")
while True:
    came = signal.sigtimedwait(them, 60)
    if came is None:
        os._exit(6)
    os.write(1, (signal.Signals(came.si_signo).name + "\\n").encode())
    if came.si_signo == signal.SIGTERM:
        os._exit(5)
"""


class Planes(Runs):
    def test_one_that_ends_by_itself(self):
        """Its log would be gone with it, and calls of the program say that it is there."""
        for number, how in (signal.SIGKILL, "signal 9"), (signal.SIGTERM, "status 0"):
            code, _, err = self.run_it("-p", sys.executable, "-c", END_THE_PLANE, str(int(number)))
            self.assertEqual(0, code, err)
            _, told, log = err.partition(f"rocelane-run: the dataplane has ended by itself ({how});"
                                         " the end of its log:\n")
            self.assertTrue(told, err)
            self.assertRegex(log, r"^(  .*\n)+$")
            self.assertIn("rocelane: info: ", log)

    def test_all_who_wait_hear_of_its_end(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_ARMED"], "ended")
        self.assertEqual((0, "told\n"), (code, out), err)

    def test_channels_behind_its_end(self):
        """librdmacm keeps the devices that it has opened: what to do about it is said."""
        self.env["ROCELANE_WHY"] = "1"
        code, out, err = self.run_it("-p", sys.executable, "-c", rdmacm_calls.A_CHANNEL_LATER)
        self.assertEqual((0, "%d\n" % errno.ENODEV), (code, out), err)
        self.assertIn("rdma_cm open: No such device (", err)
        self.assertIn("start the program again", err)

    def test_of_another_user_namespace(self):
        """As a rootless container's root, with the dataplane of its user outside: to that it has
        another number, and its failures are told all the same."""
        os.chmod(self.dir.name, 0o777)
        drop = [] if os.getuid() != 0 else ["setpriv", "--reuid=65534", "--regid=65534",
                                            "--clear-groups"]
        inner = 'exec "$0" -s "$ROCELANE_SOCKET" -f "$1" "$2" 1 2>&1'
        rules = self.faults({"rules": [DROP]})
        os.chmod(rules, 0o644)
        done = subprocess.run([*drop, RUN, "-p", "unshare", "--user", "--map-root-user", "sh", "-c",
                               inner, RUN, rules, FRAGILE], env=self.env, check=False, text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, timeout=120)
        self.assertEqual(3, done.returncode, done.stdout)
        self.assertRegex(done.stdout, "(?m)^rocelane-run: QP .* fragile.* failed: ")

    def test_one_that_goes_on(self):
        self.assertEqual((0, "", ""), self.run_it("-p", "true"))


class Signals(Runs):
    """Who sends rocelane-run a signal means the program."""

    def setUp(self):
        super().setUp()
        # What is ignored stays so, and nohup and a shell's & have some ignored.
        for name in NAMES:
            was = signal.signal(getattr(signal, name), signal.SIG_DFL)
            self.addCleanup(signal.signal, getattr(signal, name), was)

    def sent(self, proc, out, send):
        """What the program said, line by line, until it ended."""
        self.addCleanup(proc.kill)      # nothing but our wait is left if a signal was lost
        self.assertEqual("ready\n", out.readline())
        heard = []
        for what in send:
            what()
            heard.append(out.readline().strip())
        self.assertEqual(5, proc.wait(60))
        return heard

    def test_reach_the_program(self):
        proc = self.start("-p", "python3", "-c", SAYS_SIGNALS)
        self.assertEqual(NAMES, self.sent(proc, proc.stdout, [
            lambda n=n: proc.send_signal(getattr(signal, n)) for n in NAMES]))
        self.assertEqual("", proc.communicate()[1])

    def test_of_a_terminal_come_once(self):
        """They are sent to all that runs there, to the program as well."""
        ours, theirs = os.openpty()
        proc = subprocess.Popen(
            [RUN, "-p", "python3", "-c", SAYS_SIGNALS], env=self.env, stdin=theirs, text=True,
            stdout=subprocess.PIPE, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(theirs)
        self.addCleanup(os.close, ours)
        self.addCleanup(proc.stdout.close)
        self.assertEqual(["SIGINT", "SIGQUIT", "SIGTERM"], self.sent(proc, proc.stdout, [
            lambda: os.write(ours, b"\x03"), lambda: os.write(ours, b"\x1c"), proc.terminate]))


class Silent(Runs):
    """Somebody holds the socket, and does not answer: a dataplane that stands still."""

    def held(self, taken):
        """Its path; `taken`: no connection fits into its queue any more."""
        folder = tempfile.TemporaryDirectory(prefix="rl")
        self.addCleanup(folder.cleanup)
        path = os.path.join(folder.name, "sock")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(path)
        listener.listen(0 if taken else 16)
        while taken:
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.setblocking(False)
            if s.connect_ex(path) != 0:
                break
        return path

    if LONG:    # half a minute
        def test_ends_by_itself(self):
            """And its program does not run without devices."""
            runs = [(self.start("-s", self.held(taken), "echo", "it ran"), why)
                    for taken, why in ((True, "too many others"), (False, "no answer"))]
            for proc, why in runs:
                out, err = proc.communicate(timeout=120)
                self.assertEqual((125, ""), (proc.returncode, out))
                self.assertIn(why, err)

    @staticmethod
    def blocks(pid, sig):
        with open(f"/proc/{pid}/status", encoding="ascii") as f:
            return int(re.search(r"SigBlk:\s+(\w+)", f.read())[1], 16) >> (sig - 1) & 1

    def test_ends_by_a_signal(self):
        for taken in (True, False):
            for sig in (signal.SIGINT, signal.SIGTERM):
                proc = self.start("-s", self.held(taken), "echo", "it ran")
                while not self.blocks(proc.pid, sig):
                    self.assertIsNone(proc.poll())
                began = time.monotonic()
                proc.send_signal(sig)
                self.assertEqual(("", ""), proc.communicate(timeout=120))
                self.assertEqual(128 + sig, proc.returncode)
                self.assertLess(time.monotonic() - began, 8)


class Descriptors(Runs):
    def test_closed(self):
        """A record gets its packets and the log its lines, whichever of 0, 1, 2 are closed."""
        with tempfile.TemporaryDirectory() as tmp:
            record, said = os.path.join(tmp, "wire.pcapng"), os.path.join(tmp, "said")
            for closed in ("<&-", "<&- >&- 2>&-"):
                done = subprocess.run(
                    ["sh", "-c", f'"$0" -p -r "$1" sh -c "ibv_devinfo -l >$2" {closed}', RUN,
                     record, said], env=self.env, timeout=120, check=False, text=True,
                    stderr=subprocess.PIPE)
                self.assertEqual((0, ""), (done.returncode, done.stderr), closed)
                with open(said, encoding="utf-8") as f:
                    self.assertIn("rocelane1", f.read())
                with open(record, "rb") as f:
                    self.assertEqual(b"\x0a\x0d\x0d\x0a", f.read(4))
                os.unlink(record)

    def record_that_ends(self, limit, before=":"):
        """What it is then. @param limit(path): bytes that it may have when `before` was run: more
        than the rings of an application have."""
        with tempfile.TemporaryDirectory() as tmp:
            record, begin, stats = (os.path.join(tmp, n) for n in ("wire.pcapng", "go", "stats"))
            proc = self.start("-p", "-r", record, "sh", "-c", before + '''
                echo $PPID; until [ -e "$1" ]; do sleep 0.02; done
                "$0" 0; "$0" 0; "$0" 0; "$2" -j stat show port >"$3"''', FRAGILE, begin, CTL, stats)
            plane, = re.findall(r"(\d+) \S*rocelane --lcores", subprocess.run(
                ["ps", "-o", "pid=,args=", "--ppid", proc.stdout.readline().strip()],
                stdout=subprocess.PIPE, text=True, check=True).stdout)
            most, hard = 0, resource.prlimit(int(plane), resource.RLIMIT_FSIZE)[1]
            while most != limit(record):    # the file may have grown meanwhile
                most = limit(record)
                resource.prlimit(int(plane), resource.RLIMIT_FSIZE, (most, hard))
            open(begin, "wb").close()
            _, err = proc.communicate(timeout=120)
            lost = int(re.search(r"record: (\d+) packets are not in the file", err)[1])
            with open(stats, encoding="utf-8") as f:
                seen = sum(port["rx_packets"] for port in json.load(f))
            with open(record, "rb") as f:
                text = f.read()
        # Each port repeats the report of its groups within a second: perhaps behind our look.
        self.assertIn(len(read_pcapng(text, lost)) + lost - seen, range(3), err)
        return text

    def test_record_on_a_full_disk(self):
        """What fits is in the file, and all else is counted: in the file, and for people."""
        limit = 280000
        self.assertGreater(len(self.record_that_ends(lambda path: limit)), limit - 3000)

    def test_record_when_no_packet_fits(self):
        """What is not there is counted in the file though it can be hardly longer than it is."""
        for more in 1, 79:
            self.record_that_ends(lambda path: os.stat(path).st_size + more,
                                  4 * '"$0" 0 >&2;')

    def test_nobody_can_read_it(self):
        for option in ("--help", "--version"):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run([RUN, option], stdout=full, stderr=subprocess.PIPE,
                                      env=self.env, text=True, check=False, timeout=120)
            self.assertEqual((125, "rocelane-run: cannot write: No space left on device\n"),
                             (done.returncode, done.stderr))


class Libraries(Runs):
    def test_programs_that_load_no_libraries(self):
        """They run all the same, and it is said. Of others there is not a word."""
        with open("/bin/true", "rb") as f:
            dynamic = f.read()
        at, = struct.unpack_from("<Q", dynamic, 32)
        while struct.unpack_from("<I", dynamic, at) != (3,):     # PT_INTERP
            at += 56
        name, = struct.unpack_from("<Q", dynamic, at + 8)
        static = dynamic[:at] + bytes(4) + dynamic[at + 4:]
        musl = b"/lib/ld-musl-x86.so.1\0"
        musl = dynamic[:name] + musl + dynamic[name + len(musl):]
        cases = [(dynamic, 0o755, ""), (static, 0o755, "it is linked statically"),
                 (musl, 0o755, "it is linked with musl"), (b"#!/bin/true\n", 0o755, "")]
        if os.geteuid() == 0:
            cases.append((dynamic, 0o4755, "it is setuid, setgid, or has capabilities"))
        for text, mode, why in cases:
            with self.subTest(why), tempfile.TemporaryDirectory() as tmp:
                os.chmod(tmp, 0o755)
                path = os.path.join(tmp, "program")
                with open(path, "wb") as f:
                    f.write(text)
                if mode == 0o4755:
                    os.chown(path, 65534, 65534)
                os.chmod(path, mode)
                err = self.run_it("-p", path)[2]
                says = f"rocelane-run: {path} runs without rocelane: {why}\n" if why else None
                self.assertEqual(says in err if why else "runs without" not in err, True, err)

    @unittest.skipIf(os.geteuid() != 0, "needs root")
    def test_a_program_that_gives_up_its_rights(self):
        """It finds no device of root's private dataplane, and hears why."""
        code, out, err = self.run_it(
            "-p", "sh", "-c", "ibv_devinfo -l; exec setpriv --reuid=65534 --regid=65534 "
            "--clear-groups ibv_devinfo -l")
        self.assertEqual(0, code, err)
        self.assertRegex(out, r"\A2 HCAs found:\s+rocelane0\s+rocelane1\s+0 HCAs found:")
        self.assertRegex(err, r"rocelane: no devices: \S+: Permission denied\n")


class HugePages(Runs):
    """The machine has some, or none."""

    def test_without_a_file(self):
        """No dataplane can have them: there are none, for segments and anonymous memory."""
        self.env["ROCELANE_WHY"] = "1"
        code, out, err = self.run_it("-p", sys.executable, "-c", HUGE_PAGES)
        self.assertEqual((0, ""), (code, out), err)
        for call, times in ("shmget", 1), ("mmap", 3):
            said = f"rocelane: {call}: Cannot allocate memory (no dataplane can have huge pages"
            self.assertEqual(times, err.count(said), err)


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
