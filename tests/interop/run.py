#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Boot a guest once and run the interoperation tests against it: TAP on standard output.

usage: run.py [TEST...]   (MODULE.CLASS.test, MODULE.CLASS, MODULE, or a part of a test's name)

environment: ROCELANE, the program; VERBOSE=1 tells how long each test took; INTEROP_ACCEL=kvm.
Without QEMU, the guest's packages, /dev/net/tun or a network namespace (as root, or by a user
namespace) it says so and counts as skipped.
"""
import os
import shutil
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
for folder in ("cli", "realtime", "pylib", "interop"):
    sys.path.insert(0, os.path.join(os.path.dirname(HERE), folder))

import bench  # noqa: E402
import image  # noqa: E402
import netns  # noqa: E402
import tap  # noqa: E402

MODULES = ("test_operations", "test_loss", "test_gaps", "test_goodput", "test_scenes",
           "test_perftest", "test_cm", "test_debian", "test_mpi")


def skip(why):
    netns.skip(why, status=0)       # its plan tells meson


def is_named(test_id, name):
    """The name of a module is one: test_loss is not test_cm.BadWire.test_loss_of_1_percent."""
    if name.split(".")[0] in MODULES:
        return (test_id + ".").startswith(name + ".")
    return name in test_id


def prepare():
    """(kernel, initramfs), inside of a namespace of our own; or skip."""
    if shutil.which("qemu-system-x86_64") is None:
        skip("qemu-system-x86_64 is not installed (scripts/setup installs it)")
    try:
        netns.check()               # before anything is downloaded
        netns.need_device("/dev/net/tun")
        made = image.build()[:2]
        bench.enter_namespace()
    except netns.NoNamespace as e:
        skip(e)
    except image.ImageError as e:
        skip("no guest: %s" % str(e).strip().replace("\n", " "))
    return made


def main():
    tests = list(tap.cases(unittest.defaultTestLoader.loadTestsFromNames(MODULES)))
    if len(sys.argv) > 1:
        tests = [t for t in tests if any(is_named(t.id(), name) for name in sys.argv[1:])]
    made = prepare()
    print("1..%d" % len(tests), flush=True)
    b = bench.InteropCase.bench = bench.Bench(made)
    print("# guest: Linux %s, up in %.1f s" % (b.guest.kernel, b.boot_s), flush=True)
    try:
        with open(os.devnull, "w", encoding="ascii") as quiet:
            result = unittest.TextTestRunner(stream=quiet, resultclass=tap.Tap).run(
                unittest.TestSuite(tests))
    finally:
        rc = b.close()
    left = b.left_behind()
    if left:
        print("# left behind: %s" % ", ".join(left))
    if rc != 0:
        print("# rocelane ended with status %r\n# %s" % (rc, b.stderr.replace("\n", "\n# ")))
    sys.exit(not (result.wasSuccessful() and rc == 0 and not left))


if __name__ == "__main__":
    main()
