#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-run: a private dataplane, exit statuses, faults, and what it says of failures.

    test_run.py --long     also what takes long
"""
import glob
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

from scapy.utils import RawPcapNgReader

from programs import cpu_s, read_pcapng, smallest_memfd, stopped_thread, thread_of

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import roce  # noqa: E402
from runs import RUN, Runs  # noqa: E402

FRAGILE = os.environ["FRAGILE"]
LONG = "--long" in sys.argv
TIMES = 10 if LONG else 3       # the same faults, the same failure: as often as that


# As a container's seccomp profile: neither the call nor the device gives a userfaultfd.
NO_USERFAULTFD = """
import errno, os, seccomp, sys
f = seccomp.SyscallFilter(seccomp.ALLOW)
f.add_rule(seccomp.ERRNO(errno.EPERM), "userfaultfd")
f.add_rule(seccomp.ERRNO(errno.EPERM), "ioctl", seccomp.Arg(1, seccomp.EQ, 0xaa00))
f.load()
os.execv(sys.argv[1], sys.argv[1:])
"""


def is_roce(frame):
    return frame[12:14] == b"\x08\0" and frame[23] == 17 and frame[36:38] == b"\x12\xb7"


def bth_of(frame):
    """(opcode, PSN)"""
    return frame[42], int.from_bytes(frame[51:54], "big")


class Run(Runs):
    def test_devices(self):
        code, out, err = self.run_it("--private", "ibv_devinfo")
        self.assertEqual((0, ""), (code, err))
        self.assertEqual(["rocelane0", "rocelane1"], re.findall(r"hca_id:\s+(\w+)", out))
        self.assertEqual(2, out.count("PORT_ACTIVE"))

    def test_memory_is_the_users_own(self):
        """More than the 1 GiB, and the 1024 regions, that a client of a shared dataplane has."""
        save = [os.environ["ROCELANECTL"], "config", "save"]
        code, out, _ = self.run_it("-p", *save)
        self.assertEqual(0, code)
        limits = json.loads(out)["control"]["client_limits"]
        for what, most in (("memory", 1 << 40), ("mrs", 16384)):
            self.assertEqual((most, most), (limits[what], limits["user"][what]))

    def test_placement_is_off(self):
        """A queue pair for ATOMIC WRITE and FLUSH cannot be had, as with a device without them."""
        code, out, _ = self.run_it("-p", os.environ["VERBS_PLACEMENT"])
        self.assertEqual((3, "not supported\n"), (code, out))

    def test_exit_status(self):
        for want, *program in ((0, "true"), (7, "sh", "-c", "exit 7"), (127, "/no/such/program"),
                               (126, "/dev/null"), (128 + 9, "sh", "-c", "kill -9 $$")):
            self.assertEqual(want, self.run_it("-p", *program)[0], program)

    def test_wrong_usage(self):
        for args in ((), ("--no-such-option", "true"), ("-p", "-s", "x", "true"),
                     ("-s", "/no/such/socket", "true"), ("-p", "-f", "/no/such/file", "true")):
            code, _, err = self.run_it(*args)
            self.assertEqual(125, code, args)
            self.assertTrue(err, args)

    def test_signal_reaches_the_program(self):
        proc = self.start("-p", "sh", "-c", "trap 'echo got it; exit 5' TERM; echo ready; "
                          "while :; do sleep 0.05; done")
        self.addCleanup(proc.terminate)     # nothing is left behind if the first one was lost
        self.assertEqual("ready\n", proc.stdout.readline())
        proc.send_signal(signal.SIGTERM)
        out, _ = proc.communicate(timeout=60)
        self.assertEqual((5, "got it\n"), (proc.returncode, out))

    def late_fork(self, number):
        first, late = self.env.get("LD_PRELOAD"), os.environ["LATE_FORK"]
        self.env.update(LD_PRELOAD=f"{first}:{late}" if first else late, LATE_FORK=str(number))

    def test_signal_before_fork_returns(self):
        """The program may run, and a signal come, before rocelane-run knows its process."""
        self.late_fork(2)
        self.test_signal_reaches_the_program()

    def test_signal_before_the_program(self):
        """While the dataplane starts: nothing is left of it, and the program never runs."""
        self.late_fork(1)
        proc = self.start("-p", "echo", "it ran")
        while not os.listdir(self.dir.name):
            self.assertIsNone(proc.poll())
            time.sleep(0.01)
        proc.send_signal(signal.SIGTERM)
        self.assertEqual(("", ""), proc.communicate(timeout=120))
        self.assertEqual(128 + signal.SIGTERM, proc.returncode)
        self.assertEqual([], os.listdir(self.dir.name))

    def no_rules(self, shown):
        """@param shown what "impair show" printed"""
        self.assertEqual([[], []],
                         [(p["impair"] or {}).get("rules", []) for p in json.loads(shown)])

    def test_signal_before_the_program_takes_faults_away(self):
        """Rules for somebody else's dataplane, read when the signal has come already."""
        code, out, err = self.run_it("-p", "sh", "-c", f"""
            mkfifo $1/rules || exit 9
            {RUN} -f $1/rules echo it ran & pid=$!
            exec 3> $1/rules
            kill -TERM $pid
            cat $0 >&3
            exec 3>&-
            wait $pid
            echo "ended: $?"
            rm $1/rules
            {os.environ["ROCELANECTL"]} -s $ROCELANE_SOCKET --json impair show""",
            self.faults({"rules": [{"action": "drop", "probability": 1}]}), self.dir.name)
        self.assertEqual(0, code)
        # The shell's word, where it hears of the end before it asks.
        self.assertIn(err, ("", "Terminated\n"))
        ended, shown = out.split("\n", 1)
        self.assertEqual("ended: 143", ended)
        self.no_rules(shown)

    def test_wrong_faults_leave_none(self):
        """Those of one port are good, the other's are not."""
        rules = {"rocelane0": {"rules": [{"action": "drop", "probability": 1}]},
                 "rocelane1": {"rules": [{"action": "no such thing"}]}}
        code, out, err = self.run_it(
            "-p", "sh", "-c", f"{RUN} -f $0 true; echo $?; "
            f"{os.environ['ROCELANECTL']} -s $ROCELANE_SOCKET --json impair show",
            self.faults(rules))
        self.assertEqual(0, code, err)
        self.assertIn("no such thing", err)
        ended, shown = out.split("\n", 1)
        self.assertEqual("125", ended)
        self.no_rules(shown)

    def test_signals_of_the_program(self):
        """Ignored (nohup), blocked or neither: as without rocelane-run."""
        def ignore():
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            signal.signal(signal.SIGQUIT, signal.SIG_IGN)
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])

        look = ["grep", "-E", "Sig(Blk|Ign)", "/proc/self/status"]
        for prepare in (None, ignore):
            wanted, got = (subprocess.run(argv, env=self.env, text=True, stdout=subprocess.PIPE,
                                          check=True, preexec_fn=prepare, timeout=120).stdout
                           for argv in (look, [RUN, "-p", *look]))
            self.assertEqual(wanted, got)

    def test_long_path(self):
        """No socket can be there; that is said, and nothing is left."""
        with tempfile.TemporaryDirectory(prefix=90 * "x") as long:
            self.env.update(XDG_RUNTIME_DIR="/no/such/directory", TMPDIR=long)
            code, out, err = self.run_it("-p", "true")
            self.assertEqual([], os.listdir(long))
        self.assertEqual((125, ""), (code, out))
        self.assertIn("too long", err)

    def sleeper(self, *options):
        """A run that sleeps: itself, and the pids of its dataplane and of its program."""
        proc = self.start("-p", *options, "sh", "-c", "echo $PPID; exec sleep 1000")
        proc.stdout.readline()
        children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(proc.pid)],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        plane, = re.findall(r"(\d+) \S*rocelane --lcores", children)
        program, = re.findall(r"(\d+) (?:sh -c .*)?sleep 1000", children)   # soon, or already
        return proc, plane, program

    @staticmethod
    def ended(proc):
        proc.terminate()
        proc.communicate(timeout=120)

    def test_a_worker_that_is_late(self):
        """For longer than the dataplane waits for it, as where a machine stands still for a while.
        Once a client was sent away then, or its devices' files lacked something. Who waits sleeps.
        """
        proc, plane, _ = self.sleeper()
        socket_path, = glob.glob(os.path.join(self.dir.name, "*", "sock"))
        before = cpu_s(plane)
        with stopped_thread(plane, "rte-worker"):
            late = self.start("-s", socket_path, "ibv_devices")
            with self.assertRaises(subprocess.TimeoutExpired):
                late.wait(6)
        self.assertLess(cpu_s(plane) - before, 2)
        out, err = late.communicate(timeout=120)
        self.assertEqual((0, ""), (late.returncode, err), out)
        self.assertEqual(2, len(re.findall(r"(?m)^ +rocelane[01]\s", out)), out)
        self.ended(proc)

    def test_a_worker_that_is_moved(self):
        """It says on which CPU it is, also where it never sleeps: clients read it in this page."""
        cpus = sorted(os.sched_getaffinity(0))
        proc, plane, _ = self.sleeper("--poll")
        with open(smallest_memfd(plane), "rb", buffering=0) as page:
            for cpu in [*cpus, *cpus]:
                os.sched_setaffinity(thread_of(plane, "rte-worker"), {cpu})
                end = time.monotonic() + 60
                while (told := os.pread(page.fileno(), 8, 0)) != struct.pack("<Q", 1 << cpu):
                    self.assertLess(time.monotonic(), end, f"{told.hex()} at CPU {cpu}")
        self.ended(proc)

    def test_dataplane_ends_with_it(self):
        proc, plane, program = self.sleeper()
        proc.kill()
        proc.wait()
        os.kill(int(program), signal.SIGKILL)
        proc.communicate()
        end = time.monotonic() + 60
        while os.path.exists(f"/proc/{plane}/exe") and time.monotonic() < end:
            time.sleep(0.05)
        self.assertFalse(os.path.exists(f"/proc/{plane}/exe"))

    def test_all_goes_through(self):
        code, out, err = self.run_it("-p", FRAGILE, "7")
        self.assertEqual((0, "all went through\n", ""), (code, out, err))

    def test_all_kinds_of_memory(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_MEMORY"])
        self.assertEqual((0, "all kinds of memory\n"), (code, out), err)
        # Each refusal says why.
        for why in ("without access", "not all of it is mapped", "no bytes",
                    "require LOCAL_WRITE", "on demand paging"):
            self.assertIn(why, err)

    def test_fork_needs_nothing(self):
        """In a program without regions it is as it was: a handler of a signal may call it."""
        code, out, err = self.run_it("-p", os.environ["BARE_FORK"])
        self.assertEqual((0, "as libc's\n", ""), (code, out, err))

    def test_no_userfaultfd(self):
        """The threads of a program stand still instead; refused until then."""
        for name, said in ("VERBS_MEMORY", "all kinds of memory\n"), ("VERBS_FUTEX", "futexes\n"):
            run = subprocess.run(["/usr/bin/python3", "-c", NO_USERFAULTFD, RUN, "-p",
                                  os.environ[name]], env=self.env, check=False, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            self.assertEqual((0, said), (run.returncode, run.stdout), run.stderr)

    def test_who_sleeps_beside_a_region(self):
        """At a semaphore that processes share, or for the end of a thread that has registered."""
        code, out, err = self.run_it("-p", os.environ["VERBS_FUTEX"])
        self.assertEqual((0, "futexes\n"), (code, out), err)

    def test_regions_that_share_pages(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_OVERLAP"])
        self.assertEqual((0, "regions that share pages\n"), (code, out), err)

    def test_windows_and_paths(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_WINDOWS"])
        self.assertEqual((0, "windows and paths\n"), (code, out), err)

    def test_XRC_two_processes(self):
        """ibv_open_xrcd() of one file by two processes: one target serves the queues of both."""
        code, out, err = self.run_it("-p", os.environ["VERBS_XRC"])
        self.assertEqual((0, "one target, two processes\n"), (code, out), err)

    def test_members_of_groups(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_MCAST"])
        self.assertEqual((0, "members\n"), (code, out), err)

    def test_channels(self):
        """Of connections: children that close them, threads that are cancelled. ASan takes the
        stack of a thread that is cancelled for one that overflows."""
        cancelled = [] if os.environ.get("SANITIZER") else ["cancelled"]
        for what in ["fork", "copies", "vfork", "daemon", "first", "reuse", "refuse", "late",
                     "hasty", *cancelled]:
            with self.subTest(what):
                code, out, err = self.run_it("-p", os.environ["VERBS_CHANNELS"], what)
                self.assertEqual((0, "good\n"), (code, out), err)

    def test_CQ_06_what_a_channel_tells(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_ARMED"])
        self.assertEqual((0, "told\n"), (code, out), err)

    def test_own_address(self):
        """Both ends on one device."""
        with socket.socket() as s:
            s.bind(("", 0))
            port = s.getsockname()[1]
        one = f"ibv_rc_pingpong -d rocelane0 -g 0 -c -n 10 -p {port}"
        code, out, err = self.run_it("-p", "sh", "-c", f"{one} & until {one} 127.0.0.1; do "
                                     "sleep 0.1; done; wait $!")
        self.assertEqual(0, code, err)
        self.assertEqual(2, out.count("10 iters in "), out)

    def as_nobody(self, *words):
        os.chmod(self.dir.name, 0o777)
        return subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", RUN,
                               "-p", *words], env=self.env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ordinary_user(self):
        """Without any right."""
        if os.getuid() != 0:
            return      # all of this class runs so
        for name, said in (("VERBS_MEMORY", "all kinds of memory\n"),
                           ("VERBS_SHARED", "shared memory\n")):
            done = self.as_nobody(os.environ[name])
            self.assertEqual((0, said), (done.returncode, done.stdout), done.stderr)
        self.assertEqual(1, done.stderr.count("keep it open, or have CAP_SYS_ADMIN"), done.stderr)

    def test_limits(self):
        """RLIMIT_FSIZE is an error of a region, and no signal; and of a program with ASan."""
        for name in "VERBS_LIMITS", "VERBS_LIMITS_ASAN":
            code, out, err = self.run_it("-p", os.environ[name])
            self.assertEqual((0, "limits\n", 1), (code, out, err.count("RLIMIT_FSIZE")), err)

    def test_shared_memory(self):
        """/dev/shm, memfds, System V; and a file that becomes shorter: the log's line is told."""
        each = "for i in shrinks one ''; do $VERBS_SHARED $i || exit; done"
        code, out, err = self.run_it("-p", "sh", "-c", each)
        lost = "transport retry counter exceeded\nshared memory\n"
        self.assertEqual((0, 2 * lost + "shared memory\n"), (code, out), err)
        self.assertRegex(err, "(?s)failed: at PSN.*the dataplane's warning: client .*disconnected")

    def test_user_namespace(self):
        """A namespace as of a rootless container: nobody's number, no capability."""
        os.chmod(self.dir.name, 0o777)
        drop = [] if os.getuid() != 0 else ["setpriv", "--reuid=65534", "--regid=65534",
                                            "--clear-groups"]
        run = subprocess.run([*drop, "unshare", "--user", "sh", "-c",
                              "grep CapEff /proc/self/status; exec \"$@\"", "sh", RUN, "-p",
                              os.environ["VERBS_MEMORY"]], env=self.env, check=False,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((0, "CapEff:\t0000000000000000\nall kinds of memory\n"),
                         (run.returncode, run.stdout), run.stderr)

    def test_only_shared_memory(self):
        """ROCELANE_MR=refuse: private memory stays what it is."""
        self.env["ROCELANE_MR"] = "refuse"
        code, _, err = self.run_it("-p", FRAGILE, "7")
        self.assertEqual(1, code)
        self.assertIn("ROCELANE_MR=refuse leaves such memory as it is", err)

    def test_no_such_way(self):
        """ROCELANE_MR: a word that means nothing is no reason to convert memory."""
        for word in ("Bounce", "Convert", "refuse "):
            self.env["ROCELANE_MR"] = word
            code, _, err = self.run_it("-p", FRAGILE, "7")
            self.assertEqual(1, code, word)
            self.assertIn(f"ROCELANE_MR={word} is not known: convert or refuse", err)
        self.env["ROCELANE_MR"] = "bounce"
        code, _, err = self.run_it("-p", FRAGILE, "7")
        self.assertEqual(1, code)
        self.assertIn("ROCELANE_MR=bounce is not built", err)
        for word in ("convert", ""):
            self.env["ROCELANE_MR"] = word
            self.assertEqual(0, self.run_it("-p", FRAGILE, "7")[0], word)

    def test_why(self):
        """ROCELANE_WHY: what a program does not print."""
        self.env["ROCELANE_WHY"] = "1"
        _, _, err = self.run_it("-p", os.environ["VERBS_WINDOWS"])
        self.assertRegex(err, "(?m)^rocelane: ibv_dereg_mr: Device or resource busy .*windows")
        for call, why in (("ibv_modify_qp", "one port"), ("ibv_create_ah", "one port"),
                          ("ibv_create_srq_ex", "without a pd"), ("ibv_reg_mr_iova2", "no bytes"),
                          ("ibv_create_ah", "gid 99 does not exist"),
                          ("ibv_create_ah", "IPv4, the other IPv6"),
                          ("ibv_create_ah", "RoCE has no LIDs"), ("ibv_rereg_mr", "LOCAL_WRITE")):
            self.assertRegex(err, f"(?m)^rocelane: {call}: Invalid argument .*{why}")

    def test_vendor_err(self):
        """The number that a program prints leads to what it means, and to the queue pair."""
        rules = {"rocelane1": {"rules": [{"action": "drop", "psn": 1042, "times": 1}]}}
        ctl = os.environ["ROCELANECTL"]
        code, out, err = self.run_it(
            "-p", "-f", self.faults(rules), "sh", "-c",
            f"code=$({FRAGILE} 0 | sed 's/.*vendor_err //'); exec {ctl} -s $ROCELANE_SOCKET "
            "explain $code")
        self.assertEqual(0, code, out + err)
        self.assertRegex(out, r"^6 \(0x06\) RESPONSE_HANDLER: transport retries exhausted "
                              r"\(RX-FATAL-06\)\n")
        self.assertRegex(out, r"(?m)fragile\).*\b1042\b")

    def test_example(self):
        """What app/examples/verbs has for pytest, without pytest."""
        if not LONG:
            return
        path = os.environ["EXAMPLE"]
        spec = importlib.util.spec_from_file_location("example", path)
        example = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(example)
        with socket.socket() as s:
            s.bind(("", 0))
            port = str(s.getsockname()[1])
        example.BOTH_ENDS = example.BOTH_ENDS.replace("-F", f"-F -p {port}").replace(
            ":18515", f":{port}")
        self.env["PATH"] = os.path.dirname(RUN) + ":" + self.env["PATH"]
        with tempfile.TemporaryDirectory() as tmp, \
                unittest.mock.patch.dict(os.environ, self.env):
            example.test_both_ends()
            example.test_one_percent_loss(pathlib.Path(tmp))
            example.test_nobody_answers(pathlib.Path(tmp))

    def test_loss_is_repaired(self):
        rules = {"seed": 3, "rules": [{"action": "drop", "probability": 0.05}]}
        code, out, err = self.run_it("-p", "-f", self.faults(rules), FRAGILE, "7")
        self.assertEqual((0, "all went through\n", ""), (code, out, err))

    def test_one_exact_drop(self):
        """Without retries the request whose packet is dropped fails, and the reason names it."""
        rules = {"rocelane1": {"rules": [{"action": "drop", "psn": 1042, "times": 1}]}}
        code, out, err = self.run_it("-p", "-f", self.faults(rules), FRAGILE, "0")
        self.assertEqual(3, code, err)
        self.assertRegex(out, r"^write 42 failed: transport retry counter exceeded, vendor_err 0x")
        self.assertRegex(err, r"^rocelane-run: QP 0x[0-9a-f]{6} of client .*fragile.* failed: "
                              r".*\b1042\b")

    def record(self, *args):
        """(exit status, [(interface, comment, frame) of each packet]) of a run that is recorded."""
        with tempfile.TemporaryDirectory() as tmp:
            path = os.path.join(tmp, "wire.pcapng")
            code, _, err = self.run_it("-p", "--record", path, *args)
            self.assertNotIn("record:", err)
            self.assertEqual(0o600, os.stat(path).st_mode & 0o777)
            packets = read_pcapng(pathlib.Path(path).read_bytes())
            scapys = RawPcapNgReader(path)
            self.assertEqual([frame for frame, _ in scapys], [p[2] for p in packets])
            scapys.close()
        for _, _, frame in packets:
            if is_roce(frame):
                self.assertTrue(roce.has_good_icrc(frame), frame.hex())
                self.assertEqual(frame[-4:], roce.scapy_icrc(frame))
        return code, packets

    def test_record(self):
        """What was on the wire, with its ICRC: each WRITE to port 1, its ACK to port 0."""
        code, packets = self.record(FRAGILE, "7")
        self.assertEqual(0, code)
        self.assertEqual({""}, {comment for _, comment, _ in packets})
        to = {port: [bth_of(f) for p, _, f in packets if p == port and is_roce(f)]
              for port in ("rocelane0", "rocelane1")}
        self.assertEqual([(roce.WRITE_ONLY, 1000 + i) for i in range(200)], to["rocelane1"])
        self.assertEqual([(roce.ACK, 1000 + i) for i in range(200)], to["rocelane0"])

    def test_record_of_faults(self):
        """A packet that a rule dropped is in the record, and says so; its repetition does not."""
        rules = {"rocelane1": {"rules": [{"action": "drop", "psn": 1042, "times": 1}]}}
        code, packets = self.record("-f", self.faults(rules), FRAGILE, "7")
        self.assertEqual(0, code)
        comments = [comment for port, comment, frame in packets if port == "rocelane1" and
                    is_roce(frame) and bth_of(frame) == (roce.WRITE_ONLY, 1042)]
        self.assertEqual(["impair: drop", ""], comments)

    def test_record_is_nobody_elses(self):
        with tempfile.TemporaryDirectory() as tmp:
            link = os.path.join(tmp, "link")
            os.symlink(os.path.join(tmp, "aim"), link)
            for path, why in ((link, "a symbolic link is not followed"),
                              ("/dev/null", "not a regular file"), (tmp, "Is a directory")):
                code, _, err = self.run_it("-p", "-r", path, "true")
                self.assertEqual(125, code)
                self.assertIn(why, err)
            self.assertEqual(["link"], os.listdir(tmp))
        for options in (("-r", link), ("--poll",)):
            code, _, err = self.run_it("-s", "/no/such/socket", *options, "true")
            self.assertEqual(125, code)
            self.assertIn("add --private", err)

    def test_same_faults_same_failure(self):
        rules = {"seed": 11, "rules": [{"action": "drop", "probability": 0.01},
                                       {"action": "drop", "psn": 1150, "times": 1}]}
        path, seen = self.faults(rules), set()
        for _ in range(TIMES):
            code, out, err = self.run_it("-p", "-f", path, FRAGILE, "0")
            self.assertEqual(3, code, out + err)
            # Numbers of queue pairs and processes are others each time.
            seen.add(out + re.sub(r"0x[0-9a-f]{6} of client \d+ \(pid \d+", "", err))
        self.assertEqual(1, len(seen), seen)
        # Who failed first is a WRITE, and the reason names its packet: they begin with PSN 1000.
        write, psn = re.search(r"write (\d+) failed.*at PSN (\d+): ", seen.pop(), re.S).groups()
        self.assertEqual(1000 + int(write), int(psn))


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
