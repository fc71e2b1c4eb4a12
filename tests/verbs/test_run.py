#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""rocelane-run: a private dataplane, exit statuses, faults, and what it says of failures.

    test_run.py --long     also what takes long
"""
import importlib.util
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
import unittest.mock

RUN = os.environ["ROCELANE_RUN"]
FRAGILE = os.environ["FRAGILE"]
LONG = "--long" in sys.argv
TIMES = 10 if LONG else 3       # the same faults, the same failure: as often as that


class Run(unittest.TestCase):
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

    def test_devices(self):
        code, out, err = self.run_it("--private", "ibv_devinfo")
        self.assertEqual((0, ""), (code, err))
        self.assertEqual(["rocelane0", "rocelane1"], re.findall(r"hca_id:\s+(\w+)", out))
        self.assertEqual(2, out.count("PORT_ACTIVE"))

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
        self.assertEqual("ready\n", proc.stdout.readline())
        proc.send_signal(signal.SIGTERM)
        out, _ = proc.communicate(timeout=60)
        self.assertEqual((5, "got it\n"), (proc.returncode, out))

    def test_dataplane_ends_with_it(self):
        proc = self.start("-p", "sh", "-c", "echo $PPID; exec sleep 1000")
        proc.stdout.readline()
        children = subprocess.run(["ps", "-o", "pid=,args=", "--ppid", str(proc.pid)],
                                  stdout=subprocess.PIPE, text=True, check=True).stdout
        plane, = re.findall(r"(\d+) \S*rocelane --lcores", children)
        program, = re.findall(r"(\d+) sleep 1000", children)
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

    def test_windows_and_paths(self):
        code, out, err = self.run_it("-p", os.environ["VERBS_WINDOWS"])
        self.assertEqual((0, "windows and paths\n"), (code, out), err)

    def test_XRC_two_processes(self):
        """ibv_open_xrcd() of one file by two processes: one target serves the queues of both."""
        code, out, err = self.run_it("-p", os.environ["VERBS_XRC"])
        self.assertEqual((0, "one target, two processes\n"), (code, out), err)

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

    def test_ordinary_user(self):
        """Without any right."""
        if os.getuid() != 0:
            return      # all of this class runs so
        os.chmod(self.dir.name, 0o777)
        code = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                               "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", RUN,
                               "-p", os.environ["VERBS_MEMORY"]], env=self.env, check=False,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.assertEqual((0, "all kinds of memory\n"), (code.returncode, code.stdout),
                         code.stderr)

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
        for word in ("bounce", "Convert", "refuse "):
            self.env["ROCELANE_MR"] = word
            code, _, err = self.run_it("-p", FRAGILE, "7")
            self.assertEqual(1, code, word)
            self.assertIn(f"ROCELANE_MR={word} is not known: convert or refuse", err)
        for word in ("convert", ""):
            self.env["ROCELANE_MR"] = word
            self.assertEqual(0, self.run_it("-p", FRAGILE, "7")[0], word)

    def test_why(self):
        """ROCELANE_WHY: what a program does not print."""
        self.env["ROCELANE_WHY"] = "1"
        _, _, err = self.run_it("-p", os.environ["VERBS_WINDOWS"])
        self.assertRegex(err, "(?m)^rocelane: ibv_dereg_mr: Device or resource busy .*windows")

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
            return      # by hand: test_run.py --long
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


if __name__ == "__main__":
    unittest.main(argv=[a for a in sys.argv if a != "--long"])
