# SPDX-License-Identifier: BSD-3-Clause
"""The installed binaries are built as Debian builds its own: what an overrun cannot do with them.

BINARIES are the files. GUARDED is "yes" where the stack is guarded, FORTIFY where glibc's checked
calls are to be found: sanitizers have checks of their own, without optimization there are none.
"""
import os
import re
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import tap  # noqa: E402

BINARIES = os.environ["BINARIES"].split(os.pathsep)
FORTIFY = os.environ["FORTIFY"] == "yes"
GUARDED = os.environ["GUARDED"] == "yes"


def readelf(option, path):
    return subprocess.run(["readelf", "-W", option, path], stdout=subprocess.PIPE, text=True,
                          timeout=60, check=True).stdout


def is_program(path):
    return "INTERP" in readelf("-l", path)


class Hardening(unittest.TestCase):

    def each(self, look):
        self.assertTrue(BINARIES)
        for path in BINARIES:
            with self.subTest(os.path.basename(path)):
                look(path)

    def test_addresses_are_random(self):
        def look(path):
            self.assertRegex(readelf("-h", path), r"Type:\s+DYN ")
            if is_program(path):
                self.assertRegex(readelf("-d", path), r"FLAGS_1.*\bPIE\b")
        self.each(look)

    def test_tables_of_the_linker_are_read_only(self):
        def look(path):
            self.assertIn("GNU_RELRO", readelf("-l", path))
            self.assertRegex(readelf("-d", path), r"FLAGS_1.*\bNOW\b")
        self.each(look)

    def test_no_memory_is_writable_and_executable(self):
        def look(path):
            flags = re.findall(r"^  (LOAD|GNU_STACK) .*0x[0-9a-f]+ ([RWE ]{3}) 0x",
                               readelf("-l", path), re.M)
            self.assertIn("GNU_STACK", dict(flags))
            for kind, flag in flags:
                self.assertFalse("W" in flag and "E" in flag, (kind, flag))
        self.each(look)

    def test_the_stack_is_guarded(self):
        self.each(lambda path: self.assertEqual(
            GUARDED, "__stack_chk_fail" in readelf("--dyn-syms", path)))

    def test_copies_are_checked(self):
        """At least the one of the C library that prints into a buffer."""
        def look(path):
            names = re.findall(r"\b__\w+_chk\b", readelf("--dyn-syms", path))
            self.assertEqual(FORTIFY, bool(names), names)
        self.each(look)


tap.main()
