#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What is in Debian and nothing here needs but this: MPICH, OpenSHMEM, Gloo, librpma, ibstat,
Valgrind.

Their packages are unpacked, not installed, and a program is built with each. Two of it, each at a
port of its own, move data and look at it.
"""
import os
import subprocess
import tempfile
import unittest

from programs import installed, unpack

RUN = os.environ["ROCELANE_RUN"]
HERE = os.path.dirname(os.path.abspath(__file__))
LIB = "usr/lib/x86_64-linux-gnu"
UCX = {"UCX_TLS": "rc_verbs,ud_verbs,self", "UCX_WARN_UNUSED_ENV_VARS": "n"}
PORTS = ("rocelane0", "rocelane1")
ADDRESSES = ("10.77.0.1", "10.77.0.2")    # as rocelane-run --private has them


class Pairs(unittest.TestCase):
    def setUp(self):
        tmp = tempfile.TemporaryDirectory()
        self.addCleanup(tmp.cleanup)
        self.dir = tmp.name

    def unpack(self, *packages):
        self.root = unpack(self.dir, *packages)

    def at(self, *names):
        return os.path.join(self.root, *names)

    def build(self, source, include, *libraries):
        """What its libraries need themselves is found when it runs."""
        out = os.path.join(self.dir, "pair")
        subprocess.run(["g++" if source.endswith(".cc") else "gcc", "-O1", "-o", out,
                        os.path.join(HERE, source), "-I" + self.at(include),
                        *map(self.at, libraries), "-Wl,--unresolved-symbols=ignore-in-shared-libs"],
                       check=True)
        return out

    def both_are_good(self, *words, **env):
        path = ":".join((self.at(LIB), self.at("usr/lib")))
        done = subprocess.run([RUN, "--private", *words], check=False, text=True, timeout=200,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env=dict(
                                  os.environ, LD_LIBRARY_PATH=path, TMPDIR=self.dir,
                                  PATH=self.at("usr/bin") + ":" + os.environ["PATH"], **env))
        self.assertEqual(0, done.returncode, done.stdout)
        self.assertEqual((2, 0), (done.stdout.count(": good"), done.stdout.count("bad")),
                         done.stdout)

    def test_mpich(self):
        """
        Over UCX, on one host and as if the ranks were on two. On one, memory of a window is a file
        without a name, and MPICH ends where it is refused.
        """
        self.unpack("mpich", "libmpich12", "libmpich-dev", "libslurm38")
        pair = self.build("../interop/mpi_pair.c", "usr/include/x86_64-linux-gnu/mpich",
                          LIB + "/libmpich.so.12")
        ranks = [["-n", "1", "-env", "UCX_NET_DEVICES", port + ":1", pair] for port in PORTS]
        for how in ("MPIR_CVAR_NOLOCAL", "1"), ("UCX_MEM_EVENTS", "n"):
            with self.subTest(how):
                self.both_are_good("mpiexec.hydra", "-launcher", "fork", *ranks[0], ":", *ranks[1],
                                   **dict(UCX, **dict([how])))

    def test_openshmem(self):
        """Open MPI's."""
        self.unpack("libopenmpi3", "libopenmpi-dev")
        pair = self.build("shmem_pair.c", LIB + "/openmpi/include", LIB + "/liboshmem.so.40",
                          LIB + "/libmpi.so.40")
        ranks = [["-n", "1", "-x", "UCX_NET_DEVICES=" + port + ":1", pair] for port in PORTS]
        self.both_are_good(
            "oshrun", "--allow-run-as-root", "--oversubscribe", "--mca", "plm", "isolated", "--mca",
            "pml", "ucx", "--mca", "btl", "^ofi,openib,vader,tcp", "--mca", "osc", "ucx", "--mca",
            "spml", "ucx", *ranks[0], ":", *ranks[1], **UCX)

    def test_ibstat(self):
        """What operators ask for the state of a device: both programs look at its files."""
        self.unpack("infiniband-diags", "libibumad3", "libibmad5", "libibnetdisc5")
        sbin = self.at("usr/sbin")
        done = subprocess.run([RUN, "--private", "sh", "-c", f"{sbin}/ibstat; sh {sbin}/ibstatus"],
                              check=False, text=True, timeout=200, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, LD_LIBRARY_PATH=self.at(LIB)))
        self.assertEqual(0, done.returncode, done.stdout)
        for port in PORTS:
            self.assertRegex(done.stdout, f"CA '{port}'\n"
                             r"\s+CA type: rocelane\n(.*\n)+\s+Firmware version: \d.*\n"
                             r"\s+Hardware version: 0\n(.*\n)+.*State: Active\n")
            self.assertRegex(done.stdout, f"device '{port}' port 1 status:(.*\n)+.*4: ACTIVE\n")

    def test_valgrind(self):
        """Memory of all kinds becomes regions, and is the program's again, also in a child. What
        peers write to it counts as set. Valgrind lets one thread run at a time, by default often
        the same one, however long the other waits."""
        for program in "MEMORY", "OVERLAP", "ARMED":
            with self.subTest(program):
                done = subprocess.run(
                    [RUN, "--private", installed("valgrind"), "-q", "--fair-sched=yes",
                     "--error-exitcode=9", os.environ["VERBS_" + program]],
                    check=False, text=True, timeout=200,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertEqual(0, done.returncode, done.stdout)
                self.assertNotIn("==", done.stdout)

    def test_gloo(self):
        """Its own code for verbs: completion channels, immediate data, a thread that waits."""
        self.unpack("libgloo0", "libgloo-dev", "libhiredis0.14")
        pair = self.build("gloo_pair.cc", "usr/include", "usr/lib/libgloo.so.0")
        meet = os.path.join(self.dir, "meet")
        os.mkdir(meet)
        words = ["%s %d %s %s" % (pair, rank, port, meet) for rank, port in enumerate(PORTS)]
        self.both_are_good("sh", "-c", "%s & %s; a=$?; wait $! && exit $a" % tuple(words))

    def test_librpma(self):
        """Remote persistent memory: connections by librdmacm, flushes, an atomic write."""
        self.unpack("librpma0", "librpma-dev")
        pair = self.build("rpma_pair.c", "usr/include", LIB + "/librpma.so.0")
        both = [f"{pair} {ADDRESSES[0]} 7204 {who}" for who in ("server", "client")]
        self.both_are_good("sh", "-c", "%s & %s; a=$?; wait $! && exit $a" % tuple(both))


if __name__ == "__main__":
    unittest.main()
