#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Programs of Debian that move other people's data: fio, uDAPL, QEMU, tgt and libiscsi (iSER)."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from programs import TIMEOUT, free_port, installed, listens, run, start, unpack

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "pylib"))
import jsonrpc  # noqa: E402

RUN = os.environ["ROCELANE_RUN"]
SOCKET = sys.argv.pop(1)
LEFT = "10.77.0.1"
TARGET, INITIATOR = "iqn.2001-04.com.example:disk", "iqn.2001-04.com.example:me"
PORT = 3260         # of the dataplane's own port space
DISK = 8 << 20


def kill_all_of(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        children = f.read().split()
    os.kill(pid, signal.SIGKILL)
    for child in children:
        kill_all_of(int(child))


def kill(proc):
    """The program behind rocelane-run, too, which would outlive it. @return what it printed."""
    if proc.poll() is None:
        kill_all_of(proc.pid)
    return proc.communicate()[0]


# What they read without having written it is not ours to judge (libiscsi's iSER does).
GENTLE = {"MALLOC_PERTURB_": "0"}


def over(program, *args, **more):
    return start(SOCKET, RUN, "-s", SOCKET, installed(program), *args, **GENTLE, **more)


def asks(program, *args, **more):
    return run(SOCKET, RUN, "-s", SOCKET, installed(program), *args, **GENTLE, **more)


class Ended(unittest.TestCase):
    def setUp(self):
        self.tmp = tempfile.TemporaryDirectory()
        self.addCleanup(self.tmp.cleanup)

    def until(self, found, why):
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if found():
                return
            time.sleep(0.02)
        self.fail(why)

    def until_heard(self):
        """Somebody listens at the dataplane."""
        self.until(lambda: jsonrpc.call(SOCKET, "stats")["cm_listeners"] != 0, "nobody listens")

    def ends(self, server, client):
        """Both have ended well. @return what they printed."""
        said = kill(server) if client[0] != 0 else server.communicate(timeout=TIMEOUT)[0]
        self.assertEqual((0, 0), (server.returncode, client[0]), said + client[1])
        return said, client[1]


class Fio(Ended):
    def test_each_verb(self):
        """
        fio's rdma engine: its own server, and what it wrote or read. With verb=send it wants no
        retry after an RNR NAK, and its server may post receives later than its client sends.
        """
        for verb in ("write", "read"):
            with self.subTest(verb=verb):
                port = str(free_port())
                common = ["--ioengine=rdma", f"--port={port}", "--bs=64k", "--size=4m",
                          "--iodepth=16", "--output-format=json"]
                server = over("fio", "--name=serves", *common, "--rw=read")
                self.until_heard()
                client = asks("fio", "--name=asks", *common, "--rw=write", f"--hostname={LEFT}",
                              f"--verb={verb}", "--iodepth_batch_complete=1")
                _, out = self.ends(server, client)
                job = json.loads(out[out.index("{"):])["jobs"][0]
                self.assertEqual((0, 4 << 20),
                                 (job["error"], job["write"]["io_bytes"] + job["read"]["io_bytes"]))


class Iser(Ended):
    def program(self, name):
        """tgt is not installed by scripts/setup: it would start a service. Here it is unpacked."""
        found = shutil.which(name)
        if found is None:
            found = os.path.join(unpack(self.tmp.name, "tgt"), "usr/sbin", name)
        return found

    def admin(self, *words, check=True):
        return subprocess.run([self.program("tgtadm"), "--lld", "iser", *words], check=check,
                              env=dict(os.environ, TGT_IPC_SOCKET=self.ipc),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode

    def serve(self, disk):
        """tgtd stays behind SIGTERM while somebody is logged in."""
        self.ipc = os.path.join(self.tmp.name, "ipc")
        tgtd = over(self.program("tgtd"), "-f", "--iscsi", f"portal=127.0.0.1:{free_port()}",
                    "--iser", f"port={PORT},pool_sz_mb=16", TGT_IPC_SOCKET=self.ipc)
        self.addCleanup(lambda: kill(tgtd))
        self.until(lambda: self.admin("--op", "show", "--mode", "sys", check=False) == 0,
                   "tgtd does not answer")
        self.admin("--op", "new", "--mode", "target", "--tid", "1", "-T", TARGET)
        self.admin("--op", "new", "--mode", "logicalunit", "--tid", "1", "--lun", "1", "-b", disk)
        self.admin("--op", "bind", "--mode", "target", "--tid", "1", "-I", "ALL")
        self.admin("--op", "bind", "--mode", "target", "--tid", "1", "-Q", INITIATOR)
        self.until_heard()

    def test_a_disk(self):
        """CM-45: tgtd listens at IPv4 and at IPv6 apart. A disk is found, measured and read."""
        disk = os.path.join(self.tmp.name, "disk")
        with open(disk, "wb") as f:
            f.truncate(DISK)
        self.serve(disk)
        url = f"iser://{LEFT}:{PORT}/{TARGET}/1"
        code, out = asks("iscsi-inq", "-i", INITIATOR, url)
        self.assertEqual(0, code, out)
        self.assertIn("VIRTUAL-DISK", out)
        code, out = asks("iscsi-readcapacity16", "-i", INITIATOR, url)
        self.assertEqual(0, code, out)
        self.assertIn(f"Total size:{DISK}", out)
        code, out = asks("iscsi-perf", "-i", INITIATOR, "-b", "64", "-m", "8", "-t", "1", url)
        self.assertEqual(0, code, out)
        self.assertRegex(out, r"iops average [1-9]")


class Qemu(Ended):
    def machine(self, name, *more):
        path = os.path.join(self.tmp.name, name)
        proc = over("qemu-system-x86_64", "-M", "pc,accel=tcg", "-m", "32", "-nodefaults",
                    "-display", "none", "-qmp", f"unix:{path},server=on,wait=off", *more)
        self.addCleanup(lambda: kill(proc))
        sock = socket.socket(socket.AF_UNIX)
        self.addCleanup(sock.close)
        self.until(lambda: sock.connect_ex(path) == 0 or proc.poll() is not None, "no QMP")
        self.assertIsNone(proc.poll(), "QEMU ended")
        lines = sock.makefile("rw")
        self.addCleanup(lines.close)
        lines.readline()

        def ask(what, **args):
            lines.write(json.dumps({"execute": what, "arguments": args}) + "\n")
            lines.flush()
            while True:
                answer = json.loads(lines.readline())
                if "event" not in answer:
                    self.assertNotIn("error", answer)
                    return answer["return"]
        ask("qmp_capabilities")
        return proc, ask

    def test_live_migration(self):
        """With memory registered as it is needed, and all of it at once."""
        for pin in (False, True):
            with self.subTest(pin=pin):
                uri = f"rdma:{LEFT}:{free_port()}"
                there, to = self.machine(f"to-{pin}", "-incoming", uri)
                here, at = self.machine(f"from-{pin}")
                for ask in (at, to):
                    ask("migrate-set-capabilities",
                        capabilities=[{"capability": "rdma-pin-all", "state": pin}])
                at("migrate", uri=uri)
                self.until(lambda: at("query-migrate").get("status") in
                           ("completed", "failed", "cancelled"), "the migration does not end")
                self.assertEqual("completed", at("query-migrate")["status"])
                self.until(lambda: to("query-status")["status"] == "running", "it does not run")
                for proc, ask in ((here, at), (there, to)):
                    ask("quit")
                    self.assertEqual(0, proc.wait(TIMEOUT))


class Dapl(Ended):
    def test_both_providers(self):
        """dtest with data compared, by librdmacm and by sockets that carry what verbs need."""
        rows = "".join(f'{kind}-{side} u2.0 nonthreadsafe default {library} dapl.2.0 "{what}" ""\n'
                       for side in ("left", "right")
                       for kind, library, what in (
                           ("cma", "libdaplofa.so.2", "10.77.0.%d 0" % (1 + (side == "right"))),
                           ("scm", "libdaploscm.so.2", f"{side} 1")))
        conf = os.path.join(self.tmp.name, "dat.conf")
        with open(conf, "w", encoding="ascii") as f:
            f.write(rows)
        for kind in ("cma", "scm"):
            with self.subTest(kind=kind):
                words = ["-b", "4096", "-B", "10", "-D"]
                server = over("dtest", "-P", kind + "-left", *words, DAT_OVERRIDE=conf)
                self.until(lambda: listens(15828) or server.poll() is not None,
                           "dtest does not listen")
                client = asks("dtest", "-P", kind + "-right", *words, "-h", "127.0.0.1",
                              DAT_OVERRIDE=conf)
                for said in self.ends(server, client):
                    self.assertIn("DAPL Test Complete. PASSED", said)


if __name__ == "__main__":
    unittest.main()
