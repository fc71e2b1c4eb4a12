# SPDX-License-Identifier: BSD-3-Clause
"""unittest as TAP: one line a test, so that each counts."""
import os
import sys
import unittest


class Tap(unittest.TextTestResult):
    def __init__(self, *args):
        super().__init__(*args)
        self.bad = set()

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad.add(test.id())

    def stopTest(self, test):
        super().stopTest(test)
        for failed, text in self.failures + self.errors:
            if getattr(failed, "test_case", failed) is test:
                self.bad.add(test.id())
                print("\n".join("# " + line for line in text.splitlines()))
        name = test.id().split(".", 1)[1]
        print(("not ok" if test.id() in self.bad else "ok"), self.testsRun, "-", name, flush=True)


def main():
    """Run the tests of the program's own module."""
    suite = unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"])
    print(f"1..{suite.countTestCases()}", flush=True)
    with open(os.devnull, "w", encoding="ascii") as quiet:
        result = unittest.TextTestRunner(stream=quiet, resultclass=Tap).run(suite)
    sys.exit(not result.wasSuccessful())
