# SPDX-License-Identifier: BSD-3-Clause
"""Open MPI's mpirun with a rank here, over rocelane-run, and one there, over Soft-RoCE."""
import json
import os
import select
import socket
import subprocess
import tempfile
import time

import image
from bench import GUEST_IP
from debian import RUN, WAIT_S
from test_debian import UCX, UCX_SOFT_ROCE, Programs
from wire import TO_GUEST, TO_HOST

HERE = os.path.dirname(os.path.abspath(__file__))
# One way for everything that is not the ranks' own: the kernels' TCP.
OPTIONS = ("--allow-run-as-root --mca oob_tcp_if_include 10.77.0.0/24 --mca pml ucx "
           "--mca osc ucx --mca btl self --mca btl_base_warn_component_unused 0").split()
LEAST = 8 << 20     # bytes of messages each way


def executable(path, flags):
    return os.open(path, flags, 0o755)


class Mpi(Programs):
    def start_there(self, line):
        """A command of mpirun's for the guest. @return what ssh.py says of it."""
        status, out = self.theirs_ended(self.theirs("sh", "-c", " ".join(line), log="mpi"), 60,
                                        log="mpi")
        return json.dumps([status, out]).encode() + b"\n"

    def serve(self, listener, p):
        """Until mpirun has ended: start in the guest what it wants there."""
        end = time.monotonic() + WAIT_S
        while p.poll() is None and time.monotonic() < end:
            if select.select([listener], [], [], 0.05)[0]:
                conn = listener.accept()[0]
                with conn, conn.makefile("r", encoding="utf-8") as f:
                    conn.sendall(self.start_there(json.loads(f.readline())))

    def mpirun(self, *words):
        with tempfile.TemporaryDirectory() as tmp, socket.socket(socket.AF_UNIX) as listener:
            path = os.path.join(tmp, "socket")
            with open(os.path.join(tmp, "ssh"), "w", opener=executable, encoding="ascii") as f:
                f.write("#!/bin/sh\nexec /usr/bin/python3 -B %s/ssh.py \"$@\"\n" % HERE)
            listener.bind(path)
            listener.listen()
            p = subprocess.Popen(
                ["mpirun", *OPTIONS, *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT, text=True, env=dict(
                    os.environ, INTEROP_SSH=path, TMPDIR=tmp,
                    PATH=tmp + ":" + os.environ["PATH"]))
            self.addCleanup(self.ours_ended, p, 0)
            self.serve(listener, p)
            return self.ours_ended(p, 0)

    def test_two_hosts(self):
        """Messages and one-sided writes and reads of 1 byte to 1 MiB, every byte looked at."""
        more = [w for setting in UCX + ("UCX_TLS=rc_verbs,ud_verbs,self",)
                for w in ("-x", setting)]
        there = [w for setting in (UCX_SOFT_ROCE, "UCX_NET_DEVICES=rxe0:1",
                                   "UCX_IB_GID_INDEX=%d" % self.gid(GUEST_IP))
                 for w in ("-x", setting)]
        ends = [["-n", "1", "-H", "localhost", *more, "-x", "UCX_NET_DEVICES=p0:1", RUN, "-s",
                 self.bench.process.socket_path, os.path.join(image.folder(), "mpi-pair")],
                ["-n", "1", "-H", GUEST_IP, *more, *there, "/bin/mpi-pair"]]
        for guest_is in (1, 0):
            with self.subTest(guest_is_rank=guest_is):
                self.bench.wire.clear()
                status, out = self.mpirun(*ends[1 - guest_is], ":", *ends[guest_is])
                self.assertEqual(0, status, out)
                self.assertEqual((2, 0), (out.count(": good"), out.count("bad")), out)
                # It was by RoCE.
                for to in (TO_GUEST, TO_HOST):
                    self.assertLess(LEAST, sum(len(s.raw) for s in self.bench.wire.frames()
                                               if s.to == to))
