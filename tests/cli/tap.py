# SPDX-License-Identifier: BSD-3-Clause
"""unittest as TAP: one line a test, so that each counts."""
import os
import sys
import unittest


def brief(failed, text):
    """What failed and why, in a line: a log may have lost the beginning of a long message."""
    why = next((line for line in text.splitlines()[1:] if not line.startswith(" ")), "")
    return "%s: %s" % (failed, why)


class Tap(unittest.TextTestResult):
    parts = 1       # of a test's id that its line leaves out: the module

    def __init__(self, *args):
        super().__init__(*args)
        self.bad = set()

    def addSubTest(self, test, subtest, err):
        super().addSubTest(test, subtest, err)
        if err is not None:
            self.bad.add(test.id())

    def addError(self, test, err):
        super().addError(test, err)
        if not isinstance(test, unittest.TestCase):     # of a class: its tests have no lines
            print("\n".join("# " + line for line in self.errors[-1][1].splitlines()))
            print("# %s" % test.id(), flush=True)

    def stopTest(self, test):
        super().stopTest(test)
        for failed, text in self.failures + self.errors:
            if getattr(failed, "test_case", failed) is test:
                self.bad.add(test.id())
                print("\n".join("# " + line for line in [*text.splitlines(), brief(failed, text)]))
        name = test.id().split(".", self.parts)[-1]
        print(("not ok" if test.id() in self.bad else "ok"), self.testsRun, "-", name, flush=True)


def cases(suite):
    """The tests of a suite, one by one."""
    for item in suite:
        if isinstance(item, unittest.TestSuite):
            yield from cases(item)
        else:
            yield item


def main():
    """Run the tests of the program's own module."""
    run(unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))


def run(suite, module_names=False):
    """Run them, and end the process."""
    Tap.parts = 0 if module_names else 1
    print(f"1..{suite.countTestCases()}", flush=True)
    with open(os.devnull, "w", encoding="ascii") as quiet:
        result = unittest.TextTestRunner(stream=quiet, resultclass=Tap).run(suite)
    sys.exit(not result.wasSuccessful())
