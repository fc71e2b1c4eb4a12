# SPDX-License-Identifier: BSD-3-Clause
"""What a new user tries, against a real dataplane: what the programs take, say and leave behind."""
import contextlib
import fcntl
import os
import resource
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import prometheus  # noqa: E402
import tap  # noqa: E402
from daemon import ROCELANE, WAIT_S, Case, run  # noqa: E402
import jsonrpc  # noqa: E402

EAL_PATIENCE_S = 1      # main.c

NO_FLOCK = """
import errno, os, seccomp, sys
f = seccomp.SyscallFilter(seccomp.ALLOW)
f.add_rule(seccomp.ERRNO(errno.ENOLCK), "flock")
f.load()
os.execv(sys.argv[1], sys.argv[1:])
"""


class Metrics(Case):
    GAUGES = ("cm_listeners", "cm_connections", "cm_half_open")

    def test_metrics_of_a_dataplane(self):
        """Every family has help and type, sum() over labels is right, and states are gauges."""
        p = self.start(**self.pair())
        families = prometheus.parse(self.ctl("metrics"))
        self.assertEqual([], prometheus.faults_of(families))
        for name, f in families.items():
            self.assertTrue(f.help and f.samples and "does not know" not in f.help, name)
        total = self.json("stat", "show")
        for name, value in total.items():
            if not name.startswith("control_"):     # frames of others come while we look
                family = name if name in self.GAUGES else f"{name}_total"
                got = sum(families[f"rocelane_{family}"].samples.values())
                self.assertLessEqual(got, value, name)
        states = {dict(k)["state"]: n for k, n in families["rocelane_qps"].samples.items()}
        self.assertEqual(2, states.pop("RTS"))
        self.assertEqual({"RESET", "INIT", "RTR", "SQD", "SQE", "ERR"}, set(states))
        self.assertEqual({0}, set(states.values()))
        self.ctl("qp", "modify", 17, "qp_state", "ERR")
        self.ctl("qp", "modify", 18, "qp_state", "RESET")
        self.assertEqual({"RESET": 1, "INIT": 0, "RTR": 0, "RTS": 0, "SQD": 0, "SQE": 0, "ERR": 1},
                         {dict(k)["state"]: n for k, n in prometheus.parse(
                             self.ctl("metrics"))["rocelane_qps"].samples.items()})
        self.assertEqual([1, 1], list(families["rocelane_port_up"].samples.values()))
        self.stops(p)


class Posting(Case):

    def test_sizes_are_taken_where_mr_fill_takes_them(self):
        p = self.start(**self.pair())
        self.ctl("mr", "fill", "mr0", "1M", "64K", 7)
        self.ctl("post", "recv", 18, "mr", "mr1", "offset", "1M", "length", "64K", "wr_id", 5)
        self.ctl("post", "send", 17, "opcode", "SEND", "mr", "mr0", "offset", "1M",
                 "length", "64K", "wr_id", 6)
        done = []
        self.until(lambda: done.extend(self.json("cq", "poll", "cq0")) or len(done) >= 2)
        self.assertEqual({(5, "SUCCESS", 65536), (6, "SUCCESS", 0)},
                         {(c["wr_id"], c["status"], c["byte_len"] if c["qp_num"] == 18 else 0)
                          for c in done})
        crc = [self.json("mr", "crc", mr, "1M", "64K")["crc32"] for mr in ("mr0", "mr1")]
        self.assertEqual(crc[0], crc[1])
        self.ctl("post", "recv", 18, "mr", "mr1", "length", "64 K", code=1)
        self.assertIn("length", self.err)
        self.stops(p)

    def test_a_request_completes_unless_told_not_to(self):
        """As a person expects who polls afterwards; send_flags '' is for who does not."""
        p = self.start(**self.pair())
        words = ("post", "send", 17, "opcode", "RDMA_WRITE", "mr", "mr0", "length", 8,
                 "remote_addr", "0x10000", "rkey", "0x1101", "wr_id")
        self.ctl(*words, 1, "send_flags", "")
        self.ctl(*words, 2)
        done = []
        self.until(lambda: done.extend(self.json("cq", "poll", "cq0")) or done)
        self.assertEqual([2], [c["wr_id"] for c in done])
        self.ctl("cq", "poll", "cq0")
        self.assertIn("SIGNALED", self.err)
        self.stops(p)

    def test_a_datagram_says_where_it_goes(self):
        """As long as no neighbour has answered there is nowhere to send it."""
        p = self.start(pds=["pd0"], cqs=[{"name": "cq0"}],
                       mrs=[{"name": "mr0", "pd": "pd0", "length": "1M",
                             "access": ["LOCAL_WRITE"]}])
        for number, port in ((17, "pa"), (18, "pb")):
            self.ctl("qp", "create", number, "qp_type", "UD", "port", port, "pd", "pd0",
                     "send_cq", "cq0", "recv_cq", "cq0", "qp_state", "RTS", "sq_psn", 0,
                     "qkey", "0x%x" % number)
        self.ctl("post", "recv", 18, "mr", "mr0", "length", "4K", "wr_id", 5)
        self.ctl("mr", "fill", "mr0", "8K", 64, 7)
        words = ("post", "send", 17, "opcode", "SEND", "mr", "mr0", "offset", "8K", "length", 64,
                 "ud.remote_qpn", 18, "ud.remote_qkey", "0x12", "ud.ah_attr.dest_ip")
        self.assertEqual("posted 0\n", self.ctl(*words, "10.77.0.9", code=1))
        self.assertIn("10.77.0.9", self.err)
        self.ctl(*words[:-1], "ud.ah_attr.hop_limit", 3, code=1)
        self.assertIn("dest_ip", self.err)
        self.assertEqual("posted 1\n", self.ctl(*words, "10.77.0.2"))
        done = []
        self.until(lambda: done.extend(self.json("cq", "poll", "cq0")) or len(done) >= 2)
        self.assertEqual({("SUCCESS", "SEND"), ("SUCCESS", "RECV")},
                         {(c["status"], c["opcode"]) for c in done})
        got, = (c for c in done if c["opcode"] == "RECV")
        self.assertEqual((5, 18, 40 + 64, 17),
                         tuple(got[k] for k in ("wr_id", "qp_num", "byte_len", "src_qp")))
        self.assertEqual(*(self.json("mr", "crc", "mr0", at, 64)["crc32"] for at in (40, "8K")))
        self.ctl("cm", "listen", "feeder", "port", "pb", "service_port", 7, "qp.qp_type", "RC",
                 "qp.pd", "pd0", "qp.send_cq", "cq0", "qp.recv_cq", "cq0",
                 "qp.recv_feed.buffers", 4, "qp.recv_feed.size", 4096)
        self.stops(p)

    def test_read_beyond_the_end_prints_no_byte(self):
        p = self.start(**self.pair())
        self.assertEqual("", self.ctl("mr", "read", "mr0", 0, "3M", code=1))
        self.assertRegex(self.err, "beyond the region's 2097152 bytes")
        self.assertEqual(131072, len(self.ctl("mr", "read", "mr0", 0, "2M").splitlines()))
        self.stops(p)


class Looking(Case):

    def test_looking_at_errors_and_events_leaves_them(self):
        p = self.start(error_buffer={"entries": 64}, **self.pair())
        self.ctl("post", "send", 17, "opcode", "RDMA_WRITE", "mr", "mr0", "length", 8,
                 "remote_addr", "0x10000", "rkey", "0x9999")
        self.until(lambda: self.json("qp", "show", 17)["qp_state"] == "ERR")
        first = self.json("event", "list")
        self.assertIn("QP_ACCESS_ERR", [e["event_type"] for e in first])
        self.assertEqual(first, self.json("event", "list"))
        self.assertEqual(len(first), self.json("event", "clear")["cleared"])
        self.assertEqual([], self.json("event", "list"))
        errors = self.json("error", "show")
        self.assertEqual(errors, self.json("error", "show"))
        self.assertEqual(len(errors), self.json("error", "clear")["cleared"])
        self.assertEqual([], self.json("error", "show"))
        self.stops(p)


class States(Case):

    def test_a_transition_that_is_none_says_what_is_allowed(self):
        p = self.start(**self.pair())
        self.ctl("qp", "modify", 17, "qp_state", "RESET")
        for state, way in (("RTS", "INIT, RTR, RTS"), ("SQD", "INIT, RTR, RTS, SQD"),
                           ("ERR", "INIT, ERR")):
            self.ctl("qp", "modify", 17, "qp_state", state, code=1)
            self.assertIn("cannot go from RESET to " + state, self.err)
            self.assertIn("from RESET it may go to RESET or INIT", self.err)
            self.assertIn("the way to %s is %s" % (state, way), self.err)
        self.ctl("qp", "modify", 18, "qp_state", "SQE", code=1)
        self.assertIn("from RTS it may go to RESET, RTS, SQD or ERR", self.err)
        self.assertNotIn("the way to", self.err)        # an RC QP never gets there
        self.stops(p)

    def test_an_attribute_that_is_not_taken_says_where_it_is(self):
        """QP-03: the transitions that take it, one or several; of many attributes the first."""
        p = self.start(**self.pair())
        for args, words in (
                (("timeout", 10), "timeout; timeout is for RTR to RTS and SQD to SQD"),
                (("sq_psn", 1, "timeout", 10), "timeout, sq_psn; timeout is for RTR to RTS"),
                (("sq_psn", 1), "sq_psn; sq_psn is for RTR to RTS"),
                (("pkey", 1), "pkey; pkey is for RESET to INIT, INIT to INIT, INIT to RTR and "
                 "SQD to SQD"),
                (("qkey", 1), "qkey")):
            self.ctl("qp", "modify", 17, *args, code=1)
            self.assertIn("QP 17 from RTS to RTS does not take " + words, self.err)
        self.assertNotIn("is for", self.err)            # no RC QP takes a Q_Key
        self.ctl("qp", "modify", 17, "qp_state", "SQD")
        self.ctl("qp", "modify", 17, "timeout", 10)
        self.ctl("qp", "modify", 17, "qp_state", "RTS")
        self.assertEqual(10, self.json("qp", "show", 17)["timeout"])
        self.stops(p)


class Workers(Case):

    def test_a_worker_that_is_none_says_which_is_the_last(self):
        """Workers count from 0: "there is 1" had left open which one that is."""
        p = self.start(**self.pair())
        for args in (("qp", "modify", 17, "worker", 1),
                     ("qp", "create", 40, "qp_type", "RC", "port", "pa", "pd", "pd0", "send_cq",
                      "cq0", "recv_cq", "cq0", "worker", 1)):
            self.ctl(*args, code=1)
            self.assertIn("worker 1 does not exist: the last one is 0", self.err)
        with self.assertRaisesRegex(jsonrpc.RpcError, "1 does not exist: the last one is 0"):
            jsonrpc.call(self.socket, "stats", scope="worker", worker=1)
        self.stops(p)


class Devices(Case):

    def test_a_pair_as_vdev_says_that_pairs_are_made_by_themselves(self):
        """In the file with its place, before anything starts; on the command line too."""
        for eal, place in ((["--vdev=net_pair0a"], "/eal/7"),
                           (["--vdev", "net_pair1b"], "/eal/8")):
            code, out = run(ROCELANE, "--config", self.config(eal=eal), "--check")
            self.assertEqual(2, code)
            self.assertRegex(out, r"config\.json:1: %s: net_pair\d[ab] .*made by itself" % place)
            self.assertIn('"device"', out)
        code, out = run(ROCELANE, "--vdev=net_pair0a", "--", "--config", self.config())
        self.assertEqual(2, code)
        self.assertRegex(out, r"--vdev=net_pair0a: .*made by itself")
        self.assertNotIn("EAL:", out)

    def test_a_device_that_no_driver_knows(self):
        """EAL's line names it. Hugepages and root are another matter."""
        code, out = run(ROCELANE, "--config", self.config(eal=["--vdev=net_nothing0"]))
        self.assertEqual(1, code, out)
        self.assertIn('no driver knows a device of "eal": EAL\'s line above names it', out)
        self.assertNotIn("hugepages", out)

    def test_a_pair_takes_each_mtu_without_a_warning(self):
        """It moves frames as pointers, and its driver has no MTU to set."""
        p = self.start(ports=[{"name": "p" + end, "device": "net_pair0" + end, "prefix": 24,
                               "mac": "02:00:00:00:00:0" + n, "ipv4": "10.77.0." + n, "mtu": 4200}
                              for end, n in (("a", "1"), ("b", "2"))])
        self.stops(p)
        self.assertNotIn("mtu of", self.said())

    def test_a_stray_word_among_eals_arguments(self):
        """An option whose dashes were forgotten had no effect, and nobody said so."""
        for eal, line in ((["vdev=net_null0"], []), ([], ["no-telemetry", "--"])):
            code, out = run(ROCELANE, *line, "--config", self.config(eal=eal))
            self.assertEqual(1, code, out)
            self.assertIn('"%s" among the arguments of "eal"' % (eal + line)[0], out)


class TwoAtOnce(Case):
    """Who starts while another one does must not take its socket for a stale one."""

    def halfway(self):
        """A folder as another dataplane has it between bind() and listen()."""
        folder = os.open(self.dir, os.O_RDONLY | os.O_DIRECTORY)
        self.addCleanup(os.close, folder)
        fcntl.flock(folder, fcntl.LOCK_EX)
        first = socket.socket(socket.AF_UNIX)
        self.addCleanup(first.close)
        first.bind(self.socket)
        return folder, first

    def test_the_second_one_waits_and_ends(self):
        folder, first = self.halfway()
        inode = os.stat(self.socket).st_ino
        p = subprocess.Popen([ROCELANE, "--config", self.config()], stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, stdin=subprocess.DEVNULL)
        self.addCleanup(p.stdout.close)
        self.addCleanup(self.end, p)

        def looks():
            """It has opened the folder, or has gone on without."""
            self.assertIsNone(p.poll())
            self.assertEqual(inode, os.stat(self.socket).st_ino, "it took the other's socket")
            at = "/proc/%d/fd/" % p.pid
            for fd in os.listdir(at):
                with contextlib.suppress(FileNotFoundError):
                    if os.readlink(at + fd) == self.dir:
                        return True
            return False
        self.until(looks)
        first.listen()
        fcntl.flock(folder, fcntl.LOCK_UN)
        self.assertEqual(1, p.wait(WAIT_S))
        self.assertIn("another rocelane is listening", p.stdout.read())

    def test_nobody_can_keep_it_from_starting(self):
        """Everybody who can read a folder can lock it."""
        _, first = self.halfway()
        first.close()
        self.stops(self.start())


    def test_a_folder_without_locks(self):
        """As some network filesystems have it: nobody is to be waited for, 5 s here."""
        took = []
        while not took or (took[-1] > 5 and len(took) < 3):     # the machine may be busy
            began = time.monotonic()
            p = self.start(("/usr/bin/python3", "-c", NO_FLOCK))
            took.append(time.monotonic() - began)
            self.stops(p)
        self.assertLess(took[-1], 5, took)


class Bounds(Case):
    """Limits that a shell or a service manager has set (setrlimit)."""

    def test_too_few_descriptors(self):
        """However far it comes: whoever ends it says why."""
        code, descriptors = 1, 8
        while code != 0:
            code, out = run("bash", "-c", 'ulimit -n %d; exec "$0" --config "$1" --duration 0.1'
                            % descriptors, ROCELANE, self.config())
            self.assertIn(code, (0, 1), (descriptors, out))
            self.assertTrue(code == 0 or "rror" in out, (descriptors, code, out))
            descriptors += 1
            self.assertLess(descriptors, 64)

    def test_no_thread_for_a_connection(self):
        """It waits until there is one; the log says what it waits for."""
        other = []
        if os.geteuid() == 0:                   # who is not bound by it
            other = ["setpriv", "--reuid=65533", "--regid=65533", "--clear-groups"]
            os.chown(self.dir, 65533, 65533)
        p = self.start(wrapper=other)
        subprocess.run([*other, "prlimit", "--pid=%d" % p.pid, "--nproc=1:"], check=True)
        self.ctl("-t", "0.5", "version", code=1)
        self.until(lambda: "no thread for a connection" in self.said())
        self.assertIn("ulimit -u", self.said())
        most = resource.getrlimit(resource.RLIMIT_NPROC)[1]     # it has ours
        subprocess.run([*other, "prlimit", "--pid=%d" % p.pid, "--nproc=%s:" % (
            "unlimited" if most == resource.RLIM_INFINITY else most)], check=True)
        self.until(self.answers)
        self.stops(p)
        self.assertNotIn("their client sent", self.said())

    def test_no_longer_files(self):
        """A file at its limit (SIGXFSZ) is as a full disk: told, and no end of the dataplane."""
        code, out = run("bash", "-c", 'ulimit -f 0; exec "$0" --config "$1" --duration 0.1',
                        ROCELANE, self.config())
        self.assertTrue(code == 0 or (code == 1 and "rror" in out), (code, out))
        p = self.start(error_buffer={"pcapng": self.at("drops.pcapng")}, **self.pair())
        resource.prlimit(p.pid, resource.RLIMIT_FSIZE, (1000, 1000))
        self.ctl("impair", "set", "pb", "action", "corrupt", "probability", "1")
        self.ctl("post", "send", 17, "opcode", "RDMA_WRITE", "mr", "mr0", "length", "64K",
                 "remote_addr", "0x10000", "rkey", "0x1101")
        self.until(lambda: "File too large" in self.said())
        self.assertTrue(self.json("error", "show"))
        self.stops(p)

    @unittest.skipIf(os.geteuid() != 0, "root's dataplane, in somebody else's folder")
    def test_what_stays_in_the_folder_of_another_user_is_told(self):
        """Without its capabilities root removes and renames nothing there."""
        os.chmod(self.dir, 0o755)
        os.chown(self.dir, 65534, 65534)
        self.stops(self.start())
        self.assertEqual(os.path.exists(self.socket), "%s stays: " % self.socket in self.said())

    def test_the_file_of_drops_is_begun_anew(self):
        """In the sandbox: a call that it forbids ends the file."""
        path = self.at("drops.pcapng")
        p = self.start(error_buffer={"pcapng": path, "pcapng_size": 65536},
                       **self.pair(qp_type="UC", qp_access_flags=["REMOTE_WRITE"]))
        self.ctl("impair", "set", "pb", "action", "corrupt", "probability", "1")
        for _ in range(2):      # the second file becomes FILE.1, too
            while not os.path.exists(path + ".1"):
                self.ctl("post", "send", 17, "opcode", "RDMA_WRITE", "mr", "mr0", "length", "64K",
                         "remote_addr", "0x10000", "rkey", "0x1101", "send_flags", "")
            self.until(lambda: os.path.exists(path) and os.path.getsize(path) > 0)
            self.assertEqual(0o600, stat.S_IMODE(os.stat(path).st_mode))
            os.unlink(path + ".1")
        self.stops(p)
        self.assertNotIn("cannot be made anew", self.said())


class Alarms(Case):

    def test_an_alarm_that_it_was_started_with_ends_it(self):
        """`perl -e 'alarm 60; exec @ARGV' rocelane ...` is a limit of time."""
        with open(self.at("log"), "w", encoding="ascii") as out:
            p = subprocess.Popen([ROCELANE, "--config", self.config()], stdin=subprocess.DEVNULL,
                                 stdout=out, stderr=out, preexec_fn=lambda: signal.alarm(2))
        self.addCleanup(self.end, p)
        self.assertEqual(0, p.wait(WAIT_S))


class Folders(Case):
    """What is /run/dpdk for a service: a place that no other test's dataplane sweeps."""

    def setUp(self):
        super().setUp()
        self.base = os.path.join(self.dir, "dpdk")
        self.names = iter("rl%dx%d" % (os.getpid(), n) for n in range(1000))

    def folder(self, name):
        return os.path.join(self.base, name)

    def kept(self, name):
        self.addCleanup(shutil.rmtree, self.folder(name), True)
        return name

    def start_in(self, name, shared):
        self.kept(name)
        self.socket = self.at("sock-" + name)
        p = self.start(eal=["--file-prefix=" + name], shared=shared)
        self.assertTrue(os.path.isdir(self.folder(name)))
        return p

    def test_a_run_leaves_no_folder(self):
        for shared in (False, True):
            with self.subTest(shared=shared):
                name = next(self.names)
                self.stops(self.start_in(name, shared))
                self.assertFalse(os.path.exists(self.folder(name)))

    def test_the_folder_of_a_dead_one_goes_with_the_next_start(self):
        for shared in (False, True):
            with self.subTest(shared=shared):
                dead = next(self.names)
                p = self.start_in(dead, shared)
                p.kill()
                p.wait()
                self.assertTrue(os.path.isdir(self.folder(dead)))
                self.stops(self.start_in(next(self.names), shared))
                self.assertFalse(os.path.exists(self.folder(dead)))

    def test_nothing_is_left_of_those_that_were_killed(self):
        """One service is started again and again, by the same name."""
        for shared in (False, True):
            with self.subTest(shared=shared):
                name = next(self.names)
                for _ in range(2):
                    p = self.start_in(name, shared)
                    p.kill()
                    p.wait()
                p = self.start_in(name, shared)
                marks = [f for f in os.listdir(self.folder(name)) if f.startswith("rocelane.")]
                self.assertEqual(["rocelane.%d" % p.pid], marks)
                self.stops(p)
                self.assertFalse(os.path.exists(self.folder(name)))

    def ended_in_time(self, path, made):
        """A signal when EAL has `made` this. @return False: EAL took longer than it is given."""
        p = subprocess.Popen([ROCELANE, "--config", path], stdout=subprocess.DEVNULL,
                             stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(self.end, p)
        self.until(lambda: os.path.exists(made))
        began = time.monotonic()
        p.terminate()
        self.assertEqual(0, p.wait(WAIT_S))
        self.assertFalse(os.path.exists(self.socket))
        return time.monotonic() - began < EAL_PATIENCE_S

    def test_a_signal_while_eal_starts_leaves_no_folder(self):
        name = self.kept(next(self.names))
        path = self.config(eal=["--file-prefix=" + name], shared=True)
        for made in ("", "config", "fbarray_memzone"):
            for _ in range(20):     # where others keep the CPUs busy, one of them is in time
                if self.ended_in_time(path, os.path.join(self.folder(name), made)):
                    self.assertFalse(os.path.exists(self.folder(name)))
                    break
                shutil.rmtree(self.folder(name), True)
            else:
                self.skipTest("no start of EAL is in time")

    def test_folders_of_others_stay(self):
        """Of a dataplane that lives, even if it stands still, and of programs that are not ours."""
        for shared in (False, True):
            alive, other, mixed = (next(self.names) for _ in range(3))
            p = self.start_in(alive, shared)
            before = sorted(os.listdir(self.folder(alive)))
            for name, files in ((other, ["config", "fbarray_memzone"]),
                                (mixed, ["config", "rocelane.1", "theirs"])):
                os.mkdir(self.folder(self.kept(name)))
                for f in files:
                    open(os.path.join(self.folder(name), f), "w", encoding="ascii").close()
            p.send_signal(signal.SIGSTOP)
            self.stops(self.start_in(next(self.names), shared))
            p.send_signal(signal.SIGCONT)
            self.assertEqual(before, sorted(os.listdir(self.folder(alive))))
            self.assertEqual(2, len(os.listdir(self.folder(other))))
            self.assertEqual(3, len(os.listdir(self.folder(mixed))))
            self.stops(p)

    def test_the_default_folder_stays(self):
        """Another one may be starting in it: EAL fails if it goes away then."""
        self.stops(self.start(eal=["--no-shconf"]))
        self.assertTrue(os.path.isdir(self.folder("rte")))

    def test_two_in_one_folder(self):
        """Without shared files two can have one name: who ends first leaves the folder."""
        name = next(self.names)
        first, where = self.start_in(name, False), self.socket
        self.socket = self.at("second")
        second = self.start(eal=["--file-prefix=" + name])
        self.stops(first)
        self.assertEqual(1, len(os.listdir(self.folder(name))))
        self.stops(second)
        self.assertFalse(os.path.exists(self.folder(name)))
        self.assertFalse(os.path.exists(where))


tap.main()
